/* bus.c: records method calls of sd-bus for whose reply the program waits or has a handler.
 *
 * The key of a call with a handler is its sd-bus slot; the call is given up when the last reference to the slot is dropped.  A
 * call's bus, sender and serial are recorded as soon as its message has a serial, so that traces of both ends can be joined.
 * Calls that the program serves are not recorded, because their handlers are in tables of the program.
 * SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/sd/common.h"

enum { SLOT_COUNT = 256 };

static void *users[SLOT_COUNT];
int weft__sd_answered(sd_bus_message *reply, void *data, sd_bus_error *error, unsigned slot);
WEFT_HOOK_CODE(weft__sd_answered, 3, 256);
static const struct weft_hook_slots slots = {weft__sd_answered_code, users, SLOT_COUNT};

/* The method call that is being sent. */
static __thread struct {
	const sd_bus_message *message;
	weft_id id;
} sending __attribute__((tls_model("initial-exec")));

static void append_method(struct weft_hook_label *label, const struct weft__sd_copy *copy, sd_bus_message *message)
{
	const char *interface = copy->real.sd_bus_message_get_interface(message);
	const char *member = copy->real.sd_bus_message_get_member(message);
	const char *destination = copy->real.sd_bus_message_get_destination(message);
	weft_hook_append(label, interface ? interface : "");
	weft_hook_append(label, interface ? "." : "");
	weft_hook_append(label, member ? member : "?");
	weft_hook_append(label, destination ? " @ " : "");
	weft_hook_append(label, destination ? destination : "");
}

/* Creates the method call's promise, which the running promise awaits. */
static void begin_call(struct weft__sd_object *call, struct weft__sd_copy *copy, sd_bus_message *message, const void *caller)
{
	call->references = 1;
	call->fd = -1;
	call->is_labelled = true;
	weft_hook_object_begin(&call->object, WEFT_KIND_REQUEST, caller);
	append_method(&call->label, copy, message);
	weft_hook_record_label(&call->label, call->id);
	weft_should_resolve(call->id);
	weft_await(call->by, call->id);
	sending.message = message;
	sending.id = call->id;
}

/* The recorded text is "GUID :1.42": the bus's id and the connection's name.  The first message to a bus is skipped, because
 * asking for the connection's name would wait for the bus. */
static void record_message(const struct weft__sd_copy *copy, sd_bus_message *message, uint64_t cookie)
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
		weft_hook_append(&text, (char[]){digits[guid[i] >> 4], digits[guid[i] & 15], 0});
	weft_hook_append(&text, " ");
	weft_hook_append(&text, name);
	weft_message(sending.id, (uint32_t)cookie, text.text, false);
}

int weft__sd_bus_message_seal(
    struct weft__sd_copy *copy, const void *caller, sd_bus_message *message, uint64_t cookie, uint64_t timeout_us)
{
	int status = copy->real.sd_bus_message_seal(message, cookie, timeout_us);
	if (status >= 0 && sending.id && sending.message == message && weft_is_on())
		record_message(copy, message, cookie);
	return status;
}

static const char *get_error_text(const sd_bus_error *error)
{
	return error->message && *error->message ? error->message : error->name;
}

int weft__sd_bus_call(struct weft__sd_copy *copy, const void *caller, sd_bus *bus, sd_bus_message *message, uint64_t timeout_us,
    sd_bus_error *error, sd_bus_message **reply)
{
	if (!message || !weft__sd_should_record())
		return copy->real.sd_bus_call(bus, message, timeout_us, error, reply);
	struct weft__sd_object call = {0};
	begin_call(&call, copy, message, caller);
	int status = copy->real.sd_bus_call(bus, message, timeout_us, error, reply);
	sending.id = 0;
	if (!weft_is_on())
		return status;
	if (status >= 0)
		weft_resolve(WEFT_SYSTEM_ID, call.id);
	else
		weft_fail(WEFT_SYSTEM_ID, call.id, error && error->name ? get_error_text(error) : strerrordesc_np(-status));
	weft_read_later(call.by, call.id);
	return status;
}

