/* asked.c: finds the connection of a request that the recorder names, and the requests of a connection.
 * SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"
#include "analysis/index/activation.h"
#include "analysis/index/path_by_process.h"
#include "base/duration.h"

static bool is_request(const struct weft__finder *f, uint32_t p)
{
	return weft_kind_has(f->model->promises[p].kind, WEFT_TRAIT_REQUEST);
}

uint32_t weft__asked_on(const struct weft__finder *f, uint32_t connection, int64_t time_ns)
{
	uint32_t found = WEFT_NONE;
	for (uint32_t i = f->link_index.in_begin[connection]; i < f->link_index.in_begin[connection + 1]; i++) {
		const struct weft_link *link = &f->model->links[f->link_index.in[i]];
		if (link->time_ns > time_ns)
			break;
		if (link->kind == WEFT_LINK_AWAIT && is_request(f, link->from))
			found = link->from;
	}
	return found;
}

uint32_t weft__asked_connection(const struct weft__finder *f, uint32_t request)
{
	return is_request(f, request) ? weft__connection_asked_on(&f->link_index, request) : WEFT_NONE;
}

bool weft__is_served(const struct weft__finder *f, uint32_t p)
{
	const uint32_t by = f->model->promises[p].created_by;
	return is_request(f, p) && by != WEFT_NONE && weft_kind_has(f->model->promises[by].kind, WEFT_TRAIT_CONNECTION);
}

bool weft__is_given_up(const struct weft__finder *f, uint32_t p)
{
	const uint32_t other_end =
	    weft__is_served(f, p) ? weft_other_end_of(f->model, f->model->promises[p].created_by) : WEFT_NONE;
	return other_end != WEFT_NONE && f->link_index.ended_ns[other_end] != WEFT_NEVER;
}

uint32_t weft__find_last_question(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	const int64_t half_ns =
	    m->promises[p].start_ns + (weft_min_ns(f->link_index.ended_ns[p], m->end_ns) - m->promises[p].start_ns) / 2;
	for (uint32_t i = f->link_index.out_begin[p + 1]; i-- > f->link_index.out_begin[p];) {
		const struct weft_link *link = &m->links[f->link_index.out[i]];
		const bool waits = link->kind == WEFT_LINK_AWAIT || link->kind == WEFT_LINK_READ;
		if (waits && weft__asked_connection(f, link->to) != WEFT_NONE)
			return m->promises[link->to].start_ns <= half_ns && f->link_index.ended_ns[link->to] >= half_ns
				   ? link->to
				   : WEFT_NONE;
	}
	return WEFT_NONE;
}
