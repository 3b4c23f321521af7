/* http.c: records HTTP requests of servers and clients, and lookups of host names.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "adapters/event/common.h"
#include "base/known_strings.h"

enum { SLOT_COUNT = 256 };

static void *server_users[SLOT_COUNT], *client_users[SLOT_COUNT];
void weft__ev_served(struct evhttp_request *request, void *data, unsigned slot);
void weft__ev_answered(struct evhttp_request *request, void *data, unsigned slot);
WEFT_HOOK_CODE(weft__ev_served, 2, 256);
WEFT_HOOK_CODE(weft__ev_answered, 2, 256);
static const struct weft_hook_slots server_slots = {weft__ev_served_code, server_users, SLOT_COUNT};
static const struct weft_hook_slots client_slots = {weft__ev_answered_code, client_users, SLOT_COUNT};

static void append_command(struct weft_hook_label *label, int command, const char *uri)
{
	static const char *const names[] = {
	    "GET ", "POST ", "HEAD ", "PUT ", "DELETE ", "OPTIONS ", "TRACE ", "CONNECT ", "PATCH "};
	int bit = command > 0 ? __builtin_ctz((unsigned)command) : 99;
	weft_hook_append(label, bit < (int)(sizeof names / sizeof *names) ? names[bit] : "");
	weft_hook_append_path(label, uri ? uri : "");
}

/* ---- Server ---- */

int weft__evhttp_set_cb(struct evhttp *http, const char *path, weft__ev_request_cb *cb, void *data)
{
	return weft__ev_real.evhttp_set_cb(
	    http, path, cb ? (weft__ev_request_cb *)weft_hook_slot(&server_slots, (void *)cb) : NULL, data);
}

void weft__evhttp_set_gencb(struct evhttp *http, weft__ev_request_cb *cb, void *data)
{
	weft__ev_real.evhttp_set_gencb(http, cb ? (weft__ev_request_cb *)weft_hook_slot(&server_slots, (void *)cb) : NULL, data);
}

void weft__ev_served(struct evhttp_request *request, void *data, unsigned slot)
{
	weft__ev_request_cb *user = (weft__ev_request_cb *)__atomic_load_n(&server_users[slot], __ATOMIC_ACQUIRE);
	weft_id id = 0;
	if (request && weft__ev_should_record()) {
		weft_hook_thread();
		weft__ev_lock(request);
		struct weft__ev_object *object = weft__ev_find(request);
		if (object)
			weft__ev_end(object, WEFT_SYSTEM_ID);
		if ((object = weft__ev_create(request))) {
			weft__ev_begin(object, WEFT_KIND_REQUEST, (const char *)(const void *)user + 1);
			append_command(&object->label, weft__ev_real.evhttp_request_get_command(request),
			    weft__ev_real.evhttp_request_get_uri(request));
			weft__ev_record_label(object);
			weft_should_resolve(object->id);
			id = object->id;
			weft_hook_record_running(id);
		}
		weft__ev_unlock(request);
	}
	WEFT__EV_FRAME(id);
	weft_hook_set_called((const void *)user);
	user(request, data);
}

static void end_request(struct evhttp_request *request)
{
	if (!weft_is_on())
		return;
	weft__ev_lock(request);
	struct weft__ev_object *object = weft__ev_find(request);
	if (object)
		weft__ev_end(object, weft__hook_get_thread()->running);
	weft__ev_unlock(request);
}

void weft__evhttp_send_reply(struct evhttp_request *request, int code, const char *reason, struct evbuffer *body)
{
	end_request(request);
	weft__ev_real.evhttp_send_reply(request, code, reason, body);
}

void weft__evhttp_send_error(struct evhttp_request *request, int error, const char *reason)
{
	end_request(request);
	weft__ev_real.evhttp_send_error(request, error, reason);
}

void weft__evhttp_send_reply_end(struct evhttp_request *request)
{
	end_request(request);
	weft__ev_real.evhttp_send_reply_end(request);
}

/* ---- Client ---- */

struct evhttp_request *weft__evhttp_request_new(weft__ev_request_cb *cb, void *data)
{
	/* For a server's requests, libevent itself calls evhttp_request_new() with its own callback. */
	bool is_own = weft__ev_is_own(__builtin_return_address(0));
	return weft__ev_real.evhttp_request_new(
	    cb && !is_own ? (weft__ev_request_cb *)weft_hook_slot(&client_slots, (void *)cb) : cb, data);
}

