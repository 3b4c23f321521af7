/* scenes.c NAME: small programs of sd-event, for scenes_test.py.  SPDX-License-Identifier: ISC */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <unistd.h>

static sd_event *event;
static int ends[2];

static int check(int status)
{
	if (status >= 0)
		return status;
	fprintf(stderr, "scenes: %s\n", strerror(-status));
	exit(1);
}

static uint64_t now(void)
{
	uint64_t us;
	check(sd_event_now(event, CLOCK_MONOTONIC, &us));
	return us;
}

/* ---- One source of each kind ---- */

static int ticks, reads, children, posts;

static int on_tick(sd_event_source *source, uint64_t us, void *data)
{
	if (++ticks == 5) {
		check(write(ends[1], "x", 1) == 1 ? 0 : -1);
		return 0;
	}
	check(sd_event_source_set_time(source, now() + 10000));
	return check(sd_event_source_set_enabled(source, SD_EVENT_ONESHOT));
}

static int on_child(sd_event_source *source, const siginfo_t *info, void *data)
{
	printf("child %d\n", info->si_status);
	children++;
	return raise(SIGUSR1);
}

/* A handler runs a nested loop, and a source is freed in its own handler. */
static int on_read(sd_event_source *source, int fd, uint32_t events, void *data)
{
	char byte;
	check(read(fd, &byte, 1) == 1 ? 0 : -1);
	reads++;
	sd_event *inner;
	check(sd_event_new(&inner));
	check(sd_event_run(inner, 20000));
	sd_event_unref(inner);
	*(sd_event_source **)data = sd_event_source_unref(source);
	pid_t child = fork();
	if (child == 0)
		_exit(3);
	return check(sd_event_add_child(event, NULL, child, WEXITED, on_child, NULL));
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *data)
{
	printf("signal of own: %d\n", info->ssi_pid == (unsigned)getpid());
	usleep(60000);
	char path[64];
	snprintf(path, sizeof path, "%s/new", (const char *)data);
	FILE *file = fopen(path, "w");
	if (file)
		fclose(file);
	return 0;
}

static int on_file(sd_event_source *source, const struct inotify_event *what, void *data)
{
	printf("file %s\n", what->name);
	return sd_event_exit(sd_event_source_get_event(source), 7);
}

static int on_defer(sd_event_source *source, void *data)
{
	printf("deferred: %s\n", data == sd_event_source_get_userdata(source) ? "with its data" : "without");
	return 0;
}

static int on_post(sd_event_source *source, void *data)
{
	posts++;
	return 0;
}

static int on_exit_of_loop(sd_event_source *source, void *data)
{
	printf("exit\n");
	return 0;
}

static int on_late(sd_event_source *source, uint64_t us, void *data)
{
	return sd_event_exit(event, 1);
}

static void kinds(void)
{
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	char folder[] = "/tmp/sd-XXXXXX", path[64];
	sd_event_source *tick, *input, *late;
	check(pipe(ends));
	check(mkdtemp(folder) ? 0 : -1);
	check(sd_event_default(&event));
	check(sd_event_add_time_relative(event, &tick, CLOCK_MONOTONIC, 10000, 1, on_tick, NULL));
	check(sd_event_source_set_description(tick, "tick"));
	check(sd_event_add_io(event, &input, ends[0], EPOLLIN, on_read, &input));
	check(sd_event_source_set_description(input, "input"));
	check(sd_event_add_signal(SD_EVENT_DEFAULT, NULL, SIGUSR1, on_signal, folder));
	check(sd_event_add_inotify(event, NULL, folder, IN_CLOSE_WRITE, on_file, NULL));
	check(sd_event_add_defer(event, NULL, on_defer, &event));
	check(sd_event_add_post(event, NULL, on_post, NULL));
	check(sd_event_add_exit(event, NULL, on_exit_of_loop, NULL));
	check(sd_event_add_time(event, &late, CLOCK_MONOTONIC, now() + 100000000, 0, on_late, NULL));
	sd_event_source_ref(late);
	sd_event_source_unref(late);
	int code = sd_event_loop(SD_EVENT_DEFAULT);
	printf(
	    "code %d, ticks %d, reads %d, children %d, posts %s\n", code, ticks, reads, children, posts > 5 ? "often" : "rarely");
	sd_event_source_unref(tick);
	sd_event_source_unref(late);
	printf("gone: %s\n", sd_event_unref(event) ? "no" : "yes");
	snprintf(path, sizeof path, "%s/new", folder);
	unlink(path);
	rmdir(folder);
}

