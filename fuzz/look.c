/* look.c: looks at any bytes as a core dump, and reads the trace that is made of it.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "look/look.h"
#include "model/check_model.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

/* Takes the place of the unwinder: each thread gets the words of its stack as frames. */
static void unwind(struct weft_look_request *request)
{
	for (size_t i = 0; i < request->stack_count; i++) {
		struct weft_look_stack *s = &request->stacks[i];
		for (size_t at = 0; at + 8 <= s->size && s->frame_count < WEFT_LOOK_FRAMES; at += 8) {
			uint64_t word = 0;
			for (int k = 7; k >= 0; k--)
				word = word << 8 | s->bytes[at + (size_t)k];
			s->frames[s->frame_count++].address = word;
		}
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	const int file = memfd_create("core", MFD_CLOEXEC);
	struct weft_trace *trace;
	const struct weft_event *events;
	size_t count, threads = 0;
	if (file < 0 || write(file, bytes, size) != (ssize_t)size)
		abort();
	if (weft_look_core(&trace, file, "fuzz", unwind, NULL) == WEFT_OK) {
		CHECK_MODEL(weft_trace_info(trace)->is_seen_once && weft_trace_info(trace)->skipped_count == 0);
		while (weft_trace_next(trace, &events, &count) == 1)
			for (size_t i = 0; i < count; i++)
				threads += events[i].op == WEFT_OP_CREATE;
		CHECK_MODEL(threads == weft_trace_info(trace)->stream_count);
		weft_trace_close(trace);
	}
	close(file);
	return 0;
}
