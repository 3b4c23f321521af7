/* reader.c: reads any bytes as a trace.  WEFT_FUZZ_FORMAT chooses the format.  SPDX-License-Identifier: ISC */
#include "read_trace.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	return read_trace(bytes, size, WEFT_FUZZ_FORMAT);
}
