/* pane.c: the traces of a window.  SPDX-License-Identifier: ISC */
#include "pane.h"

#include <inttypes.h>

#include "explainer.h"
#include "loader.h"
#include "trace/follow.h"
#include "viewer/search.h"

#define PATIENCE_MS 150 /* what takes less shows no progress: it would only flicker */
#define SEARCH_STEP 50000u
#define LOOK_MS 200 /* how often one looks whether a trace has changed */

/* What went wrong in a trace. */
struct explained {
	WeftPane *pane;
	struct weft_findings *findings;
	struct explainer *explainer; /* while it is looked for */
};

/* What is to be read: a new trace, or what stands at a place from the top once more. */
struct job {
	char *path;
	int place; /* -1: below all */
};

struct _WeftPane {
	AdwBin parent_instance;
	GtkStack *stack;
	AdwStatusPage *loading, *error_page;
	GtkProgressBar *progress;
	WeftCanvas *canvas;
	GtkScrollbar *horizontal, *vertical;
	GtkAdjustment *across, *down;

	struct weft_compare viewers;
	char *paths[WEFT_COMPARE_MOST];
	struct explained explained[WEFT_COMPARE_MOST];
	uint64_t fingerprints[WEFT_COMPARE_MOST]; /* of what is shown, or was found unreadable */
	bool follow, is_live, is_looking;
	guint look_timer;
	gint64 load_ended, load_took;
	unsigned loads;
	char *failed; /* what could not be read, where there is nothing else, and what it looked like from outside */
	uint64_t failed_fingerprint;
	bool may_retry; /* it was not called off */
	GQueue jobs;    /* of struct job; the first is being read: one after another, so that they stand in their order */
	struct loader *loader;
	gint64 load_began;
	guint progress_timer, search_idle;
	bool scrolling; /* the scrollbars follow the viewer, not the other way round */
};

G_DEFINE_FINAL_TYPE(WeftPane, weft_pane, ADW_TYPE_BIN)

enum { LOADED, FAILED, LEAVING, LIVE, CHANGED, EXPLAINED, SIGNALS };
static guint signals[SIGNALS];

const char *weft_pane_path(WeftPane *pane, size_t index)
{
	const struct job *job = g_queue_peek_head(&pane->jobs);
	if (index < pane->viewers.count)
		return pane->paths[index];
	if (index > pane->viewers.count || (job && job->place >= 0))
		return NULL;
	return job ? job->path : index == 0 ? pane->failed : NULL;
}

struct weft_compare *weft_pane_viewers(WeftPane *pane)
{
	return &pane->viewers;
}

struct weft_viewer *weft_pane_viewer(WeftPane *pane)
{
	return weft_compare_active(&pane->viewers);
}

WeftCanvas *weft_pane_canvas(WeftPane *pane)
{
	return pane->canvas;
}

bool weft_pane_is_loading(WeftPane *pane)
{
	return pane->loader || !g_queue_is_empty(&pane->jobs);
}

unsigned weft_pane_loads(WeftPane *pane)
{
	return pane->loads;
}

const char *weft_pane_page(WeftPane *pane)
{
	return gtk_stack_get_visible_child_name(pane->stack);
}

void weft_pane_update(WeftPane *pane)
{
	weft_canvas_update(pane->canvas);
}

/* ---- Scrollbars ---- */

static void set_range(GtkAdjustment *adjustment, struct weft_range range)
{
	gtk_adjustment_configure(adjustment, range.value, range.lower, range.upper, range.page / 10, range.page, range.page);
}

static void show_place(WeftPane *pane)
{
	struct weft_viewer *viewer = weft_pane_viewer(pane);
	if (!viewer)
		return;
	pane->scrolling = true;
	set_range(pane->across, weft_viewer_range_x(viewer));
	set_range(pane->down, weft_viewer_range_y(viewer));
	pane->scrolling = false;
}

