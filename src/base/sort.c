/* sort.c: see sort.h.  Implements Powersort (Munro and Wild), a merge sort in which the border between two runs decides when
 * they are merged.  The merges cost nearly as little as in the best order, and few runs wait to be merged at a time.
 * SPDX-License-Identifier: ISC */
#include "base/sort.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"

enum {
	MIN_RUN_ITEMS = 12,    /* shortest run: a shorter run of sorted items is extended to this length by insertion sort */
	MAX_WAITING_RUNS = 66, /* most runs that wait to be merged: their powers increase, and no power is above 64 */
};

struct sort {
	unsigned char *items, *spare;
	size_t bytes, spare_items;
	weft_compare_fn *compare;
};

struct run {
	size_t begin, end;
	int power; /* power of the border between this run and the previous run */
};

static unsigned char *item_at(const struct sort *s, size_t i)
{
	return s->items + i * s->bytes;
}

/* Copies an item; common sizes are copied without a function call. */
static void copy_item(void *restrict to, const void *restrict from, size_t bytes)
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

static void swap_items(const struct sort *s, size_t a, size_t b)
{
	copy_item(s->spare, item_at(s, a), s->bytes);
	copy_item(item_at(s, a), item_at(s, b), s->bytes);
	copy_item(item_at(s, b), s->spare, s->bytes);
}

/* ---- Sort without memory: heap sort ---- */

static void heap_sort(const struct sort *s, size_t count)
{
	for (size_t start = count / 2, end = count; end > 1;) {
		if (start > 0)
			start--;
		else
			swap_items(s, 0, --end);
		for (size_t at = start, child; (child = 2 * at + 1) < end; at = child) {
			if (child + 1 < end && s->compare(item_at(s, child), item_at(s, child + 1)) < 0)
				child++;
			if (s->compare(item_at(s, at), item_at(s, child)) >= 0)
				break;
			swap_items(s, at, child);
		}
	}
}

/* ---- Sort with memory: Powersort ---- */

/* Returns the end of the sorted run that begins at `begin`; reverses the run if it is descending. */
static size_t find_run(const struct sort *s, size_t begin, size_t count)
{
	size_t end = begin + 1;
	if (end == count)
		return end;
	if (s->compare(item_at(s, end), item_at(s, end - 1)) >= 0) {
		while (end < count && s->compare(item_at(s, end), item_at(s, end - 1)) >= 0)
			end++;
		return end;
	}
	while (end < count && s->compare(item_at(s, end), item_at(s, end - 1)) < 0)
		end++;
	for (size_t low = begin, high = end - 1; low < high; low++, high--)
		swap_items(s, low, high);
	return end;
}

static size_t lengthen_run(const struct sort *s, size_t begin, size_t end, size_t count)
{
	size_t wanted = count - begin < MIN_RUN_ITEMS ? count : begin + MIN_RUN_ITEMS;
	for (; end < wanted; end++) {
		copy_item(s->spare, item_at(s, end), s->bytes);
		size_t to = WEFT_FIND_FIRST(i, begin, end, s->compare(s->spare, item_at(s, i)) < 0);
		memmove(item_at(s, to + 1), item_at(s, to), (end - to) * s->bytes);
		copy_item(item_at(s, to), s->spare, s->bytes);
	}
	return end;
}

static void merge_up(const struct sort *s, size_t begin, size_t middle, size_t end)
{
	unsigned char *left = s->spare, *left_end = s->spare + (middle - begin) * s->bytes;
	unsigned char *right = item_at(s, middle), *right_end = item_at(s, end), *to = item_at(s, begin);
	memcpy(left, to, (size_t)(left_end - left));
	for (; left < left_end && right < right_end; to += s->bytes) {
		bool is_right = s->compare(right, left) < 0;
		copy_item(to, is_right ? right : left, s->bytes);
		right += is_right ? s->bytes : 0;
		left += is_right ? 0 : s->bytes;
	}
	memcpy(to, left, (size_t)(left_end - left));
}

static void merge_down(const struct sort *s, size_t begin, size_t middle, size_t end)
{
	unsigned char *right = s->spare + (end - middle) * s->bytes, *left = item_at(s, middle), *to = item_at(s, end);
	memcpy(s->spare, left, (end - middle) * s->bytes);
	while (left > item_at(s, begin) && right > s->spare) {
		bool is_left = s->compare(right - s->bytes, left - s->bytes) < 0;
		left -= is_left ? s->bytes : 0;
		right -= is_left ? 0 : s->bytes;
		to -= s->bytes;
		copy_item(to, is_left ? left : right, s->bytes);
	}
	memcpy(item_at(s, begin), s->spare, (size_t)(right - s->spare));
}

/* Merges two adjacent runs.  Items at both ends that are already in place are not moved, so that runs that hardly overlap cost
 * little. The smaller of the two remaining parts is copied to the spare memory. */
static void merge_ranges(const struct sort *s, size_t begin, size_t middle, size_t end)
{
	begin = WEFT_FIND_FIRST(i, begin, middle, s->compare(item_at(s, middle), item_at(s, i)) < 0);
	if (begin == middle)
		return;
	end = WEFT_FIND_FIRST(i, middle, end, s->compare(item_at(s, i), item_at(s, middle - 1)) >= 0);
	if (middle - begin <= end - middle)
		merge_up(s, begin, middle, end);
	else
		merge_down(s, begin, middle, end);
}

/* Returns the first binary digit in which the middles of two adjacent runs differ, as fractions of the whole array. */
static int border_power(const struct run *a, const struct run *b, size_t count)
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
	struct run waiting[MAX_WAITING_RUNS];
	size_t waiting_count = 0;
	for (;;) {
		bool is_last = run.end == count;
		struct run next = {run.end, count, 0};
		if (!is_last) {
			next.end = lengthen_run(s, run.end, find_run(s, run.end, count), count);
			next.power = border_power(&run, &next, count);
		}
		for (; waiting_count > 0 && (is_last || run.power >= next.power); run = waiting[waiting_count]) {
			waiting_count--;
			merge_ranges(s, waiting[waiting_count].begin, run.begin, run.end);
			waiting[waiting_count].end = run.end;
		}
		if (is_last)
			return;
		assert(waiting_count < MAX_WAITING_RUNS);
		waiting[waiting_count++] = run;
		run = next;
	}
}

int weft_compare_i64(const void *a, const void *b)
{
	return WEFT_ORDER(*(const int64_t *)a, *(const int64_t *)b);
}

void weft_sort(void *items, size_t count, size_t item_bytes, weft_compare_fn *compare)
{
	unsigned char small_buffer[4 * WEFT_SORT_MAX_ITEM_BYTES];
	struct sort s = {items, small_buffer, item_bytes, sizeof small_buffer / item_bytes, compare};
	assert(item_bytes <= WEFT_SORT_MAX_ITEM_BYTES);
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
	first.end = lengthen_run(&s, 0, first.end, count);
	merge_runs(&s, first, count);
	free(spare);
}
