/* source.c: makes sources from memory and from archives.  SPDX-License-Identifier: ISC */
#include "trace/source.h"

#include <stdlib.h>
#include <string.h>
#ifndef __wasm__
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "base/search.h"
#include "base/sort.h"
#include "base/vec.h"

#define TAR_BLOCK 512u

typedef WEFT_VEC(struct weft_blob) blob_vec;

void weft__blob_release(struct weft_blob *blob)
{
#ifndef __wasm__
	if (blob->mapped)
		munmap((void *)(uintptr_t)blob->bytes, blob->mapped);
#endif
	if (blob->owner == WEFT_BLOB_HEAP && !blob->mapped)
		free((void *)(uintptr_t)blob->bytes);
	free(blob->data);
	free(blob->name);
	*blob = (struct weft_blob){0};
}

struct weft_span weft__blob_data(const struct weft_blob *blob, size_t at)
{
	if (!blob->data)
		return (struct weft_span){at, blob->size};
	size_t next = WEFT_FIND_FIRST(i, 0, blob->data_count, blob->data[i].end > at);
	if (next == blob->data_count)
		return (struct weft_span){blob->size, blob->size};
	const struct weft_span *span = &blob->data[next];
	return (struct weft_span){span->begin > at ? span->begin : at, span->end};
}

void weft__source_end_reading(struct weft_source *source)
{
#ifndef __wasm__
	if (source->reread && source->file >= 0)
		close(source->file);
#endif
	source->reread = NULL;
	source->reload = NULL;
	source->read = NULL;
}

void weft_source_close(struct weft_source *source)
{
	weft__source_end_reading(source);
	for (size_t i = 0; i < source->blob_count; i++)
		weft__blob_release(&source->blobs[i]);
	free(source->blobs);
	weft__blob_release(&source->archive);
	free(source->notes);
	free(source->name);
	*source = (struct weft_source){0};
}

const struct weft_blob *weft_source_find(const struct weft_source *source, const char *name)
{
	size_t at = WEFT_FIND_FIRST(i, 0, source->blob_count, strcmp(source->blobs[i].name, name) >= 0);
	return at < source->blob_count && strcmp(source->blobs[at].name, name) == 0 ? &source->blobs[at] : NULL;
}

static int compare_names(const void *a, const void *b)
{
	const struct weft_blob *x = a, *y = b;
	/* Two members of an archive may have the same name, so these are sorted by position. */
	return strcmp(x->name, y->name) ?: WEFT_ORDER(x->bytes, y->bytes);
}

void weft__source_sort(struct weft_source *source)
{
	weft_sort(source->blobs, source->blob_count, sizeof *source->blobs, compare_names);
}

bool weft__source_is_tar(const unsigned char *bytes, size_t size)
{
	return size >= TAR_BLOCK && memcmp(bytes + 257, "ustar", 5) == 0;
}

/* Parses a size field of a tar header: octal digits or, if the first bit is set, a big-endian number. */
static uint64_t parse_tar_number(const unsigned char *field, size_t len)
{
	uint64_t value = 0;
	if (field[0] & 0x80) {
		for (size_t i = 1; i < len; i++)
			value = value << 8 | field[i];
		return value;
	}
	for (size_t i = 0; i < len && field[i]; i++)
		if (field[i] >= '0' && field[i] <= '7')
			value = value << 3 | (uint64_t)(field[i] - '0');
	return value;
}

/* Returns the whole name of an archive member, which the caller frees; NULL when out of memory. */
static char *make_tar_name(const unsigned char *header)
{
	size_t name_len = strnlen((const char *)header, 100);
	/* Old GNU headers have times at the place of the ustar prefix. */
	bool has_prefix = header[262] == '\0';
	size_t prefix_len = has_prefix ? strnlen((const char *)header + 345, 155) : 0;
	char *name = malloc(prefix_len + name_len + 2);
	if (!name)
		return NULL;
	memcpy(name, header + 345, prefix_len);
	if (prefix_len)
		name[prefix_len++] = '/';
	memcpy(name + prefix_len, header, name_len);
	name[prefix_len + name_len] = '\0';
	return name;
}

static bool is_below(const char *name, const char *dir, size_t dir_len)
{
	return strncmp(name, dir, dir_len) == 0 && !strchr(name + dir_len, '/');
}

/* Returns the length of the folder in a member's name, with its slash, if the member shows that the folder is a trace;
 * otherwise 0. */
static size_t get_trace_folder_bytes(const struct weft_blob *blob)
{
	const char *slash = strrchr(blob->name, '/');
	return slash && (strcmp(slash + 1, "metadata") == 0 || strcmp(slash + 1, WEFT_PART_FILE) == 0)
		   ? (size_t)(slash + 1 - blob->name)
		   : 0;
}

/* Returns whether two folders, given with their slashes, have the same parent folder. */
static bool has_same_parent(const char *a, size_t a_len, const char *b, size_t b_len)
{
	const char *x = memrchr(a, '/', a_len - 1), *y = memrchr(b, '/', b_len - 1);
	const size_t length = x ? (size_t)(x - a) : 0;
	return length == (y ? (size_t)(y - b) : 0) && memcmp(a, b, length) == 0;
}

