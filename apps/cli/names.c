/* names.c: names of places in machine code, before they are printed.  SPDX-License-Identifier: ISC */
#include "cli.h"

#ifdef WEFT_HAS_NAMES
#include <time.h>

#include "backends/dwarf/names.h"

enum { MOST_MS = 5000, SERVED_MS = 300 };

static bool go_on(void *ctx)
{
	struct timespec now;
	const struct timespec *end = ctx;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec < end->tv_sec || (now.tv_sec == end->tv_sec && now.tv_nsec < end->tv_nsec);
}

/* Looks them up, in so long at most, and gives them to the trace; to be destroyed, also NULL. */
static struct weft_names *name(struct weft_trace *trace, bool ask_servers, int most_ms)
{
	struct weft_names *names = weft_names_create(weft_trace_info(trace));
	if (!names)
		return NULL;
	struct timespec end;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += most_ms % 1000 * 1000000;
	end.tv_sec += most_ms / 1000 + end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	struct weft_names_options options = {.ask_servers = ask_servers, .go_on = ask_servers ? NULL : go_on, .ctx = &end};
	weft_names_find(names, &options);
	/* Without memory for names there are none. */
	(void)weft_names_apply(names, trace);
	return names;
}

void cli_name_served(struct weft_trace *trace)
{
	weft_names_destroy(name(trace, false, SERVED_MS));
}

void cli_names_apply(struct cli_names *names, struct weft_trace *trace)
{
	const size_t sites = weft_trace_info(trace)->site_count;
	if (names->sites == sites) {
		if (names->found)
			(void)weft_names_apply(names->found, trace);
		return;
	}
	weft_names_destroy(names->found);
	*names = (struct cli_names){name(trace, false, SERVED_MS), sites};
}

void cli_names_forget(struct cli_names *names)
{
	weft_names_destroy(names->found);
	*names = (struct cli_names){NULL, 0};
}

/* Of several traces that lack all files the first one says it for all. */
void cli_name_places(struct cli_input *input, bool ask_servers)
{
	static bool has_told_all;
	cli_progress_begin("looking up names of", input->name);
	struct weft_names *names = name(input->trace, ask_servers, MOST_MS);
	cli_progress_end();
	if (!names)
		return;
	const bool lacks_all = weft_names_lacks_all(names);
	for (size_t i = 0; i < weft_names_note_count(names) && !(lacks_all && has_told_all); i++)
		cli_note("%s: %s", input->name, weft_names_note(names, i));
	has_told_all |= lacks_all;
	weft_names_destroy(names);
}
#else
void cli_name_places(struct cli_input *input, bool ask_servers)
{
}

void cli_name_served(struct weft_trace *trace)
{
}

void cli_names_apply(struct cli_names *names, struct weft_trace *trace)
{
}

void cli_names_forget(struct cli_names *names)
{
}
#endif
