/* bus.c: calls of methods by sd-bus, with a reply that is waited for or that a handler gets.
 *
 * A call of the latter sort is known by its slot, and given up with the last reference to it.  Which message it is other
 * processes are told by bus, sender and serial, as soon as it has one.  What is served nobody can see: the handlers are in tables
 * of the program's own.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/sd/adapter.h"

enum { SLOTS = 256 };

static void *users[SLOTS];
int weft__sd_answered(sd_bus_message *reply, void *data, sd_bus_error *error, unsigned slot);
WEFT_HOOK_CODE(weft__sd_answered, 3, 256);
static const struct weft_hook_slots slots = {weft__sd_answered_code, users, SLOTS};

/* The call that is being sent. */
static __thread struct {
	const sd_bus_message *message;
	weft_id id;
} sending __attribute__((tls_model("initial-exec")));

static void put_message(struct weft_hook_label *label, const struct weft__sd_copy *copy, sd_bus_message *message)
{
	const char *interface = copy->real.sd_bus_message_get_interface(message);
	const char *member = copy->real.sd_bus_message_get_member(message);
	const char *destination = copy->real.sd_bus_message_get_destination(message);
	weft_hook_put(label, interface ? interface : "");
	weft_hook_put(label, interface ? "." : "");
	weft_hook_put(label, member ? member : "?");
	weft_hook_put(label, destination ? " @ " : "");
	weft_hook_put(label, destination ? destination : "");
}

/* The call's promise, which who runs awaits. */
static void begin(struct weft__sd_thing *call, struct weft__sd_copy *copy, sd_bus_message *message, const void *caller)
{
	call->references = 1;
	call->fd = -1;
	call->is_labelled = true;
	weft_hook_things_begin(&call->thing, WEFT_KIND_REQUEST, caller);
	put_message(&call->label, copy, message);
	weft_hook_say(&call->label, call->id);
	weft_should_resolve(call->id);
	weft_await(call->by, call->id);
	sending.message = message;
	sending.id = call->id;
}

/* "GUID :1.42".  Before a bus is ready, its first message, it would have to be waited for. */
static void tell_message(const struct weft__sd_copy *copy, sd_bus_message *message, uint64_t cookie)
{
	static const char digits[] = "0123456789abcdef";
	const struct weft__sd_calls *real = &copy->real;
	sd_bus *bus = real->sd_bus_message_get_bus(message);
	unsigned char guid[16];
	const char *name = NULL;
	struct weft_hook_label text = {0};
	if (!bus || real->sd_bus_is_ready(bus) <= 0 || real->sd_bus_get_bus_id(bus, guid) < 0 ||
	    real->sd_bus_get_unique_name(bus, &name) < 0)
		return;
	for (unsigned i = 0; i < sizeof guid; i++)
		weft_hook_put(&text, (char[]){digits[guid[i] >> 4], digits[guid[i] & 15], 0});
	weft_hook_put(&text, " ");
	weft_hook_put(&text, name);
	weft_message(sending.id, (uint32_t)cookie, text.text, false);
}

int weft__sd_bus_message_seal(
    struct weft__sd_copy *copy, const void *caller, sd_bus_message *message, uint64_t cookie, uint64_t timeout_us)
{
	int status = copy->real.sd_bus_message_seal(message, cookie, timeout_us);
	if (status >= 0 && sending.id && sending.message == message && weft_is_on())
		tell_message(copy, message, cookie);
	return status;
}

static const char *text_of(const sd_bus_error *error)
{
	return error->message && *error->message ? error->message : error->name;
}

int weft__sd_bus_call(struct weft__sd_copy *copy, const void *caller, sd_bus *bus, sd_bus_message *message, uint64_t timeout_us,
    sd_bus_error *error, sd_bus_message **reply)
{
	if (!message || !weft__sd_takes())
		return copy->real.sd_bus_call(bus, message, timeout_us, error, reply);
	struct weft__sd_thing call = {0};
	begin(&call, copy, message, caller);
	int status = copy->real.sd_bus_call(bus, message, timeout_us, error, reply);
	sending.id = 0;
	if (!weft_is_on())
		return status;
	if (status >= 0)
		weft_resolve(WEFT_SYSTEM_ID, call.id);
	else
		weft_fail(WEFT_SYSTEM_ID, call.id, error && error->name ? text_of(error) : strerrordesc_np(-status));
	weft_read_later(call.by, call.id);
	return status;
}

