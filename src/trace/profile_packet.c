/* profile_packet.c: see profile_packet.h.  SPDX-License-Identifier: ISC */
#include "trace/profile_packet.h"

#include <string.h>

#include "trace/native.h"
#include "wire/profile.h"

/* The packet that is being written; without .bytes, only its size is counted. */
struct packet {
	const struct weft_trace_info *info;
	unsigned char *bytes;
	size_t size;
	uint32_t *modules, *places; /* number in the packet of each module; of each site; 0 if it has none yet */
	uint32_t module_count, place_count;
	bool no_memory;
};

static void append_event(struct packet *p, const struct weft_wire_profile *event, uint64_t ticks)
{
	if (p->bytes)
		weft__profile_write(p->bytes + p->size, event, ticks);
	p->size += weft__profile_bytes(event);
}

static uint32_t append_module(struct packet *p, const struct weft_module *module, uint64_t ticks)
{
	uint32_t *number = &p->modules[module - p->info->modules];
	if (*number)
		return *number;
	char *path = strndup(module->path.ptr, module->path.len), *build_id = strndup(module->build_id.ptr, module->build_id.len);
	*number = ++p->module_count;
	if (path && build_id)
		append_event(p,
		    &(struct weft_wire_profile){.op = WEFT_PROFILE_MODULE,
			.role = module->role,
			.number = *number,
			.a = module->address,
			.b = module->size,
			.text = path,
			.second = build_id},
		    ticks);
	p->no_memory |= !path || !build_id;
	free(path);
	free(build_id);
	return *number;
}

static void append_site(struct packet *p, const struct weft_site *site, uint32_t number, uint64_t ticks)
{
	char *file = strndup(site->file.ptr, site->file.len), *function = strndup(site->function.ptr, site->function.len);
	if (file && function)
		append_event(p,
		    &(struct weft_wire_profile){
			.op = WEFT_PROFILE_SITE, .number = number, .other = site->line, .text = file, .second = function},
		    ticks);
	p->no_memory |= !file || !function;
	free(file);
	free(function);
}

static uint32_t append_place(struct packet *p, uint32_t index, uint64_t ticks)
{
	const struct weft_site *site = &p->info->sites[index];
	if (p->places[index])
		return p->places[index];
	const uint32_t module = site->module ? append_module(p, site->module, ticks) : 0;
	p->places[index] = ++p->place_count;
	append_event(p,
	    &(struct weft_wire_profile){.op = WEFT_PROFILE_PLACE, .number = p->place_count, .other = module, .a = site->offset},
	    ticks);
	if (site->file.len || site->function.len)
		append_site(p, site, p->place_count, ticks);
	return p->place_count;
}

static void append_way(struct packet *p, uint64_t ticks)
{
	const struct weft_profile *profile = &p->info->profile;
	char *why = strndup(profile->why.len ? profile->why.ptr : "", profile->why.len);
	if (why && (profile->way || *why))
		append_event(p, &(struct weft_wire_profile){.op = WEFT_PROFILE_WAY, .role = profile->way, .text = why}, ticks);
	p->no_memory |= !why;
	free(why);
}

static uint64_t get_begin(const struct weft_trace_info *info, uint64_t clock_hz)
{
	return info->profile.sample_count ? weft__native_ticks(clock_hz, info->profile.samples[0].time_ns) : 0;
}

static void append_all(struct packet *p, uint64_t clock_hz)
{
	const struct weft_profile *profile = &p->info->profile;
	const uint64_t begin = get_begin(p->info, clock_hz);
	append_event(p,
	    &(struct weft_wire_profile){.op = WEFT_PROFILE_PERIOD, .a = (uint64_t)profile->period_ns, .b = profile->lost}, begin);
	for (size_t i = 0; i < profile->stack_count; i++) {
		const struct weft_profile_stack *stack = &profile->stacks[i];
		const uint32_t place = append_place(p, stack->site, begin);
		append_event(p,
		    &(struct weft_wire_profile){.op = WEFT_PROFILE_STACK,
			.number = (uint32_t)i + 1,
			.other = stack->caller == WEFT_NO_STACK ? 0 : stack->caller + 1,
			.place = place},
		    begin);
	}
	for (size_t i = 0; i < profile->sample_count; i++)
		append_event(p,
		    &(struct weft_wire_profile){
			.op = WEFT_PROFILE_SAMPLE, .number = profile->samples[i].tid, .other = profile->samples[i].stack + 1},
		    weft__native_ticks(clock_hz, profile->samples[i].time_ns));
	append_way(p, begin);
}

/* Counts or writes the events behind the packet header; returns false when out of memory. */
static bool append_events(struct packet *p, uint64_t clock_hz)
{
	const struct weft_trace_info *info = p->info;
	p->size = sizeof(struct weft_packet_header);
	p->module_count = p->place_count = 0;
	p->modules = calloc(info->module_count + 1, sizeof *p->modules);
	p->places = calloc(info->site_count + 1, sizeof *p->places);
	if (p->modules && p->places)
		append_all(p, clock_hz);
	p->no_memory |= !p->modules || !p->places;
	free(p->modules);
	free(p->places);
	return !p->no_memory;
}

unsigned char *weft_profile_packet(const struct weft_trace_info *info, const uint8_t uuid[16], uint64_t clock_hz, size_t *size)
{
	struct packet p = {.info = info};
	if (!append_events(&p, clock_hz) || p.size > UINT32_MAX || !(p.bytes = malloc(p.size)))
		return NULL;
	if (!append_events(&p, clock_hz)) {
		free(p.bytes);
		return NULL;
	}
	struct weft_packet_header header = {.lock = 0};
	weft__packet_init(&header, uuid, WEFT_CLASS_PROFILE, 0, p.size);
	header.clock_hz = clock_hz;
	header.content_size = header.packet_size;
	header.timestamp_begin = get_begin(info, clock_hz);
	memcpy(p.bytes, &header, sizeof header);
	*size = p.size;
	return p.bytes;
}
