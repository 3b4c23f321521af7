/* alive.c: finds event loops that have not returned, and the promises that keep them running.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/path_by_process.h"
#include "base/duration.h"
#include "base/known_strings.h"
#include "base/sort.h"

/* A promise that keeps a loop from returning. */
struct keeper {
	bool is_endless; /* true: an event handle such as a listener or a timer; false: a request in progress */
	uint32_t type, promise;
};

static int compare_keepers(const void *a, const void *b)
{
	const struct keeper *x = a, *y = b;
	return WEFT_ORDER(x->is_endless, y->is_endless) ?: WEFT_ORDER(x->type, y->type) ?: WEFT_ORDER(x->promise, y->promise);
}

/* Formats what the promise that keeps a loop running waits for: ", which waits for process 21 "cat"". */
static const char *format_awaited(struct weft__finder *f, uint32_t p)
{
	uint32_t to = p;
	for (int steps = 0; steps < WEFT__MAX_LINES && weft__wait_graph_count(&f->wait_graph, to) > 0; steps++)
		to = f->wait_graph.waits[f->wait_graph.begin[to]].to;
	return to == p ? ""
		       : weft__finding_text(
			     f, ", which waits for %s%s", weft__format_promise(f, to), weft__format_site_suffix(f, to));
}

/* Adds a line of evidence for each type of promise that keeps a loop running. */
static void list_keepers(struct weft__finder *f, const struct keeper *keepers, size_t count)
{
	const struct weft_promise *promises = f->model->promises;
	size_t lines = 0, shown = 0;
	for (size_t i = 0, end; i < count && lines < 2 * WEFT__MAX_LINES; i = end, lines++) {
		uint32_t p = keepers[i].promise;
		for (end = i; end < count && keepers[end].type == keepers[i].type; end++)
			;
		shown += end - i;
		const char *since = promises[p].start_ns >= 0
					? weft__finding_text(f, ", started %s before the end",
					      weft__format_duration(f, weft_model_until(f->model, p) - promises[p].start_ns))
					: "";
		if (end - i == 1)
			weft__finding_evidence(f, WEFT_EVIDENCE_CHAIN, promises[p].start_ns, p, "%s%s%s%s",
			    weft__format_promise(f, p), weft__format_site_suffix(f, p), format_awaited(f, p), since);
		else
			weft__finding_evidence(f, WEFT_EVIDENCE_CHAIN, promises[p].start_ns, p,
			    "%zu of the same type; the first is %s%s%s%s", end - i, weft__format_promise(f, p),
			    weft__format_site_suffix(f, p), format_awaited(f, p), since);
	}
	weft__evidence_add_more(f, WEFT_EVIDENCE_CHAIN, count - shown, "");
}

/* A loop that has not returned.  Loops of one type and place, like those of the workers of a server, share one finding. */
struct loop {
	uint32_t type, site, promise;
	size_t keepers;
};

static int compare_loops(const void *a, const void *b)
{
	const struct loop *x = a, *y = b;
	return WEFT_ORDER(x->type, y->type) ?: WEFT_ORDER(x->site, y->site) ?: WEFT_ORDER(y->keepers, x->keepers)
						   ?: WEFT_ORDER(x->promise, y->promise);
}

/* Returns whether an event loop runs another loop inside itself, and other promises keep it running too.  The promises that
 * keep the inner loop running explain less, because a library made them. */
static bool has_own_keepers(const struct weft__finder *f, uint32_t loop)
{
	const struct weft__wait_graph *w = &f->wait_graph;
	bool has_inner = false, has_own = false;
	for (uint32_t i = w->begin[loop]; i < w->begin[loop + 1]; i++) {
		const bool is_loop = weft_kind_has(f->model->promises[w->waits[i].to].kind, WEFT_TRAIT_LOOP);
		has_inner |= is_loop;
		has_own |= !is_loop;
	}
	return has_inner && has_own;
}

static bool is_keeper(const struct weft__finder *f, uint32_t loop, uint32_t p)
{
	return !weft_kind_has(f->model->promises[p].kind, WEFT_TRAIT_LOOP) || !has_own_keepers(f, loop);
}

static size_t count_keepers(const struct weft__finder *f, uint32_t loop)
{
	const struct weft__wait_graph *w = &f->wait_graph;
	size_t count = 0;
	for (uint32_t i = w->begin[loop]; i < w->begin[loop + 1]; i++)
		count += is_keeper(f, loop, w->waits[i].to);
	return count;
}

