/* user.c: processes that root began and that become another user.
 *
 * A daemon (named -u bind), setpriv --reuid, and what starts a child as somebody else, call one of these functions of libc, which
 * are taken by symbol.  The directory of a session of root's is root's alone.  So what has to be done for the new user to record
 * is done before the change: there is a folder of that user's in the session, and a trace that has begun becomes the user's.
 * Many of them leave for another root first (lldpd), where no session is to be found: they begin before that.
 * SPDX-License-Identifier: ISC */
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "adapters/hook/load.h"

#define TAKEN __attribute__((visibility("default")))

/* Name, parameters, arguments, the user that it becomes. */
#define CALLS(X)                                                                                                                 \
	X(setuid, (uid_t user), (user), user)                                                                                    \
	X(seteuid, (uid_t user), (user), user)                                                                                   \
	X(setreuid, (uid_t real_user, uid_t user), (real_user, user), user)                                                      \
	X(setresuid, (uid_t real_user, uid_t user, uid_t saved), (real_user, user, saved), user)

/* What each continues in: looked up early, since a child of vfork() may call it. */
static struct {
#define POINTER(NAME, PARAMETERS, ARGUMENTS, USER) int(*NAME) PARAMETERS;
	CALLS(POINTER)
#undef POINTER
	int (*chroot)(const char *path);
} real;

__attribute__((constructor(101))) static void resolve(void)
{
	int saved = errno;
#define RESOLVE(NAME, PARAMETERS, ARGUMENTS, USER) real.NAME = (int(*) PARAMETERS)dlsym(RTLD_NEXT, #NAME);
	CALLS(RESOLVE)
#undef RESOLVE
	real.chroot = (int (*)(const char *))dlsym(RTLD_NEXT, "chroot");
	errno = saved;
}

#define CALL(NAME, PARAMETERS, ARGUMENTS, USER)                                                                                  \
	TAKEN int NAME PARAMETERS                                                                                                \
	{                                                                                                                        \
		if (!real.NAME)                                                                                                  \
			resolve(); /* another library's constructor ran first */                                                 \
		if ((USER) != (uid_t)-1 && (USER) != 0 && geteuid() == 0)                                                        \
			weft__hook_give(USER);                                                                                   \
		return real.NAME ARGUMENTS;                                                                                      \
	}
CALLS(CALL)

TAKEN int chroot(const char *path)
{
	if (!real.chroot)
		resolve();
	weft__hook_leaves_root();
	return real.chroot(path);
}
