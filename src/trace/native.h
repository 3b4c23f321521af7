/* native.h: the reader of weft's own traces, within (private to native*.c).  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_NATIVE_H
#define WEFT_TRACE_NATIVE_H

#include "base/cursor.h"
#include "base/vec.h"
#include "trace/format.h"
#include "trace/kernel.h"
#include "trace/packet.h"
#include "wire/wire.h"

#define NATIVE_BATCH 256

/* Where a packet was found. */
struct native_place {
	size_t offset;  /* of its header, in the blob */
	uint64_t index; /* in the blob */
	uint32_t blob;  /* index */
	bool is_definitions, is_kernel;
};

/* One packet that holds events or definitions, as it was when the trace was opened. */
struct native_packet {
	const unsigned char *bytes; /* of the header */
	uint64_t begin;             /* no event is older, ticks */
	uint64_t sequence, events_before;
	uint64_t lost_full, lost_nested;
	uint32_t content_bytes; /* header included */
	uint32_t header_bytes;
	uint32_t instance;
	uint32_t blob;   /* index */
	uint64_t offset; /* of the header, in the blob */
	uint64_t index;  /* in the blob */
	uint16_t stream; /* of its first event */
	uint16_t version;
	bool is_cut; /* content behind content_bytes could not be read */
};

/* How far the events of a packet were walked through. */
struct native_walk {
	uint64_t sequence;   /* of the packet */
	size_t bytes;        /* header included; 0: not at all */
	uint64_t time, last; /* ticks: the last event's; no event up to there is later */
};

/* From when on which stream an instance's events are of: its OS thread ended and another one went on. */
struct native_change {
	uint64_t since; /* ticks */
	size_t order;   /* in which it was defined */
	uint32_t instance;
	uint16_t stream;
	uint64_t tid;
	struct weft_str name;
};

/* How an event is decoded, by its id byte. */
struct native_form {
	uint8_t bytes; /* header included; 0: no such event */
	uint8_t op;
	bool is_plain; /* compact, its text interned: these need no branches */
	bool is_extra; /* the trace says what its fields are: native.extras[extra] */
	uint8_t kind_at, site_at, value_at, key_at;
	uint32_t a_mask, b_mask, value_mask;
	uint16_t site_mask, key_mask;
	uint8_t kind_mask;
	uint16_t extra;
	uint32_t value_sign;
};
_Static_assert(sizeof(struct native_form) == 32, "a shift finds the form of an event; a multiplication costs 7%");

/* Those of one version of the format. */
struct native_forms {
	struct native_form forms[256];
	uint8_t plain_bytes[256]; /* .bytes of plain forms; 0: not plain.  By itself, since each event waits for it */
	uint8_t other_bytes[256]; /* .bytes of what tells nothing of connections, an inline text left out; 0: it does, or may */
};

/* A place between two events. */
struct native_mark {
	size_t packet;           /* of native.packets */
	const unsigned char *at; /* in the packet; NULL: it begins */
	uint64_t last;           /* ticks */
	uint64_t decoded;        /* events of this packet */
};

/* Where reading one instance stands. */
struct native_cursor {
	size_t first, end; /* its packets: [first, end) of native.packets */
	size_t packet;
	const struct native_forms *forms; /* of the packet's version */
	const unsigned char *at, *stop;   /* in the packet */
	uint64_t missing;                 /* packets that there were behind the last one */
	uint64_t last;                    /* ticks */
	uint64_t until;                   /* the next packet's begin: later events are damage */
	uint64_t decoded;                 /* events of this packet */
	bool is_damaged;                  /* the rest of this packet could not be read */
	bool is_ended;                    /* what is to be said of the last packet's end was said */
	size_t change;                    /* the next one, in native.changes */
	size_t changes_end;
	uint64_t next_change; /* when it is, ticks */
	uint16_t stream;
	struct weft_event *batch;
	size_t batch_at, batch_end;
	struct native_mark batch_mark; /* where it was read */
	bool is_batch_damaged;
};

struct native_clock {
	uint64_t hz;
	int64_t origin_ns;
	bool has_origin;
};

