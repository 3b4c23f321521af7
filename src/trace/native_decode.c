/* native_decode.c: decodes packets to events.
 *
 * Nearly all events are plain: they have a fixed size, and the id byte determines the offset of every field.  Plain events are
 * decoded without branches on their type: an absent field is loaded too and then masked.
 * SPDX-License-Identifier: ISC */
#include <string.h>

#include "base/cursor.h"
#include "trace/native.h"

/* The fields of a plain event, including masked ones, are within this many bytes. */
#define REACH 40

/* Adds the forms of an op of this version. */
static void add_op(struct native_forms *all, unsigned op)
{
	for (unsigned bits = 0; bits < 8; bits++) {
		unsigned id = op | bits << 5;
		struct native_form *f = &all->forms[id];
		unsigned payload = weft__payload_bytes((uint8_t)id);
		if (!payload)
			continue;
		f->op = (uint8_t)op;
		unsigned has = weft__op_forms[op].fields, at = WEFT_COMPACT_HEADER;
		f->bytes = (uint8_t)(WEFT_COMPACT_HEADER + payload - 1);
		f->is_plain = !bits && !(has & (WEFT_FIELD_SINCE | WEFT_FIELD_WHY | WEFT_FIELD_WHAT | WEFT_FIELD_LONG));
		if (has & WEFT_FIELD_A) {
			f->a_mask = UINT32_MAX;
			at += 4;
		}
		if (has & WEFT_FIELD_B) {
			f->b_mask = UINT32_MAX;
			at += 4;
		}
		f->kind_at = (uint8_t)at;
		if (has & WEFT_FIELD_KIND) {
			f->kind_mask = UINT8_MAX;
			at += 1;
		}
		f->site_at = (uint8_t)at;
		if (has & WEFT_FIELD_SITE) {
			f->site_mask = UINT16_MAX;
			at += 2;
		}
		f->value_at = (uint8_t)at;
		if (has & (WEFT_FIELD_VALUE | WEFT_FIELD_LOW)) {
			f->value_mask = UINT32_MAX;
			f->value_sign = has & WEFT_FIELD_VALUE ? (uint32_t)INT32_MIN : 0;
			at += 4;
		}
		f->key_at = (uint8_t)at;
		if (has & WEFT_FIELD_TEXT)
			f->key_mask = UINT16_MAX;
		all->plain_bytes[id] = f->is_plain ? f->bytes : 0;
		const bool is_carried = op == WEFT_OP_SENT || op == WEFT_OP_RECEIVED || op == WEFT_OP_DETAIL;
		all->other_bytes[id] = is_carried ? 0 : f->bytes;
	}
}

void weft__native_forms(struct native *n)
{
	for (unsigned op = 0; op < WEFT_OP_COUNT; op++) {
		if (op < WEFT_OP_COUNT_1)
			add_op(&n->forms[0], op);
		add_op(&n->forms[1], op);
	}
}

void weft__native_add_form(struct native *n, size_t extra)
{
	struct weft_wire_extra *e = &n->extras.items[extra];
	bool known = e->id < WEFT_OP_COUNT && weft__form_match(&e->form, e->id);
	for (unsigned bits = 0; bits < 8; bits++) {
		unsigned id = e->id | bits << 5, payload = weft__form_payload_bytes(&e->form, (uint8_t)id);
		n->forms[1].plain_bytes[id] = n->forms[1].other_bytes[id] = 0;
		n->forms[1].forms[id] = (struct native_form){.bytes = payload ? (uint8_t)(WEFT_COMPACT_HEADER + payload - 1) : 0,
		    .op = known ? e->id : WEFT_EVENT_OTHER,
		    .is_extra = true,
		    .extra = (uint16_t)extra};
	}
}

/* Loads a value in host order on little-endian hosts: one instruction each. */
static inline uint32_t load_u32(const unsigned char *p)
{
	return weft_load_u32(p);
}

static int64_t ticks_to_ns(const struct native *n, uint64_t ticks)
{
	return weft__ticks_ns(ticks, n->clock.hz);
}

static void mark_damage(struct weft_trace *trace, struct native_cursor *c, const unsigned char *at, const char *what)
{
	const struct native *n = trace->state;
	const struct native_packet *p = &n->packets.items[c->packet];
	weft__trace_skip(trace, &trace->source.blobs[p->blob], p->index, p->offset + (uint64_t)(at - p->bytes),
	    (uint64_t)(c->stop - at), "%s", what);
	/* If the file is complete, bytes that were read before may be damaged too. */
	if (p->is_cut)
		weft__trace_mark_placed(trace, 1);
	c->at = c->stop;
	c->is_damaged = c->is_batch_damaged = true;
}

