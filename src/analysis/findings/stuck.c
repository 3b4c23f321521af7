/* stuck.c: reports promises that are still pending although younger promises of their type have ended.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"
#include "base/duration.h"
#include "base/search.h"

enum {
	ENOUGH_OTHERS = 20,
	OVERTAKEN = 10,
	TIMES_OLDER = 5,
	/* fewest ended promises of the type, if the stuck promise is much older than they became and at least FEW_OVERTAKEN
	 * younger ones ended */
	FEW_OTHERS = 8,
	FEW_OVERTAKEN = 5,
	TIMES_OLDER_THAN_FEW = 20,
	STALLS_OLDER_THAN_FEW = 10,
	TIMES_OLDER_AT_END = 2
};

/* The ended promises and the stuck promises of one type. */
struct progress {
	int64_t late_starts[OVERTAKEN]; /* the latest creation times of ended promises, in ascending order */
	uint32_t late_count;            /* number of valid late_starts */
	uint32_t first, stuck;          /* first stuck promise; number of stuck promises */
	bool has_later;                 /* true if some task was not ended by the run that created it */
	bool is_sure;                   /* true if some stuck promise is much older than ended promises of its type became */
	bool is_next;                   /* is_next() holds for `first` */
	bool is_dropped;                /* is_dropped() holds for `first` */
	bool is_silent;                 /* is_silent() holds for `first`, and nothing else */
};

/* Returns whether promises of the type can be stuck. */
static bool is_suspect(const struct weft__promise_type *type)
{
	return type->named && type->pending > 0 && type->ended >= FEW_OTHERS;
}

/* Returns, by type, the index + 1 of its struct progress, or 0 if its promises cannot be stuck.  The caller frees it.  Returns
 * NULL if no type is suspect, or on lack of memory, which is noted in the finder. */
static uint32_t *number_suspects(struct weft__finder *f, uint32_t *count)
{
	uint32_t *progress_of = NULL;
	*count = 0;
	for (size_t s = 0; s < f->types.items.count; s++) {
		if (!is_suspect(&f->types.items.items[s]))
			continue;
		if (!progress_of && !(progress_of = weft__finding_alloc(f, f->types.items.count, sizeof *progress_of)))
			break;
		progress_of[s] = ++*count;
	}
	return progress_of;
}

static void add_late_start(struct progress *progress, int64_t start_ns)
{
	if (progress->late_count == OVERTAKEN && start_ns <= progress->late_starts[0])
		return;
	uint32_t at = progress->late_count < OVERTAKEN ? progress->late_count++ : 0;
	/* Puts a new element at the end, or in place of the first one, and then moves it so that the order is ascending. */
	for (; at + 1 < progress->late_count && progress->late_starts[at + 1] < start_ns; at++)
		progress->late_starts[at] = progress->late_starts[at + 1];
	for (; at > 0 && progress->late_starts[at - 1] > start_ns; at--)
		progress->late_starts[at] = progress->late_starts[at - 1];
	progress->late_starts[at] = start_ns;
}

/* Returns the end of the run in which p was created; INT64_MAX if that run is unknown or has not ended. */
static int64_t get_creation_end_ns(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	const uint32_t creator = m->promises[p].created_by;
	const bool is_known = creator != WEFT_NONE && creator != WEFT_SYSTEM;
	const uint32_t run = is_known ? weft_run_before(m, creator, m->promises[p].start_ns + 1) : WEFT_NONE;
	return run == WEFT_NONE || m->runs[run].end_ns < m->promises[p].start_ns ? INT64_MAX : m->runs[run].end_ns;
}

/* Returns whether the run that created p also ended p. */
static bool was_ended_at_once(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	const int64_t over_ns = get_creation_end_ns(f, p);
	for (uint32_t i = f->link_index.in_begin[p]; over_ns != INT64_MAX && i < f->link_index.in_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		if ((link->kind == WEFT_LINK_RESOLVE || link->kind == WEFT_LINK_SIGNAL) && link->time_ns <= over_ns &&
		    link->from == m->promises[p].created_by)
			return true;
	}
	return false;
}

/* Returns whether nearly all tasks of the type have ended, so that a few may have been dropped on purpose. */
static bool may_be_dropped(const struct weft__promise_type *type)
{
	return type->kind == WEFT_KIND_TASK && type->pending <= type->ended / FEW_OTHERS;
}

