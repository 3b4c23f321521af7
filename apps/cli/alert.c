/* alert.c: weft watch: follows traces, and keeps what led to the first trouble.
 *
 * What was saved says by its name what for, so that a watcher that was killed and started again keeps nothing twice, and neither
 * forgets how much it has kept.  SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/check.h"
#include "analysis/explain.h"
#include "base/duration.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli.h"
#include "flight.h"
#include "trace/follow.h"

enum { TEXT = 1024, NAME = 32, HOUR_S = 3600, AGAIN_S = 60, SHARE = 10 };

/* Something that is wrong with a trace. */
struct trouble {
	uint64_t key;     /* the same as long as it is the same trouble */
	int64_t when_s;   /* of a request: UTC; a clock that was measured in a hurry is corrected later; else 0 */
	bool is_seen;     /* at this look */
	bool leaves;      /* it is about what happened, which the window forgets: it has not come again when it is seen again */
	int64_t since_ns; /* when it was first seen */
	int64_t until_ns; /* when it was last seen */
	bool is_told;
	time_t not_before; /* to be saved again, after that has failed */
};

struct followed {
	char *path;
	struct weft_follower *follower;
	struct weft_tally *tallies;   /* by rule */
	struct weft_checked *checked; /* by rule: at the last look */
	bool was_recorded, is_over, is_refused;
	WEFT_VEC(struct trouble) troubles;
};

struct options {
	const char *save, *exec;
	bool json;
	int64_t patience_ns, window_ns;
	uint64_t per_hour, most_bytes;
	struct weft_rule *rules;
	char **texts;
	int rule_count;
	bool finds; /* a rule is about findings: each of them is a trouble of its own */
};

struct watch {
	struct options options;
	WEFT_VEC(struct followed) all;
	bool has_looked;
	uint64_t found;
};

