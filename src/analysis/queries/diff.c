/* diff.c: aligns two runs of a program, and lists their differences.  SPDX-License-Identifier: ISC */
#include "analysis/queries/diff.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/findings/explain.h"
#include "analysis/index/label_patterns.h"
#include "analysis/index/link_index.h"
#include "analysis/index/names.h"
#include "analysis/queries/source_diff.h"
#include "base/duration.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/sort.h"
#include "base/utf8.h"
#include "base/vec.h"

enum {
	MAX_LISTED = 20, /* most differences of one kind that are listed; further ones are only counted */
	TEXT_BYTES = 1024,
	MIN_LIFETIMES = 20 /* fewest ended promises of a type in each run for a comparison of their durations */
};

struct run {
	const struct weft_model *m;
	struct weft_link_index link_index;
	uint32_t *lines; /* by site: a number that is equal in both runs for the same site */
	/* by text: hash of the label; hash of its pattern; 0 if the text is not the first label of a promise */
	uint64_t *labels, *patterns;
	int64_t *keys;                    /* by promise: a key that is equal in both runs for aligned promises */
	int64_t *types;                   /* by promise: a number that is equal in both runs for promises of one type */
	struct weft_idmap promise_of_key; /* the promise of the run with each key */
};

struct differ {
	struct run runs[2];
	WEFT_VEC(struct weft_difference) found;
	size_t left_out, aligned, reported;
	bool no_memory;
};

/* ---- Hashes ---- */

static uint64_t mix_hash(uint64_t hash, uint64_t more)
{
	return weft_hash_u64(hash ^ (more + 0x9e3779b97f4a7c15u + (hash << 6)));
}

/* Hashes only the length and the start of a text, because each promise may have the same label of a megabyte. */
static uint64_t mix_text_hash(uint64_t hash, struct weft_str text)
{
	enum { MAX_HASHED_BYTES = 1024 };
	return mix_hash(hash ^ text.len, weft_hash_bytes(text.ptr, text.len < MAX_HASHED_BYTES ? text.len : MAX_HASHED_BYTES));
}

/* ---- Labels ---- */

/* Counts of the first labels with one pattern. */
struct label_count {
	size_t labels[2], shared; /* number of different labels in each run; number of labels that both runs have */
};

struct label_counts {
	struct weft_idmap runs_of; /* by label: bit set of the runs that have it */
	struct weft_idmap numbers; /* by pattern: its index in items */
	WEFT_VEC(struct label_count) items;
};

static struct label_count *find_label_count(struct label_counts *c, uint64_t pattern)
{
	uint32_t number = weft_idmap_get(&c->numbers, (int64_t)pattern);
	if (number != WEFT_IDMAP_NONE)
		return &c->items.items[number];
	struct label_count *added = weft_vec_push(&c->items);
	number = (uint32_t)c->items.count - 1;
	if (!added || !weft_idmap_set(&c->numbers, (int64_t)pattern, number))
		return NULL;
	*added = (struct label_count){.shared = 0};
	return added;
}

/* Hashes a label and its pattern, and counts the label; returns false when out of memory. */
static bool count_label(struct label_counts *c, struct run *run, int r, uint32_t text)
{
	char pattern[WEFT_NAME_BYTES];
	const struct weft_str label = weft_model_text(run->m, text);
	const uint64_t hash = mix_text_hash(0, label) | 1;
	const bool has_number = weft__label_pattern(pattern, sizeof pattern, label);
	run->labels[text] = hash;
	run->patterns[text] = has_number ? mix_text_hash(0, (struct weft_str){pattern, (uint32_t)strlen(pattern)}) | 1 : hash;
	const uint32_t known = weft_idmap_get(&c->runs_of, (int64_t)hash), runs = known == WEFT_IDMAP_NONE ? 0 : known;
	struct label_count *count = find_label_count(c, run->patterns[text]);
	if (!count || !weft_idmap_set(&c->runs_of, (int64_t)hash, runs | 1u << r))
		return false;
	count->labels[r] += !(runs >> r & 1);
	count->shared += runs == 1u << (1 - r);
	return true;
}

