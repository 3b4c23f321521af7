/* place.c: finds the place in the user's JavaScript code that runs.
 *
 * A stack trace of V8 takes microseconds.  A sample of the stack, which V8 offers for profilers, takes a fraction of that time;
 * a hash of the sample's addresses is the key by which a place is found.  V8 moves code only in a full garbage collection, which
 * empties the table of keys.  SPDX-License-Identifier: ISC */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/hook/address_cache.h"
#include "adapters/hook/state.h"
#include "adapters/node/common.h"

enum {
	KEY_COUNT = 1 << 12,
	NEAR_FRAMES = 8, /* number of frames in which the place of a promise is searched */
	/* Number of frames in which the place of a handle or request is searched, which code of Node.js makes. */
	FAR_FRAMES = 24,
	PLACE_COUNT = 1 << 13, /* maximum number of places of a thread; further places are unknown */
	FULL_COLLECTION = 4,
	STACK_OPTIONS = 1 | 2 | 4 | 8 | 128, /* flags for line, column, function, script, and id of the script */
	/* Maximum size of a searched script, because larger scripts take long to copy; their async functions are promises. */
	MAX_SOURCE_LENGTH = 1 << 20,
	MAX_NAME_BYTES = 512,
	SAMPLE_WORDS = 64, /* size that is at least that of v8::SampleInfo in each version */
	SAMPLE_STATE = 4,  /* index of the word with the state, since Node.js 18 */
	/* States of a thread: in C++ code that JavaScript has called, since V8 12 only for some calls; in JavaScript or in C++
	 * code that it has called. */
	STATE_EXTERNAL = 6,
	STATE_JAVASCRIPT = 0
};

struct key {
	uint64_t key;
	struct js_place *place;
	unsigned depth;
};

static __thread struct thread_places {
	isolate of;
	struct key keys[KEY_COUNT];
	struct js_place *places[PLACE_COUNT];
	unsigned count;
	int source_script; /* id of the script whose text is kept */
	char *source;
} * here __attribute__((tls_model("initial-exec")));

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static void forget_keys(isolate of, int type, int flags, void *data)
{
	struct thread_places *places = data;
	memset(places->keys, 0, sizeof places->keys);
}

/* The places themselves are not freed, because the recorder and other threads may know their addresses. */
void weft__node_forget_places(void)
{
	if (here) {
		free(here->source);
		free(here);
	}
	here = NULL;
}

/* Returns a copy of a string, of at most `max` bytes; NULL if there is no string. */
static char *copy_string(isolate of, handle string, size_t max)
{
	/* The array leaves space, because later versions of the class may have more members. */
	struct utf8 words[4] = {{NULL, 0}}, *utf8 = words;
	if (!string)
		return NULL;
	if (weft__v8.begin_utf8)
		weft__v8.begin_utf8(utf8, of, string);
	else
		weft__v8.begin_utf8_since_13(utf8, of, string, 0);
	char *copy = utf8->text ? strndup(utf8->text, max) : NULL;
	weft__v8.end_utf8(utf8);
	return copy;
}

static bool is_of_user(const char *file)
{
	return file && *file && strncmp(file, "node:", 5) != 0 && strncmp(file, "wasm:", 5) != 0 &&
	       !strstr(file, "/node_modules/");
}

/* Returns the source text of a place, from the column on; NULL: unknown. */
static const char *find_text(isolate of, handle frame, int script, uint32_t line, uint32_t column)
{
	if (!here->source || here->source_script != script) {
		handle source = weft__v8.get_source(frame);
		free(here->source);
		here->source_script = script;
		here->source = source && weft__v8.get_length(source) <= MAX_SOURCE_LENGTH
				   ? copy_string(of, source, 4 * MAX_SOURCE_LENGTH)
				   : NULL;
	}
	const char *text = here->source;
	for (; text && line; line--) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return text && strlen(text) >= column ? text + column : NULL;
}

