/* format.c: formats the parts of sentences in findings.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/hot_function.h"
#include "analysis/index/label_patterns.h"
#include "analysis/index/memory.h"
#include "analysis/index/names.h"
#include "analysis/index/path_by_process.h"
#include "analysis/index/remote_waits.h"
#include "analysis/index/requests.h"
#include "base/duration.h"

/* Formats the inputs of a promise without a label: " of "transfer A to B" and others". */
static void format_inputs(struct weft__finder *f, uint32_t promise, char buf[WEFT_NAME_BYTES])
{
	char text[100];
	uint32_t first = WEFT_NONE, named = WEFT_NONE;
	bool others = false;
	for (uint32_t i = f->link_index.out_begin[promise];
	     i < f->link_index.out_begin[promise + 1] && !(others && named != WEFT_NONE); i++) {
		const struct weft_link *link = &f->model->links[f->link_index.out[i]];
		if (link->kind != WEFT_LINK_AWAIT)
			continue;
		first = first == WEFT_NONE ? link->to : first;
		others |= link->to != first;
		named = named == WEFT_NONE ? weft_first_label(f->model, link->to) : named;
	}
	if (named != WEFT_NONE)
		snprintf(buf, WEFT_NAME_BYTES, " of \"%s\"%s", weft_name_text(f->model, named, text, sizeof text),
		    others ? " and others" : "");
}

const char *weft__format_promise(struct weft__finder *f, uint32_t promise)
{
	char name[WEFT_NAME_BYTES], inputs[WEFT_NAME_BYTES] = "";
	uint32_t label = weft_first_label(f->model, promise);
	if (label == WEFT_NONE)
		label = f->inherited_label[promise];
	if (label == WEFT_NONE && weft_kind_has(f->model->promises[promise].kind, WEFT_TRAIT_GATHERS))
		format_inputs(f, promise, inputs);
	return weft__finding_text(f, "%s%s", weft_name_promise_as(f->model, promise, label, name), inputs);
}

const char *weft__format_promise_id(struct weft__finder *f, uint32_t promise)
{
	char name[WEFT_NAME_BYTES];
	return weft__finding_text(f, "%s", weft_name_promise_as(f->model, promise, WEFT_NONE, name));
}

const char *weft__format_site(struct weft__finder *f, uint32_t promise)
{
	char location[WEFT_NAME_BYTES];
	return weft__finding_text(f, "%s", weft_name_site(f->model, promise, location));
}

const char *weft__format_host_suffix(struct weft__finder *f, uint32_t promise)
{
	const struct weft_trace_info *info = f->model->trace;
	bool has_hosts = false;
	for (size_t i = 1; i < info->part_count && !has_hosts; i++)
		has_hosts = !weft_str_equal(info->parts[0].host, info->parts[i].host);
	return has_hosts ? weft__finding_text(f, " in %s", info->parts[weft_part_of(f->model, promise)].name) : "";
}

const char *weft__format_site_suffix(struct weft__finder *f, uint32_t promise)
{
	char location[WEFT_NAME_BYTES];
	const char *where = weft__format_host_suffix(f, promise);
	return *weft_name_site(f->model, promise, location) ? weft__finding_text(f, " (%s)%s", location, where) : where;
}

const char *weft__format_promise_at(struct weft__finder *f, uint32_t promise)
{
	const char *name = weft__format_promise(f, promise);
	const bool is_nameless =
	    f->model->promises[promise].flags & WEFT_PROMISE_INFERRED && weft_first_label(f->model, promise) == WEFT_NONE;
	return is_nameless ? weft__finding_text(f, "%s%s", name, weft__format_site_suffix(f, promise)) : name;
}

const char *weft__format_place(struct weft__finder *f, uint32_t site)
{
	char place[WEFT_NAME_BYTES];
	return *weft_name_place(f->model, site, place) ? weft__finding_text(f, " at %s", place) : "";
}

const char *weft__format_wait_place(struct weft__finder *f, uint32_t from, uint32_t to, int64_t since_ns)
{
	const struct weft_link_index *x = &f->link_index;
	for (uint32_t i = x->out_begin[from + 1]; i-- > x->out_begin[from];) {
		const struct weft_link *link = &f->model->links[x->out[i]];
		if (link->time_ns < since_ns)
			break;
		if (link->kind == WEFT_LINK_AWAIT && link->to == to && link->time_ns == since_ns)
			return weft__format_place(f, link->site);
	}
	return "";
}

