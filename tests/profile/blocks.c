/* blocks.c [still|signals|endless|writes]: a program of plain libuv whose timer computes for 200 ms of CPU time, three times.
 *
 * `still`: for 1 ms, 200 times.  `endless`: for a minute.  `signals`: another thread sends signals to the timer's thread
 * meanwhile.  `writes`: the timer writes to a pipe that another thread reads.  Prints the number of signals that were sent and
 * not received, or of writes that ended early.  SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

static volatile uint64_t sum;
static volatile sig_atomic_t received, is_over;
static int left, cost_ms, sent;
static pthread_t computer;

static void on_signal(int number)
{
	(void)number;
	received++;
}

static void *send_signals(void *unused)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	while (!is_over) {
		sent += pthread_sigqueue(computer, SIGRTMIN, (union sigval){0}) == 0;
		nanosleep(&pause, NULL);
	}
	return unused;
}

__attribute__((always_inline)) static inline int64_t cpu_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Not inlined, and no tail call: each of the two is a frame. */
__attribute__((noinline)) static void parse_orders(void)
{
	for (const int64_t end = cpu_ms() + cost_ms; cpu_ms() < end;)
		for (int i = 0; i < 10000; i++)
			sum += (uint64_t)i * i;
}

static void *drain(void *data)
{
	static char bytes[4096];
	while (read(*(int *)data, bytes, sizeof bytes) > 0)
		sum += (uint64_t)bytes[0];
	return NULL;
}

static void write_orders(int pipe)
{
	static char bytes[1 << 20];
	for (const int64_t end = cpu_ms() + cost_ms; cpu_ms() < end;)
		sent += write(pipe, bytes, sizeof bytes) != sizeof bytes;
}

/* Exported, so that it has a name in a stripped program. */
__attribute__((noinline, visibility("default"))) void on_timer(uv_timer_t *timer);
void on_timer(uv_timer_t *timer)
{
	if (timer->data)
		write_orders(*(int *)timer->data);
	else
		parse_orders();
	if (--left == 0)
		uv_timer_stop(timer);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	const int is_still = strcmp(mode, "still") == 0, has_signals = strcmp(mode, "signals") == 0;
	const int is_writing = strcmp(mode, "writes") == 0;
	uv_timer_t timer;
	pthread_t sender;
	int pipes[2];
	left = is_still ? 200 : 3;
	cost_ms = is_still ? 1 : strcmp(mode, "endless") == 0 ? 60000 : 200;
	computer = pthread_self();
	signal(SIGRTMIN, on_signal);
	if (has_signals && pthread_create(&sender, NULL, send_signals, NULL))
		return 1;
	if (is_writing && (pipe(pipes) || pthread_create(&sender, NULL, drain, &pipes[0])))
		return 1;
	uv_timer_init(uv_default_loop(), &timer);
	timer.data = is_writing ? &pipes[1] : NULL;
	uv_timer_start(&timer, on_timer, 5, 5);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	is_over = 1;
	if (has_signals)
		pthread_join(sender, NULL);
	printf("missing %d\n", sent - (int)received);
	return 0;
}
