/* cairo_test.c: pictures are written to files, are the same each time, and show what they should.
 * SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/cairo/cairo.h"
#include "draw/random_trace.h"

struct bytes {
	unsigned char *ptr;
	size_t len;
};

static int append(void *ctx, const void *bytes, size_t size)
{
	struct bytes *b = ctx;
	b->ptr = realloc(b->ptr, b->len + size);
	assert_non_null(b->ptr);
	memcpy(b->ptr + b->len, bytes, size);
	b->len += size;
	return 0;
}

static int refuse(void *ctx, const void *bytes, size_t size)
{
	(void)ctx;
	(void)bytes;
	(void)size;
	return -1;
}

static struct weft_trace *trace;
static struct weft_model *model;

static int set_up(void **state)
{
	(void)state;
	static struct mirage_writer w;
	write_random_trace(&w, 5);
	return weft_trace_open_memory(&trace, w.bytes, w.size, "test", NULL) < 0 ||
	       weft_model_build(&model, trace, NULL, NULL) < 0;
}

static int tear_down(void **state)
{
	(void)state;
	weft_model_destroy(model);
	weft_trace_close(trace);
	return 0;
}

static cairo_status_t take(void *closure, unsigned char *bytes, unsigned int size)
{
	struct bytes *b = closure;
	if (b->len < size)
		return CAIRO_STATUS_READ_ERROR;
	memcpy(bytes, b->ptr, size);
	b->ptr += size;
	b->len -= size;
	return CAIRO_STATUS_SUCCESS;
}

static void pictures_of_each_format_start_with_its_signature(void **state)
{
	(void)state;
	static const char *const start[] = {
	    [WEFT_PICTURE_SVG] = "<svg xmlns", [WEFT_PICTURE_PNG] = "\x89PNG", [WEFT_PICTURE_PDF] = "%PDF-"};
	for (int picture = WEFT_PICTURE_SVG; picture <= WEFT_PICTURE_PDF; picture++) {
		struct weft_render_options options = {
		    .picture = (enum weft_picture)picture, .width_px = 700, .height_px = 300, .find = "read"};
		struct bytes once = {NULL, 0}, again = {NULL, 0};
		size_t found = 0;
		assert_int_equal(weft_render(model, &options, append, &once, &found, NULL), WEFT_OK);
		assert_true(found > 0);
		assert_int_equal(weft_render(model, &options, append, &again, NULL, NULL), WEFT_OK);
		assert_true(once.len > 1000 && once.len == again.len && memcmp(once.ptr, again.ptr, once.len) == 0);
		assert_memory_equal(once.ptr, start[picture], strlen(start[picture]));
		assert_int_equal(weft_render(model, &options, refuse, NULL, NULL, NULL), WEFT_EIO);
		free(once.ptr);
		free(again.ptr);
	}
}

static void test_png_has_its_size_and_the_background_of_its_theme(void **state)
{
	(void)state;
	for (int theme = WEFT_THEME_LIGHT; theme <= WEFT_THEME_DARK; theme++) {
		struct weft_render_options options = {
		    .picture = WEFT_PICTURE_PNG, .width_px = 700, .height_px = 300, .theme = (enum weft_theme)theme};
		struct bytes png = {NULL, 0};
		assert_int_equal(weft_render(model, &options, append, &png, NULL, NULL), WEFT_OK);
		struct bytes rest = png;
		cairo_surface_t *surface = cairo_image_surface_create_from_png_stream(take, &rest);
		assert_int_equal(cairo_surface_status(surface), CAIRO_STATUS_SUCCESS);
		assert_int_equal(cairo_image_surface_get_width(surface), 700);
		assert_int_equal(cairo_image_surface_get_height(surface), 300);
		size_t background = 0, other = 0;
		for (int y = 0; y < 300; y++) {
			const unsigned char *line =
			    cairo_image_surface_get_data(surface) + y * cairo_image_surface_get_stride(surface);
			for (int x = 0; x < 700; x++) {
				uint32_t rgb;
				memcpy(&rgb, line + 4 * x, 4);
				if ((rgb & 0xffffff) == weft_theme_rgb((enum weft_theme)theme, WEFT_PAINT_BACKGROUND))
					background++;
				else
					other++;
			}
		}
		assert_true(background > 1000 && other > 1000);
		cairo_surface_destroy(surface);
		free(png.ptr);
	}
}

static int differ_most(cairo_surface_t *a, cairo_surface_t *b)
{
	int most = 0;
	for (int y = 0; y < cairo_image_surface_get_height(a); y++)
		for (int i = 0; i < 4 * cairo_image_surface_get_width(a); i++) {
			int one = cairo_image_surface_get_data(a)[y * cairo_image_surface_get_stride(a) + i];
			int other = cairo_image_surface_get_data(b)[y * cairo_image_surface_get_stride(b) + i];
			most = abs(one - other) > most ? abs(one - other) : most;
		}
	return most;
}

/* Pixels written directly into an image equal those of Cairo under translation and clipping.  The last two of six transforms go
 * through Cairo alone: half pixels and slanted clips, which Cairo rounds in its own way. */
