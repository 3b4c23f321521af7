/* clocks.c: hosts whose clocks are known, by any choices: what they record is joined, and the truth is inside the bound.
 *
 * The first byte says how many hosts, rounds and bytes of memory; the rest are choices.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "trace/fleet_truth.h"

enum { MOST = 5, BYTES = 1 << 18, FEW_BYTES = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(8) unsigned char buffers[MOST][BYTES];
	struct weft_trace *parts[MOST], *trace;
	if (size < 1)
		return 0;
	struct fleet_choices choices = {data + 1, size - 1, data[0]};
	const size_t hosts = 2 + data[0] % (MOST - 1), rounds = 1 + data[0] / 4 % 32;
	const bool wraps = data[0] & 0x80;
	struct fleet *fleet = fleet_create(&choices, hosts, rounds, FLEET_TRUTHS, FLEET_SOUND);
	if (!fleet)
		return 0;
	for (size_t i = 0; i < hosts; i++) {
		const size_t bytes = wraps ? FEW_BYTES : BYTES;
		memset(buffers[i], 0, bytes);
		if (!fleet_record(fleet, i, &(struct weft_record_options){.buffer = buffers[i], .buffer_bytes = bytes}) ||
		    weft_trace_open_memory(&parts[i], buffers[i], bytes, "fuzz", NULL) < 0)
			abort();
	}
	/* Of a ring what would tie them may be overwritten. */
	const int status = weft_trace_join(&trace, parts, hosts, "fleet", NULL);
	if (status < 0 && !wraps)
		abort();
	if (status == WEFT_OK && fleet_compare(fleet, trace).wrong)
		abort();
	for (size_t i = 0; i < hosts && status < 0; i++)
		weft_trace_close(parts[i]);
	if (status == WEFT_OK)
		weft_trace_close(trace);
	fleet_destroy(fleet);
	return 0;
}
