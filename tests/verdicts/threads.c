/* threads.c [deadlock|forgets]: two OS threads that log to two files, each under a mutex of its own, recorded by hand as
 * docs/instrument-api.md says.
 *
 * deadlock: they take both mutexes in different orders.  forgets: one thread returns early and does not unlock its mutex.
 * SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/record.h>

struct lock {
	pthread_mutex_t mutex;
	weft_id id;
};

static struct lock journal = {PTHREAD_MUTEX_INITIALIZER, 0}, ledger = {PTHREAD_MUTEX_INITIALIZER, 0};
static const char *fault = "";

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

static void *work(void *name)
{
	bool is_writer = !strcmp(name, "writer"), swapped = !strcmp(fault, "deadlock") && !is_writer;
	weft_id me = WEFT_CREATE(WEFT_KIND_THREAD);
	weft_label(me, name);
	weft_should_resolve(me);
	weft_run(me);
	for (int i = 0; i < 5; i++) {
		take(me, swapped ? &ledger : &journal);
		usleep(2000);
		take(me, swapped ? &journal : &ledger);
		usleep(100);
		give(me, &ledger);
		if (!strcmp(fault, "forgets") && is_writer && i == 2)
			break;
		give(me, &journal);
		usleep(500);
	}
	weft_resolve(me, me);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t writer, reader;
	fault = argc > 1 ? argv[1] : "";
	journal.id = WEFT_CREATE(WEFT_KIND_LOCK);
	WEFT_LABEL(journal.id, "journal");
	ledger.id = WEFT_CREATE(WEFT_KIND_LOCK);
	WEFT_LABEL(ledger.id, "ledger");
	pthread_create(&writer, NULL, work, "writer");
	pthread_create(&reader, NULL, work, "reader");
	if (*fault) {
		usleep(150000);
		exit(1);
	}
	pthread_join(writer, NULL);
	pthread_join(reader, NULL);
	return 0;
}
