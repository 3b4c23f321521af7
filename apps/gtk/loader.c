/* loader.c: reads a trace in an OS thread of its own.  SPDX-License-Identifier: ISC */
#include "loader.h"

#include <stdatomic.h>
#include <string.h>

#ifdef WEFT_HAS_NAMES
#include "backends/dwarf/names.h"
#endif
#include "trace/follow.h"
#include "xen/domain.h"

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

char *loader_name_of(const char *path)
{
	return strcmp(path, "-") == 0 ? g_strdup("standard input") : g_filename_display_basename(path);
}

struct loader {
	char *path;
	loader_done *done;
	void *ctx;
	/* The worker writes `events`, the main loop `stopped`.  No other memory depends on their order, so relaxed accesses
	 * suffice. */
	_Atomic uint64_t events;
	atomic_bool stopped;
	grefcount references; /* one for whoever started the loader, one for the worker; both are dropped in the main loop */
	struct weft_viewer *viewer;
	struct weft_error error;
	uint64_t fingerprint;
	bool is_recorded;
};

static gpointer release(gpointer viewer)
{
	weft_viewer_destroy(viewer);
	return NULL;
}

/* How many hold each viewer besides its owner; viewers that only the owner holds have no entry. */
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
		g_thread_unref(g_thread_new("weft-release", release, viewer));
	else
		weft_viewer_destroy(viewer);
}

static void unref(struct loader *loader)
{
	if (!g_ref_count_dec(&loader->references))
		return;
	loader_release(loader->viewer);
	g_free(loader->path);
	g_free(loader);
}

static bool go_on(void *ctx, uint64_t events)
{
	struct loader *loader = ctx;
	atomic_store_explicit(&loader->events, events, memory_order_relaxed);
	return !atomic_load_explicit(&loader->stopped, memory_order_relaxed);
}

static gboolean finish(gpointer data)
{
	struct loader *loader = data;
	if (!atomic_load_explicit(&loader->stopped, memory_order_relaxed)) {
		struct weft_viewer *viewer = loader->viewer;
		loader->viewer = NULL;
		loader->done(loader->ctx, viewer, &loader->error);
	}
	unref(loader);
	return G_SOURCE_REMOVE;
}

#ifdef WEFT_HAS_NAMES
struct naming {
	struct loader *loader;
	gint64 end_us;
};

static bool go_on_naming(void *ctx)
{
	const struct naming *naming = ctx;
	return g_get_monotonic_time() < naming->end_us && go_on(naming->loader, 0);
}

/* Looks up the names of places in machine code, for a limited time, before anybody else uses the trace. */
static void name_places(struct loader *loader, struct weft_trace *trace)
{
	enum { MOST_US = 300000 };
	struct weft_names *names = weft_names_create(weft_trace_info(trace));
	if (!names)
		return;
	struct naming naming = {loader, g_get_monotonic_time() + MOST_US};
	weft_names_find(names, &(struct weft_names_options){.go_on = go_on_naming, .ctx = &naming});
	(void)weft_names_apply(names, trace);
	weft_names_destroy(names);
}
#else
static void name_places(struct loader *loader, struct weft_trace *trace)
{
}
#endif

static gpointer work(gpointer data)
{
	struct loader *loader = data;
	struct weft_trace *trace = NULL;
	struct weft_model_options options = {.go_on = go_on, .ctx = loader};
	loader->fingerprint = weft_trace_fingerprint(loader->path);
	loader->is_recorded = weft_trace_is_recorded(loader->path);
	if (domain_or_trace_open(&trace, loader->path, &loader->error) == WEFT_OK) {
		name_places(loader, trace);
		/* The viewer owns the trace only if it could be opened. */
		if (!go_on(loader, 0) || weft_viewer_open(&loader->viewer, trace, &options, &loader->error) != WEFT_OK)
			weft_trace_close(trace);
	}
	g_idle_add(finish, loader);
	return NULL;
}

struct loader *loader_start(const char *path, loader_done *done, void *ctx)
{
	struct loader *loader = g_new0(struct loader, 1);
	loader->path = g_strdup(path);
	loader->done = done;
	loader->ctx = ctx;
	g_ref_count_init(&loader->references);
	g_ref_count_inc(&loader->references);
	g_thread_unref(g_thread_new("weft-load", work, loader));
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

void loader_stop(struct loader *loader)
{
	if (!loader)
		return;
	atomic_store_explicit(&loader->stopped, true, memory_order_relaxed);
	unref(loader);
}