/* Returns whether the numbers in a label identify promises in both runs: most labels of its pattern are in both runs.  Port
 * numbers and measured durations differ from run to run, so they identify no promise. */
static bool is_name(const struct label_counts *c, const struct run *run, uint32_t text)
{
	const struct label_count *count = &c->items.items[weft_idmap_get(&c->numbers, (int64_t)run->patterns[text])];
	const size_t fewer = count->labels[count->labels[1] < count->labels[0]];
	return weft_idmap_get(&c->runs_of, (int64_t)run->labels[text]) == 3 && 2 * count->shared > fewer;
}

/* Computes the hashes of labels.  A label whose numbers differ by chance gets the hash of its pattern. */
static bool hash_labels(struct differ *d)
{
	struct label_counts counts = {.items = {0}};
	bool ok = true;
	for (int r = 0; ok && r < 2; r++) {
		struct run *run = &d->runs[r];
		run->labels = calloc(weft_model_text_count(run->m) + 1, sizeof *run->labels);
		run->patterns = calloc(weft_model_text_count(run->m) + 1, sizeof *run->patterns);
		ok = run->labels && run->patterns;
		for (uint32_t p = 0; ok && p < run->m->promise_count; p++) {
			const uint32_t text = weft_first_label(run->m, p);
			ok = text == WEFT_NONE || run->labels[text] || count_label(&counts, run, r, text);
		}
	}
	for (int r = 0; ok && r < 2; r++)
		for (size_t text = 0; text < weft_model_text_count(d->runs[r].m); text++)
			if (d->runs[r].labels[text] && is_name(&counts, &d->runs[r], (uint32_t)text))
				d->runs[r].patterns[text] = d->runs[r].labels[text];
	weft_idmap_finish(&counts.runs_of);
	weft_idmap_finish(&counts.numbers);
	weft_vec_free(&counts.items);
	return ok;
}

/* ---- Alignment ---- */

/* Returns a hash of a promise's label, site and kind. */
static uint64_t hash_type(const struct run *run, uint32_t p)
{
	const struct weft_model *m = run->m;
	uint64_t hash = m->promises[p].kind;
	uint32_t label = weft_first_label(m, p), site = m->promises[p].site;
	if (label != WEFT_NONE)
		hash = mix_hash(hash, run->patterns[label]);
	if (site != WEFT_NONE) {
		hash = mix_text_hash(hash, m->trace->sites[site].file);
		hash = mix_text_hash(hash, m->trace->sites[site].function);
		hash = mix_hash(hash, run->lines[site]);
		hash = mix_hash(hash, m->trace->sites[site].offset);
	}
	return hash;
}

static bool align_promises(struct run *run)
{
	const struct weft_model *m = run->m;
	struct weft_idmap counts = {0};
	run->keys = malloc(m->promise_count * sizeof *run->keys);
	run->types = malloc(m->promise_count * sizeof *run->types);
	bool ok = run->keys && run->types;
	for (uint32_t p = 0; ok && p < m->promise_count; p++) {
		uint64_t type = hash_type(run, p);
		uint64_t path = p == WEFT_SYSTEM ? type : mix_hash(type, (uint64_t)run->keys[m->promises[p].created_by]);
		uint32_t count = weft_idmap_get(&counts, (int64_t)path);
		count = count == WEFT_IDMAP_NONE ? 0 : count + 1;
		run->types[p] = (int64_t)type;
		run->keys[p] = (int64_t)mix_hash(path, count);
		ok = weft_idmap_set(&counts, (int64_t)path, count) && weft_idmap_set(&run->promise_of_key, run->keys[p], p);
	}
	weft_idmap_finish(&counts);
	return ok;
}

/* ---- Text ---- */

__attribute__((format(printf, 7, 8))) static void add_difference(struct differ *d, enum weft_difference_kind kind, uint32_t a,
    uint32_t b, int64_t a_time_ns, int64_t b_time_ns, const char *format, ...)
{
	if (d->found.count && d->found.items[d->found.count - 1].kind != kind)
		d->reported = 0;
	if (d->reported == MAX_LISTED) {
		d->left_out++;
		return;
	}
	char raw[TEXT_BYTES], line[3 * TEXT_BYTES];
	va_list args;
	va_start(args, format);
	vsnprintf(raw, sizeof raw, format, args);
	va_end(args);
	/* The name of a counter may contain any bytes, and the text may be cut in the middle of a character. */
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
	d->reported++;
}

