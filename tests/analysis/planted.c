/* planted.c: records random programs of promises, each with one fault and without it, and checks that weft explain finds the
 *fault and nothing else.
 *
 *	planted COUNT [FIRST-SEED]	COUNT programs with each kind of fault, and healthy ones; prints a table
 *	planted --seeds FILE		programs with wrong findings in earlier versions: lines of HOW FAULT SEED
 *	planted --show HOW FAULT SEED OUT	explains one program, and writes its trace
 *
 * Each program is recorded three times: whole; into a ring that is too small for its events; and cut, as if the program had been
 *killed or its file had been shortened.  On whole traces, the planted fault must be the first finding of its kind and name the
 *planted promise, and a healthy program must have no alarm.  On other traces, no certain alarm may be wrong, and a given
 *percentage of the faults must be found.  Only a trace that was cut may be unreadable.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/findings/explain.h"
#include "planted.h"

static const char *const fault_names[FAULTS] = {"healthy", "lost wake-up", "cycle of 2 to 6", "forgotten resolver",
    "unhandled failure", "stall of 20 ms", "leak", "starvation"};

/* ---- Findings ---- */

struct judged {
	bool found, wrong, unsure;
	bool unreadable;
	bool doubtful; /* the finding is not certain, since the trace is incomplete */
};

/* Returns whether the promise is the planted one, or its merge target. */
static bool is_planted(const struct weft_model *m, uint32_t promise)
{
	for (size_t i = 0; i < plan.count; i++) {
		uint32_t p = weft_model_find(m, plan.ids[i]);
		while (p != WEFT_NONE && p != promise)
			p = m->promises[p].became;
		if (p == promise)
			return true;
	}
	return false;
}

static bool has_label(const struct weft_model *m, uint32_t p, const char *label)
{
	char name[64];
	weft_model_name(m, p, name, sizeof name);
	return strcmp(name, label) == 0;
}

/* Returns whether the finding is the planted fault with the right name. */
static bool is_right(const struct weft_model *m, const struct weft_finding *finding, bool whole)
{
	size_t members = 0;
	bool named = false;
	switch (plan.fault) {
	case LOST_WAKEUP:
		for (size_t i = 0; i < finding->evidence_count; i++)
			named |= finding->evidence[i].promise != WEFT_NONE && finding->evidence[i].role == WEFT_EVIDENCE_CAUSE &&
				 m->promises[finding->evidence[i].promise].kind == WEFT_KIND_CONDITION &&
				 has_label(m, finding->evidence[i].promise, "planted");
		return finding->kind == WEFT_FINDING_HANG && finding->verdict == WEFT_VERDICT_LOST_WAKEUP && named &&
		       has_label(m, finding->root, "planted");
	case CYCLE:
		for (size_t i = 0; i < finding->evidence_count; i++)
			if (finding->evidence[i].role == WEFT_EVIDENCE_CHAIN) {
				if (!is_planted(m, finding->evidence[i].promise))
					return false;
				members++;
			}
		return finding->kind == WEFT_FINDING_CYCLE && members == plan.count;
	case FORGOTTEN:
		return finding->kind == WEFT_FINDING_HANG && finding->verdict == WEFT_VERDICT_NEVER_TRIED &&
		       is_planted(m, finding->root);
	case FAILURE: return finding->kind == WEFT_FINDING_FAILURE && strstr(finding->title, "planted error");
	case STALL:
		/* If a ring has lost the event that made a promise ready, the promise is no known victim. */
		return finding->kind == WEFT_FINDING_STALL && is_planted(m, finding->promise) &&
		       (whole ? finding->weight / (20u * MS) == plan.victims : finding->weight / (20u * MS) <= plan.victims);
	case LEAK: return finding->kind == WEFT_FINDING_LEAK && has_label(m, finding->promise, "planted leak");
	case STARVATION: return finding->kind == WEFT_FINDING_STARVATION && is_planted(m, finding->promise);
	default: return false;
	}
}

/* Returns whether the finding is a true consequence of the planted fault, and not the fault itself. */
static bool follows(const struct weft_model *m, const struct weft_finding *finding)
{
	switch (plan.fault) {
	case STALL: /* timers that were due meanwhile are late */
	case STARVATION: return finding->kind == WEFT_FINDING_STALL || finding->kind == WEFT_FINDING_STARVATION;
	default: return false;
	}
}

