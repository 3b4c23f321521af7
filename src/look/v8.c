/* v8.c: reads the JavaScript stack of an OS thread from V8's frames in memory.
 *
 * Node.js exports V8's layout for debuggers, as constants whose names begin with v8dbg_.  These constants are read from the
 * target's memory, so this file lists no versions.  JavaScript code keeps the frame pointer, whether it is interpreted or
 * compiled, and so does the C++ code of Node.js.  A frame belongs to JavaScript if its function slot points to an object that
 * leads to a SharedFunctionInfo.  SPDX-License-Identifier: ISC */
#include "look/v8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "look/exported.h"

/* V8's constants that are read; offsets in bytes from an object's tagged address are the fields' offsets less the tag. */
#define CONSTANTS(X)                                                                                                             \
	X(TAGGED_SIZE, "TaggedSize")                                                                                             \
	X(HEAP_TAG, "HeapObjectTag")                                                                                             \
	X(SMI_SHIFT, "SmiShiftSize")                                                                                             \
	X(SMI_VALUE_SHIFT, "SmiValueShift")                                                                                      \
	X(FRAME_FUNCTION, "off_fp_function")                                                                                     \
	X(FRAME_CONTEXT, "off_fp_context")                                                                                       \
	X(MAP, "class_HeapObject__map__Map")                                                                                     \
	X(MAP_TYPE, "class_Map__instance_type__uint16_t")                                                                        \
	X(FUNCTION_SHARED, "class_JSFunction__shared__SharedFunctionInfo")                                                       \
	X(SCRIPT_NAME, "class_Script__name__Object")                                                                             \
	X(SCRIPT_SOURCE, "class_Script__source__Object")                                                                         \
	X(STRING_LENGTH, "class_String__length__int32_t")                                                                        \
	X(ONE_BYTE_CHARS, "class_SeqOneByteString__chars__char")                                                                 \
	X(TWO_BYTE_CHARS, "class_SeqTwoByteString__chars__char")                                                                 \
	X(THIN_ACTUAL, "class_ThinString__actual__String")                                                                       \
	X(CONS_FIRST, "class_ConsString__first__String")                                                                         \
	X(CONS_SECOND, "class_ConsString__second__String")                                                                       \
	X(FIRST_NONSTRING, "FirstNonstringType")                                                                                 \
	X(REPRESENTATION, "StringRepresentationMask")                                                                            \
	X(IS_SEQUENTIAL, "SeqStringTag")                                                                                         \
	X(IS_CONS, "ConsStringTag")                                                                                              \
	X(IS_THIN, "ThinStringTag")                                                                                              \
	X(ENCODING, "StringEncodingMask")                                                                                        \
	X(IS_ONE_BYTE, "OneByteStringTag")                                                                                       \
	X(TYPE_SHARED, "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE")                                                     \
	X(TYPE_SCOPE, "type_ScopeInfo__SCOPE_INFO_TYPE")                                                                         \
	X(TYPE_SCRIPT, "type_Script__SCRIPT_TYPE")                                                                               \
	X(SCOPE_LOCALS, "scopeinfo_idx_ncontextlocals")                                                                          \
	X(SCOPE_FIRST, "scopeinfo_idx_first_vars")

#define NUMBER(id, name) id,
enum constant { CONSTANTS(NUMBER) SHARED_NAME, SHARED_SCRIPT, CONSTANT_COUNT };
#undef NUMBER

#define NAME(id, name) name,
static const char *const names[] = {CONSTANTS(NAME)};
#undef NAME

/* The type of these fields has changed between versions, and with the type their names. */
static const struct renamed_constant {
	enum constant constant;
	const char *name;
} renamed[] = {
    {SHARED_NAME, "class_SharedFunctionInfo__name_or_scope_info__Object"},
    {SHARED_NAME, "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_"},
    {SHARED_NAME, "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_"},
    {SHARED_SCRIPT, "class_SharedFunctionInfo__script_or_debug_info__Object"},
    {SHARED_SCRIPT, "class_SharedFunctionInfo__script_or_debug_info__HeapObject"},
    {SHARED_SCRIPT, "class_SharedFunctionInfo__script__Tagged_HeapObject_"},
};

