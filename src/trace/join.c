/* join.c: implements a format that merges the events of several open traces by time.  SPDX-License-Identifier: ISC */
#include "trace/join.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/intern.h"
#include "base/sort.h"
#include "trace/clock_sync.h"
#include "trace/format.h"

/* Longest process name that is put in front of texts, so that a long name and a thousand counters do not become a thousand long
 * names. */
enum {
	BATCH = 256,
	MAX_PARTS = 1000,
	MAX_STREAMS = UINT16_MAX,
	MAX_NAME_BYTES = 40,
	MAX_HOST_BYTES = 20,
	PART_NAME_BYTES = MAX_NAME_BYTES + MAX_HOST_BYTES + 24
};

struct part {
	struct weft_trace *trace;
	/* Conversion of the part's times to the clock of the first part: by clock ticks if both counted the ticks of one clock,
	 * otherwise by wall-clock time.  The times of a part of another host are first converted to a clock of its host, then
	 * by clock_sync. */
	double rate;
	int64_t offset_ns;
	struct weft_clock_bounds_cursor cursors[WEFT_CLOCK_SYNC_CURSORS];
	/* Times in [since_ns, since_ns + stays_ns) are converted by adding later_ns; most times are a few ns after the previous
	 * time. */
	int64_t since_ns, stays_ns, later_ns;
	uint32_t clock; /* number of the part's clock in j->clock_sync; 0 for the clock of the first part's host */
	uint32_t site_base;
	uint16_t stream_base;
	const struct weft_event *events; /* events read ahead */
	size_t at, count;
	size_t first_timed, timed; /* range of events, [first_timed, timed), that have converted times */
	int64_t times_ns[BATCH];
	int64_t last_ns; /* time of the part's newest event so far, by the clock of the first part */
	bool has_events, is_ended;
	char name[PART_NAME_BYTES];
	struct weft_intern texts;        /* texts that have a meaning only within this process */
	WEFT_VEC(struct weft_str) names; /* by number of the text: the text with the name of the process in front */
	uint64_t unnamed;                /* number of events that were dropped because a promise id is too large */
};

/* The time of the next event of a part. */
struct turn {
	int64_t time_ns;
	uint32_t part;
};

struct joined {
	struct weft_clock_sync clock_sync; /* for several hosts */
	struct part *parts;
	size_t count;
	/* A tournament tree that finds the part with the earliest event.  Part i is leaf `leaves` + i, the parent of leaf or
	 * node n is node n / 2, each node has the loser of its game, and the winner is in node 0.  If two times are equal, the
	 * part with the lower number wins. */
	struct turn *turns;
	size_t leaves;
	int64_t limit_ns; /* the winner may emit its events that are before this time */
	bool is_begun;
	int64_t stride; /* factor of promise ids: a power of ten that is at least the number of parts */
	struct weft_part *part_infos;
	struct weft_stream_info *streams;
	struct weft_site *sites;
	struct weft_module *modules;
	struct weft_gap *gaps;
	struct weft_profile_stack *stacks;
	struct weft_profile_sample *samples;
	struct weft_profile_stack *memory_stacks;
	struct weft_allocation *allocations;
	char *process;
	struct weft_kernel_thread *threads; /* threads of all parts, with the last names that kernel records have */
	struct weft_event out[BATCH];
};

/* ---- Conversion of events ---- */

static bool renumber_id(const struct joined *j, const struct part *part, int64_t *id)
{
	int64_t number = part - j->parts;
	if (*id == WEFT_SYSTEM_ID)
		return true;
	return !__builtin_mul_overflow(*id, j->stride, id) && !__builtin_add_overflow(*id, *id < 0 ? -number : number, id);
}

static int64_t scale_time(const struct part *part, int64_t time_ns)
{
	if (part->rate == 1)
		return time_ns;
	double ns = (double)time_ns * part->rate;
	return ns >= 0x1p63 ? INT64_MAX : ns < -0x1p63 ? INT64_MIN : (int64_t)ns;
}

