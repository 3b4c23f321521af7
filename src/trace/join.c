/* join.c: a format whose events are those of several open traces, merged by their times.  SPDX-License-Identifier: ISC */
#include "trace/join.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "trace/format.h"

enum { BATCH = 256, MOST_PARTS = 1000, MOST_STREAMS = UINT16_MAX };

struct part {
	struct weft_trace *trace;
	int64_t offset_ns; /* to the first part's clock */
	uint32_t site_base;
	uint16_t stream_base;
	const struct weft_event *events; /* read ahead */
	size_t at, count;
	struct weft_intern texts;        /* that only this process can mean */
	WEFT_VEC(struct weft_str) names; /* these with the process's name before them, by number */
};

struct joined {
	struct part *parts;
	size_t count;
	int64_t stride; /* a power of ten, at least the number of parts */
	struct weft_stream_info *streams;
	struct weft_site *sites;
	struct weft_module *modules;
	struct weft_gap *gaps;
	char *process;
	struct weft_event out[BATCH];
};

/* ---- What a part's events become ---- */

static bool renumber(const struct joined *j, const struct part *part, int64_t *id)
{
	int64_t number = part - j->parts;
	if (*id == WEFT_SYSTEM_ID)
		return true;
	return !__builtin_mul_overflow(*id, j->stride, id) && !__builtin_add_overflow(*id, *id < 0 ? -number : number, id);
}

static int64_t shifted(const struct part *part, int64_t time_ns)
{
	int64_t sum;
	return __builtin_add_overflow(time_ns, part->offset_ns, &sum) ? time_ns : sum;
}

/* Puts the name of the process before a text of its part; false: out of memory. */
static bool put_process(struct part *part, struct weft_str *text)
{
	struct weft_str process = part->trace->info.process, *name;
	uint32_t number = weft_intern(&part->texts, *text);
	if (number != WEFT_INTERN_FAILED && number < part->names.count) {
		*text = part->names.items[number];
		return true;
	}
	char *bytes = number == WEFT_INTERN_FAILED ? NULL : malloc((size_t)process.len + text->len + 2);
	if (!bytes || !(name = weft_vec_push(&part->names))) {
		free(bytes);
		return false;
	}
	memcpy(bytes, process.len ? process.ptr : "", process.len);
	memcpy(bytes + process.len, ": ", 2);
	memcpy(bytes + process.len + 2, text->len ? text->ptr : "", text->len);
	*text = *name = (struct weft_str){bytes, process.len + 2 + text->len};
	return true;
}

/* What the first OS thread of every process is called. */
static bool is_main(const struct weft_event *e)
{
	return (e->op == WEFT_OP_LABEL || (e->op == WEFT_OP_PENDING && e->kind == WEFT_KIND_THREAD)) && e->text.len == 4 &&
	       !memcmp(e->text.ptr, "main", 4);
}

/* 1, 0: the event is left out, or negative. */
static int adapt(const struct joined *j, struct part *part, const struct weft_event *from, struct weft_event *to)
{
	*to = *from;
	if (from->op == WEFT_EVENT_OTHER || (from->op == WEFT_OP_DETAIL && from->kind == WEFT_DETAIL_STACK) ||
	    !renumber(j, part, &to->a) || !renumber(j, part, &to->b))
		return 0;
	to->time_ns = shifted(part, from->time_ns);
	to->stream = (uint16_t)(from->stream + part->stream_base);
	if (from->site != WEFT_NO_SITE)
		to->site = from->site + part->site_base;
	if (from->op == WEFT_OP_PENDING)
		to->value = shifted(part, from->value);
	bool is_own = is_main(from) || from->op == WEFT_OP_COUNTER || from->op == WEFT_OP_COUNTER_ADD;
	return !is_own || put_process(part, &to->text) ? 1 : WEFT_ENOMEM;
}

/* ---- Reading ---- */

static int fill(struct part *part)
{
	if (part->at < part->count)
		return WEFT_OK;
	part->at = part->count = 0;
	int more = weft_trace_next(part->trace, &part->events, &part->count);
	if (more <= 0)
		part->count = 0;
	return more < 0 ? more : WEFT_OK;
}

