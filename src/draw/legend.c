/* legend.c: draws the legend in a corner of the frame, and the breadcrumb that names the shown subset.
 * SPDX-License-Identifier: ISC */
#include "draw/ruler.h"
#include "draw/threads.h"

#include <string.h>

#define ROW_PX 18
#define SIGN_PX 44 /* width of a sign */
#define EDGE_PX 10
#define CRUMB_PX 20 /* height */

enum sign {
	SIGN_LINE,
	SIGN_RUN,
	SIGN_CREATION,
	SIGN_UNHEARD,
	SIGN_FAILED,
	SIGN_EXPECTED,
	SIGN_FOLD,
	SIGN_ARROWS,
	SIGN_SLEEP = SIGN_ARROWS + WEFT_ARROWS,
	SIGN_PAUSE,
	SIGNS,
	SIGN_OS = SIGNS, /* sign for OS threads, shown if the trace has kernel data */
	SIGN_OS_FAULT = SIGN_OS + WEFT_OS_STATES,
	SIGN_OS_SPENT,
	SIGN_OS_WAKE,
	ALL_SIGNS
};

static const char *const meaning[] = {
    [SIGN_LINE] = "a promise, from its creation to its end",
    [SIGN_RUN] = "code of the promise runs",
    [SIGN_CREATION] = "a promise creates or becomes another",
    [SIGN_UNHEARD] = "the end is not recorded",
    [SIGN_FAILED] = "failed; red from start to end: never resolved",
    [SIGN_EXPECTED] = "failed as expected: cancelled, not found",
    [SIGN_FOLD] = "folded promises: number in flight, share running",
    [SIGN_ARROWS + WEFT_ARROW_AWAIT] = "waits for a promise",
    [SIGN_ARROWS + WEFT_ARROW_READ] = "reads a result",
    [SIGN_ARROWS + WEFT_ARROW_RESOLVE] = "resolves a promise",
    [SIGN_ARROWS + WEFT_ARROW_SIGNAL] = "sends a message",
    [SIGN_ARROWS + WEFT_ARROW_READ_FAILED] = "reads an error",
    [SIGN_SLEEP] = "the program sleeps",
    [SIGN_PAUSE] = "a pause: no promise could run",
    [SIGN_OS + WEFT_OS_RUNS] = "an OS thread runs",
    [SIGN_OS + WEFT_OS_PREEMPTED] = "preempted: another thread has the CPU",
    [SIGN_OS + WEFT_OS_READY] = "ready (runnable), waiting for a CPU",
    [SIGN_OS + WEFT_OS_DISK] = "blocked on disk I/O",
    [SIGN_OS + WEFT_OS_BLOCKED] = "blocked",
    [SIGN_OS_SPENT] = "interrupts, garbage collection",
    [SIGN_OS_FAULT] = "page faults",
    [SIGN_OS_WAKE] = "wakes an OS thread",
};

static void draw_sign(struct weft__frame *f, int sign, int x0, int x1, int y)
{
	const struct weft__ink line = weft__ink(WEFT_LAYER_PROMISE, WEFT_PAINT_PROMISE, 255),
			       red = weft__ink(WEFT_LAYER_FAILED, WEFT_PAINT_FAILED, 255);
	if (sign >= SIGN_ARROWS && sign < SIGN_ARROWS + WEFT_ARROWS) {
		weft__draw_arrow(f, (enum weft_arrow)(sign - SIGN_ARROWS), x0 + 2, x1 - 2, y - 1);
		return;
	}
	if (sign >= SIGN_OS && sign < SIGN_OS_FAULT) {
		weft__draw_os_state(f, (enum weft_os_state)(sign - SIGN_OS), x0, y - 6, x1, y + 8);
		return;
	}
	if (sign < SIGN_ARROWS && sign != SIGN_CREATION)
		weft__rect(f, line, x0, y, x1, y + 2);
	switch (sign) {
	case SIGN_RUN: weft__rect(f, weft__ink(WEFT_LAYER_RUN, WEFT_PAINT_RUN, 255), x0 + 10, y - 3, x1 - 8, y + 5); break;
	case SIGN_CREATION:
		weft__rect(f, line, x0, y - 5, x1, y - 3);
		weft__rect(f, line, x0 + 20, y + 4, x1, y + 6);
		weft__rect(f, weft__ink(WEFT_LAYER_CREATION, WEFT_PAINT_CREATION, 255), x0 + 20, y - 3, x0 + 21, y + 5);
		break;
	case SIGN_UNHEARD: weft__triangle(f, line, x1, y + 1, x1 - 7, y + 1, 4); break;
	case SIGN_FAILED:
		weft__rect(f, red, x0 + 14, y, x1, y + 2);
		weft__rect(f, red, x1 - 2, y - 5, x1, y + 7);
		break;
	case SIGN_EXPECTED: weft__rect(f, line, x1 - 2, y - 5, x1, y + 7); break;
	case SIGN_FOLD:
		for (int i = 0; i < 11; i++)
			weft__rect(f, weft__ink(WEFT_LAYER_CREATION, WEFT_PAINT_PROMISE, 88), x0 + i * 4, y - 2 - i * 5 % 6,
			    x0 + i * 4 + 4, y);
		weft__rect(f, weft__ink(WEFT_LAYER_RUN, WEFT_PAINT_RUN, 255), x0 + 12, y - 1, x0 + 22, y + 3);
		break;
	case SIGN_SLEEP: weft__rect(f, weft__ink(WEFT_LAYER_SHADE, WEFT_PAINT_SLEEP, 255), x0, y - 6, x1, y + 8); break;
	case SIGN_PAUSE: weft__rect(f, weft__ink(WEFT_LAYER_SHADE, WEFT_PAINT_PAUSE, 255), x0, y - 6, x1, y + 8); break;
	case SIGN_OS_FAULT:
		for (int i = 0; i < 4; i++)
			weft__rect(f, weft__ink(WEFT_LAYER_METRIC, WEFT_PAINT_TIME_WAITING, 255), x0 + i * 11, y, x0 + i * 11 + 3,
			    y + 2);
		break;
	case SIGN_OS_SPENT:
		weft__rect(f, weft__ink(WEFT_LAYER_HIGHLIGHT, WEFT_PAINT_PAUSE_TEXT, 255), x0, y - 3, x1, y + 2);
		break;
	case SIGN_OS_WAKE: weft__draw_wake_arrow(f, (x0 + x1) / 2.0, y - 8, y + 8); break;
	default: break;
	}
}

