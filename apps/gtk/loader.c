/* loader.c: reads a trace in a separate OS thread.  SPDX-License-Identifier: ISC */
#include "loader.h"
#include "open/open.h"

#include <stdatomic.h>
#include <string.h>

#ifdef WEFT_HAS_NAMES
#include "backends/dwarf/names.h"
#endif
#include "model/followers.h"
#include "trace/multi_open.h"

char *loader_trace_of(const char *path)
{
	char *folder = g_path_get_dirname(path), *metadata = g_build_filename(folder, "metadata", NULL);
	bool is_trace = g_file_test(metadata, G_FILE_TEST_IS_REGULAR);
	g_free(metadata);
	if (is_trace)
		return folder;
	g_free(folder);
	return g_strdup(path);
}

char *loader_name_of(const char *const *paths)
{
	const guint more = g_strv_length((char **)(uintptr_t)paths) - 1;
	char *first = strcmp(paths[0], "-") == 0 ? g_strdup("standard input") : g_filename_display_basename(paths[0]);
	char *name = more ? g_strdup_printf("%s and %u more", first, more) : g_strdup(first);
	g_free(first);
	return name;
}

/* Makes a plan for opening the paths; if some traces cannot be opened, only the others are in the plan. */
static struct open_plan *create_plan(const char *const *paths)
{
	struct open_plan *plan;
	char **operands = (char **)(uintptr_t)paths;
	if (open_classify(&plan, operands, (int)g_strv_length(operands), NULL) < 0)
		g_error("out of memory");
	plan->is_lenient = true;
	return plan;
}

static uint64_t take_fingerprint(const struct open_plan *plan, bool *is_recorded)
{
	*is_recorded = weft_multi_is_recorded(plan->paths.items, plan->paths.count);
	return weft_multi_fingerprint(plan->paths.items, plan->paths.count);
}

uint64_t loader_take_fingerprint(const char *const *paths, bool *is_recorded)
{
	struct open_plan *plan = create_plan(paths);
	const uint64_t fingerprint = take_fingerprint(plan, is_recorded);
	open_plan_destroy(plan);
	return fingerprint;
}

/* A followed trace. */
struct loader_follow {
	GMutex mutex; /* held by the loader that refreshes; a loader that was stopped may still be running */
	struct weft_followers *followers;
	struct loader *loader; /* the loader that refreshes */
	grefcount references;
};

struct loader {
	char **paths;                 /* paths as the user named them */
	struct open_plan *plan;       /* plan for opening the traces of the paths; NULL until the worker thread runs */
	struct loader_follow *follow; /* or NULL */
	loader_done *done;
	void *ctx;
	/* The worker thread writes `events`, and the main loop writes `stopped`.  No other memory depends on the order of these
	 * writes, so relaxed accesses suffice. */
	_Atomic uint64_t events;
	atomic_bool stopped;
	/* One reference for the caller of loader_start(), and one for the worker thread; both are dropped in the main loop. */
	grefcount references;
	struct weft_viewer *viewer;
	struct weft_error error;
	uint64_t fingerprint;
	bool is_recorded, is_patient, is_missing_names, is_partial;
};

static gpointer destroy_viewer(gpointer viewer)
{
	weft_viewer_destroy(viewer);
	return NULL;
}

/* Number of holders of each viewer in addition to its owner; a viewer without other holders has no entry. */
static GMutex holders_mutex;
static GHashTable *holders;

void loader_hold(struct weft_viewer *viewer)
{
	g_mutex_lock(&holders_mutex);
	if (!holders)
		holders = g_hash_table_new(NULL, NULL);
	g_hash_table_insert(holders, viewer, GUINT_TO_POINTER(GPOINTER_TO_UINT(g_hash_table_lookup(holders, viewer)) + 1));
	g_mutex_unlock(&holders_mutex);
}

static bool is_held(struct weft_viewer *viewer)
{
	g_mutex_lock(&holders_mutex);
	unsigned others = holders ? GPOINTER_TO_UINT(g_hash_table_lookup(holders, viewer)) : 0;
	if (others > 1)
		g_hash_table_insert(holders, viewer, GUINT_TO_POINTER(others - 1));
	else if (others == 1)
		g_hash_table_remove(holders, viewer);
	g_mutex_unlock(&holders_mutex);
	return others > 0;
}