static uint32_t get_site(const struct native *n, uint64_t key)
{
	return n->site_index[key < n->key_count ? key : 0];
}

/* Returns true if an event consists of zeros.  An event of zeros would create promise 0, which recorders never use. */
static bool is_zeros(const struct weft_cursor *in)
{
	static const unsigned char zeros[WEFT_COMPACT_HEADER + 8];
	return weft_cursor_left(in) >= sizeof zeros && memcmp(in->at, zeros, sizeof zeros) == 0;
}

static int64_t since_ns(const struct native *n, uint64_t ticks)
{
	return ticks ? ticks_to_ns(n, ticks) : 0;
}

bool weft__native_read_field(
    const struct native *n, struct weft_cursor *in, const struct weft_wire_field *f, uint8_t id, struct weft_field *out)
{
	uint8_t byte;
	uint16_t half;
	uint32_t word;
	uint64_t two;
	*out = (struct weft_field){.name = {f->name, f->name_bytes}, .is_unsigned = f->type == WEFT_TYPE_U64};
	switch (f->type) {
	case WEFT_TYPE_TEXT:
		out->is_text = true;
		if (id & WEFT_ID_CUT && !weft_read_u32(in, &word))
			return false;
		if (id & WEFT_ID_INLINE)
			return weft_read_string(in, &out->text);
		if (!weft_read_u16(in, &half))
			return false;
		out->text = weft__native_text(n, half);
		return true;
	case WEFT_TYPE_STRING: out->is_text = true; return weft_read_string(in, &out->text);
	case WEFT_TYPE_U8:
		if (!weft_read_u8(in, &byte))
			return false;
		out->value = byte;
		return true;
	case WEFT_TYPE_U16:
		if (!weft_read_u16(in, &half))
			return false;
		out->value = half;
		return true;
	case WEFT_TYPE_U32:
		if (!weft_read_u32(in, &word))
			return false;
		out->value = word;
		return true;
	case WEFT_TYPE_ID:
	case WEFT_TYPE_NUMBER:
		if (!(id & WEFT_ID_WIDE)) {
			if (!weft_read_u32(in, &word))
				return false;
			out->value = (int32_t)word;
			return true;
		} /* fall through */
	default:
		if (!weft_read_u64(in, &two))
			return false;
		out->value = (int64_t)two;
		return true;
	}
}

/* Stores a field that this version knows, too. */
static void set_field(const struct native *n, struct weft_event *e, uint16_t bit, const struct weft_field *field)
{
	switch (bit) {
	case WEFT_FIELD_A: e->a = field->value; break;
	case WEFT_FIELD_B: e->b = field->value; break;
	case WEFT_FIELD_KIND:
	case WEFT_FIELD_WHAT: e->kind = (uint8_t)field->value; break;
	case WEFT_FIELD_SITE: e->site = get_site(n, (uint64_t)field->value); break;
	case WEFT_FIELD_SINCE: e->value = since_ns(n, (uint64_t)field->value); break;
	case WEFT_FIELD_TEXT: e->text = field->text; break;
	case 0: break;
	default: e->value = field->value; break;
	}
}

/* The place of an event is the key of a site.  Stored as a site, the place keeps its meaning in joined traces. */
static void set_place(const struct native *n, struct weft_event *e)
{
	if (e->kind == WEFT_DETAIL_PLACE || e->kind == WEFT_DETAIL_CALLBACK)
		e->site = get_site(n, (uint64_t)e->value & UINT16_MAX);
}

/* Decodes the fields of an event whose form the trace defines; its header was already read. */
static bool decode_extra(
    const struct native *n, struct weft_cursor *in, const struct native_form *f, uint8_t id, struct weft_event *e)
{
	const struct weft_wire_form *form = &n->extras.items[f->extra].form;
	const unsigned char *begin = in->at;
	*e = (struct weft_event){.op = f->op, .site = WEFT_NO_SITE, .text = weft__native_text(n, 0)};
	for (unsigned i = 0; i < form->count; i++) {
		struct weft_field field;
		if (!weft__native_read_field(n, in, &form->fields[i], id, &field))
			return false;
		if (f->op != WEFT_EVENT_OTHER)
			set_field(n, e, form->fields[i].bit, &field);
	}
	if (f->op == WEFT_OP_DETAIL)
		set_place(n, e);
	if (f->op == WEFT_EVENT_OTHER) {
		e->value = f->extra;
		e->kind = id;
		e->text = (struct weft_str){(const char *)begin, (uint32_t)(in->at - begin)};
	}
	return true;
}

