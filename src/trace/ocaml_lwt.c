/* ocaml_lwt.c: plans and converts events of Lwt.
 *
 * Starts of waits without another event of Lwt between them form a group.  In a group the innermost wait comes first, because a
 * function returns its pending promise to the code that waits for it next.  Therefore a starting wait waits for the newest wait
 * of its group that has no waiter yet, and for others that started at the same line, as in Lwt_list.map_p.  This is a guess.
 * The ends of waits confirm or refute this: the waiter of a wait ends right behind the code that ran because that wait ended.
 * A wait whose code starts another wait continues as that other wait.
 *
 * Several waits at the same place may be open (not ended).  In this case an end belongs to the open wait whose callers end
 * right behind it.  If the callers do not decide, the first open wait ends first, and all waits that may have ended are marked,
 * and their callers too.  Each of the marked waits may have started as early as the first of them.
 *
 * A pool starts a wait for its next user while the code of its last user runs.  Earlier ends show to which user such a wait
 * belongs.  SPDX-License-Identifier: ISC */
#include "trace/ocaml_lwt.h"

#include <stdlib.h>
#include <string.h>

enum {
	MAX_CHOICES = 64, /* most open waits of a place among which an end chooses, which bounds the work */
	MAX_CALLERS = 8   /* most callers of a wait that an end compares with the ends behind it */
};

static const char mixed_up[] = "several waits are open at this line, and Lwt does not record which of them ended";
static const char told_apart[] = "several waits are open at this line; the callers that end next show which of them ended";
static const char edge[] = "the order of the events shows what this promise waits for, and what continues it";

/* ---- Events ---- */

enum weft__lwt_what weft__lwt_what(struct weft_str name)
{
	static const char *const names[] = {
#define NAME_OF(UPPER, name, how) name,
	    WEFT__LWT_EVENTS(NAME_OF)
#undef NAME_OF
	};
	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strlen(names[i]) == name.len && memcmp(names[i], name.ptr, name.len) == 0)
			return (enum weft__lwt_what)(i + 1);
	return WEFT__LWT_NONE;
}

enum { KIND, CONTEXT_LENGTH, CONTEXT, LINE = 2, NAME_LENGTH = 1 };

/* Returns the length of the context in the bytes of a wait.  Lwt writes this length and that of the file's name modulo 256; the
 * lengths of both names must match the size of the event. */
static size_t find_context_length(const unsigned char *bytes, size_t size)
{
	const size_t least = bytes[CONTEXT_LENGTH];
	for (size_t length = least; CONTEXT + length + LINE + NAME_LENGTH <= size; length += 256)
		if (bytes[CONTEXT + length + LINE] == (unsigned char)(size - CONTEXT - length - LINE - NAME_LENGTH))
			return length;
	return least;
}

/* Decodes the bytes of a wait: 'B' or 'E', the length of the context, the context, a line in two bytes, the length of the
 * file's name, the name.  Lwt cuts the bytes at the largest size that an event can have. */
static bool decode_trace(struct weft__lwt_event *out, const unsigned char *bytes, size_t size)
{
	if (size < CONTEXT || (bytes[KIND] != 'B' && bytes[KIND] != 'E'))
		return false;
	const size_t context = find_context_length(bytes, size);
	if (size - CONTEXT < context + LINE + NAME_LENGTH)
		return false;
	const unsigned char *at = bytes + CONTEXT + context;
	const size_t left = size - CONTEXT - context - LINE - NAME_LENGTH;
	const size_t file = left > 255 && (left & 255) == at[LINE] ? left : at[LINE] < left ? at[LINE] : left;
	out->is_end = bytes[KIND] == 'E';
	out->context = (struct weft_str){(const char *)bytes + CONTEXT, (uint32_t)context};
	out->has_context = context > 0;
	out->line = (uint32_t)at[0] << 8 | at[1];
	out->file = (struct weft_str){(const char *)at + LINE + NAME_LENGTH, (uint32_t)file};
	out->place =
	    (struct weft_str){(const char *)bytes + CONTEXT_LENGTH, (uint32_t)(out->file.ptr + file - (const char *)bytes - 1)};
	return true;
}

bool weft__lwt_decode(struct weft__lwt_event *out, enum weft__lwt_what what, const struct weft__ocaml_event *ev)
{
	static const uint8_t hows[] = {[WEFT__LWT_NONE] = WEFT__OCAML_UNKNOWN,
#define HOW(UPPER, name, how) [WEFT__LWT_##UPPER] = WEFT__OCAML_##how,
	    WEFT__LWT_EVENTS(HOW)
#undef HOW
	};
	*out = (struct weft__lwt_event){.value = ev->value, .what = (uint8_t)what, .is_end = ev->what == WEFT__OCAML_SPAN_END};
	if (hows[what] != ev->what && !(what == WEFT__LWT_CALL && out->is_end))
		return false;
	if (what == WEFT__LWT_TRACE)
		return decode_trace(out, ev->bytes, ev->size);
	return what != WEFT__LWT_NONE && (ev->what != WEFT__OCAML_INT || ev->has_value);
}

/* ---- Plan ---- */

/* The facts about an event of a ring that the plan needs. */
struct mark {
	uint32_t place;
	uint8_t what; /* enum what */
};

