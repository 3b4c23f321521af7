/* main.c: implements weft-ctf DIRECTORY, which writes CTF of any tracer to standard output as an archive of a weft trace;
 * foreign.c runs this program.
 *
 * The trace is untrusted, so this process may only read files and write to descriptors that are already open.  Exits with status
 * 0, or with status 2 and one line on standard error.  SPDX-License-Identifier: ISC */
#include <stdio.h>

#include "base/confine.h"
#include "ctf/reader.h"
#include "export/export.h"
#include "export/tar.h"

/* Memory limit: a few bytes of metadata can make libbabeltrace2 allocate any amount of memory. */
#define MEMORY_BYTES ((size_t)4 << 30)

static int write_bytes(void *ctx, const void *bytes, size_t size)
{
	return fwrite(bytes, 1, size, ctx) != size;
}

static int write_file(void *ctx, const char *name, const void *bytes, size_t size)
{
	return weft_tar_file(write_bytes, ctx, name, bytes, size, NULL);
}

static int print_failure(const char *why)
{
	fprintf(stderr, "%s\n", why);
	return 2;
}

static int convert_folders(const ctf_folders *folders, const char *path)
{
	struct weft_error err = {.what = ""};
	struct weft_losses losses;
	struct ctf_reader *reader;
	struct weft_trace *trace;
	if (ctf_reader_create(&reader, &trace, folders, path, &err) < 0)
		return print_failure(err.what);
	int exit = 0;
	if (weft_export_native(trace, write_file, stdout, &losses, &err) < 0 || weft_tar_end(write_bytes, stdout, &err) < 0 ||
	    fflush(stdout) != 0)
		exit = print_failure(ctf_reader_why(reader)[0] ? ctf_reader_why(reader) : err.what);
	else if (weft_trace_info(trace)->stream_count == 0)
		exit = print_failure("no events in the trace");
	ctf_reader_destroy(reader);
	return exit;
}

int main(int argc, char **argv)
{
	ctf_folders folders = {0};
	if (argc != 2)
		return print_failure("usage: weft-ctf DIRECTORY");
	(void)weft_confine(MEMORY_BYTES, true); /* on systems without seccomp filters, at least the limits are set */
	const int exit = !ctf_find_folders(&folders, argv[1]) ? print_failure("out of memory")
			 : folders.count == 0                 ? print_failure("no CTF in this directory")
							      : convert_folders(&folders, argv[1]);
	ctf_folders_free(&folders);
	return exit;
}
