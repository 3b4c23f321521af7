/* base_test.c: vectors, maps, hashes, sort, selection and search, sizes, interned strings, cursors, UTF-8.
 * SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cursor.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/large.h"
#include "base/number.h"
#include "base/search.h"
#include "base/select.h"
#include "base/size.h"
#include "base/sort.h"
#include "base/utf8.h"
#include "base/vec.h"

static bool no_memory;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return no_memory ? NULL : __real_malloc(size);
}

static void vec_keeps_items_when_it_grows(void **state)
{
	WEFT_VEC(int) v = {0};
	for (int i = 0; i < 1000; i++) {
		int *added = weft_vec_push(&v);
		assert_non_null(added);
		*added = i;
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(v.items[i], i);
	assert_true(weft_vec_reserve(&v, 5000));
	assert_true(v.capacity >= 6000);
	weft_vec_free(&v);
	assert_null(v.items);
	assert_int_equal(v.capacity, 0);
}

static void vec_refuses_impossible_sizes(void **state)
{
	WEFT_VEC(uint64_t) v = {0};
	assert_non_null(weft_vec_push(&v));
	uint64_t *items = v.items;
	size_t capacity = v.capacity;
	assert_false(weft_vec_reserve(&v, SIZE_MAX / 2));
	assert_false(weft_vec_reserve(&v, SIZE_MAX / 8 + 1));
	assert_ptr_equal(v.items, items);
	assert_int_equal(v.capacity, capacity);
	assert_int_equal(v.count, 1);
	weft_vec_free(&v);
}

static void idmap_finds_only_inserted_ids(void **state)
{
	static const int64_t ids[] = {0, 1, 2, 5000, -2, INT64_MIN, INT64_MAX, 1LL << 40, (1LL << 40) + 1, 70000, 4000000000};
	struct weft_idmap map = {0};
	for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
		assert_int_equal(weft_idmap_get(&map, ids[i]), WEFT_IDMAP_NONE);
	for (uint32_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
		assert_true(weft_idmap_set(&map, ids[i], i));
	for (uint32_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
		assert_int_equal(weft_idmap_get(&map, ids[i]), i);
	assert_int_equal(weft_idmap_get(&map, 3), WEFT_IDMAP_NONE);
	assert_int_equal(weft_idmap_get(&map, -1), WEFT_IDMAP_NONE);
	for (uint32_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
		assert_true(weft_idmap_set(&map, ids[i], i + 100));
	for (uint32_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
		assert_int_equal(weft_idmap_get(&map, ids[i]), i + 100);
	weft_idmap_finish(&map);
}

/* A map that expects consecutive ids from a start id finds all ids, also older and unexpected ones, and keeps the expected ids
 * out of its hash table. */
static void idmap_with_expected_ids_also_finds_unexpected_ids(void **state)
{
	enum { OLD = 3, COUNT = 5000 };
	static const int64_t expected[] = {0, 1000000, INT64_MAX, INT64_MIN, -1};
	for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
		struct weft_idmap map = {0};
		weft_idmap_expect(&map, expected[k]);
#define ID(i) ((i) < OLD ? (i) : 1000000 + (i))
		assert_int_equal(weft_idmap_get(&map, expected[k]), WEFT_IDMAP_NONE);
		for (uint32_t i = 0; i < COUNT; i++) {
			assert_int_equal(weft_idmap_get(&map, ID(i)), WEFT_IDMAP_NONE);
			assert_true(weft_idmap_set(&map, ID(i), i));
		}
		for (uint32_t i = 0; i < COUNT; i++)
			assert_int_equal(weft_idmap_get(&map, ID(i)), i);
		if (k == 1)
			assert_int_equal(map.slots_used, OLD);
#undef ID
		weft_idmap_finish(&map);
	}
}

/* The ids of ten lanes grow by different steps: each id has its number, an id of another lane has none, and consecutive ids need
 * little memory.
 */
