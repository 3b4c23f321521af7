/* requests.c: searches requests and their answers.  SPDX-License-Identifier: ISC */
#include "analysis/index/requests.h"

#include "analysis/index/link_index.h"
#include "base/duration.h"
#include "base/search.h"

int64_t weft_request_slept_ns(const struct weft_model *m, const struct weft_request *request, int64_t until_ns)
{
	enum { MAX_SCANNED = 10000 };
	int64_t slept_ns = m->sleep_count ? 0 : until_ns - request->last_ns;
	size_t at = weft_first_sleep_from(m, until_ns), left = MAX_SCANNED;
	for (int64_t from_ns = until_ns; at > 0 && left > 0 && from_ns > request->last_ns; at--, left--) {
		const struct weft_interval *sleep = &m->sleeps[at - 1];
		if (sleep->stream != request->stream)
			continue;
		from_ns = weft_max_ns(sleep->start_ns, request->last_ns);
		slept_ns += weft_max_ns(weft_min_ns(sleep->end_ns, until_ns) - from_ns, 0);
	}
	return slept_ns;
}

const struct weft_request *weft_request_before(const struct weft_model *m, uint32_t connection, int64_t time_ns)
{
	const struct weft_request *all = m->requests;
	const size_t after = WEFT_FIND_FIRST(i, 0, m->request_count,
	    all[i].connection > connection || (all[i].connection == connection && all[i].asked_ns >= time_ns));
	return after > 0 && all[after - 1].connection == connection ? &all[after - 1] : NULL;
}

int64_t weft_request_until(const struct weft_model *m, const struct weft_request *request)
{
	const struct weft_promise *connection = &m->promises[request->connection];
	return weft_min_ns(request->answered_ns, connection->end == WEFT_END_PENDING ? INT64_MAX : connection->end_ns);
}

const struct weft_request *weft_request_during(const struct weft_model *m, uint32_t promise, int64_t start_ns, int64_t end_ns)
{
	const struct weft_request *best = NULL;
	int64_t longest_ns = (end_ns - start_ns) / 2;
	if (weft_kind_has(m->promises[promise].kind, WEFT_TRAIT_OUTSIDE))
		return NULL;
	for (size_t i = 0; i < m->request_count; i++) {
		const struct weft_request *t = &m->requests[i];
		const int64_t ns = weft_min_ns(weft_request_until(m, t), end_ns) - weft_max_ns(t->asked_ns, start_ns);
		const bool is_own = t->by == promise, is_best_own = best && best->by == promise;
		if (!t->is_question || t->connection == promise || ns <= 0 || t->stream != m->promises[promise].stream)
			continue;
		if (is_own == is_best_own ? ns < longest_ns : !is_own || ns < (end_ns - start_ns) / 2)
			continue;
		best = t;
		longest_ns = ns;
	}
	return best;
}
