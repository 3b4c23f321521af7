/* confine_test.c: a process that parses untrusted files can only read, allocate and exit.
 * SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/confine.h"

enum { MEMORY_BYTES = 64 << 20, HAS_NO_FILTER = 77 };

/* Tries actions that a parser needs and actions that it must not do; returns the number of the first action with a wrong result.
 */
static int try_all(int file, int other)
{
	char byte;
	void *large = malloc((size_t)MEMORY_BYTES / 4);
	if (pread(file, &byte, 1, 0) != 1 || byte != 0x7f)
		return 1;
	if (!large)
		return 2;
	free(large);
	if (write(other, "x", 1) != -1 || errno != EBADF)
		return 3;
	if (open("/proc/self/exe", O_RDONLY) != -1 || errno != EPERM)
		return 4;
	if (socket(AF_INET, SOCK_STREAM, 0) != -1 || errno != EPERM)
		return 5;
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) != MAP_FAILED || errno != EPERM)
		return 6;
	if (kill(getpid(), 0) != -1 || errno != EPERM)
		return 7;
	if (execl("/bin/true", "true", (char *)NULL) != -1 || errno != EPERM)
		return 8;
	return 0;
}

static void confined_process_only_reads_and_allocates(void **state)
{
	(void)state;
	const int file = open("/proc/self/exe", O_RDONLY), other = open("/dev/null", O_WRONLY);
	int status;
	assert_true(file > 2 && other > 2);
	const pid_t child = fork();
	if (child == 0) {
		weft_confine_descriptors(&file, 1);
		if (!weft_confine(MEMORY_BYTES, false))
			_exit(HAS_NO_FILTER);
		_exit(try_all(file, other));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == HAS_NO_FILTER)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
	close(file);
	close(other);
}

static void confined_reader_opens_files_but_changes_none(void **state)
{
	(void)state;
	int status;
	const pid_t child = fork();
	if (child == 0) {
		if (!weft_confine((size_t)4 << 30, true))
			_exit(HAS_NO_FILTER);
		if (open("/proc/self/exe", O_RDONLY) < 0)
			_exit(1);
		if (open("/dev/null", O_WRONLY) != -1 || errno != EPERM)
			_exit(2);
		_exit(socket(AF_INET, SOCK_STREAM, 0) == -1 && errno == EPERM ? 0 : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == HAS_NO_FILTER)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(confined_process_only_reads_and_allocates),
	    cmocka_unit_test(confined_reader_opens_files_but_changes_none),
	};
	return cmocka_run_group_tests_name("confine", tests, NULL, NULL);
}
