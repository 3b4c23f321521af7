/* native_save.c: a native trace's packets, as they were when it was opened, as files.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "trace/native.h"

/* A packet as long as its content, as the recorder leaves the last one when it stops. */
static int save_packet(const struct native_packet *p, const char *name, weft_trace_file_fn *file, void *ctx)
{
	unsigned char *copy = malloc(p->content_bytes);
	if (!copy)
		return WEFT_ENOMEM;
	memcpy(copy, p->bytes, p->content_bytes);
	const uint64_t bits = (uint64_t)p->content_bytes * 8;
	memcpy(copy + offsetof(struct weft_packet_header, content_size), &bits, sizeof bits);
	memcpy(copy + offsetof(struct weft_packet_header, packet_size), &bits, sizeof bits);
	int failed = file(ctx, name, copy, p->content_bytes);
	free(copy);
	return failed ? WEFT_EIO : WEFT_OK;
}

/* What a buffer has no room for: with the layout, so that other readers understand it too. */
static int save_metadata(const struct weft_trace *trace, weft_trace_file_fn *file, void *ctx)
{
	const struct native *n = trace->state;
	const struct weft_trace_info *info = &trace->info;
	char *host = strndup(info->host.ptr, info->host.len), *process = strndup(info->process.ptr, info->process.len),
	     *command = strndup(info->command.ptr, info->command.len),
	     *runtimes = strndup(info->runtimes.ptr, info->runtimes.len), *text = NULL;
	struct weft_metadata metadata = {
	    .clock_hz = n->clock.hz,
	    .clock_origin_ns = n->clock.origin_ns,
	    .clock_source = "caller",
	    .clock_measured = "exact",
	    .host = host,
	    .process = process,
	    .command = command,
	    .runtimes = info->runtimes.len ? runtimes : NULL,
	    .extra = n->extras.items,
	    .extra_count = n->extras.count,
	    .mode = n->is_ring ? "ring" : "grow",
	    .state = n->is_finished ? "finished" : "recording",
	    .pid = info->pid,
	};
	memcpy(metadata.uuid, n->uuid, sizeof metadata.uuid);
	int status = WEFT_ENOMEM;
	if (host && process && command && runtimes) {
		size_t size = weft__metadata_format(NULL, 0, &metadata);
		text = malloc(size + 1);
		if (text) {
			weft__metadata_format(text, size + 1, &metadata);
			status = file(ctx, "metadata", text, size) ? WEFT_EIO : WEFT_OK;
		}
	}
	free(text);
	free(host);
	free(process);
	free(command);
	free(runtimes);
	return status;
}

static bool is_named_place(const struct weft_site *site)
{
	return site->offset && (site->file.len || site->function.len);
}

/* What a named place is as a plain site; of one in a file of which nobody knows the source, the file is the module. */
static struct weft_wire_definition definition_of(const struct weft_site *site, uint32_t key)
{
	struct weft_str file = site->file.len ? site->file : weft_module_short_name(site->module);
	return (struct weft_wire_definition){.what = WEFT_DEFINE_SITE,
	    .key = (uint16_t)key,
	    .line = site->line,
	    .text = file.len ? file.ptr : "",
	    .text_bytes = file.len,
	    .second = site->function.len ? site->function.ptr : "",
	    .second_bytes = site->function.len};
}

/* The names that places were given since, in a packet behind the definitions: each key then means what was said of it last. */
static int save_names(const struct native *n, weft_trace_file_fn *file, void *ctx)
{
	size_t bytes = sizeof(struct weft_packet_header);
	for (uint32_t key = 1; key < n->key_count; key++)
		if (n->site_index[key] != WEFT_NO_SITE && is_named_place(&n->sites.items[n->site_index[key]])) {
			const struct weft_wire_definition d = definition_of(&n->sites.items[n->site_index[key]], key);
			bytes += weft__definition_bytes(&d);
		}
	if (bytes == sizeof(struct weft_packet_header) || n->definitions.count == 0)
		return WEFT_OK;
	unsigned char *packet = malloc(bytes), *at = packet + sizeof(struct weft_packet_header);
	if (!packet)
		return WEFT_ENOMEM;
	/* Losses are told by the last packet. */
	struct weft_packet_header header, last;
	memcpy(&last, n->definitions.items[n->definitions.count - 1].bytes, sizeof last);
	header = last;
	weft__packet_init(&header, n->uuid, WEFT_CLASS_DEFINITIONS, last.stream_instance_id, bytes);
	header.content_size = header.packet_size;
	header.lock = 0;
	header.timestamp_begin = n->last_definition;
	header.sequence = last.sequence + 1;
	header.events_discarded = last.events_discarded;
	header.lost_no_stream = last.lost_no_stream;
	header.clock_hz = last.clock_hz;
	memcpy(packet, &header, sizeof header);
	for (uint32_t key = 1; key < n->key_count; key++)
		if (n->site_index[key] != WEFT_NO_SITE && is_named_place(&n->sites.items[n->site_index[key]])) {
			const struct weft_wire_definition d = definition_of(&n->sites.items[n->site_index[key]], key);
			at = weft__definition_write(at, &d, n->last_definition);
		}
	char name[64];
	snprintf(name, sizeof name, "definitions-%zu", n->definitions.count);
	int failed = file(ctx, name, packet, bytes);
	free(packet);
	return failed ? WEFT_EIO : WEFT_OK;
}

int weft__native_save(const struct weft_trace *trace, weft_trace_file_fn *file, void *ctx)
{
	const struct native *n = trace->state;
	char name[64];
	int status = WEFT_OK;
	uint64_t number = 0;
	for (size_t i = 0; i < n->definitions.count && status == WEFT_OK; i++) {
		snprintf(name, sizeof name, "definitions-%zu", i);
		status = save_packet(&n->definitions.items[i], name, file, ctx);
	}
	if (status == WEFT_OK)
		status = save_names(n, file, ctx);
	for (size_t i = 0; i < n->packets.count && status == WEFT_OK; i++) {
		const struct native_packet *p = &n->packets.items[i];
		number = i && p[-1].instance == p->instance ? number + 1 : 0;
		snprintf(name, sizeof name, "stream-%" PRIu32 "-%" PRIu64, p->instance, number);
		status = save_packet(p, name, file, ctx);
	}
	for (size_t i = 0; i < n->kernel.count && status == WEFT_OK; i++) {
		const struct native_packet *p = &n->kernel.items[i];
		number = i && p[-1].instance == p->instance ? number + 1 : 0;
		snprintf(name, sizeof name, "kernel-%" PRIu32 "-%" PRIu64, p->instance, number);
		status = save_packet(p, name, file, ctx);
	}
	const struct weft_blob *metadata = trace->source.is_dir ? weft_source_find(&trace->source, "metadata") : NULL;
	if (status != WEFT_OK)
		return status;
	if (metadata)
		return file(ctx, "metadata", metadata->bytes, metadata->size) ? WEFT_EIO : WEFT_OK;
	return save_metadata(trace, file, ctx);
}
