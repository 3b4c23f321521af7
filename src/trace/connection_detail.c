/* connection_detail.c: parses the recorded detail of a connection: "PROTOCOL OWN PEER RECEIVED".
 * SPDX-License-Identifier: ISC */
#include "trace/connection_detail.h"

bool weft_connection_detail_parse(struct weft_str text, struct weft_connection_detail *out)
{
	uint32_t word[4] = {0}, words = 1;
	uint64_t received = 0;
	for (uint32_t i = 0; i < text.len; i++)
		if (text.ptr[i] == ' ' && words++ < 4)
			word[words - 1] = i + 1;
	if (words != 4 || word[3] == text.len)
		return false;
	for (uint32_t i = word[3]; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return false;
		received = received * 10 + (uint64_t)(text.ptr[i] - '0');
	}
	struct weft_str parts[3];
	for (int i = 0; i < 3; i++) {
		parts[i] = (struct weft_str){text.ptr + word[i], word[i + 1] - word[i] - 1};
		if (parts[i].len == 0)
			return false;
	}
	*out = (struct weft_connection_detail){parts[0], parts[1], parts[2], received};
	return true;
}