int weft__sd_bus_call_async(struct weft__sd_copy *copy, const void *caller, sd_bus *bus, sd_bus_slot **slot,
    sd_bus_message *message, void *user, void *data, uint64_t timeout_us)
{
	if (!message || !user || !weft__sd_takes())
		return copy->real.sd_bus_call_async(
		    bus, slot, message, user ? weft_hook_slot(&slots, user) : NULL, data, timeout_us);
	struct weft__sd_thing call = {0}, *thing;
	sd_bus_slot *mine = NULL, **to = slot ? slot : &mine;
	begin(&call, copy, message, caller);
	int status = copy->real.sd_bus_call_async(bus, to, message, weft_hook_slot(&slots, user), data, timeout_us);
	sending.id = 0;
	if (status < 0) {
		weft_fail(WEFT_SYSTEM_ID, call.id, strerrordesc_np(-status));
		weft_read_later(call.by, call.id);
		return status;
	}
	if (!slot) {
		copy->real.sd_bus_slot_set_floating(mine, 1);
		copy->real.sd_bus_slot_unref(mine);
	}
	weft__sd_lock(*to);
	if ((thing = weft__sd_find(*to)) && !thing->id) { /* an earlier recording's */
		weft_hook_things_drop(&weft__sd_things, &thing->thing);
		thing = NULL;
	}
	if (!thing && (thing = weft_hook_things_make(&weft__sd_things, *to))) {
		call.next = thing->next;
		call.key = thing->key;
		*thing = call;
	}
	weft__sd_unlock(*to);
	return status;
}

sd_bus_slot *weft__sd_bus_slot_ref(struct weft__sd_copy *copy, const void *caller, sd_bus_slot *slot)
{
	weft__sd_hold(slot);
	return copy->real.sd_bus_slot_ref(slot);
}

sd_bus_slot *weft__sd_bus_slot_unref(struct weft__sd_copy *copy, const void *caller, sd_bus_slot *slot)
{
	weft__sd_release(slot, "given up");
	return copy->real.sd_bus_slot_unref(slot);
}

/* The handler goes on with the call's story. */
static weft_id is_answered(const struct weft__sd_copy *copy, sd_bus_message *reply)
{
	const sd_bus_slot *slot = copy->real.sd_bus_get_current_slot(copy->real.sd_bus_message_get_bus(reply));
	weft_id id = 0;
	weft__sd_lock(slot);
	struct weft__sd_thing *call = weft__sd_find(slot);
	if (call && call->id) {
		const sd_bus_error *error = copy->real.sd_bus_message_get_error(reply);
		id = call->id;
		if (error && error->name)
			weft_fail(WEFT_SYSTEM_ID, id, text_of(error));
		else
			weft_resolve(WEFT_SYSTEM_ID, id);
		weft_read_later(call->by, id);
		weft_hook_show(id);
	}
	if (call)
		weft_hook_things_drop(&weft__sd_things, &call->thing);
	weft__sd_unlock(slot);
	return id;
}

int weft__sd_answered(sd_bus_message *reply, void *data, sd_bus_error *error, unsigned number)
{
	int (*user)(sd_bus_message *, void *, sd_bus_error *) =
	    (int (*)(sd_bus_message *, void *, sd_bus_error *))__atomic_load_n(&users[number], __ATOMIC_ACQUIRE);
	const struct weft__sd_copy *copy = weft_is_on() && reply ? weft__sd_copy_of(__builtin_return_address(0)) : NULL;
	WEFT_HOOK_FRAME frame = weft_hook_enter(copy ? is_answered(copy, reply) : 0);
	(void)frame;
	weft_hook_calls((const void *)user);
	return user(reply, data, error);
}
