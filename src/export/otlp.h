/* otlp.h: writes requests, connections and all that they waited for as spans of OpenTelemetry (OTLP, encoded as protobuf).
 *
 * A span has the same ids whenever it is written, because they are made of the recording's UUID and the promise's id.  So the
 * spans of a followed trace may be written in pieces: a later piece refers to spans of an earlier one.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_OTLP_H
#define WEFT_EXPORT_OTLP_H

#include "base/vec.h"
#include "export/export.h"

enum { WEFT_OTLP_TRACE_BYTES = 16, WEFT_OTLP_SPAN_BYTES = 8 };

/* The ids of a span. */
struct weft_otlp_ids {
	unsigned char trace[WEFT_OTLP_TRACE_BYTES], span[WEFT_OTLP_SPAN_BYTES];
	bool has_span; /* whether the promise has or will have a span */
};

/* A finding.  The texts are valid UTF-8. */
struct weft_otlp_finding {
	struct weft_otlp_ids about; /* span that the finding is about */
	int64_t utc_ns;             /* end of the finding's time range */
	const char *kind, *title, *next;
	bool is_certain;
};

/* A promise that was pending at the end of a piece, and whose creator may be missing in the next piece. */
struct weft_otlp_kept {
	int64_t id;
	unsigned char trace[WEFT_OTLP_TRACE_BYTES], parent[WEFT_OTLP_SPAN_BYTES];
	bool is_in_request; /* whether a request began the trace */
};

/* The facts that one piece of a followed trace leaves to the next.  A zeroed memory is empty; the owner frees all.items. */
struct weft_otlp_memory {
	WEFT_VEC(struct weft_otlp_kept) all; /* sorted by id */
};

struct weft_otlp_options {
	struct weft_otlp_memory *memory;          /* of the earlier pieces, replaced on success; or NULL */
	const char *version;                      /* version of weft */
	int64_t after_utc_ns;                     /* only promises that ended later are written; INT64_MIN: all */
	const struct weft_otlp_finding *findings; /* sorted by weft_otlp_compare_findings() */
	size_t finding_count;
};

struct weft_otlp_stats {
	uint64_t spans;      /* including the spans of findings */
	int64_t last_utc_ns; /* latest end of a span; INT64_MIN if there is no span */
};

/* Function that receives a complete message of at most 512 spans, which is both a TracesData and an ExportTraceServiceRequest.  A
 * nonzero result stops the export with WEFT_EIO. */
typedef int weft_otlp_batch_fn(void *ctx, const void *bytes, size_t size, size_t spans);

/* Writes a span for each promise that has ended and is a request, a connection, was created by one of these, or was awaited by
 * one of these.  A finding becomes an event of the span that it is about, or a span of its own if that span is not written now.
 *
 * Fails with WEFT_EIO or WEFT_ENOMEM.  *losses and *stats are filled on success.  Takes time n log n. */
int weft_export_otlp(const struct weft_model *model, const struct weft_otlp_options *options, weft_otlp_batch_fn *batch,
    void *batch_ctx, struct weft_losses *losses, struct weft_otlp_stats *stats, struct weft_error *err);

/* Computes the ids of the spans of some promises, also of promises that are pending; `memory` may be NULL.  WEFT_ENOMEM. */
int weft_otlp_find_ids(const struct weft_model *model, const struct weft_otlp_memory *memory, const uint32_t *promises,
    size_t count, struct weft_otlp_ids *out, struct weft_error *err);

int weft_otlp_compare_findings(const void *a, const void *b);

/* Reads an ExportTraceServiceResponse.  Returns false if the bytes are no such message. */
bool weft_otlp_parse_answer(const void *bytes, size_t size, uint64_t *rejected_spans);

#endif
