/* layout_test.c: the rules of layout.h, for random promises and for traces that are costly to lay out.  SPDX-License-Identifier:
 * ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/search.h"
#include "layout/focus.h"
#include "layout/group.h"
#include "layout/layout.h"

static const char *shared;

static uint32_t random_below(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % n;
}

static struct weft_model model_of(size_t promises)
{
	struct weft_model m = {.promise_count = promises};
	m.promises = calloc(promises + 1, sizeof *m.promises);
	assert_non_null(m.promises);
	for (size_t i = 0; i < promises; i++)
		m.promises[i].created_by = m.promises[i].parent = m.promises[i].became = WEFT_NONE;
	return m;
}

static struct weft_promise promise(uint16_t kind, uint32_t created_by, int64_t start_ns, int64_t end_ns)
{
	return (struct weft_promise){.kind = kind,
	    .created_by = created_by,
	    .parent = created_by,
	    .became = WEFT_NONE,
	    .start_ns = start_ns,
	    .end_ns = end_ns,
	    .end = WEFT_END_RESOLVED};
}

static void check_bands(const struct weft_model *m, const struct weft_layout *l)
{
	uint32_t row = 0;
	for (size_t b = 0; b < l->band_count; b++) {
		assert_int_equal(l->bands[b].first_row, row);
		assert_true(b == 0 || l->bands[b - 1].stream < l->bands[b].stream);
		row += l->bands[b].row_count;
		for (uint32_t i = l->row_begin[l->bands[b].first_row]; i < l->row_begin[row]; i++)
			assert_int_equal(m->promises[l->by_row[i]].stream, l->bands[b].stream);
	}
	assert_int_equal(row, l->row_count);
}

/* Returns the number of promises that are not in by_row, because the leader of their fold represents them. */
static uint32_t check_folds(const struct weft_model *m, const struct weft_layout *l)
{
	uint32_t followers = 0;
	for (size_t i = 0; i < l->fold_count; i++) {
		const struct weft_fold *fold = &l->folds[i];
		const uint32_t *members = &l->folded[fold->first];
		const struct weft_promise *leader = &m->promises[fold->leader];
		int64_t until = leader->end_ns;
		assert_true(i == 0 || l->folds[i - 1].leader < fold->leader);
		assert_true(fold->count >= 2 && members[0] == fold->leader && weft_layout_fold(l, fold->leader) == fold);
		for (uint32_t k = 1; k < fold->count; k++) {
			const struct weft_promise *p = &m->promises[members[k]];
			assert_int_equal(l->rows[members[k]], l->rows[fold->leader]);
			assert_null(weft_layout_fold(l, members[k]));
			assert_true(p->kind == leader->kind && p->stream == leader->stream && p->parent == leader->parent);
			assert_true(p->start_ns >= leader->start_ns && p->start_ns < until);
			until = p->end_ns > until ? p->end_ns : until;
		}
		assert_int_equal(fold->end_ns, until);
		assert_int_equal(weft_layout_end(l, m, fold->leader), until);
		followers += fold->count - 1;
	}
	return followers;
}

/* Returns whether a promise belongs to a track, or to a nested one. */
static bool belongs(const struct weft_layout *l, uint32_t promise, uint32_t track)
{
	for (uint32_t t = l->track_of[promise]; t != WEFT_NONE; t = l->tracks[t].around)
		if (t == track)
			return true;
	return false;
}

/* Checks that tracks last as long as their promises, and that their blocks contain no other promises. */
static void check_tracks(const struct weft_model *m, const struct weft_layout *l)
{
	int64_t *ends = calloc(l->track_count + 1, sizeof *ends);
	assert_non_null(ends);
	for (uint32_t t = 0; t < l->track_count; t++) {
		const struct weft_track *track = &l->tracks[t];
		assert_true(t == 0 || l->tracks[t - 1].actor < track->actor);
		assert_ptr_equal(weft_layout_track(l, track->actor), track);
		assert_int_equal(track->around, l->track_of[track->actor]);
		assert_int_equal(track->first_row, l->rows[track->actor]);
		assert_true(track->start_ns <= m->promises[track->actor].start_ns);
		ends[t] = weft_layout_end(l, m, track->actor);
		for (uint32_t r = track->first_row; r < track->first_row + (track->row_count ? track->row_count : 1); r++)
			for (size_t i = WEFT_FIND_FIRST(
				 k, l->row_begin[r], l->row_begin[r + 1], weft_layout_end(l, m, l->by_row[k]) > track->start_ns);
			     i < l->row_begin[r + 1] && m->promises[l->by_row[i]].start_ns < track->end_ns; i++)
				assert_true(l->by_row[i] == track->actor ||
					    (track->row_count > 0 && r > track->first_row && belongs(l, l->by_row[i], t)));
	}
	for (uint32_t p = 1; p < m->promise_count; p++)
		for (uint32_t t = l->track_of[p], depth = 0; t != WEFT_NONE; t = l->tracks[t].around, depth++) {
			int64_t end = weft_layout_end(l, m, p);
			ends[t] = end > ends[t] ? end : ends[t];
			assert_true(depth < 64 && m->promises[p].start_ns >= l->tracks[t].start_ns);
			assert_true(m->promises[p].stream == m->promises[l->tracks[t].actor].stream);
		}
	for (uint32_t t = 0; t < l->track_count; t++)
		assert_int_equal(l->tracks[t].end_ns, ends[t]);
	free(ends);
}

/* Checks the limit of rows at the start time of each promise. */
static void check_bound(const struct weft_model *m, const struct weft_layout *l)
{
	for (size_t b = 0; b < l->band_count; b++) {
		uint64_t most = 1;
		for (uint32_t k = 1; k < m->promise_count; k++) {
			uint64_t promises = 0, tracks = 0;
			int64_t now = m->promises[k].start_ns;
			for (uint32_t r = l->bands[b].first_row; r < l->bands[b].first_row + l->bands[b].row_count; r++)
				for (uint32_t i = l->row_begin[r]; i < l->row_begin[r + 1]; i++)
					promises += m->promises[l->by_row[i]].start_ns <= now &&
						    weft_layout_end(l, m, l->by_row[i]) >= now;
			for (size_t t = 0; t < l->track_count; t++)
				tracks += m->promises[l->tracks[t].actor].stream == l->bands[b].stream &&
					  l->tracks[t].start_ns <= now && l->tracks[t].end_ns >= now;
			most = promises + promises / 2 + tracks > most ? promises + promises / 2 + tracks : most;
		}
		assert_true(l->bands[b].row_count <= most);
	}
}

