/* uv_process_test.c: promises for child processes.  SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/promise/uv_support.h"

#define SHELL(script)                                                                                                            \
	(const char *const[])                                                                                                    \
	{                                                                                                                        \
		"sh", "-c", script, NULL                                                                                         \
	}

static void exits(struct weft_promise *p, int code, int signal)
{
	struct weft_uv_exit *got = weft_promise_value(ended(p, 0));
	assert_int_equal(got->code, code);
	assert_int_equal(got->signal, signal);
	weft_promise_unref(p);
}

/* Reads s to its end, and compares the text. */
static void says(struct weft_uv_stream *s, const char *want)
{
	char got[200] = "";
	for (size_t size = 1; size > 0;) {
		struct weft_promise *p = ended(weft_uv_read(s, 50), 0);
		struct weft_uv_bytes *bytes = weft_promise_value(p);
		size = bytes->size;
		assert_true(strlen(got) + size < sizeof got);
		strncat(got, bytes->data, size);
		weft_promise_unref(p);
	}
	assert_string_equal(got, want);
}

static void value_of_a_spawn_is_the_exit_status(void **state)
{
	struct weft_uv_process *process;
	struct weft_promise *p = weft_uv_spawn(uv, &(struct weft_uv_spawn_options){.arguments = SHELL("exit 3")}, &process);
	assert_true(weft_uv_process_id(process) > 0);
	exits(p, 3, 0);
	assert_int_equal(weft_uv_process_kill(process, SIGTERM), UV_ESRCH);
	weft_uv_process_unref(process);
	exits(weft_uv_spawn(uv, &(struct weft_uv_spawn_options){.arguments = SHELL("kill -9 $$")}, NULL), 0, SIGKILL);
	ends(weft_uv_spawn(uv, &(struct weft_uv_spawn_options){.arguments = SHELL("exit 1")}, NULL), 0);
}

static void missing_program_fails_to_start(void **state)
{
	struct weft_uv_process *process = (struct weft_uv_process *)state;
	const char *const none[] = {"no-such-program-at-all", NULL};
	ends(weft_uv_spawn(uv, &(struct weft_uv_spawn_options){.arguments = none}, &process), UV_ENOENT);
	assert_null(process);
	ends(weft_uv_spawn(uv, &(struct weft_uv_spawn_options){.arguments = none + 1}, NULL), UV_EINVAL);
	ends(weft_uv_spawn(uv, &(struct weft_uv_spawn_options){.arguments = NULL}, NULL), UV_EINVAL);
	struct weft_uv_spawn_options options = {.arguments = SHELL("exit 0"), .directory = "/nowhere/at/all"};
	ends(weft_uv_spawn(uv, &options, NULL), UV_ENOENT);
	struct weft_uv_stream *closed = weft_uv_pipe_create(uv);
	ends(weft_uv_close(closed), 0);
	options = (struct weft_uv_spawn_options){.arguments = SHELL("exit 0"), .errors.stream = closed};
	ends(weft_uv_spawn(uv, &options, NULL), WEFT_PROMISE_CLOSED);
	weft_uv_stream_unref(closed);
}

static void pipes_carry_input_and_output(void **state)
{
	struct weft_uv_stream *in = weft_uv_pipe_create(uv), *out = weft_uv_pipe_create(uv), *err = weft_uv_pipe_create(uv);
	struct weft_uv_spawn_options options = {
	    .arguments = SHELL("tr a-z A-Z; echo $WORD in $PWD >&2"),
	    .environment = (const char *const[]){"PATH=/usr/bin:/bin", "WORD=so", NULL},
	    .directory = "/usr",
	    .input.stream = in,
	    .output.stream = out,
	    .errors.stream = err,
	};
	struct weft_promise *p = weft_uv_spawn(uv, &options, NULL);
	ends(weft_uv_write(in, "hello ", 6), 0);
	ends(weft_uv_write(in, "you\n", 4), 0);
	ends(weft_uv_shutdown(in), 0);
	says(out, "HELLO YOU\n");
	says(err, "so in /usr\n");
	exits(p, 0, 0);
	weft_uv_stream_unref(in);
	weft_uv_stream_unref(out);
	weft_uv_stream_unref(err);
}