const char *weft__format_wait_suffix(struct weft__finder *f, uint32_t from, uint32_t to, int64_t since_ns)
{
	const char *at = weft__format_wait_place(f, from, to, since_ns);
	return *at ? weft__finding_text(f, " (%s)%s", at + sizeof " at", weft__format_host_suffix(f, from))
		   : weft__format_site_suffix(f, from);
}

const char *weft__format_type(struct weft__finder *f, uint32_t promise)
{
	char name[WEFT_NAME_BYTES];
	return weft__finding_text(f, "%s", weft_name_type(f->model, promise, name));
}

const char *weft__format_type_group(struct weft__finder *f, uint32_t promise, bool is_one_type)
{
	char pattern[128];
	uint32_t label = weft_first_label(f->model, promise);
	if (is_one_type || !weft__label_pattern(pattern, sizeof pattern, weft_model_text(f->model, label)))
		return weft__format_type(f, promise);
	return weft__finding_text(f, "\"%s\"", weft__format_sanitized(f, (struct weft_str){pattern, (uint32_t)strlen(pattern)}));
}

/* Returns the source location "(FILE:LINE in FUNCTION)" at the end of a title, also if " in HOST" follows; `len` includes the
 * brackets.  Returns NULL if the title has no source location at its end. */
static const char *find_place(const struct weft__finder *f, const char *title, size_t *len)
{
	const struct weft_trace_info *info = f->model->trace;
	size_t end = strlen(title);
	for (size_t i = 0; i < info->part_count; i++) {
		const size_t name = strlen(info->parts[i].name), suffix = name + strlen(") in ");
		if (end > suffix && !strcmp(&title[end - name], info->parts[i].name) &&
		    !strncmp(&title[end - suffix], ") in ", 5)) {
			end -= suffix - 1;
			break;
		}
	}
	size_t begin = end, depth = 0;
	while (begin > 0) {
		const char c = title[--begin];
		depth += c == ')';
		if (c == '(' && --depth == 0)
			break;
		if (depth == 0)
			return NULL;
	}
	*len = end - begin;
	return begin > 1 && title[begin - 1] == ' ' && memchr(&title[begin], ':', *len) ? &title[begin] : NULL;
}

/* Formats a source location without directories; omits the function unless `with_function`.  A location in machine code has the
 * function first: (FUNCTION (FILE:LINE)). */
static const char *format_short_place(struct weft__finder *f, const char *place, size_t len, bool with_function)
{
	char text[2 * WEFT_NAME_BYTES];
	if (len - 2 >= sizeof text)
		return "";
	memcpy(text, place + 1, len - 2);
	text[len - 2] = '\0';
	char *file = text, *function = strstr(text, " in "), *bracket = strstr(text, " (");
	if (len > 4 && text[len - 3] == ')' && bracket) {
		text[len - 3] = '\0';
		function = text;
		file = bracket + strlen(" (");
		*bracket = '\0';
	} else if (function) {
		*function = '\0';
		function += strlen(" in ");
	}
	const char *slash = strrchr(file, '/');
	const bool has_function = with_function && function && *function;
	return weft__finding_text(
	    f, " (%s%s%s)", slash ? slash + 1 : file, has_function ? " in " : "", has_function ? function : "");
}

const char *weft__format_title(struct weft__finder *f, const char *title, size_t similar)
{
	size_t len = 0;
	const char *place = find_place(f, title, &len), *similar_text = "";
	if (similar > 0)
		similar_text = weft__finding_text(f, "; %zu similar finding%s", similar, weft__format_plural_s(similar));
	if (!place)
		return similar > 0 ? weft__finding_text(f, "%s%s", title, similar_text) : title;
	const int body = (int)(place - title) - 1;
	const char *text = "";
	for (int with_function = 1; with_function >= 0; with_function--) {
		text = weft__finding_text(
		    f, "%.*s%s%s%s", body, title, similar_text, format_short_place(f, place, len, with_function), place + len);
		if (strlen(text) <= WEFT__MAX_TITLE_BYTES)
			break;
	}
	return text;
}

const char *weft__format_duration(struct weft__finder *f, int64_t ns)
{
	char span[WEFT_DURATION_BYTES];
	weft_duration_format(span, sizeof span, ns);
	return weft__finding_text(f, "%s", span);
}

