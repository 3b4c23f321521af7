/* capstone_parts.c: Capstone without the processors that are not this one.
 *
 * cs.o of libcapstone.a refers to every processor's tables, so that a program that links it gets all of them: 5 MB, and 77,000
 * pointers that the loader relocates at each start of each process.  With these definitions the linker takes what x86 needs:
 * 2,000 pointers.  SPDX-License-Identifier: ISC */
#include <capstone/capstone.h>

#define ABSENT(NAME)                                                                                                             \
	cs_err NAME##_global_init(void *handle);                                                                                 \
	cs_err NAME##_option(void *handle, cs_opt_type type, size_t value);                                                      \
	cs_err NAME##_global_init(void *handle)                                                                                  \
	{                                                                                                                        \
		return CS_ERR_ARCH;                                                                                              \
	}                                                                                                                        \
	cs_err NAME##_option(void *handle, cs_opt_type type, size_t value)                                                       \
	{                                                                                                                        \
		return CS_ERR_ARCH;                                                                                              \
	}

ABSENT(AArch64)
ABSENT(ARM)
ABSENT(EVM)
ABSENT(M680X)
ABSENT(M68K)
ABSENT(Mips)
ABSENT(PPC)
ABSENT(Sparc)
ABSENT(SystemZ)
ABSENT(TMS320C64x)
ABSENT(XCore)
