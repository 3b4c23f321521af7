/* pool.c FIFO [end]: four files are FIFOs without a writer, and hold the four threads of libuv's pool; a fifth file waits.  After
 * half a second, the FIFO gets a writer, so the threads become free; with `end`, the program ends instead.
 * SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

enum { THREADS = 4, LATER_MS = 20, RELEASE_MS = 500 };

static uv_fs_t fifos[THREADS], file;
static uv_timer_t later, release;
static const char *path;
static int ends, writer = -1;

static void opened(uv_fs_t *request)
{
	if (request->result >= 0)
		close((int)request->result);
	uv_fs_req_cleanup(request);
}

static void open_writer(uv_timer_t *timer)
{
	if (ends)
		_exit(0);
	writer = open(path, O_RDWR | O_CLOEXEC);
	uv_close((uv_handle_t *)timer, NULL);
}

static void open_file(uv_timer_t *timer)
{
	uv_fs_open(timer->loop, &file, "/dev/null", O_RDONLY, 0, opened);
	uv_timer_start(&release, open_writer, RELEASE_MS, 0);
	uv_close((uv_handle_t *)timer, NULL);
}

int main(int argc, char **argv)
{
	uv_loop_t *loop = uv_default_loop();
	path = argc > 1 ? argv[1] : "fifo";
	ends = argc > 2;
	for (int i = 0; i < THREADS; i++)
		uv_fs_open(loop, &fifos[i], path, O_RDONLY, 0, opened);
	uv_timer_init(loop, &later);
	uv_timer_start(&later, open_file, LATER_MS, 0);
	uv_timer_init(loop, &release);
	uv_run(loop, UV_RUN_DEFAULT);
	if (writer >= 0)
		close(writer);
	return 0;
}
