/* write.c: writes the trace of a target, with one stream for each OS thread, and what the thread waits for.
 *
 * The promise id of a thread is its tid; locks, conditions and syscalls get numbers that no thread has.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "look/wait.h"
#include "wire/wire.h"

enum { MAX_SITES = UINT16_MAX - 1, METADATA_BYTES = 4096, STACK_TEXT = 8 * WEFT_LOOK_FRAMES };

struct writer {
	struct look_target *target;
	WEFT_VEC(unsigned char) bytes;
	WEFT_VEC(unsigned char) definitions;
	size_t packet; /* offset of the packet that is being written */
	uint8_t uuid[16];
	struct weft_idmap sites;   /* map from an address to a site's key - 1 */
	struct weft_idmap modules; /* map from a module's index to its number - 1 */
	uint32_t site_count, module_count;
	struct weft_idmap threads; /* by tid: index */
	struct weft_idmap objects; /* map from an object's address to an index in object_ids */
	WEFT_VEC(int64_t) object_ids;
	int64_t *ids; /* of the threads' promises */
	int64_t next_id;
	bool has_memory;
};

/* ---- Bytes ---- */

static void begin_packet(
    struct writer *w, enum weft_stream_class class, unsigned instance, const struct look_thread *thread, int64_t time_ns)
{
	struct weft_packet_header header = {0};
	weft__packet_init(&header, w->uuid, class, instance, 0);
	header.clock_hz = 1000000000;
	header.timestamp_begin = (uint64_t)time_ns;
	header.pair_clock = (uint64_t)w->target->now_ns;
	header.pair_wall_ns = (uint64_t)w->target->wall_ns;
	if (thread) {
		header.tid = (uint64_t)thread->tid;
		memcpy(header.thread_name, thread->name, sizeof header.thread_name - 1);
	}
	w->packet = w->bytes.count;
	w->has_memory = w->has_memory && weft_vec_reserve(&w->bytes, sizeof header);
	if (w->has_memory) {
		memcpy(w->bytes.items + w->packet, &header, sizeof header);
		w->bytes.count += sizeof header;
	}
}

static void end_packet(struct writer *w)
{
	if (!w->has_memory)
		return;
	/* The size of a packet must be a multiple of 8 bytes. */
	const size_t content = w->bytes.count - w->packet, padding = -content & 7;
	w->has_memory = weft_vec_reserve(&w->bytes, padding);
	if (!w->has_memory)
		return;
	memset(w->bytes.items + w->bytes.count, 0, padding);
	w->bytes.count += padding;
	struct weft_packet_header header;
	memcpy(&header, w->bytes.items + w->packet, sizeof header);
	header.content_size = (uint64_t)content * 8;
	header.packet_size = (uint64_t)(content + padding) * 8;
	memcpy(w->bytes.items + w->packet, &header, sizeof header);
}

static void put_event(struct writer *w, int64_t time_ns, struct weft_wire_event event)
{
	event.text = event.text ? event.text : "";
	event.text_bytes = (uint32_t)strlen(event.text);
	const uint8_t id = weft__event_id(&event);
	const size_t bytes = WEFT_EXTENDED_HEADER + weft__event_payload(&event, id);
	w->has_memory = w->has_memory && weft_vec_reserve(&w->bytes, bytes);
	if (!w->has_memory)
		return;
	unsigned char *end = weft__event_write(w->bytes.items + w->bytes.count, &event, id, (uint64_t)time_ns, true);
	w->bytes.count = (size_t)(end - w->bytes.items);
}

static void define(struct writer *w, const struct weft_wire_definition *definition)
{
	const size_t bytes = weft__definition_bytes(definition);
	w->has_memory = w->has_memory && weft_vec_reserve(&w->definitions, bytes);
	if (!w->has_memory)
		return;
	weft__definition_write(w->definitions.items + w->definitions.count, definition, (uint64_t)w->target->now_ns);
	w->definitions.count += bytes;
}

/* ---- Sites ---- */

static uint16_t find_module(struct writer *w, const struct weft_look_module *module)
{
	const uint32_t index = (uint32_t)(module - w->target->modules.items), known = weft_idmap_get(&w->modules, index);
	if (known != WEFT_IDMAP_NONE)
		return (uint16_t)(known + 1);
	w->has_memory = w->has_memory && weft_idmap_set(&w->modules, index, w->module_count);
	w->module_count++;
	define(w, &(struct weft_wire_definition){.what = WEFT_DEFINE_MODULE,
		      .key = (uint16_t)w->module_count,
		      .address = module->bias,
		      .size = module->end - module->bias,
		      .text = module->known_path,
		      .text_bytes = (uint32_t)strlen(module->known_path),
		      .second = module->build_id,
		      .second_bytes = (uint32_t)strlen(module->build_id)});
	return (uint16_t)w->module_count;
}

