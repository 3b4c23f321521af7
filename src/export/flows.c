/* flows.c: chooses the links that become arrows in Perfetto (flows.h).
 * SPDX-License-Identifier: ISC */
#include "export/flows.h"

#include <stdlib.h>
#include <string.h>

/* Maximum number of arrows from a promise whose result was read; more arrows would use up the size limit of the promise's
 * set. */
enum { MAX_FAN_OUT = 100 };

/* Disjoint sets of slices (union-find): first the slices of promises, then their runs.  The entry of a root is minus the size of
 * its set; other entries are the number of a parent nearer to the root. */
struct sets {
	int32_t *parent_or_size;
};

static uint32_t root_of(const struct sets *sets, uint32_t slice)
{
	while (sets->parent_or_size[slice] >= 0) {
		const int32_t above = sets->parent_or_size[slice];
		if (sets->parent_or_size[above] >= 0)
			sets->parent_or_size[slice] = sets->parent_or_size[above];
		slice = (uint32_t)above;
	}
	return slice;
}

/* Unites the sets of two slices.  Returns the size of the united set, or 0 if that set would be too large. */
static uint32_t unite_sets(const struct sets *sets, uint32_t a, uint32_t b)
{
	a = root_of(sets, a);
	b = root_of(sets, b);
	const int32_t size = a == b ? -sets->parent_or_size[a] : -sets->parent_or_size[a] - sets->parent_or_size[b];
	if (size > WEFT__MAX_FLOW_SLICES)
		return 0;
	const uint32_t large = sets->parent_or_size[a] <= sets->parent_or_size[b] ? a : b, small = large == a ? b : a;
	if (large != small) {
		sets->parent_or_size[large] = -size;
		sets->parent_or_size[small] = (int32_t)large;
	}
	return (uint32_t)size;
}

