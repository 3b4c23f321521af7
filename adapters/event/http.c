/* http.c: requests of HTTP, asked for and served, and host names.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "adapters/event/adapter.h"

enum { SLOTS = 256 };

static void *served_users[SLOTS], *asked_users[SLOTS];
void weft__ev_served(struct evhttp_request *request, void *data, unsigned slot);
void weft__ev_answered(struct evhttp_request *request, void *data, unsigned slot);
WEFT_HOOK_CODE(weft__ev_served, 2, 256);
WEFT_HOOK_CODE(weft__ev_answered, 2, 256);
static const struct weft_hook_slots served_slots = {weft__ev_served_code, served_users, SLOTS};
static const struct weft_hook_slots asked_slots = {weft__ev_answered_code, asked_users, SLOTS};

static void put_command(struct weft_hook_label *label, int command, const char *uri)
{
	static const char *const names[] = {
	    "GET ", "POST ", "HEAD ", "PUT ", "DELETE ", "OPTIONS ", "TRACE ", "CONNECT ", "PATCH "};
	int bit = command > 0 ? __builtin_ctz((unsigned)command) : 99;
	weft_hook_put(label, bit < (int)(sizeof names / sizeof *names) ? names[bit] : "");
	weft_hook_put_path(label, uri ? uri : "");
}

/* ---- Served ---- */

int weft__evhttp_set_cb(struct evhttp *http, const char *path, weft__ev_request_cb *cb, void *data)
{
	return weft__ev_real.evhttp_set_cb(
	    http, path, cb ? (weft__ev_request_cb *)weft_hook_slot(&served_slots, (void *)cb) : NULL, data);
}

void weft__evhttp_set_gencb(struct evhttp *http, weft__ev_request_cb *cb, void *data)
{
	weft__ev_real.evhttp_set_gencb(http, cb ? (weft__ev_request_cb *)weft_hook_slot(&served_slots, (void *)cb) : NULL, data);
}

void weft__ev_served(struct evhttp_request *request, void *data, unsigned slot)
{
	weft__ev_request_cb *user = (weft__ev_request_cb *)__atomic_load_n(&served_users[slot], __ATOMIC_ACQUIRE);
	weft_id id = 0;
	if (request && weft__ev_takes()) {
		weft_hook_thread();
		weft__ev_lock(request);
		struct weft__ev_thing *thing = weft__ev_find(request);
		if (thing)
			weft__ev_end(thing, WEFT_SYSTEM_ID);
		if ((thing = weft__ev_make(request))) {
			weft__ev_begin(thing, WEFT_KIND_REQUEST, (const char *)(const void *)user + 1);
			put_command(&thing->label, weft__ev_real.evhttp_request_get_command(request),
			    weft__ev_real.evhttp_request_get_uri(request));
			weft__ev_say(thing);
			weft_should_resolve(thing->id);
			id = thing->id;
			weft_hook_show(id);
		}
		weft__ev_unlock(request);
	}
	WEFT__EV_FRAME(id);
	weft_hook_calls((const void *)user);
	user(request, data);
}

static void ends(struct evhttp_request *request)
{
	if (!weft_is_on())
		return;
	weft__ev_lock(request);
	struct weft__ev_thing *thing = weft__ev_find(request);
	if (thing)
		weft__ev_end(thing, weft__hook_thread.running);
	weft__ev_unlock(request);
}

void weft__evhttp_send_reply(struct evhttp_request *request, int code, const char *reason, struct evbuffer *body)
{
	ends(request);
	weft__ev_real.evhttp_send_reply(request, code, reason, body);
}

void weft__evhttp_send_error(struct evhttp_request *request, int error, const char *reason)
{
	ends(request);
	weft__ev_real.evhttp_send_error(request, error, reason);
}

void weft__evhttp_send_reply_end(struct evhttp_request *request)
{
	ends(request);
	weft__ev_real.evhttp_send_reply_end(request);
}