enum what { BEGIN, END, CALL_BEGIN, CALL_END, LAP, BREAK };

struct planning {
	struct weft__lwt *lwt;
	struct weft__lwt_plan *plan;
	WEFT_VEC(struct mark) marks;
	WEFT_VEC(uint32_t) tops; /* waits of the current group that have no waiter yet */
	size_t at;               /* index of the current event in marks */
	uint32_t running;        /* the wait whose code is running, or 0 */
	uint32_t call;           /* the call of Lwt_main.run that has not ended, or 0 */
	uint32_t finished;       /* the wait whose code ended last since the last round of the scheduler */
	uint32_t group;          /* the first wait of the current group, or 0 */
};

static struct weft__lwt_wait *get_wait(struct weft__lwt *lwt, uint32_t wait)
{
	return &lwt->waits.items[wait - 1];
}

/* Returns the number of an event's place, and adds the place if it is new; WEFT_INTERN_FAILED when out of memory. */
static uint32_t get_place(struct weft__lwt *lwt, const struct weft__lwt_event *ev)
{
	const uint32_t place = weft_intern(&lwt->names, ev->place);
	if (place == WEFT_INTERN_FAILED || place < lwt->places.count)
		return place;
	/* the line and the file follow the context */
	const uint32_t before = 1 + ev->context.len;
	const uint32_t site = weft_intern(&lwt->labels, (struct weft_str){ev->place.ptr + before, ev->place.len - before});
	if (site == WEFT_INTERN_FAILED)
		return WEFT_INTERN_FAILED;
	if (site == lwt->sites.count) {
		uint32_t *newest = weft_vec_push(&lwt->newest);
		struct weft_site *new = newest ? weft_vec_push(&lwt->sites) : NULL;
		if (!new)
			return WEFT_INTERN_FAILED;
		*newest = 0;
		*new = (struct weft_site){.file = ev->file, .line = ev->line};
	}
	struct weft__lwt_place *new = weft_vec_push(&lwt->places);
	if (!new)
		return WEFT_INTERN_FAILED;
	*new = (struct weft__lwt_place){.context = ev->context, .site = site};
	return place;
}

/* Adds a wait and returns it; 0 when out of memory. */
static uint32_t add_wait(struct planning *p, uint32_t place)
{
	struct weft__lwt_wait *wait = p->lwt->waits.count < UINT32_MAX - 2 ? weft_vec_push(&p->lwt->waits) : NULL;
	if (!wait)
		return 0;
	const uint32_t number = (uint32_t)p->lwt->waits.count;
	*wait = (struct weft__lwt_wait){.place = place, .thread = number, .tree = number, .earliest = number};
	return number;
}

static struct weft__lwt_place *get_place_of(struct weft__lwt *lwt, uint32_t wait)
{
	const uint32_t place = get_wait(lwt, wait)->place;
	return place == WEFT_NO_SITE ? NULL : &lwt->places.items[place];
}

/* Returns the wait that waits for the end of the sequence to which a wait belongs, or 0. */
static uint32_t get_waiter(struct weft__lwt *lwt, uint32_t wait)
{
	const struct weft__lwt_wait *first = get_wait(lwt, get_wait(lwt, wait)->thread);
	return first->is_refuted ? 0 : first->waiter;
}

static void append_to_queue(struct weft__lwt *lwt, uint32_t wait)
{
	struct weft__lwt_place *place = get_place_of(lwt, wait);
	get_wait(lwt, wait)->before = place->last;
	if (place->last)
		get_wait(lwt, place->last)->after = wait;
	else
		place->first = wait;
	place->last = wait;
	place->open++;
}

static void remove_from_queue(struct weft__lwt *lwt, uint32_t wait)
{
	struct weft__lwt_wait *w = get_wait(lwt, wait);
	struct weft__lwt_place *place = get_place_of(lwt, wait);
	if (w->before)
		get_wait(lwt, w->before)->after = w->after;
	else
		place->first = w->after;
	if (w->after)
		get_wait(lwt, w->after)->before = w->before;
	else
		place->last = w->before;
	w->before = w->after = 0;
	place->open--;
}

static void set_waiter(struct weft__lwt *lwt, uint32_t input, uint32_t waiter)
{
	struct weft__lwt_wait *w = get_wait(lwt, input);
	w->waiter = waiter;
	if (w->tree < get_wait(lwt, waiter)->tree)
		get_wait(lwt, waiter)->tree = w->tree;
	w->next_input = get_wait(lwt, waiter)->first_input;
	get_wait(lwt, waiter)->first_input = input;
}

/* Returns whether the line of a wait differs from the lines of all waits for which the newest wait of its group waits.  If not,
 * the wait rather starts something beside that newest wait, as a list of jobs does. */
static bool is_line_new(struct weft__lwt *lwt, uint32_t wait, uint32_t top)
{
	return lwt->newest.items[get_place_of(lwt, wait)->site] < get_wait(lwt, top)->tree;
}

/* Returns whether a wait may wait for the newest wait of its group, whose code was called with the same context or within a
 * context that began there. */