static void idmap_keys_of_different_lanes_are_separate(void **state)
{
	enum { LANES = 10, COUNT = 20000 };
	struct weft_idmap map = {0};
	assert_true(weft_idmap_split(&map, LANES));
	for (int turn = 0; turn < 2; turn++)
		for (int64_t i = 0; i < COUNT; i++)
			for (int64_t lane = 0; lane < LANES; lane++) {
				const int64_t size = i * (1 + 2 * lane) * LANES + lane, id = lane == 7 && i ? -size : size;
				const uint32_t number = (uint32_t)(i * LANES + lane);
				assert_int_equal(weft_idmap_get(&map, id), turn ? number : WEFT_IDMAP_NONE);
				assert_true(turn || weft_idmap_set(&map, id, number));
			}
	assert_int_equal(weft_idmap_get(&map, -7), WEFT_IDMAP_NONE);
	assert_int_equal(weft_idmap_get(&map, 11 * LANES + 1), WEFT_IDMAP_NONE);
	assert_int_equal(map.lanes[0].slots_used, 0);
	weft_idmap_finish(&map);
}

/* The map finds all ids of six patterns, such as consecutive, sparse and descending ids, and consecutive ids need little memory.
 */
static void idmap_stores_any_id_pattern(void **state)
{
	for (int pattern = 0; pattern < 6; pattern++) {
		struct weft_idmap map = {0};
		uint32_t count = 50000;
#define ID(i)                                                                                                                    \
	(pattern == 0      ? (int64_t)(i) + 7                                                                                    \
	    : pattern == 1 ? (int64_t)((i) < 3 ? (i) : (i) + 4000000000u)                                                        \
	    : pattern == 2 ? (int64_t)((uint64_t)(i)*0x9e3779b97f4a7c15u)                                                        \
	    : pattern == 3 ? 1000000000 - (int64_t)(i)                                                                           \
	    : pattern == 4 ? (int64_t)((i) % 2 ? (i) : (i) + (1LL << 50))                                                        \
			   : (int64_t)((i) % 4 ? (i) : (i) + 60000))
		for (uint32_t i = 0; i < count; i++) {
			assert_int_equal(weft_idmap_get(&map, ID(i)), WEFT_IDMAP_NONE);
			assert_true(weft_idmap_set(&map, ID(i), i));
		}
		for (uint32_t i = 0; i < count; i++)
			assert_int_equal(weft_idmap_get(&map, ID(i)), i);
		if (pattern < 2)
			assert_true(map.dense_used > count / 2);
		if (pattern == 3 || pattern == 5)
			assert_int_equal(map.slots_used, 0);
		assert_true(map.dense_capacity <= (size_t)count * 8);
		weft_idmap_finish(&map);
#undef ID
	}
}

/* Each id is just below the reserved range of ids.  The range grows only a few times, and is never much larger than the number of
 * ids. */
static void idmap_size_is_bounded_for_hostile_ids(void **state)
{
	struct weft_idmap map = {0};
	int moves = 0;
	assert_true(weft_idmap_set(&map, 1LL << 40, 0));
	for (uint32_t i = 1; i < 20000; i++) {
		const uint64_t base = map.base;
		const int64_t id = i % 2 ? (int64_t)base - 1 : (1LL << 50) + (int64_t)i * 1000000;
		assert_true(weft_idmap_set(&map, id, i));
		assert_int_equal(weft_idmap_get(&map, id), i);
		assert_true(map.dense_count <= (size_t)3 * i + 4096);
		moves += map.base != base;
	}
	assert_int_equal(weft_idmap_get(&map, 1LL << 40), 0);
	assert_true(moves < 30);
	weft_idmap_finish(&map);
}

