/* standby.c: implements weft on and weft off, which start and stop recording in programs on standby (wire/standby.h).
 * SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "attach/attach.h"
#include "base/sort.h"
#include "cli/cli.h"
#include "cli/complete.h"
#include "deadline.h"
#include "look/look.h"
#include "running.h"
#include "wake.h"
#include "wire/standby.h"

enum {
	MAX_PAGE_BYTES = 1 << 18, /* largest page size; the standby mapping has a struct weft_standby and padding to a page */
	MAX_STREAMS = 1 << 16,    /* maximum length of the list of streams, which is untrusted and may be circular */
	MAX_MAPPINGS = 1 << 20,
	WAIT_MS = 5,
	TRIES_PER_WAKE = 50 /* number of unanswered polls between two attempts to wake the program */
};

/* Time limits for one process and for all processes: a process may have a million mappings, and a user thousands of
 * processes. */
#define FIND_NS INT64_C(1000000000)
#define FIND_ALL_NS INT64_C(10000000000)
/* Minimum time for all OS threads of a process, even if the limit has passed. */
#define WALK_NS INT64_C(200000000)

/* A process on standby. */
struct standby_process {
	long pid;
	int memory_fd; /* descriptor of /proc/PID/mem, which belongs to this process even if its id is reused */
	uint64_t at;
	char name[64];
	struct weft_standby page;
};

typedef WEFT_VEC(struct standby_process *) standby_processes;

/* ---- Its memory ---- */

