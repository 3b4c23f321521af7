/* trace_pane.c: reads, shows and follows the traces of a window.  SPDX-License-Identifier: ISC */
#include "trace_pane.h"

#include <inttypes.h>
#include <time.h>

#include "explainer.h"
#include "loader.h"
#include "model/follower.h"
#include "viewer/search.h"

#define PATIENCE_MS 150 /* time after which progress is shown; earlier it would only flicker */
#define SEARCH_STEP 50000u
#define CHECK_MS 200 /* interval in ms of the checks whether a trace has changed */

/* State of the viewer that has the same index. */
struct shown {
	char **paths;
	uint64_t fingerprint;                    /* fingerprint of the trace's version that is shown or could not be read */
	struct explainer *explainers[WEFT_ASKS]; /* one explainer for each question that is being answered */
	struct loader_follow *follow;            /* state for following a large trace that is being recorded; or NULL */
	bool is_partial;                         /* whether only the newest events of the trace are shown */
};

/* The trace that could not be read, if no other trace is shown. */
struct unread {
	char **paths;         /* or NULL */
	uint64_t fingerprint; /* when it was read */
	bool may_retry;       /* whether the trace may be read again; false if the user cancelled */
};

/* A trace to read: a new trace, or a trace that is shown and must be read again. */
struct job {
	char **paths;
	int place;    /* position from the top; -1 for a new trace below all others */
	bool follows; /* whether only the trace's newest events are needed */
};

struct _WeftStage {
	AdwBin parent_instance;
	GtkStack *stack;
	AdwStatusPage *loading, *error_page;
	GtkProgressBar *progress;
	WeftCanvas *canvas;
	GtkScrollbar *horizontal, *vertical;
	GtkAdjustment *across, *down;

	struct weft_compare viewers;
	struct shown shown[WEFT_MAX_COMPARED];
	struct unread unread;
	bool follows, is_live;
	GTask *change_task; /* task that checks for changes, or NULL */
	guint check_timer, soon_timer;
	gint64 load_ended, rest_us; /* us; pause between loads */
	unsigned loads;
	/* Queue of struct job, whose first job is being read; jobs run one at a time, so that traces keep their order. */
	GQueue jobs;
	struct loader *loader;
	gint64 load_began, load_process_us,
	    load_own_us; /* CPU time of the process in us at the start of the load, and during the load */
	guint progress_timer, search_idle;
};

G_DEFINE_FINAL_TYPE(WeftStage, weft_stage, ADW_TYPE_BIN)

enum { LOADED, FAILED, LIVE, CHANGED, SIGNALS };
static guint signals[SIGNALS];

const char *const *weft_stage_paths(WeftStage *stage, size_t index)
{
	const struct job *job = g_queue_peek_head(&stage->jobs);
	char **paths = NULL;
	if (index < stage->viewers.count)
		paths = stage->shown[index].paths;
	else if (index == stage->viewers.count && !(job && job->place >= 0))
		paths = job ? job->paths : index == 0 ? stage->unread.paths : NULL;
	return (const char *const *)paths;
}

/* Returns whether all paths can be read again; standard input cannot. */
static bool can_reread(char *const *paths)
{
	for (; *paths; paths++)
		if (strcmp(*paths, "-") == 0)
			return false;
	return true;
}

struct weft_compare *weft_stage_viewers(WeftStage *stage)
{
	return &stage->viewers;
}

struct weft_viewer *weft_stage_viewer(WeftStage *stage)
{
	return weft_compare_active(&stage->viewers);
}

WeftCanvas *weft_stage_canvas(WeftStage *stage)
{
	return stage->canvas;
}

bool weft_stage_is_loading(WeftStage *stage)
{
	return stage->loader || !g_queue_is_empty(&stage->jobs);
}

unsigned weft_stage_loads(WeftStage *stage)
{
	return stage->loads;
}

const char *weft_stage_page(WeftStage *stage)
{
	return gtk_stack_get_visible_child_name(stage->stack);
}

void weft_stage_update(WeftStage *stage)
{
	weft_canvas_update(stage->canvas);
}

/* ---- Scrollbars ---- */

static void on_scrolled(GtkAdjustment *adjustment, WeftStage *stage);

