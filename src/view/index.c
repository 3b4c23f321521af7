/* index.c: builds the index of a view, once, in linear time.  SPDX-License-Identifier: ISC */
#include "view/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/background_work.h"
#include "base/large.h"
#include "base/search.h"

enum { THREAD_MIN_LINKS = 100000 /* number of links from which on a second OS thread pays */ };

static uint64_t interval_length(int64_t start, int64_t end)
{
	return end > start ? (uint64_t)end - (uint64_t)start : 0;
}

static uint64_t run_time(const struct weft_index *x, const struct weft_promise *p)
{
	return x->run_busy[p[1].runs] - x->run_busy[p->runs];
}

static bool index_runs(struct weft_index *x, const struct weft_model *model)
{
	x->run_busy = malloc((model->run_count + 1) * sizeof *x->run_busy);
	if (!x->run_busy)
		return false;
	x->run_busy[0] = 0;
	for (size_t i = 0; i < model->run_count; i++)
		x->run_busy[i + 1] = x->run_busy[i] + interval_length(model->runs[i].start_ns, model->runs[i].end_ns);
	return true;
}

/* Widens a box so that it contains promises with these smallest and largest starts and ends. */
static void widen_box(struct weft_box *box, int64_t start_ns, int64_t end_ns, int64_t last_start_ns, int64_t first_end_ns)
{
	box->start_ns = start_ns < box->start_ns ? start_ns : box->start_ns;
	box->end_ns = end_ns > box->end_ns ? end_ns : box->end_ns;
	box->last_start_ns = last_start_ns > box->last_start_ns ? last_start_ns : box->last_start_ns;
	box->first_end_ns = first_end_ns < box->first_end_ns ? first_end_ns : box->first_end_ns;
}

/* Sets the fields of one position (of a promise on its row) from the promise. */
static inline void fill_position(
    struct weft_index *x, const struct weft_model *model, const struct weft_layout *layout, uint32_t place)
{
	const uint32_t promise = layout->by_row[place];
	const struct weft_promise *p = &model->promises[promise];
	x->lives[place] = (struct weft_lifetime){p->start_ns, weft_layout_end(layout, model, promise)};
	x->boxes[0][place / WEFT__BOX_PROMISES].run_ns += run_time(x, p);
	x->important[place / 64] |= (uint64_t)weft_promise_went_wrong(p) << place % 64;
	x->never[place / 64] |= (uint64_t)(p->flags & WEFT_PROMISE_NEVER_RESOLVED ? 1 : 0) << place % 64;
}

/* Fills the positions in the order of promise numbers, in which the promises lie in memory, because the promises take much more
 * memory than the positions.  The order of promises on a row is nearly the same; a promise that is late on its row is filled
 * together with the next one. */
static bool fill_positions(struct weft_index *x, const struct weft_model *model, const struct weft_layout *layout)
{
	uint32_t *next = malloc(((size_t)layout->row_count + 1) * sizeof *next); /* for each row: next position to fill */
	if (!next)
		return false;
	memcpy(next, layout->row_begin, layout->row_count * sizeof *next);
	for (uint32_t p = 0; p < model->promise_count; p++) {
		const uint32_t row = layout->rows[p];
		if (row == WEFT_NONE)
			continue;
		while (next[row] < layout->row_begin[row + 1] && layout->by_row[next[row]] <= p)
			fill_position(x, model, layout, next[row]++);
	}
	free(next);
	return true;
}

