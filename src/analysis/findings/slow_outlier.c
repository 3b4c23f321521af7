/* slow_outlier.c: reports promises that took far longer than others of their type and site.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/slow.h"
#include "analysis/index/path.h"
#include "analysis/index/path_by_process.h"
#include "analysis/index/requests.h"
#include "base/duration.h"
#include "base/idmap.h"
#include "base/search.h"
#include "base/select.h"
#include "base/sort.h"
#include "base/vec.h"

enum {
	/* shortest duration of a slow name lookup or connect (a program makes few of them), in multiples of the median */
	TIMES_USUAL = 3,
	MAX_CANDIDATES = 32
};

/* Durations of promises of one type group and site. */
struct site_group {
	uint32_t group, site; /* first type of the type group; site of the promises */
	/* number of durations; end index in times.ns: the group has times.ns[end - count] to times.ns[end - 1] */
	size_t count, end;
	int64_t longest_ns;      /* longest duration of the group, apart from durations that a late answer explains */
	int64_t least_ns;        /* shortest slow duration */
	uint32_t longest, found; /* slowest promise of the group; index of its struct weft__slowest, if any promise is slow */
};

struct times {
	WEFT_VEC(struct site_group) site_groups;
	uint32_t *site_group_of; /* by promise: index of its site group + 1; 0 if the promise has no usual duration */
	int64_t *ns;             /* durations sorted by site group, only of groups that may have a slow promise */
};

static int compare_slowest(const void *a, const void *b)
{
	const struct weft__slowest *x = a, *y = b;
	return WEFT_ORDER(y->took_ns, x->took_ns) ?: WEFT_ORDER(x->promise, y->promise);
}

/* Returns whether promises of the type have a usual duration.  A timer takes as long as the program chose; a late timer is
 * reported as a stall.
 */
static bool type_has_usual_time(const struct weft__promise_type *type)
{
	return type->kind != WEFT_KIND_TIMER && type->named && !weft_kind_has(type->kind, WEFT__TRAITS_LASTING);
}

bool weft__slow_has_duration(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	return f->link_index.ended_ns[p] != WEFT_NEVER &&
	       (promise->start_ns >= 0 || weft__is_only_past_missing(f->completeness, f->model, p)) &&
	       promise->end != WEFT_END_BECAME && !(promise->flags & WEFT_PROMISE_START_UNKNOWN) &&
	       !weft_model_was_cancelled(f->model, promise);
}

/* Returns the request whose answer p read, or NULL; p must be a read of a connection. */
static const struct weft_request *find_request(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *read = &f->model->promises[p];
	if (read->kind != WEFT_KIND_STREAM_READ || read->created_by == WEFT_NONE || f->link_index.ended_ns[p] == WEFT_NEVER)
		return NULL;
	const struct weft_request *request = weft_request_before(f->model, read->created_by, f->link_index.ended_ns[p] + 1);
	return request && request->answered_ns >= read->start_ns && request->answered_ns <= f->link_index.ended_ns[p] ? request
														      : NULL;
}

/* Returns whether slow_peer.c reports p if it is slow.  On a persistent connection a read starts long before the peer must
 * write, so the duration of the read does not matter; slow_peer.c measures the time from the request to the answer. */
static bool is_reported_by_requests(const struct weft__finder *f, uint32_t p, int64_t took_ns)
{
	const struct weft_request *request = find_request(f, p);
	return request && (request->is_question || request->answered_ns - request->last_ns < took_ns / 2);
}

/* Returns whether p waited at least half of its time for a promise that has its own finding. */
static bool has_waited_for_another(
    const struct weft__finder *f, uint32_t p, int64_t took_ns, const struct weft__slow_reported *reported)
{
	for (uint32_t i = f->link_index.out_begin[p]; i < f->link_index.out_begin[p + 1]; i++) {
		const struct weft_link *link = &f->model->links[f->link_index.out[i]];
		uint32_t input = f->link_index.final[link->to];
		int64_t from_ns = link->time_ns, to_ns = f->link_index.ended_ns[link->to];
		if (link->kind == WEFT_LINK_AWAIT && input != p && (reported->is_slow[link->to] || reported->is_slow[input]) &&
		    to_ns != WEFT_NEVER && to_ns - from_ns >= took_ns / 2)
			return true;
	}
	return false;
}