/* Returns the key of a machine-code address; 0 if the address is in no file, or there are too many keys. */
static uint16_t find_address(struct writer *w, uint64_t address)
{
	const struct weft_look_module *module = weft__look_module(w->target, address);
	const uint32_t known = weft_idmap_get(&w->sites, (int64_t)address);
	if (known != WEFT_IDMAP_NONE)
		return (uint16_t)(known + 1);
	if (!module || w->site_count == MAX_SITES)
		return 0;
	const uint16_t number = find_module(w, module);
	w->has_memory = w->has_memory && weft_idmap_set(&w->sites, (int64_t)address, w->site_count);
	w->site_count++;
	define(w,
	    &(struct weft_wire_definition){
		.what = WEFT_DEFINE_PLACE, .key = (uint16_t)w->site_count, .module = number, .address = address - module->bias});
	return (uint16_t)w->site_count;
}

static uint16_t find_site(struct writer *w, const struct look_thread *thread, size_t frame)
{
	return frame < thread->stack.frame_count ? find_address(w, thread->stack.frames[frame].address) : 0;
}

/* Returns the key of a line in a source file. */
static uint16_t find_source(struct writer *w, const struct weft_look_source_frame *frame)
{
	const uint64_t hash = weft_hash_u64(weft_hash_bytes(frame->file, strlen(frame->file)) + frame->line) +
			      weft_hash_bytes(frame->function, strlen(frame->function));
	const int64_t key = (int64_t)(hash | UINT64_C(1) << 63); /* no address of code */
	const uint32_t known = weft_idmap_get(&w->sites, key);
	if (known != WEFT_IDMAP_NONE)
		return (uint16_t)(known + 1);
	if (w->site_count == MAX_SITES)
		return 0;
	w->has_memory = w->has_memory && weft_idmap_set(&w->sites, key, w->site_count);
	w->site_count++;
	define(w, &(struct weft_wire_definition){.what = WEFT_DEFINE_SITE,
		      .key = (uint16_t)w->site_count,
		      .line = frame->line,
		      .text = frame->file,
		      .text_bytes = (uint32_t)strlen(frame->file),
		      .second = frame->function,
		      .second_bytes = (uint32_t)strlen(frame->function)});
	return (uint16_t)w->site_count;
}

/* Returns the key of the code that a thread executes: its Python or JavaScript line, or its machine code outside of the C
 * library. */
static uint16_t find_place(struct writer *w, const struct look_thread *thread, size_t frame)
{
	return thread->sources.count ? find_source(w, &thread->sources.items[0]) : find_site(w, thread, frame);
}

/* Adds the callers of the code of the previous event.  Frames of the C library are left out, because they say nothing about the
 * program. */
static void put_stack(struct writer *w, const struct look_thread *thread, int64_t id, size_t place, int64_t time_ns)
{
	char text[STACK_TEXT] = "";
	size_t length = 0, count = 0;
	const size_t sources = thread->sources.count, end = sources ? sources : thread->stack.frame_count;
	for (size_t i = sources ? 1 : place + 1; place != SIZE_MAX && i < end; i++) {
		if (!sources && weft__look_is_libc(w->target, thread, i))
			continue;
		const uint16_t key = sources ? find_source(w, &thread->sources.items[i]) : find_site(w, thread, i);
		if (!key)
			continue;
		length += (size_t)snprintf(text + length, sizeof text - length, count ? " %u" : "%u", key);
		count++;
	}
	if (count)
		put_event(w, time_ns,
		    (struct weft_wire_event){
			.op = WEFT_OP_DETAIL, .kind = WEFT_DETAIL_STACK, .a = id, .value = (int64_t)count, .text = text});
}

/* ---- Promises ---- */

static int64_t new_id(struct writer *w)
{
	do
		w->next_id++;
	while (weft_idmap_get(&w->threads, w->next_id) != WEFT_IDMAP_NONE);
	return w->next_id;
}