static void on_scrolled(GtkAdjustment *adjustment, WeftPane *pane)
{
	struct weft_viewer *viewer = weft_pane_viewer(pane);
	if (pane->scrolling || !viewer)
		return;
	if (adjustment == pane->across) {
		weft_viewer_scroll_to_x(viewer, gtk_adjustment_get_value(adjustment));
		weft_compare_follow(&pane->viewers);
	} else {
		weft_viewer_scroll_to_y(viewer, gtk_adjustment_get_value(adjustment));
	}
	weft_pane_update(pane);
}

/* ---- Searching ---- */

static gboolean search_on(gpointer data)
{
	WeftPane *pane = data;
	bool more = weft_compare_search_step(&pane->viewers, SEARCH_STEP);
	weft_pane_update(pane);
	if (!more)
		pane->search_idle = 0;
	return more;
}

static void search_in_steps(WeftPane *pane)
{
	struct weft_viewer *viewer = weft_pane_viewer(pane);
	if (!pane->search_idle && viewer && weft_viewer_is_searching(viewer))
		pane->search_idle = g_idle_add_full(GDK_PRIORITY_REDRAW + 5, search_on, pane, NULL);
}

bool weft_pane_search(WeftPane *pane, const char *text, struct weft_error *err)
{
	bool ok = weft_compare_search(&pane->viewers, text, err) == WEFT_OK;
	search_in_steps(pane);
	weft_pane_update(pane);
	return ok;
}

static void on_changed(WeftCanvas *canvas, unsigned changes, WeftPane *pane)
{
	if (changes & WEFT_CHANGED_PLACE)
		show_place(pane);
	if (changes & WEFT_CHANGED_SEARCH)
		search_in_steps(pane);
	g_signal_emit(pane, signals[CHANGED], 0, changes);
}

/* ---- What went wrong ---- */

const struct weft_findings *weft_pane_findings(WeftPane *pane, size_t index)
{
	return index < pane->viewers.count ? pane->explained[index].findings : NULL;
}

static void forget(struct explained *explained)
{
	g_clear_pointer(&explained->explainer, explainer_stop);
	g_clear_pointer(&explained->findings, weft_findings_destroy);
}

static void on_explained(void *ctx, struct weft_findings *findings)
{
	struct explained *explained = ctx;
	g_clear_pointer(&explained->explainer, explainer_stop);
	explained->findings = findings;
	g_signal_emit(explained->pane, signals[EXPLAINED], 0);
}

/* ---- Reading ---- */

static void free_job(gpointer data)
{
	struct job *job = data;
	g_free(job->path);
	g_free(job);
}

static void begin(WeftPane *pane);
static void add_job(WeftPane *pane, const char *path, int place);

static void show_failure(WeftPane *pane, const char *text, bool is_cancelled)
{
	char *escaped = g_markup_escape_text(is_cancelled ? "" : text, -1);
	adw_status_page_set_title(pane->error_page, is_cancelled ? "Reading Was Cancelled" : "The Trace Cannot Be Shown");
	adw_status_page_set_description(pane->error_page, escaped);
	gtk_stack_set_visible_child_name(pane->stack, pane->viewers.count > 0 ? "view" : "error");
	g_free(escaped);
}

static void show_viewer(WeftPane *pane, struct job *job, struct weft_viewer *viewer)
{
	bool was_empty = pane->viewers.count == 0;
	if (job->place >= 0) {
		g_signal_emit(pane, signals[LEAVING], 0);
		forget(&pane->explained[job->place]);
		loader_release(weft_compare_replace(&pane->viewers, (size_t)job->place, viewer));
	} else if (weft_compare_add(&pane->viewers, viewer, NULL) == WEFT_OK) {
		pane->paths[pane->viewers.count - 1] = g_strdup(job->path);
		pane->follow |= loader_is_recorded(pane->loader);
		job->place = (int)pane->viewers.count - 1;
	} else {
		loader_release(viewer);
		return;
	}
	struct explained *explained = &pane->explained[job->place];
	explained->pane = pane;
	explained->explainer = explainer_start(viewer, WEFT_NONE, on_explained, explained);
	weft_canvas_set_viewers(pane->canvas, &pane->viewers);
	search_in_steps(pane);
	gtk_stack_set_visible_child_name(pane->stack, "view");
	if (was_empty)
		gtk_widget_grab_focus(GTK_WIDGET(pane->canvas));
}

