/* sorts.c: promises of one sort.  SPDX-License-Identifier: ISC */
#include "analysis/sorts.h"

#include <stdlib.h>

#include "base/idmap.h"

/* What its sort is called by, below names_of(); 0: it has neither a label nor a place. */
static size_t name_of(const struct weft_model *m, uint32_t p, uint32_t label)
{
	const uint32_t site = m->promises[p].site;
	return label != WEFT_NONE ? (size_t)label << 1 | 1 : site != WEFT_NONE ? ((size_t)site + 1) << 1 : 0;
}

static size_t names_of(const struct weft_model *m)
{
	size_t texts = weft_model_text_count(m), sites = m->trace->site_count;
	return ((texts > sites ? texts : sites) + 1) * 2;
}

static void add_member(struct weft__sort *sort, const struct weft_ties *ties, uint32_t p)
{
	const struct weft_promise *promise = &ties->model->promises[p];
	sort->count++;
	if (ties->ended_ns[p] == WEFT_NEVER) {
		sort->pending++;
	} else if (!(promise->flags & WEFT_PROMISE_START_UNKNOWN)) {
		int64_t life_ns = ties->ended_ns[p] - promise->start_ns;
		sort->ended++;
		sort->longest_ns = life_ns > sort->longest_ns ? life_ns : sort->longest_ns;
	}
	if (promise->end != WEFT_END_RESOLVED)
		return;
	sort->resolved++;
	if (sort->last_resolved == WEFT_NONE || ties->ended_ns[sort->last_resolved] <= promise->end_ns)
		sort->last_resolved = p;
}

struct search {
	struct weft__sorts *sorts;
	const struct weft_model *m;
	uint32_t *latest;        /* by name: the number + 1 of the sort that had it last: most names have one sort */
	struct weft_idmap known; /* the sorts of a name that has several, by name and kind */
};

static int64_t key_of(size_t name, uint16_t kind)
{
	return (int64_t)(name << 16 | kind);
}

/* The number of p's sort; WEFT_NONE when out of memory. */
static uint32_t sort_of(struct search *s, uint32_t p)
{
	const uint32_t label = weft_first_label(s->m, p);
	const size_t name = name_of(s->m, p, label);
	const uint16_t kind = s->m->promises[p].kind;
	uint32_t *latest = &s->latest[name], number;
	if (*latest && s->sorts->items.items[*latest - 1].kind == kind)
		return *latest - 1;
	if (*latest && (number = weft_idmap_get(&s->known, key_of(name, kind))) != WEFT_IDMAP_NONE) {
		*latest = number + 1;
		return number;
	}
	struct weft__sort *added = weft_vec_push(&s->sorts->items);
	number = (uint32_t)s->sorts->items.count - 1;
	if (!added ||
	    (*latest && !(weft_idmap_set(&s->known, key_of(name, s->sorts->items.items[*latest - 1].kind), *latest - 1) &&
			    weft_idmap_set(&s->known, key_of(name, kind), number))))
		return WEFT_NONE;
	*added = (struct weft__sort){.first = p, .last_resolved = WEFT_NONE, .label = label, .kind = kind, .named = name > 0};
	*latest = number + 1;
	if (kind <= WEFT_KIND_PREEXISTING)
		s->sorts->has_kind[kind] = true;
	return number;
}

int weft__sorts_init(struct weft__sorts *sorts, const struct weft_ties *ties, struct weft__watch *watch)
{
	const struct weft_model *m = ties->model;
	struct search s = {.sorts = sorts, .m = m, .latest = calloc(names_of(m), sizeof *s.latest)};
	*sorts = (struct weft__sorts){
	    .of = malloc(m->promise_count * sizeof *sorts->of), .kinds = malloc(m->promise_count * sizeof *sorts->kinds)};
	bool ok = sorts->of && sorts->kinds && s.latest;
	for (uint32_t p = 0; ok && p < m->promise_count && (ok = weft__watch_goes_on(watch, p, m->promise_count)); p++) {
		sorts->of[p] = sort_of(&s, p);
		sorts->kinds[p] = m->promises[p].kind;
		if ((ok = sorts->of[p] != WEFT_NONE))
			add_member(&sorts->items.items[sorts->of[p]], ties, p);
	}
	free(s.latest);
	weft_idmap_finish(&s.known);
	return ok ? WEFT_OK : watch && watch->called_off ? WEFT_ECANCELLED : WEFT_ENOMEM;
}

void weft__sorts_finish(struct weft__sorts *sorts)
{
	free(sorts->of);
	free(sorts->kinds);
	weft_vec_free(&sorts->items);
}