static void check_layout(const struct weft_model *m, const struct weft_layout *l)
{
	uint32_t followers = check_folds(m, l);
	check_tracks(m, l);
	if (m->promise_count < 3000)
		check_bound(m, l);
	assert_int_equal(l->rows[WEFT_SYSTEM], WEFT_NONE);
	for (uint32_t p = 1; p < m->promise_count; p++)
		assert_true(l->rows[p] < l->row_count);
	assert_int_equal(l->row_count ? l->row_begin[l->row_count] : 0, m->promise_count - 1 - followers);
	for (uint32_t r = 0; r < l->row_count; r++) {
		assert_true(l->row_begin[r] < l->row_begin[r + 1]);
		for (uint32_t i = l->row_begin[r]; i < l->row_begin[r + 1]; i++) {
			const struct weft_promise *p = &m->promises[l->by_row[i]];
			assert_int_equal(l->rows[l->by_row[i]], r);
			if (i == l->row_begin[r])
				continue;
			const struct weft_promise *before = &m->promises[l->by_row[i - 1]];
			int64_t end = weft_layout_end(l, m, l->by_row[i]), before_end = weft_layout_end(l, m, l->by_row[i - 1]);
			assert_true(before->start_ns <= p->start_ns && before_end <= end);
			assert_false(before->start_ns < end && p->start_ns < before_end);
		}
	}
	check_bands(m, l);
}

/* Checks rows in groups: each promise is in a row of its kind, alone or in a fold, and groups are in the order of their first
 * promises. */
static void check_grouped(const struct weft_model *m)
{
	struct weft_layout *l;
	uint64_t seen = 0;
	uint32_t bands = 0;
	assert_int_equal(weft_layout_create_grouped(&l, m, WEFT_ROWS_BY_KIND, NULL, NULL, NULL), WEFT_OK);
	assert_int_equal(l->track_count, 0);
	for (uint32_t p = 1; p < m->promise_count; p++) {
		uint64_t bit = 1ull << m->promises[p].kind % 64;
		size_t b = 0;
		while (b + 1 < l->band_count && l->bands[b + 1].first_row <= l->rows[p])
			b++;
		if (!(seen & bit))
			assert_int_equal(b, bands++);
		seen |= bit;
		assert_int_equal(m->promises[l->by_row[l->row_begin[l->bands[b].first_row]]].kind, m->promises[p].kind);
	}
	assert_int_equal(l->band_count, bands);
	for (uint32_t r = 0; r < l->row_count; r++)
		for (uint32_t i = l->row_begin[r] + 1; i < l->row_begin[r + 1]; i++) {
			int64_t end = weft_layout_end(l, m, l->by_row[i]), start = m->promises[l->by_row[i]].start_ns;
			int64_t before_start = m->promises[l->by_row[i - 1]].start_ns;
			assert_false(before_start < end && start < weft_layout_end(l, m, l->by_row[i - 1]));
		}
	weft_layout_destroy(l);
}

static uint32_t lay_out(struct weft_model *m)
{
	struct weft_layout *l;
	assert_int_equal(weft_layout_create(&l, m, NULL), WEFT_OK);
	check_layout(m, l);
	check_grouped(m);
	uint32_t rows = l->row_count;
	weft_layout_destroy(l);
	free(m->promises);
	return rows;
}

/* Random promises whose parents form no cycle; most parents are older than their children, and some start later. */
static void test_layouts_of_random_traces_keep_every_rule(void **state)
{
	(void)state;
	enum { SEEDS = 400 };
	static const uint64_t more[] = {
	    5770, /* a row of several groups, in which promises of length 0 and other promises start at the same time */
	    2125, 2630, 3440, 6240, 7210, 34815, /* tracks that start before their actors do, loose */
	};
	for (size_t run = 1; run <= SEEDS + sizeof more / sizeof *more; run++) {
		const uint64_t seed = run <= SEEDS ? run : more[run - SEEDS - 1];
		uint64_t r = seed;
		uint32_t n = 2 + random_below(&r, seed % 10 ? 120 : 2500);
		uint32_t streams = 1 + random_below(&r, 3), span = 1 + random_below(&r, 3 * n), life = 1 + random_below(&r, span);
		struct weft_model m = model_of(n);
		bool strange = random_below(&r, 3) == 0;
		for (uint32_t i = 1; i < n; i++) {
			struct weft_promise *p = &m.promises[i];
			uint32_t mother = i > 1 && random_below(&r, 4) ? 1 + random_below(&r, i - 1) : WEFT_SYSTEM;
			if (random_below(&r, 2) && i > 8)
				mother = i - 1 - random_below(&r, 7);
			p->parent = p->created_by = mother;
			p->stream = (uint16_t)(random_below(&r, 5) ? m.promises[mother].stream : random_below(&r, streams));
			p->start_ns =
			    mother && !strange ? m.promises[mother].start_ns + random_below(&r, 20) : random_below(&r, span);
			p->end_ns = p->start_ns + (random_below(&r, 6) ? random_below(&r, life) : 0);
			p->kind = (uint16_t)(WEFT_KIND_PROCESS + random_below(&r, 5)); /* actor, 2 that fold, 2 marks */
			p->flags = random_below(&r, 9) ? 0 : WEFT_PROMISE_START_UNKNOWN;
		}
		lay_out(&m);
	}
}

/* If there are too many groups, the smallest ones share the last group; in this trace, the smallest groups have two promises. */
static void test_smallest_kinds_share_the_last_row_group(void **state)
{
	(void)state;
	enum { KINDS = WEFT_MAX_GROUPS + 20 };
	struct weft_model m = model_of(5 * KINDS);
	uint16_t *group;
	size_t count;
	bool is_rest;
	uint32_t n = 1;
	for (int turn = 0; turn < 3; turn++)
		for (uint16_t kind = 0; kind < KINDS; kind++)
			if (turn < 2 || kind < 21 || kind >= 42)
				m.promises[n++].kind = (uint16_t)(1000 + kind);
	m.promise_count = n;
	assert_int_equal(weft_groups_find(&group, &count, &is_rest, &m, WEFT_ROWS_BY_KIND, NULL), WEFT_OK);
	assert_true(count == WEFT_MAX_GROUPS && is_rest);
	for (uint32_t p = 1; p < n; p++) {
		int kind = m.promises[p].kind - 1000;
		assert_int_equal(group[p], kind < 21 ? kind : kind >= 42 ? kind - 21 : WEFT_MAX_GROUPS - 1);
	}
	free(group);
	free(m.promises);
}