/* Moves a scrollbar without moving the viewer. */
static void set_range(WeftStage *stage, GtkAdjustment *adjustment, struct weft_range range)
{
	g_signal_handlers_block_by_func(adjustment, on_scrolled, stage);
	gtk_adjustment_configure(adjustment, range.value, range.lower, range.upper, range.page / 10, range.page, range.page);
	g_signal_handlers_unblock_by_func(adjustment, on_scrolled, stage);
}

static void show_place(WeftStage *stage)
{
	struct weft_viewer *viewer = weft_stage_viewer(stage);
	if (!viewer)
		return;
	set_range(stage, stage->across, weft_viewer_range_x(viewer));
	set_range(stage, stage->down, weft_viewer_range_y(viewer));
}

static void on_scrolled(GtkAdjustment *adjustment, WeftStage *stage)
{
	struct weft_viewer *viewer = weft_stage_viewer(stage);
	if (!viewer)
		return;
	if (adjustment == stage->across) {
		weft_viewer_scroll_to_x(viewer, gtk_adjustment_get_value(adjustment));
		weft_compare_follow(&stage->viewers);
	} else {
		weft_viewer_scroll_to_y(viewer, gtk_adjustment_get_value(adjustment));
	}
	weft_stage_update(stage);
}

/* ---- Searching ---- */

static gboolean search_on(gpointer data)
{
	WeftStage *stage = data;
	bool more = weft_compare_search_step(&stage->viewers, SEARCH_STEP);
	weft_stage_update(stage);
	if (!more)
		stage->search_idle = 0;
	return more;
}

static void search_in_steps(WeftStage *stage)
{
	struct weft_viewer *viewer = weft_stage_viewer(stage);
	if (!stage->search_idle && viewer && weft_viewer_is_searching(viewer))
		stage->search_idle = g_idle_add_full(GDK_PRIORITY_REDRAW + 5, search_on, stage, NULL);
}

bool weft_stage_search(WeftStage *stage, const char *text, struct weft_error *err)
{
	bool ok = weft_compare_search(&stage->viewers, text, err) == WEFT_OK;
	search_in_steps(stage);
	weft_stage_update(stage);
	return ok;
}

/* ---- Findings ---- */

static void on_progress(void *ctx, struct weft_viewer *viewer, enum weft_ask ask, unsigned percent)
{
	weft_viewer_progress(viewer, ask, percent);
	weft_stage_update(ctx);
}

static void on_answer(void *ctx, struct weft_viewer *viewer, enum weft_ask ask, struct weft_findings *findings)
{
	WeftStage *stage = ctx;
	size_t i = 0;
	while (stage->viewers.viewers[i] != viewer)
		i++;
	g_clear_pointer(&stage->shown[i].explainers[ask], explainer_stop);
	weft_viewer_answer(viewer, ask, findings);
	weft_stage_update(stage);
}

static void stop_asking(struct shown *shown)
{
	for (int ask = 0; ask < WEFT_ASKS; ask++)
		g_clear_pointer(&shown->explainers[ask], explainer_stop);
}

/* Starts explainers for the viewers' new questions, and stops the explainers of cancelled questions. */
static void ask_questions(WeftStage *stage)
{
	static const struct explainer_calls calls = {on_progress, on_answer};
	for (size_t i = 0; i < stage->viewers.count; i++) {
		struct weft_viewer *viewer = stage->viewers.viewers[i];
		for (int ask = 0; ask < WEFT_ASKS; ask++) {
			struct explainer **explainer = &stage->shown[i].explainers[ask];
			if (viewer->questions[ask].state != WEFT_QUESTION_ASKED)
				g_clear_pointer(explainer, explainer_stop);
			if (viewer->questions[ask].state != WEFT_QUESTION_NEW)
				continue;
			weft_viewer_asked(viewer, (enum weft_ask)ask);
			*explainer = explainer_start(viewer, (enum weft_ask)ask, &calls, stage);
		}
	}
}

static void on_changed(WeftCanvas *canvas, unsigned changes, WeftStage *stage)
{
	if (changes & WEFT_CHANGED_PLACE)
		show_place(stage);
	if (changes & WEFT_CHANGED_SEARCH)
		search_in_steps(stage);
	if (changes & WEFT_CHANGED_FINDINGS)
		ask_questions(stage);
	g_signal_emit(stage, signals[CHANGED], 0, changes);
}

