/* sources.c: finds the main contexts of GLib in a process's memory, whatever file contains GLib's code, and without symbols.
 *
 * A thread that sleeps in a context has the context's address on its stack, and the context contains the address of the array
 * that the thread polls.  The struct GSource is in GLib's public headers; the context's lists of sources are found by sources
 * that point to the context.  The due time and the callback of a source are private, and have not changed from GLib 2.74 to
 * 2.84.  SPDX-License-Identifier: ISC */
#include "look/sources.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cursor.h"

/* Offsets in bytes. */
enum {
	SOURCE_DATA = 0, /* of GSource: its callback */
	SOURCE_CONTEXT = 32,
	SOURCE_FLAGS = 44,
	SOURCE_FDS = 56,
	SOURCE_NEXT = 72,
	SOURCE_NAME = 80,
	SOURCE_PRIVATE = 88,
	READY_TIME = 16,   /* of GSourcePrivate */
	CALLBACK_CODE = 8, /* of GSourceCallback */
	LIST_NEXT = 8,
	QUEUE_LINK = 24, /* size in bytes of the link in a list of sources */
	CONTEXT_WORDS = 40,
	IS_ACTIVE = 1,
	SEARCHED_BYTES = 16 << 10,
	MAX_SOURCES = 1000,
	MAX_LISTS = 1000
};

static bool is_source(const struct look_target *t, uint64_t source, uint64_t context)
{
	uint32_t flags = 0;
	return source && source % 8 == 0 && weft__look_word(t, source + SOURCE_CONTEXT) == context &&
	       t->read(t, source + SOURCE_FLAGS, &flags, sizeof flags) == sizeof flags && flags & IS_ACTIVE;
}

/* Returns the first source of a list; since GLib 2.62 the list is an element of a queue itself, before it is the data of an
 * element. */
static uint64_t first_source(const struct look_target *t, uint64_t node)
{
	const uint64_t list = weft__look_word(t, node);
	return list ? weft__look_word(t, list == node ? node + QUEUE_LINK : list) : 0;
}

/* Returns the first element of the context's lists of sources; 0 if this is no context, or the context has no source. */
static uint64_t find_lists(const struct look_target *t, uint64_t context, uint64_t polled)
{
	unsigned char bytes[CONTEXT_WORDS * 8];
	bool has_array = false;
	if (context % 8 || t->read(t, context, bytes, sizeof bytes) < sizeof bytes)
		return 0;
	for (int i = 0; i < CONTEXT_WORDS; i++)
		has_array |= weft_load_u64(bytes + 8 * i) == polled;
	for (int i = 0; has_array && i < CONTEXT_WORDS; i++) {
		const uint64_t node = weft_load_u64(bytes + 8 * i);
		if (node > 4096 && node % 8 == 0 && is_source(t, first_source(t, node), context))
			return node;
	}
	return 0;
}

static void describe_source(struct look_keeper *k, const struct look_target *t, uint64_t source)
{
	char name[48] = "", fd_name[64];
	int32_t fd = -1;
	const uint64_t text = weft__look_word(t, source + SOURCE_NAME), fds = weft__look_word(t, source + SOURCE_FDS),
		       private = weft__look_word(t, source + SOURCE_PRIVATE), callback = weft__look_word(t, source + SOURCE_DATA);
	const int64_t ready_us = private ? (int64_t)weft__look_word(t, private + READY_TIME) : -1;
	if (text)
		name[t->read(t, text, name, sizeof name - 1)] = 0;
	for (char *c = name; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
	*k = (struct look_keeper){
	    .kind = WEFT_KIND_HANDLE, .callback = callback ? weft__look_word(t, callback + CALLBACK_CODE) : 0};
	size_t length = (size_t)snprintf(k->label, sizeof k->label, "%s", *name ? name : "source");
	if (ready_us > 0) {
		k->kind = WEFT_KIND_TIMER;
		length += t->is_core ? 0
				     : (size_t)snprintf(k->label + length, sizeof k->label - length, ", due in %" PRId64 " ms",
					   ready_us / 1000 - t->now_ns / 1000000);
	}
	if (fds && t->read(t, weft__look_word(t, fds), &fd, sizeof fd) == sizeof fd && fd >= 0) {
		k->kind = WEFT_KIND_POLL;
		const bool has_name = t->name_fd && t->name_fd(t, fd, fd_name, sizeof fd_name);
		snprintf(k->label + length, sizeof k->label - length, " of fd %" PRId32 "%s%s", fd, has_name ? ": " : "",
		    has_name ? fd_name : "");
	}
}

static bool add_context(struct look_target *t, const struct look_thread *thread, uint64_t context, uint64_t lists)
{
	struct look_loop *loop = weft_vec_push(&t->loops);
	int left = MAX_LISTS;
	if (!loop)
		return false;
	*loop = (struct look_loop){.address = context, .tid = thread->tid, .awaited = thread->args[0], .runtime = "GLib"};
	/* The number of elements is limited, because lists in hostile memory may be circular. */
	for (uint64_t node = lists; node && left-- > 0; node = weft__look_word(t, node + LIST_NEXT))
		for (uint64_t source = first_source(t, node); is_source(t, source, context) && loop->found_handles < MAX_SOURCES;
		     source = weft__look_word(t, source + SOURCE_NEXT)) {
			struct look_keeper *k = weft_vec_push(&loop->keepers);
			if (!k)
				return false;
			describe_source(k, t, source);
			loop->found_handles++;
		}
	return true;
}

static bool is_polling(const struct look_thread *thread)
{
#ifdef SYS_poll
	if (thread->call == SYS_poll)
		return true;
#endif
	return thread->call == SYS_ppoll || thread->call == SYS_restart_syscall;
}

bool weft__look_find_contexts(struct look_target *t)
{
	for (size_t i = 0; i < t->threads.count; i++) {
		const struct look_thread *thread = &t->threads.items[i];
		const struct weft_look_stack *s = &thread->stack;
		uint64_t lists = 0;
		for (size_t at = 0; is_polling(thread) && !lists && at + 8 <= s->size && at < SEARCHED_BYTES; at += 8) {
			const uint64_t word = weft_load_u64(s->bytes + at);
			const struct look_map *map = word > 4096 && word % 8 == 0 ? weft__look_map(t, word) : NULL;
			/* The word is the address of the context itself, or of a GMainLoop, which begins with the context's
			 * address. */
			const uint64_t contexts[] = {word, map && map->is_writable ? weft__look_word(t, word) : 0};
			for (size_t k = 0; map && map->is_writable && !lists && k < 2; k++)
				if ((lists = find_lists(t, contexts[k], thread->args[0])) &&
				    !add_context(t, thread, contexts[k], lists))
					return false;
		}
	}
	return true;
}