static bool may_wait_for(struct weft__lwt *lwt, uint32_t waiter, uint32_t input)
{
	const struct weft__lwt_place *a = get_place_of(lwt, waiter), *b = get_place_of(lwt, input);
	if (!a || !b)
		return b;
	return is_line_new(lwt, waiter, input) && (!a->context.len || weft_str_equal(a->context, b->context));
}

/* Returns whether the context of the newest wait of a group may be nested in the context of a wait. */
static bool may_be_around(struct weft__lwt *lwt, uint32_t wait, uint32_t top)
{
	return get_place_of(lwt, wait) && get_place_of(lwt, top) && get_place_of(lwt, top)->context.len &&
	       is_line_new(lwt, wait, top);
}

/* Gives the new wait its inputs, and makes it the newest wait of its group without a waiter; returns false when out of
 * memory. */
static bool join_group(struct planning *p, uint32_t wait)
{
	struct weft__lwt *lwt = p->lwt;
	p->group = p->group ? p->group : wait;
	get_wait(lwt, wait)->group = p->group;
	if (p->tops.count && may_wait_for(lwt, wait, p->tops.items[p->tops.count - 1])) {
		const uint32_t site = get_place_of(lwt, p->tops.items[p->tops.count - 1])->site;
		do
			set_waiter(lwt, p->tops.items[--p->tops.count], wait);
		while (p->tops.count && get_place_of(lwt, p->tops.items[p->tops.count - 1]) &&
		       get_place_of(lwt, p->tops.items[p->tops.count - 1])->site == site &&
		       may_wait_for(lwt, wait, p->tops.items[p->tops.count - 1]));
	} else if (p->tops.count && may_be_around(lwt, wait, p->tops.items[p->tops.count - 1]))
		get_wait(lwt, wait)->nested = p->tops.items[p->tops.count - 1];
	uint32_t *top = weft_vec_push(&p->tops);
	if (!top)
		return false;
	*top = wait;
	if (get_place_of(lwt, wait))
		lwt->newest.items[get_place_of(lwt, wait)->site] = wait;
	return true;
}

/* Stores for the place where a sequence of waits began the place of its waiter, which the end of the sequence has confirmed. */
static void learn_waiter(struct weft__lwt *lwt, uint32_t input, uint32_t waiter)
{
	struct weft__lwt_place *place = get_place_of(lwt, get_wait(lwt, input)->thread);
	if (place)
		place->waiter = get_wait(lwt, waiter)->place + 1;
}

/* Returns whether one of the newest inputs of a wait has not ended. */
static bool has_open_input(struct weft__lwt *lwt, uint32_t wait)
{
	uint32_t i = get_wait(lwt, wait)->first_input;
	for (int n = 0; i && n < MAX_CHOICES; n++, i = get_wait(lwt, i)->next_input)
		if (!get_wait(lwt, i)->is_refuted && !get_wait(lwt, i)->is_finished)
			return true;
	return false;
}

/* Finds the waiter of a wait that was started for another wait than the one whose code started it, as by a pool.  The result is
 * the first wait at the place of the usual waiter that waits for nothing else and started before this group.  Returns whether
 * one does. */
static bool find_other_waiter(struct weft__lwt *lwt, uint32_t wait)
{
	const struct weft__lwt_place *place = get_place_of(lwt, wait);
	if (get_wait(lwt, wait)->waiter)
		return true;
	if (!place || !place->waiter)
		return false;
	uint32_t other = lwt->places.items[place->waiter - 1].first;
	for (int i = 0; other && other < get_wait(lwt, wait)->group && i < MAX_CHOICES; i++, other = get_wait(lwt, other)->after)
		if (!get_wait(lwt, other)->is_ended && !has_open_input(lwt, other)) {
			set_waiter(lwt, wait, other);
			get_wait(lwt, other)->has_late_input = true;
			return true;
		}
	return false;
}

/* Returns whether the outermost wait that the running code started was rather started for another wait: usually the place of
 * the running wait waits for such a wait. */
static bool is_handed_on(const struct planning *p, uint32_t wait)
{
	const struct weft__lwt_place *place = get_place_of(p->lwt, wait);
	return place && place->waiter && place->waiter == get_wait(p->lwt, p->running)->place + 1 &&
	       find_other_waiter(p->lwt, wait);
}

/* Ends the wait whose code is running: the code has continued as the outermost wait that it started, unless it woke `woken`,
 * its only waiter. */
static void finish_run(struct planning *p, uint32_t woken)
{
	struct weft__lwt *lwt = p->lwt;
	const uint32_t next = p->tops.count ? p->tops.items[p->tops.count - 1] : 0;
	if (p->running && next && !woken && !is_handed_on(p, next)) {
		if (get_wait(lwt, next)->place != WEFT_NO_SITE) {
			get_wait(lwt, p->running)->becomes = next;
			get_wait(lwt, next)->thread = get_wait(lwt, p->running)->thread;
		}
	} else if (p->running) {
		p->finished = p->running;
		get_wait(lwt, get_wait(lwt, p->running)->thread)->is_finished = true;
		for (size_t i = 0; i < p->tops.count; i++)
			find_other_waiter(lwt, p->tops.items[i]);
	}
	p->running = p->group = 0;
	p->tops.count = 0;
}

