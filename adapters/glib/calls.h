/* calls.h: the functions of libglib and libgio that the adapter wraps or calls.
 *
 * X(result, name, (parameters), (arguments)) lists a function that the adapter wraps if the library has it.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_GLIB_CALLS_H
#define WEFT_ADAPTERS_GLIB_CALLS_H

#include <gio/gio.h>
#include <glib-unix.h>

/* GLib defines macros with the names of two functions, the second macro since GLib 2.76. */
#undef g_task_set_source_tag
#undef g_task_set_name

/* Functions that make a source and attach it; their caller becomes the site of the source. */
#define WEFT__GLIB_SHORT_CALLS(X)                                                                                                \
	X(guint, g_idle_add, (GSourceFunc f, gpointer data), (f, data))                                                          \
	X(guint, g_idle_add_full, (gint priority, GSourceFunc f, gpointer data, GDestroyNotify notify),                          \
	    (priority, f, data, notify))                                                                                         \
	X(guint, g_idle_add_once, (GSourceOnceFunc f, gpointer data), (f, data))                                                 \
	X(guint, g_timeout_add, (guint interval, GSourceFunc f, gpointer data), (interval, f, data))                             \
	X(guint, g_timeout_add_full, (gint priority, guint interval, GSourceFunc f, gpointer data, GDestroyNotify notify),       \
	    (priority, interval, f, data, notify))                                                                               \
	X(guint, g_timeout_add_once, (guint interval, GSourceOnceFunc f, gpointer data), (interval, f, data))                    \
	X(guint, g_timeout_add_seconds, (guint interval, GSourceFunc f, gpointer data), (interval, f, data))                     \
	X(guint, g_timeout_add_seconds_full,                                                                                     \
	    (gint priority, guint interval, GSourceFunc f, gpointer data, GDestroyNotify notify),                                \
	    (priority, interval, f, data, notify))                                                                               \
	X(guint, g_timeout_add_seconds_once, (guint interval, GSourceOnceFunc f, gpointer data), (interval, f, data))            \
	X(guint, g_child_watch_add, (GPid pid, GChildWatchFunc f, gpointer data), (pid, f, data))                                \
	X(guint, g_child_watch_add_full, (gint priority, GPid pid, GChildWatchFunc f, gpointer data, GDestroyNotify notify),     \
	    (priority, pid, f, data, notify))                                                                                    \
	X(guint, g_io_add_watch, (GIOChannel * channel, GIOCondition condition, GIOFunc f, gpointer data),                       \
	    (channel, condition, f, data))                                                                                       \
	X(guint, g_io_add_watch_full,                                                                                            \
	    (GIOChannel * channel, gint priority, GIOCondition condition, GIOFunc f, gpointer data, GDestroyNotify notify),      \
	    (channel, priority, condition, f, data, notify))                                                                     \
	X(guint, g_unix_fd_add, (gint fd, GIOCondition condition, GUnixFDSourceFunc f, gpointer data), (fd, condition, f, data)) \
	X(guint, g_unix_fd_add_full,                                                                                             \
	    (gint priority, gint fd, GIOCondition condition, GUnixFDSourceFunc f, gpointer data, GDestroyNotify notify),         \
	    (priority, fd, condition, f, data, notify))                                                                          \
	X(guint, g_unix_signal_add, (gint number, GSourceFunc f, gpointer data), (number, f, data))                              \
	X(guint, g_unix_signal_add_full, (gint priority, gint number, GSourceFunc f, gpointer data, GDestroyNotify notify),      \
	    (priority, number, f, data, notify))