static struct judged judge(const void *bytes, size_t size, bool whole, bool tell)
{
	static const enum weft_finding_kind wanted[FAULTS] = {[LOST_WAKEUP] = WEFT_FINDING_HANG,
	    [CYCLE] = WEFT_FINDING_CYCLE,
	    [FORGOTTEN] = WEFT_FINDING_HANG,
	    [FAILURE] = WEFT_FINDING_FAILURE,
	    [STALL] = WEFT_FINDING_STALL,
	    [LEAK] = WEFT_FINDING_LEAK,
	    [STARVATION] = WEFT_FINDING_STARVATION};
	struct judged judged = {0};
	struct weft_trace *trace = NULL;
	struct weft_model *model = NULL;
	struct weft_findings *findings = NULL;
	struct weft_error err;
	if (weft_trace_open_memory(&trace, bytes, size, "planted", &err) < 0) {
		if (tell)
			printf("  %s\n", err.what);
		judged.unreadable = true;
		return judged;
	}
	if (weft_model_build(&model, trace, &(struct weft_model_options){.keep_binds = true}, &err) < 0) {
		if (tell)
			printf("  %s\n", err.what);
		judged.unreadable = true;
		weft_trace_close(trace);
		return judged;
	}
	if (weft_explain(&findings, model, NULL, &err) < 0)
		exit(2);
	bool first = true;
	judged.doubtful = findings->doubt;
	for (size_t i = 0; i < findings->count; i++) {
		const struct weft_finding *finding = &findings->findings[i];
		bool right = is_right(model, finding, whole);
		if (tell)
			printf("  %s: %s\n",
			    right                                            ? "right"
			    : finding->severity == WEFT_SEVERITY_INFORMATION ? "information"
			    : finding->sure                                  ? "told"
									     : "not certain",
			    finding->title);
		if (finding->severity == WEFT_SEVERITY_INFORMATION)
			continue;
		if (!finding->sure) {
			judged.unsure = true;
			continue;
		}
		if (plan.fault != HEALTHY && finding->kind == wanted[plan.fault] && first) {
			first = false;
			judged.found = right;
			judged.wrong |= !right;
		} else if (!right && !follows(model, finding)) {
			judged.wrong = true;
		}
	}
	if (whole && plan.fault != HEALTHY && !judged.found)
		judged.wrong = true;
	weft_findings_destroy(findings);
	weft_model_destroy(model);
	weft_trace_close(trace);
	return judged;
}

enum how { WHOLE, WRAPPED, CUT, HOWS };
static const char *const how_names[HOWS] = {"whole", "wrapped", "cut"};

/* Returns the start of the events: the end of the longest run of zeros, which is behind the definitions. */
static size_t begin_of_events(void)
{
	size_t begin = 0, longest = 0, nothing = 0;
	for (size_t i = 0; i < PLANTED_BYTES / 8; i++) {
		if (buffer[i] == 0) {
			nothing++;
			continue;
		}
		if (nothing > longest) {
			longest = nothing;
			begin = 8 * i;
		}
		nothing = 0;
	}
	return begin;
}

static struct judged try_one(enum fault fault, uint64_t seed, enum how how, bool tell)
{
	uint64_t mixed = seed * FAULTS + fault;
	if (how == WHOLE) {
		run_program(fault, seed, PLANTED_BYTES, 0);
		return judge(buffer, PLANTED_BYTES, true, tell);
	}
	if (how == WRAPPED) {
		size_t bytes = (size_t)12288 + mixed % 7 * 4096;
		run_program(fault, seed, bytes, 0);
		return judge(buffer, bytes, false, tell);
	}
	uint64_t cut_ns = (1 + mixed * 2654435761u % 120) * MS;
	run_program(fault, seed, PLANTED_BYTES, cut_ns);
	if (mixed % 3)
		return judge(copy, PLANTED_BYTES, false, tell);
	size_t begin = begin_of_events(), size = PLANTED_BYTES;
	while (size > begin && buffer[size / 8 - 1] == 0)
		size -= 8;
	/* An odd size is never the end of a packet. */
	size = (begin + (size - begin) * (30 + mixed % 70) / 100) | 1;
	memset((char *)buffer + size, 0, PLANTED_BYTES - size);
	memcpy(copy, buffer, PLANTED_BYTES);
	return judge(buffer, size, false, tell);
}

/* ---- All programs ---- */

struct tally {
	size_t found, wrong, unsure, nothing, doubtful, unreadable;
};

/* Returns whether the results of `count` programs are good enough: no finding is wrong, and each fault of a complete trace and a
 * given percentage of the faults of other traces are found. */
static bool is_good(enum fault fault, enum how how, const struct tally *t, size_t count)
{
	static const unsigned char least[FAULTS][HOWS] = {[LOST_WAKEUP] = {100, 50, 0},
	    [CYCLE] = {100, 90, 30},
	    [FORGOTTEN] = {100, 50, 0},
	    [FAILURE] = {100, 45, 40},
	    [STALL] = {100, 65, 30},
	    [LEAK] = {100, 55, 3},
	    [STARVATION] = {100, 25, 30}};
	bool enough = t->found * 100 >= least[fault][how] * count || (how != WHOLE && count < 50);
	bool readable = how == CUT ? t->unreadable * 10 <= count : t->unreadable == 0;
	if (!enough || !readable)
		printf("%s, %s: %zu of %zu found, at least %u %% are; %zu could not be read\n", fault_names[fault],
		    how_names[how], t->found, count, least[fault][how], t->unreadable);
	return t->wrong == 0 && enough && readable;
}

