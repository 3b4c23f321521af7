/* profile.c: see profile.h.  SPDX-License-Identifier: ISC */
#include "wire/profile.h"

#include <string.h>

#include "wire/wire.h"

size_t weft__profile_bytes(const struct weft_wire_profile *e)
{
	switch ((enum weft_profile_op)e->op) {
	case WEFT_PROFILE_PERIOD: return WEFT_EXTENDED_HEADER + 16;
	case WEFT_PROFILE_MODULE: return WEFT_EXTENDED_HEADER + 21 + strlen(e->text) + 1 + strlen(e->second) + 1;
	case WEFT_PROFILE_PLACE: return WEFT_EXTENDED_HEADER + 16;
	case WEFT_PROFILE_STACK: return WEFT_EXTENDED_HEADER + 12;
	case WEFT_PROFILE_SAMPLE: return WEFT_EXTENDED_HEADER + 8;
	case WEFT_PROFILE_WAY: return WEFT_EXTENDED_HEADER + 1 + strlen(e->text) + 1;
	case WEFT_PROFILE_SITE: return WEFT_EXTENDED_HEADER + 8 + strlen(e->text) + 1 + strlen(e->second) + 1;
	}
	return 0;
}

static unsigned char *write_bytes(unsigned char *to, const void *bytes, size_t size)
{
	memcpy(to, bytes, size);
	return to + size;
}

static unsigned char *write_texts(unsigned char *to, const struct weft_wire_profile *e)
{
	to = write_bytes(to, e->text, strlen(e->text) + 1);
	return write_bytes(to, e->second, strlen(e->second) + 1);
}

unsigned char *weft__profile_write(unsigned char *to, const struct weft_wire_profile *e, uint64_t time)
{
	*to++ = WEFT_ID_EXTENDED;
	*to++ = e->op;
	to = write_bytes(to, &time, sizeof time);
	if (e->op == WEFT_PROFILE_PERIOD) {
		to = write_bytes(to, &e->a, sizeof e->a);
		return write_bytes(to, &e->b, sizeof e->b);
	}
	if (e->op == WEFT_PROFILE_WAY) {
		*to++ = e->role;
		return write_bytes(to, e->text, strlen(e->text) + 1);
	}
	to = write_bytes(to, &e->number, sizeof e->number);
	if (e->op == WEFT_PROFILE_MODULE) {
		*to++ = e->role;
		to = write_bytes(to, &e->a, sizeof e->a);
		to = write_bytes(to, &e->b, sizeof e->b);
		return write_texts(to, e);
	}
	to = write_bytes(to, &e->other, sizeof e->other);
	if (e->op == WEFT_PROFILE_SITE)
		return write_texts(to, e);
	if (e->op == WEFT_PROFILE_PLACE)
		return write_bytes(to, &e->a, sizeof e->a);
	return e->op == WEFT_PROFILE_STACK ? write_bytes(to, &e->place, sizeof e->place) : to;
}