static const char *format_span(char buf[WEFT_DURATION_BYTES], int64_t ns)
{
	weft_duration_format(buf, WEFT_DURATION_BYTES, ns);
	return buf;
}

/* ---- Findings ---- */

/* Returns a key that is equal for findings of one kind about promises of one type. */
static int64_t finding_key(const struct run *run, const struct weft_finding *finding)
{
	return (int64_t)mix_hash((uint64_t)run->types[finding->promise], finding->kind);
}

/* Adds the alarms that only one of the runs has. */
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
			add_difference(d, WEFT_DIFFERENCE_FINDING, of[0], of[1], time_ns[0], time_ns[1],
			    "only the %s run has a %s%s: %s", r == 0 ? "first" : "second", weft_finding_name(one->kind),
			    one->sure ? "" : " (uncertain)", one->title);
		}
	for (int r = 0; r < 2; r++) {
		weft_findings_destroy(findings[r]);
		weft_idmap_finish(&keys[r]);
	}
}

/* ---- Order ---- */

/* Returns the first action from link l on: a link that resolves, fails or signals a promise; link_count if there is none. */
static size_t find_next_action(const struct weft_model *m, size_t l)
{
	while (l < m->link_count && m->links[l].kind != WEFT_LINK_RESOLVE && m->links[l].kind != WEFT_LINK_SIGNAL)
		l++;
	return l;
}

static bool is_failing(const struct weft_model *m, const struct weft_link *link)
{
	return m->promises[link->to].end == WEFT_END_FAILED && m->promises[link->to].end_ns == link->time_ns;
}

static bool is_same_action(const struct differ *d, const struct weft_link *a, const struct weft_link *b)
{
	return a->kind == b->kind && d->runs[0].keys[a->from] == d->runs[1].keys[b->from] &&
	       d->runs[0].keys[a->to] == d->runs[1].keys[b->to] &&
	       (a->kind != WEFT_LINK_RESOLVE || is_failing(d->runs[0].m, a) == is_failing(d->runs[1].m, b));
}

enum { ACTION_BYTES = 3 * WEFT_NAME_BYTES };

static const char *format_action(const struct weft_model *m, const struct weft_link *link, char buf[ACTION_BYTES])
{
	char from[WEFT_NAME_BYTES], to[WEFT_NAME_BYTES];
	const char *verb = link->kind == WEFT_LINK_SIGNAL ? "signals" : is_failing(m, link) ? "fails" : "resolves";
	snprintf(buf, ACTION_BYTES, "%s %s %s", weft_name_promise(m, link->from, from), verb, weft_name_promise(m, link->to, to));
	return buf;
}

/* Returns when run `in`, from link `from` on, does the same action to the same promise, no matter which promise acts; -1 if it
 * never does. */
static int64_t find_action_time(const struct differ *d, int in, const struct weft_link *action, size_t from)
{
	const struct weft_model *m = d->runs[in].m;
	for (size_t l = find_next_action(m, from); l < m->link_count; l = find_next_action(m, l + 1))
		if (m->links[l].kind == action->kind && d->runs[in].keys[m->links[l].to] == d->runs[1 - in].keys[action->to])
			return m->links[l].time_ns;
	return -1;
}

