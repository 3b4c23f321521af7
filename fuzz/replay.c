/* replay.c: runs a fuzz target on the files of its corpus, without libFuzzer.  SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

/* Replays a file, in memory of exactly its size, so that a sanitizer sees each access beyond it. */
static void replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	if (!file || fseek(file, 0, SEEK_END) != 0) {
		perror(path);
		exit(1);
	}
	size_t size = (size_t)ftell(file);
	unsigned char *bytes = malloc(size ? size : 1);
	rewind(file);
	if (!bytes || fread(bytes, 1, size, file) != size) {
		perror(path);
		exit(1);
	}
	fclose(file);
	printf("%s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(bytes, size);
	free(bytes);
}

int main(int argc, char **argv)
{
	int count = 0;
	for (int i = 1; i < argc; i++) {
		struct dirent **entries;
		int n = scandir(argv[i], &entries, NULL, alphasort);
		if (n < 0) {
			perror(argv[i]);
			return 1;
		}
		for (int k = 0; k < n; k++) {
			char path[4096];
			snprintf(path, sizeof path, "%s/%s", argv[i], entries[k]->d_name);
			if (entries[k]->d_name[0] != '.') {
				replay_file(path);
				count++;
			}
			free(entries[k]);
		}
		free(entries);
	}
	printf("%d files\n", count);
	return count == 0;
}
