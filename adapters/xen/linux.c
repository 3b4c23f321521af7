/* linux.c: grants pages of /dev/xen/gntalloc to the host, publishes them by libxenstore, and reads WEFT_XEN from the
 * environment.
 *
 * The kernel grants only pages that the kernel itself has allocated.  The kernel frees the pages when the last mapping and the
 * last descriptor are gone.  A child inherits mapping and descriptor by fork(), so a child process can keep the ring alive.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/xen.h>
#include <xen/gntalloc.h>
#include <xenstore.h>

#define DEVICE "/dev/xen/gntalloc"

struct linux_guest {
	int device;
	uint64_t index; /* offset of the granted pages for mmap() */
	struct xs_handle *store;
	bool is_kept;
};

static int get_status(int error)
{
	switch (error) {
	case ENOENT:
	case ENODEV:
	case ENXIO: return WEFT_ENOENT;
	case EACCES:
	case EPERM: return WEFT_EACCES;
	case ENOMEM: return WEFT_ENOMEM;
	case ENOSPC:
	case E2BIG: return WEFT_ENOSPC;
	default: return WEFT_EIO;
	}
}

static void deallocate_pages(const struct linux_guest *guest, size_t pages)
{
	struct ioctl_gntalloc_dealloc_gref request = {.index = guest->index, .count = (uint32_t)pages};
	ioctl(guest->device, IOCTL_GNTALLOC_DEALLOC_GREF, &request);
}

static int grant_pages(void *data, unsigned domain, void **memory, size_t pages, uint32_t *refs)
{
	struct linux_guest *guest = data;
	if (*memory || pages > UINT32_MAX)
		return WEFT_EINVAL;
	struct ioctl_gntalloc_alloc_gref *request = calloc(1, sizeof *request + pages * sizeof request->gref_ids[0]);
	if (!request)
		return WEFT_ENOMEM;
	request->domid = (uint16_t)domain;
	request->count = (uint32_t)pages; /* flags are 0, so that the host may only read */
	int status = ioctl(guest->device, IOCTL_GNTALLOC_ALLOC_GREF, request) < 0 ? get_status(errno) : WEFT_OK;
	if (status == WEFT_OK) {
		guest->index = request->index;
		memcpy(refs, request->gref_ids, pages * sizeof *refs);
		void *mapped =
		    mmap(NULL, pages * WEFT_XEN_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, guest->device, (off_t)guest->index);
		if (mapped == MAP_FAILED) {
			status = get_status(errno);
			deallocate_pages(guest, pages);
		} else
			*memory = mapped;
	}
	free(request);
	return status;
}

static void ungrant_pages(void *data, void *memory, size_t pages, const uint32_t *refs)
{
	munmap(memory, pages * WEFT_XEN_PAGE);
	deallocate_pages(data, pages);
}

static int write_node(void *data, const char *path, const char *value)
{
	const struct linux_guest *guest = data;
	return xs_write(guest->store, XBT_NULL, path, value, (unsigned)strlen(value)) ? WEFT_OK : get_status(errno);
}

static int remove_node(void *data, const char *path)
{
	const struct linux_guest *guest = data;
	/* xenstored reports success if a missing node is removed, so the node is read first. */
	unsigned length;
	void *there = xs_read(guest->store, XBT_NULL, path, &length);
	if (!there)
		return get_status(errno);
	free(there);
	return xs_rm(guest->store, XBT_NULL, path) ? WEFT_OK : get_status(errno);
}

static const struct weft_xen_guest linux_guest = {grant_pages, ungrant_pages, write_node, remove_node};

static int fail_open(struct weft_xen *xen, struct linux_guest *guest, int status, const char *why)
{
	if (guest && guest->device >= 0)
		close(guest->device);
	free(guest);
	free(xen->refs);
	*xen = (struct weft_xen){.error = why};
	return status;
}

int weft_xen_linux_open(struct weft_xen *xen, size_t bytes)
{
	struct linux_guest *guest = calloc(1, sizeof *guest);
	size_t pages = bytes / WEFT_XEN_PAGE + (bytes % WEFT_XEN_PAGE != 0);
	*xen = (struct weft_xen){.guest = &linux_guest, .data = guest, .pages = pages, .error = ""};
	xen->refs = calloc(pages ? pages : 1, sizeof *xen->refs);
	if (guest)
		guest->device = -1;
	if (!guest || !xen->refs)
		return fail_open(xen, guest, WEFT_ENOMEM, "out of memory");
	guest->device = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (guest->device < 0) {
		int status = get_status(errno);
		return fail_open(xen, guest, status,
		    status == WEFT_ENOENT   ? DEVICE " is missing: this is no Xen guest, or the module xen-gntalloc is not loaded"
		    : status == WEFT_EACCES ? DEVICE ": permission denied"
					    : DEVICE " cannot be opened");
	}
	guest->store = xs_open(0);
	if (!guest->store)
		return fail_open(xen, guest, get_status(errno), "XenStore cannot be reached: is xenfs mounted on /proc/xen?");
	return WEFT_OK;
}

