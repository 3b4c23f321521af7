"""shapes.py: traces made to be hard to read: each shape is a function from a size in bytes to a trace of about that size.

A trace is bytes, one file, or a dict of names and bytes, the files of a directory.  SPDX-License-Identifier: ISC"""

import io
import random
import struct
import tarfile

SHAPES = {}


def shape(function):
    SHAPES[function.__name__] = function
    return function


# ---- The native format: docs/format.md ----

CREATE, READ, RESOLVE, FAIL, BECOME, LABEL, COUNTER_ADD, RUN, PAUSE, SIGNAL, AWAIT, COUNTER, READ_LATER, SIGNAL_ONLY, SHOULD_RESOLVE, IDLE, \
    RESUME, NOTE, PENDING, PAUSE_BEGIN, PAUSE_END, STILL_AWAITS = range(22)
INLINE, WIDE = 0x20, 0x40
WAIT, TASK, BIND, CHOOSE, JOIN, CONDITION, SEMAPHORE, TIMER, REQUEST, CONNECTION, LOCK = 0, 1, 2, 4, 6, 8, 16, 32, 46, 47, 50
UUID = bytes(range(16))
EVENTS, DEFINITIONS, KERNEL = 0, 1, 3
HEADER = 160
MASK = 0xffffffff


def packet(content, kind=EVENTS, stream=0, sequence=0, begin=0, name=b'main', tid=1, uuid=UUID, before=0, size=None):
    bits = 8 * (HEADER + len(content))
    return struct.pack('<I16sIIIHHIQQQQQQQQQQQQQ16s', 0xC1FC1FC1, uuid, kind, stream, 0x54464557, 1, HEADER, 0, begin, bits, size or bits,
                       sequence, 0, 0, 0, 0, before, 1000000000, 1, 1600000000000000000, tid, name) + content


def two(op, time, a, b):
    return struct.pack('<BIii', op, time & MASK, a, b)


def wide(op, time, a, b):
    return struct.pack('<BIqq', op | WIDE, time & MASK, a, b)


def one(op, time, a):
    return struct.pack('<BIi', op, time & MASK, a)


def create(time, by, promise, kind=TASK, site=0):
    return struct.pack('<BIiiBH', CREATE, time & MASK, by, promise, kind, site)


def label(time, promise, text):
    return struct.pack('<BIi', LABEL | INLINE, time & MASK, promise) + text + b'\0'


def keyed(op, time, promise, key):
    return struct.pack('<BIiH', op, time & MASK, promise, key)


def fail(time, by, promise, text):
    return struct.pack('<BIii', FAIL | INLINE, time & MASK, by, promise) + text + b'\0'


def counter(op, time, by, value, text):
    return struct.pack('<BIii', op | INLINE, time & MASK, by, value) + text + b'\0'


def pending(time, by, promise, since, kind=TASK, site=0):
    return struct.pack('<BIiiBHQ', PENDING | INLINE, time & MASK, by, promise, kind, site, since) + b'\0'


def definition(kind, time, rest):
    return struct.pack('<BBQ', 255, kind, time) + rest


def string(key, text):
    return definition(0, 0, struct.pack('<H', key) + text + b'\0')


def site(key, line, file, function):
    return definition(1, 0, struct.pack('<HI', key, line) + file + b'\0' + function + b'\0')


def thread(time, stream, name, tid=2):
    return definition(2, time, struct.pack('<IQ', stream, tid) + name + b'\0')


def until(size, make):
    """Returns make(0), make(1), ..., up to a size."""
    parts, total, i = [], 0, 0
    while total < size:
        part = make(i)
        parts.append(part)
        total += len(part)
        i += 1
    return b''.join(parts)


def native(size, make, *definitions):
    """Returns one packet of the events make(0), make(1), ..."""
    known = b''.join(definitions)
    return (packet(known, DEFINITIONS) if known else b'') + packet(until(size - len(known), make))