static void test_promise_with_an_earlier_start_gets_the_upper_row(void **state)
{
	(void)state;
	static const int64_t starts[][3] = {{10, 20, 30}, {30, 20, 10}, {20, 10, 30}, {10, 30, 20}, {-10, 10, 0}, {10, 20, 10}};
	for (size_t t = 0; t < sizeof starts / sizeof *starts; t++) {
		struct weft_model m = model_of(4);
		struct weft_layout *l;
		for (uint32_t i = 0; i < 3; i++)
			m.promises[i + 1] = (struct weft_promise){
			    .parent = WEFT_NONE, .became = WEFT_NONE, .start_ns = starts[t][i], .end_ns = 100};
		assert_int_equal(weft_layout_create(&l, &m, NULL), WEFT_OK);
		assert_int_equal(l->row_count, 3);
		for (uint32_t i = 0; i < 3; i++) {
			uint32_t earlier = 0;
			for (uint32_t k = 0; k < 3; k++)
				earlier += starts[t][k] < starts[t][i] || (starts[t][k] == starts[t][i] && k < i);
			assert_int_equal(l->rows[i + 1], earlier);
		}
		weft_layout_destroy(l);
		free(m.promises);
	}
}

/* Children are older than their parents, which only a damaged trace can contain. */
static void test_promise_older_than_its_creator_gets_a_row(void **state)
{
	(void)state;
	struct weft_model m = model_of(5001);
	for (uint32_t i = 1; i <= 5000; i++) {
		m.promises[i] = (struct weft_promise){.created_by = 0, .parent = i < 5000 ? i + 1 : 0, .became = WEFT_NONE};
		m.promises[i].start_ns = i % 7;
		m.promises[i].end_ns = i % 7 + 10;
	}
	lay_out(&m);
}

/* No rule can hold for a whole cycle, but the layout terminates. */
static void test_layout_of_promises_creating_each_other_terminates(void **state)
{
	(void)state;
	struct weft_model m = model_of(4);
	for (uint32_t i = 1; i < 4; i++)
		m.promises[i] = (struct weft_promise){.parent = i % 3 + 1, .became = WEFT_NONE, .start_ns = i, .end_ns = 9};
	struct weft_layout *l;
	assert_int_equal(weft_layout_create(&l, &m, NULL), WEFT_OK);
	assert_int_equal(l->row_count, 3);
	weft_layout_destroy(l);
	free(m.promises);
}

static void test_layouts_of_extreme_traces_waste_few_rows(void **state)
{
	(void)state;
	enum { MANY = 1000000 };
	/* Each promise is created by the one before, and all are alive at the end. */
	struct weft_model m = model_of(MANY + 1);
	for (uint32_t i = 1; i <= MANY; i++)
		m.promises[i] = (struct weft_promise){.parent = i - 1, .became = WEFT_NONE, .start_ns = i, .end_ns = MANY + 1};
	assert_int_equal(lay_out(&m), MANY);

	/* Each promise is created by the one before when that one ends, so one row is enough. */
	m = model_of(MANY + 1);
	for (uint32_t i = 1; i <= MANY; i++)
		m.promises[i] = (struct weft_promise){.parent = i - 1, .became = WEFT_NONE, .start_ns = i, .end_ns = i + 1};
	assert_int_equal(lay_out(&m), 1);

	/* A parent has a thousand children at a time. */
	m = model_of(200002);
	m.promises[1] = (struct weft_promise){.became = WEFT_NONE, .start_ns = 0, .end_ns = 300000};
	for (uint32_t i = 2; i <= 200001; i++)
		m.promises[i] = (struct weft_promise){.parent = 1, .became = WEFT_NONE, .start_ns = i, .end_ns = i + 1000};
	assert_int_equal(lay_out(&m), 1001);

	/* A hundred promises overlap like the steps of a stair; each has a child, and long-lived children would push the other
	 * promises down. */
	m = model_of(201);
	for (uint32_t i = 1; i <= 100; i++) {
		m.promises[i] =
		    (struct weft_promise){.parent = i - 1, .became = WEFT_NONE, .start_ns = 10 * i, .end_ns = 10 * i + 11};
		m.promises[100 + i] = (struct weft_promise){
		    .parent = i, .became = WEFT_NONE, .start_ns = 10 * i + 5, .end_ns = i % 10 ? 10 * i + 8 : 5000};
	}
	assert_true(lay_out(&m) <= 112);
}

/* Six handles of a loop, all alive at once, without runs. */
static struct weft_model six_handles(void)
{
	static struct weft_run runs[] = {{90, 91}};
	struct weft_model m = model_of(9);
	m.promises[1] = (struct weft_promise){.kind = WEFT_KIND_LOOP, .became = WEFT_NONE, .end_ns = 100};
	for (uint32_t i = 2; i < 8; i++)
		m.promises[i] = (struct weft_promise){.kind = WEFT_KIND_OS_SIGNAL,
		    .parent = 1,
		    .created_by = 1,
		    .became = WEFT_NONE,
		    .start_ns = i,
		    .end_ns = 50 + i};
	/* A promise of another kind is alive at the same time. */
	m.promises[8] = (struct weft_promise){.parent = 1, .created_by = 1, .became = WEFT_NONE, .start_ns = 8, .end_ns = 100};
	m.runs = runs;
	return m;
}

/* Lays out six handles, and checks that only the handle `apart`, or none if it is 0, has a row of its own. */
static void expect_apart(struct weft_model *m, uint32_t apart)
{
	struct weft_layout *l;
	assert_int_equal(weft_layout_create(&l, m, NULL), WEFT_OK);
	check_layout(m, l);
	assert_int_equal(l->fold_count, 1);
	assert_int_equal(l->folds[0].count, apart ? 5 : 6);
	for (uint32_t i = 2; i < 8; i++)
		assert_int_equal(l->rows[i] == l->rows[apart == 2 ? 3 : 2], i != apart);
	assert_true(l->rows[8] != l->rows[apart == 2 ? 3 : 2]);
	weft_layout_destroy(l);
	free(m->promises);
}

