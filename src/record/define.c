/* define.c: writes the definitions stream, with texts, sites and OS threads, which a ring must not overwrite.
 *
 * Every OS thread writes into the definitions stream, under a lock.  A thread that does not get the lock at once writes the text
 * into its event instead.  A new key is also repeated, as an event, in the stream that uses the key first.  So a trace whose
 * definitions are truncated or lost has names as far as its streams reach.  SPDX-License-Identifier: ISC */
#include "record/core.h"

/* If a text gets no key, the text is written into the event; but if a site or place gets no key, it is lost.  So a thread tries
 * for about 10 us to define a site: it defines a key only once, and holds the lock for about 1 us unless it loses its CPU. */
enum { TEXT_TRIES = 1, SITE_TRIES = 1000 };

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

unsigned char *weft__log_reserve(struct weft__stream *s, size_t size)
{
	if ((uint32_t)s->hot.next + size > s->soft_end) {
		struct weft__storage *storage = &s->storage;
		uint64_t events = (uint32_t)((s->hot.next >> 32) - (s->begin_next >> 32));
		s->sequence++;
		s->events_before += events;
		if (!storage->grow || !storage->grow(s)) {
			s->sequence--;
			s->events_before -= events;
			return NULL;
		}
		weft__stream_begin(s);
	}
	const uint64_t time = weft__time();
	s->hot.last = (int64_t)(time - s->hot.last) < 0 ? s->hot.last : time;
	return s->hot.packet + (uint32_t)s->hot.next;
}

void weft__log_publish(struct weft__stream *s, size_t size)
{
	const uint64_t begin = s->hot.next;
	s->hot.next = begin + ((uint64_t)1 << 32 | size);
	struct weft__place place = {.stream = &s->hot, .packet = s->hot.packet, .begin = begin, .end = s->hot.next};
	weft__publish(&place);
}

/* Writes a definition; the caller holds the lock. */
static bool write_definition(struct weft_wire_definition *d)
{
	struct weft__stream *s = &weft__recording.definitions;
	if (!s->storage.base || s->is_broken)
		return false;
	size_t most = s->storage.packet_bytes - sizeof(struct weft_packet_header), size = weft__definition_bytes(d);
	if (size > most) {
		uint32_t keep = (uint32_t)(most - (size - d->text_bytes - d->second_bytes)) / 2;
		d->text_bytes = d->text_bytes < keep ? d->text_bytes : keep;
		d->second_bytes = d->second_bytes < keep ? d->second_bytes : keep;
		size = weft__definition_bytes(d);
	}
	unsigned char *at = weft__log_reserve(s, size);
	if (!at)
		return false;
	weft__definition_write(at, d, s->hot.last);
	weft__log_publish(s, size);
	return true;
}

static uint32_t text_length(const char *text)
{
	size_t n = __builtin_strlen(text);
	return n < 65536 ? (uint32_t)n : 65536;
}

/* Returns the key in the current recording; 0 if there is none. */
static uint16_t current_key(const weft_word *key)
{
	uint64_t known = __atomic_load_n(key, __ATOMIC_ACQUIRE);
	return known >> 16 == weft__recording.generation ? (uint16_t)known : 0;
}

enum { MAX_BUILD_ID_BYTES = 64, MAX_PATH_BYTES = 2048 };

static uint32_t append_line(char *to, uint32_t at, const char *text, uint32_t bytes)
{
	__builtin_memcpy(to + at, text, bytes);
	to[at + bytes] = '\n';
	return at + bytes + 1;
}

static uint32_t append_hex_line(char *to, uint32_t at, uint64_t number)
{
	char digits[16];
	uint32_t n = sizeof digits;
	do
		digits[--n] = "0123456789abcdef"[number & 15];
	while (number >>= 4);
	return append_line(to, at, digits + n, sizeof digits - n);
}

/* Repeats a definition in the stream that uses it, if there is one and the stream's packet has space.  In a caller's buffer all
 * streams share one memory block, so definitions are not lost alone and need no repetition.  The caller holds the definitions'
 * lock. */
