/* unreturned.c: reports tasks, calls and coroutines that were destroyed before they returned a result.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>

#include "analysis/findings/finding.h"

static bool is_unreturned(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	if (promise->failure == WEFT_NONE || f->reported[p])
		return false;
	struct weft_str text = weft_model_text(f->model, promise->failure);
	return text.len == strlen(WEFT_UNRETURNED) && memcmp(text.ptr, WEFT_UNRETURNED, text.len) == 0;
}

/* A coroutine that no code awaited has never run, unlike a task whose reference was lost. */
static void report_unawaited(struct weft__finder *f, struct weft_finding *finding, uint32_t p, uint32_t count)
{
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p);
	finding->title = weft__finding_text(f, "%s%s never awaited%s", name,
	    count == 1 ? " was" : weft__finding_text(f, " and %" PRIu32 " more were", count - 1), at);
	finding->next = weft__finding_text(f, "await the call, or give it to create_task() and keep the task%s", at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->model->promises[p].end_ns, p,
	    "the last reference to %s is dropped: its code never ran", name);
}

/* Reports `count` promises of one type; p is the first of these promises. */
static void report_unreturned(struct weft__finder *f, uint32_t p, uint32_t count)
{
	const struct weft_promise *promise = &f->model->promises[p];
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_UNRETURNED, p, promise->start_ns, promise->end_ns);
	if (!finding)
		return;
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p);
	finding->weight = count;
	weft__finding_doubt_part(f, p, false);
	if (promise->kind == WEFT_KIND_COROUTINE) {
		report_unawaited(f, finding, p, count);
		return;
	}
	finding->title = weft__finding_text(f, "%s%s finalized without a result%s", name,
	    count == 1 ? " was" : weft__finding_text(f, " and %" PRIu32 " more were", count - 1), at);
	finding->next =
	    weft__finding_text(f, "find the path through the code of the task that returns neither a value nor an error%s", at);
	weft__evidence_add_creation(f, p);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, promise->end_ns, p, "the last reference to %s is dropped: its waiter gets no result", name);
}

void weft__find_unreturned(struct weft__finder *f)
{
	const uint32_t *failed = f->link_index.failed.items;
	size_t count = f->link_index.failed.count;
	uint32_t *of_type = weft__finding_alloc(f, f->types.items.count, sizeof *of_type);
	for (size_t i = 0; of_type && i < count && weft__finding_may_continue(f, i, count); i++)
		of_type[f->types.of[failed[i]]] += is_unreturned(f, failed[i]);
	for (size_t i = 0; of_type && i < count && weft__finding_may_continue(f, i, count); i++) {
		uint32_t p = failed[i], *here = &of_type[f->types.of[p]];
		if (!is_unreturned(f, p))
			continue;
		f->reported[p] = true;
		if (*here > 0)
			report_unreturned(f, p, *here);
		*here = 0;
	}
	free(of_type);
}
