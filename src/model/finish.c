/* finish.c: completes the model after all events have been applied.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "base/duration.h"
#include "base/sort.h"
#include "model/private.h"

/* A pending promise is shown a little longer than its last activity. */
#define AFTERGLOW_NS 1000

/* Returns the time until which the trace has events of a thread. */
static int64_t get_stream_end(const struct weft__build *b, size_t stream)
{
	const struct weft__stream_state *s = &b->streams.items[stream];
	return s->is_ended ? s->end_ns : b->model->end_ns;
}

static int end_open_intervals(struct weft__build *b)
{
	for (size_t i = 0; i < b->streams.count; i++) {
		struct weft__stream_state *s = &b->streams.items[i];
		const int64_t end_ns = get_stream_end(b, i);
		if (s->pause_depth) {
			struct weft_interval *pause = weft_vec_push(&b->pauses);
			if (!pause)
				return WEFT_ENOMEM;
			*pause = (struct weft_interval){s->pause_ns, end_ns, s->pause_text, (uint16_t)i};
		}
		if (s->running == WEFT_NONE)
			continue;
		struct weft_promise *promise = &b->promises.items[s->running];
		struct weft_run *run = &b->runs.items[s->run];
		run->end_ns = end_ns;
		if (promise->end != WEFT_END_PENDING)
			run->end_ns = promise->end_ns > run->start_ns ? promise->end_ns : run->start_ns;
		else
			promise->weft__active_ns = end_ns;
		if (s->running == WEFT_SYSTEM)
			b->sleeps.items[s->sleep].end_ns = end_ns;
	}
	if (weft__is_lull(b))
		b->lulls.items[b->lulls.count - 1].end_ns = b->model->end_ns;
	return WEFT_OK;
}

/* Records when each part of a joined trace ends. */
static bool set_stream_ends(struct weft__build *b)
{
	if (!b->has_ended_parts)
		return true;
	int64_t *ends = calloc(b->streams.count, sizeof *ends);
	for (size_t i = 0; ends && i < b->streams.count; i++)
		ends[i] = get_stream_end(b, i);
	b->model->stream_ends_ns = ends;
	return ends != NULL;
}

static int fail_unresolved(struct weft__build *b)
{
	static const struct weft_str never = {"should resolve, but never did", 29};
	uint32_t text = b->should_resolve.count ? weft_intern(&b->priv->texts, never) : 0;
	if (text == WEFT_INTERN_FAILED)
		return WEFT_ENOMEM;
	for (size_t i = 0; i < b->should_resolve.count; i++) {
		struct weft_promise *promise = &b->promises.items[weft__current_promise(b, b->should_resolve.items[i])];
		if (promise->end == WEFT_END_PENDING) {
			promise->end = WEFT_END_FAILED;
			promise->end_ns = get_stream_end(b, promise->stream);
			promise->failure = text;
			promise->flags |= WEFT_PROMISE_NEVER_RESOLVED;
		}
	}
	return WEFT_OK;
}

static void extend_activity(struct weft_promise *promise, int64_t end_ns)
{
	if (promise->end == WEFT_END_PENDING && promise->weft__active_ns < end_ns - AFTERGLOW_NS)
		promise->weft__active_ns = end_ns - AFTERGLOW_NS;
}

/* Extends a pending promise to the end of its process, if the trace would show its earlier end.  If a ring has overwritten the
 * creation of a promise, it may also have overwritten its end, so a promise that is only named may not be pending.  A thread
 * that never ended, and the promises that it awaits, existed until the end in any case. */
static void extend_pending(struct weft__build *b)
{
	const struct weft_trace_info *info = b->model->trace;
	int64_t whole_ns = info->lost_no_stream > 0 ? INT64_MAX : b->model->start_ns;
	for (size_t i = 0; i < info->gap_count; i++)
		whole_ns = weft_max_ns(whole_ns, info->gaps[i].to_ns);
	for (size_t p = WEFT_SYSTEM + 1; p < b->promises.count; p++) {
		struct weft_promise *promise = &b->promises.items[p];
		if (promise->end != WEFT_END_PENDING)
			continue;
		const uint32_t link = promise->weft__last_link;
		const int64_t end_ns = get_stream_end(b, promise->stream);
		const bool is_thread = weft_kind_has(promise->kind, WEFT_TRAIT_THREAD);
		const bool is_recorded = promise->stream < info->stream_count &&
					 info->streams[promise->stream].records_all_ends &&
					 !(promise->flags & WEFT_PROMISE_START_UNKNOWN) &&
					 (uint64_t)promise->weft__active_ns >= (uint64_t)whole_ns - (uint64_t)b->model->start_ns;
		if (is_thread || is_recorded)
			extend_activity(promise, end_ns);
		if (is_thread && link != WEFT_NONE && b->links.items[link].kind == WEFT_LINK_AWAIT)
			extend_activity(&b->promises.items[b->links.items[link].to], end_ns);
	}
}

