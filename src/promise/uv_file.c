/* uv_file.c: makes promises for operations on files and directories, on libuv's thread pool.  SPDX-License-Identifier: ISC */
#include "promise/loop.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct weft_uv_file {
	struct weft__uv_object object; /* while it is open */
	unsigned refs, busy;           /* busy: number of jobs that are using the file */
	bool ending;                   /* whether weft_uv_destroy() was called, so that the file is closed when it is not busy */
	uv_file fd;                    /* -1: closed */
};

struct fs {
	struct weft__job job;
	uv_fs_t request;
	struct weft_uv_file *file;
	struct weft_uv_bytes *bytes; /* buffer with the bytes to read or write */
	size_t done;                 /* bytes written so far */
	int64_t offset;
	uv_file closing; /* descriptor to close */
};

/* ---- Files ---- */

/* Marks the file as closed; the caller closes the returned descriptor. */
static uv_file detach_fd(struct weft_uv_file *file)
{
	uv_file fd = file->fd;
	file->fd = -1;
	weft__uv_object_closed(&file->object);
	return fd;
}

static void end_file(struct weft__uv_object *object)
{
	struct weft_uv_file *file = (struct weft_uv_file *)object;
	weft__uv_object_unlist(object);
	file->ending = true;
	if (!file->busy)
		close(detach_fd(file));
}

struct weft_uv_file *weft_uv_file_ref(struct weft_uv_file *file)
{
	file->refs++;
	return file;
}

void weft_uv_file_unref(void *ctx)
{
	struct weft_uv_file *file = ctx;
	if (!file || --file->refs > 0)
		return;
	if (file->fd >= 0)
		close(detach_fd(file));
	free(file);
}

int weft_uv_file_descriptor(const struct weft_uv_file *file)
{
	return file->fd;
}

int weft__file_use(struct weft_uv_file *file)
{
	if (file->fd < 0 || file->ending)
		return -1;
	file->refs++;
	file->busy++;
	return file->fd;
}

void weft__file_release(struct weft_uv_file *file)
{
	if (--file->busy == 0 && file->ending && file->fd >= 0)
		close(detach_fd(file));
	weft_uv_file_unref(file);
}

/* ---- Requests ---- */

static struct fs *start_request(struct weft_record_site *site, struct weft_uv *uv, const char *label, struct weft_promise **p)
{
	return weft__job_start(site, uv, WEFT_KIND_FS, label, sizeof(struct fs), offsetof(struct fs, request), p);
}

/* Starts a file request, with the path in its label. */
static struct fs *start_path_request(
    struct weft_record_site *site, struct weft_uv *uv, const char *verb, const char *path, struct weft_promise **p)
{
	char label[256];
	/* The label is built by hand, because snprintf() would cost more than all recorder calls of this operation. */
	if (weft_is_on()) {
		char *at = stpcpy(stpcpy(label, verb), " ");
		size_t bytes = strnlen(path, (size_t)(label + sizeof label - at) - 1);
		memcpy(at, path, bytes);
		at[bytes] = '\0';
	}
	return start_request(site, uv, weft_is_on() ? label : NULL, p);
}

/* Starts a request on an open file. */
static struct fs *start_file_request(
    struct weft_record_site *site, struct weft_uv_file *file, const char *label, struct weft_promise **p)
{
	if (weft__file_use(file) < 0) {
		*p = weft__uv_failed(WEFT_PROMISE_CLOSED);
		return NULL;
	}
	struct fs *fs = start_request(site, file->object.uv, label, p);
	if (fs)
		fs->file = file;
	else
		weft__file_release(file);
	return fs;
}

static void finish_request(struct fs *fs, int status, void *value, weft_destroy_fn *destroy)
{
	if (fs->file)
		weft__file_release(fs->file);
	free(fs->bytes);
	uv_fs_req_cleanup(&fs->request);
	weft__job_end(&fs->job, status, value, destroy);
}

/* Finishes a request that libuv refused, because libuv does not call back for it. */
static struct weft_promise *finish_if_failed(struct fs *fs, int status, struct weft_promise *p)
{
	if (status < 0)
		finish_request(fs, status, NULL, NULL);
	return p;
}

/* Finishes a request with a copy of the value, unless the request failed. */
static void finish_with_copy(struct fs *fs, const void *value, size_t bytes)
{
	int status = (int)fs->request.result;
	void *copy = status < 0 ? NULL : malloc(bytes);
	if (copy)
		memcpy(copy, value, bytes);
	else if (status >= 0)
		status = WEFT_PROMISE_ENOMEM;
	finish_request(fs, status, copy, free);
}

static void on_done(uv_fs_t *request)
{
	finish_request(request->data, (int)request->result, NULL, NULL);
}

/* ---- Opening and closing ---- */