/* Returns whether the promise or request for which the step waits has its own finding. */
static bool is_reported(
    const struct weft__finder *f, const struct weft_path_step *step, uint32_t p, const struct weft__slow_reported *reported)
{
	const struct weft_request *request =
	    step->connection != WEFT_NONE ? weft_request_before(f->model, step->connection, step->end_ns) : NULL;
	return (request && reported->is_late[request - f->model->requests]) ||
	       (step->promise != p && reported->is_slow[step->promise]);
}

/* Returns whether a step of the path names the promise. */
static bool is_on_path(const struct weft_path *path, uint32_t promise)
{
	for (size_t i = 0; i < path->count; i++)
		if (path->steps[i].promise == promise || path->steps[i].delayed_by == promise)
			return true;
	return false;
}

/* Returns whether the finding is about a queue for a semaphore or a pool, which delays only the promises in the queue. */
static bool is_about_queue(const struct weft__finder *f, const struct weft_finding *finding)
{
	const uint16_t root = f->types.kinds[finding->root];
	return finding->kind == WEFT_FINDING_EXHAUSTED && finding->severity == WEFT_SEVERITY_INFORMATION &&
	       (root == WEFT_KIND_SEMAPHORE || root == WEFT_KIND_POOL);
}

/* Returns the delay finding that covers the largest part of the lifetime of p, if such findings together cover at least half of
 * it.  SIZE_MAX: there is none. */
static size_t find_delay(const struct weft__finder *f, const struct weft_path *path, uint32_t p, int64_t took_ns)
{
	const int64_t from_ns = f->model->promises[p].start_ns, to_ns = f->link_index.ended_ns[p];
	int64_t covered_ns = 0, longest_ns = 0;
	size_t longest = SIZE_MAX;
	for (size_t i = 0; i < f->findings.count; i++) {
		const struct weft_finding *finding = &f->findings.items[i];
		const bool is_delay = finding->kind == WEFT_FINDING_STALL || finding->kind == WEFT_FINDING_STARVATION ||
				      finding->kind == WEFT_FINDING_SPIN ||
				      (finding->kind == WEFT_FINDING_EXHAUSTED && !is_about_queue(f, finding)) ||
				      (finding->kind == WEFT_FINDING_SLOW && is_on_path(path, finding->promise));
		const int64_t ns = weft_min_ns(finding->end_ns, to_ns) - weft_max_ns(finding->start_ns, from_ns);
		if (!is_delay || ns <= 0 || weft__finding_is_covered(f, i))
			continue;
		covered_ns += ns;
		if (ns > longest_ns) {
			longest_ns = ns;
			longest = i;
		}
	}
	return covered_ns >= took_ns / 2 ? longest : SIZE_MAX;
}

/* Returns whether p waited most of its time for promises or peers that have their own findings. */
static bool is_caused_by_another(const struct weft__finder *f, const struct weft_path *path, uint32_t p, int64_t took_ns,
    const struct weft__slow_reported *reported)
{
	int64_t other_ns = 0;
	for (size_t i = 0; i < path->count; i++) {
		const struct weft_path_step *step = &path->steps[i];
		other_ns +=
		    step->kind == WEFT_STEP_WAITING && is_reported(f, step, p, reported) ? step->end_ns - step->start_ns : 0;
	}
	return other_ns > took_ns / 2;
}

/* Returns whether, for most of the time, p itself ran, or other promises ran while p was ready: a stall or starvation, unless
 * the thread slept. */
static bool is_held(const struct weft_path *path, int64_t took_ns)
{
	int64_t held_ns = 0;
	for (size_t i = 0; i < path->count; i++) {
		const struct weft_path_step *step = &path->steps[i];
		held_ns += step->kind != WEFT_STEP_WAITING || step->delayed_by != WEFT_NONE
			       ? step->end_ns - step->start_ns - step->asleep_ns
			       : 0;
	}
	return held_ns > took_ns / 2;
}

