/* make_fleet.c: writes traces of hosts with known clocks: make_fleet OUT HOSTS ROUNDS [SEED [FAULT [PROMISES [together]]]].
 *
 * Writes OUT/0, OUT/1 and so on, a trace for each host; with `together`, one trace OUT/0 in which one process has the events of
 * all hosts.  FAULT: sound, nat, late, one-way, jumps, same-clock, counters or one-jumps.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fleet.h"

int main(int argc, char **argv)
{
	static const char *const faults[] = {"sound", "nat", "late", "one-way", "jumps", "same-clock", "counters", "one-jumps"};
	const size_t hosts = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	struct fleet_choices choices = {.seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1};
	const size_t truths = argc > 6 ? strtoul(argv[6], NULL, 10) : FLEET_TRUTHS;
	const bool are_together = argc > 7 && !strcmp(argv[7], "together");
	unsigned fault = 0;
	while (argc > 5 && fault < sizeof faults / sizeof *faults && strcmp(faults[fault], argv[5]) != 0)
		fault++;
	if (argc < 4 || hosts < 1 || hosts > FLEET_MOST || fault == sizeof faults / sizeof *faults)
		return 2;
	struct fleet *fleet = fleet_create(&choices, hosts, strtoul(argv[3], NULL, 10), truths, (enum fleet_fault)fault);
	bool ok = fleet != NULL;
	mkdir(argv[1], 0777);
	for (size_t i = 0; i < (are_together ? 1 : hosts) && ok; i++) {
		char path[4096];
		snprintf(path, sizeof path, "%s/%zu", argv[1], i);
		ok = fleet_record(fleet, are_together ? FLEET_TOGETHER : i,
		    &(struct weft_record_options){.directory = path, .mode = WEFT_RECORD_GROW});
		if (!ok)
			fprintf(stderr, "%s: %s\n", path, weft_start_error());
	}
	fleet_destroy(fleet);
	return ok ? 0 : 1;
}
