/* live.c: selects and sorts the rows of the live tables (live.h).  SPDX-License-Identifier: ISC */
#include "viewer/live.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/duration.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/sort.h"
#include "layout/focus.h"
#include "viewer/live_private.h"
#include "viewer/private.h"

static int no_memory(struct weft_error *err)
{
	return weft_error_set(err, WEFT_ENOMEM, "no memory for promises in flight");
}

/* Finds the promise that ran last on each OS thread in the interval. */
static bool find_ran_last(struct weft_live *live)
{
	const struct weft_model *m = live->model;
	const struct weft_top *top = live->top;
	uint32_t *last = malloc((top->stream_count + 1) * sizeof *last);
	int64_t *latest_ns = malloc((top->stream_count + 1) * sizeof *latest_ns);
	live->priv->ran_last = last;
	for (size_t i = 0; last && latest_ns && i < top->stream_count; i++) {
		last[i] = WEFT_NONE;
		latest_ns[i] = top->from_ns;
	}
	for (uint32_t p = 1; last && latest_ns && p < m->promise_count; p++)
		for (uint32_t r = m->promises[p + 1].runs; r-- > m->promises[p].runs && m->runs[r].end_ns > top->from_ns;) {
			const uint16_t stream = m->run_streams ? m->run_streams[r] : 0;
			if (m->runs[r].start_ns > top->to_ns || stream >= top->stream_count ||
			    m->runs[r].end_ns <= latest_ns[stream])
				continue;
			latest_ns[stream] = m->runs[r].end_ns;
			last[stream] = p;
		}
	const bool done = last && latest_ns;
	free(latest_ns);
	return done;
}

int weft_live_create(struct weft_live **out, const struct weft_model *model, const struct weft_findings *findings, int64_t to_ns,
    int64_t window_ns, struct weft_error *err)
{
	struct weft_promise_info *facts = NULL;
	int status = weft_promise_info_create(&facts, model, err);
	if (status == WEFT_OK && (status = weft_live_create_from_facts(out, facts, findings, to_ns, window_ns, err)) < 0)
		weft_promise_info_destroy(facts);
	if (status == WEFT_OK)
		(*out)->priv->own_facts = facts;
	return status;
}

int weft_live_create_from_facts(struct weft_live **out, struct weft_promise_info *facts, const struct weft_findings *findings,
    int64_t to_ns, int64_t window_ns, struct weft_error *err)
{
	const struct weft_model *model = weft_promise_info_model(facts);
	struct weft_live *live = calloc(1, sizeof *live);
	if (!live || !(live->priv = calloc(1, sizeof *live->priv))) {
		free(live);
		return no_memory(err);
	}
	live->model = model;
	live->findings = findings;
	for (size_t i = 0; findings && i < findings->count; i++)
		live->alarms += findings->findings[i].severity == WEFT_SEVERITY_ALARM && findings->findings[i].sure;
	live->facts = facts;
	int status = weft_top_create(&live->top, facts, to_ns, window_ns, err);
	if (status == WEFT_OK && (!find_ran_last(live) || weft_model_os_tracks(model, &live->priv->os_tracks) < 0))
		status = no_memory(err);
	if (status == WEFT_OK)
		*out = live;
	else
		weft_live_destroy(live);
	return status;
}

void weft_live_destroy(struct weft_live *live)
{
	if (!live)
		return;
	weft_vec_free(&live->priv->lines);
	free(live->priv->ran_last);
	weft_top_destroy(live->top);
	weft_promise_info_destroy(live->priv->own_facts);
	free(live->priv);
	free(live);
}

size_t weft_live_count_endless(const struct weft_top *top)
{
	size_t all = 0;
	for (size_t i = 0; i < top->type_count; i++)
		all += top->types[i].in_flight;
	return all - top->in_flight;
}

const char *weft_live_format_flight(const struct weft_top *top, char text[WEFT_LIVE_FLIGHT])
{
	char number[WEFT_NUMBER_BYTES];
	const size_t endless = weft_live_count_endless(top);
	const int length = snprintf(text, WEFT_LIVE_FLIGHT, "%s in flight", weft_number_text(number, top->in_flight));
	if (endless)
		snprintf(text + length, WEFT_LIVE_FLIGHT - (size_t)length, ", and %s that need not end",
		    weft_number_text(number, endless));
	return text;
}

/* ---- Data of a promise ---- */

