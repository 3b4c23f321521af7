/* signallers.c: finds conditions that only one promise can signal, while that promise waits for a promise that waits for the
 * condition.  SPDX-License-Identifier: ISC */
#include "analysis/index/signallers.h"

#include <stdlib.h>

#include "analysis/index/path_by_process.h"

/* State of a thread in the process of the waiting promise, by stream. */
enum thread_state { ABSENT, CAN_RUN, WAITS_FOR_HOLDER };

struct search {
	struct weft__wait_graph *w;
	const struct weft_link_index *link_index;
	uint8_t *states; /* by stream: enum thread_state */
	uint32_t signaller;
	uint16_t signaller_stream;
};

/* Returns the stream of a thread's last run; UINT16_MAX if it is unknown. */
static uint16_t get_stream(const struct weft_model *m, uint32_t thread)
{
	const uint32_t run = weft_run_before(m, thread, INT64_MAX);
	return run == WEFT_NONE || !m->run_streams ? UINT16_MAX : m->run_streams[run];
}

/* Returns the wait for a condition that an event recorded; NULL if there is none. */
static const struct weft__wait_edge *find_condition(const struct weft__wait_graph *w, uint32_t p)
{
	for (uint32_t i = w->begin[p]; i < w->begin[p + 1]; i++)
		if (w->waits[i].link != WEFT_NONE && weft_kind_has(w->model->promises[w->waits[i].to].kind, WEFT_TRAIT_CONDITION))
			return &w->waits[i];
	return NULL;
}

/* Returns the first wait of p for a lock that `holder` holds; NULL if there is none. */
static const struct weft__wait_edge *find_held_lock(const struct weft__wait_graph *w, uint32_t p, uint32_t holder)
{
	for (uint32_t i = w->begin[p]; i < w->begin[p + 1]; i++) {
		const uint32_t lock = w->waits[i].to;
		if (w->waits[i].link == WEFT_NONE || !weft_kind_has(w->model->promises[lock].kind, WEFT_TRAIT_LOCK))
			continue;
		for (uint32_t k = w->begin[lock]; k < w->begin[lock + 1]; k++)
			if (w->waits[k].to == holder)
				return &w->waits[i];
	}
	return NULL;
}

/* Sets the state of each thread in the holder's process, and the first promise that waits for the holder. */
static void find_states(struct search *s, uint32_t holder, uint16_t own_stream)
{
	const struct weft__wait_graph *w = s->w;
	const struct weft_model *m = w->model;
	for (size_t i = 0; i < m->trace->stream_count; i++)
		s->states[i] = ABSENT;
	s->signaller = WEFT_NONE;
	for (size_t i = 0; i < w->pending.count; i++) {
		const uint32_t p = w->pending.items[i];
		if (p == holder || weft_part_of(m, p) != weft_part_of(m, holder))
			continue;
		const uint16_t stream = weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD) ? get_stream(m, p) : UINT16_MAX;
		if (stream < m->trace->stream_count && s->states[stream] == ABSENT)
			s->states[stream] = CAN_RUN;
		const struct weft__wait_edge *wait = find_held_lock(w, p, holder);
		if (!wait || m->links[wait->link].stream == own_stream)
			continue;
		s->states[m->links[wait->link].stream] = WAITS_FOR_HOLDER;
		if (s->signaller == WEFT_NONE) {
			s->signaller = p;
			s->signaller_stream = m->links[wait->link].stream;
		}
	}
	s->states[own_stream] = ABSENT;
}

/* Returns whether only the signaller's thread has signalled the condition before. */
static bool is_only_signaller(const struct search *s, uint32_t condition)
{
	const struct weft_model *m = s->w->model;
	size_t count = 0;
	for (uint32_t i = s->link_index->in_begin[condition]; i < s->link_index->in_begin[condition + 1]; i++) {
		const struct weft_link *link = &m->links[s->link_index->in[i]];
		if (link->kind == WEFT_LINK_SIGNAL && link->stream != s->signaller_stream)
			return false;
		count += link->kind == WEFT_LINK_SIGNAL;
	}
	return count > 0;
}

/* Returns whether only threads that wait for the holder can signal the condition. */
static bool is_needed(const struct search *s, uint32_t condition)
{
	bool any_runs = false;
	for (size_t i = 0; i < s->w->model->trace->stream_count; i++)
		any_runs |= s->states[i] == CAN_RUN;
	return s->signaller != WEFT_NONE && (!any_runs || is_only_signaller(s, condition));
}

bool weft__signallers_find(struct weft__wait_graph *w, const struct weft_link_index *link_index, bool *added)
{
	const struct weft_model *m = w->model;
	struct search s = {.w = w, .link_index = link_index};
	bool has_memory = true;
	*added = false;
	if (!m->run_streams || w->time_ns != INT64_MAX || !weft__wait_graph_has_kind(w, WEFT_KIND_LOCK) ||
	    !weft__wait_graph_has_kind(w, WEFT_KIND_CONDITION))
		return true;
	for (size_t i = 0; i < w->pending.count && has_memory; i++) {
		const uint32_t p = w->pending.items[i];
		const struct weft__wait_edge *wait = find_condition(w, p);
		if (!wait || weft__wait_graph_count(w, p) != 1 || weft__wait_graph_count(w, wait->to) > 0)
			continue;
		if (!s.states && !(s.states = malloc(m->trace->stream_count + 1)))
			return false;
		find_states(&s, p, m->links[wait->link].stream);
		if (!is_needed(&s, wait->to))
			continue;
		struct weft__remote_wait *new = weft_vec_push(&w->remote_waits.all);
		has_memory = new;
		if (new)
			*new = (struct weft__remote_wait){wait->to, s.signaller, m->links[wait->link].time_ns};
		*added = true;
	}
	free(s.states);
	if (*added && has_memory)
		weft__remote_waits_sort(&w->remote_waits);
	return has_memory;
}
