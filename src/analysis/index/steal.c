/* steal.c: measures steal time.  SPDX-License-Identifier: ISC */
#ifndef __wasm__
#include "analysis/index/steal.h"

#include <string.h>

#include "analysis/index/link_index.h"
#include "analysis/index/path_by_process.h"
#include "base/duration.h"
#include "base/search.h"
#include "model/kernel.h"

/* Shortest interval without a CPU in which the idleness of a guest proves anything, because the clocks of guest and host have
 * errors. */
#define MIN_IDLE_NS 1000000
#define WINDOW_NS INT64_C(10000000000)

/* Returns whether the stream is of a thread of QEMU that runs a virtual CPU: QEMU names such a thread "CPU 0/TCG", with the
 * accelerator. */
static bool is_vcpu_thread(const struct weft_model *m, uint16_t stream)
{
	static const char cpu[] = "CPU ";
	const uint32_t thread = m->threads ? m->threads[stream] : WEFT_NONE;
	if (thread == WEFT_NONE || thread == WEFT_SYSTEM)
		return false;
	const uint32_t label = weft_first_label(m, thread);
	const struct weft_str name = label == WEFT_NONE ? (struct weft_str){0} : weft_model_text(m, label);
	return name.len >= sizeof cpu && !memcmp(name.ptr, cpu, sizeof cpu - 1) && memchr(name.ptr, '/', name.len);
}

static int64_t get_wanted_ns(const struct weft_off_cpu_sum *sum)
{
	return sum->preempted_ns + sum->ready_ns;
}

/* Returns the error bound between the clocks of two parts of the trace. */
static int64_t get_clock_error_ns(const struct weft_model *m, uint32_t part, uint32_t qemu, int64_t time_ns)
{
	return weft_clock_error_ns(m, part, time_ns) + weft_clock_error_ns(m, qemu, time_ns);
}

/* Returns whether the guest did anything while the only virtual CPU of this QEMU process was not running: then this process
 * does not run the guest. */
static bool was_guest_active(const struct weft_model *m, uint32_t part, uint16_t stream, int64_t from_ns, int64_t to_ns)
{
	const struct weft_kernel *k = m->kernel;
	const uint32_t host = m->trace->parts[part].clock;
	const uint32_t thread = weft_kernel_of_stream(m, stream);
	const size_t end = k->threads[thread + 1].offs;
	for (size_t i = WEFT_FIND_FIRST(n, k->threads[thread].offs, end, k->offs[n].end_ns > from_ns - WINDOW_NS);
	     i < end && k->offs[i].start_ns < to_ns + WINDOW_NS; i++) {
		const struct weft_off_cpu *off = &k->offs[i];
		int64_t since_ns = off->why == WEFT_OFF_PREEMPTED ? off->start_ns : off->ready_ns, until_ns = off->end_ns;
		if (until_ns - since_ns < MIN_IDLE_NS)
			continue;
		/* Near the ends of the interval the guest may seem to continue, because the clocks are not exact. */
		const int64_t quarter_ns = (until_ns - since_ns) / 4;
		since_ns += weft_max_ns(quarter_ns, get_clock_error_ns(m, part, m->trace->streams[stream].part, since_ns));
		until_ns -= weft_max_ns(quarter_ns, get_clock_error_ns(m, part, m->trace->streams[stream].part, until_ns));
		for (size_t l = weft_first_link_from(m, since_ns); l < m->link_count && m->links[l].time_ns < until_ns; l++)
			if (m->trace->streams[m->links[l].stream].host == host)
				return true;
	}
	return false;
}

/* Measures the steal time in one process of QEMU; returns false if it is unknown or if there is none.  For several virtual
 * CPUs, the bounds are the least and the most time for which one of them was runnable. */
static bool measure_steal(
    const struct weft_model *m, uint32_t part, uint32_t qemu, int64_t from_ns, int64_t to_ns, struct weft_steal *out)
{
	const int64_t error_ns =
	    weft_max_ns(get_clock_error_ns(m, part, qemu, from_ns), get_clock_error_ns(m, part, qemu, to_ns));
	struct weft_off_cpu_sum least, most;
	size_t count = 0;
	*out = (struct weft_steal){.low_ns = INT64_MAX};
	for (size_t i = 0; i < m->trace->stream_count; i++) {
		const uint16_t stream = (uint16_t)i;
		if (m->trace->streams[i].part != qemu || !is_vcpu_thread(m, stream))
			continue;
		if (!weft_kernel_sum(m, stream, from_ns - error_ns, to_ns + error_ns, &most))
			return false;
		memset(&least, 0, sizeof least);
		if (to_ns - from_ns > 2 * error_ns && !weft_kernel_sum(m, stream, from_ns + error_ns, to_ns - error_ns, &least))
			return false;
		count++;
		out->low_ns = weft_min_ns(out->low_ns, get_wanted_ns(&least));
		if (get_wanted_ns(&most) <= out->high_ns)
			continue;
		out->high_ns = weft_min_ns(get_wanted_ns(&most), to_ns - from_ns);
		out->stream = stream;
		out->preempted = most.longest_preempted;
	}
	return count > 0 && out->high_ns > 0 && (count > 1 || !was_guest_active(m, part, out->stream, from_ns, to_ns));
}

bool weft_steal(const struct weft_model *m, uint32_t part, int64_t from_ns, int64_t to_ns, struct weft_steal *out)
{
	const struct weft_trace_info *info = m->trace;
	bool is_known = false;
	if (!m->kernel || part >= info->part_count)
		return false;
	for (uint32_t qemu = 0; qemu < info->part_count; qemu++) {
		struct weft_steal steal;
		if (info->parts[qemu].clock == info->parts[part].clock || !measure_steal(m, part, qemu, from_ns, to_ns, &steal))
			continue;
		if (is_known)
			return false;
		is_known = true;
		*out = steal;
	}
	return is_known;
}
#endif
