/* roles.c: finds the promises that runtimes make for themselves, and the threads of pools.  SPDX-License-Identifier: ISC */
#include "model/roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "model/private.h"

void weft__roles_free(struct weft_roles *roles)
{
	if (!roles)
		return;
	free(roles->internals);
	free(roles->pool_of);
	free(roles->part_of);
	free(roles);
}

static bool ends_with(struct weft_str text, const char *end)
{
	const size_t len = strlen(end);
	return text.len >= len && memcmp(text.ptr + text.len - len, end, len) == 0;
}

/* Returns whether a site is a line of a language whose runtime executes the program: neither machine code, nor the source of a
 * compiled program that records itself. */
static bool is_script(const struct weft_site *site)
{
	static const char *const compiled[] = {".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".rs", ".ml", ".go"};
	if (weft_site_is_machine_code(site))
		return false;
	for (size_t i = 0; i < sizeof compiled / sizeof *compiled; i++)
		if (ends_with(site->file, compiled[i]))
			return false;
	return site->file.len > 0;
}

static bool is_library(const struct weft_module *module)
{
	return module && memmem(module->path.ptr, module->path.len, ".so", 3) != NULL;
}

struct search {
	const struct weft_model *model;
	struct weft_roles *roles;
	bool *has_scripts; /* by process */
	size_t parts;
};

static size_t stream_count(const struct weft_model *m)
{
	return m->trace && m->trace->stream_count > 0 ? m->trace->stream_count : 1;
}

static uint32_t part_of(const struct search *s, const struct weft_promise *p)
{
	return p->stream < stream_count(s->model) ? s->roles->part_of[p->stream] : 0;
}

static const struct weft_site *site_of(const struct weft_model *m, const struct weft_promise *p)
{
	return p->site == WEFT_NONE ? NULL : &m->trace->sites[p->site];
}

/* Returns whether the code of a runtime or library created a promise: the recorder found no code of the program in the call
 * stack. */
static bool is_of_runtime(const struct search *s, const struct weft_promise *p)
{
	const struct weft_site *site = site_of(s->model, p);
	return site && weft_site_is_machine_code(site) && (is_library(site->module) || s->has_scripts[part_of(s, p)]);
}

static bool may_be_internal(const struct search *s, uint32_t promise)
{
	const struct weft_promise *p = &s->model->promises[promise];
	const uint32_t traits = weft_kind_traits(p->kind);
	return traits & WEFT_TRAIT_ENDLESS && !(traits & (WEFT_TRAIT_ACTOR | WEFT_TRAIT_POOL)) && !weft_promise_went_wrong(p) &&
	       !(p->flags & WEFT_PROMISE_NEVER_RESOLVED) && is_of_runtime(s, p);
}

/* Returns whether a waiting promise belongs to code of the program: it is a promise of the program, and not a whole thread or
 * loop. */
static bool is_of_program(const struct search *s, uint32_t promise)
{
	const struct weft_promise *p = &s->model->promises[promise];
	const uint32_t traits = weft_kind_traits(p->kind);
	return promise != WEFT_SYSTEM && !(traits & (WEFT_TRAIT_THREAD | WEFT_TRAIT_LOOP)) && site_of(s->model, p) &&
	       !is_of_runtime(s, p);
}

/* Returns whether the runtime of a language waits while it runs code of the program. */
static bool is_wait_of_runtime(const struct search *s, const struct weft_link *wait)
{
	return s->has_scripts[part_of(s, &s->model->promises[wait->to])] && wait->site != WEFT_NONE &&
	       weft_site_is_machine_code(&s->model->trace->sites[wait->site]);
}

static bool find_internals(struct search *s)
{
	const struct weft_model *m = s->model;
	uint64_t *bits = s->roles->internals = calloc(m->promise_count / 64 + 1, sizeof *bits);
	if (!bits)
		return false;
	for (uint32_t i = WEFT_SYSTEM + 1; i < m->promise_count; i++)
		if (may_be_internal(s, i))
			bits[i / 64] |= 1ull << i % 64;
	for (size_t i = 0; i < m->link_count; i++) {
		const struct weft_link *link = &m->links[i];
		if (link->kind == WEFT_LINK_AWAIT && weft_is_internal(s->roles, link->to) && is_of_program(s, link->from) &&
		    !is_wait_of_runtime(s, link))
			bits[link->to / 64] &= ~(1ull << link->to % 64);
	}
	for (size_t w = 0; w <= m->promise_count / 64; w++)
		s->roles->internal_count += (size_t)__builtin_popcountll(bits[w]);
	return true;
}

static bool find_pools(struct search *s)
{
	const struct weft_model *m = s->model;
	const size_t streams = stream_count(m);
	s->roles->pool_of = calloc(streams, sizeof *s->roles->pool_of);
	uint16_t *next = calloc(s->parts, sizeof *next);
	bool done = s->roles->pool_of && next;
	for (uint32_t i = WEFT_SYSTEM + 1; done && m->run_streams && i < m->promise_count; i++) {
		const struct weft_promise *p = &m->promises[i];
		if (p->kind != WEFT_KIND_FS && p->kind != WEFT_KIND_WORK && p->kind != WEFT_KIND_GETADDRINFO)
			continue;
		for (size_t r = p->runs; r < p[1].runs; r++)
			if (m->run_streams[r] != p->stream && m->run_streams[r] < streams)
				s->roles->pool_of[m->run_streams[r]] = 1;
	}
	for (size_t i = 0; done && i < streams; i++)
		if (s->roles->pool_of[i])
			s->roles->pool_of[i] = ++next[s->roles->part_of[i]];
	free(next);
	return done;
}

static bool find_parts(struct search *s)
{
	const struct weft_trace_info *info = s->model->trace;
	const size_t streams = stream_count(s->model);
	s->roles->part_of = calloc(streams, sizeof *s->roles->part_of);
	s->parts = info && info->part_count > 0 ? info->part_count : 1;
	s->has_scripts = calloc(s->parts, sizeof *s->has_scripts);
	if (!s->roles->part_of || !s->has_scripts)
		return false;
	for (size_t i = 0; info && i < info->stream_count; i++)
		s->roles->part_of[i] = info->streams[i].part < s->parts ? info->streams[i].part : 0;
	for (uint32_t i = WEFT_SYSTEM + 1; i < s->model->promise_count; i++) {
		const struct weft_site *site = site_of(s->model, &s->model->promises[i]);
		if (site && is_script(site))
			s->has_scripts[part_of(s, &s->model->promises[i])] = true;
	}
	return true;
}

int weft_model_roles(const struct weft_model *model, const struct weft_roles **out)
{
	static const struct weft_roles none = {.internal_count = 0};
	if (!model->priv) {
		*out = &none;
		return WEFT_OK;
	}
	struct weft_roles *roles = __atomic_load_n(&model->priv->roles, __ATOMIC_ACQUIRE);
	if (!roles) {
		struct search s = {.model = model, .roles = calloc(1, sizeof *s.roles)};
		const bool done = s.roles && find_parts(&s) && find_internals(&s) && find_pools(&s);
		free(s.has_scripts);
		if (!done) {
			weft__roles_free(s.roles);
			return WEFT_ENOMEM;
		}
		/* Another thread may have found the roles first; then those are used. */
		if (__atomic_compare_exchange_n(&model->priv->roles, &roles, s.roles, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			roles = s.roles;
		else
			weft__roles_free(s.roles);
	}
	*out = roles;
	return WEFT_OK;
}

size_t weft_process_name(const struct weft_model *model, uint32_t promise, char *buf, size_t size)
{
	const struct weft_trace_info *info = model->trace;
	const uint16_t stream = model->promises[promise].stream;
	const uint32_t part = info && stream < info->stream_count ? info->streams[stream].part : UINT32_MAX;
	struct weft_str name = info ? info->process : (struct weft_str){"", 0};
	if (info && part < info->part_count)
		name = (struct weft_str){info->parts[part].name, (uint32_t)strlen(info->parts[part].name)};
	return weft_utf8_copy(buf, size, name);
}
