/* slow.c: reports where the time of an ended promise went, compared with the promise of the same type that took the median
 * time.  SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"
#include "analysis/index/names.h"
#include "analysis/index/path_by_process.h"
#include "analysis/index/requests.h"
#include "base/duration.h"
#include "base/sort.h"

#define OFF_CPU_DIVISOR 8 /* time off CPU is reported if it is at least one OFF_CPU_DIVISOR-th of a run */
#define MIN_PEERS 5u      /* fewest promises of a type for a meaningful median */

/* Steps of a critical path that are reported as one: they are of one kind, wait for the same lock or connection if any, and
 * their promises have one type. */
struct step_group {
	enum weft_step_kind kind;
	uint32_t type;          /* group of the promise's type, or of the lock's or the connection's */
	bool is_lock, is_late;  /* waits for a lock; waits for a promise that is late because another ran */
	bool is_own;            /* steps of the reported promise itself */
	bool is_named;          /* waits for the answer to a request, whose promise has the steps */
	int64_t sum_ns, off_ns; /* total duration; part of a run that was off CPU */
	size_t count;
	struct weft_path_step longest;
};

typedef WEFT_VEC(struct step_group) step_group_vec;

struct slow {
	struct weft__finder *f;
	const uint32_t *group; /* by type: the first type with the same label pattern */
	uint32_t promise;      /* the reported promise */
};

static int64_t get_length(const struct weft_path_step *s)
{
	return s->end_ns - s->start_ns;
}

static bool is_asleep(const struct weft_path_step *s)
{
	return s->asleep_ns > get_length(s) / 2;
}

static int compare_step_groups(const void *a, const void *b)
{
	const struct step_group *x = a, *y = b;
	return WEFT_ORDER(y->sum_ns, x->sum_ns) ?: WEFT_ORDER(x->longest.start_ns, y->longest.start_ns);
}

/* Returns whether the step waits for the peer of a connection. */
static bool is_request(const struct weft_path_step *s)
{
	return s->connection != WEFT_NONE && s->delayed_by == WEFT_NONE;
}

/* Returns whether the step waits for the answer to a request with a promise of its own, which is not the reported one. */
static bool is_named_request(const struct slow *slow, const struct weft_path_step *s)
{
	return is_request(s) && s->promise != slow->promise && weft__asked_connection(slow->f, s->promise) == s->connection;
}

static bool is_same_step_group(const struct step_group *a, const struct step_group *b)
{
	return a->type == b->type && a->is_lock == b->is_lock && is_request(&a->longest) == is_request(&b->longest) &&
	       (a->is_lock || (a->kind == b->kind && a->is_late == b->is_late));
}

/* Makes a group that contains one step of a critical path.  All waits for one lock are one group, whatever the holders do. */
static struct step_group make_step_group(const struct slow *slow, const struct weft_path_step *s)
{
	return (struct step_group){.kind = s->kind,
	    .type = slow->group[slow->f->types.of[s->lock != WEFT_NONE                          ? s->lock
						  : is_request(s) && !is_named_request(slow, s) ? s->connection
												: s->promise]],
	    .is_named = is_named_request(slow, s),
	    .is_lock = s->lock != WEFT_NONE,
	    .is_late = s->kind == WEFT_STEP_WAITING && s->delayed_by != WEFT_NONE,
	    .is_own = s->promise == slow->promise || s->promise == slow->f->link_index.final[slow->promise],
	    .sum_ns = get_length(s),
	    .off_ns =
		s->kind == WEFT_STEP_RUNNING ? weft_kernel_promise_off_ns(slow->f->model, s->promise, s->start_ns, s->end_ns) : 0,
	    .count = 1,
	    .longest = *s};
}

/* Combines the steps of a path into groups, sorted by duration, the longest first.  A long path has many steps but few groups.
 * Consecutive steps with the same lock and holder count as one step. */
