/* complete.c: implements weft --complete -- WORD..., by which shells complete the last word; prints one completion a line.  The
 * other words are the words that the user typed after `weft`.  A line @files, @directories or @commands asks the shell to
 * complete files, directories or commands.  SPDX-License-Identifier: ISC */
#include "complete.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/findings/explain.h"
#include "analysis/queries/check.h"
#include "base/intern.h"
#include "cli.h"
#include "trace/source.h"

/* Word to complete, the last word; NULL if the command completes nothing. */
static const char *current;

void cli_complete_begin(const char *word)
{
	current = word;
}

bool cli_is_completing(void)
{
	return current;
}

void cli_complete_word(const char *before, const char *word)
{
	char whole[512];
	int length = snprintf(whole, sizeof whole, "%s%s", before, word);
	if (length < (int)sizeof whole && strncmp(whole, current, strlen(current)) == 0)
		puts(whole);
}

static void complete_alternatives(const char *before, const char *words)
{
	for (size_t length; *words; words += length + (words[length] == '|')) {
		char word[64];
		length = strcspn(words, "|");
		snprintf(word, sizeof word, "%.*s", (int)length, words);
		cli_complete_word(before, word);
	}
}

enum { MAX_BYTES = 16 << 20 }; /* largest size of a trace that is opened for completions, also when unpacked */

/* Returns false for large traces, because reading one would delay the TAB key. */
static bool is_small_trace(const char *path)
{
	int64_t bytes = 0;
	struct stat st;
	if (stat(path, &st) < 0 || S_ISREG(st.st_mode))
		return st.st_size <= MAX_BYTES;
	DIR *dir = opendir(path);
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
			bytes += st.st_size;
	if (dir)
		closedir(dir);
	return dir && bytes <= MAX_BYTES;
}

static void complete_labels(const char *before, const char *path)
{
	enum { MAX_LABELS = 200 };
	struct cli_input input;
	const struct weft_event *events;
	size_t count;
	struct weft_intern labels = {0};
	weft_source_limit(MAX_BYTES);
	if (!is_small_trace(path) || cli_open(&input, path) >= 0)
		return;
	while (labels.texts.count < MAX_LABELS && weft_trace_next(input.trace, &events, &count) == 1)
		for (size_t i = 0; i < count && labels.texts.count < MAX_LABELS; i++)
			if (events[i].op == WEFT_OP_LABEL)
				weft_intern(&labels, events[i].text);
	for (size_t i = 0; i < labels.texts.count; i++) {
		char label[256];
		struct weft_str text = labels.texts.items[i];
		snprintf(label, sizeof label, "%.*s", (int)text.len, text.ptr);
		if (!strpbrk(label, "\n\\'\""))
			cli_complete_word(before, label);
	}
	weft_intern_finish(&labels);
	cli_close(&input);
}

static bool is_path_argument(const char *arg)
{
	return !strcmp(arg, "OUT") || !strcmp(arg, "FILE") || !strcmp(arg, "PICTURE");
}

/* Completes the value of an option, according to the name of the value in --help. */
static void complete_value(const struct cli_option *option, const char *before, const char *trace)
{
	if (strchr(option->arg, '|'))
		complete_alternatives(before, option->arg);
	else if (is_path_argument(option->arg))
		puts("@files");
	else if (!strcmp(option->arg, "DIR"))
		puts("@directories");
	else if (trace && (!strcmp(option->arg, "LABEL") || !strcmp(option->arg, "TEXT")))
		complete_labels(before, trace);
}

static void complete_option(const struct cli_option *option)
{
	char name[64];
	snprintf(name, sizeof name, "%s%s", option->name, option->type == CLI_FLAG || option->type == CLI_WORD ? "" : "=");
	cli_complete_word("--", name);
}

/* Completes the measure in a rule of weft check. */
static void complete_rule(void)
{
#define MEASURE(UPPER, name, needs_argument, is_time, text) cli_complete_word(name, (needs_argument) ? "(" : "");
	WEFT_MEASURES(MEASURE)
#undef MEASURE
	for (int kind = 0; kind < WEFT_FINDING_KINDS; kind++) {
		char rule[64];
		snprintf(rule, sizeof rule, "%s)=0", weft_finding_name((enum weft_finding_kind)kind));
		cli_complete_word("findings(", rule);
	}
}

/* Returns the option that a word names, also if '=' and a value follow; else NULL. */
static const struct cli_option *find_option(const struct cli_option *options, const char *word)
{
	size_t length = word[0] == '-' && word[1] == '-' ? strcspn(word + 2, "=") : 0;
	for (const struct cli_option *o = options; o->name; o++)
		if (length > 0 ? strlen(o->name) == length && !memcmp(o->name, word + 2, length)
			       : word[0] == '-' && o->letter && word[1] == o->letter && !word[2])
			return o;
	return NULL;
}

int cli_complete(const struct cli_args *args, const struct cli_option *options)
{
	const struct cli_option *waiting = NULL; /* option before the last word, if that option needs a value */
	const char *trace = NULL;
	const int last = args->argc - 1;
	const bool runs = strncmp(args->operands, "-- ", 3) == 0;
	for (int i = 0; i < last; i++) {
		const char *word = args->argv[i];
		const struct cli_option *option = waiting ? NULL : find_option(options, word);
		if (runs && !waiting && (word[0] != '-' || !strcmp(word, "--"))) {
			puts(i == last - 1 && word[0] == '-' ? "@commands" : "@files");
			return CLI_OK;
		}
		if (!waiting && word[0] != '-' && !trace)
			trace = word;
		waiting = option && option->type != CLI_FLAG && option->type != CLI_WORD && !strchr(word, '=') ? option : NULL;
	}
	const struct cli_option *named = find_option(options, current);
	char before[64];
	if (waiting) {
		complete_value(waiting, "", trace);
	} else if (named && named->type != CLI_FLAG && strchr(current, '=')) {
		snprintf(before, sizeof before, "--%s=", named->name);
		complete_value(named, before, trace);
	} else if (current[0] == '-') {
		for (const struct cli_option *o = options; o->name; o++)
			complete_option(o);
		cli_complete_word("--", "help");
	} else if (runs) {
		puts("@commands");
	} else if (trace && (!strcmp(args->verb, "check") || !strcmp(args->verb, "watch"))) {
		complete_rule();
	} else if (strstr(args->operands, "PID|NAME")) {
		cli_complete_standby();
	} else {
		puts("@files");
	}
	return CLI_OK;
}