/* The place of an async function is at its parameters, and the place of an `await` is that of the last call in its statement. */
static void read_text(struct js_place *place, const char *text)
{
	static const char *const derived[] = {"then", "catch", "finally", "all", "race", "any"};
	enum { FIRST_JOIN = 3 };
	size_t word = 0;
	while (isalnum((unsigned char)text[word]) || text[word] == '_' || text[word] == '$')
		word++;
	const char *after = text + word + strspn(text + word, " ");
	place->is_entry = text[0] == '(' || strncmp(text, "async", 5) == 0 || (word && strncmp(after, "=>", 2) == 0);
	for (size_t i = 0; i < sizeof derived / sizeof *derived; i++)
		if (strncmp(text, derived[i], strlen(derived[i])) == 0) {
			place->is_derived = true;
			place->is_join |= i >= FIRST_JOIN;
		}
}

static struct js_place *create_place(isolate of, handle frame, int script, uint64_t location, char *file)
{
	struct js_place *place = calloc(1, sizeof *place);
	if (!place)
		return NULL;
	const uint32_t line = (uint32_t)location, column = (uint32_t)(location >> 32);
	char *function = copy_string(of, weft__v8.get_function_name(frame), MAX_NAME_BYTES);
	const char *text = find_text(of, frame, script, line, column);
	place->site.file = strncmp(file, "file://", 7) == 0 ? file + 7 : file;
	place->site.function = function ? function : "";
	place->site.line = line + 1;
	place->is_of_user = is_of_user(file);
	if (text)
		read_text(place, text);
	return place;
}

/* Returns the place of a frame; NULL if the frame's code is of no interest. */
static struct js_place *find_frame(isolate of, handle frame)
{
	const uint64_t location = weft__v8.get_location(frame);
	const int script = weft__v8.get_script(frame);
	const uint64_t key = mix(mix(1, (uint64_t)script), location) | 1;
	size_t i = key >> 32 & (PLACE_COUNT - 1);
	while (here->places[i] && here->places[i]->key != key)
		i = (i + 1) & (PLACE_COUNT - 1);
	if (here->places[i] || here->count == PLACE_COUNT / 2)
		return here->places[i];
	char *file = copy_string(of, weft__v8.get_script_name(frame), MAX_NAME_BYTES);
	struct js_place *place = is_of_user(file) || (file && weft__hook_js == WEFT_HOOK_JS_ALL)
				     ? create_place(of, frame, script, location, file)
				     : NULL;
	if (!place) {
		free(file);
		return NULL;
	}
	place->key = key;
	here->count++;
	return here->places[i] = place;
}

static struct js_place *search_stack(isolate of, unsigned most, bool has_all_code, unsigned *depth)
{
	handle stack = weft__v8.capture_stack(of, (int)most, STACK_OPTIONS);
	const int count = stack ? weft__v8.count_frames(stack) : 0;
	for (int i = 0; i < count; i++) {
		handle frame = weft__v8.get_frame(stack, of, (uint32_t)i);
		struct js_place *place = frame ? find_frame(of, frame) : NULL;
		*depth = (unsigned)i;
		if (place && (place->is_of_user || has_all_code))
			return place;
	}
	return NULL;
}

struct sample {
	uint64_t key; /* hash of the frames; 0 if no JavaScript is on the stack, or a garbage collection runs */
	unsigned state;
	const void *innermost; /* address of the innermost frame's code, which is in V8's heap if the code is interpreted */
};

/* Allocates nothing.  The key is a hash of as many frames as are searched, so that stacks with the same key have the same
 * place. */
