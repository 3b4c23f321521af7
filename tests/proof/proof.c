/* proof.c PROOF [TIMES]: the recorder loses and tears no event, under conditions that unit tests do not reach.
 *
 * Each proof prints its counts; if a count is wrong it prints a line and exits with 1.  Each event has a number in one field and
 * the same number, masked, in another, so the reader notices an event with bytes of two events. SPDX-License-Identifier: ISC */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <weft/record.h>

#include "trace/trace.h"

#define MASK 0x15a5a5a5
#define WRITERS 2

static char place[64] = "/tmp/weft-proof-XXXXXX";
static char trace_path[96];

__attribute__((noreturn, format(printf, 1, 2))) static void broken(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vprintf(format, args);
	printf(" (see %s)\n", place);
	va_end(args);
	exit(1);
}

#define CHECK(condition, ...)                                                                                                    \
	do {                                                                                                                     \
		if (!(condition))                                                                                                \
			broken(__VA_ARGS__);                                                                                     \
	} while (0)

static uint64_t dice_state = 1;

static uint32_t dice(uint32_t limit)
{
	dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((dice_state >> 33) * (uint64_t)limit >> 31);
}

static void start(enum weft_record_mode mode, uint64_t size, unsigned packets)
{
	const struct weft_record_options options = {
	    .directory = trace_path, .overwrite = true, .mode = mode, .size_bytes = size, .packets = packets};
	CHECK(weft_start(&options) == WEFT_OK, "cannot start: %s", weft_start_error());
}

/* Records event number n of a writer; the numbers of one writer increase by 1. */
static inline void mark(unsigned w, uint32_t n)
{
	weft_await((weft_id)n, (weft_id)(int32_t)(n ^ MASK));
	(void)w;
}

/* Contents of a trace: counts, and the first and last number of each stream. */
struct seen {
	uint64_t events, lost;
	size_t streams, skipped;
	struct {
		uint32_t first, last;
		uint64_t count;
		int64_t time;
		uint64_t gaps;
	} stream[64];
};

/* Reads the trace, and fails at a torn or missing event.  `live`: the ring may wrap during the read, so events between two
 * packets may be missing. */
static void look(struct seen *seen, bool live)
{
	struct weft_trace *trace;
	struct weft_error err = {0};
	const struct weft_event *events;
	size_t count;
	int more;
	*seen = (struct seen){0};
	if (weft_trace_open(&trace, trace_path, &err) < 0)
		broken("%s: %s", err.file, err.what);
	while ((more = weft_trace_next(trace, &events, &count)) == 1)
		for (size_t i = 0; i < count; i++) {
			const struct weft_event *e = &events[i];
			CHECK(e->stream < 64, "a stream too many");
			if (e->op == WEFT_OP_DETAIL) /* a detail names the signal that killed the program */
				continue;
			__typeof__(&seen->stream[0]) s = &seen->stream[e->stream];
			CHECK(e->op == WEFT_OP_AWAIT, "an event that nobody recorded: op %d", e->op);
			CHECK((uint32_t)e->b == ((uint32_t)e->a ^ MASK), "torn: %llx %llx", (unsigned long long)e->a,
			    (unsigned long long)e->b);
			CHECK(e->time_ns >= s->time, "time goes back");
			if (s->count && (uint32_t)e->a != s->last + 1) {
				s->gaps++;
				CHECK(live && (uint32_t)e->a > s->last, "stream %u: %u follows %u", e->stream, (uint32_t)e->a,
				    s->last);
			}
			if (!s->count++)
				s->first = (uint32_t)e->a;
			s->last = (uint32_t)e->a;
			s->time = e->time_ns;
			seen->events++;
		}
	CHECK(more == 0, "reading failed");
	const struct weft_trace_info *info = weft_trace_info(trace);
	seen->streams = info->stream_count;
	seen->skipped = info->skipped_count;
	for (size_t i = 0; i < info->stream_count; i++)
		seen->lost += info->streams[i].lost_full + info->streams[i].lost_nested;
	if (info->skipped_count && !live)
		broken("skipped: %s at %llu", info->skipped[0].where.what, (unsigned long long)info->skipped[0].where.offset);
	weft_trace_close(trace);
}

/* ---- kill: SIGKILL at any moment; every counted event is in the trace ---- */

struct shared {
	uint32_t counted[WRITERS];
	uint32_t ready;
};

static struct shared *shared;

