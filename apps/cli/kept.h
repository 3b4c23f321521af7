/* kept.h: counts the copies that weft watch has saved in a folder, and limits their number.
 *
 * The name of a copy is TRACE-KEY-TIME or TRACE-KEY-TIME.tar.zst, where KEY identifies the copy's problem.  Other files in the
 * folder are neither counted nor removed.  SPDX-License-Identifier: ISC */
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
	uint64_t this_hour; /* number of copies that were saved in the last hour */
	bool has_copy;      /* whether a copy has a name that begins with the prefix */
};

/* Counts the copies in a folder; the folder need not exist. */
struct cli_kept_count cli_kept_count(const char *folder, const char *prefix);

/* Removes the oldest copies until the rest is within the limits; the newest copy always stays.  Also removes incomplete copies
 * that a killed watcher left more than an hour ago.  Returns the number of removed copies. */
uint64_t cli_kept_limit(const char *folder, const struct cli_kept_limits *limits);

/* Parses an age such as 36h or 7d into seconds; returns false if the text is no age. */
bool cli_kept_parse_age(const char *text, int64_t *age_s);

/* Returns how many seconds ago a file in the directory of a trace changed last; -1 if the directory cannot be read. */
int64_t cli_kept_idle_s(const char *root, const char *path);

/* Removes the directory of a trace, which must be below `root`, a folder that the user has named.  Returns whether the directory
 * is gone. */
bool cli_kept_remove_trace(const char *root, const char *path);

#endif