static void on_opened(uv_fs_t *request)
{
	struct fs *fs = request->data;
	int status = (int)request->result;
	struct weft_uv_file *file = status < 0 ? NULL : calloc(1, sizeof *file);
	if (file) {
		file->refs = 1;
		file->fd = status;
		weft__uv_object_add(fs->job.object.uv, &file->object, end_file);
	} else if (status >= 0) {
		close(status);
		status = WEFT_PROMISE_ENOMEM;
	}
	finish_request(fs, status, file, weft_uv_file_unref);
}

struct weft_promise *weft__uv_open(struct weft_record_site *site, struct weft_uv *uv, const char *path, int flags, int mode)
{
	struct weft_promise *p;
	struct fs *fs = start_path_request(site, uv, "open", path, &p);
	return fs ? finish_if_failed(fs, uv_fs_open(uv->loop, &fs->request, path, flags | O_CLOEXEC, mode, on_opened), p) : p;
}

static void on_closed(uv_fs_t *request)
{
	struct fs *fs = request->data;
	/* UV_ECANCELED means that the job was cancelled before it ran. */
	if (request->result == UV_ECANCELED)
		close(fs->closing);
	finish_request(fs, (int)request->result, NULL, NULL);
}

struct weft_promise *weft__uv_file_close(struct weft_record_site *site, struct weft_uv_file *file)
{
	struct weft_promise *p;
	if (file->busy)
		return weft__uv_failed(UV_EBUSY);
	struct fs *fs = start_file_request(site, file, "close", &p);
	if (!fs)
		return p;
	uv_loop_t *loop = file->object.uv->loop;
	fs->closing = detach_fd(file);
	uv_fs_close(loop, &fs->request, fs->closing, on_closed); /* uv_fs_close() fails only if there is no memory for a path */
	return p;
}

/* ---- Reading and writing ---- */

static void on_read(uv_fs_t *request)
{
	struct fs *fs = request->data;
	struct weft_uv_bytes *bytes = fs->bytes;
	int status = request->result < 0 ? (int)request->result : 0;
	bytes->size = status == 0 ? (size_t)request->result : 0;
	fs->bytes = NULL;
	finish_request(fs, status, bytes, free);
}

struct weft_promise *weft__uv_file_read(
    struct weft_record_site *site, struct weft_uv_file *file, size_t most_bytes, int64_t offset)
{
	struct weft_promise *p;
	struct fs *fs = start_file_request(site, file, "read", &p);
	if (!fs)
		return p;
	uv_loop_t *loop = file->object.uv->loop;
	fs->bytes = malloc(sizeof *fs->bytes + most_bytes);
	if (!fs->bytes)
		return finish_if_failed(fs, WEFT_PROMISE_ENOMEM, p);
	uv_buf_t buf = {.base = fs->bytes->data, .len = most_bytes};
	return finish_if_failed(fs, uv_fs_read(loop, &fs->request, file->fd, &buf, 1, offset, on_read), p);
}

static int write_rest(struct fs *fs);

static void on_written(uv_fs_t *request)
{
	struct fs *fs = request->data;
	int status = request->result < 0 ? (int)request->result : 0;
	if (status == 0)
		fs->done += (size_t)request->result;
	bool more = status == 0 && fs->done < fs->bytes->size && !fs->job.cancelled;
	if (more) {
		uv_fs_req_cleanup(request);
		status = write_rest(fs);
	}
	if (!more || status < 0)
		finish_request(fs, status, NULL, NULL);
}

static int write_rest(struct fs *fs)
{
	uv_buf_t buf = {.base = fs->bytes->data + fs->done, .len = fs->bytes->size - fs->done};
	int64_t offset = fs->offset < 0 ? -1 : fs->offset + (int64_t)fs->done;
	return uv_fs_write(fs->job.object.uv->loop, &fs->request, fs->file->fd, &buf, 1, offset, on_written);
}

struct weft_promise *weft__uv_file_write(
    struct weft_record_site *site, struct weft_uv_file *file, const void *bytes, size_t size, int64_t offset)
{
	struct weft_promise *p;
	struct fs *fs = start_file_request(site, file, "write", &p);
	if (!fs)
		return p;
	fs->bytes = malloc(sizeof *fs->bytes + size);
	if (!fs->bytes)
		return finish_if_failed(fs, WEFT_PROMISE_ENOMEM, p);
	fs->bytes->size = size;
	if (size > 0)
		memcpy(fs->bytes->data, bytes, size);
	fs->offset = offset;
	return finish_if_failed(fs, write_rest(fs), p);
}

struct weft_promise *weft__uv_file_sync(struct weft_record_site *site, struct weft_uv_file *file)
{
	struct weft_promise *p;
	struct fs *fs = start_file_request(site, file, "sync", &p);
	return fs ? finish_if_failed(fs, uv_fs_fsync(fs->job.object.uv->loop, &fs->request, file->fd, on_done), p) : p;
}