static void compare_order(struct differ *d)
{
	const struct weft_model *m[2] = {d->runs[0].m, d->runs[1].m};
	size_t l[2] = {find_next_action(m[0], 0), find_next_action(m[1], 0)}, same = 0;
	const struct weft_link *last[2] = {NULL, NULL};
	while (l[0] < m[0]->link_count && l[1] < m[1]->link_count && is_same_action(d, &m[0]->links[l[0]], &m[1]->links[l[1]])) {
		for (int r = 0; r < 2; r++) {
			last[r] = &m[r]->links[l[r]];
			l[r] = find_next_action(m[r], l[r] + 1);
		}
		same++;
	}
	bool over[2] = {l[0] == m[0]->link_count, l[1] == m[1]->link_count};
	if (over[0] && over[1])
		return;
	char action[2][ACTION_BYTES], when[2][80] = {"", ""}, before[ACTION_BYTES], gap[WEFT_DURATION_BYTES];
	int64_t time_ns[2] = {-1, -1};
	for (int r = 0; r < 2; r++) {
		if (over[r]) {
			snprintf(action[r], ACTION_BYTES, "there are no more events");
			continue;
		}
		const struct weft_link *link = &m[r]->links[l[r]];
		time_ns[r] = link->time_ns;
		format_action(m[r], link, action[r]);
		if (link->kind == WEFT_LINK_SIGNAL)
			continue; /* a wait at a condition is recorded as a signal, too */
		int64_t other_ns = find_action_time(d, 1 - r, link, l[1 - r]);
		if (other_ns < 0)
			snprintf(when[r], sizeof when[r], " (the other run never does this)");
		else
			snprintf(when[r], sizeof when[r], " (the other run does this %s later)",
			    format_span(gap, other_ns - (over[1 - r] ? other_ns : m[1 - r]->links[l[1 - r]].time_ns)));
	}
	char first[48] = "first action is";
	if (same > 1)
		snprintf(first, sizeof first, "first %zu actions are", same);
	if (same)
		add_difference(d, WEFT_DIFFERENCE_ORDER, over[0] ? WEFT_NONE : m[0]->links[l[0]].to,
		    over[1] ? WEFT_NONE : m[1]->links[l[1]].to, time_ns[0], time_ns[1],
		    "the %s the same%s %s; then, in the first run, %s%s; in the second, %s%s", first,
		    same > 1 ? ", the last:" : ":", format_action(m[0], last[0], before), action[0], when[0], action[1], when[1]);
	else
		add_difference(d, WEFT_DIFFERENCE_ORDER, over[0] ? WEFT_NONE : m[0]->links[l[0]].to,
		    over[1] ? WEFT_NONE : m[1]->links[l[1]].to, time_ns[0], time_ns[1],
		    "the first actions differ: in the first run, %s%s; in the second, %s%s", action[0], when[0], action[1],
		    when[1]);
}

/* ---- Ends ---- */

static const char *format_end(const struct run *run, uint32_t p, char buf[TEXT_BYTES / 2])
{
	const struct weft_promise *last = &run->m->promises[run->link_index.final[p]];
	char life[WEFT_DURATION_BYTES], text[160];
	if (run->link_index.ended_ns[p] == WEFT_NEVER)
		return last->flags & WEFT_PROMISE_NEVER_RESOLVED ? "never resolves, although it should" : "does not end";
	format_span(life, last->end_ns - run->m->promises[p].start_ns);
	if (last->end == WEFT_END_FAILED)
		snprintf(
		    buf, TEXT_BYTES / 2, "fails after %s: %s", life, weft_name_text(run->m, last->failure, text, sizeof text));
	else
		snprintf(buf, TEXT_BYTES / 2, "is resolved after %s", life);
	return buf;
}

/* Returns the outcome of a promise: 0 if it resolved, 1 if it failed, 2 if it is pending, 3 if it is pending although it should
 * have resolved. */
static int get_outcome(const struct run *run, uint32_t p)
{
	const struct weft_promise *last = &run->m->promises[run->link_index.final[p]];
	if (run->link_index.ended_ns[p] == WEFT_NEVER)
		return last->flags & WEFT_PROMISE_NEVER_RESOLVED ? 3 : 2;
	return last->end == WEFT_END_FAILED;
}

/* Orders differences by their promises: first promises that should resolve, then promises with a label, then others. */
static int get_rank(const struct differ *d, uint32_t a, uint32_t b)
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
			uint32_t q = weft_idmap_get(&b->promise_of_key, a->keys[p]);
			if (q == WEFT_IDMAP_NONE)
				continue;
			d->aligned += wanted == 0;
			if (get_outcome(a, p) == get_outcome(b, q) || get_rank(d, p, q) != wanted)
				continue;
			char name[WEFT_NAME_BYTES], location[WEFT_NAME_BYTES], first[TEXT_BYTES / 2], second[TEXT_BYTES / 2];
			weft_name_site(a->m, p, location);
			add_difference(d, WEFT_DIFFERENCE_END, p, q, a->m->promises[p].start_ns, b->m->promises[q].start_ns,
			    "%s%s%s: in the first run, this promise %s; in the second, it %s", weft_name_promise(a->m, p, name),
			    *location ? " at " : "", location, format_end(a, p, first), format_end(b, q, second));
		}
}