bool weft__native_field(const struct weft_trace *trace, const struct weft_event *event, unsigned index, struct weft_field *out)
{
	const struct native *n = trace->state;
	const struct weft_wire_form *form = &n->extras.items[event->value].form;
	const unsigned char *bytes = (const unsigned char *)event->text.ptr;
	struct weft_cursor in = {bytes, bytes + event->text.len};
	for (unsigned i = 0; i < form->count && i <= index; i++)
		if (!weft__native_read_field(n, &in, &form->fields[i], event->kind, out))
			return false;
	return index < form->count;
}

/* Decodes the fields of an event of this version; its header was already read. */
static bool decode_op(const struct native *n, struct weft_cursor *in, uint8_t id, struct weft_event *e)
{
	uint8_t byte;
	uint16_t half;
	uint32_t word;
	uint64_t two;
	unsigned op = id & WEFT_ID_OP, has = weft__op_forms[op].fields;
	bool wide = id & WEFT_ID_WIDE;
	*e = (struct weft_event){.op = (uint8_t)op, .site = WEFT_NO_SITE, .text = weft__native_text(n, 0)};
	int64_t *const words[] = {&e->a, &e->b};
	for (unsigned i = 0; i < 2; i++)
		if (has & WEFT_FIELD_A << i) {
			if (wide ? !weft_read_u64(in, &two) : !weft_read_u32(in, &word))
				return false;
			*words[i] = wide ? (int64_t)two : (int32_t)word;
		}
	if (has & (WEFT_FIELD_KIND | WEFT_FIELD_WHAT) && !weft_read_u8(in, &e->kind))
		return false;
	if (has & WEFT_FIELD_SITE) {
		if (!weft_read_u16(in, &half))
			return false;
		e->site = get_site(n, half);
	}
	if (has & WEFT_FIELD_VALUE) {
		if (wide ? !weft_read_u64(in, &two) : !weft_read_u32(in, &word))
			return false;
		e->value = wide ? (int64_t)two : (int32_t)word;
	}
	if (has & WEFT_FIELD_WHY) {
		if (!weft_read_u8(in, &byte))
			return false;
		e->value = byte;
	}
	if (has & WEFT_FIELD_LOW) {
		if (!weft_read_u32(in, &word))
			return false;
		e->value = word;
	}
	if (has & (WEFT_FIELD_SINCE | WEFT_FIELD_LONG)) {
		if (!weft_read_u64(in, &two))
			return false;
		e->value = has & WEFT_FIELD_LONG ? (int64_t)two : since_ns(n, two);
	}
	if (has & WEFT_FIELD_WHAT)
		set_place(n, e);
	if (has & WEFT_FIELD_TEXT) {
		if (id & WEFT_ID_CUT && !weft_read_u32(in, &word))
			return false;
		if (id & WEFT_ID_INLINE)
			return weft_read_string(in, &e->text);
		if (!weft_read_u16(in, &half))
			return false;
		e->text = weft__native_text(n, half);
	}
	return true;
}

/* Decodes an event of any form; returns false if it is damaged. */
static bool decode_any(
    const struct native *n, const struct native_forms *forms, struct weft_cursor *in, uint64_t *last, struct weft_event *e)
{
	uint8_t id;
	uint32_t word;
	uint64_t time;
	if (!weft_read_u8(in, &id))
		return false;
	if (id == WEFT_ID_EXTENDED) {
		if (!weft_read_u8(in, &id) || !weft_read_u64(in, &time))
			return false;
		*last = time;
	} else {
		if (!weft_read_u32(in, &word))
			return false;
		*last += (uint32_t)(word - (uint32_t)*last);
	}
	if (!forms->forms[id].bytes)
		return false;
	if (forms->forms[id].is_extra)
		return decode_extra(n, in, &forms->forms[id], id, e);
	return decode_op(n, in, id, e);
}

