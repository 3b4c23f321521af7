/* ocaml_eio.c: converts events of Eio to promises.
 *
 * If Eio records which fiber ends a wait (for promises, switches, semaphores and mutexes), that fiber ends the wait.  If Eio
 * does not (for full streams, conditions, pools, and operations of the system), the operation is a separate promise that the
 * system ends, so that nothing is guessed.  A fiber that reads a result gets a READ event, which also makes it run; a RUN event
 * before it would hide the reason of the run.  SPDX-License-Identifier: ISC */
#include "trace/ocaml_eio.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"

enum { BLOCK_BYTES = 1 << 16, MAX_TEXT_BYTES = 1024, NAME_BYTES = 48, NO_ID = 0 };

/* The fiber, context or object with an Eio id.  Entities are named by their index plus one; 0 stands for none. */
struct weft__eio_entity {
	int64_t id;        /* id in weft */
	int64_t waits_for; /* of a fiber: the promise for which it waits; 0 if none, or if it waits for the operation below */
	union {
		int64_t asleep_in; /* of a fiber: the promise of the operation in which it sleeps */
		int64_t holder;    /* mutex */
	};
	uint32_t error, span; /* indexes into eio->said, plus one: the error; the newest span of a fiber that has not ended */
	uint32_t within;      /* of a fiber: its context; of a context: the enclosing context */
	uint32_t top;         /* fiber: its innermost context */
	uint32_t acquire;     /* of a fiber: the acquire for which it waits; of a semaphore: the first acquire in its queue */
	/* of a semaphore: the last acquire in its queue; of a fiber: the first fiber of the domain that it created */
	uint32_t last;
	uint8_t what;
	bool is_ended, is_root, is_cancelled, is_reported;
};

enum { UNKNOWN, FIBER, CONTEXT, PROMISE, SEMAPHORE, STREAM, MUTEX };

/* A fiber in the queue of a semaphore.  A fiber that was woken or cancelled stays in the queue until it becomes the first. */
struct weft__eio_acquire {
	int64_t id;
	uint32_t fiber, next;
	bool is_over;
};

struct weft__eio_ring {
	int64_t domain;     /* promise of the domain's thread; 0 if not created yet */
	int64_t guest;      /* weft__eio_set_guest() */
	int64_t got;        /* promise whose result the running fiber has already read */
	struct weft_str in; /* name of the operation in which the last fiber was suspended */
	uint32_t fiber;     /* the fiber that acts on the ring's thread, or 0 */
	uint32_t parent;    /* the fiber that created the domain, until the domain's first fiber starts */
	uint32_t cancelled; /* a fiber that was resumed although its promise is pending, and that has done nothing since */
	bool makes_domain;
};

/* ---- Events ---- */

enum weft__eio_what weft__eio_what(struct weft_str name)
{
	static const char *const names[] = {
#define NAME_OF(UPPER, name, how) name,
	    WEFT__EIO_EVENTS(NAME_OF)
#undef NAME_OF
	};
	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strlen(names[i]) == name.len && memcmp(names[i], name.ptr, name.len) == 0)
			return (enum weft__eio_what)(i + 1);
	return WEFT__EIO_NONE;
}

const char *weft__eio_type_name(enum weft__eio_what what, uint8_t type)
{
	static const char *const contexts[] = {[WEFT__EIO_SWITCH] = "switch",
	    [WEFT__EIO_PROTECT] = "protect",
	    [WEFT__EIO_SUB] = "sub",
	    [WEFT__EIO_ROOT] = "root",
	    [WEFT__EIO_ANY] = "any"};
	static const char *const objects[] = {[WEFT__EIO_PROMISE] = "promise",
	    [WEFT__EIO_SEMAPHORE] = "semaphore",
	    [WEFT__EIO_STREAM] = "stream",
	    [WEFT__EIO_MUTEX] = "mutex"};
	if (what == WEFT__EIO_CREATE_CC)
		return type < sizeof contexts / sizeof contexts[0] ? contexts[type] : NULL;
	return type < sizeof objects / sizeof objects[0] ? objects[type] : NULL;
}

