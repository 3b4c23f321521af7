/* define.c: the definitions stream: texts, sites and OS threads, which a ring must not forget.
 *
 * Every OS thread writes it, so there is a lock; who does not get it at once goes on without: the event then has its text in
 * itself.  SPDX-License-Identifier: ISC */
#include "record/core.h"

bool weft__define_lock(unsigned tries)
{
	while (tries--)
		if (!__atomic_exchange_n(&weft__recording.define_lock, 1, __ATOMIC_ACQUIRE))
			return true;
	return false;
}

void weft__define_unlock(void)
{
	__atomic_store_n(&weft__recording.define_lock, 0, __ATOMIC_RELEASE);
}

/* The lock is taken. */
static bool write_definition(struct weft_wire_definition *d)
{
	struct weft__stream *s = &weft__recording.definitions;
	if (!s->storage.base || s->is_broken)
		return false;
	size_t most = s->storage.packet_bytes - sizeof(struct weft_packet_header), size = weft__definition_bytes(d);
	if (size > most) {
		uint32_t keep = (uint32_t)(most - (size - d->text_bytes - d->function_bytes)) / 2;
		d->text_bytes = d->text_bytes < keep ? d->text_bytes : keep;
		d->function_bytes = d->function_bytes < keep ? d->function_bytes : keep;
		size = weft__definition_bytes(d);
	}
	if ((uint32_t)s->hot.next + size > s->soft_end) {
		struct weft__storage *storage = &s->storage;
		uint64_t events = (uint32_t)((s->hot.next >> 32) - (s->begin_next >> 32));
		s->sequence++;
		s->events_before += events;
		if (!storage->grow || !storage->grow(s)) {
			s->sequence--;
			s->events_before -= events;
			return false;
		}
		weft__stream_begin(s);
	}
	uint64_t time = weft__time(), begin = s->hot.next;
	s->hot.last = (int64_t)(time - s->hot.last) < 0 ? s->hot.last : time;
	weft__definition_write(s->hot.packet + (uint32_t)begin, d, s->hot.last);
	s->hot.next = begin + ((uint64_t)1 << 32 | size);
	struct weft__place place = {.stream = &s->hot, .packet = s->hot.packet, .begin = begin, .end = s->hot.next};
	weft__publish(&place);
	return true;
}

static uint32_t length(const char *text)
{
	size_t n = __builtin_strlen(text);
	return n < 65536 ? (uint32_t)n : 65536;
}

/* The key at *key in this recording, made by writing the definition if there is none yet. */
static uint16_t intern(weft_word *key, struct weft_wire_definition *d)
{
	uint64_t known = __atomic_load_n(key, __ATOMIC_RELAXED);
	if (known >> 16 == weft__recording.generation)
		return (uint16_t)known;
	uint16_t made = 0;
	if (!weft__define_lock(1))
		return 0;
	known = __atomic_load_n(key, __ATOMIC_RELAXED);
	if (known >> 16 == weft__recording.generation) {
		made = (uint16_t)known;
	} else if (weft__recording.next_key <= UINT16_MAX) {
		d->key = (uint16_t)weft__recording.next_key;
		if (write_definition(d)) {
			made = d->key;
			weft__recording.next_key++;
			__atomic_store_n(key, weft__recording.generation << 16 | made, __ATOMIC_RELAXED);
		}
	}
	weft__define_unlock();
	return made;
}

uint16_t weft__intern_text(struct weft_record_text *text)
{
	struct weft_wire_definition d = {.what = WEFT_DEFINE_STRING, .text = text->text, .text_bytes = length(text->text)};
	return intern(&text->key, &d);
}

uint16_t weft__intern_site(struct weft_record_site *site)
{
	struct weft_wire_definition d = {.what = WEFT_DEFINE_SITE,
	    .line = site->line,
	    .text = site->file,
	    .text_bytes = length(site->file),
	    .function = site->function,
	    .function_bytes = length(site->function)};
	return intern(&site->key, &d);
}

void weft__define_thread(const struct weft__stream *s)
{
	uint32_t n = 0;
	while (n < sizeof s->thread_name && s->thread_name[n])
		n++;
	struct weft_wire_definition d = {
	    .what = WEFT_DEFINE_THREAD, .stream = s->instance, .tid = s->tid, .text = s->thread_name, .text_bytes = n};
	if (weft__define_lock(10000)) {
		write_definition(&d);
		weft__define_unlock();
	}
}
