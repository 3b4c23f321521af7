/* diff.c: aligns two runs, and tells where they part.  SPDX-License-Identifier: ISC */
#include "analysis/diff.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/explain.h"
#include "analysis/lines.h"
#include "analysis/names.h"
#include "analysis/ties.h"
#include "base/duration.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/sort.h"
#include "base/utf8.h"
#include "base/vec.h"

enum {
	TOLD = 20, /* differences of one kind that are listed; the others are counted */
	TEXT = 1024,
	ENOUGH = 20 /* lives of one sort, in each run, that a comparison of latencies needs */
};

struct run {
	const struct weft_model *m;
	struct weft_ties ties;
	uint32_t *lines;         /* by site: the same number in both runs for the same place */
	int64_t *keys;           /* by promise: aligned promises have the same key in both runs */
	int64_t *sorts;          /* by promise: promises of one sort have the same number in both runs */
	struct weft_idmap keyed; /* from a key to its promise */
};

struct differ {
	struct run runs[2];
	WEFT_VEC(struct weft_difference) found;
	size_t left_out, aligned, told;
	bool no_memory;
};

/* ---- Alignment ---- */

static uint64_t mix(uint64_t hash, uint64_t more)
{
	return weft_hash_u64(hash ^ (more + 0x9e3779b97f4a7c15u + (hash << 6)));
}

/* Uses only the length and the beginning of a text, since each promise may have the same label of a megabyte. */
static uint64_t mix_text(uint64_t hash, struct weft_str text)
{
	enum { MOST = 1024 };
	return mix(hash ^ text.len, weft_hash_bytes(text.ptr, text.len < MOST ? text.len : MOST));
}

/* A hash of what the promise is, not of its number: label, place, kind. */
static uint64_t sort_of(const struct run *run, uint32_t p)
{
	const struct weft_model *m = run->m;
	uint64_t hash = m->promises[p].kind;
	uint32_t label = weft_first_label(m, p), site = m->promises[p].site;
	if (label != WEFT_NONE)
		hash = mix_text(hash, weft_model_text(m, label));
	if (site != WEFT_NONE) {
		hash = mix_text(hash, m->trace->sites[site].file);
		hash = mix_text(hash, m->trace->sites[site].function);
		hash = mix(hash, run->lines[site]);
		hash = mix(hash, m->trace->sites[site].offset);
	}
	return hash;
}

static bool align(struct run *run)
{
	const struct weft_model *m = run->m;
	struct weft_idmap counts = {0};
	run->keys = malloc(m->promise_count * sizeof *run->keys);
	run->sorts = malloc(m->promise_count * sizeof *run->sorts);
	bool ok = run->keys && run->sorts;
	for (uint32_t p = 0; ok && p < m->promise_count; p++) {
		uint64_t sort = sort_of(run, p);
		uint64_t path = p == WEFT_SYSTEM ? sort : mix(sort, (uint64_t)run->keys[m->promises[p].created_by]);
		uint32_t count = weft_idmap_get(&counts, (int64_t)path);
		count = count == WEFT_IDMAP_NONE ? 0 : count + 1;
		run->sorts[p] = (int64_t)sort;
		run->keys[p] = (int64_t)mix(path, count);
		ok = weft_idmap_set(&counts, (int64_t)path, count) && weft_idmap_set(&run->keyed, run->keys[p], p);
	}
	weft_idmap_finish(&counts);
	return ok;
}

/* ---- Saying it ---- */

