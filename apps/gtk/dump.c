/* dump.c: writes the contents of a window as JSON, for tests that act on the window like a user.
 * SPDX-License-Identifier: ISC */
#include "dump.h"
#include "place.h"

#include <inttypes.h>

#include "base/json.h"
#include "compat.h"
#include "viewer/search.h"
#include "viewer/summary.h"
#include "window_private.h"

#define PROMISES 3000u

static void put_piece(void *out, const char *bytes, size_t size)
{
	g_string_append_len(out, bytes, (gssize)size);
}

static void put_string(GString *out, struct weft_str text)
{
	g_string_append_c(out, '"');
	weft_json_text(text, put_piece, out);
	g_string_append_c(out, '"');
}

void dump_string(GString *out, const char *text)
{
	put_string(out, (struct weft_str){text, (uint32_t)strlen(text)});
}

static void put_text(GString *out, const char *key, const char *text)
{
	g_string_append_printf(out, "\"%s\":", key);
	dump_string(out, text);
	g_string_append_c(out, ',');
}

static int64_t id_of(const struct weft_viewer *viewer, uint32_t promise)
{
	return promise == WEFT_NONE ? INT64_MIN : viewer->model->promises[promise].id;
}

static void put_id(GString *out, const char *key, const struct weft_viewer *viewer, uint32_t promise)
{
	if (promise == WEFT_NONE)
		g_string_append_printf(out, "\"%s\":null,", key);
	else
		g_string_append_printf(out, "\"%s\":%" PRId64 ",", key, id_of(viewer, promise));
}

/* Writes the positions of promises in the window: id, left, right, y. */
static void put_promises(GString *out, const struct weft_viewer *viewer, double left, double top)
{
	const struct weft_model *model = viewer->model;
	const char *comma = "";
	g_string_append(out, "\"promises\":[");
	for (uint32_t i = 1; i < model->promise_count && i < PROMISES; i++) {
		const struct weft_promise *p = &model->promises[i];
		if (viewer->layout->rows[i] == WEFT_NONE)
			continue;
		double x0 = weft_view_x(viewer->view, p->start_ns) * viewer->scale;
		double x1 = weft_view_x(viewer->view, p->end_ns) * viewer->scale;
		double y = weft_view_y(viewer->view, weft_view_slot(viewer->view, viewer->layout->rows[i])) * viewer->scale;
		const double width = viewer->panes[WEFT_PANE_PICTURE].width_px;
		if (x1 < 0 || x0 > width)
			continue;
		g_string_append_printf(
		    out, "%s[%" PRId64 ",%.1f,%.1f,%.1f]", comma, p->id, left + MAX(x0, 0), left + MIN(x1, width), top + y);
		comma = ",";
	}
	g_string_append(out, "]");
}

static void put_viewer(GString *out, WeftWindow *window, size_t index)
{
	const struct weft_compare *viewers = weft_stage_viewers(window->stage);
	struct weft_viewer *viewer = viewers->viewers[index];
	double left = 0, top = 0;
	int64_t from, to;
	place_in(GTK_WIDGET(weft_stage_canvas(window->stage)), GTK_WIDGET(window), 0, viewers->tops_px[index], &left, &top);
	/* A window may have a shadow around it, which the position must exclude. */
	double shadow_x = 0, shadow_y = 0;
	gtk_native_get_surface_transform(GTK_NATIVE(window), &shadow_x, &shadow_y);
	const struct weft_pane *picture = &viewer->panes[WEFT_PANE_PICTURE];
	left += shadow_x + picture->x_px;
	top += shadow_y + picture->y_px;
	weft_viewer_times(viewer, &from, &to);
	g_string_append_c(out, '{');
	put_text(out, "path", weft_stage_paths(window->stage, index)[0]);
	g_string_append_printf(out,
	    "\"events\":%" PRIu64 ",\"end_ns\":%" PRId64 ",\"from_ns\":%" PRId64 ",\"to_ns\":%" PRId64 ",", viewer->model->events,
	    viewer->model->end_ns, from, to);
	g_string_append_printf(out, "\"x\":%.1f,\"y\":%.1f,\"width\":%.1f,\"height\":%.1f,\"scale\":%g,\"focus\":%.3f,", left,
	    top, picture->width_px, picture->height_px, viewer->scale, viewer->view->focus);
	struct weft_range rows = weft_viewer_range_y(viewer);
	g_string_append_printf(
	    out, "\"focus_share\":%.3f,", (rows.value + rows.page / 2 - rows.lower) / (rows.upper - rows.lower));
	g_string_append_printf(out,
	    "\"metrics\":%s,\"filter\":%s,\"found\":%zu,\"searching\":%s,\"number\":%zu,\"highlighting\":%d,",
	    viewer->metrics ? "true" : "false", viewer->filter ? "true" : "false", viewer->view->found,
	    weft_viewer_is_searching(viewer) ? "true" : "false", weft_viewer_match_number(viewer), (int)viewer->highlighting);
	g_string_append_printf(out, "\"pointer\":%d,", (int)viewer->pointer);
	g_string_append(out, "\"hidden\":[");
	const char *comma = "";
	for (size_t i = 0; i < viewer->model->counter_count; i++) {
		if (!viewer->hidden_metrics[i])
			continue;
		g_string_append(out, comma);
		put_string(out, viewer->model->counters[i].name);
		comma = ",";
	}
	g_string_append(out, "],\"folds\":[");
	for (size_t i = 0; i < viewer->folding.count; i++) {
		g_string_append(out, i > 0 ? "," : "");
		dump_string(out, viewer->folding.queries[i]);
	}
	g_string_append(out, "],");
	put_text(out, "search", viewer->search_text);
	put_id(out, "selected", viewer, viewer->selected);
	put_id(out, "hovered", viewer, viewer->hovered);
	char tip[WEFT_TIP_BYTES];
	put_text(out, "tip", weft_viewer_tip(viewer, tip) ? tip : "");
	if (viewer->has_span)
		g_string_append_printf(out, "\"span\":[%" PRId64 ",%" PRId64 "],", viewer->span_from_ns, viewer->span_to_ns);
	put_promises(out, viewer, left, top);
	g_string_append_c(out, '}');
}

