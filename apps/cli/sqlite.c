/* sqlite.c: implements sqlite.h.
 *
 * All rows are written in one transaction without a journal, because the file gets its final name only when it is complete.
 * Indices are created last, because that is several times faster than updating them for each row.
 * SPDX-License-Identifier: ISC */
#include "apps/cli/sqlite.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <string.h>

#include "analysis/findings/explain.h"
#include "analysis/queries/type_table.h"
#include "base/utf8.h"
#include "model/kernel.h"

/* Pragmas for the schema version, and for the application id "WEFT", by which file(1) recognizes the format. */
#define BEGIN                                                                                                                    \
	"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"                                  \
	"PRAGMA application_id = 0x57454654; PRAGMA user_version = 1; BEGIN;"

/* X(NAME, "name", "columns", number of columns) lists a table; docs/sql.md explains the columns. */
#define TABLES(X)                                                                                                                \
	X(META, "meta", "key TEXT PRIMARY KEY, value", 2)                                                                        \
	X(THREAD, "thread", "number INTEGER PRIMARY KEY, name TEXT, tid INTEGER, process TEXT, pid INTEGER", 5)                  \
	X(SITE, "site", "number INTEGER PRIMARY KEY, file TEXT, line INTEGER, function TEXT, library TEXT", 5)                   \
	X(GROUP, "sort", "number INTEGER PRIMARY KEY, name TEXT NOT NULL", 2)                                                    \
	X(PROMISE, "promise",                                                                                                    \
	    "number INTEGER PRIMARY KEY, id INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, sort INTEGER, "            \
	    "start_ns INTEGER NOT NULL, end_ns INTEGER, end TEXT NOT NULL, error TEXT, became INTEGER, created_by INTEGER, "     \
	    "track INTEGER, site INTEGER, thread INTEGER, row INTEGER, runs INTEGER NOT NULL, ran_ns INTEGER NOT NULL, "         \
	    "off_ns INTEGER",                                                                                                    \
	    18)                                                                                                                  \
	X(RUN, "run", "promise INTEGER NOT NULL, thread INTEGER, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL", 4)         \
	X(LINK, "link", "op TEXT NOT NULL, time_ns INTEGER NOT NULL, a INTEGER NOT NULL, b INTEGER NOT NULL, thread INTEGER", 5) \
	X(WAIT, "wait", "promise INTEGER NOT NULL, input INTEGER NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER", 4)        \
	X(LABEL, "label", "promise INTEGER NOT NULL, time_ns INTEGER NOT NULL, text TEXT NOT NULL", 3)                           \
	X(COUNTER, "counter", "number INTEGER PRIMARY KEY, name TEXT NOT NULL", 2)                                               \
	X(SAMPLE, "sample", "counter INTEGER NOT NULL, time_ns INTEGER NOT NULL, value INTEGER NOT NULL", 3)                     \
	X(INTERVAL, "stretch",                                                                                                   \
	    "what TEXT NOT NULL, thread INTEGER, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, why TEXT", 5)               \
	X(OFF, "off",                                                                                                            \
	    "tid INTEGER NOT NULL, start_ns INTEGER NOT NULL, ready_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, "              \
	    "why TEXT NOT NULL, call TEXT, taken_by INTEGER, woken_by INTEGER",                                                  \
	    8)                                                                                                                   \
	X(OS_THREAD, "os_thread", "tid INTEGER PRIMARY KEY, pid INTEGER, name TEXT", 3)                                          \
	X(FINDING, "finding",                                                                                                    \
	    "number INTEGER PRIMARY KEY, kind TEXT NOT NULL, severity TEXT NOT NULL, sure INTEGER NOT NULL, doubt TEXT, "        \
	    "promise INTEGER, root INTEGER, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, title TEXT NOT NULL, next TEXT", \
	    11)                                                                                                                  \
	X(EVIDENCE, "evidence", "finding INTEGER NOT NULL, time_ns INTEGER, promise INTEGER, text TEXT NOT NULL", 4)

enum table {
#define TABLE_ENUM(NAME, name, columns, count) NAME,
	TABLES(TABLE_ENUM)
#undef TABLE_ENUM
	    TABLE_COUNT
};

static const char *const tables[TABLE_COUNT][2] = {
#define TABLE_TEXT(NAME, name, columns, count) {name, columns},
    TABLES(TABLE_TEXT)
#undef TABLE_TEXT
};

static const int column_counts[TABLE_COUNT] = {
#define TABLE_COLUMNS(NAME, name, columns, count) count,
    TABLES(TABLE_COLUMNS)
#undef TABLE_COLUMNS
};

