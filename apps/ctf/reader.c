/* reader.c: implements reader.h.  SPDX-License-Identifier: ISC */
#include "ctf/reader.h"

#include <babeltrace2/babeltrace.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/idmap.h"
#include "base/intern.h"
#include "ctf/fields.h"
#include "trace/format.h"

enum {
	/* Number of texts that the writer keeps, up to MAX_KEPT_BYTES each; other texts live until the next batch. */
	MAX_KEPT_TEXTS = 4096,
	MAX_KEPT_BYTES = 64,
	MAX_THREADS = UINT16_MAX,
	DATA_STREAM_IDS = 1 << 20, /* number of ids for data streams, which are below the ids of CPUs */
};

/* An OS thread to which events belong; if events have no thread, a CPU or a stream of the file. */
struct thread {
	int64_t last_ns;
	bool runs;
};

struct ctf_reader {
	struct weft_trace trace;
	bt_graph *graph;
	bt_message_iterator *messages;
	bool has_ended, has_failed, has_time;
	char why[160];
	int64_t origin_ns, last_ns;
	WEFT_VEC(struct weft_event) batch;
	WEFT_VEC(char *) texts; /* texts of the batch */
	WEFT_VEC(char *) owned;
	WEFT_VEC(struct thread) threads;
	WEFT_VEC(struct weft_stream_info) streams; /* indexed like threads */
	struct weft_idmap thread_of;               /* map to threads from the tid, or from -1 - CPU */
	struct weft_idmap tid_of_cpu;              /* map from a CPU to the tid of its running thread; 0: none */
	struct weft_intern kept;
};

/* ---- Errors ---- */

/* Only the first cause in libbabeltrace2's list contains the reason; later causes only repeat that it failed. */
static void read_error(struct ctf_reader *r, const char *otherwise)
{
	const bt_error *error = bt_current_thread_take_error();
	const char *text = error && bt_error_get_cause_count(error)
			       ? bt_error_cause_get_message(bt_error_borrow_cause_by_index(error, 0))
			       : otherwise;
	if (!r->why[0])
		snprintf(r->why, sizeof r->why, "%s", text);
	for (char *c = r->why; *c; c++)
		*c = (unsigned char)*c < ' ' ? ' ' : *c;
	size_t length = strlen(r->why);
	while (length > 0 && strchr(". ", r->why[length - 1]))
		r->why[--length] = 0;
	if (error)
		bt_error_release(error);
}

/* ---- Events ---- */

static bool add_event(struct ctf_reader *r, uint32_t number, int64_t time_ns, uint8_t op, int64_t a, struct weft_str text)
{
	struct weft_event *event = weft_vec_push(&r->batch);
	if (!event)
		return false;
	*event = (struct weft_event){.time_ns = time_ns,
	    .op = op,
	    .a = a,
	    .b = op == WEFT_OP_CREATE || op == WEFT_OP_RESOLVE ? (int64_t)number + 1 : 0,
	    .kind = op == WEFT_OP_CREATE ? WEFT_KIND_THREAD : 0,
	    .text = text,
	    .site = WEFT_NO_SITE,
	    .stream = (uint16_t)number};
	r->threads.items[number].last_ns = time_ns;
	return true;
}

static bool own_text(struct ctf_reader *r, const char *text, struct weft_str *out)
{
	char *copy = strdup(text), **slot = copy ? weft_vec_push(&r->owned) : NULL;
	if (slot)
		*slot = copy;
	else
		free(copy);
	*out = (struct weft_str){copy, slot ? (uint32_t)strlen(copy) : 0};
	return slot != NULL;
}

