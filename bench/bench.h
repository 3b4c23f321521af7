/* bench.h: shared by the benchmarks, which print "NAME VALUE" lines; tools/bench makes a table of them.  SPDX-License-Identifier:
 * ISC */
#ifndef WEFT_BENCH_BENCH_H
#define WEFT_BENCH_BENCH_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double clock_now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Returns the median; sorts the values. */
static inline double median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, compare_doubles);
	return values[count / 2];
}

__attribute__((noreturn, format(printf, 1, 2))) static inline void fatal(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

#endif
