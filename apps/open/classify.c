/* classify.c: finds out what the operands of a verb name.  SPDX-License-Identifier: ISC */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "open/open.h"
#include "trace/multi_open.h"
#include "xen/domain.h"

static bool is_process(const char *text)
{
	char folder[64];
	const size_t digits = strspn(text, "0123456789");
	snprintf(folder, sizeof folder, "/proc/%.20s", text);
	return digits > 0 && digits < 20 && text[digits] == '\0' && access(folder, F_OK) == 0;
}

enum open_class open_class_of(const char *path)
{
	struct stat st;
	if (strcmp(path, "-") == 0)
		return OPEN_STDIN;
	if (domain_is_path(path))
		return OPEN_DOMAIN;
	if (stat(path, &st) == 0)
		return S_ISDIR(st.st_mode) ? OPEN_DIRECTORY : OPEN_FILE;
	return is_process(path) ? OPEN_PROCESS : OPEN_FILE;
}

/* Finds the trace's directory in /proc/PID/maps, because a recording process has the files of its trace mapped. */
char *open_directory_of_process(const char *pid)
{
	char line[PATH_MAX + 256], *found = NULL;
	snprintf(line, sizeof line, "/proc/%.20s/maps", pid);
	FILE *maps = fopen(line, "re");
	while (maps && !found && fgets(line, sizeof line, maps)) {
		char *path = strchr(line, '/'), *name = path ? strrchr(path, '/') : NULL;
		if (name && strncmp(name, "/definitions-", strlen("/definitions-")) == 0)
			found = strndup(path, (size_t)(name - path));
	}
	if (maps)
		fclose(maps);
	return found;
}

/* Adds a part to the plan, and takes over `path`; fails if `path` is NULL, for lack of memory. */
static bool add_part(struct open_plan *plan, enum open_class class, char *path)
{
	const bool has_memory = path && weft_vec_reserve(&plan->paths, 1) && weft_vec_reserve(&plan->classes, 1);
	if (has_memory) {
		plan->paths.items[plan->paths.count++] = path;
		plan->classes.items[plan->classes.count++] = class;
	} else {
		free(path);
	}
	return has_memory;
}

/* Adds the traces of a session without copies, or the operand itself if it is no session. */
static bool add_operand(struct open_plan *plan, const char *operand)
{
	const enum open_class class = open_class_of(operand);
	struct session s = {.path = operand};
	bool has_memory = class != OPEN_DIRECTORY || session_read_all(&s, operand);
	plan->copies += session_drop_copies(&s.traces);
	for (size_t i = 0; i < s.traces.count && has_memory; i++)
		has_memory = add_part(plan, open_class_of(s.traces.items[i]), strdup(s.traces.items[i]));
	if (has_memory && s.traces.count == 0)
		has_memory = add_part(plan, class, strdup(operand));
	session_free(&s);
	return has_memory;
}

static bool add_operands(struct open_plan *plan)
{
	bool has_memory = true;
	for (size_t i = 0; i < plan->operands.count && has_memory; i++)
		has_memory = add_operand(plan, plan->operands.items[i]);
	plan->is_session = plan->operands.count == 1 && plan->paths.count > 1;
	plan->is_lenient |= plan->is_session;
	return has_memory;
}

static bool copy_operands(struct open_plan *plan, char *const *operands, int count)
{
	bool has_memory = weft_vec_reserve(&plan->operands, (size_t)count);
	for (int i = 0; i < count && has_memory; i++) {
		char *directory = open_class_of(operands[i]) == OPEN_PROCESS ? open_directory_of_process(operands[i]) : NULL;
		char *copy = directory ? directory : strdup(operands[i]);
		has_memory = copy != NULL;
		if (has_memory)
			plan->operands.items[plan->operands.count++] = copy;
	}
	return has_memory;
}

/* In messages, a single part has its own path as its name; a session or several operands have the name that the user typed. */
static void set_name(struct open_plan *plan, const char *first)
{
	if (plan->paths.count == 1)
		first = plan->classes.items[0] == OPEN_STDIN ? "standard input" : plan->paths.items[0];
	weft_multi_name(plan->name, sizeof plan->name, &first, plan->operands.count);
}

static void free_parts(struct open_plan *plan)
{
	for (size_t i = 0; i < plan->paths.count; i++)
		free((char *)(uintptr_t)plan->paths.items[i]);
	weft_vec_free(&plan->paths);
	weft_vec_free(&plan->classes);
}

void open_plan_destroy(struct open_plan *plan)
{
	if (plan) {
		free_parts(plan);
		session_paths_free(&plan->operands);
	}
	free(plan);
}

static int finish_plan(struct open_plan **out, struct open_plan *plan, bool has_memory, struct weft_error *err)
{
	if (has_memory)
		*out = plan;
	else
		open_plan_destroy(plan);
	return has_memory ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "out of memory");
}

int open_classify(struct open_plan **out, char *const *operands, int count, struct weft_error *err)
{
	struct open_plan *plan = calloc(1, sizeof *plan);
	const bool has_memory = plan && copy_operands(plan, operands, count) && add_operands(plan);
	if (has_memory)
		set_name(plan, operands[0]);
	return finish_plan(out, plan, has_memory, err);
}

int open_classify_as(struct open_plan **out, enum open_class class, const char *path, const char *ring, struct weft_error *err)
{
	struct open_plan *plan = calloc(1, sizeof *plan);
	const bool has_memory = plan && add_part(plan, class, strdup(path));
	if (has_memory) {
		plan->ring = ring;
		set_name(plan, path);
	}
	return finish_plan(out, plan, has_memory, err);
}

bool open_has_process(const struct open_plan *plan)
{
	bool has_process = false;
	for (size_t i = 0; i < plan->classes.count; i++)
		has_process |= plan->classes.items[i] == OPEN_PROCESS;
	return has_process;
}

bool open_reclassify(struct open_plan *plan)
{
	struct open_plan fresh = *plan;
	fresh.copies = 0;
	memset(&fresh.paths, 0, sizeof fresh.paths);
	memset(&fresh.classes, 0, sizeof fresh.classes);
	const bool has_memory = add_operands(&fresh);
	free_parts(has_memory ? plan : &fresh);
	if (has_memory)
		*plan = fresh;
	return has_memory;
}
