/* syncd FAULT SEED: a daemon that keeps files the same here and at a peer, on plain epoll: a loop cuts files into blocks, two OS
 * threads hash them, the loop uploads them, and the peer (an OS thread that is not recorded) acknowledges each.  It tells weft of
 * files, blocks, locks and a queue as docs/recording.md says.  FAULT is one everyday mistake, or "none".
 *
 * SPDX-License-Identifier: ISC */

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <weft/record.h>

enum { FILES = 24, BLOCKS = 120, AT_ONCE = 6, HASHERS = 2 };

struct file {
	weft_id id;
	int blocks_left;
};

struct block {
	weft_id id, hash, upload;
	struct file *file;
};

struct lock {
	pthread_mutex_t mutex;
	weft_id id;
};

static const char *fault;
static struct file files[FILES];
static struct block blocks[BLOCKS];
static struct lock index_lock = {PTHREAD_MUTEX_INITIALIZER, 0}, journal_lock = {PTHREAD_MUTEX_INITIALIZER, 0};
static struct lock queue_lock = {PTHREAD_MUTEX_INITIALIZER, 0};
static pthread_cond_t queue_grew = PTHREAD_COND_INITIALIZER;
static weft_id queue_grew_id, main_id, hashers[HASHERS];
static struct weft_record_text queue_length = WEFT_COUNTER("blocks to hash");
static int queue[BLOCKS + HASHERS], queue_begin, queue_end, to_peer[2], hashed[2], begun, in_work, done;

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static void compute_for_us(int us)
{
	struct timespec t, begin;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &t);
	while ((t.tv_sec - begin.tv_sec) * 1000000 + (t.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static void send_number(int to, int number)
{
	if (write(to, &number, sizeof number) != sizeof number)
		_exit(3);
}

static void take(weft_id who, struct lock *l)
{
	if (pthread_mutex_trylock(&l->mutex)) {
		weft_await(who, l->id);
		weft_idle(WEFT_IDLE_WAIT);
		pthread_mutex_lock(&l->mutex);
		weft_resume(who);
		weft_awaits_no_more(who, l->id);
	}
	weft_hold(who, l->id);
}

static void give(weft_id who, struct lock *l)
{
	weft_release(who, l->id);
	pthread_mutex_unlock(&l->mutex);
}

/* ---- The peer, which is another program in real life ---- */

static void *acknowledge(void *nothing)
{
	int number;
	while (read(to_peer[1], &number, sizeof number) == sizeof number && number >= 0) {
		if (is("lost") && number == 37)
			continue;
		if (is("late") && number == 37)
			usleep(300000);
		usleep(500);
		send_number(to_peer[1], number);
	}
	return NULL;
}

/* ---- Hashing ---- */

static void hash(weft_id self, int number)
{
	struct block *b = &blocks[number];
	weft_run(b->hash);
	compute_for_us(is("backlog") ? 4000 : 300);
	bool other_way = is("deadlock") && self == hashers[1];
	take(b->hash, other_way ? &journal_lock : &index_lock);
	if (is("deadlock"))
		usleep(3000);
	take(b->hash, other_way ? &index_lock : &journal_lock);
	give(b->hash, &journal_lock);
	if (is("unreleased") && number == 37)
		weft_note(b->hash, "block is empty"); /* and the lock stays locked */
	else
		give(b->hash, &index_lock);
	weft_resolve(b->hash, b->hash);
	weft_run(self);
	send_number(hashed[1], number);
}

static void *run_hasher(void *data)
{
	weft_id self = *(weft_id *)data;
	weft_run(self);
	take(self, &queue_lock);
	for (;;) {
		while (queue_begin == queue_end) {
			if (is("wakeup") && queue_begin > 40) { /* looks again, without the lock */
				give(self, &queue_lock);
				usleep(8000);
				take(self, &queue_lock);
			}
			weft_await(self, queue_grew_id);
			weft_release(self, queue_lock.id);
			weft_idle(WEFT_IDLE_WAIT);
			pthread_cond_wait(&queue_grew, &queue_lock.mutex);
			weft_resume(self);
			weft_hold(self, queue_lock.id);
			weft_awaits_no_more(self, queue_grew_id);
		}
		int number = queue[queue_begin++];
		if (number < 0)
			break;
		weft_counter_add(self, &queue_length, -1);
		give(self, &queue_lock);
		hash(self, number);
		take(self, &queue_lock);
	}
	give(self, &queue_lock);
	weft_resolve(self, self);
	return NULL;
}

static void enqueue(weft_id who, int number)
{
	take(who, &queue_lock);
	queue[queue_end++] = number;
	if (number >= 0)
		weft_counter_add(who, &queue_length, 1);
	weft_signal_only(who, queue_grew_id);
	pthread_cond_signal(&queue_grew);
	give(who, &queue_lock);
}

/* ---- The loop ---- */

static void begin_block(void)
{
	char text[32];
	struct block *b = &blocks[begun];
	b->file = &files[begun % FILES];
	weft_run(b->file->id);
	b->id = WEFT_CREATE(WEFT_KIND_TASK);
	snprintf(text, sizeof text, "block %d", begun);
	weft_label(b->id, text);
	weft_await(b->file->id, b->id);
	weft_run(b->id);
	if (is("stall") && begun == 37)
		compute_for_us(120000);
	b->hash = WEFT_CREATE(WEFT_KIND_WORK);
	weft_label(b->hash, "hash");
	weft_await(b->id, b->hash);
	in_work++;
	enqueue(b->id, begun++);
}

static void on_hashed(struct block *b)
{
	weft_read(b->id, b->hash);
	b->upload = WEFT_CREATE(WEFT_KIND_REQUEST);
	weft_label(b->upload, "upload");
	weft_await(b->id, b->upload);
	send_number(to_peer[0], b - blocks);
}

static void on_acknowledged(struct block *b)
{
	weft_resolve(WEFT_SYSTEM_ID, b->upload);
	weft_read(b->id, b->upload);
	weft_resolve(b->id, b->id);
	weft_read(b->file->id, b->id);
	if (--b->file->blocks_left == 0)
		weft_resolve(b->file->id, b->file->id);
	in_work--;
	done++;
	if (is("late-use") && b == &blocks[37])
		weft_await(b->id, blocks[38].id), weft_run(b->id); /* it has ended, and goes on */
}

static void run_loop(void)
{
	int poll = epoll_create1(0), from[2] = {to_peer[0], hashed[0]}, number;
	for (int i = 0; i < 2; i++)
		epoll_ctl(poll, EPOLL_CTL_ADD, from[i], &(struct epoll_event){.events = EPOLLIN, .data.u32 = i});
	while (done < (is("backlog") ? 35 : BLOCKS)) {
		while (begun < BLOCKS && in_work < AT_ONCE + (is("backlog") ? 2 * done : 0))
			begin_block();
		struct epoll_event event;
		weft_idle(WEFT_IDLE_WAIT);
		int came = epoll_wait(poll, &event, 1, 1500);
		weft_resume(main_id);
		if (came == 0)
			_exit(1); /* it has hung for long enough: whoever judges kills it */
		if (read(from[event.data.u32], &number, sizeof number) != sizeof number)
			_exit(2);
		if (event.data.u32)
			on_hashed(&blocks[number]);
		else
			on_acknowledged(&blocks[number]);
	}
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "none";
	srand48(argc > 2 ? atol(argv[2]) : 1);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, to_peer) || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, hashed))
		return 2;
	main_id = WEFT_CREATE(WEFT_KIND_THREAD);
	WEFT_LABEL(main_id, "main");
	weft_run(main_id);
	index_lock.id = WEFT_CREATE(WEFT_KIND_LOCK);
	WEFT_LABEL(index_lock.id, "index");
	journal_lock.id = WEFT_CREATE(WEFT_KIND_LOCK);
	WEFT_LABEL(journal_lock.id, "journal");
	queue_lock.id = WEFT_CREATE(WEFT_KIND_LOCK);
	WEFT_LABEL(queue_lock.id, "queue");
	queue_grew_id = WEFT_CREATE(WEFT_KIND_CONDITION);
	WEFT_LABEL(queue_grew_id, "queue grew");
	for (int i = 0; i < FILES; i++) {
		char text[32];
		files[i] = (struct file){WEFT_CREATE(WEFT_KIND_REQUEST), BLOCKS / FILES};
		snprintf(text, sizeof text, "synchronize file %d", i);
		weft_label(files[i].id, text);
		weft_should_resolve(files[i].id);
	}
	pthread_t peer, threads[HASHERS];
	pthread_create(&peer, NULL, acknowledge, NULL);
	for (int i = 0; i < HASHERS; i++) {
		hashers[i] = WEFT_CREATE(WEFT_KIND_THREAD);
		WEFT_LABEL(hashers[i], "hasher");
		weft_await(main_id, hashers[i]);
		pthread_create(&threads[i], NULL, run_hasher, &hashers[i]);
	}
	run_loop();
	if (is("backlog"))
		return 0;
	for (int i = 0; i < HASHERS; i++)
		enqueue(main_id, -1);
	weft_idle(WEFT_IDLE_WAIT);
	for (int i = 0; i < HASHERS; i++)
		pthread_join(threads[i], NULL);
	weft_resume(main_id);
	send_number(to_peer[0], -1);
	pthread_join(peer, NULL);
	return 0;
}
