/* syncd FAULT SEED: a daemon that keeps files the same here and at a peer, on plain epoll: a loop cuts files into blocks, two OS
 * threads hash them, the loop uploads them, and the peer (an OS thread that is not recorded) acknowledges each.  It records
 * files, blocks, locks and a queue as docs/instrument-api.md describes.  FAULT is one everyday mistake, or "none".
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

#include "told.h"

enum { FILES = 24, BLOCKS = 120, AT_ONCE = 6, HASHERS = 2 };

struct file {
	struct told told;
	int blocks_left;
};

struct block {
	struct told told, hash, upload;
	struct file *file;
	enum { NOT_BEGUN, IS_HASHED, IS_UPLOADED, IS_DONE } state;
};

struct hasher {
	struct told told;
	struct block *block; /* that it hashes, or NULL */
};

static const char *fault;
static struct file files[FILES];
static struct block blocks[BLOCKS];
static struct lock index_lock = {.mutex = PTHREAD_MUTEX_INITIALIZER}, journal_lock = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static struct lock queue_lock = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static pthread_cond_t grew = PTHREAD_COND_INITIALIZER;
static struct told queue_grew, main_told;
static struct hasher hashers[HASHERS];
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

/* ---- Lists of pending promises, as in docs/instrument-api.md ---- */

static void tell_all_held(void)
{
	tell_held(&index_lock);
	tell_held(&journal_lock);
	tell_held(&queue_lock);
}

static void tell_block(struct block *b)
{
	struct told *awaited = b->state == IS_HASHED ? &b->hash : &b->upload;
	if (b->state == NOT_BEGUN || b->state == IS_DONE)
		return;
	tell(&b->told);
	tell(awaited);
	weft_still_awaits(b->told.id, awaited->id);
	weft_still_awaits(b->file->told.id, b->told.id);
}

