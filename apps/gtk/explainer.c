/* explainer.c: answers a question of a viewer in a separate OS thread.  SPDX-License-Identifier: ISC */
#include "explainer.h"

#include <stdatomic.h>

#include "loader.h"

#define PROGRESS_MS 100

struct explainer {
	struct weft_viewer *viewer;
	enum weft_ask ask;
	uint32_t promise;
	const struct explainer_calls *calls;
	void *ctx;
	/* Each of these variables is written by one thread and read by the other.  No other memory depends on the order of these
	 * writes, so relaxed accesses suffice. */
	_Atomic unsigned percent;
	atomic_bool stopped;
	guint timer; /* reports progress */
	/* One reference for the caller of explainer_start(), and one for the worker thread; both are dropped in the main
	 * loop. */
	grefcount references;
	struct weft_findings *findings;
};

static void unref_explainer(struct explainer *explainer)
{
	if (!g_ref_count_dec(&explainer->references))
		return;
	weft_findings_destroy(explainer->findings);
	g_free(explainer);
}

static gboolean report_progress(gpointer data)
{
	struct explainer *explainer = data;
	explainer->calls->progress(
	    explainer->ctx, explainer->viewer, explainer->ask, atomic_load_explicit(&explainer->percent, memory_order_relaxed));
	return G_SOURCE_CONTINUE;
}

static gboolean finish_explaining(gpointer data)
{
	struct explainer *explainer = data;
	if (!atomic_load_explicit(&explainer->stopped, memory_order_relaxed)) {
		struct weft_findings *findings = explainer->findings;
		explainer->findings = NULL;
		g_clear_handle_id(&explainer->timer, g_source_remove);
		explainer->calls->done(explainer->ctx, explainer->viewer, explainer->ask, findings);
	}
	unref_explainer(explainer);
	return G_SOURCE_REMOVE;
}

static bool continue_explaining(void *ctx, unsigned percent)
{
	struct explainer *explainer = ctx;
	atomic_store_explicit(&explainer->percent, percent, memory_order_relaxed);
	return !atomic_load_explicit(&explainer->stopped, memory_order_relaxed);
}

static gpointer run_explainer(gpointer data)
{
	struct explainer *explainer = data;
	const struct weft_model *model = explainer->viewer->model;
	struct weft_explain_options options = {.go_on = continue_explaining, .ctx = explainer};
	if (explainer->ask == WEFT_ASK_TRACE)
		weft_explain(&explainer->findings, model, &options, NULL);
	else
		weft_explain_promise(&explainer->findings, model, explainer->promise, &options, NULL);
	loader_release(explainer->viewer);
	g_idle_add(finish_explaining, explainer);
	return NULL;
}

struct explainer *explainer_start(struct weft_viewer *viewer, enum weft_ask ask, const struct explainer_calls *calls, void *ctx)
{
	struct explainer *explainer = g_new0(struct explainer, 1);
	explainer->viewer = viewer;
	explainer->ask = ask;
	explainer->promise = viewer->questions[ask].promise;
	explainer->calls = calls;
	explainer->ctx = ctx;
	g_ref_count_init(&explainer->references);
	g_ref_count_inc(&explainer->references);
	loader_hold(viewer);
	explainer->timer = g_timeout_add(PROGRESS_MS, report_progress, explainer);
	g_thread_unref(g_thread_new("weft-explain", run_explainer, explainer));
	return explainer;
}

void explainer_stop(struct explainer *explainer)
{
	if (!explainer)
		return;
	g_clear_handle_id(&explainer->timer, g_source_remove);
	atomic_store_explicit(&explainer->stopped, true, memory_order_relaxed);
	unref_explainer(explainer);
}