/* ---- Asked for ---- */

struct evhttp_request *weft__evhttp_request_new(weft__ev_request_cb *cb, void *data)
{
	/* libevent makes those that it serves with a callback of its own. */
	bool is_own = weft__ev_is_own(__builtin_return_address(0));
	return weft__ev_real.evhttp_request_new(
	    cb && !is_own ? (weft__ev_request_cb *)weft_hook_slot(&asked_slots, (void *)cb) : cb, data);
}

int weft__evhttp_make_request(struct evhttp_connection *connection, struct evhttp_request *request, int type, const char *uri)
{
	WEFT__EV_CALL;
	if (weft__ev_takes()) {
		weft_hook_thread();
		weft__ev_lock(request);
		struct weft__ev_thing *thing = weft__ev_make(request);
		if (thing) {
			weft__ev_begin(thing, WEFT_KIND_REQUEST, weft__ev_here.caller);
			put_command(&thing->label, type, uri);
			weft__ev_say(thing);
			weft_await(thing->by, thing->id);
		}
		weft__ev_unlock(request);
	}
	return weft__ev_real.evhttp_make_request(connection, request, type, uri);
}

/* Without a request: none was answered; which one it was nobody says. */
void weft__ev_answered(struct evhttp_request *request, void *data, unsigned slot)
{
	weft__ev_request_cb *user = (weft__ev_request_cb *)__atomic_load_n(&asked_users[slot], __ATOMIC_ACQUIRE);
	weft_id id = 0;
	if (request && weft_is_on()) {
		weft__ev_lock(request);
		struct weft__ev_thing *thing = weft__ev_find(request);
		if (thing) {
			id = thing->id;
			weft_id by = thing->by;
			weft__ev_end(thing, WEFT_SYSTEM_ID);
			weft_read_later(by, id);
			weft_hook_show(id);
		}
		weft__ev_unlock(request);
	}
	WEFT__EV_FRAME(id);
	weft_hook_calls((const void *)user);
	user(request, data);
}

/* ---- Host names ---- */

/* libevent calls back once, whatever becomes of the question. */
struct question {
	weft__ev_address_cb *cb;
	void *data;
	weft_id id, by;
	unsigned epoch;
};

static void address_found(int error, struct addrinfo *found, void *data)
{
	struct question question = *(struct question *)data;
	free(data);
	weft_id id = weft_is_on() && question.epoch == weft__hook_epoch ? question.id : 0;
	if (id && error)
		weft_fail(WEFT_SYSTEM_ID, id, "no such host");
	else if (id)
		weft_resolve(WEFT_SYSTEM_ID, id);
	if (id) {
		weft_read_later(question.by, id);
		weft_hook_show(id);
	}
	WEFT__EV_FRAME(id);
	weft_hook_calls((const void *)question.cb);
	question.cb(error, found, question.data);
}

struct evdns_getaddrinfo_request *weft__evdns_getaddrinfo(struct evdns_base *base, const char *node, const char *service,
    const struct addrinfo *hints, weft__ev_address_cb *cb, void *data)
{
	WEFT__EV_CALL;
	struct question *question = weft__ev_takes() ? malloc(sizeof *question) : NULL;
	if (!question)
		return weft__ev_real.evdns_getaddrinfo(base, node, service, hints, cb, data);
	struct weft_hook_label label = {0};
	weft_id by = weft_hook_thread()->running;
	weft_id id = weft_create_at(by, WEFT_KIND_GETADDRINFO, weft_hook_place(weft__ev_here.caller));
	*question = (struct question){cb, data, id, by, weft__hook_epoch};
	weft_hook_put(&label, node ? node : "");
	weft_hook_put(&label, service ? ":" : "");
	weft_hook_put(&label, service ? service : "");
	weft_hook_say(&label, id);
	weft_await(by, id);
	return weft__ev_real.evdns_getaddrinfo(base, node, service, hints, address_found, question);
}