/* ---- Reading ---- */

static void free_job(gpointer data)
{
	struct job *job = data;
	g_strfreev(job->paths);
	g_free(job);
}

static void begin_job(WeftStage *stage);
static void add_job(WeftStage *stage, char **paths, int place, bool follows);

static void show_failure(WeftStage *stage, const char *text, bool is_cancelled)
{
	char *escaped = g_markup_escape_text(is_cancelled ? "" : text, -1);
	adw_status_page_set_title(stage->error_page, is_cancelled ? "Reading Was Cancelled" : "The Trace Cannot Be Shown");
	adw_status_page_set_description(stage->error_page, escaped);
	gtk_stack_set_visible_child_name(stage->stack, stage->viewers.count > 0 ? "view" : "error");
	g_free(escaped);
}

/* Shows a viewer whose trace was read.  Returns false if there are too many viewers. */
static bool show_viewer(WeftStage *stage, struct job *job, struct weft_viewer *viewer)
{
	bool was_empty = stage->viewers.count == 0;
	if (job->place >= 0) {
		stop_asking(&stage->shown[job->place]);
		loader_release(weft_compare_replace(&stage->viewers, (size_t)job->place, viewer));
	} else if (weft_compare_add(&stage->viewers, viewer, NULL) == WEFT_OK) {
		char *name = loader_name_of((const char *const *)job->paths);
		weft_viewer_set_name(viewer, name);
		g_free(name);
		stage->shown[stage->viewers.count - 1].paths = g_strdupv(job->paths);
		stage->follows |= loader_is_recorded(stage->loader);
		job->place = (int)stage->viewers.count - 1;
	} else {
		loader_release(viewer);
		return false;
	}
	weft_canvas_set_viewers(stage->canvas, &stage->viewers);
	search_in_steps(stage);
	gtk_stack_set_visible_child_name(stage->stack, "view");
	if (was_empty)
		gtk_widget_grab_focus(GTK_WIDGET(stage->canvas));
	return true;
}

/* Fingerprints of traces.  A separate OS thread computes the fingerprints, because there may be many files on a slow network. */
struct change_check {
	size_t count;
	char **paths[WEFT_MAX_COMPARED];
	uint64_t fingerprints[WEFT_MAX_COMPARED];
	bool recorded[WEFT_MAX_COMPARED];
};

static void take_fingerprints(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
	struct change_check *check = data;
	for (size_t i = 0; i < check->count; i++)
		check->fingerprints[i] = loader_take_fingerprint((const char *const *)check->paths[i], &check->recorded[i]);
	g_task_return_boolean(task, TRUE);
}

static void free_change_check(gpointer data)
{
	struct change_check *check = data;
	for (size_t i = 0; i < check->count; i++)
		g_strfreev(check->paths[i]);
	g_free(check);
}

/* Returns whether the end of the trace is not visible; then the visible events must stay, however old they are. */
static bool is_before_end(const struct weft_viewer *viewer)
{
	int64_t from_ns, to_ns;
	weft_viewer_times(viewer, &from_ns, &to_ns);
	return to_ns < viewer->model->end_ns;
}

/* Reads followed traces again if they have changed.  The traces are read only after the previous version is explained, and so
 * rarely that reading takes a small part of the time. */
static void on_changes_checked(GObject *object, GAsyncResult *result, gpointer data)
{
	WeftStage *stage = WEFT_STAGE(object);
	const struct change_check *check = g_task_get_task_data(G_TASK(result));
	bool is_live = false, may_read = g_get_monotonic_time() - stage->load_ended >= stage->rest_us;
	stage->change_task = NULL;
	/* A trace that could not be read may have become readable. */
	if (stage->viewers.count == 0 && stage->unread.paths && !weft_stage_is_loading(stage) &&
	    g_strv_equal((const char *const *)check->paths[0], (const char *const *)stage->unread.paths) &&
	    check->fingerprints[0] != stage->unread.fingerprint)
		add_job(stage, stage->unread.paths, -1, false);
	for (size_t i = 0; i < check->count && i < stage->viewers.count && !stage->loader; i++) {
		bool is_new = can_reread(stage->shown[i].paths) && check->fingerprints[i] != stage->shown[i].fingerprint;
		is_live |= is_new || check->recorded[i];
		/* A trace that has ended is read completely. */
		is_new |= stage->shown[i].is_partial && !check->recorded[i];
		if (is_new && stage->follows && may_read && !stage->shown[i].explainers[WEFT_ASK_TRACE])
			add_job(stage, stage->shown[i].paths, (int)i,
			    check->recorded[i] && !is_before_end(stage->viewers.viewers[i]));
	}
	/* While a trace is being read, it is unknown whether it is being recorded. */
	if (!stage->loader && stage->viewers.count > 0 && is_live != stage->is_live) {
		stage->is_live = is_live;
		g_signal_emit(stage, signals[LIVE], 0);
	}
}

