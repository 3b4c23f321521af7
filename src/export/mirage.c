/* mirage.c: writes events as a mirage-profile trace.
 * SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "export/budget.h"
#include "trace/kernel.h"

enum {
	HEADER_BYTES = 30,
	PACKET_BYTES = 64 * 1024,      /* maximum size of a packet, unless a packet has a single larger event */
	TEXT_BYTES = 256 * 1024 * 1024 /* maximum size of texts, because sizes are stored as 32-bit numbers of bits */
};

static const unsigned char magic_and_uuid[20] = {
    0xC1, 0x1F, 0xFC, 0xC1, 0x05, 0x88, 0x3b, 0x8d, 0x52, 0x1a, 0x48, 0x7b, 0xb3, 0x97, 0x45, 0x6a, 0xb1, 0x50, 0x68, 0x0c};

/* State of the pause of a stream, if a pause is open. */
struct pause {
	int64_t begin_ns;
	bool open;
};

struct writer {
	weft_export_write_fn *write;
	void *write_ctx;
	struct weft_losses losses;
	WEFT_VEC(unsigned char) packet;
	uint16_t packet_count;
	WEFT_VEC(struct pause) pauses; /* by stream */
	uint64_t budget;               /* for long texts */
};

static void put_uint(struct writer *w, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		w->packet.items[w->packet.count++] = (unsigned char)(value >> 8 * i);
}

/* Writes a text up to its first NUL, because NUL ends a text in this format. */
static void put_text(struct writer *w, struct weft_str text)
{
	const char *nul = text.len > 0 ? memchr(text.ptr, 0, text.len) : NULL;
	uint32_t len = nul ? (uint32_t)(nul - text.ptr) : text.len;
	if (len > TEXT_BYTES)
		len = TEXT_BYTES;
	if (len < text.len)
		w->losses.counts[WEFT_LOSS_TEXT]++;
	if (len > 0)
		memcpy(w->packet.items + w->packet.count, text.ptr, len);
	w->packet.count += len;
	put_uint(w, 0, 1);
}

static int begin_packet(struct writer *w)
{
	w->packet.count = 0;
	if (!weft_vec_reserve(&w->packet, PACKET_BYTES))
		return WEFT_ENOMEM;
	memcpy(w->packet.items, magic_and_uuid, sizeof magic_and_uuid);
	w->packet.count = sizeof magic_and_uuid;
	put_uint(w, 0, 4);
	put_uint(w, w->packet_count++, 2);
	put_uint(w, 0, 4);
	return WEFT_OK;
}

static int end_packet(struct writer *w)
{
	size_t bytes = w->packet.count;
	w->packet.count = 20;
	put_uint(w, bytes * 8, 4);
	w->packet.count = 26;
	put_uint(w, bytes * 8, 4);
	return w->write(w->write_ctx, w->packet.items, bytes) == 0 ? WEFT_OK : WEFT_EIO;
}

static void put_head(struct writer *w, const struct weft_event *e, enum weft_op op)
{
	put_uint(w, (uint64_t)e->time_ns, 8);
	put_uint(w, op, 1);
}

static void put_ids(struct writer *w, const struct weft_event *e, enum weft_op op, int64_t first, int64_t second)
{
	put_head(w, e, op);
	put_uint(w, (uint64_t)first, 8);
	put_uint(w, (uint64_t)second, 8);
}

static void put_id(struct writer *w, const struct weft_event *e, enum weft_op op, int64_t id)
{
	put_head(w, e, op);
	put_uint(w, (uint64_t)id, 8);
}

/* Writes a pause as a garbage collection, the only pause that the format has. */
static void put_gc(struct writer *w, const struct weft_event *e, int64_t duration_ns)
{
	put_head(w, e, WEFT_OP_PAUSE);
	put_uint(w, (uint64_t)duration_ns, 8);
}

static void count_reason(struct writer *w, struct weft_str why)
{
	if (why.len != 2 || memcmp(why.ptr, "gc", 2) != 0)
		w->losses.counts[WEFT_LOSS_PAUSE]++;
}

/* Notes the start of a pause, or writes the whole pause at its end, with its length. */
static int put_pause_bound(struct writer *w, const struct weft_event *e)
{
	while (w->pauses.count <= e->stream) {
		struct pause *more = weft_vec_push(&w->pauses);
		if (!more)
			return WEFT_ENOMEM;
		*more = (struct pause){0};
	}
	struct pause *pause = &w->pauses.items[e->stream];
	if (e->op == WEFT_OP_PAUSE_BEGIN) {
		count_reason(w, e->text);
		w->losses.counts[WEFT_LOSS_PAUSE_OPEN] += pause->open;
		*pause = (struct pause){e->time_ns, true};
	} else if (pause->open) {
		pause->open = false;
		put_gc(w, e, e->time_ns - pause->begin_ns);
	} else {
		w->losses.counts[WEFT_LOSS_PAUSE_OPEN]++;
	}
	return WEFT_OK;
}

