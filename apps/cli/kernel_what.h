/* kernel_what.h: what an OS thread waits for: which call, on which file or peer.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_KERNEL_WHAT_H
#define WEFT_CLI_KERNEL_WHAT_H

#include <stdbool.h>
#include <stdint.h>

enum { KERNEL_WHAT = 256 };

struct kernel_what {
	uint8_t call;           /* enum weft_kernel_call */
	uint32_t fd;            /* or WEFT_KERNEL_NO_FD */
	char text[KERNEL_WHAT]; /* a path or a peer; empty: nobody knows */
};

/* What this machine's number of a system call stands for: enum weft_kernel_call. */
uint8_t kernel_what_call(int number);

/* Whether the first argument of that call is a descriptor, of which it is worth to know more. */
bool kernel_what_has_fd(uint8_t call);

/* Which file or peer is behind a descriptor now; false: nothing is to be known.  Sockets are looked for in tables of the whole
 * network, which costs as much as there are sockets: only if `deep`. */
bool kernel_what_fd(uint32_t pid, uint32_t fd, bool deep, char text[KERNEL_WHAT]);

/* The file that a process has in its memory around that address now; false: none, or it is not to be known.  Costs as much as it
 * has files there. */
struct kernel_mapping {
	uint64_t begin, end;
	char text[KERNEL_WHAT]; /* its path; empty: memory that is no file's */
};
bool kernel_what_mapping(uint32_t pid, uint64_t address, struct kernel_mapping *out);

/* What an OS thread that is blocked now is in; false: it is not blocked, or that may not be known.  Whether it was blocked all
 * the time that this took, the caller must see. */
bool kernel_what_now(uint32_t pid, uint32_t tid, struct kernel_what *out);

#endif