/* Gaps, and what was skipped, are known at the end. */
static int finish(struct weft_trace *trace)
{
	struct joined *j = trace->state;
	size_t count = 0, at = 0;
	if (trace->read_whole)
		return 0;
	for (size_t i = 0; i < j->count; i++)
		count += j->parts[i].trace->info.gap_count;
	free(j->gaps);
	j->gaps = calloc(count + 1, sizeof *j->gaps);
	if (!j->gaps)
		return WEFT_ENOMEM;
	for (size_t i = 0; i < j->count; i++) {
		const struct part *part = &j->parts[i];
		const struct weft_trace_info *info = &part->trace->info;
		for (size_t g = 0; g < info->gap_count; g++) {
			struct weft_gap *gap = &j->gaps[at++];
			*gap = info->gaps[g];
			gap->stream = (uint16_t)(gap->stream + part->stream_base);
			gap->from_ns = gap->from_ns == INT64_MIN ? INT64_MIN : shifted(part, gap->from_ns);
			gap->to_ns = gap->to_ns == INT64_MAX ? INT64_MAX : shifted(part, gap->to_ns);
		}
		for (size_t s = 0; s < info->skipped_count; s++) {
			if (trace->info.skipped_count < WEFT_SKIPPED_KEPT && s < WEFT_SKIPPED_KEPT)
				trace->skipped[trace->info.skipped_count] = info->skipped[s];
			trace->info.skipped_count++;
		}
		for (size_t s = 0; s < info->stream_count; s++) {
			struct weft_str name = j->streams[part->stream_base + s].name;
			j->streams[part->stream_base + s] = info->streams[s];
			j->streams[part->stream_base + s].name = name;
			j->streams[part->stream_base + s].part = (uint32_t)i;
		}
		trace->info.lost_no_stream = i ? trace->info.lost_no_stream + info->lost_no_stream : info->lost_no_stream;
	}
	trace->info.gaps = j->gaps;
	trace->info.gap_count = count;
	return 0;
}

/* The part whose next event is the earliest, NULL: none has one; and until when it goes on before another. */
static struct part *next_part(const struct joined *j, int64_t *until_ns)
{
	struct part *best = NULL;
	int64_t best_ns = INT64_MAX;
	*until_ns = INT64_MAX;
	for (size_t i = 0; i < j->count; i++) {
		struct part *part = &j->parts[i];
		if (part->at == part->count)
			continue;
		int64_t time_ns = shifted(part, part->events[part->at].time_ns);
		if (!best || time_ns < best_ns) {
			*until_ns = best ? best_ns : INT64_MAX;
			best = part;
			best_ns = time_ns;
		} else if (time_ns < *until_ns) {
			*until_ns = time_ns;
		}
	}
	return best;
}

static int join_next(struct weft_trace *trace, const struct weft_event **events, size_t *count)
{
	struct joined *j = trace->state;
	size_t made = 0;
	while (made < BATCH) {
		int64_t until_ns;
		for (size_t i = 0; i < j->count; i++) {
			int status = fill(&j->parts[i]);
			if (status < 0)
				return status;
		}
		struct part *part = next_part(j, &until_ns);
		if (!part)
			break;
		do {
			int is_kept = adapt(j, part, &part->events[part->at++], &j->out[made]);
			if (is_kept < 0)
				return is_kept;
			made += (size_t)is_kept;
		} while (made < BATCH && part->at < part->count && shifted(part, part->events[part->at].time_ns) < until_ns);
	}
	*events = j->out;
	*count = made;
	return made > 0 ? 1 : finish(trace);
}

static void join_rewind(struct weft_trace *trace)
{
	struct joined *j = trace->state;
	for (size_t i = 0; i < j->count; i++) {
		weft_trace_rewind(j->parts[i].trace);
		j->parts[i].at = j->parts[i].count = 0;
	}
}

/* ---- Opening and closing ---- */

static void free_joined(struct joined *j)
{
	for (size_t i = 0; j->parts && i < j->count; i++) {
		for (size_t n = 0; n < j->parts[i].names.count; n++)
			free((char *)(uintptr_t)j->parts[i].names.items[n].ptr);
		weft_vec_free(&j->parts[i].names);
		weft_intern_finish(&j->parts[i].texts);
	}
	free(j->parts);
	free(j->streams);
	free(j->sites);
	free(j->modules);
	free(j->gaps);
	free(j->process);
	free(j);
}

static void join_close(struct weft_trace *trace)
{
	struct joined *j = trace->state;
	for (size_t i = 0; i < j->count; i++)
		weft_trace_close(j->parts[i].trace);
	free_joined(j);
}

static int join_save(const struct weft_trace *trace, weft_trace_file_fn *file, void *ctx)
{
	return WEFT_ENOTSUP;
}

static enum weft_confidence join_probe(const struct weft_source *source)
{
	return WEFT_CONFIDENCE_NONE;
}

static const struct weft_trace_format format = {"session", join_probe, NULL, join_next, join_rewind, join_close, NULL, join_save};