/* Numbers the threads.  A core dump may contain a number twice, or a number that is no thread's id. */
static bool number_threads(struct writer *w)
{
	struct look_target *t = w->target;
	w->ids = calloc(t->threads.count + 1, sizeof *w->ids);
	for (size_t i = 0; i < t->threads.count && w->ids; i++) {
		const int64_t tid = t->threads.items[i].tid;
		if (tid <= 0 || weft_idmap_get(&w->threads, tid) != WEFT_IDMAP_NONE)
			continue;
		if (!weft_idmap_set(&w->threads, tid, (uint32_t)i))
			return false;
		w->ids[i] = tid;
	}
	for (size_t i = 0; i < t->threads.count && w->ids; i++)
		w->ids[i] = w->ids[i] ? w->ids[i] : new_id(w);
	return w->ids != NULL;
}

/* Returns the promise that stands for what a thread waits for. */
static int64_t find_object(struct writer *w, const struct look_wait *wait)
{
	if (wait->joined) {
		const uint32_t index = weft_idmap_get(&w->threads, wait->joined);
		return index == WEFT_IDMAP_NONE ? 0 : w->ids[index];
	}
	const uint32_t known = wait->is_shared ? weft_idmap_get(&w->objects, (int64_t)wait->object) : WEFT_IDMAP_NONE;
	if (known != WEFT_IDMAP_NONE)
		return w->object_ids.items[known];
	int64_t *slot = weft_vec_push(&w->object_ids);
	w->has_memory =
	    w->has_memory && slot &&
	    (!wait->is_shared || weft_idmap_set(&w->objects, (int64_t)wait->object, (uint32_t)w->object_ids.count - 1));
	return slot ? *slot = new_id(w) : 0;
}

static void put_wait(
    struct writer *w, const struct look_thread *thread, const struct look_wait *wait, int64_t id, int64_t time_ns)
{
	const int64_t object = find_object(w, wait);
	const uint32_t owner = wait->owner ? weft_idmap_get(&w->threads, wait->owner) : WEFT_IDMAP_NONE;
	if (!object)
		return;
	if (!wait->joined)
		put_event(w, time_ns,
		    (struct weft_wire_event){.op = WEFT_OP_PENDING,
			.a = WEFT_SYSTEM_ID,
			.b = object,
			.kind = (uint8_t)wait->kind,
			.site = find_place(w, thread, wait->place),
			.value = time_ns,
			.text = wait->label});
	put_event(w, time_ns, (struct weft_wire_event){.op = WEFT_OP_AWAIT, .a = id, .b = object});
	put_stack(w, thread, id, wait->place, time_ns);
	if (owner != WEFT_IDMAP_NONE)
		put_event(w, time_ns, (struct weft_wire_event){.op = WEFT_OP_HOLD, .a = w->ids[owner], .b = object});
}

/* Returns the event loop for whose descriptor a thread waits, or NULL. */
static const struct look_loop *find_loop(
    const struct look_target *t, const struct look_thread *thread, const struct look_wait *wait)
{
	for (size_t i = 0; i < t->loops.count; i++)
		if (t->loops.items[i].tid == thread->tid && wait->kind == WEFT_KIND_POLL && wait->is_awaited &&
		    thread->args[0] == t->loops.items[i].awaited)
			return &t->loops.items[i];
	return NULL;
}

/* Records that a thread waits in its event loop, and what keeps the loop alive.  The thread that runs a request of the pool is
 * only named, because another handle may wake the loop, so the request is no link of a deadlock. */
static void put_loop(struct writer *w, const struct look_thread *thread, const struct look_loop *loop,
    const struct look_wait *wait, int64_t id, int64_t time_ns)
{
	const int64_t object = new_id(w);
	char label[LOOK_LABEL];
	if (loop->has_counts)
		snprintf(label, sizeof label, "%s: %" PRIu32 " of %" PRIu32 " handles, %" PRIu32 " of %" PRIu32 " requests",
		    loop->runtime, loop->found_handles, loop->active_handles, loop->found_requests, loop->active_requests);
	else
		snprintf(label, sizeof label, "%s: %" PRIu32 " sources", loop->runtime, loop->found_handles);
	put_event(w, time_ns,
	    (struct weft_wire_event){.op = WEFT_OP_PENDING,
		.a = id,
		.b = object,
		.kind = WEFT_KIND_LOOP,
		.site = find_place(w, thread, wait->place),
		.value = time_ns,
		.text = label});
	put_event(w, time_ns, (struct weft_wire_event){.op = WEFT_OP_AWAIT, .a = id, .b = object});
	put_stack(w, thread, id, wait->place, time_ns);
	for (size_t i = 0; i < loop->keepers.count; i++) {
		const struct look_keeper *k = &loop->keepers.items[i];
		const int64_t keeper = new_id(w);
		snprintf(label, sizeof label, "%s", k->label);
		if (k->runner)
			snprintf(label, sizeof label, "%s, run by thread %" PRId64, k->label, k->runner);
		put_event(w, time_ns,
		    (struct weft_wire_event){.op = WEFT_OP_PENDING,
			.a = object,
			.b = keeper,
			.kind = (uint8_t)k->kind,
			/* A call is identified by its return address, so a function is identified by the address behind its
			 * first byte. */
			.site = k->callback ? find_address(w, k->callback + 1) : 0,
			.value = time_ns,
			.text = label});
		put_event(w, time_ns, (struct weft_wire_event){.op = WEFT_OP_AWAIT, .a = object, .b = keeper});
	}
}

