/* explainer.c: the OS thread that finds out what went wrong.  SPDX-License-Identifier: ISC */
#include "explainer.h"

#include "loader.h"

struct explainer {
	struct weft_viewer *viewer;
	uint32_t promise;
	explainer_done *done;
	void *ctx;
	bool stopped;         /* in the main loop alone */
	grefcount references; /* of who started it and of the worker, which lets go in the main loop too */
	struct weft_findings *findings;
};

static void unref(struct explainer *explainer)
{
	if (!g_ref_count_dec(&explainer->references))
		return;
	weft_findings_destroy(explainer->findings);
	g_free(explainer);
}

static gboolean finish(gpointer data)
{
	struct explainer *explainer = data;
	if (!explainer->stopped) {
		struct weft_findings *findings = explainer->findings;
		explainer->findings = NULL;
		explainer->done(explainer->ctx, findings);
	}
	unref(explainer);
	return G_SOURCE_REMOVE;
}

static gpointer work(gpointer data)
{
	struct explainer *explainer = data;
	const struct weft_model *model = explainer->viewer->model;
	if (explainer->promise == WEFT_NONE)
		weft_explain(&explainer->findings, model, NULL, NULL);
	else
		weft_explain_promise(&explainer->findings, model, explainer->promise, NULL, NULL);
	loader_release(explainer->viewer);
	g_idle_add(finish, explainer);
	return NULL;
}

struct explainer *explainer_start(struct weft_viewer *viewer, uint32_t promise, explainer_done *done, void *ctx)
{
	struct explainer *explainer = g_new0(struct explainer, 1);
	*explainer = (struct explainer){.viewer = viewer, .promise = promise, .done = done, .ctx = ctx};
	g_ref_count_init(&explainer->references);
	g_ref_count_inc(&explainer->references);
	loader_hold(viewer);
	g_thread_unref(g_thread_new("weft-explain", work, explainer));
	return explainer;
}

void explainer_stop(struct explainer *explainer)
{
	if (!explainer)
		return;
	explainer->stopped = true;
	unref(explainer);
}
