/* rows.h: represents the texts beside the picture as rows: of a promise (panel.h), of findings (findings.h), of problems with
 * the trace (warnings.h).
 *
 * An application draws the rows one below the other, and calls weft_viewer_press_row() when the user presses a row.  The
 * application needs no texts or logic of its own.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_ROWS_H
#define WEFT_VIEWER_ROWS_H

#include "viewer/viewer.h"

/* X(NAME, name) */
#define WEFT_ROW_KINDS(X)                                                                                                        \
	X(TITLE, "title")       /* name and end of a promise; a press on the row asks why */                                     \
	X(HEADING, "heading")   /* of the rows below */                                                                          \
	X(FACT, "fact")         /* fact, with a name and a value */                                                              \
	X(LINK, "link")         /* link to another promise and a time; a press selects the promise */                            \
	X(MORE, "more")         /* number of further rows; a press may show these rows */                                        \
	X(SUMMARY, "summary")   /* the number of findings */                                                                     \
	X(ANSWER, "answer")     /* heading above the answer to "why?"; the value is the effect of a press */                     \
	X(FINDING, "finding")   /* title and tag of a finding; a press goes to the finding and opens its evidence */             \
	X(EVIDENCE, "evidence") /* line of evidence, and its time; a press goes to that time */                                  \
	X(TEXT, "text")         /* a sentence */                                                                                 \
	X(NOTE, "note")         /* problem with the trace, and the problem's consequence */                                      \
	X(WORKING, "working")   /* work in progress, and its percentage; a press cancels the work */                             \
	X(NOTHING, "nothing")   /* the only row of an empty list; a press may try again */                                       \
	X(ENTRY, "entry")       /* promise that is in flight or late, with details; a press selects the promise */               \
	X(FIGURE, "figure")     /* number with its name; consecutive rows of this kind are shown side by side */                 \
	X(SENTENCE, "sentence") /* sentence of the summary; a press goes to the sentence's subject */                            \
	X(COLUMN, "column")     /* heading of a table's column; a press sorts the table by this column */

enum weft_row_kind {
#define WEFT_ROW_ENUM(NAME, name) WEFT_ROW_##NAME,
	WEFT_ROW_KINDS(WEFT_ROW_ENUM)
#undef WEFT_ROW_ENUM
	    WEFT_ROW_KIND_COUNT
};

/* X(NAME, name) lists a tone, which decides the colour of a row. */
#define WEFT_ROW_TONES(X)                                                                                                        \
	X(PLAIN, "plain")                                                                                                        \
	X(ALARM, "alarm") /* tone of a failure, a problem or a missing end */                                                    \
	X(DOUBT, "doubt") /* an uncertain finding */                                                                             \
	X(CALM, "calm")   /* tone of an answer or of information that is no problem */

enum weft_row_tone {
#define WEFT_TONE_ENUM(NAME, name) WEFT_TONE_##NAME,
	WEFT_ROW_TONES(WEFT_TONE_ENUM)
#undef WEFT_TONE_ENUM
	    WEFT_TONE_COUNT
};

/* Subject of rows, which decides what their numbers mean. */
enum weft_rows_topic {
	WEFT_ROWS_OF_FINDINGS, /* findings, and all other subjects that are not listed below */
	WEFT_ROWS_OF_DIFF,     /* differences of two traces; `line` is the number of the difference */
	/* types of promises: `key` is the type, and `line` is the bar of its histogram, or the order of a column.  The value of
	 * a type's row has the cells of the columns, separated by " \xc2\xb7 ", each after the name of its column and a space;
	 * the first column has no name. */
	WEFT_ROWS_OF_TABLE,
	WEFT_ROWS_OF_BLAME,  /* sums of time: `line` is the stack; WEFT_NONE switches between running and waiting time */
	WEFT_ROWS_OF_LIVE,   /* live tables: `finding` is the number of the table, and `key` is the row's key */
	WEFT_ROWS_OF_SUMMARY /* the summary: `line` is the number of the sentence */
};

struct weft_row {
	uint8_t kind, tone; /* enum weft_row_kind, enum weft_row_tone */
	bool leads;         /* whether a press on the row has an effect */
	/* For a finding: whether its evidence is listed below; for a column: whether the table is sorted by it. */
	bool is_open;
	uint8_t topic; /* enum weft_rows_topic */
	/* For a finding and its evidence: whether they belong to the answer, and not to the trace's findings. */
	bool of_answer;
	uint32_t promise;         /* promise to which a link leads; else WEFT_NONE */
	uint32_t finding, line;   /* numbers of a finding and of a line of its evidence; or WEFT_NONE */
	uint64_t key;             /* for types and live rows: key that is the same after a reload; else 0 */
	uint8_t depth;            /* indentation steps */
	const char *name, *value; /* texts of the row, in valid UTF-8 of one line; may be "" */
};

/* A zeroed struct has no rows.  Rows and their texts are valid until the struct is filled again. */
struct weft_rows {
	struct weft_row *rows;
	size_t count;
	struct weft_rows_private *priv;
};

void weft_rows_finish(struct weft_rows *rows);

/* Return the texts that a screen reader speaks first and second; the second text may be "".  The first text of a finding is its
 * tag, and the first text of a row with numbers is its name. */
#define WEFT_SPOKEN_BYTES 1210
const char *weft_row_spoken(const struct weft_row *row, char buf[WEFT_SPOKEN_BYTES]);
const char *weft_row_spoken_then(const struct weft_row *row);

/* Handles a press on a row, if the press has an effect. */
void weft_viewer_press_row(struct weft_viewer *viewer, const struct weft_row *row);

/* Return the names of kinds and tones, such as "finding" and "alarm", for style sheets and tests. */
const char *weft_row_kind_name(enum weft_row_kind kind);
const char *weft_row_tone_name(enum weft_row_tone tone);

#endif
