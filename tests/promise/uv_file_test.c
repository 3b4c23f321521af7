/* uv_file_test.c: promises for operations on real files and directories.  SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "tests/promise/uv_support.h"

static char directory[64], path[80], other[80];

static int begin_in_directory(void **state)
{
	strcpy(directory, "/tmp/weft-file-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof path, "%s/a", directory);
	snprintf(other, sizeof other, "%s/b", directory);
	return begin(state);
}

static int end_in_directory(void **state)
{
	unlink(path);
	unlink(other);
	int status = rmdir(directory);
	return status | end(state);
}

static struct weft_uv_file *opened(int flags)
{
	struct weft_promise *p = ended(weft_uv_open(uv, path, flags, 0600), 0);
	struct weft_uv_file *file = weft_uv_file_ref(weft_promise_value(p));
	weft_promise_unref(p);
	return file;
}

static void has_size(struct weft_promise *p, uint64_t size)
{
	uv_stat_t *stat = weft_promise_value(ended(p, 0));
	assert_int_equal(stat->st_size, size);
	weft_promise_unref(p);
}

static int open_descriptors(void)
{
	int count = 0;
	for (int fd = 0; fd < 200; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void file_is_written_and_read(void **state)
{
	struct weft_uv_file *file = opened(O_RDWR | O_CREAT);
	assert_int_equal(fcntl(weft_uv_file_descriptor(file), F_GETFD), FD_CLOEXEC);
	ends(weft_uv_file_write(file, "hello", 5, -1), 0);
	ends(weft_uv_file_write(file, " you", 4, -1), 0);
	ends(weft_uv_file_write(file, "J", 1, 0), 0);
	ends(weft_uv_file_write(file, "", 0, 0), 0);
	reads(weft_uv_file_read(file, 100, 0), "Jello you");
	reads(weft_uv_file_read(file, 3, 6), "you");
	reads(weft_uv_file_read(file, 3, 9), "");
	has_size(weft_uv_file_stat(file), 9);
	has_size(weft_uv_stat(uv, path), 9);
	ends(weft_uv_file_sync(file), 0);
	ends(weft_uv_file_truncate(file, 5), 0);
	struct weft_promise *read = weft_uv_file_read(file, 100, 0);
	ends(weft_uv_file_close(file), UV_EBUSY);
	reads(read, "Jello");
	ends(weft_uv_file_close(file), 0);
	assert_int_equal(weft_uv_file_descriptor(file), -1);
	ends(weft_uv_file_read(file, 1, 0), WEFT_PROMISE_CLOSED);
	ends(weft_uv_file_close(file), WEFT_PROMISE_CLOSED);
	weft_uv_file_unref(file);
}

static void directory_listing_has_its_entries(void **state)
{
	struct weft_promise *p = ended(weft_uv_scandir(uv, directory), 0);
	assert_int_equal(((struct weft_uv_entries *)weft_promise_value(p))->count, 0);
	weft_promise_unref(p);
	ends(weft_uv_mkdir(uv, other, 0700), 0);
	weft_uv_file_unref(opened(O_WRONLY | O_CREAT));
	p = ended(weft_uv_scandir(uv, directory), 0);
	struct weft_uv_entries *found = weft_promise_value(p);
	assert_int_equal(found->count, 2);
	assert_string_equal(found->entry[0].name, "a");
	assert_string_equal(found->entry[1].name, "b");
	assert_int_equal(found->entry[0].type, UV_DIRENT_FILE);
	assert_int_equal(found->entry[1].type, UV_DIRENT_DIR);
	weft_promise_unref(p);
	ends(weft_uv_rename(uv, path, other), UV_EISDIR);
	ends(weft_uv_unlink(uv, path), 0);
	ends(weft_uv_rename(uv, other, path), 0);
	ends(weft_uv_rmdir(uv, other), UV_ENOENT);
	ends(weft_uv_rmdir(uv, path), 0);
}

static void realpath_call_follows_symbolic_links(void **state)
{
	char dotted[100], real[PATH_MAX];
	snprintf(dotted, sizeof dotted, "%s/./b", directory);
	weft_uv_file_unref(opened(O_WRONLY | O_CREAT));
	assert_int_equal(symlink("a", other), 0);
	assert_non_null(realpath(path, real));
	struct weft_promise *p = ended(weft_uv_realpath(uv, dotted), 0);
	assert_string_equal(weft_promise_value(p), real);
	weft_promise_unref(p);
	p = ended(weft_uv_lstat(uv, other), 0);
	assert_true(S_ISLNK(((uv_stat_t *)weft_promise_value(p))->st_mode));
	weft_promise_unref(p);
	p = ended(weft_uv_stat(uv, other), 0);
	assert_true(S_ISREG(((uv_stat_t *)weft_promise_value(p))->st_mode));
	weft_promise_unref(p);
}

static void failed_file_call_has_the_error_of_the_system(void **state)
{
	ends(weft_uv_open(uv, "/nowhere/at/all", O_RDONLY, 0), UV_ENOENT);
	ends(weft_uv_stat(uv, "/nowhere/at/all"), UV_ENOENT);
	ends(weft_uv_lstat(uv, "/nowhere/at/all"), UV_ENOENT);
	ends(weft_uv_realpath(uv, "/nowhere/at/all"), UV_ENOENT);
	ends(weft_uv_scandir(uv, "/nowhere/at/all"), UV_ENOENT);
	ends(weft_uv_mkdir(uv, directory, 0700), UV_EEXIST);
	ends(weft_uv_unlink(uv, path), UV_ENOENT);
	struct weft_uv_file *file = opened(O_RDONLY | O_CREAT);
	ends(weft_uv_file_write(file, "x", 1, 0), UV_EBADF);
	ends(weft_uv_file_truncate(file, 1), UV_EINVAL);
	weft_uv_file_unref(file);
	struct weft_promise *open = ended(weft_uv_open(uv, directory, O_RDONLY | O_DIRECTORY, 0), 0);
	ends(weft_uv_file_read(weft_promise_value(open), 1, 0), UV_EISDIR);
	weft_promise_unref(open);
}

/* More operations than the pool has OS threads: the last of them do not run yet. */
#define MANY 40

