/* fake.h: a hypervisor for tests: a domain 5 called "guest" with some memory, its grants, its XenStore, and the host that looks
 * at it.  SPDX-License-Identifier: ISC */
#ifndef TESTS_XEN_FAKE_H
#define TESTS_XEN_FAKE_H

#include <weft/xen.h>

#include "xen/domain.h"

#define FAKE_FIRST_REF 8u

struct fake_node {
	char *path, *value; /* relative to the domain's own */
};

struct fake {
	int memory; /* a memfd, so that its pages can be mapped in any order */
	size_t pages;
	bool *granted; /* by page; page p has the reference FAKE_FIRST_REF + p */
	struct fake_node *nodes;
	size_t node_count;
	void *shared;
	size_t mapped;     /* by the host, just now */
	size_t node_bytes; /* that a node takes, 0: 2048 */
	long calls;        /* of the guest's that still succeed; -1: all */
};

/* Room for a domain's memory; what the functions below get as `data`. */
void fake_init(struct fake *fake, size_t pages);
void fake_finish(struct fake *fake);

/* As the guest, which grants its own pages one after the other; as domain 0. */
extern const struct weft_xen_guest fake_guest;
struct domain_host fake_host(struct fake *fake);

const char *fake_read(const struct fake *fake, const char *path);
void fake_write(struct fake *fake, const char *path, const char *value);

#endif