static void test_idle_handles_are_folded(void **state)
{
	(void)state;
	struct weft_model m = six_handles();
	expect_apart(&m, 0);

	/* The callback of a close runs after the end; an earlier run counts as an action. */
	m = six_handles();
	for (uint32_t i = 5; i <= 9; i++)
		m.promises[i].runs = 1; /* promise 4 has the run */
	expect_apart(&m, 0);
	m = six_handles();
	for (uint32_t i = 5; i <= 9; i++)
		m.promises[i].runs = 1;
	m.promises[4].end_ns = 95;
	expect_apart(&m, 4);

	/* A handle of another kind, another OS thread or another parent does not fold. */
	m = six_handles();
	m.promises[3].kind = WEFT_KIND_POLL;
	expect_apart(&m, 3);
	m = six_handles();
	m.promises[2].stream = 1;
	expect_apart(&m, 2);
	m = six_handles();
	m.promises[7].parent = 8;
	expect_apart(&m, 7);

	/* A handle that failed, was merged with another promise, or created another promise does not fold. */
	m = six_handles();
	m.promises[6].end = WEFT_END_FAILED;
	expect_apart(&m, 6);
	m = six_handles();
	m.promises[6].flags = WEFT_PROMISE_NEVER_RESOLVED;
	expect_apart(&m, 6);
	m = six_handles();
	m.promises[8].became = 5;
	expect_apart(&m, 5);
	m = six_handles();
	m.promises[8].created_by = 2;
	expect_apart(&m, 2);

	/* Being ended by another promise is not an action of a handle; other links are. */
	for (uint8_t kind = 0; kind < WEFT_LINK_KINDS; kind++) {
		struct weft_link from = {.from = 4, .to = 1, .kind = kind}, to = {.from = 1, .to = 4, .kind = kind};
		m = six_handles();
		m.links = &from;
		m.link_count = 1;
		expect_apart(&m, 4);
		m = six_handles();
		m.promises[1].kind = WEFT_KIND_TASK;
		m.links = &to;
		m.link_count = 1;
		expect_apart(&m, kind == WEFT_LINK_RESOLVE ? 0 : 4);
	}

	/* The wait of a loop for a handle that keeps it alive is no action of the handle. */
	struct weft_link kept = {.from = 1, .to = 4, .kind = WEFT_LINK_AWAIT};
	m = six_handles();
	m.promises[1].kind = WEFT_KIND_LOOP;
	m.links = &kept;
	m.link_count = 1;
	expect_apart(&m, 0);

	/* A handle that starts after the others have ended takes their row if it is free. */
	m = six_handles();
	m.promises[7].start_ns = 57;
	m.promises[7].end_ns = 60;
	struct weft_layout *l;
	assert_int_equal(weft_layout_create(&l, &m, NULL), WEFT_OK);
	check_layout(&m, l);
	assert_int_equal(l->folds[0].count, 5);
	assert_int_equal(l->row_begin[l->rows[2] + 1] - l->row_begin[l->rows[2]], 2);
	weft_layout_destroy(l);
	free(m.promises);

	/* Promises of kind `listen` never fold. */
	m = six_handles();
	for (uint32_t i = 2; i < 8; i++)
		m.promises[i].kind = WEFT_KIND_LISTEN;
	assert_int_equal(lay_out(&m), 8);
}

/* Returns 300 promises that overlap like the steps of a stair; each has a child that would push the next step down if the child
 * were placed first. */
static struct weft_model stair_with_children(size_t more)
{
	struct weft_model m = model_of(601 + more);
	for (uint32_t i = 1; i <= 300; i++) {
		m.promises[i] =
		    (struct weft_promise){.parent = i - 1, .became = WEFT_NONE, .start_ns = 10 * i, .end_ns = 10 * i + 11};
		m.promises[300 + i] =
		    (struct weft_promise){.parent = i, .became = WEFT_NONE, .start_ns = 10 * i + 5, .end_ns = 10 * i + 25};
	}
	return m;
}

/* A handle that ran more than once has a track of its own.  If the handle is folded into another line, its promises go to the
 * rows of the thread. */
static void test_promises_of_a_folded_handle_have_rows_within_the_layout(void **state)
{
	(void)state;
	enum { OTHER = 1, ACTOR = 2, FIRST = 3, COUNT = FIRST + 12 };
	struct weft_model m = model_of(COUNT);
	struct weft_run runs[2] = {{10, 20}, {30, 40}};
	uint32_t leader_of[COUNT];
	uint64_t only[] = {(1ull << COUNT) - 2};
	struct weft_layout *whole = NULL, *parts[2] = {0};
	for (uint32_t i = 0; i < COUNT; i++) {
		m.promises[i] =
		    i < FIRST ? promise(WEFT_KIND_HANDLE, WEFT_NONE, i, 1000) : promise(WEFT_KIND_FS, ACTOR, 100 + i, 500 + i);
		leader_of[i] = WEFT_NONE;
	}
	for (uint32_t i = FIRST; i <= COUNT; i++)
		m.promises[i].runs = 2; /* ACTOR has the runs 0 and 1 */
	m.runs = runs;
	m.end_ns = 1000;
	leader_of[ACTOR] = OTHER;
	assert_int_equal(weft_layout_create(&whole, &m, NULL), WEFT_OK);
	assert_int_equal(whole->track_count, 1);
	assert_int_equal(weft_layout_create_folded(&parts[0], &m, whole, NULL, leader_of, NULL), WEFT_OK);
	assert_int_equal(weft_layout_create_folded(&parts[1], &m, whole, only, leader_of, NULL), WEFT_OK);
	for (int k = 0; k < 2; k++) {
		check_bands(&m, parts[k]);
		check_tracks(&m, parts[k]);
		assert_int_equal(parts[k]->row_count, 1 + COUNT - FIRST);
		for (uint32_t i = 1; i < COUNT; i++)
			assert_true(parts[k]->rows[i] < parts[k]->row_count);
		weft_layout_destroy(parts[k]);
	}
	weft_layout_destroy(whole);
	free(m.promises);
}

static void test_overlapping_promises_need_as_many_rows_as_are_alive(void **state)
{
	(void)state;
	struct weft_model m = stair_with_children(0);
	assert_int_equal(lay_out(&m), 4);
	/* Promises that start after the end of all others get the first rows again. */
	m = stair_with_children(300);
	for (uint32_t i = 601; i <= 900; i++)
		m.promises[i] = (struct weft_promise){.became = WEFT_NONE, .start_ns = 5000, .end_ns = 6000};
	assert_int_equal(lay_out(&m), 300);
}

/* In a loop, each iteration creates the next one just before its own end. */
static void test_million_sequential_promises_need_few_rows(void **state)
{
	(void)state;
	enum { TURNS = 1000000 };
	struct weft_model m = model_of(2 * TURNS + 1);
	for (uint32_t i = 1; i <= TURNS; i++) {
		m.promises[i] =
		    (struct weft_promise){.parent = i - 1, .became = WEFT_NONE, .start_ns = 10 * i, .end_ns = 10 * i + 12};
		m.promises[TURNS + i] =
		    (struct weft_promise){.parent = i, .became = WEFT_NONE, .start_ns = 10 * i + 1, .end_ns = 10 * i + 9};
	}
	assert_int_equal(lay_out(&m), 3);
}