/* Marks the newest finding, about p, as covered by the finding of the delay that explains it.  Returns whether it did. */
static bool cover_by_delay(struct weft__finder *f, size_t delay)
{
	if (delay != SIZE_MAX)
		weft__finding_cover(f, f->findings.count - 1, delay);
	return delay != SIZE_MAX;
}

/* Returns whether p waited for something other than the connection for most of the time.  For example, a server's read of the
 * next request ends only after the client has received its last answer. */
static bool has_known_wait(const struct weft_path *path, uint32_t p, uint32_t connection, int64_t took_ns)
{
	int64_t other_ns = 0;
	for (size_t i = 0; i < path->count; i++) {
		const struct weft_path_step *step = &path->steps[i];
		const bool is_other = step->connection != WEFT_NONE ? step->connection != connection
								    : step->promise != p && step->promise != WEFT_SYSTEM;
		other_ns += step->kind == WEFT_STEP_WAITING && is_other ? step->end_ns - step->start_ns : 0;
	}
	return other_ns > took_ns / 2;
}

/* Adds evidence and advice for a read whose data came late from the peer. */
static void report_peer(struct weft__finder *f, struct weft_finding *finding, uint32_t p)
{
	const struct weft_promise *promises = f->model->promises;
	const uint32_t connection = promises[p].created_by;
	const char *name = weft__format_promise(f, connection);
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, connection, "the other end of %s sent its data late%s", name,
	    weft__format_site_suffix(f, connection));
	finding->next = weft__format_late_advice(f, connection);
}

static bool is_read_of_connection(const struct weft_model *m, uint32_t p)
{
	const uint32_t by = m->promises[p].created_by;
	return m->promises[p].kind == WEFT_KIND_STREAM_READ && by != WEFT_NONE &&
	       weft_kind_has(m->promises[by].kind, WEFT_TRAIT_CONNECTION);
}

/* Returns whether p has a finding that another finding covers. */
static bool has_covered_finding(const struct weft__finder *f, uint32_t p)
{
	for (size_t i = 0; i < f->covers.count; i++) {
		const struct weft_finding *finding = &f->findings.items[f->covers.items[i].covered];
		if (finding->kind == WEFT_FINDING_SLOW && finding->promise == p)
			return true;
	}
	return false;
}

bool weft__slow_has_finding(const struct weft__finder *f, uint32_t p)
{
	for (size_t i = 0; i < f->findings.count; i++)
		if (f->findings.items[i].kind == WEFT_FINDING_SLOW && f->findings.items[i].promise == p)
			return true;
	return false;
}

/* Returns the wait that waits for an inferred wait, or for the wait that it continues; WEFT_NONE if there is none. */
static uint32_t find_caller(const struct weft__finder *f, uint32_t p)
{
	enum { MOST = 64 }; /* bounds the work */
	const struct weft_model *m = f->model;
	for (int i = 0; i < MOST && p != WEFT_NONE; i++) {
		for (uint32_t in = f->link_index.in_begin[p]; in < f->link_index.in_begin[p + 1]; in++) {
			const struct weft_link *link = &m->links[f->link_index.in[in]];
			if ((link->kind == WEFT_LINK_AWAIT || link->kind == WEFT_LINK_READ) && link->from != p &&
			    m->promises[link->from].kind == WEFT_KIND_WAIT)
				return link->from;
		}
		const uint32_t by = m->promises[p].created_by;
		p = by != WEFT_NONE && m->promises[by].end == WEFT_END_BECAME && m->promises[by].became == p ? by : WEFT_NONE;
	}
	return WEFT_NONE;
}

/* Adds the call sites of the code that waits, if the trace has them only as waits for each other that the reader infers. */
static void add_callers(struct weft__finder *f, uint32_t p)
{
	enum { MOST = 4 };
	if (!(f->model->promises[p].flags & WEFT_PROMISE_INFERRED))
		return;
	const char *places = "";
	uint32_t outermost = WEFT_NONE;
	uint32_t caller = find_caller(f, p);
	for (int count = 0; caller != WEFT_NONE && count < MOST; count++, caller = find_caller(f, caller)) {
		outermost = caller;
		places = weft__finding_text(f, "%s%scalled at %s", places, *places ? ", " : "", weft__format_site(f, caller));
	}
	if (outermost != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, f->model->promises[outermost].start_ns, outermost,
		    "%s waits for this promise: the wait%s was %s", weft__format_promise(f, outermost),
		    weft__format_site_suffix(f, p), places);
}