__attribute__((format(printf, 7, 8))) static void tell(struct differ *d, enum weft_difference_kind kind, uint32_t a, uint32_t b,
    int64_t a_time_ns, int64_t b_time_ns, const char *format, ...)
{
	if (d->found.count && d->found.items[d->found.count - 1].kind != kind)
		d->told = 0;
	if (d->told == TOLD) {
		d->left_out++;
		return;
	}
	char raw[TEXT], line[3 * TEXT];
	va_list args;
	va_start(args, format);
	vsnprintf(raw, sizeof raw, format, args);
	va_end(args);
	/* The text may have any bytes in it, from the name of a counter, and may be cut in the middle of a character. */
	weft_utf8_copy(line, sizeof line, (struct weft_str){raw, (uint32_t)strlen(raw)});
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	struct weft_difference *added = weft_vec_push(&d->found);
	char *text = malloc(strlen(line) + 1);
	if (!added || !text) {
		d->found.count -= added != NULL;
		free(text);
		d->no_memory = true;
		return;
	}
	strcpy(text, line);
	*added = (struct weft_difference){kind, a, b, a_time_ns, b_time_ns, text};
	d->told++;
}

static const char *span(char buf[WEFT_DURATION_BYTES], int64_t ns)
{
	weft_duration_format(buf, WEFT_DURATION_BYTES, ns);
	return buf;
}

/* ---- Findings ---- */

/* The same number for findings of one kind about promises of one sort. */
static int64_t finding_key(const struct run *run, const struct weft_finding *finding)
{
	return (int64_t)mix((uint64_t)run->sorts[finding->promise], finding->kind);
}

/* Tells of alarms about one run that there are not about the other. */
static void compare_findings(struct differ *d)
{
	struct weft_findings *findings[2] = {NULL, NULL};
	struct weft_idmap keys[2] = {{0}, {0}};
	for (int r = 0; r < 2; r++) {
		d->no_memory |= weft_explain(&findings[r], d->runs[r].m, NULL, NULL) < 0;
		for (size_t i = 0; !d->no_memory && i < findings[r]->count; i++)
			d->no_memory |= !weft_idmap_set(&keys[r], finding_key(&d->runs[r], &findings[r]->findings[i]), 0);
	}
	for (int r = 0; !d->no_memory && r < 2; r++)
		for (size_t i = 0; i < findings[r]->count; i++) {
			const struct weft_finding *one = &findings[r]->findings[i];
			if (one->severity != WEFT_SEVERITY_ALARM ||
			    weft_idmap_get(&keys[1 - r], finding_key(&d->runs[r], one)) != WEFT_IDMAP_NONE)
				continue;
			uint32_t of[2] = {WEFT_NONE, WEFT_NONE};
			int64_t time_ns[2] = {-1, -1};
			of[r] = one->promise;
			time_ns[r] = one->start_ns;
			tell(d, WEFT_DIFFERENCE_FINDING, of[0], of[1], time_ns[0], time_ns[1],
			    "only in the %s run there is a %s%s: %s", r == 0 ? "first" : "second", weft_finding_name(one->kind),
			    one->sure ? "" : " (not certain)", one->title);
		}
	for (int r = 0; r < 2; r++) {
		weft_findings_destroy(findings[r]);
		weft_idmap_finish(&keys[r]);
	}
}

/* ---- Order ---- */

/* The first action from link l on, a link that resolves, fails or signals a promise; link_count if there is none. */
static size_t next_action(const struct weft_model *m, size_t l)
{
	while (l < m->link_count && m->links[l].kind != WEFT_LINK_RESOLVE && m->links[l].kind != WEFT_LINK_SIGNAL)
		l++;
	return l;
}

static bool is_failing(const struct weft_model *m, const struct weft_link *link)
{
	return m->promises[link->to].end == WEFT_END_FAILED && m->promises[link->to].end_ns == link->time_ns;
}

static bool same_action(const struct differ *d, const struct weft_link *a, const struct weft_link *b)
{
	return a->kind == b->kind && d->runs[0].keys[a->from] == d->runs[1].keys[b->from] &&
	       d->runs[0].keys[a->to] == d->runs[1].keys[b->to] &&
	       (a->kind != WEFT_LINK_RESOLVE || is_failing(d->runs[0].m, a) == is_failing(d->runs[1].m, b));
}

enum { ACTION = 3 * WEFT_NAME_BYTES };