static void gather_step_groups(struct slow *slow, step_group_vec *step_groups, const struct weft_path *path)
{
	enum { MAX_STEP_GROUPS = 500 };
	for (size_t i = 0; i < path->count; i++) {
		struct weft_path_step step = path->steps[i];
		for (; step.lock != WEFT_NONE && i + 1 < path->count && path->steps[i + 1].lock == step.lock &&
		       path->steps[i + 1].holder == step.holder;
		     i++)
			step.end_ns = path->steps[i + 1].end_ns;
		struct step_group new = make_step_group(slow, &step);
		size_t at = 0;
		while (at < step_groups->count && !is_same_step_group(&step_groups->items[at], &new))
			at++;
		if (at < step_groups->count) {
			struct step_group *p = &step_groups->items[at];
			p->sum_ns += new.sum_ns;
			p->off_ns += new.off_ns;
			p->count++;
			if (new.sum_ns > get_length(&p->longest))
				p->longest = new.longest;
			continue;
		}
		struct step_group *added = step_groups->count < MAX_STEP_GROUPS ? weft_vec_push(step_groups) : NULL;
		if (added)
			*added = new;
		else if (step_groups->count < MAX_STEP_GROUPS)
			slow->f->no_memory = true;
	}
	weft_sort(step_groups->items, step_groups->count, sizeof *step_groups->items, compare_step_groups);
}

/* Returns whether the path does not say what the promise waited for. */
static bool is_unexplained_wait(const struct weft__finder *f, const struct step_group *step_group)
{
	const struct weft_path_step *s = &step_group->longest;
	const bool is_outside = weft_kind_has(f->model->promises[s->promise].kind, WEFT_TRAIT_OUTSIDE);
	return s->kind == WEFT_STEP_WAITING && !step_group->is_lock && !is_request(s) &&
	       (s->promise == WEFT_SYSTEM || (step_group->is_own && !is_outside && !step_group->is_late));
}

static const struct weft_request *find_request_in(const struct weft__finder *f, const struct step_group *step_group)
{
	const struct weft_path_step *s = &step_group->longest;
	return is_unexplained_wait(f, step_group) ? weft_request_during(f->model, s->promise, s->start_ns, s->end_ns) : NULL;
}

/* Formats a wait whose target is unknown: names a connection on which the promise or its thread had an open request meanwhile
 * and, with `with_details`, the answer to that request. */
static const char *format_unexplained_wait(struct weft__finder *f, const struct step_group *step_group, bool with_details)
{
	const uint32_t promise = step_group->longest.promise;
	const struct weft_request *request = find_request_in(f, step_group);
	if (!request)
		return "waiting for something that the trace does not record";
	char id[WEFT_NAME_BYTES];
	const char *name = with_details
			       ? weft__format_promise(f, request->connection)
			       : weft__finding_text(f, "%s", weft_name_promise_as(f->model, request->connection, WEFT_NONE, id));
	const char *came = !with_details ? ""
			   : request->answered_ns == WEFT_NEVER
			       ? ", which never answered"
			       : weft__finding_text(f, ", which answered %s later",
				     weft__format_duration(f, request->answered_ns - request->asked_ns));
	return weft__finding_text(f, request->by == promise ? "waiting for %s%s" : "waiting, maybe for %s%s", name, came);
}

/* Returns " of connection 3 "to 127.0.0.1:80"" for a read without its own label, else "". */
static const char *format_read_connection(struct weft__finder *f, uint32_t promise)
{
	const struct weft_promise *p = &f->model->promises[promise];
	const bool is_read = p->kind == WEFT_KIND_STREAM_READ && weft_first_label(f->model, promise) == WEFT_NONE;
	return is_read && p->created_by != WEFT_NONE &&
		       weft_kind_has(f->model->promises[p->created_by].kind, WEFT_TRAIT_CONNECTION)
		   ? weft__finding_text(f, " of %s", weft__format_promise(f, p->created_by))
		   : "";
}

