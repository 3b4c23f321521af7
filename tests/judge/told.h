/* told.h: records pending promises again for a ring, and locks, as docs/instrument-api.md describes.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TESTS_JUDGE_TOLD_H
#define WEFT_TESTS_JUDGE_TOLD_H

#include <pthread.h>
#include <stdio.h>
#include <weft/record.h>

/* A promise, and the values with which it is recorded again while it is pending. */
struct told {
	weft_id id;
	enum weft_kind kind;
	struct weft_record_site *site;
	uint64_t since;
	char label[32];
};

struct lock {
	pthread_mutex_t mutex;
	struct told told;
	_Atomic(pthread_t) owner; /* the OS thread that has it, or 0 */
	weft_id holder;           /* while it has an owner */
};

static void begin_at(struct told *p, enum weft_kind kind, struct weft_record_site *site, const char *what, int number)
{
	*p = (struct told){weft_create(weft_running(), kind, site), kind, site, weft_now(), ""};
	snprintf(p->label, sizeof p->label, what, number);
	weft_label(p->id, p->label);
}
#define begin(p, kind, what, number) begin_at(p, kind, WEFT_SITE(), what, number)

static void tell(struct told *p)
{
	p->id = weft_pending(WEFT_SYSTEM_ID, p->id, p->kind, p->site, p->since, p->label);
}

/* Only the OS thread that has a lock knows for sure that it still has it. */
static void tell_held(struct lock *l)
{
	if (l->owner == pthread_self())
		weft_still_awaits(l->told.id, l->holder);
}

static void take(weft_id who, struct lock *l)
{
	if (pthread_mutex_trylock(&l->mutex)) {
		weft_await(who, l->told.id);
		weft_idle(WEFT_IDLE_WAIT);
		pthread_mutex_lock(&l->mutex);
		weft_resume(who);
		weft_awaits_no_more(who, l->told.id);
	}
	weft_hold(who, l->told.id);
	l->holder = who;
	l->owner = pthread_self();
}

static void give(weft_id who, struct lock *l)
{
	l->owner = 0;
	weft_release(who, l->told.id);
	pthread_mutex_unlock(&l->mutex);
}

/* A condition is a promise that never ends: who waits for it awaits it, who signals it says so. */
static void wait_for(weft_id who, pthread_cond_t *condition, weft_id id, struct lock *l)
{
	weft_await(who, id);
	l->owner = 0;
	weft_release(who, l->told.id);
	weft_idle(WEFT_IDLE_WAIT);
	pthread_cond_wait(condition, &l->mutex);
	weft_resume(who);
	weft_hold(who, l->told.id);
	l->holder = who;
	l->owner = pthread_self();
	weft_awaits_no_more(who, id);
}

#endif