/* Keys are numbers of 16 bits. */
enum { NATIVE_TEXT_PAGES = 256, NATIVE_PAGE_TEXTS = 256 };

struct native {
	WEFT_VEC(struct native_place) places;
	WEFT_VEC(struct native_packet) packets;     /* of events; by instance, then sequence */
	WEFT_VEC(struct native_packet) definitions; /* by sequence */
	WEFT_VEC(struct native_packet) kernel;      /* what the kernel said; by processor, then sequence */
	WEFT_VEC(struct native_change) changes;     /* by instance, then time */
	WEFT_VEC(struct weft_stream_info) streams;
	WEFT_VEC(struct native_cursor) cursors;
	WEFT_VEC(uint32_t) heap; /* of cursors that have an event, the earliest first */
	WEFT_VEC(void *) owned;  /* to be freed */
	WEFT_VEC(struct weft_site) sites;
	WEFT_VEC(struct weft_gap) gaps;
	size_t gaps_at_open;
	uint64_t last_definition; /* its time, ticks */
	/* By key, in pages: a small trace may use a large key.  Of key 0 it is empty; pages without any stand for one of "?"s. */
	struct weft_str *texts[NATIVE_TEXT_PAGES], *unknown_texts;
	uint32_t *site_index;              /* by key; [0] is WEFT_NO_SITE */
	uint32_t key_count;                /* of sites */
	const struct weft_position *from;  /* where the trace is to begin, if that is of this one; or NULL */
	const struct weft_position *known; /* likewise, how far it was read already */
	struct weft_position position;     /* where it ends, but for the streams */
	uint64_t *lost_at_open;            /* .lost_overwritten of each stream */
	struct native_clock clock;
	struct native_forms forms[WEFT_WIRE_VERSION]; /* by version - 1 */
	WEFT_VEC(struct weft_module) modules;
	WEFT_VEC(uint32_t) module_index; /* by key; or WEFT_NO_SITE */
	WEFT_VEC(uint32_t) site_modules; /* by site, until they are all read */
	WEFT_VEC(struct weft_wire_extra) extras;
	WEFT_VEC(struct weft_form) extra_forms; /* how weft_trace_info tells of them */
	uint8_t uuid[16];
	bool has_uuid;
	uint16_t unknown_version; /* of a packet that was passed over, or 0 */
	bool is_live;             /* its program may still write it */
	/* Ticks: from then on events may be missing of streams that were copied before others; else UINT64_MAX. */
	uint64_t doubtful;
	bool is_ring, is_finished, is_hurried, is_kernel_read;
	/* How many packets there were when the recording ended, by instance; 0: not known.  And of definitions. */
	WEFT_VEC(uint64_t) packets_made;
	uint64_t definitions_made;
	int64_t died_wall_ns; /* 0: not known */
	struct weft_event out[NATIVE_BATCH];
};

/* Where a blob stands that a program may be writing. */
struct native_live {
	const struct weft_source *source;
	uint32_t blob; /* index */
};

/* native_index.c: what stands where; events are not looked at. */
int weft__native_index(struct weft_trace *trace, struct weft_error *err);
int weft__native_no_memory(struct weft_error *err);
/* Memory that is freed with the trace; NULL: there is none. */
void *weft__native_own(struct native *n, size_t bytes);

/* Makes malloc()'s memory the trace's, also on failure; false: there is no memory for that, or none was given. */
bool weft__native_keep(struct native *n, void *memory);
/* Finds the packets of a blob, and adds them to the places. */
int weft__native_find(struct weft_trace *trace, uint32_t blob_index, struct weft_error *err);
/* Adds the packet to those of events or definitions, as far as it can be read of the bytes that are there; these must stay. */
int weft__native_take(struct weft_trace *trace, const struct native_place *place, const unsigned char *bytes, size_t there);
/* How the blob is read as it is now; `live` must stay. */
struct weft_packet_memory weft__native_memory(const struct native_live *live);

/* native_live.c: takes the packets of a trace that a program may be writing: of each stream one stretch, all up to one moment. */
int weft__native_take_live(struct weft_trace *trace, struct weft_error *err);