/* One look at a trace. */
struct look {
	struct watch *watch;
	struct followed *followed;
	const struct weft_model *model;
	bool is_over;
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* ---- What was kept ---- */

static uint64_t bytes_in(const char *path)
{
	uint64_t bytes = 0;
	DIR *dir = opendir(path);
	struct stat st;
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		if (fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_size;
	if (dir)
		closedir(dir);
	return bytes;
}

/* What is in the folder: how many of the last hour, how much of all, whether one begins so. */
static void count_kept(const char *folder, const char *begin, uint64_t *of_hour, uint64_t *bytes, bool *is_kept)
{
	DIR *dir = opendir(folder);
	char path[PATH_MAX];
	struct stat st;
	*of_hour = *bytes = 0;
	*is_kept = false;
	for (const struct dirent *entry; dir && (entry = readdir(dir));) {
		if (entry->d_name[0] == '.' || snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path ||
		    stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
			continue;
		*bytes += bytes_in(path);
		const size_t length = strlen(entry->d_name);
		if (length > 4 && !strcmp(entry->d_name + length - 4, ".tmp"))
			continue;
		*of_hour += st.st_mtime > time(NULL) - HOUR_S;
		*is_kept |= !strncmp(entry->d_name, begin, strlen(begin));
	}
	if (dir)
		closedir(dir);
}

/* ---- Telling ---- */

static void put_piece(void *file, const char *bytes, size_t size)
{
	fwrite(bytes, 1, size, file);
}

static void put_json_text(FILE *out, const char *name, const char *text)
{
	fprintf(out, ",\"%s\":\"", name);
	weft_json_text((struct weft_str){text, (uint32_t)strlen(text)}, put_piece, out);
	fputc('"', out);
}

/* One line. */
static void put_object(FILE *out, const struct look *look, const char *kind, const char *why, const char *saved, const char *next)
{
	fprintf(out, "{\"kind\":\"%s\"", kind);
	put_json_text(out, "trace", look->followed->path);
	put_json_text(out, "why", why);
	if (next)
		put_json_text(out, "next", next);
	if (saved)
		put_json_text(out, "saved", saved);
	else
		fputs(",\"saved\":null", out);
	fputs("}\n", out);
}

/* The command gets the object on its standard input; nobody waits for it. */
static void execute(
    const char *command, const struct look *look, const char *kind, const char *why, const char *saved, const char *next)
{
	const int fd = memfd_create("finding", MFD_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file) {
		cli_note("%s: %s", command, strerror(errno));
		if (fd >= 0)
			close(fd);
		return;
	}
	put_object(file, look, kind, why, saved, next);
	fflush(file);
	lseek(fd, 0, SEEK_SET);
	const pid_t child = fork();
	if (child == 0) {
		signal(SIGTERM, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		dup2(fd, STDIN_FILENO);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	if (child < 0)
		cli_note("%s: %s", command, strerror(errno));
	fclose(file);
}

/* The copy of all that there is by now, with the reason in it; -1, or the exit status of a failure that was told. */
static int save(const struct look *look, const char *path, const char *why)
{
	struct cli_directory directory;
	struct weft_trace *trace;
	struct weft_error err;
	struct weft_trace_edit edit = {.reason = why};
	/* What a flight recorder has kept is there only when one asks. */
	flight_ask(look->followed->path);
	if (weft_trace_open(&trace, look->followed->path, &err) < 0)
		return cli_fail_error(&err);
	/* Asked when all that the copy has is read: what runs then ran on. */
	edit.runs_on = weft_trace_is_recorded(look->followed->path);
	int exit = cli_directory_begin(&directory, path);
	if (exit < 0) {
		const int status = weft_trace_save(trace, &edit, cli_directory_write, &directory, &err);
		exit = cli_directory_end(&directory, status, &err) == CLI_FINE ? -1 : CLI_TROUBLE;
	}
	weft_trace_close(trace);
	return exit;
}

/* The name of the copy, of which the first part is that of all copies for this trouble. */
static size_t name_copy(char *out, size_t size, const struct look *look, uint64_t key, int64_t when_s)
{
	const struct weft_trace_info *info = look->model->trace;
	const char *base = strrchr(look->followed->path, '/');
	const uint64_t which[] = {key, info->pid, (uint64_t)when_s};
	char when[NAME];
	const time_t now = time(NULL);
	struct tm utc;
	strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &utc));
	const int begin = snprintf(out, size, "%s-%08" PRIx32 "-", base && base[1] ? base + 1 : look->followed->path,
	    (uint32_t)weft_hash_bytes((const char *)which, sizeof which));
	snprintf(out + begin, size - (size_t)begin, "%s", when);
	return (size_t)begin;
}

/* Keeps the trace and tells of it, unless that was done, or too much was. */
static void raise_alarm(const struct look *look, struct trouble *trouble, const char *kind, const char *why, const char *next)
{
	const struct options *o = &look->watch->options;
	char name[PATH_MAX / 2], begin[PATH_MAX / 2], path[PATH_MAX];
	uint64_t of_hour = 0, bytes = 0;
	bool is_kept = false;
	const char *saved = NULL;
	if (trouble->is_told || time(NULL) < trouble->not_before)
		return;
	if (o->save) {
		const int around = trouble->when_s != 0;
		for (int second = -around; second <= around && !is_kept; second++) {
			const size_t length = name_copy(name, sizeof name, look, trouble->key, trouble->when_s + second);
			snprintf(begin, sizeof begin, "%.*s", (int)length, name);
			count_kept(o->save, begin, &of_hour, &bytes, &is_kept);
		}
		name_copy(name, sizeof name, look, trouble->key, trouble->when_s);
		if (is_kept) {
			trouble->is_told = true;
			return;
		}
		snprintf(path, sizeof path, "%s/%s", o->save, name);
		if (of_hour >= o->per_hour)
			cli_note("%s: %" PRIu64 " were saved in this hour; this one is not: %s", o->save, of_hour, why);
		else if (bytes >= o->most_bytes)
			cli_note("%s: there are %" PRIu64 " MB; this one is not saved: %s", o->save, bytes >> 20, why);
		else if (save(look, path, why) >= 0) {
			trouble->not_before = time(NULL) + AGAIN_S;
			return;
		} else
			saved = path;
	}
	trouble->is_told = true;
	look->watch->found++;
	if (o->json)
		put_object(stdout, look, kind, why, saved, next);
	else {
		printf("%s: %s", look->followed->path, why);
		printf(saved ? "; saved as %s\n" : "\n", saved);
	}
	fflush(stdout);
	if (o->exec)
		execute(o->exec, look, kind, why, saved, next);
}

/* ---- Looking ---- */

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* The trouble with that key, which is seen now; NULL: there is no memory. */
static struct trouble *see(struct look *look, uint64_t key, int64_t when_s)
{
	struct followed *f = look->followed;
	for (size_t i = 0; i < f->troubles.count; i++)
		if (f->troubles.items[i].key == key && llabs(f->troubles.items[i].when_s - when_s) <= 1) {
			f->troubles.items[i].is_seen = true;
			f->troubles.items[i].until_ns = now_ns();
			return &f->troubles.items[i];
		}
	struct trouble *fresh = weft_vec_push(&f->troubles);
	if (fresh)
		*fresh =
		    (struct trouble){.key = key, .when_s = when_s, .is_seen = true, .since_ns = now_ns(), .until_ns = now_ns()};
	return fresh;
}

static uint64_t hash_words(const char *kind, const char *text)
{
	/* Numbers differ each time. */
	char plain[TEXT];
	size_t length = (size_t)snprintf(plain, sizeof plain, "%s ", kind);
	for (; *text && length + 1 < sizeof plain; text++)
		if (*text < '0' || *text > '9')
			plain[length++] = *text;
	return weft_hash_bytes(plain, length);
}

/* What waits while its program runs may come to its end, and is not certain; when the same one still waits after a while, it
 * counts. */
static bool counts(struct look *look, const struct weft_finding *f)
{
	const uint64_t which[] = {f->kind, (uint64_t)look->model->promises[f->promise].id};
	if (f->severity != WEFT_SEVERITY_ALARM || f->sure || look->is_over)
		return f->severity == WEFT_SEVERITY_ALARM && f->sure;
	const struct trouble *t = see(look, weft_hash_bytes((const char *)which, sizeof which), 0);
	return t && now_ns() - t->since_ns >= look->watch->options.patience_ns;
}

static void look_for_findings(struct look *look)
{
	struct weft_findings *findings;
	struct weft_error err;
	if (weft_explain(&findings, look->model, NULL, &err) < 0)
		return;
	for (size_t i = 0; i < findings->count; i++) {
		const struct weft_finding *f = &findings->findings[i];
		char who[TEXT / 2], why[TEXT];
		if (!counts(look, f))
			continue;
		weft_model_name(look->model, f->promise, who, sizeof who);
		struct trouble *t = see(look, hash_words(weft_finding_name(f->kind), who), 0);
		snprintf(why, sizeof why, "%s: %s", weft_finding_name(f->kind), f->title);
		if (!t)
			continue;
		t->leaves = true;
		raise_alarm(look, t, "finding", why, f->next);
	}
	weft_findings_destroy(findings);
}

static void look_for_rules(struct look *look)
{
	const struct options *o = &look->watch->options;
	struct followed *f = look->followed;
	const int64_t counted_ns = weft_follower_counted_ns(f->follower);
	for (int i = 0, counted = 0; i < o->rule_count; i++) {
		struct weft_checked *checked = &f->checked[i];
		struct weft_tally asked;
		const struct weft_tally *tally = weft_rule_tally(&asked, &o->rules[i]) ? &f->tallies[counted++] : NULL;
		struct weft_error err;
		char value[WEFT_DURATION_BYTES], why[TEXT];
		if (o->rules[i].measure == WEFT_MEASURE_FINDINGS && !o->rules[i].has_argument)
			continue;
		if (weft_rule_check_on(checked, look->model, &o->rules[i], tally, counted_ns, &err) < 0 ||
		    checked->outcome != WEFT_RULE_BROKEN)
			continue;
		if (o->rules[i].is_time)
			weft_duration_format(value, sizeof value, checked->value);
		else
			snprintf(value, sizeof value, "%" PRId64, checked->value);
		snprintf(why, sizeof why, "%s is broken: %s%s%s%s", o->texts[i], value, checked->why[0] ? " (" : "", checked->why,
		    checked->why[0] ? ")" : "");
		struct trouble *t = see(look, weft_hash_bytes(o->texts[i], strlen(o->texts[i])), 0);
		if (t)
			raise_alarm(look, t, "rule", why, NULL);
	}
}

static void look_for_request(struct look *look, const struct weft_event *e)
{
	char why[TEXT];
	if (e->op != WEFT_OP_DETAIL || e->kind != WEFT_DETAIL_SNAPSHOT)
		return;
	weft_utf8_copy(why, sizeof why, e->text);
	const int64_t utc_ns = e->time_ns + weft_trace_info(weft_follower_trace(look->followed->follower))->clock_origin_ns;
	struct trouble *t = see(look, weft_hash_bytes(why, strlen(why)), utc_ns / 1000000000);
	if (!t)
		return;
	t->leaves = true;
	raise_alarm(look, t, "snapshot", why, NULL);
}

/* What the program itself asks for: weft_snapshot(). */
static void look_for_requests(struct look *look)
{
	struct weft_trace *trace = weft_follower_trace(look->followed->follower);
	size_t count;
	const struct weft_event *events = weft_follower_snapshots(look->followed->follower, &count);
	for (size_t i = 0; i < count; i++)
		look_for_request(look, &events[i]);
	if (events)
		return;
	weft_trace_rewind(trace);
	while (weft_trace_next(trace, &events, &count) > 0)
		for (size_t i = 0; i < count; i++)
			look_for_request(look, &events[i]);
}

/* Some of its troubles are not told of yet: nothing new need happen for that. */
static bool waits_for_more(const struct followed *f)
{
	for (size_t i = 0; i < f->troubles.count; i++)
		if (!f->troubles.items[i].is_told)
			return true;
	return false;
}

/* What is over may come again. */
static void forget_over(struct followed *f)
{
	size_t kept = 0;
	for (size_t i = 0; i < f->troubles.count; i++) {
		const struct trouble *t = &f->troubles.items[i];
		const bool is_remembered = t->leaves && t->is_told && now_ns() - t->until_ns < HOUR_S * INT64_C(1000000000);
		if (t->is_seen || is_remembered)
			f->troubles.items[kept++] = *t;
	}
	f->troubles.count = kept;
}

/* Nothing is said of a trace that cannot be read yet. */
static void look_at(struct watch *w, struct followed *f)
{
	const bool is_recorded = weft_trace_is_recorded(f->path), is_there = access(f->path, F_OK) == 0;
	struct look look = {.watch = w, .followed = f, .is_over = !is_recorded};
	struct weft_error err;
	if (waits_for_more(f) || (f->was_recorded && !is_recorded))
		weft_follower_renew(f->follower);
	f->was_recorded = is_recorded;
	if (is_there && weft_follower_look(f->follower, &err) > 0) {
		look.model = weft_follower_model(f->follower);
		for (size_t i = 0; i < f->troubles.count; i++)
			f->troubles.items[i].is_seen = false;
		look_for_rules(&look);
		if (w->options.finds)
			look_for_findings(&look);
		look_for_requests(&look);
		forget_over(f);
	}
	f->is_over = is_there && !is_recorded && session_is_trace(f->path);
	if (f->is_over) {
		weft_follower_close(f->follower);
		f->follower = NULL;
	}
}

static void unfollow(struct followed *f)
{
	weft_follower_close(f->follower);
	weft_vec_free(&f->troubles);
	free(f->tallies);
	free(f->checked);
	free(f->path);
}

static struct followed *follow(struct watch *w, const char *path)
{
	const struct options *o = &w->options;
	struct weft_follower_options options = {
	    .model.keep_binds = true, .window_ns = o->window_ns, .window_events = CLI_WINDOW_EVENTS};
	struct weft_error err;
	for (size_t i = 0; i < w->all.count; i++)
		if (strcmp(w->all.items[i].path, path) == 0)
			return &w->all.items[i];
	struct followed f = {.path = strdup(path),
	    .tallies = calloc((size_t)o->rule_count + 1, sizeof *f.tallies),
	    .checked = calloc((size_t)o->rule_count + 1, sizeof *f.checked)};
	options.tallies = f.tallies;
	for (int i = 0; f.tallies && i < o->rule_count; i++)
		options.tally_count += weft_rule_tally(&f.tallies[options.tally_count], &o->rules[i]);
	struct followed *fresh =
	    f.path && f.tallies && f.checked && weft_follower_open(&f.follower, path, &options, &err) == WEFT_OK
		? weft_vec_push(&w->all)
		: NULL;
	if (fresh)
		*fresh = f;
	else
		unfollow(&f);
	return fresh;
}

/* What this user may not look at is told once, and looked at when he may. */
static void tell_refused(struct watch *w, const char *path)
{
	struct stat st;
	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode) || access(path, R_OK | X_OK) == 0)
		return;
	struct followed *f = errno == EACCES ? follow(w, path) : NULL;
	if (f && !f->is_refused)
		cli_note("%s: %s", path, strerror(EACCES));
	if (f)
		f->is_refused = true;
}

static void tell_refused_in(struct watch *w, const char *folder)
{
	char path[PATH_MAX];
	DIR *dir = opendir(folder);
	tell_refused(w, folder);
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		if (entry->d_name[0] != '.' && snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path)
			tell_refused(w, path);
	if (dir)
		closedir(dir);
}

/* What was saved may lie beside what is watched. */
static bool is_saved(const struct watch *w, const char *trace)
{
	char path[PATH_MAX];
	struct stat folder, of_trace;
	const char *name = strrchr(trace, '/');
	if (!w->options.save || !name || snprintf(path, sizeof path, "%.*s", (int)(name - trace), trace) >= (int)sizeof path)
		return false;
	return stat(w->options.save, &folder) == 0 && stat(path, &of_trace) == 0 && folder.st_dev == of_trace.st_dev &&
	       folder.st_ino == of_trace.st_ino;
}

static void drop_saved(const struct watch *w, session_paths *traces)
{
	size_t count = 0;
	for (size_t i = 0; i < traces->count; i++)
		if (is_saved(w, traces->items[i]))
			free(traces->items[i]);
		else
			traces->items[count++] = traces->items[i];
	traces->count = count;
}

/* Looks at what the operands name now; false: all of it has ended. */
static bool look_at_all(struct watch *w, char **paths, int count)
{
	bool goes_on = false;
	for (int i = 0; i < count && !stopped; i++) {
		struct session session = {0};
		const bool is_there = access(paths[i], F_OK) == 0,
			   is_several = session_read_all(&session, paths[i]) && !session_is_trace(paths[i]) && is_there;
		struct followed *f = is_several ? NULL : follow(w, paths[i]);
		size_t found = !is_several && is_there;
		drop_saved(w, &session.traces);
		session_drop_copies(&session.traces);
		for (size_t k = 0; k < session.traces.count; k++)
			found += follow(w, session.traces.items[k]) != NULL;
		if (!found && !w->has_looked)
			cli_note("%s: no program records there yet", paths[i]);
		goes_on |= is_several || (f && !f->is_over);
		tell_refused_in(w, paths[i]);
		session_free(&session);
	}
	for (size_t i = 0; i < w->all.count && !stopped; i++)
		if (!w->all.items[i].is_over)
			look_at(w, &w->all.items[i]);
	w->has_looked = true;
	return goes_on && !stopped;
}

/* ---- The verb ---- */

static void nap(int64_t ns)
{
	const struct timespec time = {ns / 1000000000, ns % 1000000000};
	nanosleep(&time, NULL);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Takes the rules from the end of the operands. */
static int take_rules(struct options *o, struct cli_args *args)
{
	struct weft_error err;
	int paths = 0;
	for (; paths < args->argc && (paths == 0 || !strpbrk(args->argv[paths], "<>=")); paths++)
		;
	o->rule_count = args->argc - paths;
	o->texts = args->argv + paths;
	o->rules = calloc((size_t)o->rule_count + 1, sizeof *o->rules);
	if (!o->rules)
		return cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	o->finds = o->rule_count == 0;
	for (int i = 0; i < o->rule_count; i++) {
		if (weft_rule_parse(&o->rules[i], o->texts[i], &err) < 0)
			return cli_fail("watch: %s", err.what);
		o->finds |= o->rules[i].measure == WEFT_MEASURE_FINDINGS && !o->rules[i].has_argument;
	}
	args->argc = paths;
	return -1;
}

static int prepare_folder(const char *path)
{
	if (path && mkdir(path, 0700) != 0 && errno != EEXIST)
		return cli_fail("%s: %s", path, strerror(errno));
	return path && access(path, W_OK | X_OK) != 0 ? cli_fail("%s: %s", path, strerror(errno)) : -1;
}

/* Meanwhile what comes is counted: who rests for long would find a ring overwritten. */
static void rest(struct watch *w, int64_t rest_ns, int64_t every_ns)
{
	const int64_t until_ns = now_ns() + rest_ns;
	struct weft_error err;
	for (int64_t left_ns = rest_ns; left_ns > 0 && !stopped; left_ns = until_ns - now_ns()) {
		nap(weft_min_ns(left_ns, every_ns));
		for (size_t i = 0; i < w->all.count && left_ns > every_ns && !stopped; i++)
			if (!w->all.items[i].is_over)
				(void)weft_follower_skip(w->all.items[i].follower, &err); /* what is wrong is told by the look */
	}
}

static void go_on(struct watch *w, struct cli_args *args, int64_t every_ns)
{
	const struct sigaction action = {.sa_handler = stop};
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	for (bool more = true; more && cli_stdout_ok();) {
		const int64_t began_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		more = look_at_all(w, args->argv, args->argc);
		/* A tenth of a processor at most, however large the rings are. */
		const int64_t rest_ns = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns) * (SHARE - 1);
		if (more)
			rest(w, weft_max_ns(rest_ns, every_ns), every_ns);
	}
	while (!stopped && waitpid(-1, NULL, 0) > 0)
		;
}

int cli_watch(struct cli_args *args)
{
	struct watch w = {
	    .options = {.patience_ns = 10000000000, .window_ns = CLI_WINDOW_NS, .per_hour = 6, .most_bytes = UINT64_C(1) << 30}};
	const char *per_hour = NULL, *most = NULL;
	int64_t every_ns = 500000000;
	const struct cli_option options[] = {
	    {"save", 0, CLI_TEXT, &w.options.save, "DIR", "saves the trace there, a directory for each trouble; DIR is created"},
	    {"exec", 0, CLI_TEXT, &w.options.exec, "COMMAND",
		"runs this in a shell, with the trouble as a JSON object on its standard input"},
	    {"per-hour", 0, CLI_TEXT, &per_hour, "N", "saves at most so many an hour (6)"},
	    {"most", 0, CLI_TEXT, &most, "SIZE", "saves nothing more when there is as much in DIR, as 500M (1G)"},
	    {"every", 0, CLI_TIME, &every_ns, "TIME",
		"looks so often (500 ms), or less often, so that it takes a tenth of a processor"},
	    {"patience", 0, CLI_TIME, &w.options.patience_ns, "TIME",
		"what waits while its program runs is trouble when it has done so for that long (10 s)"},
	    {"window", 0, CLI_TIME, &w.options.window_ns, "TIME",
		"looks for findings in the last TIME (10 s), of a busy program in its last 262,144 events"},
	    CLI_OPTION_JSON(&w.options.json),
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit < 0 && per_hour && !cli_parse_number(per_hour, false, &w.options.per_hour))
		exit = cli_fail("watch: --per-hour=%s is not a number", per_hour);
	if (exit < 0 && most && !cli_parse_number(most, true, &w.options.most_bytes))
		exit =
		    cli_fail("watch: --most=%s is not a size; write a number of bytes, perhaps with K, M or G behind it", most);
	if (exit < 0)
		exit = take_rules(&w.options, args);
	if (exit < 0)
		exit = prepare_folder(w.options.save);
	if (exit < 0) {
		go_on(&w, args, every_ns);
		exit = cli_finish(w.found ? CLI_FOUND : CLI_FINE);
	}
	for (size_t i = 0; i < w.all.count; i++)
		unfollow(&w.all.items[i]);
	weft_vec_free(&w.all);
	free(w.options.rules);
	return exit;
}