/* Returns the thread of an event, and creates the thread if it is new.  Returns UINT32_MAX without memory. */
static uint32_t get_thread(struct ctf_reader *r, int64_t id, const char *name, int64_t time_ns)
{
	uint32_t number = weft_idmap_get(&r->thread_of, id);
	if (number != WEFT_IDMAP_NONE)
		return number;
	if (r->threads.count == MAX_THREADS)
		return MAX_THREADS - 1;
	char own_name[64];
	if (id < -DATA_STREAM_IDS)
		snprintf(own_name, sizeof own_name, "stream %" PRId64, -1 - DATA_STREAM_IDS - id);
	else if (id < 0)
		snprintf(own_name, sizeof own_name, "CPU %" PRId64, -1 - id);
	else
		snprintf(own_name, sizeof own_name, "%s", name ? name : "");
	struct weft_str text;
	struct thread *thread = weft_vec_push(&r->threads);
	struct weft_stream_info *stream = thread ? weft_vec_push(&r->streams) : NULL;
	if (!stream || !own_text(r, own_name, &text))
		return UINT32_MAX;
	number = (uint32_t)r->threads.count - 1;
	*thread = (struct thread){0};
	*stream = (struct weft_stream_info){.name = text, .tid = id < 0 ? 0 : (uint64_t)id};
	r->trace.info.streams = r->streams.items;
	r->trace.info.stream_count = r->streams.count;
	return weft_idmap_set(&r->thread_of, id, number) &&
		       add_event(r, number, time_ns, WEFT_OP_CREATE, -1, (struct weft_str){0}) &&
		       (!text.len || add_event(r, number, time_ns, WEFT_OP_LABEL, (int64_t)number + 1, text))
		   ? number
		   : UINT32_MAX;
}

static bool add_note(struct ctf_reader *r, uint32_t number, int64_t time_ns, const struct ctf_text *text)
{
	struct weft_str found = {text->bytes, (uint32_t)text->length};
	uint32_t kept = found.len <= MAX_KEPT_BYTES ? weft_intern_find(&r->kept, found) : WEFT_INTERN_FAILED;
	if (kept == WEFT_INTERN_FAILED && found.len <= MAX_KEPT_BYTES && r->kept.texts.count < MAX_KEPT_TEXTS) {
		if (!own_text(r, text->bytes, &found) || (kept = weft_intern(&r->kept, found)) == WEFT_INTERN_FAILED)
			return false;
	}
	if (kept != WEFT_INTERN_FAILED)
		return add_event(r, number, time_ns, WEFT_OP_NOTE, (int64_t)number + 1, r->kept.texts.items[kept]);
	char *copy = strdup(text->bytes), **slot = copy ? weft_vec_push(&r->texts) : NULL;
	if (slot)
		*slot = copy;
	else
		free(copy);
	return slot && add_event(r, number, time_ns, WEFT_OP_NOTE, (int64_t)number + 1, (struct weft_str){copy, found.len});
}

/* ---- Messages of libbabeltrace2 ---- */

static bool read_time(struct ctf_reader *r, const bt_clock_snapshot *snapshot, int64_t *out)
{
	int64_t ns;
	if (bt_clock_snapshot_get_ns_from_origin(snapshot, &ns) != BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK) {
		read_error(r, "a time is out of range");
		return false;
	}
	if (!r->has_time) {
		r->has_time = true;
		r->origin_ns = ns;
		r->trace.info.has_origin =
		    bt_clock_class_origin_is_unix_epoch(bt_clock_snapshot_borrow_clock_class_const(snapshot));
		r->trace.info.clock_origin_ns = r->trace.info.has_origin ? ns : 0;
	}
	const uint64_t since = ns > r->origin_ns ? (uint64_t)ns - (uint64_t)r->origin_ns : 0;
	*out = since < INT64_MAX ? (int64_t)since : INT64_MAX;
	r->last_ns = *out > r->last_ns ? *out : r->last_ns;
	return true;
}

static const char *get_environment(const bt_trace *trace, const char *name)
{
	const bt_value *value = bt_trace_borrow_environment_entry_value_by_name_const(trace, name);
	return value && bt_value_is_string(value) ? bt_value_string_get(value) : NULL;
}

static int64_t get_environment_number(const bt_trace *trace, const char *name)
{
	const bt_value *value = bt_trace_borrow_environment_entry_value_by_name_const(trace, name);
	return value && bt_value_is_signed_integer(value) ? bt_value_integer_signed_get(value) : 0;
}

