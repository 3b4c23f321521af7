/* pool.c: six computations of 30 ms in a GThreadPool of two OS threads, which start when all are pushed.  Then the same item is
 * pushed three times, and a pool is freed before most of its items have started. SPDX-License-Identifier: ISC */
#include <glib.h>

enum { COMPUTATIONS = 6, BUSY_US = 30000, MOST = 2 };

static gint left = COMPUTATIONS, all_pushed;
static GMainLoop *loop;

static gboolean on_done(gpointer data)
{
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

/* Exported, so that it has a name. */
void compute(gpointer data, gpointer pool_data) __attribute__((visibility("default")));

void compute(gpointer data, gpointer pool_data)
{
	while (!g_atomic_int_get(&all_pushed))
		g_usleep(100);
	for (gint64 end = g_get_monotonic_time() + BUSY_US; g_get_monotonic_time() < end;)
		;
	if (g_atomic_int_dec_and_test(&left))
		g_idle_add(on_done, NULL);
}

static gint may_go, counted;

void count(gpointer data, gpointer pool_data) __attribute__((visibility("default")));

void count(gpointer data, gpointer pool_data)
{
	while (!g_atomic_int_get(&may_go))
		g_usleep(100);
	g_atomic_int_inc(&counted);
}

static void alike_and_dropped(void)
{
	GThreadPool *pool = g_thread_pool_new(count, NULL, 1, TRUE, NULL);
	for (int i = 0; i < 3; i++)
		g_thread_pool_push(pool, &counted, NULL);
	g_atomic_int_set(&may_go, 1);
	g_thread_pool_free(pool, FALSE, TRUE);
	g_print("counted %d\n", counted);
	/* Only the first item can have started: its OS thread blocks the others until the pool is freed. */
	may_go = 0;
	pool = g_thread_pool_new(count, pool, 1, TRUE, NULL);
	for (int i = 1; i <= 5; i++)
		g_thread_pool_push(pool, GINT_TO_POINTER(i), NULL);
	g_thread_pool_free(pool, TRUE, FALSE);
	g_usleep(20000);
	g_atomic_int_set(&may_go, 1);
	g_usleep(20000);
}

int main(void)
{
	loop = g_main_loop_new(NULL, FALSE);
	GThreadPool *pool = g_thread_pool_new(compute, loop, MOST, TRUE, NULL);
	for (int i = 1; i <= COMPUTATIONS; i++)
		g_thread_pool_push(pool, GINT_TO_POINTER(i), NULL);
	g_atomic_int_set(&all_pushed, 1);
	g_main_loop_run(loop);
	g_thread_pool_free(pool, FALSE, TRUE);
	alike_and_dropped();
	return 0;
}
