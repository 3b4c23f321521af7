/* request.h: what a client asks for.  Nothing here waits, so there are no promises in it.  SPDX-License-Identifier: ISC */
#ifndef REQUEST_H
#define REQUEST_H

#include <http_parser.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define MOST_HEAD_BYTES 16384  /* the request's line and headers: more is answered with 431 */
#define MOST_TARGET_BYTES 2048 /* more: 414 */
#define MOST_VALUE_BYTES 128   /* of a header; a longer one is as if it were not there */
#define MOST_PATH_BYTES (MOST_TARGET_BYTES + 16)

/* The headers that matter here; the last is where the others go. */
enum header { HOST, RANGE, IF_RANGE, IF_NONE_MATCH, IF_MODIFIED_SINCE, OTHER };

struct request {
	http_parser parser;
	bool begun, complete;
	bool keeps; /* the connection may stay open */
	int status; /* what to answer, or 0: whatever the file says */
	size_t target_bytes, name_bytes, value_bytes;
	enum header header; /* whose value is being parsed */
	bool in_value;
	char target[MOST_TARGET_BYTES];
	char name[32];
	char values[OTHER][MOST_VALUE_BYTES]; /* "": it was not there */
};

/* For the first request of a connection. */
void request_init(struct request *r);

/* Takes bytes up to the end of a request, then r->complete is true; the next call begins the next request.  Returns how many
 * it took. */
size_t request_parse(struct request *r, const char *bytes, size_t size);

/* The name of the file, from the folder that is served: "./" and the target's path, decoded; of a folder, its index.html. Nothing
 * that begins with a dot is served: not "..", and nothing hidden.  Returns 0, or the status to answer. */
int request_path(const struct request *r, char path[MOST_PATH_BYTES]);

/* The client has this version of the file already. */
bool request_has(const struct request *r, const char *etag, time_t modified);

/* Which bytes of `size` it wants, from *from to *end: 200, all of them; 206, some; 416, none that there are. */
int request_range(const struct request *r, const char *etag, uint64_t size, uint64_t *from, uint64_t *end);

#define DATE_BYTES 32
/* A time as HTTP writes it. */
void http_date(time_t time, char text[DATE_BYTES]);

#endif
