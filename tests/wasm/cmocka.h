/* cmocka.h: as much of cmocka's interface as the tests need, where there is no setjmp(): a check that fails ends the program.
 * SPDX-License-Identifier: ISC */
#ifndef TESTS_WASM_CMOCKA_H
#define TESTS_WASM_CMOCKA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int wasm_fixture(void **state);

struct CMUnitTest {
	const char *name;
	void (*test)(void **state);
	wasm_fixture *setup, *teardown;
};

/* clang-format off */
#define cmocka_unit_test(f) {#f, f, NULL, NULL}
#define cmocka_unit_test_setup_teardown(f, setup, teardown) {#f, f, setup, teardown}
/* clang-format on */

static inline _Noreturn void wasm_fail(const char *file, int line, const char *what)
{
	printf("%s:%d: %s\n", file, line, what);
	exit(1);
}

static inline void wasm_check_numbers(bool equal, uint64_t a, uint64_t b, const char *texts, const char *file, int line)
{
	if ((a == b) != equal) {
		printf("%lld and %lld: ", (long long)a, (long long)b);
		wasm_fail(file, line, texts);
	}
}

static inline void wasm_check_texts(const char *a, const char *b, const char *texts, const char *file, int line)
{
	if (strcmp(a, b) != 0) {
		printf("\"%s\"\n\"%s\"\n", a, b);
		wasm_fail(file, line, texts);
	}
}

#define wasm_check(condition, what) ((condition) ? (void)0 : wasm_fail(__FILE__, __LINE__, what))
#define assert_true(c) wasm_check(c, #c)
#define assert_false(c) wasm_check(!(c), "not " #c)
#define assert_null(c) wasm_check(!(c), #c " is null")
#define assert_non_null(c) wasm_check(c, #c " is not null")
#define assert_ptr_equal(a, b) wasm_check((const void *)(a) == (const void *)(b), #a " is " #b)
#define assert_memory_equal(a, b, size) wasm_check(memcmp(a, b, size) == 0, #a " is " #b)
#define assert_int_equal(a, b) wasm_check_numbers(true, (uint64_t)(a), (uint64_t)(b), #a " is " #b, __FILE__, __LINE__)
#define assert_int_not_equal(a, b) wasm_check_numbers(false, (uint64_t)(a), (uint64_t)(b), #a " is not " #b, __FILE__, __LINE__)
#define assert_float_equal(a, b, most) wasm_check(__builtin_fabs((double)((a) - (b))) <= (most), #a " is " #b)
#define assert_string_equal(a, b) wasm_check_texts(a, b, #a " is " #b, __FILE__, __LINE__)
#define print_message(...) printf(__VA_ARGS__)
#define fail_msg(...) (printf(__VA_ARGS__), wasm_fail(__FILE__, __LINE__, ""))
#define fail() wasm_fail(__FILE__, __LINE__, "failed")

/* Stands in the test itself, wherever it is used. */
#define skip()                                                                                                                   \
	do {                                                                                                                     \
		printf("skipped: ");                                                                                             \
		return;                                                                                                          \
	} while (0)

static inline int wasm_run(const struct CMUnitTest *tests, size_t count, wasm_fixture *setup, wasm_fixture *teardown)
{
	void *group = NULL;
	if (setup && setup(&group) != 0)
		wasm_fail(__FILE__, __LINE__, "setting up");
	for (size_t i = 0; i < count; i++) {
		void *state = group;
		if (tests[i].setup && tests[i].setup(&state) != 0)
			wasm_fail(__FILE__, __LINE__, tests[i].name);
		tests[i].test(&state);
		if (tests[i].teardown && tests[i].teardown(&state) != 0)
			wasm_fail(__FILE__, __LINE__, tests[i].name);
		printf("%s\n", tests[i].name);
	}
	if (teardown && teardown(&group) != 0)
		wasm_fail(__FILE__, __LINE__, "tearing down");
	printf("%zu tests passed\n", count);
	return 0;
}
#define cmocka_run_group_tests(tests, setup, teardown) wasm_run(tests, sizeof(tests) / sizeof *(tests), setup, teardown)

#endif