/* A name that a thread inherited from its creator says less than the function in which the thread started. */
static const char *name_thread(const struct look_target *t, const struct look_thread *thread)
{
	const char *start = weft__look_start_function(t, thread);
	if (thread->tid == t->pid)
		return "main";
	const struct look_thread *first = weft__look_thread(t, t->pid);
	const bool is_inherited =
	    !thread->name[0] || !strcmp(thread->name, t->process) || (first && !strcmp(thread->name, first->name));
	return is_inherited && start ? start : thread->name;
}

static int64_t get_start_ns(const struct writer *w, int64_t tid)
{
	const uint32_t index = weft_idmap_get(&w->threads, tid);
	return index == WEFT_IDMAP_NONE ? 0 : w->target->threads.items[index].start_ns;
}

/* Returns the time since which a thread waits, as recorded in the trace: not before the starts of the threads that the wait
 * names, because the kernel rounds these starts. */
static int64_t get_since_ns(const struct writer *w, const struct look_thread *thread, const struct look_wait *wait)
{
	const int64_t starts[] = {get_start_ns(w, wait->owner), get_start_ns(w, wait->joined), thread->start_ns};
	int64_t since_ns = thread->since_ns > 0 ? thread->since_ns : w->target->now_ns;
	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
		since_ns = starts[i] >= since_ns ? starts[i] + 1 : since_ns;
	return since_ns < w->target->now_ns ? since_ns : w->target->now_ns;
}

static void put_thread(struct writer *w, size_t index, const char *symbol)
{
	struct look_target *t = w->target;
	struct look_thread *thread = &t->threads.items[index];
	struct look_wait wait;
	weft__look_wait(&wait, t, thread, symbol);
	const bool is_blocked = wait.is_awaited && thread->is_still;
	const int64_t time_ns = is_blocked ? get_since_ns(w, thread, &wait) : t->now_ns, id = w->ids[index];
	const int64_t start_ns = thread->start_ns > 0 && thread->start_ns < time_ns ? thread->start_ns : time_ns - 1;
	begin_packet(w, WEFT_CLASS_EVENTS, (unsigned)index, thread, start_ns);
	put_event(w, start_ns,
	    (struct weft_wire_event){.op = WEFT_OP_CREATE,
		.a = WEFT_SYSTEM_ID,
		.b = id,
		.kind = WEFT_KIND_THREAD,
		.site = find_place(w, thread, wait.place)});
	if (*name_thread(t, thread))
		put_event(w, start_ns, (struct weft_wire_event){.op = WEFT_OP_LABEL, .a = id, .text = name_thread(t, thread)});
	put_event(w, time_ns, (struct weft_wire_event){.op = WEFT_OP_RUN, .a = id});
	const struct look_loop *loop = is_blocked ? find_loop(t, thread, &wait) : NULL;
	if (loop)
		put_loop(w, thread, loop, &wait, id, time_ns);
	else if (is_blocked)
		put_wait(w, thread, &wait, id, time_ns);
	else if (wait.place != SIZE_MAX)
		put_stack(w, thread, id, wait.place, time_ns);
	if (is_blocked)
		put_event(w, time_ns, (struct weft_wire_event){.op = WEFT_OP_IDLE, .value = WEFT_IDLE_WAIT});
	end_packet(w);
}

/* ---- The trace ---- */

