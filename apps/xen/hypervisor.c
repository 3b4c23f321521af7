/* hypervisor.c: accesses XenStore and grants of this host through libxenstore and libxengnttab.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xen/domain.h"

#ifdef WEFT_HAS_XEN
#include <sys/mman.h>
#include <xengnttab.h>
#include <xenstore.h>
#include <xentoollog.h>

struct hypervisor {
	struct xs_handle *store;
	xengnttab_handle *grants;
};

/* Ignores the library's messages, which it would otherwise print on stderr. */
static void ignore_message(
    struct xentoollog_logger *logger, xentoollog_level level, int error, const char *context, const char *format, va_list args)
{
}

static void ignore_destroy(struct xentoollog_logger *logger)
{
}

static struct xentoollog_logger silent = {.vmessage = ignore_message, .destroy = ignore_destroy};

static char *read_node(void *data, const char *path, unsigned *length)
{
	const struct hypervisor *h = data;
	return xs_read(h->store, XBT_NULL, path, length);
}

static char **list_nodes(void *data, const char *path, unsigned *count)
{
	const struct hypervisor *h = data;
	return xs_directory(h->store, XBT_NULL, path, count);
}

static void *map_grants(void *data, uint32_t domain, const uint32_t *refs, size_t count)
{
	const struct hypervisor *h = data;
	return xengnttab_map_domain_grant_refs(h->grants, (uint32_t)count, domain, (uint32_t *)refs, PROT_READ);
}

static void unmap_grants(void *data, void *pages, size_t count)
{
	const struct hypervisor *h = data;
	xengnttab_unmap(h->grants, pages, (uint32_t)count);
}

static bool is_on_xen(void)
{
	char type[8] = "";
	int fd = open("/sys/hypervisor/type", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return access("/proc/xen/capabilities", F_OK) == 0;
	ssize_t length = read(fd, type, sizeof type - 1);
	close(fd);
	return length >= 3 && memcmp(type, "xen", 3) == 0;
}

static int fail_open(struct weft_error *err, const char *what, int error)
{
	if (!is_on_xen())
		return weft_error_set(
		    err, WEFT_ENOTSUP, "this is not a Xen host; read the ring buffer of a domain on the host of the domain");
	if (error == EACCES || error == EPERM || geteuid() != 0)
		return weft_error_set(err, WEFT_EACCES, "only root may read the memory that a domain shares");
	return weft_error_set(err, WEFT_EIO, "%s: %s", what, strerror(error));
}

int domain_host_open(struct domain_host *out, struct weft_error *err)
{
	struct hypervisor *h = calloc(1, sizeof *h);
	if (!h)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	int status = WEFT_OK;
	h->store = xs_open(0);
	if (!h->store)
		status = fail_open(err, "cannot connect to XenStore; start xenstored", errno);
	if (status == WEFT_OK) {
		h->grants = xengnttab_open(&silent, 0);
		if (!h->grants)
			status = fail_open(err, "cannot open /dev/xen/gntdev; load the module xen-gntdev", errno);
	}
	*out = (struct domain_host){read_node, list_nodes, map_grants, unmap_grants, h};
	if (status < 0)
		domain_host_close(out);
	return status;
}

void domain_host_close(struct domain_host *host)
{
	struct hypervisor *h = host->data;
	if (h->grants)
		xengnttab_close(h->grants);
	if (h->store)
		xs_close(h->store);
	free(h);
}

#else

int domain_host_open(struct domain_host *out, struct weft_error *err)
{
	return weft_error_set(err, WEFT_ENOTSUP, "this weft was built without the libraries of Xen");
}

void domain_host_close(struct domain_host *host)
{
}

#endif
