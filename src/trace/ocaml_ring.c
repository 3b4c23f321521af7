/* ocaml_ring.c: reads the rings of OCaml's runtime events (ocaml_ring.h).
 * SPDX-License-Identifier: ISC */
#include "trace/ocaml_ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"

enum { HEADER = WEFT__OCAML_HEADER, RING_HEADER = 80, DOMAINS_MAX = 4096, WORD = 8 };

/* Types of events, with the numbers that the file uses. */
enum { FILLER, LIFECYCLE, BEGIN, END, COUNTER, ALLOC, CUSTOM = 4 };

/* ---- Names ---- */

#define ALONE(name, why)                                                                                                         \
	{                                                                                                                        \
		name, "gc, " why, "gc, " why ", all domains stop"                                                                \
	}

/* Phases of the collector, with the numbers that OCaml 5.3 uses. */
static const struct weft__ocaml_phase phases[] = {
    ALONE("explicit_gc_set", "Gc.set"),
    ALONE("explicit_gc_stat", "Gc.stat"),
    ALONE("explicit_gc_minor", "Gc.minor"),
    ALONE("explicit_gc_major", "Gc.major"),
    ALONE("explicit_gc_full_major", "Gc.full_major"),
    ALONE("explicit_gc_compact", "Gc.compact"),
    ALONE("major", "major"),
    ALONE("major_sweep", "major"),
    ALONE("major_mark_roots", "major"),
    ALONE("major_memprof_roots", "major"),
    ALONE("major_mark", "major"),
    ALONE("minor", "minor"),
    ALONE("minor_local_roots", "minor"),
    ALONE("minor_memprof_roots", "minor"),
    ALONE("minor_memprof_clean", "minor"),
    ALONE("minor_finalized", "minor"),
    ALONE("explicit_gc_major_slice", "Gc.major_slice"),
    ALONE("finalise_update_first", "finalisers"),
    ALONE("finalise_update_last", "finalisers"),
    {"interrupt_remote", NULL, NULL},
    ALONE("major_ephe_mark", "major"),
    ALONE("major_ephe_sweep", "major"),
    ALONE("major_finish_marking", "major"),
    ALONE("major_gc_cycle_domains", "major cycle"),
    ALONE("major_gc_phase_change", "major phase"),
    ALONE("major_gc_stw", "major cycle"),
    ALONE("major_mark_opportunistic", "major"),
    ALONE("major_slice", "major slice"),
    ALONE("major_finish_cycle", "major"),
    ALONE("minor_clear", "minor"),
    ALONE("minor_finalizers_oldify", "minor"),
    ALONE("minor_global_roots", "minor"),
    ALONE("minor_leave_barrier", "minor"),
    {"stw_api_barrier", NULL, NULL},
    {"stw_handler", NULL, NULL},
    {"stw_leader", NULL, NULL},
    ALONE("major_finish_sweeping", "major"),
    ALONE("major_memprof_clean", "major"),
    ALONE("minor_finalizers_admin", "minor"),
    ALONE("minor_remembered_set", "minor"),
    ALONE("minor_remembered_set_promote", "minor"),
    ALONE("minor_local_roots_promote", "minor"),
    {"domain_condition_wait", NULL, NULL},
    ALONE("domain_resize_heap_reservation", "minor heaps are resized"),
    ALONE("compaction", "compaction"),
    ALONE("compaction_evacuate", "compaction"),
    ALONE("compaction_forward", "compaction"),
    ALONE("compaction_release", "compaction"),
    ALONE("empty_minor", "minor"),
};

enum { PHASES = sizeof phases / sizeof phases[0], PHASE_WAIT = 42, PHASES_OLD = 44, MINOR = 11, MINOR_OLD = 10 };

const struct weft__ocaml_phase *weft__ocaml_phase(const struct weft__ocaml_file *file, uint16_t id)
{
	static const struct weft__ocaml_phase unknown = {NULL, NULL, NULL};
	if (file->is_newer)
		return id < PHASES ? &phases[id] : &unknown;
	/* OCaml 5.3 inserted phases of memprof in four places. */
	return id < PHASES_OLD ? &phases[id + (id >= 9) + 2 * (id >= 12) + (id >= 34)] : &unknown;
}

bool weft__ocaml_is_wait(const struct weft__ocaml_phase *phase)
{
	return phase == &phases[PHASE_WAIT];
}

