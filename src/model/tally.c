/* tally.c: see tally.h.  SPDX-License-Identifier: ISC */
#include "model/tally.h"

/* Lives below 64 ns have a bucket each; above, each power of two has 64. */
static size_t bucket_of(int64_t life_ns)
{
	const uint64_t life = (uint64_t)life_ns;
	if (life < WEFT_TALLY_STEPS)
		return (size_t)life;
	const unsigned shift = 63 - 6 - (unsigned)__builtin_clzll(life);
	return (size_t)shift * WEFT_TALLY_STEPS + (size_t)(life >> shift);
}

/* The longest life of a bucket. */
static int64_t longest_of(size_t bucket)
{
	if (bucket < WEFT_TALLY_STEPS)
		return (int64_t)bucket;
	const size_t shift = bucket / WEFT_TALLY_STEPS - 1;
	const uint64_t next = bucket % WEFT_TALLY_STEPS + WEFT_TALLY_STEPS + 1;
	return (int64_t)((next << shift) - 1);
}

void weft_tally_clear(struct weft_tally *tally)
{
	*tally = (struct weft_tally){.label = tally->label, .has_label = tally->has_label, .limit_ns = tally->limit_ns};
}

void weft_tally_add(struct weft_tally *tally, int64_t start_ns, int64_t ended_ns, bool has_failed)
{
	tally->count++;
	tally->failed += has_failed;
	if (ended_ns == INT64_MAX)
		return;
	const int64_t life_ns = ended_ns > start_ns ? ended_ns - start_ns : 0;
	tally->ended++;
	tally->below += life_ns < tally->limit_ns;
	tally->equal += life_ns == tally->limit_ns;
	tally->longest_ns = life_ns > tally->longest_ns ? life_ns : tally->longest_ns;
	tally->lives[bucket_of(life_ns)]++;
}

void weft_tally_join(struct weft_tally *tally, const struct weft_tally *other)
{
	tally->count += other->count;
	tally->failed += other->failed;
	tally->ended += other->ended;
	tally->below += other->below;
	tally->equal += other->equal;
	tally->longest_ns = other->longest_ns > tally->longest_ns ? other->longest_ns : tally->longest_ns;
	for (size_t i = 0; i < WEFT_TALLY_BUCKETS; i++)
		tally->lives[i] += other->lives[i];
}

int64_t weft_tally_life(const struct weft_tally *tally, unsigned percent)
{
	if (!tally->ended)
		return 0;
	if (percent >= 100)
		return tally->longest_ns;
	const uint64_t rank = (tally->ended * percent + 99) / 100;
	uint64_t seen = 0;
	size_t bucket = 0;
	while (bucket < WEFT_TALLY_BUCKETS && (seen += tally->lives[bucket]) < rank)
		bucket++;
	int64_t life_ns = longest_of(bucket);
	life_ns = life_ns < tally->longest_ns ? life_ns : tally->longest_ns;
	if (tally->below >= rank)
		return life_ns < tally->limit_ns ? life_ns : tally->limit_ns - 1;
	if (tally->below + tally->equal >= rank)
		return tally->limit_ns;
	return life_ns > tally->limit_ns ? life_ns : tally->limit_ns + 1;
}
