/* play.c: runs programs of promises that are written as text, and records them.
 *
 * 	play SCRIPT TRACE	TRACE is a directory to record into
 * 	play --no-memory SCRIPT	runs it repeatedly: the n-th allocation fails, and then all from the n-th on, for all n
 *
 * Callbacks write their arguments into the trace as notes, so that the order of callbacks and events is checked, too.  Each value
 * and each ctx of a callback must be destroyed exactly once, and each allocation freed: otherwise the program prints an error and
 * exits with 1.  model.py explains the commands.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/promise.h>

enum { VARS = 512, WORDS = 16, MAX_VALUES = 1 << 16 };

struct line {
	char *word[WORDS];
	int words;
	int end; /* of a `fn`: the line of its `end` */
};

static struct line *lines;
static size_t line_count;

static struct weft_promise *promise[VARS];
static struct weft_resolver *resolver[VARS];
static struct weft_condition *condition[VARS];
static struct weft_mvar *mvar[VARS];
static struct weft_mutex *mutex[VARS];
static struct weft_semaphore *semaphore[VARS];
static struct weft_bounded *bounded[VARS];
static struct weft_pool *pool[VARS];
static struct weft_switch *the_switch[VARS];
static struct weft_counter counter = WEFT_PROMISE_COUNTER("count", 0);

static bool quiet, cleaning;
static int bad;

static void complain(const char *what)
{
	fprintf(stderr, "play: %s\n", what);
	bad = 1;
}

static void say(const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (!quiet)
		weft_note(0, text);
}

/* ---- Values ---- */

static struct value {
	int number, destroyed;
} values[MAX_VALUES];
static size_t value_count;

static void value_destroy(void *pointer)
{
	struct value *v = pointer;
	if (v->destroyed++)
		complain("a value was destroyed twice");
}

static struct value *value_new(int number)
{
	if (value_count == MAX_VALUES) {
		complain("too many values");
		exit(1);
	}
	values[value_count] = (struct value){number, 0};
	return &values[value_count++];
}

static void show(char *out, size_t room, void *pointer)
{
	struct value *v = pointer;
	if (!pointer) {
		snprintf(out, room, "unit");
	} else if (v >= values && v < values + MAX_VALUES) {
		snprintf(out, room, v->destroyed ? "destroyed" : "%d", v->number);
	} else {
		struct weft_values *list = pointer;
		snprintf(out, room, "[");
		for (size_t i = 0; i < list->count; i++) {
			char one[128];
			show(one, sizeof one, list->values[i]);
			size_t used = strlen(out);
			snprintf(out + used, room - used, i ? " %s" : "%s", one);
		}
		size_t used = strlen(out);
		snprintf(out + used, room - used, "]");
	}
}

/* ---- Callbacks ---- */

static size_t contexts, contexts_destroyed;

struct context {
	int fn, other; /* first lines of `fn`s; -1: none */
	int number;
};

static void context_destroy(void *pointer)
{
	contexts_destroyed++;
	free(pointer);
}

static struct context *context_new(int fn, int other, int number)
{
	struct context *c = malloc(sizeof *c);
	*c = (struct context){fn, other, number};
	contexts++;
	return c;
}

static void run(int from, int to);

static struct weft_promise *get(const char *name)
{
	int n = atoi(name);
	return promise[n] ? weft_promise_ref(promise[n]) : weft_promise_unit();
}

static void set(const char *name, struct weft_promise *p)
{
	int n = atoi(name);
	weft_promise_unref(promise[n]);
	promise[n] = p;
}

static struct weft_promise *body(int fn)
{
	run(fn + 1, lines[fn].end);
	return get(lines[lines[fn].end].word[1]);
}

static struct weft_promise *on_value(void *ctx, void *value)
{
	struct context *c = ctx;
	char text[256];
	show(text, sizeof text, value);
	say("%s gets %s", lines[c->fn].word[1], text);
	return body(c->fn);
}

static struct weft_promise *on_error(void *ctx, const struct weft_failure *failure)
{
	struct context *c = ctx;
	int fn = c->other >= 0 ? c->other : c->fn;
	say("%s gets error %d %s", lines[fn].word[1], failure->code, failure->message);
	return body(fn);
}

static struct weft_promise *on_start(void *ctx)
{
	struct context *c = ctx;
	say("%s starts", lines[c->fn].word[1]);
	return body(c->fn);
}

static struct weft_value on_map(void *ctx, void *value)
{
	struct context *c = ctx;
	weft_promise_unref(on_value(ctx, value));
	return (struct weft_value){value_new(c->number), value_destroy};
}