int64_t weft__live_ran(const struct weft_live *live, uint32_t promise)
{
	const struct weft_model *m = live->model;
	int64_t ran_ns = 0;
	for (uint32_t r = m->promises[promise + 1].runs;
	     r-- > m->promises[promise].runs && m->runs[r].end_ns > live->top->from_ns;) {
		const int64_t from_ns = weft_max_ns(m->runs[r].start_ns, live->top->from_ns),
			      to_ns = weft_min_ns(m->runs[r].end_ns, live->top->to_ns);
		ran_ns += weft_max_ns(0, to_ns - from_ns);
	}
	return ran_ns;
}

int64_t weft__live_age(const struct weft_live *live, uint32_t promise)
{
	const struct weft_promise *p = &live->model->promises[promise];
	return p->flags & WEFT_PROMISE_START_UNKNOWN ? -1 : live->top->to_ns - p->start_ns;
}

struct weft__live_thread weft__live_thread_of(const struct weft_live *live, uint32_t number)
{
	const struct weft_top *top = live->top;
	const struct weft_top_stream *stream = &top->streams[number];
	const struct weft_os_tracks *tracks = live->priv->os_tracks;
	const uint32_t track = tracks ? weft_os_track_of_stream(tracks, stream->stream) : WEFT_NONE;
	if (track == WEFT_NONE)
		return (struct weft__live_thread){
		    weft_max_ns(0, top->to_ns - top->from_ns - stream->slept_ns), -1, stream->slept_ns, stream->paused_ns};
	int64_t ns[WEFT_OS_STATES] = {0};
	weft_os_sum_times(tracks, track, top->from_ns, top->to_ns, ns);
	return (struct weft__live_thread){ns[WEFT_OS_RUNS], ns[WEFT_OS_READY] + ns[WEFT_OS_PREEMPTED],
	    ns[WEFT_OS_DISK] + ns[WEFT_OS_BLOCKED], stream->paused_ns};
}

uint64_t weft_live_finding_key(const struct weft_live *live, uint32_t finding)
{
	const struct weft_finding *f = &live->findings->findings[finding];
	const uint64_t which[] = {
	    f->kind, (uint64_t)live->model->promises[f->promise].id, (uint64_t)(live->model->start_ns + f->start_ns)};
	return weft_hash_bytes((const char *)which, sizeof which) | 1;
}

/* ---- Filters ---- */

struct row_filter {
	const struct weft_live *live;
	const struct weft_live_request *request;
	struct weft_query query;
	bool has_query;
	uint32_t sort;   /* or WEFT_NONE: all */
	uint64_t *focus; /* bits of the promises that are shown; NULL: all promises */
};

static uint64_t promise_key(const struct weft_live *live, uint32_t promise)
{
	return weft_hash_u64((uint64_t)live->model->promises[promise].id) | 1;
}

static int find_focus(struct row_filter *w, const struct weft_live *live, int64_t id, struct weft_error *err)
{
	const uint32_t promise = weft_model_find(live->model, id);
	struct weft_layout *layout = NULL;
	/* If the promise in focus no longer exists, the set of promises that belong to it is empty. */
	if (promise == WEFT_NONE)
		return (w->focus = calloc(live->model->promise_count / 64 + 1, sizeof *w->focus)) ? WEFT_OK : no_memory(err);
	int status = weft_layout_create(&layout, live->model, err);
	if (status == WEFT_OK)
		status = weft_focus_find(&w->focus, NULL, live->model, layout, promise, err);
	weft_layout_destroy(layout);
	return status;
}

static void row_filter_finish(struct row_filter *w)
{
	free(w->focus);
	if (w->has_query)
		weft_query_finish(&w->query);
}

static int row_filter_init(
    struct row_filter *w, const struct weft_live *live, const struct weft_live_request *request, struct weft_error *err)
{
	*w = (struct row_filter){.live = live, .request = request, .sort = WEFT_NONE};
	int status = WEFT_OK;
	if (request->only && request->only[0]) {
		status = weft_query_parse(&w->query, request->only, strlen(request->only), err);
		w->has_query = status == WEFT_OK;
	}
	for (size_t i = 0; request->sort && i < live->top->type_count && w->sort == WEFT_NONE; i++)
		if (weft__group_key(live->model, &live->top->types[i].row) == request->sort)
			w->sort = live->top->types[i].row.type;
	if (status == WEFT_OK && request->focus)
		status = find_focus(w, live, *request->focus, err);
	return status;
}

