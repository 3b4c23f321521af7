/* syscall_args.h: finds the syscall in which an OS thread waits, and the syscall's file or peer.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_KERNEL_SYSCALL_ARGS_H
#define WEFT_KERNEL_SYSCALL_ARGS_H

#include <stdbool.h>
#include <stdint.h>

enum { WEFT_KERNEL_TARGET_BYTES = 256 };

struct weft_kernel_blocked_call {
	uint8_t call;                        /* enum weft_kernel_call */
	uint32_t fd;                         /* or WEFT_KERNEL_NO_FD */
	char text[WEFT_KERNEL_TARGET_BYTES]; /* path or peer; empty if unknown */
};

/* Returns the enum weft_kernel_call for a syscall number of this machine. */
uint8_t weft_kernel_call_from_number(int number);

/* Returns whether the first argument of the syscall is a descriptor that is worth looking up. */
bool weft_kernel_call_has_fd(uint8_t call);

/* Finds the file or peer to which a descriptor refers.  Returns false if the file or peer is unknown.  Peers are searched only
 * if `deep`, in the tables of all sockets, which costs time in proportion to the number of sockets. */
bool weft_kernel_describe_fd(uint32_t pid, uint32_t fd, bool deep, char text[WEFT_KERNEL_TARGET_BYTES]);

/* Finds the file that a process has mapped at an address.  Returns false if no file is mapped there, or the file is unknown.
 * The cost grows with the number of the process's mapped files. */
struct weft_kernel_mapping {
	uint64_t begin, end;
	char text[WEFT_KERNEL_TARGET_BYTES]; /* path of the mapped file; empty for anonymous memory */
};
bool weft_kernel_find_mapping(uint32_t pid, uint64_t address, struct weft_kernel_mapping *out);

/* Finds the syscall in which an OS thread is blocked now.  Returns false if the thread is not blocked, or if the user may not
 * know.  The caller must check that the thread stayed blocked meanwhile. */
bool weft_kernel_read_blocked_call(uint32_t pid, uint32_t tid, struct weft_kernel_blocked_call *out);

#endif
