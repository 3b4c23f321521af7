/* archive.c: reads any bytes as a tar archive.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "trace/source.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	struct weft_source source;
	if (weft_source_from_memory(&source, bytes, size, "fuzz", NULL) < 0)
		return 0;
	for (size_t i = 0; i < source.blob_count; i++) {
		const struct weft_blob *blob = &source.blobs[i];
		if (blob->bytes < bytes && blob->size)
			abort();
		if (blob->size > size || (blob->size && blob->bytes + blob->size > bytes + size))
			abort();
		if (!weft_source_find(&source, blob->name) || (source.is_dir && strchr(blob->name, '/')))
			abort();
		if (i && strcmp(source.blobs[i - 1].name, blob->name) > 0)
			abort();
	}
	weft_source_close(&source);
	return 0;
}
