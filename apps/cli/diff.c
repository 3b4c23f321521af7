/* diff.c: implements weft diff: reports where two runs differ.  SPDX-License-Identifier: ISC */
#include "analysis/queries/diff.h"

#include <inttypes.h>

#include "cli.h"

static void put_id(const struct weft_model *m, const char *name, uint32_t promise, int64_t time_ns)
{
	if (promise == WEFT_NONE)
		printf(",\"%s\":null", name);
	else
		printf(",\"%s\":%" PRId64, name, m->promises[promise].id);
	if (time_ns < 0)
		printf(",\"%s_ns\":null", name);
	else
		printf(",\"%s_ns\":%" PRId64, name, time_ns);
}

static void put_json(const struct weft_difference *one, const struct weft_model *a, const struct weft_model *b)
{
	printf("{\"difference\":\"%s\"", weft_difference_name(one->kind));
	put_id(a, "first", one->a, one->a_time_ns);
	put_id(b, "second", one->b, one->b_time_ns);
	fputs(",\"text\":", stdout);
	cli_put_cstring(one->text);
	puts("}");
}

static void put_time(int64_t time_ns)
{
	if (time_ns < 0)
		printf("%11s", "-");
	else
		cli_put_seconds(time_ns);
}

static void put_text(const struct weft_difference *one)
{
	printf("%-8s ", weft_difference_name(one->kind));
	put_time(one->a_time_ns);
	putchar(' ');
	put_time(one->b_time_ns);
	printf("  %s\n", one->text);
}

int cli_diff(struct cli_args *args)
{
	bool json = false;
	const struct cli_option options[] = {CLI_OPTION_JSON(&json), CLI_OPTION_END};
	int exit = cli_parse(args, options, 2);
	if (exit >= 0)
		return exit;
	struct cli_input a, b;
	exit = cli_open(&a, args->argv[0]);
	if (exit >= 0)
		return exit;
	exit = cli_open(&b, args->argv[1]);
	if (exit >= 0) {
		cli_close(&a);
		return exit;
	}
	exit = cli_build_model(&a, CLI_KEEP_BINDS);
	if (exit < 0)
		exit = cli_build_model(&b, CLI_KEEP_BINDS);
	if (exit < 0) {
		struct weft_diff *diff = NULL;
		struct weft_error err;
		if (weft_diff_create(&diff, a.model, b.model, &err) < 0) {
			exit = cli_fail_error(&err);
		} else {
			for (size_t i = 0; i < diff->count && cli_stdout_ok(); i++)
				if (json)
					put_json(&diff->differences[i], a.model, b.model);
				else
					put_text(&diff->differences[i]);
			if (diff->left_out)
				cli_note("%zu more differences of the kinds above are not shown", diff->left_out);
			exit = cli_finish(diff->count ? CLI_FOUND : CLI_OK);
		}
		weft_diff_destroy(diff);
	}
	cli_close(&a);
	cli_close(&b);
	return exit;
}
