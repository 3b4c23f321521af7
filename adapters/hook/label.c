/* label.c: appends text to labels without printf, because labels are made on hot paths.  SPDX-License-Identifier: ISC */
#include "adapters/hook/label.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "adapters/hook/address_cache.h"

static void append_bytes(struct weft_hook_label *label, const char *text, size_t bytes)
{
	size_t space = WEFT_HOOK_LABEL_BYTES - 1 - label->length, n = bytes < space ? bytes : space;
	memcpy(label->text + label->length, text, n);
	label->length += (uint8_t)n;
	label->text[label->length] = 0;
}

void weft_hook_append(struct weft_hook_label *label, const char *text)
{
	append_bytes(label, text, strlen(text));
}

void weft_hook_append_number(struct weft_hook_label *label, uint64_t number)
{
	char digits[20], *at = digits + sizeof digits;
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	append_bytes(label, at, (size_t)(digits + sizeof digits - at));
}

/* Appends a duration in the largest unit that shows the duration exactly or with two digits: "100 s", "5 min", "1.5 s". */
void weft_hook_append_ms(struct weft_hook_label *label, uint64_t ms)
{
	enum { FAR_OFF_DAYS = 30 };
	static const struct {
		uint64_t ms;
		const char *name;
	} units[] = {{24 * 3600 * 1000, " d"}, {3600 * 1000, " h"}, {60 * 1000, " min"}, {1000, " s"}, {1, " ms"}};
	unsigned unit = 0;
	/* Some programs use a timeout of months for "no limit". */
	if (ms >= (uint64_t)FAR_OFF_DAYS * units[0].ms)
		weft_hook_append(label, "far off, ");
	while (units[unit].ms > 1 && (ms < units[unit].ms || (ms % units[unit].ms && ms < 10 * units[unit].ms)))
		unit++;
	if (units[unit].ms == 1 && ms >= 1000) {
		char part[] = {'.', (char)('0' + ms / 100 % 10), (char)('0' + ms / 10 % 10), (char)('0' + ms % 10)};
		size_t len = sizeof part;
		while (part[len - 1] == '0')
			len--;
		weft_hook_append_number(label, ms / 1000);
		append_bytes(label, part, len);
		unit--;
	} else {
		weft_hook_append_number(label, ms / units[unit].ms);
	}
	weft_hook_append(label, units[unit].name);
}

void weft_hook_append_path(struct weft_hook_label *label, const char *path)
{
	enum { MAX_PATH_BYTES = 48 };
	size_t bytes = strlen(path);
	if (bytes > MAX_PATH_BYTES) {
		const char *tail = path + bytes - MAX_PATH_BYTES, *slash = strchr(tail, '/');
		while (((unsigned char)*tail & 0xc0) == 0x80)
			tail++;
		append_bytes(label, "\u2026", 3);
		path = slash && slash[1] ? slash : tail;
	}
	weft_hook_append(label, path);
}

void weft_hook_append_address(struct weft_hook_label *label, const struct sockaddr *address)
{
	char host[INET6_ADDRSTRLEN] = "?";
	if (address->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)address;
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
		weft_hook_append(label, host);
		append_bytes(label, ":", 1);
		weft_hook_append_number(label, ntohs(in->sin_port));
	} else if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const void *)address;
		inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof host);
		append_bytes(label, "[", 1);
		weft_hook_append(label, host);
		append_bytes(label, "]:", 2);
		weft_hook_append_number(label, ntohs(in->sin6_port));
	} else if (address->sa_family == AF_UNIX) {
		char path[sizeof(struct sockaddr_un)] = "";
		memcpy(path, ((const struct sockaddr_un *)(const void *)address)->sun_path,
		    sizeof((struct sockaddr_un *)0)->sun_path);
		if (!path[0] && path[1])
			path[0] = '@';
		weft_hook_append_path(label, path);
	} else {
		weft_hook_append(label, address->sa_family == AF_NETLINK ? "netlink" : "address");
	}
}

void weft_hook_record_label(struct weft_hook_label *label, weft_id id)
{
	while (label->length > 0 && label->text[label->length - 1] == ' ')
		label->text[--label->length] = 0;
	/* Removes a UTF-8 character that was cut at the label's end. */
	for (unsigned i = 1; i < 4 && label->length == WEFT_HOOK_LABEL_BYTES - 1; i++) {
		unsigned char byte = (unsigned char)label->text[label->length - i];
		if (byte >= 0xc0)
			label->text[label->length -= (uint8_t)i] = 0;
		if (byte < 0x80 || byte >= 0xc0)
			break;
	}
	if (label->length > 0)
		weft_label(id, label->text);
}

void weft_hook_append_function(struct weft_hook_label *label, const void *function)
{
	const char *name = weft_hook_name(function);
	if (name) {
		append_bytes(label, " ", 1);
		weft_hook_append(label, name);
	}
}
