/* openmetrics.c: writes the metrics of processes in the text format of OpenMetrics 1.0, which Prometheus reads.
 *
 * All samples of a metric must be written together, so the writer goes through the processes once for each metric.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/queries/metrics_private.h"
#include "base/duration.h"
#include "base/utf8.h"

enum { TEXT_BYTES = 4096, LABEL_BYTES = 1024 };

struct writer {
	void (*write)(void *ctx, const char *bytes, size_t size);
	void *ctx;
	const struct weft_metrics_process *processes;
	size_t count;
};

__attribute__((format(printf, 2, 3))) static void put(const struct writer *w, const char *format, ...)
{
	char text[TEXT_BYTES];
	va_list arguments;
	va_start(arguments, format);
	const int length = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (length > 0)
		w->write(w->ctx, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

static void put_head(const struct writer *w, const char *name, const char *type, const char *unit, const char *help)
{
	put(w, "# TYPE %s %s\n", name, type);
	if (*unit)
		put(w, "# UNIT %s %s\n", name, unit);
	put(w, "# HELP %s %s\n", name, help);
}

/* Writes the value of a label, without the quotation marks. */
static void put_value(const struct writer *w, const char *text)
{
	char valid[LABEL_BYTES], escaped[2 * LABEL_BYTES];
	size_t length = 0;
	weft_utf8_copy(valid, sizeof valid, (struct weft_str){text, (uint32_t)strlen(text)});
	for (const char *at = valid; *at; at++) {
		if (*at == '\n' || *at == '"' || *at == '\\')
			escaped[length++] = '\\';
		escaped[length++] = *at == '\n' ? 'n' : *at;
	}
	w->write(w->ctx, escaped, length);
}

/* Begins a sample: writes its name and the labels of its process. */
static void begin_sample(const struct writer *w, const char *name, const struct weft_metrics_process *process)
{
	put(w, "%s{trace=\"", name);
	put_value(w, process->trace);
	put(w, "\",process=\"");
	put_value(w, process->metrics->process);
	put(w, "\"");
}

static void put_label(const struct writer *w, const char *name, const char *value)
{
	put(w, ",%s=\"", name);
	put_value(w, value);
	put(w, "\"");
}

static void end_with_number(const struct writer *w, uint64_t value)
{
	put(w, "} %" PRIu64 "\n", value);
}

static void put_seconds(const struct writer *w, uint64_t ns)
{
	put(w, "%" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000, ns % 1000000000);
}

static void end_with_seconds(const struct writer *w, uint64_t ns)
{
	put(w, "} ");
	put_seconds(w, ns);
}

/* ---- Histograms ---- */

/* The labels of a histogram, apart from the labels of its process. */
struct histogram_labels {
	const char *kind, *name; /* NULL: none */
};

static void begin_histogram_sample(const struct writer *w, const char *metric, const char *suffix,
    const struct weft_metrics_process *process, const struct histogram_labels *labels)
{
	char name[100];
	snprintf(name, sizeof name, "%s_%s", metric, suffix);
	begin_sample(w, name, process);
	if (!labels->kind)
		return;
	put_label(w, "kind", labels->kind);
	put_label(w, "name", labels->name);
}

static void put_histogram(const struct writer *w, const char *metric, const struct weft_metrics_process *process,
    const struct histogram_labels *labels, const struct weft__histogram *h)
{
#define BUCKET_TEXT(limit, text) text,
	static const char *const limits[] = {WEFT_METRICS_BUCKETS(BUCKET_TEXT) "+Inf"};
#undef BUCKET_TEXT
	uint64_t sum = 0;
	for (size_t i = 0; i < WEFT__METRICS_BUCKETS; i++) {
		sum += h->buckets[i];
		begin_histogram_sample(w, metric, "bucket", process, labels);
		put_label(w, "le", limits[i]);
		end_with_number(w, sum);
	}
	begin_histogram_sample(w, metric, "count", process, labels);
	end_with_number(w, h->count);
	begin_histogram_sample(w, metric, "sum", process, labels);
	end_with_seconds(w, h->sum_ns);
}