/* Starts a task that checks whether traces have changed. */
static gboolean check_changes(gpointer data)
{
	WeftStage *stage = data;
	bool retries = stage->viewers.count == 0 && stage->unread.paths && stage->unread.may_retry;
	if (stage->change_task || stage->loader || (stage->viewers.count == 0 && !retries))
		return G_SOURCE_CONTINUE;
	struct change_check *check = g_new0(struct change_check, 1);
	if (retries)
		check->paths[check->count++] = g_strdupv(stage->unread.paths);
	for (size_t i = 0; i < stage->viewers.count; i++)
		check->paths[check->count++] = g_strdupv(stage->shown[i].paths);
	GTask *task = g_task_new(stage, NULL, on_changes_checked, NULL);
	g_task_set_task_data(task, check, free_change_check);
	stage->change_task = task;
	g_task_run_in_thread(task, take_fingerprints);
	g_object_unref(task);
	return G_SOURCE_CONTINUE;
}

static gint64 process_cpu_us(void)
{
	struct timespec used;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * G_USEC_PER_SEC + used.tv_nsec / 1000;
}

static gboolean check_changes_soon(gpointer data);

/* Schedules the next refresh of a followed trace soon, but so that refreshing and drawing take a small part of the time.
 * Drawing that the user causes does not delay the refresh further. */
static void schedule_soon_check(WeftStage *stage)
{
	const gint64 used = MIN(process_cpu_us() - stage->load_process_us, 2 * stage->load_own_us);
	stage->rest_us = weft_follower_rest_ns(used * 1000) / 1000;
	const gint64 left = stage->load_ended + stage->rest_us - g_get_monotonic_time();
	stage->soon_timer = g_timeout_add((guint)(MAX(left, 0) / 1000 + 1), check_changes_soon, stage);
}

static gboolean check_changes_soon(gpointer data)
{
	WeftStage *stage = data;
	const gint64 before = stage->rest_us;
	schedule_soon_check(stage);
	if (stage->rest_us <= before) {
		g_clear_handle_id(&stage->soon_timer, g_source_remove);
		check_changes(stage);
	}
	return G_SOURCE_REMOVE;
}

static void schedule_check(WeftStage *stage, bool has_followed)
{
	stage->load_ended = g_get_monotonic_time();
	stage->load_own_us = process_cpu_us() - stage->load_process_us;
	stage->rest_us = 3 * (stage->load_ended - stage->load_began);
	g_clear_handle_id(&stage->soon_timer, g_source_remove);
	if (has_followed)
		schedule_soon_check(stage);
}

void weft_stage_set_follow(WeftStage *stage, bool follow)
{
	stage->follows = follow;
	g_signal_emit(stage, signals[LIVE], 0);
	check_changes(stage);
}

bool weft_stage_follows(WeftStage *stage)
{
	return stage->follows;
}

bool weft_stage_is_live(WeftStage *stage)
{
	return stage->is_live;
}

/* Starts to follow a large trace that is being recorded; later refreshes read only the new events. */
static void follow_large(WeftStage *stage, struct shown *shown, const struct weft_viewer *viewer)
{
	shown->is_partial = loader_is_partial(stage->loader);
	if (!loader_is_recorded(stage->loader))
		g_clear_pointer(&shown->follow, loader_follow_end);
	else if (!shown->follow && viewer->model->events > 2 * WEFT_FOLLOWER_WINDOW_EVENTS)
		shown->follow = loader_follow_begin();
}