/* Returns whether the promise is in another process than the reported promise. */
static bool is_in_other_process(const struct weft__finder *f, uint32_t promise)
{
	return promise != WEFT_SYSTEM &&
	       weft_part_of(f->model, promise) != weft_part_of(f->model, f->findings.items[f->findings.count - 1].promise);
}

/* Formats a promise; if it is in another process than the reported promise, adds that process and, with `with_site`, the source
 * location. */
static const char *format_name(struct weft__finder *f, uint32_t promise, bool with_site)
{
	const char *name = weft__format_promise(f, promise);
	if (!is_in_other_process(f, promise))
		return name;
	return with_site ? weft__format_promise_in_process(f, promise)
			 : weft__finding_text(f, "%s in %s", name, f->model->trace->parts[weft_part_of(f->model, promise)].name);
}

/* Returns ", whose peer is node@b,", or "" if the trace of the peer is not open. */
static const char *format_peer(struct weft__finder *f, uint32_t connection)
{
	const char *peer = weft__format_peer_process(f, connection);
	return *peer ? weft__finding_text(f, ", whose peer is%s", peer + 1) : "";
}

/* Returns the connection that created the write or waits for it, or WEFT_NONE. */
static uint32_t find_write_connection(const struct weft__finder *f, uint32_t write)
{
	const struct weft_model *m = f->model;
	const uint32_t by = m->promises[write].created_by;
	if (by != WEFT_NONE && weft_kind_has(m->promises[by].kind, WEFT_TRAIT_CONNECTION))
		return by;
	for (uint32_t i = f->link_index.in_begin[write]; i < f->link_index.in_begin[write + 1]; i++)
		if (weft_kind_has(m->promises[m->links[f->link_index.in[i]].from].kind, WEFT_TRAIT_CONNECTION))
			return m->links[f->link_index.in[i]].from;
	return WEFT_NONE;
}

/* Returns the suffix of the text for a step that waits for an external event.  A write takes long only if the peer does not
 * read. */
static const char *format_outside(struct weft__finder *f, const struct weft_path_step *s)
{
	const bool is_write = f->model->promises[s->promise].kind == WEFT_KIND_STREAM_WRITE;
	if (!is_write || get_length(s) < f->options.stall_ns)
		return ", an external event";
	const uint32_t connection = find_write_connection(f, s->promise);
	return connection == WEFT_NONE ? ", while the other end did not read"
				       : weft__finding_text(f, ", while %s did not read", weft__format_other_end(f, connection));
}

static bool is_thread(const struct weft__finder *f, uint32_t promise)
{
	return weft_kind_has(f->model->promises[promise].kind, WEFT_TRAIT_THREAD);
}

/* Formats what the promise did in the steps: "waiting for timer 9 "db"". with_details adds the source location, the peer and
 * other facts: "waiting for timer 9 "db" (bank.c:12 in ask), an external event". */
