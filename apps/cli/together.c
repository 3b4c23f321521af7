/* together.c: how several traces are one: whose clocks were tied by what, and what could not be matched.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "cli.h"
#include "trace/join.h"
#include "trace/meet.h"

static size_t count_hosts(const struct weft_trace_info *info)
{
	size_t hosts = 0;
	for (size_t i = 0; i < info->part_count; i++) {
		size_t first = 0;
		while (!weft_str_equal(info->parts[first].host, info->parts[i].host))
			first++;
		hosts += first == i;
	}
	return hosts;
}

static int compare(const void *a, const void *b)
{
	const struct weft_transfer *x = a, *y = b;
	return WEFT_ORDER(x->from, y->from) ?: WEFT_ORDER(x->to, y->to);
}

static uint32_t part_of(const struct weft_model *m, uint32_t promise)
{
	const uint16_t stream = m->promises[promise].stream;
	return stream < m->trace->stream_count ? m->trace->streams[stream].part : 0;
}

/* What went from one process to another; false: out of memory. */
static bool count_messages(const struct weft_model *m, size_t *messages, size_t *connections)
{
	struct weft_transfer *all = malloc((m->transfer_count + 1) * sizeof *all);
	*messages = *connections = 0;
	for (size_t i = 0; all && i < m->transfer_count; i++)
		if (part_of(m, m->transfers[i].from) != part_of(m, m->transfers[i].to))
			all[(*messages)++] = m->transfers[i];
	if (all)
		weft_sort(all, *messages, sizeof *all, compare);
	for (size_t i = 0; all && i < *messages; i++) {
		const struct weft_transfer back = {.from = all[i].to, .to = all[i].from};
		const bool is_first = i == 0 || compare(&all[i - 1], &all[i]) != 0;
		/* Both ends are one connection. */
		const bool is_counted = all[i].from > all[i].to && bsearch(&back, all, *messages, sizeof *all, compare);
		*connections += is_first && !is_counted;
	}
	free(all);
	return all != NULL;
}

static void put_pair_json(const struct weft_meet_pair *pair)
{
	printf("{\"first\":%" PRIu32 ",\"second\":%" PRIu32 ",\"connections\":%zu,\"sent\":%zu,\"received\":%zu", pair->parts[0],
	    pair->parts[1], pair->connections, pair->messages[0], pair->messages[1]);
	if (pair->is_tied)
		printf(",\"narrowest_ns\":%" PRId64 ",\"bound_ns\":%" PRId64 ",\"rate_ppb\":[%" PRId64 ",%" PRId64 "]",
		    pair->least_ns / 2, pair->average_ns / 2, pair->rate_low_ppb, pair->rate_high_ppb);
	putchar('}');
}

static void put_json(const struct weft_trace_info *info, const struct weft_meet *meet, size_t messages, size_t connections)
{
	printf("{\"together\":%zu,\"hosts\":%zu,\"connections\":%zu,\"messages\":%zu,\"parts\":[", info->part_count,
	    count_hosts(info), connections, messages);
	for (size_t i = 0; i < info->part_count; i++) {
		const struct weft_part *part = &info->parts[i];
		fputs(i ? ",{\"process\":" : "{\"process\":", stdout);
		cli_put_string(part->process);
		fputs(",\"host\":", stdout);
		cli_put_string(part->host);
		printf(",\"clock\":\"%s\",\"bound_ns\":%" PRId64 "}",
		    part->is_same_clock  ? "same"
		    : part->bound_ns > 0 ? "messages"
					 : "wall",
		    part->bound_ns);
	}
	fputs("],\"clocks\":[", stdout);
	for (size_t i = 0; meet && i < meet->pair_count; i++) {
		fputs(i ? "," : "", stdout);
		put_pair_json(&meet->pairs[i]);
	}
	putchar(']');
	if (meet) {
		printf(",\"unmatched\":%zu,\"renamed\":%zu,\"contradictory\":%zu,\"unwritten\":%zu,\"example\":", meet->alone,
		    meet->renamed, meet->contradictory, meet->unwritten);
		cli_put_cstring(meet->example);
	}
	puts("}");
}

static void put_name(const struct weft_part *part)
{
	cli_put_text((struct weft_str){part->name, (uint32_t)strlen(part->name)});
}

static void put_pair(const struct weft_trace_info *info, const struct weft_meet_pair *pair)
{
	char bound[CLI_DURATION], narrowest[CLI_DURATION];
	fputs("  ", stdout);
	put_name(&info->parts[pair->parts[0]]);
	fputs(" and ", stdout);
	put_name(&info->parts[pair->parts[1]]);
	printf(": %zu connection%s, %zu messages there, %zu back", pair->connections, pair->connections == 1 ? "" : "s",
	    pair->messages[0], pair->messages[1]);
	if (!pair->is_tied) {
		puts(": no tie, since none went one of the two ways");
		return;
	}
	printf(": +-%s on average, +-%s at best; the second clock gains %+.2f to %+.2f ppm\n",
	    cli_format_duration(bound, pair->average_ns / 2), cli_format_duration(narrowest, pair->least_ns / 2),
	    (double)pair->rate_low_ppb / 1000, (double)pair->rate_high_ppb / 1000);
}

static void put_people(const struct weft_trace_info *info, const struct weft_meet *meet, size_t messages, size_t connections)
{
	const size_t hosts = count_hosts(info);
	char bound[CLI_DURATION];
	printf("\ntogether   %zu traces of %zu host%s\nmessages   %zu, by %zu connection%s between processes\nclocks\n",
	    info->part_count, hosts, hosts == 1 ? "" : "s", messages, connections, connections == 1 ? "" : "s");
	for (size_t i = 0; i < info->part_count; i++) {
		fputs("  ", stdout);
		put_name(&info->parts[i]);
		if (info->parts[i].bound_ns > 0)
			printf("  another host, by messages: +-%s on average\n",
			    cli_format_duration(bound, info->parts[i].bound_ns));
		else
			puts(i == 0                         ? "  the clock of all times"
			     : info->parts[i].is_same_clock ? "  the same clock: exact"
							    : "  by the wall clock: some us, if nobody set it");
	}
	if (!meet)
		return;
	puts(meet->pair_count ? "ties" : "ties       none are needed");
	for (size_t i = 0; i < meet->pair_count; i++)
		put_pair(info, &meet->pairs[i]);
	if (meet->alone)
		printf("unmatched  %zu end%s of connections, as %s: none of the traces tells of the other end%s\n", meet->alone,
		    meet->alone == 1 ? "" : "s", meet->example,
		    meet->renamed ? ", or somebody changes addresses on the way (NAT, a proxy)" : "");
	if (meet->contradictory)
		printf("wrong      %zu connection%s, as %s: one end has read what the other cannot have written\n",
		    meet->contradictory, meet->contradictory == 1 ? "" : "s", meet->wrong);
	if (meet->unwritten)
		printf("unwritten  %zu reads of bytes that the other end is not known to have written: events are missing, "
		       "positions are wrong, or the traces were read one after the other while the programs went on\n",
		    meet->unwritten);
}

int cli_together(struct cli_args *traces, bool json)
{
	struct cli_input input;
	int exit = cli_open_model(&input, traces, CLI_KEEP_BINDS | CLI_KEEP_PARTS);
	if (exit >= 0)
		return exit;
	size_t messages, connections;
	if (count_messages(input.model, &messages, &connections)) {
		(json ? put_json : put_people)(weft_trace_info(input.trace), weft_trace_meet(input.trace), messages, connections);
		exit = CLI_FINE;
	} else {
		exit = cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	}
	cli_close(&input);
	return exit;
}
