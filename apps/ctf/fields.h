/* fields.h: what the fields of an event say.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CTF_FIELDS_H
#define WEFT_CTF_FIELDS_H

#include <babeltrace2/babeltrace.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line that ends in "..." where it was cut. */
struct ctf_text {
	char bytes[252];
	size_t length;
	bool is_cut;
};

void ctf_text_put(struct ctf_text *text, const char *bytes);

/* "name=value, ..." of the members of a structure, but for those that say which OS thread and process it was; NULL has none. */
void ctf_text_put_members(struct ctf_text *text, const bt_field *structure);

/* A member of a structure that is a number, or a string; false, NULL: there is none of that name.  The structure may be NULL. */
bool ctf_number(const bt_field *structure, const char *name, int64_t *out);
const char *ctf_string(const bt_field *structure, const char *name);

#endif
