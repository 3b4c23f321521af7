/* torture.c: allowed uses of libuv that an adapter has to survive.
 *
 * 	torture ROUNDS [LIBUV]	prints its actions, and exits with 1 if libuv did not do what it should
 *
 * LIBUV is the file of a second libuv, which the program loads as a plugin would.  The output is the same with and without
 * recording: torture_test.py compares it.  SPDX-License-Identifier: ISC */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

static uv_loop_t *loop;
static unsigned rounds;
static bool failed;

static void expect(const char *what, long got, long wanted)
{
	printf("%s: %ld\n", what, got);
	if (got != wanted)
		printf("    but %ld was expected\n", wanted);
	failed |= got != wanted;
}

static void turn(void)
{
	uv_run(loop, UV_RUN_DEFAULT);
}

static void alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	static char memory[256];
	*buf = uv_buf_init(memory, sizeof memory);
}

/* ---- Timers: restarted, stopped in their callback, freed, in reused memory, and with a callback that the program calls itself
 * ---- */

static int fired, closed;

static void fires_twice(uv_timer_t *timer)
{
	if (++fired == 2)
		uv_timer_stop(timer);
}

static void frees(uv_handle_t *handle)
{
	closed++;
	free(handle);
}

static void closes_itself(uv_timer_t *timer)
{
	fired++;
	uv_close((uv_handle_t *)timer, frees);
}

static void timers(void)
{
	uv_timer_t timer;
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, fires_twice, 1, 1000);
	uv_timer_again(&timer);
	uv_timer_set_repeat(&timer, 1);
	uv_timer_again(&timer);
	turn();
	expect("a timer again", fired, 2);
	timer.timer_cb(&timer);
	expect("the callback that the handle has, called by hand", fired, 3);
	uv_close((uv_handle_t *)&timer, NULL);
	turn();
	fired = 0;
	for (unsigned i = 0; i < rounds; i++) {
		uv_timer_t *own = malloc(sizeof *own);
		uv_timer_init(loop, own);
		uv_timer_start(own, closes_itself, 0, 0);
		turn();
	}
	expect("timers that free themselves fired", fired, rounds);
	expect("and were closed", closed, rounds);
	/* The same memory is an idle handle and then a timer, and is overwritten in between. */
	union {
		uv_timer_t timer;
		uv_idle_t idle;
		uv_async_t async;
	} memory;
	fired = 0;
	for (unsigned i = 0; i < rounds; i++) {
		uv_idle_init(loop, &memory.idle);
		uv_close((uv_handle_t *)&memory.idle, NULL);
		turn();
		memset(&memory, (int)i, sizeof memory);
		uv_timer_init(loop, &memory.timer);
		uv_timer_start(&memory.timer, fires_twice, 0, 0);
		turn();
		fired -= fired == 2;
		uv_close((uv_handle_t *)&memory.timer, NULL);
		turn();
	}
	expect("one memory, two kinds of handles", fired, 1);
}

/* A handle is copied to other memory before its start.  libuv's documentation does not allow this, but it works. */
static void moved(void)
{
	uv_timer_t first, second;
	fired = 0;
	uv_timer_init(loop, &first);
	memcpy(&second, &first, sizeof second);
	memset(&first, 0xff, offsetof(uv_timer_t, handle_queue));
	uv_timer_start(&second, fires_twice, 1, 1);
	turn();
	expect("a handle that moved fired", fired, 2);
	uv_close((uv_handle_t *)&second, NULL);
	turn();
}

/* ---- Very many callbacks, whose code the program writes while it runs ---- */

static void tick(uv_timer_t *timer)
{
	fired++;
}