/* Returns true if the event at `at` has a site without a definition. */
static bool has_unknown_site(const struct native *n, const unsigned char *at)
{
	const bool extended = at[0] == WEFT_ID_EXTENDED;
	const unsigned id = at[extended], has = weft__op_forms[id & WEFT_ID_OP].fields, word = id & WEFT_ID_WIDE ? 8 : 4;
	if (!(has & WEFT_FIELD_SITE))
		return false;
	at += extended ? WEFT_EXTENDED_HEADER : WEFT_COMPACT_HEADER;
	at += (has & WEFT_FIELD_A ? word : 0) + (has & WEFT_FIELD_B ? word : 0) + (has & WEFT_FIELD_KIND ? 1 : 0);
	const uint16_t key = weft_load_u16(at);
	return key != 0 && get_site(n, key) == WEFT_NO_SITE;
}

bool weft__native_decode(
    const struct native *n, unsigned version, struct weft_cursor *in, uint64_t *last, struct weft_event *out, bool *is_unknown)
{
	const unsigned char *at = in->at;
	const struct native_forms *forms = &n->forms[version - 1];
	if (is_zeros(in) || !decode_any(n, forms, in, last, out))
		return false;
	*is_unknown = weft__native_is_unknown(out->text) ||
		      (!forms->forms[at[at[0] == WEFT_ID_EXTENDED]].is_extra && has_unknown_site(n, at));
	return true;
}

/* Returns how far a packet is already known to have no event later than `cut`. */
static struct native_walk known_walk(const struct native *n, const struct weft_packet *packet, size_t size, uint64_t cut)
{
	const struct weft_position *const positions[] = {n->known, n->from};
	for (size_t i = 0; i < 2; i++) {
		const struct weft_stream_position *reached =
		    positions[i] ? weft_position_of_stream(positions[i], packet->instance) : NULL;
		if (reached && reached->sequence == packet->sequence && reached->bytes <= size && reached->last <= cut)
			return (struct native_walk){reached->sequence, reached->bytes, reached->last, reached->last};
	}
	return (struct native_walk){packet->sequence, packet->header_bytes, packet->begin, packet->begin};
}

size_t weft__native_end_at(const struct native *n, const struct weft_packet *packet, const unsigned char *bytes, size_t size,
    uint64_t cut, struct native_walk *walk)
{
	struct weft_event event;
	if (!walk->bytes || walk->sequence != packet->sequence || walk->bytes > size || walk->last > cut)
		*walk = known_walk(n, packet, size, cut);
	struct weft_cursor in = {bytes + walk->bytes, bytes + size};
	while (in.at < in.end) {
		uint64_t time = walk->time;
		/* Damage, and events that only the trace's own definitions explain, are left to the reader. */
		if (is_zeros(&in) || !decode_any(n, &n->forms[packet->version - 1], &in, &time, &event))
			break;
		if (time > cut)
			return walk->bytes;
		walk->time = time;
		walk->last = time > walk->last ? time : walk->last;
		walk->bytes = (size_t)(in.at - bytes);
	}
	return size;
}

/* Notes what is missing between the packet that was just read and the next packet, or after the last packet (`p` is NULL). */
static void note_gap(
    struct weft_trace *trace, const struct native_cursor *c, const struct native_packet *old, const struct native_packet *p)
{
	const struct native *n = trace->state;
	const uint64_t seen = old->events_before + c->decoded;
	const uint64_t packets = !p ? c->missing : p->sequence > old->sequence + 1 ? p->sequence - old->sequence - 1 : 0;
	const uint64_t events = p && p->events_before > seen ? p->events_before - seen : 0;
	const bool is_noted = c->is_damaged || old->is_cut;
	if (!packets && !events && !is_noted)
		return;
	weft__native_add_gap(trace, (struct weft_gap){ticks_to_ns(n, c->last), p ? ticks_to_ns(n, p->begin) : INT64_MAX, packets,
					events, p ? p->stream : old->stream});
	if (p && (packets || !is_noted)) {
		weft__trace_skip(trace, &trace->source.blobs[p->blob], p->index, p->offset, 0,
		    "%llu events are missing before this packet", (unsigned long long)events);
		weft__trace_mark_placed(trace, 1);
	}
}

