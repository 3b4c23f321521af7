/* trace.c: chooses the format of a trace, and forwards calls to it.
 * SPDX-License-Identifier: ISC */
#include "trace/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "trace/format.h"
#include "trace/image.h"

static const struct weft_trace_format *const formats[] = {
    &weft__format_native, &weft__format_mirage, &weft__format_ocaml, &weft__format_fxt, &weft__format_sexp, NULL};

const struct weft_trace_format *weft__trace_probe(const struct weft_source *source)
{
	const struct weft_trace_format *best = NULL;
	enum weft_confidence most = WEFT_CONFIDENCE_NONE;
	for (size_t i = 0; formats[i]; i++) {
		enum weft_confidence confidence = formats[i]->probe(source);
		if (confidence > most) {
			most = confidence;
			best = formats[i];
		}
	}
	return best;
}

void weft__trace_set_location(
    struct weft_error *err, const struct weft_source *source, const struct weft_blob *blob, uint64_t packet, uint64_t offset)
{
	if (!err)
		return;
	const char *dir = source && source->is_dir ? source->name : "";
	const char *file = blob ? blob->name : source && !source->is_dir ? source->name : "";
	snprintf(err->file, sizeof err->file, "%s%s%s", dir, dir[0] && file[0] ? "/" : "", file);
	bool is_found = blob && blob->is_found;
	err->packet = is_found ? WEFT_NO_OFFSET : packet;
	err->offset = is_found && offset != WEFT_NO_OFFSET ? blob->address + offset : offset;
}

int weft__trace_fail(
    struct weft_error *err, int status, const struct weft_source *source, const struct weft_blob *blob, const char *what, ...)
{
	if (err) {
		va_list args;
		va_start(args, what);
		vsnprintf(err->what, sizeof err->what, what, args);
		va_end(args);
		err->status = (enum weft_status)status;
		weft__trace_set_location(err, source, blob, WEFT_NO_OFFSET, WEFT_NO_OFFSET);
	}
	return status;
}

void weft__trace_skip(struct weft_trace *trace, const struct weft_blob *blob, uint64_t packet, uint64_t offset, uint64_t bytes,
    const char *what, ...)
{
	if (trace->is_end_reached)
		return;
	if (trace->info.skipped_count < WEFT_MAX_SKIPPED) {
		struct weft_skipped *skipped = &trace->skipped[trace->info.skipped_count];
		va_list args;
		va_start(args, what);
		vsnprintf(skipped->where.what, sizeof skipped->where.what, what, args);
		va_end(args);
		skipped->where.status = WEFT_EDAMAGED;
		weft__trace_set_location(&skipped->where, &trace->source, blob, packet, offset);
		skipped->bytes = bytes;
	}
	trace->info.skipped_count++;
	trace->info.unplaced_count++;
}

void weft__trace_mark_placed(struct weft_trace *trace, size_t count)
{
	if (!trace->is_end_reached)
		trace->info.unplaced_count -= count;
}

const char *weft__trace_unknown_text(const unsigned char *bytes, size_t size)
{
	if (size == 0)
		return "the file is empty";
	if (size >= 4 && weft_load_u32(bytes) == 0xC1FC1FC1u)
		return "a CTF trace with the UUID of a format that weft does not read";
	if (size >= 3 && memcmp(bytes, "\x1f\x8b\x08", 3) == 0)
		return "a gzip file; unpack it: zcat FILE | weft ... -";
	if (size >= 4 && memcmp(bytes, "\x28\xb5\x2f\xfd", 4) == 0)
		return "a zstd file; unpack it: zstdcat FILE | weft ... -";
	if (size >= 14 && memcmp(bytes, "{\"traceEvents\"", 14) == 0)
		return "a Chrome trace, which weft does not read; open it in ui.perfetto.dev";
	if (size >= 10 && memcmp(bytes, "/* CTF 1.8", 10) == 0)
		return "the metadata of a CTF trace; open its directory instead";
	return weft_status_string(WEFT_EFORMAT);
}

/* Sets the error that no format matches. */
static int fail_unknown(struct weft_error *err, const struct weft_source *source)
{
	/* The source is an archive, because open.c rejects other directories. */
	const char *what = source->is_dir ? "the directory has no trace in a format that weft reads"
					  : weft__trace_unknown_text(source->blobs[0].bytes, source->blobs[0].size);
	return weft__trace_fail(err, WEFT_EFORMAT, source, NULL, "%s", what);
}

