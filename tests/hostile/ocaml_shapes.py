"""ocaml_shapes.py: shapes (shapes.py) of OCaml's runtime events and of what eio-trace makes of them.

SPDX-License-Identifier: ISC"""

import random
import struct

from shapes import shape, until

# ---- Runtime events: src/trace/ocaml_ring.h ----

NAMES = ['eio.' + name for name in '''create_fiber create_cc create_obj error name log enter_span suspend_fiber exit_cc exit_span fiber exit_fiber
try_get get put domain_spawn suspend_domain'''.split()] + ['own.int', 'own.text', 'lwt-trace', 'lwt-sch-call', 'lwt-sch-lap']
ID = {name.removeprefix('eio.'): i for i, name in enumerate(NAMES)}
SWITCH, ROOT, PROMISE, SEMAPHORE, STREAM, MUTEX = 3, 6, 15, 16, 18, 19
LIFE, BEGIN, END, COUNTER = 1, 2, 3, 4
STOP_ALL, START = 36, 0         # the phase stw_leader of 5.3, the beginning of a ring


def event(time, user, kind, number, *words):
    return struct.pack(f'<{2 + len(words)}Q', 2 + len(words) << 54 | user << 53 | kind << 49 | number << 36, time, *words)


def own(time, kind, number, *words):
    return event(time, 0, kind, number, *words)


def number(time, name, value):
    return event(time, 1, 1, ID[name], value & (1 << 64) - 1)


def unit(time, name):
    return event(time, 1, 0, ID[name])


def custom(time, name, raw):
    unused = 7 - len(raw) % 8
    padded = raw + bytes(unused) + bytes([unused])
    return event(time, 1, 4, ID[name], *struct.unpack(f'<{len(padded) // 8}Q', padded))


def fiber(time, i, context):
    return custom(time, 'create_fiber', struct.pack('<qq', i, context))


def thing(time, name, i, kind):
    return custom(time, name, struct.pack('<qB', i, kind))


def text(time, name, i, what):
    return custom(time, name, struct.pack('<q', i) + what)


def filler(words):
    return struct.pack('<Q', words << 54) + bytes(8 * (words - 1))


