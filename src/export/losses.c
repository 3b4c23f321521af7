/* losses.c: describes for users what an export could not store.
 * SPDX-License-Identifier: ISC */
#include "export/export.h"

const char *weft_loss_text(enum weft_loss loss)
{
	static const char *const texts[WEFT_LOSS_COUNT] = {
#define TEXT(NAME, text) [WEFT_LOSS_##NAME] = text,
	    WEFT_LOSSES(TEXT)
#undef TEXT
	};
	return texts[loss];
}