int weft__sd_bus_call_async(struct weft__sd_copy *copy, const void *caller, sd_bus *bus, sd_bus_slot **slot,
    sd_bus_message *message, void *user, void *data, uint64_t timeout_us)
{
	if (!message || !user || !weft__sd_should_record())
		return copy->real.sd_bus_call_async(
		    bus, slot, message, user ? weft_hook_slot(&slots, user) : NULL, data, timeout_us);
	struct weft__sd_object call = {0}, *object;
	sd_bus_slot *own_slot = NULL, **target = slot ? slot : &own_slot;
	begin_call(&call, copy, message, caller);
	int status = copy->real.sd_bus_call_async(bus, target, message, weft_hook_slot(&slots, user), data, timeout_us);
	sending.id = 0;
	if (status < 0) {
		weft_fail(WEFT_SYSTEM_ID, call.id, strerrordesc_np(-status));
		weft_read_later(call.by, call.id);
		return status;
	}
	if (!slot) {
		copy->real.sd_bus_slot_set_floating(own_slot, 1);
		copy->real.sd_bus_slot_unref(own_slot);
	}
	weft__sd_lock(*target);
	if ((object = weft__sd_find(*target)) && !object->id) { /* of an earlier recording */
		weft_hook_object_remove(&weft__sd_objects, &object->object);
		object = NULL;
	}
	if (!object && (object = weft_hook_object_create(&weft__sd_objects, *target))) {
		call.next = object->next;
		call.key = object->key;
		*object = call;
	}
	weft__sd_unlock(*target);
	return status;
}

sd_bus_slot *weft__sd_bus_slot_ref(struct weft__sd_copy *copy, const void *caller, sd_bus_slot *slot)
{
	weft__sd_add_reference(slot);
	return copy->real.sd_bus_slot_ref(slot);
}

sd_bus_slot *weft__sd_bus_slot_unref(struct weft__sd_copy *copy, const void *caller, sd_bus_slot *slot)
{
	weft__sd_drop_reference(slot, "given up");
	return copy->real.sd_bus_slot_unref(slot);
}

/* Ends the method call, whose promise then runs the handler. */
static weft_id end_call(const struct weft__sd_copy *copy, sd_bus_message *reply)
{
	const sd_bus_slot *slot = copy->real.sd_bus_get_current_slot(copy->real.sd_bus_message_get_bus(reply));
	weft_id id = 0;
	weft__sd_lock(slot);
	struct weft__sd_object *call = weft__sd_find(slot);
	if (call && call->id) {
		const sd_bus_error *error = copy->real.sd_bus_message_get_error(reply);
		id = call->id;
		if (error && error->name)
			weft_fail(WEFT_SYSTEM_ID, id, get_error_text(error));
		else
			weft_resolve(WEFT_SYSTEM_ID, id);
		weft_read_later(call->by, id);
		weft_hook_record_running(id);
	}
	if (call)
		weft_hook_object_remove(&weft__sd_objects, &call->object);
	weft__sd_unlock(slot);
	return id;
}

int weft__sd_answered(sd_bus_message *reply, void *data, sd_bus_error *error, unsigned number)
{
	int (*user)(sd_bus_message *, void *, sd_bus_error *) =
	    (int (*)(sd_bus_message *, void *, sd_bus_error *))__atomic_load_n(&users[number], __ATOMIC_ACQUIRE);
	const struct weft__sd_copy *copy = weft_is_on() && reply ? weft__sd_copy_of(__builtin_return_address(0)) : NULL;
	WEFT_HOOK_FRAME frame = weft_hook_enter_callback(copy ? end_call(copy, reply) : 0);
	(void)frame;
	weft_hook_set_called((const void *)user);
	return user(reply, data, error);
}