void loader_release(struct weft_viewer *viewer)
{
	if (viewer && is_held(viewer))
		return;
	if (viewer && viewer->model->events > 100000)
		g_thread_unref(g_thread_new("weft-release", destroy_viewer, viewer));
	else
		weft_viewer_destroy(viewer);
}

void loader_follow_end(struct loader_follow *follow)
{
	if (!follow || !g_ref_count_dec(&follow->references))
		return;
	weft_followers_close(follow->followers);
	g_mutex_clear(&follow->mutex);
	g_free(follow);
}

static void unref_loader(struct loader *loader)
{
	if (!g_ref_count_dec(&loader->references))
		return;
	loader_release(loader->viewer);
	loader_follow_end(loader->follow);
	g_strfreev(loader->paths);
	open_plan_destroy(loader->plan);
	g_free(loader);
}

static bool continue_loading(void *ctx, uint64_t events)
{
	struct loader *loader = ctx;
	atomic_store_explicit(&loader->events, events, memory_order_relaxed);
	return !atomic_load_explicit(&loader->stopped, memory_order_relaxed);
}

static bool continue_following(void *ctx, uint64_t events)
{
	const struct loader_follow *follow = ctx;
	return continue_loading(follow->loader, events);
}

struct loader_follow *loader_follow_begin(void)
{
	struct loader_follow *follow = g_new0(struct loader_follow, 1);
	const struct weft_follower_options options = {.model = {.go_on = continue_following, .ctx = follow},
	    .window_ns = INT64_MAX,
	    .window_events = WEFT_FOLLOWER_WINDOW_EVENTS,
	    .begins_at_window = true};
	g_mutex_init(&follow->mutex);
	g_ref_count_init(&follow->references);
	if (weft_followers_open(&follow->followers, &options, NULL) < 0)
		g_clear_pointer(&follow, loader_follow_end);
	return follow;
}

static gboolean finish_loading(gpointer data)
{
	struct loader *loader = data;
	if (!atomic_load_explicit(&loader->stopped, memory_order_relaxed)) {
		struct weft_viewer *viewer = loader->viewer;
		loader->viewer = NULL;
		loader->done(loader->ctx, viewer, &loader->error);
	}
	unref_loader(loader);
	return G_SOURCE_REMOVE;
}

#ifdef WEFT_HAS_NAMES
/* A search for the names of machine-code addresses.  The search runs in a separate OS thread, because a large debug file takes
 * long. */
struct naming {
	struct weft_names *names;
	GMutex mutex;
	GCond cond;
	bool is_done, is_abandoned; /* is_abandoned: no thread waits for the search any more */
	grefcount references;
};

static void unref_naming(struct naming *naming)
{
	if (!g_ref_count_dec(&naming->references))
		return;
	weft_names_destroy(naming->names);
	g_mutex_clear(&naming->mutex);
	g_cond_clear(&naming->cond);
	g_free(naming);
}

static bool is_waited_for(void *ctx)
{
	struct naming *naming = ctx;
	g_mutex_lock(&naming->mutex);
	bool is_abandoned = naming->is_abandoned;
	g_mutex_unlock(&naming->mutex);
	return !is_abandoned;
}

static gpointer find_names(gpointer data)
{
	struct naming *naming = data;
	weft_names_find(naming->names, &(struct weft_names_options){.go_on = is_waited_for, .ctx = naming});
	g_mutex_lock(&naming->mutex);
	naming->is_done = true;
	g_cond_signal(&naming->cond);
	g_mutex_unlock(&naming->mutex);
	unref_naming(naming);
	return NULL;
}

/* Finds names for the addresses of a trace that no other code uses yet.  If the search takes too long, the names are left
 * out. */
static void name_addresses(struct loader *loader, struct weft_trace *trace)
{
	enum { MAX_WAIT_US = 300000, POLL_US = 50000 };
	struct weft_names *names = weft_names_create(weft_trace_info(trace));
	if (!names)
		return;
	struct naming *naming = g_new0(struct naming, 1);
	naming->names = names;
	g_mutex_init(&naming->mutex);
	g_cond_init(&naming->cond);
	g_ref_count_init(&naming->references);
	g_ref_count_inc(&naming->references);
	g_thread_unref(g_thread_new("weft-names", find_names, naming));
	const gint64 end_us = g_get_monotonic_time() + MAX_WAIT_US;
	g_mutex_lock(&naming->mutex);
	while (!naming->is_done && continue_loading(loader, 0) && (loader->is_patient || g_get_monotonic_time() < end_us))
		g_cond_wait_until(&naming->cond, &naming->mutex, g_get_monotonic_time() + POLL_US);
	naming->is_abandoned = true;
	loader->is_missing_names = !naming->is_done;
	g_mutex_unlock(&naming->mutex);
	if (!loader->is_missing_names)
		(void)weft_names_apply(names, trace);
	unref_naming(naming);
}
#else
static void name_addresses(struct loader *loader, struct weft_trace *trace)
{
}
#endif

