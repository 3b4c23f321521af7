/* flight.c: see flight.h.  SPDX-License-Identifier: ISC */
#include "apps/cli/flight.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "apps/cli/cli.h"

enum { PATIENCE_MS = 10000, WAITING = 8 };

static const char name[] = ".weft-flight";

/* A folder's path may be longer than a socket's address: so it is named by its descriptor. */
static struct sockaddr_un address_in(int folder)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, name);
	return address;
}

static int open_folder(int from, const char *path)
{
	return openat(from, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int flight_listen(const char *path)
{
	const int folder = open_folder(AT_FDCWD, path);
	int s = folder < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const struct sockaddr_un address = address_in(folder);
	if (s >= 0 && (bind(s, (const struct sockaddr *)&address, sizeof address) || listen(s, WAITING))) {
		close(s);
		s = -1;
	}
	if (folder >= 0)
		close(folder);
	return s;
}

int flight_asked(int s)
{
	return accept4(s, NULL, NULL, SOCK_CLOEXEC);
}

void flight_forget(const char *path)
{
	const int folder = open_folder(AT_FDCWD, path);
	if (folder < 0)
		return;
	unlinkat(folder, name, 0);
	close(folder);
}

void flight_end(int s, const char *path)
{
	if (s < 0)
		return;
	flight_forget(path);
	close(s);
}

/* Whether somebody records into that folder. */
static bool ask(int folder, const char *path)
{
	const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const struct sockaddr_un address = address_in(folder);
	const bool is_there = s >= 0 && connect(s, (const struct sockaddr *)&address, sizeof address) == 0;
	struct pollfd polled = {s, POLLIN, 0};
	if (is_there && poll(&polled, 1, PATIENCE_MS) == 0)
		cli_note("%s: weft record does not answer: what the kernel said is missing", path);
	if (s >= 0)
		close(s);
	return is_there;
}

bool flight_ask(const char *path)
{
	/* A trace is in the session's folder, or in another user's folder in that. */
	int folder = open_folder(AT_FDCWD, path);
	bool is_there = false;
	for (int i = 0; folder >= 0 && i < 3 && !(is_there = ask(folder, path)); i++) {
		const int parent = open_folder(folder, "..");
		close(folder);
		folder = parent;
	}
	if (folder >= 0)
		close(folder);
	return is_there;
}
