/* otlp.c: spans of a file, and of traces that are followed (otlp.h).
 *
 * Each followed trace has a follower of its own, whose models have the events since the last update.  So each promise that ends
 * is in one model, however seldom rules and findings are checked.  SPDX-License-Identifier: ISC */
#include "otlp.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sort.h"
#include "export/otlp.h"
#include "model/follower.h"
#include "otlp_sender.h"

/* ---- Findings ---- */

static struct weft_otlp_finding make_finding(
    const struct weft_model *m, const struct weft_finding *f, const struct weft_otlp_ids *about)
{
	return (struct weft_otlp_finding){.about = *about,
	    .utc_ns = (int64_t)((uint64_t)f->end_ns + (uint64_t)m->start_ns +
				(m->trace->has_origin ? (uint64_t)m->trace->clock_origin_ns : 0)),
	    .kind = weft_finding_name(f->kind),
	    .title = f->title,
	    .next = f->next,
	    .is_certain = f->sure};
}

/* ---- Files ---- */

static int write_batch(void *file, const void *bytes, size_t size, size_t spans)
{
	(void)spans;
	return cli_file_write(file, bytes, size);
}

/* Makes the findings of a model; *out is freed by the caller. */
static int make_findings(
    struct weft_otlp_finding **out, const struct weft_model *m, const struct weft_findings *findings, struct weft_error *err)
{
	uint32_t *promises = calloc(findings->count + 1, sizeof *promises);
	struct weft_otlp_ids *ids = calloc(findings->count + 1, sizeof *ids);
	struct weft_otlp_finding *all = calloc(findings->count + 1, sizeof *all);
	const bool ok = promises && ids && all;
	int status = ok ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	for (size_t i = 0; ok && i < findings->count; i++)
		promises[i] = findings->findings[i].promise;
	if (ok)
		status = weft_otlp_find_ids(m, NULL, promises, findings->count, ids, err);
	for (size_t i = 0; ok && status == WEFT_OK && i < findings->count; i++)
		all[i] = make_finding(m, &findings->findings[i], &ids[i]);
	if (status == WEFT_OK) {
		weft_sort(all, findings->count, sizeof *all, weft_otlp_compare_findings);
		*out = all;
	} else {
		free(all);
	}
	free(promises);
	free(ids);
	return status;
}

int cli_otlp_write(const struct cli_input *input, const char *out, struct weft_losses *losses)
{
	struct weft_otlp_options options = {.version = WEFT_VERSION, .after_utc_ns = INT64_MIN};
	struct weft_otlp_finding *list = NULL;
	struct weft_otlp_stats stats = {0};
	struct weft_findings *findings;
	struct weft_error err;
	struct cli_file file;
	if (weft_explain(&findings, input->model, NULL, &err) < 0)
		return cli_fail_error(&err);
	int exit = cli_file_begin(&file, out);
	if (exit < 0) {
		int status = make_findings(&list, input->model, findings, &err);
		options.findings = list;
		options.finding_count = findings->count;
		cli_progress_begin("writing", file.name);
		if (status == WEFT_OK)
			status = weft_export_otlp(input->model, &options, write_batch, &file, losses, &stats, &err);
		cli_progress_end();
		exit = cli_file_end(&file, status, &err);
		if (exit == CLI_OK)
			cli_note("%s: %llu spans", file.name, (unsigned long long)stats.spans);
	}
	free(list);
	weft_findings_destroy(findings);
	return exit;
}

/* ---- Followed traces ---- */

/* A finding that waits for the next update; it owns its texts. */
struct waiting {
	struct weft_otlp_finding finding;
	char *texts;
};

struct source {
	char *path;
	struct weft_follower *follower;
	struct weft_otlp_memory memory;
	uint64_t restarts;
	int64_t sent_utc_ns; /* latest end of a span that was queued; INT64_MIN if there was none */
	WEFT_VEC(struct waiting) waiting;
	WEFT_VEC(uint64_t) known; /* keys of the findings that were added */
};

struct cli_otlp {
	struct cli_otlp_sender *sender;
	WEFT_VEC(struct source) sources;
	uint64_t findings_lost, restarts;
};

enum { MAX_KNOWN = 4096 };

static void free_source(struct source *s)
{
	weft_follower_close(s->follower);
	for (size_t i = 0; i < s->waiting.count; i++)
		free(s->waiting.items[i].texts);
	weft_vec_free(&s->waiting);
	weft_vec_free(&s->known);
	weft_vec_free(&s->memory.all);
	free(s->path);
}

int cli_otlp_start(struct cli_otlp **out, const char *verb, const char *url)
{
	struct cli_otlp *otlp = calloc(1, sizeof *otlp);
	if (!otlp)
		return cli_fail_verb(verb, "%s", weft_status_string(WEFT_ENOMEM));
	const int exit = cli_otlp_sender_start(&otlp->sender, verb, url);
	if (exit < 0)
		*out = otlp;
	else
		free(otlp);
	return exit;
}

void cli_otlp_stop(struct cli_otlp *otlp)
{
	if (!otlp)
		return;
	if (otlp->findings_lost > 0)
		cli_note("%llu findings were not sent: out of memory", (unsigned long long)otlp->findings_lost);
	if (otlp->restarts > 0)
		cli_note("rings were overwritten %llu times before they were read; the spans of these times are missing",
		    (unsigned long long)otlp->restarts);
	cli_otlp_sender_stop(otlp->sender);
	for (size_t i = 0; i < otlp->sources.count; i++)
		free_source(&otlp->sources.items[i]);
	weft_vec_free(&otlp->sources);
	free(otlp);
}

