/* memory.c: see memory.h.
 *
 * Each OS thread counts down a random number of bytes, whose mean is the period.  The allocation at which the countdown ends is a
 * sample: its callers are recorded, and its address is kept in a table until it is freed.  All other allocations cost a
 * subtraction, and each free() a search of four addresses.  Without --memory, no function is wrapped.
 *
 * The functions are patched at their entries, so the calls of all modules are seen, also those of libc.  The functions that are
 * patched are those that the loader finds for the program: libc's, or those of jemalloc or tcmalloc.  In a program with a
 * sanitizer nothing is patched, because the sanitizer checks the allocator itself.  SPDX-License-Identifier: ISC */
#include "adapters/hook/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <weft/record_inline.h>

#include "adapters/hook/callers.h"
#include "adapters/hook/entry.h"
#include "adapters/hook/frames.h"
#include "adapters/hook/hook.h"

enum { SETS = 1 << 14, WAYS = 4, MAX_FRAMES = 48 };

/* Sampled allocations that are not freed, by a hash of their address. */
static struct set {
	uintptr_t keys[WAYS]; /* address + 1; 0: unused; RESERVED: a sample that is being recorded */
	uint32_t numbers[WAYS];
} * sets;

#define RESERVED ((uintptr_t)2)

static uint32_t period;
static bool is_enabled; /* whether the end of each allocation is seen */

/* State of an OS thread. */
static __thread struct {
	int64_t left;  /* bytes until the next sample */
	uint64_t seed; /* of the random numbers; 0 before the first sample */
	bool is_inside;
} here __attribute__((tls_model("initial-exec")));

#define CALLS(X)                                                                                                                 \
	X(malloc, void *, (size_t))                                                                                              \
	X(free, void, (void *))                                                                                                  \
	X(calloc, void *, (size_t, size_t))                                                                                      \
	X(realloc, void *, (void *, size_t))                                                                                     \
	X(posix_memalign, int, (void **, size_t, size_t))                                                                        \
	X(aligned_alloc, void *, (size_t, size_t))                                                                               \
	X(memalign, void *, (size_t, size_t))                                                                                    \
	X(valloc, void *, (size_t))                                                                                              \
	X(pvalloc, void *, (size_t))

static struct {
#define POINTER(NAME, RESULT, PARAMETERS) RESULT(*NAME) PARAMETERS;
	CALLS(POINTER)
#undef POINTER
} real;

/* ---- The countdown ---- */

/* Returns the natural logarithm of a number between 0 and 1; this library does not link libm. */
static double compute_logarithm(double x)
{
	uint64_t bits;
	memcpy(&bits, &x, sizeof bits);
	enum { MANTISSA_BITS = 52, BIAS = 1023 };
	const int exponent = (int)(bits >> MANTISSA_BITS) - BIAS;
	bits = (bits & ((UINT64_C(1) << MANTISSA_BITS) - 1)) | (uint64_t)BIAS << MANTISSA_BITS;
	double mantissa;
	memcpy(&mantissa, &bits, sizeof mantissa);
	const double t = (mantissa - 1) / (mantissa + 1), square = t * t;
	const double series = 1 + square * (1.0 / 3 + square * (1.0 / 5 + square * (1.0 / 7 + square * (1.0 / 9))));
	return exponent * 0.69314718055994531 + 2 * t * series;
}

/* Draws the number of bytes until the next sample, from the exponential distribution. */
static int64_t draw_distance(void)
{
	here.seed ^= here.seed << 13;
	here.seed ^= here.seed >> 7;
	here.seed ^= here.seed << 17;
	const double uniform = ((double)(here.seed >> 11) + 1) / 9007199254740993.0; /* 2^53 + 1 */
	return (int64_t)(-compute_logarithm(uniform) * period);
}

static void seed_thread(void)
{
	here.seed = (weft_now() ^ (uintptr_t)&here) * 0x9e3779b97f4a7c15u | 1;
	here.left = draw_distance();
}

/* ---- The table ---- */

static struct set *get_set(const void *memory)
{
	return &sets[((uintptr_t)memory * 0x9e3779b97f4a7c15u) >> 50];
}
_Static_assert(SETS == 1 << (64 - 50), "get_set() uses the highest bits");

