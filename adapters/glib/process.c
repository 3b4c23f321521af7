/* process.c: records child processes by the sources that watch them, with and without a GSubprocess.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/glib/object.h"
#include "adapters/glib/run.h"

static bool has_children; /* whether a GSubprocess has ever been recorded */

static ssize_t read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	return n;
}

/* Appends the process's command line to the label.  The command line is the child's own, because GLib has waited for the child's
 * exec(). */
static void append_command(struct weft_hook_label *label, GPid pid)
{
	char path[40], command[WEFT_HOOK_LABEL_BYTES];
	int saved = errno;
	snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pid);
	ssize_t n = read_file(path, command, sizeof command);
	if (n <= 0) { /* the process has ended */
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
	weft_hook_append(label, slash ? slash + 1 : command);
	if (n <= 0) {
		weft_hook_append(label, "process ");
		weft_hook_append_number(label, (uint64_t)pid);
	}
	errno = saved;
}

/* In a GChildWatchSource (since GLib 2.0) the process id follows the GSource. */
void weft__glib_begin_child(struct weft__glib_object *source, const GSource *watch, const void *data)
{
	const struct {
		GSource source;
		GPid pid;
	} *child = (const void *)watch;
	struct weft_hook_label label = {0};
	const void *site = weft__glib_get_here()->site ? weft__glib_get_here()->site : (const char *)source->callback + 1;
	weft__glib_create(source, WEFT_KIND_PROCESS, site, false, 0, 0);
	append_command(&label, child->pid);
	weft__glib_label(source, label.text);
	if (weft__glib_is_gio((const void *)source->callback)) { /* watched for a GSubprocess */
		struct weft__glib_object *found = weft__glib_object_add(WEFT__GLIB_CHILD, data);
		if (found) {
			found->stands_for = weft__glib_tag_of(source);
			__atomic_store_n(&has_children, true, __ATOMIC_RELEASE);
		}
	}
}

struct weft__glib_object *weft__glib_child_of(const void *subprocess)
{
	if (!subprocess || !__atomic_load_n(&has_children, __ATOMIC_ACQUIRE))
		return NULL;
	const struct weft__glib_object *found = weft__glib_object_find(WEFT__GLIB_CHILD, subprocess);
	struct weft__glib_object *source = found ? weft__glib_object_of(found->stands_for) : NULL;
	return source && source->id && !source->is_ended ? source : NULL;
}

/* Callback of the program for the child's end, which note_child_end() replaces. */
static __thread struct {
	GChildWatchFunc callback;
	weft_id id;
} child_end __attribute__((tls_model("initial-exec")));

static void note_child_end(GPid pid, gint status, gpointer data)
{
	GChildWatchFunc callback = child_end.callback;
	char text[40];
	if (WIFSIGNALED(status))
		snprintf(text, sizeof text, "killed by signal %d", WTERMSIG(status));
	else
		snprintf(text, sizeof text, "exit status %d", WEXITSTATUS(status));
	weft_note(child_end.id, text);
	callback(pid, status, data);
}

gboolean weft__glib_dispatch_child_end(const struct weft__glib_object *tracked, GSource *source, GSourceFunc callback,
    gpointer data, gboolean (*dispatch)(GSource *, GSourceFunc, gpointer))
{
	if (!callback)
		return dispatch(source, callback, data);
	child_end.callback = (GChildWatchFunc)(void (*)(void))callback;
	child_end.id = tracked->id;
	struct weft__glib_object *child = weft__glib_object_find(WEFT__GLIB_CHILD, data);
	if (child)
		weft__glib_object_remove(child);
	return dispatch(source, (GSourceFunc)(void (*)(void))note_child_end, data);
}

/* ---- Starting processes ---- */

#define SPAWN(name, arguments)                                                                                                   \
	const void *outer = weft__glib_should_record() ? weft__glib_get_here()->site : NULL;                                     \
	if (!outer)                                                                                                              \
		weft__glib_get_here()->site = __builtin_return_address(0);                                                       \
	GSubprocess *made = weft__glib_real.name arguments;                                                                      \
	weft__glib_get_here()->site = outer;                                                                                     \
	return made

GSubprocess *weft__g_subprocess_newv(const gchar *const *argv, GSubprocessFlags flags, GError **error)
{
	SPAWN(g_subprocess_newv, (argv, flags, error));
}

/* Passes the variable arguments on as an array on the stack. */
GSubprocess *weft__g_subprocess_new(GSubprocessFlags flags, GError **error, const gchar *first, ...)
{
	va_list more;
	size_t count = 1;
	va_start(more, first);
	while (first && va_arg(more, const gchar *))
		count++;
	va_end(more);
	const gchar **argv = __builtin_alloca((count + 1) * sizeof *argv);
	argv[0] = first;
	va_start(more, first);
	for (size_t i = 1; i <= count; i++)
		argv[i] = first ? va_arg(more, const gchar *) : NULL;
	va_end(more);
	SPAWN(g_subprocess_newv, (argv, flags, error));
}

GSubprocess *weft__g_subprocess_launcher_spawnv(GSubprocessLauncher *self, const gchar *const *argv, GError **error)
{
	SPAWN(g_subprocess_launcher_spawnv, (self, argv, error));
}
