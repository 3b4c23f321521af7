/* pairs.c ROLE: one of two processes with connections to each other.  Each records by hand the events that its wrapped ring would
 * still have.
 *
 *   client, server   the client has sent its next request, and the server has not read it yet
 *   caller, keeper   the caller closes each of its connections; the keeper reads nothing from them and closes none
 *
 * SPDX-License-Identifier: ISC */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <weft/record.h>

enum { CONNECTIONS = 200, CLIENT_PORT = 40000 };

static void sleep_ms(unsigned ms)
{
	struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
	weft_idle(WEFT_IDLE_WAIT);
	nanosleep(&pause, NULL);
	weft_resume(WEFT_SYSTEM_ID);
}

/* Records the addresses of one end of a connection, and how many bytes it has sent and received. */
static void tell_addresses(weft_id connection, bool is_server, int number, int64_t sent, uint64_t received)
{
	char text[100], names[2][32];
	snprintf(names[0], sizeof names[0], "127.0.0.1:%d", CLIENT_PORT + number);
	snprintf(names[1], sizeof names[1], "127.0.0.1:7000");
	snprintf(text, sizeof text, "tcp %s %s %llu", names[is_server], names[!is_server], (unsigned long long)received);
	weft__slow_detail(connection, WEFT_DETAIL_CONNECTION, sent, text);
}

static void await_next(bool is_server)
{
	weft_id connection = weft_pending(WEFT_SYSTEM_ID, 0, WEFT_KIND_CONNECTION, WEFT_SITE(), weft_now(),
	    is_server ? "from 127.0.0.1:40000" : "to 127.0.0.1:7000");
	tell_addresses(connection, is_server, 0, is_server ? 1000 : 500, is_server ? 500 : 1100);
	weft_id read = weft_create(connection, WEFT_KIND_STREAM_READ, WEFT_SITE());
	weft_await(connection, read);
	weft_run(connection);
	weft_sent(connection, is_server ? 1100 : 600);
	sleep_ms(30);
}

static void make_connections(bool is_server)
{
	char label[40];
	weft_id listener = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LISTEN, WEFT_SITE());
	for (int i = 0; i < CONNECTIONS; i++) {
		weft_id connection = weft_create(is_server ? listener : WEFT_SYSTEM_ID, WEFT_KIND_CONNECTION, WEFT_SITE());
		snprintf(label, sizeof label, is_server ? "from 127.0.0.1:%d" : "to 127.0.0.1:7000", CLIENT_PORT + i);
		weft_label(connection, label);
		tell_addresses(connection, is_server, i, 0, 0);
		weft_run(connection);
		if (is_server)
			weft_received(connection, 10);
		else
			weft_sent(connection, 10);
		if (!is_server)
			weft_resolve(connection, connection);
		sleep_ms(1);
	}
}

int main(int argc, char **argv)
{
	const char *role = argc > 1 ? argv[1] : "";
	if (!strcmp(role, "client") || !strcmp(role, "server"))
		await_next(!strcmp(role, "server"));
	else
		make_connections(!strcmp(role, "keeper"));
	return 0;
}
