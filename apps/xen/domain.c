/* domain.c: finds a Xen domain, the grant references that it has published, and the trace in its pages.
 * SPDX-License-Identifier: ISC */
#include "xen/domain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define RING_NODE "data/mprof/ring-ref"
/* Number of pages that are mapped at once. */
#define CHUNK_PAGES 1024u

/* Pages of the domain, while a trace is made of them. */
struct pages {
	const struct domain_host *host;
	size_t count;
	void *chunks[DOMAIN_MAX_PAGES / CHUNK_PAGES];
};

int domain_parse_refs(domain_refs *refs, const char *text, size_t length)
{
	const char *end = text + length;
	while (end > text && (end[-1] == '\n' || end[-1] == '\0'))
		end--;
	for (;;) {
		uint64_t number = 0;
		const char *digits = text;
		for (; text < end && *text >= '0' && *text <= '9'; text++) {
			number = number * 10 + (uint64_t)(*text - '0');
			if (number > UINT32_MAX)
				return WEFT_EFORMAT;
		}
		if (text == digits)
			return WEFT_EFORMAT;
		if (refs->count == DOMAIN_MAX_PAGES)
			return WEFT_ETOOBIG;
		uint32_t *ref = weft_vec_push(refs);
		if (!ref)
			return WEFT_ENOMEM;
		*ref = (uint32_t)number;
		if (text == end)
			return WEFT_OK;
		if (*text++ != ',')
			return WEFT_EFORMAT;
	}
}

/* ---- Which domain ---- */

static bool parse_id(const char *text, uint32_t *out)
{
	uint32_t id = 0;
	for (const char *c = text; *c; c++) {
		if (*c < '0' || *c > '9' || c - text >= 5)
			return false;
		id = id * 10 + (uint32_t)(*c - '0');
	}
	*out = id;
	return *text && id < 0x7ff0; /* numbers from 0x7ff0 on are not ids of domains */
}

static int fail_store(struct weft_error *err, int error)
{
	if (error == EACCES || error == EPERM)
		return weft_error_set(err, WEFT_EACCES, "only domain 0 can read this in XenStore");
	if (error == ENOMEM)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	return weft_error_set(err, WEFT_EIO, "XenStore: %s", strerror(error));
}

/* A number is first tried as a domain's id, as in xl. */
static int find_domain(const struct domain_host *host, const char *wanted, uint32_t *out, struct weft_error *err)
{
	unsigned count = 0, length;
	uint32_t wanted_id = 0, id;
	bool is_id = parse_id(wanted, &wanted_id), found = false;
	char existing[128] = "";
	char **ids = host->list(host->data, "/local/domain", &count);
	if (!ids)
		return fail_store(err, errno);
	for (unsigned i = 0; i < count; i++) {
		char path[64];
		if (!parse_id(ids[i], &id))
			continue;
		if (is_id && id == wanted_id) {
			*out = id;
			found = true;
			break;
		}
		snprintf(path, sizeof path, "/local/domain/%" PRIu32 "/name", id);
		char *name = host->read(host->data, path, &length);
		if (name && strcmp(name, wanted) == 0 && !found) {
			*out = id;
			found = true;
		}
		size_t used = strlen(existing);
		if (name && used + strlen(name) + 3 < sizeof existing)
			snprintf(existing + used, sizeof existing - used, "%s%s", used ? ", " : "", name);
		free(name);
	}
	free(ids);
	if (found)
		return WEFT_OK;
	return weft_error_set(err, WEFT_ENOENT, "no such domain%s%s", existing[0] ? "; there are " : "", existing);
}

/* ---- Grant references that the domain published ---- */