/* Ends the pending promises; the error of a failed promise becomes its last label.  From here on, the fields of the unions have
 * the numbers of labels and runs. */
static int end_promises(struct weft__build *b)
{
	for (size_t p = 0; p < b->promises.count; p++) {
		struct weft_promise *promise = &b->promises.items[p];
		promise->labels = promise->runs = 0;
		if (p == WEFT_SYSTEM)
			promise->end_ns = b->model->end_ns;
		else if (b->knows_pending && promise->end == WEFT_END_PENDING && promise->flags & WEFT_PROMISE_START_UNKNOWN)
			promise->end = WEFT_END_RESOLVED; /* the promise's end_ns is the time of its last activity */
		else if (promise->end == WEFT_END_PENDING)
			promise->end_ns = promise->weft__active_ns + AFTERGLOW_NS;
		if (promise->end != WEFT_END_FAILED)
			continue;
		struct weft_label *label = weft_vec_push(&b->labels);
		uint32_t *owner = weft_vec_push(&b->label_owners);
		if (!label || !owner)
			return WEFT_ENOMEM;
		if (b->labels.count >= UINT32_MAX)
			return WEFT_ETOOBIG;
		*label = (struct weft_label){.time_ns = promise->end_ns, .text = promise->failure};
		*owner = (uint32_t)p;
	}
	return WEFT_OK;
}

/* Removes the awaits that a read has replaced. */
static void remove_dropped_links(struct weft__build *b)
{
	size_t retained = 0;
	if (b->links_dropped == 0)
		return;
	for (size_t i = 0; i < b->links.count; i++)
		if (b->links.items[i].kind != WEFT__LINK_DROPPED)
			b->links.items[retained++] = b->links.items[i];
	b->links.count = retained;
}

/* Numbers of links, or WEFT_NONE: the first action of a promise, and the first await of that promise. */
struct firsts {
	uint32_t link, await;
};

/* Returns true if the first action of a bind is to read its input.  Returns false if the bind had a label before that, if
 * another promise awaited it, or if its creator became it. */
static bool waits_for_input(const struct weft__build *b, const struct firsts *first, uint32_t p)
{
	const struct weft_promise *promise = &b->promises.items[p];
	if (!weft_kind_has(promise->kind, WEFT_TRAIT_WOKEN) || first[p].link == WEFT_NONE ||
	    b->promises.items[promise->created_by].became == p)
		return false;
	const struct weft_link *read = &b->links.items[first[p].link];
	if (read->kind != WEFT_LINK_READ || read->to == p || read->time_ns > promise->end_ns)
		return false;
	if (first[p].await != WEFT_NONE && b->links.items[first[p].await].time_ns <= read->time_ns)
		return false;
	return promise[0].labels == promise[1].labels || b->model->labels[promise->labels].time_ns >= read->time_ns;
}

/* Breaks cycles of parents: two binds that read each other would each be drawn under the other.  In each cycle, promises under
 * a younger parent move back under their creators, which are older.  A further round finds cycles that this closes; the last
 * round puts the remaining promises under the system. */
static bool break_parent_cycles(struct weft_promise *promises, size_t count)
{
	uint32_t *seen = malloc(count * sizeof *seen);
	if (!seen)
		return false;
	bool found = true;
	for (int round = 0; found; round++) {
		found = false;
		memset(seen, 0, count * sizeof *seen);
		seen[WEFT_SYSTEM] = UINT32_MAX;
		for (size_t p = 1; p < count; p++) {
			uint32_t at = (uint32_t)p;
			for (; !seen[at]; at = promises[at].parent)
				seen[at] = (uint32_t)p;
			if (seen[at] != p)
				continue;
			found = true;
			uint32_t q = at;
			do {
				uint32_t parent = promises[q].parent;
				if (parent > q) {
					promises[q].parent = round < 3 ? promises[q].created_by : WEFT_SYSTEM;
					promises[q].flags |= WEFT_PROMISE_CREATION_DRAWN;
				}
				q = parent;
			} while (q != at);
		}
	}
	free(seen);
	return true;
}

