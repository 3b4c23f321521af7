/* unwind.c: exceptions that pass through wrappers.
 *
 * A wrapper has a cleanup, for callbacks that are left by an exception, by pthread_exit() or a cancellation.  The compiler then
 * refers to two functions of the unwinder.  Linking libgcc_s would load it into every process, and a copy of our own does not
 * understand the unwinder that throws.  So what is loaded already serves: whoever throws brought it. SPDX-License-Identifier: ISC
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

/* As <unwind.h> has them, which would export them from here: then they were everybody's. */
enum { CONTINUE_UNWIND = 8 }; /* _URC_CONTINUE_UNWIND */
typedef int personality(int version, int actions, uint64_t class, void *exception, void *context);
typedef void resume(void *exception);

/* ThreadSanitizer would clean up after them, by a call of them. */
__attribute__((no_sanitize_thread)) personality __gcc_personality_v0;
__attribute__((no_sanitize_thread)) resume _Unwind_Resume;

static void *find(const char *name)
{
	void *library = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD), *found = library ? dlsym(library, name) : NULL;
	if (library)
		dlclose(library);
	return found;
}

int __gcc_personality_v0(int version, int actions, uint64_t class, void *exception, void *context)
{
	personality *real = (personality *)find("__gcc_personality_v0");
	/* The unwinder of a program that has its own inside: the exception passes, the cleanup is left out. */
	return real ? real(version, actions, class, exception, context) : CONTINUE_UNWIND;
}

void _Unwind_Resume(void *exception)
{
	resume *real = (resume *)find("_Unwind_Resume");
	if (real)
		real(exception);
	abort(); /* the personality function found it a moment ago */
}
