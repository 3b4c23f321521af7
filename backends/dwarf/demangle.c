/* demangle.c: converts mangled symbols to names as the source language writes them.  SPDX-License-Identifier: ISC */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "names_private.h"

/* From the C++ runtime. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *size, int *status); /* NOLINT(bugprone-reserved-identifier) */

/* Removes the hash at the end of older Rust names, as in "core::fmt::write::h0123456789abcdef". */
static void cut_hash(char *name)
{
	enum { HASH = 19 };
	size_t n = strlen(name);
	if (n > HASH && !memcmp(name + n - HASH, "::h", 3) && strspn(name + n - HASH + 3, "0123456789abcdef") == HASH - 3)
		name[n - HASH] = 0;
}

/* Reduces "int ns::(anonymous namespace)::f<double>(char) const" to the qualified name.  The return type, which symbols of
 * templates have, and the parameters are removed, because the source line is more useful. */
static void cut_parameters(char *name)
{
	char *begin = name, *open = NULL;
	unsigned angles = 0, rounds = 0;
	bool in_operator = false;
	for (char *c = name; *c; c++) {
		/* After "operator", the next characters are part of the name, as in "operator<", "operator()" and "operator
		 * new". */
		if (!strncmp(c, "operator", 8) && (c == name || c[-1] == ':' || c[-1] == ' ')) {
			in_operator = true;
			c += 7 + (c[8] == '(' ? 2 : strspn(c + 8, "<>-"));
			continue;
		}
		if (*c == '<' || *c == '{')
			angles++;
		if ((*c == '>' || *c == '}') && angles)
			angles--;
		if (angles)
			continue;
		if (*c == ' ' && !rounds && !open && !in_operator)
			begin = c + 1;
		if (*c == '(' && rounds++ == 0 && strncmp(c, "(anonymous", 10) != 0 && !open)
			open = c;
		if (*c == ')' && rounds)
			rounds--;
		/* After these parentheses, the name continues, as in "(anonymous namespace)::f". */
		if (*c == ':' && rounds == 0)
			open = NULL;
	}
	if (open && open > begin)
		*open = 0;
	memmove(name, begin, strlen(begin) + 1);
}

/* Removes suffixes that a compiler adds to clones of a function: "f.constprop.0", "f.part.0.cold". */
static void cut_suffixes(char *name)
{
	static const char *const suffixes[] = {".constprop.", ".isra.", ".part.", ".cold", ".lto_priv.", ".llvm."};
	for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
		char *at = strstr(name, suffixes[i]);
		if (at && at > name)
			*at = 0;
	}
}

char *weft__name_demangle(const char *symbol)
{
	enum { LONGEST = 4096 };
	int status = 0;
	char *plain = strdup(symbol);
	if (!plain)
		return NULL;
	cut_suffixes(plain);
	char *name = !strncmp(plain, "_Z", 2) && strlen(plain) < LONGEST ? __cxa_demangle(plain, NULL, NULL, &status) : NULL;
	if (!name)
		return plain;
	free(plain);
	cut_hash(name);
	cut_parameters(name);
	return name;
}