/* Simplifies the binds whose first action is to read their input: each starts where it was woken, under the promise that it
 * read. */
static bool simplify_binds(struct weft__build *b)
{
	struct weft_promise *promises = b->promises.items;
	size_t count = b->promises.count;
	struct firsts *first = malloc(count * sizeof *first);
	if (!first)
		return false;
	memset(first, 0xff, count * sizeof *first);
	for (size_t i = 0; i < b->links.count; i++) {
		const struct weft_link *link = &b->links.items[i];
		if (first[link->from].link == WEFT_NONE)
			first[link->from].link = (uint32_t)i;
		if (link->kind == WEFT_LINK_AWAIT && first[link->to].await == WEFT_NONE)
			first[link->to].await = (uint32_t)i;
	}
	bool may_circle = false;
	for (uint32_t p = 1; p < count; p++)
		if (waits_for_input(b, first, p)) {
			promises[p].flags &= (uint16_t)~WEFT_PROMISE_CREATION_DRAWN;
			promises[p].parent = b->links.items[first[p].link].to;
			may_circle |= promises[p].parent > p;
		}
	bool ok = !may_circle || break_parent_cycles(promises, count);
	for (size_t p = 1; p < count; p++)
		if (!(promises[p].flags & WEFT_PROMISE_CREATION_DRAWN))
			promises[p].start_ns = b->links.items[first[p].link].time_ns;
	free(first);
	return ok;
}

/* A label or a run, each of which has 16 bytes.  Items are sorted by promise; items of one promise keep their order. */
struct item {
	uint64_t words[2];
};
_Static_assert(
    sizeof(struct item) == sizeof(struct weft_label) && sizeof(struct item) == sizeof(struct weft_run), "16 bytes each");

/* Places items by promise, starting with the last item. *next is the end of the promise's items before the call, and their
 * start after it. */
static bool place_items(void *out, const void *items, const uint32_t *owners, size_t count, uint32_t *next, size_t stride)
{
	struct item *placed = malloc((count ? count : 1) * sizeof *placed);
	if (!placed)
		return false;
	for (size_t i = count; i-- > 0;) {
		uint32_t *at = (uint32_t *)(void *)((char *)next + owners[i] * stride);
		memcpy(&placed[--*at], (const char *)items + i * sizeof *placed, sizeof *placed);
	}
	memcpy(out, &placed, sizeof placed);
	return true;
}

/* Places the streams of the runs like the runs, and restores for each promise the end of its runs. */
static bool place_run_streams(struct weft__build *b)
{
	struct weft_promise *promises = b->promises.items;
	if (!b->run_streams.count)
		return true;
	b->model->run_streams = malloc(b->run_streams.count * sizeof *b->model->run_streams);
	if (!b->model->run_streams)
		return false;
	for (size_t i = b->run_streams.count; i-- > 0;)
		b->model->run_streams[--promises[b->run_owners.items[i]].runs] = b->run_streams.items[i];
	for (size_t p = 0; p < b->promises.count; p++)
		promises[p].runs = promises[p + 1].runs;
	weft_vec_free(&b->run_streams);
	return true;
}

/* Sorts labels and runs by promise with one counting sort: there are many promises, so one pass over them serves both. */
static bool group_items(struct weft__build *b)
{
	struct weft_promise *promises = b->promises.items;
	uint32_t labels = 0, runs = 0;
	for (size_t i = 0; i < b->labels.count; i++)
		promises[b->label_owners.items[i]].labels++;
	for (size_t i = 0; i < b->runs.count; i++)
		promises[b->run_owners.items[i]].runs++;
	/* Memory for the sentinel behind the last promise is always reserved. */
	promises[b->promises.count] = (struct weft_promise){0};
	for (size_t p = 0; p <= b->promises.count; p++) {
		promises[p].labels = labels += promises[p].labels;
		promises[p].runs = runs += promises[p].runs;
	}
	if (!place_items(
		&b->model->labels, b->labels.items, b->label_owners.items, b->labels.count, &promises->labels, sizeof *promises))
		return false;
	b->model->label_count = b->labels.count;
	weft_vec_free(&b->labels);
	weft_vec_free(&b->label_owners);
	if (!place_run_streams(b) ||
	    !place_items(&b->model->runs, b->runs.items, b->run_owners.items, b->runs.count, &promises->runs, sizeof *promises))
		return false;
	b->model->run_count = b->runs.count;
	weft_vec_free(&b->runs);
	weft_vec_free(&b->run_owners);
	return true;
}