/* Reads an image again, because it may be changing. */
static size_t reread_image(const struct weft_image *image, uint64_t offset, void *to, size_t bytes)
{
	const struct weft_source *source = image->ctx;
	size_t left = offset < image->bytes ? (size_t)(image->bytes - offset) : 0, wanted = bytes < left ? bytes : left;
	return wanted && source->reread(source, &source->blobs[0], offset, to, wanted) ? wanted : 0;
}

static size_t read_copied(const struct weft_image *image, uint64_t offset, void *to, size_t bytes)
{
	const struct weft_source *source = image->ctx;
	const struct weft_blob *blob = &source->blobs[0];
	size_t left = offset < blob->size ? blob->size - (size_t)offset : 0, got = bytes < left ? bytes : left;
	if (got)
		memcpy(to, blob->bytes + offset, got);
	return got;
}

/* Returns the next offset after the holes that the file had when it was read. */
static uint64_t next_data(const struct weft_image *image, uint64_t offset, uint64_t *end)
{
	const struct weft_source *source = image->ctx;
	const struct weft_blob *blob = &source->blobs[0];
	const struct weft_span span = weft__blob_data(blob, offset < blob->size ? (size_t)offset : blob->size);
	*end = span.begin < span.end ? span.end : UINT64_MAX;
	return span.begin < span.end ? span.begin : UINT64_MAX;
}

/* Describes the only blob of the source as an image: its file or memory as it is now, or the copy. */
static struct weft_image make_image(const struct weft_source *source, bool is_copied)
{
	const struct weft_blob *blob = &source->blobs[0];
	return (struct weft_image){
	    .name = blob->name,
	    .bytes = blob->size,
	    .read = source->reread && !is_copied ? reread_image : read_copied,
	    .next_data = next_data,
	    .ctx = source,
	};
}

/* Finds the format of a source.  If the source has no known format, replaces it by the ring in it, if there is one. */
static int find_format(const struct weft_trace_format **out, struct weft_source *source, struct weft_error *err)
{
	const bool is_alone = !source->is_dir && source->blob_count == 1 && !source->blobs[0].is_found;
	int status = WEFT_OK;
	*out = weft__trace_probe(source);
	/* Consecutive packets may belong to two rings, for example of a device that was restarted. */
	if (is_alone && *out == &weft__format_native) {
		const struct weft_image image = make_image(source, true);
		if (weft__image_has_several(&image))
			*out = NULL;
	}
	if (is_alone && !*out) {
		const struct weft_image image = make_image(source, false);
		struct weft_source found;
		status = weft__image_search(&found, &image, NULL, err);
		if (status == WEFT_OK) {
			weft_source_close(source);
			*source = found;
			*out = weft__trace_probe(source);
		}
	}
	return status < 0 || *out ? status : fail_unknown(err, source);
}

