/* rows.h: what is said beside the picture, as rows: of a promise (panel.h), of what went wrong (findings.h), of damage (notes.h).
 *
 * An application draws rows one below another, and calls weft_viewer_press_row() for one that is pressed: it words and decides
 * nothing itself.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_ROWS_H
#define WEFT_VIEWER_ROWS_H

#include "viewer/viewer.h"

/* X(NAME, name) */
#define WEFT_ROW_KINDS(X)                                                                                                        \
	X(TITLE, "title")       /* what a promise is called, and how it ended; a press asks why */                               \
	X(HEADING, "heading")   /* of the rows below */                                                                          \
	X(FACT, "fact")         /* a name and a value */                                                                         \
	X(LINK, "link")         /* another promise, and when; a press selects it */                                              \
	X(MORE, "more")         /* how many more there are; a press, where it leads, shows them */                               \
	X(SUMMARY, "summary")   /* how many findings there are */                                                                \
	X(ANSWER, "answer")     /* stands above the answer to "why?"; value: what a press does */                                \
	X(FINDING, "finding")   /* a finding's title and its tag; a press leads there and shows its evidence below */            \
	X(EVIDENCE, "evidence") /* a line of evidence, and when; a press leads there */                                          \
	X(TEXT, "text")         /* a sentence */                                                                                 \
	X(NOTE, "note")         /* what is missing or wrong in a trace, and what that means */                                   \
	X(WORKING, "working")   /* what goes on, and how far it is; a press cancels it */                                        \
	X(NOTHING, "nothing")   /* the only row where there is nothing to list; a press, where it leads, tries again */          \
	X(ENTRY, "entry")       /* who is in flight, or was late, and below what is said of it; a press leads there */

enum weft_row_kind {
#define WEFT_ROW_ENUM(NAME, name) WEFT_ROW_##NAME,
	WEFT_ROW_KINDS(WEFT_ROW_ENUM)
#undef WEFT_ROW_ENUM
	    WEFT_ROW_KIND_COUNT
};

/* X(NAME, name): in which colour a row is shown. */
#define WEFT_ROW_TONES(X)                                                                                                        \
	X(PLAIN, "plain")                                                                                                        \
	X(ALARM, "alarm") /* a failure, a fault, what never came */                                                              \
	X(DOUBT, "doubt") /* a finding that is not certain */                                                                    \
	X(CALM, "calm")   /* an answer, information: nothing is wrong */

enum weft_row_tone {
#define WEFT_TONE_ENUM(NAME, name) WEFT_TONE_##NAME,
	WEFT_ROW_TONES(WEFT_TONE_ENUM)
#undef WEFT_TONE_ENUM
	    WEFT_TONE_COUNT
};

/* What rows are about, and so what their numbers are. */
enum weft_rows_of {
	WEFT_ROWS_OF_FINDINGS, /* and all that is not listed below */
	WEFT_ROWS_OF_DIFF,     /* where two traces part: `line` is the number of the difference */
	WEFT_ROWS_OF_TABLE,    /* sorts: `key` is the sort, `line` the bar of its histogram */
	WEFT_ROWS_OF_BLAME,    /* where time went: `line` is the stack, or WEFT_NONE: the other question */
	WEFT_ROWS_OF_LIVE      /* what is in flight: `finding` is the table, `key` the row there */
};

struct weft_row {
	uint8_t kind, tone;       /* enum weft_row_kind, enum weft_row_tone */
	bool leads;               /* a press does something */
	bool is_open;             /* of a finding: its evidence stands below */
	uint8_t of;               /* enum weft_rows_of */
	bool of_answer;           /* of a finding and its evidence: in the answer, not in the trace's findings */
	uint32_t promise;         /* of a link; else WEFT_NONE */
	uint32_t finding, line;   /* which finding, and which of its evidence; or WEFT_NONE */
	uint64_t key;             /* of sorts, and of what is in flight: the same when the trace was read anew; else 0 */
	uint8_t depth;            /* so many steps to the right */
	const char *name, *value; /* valid UTF-8 of one line; may be "" */
};

/* A zeroed one is empty.  Rows and texts live until it is filled again. */
struct weft_rows {
	struct weft_row *rows;
	size_t count;
	struct weft_rows_private *priv;
};

void weft_rows_finish(struct weft_rows *rows);

/* What a screen reader says of a row first, and then, or "": a finding is called by its sort, whatever has numbers by its name.
 */
#define WEFT_SPOKEN_BYTES 1210
const char *weft_row_spoken(const struct weft_row *row, char buf[WEFT_SPOKEN_BYTES]);
const char *weft_row_spoken_then(const struct weft_row *row);

/* Does what a press on a row does, if it leads anywhere; of a promise's rows, and of findings. */
void weft_viewer_press_row(struct weft_viewer *viewer, const struct weft_row *row);

/* "finding", "alarm": for style sheets and tests. */
const char *weft_row_kind_name(enum weft_row_kind kind);
const char *weft_row_tone_name(enum weft_row_tone tone);

#endif
