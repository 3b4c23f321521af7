/* help.c: implements weft help FINDING, which explains what a finding means and how to fix the fault.
 * SPDX-License-Identifier: ISC */
#include <stddef.h>
#include <string.h>

#include "analysis/findings/guide.h"
#include "cli.h"
#include "complete.h"

static const char all[] = "findings";

static const struct {
	const char *heading;
	size_t offset;
} sections[] = {
    {"Fix", offsetof(struct weft_finding_guide, fix)},
    {"How weft knows", offsetof(struct weft_finding_guide, evidence)},
    {"When it is uncertain", offsetof(struct weft_finding_guide, doubt)},
    {"False alarms", offsetof(struct weft_finding_guide, false_alarms)},
    {"JSON fields", offsetof(struct weft_finding_guide, json)},
};

static const char *section_of(const struct weft_finding_guide *guide, size_t i)
{
	return *(const char *const *)((const char *)guide + sections[i].offset);
}

/* ---- For terminals ---- */

enum { COLUMNS = 80, INDENT = 4 };

/* Prints one paragraph or list item, without its backticks, wrapped at COLUMNS. */
static void put_wrapped(const char *text, size_t length, const char *bullet)
{
	size_t column = (size_t)printf("%*s%s", INDENT, "", bullet);
	const size_t margin = column;
	for (size_t i = 0; i < length;) {
		const size_t word = strcspn(text + i, " \n");
		size_t width = 0;
		for (size_t k = 0; k < word; k++)
			width += text[i + k] != '`';
		if (column + (column > margin) + width > COLUMNS && column > margin) {
			printf("\n%*s", (int)margin, "");
			column = margin;
		}
		if (column > margin) {
			putchar(' ');
			column++;
		}
		for (size_t k = 0; k < word; k++)
			if (text[i + k] != '`')
				putchar(text[i + k]);
		column += width;
		i += word + 1;
	}
	putchar('\n');
}

static void put_text(const char *text)
{
	while (*text) {
		const bool is_item = strncmp(text, "- ", 2) == 0;
		const char *begin = is_item ? text + 2 : text, *end = strchr(begin, '\n');
		if (*text == '\n') {
			putchar('\n');
			text++;
			continue;
		}
		/* A paragraph ends before a list item or an empty line. */
		while (!is_item && end[1] && end[1] != '\n' && strncmp(end + 1, "- ", 2) != 0)
			end = strchr(end + 1, '\n');
		put_wrapped(begin, (size_t)(end - begin), is_item ? "- " : "");
		text = end + 1;
	}
}

static void put_titles(const struct weft_finding_guide *guide, const char *indent)
{
	for (const char *title = guide->title; *title; title = strchr(title, '\n') + 1)
		printf("%s%s: %.*s\n", indent, guide->name, (int)strcspn(title, "\n"), title);
}

static const char *words_of_severity(enum weft_severity severity)
{
	return severity == WEFT_SEVERITY_ALARM ? "alarm" : "informational";
}

static void print_finding(const struct weft_finding_guide *guide)
{
	printf("%s (%s): %s\n", guide->name, words_of_severity(guide->severity), guide->meaning);
	puts("\nExamples");
	put_titles(guide, "    ");
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		printf("\n%s\n", sections[i].heading);
		put_text(section_of(guide, i));
	}
}

static void print_findings(void)
{
	for (int kind = 0; kind < WEFT_FINDING_KINDS; kind++) {
		const struct weft_finding_guide guide = weft_finding_guide((enum weft_finding_kind)kind);
		printf("%-11s %s\n", guide.name, guide.meaning);
	}
	puts("\nweft help NAME explains a finding.\n\nAbout findings");
	put_text(weft_finding_guide_intro);
	puts("\nJSON fields");
	put_text(weft_finding_guide_json);
}

/* ---- For docs/findings ---- */

static const char generated[] = "<!-- tools/finding-pages writes this page from src/analysis/findings/guide.c. -->\n";

/* In the output, a list needs an empty line before it. */
static void write_text(const char *text)
{
	bool was_item = true;
	for (const char *end; *text; text = end + 1) {
		const bool is_item = strncmp(text, "- ", 2) == 0;
		end = strchr(text, '\n');
		if (is_item && !was_item)
			putchar('\n');
		was_item = is_item || end == text;
		printf("%.*s\n", (int)(end - text), text);
	}
}

static void write_finding(const struct weft_finding_guide *guide)
{
	printf("%s\n# %s\n\n", generated, guide->name);
	printf("%s\nSeverity: %s.\n", guide->meaning, words_of_severity(guide->severity));
	puts("\n## Examples\n\n```");
	put_titles(guide, "");
	puts("```");
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		printf("\n## %s\n\n", sections[i].heading);
		write_text(section_of(guide, i));
	}
	puts("\n[All findings](README.md)");
}

static void write_findings(void)
{
	printf("%s\n# Findings\n\n", generated);
	write_text(weft_finding_guide_intro);
	puts("`weft help NAME` prints the page of a finding in the terminal.\n\n| finding | severity | meaning |\n| --- | --- | "
	     "--- |");
	for (int kind = 0; kind < WEFT_FINDING_KINDS; kind++) {
		const struct weft_finding_guide guide = weft_finding_guide((enum weft_finding_kind)kind);
		printf("| [%s](%s.md) | %s | %s |\n", guide.name, guide.name, words_of_severity(guide.severity), guide.meaning);
	}
	puts("\n## JSON fields\n");
	write_text(weft_finding_guide_json);
}

/* ---- The verb ---- */

bool cli_help_finding(const char *name, bool as_markdown)
{
	if (strcmp(name, all) == 0) {
		(as_markdown ? write_findings : print_findings)();
		return true;
	}
	for (int kind = 0; kind < WEFT_FINDING_KINDS; kind++) {
		const struct weft_finding_guide guide = weft_finding_guide((enum weft_finding_kind)kind);
		if (strcmp(name, guide.name) != 0)
			continue;
		(as_markdown ? write_finding : print_finding)(&guide);
		return true;
	}
	return false;
}

void cli_complete_findings(void)
{
	for (int kind = 0; kind < WEFT_FINDING_KINDS; kind++)
		cli_complete_word("", weft_finding_name((enum weft_finding_kind)kind));
	cli_complete_word("", all);
}