/* Creates a trace, which owns the source if the function succeeds. */
static int create_trace(
    struct weft_trace **out, const struct weft_trace_format *format, struct weft_source *source, struct weft_error *err)
{
	struct weft_trace *trace = calloc(1, sizeof *trace);
	struct weft_skipped *skipped = calloc(WEFT_MAX_SKIPPED, sizeof *skipped);
	int status = WEFT_ENOMEM;
	if (trace && skipped) {
		trace->format = format;
		trace->source = *source;
		trace->skipped = skipped;
		trace->info.skipped = skipped;
		trace->info.format = format->name;
		trace->info.found_packets = source->is_frozen ? source->blob_count : 0;
		for (size_t i = 0; i < source->note_count; i++)
			weft__trace_skip(trace, NULL, WEFT_NO_OFFSET, WEFT_NO_OFFSET, 0, "%s", source->notes[i]);
		status = format->open(trace, err);
		weft__source_end_reading(&trace->source);
		*source = trace->source;
	} else {
		weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	if (status == WEFT_OK) {
		trace->skipped_at_open = trace->info.skipped_count;
		trace->unplaced_at_open = trace->info.unplaced_count;
		*out = trace;
	} else {
		free(trace);
		free(skipped);
	}
	return status;
}

int weft__trace_from_source(struct weft_trace **out, struct weft_source *source, struct weft_error *err)
{
	const struct weft_trace_format *format;
	if (source->has_folders)
		return weft__trace_from_folders(out, source, err);
	int status = find_format(&format, source, err);
	if (status == WEFT_OK)
		status = create_trace(out, format, source, err);
	if (status < 0)
		weft_source_close(source);
	return status;
}

void weft__trace_set_lived_until(struct weft_trace *trace, int64_t wall_ns)
{
	int64_t since_ns, until_ns;
	if (trace->pair_wall_ns <= 0 || __builtin_sub_overflow(wall_ns, trace->pair_wall_ns, &since_ns) || since_ns < 0 ||
	    __builtin_add_overflow(trace->pair_ns, since_ns, &until_ns))
		return;
	trace->info.until_ns = until_ns;
}

int weft_trace_open_memory(struct weft_trace **out, const void *bytes, size_t size, const char *name, struct weft_error *err)
{
	struct weft_source source;
	int status = weft_source_from_memory(&source, bytes, size, name, err);
	return status < 0 ? status : weft__trace_from_source(out, &source, err);
}

int weft_trace_open_owned(struct weft_trace **out, void *bytes, size_t size, const char *name, struct weft_error *err)
{
	struct weft_source source;
	const struct weft_blob blob = {.bytes = bytes, .size = size, .owner = WEFT_BLOB_HEAP};
	int status = weft__source_from_blob(&source, blob, name, err);
	return status < 0 ? status : weft__trace_from_source(out, &source, err);
}

int weft_trace_open_live(struct weft_trace **out, bool (*read)(void *ctx, uint64_t offset, void *to, size_t bytes), void *ctx,
    size_t size, const char *name, struct weft_error *err)
{
	struct weft_source source;
	int status = weft__source_from_reader(&source, read, ctx, size, name, err);
	return status < 0 ? status : weft__trace_from_source(out, &source, err);
}

void weft_trace_close(struct weft_trace *trace)
{
	if (trace) {
		trace->format->close(trace);
		weft_source_close(&trace->source);
		weft__site_texts_free(trace->texts);
		free(trace->skipped);
		free(trace);
	}
}

const struct weft_source *weft_trace_source(const struct weft_trace *trace)
{
	return &trace->source;
}

const struct weft_trace_info *weft_trace_info(const struct weft_trace *trace)
{
	return &trace->info;
}

int weft_trace_next(struct weft_trace *trace, const struct weft_event **events, size_t *count)
{
	if (trace->checkpoint_count && !trace->has_given_checkpoint) {
		trace->has_given_checkpoint = true;
		*events = trace->checkpoint;
		*count = trace->checkpoint_count;
		return 1;
	}
	int more = trace->format->next(trace, events, count);
	if (more == 0)
		trace->is_end_reached = true;
	return more;
}

bool weft_trace_field(const struct weft_trace *trace, const struct weft_event *event, unsigned index, struct weft_field *out)
{
	return event->op == WEFT_EVENT_OTHER && trace->format->field && trace->format->field(trace, event, index, out);
}

size_t weft_trace_callers(const struct weft_trace_info *info, struct weft_str text, uint32_t *sites, size_t capacity)
{
	size_t count = 0;
	for (uint32_t i = 0; i < text.len;) {
		uint32_t key = 0, begin = i;
		for (; i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9'; i++)
			key = key < info->key_count ? key * 10 + (uint32_t)(text.ptr[i] - '0') : key;
		if (i > begin && count < capacity)
			sites[count] = key < info->key_count ? info->site_of_key[key] : WEFT_NO_SITE;
		count += i > begin;
		i += i == begin || i < text.len;
	}
	return count;
}

int weft_trace_save(const struct weft_trace *trace, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx,
    struct weft_error *err)
{
	int status = WEFT_ENOTSUP;
	if (trace->format->save)
		status = trace->format->save(trace, edit, file, ctx);
	else if (!edit)
		status = file(ctx, "", trace->source.blobs[0].bytes, trace->source.blobs[0].size) ? WEFT_EIO : WEFT_OK;
	return status < 0 ? weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status)) : WEFT_OK;
}

int weft_trace_kernel(struct weft_trace *trace, weft_kernel_fn *each, void *ctx, struct weft_kernel_info *info)
{
	*info = (struct weft_kernel_info){0};
	return trace->format->kernel ? trace->format->kernel(trace, each, ctx, info) : 0;
}

int weft_trace_lines(const struct weft_trace *trace, weft_trace_line_fn *write_line, void *ctx)
{
	return trace->format->lines ? trace->format->lines(trace, write_line, ctx) : WEFT_EINVAL;
}

void weft_trace_rewind(struct weft_trace *trace)
{
	trace->format->rewind(trace);
	trace->has_given_checkpoint = false;
	if (!trace->is_end_reached) {
		trace->info.skipped_count = trace->skipped_at_open;
		trace->info.unplaced_count = trace->unplaced_at_open;
	}
}
