/* top_run.c: weft top in a terminal: waits for keys and for what is new.  SPDX-License-Identifier: ISC */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "top_ui.h"

enum { EVERY_NS = 500000000, EVERY_MS = 500 };

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = stop};
	const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &action, NULL);
}

static void read_keys(struct top_ui *ui)
{
	struct screen_key key;
	do {
		if (!screen_next_key(&key))
			ui->stops = true;
		if (key.name[0])
			top_key(ui, &key);
	} while (key.name[0] && !ui->stops);
}

static void go_on(struct top_ui *ui)
{
	struct pollfd waits[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = cli_looker_fd(ui->looker), .events = POLLIN}};
	while (!ui->stops && !stopped) {
		top_draw(ui);
		waits[0].revents = waits[1].revents = 0;
		poll(waits, 2, EVERY_MS);
		if (waits[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			return;
		if (waits[1].revents)
			top_take(ui);
		else
			top_age(ui);
		/* Also after a signal: the terminal may have another size. */
		read_keys(ui);
	}
}

static void finish(struct top_ui *ui)
{
	weft_rows_finish(&ui->chain);
	weft_rows_finish(&ui->panel);
	if (ui->why)
		weft_findings_destroy(ui->why);
	if (ui->owns_live)
		weft_live_destroy(ui->live);
	cli_look_free(ui->look);
	cli_look_free(ui->next);
	weft_vec_free(&ui->past);
	weft_vec_free(&ui->lines);
}

int top_run(struct cli_args *args, int64_t window_ns)
{
	struct top_ui ui = {.name = args->argv[0], .window_ns = window_ns};
	session_paths paths = {0};
	int exit = cli_find_recorded(&paths, args->argv, args->argc) ? -1 : cli_fail("out of memory");
	/* What is wrong from the beginning is told where it stays to be read. */
	struct weft_error err;
	struct cli_input input;
	if (exit < 0 && cli_open_quietly(&input, paths.items, (int)paths.count, &err) < 0)
		exit = cli_fail_error(&err);
	else if (exit < 0)
		weft_trace_close(input.trace);
	if (exit < 0)
		exit = cli_looker_start(&ui.looker, paths.items, (int)paths.count, EVERY_NS, window_ns);
	if (exit < 0) {
		catch_signals();
		screen_begin();
		go_on(&ui);
		screen_end();
		cli_looker_stop(ui.looker);
		finish(&ui);
		exit = CLI_FINE;
	}
	session_paths_free(&paths);
	return exit;
}