/* Returns the earliest time at which the promise may have started. */
static int64_t find_earliest_start(const struct weft_model *m, uint32_t p)
{
	const struct weft_earlier_start *starts = m->earlier_starts;
	const size_t i = WEFT_FIND_FIRST(s, 0, m->earlier_start_count, starts[s].promise >= p);
	return i < m->earlier_start_count && starts[i].promise == p ? starts[i].time_ns : m->promises[p].start_ns;
}

bool weft__slow_report(struct weft__finder *f, const struct weft__slowest *s, const struct weft__slow_reported *reported)
{
	uint32_t p = s->promise;
	struct weft_path *path = NULL;
	if (weft_path_create_with_index(&path, &f->link_index, p, NULL) == WEFT_ENOMEM)
		f->no_memory = true;
	const bool is_own = path && !is_caused_by_another(f, path, p, s->took_ns, reported);
	const size_t delay = is_own && is_held(path, s->took_ns) ? find_delay(f, path, p, s->took_ns) : SIZE_MAX;
	struct weft_finding *finding =
	    is_own ? weft__finding_begin(f, WEFT_FINDING_SLOW, p, f->model->promises[p].start_ns, f->link_index.ended_ns[p])
		   : NULL;
	if (finding) {
		const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p);
		finding->weight = (uint64_t)s->took_ns;
		const int64_t earliest_ns = find_earliest_start(f->model, p), most_ns = f->link_index.ended_ns[p] - earliest_ns;
		finding->title = weft__finding_text(f, "%s took %s%s (median of %" PRIu32 ": %s)", name,
		    most_ns > s->took_ns ? "at least " : "", weft__format_duration(f, s->took_ns), s->peers,
		    weft__format_duration(f, s->median_ns));
		finding->next = weft__finding_text(f, "find out why this promise took longer than others of its type%s", at);
		weft__evidence_add_creation(f, p);
		add_callers(f, p);
		if (most_ns > s->took_ns)
			weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, earliest_ns, WEFT_NONE,
			    "the promise may have taken up to %s: several waits were open at its line, and the trace does not "
			    "record which of them ended",
			    weft__format_duration(f, most_ns));
		const bool is_by_peer =
		    is_read_of_connection(f->model, p) && !has_known_wait(path, p, f->model->promises[p].created_by, s->took_ns);
		weft__slow_report_times(f, p, path);
		if (s->is_among_all)
			weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
			    "the median is that of all requests that the process served, because too few fast requests have this "
			    "name");
		if (s->count > 1)
			weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
			    "%" PRIu32 " more promises of its type %s slow", s->count - 1, s->count == 2 ? "was" : "were");
		if (is_by_peer)
			report_peer(f, finding, p);
	}
	const bool is_told = finding && !cover_by_delay(f, delay);
	weft_path_destroy(path);
	return is_told;
}

/* Returns the site group of a type group and a site, or a new one; NULL on lack of memory.  Most types have one site, so
 * `recent` caches for each type the index + 1 of the site group that was found last. */
static struct site_group *find_site_group(
    struct times *times, struct weft_idmap *map, uint32_t *recent, uint32_t group, uint32_t site)
{
	struct site_group *site_group = *recent ? &times->site_groups.items[*recent - 1] : NULL;
	if (site_group && site_group->site == site && site_group->group == group)
		return site_group;
	int64_t key = (int64_t)((uint64_t)group << 32 | site);
	uint32_t number = weft_idmap_get(map, key);
	if (number == WEFT_IDMAP_NONE) {
		site_group = weft_vec_push(&times->site_groups);
		number = (uint32_t)times->site_groups.count - 1;
		if (!site_group || !weft_idmap_set(map, key, number))
			return NULL;
		*site_group = (struct site_group){.group = group, .site = site};
	}
	*recent = number + 1;
	return &times->site_groups.items[number];
}

