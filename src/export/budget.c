/* budget.c: limits the number of bytes of long texts (budget.h).
 * SPDX-License-Identifier: ISC */
#include "export/budget.h"

#include "trace/source.h"

enum {
	CUT_BYTES = 256,
	FLOOR_BYTES = 4 << 20,
	PER_BYTE = 32,
};

uint64_t weft__export_budget(const struct weft_trace *trace)
{
	const struct weft_source *source = weft_trace_source(trace);
	uint64_t bytes = 0;
	for (size_t i = 0; i < source->blob_count; i++)
		bytes += source->blobs[i].size;
	return bytes > (UINT64_MAX - FLOOR_BYTES) / PER_BYTE ? UINT64_MAX : FLOOR_BYTES + PER_BYTE * bytes;
}

struct weft_str weft__export_text(struct weft_str text, uint64_t *budget, struct weft_losses *losses)
{
	if (text.len <= CUT_BYTES)
		return text;
	if (text.len <= *budget) {
		*budget -= text.len;
		return text;
	}
	losses->counts[WEFT_LOSS_LONG_TEXT]++;
	uint32_t len = CUT_BYTES;
	while (len > CUT_BYTES - 3 && ((unsigned char)text.ptr[len] & 0xc0) == 0x80)
		len--;
	return (struct weft_str){text.ptr, len};
}
