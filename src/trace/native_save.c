/* native_save.c: saves the packets of a native trace as files, as they were when the trace was opened.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "trace/native.h"
#include "trace/profile_packet.h"

/* Copies a packet without its unused space, as the recorder leaves the last packet when it stops. */
static int copy_packet(const struct native_packet *p, struct native_copy *copy)
{
	copy->bytes = malloc(p->content_bytes);
	if (!copy->bytes)
		return WEFT_ENOMEM;
	copy->size = p->content_bytes;
	memcpy(copy->bytes, p->bytes, p->content_bytes);
	const uint64_t bits = (uint64_t)p->content_bytes * 8;
	memcpy(copy->bytes + WEFT_PACKET_AT(content_size), &bits, sizeof bits);
	memcpy(copy->bytes + WEFT_PACKET_AT(packet_size), &bits, sizeof bits);
	return WEFT_OK;
}

typedef void edit_fn(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit);

/* Writes a copy of a packet and frees it. */
static int write_copy(const struct native *n, struct native_copy *copy, const char *name, edit_fn *edit_texts,
    const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx)
{
	if (edit && edit->text)
		edit_texts(n, copy, edit);
	const int failed = file(ctx, name, copy->bytes, copy->size);
	free(copy->bytes);
	return failed ? WEFT_EIO : WEFT_OK;
}

static int save_packet(const struct native *n, const struct native_packet *p, const char *name, edit_fn *edit_texts,
    const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx)
{
	struct native_copy copy;
	const int status = copy_packet(p, &copy);
	return status < 0 ? status : write_copy(n, &copy, name, edit_texts, edit, file, ctx);
}

static void add_to_field(struct native_copy *copy, size_t field, uint64_t more)
{
	const uint64_t sum = weft_load_u64(copy->bytes + field) + more;
	memcpy(copy->bytes + field, &sum, sizeof sum);
}

/* Saves the packets [first, end) of one instance; its streams end at end_stream. */
static int save_instance(const struct native *n, size_t first, size_t end, unsigned end_stream,
    const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx)
{
	const unsigned first_stream = n->packets.items[first].stream;
	uint64_t later = 0, more = 0;
	bool is_cut = false;
	int status = WEFT_OK;
	if (edit && edit->is_cut && n->from) {
		is_cut = true;
		later = n->packets.items[first].sequence == 0;
	} else if (edit && edit->is_cut) {
		while (first + 1 < end && weft__ticks_ns(n->packets.items[first + 1].begin, n->clock.hz) <= edit->from_ns)
			first++;
		is_cut = weft__ticks_ns(n->packets.items[first].begin, n->clock.hz) <= edit->from_ns;
		/* Overwritten events were in packets before the first packet, so the first sequence number must not be 0. */
		later = is_cut && n->packets.items[first].sequence == 0;
	}
	for (size_t i = first; i < end && status == WEFT_OK; i++) {
		char name[64];
		struct native_copy copy;
		if (i == first && is_cut) {
			status = weft__native_cut(n, &n->packets.items[i], first_stream, end_stream, edit, &copy, &more);
		} else {
			status = copy_packet(&n->packets.items[i], &copy);
			if (status == WEFT_OK)
				add_to_field(&copy, WEFT_PACKET_AT(events_before), more);
		}
		if (status < 0)
			break;
		if (edit && edit->reason && i + 1 == n->packets.count &&
		    (status = weft__native_append_reason(n, &copy, edit)) < 0) {
			free(copy.bytes);
			break;
		}
		add_to_field(&copy, WEFT_PACKET_AT(sequence), later);
		snprintf(name, sizeof name, "stream-%" PRIu32 "-%zu", n->packets.items[i].instance, i - first);
		status = write_copy(n, &copy, name, weft__native_edit_events, edit, file, ctx);
	}
	return status;
}

static int save_streams(const struct native *n, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx)
{
	int status = WEFT_OK;
	for (size_t i = 0, end; i < n->packets.count && status == WEFT_OK; i = end) {
		for (end = i + 1; end < n->packets.count && n->packets.items[end].instance == n->packets.items[i].instance;)
			end++;
		const unsigned end_stream = end < n->packets.count ? n->packets.items[end].stream : UINT_MAX;
		status = save_instance(n, i, end, end_stream, edit, file, ctx);
	}
	return status;
}

static int save_kernel(const struct native *n, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx)
{
	int status = WEFT_OK;
	uint64_t number = 0;
	for (size_t i = 0; i < n->kernel.count && status == WEFT_OK; i++) {
		char name[64];
		const struct native_packet *p = &n->kernel.items[i];
		number = i && p[-1].instance == p->instance ? number + 1 : 0;
		snprintf(name, sizeof name, "kernel-%" PRIu32 "-%" PRIu64, p->instance, number);
		/* Each kernel packet defines what its records name, so packets can be dropped independently of each other. */
		if (!edit || !edit->is_cut || i + 1 == n->kernel.count || p[1].instance != p->instance ||
		    weft__ticks_ns(p[1].begin, n->clock.hz) > edit->from_ns)
			status = save_packet(n, p, name, weft__native_edit_kernel, edit, file, ctx);
	}
	return status;
}

/* Saves the samples with the names that their places have now.  A cut trace keeps all samples, because there are few. */
static int save_profile(const struct weft_trace *trace, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx)
{
	const struct native *n = trace->state;
	if (!trace->info.profile.sample_count)
		return WEFT_OK;
	struct native_copy copy;
	copy.bytes = weft_profile_packet(&trace->info, n->uuid, n->clock.hz, &copy.size);
	return copy.bytes ? write_copy(n, &copy, "profile-0", weft__native_edit_profile, edit, file, ctx) : WEFT_ENOMEM;
}

