/* flight.c DIRECTORY early|late: records 10 s of traffic, with a simulated clock, into a ring of 1 MB.  A promise of the first ms
 * awaits another one, and both stay pending.  "late" starts to record after both are created.  SPDX-License-Identifier: ISC
 */
#include <stdio.h>
#include <string.h>
#include <weft/record.h>

#define EVENT_NS 5000u
#define TRAFFIC_NS 10000000000u

static uint64_t now_ns = 1000;

static uint64_t clock_ns(void)
{
	return now_ns;
}

static struct {
	weft_id id;
	struct weft_record_site *site;
	uint64_t since;
	const char *label;
} requests[2];

static void tell(int i)
{
	requests[i].id = weft_pending(
	    WEFT_SYSTEM_ID, requests[i].id, WEFT_KIND_REQUEST, requests[i].site, requests[i].since, requests[i].label);
}

static uint64_t list_requests(void *data, uint64_t cursor, unsigned budget)
{
	for (; cursor < 2 && budget--; cursor++) {
		tell((int)cursor);
		if (cursor == 0 && !requests[1].id)
			tell(1);
		if (cursor == 0)
			weft_still_awaits(requests[0].id, requests[1].id);
	}
	return cursor < 2 ? cursor : 0;
}

static void ask(int i, const char *label)
{
	requests[i].site = WEFT_SITE();
	requests[i].since = now_ns;
	requests[i].label = label;
	requests[i].id = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_REQUEST, requests[i].site);
	weft_label(requests[i].id, label);
	now_ns += EVENT_NS;
}

static int start(const char *directory)
{
	struct weft_record_options options = {
	    .directory = directory, .size_bytes = 1 << 20, .clock = clock_ns, .clock_hz = 1000000000};
	int status = weft_start(&options);
	if (status < 0)
		fprintf(stderr, "%s\n", weft_start_error());
	return status;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	bool late = strcmp(argv[2], "late") == 0;
	if (!late && start(argv[1]) < 0)
		return 1;
	weft_list_pending(list_requests, NULL);
	ask(0, "forgotten");
	ask(1, "never answered");
	weft_await(requests[0].id, requests[1].id);
	if (late && start(argv[1]) < 0)
		return 1;
	unsigned long events = 0;
	for (uint64_t end_ns = now_ns + TRAFFIC_NS; now_ns < end_ns; events += 4) {
		weft_id id = WEFT_CREATE(WEFT_KIND_TASK);
		now_ns += EVENT_NS;
		weft_run(id);
		now_ns += EVENT_NS;
		weft_resolve(id, id);
		now_ns += EVENT_NS;
		weft_idle(WEFT_IDLE_WAIT);
		now_ns += EVENT_NS;
	}
	weft_stop();
	printf("%lu\n", events);
	return 0;
}