#define WEFT__GLIB_CALLS(X)                                                                                                      \
	X(guint, g_source_attach, (GSource * source, GMainContext * context), (source, context))                                 \
	X(gpointer, g_source_add_unix_fd, (GSource * source, gint fd, GIOCondition events), (source, fd, events))                \
	X(void, g_source_add_child_source, (GSource * source, GSource * child), (source, child))                                 \
	X(void, g_source_destroy, (GSource * source), (source))                                                                  \
	X(void, g_source_set_name, (GSource * source, const char *name), (source, name))                                         \
	X(void, g_source_set_static_name, (GSource * source, const char *name), (source, name))                                  \
	X(GMainContext *, g_main_context_new, (void), ())                                                                        \
	X(GMainContext *, g_main_context_new_with_flags, (GMainContextFlags flags), (flags))                                     \
	X(gboolean, g_main_context_iteration, (GMainContext * context, gboolean may_block), (context, may_block))                \
	X(void, g_main_loop_run, (GMainLoop * loop), (loop))                                                                     \
	X(void, g_main_loop_quit, (GMainLoop * loop), (loop))                                                                    \
	X(GThreadPool *, g_thread_pool_new, (GFunc f, gpointer data, gint most, gboolean exclusive, GError * *error),            \
	    (f, data, most, exclusive, error))                                                                                   \
	X(GThreadPool *, g_thread_pool_new_full,                                                                                 \
	    (GFunc f, gpointer data, GDestroyNotify end, gint most, gboolean exclusive, GError * *error),                        \
	    (f, data, end, most, exclusive, error))                                                                              \
	X(gboolean, g_thread_pool_push, (GThreadPool * pool, gpointer data, GError * *error), (pool, data, error))               \
	X(void, g_thread_pool_free, (GThreadPool * pool, gboolean immediate, gboolean wait), (pool, immediate, wait))

/* Functions that the adapter wraps for calls of the program only, because GLib's own locks are not recorded. */
#define WEFT__GLIB_LOCK_CALLS(X)                                                                                                 \
	X(void, g_mutex_lock, (GMutex * mutex), (mutex))                                                                         \
	X(gboolean, g_mutex_trylock, (GMutex * mutex), (mutex))                                                                  \
	X(void, g_mutex_unlock, (GMutex * mutex), (mutex))                                                                       \
	X(void, g_cond_wait, (GCond * condition, GMutex * mutex), (condition, mutex))                                            \
	X(void, g_cond_signal, (GCond * condition), (condition))                                                                 \
	X(void, g_cond_broadcast, (GCond * condition), (condition))                                                              \
	X(gboolean, g_cond_wait_until, (GCond * condition, GMutex * mutex, gint64 end_time), (condition, mutex, end_time))

/* Functions of libgio that return the result of a task. */
#define WEFT__GIO_RESULT_CALLS(X)                                                                                                \
	X(gpointer, g_task_propagate_pointer, (GTask * task, GError * *error), (task, error))                                    \
	X(gssize, g_task_propagate_int, (GTask * task, GError * *error), (task, error))                                          \
	X(gboolean, g_task_propagate_boolean, (GTask * task, GError * *error), (task, error))                                    \
	X(gboolean, g_task_propagate_value, (GTask * task, GValue * value, GError * *error), (task, value, error))               \
	X(gboolean, g_task_had_error, (GTask * task), (task))

#define WEFT__GIO_TASK_CALLS(X)                                                                                                  \
	X(GTask *, g_task_new, (gpointer object, GCancellable * cancellable, GAsyncReadyCallback callback, gpointer data),       \
	    (object, cancellable, callback, data))                                                                               \
	X(void, g_task_set_source_tag, (GTask * task, gpointer tag), (task, tag))                                                \
	X(void, g_task_set_name, (GTask * task, const char *name), (task, name))                                                 \
	X(void, g_task_set_static_name, (GTask * task, const char *name), (task, name))                                          \
	X(void, g_task_return_pointer, (GTask * task, gpointer result, GDestroyNotify notify), (task, result, notify))           \
	X(void, g_task_return_int, (GTask * task, gssize result), (task, result))                                                \
	X(void, g_task_return_boolean, (GTask * task, gboolean result), (task, result))                                          \
	X(void, g_task_return_value, (GTask * task, GValue * result), (task, result))                                            \
	X(void, g_task_return_error, (GTask * task, GError * error), (task, error))                                              \
	X(gboolean, g_task_return_error_if_cancelled, (GTask * task), (task))                                                    \
	X(void, g_task_run_in_thread, (GTask * task, GTaskThreadFunc work), (task, work))                                        \
	X(void, g_task_run_in_thread_sync, (GTask * task, GTaskThreadFunc work), (task, work))                                   \
	X(void, g_cancellable_cancel, (GCancellable * cancellable), (cancellable))                                               \
	X(GSubprocess *, g_subprocess_new, (GSubprocessFlags flags, GError * *error, const gchar *first, ...), ())               \
	X(GSubprocess *, g_subprocess_newv, (const gchar *const *argv, GSubprocessFlags flags, GError **error),                  \
	    (argv, flags, error))                                                                                                \
	X(GSubprocess *, g_subprocess_launcher_spawnv, (GSubprocessLauncher * self, const gchar *const *argv, GError **error),   \
	    (self, argv, error))                                                                                                 \
	X(gboolean, g_application_register, (GApplication * application, GCancellable * cancellable, GError * *error),           \
	    (application, cancellable, error))                                                                                   \
	X(void, g_application_activate, (GApplication * application), (application))                                             \
	X(void, g_application_open, (GApplication * application, GFile * *files, gint count, const gchar *hint),                 \
	    (application, files, count, hint))                                                                                   \
	X(int, g_application_run, (GApplication * application, int argc, char **argv), (application, argc, argv))

