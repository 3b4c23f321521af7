/* pack.c: a trace as one piece of bytes, for pages.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "export/tar.h"
#include "trace/source.h"

int cli_append(void *bytes, const void *more, size_t size)
{
	cli_bytes *vec = bytes;
	if (!weft_vec_reserve(vec, size))
		return -1;
	memcpy(vec->items + vec->count, more, size);
	vec->count += size;
	return 0;
}

static int add_file(void *ctx, const char *name, const void *bytes, size_t size)
{
	return weft_tar_file(cli_append, ctx, name, bytes, size, NULL) < 0 ? -1 : 0;
}

int cli_pack(const void **bytes, size_t *size, cli_bytes *packed, const struct weft_trace *trace, struct weft_error *err)
{
	const struct weft_source *source = weft_trace_source(trace);
	int status = WEFT_OK;
	const struct weft_trace_info *info = weft_trace_info(trace);
	const bool is_native = strcmp(info->format, "native") == 0;
	// What a program was writing was read several times, until it was one stretch.
	const bool is_live = is_native && info->unfinished;
	if (!source->is_dir && !source->is_still && !is_live) {
		*bytes = source->blobs[0].bytes;
		*size = source->blobs[0].size;
		return WEFT_OK;
	}
	// Without a ring's unused packets; but who looks is to see what is damaged.
	if ((is_native && info->skipped_count == 0) || is_live || source->is_still)
		status = weft_trace_save(trace, NULL, add_file, packed, err);
	else
		for (size_t i = 0; i < source->blob_count && status == WEFT_OK; i++)
			status = weft_tar_file(
			    cli_append, packed, source->blobs[i].name, source->blobs[i].bytes, source->blobs[i].size, err);
	if (status == WEFT_OK)
		status = weft_tar_end(cli_append, packed, err);
	*bytes = packed->items;
	*size = packed->count;
	return status == WEFT_OK ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
}

const char *cli_base_name(const char *path)
{
	size_t length = strlen(path);
	while (length > 1 && path[length - 1] == '/')
		length--;
	const char *slash = memrchr(path, '/', length);
	return slash && slash[1] ? slash + 1 : path;
}
