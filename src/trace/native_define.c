/* native_define.c: reads the metadata of a native trace, and its definitions of strings, sites, places, threads and forms.
 * SPDX-License-Identifier: ISC */
#include <string.h>

#include "base/cursor.h"
#include "trace/native.h"

/* ---- Metadata ---- */

/* Returns the position after a quoted string, which may contain anything, such as a command line. */
static const char *skip_string(const char *at)
{
	for (at++; *at && *at != '"'; at++)
		at += *at == '\\' && at[1];
	return at + (*at == '"');
}

/* Returns the content of a block, or the end of the text; `name` includes the "{" of the block. */
static const char *find_block(const char *text, const char *name)
{
	const size_t length = strlen(name);
	while (*text && (*text != *name || strncmp(text, name, length) != 0))
		text = *text == '"' ? skip_string(text) : text + 1;
	return *text ? text + length : text;
}

/* Returns the value after `name` = in a block, or NULL. */
static const char *find_value(const char *text, const char *block, const char *name)
{
	static const char space[] = " \t\n", ends[] = " \t\n;{}=\"";
	const size_t length = strlen(name);
	const char *at = find_block(text, block);
	while (*at && *at != '}') {
		const size_t word = strcspn(at, ends);
		const char *after = at + word + strspn(at + word, space);
		if (word == length && memcmp(at, name, length) == 0 && *after == '=')
			return after + 1 + strspn(after + 1, space);
		at = word ? at + word : *at == '"' ? skip_string(at) : at + 1;
	}
	return NULL;
}

static bool find_number(const char *text, const char *block, const char *name, int64_t *out)
{
	const char *at = find_value(text, block, name);
	char *end;
	if (!at)
		return false;
	long long v = strtoll(at, &end, 10);
	*out = v;
	return end != at;
}

/* Returns a quoted string without its escapes, in memory of the trace. */
static struct weft_str find_string(struct native *n, const char *text, const char *name)
{
	struct weft_str none = {"", 0};
	const char *at = find_value(text, "env {", name);
	if (!at || *at != '"')
		return none;
	char *out = weft__native_alloc(n, strlen(at));
	if (!out)
		return none;
	size_t length = 0;
	for (at++; *at && *at != '"'; at++) {
		unsigned c = (unsigned char)*at;
		if (c == '\\' && at[1]) {
			c = (unsigned char)*++at;
			if (c >= '0' && c <= '7') {
				c -= '0';
				for (int i = 0; i < 2 && at[1] >= '0' && at[1] <= '7'; i++)
					c = c << 3 | (unsigned)(*++at - '0');
			}
		}
		out[length++] = (char)c;
	}
	return (struct weft_str){out, (uint32_t)length};
}

static bool is_word(struct weft_str s, const char *word)
{
	return s.len == strlen(word) && memcmp(s.ptr, word, s.len) == 0;
}

/* Keeps the first words of a text; if there are fewer words, keeps nothing. */
static void cut_words(struct weft_str *text, unsigned words)
{
	for (uint32_t at = 0; at < text->len; at++)
		if (text->ptr[at] == ' ' && --words == 0) {
			text->len = at;
			return;
		}
	text->len = 0;
}

