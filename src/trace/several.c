/* several.c: opens several traces, and follows them, as if they were one.  SPDX-License-Identifier: ISC */
#include "trace/several.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "trace/follow.h"
#include "trace/format.h"
#include "trace/join.h"

const char *weft_several_name(char *buf, size_t size, const char *const *paths, size_t count)
{
	if (count > 1)
		snprintf(buf, size, "%.200s and %zu more", paths[0], count - 1);
	else
		snprintf(buf, size, "%s", count ? paths[0] : "");
	return buf;
}

static int check_copies(struct weft_trace *const *parts, size_t count, struct weft_error *err)
{
	for (size_t i = 0; i + 1 < count; i++)
		if (weft_trace_is_same(parts[i], parts[count - 1]))
			return weft_error_set(err, WEFT_EINVAL, "%.80s is the trace that %.80s is, too",
			    parts[count - 1]->source.name, parts[i]->source.name);
	return WEFT_OK;
}

void weft_several_left_out(struct weft_trace *joined, const struct weft_error *why)
{
	struct weft_skipped *skipped = &joined->skipped[joined->info.skipped_count];
	if (joined->info.skipped_count >= WEFT_SKIPPED_KEPT)
		return;
	skipped->where = *why;
	skipped->where.status = WEFT_EDAMAGED;
	const size_t length = strlen(why->what), room = sizeof why->what - length;
	snprintf(skipped->where.what + length, room, "; it is left out");
	joined->skipped_at_open = ++joined->info.skipped_count;
}

int weft_several_open(struct weft_trace **out, const char *const *paths, size_t count, const char *name, bool is_session,
    weft_trace_open_fn *open, struct weft_error *err)
{
	char own_name[240];
	struct weft_trace **parts = calloc(count, sizeof *parts), *joined = NULL;
	struct weft_error *left_out = calloc(count, sizeof *left_out);
	size_t opened = 0, failed = 0;
	int status = WEFT_OK;
	if (!parts || !left_out) {
		free(parts);
		free(left_out);
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < count && status == WEFT_OK; i++) {
		status = open(&parts[opened], paths[i], &left_out[failed]);
		opened += status == WEFT_OK;
		if (status < 0 && is_session && opened + count - i > 1) {
			failed++;
			status = WEFT_OK;
		} else if (status < 0 && err) {
			*err = left_out[failed];
		} else if (status == WEFT_OK) {
			status = check_copies(parts, opened, err);
			if (count > 1 && status == WEFT_OK && weft_trace_part(parts[opened - 1], 0))
				status = weft_error_set(err, WEFT_EINVAL,
				    "%.80s is an archive of several traces: unpack it, and name its folders", paths[i]);
		}
	}
	if (status == WEFT_OK && count > 1)
		status = weft_trace_join(
		    &joined, parts, opened, name ? name : weft_several_name(own_name, sizeof own_name, paths, count), err);
	for (size_t i = 0; status < 0 && i < opened; i++)
		weft_trace_close(parts[i]);
	for (size_t i = 0; joined && i < failed; i++)
		weft_several_left_out(joined, &left_out[i]);
	if (status == WEFT_OK)
		*out = joined ? joined : parts[0];
	free(left_out);
	free(parts);
	return status;
}

uint64_t weft_several_fingerprint(const char *const *paths, size_t count)
{
	uint64_t all = 0;
	for (size_t i = 0; i < count; i++)
		all = i ? weft_hash_u64(all) ^ weft_trace_fingerprint(paths[i]) : weft_trace_fingerprint(paths[i]);
	return all;
}

bool weft_several_are_recorded(const char *const *paths, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (weft_trace_is_recorded(paths[i]))
			return true;
	return false;
}