static bool read_memory(const struct standby_process *s, uint64_t at, void *to, size_t bytes)
{
	return pread(s->memory_fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static bool write_memory(const struct standby_process *s, uint64_t at, const void *from, size_t bytes)
{
	return pwrite(s->memory_fd, from, bytes, (off_t)at) == (ssize_t)bytes;
}

static uint64_t read_pointer(const struct standby_process *s, uint64_t at)
{
	uint64_t wide = 0;
	uint32_t narrow = 0;
	if (s->page.pointer_bytes == sizeof wide)
		return read_memory(s, at, &wide, sizeof wide) ? wide : 0;
	return read_memory(s, at, &narrow, sizeof narrow) ? narrow : 0;
}

/* Reads the standby page of the process; fails if the process has ended. */
static bool read_page(struct standby_process *s)
{
	return read_memory(s, s->at, &s->page, sizeof s->page) && !memcmp(s->page.mark, WEFT_STANDBY_MARK, sizeof s->page.mark) &&
	       s->page.self == s->at;
}

/* Returns whether the user may mean the process by a name: that of its program, or that of its first OS thread, as in ps. */
static bool has_name(const struct standby_process *s, const char *name)
{
	char path[48], present[64] = "";
	if (!strcmp(s->name, name))
		return true;
	snprintf(path, sizeof path, "/proc/%ld/comm", s->pid);
	FILE *file = fopen(path, "re");
	if (file && fgets(present, sizeof present, file))
		present[strcspn(present, "\n")] = 0;
	if (file)
		fclose(file);
	return !strcmp(present, name);
}

/* Returns 1 if the process is on standby, 0 if it is not, or -errno. */
static int find_standby(struct standby_process *s, long pid)
{
	char path[48], *line = NULL;
	size_t capacity = 0;
	*s = (struct standby_process){.pid = pid};
	snprintf(path, sizeof path, "/proc/%ld/mem", pid);
	s->memory_fd = open(path, O_RDWR | O_CLOEXEC);
	int error = s->memory_fd < 0 ? errno : 0;
	snprintf(path, sizeof path, "/proc/%ld/maps", pid);
	FILE *maps = error ? NULL : fopen(path, "re");
	error = error ? error : maps ? 0 : errno;
	bool found = false;
	const int64_t deadline_ns = deadline_after_ns(FIND_NS);
	for (unsigned i = 0;
	     maps && !found && i < MAX_MAPPINGS && !deadline_is_over(deadline_ns) && getline(&line, &capacity, maps) > 0; i++) {
		uint64_t begin, end, inode;
		char rights[8];
		found = sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %" SCNu64, &begin, &end, rights, &inode) == 4 &&
			!strncmp(rights, "rw-", 3) && inode == 0 && end - begin >= sizeof s->page &&
			end - begin <= MAX_PAGE_BYTES;
		s->at = found ? begin : 0;
		found = found && read_page(s);
	}
	free(line);
	if (maps)
		fclose(maps);
	if (!found && s->memory_fd >= 0)
		close(s->memory_fd);
	if (found)
		weft_look_program_name(s->name, sizeof s->name, pid);
	return error ? -error : found;
}

/* ---- Requests to a program ---- */

static bool is_answered(struct standby_process *s, const struct weft_standby_request *r)
{
	/* The process writes the answer's number last, so data that is read after the number is complete. */
	return read_page(s) && s->page.answer.number == r->number && read_page(s);
}

/* Makes the next event of each OS thread take the recorder's slow path, where requests are noticed. */
static void send_to_slow_path(const struct standby_process *s, int64_t deadline_ns)
{
	const unsigned char on = (unsigned char)s->page.gate_on;
	const uint32_t none = 0;
	if (!s->page.answer.is_on) {
		write_memory(s, s->page.gate, &on, 1);
		return;
	}
	uint64_t thread = read_pointer(s, s->page.threads);
	for (unsigned i = 0; thread && i < MAX_STREAMS && !deadline_is_over(deadline_ns);
	     i++, thread = read_pointer(s, thread + s->page.next_at)) {
		const uint64_t stream = read_pointer(s, thread + s->page.stream_at);
		if (stream)
			write_memory(s, stream + s->page.limit_at, &none, sizeof none);
	}
}

/* Sends a request.  Returns false if the process has ended, or has no event in time. */
static bool send_request(struct standby_process *s, struct weft_standby_request *r, int64_t timeout_ns)
{
	while (!r->number)
		if (getrandom(&r->number, sizeof r->number, 0) != sizeof r->number)
			r->number = (uint64_t)getpid() << 32 | 1;
	r->check = weft__standby_check(r);
	const uint64_t at = s->at + offsetof(struct weft_standby, request);
	unsigned tries = 0;
	for (const int64_t deadline_ns = deadline_after_ns(timeout_ns);;) {
		/* Another weft command may have sent a request meanwhile. */
		if (!read_page(s) || (s->page.request.number != r->number && !write_memory(s, at, r, sizeof *r)))
			return false;
		const int64_t least_ns = deadline_after_ns(WALK_NS), walk_ns = least_ns > deadline_ns ? least_ns : deadline_ns;
		send_to_slow_path(s, walk_ns);
		usleep(WAIT_MS * 100);
		bool has_answered = is_answered(s, r);
		/* Each OS thread records its own pending promises, so all threads are woken once recording is on. */
		if (has_answered ? r->verb == WEFT_STANDBY_ON : tries++ % TRIES_PER_WAKE == 0)
			cli_wake_threads(s->pid, s->memory_fd, &s->page, s->at, walk_ns);
		if (has_answered || is_answered(s, r))
			return true;
		if (deadline_is_over(deadline_ns))
			return false;
		usleep(WAIT_MS * 900);
	}
}

/* ---- Finding and controlling programs ---- */

static int compare_pids(const void *a, const void *b)
{
	const long one = (*(struct standby_process *const *)a)->pid, other = (*(struct standby_process *const *)b)->pid;
	return (one > other) - (one < other);
}

/* Finds all programs on standby that this user may control.  Returns false without memory. */
static bool find_all_standby(standby_processes *all)
{
	DIR *dir = opendir("/proc");
	bool whole = true;
	const int64_t deadline_ns = deadline_after_ns(FIND_ALL_NS);
	for (const struct dirent *entry; whole && dir && (entry = readdir(dir));) {
		struct standby_process s;
		if (deadline_is_over(deadline_ns)) {
			cli_note("the search for programs that stand by took too long, and is not complete; name a process id");
			break;
		}
		const long pid = strtol(entry->d_name, NULL, 10);
		if (pid <= 0 || find_standby(&s, pid) <= 0)
			continue;
		struct standby_process *copy = malloc(sizeof *copy), **slot = copy ? weft_vec_push(all) : NULL;
		whole = slot != NULL;
		if (slot) {
			*copy = s;
			*slot = copy;
		} else {
			free(copy);
			close(s.memory_fd);
		}
	}
	if (dir)
		closedir(dir);
	weft_sort(all->items, all->count, sizeof *all->items, compare_pids);
	return whole;
}

static void free_processes(standby_processes *all)
{
	for (size_t i = 0; i < all->count; i++) {
		close(all->items[i]->memory_fd);
		free(all->items[i]);
	}
	weft_vec_free(all);
}

static struct weft_str bounded_text(char *text, size_t capacity)
{
	return (struct weft_str){text, strnlen(text, capacity)};
}

static void put_process(struct standby_process *s, bool json)
{
	struct weft_standby_answer *a = &s->page.answer;
	if (json) {
		printf("{\"pid\":%ld,\"name\":", s->pid);
		cli_put_cstring(s->name);
		printf(",\"on\":%s,\"trace\":", a->is_on ? "true" : "false");
		if (a->path[0])
			cli_put_string(bounded_text(a->path, sizeof a->path));
		else
			cli_put("null");
		puts("}");
		return;
	}
	printf("%7ld  ", s->pid);
	cli_put_text(bounded_text(s->name, sizeof s->name));
	cli_put(a->is_on ? "  records into " : a->path[0] ? "  off; last into " : "  off");
	if (a->path[0])
		cli_put_text(bounded_text(a->path, sizeof a->path));
	puts("");
}

static int list_standby(bool json)
{
	standby_processes all = {0};
	bool whole = find_all_standby(&all);
	for (size_t i = 0; i < all.count; i++)
		put_process(all.items[i], json);
	if (!all.count && !json)
		cli_note("no program of this user stands by; start one with weft record --standby or WEFT_TRACE=DIR,standby");
	free_processes(&all);
	return whole ? cli_finish(CLI_OK) : cli_fail("%s", weft_status_string(WEFT_ENOMEM));
}

void cli_complete_standby(void)
{
	standby_processes all = {0};
	char pid[24];
	find_all_standby(&all);
	for (size_t i = 0; i < all.count; i++) {
		snprintf(pid, sizeof pid, "%ld", all.items[i]->pid);
		cli_complete_word("", pid);
		if (!strpbrk(all.items[i]->name, " \n\\'\""))
			cli_complete_word("", all.items[i]->name);
	}
	free_processes(&all);
}

static int control_process(struct standby_process *s, struct weft_standby_request r, int64_t timeout_ns, bool is_noted)
{
	const bool was_on = s->page.answer.is_on, is_on = r.verb == WEFT_STANDBY_ON;
	if (!was_on && !is_on && s->page.request.number == s->page.answer.number)
		return cli_fail("process %ld is not recording", s->pid);
	const bool has_answered = send_request(s, &r, timeout_ns);
	struct weft_standby_answer *a = &s->page.answer;
	a->why[sizeof a->why - 1] = 0;
	if (!has_answered && !read_page(s))
		return cli_fail("process %ld has ended", s->pid);
	if (!has_answered) {
		cli_note("process %ld has recorded no event since the request; it %s with its next event", s->pid,
		    is_on ? "starts to record" : "stops");
		return CLI_OK;
	}
	if (a->status < 0)
		return cli_fail("process %ld cannot record: %s", s->pid, a->why);
	if (is_noted)
		put_process(s, false);
	return CLI_OK;
}

struct weft_standby_request standby_request_on(const struct cli_ring *ring)
{
	return (struct weft_standby_request){
	    .verb = WEFT_STANDBY_ON,
	    .size_bytes = ring->size_bytes,
	    .packets = (uint32_t)ring->packet_count,
	    .mode = ring->mode ? 1 + (ring->mode[0] == 'g') : 0,
	    .stacks = ring->stacks ? (uint32_t)ring->stack_count + 1 : 0,
	};
}

bool standby_find(long pid, bool *is_on)
{
	struct standby_process s;
	if (find_standby(&s, pid) <= 0)
		return false;
	*is_on = s.page.answer.is_on;
	close(s.memory_fd);
	return true;
}

int standby_send(long pid, const struct weft_standby_request *request, int64_t timeout_ns)
{
	struct standby_process s;
	if (find_standby(&s, pid) <= 0)
		return cli_fail("process %ld does not stand by", pid);
	const int exit = control_process(&s, *request, timeout_ns, false);
	close(s.memory_fd);
	return exit;
}

/* Sends the request to the processes that an operand of the command names. */
static int control_operand(
    const char *operand, const struct weft_standby_request *r, const struct cli_ring *ring, int64_t timeout_ns)
{
	uint64_t pid = 0;
	int exit = CLI_OK;
	if (cli_parse_number(operand, false, &pid) && pid > 0 && pid <= INT_MAX) {
		if (r->verb == WEFT_STANDBY_OFF && weft_attach_state((long)pid) == WEFT_ATTACH_APPLIED)
			return running_end("off", (long)pid, timeout_ns);
		struct standby_process s;
		const int found = find_standby(&s, (long)pid);
		if (found == -ENOENT || found == -ESRCH)
			return cli_fail("no such process: %s", operand);
		if (found < 0)
			return cli_fail("process %s: %s; only its user and root may control it, or only root where "
					"kernel.yama.ptrace_scope is greater than 0",
			    operand, strerror(-found));
		if (!found && r->verb != WEFT_STANDBY_ON)
			return cli_fail("process %s does not stand by; weft on lists the processes that do", operand);
		const bool is_attached = found && weft_attach_state((long)pid) != WEFT_ATTACH_UNDONE;
		if (!is_attached && r->verb == WEFT_STANDBY_OFF) {
			close(s.memory_fd);
			return cli_fail("process %s is not recording", operand);
		}
		if (!is_attached) {
			char directory[80];
			running_default_directory((long)pid, directory, sizeof directory);
			if (found)
				close(s.memory_fd);
			exit = running_attach("on", (long)pid, directory, ring, NULL);
			if (exit != CLI_OK)
				return exit;
			if (find_standby(&s, (long)pid) <= 0)
				return cli_fail("process %s does not stand by", operand);
		}
		exit = control_process(&s, *r, timeout_ns, true);
		close(s.memory_fd);
		return exit;
	}
	standby_processes all = {0};
	bool whole = find_all_standby(&all), any = false;
	for (size_t i = 0; i < all.count; i++)
		if (has_name(all.items[i], operand)) {
			char number[24];
			snprintf(number, sizeof number, "%ld", all.items[i]->pid);
			const int one = control_operand(number, r, ring, timeout_ns);
			exit = one > exit ? one : exit;
			any = true;
		}
	free_processes(&all);
	if (!whole)
		return cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	return any ? exit
		   : cli_fail("no program of this user with the name %s stands by; weft on lists the programs that do", operand);
}

static int control_operands(
    const struct cli_args *args, const struct weft_standby_request *r, const struct cli_ring *ring, int64_t timeout_ns)
{
	int exit = CLI_OK;
	for (int i = 0; i < args->argc; i++) {
		const int one = control_operand(args->argv[i], r, ring, timeout_ns);
		exit = one > exit ? one : exit;
	}
	return exit == CLI_OK ? cli_finish(exit) : exit;
}

/* ---- The verbs ---- */

enum { TIMEOUT_NS = 2000000000 };
/* clang-format off */
#define OPTION_WAIT(ns) {"wait", 0, CLI_TIME, ns, "TIME", "wait this long for each program's next event (default: 2s)"}
/* clang-format on */

int cli_on(struct cli_args *args)
{
	struct cli_ring ring = {0};
	bool json = false;
	int64_t timeout_ns = TIMEOUT_NS;
	const struct cli_option options[] = {
	    {"size", 0, CLI_TEXT, &ring.size, "SIZE",
		"set the size of the ring buffer of each OS thread; with --mode=grow, of each trace"},
	    {"mode", 0, CLI_TEXT, &ring.mode, "ring|grow", "keep the newest events (ring) or all up to --size (grow)"},
	    {"packets", 0, CLI_TEXT, &ring.packets, "N", "divide each ring buffer into N packets"},
	    {"stacks", 0, CLI_TEXT, &ring.stacks, "N",
		"record N callers of the code that creates a promise, in a program under weft record"},
	    OPTION_WAIT(&timeout_ns),
	    CLI_OPTION_JSON(&json),
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, CLI_ANY_NUMBER);
	if (exit >= 0)
		return exit;
	if ((exit = cli_ring_check(&ring, "on")) >= 0)
		return exit;
	const struct weft_standby_request r = standby_request_on(&ring);
	return args->argc ? control_operands(args, &r, &ring, timeout_ns) : list_standby(json);
}

int cli_off(struct cli_args *args)
{
	int64_t timeout_ns = TIMEOUT_NS;
	const struct cli_option options[] = {
	    OPTION_WAIT(&timeout_ns),
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	return exit >= 0 ? exit
			 : control_operands(args, &(struct weft_standby_request){.verb = WEFT_STANDBY_OFF}, NULL, timeout_ns);
}