static const char *const counters[] = {"force_minor_alloc_small", "force_minor_make_vect", "force_minor_set_minor_heap_size",
    "force_minor_memprof", "minor_promoted", "minor_allocated", "request_major_alloc_shr", "request_major_adjust_gc_speed",
    "request_minor_realloc_ref_table", "request_minor_realloc_ephe_ref_table", "request_minor_realloc_custom_table",
    "major_heap_pool_words", "major_heap_pool_live_words", "major_heap_large_words", "major_heap_pool_frag_words",
    "major_heap_pool_live_blocks", "major_heap_large_blocks", "major_heap_words", "major_allocated_words", "major_allocated_work",
    "major_dependent_work", "major_extra_work", "major_work_counter", "major_alloc_counter", "major_slice_target",
    "major_slice_budget"};

enum { COUNTERS = sizeof counters / sizeof counters[0], COUNTER_PROMOTED = 4, COUNTERS_OLD = 17 };

const char *weft__ocaml_counter(uint16_t id)
{
	return id < COUNTERS ? counters[id] : NULL;
}

struct weft_str weft__ocaml_name(const struct weft__ocaml_file *file, uint16_t id)
{
	const struct weft_blob *blob = file->blob;
	const uint64_t at = file->names_at + (uint64_t)id * WEFT__OCAML_NAME;
	if (!file->names_at || id >= WEFT__OCAML_NAMES || at + WEFT__OCAML_NAME > blob->size)
		return (struct weft_str){"", 0};
	const char *name = (const char *)blob->bytes + at;
	return (struct weft_str){name, (uint32_t)strnlen(name, WEFT__OCAML_NAME)};
}

/* ---- Word access ---- */

static inline uint64_t load_word(const unsigned char *at, bool is_big)
{
	const uint64_t value = weft_load_u64(at);
	return is_big ? __builtin_bswap64(value) : value;
}

struct header {
	uint64_t domains, ring_bytes, words, headers_at, data_at, names_at;
	bool is_big;
};

static bool read_header(struct header *out, const unsigned char *bytes, size_t size)
{
	if (size < HEADER)
		return false;
	struct header h = {.is_big = weft_load_u64(bytes) != 1};
	if (load_word(bytes, h.is_big) != 1)
		return false;
	h.domains = load_word(bytes + 1 * WORD, h.is_big);
	h.ring_bytes = load_word(bytes + 3 * WORD, h.is_big);
	h.words = load_word(bytes + 4 * WORD, h.is_big);
	h.headers_at = load_word(bytes + 5 * WORD, h.is_big);
	h.data_at = load_word(bytes + 6 * WORD, h.is_big);
	h.names_at = load_word(bytes + 7 * WORD, h.is_big);
	/* The file has no magic number, so everything that can be checked is checked. */
	if (h.domains == 0 || h.domains > DOMAINS_MAX || load_word(bytes + 2 * WORD, h.is_big) != RING_HEADER || h.words == 0 ||
	    h.words > UINT32_MAX || (h.words & (h.words - 1)) || h.ring_bytes != h.words * WORD || h.headers_at < HEADER - WORD ||
	    h.headers_at > UINT32_MAX || h.data_at > UINT32_MAX || h.data_at < h.headers_at + h.domains * RING_HEADER ||
	    (h.names_at && h.names_at != h.data_at + h.domains * h.ring_bytes))
		return false;
	*out = h;
	return true;
}

bool weft__ocaml_is(const unsigned char *bytes, size_t size)
{
	struct header header;
	return read_header(&header, bytes, size);
}

uint64_t weft__ocaml_rings_bytes(const unsigned char bytes[WEFT__OCAML_HEADER])
{
	struct header header;
	const uint64_t most = (uint64_t)DOMAINS_MAX * RING_HEADER;
	const uint64_t size = read_header(&header, bytes, HEADER) ? header.data_at - HEADER : 0;
	return size < most ? size : most;
}

/* Computes the size of a custom event.  The last byte of the event is the number of unused bytes before it. */
static bool cut_custom(struct weft__ocaml_event *ev)
{
	const unsigned char unused = ev->size ? ev->bytes[ev->size - 1] : UINT8_MAX;
	if (unused >= WORD)
		return false;
	ev->size -= 1u + unused;
	return true;
}

