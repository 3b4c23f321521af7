/* multi_report.c: prints how several traces are joined: how their clocks are aligned, and which messages have no counterpart.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "cli.h"
#include "trace/clock_sync.h"
#include "trace/join.h"

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

static int compare_transfers(const void *a, const void *b)
{
	const struct weft_transfer *x = a, *y = b;
	return WEFT_ORDER(x->from, y->from) ?: WEFT_ORDER(x->to, y->to);
}

static uint32_t get_part(const struct weft_model *m, uint32_t promise)
{
	const uint16_t stream = m->promises[promise].stream;
	return stream < m->trace->stream_count ? m->trace->streams[stream].part : 0;
}

/* Counts messages and connections between processes.  Returns false without memory. */
static bool count_messages(const struct weft_model *m, size_t *messages, size_t *connections)
{
	struct weft_transfer *all = malloc((m->transfer_count + 1) * sizeof *all);
	*messages = *connections = 0;
	for (size_t i = 0; all && i < m->transfer_count; i++)
		if (get_part(m, m->transfers[i].from) != get_part(m, m->transfers[i].to))
			all[(*messages)++] = m->transfers[i];
	if (all)
		weft_sort(all, *messages, sizeof *all, compare_transfers);
	for (size_t i = 0; all && i < *messages; i++) {
		const struct weft_transfer back = {.from = all[i].to, .to = all[i].from};
		const bool is_first = i == 0 || compare_transfers(&all[i - 1], &all[i]) != 0;
		/* A connection has two ends, which count once. */
		const bool is_counted = all[i].from > all[i].to && bsearch(&back, all, *messages, sizeof *all, compare_transfers);
		*connections += is_first && !is_counted;
	}
	free(all);
	return all != NULL;
}

static void put_clock_pair_json(const struct weft_clock_pair *pair)
{
	printf("{\"first\":%" PRIu32 ",\"second\":%" PRIu32 ",\"connections\":%zu,\"sent\":%zu,\"received\":%zu", pair->parts[0],
	    pair->parts[1], pair->connections, pair->messages[0], pair->messages[1]);
	if (pair->has_bounds)
		printf(",\"narrowest_ns\":%" PRId64 ",\"bound_ns\":%" PRId64 ",\"rate_ppb\":[%" PRId64 ",%" PRId64 "]",
		    pair->least_ns / 2, pair->average_ns / 2, pair->rate_low_ppb, pair->rate_high_ppb);
	putchar('}');
}

static void put_json(
    const struct weft_trace_info *info, const struct weft_clock_sync *clock_sync, size_t messages, size_t connections)
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
	for (size_t i = 0; clock_sync && i < clock_sync->pair_count; i++) {
		fputs(i ? "," : "", stdout);
		put_clock_pair_json(&clock_sync->pairs[i]);
	}
	putchar(']');
	if (clock_sync) {
		printf(",\"unmatched\":%zu,\"renamed\":%zu,\"contradictory\":%zu,\"unwritten\":%zu,\"example\":",
		    clock_sync->unmatched, clock_sync->renamed, clock_sync->contradictory, clock_sync->unwritten);
		cli_put_cstring(clock_sync->example);
	}
	puts("}");
}

static void put_name(const struct weft_part *part)
{
	cli_put_text((struct weft_str){part->name, (uint32_t)strlen(part->name)});
}

static void put_clock_pair(const struct weft_trace_info *info, const struct weft_clock_pair *pair)
{
	char bound[CLI_DURATION_BYTES], narrowest[CLI_DURATION_BYTES];
	fputs("  ", stdout);
	put_name(&info->parts[pair->parts[0]]);
	fputs(" and ", stdout);
	put_name(&info->parts[pair->parts[1]]);
	printf(": %zu connection%s, %zu messages from the first to the second, %zu back", pair->connections,
	    pair->connections == 1 ? "" : "s", pair->messages[0], pair->messages[1]);
	if (!pair->has_bounds) {
		puts(": clocks not aligned, since messages went only one way");
		return;
	}
	printf(": +-%s on average, +-%s at best; the second clock gains %+.2f to %+.2f ppm\n",
	    cli_format_duration(bound, pair->average_ns / 2), cli_format_duration(narrowest, pair->least_ns / 2),
	    (double)pair->rate_low_ppb / 1000, (double)pair->rate_high_ppb / 1000);
}

static void put_text(
    const struct weft_trace_info *info, const struct weft_clock_sync *clock_sync, size_t messages, size_t connections)
{
	const size_t hosts = count_hosts(info);
	char bound[CLI_DURATION_BYTES];
	printf("\ntogether   %zu traces of %zu host%s\nmessages   %zu, by %zu connection%s between processes\nclocks\n",
	    info->part_count, hosts, hosts == 1 ? "" : "s", messages, connections, connections == 1 ? "" : "s");
	for (size_t i = 0; i < info->part_count; i++) {
		fputs("  ", stdout);
		put_name(&info->parts[i]);
		if (info->parts[i].bound_ns > 0)
			printf("  another host, aligned by messages: +-%s on average\n",
			    cli_format_duration(bound, info->parts[i].bound_ns));
		else
			puts(i == 0 ? "  the reference clock"
			     : info->parts[i].is_same_clock
				 ? "  the same clock: exact"
				 : "  aligned by wall time: to a few us, if the wall clock was not set meanwhile");
	}
	if (!clock_sync)
		return;
	puts(clock_sync->pair_count ? "ties" : "ties       none are needed");
	for (size_t i = 0; i < clock_sync->pair_count; i++)
		put_clock_pair(info, &clock_sync->pairs[i]);
	if (clock_sync->unmatched)
		printf("unmatched  %zu end%s of connections, such as %s: no trace has the other end%s\n", clock_sync->unmatched,
		    clock_sync->unmatched == 1 ? "" : "s", clock_sync->example,
		    clock_sync->renamed ? ", or NAT or a proxy changes the addresses" : "");
	if (clock_sync->contradictory)
		printf("wrong      %zu connection%s, such as %s: one end read bytes that the other never wrote\n",
		    clock_sync->contradictory, clock_sync->contradictory == 1 ? "" : "s", clock_sync->contradiction);
	if (clock_sync->unwritten)
		printf("unwritten  %zu reads of bytes that no trace records as written: events are missing, "
		       "positions are wrong, or the traces were read while the programs still ran\n",
		    clock_sync->unwritten);
}

int cli_multi_report(const struct cli_args *traces, bool json)
{
	struct cli_input input;
	int exit = cli_open_model(&input, traces, CLI_KEEP_BINDS | CLI_KEEP_PARTS);
	if (exit >= 0)
		return exit;
	size_t messages, connections;
	if (count_messages(input.model, &messages, &connections)) {
		(json ? put_json : put_text)(
		    weft_trace_info(input.trace), weft_trace_clock_sync(input.trace), messages, connections);
		exit = CLI_OK;
	} else {
		exit = cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	}
	cli_close(&input);
	return exit;
}