static const char views[] =
    "CREATE INDEX promise_id ON promise(id);"
    "CREATE INDEX promise_start ON promise(start_ns);"
    "CREATE INDEX promise_name ON promise(name, kind);"
    "CREATE INDEX promise_sort ON promise(sort);"
    "CREATE INDEX run_promise ON run(promise, start_ns);"
    "CREATE INDEX run_start ON run(start_ns);"
    "CREATE INDEX link_a ON link(a, op, time_ns);"
    "CREATE INDEX link_b ON link(b, op, time_ns);"
    "CREATE INDEX wait_promise ON wait(promise, start_ns);"
    "CREATE INDEX wait_input ON wait(input, start_ns);"
    "CREATE INDEX label_promise ON label(promise, time_ns);"
    "CREATE INDEX sample_time ON sample(counter, time_ns);"
    "CREATE VIEW life AS SELECT p.id, p.kind, p.name, p.end, p.error, p.start_ns / 1e6 AS start_ms, "
    "(coalesce(p.end_ns, m.value) - p.start_ns) / 1e6 AS life_ms, p.ran_ns / 1e6 AS ran_ms, "
    "s.file || ':' || s.line AS site, p.number FROM promise p LEFT JOIN site s ON s.number = p.site "
    "JOIN meta m ON m.key = 'end_ns' WHERE p.id >= 0;"
    "CREATE VIEW waited AS SELECT a.id AS id, a.name AS name, b.id AS for_id, b.name AS for_name, w.start_ns / 1e6 AS start_ms, "
    "(coalesce(w.end_ns, m.value) - w.start_ns) / 1e6 AS ms, w.end_ns IS NULL AS still FROM wait w JOIN promise a ON a.number = "
    "w.promise "
    "JOIN promise b ON b.number = w.input JOIN meta m ON m.key = 'end_ns';"
    "COMMIT;";

struct writer {
	const struct weft_model *model;
	sqlite3 *db;
	sqlite3_stmt *inserts[TABLE_COUNT];
	sqlite3_stmt *row; /* prepared statement that inserts the current row */
	int column;        /* number of the row's next column, from 1 */
	int status;        /* SQLITE_OK, or the code of the first error */
	WEFT_VEC(char) text;
};

/* ---- Rows ---- */

static void note_status(struct writer *w, int status)
{
	if (w->status == SQLITE_OK && status != SQLITE_OK)
		w->status = status;
}

static void begin_row(struct writer *w, enum table table)
{
	w->row = w->inserts[table];
	w->column = 1;
}

static void bind_int(struct writer *w, int64_t value)
{
	note_status(w, sqlite3_bind_int64(w->row, w->column++, value));
}

static void bind_null(struct writer *w)
{
	w->column++; /* the column stays NULL, because all bindings are cleared after each row */
}

static void bind_int_or_null(struct writer *w, bool has, int64_t value)
{
	if (has)
		bind_int(w, value);
	else
		bind_null(w);
}

static void bind_index(struct writer *w, uint32_t promise)
{
	bind_int_or_null(w, promise != WEFT_NONE, promise);
}

static void bind_cstring(struct writer *w, const char *text)
{
	note_status(w, text ? sqlite3_bind_text(w->row, w->column, text, -1, SQLITE_TRANSIENT) : SQLITE_OK);
	w->column++;
}

/* Binds a text as valid UTF-8; an empty text becomes NULL. */
static void bind_text(struct writer *w, struct weft_str text)
{
	/* Maximum size, because each invalid byte becomes U+FFFD, which has three bytes. */
	const size_t capacity = (size_t)text.len * 3 + 1;
	w->text.count = 0;
	if (!text.len || !weft_vec_reserve(&w->text, capacity)) {
		note_status(w, text.len ? SQLITE_NOMEM : SQLITE_OK);
		bind_null(w);
		return;
	}
	weft_utf8_copy(w->text.items, capacity, text);
	bind_cstring(w, w->text.items);
}

static void end_row(struct writer *w)
{
	const int status = w->status == SQLITE_OK ? sqlite3_step(w->row) : SQLITE_DONE;
	note_status(w, status == SQLITE_DONE ? SQLITE_OK : status);
	sqlite3_reset(w->row);
	sqlite3_clear_bindings(w->row);
}

static void insert_meta(struct writer *w, const char *key, struct weft_str text, bool is_number, int64_t number)
{
	begin_row(w, META);
	bind_cstring(w, key);
	if (is_number)
		bind_int(w, number);
	else
		bind_text(w, text);
	end_row(w);
}

/* ---- The trace ---- */

