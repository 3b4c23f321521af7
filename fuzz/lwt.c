/* lwt.c: makes two rings of OCaml 5 from the bytes, with events of Lwt and Eio, and reads them.
 *
 * The file itself is valid, so the bytes reach what the reader concludes from the order of the events.  Each event takes a byte
 * that chooses it and its ring, and a byte for its place or its value.  SPDX-License-Identifier: ISC */
#include "read_trace.h"

enum { HEADER = 64, RING_HEADER = 80, WORDS = 8192, RINGS = 2, NAME = 128, NAMES = 8, WORD = 8, LONGEST = 32 };
enum { DATA = HEADER + RINGS * RING_HEADER, NAMES_AT = DATA + RINGS * WORDS * WORD, SIZE = NAMES_AT + NAMES * NAME };
enum { UNIT, INT, SPAN_BEGIN, SPAN_END, CUSTOM };

static const char *const names[NAMES] = {"lwt-trace", "lwt-sch-call", "lwt-sch-lap", "lwt-paused-count", "lwt-unix-job-count",
    "eio.fiber", "eio.suspend_fiber", "own.bytes"};

static unsigned char file[SIZE];
static uint64_t used[RINGS]; /* words */
static uint64_t now_ns;

static void put_word(size_t at, uint64_t word)
{
	memcpy(file + at, &word, sizeof word);
}

/* Writes an event of a user; `payload` has a size that is a multiple of a word. */
static void put_event(size_t ring, unsigned type, unsigned id, const unsigned char *payload, size_t bytes)
{
	const uint64_t length = 2 + bytes / WORD;
	const size_t at = DATA + (ring * WORDS + used[ring]) * WORD;
	if (used[ring] + length > WORDS)
		return;
	put_word(at, length << 54 | (uint64_t)1 << 53 | (uint64_t)type << 49 | (uint64_t)id << 36);
	put_word(at + WORD, now_ns += 100);
	if (bytes)
		memcpy(file + at + 2 * (size_t)WORD, payload, bytes);
	used[ring] += length;
}

static void put_custom(size_t ring, unsigned id, const unsigned char *bytes, size_t size)
{
	unsigned char padded[LONGEST + WORD] = {0};
	const size_t unused = 7 - size % WORD;
	memcpy(padded, bytes, size);
	padded[size + unused] = (unsigned char)unused;
	put_event(ring, CUSTOM, id, padded, size + unused + 1);
}

/* Writes the start or the end of a wait: four contexts, and 64 lines. */
static void put_wait(size_t ring, bool is_end, unsigned char place)
{
	unsigned char wait[] = {is_end ? 'E' : 'B', 0, 0, 0, 4, 'a', '.', 'm', 'l', 0};
	size_t size = sizeof wait - 1;
	if (place >> 6) { /* the context goes before the line */
		memmove(wait + 3, wait + 2, size - 2);
		wait[1] = 1;
		wait[2] = (unsigned char)('0' + (place >> 6));
		size++;
	}
	wait[3 + (place >> 6 ? 1 : 0)] = place & 63;
	put_custom(ring, 0, wait, size);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	static const uint64_t header[] = {1, RINGS, RING_HEADER, (uint64_t)WORDS * WORD, WORDS, HEADER, DATA, NAMES_AT};
	memset(file, 0, sizeof file);
	memcpy(file, header, sizeof header);
	for (size_t i = 0; i < NAMES; i++)
		memcpy(file + NAMES_AT + i * NAME, names[i], strlen(names[i]));
	used[0] = used[1] = now_ns = 0;
	for (size_t at = 0; at + 1 < size; at += 2) {
		const unsigned char what = bytes[at], value = bytes[at + 1];
		const size_t ring = what >> 7, left = size - at - 2;
		const unsigned char word[WORD] = {value};
		switch (what & 15) {
		case 0: put_event(ring, SPAN_BEGIN, 1, NULL, 0); break;
		case 1: put_event(ring, SPAN_END, 1, NULL, 0); break;
		case 2: put_event(ring, UNIT, 2, NULL, 0); break;
		case 3: put_event(ring, INT, 3 + value % 2, word, sizeof word); break;
		case 4: put_event(ring, INT, 5, word, sizeof word); break;
		case 5: put_custom(ring, 6, bytes + at + 2, left < value % LONGEST ? left : value % LONGEST); break;
		case 6: put_custom(ring, 7, bytes + at + 2, left < value % LONGEST ? left : value % LONGEST); break;
		case 7: put_custom(ring, 0, bytes + at + 2, left < value % LONGEST ? left : value % LONGEST); break;
		default: put_wait(ring, what & 1, value); break;
		}
	}
	for (size_t ring = 0; ring < RINGS; ring++)
		put_word(HEADER + ring * RING_HEADER + WORD, used[ring]);
	return read_trace(file, sizeof file, "ocaml");
}
