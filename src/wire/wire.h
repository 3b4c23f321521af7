/* wire.h: defines the bytes of a native trace, for the code that writes them and the code that reads them.
 *
 * A trace consists of packets.  Each packet begins with a struct weft_packet_header, which suffices to find the packet
 * anywhere, even in a memory image.  Events follow the header without gaps, unaligned, in the writer's byte order.
 * docs/format.md describes the whole format.  Compiles freestanding.  SPDX-License-Identifier: ISC */
#ifndef WEFT_WIRE_WIRE_H
#define WEFT_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/vocabulary.h>

/* version of the format; readers also accept version 1, which has WEFT_OP_COUNT_1 ops and three definitions */
#define WEFT_WIRE_VERSION 2
#define WEFT_OP_COUNT_1 22u
#define WEFT_PACKET_MAGIC 0xC1FC1FC1u /* CTF's */
#define WEFT_PACKET_MARK 0x54464557u  /* mark in the packet header: "WEFT" in a little-endian packet */
#define WEFT_THREAD_NAME_SIZE 16

/* The stream class of a packet (.stream_id). */
enum weft_stream_class {
	WEFT_CLASS_EVENTS = 0,
	WEFT_CLASS_DEFINITIONS = 1,
	WEFT_CLASS_METADATA = 2,
	WEFT_CLASS_KERNEL = 3,
	WEFT_CLASS_PROFILE = 4,
	WEFT_CLASS_MEMORY = 5
};

typedef uint64_t weft_packet_word __attribute__((aligned(8)));

/*  0       4                20       24        28     32       34           36
 *  | magic | uuid of trace  | class  | stream  | mark | version| header size| lock |
 *  40      48             56            64         72          80          88            96               104
 *  | begin | content bits | packet bits | sequence | discarded | lost: full| lost: nested| lost: no stream| events before |
 *  112     120                  136   144           160
 *  | hz    | clock, wall ns     | tid | thread name | events ... */
struct weft_packet_header {
	uint32_t magic;
	uint8_t uuid[16];
	uint32_t stream_id;          /* enum weft_stream_class */
	uint32_t stream_instance_id; /* number of the stream within its class */
	uint32_t mark;
	uint16_t version;
	uint16_t header_bytes;            /* offset of the first event in the packet */
	uint32_t lock;                    /* odd while the packet is being reused; each use changes it */
	weft_packet_word timestamp_begin; /* time of the packet's start in ticks; no event of the packet is older */
	weft_packet_word content_size;    /* size of all whole events and the header in bits; grows as events are recorded */
	weft_packet_word packet_size;     /* in bits */
	weft_packet_word sequence;        /* number of this packet in its stream, counted from 0 */
	weft_packet_word events_discarded;
	weft_packet_word
	    /* number of events of this stream, since the trace started, that were lost because its packets were full */
	    lost_full;
	/* number of events in signal handlers that were lost because no packet could take them */
	weft_packet_word lost_nested;
	/* number of events of OS threads that got no stream; set in the packets of definitions */
	weft_packet_word lost_no_stream;
	weft_packet_word events_before; /* number of events of this stream in the packets before this one */
	weft_packet_word clock_hz;      /* ticks per second */
	weft_packet_word pair_clock;    /* a moment by the trace's clock, in ticks */
	weft_packet_word pair_wall_ns;  /* the moment of pair_clock in ns since 1970; 0 if unknown */
	weft_packet_word tid;           /* tid of the OS thread at the start of the packet */
	char thread_name[WEFT_THREAD_NAME_SIZE];
};

_Static_assert(sizeof(struct weft_packet_header) == 160, "the layout is fixed");
_Static_assert(offsetof(struct weft_packet_header, content_size) == 48, "the layout is fixed");

/* Values of the detail WEFT_DETAIL_CLAIM. */
enum weft_claim {
	WEFT_CLAIM_SURE = 0,  /* the thread worked for the promise since its last transfer or run */
	WEFT_CLAIM_DOUBT = 1, /* perhaps it did */
	WEFT_CLAIM_GUESS = 2  /* perhaps it works for the promise from now on */
};

