/* xen.h: a ring in pages that a guest of Xen shares with domain 0, which reads it with `weft -d NAME`, also after a crash.
 *
 * A Linux guest needs no code for it: a program that links libweft-xen, or is started with it in LD_PRELOAD, looks at
 *
 *	WEFT_XEN=4M[,packets=N][,streams=N][,keep]
 *
 * With `keep` the pages outlive the program, as those of a guest outlive its kernel.
 *
 * Other guests say how they grant a page and write to XenStore (struct weft_xen_guest), and compile adapters/xen/share.c with
 * the recorder's freestanding core:
 *
 *	static _Alignas(WEFT_XEN_PAGE) unsigned char memory[1 << 20];
 *	static uint32_t refs[sizeof memory / WEFT_XEN_PAGE];
 *	static struct weft_xen xen = {.guest = &mine, .memory = memory, .pages = sizeof memory / WEFT_XEN_PAGE, .refs = refs};
 *
 *	int status = weft_xen_start(&xen, &(struct weft_record_options){.clock = ticks, .clock_hz = 1000000000});
 *
 * What is published, and where, is in docs/guests.md.  None of these calls is for signal handlers, nor for several OS threads at
 * once.  SPDX-License-Identifier: ISC */
#ifndef WEFT_XEN_H
#define WEFT_XEN_H

#include <weft/record.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_XEN_PAGE 4096u

/* Under the domain's own path in XenStore: references in decimal, separated by commas.  What does not fit into the first node
 * is in ring-ref-1, ring-ref-2 ... */
#define WEFT_XEN_NODE "data/mprof/ring-ref"

/* What a guest does in its own way.  Each function returns WEFT_OK or a negative enum weft_status. */
struct weft_xen_guest {
	/* Lets `domain` read `pages` pages, and fills refs, one for each.  They stand one after the other at *memory; where that
	 * is NULL, they are the implementation's own, and it says where.  On failure nothing remains granted. */
	int (*share)(void *data, unsigned domain, void **memory, size_t pages, uint32_t *refs);

	/* Ends that; the other side may still have them mapped. */
	void (*unshare)(void *data, void *memory, size_t pages, const uint32_t *refs);

	/* Writes a node of XenStore; path is relative to the domain's own, value ends in NUL. */
	int (*write)(void *data, const char *path, const char *value);

	/* Removes a node; WEFT_ENOENT: there was none. */
	int (*remove)(void *data, const char *path);
};

/* A ring that is shared.  The caller fills the first half, and keeps it all as long as the pages are shared. */
struct weft_xen {
	const struct weft_xen_guest *guest;
	void *data;      /* is passed to it */
	void *memory;    /* page-aligned, or NULL */
	size_t pages;    /* in it */
	uint32_t *refs;  /* room for one a page */
	unsigned domain; /* that may read; 0 */

	const char *error; /* of a call that failed: one clause, static */
	bool is_shared;
};

/* ---- Any guest ---- */

/* Shares the pages; from now on xen->memory is where they are.  What the guest's share() answers, WEFT_EINVAL (no pages, or not
 * aligned to them), WEFT_EBUSY (they are shared already). */
WEFT__API int weft_xen_share(struct weft_xen *xen);

/* Says in XenStore where they are: to be called when there is something in them.  What the guest's write() answers. */
WEFT__API int weft_xen_publish(struct weft_xen *xen);

/* Takes back what the two did, of which it need not have been all. */
WEFT__API void weft_xen_unshare(struct weft_xen *xen);

/* Shares, starts to record into the pages, publishes.  options->buffer and .buffer_bytes are not looked at; the others are as in
 * record.h, but .packets 0: 16, or as many as make them 64 KiB.  On failure nothing is left of it.  As the two above, and
 * weft_start(), whose errors xen->error tells too. */
WEFT__API int weft_xen_start(struct weft_xen *xen, const struct weft_record_options *options);

/* ---- Linux guests: /dev/xen/gntalloc and libxenstore ---- */

/* Makes *xen one that shares `bytes`, rounded up to pages: what is left is to call weft_xen_start().  The kernel gives all
 * programs of a guest 1024 pages, unless xen-gntalloc is loaded with limit=N.
 * WEFT_ENOENT (no such device: this is no guest of Xen, or the module is not loaded), WEFT_EACCES, WEFT_ENOMEM; xen->error tells.
 */
WEFT__API int weft_xen_linux_open(struct weft_xen *xen, size_t bytes);

/* Starts a process that does nothing but keep the shared pages, so that they can be read when this one has ended, however it did.
 * It ends with the guest, or when it is killed: its name is weft-xen-keep.  WEFT_EIO. */
WEFT__API int weft_xen_linux_keep(struct weft_xen *xen);

/* Unshares, and frees what open() allocated.  Pages that are kept, and what was published, stay. */
WEFT__API void weft_xen_linux_close(struct weft_xen *xen);

#ifdef __cplusplus
}
#endif

#endif