/* Keeps the ring in a child process.  It calls only functions that are allowed between fork and exec, because another thread may
 * have held a lock. */
__attribute__((noreturn)) static void keep_forever(int device)
{
	prctl(PR_SET_NAME, "weft-xen-keep");
	setsid();
	/* All other descriptors are closed, so that no reader of a pipe waits for this process. */
	if (device > 0)
		close_range(0, (unsigned)device - 1, 0);
	close_range((unsigned)device + 1, ~0u, 0);
	if (chdir("/") == 0)
		for (;;)
			pause();
	_exit(1);
}

int weft_xen_linux_keep(struct weft_xen *xen)
{
	struct linux_guest *guest = xen->data;
	/* The process forks twice, so that the program gets no child that it does not know. */
	pid_t child = fork();
	if (child == 0) {
		pid_t keeper = fork();
		if (keeper == 0)
			keep_forever(guest->device);
		_exit(keeper < 0);
	}
	int status = 1;
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child < 0 || status != 0) {
		xen->error = "cannot start the process that keeps the pages";
		return WEFT_EIO;
	}
	guest->is_kept = true;
	return WEFT_OK;
}

void weft_xen_linux_close(struct weft_xen *xen)
{
	struct linux_guest *guest = xen->data;
	if (!guest)
		return;
	if (guest->is_kept) {
		munmap(xen->memory, xen->pages * WEFT_XEN_PAGE);
		xen->is_shared = false;
	}
	weft_xen_unshare(xen);
	xs_close(guest->store);
	close(guest->device);
	free(guest);
	free(xen->refs);
	*xen = (struct weft_xen){.error = ""};
}

/* ---- WEFT_XEN ---- */

static struct weft_xen environment_ring;

/* Parses SIZE[,packets=N][,streams=N][,keep].  Returns false if the text of WEFT_XEN is invalid. */
static bool parse_options(const char *text, size_t *bytes, struct weft_record_options *options, bool *keep)
{
	char *end;
	errno = 0;
	unsigned long long size = strtoull(text, &end, 10);
	unsigned shift = *end == 'k' || *end == 'K' ? 10 : *end == 'm' || *end == 'M' ? 20 : *end == 'g' || *end == 'G' ? 30 : 0;
	if (end == text || *text == '-' || errno || !size || size > SIZE_MAX >> 1 >> shift)
		return false;
	*bytes = (size_t)size << shift;
	end += shift != 0;
	while (*end == ',') {
		unsigned value;
		int used = 0;
		if (sscanf(end, ",packets=%9u%n", &value, &used) == 1 && used)
			options->packets = value;
		else if (sscanf(end, ",streams=%9u%n", &value, &used) == 1 && used)
			options->streams = value;
		else if (strncmp(end, ",keep", 5) == 0) {
			*keep = true;
			used = 5;
		} else
			return false;
		end += used;
	}
	return *end == 0;
}

static int start_by_environment(const char *text)
{
	struct weft_xen *xen = &environment_ring;
	struct weft_record_options options = {0};
	size_t bytes;
	bool keep = false;
	if (!parse_options(text, &bytes, &options, &keep)) {
		xen->error = "expected SIZE[,packets=N][,streams=N][,keep], for example 4M,keep";
		return WEFT_EINVAL;
	}
	int status = weft_xen_linux_open(xen, bytes);
	if (status < 0)
		return status;
	status = weft_xen_start(xen, &options);
	if (status == WEFT_OK && keep) {
		status = weft_xen_linux_keep(xen);
		if (status < 0)
			weft_stop();
	}
	if (status < 0) {
		const char *why = status == WEFT_ENOSPC && !xen->is_shared
				      ? "too many pages for xen-gntalloc: it has 1024, or as many as its parameter limit=N says"
				      : xen->error;
		weft_xen_linux_close(xen);
		xen->error = why;
	}
	return status;
}

__attribute__((constructor)) static void start_if_requested(void)
{
	const char *wanted = secure_getenv("WEFT_XEN");
	if (wanted && *wanted && start_by_environment(wanted) < 0)
		dprintf(STDERR_FILENO, "weft: WEFT_XEN: %s\n", environment_ring.error);
}

__attribute__((destructor)) static void stop_at_exit(void)
{
	if (!environment_ring.data)
		return;
	/* Recording must stop before the pages are freed. */
	weft_stop();
	weft_xen_linux_close(&environment_ring);
}
