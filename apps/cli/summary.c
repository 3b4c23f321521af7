/* summary.c: prints a summary of a trace in a few sentences.  SPDX-License-Identifier: ISC */
#include "analysis/queries/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static void put_lines(const struct weft_summary *summary)
{
	const char *before = "";
	for (size_t i = 0; i < summary->count; i++) {
		const struct weft_summary_line *line = &summary->lines[i];
		const char *name = weft_summary_topic_name(line->topic);
		printf("  %-12s", strcmp(name, before) == 0 ? "" : name);
		puts(line->text);
		before = name;
	}
}

static void put_lines_json(const struct weft_summary *summary, const struct weft_model *m)
{
	for (size_t i = 0; i < summary->count; i++) {
		const struct weft_summary_line *line = &summary->lines[i];
		printf("%s{\"topic\":\"%s\",\"text\":", i > 0 ? "," : "", weft_summary_topic_name(line->topic));
		cli_put_cstring(line->text);
		if (line->promise != WEFT_NONE)
			printf(",\"promise\":%" PRId64, m->promises[line->promise].id);
		if (line->to_ns >= line->from_ns)
			printf(",\"from_ns\":%" PRId64 ",\"to_ns\":%" PRId64, line->from_ns, line->to_ns);
		putchar('}');
	}
}

int cli_put_summary(const struct weft_model *m, const struct weft_findings *findings, bool json)
{
	struct weft_promise_info *facts = NULL;
	struct weft_summary *summary = NULL;
	struct weft_error err;
	int status = weft_promise_info_create(&facts, m, &err);
	if (status == WEFT_OK)
		status = weft_summary_create(&summary, facts, &err);
	if (status == WEFT_OK && weft_summary_set_findings(summary, findings) < 0)
		status = weft_error_set(&err, WEFT_ENOMEM, "out of memory for a summary");
	if (status == WEFT_OK) {
		if (json)
			put_lines_json(summary, m);
		else
			put_lines(summary);
	}
	weft_summary_destroy(summary);
	weft_promise_info_destroy(facts);
	return status == WEFT_OK ? -1 : cli_fail_error(&err);
}
