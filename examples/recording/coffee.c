/* coffee.c: a small runtime that records its tasks.
 *
 * Its tasks sleep, wait for each other and finish, on one loop.  Calls of weft begin with weft_ or WEFT_; docs/instrument-api.md
 * explains them.  Run it:
 *
 *	./coffee			records nothing
 *	WEFT_TRACE=/tmp/coffee ./coffee	writes a trace into /tmp/coffee
 *
 * SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <time.h>
#include <weft/record.h>

enum { TASKS = 64 };

struct task {
	weft_id id;
	uint64_t since;                /* time of creation */
	struct weft_record_site *site; /* place of creation */
	const char *name;
	int wakes_at_ms;     /* time at which it ends */
	struct task *waiter; /* task that awaits it */
	struct task *needs;  /* task that it still awaits */
	bool is_done;
};

static struct task tasks[TASKS];
static size_t task_count;
static struct weft_record_text open_tasks = WEFT_COUNTER("open tasks");

/* A macro, so that the site is the caller's. */
#define task_create(name, wakes_at_ms) task_create_at(name, wakes_at_ms, WEFT_SITE())

static struct task *task_create_at(const char *name, int wakes_at_ms, struct weft_record_site *site)
{
	struct task *task = &tasks[task_count++];
	*task = (struct task){.name = name, .wakes_at_ms = wakes_at_ms, .site = site, .since = weft_now()};
	task->id = weft_create(weft_running(), WEFT_KIND_TASK, site);
	weft_label(task->id, name);
	weft_should_resolve(task->id);
	weft_counter_add(weft_running(), &open_tasks, 1);
	return task;
}

static void task_await(struct task *task, struct task *input)
{
	task->needs = input;
	input->waiter = task;
	weft_await(task->id, input->id);
}

static void task_finish(struct task *task)
{
	task->is_done = true;
	weft_resolve(weft_running(), task->id);
	weft_counter_add(task->id, &open_tasks, -1);
	if (task->waiter) {
		weft_read(task->waiter->id, task->id); /* the waiter continues */
		task->waiter->needs = NULL;
		task_finish(task->waiter);
	}
}

/* Records a pending task, so that a ring contains tasks older than its oldest packet. */
static void record_pending(struct task *task)
{
	/* A task that was created before the recording started gets its id here. */
	task->id = weft_pending(WEFT_SYSTEM_ID, task->id, WEFT_KIND_TASK, task->site, task->since, task->name);
}

static uint64_t list_tasks(void *data, uint64_t cursor, unsigned budget)
{
	for (; cursor < task_count; cursor++) {
		struct task *task = &tasks[cursor];
		if (task->is_done)
			continue;
		if (!budget--)
			return cursor;
		record_pending(task);
		if (task->needs && !task->needs->id)
			record_pending(task->needs);
		if (task->needs)
			weft_still_awaits(task->id, task->needs->id);
	}
	return 0;
}

static void sleep_ms(int ms)
{
	struct timespec t = {0, ms * 1000000L};
	weft_idle(WEFT_IDLE_WAIT);
	nanosleep(&t, NULL);
}

int main(void)
{
	weft_list_pending(list_tasks, NULL);
	struct task *breakfast = task_create("breakfast", -1);
	weft_run(breakfast->id);
	struct task *coffee = task_create("coffee", -1);
	struct task *water = task_create("boil water", 12);
	struct task *beans = task_create("grind beans", 5);
	task_create("newspaper", -1); /* never resolved */
	task_await(coffee, water);
	task_await(breakfast, coffee);
	for (int now = 0; !breakfast->is_done; now++) {
		struct task *due = now == beans->wakes_at_ms ? beans : now == water->wakes_at_ms ? water : NULL;
		if (due) {
			weft_run(due->id);
			if (due == beans)
				WEFT_NOTE(due->id, "smells good");
			task_finish(due);
		}
		sleep_ms(1);
	}
	puts("breakfast is served");
	return 0;
}
