/* account_test.c: all time of every promise and thread is attributed once, and path, blame, stats, the panel and explain agree.
 *
 *	account_test GENERATE
 *
 * The traces are random, planted programs, what tools/generate makes in all shapes, and copies of these with wrong bytes.
 * SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check_account.h"
#include "draw/random_trace.h"
#include "planted.h"

static size_t checked, refused;

static void check_trace(struct weft_trace *trace, bool keep_binds)
{
	struct weft_model *model;
	const struct weft_model_options options = {.keep_binds = keep_binds};
	if (weft_model_build(&model, trace, &options, NULL) < 0) {
		refused++;
		return;
	}
	check_account(model);
	checked++;
	weft_model_destroy(model);
}

static void check_bytes(const void *bytes, size_t size)
{
	struct weft_trace *trace;
	for (int keep_binds = 0; keep_binds < 2; keep_binds++) {
		if (weft_trace_open_memory(&trace, bytes, size, "account", NULL) < 0) {
			refused++;
			continue;
		}
		check_trace(trace, keep_binds);
		weft_trace_close(trace);
	}
}

/* Checks the account of the trace in `bytes`, and of copies in which some bytes are wrong. */
static void check_with_mutants(const void *bytes, size_t size, uint64_t seed, unsigned mutants)
{
	unsigned char *mutant = malloc(size);
	CHECK_ACCOUNT(mutant);
	check_bytes(bytes, size);
	for (unsigned i = 0; i < mutants; i++) {
		memcpy(mutant, bytes, size);
		for (unsigned n = 1 + random_below(&seed, 30); n > 0; n--)
			mutant[random_below(&seed, (uint32_t)size)] ^= (unsigned char)(1u << random_below(&seed, 8));
		check_bytes(mutant, size);
	}
	free(mutant);
}

static void check_generated(const char *generate)
{
	static const char *const shapes[] = {"random", "short", "tail", "alive", "chain", "deep", "waits", "flock", "crowd"};
	char folder[] = "/tmp/account-XXXXXX", path[96], command[512];
	CHECK_ACCOUNT(mkdtemp(folder));
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		struct weft_trace *trace;
		snprintf(path, sizeof path, "%s/%s", folder, shapes[i]);
		snprintf(command, sizeof command, "'%s' %s --events=4k --format=native -o %s", generate, shapes[i], path);
		CHECK_ACCOUNT(system(command) == 0); /* NOLINT(cert-env33-c): the program of the test */
		CHECK_ACCOUNT(weft_trace_open(&trace, path, NULL) == WEFT_OK);
		check_trace(trace, true);
		weft_trace_close(trace);
	}
	snprintf(command, sizeof command, "rm -r %s", folder);
	CHECK_ACCOUNT(system(command) == 0); /* NOLINT(cert-env33-c) */
}

int main(int argc, char **argv)
{
	static struct mirage_writer w;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		write_random_trace(&w, seed);
		check_with_mutants(w.bytes, w.size, seed, 4);
	}
	for (int fault = 0; fault < FAULTS; fault++)
		for (uint64_t seed = 1; seed <= 4; seed++) {
			run_program((enum fault)fault, seed, PLANTED_BYTES, 0);
			check_with_mutants(buffer, PLANTED_BYTES, seed, 3);
			run_program((enum fault)fault, seed, PLANTED_BYTES / 32, 0);
			check_bytes(buffer, PLANTED_BYTES / 32);
		}
	if (argc > 1)
		check_generated(argv[1]);
	printf("%zu models checked, %zu refused\n", checked, refused);
	return checked > 2 * refused ? 0 : 1;
}