/* ---- Each metric ---- */

#define FOR_EACH_PROCESS(w, p, m)                                                                                                \
	for (const struct weft_metrics_process *p = (w)->processes; p < (w)->processes + (w)->count; p++)                        \
		for (const struct weft_metrics *m = p->metrics; m; m = NULL)

static void put_processes(const struct writer *w)
{
	char pid[24];
	put_head(w, "weft_process", "info", "", "Processes that are followed.");
	FOR_EACH_PROCESS(w, p, m)
	{
		snprintf(pid, sizeof pid, "%" PRIu64, m->pid);
		begin_sample(w, "weft_process_info", p);
		put_label(w, "pid", pid);
		put_label(w, "host", m->host);
		end_with_number(w, 1);
	}
	put_head(w, "weft_process_recording", "gauge", "", "1 while the process records, 0 after its end.");
	FOR_EACH_PROCESS(w, p, m)
	{
		begin_sample(w, "weft_process_recording", p);
		end_with_number(w, m->is_recorded);
	}
}

static void begin_named_sample(
    const struct writer *w, const char *metric, const struct weft_metrics_process *p, const struct weft__metrics_name *name)
{
	begin_sample(w, metric, p);
	put_label(w, "kind", name->kind);
	put_label(w, "name", name->text);
}

static void put_ended(const struct writer *w)
{
	static const char *const results[] = {"resolved", "failed", "cancelled"};
	put_head(w, "weft_promises", "counter", "", "Promises that ended, by kind, label pattern and result.");
	FOR_EACH_PROCESS(w, p, m)
	for (size_t i = 0; i < m->names.count; i++)
		for (size_t r = 0; r < WEFT__METRICS_RESULTS; r++) {
			/* A time series that begins with 0 shows a rate from its first failure on. */
			if (m->names.items[i].is_permanent)
				continue;
			begin_named_sample(w, "weft_promises_total", p, &m->names.items[i]);
			put_label(w, "result", results[r]);
			end_with_number(w, m->names.items[i].results[r]);
		}
	put_head(w, "weft_promise_duration_seconds", "histogram", "seconds", "Time from the creation to the end of promises.");
	FOR_EACH_PROCESS(w, p, m)
	for (size_t i = 0; i < m->names.count; i++) {
		const struct weft__metrics_name *name = &m->names.items[i];
		if (!name->is_permanent && name->durations.count)
			put_histogram(w, "weft_promise_duration_seconds", p, &(struct histogram_labels){name->kind, name->text},
			    &name->durations);
	}
}

static void put_in_flight(const struct writer *w)
{
	put_head(w, "weft_promises_in_flight", "gauge", "", "Promises that have not ended.");
	FOR_EACH_PROCESS(w, p, m)
	for (size_t i = 0; i < m->names.count; i++) {
		begin_named_sample(w, "weft_promises_in_flight", p, &m->names.items[i]);
		end_with_number(w, m->names.items[i].in_flight);
	}
	put_head(w, "weft_promise_oldest_seconds", "gauge", "seconds", "Age of the oldest promise that has not ended.");
	FOR_EACH_PROCESS(w, p, m)
	for (size_t i = 0; i < m->names.count; i++) {
		const struct weft__metrics_name *name = &m->names.items[i];
		if (name->is_permanent || m->now_ns == INT64_MIN)
			continue;
		begin_named_sample(w, "weft_promise_oldest_seconds", p, name);
		end_with_seconds(w, name->oldest_start_ns < m->now_ns ? (uint64_t)(m->now_ns - name->oldest_start_ns) : 0);
	}
	put_head(w, "weft_names_cut", "counter", "",
	    "Promises that are counted under the name \"(other)\", because there are too many names.");
	FOR_EACH_PROCESS(w, p, m)
	{
		begin_sample(w, "weft_names_cut_total", p);
		end_with_number(w, m->cut);
	}
}

