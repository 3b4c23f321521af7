/* xen.h: a ring in memory pages that a Xen guest shares with domain 0, which reads it with `weft -d NAME`, also after a crash.
 *
 * A Linux guest needs no code for it: a program that links libweft-xen, or is started with it in LD_PRELOAD, reads
 *
 *	WEFT_XEN=4M[,packets=N][,streams=N][,keep]
 *
 * With `keep` the pages outlive the program, as those of a guest outlive its kernel.
 *
 * Other guests implement granting pages and writing to XenStore (struct weft_xen_guest), and compile adapters/xen/share.c with
 * the recorder's freestanding core:
 *
 *	static _Alignas(WEFT_XEN_PAGE) unsigned char memory[1 << 20];
 *	static uint32_t refs[sizeof memory / WEFT_XEN_PAGE];
 *	static struct weft_xen xen = {.guest = &mine, .memory = memory, .pages = sizeof memory / WEFT_XEN_PAGE, .refs = refs};
 *
 *	int status = weft_xen_start(&xen, &(struct weft_record_options){.clock = ticks, .clock_hz = 1000000000});
 *
 * docs/guests.md describes the published data and its location.  No call may be made in a signal handler, or in several OS
 * threads at once.  SPDX-License-Identifier: ISC */
#ifndef WEFT_XEN_H
#define WEFT_XEN_H

#include <weft/record.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_XEN_PAGE 4096u

/* Node under the domain's own path in XenStore: references in decimal, separated by commas.  References that do not fit into the
 * first node are in ring-ref-1, ring-ref-2 ... */
#define WEFT_XEN_NODE "data/mprof/ring-ref"

/* Operations of a guest.  Each function returns WEFT_OK or a negative enum weft_status. */
struct weft_xen_guest {
	/* Lets `domain` read `pages` contiguous pages at *memory, and stores a reference for each in refs.  If *memory is NULL,
	 * the function allocates the pages and sets *memory.  On failure nothing remains granted. */
	int (*share)(void *data, unsigned domain, void **memory, size_t pages, uint32_t *refs);

	/* Ends the sharing; the other domain may still have the pages mapped. */
	void (*unshare)(void *data, void *memory, size_t pages, const uint32_t *refs);

	/* Writes a node of XenStore; path is relative to the domain's own path, value ends in NUL. */
	int (*write)(void *data, const char *path, const char *value);

	/* Removes a node; returns WEFT_ENOENT if there is none. */
	int (*remove)(void *data, const char *path);
};

/* A shared ring.  The caller fills the first half, and keeps the struct as long as the pages are shared. */
struct weft_xen {
	const struct weft_xen_guest *guest;
	void *data;      /* passed to the functions of guest */
	void *memory;    /* page-aligned; NULL: share() allocates it */
	size_t pages;    /* number of pages in memory */
	uint32_t *refs;  /* array of `pages` elements */
	unsigned domain; /* domain that may read the pages; 0: domain 0 */

	const char *error; /* problem of a failed call: one clause, static */
	bool is_shared;
};

/* ---- Any guest ---- */

/* Shares the pages; sets xen->memory to their address.  Returns the status of the guest's share(), WEFT_EINVAL (no pages, or not
 * page-aligned) or WEFT_EBUSY (already shared). */
WEFT__API int weft_xen_share(struct weft_xen *xen);

/* Publishes the references in XenStore; call it when the pages have contents.  Returns the status of the guest's write(). */
WEFT__API int weft_xen_publish(struct weft_xen *xen);

/* Undoes weft_xen_share() and weft_xen_publish(), also if only one of them was called. */
WEFT__API void weft_xen_unshare(struct weft_xen *xen);

/* Shares the pages, starts to record into them, and publishes them.  Ignores options->buffer and .buffer_bytes; the other options
 * are as in record.h, but .packets 0 stands for 16 packets, or for packets of 64 KiB.  On failure everything is undone. Returns
 * the errors of the two calls above and of weft_start(); xen->error describes them. */
WEFT__API int weft_xen_start(struct weft_xen *xen, const struct weft_record_options *options);

/* ---- Linux guests: /dev/xen/gntalloc and libxenstore ---- */

/* Prepares *xen to share `bytes`, rounded up to pages, for weft_xen_start().  The kernel lets all programs of a guest share 1024
 * pages, unless xen-gntalloc is loaded with limit=N.  Returns WEFT_ENOENT (no such device: this is no Xen guest, or the module is
 * not loaded), WEFT_EACCES or WEFT_ENOMEM; xen->error describes the problem. */
WEFT__API int weft_xen_linux_open(struct weft_xen *xen, size_t bytes);

/* Starts a process that only keeps the shared pages, so that they are readable after this program has ended in any way.  That
 * process, weft-xen-keep, ends with the guest or when it is killed.  Returns WEFT_EIO if it cannot start. */
WEFT__API int weft_xen_linux_keep(struct weft_xen *xen);

/* Unshares the pages, and frees the memory of weft_xen_linux_open().  Kept pages and published references stay. */
WEFT__API void weft_xen_linux_close(struct weft_xen *xen);

#ifdef __cplusplus
}
#endif

#endif
