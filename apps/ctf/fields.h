/* fields.h: formats and reads the fields of an event.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CTF_FIELDS_H
#define WEFT_CTF_FIELDS_H

#include <babeltrace2/babeltrace.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line of text, which ends in "..." if it was cut. */
struct ctf_text {
	char bytes[252];
	size_t length;
	bool is_cut;
};

void ctf_text_append(struct ctf_text *text, const char *bytes);

/* Appends the members of a structure as "name=value, ...", without members that identify the OS thread and process.  NULL has
 * none.
 */
void ctf_text_append_members(struct ctf_text *text, const bt_field *structure);

/* Finds the value of a number or a string in a structure, which may be NULL.  Returns false or NULL if the structure has no such
 * member. */
bool ctf_read_number(const bt_field *structure, const char *name, int64_t *out);
const char *ctf_read_string(const bt_field *structure, const char *name);

#endif
