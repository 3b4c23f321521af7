/* profile_trace.c: implements profile_trace.h.  SPDX-License-Identifier: ISC */
#include "apps/control/profile_trace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/named.h"
#include "base/sort.h"
#include "trace/profile_packet.h"
#include "wire/profile.h"
#include "wire/wire.h"

enum { MAX_STACKS = 1 << 16, MAX_METADATA_BYTES = 1 << 16 };

/* An empty text needs no memory; the build ids of most modules are empty here. */
static struct weft_str copy_text(const char *text)
{
	char *copy = *text ? strdup(text) : NULL;
	return (struct weft_str){copy ? copy : "", copy ? (uint32_t)strlen(copy) : 0};
}

static void free_text(struct weft_str text)
{
	if (text.len)
		free((char *)(uintptr_t)text.ptr);
}

/* Returns the index of a module, which is added if it is new; SIZE_MAX without memory. */
static size_t get_module(struct profile_trace *t, const struct weft_look_module *module, uint8_t role)
{
	for (size_t i = 0; i < t->modules.count; i++)
		if (t->modules.items[i].address == module->bias && strcmp(t->modules.items[i].path.ptr, module->known_path) == 0)
			return i;
	struct weft_module *added = weft_vec_push(&t->modules);
	if (!added)
		return SIZE_MAX;
	*added = (struct weft_module){.path = copy_text(module->known_path),
	    .build_id = copy_text(module->build_id),
	    .address = module->bias,
	    .size = module->end - module->begin,
	    .role = role};
	return t->modules.count - 1;
}

static const struct weft_look_module *find_module(const struct weft_look_modules *modules, uint64_t address)
{
	size_t count;
	const struct weft_look_module *list = weft_look_modules_list(modules, &count);
	for (size_t i = 0; i < count; i++)
		if (address >= list[i].begin && address < list[i].end)
			return &list[i];
	return NULL;
}

/* Returns whether the program is an interpreter, whose functions are not those of the interpreted program. */
static bool is_interpreter(const char *program)
{
	static const char *const names[] = {"node", "nodejs", "bun", "deno", "gjs-console", "python", "ruby", "perl", "java",
	    "php", "lua", "luajit", "beam.smp", "Rscript"};
	const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const size_t length = strlen(names[i]);
		/* A version number may follow the name, as in "python3.11" and "lua5.4". */
		if (strncmp(name, names[i], length) == 0 && strspn(name + length, "0123456789.") == strlen(name + length))
			return true;
	}
	return false;
}

/* Returns the index of a return address's call site, or WEFT_IDMAP_NONE without memory. */
static uint32_t get_site(struct profile_trace *t, const struct weft_look_modules *modules, const char *program, uint64_t address)
{
	const uint32_t known = weft_idmap_get(&t->site_of, (int64_t)address);
	if (known != WEFT_IDMAP_NONE)
		return known;
	const struct weft_look_module *module = find_module(modules, address - 1);
	const uint8_t role = !module || strcmp(module->path, program) != 0 ? WEFT_PROFILE_LIBRARY
			     : is_interpreter(program)                     ? WEFT_PROFILE_INTERPRETER
									   : WEFT_PROFILE_PROGRAM;
	const size_t number = module ? get_module(t, module, role) : SIZE_MAX;
	if (!weft_vec_reserve(&t->sites, 1) || !weft_vec_reserve(&t->site_modules, 1) ||
	    !weft_idmap_set(&t->site_of, (int64_t)address, (uint32_t)t->sites.count))
		return WEFT_IDMAP_NONE;
	t->site_modules.items[t->site_modules.count++] = number;
	t->sites.items[t->sites.count] =
	    (struct weft_site){.file = {"", 0}, .function = {"", 0}, .offset = address - (number == SIZE_MAX ? 0 : module->bias)};
	return (uint32_t)t->sites.count++;
}

