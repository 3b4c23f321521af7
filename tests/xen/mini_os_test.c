/* mini_os_test.c: examples/unikernel on a Mini-OS of a few lines, and what domain 0 reads of it.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "xen/domain.h"

#define PAGES 64

/* Functions of Mini-OS */
uint32_t gnttab_grant_access(uint16_t domain, unsigned long frame, int is_readonly);
int gnttab_end_access(uint32_t ref);
unsigned long virt_to_mfn(const void *address);
char *xenbus_write(uint32_t transaction, const char *path, const char *value);
char *xenbus_rm(uint32_t transaction, const char *path);
void xfree(const void *memory);
uint64_t monotonic_clock(void);
/* Functions of the example */
int unikernel_start(void);
void unikernel_tick(void);

static const void *granted[PAGES]; /* by reference */
static uint32_t grants;
static char node[4096];

uint32_t gnttab_grant_access(uint16_t domain, unsigned long frame, int is_readonly)
{
	assert_int_equal(domain, 0);
	assert_true(is_readonly);
	assert_true(grants < PAGES);
	granted[grants] = (const void *)(frame << 12);
	return grants++;
}

int gnttab_end_access(uint32_t ref)
{
	granted[ref] = NULL;
	return 1;
}

unsigned long virt_to_mfn(const void *address)
{
	assert_int_equal((uintptr_t)address % 4096, 0);
	return (uintptr_t)address >> 12;
}

char *xenbus_write(uint32_t transaction, const char *path, const char *value)
{
	assert_string_equal(path, "data/mprof/ring-ref");
	snprintf(node, sizeof node, "%s", value);
	return NULL;
}

char *xenbus_rm(uint32_t transaction, const char *path)
{
	return strdup("ENOENT");
}

void xfree(const void *memory)
{
	free((void *)memory);
}

uint64_t monotonic_clock(void)
{
	static uint64_t ns = 1000;
	return ns += 1000;
}

static char *read_node(void *data, const char *path, unsigned *length)
{
	const char *value = strcmp(path, "/local/domain/7/data/mprof/ring-ref") == 0 ? node
			    : strcmp(path, "/local/domain/7/name") == 0              ? "unikernel"
										     : NULL;
	errno = ENOENT;
	*length = value ? (unsigned)strlen(value) : 0;
	return value ? strdup(value) : NULL;
}

static char **list_nodes(void *data, const char *path, unsigned *count)
{
	static char seven[] = "7";
	char **list = malloc(sizeof *list);
	*list = seven;
	*count = 1;
	return list;
}

static void *map(void *data, uint32_t domain, const uint32_t *refs, size_t count)
{
	unsigned char *pages = malloc(count * DOMAIN_PAGE_BYTES);
	for (size_t i = 0; i < count; i++) {
		assert_true(refs[i] < grants);
		memcpy(pages + i * DOMAIN_PAGE_BYTES, granted[refs[i]], DOMAIN_PAGE_BYTES);
	}
	return pages;
}

static void unmap(void *data, void *pages, size_t count)
{
	free(pages);
}

static void mini_os_example_shares_its_ring(void **state)
{
	const struct domain_host host = {read_node, list_nodes, map, unmap, NULL};
	struct weft_trace *trace;
	const struct weft_event *events;
	size_t count, all = 0;
	assert_int_equal(unikernel_start(), WEFT_OK);
	assert_int_equal(grants, PAGES);
	for (int i = 0; i < 1000; i++)
		unikernel_tick();
	assert_int_equal(domain_open_on_host(&host, &trace, "xen:unikernel", NULL), WEFT_OK);
	while (weft_trace_next(trace, &events, &count) == 1)
		for (size_t i = 0; i < count; i++, all++)
			if (events[i].op == WEFT_OP_LABEL)
				assert_memory_equal(events[i].text.ptr, "tick", 4);
	assert_int_equal(all, 5000);
	assert_int_equal(weft_trace_info(trace)->skipped_count, 0);
	assert_memory_equal(weft_trace_info(trace)->host.ptr, "unikernel", 9);
	weft_trace_close(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(mini_os_example_shares_its_ring)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
