/* cover.c: leaves a finding out if a printed finding explains it.
 *
 * A check does not drop an explained finding itself: the finding that explains it may be dropped later, for example because
 * events are missing, and then the explained finding is printed.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"
#include "base/sort.h"

enum { MAX_CHAIN = 8 }; /* covers of covers */

static const struct weft__cover *find_cover(const struct weft__finder *f, size_t covered)
{
	for (size_t i = 0; i < f->covers.count; i++)
		if (f->covers.items[i].covered == covered)
			return &f->covers.items[i];
	return NULL;
}

bool weft__finding_is_covered(const struct weft__finder *f, size_t i)
{
	return find_cover(f, i) != NULL;
}

void weft__finding_cover(struct weft__finder *f, size_t covered, size_t by)
{
	if (weft__finding_is_covered(f, covered))
		return;
	struct weft__cover *cover = weft_vec_push(&f->covers);
	f->no_memory |= !cover;
	if (!cover)
		return;
	*cover = (struct weft__cover){.covered = covered, .by = by};
	f->counts[f->findings.items[covered].kind]--;
}

static bool is_dropped(const struct weft__finder *f, size_t i)
{
	return f->findings.items[i].kind == WEFT_FINDING_KINDS;
}

/* Returns the printed finding that explains `covered`: the finding that covers it may itself be covered or dropped.  Returns
 * SIZE_MAX if no printed finding explains `covered`, so that it is printed itself. */
static size_t find_printed(const struct weft__finder *f, size_t covered)
{
	size_t printed = SIZE_MAX;
	const struct weft__cover *cover = find_cover(f, covered);
	for (int i = 0; cover && i < MAX_CHAIN && !is_dropped(f, cover->by); i++) {
		printed = cover->by;
		cover = find_cover(f, printed);
	}
	return printed;
}

static bool names_promise(const struct weft_finding *finding, uint32_t promise)
{
	bool found = finding->promise == promise || finding->root == promise;
	for (size_t i = 0; i < finding->evidence_count && !found; i++)
		found = finding->evidence[i].promise == promise;
	return found;
}

static int compare_by(const void *a, const void *b)
{
	const struct weft__cover *x = a, *y = b;
	return WEFT_ORDER(x->by, y->by) ?: WEFT_ORDER(x->covered, y->covered);
}

/* Adds the lines of finding i again, and a line for each finding that finding i covers and whose promise its lines do not name.
 * The entries of covers from *next on are about finding i or later findings. */
static void add_lines(struct weft__finder *f, size_t i, size_t *next)
{
	struct weft_finding *finding = &f->findings.items[i];
	const struct weft_finding old = *finding;
	finding->evidence_count = 0;
	size_t shown = 0, left_out = 0;
	for (size_t e = 0; e < old.evidence_count; e++) {
		struct weft_evidence *line = weft_vec_push(&f->evidence);
		f->no_memory |= !line;
		if (line)
			*line = old.evidence[e];
		finding->evidence_count += line != NULL;
	}
	for (; *next < f->covers.count && f->covers.items[*next].by == i; ++*next) {
		const struct weft_finding *covered = &f->findings.items[f->covers.items[*next].covered];
		struct weft_evidence *line = NULL;
		if (names_promise(&old, covered->promise))
			continue;
		if (shown++ >= WEFT__MAX_LINES)
			left_out++;
		else if ((line = weft_vec_push(&f->evidence)))
			*line = (struct weft_evidence){
			    covered->start_ns, covered->promise, WEFT_EVIDENCE_VICTIM, weft__format_title(f, covered->title, 0)};
		f->no_memory |= !line && shown <= WEFT__MAX_LINES;
		finding->evidence_count += line != NULL;
	}
	struct weft_evidence *more = left_out > 0 ? weft_vec_push(&f->evidence) : NULL;
	if (more)
		*more = (struct weft_evidence){
		    WEFT_NO_TIME, WEFT_NONE, WEFT_EVIDENCE_VICTIM, weft__finding_text(f, "and %zu more", left_out)};
	f->no_memory |= !more && left_out > 0;
	finding->evidence_count += more != NULL;
}

void weft__covers_apply(struct weft__finder *f)
{
	size_t kept = 0;
	if (f->covers.count == 0)
		return;
	for (size_t i = 0; i < f->covers.count; i++) {
		const size_t covered = f->covers.items[i].covered;
		f->covers.items[i].printed = is_dropped(f, covered) ? SIZE_MAX : find_printed(f, covered);
	}
	for (size_t i = 0; i < f->covers.count; i++)
		if (f->covers.items[i].printed != SIZE_MAX) {
			f->covers.items[kept] = f->covers.items[i];
			f->covers.items[kept++].by = f->covers.items[i].printed;
		}
	f->covers.count = kept;
	weft_sort(f->covers.items, kept, sizeof *f->covers.items, compare_by);
	struct weft_evidence *old = f->evidence.items;
	size_t next = 0;
	f->evidence.items = NULL;
	f->evidence.count = f->evidence.capacity = 0;
	for (size_t i = 0; i < f->findings.count && !f->no_memory; i++)
		add_lines(f, i, &next);
	free(old);
	for (size_t i = 0; i < kept; i++)
		f->findings.items[f->covers.items[i].covered].kind = WEFT_FINDING_KINDS;
}