static __attribute__((noinline)) struct sample take_sample(isolate of, unsigned most)
{
	const struct v8_registers registers = {
	    __builtin_return_address(0), __builtin_frame_address(0), __builtin_frame_address(0), __builtin_return_address(0)};
	void *frames[FAR_FRAMES] = {NULL};
	uint64_t info[SAMPLE_WORDS] = {0}, key = most;
	weft__v8.sample_stack(of, &registers, frames, most, info);
	for (size_t i = 0; i < info[0] && i < most; i++)
		key = mix(key, (uint64_t)(uintptr_t)frames[i]);
	return (struct sample){info[0] ? key | 1 : 0, (uint16_t)info[SAMPLE_STATE], frames[0]};
}

/* Returns whether C++ code that JavaScript has called may use the heap.  Fast calls, which only optimized code makes, may not. */
static bool may_use_heap(isolate of, const struct sample *sample, bool may_be_fast)
{
	if (sample->state != STATE_JAVASCRIPT || !may_be_fast)
		return sample->state == STATE_EXTERNAL || sample->state == STATE_JAVASCRIPT;
	if (weft__v8.get_fast_call)
		return !*weft__v8.get_fast_call(of);
	void *begin = NULL;
	size_t bytes = 0;
	weft__v8.get_code_range(of, &begin, &bytes);
	return bytes && (uintptr_t)sample->innermost - (uintptr_t)begin >= bytes &&
	       !weft__hook_language.is_runtime(sample->innermost);
}

static bool attach_isolate(isolate of)
{
	if (!here && (here = calloc(1, sizeof *here))) {
		here->of = of;
		weft__v8.on_collection(of, forget_keys, here, FULL_COLLECTION);
	}
	return here && here->of == of;
}

static struct key *find_key(uint64_t key)
{
	return &here->keys[key >> 40 & (KEY_COUNT - 1)];
}

struct js_place *weft__node_find_place(isolate of, unsigned *depth)
{
	*depth = 0;
	if (!attach_isolate(of))
		return NULL;
	const uint64_t key = take_sample(of, NEAR_FRAMES).key;
	struct key *known = find_key(key);
	if (key && known->key == key) {
		*depth = known->depth;
		return known->place;
	}
	struct js_place *place = search_stack(of, NEAR_FRAMES, true, depth);
	if (key)
		*known = (struct key){key, place, *depth};
	return place;
}

/* A stack trace uses the heap of JavaScript.  The heap must not be used in a garbage collection, nor in the fast calls of
 * optimized code; for these only a known place is found. */
static struct js_place *find_caller(isolate of, bool may_be_fast)
{
	const struct sample sample = take_sample(of, FAR_FRAMES);
	unsigned depth = 0;
	if (!sample.key || !attach_isolate(of))
		return NULL;
	struct key *known = find_key(sample.key);
	if (known->key == sample.key)
		return known->place;
	if (!may_use_heap(of, &sample, may_be_fast))
		return NULL;
	uintptr_t scope[V8_SCOPE_WORDS];
	weft__v8_begin_scope(scope, of);
	struct js_place *place = search_stack(of, FAR_FRAMES, false, &depth);
	weft__v8_end_scope(scope);
	*known = (struct key){sample.key, place, depth};
	return place;
}

static bool has_isolates;

static isolate get_isolate(void)
{
	return __atomic_load_n(&has_isolates, __ATOMIC_RELAXED) ? weft__v8.try_get_current() : NULL;
}

void weft__node_note_isolate(void)
{
	__atomic_store_n(&has_isolates, true, __ATOMIC_RELAXED);
}

bool weft__node_has_isolate(void)
{
	return get_isolate() != NULL;
}

struct weft_record_site *weft__node_find_line(bool may_be_fast)
{
	const int saved = errno;
	isolate of = get_isolate();
	struct js_place *place = of ? find_caller(of, may_be_fast) : NULL;
	if (!place)
		place = weft__node_get_running_place();
	errno = saved;
	return place ? &place->site : NULL;
}

bool weft__node_runs_code(void)
{
	const int saved = errno;
	isolate of = get_isolate();
	const bool runs = of && take_sample(of, 1).key;
	errno = saved;
	return runs;
}
