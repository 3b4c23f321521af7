/* domain.h: opens the ring buffer that a Xen domain shares as a trace.
 *
 * Everything that the domain wrote is untrusted: it may publish references that are not its own, or too many, and may change
 * bytes while they are read.  SPDX-License-Identifier: ISC */
#ifndef WEFT_XEN_DOMAIN_H
#define WEFT_XEN_DOMAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "trace/trace.h"

/* Prefix of a TRACE operand that names a domain; a file with such a name is written as ./xen:NAME. */
#define DOMAIN_PREFIX "xen:"

#define DOMAIN_PAGE_BYTES 4096u
#define DOMAIN_MAX_PAGES 65536u /* 256 MiB */

/* Operations of the host; functions that return pointers return NULL on failure, with errno. */
struct domain_host {
	char *(*read)(
	    /* Reads the value of a node, followed by a NUL; the caller frees it. */
	    void *data, const char *path, unsigned *length);
	/* Lists the names of a node's children; one free() releases all names. */
	char **(*list)(void *data, const char *path, unsigned *count);
	void *(*map)(void *data, uint32_t domain, const uint32_t *refs, size_t count); /* maps read-only */
	void (*unmap)(void *data, void *pages, size_t count);
	void *data;
};

typedef WEFT_VEC(uint32_t) domain_refs;

/* Opens the trace of "xen:NAME" or "xen:ID" like weft_trace_open().  Fails with WEFT_ENOENT (no such domain or no ring buffer),
 * WEFT_EACCES (not root, or references cannot be mapped), WEFT_ENOTSUP (not a Xen host), WEFT_EFORMAT, WEFT_ETOOBIG or
 * WEFT_ENOMEM. */
int domain_open(struct weft_trace **out, const char *path, struct weft_error *err);

/* Opens the trace of a domain on the given host. */
int domain_open_on_host(const struct domain_host *host, struct weft_trace **out, const char *path, struct weft_error *err);

static inline bool domain_is_path(const char *path)
{
	return path[0] == 'x' && path[1] == 'e' && path[2] == 'n' && path[3] == ':';
}

/* Appends the references in a node's text, which are 32-bit numbers separated by commas.  Fails with WEFT_EFORMAT, WEFT_ETOOBIG
 * or WEFT_ENOMEM. */
int domain_parse_refs(domain_refs *refs, const char *text, size_t length);

/* Opens the host on which this program runs (hypervisor.c).  Fails like domain_open(). */
int domain_host_open(struct domain_host *out, struct weft_error *err);
void domain_host_close(struct domain_host *host);

#endif
