/* url_state.c: stores the state of a viewer in the fragment of a URL.  SPDX-License-Identifier: ISC */
#include "viewer/url_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "layout/group.h"
#include "viewer/flame_pane.h"
#include "viewer/private.h"
#include "viewer/search.h"

#define MAX_MARKS 100 /* number of highlighted promises above which they are not listed */

/* ---- Writing ---- */

struct out {
	char *buf;
	size_t size, at; /* at: length of the text so far, which may exceed `size` */
};

static void put_char(struct out *o, char c)
{
	if (o->at + 1 < o->size)
		o->buf[o->at] = c;
	o->at++;
}

static void put_string(struct out *o, const char *text)
{
	while (*text)
		put_char(o, *text++);
}

static void put_name(struct out *o, const char *name)
{
	if (o->at > 0)
		put_char(o, '&');
	put_string(o, name);
	put_char(o, '=');
}

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c != '\0' && strchr("-._~:", c));
}

static void put_encoded(struct out *o, const char *text)
{
	static const char hex[] = "0123456789ABCDEF";
	for (; *text; text++) {
		if (is_plain(*text)) {
			put_char(o, *text);
			continue;
		}
		put_char(o, '%');
		put_char(o, hex[(unsigned char)*text >> 4]);
		put_char(o, hex[*text & 15]);
	}
}

/* Rounds a time span to 47 bits, so that showing it gives the same span again, because a scale has 53 bits. */
static int64_t stable_end(int64_t from_ns, int64_t to_ns)
{
	uint64_t span = (uint64_t)to_ns - (uint64_t)from_ns, grain = 1;
	while (span / grain >= 1ull << 47)
		grain *= 2;
	span = (span + grain / 2) & ~(grain - 1);
	return (int64_t)((uint64_t)from_ns + span);
}

static void put_id(struct out *o, const struct weft_viewer *v, uint32_t promise)
{
	char text[64];
	int64_t id = v->model->promises[promise].id;
	if (weft_model_find(v->model, id) == promise)
		snprintf(text, sizeof text, "%" PRId64, id);
	else
		snprintf(text, sizeof text, "@%" PRIu32, promise);
	put_string(o, text);
}

static void put_promise(struct out *o, const struct weft_viewer *v, const char *name, uint32_t promise)
{
	if (promise == WEFT_NONE)
		return;
	put_name(o, name);
	put_id(o, v, promise);
}

/* Writes the highlights that do not belong to a search, but to a related promise or a finding. */
static void put_marks(struct out *o, const struct weft_viewer *v)
{
	if (v->highlighting == WEFT_HIGHLIGHT_RELATED)
		put_promise(o, v, "related", v->related);
	if (v->highlighting != WEFT_HIGHLIGHT_FINDING)
		return;
	size_t count = 0;
	put_name(o, "mark");
	for (uint32_t w = 0; w <= v->model->promise_count / 64 && v->view->found <= MAX_MARKS; w++)
		for (uint64_t left = v->view->highlight[w]; left; left &= left - 1) {
			if (count++ > 0)
				put_char(o, ',');
			put_id(o, v, w * 64 + (uint32_t)__builtin_ctzll(left));
		}
}