static int read_refs(const struct domain_host *host, uint32_t domain, domain_refs *refs, struct weft_error *err)
{
	/* Older guests write only the first node. */
	for (unsigned node = 0;; node++) {
		char path[96], name[48] = RING_NODE;
		unsigned length = 0;
		if (node)
			snprintf(name, sizeof name, RING_NODE "-%u", node);
		snprintf(path, sizeof path, "/local/domain/%" PRIu32 "/%s", domain, name);
		char *text = host->read(host->data, path, &length);
		if (!text && errno == ENOENT) {
			return node ? WEFT_OK
				    : weft_error_set(
					  err, WEFT_ENOENT, "the domain publishes no ring buffer: there is no " RING_NODE);
		}
		if (!text)
			return fail_store(err, errno);
		int status = domain_parse_refs(refs, text, length);
		free(text);
		if (status == WEFT_EFORMAT)
			return weft_error_set(err, WEFT_EFORMAT, "not a list of grant references: %s", name);
		if (status == WEFT_ETOOBIG)
			return weft_error_set(err, WEFT_ETOOBIG,
			    "the domain publishes more than %u pages, too many for a ring buffer", DOMAIN_MAX_PAGES);
		if (status < 0)
			return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
}

static void unmap_pages(struct pages *pages)
{
	for (size_t from = 0; from < pages->count; from += CHUNK_PAGES) {
		size_t count = pages->count - from < CHUNK_PAGES ? pages->count - from : CHUNK_PAGES;
		if (pages->chunks[from / CHUNK_PAGES])
			pages->host->unmap(pages->host->data, pages->chunks[from / CHUNK_PAGES], count);
	}
}

/* Reports which page cannot be mapped. */
static int fail_map(
    const struct domain_host *host, uint32_t domain, const domain_refs *refs, size_t from, int error, struct weft_error *err)
{
	if (error == ENOMEM || error == ENOSPC)
		return weft_error_set(err, WEFT_ENOMEM, "no memory to map %zu pages of the domain", refs->count);
	size_t page = from;
	for (; page + 1 < refs->count && page + 1 < from + CHUNK_PAGES; page++) {
		void *mapped = host->map(host->data, domain, &refs->items[page], 1);
		if (!mapped)
			break;
		host->unmap(host->data, mapped, 1);
	}
	return weft_error_set(err, WEFT_EACCES,
	    "cannot map page %zu of %zu: the program that shared them has ended, or reference %" PRIu32 " was never granted",
	    page + 1, refs->count, refs->items[page]);
}

static int map_pages(struct pages *pages, uint32_t domain, const domain_refs *refs, struct weft_error *err)
{
	pages->count = refs->count;
	for (size_t from = 0; from < refs->count; from += CHUNK_PAGES) {
		size_t count = refs->count - from < CHUNK_PAGES ? refs->count - from : CHUNK_PAGES;
		void *chunk = pages->host->map(pages->host->data, domain, refs->items + from, count);
		if (!chunk)
			return fail_map(pages->host, domain, refs, from, errno, err);
		pages->chunks[from / CHUNK_PAGES] = chunk;
	}
	return WEFT_OK;
}

/* Copies each byte once, because the domain may be changing it; memcpy() may read a byte twice. */
static void copy_volatile(unsigned char *to, const unsigned char *from, size_t bytes)
{
	for (; bytes && (uintptr_t)from % 8; bytes--)
		*to++ = __atomic_load_n(from++, __ATOMIC_RELAXED);
	for (; bytes >= 8; bytes -= 8, to += 8, from += 8) {
		uint64_t word = __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_RELAXED);
		memcpy(to, &word, sizeof word);
	}
	for (; bytes; bytes--)
		*to++ = __atomic_load_n(from++, __ATOMIC_RELAXED);
}

static bool read_pages(void *ctx, uint64_t offset, void *to, size_t bytes)
{
	const struct pages *pages = ctx;
	const size_t chunk_bytes = (size_t)CHUNK_PAGES * DOMAIN_PAGE_BYTES;
	if (offset > pages->count * DOMAIN_PAGE_BYTES || bytes > pages->count * DOMAIN_PAGE_BYTES - offset)
		return false;
	for (size_t done = 0; done < bytes;) {
		size_t at = (size_t)offset + done, within = at % chunk_bytes;
		size_t part = bytes - done < chunk_bytes - within ? bytes - done : chunk_bytes - within;
		copy_volatile((unsigned char *)to + done, (const unsigned char *)pages->chunks[at / chunk_bytes] + within, part);
		done += part;
	}
	return true;
}

static int open_pages(
    const struct domain_host *host, uint32_t domain, struct weft_trace **out, const char *path, struct weft_error *err)
{
	domain_refs refs = {0};
	struct pages *pages = calloc(1, sizeof *pages);
	if (!pages)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	pages->host = host;
	int status = read_refs(host, domain, &refs, err);
	if (status == WEFT_OK)
		status = map_pages(pages, domain, &refs, err);
	if (status == WEFT_OK) {
		status = weft_trace_open_live(out, read_pages, pages, refs.count * DOMAIN_PAGE_BYTES, path, err);
		if (status == WEFT_EFORMAT)
			weft_error_set(err, WEFT_EFORMAT,
			    "the domain shares %zu page%s, but no trace in a format that weft reads", refs.count,
			    refs.count == 1 ? "" : "s");
	}
	unmap_pages(pages);
	free(pages);
	weft_vec_free(&refs);
	return status;
}

int domain_open_on_host(const struct domain_host *host, struct weft_trace **out, const char *path, struct weft_error *err)
{
	uint32_t domain = 0;
	int status = find_domain(host, path + sizeof DOMAIN_PREFIX - 1, &domain, err);
	if (status == WEFT_OK)
		status = open_pages(host, domain, out, path, err);
	if (status < 0)
		weft_error_set_file(err, path);
	return status;
}

int domain_open(struct weft_trace **out, const char *path, struct weft_error *err)
{
	struct domain_host host;
	int status = domain_host_open(&host, err);
	if (status < 0) {
		weft_error_set_file(err, path);
	} else {
		status = domain_open_on_host(&host, out, path, err);
		domain_host_close(&host);
	}
	return status;
}