const char *weft__format_duration_range(struct weft__finder *f, int64_t low_ns, int64_t high_ns)
{
	const char *low = weft__format_duration(f, low_ns), *high = weft__format_duration(f, high_ns);
	return strcmp(low, high) ? weft__finding_text(f, "%s to %s", low, high) : low;
}

const char *weft__format_text(struct weft__finder *f, uint32_t text)
{
	char clean[256];
	return text == WEFT_NONE ? "no reason given"
				 : weft__finding_text(f, "%s", weft_name_text(f->model, text, clean, sizeof clean));
}

const char *weft__format_sanitized(struct weft__finder *f, struct weft_str text)
{
	char clean[256];
	return weft__finding_text(f, "%s", weft_name_sanitize(text, clean, sizeof clean));
}

const char *weft__format_plural_s(size_t count)
{
	return count == 1 ? "" : "s";
}

void weft__evidence_add_chain_link(struct weft__finder *f, uint32_t promise, const char *then)
{
	const char *location = weft__format_site(f, promise);
	weft__finding_evidence(f, WEFT_EVIDENCE_CHAIN, f->model->promises[promise].start_ns, promise, "%s%s%s%s%s",
	    weft__format_promise(f, promise), *location ? "  at " : "", location, weft__format_host_suffix(f, promise), then);
}

const char *weft__format_wait_verb(const struct weft__finder *f, uint32_t promise)
{
	return weft_kind_has(f->model->promises[promise].kind, WEFT__TRAITS_HELD) ? "  is held by" : "  waits for";
}

void weft__evidence_add_more(struct weft__finder *f, enum weft_evidence_role role, size_t count, const char *what)
{
	if (count > 0)
		weft__finding_evidence(f, role, WEFT_NO_TIME, WEFT_NONE, "and %zu more%s", count, what);
}

void weft__evidence_add_creation(struct weft__finder *f, uint32_t promise)
{
	const struct weft_promise *p = &f->model->promises[promise];
	if (p->flags & WEFT_PROMISE_START_UNKNOWN || p->created_by == WEFT_NONE)
		return;
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, p->start_ns, p->created_by, "%s creates %s%s",
	    weft__format_promise_at(f, p->created_by), weft__format_promise(f, promise), weft__format_site_suffix(f, promise));
}

void weft__evidence_add_peers(struct weft__finder *f, uint32_t promise)
{
	const struct weft__promise_type *type = &f->types.items.items[f->types.of[promise]];
	const struct weft_model *m = f->model;
	if (!type->named || type->resolved == 0)
		return;
	uint32_t other = type->last_resolved, by = WEFT_NONE;
	for (uint32_t i = f->link_index.in_begin[other]; i < f->link_index.in_begin[other + 1]; i++)
		if (m->links[f->link_index.in[i]].kind == WEFT_LINK_RESOLVE)
			by = m->links[f->link_index.in[i]].from;
	const char *who = by == WEFT_NONE     ? ""
			  : by == WEFT_SYSTEM ? ", the last one from outside the program"
					      : weft__finding_text(f, ", the last one by %s%s", weft__format_promise(f, by),
						    weft__format_site_suffix(f, by));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, m->promises[other].end_ns, other,
	    "%" PRIu32 " other promise%s %s resolved%s", type->resolved, weft__format_plural_s(type->resolved),
	    weft__format_type(f, promise), who);
}

const char *weft__format_promise_in_process(struct weft__finder *f, uint32_t promise)
{
	const struct weft_trace_info *info = f->model->trace;
	char location[WEFT_NAME_BYTES];
	const char *at = *weft_name_site(f->model, promise, location) ? weft__finding_text(f, " (%s)", location) : "";
	return weft__finding_text(f, "%s%s in %s", weft__format_promise(f, promise), at,
	    info->part_count ? info->parts[weft_part_of(f->model, promise)].name : "itself");
}

/* Returns the other end of a connection if that end is in another process whose trace is present; else WEFT_NONE. */
static uint32_t find_peer(const struct weft_model *m, uint32_t connection)
{
	const struct weft_connection_end *end = weft__remote_connection_end(m, connection);
	return end ? end->peer : weft_peer_of(m, connection);
}

