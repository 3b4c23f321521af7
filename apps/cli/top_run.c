/* top_run.c: runs weft top in a terminal: waits for keys and for snapshots.  SPDX-License-Identifier: ISC */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "top_ui.h"

enum { REFRESH_NS = 500000000, POLL_MS = 500 };

static volatile sig_atomic_t stopped;

static void request_stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = request_stop};
	const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &action, NULL);
}

static void read_keys(struct top_ui *ui)
{
	struct screen_key key;
	do {
		if (!screen_next_key(&key))
			ui->should_quit = true;
		if (key.name[0])
			top_handle_key(ui, &key);
	} while (key.name[0] && !ui->should_quit);
}

static void run_loop(struct top_ui *ui)
{
	struct pollfd waits[] = {
	    {.fd = STDIN_FILENO, .events = POLLIN}, {.fd = cli_refresher_fd(ui->refresher), .events = POLLIN}};
	while (!ui->should_quit && !stopped) {
		top_draw(ui);
		waits[0].revents = waits[1].revents = 0;
		poll(waits, 2, POLL_MS);
		if (waits[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			return;
		if (waits[1].revents)
			top_pop_snapshot(ui);
		else
			top_advance_age(ui);
		/* Keys are read after a signal too, because the signal may mean that the terminal has a new size. */
		read_keys(ui);
	}
}

static void free_ui(struct top_ui *ui)
{
	weft_rows_finish(&ui->chain);
	weft_rows_finish(&ui->panel);
	if (ui->why)
		weft_findings_destroy(ui->why);
	if (ui->owns_live)
		weft_live_destroy(ui->live);
	cli_snapshot_free(ui->snapshot);
	cli_snapshot_free(ui->next);
	weft_vec_free(&ui->history);
	weft_vec_free(&ui->lines);
}

int top_run(struct cli_args *args, int64_t window_ns)
{
	struct top_ui ui = {.name = args->argv[0], .window_ns = window_ns};
	struct open_plan *plan = NULL;
	/* Errors that exist at the start are printed on stderr, where they stay readable. */
	struct weft_error err;
	struct weft_trace *trace = NULL;
	int status = open_classify(&plan, args->argv, args->argc, &err);
	if (status == WEFT_OK) {
		plan->is_lenient = true;
		status = open_run(&trace, plan, &err);
	}
	weft_trace_close(trace);
	int exit = status < 0 ? cli_fail_error(&err) : cli_refresher_start(&ui.refresher, plan, REFRESH_NS, window_ns);
	if (exit < 0) {
		catch_signals();
		screen_begin();
		run_loop(&ui);
		screen_end();
		cli_refresher_stop(ui.refresher);
		free_ui(&ui);
		exit = CLI_OK;
	}
	open_plan_destroy(plan);
	return exit;
}