/* Returns whether a cell of a row contains the text. */
static bool has_text(const struct weft_live_row *row, const char *text)
{
	for (size_t i = 0; i < WEFT_LIVE_CELLS; i++)
		if (strcasestr(row->cells[i], text))
			return true;
	return false;
}

static bool is_in_scope(const struct row_filter *w, uint32_t promise)
{
	return (!w->focus || w->focus[promise / 64] >> promise % 64 & 1) &&
	       (!w->request->sort || w->live->top->type_of[promise] == w->sort);
}

static bool is_wanted(struct row_filter *w, uint32_t promise)
{
	return is_in_scope(w, promise) && (!w->has_query || weft_query_matches(&w->query, w->live->model, promise));
}

/* ---- Tables ---- */

/* A line of a table, with its sort key. */
struct draft {
	struct weft_live_line line;
	int64_t weight;
};
typedef WEFT_VEC(struct draft) drafts;

static bool add_draft(drafts *to, uint64_t key, uint32_t promise, size_t number, int64_t weight)
{
	struct draft *d = weft_vec_push(to);
	if (d)
		*d = (struct draft){{.key = key, .promise = promise, .number = (uint32_t)number, .parent = WEFT_NONE}, weight};
	return d != NULL;
}

static int by_weight(const void *a, const void *b)
{
	const struct draft *x = a, *y = b;
	return WEFT_ORDER(y->weight, x->weight) ?: WEFT_ORDER(x->line.number, y->line.number);
}

static int by_weight_reversed(const void *a, const void *b)
{
	const struct draft *x = a, *y = b;
	return WEFT_ORDER(x->weight, y->weight) ?: WEFT_ORDER(x->line.number, y->line.number);
}

static int64_t weight_of_group(const struct weft_top_type *s, unsigned column)
{
	const int64_t weights[] = {(int64_t)s->in_flight, (int64_t)s->ended, (int64_t)s->failed, s->oldest_ns, s->ran_ns,
	    s->row.ended ? s->row.p99_ns : -1};
	return weights[column < sizeof weights / sizeof *weights ? column : 0];
}

static int64_t weight_of_thread(const struct weft__live_thread *t, unsigned column)
{
	const int64_t weights[] = {t->busy_ns, t->busy_ns, t->ready_ns, t->off_ns, t->paused_ns};
	return weights[column < sizeof weights / sizeof *weights ? column : 0];
}

static bool add_groups(drafts *to, const struct weft_live *live, unsigned column)
{
	for (size_t i = 0; i < live->top->type_count; i++) {
		const struct weft_top_type *s = &live->top->types[i];
		if (!add_draft(to, weft__group_key(live->model, &s->row), WEFT_NONE, i, weight_of_group(s, column)))
			return false;
	}
	return true;
}

static bool add_promises(drafts *to, const struct weft_live *live, struct row_filter *w, unsigned column)
{
	for (uint32_t p = 1; p < live->model->promise_count; p++)
		if (weft_top_is_in_flight(live->top, p) && is_in_scope(w, p) &&
		    !add_draft(to, promise_key(live, p), p, p, column == 1 ? weft__live_ran(live, p) : weft__live_age(live, p)))
			return false;
	return true;
}

static bool add_waits(drafts *to, const struct weft_live *live, struct row_filter *w)
{
	for (size_t i = 0; i < live->top->wait_count; i++) {
		const struct weft_top_wait *wait = &live->top->waits[i];
		if (is_wanted(w, wait->promise) &&
		    !add_draft(to, promise_key(live, wait->promise), wait->promise, i, live->top->to_ns - wait->since_ns))
			return false;
	}
	return true;
}

static bool add_late(drafts *to, const struct weft_live *live, struct row_filter *w, unsigned column)
{
	for (size_t i = 0; i < live->top->late_count; i++) {
		const struct weft_top_late *late = &live->top->late[i];
		const uint64_t when = (uint64_t)(live->model->start_ns + late->to_ns);
		if (is_wanted(w, late->promise) && !add_draft(to, (promise_key(live, late->promise) ^ when) | 1, late->promise, i,
						       column == 1 ? late->to_ns : late->to_ns - late->from_ns))
			return false;
	}
	return true;
}