uint32_t weft__run_at(const struct weft_model *model, uint32_t promise, int64_t time_ns)
{
	const uint32_t begin = model->promises[promise].runs, end = model->promises[promise + 1].runs;
	uint32_t low = begin, high = end;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (model->runs[middle].end_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < end && model->runs[low].start_ns <= time_ns ? low : WEFT_NONE;
}

static bool is_in(const uint64_t *only, uint32_t promise)
{
	return !only || only[promise / 64] >> promise % 64 & 1;
}

/* Returns whether a link should be an arrow, apart from the size limit of sets. */
static bool is_wanted(const struct weft_model *m, const struct weft_link *link, enum weft_flows which, const uint64_t *only)
{
	return which != WEFT_FLOWS_NONE && link->kind != WEFT_LINK_AWAIT &&
	       (link->kind != WEFT_LINK_RESOLVE || which == WEFT_FLOWS_ALL) && link->from != link->to &&
	       link->from != WEFT_SYSTEM && link->to != WEFT_SYSTEM && is_in(only, link->from) && is_in(only, link->to);
}

static bool is_alive(const struct weft_model *m, uint32_t promise, int64_t time_ns)
{
	const struct weft_promise *p = &m->promises[promise];
	return p->start_ns <= time_ns && (p->end == WEFT_END_PENDING || time_ns <= p->end_ns);
}

/* Chooses arrows.  An arrow of a read connects the slice of the input with a run of the reader; other arrows are between two
 * marks, and connect no slices. */
static void choose_arrows(struct weft__flows *f, const struct sets *sets, uint32_t *fan_out, const struct weft_model *m,
    enum weft_flows which, const uint64_t *only)
{
	for (uint32_t i = 0; i < m->link_count; i++) {
		const struct weft_link *link = &m->links[i];
		if (link->kind == WEFT_LINK_RESOLVE && f->resolved_by[link->to] == WEFT_NONE)
			f->resolved_by[link->to] = link->from;
		if (!is_wanted(m, link, which, only))
			continue;
		/* If the times are equal, Perfetto's importer may read an end before a start. */
		if (m->promises[link->to].start_ns >= link->time_ns || !is_alive(m, link->from, link->time_ns) ||
		    (link->kind != WEFT_LINK_READ && !is_alive(m, link->to, link->time_ns))) {
			f->left_out++;
			continue;
		}
		if (link->kind == WEFT_LINK_READ) {
			const uint32_t run = weft__run_at(m, link->from, link->time_ns);
			uint32_t size = 2; /* size of a set with a slice and its mark */
			if (fan_out[link->to] == MAX_FAN_OUT ||
			    (weft__flows_enters_run(m, link, run) &&
				!(size = unite_sets(sets, link->to, (uint32_t)m->promise_count + run)))) {
				f->left_out++;
				continue;
			}
			fan_out[link->to]++;
			f->largest = size > f->largest ? size : f->largest;
		}
		f->arrow_bits[i / 64] |= UINT64_C(1) << i % 64;
	}
}

/* Converts counts, each stored one index later, into offsets. */
static void sum_up(uint32_t *begin, size_t count)
{
	for (size_t i = 0; i < count; i++)
		begin[i + 1] += begin[i];
}

int weft__flows_find(struct weft__flows *out, const struct weft_model *m, enum weft_flows which, const uint64_t *only)
{
	const size_t promises = m->promise_count, slices = promises + m->run_count;
	if (slices > INT32_MAX)
		which = WEFT_FLOWS_NONE;
	struct sets sets = {which != WEFT_FLOWS_NONE ? malloc((slices + 1) * sizeof *sets.parent_or_size) : NULL};
	uint32_t *fan_out = calloc(promises + 2, sizeof *fan_out);
	*out = (struct weft__flows){
	    .from_begin = calloc(promises + 2, sizeof *out->from_begin),
	    .to_begin = calloc(promises + 2, sizeof *out->to_begin),
	    .arrow_bits = calloc(m->link_count / 64 + 1, sizeof *out->arrow_bits),
	    .resolved_by = malloc((promises + 1) * sizeof *out->resolved_by),
	};
	bool done = fan_out && out->from_begin && out->to_begin && out->arrow_bits && out->resolved_by &&
		    (sets.parent_or_size || which == WEFT_FLOWS_NONE);
	if (done) {
		memset(out->resolved_by, 0xff, (promises + 1) * sizeof *out->resolved_by); /* WEFT_NONE */
		for (size_t i = 0; sets.parent_or_size && i < slices; i++)
			sets.parent_or_size[i] = -1;
		choose_arrows(out, &sets, fan_out, m, which, only);
		for (uint32_t i = 0; i < m->link_count; i++) {
			const bool is_arrow = weft__flows_is_arrow(out, i);
			out->from_begin[m->links[i].from + 1] += is_arrow || m->links[i].kind == WEFT_LINK_AWAIT;
			out->to_begin[m->links[i].to + 1] += is_arrow;
		}
		sum_up(out->from_begin, promises + 1);
		sum_up(out->to_begin, promises + 1);
		out->by_from = malloc(((size_t)out->from_begin[promises] + 1) * sizeof *out->by_from);
		out->by_to = malloc(((size_t)out->to_begin[promises] + 1) * sizeof *out->by_to);
		done = out->by_from && out->by_to;
	}
	/* From here on, fan_out has the index of each promise's next link. */
	for (int side = 0; done && side < 2; side++) {
		memcpy(fan_out, side ? out->to_begin : out->from_begin, promises * sizeof *fan_out);
		for (uint32_t i = 0; i < m->link_count; i++) {
			const bool is_arrow = weft__flows_is_arrow(out, i);
			if (side && is_arrow)
				out->by_to[fan_out[m->links[i].to]++] = i;
			else if (!side && (is_arrow || m->links[i].kind == WEFT_LINK_AWAIT))
				out->by_from[fan_out[m->links[i].from]++] = i;
		}
	}
	free(sets.parent_or_size);
	free(fan_out);
	if (!done)
		weft__flows_finish(out);
	return done ? WEFT_OK : WEFT_ENOMEM;
}

void weft__flows_finish(struct weft__flows *f)
{
	free(f->by_from);
	free(f->from_begin);
	free(f->by_to);
	free(f->to_begin);
	free(f->arrow_bits);
	free(f->resolved_by);
	*f = (struct weft__flows){0};
}
