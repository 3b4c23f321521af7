/* delayed_ack.c: reports connections whose requests of several small writes wait for a delayed acknowledgement of TCP.
 *
 * The kernel holds the second small write back until the peer has acknowledged the first (Nagle's algorithm), and the peer's
 * kernel acknowledges after 40 ms if its program has nothing to write.  The trace shows requests of several writes whose answers
 * took either little time, or 40 ms.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/requests.h"
#include "base/duration.h"

enum {
	MIN_DELAYED = 8,
	OTHERS_DIVISOR = 8,    /* at most one in OTHERS_DIVISOR answers takes another time */
	DELAYED_NS = 38000000, /* shortest time that counts as delayed; Linux acknowledges after 40 ms */
	SLOWEST_NS = 60000000, /* longest one: a busy machine wakes the threads late */
	QUICK_NS = 20000000    /* longest time that counts as quick */
};

/* The requests of one connection that took several writes, and one request of one write that was answered quickly. */
struct counts {
	size_t delayed, quick, others;
	int64_t delayed_ns;
	const struct weft_request *first;
	bool has_quick_single;
};

static void count_request(const struct weft_model *m, const struct weft_request *t, struct counts *counts)
{
	const int64_t took_ns = t->answered_ns - t->last_ns;
	const bool is_single = t->last_ns == t->asked_ns;
	if (!t->is_question || t->answered_ns == WEFT_NEVER)
		return;
	counts->has_quick_single |= is_single && took_ns < QUICK_NS;
	if (is_single)
		return;
	if (took_ns < QUICK_NS) {
		counts->quick++;
	} else if (took_ns < DELAYED_NS || took_ns > SLOWEST_NS || weft_request_slept_ns(m, t, t->answered_ns) < took_ns / 2) {
		counts->others++;
	} else {
		counts->first = counts->delayed++ ? counts->first : t;
		counts->delayed_ns += took_ns;
	}
}

/* Returns whether the connection is one of TCP, by its label: an address with a port. */
static bool is_tcp(const struct weft_model *m, uint32_t connection)
{
	const uint32_t label = weft_first_label(m, connection);
	const struct weft_str text = label == WEFT_NONE ? (struct weft_str){0} : weft_model_text(m, label);
	return text.len && memchr(text.ptr, ':', text.len);
}

static void report_connection(struct weft__finder *f, uint32_t p, const struct counts *counts)
{
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_SLOW, p, counts->first->asked_ns, counts->first->answered_ns);
	if (!finding)
		return;
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p);
	finding->weight = (uint64_t)counts->delayed_ns;
	finding->title = weft__finding_text(f, "%zu answers on %s averaged %s: delayed acknowledgements, perhaps%s",
	    counts->delayed, name, weft__format_duration(f, counts->delayed_ns / (int64_t)counts->delayed), at);
	finding->next = weft__finding_text(f, "write each request with one call, or set TCP_NODELAY%s", at);
	weft__evidence_add_request(f, counts->first);
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "each of these requests took several writes; the kernel sends the second small write only after the peer has "
	    "acknowledged the first, which may take 40 ms");
	weft__finding_doubt(f, "the trace does not show acknowledgements, so the peer itself may be slow");
}

void weft__delayed_ack_find(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	for (size_t i = 0, end; i < m->request_count && weft__finding_may_continue(f, i, m->request_count); i = end) {
		const uint32_t p = m->requests[i].connection;
		struct counts counts = {0};
		for (end = i; end < m->request_count && m->requests[end].connection == p; end++)
			count_request(m, &m->requests[end], &counts);
		/* A peer that always takes this time is just slow. */
		if (counts.delayed >= MIN_DELAYED && counts.others <= counts.delayed / OTHERS_DIVISOR &&
		    (counts.quick > 0 || counts.has_quick_single) && is_tcp(m, p))
			report_connection(f, p, &counts);
	}
}