/* A run of a promise, with the stream on which it ran. */
struct placed_run {
	struct weft_run run;
	uint16_t stream;
};

static int compare_runs(const void *a, const void *b)
{
	const struct placed_run *x = a, *y = b;
	return WEFT_ORDER(x->run.start_ns, y->run.start_ns) ?: WEFT_ORDER(x->run.end_ns, y->run.end_ns) ?:
	       WEFT_ORDER(x->stream, y->stream);
}

/* Sorts runs by time: a claim may begin a run that is older than a run on another stream. */
static bool order_runs(struct weft__build *b)
{
	struct weft_model *m = b->model;
	struct placed_run *placed = malloc((m->run_count + 1) * sizeof *placed);
	for (const struct weft_promise *p = b->promises.items; placed && p < b->promises.items + b->promises.count; p++) {
		bool is_ordered = true;
		for (uint32_t r = p->runs + 1; r < p[1].runs; r++)
			is_ordered &= m->runs[r - 1].start_ns <= m->runs[r].start_ns;
		if (is_ordered)
			continue;
		for (uint32_t r = p->runs; r < p[1].runs; r++)
			placed[r] = (struct placed_run){m->runs[r], m->run_streams ? m->run_streams[r] : 0};
		weft_sort(placed + p->runs, p[1].runs - p->runs, sizeof *placed, compare_runs);
		for (uint32_t r = p->runs; r < p[1].runs; r++) {
			m->runs[r] = placed[r].run;
			if (m->run_streams)
				m->run_streams[r] = placed[r].stream;
		}
	}
	const bool is_done = placed;
	free(placed);
	return is_done;
}

/* Sorts labels by time: a label from a state dump is older than labels that were recorded before the dump.  The error of a
 * failure stays the last label. */
static void order_labels(struct weft__build *b)
{
	struct weft_label *labels = b->model->labels;
	for (const struct weft_promise *p = b->promises.items; p < b->promises.items + b->promises.count; p++) {
		uint32_t end = p[1].labels;
		end -= end > p->labels && p->end == WEFT_END_FAILED;
		for (uint32_t i = p->labels; i < end; i++)
			for (uint32_t k = i; k > p->labels && labels[k].time_ns < labels[k - 1].time_ns; k--) {
				struct weft_label label = labels[k];
				labels[k] = labels[k - 1];
				labels[k - 1] = label;
			}
	}
}

static int compare_trace_parents(const void *x, const void *y)
{
	const struct weft_trace_parent *a = x, *b = y;
	return WEFT_ORDER(a->promise, b->promise) ?: WEFT_ORDER(a->text, b->text);
}

static int compare_intervals(const void *a, const void *b)
{
	const struct weft_interval *x = a, *y = b;
	return WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->end_ns, y->end_ns) ?: WEFT_ORDER(x->stream, y->stream) ?:
	       WEFT_ORDER(x->text, y->text);
}

static int compare_ends(const void *a, const void *b)
{
	const struct weft_interval *x = a, *y = b;
	return WEFT_ORDER(x->end_ns, y->end_ns) ?: compare_intervals(a, b);
}

/* Compares counters by the bytes of their names, which are unique. */
static int compare_counters(const void *a, const void *b)
{
	const struct weft_str *x = &((const struct weft_counter *)a)->name, *y = &((const struct weft_counter *)b)->name;
	return memcmp(x->ptr, y->ptr, x->len < y->len ? x->len : y->len) ?: WEFT_ORDER(x->len, y->len);
}