def counted(size, each, make):
    """Calls make(count) with the number of objects of `each` bytes that fit."""
    return packet(b''.join(make(max(2, size // each))))


# ---- Collisions of a fixed hash: inverses of weft_hash_u64() and weft_hash_bytes() ----

M = 0xd6e8feb86659fd93
INVERSE = pow(M, -1, 1 << 64)
ALL = (1 << 64) - 1


def unhash(value):
    value ^= value >> 32
    value = value * INVERSE & ALL
    value ^= value >> 32
    value = value * INVERSE & ALL
    return value ^ value >> 32


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def colliding_id(i):
    return signed(unhash(i << 24))


def colliding_text(i):
    """Returns 16 bytes without NUL whose hash state after both words is the same."""
    rng, target = random.Random(i), 0x123456789abcdef0
    while True:
        first = rng.randbytes(8)
        state = (16 * 0x9e3779b97f4a7c15 & ALL) ^ int.from_bytes(first, 'little')
        state = state * M & ALL
        state ^= state >> 29
        text = first + (state ^ target).to_bytes(8, 'little')
        if 0 not in text and b'"' not in text and b'\\' not in text:
            return text


# ---- Ids ----

@shape
def plain(size):
    def turn(i):
        t, p = 100 * i, i + 1
        return create(t, -1, p) + one(RUN, t + 10, p) + two(RESOLVE, t + 20, p, p) + one(RUN, t + 30, -1)
    return native(size, turn)


@shape
def ids_colliding(size):
    return native(size, lambda i: wide(READ_LATER, i, colliding_id(2 * i + 1), colliding_id(2 * i + 2)))


@shape
def ids_random(size):
    rng = random.Random(1)
    return native(size, lambda i: wide(AWAIT, i, signed(rng.getrandbits(64)), signed(rng.getrandbits(64))))


@shape
def ids_downwards(size):
    return native(size, lambda i: create(i, -1, 1000000000 - i))


@shape
def ids_with_huge_distances(size):
    return native(size, lambda i: wide(AWAIT, i, i << 32, (i << 32) + (1 << 60)))


@shape
def ids_in_two_distant_ranges(size):
    return native(size, lambda i: wide(READ, i, i if i % 2 else (1 << 50) - i, 1))


@shape
def one_id_is_created_many_times(size):
    return native(size, lambda i: create(3 * i, -1, 1) + two(RESOLVE, 3 * i + 1, -1, 1))


# ---- Texts ----

@shape
def texts_colliding(size):
    return native(size, lambda i: label(i, 1, colliding_text(i)))


@shape
def label_hashes_of_many_promises_collide(size):
    return native(size, lambda i: create(2 * i, -1, i + 1) + label(2 * i + 1, i + 1, colliding_text(i)))


@shape
def text_bomb(size):
    long = string(1, b'x' * (size // 3))
    return native(size, lambda i: keyed(LABEL, i, 1, 1), long)


@shape
def many_promises_share_one_huge_label(size):
    long = string(1, 'é'.encode() * (size // 6))
    return native(size, lambda i: create(2 * i, -1, i + 1) + keyed(LABEL, 2 * i + 1, i + 1, 1), long)


@shape
def many_promises_share_one_huge_error(size):
    long = string(1, b'\x01\x02"' * (size // 9))
    return native(size, lambda i: create(2 * i, -1, i + 1) + struct.pack('<BIiiH', FAIL, 2 * i + 1, -1, i + 1, 1), long)


@shape
def texts_alike(size):
    start = b'a' * 2000
    return native(size, lambda i: label(i, i + 1, start + b'%d' % i))


@shape
def two_huge_labels_alternate(size):
    """Two long texts whose numbers differ by 1024: a cache of 1024 answers by number remembers neither."""
    texts = {1: b'x' * (size // 4), 1025: b'y' * (size // 4)}
    known = [string(i, texts.get(i, b'%d' % i)) for i in range(1, 1026)]
    named = b''.join(keyed(LABEL, i, 1, i) for i in range(1, 1026))
    turns = native(size // 2, lambda i: keyed(LABEL, 2000 + i, i + 2, i % 2 * 1024 + 1))
    return packet(b''.join(known), DEFINITIONS) + packet(named + turns[HEADER:])


@shape
def labels_with_invalid_utf8(size):
    return native(size, lambda i: label(i, i + 1, b'\xff\xfe\xe2\x80\xae"\\\n' * 3))


@shape
def many_labels_of_one_promise(size):
    return native(size, lambda i: label(i, 1, b'%d' % i))


@shape
def many_notes_of_one_promise(size):
    return native(size, lambda i: keyed(NOTE, 1000 * i, 1, 1), string(1, b'note'))


# ---- Counters ----

@shape
def many_values_of_one_counter(size):
    return native(size, lambda i: counter(COUNTER, i, 1, i * 7919 % 1000, b'c'))


@shape
def many_counters_with_one_value(size):
    return native(size, lambda i: counter(COUNTER_ADD, i, 1, 1, b'c%d' % i))


@shape
def many_counters_of_different_scales(size):
    return native(size, lambda i: counter(COUNTER, i, i + 1, i, b'#' * (i % 50) + b'c%d#%d' % (i % 500, i)))


@shape
def promise_gets_its_label_after_many_counter_changes(size):
    """All promises wait for, and so name, a promise that gets its label only after very many changes of a counter."""
    half = until(size // 2, lambda i: counter(COUNTER_ADD, i, 1, 1, b'c'))
    return packet(half + label(1 << 30, 1, b'at last') + until(size // 2, lambda i: create((1 << 30) + i, -1, i + 2) + two(AWAIT, (1 << 30) + i, i + 2, 1)))


@shape
def counter_sums_overflow_64_bits(size):
    return native(size, lambda i: struct.pack('<BIqq', COUNTER_ADD | INLINE | WIDE, i, 1, -(1 << 63) + i % 3) + b'c%d\0' % (i % 5))


# ---- Streams and packets ----

# ---- Kernel events ----

LEVEL = struct.pack('<BIB', 0, 0, 2) + b'\0'


def switched_off(time, tid, call=71):
    return struct.pack('<BIIBB', 4, time & MASK, tid, 1, call)


def woken(time, tid, by):
    return struct.pack('<BIII', 6, time & MASK, tid, by)


def switched_on(time, tid):
    return struct.pack('<BII', 3, time & MASK, tid)


@shape
def many_cpus_with_one_event_each(size):
    return native(size // 10, lambda i: one(RUN, i, i + 1)) + until(
        size, lambda i: packet(LEVEL + switched_on(i * 7919 % size, 1), KERNEL, stream=i))


@shape
def many_os_threads_with_one_switch_each(size):
    return native(size // 10, lambda i: one(RUN, i, i + 1)) + packet(LEVEL + until(size, lambda i: switched_off(i, i * 7919 & MASK)), KERNEL)


@shape
def long_runs_off_cpu(size):
    """Each run of 20 ms is a stall; its sleep ends by a wake-up from an OS thread that also runs promises."""
    def said(i):
        return switched_off(i * 20000000 + 1000, 1, i % 106) + woken(i * 20000000 + 19000000, 1, 2) + switched_on(i * 20000000 + 19000100, 1)
    return native(size // 2, lambda i: one(RUN, i * 20000000, i % 99 + 1)) + packet(one(RUN, 0, 7), stream=1, tid=2, name=b'other') + \
        packet(LEVEL + switched_on(0, 1) + until(size // 2, said), KERNEL)


@shape
def sleep_reasons_recorded_at_the_end(size):
    """The reasons of all sleeps are recorded at the end, for any time; interrupts and collections are nested."""
    def slept(i):
        return switched_off(i * 2000, 1, 0) + switched_on(i * 2000 + 1000, 1)

    def named(i):
        return struct.pack('<BIIIBBII', 9, MASK, 1, i * 7919 & MASK, 71, i % 2, 3, i % 9) + struct.pack('<BIIIBIQ', 10, MASK, 1, 0, i % 3, i % 9, i * 1000)
    return native(size // 10, lambda i: one(RUN, i, i + 1)) + packet(
        LEVEL + b''.join(struct.pack('<BII', 8, 0, i) + b'/f%d\0' % i for i in range(8)) + until(size // 2, slept) + until(size // 2, named), KERNEL)


@shape
def streams(size):
    return until(size, lambda i: packet(one(RUN, i, i + 1), stream=i, name=b't%d' % i, begin=i))


@shape
def many_streams_with_two_packets_each(size):
    return until(size, lambda i: packet(two(AWAIT, i, i % 97 + 1, i + 1), stream=i // 2, sequence=i % 2, before=i % 2, name=b't%d' % i, begin=i))


@shape
def stream_names(size):
    changes = until(size // 2, lambda i: thread(i, 0, b't%d' % i))
    return packet(changes, DEFINITIONS) + native(size - len(changes), lambda i: one(RUN, i, i + 1))


@shape
def stream_names_at_decreasing_times(size):
    changes = until(size // 2, lambda i: thread(size - i, 0, b't%d' % (i % 3)))
    return packet(changes, DEFINITIONS) + native(size - len(changes), lambda i: one(RUN, i, i + 1))


@shape
def names_of_many_streams_change_often(size):
    changes = until(size // 2, lambda i: thread(i % 7, i * 7919 % 1000, b'n%d' % (i % 5)))
    return packet(changes, DEFINITIONS) + until(size // 2, lambda i: packet(one(RUN, i, i + 1), stream=i % 1000, sequence=i, before=i // 1000))


@shape
def stream_name_hashes_collide(size):
    return until(size, lambda i: packet(one(RUN, i, i + 1), stream=i, name=colliding_text(i)))


@shape
def one_huge_stream_name(size):
    change = packet(thread(0, 0, b'n' * (size // 2)), DEFINITIONS)
    return change + native(size // 2, lambda i: create(i, -1, i + 1))


@shape
def many_packets_without_events(size):
    return packet(one(RUN, 0, 1)) + until(size, lambda i: packet(b'', sequence=i + 1, before=1))


@shape
def packets_backwards(size):
    count = size // (HEADER + 9)
    return until(size, lambda i: packet(one(RUN, count - i, i + 1), sequence=count - i, begin=count - i, before=count - i))


@shape
def many_packets_with_one_sequence_number(size):
    return until(size, lambda i: packet(one(RUN, i, i + 1)))


@shape
def packets_with_random_sequence_numbers(size):
    rng = random.Random(2)
    return until(size, lambda i: packet(one(RUN, i, i + 1), sequence=rng.getrandbits(40), stream=rng.getrandbits(6), begin=rng.getrandbits(30)))


@shape
def many_packets_with_other_trace_uuids(size):
    return packet(one(RUN, 0, 1)) + until(size, lambda i: packet(one(RUN, i, i + 1), uuid=struct.pack('<QQ', i, i)))


@shape
def each_packet_claims_to_reach_the_end_of_the_file(size):
    """Each packet claims to reach to the end."""
    return until(size, lambda i: packet(one(RUN, i, i + 1), sequence=i, before=i, size=8 * max(HEADER + 9, size - i * (HEADER + 9))))


@shape
def many_truncated_packet_headers(size):
    start = packet(b'')[:36]
    return packet(one(RUN, 0, 1)) + (start * (size // len(start)))


@shape
def packets_with_invalid_events(size):
    return until(size, lambda i: packet(one(RUN, i, i + 1) + b'\x1f' * 20, sequence=i, before=i))


@shape
def packets_with_invalid_definitions(size):
    return packet(one(RUN, 0, 1)) + until(size, lambda i: packet(string(1, b'a') + b'\x30' * 20, DEFINITIONS, sequence=i))


@shape
def two_string_keys_are_redefined_many_times(size):
    return native(size, lambda i: keyed(LABEL, i, i + 1, 65535), until(size // 2, lambda i: string(65535 - i % 2, b'a%d' % i)))


# ---- Times ----

@shape
def times_backwards(size):
    return until(size, lambda i: packet(until(400, lambda k: struct.pack('<BBQi', 255, RUN, max(1, size - 30 * i - k), 30 * i + k + 1)), stream=i // 2, sequence=i % 2, before=29 * (i % 2)))


@shape
def times_equal(size):
    return native(size, lambda i: create(5, -1, i + 1) + two(RESOLVE, 5, -1, i + 1))


@shape
def events_with_huge_time_gaps(size):
    return native(size, lambda i: struct.pack('<BBQii', 255, AWAIT, min(i << 50, (1 << 63) - 1), i + 1, i + 2))


@shape
def equal_event_times_in_many_streams(size):
    def stream(i):
        return packet(until(1000, lambda k: one(RUN, 7 * k, 1000 * i + k + 1)), stream=i)
    return until(size, stream)


# ---- Links ----

@shape
def many_promises_await_one(size):
    return native(size, lambda i: create(2 * i, -1, i + 2) + two(AWAIT, 2 * i + 1, i + 2, 1))


@shape
def one_promise_awaits_many(size):
    return native(size, lambda i: create(2 * i, -1, i + 2, JOIN) + two(AWAIT, 2 * i + 1, 1, i + 2))


@shape
def long_chain_of_awaits(size):
    return native(size, lambda i: create(2 * i, -1, i + 1) + two(AWAIT, 2 * i + 1, i + 1, i + 2))


@shape
def one_long_cycle_of_awaits(size):
    return counted(size, 29, lambda n: [create(2 * i, -1, i + 1) + two(AWAIT, 2 * i + 1, i + 1, (i + 1) % n + 1) for i in range(n)])


@shape
def many_short_cycles_of_awaits(size):
    return native(size, lambda i: two(AWAIT, i, i + 1, i + 2 if i % 3 < 2 else i - 1))


@shape
def each_promise_awaits_all_others(size):
    return counted(size, 13, lambda n: [two(AWAIT, i, i % int(n ** 0.5) + 1, i // int(n ** 0.5) + 1) for i in range(n)])


@shape
def number_of_await_paths_doubles_with_each_pair(size):
    """Each of two promises awaits both of the next two: the number of paths doubles with each pair."""
    return counted(size, 58, lambda n: [
        create(8 * i + k, -1, 2 * i + k + 1, JOIN) + two(AWAIT, 8 * i + 2 + k, 2 * i + k + 1, 2 * i + 3) +
        two(AWAIT, 8 * i + 4 + k, 2 * i + k + 1, 2 * i + 4) for i in range(n) for k in (0, 1)])


@shape
def two_awaits_are_repeated_many_times(size):
    return native(size, lambda i: two(AWAIT, i, i % 2 + 1, 3))


@shape
def long_await_chain_resolves_from_its_end(size):
    """Created forwards, resolved backwards, each by its successor."""
    def events(n):
        return [create(i, -1, i + 1, BIND) + two(AWAIT, i, i + 1, i + 2) for i in range(n)] + \
            [two(READ, n + i, n - i - 1, n - i) + two(RESOLVE, n + i, n - i - 1, n - i - 1) for i in range(n - 1)]
    return counted(size, 55, events)


@shape
def becomes_forwards(size):
    return native(size, lambda i: two(BECOME, i, i + 1, i + 2))


@shape
def becomes_backwards(size):
    return counted(size, 13, lambda n: [two(BECOME, i, n - i, n - i - 1 or 1 << 20) for i in range(n)])


@shape
def becomes_one(size):
    return native(size, lambda i: create(2 * i, -1, i + 2) + two(BECOME, 2 * i + 1, i + 2, 1))


@shape
def deep_tree_of_merged_promises(size):
    """A tree of merges of maximal depth: equal subtrees become each other repeatedly."""
    def events(n):
        step, parts = 1, []
        while step < n:
            parts += [two(BECOME, len(parts) + i, i * 2 * step + 1, i * 2 * step + step + 1) for i in range(n // (2 * step))]
            step *= 2
        return parts
    return counted(size, 13, events)


@shape
def binds_read_other_binds(size):
    return counted(size, 29, lambda n: [create(i, -1, i + 1, BIND) for i in range(n)] +
                   [two(READ, n + i, i + 1, (i * 7919 + 1) % n + 1) for i in range(n)])


@shape
def nested_cycles_of_bind_reads(size):
    return counted(size, 29, lambda n: [create(i, max(i - 1, -1), i + 1, BIND) for i in range(n)] +
                   [two(READ, n + i, i + 1, i + 2 if (i + 2) & (i + 1) else 1) for i in range(n)])


@shape
def many_signals_to_one_promise(size):
    return native(size, lambda i: two(SIGNAL, i, i % 50 + 2, 1))


@shape
def many_waiters_of_one_condition(size):
    def turn(i):
        return create(4 * i, 1, i + 2, WAIT) + two(AWAIT, 4 * i + 1, i + 2, 1) + (two(SIGNAL_ONLY, 4 * i + 2, -1, 1) if i % 5 == 0 else b'')
    return native(size, lambda i: create(0, -1, 1, CONDITION) if i == 0 else turn(i))


@shape
def tasks_take_locks_in_different_orders(size):
    """Tasks that take locks in different orders, all of them waiting at the end."""
    return native(size, lambda i: create(4 * i, -1, 2 * i + 100, LOCK if i < 40 else TASK) +
                  two(AWAIT, 4 * i + 1, 2 * i + 100, 100 + 2 * (i * 31 % 40)) + two(AWAIT, 4 * i + 2, 2 * i + 100, 100 + 2 * (i * 17 % 40)))


@shape
def choices(size):
    return native(size, lambda i: (create(i, -1, i + 1, CHOOSE) if i % 40 == 0 else b'') + two(AWAIT, i, i - i % 40 + 1, i + 2))


@shape
def one_promise_resolves_many(size):
    return native(size, lambda i: create(2 * i, 1, i + 2, REQUEST) + two(RESOLVE, 2 * i + 1, 1, i + 2))


@shape
def one_promise_is_resolved_many_times(size):
    return native(size, lambda i: two(RESOLVE, i, i % 3 + 2, 1))


@shape
def many_failures_with_different_errors(size):
    return native(size, lambda i: create(2 * i, -1, i + 1) + fail(2 * i + 1, max(i, 1), i + 1, b'error %d' % i))


@shape
def one_error_passes_along_a_long_chain(size):
    return native(size, lambda i: create(3 * i, max(i, 1), i + 1, BIND) + two(AWAIT, 3 * i + 1, i + 1, i + 2) + fail(3 * i + 2, i + 2, i + 1, b'error'))


@shape
def many_tasks_with_the_should_resolve_mark(size):
    return native(size, lambda i: create(2 * i, -1, i + 1) + one(SHOULD_RESOLVE, 2 * i + 1, i + 1))


# ---- Creators, runs, rows ----

@shape
def each_promise_creates_the_next(size):
    return native(size, lambda i: create(i, i, i + 1))


@shape
def one_promise_creates_many(size):
    return native(size, lambda i: create(i, 1, i + 2))


@shape
def every_second_promise_stays_pending(size):
    return native(size, lambda i: create(3 * i, -1, i + 1) + (two(RESOLVE, 3 * i + 1, -1, i + 1) if i % 2 else b''))


@shape
def nested_lifetimes(size):
    return counted(size, 29, lambda n: [create(i, -1, i + 1) for i in range(n)] + [two(RESOLVE, n + i, -1, n - i) for i in range(n)])


@shape
def lifetimes_overlap_like_stairs(size):
    return counted(size, 29, lambda n: [create(2 * i, max(i - 1, -1), i + 1) + (two(RESOLVE, 2 * i + 1, -1, i - n // 2) if i > n // 2 + 1 else b'') for i in range(n)])


@shape
def creation_trees_of_all_sizes(size):
    return native(size, lambda i: create(2 * i, i & (i + 1) or -1, i + 1) + (two(RESOLVE, 2 * i + 1, -1, i * 7919 % (i + 1) + 1)))


@shape
def two_promises_run_alternately(size):
    return native(size, lambda i: one(RUN, 10 * i, i % 2 + 1))


@shape
def many_stalls_with_one_victim_each(size):
    """Stalls, each with a promise that waits through it."""
    def turn(i):
        t = 200000000 * i
        return struct.pack('<BBQiiBH', 255, CREATE, t, -1, i + 2, TIMER, 0) + one(RUN, t + 1000, 1) + two(RESOLVE, t + 100000000, -1, i + 2) + one(RUN, t + 150000000, i + 2)
    return native(size, turn)


@shape
def many_ready_promises_never_run(size):
    def turn(i):
        return create(4 * i, -1, 2 * i + 2) + create(4 * i, -1, 2 * i + 3) + two(AWAIT, 4 * i + 1, 2 * i + 2, 2 * i + 3) + two(RESOLVE, 4 * i + 2, 1, 2 * i + 3)
    return native(size, turn)


@shape
def many_types_of_leaked_requests(size):
    return native(size, lambda i: create(50000 * i, -1, i + 1, REQUEST) + label(50000 * i, i + 1, b'sort %d of it' % (i % 900)))


# ---- Sleeps and pauses ----

@shape
def sleeps(size):
    return native(size, lambda i: struct.pack('<BIB', IDLE, 2 * i, i % 4) if i % 2 else one(RESUME, 2 * i, 1))


@shape
def many_streams_with_frequent_sleeps(size):
    def stream(i):
        return packet(until(2000, lambda k: struct.pack('<BIB', IDLE, 1000 * k + i, 0) + one(RESUME, 1000 * k + i + 500, i + 1)), stream=i)
    return until(size, stream)


@shape
def deeply_nested_pauses(size):
    half = until(size // 2, lambda i: struct.pack('<BIH', PAUSE_BEGIN, i, 1))
    return native(size // 2, lambda i: half if i == 0 else struct.pack('<BI', PAUSE_END, size + i), string(1, b'gc'))


@shape
def many_overlapping_pauses(size):
    return native(size, lambda i: struct.pack('<BIiH', PAUSE, 10 * i, 10 * i, 1), string(1, b'gc'))


@shape
def many_pause_ends_without_a_begin(size):
    return native(size, lambda i: struct.pack('<BI', PAUSE_END, i))


# ---- Sites and state dumps ----

@shape
def sites(size):
    known = until(size // 2, lambda i: site(i % 65535 + 1, i, b'file-%d.c' % i, b'function_%d' % i))
    return native(size, lambda i: create(i, -1, i + 1, TASK, i % 65535 + 1), known)


@shape
def site_bomb(size):
    return native(size, lambda i: create(i, -1, i + 1, TASK, 1), site(1, 1, b'f' * (size // 4), b'g' * (size // 4)))


@shape
def pending_again(size):
    return native(size, lambda i: pending(1000 + i, -1, i % 100 + 1, i))


@shape
def pending_backwards(size):
    return native(size, lambda i: pending(1 << 30, max(i - 1, -1), i + 1, (1 << 30) - i))


@shape
def checkpoint_with_waits_of_many_promises(size):
    return counted(size, 13, lambda n: [two(STILL_AWAITS, i, i % int(n ** 0.5) + 1, i * 7919 % n + 1) for i in range(n)])


@shape
def checkpoint_repeats_known_awaits(size):
    return native(size, lambda i: two(AWAIT, i, 1, 2) if i % 3 == 0 else two(STILL_AWAITS, i, i % 50 + 1, i % 49 + 2))


# ---- Mirage, S-expressions ----

def mirage_packet(content, count):
    bits = 8 * (30 + len(content))
    return bytes.fromhex('C11FFCC105883b8d521a487bb397456ab150680c') + struct.pack('<IHI', bits, count & 0xffff, bits) + content


@shape
def mirage_id_hashes_collide(size):
    return mirage_packet(until(size, lambda i: struct.pack('<QBqq', i, AWAIT, colliding_id(2 * i), colliding_id(2 * i + 1))), 0)


@shape
def mirage_text_hashes_collide(size):
    return mirage_packet(until(size, lambda i: struct.pack('<QBq', i, LABEL, 1) + colliding_text(i) + b'\0'), 0)


@shape
def mirage_packets(size):
    return until(size, lambda i: mirage_packet(struct.pack('<QBq', i, RUN, i + 1), i))


@shape
def mirage_packets_in_reverse_order(size):
    return until(size, lambda i: mirage_packet(struct.pack('<QBq', size - i, RUN, i + 1), -i))


@shape
def mirage_beginnings(size):
    return mirage_packet(struct.pack('<QBq', 1, RUN, 1), 0) + mirage_packet(b'', 1)[:24] * (size // 24)


SEXP = b'((time 0.1)(op(Creates -1 1 Task)))\n'


@shape
def sexp_text_hashes_collide(size):
    return SEXP + until(size, lambda i: b'((time %d)(op(Label 1 "\\"%s")))\n' % (i, colliding_text(i).replace(b'\n', b' ')))


@shape
def sexp_labels_with_escape_sequences(size):
    return SEXP + until(size, lambda i: b'((time %d)(op(Label %d "\\n\\065%d")))\n' % (i, i, i))


@shape
def sexp_parentheses(size):
    return SEXP + b'(' * size


@shape
def sexp_many_empty_lists(size):
    return SEXP + b'()\n' * (size // 3)


@shape
def sexp_one_long_line(size):
    return SEXP + b'((time 1)(op(Label 1 ' + b'x ' * (size // 2)


@shape
def sexp_many_unclosed_quotes(size):
    return SEXP + b'((time 1)(op(Label 1 "' * (size // 22)


@shape
def sexp_many_reads_of_one_promise(size):
    return SEXP + until(size, lambda i: b'((time %d)(op(Reads %d 1)))\n' % (i, i + 2))


# ---- Images of memory ----

def elf_core(segments, total):
    """A core dump whose program headers are these: (address, offset, bytes)."""
    header = struct.pack('<16sHHIQQQIHHHHHH', b'\x7fELF\x02\x01\x01', 4, 62, 1, 0, 64, 0, 0, 64, 56, min(len(segments), 65534), 0, 0, 0)
    return header + b''.join(struct.pack('<IIQQQQQQ', 1, 4, offset, address, 0, size, size, 1) for address, offset, size in segments) + total


@shape
def image_with_many_rings(size):
    def ring(i):
        return bytes(8) + packet(b'', kind=2, uuid=struct.pack('<QQ', i, 1)) + packet(one(RUN, i, i + 1), uuid=struct.pack('<QQ', i, 1))
    def aligned(i):
        part = ring(i)
        return part + bytes(-len(part) % 8)
    return bytes(64) + until(size, aligned)


@shape
def image_with_many_copies_of_one_packet(size):
    part = packet(one(RUN, 0, 1))
    return bytes(64) + (part + bytes(-len(part) % 8)) * (size // 176)


@shape
def image_with_many_truncated_packets(size):
    part = packet(b'', size=8 << 30)[:40]
    return bytes(64) + part * (size // 40) + packet(one(RUN, 0, 1))


@shape
def core_dump_with_many_small_segments(size):
    count = min(size // 120, 65000)
    part = packet(one(RUN, 0, 1))
    return elf_core([(4096 + 64 * i, 64 + 56 * count + 64 * i, 64) for i in range(count)], part * (64 * count // len(part)))


@shape
def core_dump_segments_share_one_file_range(size):
    count = min(size // 60, 65000)
    return elf_core([(4096 * i, 64 + 56 * count, 4 * count) for i in range(count)], packet(one(RUN, 0, 1)) * (4 * count // HEADER + 1))


# ---- Archives and directories ----

def tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=tarfile.GNU_FORMAT) as archive:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


@shape
def archive_with_many_small_files(size):
    return tar([(f'stream-0-{i}', packet(one(RUN, i, i + 1), sequence=i, before=i)) for i in range(max(2, size // 1024))])


@shape
def archive_with_many_files_of_one_name(size):
    return tar([('stream-0-0', packet(one(RUN, i, i + 1), sequence=i, before=i)) for i in range(max(2, size // 1024))])


@shape
def archive_with_long_file_names(size):
    return tar([('n' * 3000 + str(i), packet(one(RUN, i, i + 1), sequence=i, before=i)) for i in range(max(2, size // 6000))])


@shape
def archive_with_many_directories(size):
    return tar([(f'd{i}/{name}', content) for i in range(max(2, size // 2048))
                for name, content in (('metadata', b'/* CTF 1.8 */'), ('stream-0-0', packet(one(RUN, i, i + 1))))])


@shape
def directory_with_many_small_files(size):
    return {f'stream-0-{i}': packet(one(RUN, i, i + 1), sequence=i, before=i) for i in range(max(2, size // 180))} | {'metadata': b'/* CTF 1.8 */'}


# ---- Invalid traces ----

@shape
def noise(size):
    return packet(one(RUN, 0, 1)) + random.Random(3).randbytes(size)


@shape
def noise_of_magic(size):
    return packet(one(RUN, 0, 1)) + b'\xc1\x1f\xfc\xc1' * (size // 4)