/* The row of a callee is below the row of its caller; a later callee of the same caller has the row of the first one. */
static void test_row_of_a_caller_is_above_the_row_of_its_callee(void **state)
{
	(void)state;
	static const int64_t times[][3] = {{0, 0, 100}, {1, 10, 90}, {2, 20, 80}, {3, 30, 70}, {4, 65, 75}, {3, 72, 78}};
	struct weft_layout *l;
	struct weft_model m = model_of(7);
	for (uint32_t i = 0; i < 6; i++)
		m.promises[i + 1] = (struct weft_promise){.parent = (uint32_t)times[i][0],
		    .created_by = (uint32_t)times[i][0],
		    .became = WEFT_NONE,
		    .start_ns = times[i][1],
		    .end_ns = times[i][2]};
	assert_int_equal(weft_layout_create(&l, &m, NULL), WEFT_OK);
	check_layout(&m, l);
	static const uint32_t rows[] = {0, 1, 2, 3, 4, 3};
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(l->rows[i + 1], rows[i]);
	weft_layout_destroy(l);
	free(m.promises);
}

/* Checks the actor of the track of each promise; 0 stands for no track. */
static void expect_owners(const struct weft_model *m, const uint32_t *owners)
{
	struct weft_layout *l;
	assert_int_equal(weft_layout_create(&l, m, NULL), WEFT_OK);
	check_layout(m, l);
	for (uint32_t i = 1; i < m->promise_count; i++)
		assert_int_equal(l->track_of[i] == WEFT_NONE ? 0 : l->tracks[l->track_of[i]].actor, owners[i]);
	weft_layout_destroy(l);
}

static void test_promises_are_on_the_track_of_their_actor(void **state)
{
	(void)state;
	struct weft_model m = model_of(12);
	m.promises[1] = promise(WEFT_KIND_LISTEN, 0, 0, 1000);
	m.promises[2] = promise(WEFT_KIND_CONNECTION, 1, 10, 900);
	m.promises[3] = promise(WEFT_KIND_BIND, 2, 20, 30); /* belongs to connection 2 through any chain of binds */
	m.promises[4] = promise(WEFT_KIND_BIND, 3, 30, 40);
	m.promises[5] = promise(WEFT_KIND_REQUEST, 4, 35, 60);
	m.promises[6] = promise(WEFT_KIND_STREAM_READ, 5, 36, 50);
	m.promises[7] = promise(WEFT_KIND_BIND, 6, 50, 80);
	m.promises[8] = promise(WEFT_KIND_STREAM_READ, 7, 60, 100); /* belongs to connection 2, because the request has ended */
	m.promises[9] = promise(WEFT_KIND_CLOSE, 8, 900, 950); /* belongs to listen 1, because the connection has ended, too */
	m.promises[10] = promise(WEFT_KIND_TIMER, 0, 5, 6);
	m.promises[11] = promise(WEFT_KIND_CONNECTION, 1, 400, 500); /* this connection owns no promise, so it has no track */
	expect_owners(&m, (const uint32_t[]){0, 0, 1, 2, 2, 2, 5, 5, 2, 1, 0, 1});
	/* Another OS thread has its own rows. */
	m.promises[6].stream = m.promises[7].stream = 1;
	expect_owners(&m, (const uint32_t[]){0, 0, 1, 2, 2, 2, 0, 0, 0, 0, 0, 1});
	/* A timer whose code runs again is an actor. */
	struct weft_run runs[2] = {{1, 2}, {3, 4}};
	free(m.promises);
	m = model_of(3);
	m.runs = runs;
	m.promises[1] = promise(WEFT_KIND_TIMER, 0, 0, 9);
	m.promises[2] = promise(WEFT_KIND_BIND, 1, 1, 8);
	m.promises[2].runs = m.promises[3].runs = 1;
	expect_owners(&m, (const uint32_t[]){0, 0, 0});
	m.promises[2].runs = m.promises[3].runs = 2;
	expect_owners(&m, (const uint32_t[]){0, 0, 1});
	free(m.promises);
}

/* The server's code only creates and ends a connection and a request; promises that are created while these are open belong to
 * them. */
static void test_promises_created_while_a_request_is_open_are_on_its_track(void **state)
{
	(void)state;
	struct weft_model m = model_of(9);
	m.promises[1] = promise(WEFT_KIND_BIND, 0, 0, 1000); /* serves */
	m.promises[2] = promise(WEFT_KIND_BIND, 1, 5, 9);
	m.promises[3] = promise(WEFT_KIND_CONNECTION, 1, 10, 900);
	m.promises[4] = promise(WEFT_KIND_BIND, 1, 20, 100);
	m.promises[5] = promise(WEFT_KIND_REQUEST, 4, 30, 60);
	m.promises[6] = promise(WEFT_KIND_FS, 4, 31, 50);
	m.promises[7] = promise(WEFT_KIND_FS, 4, 70, 80);
	m.promises[8] = promise(WEFT_KIND_CLOSE, 1, 950, 960);
	expect_owners(&m, (const uint32_t[]){0, 0, 0, 0, 3, 3, 5, 3, 0});
	/* A promise that is created while two requests are open belongs to neither. */
	m.promises[7] = promise(WEFT_KIND_REQUEST, 4, 40, 80);
	expect_owners(&m, (const uint32_t[]){0, 0, 0, 0, 3, 3, 3, 3, 0});
	/* A connection that creates a promise itself does not own the promises that other code creates while it is open. */
	m.promises[7] = promise(WEFT_KIND_FS, 3, 40, 80);
	expect_owners(&m, (const uint32_t[]){0, 0, 0, 0, 0, 0, 5, 3, 0});
	free(m.promises);
}

/* Returns the number of rows of the first of two lasting connections.  The first creates `burst` promises at once at an early
 * time, the second at a late time; between these, the second creates `passing` promises one after the other. */