static void intern_gives_equal_strings_the_same_number(void **state)
{
	struct weft_intern table = {0};
	char texts[500][12];
	assert_int_equal(weft_intern_find(&table, (struct weft_str){"label 0", 7}), WEFT_INTERN_FAILED);
	for (int i = 0; i < 500; i++) {
		int len = snprintf(texts[i], sizeof texts[i], "label %d", i);
		assert_int_equal(weft_intern(&table, (struct weft_str){texts[i], (uint32_t)len}), i);
	}
	char copy[] = "label 77";
	assert_int_equal(weft_intern(&table, (struct weft_str){copy, 8}), 77);
	assert_int_equal(weft_intern(&table, (struct weft_str){copy, 7}), 7);
	assert_int_equal(weft_intern(&table, (struct weft_str){"", 0}), 500);
	assert_int_equal(weft_intern(&table, (struct weft_str){"a\0b", 3}), 501);
	assert_int_equal(weft_intern(&table, (struct weft_str){"a\0c", 3}), 502);
	assert_int_equal(weft_intern_find(&table, (struct weft_str){copy, 8}), 77);
	assert_int_equal(weft_intern_find(&table, (struct weft_str){"label 500", 9}), WEFT_INTERN_FAILED);
	assert_int_equal(table.texts.count, 503);
	weft_intern_finish(&table);
}

/* The values of CPython 3.11 with PYTHONHASHSEED=0, which is SipHash-1-3 with a key of zeros. */
static void keyed_hash_equals_siphash_vectors(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		uint64_t hash;
	} cases[] = {{"a", 1, 0x407448d2b89b1813u}, {"12345678", 8, 0x3489982430560a87u},
	    {"0123456789abcde", 15, 0x26f4d862282d8fcbu},
	    {"\001\002\003\004\005\006\007\010\011\012\013\014\015\016\017\020\021\022\023\024\025\026\027\030", 24,
		0x7b5ea8edf9b7c0b3u}};
	struct weft_hash_key zeros = {{0, 0}}, other = {{0, 1}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_true(weft_hash_keyed(&zeros, cases[i].bytes, cases[i].len) == cases[i].hash);
		assert_true(weft_hash_keyed(&other, cases[i].bytes, cases[i].len) != cases[i].hash);
	}
	uint64_t number;
	memcpy(&number, "12345678", 8);
	assert_true(weft_hash_keyed_u64(&zeros, number) == weft_hash_keyed(&zeros, "12345678", 8));
	struct weft_hash_key one = weft_hash_key_new(), two = weft_hash_key_new();
	assert_true(memcmp(&one, &two, sizeof one) != 0);
}

/* Returns the longest run of occupied slots. */
static size_t longest_probe(const struct weft_idmap *map)
{
	size_t longest = 0, length = 0;
	for (size_t i = 0; i < map->slot_count; i++) {
		length = map->slots[i].number ? length + 1 : 0;
		longest = length > longest ? length : longest;
	}
	return longest;
}

/* Returns the number whose weft_hash_u64() is `hash`: an attacker can invert the hash. */
static uint64_t unhash(uint64_t hash)
{
	const uint64_t inverse = 0xcfee444d8b59a89bu;
	hash ^= hash >> 32;
	hash *= inverse;
	hash ^= hash >> 32;
	hash *= inverse;
	return hash ^ hash >> 32;
}

/* Ids that a fixed hash would map to one slot. */
static void ids_crafted_to_collide_spread_over_the_hash_table(void **state)
{
	enum { COUNT = 100000 };
	struct weft_idmap map = {0};
	assert_true(weft_hash_u64(unhash(77)) == 77);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_true(weft_idmap_set(&map, (int64_t)unhash((uint64_t)i << 20), i));
	assert_true(map.slots_used > COUNT / 2);
	assert_true(longest_probe(&map) < 2000);
	weft_idmap_finish(&map);
}

/* ---- Sort ---- */

struct sorted {
	uint32_t key, number;
};

static size_t comparisons;