size_t weft_viewer_place(const struct weft_viewer *v, char *buf, size_t size)
{
	struct out o = {buf, size, 0};
	char text[64];
	int64_t from, to;
	weft_viewer_times(v, &from, &to);
	put_name(&o, "t");
	weft_duration_format_exact(text, sizeof text, from);
	put_string(&o, text);
	put_string(&o, "..");
	weft_duration_format_exact(text, sizeof text, stable_end(from, to));
	put_string(&o, text);
	if (v->view->curve > 0) {
		int64_t thousandths = (int64_t)(v->view->focus * 1000 + 0.5);
		put_name(&o, "y");
		snprintf(text, sizeof text, "%" PRId64 ".%03d", thousandths / 1000, (int)(thousandths % 1000));
		for (size_t len = strlen(text); text[len - 1] == '0' && text[len - 2] != '.'; len--)
			text[len - 1] = '\0';
		put_string(&o, text);
	}
	if (v->search_text[0]) {
		put_name(&o, "find");
		put_encoded(&o, v->search_text);
	}
	put_marks(&o, v);
	if (v->filter)
		put_string(&o, "&filter=1");
	put_promise(&o, v, "sel", v->selected);
	if (!v->metrics)
		put_string(&o, "&metrics=0");
	if (!v->names_shown || v->names_px > 0) {
		snprintf(text, sizeof text, "&names=%d", v->names_shown ? (int)v->names_px : 0);
		put_string(&o, text);
	}
	if (!v->threads)
		put_string(&o, "&threads=0");
	if (v->view->holds_rows)
		put_string(&o, "&hold=1");
	if (v->view->lulls)
		put_string(&o, "&sleep=0");
	put_promise(&o, v, "focus", v->focused);
	if (v->folding.rows_by != WEFT_ROWS_BY_THREAD) {
		put_name(&o, "group");
		put_string(&o, weft_rows_by_name(v->folding.rows_by));
	}
	for (size_t i = 0; i < v->folding.count; i++) {
		put_name(&o, "fold");
		put_encoded(&o, v->folding.queries[i]);
	}
	for (size_t i = 0; i < v->folding.hidden_count; i++) {
		put_name(&o, "hide");
		put_encoded(&o, v->folding.hidden[i]);
	}
	if (v->folding.only[0]) {
		put_name(&o, "only");
		put_encoded(&o, v->folding.only);
	}
	if (v->folding.shows_internals)
		put_string(&o, "&internals=1");
	if (!v->folds_itself)
		put_string(&o, "&thin=1");
	if (v->blame_shown) {
		snprintf(text, sizeof text, "&blame=%s:%" PRIu32, weft_folded_name(v->blame_by), v->blame_root);
		put_string(&o, text);
	}
	for (size_t i = 0; i < v->folding.opened_count; i++) {
		put_name(&o, "open");
		snprintf(text, sizeof text, "%" PRId64, v->folding.opened[i]);
		put_string(&o, text);
	}
	if (size > 0)
		buf[o.at < size ? o.at : size - 1] = '\0';
	return o.at;
}

/* ---- Reading ---- */

struct place {
	bool has_blame;
	enum weft_folded_by blame_by;
	uint32_t blame_root;
	bool has_times, has_slot, filter, no_metrics, no_threads, no_sleep, holds_rows, is_thin, no_names;
	double slot, names_px;
	int64_t from_ns, to_ns;
	uint32_t selected, focused, related;
	char find[WEFT_QUERY_BYTES + 1];
	struct weft_folding folding;
	uint32_t marks[MAX_MARKS];
	size_t mark_count;
};

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes URL-encoded text; returns false if the text is too long or not URL-encoded. */
static bool decode_text(char *out, size_t size, const char *text, size_t len)
{
	size_t at = 0;
	for (size_t i = 0; i < len; i++) {
		char c = text[i] == '+' ? ' ' : text[i];
		if (c == '%') {
			int high = i + 1 < len ? hex_digit(text[i + 1]) : -1, low = i + 2 < len ? hex_digit(text[i + 2]) : -1;
			if (high < 0 || low < 0 || high + low == 0)
				return false;
			c = (char)(high * 16 + low);
			i += 2;
		}
		if (at + 1 >= size)
			return false;
		out[at++] = c;
	}
	out[at] = '\0';
	return true;
}

static bool parse_signed(const char *text, size_t len, int64_t *ns)
{
	bool negative = len > 0 && *text == '-';
	if (!weft_duration_parse(text + negative, len - negative, ns))
		return false;
	*ns = negative ? -*ns : *ns;
	return true;
}

static bool parse_times(struct place *p, const char *text, size_t len)
{
	for (size_t i = 0; i + 2 <= len; i++) {
		if (memcmp(text + i, "..", 2) != 0)
			continue;
		p->has_times = true;
		return parse_signed(text, i, &p->from_ns) && parse_signed(text + i + 2, len - i - 2, &p->to_ns) &&
		       p->from_ns < p->to_ns;
	}
	return false;
}

/* Parses "wait" or "run:12". */
static bool parse_blame(struct place *p, const char *text, size_t len)
{
	const char *colon = memchr(text, ':', len);
	size_t name = colon ? (size_t)(colon - text) : len;
	uint32_t root = 0;
	for (size_t i = name + 1; i < len; i++) {
		if (text[i] < '0' || text[i] > '9' || root > 100000000)
			return false;
		root = root * 10 + (uint32_t)(text[i] - '0');
	}
	if (weft_folded_find(&p->blame_by, text, name)) {
		p->has_blame = true;
		p->blame_root = root;
	}
	return p->has_blame;
}

