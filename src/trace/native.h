/* native.h: declares the internals of the reader of the native format (private to native*.c).  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_NATIVE_H
#define WEFT_TRACE_NATIVE_H

#include "base/cursor.h"
#include "base/vec.h"
#include "trace/format.h"
#include "trace/kernel.h"
#include "trace/packet.h"
#include "wire/wire.h"

#define NATIVE_BATCH 256

/* The location of a packet in a file or in memory. */
struct native_location {
	size_t offset;  /* offset of the packet's header in the blob */
	uint64_t index; /* index of the packet in the blob */
	uint32_t blob;  /* index of the blob */
	bool is_definitions, is_kernel, is_profile, is_memory;
};

/* A packet of events, definitions, kernel records, samples or allocations, as it was when the trace was opened. */
struct native_packet {
	const unsigned char *bytes; /* start of the header */
	uint64_t begin;             /* time of the packet's start in ticks; no event of the packet is older */
	uint64_t sequence, events_before;
	uint64_t lost_full, lost_nested;
	uint32_t content_bytes; /* includes the header */
	uint32_t header_bytes;
	uint32_t instance;
	uint32_t blob;   /* index of the blob */
	uint64_t offset; /* offset of the packet's header in the blob */
	uint64_t index;  /* index of the packet in the blob */
	uint16_t stream; /* stream of the packet's first event */
	uint16_t version;
	bool is_cut; /* true if content after content_bytes could not be read */
};

/* The part of a packet that was searched for its last event. */
struct native_walk {
	uint64_t sequence;   /* of the packet */
	size_t bytes;        /* number of bytes that were searched, including the header; 0 if none were */
	uint64_t time, last; /* time of the last event in ticks; maximum time so far in ticks */
};

/* The time from which on an instance's events belong to another stream, because another thread took over the instance. */
struct native_change {
	uint64_t since; /* ticks */
	size_t order;   /* order of its definition */
	uint32_t instance;
	uint16_t stream;
	uint64_t tid;
	struct weft_str name;
};

/* The layout of an event, which its id byte determines. */
struct native_form {
	uint8_t bytes; /* size of the event including the header; 0 for an invalid id */
	uint8_t op;
	bool is_plain; /* true if the event is compact and its text is a key, so that it is decoded without branches */
	bool is_extra; /* true if the trace defines the event's fields: native.extras[extra] */
	uint8_t kind_at, site_at, value_at, key_at;
	uint32_t a_mask, b_mask, value_mask;
	uint16_t site_mask, key_mask;
	uint8_t kind_mask;
	uint16_t extra;
	uint32_t value_sign;
};
_Static_assert(sizeof(struct native_form) == 32, "the size is a power of two, so that a shift finds the form of an event");

/* The layouts of the events in one version of the format. */
struct native_forms {
	struct native_form forms[256];
	/* .bytes of plain forms; 0 if the form is not plain.  The table is separate, because decoding waits for this value */
	uint8_t plain_bytes[256];
	/* .bytes of events without an inline text that do not concern connections; 0 if an event concerns or may concern
	 * connections */
	uint8_t other_bytes[256];
};

/* A position between two events of a packet. */
struct native_mark {
	size_t packet;           /* index into native.packets */
	const unsigned char *at; /* address in the packet; NULL for the start of the packet */
	uint64_t last;           /* ticks */
	uint64_t decoded;        /* number of events of this packet that were decoded */
};

/* State of reading the packets of one instance. */
struct native_cursor {
	size_t first, end; /* range of the instance's packets in native.packets: [first, end) */
	size_t packet;
	const struct native_forms *forms; /* layouts for the version of the packet */
	const unsigned char *at, *stop;   /* next byte in the packet; end of the packet */
	uint64_t missing;                 /* number of packets that are missing after the last one */
	uint64_t last;                    /* ticks */
	uint64_t until;                   /* start of the next packet; events with later times are damaged */
	uint64_t decoded;                 /* number of events of this packet that were decoded */
	bool is_damaged;                  /* true if the rest of this packet could not be read */
	bool is_ended;                    /* true if the end of the last packet was checked and noted */
	size_t change;                    /* index of the next change in native.changes */
	size_t changes_end;
	uint64_t next_change; /* time of the next change in ticks */
	uint16_t stream;
	struct weft_event *batch;
	size_t batch_at, batch_end;
	struct native_mark batch_mark; /* position of the batch's first event */
	bool is_batch_damaged;
};

struct native_clock {
	uint64_t hz;
	int64_t origin_ns;
	bool has_origin;
};

/* Keys have 16 bits. */
enum { NATIVE_TEXT_PAGES = 256, NATIVE_PAGE_TEXTS = 256 };