static bool add_others(drafts *to, const struct weft_live *live, enum weft_live_table table, unsigned column)
{
	bool done = true;
	for (size_t i = 0; done && table == WEFT_LIVE_THREADS && i < live->top->stream_count; i++) {
		const struct weft__live_thread thread = weft__live_thread_of(live, (uint32_t)i);
		done = add_draft(to, i + 1, WEFT_NONE, i, weight_of_thread(&thread, column));
	}
	for (size_t i = 0; done && table == WEFT_LIVE_COUNTERS && i < live->model->counter_count; i++) {
		const struct weft_str name = live->model->counters[i].name;
		done = add_draft(to, weft_hash_bytes(name.ptr, name.len) | 1, WEFT_NONE, i, 0);
	}
	for (size_t i = 0; done && table == WEFT_LIVE_FINDINGS && live->findings && i < live->findings->count; i++) {
		const uint32_t promise = live->findings->findings[i].promise;
		done = add_draft(to, weft_live_finding_key(live, (uint32_t)i), promise, i, 0);
	}
	return done;
}

/* Removes the rows without a promise that do not contain the text. */
static void drop_unmatched(weft__live_lines *lines, const struct weft_live *live, const char *only)
{
	struct weft_live_row row;
	size_t kept_count = 0;
	for (size_t i = 0; i < lines->count; i++) {
		weft__live_format_row(live, lines, i, &row);
		if (has_text(&row, only))
			lines->items[kept_count++] = lines->items[i];
	}
	lines->count = kept_count;
}

/* ---- The tree ---- */

struct tree {
	uint32_t *above;        /* for each promise: its nearest ancestor in the table, or WEFT_NONE */
	uint32_t *child, *next; /* for each promise: its first child, and its next sibling */
	uint32_t first;
};

/* Keeps the promises that match a query, and their ancestors. */
static void drop_unmatched_branches(drafts *all, struct row_filter *w, const struct tree *t)
{
	size_t kept_count = all->count;
	/* A creator has a smaller number than the promises that it creates, so this loop reaches descendants first. */
	for (size_t i = all->count; i-- > 0;) {
		const struct draft *d = &all->items[i];
		const uint32_t p = d->line.promise;
		if (t->child[p] == WEFT_NONE && !is_wanted(w, p))
			continue;
		if (t->above[p] != WEFT_NONE)
			t->child[t->above[p]] = p;
		all->items[--kept_count] = *d;
	}
	memmove(all->items, all->items + kept_count, (all->count - kept_count) * sizeof *all->items);
	all->count -= kept_count;
	memset(t->child, 0xff, w->live->model->promise_count * sizeof *t->child);
}

/* Appends each promise with its children below it, in order and without recursion. */
static bool append_tree(weft__live_lines *lines, const struct weft_live *live, const drafts *all, struct tree *t)
{
	t->first = WEFT_NONE;
	for (size_t i = all->count; i-- > 0;) {
		const uint32_t p = all->items[i].line.promise;
		uint32_t *of = t->above[p] == WEFT_NONE ? &t->first : &t->child[t->above[p]];
		t->next[p] = *of;
		*of = p;
	}
	if (!weft_vec_reserve(lines, all->count + 1))
		return false;
	uint32_t parent = WEFT_NONE;
	for (uint32_t p = t->first; p != WEFT_NONE;) {
		const struct weft_live_line *above = parent == WEFT_NONE ? NULL : &lines->items[parent];
		lines->items[lines->count++] = (struct weft_live_line){.key = promise_key(live, p),
		    .promise = p,
		    .number = p,
		    .parent = parent,
		    .depth = (uint16_t)(above ? above->depth + (above->depth < UINT16_MAX) : 0),
		    .is_last = t->next[p] == WEFT_NONE};
		if (t->child[p] != WEFT_NONE) {
			parent = (uint32_t)lines->count - 1;
			p = t->child[p];
			continue;
		}
		while (t->next[p] == WEFT_NONE && parent != WEFT_NONE) {
			p = lines->items[parent].promise;
			parent = lines->items[parent].parent;
		}
		p = t->next[p];
	}
	return true;
}

static bool make_tree(weft__live_lines *lines, drafts *all, struct row_filter *w, bool is_reversed)
{
	const struct weft_live *live = w->live;
	const size_t n = live->model->promise_count;
	struct tree t = {
	    .above = malloc(n * sizeof *t.above), .child = malloc(n * sizeof *t.child), .next = malloc(n * sizeof *t.next)};
	bool done = t.above && t.child && t.next;
	if (done) {
		memset(t.child, 0xff, n * sizeof *t.child);
		t.above[WEFT_SYSTEM] = WEFT_NONE;
		for (uint32_t p = 1; p < n && !w->request->sort; p++) {
			const uint32_t by = live->model->promises[p].created_by;
			const bool has = by < p && by != WEFT_SYSTEM;
			t.above[p] = !has                                                         ? WEFT_NONE
				     : weft_top_is_in_flight(live->top, by) && is_in_scope(w, by) ? by
												  : t.above[by];
		}
		/* The promises of one type are shown as a list, and not as a tree. */
		if (w->request->sort)
			memset(t.above, 0xff, n * sizeof *t.above);
		if (w->has_query)
			drop_unmatched_branches(all, w, &t);
		weft_sort(all->items, all->count, sizeof *all->items, is_reversed ? by_weight_reversed : by_weight);
		done = append_tree(lines, live, all, &t);
	}
	free(t.above);
	free(t.child);
	free(t.next);
	return done;
}

