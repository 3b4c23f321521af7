/* model.c: implements queries on a model.  SPDX-License-Identifier: ISC */
#include "model/model.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/known_strings.h"
#include "base/search.h"
#include "base/utf8.h"
#include "model/kernel.h"
#include "model/private.h"
#include "model/roles.h"

void weft_model_destroy(struct weft_model *model)
{
	if (!model)
		return;
	for (size_t i = 0; i < model->counter_count; i++)
		free(model->counters[i].samples);
	if (model->whole)
		model->whole->kernel = NULL;
	weft_model_destroy(model->whole);
	weft__model_free_kernel(model->kernel);
	free(model->samples);
	free(model->allocations);
	free(model->counters);
	free(model->promises);
	free(model->links);
	free(model->await_ends);
	free(model->places);
	free(model->callbacks);
	free(model->stacks);
	free(model->spins);
	free(model->earlier_starts);
	free(model->trace_parents);
	free(model->rounds);
	free(model->deaths);
	free(model->snapshot_reasons);
	free(model->messages);
	free(model->transfers);
	free(model->ends);
	free(model->requests);
	free(model->stream_ends_ns);
	free(model->labels);
	free(model->runs);
	free(model->run_streams);
	free(model->namesakes);
	free(model->threads);
	free(model->pauses);
	free(model->sleeps);
	free(model->lulls);
	free(model->claims);
	weft_idmap_finish(&model->priv->ids);
	weft_intern_finish(&model->priv->texts);
	weft_vec_free(&model->priv->counter_of_text);
	weft__roles_free(model->priv->roles);
	free(model->priv);
	free(model);
}

struct weft_str weft_model_text(const struct weft_model *model, uint32_t text)
{
	return model->priv->texts.texts.items[text];
}

size_t weft_model_text_count(const struct weft_model *model)
{
	return model->priv->texts.texts.count;
}

uint32_t weft_model_find_text(const struct weft_model *model, struct weft_str text)
{
	const uint32_t number = weft_intern_find(&model->priv->texts, text);
	return number == WEFT_INTERN_FAILED ? WEFT_NONE : number;
}

uint32_t weft_model_find(const struct weft_model *model, int64_t id)
{
	return id == WEFT_SYSTEM_ID ? WEFT_SYSTEM : weft_idmap_get(&model->priv->ids, id);
}

/* Appends formatted text to buf at offset `at`, which may be beyond the end of buf. */
#define APPEND(buf, size, at, ...) snprintf((at) < (size) ? (buf) + (at) : NULL, (at) < (size) ? (size) - (at) : 0, __VA_ARGS__)

int64_t weft_model_change(const struct weft_model *model, const struct weft_label *label)
{
	return model->counters[model->priv->counter_of_text.items[label->text]].samples[label->sample].delta;
}

size_t weft_model_label(const struct weft_model *model, const struct weft_label *label, char *buf, size_t size)
{
	size_t len = weft_utf8_copy(buf, size, weft_model_text(model, label->text));
	if (label->is_counter)
		len += (size_t)APPEND(buf, size, len, "%+" PRId64, weft_model_change(model, label));
	return len;
}

uint32_t weft_model_name_text(const struct weft_model *model, uint32_t promise)
{
	/* Names come first.  Only so many labels are searched, because a promise may have very many labels from counters. */
	enum { MAX_LABELS_SCANNED = 64 };
	const struct weft_promise *p = &model->promises[promise];
	for (uint32_t i = p->labels; i < p[1].labels && i - p->labels < MAX_LABELS_SCANNED; i++) {
		const struct weft_label *label = &model->labels[i];
		if (!label->is_counter && label->text != p->failure && weft_model_text(model, label->text).len)
			return label->text;
	}
	return WEFT_NONE;
}

size_t weft_model_name(const struct weft_model *model, uint32_t promise, char *buf, size_t size)
{
	const struct weft_promise *p = &model->promises[promise];
	uint32_t text = weft_model_name_text(model, promise);
	if (text != WEFT_NONE)
		return weft_utf8_copy(buf, size, weft_model_text(model, text));
	if (p->site == WEFT_NONE)
		return (size_t)snprintf(buf, size, "%" PRId64, p->id);
	const struct weft_site *site = &model->trace->sites[p->site];
	if (weft_site_is_machine_code(site))
		return weft_site_format(site, buf, size);
	size_t len = weft_utf8_copy(buf, size, site->file);
	len += (size_t)APPEND(buf, size, len, ":%" PRIu32 "%s", site->line, site->function.len ? " " : "");
	return len + weft_utf8_copy(len < size ? buf + len : NULL, len < size ? size - len : 0, site->function);
}

