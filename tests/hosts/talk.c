/* talk.c: one of several machines that exchange requests and responses over TCP, with a clock that is wrong as the arguments say.
 *
 * 	talk DIR HOST CLOCK SEED SECONDS serve|ask ADDRESS PORT [OWN-PORT]
 *
 * CLOCK is OFFSET_NS,DRIFT_PPB,WANDER_NS[,slow|late]: the offset, the drift, and the amplitude of a sine of 8 s.  `slow`:
 * received messages take up to 2 ms longer.  `late`: sends are recorded 2 ms after the call.
 *
 * Messages of 1 byte to 200 kB are sent in pieces of any size.  With OWN-PORT each connection has the addresses of the previous
 * one.  Each ms a promise is called "true N M": the machines' common clock showed N before its creation, and M after it.
 * SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <weft/record.h>

enum { SECOND_NS = 1000000000, LARGEST = 200000, TURNS = 150, MOST_DELAY_US = 2000, LATE_US = 2000 };

static int64_t end_ns, offset_ns, drift_ppb, wander_ns;
static bool is_slow, is_late;

static int64_t true_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

static uint64_t shown_ns(void)
{
	const int64_t now_ns = true_ns();
	const double seconds = (double)(now_ns % (1000 * (int64_t)SECOND_NS)) / SECOND_NS;
	const double wander = wander_ns ? (double)wander_ns * sin(seconds * (2 * 3.14159265358979 / 8)) : 0;
	return (uint64_t)(now_ns + offset_ns + now_ns / SECOND_NS * drift_ppb + now_ns % SECOND_NS * drift_ppb / SECOND_NS +
			  (int64_t)wander);
}

static unsigned dice(uint64_t *state, unsigned sides)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*state >> 33) % sides;
}

static void *say_truth(void *unused)
{
	(void)unused;
	while (true_ns() < end_ns) {
		char text[64];
		const int64_t before_ns = true_ns();
		const weft_id id = WEFT_CREATE(WEFT_KIND_TASK);
		snprintf(text, sizeof text, "true %lld %lld", (long long)before_ns, (long long)true_ns());
		weft_label(id, text);
		weft_resolve(id, id);
		usleep(1000);
	}
	return NULL;
}

struct talk {
	int fd;
	weft_id id;
	struct weft_positions carried;
	uint64_t seed;
};

static bool begin(struct talk *t, int fd, bool did_connect, uint64_t seed)
{
	*t = (struct talk){.fd = fd, .id = WEFT_CREATE(WEFT_KIND_CONNECTION), .seed = seed};
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){32768}, sizeof(int));
	return weft_connection(t->id, fd, did_connect, &t->carried);
}

static bool put(struct talk *t, const char *bytes, size_t size)
{
	while (size) {
		const size_t piece = 1 + dice(&t->seed, (unsigned)size);
		if (!is_late)
			weft_sent(t->id, t->carried.sent + piece);
		const ssize_t done = send(t->fd, bytes, piece, MSG_DONTWAIT | MSG_NOSIGNAL);
		const size_t taken = done > 0 ? (size_t)done : 0;
		if (done < 0 && errno != EAGAIN)
			return false;
		t->carried.sent += taken;
		if (is_late)
			usleep(LATE_US);
		if (is_late || taken < piece)
			weft_sent(t->id, t->carried.sent);
		if (done < 0)
			poll(&(struct pollfd){.fd = t->fd, .events = POLLOUT}, 1, 1000);
		bytes += taken;
		size -= taken;
	}
	return true;
}

static bool get(struct talk *t, char *bytes, size_t size)
{
	while (size) {
		if (is_slow) {
			poll(&(struct pollfd){.fd = t->fd, .events = POLLIN}, 1, -1);
			usleep(dice(&t->seed, MOST_DELAY_US));
		}
		const ssize_t done = recv(t->fd, bytes, size, 0);
		if (done <= 0)
			return false;
		weft_received(t->id, t->carried.received += (uint64_t)done);
		bytes += done;
		size -= (size_t)done;
	}
	return true;
}

/* A message is its size, in 4 bytes, and that many bytes. */
static bool put_message(struct talk *t)
{
	static const char zeros[LARGEST];
	const uint32_t size = 1 + (dice(&t->seed, 8) ? dice(&t->seed, 2000) : dice(&t->seed, LARGEST));
	char head[4];
	memcpy(head, &size, 4);
	return put(t, head, 4) && put(t, zeros, size);
}

