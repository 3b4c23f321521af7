/* query.c: parses search queries, and matches promises against them.  SPDX-License-Identifier: ISC */
#include "view/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/sort.h"
#include "base/utf8.h"
#include "model/roles.h"

#define MAX_SLOWEST 1000000

static const struct {
	const char *name;
	uint8_t kind;
	const char *example; /* example of a value, which must be a number or a duration */
} fields[] = {
    {"label", WEFT_TERM_LABEL, NULL},
    {"kind", WEFT_TERM_KIND, NULL},
    {"site", WEFT_TERM_SITE, NULL},
    {"failure", WEFT_TERM_FAILURE, NULL},
    {"type", WEFT_TERM_KIND, NULL},
    {"library", WEFT_TERM_LIBRARY, NULL},
    {"thread", WEFT_TERM_THREAD, NULL},
    {"slowest", WEFT_TERM_SLOWEST, "a number, for example slowest:10"},
    {"id", WEFT_TERM_ID, "a number, for example id:18"},
    {"longer", WEFT_TERM_LONGER, "a duration, for example longer:5ms"},
    {"shorter", WEFT_TERM_SHORTER, "a duration, for example shorter:5ms"},
};

static char to_lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static bool contains_text(struct weft_str text, const char *wanted, size_t wanted_len)
{
	for (size_t i = 0; i + wanted_len <= text.len; i++) {
		size_t k = 0;
		while (k < wanted_len && to_lower(text.ptr[i + k]) == wanted[k])
			k++;
		if (k == wanted_len)
			return true;
	}
	return false;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* One word of the query's text, with its quotation marks. */
struct word {
	const char *text;
	size_t len, colon; /* colon: index of the first colon outside of quotation marks, or len */
	bool quoted;
};

/* Reads a word.  A quotation that is not closed, as while the user types, extends to the end of the text. */
static bool next_word(const char **at, const char *end, struct word *w)
{
	while (*at < end && is_space(**at))
		++*at;
	if (*at == end)
		return false;
	bool inside = false;
	*w = (struct word){.text = *at, .colon = SIZE_MAX};
	for (; *at < end && (inside || !is_space(**at)); ++*at) {
		if (**at == '"') {
			inside = !inside;
			w->quoted = true;
		} else if (**at == ':' && !inside && w->colon == SIZE_MAX) {
			w->colon = (size_t)(*at - w->text);
		}
	}
	w->len = (size_t)(*at - w->text);
	w->colon = w->colon < w->len ? w->colon : w->len;
	return true;
}

static bool parse_number(const char *text, size_t len, int64_t *out)
{
	bool negative = len > 1 && *text == '-';
	int64_t sum = 0;
	for (size_t i = negative; i < len; i++)
		if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(sum, 10, &sum) ||
		    __builtin_sub_overflow(sum, text[i] - '0', &sum))
			return false;
	if (len == 0 || (!negative && sum == INT64_MIN))
		return false;
	*out = negative ? sum : -sum;
	return true;
}