static const char *format_step_group(struct weft__finder *f, const struct step_group *step_group, bool with_details)
{
	const struct weft_path_step *s = &step_group->longest;
	const bool is_there = is_in_other_process(f, s->promise);
	const char *subject = format_name(f, s->promise, with_details);
	const char *other = step_group->is_own ? "" : weft__finding_text(f, "waiting for %s, which was ", subject);
	bool outside = weft_kind_has(f->model->promises[s->promise].kind, WEFT_TRAIT_OUTSIDE);
	if (step_group->is_lock && s->holder != WEFT_NONE)
		return weft__finding_text(
		    f, "waiting for %s, which %s held", weft__format_promise(f, s->lock), weft__format_promise(f, s->holder));
	if (step_group->is_lock)
		return weft__finding_text(f, "waiting for %s", weft__format_promise(f, s->lock));
	switch (s->kind) {
	case WEFT_STEP_RUNNING:
		if (step_group->off_ns < step_group->sum_ns / OFF_CPU_DIVISOR || step_group->off_ns == 0)
			return weft__finding_text(f, "%srunning", other);
		return weft__finding_text(f, "%srunning (off CPU for %s)", other, weft__format_duration(f, step_group->off_ns));
	case WEFT_STEP_READY:
		return is_asleep(s) ? weft__finding_text(f, "%sready while its thread slept", other)
		       : s->delayed_by == WEFT_NONE
			   ? weft__finding_text(f, "%sready but not run", other)
			   : weft__finding_text(f, "%sready while %s ran", other, weft__format_promise(f, s->delayed_by));
	default: break;
	}
	if (step_group->is_named)
		return weft__finding_text(f, "waiting for %s to %s%s%s", s->is_asked ? "the answer" : "the rest of the answer",
		    subject, with_details ? " from " : "", with_details ? weft__format_promise(f, s->connection) : "");
	if (is_request(s))
		return weft__finding_text(f, "waiting for %s%s to %s", weft__format_promise(f, s->connection),
		    with_details ? format_peer(f, s->connection) : "", s->is_asked ? "answer" : "send more");
	if (is_unexplained_wait(f, step_group))
		return format_unexplained_wait(f, step_group, with_details);
	if (step_group->is_late)
		return weft__finding_text(f, "waiting for %s, which may have been due while %s%s ran", subject,
		    weft__format_promise(f, s->delayed_by), s->is_behind_more ? " and others" : "");
	if (is_thread(f, s->promise) && !step_group->is_own)
		return weft__finding_text(f, "waiting for %s, which slept", subject);
	return weft__finding_text(f, "waiting for %s%s%s%s", subject, format_read_connection(f, s->promise),
	    with_details && !is_there ? weft__format_site_suffix(f, s->promise) : "",
	    with_details && outside ? format_outside(f, s) : "");
}

static int get_percent(int64_t part_ns, int64_t all_ns)
{
	return (int)((double)part_ns * 100 / (double)all_ns + 0.5);
}

static void report_step_group(
    struct weft__finder *f, const struct step_group *step_group, int64_t all_ns, const struct step_group *usual, bool has_usual)
{
	const char *times = step_group->count > 1 ? weft__finding_text(f, ", %zu times, longest %s", step_group->count,
							weft__format_duration(f, get_length(&step_group->longest)))
						  : "";
	const char *other = "";
	if (has_usual)
		other =
		    usual ? weft__finding_text(f, "; usually %s", weft__format_duration(f, usual->sum_ns)) : "; usually nothing";
	weft__finding_evidence(f, WEFT_EVIDENCE_TIME, step_group->longest.start_ns, weft_step_cause(&step_group->longest),
	    "%s, %d%%: %s%s%s", weft__format_duration(f, step_group->sum_ns), get_percent(step_group->sum_ns, all_ns),
	    format_step_group(f, step_group, true), times, other);
	const struct weft_path_step *step = &step_group->longest;
	weft__evidence_find_hot_function(f, WEFT_EVIDENCE_TIME,
	    step->kind == WEFT_STEP_RUNNING ? step->promise : step->delayed_by, step->start_ns, step->end_ns);
}

/* An ended promise that has the same type group as the reported promise and a known start. */
struct peer {
	int64_t took_ns;
	uint32_t promise;
};

static int compare_peers(const void *a, const void *b)
{
	const struct peer *x = a, *y = b;
	return WEFT_ORDER(x->took_ns, y->took_ns) ?: WEFT_ORDER(x->promise, y->promise);
}

static bool has_named_type(const struct weft__finder *f, uint32_t promise)
{
	return f->types.items.items[f->types.of[promise]].named;
}

/* Lists the promises that are comparable with a promise, by duration; the caller frees *out.  Returns their number; 0 if there
 * are too few to compare with.  A promise without a name or a place, such as a read, is comparable with those whose parents have
 * the type of its own parent, such as other reads of accepted connections. */