static void make_uuid(struct writer *w)
{
	const uint64_t facts[] = {(uint64_t)w->target->pid, (uint64_t)w->target->wall_ns, (uint64_t)w->target->threads.count};
	const uint64_t first = weft_hash_bytes((const char *)facts, sizeof facts), second = weft_hash_u64(first);
	memcpy(w->uuid, &first, 8);
	memcpy(w->uuid + 8, &second, 8);
	w->uuid[6] = (uint8_t)((w->uuid[6] & 0x0f) | 0x80);
	w->uuid[8] = (uint8_t)((w->uuid[8] & 0x3f) | 0x80);
}

static void put_metadata(struct writer *w)
{
	const struct look_target *t = w->target;
	char text[METADATA_BYTES], host[256] = "";
	if (!t->is_core)
		(void)gethostname(host, sizeof host - 1);
	const struct weft_metadata metadata = {
	    .clock_hz = 1000000000,
	    .clock_origin_ns = t->wall_ns - t->now_ns,
	    .clock_source = "monotonic",
	    .clock_measured = "exact",
	    .host = host[0] ? host : NULL,
	    .process = t->process[0] ? t->process : NULL,
	    .command = t->command[0] ? t->command : NULL,
	    .mode = "grow",
	    .state = "seen",
	    .seen_ns = t->wall_ns,
	    .pid = (uint64_t)t->pid,
	    .brief = true,
	};
	struct weft_metadata with_uuid = metadata;
	memcpy(with_uuid.uuid, w->uuid, sizeof w->uuid);
	const size_t length = weft__metadata_format(text, sizeof text, &with_uuid);
	begin_packet(w, WEFT_CLASS_METADATA, 0, NULL, t->now_ns);
	const size_t bytes = length < sizeof text ? length : sizeof text - 1;
	w->has_memory = w->has_memory && weft_vec_reserve(&w->bytes, bytes);
	if (w->has_memory) {
		memcpy(w->bytes.items + w->bytes.count, text, bytes);
		w->bytes.count += bytes;
	}
	end_packet(w);
}

static void put_definitions(struct writer *w)
{
	begin_packet(w, WEFT_CLASS_DEFINITIONS, 0, NULL, w->target->now_ns);
	w->has_memory = w->has_memory && weft_vec_reserve(&w->bytes, w->definitions.count);
	if (w->has_memory && w->definitions.count) {
		memcpy(w->bytes.items + w->bytes.count, w->definitions.items, w->definitions.count);
		w->bytes.count += w->definitions.count;
	}
	end_packet(w);
}

/* Requests the stacks of all threads, and the symbols of all futexes. */
static bool find_names(struct look_target *t, weft_look_unwind_fn *unwind, struct weft_look_datum *data)
{
	struct weft_look_request request = {.modules = t->modules.items, .module_count = t->modules.count, .data = data};
	request.stacks = calloc(t->threads.count + 1, sizeof *request.stacks);
	if (!request.stacks)
		return false;
	request.stack_count = request.datum_count = t->threads.count;
	for (size_t i = 0; i < t->threads.count; i++) {
		request.stacks[i] = t->threads.items[i].stack;
		data[i].address = t->threads.items[i].call >= 0 ? t->threads.items[i].args[0] : 0;
	}
	if (unwind)
		unwind(&request);
	for (size_t i = 0; i < t->threads.count; i++)
		t->threads.items[i].stack = request.stacks[i];
	free(request.stacks);
	return true;
}

int weft__look_finish(
    struct weft_trace **out, struct look_target *t, weft_look_unwind_fn *unwind, const char *name, struct weft_error *err)
{
	struct writer w = {.target = t, .has_memory = true};
	struct weft_look_datum *data = calloc(t->threads.count + 1, sizeof *data);
	w.has_memory = data && find_names(t, unwind, data) && number_threads(&w);
	make_uuid(&w);
	if (w.has_memory) {
		put_metadata(&w);
		for (size_t i = 0; i < t->threads.count; i++)
			put_thread(&w, i, data[i].symbol);
		put_definitions(&w);
	}
	for (size_t i = 0; data && i < t->threads.count; i++)
		free(data[i].symbol);
	free(data);
	free(w.ids);
	weft_vec_free(&w.definitions);
	weft_vec_free(&w.object_ids);
	weft_idmap_finish(&w.sites);
	weft_idmap_finish(&w.modules);
	weft_idmap_finish(&w.threads);
	weft_idmap_finish(&w.objects);
	if (w.has_memory)
		return weft_trace_open_owned(out, w.bytes.items, w.bytes.count, name, err);
	weft_vec_free(&w.bytes);
	return weft_error_set(err, WEFT_ENOMEM, "out of memory");
}