static void many_callbacks(void)
{
	enum { COUNT = 300, BYTES = 16 };
	static uv_timer_t timers[COUNT];
	/* The code is written into a file and executed in a mapping of this file, because some systems forbid memory that is both
	 * writable and executable. */
	unsigned char code[COUNT * BYTES] = {0};
	void *target = (void *)tick;
	for (int i = 0; i < COUNT; i++) {
#if defined(__x86_64__)
		memcpy(code + i * BYTES, "\x48\xb8", 2); /* mov tick, %rax; jmp *%rax */
		memcpy(code + i * BYTES + 2, &target, 8);
		memcpy(code + i * BYTES + 10, "\xff\xe0", 2);
#else
		memcpy(code + i * BYTES, "\x50\x00\x00\x58\x00\x02\x1f\xd6", 8); /* ldr x16, 8; br x16 */
		memcpy(code + i * BYTES + 8, &target, 8);
#endif
	}
	int file = memfd_create("callbacks", 0);
	expect("callbacks made", (int)write(file, code, sizeof code), (int)sizeof code);
	char *callbacks = mmap(NULL, sizeof code, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	close(file);
	__builtin___clear_cache(callbacks, callbacks + sizeof code);
	fired = 0;
	for (int i = 0; i < COUNT; i++) {
		uv_timer_cb made;
		void *address = callbacks + i * BYTES;
		memcpy(&made, &address, sizeof made);
		uv_timer_init(loop, &timers[i]);
		uv_timer_start(&timers[i], made, 1, 0);
	}
	turn();
	expect("of 300 different callbacks came", fired, COUNT);
	for (int i = 0; i < COUNT; i++)
		uv_close((uv_handle_t *)&timers[i], NULL);
	turn();
}

/* ---- Requests: reused or freed in their callback, synchronous, without a callback, cancelled ---- */

static int stats;

static void stats_again(uv_fs_t *req)
{
	uv_fs_req_cleanup(req);
	if (++stats < 3)
		uv_fs_stat(loop, req, "/", stats_again);
	else
		free(req);
}

static void no_names(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
	abort();
}

static int worked, over;
static uv_sem_t gate;

static void work(uv_work_t *req)
{
	__atomic_add_fetch(&worked, 1, __ATOMIC_RELAXED);
}

static void wait_at_the_gate(uv_work_t *req)
{
	uv_sem_wait(&gate);
}

static void on_work_done(uv_work_t *req, int status)
{
	over += status == 0 ? 1 : status == UV_ECANCELED ? 100 : 10000;
	free(req);
}

static void requests(void)
{
	uv_fs_t req;
	expect("a synchronous stat", uv_fs_stat(loop, &req, "/", NULL), 0);
	uv_fs_req_cleanup(&req);
	expect("of nothing, without a loop", uv_fs_stat(NULL, &req, "/no such file", NULL), UV_ENOENT);
	uv_fs_req_cleanup(&req);
	uv_getaddrinfo_t names;
	expect("a refused one", uv_getaddrinfo(loop, &names, no_names, NULL, NULL, NULL), UV_EINVAL);
	uv_fs_stat(loop, malloc(sizeof req), "/", stats_again);
	turn();
	expect("a request used three times", stats, 3);
	/* All threads of the pool are blocked, so the requests behind them have not started, and can be cancelled. */
	enum { HELD = 4, BEHIND = 20, CANCELLED = 9 };
	uv_sem_init(&gate, 0);
	for (int i = 0; i < HELD; i++)
		uv_queue_work(loop, malloc(sizeof(uv_work_t)), wait_at_the_gate, on_work_done);
	uv_work_t *behind[BEHIND], lone;
	for (int i = 0; i < BEHIND; i++)
		uv_queue_work(loop, behind[i] = malloc(sizeof(uv_work_t)), work, on_work_done);
	uv_queue_work(loop, &lone, work, NULL);
	for (int i = 0; i < CANCELLED; i++)
		expect("work can be cancelled", uv_cancel((uv_req_t *)behind[i]), 0);
	for (int i = 0; i < HELD; i++)
		uv_sem_post(&gate);
	turn();
	expect("work done", worked, BEHIND - CANCELLED + 1);
	expect("work that was told to be over", over, HELD + BEHIND - CANCELLED + 100 * CANCELLED);
	uv_sem_destroy(&gate);
}

/* ---- Streams: another read callback, NULL callbacks ---- */

static int read_first, read_second;

static void reads_second(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
	read_second += got > 0;
	uv_close((uv_handle_t *)stream, NULL);
}

static void reads_first(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
	read_first += got > 0;
	uv_read_stop(stream);
	uv_read_start(stream, alloc, reads_second);
}

static void streams(void)
{
	int pair[2];
	uv_pipe_t pipe;
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	uv_pipe_init(loop, &pipe, 0);
	uv_pipe_open(&pipe, pair[0]);
	expect("reading without a callback", uv_read_start((uv_stream_t *)&pipe, alloc, NULL), UV_EINVAL);
	uv_read_start((uv_stream_t *)&pipe, alloc, reads_first);
	printf("a second uv_read_start: %s\n", uv_err_name(uv_read_start((uv_stream_t *)&pipe, alloc, reads_first)));
	expect("written", write(pair[1], "x", 1), 1);
	uv_run(loop, UV_RUN_ONCE);
	expect("written", write(pair[1], "y", 1), 1);
	turn();
	expect("read by the first callback", read_first, 1);
	expect("and by the second", read_second, 1);
	close(pair[1]);
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	uv_pipe_init(loop, &pipe, 0);
	uv_pipe_open(&pipe, pair[0]);
	uv_buf_t buf = uv_buf_init((char *)"hello", 5);
	uv_write_t first;
	uv_shutdown_t last;
	expect("a write without a callback", uv_write(&first, (uv_stream_t *)&pipe, &buf, 1, NULL), 0);
	expect("one that is tried", uv_try_write((uv_stream_t *)&pipe, &buf, 1), 5);
	expect("a shutdown without a callback", uv_shutdown(&last, (uv_stream_t *)&pipe, NULL), 0);
	turn();
	char got[16] = "";
	expect("all came", read(pair[1], got, sizeof got), 10);
	uv_close((uv_handle_t *)&pipe, NULL);
	turn();
	close(pair[1]);
}

/* ---- Messages from OS threads, and from signal handlers that interrupt any code ---- */

static uv_async_t async;
static bool is_hammering = true;
static int woken, sent_by_thread, sent_by_handler;

static void is_woken(uv_async_t *handle)
{
	woken = 1;
	uv_close((uv_handle_t *)handle, NULL);
}

static void send_from_handler(int number)
{
	int kept = errno;
	uv_async_send(&async);
	__atomic_store_n(&sent_by_handler, 1, __ATOMIC_RELAXED);
	errno = kept;
}

static void *hammer(void *data)
{
	while (__atomic_load_n(&is_hammering, __ATOMIC_RELAXED)) {
		uv_async_send(&async);
		__atomic_store_n(&sent_by_thread, 1, __ATOMIC_RELAXED);
		usleep(50);
	}
	return NULL;
}

static void messages(void)
{
	pthread_t thread;
	uv_timer_t timer;
	struct sigaction action = {.sa_handler = send_from_handler, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	uv_async_init(loop, &async, is_woken);
	sigaction(SIGALRM, &action, NULL);
	pthread_create(&thread, NULL, hammer, NULL);
	uv_timer_init(loop, &timer);
	setitimer(ITIMER_REAL, &often, NULL);
	for (unsigned i = 0; i < 50 * rounds || !__atomic_load_n(&sent_by_thread, __ATOMIC_RELAXED) ||
			     !__atomic_load_n(&sent_by_handler, __ATOMIC_RELAXED);
	     i++) {
		uv_timer_start(&timer, tick, 1000, 0);
		uv_timer_stop(&timer);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	__atomic_store_n(&is_hammering, false, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	uv_close((uv_handle_t *)&timer, NULL);
	turn();
	expect("an async sent by a thread and by signal handlers came", woken, 1);
}

/* ---- Callbacks that are left by longjmp, and loops in callbacks ---- */

static jmp_buf out;

static void jumps(uv_timer_t *timer)
{
	longjmp(out, 1);
}

static void runs_loop(uv_timer_t *timer)
{
	uv_timer_t inner;
	fired += 10;
	uv_timer_init(loop, &inner);
	uv_timer_start(&inner, tick, 1, 0);
	uv_run(loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&inner, NULL);
	uv_run(loop, UV_RUN_NOWAIT);
}

static void jump_out_of_a_nested_loop(void)
{
	uv_timer_t timer;
	volatile unsigned jumped = 0;
	uv_timer_init(loop, &timer);
	for (volatile unsigned i = 0; i < rounds; i++) {
		if (setjmp(out)) {
			jumped++;
			continue;
		}
		uv_timer_start(&timer, jumps, 0, 0);
		turn();
	}
	expect("callbacks left by longjmp", jumped, rounds);
	fired = 0;
	uv_timer_start(&timer, runs_loop, 0, 0);
	turn();
	expect("a loop run in a callback", fired, 11);
	uv_close((uv_handle_t *)&timer, NULL);
	turn();
}

/* ---- Children ---- */

static int exits;

static void child_exits(uv_process_t *process, int64_t status, int number)
{
	exits += status == 3;
	uv_close((uv_handle_t *)process, NULL);
}

static void children(void)
{
	for (unsigned i = 0; i < rounds; i++) {
		uv_process_t process;
		char *arguments[] = {(char *)"sh", (char *)"-c", (char *)"exit 3", NULL};
		uv_process_options_t options = {.file = "sh", .args = arguments, .exit_cb = child_exits};
		expect("spawned", uv_spawn(loop, &process, &options), 0);
		turn();
	}
	expect("children that ended with 3", exits, rounds);
	uv_process_t none;
	uv_process_options_t options = {.file = "/no such program", .args = (char *[]){(char *)"x", NULL}};
	expect("no such program", uv_spawn(loop, &none, &options), UV_ENOENT);
	uv_close((uv_handle_t *)&none, NULL);
	turn();
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		uv_timer_t timer;
		uv_loop_fork(loop);
		fired = 0;
		uv_timer_init(loop, &timer);
		uv_timer_start(&timer, fires_twice, 1, 1);
		turn();
		_exit(fired == 2 ? 0 : 1);
	}
	int status = 0;
	waitpid(child, &status, 0);
	expect("a fork that runs the loop ended with", status, 0);
}

/* ---- A plugin with a libuv of its own; loops that are busy; no descriptor left ---- */

static void count(uv_handle_t *handle, void *data)
{
	++*(int *)data;
}

static void close_all(uv_handle_t *handle, void *data)
{
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* Uses the second libuv through the addresses of its functions. */
static void plugin(const char *file)
{
	void *module = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	uv_loop_t other;
	uv_timer_t timer;
	if (!module) {
		expect(dlerror(), 0, 1);
		return;
	}
#define OWN(name) ((__typeof__(&name))dlsym(module, #name))
	expect("it is another one", OWN(uv_run) != uv_run, 1);
	fired = 0;
	OWN(uv_loop_init)(&other);
	OWN(uv_timer_init)(&other, &timer);
	OWN(uv_timer_start)(&timer, tick, 1, 0);
	OWN(uv_run)(&other, UV_RUN_DEFAULT);
	OWN(uv_close)((uv_handle_t *)&timer, NULL);
	OWN(uv_run)(&other, UV_RUN_DEFAULT);
	expect("a plugin's own libuv fired", fired, 1);
	expect("and its loop closes", OWN(uv_loop_close)(&other), 0);
#undef OWN
}

static void fires(uv_timer_t *timer)
{
	fired++;
}

/* The program unmaps the memory of a handle that it never closed.  libuv does not crash, because it never reads this handle
 * again. */
static void free_handles_without_closing(void)
{
	enum { PAGE = 4096 };
	uv_timer_t first, *gone = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), last;
	uv_loop_t other;
	uv_loop_init(&other);
	uv_timer_init(&other, &first);
	uv_timer_init(&other, gone);
	uv_timer_init(&other, &last);
	munmap(gone, PAGE);
	fired = 0;
	uv_timer_start(&first, fires, 50, 0);
	uv_run(&other, UV_RUN_DEFAULT);
	expect("a loop runs with a handle whose memory is gone", fired, 1);
	expect("and is busy", uv_loop_close(&other), UV_EBUSY);
}

static void ends(void)
{
	int handles = 0;
	uv_walk(loop, count, &handles);
	expect("handles that nobody made", handles, 0);
	uv_loop_t other;
	uv_timer_t timer;
	uv_loop_init(&other);
	uv_timer_init(&other, &timer);
	expect("a loop with an open handle is busy", uv_loop_close(&other), UV_EBUSY);
	uv_walk(&other, close_all, NULL);
	uv_run(&other, UV_RUN_DEFAULT);
	expect("and closes without", uv_loop_close(&other), 0);
	expect("the default loop closes", uv_loop_close(loop), 0);
	for (int fd = 3; fd < 256; fd++)
		close(fd);
	uv_loop_init(&other);
	fired = 0;
	uv_timer_init(&other, &timer);
	uv_timer_start(&timer, fires_twice, 1, 1);
	uv_run(&other, UV_RUN_DEFAULT);
	expect("after all descriptors were closed, a timer fired", fired, 2);
}

int main(int argc, char **argv)
{
	if (argc != 2 && argc != 3)
		return 2;
	rounds = (unsigned)atoi(argv[1]);
	signal(SIGPIPE, SIG_IGN);
	loop = uv_default_loop();
	timers();
	moved();
	many_callbacks();
	requests();
	streams();
	messages();
	jump_out_of_a_nested_loop();
	children();
	if (argc == 3)
		plugin(argv[2]);
	free_handles_without_closing();
	ends();
	return failed;
}