/* Returns whether an earlier thread with an event loop has the same name. */
static bool is_namesake(const struct weft_metrics *m, size_t thread)
{
	for (size_t i = 0; i < thread; i++)
		if (m->threads.items[i].has_loop == m->threads.items[thread].has_loop &&
		    strcmp(m->threads.items[i].name, m->threads.items[thread].name) == 0)
			return true;
	return false;
}

static bool is_shown(const struct weft_metrics *m, size_t thread)
{
	return (m->threads.items[thread].has_loop || !m->has_loop) && !is_namesake(m, thread);
}

/* Threads of one name share a time series: a program may start and end any number of threads. */
static void put_threads(const struct writer *w, const char *metric, bool is_busy)
{
	FOR_EACH_PROCESS(w, p, m)
	for (size_t i = 0; i < m->threads.count; i++) {
		if (!is_shown(m, i))
			continue;
		uint64_t busy_ns = 0;
		int64_t blocked_ns = 0;
		for (size_t k = i; k < m->threads.count; k++) {
			const struct weft__metrics_thread *like = &m->threads.items[k];
			if (strcmp(like->name, m->threads.items[i].name) != 0 || (m->has_loop && !like->has_loop))
				continue;
			busy_ns += like->busy_ns;
			blocked_ns = weft_max_ns(blocked_ns, like->blocked_ns);
		}
		begin_sample(w, metric, p);
		put_label(w, "thread", m->threads.items[i].name);
		end_with_seconds(w, is_busy ? busy_ns : (uint64_t)blocked_ns);
	}
}

static void put_loops(const struct writer *w)
{
	put_head(w, "weft_loop_busy_seconds", "counter", "seconds",
	    "Time in which the thread of an event loop did not sleep; the rate of this counter is the share of busy time.");
	put_threads(w, "weft_loop_busy_seconds_total", true);
	put_head(w, "weft_loop_blocked_seconds", "gauge", "seconds",
	    "Time for which the callback that runs now has blocked its event loop so far.");
	put_threads(w, "weft_loop_blocked_seconds", false);
	put_head(w, "weft_loop_delay_seconds", "histogram", "seconds",
	    "Time for which one callback, or one pause, blocked its event loop.");
	FOR_EACH_PROCESS(w, p, m)
	put_histogram(w, "weft_loop_delay_seconds", p, &(struct histogram_labels){NULL, NULL}, &m->delays);
}

static void put_queues(const struct writer *w)
{
	put_head(w, "weft_queue_level", "gauge", "", "Elements in a queue, or objects that a pool has lent.");
	FOR_EACH_PROCESS(w, p, m)
	for (size_t i = 0; i < m->queues.count; i++) {
		begin_named_sample(w, "weft_queue_level", p, &m->names.items[m->queues.items[i].name]);
		put(w, "} %" PRId64 "\n", m->queues.items[i].level);
	}
	put_head(w, "weft_queue_limit", "gauge", "", "Highest level that a queue or a pool may have; 0: none is known.");
	FOR_EACH_PROCESS(w, p, m)
	for (size_t i = 0; i < m->queues.count; i++) {
		begin_named_sample(w, "weft_queue_limit", p, &m->names.items[m->queues.items[i].name]);
		put(w, "} %" PRId64 "\n", m->queues.items[i].bound);
	}
	put_head(w, "weft_counter", "gauge", "",
	    "Counters of the program and its runtime, such as \"thread pool: requests\" and \"thread pool: at work\".");
	FOR_EACH_PROCESS(w, p, m)
	for (size_t i = 0; i < m->counters.count; i++) {
		begin_sample(w, "weft_counter", p);
		put_label(w, "name", m->counters.items[i].name);
		put(w, "} %" PRId64 "\n", m->counters.items[i].value);
	}
}