/* Notes that a wait did not wait for what it seemed to wait for, because it ended before that. */
static void refute_inputs(struct weft__lwt *lwt, uint32_t waiter)
{
	for (uint32_t i = get_wait(lwt, waiter)->first_input; i; i = get_wait(lwt, i)->next_input)
		get_wait(lwt, i)->is_refuted = true;
}

/* Returns whether the waiter of the running wait is a wait of this place that may end now.  The running code may have started
 * other waits before, as a pool does that gives its item to the next user. */
static bool is_waiter_woken(const struct planning *p, uint32_t place)
{
	const uint32_t waiter = p->running ? get_waiter(p->lwt, p->running) : 0;
	return waiter && get_wait(p->lwt, waiter)->place == place && !get_wait(p->lwt, waiter)->is_ended;
}

/* Returns whether the running wait may wake a wait although the start of that wait did not show it.  Both sequences of waits
 * must have begun in one group, as in let%lwt a = f () and b = g () in ...  In addition, the wait that seems to wait for the
 * running wait must not end.  Their contexts must be the same, or one must be nested in the other. */
static bool may_be_woken(const struct planning *p, uint32_t wait)
{
	struct weft__lwt *lwt = p->lwt;
	if (!p->running || p->tops.count || !wait)
		return false;
	const uint32_t by = get_wait(lwt, p->running)->thread, first = get_wait(lwt, wait)->thread;
	if (get_wait(lwt, wait)->nested == by)
		return true;
	const struct weft__lwt_place *a = get_place_of(lwt, wait), *b = get_place_of(lwt, by);
	return get_wait(lwt, by)->group && get_wait(lwt, by)->group == get_wait(lwt, first)->group && by < first && a && b &&
	       a->site != b->site && (!a->context.len || weft_str_equal(a->context, b->context));
}

/* Returns how many callers of a wait end right behind the current event, one after the other, or 1 if the running wait may wake
 * it. */
static unsigned count_ending_callers(const struct planning *p, uint32_t wait)
{
	unsigned count = 0;
	for (uint32_t w = get_waiter(p->lwt, wait); w && count < MAX_CALLERS; w = get_waiter(p->lwt, w), count++) {
		const size_t at = p->at + 1 + count;
		if (at >= p->marks.count || p->marks.items[at].what != END ||
		    p->marks.items[at].place != get_wait(p->lwt, w)->place || get_wait(p->lwt, w)->is_ended)
			break;
	}
	return count ? count : may_be_woken(p, wait);
}

/* Replaces waits by the waits that wait for them and have not ended; returns their number. */
static unsigned replace_by_waiters(struct weft__lwt *lwt, uint32_t *waits, unsigned count)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < count; i++) {
		const uint32_t waiter = get_waiter(lwt, waits[i]);
		if (waiter && !get_wait(lwt, waiter)->is_ended && get_place_of(lwt, waiter))
			waits[kept++] = waiter;
	}
	return kept;
}

/* Marks waits that an event may have ended, and their callers: from then on each of them may be any of the others. */
static void mix_up(struct weft__lwt *lwt, uint32_t *waits, unsigned count)
{
	for (int caller = 0; caller <= MAX_CALLERS && count > 1; caller++) {
		uint32_t earliest = get_wait(lwt, waits[0])->earliest;
		bool differs = false;
		for (unsigned i = 1; i < count; i++) {
			differs |= waits[i] != waits[0];
			earliest = get_wait(lwt, waits[i])->earliest < earliest ? get_wait(lwt, waits[i])->earliest : earliest;
		}
		if (!differs)
			return;
		for (unsigned i = 0; i < count; i++) {
			get_wait(lwt, waits[i])->is_mixed = true;
			get_wait(lwt, waits[i])->earliest = earliest;
		}
		count = replace_by_waiters(lwt, waits, count);
	}
}

/* Chooses the open wait of a place that ends: the first wait with the most callers that end next; 0 if no wait is open. */
static uint32_t choose_wait(struct planning *p, uint32_t place)
{
	uint32_t best[MAX_CHOICES];
	unsigned count = 0, most = 0, seen = 0;
	for (uint32_t wait = p->lwt->places.items[place].first; wait && seen < MAX_CHOICES;
	     wait = get_wait(p->lwt, wait)->after, seen++) {
		const unsigned callers = count_ending_callers(p, wait);
		if (callers < most)
			continue;
		if (callers > most)
			count = 0;
		most = callers;
		best[count++] = wait;
	}
	for (uint32_t wait = p->lwt->places.items[place].first; wait && seen > 1; wait = get_wait(p->lwt, wait)->after, seen--)
		get_wait(p->lwt, wait)->is_told_apart = true;
	const uint32_t chosen = count ? best[0] : 0;
	mix_up(p->lwt, best, count);
	return chosen;
}

/* Marks a wait of a place that has so many open waits that an end did not examine all of them. */
static void mix_up_crowd(struct weft__lwt *lwt, uint32_t wait)
{
	struct weft__lwt_place *place = get_place_of(lwt, wait);
	struct weft__lwt_wait *w = get_wait(lwt, wait);
	if (place->open > MAX_CHOICES) {
		place->mixed_from = place->mixed_up_to < place->first ? get_wait(lwt, place->first)->earliest : place->mixed_from;
		place->mixed_up_to = place->last;
	}
	if (wait > place->mixed_up_to)
		return;
	w->is_mixed = true;
	w->earliest = place->mixed_from < w->earliest ? place->mixed_from : w->earliest;
}

