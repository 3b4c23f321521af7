/* places.c [MODULE...]: creates promises at addresses of machine code, like a recorder of programs without source: in exported
 * functions, in other functions, and in functions of each module, which it loads, calls and unloads in turn.
 * SPDX-License-Identifier: ISC */
#include <dlfcn.h>
#include <stdio.h>
#include <weft/record.h>

#include "places.h"

__attribute__((noinline)) void places_create(const char *label)
{
	struct weft_record_place place = {.address = __builtin_return_address(0)};
	weft_id promise = weft_create_at(WEFT_SYSTEM_ID, WEFT_KIND_REQUEST, &place);
	const void *const callers[] = {__builtin_return_address(0)};
	weft_label(promise, label);
	weft_stack(promise, callers, 1);
	weft_resolve(promise, promise);
}

/* Each function is separate, so that none is inlined, and its call is not a tail call: otherwise the trace would name the caller
 * of the caller. */
#define FUNCTION(name, storage)                                                                                                  \
	storage __attribute__((noinline)) int name(int n)                                                                        \
	{                                                                                                                        \
		places_create(#name);                                                                                            \
		__asm__ volatile("");                                                                                            \
		return n + 1;                                                                                                    \
	}

__attribute__((visibility("default"))) int places_exported(int n);

FUNCTION(places_exported, )
FUNCTION(hidden_one, static)
FUNCTION(hidden_two, static)

int main(int argc, char **argv)
{
	int n = places_exported(0) + hidden_one(0) + hidden_two(0);
	for (int i = 1; i < argc; i++) {
		void *module = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		if (!module) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		places_work *work = (places_work *)(uintptr_t)dlsym(module, "places_work_here");
		n += work(places_create);
		dlclose(module);
	}
	return n < 3;
}