/* Finds the site group of each promise, and the slowest promise of each group. */
static void gather_site_groups(struct weft__finder *f, struct times *times, const uint32_t *group, const bool *is_suspect)
{
	const struct weft_model *m = f->model;
	struct weft_idmap map = {0};
	uint32_t *recent = weft__finding_alloc(f, f->types.items.count, sizeof *recent);
	for (uint32_t p = 1; recent && p < m->promise_count && weft__finding_may_continue(f, p, m->promise_count); p++) {
		uint32_t type = f->types.of[p];
		if (!is_suspect[type] || !weft__slow_has_duration(f, p))
			continue;
		struct site_group *site_group = find_site_group(times, &map, &recent[type], group[type], m->promises[p].site);
		if (!site_group) {
			f->no_memory = true;
			break;
		}
		int64_t ns = f->link_index.ended_ns[p] - m->promises[p].start_ns;
		if (ns >= site_group->longest_ns && !is_reported_by_requests(f, p, ns)) {
			site_group->longest_ns = ns;
			site_group->longest = p;
		}
		site_group->count++;
		times->site_group_of[p] = (uint32_t)(site_group - times->site_groups.items) + 1;
	}
	free(recent);
	weft_idmap_finish(&map);
}

static bool may_be_slow(const struct weft__finder *f, const struct site_group *site_group)
{
	return site_group->count >= MIN_PEERS && site_group->longest_ns >= TIMES_STALL * f->options.stall_ns;
}

/* Fills times->ns with the durations of each site group; returns false if there are no durations, or on lack of memory, which
 * is noted in the finder. */
static bool gather_times(struct weft__finder *f, struct times *times)
{
	const struct weft_model *m = f->model;
	size_t all = 0;
	for (size_t i = 0; i < times->site_groups.count; i++) {
		times->site_groups.items[i].end = all;
		all += may_be_slow(f, &times->site_groups.items[i]) ? times->site_groups.items[i].count : 0;
	}
	if (all == 0 || !(times->ns = weft__finding_alloc(f, all, sizeof *times->ns)))
		return false;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_may_continue(f, p, m->promise_count); p++) {
		struct site_group *site_group =
		    times->site_group_of[p] ? &times->site_groups.items[times->site_group_of[p] - 1] : NULL;
		if (site_group && may_be_slow(f, site_group))
			times->ns[site_group->end++] = f->link_index.ended_ns[p] - m->promises[p].start_ns;
	}
	return true;
}

/* Returns the shortest duration that is slow in the site group, or WEFT_NEVER if no promise is slow; also sets *median_ns. */
static int64_t find_slow_threshold(
    const struct weft__finder *f, const struct times *times, const struct site_group *site_group, int64_t *median_ns)
{
	int64_t *ns = &times->ns[site_group->end - site_group->count];
	*median_ns = weft_select_kth(ns, site_group->count, site_group->count / 2);
	if (*median_ns > INT64_MAX / TIMES_MEDIAN)
		return WEFT_NEVER;
	int64_t least_ns = weft_max_ns(*median_ns * TIMES_MEDIAN, TIMES_STALL * f->options.stall_ns);
	size_t slow = 0;
	for (size_t i = 0; i < site_group->count; i++)
		slow += ns[i] >= least_ns;
	return site_group->longest_ns >= least_ns && slow <= site_group->count / OUTLIER_DIVISOR ? least_ns : WEFT_NEVER;
}

/* Returns whether p is part of a spin.  The trace records many equal calls of a spin as one, so a promise that was created in
 * each of these calls seems to last as long as all of them together. */
static bool is_spinning(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	const uint32_t by = m->promises[p].created_by;
	for (size_t i = 0; by != WEFT_NONE && i < m->spin_count; i++)
		if (m->spins[i].time_ns > m->promises[p].start_ns && m->spins[i].time_ns < f->link_index.ended_ns[p] &&
		    (f->link_index.final[by] == m->spins[i].promise || m->promises[m->spins[i].promise].created_by == by))
			return true;
	return false;
}

/* Keeps the marks of slow promises only for groups with a finding. */
static void keep_reported(struct weft__finder *f, const struct times *times, const struct weft__slowest *found,
    const struct weft__slow_reported *reported)
{
	for (uint32_t p = 1; p < f->model->promise_count; p++) {
		const struct site_group *of =
		    times->site_group_of[p] ? &times->site_groups.items[times->site_group_of[p] - 1] : NULL;
		if (of && of->least_ns != WEFT_NEVER &&
		    f->link_index.ended_ns[p] - f->model->promises[p].start_ns >= of->least_ns)
			reported->is_slow[p] = found[of->found].is_reported;
	}
}

