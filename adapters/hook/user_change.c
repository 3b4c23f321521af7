/* user_change.c: lets processes of root continue to record after they change their user.
 *
 * The exported wrappers are of functions that change the user, as called by daemons (named -u bind), setpriv --reuid and
 * programs that start children as other users.  Only root may write to the directory of a session of root.  So a wrapper first
 * makes a folder for the new user in the session's directory, and gives the process's trace to that user.  Many daemons (as
 * lldpd) change their root directory before their user, and then cannot reach the session's directory; so their recording starts
 * at the change of the root.  SPDX-License-Identifier: ISC */
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "adapters/hook/session.h"

#define EXPORTED __attribute__((visibility("default")))

/* Lists the calls: name, parameters, arguments, new user. */
#define CALLS(X)                                                                                                                 \
	X(setuid, (uid_t user), (user), user)                                                                                    \
	X(seteuid, (uid_t user), (user), user)                                                                                   \
	X(setreuid, (uid_t real_user, uid_t user), (real_user, user), user)                                                      \
	X(setresuid, (uid_t real_user, uid_t user, uid_t saved), (real_user, user, saved), user)

/* Pointers to the original functions, looked up early because a child of vfork() may call them. */
static struct {
#define POINTER(NAME, PARAMETERS, ARGUMENTS, USER) int(*NAME) PARAMETERS;
	CALLS(POINTER)
#undef POINTER
	int (*chroot)(const char *path);
} real;

__attribute__((constructor(101))) static void resolve_calls(void)
{
	int saved = errno;
#define RESOLVE(NAME, PARAMETERS, ARGUMENTS, USER) real.NAME = (int(*) PARAMETERS)dlsym(RTLD_NEXT, #NAME);
	CALLS(RESOLVE)
#undef RESOLVE
	real.chroot = (int (*)(const char *))dlsym(RTLD_NEXT, "chroot");
	errno = saved;
}

#define CALL(NAME, PARAMETERS, ARGUMENTS, USER)                                                                                  \
	EXPORTED int NAME PARAMETERS                                                                                             \
	{                                                                                                                        \
		if (!real.NAME)                                                                                                  \
			resolve_calls(); /* another library's constructor called the wrapper first */                            \
		if ((USER) != (uid_t)-1 && (USER) != 0 && geteuid() == 0)                                                        \
			weft__hook_give_to_user(USER);                                                                           \
		return real.NAME ARGUMENTS;                                                                                      \
	}
CALLS(CALL)

EXPORTED int chroot(const char *path)
{
	if (!real.chroot)
		resolve_calls();
	weft__hook_before_chroot();
	return real.chroot(path);
}