/* Parses digits with up to three decimals. */
static bool parse_slot(struct place *p, const char *text, size_t len)
{
	int64_t thousandths = 0, each = 100;
	size_t i = 0;
	for (; i < len && text[i] >= '0' && text[i] <= '9' && thousandths < 1000000000000; i++)
		thousandths = thousandths * 10 + (text[i] - '0');
	if (i == 0)
		return false;
	thousandths *= 1000;
	if (i + 1 < len && text[i] == '.')
		for (i++; i < len && text[i] >= '0' && text[i] <= '9' && each > 0; i++, each /= 10)
			thousandths += each * (text[i] - '0');
	p->has_slot = true;
	p->slot = (double)thousandths / 1000;
	return i == len;
}

static bool parse_names(struct place *p, const char *text, size_t len)
{
	int px = 0;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9' || px > 100000)
			return false;
		px = px * 10 + (text[i] - '0');
	}
	p->no_names = px == 0;
	p->names_px = px;
	return len > 0;
}

static bool parse_id(const char *text, size_t len, int64_t *id)
{
	struct weft_query query;
	char word[32] = "id:";
	if (len == 0 || len > 20)
		return false;
	memcpy(word + 3, text, len);
	if (weft_query_parse(&query, word, len + 3, NULL) < 0 || query.count != 1)
		return false;
	*id = query.terms[0].value;
	return true;
}

static int parse_promise(
    const struct weft_viewer *v, const char *name, uint32_t *out, struct weft_str value, struct weft_error *err)
{
	const char *text = value.ptr;
	size_t len = value.len < 60 ? value.len : 60;
	bool by_number = len > 0 && *text == '@';
	int64_t id;
	if (!parse_id(text + by_number, len - by_number, &id))
		return weft_error_set(err, WEFT_EINVAL, "%s=%.*s is not the id of a promise", name, (int)len, text);
	uint32_t promise = by_number ? (id > 0 && id < UINT32_MAX ? (uint32_t)id : WEFT_NONE) : weft_model_find(v->model, id);
	if (!weft__viewer_is_selectable(v, promise))
		return weft_error_set(err, WEFT_ENOTFOUND, "there is no promise %.*s in this trace", (int)len, text);
	*out = promise;
	return WEFT_OK;
}

static int parse_marks(const struct weft_viewer *v, struct place *p, const char *text, size_t len, struct weft_error *err)
{
	for (const char *end = text + len; text < end;) {
		const char *comma = memchr(text, ',', (size_t)(end - text));
		size_t one = (size_t)((comma ? comma : end) - text);
		if (p->mark_count == MAX_MARKS)
			return weft_error_set(err, WEFT_EINVAL, "mark= names more than %d promises", MAX_MARKS);
		int status = parse_promise(v, "mark", &p->marks[p->mark_count], (struct weft_str){text, (uint32_t)one}, err);
		if (status < 0)
			return status;
		p->mark_count++;
		text += one + (comma != NULL);
	}
	return WEFT_OK;
}

