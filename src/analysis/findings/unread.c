/* unread.c: reports data that another process had sent and that this process never read.  SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"
#include "analysis/index/remote_waits.h"

bool weft__unread_report(struct weft__finder *f, struct weft_finding *finding, const char *what)
{
	const struct weft_model *m = f->model;
	const uint32_t root = finding->root;
	const struct weft_connection_end *own = weft__remote_connection_end(m, root),
					 *peer = own ? weft__remote_connection_end(m, own->peer) : NULL;
	if (!peer || peer->unread_ns == INT64_MAX)
		return false;
	const char *name = weft__format_promise(f, root), *at = weft__format_site_suffix(f, root);
	const char *writer = weft__format_promise(f, peer->promise);
	const int64_t age_ns = weft_model_until(m, peer->promise) - peer->unread_ns;
	finding->title =
	    weft__finding_text(f, "%s: %s%s never read what %s%s had sent", what, name, weft__format_host_suffix(f, root),
		weft__format_promise_id(f, peer->promise), weft__format_host_suffix(f, peer->promise));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, peer->unread_ns, peer->by == WEFT_NONE ? peer->promise : peer->by,
	    "%" PRIu64 " bytes are written to %s, and not read at the other end for %s, until the end of the trace",
	    peer->unread_bytes, writer, weft__format_duration(f, age_ns));
	if (own->received_ns > INT64_MIN)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, own->received_ns, root, "%s reads for the last time", name);
	weft__evidence_add_creation(f, root);
	finding->next = weft__finding_text(f, "find out why no read was started on %s%s, or why it was stopped", name, at);
	return true;
}