/* Formats the promises that keep a loop running: timer 4 "every 1 s" (main.c:12) and 2 more. */
static const char *format_keepers(struct weft__finder *f, const struct keeper *keepers, size_t count)
{
	const char *first = weft__format_promise(f, keepers[0].promise), *at = weft__format_site_suffix(f, keepers[0].promise);
	return count == 1 ? weft__finding_text(f, "%s%s", first, at)
			  : weft__finding_text(f, "%s%s and %zu more", first, at, count - 1);
}

/* Formats the names of promises that keep a loop running: timer 4 "every 1 s" and 2 more. */
static const char *format_keeper_names(struct weft__finder *f, const struct keeper *keepers, size_t count)
{
	const char *first = weft__format_promise(f, keepers[0].promise);
	return count == 1 ? first : weft__finding_text(f, "%s and %zu more", first, count - 1);
}

/* Returns the last read of a connection if that read has ended; WEFT_NONE if a read is pending, if the input of the connection
 * has ended, or if it was never read. */
static uint32_t find_last_read(const struct weft__finder *f, uint32_t connection)
{
	const struct weft_model *m = f->model;
	uint32_t last = WEFT_NONE;
	for (uint32_t i = f->link_index.out_begin[connection]; i < f->link_index.out_begin[connection + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.out[i]];
		if (link->kind == WEFT_LINK_READ && m->promises[link->to].kind == WEFT_KIND_STREAM_READ)
			last = link->to;
	}
	if (last == WEFT_NONE || weft__wait_graph_count(&f->wait_graph, connection) > 0 ||
	    m->promises[last].end != WEFT_END_RESOLVED)
		return WEFT_NONE;
	const uint32_t label = weft_first_label(m, last);
	const struct weft_str end = {WEFT_STRING_END, sizeof WEFT_STRING_END - 1};
	return label != WEFT_NONE && weft_str_equal(weft_model_text(m, label), end) ? WEFT_NONE : last;
}

/* Returns whether a connection carries the output of a child process: the connection has the label "stdout of seq", and the
 * process "seq 1 9". */
static bool is_output_of(const struct weft_model *m, uint32_t connection, uint32_t process)
{
	static const char of[] = " of ";
	const uint32_t label = weft_first_label(m, connection), command = weft_first_label(m, process);
	if (m->promises[connection].kind != WEFT_KIND_CONNECTION || label == WEFT_NONE || command == WEFT_NONE ||
	    m->promises[connection].created_by != m->promises[process].created_by)
		return false;
	const struct weft_str text = weft_model_text(m, label), name = weft_model_text(m, command);
	const size_t skipped = sizeof "stdout" - 1 + sizeof of - 1; /* as long as stderr */
	return text.len > skipped && !memcmp(text.ptr + sizeof "stdout" - 1, of, sizeof of - 1) &&
	       text.len - skipped <= name.len && !memcmp(text.ptr + skipped, name.ptr, text.len - skipped);
}

/* Adds evidence that a child process may be blocked because the program stopped reading the child's output.  Returns whether
 * the function added evidence. */
static bool report_unread_output(struct weft__finder *f, struct weft_finding *finding, uint32_t process)
{
	const struct weft_model *m = f->model;
	for (size_t i = 0; m->promises[process].kind == WEFT_KIND_PROCESS && i < f->wait_graph.pending.count; i++) {
		const uint32_t p = f->wait_graph.pending.items[i];
		const uint32_t read = is_output_of(m, p, process) ? find_last_read(f, p) : WEFT_NONE;
		if (read == WEFT_NONE)
			continue;
		finding->title = weft__finding_text(f, "%s still runs: the program stopped reading %s at %s%s",
		    weft__format_promise(f, process), weft__format_promise(f, p),
		    weft__format_duration(f, m->promises[read].end_ns), weft__format_site_suffix(f, process));
		finding->next =
		    weft__finding_text(f, "read %s to its end, or give the process no pipe", weft__format_promise(f, p));
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[read].end_ns, p,
		    "%s delivers its last data; once the pipe is full, the process blocks", weft__format_promise(f, p));
		return true;
	}
	return false;
}

/* Returns the first signal to the process of the loop that asked it to end, long before the trace ends; WEFT_NONE if there was
 * none.  *came_ns is its time. */
static uint32_t find_end_signal(const struct weft__finder *f, uint32_t loop, int64_t *came_ns)
{
	enum { LONG_STALLS = 50 };
	const int64_t latest_ns = weft_model_until(f->model, loop) - LONG_STALLS * f->options.stall_ns;
	return weft__end_signal_find(f, loop, latest_ns, came_ns);
}