/* What traces look like from outside; an OS thread looks, as files may be many and far away. */
struct look {
	size_t count;
	char *paths[WEFT_COMPARE_MOST];
	uint64_t fingerprints[WEFT_COMPARE_MOST];
	bool recorded[WEFT_COMPARE_MOST];
};

static void look_at(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
	struct look *look = data;
	for (size_t i = 0; i < look->count; i++) {
		look->fingerprints[i] = weft_trace_fingerprint(look->paths[i]);
		look->recorded[i] = weft_trace_is_recorded(look->paths[i]);
	}
	g_task_return_boolean(task, TRUE);
}

static void free_look(gpointer data)
{
	struct look *look = data;
	for (size_t i = 0; i < look->count; i++)
		g_free(look->paths[i]);
	g_free(look);
}

/* What is new is read where it is followed: not so often that reading is all one does, nor before what was read is explained. */
static void on_looked(GObject *object, GAsyncResult *result, gpointer data)
{
	WeftPane *pane = WEFT_PANE(object);
	const struct look *look = g_task_get_task_data(G_TASK(result));
	bool is_live = false, may_read = g_get_monotonic_time() - pane->load_ended > 3 * pane->load_took;
	pane->is_looking = false;
	/* A program that records may have begun by now, or a file be whole. */
	if (pane->viewers.count == 0 && pane->failed && !weft_pane_is_loading(pane) &&
	    strcmp(look->paths[0], pane->failed) == 0 && look->fingerprints[0] != pane->failed_fingerprint)
		add_job(pane, pane->failed, -1);
	for (size_t i = 0; i < look->count && i < pane->viewers.count && !pane->loader; i++) {
		bool is_new = strcmp(pane->paths[i], "-") != 0 && look->fingerprints[i] != pane->fingerprints[i];
		is_live |= is_new || look->recorded[i];
		if (is_new && pane->follow && may_read && !pane->explained[i].explainer)
			add_job(pane, pane->paths[i], (int)i);
	}
	/* What is just being read was live when that began. */
	if (!pane->loader && pane->viewers.count > 0 && is_live != pane->is_live) {
		pane->is_live = is_live;
		g_signal_emit(pane, signals[LIVE], 0);
	}
}

/* Looks whether there is something new. */
static gboolean look(gpointer data)
{
	WeftPane *pane = data;
	bool retries = pane->viewers.count == 0 && pane->failed && pane->may_retry;
	if (pane->is_looking || pane->loader || (pane->viewers.count == 0 && !retries))
		return G_SOURCE_CONTINUE;
	struct look *look = g_new0(struct look, 1);
	if (retries)
		look->paths[look->count++] = g_strdup(pane->failed);
	for (size_t i = 0; i < pane->viewers.count; i++)
		look->paths[look->count++] = g_strdup(pane->paths[i]);
	GTask *task = g_task_new(pane, NULL, on_looked, NULL);
	g_task_set_task_data(task, look, free_look);
	pane->is_looking = true;
	g_task_run_in_thread(task, look_at);
	g_object_unref(task);
	return G_SOURCE_CONTINUE;
}

void weft_pane_set_follow(WeftPane *pane, bool follow)
{
	pane->follow = follow;
	g_signal_emit(pane, signals[LIVE], 0);
	look(pane);
}

bool weft_pane_follows(WeftPane *pane)
{
	return pane->follow;
}

bool weft_pane_is_live(WeftPane *pane)
{
	return pane->is_live;
}