/* Plans the end of a wait; returns the wait, or 0 when out of memory. */
static uint32_t plan_end(struct planning *p, uint32_t place)
{
	struct weft__lwt *lwt = p->lwt;
	const bool is_woken = is_waiter_woken(p, place);
	uint32_t wait = is_woken ? get_waiter(lwt, p->running) : choose_wait(p, place);
	const bool is_found = !is_woken && may_be_woken(p, wait);
	const uint32_t by = is_woken || is_found ? p->running : 0;
	if (is_woken)
		learn_waiter(lwt, by, wait);
	if (wait)
		get_wait(lwt, wait)->is_ended = true;
	finish_run(p, by);
	if (!wait) { /* the wait started before the first event */
		wait = add_wait(p, place);
		if (!wait)
			return 0;
		get_wait(lwt, wait)->is_preexisting = get_wait(lwt, wait)->is_ended = true;
	} else {
		mix_up_crowd(lwt, wait);
		remove_from_queue(lwt, wait);
	}
	get_wait(lwt, wait)->woken_by = by;
	if (!is_woken)
		refute_inputs(lwt, wait);
	if (is_found) {
		get_wait(lwt, wait)->extra_input = get_wait(lwt, by)->thread;
		get_wait(lwt, get_wait(lwt, by)->thread)->is_refuted = true;
	}
	p->running = wait;
	return wait;
}

static void plan_call_end(struct planning *p)
{
	struct weft__lwt *lwt = p->lwt;
	finish_run(p, 0);
	if (!p->call)
		return;
	get_wait(lwt, p->call)->is_ended = true;
	if (p->finished && get_waiter(lwt, p->finished) == p->call)
		get_wait(lwt, p->call)->woken_by = p->finished;
	else
		refute_inputs(lwt, p->call);
	p->call = 0;
}

/* Plans one event; returns false when out of memory. */
static bool plan_mark(struct planning *p)
{
	const struct mark *mark = &p->marks.items[p->at];
	uint32_t wait = 0;
	switch ((enum what)mark->what) {
	case BEGIN:
		wait = add_wait(p, mark->place);
		if (!wait || !join_group(p, wait))
			return false;
		append_to_queue(p->lwt, wait);
		break;
	case END:
		wait = plan_end(p, mark->place);
		if (!wait)
			return false;
		break;
	case CALL_BEGIN:
		wait = p->call = add_wait(p, WEFT_NO_SITE);
		if (!wait || !join_group(p, wait))
			return false;
		finish_run(p, 0);
		break;
	case CALL_END:
		wait = p->call;
		plan_call_end(p);
		break;
	case LAP:
		if (p->running || p->tops.count)
			p->finished = 0;
		finish_run(p, 0);
		return true;
	case BREAK: finish_run(p, 0); return true;
	}
	uint32_t *planned = weft_vec_push(&p->plan->waits);
	if (planned)
		*planned = wait;
	return planned != NULL;
}

/* Lists the events of a ring that matter for Lwt; returns false when out of memory. */
static bool list_marks(struct planning *p, const struct weft__ocaml_file *file, const struct weft__ocaml_ring *ring,
    const struct weft__lwt_reader *reader)
{
	struct weft__ocaml_event ev;
	for (uint64_t at = ring->head; weft__ocaml_read(file, ring, &at, &ev);) {
		struct weft__lwt_event e;
		const enum weft__lwt_what what = ev.is_user ? reader->what_of(reader->ctx, ev.id) : WEFT__LWT_NONE;
		const bool is_lwt = what != WEFT__LWT_NONE && weft__lwt_decode(&e, what, &ev);
		if (!(is_lwt ? what <= WEFT__LWT_LAP : reader->breaks(reader->ctx, &ev)))
			continue;
		struct mark mark = {.what = BREAK};
		if (is_lwt && what == WEFT__LWT_TRACE) {
			mark = (struct mark){get_place(p->lwt, &e), e.is_end ? END : BEGIN};
			if (mark.place == WEFT_INTERN_FAILED)
				return false;
		} else if (is_lwt)
			mark.what = what == WEFT__LWT_LAP ? LAP : e.is_end ? CALL_END : CALL_BEGIN;
		struct mark *new = weft_vec_push(&p->marks);
		if (!new)
			return false;
		*new = mark;
		p->lwt->is_there |= is_lwt;
	}
	return true;
}

/* Links two open waits with different contexts that started one after the other: the context of the first is nested in the
 * context of the second. */
static void link_nested(struct weft__lwt *lwt, uint32_t wait)
{
	struct weft__lwt_wait *w = get_wait(lwt, wait), *nested = w->nested ? get_wait(lwt, w->nested) : NULL;
	if (!nested || nested->is_ended || nested->thread != w->nested || nested->late_waiter ||
	    (nested->waiter && !nested->is_refuted) || has_open_input(lwt, wait))
		return;
	nested->late_waiter = wait;
	w->has_late_input = true;
}