static void insert_trace(struct writer *w)
{
	const struct weft_trace_info *info = w->model->trace;
	const struct weft_str none = {"", 0};
	insert_meta(w, "format", (struct weft_str){info->format, (uint32_t)strlen(info->format)}, false, 0);
	insert_meta(w, "host", info->host, false, 0);
	insert_meta(w, "process", info->process, false, 0);
	insert_meta(w, "command", info->command, false, 0);
	if (info->has_origin)
		insert_meta(
		    w, "start_wall_ns", none, true, (int64_t)((uint64_t)info->clock_origin_ns + (uint64_t)w->model->start_ns));
	insert_meta(w, "end_ns", none, true, w->model->end_ns);
	insert_meta(w, "events", none, true, (int64_t)w->model->events);
	insert_meta(w, "lost", none, true, (int64_t)cli_count_lost(info));
	insert_meta(w, "skipped", none, true, (int64_t)info->skipped_count);
	for (size_t i = 0; i < info->stream_count; i++) {
		const uint32_t part = info->streams[i].part;
		begin_row(w, THREAD);
		bind_int(w, (int64_t)i);
		bind_text(w, info->streams[i].name);
		bind_int(w, info->streams[i].host ? weft_tid_at((uint32_t)info->streams[i].tid, info->streams[i].host)
						  : (int64_t)info->streams[i].tid);
		bind_text(w, part < info->part_count ? info->parts[part].process : info->process);
		bind_int(w, (int64_t)(part < info->part_count ? info->parts[part].pid : info->pid));
		end_row(w);
	}
	for (size_t i = 0; i < info->site_count && w->status == SQLITE_OK; i++) {
		const struct weft_site *site = &info->sites[i];
		begin_row(w, SITE);
		bind_int(w, (int64_t)i);
		bind_text(w, site->file);
		bind_int_or_null(w, site->line, site->line);
		bind_text(w, site->function);
		bind_text(w, weft_site_library(site));
		end_row(w);
	}
}

static void insert_groups(struct writer *w, const struct weft_table *groups)
{
	char name[192];
	for (size_t i = 0; i < groups->count && w->status == SQLITE_OK; i++) {
		begin_row(w, GROUP);
		bind_int(w, groups->rows[i].type);
		bind_cstring(w, weft_table_name(w->model, &groups->rows[i], name));
		end_row(w);
	}
}

static void insert_promise(struct writer *w, const struct weft_layout *layout, const struct weft_table *groups, uint32_t number)
{
	const struct weft_model *m = w->model;
	const struct weft_promise *p = &m->promises[number];
	const uint32_t group = groups->type_of[number], track = layout->track_of ? layout->track_of[number] : WEFT_NONE;
	char name[512];
	int64_t ran_ns = 0;
	for (uint32_t r = p->runs; r < p[1].runs; r++)
		ran_ns += m->runs[r].end_ns - m->runs[r].start_ns;
	weft_model_name(m, number, name, sizeof name);
	begin_row(w, PROMISE);
	bind_int(w, number);
	bind_int(w, p->id);
	bind_cstring(w, weft_model_kind_name(m, p->kind));
	bind_cstring(w, name);
	bind_index(w, group);
	bind_int(w, p->start_ns);
	bind_int_or_null(w, p->end != WEFT_END_PENDING, p->end_ns);
	bind_cstring(w, cli_end_names[p->end]);
	bind_text(w, p->failure != WEFT_NONE ? weft_model_text(m, p->failure) : (struct weft_str){"", 0});
	bind_index(w, p->end == WEFT_END_BECAME ? p->became : WEFT_NONE);
	bind_index(w, p->created_by);
	bind_index(w, track != WEFT_NONE ? layout->tracks[track].actor : WEFT_NONE);
	bind_index(w, p->site);
	bind_int(w, p->stream);
	bind_index(w, layout->rows[number]);
	bind_int(w, p[1].runs - p->runs);
	bind_int(w, ran_ns);
	bind_int_or_null(w, m->kernel, m->kernel ? weft_kernel_promise_off_ns(m, number, p->start_ns, p->end_ns) : 0);
	end_row(w);
	for (uint32_t r = p->runs; r < p[1].runs; r++) {
		begin_row(w, RUN);
		bind_int(w, number);
		bind_int(w, m->run_streams ? m->run_streams[r] : 0);
		bind_int(w, m->runs[r].start_ns);
		bind_int(w, m->runs[r].end_ns);
		end_row(w);
	}
	for (uint32_t l = p->labels; l < p[1].labels; l++) {
		if (m->labels[l].is_counter)
			continue;
		begin_row(w, LABEL);
		bind_int(w, number);
		bind_int(w, m->labels[l].time_ns);
		bind_text(w, weft_model_text(m, m->labels[l].text));
		if (weft_model_text(m, m->labels[l].text).len)
			end_row(w);
	}
}