static void check_as_cairo(const struct weft_draw_list *list, int ways, int most)
{
	struct weft_cairo *cairo;
	assert_int_equal(weft_cairo_create(&cairo), WEFT_OK);
	for (int way = 0; way < ways; way++) {
		cairo_surface_t *image[2], *recording = cairo_recording_surface_create(CAIRO_CONTENT_COLOR_ALPHA, NULL);
		cairo_t *cr = cairo_create(recording);
		weft_cairo_draw(cairo, cr, list, WEFT_THEME_LIGHT);
		cairo_destroy(cr);
		for (int i = 0; i < 2; i++) {
			image[i] = cairo_image_surface_create(way % 2 ? CAIRO_FORMAT_ARGB32 : CAIRO_FORMAT_RGB24, 220, 180);
			cr = cairo_create(image[i]);
			if (way >= 2)
				cairo_translate(cr, 7, way == 4 ? 2.5 : -9);
			if (way >= 3) {
				cairo_rectangle(cr, 15, 21, 133, 97);
				cairo_clip(cr);
			}
			if (way == 5) {
				cairo_arc(cr, 80, 80, 50, 0, 6);
				cairo_clip(cr);
			}
			if (i == 0) {
				weft_cairo_draw(cairo, cr, list, WEFT_THEME_LIGHT);
			} else {
				cairo_set_source_surface(cr, recording, 0, 0);
				cairo_paint(cr);
			}
			cairo_destroy(cr);
			cairo_surface_flush(image[i]);
		}
		assert_true(differ_most(image[0], image[1]) <= (way < 4 ? most : 16));
		cairo_surface_destroy(image[0]);
		cairo_surface_destroy(image[1]);
		cairo_surface_destroy(recording);
	}
	weft_cairo_destroy(cairo);
}

static void test_pixel_renderer_draws_rectangles_as_cairo_does(void **state)
{
	(void)state;
	struct weft_prim prims[300];
	for (int i = 0; i < 300; i++) /* none overlaps another; some reach beyond the clip, one is large */
		prims[i] = (struct weft_prim){.kind = WEFT_PRIM_RECT,
		    .paint = (uint8_t)(i / 40 + 1),
		    .alpha = (uint8_t)(i / 20 % 3 ? 80 + i / 2 : 255),
		    .x0 = (float)(i % 20 * 10),
		    .y0 = (float)(i / 20 * 10),
		    .x1 = (float)(i % 20 * 10 + 3 + i % 7),
		    .y1 = (float)(i / 20 * 10 + (i < 280 ? 2 + i % 8 : 700))};
	check_as_cairo(&(struct weft_draw_list){.prims = prims, .count = 300, .width_px = 200, .height_px = 150}, 6, 1);
}

/* Bars side by side, over a ground whose lines are alike for some way. */
static void test_pixel_renderer_draws_bars_as_cairo_does(void **state)
{
	(void)state;
	enum { GROUND = 24, BARS = 40, COUNT = GROUND + 3 * BARS };
	struct weft_prim prims[COUNT];
	for (int i = 0; i < COUNT; i++) {
		int layer = i < GROUND ? 0 : 1 + (i - GROUND) / BARS, at = i < GROUND ? i : (i - GROUND) % BARS;
		prims[i] = (struct weft_prim){.kind = WEFT_PRIM_RECT,
		    .paint = (uint8_t)(layer == 0 ? 2 + at % 5 : 8 + layer),
		    .alpha = (uint8_t)(layer == 3 ? 255 : 60 + 40 * layer),
		    .x0 = (float)(layer == 0 ? at % 3 * 70 : at * 5 + layer),
		    .y0 = (float)(layer == 0 ? at / 3 * 20 : 3 * layer - 8),
		    .x1 = (float)(layer == 0 ? at % 3 * 70 + 65 : at * 5 + layer + 1 + at % 4),
		    .y1 = (float)(layer == 0 ? at / 3 * 20 + 17 : 190 - 40 * layer)};
	}
	check_as_cairo(&(struct weft_draw_list){.prims = prims, .count = COUNT, .width_px = 200, .height_px = 150}, 4, 1);
}

