/* screen.h: draws texts on a terminal and reads keys, with the names of keys that src/viewer uses.
 *
 * The screen works without colours, non-ASCII characters and mouse if the terminal lacks them.  No byte of a text reaches the
 * terminal as a control character.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_SCREEN_H
#define WEFT_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* Styles of texts; on a terminal without colours, all styles but ALARM, DOUBT and CALM still differ. */
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

/* Returns whether standard input and output are a terminal on which the cursor can be moved. */
bool screen_is_available(void);

void screen_begin(void);
void screen_end(void);

int screen_rows(void);
int screen_columns(void);

void screen_clear(void);
void screen_show(void);
void screen_redraw(void); /* redraws the whole screen, also what has not changed */

/* Writes a text at a position in at most `width` columns, right-aligned if is_right; a longer text ends in an ellipsis.
 * is_cursor says whether the row has the cursor.  Returns the number of columns that the text takes. */
int screen_put_text(int row, int column, int width, enum screen_style style, bool is_cursor, bool is_right, const char *text);

/* Return the number of columns of a text, and the number of its bytes that fit into `width` columns. */
int screen_width(const char *text);
size_t screen_fitting_bytes(const char *text, int width);

/* Gives all columns of a row the background of a style, or of the cursor. */
void screen_fill(int row, enum screen_style style, bool is_cursor);

struct screen_key {
	/* Name of the key, as in src/viewer/actions.h; also "Mouse", "WheelUp", "WheelDown", "Resize"; "" without a key. */
	char name[16];
	unsigned modifiers; /* enum weft_modifier */
	int row, column;    /* position of the mouse */
};

/* Reads the next key; the key's name is "" if no key was pressed.  Returns false if the terminal is gone. */
bool screen_next_key(struct screen_key *key);

#endif
