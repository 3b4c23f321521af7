/* mini-os.c: a unikernel on Mini-OS that shares its recording with domain 0, where `weft -d NAME` reads it.
 *
 * The first half is specific to Mini-OS: it grants pages and writes XenStore nodes.  Another unikernel has the same four
 * functions under other names.  The recorder needs no C library but memcpy, memset and strlen, and is compiled with
 *
 *	adapters/xen/share.c src/record/{core,define,buffer,freestanding}.c src/wire/{event,metadata}.c
 *
 * SPDX-License-Identifier: ISC */
#include <weft/xen.h>

#ifdef __MINIOS__
#include <mini-os/gnttab.h>
#include <mini-os/mm.h>
#include <mini-os/time.h>
#include <mini-os/xenbus.h>
#include <mini-os/xmalloc.h>
#else /* the same declarations, to compile without Mini-OS */
uint32_t gnttab_grant_access(uint16_t domain, unsigned long frame, int is_readonly);
int gnttab_end_access(uint32_t ref);
unsigned long virt_to_mfn(const void *address);
char *xenbus_write(uint32_t transaction, const char *path, const char *value); /* returns NULL, or an error to be freed */
char *xenbus_rm(uint32_t transaction, const char *path);
void xfree(const void *memory);
uint64_t monotonic_clock(void); /* ns */
#define XBT_NIL 0
#endif

int unikernel_start(void);
void unikernel_tick(void);

static int grant_pages(void *data, unsigned domain, void **memory, size_t pages, uint32_t *refs)
{
	if (!*memory)
		return WEFT_EINVAL; /* the caller must provide pages, see below */
	for (size_t i = 0; i < pages; i++)
		refs[i] = gnttab_grant_access((uint16_t)domain, virt_to_mfn((char *)*memory + i * WEFT_XEN_PAGE), 1);
	return WEFT_OK;
}

static void revoke_pages(void *data, void *memory, size_t pages, const uint32_t *refs)
{
	for (size_t i = 0; i < pages; i++)
		gnttab_end_access(refs[i]);
}

static int status_of(char *error, int status)
{
	if (!error)
		return WEFT_OK;
	xfree(error);
	return status;
}

static int write_node(void *data, const char *path, const char *value)
{
	return status_of(xenbus_write(XBT_NIL, path, value), WEFT_EIO);
}

static int remove_node(void *data, const char *path)
{
	return status_of(xenbus_rm(XBT_NIL, path), WEFT_ENOENT);
}

static const struct weft_xen_guest mini_os = {grant_pages, revoke_pages, write_node, remove_node};

/* ---- The rest is the same on any machine without an operating system ---- */

#define PAGES 64

static _Alignas(WEFT_XEN_PAGE) unsigned char memory[PAGES * WEFT_XEN_PAGE];
static uint32_t refs[PAGES];
static struct weft_xen xen = {.guest = &mini_os, .memory = memory, .pages = PAGES, .refs = refs};

/* Starts recording; call it once XenStore answers.  The recording stays readable after a crash of the kernel. */
int unikernel_start(void)
{
	return weft_xen_start(
	    &xen, &(struct weft_record_options){.clock = monotonic_clock, .clock_hz = 1000000000, .host = "unikernel"});
}

/* Records a promise of the application: it begins, runs, ends. */
void unikernel_tick(void)
{
	weft_id tick = WEFT_CREATE(WEFT_KIND_TIMER);
	WEFT_LABEL(tick, "tick");
	weft_run(tick);
	weft_resolve(WEFT_SYSTEM_ID, tick);
	weft_idle(WEFT_IDLE_WAIT);
}
