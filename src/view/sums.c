/* sums.c: built once with the index.  SPDX-License-Identifier: ISC */
#include "view/sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/large.h"
#include "view/index.h"

#define MOST_SLICES 2048
#define LEAST_ROWS_BITS 4 /* of a block */
#define LEAST_BLOCKS 256  /* with fewer there are too few rows in a strip */
#define PROMISE_BYTES 32  /* at most */
#define PLACE_BITS 16     /* of a time in its slice */
#define WEIGHT 256        /* of a promise that is alive */

/* Of one block: what begins and ends in the slices. */
struct block {
	uint64_t *within; /* of slices that are covered in part, 2^PLACE_BITS * WEIGHT a row */
	uint64_t *whole;  /* differences: of those that are covered */
	uint32_t *count;
};

static uint64_t place_of(const struct weft_sums *s, int64_t time_ns)
{
	const uint64_t end = (uint64_t)s->slices << PLACE_BITS, ns = time_ns > 0 ? (uint64_t)time_ns : 0;
	const uint64_t at =
	    s->slice_shift < PLACE_BITS ? ns << (PLACE_BITS - s->slice_shift) : ns >> (s->slice_shift - PLACE_BITS);
	return at < end ? at : end - 1;
}

static void put(struct block *b, uint64_t from, uint64_t to, uint64_t weight)
{
	const size_t first = from >> PLACE_BITS, last = to >> PLACE_BITS;
	if (first == last) {
		b->within[first] += (to - from) * weight;
		return;
	}
	b->within[first] += (((uint64_t)(first + 1) << PLACE_BITS) - from) * weight;
	b->within[last] += (to & ((1u << PLACE_BITS) - 1)) * weight;
	b->whole[first + 1] += weight;
	b->whole[last] -= weight;
}

static uint64_t run_weight(const struct weft_box *box)
{
	const double part = box->alive_ns > 0 ? (double)box->run_ns / (double)box->alive_ns : 0;
	return (uint64_t)((part < 1 ? part : 1) * WEIGHT);
}

static void put_promise(const struct weft_sums *s, struct block b[WEFT_SUMS], const struct weft_index *x, size_t i, uint64_t run)
{
	const uint64_t from = place_of(s, x->lives[i].start_ns), end = place_of(s, x->lives[i].end_ns),
		       to = end > from ? end : from;
	const bool is_short = (to - from) * s->unit >> PLACE_BITS == 0;
	put(&b[WEFT_SUM_ALIVE], from, to, WEIGHT);
	b[WEFT_SUM_ALIVE].count[from >> PLACE_BITS] += is_short;
	if (run > 0)
		put(&b[WEFT_SUM_RUN], from, to, run);
	if (!(x->important[i / 64] >> i % 64 & 1))
		return;
	b[WEFT_SUM_WRONG_ENDS].count[to >> PLACE_BITS]++;
	if (!(x->never[i / 64] >> i % 64 & 1))
		return;
	put(&b[WEFT_SUM_NEVER], from, to, WEIGHT);
	b[WEFT_SUM_NEVER].count[from >> PLACE_BITS] += is_short;
}

/* And empties the block for the next one. */
static void add_up(const struct weft_sums *s, struct block *b, const uint32_t *above, uint32_t *sums)
{
	const uint64_t whole_row = (uint64_t)WEIGHT << PLACE_BITS;
	uint64_t sum = 0, whole = 0;
	uint32_t count = 0;
	sums[0] = above[0];
	for (size_t k = 0; k < s->slices; k++) {
		whole += b->whole[k];
		sum += b->within[k] + (whole << PLACE_BITS);
		count += b->count[k];
		sums[k + 1] = above[k + 1] + (uint32_t)(sum * s->unit / whole_row) + count;
		b->whole[k] = b->within[k] = b->count[k] = 0;
	}
}

/* False: they would not be worth their memory. */
static bool choose(struct weft_sums *s, const struct weft_index *x, const struct weft_layout *layout)
{
	const struct weft_box *all = x->count > 0 ? &x->boxes[x->box_levels - 1][0] : NULL;
	const size_t bytes = WEFT_SUMS * sizeof *s->sums;
	if (!all || all->end_ns <= 0 || layout->row_count < LEAST_BLOCKS << LEAST_ROWS_BITS)
		return false;
	while ((uint64_t)all->end_ns >> s->slice_shift >= MOST_SLICES)
		s->slice_shift++;
	s->slices = (size_t)((uint64_t)all->end_ns >> s->slice_shift) + 1;
	for (s->block_shift = LEAST_ROWS_BITS; layout->row_count >> s->block_shift >= LEAST_BLOCKS; s->block_shift++) {
		s->blocks = ((layout->row_count - 1) >> s->block_shift) + 1;
		if ((s->blocks + 1) * bytes * (s->slices + 1) <= PROMISE_BYTES * x->count)
			return true;
	}
	return false;
}

bool weft__sums_create(struct weft_sums *sums, const struct weft_index *x, const struct weft_layout *layout)
{
	struct weft_sums s = {.unit = layout->row_count < 1u << 19 ? 256 : 16};
	struct block blocks[WEFT_SUMS];
	if (!choose(&s, x, layout))
		return true;
	const size_t wide = s.slices + 1;
	uint64_t *room = calloc(WEFT_SUMS * wide, 2 * sizeof *blocks->within + sizeof *blocks->count);
	s.sums = weft_large_alloc((s.blocks + 1) * WEFT_SUMS * wide, sizeof *s.sums);
	if (!room || !s.sums) {
		free(room);
		free(s.sums);
		return false;
	}
	for (size_t w = 0; w < WEFT_SUMS; w++)
		blocks[w] = (struct block){
		    room + w * wide, room + (WEFT_SUMS + w) * wide, (uint32_t *)(room + 2 * WEFT_SUMS * wide) + w * wide};
	memset(s.sums, 0, WEFT_SUMS * wide * sizeof *s.sums);
	uint64_t run = 0;
	for (size_t b = 0, i = 0; b < s.blocks; b++) {
		const size_t rows = (b + 1) << s.block_shift;
		const size_t end = layout->row_begin[rows < layout->row_count ? rows : layout->row_count];
		for (; i < end; i++) {
			if (i % WEFT__BOX_PROMISES == 0)
				run = run_weight(&x->boxes[0][i / WEFT__BOX_PROMISES]);
			put_promise(&s, blocks, x, i, run);
		}
		for (size_t w = 0; w < WEFT_SUMS; w++)
			add_up(&s, &blocks[w], s.sums + (b * WEFT_SUMS + w) * wide, s.sums + ((b + 1) * WEFT_SUMS + w) * wide);
	}
	free(room);
	*sums = s;
	return true;
}