static void draw_edge(struct weft__frame *f, int x0, int y0, int x1, int y1)
{
	const struct weft__ink edge = weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_AXIS_TEXT, 255);
	weft__rect(f, weft__ink(WEFT_LAYER_BACK, WEFT_PAINT_BACKGROUND, 255), x0, y0, x1, y1);
	weft__rect(f, edge, x0, y0, x1, y0 + 1);
	weft__rect(f, edge, x0, y1 - 1, x1, y1);
	weft__rect(f, edge, x0, y0, x0 + 1, y1);
	weft__rect(f, edge, x1 - 1, y0, x1, y1);
}

static int count_signs(const struct weft_model *model, const struct weft_draw_options *options)
{
	const struct weft_os_tracks *tracks;
	return !options->no_threads && weft_model_os_tracks(model, &tracks) == WEFT_OK && tracks ? ALL_SIGNS : SIGNS;
}

/* Draws the first signs with their meanings, right-aligned, from y0 on. */
static void draw_signs(struct weft__frame *f, int signs, int y0)
{
	double widest = 0;
	for (int i = 0; i < signs; i++) {
		double width = weft__text_width(f, WEFT_FONT_LABEL, meaning[i], strlen(meaning[i]));
		widest = width > widest ? width : widest;
	}
	int x1 = f->width - 8, x0 = x1 - weft__floor(widest) - SIGN_PX - 3 * EDGE_PX;
	draw_edge(f, x0, y0, x1, y0 + signs * ROW_PX + EDGE_PX);
	for (int i = 0; i < signs; i++) {
		int y = y0 + EDGE_PX / 2 + i * ROW_PX + ROW_PX / 2;
		size_t len = strlen(meaning[i]);
		double width = weft__text_width(f, WEFT_FONT_LABEL, meaning[i], len);
		draw_sign(f, i, x0 + EDGE_PX, x0 + EDGE_PX + SIGN_PX, y);
		/* The signs are far enough from each other, also below a frame, where weft__text_put() writes nothing. */
		weft__list_text(f, WEFT_PAINT_LABEL, x0 + SIGN_PX + 2 * EDGE_PX, y + 5,
		    (struct weft__writing){WEFT_FONT_LABEL, meaning[i], len, width});
	}
}

void weft__draw_legend(struct weft__frame *f)
{
	draw_signs(f, count_signs(f->model, &f->options), 8);
}

static void draw_below(struct weft__frame *f, const void *signs, int top)
{
	draw_signs(f, *(const int *)signs, top + 8);
}

int weft_legend_draw(
    struct weft_draw_list *list, const struct weft_model *model, const struct weft_draw_options *options, struct weft_error *err)
{
	const int signs = count_signs(model, options);
	return weft__frame_append(list, signs * ROW_PX + EDGE_PX + 16, options, draw_below, &signs, err);
}

void weft__draw_crumb(struct weft__frame *f, const char *crumb)
{
	char text[300];
	double width;
	size_t len = weft__text_clean(text, sizeof text - 4, crumb, strlen(crumb));
	len = weft__text_fit(f, WEFT_FONT_BOLD, text, len, sizeof text, f->width / 2.0, &width);
	f->s->crumb_x1 = 0;
	if (len == 0)
		return;
	f->s->crumb_x1 = weft__floor(width) + 3 * EDGE_PX;
	draw_edge(f, EDGE_PX, 4, f->s->crumb_x1, 4 + CRUMB_PX);
	weft__text_put(
	    f, WEFT_PAINT_LABEL, 2 * EDGE_PX, 4 + CRUMB_PX - 6, (struct weft__writing){WEFT_FONT_BOLD, text, len, width});
}

bool weft_draw_is_crumb_at(const struct weft_draw_list *list, double x_px, double y_px)
{
	return list->scratch && x_px >= EDGE_PX && x_px < list->scratch->crumb_x1 && y_px >= 4 && y_px < 4 + CRUMB_PX;
}
