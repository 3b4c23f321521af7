/* seen.c: prints facts of a program that was seen once, without a recording.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <time.h>

#include "analysis/index/names.h"
#include "cli.h"

static void put_moment(int64_t wall_ns)
{
	const time_t seconds = (time_t)(wall_ns / 1000000000);
	struct tm local;
	char text[64];
	if (wall_ns > 0 && localtime_r(&seconds, &local) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local))
		printf(", at %s", text);
}

void cli_put_seen(const struct weft_model *m)
{
	const struct weft_trace_info *info = m->trace;
	size_t threads = 0;
	if (!info->is_seen_once)
		return;
	for (uint32_t p = 1; p < m->promise_count; p++)
		threads += m->promises[p].kind == WEFT_KIND_THREAD;
	fputs("seen once", stdout);
	put_moment(info->seen_wall_ns);
	fputs(": ", stdout);
	if (info->part_count) {
		printf("%zu processes", info->part_count);
	} else {
		cli_put_text(info->process);
		printf(" (process %" PRIu64 ")", info->pid);
	}
	printf(", %zu OS thread%s\n", threads, threads == 1 ? "" : "s");
}

void cli_put_seen_runners(const struct weft_model *m, const struct weft_waits *waits)
{
	enum { MAX_PUT = 50 };
	size_t at = 0, put = 0, more = 0;
	for (uint32_t p = 1; p < m->promise_count && m->trace->is_seen_once; p++) {
		char name[WEFT_NAME_BYTES];
		while (at < waits->count && waits->waits[at].from < p)
			at++;
		if (m->promises[p].kind != WEFT_KIND_THREAD || (at < waits->count && waits->waits[at].from == p))
			continue;
		more += put == MAX_PUT;
		if (put == MAX_PUT)
			continue;
		put++;
		printf("%s  runs", weft_name_promise(m, p, name));
		if (*weft_name_site(m, p, name))
			printf("  at %s", name);
		putchar('\n');
	}
	if (more)
		printf("%zu more OS threads run\n", more);
}
