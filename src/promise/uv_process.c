/* uv_process.c: makes promises for child processes.  SPDX-License-Identifier: ISC */
#include "promise/loop.h"

#include <signal.h>
#include <string.h>

struct weft_uv_process {
	struct weft__handle h; /* handle; the promise holds a reference to it until the process has exited */
	uv_process_t process;
	struct weft_resolver *resolver;
	struct weft_uv_exit *result;
	bool exited;
	int cancel_signal;
};

struct weft_uv_process *weft_uv_process_ref(struct weft_uv_process *process)
{
	weft__handle_ref(&process->h);
	return process;
}

void weft_uv_process_unref(void *process)
{
	weft__handle_unref(process);
}

int weft_uv_process_id(const struct weft_uv_process *process)
{
	return process->process.pid;
}

int weft_uv_process_kill(struct weft_uv_process *process, int signal)
{
	if (process->exited || process->h.closing)
		return UV_ESRCH;
	return uv_process_kill(&process->process, signal);
}

static void kill_process(void *ctx)
{
	struct weft_uv_process *process = ctx;
	weft_uv_process_kill(process, process->cancel_signal);
}

static void on_exited(uv_process_t *handle, int64_t code, int signal)
{
	struct weft_uv_process *process = handle->data;
	struct weft_resolver *resolver = process->resolver;
	struct weft_uv_exit *result = process->result;
	process->exited = true;
	process->resolver = NULL;
	process->result = NULL;
	*result = (struct weft_uv_exit){.code = (int)code, .signal = signal};
	weft__uv_wakeup(process->h.object.uv, resolver, 0, result, free);
	weft_uv_process_unref(process);
}

/* Abandons a process when weft_uv_destroy() is called: the process keeps running, and the time of its end stays unknown. */
static void abandon_process(struct weft__handle *h)
{
	struct weft_uv_process *process = (struct weft_uv_process *)h;
	if (!process->result)
		return;
	free(process->result);
	process->result = NULL;
	weft__uv_wakeup(h->object.uv, process->resolver, UV_ECANCELED, NULL, NULL);
	weft_uv_process_unref(process);
}

/* Fills in a standard stream of the child process, and returns a status. */
static int fill_stdio(const struct weft_uv_stdio *from, int number, uv_stdio_container_t *to)
{
	uv_os_fd_t fd;
	if (from->stream && weft__stream_is_closing(from->stream))
		return WEFT_PROMISE_CLOSED;
	if (from->file && weft_uv_file_descriptor(from->file) < 0)
		return WEFT_PROMISE_CLOSED;
	if (from->stream) {
		uv_stream_t *stream = weft_uv_stream_handle(from->stream);
		int make = UV_CREATE_PIPE | (number == 0 ? UV_READABLE_PIPE : UV_WRITABLE_PIPE);
		to->flags = uv_fileno((uv_handle_t *)stream, &fd) == 0 ? UV_INHERIT_STREAM : (uv_stdio_flags)make;
		to->data.stream = stream;
	} else {
		to->flags = from->none ? UV_IGNORE : UV_INHERIT_FD;
		to->data.fd = from->file ? weft_uv_file_descriptor(from->file) : number;
	}
	return 0;
}

static char **cast_away_const(const char *const *texts)
{
	return (char **)(uintptr_t)texts;
}

static int fill_all_stdio(const struct weft_uv_spawn_options *options, uv_stdio_container_t to[3])
{
	int status = options->arguments && options->arguments[0] ? 0 : UV_EINVAL;
	if (status == 0)
		status = fill_stdio(&options->input, 0, &to[0]);
	if (status == 0)
		status = fill_stdio(&options->output, 1, &to[1]);
	return status < 0 ? status : fill_stdio(&options->errors, 2, &to[2]);
}

/* Starts the process; when the function returns, the process has started, or has failed to start. */
static int start_process(struct weft_uv_process *process, struct weft_uv *uv, const struct weft_uv_spawn_options *options,
    uv_stdio_container_t stdio[3])
{
	uv_process_options_t o = {
	    .exit_cb = on_exited,
	    .file = options->arguments[0],
	    .args = cast_away_const(options->arguments),
	    .env = cast_away_const(options->environment),
	    .cwd = options->directory,
	    .flags = options->own_session ? UV_PROCESS_DETACHED : 0,
	    .stdio_count = 3,
	    .stdio = stdio,
	};
	process->cancel_signal = options->cancel_signal ? options->cancel_signal : SIGKILL;
	int status = uv_spawn(uv->loop, &process->process, &o);
	weft__handle_add(&process->h, uv, (uv_handle_t *)&process->process);
	process->h.on_closing = abandon_process;
	if (status == 0) {
		weft_uv_process_ref(process);
		uv_ref(process->h.handle);
	}
	return status;
}

struct weft_promise *weft__uv_spawn(struct weft_record_site *site, struct weft_uv *uv,
    const struct weft_uv_spawn_options *options, struct weft_uv_process **started)
{
	uv_stdio_container_t stdio[3];
	int status = fill_all_stdio(options, stdio);
	if (started)
		*started = NULL;
	if (status < 0)
		return weft__uv_ended(site, WEFT_KIND_PROCESS, status, NULL, NULL);
	struct weft_uv_process *process = calloc(1, sizeof *process);
	struct weft_uv_exit *result = calloc(1, sizeof *result);
	struct weft_resolver *resolver = NULL;
	struct weft_promise *p = NULL;
	if (process && result)
		p = weft__uv_promise(site, WEFT_KIND_PROCESS, options->arguments[0], kill_process, process, &resolver);
	if (!resolver) {
		free(process);
		free(result);
		return p ? p : weft__uv_failed(WEFT_PROMISE_ENOMEM);
	}
	status = start_process(process, uv, options, stdio);
	if (status < 0) {
		free(result);
		weft__uv_wakeup(uv, resolver, status, NULL, NULL);
	} else {
		process->resolver = resolver;
		process->result = result;
		if (started)
			*started = weft_uv_process_ref(process);
	}
	weft_uv_process_unref(process);
	return p;
}