static size_t find_peers(const struct slow *slow, uint32_t promise, struct peer **out)
{
	struct weft__finder *f = slow->f;
	const struct weft_model *m = f->model;
	const bool is_named = has_named_type(f, promise);
	const uint32_t own = slow->group[f->types.of[promise]], parent = m->promises[promise].parent;
	const uint32_t parents = slow->group[f->types.of[parent]];
	size_t count = 0;
	for (size_t s = 0; (is_named || has_named_type(f, parent)) && s < f->types.items.count; s++)
		count += slow->group[s] == own ? f->types.items.items[s].ended : 0;
	if (count < MIN_PEERS || !(*out = weft__finding_alloc(f, count, sizeof **out)))
		return 0;
	count = 0;
	for (uint32_t p = 1; p < m->promise_count; p++)
		if (slow->group[f->types.of[p]] == own && f->link_index.ended_ns[p] != WEFT_NEVER &&
		    !(m->promises[p].flags & WEFT_PROMISE_START_UNKNOWN) &&
		    (is_named || slow->group[f->types.of[m->promises[p].parent]] == parents))
			(*out)[count++] = (struct peer){f->link_index.ended_ns[p] - m->promises[p].start_ns, p};
	if (count < MIN_PEERS)
		return 0;
	weft_sort(*out, count, sizeof **out, compare_peers);
	return count;
}

/* Adds evidence that compares the promise with others of its type; returns the promise that took the median time, or WEFT_NONE
 * if there are too few others. */
static uint32_t report_peers(const struct slow *slow, uint32_t promise, int64_t all_ns)
{
	struct weft__finder *f = slow->f;
	struct peer *peers = NULL;
	size_t count = find_peers(slow, promise, &peers), faster = 0;
	uint32_t median = WEFT_NONE;
	if (count > 0) {
		const struct peer *middle = &peers[(count - 1) / 2];
		while (faster < count && peers[faster].took_ns < all_ns)
			faster++;
		median = middle->promise;
		const char *rank = faster == 0           ? "none took less"
				   : faster + 1 == count ? "none took longer"
							 : weft__finding_text(f, "%zu took less", faster);
		double ratio = middle->took_ns > 0 ? (double)all_ns / (double)middle->took_ns : 1;
		long long tenths = ratio < 1e6 ? (long long)(ratio * 10 + 0.5) : 10000000;
		const char *times = tenths < 11 ? ""
				    : tenths < 100
					? weft__finding_text(f, ", %lld.%lld times as long as usual", tenths / 10, tenths % 10)
					: weft__finding_text(f, ", %lld times as long as usual", (tenths + 5) / 10);
		weft__finding_evidence(f, WEFT_EVIDENCE_TIME, f->model->promises[median].start_ns, median,
		    "%s in all%s: the median of %zu promises %s is %s; %s", weft__format_duration(f, all_ns), times, count,
		    weft__format_type_group(f, promise, weft_first_label(f->model, promise) == WEFT_NONE),
		    weft__format_duration(f, middle->took_ns), rank);
	}
	free(peers);
	return median;
}

static const struct step_group *find_same_step_group(const step_group_vec *step_groups, const struct step_group *step_group)
{
	for (size_t i = 0; i < step_groups->count; i++)
		if (is_same_step_group(&step_groups->items[i], step_group))
			return &step_groups->items[i];
	return NULL;
}

/* Adds evidence for each group of steps, the longest first; adds the longest group to the title.  Groups of less than half a
 * percent of the time are only counted. */