static void on_read(void *ctx, struct weft_viewer *viewer, const struct weft_error *err)
{
	WeftPane *pane = ctx;
	struct job *job = g_queue_pop_head(&pane->jobs);
	/* Of a loader that is called off nothing is known. */
	uint64_t fingerprint = err->status == WEFT_ECANCELLED ? 0 : loader_fingerprint(pane->loader);
	g_clear_handle_id(&pane->progress_timer, g_source_remove);
	pane->loads++;
	pane->load_ended = g_get_monotonic_time();
	pane->load_took = pane->load_ended - pane->load_began;
	g_object_ref(pane);
	if (viewer)
		show_viewer(pane, job, viewer);
	loader_stop(pane->loader);
	pane->loader = NULL;
	if (job->place >= 0)
		pane->fingerprints[job->place] = fingerprint;
	if (viewer) {
		look(pane);
		g_signal_emit(pane, signals[LOADED], 0);
	} else {
		char text[640];
		weft_error_format(err, text, sizeof text);
		char *safe = g_utf8_make_valid(text, -1);
		if (pane->viewers.count == 0) {
			g_free(pane->failed);
			pane->failed = g_strdup(job->path);
			pane->failed_fingerprint = fingerprint;
			pane->may_retry = err->status != WEFT_ECANCELLED && strcmp(job->path, "-") != 0;
		}
		show_failure(pane, safe, err->status == WEFT_ECANCELLED);
		g_signal_emit(pane, signals[FAILED], 0, safe);
		g_free(safe);
	}
	free_job(job);
	begin(pane);
	g_object_unref(pane);
}

static gboolean show_progress(gpointer data)
{
	WeftPane *pane = data;
	uint64_t events = loader_events(pane->loader);
	if (g_get_monotonic_time() - pane->load_began < PATIENCE_MS * 1000)
		return G_SOURCE_CONTINUE;
	char *text = events == 0 ? g_strdup("Opening…") : g_strdup_printf("%.1f million events", (double)events / 1e6);
	adw_status_page_set_description(pane->loading, text);
	g_free(text);
	gtk_progress_bar_pulse(pane->progress);
	if (pane->viewers.count == 0)
		gtk_stack_set_visible_child_name(pane->stack, "loading");
	return G_SOURCE_CONTINUE;
}

static void begin(WeftPane *pane)
{
	struct job *job = g_queue_peek_head(&pane->jobs);
	if (!job || pane->loader)
		return;
	char *name = loader_name_of(job->path), *escaped = g_markup_escape_text(name, -1),
	     *title = g_strdup_printf("Reading %s", escaped);
	adw_status_page_set_title(pane->loading, title);
	g_free(title);
	g_free(escaped);
	g_free(name);
	if (pane->viewers.count == 0)
		gtk_stack_set_visible_child_name(pane->stack, "blank");
	pane->load_began = g_get_monotonic_time();
	pane->loader = loader_start(job->path, on_read, pane);
	pane->progress_timer = g_timeout_add(80, show_progress, pane);
}

static void add_job(WeftPane *pane, const char *path, int place)
{
	struct job *job = g_new(struct job, 1);
	*job = (struct job){g_strdup(path), place};
	g_queue_push_tail(&pane->jobs, job);
	begin(pane);
}

void weft_pane_add(WeftPane *pane, const char *path)
{
	add_job(pane, path, -1);
}

void weft_pane_reload(WeftPane *pane)
{
	for (size_t i = 0; i < pane->viewers.count && g_queue_is_empty(&pane->jobs); i++)
		if (strcmp(pane->paths[i], "-") != 0)
			add_job(pane, pane->paths[i], (int)i);
	if (weft_pane_can_reload(pane) && pane->viewers.count == 0 && g_queue_is_empty(&pane->jobs))
		add_job(pane, pane->failed, -1);
}

bool weft_pane_can_reload(WeftPane *pane)
{
	return pane->viewers.count > 0 || (pane->failed && strcmp(pane->failed, "-") != 0);
}