/* Examines a wait that has not ended at the end of the trace: it does not wait for what has finished.  Lwt_main.run then waits
 * for other waits of its group that started at the same line, as in Lwt_list.iter_p. */
static void review_pending(struct weft__lwt *lwt, uint32_t wait)
{
	uint32_t site = WEFT_NO_SITE;
	bool has_input = false;
	for (uint32_t i = get_wait(lwt, wait)->first_input; i; i = get_wait(lwt, i)->next_input) {
		const struct weft__lwt_place *place = get_place_of(lwt, i);
		site = place ? place->site : site;
		get_wait(lwt, i)->is_refuted |= get_wait(lwt, i)->is_finished;
		has_input |= !get_wait(lwt, i)->is_refuted;
	}
	if (has_input || site == WEFT_NO_SITE || get_place_of(lwt, wait))
		return;
	for (uint32_t i = get_wait(lwt, wait)->group; i < wait; i++) {
		struct weft__lwt_wait *other = get_wait(lwt, i);
		if (other->is_finished || other->thread != i || (other->waiter && !other->is_refuted) || other->waiter == wait ||
		    get_place_of(lwt, i)->site != site)
			continue;
		other->late_waiter = wait;
		get_wait(lwt, wait)->has_late_input = true;
	}
}

static bool plan_ring(struct weft__lwt *lwt, size_t i, const struct weft__ocaml_file *file, const struct weft__lwt_reader *reader)
{
	struct planning p = {.lwt = lwt, .plan = &lwt->plans[i]};
	const uint32_t first = (uint32_t)lwt->waits.count + 1;
	bool ok = list_marks(&p, file, &file->rings[i], reader);
	for (; ok && p.at < p.marks.count; p.at++)
		ok = plan_mark(&p);
	/* an end in another ring does not belong to these waits */
	for (uint32_t wait = first; wait <= lwt->waits.count; wait++) {
		if (get_wait(lwt, wait)->is_ended)
			continue;
		review_pending(lwt, wait);
		link_nested(lwt, wait);
		struct weft__lwt_place *place = get_place_of(lwt, wait);
		if (!place)
			continue;
		place->first = place->last = place->open = 0;
		mix_up_crowd(lwt, wait);
	}
	weft_vec_free(&p.marks);
	weft_vec_free(&p.tops);
	return ok;
}

int weft__lwt_init(struct weft__lwt *lwt, const struct weft__ocaml_file *file, const struct weft__lwt_reader *reader)
{
	*lwt = (struct weft__lwt){.plan_count = file->ring_count};
	lwt->plans = calloc(file->ring_count ? file->ring_count : 1, sizeof *lwt->plans);
	if (!lwt->plans)
		return WEFT_ENOMEM;
	bool is_named = false;
	for (unsigned id = 0; id < WEFT__OCAML_NAMES && !is_named; id++)
		is_named = reader->what_of(reader->ctx, (uint16_t)id) != WEFT__LWT_NONE;
	for (size_t i = 0; is_named && i < file->ring_count; i++)
		if (!plan_ring(lwt, i, file, reader))
			return WEFT_ENOMEM;
	return WEFT_OK;
}

void weft__lwt_finish(struct weft__lwt *lwt)
{
	for (size_t i = 0; lwt->plans && i < lwt->plan_count; i++)
		weft_vec_free(&lwt->plans[i].waits);
	free(lwt->plans);
	lwt->plans = NULL;
	weft_intern_finish(&lwt->names);
	weft_intern_finish(&lwt->labels);
	weft_vec_free(&lwt->places);
	weft_vec_free(&lwt->sites);
	weft_vec_free(&lwt->newest);
	weft_vec_free(&lwt->waits);
}

void weft__lwt_rewind(struct weft__lwt *lwt)
{
	for (size_t i = 0; i < lwt->plan_count; i++) {
		struct weft__lwt_plan *plan = &lwt->plans[i];
		plan->at = 0;
		plan->loop = 0;
		plan->running = 0;
		plan->is_asleep = plan->has_started = false;
		plan->paused.is_known = plan->jobs.is_known = false;
	}
	for (size_t i = 0; i < lwt->waits.count; i++)
		lwt->waits.items[i].id = 0;
	lwt->reported_count = 0;
}

/* ---- Conversion ---- */

static struct weft_str make_str(const char *text)
{
	return (struct weft_str){text, (uint32_t)strlen(text)};
}

/* Marks a promise as inferred; it may have started up to earlier_ns before its recorded start. */
static void put_mark(struct weft__eio *eio, int64_t id, const char *why, int64_t earlier_ns)
{
	struct weft_event *out = weft__eio_put_event(eio, WEFT_OP_DETAIL, id, 0);
	out->kind = WEFT_DETAIL_INFERRED;
	out->value = earlier_ns;
	out->text = make_str(why);
}

/* Makes a promise run; 0 stands for the thread, or for the fiber that runs the scheduler. */
static void put_run(struct weft__lwt_plan *plan, struct weft__eio *eio, int64_t id)
{
	if (plan->is_asleep)
		weft__eio_put_event(eio, WEFT_OP_RESUME, plan->loop, 0);
	plan->is_asleep = false;
	weft__eio_set_guest(eio, id);
	weft__eio_put_event(eio, WEFT_OP_RUN, id ? id : weft__eio_actor(eio), 0);
}