/* Raises a counter until its minimum is 0, if only its changes are known because a ring has overwritten its initial value. */
static void lift_counter(const struct weft__build *b, struct weft_counter *counter)
{
	int64_t least = 0;
	if (!b->model->trace->wrapped || b->knows_pending || counter->is_absolute)
		return;
	for (size_t k = 0; k < counter->count; k++)
		least = counter->samples[k].value < least ? counter->samples[k].value : least;
	for (size_t k = 0; k < counter->count && least < 0; k++)
		counter->samples[k].value = (int64_t)((uint64_t)counter->samples[k].value - (uint64_t)least);
}

/* Returns the name that counters with a common scale share: the part up to the last '#'. */
static struct weft_str get_scale_name(struct weft_str name)
{
	for (uint32_t i = name.len; i-- > 0;)
		if (name.ptr[i] == '#')
			return (struct weft_str){name.ptr, i};
	return name;
}

static bool finish_counters(struct weft__build *b)
{
	struct weft_model *model = b->model;
	struct weft_intern scales = {0};
	uint32_t *scale_of = malloc((b->counters.count ? b->counters.count : 1) * sizeof *scale_of);
	struct weft_counter *by_scale = calloc(b->counters.count ? b->counters.count : 1, sizeof *by_scale);
	bool ok = scale_of && by_scale;
	for (size_t i = 0; i < b->counters.count; i++)
		b->counters.items[i].name = b->priv->texts.texts.items[b->counter_texts.items[i]];
	weft_sort(b->counters.items, b->counters.count, sizeof *b->counters.items, compare_counters);
	for (size_t i = 0; i < b->counters.count && ok; i++) {
		struct weft_counter *counter = &b->counters.items[i];
		lift_counter(b, counter);
		counter->only_grows = true;
		for (size_t k = 0; k < counter->count; k++) {
			int64_t value = counter->samples[k].value;
			counter->min = value < counter->min ? value : counter->min;
			counter->max = value > counter->max ? value : counter->max;
			counter->only_grows &= k == 0 || value >= counter->samples[k - 1].value;
		}
		/* The text exists already, so weft_intern() only returns its number. */
		uint32_t text = weft_intern(&b->priv->texts, counter->name);
		b->priv->counter_of_text.items[text] = (uint32_t)i;
		scale_of[i] = weft_intern(&scales, get_scale_name(counter->name));
		if (scale_of[i] == WEFT_INTERN_FAILED) {
			ok = false;
			break;
		}
		struct weft_counter *scale = &by_scale[scale_of[i]];
		scale->min = counter->min < scale->min ? counter->min : scale->min;
		scale->max = counter->max > scale->max ? counter->max : scale->max;
	}
	for (size_t i = 0; i < b->counters.count && ok; i++) {
		struct weft_counter *counter = &b->counters.items[i];
		const struct weft_counter *scale = &by_scale[scale_of[i]];
		counter->scale_min = scale->min;
		counter->scale_max = scale->max > scale->min ? scale->max : 1;
	}
	weft_intern_finish(&scales);
	free(scale_of);
	free(by_scale);
	model->counters = b->counters.items;
	model->counter_count = b->counters.count;
	b->counters.items = NULL;
	b->counters.count = 0;
	return ok;
}

static int name_sleeps(struct weft__build *b)
{
	uint32_t text = b->sleeps.count ? weft_intern(&b->priv->texts, (struct weft_str){"sleeping", 8}) : 0;
	for (size_t i = 0; i < b->sleeps.count; i++)
		if (b->sleeps.items[i].text == WEFT_NONE)
			b->sleeps.items[i].text = text;
	return text == WEFT_INTERN_FAILED ? WEFT_ENOMEM : WEFT_OK;
}

static int compare_names(const void *a, const void *b)
{
	const struct weft_stream_info *x = *(const struct weft_stream_info *const *)a,
				      *y = *(const struct weft_stream_info *const *)b;
	const size_t least = x->name.len < y->name.len ? x->name.len : y->name.len;
	return WEFT_ORDER(x->part, y->part) ?: (least ? memcmp(x->name.ptr, y->name.ptr, least) : 0) ?:
	       WEFT_ORDER(x->name.len, y->name.len) ?: WEFT_ORDER(x->tid, y->tid);
}

static bool is_called_alike(const struct weft_stream_info *a, const struct weft_stream_info *b)
{
	return a->part == b->part && weft_str_equal(a->name, b->name);
}

