/* end_signal.c: finds signals of the operating system that asked a process to end.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/path_by_process.h"

/* Returns whether p is a signal that asks the program to end, by its label. */
static bool is_end_signal(const struct weft_model *m, uint32_t p)
{
	static const char *const labels[] = {"SIGTERM", "SIGINT", "signal 15", "signal 2"};
	const uint32_t label = m->promises[p].kind == WEFT_KIND_OS_SIGNAL ? weft_model_name_text(m, p) : WEFT_NONE;
	for (size_t i = 0; label != WEFT_NONE && i < sizeof labels / sizeof *labels; i++)
		if (weft_str_equal(weft_model_text(m, label), (struct weft_str){labels[i], (uint32_t)strlen(labels[i])}))
			return true;
	return false;
}

uint32_t weft__end_signal_find(const struct weft__finder *f, uint32_t of, int64_t latest_ns, int64_t *came_ns)
{
	const struct weft_model *m = f->model;
	uint32_t found = WEFT_NONE;
	*came_ns = latest_ns;
	for (uint32_t p = 1; p < m->promise_count && weft__promise_types_have(&f->types, WEFT_KIND_OS_SIGNAL); p++) {
		if (!is_end_signal(m, p) || weft_part_of(m, p) != weft_part_of(m, of))
			continue;
		for (uint32_t i = f->link_index.in_begin[p]; i < f->link_index.in_begin[p + 1]; i++) {
			const struct weft_link *link = &m->links[f->link_index.in[i]];
			if (link->from != WEFT_SYSTEM || (link->kind != WEFT_LINK_SIGNAL && link->kind != WEFT_LINK_RESOLVE))
				continue;
			if (link->time_ns <= *came_ns) {
				*came_ns = link->time_ns;
				found = p;
			}
			break;
		}
	}
	return found;
}
