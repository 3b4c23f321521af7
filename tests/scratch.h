/* scratch.h: a separate folder for each test, and the path of a trace in it.  SPDX-License-Identifier: ISC */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/record.h>

static char scratch[64], path[96];

static int set_up(void **state)
{
	(void)state;
	strcpy(scratch, "/tmp/weft-test-XXXXXX");
	if (!mkdtemp(scratch))
		return -1;
	snprintf(path, sizeof path, "%s/trace", scratch);
	return 0;
}

static int tear_down(void **state)
{
	char command[128];
	(void)state;
	weft_stop();
	snprintf(command, sizeof command, "rm -rf %s", scratch);
	return system(command);
}

#endif