static void on_read(void *ctx, struct weft_viewer *viewer, const struct weft_error *err)
{
	WeftStage *stage = ctx;
	struct job *job = g_queue_pop_head(&stage->jobs);
	/* A cancelled loader may still be running, and must not be used. */
	uint64_t fingerprint = err->status == WEFT_ECANCELLED ? 0 : loader_fingerprint(stage->loader);
	g_clear_handle_id(&stage->progress_timer, g_source_remove);
	stage->loads++;
	g_object_ref(stage);
	schedule_check(stage, job->follows && job->place >= 0 && stage->shown[job->place].follow);
	bool lacks_names = viewer && loader_is_missing_names(stage->loader);
	if (viewer && show_viewer(stage, job, viewer))
		follow_large(stage, &stage->shown[job->place], viewer);
	loader_stop(stage->loader);
	stage->loader = NULL;
	if (job->place >= 0)
		stage->shown[job->place].fingerprint = fingerprint;
	if (viewer) {
		check_changes(stage);
		g_signal_emit(stage, signals[LOADED], 0);
	} else {
		char text[640];
		weft_error_format(err, text, sizeof text);
		char *safe = g_utf8_make_valid(text, -1);
		if (stage->viewers.count == 0) {
			g_strfreev(stage->unread.paths);
			stage->unread.paths = g_strdupv(job->paths);
			stage->unread.fingerprint = fingerprint;
			stage->unread.may_retry = err->status != WEFT_ECANCELLED && can_reread(job->paths);
		}
		show_failure(stage, safe, err->status == WEFT_ECANCELLED);
		g_signal_emit(stage, signals[FAILED], 0, safe);
		g_free(safe);
	}
	/* The picture is first shown without some names; then the trace is read again with all names. */
	if (lacks_names && job->place >= 0 && can_reread(job->paths))
		add_job(stage, job->paths, job->place, job->follows);
	free_job(job);
	begin_job(stage);
	g_object_unref(stage);
}

static gboolean show_progress(gpointer data)
{
	WeftStage *stage = data;
	uint64_t events = loader_events(stage->loader);
	if (g_get_monotonic_time() - stage->load_began < PATIENCE_MS * 1000)
		return G_SOURCE_CONTINUE;
	char *text = events == 0 ? g_strdup("Opening…") : g_strdup_printf("%.1f million events", (double)events / 1e6);
	adw_status_page_set_description(stage->loading, text);
	g_free(text);
	gtk_progress_bar_pulse(stage->progress);
	if (stage->viewers.count == 0)
		gtk_stack_set_visible_child_name(stage->stack, "loading");
	return G_SOURCE_CONTINUE;
}

static void begin_job(WeftStage *stage)
{
	struct job *job = g_queue_peek_head(&stage->jobs);
	if (!job || stage->loader)
		return;
	char *name = loader_name_of((const char *const *)job->paths), *escaped = g_markup_escape_text(name, -1),
	     *title = g_strdup_printf("Reading %s", escaped);
	adw_status_page_set_title(stage->loading, title);
	g_free(title);
	g_free(escaped);
	g_free(name);
	if (stage->viewers.count == 0)
		gtk_stack_set_visible_child_name(stage->stack, "blank");
	stage->load_began = g_get_monotonic_time();
	stage->load_process_us = process_cpu_us();
	struct loader_follow *follow = job->follows ? stage->shown[job->place].follow : NULL;
	stage->loader = loader_start((const char *const *)job->paths, follow, job->place >= 0, on_read, stage);
	stage->progress_timer = g_timeout_add(80, show_progress, stage);
}

static void add_job(WeftStage *stage, char **paths, int place, bool follows)
{
	struct job *job = g_new(struct job, 1);
	*job = (struct job){g_strdupv(paths), place, follows};
	g_queue_push_tail(&stage->jobs, job);
	begin_job(stage);
}

void weft_stage_add(WeftStage *stage, const char *const *paths)
{
	add_job(stage, (char **)(uintptr_t)paths, -1, false);
}

void weft_stage_reload(WeftStage *stage)
{
	for (size_t i = 0; i < stage->viewers.count && g_queue_is_empty(&stage->jobs); i++)
		if (can_reread(stage->shown[i].paths))
			add_job(stage, stage->shown[i].paths, (int)i, false);
	if (weft_stage_can_reload(stage) && stage->viewers.count == 0 && g_queue_is_empty(&stage->jobs))
		add_job(stage, stage->unread.paths, -1, false);
}

