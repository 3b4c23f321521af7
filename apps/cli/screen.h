/* screen.h: draws texts on a terminal and reads keys, with the key names of src/viewer.
 *
 * It works without colours, characters beyond ASCII, and mouse if the terminal has none.  No byte of a text reaches the terminal
 * as a control character.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_SCREEN_H
#define WEFT_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* Styles of a text; all but ALARM, DOUBT and CALM differ without colours too. */
enum screen_style {
	SCREEN_PLAIN,
	SCREEN_DIM,
	SCREEN_STRONG,
	SCREEN_BAR,  /* with a background */
	SCREEN_HEAD, /* underlined */
	SCREEN_ALARM,
	SCREEN_DOUBT,
	SCREEN_CALM,
	SCREEN_KEY,
	SCREEN_STYLES
};

/* Returns whether standard input and output are a terminal with cursor addressing. */
bool screen_is_available(void);

void screen_begin(void);
void screen_end(void);

int screen_rows(void);
int screen_columns(void);

void screen_clear(void);
void screen_show(void);
void screen_redraw(void); /* redraws also what has not changed */

/* Writes a text at a position in at most `width` columns, right-aligned if is_right; a longer text ends in an ellipsis.
 * is_cursor: the row has the cursor.  Returns the number of columns. */
int screen_put_text(int row, int column, int width, enum screen_style style, bool is_cursor, bool is_right, const char *text);

/* Return the columns of a text, and how many of its bytes fit into `width` columns. */
int screen_width(const char *text);
size_t screen_fitting_bytes(const char *text, int width);

/* Gives all columns of a row the background of a style or of the cursor. */
void screen_fill(int row, enum screen_style style, bool is_cursor);

struct screen_key {
	char name[16];      /* as in src/viewer/actions.h; also "Mouse", "WheelUp", "WheelDown", "Resize"; "" for none */
	unsigned modifiers; /* enum weft_modifier */
	int row, column;    /* position of the mouse */
};

/* Reads the next key; its name is "" if there is none.  Returns false if the terminal is gone. */
bool screen_next_key(struct screen_key *key);

#endif
