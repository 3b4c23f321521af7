/* ocaml_rings.c: implements ocaml_rings.h.  SPDX-License-Identifier: ISC */
#include "apps/control/ocaml_rings.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/named.h"
#include "session/session.h"
#include "trace/ocaml_note.h"

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void encode_number(unsigned char *to, int64_t number)
{
	for (unsigned i = 0; i < sizeof number; i++)
		to[i] = (unsigned char)((uint64_t)number >> i * 8);
}

/* Reads two clocks at nearly the same moment, by keeping the quickest of several tries. */
static void encode_clocks(unsigned char *note)
{
	int64_t best = INT64_MAX;
	for (int i = 0; i < 8; i++) {
		const int64_t before = clock_ns(CLOCK_MONOTONIC), wall = clock_ns(CLOCK_REALTIME),
			      took = clock_ns(CLOCK_MONOTONIC) - before;
		if (took >= best)
			continue;
		best = took;
		encode_number(note + WEFT_OCAML_NOTE_CLOCK, before + took / 2);
		encode_number(note + WEFT_OCAML_NOTE_WALL, wall);
	}
}

/* Reads the command line of a running process. */
static void read_command(const char *path, char *out, size_t size)
{
	char from[64];
	snprintf(from, sizeof from, "/proc/%ld/cmdline", strtol(strrchr(path, '/') + 1, NULL, 10));
	const int fd = open(from, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? 0 : read(fd, out, size - 1);
	if (fd >= 0)
		close(fd);
	size_t length = n > 0 ? (size_t)n : 0;
	length -= length > 0 && !out[length - 1];
	out[length] = 0;
	for (size_t i = 0; i < length; i++)
		out[i] = (char)(out[i] ? out[i] : ' ');
}

/* Extracts NAME from "DIR/NAME-PID.ocaml/PID.events". */
static void read_name(const char *path, char *out, size_t size)
{
	const char *file = strrchr(path, '/'), *folder = file;
	while (folder > path && folder[-1] != '/')
		folder--;
	const char *end = strstr(folder, SESSION_OCAML_FOLDER);
	while (end && end > folder && *end != '-')
		end--;
	snprintf(out, size, "%.*s", end && end < file ? (int)(end - folder) : 0, folder);
}

/* Finds the end of an OCaml events file, and whether the file has a note.  Returns false if the file is no complete OCaml events
 * file. */
static bool find_note(int fd, const struct stat *st, off_t *end, bool *is_noted)
{
	unsigned char bytes[WEFT_OCAML_NOTE_BYTES];
	if (st->st_size <= WEFT_OCAML_NOTE_BYTES)
		return false;
	*end = st->st_size - WEFT_OCAML_NOTE_BYTES;
	*is_noted = pread(fd, bytes, sizeof bytes, *end) == (ssize_t)sizeof bytes && weft_ocaml_note_is(bytes);
	*end = *is_noted ? *end : st->st_size;
	return true;
}

static void write_at(int fd, const unsigned char *bytes, size_t size, off_t at)
{
	(void)!pwrite(fd, bytes, size, at);
}

/* Opens the file if it belongs to the owner of its folder. */
static int open_ring(const char *session, const char *path, struct stat *st)
{
	const char *name;
	struct stat of_folder;
	const int folder = weft_named_parent(session, path, &name);
	int fd = -1;
	if (folder >= 0 && fstat(folder, &of_folder) == 0)
		fd = weft_named_file(folder, name, &(struct weft_named_rule){.owner = of_folder.st_uid, .is_changed = true}, st);
	if (folder >= 0)
		close(folder);
	return fd;
}

/* Writing the note wakes the process that watches the folder, so it must be the last change of the file. */
static void write_note(int fd, const struct stat *st, const char *path, int64_t died_wall_ns)
{
	unsigned char note[WEFT_OCAML_NOTE_BYTES] = WEFT_OCAML_NOTE_MARK, died[8];
	off_t end;
	bool is_noted;
	if (!find_note(fd, st, &end, &is_noted) || (is_noted && !died_wall_ns))
		return;
	encode_number(died, died_wall_ns);
	if (is_noted) {
		write_at(fd, died, sizeof died, end + WEFT_OCAML_NOTE_DIED_WALL);
		return;
	}
	encode_clocks(note);
	memcpy(note + WEFT_OCAML_NOTE_DIED_WALL, died, sizeof died);
	gethostname((char *)note + WEFT_OCAML_NOTE_HOST, WEFT_OCAML_NOTE_PROCESS - WEFT_OCAML_NOTE_HOST);
	read_name(path, (char *)note + WEFT_OCAML_NOTE_PROCESS, WEFT_OCAML_NOTE_COMMAND - WEFT_OCAML_NOTE_PROCESS);
	read_command(path, (char *)note + WEFT_OCAML_NOTE_COMMAND, WEFT_OCAML_NOTE_BYTES - WEFT_OCAML_NOTE_COMMAND);
	write_at(fd, note, sizeof note, end);
}

void ocaml_write_note(const char *session, const char *path, int64_t died_wall_ns)
{
	struct stat st;
	const int fd = open_ring(session, path, &st);
	if (fd < 0)
		return;
	write_note(fd, &st, path, died_wall_ns);
	close(fd);
}
