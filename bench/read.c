/* read.c TRACE: compares iterating over all events of a trace with summing the bytes of its files.  SPDX-License-Identifier: ISC
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"
#include "trace/trace.h"

#define ROUNDS 7
#define MAX_FILES 4096

static struct {
	const uint64_t *words;
	size_t count;
} files[MAX_FILES];
static unsigned file_count;

static void add_file(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || file_count == MAX_FILES)
		fatal("%s: cannot open", path);
	if (S_ISREG(st.st_mode) && st.st_size > 0) {
		void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map == MAP_FAILED)
			fatal("%s: cannot map", path);
		files[file_count].words = map;
		files[file_count++].count = (size_t)st.st_size / 8;
	}
	close(fd);
}

static void add_files(const char *path)
{
	DIR *directory = opendir(path);
	if (!directory) {
		add_file(path);
		return;
	}
	const struct dirent *entry;
	while ((entry = readdir(directory))) {
		char name[4200];
		snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
		if (entry->d_name[0] != '.')
			add_file(name);
	}
	closedir(directory);
}

static uint64_t sum_bytes(void)
{
	uint64_t sum = 0;
	for (unsigned f = 0; f < file_count; f++)
		for (size_t i = 0; i < files[f].count; i++)
			sum += files[f].words[i];
	return sum;
}

/* Sums all fields that every event has, so that the compiler cannot omit one. */
static uint64_t sum_events(struct weft_trace *trace, uint64_t *events)
{
	const struct weft_event *event;
	size_t count;
	uint64_t sum = 0, total = 0;
	int status;
	while ((status = weft_trace_next(trace, &event, &count)) > 0) {
		total += count;
		for (size_t i = 0; i < count; i++)
			sum += (uint64_t)event[i].time_ns + (uint64_t)event[i].a + (uint64_t)event[i].b + event[i].op;
	}
	if (status < 0)
		fatal("reading failed");
	*events = total;
	return sum;
}

int main(int argc, char **argv)
{
	struct weft_trace *trace;
	struct weft_error err;
	double summing[ROUNDS], iterating[ROUNDS];
	uint64_t events = 0;
	volatile uint64_t keep = 0;
	if (argc != 2)
		fatal("usage: weft-bench-read TRACE");
	add_files(argv[1]);
	keep += sum_bytes();
	if (weft_trace_open(&trace, argv[1], &err) < 0)
		fatal("%s", err.what);
	keep += sum_events(trace, &events);
	for (unsigned round = 0; round < ROUNDS; round++) {
		double begin = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
		keep += sum_bytes();
		double middle = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
		weft_trace_rewind(trace);
		keep += sum_events(trace, &events);
		summing[round] = middle - begin;
		iterating[round] = clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - middle;
	}
	weft_trace_close(trace);
	printf("events %llu\nsum_ns %.3f\niterate_ns %.3f\n", (unsigned long long)events,
	    median(summing, ROUNDS) / (double)events, median(iterating, ROUNDS) / (double)events);
	return 0;
}
