/* attach.c: refuses programs that cannot be attached to, and writes the changes that the recorder lists.
 *
 * The changes are written while all OS threads stand still.  No thread then is inside of bytes that change, or will return into
 * them; otherwise all run for a millisecond, and the attempt is repeated.  SPDX-License-Identifier: ISC */
#include "attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __x86_64__
#include <sys/ptrace.h>

#include "attach/private.h"

int64_t weft__attach_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool weft__attach_read(const struct attach_target *t, uint64_t at, void *to, size_t bytes)
{
	return pread(t->memory_fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

bool weft__attach_write(const struct attach_target *t, uint64_t at, const void *from, size_t bytes)
{
	return pwrite(t->memory_fd, from, bytes, (off_t)at) == (ssize_t)bytes;
}

const struct weft_look_module *weft__attach_module(const struct attach_target *t, uint64_t address)
{
	size_t first = 0, end = t->module_count;
	while (first < end) {
		const size_t middle = first + (end - first) / 2;
		if (t->modules[middle].end > address)
			end = middle;
		else
			first = middle + 1;
	}
	return first < t->module_count && t->modules[first].begin <= address ? &t->modules[first] : NULL;
}

uint64_t weft__attach_libc_symbol(const struct attach_target *t, const char *name)
{
	return weft_look_modules_find(t->looked, t->libc, name);
}

static const char *file_of(const struct weft_look_module *module)
{
	const char *slash = strrchr(module->path, '/');
	return slash ? slash + 1 : module->path;
}

/* ---- Refusals ---- */

static int refuse_by_status(const struct attach_target *t, struct weft_error *err)
{
	char path[48], line[256];
	long tracer = 0, seccomp = 0;
	char state = 'R';
	bool has_shadow_stack = false;
	snprintf(path, sizeof path, "/proc/%ld/status", (long)t->pid);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		sscanf(line, "State: %c", &state);
		sscanf(line, "TracerPid: %ld", &tracer);
		sscanf(line, "Seccomp: %ld", &seccomp);
		has_shadow_stack |= !strncmp(line, "x86_Thread_features:", 20) && strstr(line, "shstk");
	}
	if (file)
		fclose(file);
	if (tracer)
		return weft_error_set(err, WEFT_ENOTSUP,
		    "process %ld is traced by process %ld, such as a debugger; end that first", (long)t->pid, tracer);
	if (state == 'T')
		return weft_error_set(
		    err, WEFT_ENOTSUP, "process %ld is stopped; let it go on first: kill -CONT %ld", (long)t->pid, (long)t->pid);
	if (seccomp)
		return weft_error_set(err, WEFT_ENOTSUP,
		    "process %ld has a seccomp filter, which may kill it for the recorder's system calls; weft waits %ld only "
		    "looks",
		    (long)t->pid, (long)t->pid);
	if (has_shadow_stack)
		return weft_error_set(err, WEFT_ENOTSUP,
		    "process %ld has a shadow stack, which forbids foreign calls; weft waits %ld only looks", (long)t->pid,
		    (long)t->pid);
	return WEFT_OK;
}

/* Returns whether the process sees other files than this one, as in a container. */
static bool has_other_files(const struct attach_target *t)
{
	char path[48];
	struct stat ours, theirs;
	snprintf(path, sizeof path, "/proc/%ld/ns/mnt", (long)t->pid);
	if (stat("/proc/self/ns/mnt", &ours) == 0 && stat(path, &theirs) == 0 && ours.st_ino != theirs.st_ino)
		return true;
	snprintf(path, sizeof path, "/proc/%ld/root", (long)t->pid);
	return stat("/proc/self/root", &ours) == 0 && stat(path, &theirs) == 0 &&
	       (ours.st_ino != theirs.st_ino || ours.st_dev != theirs.st_dev);
}

static int refuse_by_modules(struct attach_target *t, struct weft_error *err)
{
	static const char *const sanitizers[] = {"__asan_init", "__msan_init", "__tsan_init"};
	bool has_libc = false, is_musl = false;
	for (size_t i = 0; i < t->module_count; i++) {
		const char *file = file_of(&t->modules[i]);
		is_musl |= !strncmp(file, "ld-musl", 7);
		if (!strcmp(file, "libc.so.6")) {
			has_libc = true;
			t->libc = i;
		}
		for (size_t k = 0; k < sizeof sanitizers / sizeof *sanitizers; k++)
			if (weft_look_modules_find(t->looked, i, sanitizers[k]))
				return weft_error_set(err, WEFT_ENOTSUP,
				    "process %ld has a sanitizer, which replaces libc's functions itself; start it with weft "
				    "record",
				    (long)t->pid);
	}
	if (is_musl)
		return weft_error_set(err, WEFT_ENOTSUP,
		    "process %ld uses musl, for which the recorder is not built; weft waits %ld only looks", (long)t->pid,
		    (long)t->pid);
	if (!has_libc)
		return weft_error_set(err, WEFT_ENOTSUP,
		    "process %ld is linked statically, is no 64-bit program or does not use glibc; weft waits %ld only looks",
		    (long)t->pid, (long)t->pid);
	if (!weft__attach_libc_symbol(t, "dlopen"))
		return weft_error_set(
		    err, WEFT_ENOTSUP, "process %ld uses a glibc older than 2.34; start it with weft record", (long)t->pid);
	return WEFT_OK;
}

/* ---- The target ---- */

/* Marks modules whose loop takes an interrupted wait as an iteration without events. */
static bool mark_runtimes(struct attach_target *t)
{
	static const char *const loops[] = {"uv_run", "g_main_context_iteration", "event_base_loop"};
	t->waits_again = calloc(t->module_count + 1, sizeof *t->waits_again);
	for (size_t i = 0; t->waits_again && i < t->module_count; i++)
		for (size_t k = 0; k < sizeof loops / sizeof *loops; k++)
			t->waits_again[i] |= weft_look_modules_find(t->looked, i, loops[k]) != 0;
	return t->waits_again;
}

static int open_target(struct attach_target *t, long pid, struct weft_error *err)
{
	char path[48];
	*t = (struct attach_target){.pid = (pid_t)pid, .memory_fd = -1};
	int status = weft_look_modules_open(&t->looked, pid, err);
	if (status < 0)
		return status;
	t->modules = weft_look_modules_list(t->looked, &t->module_count);
	if ((status = refuse_by_status(t, err)) < 0 || (status = refuse_by_modules(t, err)) < 0)
		return status;
	if (has_other_files(t))
		return weft_error_set(err, WEFT_ENOTSUP,
		    "process %ld runs in a container or another root directory, whose files weft does not see; run weft there",
		    pid);
	snprintf(path, sizeof path, "/proc/%ld/mem", pid);
	t->memory_fd = open(path, O_RDWR | O_CLOEXEC);
	if (t->memory_fd < 0)
		return weft_error_set(err, WEFT_EACCES, "the memory of process %ld cannot be written: %s", pid, strerror(errno));
	return mark_runtimes(t) ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "out of memory");
}

