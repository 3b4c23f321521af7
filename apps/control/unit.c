/* unit.c: drop-ins of systemd (unit.h).
 *
 * A drop-in adds the two variables of weft record to the environment of a service.  So systemd still starts the service itself:
 * the type, the user, sd_notify(3) and all restrictions of the unit stay as they are.  systemd makes the folder for the traces,
 * owned by the service's user, and allows writing there under ProtectSystem=.  SPDX-License-Identifier: ISC */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "control/unit.h"

static const char suffix[] = ".service";

/* Returns the length of the name without ".service". */
static int get_length(const char *service)
{
	const size_t length = strlen(service), end = sizeof suffix - 1;
	return (int)(length > end && !strcmp(service + length - end, suffix) ? length - end : length);
}

bool unit_is_name(const char *service)
{
	bool is_name = get_length(service) > 0 && strlen(service) <= NAME_MAX / 2 && service[0] != '.' && service[0] != '-';
	for (const char *c = service; *c; c++)
		is_name &= isalnum((unsigned char)*c) || strchr(":-_.@", *c);
	return is_name;
}

char *unit_folder(const char *service)
{
	char *folder;
	return asprintf(&folder, UNIT_FOLDER "/%.*s", get_length(service), service) < 0 ? NULL : folder;
}

/* Writes a text between quotation marks of systemd, where a % and a \ have meanings. */
static void write_quoted(FILE *out, const char *name, const char *value)
{
	fprintf(out, "Environment=\"%s=", name);
	for (; *value; value++) {
		if (strchr("\\\"", *value))
			fputc('\\', out);
		fputs(*value == '%' ? "%%" : (char[]){*value, 0}, out);
	}
	fputs("\"\n", out);
}

static int write_drop_in(const char *service, const char *path, const char *library, const char *preload, const char *value)
{
	struct cli_file file;
	char *folder = unit_folder(service);
	if (!folder)
		return cli_fail_verb("record", "%s", weft_status_string(WEFT_ENOMEM));
	int exit = cli_file_begin(&file, path);
	if (exit < 0) {
		fprintf(file.stream,
		    "# weft records this service (weft record --install-unit).  Remove this file to end that.\n[Service]\n");
		write_quoted(file.stream, "LD_PRELOAD", preload);
		write_quoted(file.stream, "WEFT_RECORD", value);
		fprintf(file.stream, "# systemd makes " UNIT_LOGS "%s for the user of the service.\nLogsDirectory=%s\n", folder,
		    folder);
		fprintf(file.stream, "# The library may be executed in a unit with NoExecPaths=.\nExecPaths=-%.*s\n",
		    (int)(strrchr(library, '/') - library), library);
		exit = cli_file_end(&file, WEFT_OK, NULL);
	}
	free(folder);
	return exit;
}

int unit_install(const char *service, const char *out, const char *library, const char *preload, const char *value)
{
	char path[PATH_MAX];
	const int length = get_length(service);
	if (!out) {
		snprintf(path, sizeof path, "/etc/systemd/system/%.*s.service.d", length, service);
		if (mkdir(path, 0755) != 0 && errno != EEXIST)
			return cli_fail_verb("record", "%s: %s", path, strerror(errno));
		strcat(path, "/weft.conf");
		out = path;
	}
	const int exit = write_drop_in(service, out, library, preload, value);
	if (exit == CLI_OK && out == path)
		cli_note("%s is written; run systemctl daemon-reload && systemctl restart %.*s", path, length, service);
	return exit;
}
