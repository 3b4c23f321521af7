/* capstone_parts.c: keeps Capstone's decoders of other architectures out of the library.
 *
 * cs.o of libcapstone.a refers to the tables of every architecture.  A program that links cs.o gets 5 MB of tables, and 77,000
 * pointers that the loader relocates whenever a process starts.  The definitions in this file replace the tables, so the linker
 * keeps only those of x86, with 2,000 pointers.  SPDX-License-Identifier: ISC */
#include <capstone/capstone.h>

#define DEFINE_ABSENT(NAME)                                                                                                      \
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

DEFINE_ABSENT(AArch64)
DEFINE_ABSENT(ARM)
DEFINE_ABSENT(EVM)
DEFINE_ABSENT(M680X)
DEFINE_ABSENT(M68K)
DEFINE_ABSENT(Mips)
DEFINE_ABSENT(PPC)
DEFINE_ABSENT(Sparc)
DEFINE_ABSENT(SystemZ)
DEFINE_ABSENT(TMS320C64x)
DEFINE_ABSENT(XCore)