static bool get_message(struct talk *t)
{
	static __thread char bytes[LARGEST];
	uint32_t size;
	return get(t, (char *)&size, 4) && size <= sizeof bytes && get(t, bytes, size);
}

static void *answer(void *data)
{
	struct talk t = *(struct talk *)data;
	free(data);
	while (get_message(&t)) {
		if (dice(&t.seed, 4) == 0)
			usleep(dice(&t.seed, 3000));
		if (!put_message(&t))
			break;
	}
	weft_resolve(t.id, t.id);
	close(t.fd);
	return NULL;
}

static int serve(const struct sockaddr_in *at, uint64_t seed)
{
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (bind(fd, (const struct sockaddr *)at, sizeof *at) || listen(fd, 16))
		return 1;
	puts("listens");
	fflush(stdout);
	while (true_ns() < end_ns) {
		pthread_t thread;
		if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 100) <= 0)
			continue;
		struct talk talk;
		const int peer = accept(fd, NULL, NULL);
		if (peer < 0)
			return 1;
		if (!begin(&talk, peer, false, ++seed)) { /* the peer reset the connection before it was accepted */
			close(peer);
			continue;
		}
		struct talk *own = malloc(sizeof *own);
		if (!own)
			return 1;
		*own = talk;
		if (pthread_create(&thread, NULL, answer, own))
			return 1;
		pthread_detach(thread);
	}
	usleep(200000);
	return 0;
}

static int ask(const struct sockaddr_in *at, uint64_t seed, int own_port)
{
	while (true_ns() < end_ns) {
		struct talk t;
		const int fd = socket(AF_INET, SOCK_STREAM, 0);
		const struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons((uint16_t)own_port)};
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
		if (own_port && bind(fd, (const struct sockaddr *)&from, sizeof from))
			return 1;
		if (connect(fd, (const struct sockaddr *)at, sizeof *at)) {
			close(fd); /* the reset of the previous connection has not arrived */
			usleep(50000);
			continue;
		}
		if (!begin(&t, fd, true, ++seed))
			return 1;
		for (int i = 0; i < TURNS && true_ns() < end_ns && put_message(&t) && get_message(&t); i++)
			usleep(dice(&t.seed, 20000));
		weft_resolve(t.id, t.id);
		if (own_port) /* closes by a reset, because otherwise the port would stay in TIME_WAIT for a minute */
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
		close(fd);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 9)
		return 2;
	long long offset, drift, wander;
	if (sscanf(argv[3], "%lld,%lld,%lld", &offset, &drift, &wander) != 3)
		return 2;
	offset_ns = offset;
	drift_ppb = drift;
	wander_ns = wander;
	is_slow = strstr(argv[3], "slow");
	is_late = strstr(argv[3], "late");
	const uint64_t seed = strtoull(argv[4], NULL, 10);

	end_ns = true_ns() + atoll(argv[5]) * SECOND_NS;
	const struct sockaddr_in at = {
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[8])), .sin_addr.s_addr = inet_addr(argv[7])};
	const struct weft_record_options options = {.directory = argv[1],
	    .mode = WEFT_RECORD_GROW,
	    .clock = shown_ns,
	    .clock_hz = SECOND_NS,
	    .wall_ns = shown_ns,
	    .is_counter = true,
	    .host = argv[2]};
	if (weft_start(&options) < 0) {
		fprintf(stderr, "%s\n", weft_start_error());
		return 1;
	}
	pthread_t truth;
	if (pthread_create(&truth, NULL, say_truth, NULL))
		return 1;
	const int status = strcmp(argv[6], "serve") ? ask(&at, seed, argc > 9 ? atoi(argv[9]) : 0) : serve(&at, seed);
	pthread_join(truth, NULL);
	weft_stop();
	return status;
}
