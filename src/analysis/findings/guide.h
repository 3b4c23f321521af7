/* guide.h: declares the explanation of each kind of finding for users.
 *
 * `weft help NAME` prints it, and tools/finding-pages writes docs/findings/ from it.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_FINDINGS_GUIDE_H
#define WEFT_ANALYSIS_FINDINGS_GUIDE_H

#include "analysis/findings/explain.h"

/* The texts are Markdown with one sentence a line: paragraphs and lists of "- " lines, separated by empty lines.  Code stands
 * in backticks. */
struct weft_finding_guide {
	const char *name;
	enum weft_severity severity; /* the severity that most findings of this kind have */
	const char *meaning;         /* meaning of the finding in one sentence of at most 80 bytes */
	const char *title;           /* examples of the finding's title, one in each line */
	const char *evidence;        /* how weft knows */
	const char *doubt;           /* text that says when the finding is uncertain */
	const char *false_alarms;
	const char *fix;
	const char *json; /* description of the JSON fields whose meaning depends on the kind of the finding */
};

/* Returns the guide of a kind of findings. */
struct weft_finding_guide weft_finding_guide(enum weft_finding_kind kind);

/* Introduction to all findings, and the JSON fields that have one meaning in every finding. */
extern const char weft_finding_guide_intro[], weft_finding_guide_json[];

#endif
