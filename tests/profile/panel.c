/* panel.c: prints the panel of each promise of a trace.  SPDX-License-Identifier: ISC */
#include <stdio.h>

#include "trace/trace.h"
#include "viewer/panel.h"
#include "viewer/viewer.h"

int main(int argc, char **argv)
{
	struct weft_trace *trace;
	struct weft_viewer *viewer;
	struct weft_rows rows = {0};
	if (argc != 2 || weft_trace_open(&trace, argv[1], NULL) < 0 || weft_viewer_open(&viewer, trace, NULL, NULL) < 0)
		return 1;
	for (uint32_t promise = 1; promise < viewer->model->promise_count; promise++) {
		if (weft_panel_fill(&rows, viewer, promise, NULL) < 0)
			return 1;
		for (size_t i = 0; i < rows.count; i++)
			printf("%s: %s\n", rows.rows[i].name, rows.rows[i].value);
	}
	weft_rows_finish(&rows);
	weft_viewer_destroy(viewer);
	return 0;
}
