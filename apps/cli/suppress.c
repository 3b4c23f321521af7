/* suppress.c: removes known findings, which a file lists.
 *
 * A line has the name of a finding (or *), a colon, a shell pattern for a part of the title, and after " # " the required reason:
 * hang:connection*"to the printer"  # it waits for paper SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/findings/explain.h"
#include "cli.h"

enum { LINE_BYTES = 1024 };

/* Removes white space at both ends. */
static char *trim_spaces(char *text)
{
	text += strspn(text, " \t");
	size_t length = strlen(text);
	while (length > 0 && strchr(" \t\r\n", text[length - 1]))
		text[--length] = '\0';
	return text;
}

static bool is_finding_name(const char *name)
{
	for (int kind = 0; kind < WEFT_FINDING_KINDS; kind++)
		if (strcmp(name, weft_finding_name((enum weft_finding_kind)kind)) == 0)
			return true;
	return strcmp(name, "*") == 0;
}

/* Removes the findings that a line matches.  Returns their number. */
static size_t remove_matching(struct weft_findings *findings, const char *name, const char *pattern)
{
	char anywhere[LINE_BYTES + 2];
	snprintf(anywhere, sizeof anywhere, "*%s*", pattern);
	size_t kept = 0, count = findings->count;
	for (size_t i = 0; i < count; i++) {
		struct weft_finding *finding = &findings->findings[i];
		if ((strcmp(name, "*") == 0 || strcmp(name, weft_finding_name(finding->kind)) == 0) &&
		    fnmatch(anywhere, finding->title, 0) == 0)
			free(finding->steps);
		else
			findings->findings[kept++] = *finding;
	}
	findings->count = kept;
	return count - kept;
}

static int apply_line(
    char *line, const char *path, unsigned number, const struct cli_input *input, struct weft_findings *findings)
{
	char *text = trim_spaces(line), *reason = strstr(text, " #"), *colon = strchr(text, ':');
	if (!*text || *text == '#')
		return -1;
	if (!reason || !*trim_spaces(reason + 2))
		return cli_fail("%s:%u: the reason is missing; write it after \" # \"", path, number);
	*reason = '\0';
	if (!colon || colon > reason)
		return cli_fail("%s:%u: expected FINDING:PATTERN # REASON", path, number);
	*colon = '\0';
	const char *name = trim_spaces(text), *pattern = trim_spaces(colon + 1);
	if (!is_finding_name(name))
		return cli_fail("%s:%u: unknown finding \"%s\"; weft help findings lists them", path, number, name);
	size_t count = remove_matching(findings, name, pattern);
	if (count == 0)
		cli_note("%s: no finding matches %s:%u, %s:%s", input->name, path, number, name, pattern);
	else
		cli_note("%s: %zu finding%s left out by %s:%u: %s", input->name, count, count == 1 ? " is" : "s are", path,
		    number, trim_spaces(reason + 2));
	return -1;
}

int cli_suppress_findings(const char *path, const struct cli_input *input, struct weft_findings *findings)
{
	char line[LINE_BYTES];
	FILE *file = fopen(path, "re");
	if (!file)
		return cli_fail("%s: %s", path, strerror(errno));
	int exit = -1;
	for (unsigned number = 1; exit < 0 && fgets(line, sizeof line, file); number++)
		exit = strlen(line) + 1 == sizeof line && line[sizeof line - 2] != '\n'
			   ? cli_fail("%s:%u: the line is too long", path, number)
			   : apply_line(line, path, number, input, findings);
	if (exit < 0 && ferror(file))
		exit = cli_fail("%s: %s", path, strerror(errno));
	fclose(file);
	return exit;
}