/* Writes the links.  An await ends when the awaited promise ends, or with an event that ends the wait. */
static void insert_links(struct writer *w)
{
	const struct weft_model *m = w->model;
	for (size_t i = 0; i < m->link_count && w->status == SQLITE_OK; i++) {
		const struct weft_link *link = &m->links[i];
		const struct weft_promise *to = &m->promises[link->to];
		begin_row(w, LINK);
		bind_cstring(w, cli_link_names[link->kind]);
		bind_int(w, link->time_ns);
		bind_int(w, link->from);
		bind_int(w, link->to);
		bind_int(w, link->stream);
		end_row(w);
		if (link->kind != WEFT_LINK_AWAIT)
			continue;
		const int64_t called_off_ns = weft_model_await_end(m, link),
			      end_ns = to->end == WEFT_END_PENDING || called_off_ns < to->end_ns ? called_off_ns : to->end_ns;
		begin_row(w, WAIT);
		bind_int(w, link->from);
		bind_int(w, link->to);
		bind_int(w, link->time_ns);
		bind_int_or_null(w, end_ns != INT64_MAX, end_ns < link->time_ns ? link->time_ns : end_ns);
		end_row(w);
	}
}

static void insert_intervals(struct writer *w, const char *what, const struct weft_interval *intervals, size_t count)
{
	for (size_t i = 0; i < count && w->status == SQLITE_OK; i++) {
		begin_row(w, INTERVAL);
		bind_cstring(w, what);
		bind_int(w, intervals[i].stream);
		bind_int(w, intervals[i].start_ns);
		bind_int(w, intervals[i].end_ns);
		bind_text(w, weft_model_text(w->model, intervals[i].text));
		end_row(w);
	}
}

static void insert_counters(struct writer *w)
{
	const struct weft_model *m = w->model;
	for (size_t i = 0; i < m->counter_count && w->status == SQLITE_OK; i++) {
		char name[512];
		weft_utf8_copy(name, sizeof name, m->counters[i].name);
		begin_row(w, COUNTER);
		bind_int(w, (int64_t)i);
		bind_cstring(w, name);
		end_row(w);
		for (size_t s = 0; s < m->counters[i].count && w->status == SQLITE_OK; s++) {
			begin_row(w, SAMPLE);
			bind_int(w, (int64_t)i);
			bind_int(w, m->counters[i].samples[s].time_ns);
			bind_int(w, m->counters[i].samples[s].value);
			end_row(w);
		}
	}
}

static void insert_kernel(struct writer *w)
{
	static const char *const whys[] = {
	    [WEFT_OFF_PREEMPTED] = "preempted", [WEFT_OFF_BLOCKED] = "blocked", [WEFT_OFF_DISK] = "disk"};
	const struct weft_kernel *k = w->model->kernel;
	for (size_t i = 0; k && i < k->thread_count && w->status == SQLITE_OK; i++) {
		begin_row(w, OS_THREAD);
		bind_int(w, k->threads[i].tid);
		bind_int_or_null(w, k->threads[i].pid, k->threads[i].pid);
		bind_text(w, k->threads[i].name);
		end_row(w);
		for (size_t o = k->threads[i].offs; o < k->threads[i + 1].offs && w->status == SQLITE_OK; o++) {
			const struct weft_off_cpu *off = &k->offs[o];
			begin_row(w, OFF);
			bind_int(w, k->threads[i].tid);
			bind_int(w, off->start_ns);
			bind_int(w, off->ready_ns);
			bind_int(w, off->end_ns);
			bind_cstring(w, off->why < sizeof whys / sizeof *whys ? whys[off->why] : "unknown");
			bind_cstring(w, weft_kernel_call_name(off->call));
			bind_int_or_null(w, off->by != WEFT_NO_TID, off->by);
			bind_int_or_null(w, off->woken_by != WEFT_NO_TID, off->woken_by);
			end_row(w);
		}
	}
}

static void insert_findings(struct writer *w, const struct weft_findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct weft_finding *f = &findings->findings[i];
		begin_row(w, FINDING);
		bind_int(w, (int64_t)i + 1);
		bind_cstring(w, weft_finding_name(f->kind));
		bind_cstring(w, weft_severity_name(f->severity));
		bind_int(w, f->sure);
		bind_cstring(w, f->doubt);
		bind_index(w, f->promise);
		bind_index(w, f->root);
		bind_int(w, f->start_ns);
		bind_int(w, f->end_ns);
		bind_cstring(w, f->title);
		bind_cstring(w, f->next);
		end_row(w);
		for (size_t e = 0; e < f->evidence_count; e++) {
			begin_row(w, EVIDENCE);
			bind_int(w, (int64_t)i + 1);
			bind_int_or_null(w, f->evidence[e].time_ns != WEFT_NO_TIME, f->evidence[e].time_ns);
			bind_index(w, f->evidence[e].promise);
			bind_cstring(w, f->evidence[e].text);
			end_row(w);
		}
	}
}

