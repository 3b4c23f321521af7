/* memory.c: writes sampled allocations into a stream of their own, which a ring does not overwrite.
 *
 * All OS threads write this stream under a lock.  A thread that does not get the lock at once loses its sample, but never the end
 * of a sampled allocation: its number waits in a short list for the next thread that has the lock.  The stream also keeps space
 * for the ends of all sampled allocations, so an allocation that was freed never seems to be there still.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <unistd.h>

#include "record/host.h"
#include "wire/memory.h"

enum { LOCK_TRIES = 1000, MAX_FRAMES = 64, NODE_SLOTS = 4096, MAX_PROBES = 16, WAITING_SLOTS = 256 };

static uint32_t memory_lock;     /* 1: taken */
static uint32_t lost, lost_ends; /* numbers of lost samples and of lost ends that the packet does not tell yet */
/* Numbers of freed allocations that are not written yet; 0: unused. */
static uint32_t waiting[WAITING_SLOTS];
static uint32_t waiting_count;

/* The following state is protected by the lock. */
static uint64_t generation; /* of the recording that has the stream's packets, or that could make none */
/* Numbers go on in the next recording, because an allocation may be freed there. */
static uint32_t last_number, live_count;
static uint32_t node_count; /* number of stacks in the current packet */
static uint64_t node_packet;
/* Stacks of the current packet, in a hash table. */
static struct node {
	uint64_t packet; /* node_packet while the node is valid */
	uint32_t caller, number;
	uint16_t place;
} nodes[NODE_SLOTS];

static bool take_lock(unsigned tries)
{
	while (tries--)
		if (!__atomic_exchange_n(&memory_lock, 1, __ATOMIC_ACQUIRE))
			return true;
	return false;
}

static void release_lock(void)
{
	__atomic_store_n(&memory_lock, 0, __ATOMIC_RELEASE);
}

/* Makes the stream's first packet at the first sample of a recording. */
static bool prepare_stream(struct weft__stream *s)
{
	if (generation == weft__recording.generation)
		return s->storage.base && !s->is_broken;
	generation = weft__recording.generation;
	live_count = 0;
	weft__stream_reset(s);
	if (!weft__trace_dir_make_memory(s))
		return false;
	weft__stream_begin(s);
	node_packet++;
	node_count = 0;
	return true;
}

/* Returns space for events in one packet; the numbers of stacks begin again in a new packet. */
static unsigned char *reserve(struct weft__stream *s, size_t size)
{
	const uint64_t packet = s->sequence;
	unsigned char *at = weft__log_reserve(s, size);
	if (at && s->sequence != packet) {
		node_packet++;
		node_count = 0;
	}
	return at;
}

static void write_event(struct weft__stream *s, const struct weft_wire_memory *event, size_t size)
{
	weft__memory_write(s->hot.packet + (uint32_t)s->hot.next, event, s->hot.last);
	weft__log_publish(s, size);
}

static void write_freed(struct weft__stream *s, uint32_t number)
{
	if (reserve(s, WEFT_MEMORY_FREED_BYTES))
		write_event(s, &(struct weft_wire_memory){.op = WEFT_MEMORY_FREED, .number = number}, WEFT_MEMORY_FREED_BYTES);
	else
		s->lost_nested++;
	live_count -= live_count > 0;
}

static void write_waiting(struct weft__stream *s)
{
	if (!__atomic_load_n(&waiting_count, __ATOMIC_ACQUIRE))
		return;
	for (unsigned i = 0; i < WAITING_SLOTS; i++) {
		const uint32_t number = __atomic_exchange_n(&waiting[i], 0, __ATOMIC_ACQUIRE);
		if (!number)
			continue;
		__atomic_fetch_sub(&waiting_count, 1, __ATOMIC_RELAXED);
		write_freed(s, number);
	}
}

static void write_lost(struct weft__stream *s)
{
	s->lost_full += __atomic_exchange_n(&lost, 0, __ATOMIC_RELAXED);
	s->lost_nested += __atomic_exchange_n(&lost_ends, 0, __ATOMIC_RELAXED);
	weft__write_losses(s);
}

/* Returns the number of the stack that consists of a frame below another stack, and writes the stack if it is new. */
static uint32_t get_stack(struct weft__stream *s, uint32_t caller, uint16_t place)
{
	const uint64_t hash = ((uint64_t)caller << 16 | place) * 0x9e3779b97f4a7c15u >> 32;
	for (unsigned i = 0; i < MAX_PROBES; i++) {
		struct node *n = &nodes[(hash + i) % NODE_SLOTS];
		if (n->packet == node_packet && n->caller == caller && n->place == place)
			return n->number;
		if (n->packet == node_packet)
			continue;
		*n = (struct node){node_packet, caller, ++node_count, place};
		write_event(s,
		    &(struct weft_wire_memory){.op = WEFT_MEMORY_STACK, .number = n->number, .stack = caller, .place = place},
		    WEFT_MEMORY_STACK_BYTES);
		return n->number;
	}
	return caller;
}

