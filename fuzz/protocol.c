/* protocol.c: reads any bytes as questions and answers.  SPDX-License-Identifier: ISC */
#include "protocol/protocol.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

/* The first byte has the protocol; the second one has the size of the pieces. */
int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	if (size < 2)
		return 0;
	struct weft_protocol_state state = {.protocol = bytes[0] % (WEFT_PROTOCOL_LINES + 2)};
	const size_t piece = (size_t)bytes[1] + 1;
	for (size_t at = 2; at < size; at += piece) {
		const size_t count = piece < size - at ? piece : size - at;
		struct weft_question question;
		struct weft_answer answer;
		struct weft_dns dns;
		if (weft_protocol_question(&state, bytes + at, count, bytes[0] & 128, &question) &&
		    (!memchr(question.name, 0, sizeof question.name) || !question.name[0] || question.count > 64))
			abort();
		if (state.held > sizeof state.head)
			abort();
		char host[WEFT_HOST_BYTES], parent[WEFT_TRACE_PARENT_BYTES];
		weft_protocol_host(bytes + at, count, host);
		weft_protocol_trace_parent(bytes + at, count, parent);
		if (!memchr(host, 0, sizeof host) || !memchr(parent, 0, sizeof parent))
			abort();
		weft_protocol_answer(&state, bytes + at, count, &answer);
		if (!memchr(answer.result, 0, sizeof answer.result))
			abort();
		if (weft_protocol_dns(bytes + at, count, &dns) && !memchr(dns.name, 0, sizeof dns.name))
			abort();
	}
	return 0;
}
