/* metrics.c: counts the events that a follower reads (metrics.h).  SPDX-License-Identifier: ISC */
#include "analysis/queries/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/index/label_patterns.h"
#include "analysis/index/names.h"
#include "analysis/queries/metrics_private.h"
#include "base/duration.h"
#include "base/hash.h"

enum { MAX_KNOWN_FINDINGS = 1024 };
#define FORGET_NS INT64_C(600000000000) /* a finding that was not found for this long counts as a new finding */
#define OTHER "(other)"

/* ---- Histograms ---- */

static void add_to_histogram(struct weft__histogram *h, int64_t ns)
{
#define BUCKET_LIMIT(limit, text) INT64_C(limit),
	static const int64_t limits[] = {WEFT_METRICS_BUCKETS(BUCKET_LIMIT)};
#undef BUCKET_LIMIT
	size_t bucket = 0;
	const int64_t length_ns = weft_max_ns(ns, 0);
	while (bucket < sizeof limits / sizeof *limits && length_ns > limits[bucket])
		bucket++;
	h->buckets[bucket]++;
	h->count++;
	h->sum_ns += (uint64_t)length_ns;
}

/* ---- Names ---- */

/* Returns whether promises of the kind last for ever by nature, such as threads, handles and locks. */
static bool is_permanent(uint16_t kind)
{
	enum { HELD = WEFT_TRAIT_CONDITION | WEFT_TRAIT_LOCK | WEFT_TRAIT_QUEUE | WEFT_TRAIT_POOL };
	const uint32_t traits = weft_kind_traits(kind);
	return traits & WEFT_TRAIT_ENDLESS && traits & (HELD | WEFT_TRAIT_THREAD | WEFT_TRAIT_LOOP | WEFT_TRAIT_OUTSIDE);
}

static const char *get_kind_name(uint16_t kind)
{
	switch (kind) {
#define KIND(NAME, value, name, traits)                                                                                          \
	case value: return name;
		WEFT_KINDS(KIND)
#undef KIND
	default: return "unlisted";
	}
}

/* Adds a name.  Adds a name and returns its number; WEFT_INTERN_FAILED when out of memory. */
static uint32_t add_name(struct weft_metrics *m, const char *key, uint32_t key_bytes, uint16_t kind)
{
	char *own = malloc(key_bytes + 1u), **slot = own ? weft_vec_push(&m->key_texts) : NULL;
	if (!slot) {
		free(own);
		return WEFT_INTERN_FAILED;
	}
	*slot = memcpy(own, key, key_bytes);
	own[key_bytes] = '\0';
	if (!weft_vec_reserve(&m->names, 1))
		return WEFT_INTERN_FAILED;
	const uint32_t number = weft_intern(&m->keys, (struct weft_str){own, key_bytes});
	if (number == WEFT_INTERN_FAILED)
		return number;
	m->names.items[m->names.count++] = (struct weft__metrics_name){.text = own + sizeof kind,
	    .kind = get_kind_name(kind),
	    .is_permanent = is_permanent(kind),
	    .oldest_start_ns = INT64_MAX};
	return number;
}

/* Returns whether one more name of the kind is allowed and, if so, counts it. */
static bool take_place(struct weft_metrics *m, uint16_t kind)
{
	size_t *used = weft_kind_has(kind, WEFT_TRAIT_REQUEST) ? &m->request_names : &m->other_names;
	if (*used >= WEFT_METRICS_NAMES)
		return false;
	++*used;
	return true;
}

/* Key of a name: the bytes of the kind, then the name. */
struct name_key {
	char bytes[sizeof(uint16_t) + WEFT__METRICS_NAME_BYTES];
	uint32_t length;
};

static struct name_key make_key(uint16_t kind, const char *text)
{
	struct name_key key;
	memcpy(key.bytes, &kind, sizeof kind);
	const size_t length = strnlen(text, WEFT__METRICS_NAME_BYTES - 1);
	memcpy(key.bytes + sizeof kind, text, length);
	key.length = (uint32_t)(sizeof kind + length);
	return key;
}

/* Returns the number of a name, which is added if it is new; WEFT_INTERN_FAILED when out of memory. */
static uint32_t get_name(struct weft_metrics *m, const struct name_key *key, uint16_t kind)
{
	const uint32_t known = weft_intern_find(&m->keys, (struct weft_str){key->bytes, key->length});
	return known == WEFT_INTERN_FAILED ? add_name(m, key->bytes, key->length, kind) : known;
}