static bool find_namesakes(struct weft__build *b)
{
	const struct weft_trace_info *info = b->model->trace;
	const size_t count = info ? info->stream_count : 0;
	if (count < 2)
		return true;
	const struct weft_stream_info **by_name = malloc(count * sizeof *by_name);
	if (!by_name || !(b->model->namesakes = calloc(count, sizeof *b->model->namesakes))) {
		free(by_name);
		return false;
	}
	for (size_t i = 0; i < count; i++)
		by_name[i] = &info->streams[i];
	weft_sort(by_name, count, sizeof *by_name, compare_names);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && is_called_alike(by_name[first], by_name[end]);)
			end++;
		for (size_t i = first; i < end && by_name[first]->tid != by_name[end - 1]->tid; i++)
			b->model->namesakes[by_name[i] - info->streams] = true;
	}
	free(by_name);
	return true;
}

/* Returns the stream of the thread on which the promise first ran; WEFT_NONE if it never ran. */
static uint32_t find_first_run_stream(const struct weft_model *m, uint32_t promise)
{
	const uint32_t run = m->promises[promise].runs;
	return run == m->promises[promise + 1].runs ? WEFT_NONE : m->run_streams ? m->run_streams[run] : 0;
}

/* Finds, for each thread, the promise that represents the thread: that promise runs on it. */
static bool find_threads(struct weft_model *m)
{
	const size_t count = m->namesakes ? m->trace->stream_count : 0;
	if (count == 0 || !memchr(m->namesakes, true, count))
		return true;
	if (!(m->threads = malloc(count * sizeof *m->threads)))
		return false;
	memset(m->threads, 0xff, count * sizeof *m->threads); /* WEFT_NONE */
	for (uint32_t p = WEFT_SYSTEM + 1; p < m->promise_count; p++) {
		const uint32_t stream =
		    weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD) ? find_first_run_stream(m, p) : WEFT_NONE;
		if (stream >= count)
			continue;
		/* A stream is reused after its thread has ended. */
		const bool is_other =
		    m->threads[stream] != WEFT_NONE && weft_model_name_text(m, p) != weft_model_name_text(m, m->threads[stream]);
		m->threads[stream] = is_other ? WEFT_SYSTEM : m->threads[stream] == WEFT_NONE ? p : m->threads[stream];
	}
	return true;
}

