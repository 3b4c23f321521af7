/* lines.c: which lines of two versions of a source are the same place.  SPDX-License-Identifier: ISC */
#include "analysis/lines.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/sort.h"
#include "base/vec.h"

enum { MOST_SHIFTED = 64 }; /* places of one function in each run; of more, equal lines are the same place */

struct place {
	uint64_t function; /* a hash of the file and the function */
	uint32_t line, site, kind;
	int run;
};

/* The places of one function that one run used. */
struct side {
	const struct place *places;
	size_t count;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	return WEFT_ORDER(x->function, y->function) ?: WEFT_ORDER(x->run, y->run) ?: WEFT_ORDER(x->line, y->line) ?:
	       WEFT_ORDER(x->site, y->site);
}

/* How many lines of `a`, moved by `shift`, are lines of `b`. */
static size_t count_shifted(struct side a, struct side b, int64_t shift)
{
	size_t same = 0;
	for (size_t i = 0, k = 0; i < a.count && k < b.count;) {
		int64_t x = a.places[i].line + shift, y = b.places[k].line;
		same += x == y;
		i += x <= y;
		k += y <= x;
	}
	return same;
}

static int64_t best_shift(struct side a, struct side b)
{
	int64_t best = 0;
	size_t most = count_shifted(a, b, 0);
	for (size_t i = 0; i < a.count; i++)
		for (size_t k = 0; k < b.count; k++) {
			int64_t shift = (int64_t)b.places[k].line - a.places[i].line;
			size_t same = count_shifted(a, b, shift);
			if (same > most || (same == most && llabs(shift) < llabs(best))) {
				most = same;
				best = shift;
			}
		}
	return best;
}

/* What it is worth that two places are the same: they are of one kind, and best as far apart as most others. */
static int worth(const struct place *a, const struct place *b, int64_t shift)
{
	return a->kind != b->kind ? 0 : 2 + (a->line + shift == b->line);
}

/* Gives the places of a function their numbers, which are lines of the second run: pairs in the same order that are worth most.
 */
static void match(struct side a, struct side b, uint32_t *const numbers[2])
{
	bool few = a.count <= MOST_SHIFTED && b.count <= MOST_SHIFTED;
	int64_t shift = few ? best_shift(a, b) : 0;
	int best[MOST_SHIFTED + 1][MOST_SHIFTED + 1]; /* of the places from there on */
	for (size_t i = 0; i < a.count; i++)
		numbers[0][a.places[i].site] =
		    few ? UINT32_MAX - a.places[i].line /* none in the second run */ : a.places[i].line;
	for (size_t k = 0; k < b.count; k++)
		numbers[1][b.places[k].site] = b.places[k].line;
	if (!few)
		return;
	for (size_t i = a.count + 1; i-- > 0;)
		for (size_t k = b.count + 1; k-- > 0;) {
			if (i == a.count || k == b.count) {
				best[i][k] = 0;
				continue;
			}
			int both = best[i + 1][k + 1] + worth(&a.places[i], &b.places[k], shift);
			int skip = best[i + 1][k] > best[i][k + 1] ? best[i + 1][k] : best[i][k + 1];
			best[i][k] = both > skip ? both : skip;
		}
	for (size_t i = 0, k = 0; i < a.count && k < b.count;) {
		int pair = worth(&a.places[i], &b.places[k], shift);
		if (pair > 0 && best[i][k] == best[i + 1][k + 1] + pair)
			numbers[0][a.places[i++].site] = b.places[k++].line;
		else if (best[i][k] == best[i + 1][k])
			i++;
		else
			k++;
	}
}

int weft__lines_match(const struct weft_model *const models[2], uint32_t *const numbers[2])
{
	WEFT_VEC(struct place) places = {0};
	for (int r = 0; r < 2; r++)
		for (uint32_t s = 0; s < models[r]->trace->site_count; s++) {
			const struct weft_site *site = &models[r]->trace->sites[s];
			struct place *added = weft_vec_push(&places);
			if (!added) {
				weft_vec_free(&places);
				return WEFT_ENOMEM;
			}
			numbers[r][s] = site->line;
			*added = (struct place){weft_hash_u64(weft_hash_bytes(site->file.ptr, site->file.len)) ^
						    weft_hash_bytes(site->function.ptr, site->function.len),
			    site->line, s, 0, r};
		}
	for (int r = 0; r < 2; r++)
		for (uint32_t p = 1; places.items && p < models[r]->promise_count; p++)
			if (models[r]->promises[p].site != WEFT_NONE)
				places.items[(r ? models[0]->trace->site_count : 0) + models[r]->promises[p].site].kind =
				    models[r]->promises[p].kind;
	weft_sort(places.items, places.count, sizeof *places.items, compare_places);
	for (size_t begin = 0, end; begin < places.count; begin = end) {
		size_t second = begin;
		for (end = begin; end < places.count && places.items[end].function == places.items[begin].function; end++)
			second += places.items[end].run == 0;
		match((struct side){&places.items[begin], second - begin}, (struct side){&places.items[second], end - second},
		    numbers);
	}
	weft_vec_free(&places);
	return WEFT_OK;
}