static void put_findings(const struct writer *w)
{
	put_head(w, "weft_findings", "counter", "", "Findings of weft explain, by name.");
	FOR_EACH_PROCESS(w, p, m)
	for (int kind = 0; kind < WEFT_FINDING_KINDS; kind++)
		for (int sure = 0; sure < 2; sure++) {
			if (kind == WEFT_FINDING_SAVED || kind == WEFT_FINDING_ANSWER)
				continue;
			begin_sample(w, "weft_findings_total", p);
			put_label(w, "finding", weft_finding_name((enum weft_finding_kind)kind));
			put_label(w, "certainty", sure ? "certain" : "uncertain");
			end_with_number(w, m->findings[kind][sure]);
		}
}

static void put_losses(const struct writer *w)
{
	static const char *const causes[] = {"full", "nested", "no_stream"};
	put_head(w, "weft_events_lost", "counter", "", "Events that the recorder left out, by cause.");
	FOR_EACH_PROCESS(w, p, m)
	for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
		const uint64_t values[] = {m->lost_full, m->lost_nested, m->lost_no_stream};
		begin_sample(w, "weft_events_lost_total", p);
		put_label(w, "cause", causes[i]);
		end_with_number(w, values[i]);
	}
	put_head(w, "weft_events_read", "counter", "", "Events that were read and counted.");
	FOR_EACH_PROCESS(w, p, m)
	{
		begin_sample(w, "weft_events_read_total", p);
		end_with_number(w, m->events);
	}
	put_head(w, "weft_unread_seconds", "counter", "seconds",
	    "Time for which the ring buffer lost the events before they were read; promises that ended in this time are not "
	    "counted.");
	FOR_EACH_PROCESS(w, p, m)
	{
		begin_sample(w, "weft_unread_seconds_total", p);
		end_with_seconds(w, (uint64_t)weft_max_ns(m->unread_ns, 0));
	}
}

static void put_follower(const struct writer *w, const struct weft_metrics_follower *f)
{
	put_head(w, "weft_follower_cpu_seconds", "counter", "seconds", "CPU time of weft, which serves these metrics.");
	put(w, "weft_follower_cpu_seconds_total ");
	put_seconds(w, (uint64_t)weft_max_ns(f->cpu_ns, 0));
	put_head(w, "weft_follower_resident_memory_bytes", "gauge", "bytes", "Memory of weft, which serves these metrics.");
	put(w, "weft_follower_resident_memory_bytes %" PRIu64 "\n", f->memory_bytes);
	put_head(w, "weft_follower_processes", "gauge", "", "Processes with metrics.");
	put(w, "weft_follower_processes %zu\n", w->count);
	put_head(w, "weft_follower_processes_left_out", "gauge", "", "Processes without metrics, because there are too many.");
	put(w, "weft_follower_processes_left_out %" PRIu64 "\n", f->left_out);
	if (!f->watches)
		return;
	put_head(w, "weft_watch_problems", "counter", "", "Findings and broken rules that weft watch reported.");
	put(w, "weft_watch_problems_total %" PRIu64 "\n", f->problems);
	put_head(w, "weft_watch_copies", "counter", "", "Copies of traces that weft watch saved.");
	put(w, "weft_watch_copies_total %" PRIu64 "\n", f->saved);
}

void weft_metrics_write(const struct weft_metrics_process *processes, size_t count, const struct weft_metrics_follower *follower,
    void (*write)(void *ctx, const char *bytes, size_t size), void *ctx)
{
	const struct writer w = {write, ctx, processes, count};
	put_processes(&w);
	put_loops(&w);
	put_ended(&w);
	put_in_flight(&w);
	put_queues(&w);
	put_findings(&w);
	put_losses(&w);
	put_follower(&w, follower);
	put(&w, "# EOF\n");
}