#define WEFT__GIO_DBUS_CALL_PARAMETERS                                                                                           \
	GDBusConnection *connection, const gchar *destination, const gchar *path, const gchar *interface, const gchar *method,   \
	    GVariant *parameters, const GVariantType *reply, GDBusCallFlags flags, gint timeout_ms
#define WEFT__GIO_DBUS_CALL_ARGUMENTS connection, destination, path, interface, method, parameters, reply, flags, timeout_ms

#define WEFT__GIO_DBUS_CALLS(X)                                                                                                  \
	X(void, g_dbus_connection_call,                                                                                          \
	    (WEFT__GIO_DBUS_CALL_PARAMETERS, GCancellable * cancellable, GAsyncReadyCallback callback, gpointer data),           \
	    (WEFT__GIO_DBUS_CALL_ARGUMENTS, cancellable, callback, data))                                                        \
	X(void, g_dbus_connection_call_with_unix_fd_list,                                                                        \
	    (WEFT__GIO_DBUS_CALL_PARAMETERS, GUnixFDList * fds, GCancellable * cancellable, GAsyncReadyCallback callback,        \
		gpointer data),                                                                                                  \
	    (WEFT__GIO_DBUS_CALL_ARGUMENTS, fds, cancellable, callback, data))                                                   \
	X(void, g_dbus_connection_send_message_with_reply,                                                                       \
	    (GDBusConnection * connection, GDBusMessage * message, GDBusSendMessageFlags flags, gint timeout_ms,                 \
		volatile guint32 * serial, GCancellable * cancellable, GAsyncReadyCallback callback, gpointer data),             \
	    (connection, message, flags, timeout_ms, serial, cancellable, callback, data))                                       \
	X(void, g_dbus_method_invocation_return_value, (GDBusMethodInvocation * call, GVariant * value), (call, value))          \
	X(void, g_dbus_method_invocation_return_value_with_unix_fd_list,                                                         \
	    (GDBusMethodInvocation * call, GVariant * value, GUnixFDList * fds), (call, value, fds))                             \
	X(void, g_dbus_method_invocation_return_error_literal,                                                                   \
	    (GDBusMethodInvocation * call, GQuark domain, gint code, const gchar *message), (call, domain, code, message))       \
	X(void, g_dbus_method_invocation_return_dbus_error,                                                                      \
	    (GDBusMethodInvocation * call, const gchar *name, const gchar *message), (call, name, message))

/* Functions of libgio that make a listening socket for the program. */
#define WEFT__GIO_LISTENER_CALLS(X)                                                                                              \
	X(gboolean, g_socket_listener_add_address,                                                                               \
	    (GSocketListener * listener, GSocketAddress * address, GSocketType type, GSocketProtocol protocol, GObject * source, \
		GSocketAddress * *effective, GError * *error),                                                                   \
	    (listener, address, type, protocol, source, effective, error))                                                       \
	X(gboolean, g_socket_listener_add_inet_port,                                                                             \
	    (GSocketListener * listener, guint16 port, GObject * source, GError * *error), (listener, port, source, error))      \
	X(guint16, g_socket_listener_add_any_inet_port, (GSocketListener * listener, GObject * source, GError * *error),         \
	    (listener, source, error))

