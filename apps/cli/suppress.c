/* suppress.c: findings that are known and are not to be told, in a file.
 *
 * A line has the name of a finding (or *), a colon, a pattern as shells have them that its title holds, and behind " # " the
 *reason, without which a line is refused: hang:connection*"to the printer"  # it waits for paper, and may
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/explain.h"
#include "cli.h"

enum { LINE_BYTES = 1024 };

/* Cuts white space off the end, and returns what begins behind that at the beginning. */
static char *trim(char *text)
{
	text += strspn(text, " \t");
	size_t length = strlen(text);
	while (length > 0 && strchr(" \t\r\n", text[length - 1]))
		text[--length] = '\0';
	return text;
}

static bool is_finding(const char *name)
{
	for (int kind = 0; kind < WEFT_FINDING_KINDS; kind++)
		if (strcmp(name, weft_finding_name((enum weft_finding_kind)kind)) == 0)
			return true;
	return strcmp(name, "*") == 0;
}

/* Takes out what the line names; how many. */
static size_t take_out(struct weft_findings *findings, const char *name, const char *pattern)
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

static int read_line(char *line, const char *path, unsigned number, const struct cli_input *input, struct weft_findings *findings)
{
	char *text = trim(line), *reason = strstr(text, " #"), *colon = strchr(text, ':');
	if (!*text || *text == '#')
		return -1;
	if (!reason || !*trim(reason + 2))
		return cli_fail("%s:%u: a suppression has its reason behind \" # \"", path, number);
	*reason = '\0';
	if (!colon || colon > reason)
		return cli_fail("%s:%u: expected FINDING:PATTERN # REASON", path, number);
	*colon = '\0';
	const char *name = trim(text), *pattern = trim(colon + 1);
	if (!is_finding(name))
		return cli_fail("%s:%u: there is no finding \"%s\"", path, number, name);
	size_t count = take_out(findings, name, pattern);
	if (count == 0)
		cli_note("%s: no finding matches %s:%u, %s:%s", input->name, path, number, name, pattern);
	else
		cli_note("%s: %zu finding%s left out, as %s:%u says: %s", input->name, count, count == 1 ? " is" : "s are", path,
		    number, trim(reason + 2));
	return -1;
}

int cli_suppress(const char *path, const struct cli_input *input, struct weft_findings *findings)
{
	char line[LINE_BYTES];
	FILE *file = fopen(path, "re");
	if (!file)
		return cli_fail("%s: %s", path, strerror(errno));
	int exit = -1;
	for (unsigned number = 1; exit < 0 && fgets(line, sizeof line, file); number++)
		exit = strlen(line) + 1 == sizeof line && line[sizeof line - 2] != '\n'
			   ? cli_fail("%s:%u: the line is too long", path, number)
			   : read_line(line, path, number, input, findings);
	if (exit < 0 && ferror(file))
		exit = cli_fail("%s: %s", path, strerror(errno));
	fclose(file);
	return exit;
}