/* Returns the number of the name of a promise; WEFT_INTERN_FAILED when out of memory. is_end says that the promise is counted,
 * not only looked up. */
static uint32_t find_name(struct weft_metrics *m, uint16_t kind, struct weft_str label, bool is_end)
{
	char pattern[WEFT__METRICS_NAME_BYTES], text[WEFT__METRICS_NAME_BYTES] = "";
	if (label.len && !is_permanent(kind)) {
		weft__label_pattern(pattern, sizeof pattern, label);
		weft_name_sanitize((struct weft_str){pattern, (uint32_t)strlen(pattern)}, text, sizeof text);
	}
	struct name_key key = make_key(kind, text);
	const bool is_known = weft_intern_find(&m->keys, (struct weft_str){key.bytes, key.length}) != WEFT_INTERN_FAILED;
	if (!is_known && *text && !take_place(m, kind)) {
		m->cut += is_end;
		key = make_key(kind, OTHER);
	}
	return get_name(m, &key, kind);
}

/* ---- Events that the follower reads ---- */

static bool add_end(void *ctx, const struct weft_ended_promise *promise)
{
	struct weft_metrics *m = ctx;
	const uint32_t number = find_name(m, promise->kind, promise->label, true);
	if (number == WEFT_INTERN_FAILED)
		return false;
	struct weft__metrics_name *name = &m->names.items[number];
	name->results[promise->op == WEFT_OP_FAIL     ? WEFT__METRICS_FAILED
		      : promise->op == WEFT_OP_CANCEL ? WEFT__METRICS_CANCELLED
						      : WEFT__METRICS_RESOLVED]++;
	add_to_histogram(&name->durations, promise->end_ns - promise->start_ns);
	return true;
}

static struct weft__metrics_thread *get_thread(struct weft_metrics *m, uint16_t stream)
{
	while (m->threads.count <= stream) {
		struct weft__metrics_thread *fresh = weft_vec_push(&m->threads);
		if (!fresh)
			return NULL;
		*fresh = (struct weft__metrics_thread){.busy_ns = 0};
	}
	return &m->threads.items[stream];
}

/* A run counts as a delay of its event loop, as in the rule "stall".  In a program without a loop each run counts, except the
 * time in which a thread sets up the program. */
static bool add_run(void *ctx, const struct weft_ended_run *run)
{
	struct weft_metrics *m = ctx;
	struct weft__metrics_thread *thread = get_thread(m, run->stream);
	const int64_t length_ns = run->end_ns - run->start_ns;
	if (!thread)
		return false;
	m->has_loop |= run->is_loop_thread;
	thread->has_loop |= run->is_loop_thread;
	if (run->is_sleep || length_ns < 0)
		return true;
	if (!run->is_pause)
		thread->busy_ns += (uint64_t)length_ns;
	const bool sets_up = !run->is_pause && !run->has_slept && weft_kind_has(run->kind, WEFT_TRAIT_THREAD);
	if (!sets_up && (thread->has_loop || !m->has_loop))
		add_to_histogram(&m->delays, length_ns);
	return true;
}

/* ---- Findings ---- */

/* Returns whether a finding of the kind is about an interval, so that another such finding may follow; findings of other kinds
 * are about a lasting state. */
static bool is_momentary(enum weft_finding_kind kind)
{
	switch (kind) {
	case WEFT_FINDING_TWICE:
	case WEFT_FINDING_MISUSED:
	case WEFT_FINDING_FAILURE:
	case WEFT_FINDING_STALL:
	case WEFT_FINDING_EXHAUSTED:
	case WEFT_FINDING_STARVATION:
	case WEFT_FINDING_SEQUENCE:
	case WEFT_FINDING_WASTED: return true;
	default: return false;
	}
}

static void forget_findings(struct weft_metrics *m, int64_t now_utc_ns)
{
	size_t kept = 0;
	for (size_t i = 0; i < m->known_findings.count; i++)
		if (now_utc_ns - m->known_findings.items[i].seen_utc_ns < FORGET_NS)
			m->known_findings.items[kept++] = m->known_findings.items[i];
	m->known_findings.count = kept;
}

/* Returns the stored data about a finding; a new finding has the time INT64_MIN.  Returns NULL when out of memory, or if there
 * are too many findings. */