static const char *action_text(const struct weft_model *m, const struct weft_link *link, char buf[ACTION])
{
	char from[WEFT_NAME_BYTES], to[WEFT_NAME_BYTES];
	const char *does = link->kind == WEFT_LINK_SIGNAL ? "signals" : is_failing(m, link) ? "fails" : "resolves";
	snprintf(buf, ACTION, "%s %s %s", weft_name_promise(m, link->from, from), does, weft_name_promise(m, link->to, to));
	return buf;
}

/* When run `in`, from link `from` on, does the same action to the same promise, whoever does it there; -1: never. */
static int64_t later(const struct differ *d, int in, const struct weft_link *action, size_t from)
{
	const struct weft_model *m = d->runs[in].m;
	for (size_t l = next_action(m, from); l < m->link_count; l = next_action(m, l + 1))
		if (m->links[l].kind == action->kind && d->runs[in].keys[m->links[l].to] == d->runs[1 - in].keys[action->to])
			return m->links[l].time_ns;
	return -1;
}

static void compare_order(struct differ *d)
{
	const struct weft_model *m[2] = {d->runs[0].m, d->runs[1].m};
	size_t l[2] = {next_action(m[0], 0), next_action(m[1], 0)}, same = 0;
	const struct weft_link *last[2] = {NULL, NULL};
	while (l[0] < m[0]->link_count && l[1] < m[1]->link_count && same_action(d, &m[0]->links[l[0]], &m[1]->links[l[1]])) {
		for (int r = 0; r < 2; r++) {
			last[r] = &m[r]->links[l[r]];
			l[r] = next_action(m[r], l[r] + 1);
		}
		same++;
	}
	bool over[2] = {l[0] == m[0]->link_count, l[1] == m[1]->link_count};
	if (over[0] && over[1])
		return;
	char action[2][ACTION], when[2][80] = {"", ""}, before[ACTION], gap[WEFT_DURATION_BYTES];
	int64_t time_ns[2] = {-1, -1};
	for (int r = 0; r < 2; r++) {
		if (over[r]) {
			snprintf(action[r], ACTION, "nothing more happens");
			continue;
		}
		const struct weft_link *link = &m[r]->links[l[r]];
		time_ns[r] = link->time_ns;
		action_text(m[r], link, action[r]);
		if (link->kind == WEFT_LINK_SIGNAL)
			continue; /* to wait at a condition is a signal too */
		int64_t other_ns = later(d, 1 - r, link, l[1 - r]);
		if (other_ns < 0)
			snprintf(when[r], sizeof when[r], ", which the other run never does");
		else
			snprintf(when[r], sizeof when[r], ", which the other run does %s later",
			    span(gap, other_ns - (over[1 - r] ? other_ns : m[1 - r]->links[l[1 - r]].time_ns)));
	}
	char first[48] = "first action is";
	if (same > 1)
		snprintf(first, sizeof first, "first %zu actions are", same);
	if (same)
		tell(d, WEFT_DIFFERENCE_ORDER, over[0] ? WEFT_NONE : m[0]->links[l[0]].to,
		    over[1] ? WEFT_NONE : m[1]->links[l[1]].to, time_ns[0], time_ns[1],
		    "the %s the same%s %s; then, in the first run, %s%s; in the second %s%s", first,
		    same > 1 ? ", the last:" : ":", action_text(m[0], last[0], before), action[0], when[0], action[1], when[1]);
	else
		tell(d, WEFT_DIFFERENCE_ORDER, over[0] ? WEFT_NONE : m[0]->links[l[0]].to,
		    over[1] ? WEFT_NONE : m[1]->links[l[1]].to, time_ns[0], time_ns[1],
		    "from the beginning: in the first run %s%s; in the second %s%s", action[0], when[0], action[1], when[1]);
}

/* ---- Ends ---- */