static void report_step_groups(
    struct slow *slow, uint32_t promise, const step_group_vec *step_groups, const step_group_vec *usual)
{
	struct weft__finder *f = slow->f;
	struct weft_finding *finding = &f->findings.items[f->findings.count - 1];
	int64_t all_ns = f->link_index.ended_ns[promise] - f->model->promises[promise].start_ns;
	size_t reported = 0;
	for (; reported < step_groups->count && reported < WEFT__MAX_LINES &&
	       (reported == 0 || step_groups->items[reported].sum_ns > all_ns / 200);
	     reported++)
		report_step_group(f, &step_groups->items[reported], all_ns,
		    find_same_step_group(usual, &step_groups->items[reported]), usual->count > 0);
	weft__evidence_add_more(f, WEFT_EVIDENCE_TIME, step_groups->count - reported, ", which took less");
	if (step_groups->count == 0)
		return;
	const struct step_group *most = &step_groups->items[0];
	uint32_t cause = most->is_named ? most->longest.promise : weft_step_cause(&most->longest);
	const char *title = weft__finding_text(
	    f, "%s: %d%% %s", finding->title, get_percent(most->sum_ns, all_ns), format_step_group(f, most, false));
	finding->title = title;
	const struct weft_request *request = find_request_in(f, most);
	if (request)
		weft__evidence_add_request(f, request);
	if (most->kind == WEFT_STEP_READY && is_asleep(&most->longest))
		finding->next = "find out why nothing woke the thread: wake the thread after each result, also while it handles "
				"other results";
	else if (is_request(&most->longest) && !most->is_named)
		finding->next = most->longest.is_asked ? weft__format_late_advice(f, cause) : "";
	else if (most->kind == WEFT_STEP_RUNNING && most->is_own && f->model->promises[promise].kind == WEFT_KIND_REQUEST)
		finding->next = "find out what the request computed: weft stats --functions prints where its thread was sampled";
	else if (most->kind == WEFT_STEP_RUNNING && is_thread(f, cause)) {
		weft__evidence_find_hot_function(f, WEFT_EVIDENCE_CAUSE, cause, most->longest.start_ns, most->longest.end_ns);
		finding->next = weft__finding_text(f,
		    "find out what %s computed: weft stats --functions prints where it was sampled", format_name(f, cause, true));
	} else if (is_thread(f, cause))
		finding->next = weft__finding_text(
		    f, "find out in which call %s sleeps: weft record --kernel records it", format_name(f, cause, true));
	else if (cause != promise && cause != WEFT_SYSTEM)
		finding->next = weft__finding_text(f, "run weft explain --promise=%" PRId64 " to see why %s took so long",
		    f->model->promises[cause].id, format_name(f, cause, true));
}

/* Reports where the time of the promise went, given its critical path, whose steps move to the finding. */
static void report_times(struct weft__finder *f, uint32_t promise, struct weft_path *path)
{
	struct slow slow = {f, weft__finding_patterns(f), promise};
	struct weft_path *usual = NULL;
	step_group_vec step_groups = {0}, of_usual = {0};
	int64_t all_ns = f->link_index.ended_ns[promise] - f->model->promises[promise].start_ns;
	if (!slow.group || all_ns <= 0)
		return;
	uint32_t median = report_peers(&slow, promise, all_ns);
	if (median != WEFT_NONE && median != promise &&
	    weft_path_create_with_index(&usual, &f->link_index, median, NULL) == WEFT_ENOMEM)
		f->no_memory = true;
	gather_step_groups(&slow, &step_groups, path);
	if (usual)
		gather_step_groups(&slow, &of_usual, usual);
	report_step_groups(&slow, promise, &step_groups, &of_usual);
	struct weft_finding *finding = &f->findings.items[f->findings.count - 1];
	finding->steps = path->steps;
	finding->step_count = path->count;
	path->steps = NULL;
	weft_path_destroy(usual);
	weft_vec_free(&step_groups);
	weft_vec_free(&of_usual);
}

void weft__slow_report_times(struct weft__finder *f, uint32_t promise, struct weft_path *path)
{
	struct weft_path *made = NULL;
	if (!path)
		f->no_memory |= weft_path_create_with_index(&made, &f->link_index, promise, NULL) == WEFT_ENOMEM;
	if (path || made)
		report_times(f, promise, path ? path : made);
	struct weft_finding *finding = &f->findings.items[f->findings.count - 1];
	const char *title = weft__finding_text(f, "%s%s", finding->title, weft__format_site_suffix(f, promise));
	finding->title = title;
	weft_path_destroy(made);
}