static bool index_promises(struct weft_index *x, const struct weft_model *model, const struct weft_layout *layout)
{
	size_t n = layout->row_count ? layout->row_begin[layout->row_count] : 0;
	x->count = n;
	x->lives = weft_large_alloc(n + 1, sizeof *x->lives);
	x->busy = weft_large_alloc(n + 1, sizeof *x->busy);
	x->important = calloc(n / 64 + 1, sizeof *x->important);
	x->never = calloc(n / 64 + 1, sizeof *x->never);
	size_t boxes = (n + WEFT__BOX_PROMISES - 1) / WEFT__BOX_PROMISES;
	x->boxes[0] = calloc(boxes + 1, sizeof *x->boxes[0]);
	x->box_count[0] = boxes;
	x->box_levels = 1;
	if (!x->lives || !x->busy || !x->important || !x->never || !x->boxes[0] || !fill_positions(x, model, layout))
		return false;
	x->lives[n] = (struct weft_lifetime){0};
	x->busy[0] = 0;
	for (uint32_t row = 0; row < layout->row_count; row++)
		for (uint32_t i = layout->row_begin[row]; i < layout->row_begin[row + 1]; i++) {
			const struct weft_lifetime life = x->lives[i];
			const uint64_t alive = interval_length(life.start_ns, life.end_ns);
			struct weft_box *box = &x->boxes[0][i / WEFT__BOX_PROMISES];
			x->busy[i + 1] = x->busy[i] + alive;
			if (i % WEFT__BOX_PROMISES == 0)
				*box = (struct weft_box){.start_ns = life.start_ns,
				    .end_ns = life.end_ns,
				    .last_start_ns = life.start_ns,
				    .first_end_ns = life.end_ns,
				    .run_ns = box->run_ns,
				    .first_row = row};
			box->last_row = row;
			widen_box(box, life.start_ns, life.end_ns, life.start_ns, life.end_ns);
			box->alive_ns += alive;
			box->important |= x->important[i / 64] >> i % 64 & 1;
		}
	return true;
}

/* Lists the promises that went wrong; call it after index_promises(). */
static bool index_went_wrong(struct weft_index *x)
{
	size_t words = x->count / 64 + 1, count = 0;
	x->important_before = malloc(words * sizeof *x->important_before);
	for (size_t w = 0; x->important_before && w < words; w++) {
		x->important_before[w] = (uint32_t)count;
		count += (size_t)__builtin_popcountll(x->important[w]);
	}
	x->went_wrong = malloc((count + 1) * sizeof *x->went_wrong);
	if (!x->important_before || !x->went_wrong)
		return false;
	struct weft_lifetime *next = x->went_wrong;
	for (size_t w = 0; w < words; w++)
		for (uint64_t bits = x->important[w]; bits; bits &= bits - 1) {
			size_t at = w * 64 + (size_t)__builtin_ctzll(bits);
			*next++ = x->lives[at];
		}
	return true;
}

static bool index_boxes(struct weft_index *x)
{
	while (x->box_count[x->box_levels - 1] > 1) {
		int l = x->box_levels;
		size_t below = x->box_count[l - 1];
		x->box_count[l] = (below + WEFT__BOX_FAN - 1) / WEFT__BOX_FAN;
		x->boxes[l] = malloc(x->box_count[l] * sizeof *x->boxes[l]);
		if (!x->boxes[l])
			return false;
		x->box_levels++;
		for (size_t i = 0; i < below; i++) {
			const struct weft_box *from = &x->boxes[l - 1][i];
			struct weft_box *to = &x->boxes[l][i / WEFT__BOX_FAN];
			if (i % WEFT__BOX_FAN == 0) {
				*to = *from;
				continue;
			}
			to->last_row = from->last_row;
			widen_box(to, from->start_ns, from->end_ns, from->last_start_ns, from->first_end_ns);
			to->alive_ns += from->alive_ns;
			to->run_ns += from->run_ns;
			to->important |= from->important;
		}
	}
	return true;
}

enum weft_arrow weft__arrow_class(const struct weft_model *model, const struct weft_link *link)
{
	switch (link->kind) {
	case WEFT_LINK_RESOLVE: return WEFT_ARROW_RESOLVE;
	case WEFT_LINK_READ:
		return weft_promise_went_wrong(&model->promises[link->to]) ? WEFT_ARROW_READ_FAILED : WEFT_ARROW_READ;
	case WEFT_LINK_AWAIT: return WEFT_ARROW_AWAIT;
	default: return WEFT_ARROW_SIGNAL;
	}
}

