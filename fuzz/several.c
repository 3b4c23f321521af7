/* several.c: shows the two halves of any bytes as two traces in one viewer.  The first byte is the position of a wheel event.
 * SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>

#include "viewer/compare.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

static void require(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "several traces in one viewer: %s\n", what);
		abort();
	}
}

static void add_viewer(struct weft_compare *both, const unsigned char *bytes, size_t size)
{
	struct weft_trace *trace;
	struct weft_viewer *viewer;
	if (weft_trace_open_memory(&trace, bytes, size, "fuzz", NULL) < 0)
		return;
	if (weft_viewer_open(&viewer, trace, NULL, NULL) == WEFT_OK)
		require(weft_compare_add(both, viewer, NULL) == WEFT_OK, "two viewers fit");
	else
		weft_trace_close(trace);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	struct weft_compare both = {0};
	struct weft_pane panes[WEFT_COMPARE_PANES];
	if (size < 2)
		return 0;
	const size_t first = (size - 1) / 2;
	add_viewer(&both, bytes + 1, first);
	add_viewer(&both, bytes + 1 + first, size - 1 - first);
	if (both.count > 0) {
		weft_compare_resize(&both, 320, 180, 1);
		weft_compare_wheel(&both, bytes[0], 40, 0, -3, 0);
		require(weft_compare_draw(&both, panes, WEFT_COMPARE_PANES, NULL) == (int)both.count * WEFT_PANES,
		    "there is a picture");
	}
	weft_compare_finish(&both);
	return 0;
}