/* Reports slow promises that were left out because of other promises that are not reported either, the fastest first: a promise
 * for which others waited ended before them. */
static void report_left_out(struct weft__finder *f, const struct times *times, struct weft__slowest *found, size_t count,
    size_t most, const struct weft__slow_reported *reported)
{
	for (size_t i = 0; i < count; i++)
		times->site_groups.items[times->site_group_of[found[i].promise] - 1].found = (uint32_t)i; /* they were sorted */
	keep_reported(f, times, found, reported);
	for (size_t i = count < MAX_CANDIDATES ? count : MAX_CANDIDATES; i-- > 0 && most > 0;) {
		if (found[i].is_reported || is_spinning(f, found[i].promise) || has_covered_finding(f, found[i].promise) ||
		    has_waited_for_another(f, found[i].promise, found[i].took_ns, reported))
			continue;
		if (!(found[i].is_reported = weft__slow_report(f, &found[i], reported)))
			continue;
		most--;
		keep_reported(f, times, found, reported);
	}
}

static void report_all(
    struct weft__finder *f, struct times *times, struct weft__slowest *found, const struct weft__slow_reported *reported)
{
	const struct weft_model *m = f->model;
	size_t found_count = 0;
	for (uint32_t p = 1; m->request_count > 0 && p < m->promise_count; p++) {
		const struct weft_request *request = find_request(f, p);
		reported->is_slow[p] = request && reported->is_late[request - m->requests];
	}
	for (size_t i = 0; i < times->site_groups.count; i++) {
		struct site_group *site_group = &times->site_groups.items[i];
		int64_t median_ns = 0;
		site_group->least_ns =
		    may_be_slow(f, site_group) ? find_slow_threshold(f, times, site_group, &median_ns) : WEFT_NEVER;
		if (site_group->least_ns != WEFT_NEVER)
			found[found_count++] = (struct weft__slowest){
			    site_group->longest, 0, (uint32_t)site_group->count, site_group->longest_ns, median_ns, false, false};
		site_group->found = (uint32_t)found_count - 1;
	}
	for (uint32_t p = 1; found_count > 0 && p < m->promise_count; p++) {
		const struct site_group *site_group =
		    times->site_group_of[p] ? &times->site_groups.items[times->site_group_of[p] - 1] : NULL;
		const int64_t ns = f->link_index.ended_ns[p] - m->promises[p].start_ns;
		if (site_group && site_group->least_ns != WEFT_NEVER && ns >= site_group->least_ns &&
		    !is_reported_by_requests(f, p, ns)) {
			reported->is_slow[p] = true;
			found[site_group->found].count++;
		}
	}
	weft_sort(found, found_count, sizeof *found, compare_slowest);
	size_t reported_count = 0;
	for (size_t i = 0, looked = 0; i < found_count && reported_count < MAX_REPORTED && looked < MAX_CANDIDATES; i++) {
		if (has_waited_for_another(f, found[i].promise, found[i].took_ns, reported) || is_spinning(f, found[i].promise))
			continue;
		looked++;
		found[i].is_reported = weft__slow_report(f, &found[i], reported);
		reported_count += found[i].is_reported;
	}
	if (reported_count < found_count)
		report_left_out(f, times, found, found_count, MAX_REPORTED - reported_count, reported);
}

/* ---- Name servers and peers ---- */

static int compare_ns(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return WEFT_ORDER(*x, *y);
}

typedef WEFT_VEC(uint32_t) promises_vec;

/* Lists the promises of a kind that have a usual duration; returns false on lack of memory. */
static bool list_promises_of_kind(const struct weft__finder *f, enum weft_kind kind, promises_vec *list)
{
	for (uint32_t p = 1; p < f->model->promise_count && weft__promise_types_have(&f->types, kind); p++) {
		if (f->types.kinds[p] != kind || !type_has_usual_time(&f->types.items.items[f->types.of[p]]) ||
		    !weft__slow_has_duration(f, p))
			continue;
		uint32_t *added = weft_vec_push(list);
		if (!added)
			return false;
		*added = p;
	}
	return true;
}