/* If there are several traces, the first one that has the value is used. */
static bool read_trace_info(struct ctf_reader *r, const bt_trace *trace)
{
	struct weft_trace_info *info = &r->trace.info;
	const char *host = get_environment(trace, "hostname"), *domain = get_environment(trace, "domain"),
		   *tracer = get_environment(trace, "tracer_name");
	const bool is_kernel = domain && !strcmp(domain, "kernel");
	const char *process = is_kernel ? "kernel" : tracer ? tracer : "CTF";
	char command[96];
	snprintf(command, sizeof command, "%.60s %" PRId64 ".%" PRId64, tracer ? tracer : "an unnamed tracer",
	    get_environment_number(trace, "tracer_major"), get_environment_number(trace, "tracer_minor"));
	if (!tracer)
		command[strlen("an unnamed tracer")] = 0;
	return (info->host.len || !host || own_text(r, host, &info->host)) &&
	       (info->process.len || own_text(r, process, &info->process)) &&
	       (info->command.len || own_text(r, command, &info->command));
}

/* Location of an event. */
struct location {
	int64_t cpu;    /* -1: unknown */
	int64_t thread; /* as in thread_of */
	const char *name;
};

static void locate_event(const struct ctf_reader *r, const bt_event *event, struct location *out)
{
	static const char *const tids[] = {"vtid", "tid", "perf_tid"}, *const pids[] = {"vpid", "pid", "perf_pid"};
	const bt_stream *stream = bt_event_borrow_stream_const(event);
	const bool has_packets = bt_stream_class_supports_packets(bt_stream_borrow_class_const(stream));
	const bt_field *packet = has_packets ? bt_packet_borrow_context_field_const(bt_event_borrow_packet_const(event)) : NULL;
	const bt_field *contexts[] = {
	    bt_event_borrow_common_context_field_const(event), bt_event_borrow_specific_context_field_const(event)};
	const int64_t pid = get_environment_number(bt_stream_borrow_trace_const(stream), "vpid");
	int64_t id = 0;
	bool found = false;
	if ((!ctf_read_number(packet, "cpu_id", &out->cpu) && !ctf_read_number(contexts[0], "perf_cpu", &out->cpu)) ||
	    out->cpu < 0 || out->cpu >= DATA_STREAM_IDS)
		out->cpu = -1;
	out->name = NULL;
	for (size_t c = 0; c < 2; c++) {
		for (size_t i = 0; i < sizeof tids / sizeof *tids && !found; i++)
			found = ctf_read_number(contexts[c], tids[i], &id);
		out->name = out->name ? out->name : ctf_read_string(contexts[c], "procname");
	}
	if (!found && out->cpu >= 0) {
		const uint32_t runs = weft_idmap_get(&r->tid_of_cpu, out->cpu);
		found = runs != WEFT_IDMAP_NONE && runs;
		id = found ? runs : 0;
	}
	for (size_t c = 0; c < 2; c++)
		for (size_t i = 0; i < sizeof pids / sizeof *pids && !found; i++)
			found = ctf_read_number(contexts[c], pids[i], &id);
	if (!found && pid > 0) {
		found = true;
		id = pid;
	}
	if (found && !out->name)
		out->name = get_environment(bt_stream_borrow_trace_const(stream), "procname");
	/* The idle task is no OS thread, because tid 0 exists once for each CPU. */
	out->thread = found && id > 0 && id < UINT32_MAX ? id
		      : out->cpu >= 0                    ? -1 - out->cpu
				      : -1 - DATA_STREAM_IDS - (int64_t)(bt_stream_get_id(stream) % DATA_STREAM_IDS);
}

static bool is_named(const char *name, const char *word)
{
	const size_t length = name ? strlen(name) : 0, end = strlen(word);
	return length >= end && !strcmp(name + length - end, word) &&
	       (length == end || name[length - end - 1] == ':' || name[length - end - 1] == '_');
}