int weft__compare_await_ends(const void *a, const void *b)
{
	const struct weft_await_end *x = a, *y = b;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

int weft__compare_callbacks(const void *a, const void *b)
{
	const struct weft_callback *x = a, *y = b;
	return WEFT_ORDER(x->promise, y->promise) ?: WEFT_ORDER(x->time_ns, y->time_ns);
}

int weft__compare_places(const void *a, const void *b)
{
	const struct weft_place *x = a, *y = b;
	return WEFT_ORDER(x->time_ns, y->time_ns) ?: WEFT_ORDER(x->stream, y->stream);
}

static int compare_stacks(const void *a, const void *b)
{
	const struct weft_stack *x = a, *y = b;
	return WEFT_ORDER(x->promise, y->promise) ?: WEFT_ORDER(x->weft__order, y->weft__order);
}

/* Keeps the first call stack of each promise. */
static void finish_stacks(struct weft__build *b)
{
	size_t retained = 0;
	weft_sort(b->stacks.items, b->stacks.count, sizeof *b->stacks.items, compare_stacks);
	for (size_t i = 0; i < b->stacks.count; i++)
		if (retained == 0 || b->stacks.items[retained - 1].promise != b->stacks.items[i].promise)
			b->stacks.items[retained++] = b->stacks.items[i];
	b->stacks.count = retained;
}

/* Marks failures that are expected (weft_promise_went_wrong()).  A promise that read an error and did not itself fail has
 * handled the error.  The loop goes backwards in time, so that a promise that passed an error on is examined before the promise
 * whose error it read. */
static void mark_expected_failures(const struct weft__build *b)
{
	struct weft_promise *promises = b->promises.items;
	bool any = false, is_cancelled = false;
	uint32_t text = WEFT_NONE;
	for (size_t p = 0; p < b->promises.count; p++) {
		if (promises[p].end != WEFT_END_FAILED || (promises[p].flags & WEFT_PROMISE_NEVER_RESOLVED))
			continue;
		any = true;
		if (promises[p].failure != text)
			is_cancelled = weft_model_is_cancelled(b->model, text = promises[p].failure);
		if (is_cancelled)
			promises[p].flags |= WEFT_PROMISE_EXPECTED;
	}
	for (size_t i = any ? b->links.count : 0; i-- > 0;) {
		const struct weft_link *link = &b->links.items[i];
		if (link->kind != WEFT_LINK_READ || link->from == WEFT_SYSTEM)
			continue;
		struct weft_promise *read = &promises[link->to];
		if (weft_promise_went_wrong(read) && !weft_promise_went_wrong(&promises[link->from]) &&
		    weft__model_is_absent(b->model, read->failure))
			read->flags |= WEFT_PROMISE_EXPECTED;
	}
}

/* Moves the items of an array into the model, which then owns them. */
#define HAND_OVER(vec, member)                                                                                                   \
	do {                                                                                                                     \
		model->member##s = (vec)->items;                                                                                 \
		model->member##_count = (vec)->count;                                                                            \
		(vec)->items = NULL;                                                                                             \
		(vec)->count = (vec)->capacity = 0;                                                                              \
	} while (0)

int weft__model_finish(struct weft__build *b, bool keep_binds)
{
	struct weft_model *model = b->model;
	int status = end_open_intervals(b);
	if (status < 0 || (status = fail_unresolved(b)) < 0)
		return status;
	extend_pending(b);
	if ((status = end_promises(b)) < 0 || (status = name_sleeps(b)) < 0)
		return status;
	if (!set_stream_ends(b))
		return WEFT_ENOMEM;
	remove_dropped_links(b);
	mark_expected_failures(b);
	/* A pause is recorded when it ends, so pauses may not be in order of their start. */
	weft_sort(b->pauses.items, b->pauses.count, sizeof *b->pauses.items, compare_intervals);
	weft_sort(b->sleeps.items, b->sleeps.count, sizeof *b->sleeps.items, compare_intervals);
	if (!finish_counters(b) || !find_namesakes(b) || !group_items(b))
		return WEFT_ENOMEM;
	weft_sort(b->claims.items, b->claims.count, sizeof *b->claims.items, compare_ends);
	if (b->claims.count > 0 && !order_runs(b))
		return WEFT_ENOMEM;
	if (b->labels_unordered)
		order_labels(b);
	if (b->has_woken && !keep_binds && !simplify_binds(b))
		return WEFT_ENOMEM;
	HAND_OVER(&b->promises, promise);
	HAND_OVER(&b->links, link);
	weft_sort(b->await_ends.items, b->await_ends.count, sizeof *b->await_ends.items, weft__compare_await_ends);
	finish_stacks(b);
	weft_sort(b->places.items, b->places.count, sizeof *b->places.items, weft__compare_places);
	weft_sort(b->callbacks.items, b->callbacks.count, sizeof *b->callbacks.items, weft__compare_callbacks);
	HAND_OVER(&b->places, place);
	HAND_OVER(&b->callbacks, callback);
	HAND_OVER(&b->await_ends, await_end);
	HAND_OVER(&b->stacks, stack);
	HAND_OVER(&b->spins, spin);
	HAND_OVER(&b->earlier_starts, earlier_start);
	weft_sort(b->trace_parents.items, b->trace_parents.count, sizeof *b->trace_parents.items, compare_trace_parents);
	HAND_OVER(&b->trace_parents, trace_parent);
	HAND_OVER(&b->rounds, round);
	HAND_OVER(&b->deaths, death);
	HAND_OVER(&b->snapshot_reasons, snapshot_reason);
	HAND_OVER(&b->messages, message);
	if (!weft__transfer_finish(b))
		return WEFT_ENOMEM;
	HAND_OVER(&b->transfers, transfer);
	HAND_OVER(&b->connection_ends, end);
	HAND_OVER(&b->requests, request);
	HAND_OVER(&b->pauses, pause);
	HAND_OVER(&b->sleeps, sleep);
	HAND_OVER(&b->lulls, lull);
	HAND_OVER(&b->claims, claim);
	return find_threads(model) ? WEFT_OK : WEFT_ENOMEM;
}
