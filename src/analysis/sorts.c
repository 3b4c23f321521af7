/* sorts.c: promises of one sort.  SPDX-License-Identifier: ISC */
#include "analysis/sorts.h"

#include <stdlib.h>

/* What its sort is called by, below names_of(); 0: it has neither a label nor a place. */
static size_t name_of(const struct weft_model *m, uint32_t p)
{
	uint32_t label = weft_first_label(m, p), site = m->promises[p].site;
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
	if (sort->last_resolved == WEFT_NONE || ties->model->promises[sort->last_resolved].end_ns <= promise->end_ns)
		sort->last_resolved = p;
}

/* The number of p's sort; WEFT_NONE when out of memory.  `latest` has, by name, the number + 1 of its latest sort: those of one
 * name differ in their kinds, which are few. */
static uint32_t sort_of(struct weft__sorts *sorts, const struct weft_model *m, uint32_t p, uint32_t *latest)
{
	size_t name = name_of(m, p);
	uint32_t number = latest[name];
	while (number && m->promises[sorts->items.items[number - 1].first].kind != m->promises[p].kind)
		number = sorts->items.items[number - 1].other;
	if (number)
		return number - 1;
	struct weft__sort *added = weft_vec_push(&sorts->items);
	if (!added)
		return WEFT_NONE;
	*added = (struct weft__sort){.first = p, .last_resolved = WEFT_NONE, .other = latest[name], .named = name > 0};
	latest[name] = (uint32_t)sorts->items.count;
	if (m->promises[p].kind <= WEFT_KIND_PREEXISTING)
		sorts->has_kind[m->promises[p].kind] = true;
	return latest[name] - 1;
}

int weft__sorts_init(struct weft__sorts *sorts, const struct weft_ties *ties, struct weft__watch *watch)
{
	const struct weft_model *m = ties->model;
	uint32_t *latest = calloc(names_of(m), sizeof *latest);
	*sorts = (struct weft__sorts){.of = malloc(m->promise_count * sizeof *sorts->of)};
	bool ok = sorts->of && latest;
	for (uint32_t p = 0; ok && p < m->promise_count && (ok = weft__watch_goes_on(watch, p, m->promise_count)); p++) {
		sorts->of[p] = sort_of(sorts, m, p, latest);
		if ((ok = sorts->of[p] != WEFT_NONE))
			add_member(&sorts->items.items[sorts->of[p]], ties, p);
	}
	free(latest);
	return ok ? WEFT_OK : watch && watch->called_off ? WEFT_ECANCELLED : WEFT_ENOMEM;
}

void weft__sorts_finish(struct weft__sorts *sorts)
{
	free(sorts->of);
	weft_vec_free(&sorts->items);
}