/* Records a context switch; tid 0 is the idle task. */
static bool apply_switch(
    struct ctf_reader *r, const struct location *location, const bt_field *payload, int64_t time_ns, bool *failed)
{
	int64_t prev, next;
	if (location->cpu < 0 || (!ctf_read_number(payload, "prev_tid", &prev) && !ctf_read_number(payload, "prev_pid", &prev)) ||
	    (!ctf_read_number(payload, "next_tid", &next) && !ctf_read_number(payload, "next_pid", &next)))
		return false;
	*failed = !weft_idmap_set(&r->tid_of_cpu, location->cpu, next > 0 && next < UINT32_MAX ? (uint32_t)next : 0);
	for (int side = 0; side < 2 && !*failed; side++) {
		const int64_t tid = side ? next : prev;
		if (tid <= 0 || tid >= UINT32_MAX)
			continue;
		const uint32_t number = get_thread(r, tid, ctf_read_string(payload, side ? "next_comm" : "prev_comm"), time_ns);
		*failed = number == UINT32_MAX || !add_event(r, number, time_ns, WEFT_OP_RUN,
						      side ? (int64_t)number + 1 : WEFT_SYSTEM_ID, (struct weft_str){0});
		if (!*failed)
			r->threads.items[number].runs = side;
	}
	return true;
}

static bool apply_event(struct ctf_reader *r, const bt_message *message)
{
	const bt_event *event = bt_message_event_borrow_event_const(message);
	const bt_stream_class *class = bt_stream_borrow_class_const(bt_event_borrow_stream_const(event));
	const char *name = bt_event_class_get_name(bt_event_borrow_class_const(event));
	const bt_field *payload = bt_event_borrow_payload_field_const(event);
	struct ctf_text text = {.length = 0};
	struct location location;
	int64_t time_ns;
	bool failed = false;
	if (!bt_stream_class_borrow_default_clock_class_const(class)) {
		snprintf(r->why, sizeof r->why, "its events have no times");
		return false;
	}
	if (!read_time(r, bt_message_event_borrow_default_clock_snapshot_const(message), &time_ns))
		return false;
	locate_event(r, event, &location);
	if (is_named(name, "sched_switch") && apply_switch(r, &location, payload, time_ns, &failed))
		return !failed;
	ctf_text_append(&text, name ? name : "event");
	ctf_text_append_members(&text, payload);
	ctf_text_append_members(&text, bt_event_borrow_specific_context_field_const(event));
	ctf_text_append_members(&text, bt_event_borrow_common_context_field_const(event));
	const uint32_t number = get_thread(r, location.thread, location.name, time_ns);
	return number != UINT32_MAX && add_note(r, number, time_ns, &text);
}

/* Records events that the tracer discarded, at the position where they are missing. */
static bool apply_discarded(struct ctf_reader *r, const bt_message *message)
{
	const bt_stream *stream = bt_message_discarded_events_borrow_stream_const(message);
	struct ctf_text text = {.length = 0};
	char line[80];
	uint64_t count = 0;
	int64_t time_ns;
	if (!bt_stream_class_discarded_events_have_default_clock_snapshots(bt_stream_borrow_class_const(stream)))
		return true;
	if (!read_time(r, bt_message_discarded_events_borrow_end_default_clock_snapshot_const(message), &time_ns))
		return false;
	if (bt_message_discarded_events_get_count(message, &count) == BT_PROPERTY_AVAILABILITY_AVAILABLE)
		snprintf(line, sizeof line, "%" PRIu64 " events are missing: the tracer discarded them", count);
	else
		snprintf(line, sizeof line, "events are missing: the tracer discarded them");
	ctf_text_append(&text, line);
	const uint32_t number =
	    get_thread(r, -1 - DATA_STREAM_IDS - (int64_t)(bt_stream_get_id(stream) % DATA_STREAM_IDS), NULL, time_ns);
	return number != UINT32_MAX && add_note(r, number, time_ns, &text);
}

