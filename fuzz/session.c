/* session.c: reads a session that is made of any bytes: folders, links, FIFOs, sockets and files of odd sizes.
 *
 * Three bytes describe an entry: its folder and kind, its name, its size or the target of a link.  Nothing outside the session
 * may be read, nothing in a user's folder may be a link, and nothing may wait.  SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "model/check_model.h"
#include "session/session.h"
#include "trace/follow.h"
#include "trace/trace.h"

enum { MAX_ENTRIES = 24, PATH_BYTES = 256 };

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

static const char *const folders[] = {
    "", "/uid-0", "/uid-65534", "/a-1", "/uid-0/a-1", "/b-2.ocaml", "/uid-0/b-2.ocaml", "/uid-0/uid-7"};
static const char *const names[] = {"metadata", "a-1", "uid-0", "uid-65534", "b-2.ocaml", "2.events", "prog.failed", "stream-0-0",
    "definitions-0", ".weft-flight", "uid-7"};
static const char *const targets[] = {"/", "..", ".", "/dev/zero", "/proc/self/cwd", "metadata", "a-1", "/etc"};
static const char text[] =
    "/* CTF 1.8 */\nenv {\n\ttracer_name = \"weft\";\n\tuuid = \"0123456789abcdef0123456789abcdef0123\";\n\tvpid = 1;\n};\n";

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st, (void)kind, (void)where;
	return remove(path);
}

static void make_file(const char *path, unsigned char size)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return;
	(void)!write(fd, text, size < sizeof text ? size : sizeof text - 1);
	(void)!ftruncate(fd, size < 250 ? (off_t)size * 37 : (off_t)1 << (size - 230)); /* sparse: up to 32 MB */
	close(fd);
}

static void make_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (snprintf(address.sun_path, sizeof address.sun_path, "%s", path) >= (int)sizeof address.sun_path)
		return;
	const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s >= 0)
		(void)!bind(s, (const struct sockaddr *)&address, sizeof address);
	if (s >= 0)
		close(s);
}

static void make_entry(const char *root, const unsigned char *entry)
{
	enum { KINDS = 5 };
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "%s%s/%s", root, folders[entry[0] % (sizeof folders / sizeof *folders)],
	    names[entry[1] % (sizeof names / sizeof *names)]);
	switch (entry[0] / (sizeof folders / sizeof *folders) % KINDS) {
	case 0: mkdir(path, 0700); break;
	case 1: make_file(path, entry[2]); break;
	case 2: (void)!symlink(targets[entry[2] % (sizeof targets / sizeof *targets)], path); break;
	case 3: mkfifo(path, 0600); break;
	default: make_socket(path); break;
	}
}

/* In a user's folder a link could lead anywhere. */
static void check_path(const char *root, const char *path)
{
	char part[PATH_BYTES];
	struct stat st;
	CHECK_MODEL(strncmp(path, root, strlen(root)) == 0 && path[strlen(root)] == '/' && !strstr(path, "/../"));
	if (strncmp(path + strlen(root), "/uid-", 5) != 0)
		return;
	for (const char *end = path + strlen(root); end; end = strchr(end + 1, '/')) {
		snprintf(part, sizeof part, "%.*s", (int)(end - path), path);
		CHECK_MODEL(lstat(part, &st) != 0 || !S_ISLNK(st.st_mode));
	}
	CHECK_MODEL(lstat(path, &st) != 0 || !S_ISLNK(st.st_mode));
}

static void open_trace(const char *path)
{
	struct weft_trace *trace;
	struct weft_error err;
	(void)weft_trace_fingerprint(path);
	(void)weft_trace_is_recorded(path);
	if (weft_trace_open(&trace, path, &err) == WEFT_OK)
		weft_trace_close(trace);
}

static void read_session(const char *root, bool (*read_it)(struct session *, const char *))
{
	struct session s;
	if (read_it(&s, root)) {
		for (size_t i = 0; i < s.traces.count; i++)
			check_path(root, s.traces.items[i]);
		for (size_t i = 0; i < s.failures.count; i++)
			check_path(root, s.failures.items[i]);
		for (size_t i = 0; i < s.user_folders.count; i++)
			check_path(root, s.user_folders.items[i]);
		session_drop_copies(&s.traces);
		for (size_t i = 0; i < s.traces.count; i++)
			open_trace(s.traces.items[i]);
	}
	session_free(&s);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	char root[] = "/tmp/weft-fuzz-XXXXXX";
	if (!mkdtemp(root))
		return 0;
	for (size_t i = 0; i + 3 <= size && i < (size_t)3 * MAX_ENTRIES; i += 3)
		make_entry(root, bytes + i);
	read_session(root, session_read);
	read_session(root, session_read_all);
	open_trace(root);
	nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
