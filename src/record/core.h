/* core.h: declarations that the recorder's files share (private to src/record).
 *
 * The core of the recorder (core.c, define.c, buffer.c) needs no operating system: it writes events into packets that its caller
 * provides.  In a program with an operating system, other files add OS threads (thread.c), directories (trace_dir.c), clocks
 * (clock.c), and starting and stopping (start.c).  SPDX-License-Identifier: ISC */
#ifndef WEFT_RECORD_CORE_H
#define WEFT_RECORD_CORE_H

#include <weft/record.h>

#include "wire/wire.h"

/* Number of bytes at the end of a packet that are reserved for signal handlers that interrupt another event. */
#define WEFT__NESTED_BYTES 512u
/* Number of bytes after which a stream checks whether pending promises must be listed. */
#define WEFT__CHECKPOINT_BYTES 2048u
#define WEFT__PENDING_BUDGET_MAX 64u
/* Size of half a lap of a ring below which the ring is small: it has few checkpoints, so its pending promises are listed as soon
 * as possible. */
#define WEFT__PENDING_SMALL_BYTES 65536u

struct weft__stream;

/* The source of a stream's packets. */
struct weft__storage {
	unsigned char *base; /* address of packet 0; the packets are contiguous in memory */
	size_t packet_bytes;
	unsigned count; /* number of packets; 1 if `grow` provides every packet after the first */
	unsigned most;  /* final number of packets of a ring, if `extend` succeeds each time; otherwise `count` */

	/* Puts an empty packet at `base`; returns false if there is none.  If the pointer is NULL, the packets are a ring, or
	 * each packet is used once if `once` is set. */
	bool (*grow)(struct weft__stream *stream);
	/* Appends an empty packet; returns false if there is none. */
	bool (*extend)(struct weft__stream *stream);
	bool once;
};

/* Lists of an OS thread's pending promises: one of the program, and one of an adapter, for code that does not call weft. */
enum { WEFT__PENDING_OF_PROGRAM, WEFT__PENDING_OF_ADAPTER, WEFT__PENDING_LISTS };

struct weft__pending_lists {
	struct weft__pending_list {
		weft_list_pending_fn *list; /* or NULL */
		void *data;
	} of[WEFT__PENDING_LISTS];
};

/* State of the listing of pending promises. */
struct weft__pending {
	struct weft__pending_lists lists;
	unsigned at;     /* index of the list that is being listed */
	uint64_t cursor; /* position in the list that is being listed */
	unsigned budget;
	uint64_t began; /* position in the stream, in bytes, at which this listing started */
	bool active;    /* whether a listing is in progress */
	/* Whether to take a step at every opportunity, as in the first listing of a recording, or in a small ring. */
	bool urgent;
	bool inside; /* whether a list is being called, or this struct is being changed */
};

/* Facts about the recording that each packet repeats. */
struct weft__origin {
	uint8_t uuid[16];
	uint64_t clock_hz;
	uint64_t (*wall_ns)(void);
	enum weft_record_mode mode;
};

/* CPU usage of an OS thread, as the kernel counts it. */
struct weft__usage {
	uint64_t time; /* trace time of the query; 0 if unknown */
	uint64_t cpu_ns, voluntary_switches, preemptions, minor_faults, major_faults;
	uint64_t cost_ticks; /* cost of a query in ticks */
};

/* Initialiser of a stream that never queries the kernel for CPU times. */
#define WEFT__NO_SAMPLING .long_ticks = UINT64_MAX, .sample_due = UINT64_MAX

struct weft__stream {
	struct weft_stream hot; /* part that the fast path uses; must be the first member */

	/* Copy of the recording's origin, because the stream's OS thread may still be in an event when the next recording
	 * starts. */
	struct weft__origin origin;

	/* Fields that only the stream's own thread writes. */
	struct weft__storage storage;
	enum weft_stream_class stream_class;
	uint32_t instance;
	uint32_t soft_end; /* end of the space for outermost events; nested events may also use the rest of the packet */
	unsigned slot;
	uint64_t sequence;      /* sequence number of the current packet */
	uint64_t events_before; /* number of events before the current packet */
	uint64_t begin_next;    /* value of hot.next at the start of the current packet */
	uint64_t lost_full, lost_nested;
	uint64_t tid;
	char thread_name[WEFT_THREAD_NAME_SIZE];
	uint32_t checkpoint; /* offset in the packet at which pending promises are listed next */
	bool switching;
	bool full;      /* whether no more packets are available */
	bool is_broken; /* whether a store into the stream's files failed, so that no code may use its memory now (sigbus.c) */
	struct weft__pending pending;
	struct weft__usage usage; /* at the last query */

	void *host; /* struct weft__thread */

	/* Fields that the stream's own thread shares with weft_stop(). */
	uint32_t retired; /* set by a stop; the stream's thread must then leave the stream */
	uint32_t in_slow; /* number that is not 0 while the stream's thread is in the slow path */
};

