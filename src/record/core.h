/* core.h: the recorder within (private to src/record).
 *
 * The core (core.c, define.c, buffer.c) is freestanding: it writes events into packets that it is given.  Around it stand, in a
 * hosted program, OS threads (thread.c), directories (dir.c), clocks (clock.c) and starting and stopping (start.c).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_RECORD_CORE_H
#define WEFT_RECORD_CORE_H

#include <weft/record.h>

#include "wire/wire.h"

/* Bytes at a packet's end that only signal handlers in the middle of another event may take. */
#define WEFT__NESTED_ROOM 512u
/* Between two looks at whether pending promises are to be told of. */
#define WEFT__CHECKPOINT_BYTES 2048u
#define WEFT__PENDING_BUDGET_MAX 64u
/* Half a lap of a ring that has few checkpoints: it is told at once, as far as there is room. */
#define WEFT__PENDING_SMALL_BYTES 65536u

struct weft__stream;

/* Where a stream's packets come from. */
struct weft__storage {
	unsigned char *base; /* of packet 0; they stand side by side */
	size_t packet_bytes;
	unsigned count; /* 1 if `grow` gives every packet after the first */
	unsigned most;  /* of a ring: as many will stand there, if `extend` finds room for them; otherwise count */

	/* Puts a fresh packet of zeros at base; false: there is none.  NULL: the packets are a ring, or, where `once` says so,
	 * are used once each. */
	bool (*grow)(struct weft__stream *stream);
	/* Puts a fresh packet of zeros behind the last one; false: there is none. */
	bool (*extend)(struct weft__stream *stream);
	bool once;
};

/* What of an OS thread is pending, the program tells, and for what that does not know of weft an adapter beside it. */
enum { WEFT__PENDING_OF_PROGRAM, WEFT__PENDING_OF_ADAPTER, WEFT__PENDING_LISTS };

struct weft__pending_lists {
	struct weft__pending_list {
		weft_list_pending_fn *list; /* or NULL */
		void *data;
	} of[WEFT__PENDING_LISTS];
};

/* The state of telling what is pending. */
struct weft__pending {
	struct weft__pending_lists lists;
	unsigned at;     /* which of them tells next */
	uint64_t cursor; /* in it */
	unsigned budget;
	uint64_t began; /* where this round did, in bytes of the stream */
	bool active;    /* a round is not through */
	bool urgent;    /* the first round of a recording, or a small ring: a step at every occasion */
	bool inside;    /* a list is being called, or these are being changed */
};

/* What packets say of their recording. */
struct weft__origin {
	uint8_t uuid[16];
	uint64_t clock_hz;
	uint64_t (*wall_ns)(void);
	enum weft_record_mode mode;
};

/* What the kernel says of an OS thread. */
struct weft__usage {
	uint64_t time; /* of the trace's clock; 0: nothing is known */
	uint64_t had_ns, given, taken, minor, major;
	uint64_t cost; /* ticks that it takes to ask */
};

/* Of a stream: nothing is asked of the kernel. */
#define WEFT__TIMES_NOTHING .long_ticks = UINT64_MAX, .sample_due = UINT64_MAX

struct weft__stream {
	struct weft_stream hot; /* first */

	/* A copy: its OS thread may still be in an event when the next recording starts. */
	struct weft__origin origin;

	/* Written by its owner alone. */
	struct weft__storage storage;
	enum weft_stream_class stream_class;
	uint32_t instance;
	uint32_t soft_end; /* where outermost events end; nested ones may go on to the packet's end */
	unsigned slot;
	uint64_t sequence;      /* of the packet in use */
	uint64_t events_before; /* that packet */
	uint64_t begin_next;    /* hot.next when it began */
	uint64_t lost_full, lost_nested;
	uint64_t tid;
	char thread_name[WEFT_THREAD_NAME_SIZE];
	uint32_t checkpoint; /* offset in the packet at which the next one is due */
	bool switching;
	bool full;      /* there are no more packets */
	bool is_broken; /* its files do not hold what is written: its memory is nobody's now (guard.c) */
	struct weft__pending pending;
	struct weft__usage usage; /* when it was last asked for */