enum {
	MAX_TEXT = 255,
	MAX_LINKS = 1024,       /* maximum number of frames in a chain */
	MAX_PARTS = 8,          /* maximum number of parts of a string that was concatenated */
	MAX_INLINE_LOCALS = 74, /* number of variables above which the variables' names are in a table of their own */
	MAX_SOURCE = 16 << 20,  /* maximum number of bytes of a source file in which lines are counted */
	CHUNK = 64 << 10,
	KNOWN_LINES = 256,
	KNOWN_FUNCTIONS = 256
};

/* Types of the frames between JavaScript and the C++ code that it calls; some V8 versions lack some of them. */
static const char *const exits[] = {
    "frametype_ExitFrame", "frametype_BuiltinExitFrame", "frametype_ApiCallbackExitFrame", "frametype_ApiAccessorExitFrame"};

enum { EXIT_COUNT = sizeof exits / sizeof *exits };

struct known_line {
	uint64_t key; /* hash of the file and the position; 0 if the entry is empty */
	uint32_t line;
};

/* A function that was read before, identified by the addresses of three objects.  V8 may move these objects, but no other
 * function then has all three addresses. */
struct known_function {
	uint64_t shared, scope, script; /* shared: 0 if empty */
	struct weft_look_source_frame frame;
};

struct look_v8 {
	int32_t is[CONSTANT_COUNT];
	int32_t exits[EXIT_COUNT]; /* frame types of this version; 0 if this version lacks the name */
	struct known_line lines[KNOWN_LINES];
	struct known_function functions[KNOWN_FUNCTIONS];
	unsigned char chunk[CHUNK];
};

/* ---- Layout ---- */

static bool read_constant(const struct look_exports *e, const struct look_target *t, const char *name, int32_t *out)
{
	char symbol[128];
	snprintf(symbol, sizeof symbol, "v8dbg_%s", name);
	const uint64_t address = weft__look_exports_find(e, t, symbol);
	return address && t->read(t, address, out, sizeof *out) == sizeof *out;
}

static bool read_layout(struct look_v8 *v8, const struct look_target *t, const struct look_exports *e)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!read_constant(e, t, names[i], &v8->is[i]))
			return false;
	bool has_renamed[CONSTANT_COUNT] = {false};
	for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
		const enum constant constant = renamed[i].constant;
		has_renamed[constant] |= read_constant(e, t, renamed[i].name, &v8->is[constant]);
	}
	for (size_t i = 0; i < EXIT_COUNT; i++)
		(void)read_constant(e, t, exits[i], &v8->exits[i]);
	/* Browsers compress pointers, which is not supported; they do not export the layout either. */
	return has_renamed[SHARED_NAME] && has_renamed[SHARED_SCRIPT] && v8->is[TAGGED_SIZE] == sizeof(uint64_t) &&
	       v8->is[SMI_SHIFT] + v8->is[SMI_VALUE_SHIFT] == 32;
}

struct look_v8 *weft__look_v8_create(const struct look_target *t)
{
	struct look_v8 *v8 = calloc(1, sizeof *v8);
	for (size_t i = 0; v8 && i < t->modules.count; i++) {
		struct look_exports exports;
		if (weft__look_exports_read(&exports, t, &t->modules.items[i]) && read_layout(v8, t, &exports))
			return v8;
	}
	free(v8);
	return NULL;
}

static void free_frame(struct weft_look_source_frame *frame)
{
	free(frame->function);
	free(frame->file);
}

void weft__look_v8_free(struct look_v8 *v8)
{
	for (size_t i = 0; v8 && i < KNOWN_FUNCTIONS; i++)
		free_frame(&v8->functions[i].frame);
	free(v8);
}

/* ---- Objects ---- */

static bool is_object(const struct look_v8 *v8, uint64_t value)
{
	return (value & 3) == (uint64_t)v8->is[HEAP_TAG] && value > 4096;
}