static uint64_t list_loop(void *nothing, uint64_t cursor, unsigned budget)
{
	struct told *always[] = {&main_told, &index_lock.told, &journal_lock.told, &queue_lock.told, &queue_grew};
	enum { ALWAYS = sizeof always / sizeof *always };
	if (cursor == 0)
		tell_all_held();
	for (; cursor < ALWAYS + FILES + BLOCKS; cursor++) {
		if (!budget--)
			return cursor;
		struct file *file = &files[(cursor - ALWAYS) % FILES];
		if (cursor < ALWAYS)
			tell(always[cursor]);
		else if (cursor >= ALWAYS + FILES)
			tell_block(&blocks[cursor - ALWAYS - FILES]);
		else if (file->blocks_left > 0)
			tell(&file->told), weft_should_resolve(file->told.id);
	}
	return 0;
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

static void hash(struct hasher *h, int number)
{
	struct block *b = h->block = &blocks[number];
	weft_run(b->hash.id);
	compute_for_us(is("backlog") ? 4000 : 300);
	bool other_way = is("deadlock") && h == &hashers[1];
	take(b->hash.id, other_way ? &journal_lock : &index_lock);
	if (is("deadlock"))
		usleep(3000);
	take(b->hash.id, other_way ? &index_lock : &journal_lock);
	give(b->hash.id, &journal_lock);
	if (is("unreleased") && number == 37)
		weft_note(b->hash.id, "block is empty"); /* and the lock stays locked */
	else
		give(b->hash.id, &index_lock);
	h->block = NULL;
	weft_resolve(b->hash.id, b->hash.id);
	weft_run(h->told.id);
	send_number(hashed[1], number);
}

static uint64_t list_hasher(void *data, uint64_t cursor, unsigned budget)
{
	struct hasher *h = data;
	tell(&h->told);
	if (h->block)
		tell(&h->block->hash);
	tell_all_held();
	return 0;
}

static void *run_hasher(void *data)
{
	struct hasher *h = data;
	const weft_id self = h->told.id;
	weft_list_pending(list_hasher, h);
	weft_run(self);
	take(self, &queue_lock);
	for (;;) {
		while (queue_begin == queue_end) {
			if (is("wakeup") && queue_begin > 40) { /* looks again, without the lock */
				give(self, &queue_lock);
				usleep(8000);
				take(self, &queue_lock);
			}
			wait_for(self, &grew, queue_grew.id, &queue_lock);
		}
		int number = queue[queue_begin++];
		if (number < 0)
			break;
		weft_counter_add(self, &queue_length, -1);
		give(self, &queue_lock);
		hash(h, number);
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
	weft_signal_only(who, queue_grew.id);
	pthread_cond_signal(&grew);
	give(who, &queue_lock);
}

/* ---- The loop ---- */

static void begin_block(void)
{
	struct block *b = &blocks[begun];
	b->file = &files[begun % FILES];
	weft_run(b->file->told.id);
	begin(&b->told, WEFT_KIND_TASK, "block %d", begun);
	weft_await(b->file->told.id, b->told.id);
	weft_run(b->told.id);
	if (is("stall") && begun == 37)
		compute_for_us(120000);
	begin(&b->hash, WEFT_KIND_WORK, "hash", 0);
	weft_await(b->told.id, b->hash.id);
	b->state = IS_HASHED;
	in_work++;
	enqueue(b->told.id, begun++);
}

static void on_hashed(struct block *b)
{
	weft_read(b->told.id, b->hash.id);
	begin(&b->upload, WEFT_KIND_REQUEST, "upload", 0);
	weft_await(b->told.id, b->upload.id);
	b->state = IS_UPLOADED;
	send_number(to_peer[0], b - blocks);
}

static void on_acknowledged(struct block *b)
{
	weft_resolve(WEFT_SYSTEM_ID, b->upload.id);
	weft_read(b->told.id, b->upload.id);
	b->state = IS_DONE;
	weft_resolve(b->told.id, b->told.id);
	weft_read(b->file->told.id, b->told.id);
	if (--b->file->blocks_left == 0)
		weft_resolve(b->file->told.id, b->file->told.id);
	in_work--;
	done++;
	if (is("late-use") && b == &blocks[37])
		weft_await(b->told.id, blocks[38].told.id), weft_run(b->told.id); /* it has ended, and goes on */
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
		weft_resume(main_told.id);
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
	begin(&main_told, WEFT_KIND_THREAD, "main", 0);
	weft_run(main_told.id);
	begin(&index_lock.told, WEFT_KIND_LOCK, "index", 0);
	begin(&journal_lock.told, WEFT_KIND_LOCK, "journal", 0);
	begin(&queue_lock.told, WEFT_KIND_LOCK, "queue", 0);
	begin(&queue_grew, WEFT_KIND_CONDITION, "queue grew", 0);
	for (int i = 0; i < FILES; i++) {
		begin(&files[i].told, WEFT_KIND_REQUEST, "synchronize file %d", i);
		files[i].blocks_left = BLOCKS / FILES;
		weft_should_resolve(files[i].told.id);
	}
	weft_list_pending(list_loop, NULL);
	pthread_t peer, threads[HASHERS];
	pthread_create(&peer, NULL, acknowledge, NULL);
	for (int i = 0; i < HASHERS; i++) {
		begin(&hashers[i].told, WEFT_KIND_THREAD, "hasher", 0);
		weft_await(main_told.id, hashers[i].told.id);
		pthread_create(&threads[i], NULL, run_hasher, &hashers[i]);
	}
	run_loop();
	if (is("backlog"))
		return 0;
	for (int i = 0; i < HASHERS; i++)
		enqueue(main_told.id, -1);
	weft_idle(WEFT_IDLE_WAIT);
	for (int i = 0; i < HASHERS; i++)
		pthread_join(threads[i], NULL);
	weft_resume(main_told.id);
	send_number(to_peer[0], -1);
	pthread_join(peer, NULL);
	return 0;
}
