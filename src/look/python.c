/* python.c: reads the Python stack of each OS thread from CPython's frames in memory.
 *
 * A thread that runs Python has the address of its PyThreadState on its C stack, and the PyThreadState contains the thread's id.
 * The version of CPython is that of the loaded file, and an object is accepted only if its type is named "code".
 * SPDX-License-Identifier: ISC */
#include "look/python.h"

#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/python_frames.h"

enum {
	CODE_FILE = 112,
	CODE_NAME = 128, /* the qualified one */
	CODE_LINES = 136,
	TYPE = 8,
	TYPE_NAME = 24,
	STRING_LENGTH = 16,
	STRING_STATE = 32,
	BYTES_LENGTH = 16,
	BYTES_DATA = 32,
	MAX_LINES = 1 << 20, /* maximum size in bytes of a table of lines */
	SEARCHED_BYTES = 64 << 10,
	MAX_TEXT = 255
};

/* Returns the layout of the Python version that the target has loaded; NULL if that version is unknown. */
static const struct weft_python_frames *find_layout(const struct look_target *t)
{
	for (size_t i = 0; i < t->modules.count; i++) {
		const char *slash = strrchr(t->modules.items[i].path, '/'), *name = slash ? strstr(slash, "python3.") : NULL;
		int minor;
		const struct weft_python_frames *frames =
		    name && sscanf(name, "python3.%d", &minor) == 1 ? weft_python_frames_find(minor) : NULL;
		if (frames)
			return frames;
	}
	return NULL;
}

/* Reads a compact string of Python; non-ASCII characters become question marks.  Returns false if the object is no compact
 * string of Python. */
