/* signallers.h: finds conditions that only one promise can signal, while that promise waits for a lock of the condition's
 * waiter.
 *
 * Promise P waits for a condition and holds a lock for which promise Q waits.  If each other thread of the process waits for P
 * as well, or only Q's thread has ever signalled the condition, the condition waits for Q.  No event records that a condition
 * waits for a promise.
 *
 * Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_SIGNALLERS_H
#define WEFT_ANALYSIS_INDEX_SIGNALLERS_H

#include "analysis/index/wait_graph.h"

/* Adds to w->remote_waits the waits of conditions for their signallers at the end of the trace, and sets *added if there is
 * one.  Needs the other waits.  Returns false when out of memory.  Takes time linear in the number of pending promises, or more
 * if a condition has such a waiter. */
bool weft__signallers_find(struct weft__wait_graph *w, const struct weft_link_index *link_index, bool *added);

#endif
