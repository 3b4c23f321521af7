/* output.c: prints messages on stderr, quotes texts, and handles a closed stdout.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/duration.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli.h"

const char *const cli_end_names[] = {
    [WEFT_END_PENDING] = "pending",
    [WEFT_END_RESOLVED] = "resolved",
    [WEFT_END_FAILED] = "failed",
    [WEFT_END_BECAME] = "became",
};
const char *const cli_link_names[WEFT_LINK_KINDS] = {
    [WEFT_LINK_RESOLVE] = "resolve",
    [WEFT_LINK_READ] = "read",
    [WEFT_LINK_AWAIT] = "await",
    [WEFT_LINK_SIGNAL] = "signal",
};

/* ---- Texts ----
 *
 * In a trace, many short events may refer to one long text.  If the text were printed each time, a file of 300 kB would give 1
 * GB of output.  So the output of long texts has a budget in bytes that grows with the input; when the budget is spent, texts
 * are cut. */

enum {
	MAX_ESCAPE_BYTES = 5,   /* largest number of bytes by which an escape is longer than its character */
	CUT_BYTES = 256,        /* number of bytes that remain of a cut text */
	BUDGET_BYTES = 4 << 20, /* part of the budget for long texts that does not depend on the input's size */
	BUDGET_PER_INPUT_BYTE = 32,
};

static struct {
	bool is_limited;
	uint64_t left, cut; /* number of bytes left for long texts, and number of texts that were cut */
} budget;

/* Prints the message after "weft" and, if it is not NULL, `verb`. */
__attribute__((format(printf, 2, 0))) static void print_message(const char *verb, const char *format, va_list args)
{
	char text[1024];
	vsnprintf(text, sizeof text, format, args);
	weft_utf8_sanitize(text); /* a path may contain any byte, also invalid UTF-8 */
	fprintf(stderr, "weft%s%s: %s\n", verb ? " " : "", verb ? verb : "", text);
}

int cli_fail(const char *format, ...)
{
	va_list args;
	fflush(stdout);
	va_start(args, format);
	print_message(NULL, format, args);
	va_end(args);
	return CLI_ERROR;
}

int cli_fail_verb(const char *verb, const char *format, ...)
{
	va_list args;
	fflush(stdout);
	va_start(args, format);
	print_message(verb, format, args);
	va_end(args);
	return CLI_ERROR;
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
	print_message(NULL, format, args);
	va_end(args);
}

bool cli_stdout_ok(void)
{
	return !ferror(stdout);
}

int cli_finish(int status)
{
	if (budget.cut > 0)
		cli_note("%" PRIu64 " long texts were cut to %d bytes to keep the output below %d times the trace", budget.cut,
		    CUT_BYTES, BUDGET_PER_INPUT_BYTE);
	errno = 0;
	if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE || errno == 0)
		return status;
	return cli_fail("standard output: %s", strerror(errno));
}

void cli_limit_texts(uint64_t input_bytes)
{
	uint64_t more;
	if (__builtin_mul_overflow(input_bytes, (uint64_t)BUDGET_PER_INPUT_BYTE, &more) ||
	    __builtin_add_overflow(budget.is_limited ? budget.left : BUDGET_BYTES, more, &budget.left))
		budget.left = UINT64_MAX;
	budget.is_limited = true;
}

/* Returns how many bytes of a text are printed; the rest is cut. */
static size_t limit_length(struct weft_str text)
{
	if (text.len <= CUT_BYTES || !budget.is_limited || text.len <= budget.left)
		return text.len;
	budget.cut++;
	size_t len = CUT_BYTES;
	while (len > CUT_BYTES - 3 && ((unsigned char)text.ptr[len] & 0xc0) == 0x80)
		len--;
	return len;
}

static void spend_budget(size_t text_bytes, uint64_t printed_bytes)
{
	if (text_bytes > CUT_BYTES)
		budget.left -= printed_bytes < budget.left ? printed_bytes : budget.left;
}