/* Lists the handles of a loop that were called back after the process was asked to end, so that they may keep the loop running:
 * libuv's recorder lists the handles of a loop only while the loop sleeps.  Returns their number; `keepers` may be NULL. */
static size_t list_called_back(const struct weft__finder *f, uint32_t loop, struct keeper *keepers)
{
	const struct weft_model *m = f->model;
	int64_t came_ns;
	size_t count = 0;
	if (find_end_signal(f, loop, &came_ns) == WEFT_NONE)
		return 0;
	for (size_t i = 0; i < f->wait_graph.pending.count; i++) {
		const uint32_t p = f->wait_graph.pending.items[i], run = weft_run_before(m, p, INT64_MAX);
		const uint16_t kind = m->promises[p].kind;
		if (m->promises[p].stream != m->promises[loop].stream || run == WEFT_NONE || m->runs[run].start_ns <= came_ns ||
		    !weft_kind_has(kind, WEFT_TRAIT_OUTSIDE | WEFT_TRAIT_CONNECTION) || kind == WEFT_KIND_OS_SIGNAL)
			continue;
		if (keepers)
			keepers[count] = (struct keeper){weft_kind_has(kind, WEFT_TRAIT_ENDLESS), f->types.of[p], p};
		count++;
	}
	return count;
}

/* Returns the promises that keep a loop running, sorted; the caller frees the array.  Returns NULL on lack of memory, which is
 * noted in the finder. */
static struct keeper *sort_keepers(struct weft__finder *f, const struct loop *loop)
{
	const struct weft__wait_graph *w = &f->wait_graph;
	struct keeper *keepers = weft__finding_alloc(f, loop->keepers, sizeof *keepers);
	size_t count = 0;
	for (uint32_t i = w->begin[loop->promise]; keepers && i < w->begin[loop->promise + 1] && count < loop->keepers; i++) {
		const uint32_t p = w->waits[i].to;
		if (is_keeper(f, loop->promise, p))
			keepers[count++] =
			    (struct keeper){weft_kind_has(f->model->promises[p].kind, WEFT_TRAIT_ENDLESS), f->types.of[p], p};
	}
	if (keepers && count == 0)
		list_called_back(f, loop->promise, keepers);
	if (keepers)
		weft_sort(keepers, loop->keepers, sizeof *keepers, compare_keepers);
	return keepers;
}

/* Reports `count` loops, sorted by the number of promises that keep them running. */
static void report_alive(struct weft__finder *f, const struct loop *loops, size_t count)
{
	const struct weft_model *m = f->model;
	const uint32_t loop = loops[0].promise;
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_ALIVE, loop, m->promises[loop].start_ns, weft_model_until(m, loop));
	struct keeper *keepers = finding ? sort_keepers(f, &loops[0]) : NULL;
	if (!keepers)
		return;
	finding->root = keepers[0].promise;
	const char *name = weft__format_promise(f, loop), *at = weft__format_site_suffix(f, finding->root),
		   *keepers_text = format_keeper_names(f, keepers, loops[0].keepers),
		   *keep = loops[0].keepers == 1 ? "keeps" : "keep";
	int64_t came_ns;
	const uint32_t asked = find_end_signal(f, loop, &came_ns);
	if (asked != WEFT_NONE)
		finding->title = weft__finding_text(f, "%s has not returned %s after %s: %s %s it running%s",
		    weft__format_promise_id(f, loop), weft__format_duration(f, weft_model_until(m, loop) - came_ns),
		    weft__format_promise(f, asked), keepers_text, keep, at);
	else if (count == 1)
		finding->title = weft__finding_text(f, "%s has not returned: %s %s it running%s", name, keepers_text, keep, at);
	else
		finding->title = weft__finding_text(
		    f, "%s and %zu more have not returned: %s %s the first running%s", name, count - 1, keepers_text, keep, at);
	finding->next = m->promises[finding->root].kind == WEFT_KIND_TASK
			    ? weft__finding_text(f, "find out why %s does not end, unless the loop should run forever",
				  weft__format_promise(f, finding->root))
			: asked != WEFT_NONE
			    ? weft__finding_text(f, "close, stop or unreference the listed handles in the callback of %s%s",
				  weft__format_promise(f, asked), weft__format_site_suffix(f, asked))
			    : "close, stop or unreference the listed handles, unless the loop should run forever";
	if (asked != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, came_ns, asked, "%s%s comes, which asks the program to end",
		    weft__format_promise(f, asked), weft__format_site_suffix(f, asked));
	list_keepers(f, keepers, loops[0].keepers);
	for (size_t i = 0; i < loops[0].keepers && !report_unread_output(f, finding, keepers[i].promise); i++)
		;
	free(keepers);
	for (size_t i = 0; i < count; i++)
		finding->weight += loops[i].keepers;
	for (size_t i = 1; i < count && i <= WEFT__MAX_LINES && (keepers = sort_keepers(f, &loops[i])); i++) {
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, m->promises[loops[i].promise].start_ns, loops[i].promise,
		    "%s is kept running by %s", weft__format_promise(f, loops[i].promise),
		    format_keepers(f, keepers, loops[i].keepers));
		free(keepers);
	}
	if (count > WEFT__MAX_LINES + 1)
		weft__evidence_add_more(f, WEFT_EVIDENCE_NOTE, count - 1 - WEFT__MAX_LINES, "");
	weft__finding_doubt_part(f, loop, false);
}