static void *write_and_count(void *arg)
{
	unsigned w = (unsigned)(uintptr_t)arg;
	for (uint32_t n = 1;; n++) {
		mark(w, n);
		__atomic_store_n(&shared->counted[w], n, __ATOMIC_RELEASE);
		__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void prove_kill(unsigned times)
{
	uint64_t events = 0, unseen = 0, wrapped = 0;
	for (unsigned i = 0; i < times; i++) {
		bool ring = i % 2, two = i % 4 >= 2;
		memset(shared, 0, sizeof *shared);
		fflush(stdout);
		pid_t pid = fork();
		CHECK(pid >= 0, "cannot fork");
		if (!pid) {
			start(ring ? WEFT_RECORD_RING : WEFT_RECORD_GROW, ring ? 256 << 10 : 0, 16);
			pthread_t other;
			if (two)
				pthread_create(&other, NULL, write_and_count, (void *)1);
			write_and_count(NULL);
		}
		while (!__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE))
			usleep(50);
		/* Waits until some of the rings have wrapped; the first lap also creates the files of a ring. */
		while (i % 8 == 1 && __atomic_load_n(&shared->counted[0], __ATOMIC_ACQUIRE) < 40000)
			usleep(50);
		usleep(dice(1000));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		struct seen seen;
		look(&seen, false);
		/* Streams are in the order of their creation, so the counts show which writer has which stream. */
		uint32_t best[WRITERS] = {0}, counted[WRITERS] = {shared->counted[0], shared->counted[1]};
		for (size_t s = 0, w = 0; s < seen.streams; s++)
			if (seen.stream[s].count) {
				CHECK(w < WRITERS, "a stream too many");
				best[w++] = seen.stream[s].last;
			}
		bool straight = best[0] >= counted[0] && best[1] >= counted[1];
		bool crossed = best[1] >= counted[0] && best[0] >= counted[1];
		CHECK(straight || crossed, "kill %u: counted %u and %u, the trace has %u and %u", i, counted[0], counted[1],
		    best[0], best[1]);
		for (size_t s = 0; s < seen.streams; s++) {
			CHECK(ring || !seen.stream[s].count || seen.stream[s].first == 1, "the first events are not there");
			wrapped += seen.stream[s].first > 1;
		}
		events += seen.events;
		unseen += (uint64_t)best[0] + best[1] - counted[0] - counted[1];
	}
	printf(
	    "%u kills: %llu events read, none lost, none torn; %llu were whole though not counted yet; %llu rings had wrapped\n",
	    times, (unsigned long long)events, (unsigned long long)unseen, (unsigned long long)wrapped);
	CHECK(wrapped || times < 20, "no ring wrapped: the proof is void");
}

/* ---- signals: a signal handler records while it interrupts the recording of other events ---- */

static volatile uint32_t handled;

static void on_signal(int number)
{
	int saved = errno;
	for (int i = 0; i < 3; i++) {
		uint32_t n = ++handled;
		weft_signal_only((weft_id)n, (weft_id)(n ^ MASK));
	}
	errno = saved;
}

static void prove_signals(unsigned times)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct sigevent to_me = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec every = {.it_interval = {.tv_nsec = 100000}, .it_value = {.tv_nsec = 100000}}, never = {0};
	timer_t timer;
	sigaction(SIGUSR1, &action, NULL);
	start(WEFT_RECORD_RING, 1 << 20, 64);
	CHECK(!timer_create(CLOCK_MONOTONIC, &to_me, &timer) && !timer_settime(timer, 0, &every, NULL), "no timer");
	uint32_t n = 0;
	uint64_t events = 0;
	unsigned rounds = 0;
	while (handled < 3 * times) {
		for (uint32_t until = n + 200000; n < until;)
			mark(0, ++n);
		/* Reads the ring without a stop, as after a crash. */
		sigset_t usr1;
		sigemptyset(&usr1);
		sigaddset(&usr1, SIGUSR1);
		sigprocmask(SIG_BLOCK, &usr1, NULL);
		struct weft_trace *trace;
		struct weft_error err = {0};
		const struct weft_event *e;
		size_t count;
		if (weft_trace_open(&trace, trace_path, &err) < 0)
			broken("%s: %s", err.file, err.what);
		uint32_t last[2] = {0};
		int64_t time = 0;
		while (weft_trace_next(trace, &e, &count) == 1)
			for (size_t i = 0; i < count; i++) {
				bool mine = e[i].op == WEFT_OP_AWAIT;
				CHECK(mine || e[i].op == WEFT_OP_SIGNAL_ONLY, "an event that nobody recorded: op %d", e[i].op);
				CHECK((uint32_t)e[i].b == ((uint32_t)e[i].a ^ MASK), "torn");
				CHECK(!last[mine] || (uint32_t)e[i].a == last[mine] + 1, "%s: %u follows %u",
				    mine ? "program" : "handler", (uint32_t)e[i].a, last[mine]);
				CHECK(e[i].time_ns >= time, "time goes back");
				last[mine] = (uint32_t)e[i].a;
				time = e[i].time_ns;
				events++;
			}
		CHECK(last[1] == n, "the program's last event is %u, the trace has %u", n, last[1]);
		CHECK(!last[0] || last[0] == handled, "the handler's last event is %u, the trace has %u", handled, last[0]);
		const struct weft_trace_info *info = weft_trace_info(trace);
		CHECK(!info->skipped_count, "something was skipped");
		CHECK(!info->streams[0].lost_nested && !info->streams[0].lost_full, "something was lost");
		weft_trace_close(trace);
		sigprocmask(SIG_UNBLOCK, &usr1, NULL);
		rounds++;
	}
	timer_settime(timer, 0, &never, NULL);
	timer_delete(timer);
	weft_stop();
	printf("%u signals at 10 kHz, 3 events each, among %u: %u looks, %llu events read, none lost, none torn\n", handled / 3,
	    n, rounds, (unsigned long long)events);
}