struct native {
	WEFT_VEC(struct native_location) locations;
	WEFT_VEC(struct native_packet) packets;     /* packets of events, sorted by instance, then by sequence number */
	WEFT_VEC(struct native_packet) definitions; /* sorted by sequence */
	WEFT_VEC(struct native_packet) kernel;      /* packets of kernel records, sorted by CPU, then by sequence number */
	WEFT_VEC(struct native_packet) profile;     /* packets of samples, sorted by sequence number */
	WEFT_VEC(struct weft_profile_stack) profile_stacks;
	WEFT_VEC(struct weft_profile_sample) profile_samples;
	WEFT_VEC(struct native_packet) memory; /* packets of allocations, sorted by sequence number */
	WEFT_VEC(struct weft_profile_stack) memory_stacks;
	WEFT_VEC(struct weft_allocation) allocations;
	uint64_t memory_period_bytes;
	bool is_memory_damaged; /* true if events of these packets are missing */
	int64_t profile_period_ns;
	uint64_t profile_lost;
	uint8_t profile_way;
	struct weft_str profile_why;
	WEFT_VEC(struct native_change) changes; /* changes, sorted by instance, then by time */
	WEFT_VEC(struct weft_stream_info) streams;
	WEFT_VEC(struct native_cursor) cursors;
	WEFT_VEC(uint32_t) heap; /* cursors that have an event, the earliest first */
	WEFT_VEC(void *) owned;  /* memory that is freed with the trace */
	WEFT_VEC(struct weft_site) sites;
	WEFT_VEC(struct weft_gap) gaps;
	size_t gaps_at_open;
	uint64_t last_definition; /* time of the newest definition in ticks */
	/* Texts by key, in pages, because a small trace may use large keys.  Key 0 is the empty text; pages without definitions
	 * share a page of "?". */
	struct weft_str *texts[NATIVE_TEXT_PAGES], *unknown_texts;
	uint32_t *site_index; /* by key: index of the site; the entry 0 is WEFT_NO_SITE */
	uint32_t key_count;   /* number of site keys */
	/* position from which on the trace is read, if that position belongs to this trace; or NULL */
	const struct weft_position *from;
	const struct weft_position *known; /* position up to which the trace was read before; or NULL */
	struct weft_position position;     /* position of the end of the trace, except for its streams */
	uint64_t *lost_at_open;            /* .lost_overwritten of each stream */
	struct native_clock clock;
	struct native_forms forms[WEFT_WIRE_VERSION]; /* by version - 1 */
	WEFT_VEC(struct weft_module) modules;
	WEFT_VEC(uint32_t) module_index; /* by key; or WEFT_NO_SITE */
	WEFT_VEC(uint32_t) site_modules; /* by site: key of its module, until all definitions are read */
	WEFT_VEC(struct weft_wire_extra) extras;
	WEFT_VEC(struct weft_form) extra_forms; /* descriptions for weft_trace_info */
	uint8_t uuid[16];
	bool has_uuid;
	uint16_t unknown_version; /* version of a packet that was skipped, or 0 */
	bool is_live;             /* true if the program may still be writing the trace */
	/* Time in ticks from which on events may be missing in streams that were copied earlier; UINT64_MAX if none are. */
	uint64_t doubtful_since;
	bool is_ring, is_finished, has_rough_clock, is_kernel_read;
	WEFT_VEC(uint64_t) packets_made; /* by instance: number of packets at the end of the recording; 0 if it is unknown */
	uint64_t definitions_made;       /* number of packets of definitions at the end of the recording; 0 if it is unknown */
	int64_t died_wall_ns;            /* 0: unknown */
	struct weft_event out[NATIVE_BATCH];
};

/* The location of a blob that a program may be writing. */
struct native_live {
	const struct weft_source *source;
	uint32_t blob; /* index of the blob */
};

/* native_index.c: finds packets, and does not decode events. */
int weft__native_index(struct weft_trace *trace, struct weft_error *err);
int weft__native_no_memory(struct weft_error *err);
/* Allocates memory that is freed with the trace; returns NULL when out of memory. */
void *weft__native_alloc(struct native *n, size_t bytes);

/* Passes memory from malloc() to the trace, on failure too; returns false when out of memory or if `memory` is NULL. */
bool weft__native_adopt(struct native *n, void *memory);
/* Finds the packets of a blob, and adds them to n->locations. */
int weft__native_find_packets(struct weft_trace *trace, uint32_t blob_index, struct weft_error *err);
/* Adds a packet of any of these classes, as far as it can be read from the `there` available bytes, which must stay valid. */
int weft__native_add_packet(
    struct weft_trace *trace, const struct native_location *location, const unsigned char *bytes, size_t there);
/* Returns a reader of the bytes that the blob has now; `live` must stay valid. */
struct weft_packet_memory weft__native_memory(const struct native_live *live);

/* native_live.c: copies the packets of a trace that a program may be writing: a contiguous snapshot of each stream, all up to
 * one moment. */
int weft__native_read_live(struct weft_trace *trace, struct weft_error *err);

