/* look.c: look TRACE does the usual steps of a user in a viewer, and prints the amount of output. SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>

#include "viewer/panel.h"
#include "viewer/search.h"
#include "viewer/viewer.h"

static size_t draw(struct weft_viewer *v)
{
	size_t primitives = 0;
	if (weft_viewer_draw(v, NULL) < 0)
		exit(2);
	for (int pane = 0; pane < WEFT_PANES; pane++)
		primitives += v->panes[pane].list->count;
	return primitives;
}

static size_t zoom_in(struct weft_viewer *v)
{
	size_t primitives = 0;
	for (int depth = 0; depth < 10; depth++) {
		weft_viewer_zoom(v, 4, 500);
		weft_viewer_scroll_to_y(v, v->view->slots * depth / 10);
		primitives += draw(v);
	}
	weft_viewer_show_all(v);
	return primitives;
}

static size_t search(struct weft_viewer *v, const char *text)
{
	weft_viewer_search(v, text, NULL);
	while (weft_viewer_search_step(v, 100000))
		;
	return v->view->found + draw(v);
}

static size_t look_at_promises(struct weft_viewer *v)
{
	struct weft_rows panel = {0};
	size_t lines = 0;
	uint32_t count = (uint32_t)v->model->promise_count;
	for (uint32_t i = 0; i < 20 && count > 1; i++) {
		weft_viewer_select_and_reveal(v, 1 + (uint32_t)((uint64_t)i * (count - 2) / 20));
		if (weft_panel_fill(&panel, v, v->selected, NULL) < 0)
			exit(2);
		lines += panel.count;
		weft_viewer_walk(v, (enum weft_walk_step)(i % 4));
		if (i % 5 == 0)
			weft_viewer_highlight_related(v, v->selected);
		draw(v);
	}
	weft_rows_finish(&panel);
	return lines;
}

int main(int argc, char **argv)
{
	struct weft_trace *trace;
	struct weft_viewer *v;
	struct weft_error err;
	char text[640];
	if (argc != 2)
		return 2;
	if (weft_trace_open(&trace, argv[1], &err) < 0 || weft_viewer_open(&v, trace, NULL, &err) < 0) {
		weft_error_format(&err, text, sizeof text);
		fprintf(stderr, "%s\n", text);
		return 2;
	}
	size_t seen = draw(v) + zoom_in(v) + search(v, "a") + search(v, "failed") + search(v, "1") + look_at_promises(v);
	printf("%zu\n", seen);
	weft_viewer_destroy(v);
	return 0;
}
