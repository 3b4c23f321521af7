/* rows.c: builds rows, whose texts are in one block of memory.  SPDX-License-Identifier: ISC */
#include "viewer/rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "viewer/findings.h"
#include "viewer/private.h"
#include "viewer/rows_private.h"

/* A row that is being built, with offsets of its texts in the block, because the block may move while it grows. */
struct draft {
	struct weft_row row;
	size_t name, value;
};

struct weft_rows_private {
	WEFT_VEC(char) bytes; /* texts of the rows, with the text "" at offset 0 */
	WEFT_VEC(struct draft) drafts;
	WEFT_VEC(struct weft_row) rows;
	struct weft_row lost; /* row that is returned without memory, and never shown */
	enum weft_rows_topic topic;
	bool failed;
};

bool weft__rows_begin(struct weft_rows *rows)
{
	rows->count = 0;
	if (!rows->priv)
		rows->priv = calloc(1, sizeof *rows->priv);
	if (!rows->priv)
		return false;
	rows->priv->bytes.count = rows->priv->drafts.count = 0;
	rows->priv->failed = false;
	rows->priv->topic = WEFT_ROWS_OF_FINDINGS;
	return true;
}

void weft__rows_set_topic(struct weft_rows *rows, enum weft_rows_topic topic)
{
	rows->priv->topic = topic;
}

static size_t add_text(struct weft_rows_private *to, const char *text, size_t len)
{
	if (to->failed || !weft_vec_reserve(&to->bytes, len + 2)) {
		to->failed = true;
		return 0;
	}
	if (to->bytes.count == 0)
		to->bytes.items[to->bytes.count++] = '\0';
	size_t at = to->bytes.count;
	memcpy(to->bytes.items + at, text, len);
	to->bytes.items[at + len] = '\0';
	to->bytes.count += len + 1;
	return at;
}

size_t weft__rows_text(struct weft_rows *rows, const char *format, ...)
{
	char text[601];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	size_t len = n < 0 ? 0 : n < (int)sizeof text ? (size_t)n : sizeof text - 1;
	if (n >= (int)sizeof text) { /* the last character may be incomplete, so it is removed */
		while (len > 0 && ((unsigned char)text[len - 1] & 0xc0) == 0x80)
			len--;
		len -= len > 0 && (unsigned char)text[len - 1] >= 0xc0;
	}
	return add_text(rows->priv, text, len);
}

struct weft_row *weft__rows_add(struct weft_rows *rows, enum weft_row_kind kind, size_t name, size_t value)
{
	struct weft_rows_private *to = rows->priv;
	struct draft *draft = weft_vec_push(&to->drafts);
	if (!draft) {
		to->failed = true;
		return &to->lost;
	}
	*draft = (struct draft){.row = {.kind = (uint8_t)kind,
				    .topic = (uint8_t)to->topic,
				    .promise = WEFT_NONE,
				    .finding = WEFT_NONE,
				    .line = WEFT_NONE},
	    .name = name,
	    .value = value};
	return &draft->row;
}

int weft__rows_end(struct weft_rows *rows, struct weft_error *err)
{
	struct weft_rows_private *from = rows->priv;
	if (from->drafts.count > 0 && from->bytes.count == 0)
		add_text(from, "", 0);
	if (from->failed || !weft_vec_reserve(&from->rows, from->drafts.count + 1))
		return weft_error_set(err, WEFT_ENOMEM, "no memory for rows");
	for (size_t i = 0; i < from->drafts.count; i++) {
		const struct draft *d = &from->drafts.items[i];
		from->rows.items[i] = d->row;
		from->rows.items[i].name = from->bytes.items + d->name;
		from->rows.items[i].value = from->bytes.items + d->value;
	}
	rows->rows = from->rows.items;
	rows->count = from->drafts.count;
	return WEFT_OK;
}

void weft_rows_finish(struct weft_rows *rows)
{
	if (rows->priv) {
		weft_vec_free(&rows->priv->bytes);
		weft_vec_free(&rows->priv->drafts);
		weft_vec_free(&rows->priv->rows);
	}
	free(rows->priv);
	*rows = (struct weft_rows){0};
}

const char *weft_row_kind_name(enum weft_row_kind kind)
{
	static const char *const names[] = {WEFT_ROW_KINDS(WEFT_LISTED_NAME)};
	return WEFT_NAME_OF(names, kind);
}

const char *weft_row_tone_name(enum weft_row_tone tone)
{
	static const char *const names[] = {WEFT_ROW_TONES(WEFT_LISTED_NAME)};
	return WEFT_NAME_OF(names, tone);
}

/* Returns whether a row has a tag such as "hang", which a screen reader speaks before its title. */
static bool has_tag(const struct weft_row *row)
{
	return row->kind == WEFT_ROW_FINDING && row->topic == WEFT_ROWS_OF_FINDINGS && row->value[0];
}

const char *weft_row_spoken(const struct weft_row *row, char buf[WEFT_SPOKEN_BYTES])
{
	snprintf(buf, WEFT_SPOKEN_BYTES, "%s%s%s", has_tag(row) ? row->value : "", has_tag(row) ? ": " : "", row->name);
	return buf;
}

const char *weft_row_spoken_then(const struct weft_row *row)
{
	return has_tag(row) ? "" : row->value;
}

static void press_of(struct weft_viewer *v, const struct weft_row *row)
{
	switch ((enum weft_rows_topic)row->topic) {
	case WEFT_ROWS_OF_DIFF: weft__viewer_press_difference(v, row); break;
	case WEFT_ROWS_OF_TABLE: weft__viewer_press_table_row(v, row); break;
	case WEFT_ROWS_OF_BLAME: weft__viewer_press_blame_row(v, row); break;
	case WEFT_ROWS_OF_LIVE: weft__viewer_press_live_row(v, row); break;
	case WEFT_ROWS_OF_SUMMARY: weft__viewer_press_summary_row(v, row); break;
	default: weft__viewer_press_finding_row(v, row);
	}
}

void weft_viewer_press_row(struct weft_viewer *v, const struct weft_row *row)
{
	if (!row->leads)
		return;
	weft__viewer_begin_move(v, WEFT_MOVE_ACTS);
	if (row->kind == WEFT_ROW_TITLE)
		weft_viewer_ask_why(v);
	else if (row->kind == WEFT_ROW_LINK)
		weft__viewer_select_and_reveal(v, row->promise);
	else
		press_of(v, row);
}