/* Moves to the next packet; returns false if there is none. */
static bool next_packet(struct weft_trace *trace, struct native_cursor *c)
{
	struct native *n = trace->state;
	if (c->at) {
		const struct native_packet *old = &n->packets.items[c->packet];
		const bool is_last = c->packet + 1 == c->end;
		const struct native_packet *p = is_last ? NULL : old + 1;
		if (!c->is_ended)
			note_gap(trace, c, old, p);
		c->is_ended = is_last;
		if (is_last)
			return false;
		c->packet++;
		const uint64_t expected = old->events_before + c->decoded;
		if (p->events_before > expected)
			n->streams.items[p->stream].lost_overwritten += p->events_before - expected;
		else if (p->events_before < expected)
			weft__trace_skip(trace, &trace->source.blobs[old->blob], old->index, old->offset, 0,
			    "this packet has %llu more events than the header of the next packet counts",
			    (unsigned long long)(expected - p->events_before));
	}
	const struct native_packet *p = &n->packets.items[c->packet];
	c->forms = &n->forms[p->version - 1];
	c->at = p->bytes + p->header_bytes;
	c->stop = p->bytes + p->content_bytes;
	c->last = c->last > p->begin ? c->last : p->begin;
	/* Later times do not fit in 64-bit ns. */
	const uint64_t latest = n->clock.hz < 1000000000 ? (uint64_t)INT64_MAX / 1000000000 * n->clock.hz : INT64_MAX;
	c->until = c->packet + 1 < c->end ? n->packets.items[c->packet + 1].begin : latest;
	if (c->until < p->begin || c->until > latest)
		c->until = latest;
	c->decoded = 0;
	c->is_damaged = false;
	while (c->change < c->changes_end && n->changes.items[c->change].since <= p->begin)
		c->change++;
	c->next_change = c->change < c->changes_end ? n->changes.items[c->change].since : UINT64_MAX;
	c->stream = p->stream;
	return true;
}

void weft__native_resume(struct weft_trace *trace, struct native_cursor *c, const struct weft_position *from)
{
	const struct native *n = trace->state;
	const struct weft_stream_position *reached =
	    from ? weft_position_of_stream(from, n->packets.items[c->first].instance) : NULL;
	if (!reached)
		return;
	while (c->packet + 1 < c->end && n->packets.items[c->packet].sequence < reached->sequence)
		c->packet++;
	const struct native_packet *p = &n->packets.items[c->packet];
	if (p->sequence > reached->sequence)
		return;
	next_packet(trace, c);
	/* Bytes that were read before are not read again, even if new content is not visible yet. */
	c->at = p->sequence == reached->sequence && p->content_bytes >= reached->bytes ? p->bytes + reached->bytes : c->stop;
	c->last = reached->last;
	c->decoded = reached->events - p->events_before;
}

/* Walks through the returned events of the batch again, because the ends of events are not recorded. */
bool weft__native_mark_position(const struct native *n, const struct native_cursor *c, struct native_mark *out)
{
	struct native_mark m = c->batch_mark;
	for (size_t left = c->batch_at; left > 0 || !m.at;) {
		const struct native_packet *p = &n->packets.items[m.packet];
		if (m.at == p->bytes + p->content_bytes) {
			p = &n->packets.items[++m.packet];
			m.at = NULL;
		}
		if (!m.at) {
			m.at = p->bytes + p->header_bytes;
			m.last = m.last > p->begin ? m.last : p->begin;
			m.decoded = 0;
			continue;
		}
		struct weft_cursor in = {m.at, p->bytes + p->content_bytes};
		struct weft_event event;
		uint64_t last = m.last;
		if (c->is_batch_damaged || !decode_any(n, &n->forms[p->version - 1], &in, &last, &event))
			return false;
		m.at = in.at;
		m.last = last > m.last ? last : m.last;
		m.decoded++;
		left -= !(event.op == WEFT_OP_DETAIL && event.kind == WEFT_DETAIL_DEFINITION);
	}
	*out = m;
	return true;
}

static inline void read_plain(struct weft_event *e, const struct native *n, uint16_t stream, const struct native_form *f,
    const unsigned char *at, uint64_t time)
{
	e->time_ns = n->clock.hz == 1000000000u ? (int64_t)time : (int64_t)(1e9 * (double)(int64_t)time / (double)n->clock.hz);
	e->a = (int32_t)(load_u32(at + 5) & f->a_mask);
	e->b = (int32_t)(load_u32(at + 9) & f->b_mask);
	e->value = (int64_t)((load_u32(at + f->value_at) & f->value_mask) ^ f->value_sign) - f->value_sign;
	uint32_t key = weft_load_u16(at + f->key_at) & f->key_mask, site = weft_load_u16(at + f->site_at) & f->site_mask;
	e->text = weft__native_text(n, (uint16_t)key);
	e->site = n->site_index[site < n->key_count ? site : 0];
	e->stream = stream;
	e->op = f->op;
	e->kind = at[f->kind_at] & f->kind_mask;
}