/* Bits of the first byte (id) of an event: its op and its encoding. */
enum weft_event_bits {
	WEFT_ID_OP = 0x1f,
	WEFT_ID_INLINE = 0x20,   /* the event contains its text instead of a key */
	WEFT_ID_WIDE = 0x40,     /* ids and values have 64 bits instead of 32 */
	WEFT_ID_CUT = 0x80,      /* the text was shortened; the number of missing bytes precedes it */
	WEFT_ID_EXTENDED = 0xff, /* not an event: the id and a timestamp of 64 bits follow */
};

/* X(NAME, value, "name", "fields"): the events of the stream of definitions. */
#define WEFT_DEFINITIONS(X)                                                                                                      \
	X(STRING, 0, "string", "key: u16, text: string")                                                                         \
	X(SITE, 1, "site", "key: u16, line: u32, file: string, function: string")                                                \
	X(THREAD, 2, "thread", "instance: u32, tid: u64, name: string")                                                          \
	X(MODULE, 3, "module", "module: u16, address: u64, size: u64, path: string, build_id: string")                           \
	X(PLACE, 4, "place", "key: u16, module: u16, offset: u64")                                                               \
	X(FORM, 5, "form", "class: u8, id: u8, name: string, fields: string")

/* The detail by which an event of the system repeats a definition; the value of the event is the key.  The text of the detail
 * has four lines.  Line 1 has the kind of the definition as in WEFT_DEFINITIONS.  Line 2 has hexadecimal numbers: the line of a
 * site, the module and offset of a place, or the address and size of a module.  Line 3 has the function of a site or the build
 * id of a module.  Line 4 has the text, file or path. */
#define WEFT_DETAIL_DEFINITION 240

enum weft_definition {
#define WEFT_DEFINE_ENUM(NAME, value, name, fields) WEFT_DEFINE_##NAME = value,
	WEFT_DEFINITIONS(WEFT_DEFINE_ENUM)
#undef WEFT_DEFINE_ENUM
};

/* Fields of an op, in the order in which they are written. */
enum weft_field_bits {
	WEFT_FIELD_A = 1,
	WEFT_FIELD_B = 2,
	WEFT_FIELD_KIND = 4, /* enum weft_kind, 8 bits */
	WEFT_FIELD_WHAT = 8, /* enum weft_detail, 8 bits */
	WEFT_FIELD_SITE = 16,
	WEFT_FIELD_VALUE = 32,  /* a value of 32 bits, or of 64 if wide */
	WEFT_FIELD_WHY = 64,    /* a value of 8 bits: enum weft_idle */
	WEFT_FIELD_LOW = 128,   /* an unsigned value of 32 bits */
	WEFT_FIELD_SINCE = 256, /* a time of 64 bits in ticks */
	WEFT_FIELD_LONG = 512,  /* a value of 64 bits */
	WEFT_FIELD_TEXT = 1024
};

/* The form of an op: its name, and the names and the set of its fields. */
struct weft_op_form {
	const char *name, *a, *b, *value, *text; /* names of the op and of its fields; NULL if the op has no such field */
	uint16_t fields;
};

/* Forms of all ops, indexed by op; the array has WEFT_OP_COUNT elements. */
extern const struct weft_op_form weft__op_forms[WEFT_OP_COUNT];

/* X(NAME, "name in forms", "type in TSDL"): the types of fields. */
#define WEFT_FIELD_TYPES(X)                                                                                                      \
	X(ID, "id", NULL)        /* an id of 32 bits, or of 64 if wide */                                                        \
	X(NUMBER, "value", NULL) /* a number of 32 bits, or of 64 if wide */                                                     \
	X(TEXT, "text", NULL)    /* a key of 16 bits, or a string if inline */                                                   \
	X(STRING, "string", "string")                                                                                            \
	X(U8, "u8", "uint8_t")                                                                                                   \
	X(U16, "u16", "uint16_t")                                                                                                \
	X(U32, "u32", "uint32_t")                                                                                                \
	X(U64, "u64", "uint64_t")                                                                                                \
	X(I64, "i64", "int64_t")