static int compare_sorted(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;
	comparisons++;
	return x->key != y->key ? (x->key < y->key ? -1 : 1) : (x->number > y->number) - (x->number < y->number);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

enum shape { RANDOM, FEW_KEYS, SORTED, REVERSED, TWO_RUNS, NEARLY, SAWTOOTH, ORGAN, SHAPES };

static uint32_t key_of(enum shape shape, uint32_t i, uint32_t count, uint32_t *seed)
{
	switch (shape) {
	case RANDOM: return next_random(seed);
	case FEW_KEYS: return next_random(seed) % 4;
	case SORTED: return i;
	case REVERSED: return count - i;
	case TWO_RUNS: return (i + count / 3) % count;
	case NEARLY: return i + (next_random(seed) % 1000 == 0 ? 50 : 0);
	case SAWTOOTH: return i % 1000;
	default: return i < count / 2 ? i : count - i;
	}
}

static size_t log2_of(size_t count)
{
	size_t bits = 0;
	for (; count > 1; count = (count + 1) / 2)
		bits++;
	return bits;
}

/* Sorts `count` items of a shape, and returns the number of comparisons. */
static size_t check_sort(enum shape shape, uint32_t count)
{
	uint32_t seed = count;
	struct sorted *items = malloc((count + 1) * sizeof *items);
	bool *seen = calloc(count + 1, 1);
	for (uint32_t i = 0; i < count; i++)
		items[i] = (struct sorted){key_of(shape, i, count, &seed), i};
	comparisons = 0;
	weft_sort(items, count, sizeof *items, compare_sorted);
	size_t needed = comparisons;
	for (uint32_t i = 0; i < count; i++) {
		assert_true(items[i].number < count && !seen[items[i].number]);
		seen[items[i].number] = true;
		if (i > 0)
			assert_true(compare_sorted(&items[i - 1], &items[i]) < 0);
	}
	free(items);
	free(seen);
	return needed;
}

static const uint32_t counts[] = {0, 1, 2, 3, 11, 12, 13, 24, 25, 100, 1000, 4096, 50000};

static void sort_orders_inputs_of_any_shape(void **state)
{
	for (int shape = 0; shape < SHAPES; shape++)
		for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
			uint32_t count = counts[c];
			size_t needed = check_sort((enum shape)shape, count);
			assert_true(needed <= count * log2_of(count) + count);
			if (shape == SORTED || shape == REVERSED)
				assert_true(needed <= count);
			else if (count >= 1000 && (shape == TWO_RUNS || shape == ORGAN))
				assert_true(needed <= 2 * count + 100);
			else if (count >= 1000 && shape == NEARLY)
				assert_true(needed <= 4 * count);
		}
	weft_sort(NULL, 0, 8, compare_sorted);
}

static void sort_needs_no_memory(void **state)
{
	for (uint32_t count = 1000; count <= 100000; count *= 10) {
		uint32_t seed = 1;
		struct sorted *items = malloc(count * sizeof *items);
		for (uint32_t i = 0; i < count; i++)
			items[i] = (struct sorted){next_random(&seed) % count, i};
		comparisons = 0;
		no_memory = true;
		weft_sort(items, count, sizeof *items, compare_sorted);
		no_memory = false;
		assert_true(comparisons <= 2 * count * log2_of(count));
		for (uint32_t i = 1; i < count; i++)
			assert_true(compare_sorted(&items[i - 1], &items[i]) < 0);
		free(items);
	}
}

static int compare_bytes(const void *a, const void *b)
{
	return memcmp(a, b, 3);
}

/* Checks that items of any size are moved completely. */
/* Compares selection with sorted numbers of few and of many bytes; selection leaves the same numbers in the array. */
static void selection_finds_the_same_item_as_sorting(void **state)
{
	enum { MOST = 700 };
	(void)state;
	uint32_t seed = 7;
	for (size_t count = 1; count <= MOST; count += 1 + count / 3)
		for (unsigned bits = 1; bits <= 63; bits += 2) {
			int64_t numbers[MOST], sorted[MOST];
			for (size_t i = 0; i < count; i++) {
				uint64_t random =
				    (uint64_t)next_random(&seed) << 40 ^ (uint64_t)next_random(&seed) << 20 ^ next_random(&seed);
				numbers[i] = sorted[i] = (int64_t)(random & ((1ull << bits) - 1));
			}
			weft_sort(sorted, count, sizeof *sorted, weft_compare_i64);
			for (size_t k = 0; k < count; k += 1 + count / 7)
				assert_true(weft_select_kth(numbers, count, k) == sorted[k]);
			assert_true(weft_select_kth(numbers, count, count - 1) == sorted[count - 1]);
			weft_sort(numbers, count, sizeof *numbers, weft_compare_i64);
			assert_memory_equal(numbers, sorted, count * sizeof *numbers);
		}
}

