/* names.c: replaces machine-code addresses by names before they are printed.  SPDX-License-Identifier: ISC */
#include "cli.h"

#ifdef WEFT_HAS_NAMES
#include <time.h>

#include "backends/dwarf/names.h"

enum { MAX_LOOKUP_MS = 5000, QUICK_LOOKUP_MS = 300, MAX_KNOWN = 64 };

static bool is_before_deadline(void *ctx)
{
	struct timespec now;
	const struct timespec *end = ctx;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec < end->tv_sec || (now.tv_sec == end->tv_sec && now.tv_nsec < end->tv_nsec);
}

/* Finds names within timeout_ms and applies them to the trace.  The caller destroys the result, which may be NULL. */
static struct weft_names *find_names(struct weft_trace *trace, bool ask_servers, int timeout_ms)
{
	struct weft_names *names = weft_names_create(weft_trace_info(trace));
	if (!names)
		return NULL;
	struct timespec end;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += timeout_ms % 1000 * 1000000;
	end.tv_sec += timeout_ms / 1000 + end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	struct weft_names_options options = {
	    .ask_servers = ask_servers, .go_on = ask_servers ? NULL : is_before_deadline, .ctx = &end};
	weft_names_find(names, &options);
	/* If memory is missing, the trace has no names. */
	(void)weft_names_apply(names, trace);
	return names;
}

void cli_find_site_names_quickly(struct weft_trace *trace)
{
	weft_names_destroy(find_names(trace, false, QUICK_LOOKUP_MS));
}

/* Names for traces that were read before, and the number of call sites that each trace had then. */
static struct {
	struct weft_names *found;
	size_t sites;
} known[MAX_KNOWN];

void cli_find_site_names_again(struct weft_trace *trace)
{
	static size_t searches;
	const struct weft_trace_info *info = weft_trace_info(trace);
	size_t searched = 0;
	for (size_t i = 0; i < MAX_KNOWN && known[i].found; i++)
		if (weft_names_fit(known[i].found, info)) {
			(void)weft_names_apply(known[i].found, trace);
			searched = known[i].sites > searched ? known[i].sites : searched;
		}
	const size_t sites = info->site_count;
	struct weft_names *found = searched < sites ? find_names(trace, false, MAX_LOOKUP_MS) : NULL;
	if (!found)
		return;
	const size_t slot = searches++ % MAX_KNOWN;
	weft_names_destroy(known[slot].found);
	known[slot].found = found;
	known[slot].sites = sites;
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
	*names = (struct cli_names){find_names(trace, false, QUICK_LOOKUP_MS), sites};
}

void cli_names_clear(struct cli_names *names)
{
	weft_names_destroy(names->found);
	*names = (struct cli_names){NULL, 0};
}

/* The note about missing files is printed only for the first of several traces. */
void cli_find_site_names(struct cli_input *input, bool ask_servers)
{
	static bool has_noted_missing;
	cli_progress_begin("looking up names of", input->name);
	struct weft_names *names = find_names(input->trace, ask_servers, MAX_LOOKUP_MS);
	cli_progress_end();
	if (!names)
		return;
	const bool are_all_missing = weft_names_are_all_missing(names);
	for (size_t i = 0; i < weft_names_note_count(names) && !(are_all_missing && has_noted_missing); i++)
		cli_note("%s: %s", input->name, weft_names_note(names, i));
	has_noted_missing |= are_all_missing;
	weft_names_destroy(names);
}
#else
/* The note shows the first address in the form in which findings print it, and says what would name its function. */
void cli_find_site_names(struct cli_input *input, bool ask_servers)
{
	static bool has_noted;
	const struct weft_trace_info *info = weft_trace_info(input->trace);
	for (size_t i = 0; i < info->site_count && !has_noted; i++) {
		const struct weft_site *site = &info->sites[i];
		if (!site->module || !site->offset || site->function.len || site->file.len)
			continue;
		char place[256];
		weft_site_format(site, place, sizeof place);
		cli_note("%s: function names need a weft that was built with libdw", place);
		has_noted = true;
	}
}

void cli_find_site_names_quickly(struct weft_trace *trace)
{
}

void cli_find_site_names_again(struct weft_trace *trace)
{
}

void cli_names_apply(struct cli_names *names, struct weft_trace *trace)
{
}

void cli_names_clear(struct cli_names *names)
{
}
#endif