static const char *end_text(const struct run *run, uint32_t p, char buf[TEXT / 2])
{
	const struct weft_promise *last = &run->m->promises[run->ties.now[p]];
	char life[WEFT_DURATION_BYTES], text[160];
	if (run->ties.ended_ns[p] == WEFT_NEVER)
		return last->flags & WEFT_PROMISE_NEVER_RESOLVED ? "never resolves, though it should" : "does not end";
	span(life, last->end_ns - run->m->promises[p].start_ns);
	if (last->end == WEFT_END_FAILED)
		snprintf(buf, TEXT / 2, "fails after %s: %s", life, weft_name_text(run->m, last->failure, text, sizeof text));
	else
		snprintf(buf, TEXT / 2, "is resolved after %s", life);
	return buf;
}

/* 0: resolved, 1: failed, 2: pending, 3: pending, though it should have resolved. */
static int outcome(const struct run *run, uint32_t p)
{
	const struct weft_promise *last = &run->m->promises[run->ties.now[p]];
	if (run->ties.ended_ns[p] == WEFT_NEVER)
		return last->flags & WEFT_PROMISE_NEVER_RESOLVED ? 3 : 2;
	return last->end == WEFT_END_FAILED;
}

/* The order in which differences are told: promises that should resolve, then promises with a label, then the others. */
static int rank(const struct differ *d, uint32_t a, uint32_t b)
{
	if ((d->runs[0].m->promises[a].flags | d->runs[1].m->promises[b].flags) & WEFT_PROMISE_SHOULD_RESOLVE)
		return 0;
	return weft_first_label(d->runs[0].m, a) != WEFT_NONE ? 1 : 2;
}

static void compare_ends(struct differ *d)
{
	const struct run *a = &d->runs[0], *b = &d->runs[1];
	for (int wanted = 0; wanted < 3; wanted++)
		for (uint32_t p = 1; p < a->m->promise_count; p++) {
			uint32_t q = weft_idmap_get(&b->keyed, a->keys[p]);
			if (q == WEFT_IDMAP_NONE)
				continue;
			d->aligned += wanted == 0;
			if (outcome(a, p) == outcome(b, q) || rank(d, p, q) != wanted)
				continue;
			char name[WEFT_NAME_BYTES], place[WEFT_NAME_BYTES], first[TEXT / 2], second[TEXT / 2];
			weft_name_place(a->m, p, place);
			tell(d, WEFT_DIFFERENCE_END, p, q, a->m->promises[p].start_ns, b->m->promises[q].start_ns,
			    "%s%s%s: in the first run it %s; in the second it %s", weft_name_promise(a->m, p, name),
			    *place ? " at " : "", place, end_text(a, p, first), end_text(b, q, second));
		}
}

/* ---- Sorts ---- */

struct group {
	uint32_t first[2]; /* the first promise in each run, or WEFT_NONE */
	size_t count[2];   /* promises in each run */
	size_t lives[2]; /* how many of them ended; when the lives are filled in: where the next one goes, in the end their end */
};

struct groups {
	struct weft_idmap numbers;
	WEFT_VEC(struct group) items;
	int64_t *lives[2];
};

static bool gather(struct differ *d, struct groups *groups)
{
	bool ok = true;
	for (int r = 0; r < 2; r++)
		for (uint32_t p = 1; ok && p < d->runs[r].m->promise_count; p++) {
			uint32_t number = weft_idmap_get(&groups->numbers, d->runs[r].sorts[p]);
			if (number == WEFT_IDMAP_NONE) {
				number = (uint32_t)groups->items.count;
				struct group *added = weft_vec_push(&groups->items);
				if (!(ok = added && weft_idmap_set(&groups->numbers, d->runs[r].sorts[p], number)))
					break;
				*added = (struct group){.first = {WEFT_NONE, WEFT_NONE}};
			}
			struct group *group = &groups->items.items[number];
			if (group->count[r]++ == 0)
				group->first[r] = p;
			group->lives[r] += d->runs[r].ties.ended_ns[p] != WEFT_NEVER;
		}
	for (int r = 0; ok && r < 2; r++) {
		size_t sum = 0;
		for (size_t g = 0; g < groups->items.count; g++) {
			size_t count = groups->items.items[g].lives[r];
			groups->items.items[g].lives[r] = sum;
			sum += count;
		}
		if (!(ok = (groups->lives[r] = malloc((sum + 1) * sizeof *groups->lives[r]))))
			break;
		for (uint32_t p = 1; p < d->runs[r].m->promise_count; p++) {
			uint32_t number = weft_idmap_get(&groups->numbers, d->runs[r].sorts[p]);
			if (d->runs[r].ties.ended_ns[p] != WEFT_NEVER)
				groups->lives[r][groups->items.items[number].lives[r]++] =
				    d->runs[r].ties.ended_ns[p] - d->runs[r].m->promises[p].start_ns;
		}
	}
	return ok;
}

