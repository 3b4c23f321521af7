/* sums.c: builds the sums of activity, once, together with the index.  SPDX-License-Identifier: ISC */
#include "view/sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/large.h"
#include "view/index.h"

#define MAX_SLICES 2048
#define MIN_ROWS_BITS 4  /* rows of a block */
#define MIN_BLOCKS 256   /* minimum number of blocks, because fewer blocks would be too coarse */
#define PROMISE_BYTES 32 /* maximum number of bytes of memory for each promise */
#define POSITION_BITS 16 /* number of bits of a position within a slice */
#define WEIGHT 256       /* weight of a living promise in the sums */

/* Starts and ends of promises in the slices of one block. */
struct block {
	uint64_t *within; /* sums for partly covered slices, in which one row counts 2^POSITION_BITS * WEIGHT */
	uint64_t *whole;  /* sums for fully covered slices, as differences between neighbouring slices */
	uint32_t *count;
};

static uint64_t slice_position(const struct weft_sums *s, int64_t time_ns)
{
	const uint64_t end = (uint64_t)s->slices << POSITION_BITS, ns = time_ns > 0 ? (uint64_t)time_ns : 0;
	const uint64_t at =
	    s->slice_shift < POSITION_BITS ? ns << (POSITION_BITS - s->slice_shift) : ns >> (s->slice_shift - POSITION_BITS);
	return at < end ? at : end - 1;
}

static void add_weight(struct block *b, uint64_t from, uint64_t to, uint64_t weight)
{
	const size_t first = from >> POSITION_BITS, last = to >> POSITION_BITS;
	if (first == last) {
		b->within[first] += (to - from) * weight;
		return;
	}
	b->within[first] += (((uint64_t)(first + 1) << POSITION_BITS) - from) * weight;
	b->within[last] += (to & ((1u << POSITION_BITS) - 1)) * weight;
	b->whole[first + 1] += weight;
	b->whole[last] -= weight;
}

static uint64_t run_weight(const struct weft_box *box)
{
	const double part = box->alive_ns > 0 ? (double)box->run_ns / (double)box->alive_ns : 0;
	return (uint64_t)((part < 1 ? part : 1) * WEIGHT);
}

static void add_promise(const struct weft_sums *s, struct block b[WEFT_SUMS], const struct weft_index *x, size_t i, uint64_t run)
{
	const uint64_t from = slice_position(s, x->lives[i].start_ns), end = slice_position(s, x->lives[i].end_ns),
		       to = end > from ? end : from;
	const bool is_short = (to - from) * s->unit >> POSITION_BITS == 0;
	add_weight(&b[WEFT_SUM_ALIVE], from, to, WEIGHT);
	b[WEFT_SUM_ALIVE].count[from >> POSITION_BITS] += is_short;
	if (run > 0)
		add_weight(&b[WEFT_SUM_RUN], from, to, run);
	if (!(x->important[i / 64] >> i % 64 & 1))
		return;
	b[WEFT_SUM_WRONG_ENDS].count[to >> POSITION_BITS]++;
	if (!(x->never[i / 64] >> i % 64 & 1))
		return;
	add_weight(&b[WEFT_SUM_NEVER], from, to, WEIGHT);
	b[WEFT_SUM_NEVER].count[from >> POSITION_BITS] += is_short;
}

/* Writes a block's sums, and clears the block for the next one. */
static void add_up(const struct weft_sums *s, struct block *b, const uint32_t *above, uint32_t *sums)
{
	const uint64_t whole_row = (uint64_t)WEIGHT << POSITION_BITS;
	uint64_t sum = 0, whole = 0;
	uint32_t count = 0;
	sums[0] = above[0];
	for (size_t k = 0; k < s->slices; k++) {
		whole += b->whole[k];
		sum += b->within[k] + (whole << POSITION_BITS);
		count += b->count[k];
		sums[k + 1] = above[k + 1] + (uint32_t)(sum * s->unit / whole_row) + count;
		b->whole[k] = b->within[k] = b->count[k] = 0;
	}
}

/* Chooses the number of rows in a block; returns false if sums would not be worth their memory. */
static bool choose_block_size(struct weft_sums *s, const struct weft_index *x, const struct weft_layout *layout)
{
	const struct weft_box *all = x->count > 0 ? &x->boxes[x->box_levels - 1][0] : NULL;
	const size_t bytes = WEFT_SUMS * sizeof *s->sums;
	if (!all || all->end_ns <= 0 || layout->row_count < MIN_BLOCKS << MIN_ROWS_BITS)
		return false;
	while ((uint64_t)all->end_ns >> s->slice_shift >= MAX_SLICES)
		s->slice_shift++;
	s->slices = (size_t)((uint64_t)all->end_ns >> s->slice_shift) + 1;
	for (s->block_shift = MIN_ROWS_BITS; layout->row_count >> s->block_shift >= MIN_BLOCKS; s->block_shift++) {
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
	if (!choose_block_size(&s, x, layout))
		return true;
	const size_t wide = s.slices + 1;
	uint64_t *buffer = calloc(WEFT_SUMS * wide, 2 * sizeof *blocks->within + sizeof *blocks->count);
	s.sums = weft_large_alloc((s.blocks + 1) * WEFT_SUMS * wide, sizeof *s.sums);
	if (!buffer || !s.sums) {
		free(buffer);
		free(s.sums);
		return false;
	}
	for (size_t w = 0; w < WEFT_SUMS; w++)
		blocks[w] = (struct block){
		    buffer + w * wide, buffer + (WEFT_SUMS + w) * wide, (uint32_t *)(buffer + 2 * WEFT_SUMS * wide) + w * wide};
	memset(s.sums, 0, WEFT_SUMS * wide * sizeof *s.sums);
	uint64_t run = 0;
	for (size_t b = 0, i = 0; b < s.blocks; b++) {
		const size_t rows = (b + 1) << s.block_shift;
		const size_t end = layout->row_begin[rows < layout->row_count ? rows : layout->row_count];
		for (; i < end; i++) {
			if (i % WEFT__BOX_PROMISES == 0)
				run = run_weight(&x->boxes[0][i / WEFT__BOX_PROMISES]);
			add_promise(&s, blocks, x, i, run);
		}
		for (size_t w = 0; w < WEFT_SUMS; w++)
			add_up(&s, &blocks[w], s.sums + (b * WEFT_SUMS + w) * wide, s.sums + ((b + 1) * WEFT_SUMS + w) * wide);
	}
	free(buffer);
	*sums = s;
	return true;
}