static int parse_parameter(const struct weft_viewer *v, struct place *p, const char *text, size_t len, struct weft_error *err)
{
	const char *equals = memchr(text, '=', len);
	size_t name = equals ? (size_t)(equals - text) : len;
	const char *value = equals ? equals + 1 : text + len;
	size_t value_len = (size_t)(text + len - value);
	int shown = value_len < 60 ? (int)value_len : 60;
#define IS(wanted) (name == sizeof(wanted) - 1 && memcmp(text, wanted, name) == 0)
	if (IS("t") && !parse_times(p, value, value_len))
		return weft_error_set(err, WEFT_EINVAL, "t=%.*s is not a time range, for example 1.2ms..3.4ms", shown, value);
	if (IS("y") && !parse_slot(p, value, value_len))
		return weft_error_set(err, WEFT_EINVAL, "y=%.*s is not a row, for example 12.5", shown, value);
	if (IS("find") && !decode_text(p->find, sizeof p->find, value, value_len))
		return weft_error_set(err, WEFT_EINVAL, "find=%.*s is not URL-encoded, or is too long", shown, value);
	if (IS("sel"))
		return parse_promise(v, "sel", &p->selected, (struct weft_str){value, (uint32_t)value_len}, err);
	if (IS("focus"))
		return parse_promise(v, "focus", &p->focused, (struct weft_str){value, (uint32_t)value_len}, err);
	if (IS("related"))
		return parse_promise(v, "related", &p->related, (struct weft_str){value, (uint32_t)value_len}, err);
	if (IS("mark"))
		return parse_marks(v, p, value, value_len, err);
	if (IS("fold")) {
		char query[WEFT_QUERY_BYTES + 1];
		if (!decode_text(query, sizeof query, value, value_len) || weft_folding_has(&p->folding, query) ||
		    !weft_folding_toggle(&p->folding, query))
			return weft_error_set(err, WEFT_EINVAL, "fold=%.*s is not a query that can fold promises", shown, value);
	}
	if (IS("hide") || IS("only")) {
		struct weft_folding *f = &p->folding;
		char query[WEFT_QUERY_BYTES + 1];
		bool is_known = decode_text(query, sizeof query, value, value_len) && weft_folding_hide(f, query);
		if (!is_known)
			return weft_error_set(
			    err, WEFT_EINVAL, "%.*s=%.*s is not a query that can hide promises", (int)name, text, shown, value);
		if (IS("only"))
			memcpy(f->only, f->hidden[--f->hidden_count], sizeof f->only);
	}
	if (IS("group") && !weft_rows_by_parse(&p->folding.rows_by, value, value_len))
		return weft_error_set(err, WEFT_EINVAL, "group=%.*s is none of kind, site, library and thread", shown, value);
	if (IS("open")) {
		int64_t id;
		if (!parse_id(value, value_len, &id) || !weft_folding_toggle_opened(&p->folding, id))
			return weft_error_set(err, WEFT_EINVAL, "open=%.*s is not the id of a promise", shown, value);
	}
	if (IS("blame") && !parse_blame(p, value, value_len))
		return weft_error_set(err, WEFT_EINVAL, "blame=%.*s is no measure of a flame graph", shown, value);
	if (IS("internals"))
		p->folding.shows_internals = value_len == 1 && *value == '1';
	if (IS("thin"))
		p->is_thin = value_len == 1 && *value == '1';
	if (IS("filter"))
		p->filter = value_len == 1 && *value == '1';
	if (IS("metrics"))
		p->no_metrics = value_len == 1 && *value == '0';
	if (IS("names") && !parse_names(p, value, value_len))
		return weft_error_set(err, WEFT_EINVAL, "names=%.*s is neither a width in pixels nor 0", shown, value);
	if (IS("threads"))
		p->no_threads = value_len == 1 && *value == '0';
	if (IS("sleep"))
		p->no_sleep = value_len == 1 && *value == '0';
	if (IS("hold"))
		p->holds_rows = value_len == 1 && *value == '1';
#undef IS
	return WEFT_OK;
}

static int parse_place(const struct weft_viewer *v, struct place *p, const char *text, struct weft_error *err)
{
	struct weft_query query;
	text += *text == '#';
	while (*text) {
		size_t len = strcspn(text, "&");
		int status = parse_parameter(v, p, text, len, err);
		if (status < 0)
			return status;
		text += len + (text[len] == '&');
	}
	return weft_query_parse(&query, p->find, strlen(p->find), err);
}

int weft_viewer_go(struct weft_viewer *v, const char *text, struct weft_error *err)
{
	struct place p = {.selected = WEFT_NONE, .focused = WEFT_NONE, .related = WEFT_NONE};
	int status = parse_place(v, &p, text, err);
	if (status < 0)
		return status;
	if (v->last_move != WEFT_MOVE_NONE)
		weft__viewer_begin_move(v, WEFT_MOVE_ACTS);
	v->folds_itself = !p.is_thin;
	weft__viewer_set_folding(v, &p.folding);
	if (v->blame_shown != p.has_blame || (p.has_blame && (v->blame_by != p.blame_by || v->blame_root != p.blame_root)))
		weft_viewer_show_blame(v, p.has_blame, p.has_blame ? p.blame_by : v->blame_by, p.blame_root);
	weft_viewer_set_names(v, !p.no_names, p.names_px);
	weft_viewer_focus(v, p.focused);
	weft_viewer_hold_rows(v, p.holds_rows);
	weft_viewer_fold_sleep(v, p.no_sleep);
	if (p.has_times)
		weft_viewer_show(v, p.from_ns, p.to_ns);
	weft__viewer_choose_subset(v);
	if (p.has_slot)
		weft_view_focus(v->view, p.slot);
	weft_viewer_set_filter(v, p.filter);
	weft_viewer_set_metrics(v, !p.no_metrics);
	weft_viewer_set_threads(v, !p.no_threads);
	weft__viewer_select(v, p.selected);
	if (p.related != WEFT_NONE)
		weft_viewer_highlight_related(v, p.related);
	else if (p.mark_count > 0)
		weft__viewer_highlight(v, p.marks, p.mark_count);
	else if (strcmp(p.find, v->search_text) != 0 || v->highlighting > WEFT_HIGHLIGHT_SEARCH)
		weft__viewer_search(v, p.find, NULL);
	return WEFT_OK;
}