static bool apply_message(struct ctf_reader *r, const bt_message *message)
{
	switch (bt_message_get_type(message)) {
	case BT_MESSAGE_TYPE_STREAM_BEGINNING:
		return read_trace_info(r, bt_stream_borrow_trace_const(bt_message_stream_beginning_borrow_stream_const(message)));
	case BT_MESSAGE_TYPE_EVENT: return apply_event(r, message);
	case BT_MESSAGE_TYPE_DISCARDED_EVENTS: return apply_discarded(r, message);
	default: return true;
	}
}

/* ---- The graph ---- */

static bt_graph_simple_sink_component_initialize_func_status begin_messages(bt_message_iterator *messages, void *ctx)
{
	struct ctf_reader *r = ctx;
	r->messages = messages;
	return BT_GRAPH_SIMPLE_SINK_COMPONENT_INITIALIZE_FUNC_STATUS_OK;
}

static bt_graph_simple_sink_component_consume_func_status consume_messages(bt_message_iterator *messages, void *ctx)
{
	struct ctf_reader *r = ctx;
	bt_message_array_const list;
	uint64_t count;
	const bt_message_iterator_next_status status = bt_message_iterator_next(messages, &list, &count);
	if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK)
		return (bt_graph_simple_sink_component_consume_func_status)status; /* both enumerations have the same values */
	bool whole = true;
	for (uint64_t i = 0; i < count; i++) {
		whole = whole && apply_message(r, list[i]);
		bt_message_put_ref(list[i]);
	}
	return whole ? BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_OK
		     : BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_ERROR;
}

static const bt_plugin *find_plugin(const char *name)
{
	const bt_plugin *plugin = NULL;
	return bt_plugin_find(name, BT_FALSE, BT_FALSE, BT_TRUE, BT_TRUE, BT_FALSE, &plugin) == BT_PLUGIN_FIND_STATUS_OK ? plugin
															 : NULL;
}

/* Adds the reader of a directory, and connects each of its outputs to an input of the muxer. */
static bool add_source(struct ctf_reader *r, const bt_component_class_source *class, const bt_component_filter *muxer,
    const char *folder, size_t number)
{
	char name[32];
	const bt_component_source *source = NULL;
	bt_value *parameters = bt_value_map_create(), *inputs = NULL;
	snprintf(name, sizeof name, "source-%zu", number);
	bool whole = parameters && bt_value_map_insert_empty_array_entry(parameters, "inputs", &inputs) == 0 &&
		     bt_value_array_append_string_element(inputs, folder) == 0 &&
		     bt_graph_add_source_component(r->graph, class, name, parameters, BT_LOGGING_LEVEL_NONE, &source) == 0;
	const uint64_t count = whole ? bt_component_source_get_output_port_count(source) : 0;
	for (uint64_t i = 0; i < count && whole; i++) {
		const uint64_t last = bt_component_filter_get_input_port_count(muxer) - 1;
		whole = bt_graph_connect_ports(r->graph, bt_component_source_borrow_output_port_by_index_const(source, i),
			    bt_component_filter_borrow_input_port_by_index_const(muxer, last), NULL) == 0;
	}
	if (source)
		bt_component_source_put_ref(source);
	if (parameters)
		bt_value_put_ref(parameters);
	return whole;
}

static bool make_graph(struct ctf_reader *r, const ctf_folders *folders, const bt_plugin *ctf, const bt_plugin *utils)
{
	const bt_component_filter *muxer = NULL;
	const bt_component_sink *sink = NULL;
	r->graph = bt_graph_create(0);
	bool whole = r->graph && bt_graph_add_filter_component(r->graph,
				     bt_plugin_borrow_filter_component_class_by_name_const(utils, "muxer"), "muxer", NULL,
				     BT_LOGGING_LEVEL_NONE, &muxer) == 0;
	for (size_t i = 0; i < folders->count && whole; i++)
		whole =
		    add_source(r, bt_plugin_borrow_source_component_class_by_name_const(ctf, "fs"), muxer, folders->items[i], i);
	whole = whole &&
		bt_graph_add_simple_sink_component(r->graph, "weft", begin_messages, consume_messages, NULL, r, &sink) == 0 &&
		bt_graph_connect_ports(r->graph, bt_component_filter_borrow_output_port_by_index_const(muxer, 0),
		    bt_component_sink_borrow_input_port_by_index_const(sink, 0), NULL) == 0;
	if (sink)
		bt_component_sink_put_ref(sink);
	if (muxer)
		bt_component_filter_put_ref(muxer);
	return whole;
}