bool weft__ocaml_read(
    const struct weft__ocaml_file *file, const struct weft__ocaml_ring *ring, uint64_t *at, struct weft__ocaml_event *out)
{
	enum { NONE = WEFT__OCAML_UNKNOWN };
	static const uint8_t whats[32] = {NONE, WEFT__OCAML_LIFECYCLE, WEFT__OCAML_BEGIN, WEFT__OCAML_END, WEFT__OCAML_COUNTER,
	    WEFT__OCAML_ALLOC, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, /* user events: */ WEFT__OCAML_UNIT,
	    WEFT__OCAML_INT, WEFT__OCAML_SPAN_BEGIN, WEFT__OCAML_SPAN_END, WEFT__OCAML_CUSTOM, NONE, NONE, NONE, NONE, NONE, NONE,
	    NONE, NONE, NONE, NONE, NONE};
	const uint64_t mask = file->words - 1;
	const bool is_big = file->is_big;
	while (*at < ring->tail) {
		const unsigned char *place = ring->words + (*at & mask) * WORD;
		const uint64_t item = load_word(place, is_big), length = item >> 54;
		const unsigned kind = item >> 49 & 31;
		*at += length;
		if (kind == FILLER)
			continue;
		out->time_ns = load_word(place + WORD, is_big);
		out->value = 0;
		out->bytes = place + 2 * WORD;
		out->size = (size_t)(length - 2) * WORD;
		out->id = item >> 36 & 0x1fff;
		out->what = whats[kind];
		out->has_value = false;
		out->is_user = kind >> 4;
		if (out->what == WEFT__OCAML_CUSTOM && !cut_custom(out))
			out->what = WEFT__OCAML_UNKNOWN;
		if (out->what == WEFT__OCAML_UNKNOWN)
			out->value = (int64_t)(kind & 15);
		else if ((out->what == WEFT__OCAML_INT || out->what == WEFT__OCAML_COUNTER ||
			     out->what == WEFT__OCAML_LIFECYCLE) &&
			 out->size >= WORD) {
			out->has_value = true;
			out->value = (int64_t)load_word(out->bytes, is_big);
		}
		return true;
	}
	return false;
}

/* ---- Open ---- */

/* The file's version is 1 in all releases of OCaml, so the release is inferred: from counters that only 5.3 has, and from the
 * counter minor_promoted, which is set in the phase `minor`. */
struct versions {
	uint16_t open[32]; /* phases that have not ended, the innermost last */
	unsigned depth;
	bool is_decided;
};

static void infer_version(struct weft__ocaml_file *file, struct versions *v, unsigned type, uint16_t id)
{
	if (type == BEGIN && v->depth < sizeof v->open / sizeof v->open[0])
		v->open[v->depth++] = id;
	else if (type == END) {
		for (unsigned i = v->depth; i-- > 0;)
			if (v->open[i] == id) {
				v->depth = i;
				break;
			}
	} else if (type == COUNTER && id >= COUNTERS_OLD) {
		v->is_decided = file->is_newer = true;
	} else if (type == COUNTER && id == COUNTER_PROMOTED && v->depth) {
		const uint16_t phase = v->open[v->depth - 1];
		v->is_decided = phase == MINOR || phase == MINOR_OLD;
		file->is_newer = phase == MINOR;
	}
}

/* Returns what is wrong with the event whose first word is `item`; words_left is the number of words up to the end or the tail
 * of the ring.  NULL: nothing. */
static const char *find_fault(uint64_t item, uint64_t words_left)
{
	const uint64_t length = item >> 54;
	const bool is_filler = !(item >> 53 & 1) && (item >> 49 & 15) == FILLER;
	if (length == 0)
		return "no event here";
	if (length > words_left)
		return "an event is longer than the rest of the ring buffer";
	return length < 2 && !is_filler ? "an event without a time" : NULL;
}

