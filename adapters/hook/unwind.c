/* unwind.c: lets exceptions pass through the adapters' wrappers.
 *
 * Wrappers have cleanup code, because exceptions, pthread_exit() and cancellation may leave a callback.  For cleanup code the
 * compiler refers to two functions of the unwinder.  Linking libgcc_s would load it into every process, and a static copy of it
 * would not understand the unwinder that throws.  So the functions in this file call the libgcc_s that is already loaded; the
 * code that throws has loaded it.  SPDX-License-Identifier: ISC */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

/* These declarations replace <unwind.h>, whose inclusion would make this library export the functions. */
enum { CONTINUE_UNWIND = 8 }; /* _URC_CONTINUE_UNWIND */
typedef int personality_fn(int version, int actions, uint64_t class, void *exception, void *context);
typedef void resume_fn(void *exception);

/* ThreadSanitizer would add cleanup code to these two functions, and that code would call the functions themselves. */
__attribute__((no_sanitize_thread)) personality_fn __gcc_personality_v0;
__attribute__((no_sanitize_thread)) resume_fn _Unwind_Resume;

static void *find_unwinder_function(const char *name)
{
	void *library = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD), *found = library ? dlsym(library, name) : NULL;
	if (library)
		dlclose(library);
	return found;
}

int __gcc_personality_v0(int version, int actions, uint64_t class, void *exception, void *context)
{
	personality_fn *real = (personality_fn *)find_unwinder_function("__gcc_personality_v0");
	/* If the program itself contains the unwinder, the exception passes and the wrapper's cleanup is skipped. */
	return real ? real(version, actions, class, exception, context) : CONTINUE_UNWIND;
}

void _Unwind_Resume(void *exception)
{
	resume_fn *real = (resume_fn *)find_unwinder_function("_Unwind_Resume");
	if (real)
		real(exception);
	abort(); /* unreachable: __gcc_personality_v0() has found the library */
}
