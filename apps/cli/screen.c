/* screen.c: implements screen.h.  SPDX-License-Identifier: ISC */
#define NCURSES_WIDECHAR 1
#include "screen.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>
#include <wchar.h>

#include "base/utf8.h"
#include "viewer/viewer.h"

enum { ESCAPE_MS = 50 };

static struct {
	SCREEN *screen;
	bool is_utf8, has_colours;
} terminal;

/* ---- Start and end of the screen ---- */

bool screen_is_available(void)
{
	int found;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || setupterm(NULL, STDOUT_FILENO, &found) != OK)
		return false;
	const char *move = tigetstr("cup");
	const bool is_there = move && move != (const char *)-1;
	del_curterm(cur_term);
	return is_there;
}

static void set_colours(void)
{
	const char *without = getenv("NO_COLOR");
	terminal.has_colours = has_colors() && !(without && *without) && start_color() == OK;
	if (!terminal.has_colours)
		return;
	const short ground = use_default_colors() == OK ? -1 : COLOR_BLACK;
	init_pair(SCREEN_ALARM, COLOR_RED, ground);
	init_pair(SCREEN_DOUBT, COLOR_YELLOW, ground);
	init_pair(SCREEN_CALM, COLOR_GREEN, ground);
	init_pair(SCREEN_KEY, COLOR_CYAN, ground);
}

void screen_begin(void)
{
	setlocale(LC_CTYPE, "");
	terminal.is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	terminal.screen = newterm(NULL, stdout, stdin);
	if (!terminal.screen)
		return;
	set_colours();
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
	mouseinterval(0);
}

void screen_end(void)
{
	endwin();
	delscreen(terminal.screen);
}

int screen_rows(void)
{
	return LINES;
}

int screen_columns(void)
{
	return COLS;
}

void screen_clear(void)
{
	erase();
}

void screen_show(void)
{
	refresh();
}

void screen_redraw(void)
{
	clearok(stdscr, TRUE);
}

/* ---- Texts ---- */

/* Returns the ASCII replacement of a non-ASCII character that weft draws. */
static char find_ascii_sign(wchar_t c)
{
	static const wchar_t signs[] = L"▁▂▃▄▅▆▇█░│├└…·●›—";
	static const char plain[] = "_.:-=+*#.||`~.*>-";
	const wchar_t *found = wcschr(signs, c);
	return found && *found ? plain[found - signs] : '?';
}

/* Returns the next character of a text, and the number of terminal columns that it takes. */
static wchar_t next_character(const char **text, int *cell_count)
{
	const unsigned char *p = (const unsigned char *)*text;
	const size_t n = weft_utf8_char_bytes(p, strlen(*text));
	wchar_t c = L'?';
	*text += n ? n : 1;
	if (n == 1)
		c = p[0];
	else if (n > 1) {
		c = p[0] & (0x3f >> (n - 1));
		for (size_t i = 1; i < n; i++)
			c = c << 6 | (p[i] & 0x3f);
	}
	if (n == 0 || weft_utf8_control_code(p, n))
		c = L'?';
	if (!terminal.is_utf8 && c > 126)
		c = (unsigned char)find_ascii_sign(c);
	*cell_count = wcwidth(c);
	if (*cell_count < 0) {
		c = L'?';
		*cell_count = 1;
	}
	return c;
}

int screen_width(const char *text)
{
	int width = 0, cell_count;
	while (*text) {
		next_character(&text, &cell_count);
		width += cell_count;
	}
	return width;
}

size_t screen_fitting_bytes(const char *text, int width)
{
	const char *from = text;
	for (int cell_count; *text; width -= cell_count) {
		const char *before = text;
		next_character(&text, &cell_count);
		if (cell_count > width)
			return (size_t)(before - from);
	}
	return (size_t)(text - from);
}

static void set_style(enum screen_style style, bool is_cursor)
{
	static const attr_t attributes[SCREEN_STYLES] = {[SCREEN_DIM] = A_DIM,
	    [SCREEN_STRONG] = A_BOLD,
	    [SCREEN_BAR] = A_REVERSE,
	    [SCREEN_HEAD] = A_UNDERLINE,
	    [SCREEN_ALARM] = A_BOLD,
	    [SCREEN_KEY] = A_BOLD};
	attr_t all = attributes[style] | (is_cursor ? A_REVERSE : 0);
	const bool is_coloured = terminal.has_colours && style >= SCREEN_ALARM && style <= SCREEN_KEY;
	attr_set(all, is_coloured ? (short)style : 0, NULL);
}