/* Returns the durations of the promises, sorted; the caller frees the array.  Returns NULL if there are none, or on lack of
 * memory, which is noted in the finder. */
static int64_t *list_durations(struct weft__finder *f, const promises_vec *list)
{
	int64_t *times = list->count > 0 ? weft__finding_alloc(f, list->count, sizeof *times) : NULL;
	for (size_t i = 0; times && i < list->count; i++)
		times[i] = f->link_index.ended_ns[list->items[i]] - f->model->promises[list->items[i]].start_ns;
	if (times)
		weft_sort(times, list->count, sizeof *times, compare_ns);
	return times;
}

static bool report_dependency(
    struct weft__finder *f, uint32_t p, const int64_t *times, size_t count, const struct weft__slow_reported *reported)
{
	const int64_t took_ns = f->link_index.ended_ns[p] - f->model->promises[p].start_ns;
	const bool is_name = f->model->promises[p].kind == WEFT_KIND_GETADDRINFO;
	struct weft_path *path = NULL;
	if (weft_path_create_with_index(&path, &f->link_index, p, NULL) == WEFT_ENOMEM)
		f->no_memory = true;
	const size_t delay = path && is_held(path, took_ns) ? find_delay(f, path, p, took_ns) : SIZE_MAX;
	struct weft_finding *finding =
	    path && !is_caused_by_another(f, path, p, took_ns, reported)
		? weft__finding_begin(f, WEFT_FINDING_SLOW, p, f->model->promises[p].start_ns, f->link_index.ended_ns[p])
		: NULL;
	if (finding) {
		const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p);
		const char *usual = count > 1 ? weft__finding_text(f, " (median of %zu: %s)", count,
						    weft__format_duration(f, times[(count - 1) / 2]))
					      : "";
		finding->weight = (uint64_t)took_ns;
		finding->title = weft__finding_text(f, "%s took %s%s: %s answered late%s", name,
		    weft__format_duration(f, took_ns), usual, is_name ? "the name server" : "the peer", at);
		finding->next =
		    is_name ? "check the configured name servers and their order" : "set a timeout, or try a second address";
		weft__evidence_add_creation(f, p);
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->link_index.ended_ns[p], p, "%s ends, %s later", name,
		    weft__format_duration(f, took_ns));
	}
	const bool is_told = finding && !cover_by_delay(f, delay);
	weft_path_destroy(path);
	return is_told;
}

/* Reports slow name lookups and connects.  A program makes few name lookups and connects, so one is reported if it is the only
 * one, or if it took TIMES_USUAL times the median. */
static void find_dependencies(struct weft__finder *f, const struct weft__slow_reported *reported)
{
	static const enum weft_kind kinds[] = {WEFT_KIND_GETADDRINFO, WEFT_KIND_CONNECT};
	const int64_t least_ns = TIMES_STALL * f->options.stall_ns;
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		promises_vec list = {0};
		f->no_memory |= !list_promises_of_kind(f, kinds[k], &list);
		int64_t *times = list_durations(f, &list);
		const size_t count = times ? list.count : 0;
		const int64_t late_ns = count > 1 ? weft_max_ns(least_ns, TIMES_USUAL * times[(count - 1) / 2]) : least_ns;
		for (size_t i = 0, reported_count = 0; i < count && times[count - 1] >= late_ns && reported_count < MAX_REPORTED;
		     i++) {
			const uint32_t p = list.items[i];
			if (!reported->is_slow[p] && !has_covered_finding(f, p) &&
			    f->link_index.ended_ns[p] - f->model->promises[p].start_ns >= late_ns)
				reported_count += report_dependency(f, p, times, count, reported);
		}
		free(times);
		weft_vec_free(&list);
	}
}

/* Returns the connection that p reads, or on which p is asked or served; p itself if there is no such connection. */
static uint32_t find_connection(const struct weft__finder *f, uint32_t p)
{
	const uint32_t asked = weft__asked_connection(f, p);
	const bool is_part = is_read_of_connection(f->model, p) || weft__is_served(f, p);
	return asked != WEFT_NONE ? asked : is_part ? f->model->promises[p].created_by : p;
}