static uint64_t address_of(const struct look_v8 *v8, uint64_t object, enum constant field)
{
	return object + (uint64_t)(int64_t)(v8->is[field] - v8->is[HEAP_TAG]);
}

static uint64_t read_field(const struct look_v8 *v8, const struct look_target *t, uint64_t object, enum constant field)
{
	return is_object(v8, object) ? weft__look_word(t, address_of(v8, object, field)) : 0;
}

/* Returns the type of a JavaScript object, or -1. */
static int read_type(const struct look_v8 *v8, const struct look_target *t, uint64_t object)
{
	uint16_t type;
	const uint64_t map = read_field(v8, t, object, MAP);
	return is_object(v8, map) && t->read(t, address_of(v8, map, MAP_TYPE), &type, sizeof type) == sizeof type ? type : -1;
}

static bool is_small_integer(uint64_t value)
{
	return (value & 1) == 0;
}

static int64_t get_integer(uint64_t value)
{
	return (int64_t)value >> 32;
}

/* ---- Strings ---- */

/* Characters of a string that are contiguous in memory. */
struct characters {
	uint64_t address;
	uint32_t count;
	bool is_one_byte;
};

/* Finds the characters of a string that is stored in one piece. */
static bool find_characters(const struct look_v8 *v8, const struct look_target *t, uint64_t string, struct characters *out)
{
	int type = read_type(v8, t, string);
	if (type >= 0 && type < v8->is[FIRST_NONSTRING] && (type & v8->is[REPRESENTATION]) == v8->is[IS_THIN]) {
		string = read_field(v8, t, string, THIN_ACTUAL);
		type = read_type(v8, t, string);
	}
	int32_t count = 0;
	if (type < 0 || type >= v8->is[FIRST_NONSTRING] || (type & v8->is[REPRESENTATION]) != v8->is[IS_SEQUENTIAL] ||
	    t->read(t, address_of(v8, string, STRING_LENGTH), &count, sizeof count) != sizeof count || count < 0)
		return false;
	out->is_one_byte = (type & v8->is[ENCODING]) == v8->is[IS_ONE_BYTE];
	out->address = address_of(v8, string, out->is_one_byte ? ONE_BYTE_CHARS : TWO_BYTE_CHARS);
	out->count = (uint32_t)count;
	return true;
}

/* Appends a character in UTF-8, if there is space.  Half of a surrogate pair becomes a question mark. */
static void append_character(char text[MAX_TEXT + 1], size_t *size, unsigned code)
{
	enum { LAST_OF_ONE = 0x7f, LAST_OF_TWO = 0x7ff, FIRST_HALF = 0xd800, LAST_HALF = 0xdfff, BITS = 6, LOW = 0x3f };
	if (code >= FIRST_HALF && code <= LAST_HALF)
		code = '?';
	if (*size + 3 > MAX_TEXT)
		return;
	if (code <= LAST_OF_ONE) {
		text[(*size)++] = (char)code;
		return;
	}
	if (code <= LAST_OF_TWO) {
		text[(*size)++] = (char)(0xc0 | code >> BITS);
	} else {
		text[(*size)++] = (char)(0xe0 | code >> 2 * BITS);
		text[(*size)++] = (char)(0x80 | (code >> BITS & LOW));
	}
	text[(*size)++] = (char)(0x80 | (code & LOW));
}

static void append_characters(const struct look_target *t, const struct characters *c, char text[MAX_TEXT + 1], size_t *size)
{
	unsigned char bytes[2 * MAX_TEXT];
	const size_t width = c->is_one_byte ? 1 : 2, count = c->count < MAX_TEXT ? c->count : MAX_TEXT;
	const size_t got = t->read(t, c->address, bytes, count * width);
	for (size_t i = 0; i + width <= got; i += width)
		append_character(text, size, c->is_one_byte ? bytes[i] : bytes[i] | (unsigned)bytes[i + 1] << 8);
}

