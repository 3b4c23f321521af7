/* frame.c: the draw lists of a trace at a place, in text: frame TRACE WIDTH HEIGHT PLACE.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>

#include "viewer/compare.h"

int main(int argc, char **argv)
{
	struct weft_trace *trace;
	struct weft_viewer *viewer;
	struct weft_compare all = {0};
	struct weft_error err;
	char *text;
	size_t size;
	if (argc != 5)
		return 2;
	if (weft_trace_open(&trace, argv[1], &err) < 0 || weft_viewer_open(&viewer, trace, NULL, &err) < 0 ||
	    weft_compare_add(&all, viewer, &err) < 0)
		return 1;
	weft_compare_resize(&all, atof(argv[2]), atof(argv[3]), 1);
	if (weft_compare_go(&all, argv[4], &err) < 0)
		return 1;
	while (weft_compare_search_step(&all, 1000))
		;
	if (weft_viewer_draw(viewer, &err) < 0)
		return 1;
	for (int pane = 0; pane < WEFT_PANES; pane++) {
		if (weft_draw_dump(viewer->panes[pane].list, &text, &size) < 0)
			return 1;
		fwrite(text, 1, size, stdout);
		free(text);
	}
	weft_compare_finish(&all);
	return 0;
}