static void plain_value(void *ctx, void *value)
{
	weft_promise_unref(on_value(ctx, value));
}

static void plain_error(void *ctx, const struct weft_failure *failure)
{
	weft_promise_unref(on_error(ctx, failure));
}

static void plain_end(void *ctx)
{
	weft_promise_unref(on_start(ctx));
}

static void hook(void *ctx, const struct weft_failure *failure)
{
	say("hook gets error %d %s", failure->code, failure->message);
}

static void say_state(const char *name, struct weft_promise *p)
{
	char text[256];
	const struct weft_failure *failure = weft_promise_failure(p);
	switch (weft_promise_state(p)) {
	case WEFT_PENDING: say("%s is pending", name); break;
	case WEFT_FAILED: say("%s failed with %d", name, failure->code); break;
	case WEFT_RESOLVED: show(text, sizeof text, weft_promise_value(p)); say("%s is %s", name, text);
	}
}

/* ---- Commands ---- */

static int find_fn(const char *name)
{
	for (size_t i = line_count; i-- > 0;)
		if (*lines[i].word[0] == 'f' && strcmp(lines[i].word[0], "fn") == 0 && strcmp(lines[i].word[1], name) == 0)
			return (int)i;
	complain("no such function");
	exit(1);
}

static struct context *context_of(const struct line *l, int first)
{
	return context_new(find_fn(l->word[first]), l->words > first + 1 ? find_fn(l->word[first + 1]) : -1, 0);
}

static int code_of(const char *word)
{
	return atoi(word) == 99 ? WEFT_PROMISE_CANCELLED : atoi(word);
}

static bool is(const struct line *l, const char *word)
{
	return strcmp(l->word[0], word) == 0;
}

static bool make(const struct line *l, int n)
{
	char *const *w = l->word;
	if (is(l, "wait"))
		set(w[1], weft_promise_wait(&resolver[n]));
	else if (is(l, "task"))
		set(w[1], weft_promise_task(&resolver[n]));
	else if (is(l, "named_wait"))
		set(w[1], weft_promise_named_wait(w[2], &resolver[n]));
	else if (is(l, "named_task"))
		set(w[1], weft_promise_named_task(w[2], &resolver[n]));
	else if (is(l, "unit"))
		set(w[1], weft_promise_unit());
	else if (is(l, "return"))
		set(w[1], weft_promise_return(value_new(atoi(w[2])), value_destroy));
	else if (is(l, "fail"))
		set(w[1], weft_promise_fail(code_of(w[2]), "error"));
	else if (is(l, "pause"))
		set(w[1], weft_promise_pause());
	else if (is(l, "of_kind")) /* a timer that can be cancelled */
		set(w[1], weft_promise_of_kind(WEFT_KIND_TIMER, true, w[2], &resolver[n]));
	else
		return false;
	return true;
}

static bool sequence(const struct line *l)
{
	char *const *w = l->word;
	if (is(l, "bind"))
		set(w[1], weft_promise_bind(get(w[2]), on_value, context_of(l, 3), context_destroy));
	else if (is(l, "map"))
		set(w[1], weft_promise_map(get(w[2]), on_map, context_new(find_fn(w[3]), -1, atoi(w[4])), context_destroy));
	else if (is(l, "catch"))
		set(w[1], weft_promise_catch(get(w[2]), on_error, context_of(l, 3), context_destroy));
	else if (is(l, "try_bind"))
		set(w[1], weft_promise_try_bind(get(w[2]), on_value, on_error, context_of(l, 3), context_destroy));
	else if (is(l, "finalize"))
		set(w[1], weft_promise_finalize(get(w[2]), on_start, context_of(l, 3), context_destroy));
	else if (is(l, "on_success"))
		weft_promise_on_success(get(w[1]), plain_value, context_of(l, 2), context_destroy);
	else if (is(l, "on_failure"))
		weft_promise_on_failure(get(w[1]), plain_error, context_of(l, 2), context_destroy);
	else if (is(l, "on_termination"))
		weft_promise_on_termination(get(w[1]), plain_end, context_of(l, 2), context_destroy);
	else if (is(l, "on_any"))
		weft_promise_on_any(get(w[1]), plain_value, plain_error, context_of(l, 2), context_destroy);
	else if (is(l, "dont_wait"))
		weft_promise_dont_wait(get(w[1]), plain_error, context_of(l, 2), context_destroy);
	else if (is(l, "ignore_result"))
		weft_promise_ignore_result(get(w[1]));
	else if (is(l, "async"))
		weft_promise_async(on_start, context_of(l, 1), context_destroy);
	else if (is(l, "on_cancel"))
		weft_promise_on_cancel(promise[atoi(w[1])], plain_end, context_of(l, 2), context_destroy);
	else if (is(l, "protected"))
		set(w[1], weft_promise_protected(get(w[2])));
	else if (is(l, "no_cancel"))
		set(w[1], weft_promise_no_cancel(get(w[2])));
	else
		return false;
	return true;
}

