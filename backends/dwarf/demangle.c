/* demangle.c: names as their language writes them.  SPDX-License-Identifier: ISC */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "names_private.h"

/* Of the C++ runtime. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *size, int *status); // NOLINT(bugprone-reserved-identifier)

/* Rust's older names end in a hash: "core::fmt::write::h0123456789abcdef". */
static void cut_hash(char *name)
{
	enum { HASH = 19 };
	size_t n = strlen(name);
	if (n > HASH && !memcmp(name + n - HASH, "::h", 3) && strspn(name + n - HASH + 3, "0123456789abcdef") == HASH - 3)
		name[n - HASH] = 0;
}

/* Leaves what is the name of "int ns::(anonymous namespace)::f<double>(char) const": no type before it, which templates have, no
 * parameters behind it, which tell nothing that a line does not tell better. */
static void cut_parameters(char *name)
{
	char *begin = name, *open = NULL;
	unsigned angles = 0, rounds = 0;
	bool in_operator = false;
	for (char *c = name; *c; c++) {
		/* "operator<", "operator()", "operator new": what follows is no bracket, and no end. */
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
		/* There is more of the name behind them. */
		if (*c == ':' && rounds == 0)
			open = NULL;
	}
	if (open && open > begin)
		*open = 0;
	memmove(name, begin, strlen(begin) + 1);
}

/* What a compiler made of a function: "f.constprop.0", "f.part.0.cold". */
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