static void compare_counts(struct differ *d, const struct groups *groups)
{
	for (size_t g = 0; g < groups->items.count; g++) {
		const struct group *group = &groups->items.items[g];
		int in = group->first[0] != WEFT_NONE ? 0 : 1;
		char name[WEFT_NAME_BYTES];
		if (group->count[0] == group->count[1])
			continue;
		weft_name_sort(d->runs[in].m, group->first[in], name);
		int64_t at[2];
		for (int r = 0; r < 2; r++)
			at[r] = group->first[r] == WEFT_NONE ? -1 : d->runs[r].m->promises[group->first[r]].start_ns;
		tell(d, WEFT_DIFFERENCE_MISSING, group->first[0], group->first[1], at[0], at[1],
		    "%s: %zu in the first run, %zu in the second", name, group->count[0], group->count[1]);
	}
}

/* Whether lives in one of two sorted lists are longer than in the other, by the test of Mann and Whitney, which compares ranks:
 * the difference is more than 3.5 standard deviations. */
static bool is_moved(const int64_t *a, size_t n, const int64_t *b, size_t m)
{
	double u = 0;
	size_t below = 0, up_to = 0;
	for (size_t i = 0; i < n; i++) {
		while (below < m && b[below] < a[i])
			below++;
		while (up_to < m && b[up_to] <= a[i])
			up_to++;
		u += (double)below + (double)(up_to - below) / 2;
	}
	double mean = (double)n * (double)m / 2, variance = (double)n * (double)m * (double)(n + m + 1) / 12;
	return (u - mean) * (u - mean) > 3.5 * 3.5 * variance;
}

static void compare_lives(struct differ *d, const struct groups *groups)
{
	size_t begin[2] = {0, 0};
	for (size_t g = 0; g < groups->items.count; g++) {
		const struct group *group = &groups->items.items[g];
		int64_t *lives[2];
		size_t count[2];
		for (int r = 0; r < 2; r++) {
			lives[r] = groups->lives[r] + begin[r];
			count[r] = group->lives[r] - begin[r];
			begin[r] = group->lives[r];
		}
		if (count[0] < ENOUGH || count[1] < ENOUGH)
			continue;
		for (int r = 0; r < 2; r++)
			weft_sort(lives[r], count[r], sizeof *lives[r], weft_compare_i64);
		int64_t a_ns = lives[0][(count[0] - 1) / 2], b_ns = lives[1][(count[1] - 1) / 2];
		int64_t low_ns = a_ns < b_ns ? a_ns : b_ns, high_ns = a_ns < b_ns ? b_ns : a_ns;
		if (high_ns - low_ns < low_ns / 5 || high_ns - low_ns < 1000 || !is_moved(lives[0], count[0], lives[1], count[1]))
			continue;
		char name[WEFT_NAME_BYTES], first[WEFT_DURATION_BYTES], second[WEFT_DURATION_BYTES];
		tell(d, WEFT_DIFFERENCE_LATENCY, group->first[0], group->first[1],
		    d->runs[0].m->promises[group->first[0]].start_ns, d->runs[1].m->promises[group->first[1]].start_ns,
		    "%s: half of them end within %s in the first run (of %zu), within %s in the second (of %zu)",
		    weft_name_sort(d->runs[0].m, group->first[0], name), span(first, a_ns), count[0], span(second, b_ns),
		    count[1]);
	}
}

/* ---- Counters ---- */

