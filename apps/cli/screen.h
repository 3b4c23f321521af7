/* screen.h: a terminal that is drawn on: texts at places, keys by the names that src/viewer has for them.
 *
 * Whatever the terminal lacks is done without: colours, signs beyond ASCII, a mouse.  No byte of a text reaches it as a control.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_SCREEN_H
#define WEFT_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* In which manner a text is shown; each tells itself from the others without colours too, but ALARM, DOUBT and CALM. */
enum screen_style {
	SCREEN_PLAIN,
	SCREEN_DIM,
	SCREEN_STRONG,
	SCREEN_BAR,  /* on a ground of its own */
	SCREEN_HEAD, /* underlined */
	SCREEN_ALARM,
	SCREEN_DOUBT,
	SCREEN_CALM,
	SCREEN_KEY,
	SCREEN_STYLES
};

/* Whether standard input and output are a terminal on which one can move about. */
bool screen_is_there(void);

void screen_begin(void);
void screen_end(void);

int screen_rows(void);
int screen_columns(void);

void screen_clear(void);
void screen_show(void);
void screen_redraw(void); /* also what the terminal should still have */

/* Writes a text at a place, in at most so many columns, to their right if is_right; one that is longer ends in an ellipsis.
 * is_cursor: it stands on the row of the cursor.  Returns how many columns it took. */
int screen_put(int row, int column, int width, enum screen_style style, bool is_cursor, bool is_right, const char *text);

/* How many columns a text takes, and how many bytes of it fit into so many columns. */
int screen_width(const char *text);
size_t screen_fits(const char *text, int width);

/* All columns of a row get the ground of a style or of the cursor. */
void screen_fill(int row, enum screen_style style, bool is_cursor);

struct screen_key {
	char name[16];      /* as src/viewer/actions.h calls keys; "Mouse", "WheelUp", "WheelDown", "Resize"; "": none came */
	unsigned modifiers; /* enum weft_modifier */
	int row, column;    /* of the mouse */
};

/* The next key that was typed; name is "" if there is none.  False: the terminal is gone. */
bool screen_next_key(struct screen_key *key);

#endif
