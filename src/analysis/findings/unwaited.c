/* unwaited.c: reports child processes that have ended but that the program did not wait for, so that the kernel keeps each as a
 * zombie.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "base/known_strings.h"

enum { MIN_CHILDREN = 8 }; /* a program that is about to end may leave a few children without a wait */

/* The children that were started at one place. */
struct children {
	uint32_t count, first, last;
};

/* Returns when the recorder found that the process of a pending promise had ended; WEFT_NEVER if it did not.  `word` is the
 * text that marks the end in the label of the promise. */
static int64_t find_end_ns(const struct weft_model *m, uint32_t p, uint32_t word)
{
	for (uint32_t l = m->promises[p].labels; l < m->promises[p + 1].labels; l++)
		if (m->labels[l].text == word && !m->labels[l].is_counter)
			return m->labels[l].time_ns;
	return WEFT_NEVER;
}

static void report_children(struct weft__finder *f, const struct children *of, uint32_t word)
{
	const struct weft_model *m = f->model;
	const uint32_t p = of->first;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_LEAK, p, m->promises[p].start_ns, m->end_ns);
	if (!finding)
		return;
	const char *at = weft__format_site_suffix(f, p);
	finding->weight = of->count;
	if (of->count < f->options.leak_count)
		finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->title = weft__finding_text(
	    f, "%" PRIu32 " child processes have ended, and the program did not wait for them: zombies%s", of->count, at);
	finding->next = weft__finding_text(f, "call waitpid() for each child, or ignore SIGCHLD%s", at);
	weft__evidence_add_creation(f, p);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, find_end_ns(m, p, word), p,
	    "%s has ended by then, and the kernel keeps it as a zombie", weft__format_promise(f, p));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[of->last].start_ns, of->last,
	    "%s is the last of these children to start", weft__format_promise(f, of->last));
}

void weft__unwaited_find(struct weft__finder *f)
{
	static const char text[] = WEFT_STRING_NOT_WAITED_FOR;
	const struct weft_model *m = f->model;
	const uint32_t word = weft_model_find_text(m, (struct weft_str){text, sizeof text - 1});
	struct children *by_site =
	    word == WEFT_NONE ? NULL : weft__finding_alloc(f, m->trace->site_count + 1, sizeof *by_site); /* the last: no site */
	for (size_t i = 0; by_site && i < f->wait_graph.pending.count; i++) {
		const uint32_t p = f->wait_graph.pending.items[i];
		if (m->promises[p].kind != WEFT_KIND_PROCESS || find_end_ns(m, p, word) == WEFT_NEVER)
			continue;
		const size_t site = m->promises[p].site == WEFT_NONE ? m->trace->site_count : m->promises[p].site;
		struct children *of = &by_site[site];
		of->first = of->count++ == 0 ? p : of->first;
		of->last = p;
	}
	for (size_t s = 0; by_site && s <= m->trace->site_count; s++)
		if (by_site[s].count >= MIN_CHILDREN)
			report_children(f, &by_site[s], word);
	free(by_site);
}