/* Keeps the members of one directory of the archive, without the directory in their names, and returns 0.  Returns 1 and keeps
 * all members if there are several traces; returns a negative status when out of memory. */
static int select_directory(blob_vec *blobs)
{
	const struct weft_blob *first = NULL;
	size_t dir_len = 0, retained = 0;
	for (size_t i = 0; i < blobs->count; i++) {
		const size_t length = get_trace_folder_bytes(&blobs->items[i]);
		const bool is_other =
		    length && first && (length != dir_len || memcmp(first->name, blobs->items[i].name, length) != 0);
		if (is_other && has_same_parent(first->name, dir_len, blobs->items[i].name, length))
			return 1;
		if (length && !first) {
			first = &blobs->items[i];
			dir_len = length;
		}
	}
	char *prefix = strndup(first ? first->name : "", dir_len);
	if (!prefix)
		return -1;
	for (size_t i = 0; i < blobs->count; i++) {
		struct weft_blob blob = blobs->items[i];
		if (is_below(blob.name, prefix, dir_len)) {
			memmove(blob.name, blob.name + dir_len, strlen(blob.name + dir_len) + 1);
			blobs->items[retained++] = blob;
		} else
			weft__blob_release(&blob);
	}
	free(prefix);
	blobs->count = retained;
	return 0;
}

static void drop_blobs(blob_vec *blobs)
{
	for (size_t i = 0; i < blobs->count; i++)
		free(blobs->items[i].name);
	weft_vec_free(blobs);
}

/* Unpacks an archive.  Keeps the available part of the last member of a truncated archive. */
static bool unpack_tar(struct weft_source *source, struct weft_blob archive)
{
	blob_vec blobs = {0};
	size_t at = 0;
	while (archive.size - at >= TAR_BLOCK && archive.bytes[at] != 0) {
		const unsigned char *header = archive.bytes + at;
		at += TAR_BLOCK;
		uint64_t size = parse_tar_number(header + 124, 12), left = archive.size - at;
		if (size > left)
			size = left;
		if (header[156] == '0' || header[156] == '\0' || header[156] == '7') {
			struct weft_blob *blob = weft_vec_push(&blobs);
			char *name = blob ? make_tar_name(header) : NULL;
			if (!name) {
				blobs.count -= blob != NULL;
				drop_blobs(&blobs);
				return false;
			}
			*blob = (struct weft_blob){.name = name, .bytes = archive.bytes + at, .size = (size_t)size};
		}
		uint64_t padded = (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
		at += (size_t)(padded > left ? left : padded);
	}
	const int several = select_directory(&blobs);
	if (several < 0) {
		drop_blobs(&blobs);
		return false;
	}
	source->has_folders = several;
	source->is_dir = true;
	source->blobs = blobs.items;
	source->blob_count = blobs.count;
	source->archive = archive;
	weft__source_sort(source);
	return true;
}

int weft__source_from_blob(struct weft_source *out, struct weft_blob blob, const char *name, struct weft_error *err)
{
	struct weft_source source = {.name = strdup(name)};
	bool ok = source.name != NULL;
	if (ok && weft__source_is_tar(blob.bytes, blob.size))
		ok = unpack_tar(&source, blob);
	else if (ok) {
		source.blobs = malloc(sizeof *source.blobs);
		blob.name = strdup(name);
		ok = source.blobs && blob.name;
		if (ok) {
			source.blobs[0] = blob;
			source.blob_count = 1;
		}
	}
	if (!ok) {
		free(source.blobs);
		free(source.name);
		weft__blob_release(&blob);
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	*out = source;
	return WEFT_OK;
}

int weft_source_from_memory(struct weft_source *out, const void *bytes, size_t size, const char *name, struct weft_error *err)
{
	struct weft_blob blob = {.bytes = size ? bytes : (const unsigned char *)"", .size = size, .owner = WEFT_BLOB_BORROWED};
	return weft__source_from_blob(out, blob, name, err);
}

static bool reread_memory(const struct weft_source *source, const struct weft_blob *blob, uint64_t offset, void *to, size_t bytes)
{
	return offset <= blob->size && bytes <= blob->size - offset && source->read(source->read_ctx, offset, to, bytes);
}

int weft__source_from_reader(
    struct weft_source *out, weft_source_read_fn *read, void *ctx, size_t size, const char *name, struct weft_error *err)
{
	unsigned char *bytes = malloc(size ? size : 1);
	if (!bytes)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	if (!read(ctx, 0, bytes, size)) {
		free(bytes);
		return weft_error_set(err, WEFT_EIO, "%s", weft_status_string(WEFT_EIO));
	}
	struct weft_blob blob = {.bytes = bytes, .size = size, .owner = WEFT_BLOB_HEAP};
	struct weft_source source = {0};
	int status = weft__source_from_blob(&source, blob, name, err);
	if (status < 0)
		return status;
	if (!source.is_dir) {
		source.reread = reread_memory;
		source.file = -1;
		source.read = read;
		source.read_ctx = ctx;
	}
	*out = source;
	return WEFT_OK;
}
