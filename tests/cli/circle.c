/* circle.c: a malicious program that claims to stand by and to record, and whose list of OS threads is circular.
 * SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/standby.h"

static struct member {
	struct member *next;
	void *stream;
} member;

static unsigned char stream[64];
static struct member *first = &member;
static unsigned gate;

int main(void)
{
	enum { PAGE_BYTES = 65536 };
	const size_t bytes = (sizeof(struct weft_standby) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	/* Inaccessible pages around a mapping keep the kernel from merging it with another mapping. */
	unsigned char *pages = mmap(NULL, bytes + 2 * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || mprotect(pages + PAGE_BYTES, bytes, PROT_READ | PROT_WRITE))
		return 1;
	struct weft_standby *page = (struct weft_standby *)(void *)(pages + PAGE_BYTES);
	member = (struct member){&member, stream};
	memcpy(page->mark, WEFT_STANDBY_MARK, sizeof page->mark);
	page->self = (uintptr_t)page;
	page->gate = (uintptr_t)&gate;
	page->gate_on = 1;
	page->threads = (uintptr_t)&first;
	page->pointer_bytes = sizeof(void *);
	page->next_at = offsetof(struct member, next);
	page->stream_at = offsetof(struct member, stream);
	page->answer.is_on = 1;
	strcpy(page->answer.path, "/nowhere");
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