static void check_ring(
    struct weft__ocaml_file *file, struct weft_trace *trace, struct weft__ocaml_ring *ring, struct versions *versions)
{
	const uint64_t data = (uint64_t)(ring->words - file->blob->bytes), size = file->blob->size;
	uint64_t at = ring->head;
	versions->depth = 0;
	while (at < ring->tail) {
		const uint64_t place = at & (file->words - 1), offset = data + place * WORD;
		const uint64_t left = offset < size ? (size - offset) / WORD : 0;
		uint64_t words_left = file->words - place;
		words_left = words_left < ring->tail - at ? words_left : ring->tail - at;
		words_left = words_left < left ? words_left : left;
		const unsigned char *bytes = words_left ? file->blob->bytes + offset : NULL;
		const uint64_t item = words_left ? load_word(bytes, file->is_big) : 0;
		const char *fault = words_left ? find_fault(item, words_left) : "the file ends here";
		if (fault) {
			weft__trace_skip(trace, file->blob, ring->number, offset, (ring->tail - at) * WORD,
			    "%s; the rest of the ring buffer is skipped", fault);
			ring->tail = at;
			ring->is_damaged = true;
			break;
		}
		const unsigned type = item >> 49 & 15;
		const uint16_t id = item >> 36 & 0x1fff;
		at += item >> 54;
		if (item >> 53 & 1) {
			const uint64_t number =
			    type == CUSTOM && item >> 54 > 2 ? 1 + (weft_load_u64(bytes + 2 * WORD) & UINT32_MAX) : 0;
			if (number > file->most[id])
				file->most[id] = number;
		}
		if (item >> 53 & 1 || type != FILLER) {
			ring->events++;
			ring->last_ns = load_word(bytes + WORD, file->is_big);
		}
		if (item >> 53 & 1)
			continue;
		if (type == LIFECYCLE) {
			file->is_stopped |= id == WEFT__OCAML_RING_STOP;
			if (item >> 54 > 2 && (id == WEFT__OCAML_RING_START || id == WEFT__OCAML_DOMAIN_SPAWN))
				file->pid = load_word(bytes + 2 * WORD, file->is_big);
		}
		if (!versions->is_decided)
			infer_version(file, versions, type, id);
	}
}

/* Reads the head again.  The head moves before words are overwritten, so words after the new head were copied intact. */
static uint64_t read_head(struct weft_trace *trace, const struct weft_blob *blob, uint64_t header, bool is_big)
{
	unsigned char bytes[WORD];
	const bool is_read = trace->source.reread && trace->source.reread(&trace->source, blob, header, bytes, sizeof bytes);
	return is_read ? load_word(bytes, is_big) : 0;
}

static void add_ring(struct weft__ocaml_file *file, struct weft_trace *trace, const struct header *h, uint32_t number)
{
	const struct weft_blob *blob = file->blob;
	const uint64_t header = h->headers_at + (uint64_t)number * RING_HEADER, data = h->data_at + number * h->ring_bytes;
	if (header + 2 * WORD > blob->size)
		return;
	const uint64_t head = load_word(blob->bytes + header, h->is_big),
		       tail = load_word(blob->bytes + header + WORD, h->is_big);
	if (tail == 0 && head == 0)
		return;
	struct weft__ocaml_ring *ring = &file->rings[file->ring_count++];
	*ring = (struct weft__ocaml_ring){
	    .words = blob->bytes + (data < blob->size ? data : blob->size), .head = head, .tail = tail, .number = number};
	if (tail < head || tail - head > h->words || tail > UINT64_MAX / WORD) {
		weft__trace_skip(trace, blob, number, header, 0, "impossible bounds of a ring buffer: word %llu to word %llu",
		    (unsigned long long)head, (unsigned long long)tail);
		ring->head = ring->tail = 0;
		ring->is_damaged = true;
		return;
	}
	const uint64_t now = read_head(trace, blob, header, h->is_big);
	ring->head = now <= head ? head : now < tail ? now : tail;
	ring->lost = ring->head;
}

int weft__ocaml_open(struct weft__ocaml_file *file, struct weft_trace *trace, const struct weft_blob *blob)
{
	struct header h;
	*file = (struct weft__ocaml_file){.blob = blob};
	if (!read_header(&h, blob->bytes, blob->size))
		return WEFT_EFORMAT;
	file->is_big = h.is_big;
	file->words = h.words;
	file->names_at = h.names_at;
	file->rings = calloc(h.domains, sizeof *file->rings);
	if (!file->rings)
		return WEFT_ENOMEM;
	for (uint32_t i = 0; i < h.domains; i++)
		add_ring(file, trace, &h, i);
	struct versions versions = {0};
	for (size_t i = 0; i < file->ring_count; i++)
		check_ring(file, trace, &file->rings[i], &versions);
	return WEFT_OK;
}

void weft__ocaml_close(struct weft__ocaml_file *file)
{
	free(file->rings);
	file->rings = NULL;
}