/* Saves the packets of allocations.  A cut trace keeps all, because later packets free what earlier packets allocated. */
static int save_memory(const struct native *n, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx)
{
	int status = WEFT_OK;
	for (size_t i = 0; i < n->memory.count && status == WEFT_OK; i++) {
		char name[64];
		snprintf(name, sizeof name, "memory-%zu", i);
		status = save_packet(n, &n->memory.items[i], name, weft__native_edit_memory, edit, file, ctx);
	}
	return status;
}

/* Writes the metadata of a buffer, which cannot hold the layout, together with the layout, so that other readers understand the
 * trace. */
static int make_metadata(const struct weft_trace *trace, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx)
{
	const struct native *n = trace->state;
	const struct weft_trace_info *info = &trace->info;
	char *host = strndup(info->host.ptr, info->host.len), *process = strndup(info->process.ptr, info->process.len),
	     *command = strndup(info->command.ptr, info->command.len),
	     *runtimes = strndup(info->runtimes.ptr, info->runtimes.len), *text = NULL;
	struct weft_metadata metadata = {
	    .clock_hz = n->clock.hz,
	    .clock_origin_ns = n->clock.origin_ns,
	    .clock_source = trace->has_counter_clock ? "counter" : "caller",
	    .clock_measured = "exact",
	    .host = host,
	    .process = process,
	    .command = command,
	    .runtimes = info->runtimes.len ? runtimes : NULL,
	    .extra = n->extras.items,
	    .extra_count = n->extras.count,
	    .mode = n->is_ring ? "ring" : "grow",
	    .state = info->is_seen_once ? "seen"
		     : info->is_stopped ? "stopped"
		     : n->is_finished   ? "finished"
					: "recording",
	    .seen_ns = info->seen_wall_ns,
	    .pid = info->pid,
	};
	memcpy(metadata.uuid, n->uuid, sizeof metadata.uuid);
	int status = WEFT_ENOMEM;
	if (host && process && command && runtimes) {
		size_t size = weft__metadata_format(NULL, 0, &metadata);
		text = malloc(size + 1);
		if (text) {
			weft__metadata_format(text, size + 1, &metadata);
			if (edit)
				weft__native_edit_metadata(text, edit);
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

/* Makes the definition of a plain site for a place that was named later.  If the source file is unknown, the module is used as
 * the file. */
static struct weft_wire_definition make_definition(const struct weft_site *site, uint32_t key)
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

/* Saves the names that places were given later, in a packet after the definitions; a later definition of a key replaces an
 * earlier definition. */
static int save_names(const struct native *n, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx)
{
	size_t bytes = sizeof(struct weft_packet_header);
	for (uint32_t key = 1; key < n->key_count; key++)
		if (n->site_index[key] != WEFT_NO_SITE && is_named_place(&n->sites.items[n->site_index[key]])) {
			const struct weft_wire_definition d = make_definition(&n->sites.items[n->site_index[key]], key);
			bytes += weft__definition_bytes(&d);
		}
	if (bytes == sizeof(struct weft_packet_header) || n->definitions.count == 0)
		return WEFT_OK;
	unsigned char *packet = malloc(bytes), *at = packet + sizeof(struct weft_packet_header);
	if (!packet)
		return WEFT_ENOMEM;
	/* packet headers; the last packet has the numbers of lost events */
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
			const struct weft_wire_definition d = make_definition(&n->sites.items[n->site_index[key]], key);
			at = weft__definition_write(at, &d, n->last_definition);
		}
	char name[64];
	snprintf(name, sizeof name, "definitions-%zu", n->definitions.count);
	struct native_copy copy = {packet, bytes};
	return write_copy(n, &copy, name, weft__native_edit_definitions, edit, file, ctx);
}

/* Writes the trace's metadata. */
static int copy_metadata(const struct weft_blob *blob, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx)
{
	char *text = edit ? malloc(blob->size + 1) : NULL;
	if (!edit)
		return file(ctx, "metadata", blob->bytes, blob->size) ? WEFT_EIO : WEFT_OK;
	if (!text)
		return WEFT_ENOMEM;
	memcpy(text, blob->bytes, blob->size);
	text[blob->size] = '\0';
	weft__native_edit_metadata(text, edit);
	const int failed = file(ctx, "metadata", text, strlen(text));
	free(text);
	return failed ? WEFT_EIO : WEFT_OK;
}

int weft__native_save(const struct weft_trace *trace, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx)
{
	const struct native *n = trace->state;
	int status = WEFT_OK;
	for (size_t i = 0; i < n->definitions.count && status == WEFT_OK; i++) {
		char name[64];
		snprintf(name, sizeof name, "definitions-%zu", i);
		status = save_packet(n, &n->definitions.items[i], name, weft__native_edit_definitions, edit, file, ctx);
	}
	if (status == WEFT_OK)
		status = save_names(n, edit, file, ctx);
	if (status == WEFT_OK)
		status = save_streams(n, edit, file, ctx);
	if (status == WEFT_OK)
		status = save_kernel(n, edit, file, ctx);
	if (status == WEFT_OK)
		status = save_profile(trace, edit, file, ctx);
	if (status == WEFT_OK)
		status = save_memory(n, edit, file, ctx);
	const struct weft_blob *metadata = trace->source.is_dir ? weft_source_find(&trace->source, "metadata") : NULL;
	if (status != WEFT_OK)
		return status;
	return metadata ? copy_metadata(metadata, edit, file, ctx) : make_metadata(trace, edit, file, ctx);
}