static int compare_names(struct weft_str a, struct weft_str b)
{
	int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static void compare_counters(struct differ *d)
{
	const struct weft_model *a = d->runs[0].m, *b = d->runs[1].m;
	for (size_t i = 0, k = 0; i < a->counter_count || k < b->counter_count;) {
		int order = i == a->counter_count   ? 1
			    : k == b->counter_count ? -1
						    : compare_names(a->counters[i].name, b->counters[k].name);
		const struct weft_counter *first = order <= 0 ? &a->counters[i++] : NULL;
		const struct weft_counter *second = order >= 0 ? &b->counters[k++] : NULL;
		const struct weft_counter *either = first ? first : second;
		if (!either)
			break;
		const struct weft_sample *x = first && first->count ? &first->samples[first->count - 1] : NULL;
		const struct weft_sample *y = second && second->count ? &second->samples[second->count - 1] : NULL;
		if (x && y && x->value == y->value)
			continue;
		char values[2][32] = {"never set", "never set"};
		if (x)
			snprintf(values[0], sizeof values[0], "%" PRId64, x->value);
		if (y)
			snprintf(values[1], sizeof values[1], "%" PRId64, y->value);
		tell(d, WEFT_DIFFERENCE_COUNTER, WEFT_NONE, WEFT_NONE, x ? x->time_ns : -1, y ? y->time_ns : -1,
		    "counter \"%.*s\" ends as %s in the first run, as %s in the second",
		    (int)(either->name.len < 100 ? either->name.len : 100), either->name.ptr, values[0], values[1]);
	}
}

/* ---- All ---- */

int weft_diff_create(struct weft_diff **out, const struct weft_model *a, const struct weft_model *b, struct weft_error *err)
{
	struct differ d = {.runs = {{.m = a}, {.m = b}}};
	struct groups groups = {0};
	struct weft_diff *diff = malloc(sizeof *diff);
	bool ok = diff;
	for (int r = 0; r < 2; r++)
		ok &= (d.runs[r].lines = malloc((d.runs[r].m->trace->site_count + 1) * sizeof *d.runs[r].lines)) != NULL;
	ok = ok && weft__lines_match((const struct weft_model *const[]){a, b},
		       (uint32_t *const[]){d.runs[0].lines, d.runs[1].lines}) == WEFT_OK;
	for (int r = 0; ok && r < 2; r++)
		ok = weft_ties_init(&d.runs[r].ties, d.runs[r].m, WEFT_TIES_NONE, NULL) == WEFT_OK && align(&d.runs[r]);
	if (ok) {
		compare_findings(&d);
		compare_order(&d);
		compare_ends(&d);
		ok = gather(&d, &groups);
	}
	if (ok) {
		compare_counts(&d, &groups);
		compare_counters(&d);
		compare_lives(&d, &groups);
	}
	weft_idmap_finish(&groups.numbers);
	weft_vec_free(&groups.items);
	for (int r = 0; r < 2; r++) {
		free(groups.lives[r]);
		weft_ties_finish(&d.runs[r].ties);
		free(d.runs[r].lines);
		free(d.runs[r].keys);
		free(d.runs[r].sorts);
		weft_idmap_finish(&d.runs[r].keyed);
	}
	if (!ok || d.no_memory) {
		for (size_t i = 0; i < d.found.count; i++)
			free((char *)(uintptr_t)d.found.items[i].text);
		weft_vec_free(&d.found);
		free(diff);
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	}
	*diff = (struct weft_diff){d.found.items, d.found.count, d.left_out, d.aligned};
	*out = diff;
	return WEFT_OK;
}

void weft_diff_destroy(struct weft_diff *diff)
{
	if (!diff)
		return;
	for (size_t i = 0; i < diff->count; i++)
		free((char *)(uintptr_t)diff->differences[i].text);
	free(diff->differences);
	free(diff);
}

const char *weft_difference_name(enum weft_difference_kind kind)
{
	static const char *const names[] = {WEFT_DIFFERENCES(WEFT_LISTED_NAME)};
	return WEFT_NAME_OF(names, kind);
}
