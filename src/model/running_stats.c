/* running_stats.c: counts lifetimes in buckets (running_stats.h).
 * SPDX-License-Identifier: ISC */
#include "model/running_stats.h"

/* Returns the bucket of a lifetime: each lifetime below 64 ns has its own bucket, and above that each power of two has 64
 * buckets. */
static size_t get_bucket(int64_t life_ns)
{
	const uint64_t life = (uint64_t)life_ns;
	if (life < WEFT_STATS_STEPS)
		return (size_t)life;
	const unsigned shift = 63 - 6 - (unsigned)__builtin_clzll(life);
	return (size_t)shift * WEFT_STATS_STEPS + (size_t)(life >> shift);
}

/* Returns the longest lifetime that belongs to a bucket. */
static int64_t get_bucket_limit(size_t bucket)
{
	if (bucket < WEFT_STATS_STEPS)
		return (int64_t)bucket;
	const size_t shift = bucket / WEFT_STATS_STEPS - 1;
	const uint64_t next = bucket % WEFT_STATS_STEPS + WEFT_STATS_STEPS + 1;
	return (int64_t)((next << shift) - 1);
}

void weft_running_stats_clear(struct weft_running_stats *stats)
{
	*stats = (struct weft_running_stats){.label = stats->label, .has_label = stats->has_label, .limit_ns = stats->limit_ns};
}

void weft_running_stats_add(struct weft_running_stats *stats, int64_t start_ns, int64_t ended_ns, bool has_failed)
{
	stats->count++;
	stats->failed += has_failed;
	if (ended_ns == INT64_MAX)
		return;
	const int64_t life_ns = ended_ns > start_ns ? ended_ns - start_ns : 0;
	stats->ended++;
	stats->below += life_ns < stats->limit_ns;
	stats->equal += life_ns == stats->limit_ns;
	stats->longest_ns = life_ns > stats->longest_ns ? life_ns : stats->longest_ns;
	stats->lives[get_bucket(life_ns)]++;
}

void weft_running_stats_merge(struct weft_running_stats *stats, const struct weft_running_stats *other)
{
	stats->count += other->count;
	stats->failed += other->failed;
	stats->ended += other->ended;
	stats->below += other->below;
	stats->equal += other->equal;
	stats->longest_ns = other->longest_ns > stats->longest_ns ? other->longest_ns : stats->longest_ns;
	for (size_t i = 0; i < WEFT_STATS_BUCKETS; i++)
		stats->lives[i] += other->lives[i];
}

int64_t weft_running_stats_lifetime(const struct weft_running_stats *stats, unsigned percent)
{
	if (!stats->ended)
		return 0;
	if (percent >= 100)
		return stats->longest_ns;
	const uint64_t rank = (stats->ended * percent + 99) / 100;
	uint64_t seen = 0;
	size_t bucket = 0;
	while (bucket < WEFT_STATS_BUCKETS && (seen += stats->lives[bucket]) < rank)
		bucket++;
	int64_t life_ns = get_bucket_limit(bucket);
	life_ns = life_ns < stats->longest_ns ? life_ns : stats->longest_ns;
	if (stats->below >= rank)
		return life_ns < stats->limit_ns ? life_ns : stats->limit_ns - 1;
	if (stats->below + stats->equal >= rank)
		return stats->limit_ns;
	return life_ns > stats->limit_ns ? life_ns : stats->limit_ns + 1;
}
