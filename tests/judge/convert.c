/* convert FAULT SEED: converts pictures with plain POSIX threads: a reader finds pictures and queues them, workers scale them in
 * pieces, for which each needs one of a few big buffers, and a writer stores what is done.  At the end of a batch all workers
 * meet.  It knows nothing of weft; FAULT is one everyday mistake, or "none".
 *
 * SPDX-License-Identifier: ISC */

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PICTURES = 64, WORKERS = 4, BUFFERS = 2, BATCHES = 2 };

struct picture {
	int number;
	uint32_t sum;
	struct picture *next;
};

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct picture *first, **last;
	bool is_closed;
};

static const char *fault;
static struct queue to_scale, to_write;
static sem_t buffers;
static pthread_barrier_t meeting;
static pthread_mutex_t statistics = PTHREAD_MUTEX_INITIALIZER, album = PTHREAD_MUTEX_INITIALIZER;
static volatile bool is_ready;
static int done, failed;
static uint32_t album_sum;

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static void pause_us(long us)
{
	nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

static void queue_init(struct queue *q)
{
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->filled, NULL);
	q->last = &q->first;
}

static void put(struct queue *q, struct picture *p)
{
	p->next = NULL;
	pthread_mutex_lock(&q->lock);
	*q->last = p;
	q->last = &p->next;
	pthread_cond_signal(&q->filled);
	pthread_mutex_unlock(&q->lock);
}

static void close_queue(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->is_closed = true;
	/* Only one is signalled; it should be all. */
	if (is("shutdown") && q == &to_scale)
		pthread_cond_signal(&q->filled);
	else
		pthread_cond_broadcast(&q->filled);
	pthread_mutex_unlock(&q->lock);
}

/* NULL: it is closed. */
static struct picture *take(struct queue *q)
{
	if (is("lost") && q == &to_write && !q->first && done >= PICTURES / 2) {
		pause_us(60000); /* it looks without the lock, and is interrupted */
		pthread_mutex_lock(&q->lock);
		pthread_cond_wait(&q->filled, &q->lock);
	} else {
		pthread_mutex_lock(&q->lock);
	}
	while (!q->first && !q->is_closed)
		pthread_cond_wait(&q->filled, &q->lock);
	struct picture *p = q->first;
	if (p && !(q->first = p->next))
		q->last = &q->first;
	pthread_mutex_unlock(&q->lock);
	return p;
}

static void scale(struct picture *p)
{
	for (int i = 0; i < 200000; i++)
		p->sum = p->sum * 1664525 + 1013904223 + (uint32_t)i;
}

static void count(struct picture *p)
{
	bool other_way = is("deadlock") && p->number % 2;
	pthread_mutex_lock(other_way ? &album : &statistics);
	if (is("deadlock"))
		pause_us(300);
	pthread_mutex_lock(other_way ? &statistics : &album);
	done++;
	album_sum += p->sum;
	if (is("held") && p->number == 33)
		usleep(250000); /* the album is on a slow disk */
	if (is("unreleased") && p->number == 33)
		return;
	pthread_mutex_unlock(&album);
	pthread_mutex_unlock(&statistics);
}

static bool convert(struct picture *p)
{
	sem_wait(&buffers);
	scale(p);
	if (p->number % 16 == 9) { /* not a picture at all */
		failed++;
		if (!is("buffers"))
			sem_post(&buffers);
		return false;
	}
	if (is("null") && p->number == 33)
		((struct picture *volatile)NULL)->sum = p->sum;
	pause_us(500);
	sem_post(&buffers);
	count(p);
	return true;
}

static void *work(void *data)
{
	const int number = (int)(intptr_t)data;
	struct picture *p;
	int own = 0;
	while ((p = take(&to_scale))) {
		if (convert(p))
			put(&to_write, p);
		else
			free(p);
		if (is("meeting") && number == 2 && ++own == 5)
			return NULL; /* it gives up without telling the others */
	}
	pthread_barrier_wait(&meeting);
	return NULL;
}

static void *write_all(void *data)
{
	struct picture *p;
	if (is("busy"))
		while (!is_ready)
			sched_yield();
	while ((p = take(&to_write))) {
		pause_us(200);
		free(p);
	}
	return NULL;
}

static void *read_all(void *data)
{
	for (int i = 0; i < PICTURES; i++) {
		struct picture *p = calloc(1, sizeof *p);
		p->number = i;
		p->sum = (uint32_t)lrand48();
		pause_us(lrand48() % 2000);
		put(&to_scale, p);
	}
	pause_us(40000); /* another folder may come */
	is_ready = !is("busy");
	close_queue(&to_scale);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t reader, writer, workers[WORKERS];
	fault = argc > 1 ? argv[1] : "none";
	srand48(argc > 2 ? atol(argv[2]) : 1);
	queue_init(&to_scale);
	queue_init(&to_write);
	sem_init(&buffers, 0, BUFFERS);
	pthread_barrier_init(&meeting, NULL, WORKERS);
	pthread_create(&writer, NULL, write_all, NULL);
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&workers[i], NULL, work, (void *)(intptr_t)i);
	pthread_create(&reader, NULL, read_all, NULL);
	pthread_join(reader, NULL);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	close_queue(&to_write);
	pthread_join(writer, NULL);
	printf("%d pictures, %d failed\n", done, failed);
	return 0;
}
