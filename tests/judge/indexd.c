/* indexd.c: a text index with an epoll loop, three worker threads and a journal thread, on libc alone.
 *
 * A client sends "add WORDS" or "find WORD" and gets a line.  Workers take requests from a queue, and give answers back through
 * an eventfd.  The journal thread writes what was added.  A spelling filter runs as a child process.
 *
 * Usage: judge-indexd FAULT [SEED].  Healthy: none, healthy-slow, healthy-timeouts, healthy-polls, healthy-idle.
 * SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLIENTS = 4, WORKERS = 3, REQUESTS = 24, BUFFERS = 4, WORDS = 256, MOST_FILES = 256 };

struct client {
	int fd;
	char line[256];
	size_t length;
};

struct request {
	struct client *client;
	char text[256], answer[64];
	struct request *next;
};

struct queue {
	struct request *first, **last;
};

extern char **environ;
static const char *fault;
static int epoll_fd, listener, answers_fd, timer_fd, quit_fd, port, seed;
static struct client by_file[MOST_FILES];
static struct queue requests = {NULL, &requests.first}, answers = {NULL, &answers.first};
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER, index_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_changed = PTHREAD_COND_INITIALIZER, journal_changed = PTHREAD_COND_INITIALIZER;
static sem_t buffers;
static bool is_ending, is_journal_ready, is_journal_ending;
static unsigned counts[WORDS], journal_length, journal_written, lookups;

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static void push(struct queue *queue, struct request *request)
{
	request->next = NULL;
	*queue->last = request;
	queue->last = &request->next;
}

static struct request *pop(struct queue *queue)
{
	struct request *request = queue->first;
	if (request && !(queue->first = request->next))
		queue->last = &queue->first;
	return request;
}

static unsigned slot_of(const char *word)
{
	unsigned hash = 5381;
	for (; *word && *word != ' '; word++)
		hash = hash * 33 + (unsigned char)*word;
	return hash % WORDS;
}

/* ---- The journal ---- */

static void *write_journal(void *nothing)
{
	if (is("lostwake"))
		usleep(30000); /* opens the file */
	pthread_mutex_lock(&journal_lock);
	if (is("lostwake"))
		pthread_cond_wait(&journal_changed, &journal_lock);
	is_journal_ready = true;
	pthread_cond_broadcast(&journal_changed);
	while (!is_journal_ending) {
		while (journal_written == journal_length && !is_journal_ending)
			pthread_cond_wait(&journal_changed, &journal_lock);
		if (is("lockorder")) {
			usleep(2000); /* writes */
			pthread_mutex_lock(&index_lock);
			journal_written = journal_length;
			pthread_mutex_unlock(&index_lock);
		}
		journal_written = journal_length;
	}
	pthread_mutex_unlock(&journal_lock);
	return nothing;
}

static void start_journal(pthread_t *journal)
{
	pthread_create(journal, NULL, write_journal, NULL);
	pthread_mutex_lock(&journal_lock);
	if (is("lostwake"))
		pthread_cond_signal(&journal_changed); /* the file may be opened now */
	while (!is_journal_ready)
		pthread_cond_wait(&journal_changed, &journal_lock);
	pthread_mutex_unlock(&journal_lock);
}

static void add_to_journal(void)
{
	pthread_mutex_lock(&journal_lock);
	journal_length++;
	pthread_cond_signal(&journal_changed);
	pthread_mutex_unlock(&journal_lock);
}

/* ---- The spelling filter ---- */

static void check_spelling(const char *text)
{
	int output[2];
	char command[400], line[4096];
	pid_t child;
	snprintf(command, sizeof command, is("pipe") ? "yes '%s' | head -c 200000" : "echo '%s'", text);
	char *arguments[] = {"sh", "-c", command, NULL};
	if (pipe2(output, O_CLOEXEC) < 0)
		return;
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, output[1], 1);
	int failure = posix_spawnp(&child, "sh", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(output[1]);
	if (!failure && is("pipe"))
		waitpid(child, NULL, 0);
	while (read(output[0], line, sizeof line) > 0)
		;
	close(output[0]);
	if (!failure && !is("pipe") && !is("zombies"))
		waitpid(child, NULL, 0);
}

/* ---- Workers ---- */