bool weft__is_inside_fold(const struct weft_index *x, const struct weft_link *link)
{
	return x->fold_of && x->fold_of[link->from] != WEFT_NONE && x->fold_of[link->from] == x->fold_of[link->to];
}

/* Actions of the system promise, and links of a promise to itself, are not drawn. */
bool weft__is_arrow(const struct weft_layout *layout, const struct weft_link *link)
{
	return link->from != link->to && link->from != WEFT_SYSTEM && link->to != WEFT_SYSTEM && link->from != WEFT_NONE &&
	       link->to != WEFT_NONE && layout->rows[link->from] != WEFT_NONE && layout->rows[link->to] != WEFT_NONE;
}

static bool index_folds(struct weft_index *x, const struct weft_model *model, const struct weft_layout *layout)
{
	if (layout->fold_count == 0 || (!layout->folds[0].is_track && !layout->folds[0].is_group))
		return true;
	x->fold_of = malloc(model->promise_count * sizeof *x->fold_of);
	if (!x->fold_of)
		return false;
	memset(x->fold_of, 0xff, model->promise_count * sizeof *x->fold_of); /* WEFT_NONE */
	for (uint32_t f = 0; f < layout->fold_count; f++)
		for (uint32_t k = 0; k < layout->folds[f].count; k++)
			x->fold_of[layout->folded[layout->folds[f].first + k]] = f;
	return true;
}

static bool make_list(struct weft_arrow_list *list, const struct weft_model *model, size_t count)
{
	if (count == 0)
		return true;
	list->links = weft_large_alloc(count + 1, sizeof *list->links);
	return list->links &&
	       weft__slices_create(&list->slices, model->links[0].time_ns, model->links[model->link_count - 1].time_ns, count);
}

/* Adds an arrow to the list if is_in.  The function has no branch, because a branch predictor would often be wrong here.  The
 * next call overwrites an arrow that was not added. */
static inline void add_arrow(struct weft_arrow_list *list, size_t link, int64_t time_ns, bool is_in)
{
	weft__slices_put(&list->slices, list->count, time_ns, is_in);
	list->links[list->count] = (uint32_t)link;
	list->count += is_in;
}

/* Returns a bit for each promise, set if the promise has a row.  The bits fit in a CPU's cache, while the rows do not. */
static uint64_t *placed_bits(const struct weft_model *model, const struct weft_layout *layout)
{
	uint64_t *bits = calloc(model->promise_count / 64 + 1, sizeof *bits);
	for (size_t p = 0; bits && p < model->promise_count; p++)
		bits[p / 64] |= (uint64_t)(layout->rows[p] != WEFT_NONE) << p % 64;
	return bits;
}

