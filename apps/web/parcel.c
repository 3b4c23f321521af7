/* parcel.c: packs findings into one block of memory.  SPDX-License-Identifier: ISC */
#include "apps/web/parcel.h"

#include <stdlib.h>
#include <string.h>

struct packer {
	char *block; /* block of the parcel; NULL in the first pass, which only measures its size */
	size_t at;
};

/* Copies bytes to an aligned position in the block.  Returns the offset of the bytes from the start of the block. */
static uintptr_t put_aligned(struct packer *p, const void *bytes, size_t size)
{
	size_t at = (p->at + 7) & ~(size_t)7;
	if (p->block && size > 0)
		memcpy(p->block + at, bytes, size);
	p->at = at + size;
	return at;
}

static const char *put_text(struct packer *p, const char *text)
{
	return text ? (const char *)put_aligned(p, text, strlen(text) + 1) : NULL;
}

/* Puts all findings.  A struct with pointers is written twice: first to reserve its place, and then with the offsets of its
 * contents. */
static void put_all(struct packer *p, const struct weft_findings *findings)
{
	struct weft_findings head = *findings;
	put_aligned(p, &head, sizeof head);
	uintptr_t list = put_aligned(p, findings->findings, findings->count * sizeof *findings->findings);
	head.findings = (struct weft_finding *)list;
	head.doubt = put_text(p, findings->doubt);
	head.priv = NULL;
	for (size_t i = 0; i < findings->count; i++) {
		struct weft_finding f = findings->findings[i];
		uintptr_t lines = put_aligned(p, f.evidence, f.evidence_count * sizeof *f.evidence);
		for (size_t k = 0; k < f.evidence_count; k++) {
			const char *text = put_text(p, f.evidence[k].text);
			if (p->block)
				((struct weft_evidence *)(p->block + lines))[k].text = text;
		}
		f.evidence = (struct weft_evidence *)lines;
		f.steps = (struct weft_path_step *)(f.steps ? put_aligned(p, f.steps, f.step_count * sizeof *f.steps) : 0);
		f.doubt = put_text(p, f.doubt);
		f.title = put_text(p, f.title);
		f.next = put_text(p, f.next);
		if (p->block)
			((struct weft_finding *)(p->block + list))[i] = f;
	}
	if (p->block)
		memcpy(p->block, &head, sizeof head);
}

void *parcel_pack(const struct weft_findings *findings, size_t *size)
{
	struct packer p = {NULL, 0};
	put_all(&p, findings);
	*size = p.at;
	p = (struct packer){calloc(1, p.at), 0};
	if (p.block)
		put_all(&p, findings);
	return p.block;
}

#define MOVE(address) ((address) = (address) ? (void *)(base + (uintptr_t)(address)) : NULL)

struct weft_findings *parcel_unpack(void *parcel)
{
	char *base = parcel;
	struct weft_findings *findings = parcel;
	MOVE(findings->findings);
	MOVE(findings->doubt);
	for (size_t i = 0; findings->findings && i < findings->count; i++) {
		struct weft_finding *f = &findings->findings[i];
		MOVE(f->evidence);
		MOVE(f->steps);
		MOVE(f->doubt);
		MOVE(f->title);
		MOVE(f->next);
		for (size_t k = 0; f->evidence && k < f->evidence_count; k++)
			MOVE(f->evidence[k].text);
	}
	return findings;
}
