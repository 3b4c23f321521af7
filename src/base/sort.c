/* sort.c: see sort.h.  Powersort (Munro and Wild): where two runs meet says how soon they are merged, so that the merges cost
 * about as little as any order of them could, and few runs wait at a time.  SPDX-License-Identifier: ISC */
#include "base/sort.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"

enum {
	SHORT = 12,      /* shorter runs are made this long by insertion */
	STACK_RUNS = 66, /* the powers of the runs that wait grow, and none is above 64 */
};

struct sort {
	unsigned char *items, *spare;
	size_t bytes, spare_items;
	weft_compare *compare;
};

struct run {
	size_t begin, end;
	int power; /* of the border to the run before it */
};

static unsigned char *item(const struct sort *s, size_t i)
{
	return s->items + i * s->bytes;
}

/* Most items are of these sizes, for which no call is needed. */
static void copy(void *restrict to, const void *restrict from, size_t bytes)
{
	switch (bytes) {
	case 4: memcpy(to, from, 4); return;
	case 8: memcpy(to, from, 8); return;
	case 16: memcpy(to, from, 16); return;
	case 24: memcpy(to, from, 24); return;
	case 32: memcpy(to, from, 32); return;
	default: memcpy(to, from, bytes); return;
	}
}

static void swap(const struct sort *s, size_t a, size_t b)
{
	copy(s->spare, item(s, a), s->bytes);
	copy(item(s, a), item(s, b), s->bytes);
	copy(item(s, b), s->spare, s->bytes);
}

/* ---- Without memory ---- */

static void heap_sort(const struct sort *s, size_t count)
{
	for (size_t start = count / 2, end = count; end > 1;) {
		if (start > 0)
			start--;
		else
			swap(s, 0, --end);
		for (size_t at = start, child; (child = 2 * at + 1) < end; at = child) {
			if (child + 1 < end && s->compare(item(s, child), item(s, child + 1)) < 0)
				child++;
			if (s->compare(item(s, at), item(s, child)) >= 0)
				break;
			swap(s, at, child);
		}
	}
}

/* ---- With memory ---- */

/* Where the run that begins at `begin` ends; one that goes down is turned round. */
static size_t find_run(const struct sort *s, size_t begin, size_t count)
{
	size_t end = begin + 1;
	if (end == count)
		return end;
	if (s->compare(item(s, end), item(s, end - 1)) >= 0) {
		while (end < count && s->compare(item(s, end), item(s, end - 1)) >= 0)
			end++;
		return end;
	}
	while (end < count && s->compare(item(s, end), item(s, end - 1)) < 0)
		end++;
	for (size_t low = begin, high = end - 1; low < high; low++, high--)
		swap(s, low, high);
	return end;
}

static size_t lengthen(const struct sort *s, size_t begin, size_t end, size_t count)
{
	size_t wanted = count - begin < SHORT ? count : begin + SHORT;
	for (; end < wanted; end++) {
		copy(s->spare, item(s, end), s->bytes);
		size_t to = WEFT_FIRST(i, begin, end, s->compare(s->spare, item(s, i)) < 0);
		memmove(item(s, to + 1), item(s, to), (end - to) * s->bytes);
		copy(item(s, to), s->spare, s->bytes);
	}
	return end;
}

static void merge_up(const struct sort *s, size_t begin, size_t middle, size_t end)
{
	unsigned char *left = s->spare, *left_end = s->spare + (middle - begin) * s->bytes;
	unsigned char *right = item(s, middle), *right_end = item(s, end), *to = item(s, begin);
	memcpy(left, to, (size_t)(left_end - left));
	for (; left < left_end && right < right_end; to += s->bytes) {
		bool is_right = s->compare(right, left) < 0;
		copy(to, is_right ? right : left, s->bytes);
		right += is_right ? s->bytes : 0;
		left += is_right ? 0 : s->bytes;
	}
	memcpy(to, left, (size_t)(left_end - left));
}

static void merge_down(const struct sort *s, size_t begin, size_t middle, size_t end)
{
	unsigned char *right = s->spare + (end - middle) * s->bytes, *left = item(s, middle), *to = item(s, end);
	memcpy(s->spare, left, (end - middle) * s->bytes);
	while (left > item(s, begin) && right > s->spare) {
		bool is_left = s->compare(right - s->bytes, left - s->bytes) < 0;
		left -= is_left ? s->bytes : 0;
		right -= is_left ? 0 : s->bytes;
		to -= s->bytes;
		copy(to, is_left ? left : right, s->bytes);
	}
	memcpy(item(s, begin), s->spare, (size_t)(right - s->spare));
}

/* What is in its place at both ends stays: runs that hardly overlap cost next to nothing.  The smaller rest is set aside. */
static void merge(const struct sort *s, size_t begin, size_t middle, size_t end)
{
	begin = WEFT_FIRST(i, begin, middle, s->compare(item(s, middle), item(s, i)) < 0);
	if (begin == middle)
		return;
	end = WEFT_FIRST(i, middle, end, s->compare(item(s, i), item(s, middle - 1)) >= 0);
	if (middle - begin <= end - middle)
		merge_up(s, begin, middle, end);
	else
		merge_down(s, begin, middle, end);
}

/* The first binary digit in which the middles of two runs that meet differ, as fractions of the whole. */
static int power_of(const struct run *a, const struct run *b, size_t count)
{
	uint64_t x = (uint64_t)a->begin + a->end, y = (uint64_t)b->begin + b->end, whole = 2 * (uint64_t)count;
	int power = 0;
	for (bool differ = false; !differ; power++) {
		bool x_digit = x >= whole - x, y_digit = y >= whole - y;
		differ = x_digit != y_digit;
		x = x_digit ? x - (whole - x) : 2 * x;
		y = y_digit ? y - (whole - y) : 2 * y;
	}
	return power;
}

static void merge_runs(const struct sort *s, struct run run, size_t count)
{
	struct run waiting[STACK_RUNS];
	size_t waits = 0;
	for (;;) {
		bool is_last = run.end == count;
		struct run next = {run.end, count, 0};
		if (!is_last) {
			next.end = lengthen(s, run.end, find_run(s, run.end, count), count);
			next.power = power_of(&run, &next, count);
		}
		for (; waits > 0 && (is_last || run.power >= next.power); run = waiting[waits]) {
			waits--;
			merge(s, waiting[waits].begin, run.begin, run.end);
			waiting[waits].end = run.end;
		}
		if (is_last)
			return;
		assert(waits < STACK_RUNS);
		waiting[waits++] = run;
		run = next;
	}
}

int weft_compare_i64(const void *a, const void *b)
{
	return WEFT_ORDER(*(const int64_t *)a, *(const int64_t *)b);
}

void weft_sort(void *items, size_t count, size_t item_bytes, weft_compare *compare)
{
	unsigned char near[4 * WEFT_SORT_MOST_BYTES];
	struct sort s = {items, near, item_bytes, sizeof near / item_bytes, compare};
	assert(item_bytes <= WEFT_SORT_MOST_BYTES);
	if (count < 2)
		return;
	struct run first = {0, find_run(&s, 0, count), 0};
	if (first.end == count)
		return;
	unsigned char *spare = count / 2 <= s.spare_items ? NULL : malloc(count / 2 * item_bytes);
	if (spare)
		s.spare = spare;
	else if (count / 2 > s.spare_items) {
		heap_sort(&s, count);
		return;
	}
	first.end = lengthen(&s, 0, first.end, count);
	merge_runs(&s, first, count);
	free(spare);
}
