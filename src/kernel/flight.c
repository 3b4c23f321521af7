/* flight.c: implements flight.h.  SPDX-License-Identifier: ISC */
#include "kernel/flight.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { TIMEOUT_MS = 10000, BACKLOG = 8 };

static const char socket_name[] = ".weft-flight";

/* The socket's address names the folder by its descriptor, because the folder's path may be longer than a socket address. */
static struct sockaddr_un socket_address(int folder)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, socket_name);
	return address;
}

static int open_folder(int from, const char *path)
{
	return openat(from, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int weft_kernel_flight_listen(const char *path)
{
	const int folder = open_folder(AT_FDCWD, path);
	int s = folder < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const struct sockaddr_un address = socket_address(folder);
	if (s >= 0 && (bind(s, (const struct sockaddr *)&address, sizeof address) || listen(s, BACKLOG))) {
		close(s);
		s = -1;
	}
	if (folder >= 0)
		close(folder);
	return s;
}

int weft_kernel_flight_accept(int s)
{
	return accept4(s, NULL, NULL, SOCK_CLOEXEC);
}

void weft_kernel_flight_remove(const char *path)
{
	const int folder = open_folder(AT_FDCWD, path);
	if (folder < 0)
		return;
	unlinkat(folder, socket_name, 0);
	close(folder);
}

void weft_kernel_flight_close(int s, const char *path)
{
	if (s < 0)
		return;
	weft_kernel_flight_remove(path);
	close(s);
}

/* Returns whether the process that answers belongs to this user, to root, or to the owner of the folder.  The owner of a folder
 * to which all users may write, such as /tmp, is not trusted. */
static bool is_trusted(int folder, uid_t user)
{
	struct stat st;
	return user == 0 || user == geteuid() || (fstat(folder, &st) == 0 && !(st.st_mode & S_IWOTH) && st.st_uid == user);
}

/* Connects to the recording that listens in a folder.  Both the socket file and the process behind it are examined, because
 * anyone may have put a link there. */
static bool connect_trusted(int s, int folder)
{
	const struct sockaddr_un address = socket_address(folder);
	struct stat st;
	struct ucred peer;
	socklen_t size = sizeof peer;
	if (fstatat(folder, socket_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISSOCK(st.st_mode) || !is_trusted(folder, st.st_uid) ||
	    connect(s, (const struct sockaddr *)&address, sizeof address))
		return false;
	return getsockopt(s, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && is_trusted(folder, peer.uid);
}

/* Requests the kernel events from the recording that listens in a folder.  Returns whether a recording listens there. */
static bool request_flush(int folder, const char *path, kernel_note_fn *note)
{
	const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const bool is_there = s >= 0 && connect_trusted(s, folder);
	struct pollfd polled = {s, POLLIN, 0};
	if (is_there && poll(&polled, 1, TIMEOUT_MS) == 0)
		note("%s: weft record does not answer; kernel events are missing", path);
	if (s >= 0)
		close(s);
	return is_there;
}

bool weft_kernel_flight_request(const char *path, kernel_note_fn *note)
{
	/* The trace is in the session's folder, or in another user's folder below the session's folder. */
	int folder = open_folder(AT_FDCWD, path);
	bool is_there = false;
	for (int i = 0; folder >= 0 && i < 3 && !(is_there = request_flush(folder, path, note)); i++) {
		const int parent = open_folder(folder, "..");
		close(folder);
		folder = parent;
	}
	if (folder >= 0)
		close(folder);
	return is_there;
}