static void add_words(struct request *request)
{
	sem_wait(&buffers);
	if (strstr(request->text, "bad") && is("buffers")) {
		snprintf(request->answer, sizeof request->answer, "refused\n");
		return;
	}
	pthread_mutex_lock(&index_lock);
	if (strstr(request->text, "bad")) {
		snprintf(request->answer, sizeof request->answer, "refused\n");
		if (!is("unreleased"))
			pthread_mutex_unlock(&index_lock);
		sem_post(&buffers);
		return;
	}
	for (const char *word = request->text + 4; word; word = strchr(word, ' ') ? strchr(word, ' ') + 1 : NULL)
		counts[slot_of(word)]++;
	if (is("longlock") && strstr(request->text, "sync"))
		usleep(100000); /* merges the segments of the index */
	if (is("lockorder")) {
		usleep(2000);
		add_to_journal();
	}
	pthread_mutex_unlock(&index_lock);
	if (!is("lockorder"))
		add_to_journal();
	if (strstr(request->text, "spell"))
		check_spelling(request->text + 4);
	sem_post(&buffers);
	snprintf(request->answer, sizeof request->answer, "added\n");
}

static void find_word(struct request *request)
{
	pthread_mutex_lock(&index_lock);
	unsigned count = counts[slot_of(request->text + 5)];
	pthread_mutex_unlock(&index_lock);
	if (is("healthy-slow"))
		usleep(60000);
	snprintf(request->answer, sizeof request->answer, "found %u\n", count);
}

static void *be_worker(void *nothing)
{
	const uint64_t one = 1;
	for (;;) {
		pthread_mutex_lock(&queue_lock);
		while (!requests.first && (!is_ending || is("join")))
			pthread_cond_wait(&queue_changed, &queue_lock);
		struct request *request = pop(&requests);
		pthread_mutex_unlock(&queue_lock);
		if (!request)
			return nothing;
		if (!strncmp(request->text, "add ", 4))
			add_words(request);
		else
			find_word(request);
		pthread_mutex_lock(&queue_lock);
		push(&answers, request);
		pthread_mutex_unlock(&queue_lock);
		if (is("nonotify") && strstr(request->answer, "refused"))
			continue;
		if (write(answers_fd, &one, sizeof one) < 0)
			perror("eventfd");
	}
}

/* ---- The loop ---- */

static void watch(int fd, unsigned events, void *data)
{
	struct epoll_event event = {.events = events, .data.ptr = data};
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static void send_answers(void)
{
	uint64_t count;
	if (read(answers_fd, &count, sizeof count) < 0)
		return;
	for (;;) {
		pthread_mutex_lock(&queue_lock);
		struct request *request = pop(&answers);
		pthread_mutex_unlock(&queue_lock);
		if (!request)
			return;
		if (send(request->client->fd, request->answer, strlen(request->answer), MSG_NOSIGNAL) < 0)
			perror("send");
		free(request);
		if (is("nonotify"))
			return; /* one for each wake-up */
	}
}

static void accept_client(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0 || fd >= MOST_FILES)
		return;
	struct client *client = &by_file[fd];
	*client = (struct client){.fd = fd};
	watch(client->fd, EPOLLIN | (is("spin") ? EPOLLOUT : 0), client);
}

static void close_client(struct client *client)
{
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, client->fd, NULL); /* a child that starts still has the file */
	close(client->fd);
}

static void read_client(struct client *client)
{
	do {
		ssize_t n = recv(client->fd, client->line + client->length, sizeof client->line - 1 - client->length, 0);
		if (n <= 0) {
			close_client(client);
			return;
		}
		client->length += (size_t)n;
		client->line[client->length] = 0;
	} while (is("halfread") && !strchr(client->line, '\n')); /* reads a line */
	if (!strchr(client->line, '\n'))
		return;
	struct request *request = calloc(1, sizeof *request);
	request->client = client;
	memcpy(request->text, client->line, client->length - 1);
	client->length = 0;
	pthread_mutex_lock(&queue_lock);
	push(&requests, request);
	pthread_cond_signal(&queue_changed);
	pthread_mutex_unlock(&queue_lock);
}

static void show_statistics(void)
{
	uint64_t count;
	if (read(timer_fd, &count, sizeof count) < 0)
		return;
	pthread_mutex_lock(&index_lock);
	lookups += counts[0];
	pthread_mutex_unlock(&index_lock);
}

