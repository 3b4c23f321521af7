/* html.c: implements weft html: a web page with the viewer and traces.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/web/page.h"
#include "cli.h"

#ifdef WEFT_HAS_PAGE

/* A picture's trace, and the bytes of the trace in the page. */
struct packed {
	struct weft_trace *trace;
	cli_bytes bytes;
};

/* Packs the trace of a picture; the result is like that of cli_open(). */
static int pack_picture(struct weft_page_trace *out, struct packed *packed, const struct open_plan *picture)
{
	struct weft_error err;
	out->name = picture->name;
	cli_progress_begin("opening", picture->name);
	int status = cli_picture_open(&packed->trace, picture, &err);
	if (status == WEFT_OK)
		status = cli_pack(&out->bytes, &out->size, &packed->bytes, packed->trace, &err);
	cli_progress_end();
	return status < 0 ? cli_fail_error(&err) : -1;
}

static int write_page(const struct weft_page_trace *traces, size_t count, const char *out)
{
	struct weft_error err;
	struct cli_file file;
	int exit = cli_file_begin(&file, out);
	if (exit >= 0)
		return exit;
	cli_progress_begin("writing", file.name);
	int status = weft_page_write(traces, count, cli_file_write, &file, &err);
	cli_progress_end();
	return cli_file_end(&file, status, &err);
}

struct directory {
	const char *path;
	int exit; /* exit status after a failed write whose error was printed */
};

static int write_page_file(void *ctx, const char *name, const void *bytes, size_t size)
{
	struct directory *directory = ctx;
	struct weft_error err;
	struct cli_file file;
	char *path;
	if (asprintf(&path, "%s/%s", directory->path, name) < 0)
		directory->exit = cli_fail("%s: %s", directory->path, weft_status_string(WEFT_ENOMEM));
	else {
		directory->exit = cli_file_begin(&file, path);
		if (directory->exit < 0) {
			int status = cli_file_write(&file, bytes, size) == 0 ? WEFT_OK : WEFT_EIO;
			directory->exit = cli_file_end(&file, status, &err);
		}
		free(path);
	}
	return directory->exit == CLI_OK ? 0 : -1;
}

/* An existing index.html that weft did not write is not overwritten. */
static int check_directory(const char *out)
{
	char *path, start[2048] = "";
	if (mkdir(out, 0777) < 0 && errno != EEXIST)
		return cli_fail("%s: %s", out, strerror(errno));
	if (asprintf(&path, "%s/index.html", out) < 0)
		return cli_fail("%s: %s", out, weft_status_string(WEFT_ENOMEM));
	FILE *index = fopen(path, "rb");
	free(path);
	if (!index)
		return errno == ENOENT ? -1 : cli_fail("%s/index.html: %s", out, strerror(errno));
	start[fread(start, 1, sizeof start - 1, index)] = '\0';
	fclose(index);
	return strstr(start, "content=\"weft\"") ? -1 : cli_fail("%s/index.html: already exists, and weft did not write it", out);
}

static int write_directory(const struct weft_page_trace *traces, size_t count, const char *out)
{
	struct weft_error err;
	struct directory directory = {.path = out, .exit = CLI_OK};
	int exit = check_directory(out);
	if (exit >= 0)
		return exit;
	cli_progress_begin("writing", out);
	int status = weft_page_write_directory(traces, count, write_page_file, &directory, &err);
	cli_progress_end();
	if (directory.exit != CLI_OK)
		return directory.exit;
	return status < 0 ? cli_fail("%s: %s", out, err.what) : CLI_OK;
}

int cli_html(struct cli_args *args)
{
	const char *out = NULL;
	bool compare = false, is_empty = false;
	const struct cli_option options[] = {
	    {"output", 'o', CLI_TEXT, &out, "OUT",
		"write one file if OUT ends in .html or is -, otherwise a directory for a web server"},
	    CLI_OPTION_COMPARE(&compare),
	    {"empty", 0, CLI_FLAG, &is_empty, NULL, "write a page without a trace, in which its reader opens traces"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, CLI_ANY_NUMBER);
	if (exit >= 0)
		return exit;
	if (!out)
		return cli_fail_verb("html", "no output; use -o OUT.html or -o DIRECTORY");
	const size_t out_bytes = strlen(out);
	const bool is_file = strcmp(out, "-") == 0 || (out_bytes > 5 && strcmp(out + out_bytes - 5, ".html") == 0);
	if (is_empty && args->argc > 0)
		return cli_fail_verb("html", "--empty takes no trace: %s", args->argv[0]);
	if (!is_empty && args->argc == 0)
		return cli_fail_missing(args, 0);
	if (is_empty)
		return (is_file ? write_page : write_directory)(NULL, 0, out);
	struct open_plan **pictures;
	const size_t count = cli_make_pictures(&pictures, args, compare);
	size_t opened = 0;
	struct packed *packed = calloc(count + 1, sizeof *packed);
	struct weft_page_trace *traces = calloc(count + 1, sizeof *traces);
	if (!count || !traces || !packed) {
		free(packed);
		free(traces);
		return cli_fail_verb("html", "%s", weft_status_string(WEFT_ENOMEM));
	}
	for (; exit < 0 && opened < count; opened++)
		exit = pack_picture(&traces[opened], &packed[opened], pictures[opened]);
	if (exit < 0)
		exit = (is_file ? write_page : write_directory)(traces, count, out);
	while (opened-- > 0) {
		weft_trace_close(packed[opened].trace);
		weft_vec_free(&packed[opened].bytes);
	}
	free(packed);
	free(traces);
	return exit;
}

#else
#include "feature_list.h"

int cli_html(struct cli_args *args)
{
	(void)args;
	return cli_fail_without("html", CLI_FEATURE_PAGE);
}

#endif