static void repeat_definition(struct weft__stream *s, const struct weft_wire_definition *d)
{
	static char text[MAX_PATH_BYTES + 2 * MAX_BUILD_ID_BYTES + 64];
	uint32_t n = 0;
	if (!s || (size_t)d->text_bytes + d->second_bytes + 64 > sizeof text || !(s->storage.grow || s->storage.extend))
		return;
	n = append_hex_line(text, n, (uint64_t)d->what);
	switch (d->what) {
	case WEFT_DEFINE_SITE: n = append_hex_line(text, n, d->line); break;
	case WEFT_DEFINE_PLACE: n = append_hex_line(text, append_hex_line(text, n, d->module), d->address); break;
	case WEFT_DEFINE_MODULE: n = append_hex_line(text, append_hex_line(text, n, d->address), d->size); break;
	default: break;
	}
	if (d->what == WEFT_DEFINE_SITE || d->what == WEFT_DEFINE_MODULE)
		n = append_line(text, n, d->second, d->second_bytes);
	n = append_line(text, n, d->text, d->text_bytes);
	struct weft_wire_event event = {.op = WEFT_OP_DETAIL,
	    .kind = WEFT_DETAIL_DEFINITION,
	    .a = WEFT_SYSTEM_ID,
	    .value = d->key,
	    .text = text,
	    .text_bytes = n - 1};
	const uint64_t next = __atomic_load_n(&s->hot.next, __ATOMIC_RELAXED);
	const size_t bytes = weft__event_payload(&event, weft__event_id(&event)) + WEFT_EXTENDED_HEADER;
	/* A repetition is worth neither a new packet nor a lost event, and a nested signal handler has little space. */
	if (next == __atomic_load_n(&s->hot.published, __ATOMIC_RELAXED) && !s->switching &&
	    (uint32_t)next + bytes <= s->soft_end)
		weft__record(s, &event);
}

/* Writes the definition with the next free key, and stores the key in *key.  The caller holds the definitions' lock. */
static uint16_t add_key(struct weft__stream *s, weft_word *key, struct weft_wire_definition *d)
{
	d->key = (uint16_t)weft__recording.next_key;
	if (weft__recording.next_key > UINT16_MAX || !write_definition(d))
		return 0;
	weft__recording.next_key++;
	__atomic_store_n(key, weft__recording.generation << 16 | d->key, __ATOMIC_RELEASE);
	repeat_definition(s, d);
	return d->key;
}

/* Returns the key at *key in the current recording; if there is none yet, writes the definition. */
static uint16_t intern_key(struct weft__stream *s, weft_word *key, struct weft_wire_definition *d, unsigned tries)
{
	uint16_t known = current_key(key);
	if (known || !weft__define_lock(tries))
		return known;
	known = current_key(key);
	uint16_t made = known ? known : add_key(s, key, d);
	weft__define_unlock();
	return made;
}

uint16_t weft__intern_text(struct weft__stream *s, struct weft_record_text *text)
{
	struct weft_wire_definition d = {.what = WEFT_DEFINE_STRING, .text = text->text, .text_bytes = text_length(text->text)};
	return intern_key(s, &text->key, &d, TEXT_TRIES);
}

uint16_t weft__intern_site(struct weft__stream *s, struct weft_record_site *site)
{
	struct weft_wire_definition d = {.what = WEFT_DEFINE_SITE,
	    .line = site->line,
	    .text = site->file,
	    .text_bytes = text_length(site->file),
	    .second = site->function,
	    .second_bytes = text_length(site->function)};
	return intern_key(s, &site->key, &d, SITE_TRIES);
}

/* ---- Places ---- */

enum { MAX_PROBES = 16 };
#if __STDC_HOSTED__
enum { MAX_MODULES = 1024, CALLER_SLOTS = 8192 };
#else
enum { MAX_MODULES = 1, CALLER_SLOTS = 256 };
#endif

/* Modules of this recording; the key of a module is its number + 1.  Protected by the lock. */
static struct {
	uint64_t tags[MAX_MODULES];
	uint64_t generation;
	unsigned count;
} modules;

/* Return addresses of stacks, in a hash table.  The tag identifies the file at an address, because after an unload another file
 * may have the address.  An entry is written under the lock; its key is 0 during the write, and readers load the key first and
 * last. */
static struct {
	weft_word key, address, tag;
} callers[CALLER_SLOTS];

static uint64_t mix_hash(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 32;
}

/* Hashes the properties that distinguish two files at one address, or one file at two addresses. */
static uint64_t module_tag(const struct weft__module *m)
{
	uint64_t hash = mix_hash(m->address, m->size);
	for (uint32_t i = 0; i < m->build_id_bytes; i++)
		hash = mix_hash(hash, m->build_id[i]);
	for (const char *c = m->path; !m->build_id_bytes && *c; c++)
		hash = mix_hash(hash, (unsigned char)*c);
	return hash;
}