/* ---- The file ---- */

static void create_tables(struct writer *w)
{
	char sql[1024];
	for (int i = 0; i < TABLE_COUNT && w->status == SQLITE_OK; i++) {
		snprintf(sql, sizeof sql, "CREATE TABLE %s(%s)", tables[i][0], tables[i][1]);
		note_status(w, sqlite3_exec(w->db, sql, NULL, NULL, NULL));
		int length = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(?", tables[i][0]);
		for (int column = 1; column < column_counts[i]; column++)
			length += snprintf(sql + length, sizeof sql - (size_t)length, ",?");
		snprintf(sql + length, sizeof sql - (size_t)length, ")");
		if (w->status == SQLITE_OK)
			note_status(w, sqlite3_prepare_v2(w->db, sql, -1, &w->inserts[i], NULL));
	}
}

static void fill_database(
    struct writer *w, const struct weft_layout *layout, const struct weft_table *groups, const struct weft_findings *findings)
{
	note_status(w, sqlite3_exec(w->db, BEGIN, NULL, NULL, NULL));
	create_tables(w);
	if (w->status == SQLITE_OK) {
		insert_trace(w);
		insert_groups(w, groups);
		for (uint32_t i = 0; i < w->model->promise_count && w->status == SQLITE_OK; i++)
			insert_promise(w, layout, groups, i);
		insert_links(w);
		insert_intervals(w, "pause", w->model->pauses, w->model->pause_count);
		insert_intervals(w, "sleep", w->model->sleeps, w->model->sleep_count);
		insert_counters(w);
		insert_kernel(w);
		insert_findings(w, findings);
		note_status(w, sqlite3_exec(w->db, views, NULL, NULL, NULL));
	}
	for (int i = 0; i < TABLE_COUNT; i++)
		sqlite3_finalize(w->inserts[i]);
}

static int write_database(const struct weft_model *model, const struct weft_layout *layout, const struct weft_table *groups,
    const struct weft_findings *findings, const char *out)
{
	struct writer w = {.model = model};
	struct weft_error err;
	struct cli_file file;
	int exit = cli_file_begin(&file, out);
	if (exit >= 0)
		return exit;
	int status = WEFT_OK;
	if (!file.temporary) {
		status = weft_error_set(&err, WEFT_EINVAL, "a database needs a regular file");
	} else {
		cli_progress_begin("writing", file.name);
		note_status(&w, sqlite3_open(file.temporary, &w.db));
		if (w.status == SQLITE_OK)
			fill_database(&w, layout, groups, findings);
		cli_progress_end();
		if (w.status != SQLITE_OK)
			status = weft_error_set(&err, WEFT_EIO, "%s", sqlite3_errstr(w.status));
		if (sqlite3_close(w.db) != SQLITE_OK && status == WEFT_OK)
			status = weft_error_set(&err, WEFT_EIO, "cannot close the database");
	}
	weft_vec_free(&w.text);
	return cli_file_end(&file, status, &err);
}

static int find_groups(struct weft_table **out, const struct weft_model *model, struct weft_error *err)
{
	struct weft_promise_info *facts = NULL;
	int status = weft_promise_info_create(&facts, model, err);
	if (status == WEFT_OK)
		status = weft_table_create(out, facts, INT64_MIN, INT64_MAX, err);
	weft_promise_info_destroy(facts);
	return status;
}

int cli_write_sqlite(const struct weft_model *model, cli_create_layout_fn *create_layout, const char *out)
{
	struct weft_findings *findings = NULL;
	struct weft_table *groups = NULL;
	struct weft_error err;
	int status = weft_explain(&findings, model, NULL, &err);
	if (status == WEFT_OK)
		status = find_groups(&groups, model, &err);
	struct weft_layout *layout = status == WEFT_OK ? create_layout(model) : NULL;
	const int exit = status < 0 ? cli_fail_error(&err)
			 : layout   ? write_database(model, layout, groups, findings, out)
				    : CLI_ERROR;
	weft_layout_destroy(layout);
	weft_table_destroy(groups);
	weft_findings_destroy(findings);
	return exit;
}
