/* dns.c: reads questions and answers of DNS over UDP.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "protocol/private.h"

static void put_type(struct weft__name *name, unsigned type)
{
	static const struct {
		unsigned type;
		const char *name;
	} types[] = {{1, " A"}, {28, " AAAA"}, {12, " PTR"}, {5, " CNAME"}, {15, " MX"}, {16, " TXT"}, {33, " SRV"},
	    {65, " HTTPS"}, {2, " NS"}, {6, " SOA"}};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (types[i].type == type)
			weft__put_text(name, types[i].name);
}

bool weft_protocol_dns(const void *bytes, size_t count, struct weft_dns *dns)
{
	enum { HEADER = 12, MAX_LABEL = 63, OPCODE = 0x78, RESULT = 15 };
	static const char *const results[] = {"", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"};
	const unsigned char *at = bytes, *end = at + count;
	*dns = (struct weft_dns){0};
	struct weft__name name = {dns->name, 0};
	/* the message must have one question, and its operation must be a query */
	if (count < HEADER + 5 || at[2] & OPCODE || at[4] != 0 || at[5] != 1)
		return false;
	dns->number = (uint16_t)(at[0] << 8 | at[1]);
	dns->is_answer = at[2] >> 7;
	const unsigned result = at[3] & RESULT;
	if (dns->is_answer && result < sizeof results / sizeof *results)
		memcpy(dns->result, results[result], strlen(results[result]) + 1);
	for (at += HEADER; at<end && * at> 0; at += *at + 1) {
		if (*at > MAX_LABEL || end - at <= *at)
			return false;
		if (name.length > 0)
			weft__put(&name, '.');
		for (unsigned i = 1; i <= *at; i++)
			weft__put(&name, at[i] > ' ' && at[i] < 0x7f ? at[i] : '?');
	}
	if (end - at < 5 || name.length == 0)
		return false;
	put_type(&name, (unsigned)(at[1] << 8 | at[2]));
	return true;
}
