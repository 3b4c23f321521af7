/* request.h: parses the requests of clients.  Nothing here waits, so it uses no promises.  SPDX-License-Identifier: ISC */
#ifndef REQUEST_H
#define REQUEST_H

#include <http_parser.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define MAX_HEAD_BYTES 16384  /* limit of request line and headers; beyond: 431 */
#define MAX_TARGET_BYTES 2048 /* beyond: 414 */
#define MAX_VALUE_BYTES 128   /* of a header; longer values are ignored */
#define MAX_PATH_BYTES (MAX_TARGET_BYTES + 16)

/* The relevant headers; OTHER is for all other headers. */
enum header { HOST, RANGE, IF_RANGE, IF_NONE_MATCH, IF_MODIFIED_SINCE, OTHER };

struct request {
	http_parser parser;
	bool begun, complete;
	bool keeps; /* keep the connection open */
	int status; /* status to answer, or 0: the file decides */
	size_t target_bytes, name_bytes, value_bytes;
	enum header header; /* header whose value is being parsed */
	bool in_value;
	char target[MAX_TARGET_BYTES];
	char name[32];
	char values[OTHER][MAX_VALUE_BYTES]; /* "": no such header */
};

/* Initialises the first request of a connection. */
void request_init(struct request *r);

/* Parses bytes up to the end of a request and then sets r->complete; the next call starts the next request.  Returns how many
 * bytes it parsed. */
size_t request_parse(struct request *r, const char *bytes, size_t size);

/* Computes the path of the file, relative to the served folder: "./" and the decoded target path; for a folder, its index.html.
 * Rejects components that begin with a dot: ".." and hidden files.  Returns 0, or the status to answer. */
int request_path(const struct request *r, char path[MAX_PATH_BYTES]);

/* Returns whether the client has this version of the file already. */
bool request_has(const struct request *r, const char *etag, time_t modified);

/* Computes the requested range of `size` bytes, *from to *end.  Returns 200: all; 206: a part; 416: no existing byte. */
int request_range(const struct request *r, const char *etag, uint64_t size, uint64_t *from, uint64_t *end);

#define DATE_BYTES 32
/* Formats a time as HTTP does. */
void http_date(time_t time, char text[DATE_BYTES]);

#endif