/* Returns the key of a module, and defines the module if it is new.  The caller holds the definitions' lock. */
static uint16_t define_module(struct weft__stream *s, const struct weft__module *m, uint64_t tag)
{
	if (modules.generation != weft__recording.generation)
		modules.count = 0;
	modules.generation = weft__recording.generation;
	for (unsigned i = 0; i < modules.count; i++)
		if (modules.tags[i] == tag)
			return (uint16_t)(i + 1);
	if (modules.count == MAX_MODULES)
		return 0;
	static char path[MAX_PATH_BYTES], id[2 * MAX_BUILD_ID_BYTES];
	uint32_t n = 0, digits = 0;
	for (const char *c = m->folder; *c && n < MAX_PATH_BYTES - 1; c++)
		path[n++] = *c;
	if (n)
		path[n++] = '/';
	for (const char *c = m->path; *c && n < MAX_PATH_BYTES; c++)
		path[n++] = *c;
	for (uint32_t i = 0; i < m->build_id_bytes && i < MAX_BUILD_ID_BYTES; i++) {
		id[digits++] = "0123456789abcdef"[m->build_id[i] >> 4];
		id[digits++] = "0123456789abcdef"[m->build_id[i] & 15];
	}
	struct weft_wire_definition d = {.what = WEFT_DEFINE_MODULE,
	    .key = (uint16_t)(modules.count + 1),
	    .address = m->address,
	    .size = m->size,
	    .text = path,
	    .text_bytes = n,
	    .second = id,
	    .second_bytes = digits};
	if (!write_definition(&d))
		return 0;
	modules.tags[modules.count++] = tag;
	repeat_definition(s, &d);
	return d.key;
}

/* Defines the place (call site) of an address; m is the address's module, or NULL.  The caller holds the definitions' lock. */
static uint16_t define_place(
    struct weft__stream *s, weft_word *key, const void *address, const struct weft__module *m, uint64_t tag)
{
	struct weft_wire_definition d = {.what = WEFT_DEFINE_PLACE, .module = m ? define_module(s, m, tag) : 0};
	d.address = (uintptr_t)address - (d.module ? m->address : 0);
	return add_key(s, key, &d);
}

uint16_t weft__intern_place(struct weft__stream *s, struct weft_record_place *place)
{
	uint16_t known = current_key(&place->key);
	struct weft__module found;
	if (known)
		return known;
	const struct weft__module *m = weft__find_module(&found, place->address) ? &found : NULL;
	if (!weft__define_lock(SITE_TRIES))
		return 0;
	known = current_key(&place->key);
	if (!known)
		known = define_place(s, &place->key, place->address, m, m ? module_tag(m) : 0);
	weft__define_unlock();
	return known;
}

uint16_t weft__intern_address(struct weft__stream *s, const void *address)
{
	struct weft__module found;
	const struct weft__module *m = weft__find_module(&found, address) ? &found : NULL;
	const uint64_t tag = m ? module_tag(m) : 0, wanted = (uintptr_t)address, hash = mix_hash(0, wanted);
	for (unsigned i = 0; i < MAX_PROBES; i++) {
		const unsigned at = (unsigned)(hash + i) % CALLER_SLOTS;
		const uint16_t known = current_key(&callers[at].key);
		const bool is_it = __atomic_load_n(&callers[at].address, __ATOMIC_RELAXED) == wanted &&
				   __atomic_load_n(&callers[at].tag, __ATOMIC_ACQUIRE) == tag;
		if (is_it && known && known == current_key(&callers[at].key))
			return known;
		const uint64_t here = __atomic_load_n(&callers[at].address, __ATOMIC_RELAXED);
		if (known && here != wanted)
			continue;
		if (!weft__define_lock(SITE_TRIES))
			return 0;
		uint16_t made = 0;
		/* Another thread may have defined the address meanwhile. */
		if (known == current_key(&callers[at].key)) {
			__atomic_store_n(&callers[at].key, 0, __ATOMIC_RELEASE);
			__atomic_store_n(&callers[at].address, wanted, __ATOMIC_RELEASE);
			__atomic_store_n(&callers[at].tag, tag, __ATOMIC_RELEASE);
			made = define_place(s, &callers[at].key, address, m, tag);
		}
		weft__define_unlock();
		return made;
	}
	return 0;
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