/* ---- Types ---- */

struct group {
	uint32_t first[2]; /* the first promise of the group in each run, or WEFT_NONE */
	uint64_t label;    /* hash of the first label of its promises */
	bool is_mixed;     /* true if the labels of the promises differ in numbers */
	size_t count[2];   /* promises in each run */
	/* number of ended promises of the group in each run; later the index at which the next duration is stored, at last the
	 * end of the durations */
	size_t lifetimes[2];
};

struct groups {
	struct weft_idmap numbers;
	WEFT_VEC(struct group) items;
	int64_t *lifetimes[2];
};

static uint64_t get_label_hash(const struct run *run, uint32_t p)
{
	const uint32_t text = weft_first_label(run->m, p);
	return text == WEFT_NONE ? 0 : run->labels[text];
}

/* Formats the type of a group: with the pattern of its labels if they differ. */
static const char *name_group(const struct differ *d, const struct group *group, char buf[WEFT_NAME_BYTES])
{
	const int in = group->first[0] != WEFT_NONE ? 0 : 1;
	const struct weft_model *m = d->runs[in].m;
	char pattern[128], text[160];
	if (!group->is_mixed)
		return weft_name_type(m, group->first[in], buf);
	weft__label_pattern(pattern, sizeof pattern, weft_model_text(m, weft_first_label(m, group->first[in])));
	weft_name_sanitize((struct weft_str){pattern, (uint32_t)strlen(pattern)}, text, sizeof text);
	snprintf(buf, WEFT_NAME_BYTES, "\"%s\"", text);
	return buf;
}

static bool gather_groups(struct differ *d, struct groups *groups)
{
	bool ok = true;
	for (int r = 0; r < 2; r++)
		for (uint32_t p = 1; ok && p < d->runs[r].m->promise_count; p++) {
			uint32_t number = weft_idmap_get(&groups->numbers, d->runs[r].types[p]);
			if (number == WEFT_IDMAP_NONE) {
				number = (uint32_t)groups->items.count;
				struct group *added = weft_vec_push(&groups->items);
				if (!(ok = added && weft_idmap_set(&groups->numbers, d->runs[r].types[p], number)))
					break;
				*added = (struct group){.first = {WEFT_NONE, WEFT_NONE}, .label = get_label_hash(&d->runs[r], p)};
			}
			struct group *group = &groups->items.items[number];
			group->is_mixed |= group->label != get_label_hash(&d->runs[r], p);
			if (group->count[r]++ == 0)
				group->first[r] = p;
			group->lifetimes[r] += d->runs[r].link_index.ended_ns[p] != WEFT_NEVER;
		}
	for (int r = 0; ok && r < 2; r++) {
		size_t sum = 0;
		for (size_t g = 0; g < groups->items.count; g++) {
			size_t count = groups->items.items[g].lifetimes[r];
			groups->items.items[g].lifetimes[r] = sum;
			sum += count;
		}
		if (!(ok = (groups->lifetimes[r] = malloc((sum + 1) * sizeof *groups->lifetimes[r]))))
			break;
		for (uint32_t p = 1; p < d->runs[r].m->promise_count; p++) {
			uint32_t number = weft_idmap_get(&groups->numbers, d->runs[r].types[p]);
			if (d->runs[r].link_index.ended_ns[p] != WEFT_NEVER)
				groups->lifetimes[r][groups->items.items[number].lifetimes[r]++] =
				    d->runs[r].link_index.ended_ns[p] - d->runs[r].m->promises[p].start_ns;
		}
	}
	return ok;
}

