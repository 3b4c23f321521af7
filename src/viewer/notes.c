/* notes.c: what is missing or wrong in a trace.  SPDX-License-Identifier: ISC */
#include "viewer/notes.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "viewer/rows_private.h"

/* What is serious comes first: all is written twice, once for each. */
struct writer {
	struct weft_rows *to;
	bool serious;
};

#define ADD(is_serious, meaning, ...)                                                                                            \
	((is_serious) == w->serious ? add(w, weft__rows_text(w->to, __VA_ARGS__), weft__rows_text(w->to, "%s", meaning))         \
				    : (void)0)

static void add(struct writer *w, size_t text, size_t meaning)
{
	weft__rows_add(w->to, WEFT_ROW_NOTE, text, meaning)->tone = w->serious ? WEFT_TONE_ALARM : WEFT_TONE_PLAIN;
}

static void add_lost(struct writer *w, const struct weft_trace_info *info)
{
	static const char begins[] =
	    "The picture begins with the oldest event that is left; of older promises, only what happened later is known.";
	uint64_t no_room = 0, nested = 0, overwritten = 0;
	char number[28];
	for (size_t i = 0; i < info->stream_count; i++) {
		no_room += info->streams[i].lost_full;
		nested += info->streams[i].lost_nested;
		overwritten += info->streams[i].lost_overwritten;
	}
	if (no_room + nested > 0)
		ADD(true, "Promises that ended may look pending, and links, labels and running times may be missing.",
		    "%s events were lost while the trace was recorded.", weft_thousands(number, no_room + nested));
	if (info->lost_no_stream > 0)
		ADD(true, "What those threads did is not in the picture; what waited for them may look pending.",
		    "%s events of OS threads were not recorded: there was no room for more threads.",
		    weft_thousands(number, info->lost_no_stream));
	if (overwritten > 0)
		ADD(false, begins, "%s older events were overwritten by newer ones.", weft_thousands(number, overwritten));
	else if (info->wrapped)
		ADD(false, begins, "Older events were overwritten by newer ones.");
}

static void add_skipped(struct writer *w, const struct weft_trace_info *info)
{
	char where[700], places[28], bytes[28];
	uint64_t sum = 0;
	size_t kept = info->skipped_count < WEFT_SKIPPED_KEPT ? info->skipped_count : WEFT_SKIPPED_KEPT;
	if (kept == 0)
		return;
	for (size_t i = 0; i < kept; i++)
		sum += info->skipped[i].bytes;
	weft_error_format(&info->skipped[0].where, where, sizeof where);
	weft_utf8_tame(where); /* a file may have any name */
	static const char meaning[] = "What happened there is missing: promises may look pending, or older than they are.";
	if (info->skipped_count == 1)
		ADD(true, meaning, "A place could not be read, %s bytes: %s.", weft_thousands(bytes, sum), where);
	else
		ADD(true, meaning, "%s places could not be read, %s bytes or more; the first: %s.",
		    weft_thousands(places, info->skipped_count), weft_thousands(bytes, sum), where);
}

static void add_anomalies(struct writer *w, const struct weft_model *model)
{
	char number[28];
	for (int i = 0; i < WEFT_ANOMALY_COUNT; i++)
		if (model->anomalies[i] > 0)
			ADD(false, "Where two events contradict each other, the picture follows the first.",
			    "The trace contradicts itself: %s %s.", weft_thousands(number, model->anomalies[i]),
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
			ADD(false, "What is pending at the right edge was pending when it ended.",
			    "The program did not end this trace: it was killed, or ended at once.");
		else if (model->keeping_count > 0 && model->keepings[model->keeping_count - 1].runs_on)
			ADD(false, "What is pending at the right edge may have ended since.",
			    "The program did not end this trace: it ran on when this copy was made.");
		else if (model->trace->unfinished)
			ADD(false, "What is pending at the right edge may have ended since.",
			    "The program did not end this trace: it still runs, or it was killed.");
		add_anomalies(w, model);
	}
	return weft__rows_end(rows, err);
}