bool weft_model_is_cancelled(const struct weft_model *model, uint32_t failure)
{
	return failure != WEFT_NONE && weft_text_has_meaning(weft_model_text(model, failure), WEFT_MEANING_CANCELLED);
}

bool weft__model_is_absent(const struct weft_model *model, uint32_t failure)
{
	return failure != WEFT_NONE && weft_text_has_meaning(weft_model_text(model, failure), WEFT_MEANING_ABSENT);
}

const char *weft_model_kind_name(const struct weft_model *model, uint16_t kind)
{
	switch (kind) {
#define KIND(NAME, value, name, traits)                                                                                          \
	case value: return name;
		WEFT_KINDS(KIND)
#undef KIND
	case WEFT_KIND_SYSTEM: return "system";
	case WEFT_KIND_PREEXISTING: return "preexisting";
	default: return kind < 256 ? model->priv->kind_names[kind] : "unknown";
	}
}

const uint32_t weft__kind_traits[WEFT_KIND_PREEXISTING + 1] = {
#define TRAITS(NAME, value, name, traits) [value] = WEFT__KIND_LISTED | (traits),
    WEFT_KINDS(TRAITS)
#undef TRAITS
	[WEFT_KIND_SYSTEM] = WEFT__KIND_LISTED | WEFT_TRAIT_ENDLESS | WEFT_TRAIT_ACTOR,
    [WEFT_KIND_PREEXISTING] = WEFT__KIND_LISTED | WEFT_TRAIT_ENDLESS | WEFT_TRAIT_INPUTS,
};

const char *weft_anomaly_text(enum weft_anomaly anomaly)
{
	static const char *const texts[] = {WEFT_ANOMALIES(WEFT_LISTED_NAME)};
	return WEFT_NAME_OF(texts, anomaly);
}

int64_t weft_model_await_end(const struct weft_model *model, const struct weft_link *await)
{
	const struct weft_await_end sought = {await->time_ns, await->from, await->to};
	const struct weft_await_end *ends = model->await_ends;
	size_t first = WEFT_FIND_FIRST(i, 0, model->await_end_count, weft__compare_await_ends(&ends[i], &sought) >= 0);
	bool found = first < model->await_end_count && ends[first].from == await->from && ends[first].to == await->to;
	return found ? ends[first].time_ns : INT64_MAX;
}

/* Returns the place at which a pause or sleep was called, or NULL. */
static const struct weft_place *find_place(const struct weft_model *model, const struct weft_interval *interval)
{
	const struct weft_place *places = model->places;
	const struct weft_place sought = {.time_ns = interval->start_ns, .stream = interval->stream};
	const size_t first = WEFT_FIND_FIRST(i, 0, model->place_count, weft__compare_places(&places[i], &sought) >= 0);
	const bool found = first < model->place_count && weft__compare_places(&places[first], &sought) == 0;
	return found ? &places[first] : NULL;
}

uint32_t weft_model_place(const struct weft_model *model, const struct weft_interval *interval)
{
	const struct weft_place *place = find_place(model, interval);
	return place ? place->site : WEFT_NONE;
}

uint32_t weft_model_call(const struct weft_model *model, const struct weft_interval *interval)
{
	const struct weft_place *place = find_place(model, interval);
	return place ? place->call : WEFT_NONE;
}

uint32_t weft_model_callback(const struct weft_model *model, uint32_t p, int64_t from_ns, int64_t to_ns)
{
	const struct weft_callback *calls = model->callbacks;
	const struct weft_callback sought = {.time_ns = from_ns, .promise = p};
	const size_t first = WEFT_FIND_FIRST(i, 0, model->callback_count, weft__compare_callbacks(&calls[i], &sought) >= 0);
	const bool found = first < model->callback_count && calls[first].promise == p && calls[first].time_ns <= to_ns;
	return found ? calls[first].site : WEFT_NONE;
}

struct weft_str weft_model_trace_parent(const struct weft_model *model, uint32_t promise)
{
	const struct weft_trace_parent *all = model->trace_parents;
	const size_t i = WEFT_FIND_FIRST(s, 0, model->trace_parent_count, all[s].promise >= promise);
	return i < model->trace_parent_count && all[i].promise == promise ? weft_model_text(model, all[i].text)
									  : (struct weft_str){"", 0};
}

struct weft_str weft_model_callers(const struct weft_model *model, uint32_t promise)
{
	size_t low = 0, high = model->stack_count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (model->stacks[mid].promise < promise)
			low = mid + 1;
		else
			high = mid;
	}
	bool has_one = low < model->stack_count && model->stacks[low].promise == promise;
	return has_one ? model->stacks[low].callers : (struct weft_str){"", 0};
}
