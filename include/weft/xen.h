/* xen.h: a trace in memory pages that a Xen guest shares with domain 0.  `weft -d NAME` in domain 0 reads the trace of guest
 * NAME, also after a crash.
 *
 * On a Linux guest a program needs no call of this header: libweft-xen, linked or in LD_PRELOAD, shares the trace if the
 * environment has
 *
 *	WEFT_XEN=4M[,packets=N][,streams=N][,keep]
 *
 * With `keep`, the pages can be read after the program has ended, until the guest ends.
 *
 * Guests with other kernels implement the functions of struct weft_xen_guest, which grant pages and write to XenStore.  These
 * guests compile adapters/xen/share.c and the part of the recorder that needs no operating system:
 *
 *	static _Alignas(WEFT_XEN_PAGE) unsigned char memory[1 << 20];
 *	static uint32_t refs[sizeof memory / WEFT_XEN_PAGE];
 *	static struct weft_xen xen = {.guest = &mine, .memory = memory, .pages = sizeof memory / WEFT_XEN_PAGE, .refs = refs};
 *
 *	int status = weft_xen_start(&xen, &(struct weft_record_options){.clock = ticks, .clock_hz = 1000000000});
 *
 * docs/guests.md describes the data in XenStore and where it is.  The calls of this header must not be made in a signal handler,
 * or in several OS threads at once.  SPDX-License-Identifier: ISC */
#ifndef WEFT_XEN_H
#define WEFT_XEN_H

#include <weft/record.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_XEN_PAGE 4096u

/* XenStore node, under the guest's own path, that contains the grant references of the pages: decimal numbers, separated by
 * commas.  References that do not fit into this node are in the nodes ring-ref-1, ring-ref-2 and so on. */
#define WEFT_XEN_NODE "data/mprof/ring-ref"

/* Operations that a guest implements.  Each function with a result returns WEFT_OK or a negative enum weft_status; the argument
 * data is weft_xen.data. */
struct weft_xen_guest {
	/* Lets `domain` read `pages` contiguous pages at *memory, and stores one grant reference for each page in refs.  If
	 * *memory is NULL, the function allocates the pages and sets *memory.  After a failure no page is shared. */
	int (*share)(void *data, unsigned domain, void **memory, size_t pages, uint32_t *refs);

	/* Ends the sharing of the pages; the other domain may still have the pages mapped. */
	void (*unshare)(void *data, void *memory, size_t pages, const uint32_t *refs);

	/* Writes a node of XenStore; path is relative to the guest's own path, and value ends with a NUL. */
	int (*write)(void *data, const char *path, const char *value);

	/* Removes a node of XenStore; returns WEFT_ENOENT if the node does not exist. */
	int (*remove)(void *data, const char *path);
};

/* A shared trace.  The caller sets the members above `error`, and keeps the struct as long as the pages are shared. */
struct weft_xen {
	const struct weft_xen_guest *guest;
	void *data;      /* first argument of the functions of guest */
	void *memory;    /* page-aligned memory of the trace; NULL: guest->share() allocates it */
	size_t pages;    /* number of pages in memory */
	uint32_t *refs;  /* the caller's array for `pages` grant references */
	unsigned domain; /* domain that may read the pages; 0: domain 0 */

	const char *error; /* error of a failed call, as a static text of one clause */
	bool is_shared;
};

/* ---- Any guest ---- */

/* Shares the pages with the domain, and sets xen->memory to their address.  Returns the status of the guest's share(),
 * WEFT_EINVAL (no pages, or memory that is not page-aligned) or WEFT_EBUSY (already shared). */
WEFT__API int weft_xen_share(struct weft_xen *xen);

/* Writes the grant references to XenStore.  Must be called after the pages have contents.  Returns the status of the guest's
 * write(). */
WEFT__API int weft_xen_publish(struct weft_xen *xen);

/* Undoes weft_xen_share() and weft_xen_publish(), also if only one of the two was called. */
WEFT__API void weft_xen_unshare(struct weft_xen *xen);

/* Does weft_xen_share(), weft_start() with the shared pages as the buffer, and weft_xen_publish().  Ignores options->buffer and
 * .buffer_bytes.  The other options are as in record.h, but .packets 0 stands for 16 packets, or for packets of 64 KiB if that
 * makes more.  If one of the three calls fails, the calls before are undone, and the status of the failed call is returned;
 * xen->error describes it. */
WEFT__API int weft_xen_start(struct weft_xen *xen, const struct weft_record_options *options);

/* ---- Linux guests: /dev/xen/gntalloc and libxenstore ---- */

/* Sets *xen so that weft_xen_start() shares `bytes` bytes, rounded up to pages.  The kernel lets all programs of a guest together
 * share 1024 pages, unless the module xen-gntalloc is loaded with limit=N.  Returns WEFT_OK, WEFT_ENOENT (no such device: this is
 * no Xen guest, or the module is not loaded), WEFT_EACCES or WEFT_ENOMEM; xen->error describes the error. */
WEFT__API int weft_xen_linux_open(struct weft_xen *xen, size_t bytes);

/* Starts the process weft-xen-keep, which only keeps the shared pages, so that they are readable after this program has ended in
 * any way. weft-xen-keep ends with the guest or when it is killed.  Returns WEFT_EIO if weft-xen-keep cannot start. */
WEFT__API int weft_xen_linux_keep(struct weft_xen *xen);

/* Unshares the pages, and frees the memory of weft_xen_linux_open().  Pages that weft-xen-keep keeps, and the references in
 * XenStore, stay. */
WEFT__API void weft_xen_linux_close(struct weft_xen *xen);

#ifdef __cplusplus
}
#endif

#endif
