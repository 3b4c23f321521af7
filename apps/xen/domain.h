/* domain.h: the ring that a domain of Xen shares, as a trace.
 *
 * What the domain wrote is nobody's word: references that are not its own, more than it can have, bytes that change while they
 * are looked at.  SPDX-License-Identifier: ISC */
#ifndef WEFT_XEN_DOMAIN_H
#define WEFT_XEN_DOMAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "trace/trace.h"

/* A TRACE that begins so is a domain; a file of such a name is given as ./xen:NAME. */
#define DOMAIN_PREFIX "xen:"

#define DOMAIN_PAGE 4096u
#define DOMAIN_PAGES_MAX 65536u /* 256 MiB */

/* What is asked of the host; functions that return pointers return NULL with errno. */
struct domain_host {
	char *(*read)(void *data, const char *path, unsigned *length); /* a node's value, to be freed; a NUL follows it */
	char **(*list)(void *data, const char *path, unsigned *count); /* names of a node's children; one free for all */
	void *(*map)(void *data, uint32_t domain, const uint32_t *refs, size_t count); /* read-only */
	void (*unmap)(void *data, void *pages, size_t count);
	void *data;
};

typedef WEFT_VEC(uint32_t) domain_refs;

/* Opens "xen:NAME" or "xen:ID"; as weft_trace_open().  WEFT_ENOENT: no such domain, or no ring; WEFT_EACCES: not root, or the
 * references cannot be mapped; WEFT_ENOTSUP: not on a Xen host; WEFT_EFORMAT, WEFT_ETOOBIG, WEFT_ENOMEM. */
int domain_open(struct weft_trace **out, const char *path, struct weft_error *err);

/* The same of that host. */
int domain_open_on(const struct domain_host *host, struct weft_trace **out, const char *path, struct weft_error *err);

static inline bool domain_is(const char *path)
{
	return path[0] == 'x' && path[1] == 'e' && path[2] == 'n' && path[3] == ':';
}

/* Appends the references that a node's text has: numbers of 32 bits, separated by commas.  WEFT_EFORMAT, WEFT_ETOOBIG,
 * WEFT_ENOMEM. */
int domain_parse_refs(domain_refs *refs, const char *text, size_t length);

/* hypervisor.c: the host that this program runs on.  As domain_open(). */
int domain_host_open(struct domain_host *out, struct weft_error *err);
void domain_host_close(struct domain_host *host);

#endif
