/* output.c: what is said on stderr, how texts are quoted, and what happens when stdout goes away.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/duration.h"
#include "base/utf8.h"
#include "cli.h"

__attribute__((format(printf, 1, 0))) static void say(const char *format, va_list args)
{
	char text[1024];
	vsnprintf(text, sizeof text, format, args);
	for (char *c = text; *c; c++) // a path may hold anything: it stays one line, and no terminal obeys it
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	fprintf(stderr, "weft: %s\n", text);
}

int cli_fail(const char *format, ...)
{
	va_list args;
	fflush(stdout);
	va_start(args, format);
	say(format, args);
	va_end(args);
	return CLI_TROUBLE;
}

int cli_fail_error(const struct weft_error *err)
{
	char text[640];
	weft_error_format(err, text, sizeof text);
	return cli_fail("%s", text);
}

void cli_note(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	say(format, args);
	va_end(args);
}

bool cli_stdout_ok(void)
{
	return !ferror(stdout);
}

int cli_finish(int status)
{
	errno = 0;
	if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE || errno == 0)
		return status;
	return cli_fail("standard output: %s", strerror(errno));
}

void cli_put_string(struct weft_str text)
{
	putc_unlocked('"', stdout);
	cli_put_text(text);
	putc_unlocked('"', stdout);
}

void cli_put_text(struct weft_str text)
{
	const unsigned char *p = (const unsigned char *)text.ptr;
	for (size_t i = 0; i < text.len;) {
		size_t n = weft_utf8_character(p + i, text.len - i);
		if (n == 0) {
			fputs("\xef\xbf\xbd", stdout);
			n = 1;
		} else if (p[i] == '"' || p[i] == '\\') {
			putc_unlocked('\\', stdout);
			putc_unlocked(p[i], stdout);
		} else if (p[i] == '\n') {
			fputs("\\n", stdout);
		} else if (p[i] == '\t') {
			fputs("\\t", stdout);
		} else if (p[i] < ' ' || p[i] == 0x7f) {
			printf("\\u%04x", p[i]);
		} else if (n == 2 && p[i] == 0xc2 && p[i + 1] < 0xa0) { // C1: control characters too
			printf("\\u%04x", p[i + 1]);
		} else {
			fwrite(p + i, 1, n, stdout);
		}
		i += n;
	}
}

void cli_put_cstring(const char *text)
{
	cli_put_string((struct weft_str){text, (uint32_t)strlen(text)});
}

void cli_put_seconds(int64_t ns)
{
	uint64_t magnitude = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	printf("%s%" PRIu64 ".%09" PRIu64, ns < 0 ? "-" : "", magnitude / 1000000000, magnitude % 1000000000);
}

char *cli_format_duration(char buf[CLI_DURATION], int64_t ns)
{
	weft_duration_format(buf, CLI_DURATION, ns);
	return buf;
}

void cli_put_stream_json(const struct weft_trace_info *info, unsigned stream)
{
	printf("\"stream\":%u,\"thread\":", stream);
	cli_put_string(stream < info->stream_count ? info->streams[stream].name : (struct weft_str){"", 0});
}

void cli_put_stream(const struct weft_trace_info *info, unsigned stream)
{
	if (info->stream_count < 2)
		return;
	printf("  #%u ", stream);
	if (stream < info->stream_count)
		cli_put_text(info->streams[stream].name);
}

void cli_put_site_json(const struct weft_trace_info *info, uint32_t site)
{
	if (site >= info->site_count) {
		fputs("null", stdout);
		return;
	}
	fputs("{\"file\":", stdout);
	cli_put_string(info->sites[site].file);
	printf(",\"line\":%" PRIu32 ",\"function\":", info->sites[site].line);
	cli_put_string(info->sites[site].function);
	putchar('}');
}

void cli_put_site(const struct weft_trace_info *info, uint32_t site)
{
	if (site >= info->site_count)
		return;
	fputs("  at ", stdout);
	cli_put_text(info->sites[site].file);
	printf(":%" PRIu32, info->sites[site].line);
	if (info->sites[site].function.len > 0) {
		fputs(" in ", stdout);
		cli_put_text(info->sites[site].function);
	}
}