enum weft_field_type {
#define WEFT_TYPE_ENUM(NAME, name, tsdl) WEFT_TYPE_##NAME,
	WEFT_FIELD_TYPES(WEFT_TYPE_ENUM)
#undef WEFT_TYPE_ENUM
	    WEFT_TYPE_COUNT
};

#define WEFT_FIELDS_MAX 16u

/* A field of a form that a definition describes as text, such as "promise: id, input: id". */
struct weft_wire_field {
	const char *name; /* not NUL-terminated */
	uint32_t name_bytes;
	enum weft_field_type type;
	uint16_t bit; /* enum weft_field_bits: the meaning of the field to this version; 0 if it has none */
};

struct weft_wire_form {
	struct weft_wire_field fields[WEFT_FIELDS_MAX];
	unsigned count;
};

/* Makes the form of an op of this version. */
void weft__form_of_op(struct weft_wire_form *out, uint8_t op);

/* Parses the fields of a form; the names of the fields point into `text`.  Returns false if the text is no form, or has types
 * that this version does not know. */
bool weft__form_parse(struct weft_wire_form *out, const char *text, size_t bytes);

/* Sets the bits of the fields to the bits that they have in `op`.  Returns false if the op has a field that the form lacks. */
bool weft__form_match(struct weft_wire_form *form, uint8_t op);

#define WEFT_COMPACT_HEADER 5u   /* size of the id and 32 bits of time */
#define WEFT_EXTENDED_HEADER 10u /* size of 255, the id and 64 bits of time */

/* Limit of the gap before a compact timestamp.  A compact timestamp is used only if the previous event is younger than 2^29
 * ticks.  With this limit, eight nested signal handlers that interrupt each other between reading the clock and reserving space
 * stay within 2^32 ticks. */
#define WEFT_COMPACT_GAP_BITS 29

/* Returns the size of an event from its id byte to its end, without an inline text, which follows; 0 for an invalid id. */
unsigned weft__payload_bytes(uint8_t id);

/* Returns the size of an event of any form, from its id byte to its end, without its strings, which follow. */
unsigned weft__form_payload_bytes(const struct weft_wire_form *form, uint8_t id);

/* An event to write. */
struct weft_wire_event {
	int64_t a, b, value;
	const char *text; /* text if key is 0; NUL bytes in it become SUB, 0x1a */
	uint32_t text_bytes;
	uint32_t cut;  /* number of bytes by which the text was already shortened */
	uint16_t key;  /* key of an interned text, or 0 */
	uint16_t site; /* key of an interned site, or 0 */
	uint8_t op;
	uint8_t kind; /* enum weft_kind or enum weft_detail */
};

/* Returns the id byte that the event needs. */
uint8_t weft__event_id(const struct weft_wire_event *event);

/* Returns the size of the event after its header, in bytes. */
size_t weft__event_payload(const struct weft_wire_event *event, uint8_t id);

/* Shortens event->text so that the event needs at most `max_bytes` after its header.  An ellipsis replaces the last three
 * bytes; .cut is the number of bytes that were cut off, without these three. */
void weft__event_cut(struct weft_wire_event *event, size_t max_bytes);

/* Writes the header and the fields of an event; the caller must have checked the space.  Returns the end. */
unsigned char *weft__event_write(
    unsigned char *to, const struct weft_wire_event *event, uint8_t id, uint64_t time, bool extended);

/* A definition to write.  Definitions always have the extended header. */
struct weft_wire_definition {
	enum weft_definition what;
	uint16_t key;         /* for a string, site or place: its key, from 1; for a module: its number, from 1 */
	uint16_t module;      /* for a place: its module; 0 if it is unknown */
	uint8_t stream_class; /* form */
	uint8_t id;           /* for a form: the op, or the id of the definition */
	uint32_t line;        /* site */
	uint32_t stream;      /* for a thread: instance of the stream that the thread writes from `time` on */
	uint64_t tid;         /* thread */
	/* for a module: offset to add to addresses of the file; for a place: address in the file, or in memory if it has no
	 * module */
	uint64_t address;
	uint64_t size;      /* for a module: number of bytes from the address to the end of the module */
	const char *text;   /* text of a string; file of a site; name of a thread or form; path of a module */
	const char *second; /* function of a site; build-id of a module, in hexadecimal digits; fields of a form */
	uint32_t text_bytes, second_bytes;
};