#define WEFT__GIO_SOCKET_CALLS(X)                                                                                                \
	WEFT__GIO_LISTENER_CALLS(X)                                                                                              \
	X(gboolean, g_socket_listen, (GSocket * socket, GError * *error), (socket, error))                                       \
	X(GSocket *, g_socket_accept, (GSocket * socket, GCancellable * cancellable, GError * *error),                           \
	    (socket, cancellable, error))                                                                                        \
	X(gboolean, g_socket_connect, (GSocket * socket, GSocketAddress * address, GCancellable * cancellable, GError * *error), \
	    (socket, address, cancellable, error))                                                                               \
	X(gboolean, g_socket_check_connect_result, (GSocket * socket, GError * *error), (socket, error))                         \
	X(gssize, g_socket_receive_with_blocking,                                                                                \
	    (GSocket * socket, gchar * to, gsize size, gboolean blocks, GCancellable * cancellable, GError * *error),            \
	    (socket, to, size, blocks, cancellable, error))                                                                      \
	X(gssize, g_socket_send_with_blocking,                                                                                   \
	    (GSocket * socket, const gchar *data, gsize size, gboolean blocks, GCancellable *cancellable, GError **error),       \
	    (socket, data, size, blocks, cancellable, error))                                                                    \
	X(gboolean, g_socket_condition_timed_wait,                                                                               \
	    (GSocket * socket, GIOCondition condition, gint64 timeout_us, GCancellable * cancellable, GError * *error),          \
	    (socket, condition, timeout_us, cancellable, error))                                                                 \
	X(gboolean, g_socket_close, (GSocket * socket, GError * *error), (socket, error))

#define WEFT__GIO_CALLS(X)                                                                                                       \
	WEFT__GIO_RESULT_CALLS(X)                                                                                                \
	WEFT__GIO_TASK_CALLS(X)                                                                                                  \
	WEFT__GIO_SOCKET_CALLS(X)                                                                                                \
	WEFT__GIO_DBUS_CALLS(X)

/* Y(result, name, (parameters)) lists a function of GLib's libraries that the adapter calls and does not wrap. */
#define WEFT__GLIB_ONLY_CALLED(Y)                                                                                                \
	Y(GSource *, g_idle_source_new, (void))                                                                                  \
	Y(void, g_source_unref, (GSource * source))                                                                              \
	Y(GSource *, g_main_context_find_source_by_id, (GMainContext * context, guint id))                                       \
	Y(GMainContext *, g_main_loop_get_context, (GMainLoop * loop))                                                           \
	Y(GMainContext *, g_main_context_default, (void))
#define WEFT__GOBJECT_ONLY_CALLED(Y)                                                                                             \
	Y(const gchar *, g_type_name_from_instance, (GTypeInstance * instance))                                                  \
	Y(gpointer, g_type_class_peek, (GType type))
#define WEFT__GIO_ONLY_CALLED(Y)                                                                                                 \
	Y(int, g_socket_get_fd, (GSocket * socket))                                                                              \
	Y(GCancellable *, g_task_get_cancellable, (GTask * task))                                                                \
	Y(gboolean, g_task_get_check_cancellable, (GTask * task))                                                                \
	Y(gpointer, g_task_get_source_object, (GTask * task))                                                                    \
	Y(gboolean, g_cancellable_is_cancelled, (GCancellable * cancellable))                                                    \
	Y(const gchar *, g_dbus_connection_get_guid, (GDBusConnection * connection))                                             \
	Y(const gchar *, g_dbus_connection_get_unique_name, (GDBusConnection * connection))                                      \
	Y(GDBusConnectionFlags, g_dbus_connection_get_flags, (GDBusConnection * connection))                                     \
	Y(guint32, g_dbus_message_get_serial, (GDBusMessage * message))                                                          \
	Y(GDBusMessageFlags, g_dbus_message_get_flags, (GDBusMessage * message))                                                 \
	Y(const gchar *, g_dbus_message_get_sender, (GDBusMessage * message))                                                    \
	Y(const gchar *, g_dbus_message_get_destination, (GDBusMessage * message))                                               \
	Y(const gchar *, g_dbus_message_get_interface, (GDBusMessage * message))                                                 \
	Y(const gchar *, g_dbus_message_get_member, (GDBusMessage * message))                                                    \
	Y(GType, g_dbus_method_invocation_get_type, (void))                                                                      \
	Y(GDBusMessage *, g_dbus_method_invocation_get_message, (GDBusMethodInvocation * call))                                  \
	Y(GDBusConnection *, g_dbus_method_invocation_get_connection, (GDBusMethodInvocation * call))

#define WEFT__GLIB_LIST(...) __VA_ARGS__

#endif