/* Reads the new events since the last refresh, and returns a model of the newest events; NULL if all events must be read. */
static struct weft_followed_model *refresh_followed(struct loader *loader)
{
	struct loader_follow *follow = loader->follow;
	struct weft_followed_model *followed = NULL;
	g_mutex_lock(&follow->mutex);
	follow->loader = loader;
	weft_followers_mark_stale(follow->followers);
	const struct open_plan *plan = loader->plan;
	if (weft_followers_refresh(follow->followers, plan->paths.items, plan->paths.count, open_has_session(plan), NULL) > 0) {
		loader->is_partial = weft_followers_window_start_ns(follow->followers) > 0;
		/* If the whole ring was just overwritten, the window may cover almost no time, so the loader waits until the
		 * window is filled. */
		if (!loader->is_partial || weft_followers_is_filled(follow->followers))
			followed = weft_followers_detach(follow->followers);
	}
	follow->loader = NULL;
	g_mutex_unlock(&follow->mutex);
	return followed;
}

static void release_followed(void *followed)
{
	weft_followed_model_destroy(followed);
}

static bool show_newest(struct loader *loader)
{
	struct weft_followed_model *followed = refresh_followed(loader);
	if (!followed)
		return false;
	name_addresses(loader, followed->trace);
	if (weft_viewer_open_model(
		&loader->viewer, followed->model, followed->trace, release_followed, followed, &loader->error) < 0)
		weft_followed_model_destroy(followed);
	return true;
}

static gpointer run_loader(gpointer data)
{
	struct loader *loader = data;
	struct weft_trace *trace = NULL;
	struct weft_model_options options = {.go_on = continue_loading, .ctx = loader};
	loader->plan = create_plan((const char *const *)loader->paths);
	loader->fingerprint = take_fingerprint(loader->plan, &loader->is_recorded);
	if (loader->follow && show_newest(loader)) {
		g_idle_add(finish_loading, loader);
		return NULL;
	}
	loader->is_partial = false;
	char *name = loader_name_of((const char *const *)loader->paths);
	g_strlcpy(loader->plan->name, name, sizeof loader->plan->name);
	if (open_run(&trace, loader->plan, &loader->error) == WEFT_OK) {
		name_addresses(loader, trace);
		/* If the viewer could be opened, the viewer owns the trace. */
		if (!continue_loading(loader, 0) || weft_viewer_open(&loader->viewer, trace, &options, &loader->error) != WEFT_OK)
			weft_trace_close(trace);
	}
	g_free(name);
	g_idle_add(finish_loading, loader);
	return NULL;
}

struct loader *loader_start(const char *const *paths, struct loader_follow *follow, bool is_patient, loader_done *done, void *ctx)
{
	struct loader *loader = g_new0(struct loader, 1);
	loader->paths = g_strdupv((char **)(uintptr_t)paths);
	loader->follow = follow;
	if (follow)
		g_ref_count_inc(&follow->references);
	loader->done = done;
	loader->ctx = ctx;
	loader->is_patient = is_patient;
	g_ref_count_init(&loader->references);
	g_ref_count_inc(&loader->references);
	g_thread_unref(g_thread_new("weft-load", run_loader, loader));
	return loader;
}

uint64_t loader_events(const struct loader *loader)
{
	return atomic_load_explicit(&loader->events, memory_order_relaxed);
}

uint64_t loader_fingerprint(const struct loader *loader)
{
	return loader->fingerprint;
}

bool loader_is_recorded(const struct loader *loader)
{
	return loader->is_recorded;
}

bool loader_is_partial(const struct loader *loader)
{
	return loader->is_partial;
}

bool loader_is_missing_names(const struct loader *loader)
{
	return loader->is_missing_names;
}

void loader_stop(struct loader *loader)
{
	if (!loader)
		return;
	atomic_store_explicit(&loader->stopped, true, memory_order_relaxed);
	unref_loader(loader);
}
