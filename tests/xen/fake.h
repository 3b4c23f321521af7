/* fake.h: a hypervisor for tests: domain 5, "guest", with memory, grants and a XenStore, and the host that reads it.
 * SPDX-License-Identifier: ISC */
#ifndef TESTS_XEN_FAKE_H
#define TESTS_XEN_FAKE_H

#include <weft/xen.h>

#include "xen/domain.h"

#define FAKE_FIRST_REF 8u

struct fake_node {
	char *path, *value; /* relative to the domain's own path */
};

struct fake {
	int memory; /* a memfd, so that its pages can be mapped in any order */
	size_t pages;
	bool *granted; /* by page; page p has the reference FAKE_FIRST_REF + p */
	struct fake_node *nodes;
	size_t node_count;
	void *shared;
	size_t mapped;     /* pages that the host has mapped */
	size_t node_bytes; /* size limit of a node; 0: 2048 */
	long calls;        /* calls of the guest that still succeed; -1: all */
};

/* Allocates a domain's memory; the functions below get the struct as `data`. */
void fake_init(struct fake *fake, size_t pages);
void fake_finish(struct fake *fake);

/* Interfaces of the guest, which grants its own pages one after the other, and of domain 0. */
extern const struct weft_xen_guest fake_guest;
struct domain_host fake_host(struct fake *fake);

const char *fake_read(const struct fake *fake, const char *path);
void fake_write(struct fake *fake, const char *path, const char *value);

#endif