static void compare_counts(struct differ *d, const struct groups *groups)
{
	for (size_t g = 0; g < groups->items.count; g++) {
		const struct group *group = &groups->items.items[g];
		char name[WEFT_NAME_BYTES];
		if (group->count[0] == group->count[1])
			continue;
		int64_t at[2];
		for (int r = 0; r < 2; r++)
			at[r] = group->first[r] == WEFT_NONE ? -1 : d->runs[r].m->promises[group->first[r]].start_ns;
		add_difference(d, WEFT_DIFFERENCE_MISSING, group->first[0], group->first[1], at[0], at[1],
		    "%s: the first run has %zu, the second run has %zu", name_group(d, group, name), group->count[0],
		    group->count[1]);
	}
}

/* Returns whether the durations in one of two sorted lists are significantly longer than those in the other list.  Uses the
 * Mann-Whitney test, which compares ranks: the difference must be more than 3.5 standard deviations. */
static bool has_shifted(const int64_t *a, size_t n, const int64_t *b, size_t m)
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

static void compare_lifetimes(struct differ *d, const struct groups *groups)
{
	size_t begin[2] = {0, 0};
	for (size_t g = 0; g < groups->items.count; g++) {
		const struct group *group = &groups->items.items[g];
		int64_t *lifetimes[2];
		size_t count[2];
		for (int r = 0; r < 2; r++) {
			lifetimes[r] = groups->lifetimes[r] + begin[r];
			count[r] = group->lifetimes[r] - begin[r];
			begin[r] = group->lifetimes[r];
		}
		if (count[0] < MIN_LIFETIMES || count[1] < MIN_LIFETIMES)
			continue;
		for (int r = 0; r < 2; r++)
			weft_sort(lifetimes[r], count[r], sizeof *lifetimes[r], weft_compare_i64);
		int64_t a_ns = lifetimes[0][(count[0] - 1) / 2], b_ns = lifetimes[1][(count[1] - 1) / 2];
		int64_t low_ns = a_ns < b_ns ? a_ns : b_ns, high_ns = a_ns < b_ns ? b_ns : a_ns;
		if (high_ns - low_ns < low_ns / 5 || high_ns - low_ns < 1000 ||
		    !has_shifted(lifetimes[0], count[0], lifetimes[1], count[1]))
			continue;
		char name[WEFT_NAME_BYTES], first[WEFT_DURATION_BYTES], second[WEFT_DURATION_BYTES];
		add_difference(d, WEFT_DIFFERENCE_LATENCY, group->first[0], group->first[1],
		    d->runs[0].m->promises[group->first[0]].start_ns, d->runs[1].m->promises[group->first[1]].start_ns,
		    "%s: half of these promises end within %s in the first run (of %zu), within %s in the second run (of %zu)",
		    name_group(d, group, name), format_span(first, a_ns), count[0], format_span(second, b_ns), count[1]);
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
		add_difference(d, WEFT_DIFFERENCE_COUNTER, WEFT_NONE, WEFT_NONE, x ? x->time_ns : -1, y ? y->time_ns : -1,
		    "counter \"%.*s\" has the last value %s in the first run, %s in the second",
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
	ok = ok && weft__source_diff_match_sites((const struct weft_model *const[]){a, b},
		       (uint32_t *const[]){d.runs[0].lines, d.runs[1].lines}) == WEFT_OK;
	ok = ok && hash_labels(&d);
	for (int r = 0; ok && r < 2; r++)
		ok = weft_link_index_init(&d.runs[r].link_index, d.runs[r].m, WEFT_LINK_INDEX_NONE, NULL) == WEFT_OK &&
		     align_promises(&d.runs[r]);
	if (ok) {
		compare_findings(&d);
		compare_order(&d);
		compare_ends(&d);
		ok = gather_groups(&d, &groups);
	}
	if (ok) {
		compare_counts(&d, &groups);
		compare_counters(&d);
		compare_lifetimes(&d, &groups);
	}
	weft_idmap_finish(&groups.numbers);
	weft_vec_free(&groups.items);
	for (int r = 0; r < 2; r++) {
		free(groups.lifetimes[r]);
		weft_link_index_finish(&d.runs[r].link_index);
		free(d.runs[r].lines);
		free(d.runs[r].labels);
		free(d.runs[r].patterns);
		free(d.runs[r].keys);
		free(d.runs[r].types);
		weft_idmap_finish(&d.runs[r].promise_of_key);
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