/* ---- Reading as a trace of weft ---- */

static void drop_batch(struct ctf_reader *r)
{
	for (size_t i = 0; i < r->texts.count; i++)
		free(r->texts.items[i]);
	r->texts.count = 0;
	r->batch.count = 0;
}

/* Ends threads without an exit event at their last event; a thread that is on CPU stays on CPU until the end. */
static bool end_threads(struct ctf_reader *r)
{
	bool whole = true;
	for (uint32_t i = 0; i < r->threads.count && whole; i++) {
		const bool runs = r->threads.items[i].runs;
		const int64_t end_ns = runs ? r->last_ns : r->threads.items[i].last_ns;
		whole = (!runs || add_event(r, i, end_ns, WEFT_OP_RUN, WEFT_SYSTEM_ID, (struct weft_str){0})) &&
			add_event(r, i, end_ns, WEFT_OP_RESOLVE, WEFT_SYSTEM_ID, (struct weft_str){0});
	}
	return whole;
}

static int read_events(struct weft_trace *trace, const struct weft_event **events, size_t *count)
{
	struct ctf_reader *r = trace->state;
	drop_batch(r);
	while (!r->has_ended && r->batch.count == 0) {
		const bt_graph_run_once_status status = bt_graph_run_once(r->graph);
		if (status < 0)
			read_error(r, "libbabeltrace2 failed without an error message");
		r->has_ended = status == BT_GRAPH_RUN_ONCE_STATUS_END;
		if (status < 0 || (r->has_ended && !end_threads(r)))
			return WEFT_EIO;
	}
	*events = r->batch.items;
	*count = r->batch.count;
	return r->batch.count > 0;
}

static const struct weft_trace_format format = {.name = "ctf", .next = read_events};

int ctf_reader_create(
    struct ctf_reader **out, struct weft_trace **trace, const ctf_folders *folders, const char *name, struct weft_error *err)
{
	struct ctf_reader *r = calloc(1, sizeof *r);
	if (!r)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	const bt_plugin *ctf = find_plugin("ctf"), *utils = find_plugin("utils");
	int status = WEFT_OK;
	if (!ctf || !utils)
		status = weft_error_set(err, WEFT_ENOTSUP, "libbabeltrace2 has no plugins ctf and utils");
	else if (!make_graph(r, folders, ctf, utils)) {
		read_error(r, "libbabeltrace2 does not accept it");
		status = weft_error_set(err, WEFT_EFORMAT, "%s", r->why);
	}
	if (ctf)
		bt_plugin_put_ref(ctf);
	if (utils)
		bt_plugin_put_ref(utils);
	if (status < 0) {
		ctf_reader_destroy(r);
		return status;
	}
	r->trace = (struct weft_trace){.format = &format, .state = r, .source = {.name = (char *)(uintptr_t)name}};
	r->trace.info.format = format.name;
	*out = r;
	*trace = &r->trace;
	return WEFT_OK;
}

const char *ctf_reader_why(const struct ctf_reader *reader)
{
	return reader->why;
}

void ctf_reader_destroy(struct ctf_reader *r)
{
	if (!r)
		return;
	drop_batch(r);
	if (r->graph)
		bt_graph_put_ref(r->graph);
	for (size_t i = 0; i < r->owned.count; i++)
		free(r->owned.items[i]);
	weft_vec_free(&r->owned);
	weft_vec_free(&r->texts);
	weft_vec_free(&r->batch);
	weft_vec_free(&r->threads);
	weft_vec_free(&r->streams);
	weft_idmap_finish(&r->thread_of);
	weft_idmap_finish(&r->tid_of_cpu);
	weft_intern_finish(&r->kept);
	free(r);
}