/* Returns the stream of the OS thread on which the promise ran last before a time. */
static uint16_t find_stream(const struct weft_model *m, uint32_t p, int64_t time_ns)
{
	const uint32_t run = weft_run_before(m, p, time_ns);
	return run == WEFT_NONE || !m->run_streams ? m->promises[p].stream : m->run_streams[run];
}

/* Returns the number of the finding about the longest stall, if stalls took at least half of the time of the finding `slow`.
 * Only stalls of the event loop of its promise, or of the loop at the other end of its connection, count.  SIZE_MAX: there is
 * none. */
static size_t find_stall(const struct weft__finder *f, const struct weft_finding *slow)
{
	const struct weft_model *m = f->model;
	const uint32_t p = slow->promise, end = weft_other_end_of(m, find_connection(f, p));
	int64_t stalled_ns = 0, longest_ns = 0;
	size_t longest = SIZE_MAX;
	for (size_t i = 0; i < f->findings.count; i++) {
		const struct weft_finding *stall = &f->findings.items[i];
		const int64_t ns = weft_min_ns(stall->end_ns, slow->end_ns) - weft_max_ns(stall->start_ns, slow->start_ns);
		if (stall->kind != WEFT_FINDING_STALL || stall->promise == WEFT_SYSTEM || ns <= 0 ||
		    weft__finding_is_covered(f, i))
			continue;
		const uint16_t stream = find_stream(m, stall->promise, stall->end_ns);
		if (stream != m->promises[p].stream && (end == WEFT_NONE || stream != m->promises[end].stream))
			continue;
		stalled_ns += ns;
		if (ns > longest_ns) {
			longest_ns = ns;
			longest = i;
		}
	}
	return stalled_ns >= (slow->end_ns - slow->start_ns) / 2 ? longest : SIZE_MAX;
}

/* Marks slow promises as covered if they waited for something while the loop that should have delivered it was blocked. */
static void cover_by_stalls(struct weft__finder *f)
{
	for (size_t i = 0; i < f->findings.count; i++) {
		const bool is_slow = f->findings.items[i].kind == WEFT_FINDING_SLOW && !weft__finding_is_covered(f, i);
		const size_t stall = is_slow ? find_stall(f, &f->findings.items[i]) : SIZE_MAX;
		if (stall != SIZE_MAX)
			weft__finding_cover(f, i, stall);
	}
}

void weft__find_slow(struct weft__finder *f)
{
	const size_t types = f->types.items.count;
	const uint32_t *group = weft__finding_patterns(f);
	bool *is_suspect = weft__finding_alloc(f, types, sizeof *is_suspect), any = false;
	for (size_t s = 0; group && is_suspect && s < types; s++)
		any |= is_suspect[s] = f->pattern_longest_ns[group[s]] >= TIMES_STALL * f->options.stall_ns &&
				       type_has_usual_time(&f->types.items.items[s]);
	struct times times = {
	    .site_group_of = any ? weft__finding_alloc(f, f->model->promise_count, sizeof *times.site_group_of) : NULL};
	const struct weft__slow_reported reported = {
	    weft__finding_alloc(f, f->model->promise_count, 1), weft__finding_alloc(f, f->model->request_count, 1)};
	const bool has_memory = reported.is_slow && reported.is_late;
	if (has_memory)
		weft__slow_peer_find(f, reported.is_late);
	if (has_memory && times.site_group_of)
		gather_site_groups(f, &times, group, is_suspect);
	if (has_memory && !f->no_memory && gather_times(f, &times)) {
		struct weft__slowest *found = weft__finding_alloc(f, times.site_groups.count, sizeof *found);
		if (found)
			report_all(f, &times, found, &reported);
		free(found);
	}
	if (has_memory)
		find_dependencies(f, &reported);
	if (has_memory && group)
		weft__slow_route_find(f, group, &reported);
	cover_by_stalls(f);
	weft__delayed_ack_find(f);
	free(reported.is_slow);
	free(reported.is_late);
	weft_vec_free(&times.site_groups);
	free(times.site_group_of);
	free(times.ns);
	free(is_suspect);
}