static uint32_t rows_of_a_connection(uint32_t burst, uint32_t passing)
{
	struct weft_model m = model_of(3 + 2 * (size_t)burst + passing);
	struct weft_layout *l;
	m.end_ns = 100 * (int64_t)passing + 10000;
	m.promises[1] = m.promises[2] = promise(WEFT_KIND_CONNECTION, 0, 0, m.end_ns);
	for (uint32_t i = 3; i < 3 + burst; i++)
		m.promises[i] = promise(WEFT_KIND_FS, 1, 100, 200);
	for (uint32_t i = 0; i < passing; i++)
		m.promises[3 + burst + i] = promise(WEFT_KIND_FS, 2, 1000 + 100 * i, 1050 + 100 * i);
	for (uint32_t i = 3 + burst + passing; i < m.promise_count; i++)
		m.promises[i] = promise(WEFT_KIND_FS, 2, m.end_ns - 1000, m.end_ns - 900);
	assert_int_equal(weft_layout_create(&l, &m, NULL), WEFT_OK);
	check_layout(&m, l);
	assert_int_equal(l->track_count, 2);
	uint32_t rows = l->tracks[0].row_count;
	weft_layout_destroy(l);
	free(m.promises);
	return rows;
}

/* Many lasting connections, each of which creates its promises one after the other. */
static void test_number_of_rows_of_a_connection_equals_its_live_promises(void **state)
{
	(void)state;
	enum { CONNECTIONS = 200, READS = 30 };
	struct weft_model m = model_of(1 + CONNECTIONS * (1 + READS));
	struct weft_layout *l;
	m.end_ns = 1000000;
	for (uint32_t i = 1; i < m.promise_count; i++) {
		uint32_t of = 1 + (i - 1) % CONNECTIONS, turn = (i - 1) / CONNECTIONS;
		m.promises[i] = turn == 0 ? promise(WEFT_KIND_CONNECTION, 0, 0, m.end_ns)
					  : promise(WEFT_KIND_FS, of, 30000 * turn, 30000 * turn + 20000);
	}
	assert_int_equal(weft_layout_create(&l, &m, NULL), WEFT_OK);
	check_layout(&m, l);
	for (size_t t = 0; t < CONNECTIONS; t++)
		assert_int_equal(l->tracks[t].row_count, 2);
	assert_int_equal(l->row_count, 2 * CONNECTIONS);
	weft_layout_destroy(l);
	free(m.promises);
}

/* The limit is 14 rows for 8 live promises and 2 tracks, and 17 rows for 10 live promises. */
static void test_actor_keeps_its_block_of_rows_if_the_row_limit_allows(void **state)
{
	(void)state;
	assert_int_equal(rows_of_a_connection(6, 0), 7);
	assert_int_equal(rows_of_a_connection(6, 1000), 7);
	assert_int_equal(rows_of_a_connection(8, 0), 0); /* separate blocks would need 18 rows */
}

/* If a ring has overwritten the creator of a promise, the promise belongs to its waiter. */
static void test_promises_without_a_creator_belong_to_their_waiters(void **state)
{
	(void)state;
	struct weft_model m = model_of(6);
	m.promises[1] = promise(WEFT_KIND_PREEXISTING, 0, 0, 20);
	m.promises[1].flags = WEFT_PROMISE_START_UNKNOWN;
	m.promises[2] = promise(WEFT_KIND_BIND, 1, 15, 40);
	m.promises[3] = promise(WEFT_KIND_CONNECTION, 0, 0, 100);
	m.promises[4] = promise(WEFT_KIND_PREEXISTING, 0, 0, 20); /* this promise has no waiter */
	m.promises[4].flags = WEFT_PROMISE_START_UNKNOWN;
	m.promises[5] = promise(WEFT_KIND_BIND, 4, 15, 40);
	struct weft_link links[] = {{.time_ns = 30, .from = 3, .to = 2, .kind = WEFT_LINK_AWAIT},
	    {.time_ns = 31, .from = 2, .to = 2, .kind = WEFT_LINK_AWAIT},
	    {.time_ns = 32, .from = 2, .to = 3, .kind = WEFT_LINK_AWAIT}};
	m.links = links;
	m.link_count = 3;
	expect_owners(&m, (const uint32_t[]){0, 3, 3, 0, 0, 0});
	/* This also holds if the waiter owns no other promise. */
	m.promises[2].created_by = WEFT_SYSTEM;
	links[0].to = 1;
	expect_owners(&m, (const uint32_t[]){0, 3, 0, 0, 0, 0});
	/* A promise with a recorded creation by the system has no owner, and neither has an actor. */
	links[0].to = 2;
	expect_owners(&m, (const uint32_t[]){0, 0, 0, 0, 0, 0});
	links[0].to = 1;
	m.promises[1].kind = WEFT_KIND_CONNECTION;
	m.promises[2].created_by = 1;
	expect_owners(&m, (const uint32_t[]){0, 0, 1, 0, 0, 0});
	free(m.promises);
}

/* Checks the promises that the focus on one promise shows: `wanted` has their letters, 'b' for promise 1 and so on; `owners` has
 * the owner of the track of each of them, '-' for none. */
static void expect_focus(const struct weft_model *m, uint32_t promise, const char *wanted, const char *owners)
{
	struct weft_layout *whole, *part;
	uint64_t *only;
	size_t count;
	char got[64] = "", of[64] = "";
	assert_int_equal(weft_layout_create(&whole, m, NULL), WEFT_OK);
	assert_int_equal(weft_focus_find(&only, &count, m, whole, promise, NULL), WEFT_OK);
	assert_int_equal(weft_layout_create_folded(&part, m, whole, only, NULL, NULL), WEFT_OK);
	for (uint32_t i = 1; i < m->promise_count; i++) {
		bool is_in = only[i / 64] >> i % 64 & 1;
		assert_int_equal(part->rows[i] != WEFT_NONE, is_in);
		if (!is_in)
			continue;
		uint32_t track = part->track_of[i];
		of[strlen(got)] = (char)(track == WEFT_NONE ? '-' : 'a' + part->tracks[track].actor);
		got[strlen(got)] = (char)('a' + i);
	}
	assert_string_equal(got, wanted);
	assert_string_equal(of, owners);
	assert_int_equal(count, strlen(wanted));
	check_tracks(m, part);
	for (uint32_t r = 0; r < part->row_count; r++)
		assert_true(part->row_begin[r] < part->row_begin[r + 1]);
	assert_int_equal(part->row_begin[part->row_count], count);
	free(only);
	weft_layout_destroy(part);
	weft_layout_destroy(whole);
}