/* Ends the wait whose code ran; if `is_read`, the next wait reads its result, otherwise the scheduler continues. */
static void put_finish(struct weft__lwt *lwt, struct weft__eio *eio, bool is_read)
{
	struct weft__lwt_plan *plan = &lwt->plans[eio->stream];
	const struct weft__lwt_wait *w = plan->running ? get_wait(lwt, plan->running) : NULL;
	plan->running = 0;
	if (!w)
		return;
	if (!w->becomes)
		weft__eio_put_event(eio, WEFT_OP_RESOLVE, w->id, w->id);
	if (!is_read)
		put_run(plan, eio, plan->loop);
	if (w->becomes && get_wait(lwt, w->becomes)->id)
		weft__eio_put_event(eio, WEFT_OP_BECOME, w->id, get_wait(lwt, w->becomes)->id);
}

/* Appends the awaits of a wait that starts, and the event that marks the wait as inferred.  Returns whether the wait waits for
 * other waits. */
static bool put_inputs(struct weft__lwt *lwt, struct weft__eio *eio, const struct weft__lwt_wait *w)
{
	enum { MOST = WEFT__EIO_MAX_EVENTS / 2 }; /* most awaits of a wait that are written; further awaits are missing */
	int count = 0;
	for (uint32_t i = w->first_input; i && count < MOST; i = get_wait(lwt, i)->next_input)
		if (!get_wait(lwt, i)->is_refuted && get_wait(lwt, i)->id) {
			weft__eio_put_event(eio, WEFT_OP_AWAIT, w->id, get_wait(lwt, i)->id);
			count++;
		}
	if (w->extra_input && get_wait(lwt, w->extra_input)->id) {
		weft__eio_put_event(eio, WEFT_OP_AWAIT, w->id, get_wait(lwt, w->extra_input)->id);
		count++;
	}
	if (w->is_mixed)
		put_mark(eio, w->id, mixed_up, eio->now_ns - get_wait(lwt, w->earliest)->start_ns);
	else if (w->is_told_apart || count || w->becomes || w->has_late_input)
		put_mark(eio, w->id, w->is_told_apart ? told_apart : edge, 0);
	return count > 0 || w->has_late_input;
}

static int64_t get_actor(const struct weft__lwt *lwt, struct weft__eio *eio)
{
	const struct weft__lwt_plan *plan = &lwt->plans[eio->stream];
	return plan->running ? lwt->waits.items[plan->running - 1].id : weft__eio_actor(eio);
}

static void put_label(struct weft__eio *eio, int64_t id, struct weft_str label)
{
	if (label.len)
		weft__eio_put_event(eio, WEFT_OP_LABEL, id, 0)->text = label;
}

static void begin_wait(struct weft__lwt *lwt, struct weft__eio *eio, struct weft__lwt_wait *w)
{
	const struct weft__lwt_place *place = &lwt->places.items[w->place];
	w->id = eio->next_id++;
	w->start_ns = eio->now_ns;
	struct weft_event *out = weft__eio_put_event(eio, WEFT_OP_CREATE, get_actor(lwt, eio), w->id);
	out->kind = WEFT_KIND_WAIT;
	out->site = place->site;
	put_label(eio, w->id, place->context);
	put_inputs(lwt, eio, w);
}

static void end_wait(struct weft__lwt *lwt, struct weft__eio *eio, struct weft__lwt_wait *w, int64_t first_ns)
{
	struct weft__lwt_plan *plan = &lwt->plans[eio->stream];
	const int64_t by = w->woken_by ? get_wait(lwt, w->woken_by)->id : 0;
	put_finish(lwt, eio, by != 0);
	if (!w->id) {
		const struct weft__lwt_place *place = &lwt->places.items[w->place];
		w->id = eio->next_id++;
		struct weft_event *out = weft__eio_put_event(eio, WEFT_OP_PENDING, WEFT_SYSTEM_ID, w->id);
		out->kind = WEFT_KIND_WAIT;
		out->site = place->site;
		out->value = first_ns;
		out->text = place->context;
		if (w->becomes)
			put_mark(eio, w->id, edge, 0);
	}
	if (by) {
		weft__eio_put_event(eio, WEFT_OP_READ, w->id, by);
		weft__eio_set_guest(eio, w->id);
	} else
		put_run(plan, eio, w->id);
	plan->running = (uint32_t)(w - lwt->waits.items) + 1;
}