/* ---- snapshots: a reader reads while writers wrap small rings at full speed ---- */

static unsigned stop_writing;

static void *write_until_stopped(void *arg)
{
	uint32_t n = 0;
	while (!__atomic_load_n(&stop_writing, __ATOMIC_RELAXED))
		for (int i = 0; i < 100; i++)
			mark(0, ++n);
	return (void *)(uintptr_t)n;
}

static void prove_snapshots(unsigned times)
{
	pthread_t writers[WRITERS];
	uint64_t events = 0, gaps = 0, wrote = 0;
	start(WEFT_RECORD_RING, 64 << 10, 16);
	for (unsigned w = 0; w < WRITERS; w++)
		pthread_create(&writers[w], NULL, write_until_stopped, NULL);
	for (unsigned i = 0; i < times; i++) {
		struct seen seen;
		look(&seen, true);
		events += seen.events;
		for (size_t s = 0; s < seen.streams; s++)
			gaps += seen.stream[s].gaps;
	}
	__atomic_store_n(&stop_writing, 1, __ATOMIC_RELAXED);
	for (unsigned w = 0; w < WRITERS; w++) {
		void *n;
		pthread_join(writers[w], &n);
		wrote += (uintptr_t)n;
	}
	weft_stop();
	printf("%u snapshots of %d rings, while %llu events were written: %llu events read, 0 torn, time never back; %llu gaps "
	       "where a packet "
	       "was reused meanwhile\n",
	    times, WRITERS, (unsigned long long)wrote, (unsigned long long)events, (unsigned long long)gaps);
	CHECK(events > times, "the snapshots are empty: the proof is void");
}

/* ---- threads: 1,000 threads start and end ---- */

static void *write_ten(void *arg)
{
	for (uint32_t i = 0; i < 10; i++)
		weft_signal_only((weft_id)(uintptr_t)arg, (weft_id)i);
	return NULL;
}

static void prove_threads(unsigned times)
{
	start(WEFT_RECORD_GROW, 0, 0);
	unsigned char *have = calloc(times, 10);
	pthread_t threads[8];
	for (unsigned i = 0; i < times; i++) {
		if (i >= 8)
			pthread_join(threads[i % 8], NULL);
		CHECK(!pthread_create(&threads[i % 8], NULL, write_ten, (void *)(uintptr_t)i), "no OS thread");
	}
	for (unsigned i = 0; i < 8 && i < times; i++)
		pthread_join(threads[i], NULL);
	weft_stop();
	struct weft_trace *trace;
	struct weft_error err = {0};
	const struct weft_event *e;
	size_t count, events = 0;
	if (weft_trace_open(&trace, trace_path, &err) < 0)
		broken("%s: %s", err.file, err.what);
	while (weft_trace_next(trace, &e, &count) == 1)
		for (size_t i = 0; i < count; i++, events++) {
			CHECK(e[i].a >= 0 && e[i].a < times && e[i].b >= 0 && e[i].b < 10, "an event that nobody recorded");
			CHECK(!have[e[i].a * 10 + e[i].b]++, "an event twice");
		}
	CHECK(events == (size_t)times * 10, "%zu events of %u", events, times * 10);
	size_t streams = weft_trace_info(trace)->stream_count;
	CHECK(streams <= 10, "%zu streams for 8 OS threads at once", streams);
	weft_trace_close(trace);
	free(have);
	printf("%u OS threads came and went: %zu events, %zu streams\n", times, events, streams);
}

/* ---- fork: while other OS threads record events ---- */

