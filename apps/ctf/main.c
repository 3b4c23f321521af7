/* main.c: weft-ctf DIRECTORY: CTF of any tracer as an archive of a trace of weft's on standard output; foreign.c starts it.
 *
 * Exits with 0, or with 2 and one line on standard error.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <sys/resource.h>

#include "ctf/reader.h"
#include "export/export.h"
#include "export/tar.h"

/* Metadata of a few bytes can ask libbabeltrace2 for any memory.  AddressSanitizer maps more than there is. */
#define MEMORY_BYTES ((rlim_t)4 << 30)
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define HAS_SANITIZER
#endif
#elif defined __SANITIZE_ADDRESS__
#define HAS_SANITIZER
#endif

static int put_bytes(void *ctx, const void *bytes, size_t size)
{
	return fwrite(bytes, 1, size, ctx) != size;
}

static int put_file(void *ctx, const char *name, const void *bytes, size_t size)
{
	return weft_tar_file(put_bytes, ctx, name, bytes, size, NULL);
}

static int fail(const char *why)
{
	fprintf(stderr, "%s\n", why);
	return 2;
}

static int convert(const ctf_folders *folders, const char *path)
{
	struct weft_error err = {.what = ""};
	struct weft_losses losses;
	struct ctf_reader *reader;
	struct weft_trace *trace;
	if (ctf_reader_create(&reader, &trace, folders, path, &err) < 0)
		return fail(err.what);
	int exit = 0;
	if (weft_export_native(trace, put_file, stdout, &losses, &err) < 0 || weft_tar_end(put_bytes, stdout, &err) < 0 ||
	    fflush(stdout) != 0)
		exit = fail(ctf_reader_why(reader)[0] ? ctf_reader_why(reader) : err.what);
	else if (weft_trace_info(trace)->stream_count == 0)
		exit = fail("no events in the trace");
	ctf_reader_destroy(reader);
	return exit;
}

int main(int argc, char **argv)
{
	ctf_folders folders = {0};
	if (argc != 2)
		return fail("usage: weft-ctf DIRECTORY");
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
#ifndef HAS_SANITIZER
	setrlimit(RLIMIT_AS, &(struct rlimit){MEMORY_BYTES, MEMORY_BYTES});
#endif
	const int exit = !ctf_find(&folders, argv[1]) ? fail("out of memory")
			 : folders.count == 0         ? fail("there is no CTF here")
						      : convert(&folders, argv[1]);
	ctf_folders_free(&folders);
	return exit;
}