/* Parses numbers of packets, such as "12 1 4". */
static bool read_packets_made(struct native *n, struct weft_str text)
{
	for (uint32_t at = 0; at < text.len && n->packets_made.count <= UINT16_MAX;) {
		uint64_t *slot = weft_vec_push(&n->packets_made);
		if (!slot)
			return false;
		*slot = 0;
		for (; at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9'; at++)
			*slot = *slot < UINT64_MAX / 20 ? *slot * 10 + (uint64_t)(text.ptr[at] - '0') : *slot;
		at += at < text.len;
	}
	return true;
}

static int parse_hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool parse_uuid(const char *at, uint8_t uuid[16])
{
	if (!at || *at++ != '"')
		return false;
	for (int i = 0; i < 16; i++) {
		at += *at == '-';
		int high = parse_hex_digit(at[0]), low = high < 0 ? -1 : parse_hex_digit(at[1]);
		if (low < 0)
			return false;
		uuid[i] = (uint8_t)(high << 4 | low);
		at += 2;
	}
	return true;
}

int weft__native_metadata(struct weft_trace *trace, const unsigned char *bytes, size_t size, struct weft_error *err)
{
	struct native *n = trace->state;
	size_t bounded = size < 1 << 20 ? size : 1 << 20;
	char *text = weft__native_alloc(n, bounded + 1);
	if (!text)
		return weft__native_no_memory(err);
	memcpy(text, bytes, bounded);
	text[bounded] = 0;
	int64_t number;
	trace->info.host = find_string(n, text, "hostname");
	trace->info.process = find_string(n, text, "procname");
	trace->info.command = find_string(n, text, "command");
	trace->info.runtimes = find_string(n, text, "runtimes");
	if (find_number(text, "env {", "vpid", &number))
		trace->info.pid = (uint64_t)number;
	n->is_ring = is_word(find_string(n, text, "mode"), "ring");
	struct weft_str state = find_string(n, text, "state");
	trace->info.is_stopped = is_word(state, "stopped");
	n->is_finished = is_word(state, "finished") || trace->info.is_stopped;
	trace->info.is_seen_once = is_word(state, "seen");
	if (trace->info.is_seen_once && find_number(text, "env {", "seen_ns", &number))
		trace->info.seen_wall_ns = number;
	trace->info.unfinished = is_word(state, "recording") || trace->info.is_seen_once;
	if (trace->info.unfinished && find_number(text, "env {", "died_ns", &number))
		n->died_wall_ns = number;
	n->is_live = is_word(state, "recording") && !trace->source.is_frozen && (n->is_ring || trace->source.reload);
	/* While a program records, it may have made more packets since. */
	if (n->is_finished && find_number(text, "env {", "definitions", &number) && number > 0)
		n->definitions_made = (uint64_t)number;
	n->packets_made.count = 0;
	if (n->is_finished && !read_packets_made(n, find_string(n, text, "stream_packets")))
		return weft__native_no_memory(err);
	trace->counter = find_string(n, text, "clock_source");
	trace->has_counter_clock =
	    is_word(trace->counter, "tsc") || is_word(trace->counter, "cntvct") || is_word(trace->counter, "counter");
	if (is_word(trace->counter, "caller") || is_word(trace->counter, "counter"))
		trace->counter.len = 0;
	trace->boot = find_string(n, text, "recorder");
	/* The text is "BOOT NAMESPACE PID START"; the monotonic clock may differ between containers, so the namespace belongs
	 * to the identity of that clock. */
	cut_words(&trace->boot, is_word(trace->counter, "monotonic") ? 2 : 1);
	n->has_rough_clock = is_word(find_string(n, text, "clock_measured"), "hurried");
	n->has_uuid = parse_uuid(find_value(text, "trace {", "uuid"), n->uuid);
	int64_t offset_s, offset;
	if (find_number(text, "clock {", "freq", &number) && number > 0 && find_number(text, "clock {", "offset_s", &offset_s) &&
	    find_number(text, "clock {", "offset", &offset) && offset >= 0 && offset_s > -8000000000 && offset_s < 8000000000) {
		n->clock.hz = (uint64_t)number;
		double rest = 1e9 * (double)offset / (double)number;
		n->clock.origin_ns = offset_s * 1000000000 + (rest < 1e18 ? weft__ticks_ns((uint64_t)offset, n->clock.hz) : 0);
		n->clock.has_origin = n->clock.origin_ns != 0;
	}
	return WEFT_OK;
}

/* ---- Definitions ---- */

static const char unknown[] = "?";

static struct weft_str *new_texts(void)
{
	struct weft_str *page = malloc(NATIVE_PAGE_TEXTS * sizeof *page);
	for (int i = 0; page && i < NATIVE_PAGE_TEXTS; i++)
		page[i] = (struct weft_str){unknown, 1};
	return page;
}

bool weft__native_is_unknown(struct weft_str text)
{
	return text.ptr == unknown;
}

/* Returns the place where the text of a key is stored; NULL when out of memory. */
static struct weft_str *text_at(struct native *n, uint16_t key)
{
	struct weft_str **page = &n->texts[key / NATIVE_PAGE_TEXTS];
	if (*page == n->unknown_texts) {
		struct weft_str *own = new_texts();
		if (!own)
			return NULL;
		*page = own;
	}
	return &(*page)[key % NATIVE_PAGE_TEXTS];
}

static bool grow_sites(struct native *n, uint16_t key)
{
	if (key < n->key_count)
		return true;
	uint32_t count = key < 64 ? 64 : key + 1u + key / 2;
	count = count <= UINT16_MAX + 1u ? count : UINT16_MAX + 1u;
	uint32_t *sites = realloc(n->site_index, count * sizeof *sites);
	if (!sites)
		return false;
	for (uint32_t i = n->key_count; i < count; i++)
		sites[i] = WEFT_NO_SITE;
	n->site_index = sites;
	n->key_count = count;
	return true;
}

bool weft__native_begin_keys(struct native *n)
{
	if (n->unknown_texts)
		return true;
	if (!(n->unknown_texts = new_texts()))
		return false;
	for (int i = 0; i < NATIVE_TEXT_PAGES; i++)
		n->texts[i] = n->unknown_texts;
	struct weft_str *empty = grow_sites(n, 0) ? text_at(n, 0) : NULL;
	if (empty)
		*empty = (struct weft_str){"", 0};
	return empty != NULL;
}

void weft__native_end_keys(struct native *n)
{
	for (int i = 0; i < NATIVE_TEXT_PAGES; i++)
		if (n->texts[i] != n->unknown_texts)
			free(n->texts[i]);
	free(n->unknown_texts);
	free(n->site_index);
}

/* Each of these functions returns 1, 0 if the definition is damaged, or WEFT_ENOMEM. */

static int read_text(struct native *n, struct weft_cursor *in)
{
	uint16_t key;
	struct weft_str text;
	if (!weft_read_u16(in, &key) || !weft_read_string(in, &text))
		return 0;
	struct weft_str *at = text_at(n, key);
	if (!at)
		return WEFT_ENOMEM;
	*at = text;
	return 1;
}

/* Adds a site; a later definition of a key replaces an earlier definition. */
static int add_site(struct native *n, uint16_t key, struct weft_site site, uint32_t module)
{
	if (!grow_sites(n, key))
		return WEFT_ENOMEM;
	uint32_t *index = &n->site_index[key];
	if (*index == WEFT_NO_SITE) {
		if (!weft_vec_reserve(&n->sites, 1) || !weft_vec_reserve(&n->site_modules, 1))
			return WEFT_ENOMEM;
		*index = (uint32_t)n->sites.count++;
		n->site_modules.count++;
	}
	n->sites.items[*index] = site;
	n->site_modules.items[*index] = module;
	return 1;
}

static uint32_t module_at(const struct native *n, uint16_t key)
{
	return key < n->module_index.count ? n->module_index.items[key] : WEFT_NO_SITE;
}

static int add_module(struct native *n, uint16_t key, struct weft_module module)
{
	while (n->module_index.count <= key) {
		uint32_t *slot = weft_vec_push(&n->module_index);
		if (!slot)
			return WEFT_ENOMEM;
		*slot = WEFT_NO_SITE;
	}
	struct weft_module *slot = weft_vec_push(&n->modules);
	if (!slot)
		return WEFT_ENOMEM;
	*slot = module;
	n->module_index.items[key] = (uint32_t)(n->modules.count - 1);
	return 1;
}

int weft__native_define(struct native *n, const struct weft_wire_definition *d)
{
	const struct weft_str text = {d->text, d->text_bytes}, second = {d->second, d->second_bytes}, none = {"", 0};
	const bool is_site = d->what == WEFT_DEFINE_SITE;
	if (d->what == WEFT_DEFINE_STRING) {
		struct weft_str *at = text_at(n, d->key);
		if (at && weft__native_is_unknown(*at))
			*at = text;
		return at ? 1 : WEFT_ENOMEM;
	}
	if (d->what == WEFT_DEFINE_MODULE)
		return module_at(n, d->key) != WEFT_NO_SITE
			   ? 0
			   : add_module(n, d->key,
				 (struct weft_module){.address = d->address, .size = d->size, .path = text, .build_id = second});
	if (d->key < n->key_count && n->site_index[d->key] != WEFT_NO_SITE)
		return 0;
	const struct weft_site site = {
	    .line = d->line, .offset = d->address, .file = is_site ? text : none, .function = is_site ? second : none};
	return add_site(n, d->key, site, is_site ? WEFT_NO_SITE : module_at(n, d->module));
}

/* Reads a site.  If the key was a place in a module, the site is the name of that place, which a saved trace adds: the place is
 * kept, because it tells code of a library from code of the program. */
static int read_site(struct native *n, struct weft_cursor *in)
{
	uint16_t key;
	struct weft_site site = {0};
	uint32_t module = WEFT_NO_SITE;
	if (!weft_read_u16(in, &key) || !weft_read_u32(in, &site.line) || !weft_read_string(in, &site.file) ||
	    !weft_read_string(in, &site.function))
		return 0;
	if (key < n->key_count && n->site_index[key] != WEFT_NO_SITE) {
		const uint32_t index = n->site_index[key];
		module = n->site_modules.items[index];
		site.offset = module != WEFT_NO_SITE ? n->sites.items[index].offset : 0;
	}
	/* make_definition() of native_save.c uses the module's name as the file if the source file is unknown. */
	if (module != WEFT_NO_SITE && weft_str_equal(site.file, weft_module_short_name(&n->modules.items[module])))
		site.file = (struct weft_str){"", 0};
	return add_site(n, key, site, module);
}

static int read_place_definition(struct native *n, struct weft_cursor *in)
{
	uint16_t key, module;
	struct weft_site site = {.file = {"", 0}, .function = {"", 0}};
	if (!weft_read_u16(in, &key) || !weft_read_u16(in, &module) || !weft_read_u64(in, &site.offset))
		return 0;
	return add_site(n, key, site, module_at(n, module));
}

static int read_module(struct native *n, struct weft_cursor *in)
{
	uint16_t key;
	struct weft_module module = {0};
	if (!weft_read_u16(in, &key) || !weft_read_u64(in, &module.address) || !weft_read_u64(in, &module.size) ||
	    !weft_read_string(in, &module.path) || !weft_read_string(in, &module.build_id))
		return 0;
	return add_module(n, key, module);
}

static int read_thread(struct native *n, struct weft_cursor *in, uint64_t time)
{
	struct native_change change = {.since = time};
	if (!weft_read_u32(in, &change.instance) || !weft_read_u64(in, &change.tid) || !weft_read_string(in, &change.name))
		return 0;
	struct native_change *slot = weft_vec_push(&n->changes);
	if (!slot)
		return WEFT_ENOMEM;
	*slot = change;
	slot->order = n->changes.count;
	return 1;
}

static int read_form(struct native *n, struct weft_cursor *in)
{
	struct weft_wire_extra extra = {0};
	struct weft_str name, fields;
	if (!weft_read_u8(in, &extra.stream_class) || !weft_read_u8(in, &extra.id) || !weft_read_string(in, &name) ||
	    !weft_read_string(in, &fields))
		return 0;
	/* This version cannot parse the form, so events with the form will count as damaged. */
	if (extra.stream_class > WEFT_CLASS_DEFINITIONS || (extra.stream_class == WEFT_CLASS_EVENTS && extra.id > WEFT_ID_OP) ||
	    !weft__form_parse(&extra.form, fields.ptr, fields.len))
		return 1;
	/* Definitions that this version knows cannot be redefined. */
	if (extra.stream_class == WEFT_CLASS_DEFINITIONS && extra.id <= WEFT_DEFINE_FORM)
		return 1;
	extra.name = name.ptr;
	for (size_t i = 0; i < n->extras.count; i++)
		if (n->extras.items[i].stream_class == extra.stream_class && n->extras.items[i].id == extra.id)
			return 1;
	struct weft_wire_extra *slot = weft_vec_push(&n->extras);
	struct weft_form *form = weft_vec_push(&n->extra_forms);
	if (!slot || !form)
		return WEFT_ENOMEM;
	*slot = extra;
	*form = (struct weft_form){.name = name, .fields = extra.form.count};
	if (extra.stream_class == WEFT_CLASS_EVENTS)
		weft__native_add_form(n, n->extras.count - 1);
	return 1;
}

/* Skips a definition of a class that only the trace defines. */
static int read_extra(const struct native *n, struct weft_cursor *in, uint8_t id)
{
	size_t i = 0;
	while (i < n->extras.count && (n->extras.items[i].stream_class != WEFT_CLASS_DEFINITIONS || n->extras.items[i].id != id))
		i++;
	if (i == n->extras.count)
		return 0;
	struct weft_field ignored;
	const struct weft_wire_form *form = &n->extras.items[i].form;
	for (unsigned k = 0; k < form->count; k++)
		if (!weft__native_read_field(n, in, &form->fields[k], 0, &ignored))
			return 0;
	return 1;
}

static int read_definition(struct native *n, struct weft_cursor *in, unsigned version, uint64_t *last)
{
	uint8_t id;
	uint32_t word;
	if (!weft_read_u8(in, &id))
		return 0;
	if (id == WEFT_ID_EXTENDED ? !weft_read_u8(in, &id) || !weft_read_u64(in, last) : !weft_read_u32(in, &word))
		return 0;
	switch (id) {
	case WEFT_DEFINE_STRING: return read_text(n, in);
	case WEFT_DEFINE_SITE: return read_site(n, in);
	case WEFT_DEFINE_THREAD: return read_thread(n, in, *last);
	default: break;
	}
	if (version < 2)
		return 0;
	switch (id) {
	case WEFT_DEFINE_MODULE: return read_module(n, in);
	case WEFT_DEFINE_PLACE: return read_place_definition(n, in);
	case WEFT_DEFINE_FORM: return read_form(n, in);
	default: return read_extra(n, in, id);
	}
}

int weft__native_definitions(struct weft_trace *trace, struct weft_error *err)
{
	struct native *n = trace->state;
	uint64_t expected = 0; /* sequence number that the next packet must have */
	bool whole = weft__native_begin_keys(n);
	for (size_t i = 0; i < n->definitions.count && whole; i++) {
		const struct native_packet *p = &n->definitions.items[i];
		struct weft_cursor in = {p->bytes + p->header_bytes, p->bytes + p->content_bytes};
		uint64_t last = p->begin;
		trace->info.lost_no_stream = weft_load_u64(p->bytes + WEFT_PACKET_AT(lost_no_stream));
		while (in.at < in.end && whole) {
			const unsigned char *at = in.at;
			int got = read_definition(n, &in, p->version, &last);
			whole = got >= 0;
			n->last_definition = last > n->last_definition ? last : n->last_definition;
			if (!got) {
				weft__trace_skip(trace, &trace->source.blobs[p->blob], p->index,
				    p->offset + (uint64_t)(at - p->bytes), (uint64_t)(in.end - at),
				    "bytes that are not a definition");
				weft__trace_mark_placed(trace, 1);
				trace->info.has_missing_names = true;
				break;
			}
		}
		if (p->sequence > expected) {
			weft__trace_skip(
			    trace, &trace->source.blobs[p->blob], p->index, p->offset, 0, "earlier definitions are missing");
			weft__trace_mark_placed(trace, 1);
			trace->info.has_missing_names = true;
		}
		expected = p->sequence + 1;
	}
	if (whole && expected < n->definitions_made) {
		weft__trace_skip(trace, NULL, WEFT_NO_OFFSET, WEFT_NO_OFFSET, 0, "the last definitions are missing");
		weft__trace_mark_placed(trace, 1);
		trace->info.has_missing_names = true;
	}
	trace->info.has_missing_names |= n->definitions.count == 0 && n->packets.count > 0;
	whole = whole && (!trace->info.has_missing_names || weft__native_read_redefinitions(trace) == WEFT_OK);
	whole = whole && weft__native_read_profile(trace) == WEFT_OK;
	whole = whole && weft__native_read_memory(trace) == WEFT_OK;
	/* From here on, the items of n->modules do not move any more. */
	for (size_t i = 0; i < n->sites.count && whole; i++)
		if (n->site_modules.items[i] != WEFT_NO_SITE)
			n->sites.items[i].module = &n->modules.items[n->site_modules.items[i]];
	return whole ? WEFT_OK : weft__native_no_memory(err);
}
