/* ocaml_eio.c: makes weft's events of Eio's.
 *
 * Where Eio says who ends a wait (promises, switches, semaphores, mutexes), that is who ends it.  Where it does not (streams
 * without room, conditions, pools, and whatever the system does), the operation is a promise of its own, which the system ends:
 * nothing is guessed.  Of what reads something the trace says that it runs, and why; it would hide the reason to say before that
 * it runs. SPDX-License-Identifier: ISC */
#include "trace/ocaml_eio.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"

enum { BLOCK = 1 << 16, TEXT = 1024, NAME = 48, NOBODY = 0 };

/* What an id of Eio's is.  Things are named by their index plus one; 0: none. */
struct weft__eio_thing {
	int64_t id;        /* weft's */
	int64_t waits_for; /* fiber: the promise that it waits for; 0: none, or the operation below */
	union {
		int64_t asleep_in; /* fiber: the promise of an operation */
		int64_t holder;    /* mutex */
	};
	uint32_t error, span; /* among eio->said, plus one; span, of a fiber: what it began last */
	uint32_t within;      /* fiber: the context it is of; context: the one around it */
	uint32_t top;         /* fiber: its innermost context */
	uint32_t turn;        /* fiber: the turn that it waits for; semaphore: the first of them */
	uint32_t last;        /* semaphore: the last turn; fiber: the first fiber of the domain that it has made */
	uint8_t what;
	bool is_ended, is_root, is_cancelled, is_told;
};

enum { UNKNOWN, FIBER, CONTEXT, PROMISE, SEMAPHORE, STREAM, MUTEX };

/* One that waits for a semaphore.  Who has been woken or cancelled stays in the list until its turn comes. */
struct weft__eio_turn {
	int64_t id;
	uint32_t fiber, next;
	bool is_over;
};