static int table(size_t count, uint64_t first_seed)
{
	static struct tally tallies[FAULTS][HOWS];
	size_t wrong = 0;
	for (int fault = 0; fault < FAULTS; fault++)
		for (int how = 0; how < HOWS; how++)
			for (uint64_t seed = first_seed; seed < first_seed + count; seed++) {
				struct judged judged = try_one((enum fault)fault, seed, (enum how)how, false);
				struct tally *t = &tallies[fault][how];
				t->found += judged.found;
				t->wrong += judged.wrong;
				t->doubtful += judged.doubtful;
				t->unreadable += judged.unreadable;
				t->unsure += !judged.found && !judged.wrong && judged.unsure;
				t->nothing += !judged.found && !judged.wrong && !judged.unsure;
				if (judged.wrong && wrong++ < 20)
					printf("wrong: %s %d %" PRIu64 "\n", how_names[how], fault, seed);
			}
	printf("%zu programs each       whole trace     | wrapped ring                          | cut short\n", count);
	printf("%-20s %7s %7s |", "", "found", "wrong");
	for (int how = WRAPPED; how <= CUT; how++)
		printf("%7s %7s %7s %7s %7s%s", "lacking", "found", "unsure", "silent", "wrong", how == CUT ? "\n" : " |");
	for (int fault = 0; fault < FAULTS; fault++) {
		const struct tally *t = tallies[fault];
		printf("%-20s %7zu %7zu |", fault_names[fault], t[WHOLE].found, t[WHOLE].wrong);
		for (int how = WRAPPED; how <= CUT; how++)
			printf("%7zu %7zu %7zu %7zu %7zu%s", t[how].doubtful, t[how].found, t[how].unsure, t[how].nothing,
			    t[how].wrong, how == CUT ? "\n" : " |");
	}
	bool good = true;
	for (int fault = 0; fault < FAULTS; fault++)
		for (int how = 0; how < HOWS; how++)
			good &= is_good((enum fault)fault, (enum how)how, &tallies[fault][how], count);
	if (wrong)
		printf("%zu wrong\n", wrong);
	return good ? 0 : 1;
}

static int seeds(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[256];
	int status = 0;
	size_t tried = 0;
	if (!file) {
		perror(path);
		return 2;
	}
	while (fgets(line, sizeof line, file)) {
		char how_name[16];
		int fault;
		uint64_t seed;
		if (line[0] == '#' || sscanf(line, "%15s %d %" SCNu64, how_name, &fault, &seed) != 3)
			continue;
		for (int how = 0; how < HOWS; how++) {
			if (strcmp(how_name, how_names[how]) != 0)
				continue;
			tried++;
			struct judged judged = try_one((enum fault)fault, seed, (enum how)how, false);
			if (judged.wrong || (judged.unreadable && how != CUT)) {
				printf("wrong again: %s", line);
				status = 1;
			}
		}
	}
	fclose(file);
	printf("%zu programs that were once told wrongly\n", tried);
	return tried ? status : 2;
}

static int show(const char *how_name, enum fault fault, uint64_t seed, const char *out)
{
	enum how how = WHOLE;
	while (how < HOWS && strcmp(how_name, how_names[how]) != 0)
		how++;
	if (how == HOWS || fault >= FAULTS)
		return 2;
	struct judged judged = try_one(fault, seed, how, true);
	printf("found %d wrong %d unsure %d; planted", judged.found, judged.wrong, judged.unsure);
	for (size_t i = 0; i < plan.count; i++)
		printf(" %" PRId64, plan.ids[i]);
	putchar('\n');
	FILE *file = fopen(out, "wb");
	if (!file || fwrite(how == CUT ? copy : buffer, 1, PLANTED_BYTES, file) != PLANTED_BYTES || fclose(file) != 0) {
		perror(out);
		return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--seeds") == 0)
		return seeds(argv[2]);
	if (argc == 6 && strcmp(argv[1], "--show") == 0)
		return show(argv[2], (enum fault)atoi(argv[3]), strtoull(argv[4], NULL, 10), argv[5]);
	if (argc == 2 || argc == 3)
		return table(strtoull(argv[1], NULL, 10), argc == 3 ? strtoull(argv[2], NULL, 10) : 1);
	fprintf(stderr, "usage: planted COUNT [FIRST-SEED]; planted --seeds FILE; planted --show HOW FAULT SEED OUT\n");
	return 2;
}
