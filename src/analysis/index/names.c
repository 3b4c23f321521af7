/* names.c: formats names of promises for use in sentences.  SPDX-License-Identifier: ISC */
#include "analysis/index/names.h"

#include <inttypes.h>
#include <stdio.h>

#include "analysis/index/link_index.h"
#include "base/utf8.h"

static void hide_controls(char *text)
{
	unsigned char *c = (unsigned char *)text;
	for (; *c; c++)
		if (*c < ' ' || *c == 0x7f)
			*c = ' ';
		else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
			c[1] = 0xa0; /* C1 controls */
}

const char *weft_name_sanitize(struct weft_str text, char *buf, size_t size)
{
	weft_utf8_copy(buf, size, text);
	hide_controls(buf);
	return buf;
}

const char *weft_name_text(const struct weft_model *model, uint32_t text, char *buf, size_t size)
{
	return weft_name_sanitize(weft_model_text(model, text), buf, size);
}

const char *weft_name_promise(const struct weft_model *model, uint32_t promise, char buf[WEFT_NAME_BYTES])
{
	return weft_name_promise_as(model, promise, weft_first_label(model, promise), buf);
}

const char *weft_name_promise_as(const struct weft_model *model, uint32_t promise, uint32_t label, char buf[WEFT_NAME_BYTES])
{
	const struct weft_promise *p = &model->promises[promise];
	if (promise == WEFT_SYSTEM)
		snprintf(buf, WEFT_NAME_BYTES, "the system");
	else if (label == WEFT_NONE)
		snprintf(buf, WEFT_NAME_BYTES, "%s %" PRId64, weft_model_kind_name(model, p->kind), p->id);
	else {
		char text[128];
		snprintf(buf, WEFT_NAME_BYTES, "%s %" PRId64 " \"%s\"", weft_model_kind_name(model, p->kind), p->id,
		    weft_name_text(model, label, text, sizeof text));
	}
	return buf;
}

const char *weft_name_site(const struct weft_model *model, uint32_t promise, char buf[WEFT_NAME_BYTES])
{
	return weft_name_place(model, model->promises[promise].site, buf);
}

const char *weft_name_place(const struct weft_model *model, uint32_t number, char buf[WEFT_NAME_BYTES])
{
	buf[0] = '\0';
	if (number == WEFT_NONE)
		return buf;
	const struct weft_site *site = &model->trace->sites[number];
	char file[96], function[64];
	if (weft_site_is_machine_code(site)) {
		weft_site_format(site, buf, WEFT_NAME_BYTES);
		hide_controls(buf);
		return buf;
	}
	/* The end of a path says more than its start, so the start is cut. */
	struct weft_str path = site->file;
	if (path.len >= sizeof file) {
		path.ptr += path.len - sizeof file + 1;
		path.len = sizeof file - 1;
	}
	weft_utf8_copy(file, sizeof file, path);
	weft_utf8_copy(function, sizeof function, site->function);
	hide_controls(file);
	hide_controls(function);
	snprintf(buf, WEFT_NAME_BYTES, "%s:%" PRIu32 "%s%s", file, site->line, function[0] ? " in " : "", function);
	return buf;
}

const char *weft_name_type(const struct weft_model *model, uint32_t promise, char buf[WEFT_NAME_BYTES])
{
	uint32_t label = weft_first_label(model, promise);
	const char *kind = weft_model_kind_name(model, model->promises[promise].kind);
	char text[128], place[WEFT_NAME_BYTES];
	if (label != WEFT_NONE)
		snprintf(buf, WEFT_NAME_BYTES, "\"%s\"", weft_name_text(model, label, text, sizeof text));
	else if (*weft_name_site(model, promise, place))
		snprintf(buf, WEFT_NAME_BYTES, "%.16s at %.170s", kind, place);
	else
		snprintf(buf, WEFT_NAME_BYTES, "%s", kind);
	return buf;
}