	void *host; /* struct weft__thread */

	/* Between its owner and weft_stop(). */
	uint32_t retired; /* set by stop: the owner is to leave it */
	uint32_t in_slow; /* the owner is in the slow path */
};

/* The recording that goes on, or none. */
struct weft__recording {
	weft_word generation; /* counts recordings */
	struct weft__origin origin;
	bool use_counter;        /* the clock is the processor's counter, not weft__clock() */
	uint64_t (*enter)(void); /* keeps signal handlers, or interrupts, out */
	void (*leave)(uint64_t state);
	uint64_t long_ticks; /* an OS thread that was awake for so long tells how much of that it had a processor; 0: none does */
	weft_id __attribute__((aligned(8))) next_id; /* blocks of ids are taken from here, atomically */

	struct weft__stream definitions;
	uint32_t define_lock; /* 1: taken */
	uint32_t next_key;
	weft_word lost_no_stream; /* atomic */
};

/* A file of machine code that is loaded. */
struct weft__module {
	uint64_t address, size;
	const char *folder, *path; /* folder: what a relative path begins at, or "" */
	const unsigned char *build_id;
	uint32_t build_id_bytes; /* 0: it has none */
};

extern struct weft__recording weft__recording;
extern struct weft_stream weft__nobody; /* what an OS thread without a stream has: every event takes the slow path */

/* core.c */
/* NULL, or what the slow path begins with, before this OS thread is in it. */
extern void (*weft__look)(void);
uint64_t weft__time(void);
/* Makes it a stream of this recording, whose origin is known, without packets. */
void weft__stream_reset(struct weft__stream *stream);
/* The first packet of a stream whose storage, class and instance are set. */
void weft__stream_begin(struct weft__stream *stream);
/* Makes fast events possible again after limit was 0, as far as nothing else speaks against it. */
void weft__stream_open(struct weft__stream *stream);
/* All of these lists from their beginnings. */
void weft__pending_begin(struct weft__pending *pending, const struct weft__pending_lists *lists);
void weft__record(struct weft__stream *stream, struct weft_wire_event *event);
/* An empty packet with this stream's header, as the first use will find it. */
void weft__packet_prepare(struct weft__stream *stream, unsigned char *packet);
void weft__count_no_stream(void);
/* Writes their number into the definitions, whose lock is taken. */
void weft__tell_no_stream(void);

/* define.c */
/* The key of a text or site, which is written into the definitions, and told in this stream, if it is new; 0: not now, write it
 * out or leave it. */
uint16_t weft__intern_text(struct weft__stream *stream, struct weft_record_text *text);
uint16_t weft__intern_site(struct weft__stream *stream, struct weft_record_site *site);
uint16_t weft__intern_place(struct weft__stream *stream, struct weft_record_place *place);
/* Likewise of a return address that nobody keeps a struct weft_record_place for. */
uint16_t weft__intern_address(struct weft__stream *stream, const void *address);
void weft__define_thread(const struct weft__stream *stream);
bool weft__define_lock(unsigned tries);
void weft__define_unlock(void);

/* module.c, or freestanding.c: the file that the address is of; false: none.  Its texts stay as long as it is loaded. */
bool weft__find_module(struct weft__module *out, const void *address);

/* buffer.c */
/* Cuts options->buffer, which is all zeros where `is_clean`; streams' storage comes from weft__buffer_storage(). */
int weft__buffer_start(
    const struct weft_record_options *options, const struct weft_metadata *metadata, bool is_clean, const char **why);
/* Writes the first packet anew: at the end, that it is finished. */
void weft__buffer_metadata(const struct weft_metadata *metadata);
/* The slice of stream `index`; false: there are no more. */
bool weft__buffer_storage(struct weft__storage *out, unsigned index);
int weft__ring_check(uint64_t size, unsigned packets, uint64_t least, const char **why);

/* thread.c, or freestanding.c: this OS thread's stream, made ready, .in_slow counted up; NULL if there is none to have. */
struct weft__stream *weft__attach(void);

#endif
