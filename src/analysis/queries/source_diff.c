/* source_diff.c: finds sites that are the same place in two versions of a source file.  SPDX-License-Identifier: ISC */
#include "analysis/queries/source_diff.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/sort.h"
#include "base/vec.h"

/* most sites of one function in each run that are aligned; if there are more, only sites on equal lines are the same place */
enum { MAX_ALIGNED_SITES = 64 };

struct used_site {
	uint64_t function; /* hash of the file and of the function */
	uint32_t line, site, kind;
	int run;
};

/* The sites of one function that one run used. */
struct side {
	const struct used_site *used_sites;
	size_t count;
};

static int compare_used_sites(const void *a, const void *b)
{
	const struct used_site *x = a, *y = b;
	return WEFT_ORDER(x->function, y->function) ?: WEFT_ORDER(x->run, y->run) ?: WEFT_ORDER(x->line, y->line) ?:
	       WEFT_ORDER(x->site, y->site);
}

/* Returns how many lines of `a`, moved by `shift`, are lines of `b`. */
static size_t count_shifted(struct side a, struct side b, int64_t shift)
{
	size_t same = 0;
	for (size_t i = 0, k = 0; i < a.count && k < b.count;) {
		int64_t x = a.used_sites[i].line + shift, y = b.used_sites[k].line;
		same += x == y;
		i += x <= y;
		k += y <= x;
	}
	return same;
}

static int64_t find_best_shift(struct side a, struct side b)
{
	int64_t best = 0;
	size_t most = count_shifted(a, b, 0);
	for (size_t i = 0; i < a.count; i++)
		for (size_t k = 0; k < b.count; k++) {
			int64_t shift = (int64_t)b.used_sites[k].line - a.used_sites[i].line;
			size_t same = count_shifted(a, b, shift);
			if (same > most || (same == most && llabs(shift) < llabs(best))) {
				most = same;
				best = shift;
			}
		}
	return best;
}

/* Returns the score of a pair of sites, which is highest if they have one kind and the distance of their lines is that of most
 * other pairs. */
static int score_pair(const struct used_site *a, const struct used_site *b, int64_t shift)
{
	return a->kind != b->kind ? 0 : 2 + (a->line + shift == b->line);
}

/* Numbers the sites of a function by the lines of the second run; sites are paired in order so that the total score is
 * highest. */
static void match_sites(struct side a, struct side b, uint32_t *const numbers[2])
{
	bool can_align = a.count <= MAX_ALIGNED_SITES && b.count <= MAX_ALIGNED_SITES;
	int64_t shift = can_align ? find_best_shift(a, b) : 0;
	int best[MAX_ALIGNED_SITES + 1][MAX_ALIGNED_SITES + 1]; /* best total score of the pairs from these two sites on */
	for (size_t i = 0; i < a.count; i++)
		numbers[0][a.used_sites[i].site] =
		    can_align ? UINT32_MAX - a.used_sites[i].line /* a number that is no line of the second run */
			      : a.used_sites[i].line;
	for (size_t k = 0; k < b.count; k++)
		numbers[1][b.used_sites[k].site] = b.used_sites[k].line;
	if (!can_align)
		return;
	for (size_t i = a.count + 1; i-- > 0;)
		for (size_t k = b.count + 1; k-- > 0;) {
			if (i == a.count || k == b.count) {
				best[i][k] = 0;
				continue;
			}
			int both = best[i + 1][k + 1] + score_pair(&a.used_sites[i], &b.used_sites[k], shift);
			int skip = best[i + 1][k] > best[i][k + 1] ? best[i + 1][k] : best[i][k + 1];
			best[i][k] = both > skip ? both : skip;
		}
	for (size_t i = 0, k = 0; i < a.count && k < b.count;) {
		int pair = score_pair(&a.used_sites[i], &b.used_sites[k], shift);
		if (pair > 0 && best[i][k] == best[i + 1][k + 1] + pair)
			numbers[0][a.used_sites[i++].site] = b.used_sites[k++].line;
		else if (best[i][k] == best[i + 1][k])
			i++;
		else
			k++;
	}
}

int weft__source_diff_match_sites(const struct weft_model *const models[2], uint32_t *const numbers[2])
{
	WEFT_VEC(struct used_site) used_sites = {0};
	for (int r = 0; r < 2; r++)
		for (uint32_t s = 0; s < models[r]->trace->site_count; s++) {
			const struct weft_site *site = &models[r]->trace->sites[s];
			struct used_site *added = weft_vec_push(&used_sites);
			if (!added) {
				weft_vec_free(&used_sites);
				return WEFT_ENOMEM;
			}
			numbers[r][s] = site->line;
			*added = (struct used_site){weft_hash_u64(weft_hash_bytes(site->file.ptr, site->file.len)) ^
							weft_hash_bytes(site->function.ptr, site->function.len),
			    site->line, s, 0, r};
		}
	for (int r = 0; r < 2; r++)
		for (uint32_t p = 1; used_sites.items && p < models[r]->promise_count; p++)
			if (models[r]->promises[p].site != WEFT_NONE)
				used_sites.items[(r ? models[0]->trace->site_count : 0) + models[r]->promises[p].site].kind =
				    models[r]->promises[p].kind;
	weft_sort(used_sites.items, used_sites.count, sizeof *used_sites.items, compare_used_sites);
	for (size_t begin = 0, end; begin < used_sites.count; begin = end) {
		size_t second = begin;
		for (end = begin; end < used_sites.count && used_sites.items[end].function == used_sites.items[begin].function;
		     end++)
			second += used_sites.items[end].run == 0;
		match_sites((struct side){&used_sites.items[begin], second - begin},
		    (struct side){&used_sites.items[second], end - second}, numbers);
	}
	weft_vec_free(&used_sites);
	return WEFT_OK;
}