static void write_piece(void *unused, const char *bytes, size_t size)
{
	(void)unused;
	fwrite_unlocked(bytes, 1, size, stdout);
}

void cli_put_text(struct weft_str text)
{
	const size_t len = limit_length(text);
	const uint64_t escapes = weft_json_text((struct weft_str){text.ptr, (uint32_t)len}, write_piece, NULL);
	spend_budget(len, len + escapes * MAX_ESCAPE_BYTES);
	if (len < text.len)
		cli_put("\xe2\x80\xa6");
}

void cli_put_string(struct weft_str text)
{
	putc_unlocked('"', stdout);
	cli_put_text(text);
	putc_unlocked('"', stdout);
}

void cli_put_cstring(const char *text)
{
	cli_put_string((struct weft_str){text, (uint32_t)strlen(text)});
}

/* ---- Numbers: printf() would be most of the work of printing an event ---- */

static void put_digits(uint64_t value, int least)
{
	char digits[20];
	size_t at = sizeof digits;
	for (; value > 0 || least > 0; value /= 10, least--)
		digits[--at] = (char)('0' + value % 10);
	fwrite_unlocked(digits + at, 1, sizeof digits - at, stdout);
}

void cli_put(const char *text)
{
	fputs_unlocked(text, stdout);
}

void cli_put_uint(uint64_t value)
{
	put_digits(value, 1);
}

void cli_put_int(int64_t value)
{
	if (value < 0)
		putc_unlocked('-', stdout);
	put_digits(value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 1);
}

void cli_put_seconds(int64_t ns)
{
	uint64_t magnitude = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	if (ns < 0)
		putc_unlocked('-', stdout);
	put_digits(magnitude / 1000000000, 1);
	putc_unlocked('.', stdout);
	put_digits(magnitude % 1000000000, 9);
}

char *cli_format_duration(char buf[CLI_DURATION_BYTES], int64_t ns)
{
	weft_duration_format(buf, CLI_DURATION_BYTES, ns);
	return buf;
}

void cli_put_stream_json(const struct weft_trace_info *info, unsigned stream)
{
	cli_put("\"stream\":");
	cli_put_uint(stream);
	cli_put(",\"thread\":");
	cli_put_string(stream < info->stream_count ? info->streams[stream].name : (struct weft_str){"", 0});
}

void cli_put_stream(const struct weft_trace_info *info, unsigned stream)
{
	if (info->stream_count < 2)
		return;
	cli_put("  #");
	cli_put_uint(stream);
	cli_put(" ");
	if (stream < info->stream_count)
		cli_put_text(info->streams[stream].name);
}

void cli_put_site_json(const struct weft_trace_info *info, uint32_t site)
{
	if (site >= info->site_count) {
		cli_put("null");
		return;
	}
	cli_put("{\"file\":");
	cli_put_string(info->sites[site].file);
	cli_put(",\"line\":");
	cli_put_uint(info->sites[site].line);
	cli_put(",\"function\":");
	cli_put_string(info->sites[site].function);
	if (info->sites[site].offset != 0) {
		cli_put(",\"module\":");
		if (info->sites[site].module)
			cli_put_string(info->sites[site].module->path);
		else
			cli_put("null");
		cli_put(",\"offset\":");
		cli_put_uint(info->sites[site].offset);
	}
	cli_put("}");
}

void cli_put_site(const struct weft_trace_info *info, uint32_t site)
{
	if (site >= info->site_count)
		return;
	cli_put("  at ");
	if (weft_site_is_machine_code(&info->sites[site])) {
		char place[512];
		size_t length = weft_site_format(&info->sites[site], place, sizeof place);
		cli_put_text((struct weft_str){place, (uint32_t)(length < sizeof place ? length : sizeof place - 1)});
		return;
	}
	cli_put_text(info->sites[site].file);
	cli_put(":");
	cli_put_uint(info->sites[site].line);
	if (info->sites[site].function.len > 0) {
		cli_put(" in ");
		cli_put_text(info->sites[site].function);
	}
}