static void test_focus_selects_related_promises(void **state)
{
	(void)state;
	struct weft_model m = model_of(12);
	m.promises[1] = promise(WEFT_KIND_LISTEN, 0, 0, 1000);
	m.promises[2] = promise(WEFT_KIND_CONNECTION, 1, 10, 900);
	m.promises[3] = promise(WEFT_KIND_REQUEST, 2, 20, 60);
	m.promises[4] = promise(WEFT_KIND_BIND, 3, 30, 40);
	m.promises[5] = promise(WEFT_KIND_BIND, 4, 65, 90); /* created by the request's code after the end of the request */
	m.promises[6] = promise(WEFT_KIND_CONNECTION, 1, 10, 900);
	m.promises[7] = promise(WEFT_KIND_REQUEST, 6, 20, 60);
	m.promises[8] = promise(WEFT_KIND_FS, 7, 30, 50);
	m.promises[9] = promise(WEFT_KIND_LOCK, 0, 0, 1000);
	m.promises[10] = promise(WEFT_KIND_BIND, 0, 0, 1000);
	m.promises[11] = promise(WEFT_KIND_BIND, 10, 5, 1000);
	struct weft_link links[] = {
	    {.time_ns = 35, .from = 4, .to = 9, .kind = WEFT_LINK_AWAIT}, /* the request waits for a lock, */
	    {.time_ns = 36, .from = 9, .to = 7, .kind = WEFT_LINK_AWAIT}, /* another request holds the lock, */
	    {.time_ns = 37, .from = 7, .to = 8, .kind = WEFT_LINK_AWAIT}, /* whose own wait for a file is not followed */
	    {.time_ns = 38, .from = 10, .to = 3, .kind = WEFT_LINK_AWAIT},
	    {.time_ns = 39, .from = 10, .to = 11, .kind = WEFT_LINK_AWAIT},
	    {.time_ns = 40, .from = 8, .to = 11, .kind = WEFT_LINK_SIGNAL},
	    {.time_ns = 70, .from = 9, .to = 11, .kind = WEFT_LINK_READ},
	};
	m.links = links;
	m.link_count = 7;
	expect_focus(&m, 3, "dejk", "-d--");
	/* The focus on a promise that is no actor shows the promises that it created until its end. */
	expect_focus(&m, 4, "ej", "--");
	expect_focus(&m, 5, "f", "-");
	/* The focus on a connection shows all promises for which its requests waited until its end. */
	expect_focus(&m, 2, "cdefj", "-cdc-");
	expect_focus(&m, 8, "hi", "-h");
	expect_focus(&m, 11, "jkl", "---");
	free(m.promises);
}

/* The focus stops at promises that lead to all others, such as a lock, the main thread or its loop; and at a socket that two
 * clients use in turn. */
static void test_focus_stops_at_shared_promises(void **state)
{
	(void)state;
	struct weft_model m = model_of(14);
	m.promises[1] = promise(WEFT_KIND_THREAD, 0, 0, 1000);
	m.promises[2] = promise(WEFT_KIND_LOOP, 1, 5, 1000);
	m.promises[3] = promise(WEFT_KIND_LISTEN, 0, 6, 1000);
	m.promises[4] = promise(WEFT_KIND_CONNECTION, 3, 10, 900); /* two clients */
	m.promises[5] = promise(WEFT_KIND_CONNECTION, 3, 10, 900);
	m.promises[6] = promise(WEFT_KIND_CONNECTION, 4, 20, 900); /* a connection that the server made for the first client */
	m.promises[6].flags = WEFT_PROMISE_CONNECTED;
	m.promises[7] = promise(WEFT_KIND_STREAM_READ, 6, 30, 40);
	m.promises[8] = promise(WEFT_KIND_STREAM_WRITE, 6, 40, 50); /* its response to the first client */
	m.promises[9] = promise(WEFT_KIND_STREAM_WRITE, 5, 60, 70); /* the request of the second client */
	m.promises[10] = promise(WEFT_KIND_STREAM_WRITE, 6, 80, 90);
	m.promises[11] = promise(WEFT_KIND_LOCK, 0, 0, 1000);
	m.promises[12] = promise(WEFT_KIND_STREAM_READ, 4, 15, 95);
	m.promises[13] = promise(WEFT_KIND_TASK, 0, 100, 900);
	struct weft_link links[] = {
	    {.time_ns = 35, .from = 4, .to = 11, .kind = WEFT_LINK_AWAIT}, /* the client waits for a lock, */
	    {.time_ns = 36, .from = 11, .to = 1, .kind = WEFT_LINK_AWAIT}, /* the main thread holds it, */
	    {.time_ns = 37, .from = 1, .to = 2, .kind = WEFT_LINK_AWAIT},
	    {.time_ns = 38, .from = 2, .to = 3, .kind = WEFT_LINK_AWAIT},
	    {.time_ns = 50, .from = 4, .to = 8, .kind = WEFT_LINK_READ},
	    {.time_ns = 55, .from = 6, .to = 12, .kind = WEFT_LINK_READ}, /* a read of the first client */
	    {.time_ns = 70, .from = 6, .to = 9, .kind = WEFT_LINK_READ},
	    {.time_ns = 90, .from = 5, .to = 10, .kind = WEFT_LINK_READ},
	    {.time_ns = 110, .from = 13, .to = 6, .kind = WEFT_LINK_AWAIT},
	    {.time_ns = 120, .from = 13, .to = 2, .kind = WEFT_LINK_AWAIT},
	};
	m.links = links;
	m.link_count = 6;
	/* A socket that only one client uses is shown with all its promises in the focus on the client. */
	expect_focus(&m, 4, "eghiklm", "-eggg-e");
	m.link_count = 7; /* now the socket also reads the request of the second client */
	expect_focus(&m, 4, "egilm", "-eg-e");
	links[6].from = 5; /* now the second client reads a response of the socket */
	m.link_count = 8;
	expect_focus(&m, 4, "egilm", "-eg-e");
	links[6].from = 6;
	/* The focus on the socket shows its promises for both clients. */
	expect_focus(&m, 6, "ghijkm", "-gg-g-");
	/* The focus on a task shows a loop and a socket for which it waits, but not their inputs; the focus on the loop shows the
	 * inputs of the loop. */
	m.link_count = 10;
	expect_focus(&m, 13, "cgn", "---");
	expect_focus(&m, 2, "bcdn", "-b--");
	free(m.promises);
}

enum { MANY = 51000 /* requests of four promises */ };

/* Returns a server with connections; each has requests one after another (or, with `bursts`, all at once), and each request has
 * three reads at once. */