static bool read_string(const struct look_target *t, const struct weft_python_frames *l, uint64_t at, char out[MAX_TEXT + 1])
{
	enum { KIND_SHIFT = 2, KIND_MASK = 7, COMPACT = 1 << 5, ASCII = 1 << 6 };
	uint32_t state = 0;
	const uint64_t length = weft__look_word(t, at + STRING_LENGTH);
	if (!at || t->read(t, at + STRING_STATE, &state, sizeof state) < sizeof state || !(state & COMPACT) || !(state & ASCII) ||
	    (state >> KIND_SHIFT & KIND_MASK) != 1)
		return false;
	const size_t got = t->read(t, at + l->text, out, length < MAX_TEXT ? (size_t)length : MAX_TEXT);
	out[got] = 0;
	for (char *c = out; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
	return got > 0;
}

/* ---- Lines ---- */

static bool read_varint(struct weft_cursor *in, uint32_t *out)
{
	enum { BITS = 6, MORE = 1 << BITS };
	uint8_t byte = MORE;
	uint32_t value = 0;
	for (unsigned shift = 0; byte & MORE; shift += BITS) {
		if (shift > 24 || !weft_read_u8(in, &byte))
			return false;
		value |= (uint32_t)(byte & (MORE - 1)) << shift;
	}
	*out = value;
	return true;
}

static bool read_signed(struct weft_cursor *in, int32_t *out)
{
	uint32_t value = 0;
	const bool is_whole = read_varint(in, &value);
	*out = value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
	return is_whole;
}

/* Returns the source line of an instruction (a number of code units) from a location table; 0: unknown.
 * An entry of the table begins with a set bit, four bits for its form and three bits for its length in code units. */
static uint32_t find_line(struct weft_cursor in, uint32_t line, uint64_t instruction)
{
	enum { LENGTH_MASK = 7, FORM_SHIFT = 3, FORM_MASK = 15, ONE_LINE = 10, NO_COLUMN = 13, LONG = 14, NONE = 15 };
	uint8_t head, skipped;
	uint64_t end = 0;
	while (weft_read_u8(&in, &head)) {
		const unsigned form = head >> FORM_SHIFT & FORM_MASK;
		int32_t change = 0;
		uint32_t unused;
		bool is_whole = true;
		if (form < ONE_LINE) {
			is_whole = weft_read_u8(&in, &skipped);
		} else if (form < NO_COLUMN) {
			change = (int32_t)form - ONE_LINE;
			is_whole = weft_read_u8(&in, &skipped) && weft_read_u8(&in, &skipped);
		} else if (form == NO_COLUMN || form == LONG) {
			is_whole = read_signed(&in, &change);
			for (int i = 0; form == LONG && i < 3; i++)
				is_whole = is_whole && read_varint(&in, &unused);
		}
		if (!is_whole)
			return 0;
		line += (uint32_t)change;
		end += (head & LENGTH_MASK) + 1u;
		if (instruction < end)
			return form == NONE ? 0 : line;
	}
	return 0;
}

static uint32_t read_line(const struct look_target *t, const struct weft_python_frames *l, uint64_t code, uint64_t instruction)
{
	const uint64_t table = weft__look_word(t, code + CODE_LINES), length = weft__look_word(t, table + BYTES_LENGTH),
		       begin = code + l->code_begin;
	uint32_t first = 0;
	if (!table || !length || length > MAX_LINES || instruction < begin ||
	    t->read(t, code + l->first_line, &first, sizeof first) < sizeof first)
		return 0;
	unsigned char *bytes = malloc((size_t)length);
	const size_t got = bytes ? t->read(t, table + BYTES_DATA, bytes, (size_t)length) : 0;
	const uint32_t line =
	    got == length ? find_line((struct weft_cursor){bytes, bytes + got}, first, (instruction - begin) / 2) : 0;
	free(bytes);
	return line;
}

/* ---- Frames ---- */

static bool is_code(const struct look_target *t, uint64_t object)
{
	char name[5] = "";
	const uint64_t type = object ? weft__look_word(t, object + TYPE) : 0,
		       at = type ? weft__look_word(t, type + TYPE_NAME) : 0;
	if (at && t->read(t, at, name, sizeof name) == sizeof name)
		return memcmp(name, "code", sizeof name) == 0;
	/* A core dump leaves out constants that are in files. */
	return t->is_core && at && weft__look_module(t, at);
}

/* Adds the frame at an address; *next gets the address of the frame's caller.  Returns false if there is no frame at the
 * address. */
static bool add_frame(
    const struct look_target *t, const struct weft_python_frames *l, struct look_thread *thread, uint64_t frame, uint64_t *next)
{
	char function[MAX_TEXT + 1], file[MAX_TEXT + 1];
	uint8_t owner = 0;
	const uint64_t code = weft__look_word(t, frame + l->code);
	*next = weft__look_word(t, frame + l->before);
	if (t->read(t, frame + l->owner, &owner, 1) < 1)
		return false;
	if (owner == WEFT_PYTHON_FRAME_OF_C)
		return true;
	if (!is_code(t, code) || !read_string(t, l, weft__look_word(t, code + CODE_NAME), function) ||
	    !read_string(t, l, weft__look_word(t, code + CODE_FILE), file))
		return false;
	struct weft_look_source_frame *slot = weft_vec_push(&thread->sources);
	if (!slot)
		return false;
	*slot = (struct weft_look_source_frame){.function = strdup(function),
	    .file = strdup(file),
	    .line = read_line(t, l, code, weft__look_word(t, frame + l->instruction))};
	return slot->function && slot->file;
}

static void read_frames(
    const struct look_target *t, const struct weft_python_frames *l, struct look_thread *thread, uint64_t state)
{
	const uint64_t holder = l->holder ? weft__look_word(t, state + l->holder) : state;
	uint64_t frame = holder ? weft__look_word(t, holder + l->frame) : 0;
	/* The number of frames is limited, because a list in untrusted memory may be circular. */
	for (int left = 2 * WEFT_LOOK_FRAMES; left > 0 && frame && thread->sources.count < WEFT_LOOK_FRAMES; left--)
		if (!add_frame(t, l, thread, frame, &frame))
			break;
}

/* Finds the PyThreadState of a thread on its C stack, and reads the frames; *state is the PyThreadState that was found last, or
 * 0. */
static void read_thread(
    const struct look_target *t, const struct weft_python_frames *l, struct look_thread *thread, uint64_t *state)
{
	const struct weft_look_stack *s = &thread->stack;
	uint64_t last = 0;
	if (*state && weft__look_word(t, *state + l->tid) == (uint64_t)thread->own_tid)
		read_frames(t, l, thread, *state);
	for (size_t at = 0; at + 8 <= s->size && at < SEARCHED_BYTES && !thread->sources.count; at += 8) {
		const uint64_t word = weft_load_u64(s->bytes + at);
		const struct look_map *map = word > 4096 && word % 8 == 0 && word != last ? weft__look_map(t, word) : NULL;
		if (!map || !map->is_writable)
			continue;
		last = word;
		if (weft__look_word(t, word + l->tid) != (uint64_t)thread->own_tid)
			continue;
		*state = word;
		read_frames(t, l, thread, word);
	}
}

bool weft__look_find_python(struct look_target *t)
{
	const struct weft_python_frames *l = find_layout(t);
	for (size_t i = 0; l && i < t->threads.count; i++)
		read_thread(t, l, &t->threads.items[i], &(uint64_t){0});
	return true;
}

bool weft__look_has_python(const struct look_target *t)
{
	return find_layout(t) != NULL;
}

size_t weft__look_read_python(const struct look_target *t, const struct weft_look_stack *stack, int64_t tid, uint64_t *state,
    struct weft_look_source_frame *out, size_t capacity)
{
	const struct weft_python_frames *l = find_layout(t);
	struct look_thread thread = {.own_tid = tid, .stack = *stack};
	if (l)
		read_thread(t, l, &thread, state);
	size_t count = 0;
	for (; count < thread.sources.count && count < capacity; count++)
		out[count] = thread.sources.items[count];
	for (size_t i = count; i < thread.sources.count; i++) {
		free(thread.sources.items[i].function);
		free(thread.sources.items[i].file);
	}
	weft_vec_free(&thread.sources);
	return count;
}
