/* underway.c: promises that should resolve and were on their way when the trace ended.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"

void weft__find_underway(struct weft__finder *f)
{
	const struct weft__blocked *blocked = f->chains.blocked.items;
	const struct weft_promise *promises = f->model->promises;
	for (size_t i = 0, count = 0; i < f->chains.blocked.count && weft__finding_goes_on(f, i, f->chains.blocked.count);
	     i += count) {
		uint32_t root = blocked[i].root, p = blocked[i].promise;
		count = weft__chains_blocked(&f->chains, root, &(const struct weft__blocked *){NULL});
		if (f->told[root])
			continue;
		f->told[root] = true;
		struct weft_finding *finding =
		    weft__finding_begin(f, WEFT_FINDING_UNDERWAY, p, promises[p].start_ns, weft_model_until(f->model, p));
		if (!finding)
			continue;
		const char *name = weft__words_name(f, p);
		finding->root = root;
		finding->verdict = f->chains.verdict[root];
		finding->weight = count;
		finding->title = weft__finding_text(f, "%s had not resolved when the trace ended: %s%s was under way for %s",
		    count == 1 ? name : weft__finding_text(f, "%s and %zu more", name, count - 1), weft__words_name(f, root),
		    weft__words_at(f, root), weft__words_span(f, weft_model_until(f->model, root) - promises[root].start_ns));
		finding->next = "if the program should have waited for that, its loop returned, or it exited, too early";
		/* In what is lost it may have resolved. */
		weft__finding_doubt_part(f, p, true);
		if (root != p)
			weft__finding_doubt_part(f, root, true);
		weft__hang_chain(f, p);
		weft__words_creation(f, root);
		weft__words_peers(f, root);
	}
}