static void sort_moves_items_of_any_size(void **state)
{
	for (size_t bytes = 3; bytes <= WEFT_SORT_MAX_ITEM_BYTES; bytes = bytes < 40         ? bytes + 1
									  : bytes * 2 > 1000 ? bytes + 491
											     : bytes * 2) {
		uint32_t seed = (uint32_t)bytes, count = 300;
		unsigned char *items = malloc(count * bytes);
		for (uint32_t i = 0; i < count; i++) {
			memset(items + i * bytes, (int)next_random(&seed), bytes);
			items[i * bytes + 1] = (unsigned char)(i >> 8);
			items[i * bytes + 2] = (unsigned char)i;
		}
		weft_sort(items, count, bytes, compare_bytes);
		for (uint32_t i = 0; i < count; i++) {
			const unsigned char *item = items + i * bytes;
			assert_true(i == 0 || memcmp(item - bytes, item, 3) < 0);
			for (size_t k = 3; k < bytes; k++)
				assert_int_equal(item[k], item[0]);
		}
		free(items);
	}
}

static void search_finds_the_first_matching_item(void **state)
{
	static const int items[] = {1, 3, 3, 3, 7, 9};
	enum { COUNT = sizeof items / sizeof *items };
	for (int value = 0; value <= 10; value++) {
		size_t expected = 0;
		while (expected < COUNT && items[expected] < value)
			expected++;
		assert_int_equal(WEFT_FIND_FIRST(i, 0, COUNT, items[i] >= value), expected);
		for (size_t from = 0; from <= COUNT; from++)
			assert_int_equal(
			    WEFT_FIND_FIRST_NEAR(i, from, COUNT, items[i] >= value), expected > from ? expected : from);
	}
	assert_int_equal(WEFT_FIND_FIRST(i, 2, 4, items[i] >= 0), 2);
	assert_int_equal(WEFT_FIND_FIRST(i, 2, 4, items[i] > 9), 4);
	assert_int_equal(WEFT_FIND_FIRST(i, 5, 5, items[i] > 0), 5);
	size_t looks = 0;
	assert_true(WEFT_FIND_FIRST(i, 0, SIZE_MAX, (looks++, i >= 12345)) == 12345 && looks <= sizeof(size_t) * 8);
	looks = 0;
	assert_true(WEFT_FIND_FIRST_NEAR(i, 1000, SIZE_MAX, (looks++, i >= 1003)) == 1003 && looks <= 6);
	assert_true(WEFT_FIND_FIRST_NEAR(i, 0, SIZE_MAX, (looks++, i >= SIZE_MAX - 5)) == SIZE_MAX - 5);
}

/* Every byte of sizes around multiples of large pages can be written; sanitizers check the bounds. */
static void large_memory_is_writable_to_its_end(void **state)
{
	(void)state;
	const size_t page = 2 << 20;
	for (size_t halves = 0; halves <= 7; halves++)
		for (size_t off = 0; off < 3; off++) {
			size_t bytes = halves * page / 2 + off;
			bytes -= bytes > 1;
			bytes += bytes == 0;
			unsigned char *memory = weft_large_alloc(bytes, 1);
			assert_non_null(memory);
			memset(memory, 0x5a, bytes);
			free(memory);
		}
	assert_null(weft_large_alloc(SIZE_MAX / 2, 8));
	assert_null(weft_large_alloc(SIZE_MAX, 1));
}

#ifdef __linux__
/* Returns whether /proc/self/smaps says that large pages were requested for the mapping of an address. */
static int wants_large_pages(const void *at)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	char line[512];
	bool is_in = false;
	int wants = -1;
	while (file && wants < 0 && fgets(line, sizeof line, file)) {
		unsigned long from, to;
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			is_in = (uintptr_t)at >= from && (uintptr_t)at < to;
		else if (is_in && strncmp(line, "VmFlags:", 8) == 0)
			wants = strstr(line, " hg") != NULL;
	}
	if (file)
		fclose(file);
	return wants;
}

