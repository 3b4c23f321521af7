/* dump_json.c: prints a trace's model for comparisons, a JSON object a line.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/model.h"

static void print_text(const char *text)
{
	putchar('"');
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		if (*p == '"' || *p == '\\')
			printf("\\%c", *p);
		else if (*p < 0x20)
			printf("\\u%04x", *p);
		else
			putchar(*p);
	putchar('"');
}

static void print_promise(const struct weft_model *m, const struct weft_promise *p, const uint32_t links[WEFT_LINK_KINDS])
{
	static const char *const ends[] = {"pending", "resolved", "failed", "became"};
	char text[4096];
	printf("{\"promise\":%" PRId64 ",\"kind\":\"%s\",\"start_ns\":%" PRId64 ",\"end_ns\":%" PRId64
	       ",\"end\":\"%s\",\"failure\":",
	    p->id, weft_model_kind_name(m, p->kind), p->start_ns, p->end_ns, ends[p->end]);
	if (p->failure == WEFT_NONE)
		printf("null");
	else {
		struct weft_str failure = weft_model_text(m, p->failure);
		snprintf(text, sizeof text, "%.*s", (int)failure.len, failure.ptr);
		print_text(text);
	}
	printf(",\"became\":");
	if (p->became == WEFT_NONE)
		printf("null");
	else
		printf("%" PRId64, m->promises[p->became].id);
	printf(",\"creation_drawn\":%s,\"labels\":[", p->flags & WEFT_PROMISE_CREATION_DRAWN ? "true" : "false");
	for (uint32_t i = p->labels; i < p[1].labels; i++) {
		weft_model_label(m, &m->labels[i], text, sizeof text);
		printf("%s[%" PRId64 ",", i > p->labels ? "," : "", m->labels[i].time_ns);
		print_text(text);
		putchar(']');
	}
	printf("],\"links\":{\"resolve\":%u,\"read\":%u,\"await\":%u,\"signal\":%u},\"running\":[", links[0], links[1], links[2],
	    links[3]);
	for (uint32_t i = p->runs; i < p[1].runs; i++)
		printf("%s[%" PRId64 ",%" PRId64 "]", i > p->runs ? "," : "", m->runs[i].start_ns, m->runs[i].end_ns);
	puts("]}");
}

int main(int argc, char **argv)
{
	struct weft_trace *trace = NULL;
	struct weft_model *m = NULL;
	struct weft_error err;
	char text[600];
	if (argc != 2 || weft_trace_open(&trace, argv[1], &err) < 0 || weft_model_build(&m, trace, NULL, &err) < 0) {
		if (argc == 2) {
			weft_error_format(&err, text, sizeof text);
			fprintf(stderr, "%s\n", text);
		}
		weft_trace_close(trace);
		return 2;
	}
	uint32_t(*links)[WEFT_LINK_KINDS] = calloc(m->promise_count, sizeof *links);
	if (!links)
		return 2;
	for (size_t i = 0; i < m->link_count; i++)
		links[m->links[i].from][m->links[i].kind]++;
	printf("{\"trace\":{\"start_ns\":0,\"end_ns\":%" PRId64 ",\"events\":%" PRIu64 ",\"promises\":%zu}}\n", m->end_ns,
	    m->events, m->promise_count - 1);
	for (size_t i = 0; i < m->promise_count; i++)
		print_promise(m, &m->promises[i], links[i]);
	for (size_t i = 0; i < m->counter_count; i++) {
		snprintf(text, sizeof text, "%.*s", (int)m->counters[i].name.len, m->counters[i].name.ptr);
		printf("{\"counter\":");
		print_text(text);
		printf(",\"values\":[");
		for (size_t k = 0; k < m->counters[i].count; k++)
			printf("%s[%" PRId64 ",%" PRId64 "]", k ? "," : "", m->counters[i].samples[k].time_ns,
			    m->counters[i].samples[k].value);
		puts("]}");
	}
	for (size_t i = 0; i < m->pause_count; i++)
		printf("{\"pause\":\"%.*s\",\"start_ns\":%" PRId64 ",\"end_ns\":%" PRId64 "}\n",
		    (int)weft_model_text(m, m->pauses[i].text).len, weft_model_text(m, m->pauses[i].text).ptr,
		    m->pauses[i].start_ns, m->pauses[i].end_ns);
	for (int i = 0; i < WEFT_ANOMALY_COUNT; i++)
		if (m->anomalies[i])
			fprintf(stderr, "%" PRIu64 " %s\n", m->anomalies[i], weft_anomaly_text((enum weft_anomaly)i));
	free(links);
	weft_model_destroy(m);
	weft_trace_close(trace);
	return 0;
}