/* Returns whether p, unlike every other task of its type, was not ended by the run that created it: perhaps no other code has a
 * reference to p. */
static bool is_dropped(const struct weft__finder *f, const struct progress *progress, uint32_t p)
{
	const struct weft__promise_type *type = &f->types.items.items[f->types.of[p]];
	const int64_t over_ns = get_creation_end_ns(f, p);
	return may_be_dropped(type) && !progress->has_later && f->root_causes.next[p] == WEFT_NONE && over_ns != INT64_MAX &&
	       weft_model_until(f->model, p) - over_ns >= f->options.stall_ns && !was_ended_at_once(f, p);
}

/* Returns whether the creator of p read a promise of the same type shortly before it created p: it takes items one after the
 * other, and perhaps no further item came. */
static bool is_next(const struct weft__finder *f, uint32_t p)
{
	enum { MAX_SCANNED = 64 }; /* only the last actions of the creator are examined, because it may have done many */
	const struct weft_model *m = f->model;
	const uint32_t creator = m->promises[p].created_by, *out = f->link_index.out;
	if (m->promises[p].kind != WEFT_KIND_TASK || creator == WEFT_NONE || creator == WEFT_SYSTEM)
		return false;
	const uint32_t begin = f->link_index.out_begin[creator], end = f->link_index.out_begin[creator + 1];
	const uint32_t after = (uint32_t)WEFT_FIND_FIRST(i, begin, end, m->links[out[i]].time_ns > m->promises[p].start_ns);
	for (uint32_t i = after; i > begin && after - i < MAX_SCANNED; i--) {
		const struct weft_link *link = &m->links[out[i - 1]];
		if (link->kind == WEFT_LINK_READ && f->types.of[link->to] == f->types.of[p])
			return true;
	}
	return false;
}

/* Returns whether the program ended normally although p was still pending, if p is one of few pending tasks of its type and
 * younger tasks have ended. That may be intended. */
static bool is_left_over(const struct weft__finder *f, const struct progress *progress, uint32_t p, int64_t age_ns)
{
	const struct weft__promise_type *type = &f->types.items.items[f->types.of[p]];
	const uint16_t kind = f->model->promises[p].kind;
	return progress->late_count > 0 && progress->late_starts[progress->late_count - 1] > f->model->promises[p].start_ns &&
	       !is_next(f, p) && (kind == WEFT_KIND_TASK || kind == WEFT_KIND_WORK) &&
	       !weft__completeness_of(f->completeness, f->model, p)->end_missing && type->pending <= type->ended / FEW_OTHERS &&
	       age_ns >= STALLS_OLDER_THAN_FEW * f->options.stall_ns && age_ns / TIMES_OLDER_AT_END > type->longest_ns;
}

/* Returns whether the thread of p has called code again and again since p began: a loop that never sleeps has not come to p. */
static bool is_thread_spinning(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	for (size_t i = m->spin_count; i-- > 0 && m->spins[i].time_ns >= m->promises[p].start_ns;)
		if (m->promises[m->spins[i].promise].stream == m->promises[p].stream)
			return true;
	return false;
}

/* Returns whether p is one of few pending tasks of its type, has lasted far longer than the others, and has done nothing for most
 * of that time: its callback returned without a result, or what it reads never came to its end.  Younger ones need not exist. */
static bool is_silent(const struct weft__finder *f, uint32_t p, int64_t age_ns)
{
	const struct weft__promise_type *type = &f->types.items.items[f->types.of[p]];
	const uint32_t root = f->root_causes.root[p];
	const enum weft_verdict verdict = f->root_causes.verdict[p];
	return may_be_dropped(type) && !is_thread_spinning(f, p) && age_ns >= STALLS_OLDER_THAN_FEW * f->options.stall_ns &&
	       age_ns / TIMES_OLDER_THAN_FEW > type->longest_ns && !is_next(f, p) &&
	       (verdict == WEFT_VERDICT_NEVER_TRIED || verdict == WEFT_VERDICT_OUTSIDE) &&
	       weft_model_until(f->model, p) -
		       weft_max_ns(weft__finding_last_action_ns(f, p), f->model->promises[root].start_ns) >=
		   age_ns / 4 * 3;
}

/* Returns whether enough is known of p: the trace has all its events, or a ring lost early ones but has its creation time, and p
 * has done nothing for at least half of its age. */
