/* hot_function.c: see hot_function.h.  SPDX-License-Identifier: ISC */
#include "analysis/index/hot_function.h"

#include <stdlib.h>
#include <string.h>

#include "wire/profile.h"

enum { MIN_SAMPLES = 5, MOST_PERCENT = 60, MAX_FRAMES = 64 };

/* Which functions are those of the program.  A stripped program has names for few of its functions, and some programs keep all
 * of their code in libraries that a distribution installed. */
enum own { OWN_NAMED, OWN_ANY, OWN_LIBRARY, OWN_COUNT };

/* The program's functions in one stack sample, the outermost first; a recursive function is listed once. */
struct chain {
	uint32_t sites[MAX_FRAMES];
	bool is_called_by_library[MAX_FRAMES];
	size_t count;
};

static bool starts_with(struct weft_str text, const char *start)
{
	const size_t size = strlen(start);
	return text.len >= size && memcmp(text.ptr, start, size) == 0;
}

static bool contains(struct weft_str text, const char *part)
{
	return text.len && memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

/* Returns whether a source location is in the program's own file, or in a library or source file that no distribution
 * installed. */
static bool is_program(const struct weft_site *site)
{
	static const char *const system_folders[] = {"/lib", "/usr/lib", "/usr/local/lib", "<", "node:"};
	const struct weft_module *module = site->module;
	const struct weft_str path = module ? module->path : site->file;
	if (module && module->role != WEFT_PROFILE_LIBRARY)
		return module->role == WEFT_PROFILE_PROGRAM;
	for (size_t i = 0; i < sizeof system_folders / sizeof *system_folders; i++)
		if (starts_with(path, system_folders[i]))
			return false;
	if (!module)
		return path.len && !contains(path, "/lib/python3") && !contains(path, "/dist-packages/") &&
		       !contains(path, "/node_modules/");
	return path.len && path.ptr[0] == '/' && !starts_with(weft_module_short_name(module), "libweft-");
}

/* Inlined code of a header has the name of the function that contains it, but its own file. */
static bool is_same_function(const struct weft_site *a, const struct weft_site *b)
{
	return a == b || (a->module == b->module && a->function.len && weft_str_equal(a->function, b->function) &&
			     (a->module || weft_str_equal(a->file, b->file)));
}

/* A function that has no name is called "module+0x123". */
static bool is_named(const struct weft_site *site)
{
	return site->line || (site->function.len && !contains(site->function, "+0x"));
}

/* Returns whether a source location is in a library other than those that run all programs. */
static bool is_library(const struct weft_site *site)
{
	static const char *const runtimes[] = {
	    "libc", "libm", "libpthread", "libuv", "libev", "libsystemd", "libstdc++", "libgcc_s"};
	static const char *const families[] = {
	    "ld-linux", "libglib", "libgobject", "libgio", "libevent", "libweft-", "[", "linux-vdso"};
	const struct weft_str name = weft_module_short_name(site->module);
	for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
		if (weft_str_equal(name, (struct weft_str){runtimes[i], (uint32_t)strlen(runtimes[i])}))
			return false;
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		if (starts_with(name, families[i]))
			return false;
	return site->module && site->module->role == WEFT_PROFILE_LIBRARY && is_named(site);
}

static bool is_own(const struct weft_site *site, enum own own)
{
	if (own == OWN_LIBRARY)
		return is_library(site);
	return is_program(site) && (own == OWN_ANY || is_named(site));
}

static void read_chain(
    struct chain *out, const struct weft_trace_info *info, const struct weft_profile_stack *stacks, uint32_t stack, enum own own)
{
	uint32_t frames[MAX_FRAMES];
	size_t depth = 0;
	/* The outermost frames of a deep stack are left out. */
	for (uint32_t at = stack; at != WEFT_NO_STACK && depth < MAX_FRAMES; at = stacks[at].caller)
		if (stacks[at].site != WEFT_NO_SITE)
			frames[depth++] = stacks[at].site;
	bool is_after_library = true;
	out->count = 0;
	while (depth-- > 0) {
		const uint32_t site = frames[depth];
		if (!is_own(&info->sites[site], own)) {
			is_after_library = true;
			continue;
		}
		/* For a recursive function, the line of its innermost call counts. */
		if (out->count && is_same_function(&info->sites[out->sites[out->count - 1]], &info->sites[site])) {
			out->sites[out->count - 1] = site;
		} else {
			out->is_called_by_library[out->count] = is_after_library;
			out->sites[out->count++] = site;
		}
		is_after_library = false;
	}
}

static bool has_function(const struct weft_model *m, const struct chain *chain, size_t level, uint32_t site)
{
	return level < chain->count && is_same_function(&m->trace->sites[chain->sites[level]], &m->trace->sites[site]);
}

/* Returns a source location in the function that most stacks have at a level, if one function has a majority; otherwise the
 * location of any of them, or WEFT_NONE. */
static uint32_t find_majority(const struct weft_model *m, const struct chain *chains, size_t count, size_t level)
{
	uint32_t found = WEFT_NONE;
	size_t lead = 0;
	for (size_t i = 0; i < count; i++) {
		const bool is_deep = level < chains[i].count;
		const bool is_same = found == WEFT_NONE ? !is_deep : has_function(m, &chains[i], level, found);
		if (!lead)
			found = is_deep ? chains[i].sites[level] : WEFT_NONE;
		lead = lead && !is_same ? lead - 1 : lead + 1;
	}
	return found;
}

/* Moves the stacks that have a given function at a level to the front.  Returns their number. */
static size_t keep_chains(const struct weft_model *m, struct chain *chains, size_t count, size_t level, uint32_t site)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (has_function(m, &chains[i], level, site))
			chains[kept++] = chains[i];
	return kept;
}