bool weft__eio_decode(struct weft__eio_event *out, enum weft__eio_what what, const struct weft__ocaml_event *ev)
{
	static const uint8_t hows[] = {[WEFT__EIO_NONE] = WEFT__OCAML_UNKNOWN,
#define HOW(UPPER, name, how) [WEFT__EIO_##UPPER] = WEFT__OCAML_##how,
	    WEFT__EIO_EVENTS(HOW)
#undef HOW
	};
	*out = (struct weft__eio_event){.id = ev->value, .what = (uint8_t)what, .is_end = ev->what == WEFT__OCAML_SPAN_END};
	if (hows[what] != ev->what && !(what == WEFT__EIO_SUSPEND_DOMAIN && out->is_end))
		return false;
	if (ev->what != WEFT__OCAML_CUSTOM)
		return what != WEFT__EIO_NONE && (ev->what != WEFT__OCAML_INT || ev->has_value);
	/* Eio encodes numbers in little-endian order on every machine. */
	size_t at = 0;
	if (what != WEFT__EIO_LOG && what != WEFT__EIO_ENTER_SPAN && what != WEFT__EIO_SUSPEND_FIBER) {
		if (ev->size < 8)
			return false;
		out->id = (int64_t)weft_load_u64(ev->bytes);
		at = 8;
	}
	if (what == WEFT__EIO_CREATE_FIBER) {
		out->other = ev->size >= 16 ? (int64_t)weft_load_u64(ev->bytes + 8) : 0;
		return ev->size >= 16;
	}
	if (what == WEFT__EIO_CREATE_CC || what == WEFT__EIO_CREATE_OBJ) {
		out->type = ev->size > 8 ? ev->bytes[8] : 0;
		return ev->size > 8;
	}
	out->text = (struct weft_str){(const char *)ev->bytes + at, (uint32_t)(ev->size - at)};
	return true;
}