/* Begins or ends Lwt_main.run. */
static void convert_call(struct weft__lwt *lwt, struct weft__eio *eio, struct weft__lwt_wait *w, bool is_end)
{
	struct weft__lwt_plan *plan = &lwt->plans[eio->stream];
	put_finish(lwt, eio, false);
	if (is_end) {
		if (!w)
			return;
		if (w->woken_by)
			weft__eio_put_event(eio, WEFT_OP_READ_LATER, w->id, get_wait(lwt, w->woken_by)->id);
		weft__eio_put_event(eio, WEFT_OP_RESOLVE, w->id, w->id);
		put_run(plan, eio, 0);
		plan->loop = 0;
		return;
	}
	if (!w)
		return;
	w->id = plan->loop = eio->next_id++;
	weft__eio_put_event(eio, WEFT_OP_CREATE, weft__eio_actor(eio), w->id)->kind = WEFT_KIND_LOOP;
	put_label(eio, w->id, make_str("Lwt_main.run"));
	/* A server whose main promise is not among these may run for ever. */
	if (put_inputs(lwt, eio, w))
		weft__eio_put_event(eio, WEFT_OP_SHOULD_RESOLVE, w->id, 0);
	put_run(plan, eio, plan->loop);
}

static void convert_lap(struct weft__lwt *lwt, struct weft__eio *eio)
{
	struct weft__lwt_plan *plan = &lwt->plans[eio->stream];
	put_finish(lwt, eio, false);
	if (plan->is_asleep)
		put_run(plan, eio, plan->loop);
	if (weft__eio_is_in_fiber(eio)) { /* Eio records when the domain sleeps */
		put_run(plan, eio, 0);
		return;
	}
	weft__eio_set_guest(eio, 0);
	weft__eio_put_event(eio, WEFT_OP_IDLE, 0, 0);
	plan->is_asleep = true;
}

/* Sets a counter.  Lwt repeats both counters in each round; only changes are kept. */
static void put_counter(struct weft__eio *eio, const char *name, int64_t value, struct weft__lwt_count *last)
{
	if (last->is_known && last->value == value)
		return;
	*last = (struct weft__lwt_count){value, true};
	struct weft_event *out = weft__eio_put_event(eio, WEFT_OP_COUNTER, WEFT_SYSTEM_ID, 0);
	out->text = make_str(name);
	out->value = value;
}

/* Writes the first events of a ring: its thread runs.  A scheduler without a call of Lwt_main.run began before the first event,
 * or belongs to another library. */
static void begin_ring(struct weft__lwt_plan *plan, struct weft__eio *eio, const struct weft__lwt_event *ev)
{
	(void)weft__eio_domain(eio);
	if (!plan->has_started && !weft__eio_is_in_fiber(eio))
		weft__eio_put_event(eio, WEFT_OP_RUN, weft__eio_actor(eio), 0);
	plan->has_started = true;
	if (plan->loop || ev->what == WEFT__LWT_CALL || (ev->what == WEFT__LWT_TRACE && !ev->is_end))
		return;
	plan->loop = eio->next_id++;
	weft__eio_put_event(eio, WEFT_OP_CREATE, weft__eio_domain(eio), plan->loop)->kind = WEFT_KIND_LOOP;
	put_label(eio, plan->loop, make_str("Lwt"));
}

void weft__lwt_convert(struct weft__lwt *lwt, struct weft__eio *eio, const struct weft__lwt_event *ev, int64_t first_ns)
{
	struct weft__lwt_plan *plan = &lwt->plans[eio->stream];
	begin_ring(plan, eio, ev);
	const bool is_planned = ev->what == WEFT__LWT_TRACE || ev->what == WEFT__LWT_CALL;
	const uint32_t wait = is_planned && plan->at < plan->waits.count ? plan->waits.items[plan->at++] : 0;
	struct weft__lwt_wait *w = wait ? get_wait(lwt, wait) : NULL;
	switch ((enum weft__lwt_what)ev->what) {
	case WEFT__LWT_TRACE:
		if (!w)
			break;
		if (ev->is_end) {
			end_wait(lwt, eio, w, first_ns);
		} else {
			if (plan->is_asleep)
				put_run(plan, eio, plan->loop);
			begin_wait(lwt, eio, w);
		}
		break;
	case WEFT__LWT_CALL: convert_call(lwt, eio, w, ev->is_end); break;
	case WEFT__LWT_LAP: convert_lap(lwt, eio); break;
	case WEFT__LWT_PAUSED: put_counter(eio, "Lwt: paused promises", ev->value, &plan->paused); break;
	case WEFT__LWT_JOBS: put_counter(eio, "Lwt: jobs of the thread pool", ev->value, &plan->jobs); break;
	case WEFT__LWT_NONE: break;
	}
}

void weft__lwt_interrupt(struct weft__lwt *lwt, struct weft__eio *eio)
{
	put_finish(lwt, eio, true);
	weft__eio_set_guest(eio, 0);
}

bool weft__lwt_put_pending_wait(struct weft__lwt *lwt, struct weft__eio *eio)
{
	while (lwt->reported_count < lwt->waits.count) {
		const struct weft__lwt_wait *w = &lwt->waits.items[lwt->reported_count++];
		uint32_t waiter = w->id && !w->is_ended ? get_waiter(lwt, (uint32_t)lwt->reported_count) : 0;
		if (w->id && !w->is_ended && !waiter)
			waiter = get_wait(lwt, w->thread)->late_waiter;
		if (!waiter || get_wait(lwt, waiter)->is_ended || !get_wait(lwt, waiter)->id)
			continue;
		weft__eio_put_event(eio, WEFT_OP_STILL_AWAITS, get_wait(lwt, waiter)->id, w->id);
		return true;
	}
	return false;
}