bool weft_stage_can_reload(WeftStage *stage)
{
	return stage->viewers.count > 0 || (stage->unread.paths && can_reread(stage->unread.paths));
}

static void cancel(GtkWidget *widget, const char *name, GVariant *parameter)
{
	WeftStage *stage = WEFT_STAGE(widget);
	struct weft_error err = {0};
	if (!stage->loader)
		return;
	weft_error_set(&err, WEFT_ECANCELLED, "reading was cancelled");
	on_read(stage, NULL, &err);
}

/* ---- Life ---- */

void weft_stage_finish(WeftStage *stage)
{
	loader_stop(stage->loader);
	stage->loader = NULL;
	g_clear_handle_id(&stage->progress_timer, g_source_remove);
	g_clear_handle_id(&stage->search_idle, g_source_remove);
	g_clear_handle_id(&stage->check_timer, g_source_remove);
	g_clear_handle_id(&stage->soon_timer, g_source_remove);
	if (stage->canvas)
		weft_canvas_set_viewers(stage->canvas, NULL);
	while (stage->viewers.count > 0) {
		struct weft_viewer *viewer = stage->viewers.viewers[--stage->viewers.count];
		stop_asking(&stage->shown[stage->viewers.count]);
		loader_release(viewer);
		g_clear_pointer(&stage->shown[stage->viewers.count].paths, g_strfreev);
		g_clear_pointer(&stage->shown[stage->viewers.count].follow, loader_follow_end);
	}
	g_clear_pointer(&stage->unread.paths, g_strfreev);
	g_queue_clear_full(&stage->jobs, free_job);
}

static void dispose(GObject *object)
{
	weft_stage_finish(WEFT_STAGE(object));
	G_OBJECT_CLASS(weft_stage_parent_class)->dispose(object);
}

static void weft_stage_class_init(WeftStageClass *class)
{
	GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(class);
	G_OBJECT_CLASS(class)->dispose = dispose;
	g_type_ensure(WEFT_TYPE_CANVAS);
	gtk_widget_class_set_template_from_resource(widget_class, "/org/weft/View/stage.ui");
	gtk_widget_class_bind_template_child(widget_class, WeftStage, stack);
	gtk_widget_class_bind_template_child(widget_class, WeftStage, loading);
	gtk_widget_class_bind_template_child(widget_class, WeftStage, error_page);
	gtk_widget_class_bind_template_child(widget_class, WeftStage, progress);
	gtk_widget_class_bind_template_child(widget_class, WeftStage, canvas);
	gtk_widget_class_bind_template_child(widget_class, WeftStage, horizontal);
	gtk_widget_class_bind_template_child(widget_class, WeftStage, vertical);
	gtk_widget_class_install_action(widget_class, "stage.cancel", NULL, cancel);
	signals[LOADED] = g_signal_new("loaded", WEFT_TYPE_STAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
	signals[LIVE] = g_signal_new("live", WEFT_TYPE_STAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
	signals[FAILED] =
	    g_signal_new("failed", WEFT_TYPE_STAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
	signals[CHANGED] =
	    g_signal_new("changed", WEFT_TYPE_STAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_UINT);
}

static void weft_stage_init(WeftStage *stage)
{
	gtk_widget_init_template(GTK_WIDGET(stage));
	g_queue_init(&stage->jobs);
	stage->across = gtk_adjustment_new(0, 0, 1, 0.1, 1, 1);
	stage->down = gtk_adjustment_new(0, 0, 1, 0.1, 1, 1);
	gtk_scrollbar_set_adjustment(stage->horizontal, stage->across);
	gtk_scrollbar_set_adjustment(stage->vertical, stage->down);
	g_signal_connect_object(stage->across, "value-changed", G_CALLBACK(on_scrolled), stage, 0);
	g_signal_connect_object(stage->down, "value-changed", G_CALLBACK(on_scrolled), stage, 0);
	g_signal_connect_object(stage->canvas, "changed", G_CALLBACK(on_changed), stage, 0);
	gtk_stack_set_visible_child_name(stage->stack, "empty");
	stage->check_timer = g_timeout_add(CHECK_MS, check_changes, stage);
}