struct weft_promise *weft__uv_file_truncate(struct weft_record_site *site, struct weft_uv_file *file, int64_t size)
{
	struct weft_promise *p;
	struct fs *fs = start_file_request(site, file, "truncate", &p);
	return fs ? finish_if_failed(fs, uv_fs_ftruncate(fs->job.object.uv->loop, &fs->request, file->fd, size, on_done), p) : p;
}

/* ---- Queries ---- */

static void on_stat(uv_fs_t *request)
{
	finish_with_copy(request->data, &request->statbuf, sizeof request->statbuf);
}

struct weft_promise *weft__uv_file_stat(struct weft_record_site *site, struct weft_uv_file *file)
{
	struct weft_promise *p;
	struct fs *fs = start_file_request(site, file, "stat", &p);
	return fs ? finish_if_failed(fs, uv_fs_fstat(fs->job.object.uv->loop, &fs->request, file->fd, on_stat), p) : p;
}

struct weft_promise *weft__uv_stat(struct weft_record_site *site, struct weft_uv *uv, const char *path)
{
	struct weft_promise *p;
	struct fs *fs = start_path_request(site, uv, "stat", path, &p);
	return fs ? finish_if_failed(fs, uv_fs_stat(uv->loop, &fs->request, path, on_stat), p) : p;
}

struct weft_promise *weft__uv_lstat(struct weft_record_site *site, struct weft_uv *uv, const char *path)
{
	struct weft_promise *p;
	struct fs *fs = start_path_request(site, uv, "lstat", path, &p);
	return fs ? finish_if_failed(fs, uv_fs_lstat(uv->loop, &fs->request, path, on_stat), p) : p;
}

static void on_real_path(uv_fs_t *request)
{
	const char *real = request->result < 0 ? "" : request->ptr;
	finish_with_copy(request->data, real, strlen(real) + 1);
}

struct weft_promise *weft__uv_realpath(struct weft_record_site *site, struct weft_uv *uv, const char *path)
{
	struct weft_promise *p;
	struct fs *fs = start_path_request(site, uv, "realpath", path, &p);
	return fs ? finish_if_failed(fs, uv_fs_realpath(uv->loop, &fs->request, path, on_real_path), p) : p;
}

/* ---- Directories ---- */

static void on_scanned(uv_fs_t *request)
{
	struct fs *fs = request->data;
	int status = request->result < 0 ? (int)request->result : 0;
	size_t count = status == 0 ? (size_t)request->result : 0;
	struct weft_uv_entries *found = NULL;
	uv_dirent_t next;
	if (status == 0 && !(found = calloc(1, sizeof *found + count * sizeof *found->entry)))
		status = WEFT_PROMISE_ENOMEM;
	/* The directory is read to its end, because libuv frees the last entry only then. */
	while (uv_fs_scandir_next(request, &next) == 0) {
		if (!found || found->count == count)
			continue;
		struct weft_uv_entry *entry = &found->entry[found->count++];
		entry->type = next.type;
		snprintf(entry->name, sizeof entry->name, "%s", next.name);
	}
	finish_request(fs, status, found, free);
}

struct weft_promise *weft__uv_scandir(struct weft_record_site *site, struct weft_uv *uv, const char *path)
{
	struct weft_promise *p;
	struct fs *fs = start_path_request(site, uv, "scandir", path, &p);
	return fs ? finish_if_failed(fs, uv_fs_scandir(uv->loop, &fs->request, path, 0, on_scanned), p) : p;
}

struct weft_promise *weft__uv_mkdir(struct weft_record_site *site, struct weft_uv *uv, const char *path, int mode)
{
	struct weft_promise *p;
	struct fs *fs = start_path_request(site, uv, "mkdir", path, &p);
	return fs ? finish_if_failed(fs, uv_fs_mkdir(uv->loop, &fs->request, path, mode, on_done), p) : p;
}

struct weft_promise *weft__uv_rmdir(struct weft_record_site *site, struct weft_uv *uv, const char *path)
{
	struct weft_promise *p;
	struct fs *fs = start_path_request(site, uv, "rmdir", path, &p);
	return fs ? finish_if_failed(fs, uv_fs_rmdir(uv->loop, &fs->request, path, on_done), p) : p;
}

struct weft_promise *weft__uv_unlink(struct weft_record_site *site, struct weft_uv *uv, const char *path)
{
	struct weft_promise *p;
	struct fs *fs = start_path_request(site, uv, "unlink", path, &p);
	return fs ? finish_if_failed(fs, uv_fs_unlink(uv->loop, &fs->request, path, on_done), p) : p;
}

struct weft_promise *weft__uv_rename(struct weft_record_site *site, struct weft_uv *uv, const char *from, const char *to)
{
	struct weft_promise *p;
	struct fs *fs = start_path_request(site, uv, "rename", from, &p);
	return fs ? finish_if_failed(fs, uv_fs_rename(uv->loop, &fs->request, from, to, on_done), p) : p;
}
