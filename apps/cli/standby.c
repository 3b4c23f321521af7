/* standby.c: weft on, weft off: programs that stand by are told to record, and to stop (wire/standby.h).
 * SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/sort.h"
#include "cli.h"
#include "complete.h"
#include "wake.h"
#include "wire/standby.h"

enum {
	MOST_PAGE = 1 << 18,    /* no page is larger: a struct weft_standby, and what fills the last page of the processor's */
	MOST_STREAMS = 1 << 16, /* the list is a stranger's, and might be a circle */
	WAIT_MS = 5,
	WAKE_EACH = 50 /* of these */
};

/* A process that stands by. */
struct standing {
	long pid;
	int memory; /* descriptor of /proc/PID/mem: of this program, whatever becomes of the number */
	uint64_t at;
	char name[64];
	struct weft_standby page;
};

typedef WEFT_VEC(struct standing *) standings;

/* ---- Its memory ---- */

static bool get(const struct standing *s, uint64_t at, void *to, size_t bytes)
{
	return pread(s->memory, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static bool put(const struct standing *s, uint64_t at, const void *from, size_t bytes)
{
	return pwrite(s->memory, from, bytes, (off_t)at) == (ssize_t)bytes;
}

static uint64_t get_pointer(const struct standing *s, uint64_t at)
{
	uint64_t wide = 0;
	uint32_t narrow = 0;
	if (s->page.pointer_bytes == sizeof wide)
		return get(s, at, &wide, sizeof wide) ? wide : 0;
	return get(s, at, &narrow, sizeof narrow) ? narrow : 0;
}

/* Of a process that has ended nothing can be read. */
static bool read_page(struct standing *s)
{
	return get(s, s->at, &s->page, sizeof s->page) && !memcmp(s->page.mark, WEFT_STANDBY_MARK, sizeof s->page.mark) &&
	       s->page.self == s->at;
}

static void read_name(struct standing *s)
{
	char path[48];
	snprintf(path, sizeof path, "/proc/%ld/comm", s->pid);
	FILE *file = fopen(path, "re");
	if (!file || !fgets(s->name, sizeof s->name, file))
		s->name[0] = 0;
	s->name[strcspn(s->name, "\n")] = 0;
	if (file)
		fclose(file);
}

/* 1: it stands by; 0: it does not; negative: -errno. */
static int find(struct standing *s, long pid)
{
	char path[48], *line = NULL;
	size_t room = 0;
	*s = (struct standing){.pid = pid};
	snprintf(path, sizeof path, "/proc/%ld/mem", pid);
	s->memory = open(path, O_RDWR | O_CLOEXEC);
	int error = s->memory < 0 ? errno : 0;
	snprintf(path, sizeof path, "/proc/%ld/maps", pid);
	FILE *maps = error ? NULL : fopen(path, "re");
	error = error ? error : maps ? 0 : errno;
	bool found = false;
	while (maps && !found && getline(&line, &room, maps) > 0) {
		uint64_t begin, end, inode;
		char rights[8];
		found = sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %" SCNu64, &begin, &end, rights, &inode) == 4 &&
			!strncmp(rights, "rw-", 3) && inode == 0 && end - begin >= sizeof s->page && end - begin <= MOST_PAGE;
		s->at = found ? begin : 0;
		found = found && read_page(s);
	}
	free(line);
	if (maps)
		fclose(maps);
	if (!found && s->memory >= 0)
		close(s->memory);
	read_name(s);
	return error ? -error : found;
}

/* ---- What is asked ---- */

static bool is_answered(struct standing *s, const struct weft_standby_request *r)
{
	/* The number is the last that is written: what is read behind it is whole. */
	return read_page(s) && s->page.answer.number == r->number && read_page(s);
}

/* Its OS threads' next events take the slow path. */
static void send_to_slow_path(const struct standing *s)
{
	const unsigned char on = (unsigned char)s->page.gate_on;
	const uint32_t none = 0;
	if (!s->page.answer.is_on) {
		put(s, s->page.gate, &on, 1);
		return;
	}
	uint64_t thread = get_pointer(s, s->page.threads);
	for (unsigned i = 0; thread && i < MOST_STREAMS; i++, thread = get_pointer(s, thread + s->page.next_at)) {
		const uint64_t stream = get_pointer(s, thread + s->page.stream_at);
		if (stream)
			put(s, stream + s->page.limit_at, &none, sizeof none);
	}
}

/* False: it makes no event, or has ended. */
static bool ask(struct standing *s, struct weft_standby_request *r, int64_t patience_ns)
{
	while (!r->number)
		if (getrandom(&r->number, sizeof r->number, 0) != sizeof r->number)
			r->number = (uint64_t)getpid() << 32 | 1;
	r->check = weft__standby_check(r);
	const uint64_t at = s->at + offsetof(struct weft_standby, request);
	unsigned turn = 0;
	for (int64_t left = patience_ns;; left -= WAIT_MS * 1000000) {
		/* Another command may have asked meanwhile. */
		if (!read_page(s) || (s->page.request.number != r->number && !put(s, at, r, sizeof *r)))
			return false;
		send_to_slow_path(s);
		usleep(WAIT_MS * 100);
		bool is_told = is_answered(s, r);
		/* Each OS thread tells what it has itself: once it is on, all are woken. */
		if (is_told ? r->verb == WEFT_STANDBY_ON : turn++ % WAKE_EACH == 0)
			cli_wake(s->pid, s->memory, &s->page, s->at);
		if (is_told || is_answered(s, r))
			return true;
		if (left <= 0)
			return false;
		usleep(WAIT_MS * 900);
	}
}

/* ---- What is said ---- */

static int by_pid(const void *a, const void *b)
{
	const long one = (*(struct standing *const *)a)->pid, other = (*(struct standing *const *)b)->pid;
	return (one > other) - (one < other);
}

/* All that this user may tell. */
static bool find_all(standings *all)
{
	DIR *dir = opendir("/proc");
	bool whole = true;
	for (const struct dirent *entry; whole && dir && (entry = readdir(dir));) {
		struct standing s;
		const long pid = strtol(entry->d_name, NULL, 10);
		if (pid <= 0 || find(&s, pid) <= 0)
			continue;
		struct standing *copy = malloc(sizeof *copy), **slot = copy ? weft_vec_push(all) : NULL;
		whole = slot != NULL;
		if (slot) {
			*copy = s;
			*slot = copy;
		} else {
			free(copy);
			close(s.memory);
		}
	}
	if (dir)
		closedir(dir);
	weft_sort(all->items, all->count, sizeof *all->items, by_pid);
	return whole;
}

static void free_all(standings *all)
{
	for (size_t i = 0; i < all->count; i++) {
		close(all->items[i]->memory);
		free(all->items[i]);
	}
	weft_vec_free(all);
}

static struct weft_str text_of(char *text, size_t room)
{
	return (struct weft_str){text, strnlen(text, room)};
}

static void put_one(struct standing *s, bool json)
{
	struct weft_standby_answer *a = &s->page.answer;
	if (json) {
		printf("{\"pid\":%ld,\"name\":", s->pid);
		cli_put_cstring(s->name);
		printf(",\"on\":%s,\"trace\":", a->is_on ? "true" : "false");
		if (a->path[0])
			cli_put_string(text_of(a->path, sizeof a->path));
		else
			cli_put("null");
		puts("}");
		return;
	}
	printf("%7ld  ", s->pid);
	cli_put_text(text_of(s->name, sizeof s->name));
	cli_put(a->is_on ? "  records into " : a->path[0] ? "  off; last into " : "  off");
	if (a->path[0])
		cli_put_text(text_of(a->path, sizeof a->path));
	puts("");
}

static int list(bool json)
{
	standings all = {0};
	bool whole = find_all(&all);
	for (size_t i = 0; i < all.count; i++)
		put_one(all.items[i], json);
	if (!all.count && !json)
		cli_note("no program of yours stands by: start one with weft record --standby, or WEFT_TRACE=DIR,standby");
	free_all(&all);
	return whole ? cli_finish(CLI_FINE) : cli_fail("%s", weft_status_string(WEFT_ENOMEM));
}

void cli_complete_standing(void)
{
	standings all = {0};
	char pid[24];
	find_all(&all);
	for (size_t i = 0; i < all.count; i++) {
		snprintf(pid, sizeof pid, "%ld", all.items[i]->pid);
		cli_complete_word("", pid);
		if (!strpbrk(all.items[i]->name, " \n\\'\""))
			cli_complete_word("", all.items[i]->name);
	}
	free_all(&all);
}

static int tell_one(struct standing *s, struct weft_standby_request r, int64_t patience_ns)
{
	const bool was_on = s->page.answer.is_on, is_on = r.verb == WEFT_STANDBY_ON;
	if (!was_on && !is_on && s->page.request.number == s->page.answer.number)
		return cli_fail("process %ld records nothing", s->pid);
	const bool is_told = ask(s, &r, patience_ns);
	struct weft_standby_answer *a = &s->page.answer;
	a->why[sizeof a->why - 1] = 0;
	if (!is_told && !read_page(s))
		return cli_fail("process %ld has ended", s->pid);
	if (!is_told) {
		cli_note("process %ld does nothing at the moment: it %s with the next thing that it does", s->pid,
		    is_on ? "begins to record" : "stops");
		return CLI_FINE;
	}
	if (a->status < 0)
		return cli_fail("process %ld records nothing: %s", s->pid, a->why);
	put_one(s, false);
	return CLI_FINE;
}

/* The processes that an operand names. */
static int tell(const char *operand, const struct weft_standby_request *r, int64_t patience_ns)
{
	uint64_t pid = 0;
	int exit = CLI_FINE;
	if (cli_parse_number(operand, false, &pid) && pid > 0 && pid <= INT_MAX) {
		struct standing s;
		const int found = find(&s, (long)pid);
		if (found == -ENOENT || found == -ESRCH)
			return cli_fail("no process %s", operand);
		if (found < 0)
			return cli_fail("process %s: %s; only its user and root may tell it, and root alone where "
					"kernel.yama.ptrace_scope is over 0",
			    operand, strerror(-found));
		if (!found)
			return cli_fail("process %s does not stand by; weft on lists those that do", operand);
		exit = tell_one(&s, *r, patience_ns);
		close(s.memory);
		return exit;
	}
	standings all = {0};
	bool whole = find_all(&all), any = false;
	for (size_t i = 0; i < all.count; i++)
		if (!strcmp(all.items[i]->name, operand)) {
			const int one = tell_one(all.items[i], *r, patience_ns);
			exit = one > exit ? one : exit;
			any = true;
		}
	free_all(&all);
	if (!whole)
		return cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	return any ? exit : cli_fail("no program %s of yours stands by; weft on lists those that do", operand);
}

static int tell_each(const struct cli_args *args, const struct weft_standby_request *r, int64_t patience_ns)
{
	int exit = CLI_FINE;
	for (int i = 0; i < args->argc; i++) {
		const int one = tell(args->argv[i], r, patience_ns);
		exit = one > exit ? one : exit;
	}
	return exit == CLI_FINE ? cli_finish(exit) : exit;
}

/* ---- The verbs ---- */

enum { PATIENCE_NS = 2000000000 };
/* clang-format off */
#define OPTION_WAIT(ns) {"wait", 0, CLI_TIME, ns, "TIME", "waits so long for each program's next event (2s)"}
/* clang-format on */

int cli_on(struct cli_args *args)
{
	struct cli_ring ring = {0};
	bool json = false;
	int64_t patience_ns = PATIENCE_NS;
	const struct cli_option options[] = {
	    {"size", 0, CLI_TEXT, &ring.size, "64M", "size of the ring of each OS thread; with --mode=grow, of each whole trace"},
	    {"mode", 0, CLI_TEXT, &ring.mode, "ring|grow", "ring keeps the newest events, grow keeps all up to --size"},
	    {"packets", 0, CLI_TEXT, &ring.packets, "N", "how many packets each ring has"},
	    {"stacks", 0, CLI_TEXT, &ring.stacks, "N",
		"how many callers are recorded of each promise's creation, of a program under weft record"},
	    OPTION_WAIT(&patience_ns),
	    CLI_OPTION_JSON(&json),
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, CLI_ANY_NUMBER);
	if (exit >= 0)
		return exit;
	if ((exit = cli_ring_check(&ring, "on")) >= 0)
		return exit;
	const struct weft_standby_request r = {
	    .verb = WEFT_STANDBY_ON,
	    .size_bytes = ring.size_bytes,
	    .packets = (uint32_t)ring.packet_count,
	    .mode = ring.mode ? 1 + (ring.mode[0] == 'g') : 0,
	    .stacks = ring.stacks ? (uint32_t)ring.stack_count + 1 : 0,
	};
	return args->argc ? tell_each(args, &r, patience_ns) : list(json);
}

int cli_off(struct cli_args *args)
{
	int64_t patience_ns = PATIENCE_NS;
	const struct cli_option options[] = {
	    OPTION_WAIT(&patience_ns),
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	return exit >= 0 ? exit : tell_each(args, &(struct weft_standby_request){.verb = WEFT_STANDBY_OFF}, patience_ns);
}
