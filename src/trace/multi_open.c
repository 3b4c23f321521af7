/* multi_open.c: joins, names and follows traces that a user named together.  SPDX-License-Identifier: ISC */
#include "trace/multi_open.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "trace/follow.h"
#include "trace/format.h"
#include "trace/join.h"

const char *weft_multi_name(char *buf, size_t size, const char *const *paths, size_t count)
{
	if (count > 1)
		snprintf(buf, size, "%.200s and %zu more", paths[0], count - 1);
	else
		snprintf(buf, size, "%s", count ? paths[0] : "");
	return buf;
}

void weft_multi_note_left_out(struct weft_trace *joined, const struct weft_error *why)
{
	struct weft_skipped *skipped = &joined->skipped[joined->info.skipped_count];
	if (joined->info.skipped_count >= WEFT_MAX_SKIPPED)
		return;
	skipped->where = *why;
	skipped->where.status = WEFT_EDAMAGED;
	const size_t length = strlen(why->what), capacity = sizeof why->what - length;
	snprintf(skipped->where.what + length, capacity, "; it is left out");
	joined->skipped_at_open = ++joined->info.skipped_count;
}

int weft_multi_join(
    struct weft_trace **out, struct weft_trace *const *parts, size_t count, const char *name, struct weft_error *err)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < i; k++)
			if (weft_trace_is_same(parts[k], parts[i]))
				return weft_error_set(err, WEFT_EINVAL, "%.80s is the same trace as %.80s; leave one out",
				    parts[i]->source.name, parts[k]->source.name);
		if (weft_trace_part(parts[i], 0))
			return weft_error_set(err, WEFT_EINVAL,
			    "%.80s is an archive of several traces; unpack it and name its folders", parts[i]->source.name);
	}
	return weft_trace_join(out, parts, count, name, err);
}

uint64_t weft_multi_fingerprint(const char *const *paths, size_t count)
{
	uint64_t all = 0;
	for (size_t i = 0; i < count; i++)
		all = i ? weft_hash_u64(all) ^ weft_trace_fingerprint(paths[i]) : weft_trace_fingerprint(paths[i]);
	return all;
}

bool weft_multi_is_recorded(const char *const *paths, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (weft_trace_is_recorded(paths[i]))
			return true;
	return false;
}