static void prove_fork(unsigned times)
{
	pthread_t writers[WRITERS];
	start(WEFT_RECORD_RING, 128 << 10, 16);
	for (unsigned w = 0; w < WRITERS; w++)
		pthread_create(&writers[w], NULL, write_until_stopped, NULL);
	uint32_t n = 0;
	for (unsigned i = 0; i < times; i++) {
		for (int k = 0; k < 50; k++)
			mark(0, ++n);
		fflush(stdout);
		pid_t pid = fork();
		CHECK(pid >= 0, "cannot fork");
		if (!pid) {
			for (int k = 0; k < 2000; k++)
				weft_resolve(
				    1, 2); /* look() would fail at these events, because it accepts only events of mark() */
			_exit(weft_is_on() ? 3 : 0);
		}
		int status;
		waitpid(pid, &status, 0);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %d", status);
		if (i % 10 == 0) {
			struct seen seen;
			look(&seen, true);
			CHECK(seen.events > 0, "nothing to be seen");
		}
	}
	__atomic_store_n(&stop_writing, 1, __ATOMIC_RELAXED);
	for (unsigned w = 0; w < WRITERS; w++)
		pthread_join(writers[w], NULL);
	weft_stop();
	struct seen seen;
	look(&seen, false);
	printf("%u forks among %d OS threads that record: %llu events, none of a child's\n", times, WRITERS + 1,
	    (unsigned long long)seen.events);
}

/* ---- restart: the recording starts and stops while OS threads record ---- */

static void prove_restart(unsigned times)
{
	static uint64_t buffer[1 << 15];
	pthread_t writers[WRITERS];
	uint64_t events = 0;
	for (unsigned w = 0; w < WRITERS; w++)
		pthread_create(&writers[w], NULL, write_until_stopped, NULL);
	for (unsigned i = 0; i < times; i++) {
		bool directory = i % 100 == 0;
		const struct weft_record_options to_buffer = {
		    .buffer = buffer, .buffer_bytes = sizeof buffer, .streams = WRITERS + 1, .packets = 4};
		if (directory)
			start(WEFT_RECORD_RING, 128 << 10, 16);
		else
			CHECK(weft_start(&to_buffer) == WEFT_OK, "cannot start: %s", weft_start_error());
		if (directory || dice(4) == 0)
			usleep(directory ? 3000 : dice(100));
		weft_stop();
		if (directory) {
			struct seen seen;
			look(&seen, true);
			events += seen.events;
		}
	}
	__atomic_store_n(&stop_writing, 1, __ATOMIC_RELAXED);
	for (unsigned w = 0; w < WRITERS; w++)
		pthread_join(writers[w], NULL);
	printf("started and stopped %u times while %d OS threads recorded: %llu events in the %u directories, none torn\n", times,
	    WRITERS, (unsigned long long)events, (times + 99) / 100);
}

/* ---- exit: the program exits without a stop of the recording ---- */

static void prove_exit(unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		fflush(stdout);
		pid_t pid = fork();
		CHECK(pid >= 0, "cannot fork");
		if (!pid) {
			start(i % 2 ? WEFT_RECORD_RING : WEFT_RECORD_GROW, 1 << 20, 16);
			for (uint32_t n = 1; n <= 1000; n++)
				mark(0, n);
			if (i % 4 < 2)
				exit(0);
			if (i % 3)
				_exit(0);
			abort();
		}
		waitpid(pid, NULL, 0);
		struct seen seen;
		look(&seen, false);
		CHECK(seen.events == 1000, "%llu events of 1000", (unsigned long long)seen.events);
	}
	printf("%u programs ended by exit(), _exit() and abort(): 1000 events each\n", times);
}

static const struct proof {
	const char *name;
	void (*prove)(unsigned times);
	unsigned times;
} proofs[] = {{"kill", prove_kill, 1000}, {"signals", prove_signals, 20000}, {"snapshots", prove_snapshots, 10000},
    {"threads", prove_threads, 1000}, {"fork", prove_fork, 300}, {"restart", prove_restart, 10000}, {"exit", prove_exit, 40}};

int main(int argc, char **argv)
{
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || !mkdtemp(place))
		broken("cannot begin");
	snprintf(trace_path, sizeof trace_path, "%s/trace", place);
	for (size_t i = 0; argc > 1 && i < sizeof proofs / sizeof *proofs; i++)
		if (!strcmp(argv[1], proofs[i].name)) {
			proofs[i].prove(argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : proofs[i].times);
			char command[96];
			snprintf(command, sizeof command, "rm -rf %s", place);
			return system(command) != 0;
		}
	puts("usage: proof kill|signals|snapshots|threads|fork|restart|exit [TIMES]");
	return 2;
}
