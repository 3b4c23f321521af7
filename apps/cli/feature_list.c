/* feature_list.c: lists the optional parts of weft, and the packages that bring the missing parts.  SPDX-License-Identifier: ISC
 */
#include "feature_list.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "cli.h"
#include "ctf/foreign.h"
#include "features-built.h"

static const struct feature {
	const char *name;
	bool is_built;
	const char *package; /* package of the distribution that the part's build needs; "" if the part needs another C library */
	/* Name of the part's program, which may be installed separately; NULL if the part belongs to the command. */
	const char *program;
} features[CLI_FEATURE_COUNT] = {
    [CLI_FEATURE_RECORD] = {"record", WEFT_HOOK_BUILT, WEFT_HOOK_PACKAGE, "weft-hook"},
    [CLI_FEATURE_WINDOW] = {"window", WEFT_VIEW_BUILT, WEFT_VIEW_PACKAGE, "weft-view"},
    [CLI_FEATURE_PAGE] = {"page", WEFT_PAGE_BUILT, WEFT_PAGE_PACKAGE, NULL},
    [CLI_FEATURE_SERVER] = {"server", WEFT_PAGE_BUILT &&WEFT_SERVER_BUILT, WEFT_SERVER_PACKAGE, NULL},
    [CLI_FEATURE_TERMINAL] = {"terminal", WEFT_SCREEN_BUILT, WEFT_SCREEN_PACKAGE, NULL},
    [CLI_FEATURE_NAMES] = {"names", WEFT_NAMES_BUILT, WEFT_NAMES_PACKAGE, NULL},
    [CLI_FEATURE_SQLITE] = {"SQLite", WEFT_SQLITE_BUILT, WEFT_SQLITE_PACKAGE, NULL},
    [CLI_FEATURE_OTLP] = {"OTLP", WEFT_CURL_BUILT, WEFT_CURL_PACKAGE, NULL},
    [CLI_FEATURE_KERNEL] = {"kernel", true, "", NULL},
    [CLI_FEATURE_CTF] = {"foreign CTF", WEFT_CTF_BUILT, WEFT_CTF_PACKAGE, "weft-ctf"},
    [CLI_FEATURE_XEN] = {"Xen", WEFT_XEN_BUILT, WEFT_XEN_PACKAGE, NULL},
};

/* Returns whether the program of a feature is installed; a distribution may install the program separately. */
static bool has_program(const char *program)
{
	char path[PATH_MAX], hook[64];
	if (strcmp(program, "weft-view") == 0)
		return cli_find_window(path, sizeof path);
	if (strcmp(program, "weft-hook") != 0)
		return foreign_find_installed(path, program);
	snprintf(hook, sizeof hook, "lib%s.so", program);
	return foreign_find_installed(path, hook);
}

void cli_print_features(FILE *out)
{
	for (size_t i = 0; i < CLI_FEATURE_COUNT; i++) {
		const struct feature *f = &features[i];
		const bool is_apart = f->is_built && f->program && !has_program(f->program);
		const char *package = is_apart ? f->program : f->package;
		fprintf(out, "  %-12s ", f->name);
		if (f->is_built && !is_apart)
			fputs("yes\n", out);
		else if (!*package)
			fputs("no (it needs glibc)\n", out);
		else if (strchr(package, ' '))
			fprintf(out, "no (the packages %s add this part)\n", package);
		else
			fprintf(out, "no (the package %s adds this part)\n", package);
	}
}

int cli_fail_without(const char *verb, enum cli_feature which)
{
	const struct feature *f = &features[which];
	/* A server serves pages. */
	if (which == CLI_FEATURE_SERVER && !WEFT_PAGE_BUILT)
		f = &features[CLI_FEATURE_PAGE];
	if (!*f->package)
		return cli_fail_verb(verb, "this weft was built without the part %s; this part needs glibc", f->name);
	return cli_fail_verb(
	    verb, "this weft was built without the part %s; install %s and build weft again", f->name, f->package);
}
