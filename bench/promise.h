/* promise.h: the functions of the two modules of promise_loop.c.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BENCH_PROMISE_H
#define WEFT_BENCH_PROMISE_H

#include "bench/bench.h"

#define BENCH_EXPORT __attribute__((visibility("default")))

BENCH_EXPORT void bench_plain(unsigned count);
BENCH_EXPORT void bench_named(unsigned count);
BENCH_EXPORT void bench_start(const char *directory);
BENCH_EXPORT void bench_stop(void);
BENCH_EXPORT uint32_t bench_events(void); /* number of recorded events, modulo 2^32 */

#endif
