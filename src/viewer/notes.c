/* notes.c: what is missing or wrong in a trace.  SPDX-License-Identifier: ISC */
#include "viewer/notes.h"

#include <stdlib.h>

#include "viewer/texts.h"

struct draft {
	size_t text;
	const char *meaning;
	bool serious;
};

struct weft_notes_private {
	struct weft__texts texts;
	WEFT_VEC(struct draft) drafts;
	WEFT_VEC(struct weft_note) notes;
};

static void add(struct weft_notes_private *to, bool serious, size_t text, const char *meaning)
{
	struct draft *d = weft_vec_push(&to->drafts);
	if (d)
		*d = (struct draft){text, meaning, serious};
	else
		to->texts.failed = true;
}

#define TEXT(...) weft__texts_add(&to->texts, __VA_ARGS__)

static void add_lost(struct weft_notes_private *to, const struct weft_trace_info *info)
{
	uint64_t no_room = 0, nested = 0, overwritten = 0;
	char number[28];
	for (size_t i = 0; i < info->stream_count; i++) {
		no_room += info->streams[i].lost_full;
		nested += info->streams[i].lost_nested;
		overwritten += info->streams[i].lost_overwritten;
	}
	if (no_room + nested > 0)
		add(to, true,
		    TEXT("%s events were lost while the trace was recorded.", weft__thousands(number, no_room + nested)),
		    "Promises that ended may look pending, and links, labels and running times may be missing.");
	if (info->lost_no_stream > 0)
		add(to, true,
		    TEXT("%s events of OS threads were not recorded: there was no room for more threads.",
			weft__thousands(number, info->lost_no_stream)),
		    "What those threads did is not in the picture; what waited for them may look pending.");
	if (overwritten > 0)
		add(to, false, TEXT("%s older events were overwritten by newer ones.", weft__thousands(number, overwritten)),
		    "The picture begins where the recording's memory does; of promises from before, only what came later is "
		    "known.");
	else if (info->wrapped)
		add(to, false, TEXT("Older events were overwritten by newer ones."),
		    "The picture begins where the recording's memory does; of promises from before, only what came later is "
		    "known.");
}

static void add_skipped(struct weft_notes_private *to, const struct weft_trace_info *info)
{
	char where[700], places[28], bytes[28];
	uint64_t sum = 0;
	size_t kept = info->skipped_count < WEFT_SKIPPED_KEPT ? info->skipped_count : WEFT_SKIPPED_KEPT;
	if (kept == 0)
		return;
	for (size_t i = 0; i < kept; i++)
		sum += info->skipped[i].bytes;
	weft_error_format(&info->skipped[0].where, where, sizeof where);
	add(to, true,
	    info->skipped_count == 1 ? TEXT("A place could not be read, %s bytes: %s.", weft__thousands(bytes, sum), where)
				     : TEXT("%s places could not be read, %s bytes or more; the first: %s.",
					   weft__thousands(places, info->skipped_count), weft__thousands(bytes, sum), where),
	    "What happened there is missing: promises may look pending, or older than they are.");
}

static void add_anomalies(struct weft_notes_private *to, const struct weft_model *model)
{
	char number[28];
	for (int i = 0; i < WEFT_ANOMALY_COUNT; i++)
		if (model->anomalies[i] > 0)
			add(to, false,
			    TEXT("The trace contradicts itself: %s %s.", weft__thousands(number, model->anomalies[i]),
				weft_anomaly_text((enum weft_anomaly)i)),
			    "The picture shows the first of what cannot both be.");
}

static bool publish(struct weft_notes *notes)
{
	struct weft_notes_private *from = notes->priv;
	from->notes.count = 0;
	if (from->texts.failed || !weft_vec_reserve(&from->notes, from->drafts.count + 1))
		return false;
	for (int serious = 1; serious >= 0; serious--)
		for (size_t i = 0; i < from->drafts.count; i++)
			if (from->drafts.items[i].serious == serious)
				from->notes.items[from->notes.count++] = (struct weft_note){
				    from->texts.bytes.items + from->drafts.items[i].text, from->drafts.items[i].meaning, serious};
	notes->notes = from->notes.items;
	notes->count = from->notes.count;
	return true;
}

int weft_notes_fill(struct weft_notes *notes, const struct weft_model *model, struct weft_error *err)
{
	notes->count = 0;
	if (!notes->priv)
		notes->priv = calloc(1, sizeof *notes->priv);
	struct weft_notes_private *to = notes->priv;
	if (!to)
		return weft_error_set(err, WEFT_ENOMEM, "no memory for notes");
	to->drafts.count = 0;
	weft__texts_clear(&to->texts);
	add_lost(to, model->trace);
	add_skipped(to, model->trace);
	if (model->trace->unfinished)
		add(to, false, TEXT("The program did not end this trace: it still runs, or it was killed."),
		    "What is pending at the right edge may have ended since.");
	add_anomalies(to, model);
	if (!publish(notes))
		return weft_error_set(err, WEFT_ENOMEM, "no memory for notes");
	return WEFT_OK;
}

void weft_notes_finish(struct weft_notes *notes)
{
	if (notes->priv) {
		weft_vec_free(&notes->priv->texts.bytes);
		weft_vec_free(&notes->priv->drafts);
		weft_vec_free(&notes->priv->notes);
	}
	free(notes->priv);
	*notes = (struct weft_notes){0};
}
