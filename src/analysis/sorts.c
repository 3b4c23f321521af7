/* sorts.c: promises of one sort.  SPDX-License-Identifier: ISC */
#include "analysis/sorts.h"

#include "base/idmap.h"

/* Equal for promises of one sort. */
static int64_t sort_key(const struct weft_model *m, uint32_t p, bool *named)
{
	uint32_t label = weft_first_label(m, p), site = m->promises[p].site;
	uint64_t of = label != WEFT_NONE ? (uint64_t)label << 1 | 1 : (uint64_t)site << 1;
	*named = label != WEFT_NONE || site != WEFT_NONE;
	return (int64_t)(of << 16 | m->promises[p].kind);
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

int weft__sorts_init(struct weft__sorts *sorts, const struct weft_ties *ties, struct weft__watch *watch)
{
	/* Keys come again soon: most are found without the map. */
	enum { RECENT = 64 };
	struct {
		int64_t key;
		uint32_t number;
	} recent[RECENT];
	const struct weft_model *m = ties->model;
	struct weft_idmap map = {0};
	*sorts = (struct weft__sorts){.of = malloc(m->promise_count * sizeof *sorts->of)};
	bool ok = sorts->of;
	for (size_t i = 0; i < RECENT; i++)
		recent[i].key = -1;
	for (uint32_t p = 0; ok && p < m->promise_count && (ok = weft__watch_goes_on(watch, p, m->promise_count)); p++) {
		bool named;
		int64_t key = sort_key(m, p, &named);
		size_t slot = weft_hash_u64((uint64_t)key) % RECENT;
		if (recent[slot].key != key) {
			uint32_t number = weft_idmap_get(&map, key);
			if (number == WEFT_IDMAP_NONE) {
				number = (uint32_t)sorts->items.count;
				struct weft__sort *added = weft_vec_push(&sorts->items);
				if (!(ok = added && weft_idmap_set(&map, key, number)))
					break;
				*added = (struct weft__sort){.first = p, .last_resolved = WEFT_NONE, .named = named};
			}
			recent[slot].key = key;
			recent[slot].number = number;
		}
		sorts->of[p] = recent[slot].number;
		add_member(&sorts->items.items[recent[slot].number], ties, p);
	}
	weft_idmap_finish(&map);
	return ok ? WEFT_OK : watch && watch->called_off ? WEFT_ECANCELLED : WEFT_ENOMEM;
}

void weft__sorts_finish(struct weft__sorts *sorts)
{
	free(sorts->of);
	weft_vec_free(&sorts->items);
}