static bool has_bit(const uint64_t *bits, uint32_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

enum { PREFETCH_DISTANCE = 16 /* number of items ahead of the current item that are prefetched */ };

/* Numbers of the arrow lists of an index: first the lists of arrows between folds, then those of arrows inside of folds. */
enum { INSIDE_FOLDS = WEFT_ARROWS, LISTS = 2 * WEFT_ARROWS };

/* Lists those arrows of `whole` that have both ends in this layout. */
static bool restrict_arrows(struct weft_index *x, struct weft_arrow_list *lists, const struct weft_model *model,
    const struct weft_layout *layout, const struct weft_index *whole)
{
	uint64_t *placed = placed_bits(model, layout);
	bool done = placed;
	for (int a = 0; a < WEFT_ARROWS && done; a++) {
		const struct weft_arrow_list *all = &whole->arrows[a];
		done = make_list(&lists[a], model, all->count) &&
		       make_list(&lists[INSIDE_FOLDS + a], model, x->fold_of ? all->count : 0);
		for (size_t i = 0; i < all->count && done; i++) {
			const struct weft_link *link = &model->links[all->links[i]];
			if (i + PREFETCH_DISTANCE < all->count)
				__builtin_prefetch(&model->links[all->links[i + PREFETCH_DISTANCE]]);
			const bool is_in = (int)has_bit(placed, link->from) & (int)has_bit(placed, link->to);
			if (x->fold_of && is_in && weft__is_inside_fold(x, link))
				add_arrow(&lists[INSIDE_FOLDS + a], all->links[i], link->time_ns, true);
			else
				add_arrow(&lists[a], all->links[i], link->time_ns, is_in);
		}
	}
	free(placed);
	return done;
}

static bool list_arrows(
    struct weft_index *x, struct weft_arrow_list *lists, const struct weft_model *model, const struct weft_layout *layout)
{
	enum { NONE = LISTS };
	uint8_t *class = malloc(model->link_count + 1);
	size_t count[LISTS + 1] = {0};
	bool done = class;
	for (size_t i = 0; i < model->link_count && done; i++) {
		const struct weft_link *link = &model->links[i];
		int arrow = weft__is_arrow(layout, link) ? (int)weft__arrow_class(model, link) : NONE;
		class[i] = (uint8_t)(arrow < NONE && weft__is_inside_fold(x, link) ? INSIDE_FOLDS + arrow : arrow);
		count[class[i]]++;
	}
	for (int l = 0; l < LISTS && done; l++)
		done = make_list(&lists[l], model, count[l]);
	for (size_t i = 0; done && i < model->link_count; i++)
		if (class[i] < NONE)
			add_arrow(&lists[class[i]], i, model->links[i].time_ns, true);
	free(class);
	return done;
}

struct arrow_work {
	struct weft_index *x;
	const struct weft_model *model;
	const struct weft_layout *layout;
	const struct weft_index *whole;
	bool done;
};

/* The lists are filled on the stack and not in the index, because other threads write nearby fields of the index, which would
 * slow this thread down. */
static void index_arrows(void *ctx)
{
	struct arrow_work *w = ctx;
	struct weft_arrow_list lists[LISTS] = {0};
	w->done =
	    index_folds(w->x, w->model, w->layout) && (w->whole ? restrict_arrows(w->x, lists, w->model, w->layout, w->whole)
								: list_arrows(w->x, lists, w->model, w->layout));
	for (int l = 0; l < LISTS && w->done; l++)
		weft__slices_end(&lists[l].slices);
	memcpy(w->x->arrows, lists, sizeof w->x->arrows);
	memcpy(w->x->inside, lists + INSIDE_FOLDS, sizeof w->x->inside);
}

struct bands {
	size_t count;
	const uint32_t *by_stream;
};

static size_t band_of(const struct bands *bands, const struct weft_interval *interval)
{
	return bands->count > 1 ? bands->by_stream[interval->stream] : 0;
}

/* Buffers in which intervals are stored. */
struct interval_buffers {
	int64_t *times;
	uint64_t *busy;
	uint32_t *source; /* number of the source of each interval; NULL if it is not needed */
};

/* Stores the intervals of each band, and cuts off overlaps with earlier intervals, so that the intervals of a band never
 * overlap, whatever the trace contains.  Returns false without memory. */
static bool index_intervals(struct weft_intervals *tracks, const struct bands *bands, const struct weft_interval *items,
    size_t count, const struct interval_buffers *buffers)
{
	int64_t *times = buffers->times;
	uint64_t *busy = buffers->busy;
	size_t *begin = calloc(bands->count + 2, sizeof *begin);
	if (!begin)
		return false;
	for (size_t i = 0; i < count; i++)
		if (band_of(bands, &items[i]) < bands->count)
			begin[band_of(bands, &items[i]) + 1]++;
	for (size_t b = 0; b < bands->count; b++) {
		begin[b + 1] += begin[b];
		tracks[b] = (struct weft_intervals){
		    .start = times + 2 * begin[b], .end = times + 2 * begin[b] + 1, .stride = 2, .busy = busy + begin[b] + b};
		busy[begin[b] + b] = 0;
	}
	for (size_t i = 0; i < count; i++) {
		size_t b = band_of(bands, &items[i]);
		if (b >= bands->count)
			continue;
		size_t n = tracks[b].count, at = begin[b] + n;
		int64_t until = n > 0 ? times[2 * at - 1] : INT64_MIN;
		int64_t from = items[i].start_ns > until ? items[i].start_ns : until;
		if (items[i].end_ns < from || (items[i].end_ns == from && from == until))
			continue;
		times[2 * at] = from;
		times[2 * at + 1] = items[i].end_ns;
		busy[at + b + 1] = busy[at + b] + interval_length(from, items[i].end_ns);
		if (buffers->source)
			buffers->source[at] = (uint32_t)i;
		tracks[b].count++;
	}
	free(begin);
	return true;
}

static bool index_sleeps(struct weft_index *x, const struct weft_model *model, const struct weft_layout *layout)
{
	/* A group of rows has no OS thread of its own. */
	size_t bands = layout->band_count > 1 && layout->rows_by == WEFT_ROWS_BY_THREAD ? layout->band_count : 1;
	bool merged = bands == 1 && model->trace->stream_count > 1;
	const struct weft_interval *sleeps = merged ? model->lulls : model->sleeps;
	size_t sleep_count = merged ? model->lull_count : model->sleep_count;
	size_t total = sleep_count + model->pause_count;
	uint32_t *band_of_stream = bands > 1 ? malloc(65536 * sizeof *band_of_stream) : NULL;
	x->band_count = bands;
	x->sleeps = calloc(bands, sizeof *x->sleeps);
	x->pauses = calloc(bands, sizeof *x->pauses);
	x->interval_times = malloc((total + 1) * 2 * sizeof *x->interval_times);
	x->interval_busy = malloc((total + 2 * bands + 2) * sizeof *x->interval_busy);
	x->pause_source = malloc((model->pause_count + 1) * sizeof *x->pause_source);
	bool done =
	    (band_of_stream || bands == 1) && x->sleeps && x->pauses && x->interval_times && x->interval_busy && x->pause_source;
	if (done) {
		if (bands > 1)
			memset(band_of_stream, 0xff, 65536 * sizeof *band_of_stream);
		for (size_t b = 0; bands > 1 && b < bands; b++)
			band_of_stream[layout->bands[b].stream] = (uint32_t)b;
		const struct bands all = {bands, band_of_stream};
		const struct interval_buffers for_sleeps = {x->interval_times, x->interval_busy, NULL},
					      for_pauses = {x->interval_times + 2 * sleep_count,
						  x->interval_busy + sleep_count + bands + 1, x->pause_source};
		done = index_intervals(x->sleeps, &all, sleeps, sleep_count, &for_sleeps) &&
		       index_intervals(x->pauses, &all, model->pauses, model->pause_count, &for_pauses);
	}
	free(band_of_stream);
	return done;
}

static void widen_envelope(struct weft_envelope *e, int64_t min, int64_t max)
{
	e->min = min < e->min ? min : e->min;
	e->max = max > e->max ? max : e->max;
}

static bool index_envelopes(struct weft_counter_index *index, const struct weft_counter *counter)
{
	size_t below = counter->count;
	for (int l = 0; l < WEFT__ENVELOPE_LEVELS; l++) {
		const struct weft_envelope *from = l > 0 ? index->level[l - 1] : NULL;
		struct weft_envelope *to = index->level[l] = malloc(((below >> WEFT__ENVELOPE_BITS) + 1) * sizeof *to);
		if (!to)
			return false;
		for (size_t i = 0; i < below; i++) {
			const int64_t v = from ? 0 : counter->samples[i].value;
			const struct weft_envelope e = from ? from[i] : (struct weft_envelope){v, v};
			if (i % (1u << WEFT__ENVELOPE_BITS) == 0)
				to[i >> WEFT__ENVELOPE_BITS] = e;
			else
				widen_envelope(&to[i >> WEFT__ENVELOPE_BITS], e.min, e.max);
		}
		below = (below + (1u << WEFT__ENVELOPE_BITS) - 1) >> WEFT__ENVELOPE_BITS;
	}
	return true;
}

static bool index_counters(struct weft_index *x, const struct weft_model *model)
{
	x->counters = calloc(model->counter_count + 1, sizeof *x->counters);
	if (!x->counters)
		return false;
	for (size_t c = 0; c < model->counter_count; c++) {
		const struct weft_counter *counter = &model->counters[c];
		struct weft_slices *slices = &x->counters[c].slices;
		if (counter->count > 0 && !weft__slices_create(slices, counter->samples[0].time_ns,
					      counter->samples[counter->count - 1].time_ns, counter->count))
			return false;
		for (size_t i = 0; i < counter->count; i++)
			weft__slices_put(slices, i, counter->samples[i].time_ns, true);
		weft__slices_end(slices);
		if (!index_envelopes(&x->counters[c], counter))
			return false;
	}
	return true;
}

static bool index_model(struct weft_index *x, const struct weft_model *model, const struct weft_index *whole)
{
	x->is_subset = whole;
	if (!whole)
		return index_runs(x, model) && index_counters(x, model);
	x->run_busy = whole->run_busy;
	x->counters = whole->counters;
	return true;
}

int weft__index_create(
    struct weft_index **out, const struct weft_model *model, const struct weft_layout *layout, const struct weft_index *whole)
{
	struct weft_index *x = calloc(1, sizeof *x);
	if (!x)
		return WEFT_ENOMEM;
	struct arrow_work arrows = {x, model, layout, whole, false};
	struct weft_background_work meanwhile = {.work = index_arrows, .ctx = &arrows};
	if (model->link_count >= THREAD_MIN_LINKS)
		weft_background_work_start(&meanwhile);
	bool done = index_model(x, model, whole) && index_promises(x, model, layout) && index_went_wrong(x) && index_boxes(x) &&
		    weft__sums_create(&x->sums, x, layout) && index_sleeps(x, model, layout);
	weft_background_work_finish(&meanwhile);
	if (!done || !arrows.done || weft__fold_index_create(&x->folds, model, layout) < 0) {
		weft__index_destroy(x, model);
		return WEFT_ENOMEM;
	}
	*out = x;
	return WEFT_OK;
}

void weft__index_destroy(struct weft_index *x, const struct weft_model *model)
{
	if (!x)
		return;
	for (int l = 0; l < WEFT__BOX_LEVELS; l++)
		free(x->boxes[l]);
	free(x->sums.sums);
	for (int a = 0; a < WEFT_ARROWS; a++) {
		free(x->arrows[a].links);
		weft__slices_free(&x->arrows[a].slices);
		free(x->inside[a].links);
		weft__slices_free(&x->inside[a].slices);
	}
	free(x->fold_of);
	for (size_t c = 0; x->counters && !x->is_subset && c < model->counter_count; c++) {
		for (int l = 0; l < WEFT__ENVELOPE_LEVELS; l++)
			free(x->counters[c].level[l]);
		weft__slices_free(&x->counters[c].slices);
	}
	if (!x->is_subset) {
		free(x->counters);
		free(x->run_busy);
	}
	weft__fold_index_destroy(x->folds);
	free(x->lives);
	free(x->busy);
	free(x->important);
	free(x->important_before);
	free(x->went_wrong);
	free(x->never);
	free(x->sleeps);
	free(x->pauses);
	free(x->interval_times);
	free(x->interval_busy);
	free(x->pause_source);
	free(x);
}

size_t weft__intervals_end_after(const struct weft_intervals *t, size_t i, int64_t time_ns)
{
	return WEFT_FIND_FIRST_NEAR(k, i, t->count, weft__intervals_end(t, k) > time_ns);
}

size_t weft__intervals_start_from(const struct weft_intervals *t, size_t i, int64_t time_ns)
{
	return WEFT_FIND_FIRST_NEAR(k, i, t->count, weft__intervals_start(t, k) >= time_ns);
}

size_t weft__counter_from(const struct weft_counter *counter, const struct weft_counter_index *index, int64_t time_ns)
{
	const struct weft_index_range at = weft__slices_find(&index->slices, time_ns);
	return WEFT_FIND_FIRST(k, at.first, at.end, counter->samples[k].time_ns >= time_ns);
}

size_t weft__arrow_from(const struct weft_model *model, const struct weft_arrow_list *list, int64_t time_ns)
{
	const struct weft_index_range at = weft__slices_find(&list->slices, time_ns);
	return WEFT_FIND_FIRST(k, at.first, at.end, model->links[list->links[k]].time_ns >= time_ns);
}

uint64_t weft__intervals_covered(const struct weft_intervals *t, size_t i, size_t end, int64_t from_ns, int64_t to_ns)
{
	if (i >= end)
		return 0;
	uint64_t sum = t->busy[end] - t->busy[i];
	int64_t first = weft__intervals_start(t, i), last = weft__intervals_end(t, end - 1);
	if (first < from_ns)
		sum -= interval_length(first, from_ns);
	if (last > to_ns)
		sum -= interval_length(to_ns, last);
	return sum;
}

struct weft_envelope weft__counter_envelope(
    const struct weft_counter *counter, const struct weft_counter_index *index, size_t i, size_t end)
{
	struct weft_envelope e = {counter->samples[i].value, counter->samples[i].value};
	while (i < end) {
		const struct weft_envelope *largest = NULL;
		size_t step = 1;
		for (int l = 0; l < WEFT__ENVELOPE_LEVELS && i % (step << WEFT__ENVELOPE_BITS) == 0 &&
				end - i >= step << WEFT__ENVELOPE_BITS;
		     l++) {
			step <<= WEFT__ENVELOPE_BITS;
			largest = &index->level[l][i / step];
		}
		const int64_t v = largest ? 0 : counter->samples[i].value;
		widen_envelope(&e, largest ? largest->min : v, largest ? largest->max : v);
		i += step;
	}
	return e;
}

/* Returns the time at which a signal was sent. */
static int64_t signal_sent_ns(const struct weft_model *model, const struct weft_link *link)
{
	const struct weft_transfer *all = model->transfers;
	const size_t count = model->transfer_count;
	size_t i =
	    WEFT_FIND_FIRST(k, 0, count, all[k].to > link->to || (all[k].to == link->to && all[k].received_ns >= link->time_ns));
	for (; i < count && all[i].to == link->to && all[i].received_ns == link->time_ns; i++)
		if (all[i].by == link->from)
			return all[i].sent_ns;
	return link->time_ns;
}

struct weft_arrow_ends weft__arrow_ends(const struct weft_model *model, const struct weft_link *link)
{
	const struct weft_promise *from = &model->promises[link->from], *to = &model->promises[link->to];
	int64_t t = link->time_ns;
	int64_t from_end = from->end_ns < t ? from->end_ns : t, to_end = to->end_ns < t ? to->end_ns : t;
	switch (link->kind) {
	case WEFT_LINK_RESOLVE: return (struct weft_arrow_ends){from_end, t, link->from, link->to};
	case WEFT_LINK_READ: return (struct weft_arrow_ends){to_end, t, link->to, link->from};
	case WEFT_LINK_AWAIT: return (struct weft_arrow_ends){t, to_end, link->from, link->to};
	default: return (struct weft_arrow_ends){signal_sent_ns(model, link), t, link->from, link->to};
	}
}