static uint32_t get_stack(struct profile_trace *t, uint32_t caller, uint32_t site)
{
	const int64_t key = (int64_t)((uint64_t)(caller + 1) << 32 | site);
	const uint32_t known = weft_idmap_get(&t->stack_of, key);
	if (known != WEFT_IDMAP_NONE)
		return known;
	if (t->stacks.count == MAX_STACKS || !weft_vec_reserve(&t->stacks, 1) ||
	    !weft_idmap_set(&t->stack_of, key, (uint32_t)t->stacks.count))
		return WEFT_IDMAP_NONE;
	t->stacks.items[t->stacks.count] = (struct weft_profile_stack){.site = site, .caller = caller};
	return (uint32_t)t->stacks.count++;
}

static void add_sample(struct profile_trace *t, const struct profile_moment *moment, bool is_kept, uint32_t stack)
{
	struct profile_sample *sample = is_kept ? weft_vec_push(&t->samples) : NULL;
	if (sample)
		*sample = (struct profile_sample){*moment, stack};
	else
		t->lost++;
}

void profile_trace_add(struct profile_trace *t, const struct weft_look_modules *modules, const char *program,
    const struct weft_look_stack *stack, const struct profile_moment *moment)
{
	uint32_t at = WEFT_NO_STACK;
	bool is_kept = stack->frame_count > 0;
	for (size_t i = stack->frame_count; i-- > 0 && is_kept;) {
		/* The innermost address is the address of an instruction, while the other addresses are return addresses. */
		const uint32_t site = get_site(t, modules, program, stack->frames[i].address + (i == 0));
		const uint32_t next = site == WEFT_IDMAP_NONE ? WEFT_IDMAP_NONE : get_stack(t, at, site);
		is_kept = next != WEFT_IDMAP_NONE;
		at = next;
	}
	add_sample(t, moment, is_kept, at);
}

/* Returns the index of the call site for a position in a source file, or WEFT_IDMAP_NONE without memory. */
static uint32_t get_source_site(struct profile_trace *t, const struct weft_look_source_frame *frame)
{
	char *key = NULL;
	const int length = asprintf(&key, "%s:%u %s", frame->file, frame->line, frame->function);
	if (length < 0)
		return WEFT_IDMAP_NONE;
	const size_t known = t->source_sites.texts.count;
	const uint32_t number = weft_intern(&t->source_sites, (struct weft_str){key, (uint32_t)length});
	if (number < known || number == WEFT_INTERN_FAILED) {
		free(key);
		return number < known ? t->site_of_source.items[number] : WEFT_IDMAP_NONE;
	}
	uint32_t *slot = weft_vec_push(&t->site_of_source);
	if (!slot || !weft_vec_reserve(&t->sites, 1) || !weft_vec_reserve(&t->site_modules, 1))
		return WEFT_IDMAP_NONE;
	*slot = (uint32_t)t->sites.count;
	t->site_modules.items[t->site_modules.count++] = SIZE_MAX;
	t->sites.items[t->sites.count++] =
	    (struct weft_site){.file = copy_text(frame->file), .function = copy_text(frame->function), .line = frame->line};
	return *slot;
}

void profile_trace_add_sources(
    struct profile_trace *t, const struct weft_look_source_frame *frames, size_t count, const struct profile_moment *moment)
{
	uint32_t at = WEFT_NO_STACK;
	bool is_kept = count > 0;
	for (size_t i = count; i-- > 0 && is_kept;) {
		const uint32_t site = get_source_site(t, &frames[i]);
		const uint32_t next = site == WEFT_IDMAP_NONE ? WEFT_IDMAP_NONE : get_stack(t, at, site);
		is_kept = next != WEFT_IDMAP_NONE;
		at = next;
	}
	add_sample(t, moment, is_kept, at);
}

static int compare_moments(const void *x, const void *y)
{
	const struct profile_sample *a = x, *b = y;
	return WEFT_ORDER(a->moment.monotonic_ns, b->moment.monotonic_ns) ?: WEFT_ORDER(a->moment.tid, b->moment.tid);
}

/* ---- Writing ---- */

/* Folder of a trace, and the facts that the trace's metadata give. */
struct target {
	int folder;
	struct stat st;
	struct weft_packet_header first; /* of the definitions */
	bool has_counter;                /* whether the trace's clock is the CPU's cycle counter */
};

