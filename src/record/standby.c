/* standby.c: a program that is told from outside when to record (wire/standby.h).
 *
 * Whoever tells it writes into its memory; what has to be done then is done by the OS thread that makes the next event, before
 * that event.  So nothing waits, no OS thread and no descriptor is kept, and while nothing is recorded a call costs what it
 * always does.
 *
 * That next event may come from a signal handler in the middle of anything.  It leaves the matter to a later one where that is
 * an event of the same OS thread, or the definitions' lock; all else blocks signals.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/standby.h"

enum { MOST_TRACES = 100000 }; /* of one name */

static struct weft_standby *page;
static uint32_t busy; /* an OS thread does what was asked for */

/* What is recorded when nothing else is said. */
static struct weft_record_options wanted;
static char directory[4096];
static unsigned traces; /* tried so far, of that name */

static const struct weft__standby_host *host;

/* ---- The page ---- */

static void make_page(void)
{
	const size_t one = (size_t)sysconf(_SC_PAGESIZE), bytes = (sizeof *page + one - 1) / one * one;
	page = NULL;
	unsigned char *pages = mmap(NULL, bytes + 2 * one, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || mprotect(pages + one, bytes, PROT_READ | PROT_WRITE) < 0)
		return;
#ifdef MADV_WIPEONFORK
	madvise(pages + one, bytes, MADV_WIPEONFORK); /* a child has a page of its own, or none */
#endif
	struct weft_standby *p = (struct weft_standby *)(void *)(pages + one);
	p->self = (uintptr_t)p;
	p->gate = (uintptr_t)(host ? host->gate : &weft__mode);
	p->gate_on = host ? host->gate_on : weft__recording.use_counter ? WEFT__COUNTER_CLOCK : WEFT__CALLED_CLOCK;
	p->pointer_bytes = sizeof(void *);
	if (host) {
		p->waits_begin = (uintptr_t)host->waits_begin;
		p->waits_end = (uintptr_t)host->waits_end;
		__atomic_store_n(host->wakes, &p->wakes, __ATOMIC_RELEASE);
	}
	weft__threads_describe(p);
	__atomic_store_n(&page, p, __ATOMIC_RELEASE);
	memcpy(p->mark, WEFT_STANDBY_MARK, sizeof p->mark);
}

void weft__standby_note(bool is_on)
{
	struct weft_standby *p = page;
	if (!p)
		return;
	if (is_on)
		snprintf(p->answer.path, sizeof p->answer.path, "%s", weft__place_path());
	__atomic_store_n(&p->answer.is_on, is_on, __ATOMIC_RELEASE);
}

static void answer(const struct weft_standby_request *r, int status, const char *why)
{
	page->answer.status = status;
	snprintf(page->answer.why, sizeof page->answer.why, "%s", status < 0 ? why : "");
	__atomic_store_n(&page->answer.number, r->number, __ATOMIC_RELEASE);
}

/* What is asked for, whole and not answered. */
static bool is_asked(struct weft_standby_request *r)
{
	const uint64_t answered = __atomic_load_n(&page->answer.number, __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&page->request.number, __ATOMIC_ACQUIRE) == answered)
		return false;
	*r = *(const volatile struct weft_standby_request *)&page->request;
	return r->number != 0 && r->number != answered && r->check == weft__standby_check(r);
}

static void take_options(struct weft_record_options *o, const struct weft_standby_request *r)
{
	o->size_bytes = r->size_bytes ? r->size_bytes : o->size_bytes;
	o->packets = r->packets ? r->packets : o->packets;
	o->mode = r->mode ? (enum weft_record_mode)(r->mode - 1) : o->mode;
}

/* ---- What is done ---- */