/* The current recording, or no recording. */
struct weft__recording {
	weft_word generation; /* counts recordings */
	struct weft__origin origin;
	bool use_counter;        /* whether the clock is the CPU's counter, and not weft__clock() */
	uint64_t (*enter)(void); /* function that blocks signal handlers or interrupts */
	void (*leave)(uint64_t state);
	uint64_t long_ticks;                         /* time awake from which on an OS thread records its CPU time; 0: never */
	weft_id __attribute__((aligned(8))) next_id; /* first free promise id; blocks of ids are taken atomically */

	struct weft__stream definitions;
	uint32_t define_lock; /* 1: taken */
	uint32_t next_key;
	struct weft__stream memory; /* sampled allocations; without packets until the first sample (memory.c) */
	weft_word lost_no_stream;   /* atomic */
};

/* A loaded file of machine code. */
struct weft__module {
	uint64_t address, size;
	const char *folder, *path; /* folder: base of a relative path, or "" */
	const unsigned char *build_id;
	uint32_t build_id_bytes; /* 0: no build id */
};

extern struct weft__recording weft__recording;
/* Stream of an OS thread that has no stream, in which every event takes the slow path. */
extern struct weft_stream weft__no_stream;

/* core.c */
/* Function that is called at the start of the slow path, before this OS thread counts as in it; may be NULL. */
extern void (*weft__slow_path_hook)(void);
uint64_t weft__time(void);
/* Resets a stream for the current recording, whose origin is set, and leaves it without packets. */
void weft__stream_reset(struct weft__stream *stream);
/* Starts the first packet of a stream whose storage, class and instance are set. */
void weft__stream_begin(struct weft__stream *stream);
/* Allows the fast path again after the limit was 0, unless another reason forbids it. */
void weft__stream_open(struct weft__stream *stream);
/* Starts to list all pending promises from the beginning. */
void weft__pending_begin(struct weft__pending *pending, const struct weft__pending_lists *lists);
void weft__record(struct weft__stream *stream, struct weft_wire_event *event);
/* Prepares an empty packet with this stream's header, as start_packet() expects it. */
void weft__packet_prepare(struct weft__stream *stream, unsigned char *packet);
void weft__count_lost_no_stream(void);
/* Writes the stream's numbers of lost events into its packet. */
void weft__write_losses(struct weft__stream *stream);
/* Writes the number of lost events into the definitions; the caller holds the definitions' lock. */
void weft__write_lost_no_stream(void);

/* define.c */
/* Returns the key of a text or site.  A new text or site is written into the definitions, and repeated in this stream.  Returns
 * 0 if a definition is impossible now; the caller then writes the text inline, or omits the site. */
uint16_t weft__intern_text(struct weft__stream *stream, struct weft_record_text *text);
uint16_t weft__intern_site(struct weft__stream *stream, struct weft_record_site *site);
uint16_t weft__intern_place(struct weft__stream *stream, struct weft_record_place *place);
/* Returns the key of a return address, for which the caller has no struct weft_record_place.  `stream` may be NULL: the
 * definition is then repeated in no stream. */
uint16_t weft__intern_address(struct weft__stream *stream, const void *address);
/* Returns space for `size` bytes in a stream whose packets `grow` provides and whose lock the caller holds, and sets hot.last to
 * the time of the next event; NULL: there is no space.  Several events may be written into the space, each published by
 * weft__log_publish(). */
unsigned char *weft__log_reserve(struct weft__stream *stream, size_t size);
void weft__log_publish(struct weft__stream *stream, size_t size);
void weft__define_thread(const struct weft__stream *stream);
bool weft__define_lock(unsigned tries);
void weft__define_unlock(void);

/* Finds the file that contains the address; returns false if there is none (module.c or freestanding.c).  The texts of the
 * module are valid while the file is loaded. */
bool weft__find_module(struct weft__module *out, const void *address);

/* buffer.c */
/* Divides options->buffer, which is all zeros if `is_clean`; streams get their storage from weft__buffer_storage(). */
int weft__buffer_start(
    const struct weft_record_options *options, const struct weft_metadata *metadata, bool is_clean, const char **why);
/* Rewrites the metadata packet, for example at the end, to say "finished". */
void weft__buffer_metadata(const struct weft_metadata *metadata);
/* Gets the storage of stream `index`; returns false if there are no more streams. */
bool weft__buffer_storage(struct weft__storage *out, unsigned index);
int weft__ring_check(uint64_t size, unsigned packets, uint64_t min_packet_bytes, const char **why);

/* Returns this OS thread's stream, ready to use, with .in_slow incremented; NULL if there is no stream (thread.c or
 * freestanding.c). */
struct weft__stream *weft__attach(void);

#endif
