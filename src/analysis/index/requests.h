/* requests.h: finds requests on connections, and their answers.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_REQUESTS_H
#define WEFT_ANALYSIS_INDEX_REQUESTS_H

#include "model/model.h"

/* Returns the request that was open for at least half of the interval on the thread of the promise, or NULL.  Also returns NULL
 * if the kind of the promise already says what the promise waits for, as for a timer or the read of a file.  A request by the
 * promise itself is preferred, then the request that was open for longest.  Linear in requests. */
const struct weft_request *weft_request_during(
    const struct weft_model *model, uint32_t promise, int64_t start_ns, int64_t end_ns);

/* Returns the last request on a connection before a time, or NULL.  Logarithmic. */
const struct weft_request *weft_request_before(const struct weft_model *model, uint32_t connection, int64_t time_ns);

/* Returns when the answer came or the connection was closed; INT64_MAX if neither happened. */
int64_t weft_request_until(const struct weft_model *model, const struct weft_request *request);

/* Returns how long the thread that sent the request slept between its last write and until_ns; that whole time if the trace
 * does not record sleeps.  Reads at most the last 10,000 sleeps. */
int64_t weft_request_slept_ns(const struct weft_model *model, const struct weft_request *request, int64_t until_ns);

#endif