/* Locked.  A trace of an earlier turn, or of a parent that was started likewise, stays: DIR.2 comes behind DIR. */
static int start_next(const struct weft_standby_request *r)
{
	char name[sizeof directory + 16];
	struct weft_record_options o = wanted;
	take_options(&o, r);
	o.directory = name;
	for (traces += !o.overwrite || !traces; traces < MOST_TRACES; traces++) {
		if (traces > 1)
			snprintf(name, sizeof name, "%s.%u", directory, traces);
		else
			snprintf(name, sizeof name, "%s", directory);
		int status = weft__start_locked(&o);
		if (status != WEFT_EEXIST && status != WEFT_EBUSY)
			return status;
	}
	return WEFT_EEXIST;
}

/* Locked, of an OS thread that is in no event. */
static void act(void)
{
	struct weft_standby_request r;
	if (!is_asked(&r))
		return;
	bool was_on = weft__target != WEFT__NOWHERE;
	if (was_on)
		weft__finish_locked();
	/* Until it has begun others need not come here. */
	__atomic_store_n(&weft__mode, WEFT__OFF, __ATOMIC_SEQ_CST);
	if (host && was_on)
		host->stopped(r.verb == WEFT_STANDBY_ON);
	if (r.verb == WEFT_STANDBY_OFF)
		answer(&r, WEFT_OK, "");
	else if (!host)
		answer(&r, start_next(&r), weft__start_error());
}

static bool is_in_event(const struct weft__stream *s)
{
	uint64_t next = __atomic_load_n(&s->hot.next, __ATOMIC_RELAXED);
	return &s->hot != &weft__nobody &&
	       (s->in_slow || s->switching || ((uint32_t)next != WEFT__CLOSED && next != s->hot.published));
}

static void look(void)
{
	struct weft__stream *s = (struct weft__stream *)(void *)weft__stream;
	struct weft_standby_request r;
	if (is_in_event(s) || weft__threads_locked_here())
		return;
	if (!is_asked(&r)) {
		/* The request was for another OS thread, and has been met, or never came whole. */
		if (&s->hot != &weft__nobody && s->storage.base && !__atomic_load_n(&s->hot.limit, __ATOMIC_RELAXED))
			weft__stream_open(s);
		return;
	}
	if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		return;
	weft__threads_lock();
	/* Who was interrupted may have that one. */
	bool is_free = !__atomic_load_n(&weft__recording.define_lock, __ATOMIC_ACQUIRE);
	if (is_free)
		act();
	bool is_file = is_free && weft__target == WEFT__DIRECTORY;
	weft__threads_unlock();
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	if (is_file)
		weft__guard_this_thread();
}

static void stand_by(void)
{
	make_page();
	if (page)
		weft__look = look;
}

bool weft__standby_begin(const struct weft_record_options *options)
{
	/* The program may go elsewhere before it is asked. */
	size_t n = 0;
	if (options->directory[0] != '/') {
		if (!getcwd(directory, sizeof directory - 1) || directory[0] != '/')
			return false;
		n = strlen(directory);
		directory[n++] = '/';
	}
	if (strlen(options->directory) >= sizeof directory - n)
		return false;
	strcpy(directory + n, options->directory);
	wanted = *options;
	stand_by();
	return page != NULL;
}

void weft__standby_leave(void)
{
	if (page)
		page->mark[0] = 0;
}

void weft__standby_child(void)
{
	busy = 0;
	traces = 0;
	if (page)
		stand_by();
}

/* ---- Programs that do not know weft ---- */

bool weft__standby_as(const struct weft__standby_host *by)
{
	host = by;
	stand_by();
	return page != NULL;
}

bool weft__standby_asked(struct weft_record_options *options, unsigned *stacks)
{
	struct weft_standby_request r;
	if (!page || !is_asked(&r) || r.verb != WEFT_STANDBY_ON)
		return false;
	take_options(options, &r);
	if (r.stacks)
		*stacks = r.stacks - 1;
	return true;
}

void weft__standby_answer(int status, const char *why)
{
	struct weft_standby_request r;
	if (page && is_asked(&r))
		answer(&r, status, why);
}