/* Returns the source of a path, which is added if it is new; NULL without memory. */
static struct source *find_source(struct cli_otlp *otlp, const char *path)
{
	const struct weft_follower_options options = {.model.keep_binds = true};
	struct weft_error err;
	for (size_t i = 0; i < otlp->sources.count; i++)
		if (strcmp(otlp->sources.items[i].path, path) == 0)
			return &otlp->sources.items[i];
	struct source fresh = {.path = strdup(path), .sent_utc_ns = INT64_MIN};
	struct source *source = fresh.path && weft_follower_open(&fresh.follower, path, &options, &err) == WEFT_OK
				    ? weft_vec_push(&otlp->sources)
				    : NULL;
	if (source)
		*source = fresh;
	else
		free_source(&fresh);
	return source;
}

static int queue_batch(void *sender, const void *bytes, size_t size, size_t spans)
{
	cli_otlp_sender_add(sender, bytes, size, spans);
	return 0;
}

/* Queues the findings that wait and, if the model is new, the spans of the promises that ended in it. */
static void queue_spans(struct cli_otlp *otlp, struct source *s, bool is_new)
{
	const uint64_t restarts = weft_follower_restarts(s->follower);
	/* After a restart, the model also has promises that an earlier model had. */
	struct weft_otlp_options options = {.version = WEFT_VERSION,
	    .memory = &s->memory,
	    .after_utc_ns = !is_new                   ? INT64_MAX
			    : restarts != s->restarts ? s->sent_utc_ns
						      : INT64_MIN};
	struct weft_otlp_finding *findings = calloc(s->waiting.count + 1, sizeof *findings);
	struct weft_otlp_stats stats;
	struct weft_losses losses;
	struct weft_error err;
	for (size_t i = 0; findings && i < s->waiting.count; i++)
		findings[i] = s->waiting.items[i].finding;
	options.findings = findings;
	options.finding_count = findings ? s->waiting.count : 0;
	weft_sort(findings, options.finding_count, sizeof *findings, weft_otlp_compare_findings);
	if (weft_export_otlp(weft_follower_model(s->follower), &options, queue_batch, otlp->sender, &losses, &stats, &err) < 0)
		cli_note("%s: spans were not sent: %s", s->path, err.what);
	else if (stats.last_utc_ns > s->sent_utc_ns)
		s->sent_utc_ns = stats.last_utc_ns;
	otlp->findings_lost += s->waiting.count - options.finding_count;
	free(findings);
	for (size_t i = 0; i < s->waiting.count; i++)
		free(s->waiting.items[i].texts);
	s->waiting.count = 0;
	otlp->restarts += restarts - s->restarts;
	s->restarts = restarts;
}

void cli_otlp_update(struct cli_otlp *otlp, const char *path, bool has_ended)
{
	struct source *s = otlp ? find_source(otlp, path) : NULL;
	struct weft_error err;
	if (!s || !s->follower)
		return;
	/* An error is ignored here, because the next scan of the trace reports it. */
	const bool is_new = weft_follower_refresh(s->follower, &err) > 0;
	if (is_new || (s->waiting.count > 0 && weft_follower_model(s->follower)))
		queue_spans(otlp, s, is_new);
	if (has_ended) {
		weft_follower_close(s->follower);
		s->follower = NULL;
	}
}

static bool is_known(struct source *s, uint64_t key)
{
	for (size_t i = 0; i < s->known.count; i++)
		if (s->known.items[i] == key)
			return true;
	/* The keys of the older half are forgotten. */
	if (s->known.count >= MAX_KNOWN) {
		memmove(s->known.items, s->known.items + MAX_KNOWN / 2, (s->known.count - MAX_KNOWN / 2) * sizeof key);
		s->known.count -= MAX_KNOWN / 2;
	}
	uint64_t *slot = weft_vec_push(&s->known);
	if (slot)
		*slot = key;
	return false;
}

void cli_otlp_add_finding(
    struct cli_otlp *otlp, const char *path, const struct weft_model *model, const struct weft_finding *finding)
{
	struct source *s = otlp ? find_source(otlp, path) : NULL;
	const int64_t which[] = {finding->kind, model->promises[finding->promise].id,
	    finding->promise == WEFT_SYSTEM ? finding->start_ns + model->start_ns : 0};
	if (!s || is_known(s, weft_hash_bytes((const char *)which, sizeof which)))
		return;
	struct weft_otlp_ids ids;
	struct weft_error err;
	const size_t title = strlen(finding->title) + 1, next = strlen(finding->next) + 1;
	char *texts = malloc(title + next);
	struct waiting *waiting = texts && weft_otlp_find_ids(model, &s->memory, &finding->promise, 1, &ids, &err) == WEFT_OK
				      ? weft_vec_push(&s->waiting)
				      : NULL;
	if (!waiting) {
		free(texts);
		otlp->findings_lost++;
		return;
	}
	*waiting = (struct waiting){.finding = make_finding(model, finding, &ids), .texts = texts};
	waiting->finding.title = memcpy(texts, finding->title, title);
	waiting->finding.next = memcpy(texts + title, finding->next, next);
}
