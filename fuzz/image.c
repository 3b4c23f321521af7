/* image.c: searches any bytes, as a memory image, for rings.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "model/check_model.h"
#include "trace/image.h"
#include "trace/trace.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

/* Checks that the copied bytes are part of the image and not larger. */
static void check_source(const struct weft_source *source, size_t size)
{
	size_t sum = 0;
	CHECK_MODEL(source->blob_count > 0 && source->is_frozen && !source->is_dir);
	for (size_t i = 0; i < source->blob_count; i++) {
		CHECK_MODEL(source->blobs[i].is_found && source->blobs[i].size >= 160);
		sum += source->blobs[i].size;
	}
	CHECK_MODEL(sum <= size);
}

static size_t read_whole(const struct weft_image *image, uint64_t offset, void *to, size_t bytes)
{
	size_t left = offset < image->bytes ? (size_t)(image->bytes - offset) : 0, got = bytes < left ? bytes : left;
	if (got)
		memcpy(to, (const unsigned char *)image->ctx + offset, got);
	return got;
}

/* Reads the same bytes with holes: the first half of each 8 KiB cannot be read. */
static size_t read_with_holes(const struct weft_image *image, uint64_t offset, void *to, size_t bytes)
{
	size_t n = 0;
	for (; n < bytes && offset + n < image->bytes && (offset + n) & 4096; n++)
		((unsigned char *)to)[n] = ((const unsigned char *)image->ctx)[offset + n];
	return n;
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	struct weft_image image = {.name = "fuzz", .bytes = size, .read = read_whole, .ctx = bytes};
	struct weft_source source;
	if (weft__image_search(&source, &image, NULL, NULL) == WEFT_OK) {
		check_source(&source, size);
		weft_source_close(&source);
	}
	image.read = read_with_holes;
	if (weft__image_search(&source, &image, "0", NULL) == WEFT_OK) {
		check_source(&source, size);
		weft_source_close(&source);
	}
	struct weft_trace *trace;
	const struct weft_event *events;
	size_t count;
	if (weft_trace_open_memory(&trace, bytes, size, "fuzz", NULL) < 0)
		return 0;
	int64_t last = INT64_MIN;
	while (weft_trace_next(trace, &events, &count) == 1)
		for (size_t i = 0; i < count; i++) {
			CHECK_MODEL(weft_trace_info(trace)->stream_count > 1 || events[i].time_ns >= last);
			last = events[i].time_ns;
		}
	weft_trace_close(trace);
	return 0;
}