int weft__evhttp_make_request(struct evhttp_connection *connection, struct evhttp_request *request, int type, const char *uri)
{
	WEFT__EV_CALL;
	if (weft__ev_should_record()) {
		weft_hook_thread();
		weft__ev_lock(request);
		struct weft__ev_object *object = weft__ev_create(request);
		if (object) {
			weft__ev_begin(object, WEFT_KIND_REQUEST, weft__ev_get_here()->caller);
			object->is_asked = true;
			append_command(&object->label, type, uri);
			weft__ev_record_label(object);
			weft_await(object->by, object->id);
		}
		weft__ev_unlock(request);
	}
	return weft__ev_real.evhttp_make_request(connection, request, type, uri);
}

/* The request that libevent freed last: libevent frees a failed request and then calls back with NULL. */
static __thread struct {
	weft_id id, by;
	unsigned epoch;
} freed __attribute__((tls_model("initial-exec")));
static __thread bool is_cancelling __attribute__((tls_model("initial-exec")));

void weft__evhttp_request_free(struct evhttp_request *request)
{
	if (weft_is_on()) {
		weft__ev_lock(request);
		struct weft__ev_object *object = weft__ev_find(request);
		if (object && object->is_asked) {
			freed.id = object->id;
			freed.by = object->by;
			freed.epoch = weft__hook_epoch;
			weft_fail(WEFT_SYSTEM_ID, object->id, is_cancelling ? WEFT_STRING_CANCELLED : "no answer");
			object->id = 0;
			weft__ev_end(object, WEFT_SYSTEM_ID);
		}
		weft__ev_unlock(request);
	}
	weft__ev_real.evhttp_request_free(request);
}

void weft__evhttp_cancel_request(struct evhttp_request *request)
{
	is_cancelling = true;
	weft__ev_real.evhttp_cancel_request(request);
	is_cancelling = false;
}

/* Ends the request that the callback reports, and returns its promise. */
static weft_id end_asked(struct evhttp_request *request)
{
	weft_id id = 0, by = 0;
	weft__ev_lock(request);
	struct weft__ev_object *object = request ? weft__ev_find(request) : NULL;
	if (object) {
		id = object->id;
		by = object->by;
		weft__ev_end(object, WEFT_SYSTEM_ID);
	} else if (!request && freed.epoch == weft__hook_epoch) {
		id = freed.id;
		by = freed.by;
		freed.id = 0;
	}
	weft__ev_unlock(request);
	if (id)
		weft_read_later(by, id);
	return id;
}

void weft__ev_answered(struct evhttp_request *request, void *data, unsigned slot)
{
	weft__ev_request_cb *user = (weft__ev_request_cb *)__atomic_load_n(&client_users[slot], __ATOMIC_ACQUIRE);
	const weft_id id = weft_is_on() ? end_asked(request) : 0;
	if (id)
		weft_hook_record_running(id);
	WEFT__EV_FRAME(id);
	weft_hook_set_called((const void *)user);
	user(request, data);
}

/* ---- Host names ---- */

/* Data of a host name's lookup; libevent calls back exactly once. */
struct lookup {
	weft__ev_address_cb *cb;
	void *data;
	weft_id id, by;
	unsigned epoch;
};

static void finish_lookup(int error, struct addrinfo *found, void *data)
{
	struct lookup lookup = *(struct lookup *)data;
	free(data);
	weft_id id = weft_is_on() && lookup.epoch == weft__hook_epoch ? lookup.id : 0;
	if (id && error)
		weft_fail(WEFT_SYSTEM_ID, id, "no such host");
	else if (id)
		weft_resolve(WEFT_SYSTEM_ID, id);
	if (id) {
		weft_read_later(lookup.by, id);
		weft_hook_record_running(id);
	}
	WEFT__EV_FRAME(id);
	weft_hook_set_called((const void *)lookup.cb);
	lookup.cb(error, found, lookup.data);
}

struct evdns_getaddrinfo_request *weft__evdns_getaddrinfo(struct evdns_base *base, const char *node, const char *service,
    const struct addrinfo *hints, weft__ev_address_cb *cb, void *data)
{
	WEFT__EV_CALL;
	struct lookup *lookup = weft__ev_should_record() ? malloc(sizeof *lookup) : NULL;
	if (!lookup)
		return weft__ev_real.evdns_getaddrinfo(base, node, service, hints, cb, data);
	struct weft_hook_label label = {0};
	weft_id by = weft_hook_thread()->running;
	weft_id id = weft_create_at(by, WEFT_KIND_GETADDRINFO, weft_hook_site(weft__ev_get_here()->caller));
	*lookup = (struct lookup){cb, data, id, by, weft__hook_epoch};
	weft_hook_append(&label, node ? node : "");
	weft_hook_append(&label, service ? ":" : "");
	weft_hook_append(&label, service ? service : "");
	weft_hook_record_label(&label, id);
	weft_await(by, id);
	return weft__ev_real.evdns_getaddrinfo(base, node, service, hints, finish_lookup, lookup);
}