static uint32_t write_allocated(
    struct weft__stream *s, uint64_t bytes, uint32_t period_bytes, const uint16_t *places, unsigned count)
{
	const size_t most = (size_t)count * WEFT_MEMORY_STACK_BYTES + WEFT_MEMORY_ALLOCATED_BYTES;
	/* Every sampled allocation keeps the space of its end; the end of a packet may stay unused. */
	const uint64_t kept = (uint64_t)(live_count + 1 + WAITING_SLOTS) * WEFT_MEMORY_FREED_BYTES,
		       unused = WEFT__MAX_MEMORY_FILES * (uint64_t)WEFT_MEMORY_FREED_BYTES;
	uint32_t stack = 0;
	if (weft__trace_dir_memory_left(s) < most * 2 + kept + unused || last_number == UINT32_MAX || !reserve(s, most))
		return 0;
	for (unsigned i = count; i-- > 0;)
		stack = places[i] ? get_stack(s, stack, places[i]) : stack;
	live_count++;
	write_event(s,
	    &(struct weft_wire_memory){.op = WEFT_MEMORY_ALLOCATED,
		.number = ++last_number,
		.promise = weft_running(),
		.bytes = bytes,
		.period_bytes = period_bytes,
		.stack = stack},
	    WEFT_MEMORY_ALLOCATED_BYTES);
	return last_number;
}

/* Returns whether this process records into a directory, and this code may wait for the thread that makes files. */
static bool is_recording(void)
{
	return __atomic_load_n(&weft__mode, __ATOMIC_RELAXED) != WEFT__OFF && weft__target == WEFT__TARGET_DIRECTORY &&
	       !weft__threads_locked_here() && !weft__is_unannounced_child();
}

uint32_t weft__memory_allocated(uint64_t bytes, uint32_t period_bytes, const void *const *stack, unsigned count)
{
	const int saved = errno;
	struct weft__stream *s = &weft__recording.memory;
	uint16_t places[MAX_FRAMES];
	uint32_t number = 0;
	if (!is_recording())
		return 0;
	count = count < MAX_FRAMES ? count : MAX_FRAMES;
	for (unsigned i = 0; i < count; i++)
		places[i] = weft__intern_address(NULL, stack[i]);
	const uint64_t signals = weft__signals_block();
	if (take_lock(LOCK_TRIES)) {
		/* A stop of the recording takes the lock after it has changed the mode. */
		if (is_recording() && prepare_stream(s)) {
			write_waiting(s);
			number = bytes ? write_allocated(s, bytes, period_bytes, places, count) : 0;
			s->lost_full += number == 0;
			write_lost(s);
		}
		release_lock();
	} else {
		__atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
	}
	weft__signals_restore(signals);
	errno = saved;
	return number;
}

/* Keeps a number until a thread has the lock; returns false if there is no space. */
static bool keep_waiting(uint32_t number)
{
	for (unsigned i = 0; i < WAITING_SLOTS; i++) {
		uint32_t *slot = &waiting[(number + i) % WAITING_SLOTS], none = 0;
		if (!__atomic_compare_exchange_n(slot, &none, number, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			continue;
		__atomic_fetch_add(&waiting_count, 1, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

void weft__memory_freed(uint32_t number)
{
	const int saved = errno;
	struct weft__stream *s = &weft__recording.memory;
	if (!is_recording())
		return;
	const uint64_t signals = weft__signals_block();
	bool is_kept = false;
	if (take_lock(1) || (!(is_kept = keep_waiting(number)) && take_lock(LOCK_TRIES))) {
		if (is_recording() && generation == weft__recording.generation && s->storage.base && !s->is_broken) {
			write_waiting(s);
			write_freed(s, number);
			write_lost(s);
		}
		release_lock();
	} else if (!is_kept) {
		__atomic_fetch_add(&lost_ends, 1, __ATOMIC_RELAXED);
	}
	weft__signals_restore(signals);
	errno = saved;
}

void weft__memory_end(void)
{
	struct weft__stream *s = &weft__recording.memory;
	while (!take_lock(LOCK_TRIES))
		usleep(10);
	if (s->storage.base && !s->is_broken) {
		write_waiting(s);
		write_lost(s);
	}
	release_lock();
}

void weft__memory_after_fork(void)
{
	memory_lock = 0;
	lost = lost_ends = waiting_count = 0;
	for (unsigned i = 0; i < WAITING_SLOTS; i++)
		waiting[i] = 0;
}
