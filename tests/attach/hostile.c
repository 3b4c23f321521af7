/* hostile.c: replaces libweft-hook.so in a program, so that the memory that weft reads has wrong values.
 *
 * The environment variable HOSTILE is a number that selects the wrong values: addresses without memory or that lead back, and
 * numbers of 2^63.  The marks by which weft finds the variable and the standby page are right.  SPDX-License-Identifier: ISC */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/attach.h"
#include "wire/standby.h"

enum { PATCHES = 64, PAGE_BYTES = 4096, ROUNDED = (sizeof(struct weft_standby) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES };

__attribute__((visibility("default"))) void weft_hook_attach(const char *session);
__attribute__((visibility("default"))) struct weft_attach weft_hook_attachment;

static struct weft_attach_patch patches[PATCHES];
static uint64_t circle[4]; /* each word leads to the next one, and the last one to the first */
static uint64_t seed;

static uint64_t get_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint64_t lie(void)
{
	const uint64_t lies[] = {0, 1, 7, UINT32_MAX, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 7, (uintptr_t)circle,
	    (uintptr_t)&circle[3], (uintptr_t)patches, (uintptr_t)&weft_hook_attachment, (uintptr_t)getpid, (uintptr_t)getpid + 1,
	    (uintptr_t)&seed, get_random()};
	return lies[get_random() % (sizeof lies / sizeof *lies)];
}

static void lie_about_patches(void)
{
	struct weft_attach *a = &weft_hook_attachment;
	memcpy(a->mark, WEFT_ATTACH_MARK, sizeof WEFT_ATTACH_MARK);
	for (int i = 0; i < PATCHES; i++) {
		struct weft_attach_patch *p = &patches[i];
		*p = (struct weft_attach_patch){.at = lie() + (uint64_t)i, .bytes = (uint32_t)lie(), .is_code = get_random() & 1};
		memset(p->before, (int)get_random(), sizeof p->before);
		memset(p->after, (int)get_random(), sizeof p->after);
	}
	a->patches = get_random() % 4 ? (uintptr_t)patches : lie();
	a->count = get_random() % 4 ? PATCHES : (uint32_t)lie();
	a->is_accepted = get_random() % 4 != 0;
	a->room[0] = get_random() % 2 ? 0 : lie();
	a->room[1] = get_random() % 2 ? 0 : lie();
	memset(a->left_out, 0x1b, sizeof a->left_out);
}

static void lie_about_standby(void)
{
	unsigned char *pages = mmap(NULL, ROUNDED + 2 * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || mprotect(pages + PAGE_BYTES, ROUNDED, PROT_READ | PROT_WRITE))
		_exit(1);
	struct weft_standby *s = (struct weft_standby *)(void *)(pages + PAGE_BYTES);
	memset(s, 0x1b, sizeof *s); /* no text in this memory has a terminating NUL */
	memcpy(s->mark, WEFT_STANDBY_MARK, sizeof s->mark);
	s->self = (uintptr_t)s;
	s->gate = lie();
	s->threads = get_random() % 2 ? (uintptr_t)circle : lie();
	s->pointer_bytes = get_random() % 4 ? 8 : (uint32_t)lie();
	s->next_at = get_random() % 2 ? 0 : (uint32_t)lie();
	s->stream_at = get_random() % 2 ? 0 : (uint32_t)lie();
	s->limit_at = (uint32_t)lie();
	s->waits_begin = lie();
	s->waits_end = lie();
	s->answer.is_on = get_random() & 1;
	s->answer.status = (int32_t)lie();
}

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("HOSTILE");
	seed = text ? strtoull(text, NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1 : 1;
	for (int i = 0; i < 4; i++)
		circle[i] = (uintptr_t)&circle[(i + 1) % 4];
	lie_about_patches();
	if (get_random() % 4)
		lie_about_standby();
}

void weft_hook_attach(const char *session)
{
	lie_about_patches();
}