/* Returns the source location that most stacks have at a level, if possible outside the headers of the system. */
static uint32_t find_usual_place(const struct weft_model *m, const struct chain *chains, size_t count, size_t level)
{
	uint32_t best = chains[0].sites[level];
	size_t most = 0;
	bool is_own = false;
	for (size_t i = 0; i < count; i++) {
		const uint32_t site = chains[i].sites[level];
		const bool is_header = starts_with(m->trace->sites[site].file, "/usr/include/");
		size_t same = 0;
		for (size_t k = i; k < count; k++)
			same += chains[k].sites[level] == site;
		if ((!is_header && !is_own) || (is_header != is_own && same > most)) {
			most = same;
			best = site;
			is_own = !is_header;
		}
	}
	return best;
}

static bool is_main(const struct weft_model *m, uint32_t site)
{
	return weft_str_equal(m->trace->sites[site].function, (struct weft_str){"main", 4});
}

/* Finds the deepest function that is in most samples, among the functions that count as those of the program. */
static void find_function(struct weft__hot_function *out, const struct weft_model *m, const struct weft_stack_sample *samples,
    size_t stride, struct chain *chains, enum own own)
{
	const size_t all = out->samples;
	size_t count = all;
	out->site = out->caller = WEFT_NONE;
	for (size_t i = 0; i < all; i++)
		read_chain(&chains[i], m->trace, m->trace->profile.stacks, samples[i * stride].stack, own);
	for (size_t level = 0; level < MAX_FRAMES; level++) {
		const uint32_t site = find_majority(m, chains, count, level);
		const size_t kept = site == WEFT_NONE ? 0 : keep_chains(m, chains, count, level, site);
		if (!kept || kept * 100 < all * MOST_PERCENT)
			break;
		out->inside = count = kept;
		out->site = find_usual_place(m, chains, count, level);
		if (chains[0].is_called_by_library[level])
			out->caller = out->site;
	}
	/* In a program with its own event loop, every function is called from that loop, so such a caller says nothing. */
	if (out->caller != WEFT_NONE &&
	    (is_main(m, out->caller) || is_same_function(&m->trace->sites[out->caller], &m->trace->sites[out->site])))
		out->caller = WEFT_NONE;
}

int weft__hot_function_find(
    struct weft__hot_function *out, const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns)
{
	size_t all;
	/* number of samples of one interval that are read: more samples would not change the shares */
	enum { MAX_SAMPLES = 256 };
	const struct weft_stack_sample *samples = weft_model_samples(m, stream, from_ns, to_ns, &all);
	const size_t stride = (all + MAX_SAMPLES - 1) / MAX_SAMPLES;
	all /= stride ? stride : 1;
	if (all < MIN_SAMPLES)
		return 0;
	struct chain *chains = malloc(all * sizeof *chains);
	if (!chains)
		return WEFT_ENOMEM;
	*out = (struct weft__hot_function){.samples = all, .site = WEFT_NONE};
	/* main() is in every sample of its thread, so it is the answer only if there is no other. */
	for (int own = OWN_NAMED; own < OWN_COUNT && (out->site == WEFT_NONE || is_main(m, out->site)); own++) {
		struct weft__hot_function found = {.samples = all};
		find_function(&found, m, samples, stride, chains, (enum own)own);
		*out = found.site == WEFT_NONE ? *out : found;
	}
	free(chains);
	return out->site != WEFT_NONE;
}

/* Returns whether a function only allocates for its callers, as xmalloc() and the containers of C++ do. */
static bool is_allocator(const struct weft_site *site)
{
	return contains(site->function, "alloc") || contains(site->function, "strdup") ||
	       starts_with(site->file, "/usr/include/") || starts_with(site->file, "/rustc/");
}

uint32_t weft__find_allocating_site(const struct weft_trace_info *info, uint32_t stack)
{
	struct chain chain;
	for (int own = OWN_NAMED; own < OWN_COUNT; own++) {
		read_chain(&chain, info, info->memory.stacks, stack, (enum own)own);
		size_t at = chain.count;
		while (at > 1 && is_allocator(&info->sites[chain.sites[at - 1]]))
			at--;
		if (at > 0)
			return chain.sites[at - 1];
	}
	while (stack != WEFT_NO_STACK && info->memory.stacks[stack].site == WEFT_NO_SITE)
		stack = info->memory.stacks[stack].caller;
	return stack == WEFT_NO_STACK ? WEFT_NONE : info->memory.stacks[stack].site;
}