static bool read_target(struct target *t, const char *session, const char *path)
{
	char *metadata = calloc(1, MAX_METADATA_BYTES);
	t->folder = weft_named_below(session, path);
	const struct weft_named_rule rule = {.owner = WEFT_ANY_OWNER};
	const bool is_read = metadata && t->folder >= 0 && fstat(t->folder, &t->st) == 0 &&
			     weft_named_text(t->folder, "metadata", metadata, MAX_METADATA_BYTES) > 0;
	const int fd = is_read ? weft_named_file(t->folder, "definitions-0", &rule, NULL) : -1;
	t->has_counter =
	    is_read && (strstr(metadata, "\tclock_source = \"tsc\";") || strstr(metadata, "\tclock_source = \"cntvct\";"));
	const bool is_known = is_read && (t->has_counter || strstr(metadata, "\tclock_source = \"monotonic\";"));
	const bool is_there = fd >= 0 && read(fd, &t->first, sizeof t->first) == sizeof t->first &&
			      t->first.mark == WEFT_PACKET_MARK && t->first.clock_hz;
	if (fd >= 0)
		close(fd);
	free(metadata);
	return is_known && is_there;
}

/* Creates a file that belongs to the folder's owner and gets its name when it is complete. */
static void write_file(const struct target *t, const char *name, const void *bytes, size_t size)
{
	static const char hidden[] = ".weft-profile";
	unlinkat(t->folder, hidden, 0);
	const int fd = weft_named_create(t->folder, hidden, t->st.st_uid, t->st.st_gid);
	if (fd < 0)
		return;
	if (write(fd, bytes, size) != (ssize_t)size || renameat(t->folder, hidden, t->folder, name))
		unlinkat(t->folder, hidden, 0);
	close(fd);
}

void profile_trace_write(struct profile_trace *t, const char *session, const char *path, int64_t period_ns)
{
	struct target target = {.folder = -1};
	weft_sort(t->samples.items, t->samples.count, sizeof *t->samples.items, compare_moments);
	struct weft_profile_sample *samples = calloc(t->samples.count + 1, sizeof *samples);
	if (t->samples.count && samples && read_target(&target, session, path)) {
		struct weft_trace_info info = {.sites = t->sites.items,
		    .site_count = t->sites.count,
		    .modules = t->modules.items,
		    .module_count = t->modules.count,
		    .profile = {t->stacks.items, t->stacks.count, samples, t->samples.count, period_ns, t->lost, t->way,
			{t->why ? t->why : "", t->why ? (uint32_t)strlen(t->why) : 0}}};
		for (size_t i = 0; i < t->sites.count; i++)
			if (t->site_modules.items[i] != SIZE_MAX)
				t->sites.items[i].module = &t->modules.items[t->site_modules.items[i]];
		for (size_t i = 0; i < t->samples.count; i++) {
			const struct profile_sample *s = &t->samples.items[i];
			samples[i] = (struct weft_profile_sample){.tid = s->moment.tid,
			    .stack = s->stack,
			    .time_ns = target.has_counter ? weft__ticks_ns(s->moment.counter, target.first.clock_hz)
							  : s->moment.monotonic_ns};
		}
		size_t size;
		unsigned char *packet = weft_profile_packet(&info, target.first.uuid, target.first.clock_hz, &size);
		if (packet)
			write_file(&target, "profile-0", packet, size);
		free(packet);
	}
	if (target.folder >= 0)
		close(target.folder);
	free(samples);
}

void profile_trace_free(struct profile_trace *t)
{
	for (size_t i = 0; i < t->modules.count; i++) {
		free_text(t->modules.items[i].path);
		free_text(t->modules.items[i].build_id);
	}
	for (size_t i = 0; i < t->sites.count; i++) {
		free_text(t->sites.items[i].file);
		free_text(t->sites.items[i].function);
	}
	for (size_t i = 0; i < t->source_sites.texts.count; i++)
		free_text(t->source_sites.texts.items[i]);
	weft_intern_finish(&t->source_sites);
	weft_vec_free(&t->site_of_source);
	weft_vec_free(&t->modules);
	weft_vec_free(&t->sites);
	weft_vec_free(&t->site_modules);
	weft_vec_free(&t->stacks);
	weft_vec_free(&t->samples);
	weft_idmap_finish(&t->site_of);
	weft_idmap_finish(&t->stack_of);
}