/* ---- Building rows ---- */

static bool collect_drafts(drafts *to, const struct weft_live *live, struct row_filter *w, unsigned column)
{
	switch (w->request->table) {
	case WEFT_LIVE_GROUPS: return add_groups(to, live, column);
	case WEFT_LIVE_TREE: return add_promises(to, live, w, column);
	case WEFT_LIVE_WAITS: return add_waits(to, live, w);
	case WEFT_LIVE_LATE: return add_late(to, live, w, column);
	default: return add_others(to, live, w->request->table, column);
	}
}

static bool build_lines(weft__live_lines *lines, const struct weft_live *live, struct row_filter *w)
{
	const struct weft_live_request *request = w->request;
	size_t columns;
	const struct weft_live_column *column = weft_live_columns(request->table, &columns);
	const bool is_tree = request->table == WEFT_LIVE_TREE;
	const bool sorts = request->order < columns && column[request->order].sorts;
	drafts all = {0};
	bool done = collect_drafts(&all, live, w, sorts ? request->order : 0);
	if (done && is_tree)
		done = make_tree(lines, &all, w, request->is_reversed);
	else if (done && (done = weft_vec_reserve(lines, all.count + 1))) {
		if (sorts)
			weft_sort(all.items, all.count, sizeof *all.items, request->is_reversed ? by_weight_reversed : by_weight);
		for (size_t i = 0; i < all.count; i++)
			lines->items[lines->count++] = all.items[i].line;
		if (w->has_query && all.count && (all.items[0].line.promise == WEFT_NONE || request->table == WEFT_LIVE_FINDINGS))
			drop_unmatched(lines, live, request->only);
	}
	weft_vec_free(&all);
	return done;
}

int weft_live_build_rows(struct weft_live *live, const struct weft_live_request *request, struct weft_error *err)
{
	struct row_filter w;
	weft__live_lines lines = {0};
	int status = row_filter_init(&w, live, request, err);
	const struct weft_live_request before = live->request;
	live->request = *request;
	if (status == WEFT_OK && !build_lines(&lines, live, &w))
		status = no_memory(err);
	row_filter_finish(&w);
	if (status < 0) {
		live->request = before;
		weft_vec_free(&lines);
		return status;
	}
	weft_vec_free(&live->priv->lines);
	live->priv->lines = lines;
	live->lines = lines.items;
	live->count = lines.count;
	/* The pointers that the caller has passed are not valid after this call. */
	live->request.only = NULL;
	live->request.focus = NULL;
	return WEFT_OK;
}

void weft_live_row(const struct weft_live *live, size_t i, struct weft_live_row *row)
{
	weft__live_format_row(live, &live->priv->lines, i, row);
}

size_t weft_live_find(const struct weft_live *live, uint64_t key)
{
	for (size_t i = 0; i < live->count; i++)
		if (live->lines[i].key == key)
			return i;
	return SIZE_MAX;
}

size_t weft_live_search(const struct weft_live *live, const char *text, size_t from, bool forward)
{
	struct weft_query query;
	struct weft_live_row row;
	const bool is_query = weft_query_parse(&query, text, strlen(text), NULL) == WEFT_OK;
	size_t found = SIZE_MAX;
	for (size_t k = 0; k < live->count && found == SIZE_MAX; k++) {
		const size_t i = (from + (forward ? k : live->count - k)) % live->count;
		const uint32_t promise = live->request.table == WEFT_LIVE_FINDINGS ? WEFT_NONE : live->lines[i].promise;
		if (promise == WEFT_NONE)
			weft_live_row(live, i, &row);
		if (promise == WEFT_NONE ? has_text(&row, text) : is_query && weft_query_matches(&query, live->model, promise))
			found = i;
	}
	if (is_query)
		weft_query_finish(&query);
	return found;
}