static bool is_known(const struct weft__finder *f, uint32_t p)
{
	const int64_t until_ns = weft_model_until(f->model, p), age_ns = until_ns - f->model->promises[p].start_ns;
	return weft__has_complete_history(f->completeness, f->model, p) ||
	       (weft__is_only_past_missing(f->completeness, f->model, p) &&
		   until_ns - weft__finding_last_action_ns(f, p) >= age_ns / 2);
}

/* Counts promise p in its type's progress if it is stuck. */
static void check_stuck(const struct weft__finder *f, struct progress *progress, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	const struct weft__promise_type *type = &f->types.items.items[f->types.of[p]];
	int64_t age_ns = weft_model_until(f->model, p) - promise->start_ns;
	const bool few = type->ended < ENOUGH_OTHERS;
	const uint32_t overtaken = few ? FEW_OVERTAKEN : OVERTAKEN;
	const int64_t least_ns = f->options.stall_ns * (few ? STALLS_OLDER_THAN_FEW : 1);
	const bool is_overtaken =
	    progress->late_count >= overtaken && progress->late_starts[progress->late_count - overtaken] > promise->start_ns;
	if (promise->end != WEFT_END_PENDING)
		return;
	const bool dropped = is_dropped(f, progress, p);
	if (age_ns < least_ns && !dropped)
		return;
	const bool is_late =
	    age_ns >= least_ns && is_overtaken && age_ns / (few ? TIMES_OLDER_THAN_FEW : TIMES_OLDER) > type->longest_ns;
	const bool silent = !dropped && is_silent(f, p, age_ns);
	if (!is_late && !dropped && !silent && !is_left_over(f, progress, p, age_ns))
		return;
	/* A promise that waits for the outside may take any time, except a request, which has an answer. */
	const bool outside =
	    f->root_causes.verdict[p] == WEFT_VERDICT_OUTSIDE && !weft_kind_has(promise->kind, WEFT_TRAIT_REQUEST);
	if ((outside && !silent) || weft_kind_has(promise->kind, WEFT_TRAIT_ENDLESS | WEFT_TRAIT_OUTSIDE) || !is_known(f, p) ||
	    f->reported[f->root_causes.root[p]])
		return;
	const bool next = is_late && is_next(f, p), is_sure = is_late && !next && !outside;
	if (progress->stuck++ == 0 || (is_sure && !progress->is_sure)) {
		progress->first = p;
		progress->is_next = next;
		progress->is_dropped = dropped;
		progress->is_silent = silent;
	}
	progress->is_sure |= is_sure;
}

static void report_dropped(struct weft__finder *f, struct weft_finding *finding, const struct progress *progress)
{
	const uint32_t p = progress->first, creator = f->model->promises[p].created_by;
	const char *at = weft__format_site_suffix(f, p), *by = weft__format_promise(f, creator);
	finding->title = weft__finding_text(f, "%s was not resolved by %s, its creator: %" PRIu32 " others of its type were%s",
	    weft__format_promise(f, p), by, f->types.items.items[f->types.of[p]].ended, at);
	finding->next = weft__finding_text(f, "look for a path through the code on which the promise gets no result%s", at);
	weft__finding_doubt(f, "other code may end the task later");
}

static void report_silent(struct weft__finder *f, uint32_t p)
{
	const struct weft__promise_type *type = &f->types.items.items[f->types.of[p]];
	const uint32_t root = f->root_causes.root[p];
	const int64_t since_ns = weft_max_ns(weft__finding_last_action_ns(f, p), f->model->promises[root].start_ns);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, since_ns, p, "%s acts for the last time", weft__format_promise(f, p));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "%" PRIu32 " other promises %s ended, the slowest after %s", type->ended, weft__format_type(f, p),
	    weft__format_duration(f, type->longest_ns));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE, "%s",
	    f->root_causes.verdict[p] == WEFT_VERDICT_OUTSIDE ? "the trace does not show how long an answer may take"
							      : "the trace does not show whether other code has yet to end it");
}