static void close_target(struct attach_target *t)
{
	if (t->memory_fd >= 0)
		close(t->memory_fd);
	free(t->waits_again);
	weft_look_modules_free(t->looked);
}

/* ---- What the recorder lists ---- */

/* Finds the recorder in the process.  Returns the address of its variable; 0: it is not loaded, or was never attached. */
static uint64_t find_attachment(const struct attach_target *t, struct weft_attach *out, uint64_t *function)
{
	for (size_t i = 0; i < t->module_count; i++) {
		if (strcmp(file_of(&t->modules[i]), "libweft-hook.so") != 0)
			continue;
		const uint64_t at = weft_look_modules_find(t->looked, i, WEFT_ATTACH_VARIABLE);
		*function = weft_look_modules_find(t->looked, i, WEFT_ATTACH_FUNCTION);
		if (at && *function && weft__attach_read(t, at, out, sizeof *out) &&
		    memcmp(out->mark, WEFT_ATTACH_MARK, sizeof WEFT_ATTACH_MARK) == 0)
			return at;
	}
	*out = (struct weft_attach){.patches = 0};
	*function = 0;
	return 0;
}

/* Reads the list; NULL: it is invalid, or there is no memory. */
static struct weft_attach_patch *read_patches(const struct attach_target *t, const struct weft_attach *attachment)
{
	if (attachment->count > WEFT_ATTACH_MAX_PATCHES)
		return NULL;
	struct weft_attach_patch *patches = calloc(attachment->count + 1, sizeof *patches);
	if (!patches || !weft__attach_read(t, attachment->patches, patches, attachment->count * sizeof *patches)) {
		free(patches);
		return NULL;
	}
	for (uint32_t i = 0; i < attachment->count; i++)
		patches[i].bytes = patches[i].bytes < WEFT_ATTACH_PATCH_BYTES ? patches[i].bytes : WEFT_ATTACH_PATCH_BYTES;
	return patches;
}

