/* clocks.c: joins traces of hosts with known clocks; the true offset must be inside the error bound.
 *
 * The first byte chooses the number of hosts, rounds and bytes of memory.  The second byte chooses whether clocks are counters,
 * and whether each host loses a packet.  The rest are choices.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "trace/fleet_truth.h"

enum { MAX_HOSTS = 5, BYTES = 1 << 18, FEW_BYTES = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(8) unsigned char buffers[MAX_HOSTS][BYTES];
	struct weft_trace *parts[MAX_HOSTS], *trace;
	if (size < 2)
		return 0;
	struct fleet_choices choices = {data + 2, size - 2, data[0]};
	const size_t hosts = 2 + data[0] % (MAX_HOSTS - 1), rounds = 1 + data[0] / 4 % 32;
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
	/* The events that relate the clocks may be overwritten or lost. */
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