size_t weft__definition_bytes(const struct weft_wire_definition *definition);
unsigned char *weft__definition_write(unsigned char *to, const struct weft_wire_definition *definition, uint64_t time);

/* Initializes the header of an empty packet of packet_bytes.  The caller sets the other fields of the header. */
void weft__packet_init(struct weft_packet_header *header, const uint8_t uuid[16], enum weft_stream_class stream_class,
    uint32_t instance, uint64_t packet_bytes);

/* A form that a trace defines, for an op or a definition that this version lacks or defines in another way. */
struct weft_wire_extra {
	const char *name;
	uint8_t stream_class; /* WEFT_CLASS_EVENTS or WEFT_CLASS_DEFINITIONS */
	uint8_t id;           /* the op, or the id of the definition */
	struct weft_wire_form form;
};

/* The facts in the metadata, apart from the layout. */
struct weft_metadata {
	uint8_t uuid[16];
	uint64_t clock_hz;
	int64_t clock_origin_ns; /* time of tick 0, in ns since 1970 */
	/* "tsc" or "cntvct": counter of an x86 or arm CPU; "monotonic": CLOCK_MONOTONIC; "caller": clock function of the program,
	 * or "counter" if that function returns a hardware counter */
	const char *clock_source;
	const char *clock_measured;           /* source of the frequency: "exact", "measured", "hurried" */
	const char *host, *process, *command; /* NULL if unknown */
	const char *runtimes;                 /* runtimes and functions that the recorder intercepted; NULL if there are none */
	const char *mode, *state;             /* mode "ring" or "grow"; state "recording", "finished", "stopped" or "seen" */
	int64_t seen_ns; /* for the state "seen": time when memory was looked at, in ns since 1970; 0 for other states */
	uint64_t pid;
	const char *recorder; /* "BOOT NAMESPACE PID START": a unique name of the process; NULL if it is unknown */
	/* Counts of a finished trace, from which a reader computes what is missing. */
	uint64_t definitions; /* number of packets of definitions; 0 if it is unknown */
	/* by instance: number of packets since the recording started, including overwritten packets; 0 if it is unknown.  NULL:
	 * no counts */
	const uint64_t *stream_packets;
	size_t stream_count;
	const struct weft_wire_extra *extra; /* forms of ops and definitions that this version lacks */
	size_t extra_count;
	bool brief; /* true to omit the layout of events, which the version implies, for packets of class WEFT_CLASS_METADATA */
};

/* Formats the metadata (TSDL 1.8), NUL-terminated; returns the whole length, as snprintf does. */
size_t weft__metadata_format(char *buf, size_t size, const struct weft_metadata *metadata);

/* A fence. gcc's thread sanitizer does not support fences, and is used only where only the compiler could reorder the two
 * sides.
 */
#ifdef __SANITIZE_THREAD__
#define WEFT__FENCE(order) __atomic_signal_fence(order)
#else
#define WEFT__FENCE(order) __atomic_thread_fence(order)
#endif

/* Converts ticks to ns exactly as babeltrace2 does; values that do not fit become INT64_MAX. */
static inline int64_t weft__ticks_ns(uint64_t ticks, uint64_t hz)
{
	if (hz == 1000000000u)
		return ticks > INT64_MAX ? INT64_MAX : (int64_t)ticks;
	const double ns = 1e9 * (double)ticks / (double)hz;
	return ns < 9223372036854775808.0 ? (int64_t)ns : INT64_MAX;
}

/* Splits origin_ns, the clock's offset in TSDL, into whole seconds and ticks. */
void weft__origin_split(int64_t origin_ns, uint64_t hz, int64_t *offset_s, uint64_t *offset_ticks);

#endif