static void large_memory_asks_for_huge_pages(void **state)
{
	(void)state;
	FILE *has_large_pages = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
	if (!has_large_pages)
		skip();
	fclose(has_large_pages);
	char *large = weft_large_alloc(16 << 20, 1);
	assert_non_null(large);
	large[8 << 20] = 1;
	assert_int_not_equal(wants_large_pages(large + (8 << 20)), 0);
	free(large);
}
#endif

static void size_arithmetic_reports_overflow(void **state)
{
	size_t size = SIZE_MAX - 1;
	assert_false(weft_size_add(&size, 2));
	assert_false(weft_size_add(&size, UINT64_MAX));
	assert_true(size == SIZE_MAX - 1);
	assert_true(weft_size_add(&size, 1) && size == SIZE_MAX);
	size = (size_t)1 << (sizeof size * 4);
	assert_false(weft_size_multiply(&size, (uint64_t)1 << (sizeof size * 4)));
	assert_false(weft_size_multiply(&size, UINT64_MAX));
	assert_true(size == (size_t)1 << (sizeof size * 4));
	assert_true(weft_size_multiply(&size, 2) && size == (size_t)2 << (sizeof size * 4));
	assert_true(weft_size_within(3, 4, 7) && weft_size_within(7, 0, 7));
	assert_false(weft_size_within(3, 5, 7) || weft_size_within(8, 0, 7) || weft_size_within(UINT64_MAX, 2, 7));
	assert_false(weft_size_within(2, UINT64_MAX, 7));
}

static void cursor_reads_never_pass_the_end(void **state)
{
	const unsigned char bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 0x80, 'h', 'i', 0, 'x'};
	struct weft_cursor c = {bytes, bytes + sizeof bytes};
	struct weft_str text;
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;
	uint8_t u8;
	assert_true(weft_read_u64(&c, &u64));
	assert_true(u64 == 0x0807060504030201u);
	assert_false(weft_read_u64(&c, &u64));
	assert_true(weft_read_u8(&c, &u8));
	assert_int_equal(u8, 0x80);
	assert_true(weft_read_string(&c, &text));
	assert_int_equal(text.len, 2);
	assert_memory_equal(text.ptr, "hi", 2);
	assert_false(weft_read_string(&c, &text));
	assert_false(weft_read_u16(&c, &u16));
	assert_false(weft_read_u32(&c, &u32));
	assert_int_equal(weft_cursor_left(&c), 1);
	assert_true(weft_read_u8(&c, &u8));
	assert_false(weft_read_u8(&c, &u8));
	c = (struct weft_cursor){bytes, bytes + 6};
	assert_true(weft_read_u16(&c, &u16) && u16 == 0x0201);
	assert_true(weft_read_u32(&c, &u32) && u32 == 0x06050403);
	assert_false(weft_read_string(&c, &text));
}

static size_t encode(unsigned code, unsigned char out[4])
{
	const size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	for (size_t i = n; i-- > 1; code >>= 6)
		out[i] = (unsigned char)(0x80 | (code & 0x3f));
	out[0] = (unsigned char)(n == 1 ? code : (0xf00u >> n & 0xff) | code);
	return n;
}

