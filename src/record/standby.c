/* standby.c: lets another process start and stop the recording of this program (wire/standby.h).
 *
 * The other process writes a request into this program's memory.  The OS thread that makes the next event does the requested
 * work before that event.  So standby needs no waiting, no OS thread and no descriptor, and while nothing records, a call costs
 * the usual load and branch.
 *
 * The next event may come from a signal handler that interrupted any code.  If the handler interrupted an event of the same OS
 * thread, or a holder of the definitions' lock, it leaves the work to a later event.  All other critical sections of the
 * recorder block signals.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/standby.h"

enum { MAX_TRACES = 100000 }; /* of one name */

static struct weft_standby *page;
static uint32_t busy; /* 1 while an OS thread handles a request, else 0 */

/* Options of a recording whose request sets no others. */
static struct weft_record_options default_options;
static char directory[4096];
static unsigned traces_tried; /* names tried so far */

static const struct weft__standby_host *host;

/* Number of the request that the host carries out; 0: none.  The events of the recording that the host has started must not
 * take the request, which has no answer yet, for a new one. */
static uint64_t taken;

/* ---- The page ---- */

static void make_page(void)
{
	const size_t one = (size_t)sysconf(_SC_PAGESIZE), bytes = (sizeof *page + one - 1) / one * one;
	page = NULL;
	unsigned char *pages = mmap(NULL, bytes + 2 * one, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || mprotect(pages + one, bytes, PROT_READ | PROT_WRITE) < 0)
		return;
#ifdef MADV_WIPEONFORK
	madvise(pages + one, bytes, MADV_WIPEONFORK); /* a child process has a standby page of its own, or none */
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

void weft__standby_set_recording(bool is_on)
{
	struct weft_standby *p = page;
	if (!p)
		return;
	if (is_on)
		snprintf(p->answer.path, sizeof p->answer.path, "%s", weft__trace_dir_path());
	__atomic_store_n(&p->answer.is_on, is_on, __ATOMIC_RELEASE);
}

static void write_answer(uint64_t number, int status, const char *why)
{
	page->answer.status = status;
	snprintf(page->answer.why, sizeof page->answer.why, "%s", status < 0 ? why : "");
	__atomic_store_n(&page->answer.number, number, __ATOMIC_RELEASE);
}

/* Returns whether there is a complete request that has no answer yet, and that the host does not carry out already. */
static bool has_pending_request(struct weft_standby_request *r)
{
	const uint64_t answered = __atomic_load_n(&page->answer.number, __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&page->request.number, __ATOMIC_ACQUIRE) == answered)
		return false;
	*r = *(const volatile struct weft_standby_request *)&page->request;
	return r->number != 0 && r->number != answered && r->check == weft__standby_check(r) &&
	       r->number != __atomic_load_n(&taken, __ATOMIC_ACQUIRE);
}

static void apply_request_options(struct weft_record_options *o, const struct weft_standby_request *r)
{
	o->size_bytes = r->size_bytes ? r->size_bytes : o->size_bytes;
	o->packets = r->packets ? r->packets : o->packets;
	o->mode = r->mode ? (enum weft_record_mode)(r->mode - 1) : o->mode;
}

/* ---- Requests ---- */

/* Starts the next trace of this program; the caller holds the lock.  Earlier traces stay, also those of a parent process: the
 * directory DIR.2 follows DIR. */
static int start_next_trace(const struct weft_standby_request *r)
{
	char name[sizeof directory + 16];
	struct weft_record_options o = default_options;
	apply_request_options(&o, r);
	o.directory = name;
	for (traces_tried += !o.overwrite || !traces_tried; traces_tried < MAX_TRACES; traces_tried++) {
		if (traces_tried > 1)
			snprintf(name, sizeof name, "%s.%u", directory, traces_tried);
		else
			snprintf(name, sizeof name, "%s", directory);
		int status = weft__start_locked(&o);
		if (status != WEFT_EEXIST && status != WEFT_EBUSY)
			return status;
	}
	return WEFT_EEXIST;
}

/* Handles the request; the caller holds the lock and is not in an event. */
static void handle_request(void)
{
	struct weft_standby_request r;
	if (!has_pending_request(&r))
		return;
	bool was_on = weft__target != WEFT__TARGET_NONE;
	if (was_on)
		weft__stop_locked();
	/* Other threads are kept out of events until the recording has started. */
	__atomic_store_n(&weft__mode, WEFT__OFF, __ATOMIC_SEQ_CST);
	if (host && was_on)
		host->stopped(r.verb == WEFT_STANDBY_ON);
	if (r.verb == WEFT_STANDBY_OFF)
		write_answer(r.number, WEFT_OK, "");
	else if (!host)
		write_answer(r.number, start_next_trace(&r), weft__start_error());
}

static bool is_in_event(const struct weft__stream *s)
{
	uint64_t next = __atomic_load_n(&s->hot.next, __ATOMIC_RELAXED);
	return &s->hot != &weft__no_stream &&
	       (s->in_slow || s->switching || ((uint32_t)next != WEFT__CLOSED && next != s->hot.published));
}

static void poll_request(void)
{
	struct weft__stream *s = (struct weft__stream *)(void *)weft__stream;
	struct weft_standby_request r;
	if (is_in_event(s) || weft__threads_locked_here())
		return;
	if (!has_pending_request(&r)) {
		/* The request was handled by another OS thread, or was never complete. */
		if (&s->hot != &weft__no_stream && s->storage.base && !__atomic_load_n(&s->hot.limit, __ATOMIC_RELAXED))
			weft__stream_open(s);
		return;
	}
	if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		return;
	weft__threads_lock();
	/* The interrupted code may hold the definitions' lock, so it is only tested here. */
	bool is_free = !__atomic_load_n(&weft__recording.define_lock, __ATOMIC_ACQUIRE);
	if (is_free)
		handle_request();
	bool is_file = is_free && weft__target == WEFT__TARGET_DIRECTORY;
	weft__threads_unlock();
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	if (is_file)
		weft__sigbus_unblock();
}

static void enter_standby(void)
{
	make_page();
	if (page)
		weft__slow_path_hook = poll_request;
}

bool weft__standby_enable(const struct weft_record_options *options)
{
	/* The path is made absolute, because the program may change its directory before the request. */
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
	default_options = *options;
	enter_standby();
	return page != NULL;
}

void weft__standby_disable(void)
{
	if (page)
		page->mark[0] = 0;
}

void weft__standby_after_fork(void)
{
	busy = 0;
	taken = 0;
	traces_tried = 0;
	if (page)
		enter_standby();
}

/* ---- Programs without calls of weft ---- */

bool weft__standby_as(const struct weft__standby_host *by)
{
	host = by;
	enter_standby();
	return page != NULL;
}

bool weft__standby_asked(struct weft_record_options *options, unsigned *stacks)
{
	struct weft_standby_request r;
	if (!page || !has_pending_request(&r) || r.verb != WEFT_STANDBY_ON)
		return false;
	apply_request_options(options, &r);
	if (r.stacks)
		*stacks = r.stacks - 1;
	__atomic_store_n(&taken, r.number, __ATOMIC_RELEASE);
	return true;
}

void weft__standby_answer(int status, const char *why)
{
	const uint64_t number = __atomic_load_n(&taken, __ATOMIC_ACQUIRE);
	if (page && number)
		write_answer(number, status, why);
	__atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
}