static struct weft__metrics_finding *get_known(struct weft_metrics *m, uint64_t key)
{
	for (size_t i = 0; i < m->known_findings.count; i++)
		if (m->known_findings.items[i].key == key)
			return &m->known_findings.items[i];
	struct weft__metrics_finding *fresh =
	    m->known_findings.count < MAX_KNOWN_FINDINGS ? weft_vec_push(&m->known_findings) : NULL;
	if (fresh)
		*fresh = (struct weft__metrics_finding){.key = key, .newest_utc_ns = INT64_MIN};
	return fresh;
}

/* Returns a number that is equal for findings of the same kind, certainty, type and source location. */
static uint64_t get_finding_key(const struct weft_finding *f, const struct weft_model *model)
{
	char name[WEFT_NAME_BYTES], pattern[WEFT_NAME_BYTES], site[WEFT_NAME_BYTES], all[3 * WEFT_NAME_BYTES];
	weft_name_type(model, f->promise, name);
	weft__label_pattern(pattern, sizeof pattern, (struct weft_str){name, (uint32_t)strlen(name)});
	weft_name_site(model, f->promise, site);
	const int length = snprintf(all, sizeof all, "%d %d %s %s", (int)f->kind, f->sure, pattern, site);
	return weft_hash_bytes(all, (size_t)length);
}

/* Counts those of the findings merged into f that are newer than the findings that were counted before. */
static uint64_t count_new(const struct weft_finding *f, int64_t offset_ns, struct weft__metrics_finding *known)
{
	const bool is_first = known->newest_utc_ns == INT64_MIN;
	const int64_t before_ns = known->newest_utc_ns;
	uint64_t count = f->start_ns + offset_ns > before_ns;
	known->newest_utc_ns = weft_max_ns(known->newest_utc_ns, f->start_ns + offset_ns);
	for (size_t i = 0; i < f->evidence_count; i++) {
		const struct weft_evidence *e = &f->evidence[i];
		if (e->role != WEFT_EVIDENCE_LIKE || e->time_ns == WEFT_NO_TIME)
			continue;
		count += e->time_ns + offset_ns > before_ns;
		known->newest_utc_ns = weft_max_ns(known->newest_utc_ns, e->time_ns + offset_ns);
	}
	return is_first ? f->count : is_momentary(f->kind) ? count : 0;
}

void weft_metrics_add_findings(
    struct weft_metrics *m, const struct weft_findings *findings, const struct weft_model *model, int64_t now_utc_ns)
{
	const int64_t offset_ns = model->start_ns + model->trace->clock_origin_ns;
	forget_findings(m, now_utc_ns);
	for (size_t i = 0; i < findings->count; i++) {
		const struct weft_finding *f = &findings->findings[i];
		struct weft__metrics_finding *known = get_known(m, get_finding_key(f, model));
		if (!known)
			continue;
		m->findings[f->kind][f->sure] += count_new(f, offset_ns, known);
		known->seen_utc_ns = now_utc_ns;
	}
}

/* ---- Numbers of the moment ---- */

static bool add_queue(struct weft_metrics *m, uint32_t name, const struct weft_live_promise *promise)
{
	const bool has_level = promise->level >= 0 && weft_kind_has(promise->kind, WEFT_TRAIT_QUEUE | WEFT_TRAIT_POOL);
	if (!has_level)
		return true;
	for (size_t i = 0; i < m->queues.count; i++)
		if (m->queues.items[i].name == name) {
			m->queues.items[i].level += promise->level;
			m->queues.items[i].bound += weft_max_ns(promise->bound, 0);
			return true;
		}
	struct weft__metrics_queue *fresh = weft_vec_push(&m->queues);
	if (fresh)
		*fresh = (struct weft__metrics_queue){name, promise->level, weft_max_ns(promise->bound, 0)};
	return fresh;
}

static bool add_pending(void *ctx, const struct weft_live_promise *promise)
{
	struct weft_metrics *m = ctx;
	const uint32_t number = find_name(m, promise->kind, promise->label, false);
	if (number == WEFT_INTERN_FAILED)
		return false;
	struct weft__metrics_name *name = &m->names.items[number];
	name->in_flight++;
	name->oldest_start_ns = weft_min_ns(name->oldest_start_ns, promise->start_ns);
	return add_queue(m, number, promise);
}