/* Reads a string, and returns whether it has at least one character. */
static bool read_text(const struct look_v8 *v8, const struct look_target *t, uint64_t string, char text[MAX_TEXT + 1])
{
	uint64_t left[MAX_PARTS] = {string};
	size_t count = 1, size = 0;
	struct characters c;
	while (count) {
		const uint64_t part = left[--count];
		const int type = read_type(v8, t, part);
		if (type >= 0 && type < v8->is[FIRST_NONSTRING] && (type & v8->is[REPRESENTATION]) == v8->is[IS_CONS] &&
		    count + 2 <= MAX_PARTS) {
			left[count++] = read_field(v8, t, part, CONS_SECOND);
			left[count++] = read_field(v8, t, part, CONS_FIRST);
		} else if (find_characters(v8, t, part, &c)) {
			append_characters(t, &c, text, &size);
		}
		if (size + 3 > MAX_TEXT)
			break;
	}
	text[size] = 0;
	weft_utf8_sanitize(text);
	return size > 0;
}

/* ---- Lines ---- */

/* Returns the line, counted from 1, of a position in a source text; 0: unknown. */
static uint32_t count_lines(struct look_v8 *v8, const struct look_target *t, uint64_t source, uint32_t position)
{
	struct characters c;
	if (!find_characters(v8, t, source, &c) || position > c.count)
		return 0;
	const size_t width = c.is_one_byte ? 1 : 2, bytes = position * width;
	uint32_t line = 1;
	for (size_t at = 0; at < bytes; at += CHUNK) {
		const size_t wanted = bytes - at < CHUNK ? bytes - at : CHUNK;
		if (bytes > MAX_SOURCE || t->read(t, c.address + at, v8->chunk, wanted) != wanted)
			return 0;
		for (size_t i = 0; i < wanted; i += width)
			line += v8->chunk[i] == '\n' && (width == 1 || v8->chunk[i + 1] == 0);
	}
	return line;
}

/* V8 moves objects, so the cache identifies a source by its file's name; a stack of many frames asks for the same lines
 * again. */
static uint32_t find_line(struct look_v8 *v8, const struct look_target *t, uint64_t script, const char *file, uint32_t position)
{
	const uint64_t key = weft_hash_bytes(file, strlen(file)) ^ weft_hash_u64(position + UINT64_C(1));
	struct known_line *known = &v8->lines[key % KNOWN_LINES];
	if (known->key != key)
		*known = (struct known_line){key, count_lines(v8, t, read_field(v8, t, script, SCRIPT_SOURCE), position)};
	return known->line;
}

/* ---- Functions ---- */

/* Reads a function's name and its start position from its ScopeInfo.  In a ScopeInfo, the variables precede the name, which is a
 * string and the slot of a variable; a name that V8 has inferred, or another value, follows.  The start and end of the function
 * follow these values or, since V8 13, precede the variables.  Returns the position of the function's start, or -1. */
static int64_t read_scope(const struct look_v8 *v8, const struct look_target *t, uint64_t scope, char name[MAX_TEXT + 1])
{
	enum { MAX_SEARCHED = 4, FIELDS = MAX_SEARCHED + 5, FIELD = 8 };
	uint64_t fields[FIELDS];
	const uint64_t first = address_of(v8, scope, MAP) + FIELD, positions = (uint64_t)v8->is[SCOPE_LOCALS] + 1;
	const bool has_positions_first = v8->is[SCOPE_FIRST] >= v8->is[SCOPE_LOCALS] + 3;
	const int64_t locals = get_integer(weft__look_word(t, first + (uint64_t)v8->is[SCOPE_LOCALS] * FIELD));
	if (locals < 0 || locals > UINT16_MAX)
		return -1;
	const uint64_t skipped =
	    (uint64_t)v8->is[SCOPE_FIRST] + (uint64_t)(locals <= MAX_INLINE_LOCALS ? 2 * locals : locals + 1);
	if (t->read(t, first + skipped * FIELD, fields, sizeof fields) != sizeof fields)
		return -1;
	for (size_t i = 0; i < MAX_SEARCHED; i++) {
		const int type = read_type(v8, t, fields[i]);
		if (type < 0 || type >= v8->is[FIRST_NONSTRING])
			continue;
		const bool has_slot = is_small_integer(fields[i + 1]) && !is_small_integer(fields[i + 2]);
		if (!read_text(v8, t, fields[i], name) && has_slot)
			(void)read_text(v8, t, fields[i + 2], name);
		const uint64_t begin =
		    has_positions_first ? weft__look_word(t, first + positions * FIELD) : fields[has_slot ? i + 3 : i + 1];
		return is_small_integer(begin) ? get_integer(begin) : -1;
	}
	return -1;
}