static bool is_applied(const struct attach_target *t, const struct weft_attach_patch *patches, uint32_t count)
{
	unsigned char now[WEFT_ATTACH_PATCH_BYTES];
	for (uint32_t i = 0; i < count; i++)
		if (patches[i].is_code)
			return weft__attach_read(t, patches[i].at, now, patches[i].bytes) &&
			       memcmp(now, patches[i].after, patches[i].bytes) == 0;
	return false;
}

/* Returns whether the address is inside of bytes that change, but not at their start. */
static bool is_inside(uint64_t address, const struct weft_attach_patch *sorted, uint32_t count)
{
	uint32_t first = 0, end = count;
	while (first < end) {
		const uint32_t middle = first + (end - first) / 2;
		if (sorted[middle].at < address)
			first = middle + 1;
		else
			end = middle;
	}
	return first > 0 && address - sorted[first - 1].at < sorted[first - 1].bytes;
}

/* Returns whether a stopped thread is inside of instructions that change, or will return into them. */
static bool is_in_the_way(const struct attach_target *t, pid_t tid, const struct weft_attach_patch *code, uint32_t count)
{
	enum { MAX_WORDS = 512 };
	static uint64_t words[MAX_WORDS];
	struct user_regs_struct r;
	if (ptrace(PTRACE_GETREGS, tid, NULL, &r))
		return true;
	if (is_inside(r.rip, code, count))
		return true;
	const ssize_t got = pread(t->memory_fd, words, sizeof words, (off_t)r.rsp);
	const uint64_t begin = count ? code[0].at : 0, end = count ? code[count - 1].at + code[count - 1].bytes : 0;
	for (size_t i = 0; got > 0 && i < (size_t)got / sizeof *words; i++)
		if (words[i] - begin < end - begin && is_inside(words[i], code, count))
			return true;
	return false;
}

static bool may_change(const struct attach_target *t, const struct weft_attach_patch *p, bool undoes)
{
	unsigned char now[WEFT_ATTACH_PATCH_BYTES];
	uint64_t pointer;
	if (!weft__attach_read(t, p->at, now, p->bytes))
		return false;
	if (memcmp(now, p->before, p->bytes) == 0 || memcmp(now, p->after, p->bytes) == 0)
		return true;
	/* The loader may have bound a pointer since it was listed. */
	if (undoes || p->is_code || p->bytes != sizeof pointer)
		return false;
	memcpy(&pointer, now, sizeof pointer);
	const struct weft_look_module *module = weft__attach_module(t, pointer);
	return module && (size_t)(module - t->modules) == t->libc;
}

/* Writes the bytes.  Returns how many changes are in place afterwards. */
static uint32_t write_patches(const struct attach_target *t, const struct weft_attach_patch *patches, uint32_t count, bool undoes)
{
	uint32_t written = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct weft_attach_patch *p = &patches[i];
		if (may_change(t, p, undoes))
			written += weft__attach_write(t, p->at, undoes ? p->before : p->after, p->bytes);
	}
	return written;
}

