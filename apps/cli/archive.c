/* archive.c: writes tar archives, compressed by zstd.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "trace/source.h"
#ifdef WEFT_HAS_ZSTD
#include <zstd.h>
#endif

int cli_tar_write(
    int (*write)(void *ctx, const void *bytes, size_t size), void *ctx, const char *name, const void *bytes, size_t size)
{
	char header[CLI_TAR_BLOCK] = {0};
	const char zeros[CLI_TAR_BLOCK] = {0};
	unsigned sum = 0;
	snprintf(header, 100, "%s", name);
	memcpy(header + 100, "0000600", 8);
	memcpy(header + 108, "0000000", 8);
	memcpy(header + 116, "0000000", 8);
	snprintf(header + 124, 12, "%011zo", size);
	memcpy(header + 136, "00000000000", 12);
	memset(header + 148, ' ', 8);
	header[156] = '0';
	memcpy(header + 257, "ustar\00000", 8);
	for (int i = 0; i < CLI_TAR_BLOCK; i++)
		sum += (unsigned char)header[i];
	snprintf(header + 148, 8, "%06o", sum);
	int failed = write(ctx, header, sizeof header);
	if (!failed)
		failed = write(ctx, bytes, size);
	if (!failed && size % CLI_TAR_BLOCK)
		failed = write(ctx, zeros, CLI_TAR_BLOCK - size % CLI_TAR_BLOCK);
	return failed;
}

#ifdef WEFT_HAS_ZSTD

enum { LEVEL = 3, PIECE_BYTES = 1 << 17 };

bool cli_archive_can(void)
{
	return true;
}

int cli_archive_begin(struct cli_archive *archive, const char *path)
{
	*archive = (struct cli_archive){.zstd = ZSTD_createCCtx(), .piece = malloc(PIECE_BYTES)};
	ZSTD_CCtx *zstd = archive->zstd;
	const int exit = zstd && archive->piece ? cli_file_begin_private(&archive->file, path)
						: cli_fail("%s: %s", path, weft_status_string(WEFT_ENOMEM));
	if (exit >= 0) {
		ZSTD_freeCCtx(zstd);
		free(archive->piece);
		return exit;
	}
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	return -1;
}

static int compress(struct cli_archive *archive, const void *bytes, size_t size, ZSTD_EndDirective mode)
{
	ZSTD_inBuffer in = {.src = bytes, .size = size};
	for (size_t left = 1; left > 0 || in.pos < in.size;) {
		ZSTD_outBuffer out = {.dst = archive->piece, .size = PIECE_BYTES};
		left = ZSTD_compressStream2(archive->zstd, &out, &in, mode);
		if (ZSTD_isError(left))
			return -1;
		if (out.pos && cli_file_write(&archive->file, archive->piece, out.pos)) {
			archive->error = errno;
			return -1;
		}
		if (mode == ZSTD_e_continue)
			left = 0;
	}
	return 0;
}

static int compress_more(void *ctx, const void *bytes, size_t size)
{
	return compress(ctx, bytes, size, ZSTD_e_continue);
}

int cli_archive_write(void *ctx, const char *name, const void *bytes, size_t size)
{
	return cli_tar_write(compress_more, ctx, *name ? name : WEFT_PART_FILE, bytes, size);
}

int cli_archive_end(struct cli_archive *archive, int status, const struct weft_error *err)
{
	const char zeros[2 * CLI_TAR_BLOCK] = {0};
	struct weft_error failed;
	const bool is_broken = status >= 0 && compress(archive, zeros, sizeof zeros, ZSTD_e_end) != 0;
	if (is_broken || archive->error) {
		status = weft_error_set(
		    &failed, WEFT_EIO, "%s", archive->error ? strerror(archive->error) : weft_status_string(WEFT_EIO));
		err = &failed;
	}
	ZSTD_freeCCtx(archive->zstd);
	free(archive->piece);
	return cli_file_end(&archive->file, status, err);
}

#else

bool cli_archive_can(void)
{
	return false;
}

int cli_archive_begin(struct cli_archive *archive, const char *path)
{
	(void)archive;
	return cli_fail("%s: this weft was built without compression", path);
}

int cli_archive_write(void *ctx, const char *name, const void *bytes, size_t size)
{
	(void)ctx, (void)name, (void)bytes, (void)size;
	return -1;
}

int cli_archive_end(struct cli_archive *archive, int status, const struct weft_error *err)
{
	(void)archive, (void)status, (void)err;
	return CLI_ERROR;
}

#endif