/* The scheme of a module's URL is skipped, because it says nothing that the path does not say. */
static const char *skip_scheme(const char *file)
{
	static const char scheme[] = "file://";
	return strncmp(file, scheme, sizeof scheme - 1) == 0 ? file + sizeof scheme - 1 : file;
}

/* Copies a frame.  Returns false without memory. */
static bool copy_frame(struct weft_look_source_frame *out, const char *function, const char *file, uint32_t line)
{
	*out = (struct weft_look_source_frame){.function = strdup(function), .file = strdup(file), .line = line};
	if (out->function && out->file)
		return true;
	free_frame(out);
	*out = (struct weft_look_source_frame){.function = NULL};
	return false;
}

/* Reads the function that a SharedFunctionInfo describes.  Returns false without memory. */
static bool read_shared(
    struct look_v8 *v8, const struct look_target *t, uint64_t scope, uint64_t script, struct weft_look_source_frame *out)
{
	char name[MAX_TEXT + 1] = "", file[MAX_TEXT + 1] = "";
	int64_t position = -1;
	if (read_type(v8, t, scope) == v8->is[TYPE_SCOPE])
		position = read_scope(v8, t, scope, name);
	else
		(void)read_text(v8, t, scope, name);
	const bool has_script = read_type(v8, t, script) == v8->is[TYPE_SCRIPT];
	const bool has_file = has_script && read_text(v8, t, read_field(v8, t, script, SCRIPT_NAME), file);
	uint32_t line = 0;
	if (has_file && position >= 0 && position <= UINT32_MAX)
		line = find_line(v8, t, script, file, (uint32_t)position);
	return copy_frame(out, *name ? name : "<anonymous>",
	    has_file     ? skip_scheme(file)
	    : has_script ? "<evaluated>"
			 : "<built in>",
	    line);
}

/* Fills in a frame with the function to which the frame's slot points.  Returns false if the slot points to no function, or
 * without memory.  The thread is stopped meanwhile, so the cache of known functions matters: it reduces about twenty reads to
 * three. */
static bool read_function(struct look_v8 *v8, const struct look_target *t, uint64_t function, struct weft_look_source_frame *out)
{
	const uint64_t shared = read_field(v8, t, function, FUNCTION_SHARED);
	const uint64_t scope = read_field(v8, t, shared, SHARED_NAME), script = read_field(v8, t, shared, SHARED_SCRIPT);
	struct known_function *known = &v8->functions[weft_hash_u64(shared) % KNOWN_FUNCTIONS];
	if (!shared || known->shared != shared || known->scope != scope || known->script != script) {
		struct weft_look_source_frame frame;
		if (read_type(v8, t, shared) != v8->is[TYPE_SHARED] || !read_shared(v8, t, scope, script, &frame))
			return false;
		free_frame(&known->frame);
		*known = (struct known_function){shared, scope, script, frame};
	}
	return copy_frame(out, known->frame.function, known->frame.file, known->frame.line);
}

/* ---- Frames ---- */

static bool read_stack(const struct weft_look_stack *s, uint64_t address, uint64_t *out)
{
	if (address % 8 || address < s->address || address - s->address > s->size ||
	    s->size - (address - s->address) < sizeof *out)
		return false;
	*out = weft_load_u64(s->bytes + (address - s->address));
	return true;
}

