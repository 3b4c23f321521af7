/* model.c: builds a model from any events, also from events that no reader returns.  Nine bytes make an event.
 * SPDX-License-Identifier: ISC */
#include "model/check_model.h"
#include "trace/format.h"

#define EVENT_BYTES 9u

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

struct input {
	const unsigned char *bytes;
	size_t left;
	int64_t time_ns;
	struct weft_event event;
};

static const struct weft_site sites[] = {
    {.file = {"file.c", 6}, .function = {"function", 8}, .line = 1}, {.file = {"", 0}, .function = {"", 0}}};

/* Makes mostly small ids, so that events refer to each other, and sometimes a wide one. */
static int64_t make_id(unsigned char byte)
{
	static const int64_t others[] = {-1, INT64_MAX, INT64_MIN, 1LL << 40, -2, 70000, 4294967296, 5000000000000};
	return byte < 240 ? byte % 48 : others[byte % 8];
}

static int next_event(struct weft_trace *trace, const struct weft_event **events, size_t *count)
{
	static const char text[] = "__label#\xFF\xC3\xA9long enough";
	struct input *in = trace->state;
	const unsigned char *b = in->bytes;
	if (in->left < EVENT_BYTES)
		return 0;
	in->bytes += EVENT_BYTES;
	in->left -= EVENT_BYTES;
	int64_t step_ns = b[0] < 250 ? b[0] : INT64_MAX / 300 * (b[0] - 249);
	in->time_ns = in->time_ns > INT64_MAX - step_ns ? INT64_MAX : in->time_ns + step_ns;
	in->event = (struct weft_event){.time_ns = in->time_ns,
	    .op = b[1] < 230 ? b[1] % WEFT_OP_COUNT : b[1],
	    .a = make_id(b[2]),
	    .b = make_id(b[3]),
	    .value = b[4] & 1 ? make_id(b[5]) : in->time_ns - b[5],
	    .text = {text + b[6] % 8, b[6] / 16},
	    .site = b[7] & 1 ? b[7] % 4 : WEFT_NO_SITE,
	    .stream = b[7] / 64,
	    .kind = b[8]};
	*events = &in->event;
	*count = 1;
	return 1;
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	static const struct weft_trace_format format = {.name = "fuzz", .next = next_event};
	for (int keep_binds = 0; keep_binds < 2; keep_binds++) {
		struct input in = {.bytes = bytes, .left = size, .time_ns = size ? INT64_MAX / 300 * bytes[0] : 0};
		struct weft_trace trace = {.format = &format, .state = &in};
		struct weft_model *model;
		struct weft_model_options options = {.keep_binds = keep_binds != 0};
		trace.info.wrapped = size & 1;
		trace.info.sites = sites;
		trace.info.site_count = 2;
		int status = weft_model_build(&model, &trace, &options, NULL);
		CHECK_MODEL(status == (size < EVENT_BYTES ? WEFT_EFORMAT : WEFT_OK));
		if (status == WEFT_OK) {
			CHECK_MODEL(model->events == size / EVENT_BYTES);
			check_model(model);
			weft_model_destroy(model);
		}
	}
	return 0;
}