const char *weft__format_peer_process(struct weft__finder *f, uint32_t connection)
{
	const uint32_t peer = find_peer(f->model, connection);
	return peer == WEFT_NONE ? "" : weft__finding_text(f, ", %s,", f->model->trace->parts[weft_part_of(f->model, peer)].name);
}

const char *weft__format_other_end(struct weft__finder *f, uint32_t connection)
{
	const uint32_t peer = find_peer(f->model, connection);
	return peer == WEFT_NONE ? weft__finding_text(f, "the other end of %s", weft__format_promise(f, connection))
				 : weft__format_promise_in_process(f, peer);
}

/* Finds the longest step of the critical path that led to the promise that wrote an answer.  Returns false if no step takes
 * more than half of the time. */
static bool find_longest_step(struct weft__finder *f, uint32_t writer, int64_t from_ns, int64_t to_ns, struct weft_path_step *out)
{
	struct weft_path *path = NULL;
	int64_t longest_ns = (to_ns - from_ns) / 2;
	f->no_memory |= weft_path_create_to_action(&path, &f->link_index, writer, from_ns, to_ns, NULL) == WEFT_ENOMEM;
	bool found = false;
	for (size_t i = 0; path && i < path->count; i++) {
		const struct weft_path_step *s = &path->steps[i];
		const int64_t ns = weft_min_ns(s->end_ns, to_ns) - weft_max_ns(s->start_ns, from_ns);
		if (ns <= longest_ns || weft_step_cause(s) == WEFT_SYSTEM || s->sent_by != WEFT_NONE)
			continue;
		*out = *s;
		longest_ns = ns;
		found = true;
	}
	weft_path_destroy(path);
	return found;
}

/* Adds evidence of what the other end of the connection did between request and answer, if its trace is present. */
static void report_peer_work(struct weft__finder *f, const struct weft_request *request)
{
	const struct weft_model *m = f->model;
	const uint32_t peer = find_peer(m, request->connection);
	const struct weft_transfer *answer = peer != WEFT_NONE && request->answered_ns != WEFT_NEVER
						 ? weft__last_transfer_to(m, request->connection, request->answered_ns)
						 : NULL;
	const struct weft_transfer *question = answer ? weft__last_transfer_to(m, peer, answer->sent_ns) : NULL;
	if (!question || answer->from != peer || answer->sent_ns < request->asked_ns || question->sent_ns < request->asked_ns)
		return;
	const uint32_t writer = f->link_index.final[answer->by];
	struct weft_path_step longest;
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, question->received_ns, peer, "%s reads the request %s later",
	    weft__format_promise_in_process(f, peer), weft__format_duration(f, question->received_ns - request->asked_ns));
	if (find_longest_step(f, writer, question->received_ns, answer->sent_ns, &longest)) {
		const uint32_t cause = weft_step_cause(&longest);
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, longest.start_ns, cause,
		    longest.kind == WEFT_STEP_WAITING && longest.lock == WEFT_NONE && longest.delayed_by == WEFT_NONE
			? "the answer waits for %s for %s"
			: "%s delays the answer for %s",
		    weft__format_promise_in_process(f, cause), weft__format_duration(f, longest.end_ns - longest.start_ns));
	}
	if (writer != WEFT_SYSTEM)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, answer->sent_ns, writer,
		    "%s writes the answer, %s after the request was read", weft__format_promise_in_process(f, writer),
		    weft__format_duration(f, answer->sent_ns - question->received_ns));
}

void weft__evidence_add_request(struct weft__finder *f, const struct weft_request *request)
{
	const char *name = weft__format_promise(f, request->connection);
	const uint32_t peer = weft_peer_of(f->model, request->connection);
	const int64_t until_ns = weft_request_until(f->model, request);
	struct weft_steal steal;
	if (f->request == request)
		return;
	f->request = request;
	const uint32_t asked = weft__asked_on(f, request->connection, request->asked_ns);
	if (asked != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, request->asked_ns, asked, "the program writes %s to %s",
		    weft__format_promise(f, asked), name);
	else
		weft__finding_evidence(
		    f, WEFT_EVIDENCE_CAUSE, request->asked_ns, request->connection, "the program writes a request to %s", name);
	report_peer_work(f, request);
	if (request->answered_ns != WEFT_NEVER)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, request->answered_ns, request->connection,
		    "the answer arrives %s later", weft__format_duration(f, request->answered_ns - request->asked_ns));
	if ((peer != WEFT_NONE && weft__finding_measure_steal(f, peer, request->asked_ns, until_ns, &steal)) ||
	    weft__finding_measure_steal(f, request->connection, request->asked_ns, until_ns, &steal))
		weft__evidence_add_steal(f, &steal);
}