/* Returns the caller's frame of the frame at an address, or 0. */
static uint64_t get_outer(const struct weft_look_stack *s, uint64_t frame)
{
	uint64_t outer;
	return read_stack(s, frame, &outer) && outer > frame && outer - s->address < s->size ? outer : 0;
}

static bool returns_to_code(const struct look_target *t, const struct weft_look_stack *s, uint64_t frame)
{
	uint64_t back;
	const struct look_map *map = read_stack(s, frame + 8, &back) ? weft__look_map(t, back) : NULL;
	return map && map->is_executable;
}

/* Returns whether a frame is an active frame through which JavaScript called C++: it contains the number of a known type, and
 * the stack position of a call whose return address is still there. */
static bool is_exit(const struct look_v8 *v8, const struct look_target *t, const struct weft_look_stack *s, uint64_t frame)
{
	uint64_t type, top;
	if (!get_outer(s, frame) || !returns_to_code(t, s, frame) || !read_stack(s, frame - 8, &type) ||
	    !read_stack(s, frame - 16, &top) || top >= frame || !returns_to_code(t, s, top - 16))
		return false;
	for (size_t i = 0; i < EXIT_COUNT; i++)
		if (v8->exits[i] && type == (uint64_t)v8->exits[i] << 1)
			return true;
	return false;
}

/* Returns the first such exit frame from an address on, or 0. */
static uint64_t find_exit(
    const struct look_v8 *v8, const struct look_target *t, const struct weft_look_stack *s, uint64_t address)
{
	for (uint64_t at = (address + 7) & ~UINT64_C(7); at - s->address < s->size; at += 8)
		if (is_exit(v8, t, s, at))
			return at;
	return 0;
}

/* Returns the innermost frame.  Some libraries keep no frame pointer, so the frame pointer register may have any value. */
static uint64_t find_innermost(const struct look_v8 *v8, const struct look_target *t, const struct weft_look_stack *s)
{
	enum { RBP = 6 };
	const uint64_t value = s->registers[RBP];
	return get_outer(s, value) && returns_to_code(t, s, value) ? value : find_exit(v8, t, s, s->address);
}

size_t weft__look_v8_read(struct look_v8 *v8, const struct look_target *t, const struct weft_look_stack *s,
    struct weft_look_source_frame *out, size_t capacity)
{
	size_t count = 0;
	uint64_t frame = find_innermost(v8, t, s);
	for (int left = MAX_LINKS; left > 0 && frame && count < capacity; left--) {
		uint64_t function, context;
		/* Other frames of V8 have a number in the slot in which JavaScript's frames have a context. */
		if (read_stack(s, frame + (uint64_t)(int64_t)v8->is[FRAME_FUNCTION], &function) &&
		    read_stack(s, frame + (uint64_t)(int64_t)v8->is[FRAME_CONTEXT], &context) && is_object(v8, function) &&
		    is_object(v8, context))
			count += read_function(v8, t, function, &out[count]);
		const uint64_t outer = get_outer(s, frame);
		frame = outer ? outer : find_exit(v8, t, s, frame + 8);
	}
	return count;
}

bool weft__look_find_v8(struct look_target *t)
{
	struct look_v8 *v8 = weft__look_v8_create(t);
	bool has_memory = true;
	for (size_t i = 0; v8 && i < t->threads.count && has_memory; i++) {
		struct look_thread *thread = &t->threads.items[i];
		if (thread->sources.count)
			continue;
		struct weft_look_source_frame frames[WEFT_LOOK_FRAMES];
		const size_t count = weft__look_v8_read(v8, t, &thread->stack, frames, WEFT_LOOK_FRAMES);
		has_memory = !count || weft_vec_reserve(&thread->sources, count);
		for (size_t k = 0; k < count; k++) {
			if (has_memory) {
				thread->sources.items[thread->sources.count++] = frames[k];
			} else {
				free(frames[k].function);
				free(frames[k].file);
			}
		}
	}
	weft__look_v8_free(v8);
	return has_memory;
}
