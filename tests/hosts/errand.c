/* errand.c: two programs in weft's promises that record themselves, without `weft record`: a client and a server that answers
 * after 2 ms.
 *
 * 	errand serve ADDRESS
 * 	errand ask ADDRESS QUESTION...
 *
 * The client asks each question by a connection, and then once by a datagram.  A question that starts with "lost" gets no answer,
 * and one that starts with "slow" gets it after 400 ms.  SIGTERM ends both; the client also ends after the last answer.
 * SPDX-License-Identifier: ISC */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/uv.h>

enum { PORT = 7000, MOST = 1000, WORK_MS = 2, LONG_MS = 400, BACKLOG = 10 };

static struct weft_uv *uv;
static struct sockaddr_in address;
static char **questions; /* up to NULL */
static struct weft_resolver *never;
static struct weft_uv_stream *spoken_to; /* the listener, or the connection */
static struct weft_uv_udp *socket_of;

/* ---- Who answers ---- */

static struct weft_promise *answer(void *stream, void *question);

static struct weft_promise *next_question(void *stream, void *nothing)
{
	return weft_promise_bind(weft_uv_read(stream, MOST), answer, stream, NULL);
}

static struct weft_promise *say(void *stream, void *nothing)
{
	return weft_promise_bind(weft_uv_write(stream, "done", 4), next_question, stream, NULL);
}

static struct weft_promise *answer(void *stream, void *question)
{
	const struct weft_uv_bytes *bytes = question;
	if (bytes->size == 0)
		return weft_promise_unit();
	if (bytes->size >= 4 && !memcmp(bytes->data, "lost", 4))
		return weft_promise_of_kind(WEFT_KIND_TASK, false, "the archive", &never);
	const bool is_slow = bytes->size >= 4 && !memcmp(bytes->data, "slow", 4);
	return weft_promise_bind(weft_uv_sleep(uv, is_slow ? LONG_MS : WORK_MS), say, stream, NULL);
}

static struct weft_promise *hang_up(void *stream)
{
	return weft_uv_close(stream);
}

static struct weft_promise *serve(void *stream)
{
	return weft_promise_finalize(next_question(stream, NULL), hang_up, weft_uv_stream_ref(stream), weft_uv_stream_unref);
}

static struct weft_promise *accept_next(void *listener, void *stream)
{
	if (stream)
		weft_promise_async(serve, weft_uv_stream_ref(stream), weft_uv_stream_unref);
	return weft_promise_bind(weft_uv_accept(listener), accept_next, listener, NULL);
}

static struct weft_promise *begin(void *nothing, void *listener)
{
	spoken_to = weft_uv_stream_ref(listener);
	return accept_next(listener, NULL);
}

static struct sockaddr_storage asked_by;

static struct weft_promise *next_datagram(void *nothing, void *sent);

static struct weft_promise *answer_datagram(void *nothing, void *slept)
{
	struct weft_promise *sent = weft_uv_udp_send(socket_of, "done", 4, (struct sockaddr *)&asked_by);
	return weft_promise_bind(sent, next_datagram, NULL, NULL);
}

static struct weft_promise *take_datagram(void *nothing, void *datagram)
{
	asked_by = ((struct weft_uv_datagram *)datagram)->from;
	return weft_promise_bind(weft_uv_sleep(uv, WORK_MS), answer_datagram, NULL, NULL);
}

static struct weft_promise *next_datagram(void *nothing, void *sent)
{
	return weft_promise_bind(weft_uv_udp_receive(socket_of, MOST), take_datagram, NULL, NULL);
}

static struct weft_promise *open_datagrams(void *nothing, void *udp)
{
	socket_of = weft_uv_udp_ref(udp);
	return next_datagram(NULL, NULL);
}

/* ---- Who asks ---- */

static struct weft_promise *ask_next(void *stream, void *answered);

static struct weft_promise *hear(void *stream, void *written)
{
	return weft_promise_bind(weft_uv_read(stream, MOST), ask_next, stream, NULL);
}

static struct weft_promise *hear_datagram(void *udp, void *sent)
{
	return weft_uv_udp_receive(udp, MOST);
}

static struct weft_promise *ask_by_datagram(void *nothing, void *udp)
{
	socket_of = weft_uv_udp_ref(udp);
	return weft_promise_bind(weft_uv_udp_send(udp, "last", 4, (struct sockaddr *)&address), hear_datagram, udp, NULL);
}

static struct weft_promise *ask_next(void *stream, void *answered)
{
	const char *question = *questions;
	if (!question)
		return weft_promise_bind(weft_uv_udp_open(uv, NULL), ask_by_datagram, NULL, NULL);
	questions++;
	return weft_promise_bind(weft_uv_write(stream, question, strlen(question)), hear, stream, NULL);
}

static struct weft_promise *ask(void *nothing, void *stream)
{
	spoken_to = weft_uv_stream_ref(stream);
	return ask_next(stream, NULL);
}

int main(int argc, char **argv)
{
	uv = weft_uv_create(NULL);
	if (argc < 3 || !uv || uv_ip4_addr(argv[2], PORT, &address) != 0)
		return 2;
	const struct sockaddr *at = (const struct sockaddr *)&address;
	struct weft_promise *work, *datagrams = weft_promise_unit();
	if (!strcmp(argv[1], "serve")) {
		work = weft_promise_bind(weft_uv_tcp_listen(uv, at, BACKLOG), begin, NULL, NULL);
		datagrams = weft_promise_bind(weft_uv_udp_open(uv, at), open_datagrams, NULL, NULL);
	} else {
		questions = argv + 3;
		work = weft_promise_bind(weft_uv_tcp_connect(uv, at), ask, NULL, NULL);
		weft_promise_should_resolve(work);
	}
	struct weft_promise *const either[] = {work, weft_uv_signal(uv, SIGTERM)};
	struct weft_promise *end = weft_promise_choose(either, 2);
	puts("began");
	fflush(stdout);
	const int status = weft_uv_run(uv, end, 0);
	const bool failed = status < 0 || weft_promise_state(end) != WEFT_RESOLVED;
	weft_promise_unref(datagrams);
	weft_promise_unref(end);
	weft_uv_stream_unref(spoken_to);
	weft_uv_udp_unref(socket_of);
	weft_uv_destroy(uv);
	return failed;
}
