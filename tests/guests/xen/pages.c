/* pages.c: pages that a guest of the test shares with domain 0, valid and invalid.
 *
 * 	pages record BYTES COUNT	records COUNT promises into a ring, and then one more now and then
 * 	pages share FILE		shares the content of a file
 * 	pages scribble FILE|BYTES	shares it, or a ring with promises, and then changes sizes and numbers in it
 * 	pages many COUNT		publishes COUNT references to nothing, or as many as XenStore takes
 *
 * Creates the file /run/ready when everything is published, and waits until it is killed.  SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/xen.h>
#include <xenstore.h>

static struct weft_xen xen;

static int fail(const char *what)
{
	fprintf(stderr, "pages: %s: %s\n", what, xen.error ? xen.error : "");
	return 1;
}

static void tell_ready(void)
{
	fflush(stdout);
	close(open("/run/ready", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

/* Its label is long: a clock is slow where a hypervisor is emulated, so that a ring is to be filled with few events. */
static void record_one(void)
{
	static char text[800];
	weft_id id = WEFT_CREATE(WEFT_KIND_TASK);
	memset(text, '.', sizeof text);
	weft_label_bytes(id, text, (size_t)snprintf(text, sizeof text, "promise %lld", (long long)id) + 700);
	weft_run(id);
	weft_resolve(id, id);
}

static int record(size_t bytes, long count, bool go_on)
{
	if (weft_xen_linux_open(&xen, bytes) < 0)
		return fail("open");
	if (weft_xen_start(&xen, NULL) < 0)
		return fail("start");
	for (long i = 0; i < count; i++)
		record_one();
	tell_ready();
	while (go_on) {
		record_one();
		usleep(2000);
	}
	return 0;
}

/* Goes on to change bytes anywhere but in the first page, by which a trace is known. */
__attribute__((noreturn)) static void scribble(void)
{
	unsigned char *memory = xen.memory;
	for (uint64_t random = 1;; usleep(5000))
		for (int i = 0; i < 4; i++) {
			random = random * 6364136223846793005 + 1442695040888963407;
			memory[WEFT_XEN_PAGE + (random >> 20) % ((xen.pages - 1) * WEFT_XEN_PAGE)] =
			    (unsigned char)(random >> 12);
		}
}

static int share(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || weft_xen_linux_open(&xen, (size_t)st.st_size) < 0)
		return fail(path);
	if (weft_xen_share(&xen) < 0)
		return fail("share");
	unsigned char *memory = xen.memory;
	if (read(fd, memory, (size_t)st.st_size) != st.st_size || weft_xen_publish(&xen) < 0)
		return fail("publish");
	tell_ready();
	return 0;
}

static int many(long count)
{
	struct xs_handle *store = xs_open(0);
	if (!store)
		return fail("xs_open");
	char text[1920], name[64];
	long done = 0;
	for (int node = 0; done < count; node++) {
		size_t length = 0;
		for (; done < count && length + 3 < sizeof text; done++)
			length += (size_t)sprintf(text + length, "%s9", length ? "," : "");
		snprintf(name, sizeof name, node ? WEFT_XEN_NODE "-%d" : WEFT_XEN_NODE, node);
		if (!xs_write(store, XBT_NULL, name, text, (unsigned)length)) {
			perror(name);
			break;
		}
	}
	printf("pages: %ld references\n", done);
	tell_ready();
	pause();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "record"))
		return record(strtoul(argv[2], NULL, 10), strtol(argv[3], NULL, 10), true);
	if (argc == 3 && !strcmp(argv[1], "share"))
		return share(argv[2]) || pause();
	if (argc == 3 && !strcmp(argv[1], "scribble")) {
		size_t bytes = strtoul(argv[2], NULL, 10);
		if (bytes ? record(bytes, 500, false) : share(argv[2]))
			return 1;
		scribble();
	}
	if (argc == 3 && !strcmp(argv[1], "many"))
		return many(strtol(argv[2], NULL, 10));
	fputs("usage: pages record BYTES COUNT | share FILE | scribble FILE|BYTES | many COUNT\n", stderr);
	return 2;
}
