/* slow_peer.c: reports connections whose peer answered a request far later than usual.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/path_by_process.h"
#include "analysis/index/requests.h"
#include "base/duration.h"
#include "base/sort.h"

enum {
	MIN_ANSWERS = 5, /* fewest answers that have a usual time */
	ENOUGH_ANSWERS = 16,
	TIMES_MEDIAN = 10, /* shortest time to a late answer, in multiples of the median */
	/* shortest time to a late answer, in multiples of the median, if there are fewer than ENOUGH_ANSWERS */
	TIMES_FEW = 20,
	TIMES_STALL = 10, /* shortest time to a late answer, in stall limits */
	LATE_DIVISOR = 5, /* if more than one in LATE_DIVISOR answers is late, lateness is usual */
	MAX_REPORTED = 8,
	MAX_CANDIDATES = 32
};

/* A request that a peer has answered.  Connections with the same label lead to one address, so they share a usual time to the
 * answer. */
struct answer {
	uint64_t peer;
	int64_t took_ns;
	uint32_t request;
};

static int compare_answers(const void *a, const void *b)
{
	const struct answer *x = a, *y = b;
	return WEFT_ORDER(x->peer, y->peer) ?: WEFT_ORDER(y->took_ns, x->took_ns) ?: WEFT_ORDER(x->request, y->request);
}

static uint64_t get_peer_key(const struct weft_model *m, uint32_t connection)
{
	const uint32_t label = weft_first_label(m, connection);
	const uint64_t part = m->trace->part_count ? weft_part_of(m, connection) : 0;
	return part << 33 | (label == WEFT_NONE ? UINT64_C(1) << 32 | m->promises[connection].site : label);
}

/* Returns all answers, sorted by peer and then by time to the answer, the slowest first; the caller frees the array.  Returns
 * NULL if there are none, or on lack of memory, which is noted in the finder. */
static struct answer *gather_answers(struct weft__finder *f, size_t *count)
{
	const struct weft_model *m = f->model;
	struct answer *answers = m->request_count ? weft__finding_alloc(f, m->request_count, sizeof *answers) : NULL;
	for (size_t i = 0; answers && i < m->request_count; i++) {
		const struct weft_request *t = &m->requests[i];
		if (t->is_question && t->answered_ns != WEFT_NEVER)
			answers[(*count)++] =
			    (struct answer){get_peer_key(m, t->connection), t->answered_ns - t->asked_ns, (uint32_t)i};
	}
	if (answers)
		weft_sort(answers, *count, sizeof *answers, compare_answers);
	return answers;
}

/* Returns whether more than half of the connection's answers before and after the request are late.  The requests of such a
 * connection differ from other requests to its peer: for example, they wait for news. */
static bool is_usual_for_connection(const struct weft_model *m, size_t request, int64_t late_ns)
{
	enum { MAX_SCANNED = 100 };
	size_t late = 0, all = 0, at = request;
	while (at > 0 && request - at < MAX_SCANNED / 2 && m->requests[at - 1].connection == m->requests[request].connection)
		at--;
	for (; at < m->request_count && m->requests[at].connection == m->requests[request].connection && all < MAX_SCANNED;
	     at++, all++)
		late += m->requests[at].answered_ns - m->requests[at].asked_ns >= late_ns;
	return late > 1 && late > all / 2;
}

/* Returns whether the program itself caused the delay: for most of the time it still wrote the request, or its own thread did
 * not come to read the answer. */
static bool is_caused_locally(const struct weft_model *m, const struct weft_request *t)
{
	const int64_t took_ns = t->answered_ns - t->asked_ns, silent_ns = t->answered_ns - t->last_ns;
	return silent_ns < took_ns / 2 || weft_request_slept_ns(m, t, t->answered_ns) < took_ns / 2;
}

static void report_slow_peer(struct weft__finder *f, const struct answer *a, size_t late, size_t all, int64_t median_ns)
{
	const struct weft_request *t = &f->model->requests[a->request];
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_SLOW, t->connection, t->asked_ns, t->answered_ns);
	if (!finding)
		return;
	const char *name = weft__format_promise(f, t->connection), *at = weft__format_site_suffix(f, t->connection);
	const char *peer = weft__format_peer_process(f, t->connection); /* ", node@b," */
	const char *by = *peer ? weft__finding_text(f, " by%.*s", (int)strlen(peer) - 2, peer + 1) : "";
	const uint32_t asked = weft__asked_on(f, t->connection, t->asked_ns);
	const char *subject = asked == WEFT_NONE ? name : weft__format_promise(f, asked);
	finding->weight = (uint64_t)a->took_ns;
	finding->title = weft__finding_text(f, "%s was answered%s after %s: the median of %zu answers is %s%s", subject, by,
	    weft__format_duration(f, a->took_ns), all, weft__format_duration(f, median_ns), at);
	finding->next = weft__format_late_advice(f, t->connection);
	weft__evidence_add_request(f, t);
	if (late > 1)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE, "%zu more answer%s late", late - 1,
		    late == 2 ? " was" : "s were");
}

/* Reports the slowest late answer of one peer and marks all late answers; returns whether it reported one. */
static bool check_peer(struct weft__finder *f, const struct answer *answers, size_t count, bool *is_late)
{
	const struct weft_model *m = f->model;
	const int64_t median_ns = answers[count / 2].took_ns, times = count < ENOUGH_ANSWERS ? TIMES_FEW : TIMES_MEDIAN;
	if (count < MIN_ANSWERS || median_ns > INT64_MAX / times)
		return false;
	const int64_t late_ns = weft_max_ns(median_ns * times, TIMES_STALL * f->options.stall_ns);
	size_t late = 0, looked = 0;
	while (late < count && answers[late].took_ns >= late_ns)
		late++;
	for (size_t i = 0; late <= count / LATE_DIVISOR && i < late && looked < MAX_CANDIDATES; i++, looked++) {
		if (is_caused_locally(m, &m->requests[answers[i].request]) ||
		    is_usual_for_connection(m, answers[i].request, late_ns))
			continue;
		report_slow_peer(f, &answers[i], late - i, count, median_ns);
		for (; i < late; i++)
			is_late[answers[i].request] = true;
		return true;
	}
	return false;
}

void weft__slow_peer_find(struct weft__finder *f, bool *is_late)
{
	size_t count = 0, reported = 0;
	struct answer *answers = gather_answers(f, &count);
	for (size_t i = 0, end; i < count && reported < MAX_REPORTED; i = end) {
		for (end = i; end < count && answers[end].peer == answers[i].peer;)
			end++;
		reported += check_peer(f, &answers[i], end - i, is_late);
	}
	free(answers);
}
