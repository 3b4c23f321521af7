/* unit.h: drop-ins of systemd, by which installed services record.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CONTROL_UNIT_H
#define WEFT_CONTROL_UNIT_H

/* Folder of systemd's logs below which the services record. */
#define UNIT_LOGS "/var/log/"
#define UNIT_FOLDER "weft"

/* Returns whether a text may be the name of a service, with or without ".service". */
bool unit_is_name(const char *service);

/* Returns the folder into which a service records, "weft/NAME" below UNIT_LOGS, in allocated memory; NULL without memory. */
char *unit_folder(const char *service);

/* Writes the drop-in of a service to `out`, or to systemd's folder if `out` is NULL.  `library` is the path of the hook's library
 * and `preload` the value of LD_PRELOAD; `value` is that of WEFT_RECORD.  Returns an exit status. */
int unit_install(const char *service, const char *out, const char *library, const char *preload, const char *value);

#endif
