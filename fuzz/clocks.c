/* clocks.c: hosts whose clocks are known, by any choices: what they record is joined, and the truth is inside the bound.
 *
 * The first byte says how many hosts, rounds and bytes of memory, the second whether clocks are counters, and whether of each
 * host a packet is lost; the rest are choices.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "trace/fleet_truth.h"

enum { MOST = 5, BYTES = 1 << 18, FEW_BYTES = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(8) unsigned char buffers[MOST][BYTES];
	struct weft_trace *parts[MOST], *trace;
	if (size < 2)
		return 0;
	struct fleet_choices choices = {data + 2, size - 2, data[0]};
	const size_t hosts = 2 + data[0] % (MOST - 1), rounds = 1 + data[0] / 4 % 32;
	const bool wraps = data[0] & 0x80, are_counters = data[1] & 1, loses = data[1] & 2;
	struct fleet *fleet = fleet_create(&choices, hosts, rounds, FLEET_TRUTHS, are_counters ? FLEET_COUNTERS : FLEET_SOUND);
	if (!fleet)
		return 0;
	for (size_t i = 0; i < hosts; i++) {
		const size_t bytes = wraps ? FEW_BYTES : BYTES;
		memset(buffers[i], 0, bytes);
		if (!fleet_record(fleet, i,
			&(struct weft_record_options){
			    .buffer = buffers[i], .buffer_bytes = bytes, .packet_bytes = loses ? FLEET_PACKET : 0}))
			abort();
		if (loses)
			fleet_lose(buffers[i], bytes, data[1] / 4 + i);
		if (weft_trace_open_memory(&parts[i], buffers[i], bytes, "fuzz", NULL) < 0)
			abort();
	}
	/* What would tie them may be overwritten, or lost. */
	const int status = weft_trace_join(&trace, parts, hosts, "fleet", NULL);
	if (status < 0 && !wraps && !loses)
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
