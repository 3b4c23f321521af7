/* http.h: functions that the HTTP servers of weft serve and weft watch share: address, check of Host headers, responses.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_HTTP_H
#define WEFT_CLI_HTTP_H

#ifdef WEFT_HAS_SERVER

#include <microhttpd.h>
#include <stdbool.h>

enum { CLI_HTTP_URL_BYTES = 300 };

struct cli_http_address {
	char host[256]; /* host name as the user gave it, or of the machine; clients may use it besides addresses and localhost */
	bool is_loopback;
	int socket; /* listens */
	unsigned port;
};

/* Opens a listening socket at [HOST][:PORT], the value of an option.  Returns -1 to continue; otherwise an error was printed,
 * and the result is the exit status.  The caller closes the listening socket. */
int cli_http_listen(
    struct cli_http_address *out, const char *verb, const char *option, const char *listen_at, const char *default_port);

/* Writes "http://HOST:PORT" and returns buf. */
const char *cli_http_format_url(const struct cli_http_address *address, char buf[CLI_HTTP_URL_BYTES]);

/* Returns whether the request is for this server: another web site's name may have been made to resolve to this server's
 * address. */
bool cli_http_is_for_us(const struct cli_http_address *address, struct MHD_Connection *connection);

/* Sends and releases the response; if the response is NULL, closes the connection. */
enum MHD_Result cli_http_send(
    struct MHD_Connection *connection, unsigned status, const char *type, struct MHD_Response *response);
enum MHD_Result cli_http_send_text(struct MHD_Connection *connection, unsigned status, const char *text);

#endif
#endif
