/* promise_types.c: groups promises by type.  SPDX-License-Identifier: ISC */
#include "analysis/index/promise_types.h"

#include <stdlib.h>

#include "base/idmap.h"

/* Returns a number below count_name_keys() for p's label or, without a label, for its site; 0 if p has neither. */
static size_t get_name_key(const struct weft_model *m, uint32_t p, uint32_t label)
{
	const uint32_t site = m->promises[p].site;
	return label != WEFT_NONE ? (size_t)label << 1 | 1 : site != WEFT_NONE ? ((size_t)site + 1) << 1 : 0;
}

static size_t count_name_keys(const struct weft_model *m)
{
	size_t texts = weft_model_text_count(m), sites = m->trace->site_count;
	return ((texts > sites ? texts : sites) + 1) * 2;
}

static void add_member(struct weft__promise_type *type, const struct weft_link_index *link_index, uint32_t p)
{
	const struct weft_promise *promise = &link_index->model->promises[p];
	type->count++;
	if (link_index->ended_ns[p] == WEFT_NEVER) {
		type->pending++;
	} else if (!(promise->flags & WEFT_PROMISE_START_UNKNOWN)) {
		int64_t life_ns = link_index->ended_ns[p] - promise->start_ns;
		type->ended++;
		type->longest_ns = life_ns > type->longest_ns ? life_ns : type->longest_ns;
	}
	if (promise->end != WEFT_END_RESOLVED)
		return;
	type->resolved++;
	if (type->last_resolved == WEFT_NONE || link_index->ended_ns[type->last_resolved] <= promise->end_ns)
		type->last_resolved = p;
}

struct search {
	struct weft__promise_types *types;
	const struct weft_model *m;
	uint32_t *latest_type;   /* by name key: the type that was found last, + 1; most names have only one type */
	struct weft_idmap known; /* types of names that have several types, found by make_key() */
};

static int64_t make_key(size_t name, uint16_t kind)
{
	return (int64_t)(name << 16 | kind);
}

/* Returns the type of p; WEFT_NONE when out of memory. */
static uint32_t find_type(struct search *s, uint32_t p)
{
	const uint32_t label = weft_first_label(s->m, p);
	const size_t name = get_name_key(s->m, p, label);
	const uint16_t kind = s->m->promises[p].kind;
	uint32_t *latest_type = &s->latest_type[name], number;
	if (*latest_type && s->types->items.items[*latest_type - 1].kind == kind)
		return *latest_type - 1;
	if (*latest_type && (number = weft_idmap_get(&s->known, make_key(name, kind))) != WEFT_IDMAP_NONE) {
		*latest_type = number + 1;
		return number;
	}
	struct weft__promise_type *added = weft_vec_push(&s->types->items);
	number = (uint32_t)s->types->items.count - 1;
	if (!added || (*latest_type && !(weft_idmap_set(&s->known, make_key(name, s->types->items.items[*latest_type - 1].kind),
					     *latest_type - 1) &&
					   weft_idmap_set(&s->known, make_key(name, kind), number))))
		return WEFT_NONE;
	*added =
	    (struct weft__promise_type){.first = p, .last_resolved = WEFT_NONE, .label = label, .kind = kind, .named = name > 0};
	*latest_type = number + 1;
	if (kind <= WEFT_KIND_PREEXISTING)
		s->types->has_kind[kind] = true;
	return number;
}

int weft__promise_types_init(
    struct weft__promise_types *types, const struct weft_link_index *link_index, struct weft__cancel_token *cancel)
{
	const struct weft_model *m = link_index->model;
	struct search s = {.types = types, .m = m, .latest_type = calloc(count_name_keys(m), sizeof *s.latest_type)};
	*types = (struct weft__promise_types){
	    .of = malloc(m->promise_count * sizeof *types->of), .kinds = malloc(m->promise_count * sizeof *types->kinds)};
	bool ok = types->of && types->kinds && s.latest_type;
	for (uint32_t p = 0; ok && p < m->promise_count && (ok = weft__cancel_token_may_continue(cancel, p, m->promise_count));
	     p++) {
		types->of[p] = find_type(&s, p);
		types->kinds[p] = m->promises[p].kind;
		if ((ok = types->of[p] != WEFT_NONE))
			add_member(&types->items.items[types->of[p]], link_index, p);
	}
	free(s.latest_type);
	weft_idmap_finish(&s.known);
	return ok ? WEFT_OK : cancel && cancel->was_cancelled ? WEFT_ECANCELLED : WEFT_ENOMEM;
}

void weft__promise_types_finish(struct weft__promise_types *types)
{
	free(types->of);
	free(types->kinds);
	weft_vec_free(&types->items);
}