static int compare_patches(const void *a, const void *b)
{
	const struct weft_attach_patch *x = a, *y = b;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Writes the changes, or the former bytes, while all OS threads stand still. */
static int change_program(struct weft_attach_result *out, struct attach_target *t, const struct weft_attach_patch *patches,
    uint32_t count, bool undoes, struct weft_error *err)
{
	enum { MAX_TRIES = 1000, PAUSE_NS = 1000000 };
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct weft_attach_patch *code = calloc(count + 1, sizeof *code);
	uint32_t code_count = 0;
	if (!code)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	for (uint32_t i = 0; i < count; i++)
		if (patches[i].is_code)
			code[code_count++] = patches[i];
	qsort(code, code_count, sizeof *code, compare_patches);
	bool is_done = false;
	out->patches = count;
	for (out->tries = 0; !is_done && out->tries < MAX_TRIES; out->tries += !is_done) {
		enum { STOP_NS = 300000000 };
		const int64_t begin_ns = weft__attach_now_ns();
		if (weft__attach_stop_all(t, begin_ns + STOP_NS)) {
			bool is_free = true;
			for (size_t i = 0; is_free && i < t->thread_count; i++)
				is_free = !t->threads[i].is_stopped || !is_in_the_way(t, t->threads[i].tid, code, code_count);
			if (is_free)
				out->written = write_patches(t, patches, count, undoes);
			is_done = is_free;
			out->threads = (uint32_t)t->thread_count;
			weft__attach_release_all(t, is_free && !undoes);
		}
		out->stopped_ns = weft__attach_now_ns() - begin_ns;
		if (!is_done)
			nanosleep(&pause, NULL);
	}
	free(code);
	return is_done ? WEFT_OK
		       : weft_error_set(err, WEFT_EBUSY,
			     "the OS threads of process %ld cannot be stopped at a safe moment; try again", (long)t->pid);
}

/* ---- The helper process ---- */

struct order {
	long pid;
	const char *library, *session; /* NULL: undo */
};

struct report {
	int status;
	struct weft_attach_result result;
	struct weft_error error;
};

static int load(struct weft_attach_result *out, struct attach_target *t, const struct order *o, struct weft_error *err)
{
	struct weft_attach attachment;
	uint64_t function;
	uint64_t at = find_attachment(t, &attachment, &function);
	int status = weft__attach_run(t, o->library, function, o->session, attachment.room, &out->borrowed_ns, err);
	if (status < 0)
		return status;
	const uint64_t room[2] = {attachment.room[0], attachment.room[1]};
	if (!at) {
		/* The recorder is a new module. */
		weft_look_modules_free(t->looked);
		free(t->waits_again);
		t->waits_again = NULL;
		t->module_count = 0;
		if ((status = weft_look_modules_open(&t->looked, t->pid, err)) < 0)
			return status;
		t->modules = weft_look_modules_list(t->looked, &t->module_count);
		if ((status = refuse_by_modules(t, err)) < 0)
			return status;
		if (!mark_runtimes(t))
			return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	at = find_attachment(t, &attachment, &function);
	struct weft_attach_patch *patches = at ? read_patches(t, &attachment) : NULL;
	if (!patches)
		return weft_error_set(
		    err, WEFT_EFORMAT, "the recorder in process %ld is of another version of weft", (long)t->pid);
	weft__attach_write(t, at + offsetof(struct weft_attach, room), room, sizeof room);
	memcpy(out->left_out, attachment.left_out, sizeof out->left_out);
	out->left_out[sizeof out->left_out - 1] = 0;
	if (!attachment.is_accepted)
		status = weft_error_set(err, WEFT_EBUSY, "process %ld is recorded already, or records itself", (long)t->pid);
	else
		status = change_program(out, t, patches, attachment.count, false, err);
	free(patches);
	return status;
}

static int undo(struct weft_attach_result *out, struct attach_target *t, struct weft_error *err)
{
	struct weft_attach attachment;
	uint64_t function;
	if (!find_attachment(t, &attachment, &function) || !attachment.count)
		return WEFT_OK;
	struct weft_attach_patch *patches = read_patches(t, &attachment);
	if (!patches)
		return weft_error_set(
		    err, WEFT_EFORMAT, "the recorder in process %ld is of another version of weft", (long)t->pid);
	const int status = change_program(out, t, patches, attachment.count, true, err);
	free(patches);
	return status;
}

/* Blocks signals, because an interrupted change would end the program. */
static void run_order(struct report *report, const struct order *order)
{
	static struct attach_target target;
	/* On busy CPUs the program stands still until this process runs again; only root may run sooner. */
	enum { HIGHEST_PRIORITY = -20 };
	(void)setpriority(PRIO_PROCESS, 0, HIGHEST_PRIORITY);
	const int64_t begin_ns = weft__attach_now_ns();
	report->status = open_target(&target, order->pid, &report->error);
	if (report->status == WEFT_OK)
		report->status = order->session ? load(&report->result, &target, order, &report->error)
						: undo(&report->result, &target, &report->error);
	report->result.whole_ns = weft__attach_now_ns() - begin_ns;
	close_target(&target);
}

static int delegate(struct weft_attach_result *out, const struct order *order, struct weft_error *err)
{
	struct report report = {.status = WEFT_EIO};
	sigset_t every, mask;
	int ends[2];
	*out = (struct weft_attach_result){.threads = 0};
	if (pipe2(ends, O_CLOEXEC))
		return weft_error_set(err, WEFT_EIO, "%s", strerror(errno));
	sigfillset(&every);
	sigprocmask(SIG_SETMASK, &every, &mask);
	const pid_t helper = fork();
	if (helper == 0) {
		run_order(&report, order);
		_exit(write(ends[1], &report, sizeof report) != (ssize_t)sizeof report);
	}
	close(ends[1]);
	ssize_t got = -1;
	if (helper > 0) {
		while ((got = read(ends[0], &report, sizeof report)) < 0 && errno == EINTR)
			;
		while (waitpid(helper, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (got != (ssize_t)sizeof report)
		return weft_error_set(err, WEFT_EIO, "the process that attaches has failed");
	*out = report.result;
	if (report.status < 0 && err)
		*err = report.error;
	return report.status;
}

int weft_attach_load(struct weft_attach_result *out, long pid, const char *library, const char *session, struct weft_error *err)
{
	return delegate(out, &(struct order){pid, library, session}, err);
}

int weft_attach_undo(struct weft_attach_result *out, long pid, struct weft_error *err)
{
	return delegate(out, &(struct order){.pid = pid}, err);
}

enum weft_attach_state weft_attach_state(long pid)
{
	struct attach_target *t = calloc(1, sizeof *t);
	struct weft_attach attachment;
	uint64_t function;
	enum weft_attach_state state = WEFT_ATTACH_NONE;
	if (t && open_target(t, pid, NULL) == WEFT_OK && find_attachment(t, &attachment, &function) && attachment.count) {
		struct weft_attach_patch *patches = read_patches(t, &attachment);
		state = patches && is_applied(t, patches, attachment.count) ? WEFT_ATTACH_APPLIED : WEFT_ATTACH_UNDONE;
		free(patches);
	}
	if (t)
		close_target(t);
	free(t);
	return state;
}

#else

static int refuse(long pid, struct weft_error *err)
{
	return weft_error_set(
	    err, WEFT_ENOTSUP, "weft attaches only to programs for x86-64; start process %ld with weft record", pid);
}

int weft_attach_load(struct weft_attach_result *out, long pid, const char *library, const char *session, struct weft_error *err)
{
	return refuse(pid, err);
}

int weft_attach_undo(struct weft_attach_result *out, long pid, struct weft_error *err)
{
	return refuse(pid, err);
}

enum weft_attach_state weft_attach_state(long pid)
{
	return WEFT_ATTACH_NONE;
}

#endif