/* The output of a child goes into a file, or into the input of another child; a child may have no input. */
static void open_descriptors_are_inherited(void **state)
{
	char path[] = "/tmp/weft-process-XXXXXX";
	close(mkstemp(path));
	struct weft_promise *open = ended(weft_uv_open(uv, path, O_RDWR, 0), 0);
	struct weft_uv_file *file = weft_promise_value(open);
	struct weft_uv_spawn_options options = {.arguments = SHELL("cat; echo done"), .input.none = true, .output.file = file};
	exits(weft_uv_spawn(uv, &options, NULL), 0, 0);
	reads(weft_uv_file_read(file, 100, 0), "done\n");
	struct weft_uv_stream *between = weft_uv_pipe_create(uv), *out = weft_uv_pipe_create(uv);
	options = (struct weft_uv_spawn_options){
	    .arguments = SHELL("read a; echo $a; read b; echo $b"), .input.stream = between, .output.stream = out};
	struct weft_promise *reader = weft_uv_spawn(uv, &options, NULL);
	options = (struct weft_uv_spawn_options){.arguments = SHELL("echo one; echo two"), .output.stream = between};
	exits(weft_uv_spawn(uv, &options, NULL), 0, 0);
	exits(reader, 0, 0);
	says(out, "one\ntwo\n");
	weft_uv_stream_unref(between);
	weft_uv_stream_unref(out);
	ends(weft_uv_file_close(file), 0);
	options = (struct weft_uv_spawn_options){.arguments = SHELL("exit 0"), .output.file = file};
	ends(weft_uv_spawn(uv, &options, NULL), WEFT_PROMISE_CLOSED);
	weft_promise_unref(open);
	unlink(path);
}

static void cancellation_kills_the_child(void **state)
{
	struct weft_uv_process *process;
	struct weft_uv_spawn_options options = {.arguments = SHELL("exec sleep 1000")};
	cancelled(weft_uv_spawn(uv, &options, &process));
	run_dry(); /* a child keeps the loop alive until it has exited */
	assert_int_equal(kill(weft_uv_process_id(process), 0), -1);
	weft_uv_process_unref(process);
	ends(weft_uv_with_timeout(uv, 1, weft_uv_spawn(uv, &options, NULL)), WEFT_PROMISE_TIMEOUT);
	run_dry();
	/* The caller chooses the signal that the child gets, and the child handles it. */
	struct weft_uv_stream *out = weft_uv_pipe_create(uv);
	options.arguments = SHELL("trap 'echo bye; exit' TERM; echo ready; while :; do sleep .01; done");
	options.output.stream = out;
	options.cancel_signal = SIGTERM;
	options.own_session = true;
	struct weft_promise *p = weft_uv_spawn(uv, &options, &process);
	reads(weft_uv_read(out, 100), "ready\n");
	assert_int_equal(getsid(weft_uv_process_id(process)), weft_uv_process_id(process));
	cancelled(p);
	says(out, "bye\n");
	run_dry();
	weft_uv_stream_unref(out);
	weft_uv_process_unref(process);
}

static void killed_child_reports_its_signal(void **state)
{
	struct weft_uv_process *process;
	struct weft_uv_spawn_options options = {.arguments = SHELL("exec sleep 1000")};
	struct weft_promise *p = weft_uv_spawn(uv, &options, &process);
	assert_int_equal(weft_uv_process_kill(process, SIGINT), 0);
	exits(p, 0, SIGINT);
	weft_uv_process_unref(process);
}

/* The child runs on. */
static void destroy_leaves_the_child_running(void **state)
{
	struct weft_uv_process *process;
	struct weft_uv_spawn_options options = {.arguments = SHELL("exec sleep 1000")};
	struct weft_promise *p = weft_uv_spawn(uv, &options, &process);
	weft_uv_destroy(uv);
	assert_int_equal(weft_promise_state(p), WEFT_PENDING);
	weft_promise_cancel(p);
	weft_promise_unref(p);
	int pid = weft_uv_process_id(process), status;
	assert_int_equal(weft_uv_process_kill(process, SIGKILL), UV_ESRCH);
	weft_uv_process_unref(process);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	begin(state);
}

/* Allocation n and all later ones fail. */
static void failed_allocation_fails_the_promise_of_a_spawn(void **state)
{
	bool whole = false;
	long n = 0;
	for (; !whole && n < 50; n++) {
		allocations_left = n;
		struct weft_promise *p = weft_uv_spawn(uv, &(struct weft_uv_spawn_options){.arguments = SHELL("exit 0")}, NULL);
		allocations_left = -1;
		weft_uv_run(uv, p, LIMIT_MS);
		whole = weft_promise_state(p) == WEFT_RESOLVED;
		if (!whole)
			assert_int_equal(weft_promise_failure(p)->code, WEFT_PROMISE_ENOMEM);
		weft_promise_unref(p);
		weft_promise_trim();
	}
	assert_true(whole && n > 3);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(value_of_a_spawn_is_the_exit_status),
	    TEST(missing_program_fails_to_start),
	    TEST(pipes_carry_input_and_output),
	    TEST(open_descriptors_are_inherited),
	    TEST(cancellation_kills_the_child),
	    TEST(killed_child_reports_its_signal),
	    TEST(destroy_leaves_the_child_running),
	    TEST(failed_allocation_fails_the_promise_of_a_spawn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
