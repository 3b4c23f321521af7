/* plugin.c: a module that records, for a program that does not use weft itself.  SPDX-License-Identifier: ISC */
#include <weft/record.h>

__attribute__((visibility("default"))) int plugin_start(const char *directory);
__attribute__((visibility("default"))) void plugin_work(int first, int count);

int plugin_start(const char *directory)
{
	const struct weft_record_options options = {.directory = directory, .overwrite = true, .size_bytes = 1 << 20};
	return weft_start(&options);
}

void plugin_work(int first, int count)
{
	for (int i = 0; i < count; i++)
		weft_await(first + i, 1);
}