struct weft__eio_ring {
	int64_t domain;     /* the promise of the OS thread; 0: not made yet */
	int64_t got;        /* what has been read already by the fiber that runs */
	struct weft_str in; /* the operation that the last fiber was suspended in */
	uint32_t fiber;     /* that acts, or 0 */
	uint32_t parent;    /* made the domain, whose first fiber is still to come */
	uint32_t cancelled; /* the fiber that was run though what it waits for has not come, and has done nothing since */
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
	/* What Eio encodes is little-endian on every machine. */
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

static bool is(struct weft_str text, const char *word)
{
	return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

/* Eio's ways to say that something is no longer needed. */
static bool is_error(struct weft_str text)
{
	return !is(text, "Stdlib.Exit") && !is(text, "Eio__core__Fiber.Not_first");
}

/* What an operation is, by the names that eio_posix, eio_linux and Eio itself give it. */
static uint8_t kind_of(struct weft_str op)
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
		if (is(op, kinds[i].name))
			return kinds[i].kind;
	return WEFT_KIND_WAIT;
}

/* Operations with edges of their own, which say what they wait for. */
static bool has_edges(struct weft_str op)
{
	static const char *const names[] = {"", "Promise.await", "Semaphore.acquire", "Mutex.lock", "Switch.await_idle"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (is(op, names[i]))
			return true;
	return false;
}

/* ---- What is put out ---- */

struct weft_event *weft__eio_put(struct weft__eio *eio, uint8_t op, int64_t a, int64_t b)
{
	struct weft_event *out = &eio->out[eio->count];
	eio->count += eio->count < WEFT__EIO_MOST - 1; /* none becomes more; the last place is for none */
	*out = (struct weft_event){.time_ns = eio->now_ns, .a = a, .b = b, .site = WEFT_NO_SITE, .stream = eio->stream, .op = op};
	return out;
}

/* Room for a text.  After a rewind the same texts come again, and are there already. */
static char *room_for(struct weft__eio *eio, size_t bytes, bool *is_there)
{
	if (eio->text_used + bytes > BLOCK) {
		eio->text_block++;
		eio->text_used = 0;
	}
	while (eio->text_block >= eio->texts.count) {
		char **block = weft_vec_push(&eio->texts);
		if (!block || !(*block = malloc(BLOCK))) {
			eio->texts.count -= block != NULL;
			eio->status = WEFT_ENOMEM;
			return NULL;
		}
	}
	char *text = eio->texts.items[eio->text_block] + eio->text_used;
	eio->text_used += bytes;
	const size_t place = eio->text_block * BLOCK + eio->text_used;
	*is_there = place <= eio->text_written;
	eio->text_written = *is_there ? eio->text_written : place;
	return text;
}

struct weft_str weft__eio_text(struct weft__eio *eio, const char *prefix, struct weft_str text)
{
	/* Eio's own texts are shorter.  Where one text may be named by many events, each has a copy here. */
	text.len = text.len < TEXT ? text.len : TEXT;
	const size_t before = strlen(prefix), bytes = before + text.len;
	bool is_there = true;
	char *joined = room_for(eio, bytes, &is_there);
	if (!joined)
		return text;
	if (!is_there) {
		memcpy(joined, prefix, before);
		if (text.len)
			memcpy(joined + before, text.ptr, text.len);
	}
	return (struct weft_str){joined, (uint32_t)bytes};
}

/* "fiber 5".  As by snprintf(), which would be a tenth of the time that opening takes; `what` is short. */
static struct weft_str numbered(struct weft__eio *eio, const char *what, int64_t number)
{
	char text[NAME];
	size_t at = sizeof text;
	uint32_t left = (uint32_t)number; /* as id_of() has it */
	do
		text[--at] = (char)('0' + left % 10);
	while ((left /= 10) > 0);
	text[--at] = ' ';
	at -= strlen(what);
	memcpy(text + at, what, strlen(what));
	return weft__eio_text(eio, "", (struct weft_str){text + at, (uint32_t)(sizeof text - at)});
}

static void put_text(struct weft__eio *eio, uint8_t op, int64_t a, struct weft_str text)
{
	weft__eio_put(eio, op, a, 0)->text = text;
}

static void create(struct weft__eio *eio, int64_t by, int64_t id, uint8_t kind, struct weft_str label)
{
	weft__eio_put(eio, WEFT_OP_CREATE, by, id)->kind = kind;
	if (label.len)
		put_text(eio, WEFT_OP_LABEL, id, label);
}

/* ---- Things ---- */

static int64_t id_of(int64_t number)
{
	/* Eio casts some of its numbers to 32 bits. */
	return (int64_t)(uint32_t)number + 1;
}

/* The index plus one of a thing, which is made if nothing was heard of it; 0: out of memory. */
static uint32_t find(struct weft__eio *eio, int64_t number)
{
	const int64_t id = id_of(number);
	const uint32_t at = weft_idmap_get(&eio->numbers, id);
	if (at != WEFT_IDMAP_NONE)
		return at + 1;
	const size_t count = eio->things.count;
	struct weft__eio_thing *thing = count < UINT32_MAX - 2 ? weft_vec_push(&eio->things) : NULL;
	if (!thing || !weft_idmap_set(&eio->numbers, id, (uint32_t)count)) {
		eio->things.count = count;
		eio->status = WEFT_ENOMEM;
		return 0;
	}
	*thing = (struct weft__eio_thing){.id = id};
	return (uint32_t)count + 1;
}

/* Few things have a text, so none has room for one. */
static struct weft_str text_at(const struct weft__eio *eio, uint32_t index)
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

static struct weft__eio_thing *thing(struct weft__eio *eio, uint32_t index)
{
	return &eio->things.items[index - 1];
}

static struct weft__eio_ring *ring_of(struct weft__eio *eio)
{
	return &eio->rings[eio->stream];
}

int64_t weft__eio_domain(struct weft__eio *eio)
{
	if (!ring_of(eio)->domain)
		weft__eio_domain_begins(eio, -1);
	return ring_of(eio)->domain;
}

int64_t weft__eio_actor(struct weft__eio *eio)
{
	const struct weft__eio_ring *ring = ring_of(eio);
	return ring->fiber ? thing(eio, ring->fiber)->id : weft__eio_domain(eio);
}

/* Ends what did not end before: of fork_promise both `put` and `exit_fiber` say so. */
static void end(struct weft__eio *eio, int64_t by, struct weft__eio_thing *t, uint8_t op, struct weft_str text)
{
	if (t->is_ended)
		return;
	t->is_ended = true;
	weft__eio_put(eio, op, by, t->id)->text = text;
}

static void resolve(struct weft__eio *eio, int64_t by, struct weft__eio_thing *t)
{
	const struct weft_str error = text_at(eio, t->error);
	end(eio, by, t, error.len ? WEFT_OP_FAIL : WEFT_OP_RESOLVE, error);
}

/* ---- Domains ---- */

void weft__eio_domain_begins(struct weft__eio *eio, int64_t parent)
{
	struct weft__eio_ring *ring = ring_of(eio);
	const uint32_t by = parent >= 0 ? find(eio, parent) : 0;
	*ring = (struct weft__eio_ring){.domain = eio->next_id++, .parent = by};
	create(eio, by ? thing(eio, by)->id : WEFT_SYSTEM_ID, ring->domain, WEFT_KIND_THREAD, (struct weft_str){"domain", 6});
}

void weft__eio_domain_ends(struct weft__eio *eio)
{
	struct weft__eio_ring *ring = ring_of(eio);
	if (ring->domain) {
		weft__eio_put(eio, WEFT_OP_RESOLVE, ring->domain, ring->domain);
		weft__eio_put(eio, WEFT_OP_RUN, WEFT_SYSTEM_ID, 0);
	}
	*ring = (struct weft__eio_ring){0};
}

/* ---- Fibers ---- */

static void create_fiber(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	struct weft__eio_ring *ring = ring_of(eio);
	const uint32_t fiber = find(eio, ev->id), context = find(eio, ev->other);
	if (!fiber || !context)
		return;
	struct weft__eio_thing *t = thing(eio, fiber);
	*t = (struct weft__eio_thing){.id = t->id, .what = FIBER, .within = context};
	const int64_t around = thing(eio, context)->id;
	create(eio, weft__eio_actor(eio), t->id, WEFT_KIND_COROUTINE, numbered(eio, "fiber", ev->id));
	weft__eio_put(eio, WEFT_OP_AWAIT, around, t->id); /* a context lasts until its fibers end */
	if (!ring->fiber)                                 /* a domain's first, which is to come to its end */
		weft__eio_put(eio, WEFT_OP_SHOULD_RESOLVE, t->id, 0);
	if (ring->parent) {
		struct weft__eio_thing *parent = thing(eio, ring->parent);
		parent->last = fiber;
		weft__eio_put(eio, WEFT_OP_AWAIT, parent->id, t->id);
		ring->parent = 0;
	}
}

/* A turn at a semaphore that came to nothing. */
static void give_up_turn(struct weft__eio *eio, struct weft__eio_thing *fiber)
{
	struct weft__eio_turn *turn = &eio->turns.items[fiber->turn - 1];
	if (!turn->is_over) {
		turn->is_over = true;
		weft__eio_put(eio, WEFT_OP_CANCEL, WEFT_SYSTEM_ID, turn->id);
	}
	fiber->turn = 0;
}

static bool is_cancelled(struct weft__eio *eio, const struct weft__eio_thing *fiber)
{
	const uint32_t context = fiber->top ? fiber->top : fiber->within;
	return context && thing(eio, context)->is_cancelled;
}

/* What the fiber that now runs reads first, if anything: the weft id of a promise, or 0. */
static int64_t what_it_gets(struct weft__eio *eio, const struct weft__eio_thing *fiber, const struct weft__eio_event *get)
{
	const uint32_t at = get ? weft_idmap_get(&eio->numbers, id_of(get->id)) : WEFT_IDMAP_NONE;
	const struct weft__eio_thing *t = at == WEFT_IDMAP_NONE ? NULL : &eio->things.items[at];
	if (!t || t->what == STREAM || t->what == UNKNOWN || t->what == MUTEX)
		return NOBODY;
	if (t->what == SEMAPHORE)
		return fiber->turn ? eio->turns.items[fiber->turn - 1].id : NOBODY;
	return t->id;
}

static void run_fiber(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	struct weft__eio_ring *ring = ring_of(eio);
	const uint32_t fiber = find(eio, ev->id);
	struct weft__eio_event next;
	if (!fiber)
		return;
	struct weft__eio_thing *t = thing(eio, fiber);
	t->what = FIBER;
	const bool will_get = eio->peek(eio->peek_ctx, 0, &next) && next.what == WEFT__EIO_GET;
	const int64_t gets = what_it_gets(eio, t, will_get ? &next : NULL);
	const bool has_lock = will_get && id_of(next.id) == t->waits_for;
	ring->fiber = fiber;
	ring->parent = 0;
	ring->makes_domain = false;
	ring->in = (struct weft_str){0};
	ring->got = gets;
	ring->cancelled = 0;
	if (!gets && t->turn) {
		give_up_turn(eio, t);
		ring->cancelled = fiber;
	}
	if (!gets && t->waits_for && !has_lock) {
		weft__eio_put(eio, WEFT_OP_AWAITS_NO_MORE, t->id, t->waits_for);
		t->waits_for = NOBODY;
		ring->cancelled = fiber;
	}
	if (t->asleep_in) {
		if (is_cancelled(eio, t))
			ring->cancelled = fiber;
		weft__eio_put(eio, ring->cancelled ? WEFT_OP_CANCEL : WEFT_OP_RESOLVE, WEFT_SYSTEM_ID, t->asleep_in);
		weft__eio_put(eio, WEFT_OP_READ, t->id, t->asleep_in);
		t->asleep_in = NOBODY;
	} else if (t->last) {
		weft__eio_put(eio, WEFT_OP_READ, t->id, thing(eio, t->last)->id);
		t->last = 0;
	} else if (gets) {
		weft__eio_put(eio, WEFT_OP_READ, t->id, gets);
	} else
		weft__eio_put(eio, WEFT_OP_RUN, t->id, 0);
}

static void exit_fiber(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	struct weft__eio_ring *ring = ring_of(eio);
	const uint32_t fiber = find(eio, ev->id);
	if (!fiber)
		return;
	struct weft__eio_thing *t = thing(eio, fiber), *context = t->within ? thing(eio, t->within) : NULL;
	if (ring->cancelled == fiber && context && context->is_cancelled)
		end(eio, context->id, t, WEFT_OP_CANCEL, (struct weft_str){0});
	else
		resolve(eio, t->id, t);
	if (context) {
		weft__eio_put(eio, WEFT_OP_READ_LATER, context->id, t->id);
		if (context->is_root) /* nothing else says that it ends */
			resolve(eio, t->id, context);
	}
	ring->fiber = ring->cancelled = 0;
	weft__eio_put(eio, WEFT_OP_RUN, weft__eio_domain(eio), 0);
}

static void suspend(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	struct weft__eio_ring *ring = ring_of(eio);
	ring->in = ev->text;
	ring->makes_domain = is(ev->text, "run-domain"); /* what it waits for the new domain makes */
	if (!ring->fiber || ring->makes_domain || (eio->lacks_edges ? ev->text.len == 0 : has_edges(ev->text)))
		return;
	struct weft__eio_thing *t = thing(eio, ring->fiber);
	t->asleep_in = eio->next_id++;
	create(eio, t->id, t->asleep_in, kind_of(ev->text), ev->text);
	weft__eio_put(eio, WEFT_OP_AWAIT, t->id, t->asleep_in);
}

/* ---- Contexts ---- */

static void create_context(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	const struct weft__eio_ring *ring = ring_of(eio);
	const uint32_t context = find(eio, ev->id);
	if (!context)
		return;
	struct weft__eio_thing *t = thing(eio, context);
	*t = (struct weft__eio_thing){.id = t->id, .what = CONTEXT, .is_root = ev->type == WEFT__EIO_ROOT};
	const char *name = ev->type == WEFT__EIO_SWITCH ? NULL : weft__eio_type_name(WEFT__EIO_CREATE_CC, ev->type);
	create(eio, weft__eio_actor(eio), t->id, WEFT_KIND_SWITCH,
	    name ? (struct weft_str){name, (uint32_t)strlen(name)} : (struct weft_str){0});
	if (!ring->fiber)
		return;
	struct weft__eio_thing *fiber = thing(eio, ring->fiber);
	t->within = fiber->top;
	fiber->top = context;
}

static void exit_context(struct weft__eio *eio)
{
	const struct weft__eio_ring *ring = ring_of(eio);
	struct weft__eio_thing *fiber = ring->fiber ? thing(eio, ring->fiber) : NULL;
	if (!fiber || !fiber->top)
		return;
	struct weft__eio_thing *t = thing(eio, fiber->top);
	fiber->top = t->within;
	resolve(eio, fiber->id, t);
	if (eio->lacks_edges) /* else `get` says who takes its error */
		weft__eio_put(eio, WEFT_OP_READ_LATER, fiber->id, t->id);
}

/* Whether the fiber that turned its context off ends now: then the error is its own. */
static bool ends_with_it(struct weft__eio *eio, const struct weft__eio_thing *fiber)
{
	enum { CONTEXTS = 8 };
	struct weft__eio_event next;
	for (unsigned i = 0; i < CONTEXTS && eio->peek(eio->peek_ctx, i, &next); i++) {
		if (next.what == WEFT__EIO_EXIT_FIBER)
			return id_of(next.id) == fiber->id;
		if (next.what != WEFT__EIO_ERROR && next.what != WEFT__EIO_PUT)
			break;
	}
	return false;
}

static void turn_off(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	const struct weft__eio_ring *ring = ring_of(eio);
	const uint32_t context = find(eio, ev->id);
	if (!context)
		return;
	struct weft__eio_thing *t = thing(eio, context), *fiber = ring->fiber ? thing(eio, ring->fiber) : NULL;
	t->is_cancelled = true;
	if (is_error(ev->text)) {
		set_text(eio, &t->error, ev->text);
		if (fiber && fiber->within == context && ends_with_it(eio, fiber))
			set_text(eio, &fiber->error, ev->text);
	}
	put_text(eio, WEFT_OP_NOTE, t->id, weft__eio_text(eio, "cancelled: ", ev->text));
}

/* ---- Objects ---- */

static void create_object(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	struct weft__eio_ring *ring = ring_of(eio);
	const uint32_t object = find(eio, ev->id);
	if (!object)
		return;
	struct weft__eio_thing *t = thing(eio, object);
	*t = (struct weft__eio_thing){.id = t->id};
	const int64_t by = weft__eio_actor(eio);
	switch (ev->type) {
	case WEFT__EIO_PROMISE:
		t->what = PROMISE;
		/* By which a domain is told that it is no longer needed; most never are. */
		if (ring->makes_domain)
			create(eio, by, t->id, WEFT_KIND_CONDITION, (struct weft_str){"cancellation of the domain", 26});
		else
			create(eio, by, t->id, WEFT_KIND_PROMISE, (struct weft_str){0});
		ring->makes_domain = false;
		break;
	case WEFT__EIO_MUTEX:
		t->what = MUTEX;
		create(eio, by, t->id, WEFT_KIND_LOCK, numbered(eio, "mutex", ev->id));
		break;
	case WEFT__EIO_STREAM:
		t->what = STREAM;
		create(eio, by, t->id, WEFT_KIND_QUEUE, numbered(eio, "stream", ev->id));
		break;
	case WEFT__EIO_SEMAPHORE: t->what = SEMAPHORE; break;
	default: break;
	}
}

/* Of what was made before the ring begins it is known by now what it is. */
static void recognise(struct weft__eio *eio, struct weft__eio_thing *t)
{
	struct weft__eio_event next;
	if (t->what != UNKNOWN)
		return;
	if (is(ring_of(eio)->in, "Semaphore.acquire"))
		t->what = SEMAPHORE;
	else if (eio->peek(eio->peek_ctx, 0, &next) && next.what == WEFT__EIO_SUSPEND_FIBER && is(next.text, "Mutex.lock"))
		t->what = MUTEX;
	else
		t->what = PROMISE;
}

/* Makes a turn at a semaphore, and returns its promise. */
static int64_t queue_up(struct weft__eio *eio, uint32_t semaphore, int64_t number)
{
	struct weft__eio_turn *turn = weft_vec_push(&eio->turns);
	if (!turn) {
		eio->status = WEFT_ENOMEM;
		return NOBODY;
	}
	const uint32_t index = (uint32_t)eio->turns.count;
	struct weft__eio_thing *s = thing(eio, semaphore), *fiber = thing(eio, ring_of(eio)->fiber);
	*turn = (struct weft__eio_turn){.id = eio->next_id++, .fiber = ring_of(eio)->fiber};
	if (s->turn)
		eio->turns.items[s->last - 1].next = index;
	else
		s->turn = index;
	s->last = index;
	fiber->turn = index;
	create(eio, fiber->id, turn->id, WEFT_KIND_SEMAPHORE, numbered(eio, "semaphore", number));
	return turn->id;
}

static void begin_wait(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	const struct weft__eio_ring *ring = ring_of(eio);
	const uint32_t object = find(eio, ev->id);
	if (!object || !ring->fiber)
		return;
	struct weft__eio_thing *t = thing(eio, object), *fiber = thing(eio, ring->fiber);
	recognise(eio, t);
	if (t->what == STREAM)
		return;
	const int64_t waits_for = t->what == SEMAPHORE ? queue_up(eio, object, ev->id) : t->id;
	if (!waits_for)
		return;
	fiber->waits_for = waits_for;
	weft__eio_put(eio, WEFT_OP_AWAIT, fiber->id, waits_for);
}

static void get(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	struct weft__eio_ring *ring = ring_of(eio);
	const uint32_t object = find(eio, ev->id);
	if (!object || !ring->fiber)
		return;
	struct weft__eio_thing *t = thing(eio, object), *fiber = thing(eio, ring->fiber);
	const int64_t turn = t->what == SEMAPHORE && fiber->turn ? eio->turns.items[fiber->turn - 1].id : NOBODY;
	const int64_t what = turn ? turn : t->id;
	const bool is_read = ring->got && ring->got == what;
	ring->got = NOBODY;
	if (t->what == MUTEX) {
		if (fiber->waits_for == t->id)
			weft__eio_put(eio, WEFT_OP_AWAITS_NO_MORE, fiber->id, t->id);
		if (t->holder)
			weft__eio_put(eio, WEFT_OP_RELEASE, t->holder, t->id);
		t->holder = fiber->id;
		weft__eio_put(eio, WEFT_OP_HOLD, fiber->id, t->id);
	} else if (!is_read && (turn || t->what == PROMISE || t->what == FIBER || t->what == CONTEXT))
		weft__eio_put(eio, WEFT_OP_READ_LATER, fiber->id, what);
	fiber->waits_for = NOBODY;
	if (turn)
		fiber->turn = 0;
}

static void put(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	const uint32_t object = find(eio, ev->id);
	if (!object)
		return;
	const int64_t by = ring_of(eio)->fiber ? thing(eio, ring_of(eio)->fiber)->id : WEFT_SYSTEM_ID;
	struct weft__eio_thing *t = thing(eio, object);
	if (t->what == MUTEX) {
		if (t->holder)
			weft__eio_put(eio, WEFT_OP_RELEASE, t->holder, t->id);
		t->holder = NOBODY;
	} else if (t->what == SEMAPHORE) {
		while (t->turn && eio->turns.items[t->turn - 1].is_over)
			t->turn = eio->turns.items[t->turn - 1].next;
		if (!t->turn)
			return;
		struct weft__eio_turn *turn = &eio->turns.items[t->turn - 1];
		turn->is_over = true;
		weft__eio_put(eio, WEFT_OP_RESOLVE, by, turn->id);
		t->turn = turn->next;
	} else if (t->what != STREAM && t->what != UNKNOWN)
		resolve(eio, by, t);
}

static void name(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	const uint32_t object = find(eio, ev->id);
	if (object && thing(eio, object)->what != SEMAPHORE && thing(eio, object)->what != UNKNOWN)
		put_text(eio, WEFT_OP_LABEL, thing(eio, object)->id, ev->text);
}

/* A stretch with a name.  It lasts while others run; that they nest is not told of. */
static void span(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	const bool is_begin = ev->what == WEFT__EIO_ENTER_SPAN;
	struct weft__eio_thing *fiber = ring_of(eio)->fiber ? thing(eio, ring_of(eio)->fiber) : NULL;
	const struct weft_str name = is_begin ? ev->text : text_at(eio, fiber ? fiber->span : 0);
	const char *prefix = is_begin ? "begins " : name.len ? "ends " : "ends what it began";
	put_text(eio, WEFT_OP_NOTE, weft__eio_actor(eio), weft__eio_text(eio, prefix, name));
	if (fiber)
		set_text(eio, &fiber->span, is_begin ? ev->text : (struct weft_str){"", 0});
}

void weft__eio_take(struct weft__eio *eio, const struct weft__eio_event *ev)
{
	struct weft__eio_ring *ring = ring_of(eio);
	(void)weft__eio_domain(eio);
	switch ((enum weft__eio_what)ev->what) {
	case WEFT__EIO_CREATE_FIBER: create_fiber(eio, ev); break;
	case WEFT__EIO_CREATE_CC: create_context(eio, ev); break;
	case WEFT__EIO_CREATE_OBJ: create_object(eio, ev); break;
	case WEFT__EIO_ERROR: turn_off(eio, ev); break;
	case WEFT__EIO_NAME: name(eio, ev); break;
	case WEFT__EIO_LOG: put_text(eio, WEFT_OP_NOTE, weft__eio_actor(eio), ev->text); break;
	case WEFT__EIO_ENTER_SPAN:
	case WEFT__EIO_EXIT_SPAN: span(eio, ev); break;
	case WEFT__EIO_SUSPEND_FIBER: suspend(eio, ev); break;
	case WEFT__EIO_EXIT_CC: exit_context(eio); break;
	case WEFT__EIO_FIBER: run_fiber(eio, ev); return;
	case WEFT__EIO_EXIT_FIBER: exit_fiber(eio, ev); break;
	case WEFT__EIO_TRY_GET: begin_wait(eio, ev); break;
	case WEFT__EIO_GET: get(eio, ev); break;
	case WEFT__EIO_PUT: put(eio, ev); break;
	case WEFT__EIO_DOMAIN_SPAWN: break; /* weft__eio_domain_begins() had it */
	case WEFT__EIO_SUSPEND_DOMAIN:
		if (ev->is_end) {
			weft__eio_put(eio, WEFT_OP_RESUME, ring->domain, 0);
		} else {
			ring->fiber = 0; /* what comes until the end is an OS thread's */
			weft__eio_put(eio, WEFT_OP_IDLE, 0, 0);
		}
		break;
	case WEFT__EIO_NONE: break;
	}
	ring->cancelled = 0;
}

bool weft__eio_still(struct weft__eio *eio)
{
	while (eio->told < eio->things.count) {
		const struct weft__eio_thing *t = &eio->things.items[eio->told++];
		const int64_t waits_for = t->asleep_in ? t->asleep_in : t->waits_for;
		if (t->what != FIBER || t->is_ended || !waits_for)
			continue;
		weft__eio_put(eio, WEFT_OP_STILL_AWAITS, t->id, waits_for);
		if (t->within)
			weft__eio_put(eio, WEFT_OP_STILL_AWAITS, thing(eio, t->within)->id, t->id);
		return true;
	}
	return false;
}

/* ---- As a whole ---- */

int weft__eio_init(struct weft__eio *eio, size_t rings, uint32_t most)
{
	/* The next number of one digit and zeros: easy to tell from Eio's, and not so far away that tables of ids have holes. */
	int64_t step = 10000, first;
	while (step <= ((int64_t)most + 1) / 10)
		step *= 10;
	first = ((int64_t)most + 1) / step * step + step;
	*eio = (struct weft__eio){.first_id = first, .next_id = first, .ring_count = rings};
	eio->rings = calloc(rings ? rings : 1, sizeof *eio->rings);
	return eio->rings ? WEFT_OK : WEFT_ENOMEM;
}

void weft__eio_forget(struct weft__eio *eio)
{
	weft_idmap_finish(&eio->numbers);
	eio->numbers = (struct weft_idmap){0};
	weft_vec_free(&eio->things);
	weft_vec_free(&eio->turns);
	weft_vec_free(&eio->said);
	eio->told = 0;
}

void weft__eio_rewind(struct weft__eio *eio)
{
	weft__eio_forget(eio);
	memset(eio->rings, 0, eio->ring_count * sizeof *eio->rings);
	eio->text_block = eio->text_used = 0;
	eio->next_id = eio->first_id;
	eio->status = WEFT_OK;
}

void weft__eio_finish(struct weft__eio *eio)
{
	weft__eio_forget(eio);
	for (size_t i = 0; i < eio->texts.count; i++)
		free(eio->texts.items[i]);
	weft_vec_free(&eio->texts);
	free(eio->rings);
}
