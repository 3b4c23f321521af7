/* process.c: child processes, by the sources that watch them: those of GSubprocess and of programs alike.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/glib/adapter.h"

static bool has_children; /* a GSubprocess was seen */

static ssize_t read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	return n;
}

/* Its command line; after exec(), for which GLib waits. */
static void put_command(struct weft_hook_label *label, GPid pid)
{
	char path[40], command[WEFT_HOOK_LABEL];
	int saved = errno;
	snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pid);
	ssize_t n = read_file(path, command, sizeof command);
	if (n <= 0) { /* it has ended already */
		snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
		n = read_file(path, command, sizeof command);
	}
	while (n > 0 && command[n - 1] == '\n')
		n--;
	while (n > 0 && !command[n - 1])
		n--;
	for (ssize_t i = 0; i < n; i++)
		if ((unsigned char)command[i] < ' ')
			command[i] = ' ';
	command[n > 0 ? n : 0] = 0;
	const char *slash = strchr(command, ' ') ? NULL : strrchr(command, '/');
	weft_hook_put(label, slash ? slash + 1 : command);
	if (n <= 0) {
		weft_hook_put(label, "process ");
		weft_hook_put_number(label, (uint64_t)pid);
	}
	errno = saved;
}

/* GChildWatchSource, since 2.0: its process stands behind the source. */
void weft__glib_child_begins(struct weft__glib_thing *source, const GSource *watch, const void *data)
{
	const struct {
		GSource source;
		GPid pid;
	} *child = (const void *)watch;
	struct weft_hook_label label = {0};
	const void *site = weft__glib_here.site ? weft__glib_here.site : (const void *)source->callback;
	weft__glib_create(source, WEFT_KIND_PROCESS, site, false, 0, 0);
	put_command(&label, child->pid);
	weft__glib_label(source, label.text);
	if (weft__glib_is_gio((const void *)source->callback)) { /* a GSubprocess */
		struct weft__glib_thing *found = weft__glib_thing_add(WEFT__GLIB_CHILD, data);
		if (found) {
			found->stands_for = weft__glib_tag_of(source);
			__atomic_store_n(&has_children, true, __ATOMIC_RELEASE);
		}
	}
}

weft_id weft__glib_child_of(const void *subprocess)
{
	if (!subprocess || !__atomic_load_n(&has_children, __ATOMIC_ACQUIRE))
		return 0;
	const struct weft__glib_thing *found = weft__glib_thing_find(WEFT__GLIB_CHILD, subprocess);
	const struct weft__glib_thing *source = found ? weft__glib_thing_of(found->stands_for) : NULL;
	return source && !source->is_ended ? source->id : 0;
}

/* The program's callback, while our own stands in its place. */
static __thread struct {
	GChildWatchFunc callback;
	weft_id id;
} ends __attribute__((tls_model("initial-exec")));

static void ended(GPid pid, gint status, gpointer data)
{
	GChildWatchFunc callback = ends.callback;
	char text[40];
	if (WIFSIGNALED(status))
		snprintf(text, sizeof text, "killed by signal %d", WTERMSIG(status));
	else
		snprintf(text, sizeof text, "exit status %d", WEXITSTATUS(status));
	weft_note(ends.id, text);
	callback(pid, status, data);
}

gboolean weft__glib_child_ends(const struct weft__glib_thing *thing, GSource *source, GSourceFunc callback, gpointer data,
    gboolean (*dispatch)(GSource *, GSourceFunc, gpointer))
{
	if (!callback)
		return dispatch(source, callback, data);
	ends.callback = (GChildWatchFunc)(void (*)(void))callback;
	ends.id = thing->id;
	struct weft__glib_thing *child = weft__glib_thing_find(WEFT__GLIB_CHILD, data);
	if (child)
		weft__glib_thing_remove(child);
	return dispatch(source, (GSourceFunc)(void (*)(void))ended, data);
}
