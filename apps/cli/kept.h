/* kept.h: the copies that weft watch saved in a folder, and how many of them stay.
 *
 * The name of a copy is TRACE-KEY-TIME or TRACE-KEY-TIME.tar.zst, where KEY identifies its trouble.  Nothing else in the folder
 * is counted or removed.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_KEPT_H
#define WEFT_CLI_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#define CLI_KEPT_SUFFIX ".tar.zst"

struct cli_kept_limits {
	uint64_t max_bytes;
	uint64_t max_count; /* 0: any number */
	int64_t max_age_s;  /* 0: any age */
};

struct cli_kept_count {
	uint64_t this_hour; /* copies of the last hour */
	bool has_copy;      /* a copy has a name that begins with the prefix */
};

/* Counts the copies in a folder that may not exist. */
struct cli_kept_count cli_kept_count(const char *folder, const char *prefix);

/* Removes the oldest copies until the others are within the limits; the newest one always stays.  Removes parts of copies that
 * a killed watcher left more than an hour ago.  Returns the number of copies that were removed. */
uint64_t cli_kept_limit(const char *folder, const struct cli_kept_limits *limits);

/* Parses an age such as 36h or 7d into seconds; false: it is none. */
bool cli_kept_parse_age(const char *text, int64_t *age_s);

/* Returns how many seconds ago a file in the directory of a trace changed last; -1: it cannot be read. */
int64_t cli_kept_idle_s(const char *root, const char *path);

/* Removes the directory of a trace, which is below `root`, a folder that a user named.  Returns whether it is gone. */
bool cli_kept_remove_trace(const char *root, const char *path);

#endif