static void report_stuck(struct weft__finder *f, const struct progress *progress)
{
	const struct weft_model *m = f->model;
	uint32_t p = progress->first, root = f->root_causes.root[p];
	const struct weft__promise_type *type = &f->types.items.items[f->types.of[p]];
	int64_t start_ns = m->promises[p].start_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_STUCK, p, start_ns, weft_model_until(m, p));
	if (!finding)
		return;
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p),
		   *longest = weft__format_duration(f, type->longest_ns);
	const char *age = weft__format_duration(f, weft_model_until(m, p) - start_ns);
	finding->root = root;
	finding->next =
	    weft__finding_text(f, "run weft explain --promise=%" PRId64 " to see what the promise waits for", m->promises[p].id);
	finding->verdict = f->root_causes.verdict[p];
	if (!progress->is_sure)
		finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->weight = progress->stuck;
	if (!progress->is_sure && progress->is_dropped)
		report_dropped(f, finding, progress);
	else
		finding->title =
		    weft__finding_text(f, "%s has been pending for %s: %" PRIu32 " others of its type ended within %s%s", name,
			age, type->ended, longest, at);
	weft__evidence_add_creation(f, p);
	if (!progress->is_sure && progress->is_dropped)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, get_creation_end_ns(f, p), m->promises[p].created_by,
		    "%s stops; no code ever tried to end %s", weft__format_promise(f, m->promises[p].created_by), name);
	if (!weft__has_complete_history(f->completeness, m, p))
		weft__finding_doubt(f, "the ring buffer was overwritten, so earlier promises of the type are not known");
	/* A promise that retries with doubled pauses makes progress: its last pause is up to half as long as its age, and may
	 * have begun just before the end of the trace. */
	if (root != p && m->promises[root].start_ns - start_ns >= (weft_model_until(m, p) - start_ns) / 4)
		weft__finding_doubt(f,
		    "the promise waits for one that was created recently, so it may make progress, but more slowly than others");
	if (root != p)
		weft__finding_evidence(f, WEFT_EVIDENCE_CHAIN, m->promises[root].start_ns, root,
		    "the wait chain of the promise ends at %s%s", weft__format_promise(f, root),
		    weft__format_site_suffix(f, root));
	if (progress->stuck > 1)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "%" PRIu32 " more promises of its type %s stuck, too", progress->stuck - 1,
		    progress->stuck == 2 ? "is" : "are");
	if (!progress->is_sure && progress->is_next)
		weft__finding_doubt(
		    f, "the promise that waits for it got others of its type before, so perhaps no more items were to come");
	if (progress->is_sure || progress->is_next)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "%" PRIu32 " other promises %s ended, the slowest after %s; at least %d of them were created later",
		    type->ended, weft__format_type(f, p), longest, type->ended < ENOUGH_OTHERS ? FEW_OVERTAKEN : OVERTAKEN);
	else if (progress->is_silent)
		report_silent(f, p);
	else if (!progress->is_dropped)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "%" PRIu32 " other promises %s ended, the slowest after %s; the program ended without this one", type->ended,
		    weft__format_type(f, p), longest);
}

void weft__find_stuck(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	uint32_t count, *progress_of = number_suspects(f, &count);
	struct progress *all_progress =
	    progress_of ? weft__finding_alloc(f, count + 1, sizeof *all_progress) : NULL; /* [0]: all other types */
	for (uint32_t p = 1; all_progress && p < m->promise_count && weft__finding_may_continue(f, p, m->promise_count); p++) {
		const uint32_t type = f->types.of[p];
		struct progress *progress = &all_progress[progress_of[type]];
		if (progress_of[type] == 0 || f->link_index.ended_ns[p] == WEFT_NEVER)
			continue;
		if (!(m->promises[p].flags & WEFT_PROMISE_START_UNKNOWN))
			add_late_start(progress, m->promises[p].start_ns);
		progress->has_later =
		    progress->has_later || (may_be_dropped(&f->types.items.items[type]) && !was_ended_at_once(f, p));
	}
	const size_t pending = all_progress ? f->wait_graph.pending.count : 0;
	for (size_t i = 0; i < pending && weft__finding_may_continue(f, i, pending); i++) {
		uint32_t p = f->wait_graph.pending.items[i];
		if (progress_of[f->types.of[p]] != 0)
			check_stuck(f, &all_progress[progress_of[f->types.of[p]]], p);
	}
	for (size_t i = 0; i < pending && weft__finding_may_continue(f, i, pending); i++) {
		uint32_t p = f->wait_graph.pending.items[i];
		struct progress *progress = &all_progress[progress_of[f->types.of[p]]];
		if (progress->stuck == 0 || progress->first != p || f->reported[f->root_causes.root[p]])
			continue;
		f->reported[f->root_causes.root[p]] = true;
		report_stuck(f, progress);
	}
	free(all_progress);
	free(progress_of);
}