static void run_loop(void)
{
	struct epoll_event events[16];
	for (;;) {
		int count = epoll_wait(epoll_fd, events, 16, -1);
		for (int i = 0; i < count; i++) {
			void *data = events[i].data.ptr;
			if (data == &quit_fd)
				return;
			if (data == &listener)
				accept_client();
			else if (data == &answers_fd)
				send_answers();
			else if (data == &timer_fd)
				show_statistics();
			else if (events[i].events & ~(unsigned)EPOLLOUT)
				read_client(data);
		}
	}
}

/* ---- Clients ---- */

static int connect_client(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = {
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		perror("connect");
	return fd;
}

static bool ask(int fd, const char *text)
{
	char reply[64];
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		return false;
	if (is("healthy-timeouts")) {
		const struct timeval limit = {0, 30000};
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	}
	for (;;) {
		ssize_t n = recv(fd, reply, sizeof reply, 0);
		if (n > 0 || (n < 0 && errno != EAGAIN) || n == 0)
			return n > 0;
	}
}

static void *be_client(void *argument)
{
	static const char *const texts[] = {
	    "find river\n", "add river boat sync\n", "find boat\n", "add bad word\n", "add a spell\n", "find a\n"};
	int number = (int)(intptr_t)argument, fd = connect_client();
	for (int i = 0; i < REQUESTS; i++) {
		if (!ask(fd, texts[(i + number + seed) % 6]))
			break;
		if ((is("healthy-idle") || is("spin")) && i == REQUESTS / 2)
			usleep(700000);
	}
	if (is("halfread") && number == 1 && send(fd, "find ", 5, MSG_NOSIGNAL) > 0)
		usleep(9000000); /* its network is gone */
	if (is("healthy-polls") || is("halfread")) {
		usleep(number * 200000);
		ask(fd, "find late\n");
	}
	close(fd);
	return NULL;
}

static void *be_all_clients(void *nothing)
{
	pthread_t clients[CLIENTS];
	const uint64_t one = 1;
	for (int i = 0; i < CLIENTS; i++)
		pthread_create(&clients[i], NULL, be_client, (void *)(intptr_t)i);
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(clients[i], NULL);
	if (write(quit_fd, &one, sizeof one) < 0)
		perror("eventfd");
	return nothing;
}

static void listen_for_clients(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 16) < 0)
		perror("listen");
	getsockname(listener, (struct sockaddr *)&address, &length);
	port = ntohs(address.sin_port);
	watch(listener, EPOLLIN, &listener);
}

static void end_workers(pthread_t *workers)
{
	pthread_mutex_lock(&queue_lock);
	is_ending = true;
	pthread_cond_broadcast(&queue_changed);
	pthread_mutex_unlock(&queue_lock);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
}

static void end_journal(pthread_t journal)
{
	pthread_mutex_lock(&journal_lock);
	is_journal_ending = true;
	pthread_cond_signal(&journal_changed);
	pthread_mutex_unlock(&journal_lock);
	pthread_join(journal, NULL);
}

int main(int argc, char **argv)
{
	pthread_t workers[WORKERS], journal, clients;
	fault = argc > 1 ? argv[1] : "none";
	seed = argc > 2 ? atoi(argv[2]) : 1;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	answers_fd = eventfd(0, EFD_CLOEXEC | (is("nonotify") ? EFD_SEMAPHORE : 0));
	quit_fd = eventfd(0, EFD_CLOEXEC);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	const struct itimerspec often = {{0, 10000000}, {0, 10000000}};
	timerfd_settime(timer_fd, 0, &often, NULL);
	watch(answers_fd, EPOLLIN, &answers_fd);
	watch(quit_fd, EPOLLIN, &quit_fd);
	watch(timer_fd, EPOLLIN, &timer_fd);
	sem_init(&buffers, 0, BUFFERS);
	start_journal(&journal);
	listen_for_clients();
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&workers[i], NULL, be_worker, NULL);
	pthread_create(&clients, NULL, be_all_clients, NULL);
	run_loop();
	pthread_join(clients, NULL);
	end_workers(workers);
	end_journal(journal);
	printf("%u entries in the journal, %u look-ups\n", journal_written, lookups);
	return 0;
}
