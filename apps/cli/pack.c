/* pack.c: packs a trace into one piece of bytes for pages.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "export/tar.h"
#include "trace/join.h"
#include "trace/source.h"

int cli_bytes_append(void *bytes, const void *more, size_t size)
{
	cli_bytes *vec = bytes;
	if (!weft_vec_reserve(vec, size))
		return -1;
	memcpy(vec->items + vec->count, more, size);
	vec->count += size;
	return 0;
}

struct packing {
	cli_bytes *bytes;
	char folder[16]; /* folder of the trace in the archive if there are several traces; else empty */
};

static int add_file(void *ctx, const char *name, const void *bytes, size_t size)
{
	const struct packing *p = ctx;
	char path[300];
	snprintf(path, sizeof path, "%s%s", p->folder, *name ? name : WEFT_PART_FILE);
	return weft_tar_file(cli_bytes_append, p->bytes, path, bytes, size, NULL) < 0 ? -1 : 0;
}

/* Returns whether the trace in memory is a consistent copy of files that a program was still writing. */
static bool is_copied(const struct weft_trace *trace)
{
	const struct weft_trace_info *info = weft_trace_info(trace);
	return weft_trace_source(trace)->is_frozen || (strcmp(info->format, "native") == 0 && info->unfinished);
}

/* Packs the trace's files without unused packets of a ring; a damaged trace is packed unchanged, so that the page shows the
 * damage. */
static int pack_files(struct packing *p, const struct weft_trace *trace, struct weft_error *err)
{
	const struct weft_source *source = weft_trace_source(trace);
	const struct weft_trace_info *info = weft_trace_info(trace);
	const struct weft_trace *part;
	if (is_copied(trace) || (source->is_dir && strcmp(info->format, "native") == 0 && info->skipped_count == 0))
		return weft_trace_save(trace, NULL, add_file, p, err);
	int status = WEFT_OK;
	for (size_t i = 0; i < source->blob_count && status == WEFT_OK; i++)
		status = add_file(p, source->is_dir ? source->blobs[i].name : "", source->blobs[i].bytes, source->blobs[i].size);
	for (size_t i = 0; (part = weft_trace_part(trace, i)) && status == WEFT_OK; i++) {
		struct packing of_part = {.bytes = p->bytes};
		snprintf(of_part.folder, sizeof of_part.folder, "%03zu/", i);
		status = pack_files(&of_part, part, err);
	}
	return status;
}

int cli_pack(const void **bytes, size_t *size, cli_bytes *packed, const struct weft_trace *trace, struct weft_error *err)
{
	const struct weft_source *source = weft_trace_source(trace);
	struct packing packing = {.bytes = packed};
	if (!source->is_dir && !is_copied(trace)) {
		*bytes = source->blobs[0].bytes;
		*size = source->blobs[0].size;
		return WEFT_OK;
	}
	int status = pack_files(&packing, trace, err);
	if (status == WEFT_OK)
		status = weft_tar_end(cli_bytes_append, packed, err);
	*bytes = packed->items;
	*size = packed->count;
	return status == WEFT_OK ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
}

int cli_pack_window(cli_bytes *packed, const struct weft_followed_model *followed, struct weft_error *err)
{
	struct packing packing = {.bytes = packed};
	int status = weft_followed_model_save(followed, add_file, &packing, err);
	if (status == WEFT_OK)
		status = weft_tar_end(cli_bytes_append, packed, err);
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
