/* warnings.c: lists missing or contradictory parts of a trace.  SPDX-License-Identifier: ISC */
#include "viewer/warnings.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "viewer/rows_private.h"

/* Writes rows in two passes, serious notes in the first pass and other notes in the second. */
struct writer {
	struct weft_rows *to;
	bool serious;
};

#define ADD(is_serious, meaning, ...)                                                                                            \
	((is_serious) == w->serious ? add_note(w, weft__rows_text(w->to, __VA_ARGS__), weft__rows_text(w->to, "%s", meaning))    \
				    : (void)0)

static void add_note(struct writer *w, size_t text, size_t meaning)
{
	weft__rows_add(w->to, WEFT_ROW_NOTE, text, meaning)->tone = w->serious ? WEFT_TONE_ALARM : WEFT_TONE_PLAIN;
}

static void add_lost(struct writer *w, const struct weft_trace_info *info)
{
	static const char begins[] =
	    "The picture starts with the oldest event that is left; of older promises only later events are known.";
	uint64_t no_room = 0, nested = 0, overwritten = 0;
	char number[28];
	for (size_t i = 0; i < info->stream_count; i++) {
		no_room += info->streams[i].lost_full;
		nested += info->streams[i].lost_nested;
		overwritten += info->streams[i].lost_overwritten;
	}
	if (no_room + nested > 0)
		ADD(true, "Promises that ended may look pending, and links, labels and running times may be missing.",
		    "%s events were lost while the trace was recorded.", weft_number_text(number, no_room + nested));
	if (info->lost_no_stream > 0)
		ADD(true, "Events of some OS threads are missing; promises that waited for these threads may look pending.",
		    "%s events of OS threads were not recorded: there were too many threads.",
		    weft_number_text(number, info->lost_no_stream));
	if (overwritten > 0)
		ADD(false, begins, "%s older events were overwritten by newer ones.", weft_number_text(number, overwritten));
	else if (info->wrapped)
		ADD(false, begins, "Older events were overwritten by newer ones.");
}

static void add_skipped(struct writer *w, const struct weft_trace_info *info)
{
	char where[700], places[28], bytes[28];
	uint64_t sum = 0;
	size_t listed = info->skipped_count < WEFT_MAX_SKIPPED ? info->skipped_count : WEFT_MAX_SKIPPED;
	if (listed == 0)
		return;
	for (size_t i = 0; i < listed; i++)
		sum += info->skipped[i].bytes;
	weft_error_format(&info->skipped[0].where, where, sizeof where);
	weft_utf8_sanitize(where); /* a file name may contain any bytes, also invalid UTF-8 */
	static const char meaning[] =
	    "The events of unreadable parts are missing: promises may look pending, or older than they are.";
	if (info->skipped_count == 1)
		ADD(true, meaning, "One part could not be read, %s bytes: %s.", weft_number_text(bytes, sum), where);
	else
		ADD(true, meaning, "%s parts could not be read, %s bytes or more; the first: %s.",
		    weft_number_text(places, info->skipped_count), weft_number_text(bytes, sum), where);
}

static void add_anomalies(struct writer *w, const struct weft_model *model)
{
	char number[28];
	for (int i = 0; i < WEFT_ANOMALY_COUNT; i++)
		if (model->anomalies[i] > 0)
			ADD(false, "Where two events contradict each other, the picture shows what the first event says.",
			    "The trace contradicts itself: %s %s.", weft_number_text(number, model->anomalies[i]),
			    weft_anomaly_text((enum weft_anomaly)i));
}

int weft_notes_fill(struct weft_rows *rows, const struct weft_model *model, struct weft_error *err)
{
	struct writer all = {rows, true}, *w = &all;
	if (!weft__rows_begin(rows))
		return weft_error_set(err, WEFT_ENOMEM, "no memory for rows");
	for (int pass = 0; pass < 2; pass++, all.serious = false) {
		add_lost(w, model->trace);
		add_skipped(w, model->trace);
		if (model->trace->has_died)
			ADD(false, "Promises pending at the right edge were pending when the program ended.",
			    "The program did not finish this trace: it was killed, or exited abruptly.");
		else if (model->snapshot_reason_count > 0 && model->snapshot_reasons[model->snapshot_reason_count - 1].runs_on)
			ADD(false, "Promises pending at the right edge may have ended since.",
			    "This trace is a snapshot: the program was still running.");
		else if (model->trace->is_stopped)
			ADD(false, "Promises pending at the right edge may have ended since.",
			    "The recording ended while the program went on.");
		else if (model->trace->is_seen_once)
			ADD(false,
			    "The right edge of the picture shows what each OS thread waits for; what happened before is not "
			    "known.",
			    "weft read the memory of this program once, without a recording.");
		else if (model->trace->unfinished)
			ADD(false, "Promises pending at the right edge may have ended since.",
			    "The program did not finish this trace: it is still running, or was killed.");
		add_anomalies(w, model);
	}
	return weft__rows_end(rows, err);
}