/* Checks every code point: a control character is recognised by its code, whatever bytes it starts with. */
static void utf8_control_characters_are_found(void **state)
{
	static const unsigned ranges[][2] = {{0x01, 0x1f}, {0x7f, 0x9f}, {0x61c, 0x61c}, {0x180e, 0x180e}, {0x200b, 0x200b},
	    {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
	(void)state;
	size_t found = 0, expected = 0;
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		expected += ranges[i][1] - ranges[i][0] + 1;
	for (unsigned code = 1; code <= 0x10ffff; code++) {
		unsigned char bytes[4];
		const size_t n = encode(code, bytes);
		if (weft_utf8_char_bytes(bytes, n) != n)
			continue;
		bool is_control = false;
		for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
			is_control |= code >= ranges[i][0] && code <= ranges[i][1];
		assert_int_equal(weft_utf8_control_code(bytes, n), is_control ? code : 0);
		found += is_control;
	}
	assert_int_equal(found, expected);
}

static void put_at_end(void *to, const char *bytes, size_t size)
{
	strncat(to, bytes, size);
}

static void json_texts_are_escaped(void **state)
{
	(void)state;
	static const struct {
		const char *from, *to;
		uint64_t escapes;
	} cases[] = {
	    {"", "", 0},
	    {"plain \xc3\xa9 \xf0\x9f\x98\x80", "plain \xc3\xa9 \xf0\x9f\x98\x80", 0},
	    {"a\"b\\c/", "a\\\"b\\\\c/", 2},
	    {"\n\t\r\033[1m\177", "\\n\\t\\u000d\\u001b[1m\\u007f", 5},
	    {"cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd", 2},
	    {"turned \xe2\x80\xae", "turned \\u202e", 1},
	    {"tag \xf3\xa0\x80\x81.", "tag \\udb40\\udc01.", 1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char got[100] = "";
		assert_int_equal(
		    weft_json_text((struct weft_str){cases[i].from, (uint32_t)strlen(cases[i].from)}, put_at_end, got),
		    cases[i].escapes);
		assert_string_equal(got, cases[i].to);
	}
}

static void copied_utf8_is_valid_and_cut_at_characters(void **state)
{
	static const struct {
		const char *from;
		uint32_t len;
		const char *to;
	} cases[] = {
	    {"plain", 5, "plain"},
	    {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x92\xA9", 9, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x92\xA9"},
	    {"a\xFFz", 3, "a\xEF\xBF\xBDz"},
	    {"a\0z", 3, "a\xEF\xBF\xBDz"},
	    {"\xC3", 1, "\xEF\xBF\xBD"},
	    {"\xC0\x80", 2, "\xEF\xBF\xBD\xEF\xBF\xBD"},
	    {"\xED\xA0\x80", 3, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
	    {"\xF4\x90\x80\x80", 4, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
	    {"\xE0\x9F\xBFx", 4, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDx"},
	    {"", 0, ""},
	};
	char buf[32];
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct weft_str text = {cases[i].from, cases[i].len};
		assert_int_equal(weft_utf8_copy(buf, sizeof buf, text), strlen(cases[i].to));
		assert_string_equal(buf, cases[i].to);
		if (text.len > 0) /* a text that fits is complete, cut or not */
			assert_true(weft_utf8_copy(buf, strlen(cases[i].to), text) >= strlen(cases[i].to));
	}
	assert_true(weft_utf8_copy(buf, 4, (struct weft_str){"ab\xE2\x82\xAC", 5}) >= 4);
	assert_string_equal(buf, "ab");
	assert_true(weft_utf8_copy(buf, 4, (struct weft_str){"\xE2\x82\xAC\xE2\x82\xAC", 6}) >= 4);
	assert_string_equal(buf, "\xE2\x82\xAC");
}

static void errors_name_the_file_and_offset(void **state)
{
	struct weft_error err;
	char text[200];
	assert_int_equal(weft_error_set(&err, WEFT_EDAMAGED, "%d bytes are missing", 3), WEFT_EDAMAGED);
	weft_error_format(&err, text, sizeof text);
	assert_string_equal(text, "3 bytes are missing");
	strcpy(err.file, "a.ctf");
	err.packet = 3;
	weft_error_format(&err, text, sizeof text);
	assert_string_equal(text, "a.ctf: 3 bytes are missing (packet 3)");
	err.offset = 0x3d41e;
	weft_error_format(&err, text, sizeof text);
	assert_string_equal(text, "a.ctf: 3 bytes are missing (packet 3, offset 0x3d41e)");
	err.packet = WEFT_NO_OFFSET;
	assert_int_equal(weft_error_format(&err, text, 8), strlen("a.ctf: 3 bytes are missing (offset 0x3d41e)"));
	assert_string_equal(text, "a.ctf: ");
	assert_int_equal(weft_error_set(NULL, WEFT_EIO, "nobody listens"), WEFT_EIO);
	assert_string_equal(weft_status_string(WEFT_ENOMEM), "out of memory");
	assert_string_equal(weft_status_string(-1000), "unknown status");
}

static void durations_with_units_are_parsed(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t ns;
	} times[] = {{"0", 0}, {"1ns", 1}, {"1.5us", 1500}, {"1.5\xc2\xb5s", 1500}, {"30ms", 30000000}, {".5s", 500000000},
	    {"5.s", 5000000000}, {"1.23456789012s", 1234567890}, {"9223372036.854775807s", INT64_MAX}};
	static const char *const wrong[] = {
	    "", "s", ".", ".s", "5", "1.2.3s", "-1s", "1 s", "1h", "9223372036.854775808s", "1e3s"};
	char text[WEFT_DURATION_BYTES];
	int64_t ns = 77;
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		assert_true(weft_duration_parse(times[i].text, strlen(times[i].text), &ns));
		assert_true(ns == times[i].ns);
		size_t len = weft_duration_format_exact(text, sizeof text, times[i].ns);
		assert_true(len == strlen(text) && weft_duration_parse(text, len, &ns) && ns == times[i].ns);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(weft_duration_parse(wrong[i], strlen(wrong[i]), &ns));
	weft_duration_format_exact(text, sizeof text, -1234500);
	assert_string_equal(text, "-1.2345ms");
	assert_true(weft_duration_format_exact(text, sizeof text, INT64_MIN) < sizeof text);
	weft_duration_format(text, sizeof text, 1234500);
	assert_string_equal(text, "1.23 ms");
	assert_string_equal(weft_duration_text(text, -12345), "-12.3 \u00b5s");
	weft_duration_format(text, sizeof text, 999);
	assert_string_equal(text, "999 ns");
	assert_true(weft_duration_format(text, sizeof text, INT64_MIN) < sizeof text);
}

static void numbers_are_printed_with_separators(void **state)
{
	(void)state;
	char text[WEFT_NUMBER_BYTES];
	assert_string_equal(weft_number_text(text, 0), "0");
	assert_string_equal(weft_number_text(text, 999), "999");
	assert_string_equal(weft_number_text(text, 1234567), "1,234,567");
	assert_string_equal(weft_number_text_signed(text, -1000), "-1,000");
	assert_string_equal(weft_number_text_signed(text, INT64_MIN), "-9,223,372,036,854,775,808");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(durations_with_units_are_parsed),
	    cmocka_unit_test(numbers_are_printed_with_separators),
	    cmocka_unit_test(vec_keeps_items_when_it_grows),
	    cmocka_unit_test(vec_refuses_impossible_sizes),
	    cmocka_unit_test(idmap_finds_only_inserted_ids),
	    cmocka_unit_test(idmap_with_expected_ids_also_finds_unexpected_ids),
	    cmocka_unit_test(idmap_keys_of_different_lanes_are_separate),
	    cmocka_unit_test(idmap_stores_any_id_pattern),
	    cmocka_unit_test(idmap_size_is_bounded_for_hostile_ids),
	    cmocka_unit_test(intern_gives_equal_strings_the_same_number),
	    cmocka_unit_test(keyed_hash_equals_siphash_vectors),
	    cmocka_unit_test(ids_crafted_to_collide_spread_over_the_hash_table),
	    cmocka_unit_test(sort_orders_inputs_of_any_shape),
	    cmocka_unit_test(sort_needs_no_memory),
	    cmocka_unit_test(sort_moves_items_of_any_size),
	    cmocka_unit_test(selection_finds_the_same_item_as_sorting),
	    cmocka_unit_test(search_finds_the_first_matching_item),
	    cmocka_unit_test(size_arithmetic_reports_overflow),
	    cmocka_unit_test(large_memory_is_writable_to_its_end),
#ifdef __linux__
	    cmocka_unit_test(large_memory_asks_for_huge_pages),
#endif
	    cmocka_unit_test(cursor_reads_never_pass_the_end),
	    cmocka_unit_test(utf8_control_characters_are_found),
	    cmocka_unit_test(json_texts_are_escaped),
	    cmocka_unit_test(copied_utf8_is_valid_and_cut_at_characters),
	    cmocka_unit_test(errors_name_the_file_and_offset),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