/* native_define.c: reads metadata: the text in a file of a directory, or in a packet of a buffer. */
int weft__native_metadata(struct weft_trace *trace, const unsigned char *bytes, size_t size, struct weft_error *err);
/* Creates the empty tables of texts and sites. */
bool weft__native_begin_keys(struct native *n);
void weft__native_end_keys(struct native *n);
static inline struct weft_str weft__native_text(const struct native *n, uint16_t key)
{
	return n->texts[key / NATIVE_PAGE_TEXTS][key % NATIVE_PAGE_TEXTS];
}
int weft__native_definitions(struct weft_trace *trace, struct weft_error *err);
/* Returns true if the text stands for a key without a definition. */
bool weft__native_is_unknown(struct weft_str text);
/* Adds the definition of a string, site, place or module, unless its key already has one.  The bytes of the definition must
 * stay valid.  Returns 1 if it was added, 0 if not, or WEFT_ENOMEM. */
int weft__native_define(struct native *n, const struct weft_wire_definition *definition);

/* native_redefine.c: reads definitions that streams repeat, and finds out whether a used key still has no definition. */
int weft__native_read_redefinitions(struct weft_trace *trace);

/* Notes that events of a stream are missing in an interval; when out of memory the gap is not noted. */
void weft__native_add_gap(struct weft_trace *trace, struct weft_gap gap);

/* native_kernel.c: implements weft_trace_kernel(). */
int weft__native_kernel(struct weft_trace *trace, weft_kernel_fn *each, void *ctx, struct weft_kernel_info *info);

/* native_profile.c: fills trace->info.profile, and adds the places to n->sites.  WEFT_ENOMEM. */
int weft__native_read_profile(struct weft_trace *trace);
/* Calls read(ctx) for each event of a packet until the cursor, which read() moves, is at its end.  read() returns 1, 0 if the
 * event is damaged, or a negative status.  Returns 1 if all events were read, 0 if a damaged event and the bytes after it were
 * skipped and reported as `what`, or the negative status. */
int weft__native_read_events(struct weft_trace *trace, const struct native_packet *packet, const struct weft_cursor *in,
    int (*read)(void *ctx), void *ctx, const char *what);

/* native_memory.c: fills trace->info.memory.  WEFT_ENOMEM. */
int weft__native_read_memory(struct weft_trace *trace);

/* native_save.c */
int weft__native_save(const struct weft_trace *trace, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx);

/* native_edit.c: edits texts in place, in a copy of a packet or of the metadata. */
struct native_copy {
	unsigned char *bytes; /* header and content of the packet, owned by the copy */
	size_t size;
};
/* Edits the texts of the packet's events; content that cannot be read is cut off. */
void weft__native_edit_events(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit);
void weft__native_edit_definitions(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit);
void weft__native_edit_kernel(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit);
void weft__native_edit_memory(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit);
void weft__native_edit_profile(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit);
/* Returns the first tick that is not before a time. */
uint64_t weft__native_ticks(uint64_t hz, int64_t ns);
void weft__native_edit_metadata(char *text, const struct weft_trace_edit *edit);

/* Appends the reason of the edit after all events of the trace.  WEFT_ENOMEM. */
int weft__native_append_reason(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit);

/* Cuts a packet: keeps the events from edit->from_ns on, or after the position from which the trace was opened.  Puts the
 * events of the checkpoint in front.  The streams of the instance are [first_stream, end_stream); the event counts of its later
 * packets must be increased by *more.  WEFT_ENOMEM. */
int weft__native_cut(const struct native *n, const struct native_packet *p, unsigned first_stream, unsigned end_stream,
    const struct weft_trace_edit *edit, struct native_copy *out, uint64_t *more);

/* native_decode.c */
void weft__native_forms(struct native *native);
/* Adds the layout of an op that the trace defines: native.extras[extra]. */
void weft__native_add_form(struct native *native, size_t extra);
/* Reads a field of an event with the given id byte. */
bool weft__native_read_field(
    const struct native *native, struct weft_cursor *in, const struct weft_wire_field *field, uint8_t id, struct weft_field *out);
bool weft__native_field(const struct weft_trace *trace, const struct weft_event *event, unsigned index, struct weft_field *out);
/* Decodes an event of a packet of the given version; *is_unknown is set if the event uses a key without a definition.  False:
 * damaged. */
bool weft__native_decode(
    const struct native *n, unsigned version, struct weft_cursor *in, uint64_t *last, struct weft_event *out, bool *is_unknown);
/* Returns the offset of the first event later than `cut` (ticks) in the first `size` bytes of a packet; `size` if there is
 * none. *walk is the state of the search: zeros, or the state after an earlier call, which is then continued.  Takes time
 * linear in the number of bytes that were not searched before. */
size_t weft__native_end_at(const struct native *n, const struct weft_packet *packet, const unsigned char *bytes, size_t size,
    uint64_t cut, struct native_walk *walk);
/* Moves the cursor behind the position that was reached in its stream, or to the start of the stream. */
void weft__native_resume(struct weft_trace *trace, struct native_cursor *cursor, const struct weft_position *from);
/* Finds the position of the cursor's next event; returns false if the packet that was read last is damaged. */
bool weft__native_mark_position(const struct native *n, const struct native_cursor *cursor, struct native_mark *out);
/* Fills the cursor's batch with its next events; an empty batch means the end. */
void weft__native_fill(struct weft_trace *trace, struct native_cursor *cursor);

#endif