static bool several(const struct line *l)
{
	struct weft_promise *list[WORDS];
	size_t count = 0;
	if (is(l, "both"))
		return set(l->word[1], weft_promise_both(get(l->word[2]), get(l->word[3]))), true;
	bool choose = is(l, "choose"), pick = is(l, "pick"), nchoose = is(l, "nchoose"), npick = is(l, "npick");
	if (!choose && !pick && !nchoose && !npick && !is(l, "join") && !is(l, "all"))
		return false;
	for (int i = 2; i < l->words; i++)
		list[count++] = get(l->word[i]);
	set(l->word[1], choose          ? weft_promise_choose(list, count)
			: pick          ? weft_promise_pick(list, count)
			: nchoose       ? weft_promise_nchoose(list, count)
			: npick         ? weft_promise_npick(list, count)
			: is(l, "join") ? weft_promise_join(list, count)
					: weft_promise_all(list, count));
	return true;
}

static struct weft_resolver *take_resolver(const char *name)
{
	struct weft_resolver *r = resolver[atoi(name)];
	resolver[atoi(name)] = NULL;
	return r;
}

static void resolver_is_cancelled(void *ctx)
{
	say("the resolver hears of it");
}

static bool act(const struct line *l, int n)
{
	char *const *w = l->word;
	if (is(l, "wakeup"))
		weft_wakeup(take_resolver(w[1]), value_new(atoi(w[2])), value_destroy);
	else if (is(l, "wakeup_error"))
		weft_wakeup_error(take_resolver(w[1]), code_of(w[2]), "error");
	else if (is(l, "wakeup_later"))
		weft_wakeup_later(take_resolver(w[1]), value_new(atoi(w[2])), value_destroy);
	else if (is(l, "wakeup_later_error"))
		weft_wakeup_later_error(take_resolver(w[1]), code_of(w[2]), "error");
	else if (is(l, "resolver_drop"))
		weft_resolver_drop(take_resolver(w[1]));
	else if (is(l, "resolver_on_cancel")) {
		if (resolver[n])
			weft_resolver_on_cancel(resolver[n], resolver_is_cancelled, NULL);
	} else if (is(l, "cancel"))
		weft_promise_cancel(promise[n]);
	else if (is(l, "wakeup_paused"))
		weft_promise_wakeup_paused();
	else if (is(l, "label"))
		weft_promise_label(w[1]);
	else if (is(l, "set_label"))
		weft_promise_set_label(promise[n], w[2]);
	else if (is(l, "should_resolve"))
		weft_promise_should_resolve(promise[n]);
	else if (is(l, "increase"))
		weft_counter_increase(&counter, n);
	else if (is(l, "set_counter"))
		weft_counter_set_value(&counter, weft_counter_value(&counter) * 10 + n);
	else if (is(l, "sleep")) {
		weft_promise_idle(WEFT_IDLE_WAIT);
		weft_promise_resume();
	} else if (is(l, "is_known"))
		say(weft_promise_id(promise[n]) ? "known" : "unknown");
	else if (is(l, "poll"))
		weft_promise_poll(promise[n]);
	else if (is(l, "state"))
		say_state(w[1], promise[n]);
	else if (is(l, "drop"))
		set(w[1], NULL);
	else
		return false;
	return true;
}

static bool make_place(const struct line *l, int n)
{
	char *const *w = l->word, *label = l->words > 2 ? w[2] : NULL;
	size_t size = label ? (size_t)atoi(label) : 0;
	if (is(l, "condition"))
		condition[n] = weft_condition_create(label);
	else if (is(l, "mvar"))
		mvar[n] = weft_mvar_create_empty(label);
	else if (is(l, "full_mvar"))
		mvar[n] = weft_mvar_create(NULL, value_new(atoi(label)), value_destroy);
	else if (is(l, "mutex"))
		mutex[n] = label ? weft_mutex_create_named(label) : weft_mutex_create();
	else if (is(l, "semaphore"))
		semaphore[n] = weft_semaphore_create(size);
	else if (is(l, "bounded"))
		bounded[n] = weft_bounded_create(size);
	else if (is(l, "pool"))
		pool[n] = weft_pool_create(size, on_start, context_of(l, 3), context_destroy);
	else if (is(l, "switch"))
		the_switch[n] = weft_switch_create();
	else
		return false;
	return true;
}