const char *weft__format_os_thread(struct weft__finder *f, uint32_t tid)
{
	const struct weft_kernel *k = f->model->kernel;
	const uint32_t thread = weft_kernel_thread(k, tid);
	if (thread == WEFT_NONE || !k->threads[thread].name.len)
		return weft__finding_text(f, "thread %" PRIu32, weft_tid_shown(tid));
	return weft__finding_text(f, "%s\"%s\" (%" PRIu32 ")", k->threads[thread].pid ? "its thread " : "",
	    weft__format_sanitized(f, k->threads[thread].name), weft_tid_shown(tid));
}

bool weft__finding_measure_steal(struct weft__finder *f, uint32_t promise, int64_t from_ns, int64_t to_ns, struct weft_steal *out)
{
	enum { REPORTED_DIVISOR = 8 };
	const struct weft_model *m = f->model;
	to_ns = weft_min_ns(to_ns, m->end_ns);
	return to_ns > from_ns && weft_steal(m, weft_part_of(m, promise), from_ns, to_ns, out) &&
	       out->low_ns >= (to_ns - from_ns) / REPORTED_DIVISOR;
}

void weft__evidence_add_steal(struct weft__finder *f, const struct weft_steal *steal)
{
	const uint32_t thread = f->model->threads[steal->stream], by = steal->preempted ? steal->preempted->by : WEFT_NO_TID;
	const char *who = by == WEFT_NO_TID
			      ? ""
			      : weft__finding_text(f, "; %s used this CPU of the host, and other threads may have followed",
				    weft__format_os_thread(f, by));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, steal->preempted ? steal->preempted->start_ns : WEFT_NO_TIME, thread,
	    "%s, a virtual CPU of the guest, had no CPU of the host for %s during this time%s", weft__format_promise(f, thread),
	    weft__format_duration_range(f, steal->low_ns, steal->high_ns), who);
}

void weft__evidence_add_hot_function(struct weft__finder *f, enum weft_evidence_role role, int64_t start_ns, uint32_t promise,
    const struct weft__hot_function *hot)
{
	const char *called = hot->caller == WEFT_NONE
				 ? ""
				 : weft__finding_text(f, ", called by%s", weft__format_place(f, hot->caller) + sizeof " at" - 1);
	weft__finding_evidence(f, role, start_ns, promise, "%zu of %zu stack samples of the thread are in%s%s", hot->inside,
	    hot->samples, weft__format_place(f, hot->site) + sizeof " at" - 1, called);
}

void weft__evidence_find_hot_function(
    struct weft__finder *f, enum weft_evidence_role role, uint32_t promise, int64_t from_ns, int64_t to_ns)
{
	struct weft__hot_function hot;
	const int found = promise == WEFT_NONE || promise == WEFT_SYSTEM
			      ? 0
			      : weft__hot_function_find(&hot, f->model, f->model->promises[promise].stream, from_ns, to_ns);
	f->no_memory |= found < 0;
	if (found > 0)
		weft__evidence_add_hot_function(f, role, from_ns, promise, &hot);
}

void weft__evidence_add_memory(struct weft__finder *f, uint32_t promise)
{
	struct weft_promise_memory memory;
	char allocated[WEFT_BYTES_BYTES], held[WEFT_BYTES_BYTES], most[WEFT_BYTES_BYTES];
	const bool is_known = weft_promise_memory(&memory, f->model, promise) == WEFT_OK;
	f->no_memory |= !is_known;
	if (!is_known || !memory.samples)
		return;
	const char *place = memory.site == WEFT_NONE
				? ""
				: weft__finding_text(f, "; %s of it%s", weft_bytes_text(most, memory.site_bytes),
				      weft__format_place(f, memory.site));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, promise,
	    "it allocated about %s, and about %s of that is not freed (%zu samples)%s",
	    weft_bytes_text(allocated, memory.allocated), weft_bytes_text(held, memory.held), memory.samples, place);
}

const char *weft__format_late_advice(struct weft__finder *f, uint32_t connection)
{
	return weft__finding_text(
	    f, "find out what %s did at that time, and add a timeout", weft__format_other_end(f, connection));
}
