/* late.c: connections that were asked something, and whose other end answered far later than usual.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "analysis/shares.h"
#include "analysis/turns.h"
#include "base/duration.h"
#include "base/sort.h"

enum {
	LEAST_ANSWERS = 5, /* fewer have no usual time */
	ENOUGH_ANSWERS = 16,
	TIMES_MEDIAN = 10, /* from there on it is far longer ... */
	TIMES_FEW = 20,    /* ... where these are not enough */
	TIMES_STALL = 10,  /* and so many stalls at least */
	MOST_LATE = 5,     /* if more than one in so many takes as long, that is usual */
	MOST_TOLD = 8,
	MOST_LOOKED_AT = 32
};

/* A turn that has its answer.  Of connections that are called alike, which lead to one address, the usual time is one. */
struct answer {
	uint64_t peer;
	int64_t took_ns;
	uint32_t turn;
};

static int compare_answers(const void *a, const void *b)
{
	const struct answer *x = a, *y = b;
	return WEFT_ORDER(x->peer, y->peer) ?: WEFT_ORDER(y->took_ns, x->took_ns) ?: WEFT_ORDER(x->turn, y->turn);
}

static uint64_t peer_of(const struct weft_model *m, uint32_t connection)
{
	const uint32_t label = weft_first_label(m, connection);
	const uint64_t part = m->trace->part_count ? weft_part_of(m, connection) : 0;
	return part << 33 | (label == WEFT_NONE ? UINT64_C(1) << 32 | m->promises[connection].site : label);
}

/* By peer, the slowest first; NULL: there are none, or no memory, which is noted. */
static struct answer *gather(struct weft__finder *f, size_t *count)
{
	const struct weft_model *m = f->model;
	struct answer *answers = m->turn_count ? weft__finding_alloc(f, m->turn_count, sizeof *answers) : NULL;
	for (size_t i = 0; answers && i < m->turn_count; i++) {
		const struct weft_turn *t = &m->turns[i];
		if (t->is_question && t->answered_ns != WEFT_NEVER)
			answers[(*count)++] =
			    (struct answer){peer_of(m, t->connection), t->answered_ns - t->asked_ns, (uint32_t)i};
	}
	if (answers)
		weft_sort(answers, *count, sizeof *answers, compare_answers);
	return answers;
}

/* What is always late on one connection is asked in another way than on others to that peer: who waits until there is something.
 */
static bool is_usual_there(const struct weft_model *m, size_t turn, int64_t late_ns)
{
	enum { LOOKED_AT = 100 };
	size_t late = 0, all = 0, at = turn;
	while (at > 0 && turn - at < LOOKED_AT / 2 && m->turns[at - 1].connection == m->turns[turn].connection)
		at--;
	for (; at < m->turn_count && m->turns[at].connection == m->turns[turn].connection && all < LOOKED_AT; at++, all++)
		late += m->turns[at].answered_ns - m->turns[at].asked_ns >= late_ns;
	return late > 1 && late > all / 2;
}

/* It was written for most of the time, or its answer waited for our own OS thread. */
static bool is_by_us(const struct weft_model *m, const struct weft_turn *t)
{
	const int64_t took_ns = t->answered_ns - t->asked_ns, silent_ns = t->answered_ns - t->last_ns;
	return silent_ns < took_ns / 2 || weft_turn_slept_ns(m, t, t->answered_ns) < took_ns / 2;
}

static void tell(struct weft__finder *f, const struct answer *a, size_t late, size_t all, int64_t median_ns)
{
	const struct weft_turn *t = &f->model->turns[a->turn];
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_SLOW, t->connection, t->asked_ns, t->answered_ns);
	if (!finding)
		return;
	const char *name = weft__words_name(f, t->connection), *at = weft__words_at(f, t->connection);
	const char *more = late == 1 ? "" : weft__finding_text(f, ", and so did %zu more", late - 1);
	finding->weight = (uint64_t)a->took_ns;
	finding->title = weft__finding_text(f,
	    "%s%s was asked, and the other end%s answered %s later%s; of %zu answers there the median took %s", name, at,
	    weft__words_peer(f, t->connection), weft__words_span(f, a->took_ns), more, all, weft__words_span(f, median_ns));
	finding->next = weft__words_next_late(f, t->connection);
	weft__words_turn(f, t);
}

/* Of one peer; whether something was told. */
static bool look_at(struct weft__finder *f, const struct answer *answers, size_t count, bool *is_late)
{
	const struct weft_model *m = f->model;
	const int64_t median_ns = answers[count / 2].took_ns, times = count < ENOUGH_ANSWERS ? TIMES_FEW : TIMES_MEDIAN;
	if (count < LEAST_ANSWERS || median_ns > INT64_MAX / times)
		return false;
	const int64_t late_ns = weft_max_ns(median_ns * times, TIMES_STALL * f->options.stall_ns);
	size_t late = 0, looked = 0;
	while (late < count && answers[late].took_ns >= late_ns)
		late++;
	for (size_t i = 0; late <= count / MOST_LATE && i < late && looked < MOST_LOOKED_AT; i++, looked++) {
		if (is_by_us(m, &m->turns[answers[i].turn]) || is_usual_there(m, answers[i].turn, late_ns))
			continue;
		tell(f, &answers[i], late - i, count, median_ns);
		for (; i < late; i++)
			is_late[answers[i].turn] = true;
		return true;
	}
	return false;
}

void weft__late_find(struct weft__finder *f, bool *is_late)
{
	size_t count = 0, told = 0;
	struct answer *answers = gather(f, &count);
	for (size_t i = 0, end; i < count && told < MOST_TOLD; i = end) {
		for (end = i; end < count && answers[end].peer == answers[i].peer;)
			end++;
		told += look_at(f, &answers[i], end - i, is_late);
	}
	free(answers);
}
