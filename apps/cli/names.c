/* names.c: names of places in machine code, before they are printed.  SPDX-License-Identifier: ISC */
#include "cli.h"

#ifdef WEFT_HAS_NAMES
#include <time.h>

#include "backends/dwarf/names.h"

enum { MOST_SECONDS = 5 };

static bool go_on(void *ctx)
{
	struct timespec now;
	const struct timespec *end = ctx;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec < end->tv_sec || (now.tv_sec == end->tv_sec && now.tv_nsec < end->tv_nsec);
}

void cli_name_places(struct cli_input *input, bool ask_servers)
{
	struct weft_names *names = weft_names_create(weft_trace_info(input->trace));
	if (!names)
		return;
	struct timespec end;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += MOST_SECONDS;
	struct weft_names_options options = {.ask_servers = ask_servers, .go_on = ask_servers ? NULL : go_on, .ctx = &end};
	cli_progress_begin("looking up names of", input->name);
	weft_names_find(names, &options);
	cli_progress_end();
	/* Without memory for names there are none. */
	(void)weft_names_apply(names, input->trace);
	for (size_t i = 0; i < weft_names_note_count(names); i++)
		cli_note("%s: %s", input->name, weft_names_note(names, i));
	weft_names_destroy(names);
}
#else
void cli_name_places(struct cli_input *input, bool ask_servers)
{
}
#endif