static void cancellation_leaks_no_descriptor(void **state)
{
	weft_uv_file_unref(opened(O_WRONLY | O_CREAT));
	int before = open_descriptors();
	struct weft_promise *p[MANY];
	for (int i = 0; i < MANY; i++)
		p[i] = weft_uv_open(uv, path, O_RDONLY, 0);
	for (int i = 0; i < MANY; i++)
		cancelled(p[i]);
	run_dry();
	assert_int_equal(open_descriptors(), before);
	/* A cancelled close still closes the file, whether it was cancelled before its start or later. */
	struct weft_uv_file *files[MANY];
	for (int i = 0; i < MANY; i++)
		files[i] = opened(O_RDONLY);
	for (int i = 0; i < MANY; i++)
		p[i] = weft_uv_file_close(files[i]);
	for (int i = 0; i < MANY; i++) {
		cancelled(p[i]);
		weft_uv_file_unref(files[i]);
	}
	run_dry();
	assert_int_equal(open_descriptors(), before);
}

/* The file is closed when its last operation has ended. */
static void file_stays_open_until_its_last_operation_ends(void **state)
{
	int before = open_descriptors();
	struct weft_uv_file *file = opened(O_RDWR | O_CREAT);
	struct weft_promise *write = weft_uv_file_write(file, "abc", 3, 0);
	struct weft_promise *read = weft_uv_file_read(file, 3, 0);
	cancelled(read);
	weft_uv_file_unref(file);
	ends(write, 0);
	run_dry();
	assert_int_equal(open_descriptors(), before);
	has_size(weft_uv_stat(uv, path), 3);
}

static void destroy_ends_all_operations(void **state)
{
	int before = open_descriptors();
	weft_uv_destroy(uv);
	uv = weft_uv_create(NULL);
	struct weft_uv_file *busy = opened(O_RDWR | O_CREAT), *idle = opened(O_RDONLY), *closed = opened(O_RDONLY);
	ends(weft_uv_file_close(closed), 0);
	struct weft_promise *p[] = {
	    weft_uv_file_write(busy, "abc", 3, 0),
	    weft_uv_file_read(busy, 3, 0),
	    weft_uv_file_stat(busy),
	    weft_uv_open(uv, path, O_RDONLY, 0),
	    weft_uv_scandir(uv, directory),
	    weft_uv_realpath(uv, directory),
	};
	weft_uv_destroy(uv);
	for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
		assert_int_equal(weft_promise_state(p[i]), WEFT_PENDING);
		weft_promise_cancel(p[i]);
		weft_promise_unref(p[i]);
	}
	assert_int_equal(weft_uv_file_descriptor(busy), -1);
	assert_int_equal(weft_uv_file_descriptor(idle), -1);
	uv = weft_uv_create(NULL);
	ends(weft_uv_file_read(busy, 1, 0), WEFT_PROMISE_CLOSED);
	weft_uv_file_unref(busy);
	weft_uv_file_unref(idle);
	weft_uv_file_unref(closed);
	assert_int_equal(open_descriptors(), before);
}

/* Allocation n and all later ones fail. */
static void failed_allocation_fails_promises_of_file_calls(void **state)
{
	bool whole = false;
	long n = 0;
	for (; !whole && n < 200; n++) {
		struct weft_uv_file *file = opened(O_RDWR | O_CREAT);
		int before = open_descriptors();
		allocations_left = n;
		struct weft_promise *all[] = {
		    weft_uv_open(uv, path, O_RDONLY, 0),
		    weft_uv_file_read(file, 10, 0),
		    weft_uv_file_write(file, "abc", 3, 0),
		    weft_uv_file_stat(file),
		    weft_uv_file_sync(file),
		    weft_uv_stat(uv, path),
		    weft_uv_realpath(uv, path),
		    weft_uv_scandir(uv, directory),
		};
		run_dry();
		struct weft_promise *closed = weft_uv_file_close(file);
		run_dry();
		allocations_left = -1;
		whole = true;
		for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
			assert_int_not_equal(weft_promise_state(all[i]), WEFT_PENDING);
			whole &= weft_promise_state(all[i]) == WEFT_RESOLVED;
			weft_promise_unref(all[i]);
		}
		whole &= weft_promise_state(closed) == WEFT_RESOLVED;
		weft_promise_unref(closed);
		weft_uv_file_unref(file);
		assert_int_equal(open_descriptors(), before - 1);
		weft_promise_trim();
	}
	assert_true(whole && n > 10);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_in_directory, end_in_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(file_is_written_and_read),
	    TEST(directory_listing_has_its_entries),
	    TEST(realpath_call_follows_symbolic_links),
	    TEST(failed_file_call_has_the_error_of_the_system),
	    TEST(cancellation_leaks_no_descriptor),
	    TEST(file_stays_open_until_its_last_operation_ends),
	    TEST(destroy_ends_all_operations),
	    TEST(failed_allocation_fails_promises_of_file_calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