def file(rings, names=None, lost=0):
    """Each ring has the size of the largest."""
    words = 1
    while 8 * words < max(map(len, rings)):
        words *= 2
    data = 64 + 80 * len(rings)
    header = struct.pack('<8Q', 1, len(rings), 80, 8 * words, words, 64, data, data + 8 * words * len(rings))
    heads = b''.join(struct.pack('<10Q', lost * words, lost * words + len(ring) // 8, *bytes(8)) for ring in rings)
    return (header + heads + b''.join(ring.ljust(8 * words, b'\0') for ring in rings) +
            b''.join(name.encode().ljust(128, b'\0') for name in names or NAMES))


def ring(size, make):
    """Returns a ring of the events make(0), make(1), ..., in a domain whose main fiber is 1."""
    begin = own(0, LIFE, START, 1) + thing(0, 'create_cc', 0, ROOT) + fiber(0, 1, 0) + number(0, 'fiber', 1)
    return file([begin + until(max(size - 3000, 100), make)])


@shape
def ocaml_fibers(size):
    return ring(size, lambda i: fiber(10 * i, i + 2, 0) + number(10 * i, 'fiber', i + 2) + number(10 * i + 5, 'exit_fiber', i + 2))


@shape
def ocaml_random_fiber_numbers(size):
    rng = random.Random(7)
    return ring(size, lambda i: fiber(i, rng.getrandbits(64) - (1 << 63), rng.getrandbits(64) - (1 << 63)) + number(i, 'fiber', rng.getrandbits(32)))


@shape
def ocaml_fiber_awaiting_and_creating_itself(size):
    """A fiber that is its own context and its own promise, waits for itself, and is created again and again."""
    return ring(size, lambda i: fiber(i, 1, 1) + number(i, 'fiber', 1) + thing(i, 'create_cc', 1, SWITCH) + number(i, 'try_get', 1) +
                number(i, 'get', 1) + text(i, 'error', 1, b'why') + unit(i, 'exit_cc'))


@shape
def ocaml_deeply_nested_contexts(size):
    return ring(size // 2, lambda i: thing(i, 'create_cc', i + 2, SWITCH)) if size < 1000 else ring(
        size, lambda i: thing(i, 'create_cc', i + 2, SWITCH) if 32 * i < size // 2 else unit(i, 'exit_cc'))


@shape
def ocaml_many_cancelled_contexts(size):
    """The reader searches the following events for the end of the promise that cancelled its context."""
    return ring(size, lambda i: text(i, 'error', 0, b'why') if i % 16 < 8 else filler(100))


@shape
def ocaml_cancelled_waiters_of_a_semaphore(size):
    """A waiter stays in the queue of the semaphore until its turn, although it gave up."""
    def make(i):
        if i % 3 == 2 and i > size // 80:
            return number(i, 'put', 2)
        return (thing(i, 'create_obj', 2, SEMAPHORE) if i == 0 else b'') + custom(i, 'suspend_fiber', b'Semaphore.acquire') + number(
            i, 'try_get', 2) + number(i, 'fiber', i % 50 + 3)
    return ring(size, make)


@shape
def ocaml_many_fibers_share_one_mutex(size):
    return ring(size, lambda i: (thing(i, 'create_obj', 2, MUTEX) if i == 0 else b'') + number(i, 'fiber', i % 1000 + 3) +
                number(i, 'try_get', 2) + number(i, 'get', 2) + (number(i, 'put', 2) if i % 3 else b''))


@shape
def ocaml_long_texts(size):
    """A failed fiber passes a text of a thousand bytes to its context; spans repeat their names."""
    return ring(size, lambda i: text(i, 'error', 1, b'%07d' % i * 144) + unit(i, 'exit_cc') + custom(i, 'enter_span', b'%01000d' % i) +
                unit(i, 'exit_span') + text(i, 'name', 1, b'%0500d' % i))


@shape
def ocaml_many_long_event_names(size):
    """Each event has one of 8,192 long names."""
    names = NAMES + [f'{i:0127d}' for i in range(min(8192 - len(NAMES), size // 300))]
    return file([until(size - 128 * len(names) if size > 256 * len(names) else size // 2,
                       lambda i: event(i, 1, i % 2, i % len(names), *[i] * (i % 2)))], names)


@shape
def ocaml_deeply_nested_gc_phases(size):
    return ring(size, lambda i: own(10 * i, BEGIN, i * 7 % 48) if 16 * i < size // 2 else own(10 * i, END, i * 5 % 48))


@shape
def ocaml_many_world_stops_without_a_reason(size):
    """The reader searches the events after a stop-the-world phase for its reason: here is none."""
    return ring(size, lambda i: own(i, BEGIN, STOP_ALL) + filler(50) * 4 + own(i, COUNTER, 30, i) + own(i, END, STOP_ALL))


@shape
def ocaml_times_backwards(size):
    return ring(size, lambda i: number((1 << 63) - i * 1000, 'fiber', i % 10 + 1))


@shape
def ocaml_times_far_apart(size):
    return ring(size, lambda i: number(i * 0x9E3779B97F4A7C15 & (1 << 64) - 1, 'fiber', i % 10 + 1))


@shape
def ocaml_domain_spawns_many_times(size):
    return ring(size, lambda i: own(i, LIFE, 6, 1) + number(i, 'domain_spawn', 1) + (own(i, LIFE, 7, 1) if i % 2 else b''))


@shape
def ocaml_many_rings_with_one_event_each(size):
    """The maximum number of domains, each of which starts before the previous one."""
    count = min(4096, max(2, size // 120))
    return file([until(size // count - 100, lambda i, d=d: number(count - d + i, 'fiber', d * 1024 + i)) for d in range(count)], lost=1)


@shape
def ocaml_fillers(size):
    return ring(size, lambda i: filler(1) * 1000 + number(i, 'fiber', i % 10))


@shape
def ocaml_events_longer_than_their_ring(size):
    """Each ring ends in its second event, which exceeds it."""
    count = min(4096, max(2, size // 150))
    return file([number(d, 'fiber', d) + struct.pack('<Q', 1023 << 54) + bytes(8) for d in range(count)])


@shape
def ocaml_random_event_payloads(size):
    rng = random.Random(5)
    return ring(size, lambda i: event(i, 1, rng.choice((1, 4, 4, 4, 9)), i % len(NAMES), *(rng.getrandbits(64) for _ in range(rng.randrange(4)))))


# ---- Lwt: src/trace/ocaml_lwt.h ----

def wait(time, kind, line, context=b'', name=b'a.ml'):
    return custom(time, 'lwt-trace', kind + bytes([len(context)]) + context + struct.pack('>HB', line & 65535, len(name)) + name)


def lap(time):
    return unit(time, 'lwt-sch-lap')


def call(time, kind):
    return event(time, 1, kind, ID['lwt-sch-call'])


@shape
def lwt_many_open_waits_at_one_line(size):
    """All are open at once, then all end."""
    return ring(size, lambda i: wait(i, b'B' if 48 * i < size // 2 else b'E', 1))


@shape
def lwt_long_chain_of_pending_waits(size):
    """Each wait waits for the one before, and all are pending."""
    return ring(size, lambda i: wait(i, b'B', i))


@shape
def lwt_long_chain_of_waits_ends(size):
    count = max(2, min(65000, (size - 3000) // 96))
    return ring(size, lambda i: wait(i, b'B', i) if i < count else lap(i) if i == count else wait(i, b'E', i - count - 1))


@shape
def lwt_two_interleaved_chains_of_waits(size):
    """Two lines in turn: an end looks among the open waits of its line for the one whose waiter ends next."""
    half = size // 80
    return ring(size, lambda i: wait(i, b'B', i % 2) + (lap(i) if i % 2 else b'') if i < half else wait(i, b'E', i % 2))


@shape
def lwt_endless_loop_of_waits(size):
    """Each wait continues as the next one."""
    return ring(size, lambda i: wait(i, b'B', 1) if i == 0 else lap(i) + wait(i, b'E', 1) + wait(i, b'B', 1))


@shape
def lwt_one_wait_for_many_earlier_waits(size):
    count = size // 100
    return ring(size, lambda i: wait(i, b'B', 1) if i < count else wait(i, b'B', 2) if i == count else wait(i, b'E', 1))


@shape
def lwt_waits_with_nested_callers(size):
    return ring(size, lambda i: wait(i, b'B', i % 7) + call(i, 2 + i % 5 // 4) + lap(i) + wait(i, b'E', i % 7))


@shape
def lwt_many_long_contexts_used_once(size):
    return ring(size, lambda i: wait(i, b'B', i, b'%0250d' % i) + lap(i) + wait(i, b'E', i, b'%0250d' % i))


@shape
def lwt_many_long_file_names_used_once(size):
    return ring(size, lambda i: wait(i, b'BE'[i % 2:i % 2 + 1], i, b'', b'%0250d' % (i // 2)))


@shape
def lwt_random_event_lengths(size):
    rng = random.Random(13)
    return ring(size, lambda i: custom(i, 'lwt-trace', rng.choice((b'B', b'E', b'X')) + rng.randbytes(rng.randrange(40))))


@shape
def lwt_many_wait_ends_without_a_start(size):
    return ring(size, lambda i: wait(i, b'E', i))


@shape
def lwt_many_rings_with_few_waits_each(size):
    """The maximum number of domains, each with other waits that stay open."""
    count = min(4096, max(2, size // 400))
    return file([until(max(size // count - 250, 60), lambda i, d=d: wait(i, b'B', d * 7 + i)) for d in range(count)])


@shape
def lwt_and_eio_alternate_in_one_ring(size):
    """A fiber of Eio and code of Lwt take turns in one ring."""
    return ring(size, lambda i: wait(10 * i, b'B', i % 5) + number(10 * i, 'fiber', i % 3 + 1) + wait(10 * i, b'E', i % 5) + lap(10 * i))


# ---- Fuchsia's format, as eio-trace writes it: src/trace/fxt.c ----

def record(kind, rest, *words, tail=b''):
    length = 1 + len(words) + len(tail) // 8
    return struct.pack(f'<{1 + len(words)}Q', rest | length << 4 | kind, *words) + tail


def string(i, what):
    padded = what + bytes(-len(what) % 8)
    return record(2, len(what) << 32 | i << 16, tail=padded)


STRINGS = {name: i + 1 for i, name in enumerate('eio eio.suspend eio.span gc ocaml cc id type root create-fiber exit-fiber error log sleep long'.split())}


def fxt(size, make, long=b'long'):
    begin = struct.pack('<Q', 0x0016547846040010) + b''.join(string(i, long if name == 'long' else name.encode()) for name, i in STRINGS.items())
    return begin + said(0, 'eio', 'create-fiber', 4, id=1, cc=0) + until(max(100, size - len(begin)), make)


def said(time, category, name, thread=4, kind=0, ring=1, **arguments):
    packed = b''.join(struct.pack('<QQ', STRINGS[key] << 16 | 2 << 4 | 7, value) if isinstance(value, int) else
                      struct.pack('<Q', STRINGS[value] << 32 | STRINGS[key] << 16 | 1 << 4 | 6) for key, value in arguments.items())
    return record(4, STRINGS[name] << 48 | STRINGS[category] << 32 | len(arguments) << 20 | kind << 16, time, ring, 4 * ring + 1 if thread == 4 else thread, tail=packed)


def woken(time, i, ring=0):
    return record(8, 2 << 60 | ring << 20, time, 4 * i + 2)


@shape
def fxt_fibers(size):
    return fxt(size, lambda i: woken(10 * i, i) + said(10 * i, 'eio', 'create-fiber', id=i, cc=0) + woken(10 * i + 1, i) +
               said(10 * i + 2, 'eio', 'exit-fiber', 4 * i + 2, id=i))


@shape
def fxt_long_texts(size):
    """One long text is referenced by many small events."""
    return fxt(size, lambda i: said(10 * i, 'gc', 'long', kind=2) + said(10 * i + 5, 'gc', 'long', kind=3) +
               said(10 * i, 'eio', 'error', id=i, type='long') + said(10 * i, 'eio.span', 'long', kind=2) + said(10 * i, 'eio.span', 'long', kind=3),
               bytes(97 + i % 26 for i in range(min(32000, size // 10))))


@shape
def fxt_events_of_many_rings_alternate(size):
    """The next event of a ring is far behind, among events of other rings."""
    return fxt(size, lambda i: woken(i, i, i % 4095) if i % 2 else said(i, 'eio', 'error', ring=i % 4095, id=i))


@shape
def fxt_times_backwards(size):
    return fxt(size, lambda i: woken((1 << 63) - i, i % 100, i % 7))


@shape
def fxt_random_argument_lengths(size):
    rng = random.Random(9)
    return fxt(size, lambda i: record(4, rng.getrandbits(32) << 32 | 15 << 20, i, 1, 5, tail=rng.randbytes(8 * rng.randrange(20))))


@shape
def fxt_random_string_references(size):
    rng = random.Random(11)
    return fxt(size, lambda i: string(rng.randrange(1, 32768), rng.randbytes(20)) if i % 2 else
               record(4, rng.randrange(32768) << 48 | STRINGS['eio'] << 32, i, 1, 5))