static bool word_equals(const struct word *w, size_t len, const char *name)
{
	if (strlen(name) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (to_lower(w->text[i]) != name[i])
			return false;
	return true;
}

static int add_term(struct weft_query *q, size_t *used, const struct word *w, struct weft_error *err)
{
	struct weft_term term = {.kind = WEFT_TERM_TEXT, .first = (uint16_t)*used};
	const char *name = NULL, *example = NULL;
	size_t from = 0;
	for (size_t i = 0; w->colon < w->len && i < sizeof fields / sizeof *fields; i++) {
		if (!word_equals(w, w->colon, fields[i].name))
			continue;
		term.kind = fields[i].kind;
		name = fields[i].name;
		example = fields[i].example;
		from = w->colon + 1;
	}
	if (name && term.kind <= WEFT_TERM_THREAD && from < w->len && w->text[from] == '=') {
		term.is_whole = true;
		from++;
	}
	if (!w->quoted && word_equals(w, w->len, "failed"))
		term.kind = WEFT_TERM_FAILED;
	if (!w->quoted && word_equals(w, w->len, "pending"))
		term.kind = WEFT_TERM_PENDING;
	for (size_t i = from; i < w->len; i++)
		if (w->text[i] != '"')
			q->text[(*used)++] = to_lower(w->text[i]);
	term.len = (uint16_t)(*used - term.first);
	const char *value = q->text + term.first;
	int64_t number = 0;
	term.is_number = parse_number(value, term.len, &number);
	if (name && term.len == 0)
		return weft_error_set(err, WEFT_EINVAL, "%s: needs %s", name, example ? example : "a text after the colon");
	if (term.len == 0)
		return WEFT_OK; /* "" matches everything */
	if (term.kind == WEFT_TERM_SLOWEST) {
		if (!term.is_number || number < 1 || number > MAX_SLOWEST)
			return weft_error_set(err, WEFT_EINVAL, "%s: needs %s", name, example);
		q->slowest = (uint32_t)number;
		return WEFT_OK; /* slowest:N is no term of the query, because it matches every promise */
	}
	bool is_time = term.kind == WEFT_TERM_LONGER || term.kind == WEFT_TERM_SHORTER;
	if ((term.kind == WEFT_TERM_ID && !term.is_number) || (is_time && !weft_duration_parse(value, term.len, &number)))
		return weft_error_set(err, WEFT_EINVAL, "%s: needs %s", name, example);
	term.value = number;
	if (q->count == WEFT_QUERY_TERMS)
		return weft_error_set(err, WEFT_EINVAL, "a search has at most %d words", WEFT_QUERY_TERMS);
	q->of_kind[term.kind] |= 1u << q->count;
	if (term.is_whole)
		q->whole |= 1u << q->count;
	for (size_t i = 0; i < term.len; i++)
		if ((value[i] >= '0' && value[i] <= '9') || value[i] == '+' || value[i] == '-')
			q->changes |= 1u << q->count;
	q->terms[q->count++] = term;
	return WEFT_OK;
}

/* Returns whether a word begins a comparison, as ">", "<" or ">20ms" do. */
static bool is_comparison(const struct word *w)
{
	return !w->quoted && (*w->text == '>' || *w->text == '<') && (w->len == 1 || (w->text[1] >= '0' && w->text[1] <= '9'));
}

static int add_comparison(struct weft_query *q, const struct word *w, const char **at, const char *end, struct weft_error *err)
{
	struct word value = {.text = w->text + 1, .len = w->len - 1};
	int64_t ns = 0;
	if ((value.len == 0 && !next_word(at, end, &value)) || !weft_duration_parse(value.text, value.len, &ns))
		return weft_error_set(err, WEFT_EINVAL, "%c needs a duration, for example %c 20ms", *w->text, *w->text);
	if (q->count == WEFT_QUERY_TERMS)
		return weft_error_set(err, WEFT_EINVAL, "a search has at most %d words", WEFT_QUERY_TERMS);
	const uint8_t kind = *w->text == '>' ? WEFT_TERM_LONGER : WEFT_TERM_SHORTER;
	q->of_kind[kind] |= 1u << q->count;
	q->terms[q->count++] = (struct weft_term){.kind = kind, .value = ns};
	return WEFT_OK;
}

int weft_query_parse(struct weft_query *out, const char *text, size_t len, struct weft_error *err)
{
	struct weft_query q;
	const char *at = text;
	struct word w;
	size_t used = 0;
	memset(&q, 0, sizeof q);
	if (len > WEFT_QUERY_BYTES)
		return weft_error_set(err, WEFT_EINVAL, "a search has at most %d bytes", WEFT_QUERY_BYTES);
	while (next_word(&at, text + len, &w)) {
		int status = is_comparison(&w) ? add_comparison(&q, &w, &at, text + len, err) : add_term(&q, &used, &w, err);
		if (status < 0)
			return status;
	}
	if (q.slowest > 0 && q.count == 0)
		q.is_any = true;
	*out = q;
	return WEFT_OK;
}

void weft_query_finish(struct weft_query *q)
{
	free(q->texts);
	free(q->sites);
	free(q->streams);
	q->texts = q->sites = q->streams = NULL;
}

/* Returns whether a text matches a term of the query. */
static bool has_term(const struct weft_query *q, const struct weft_term *term, struct weft_str text)
{
	if (term->is_whole && text.len != term->len)
		return false;
	/* A kind is matched by the start of its name, so that "read" does not match "thread". */
	if (term->kind == WEFT_TERM_KIND && text.len > term->len)
		text.len = term->len;
	return contains_text(text, q->text + term->first, term->len);
}

/* Returns the bits of the terms that a text matches. */
static uint32_t terms_in(const struct weft_query *q, struct weft_str text)
{
	uint32_t found = 0;
	for (unsigned i = 0; i < q->count; i++)
		if (has_term(q, &q->terms[i], text))
			found |= 1u << i;
	return found;
}

static uint32_t terms_in_text(struct weft_query *q, const struct weft_model *model, uint32_t text)
{
	if (!q->texts)
		q->texts = calloc(weft_model_text_count(model), sizeof *q->texts);
	if (!q->texts)
		return terms_in(q, weft_model_text(model, text));
	if (!q->texts[text])
		q->texts[text] = terms_in(q, weft_model_text(model, text)) | WEFT_QUERY_KNOWN;
	return q->texts[text] & ~WEFT_QUERY_KNOWN;
}

static uint32_t find_site_terms(const struct weft_query *q, const struct weft_site *s)
{
	char place[512], own[512]; /* call site as "file.c:12 function", and in the usual form "function (file.c:12)" */
	int len = snprintf(place, sizeof place, "%.*s:%" PRIu32 " %.*s", (int)s->file.len, s->file.len ? s->file.ptr : "",
	    s->line, (int)s->function.len, s->function.len ? s->function.ptr : "");
	len = len < (int)sizeof place ? len : (int)sizeof place - 1;
	uint32_t found = terms_in(q, s->function) | terms_in(q, s->file) | terms_in(q, (struct weft_str){place, (uint32_t)len});
	size_t own_len = weft_site_format(s, own, sizeof own);
	found |= terms_in(q, (struct weft_str){own, (uint32_t)(own_len < sizeof own ? own_len : sizeof own - 1)});
	const uint32_t of_library = q->of_kind[WEFT_TERM_LIBRARY];
	return (found & ~of_library) | (of_library ? terms_in(q, weft_site_library(s)) & of_library : 0);
}

static uint32_t terms_in_site(struct weft_query *q, const struct weft_model *model, uint32_t site)
{
	const struct weft_site *s = &model->trace->sites[site];
	if (!q->sites)
		q->sites = calloc(model->trace->site_count, sizeof *q->sites);
	if (!q->sites)
		return find_site_terms(q, s);
	if (!q->sites[site])
		q->sites[site] = find_site_terms(q, s) | WEFT_QUERY_KNOWN;
	return q->sites[site] & ~WEFT_QUERY_KNOWN;
}

static uint32_t find_stream_terms(const struct weft_query *q, const struct weft_model *model, uint16_t stream)
{
	const struct weft_trace_info *info = model->trace;
	const struct weft_roles *roles;
	char text[24];
	uint32_t found = 0;
	if (!info || stream >= info->stream_count)
		return 0;
	found = terms_in(q, info->streams[stream].name);
	if (model->threads && model->threads[stream] != WEFT_NONE && model->threads[stream] != WEFT_SYSTEM) {
		const uint32_t name = weft_model_name_text(model, model->threads[stream]);
		found |= name == WEFT_NONE ? 0 : terms_in(q, weft_model_text(model, name));
	}
	int len = snprintf(text, sizeof text, "%" PRIu64, info->streams[stream].tid);
	found |= terms_in(q, (struct weft_str){text, (uint32_t)len});
	if (weft_model_roles(model, &roles) == WEFT_OK && roles->pool_of[stream] > 0) {
		len = snprintf(text, sizeof text, "pool %u", roles->pool_of[stream]);
		found |= terms_in(q, (struct weft_str){text, (uint32_t)len});
	}
	return found & q->of_kind[WEFT_TERM_THREAD];
}

static uint32_t terms_in_stream(struct weft_query *q, const struct weft_model *model, uint16_t stream)
{
	const size_t count = model->trace ? model->trace->stream_count : 0;
	if (stream >= count)
		return 0;
	if (!q->streams)
		q->streams = calloc(count, sizeof *q->streams);
	if (!q->streams)
		return find_stream_terms(q, model, stream);
	if (!q->streams[stream])
		q->streams[stream] = find_stream_terms(q, model, stream) | WEFT_QUERY_KNOWN;
	return q->streams[stream] & ~WEFT_QUERY_KNOWN;
}

/* Returns the bits of the terms that match an OS thread on which the promise was created or ran. */
static uint32_t terms_in_threads(struct weft_query *q, const struct weft_model *model, const struct weft_promise *p)
{
	uint32_t found = terms_in_stream(q, model, p->stream);
	for (size_t r = p->runs; model->run_streams && r < p[1].runs && found != q->of_kind[WEFT_TERM_THREAD]; r++)
		found |= terms_in_stream(q, model, model->run_streams[r]);
	return found;
}

static uint32_t terms_in_kind(struct weft_query *q, const struct weft_model *model, uint16_t kind)
{
	const char *name = weft_model_kind_name(model, kind);
	if (kind > UINT8_MAX)
		return terms_in(q, (struct weft_str){name, (uint32_t)strlen(name)});
	if (!q->kinds[kind])
		q->kinds[kind] = terms_in(q, (struct weft_str){name, (uint32_t)strlen(name)}) | WEFT_QUERY_KNOWN;
	return q->kinds[kind] & ~WEFT_QUERY_KNOWN;
}

static uint32_t terms_in_labels(struct weft_query *q, const struct weft_model *model, const struct weft_promise *p)
{
	uint32_t found = 0;
	for (uint32_t l = p->labels; l < p[1].labels; l++) {
		char text[256];
		if (!model->labels[l].is_counter) {
			found |= terms_in_text(q, model, model->labels[l].text);
			continue;
		}
		/* For most terms the counter's name suffices, which is matched only once.  The text with the counter's change is
		 * built only if a term may need it. */
		found |= terms_in_text(q, model, model->labels[l].text) & ~q->whole;
		if (!(q->changes & (q->of_kind[WEFT_TERM_TEXT] | q->of_kind[WEFT_TERM_LABEL])))
			continue;
		size_t len = weft_model_label(model, &model->labels[l], text, sizeof text);
		found |= terms_in(q, (struct weft_str){text, (uint32_t)(len < sizeof text ? len : sizeof text - 1)});
	}
	return found;
}

/* Returns the bits of the number terms whose digits occur in an id. */
static uint32_t terms_in_id(const struct weft_query *q, int64_t id)
{
	char digits[24];
	size_t at = sizeof digits;
	uint64_t rest = id < 0 ? 0 - (uint64_t)id : (uint64_t)id;
	uint32_t found = 0;
	do
		digits[--at] = (char)('0' + rest % 10);
	while (rest /= 10);
	if (id < 0)
		digits[--at] = '-';
	for (unsigned i = 0; i < q->count; i++)
		if (q->terms[i].is_number && contains_text((struct weft_str){digits + at, (uint32_t)(sizeof digits - at)},
						 q->text + q->terms[i].first, q->terms[i].len))
			found |= 1u << i;
	return found;
}

static uint32_t terms_of_numbers(const struct weft_query *q, const struct weft_promise *p)
{
	uint32_t found = 0;
	for (unsigned i = 0; i < q->count; i++) {
		const struct weft_term *term = &q->terms[i];
		int64_t length;
		if (__builtin_sub_overflow(p->end_ns, p->start_ns, &length))
			length = INT64_MAX;
		if ((term->kind == WEFT_TERM_ID && p->id == term->value) ||
		    (term->kind == WEFT_TERM_LONGER && length > term->value) ||
		    (term->kind == WEFT_TERM_SHORTER && length < term->value))
			found |= 1u << i;
	}
	return found;
}

bool weft_query_matches(struct weft_query *q, const struct weft_model *model, uint32_t promise)
{
	const struct weft_promise *p = &model->promises[promise];
	const uint32_t *terms_of = q->of_kind;
	uint32_t all = (1u << q->count) - 1, texts = terms_of[WEFT_TERM_TEXT], found = 0;
	if ((q->count == 0 && !q->is_any) || promise == WEFT_SYSTEM)
		return false;
	/* The cheapest checks come first, because most promises fail there. */
	if (p->end == WEFT_END_FAILED)
		found |= terms_of[WEFT_TERM_FAILED];
	if (p->end == WEFT_END_PENDING)
		found |= terms_of[WEFT_TERM_PENDING];
	uint32_t numbers = terms_of[WEFT_TERM_ID] | terms_of[WEFT_TERM_LONGER] | terms_of[WEFT_TERM_SHORTER];
	if (numbers)
		found |= terms_of_numbers(q, p);
	if ((all & ~found) & (numbers | terms_of[WEFT_TERM_FAILED] | terms_of[WEFT_TERM_PENDING]))
		return false;
	if (terms_of[WEFT_TERM_THREAD])
		found |= terms_in_threads(q, model, p);
	if (texts | terms_of[WEFT_TERM_KIND])
		found |= terms_in_kind(q, model, p->kind) & (texts | terms_of[WEFT_TERM_KIND]);
	if ((texts | terms_of[WEFT_TERM_FAILURE]) && p->failure != WEFT_NONE)
		found |= terms_in_text(q, model, p->failure) & (texts | terms_of[WEFT_TERM_FAILURE]);
	uint32_t sites = texts | terms_of[WEFT_TERM_SITE] | terms_of[WEFT_TERM_LIBRARY];
	if (sites && p->site != WEFT_NONE)
		found |= terms_in_site(q, model, p->site) & sites;
	if ((all & ~found) & (texts | terms_of[WEFT_TERM_LABEL]))
		found |= terms_in_labels(q, model, p) & (texts | terms_of[WEFT_TERM_LABEL]);
	if ((all & ~found) & texts)
		found |= terms_in_id(q, p->id) & texts;
	return found == all;
}

static bool term_implies(
    const struct weft_query *a, const struct weft_term *s, const struct weft_query *b, const struct weft_term *t)
{
	switch ((enum weft_term_kind)t->kind) {
	case WEFT_TERM_TEXT:
	case WEFT_TERM_LABEL:
	case WEFT_TERM_KIND:
	case WEFT_TERM_SITE:
	case WEFT_TERM_FAILURE:
	case WEFT_TERM_LIBRARY:
	case WEFT_TERM_THREAD:
		return (s->kind == t->kind || (t->kind == WEFT_TERM_TEXT && s->kind <= WEFT_TERM_FAILURE)) &&
		       (s->is_whole || !t->is_whole) && has_term(b, t, (struct weft_str){a->text + s->first, s->len});
	case WEFT_TERM_ID: return s->kind == t->kind && s->value == t->value;
	case WEFT_TERM_LONGER: return s->kind == t->kind && s->value >= t->value;
	case WEFT_TERM_SHORTER: return s->kind == t->kind && s->value <= t->value;
	default: return s->kind == t->kind;
	}
}

/* A matching promise, and how long it lasted. */
struct lasting {
	int64_t ns;
	uint32_t promise;
	bool is_endless;
};

static int compare_lasting(const void *a, const void *b)
{
	const struct lasting *x = a, *y = b;
	return WEFT_ORDER(x->is_endless, y->is_endless) ?: WEFT_ORDER(y->ns, x->ns) ?: WEFT_ORDER(x->promise, y->promise);
}

size_t weft_query_keep_slowest(const struct weft_query *q, const struct weft_model *model, uint64_t *matches, size_t count)
{
	struct lasting *all = q->slowest > 0 && count > q->slowest ? malloc(count * sizeof *all) : NULL;
	size_t n = 0;
	if (!all)
		return count;
	for (uint32_t w = 0; w <= model->promise_count / 64; w++)
		for (uint64_t bits = matches[w]; bits && n < count; bits &= bits - 1) {
			const uint32_t promise = w * 64 + (uint32_t)__builtin_ctzll(bits);
			const struct weft_promise *p = &model->promises[promise];
			int64_t ns;
			if (__builtin_sub_overflow(p->end_ns, p->start_ns, &ns))
				ns = INT64_MAX;
			all[n++] = (struct lasting){ns, promise, weft_kind_has(p->kind, WEFT_TRAIT_ENDLESS)};
		}
	weft_sort(all, n, sizeof *all, compare_lasting);
	for (size_t i = q->slowest; i < n; i++)
		matches[all[i].promise / 64] &= ~(1ull << all[i].promise % 64);
	free(all);
	return q->slowest;
}

bool weft_query_is_narrower(const struct weft_query *query, const struct weft_query *wider)
{
	if (wider->slowest > 0) /* the matches of slowest:N depend on each other, so no query is narrower */
		return false;
	if (wider->count == 0)
		return query->count == 0;
	for (unsigned t = 0; t < wider->count; t++) {
		bool implied = false;
		for (unsigned s = 0; s < query->count && !implied; s++)
			implied = term_implies(query, &query->terms[s], wider, &wider->terms[t]);
		if (!implied)
			return false;
	}
	return true;
}

/* Appends name:=text.  If the text is too long or cannot be written on one line, the function appends name:prefix without
 * '='. */
static size_t add_like(char *buf, size_t at, const char *name, struct weft_str text)
{
	size_t len = 0, step, max_len = (WEFT_QUERY_BYTES - at) / 2;
	while (len < text.len && (step = weft_utf8_char_bytes((const unsigned char *)text.ptr + len, text.len - len)) > 0 &&
	       text.ptr[len] != '"' && (unsigned char)text.ptr[len] >= ' ' && len + step <= max_len)
		len += step;
	if (len == 0)
		return at;
	int n = snprintf(buf + at, WEFT_QUERY_BYTES + 1 - at, "%s%s:%s\"%.*s\"", at ? " " : "", name, len == text.len ? "=" : "",
	    (int)len, text.ptr);
	return n > 0 && at + (size_t)n <= WEFT_QUERY_BYTES ? at + (size_t)n : at;
}

bool weft_query_for_site(const struct weft_model *model, uint32_t promise, bool library, char buf[WEFT_QUERY_BYTES + 1])
{
	const struct weft_promise *p = &model->promises[promise];
	char place[256];
	if (p->site == WEFT_NONE)
		return false;
	const struct weft_site *site = &model->trace->sites[p->site];
	if (library)
		return add_like(buf, 0, "library", weft_site_library(site)) > 0;
	size_t len = weft_site_format(site, place, sizeof place);
	return add_like(buf, 0, "site", (struct weft_str){place, (uint32_t)(len < sizeof place ? len : sizeof place - 1)}) > 0;
}

size_t weft_query_for_similar(const struct weft_model *model, uint32_t promise, char buf[WEFT_QUERY_BYTES + 1])
{
	const struct weft_promise *p = &model->promises[promise];
	const char *kind = weft_model_kind_name(model, p->kind);
	size_t at = 0;
	for (uint32_t l = p->labels; l < p[1].labels && at == 0; l++)
		if (!model->labels[l].is_counter && model->labels[l].text != p->failure)
			at = add_like(buf, 0, "label", weft_model_text(model, model->labels[l].text));
	if (at == 0 && p->site != WEFT_NONE) {
		const struct weft_site *site = &model->trace->sites[p->site];
		char place[256] = "";
		if (!site->file.len && !site->function.len)
			weft_site_format(site, place, sizeof place);
		at = add_like(buf, 0, "site",
		    *place               ? (struct weft_str){place, (uint32_t)strlen(place)}
		    : site->function.len ? site->function
					 : site->file);
	}
	at = add_like(buf, at, "kind", (struct weft_str){kind, (uint32_t)strlen(kind)});
	buf[at] = '\0';
	return at;
}
