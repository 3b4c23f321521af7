/* rows.h: the texts beside the picture, as rows: of a promise (panel.h), of findings (findings.h), of problems with the trace
 * (warnings.h).
 *
 * An application draws rows one below the other and calls weft_viewer_press_row() when one is pressed.  It needs no texts or
 * logic of its own.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_ROWS_H
#define WEFT_VIEWER_ROWS_H

#include "viewer/viewer.h"

/* X(NAME, name) */
#define WEFT_ROW_KINDS(X)                                                                                                        \
	X(TITLE, "title")       /* name and end of a promise; a press asks why */                                                \
	X(HEADING, "heading")   /* of the rows below */                                                                          \
	X(FACT, "fact")         /* a name and a value */                                                                         \
	X(LINK, "link")         /* another promise, and a time; a press selects it */                                            \
	X(MORE, "more")         /* the number of further rows; a press may show them */                                          \
	X(SUMMARY, "summary")   /* the number of findings */                                                                     \
	X(ANSWER, "answer")     /* above the answer to "why?"; value: the effect of a press */                                   \
	X(FINDING, "finding")   /* title and tag of a finding; a press goes to it and opens its evidence */                      \
	X(EVIDENCE, "evidence") /* a line of evidence, and a time; a press goes there */                                         \
	X(TEXT, "text")         /* a sentence */                                                                                 \
	X(NOTE, "note")         /* a problem with the trace, and its consequence */                                              \
	X(WORKING, "working")   /* work in progress, and its percentage; a press cancels it */                                   \
	X(NOTHING, "nothing")   /* the only row of an empty list; a press may try again */                                       \
	X(ENTRY, "entry")       /* a promise in flight or late, with details; a press selects it */                              \
	X(FIGURE, "figure")     /* a number and its name; those that follow each other stand side by side */                     \
	X(SENTENCE, "sentence") /* a sentence of the summary; a press goes to its subject */                                     \
	X(COLUMN, "column")     /* the heading of a column of the table; a press sorts by it */

enum weft_row_kind {
#define WEFT_ROW_ENUM(NAME, name) WEFT_ROW_##NAME,
	WEFT_ROW_KINDS(WEFT_ROW_ENUM)
#undef WEFT_ROW_ENUM
	    WEFT_ROW_KIND_COUNT
};

/* X(NAME, name): the colour of a row. */
#define WEFT_ROW_TONES(X)                                                                                                        \
	X(PLAIN, "plain")                                                                                                        \
	X(ALARM, "alarm") /* a failure, a problem, a missing end */                                                              \
	X(DOUBT, "doubt") /* an uncertain finding */                                                                             \
	X(CALM, "calm")   /* an answer, information: no problem */

enum weft_row_tone {
#define WEFT_TONE_ENUM(NAME, name) WEFT_TONE_##NAME,
	WEFT_ROW_TONES(WEFT_TONE_ENUM)
#undef WEFT_TONE_ENUM
	    WEFT_TONE_COUNT
};

/* The subject of rows, which defines the meaning of their numbers. */
enum weft_rows_topic {
	WEFT_ROWS_OF_FINDINGS, /* and all that is not listed below */
	WEFT_ROWS_OF_DIFF,     /* differences of two traces: `line` is the number of the difference */
	/* types: `key` is the type, `line` the bar of its histogram, or the order of a column.  The value of a type has the cells
	 * of its columns, separated by " \xc2\xb7 ", each after the name of its column and a space; the first has no name. */
	WEFT_ROWS_OF_TABLE,
	WEFT_ROWS_OF_BLAME,  /* times: `line` is the stack; WEFT_NONE switches between running and waiting time */
	WEFT_ROWS_OF_LIVE,   /* live tables: `finding` is the table, `key` the row */
	WEFT_ROWS_OF_SUMMARY /* the summary: `line` is the line */
};

struct weft_row {
	uint8_t kind, tone;       /* enum weft_row_kind, enum weft_row_tone */
	bool leads;               /* a press has an effect */
	bool is_open;             /* of a finding: its evidence is listed below; of a column: the table is sorted by it */
	uint8_t topic;            /* enum weft_rows_topic */
	bool of_answer;           /* of a finding and its evidence: in the answer, not in the trace's findings */
	uint32_t promise;         /* of a link; else WEFT_NONE */
	uint32_t finding, line;   /* indices of a finding and of its evidence; or WEFT_NONE */
	uint64_t key;             /* of types and live rows: the same after a reload; else 0 */
	uint8_t depth;            /* indentation steps */
	const char *name, *value; /* valid UTF-8 of one line; may be "" */
};

/* A zeroed struct is empty.  Rows and texts are valid until rows are filled again. */
struct weft_rows {
	struct weft_row *rows;
	size_t count;
	struct weft_rows_private *priv;
};

void weft_rows_finish(struct weft_rows *rows);

/* Return the texts that a screen reader speaks first and second; the second may be "".  A finding is introduced by its tag, a
 * row with numbers by its name. */
#define WEFT_SPOKEN_BYTES 1210
const char *weft_row_spoken(const struct weft_row *row, char buf[WEFT_SPOKEN_BYTES]);
const char *weft_row_spoken_then(const struct weft_row *row);

/* Handles a press on a row, if it has an effect. */
void weft_viewer_press_row(struct weft_viewer *viewer, const struct weft_row *row);

/* Return "finding", "alarm": for style sheets and tests. */
const char *weft_row_kind_name(enum weft_row_kind kind);
const char *weft_row_tone_name(enum weft_row_tone tone);

#endif