/* Reserves a way of the address's set; returns WAYS if all are used. */
static unsigned reserve_way(struct set *set)
{
	unsigned way = 0;
	for (; way < WAYS; way++) {
		uintptr_t none = 0;
		if (__atomic_compare_exchange_n(&set->keys[way], &none, RESERVED, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			break;
	}
	return way;
}

static void fill_way(struct set *set, unsigned way, const void *memory, uint32_t number)
{
	set->numbers[way] = number;
	__atomic_store_n(&set->keys[way], number ? (uintptr_t)memory + 1 : 0, __ATOMIC_RELEASE);
}

/* Removes an allocation from the table, and returns its number; 0 if it is no sample. */
static __attribute__((noinline)) uint32_t remove_sample(struct set *set, const void *memory)
{
	for (unsigned way = 0; way < WAYS; way++) {
		uintptr_t key = (uintptr_t)memory + 1;
		if (__atomic_load_n(&set->keys[way], __ATOMIC_ACQUIRE) != key)
			continue;
		const uint32_t number = set->numbers[way];
		if (__atomic_compare_exchange_n(&set->keys[way], &key, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return number;
	}
	return 0;
}

static inline bool is_sample(const struct set *set, const void *memory)
{
	const uintptr_t key = (uintptr_t)memory + 1;
	bool is_there = false;
	for (unsigned way = 0; way < WAYS; way++)
		is_there |= __atomic_load_n(&set->keys[way], __ATOMIC_RELAXED) == key;
	return is_there;
}

/* ---- Samples ---- */

static void record_sample(const void *memory, size_t bytes)
{
	struct set *set = get_set(memory);
	const unsigned way = reserve_way(set);
	const void *callers[MAX_FRAMES];
	if (way == WAYS) {
		weft__memory_allocated(0, period, NULL, 0); /* counts a lost sample */
		return;
	}
	const unsigned count = weft__hook_list_callers(callers, MAX_FRAMES);
	fill_way(set, way, memory, weft__memory_allocated(bytes, period, callers, count));
}

/* Ends the countdown of this thread with an allocation. */
static __attribute__((noinline)) void end_countdown(const void *memory, size_t bytes, const void *caller)
{
	const int saved = errno;
	if (!here.seed) {
		/* The thread's first allocation starts the countdown. */
		here.is_inside = true;
		seed_thread();
		here.is_inside = false;
		here.left -= (int64_t)bytes;
		if (here.left >= 0)
			return;
	}
	here.left = draw_distance();
	if (memory && bytes && is_enabled && !here.is_inside && weft_is_on() && !weft__hook_is_recorder(caller)) {
		here.is_inside = true;
		record_sample(memory, bytes);
		here.is_inside = false;
	}
	errno = saved;
}

static inline void count_bytes(const void *memory, size_t bytes, const void *caller)
{
	here.left -= (int64_t)bytes;
	if (__builtin_expect(here.left < 0, 0))
		end_countdown(memory, bytes, caller);
}

/* An allocator may serve a call by another of its functions, whose bytes must not count twice. */
static inline int64_t stop_countdown(void)
{
	const int64_t left = here.left;
	here.left = INT64_MAX;
	return left;
}

static inline void continue_countdown(int64_t left, const void *memory, size_t bytes, const void *caller)
{
	here.left = left;
	count_bytes(memory, bytes, caller);
}

/* ---- Wrappers ---- */

#define CALLER __builtin_return_address(0)

static void *wrapped_malloc(size_t bytes)
{
	void *memory = real.malloc(bytes);
	count_bytes(memory, bytes, CALLER);
	return memory;
}

static __attribute__((noinline)) void free_sample(struct set *set, void *memory)
{
	const uint32_t number = remove_sample(set, memory);
	if (number)
		weft__memory_freed(number);
	real.free(memory);
}

static void wrapped_free(void *memory)
{
	struct set *set = get_set(memory);
	if (__builtin_expect(is_sample(set, memory), 0))
		free_sample(set, memory);
	else
		real.free(memory);
}

static void *wrapped_realloc(void *old, size_t bytes)
{
	struct set *set = get_set(old);
	const uint32_t number = is_sample(set, old) ? remove_sample(set, old) : 0;
	const int64_t left = stop_countdown();
	void *memory = real.realloc(old, bytes);
	continue_countdown(left, memory, bytes, CALLER);
	if (number && (memory || !bytes)) {
		weft__memory_freed(number);
	} else if (number) {
		/* The old memory is still there. */
		const unsigned way = reserve_way(set);
		if (way < WAYS)
			fill_way(set, way, old, number);
		else
			weft__memory_freed(number);
	}
	return memory;
}

static int wrapped_posix_memalign(void **out, size_t alignment, size_t bytes)
{
	const int64_t left = stop_countdown();
	const int status = real.posix_memalign(out, alignment, bytes);
	continue_countdown(left, status ? NULL : *out, bytes, CALLER);
	return status;
}

#define WRAP_ALLOCATION(NAME, PARAMETERS, ARGUMENTS, BYTES)                                                                      \
	static void *wrapped_##NAME PARAMETERS                                                                                   \
	{                                                                                                                        \
		const int64_t left = stop_countdown();                                                                           \
		void *memory = real.NAME ARGUMENTS;                                                                              \
		continue_countdown(left, memory, BYTES, CALLER);                                                                 \
		return memory;                                                                                                   \
	}

WRAP_ALLOCATION(calloc, (size_t count, size_t bytes), (count, bytes), count *bytes)
WRAP_ALLOCATION(aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes), bytes)
WRAP_ALLOCATION(memalign, (size_t alignment, size_t bytes), (alignment, bytes), bytes)
WRAP_ALLOCATION(valloc, (size_t bytes), (bytes), bytes)
WRAP_ALLOCATION(pvalloc, (size_t bytes), (bytes), bytes)

/* ---- Patching ---- */

/* The module that defines an address. */
struct module_search {
	uintptr_t address;
	struct weft__module module;
	bool is_found;
};

static int match_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct module_search *search = ctx;
	search->is_found = weft__module_read(&search->module, info, info->dlpi_name) &&
			   search->address - search->module.text_begin < search->module.text_end - search->module.text_begin;
	return search->is_found;
}

static bool has_sanitizer(void)
{
	static const char *const names[] = {"__asan_init", "__hwasan_init", "__lsan_init", "__tsan_init", "__msan_init"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (dlsym(RTLD_DEFAULT, names[i]))
			return true;
	return false;
}

/* Fills the list with the functions of the allocator's module.  A function of another module, such as libc's pvalloc() beside
 * jemalloc, belongs to another allocator. */
static size_t list_functions(struct weft__entry *entries, const struct weft__module *module)
{
	static const struct {
		const char *name;
		void *wrapper, **original;
	} functions[] = {
#define FUNCTION(NAME, RESULT, PARAMETERS) {#NAME, (void *)wrapped_##NAME, (void **)(void *)&real.NAME},
	    CALLS(FUNCTION)
#undef FUNCTION
	};
	size_t count = 0;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		const uintptr_t at = (uintptr_t)dlsym(RTLD_DEFAULT, functions[i].name);
		const ElfW(Sym) *s = weft__module_exports(module, functions[i].name);
		bool is_new = s && at == module->base + s->st_value;
		/* Two names may be one function. */
		for (size_t k = 0; k < count; k++)
			is_new &= entries[k].function != (void *)at;
		if (is_new)
			entries[count++] =
			    (struct weft__entry){(void *)at, s->st_size, functions[i].wrapper, functions[i].original, NULL};
	}
	return count;
}

static const char *find_refusal(const struct weft__entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (entries[i].refusal)
			return entries[i].refusal;
	return NULL;
}

static bool make_table(void)
{
	const size_t bytes = SETS * sizeof *sets;
	void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (table == MAP_FAILED)
		return false;
#ifdef MADV_WIPEONFORK
	/* The trace of a child does not have the samples of its parent. */
	madvise(table, bytes, MADV_WIPEONFORK);
#endif
	sets = table;
	return true;
}

/* Patches the functions; returns why allocations are not sampled, or NULL. */
static const char *patch_allocator(const char **name, bool is_single_threaded)
{
	static struct weft__slots slots; /* never freed, because the allocator stays loaded */
	struct weft__entry entries[sizeof real / sizeof(void *)];
	struct module_search search = {.address = (uintptr_t)dlsym(RTLD_DEFAULT, "malloc")};
	if (has_sanitizer())
		return "the program has a sanitizer";
	if (!is_single_threaded)
		return "other threads are already running";
	dl_iterate_phdr(match_module, &search);
	if (!search.is_found)
		return "the functions of the allocator cannot be read";
	const char *path = search.module.path, *slash = strrchr(path, '/');
	*name = slash ? slash + 1 : *path ? path : "the program";
	if (search.module.rewrites_text)
		return "the loader rewrites the allocator's text";
	if (!make_table())
		return "out of memory";
	const size_t count = list_functions(entries, &search.module);
	weft__entries_patch(entries, count, search.module.text_begin, search.module.text_end, &slots);
	return find_refusal(entries, count);
}

void weft__hook_memory_begin(uint32_t period_bytes, bool is_single_threaded)
{
	const char *name = "";
	char text[160];
	period = period_bytes;
	here.is_inside = true;
	const char *refusal = patch_allocator(&name, is_single_threaded);
	here.is_inside = false;
	is_enabled = real.malloc && real.free && real.realloc;
	if (!is_enabled)
		snprintf(text, sizeof text, "memory is not sampled: %s", refusal ? refusal : "it has no malloc()");
	else if (refusal)
		snprintf(text, sizeof text, "memory of %s is not sampled completely: %s", name, refusal);
	else
		snprintf(text, sizeof text, "memory of %s", name);
	weft__hook_add_to_report(text);
}