/* Finds the first zero byte, or `stop`; at least 8 bytes must be readable. */
static const unsigned char *find_zero(const unsigned char *at, const unsigned char *stop)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), word = weft_load_u64(at), zeros = (word - ones) & ~word & ones << 7;
	if (zeros)
		return at + __builtin_ctzll(zeros) / 8;
	const unsigned char *found = memchr(at + 8, 0, (size_t)(stop - at - 8));
	return found ? found : stop;
}

/* Decodes plain events as long as there are any; returns their number. connections_only: skips events that do not concern
 * connections, plain or not. */
static inline __attribute__((always_inline)) size_t decode_plain(
    const struct native *n, struct native_cursor *c, struct weft_event *out, size_t capacity, bool connections_only)
{
	const unsigned char *at = c->at, *stop = c->stop;
	uint64_t last = c->last, until = c->until < c->next_change ? c->until : c->next_change - 1;
	const struct native_forms *forms = c->forms;
	const uint16_t stream = c->stream;
	size_t count = 0, passed = 0;
	while (count < capacity && stop - at >= REACH) {
		const unsigned id = at[0], bytes = forms->plain_bytes[id], other = connections_only ? forms->other_bytes[id] : 0;
		const uint32_t low = load_u32(at + 1);
		const uint64_t time = last + (uint32_t)(low - (uint32_t)last);
		if (!(bytes | other) || time > until)
			break;
		/* Zeros may be no event at all, which weft__native_fill() checks.  A separate `if` compiles to a single
		 * branch. */
		if (__builtin_expect((id | low) == 0, 0))
			break;
		if (other) {
			const unsigned char *next = at + other;
			if (id & WEFT_ID_INLINE && (next = find_zero(next, stop)) == stop)
				break;
			at = next + !!(id & WEFT_ID_INLINE);
			passed++;
		} else {
			read_plain(&out[count++], n, stream, &forms->forms[id], at, time);
			at += bytes;
		}
		last = time;
	}
	c->at = at;
	c->last = last;
	c->decoded += passed + count;
	return count;
}

void weft__native_fill(struct weft_trace *trace, struct native_cursor *c)
{
	const struct native *n = trace->state;
	size_t count = 0;
	c->batch_mark = (struct native_mark){c->packet, c->at, c->last, c->decoded};
	c->is_batch_damaged = false;
	while (count < NATIVE_BATCH) {
		if (c->at == c->stop) {
			if (!next_packet(trace, c))
				break;
			continue;
		}
		struct weft_event *out = c->batch + count;
		count += trace->connections_only ? decode_plain(n, c, out, NATIVE_BATCH - count, true)
						 : decode_plain(n, c, out, NATIVE_BATCH - count, false);
		if (count == NATIVE_BATCH || c->at == c->stop)
			continue;
		struct weft_cursor in = {c->at, c->stop};
		struct weft_event *e = &c->batch[count];
		uint64_t last = c->last;
		if (is_zeros(&in)) {
			mark_damage(trace, c, c->at, "zeros in place of an event");
			continue;
		}
		if (!decode_any(n, c->forms, &in, &last, e)) {
			mark_damage(trace, c, c->at, "bytes that are not an event");
			continue;
		}
		if (last > c->until) {
			mark_damage(trace, c, c->at, "an event later than the start of the next packet");
			continue;
		}
		if (last < c->last) {
			weft__trace_skip(trace, &trace->source.blobs[n->packets.items[c->packet].blob],
			    n->packets.items[c->packet].index,
			    n->packets.items[c->packet].offset + (uint64_t)(c->at - n->packets.items[c->packet].bytes), 0,
			    "time goes back");
			last = c->last;
		}
		while (last >= c->next_change) {
			c->stream = n->changes.items[c->change++].stream;
			c->next_change = c->change < c->changes_end ? n->changes.items[c->change].since : UINT64_MAX;
		}
		c->last = last;
		c->at = in.at;
		c->decoded++;
		/* native_redefine.c has already read this event, if that was needed. */
		if (e->op == WEFT_OP_DETAIL && e->kind == WEFT_DETAIL_DEFINITION)
			continue;
		count++;
		e->time_ns = ticks_to_ns(n, last);
		e->stream = c->stream;
	}
	c->batch_at = 0;
	c->batch_end = count;
}