/* Lines of all slopes and arrow heads, some beyond the clip; edges are nearly as smooth as Cairo's. */
static void test_pixel_renderer_draws_arrows_as_cairo_does(void **state)
{
	(void)state;
	enum { COUNT = 42 };
	struct weft_prim prims[COUNT];
	for (int i = 0; i < COUNT; i++) {
		float x = (float)(i % 7 * 30 + 2), y = (float)(i / 7 * 28 + 2);
		prims[i] = (struct weft_prim){.kind = i % 2 ? WEFT_PRIM_TRIANGLE : WEFT_PRIM_LINE,
		    .paint = (uint8_t)(1 + i % 20),
		    .alpha = (uint8_t)(i % 3 ? 200 : 255),
		    .x0 = x + (float)(i % 5 * 6),
		    .y0 = y,
		    .x1 = x + (float)(24 - i % 5 * 6),
		    .y1 = y + (float)(i % 4 * 7 + 1),
		    .width = (float)(1 + i % 3)};
	}
	check_as_cairo(&(struct weft_draw_list){.prims = prims, .count = COUNT, .width_px = 220, .height_px = 180}, 4, 40);
}

static void invalid_render_options_are_refused(void **state)
{
	(void)state;
	struct weft_error err;
	struct weft_render_options options = {.width_px = 40000};
	assert_int_equal(weft_render(model, &options, append, NULL, NULL, &err), WEFT_EINVAL);
	options = (struct weft_render_options){.height_px = -1};
	assert_int_equal(weft_render(model, &options, append, NULL, NULL, &err), WEFT_EINVAL);
	options = (struct weft_render_options){.has_from = true, .from_ns = 500, .has_to = true, .to_ns = 500};
	assert_int_equal(weft_render(model, &options, append, NULL, NULL, &err), WEFT_EINVAL);
	assert_string_equal(err.what, "the end of the picture must be after its start");
	enum weft_picture picture;
	assert_int_equal(weft_picture_from_path(&picture, "a.b/x.PNG"), WEFT_OK);
	assert_int_equal(picture, WEFT_PICTURE_PNG);
	assert_int_equal(weft_picture_from_path(&picture, "png"), WEFT_ENOTSUP);
	assert_int_equal(weft_picture_from_path(&picture, ".svg"), WEFT_ENOTSUP);
	assert_int_equal(weft_picture_from_path(&picture, "x.gif"), WEFT_ENOTSUP);
}

static void failed_render_leaves_no_file(void **state)
{
	(void)state;
	char dir[] = "/tmp/weft-cairo-XXXXXX", path[64];
	struct weft_render_options options = {.picture = WEFT_PICTURE_SVG};
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/x.svg", dir);
	assert_int_equal(weft_render_file(model, &options, path, NULL, NULL), WEFT_OK);
	assert_int_equal(access(path, R_OK), 0);
	/* A failed call leaves no file, and an existing file stays. */
	options.width_px = -1;
	assert_int_equal(weft_render_file(model, &options, path, NULL, NULL), WEFT_EINVAL);
	assert_int_equal(access(path, R_OK), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(weft_render_file(model, &options, path, NULL, NULL), WEFT_EINVAL);
	assert_int_not_equal(access(path, R_OK), 0);
	assert_int_equal(rmdir(dir), 0);
	options.width_px = 0;
	assert_int_equal(weft_render_file(model, &options, path, NULL, NULL), WEFT_ENOENT);
}

static void test_width_of_a_text_is_the_sum_of_its_letters(void **state)
{
	(void)state;
	struct weft_cairo *cairo;
	assert_int_equal(weft_cairo_create(&cairo), WEFT_OK);
	for (enum weft_font font = 0; font < WEFT_FONT_COUNT; font++) {
		double wide = weft_cairo_measure(cairo, font, "WWWW", 4), narrow = weft_cairo_measure(cairo, font, "iiii", 4);
		assert_true(wide > narrow && narrow > 0);
		assert_true(weft_cairo_measure(cairo, font, "", 0) == 0);
		/* The width of plain text is the sum of its letters' widths, as the draw list assumes. */
		assert_true(wide - 4 * weft_cairo_measure(cairo, font, "W", 1) < 1e-9);
		assert_true(weft_cairo_measure(cairo, font, "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d", 8) > 0);
	}
	weft_cairo_destroy(cairo);
	weft_cairo_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pictures_of_each_format_start_with_its_signature),
	    cmocka_unit_test(test_png_has_its_size_and_the_background_of_its_theme),
	    cmocka_unit_test(test_pixel_renderer_draws_rectangles_as_cairo_does),
	    cmocka_unit_test(test_pixel_renderer_draws_bars_as_cairo_does),
	    cmocka_unit_test(test_pixel_renderer_draws_arrows_as_cairo_does),
	    cmocka_unit_test(invalid_render_options_are_refused),
	    cmocka_unit_test(failed_render_leaves_no_file),
	    cmocka_unit_test(test_width_of_a_text_is_the_sum_of_its_letters),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
