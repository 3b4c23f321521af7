/* weft_stubs.c: libweft-record for OCaml.  Ids are OCaml integers.  Sites and counters are never freed, since the recorder keeps
 * their addresses; OCaml holds them as integers, which is what an aligned address with its lowest bit set is.
 * SPDX-License-Identifier: ISC */
#define CAML_INTERNALS
#include <caml/memory.h>
#include <caml/misc.h>
#include <caml/mlvalues.h>
#include <stdlib.h>
#include <string.h>
#include <weft/record.h>

static value wrap_pointer(void *pointer)
{
	return (value)pointer | 1;
}

static void *unwrap_pointer(value wrapped)
{
	return (void *)(wrapped & ~(value)1);
}

value weft_ml_is_on(value unit)
{
	(void)unit;
	return Val_bool(weft_is_on());
}

value weft_ml_running(value unit)
{
	(void)unit;
	return Val_long(weft_running());
}

/* Returns a site, or 0 (the integer) without memory. */
value weft_ml_site(value file, value function, value line)
{
	struct weft_record_site *site = calloc(1, sizeof *site);
	char *names[] = {strdup(String_val(file)), strdup(String_val(function))};
	if (!site || !names[0] || !names[1]) {
		free(site);
		free(names[0]);
		free(names[1]);
		return wrap_pointer(NULL);
	}
	site->file = names[0];
	site->function = names[1];
	site->line = (uint32_t)Long_val(line);
	return wrap_pointer(site);
}

value weft_ml_create(value by, value kind, value site)
{
	return Val_long(weft_create(Long_val(by), (enum weft_kind)Long_val(kind), unwrap_pointer(site)));
}

value weft_ml_label(value promise, value text)
{
	weft_label_bytes(Long_val(promise), String_val(text), caml_string_length(text));
	return Val_unit;
}

value weft_ml_note(value promise, value text)
{
	weft_note(Long_val(promise), String_val(text));
	return Val_unit;
}

value weft_ml_fail(value by, value promise, value text)
{
	weft_fail(Long_val(by), Long_val(promise), String_val(text));
	return Val_unit;
}

#define CALL_WITH_ONE(name)                                                                                                      \
	value weft_ml_##name(value promise)                                                                                      \
	{                                                                                                                        \
		weft_##name(Long_val(promise));                                                                                  \
		return Val_unit;                                                                                                 \
	}
#define CALL_WITH_TWO(name)                                                                                                      \
	value weft_ml_##name(value a, value b)                                                                                   \
	{                                                                                                                        \
		weft_##name(Long_val(a), Long_val(b));                                                                           \
		return Val_unit;                                                                                                 \
	}
CALL_WITH_ONE(run)
CALL_WITH_ONE(resume)
CALL_WITH_ONE(should_resolve)
CALL_WITH_TWO(await)
CALL_WITH_TWO(read)
CALL_WITH_TWO(read_later)
CALL_WITH_TWO(resolve)
CALL_WITH_TWO(become)
CALL_WITH_TWO(signal)

value weft_ml_idle(value why)
{
	weft_idle((enum weft_idle)Long_val(why));
	return Val_unit;
}

/* Returns a counter, or 0 (the integer) without memory. */
value weft_ml_counter(value name)
{
	struct weft_record_text *counter = calloc(1, sizeof *counter);
	char *text = strdup(String_val(name));
	if (!counter || !text) {
		free(counter);
		free(text);
		return wrap_pointer(NULL);
	}
	counter->text = text;
	return wrap_pointer(counter);
}

value weft_ml_counter_set(value counter, value to)
{
	if (unwrap_pointer(counter))
		weft_counter_set(weft_running(), unwrap_pointer(counter), Long_val(to));
	return Val_unit;
}

/* ---- The collector ---- */

static int has_moved; /* a minor collection has moved values since weft_ml_take_moved() */
static int records_pauses;
static void (*next_minor_begin)(void), (*next_minor_end)(void), (*next_major_begin)(void), (*next_major_end)(void);

static void begin_minor(void)
{
	if (__atomic_load_n(&records_pauses, __ATOMIC_RELAXED))
		WEFT_PAUSE_BEGIN("gc, minor");
	if (next_minor_begin)
		next_minor_begin();
}

static void end_minor(void)
{
	__atomic_store_n(&has_moved, 1, __ATOMIC_RELEASE);
	if (next_minor_end)
		next_minor_end();
	if (__atomic_load_n(&records_pauses, __ATOMIC_RELAXED))
		weft_pause_end();
}

static void begin_major(void)
{
	WEFT_PAUSE_BEGIN("gc, major slice");
	if (next_major_begin)
		next_major_begin();
}

static void end_major(void)
{
	if (next_major_end)
		next_major_end();
	weft_pause_end();
}

/* Watches minor collections, which move values. */
value weft_ml_watch_moves(value unit)
{
	static bool is_done;
	(void)unit;
	if (is_done)
		return Val_unit;
	is_done = true;
	next_minor_begin = caml_minor_gc_begin_hook;
	next_minor_end = caml_minor_gc_end_hook;
	caml_minor_gc_begin_hook = begin_minor;
	caml_minor_gc_end_hook = end_minor;
	return Val_unit;
}

value weft_ml_record_gc(value unit)
{
	if (records_pauses)
		return Val_unit;
	weft_ml_watch_moves(unit);
	next_major_begin = caml_major_slice_begin_hook;
	next_major_end = caml_major_slice_end_hook;
	caml_major_slice_begin_hook = begin_major;
	caml_major_slice_end_hook = end_major;
	__atomic_store_n(&records_pauses, 1, __ATOMIC_RELAXED);
	return Val_unit;
}

/* Returns whether values may have moved since the last call. */
value weft_ml_take_moved(value unit)
{
	(void)unit;
	return Val_bool(__atomic_exchange_n(&has_moved, 0, __ATOMIC_ACQ_REL));
}

/* Returns the address of a value as an integer, which holds until the next collection. */
value weft_ml_address(value of)
{
	return of | 1;
}