/* Runs a command at a place, such as a condition or a mutex; does nothing if the place could not be created. */
static bool at_place(const struct line *l, int n)
{
	char *const *w = l->word;
	int m = l->words > 2 ? atoi(w[2]) : 0;
	if (is(l, "condition_wait") && condition[m])
		set(w[1], weft_condition_wait(condition[m], l->words > 3 ? mutex[atoi(w[3])] : NULL));
	else if (is(l, "signal") && condition[n])
		weft_condition_signal(condition[n], value_new(m), value_destroy);
	else if (is(l, "broadcast") && condition[n])
		weft_condition_broadcast(condition[n], value_new(m), value_destroy);
	else if (is(l, "broadcast_error") && condition[n])
		weft_condition_broadcast_error(condition[n], m, "error");
	else if (is(l, "put") && mvar[m])
		set(w[1], weft_mvar_put(mvar[m], value_new(atoi(w[3])), value_destroy));
	else if (is(l, "take") && mvar[m])
		set(w[1], weft_mvar_take(mvar[m]));
	else if (is(l, "lock") && mutex[m])
		set(w[1], weft_mutex_lock(mutex[m]));
	else if (is(l, "unlock") && mutex[n])
		weft_mutex_unlock(mutex[n]);
	else if (is(l, "with_lock") && mutex[m])
		set(w[1], weft_mutex_with_lock(mutex[m], on_start, context_of(l, 3), context_destroy));
	else if (is(l, "is_locked") && mutex[n])
		say("%s", weft_mutex_is_locked(mutex[n]) ? "locked" : "not locked");
	else if (is(l, "is_on") && the_switch[n])
		say("%s", weft_switch_is_on(the_switch[n]) ? "on" : "off");
	else if (is(l, "acquire") && semaphore[m])
		set(w[1], weft_semaphore_acquire(semaphore[m]));
	else if (is(l, "release") && semaphore[n])
		weft_semaphore_release(semaphore[n]);
	else if (is(l, "push") && bounded[m])
		set(w[1], weft_bounded_push(bounded[m], value_new(atoi(w[3])), value_destroy));
	else if (is(l, "next") && bounded[m])
		set(w[1], weft_bounded_next(bounded[m]));
	else if (is(l, "close") && bounded[n])
		weft_bounded_close(bounded[n]);
	else if (is(l, "use") && pool[m])
		set(w[1], weft_pool_use(pool[m], on_value, context_of(l, 3), context_destroy));
	else if (is(l, "add_hook") && the_switch[n])
		weft_switch_add_hook(the_switch[n], on_start, context_of(l, 2), context_destroy);
	else if (is(l, "turn_off") && the_switch[m])
		set(w[1], weft_switch_turn_off(the_switch[m]));
	else
		return quiet;
	return true;
}

static void run(int from, int to)
{
	for (int i = from; i < to && !cleaning; i++) {
		struct line *l = &lines[i];
		int n = l->words > 1 ? atoi(l->word[1]) : 0;
		if (is(l, "fn")) {
			i = l->end;
		} else if (!make(l, n) && !sequence(l) && !several(l) && !act(l, n) && !make_place(l, n) && !at_place(l, n)) {
			complain(l->word[0]);
			exit(1);
		}
	}
}

static void clean(void)
{
	for (int i = 0; i < VARS; i++) {
		weft_promise_unref(promise[i]);
		weft_resolver_drop(resolver[i]);
		promise[i] = NULL;
		resolver[i] = NULL;
	}
	while (weft_promise_paused_count() > 0)
		weft_promise_wakeup_paused();
	for (int i = 0; i < VARS; i++) {
		weft_condition_destroy(condition[i]);
		weft_mvar_destroy(mvar[i]);
		weft_semaphore_destroy(semaphore[i]);
		weft_bounded_destroy(bounded[i]);
		weft_switch_destroy(the_switch[i]);
		condition[i] = NULL;
		mvar[i] = NULL;
		semaphore[i] = NULL;
		bounded[i] = NULL;
		the_switch[i] = NULL;
	}
	/* Mutexes and pools are destroyed last, because continuations above may still have unlocked a mutex or returned an item.
	 */
	for (int i = 0; i < VARS; i++) {
		weft_mutex_destroy(mutex[i]);
		weft_pool_destroy(pool[i]);
		mutex[i] = NULL;
		pool[i] = NULL;
	}
}

