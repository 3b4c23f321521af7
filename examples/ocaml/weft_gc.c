/* weft_gc.c: records OCaml's garbage collections as pauses, for any program in OCaml 4 or 5 that links this file and
 * libweft-record (docs/ocaml.md).  The hooks are the runtime's own; in OCaml 5 each domain calls them on its OS thread.
 * SPDX-License-Identifier: ISC */
#define CAML_INTERNALS
#include <caml/misc.h>
#include <caml/mlvalues.h>
#include <weft/record.h>

static void begin_minor(void)
{
	WEFT_PAUSE_BEGIN("gc, minor");
}

static void begin_major(void)
{
	WEFT_PAUSE_BEGIN("gc, major slice");
}

static void end_collection(void)
{
	weft_pause_end();
}

/* external weft_gc : unit -> unit = "weft_gc" */
value weft_gc(value unit)
{
	caml_minor_gc_begin_hook = begin_minor;
	caml_minor_gc_end_hook = end_collection;
	caml_major_slice_begin_hook = begin_major;
	caml_major_slice_end_hook = end_collection;
	return unit;
}