static struct weft_model server_of(uint32_t connections, uint32_t requests, bool bursts)
{
	uint32_t n = 1;
	struct weft_model m = model_of(1 + connections * (1 + requests * 4));
	for (uint32_t c = 0; c < connections; c++) {
		uint32_t connection = n;
		m.promises[n++] = promise(WEFT_KIND_CONNECTION, 0, c, 100 * requests * connections + 1000);
		for (uint32_t i = 0; i < requests; i++) {
			int64_t at = bursts ? 1000 * c + 1 : 1000 + 100 * i;
			uint32_t request = n;
			m.promises[n++] = promise(WEFT_KIND_REQUEST, connection, at, at + 90);
			for (uint32_t k = 0; k < 3; k++)
				m.promises[n++] = promise(WEFT_KIND_FS, request, at + 10 + k, at + 80);
		}
	}
	m.end_ns = 100 * requests * connections + 1000;
	return m;
}

/* Returns the number of rows of such a server. */
static uint32_t serve(uint32_t connections, uint32_t requests, bool bursts)
{
	struct weft_model m = server_of(connections, requests, bursts);
	return lay_out(&m);
}

static void test_number_of_rows_of_a_server_is_near_its_live_promises(void **state)
{
	(void)state;
	assert_int_equal(serve(12, 10, false), 12 * 5);
	assert_int_equal(serve(12, 10000, false), 12 * 5);
	/* Each connection has many requests at once while the others have none: separate blocks of rows would need 10 times as
	 * many rows as there are live promises. */
	assert_true(serve(20, 10, true) <= (20 + 10 * 4) * 3 / 2 + 30);
	assert_true(serve(20, MANY / 20, true) <= (20 + MANY / 20 * 4) * 3 / 2 + 20 + MANY / 20);
}

/* With so many promises, other OS threads do a part of the layout. */
static void test_focus_on_a_connection_shows_all_its_requests(void **state)
{
	(void)state;
	struct weft_model m = server_of(2, MANY, false);
	struct weft_layout *whole, *part;
	uint64_t *only;
	size_t count;
	assert_int_equal(weft_layout_create(&whole, &m, NULL), WEFT_OK);
	assert_int_equal(weft_focus_find(&only, &count, &m, whole, 1, NULL), WEFT_OK);
	assert_int_equal(count, 1 + 4 * MANY);
	assert_int_equal(weft_layout_create_folded(&part, &m, whole, only, NULL, NULL), WEFT_OK);
	assert_int_equal(part->row_count, 5);
	assert_int_equal(part->track_count, 1 + MANY);
	check_tracks(&m, part);
	check_bands(&m, part);
	for (uint32_t p = 1; p < m.promise_count; p++)
		assert_int_equal(part->rows[p] != WEFT_NONE, only[p / 64] >> p % 64 & 1);
	free(only);
	weft_layout_destroy(part);
	weft_layout_destroy(whole);
	free(m.promises);
}

/* One of three promises starts much later than the others: its start time differs from theirs in one bit. */
static void test_start_times_differing_in_one_bit_are_sorted(void **state)
{
	(void)state;
	for (uint32_t late = 1; late <= 3; late++)
		for (int bit = 2; bit < 63; bit++) {
			struct weft_model m = model_of(4);
			for (uint32_t i = 1; i <= 3; i++)
				m.promises[i] = (struct weft_promise){
				    .parent = WEFT_NONE, .became = WEFT_NONE, .start_ns = i, .end_ns = i + 1};
			m.promises[late].start_ns = (int64_t)1 << bit | late;
			m.promises[late].end_ns = m.promises[late].start_ns + 1;
			assert_int_equal(lay_out(&m), 1);
		}
}

static void test_empty_model_has_no_rows(void **state)
{
	(void)state;
	struct weft_model m = model_of(1);
	assert_int_equal(lay_out(&m), 0);
}

static void test_layout_of_net_ctf_needs_at_most_53_rows(void **state)
{
	(void)state;
	char path[4096];
	struct weft_trace *trace;
	struct weft_model *m;
	struct weft_layout *l;
	snprintf(path, sizeof path, "%s/traces/net.ctf", shared);
	if (access(path, R_OK) != 0) {
		print_message("skipped: %s is not there\n", path);
		skip();
	}
	assert_int_equal(weft_trace_open(&trace, path, NULL), WEFT_OK);
	assert_int_equal(weft_model_build(&m, trace, NULL, NULL), WEFT_OK);
	assert_int_equal(weft_layout_create(&l, m, NULL), WEFT_OK);
	check_layout(m, l);
	assert_true(l->row_count <= 53);
	weft_layout_destroy(l);
	weft_model_destroy(m);
	weft_trace_close(trace);
}

int main(int argc, char **argv)
{
	shared = getenv("WEFT_SHARED") ? getenv("WEFT_SHARED") : argc > 1 ? argv[1] : "../shared";
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_layouts_of_random_traces_keep_every_rule),
	    cmocka_unit_test(test_smallest_kinds_share_the_last_row_group),
	    cmocka_unit_test(test_promise_with_an_earlier_start_gets_the_upper_row),
	    cmocka_unit_test(test_promise_older_than_its_creator_gets_a_row),
	    cmocka_unit_test(test_layout_of_promises_creating_each_other_terminates),
	    cmocka_unit_test(test_layouts_of_extreme_traces_waste_few_rows),
	    cmocka_unit_test(test_idle_handles_are_folded),
	    cmocka_unit_test(test_promises_of_a_folded_handle_have_rows_within_the_layout),
	    cmocka_unit_test(test_overlapping_promises_need_as_many_rows_as_are_alive),
	    cmocka_unit_test(test_million_sequential_promises_need_few_rows),
	    cmocka_unit_test(test_row_of_a_caller_is_above_the_row_of_its_callee),
	    cmocka_unit_test(test_promises_are_on_the_track_of_their_actor),
	    cmocka_unit_test(test_promises_created_while_a_request_is_open_are_on_its_track),
	    cmocka_unit_test(test_number_of_rows_of_a_connection_equals_its_live_promises),
	    cmocka_unit_test(test_actor_keeps_its_block_of_rows_if_the_row_limit_allows),
	    cmocka_unit_test(test_promises_without_a_creator_belong_to_their_waiters),
	    cmocka_unit_test(test_focus_selects_related_promises),
	    cmocka_unit_test(test_focus_stops_at_shared_promises),
	    cmocka_unit_test(test_number_of_rows_of_a_server_is_near_its_live_promises),
	    cmocka_unit_test(test_focus_on_a_connection_shows_all_its_requests),
	    cmocka_unit_test(test_start_times_differing_in_one_bit_are_sorted),
	    cmocka_unit_test(test_empty_model_has_no_rows),
	    cmocka_unit_test(test_layout_of_net_ctf_needs_at_most_53_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