static void check_destroyed(const char *where)
{
	for (size_t i = 0; i < value_count; i++) {
		if (values[i].destroyed != 1) {
			fprintf(
			    stderr, "play: %s: value %d was destroyed %d times\n", where, values[i].number, values[i].destroyed);
			bad = 1;
		}
	}
	if (contexts != contexts_destroyed) {
		fprintf(stderr, "play: %s: %zu of %zu ctx were destroyed\n", where, contexts_destroyed, contexts);
		bad = 1;
	}
	value_count = contexts = contexts_destroyed = 0;
}

static void run_all(void)
{
	for (size_t i = 0; i < line_count;) {
		size_t end = i + 1;
		while (end < line_count && !is(&lines[end], "program"))
			end++;
		char where[64];
		snprintf(where, sizeof where, "program %s", lines[i].word[1]);
		counter.value = 0;
		say("%s", where);
		run((int)i + 1, (int)end);
		say("end");
		bool was_quiet = quiet;
		quiet = cleaning = true;
		clean();
		weft_promise_cancel(NULL); /* records that no promise runs */
		quiet = was_quiet;
		cleaning = false;
		check_destroyed(where);
		i = end;
	}
}

/* ---- Reading the script ---- */

static void read_script(const char *path)
{
	static char text[1024];
	FILE *file = fopen(path, "r");
	int open = -1;
	if (!file) {
		complain(path);
		exit(1);
	}
	while (fgets(text, sizeof text, file)) {
		struct line l = {.words = 0};
		char *save = NULL, *copy = strdup(text);
		for (char *w = strtok_r(copy, " \n", &save); w && l.words < WORDS; w = strtok_r(NULL, " \n", &save))
			l.word[l.words++] = w;
		if (l.words == 0 || l.word[0] != copy || *copy == '#') {
			free(copy);
			continue;
		}
		if ((line_count & (line_count - 1)) ==
		    0) /* the size is doubled at each power of two, because each realloc() of a sanitizer copies */
			lines = realloc(lines, 2 * (line_count + 1) * sizeof *lines);
		l.end = open; /* the enclosing `fn`, until its own `end` is read */
		lines[line_count] = l;
		if (is(&l, "fn")) {
			open = (int)line_count;
		} else if (is(&l, "end")) {
			int fn = open;
			open = lines[fn].end;
			lines[fn].end = (int)line_count;
		}
		line_count++;
	}
	fclose(file);
}

static void forget_script(void)
{
	for (size_t i = 0; i < line_count; i++)
		free(lines[i].word[0]);
	free(lines);
}

/* ---- Failing allocations ---- */

static uint64_t allocations, fail_at;
static size_t live;
static bool fail_on;

static void *allocate(void *ctx, size_t bytes)
{
	allocations++;
	if (fail_at && (allocations == fail_at || (fail_on && allocations > fail_at)))
		return NULL;
	live++;
	return malloc(bytes);
}

static void release(void *ctx, void *memory, size_t bytes)
{
	live--;
	free(memory);
}

static void without_memory(void)
{
	uint64_t most;
	quiet = true;
	for (fail_at = 1;; fail_at++) {
		most = 0;
		for (int on = 0; on < 2; on++) {
			fail_on = on;
			allocations = 0;
			run_all();
			weft_promise_trim();
			if (live != 0)
				complain("memory was not released");
			if (allocations > most)
				most = allocations;
		}
		if (most < fail_at || bad)
			break;
	}
	printf("%" PRIu64 " allocations failed, one by one and together with all after them\n", fail_at - 1);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: play SCRIPT TRACE, or play --no-memory SCRIPT\n");
		return 2;
	}
	weft_promise_set_memory(&(struct weft_promise_memory){allocate, release, NULL});
	weft_promise_set_async_hook(hook, NULL);
	if (strcmp(argv[1], "--no-memory") == 0) {
		read_script(argv[2]);
		without_memory();
	} else {
		read_script(argv[1]);
		struct weft_record_options options = {.directory = argv[2], .overwrite = true, .mode = WEFT_RECORD_GROW};
		if (weft_start(&options) != WEFT_OK) {
			fprintf(stderr, "play: %s\n", weft_start_error());
			return 1;
		}
		run_all();
		weft_stop();
		weft_promise_trim();
		if (live != 0)
			complain("memory was not released");
	}
	forget_script();
	return bad;
}
