/* allocations.h: lets allocations of the library fail in a test.  Include it in one file of a program that is linked with
 * --wrap. SPDX-License-Identifier: ISC */
#ifndef TESTS_ALLOCATIONS_H
#define TESTS_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Number of allocations that still succeed; the linker redirects the library's allocations here (--wrap). */
static long allocations_left = -1;
static bool only_one_fails; /* only one allocation fails; later ones succeed */

static bool may_allocate(void)
{
	if (allocations_left > 0)
		allocations_left--;
	else if (allocations_left == 0) {
		allocations_left = only_one_fails ? -1 : 0;
		return false;
	}
	return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t len);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);

void *__wrap_malloc(size_t size)
{
	return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
	return may_allocate() ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *old, size_t size)
{
	return may_allocate() ? __real_realloc(old, size) : NULL;
}

char *__wrap_strdup(const char *text)
{
	return may_allocate() ? __real_strdup(text) : NULL;
}

char *__wrap_strndup(const char *text, size_t len)
{
	return may_allocate() ? __real_strndup(text, len) : NULL;
}

#endif