void weft_window_dump(WeftWindow *window, GString *out)
{
	const struct weft_compare *viewers = weft_stage_viewers(window->stage);
	g_string_append_c(out, '{');
	put_text(out, "title", gtk_window_get_title(GTK_WINDOW(window)));
	put_text(out, "subtitle", adw_window_title_get_subtitle(window->heading));
	put_text(out, "page", weft_stage_page(window->stage));
	put_text(
	    out, "notice", gtk_revealer_get_reveal_child(window->info_revealer) ? gtk_label_get_text(window->info_text) : "");
	g_string_append_printf(out, "\"live\":%s,\"follows\":%s,", weft_stage_is_live(window->stage) ? "true" : "false",
	    weft_stage_follows(window->stage) ? "true" : "false");
	g_string_append_printf(out, "\"device_scale\":%d,", gtk_widget_get_scale_factor(GTK_WIDGET(window)));
	GtkWidget *focus = gtk_window_get_focus(GTK_WINDOW(window));
	bool types = focus && gtk_widget_is_ancestor(focus, GTK_WIDGET(window->search_entry)) && gtk_widget_get_mapped(focus);
	g_string_append_printf(out, "\"typing\":%s,", types ? "true" : "false");
	g_string_append(out, "\"summary\":");
	weft_row_list_dump(window->summary, out);
	g_string_append(out, ",\"facts\":");
	weft_row_list_dump(window->panel, out);
	g_string_append(out, ",\"findings\":");
	weft_row_list_dump(window->findings, out);
	g_string_append(out, ",\"types\":");
	weft_row_list_dump(window->types, out);
	g_string_append(out, ",\"in_flight\":");
	weft_row_list_dump(window->live, out);
	g_string_append(out, ",\"matches\":");
	weft_row_list_dump(window->matches, out);
	g_string_append_c(out, ',');
	/* A window may have a shadow around it, which the position must exclude. */
	double x = 0, y = 0, shadow_x = 0, shadow_y = 0;
	GtkWidget *canvas = GTK_WIDGET(weft_stage_canvas(window->stage));
	gtk_native_get_surface_transform(GTK_NATIVE(window), &shadow_x, &shadow_y);
	place_in(canvas, GTK_WIDGET(window), 0, 0, &x, &y);
	g_string_append_printf(out, "\"shadow\":[%.0f,%.0f],\"canvas\":[%.0f,%.0f,%d,%d],", shadow_x, shadow_y, x + shadow_x,
	    y + shadow_y, gtk_widget_get_width(canvas), gtk_widget_get_height(canvas));
	g_string_append_printf(out, "\"height\":%d,", gtk_widget_get_height(GTK_WIDGET(window)));
	const struct weft_viewer *active = weft_stage_viewer(window->stage);
	put_text(out, "explained", active && active->answers[WEFT_ASK_TRACE] && !active->outdated[WEFT_ASK_TRACE] ? "yes" : "");
	g_string_append_printf(out, "\"loads\":%u,", weft_stage_loads(window->stage));
	put_text(out, "side", gtk_stack_get_visible_child_name(window->side));
	g_string_append_printf(out, "\"width\":%d,", gtk_widget_get_width(GTK_WIDGET(weft_stage_canvas(window->stage))));
	put_text(out, "count", gtk_label_get_text(window->search_count));
	put_text(out, "error", window->error ? window->error : "");
	put_text(out, "toast", window->toast ? window->toast : "");
	int dialogs = compat_has_dialog(GTK_WINDOW(window)) ? 1 : 0;
	GList *all = gtk_window_list_toplevels();
	for (GList *w = all; w; w = w->next)
		dialogs += !WEFT_IS_WINDOW(w->data) && gtk_widget_get_visible(w->data);
	g_list_free(all);
	g_string_append_printf(
	    out, "\"focused\":%s,\"dialogs\":%d,", gtk_window_is_active(GTK_WINDOW(window)) ? "true" : "false", dialogs);
	g_string_append_printf(out,
	    "\"loading\":%s,\"active\":%zu,\"free\":%s,\"panel\":%s,\"finding\":%s,\"dark\":%s,\"viewers\":[",
	    weft_stage_is_loading(window->stage) ? "true" : "false", viewers->active, viewers->free ? "true" : "false",
	    weft_split_is_open(window->split) ? "true" : "false",
	    gtk_search_bar_get_search_mode(window->search_bar) ? "true" : "false",
	    weft_canvas_theme() == WEFT_THEME_DARK ? "true" : "false");
	for (size_t i = 0; i < viewers->count; i++) {
		if (i > 0)
			g_string_append_c(out, ',');
		put_viewer(out, window, i);
	}
	g_string_append(out, "]}");
}
