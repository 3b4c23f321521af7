/* tar.c: writes archives in the format ustar of POSIX.1-2001, as in pax(1); sizes beyond 8 GiB use the GNU encoding.
 * SPDX-License-Identifier: ISC */
#include "export/tar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 512u

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2],
	    user[32], group[32], device[16], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "one block");

static void put_size(char field[12], uint64_t size)
{
	if (size <= 077777777777)
		snprintf(field, 12, "%011" PRIo64, size);
	else
		for (int i = 0; i < 12; i++)
			field[i] = i == 0 ? (char)0x80 : i < 4 ? 0 : (char)(size >> 8 * (11 - i));
}

int weft_tar_file(
    weft_export_write_fn *write, void *write_ctx, const char *name, const void *bytes, size_t size, struct weft_error *err)
{
	static const char zeros[BLOCK];
	struct header header = {.mode = "0000600", .uid = "0000000", .gid = "0000000", .mtime = "00000000000", .type = '0'};
	size_t length = strlen(name);
	if (length > sizeof header.name)
		return weft_error_set(err, WEFT_EINVAL, "name too long for a tar archive");
	memcpy(header.name, name, length);
	put_size(header.size, size);
	memcpy(header.magic, "ustar", sizeof header.magic);
	memcpy(header.version, "00", sizeof header.version);
	memset(header.checksum, ' ', sizeof header.checksum);
	unsigned sum = 0;
	for (size_t i = 0; i < sizeof header; i++)
		sum += ((const unsigned char *)&header)[i];
	snprintf(header.checksum, sizeof header.checksum, "%06o", sum & 0777777);
	if (write(write_ctx, &header, sizeof header) || (size && write(write_ctx, bytes, size)) ||
	    (size % BLOCK && write(write_ctx, zeros, BLOCK - size % BLOCK)))
		return weft_error_set(err, WEFT_EIO, "%s", weft_status_string(WEFT_EIO));
	return WEFT_OK;
}

int weft_tar_end(weft_export_write_fn *write, void *write_ctx, struct weft_error *err)
{
	static const char zeros[2 * BLOCK];
	return write(write_ctx, zeros, sizeof zeros) ? weft_error_set(err, WEFT_EIO, "%s", weft_status_string(WEFT_EIO))
						     : WEFT_OK;
}