static int put_event(struct writer *w, const struct weft_event *e)
{
	enum { LONGEST = 9 + 17 }; /* without a text */
	const struct weft_str text = weft__export_text(e->text, &w->budget, &w->losses);
	size_t needed_bytes = LONGEST + (size_t)text.len + 17;
	if (w->packet.count + needed_bytes > PACKET_BYTES && w->packet.count > HEADER_BYTES) {
		int status = end_packet(w);
		if (status < 0 || (status = begin_packet(w)) < 0)
			return status;
	}
	if (!weft_vec_reserve(&w->packet, needed_bytes))
		return WEFT_ENOMEM;

	if (e->site != WEFT_NO_SITE)
		w->losses.counts[WEFT_LOSS_SITE]++;
	if (e->stream != 0)
		w->losses.counts[WEFT_LOSS_STREAM]++;
	switch ((enum weft_op)e->op) {
	case WEFT_OP_CREATE:
		put_ids(w, e, WEFT_OP_CREATE, e->a, e->b);
		put_uint(w, e->kind, 1);
		break;
	case WEFT_OP_READ:
	case WEFT_OP_RESOLVE:
	case WEFT_OP_BECOME:
	case WEFT_OP_AWAIT:
	case WEFT_OP_READ_LATER: put_ids(w, e, (enum weft_op)e->op, e->a, e->b); break;
	case WEFT_OP_SIGNAL:
	/* The promise that then runs is written first. */
	case WEFT_OP_SIGNAL_ONLY: put_ids(w, e, (enum weft_op)e->op, e->b, e->a); break;
	case WEFT_OP_FAIL:
		put_ids(w, e, WEFT_OP_FAIL, e->a, e->b);
		put_text(w, text);
		break;
	case WEFT_OP_LABEL:
		put_id(w, e, WEFT_OP_LABEL, e->a);
		put_text(w, text);
		break;
	case WEFT_OP_SHOULD_RESOLVE:
		put_id(w, e, WEFT_OP_LABEL, e->a);
		put_text(w, (struct weft_str){"__should_resolve", 16});
		break;
	case WEFT_OP_COUNTER:
	case WEFT_OP_COUNTER_ADD:
		put_ids(w, e, (enum weft_op)e->op, e->a, e->value);
		put_text(w, text);
		break;
	case WEFT_OP_IDLE:
		if (e->value != WEFT_IDLE_WAIT)
			w->losses.counts[WEFT_LOSS_SLEEP]++;
		put_id(w, e, WEFT_OP_RUN, WEFT_SYSTEM_ID);
		break;
	case WEFT_OP_RUN:
	case WEFT_OP_RESUME: put_id(w, e, WEFT_OP_RUN, e->a); break;
	case WEFT_OP_PAUSE:
		count_reason(w, e->text);
		put_gc(w, e, e->value);
		break;
	case WEFT_OP_PAUSE_BEGIN:
	case WEFT_OP_PAUSE_END: return put_pause_bound(w, e);
	case WEFT_OP_NOTE: w->losses.counts[WEFT_LOSS_NOTE]++; break;
	case WEFT_OP_STILL_AWAITS:
	case WEFT_OP_PENDING: w->losses.counts[WEFT_LOSS_PENDING]++; break;
	case WEFT_OP_CANCEL:
		put_ids(w, e, WEFT_OP_FAIL, e->a, e->b);
		put_text(w, (struct weft_str){"cancelled", 9});
		break;
	case WEFT_OP_AWAITS_NO_MORE:
	case WEFT_OP_BELONGS:
	case WEFT_OP_HOLD:
	case WEFT_OP_RELEASE:
	case WEFT_OP_LEVEL:
	case WEFT_OP_SENT:
	case WEFT_OP_RECEIVED:
	case WEFT_OP_DETAIL:
	case WEFT_OP_COUNT:
	/* Other events, also operations that only the trace defines, are lost. */
	default: w->losses.counts[WEFT_LOSS_OTHER]++; break;
	}
	return WEFT_OK;
}

int weft_export_mirage(
    struct weft_trace *trace, weft_export_write_fn *write, void *write_ctx, struct weft_losses *losses, struct weft_error *err)
{
	struct writer w = {.write = write, .write_ctx = write_ctx, .budget = weft__export_budget(trace)};
	const struct weft_event *events;
	size_t count;
	int status = begin_packet(&w), more = 0;
	while (status == WEFT_OK && (more = weft_trace_next(trace, &events, &count)) > 0)
		for (size_t i = 0; i < count && status == WEFT_OK; i++)
			status = put_event(&w, &events[i]);
	if (status == WEFT_OK)
		status = more;
	if (status == WEFT_OK)
		status = end_packet(&w);
	for (size_t i = 0; i < w.pauses.count; i++)
		w.losses.counts[WEFT_LOSS_PAUSE_OPEN] += w.pauses.items[i].open;
	weft_vec_free(&w.packet);
	weft_vec_free(&w.pauses);
	struct weft_kernel_info kernel;
	if (status == WEFT_OK && (status = weft_trace_kernel(trace, NULL, NULL, &kernel)) >= 0) {
		w.losses.counts[WEFT_LOSS_KERNEL] = kernel.events;
		status = WEFT_OK;
	}
	if (status < 0)
		return weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status));
	*losses = w.losses;
	return WEFT_OK;
}
