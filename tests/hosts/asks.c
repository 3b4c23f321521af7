/* asks.c: asks PORT three times for a name, by datagrams: by a socket of GIO that is not connected, by one that is, and by a
 * descriptor that GLib watches.  SPDX-License-Identifier: ISC */
#include <gio/gio.h>
#include <glib-unix.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char question[] = "\0\1\1\0\0\1\0\0\0\0\0\0\3one\0\0\1\0\1";
static GMainLoop *loop;
static int left = 3;

static gboolean is_answered(gssize got)
{
	puts(got > (gssize)sizeof question - 1 ? "answered" : "not answered");
	if (--left == 0)
		g_main_loop_quit(loop);
	return FALSE;
}

static gboolean came(GSocket *own, GIOCondition condition, gpointer data)
{
	char answer[512];
	return is_answered(g_socket_receive(own, answer, sizeof answer, NULL, NULL));
}

static gboolean is_there(int fd, GIOCondition condition, gpointer data)
{
	char answer[512];
	return is_answered(read(fd, answer, sizeof answer));
}

static void ask(GSocketAddress *server, gboolean is_connected)
{
	GSocket *own = g_socket_new(G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, NULL);
	if (is_connected)
		g_socket_connect(own, server, NULL, NULL);
	GSource *source = g_socket_create_source(own, G_IO_IN, NULL);
	g_source_set_callback(source, (GSourceFunc)(void (*)(void))came, NULL, NULL);
	g_source_attach(source, NULL);
	question[1]++;
	g_socket_send_to(own, is_connected ? NULL : server, question, sizeof question - 1, NULL, NULL);
}

int main(int argc, char **argv)
{
	const int port = argc == 2 ? atoi(argv[1]) : 0, fd = socket(AF_INET, SOCK_DGRAM, 0);
	const struct sockaddr_in to = {
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	GSocketAddress *server = g_inet_socket_address_new_from_string("127.0.0.1", (guint)port);
	loop = g_main_loop_new(NULL, FALSE);
	ask(server, FALSE);
	ask(server, TRUE);
	if (connect(fd, (const struct sockaddr *)&to, sizeof to))
		return 1;
	g_unix_fd_add(fd, G_IO_IN, is_there, NULL);
	question[1]++;
	if (write(fd, question, sizeof question - 1) != sizeof question - 1)
		return 1;
	g_main_loop_run(loop);
	return 0;
}