/* native_define.c.  Metadata: the text that a directory has in a file, a buffer in a packet. */
int weft__native_metadata(struct weft_trace *trace, const unsigned char *bytes, size_t size, struct weft_error *err);
/* Makes the tables of texts and sites, in which there are none yet. */
bool weft__native_begin_keys(struct native *n);
void weft__native_end_keys(struct native *n);
static inline struct weft_str weft__native_text(const struct native *n, uint16_t key)
{
	return n->texts[key / NATIVE_PAGE_TEXTS][key % NATIVE_PAGE_TEXTS];
}
int weft__native_definitions(struct weft_trace *trace, struct weft_error *err);
/* That of a key without a definition. */
bool weft__native_is_unknown(struct weft_str text);
/* Takes the definition of a string, site, place or module, whose bytes must stay, unless its key has one; 1, 0 or WEFT_ENOMEM. */
int weft__native_define(struct native *n, const struct weft_wire_definition *definition);

/* native_again.c: takes the definitions that streams tell again, and finds out whether a key is used that still has none. */
int weft__native_look_again(struct weft_trace *trace);

/* Notes that events of a stream are missing in that time; without memory for it the gap is lost. */
void weft__native_gap(struct weft_trace *trace, struct weft_gap gap);

/* native_kernel.c: as weft_trace_kernel(). */
int weft__native_kernel(struct weft_trace *trace, weft_kernel_fn *each, void *ctx, struct weft_kernel_info *info);

/* native_save.c */
int weft__native_save(const struct weft_trace *trace, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx);

/* native_edit.c: changes texts of a copy of a packet, or of the metadata, in place. */
struct native_copy {
	unsigned char *bytes; /* header and content, to be freed */
	size_t size;
};
/* What cannot be read is cut off. */
void weft__native_edit_events(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit);
void weft__native_edit_definitions(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit);
void weft__native_edit_kernel(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit);
void weft__native_edit_metadata(char *text, const struct weft_trace_edit *edit);

/* Appends the edit's reason, behind all events of the trace.  WEFT_ENOMEM. */
int weft__native_append_reason(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit);

/* The packet from the first event at or behind edit->from_ns on, or behind the position from which the trace was opened, with
 * what is told then in front; *more is by how many events the later packets of the instance are to count more, whose streams are
 * [first, end).  WEFT_ENOMEM. */
int weft__native_cut(const struct native *n, const struct native_packet *p, unsigned first_stream, unsigned end_stream,
    const struct weft_trace_edit *edit, struct native_copy *out, uint64_t *more);

/* native_decode.c */
void weft__native_forms(struct native *native);
/* The trace defines the form of one of its ops: native.extras[extra]. */
void weft__native_add_form(struct native *native, size_t extra);
/* Reads one field of an event with these bits in its id. */
bool weft__native_read_field(
    const struct native *native, struct weft_cursor *in, const struct weft_wire_field *field, uint8_t id, struct weft_field *out);
bool weft__native_field(const struct weft_trace *trace, const struct weft_event *event, unsigned index, struct weft_field *out);
/* Reads one event of a packet of that version; *is_unknown: a key in it has no definition.  false: it is damaged. */
bool weft__native_decode(
    const struct native *n, unsigned version, struct weft_cursor *in, uint64_t *last, struct weft_event *out, bool *is_unknown);
/* Where the first event later than `cut` (ticks) begins in a packet of which `size` bytes are there; `size` if there is none.
 * *walk says up to where that was looked for: zeroed, or as the last call left it, from where it goes on.  Linear in what comes
 * behind that, or behind what an earlier look read. */
size_t weft__native_end_at(const struct native *n, const struct weft_packet *packet, const unsigned char *bytes, size_t size,
    uint64_t cut, struct native_walk *walk);
/* The cursor goes on behind what was reached of its stream, or begins anew. */
void weft__native_resume(struct weft_trace *trace, struct native_cursor *cursor, const struct weft_position *from);
/* Where the event stands that the cursor gives next; false: what was read last is damaged. */
bool weft__native_mark(const struct native *n, const struct native_cursor *cursor, struct native_mark *out);
/* Fills the cursor's batch with its next events; an empty one means that there are no more. */
void weft__native_fill(struct weft_trace *trace, struct native_cursor *cursor);

#endif