/* Returns, by promise, one promise that waits for it; WEFT_SYSTEM if no promise waits for it.  A loop for which no promise
 * waits may not be running: some programs call a loop for one turn at a time. */
static uint32_t *find_waiters(struct weft__finder *f)
{
	const struct weft__wait_graph *w = &f->wait_graph;
	uint32_t *waiter_of = weft__finding_alloc(f, f->model->promise_count + 1, sizeof *waiter_of);
	for (size_t i = 0; waiter_of && i < w->pending.count; i++)
		for (uint32_t j = w->begin[w->pending.items[i]]; j < w->begin[w->pending.items[i] + 1]; j++)
			waiter_of[w->waits[j].to] = w->pending.items[i];
	return waiter_of;
}

/* Returns whether a loop runs on a helper thread that no promise waits for, and only waits for messages of other threads: the
 * program can end without such a loop. */
static bool is_helper(const struct weft__finder *f, uint32_t loop, const uint32_t *waiter_of)
{
	const struct weft__wait_graph *w = &f->wait_graph;
	const struct weft_promise *promises = f->model->promises;
	const uint32_t thread = waiter_of[loop], maker = promises[thread].created_by;
	for (uint32_t i = w->begin[loop]; i < w->begin[loop + 1]; i++)
		if (!weft_kind_has(promises[w->waits[i].to].kind, WEFT_TRAIT_CONDITION))
			return false;
	return weft_kind_has(promises[thread].kind, WEFT_TRAIT_THREAD) && waiter_of[thread] == WEFT_SYSTEM &&
	       maker != WEFT_NONE && maker != WEFT_SYSTEM;
}

/* Returns whether it is no fault that a loop runs: only the recording has ended, and no signal has asked the program to end. */
static bool may_run_on(const struct weft__finder *f, uint32_t loop)
{
	int64_t came_ns;
	return weft__completeness_of(f->completeness, f->model, loop)->stopped && find_end_signal(f, loop, &came_ns) == WEFT_NONE;
}

void weft__find_alive(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	bool any = false;
	for (int kind = 0; kind < 64; kind++)
		any |= weft_kind_has((uint16_t)kind, WEFT_TRAIT_LOOP) &&
		       weft__wait_graph_has_kind(&f->wait_graph, (enum weft_kind)kind);
	uint32_t *waiter_of = any ? find_waiters(f) : NULL;
	struct loop *loops = waiter_of ? weft__finding_alloc(f, f->wait_graph.pending.count + 1, sizeof *loops) : NULL;
	size_t count = 0;
	for (size_t i = 0;
	     loops && i < f->wait_graph.pending.count && weft__finding_may_continue(f, i, f->wait_graph.pending.count); i++) {
		const uint32_t p = f->wait_graph.pending.items[i];
		if (!weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP) || waiter_of[p] == WEFT_SYSTEM)
			continue;
		const size_t known = count_keepers(f, p), keepers = known ? known : list_called_back(f, p, NULL);
		const bool is_inner =
		    weft_kind_has(m->promises[waiter_of[p]].kind, WEFT_TRAIT_LOOP) && has_own_keepers(f, waiter_of[p]);
		/* A loop that no promise keeps alive runs until the program stops it. */
		if (!may_run_on(f, p) && f->idle_at_end[m->promises[p].stream] && keepers && !is_inner &&
		    !is_helper(f, p, waiter_of))
			loops[count++] = (struct loop){f->types.of[p], m->promises[p].site, p, keepers};
	}
	if (count > 0)
		weft_sort(loops, count, sizeof *loops, compare_loops);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && loops[end].type == loops[i].type && loops[end].site == loops[i].site; end++)
			;
		report_alive(f, &loops[i], end - i);
	}
	free(loops);
	free(waiter_of);
}
