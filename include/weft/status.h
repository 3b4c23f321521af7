/* status.h: results of weft's calls.  SPDX-License-Identifier: ISC */
#ifndef WEFT_STATUS_H
#define WEFT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, value, "meaning") */
#define WEFT_STATUSES(X)                                                                                                         \
	X(OK, 0, "no error")                                                                                                     \
	X(ENOMEM, -1, "out of memory")                                                                                           \
	X(EIO, -2, "reading or writing failed")                                                                                  \
	X(ENOENT, -3, "no such file or directory")                                                                               \
	X(EEXIST, -4, "exists already")                                                                                          \
	X(EINVAL, -5, "an argument is out of range")                                                                             \
	X(EFORMAT, -6, "not a trace in a format that weft reads")                                                                \
	X(EDAMAGED, -7, "the trace is damaged")                                                                                  \
	X(ETOOBIG, -8, "too large")                                                                                              \
	X(ENOSPC, -9, "no space left")                                                                                           \
	X(EBUSY, -10, "in use")                                                                                                  \
	X(ENOTSUP, -11, "not supported here")                                                                                    \
	X(EACCES, -12, "permission denied")                                                                                      \
	X(ENOTFOUND, -13, "not in the trace")                                                                                    \
	X(ECANCELLED, -14, "was called off")

enum weft_status {
#define WEFT_STATUS_ENUM(NAME, value, text) WEFT_##NAME = value,
	WEFT_STATUSES(WEFT_STATUS_ENUM)
#undef WEFT_STATUS_ENUM
};

#ifdef __cplusplus
}
#endif
#endif