int screen_put_text(int row, int column, int width, enum screen_style style, bool is_cursor, bool is_right, const char *text)
{
	const int all = screen_width(text);
	int left = width;
	if (width <= 0 || row < 0 || row >= LINES || column >= COLS)
		return 0;
	set_style(style, is_cursor);
	move(row, column + (is_right && all < width ? width - all : 0));
	while (*text && left > 0) {
		int cell_count;
		wchar_t c[2] = {next_character(&text, &cell_count), 0};
		/* The last column is reserved for the ellipsis of a cut text. */
		const bool is_cut = all > width && cell_count > left - 1;
		if (is_cut) {
			c[0] = terminal.is_utf8 ? L'…' : L'~';
			cell_count = 1;
		}
		addwstr(c);
		left -= cell_count;
		if (is_cut)
			break;
	}
	return all > width ? width : all;
}

void screen_fill(int row, enum screen_style style, bool is_cursor)
{
	set_style(style, is_cursor);
	for (int column = 0; column < COLS && row >= 0 && row < LINES; column++)
		mvaddch(row, column, ' ');
}

/* ---- Keys ---- */

static void name_character(struct screen_key *key, unsigned char c)
{
	if (c == '\r' || c == '\n')
		strcpy(key->name, "Enter");
	else if (c == '\t')
		strcpy(key->name, "Tab");
	else if (c == 27)
		strcpy(key->name, "Escape");
	else if (c == 8 || c == 127)
		strcpy(key->name, "Backspace");
	else if (c < ' ') {
		snprintf(key->name, sizeof key->name, "%c", c + 'a' - 1);
		key->modifiers = WEFT_CONTROL;
	} else if (c == ' ')
		strcpy(key->name, "Space");
	else
		snprintf(key->name, sizeof key->name, "%c", c);
}

static void name_mouse(struct screen_key *key)
{
	MEVENT event;
	if (getmouse(&event) != OK)
		return;
	strcpy(key->name, event.bstate & BUTTON4_PRESSED ? "WheelUp" : event.bstate & BUTTON5_PRESSED ? "WheelDown" : "Mouse");
	key->row = event.y;
	key->column = event.x;
}

static void name_code(struct screen_key *key, wint_t code)
{
	static const struct {
		wint_t code;
		const char *name;
	} names[] = {{KEY_UP, "ArrowUp"}, {KEY_DOWN, "ArrowDown"}, {KEY_LEFT, "ArrowLeft"}, {KEY_RIGHT, "ArrowRight"},
	    {KEY_PPAGE, "PageUp"}, {KEY_NPAGE, "PageDown"}, {KEY_HOME, "Home"}, {KEY_END, "End"}, {KEY_BACKSPACE, "Backspace"},
	    {KEY_ENTER, "Enter"}, {KEY_BTAB, "BackTab"}, {KEY_RESIZE, "Resize"}, {KEY_F(1), "F1"}, {KEY_F(3), "F3"},
	    {KEY_F(5), "F5"}};
	const char *known = code > KEY_MAX ? keyname((int)code) : NULL;
	if (code == KEY_MOUSE)
		name_mouse(key);
	if (code == KEY_F(15) || (known && strcmp(known, "kLFT3") == 0)) {
		strcpy(key->name, known ? "ArrowLeft" : "F3");
		key->modifiers = known ? WEFT_ALT : WEFT_SHIFT;
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].code == code)
			strcpy(key->name, names[i].name);
}

bool screen_next_key(struct screen_key *key)
{
	wint_t c;
	*key = (struct screen_key){.name = ""};
	const int got = get_wch(&c);
	if (got == KEY_CODE_YES)
		name_code(key, c);
	else if (got == OK && c < 128)
		name_character(key, (unsigned char)c);
	else if (got == OK && c < 0x110000) {
		mbstate_t state = {0};
		const size_t n = wcrtomb(key->name, (wchar_t)c, &state);
		key->name[n < sizeof key->name ? n : 0] = '\0';
	}
	return got != ERR || isatty(STDIN_FILENO);
}
