/* loader.c: reads a trace in an OS thread of its own.  SPDX-License-Identifier: ISC */
#include "loader.h"
#include "ctf/foreign.h"
#include "session/session.h"

#include <stdatomic.h>
#include <string.h>

#ifdef WEFT_HAS_NAMES
#include "backends/dwarf/names.h"
#endif
#include "model/followers.h"
#include "trace/several.h"

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

/* The traces of sessions in place of their directories; to be freed. */
static char **expand(const char *const *paths)
{
	session_paths all = {0};
	GStrvBuilder *traces = g_strv_builder_new();
	if (!session_expand(&all, (char *const *)(uintptr_t)paths, (int)g_strv_length((char **)(uintptr_t)paths), NULL))
		g_error("out of memory");
	for (size_t i = 0; i < all.count; i++)
		g_strv_builder_add(traces, all.items[i]);
	session_paths_free(&all);
	char **expanded = g_strv_builder_end(traces);
	g_strv_builder_unref(traces);
	return expanded;
}

uint64_t loader_look(const char *const *paths, bool *is_recorded)
{
	char **traces = expand(paths);
	const size_t count = g_strv_length(traces);
	const uint64_t fingerprint = weft_several_fingerprint((const char *const *)traces, count);
	*is_recorded = weft_several_are_recorded((const char *const *)traces, count);
	g_strfreev(traces);
	return fingerprint;
}

/* What is followed. */
struct loader_follow {
	GMutex mutex; /* of a loader that looks: one that was called off may not have noticed yet */
	struct weft_followers *followers;
	struct loader *loader; /* that looks */
	grefcount references;
};

struct loader {
	char **paths, **traces;       /* as named, and what they are */
	struct loader_follow *follow; /* or NULL */
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
	bool is_recorded, is_patient, lacks_names, is_partial;
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

void loader_follow_end(struct loader_follow *follow)
{
	if (!follow || !g_ref_count_dec(&follow->references))
		return;
	weft_followers_close(follow->followers);
	g_mutex_clear(&follow->mutex);
	g_free(follow);
}

static void unref(struct loader *loader)
{
	if (!g_ref_count_dec(&loader->references))
		return;
	loader_release(loader->viewer);
	loader_follow_end(loader->follow);
	g_strfreev(loader->paths);
	g_strfreev(loader->traces);
	g_free(loader);
}

static bool go_on(void *ctx, uint64_t events)
{
	struct loader *loader = ctx;
	atomic_store_explicit(&loader->events, events, memory_order_relaxed);
	return !atomic_load_explicit(&loader->stopped, memory_order_relaxed);
}

static bool go_on_following(void *ctx, uint64_t events)
{
	const struct loader_follow *follow = ctx;
	return go_on(follow->loader, events);
}

struct loader_follow *loader_follow_begin(void)
{
	struct loader_follow *follow = g_new0(struct loader_follow, 1);
	const struct weft_follower_options options = {.model = {.go_on = go_on_following, .ctx = follow},
	    .window_ns = INT64_MAX,
	    .window_events = WEFT_FOLLOWER_SEEN,
	    .begins_at_window = true};
	g_mutex_init(&follow->mutex);
	g_ref_count_init(&follow->references);
	if (weft_followers_open(&follow->followers, &options, NULL) < 0)
		g_clear_pointer(&follow, loader_follow_end);
	return follow;
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
/* The names of places in machine code, looked up in an OS thread of its own: a large debug file takes as long as it takes. */
struct naming {
	struct weft_names *names;
	GMutex mutex;
	GCond cond;
	bool is_done, is_left; /* is_left: nobody waits for it any more */
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
	bool is_left = naming->is_left;
	g_mutex_unlock(&naming->mutex);
	return !is_left;
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

/* Before anybody else uses the trace.  What takes longer than is waited for is left out. */
static void name_places(struct loader *loader, struct weft_trace *trace)
{
	enum { MOST_US = 300000, LOOK_US = 50000 };
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
	const gint64 end_us = g_get_monotonic_time() + MOST_US;
	g_mutex_lock(&naming->mutex);
	while (!naming->is_done && go_on(loader, 0) && (loader->is_patient || g_get_monotonic_time() < end_us))
		g_cond_wait_until(&naming->cond, &naming->mutex, g_get_monotonic_time() + LOOK_US);
	naming->is_left = true;
	loader->lacks_names = !naming->is_done;
	g_mutex_unlock(&naming->mutex);
	if (!loader->lacks_names)
		(void)weft_names_apply(names, trace);
	unref_naming(naming);
}
#else
static void name_places(struct loader *loader, struct weft_trace *trace)
{
}
#endif

/* Takes what came since the last look, with the newest events; NULL: all is to be read. */
static struct weft_followed *look(struct loader *loader)
{
	struct loader_follow *follow = loader->follow;
	struct weft_followed *followed = NULL;
	g_mutex_lock(&follow->mutex);
	follow->loader = loader;
	weft_followers_renew(follow->followers);
	const size_t count = g_strv_length(loader->traces), named = g_strv_length(loader->paths);
	if (weft_followers_look(follow->followers, (const char *const *)loader->traces, count, count > named, NULL) > 0) {
		loader->is_partial = weft_followers_window(follow->followers) > 0;
		/* Of a ring that has just been overwritten as a whole it may be a moment. */
		if (!loader->is_partial || weft_followers_is_filled(follow->followers))
			followed = weft_followers_take(follow->followers);
	}
	follow->loader = NULL;
	g_mutex_unlock(&follow->mutex);
	return followed;
}

static void release_followed(void *followed)
{
	weft_followed_destroy(followed);
}

static bool show_newest(struct loader *loader)
{
	struct weft_followed *followed = look(loader);
	if (!followed)
		return false;
	name_places(loader, followed->trace);
	if (weft_viewer_open_model(
		&loader->viewer, followed->model, followed->trace, release_followed, followed, &loader->error) < 0)
		weft_followed_destroy(followed);
	return true;
}

static gpointer work(gpointer data)
{
	struct loader *loader = data;
	struct weft_trace *trace = NULL;
	struct weft_model_options options = {.go_on = go_on, .ctx = loader};
	loader->fingerprint = loader_look((const char *const *)loader->paths, &loader->is_recorded);
	loader->traces = expand((const char *const *)loader->paths);
	if (loader->follow && show_newest(loader)) {
		g_idle_add(finish, loader);
		return NULL;
	}
	loader->is_partial = false;
	char *name = loader_name_of((const char *const *)loader->paths);
	if (weft_several_open(&trace, (const char *const *)loader->traces, g_strv_length(loader->traces), name, true,
		foreign_or_trace_open, &loader->error) == WEFT_OK) {
		name_places(loader, trace);
		/* The viewer owns the trace only if it could be opened. */
		if (!go_on(loader, 0) || weft_viewer_open(&loader->viewer, trace, &options, &loader->error) != WEFT_OK)
			weft_trace_close(trace);
	}
	g_free(name);
	g_idle_add(finish, loader);
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

bool loader_is_partial(const struct loader *loader)
{
	return loader->is_partial;
}

bool loader_lacks_names(const struct loader *loader)
{
	return loader->lacks_names;
}

void loader_stop(struct loader *loader)
{
	if (!loader)
		return;
	atomic_store_explicit(&loader->stopped, true, memory_order_relaxed);
	unref(loader);
}
