/* loops.c: finds the event loops of libuv in a process's memory, whatever file contains libuv's code, and without symbols.
 *
 * An OS thread that runs a libuv loop has the loop's address on its stack, and a loop contains its own address in two handles.
 * The structs of libuv are in its public headers, and have not changed from 1.20 to 1.51; the flags of handles are private, and
 * have not changed since 1.19.  A loop counts its active handles and requests, which shows whether all of them were found.
 * SPDX-License-Identifier: ISC */
#include "look/loops.h"

#ifdef WEFT_HAS_UV

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <uv.h>

#include "base/cursor.h"

enum {
	CLOSING = 1,
	CLOSED = 2,
	ACTIVE = 4,
	REFERENCED = 8,
	SEARCHED_BYTES = 24 << 10, /* searched bytes of a stack, because uv__io_poll() has 12 KiB of events there */
	MAX_HANDLES = 100000,
	MAX_KEEPERS = 1000,
	MAX_LOOPS = 1000,
	MAX_WRITES = 10000
};

static bool read_all(const struct look_target *t, uint64_t address, void *to, size_t bytes)
{
	return t->read(t, address, to, bytes) == bytes;
}

static uint64_t address_of(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static bool is_code(const struct look_target *t, uint64_t address)
{
	const struct look_map *map = weft__look_map(t, address);
	return map && (map->is_executable || (t->is_core && map->path[0]));
}

static bool is_loop(const struct look_target *t, uint64_t address, uv_loop_t *loop)
{
	return address % 8 == 0 && weft__look_word(t, address + offsetof(uv_loop_t, wq_async.loop)) == address &&
	       read_all(t, address, loop, sizeof *loop) && address_of(loop->child_watcher.loop) == address &&
	       loop->wq_async.type == UV_ASYNC && loop->child_watcher.type == UV_SIGNAL && loop->backend_fd >= 0;
}

#define add_text(k, ...) snprintf((k)->label + strlen((k)->label), sizeof(k)->label - strlen((k)->label), __VA_ARGS__)

/* ---- Handles ---- */

union handle {
	uv_handle_t handle;
	uv_timer_t timer;
	uv_tcp_t tcp;
	uv_pipe_t pipe;
	uv_tty_t tty;
	uv_udp_t udp;
	uv_poll_t poll;
	uv_async_t async;
	uv_signal_t signal;
	uv_process_t process;
	uv_idle_t idle;
	uv_check_t check;
	uv_prepare_t prepare;
	uv_fs_event_t fs_event;
	uv_fs_poll_t fs_poll;
};

static void add_fd(struct look_keeper *k, const struct look_target *t, int fd)
{
	char name[64];
	add_text(k, " of fd %d", fd);
	if (t->name_fd && t->name_fd(t, fd, name, sizeof name))
		add_text(k, ": %s", name);
}

static void describe_stream(struct look_keeper *k, const struct look_target *t, uint64_t at, const uv_stream_t *stream)
{
	const uint64_t queue = at + offsetof(uv_stream_t, write_queue);
	size_t writes = 0;
	k->kind = stream->connection_cb ? WEFT_KIND_LISTEN : WEFT_KIND_STREAM_READ;
	k->callback = stream->connection_cb ? (uint64_t)(uintptr_t)stream->connection_cb : (uint64_t)(uintptr_t)stream->read_cb;
	add_text(k, stream->type == UV_TCP ? "tcp" : stream->type == UV_NAMED_PIPE ? "pipe" : "tty");
	add_fd(k, t, stream->io_watcher.fd);
	if (stream->connect_req)
		add_text(k, ", connects");
	for (uint64_t q = weft__look_word(t, queue); q && q != queue && writes < MAX_WRITES; q = weft__look_word(t, q))
		writes++;
	if (writes)
		add_text(k, ", %zu write%s wait%s", writes, writes == 1 ? "" : "s", writes == 1 ? "s" : "");
}

static void describe_timer(struct look_keeper *k, const struct look_target *t, const uv_timer_t *timer, const uv_loop_t *loop)
{
	const int64_t now_ms = t->is_core ? (int64_t)loop->time : t->now_ns / 1000000;
	k->kind = WEFT_KIND_TIMER;
	k->callback = (uint64_t)(uintptr_t)timer->timer_cb;
	add_text(k, "due in %" PRId64 " ms", (int64_t)(timer->timeout - (uint64_t)now_ms));
	if (timer->repeat)
		add_text(k, ", every %" PRIu64 " ms", timer->repeat);
}

static void describe_handle(
    struct look_keeper *k, const struct look_target *t, uint64_t at, const union handle *h, const uv_loop_t *loop)
{
	k->kind = WEFT_KIND_HANDLE;
	switch (h->handle.type) {
	case UV_TIMER: describe_timer(k, t, &h->timer, loop); return;
	case UV_TCP:
	case UV_NAMED_PIPE:
	case UV_TTY: describe_stream(k, t, at, (const uv_stream_t *)&h->tcp); return;
	case UV_UDP:
		k->kind = WEFT_KIND_STREAM_READ;
		k->callback = (uint64_t)(uintptr_t)h->udp.recv_cb;
		add_text(k, "udp");
		add_fd(k, t, h->udp.io_watcher.fd);
		return;
	case UV_POLL:
		k->kind = WEFT_KIND_POLL;
		k->callback = (uint64_t)(uintptr_t)h->poll.poll_cb;
		add_text(k, "poll");
		add_fd(k, t, h->poll.io_watcher.fd);
		return;
	case UV_SIGNAL:
		k->kind = WEFT_KIND_OS_SIGNAL;
		k->callback = (uint64_t)(uintptr_t)h->signal.signal_cb;
		add_text(k, "signal %d", h->signal.signum);
		return;
	case UV_PROCESS:
		k->kind = WEFT_KIND_PROCESS;
		k->callback = (uint64_t)(uintptr_t)h->process.exit_cb;
		add_text(k, "child %d", h->process.pid);
		return;
	case UV_ASYNC:
		k->callback = (uint64_t)(uintptr_t)h->async.async_cb;
		add_text(k, "async");
		return;
	case UV_IDLE:
		k->callback = (uint64_t)(uintptr_t)h->idle.idle_cb;
		add_text(k, "idle");
		return;
	case UV_CHECK:
		k->callback = (uint64_t)(uintptr_t)h->check.check_cb;
		add_text(k, "check");
		return;
	case UV_PREPARE:
		k->callback = (uint64_t)(uintptr_t)h->prepare.prepare_cb;
		add_text(k, "prepare");
		return;
	case UV_FS_EVENT:
		k->callback = (uint64_t)(uintptr_t)h->fs_event.cb;
		add_text(k, "fs_event");
		return;
	case UV_FS_POLL: add_text(k, "fs_poll"); return;
	default: add_text(k, "unknown"); return;
	}
}

/* Adds the handles that keep the loop alive, which are the active and referenced handles. */
static bool find_handles(const struct look_target *t, struct look_loop *out, const uv_loop_t *loop)
{
	const uint64_t head = out->address + offsetof(uv_loop_t, handle_queue);
	uint64_t before = head;
	int left = MAX_HANDLES;
	for (uint64_t q = weft__look_word(t, head); q && q != head && left-- > 0; before = q, q = weft__look_word(t, q)) {
		const uint64_t at = q - offsetof(uv_handle_t, handle_queue);
		union handle h = {0};
		/* An intact list leads back to its start; memory that was freed or is being changed does not. */
		if (weft__look_word(t, q + 8) != before || t->read(t, at, &h, sizeof h) < sizeof(uv_handle_t) ||
		    address_of(h.handle.loop) != out->address)
			break;
		if ((h.handle.flags & (CLOSING | CLOSED | ACTIVE | REFERENCED)) != (ACTIVE | REFERENCED))
			continue;
		out->found_handles++;
		if (out->keepers.count == MAX_KEEPERS)
			continue;
		struct look_keeper *k = weft_vec_push(&out->keepers);
		if (!k)
			return false;
		*k = (struct look_keeper){.kind = WEFT_KIND_HANDLE};
		describe_handle(k, t, at, &h, loop);
	}
	return true;
}

/* ---- Requests of the pool ---- */

static const char *const fs_names[] = {"custom", "open", "close", "read", "write", "sendfile", "stat", "lstat", "fstat",
    "ftruncate", "utime", "futime", "access", "chmod", "fchmod", "fsync", "fdatasync", "unlink", "rmdir", "mkdir", "mkdtemp",
    "rename", "scandir", "link", "symlink", "readlink", "chown", "fchown", "realpath", "copyfile", "lchown", "opendir", "readdir",
    "closedir", "statfs", "mkstemp", "lutime"};

static void describe_fs(struct look_keeper *k, const struct look_target *t, const uv_fs_t *fs)
{
	char path[80];
	const int type = (int)fs->fs_type;
	const size_t got = fs->path ? t->read(t, address_of(fs->path), path, sizeof path - 1) : 0;
	path[got] = 0;
	for (char *c = path; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = '?';
	k->kind = WEFT_KIND_FS;
	k->callback = (uint64_t)(uintptr_t)fs->cb;
	add_text(k, "%s", type >= 0 && type < (int)(sizeof fs_names / sizeof *fs_names) ? fs_names[type] : "fs");
	if (*path)
		add_text(k, " \"%s\"", path);
	else
		add_text(k, " of fd %d", fs->file);
}

/* Describes the request that contains a struct uv__work; the type of the work shows where the request begins. */
static void describe_request(struct look_keeper *k, const struct look_target *t, uint64_t work, uint64_t loop)
{
	uv_fs_t fs;
	uv_getaddrinfo_t lookup;
	uv_work_t job;
	if (read_all(t, work - offsetof(uv_fs_t, work_req), &fs, sizeof fs) && fs.type == UV_FS && address_of(fs.loop) == loop) {
		describe_fs(k, t, &fs);
	} else if (read_all(t, work - offsetof(uv_getaddrinfo_t, work_req), &lookup, sizeof lookup) &&
		   lookup.type == UV_GETADDRINFO && address_of(lookup.loop) == loop) {
		k->kind = WEFT_KIND_GETADDRINFO;
		k->callback = (uint64_t)(uintptr_t)lookup.cb;
		add_text(k, "getaddrinfo");
	} else if (read_all(t, work - offsetof(uv_work_t, work_req), &job, sizeof job) && job.type == UV_WORK &&
		   address_of(job.loop) == loop) {
		k->kind = WEFT_KIND_WORK;
		k->callback = (uint64_t)(uintptr_t)job.work_cb;
		add_text(k, "work");
	} else {
		add_text(k, "a request of the pool");
	}
}

/* Adds the request at an address to its loop, if there is a request: work, done, loop, and a link that points to itself while a
 * thread runs the request.  Returns whether there is a request at the address. */
static bool add_request(struct look_target *t, uint64_t address, int64_t tid, bool *has_memory)
{
	const look_loops *loops = &t->loops;
	struct uv__work work;
	const uint64_t link = address + offsetof(struct uv__work, wq);
	if (address % 8 || !read_all(t, address, &work, sizeof work) || !is_code(t, (uint64_t)(uintptr_t)work.work) ||
	    !is_code(t, (uint64_t)(uintptr_t)work.done) || weft__look_word(t, link) != link)
		return false;
	for (size_t i = 0; i < loops->count; i++) {
		struct look_loop *loop = &loops->items[i];
		bool is_known = false;
		for (size_t k = 0; k < loop->keepers.count; k++)
			is_known |= loop->keepers.items[k].work == address;
		if (loop->address != address_of(work.loop) || loop->tid == tid || is_known ||
		    loop->keepers.count >= 2 * MAX_KEEPERS)
			continue;
		struct look_keeper *k = weft_vec_push(&loop->keepers);
		*has_memory = k != NULL;
		if (!k)
			return false;
		*k = (struct look_keeper){.kind = WEFT_KIND_WORK, .work = address, .runner = tid};
		describe_request(k, t, address, loop->address);
		loop->found_requests++;
		return true;
	}
	return false;
}

/* ---- Stacks ---- */

/* Returns the next word on a thread's stack that points into writable memory outside of that stack; 0: none. */
static uint64_t next_pointer(const struct look_target *t, const struct look_thread *thread, size_t *at)
{
	const struct weft_look_stack *s = &thread->stack;
	for (; *at + 8 <= s->size && *at < SEARCHED_BYTES; *at += 8) {
		const uint64_t word = weft_load_u64(s->bytes + *at);
		const struct look_map *map = word > 4096 && word % 8 == 0 ? weft__look_map(t, word) : NULL;
		if (map && map->is_writable) {
			*at += 8;
			return word;
		}
	}
	return 0;
}

static bool find_loop_of(struct look_target *t, const struct look_thread *thread)
{
	look_loops *out = &t->loops;
	uv_loop_t loop;
	uint64_t pointer;
	for (size_t at = 0; (pointer = next_pointer(t, thread, &at));) {
		bool is_known = false;
		for (size_t i = 0; i < out->count; i++)
			is_known |= out->items[i].address == pointer;
		if (is_known || out->count == MAX_LOOPS || !is_loop(t, pointer, &loop))
			continue;
		/* Another thread that sends to the loop also has the loop on its stack, but only one thread waits for the loop's
		 * descriptor. */
		if (thread->call >= 0 && thread->args[0] != (uint64_t)loop.backend_fd)
			continue;
		struct look_loop *slot = weft_vec_push(out);
		if (!slot)
			return false;
		*slot = (struct look_loop){.address = pointer,
		    .tid = thread->tid,
		    .awaited = (uint64_t)loop.backend_fd,
		    .runtime = "libuv",
		    .has_counts = true,
		    .active_handles = loop.active_handles,
		    .active_requests = loop.active_reqs.count};
		return find_handles(t, slot, &loop);
	}
	return true;
}

bool weft__look_find_loops(struct look_target *t)
{
	/* A thread of libuv's pool has on its stack the address of the work, of its link, or of its request, as the compiler
	 * chose. */
	static const size_t offsets[] = {0, -offsetof(struct uv__work, wq), offsetof(uv_fs_t, work_req),
	    offsetof(uv_getaddrinfo_t, work_req), offsetof(uv_work_t, work_req)};
	bool has_memory = true;
	for (size_t i = 0; i < t->threads.count && has_memory; i++)
		has_memory = find_loop_of(t, &t->threads.items[i]);
	for (size_t i = 0; i < t->threads.count && has_memory && t->loops.count; i++) {
		const struct look_thread *thread = &t->threads.items[i];
		uint64_t pointer;
		/* An idle thread of libuv's pool is skipped, because its stack has remains of its last request. */
		if (thread->call == SYS_futex)
			continue;
		bool is_found = false;
		for (size_t at = 0; has_memory && !is_found && (pointer = next_pointer(t, thread, &at));)
			for (size_t k = 0; k < sizeof offsets / sizeof *offsets && has_memory && !is_found; k++)
				is_found = add_request(t, pointer + offsets[k], thread->tid, &has_memory);
	}
	return has_memory;
}

#else

bool weft__look_find_loops(struct look_target *t)
{
	return true;
}

#endif

void weft__look_free_loops(struct look_target *t)
{
	for (size_t i = 0; i < t->loops.count; i++)
		weft_vec_free(&t->loops.items[i].keepers);
	weft_vec_free(&t->loops);
}
