/* request.c: parses any bytes as requests to the example http-server, in pieces whose size is the first byte.
 * SPDX-License-Identifier: ISC */
#include "examples/http/request.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

static void check_request(const struct request *r)
{
	char path[MAX_PATH_BYTES];
	uint64_t from, end;
	if (request_path(r, path) == 0 && (memcmp(path, "./", 2) != 0 || strlen(path) >= sizeof path || strstr(path, "/.")))
		abort();
	int status = request_range(r, "\"x\"", 100, &from, &end);
	if (status == 206 && (from >= end || end > 100))
		abort();
	request_has(r, "\"x\"", 1000);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	static struct request r;
	if (size == 0)
		return 0;
	size_t most = (size_t)*bytes + 1;
	request_init(&r);
	bytes++;
	size--;
	while (size > 0) {
		size_t piece_size = size < most ? size : most, at = 0;
		char *piece = malloc(piece_size);
		if (!piece)
			return 0;
		memcpy(piece, bytes, piece_size);
		do {
			size_t parsed = request_parse(&r, piece + at, piece_size - at);
			if (parsed > piece_size - at || (parsed == 0 && !r.complete))
				abort();
			at += parsed;
			if (r.complete && !r.status)
				check_request(&r);
		} while (at < piece_size && (!r.complete || r.keeps));
		free(piece);
		if (r.complete && !r.keeps)
			return 0;
		bytes += piece_size;
		size -= piece_size;
	}
	return 0;
}
