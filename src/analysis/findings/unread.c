/* unread.c: a message that another process never read.  SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/across.h"
#include "analysis/findings/finding.h"

bool weft__unread_tell(struct weft__finder *f, struct weft_finding *finding, const char *what)
{
	const struct weft_model *m = f->model;
	const uint32_t root = finding->root;
	const struct weft_connection_end *own = weft__across_end(m, root), *peer = own ? weft__across_end(m, own->peer) : NULL;
	if (!peer || peer->unread_ns == INT64_MAX)
		return false;
	const char *name = weft__words_name(f, root), *at = weft__words_at(f, root);
	const char *writer = weft__words_name(f, peer->promise);
	const int64_t age_ns = weft_model_until(m, peer->promise) - peer->unread_ns;
	finding->title = weft__finding_text(f, "%s: %s%s never read what %s%s had sent %s before the end", what, name, at, writer,
	    weft__words_at(f, peer->promise), weft__words_span(f, age_ns));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, peer->unread_ns, peer->by == WEFT_NONE ? peer->promise : peer->by,
	    "%" PRIu64 " bytes are written to %s, and not read at the other end", peer->unread_bytes, writer);
	if (own->received_ns > INT64_MIN)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, own->received_ns, root, "%s reads for the last time", name);
	weft__words_creation(f, root);
	finding->next = weft__finding_text(f, "find out why nothing reads %s%s: no read was begun, or it was stopped", name, at);
	return true;
}
