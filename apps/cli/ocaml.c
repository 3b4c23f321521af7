/* ocaml.c: see ocaml.h.  SPDX-License-Identifier: ISC */
#include "apps/cli/ocaml.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "session/session.h"
#include "trace/ocaml_note.h"

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void put_number(unsigned char *to, int64_t number)
{
	for (unsigned i = 0; i < sizeof number; i++)
		to[i] = (unsigned char)((uint64_t)number >> i * 8);
}

/* A moment by both clocks: of some tries the quickest. */
static void put_clocks(unsigned char *note)
{
	int64_t best = INT64_MAX;
	for (int i = 0; i < 8; i++) {
		const int64_t before = clock_ns(CLOCK_MONOTONIC), wall = clock_ns(CLOCK_REALTIME),
			      took = clock_ns(CLOCK_MONOTONIC) - before;
		if (took >= best)
			continue;
		best = took;
		put_number(note + WEFT_OCAML_NOTE_CLOCK, before + took / 2);
		put_number(note + WEFT_OCAML_NOTE_WALL, wall);
	}
}

/* The words of a process that lives. */
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

/* Of "DIR/NAME-PID.ocaml/PID.events" the name. */
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

/* *end: how long the file is without a note.  False: it is not a file of OCaml's, or not there yet. */
static bool look(const char *path, off_t *end, bool *is_noted)
{
	unsigned char bytes[WEFT_OCAML_NOTE_BYTES];
	struct stat st;
	const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const bool is = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > WEFT_OCAML_NOTE_BYTES;
	if (is) {
		*end = st.st_size - WEFT_OCAML_NOTE_BYTES;
		*is_noted = pread(fd, bytes, sizeof bytes, *end) == (ssize_t)sizeof bytes && weft_ocaml_note_is(bytes);
		*end = *is_noted ? *end : st.st_size;
	}
	if (fd >= 0)
		close(fd);
	return is;
}

static void write_at(const char *path, const unsigned char *bytes, size_t size, off_t at)
{
	const int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!pwrite(fd, bytes, size, at);
	close(fd);
}

void ocaml_note(const char *path, int64_t died_wall_ns)
{
	unsigned char note[WEFT_OCAML_NOTE_BYTES] = WEFT_OCAML_NOTE_MARK, died[8];
	off_t end;
	bool is_noted;
	/* What is written here is told to who watches the folder, too, and must be the last word. */
	if (!look(path, &end, &is_noted) || (is_noted && !died_wall_ns))
		return;
	put_number(died, died_wall_ns);
	if (is_noted) {
		write_at(path, died, sizeof died, end + WEFT_OCAML_NOTE_DIED_WALL);
		return;
	}
	put_clocks(note);
	memcpy(note + WEFT_OCAML_NOTE_DIED_WALL, died, sizeof died);
	gethostname((char *)note + WEFT_OCAML_NOTE_HOST, WEFT_OCAML_NOTE_PROCESS - WEFT_OCAML_NOTE_HOST);
	read_name(path, (char *)note + WEFT_OCAML_NOTE_PROCESS, WEFT_OCAML_NOTE_COMMAND - WEFT_OCAML_NOTE_PROCESS);
	read_command(path, (char *)note + WEFT_OCAML_NOTE_COMMAND, WEFT_OCAML_NOTE_BYTES - WEFT_OCAML_NOTE_COMMAND);
	write_at(path, note, sizeof note, end);
}