/* All tables, part by part. */
static int fill_tables(struct joined *j, struct weft_trace_info *info, struct weft_error *err)
{
	size_t streams = 0, sites = 0, modules = 0;
	for (size_t i = 0; i < j->count; i++) {
		const struct weft_trace_info *of = &j->parts[i].trace->info;
		streams += of->stream_count;
		sites += of->site_count;
		modules += of->module_count;
	}
	if (streams > MOST_STREAMS || sites >= WEFT_NO_SITE)
		return weft_error_set(err, WEFT_ETOOBIG, "more OS threads or sites than one trace can have");
	j->streams = calloc(streams + 1, sizeof *j->streams);
	j->sites = calloc(sites + 1, sizeof *j->sites);
	j->modules = calloc(modules + 1, sizeof *j->modules);
	if (!j->streams || !j->sites || !j->modules)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	for (size_t i = 0; i < j->count; i++) {
		struct part *part = &j->parts[i];
		const struct weft_trace_info *of = &part->trace->info;
		part->stream_base = (uint16_t)info->stream_count;
		part->site_base = (uint32_t)info->site_count;
		for (size_t s = 0; s < of->stream_count; s++) {
			struct weft_stream_info *stream = &j->streams[info->stream_count++];
			*stream = of->streams[s];
			stream->part = (uint32_t)i;
			if (stream->name.len && !put_process(part, &stream->name))
				return weft_error_set(err, WEFT_ENOMEM, "out of memory");
		}
		for (size_t s = 0; s < of->site_count; s++) {
			struct weft_site *site = &j->sites[info->site_count++];
			*site = of->sites[s];
			if (site->module)
				site->module = &j->modules[info->module_count + (size_t)(site->module - of->modules)];
		}
		for (size_t m = 0; m < of->module_count; m++)
			j->modules[info->module_count++] = of->modules[m];
	}
	info->streams = j->streams;
	info->sites = j->sites;
	info->modules = j->modules;
	return WEFT_OK;
}

/* What is true of one part is true of all; it lived as long as the last of them. */
static void fill_info(struct joined *j, struct weft_trace_info *info)
{
	const struct weft_trace_info *first = &j->parts[0].trace->info;
	info->host = first->host;
	info->clock_origin_ns = first->clock_origin_ns;
	info->has_origin = true;
	for (size_t i = 0; i < j->count; i++) {
		const struct weft_trace_info *of = &j->parts[i].trace->info;
		int64_t until_ns = of->until_ns ? shifted(&j->parts[i], of->until_ns) : 0;
		info->unfinished |= of->unfinished && !of->has_died;
		info->wrapped |= of->wrapped;
		info->lost_no_stream += of->lost_no_stream;
		info->until_ns = until_ns > info->until_ns ? until_ns : info->until_ns;
	}
	int length = asprintf(&j->process, "%.*s and %zu more", (int)first->process.len,
	    first->process.len ? first->process.ptr : "", j->count - 1);
	if (length < 0)
		j->process = NULL;
	else
		info->process = (struct weft_str){j->process, (uint32_t)length};
}

static int take_parts(struct joined *j, struct weft_trace *const *parts, size_t count, struct weft_error *err)
{
	const struct weft_trace_info *first = &parts[0]->info;
	j->parts = calloc(count, sizeof *j->parts);
	if (!j->parts) {
		weft_error_set(err, WEFT_ENOMEM, "out of memory");
		return WEFT_ENOMEM;
	}
	j->count = count;
	for (j->stride = 1; j->stride < (int64_t)count;)
		j->stride *= 10;
	for (size_t i = 0; i < count; i++) {
		const struct weft_trace_info *info = &parts[i]->info;
		const char *why = NULL;
		j->parts[i].trace = parts[i];
		if (!info->has_origin)
			why = "does not tell the time of its clock";
		else if (info->host.len != first->host.len ||
			 (first->host.len && memcmp(info->host.ptr, first->host.ptr, first->host.len)))
			why = "is of another host";
		else if (__builtin_sub_overflow(info->clock_origin_ns, first->clock_origin_ns, &j->parts[i].offset_ns))
			why = "is of another age";
		if (why) {
			weft_error_set(err, WEFT_EINVAL, "%s %s: it cannot be joined with others", parts[i]->source.name, why);
			return WEFT_EINVAL;
		}
	}
	return WEFT_OK;
}

int weft_trace_join(
    struct weft_trace **out, struct weft_trace *const *parts, size_t count, const char *name, struct weft_error *err)
{
	if (count < 1 || count > MOST_PARTS)
		return weft_error_set(err, WEFT_EINVAL, "%zu traces cannot be joined", count);
	struct weft_trace *trace = calloc(1, sizeof *trace);
	struct weft_skipped *skipped = calloc(WEFT_SKIPPED_KEPT, sizeof *skipped);
	struct joined *j = calloc(1, sizeof *j);
	char *copy = strdup(name);
	int status = WEFT_ENOMEM;
	if (!trace || !skipped || !j || !copy)
		weft_error_set(err, WEFT_ENOMEM, "out of memory");
	else if ((status = take_parts(j, parts, count, err)) == WEFT_OK)
		status = fill_tables(j, &trace->info, err);
	if (status < 0) {
		if (j)
			free_joined(j);
		free(trace);
		free(skipped);
		free(copy);
		return status;
	}
	trace->format = &format;
	trace->state = j;
	trace->skipped = skipped;
	trace->info.skipped = skipped;
	trace->info.format = format.name;
	trace->source = (struct weft_source){.name = copy, .is_dir = true, .file = -1};
	fill_info(j, &trace->info);
	*out = trace;
	return WEFT_OK;
}