/* ---- Sources that use a CPU all the time ---- */

enum { OFTEN = 20000 };

static int turns;

static int on_turn(sd_event_source *source, void *data)
{
	return ++turns == OFTEN ? sd_event_exit(event, 0) : 0;
}

static void spin_defer(void)
{
	sd_event_source *source;
	check(sd_event_new(&event));
	check(sd_event_add_defer(event, &source, on_turn, NULL));
	check(sd_event_source_set_enabled(source, SD_EVENT_ON));
	check(sd_event_loop(event));
	sd_event_source_unref(source);
	sd_event_unref(event);
}

static int on_left(sd_event_source *source, int fd, uint32_t events, void *data)
{
	return ++turns == OFTEN ? sd_event_exit(event, 0) : 0;
}

static void spin_fd(void)
{
	sd_event_source *source;
	check(pipe(ends));
	check(write(ends[1], "x", 1) == 1 ? 0 : -1);
	check(sd_event_new(&event));
	check(sd_event_add_io(event, &source, ends[0], EPOLLIN, on_left, NULL));
	check(sd_event_loop(event));
	sd_event_source_unref(source);
	sd_event_unref(event);
}

/* A child writes all the time, which is load and no spin. */
static int on_bytes(sd_event_source *source, int fd, uint32_t events, void *data)
{
	char bytes[7];
	ssize_t n = read(fd, bytes, sizeof bytes);
	turns += n > 0;
	return n > 0 ? 0 : sd_event_exit(event, 0);
}

static void load(void)
{
	check(pipe(ends));
	pid_t child = fork();
	if (child == 0) {
		for (int i = 0; i < OFTEN; i++)
			check(write(ends[1], "hello", 5) == 5 ? 0 : -1);
		_exit(0);
	}
	close(ends[1]);
	check(sd_event_new(&event));
	check(sd_event_add_io(event, NULL, ends[0], EPOLLIN, on_bytes, NULL));
	check(sd_event_add_post(event, NULL, on_post, NULL));
	check(sd_event_loop(event));
	sd_event_unref(event);
	waitpid(child, NULL, 0);
	printf("%s, posts as often: %d\n", turns > 1000 ? "much" : "little", posts > 1000);
}

/* ---- A program that runs single iterations of its loop, until its input has data ---- */

static int on_input(sd_event_source *source, int fd, uint32_t events, void *data)
{
	char byte;
	*(int *)data = read(fd, &byte, 1) == 1;
	return 0;
}

static void turned(void)
{
	int heard = 0;
	sd_event_source *late;
	check(sd_event_default(&event));
	check(sd_event_add_io(event, NULL, STDIN_FILENO, EPOLLIN, on_input, &heard));
	check(sd_event_add_time_relative(event, &late, CLOCK_MONOTONIC, 100000000, 1, on_late, NULL));
	puts("sleeps");
	fflush(stdout);
	while (!heard)
		check(sd_event_run(event, (uint64_t)-1));
	sd_event_source_unref(late);
	sd_event_unref(event);
	puts("awake");
}

/* ---- A program that notifies systemd, and has a loop of its own ---- */

static void notifies(void)
{
	struct epoll_event ready;
	const int epoll = epoll_create1(0);
	sd_notify(0, "READY=1");
	epoll_wait(epoll, &ready, 1, 10);
	close(epoll);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} scenes[] = {{"kinds", kinds}, {"spin_defer", spin_defer}, {"spin_fd", spin_fd}, {"load", load}, {"turned", turned},
	    {"notifies", notifies}};
	for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof *scenes; i++)
		if (!strcmp(argv[1], scenes[i].name)) {
			scenes[i].run();
			return 0;
		}
	return 2;
}