/* Converts a result of scale_time() to the first clock; the result never decreases unless the part's clock does. */
static int64_t sync_time(const struct joined *j, const struct part *part, int64_t time_ns,
    struct weft_clock_bounds_cursor cursors[WEFT_CLOCK_SYNC_CURSORS], int64_t *left_ns)
{
	int64_t sum;
	if (part->clock)
		time_ns = weft_clock_sync_time_from(&j->clock_sync, part->clock, time_ns, cursors, left_ns);
	return __builtin_add_overflow(time_ns, part->offset_ns, &sum) ? (part->offset_ns < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static int64_t convert_time(const struct joined *j, const struct part *part, int64_t time_ns)
{
	struct weft_clock_bounds_cursor anywhere[WEFT_CLOCK_SYNC_CURSORS] = {{0}};
	int64_t left_ns = INT64_MAX;
	return sync_time(j, part, scale_time(part, time_ns), anywhere, &left_ns);
}

static bool is_safe_time(int64_t ns)
{
	return ns > INT64_MIN / 4 && ns < INT64_MAX / 4;
}

/* Converts the time of an event that follows others, and stores the range in which the same shift applies. */
static int64_t convert_next_time(const struct joined *j, struct part *part, int64_t time_ns)
{
	int64_t left_ns = INT64_MAX / 4;
	const int64_t to_ns = sync_time(j, part, time_ns, part->cursors, &left_ns);
	part->since_ns = time_ns;
	part->stays_ns = is_safe_time(time_ns) && is_safe_time(to_ns) ? left_ns : 0;
	part->later_ns = part->stays_ns ? to_ns - time_ns : 0;
	return to_ns;
}

/* Puts the name of the process in front of a text; returns false when out of memory. */
static bool prefix_process_name(struct part *part, struct weft_str *text)
{
	uint32_t number = weft_intern(&part->texts, *text), length = (uint32_t)strlen(part->name);
	if (number != WEFT_INTERN_FAILED && number < part->names.count) {
		*text = part->names.items[number];
		return true;
	}
	bool fits = number != WEFT_INTERN_FAILED && text->len < UINT32_MAX - length - 2;
	struct weft_str *name = fits ? weft_vec_push(&part->names) : NULL;
	char *bytes = name ? malloc((size_t)length + 2 + text->len) : NULL;
	if (!bytes) {
		part->names.count -= name != NULL;
		return false;
	}
	memcpy(bytes, part->name, length);
	memcpy(bytes + length, ": ", 2);
	memcpy(bytes + length + 2, text->len ? text->ptr : "", text->len);
	*text = *name = (struct weft_str){bytes, length + 2 + text->len};
	return true;
}

/* Returns true for the name "main" of a thread or task, which every process has. */
static bool is_main_name(const struct weft_event *e)
{
	return (e->op == WEFT_OP_LABEL || e->op == WEFT_OP_PENDING) && e->text.len == 4 && !memcmp(e->text.ptr, "main", 4);
}

/* How the numbers in a part's events are changed. */
struct numbers {
	int64_t stride, number;
	uint32_t site_base;
	uint16_t stream_base;
};

/* Returns true if only numbers of the event change, and the new numbers fit.  Nearly all events need no other change than new
 * numbers. */
static inline bool is_plain_event(const struct weft_event *e)
{
	enum { MAX_ID_BITS = 53 }; /* most bits of an id, so that an id times MAX_PARTS fits */
	const uint32_t others = 1u << WEFT_OP_PENDING | 1u << WEFT_OP_DETAIL | 1u << WEFT_OP_COUNTER | 1u << WEFT_OP_COUNTER_ADD;
	_Static_assert(WEFT_OP_COUNT <= 32, "a mask of 32 bits has a bit for each op");
	return e->op < WEFT_OP_COUNT && !(others >> e->op & 1) && !(e->op == WEFT_OP_LABEL && e->text.len == 4) &&
	       (((uint64_t)e->a + 1) | ((uint64_t)e->b + 1)) >> MAX_ID_BITS == 0;
}

static inline int64_t number_id(int64_t id, const struct numbers *as)
{
	return id < 0 ? id : id * as->stride + as->number;
}

static inline void convert_event(const struct weft_event *from, const struct numbers *as, int64_t time_ns, struct weft_event *to)
{
	*to = *from;
	to->time_ns = time_ns;
	to->a = number_id(from->a, as);
	to->b = number_id(from->b, as);
	to->stream = (uint16_t)(from->stream + as->stream_base);
	to->site = from->site + (from->site != WEFT_NO_SITE ? as->site_base : 0);
}

/* Converts any event.  Converts an event of any form; returns 1, 0 if the event is dropped, or a negative error. */
static int convert_any_event(
    const struct joined *j, struct part *part, const struct weft_event *from, int64_t time_ns, struct weft_event *to)
{
	*to = *from;
	to->time_ns = time_ns;
	if (from->op == WEFT_EVENT_OTHER || (from->op == WEFT_OP_DETAIL && from->kind == WEFT_DETAIL_STACK))
		return 0;
	if (!renumber_id(j, part, &to->a) || !renumber_id(j, part, &to->b)) {
		part->unnamed++;
		return 0;
	}
	to->stream = (uint16_t)(from->stream + part->stream_base);
	if (from->site != WEFT_NO_SITE)
		to->site = from->site + part->site_base;
	if (from->op == WEFT_OP_PENDING)
		to->value = convert_time(j, part, from->value);
	bool is_own = is_main_name(from) || from->op == WEFT_OP_COUNTER || from->op == WEFT_OP_COUNTER_ADD;
	return !is_own || prefix_process_name(part, &to->text) ? 1 : WEFT_ENOMEM;
}

/* ---- Merge ---- */

/* The maximum time of an event; one larger value must exist. */
#define LAST_TURN_NS (INT64_MAX - 2)
#define NO_TURN_NS (INT64_MAX - 1)

/* Replays the games of the tournament from the winner's leaf to the root.  The result of a game cannot be predicted, so the
 * loop has no branches that depend on it. */
static void update_tournament(struct joined *j, struct turn turn)
{
	struct turn *turns = j->turns;
	int64_t time_ns = turn.time_ns, limit_ns = INT64_MAX;
	uint32_t part = turn.part;
	for (size_t at = j->leaves + part; at > 1; at /= 2) {
		struct turn *loser = &turns[at / 2];
		const int64_t other_ns = loser->time_ns;
		const uint32_t other = loser->part;
		const bool has_lost = other_ns < time_ns + (int64_t)(at % 2);
		loser->time_ns = has_lost ? time_ns : other_ns;
		loser->part = has_lost ? part : other;
		time_ns = has_lost ? other_ns : time_ns;
		part = has_lost ? other : part;
	}
	turns[0] = (struct turn){time_ns, part};
	for (size_t at = j->leaves + part; at > 1; at /= 2)
		limit_ns = weft_min_ns(limit_ns, turns[at / 2].time_ns + (int64_t)(~at % 2));
	j->limit_ns = limit_ns;
}

/* Returns true if the part has a definite end: its recorder ended it, or its process is known to have died. */
static bool has_end(const struct part *part)
{
	const struct weft_trace_info *info = &part->trace->info;
	return part->has_events && info->stream_count > 0 && (!info->unfinished || info->has_died);
}

/* Converts the times of the next events of a part, of at most BATCH events. */
static void find_times(const struct joined *j, struct part *part)
{
	const struct weft_event *events = part->events + part->at;
	const size_t left = part->count - part->at, count = left < BATCH ? left : BATCH;
	part->first_timed = part->at;
	part->timed = part->at + count;
	int64_t since_ns = part->since_ns, later_ns = part->later_ns;
	uint64_t stays_ns = (uint64_t)part->stays_ns;
	for (size_t i = 0; i < count; i++) {
		const int64_t time_ns = scale_time(part, events[i].time_ns);
		part->times_ns[i] = (int64_t)((uint64_t)time_ns + (uint64_t)later_ns);
		if ((uint64_t)time_ns - (uint64_t)since_ns < stays_ns)
			continue;
		part->times_ns[i] = convert_next_time(j, part, time_ns);
		since_ns = part->since_ns;
		later_ns = part->later_ns;
		stays_ns = (uint64_t)part->stays_ns;
	}
}

/* Finds the time of the next event of a part; NO_TURN_NS if it has none. */
static int find_next_turn(const struct joined *j, struct part *part, int64_t *time_ns)
{
	if (part->at == part->count) {
		part->at = part->count = part->timed = 0;
		int more = weft_trace_next(part->trace, &part->events, &part->count);
		if (more < 0)
			return more;
		part->count = more ? part->count : 0;
	}
	if (part->at == part->timed)
		find_times(j, part);
	*time_ns = NO_TURN_NS;
	if (part->count) {
		*time_ns = part->times_ns[part->at - part->first_timed];
	} else if (!part->is_ended && has_end(part)) {
		const int64_t until_ns = part->trace->info.until_ns;
		*time_ns = weft_max_ns(until_ns ? convert_time(j, part, until_ns) : part->last_ns, part->last_ns);
	} else {
		return WEFT_OK;
	}
	*time_ns = weft_min_ns(*time_ns, LAST_TURN_NS);
	return WEFT_OK;
}

static int init_turns(struct joined *j)
{
	for (size_t i = 0; i < j->leaves; i++)
		j->turns[i] = (struct turn){INT64_MIN, UINT32_MAX};
	/* The first part that reaches a node waits there for its opponent; at the end no part waits. */
	for (uint32_t i = 0; i < j->leaves; i++) {
		struct turn turn = {NO_TURN_NS, i};
		int status = i < j->count ? find_next_turn(j, &j->parts[i], &turn.time_ns) : WEFT_OK;
		if (status < 0)
			return status;
		size_t at = j->leaves + i;
		for (; at > 1 && j->turns[at / 2].part != UINT32_MAX; at /= 2) {
			struct turn *other = &j->turns[at / 2];
			if (other->time_ns <= turn.time_ns) { /* an earlier part */
				const struct turn first = *other;
				*other = turn;
				turn = first;
			}
		}
		j->turns[at / 2] = turn;
	}
	j->is_begun = true;
	update_tournament(j, j->turns[0]);
	return WEFT_OK;
}

/* Emits those events of a part that have times and come before the next event of any other part, as far as the buffer
 * permits. */
static int emit_run(struct joined *j, struct part *part, size_t *made)
{
	const struct weft_event *from = part->events + part->at;
	const int64_t *times_ns = part->times_ns + (part->at - part->first_timed), limit_ns = j->limit_ns;
	const struct numbers as = {j->stride, part - j->parts, part->site_base, part->stream_base};
	const size_t left = part->timed - part->at;
	size_t i = 0, count = *made;
	do {
		struct weft_event *out = &j->out[count];
		int is_retained = 1;
		if (__builtin_expect(is_plain_event(&from[i]), 1))
			convert_event(&from[i], &as, times_ns[i], out);
		else
			is_retained = convert_any_event(j, part, &from[i], times_ns[i], out);
		if (is_retained < 0)
			return is_retained;
		count += (size_t)is_retained;
		i++;
	} while (i < left && count < BATCH && times_ns[i] < limit_ns);
	part->last_ns = times_ns[i - 1];
	part->has_events |= count > *made;
	part->at += i;
	*made = count;
	return WEFT_OK;
}

static void emit_end(struct joined *j, struct part *part, int64_t time_ns, size_t *made)
{
	j->out[(*made)++] = (struct weft_event){.time_ns = time_ns,
	    .a = WEFT_SYSTEM_ID,
	    .b = WEFT_SYSTEM_ID,
	    .site = WEFT_NO_SITE,
	    .stream = part->stream_base,
	    .op = WEFT_EVENT_END};
	part->is_ended = true;
}

/* Emits the winner's events that come before the next event of any other part, as far as the buffer permits. */
static int emit_events(struct joined *j, size_t *made)
{
	struct turn turn = j->turns[0];
	struct part *part = &j->parts[turn.part];
	do {
		int status = WEFT_OK;
		if (part->count)
			status = emit_run(j, part, made);
		else
			emit_end(j, part, turn.time_ns, made);
		if (status == WEFT_OK)
			status = find_next_turn(j, part, &turn.time_ns);
		if (status < 0)
			return status;
	} while (*made < BATCH && turn.time_ns < j->limit_ns && turn.time_ns != NO_TURN_NS);
	update_tournament(j, turn);
	return WEFT_OK;
}

/* Sums up gaps, skipped data and losses, which are known only at the end. */
static int finish_info(struct weft_trace *trace)
{
	struct joined *j = trace->state;
	size_t count = 0, at = 0;
	if (trace->is_end_reached)
		return 0;
	for (size_t i = 0; i < j->count; i++)
		count += j->parts[i].trace->info.gap_count;
	free(j->gaps);
	j->gaps = calloc(count + 1, sizeof *j->gaps);
	if (!j->gaps)
		return WEFT_ENOMEM;
	trace->info.lost_no_stream = 0;
	for (size_t i = 0; i < j->count; i++) {
		const struct part *part = &j->parts[i];
		const struct weft_trace_info *info = &part->trace->info;
		for (size_t g = 0; g < info->gap_count; g++) {
			struct weft_gap *gap = &j->gaps[at++];
			*gap = info->gaps[g];
			gap->stream = (uint16_t)(gap->stream + part->stream_base);
			gap->from_ns = gap->from_ns == INT64_MIN ? INT64_MIN : convert_time(j, part, gap->from_ns);
			gap->to_ns = gap->to_ns == INT64_MAX ? INT64_MAX : convert_time(j, part, gap->to_ns);
		}
		trace->info.unplaced_count += info->unplaced_count;
		for (size_t s = 0; s < info->skipped_count; s++) {
			if (trace->info.skipped_count < WEFT_MAX_SKIPPED && s < WEFT_MAX_SKIPPED)
				trace->skipped[trace->info.skipped_count] = info->skipped[s];
			trace->info.skipped_count++;
		}
		if (part->unnamed)
			weft__trace_skip(trace, NULL, WEFT_NO_OFFSET, WEFT_NO_OFFSET, 0,
			    "%" PRIu64 " events of %s belong to promises with ids too large for a joined trace", part->unnamed,
			    part->name);
		for (size_t s = 0; s < info->stream_count; s++) {
			struct weft_stream_info *stream = &j->streams[part->stream_base + s];
			struct weft_str name = stream->name;
			*stream = info->streams[s];
			stream->name = name;
			stream->part = (uint32_t)i;
			stream->host = (uint16_t)part->clock;
		}
		j->part_infos[i].lost_no_stream = info->lost_no_stream;
		j->part_infos[i].gap_count = info->gap_count;
		j->part_infos[i].skipped_count = info->skipped_count + (part->unnamed > 0);
		j->part_infos[i].unplaced_count = info->unplaced_count + (part->unnamed > 0);
		trace->info.lost_no_stream += info->lost_no_stream;
	}
	trace->info.gaps = j->gaps;
	trace->info.gap_count = count;
	return 0;
}

static int join_next(struct weft_trace *trace, const struct weft_event **events, size_t *count)
{
	struct joined *j = trace->state;
	size_t made = 0;
	int status = j->is_begun ? WEFT_OK : init_turns(j);
	while (status == WEFT_OK && made < BATCH && j->turns[0].time_ns != NO_TURN_NS)
		status = emit_events(j, &made);
	if (status < 0)
		return status;
	*events = j->out;
	*count = made;
	return made > 0 ? 1 : finish_info(trace);
}

static void join_rewind(struct weft_trace *trace)
{
	struct joined *j = trace->state;
	j->is_begun = false;
	for (size_t i = 0; i < j->count; i++) {
		struct part *part = &j->parts[i];
		weft_trace_rewind(part->trace);
		part->at = part->count = part->timed = 0;
		part->unnamed = 0;
		part->has_events = part->is_ended = false;
	}
}

/* ---- Open and close ---- */

static void free_joined(struct joined *j)
{
	for (size_t i = 0; j->parts && i < j->count; i++) {
		for (size_t n = 0; n < j->parts[i].names.count; n++)
			free((char *)(uintptr_t)j->parts[i].names.items[n].ptr);
		weft_vec_free(&j->parts[i].names);
		weft_intern_finish(&j->parts[i].texts);
	}
	weft_clock_sync_finish(&j->clock_sync);
	free(j->parts);
	free(j->turns);
	free(j->part_infos);
	free(j->streams);
	free(j->sites);
	free(j->modules);
	free(j->gaps);
	free(j->stacks);
	free(j->samples);
	free(j->memory_stacks);
	free(j->allocations);
	free(j->process);
	free(j->threads);
	free(j);
}

static void join_close(struct weft_trace *trace)
{
	struct joined *j = trace->state;
	for (size_t i = 0; i < j->count; i++)
		weft_trace_close(j->parts[i].trace);
	free_joined(j);
}

/* State of saving a part's files in a folder. */
struct saving {
	weft_trace_file_fn *file;
	void *ctx;
	char folder[PART_NAME_BYTES + 24];
};

static int save_in_folder(void *ctx, const char *name, const void *bytes, size_t size)
{
	const struct saving *s = ctx;
	char path[sizeof s->folder + 256];
	snprintf(path, sizeof path, "%s/%s", s->folder, *name ? name : WEFT_PART_FILE);
	return s->file(s->ctx, path, bytes, size);
}

/* Saves each part in its own folder.  The name of a folder starts with the number of the part, so that sorting by name keeps
 * the order. */
static int join_save(const struct weft_trace *trace, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx)
{
	const struct joined *j = trace->state;
	struct saving s = {file, ctx, ""};
	int status = edit && edit->is_cut ? WEFT_ENOTSUP : WEFT_OK;
	for (size_t i = 0; i < j->count && status == WEFT_OK; i++) {
		const int number = snprintf(s.folder, sizeof s.folder, "%03zu-", i);
		char *name = s.folder + number;
		snprintf(name, sizeof s.folder - (size_t)number, "%s", j->parts[i].name);
		if (edit && edit->text)
			edit->text(edit->ctx, name, (uint32_t)strlen(name));
		for (char *c = name; *c; c++)
			*c = strchr("/\\", *c) || (unsigned char)*c < ' ' ? '_' : *c;
		status = weft_trace_save(j->parts[i].trace, edit, save_in_folder, &s, NULL);
	}
	return status;
}

/* ---- Kernel records ---- */

struct shifting {
	const struct joined *joined;
	const struct part *part;
	weft_kernel_fn *each;
	void *ctx;
};

static int shift_events(void *ctx, const struct weft_kernel_event *events, size_t count)
{
	const struct shifting *s = ctx;
	struct weft_kernel_event shifted_events[BATCH];
	int failed = 0;
	for (size_t i = 0; i < count && !failed;) {
		size_t n = 0;
		for (; n < BATCH && i < count; n++, i++) {
			shifted_events[n] = events[i];
			struct weft_kernel_event *e = &shifted_events[n];
			e->time_ns = convert_time(s->joined, s->part, events[i].time_ns);
			e->tid = weft_tid_at(e->tid, s->part->clock);
			if (e->op == WEFT_KERNEL_TAKEN || e->op == WEFT_KERNEL_WAKE)
				e->other = weft_tid_at(e->other, s->part->clock);
		}
		failed = s->each ? s->each(s->ctx, shifted_events, n) : 0;
	}
	return failed;
}

static int compare_threads(const void *x, const void *y)
{
	const struct weft_kernel_thread *a = x, *b = y;
	return WEFT_ORDER(a->tid, b->tid) ?: WEFT_ORDER(b->pid, a->pid);
}

/* Adds the threads in the kernel records of a part.  Two programs of one host may name the same thread; the program that the
 * thread belongs to knows more about it. */
static bool add_threads(
    struct joined *j, const struct part *part, struct weft_kernel_info *all, const struct weft_kernel_info *part_kernel)
{
	const size_t count = all->thread_count + part_kernel->thread_count;
	struct weft_kernel_thread *grown = realloc(j->threads, (count ? count : 1) * sizeof *grown);
	if (!grown)
		return false;
	j->threads = grown;
	for (size_t i = 0; i < part_kernel->thread_count; i++)
		grown[all->thread_count + i] = (struct weft_kernel_thread){weft_tid_at(part_kernel->threads[i].tid, part->clock),
		    weft_tid_at(part_kernel->threads[i].pid, part->clock), part_kernel->threads[i].name};
	weft_sort(grown, count, sizeof *grown, compare_threads);
	all->threads = grown;
	all->thread_count = 0;
	for (size_t i = 0; i < count; i++)
		if (i == 0 || grown[i].tid != grown[all->thread_count - 1].tid)
			grown[all->thread_count++] = grown[i];
	return true;
}

static int join_kernel(struct weft_trace *trace, weft_kernel_fn *each, void *ctx, struct weft_kernel_info *info)
{
	struct joined *j = trace->state;
	*info = (struct weft_kernel_info){.is_whole = true, .since_ns = INT64_MIN, .until_ns = INT64_MIN};
	int any = 0;
	for (size_t i = 0; i < j->count; i++) {
		struct weft_kernel_info part_kernel;
		struct shifting shifting = {j, &j->parts[i], each, ctx};
		const int got = weft_trace_kernel(j->parts[i].trace, shift_events, &shifting, &part_kernel);
		if (got < 0 || (got && !add_threads(j, &j->parts[i], info, &part_kernel)))
			return got < 0 ? got : WEFT_ENOMEM;
		if (!got)
			continue;
		any = 1;
		info->is_whole &= part_kernel.is_whole;
		if (part_kernel.since_ns != INT64_MIN)
			info->since_ns = weft_max_ns(info->since_ns, convert_time(j, &j->parts[i], part_kernel.since_ns));
		info->until_ns = weft_max_ns(info->until_ns, convert_time(j, &j->parts[i], part_kernel.until_ns));
		info->level = part_kernel.level > info->level ? part_kernel.level : info->level;
		info->why = part_kernel.why;
		info->packets += part_kernel.packets;
		info->bytes += part_kernel.bytes;
		info->events += part_kernel.events;
		info->lost += part_kernel.lost;
		info->overwritten += part_kernel.overwritten;
		info->processors = part_kernel.processors > info->processors ? part_kernel.processors : info->processors;
		info->bound_ns = part_kernel.bound_ns > info->bound_ns ? part_kernel.bound_ns : info->bound_ns;
	}
	return any;
}

static enum weft_confidence join_probe(const struct weft_source *source)
{
	return WEFT_CONFIDENCE_NONE;
}

static const struct weft_trace_format format = {
    "session", join_probe, NULL, join_next, join_rewind, join_close, NULL, join_save, join_kernel, NULL};

/* Fills all tables of the joined trace, part by part. */
static int fill_tables(struct joined *j, struct weft_trace_info *info, struct weft_error *err)
{
	size_t streams = 0, sites = 0, modules = 0;
	for (size_t i = 0; i < j->count; i++) {
		const struct weft_trace_info *part_info = &j->parts[i].trace->info;
		streams += part_info->stream_count;
		sites += part_info->site_count;
		modules += part_info->module_count;
	}
	if (streams > MAX_STREAMS || sites >= WEFT_NO_SITE)
		return weft_error_set(err, WEFT_ETOOBIG, "too many threads or sites for one trace");
	j->streams = calloc(streams + 1, sizeof *j->streams);
	j->sites = calloc(sites + 1, sizeof *j->sites);
	j->modules = calloc(modules + 1, sizeof *j->modules);
	if (!j->streams || !j->sites || !j->modules)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	for (size_t i = 0; i < j->count; i++) {
		struct part *part = &j->parts[i];
		const struct weft_trace_info *part_info = &part->trace->info;
		part->stream_base = (uint16_t)info->stream_count;
		part->site_base = (uint32_t)info->site_count;
		for (size_t s = 0; s < part_info->stream_count; s++) {
			struct weft_stream_info *stream = &j->streams[info->stream_count++];
			*stream = part_info->streams[s];
			stream->part = (uint32_t)i;
			stream->host = (uint16_t)part->clock;
			if (weft_str_equal(stream->name, part->trace->info.process))
				stream->name = (struct weft_str){part->name, (uint32_t)strlen(part->name)};
			else if (stream->name.len && !prefix_process_name(part, &stream->name))
				return weft_error_set(err, WEFT_ENOMEM, "out of memory");
		}
		for (size_t s = 0; s < part_info->site_count; s++) {
			struct weft_site *site = &j->sites[info->site_count++];
			*site = part_info->sites[s];
			if (site->module)
				site->module = &j->modules[info->module_count + (size_t)(site->module - part_info->modules)];
		}
		for (size_t m = 0; m < part_info->module_count; m++)
			j->modules[info->module_count++] = part_info->modules[m];
	}
	info->streams = j->streams;
	info->sites = j->sites;
	info->modules = j->modules;
	return WEFT_OK;
}

/* Puts the samples of all parts together. */
static int fill_profile(struct joined *j, struct weft_profile *out, struct weft_error *err)
{
	size_t stacks = 0, samples = 0;
	for (size_t i = 0; i < j->count; i++) {
		stacks += j->parts[i].trace->info.profile.stack_count;
		samples += j->parts[i].trace->info.profile.sample_count;
	}
	j->stacks = calloc(stacks + 1, sizeof *j->stacks);
	j->samples = calloc(samples + 1, sizeof *j->samples);
	if (!j->stacks || !j->samples || stacks >= WEFT_NO_STACK)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	for (size_t i = 0; i < j->count; i++) {
		const struct part *part = &j->parts[i];
		const struct weft_profile *own = &part->trace->info.profile;
		const uint32_t base = (uint32_t)out->stack_count;
		for (size_t s = 0; s < own->stack_count; s++)
			j->stacks[out->stack_count++] = (struct weft_profile_stack){.site = part->site_base + own->stacks[s].site,
			    .caller = own->stacks[s].caller == WEFT_NO_STACK ? WEFT_NO_STACK : base + own->stacks[s].caller};
		for (size_t s = 0; s < own->sample_count; s++)
			j->samples[out->sample_count++] =
			    (struct weft_profile_sample){.time_ns = convert_time(j, part, own->samples[s].time_ns),
				.tid = own->samples[s].tid,
				.stack = base + own->samples[s].stack,
				.part = (uint32_t)i};
		out->period_ns = weft_max_ns(out->period_ns, own->period_ns);
		out->lost += own->lost;
		out->way = own->way > out->way ? own->way : out->way;
		out->why = out->why.len ? out->why : own->why;
	}
	out->stacks = j->stacks;
	out->samples = j->samples;
	return WEFT_OK;
}

/* Puts the allocations of all parts together. */
static int fill_memory(struct joined *j, struct weft_memory *out, struct weft_error *err)
{
	size_t stacks = 0, allocations = 0;
	for (size_t i = 0; i < j->count; i++) {
		stacks += j->parts[i].trace->info.memory.stack_count;
		allocations += j->parts[i].trace->info.memory.allocation_count;
	}
	j->memory_stacks = calloc(stacks + 1, sizeof *j->memory_stacks);
	j->allocations = calloc(allocations + 1, sizeof *j->allocations);
	if (!j->memory_stacks || !j->allocations || stacks >= WEFT_NO_STACK)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	for (size_t i = 0; i < j->count; i++) {
		const struct part *part = &j->parts[i];
		const struct weft_memory *own = &part->trace->info.memory;
		const uint32_t base = (uint32_t)out->stack_count;
		for (size_t s = 0; s < own->stack_count; s++) {
			struct weft_profile_stack *stack = &j->memory_stacks[out->stack_count++];
			*stack = own->stacks[s];
			stack->site += stack->site == WEFT_NO_SITE ? 0 : part->site_base;
			stack->caller += stack->caller == WEFT_NO_STACK ? 0 : base;
		}
		for (size_t a = 0; a < own->allocation_count; a++) {
			struct weft_allocation *allocation = &j->allocations[out->allocation_count++];
			*allocation = own->allocations[a];
			allocation->time_ns = convert_time(j, part, allocation->time_ns);
			if (allocation->freed_ns != INT64_MAX)
				allocation->freed_ns = convert_time(j, part, allocation->freed_ns);
			if (!renumber_id(j, part, &allocation->promise))
				allocation->promise = WEFT_SYSTEM_ID;
			allocation->stack += allocation->stack == WEFT_NO_STACK ? 0 : base;
		}
		out->period_bytes = own->period_bytes > out->period_bytes ? own->period_bytes : out->period_bytes;
		out->lost += own->lost;
		out->misses_ends |= own->misses_ends;
	}
	out->stacks = j->memory_stacks;
	out->allocations = j->allocations;
	return WEFT_OK;
}

/* Combines the properties of the parts; the joined trace ends when its last part ends. */
static bool fill_info(struct joined *j, const struct weft_trace_info *first, struct weft_trace_info *info)
{
	info->host = first->host;
	info->clock_origin_ns = first->clock_origin_ns;
	info->has_origin = first->has_origin;
	info->parts = j->part_infos;
	info->part_count = j->count;
	for (size_t i = 0; i < j->count; i++) {
		const struct weft_trace_info *part_info = &j->parts[i].trace->info;
		int64_t until_ns = part_info->until_ns ? convert_time(j, &j->parts[i], part_info->until_ns) : 0;
		info->unfinished |= part_info->unfinished;
		info->is_stopped |= part_info->is_stopped;
		info->is_seen_once = part_info->is_seen_once && (i == 0 || info->is_seen_once);
		info->seen_wall_ns = i == 0 ? part_info->seen_wall_ns : info->seen_wall_ns;
		info->wrapped |= part_info->wrapped;
		info->has_missing_names |= part_info->has_missing_names;
		info->lost_no_stream += part_info->lost_no_stream;
		info->until_ns = until_ns > info->until_ns ? until_ns : info->until_ns;
		j->part_infos[i].process = part_info->process;
		j->part_infos[i].host = part_info->host;
		j->part_infos[i].name = j->parts[i].name;
		j->part_infos[i].uuid = part_info->uuid;
		j->part_infos[i].pid = part_info->pid;
		j->part_infos[i].unfinished = part_info->unfinished;
		j->part_infos[i].is_stopped = part_info->is_stopped;
		j->part_infos[i].has_died = part_info->has_died;
		j->part_infos[i].wrapped = part_info->wrapped;
		j->part_infos[i].lost_no_stream = part_info->lost_no_stream;
	}
	int length = asprintf(&j->process, "%s and %zu more", j->parts[0].name, j->count - 1);
	if (length < 0) {
		j->process = NULL;
		return false;
	}
	info->process = (struct weft_str){j->process, (uint32_t)length};
	return true;
}

/* Returns the host of a part.  A part without a host name is assumed to be on the host of the first part. */
static struct weft_str get_host(struct weft_trace *const *parts, size_t i)
{
	return parts[i]->info.host.len ? parts[i]->info.host : parts[0]->info.host;
}

static bool have_same_clock(const struct weft_trace *a, const struct weft_trace *b)
{
	return a->boot.len && weft_str_equal(a->boot, b->boot) && a->counter.len && weft_str_equal(a->counter, b->counter) &&
	       a->clock_hz && b->clock_hz;
}

/* Aligns the clock of a part with the clock of another part of its host.  Returns NULL, or the reason why the clocks cannot be
 * aligned. */
static const char *align_clock(struct joined *j, size_t i, size_t to)
{
	const struct weft_trace *trace = j->parts[i].trace, *first = j->parts[to].trace;
	struct part *part = &j->parts[i];
	part->rate = 1;
	j->part_infos[i].is_same_clock = i == 0 || (to == 0 && have_same_clock(trace, first));
	if (i == to || have_same_clock(trace, first)) {
		part->rate = i != to ? (double)trace->clock_hz / (double)first->clock_hz : 1;
		return NULL;
	}
	if (to != 0)
		return "the clock of this trace differs from that of the first process of its host";
	return !trace->info.has_origin || !first->info.has_origin
		   ? "this trace or the first one does not record the wall-clock time"
	       : __builtin_sub_overflow(trace->info.clock_origin_ns, first->info.clock_origin_ns, &part->offset_ns)
		   ? "the clock origin of this trace is too far from that of the first trace"
		   : NULL;
}

static uint32_t find_first_of_host(struct weft_trace *const *parts, size_t i)
{
	uint32_t first = 0;
	while (!weft_str_equal(get_host(parts, first), get_host(parts, i)))
		first++;
	return first;
}

/* Aligns the clocks of several hosts with the first clock, by the messages between the hosts. */
static int sync_hosts(struct joined *j, struct weft_trace *const *parts, size_t clock_count, struct weft_error *err)
{
	uint32_t *clock_of = calloc(j->count, sizeof *clock_of), *get_host = calloc(j->count, sizeof *get_host);
	double *rates = calloc(j->count, sizeof *rates);
	const bool has_memory = clock_of && get_host && rates;
	int status = has_memory ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "out of memory");
	for (size_t i = 0; i < j->count && has_memory; i++) {
		clock_of[i] = j->parts[i].clock;
		get_host[i] = find_first_of_host(parts, i);
		rates[i] = j->parts[i].rate;
	}
	if (status == WEFT_OK)
		status = weft_clock_sync_compute(&j->clock_sync, parts, j->count, clock_of, get_host, rates, clock_count, err);
	free(clock_of);
	free(get_host);
	free(rates);
	for (size_t i = 0; i < j->count && status == WEFT_OK; i++) {
		j->part_infos[i].bound_ns = j->clock_sync.bounds_ns[j->parts[i].clock];
		if (j->parts[i].clock) {
			j->part_infos[i].clock_sync = &j->clock_sync;
			j->part_infos[i].clock = j->parts[i].clock;
		}
		if (j->part_infos[i].bound_ns == INT64_MAX)
			status = weft_error_set(err, WEFT_EINVAL,
			    "%.40s is on another host and cannot be joined: no connection has both ends recorded and "
			    "bytes in both directions%s",
			    parts[i]->source.name,
			    j->clock_sync.contradictory ? "; on one connection, more bytes were read than written"
			    : j->clock_sync.renamed     ? " (NAT?)"
							: "");
	}
	return status;
}

/* Returns the start of a process name that is shown in front of texts. */
static struct weft_str shown_name(const struct part *part)
{
	struct weft_str name = part->trace->info.process;
	name.len = name.len < MAX_NAME_BYTES ? name.len : MAX_NAME_BYTES;
	return name;
}

/* Makes the name of a part for the texts of its process.  The process name gets the pid if another process of its host has the
 * same name, and the host if there are several hosts. */
static void name_part(struct joined *j, size_t i, bool has_hosts)
{
	const struct weft_trace_info *info = &j->parts[i].trace->info;
	int length = (int)shown_name(&j->parts[i]).len;
	bool is_alone = true;
	for (size_t other = 0; other < j->count && is_alone; other++)
		is_alone = other == i || !weft_str_equal(shown_name(&j->parts[other]), shown_name(&j->parts[i])) ||
			   !weft_str_equal(j->parts[other].trace->info.host, info->host);
	const char *name = length ? info->process.ptr : "";
	char *out = j->parts[i].name;
	size_t size = sizeof j->parts[i].name;
	if (is_alone)
		snprintf(out, size, "%.*s", length, name);
	else
		snprintf(out, size, "%.*s-%" PRIu64, length, name, info->pid);
	const size_t used = strlen(out);
	if (has_hosts && info->host.len)
		snprintf(out + used, size - used, "@%.*s", info->host.len < MAX_HOST_BYTES ? (int)info->host.len : MAX_HOST_BYTES,
		    info->host.ptr);
}

static int add_parts(struct joined *j, struct weft_trace *const *parts, size_t count, struct weft_error *err)
{
	j->parts = calloc(count, sizeof *j->parts);
	j->part_infos = calloc(count, sizeof *j->part_infos);
	for (j->leaves = 1; j->leaves < count;)
		j->leaves *= 2;
	j->turns = calloc(j->leaves, sizeof *j->turns);
	if (!j->parts || !j->part_infos || !j->turns)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	j->count = count;
	j->stride = weft_part_stride(count);
	for (size_t i = 0; i < count; i++)
		j->parts[i].trace = parts[i];
	size_t clocks = 0;
	bool has_hosts = false;
	for (size_t i = 0; i < count; i++) {
		size_t first = 0;
		/* Containers of one machine have different host names and the same clock. */
		while (!weft_str_equal(get_host(parts, first), get_host(parts, i)) && !have_same_clock(parts[first], parts[i]))
			first++;
		has_hosts |= !weft_str_equal(get_host(parts, 0), get_host(parts, i));
		j->parts[i].clock = (uint32_t)(first == i ? clocks++ : j->parts[first].clock);
		const char *why = align_clock(j, i, first);
		if (why)
			return weft_error_set(
			    err, WEFT_EINVAL, "%s cannot be joined with others: %s", parts[i]->source.name, why);
	}
	for (size_t i = 0; i < count; i++)
		name_part(j, i, has_hosts);
	return clocks > 1 || has_hosts ? sync_hosts(j, parts, clocks, err) : WEFT_OK;
}

int weft_trace_join(
    struct weft_trace **out, struct weft_trace *const *parts, size_t count, const char *name, struct weft_error *err)
{
	if (count < 1 || count > MAX_PARTS)
		return weft_error_set(err, WEFT_EINVAL, "%zu traces cannot be joined", count);
	struct weft_trace *trace = calloc(1, sizeof *trace);
	struct weft_skipped *skipped = calloc(WEFT_MAX_SKIPPED, sizeof *skipped);
	struct joined *j = calloc(1, sizeof *j);
	char *copy = strdup(name);
	int status = WEFT_ENOMEM;
	if (!trace || !skipped || !j || !copy)
		weft_error_set(err, WEFT_ENOMEM, "out of memory");
	else if ((status = add_parts(j, parts, count, err)) == WEFT_OK)
		status = fill_tables(j, &trace->info, err);
	if (status == WEFT_OK)
		status = fill_profile(j, &trace->info.profile, err);
	if (status == WEFT_OK)
		status = fill_memory(j, &trace->info.memory, err);
	if (status == WEFT_OK && !fill_info(j, &parts[0]->info, &trace->info))
		status = weft_error_set(err, WEFT_ENOMEM, "out of memory");
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
	*out = trace;
	return WEFT_OK;
}

int64_t weft_part_time(const struct weft_trace *joined, size_t number, int64_t own_ns)
{
	const struct joined *j = joined->state;
	return convert_time(j, &j->parts[number], own_ns);
}

/* The clocks have almost the same rate, so each step divides the error by about a thousand. */
int64_t weft_part_own_time(const struct weft_trace *joined, size_t number, int64_t time_ns)
{
	int64_t own_ns = time_ns;
	for (int i = 0; i < 8; i++)
		own_ns = (int64_t)((uint64_t)own_ns + (uint64_t)time_ns - (uint64_t)weft_part_time(joined, number, own_ns));
	return own_ns;
}

void weft_part_bounds(const struct weft_part *part, int64_t time_ns, int64_t *low, int64_t *high)
{
	*low = *high = time_ns;
	if (!part->clock_sync)
		return;
	int64_t own_ns = time_ns;
	for (int i = 0; i < 8; i++)
		own_ns = (int64_t)((uint64_t)own_ns + (uint64_t)time_ns -
				   (uint64_t)weft_clock_sync_time(part->clock_sync, part->clock, own_ns, NULL, NULL));
	weft_clock_sync_time(part->clock_sync, part->clock, own_ns, low, high);
}

const struct weft_clock_sync *weft_trace_clock_sync(const struct weft_trace *trace)
{
	const struct joined *j = trace->format == &format ? trace->state : NULL;
	return j && j->clock_sync.clock_count ? &j->clock_sync : NULL;
}

struct weft_trace *weft_trace_part(const struct weft_trace *trace, size_t number)
{
	const struct joined *j = trace->format == &format ? trace->state : NULL;
	return j && number < j->count ? j->parts[number].trace : NULL;
}

/* Opens a part from the blobs [begin, end) and removes the folder from their names; takes these blobs from *source. */
static int open_folder(struct weft_trace **out, struct weft_source *source, size_t begin, size_t end, struct weft_error *err)
{
	struct weft_source part = {.is_dir = true, .file = -1, .blobs = calloc(end - begin, sizeof *part.blobs)};
	const char *first = source->blobs[begin].name;
	const size_t folder = (size_t)(strrchr(first, '/') + 1 - first);
	if (!part.blobs || asprintf(&part.name, "%s/%.*s", source->name, (int)folder - 1, first) < 0) {
		free(part.blobs);
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	for (size_t i = begin; i < end; i++) {
		char *name = source->blobs[i].name;
		memmove(name, name + folder, strlen(name + folder) + 1);
		if (strchr(name, '/')) /* in a subfolder */
			continue;
		part.blobs[part.blob_count++] = source->blobs[i];
		source->blobs[i] = (struct weft_blob){.name = NULL};
	}
	part.is_dir = part.blob_count > 1 || strcmp(part.blobs[0].name, WEFT_PART_FILE) != 0;
	return weft__trace_from_source(out, &part, err);
}

static size_t end_of_folder(const struct weft_source *source, size_t begin)
{
	const char *first = source->blobs[begin].name, *slash = strrchr(first, '/');
	size_t end = begin + 1;
	while (slash && end < source->blob_count && strncmp(first, source->blobs[end].name, (size_t)(slash + 1 - first)) == 0)
		end++;
	return slash ? end : begin;
}

int weft__trace_from_folders(struct weft_trace **out, struct weft_source *source, struct weft_error *err)
{
	struct weft_trace **parts = calloc(source->blob_count, sizeof *parts);
	size_t count = 0;
	int status = WEFT_OK;
	if (!parts) {
		weft_source_close(source);
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	for (size_t begin = 0; begin < source->blob_count && status == WEFT_OK;) {
		/* the blobs are sorted by name, so the files of a folder are adjacent */
		const size_t end = end_of_folder(source, begin);
		struct weft_trace *part = NULL;
		if (end > begin)
			status = open_folder(&part, source, begin, end, err);
		if (part)
			parts[count++] = part;
		begin = end > begin ? end : begin + 1;
	}
	if (status == WEFT_OK)
		status = weft_trace_join(out, parts, count, source->name, err);
	if (status == WEFT_OK) { /* the memory that the bytes of all parts are in */
		(*out)->source.archive = source->archive;
		source->archive = (struct weft_blob){0};
	}
	for (size_t i = 0; status < 0 && i < count; i++)
		weft_trace_close(parts[i]);
	free(parts);
	weft_source_close(source);
	return status;
}

bool weft_trace_is_same(const struct weft_trace *a, const struct weft_trace *b)
{
	return a == b || (a->info.uuid && b->info.uuid && !memcmp(a->info.uuid, b->info.uuid, 16));
}