static void cancel(GtkWidget *widget, const char *name, GVariant *parameter)
{
	WeftPane *pane = WEFT_PANE(widget);
	struct weft_error err = {0};
	if (!pane->loader)
		return;
	weft_error_set(&err, WEFT_ECANCELLED, "reading was cancelled");
	on_read(pane, NULL, &err);
}

/* ---- Its life ---- */

void weft_pane_finish(WeftPane *pane)
{
	loader_stop(pane->loader);
	pane->loader = NULL;
	g_clear_handle_id(&pane->progress_timer, g_source_remove);
	g_clear_handle_id(&pane->search_idle, g_source_remove);
	g_clear_handle_id(&pane->look_timer, g_source_remove);
	if (pane->canvas)
		weft_canvas_set_viewers(pane->canvas, NULL);
	if (pane->viewers.count > 0)
		g_signal_emit(pane, signals[LEAVING], 0);
	while (pane->viewers.count > 0) {
		struct weft_viewer *viewer = pane->viewers.viewers[--pane->viewers.count];
		forget(&pane->explained[pane->viewers.count]);
		loader_release(viewer);
		g_clear_pointer(&pane->paths[pane->viewers.count], g_free);
	}
	g_clear_pointer(&pane->failed, g_free);
	g_queue_clear_full(&pane->jobs, free_job);
}

static void dispose(GObject *object)
{
	weft_pane_finish(WEFT_PANE(object));
	G_OBJECT_CLASS(weft_pane_parent_class)->dispose(object);
}

static void weft_pane_class_init(WeftPaneClass *class)
{
	GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(class);
	G_OBJECT_CLASS(class)->dispose = dispose;
	g_type_ensure(WEFT_TYPE_CANVAS);
	gtk_widget_class_set_template_from_resource(widget_class, "/org/weft/View/pane.ui");
	gtk_widget_class_bind_template_child(widget_class, WeftPane, stack);
	gtk_widget_class_bind_template_child(widget_class, WeftPane, loading);
	gtk_widget_class_bind_template_child(widget_class, WeftPane, error_page);
	gtk_widget_class_bind_template_child(widget_class, WeftPane, progress);
	gtk_widget_class_bind_template_child(widget_class, WeftPane, canvas);
	gtk_widget_class_bind_template_child(widget_class, WeftPane, horizontal);
	gtk_widget_class_bind_template_child(widget_class, WeftPane, vertical);
	gtk_widget_class_install_action(widget_class, "pane.cancel", NULL, cancel);
	signals[LOADED] = g_signal_new("loaded", WEFT_TYPE_PANE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
	signals[LEAVING] = g_signal_new("leaving", WEFT_TYPE_PANE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
	signals[LIVE] = g_signal_new("live", WEFT_TYPE_PANE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
	signals[EXPLAINED] = g_signal_new("explained", WEFT_TYPE_PANE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
	signals[FAILED] =
	    g_signal_new("failed", WEFT_TYPE_PANE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
	signals[CHANGED] =
	    g_signal_new("changed", WEFT_TYPE_PANE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_UINT);
}

static void weft_pane_init(WeftPane *pane)
{
	gtk_widget_init_template(GTK_WIDGET(pane));
	g_queue_init(&pane->jobs);
	pane->across = gtk_adjustment_new(0, 0, 1, 0.1, 1, 1);
	pane->down = gtk_adjustment_new(0, 0, 1, 0.1, 1, 1);
	gtk_scrollbar_set_adjustment(pane->horizontal, pane->across);
	gtk_scrollbar_set_adjustment(pane->vertical, pane->down);
	g_signal_connect_object(pane->across, "value-changed", G_CALLBACK(on_scrolled), pane, 0);
	g_signal_connect_object(pane->down, "value-changed", G_CALLBACK(on_scrolled), pane, 0);
	g_signal_connect_object(pane->canvas, "changed", G_CALLBACK(on_changed), pane, 0);
	gtk_stack_set_visible_child_name(pane->stack, "empty");
	pane->look_timer = g_timeout_add(LOOK_MS, look, pane);
}