static bool str_equals(struct weft_str text, const char *word)
{
	return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

/* Returns false for the exceptions by which Eio says that something is no longer needed. */
static bool is_error(struct weft_str text)
{
	return !str_equals(text, "Stdlib.Exit") && !str_equals(text, "Eio__core__Fiber.Not_first");
}

/* Returns the kind of an operation, by the names that eio_posix, eio_linux and Eio use. */
static uint8_t get_operation_kind(struct weft_str op)
{
	static const struct {
		const char *name;
		uint8_t kind;
	} kinds[] = {{"sleep", WEFT_KIND_TIMER}, {"read", WEFT_KIND_STREAM_READ}, {"readv", WEFT_KIND_STREAM_READ},
	    {"recv_msg", WEFT_KIND_STREAM_READ}, {"read_fixed", WEFT_KIND_STREAM_READ}, {"await_readable", WEFT_KIND_STREAM_READ},
	    {"write", WEFT_KIND_STREAM_WRITE}, {"writev", WEFT_KIND_STREAM_WRITE}, {"send_msg", WEFT_KIND_STREAM_WRITE},
	    {"write_fixed", WEFT_KIND_STREAM_WRITE}, {"await_writable", WEFT_KIND_STREAM_WRITE},
	    {"splice", WEFT_KIND_STREAM_WRITE}, {"accept", WEFT_KIND_ACCEPT}, {"connect", WEFT_KIND_CONNECT},
	    {"shutdown", WEFT_KIND_SHUTDOWN}, {"getaddrinfo", WEFT_KIND_GETADDRINFO}, {"getnameinfo", WEFT_KIND_GETADDRINFO},
	    {"open", WEFT_KIND_FS}, {"openat", WEFT_KIND_FS}, {"openat2", WEFT_KIND_FS}, {"close", WEFT_KIND_FS},
	    {"stat", WEFT_KIND_FS}, {"fstat", WEFT_KIND_FS}, {"fstatat", WEFT_KIND_FS}, {"statx", WEFT_KIND_FS},
	    {"mkdir", WEFT_KIND_FS}, {"mkdirat", WEFT_KIND_FS}, {"unlink", WEFT_KIND_FS}, {"unlinkat", WEFT_KIND_FS},
	    {"rename", WEFT_KIND_FS}, {"renameat", WEFT_KIND_FS}, {"readdir", WEFT_KIND_FS}, {"read_dir", WEFT_KIND_FS},
	    {"readlink", WEFT_KIND_FS}, {"systhread", WEFT_KIND_WORK}};
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (str_equals(op, kinds[i].name))
			return kinds[i].kind;
	return WEFT_KIND_WAIT;
}

/* Returns true for an operation for which other events show what it waits for. */
static bool has_edges(struct weft_str op)
{
	static const char *const names[] = {"", "Promise.await", "Semaphore.acquire", "Mutex.lock", "Switch.await_idle"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (str_equals(op, names[i]))
			return true;
	return false;
}

/* ---- Output ---- */

struct weft_event *weft__eio_put_event(struct weft__eio *eio, uint8_t op, int64_t a, int64_t b)
{
	struct weft_event *out = &eio->out[eio->count];
	/* one event of Eio becomes fewer events than the maximum; the last element takes any excess */
	eio->count += eio->count < WEFT__EIO_MAX_EVENTS - 1;
	*out = (struct weft_event){.time_ns = eio->now_ns, .a = a, .b = b, .site = WEFT_NO_SITE, .stream = eio->stream, .op = op};
	return out;
}

/* Allocates a text.  After a rewind the same texts are allocated again, with the same content. */
static char *allocate_text(struct weft__eio *eio, size_t bytes, bool *is_there)
{
	if (eio->text_used + bytes > BLOCK_BYTES) {
		eio->text_block++;
		eio->text_used = 0;
	}
	while (eio->text_block >= eio->texts.count) {
		char **block = weft_vec_push(&eio->texts);
		if (!block || !(*block = malloc(BLOCK_BYTES))) {
			eio->texts.count -= block != NULL;
			eio->status = WEFT_ENOMEM;
			return NULL;
		}
	}
	char *text = eio->texts.items[eio->text_block] + eio->text_used;
	eio->text_used += bytes;
	const size_t place = eio->text_block * BLOCK_BYTES + eio->text_used;
	*is_there = place <= eio->text_written;
	eio->text_written = *is_there ? eio->text_written : place;
	return text;
}

struct weft_str weft__eio_join_text(struct weft__eio *eio, const char *prefix, struct weft_str text)
{
	/* Eio's own texts are shorter than this limit.  Other texts are cut, because each event gets its own copy of a text. */
	text.len = text.len < MAX_TEXT_BYTES ? text.len : MAX_TEXT_BYTES;
	const size_t before = strlen(prefix), bytes = before + text.len;
	bool is_there = true;
	char *joined = allocate_text(eio, bytes, &is_there);
	if (!joined)
		return text;
	if (!is_there) {
		memcpy(joined, prefix, before);
		if (text.len)
			memcpy(joined + before, text.ptr, text.len);
	}
	return (struct weft_str){joined, (uint32_t)bytes};
}

struct weft_str weft__eio_join_hex(struct weft__eio *eio, struct weft_str name, const unsigned char *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	const size_t shown = size < MAX_TEXT_BYTES ? size : MAX_TEXT_BYTES, length = name.len + 2 + 2 * shown;
	bool is_there = true;
	char *joined = allocate_text(eio, length, &is_there);
	if (!joined)
		return name;
	if (!is_there) {
		memcpy(joined, name.ptr, name.len);
		memcpy(joined + name.len, ": ", 2);
		for (size_t i = 0; i < shown; i++) {
			joined[name.len + 2 + 2 * i] = digits[bytes[i] >> 4];
			joined[name.len + 3 + 2 * i] = digits[bytes[i] & 15];
		}
	}
	return (struct weft_str){joined, (uint32_t)length};
}

/* Formats "fiber 5". snprintf() would take a tenth of the time of opening a trace; `what` must be short. */
static struct weft_str format_numbered(struct weft__eio *eio, const char *what, int64_t number)
{
	char text[NAME_BYTES];
	size_t at = sizeof text;
	uint32_t left = (uint32_t)number; /* the number has 32 bits, as in make_id() */
	do
		text[--at] = (char)('0' + left % 10);
	while ((left /= 10) > 0);
	text[--at] = ' ';
	at -= strlen(what);
	memcpy(text + at, what, strlen(what));
	return weft__eio_join_text(eio, "", (struct weft_str){text + at, (uint32_t)(sizeof text - at)});
}

static void put_text(struct weft__eio *eio, uint8_t op, int64_t a, struct weft_str text)
{
	weft__eio_put_event(eio, op, a, 0)->text = text;
}

static void put_create(struct weft__eio *eio, int64_t by, int64_t id, uint8_t kind, struct weft_str label)
{
	weft__eio_put_event(eio, WEFT_OP_CREATE, by, id)->kind = kind;
	if (label.len)
		put_text(eio, WEFT_OP_LABEL, id, label);
}

/* ---- Entities ---- */

static int64_t make_id(int64_t number)
{
	/* Eio truncates some of its numbers to 32 bits. */
	return (int64_t)(uint32_t)number + 1;
}

/* Returns the index plus one of an entity, and creates the entity if it is unknown; 0 when out of memory. */
static uint32_t get_index(struct weft__eio *eio, int64_t number)
{
	const int64_t id = make_id(number);
	const uint32_t at = weft_idmap_get(&eio->numbers, id);
	if (at != WEFT_IDMAP_NONE)
		return at + 1;
	const size_t count = eio->entities.count;
	struct weft__eio_entity *entity = count < UINT32_MAX - 2 ? weft_vec_push(&eio->entities) : NULL;
	if (!entity || !weft_idmap_set(&eio->numbers, id, (uint32_t)count)) {
		eio->entities.count = count;
		eio->status = WEFT_ENOMEM;
		return 0;
	}
	*entity = (struct weft__eio_entity){.id = id};
	return (uint32_t)count + 1;
}

/* Returns a text by its index; texts are stored separately because few entities have one. */
static struct weft_str get_text(const struct weft__eio *eio, uint32_t index)
{
	return index ? eio->said.items[index - 1] : (struct weft_str){"", 0};
}

static void set_text(struct weft__eio *eio, uint32_t *index, struct weft_str text)
{
	struct weft_str *said = *index ? &eio->said.items[*index - 1] : NULL;
	if (!said && text.len && eio->said.count < UINT32_MAX) {
		said = weft_vec_push(&eio->said);
		*index = (uint32_t)eio->said.count;
		eio->status = said ? eio->status : WEFT_ENOMEM;
	}
	if (said)
		*said = text;
}

static struct weft__eio_entity *get_entity(struct weft__eio *eio, uint32_t index)
{
	return &eio->entities.items[index - 1];
}

static struct weft__eio_ring *get_ring(struct weft__eio *eio)
{
	return &eio->rings[eio->stream];
}

int64_t weft__eio_domain(struct weft__eio *eio)
{
	if (!get_ring(eio)->domain)
		weft__eio_domain_begins(eio, -1);
	return get_ring(eio)->domain;
}

int64_t weft__eio_actor(struct weft__eio *eio)
{
	const struct weft__eio_ring *ring = get_ring(eio);
	if (ring->guest)
		return ring->guest;
	return ring->fiber ? get_entity(eio, ring->fiber)->id : weft__eio_domain(eio);
}

void weft__eio_set_guest(struct weft__eio *eio, int64_t id)
{
	get_ring(eio)->guest = id;
}

bool weft__eio_is_in_fiber(struct weft__eio *eio)
{
	return get_ring(eio)->fiber != 0;
}

/* Ends an entity only once: for fork_promise, both `put` and `exit_fiber` end the promise. */
static void put_end(struct weft__eio *eio, int64_t by, struct weft__eio_entity *t, uint8_t op, struct weft_str text)
{
	if (t->is_ended)
		return;
	t->is_ended = true;
	weft__eio_put_event(eio, op, by, t->id)->text = text;
}

static void put_resolve(struct weft__eio *eio, int64_t by, struct weft__eio_entity *t)
{
	const struct weft_str error = get_text(eio, t->error);
	put_end(eio, by, t, error.len ? WEFT_OP_FAIL : WEFT_OP_RESOLVE, error);
}

/* ---- Domains ---- */

void weft__eio_domain_begins(struct weft__eio *eio, int64_t parent)
{
	struct weft__eio_ring *ring = get_ring(eio);
	const uint32_t by = parent >= 0 ? get_index(eio, parent) : 0;
	*ring = (struct weft__eio_ring){.domain = eio->next_id++, .parent = by};
	put_create(
	    eio, by ? get_entity(eio, by)->id : WEFT_SYSTEM_ID, ring->domain, WEFT_KIND_THREAD, (struct weft_str){"domain", 6});
}

void weft__eio_domain_ends(struct weft__eio *eio)
{
	struct weft__eio_ring *ring = get_ring(eio);
	if (ring->domain) {
		weft__eio_put_event(eio, WEFT_OP_RESOLVE, ring->domain, ring->domain);
		weft__eio_put_event(eio, WEFT_OP_RUN, WEFT_SYSTEM_ID, 0);
	}
	*ring = (struct weft__eio_ring){0};
}

/* ---- Fibers ---- */

static void create_fiber(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	struct weft__eio_ring *ring = get_ring(eio);
	const uint32_t fiber = get_index(eio, ev->id), context = get_index(eio, ev->other);
	if (!fiber || !context)
		return;
	struct weft__eio_entity *t = get_entity(eio, fiber);
	*t = (struct weft__eio_entity){.id = t->id, .what = FIBER, .within = context};
	const int64_t around = get_entity(eio, context)->id;
	put_create(eio, weft__eio_actor(eio), t->id, WEFT_KIND_COROUTINE, format_numbered(eio, "fiber", ev->id));
	weft__eio_put_event(eio, WEFT_OP_AWAIT, around, t->id); /* a context lasts until its fibers end */
	if (!ring->fiber)                                       /* the first fiber of a domain, which should end */
		weft__eio_put_event(eio, WEFT_OP_SHOULD_RESOLVE, t->id, 0);
	if (ring->parent) {
		struct weft__eio_entity *parent = get_entity(eio, ring->parent);
		parent->last = fiber;
		weft__eio_put_event(eio, WEFT_OP_AWAIT, parent->id, t->id);
		ring->parent = 0;
	}
}

/* Cancels an acquire of a semaphore that did not succeed. */
static void abandon_acquire(struct weft__eio *eio, struct weft__eio_entity *fiber)
{
	struct weft__eio_acquire *acquire = &eio->acquires.items[fiber->acquire - 1];
	if (!acquire->is_over) {
		acquire->is_over = true;
		weft__eio_put_event(eio, WEFT_OP_CANCEL, WEFT_SYSTEM_ID, acquire->id);
	}
	fiber->acquire = 0;
}

static bool is_cancelled(struct weft__eio *eio, const struct weft__eio_entity *fiber)
{
	const uint32_t context = fiber->top ? fiber->top : fiber->within;
	return context && get_entity(eio, context)->is_cancelled;
}

/* Returns the weft id of the promise that the newly running fiber reads first, or 0. */
static int64_t find_first_read(struct weft__eio *eio, const struct weft__eio_entity *fiber, const struct weft__eio_event *get)
{
	const uint32_t at = get ? weft_idmap_get(&eio->numbers, make_id(get->id)) : WEFT_IDMAP_NONE;
	const struct weft__eio_entity *t = at == WEFT_IDMAP_NONE ? NULL : &eio->entities.items[at];
	if (!t || t->what == STREAM || t->what == UNKNOWN || t->what == MUTEX)
		return NO_ID;
	if (t->what == SEMAPHORE)
		return fiber->acquire ? eio->acquires.items[fiber->acquire - 1].id : NO_ID;
	return t->id;
}

static void run_fiber(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	struct weft__eio_ring *ring = get_ring(eio);
	const uint32_t fiber = get_index(eio, ev->id);
	struct weft__eio_event next;
	if (!fiber)
		return;
	struct weft__eio_entity *t = get_entity(eio, fiber);
	t->what = FIBER;
	const bool will_get = eio->peek(eio->peek_ctx, 0, &next) && next.what == WEFT__EIO_GET;
	const int64_t gets = find_first_read(eio, t, will_get ? &next : NULL);
	const bool has_lock = will_get && make_id(next.id) == t->waits_for;
	ring->fiber = fiber;
	ring->parent = 0;
	ring->makes_domain = false;
	ring->in = (struct weft_str){0};
	ring->got = gets;
	ring->cancelled = 0;
	if (!gets && t->acquire) {
		abandon_acquire(eio, t);
		ring->cancelled = fiber;
	}
	if (!gets && t->waits_for && !has_lock) {
		weft__eio_put_event(eio, WEFT_OP_AWAITS_NO_MORE, t->id, t->waits_for);
		t->waits_for = NO_ID;
		ring->cancelled = fiber;
	}
	if (t->asleep_in) {
		if (is_cancelled(eio, t))
			ring->cancelled = fiber;
		weft__eio_put_event(eio, ring->cancelled ? WEFT_OP_CANCEL : WEFT_OP_RESOLVE, WEFT_SYSTEM_ID, t->asleep_in);
		weft__eio_put_event(eio, WEFT_OP_READ, t->id, t->asleep_in);
		t->asleep_in = NO_ID;
	} else if (t->last) {
		weft__eio_put_event(eio, WEFT_OP_READ, t->id, get_entity(eio, t->last)->id);
		t->last = 0;
	} else if (gets) {
		weft__eio_put_event(eio, WEFT_OP_READ, t->id, gets);
	} else
		weft__eio_put_event(eio, WEFT_OP_RUN, t->id, 0);
}

static void exit_fiber(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	struct weft__eio_ring *ring = get_ring(eio);
	const uint32_t fiber = get_index(eio, ev->id);
	if (!fiber)
		return;
	struct weft__eio_entity *t = get_entity(eio, fiber), *context = t->within ? get_entity(eio, t->within) : NULL;
	if (ring->cancelled == fiber && context && context->is_cancelled)
		put_end(eio, context->id, t, WEFT_OP_CANCEL, (struct weft_str){0});
	else
		put_resolve(eio, t->id, t);
	if (context) {
		weft__eio_put_event(eio, WEFT_OP_READ_LATER, context->id, t->id);
		if (context->is_root) /* no other event ends a root context */
			put_resolve(eio, t->id, context);
	}
	ring->fiber = ring->cancelled = 0;
	weft__eio_put_event(eio, WEFT_OP_RUN, weft__eio_domain(eio), 0);
}

static void suspend_fiber(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	struct weft__eio_ring *ring = get_ring(eio);
	ring->in = ev->text;
	/* the new domain creates the promise for which this fiber waits */
	ring->makes_domain = str_equals(ev->text, "run-domain");
	if (!ring->fiber || ring->makes_domain || (eio->omits_wakers ? ev->text.len == 0 : has_edges(ev->text)))
		return;
	struct weft__eio_entity *t = get_entity(eio, ring->fiber);
	t->asleep_in = eio->next_id++;
	put_create(eio, t->id, t->asleep_in, get_operation_kind(ev->text), ev->text);
	weft__eio_put_event(eio, WEFT_OP_AWAIT, t->id, t->asleep_in);
}

/* ---- Contexts ---- */

static void create_context(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	const struct weft__eio_ring *ring = get_ring(eio);
	const uint32_t context = get_index(eio, ev->id);
	if (!context)
		return;
	struct weft__eio_entity *t = get_entity(eio, context);
	*t = (struct weft__eio_entity){.id = t->id, .what = CONTEXT, .is_root = ev->type == WEFT__EIO_ROOT};
	const char *name = ev->type == WEFT__EIO_SWITCH ? NULL : weft__eio_type_name(WEFT__EIO_CREATE_CC, ev->type);
	put_create(eio, weft__eio_actor(eio), t->id, WEFT_KIND_SWITCH,
	    name ? (struct weft_str){name, (uint32_t)strlen(name)} : (struct weft_str){0});
	if (!ring->fiber)
		return;
	struct weft__eio_entity *fiber = get_entity(eio, ring->fiber);
	t->within = fiber->top;
	fiber->top = context;
}

static void exit_context(struct weft__eio *eio)
{
	const struct weft__eio_ring *ring = get_ring(eio);
	struct weft__eio_entity *fiber = ring->fiber ? get_entity(eio, ring->fiber) : NULL;
	if (!fiber || !fiber->top)
		return;
	struct weft__eio_entity *t = get_entity(eio, fiber->top);
	fiber->top = t->within;
	put_resolve(eio, fiber->id, t);
	if (eio->omits_wakers) /* otherwise, a `get` shows which fiber receives the error */
		weft__eio_put_event(eio, WEFT_OP_READ_LATER, fiber->id, t->id);
}

/* Returns true if the fiber that cancelled its context ends next, so that the error is its own. */
static bool ends_next(struct weft__eio *eio, const struct weft__eio_entity *fiber)
{
	enum { CONTEXTS = 8 };
	struct weft__eio_event next;
	for (unsigned i = 0; i < CONTEXTS && eio->peek(eio->peek_ctx, i, &next); i++) {
		if (next.what == WEFT__EIO_EXIT_FIBER)
			return make_id(next.id) == fiber->id;
		if (next.what != WEFT__EIO_ERROR && next.what != WEFT__EIO_PUT)
			break;
	}
	return false;
}

static void cancel_context(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	const struct weft__eio_ring *ring = get_ring(eio);
	const uint32_t context = get_index(eio, ev->id);
	if (!context)
		return;
	struct weft__eio_entity *t = get_entity(eio, context), *fiber = ring->fiber ? get_entity(eio, ring->fiber) : NULL;
	t->is_cancelled = true;
	if (is_error(ev->text)) {
		set_text(eio, &t->error, ev->text);
		if (fiber && fiber->within == context && ends_next(eio, fiber))
			set_text(eio, &fiber->error, ev->text);
	}
	put_text(eio, WEFT_OP_NOTE, t->id, weft__eio_join_text(eio, "cancelled: ", ev->text));
}

/* ---- Objects ---- */

static void create_object(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	struct weft__eio_ring *ring = get_ring(eio);
	const uint32_t object = get_index(eio, ev->id);
	if (!object)
		return;
	struct weft__eio_entity *t = get_entity(eio, object);
	*t = (struct weft__eio_entity){.id = t->id};
	const int64_t by = weft__eio_actor(eio);
	switch (ev->type) {
	case WEFT__EIO_PROMISE:
		t->what = PROMISE;
		/* The promise only serves to cancel a domain; most of these promises are never used. */
		if (ring->makes_domain)
			put_create(eio, by, t->id, WEFT_KIND_CONDITION, (struct weft_str){"cancellation of the domain", 26});
		else
			put_create(eio, by, t->id, WEFT_KIND_PROMISE, (struct weft_str){0});
		ring->makes_domain = false;
		break;
	case WEFT__EIO_MUTEX:
		t->what = MUTEX;
		put_create(eio, by, t->id, WEFT_KIND_LOCK, format_numbered(eio, "mutex", ev->id));
		break;
	case WEFT__EIO_STREAM:
		t->what = STREAM;
		put_create(eio, by, t->id, WEFT_KIND_QUEUE, format_numbered(eio, "stream", ev->id));
		break;
	case WEFT__EIO_SEMAPHORE: t->what = SEMAPHORE; break;
	default: break;
	}
}

/* Infers the type of an entity that was created before the start of the ring. */
static void infer_type(struct weft__eio *eio, struct weft__eio_entity *t)
{
	struct weft__eio_event next;
	if (t->what != UNKNOWN)
		return;
	if (str_equals(get_ring(eio)->in, "Semaphore.acquire"))
		t->what = SEMAPHORE;
	else if (eio->peek(eio->peek_ctx, 0, &next) && next.what == WEFT__EIO_SUSPEND_FIBER &&
		 str_equals(next.text, "Mutex.lock"))
		t->what = MUTEX;
	else
		t->what = PROMISE;
}

/* Appends an acquire to the queue of a semaphore, and returns the promise of the acquire. */
static int64_t join_queue(struct weft__eio *eio, uint32_t semaphore, int64_t number)
{
	struct weft__eio_acquire *acquire = weft_vec_push(&eio->acquires);
	if (!acquire) {
		eio->status = WEFT_ENOMEM;
		return NO_ID;
	}
	const uint32_t index = (uint32_t)eio->acquires.count;
	struct weft__eio_entity *s = get_entity(eio, semaphore), *fiber = get_entity(eio, get_ring(eio)->fiber);
	*acquire = (struct weft__eio_acquire){.id = eio->next_id++, .fiber = get_ring(eio)->fiber};
	if (s->acquire)
		eio->acquires.items[s->last - 1].next = index;
	else
		s->acquire = index;
	s->last = index;
	fiber->acquire = index;
	put_create(eio, fiber->id, acquire->id, WEFT_KIND_SEMAPHORE, format_numbered(eio, "semaphore", number));
	return acquire->id;
}

static void begin_wait(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	const struct weft__eio_ring *ring = get_ring(eio);
	const uint32_t object = get_index(eio, ev->id);
	if (!object || !ring->fiber)
		return;
	struct weft__eio_entity *t = get_entity(eio, object), *fiber = get_entity(eio, ring->fiber);
	infer_type(eio, t);
	if (t->what == STREAM)
		return;
	const int64_t waits_for = t->what == SEMAPHORE ? join_queue(eio, object, ev->id) : t->id;
	if (!waits_for)
		return;
	fiber->waits_for = waits_for;
	weft__eio_put_event(eio, WEFT_OP_AWAIT, fiber->id, waits_for);
}

static void handle_get(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	struct weft__eio_ring *ring = get_ring(eio);
	const uint32_t object = get_index(eio, ev->id);
	if (!object || !ring->fiber)
		return;
	struct weft__eio_entity *t = get_entity(eio, object), *fiber = get_entity(eio, ring->fiber);
	const int64_t acquire = t->what == SEMAPHORE && fiber->acquire ? eio->acquires.items[fiber->acquire - 1].id : NO_ID;
	const int64_t what = acquire ? acquire : t->id;
	const bool is_read = ring->got && ring->got == what;
	ring->got = NO_ID;
	if (t->what == MUTEX) {
		if (fiber->waits_for == t->id)
			weft__eio_put_event(eio, WEFT_OP_AWAITS_NO_MORE, fiber->id, t->id);
		if (t->holder)
			weft__eio_put_event(eio, WEFT_OP_RELEASE, t->holder, t->id);
		t->holder = fiber->id;
		weft__eio_put_event(eio, WEFT_OP_HOLD, fiber->id, t->id);
	} else if (!is_read && (acquire || t->what == PROMISE || t->what == FIBER || t->what == CONTEXT))
		weft__eio_put_event(eio, WEFT_OP_READ_LATER, fiber->id, what);
	fiber->waits_for = NO_ID;
	if (acquire)
		fiber->acquire = 0;
}

static void handle_put(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	const uint32_t object = get_index(eio, ev->id);
	if (!object)
		return;
	const int64_t by = get_ring(eio)->fiber ? get_entity(eio, get_ring(eio)->fiber)->id : WEFT_SYSTEM_ID;
	struct weft__eio_entity *t = get_entity(eio, object);
	if (t->what == MUTEX) {
		if (t->holder)
			weft__eio_put_event(eio, WEFT_OP_RELEASE, t->holder, t->id);
		t->holder = NO_ID;
	} else if (t->what == SEMAPHORE) {
		while (t->acquire && eio->acquires.items[t->acquire - 1].is_over)
			t->acquire = eio->acquires.items[t->acquire - 1].next;
		if (!t->acquire)
			return;
		struct weft__eio_acquire *acquire = &eio->acquires.items[t->acquire - 1];
		acquire->is_over = true;
		weft__eio_put_event(eio, WEFT_OP_RESOLVE, by, acquire->id);
		t->acquire = acquire->next;
	} else if (t->what != STREAM && t->what != UNKNOWN)
		put_resolve(eio, by, t);
}

static void handle_name(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	const uint32_t object = get_index(eio, ev->id);
	if (object && get_entity(eio, object)->what != SEMAPHORE && get_entity(eio, object)->what != UNKNOWN)
		put_text(eio, WEFT_OP_LABEL, get_entity(eio, object)->id, ev->text);
}

/* Converts a named span to notes.  Other fibers run during a span, so spans are not shown as nested. */
static void handle_span(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	const bool is_begin = ev->what == WEFT__EIO_ENTER_SPAN;
	struct weft__eio_entity *fiber = get_ring(eio)->fiber ? get_entity(eio, get_ring(eio)->fiber) : NULL;
	const struct weft_str name = is_begin ? ev->text : get_text(eio, fiber ? fiber->span : 0);
	const char *prefix = is_begin ? "begins " : name.len ? "ends " : "ends what it began";
	put_text(eio, WEFT_OP_NOTE, weft__eio_actor(eio), weft__eio_join_text(eio, prefix, name));
	if (fiber)
		set_text(eio, &fiber->span, is_begin ? ev->text : (struct weft_str){"", 0});
}

void weft__eio_convert(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	struct weft__eio_ring *ring = get_ring(eio);
	(void)weft__eio_domain(eio);
	switch ((enum weft__eio_what)ev->what) {
	case WEFT__EIO_CREATE_FIBER: create_fiber(eio, ev); break;
	case WEFT__EIO_CREATE_CC: create_context(eio, ev); break;
	case WEFT__EIO_CREATE_OBJ: create_object(eio, ev); break;
	case WEFT__EIO_ERROR: cancel_context(eio, ev); break;
	case WEFT__EIO_NAME: handle_name(eio, ev); break;
	case WEFT__EIO_LOG: put_text(eio, WEFT_OP_NOTE, weft__eio_actor(eio), ev->text); break;
	case WEFT__EIO_ENTER_SPAN:
	case WEFT__EIO_EXIT_SPAN: handle_span(eio, ev); break;
	case WEFT__EIO_SUSPEND_FIBER: suspend_fiber(eio, ev); break;
	case WEFT__EIO_EXIT_CC: exit_context(eio); break;
	case WEFT__EIO_FIBER: run_fiber(eio, ev); return;
	case WEFT__EIO_EXIT_FIBER: exit_fiber(eio, ev); break;
	case WEFT__EIO_TRY_GET: begin_wait(eio, ev); break;
	case WEFT__EIO_GET: handle_get(eio, ev); break;
	case WEFT__EIO_PUT: handle_put(eio, ev); break;
	case WEFT__EIO_DOMAIN_SPAWN: break; /* weft__eio_domain_begins() handles it */
	case WEFT__EIO_SUSPEND_DOMAIN:
		if (ev->is_end) {
			weft__eio_put_event(eio, WEFT_OP_RESUME, ring->domain, 0);
		} else {
			ring->fiber = 0; /* until the end of the suspension, events belong to the thread */
			weft__eio_put_event(eio, WEFT_OP_IDLE, 0, 0);
		}
		break;
	case WEFT__EIO_NONE: break;
	}
	ring->cancelled = 0;
}

bool weft__eio_put_pending_wait(struct weft__eio *eio)
{
	while (eio->reported_count < eio->entities.count) {
		const struct weft__eio_entity *t = &eio->entities.items[eio->reported_count++];
		const int64_t waits_for = t->asleep_in ? t->asleep_in : t->waits_for;
		if (t->what != FIBER || t->is_ended || !waits_for)
			continue;
		weft__eio_put_event(eio, WEFT_OP_STILL_AWAITS, t->id, waits_for);
		if (t->within)
			weft__eio_put_event(eio, WEFT_OP_STILL_AWAITS, get_entity(eio, t->within)->id, t->id);
		return true;
	}
	return false;
}

/* ---- State ---- */

int weft__eio_init(struct weft__eio *eio, size_t rings, uint32_t most)
{
	/* The first id is a digit followed by zeros: it is easy to distinguish from Eio's numbers, and near enough that id
	 * tables have no large holes. */
	int64_t step = 10000, first;
	while (step <= ((int64_t)most + 1) / 10)
		step *= 10;
	first = ((int64_t)most + 1) / step * step + step;
	*eio = (struct weft__eio){.first_id = first, .next_id = first, .ring_count = rings};
	eio->rings = calloc(rings ? rings : 1, sizeof *eio->rings);
	return eio->rings ? WEFT_OK : WEFT_ENOMEM;
}

void weft__eio_clear(struct weft__eio *eio)
{
	weft_idmap_finish(&eio->numbers);
	eio->numbers = (struct weft_idmap){0};
	weft_vec_free(&eio->entities);
	weft_vec_free(&eio->acquires);
	weft_vec_free(&eio->said);
	eio->reported_count = 0;
}

void weft__eio_rewind(struct weft__eio *eio)
{
	weft__eio_clear(eio);
	memset(eio->rings, 0, eio->ring_count * sizeof *eio->rings);
	eio->text_block = eio->text_used = 0;
	eio->next_id = eio->first_id;
	eio->status = WEFT_OK;
}

void weft__eio_finish(struct weft__eio *eio)
{
	weft__eio_clear(eio);
	for (size_t i = 0; i < eio->texts.count; i++)
		free(eio->texts.items[i]);
	weft_vec_free(&eio->texts);
	free(eio->rings);
}