static void update_counters(struct weft_metrics *m, const struct weft_live_state *state)
{
	size_t count;
	const struct weft_event *counters = weft_live_state_counters(state, &count);
	m->counters.count = 0;
	for (size_t i = 0; i < count && i < WEFT__METRICS_COUNTERS; i++) {
		struct weft__metrics_counter *fresh = weft_vec_push(&m->counters);
		if (!fresh)
			return;
		weft_name_sanitize(counters[i].text, fresh->name, sizeof fresh->name);
		fresh->value = counters[i].value;
	}
}

static void update_threads(struct weft_metrics *m, const struct weft_follower *follower, const struct weft_live_state *state)
{
	for (size_t i = 0; i < m->threads.count; i++) {
		struct weft__metrics_thread *thread = &m->threads.items[i];
		bool is_loop_thread = false;
		const int64_t since_ns = i < weft_live_state_stream_count(state)
					     ? weft_live_state_runs_since_ns(state, (uint16_t)i, &is_loop_thread)
					     : INT64_MAX;
		thread->has_loop |= is_loop_thread;
		const bool is_blocked = m->is_recorded && since_ns < m->now_ns && (thread->has_loop || !m->has_loop);
		thread->blocked_ns = is_blocked ? m->now_ns - since_ns : 0;
		weft_name_sanitize(weft_follower_stream_name(follower, (uint16_t)i), thread->name, sizeof thread->name);
	}
}

/* Totals of a ring get smaller when the stream of an ended thread is reused, but a counter of OpenMetrics must never fall. */
static void raise(uint64_t *number, uint64_t value)
{
	*number = value > *number ? value : *number;
}

static void update_losses(struct weft_metrics *m, const struct weft_trace_info *info)
{
	uint64_t full = 0, nested = 0;
	for (size_t i = 0; i < info->stream_count; i++) {
		full += info->streams[i].lost_full;
		nested += info->streams[i].lost_nested;
	}
	raise(&m->lost_full, full);
	raise(&m->lost_nested, nested);
	raise(&m->lost_no_stream, info->lost_no_stream);
}

void weft_metrics_update(struct weft_metrics *m, const struct weft_follower *follower, bool is_recorded, int64_t now_utc_ns)
{
	const struct weft_live_state *state = weft_follower_live_state(follower);
	struct weft_trace *trace = weft_follower_trace(follower);
	m->is_recorded = is_recorded;
	if (!state || !trace)
		return;
	const struct weft_trace_info *info = weft_trace_info(trace);
	for (size_t i = 0; i < m->names.count; i++) {
		m->names.items[i].in_flight = 0;
		m->names.items[i].oldest_start_ns = INT64_MAX;
	}
	m->is_updated = true;
	m->pid = info->pid;
	m->now_ns = info->has_origin ? now_utc_ns - info->clock_origin_ns : INT64_MIN;
	weft_name_sanitize(info->process, m->process, sizeof m->process);
	weft_name_sanitize(info->host, m->host, sizeof m->host);
	m->queues.count = 0;
	if (is_recorded)
		weft_live_state_each_pending(state, add_pending, m);
	update_counters(m, state);
	update_threads(m, follower, state);
	update_losses(m, info);
	raise(&m->events, weft_follower_all_events(follower));
	m->unread_ns = weft_follower_unread_ns(follower);
}

bool weft_metrics_is_updated(const struct weft_metrics *m)
{
	return m->is_updated;
}

/* ---- The whole ---- */

int weft_metrics_create(struct weft_metrics **out, struct weft_error *err)
{
	struct weft_metrics *m = calloc(1, sizeof *m);
	if (!m)
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	m->observer = (struct weft_live_observer){.add_end = add_end, .add_run = add_run, .ctx = m};
	m->now_ns = INT64_MIN;
	*out = m;
	return WEFT_OK;
}

void weft_metrics_destroy(struct weft_metrics *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->key_texts.count; i++)
		free(m->key_texts.items[i]);
	weft_vec_free(&m->key_texts);
	weft_vec_free(&m->names);
	weft_intern_finish(&m->keys);
	weft_vec_free(&m->threads);
	weft_vec_free(&m->queues);
	weft_vec_free(&m->counters);
	weft_vec_free(&m->known_findings);
	free(m);
}

const struct weft_live_observer *weft_metrics_observer(const struct weft_metrics *m)
{
	return &m->observer;
}
