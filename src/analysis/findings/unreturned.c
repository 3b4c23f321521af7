/* unreturned.c: what was thrown away before anybody gave it a result: GLib's tasks, D-Bus's calls.  SPDX-License-Identifier: ISC
 */
#include <inttypes.h>
#include <string.h>

#include "analysis/findings/finding.h"

static bool is_unreturned(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	if (promise->failure == WEFT_NONE || f->told[p])
		return false;
	struct weft_str text = weft_model_text(f->model, promise->failure);
	return text.len == strlen(WEFT_UNRETURNED) && memcmp(text.ptr, WEFT_UNRETURNED, text.len) == 0;
}

/* Of one sort, the first of which is p. */
static void tell_unreturned(struct weft__finder *f, uint32_t p, uint32_t count)
{
	const struct weft_promise *promise = &f->model->promises[p];
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_UNRETURNED, p, promise->start_ns, promise->end_ns);
	if (!finding)
		return;
	const char *name = weft__words_name(f, p), *at = weft__words_at(f, p);
	finding->weight = count;
	if (count == 1)
		finding->title = weft__finding_text(f, "%s%s was " WEFT_UNRETURNED ": who waits for it gets no result", name, at);
	else
		finding->title = weft__finding_text(f,
		    "%s%s and %" PRIu32 " more of its sort were " WEFT_UNRETURNED ": who waits for them gets no result", name, at,
		    count - 1);
	finding->next = weft__finding_text(f, "look for the way on which its code returns neither a value nor an error%s", at);
	weft__words_creation(f, p);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, promise->end_ns, p, "the last reference to it is dropped; it has no result");
	weft__finding_doubt_part(f, p, false);
}

void weft__find_unreturned(struct weft__finder *f)
{
	const uint32_t *failed = f->ties.failed.items;
	size_t count = f->ties.failed.count;
	uint32_t *of_sort = weft__finding_alloc(f, f->sorts.items.count, sizeof *of_sort);
	for (size_t i = 0; of_sort && i < count && weft__finding_goes_on(f, i, count); i++)
		of_sort[f->sorts.of[failed[i]]] += is_unreturned(f, failed[i]);
	for (size_t i = 0; of_sort && i < count && weft__finding_goes_on(f, i, count); i++) {
		uint32_t p = failed[i], *here = &of_sort[f->sorts.of[p]];
		if (!is_unreturned(f, p))
			continue;
		f->told[p] = true;
		if (*here > 0)
			tell_unreturned(f, p, *here);
		*here = 0;
	}
	free(of_sort);
}
