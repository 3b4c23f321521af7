#!/usr/bin/env python3
"""Programs of Lwt 6: weft reads each event as OCaml's own reader does, and names the source line of hanging or slow waits.

	lwt_test.py WEFT GENERATOR SHARED

SPDX-License-Identifier: ISC"""

import json
import lzma
import os
import re
import subprocess
import sys
import tempfile

weft, generator, shared = map(os.path.abspath, sys.argv[1:])
data = os.path.join(shared, 'lwt-lab', 'data')


def run(*words, status=0):
    done = subprocess.run([weft, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr[-2000:])
    return done.stdout


def explain(path, *words):
    """Returns the findings.  All of them are uncertain, because they rest on inferences, so the exit status must be 0."""
    return [json.loads(line) for line in run('explain', '--json', path, *words).splitlines()]


def titles(path):
    return [(f['finding'], f['title']) for f in explain(path)]


def generate(shape, path, *options):
    subprocess.run([generator, shape, path, '--domains=2', *options], check=True, timeout=60)
    return path


def promises(path):
    return [p for p in map(json.loads, run('dump', '--json', path).splitlines()) if 'kind' in p]


def unpack(name, folder):
    """Unpacks a recording; returns its path, or None if it is missing."""
    packed, path = os.path.join(data, name + '.events.xz'), os.path.join(folder, name + '.events')
    if not os.path.exists(packed):
        print(f'{name}: skipped, not in {data}')
        return None
    with lzma.open(packed) as f, open(path, 'wb') as out:
        out.write(f.read())
    return path


def lwt_events_equal_the_events_read_by_ocaml(folder):
    if not os.path.isdir(data):
        print(f'recordings of Lwt: skipped, no {data}')
        return
    for name in sorted(file[:-len('.events.xz')] for file in os.listdir(data) if file.endswith('.events.xz')):
        words = [line.split(' ', 3) for line in run('events', '--recorded', unpack(name, folder)).splitlines()]
        got = [f'{w[1]} {w[0]} {w[3]}' for w in words if len(w) == 4 and w[3].startswith('lwt-')]
        with open(os.path.join(data, name + '.txt'), encoding='utf-8') as f:
            wanted = f.read().splitlines()
        for number, (a, b) in enumerate(zip(wanted, got), 1):
            assert a == b, f'{name}, line {number}: {b!r}, not {a!r}'
        assert len(wanted) == len(got), (name, len(wanted), len(got))
        print(f'{name}: {len(got)} events')


def real_hang_is_named(folder):
    path = unpack('hang', folder)
    if not path:
        return
    hang, = explain(path)
    assert hang['finding'] == 'hang' and not hang['sure'] and 'hang.ml:6' in hang['title'] and 'Lwt_main.run' in hang['title'], hang
    said = run('explain', path)
    assert '(hang.ml:5) creates' in said and 'hang.ml:8' not in said, said  # line 8 is a heartbeat, which does not hang
    assert re.search(r'hang\.ml:6 .*\(inferred\)', run('waits', path)), run('waits', path)


def real_server_is_explained(folder):
    path = unpack('server', folder)
    if not path:
        return
    found = titles(path)
    assert len(found) == 2, found
    assert any(kind == 'slow' and 'server.ml:6' in title for kind, title in found), found
    assert any(kind == 'stall' and 'server.ml:14' in title for kind, title in found), found
    slow = next(title for kind, title in found if kind == 'slow')
    said = run('explain', path)
    least, most = int(re.search(r'took at least (\d+) ms', slow)[1]), int(re.search(r'may have taken up to (\d+) ms', said)[1])
    assert 100 <= least <= 200 <= most, (least, most)  # the program slept for 200 ms at this line
    assert '(server.ml:6) was called at server.ml:10, called at server.ml:17' in said, said
    assert 'runs on to the next wait, at server.ml:6, called at server.ml:10, called at server.ml:17' in run('explain', path)


def real_contexts_are_named(folder):
    path = unpack('context', folder)
    if not path:
        return
    slowest = {name: float(ms) for name, ms in re.findall(r'6 x wait "(.*)": .*slowest ([\d.]+) ms', run('explain', path))}
    assert max(slowest, key=slowest.get) == 'GET /slow' and 150 <= slowest['GET /slow'] < 170, slowest


def hang_is_named_with_its_callers(folder):
    path = generate('lwt-hang', os.path.join(folder, 'hang'), '--count=30')
    hang, = explain(path)
    assert hang['finding'] == 'hang' and 'store.ml:12' in hang['title'] and not hang['sure'], hang
    said = run('explain', path)
    assert '(store.ml:30) creates' in said and 'store.ml:40' not in said, said
    waits = run('waits', path)
    order = [waits.index(name) for name in ('Lwt_main.run', 'store.ml:31', 'store.ml:12')]
    assert order == sorted(order) and waits.count('(inferred)') == 2 and 'store.ml:40' not in waits, waits


def slow_lookup_is_found(folder):
    path = generate('lwt-server', os.path.join(folder, 'server'), '--count=30')
    assert [('slow', True)] == [(kind, 'query.ml:7' in title) for kind, title in titles(path)], titles(path)
    stall = next(f for f in explain(path, '--stall=30ms') if f['finding'] == 'slow')
    assert not stall['sure'] and 'infers' in stall['doubt'], stall
    waits = [p for p in promises(path) if p['kind'] == 'wait']
    assert len(waits) == 1 + 30 * 4 + 1 and all(p['end'] in ('resolved', 'became') for p in waits), len(waits)
    info = json.loads(run('info', '--json', path))
    assert info['runtimes'] == 'OCaml 5, Lwt' and '>>=' in info['lacks'], info
    assert re.search(r'counter "Lwt: jobs of the thread pool"  \d+ values, 0 .. 2', run('dump', path))
    loops = [p for p in promises(path) if p['kind'] == 'loop']
    assert len(loops) == 1 and loops[0]['labels'][0][1] == 'Lwt_main.run', loops
    assert 'event loop ' in run('explain', generate('lwt-contexts', os.path.join(folder, 'c'), '--count=1'))


def callers_of_a_slow_wait_are_found_among_waits_at_the_same_line(folder):
    """The callers of a slow wait are found by the order of ends, although other waits at the same line began later and ended before."""
    path = generate('lwt-callers', os.path.join(folder, 'callers'), '--count=30')
    slow, = explain(path)
    assert slow['finding'] == 'slow' and not slow['sure'] and 'took 290 ms' in slow['title'] and '(page.ml:5)' in slow['title'], slow
    texts = [e['text'] for e in slow['evidence']]
    assert any(t.endswith('the wait (page.ml:5) was called at page.ml:10, called at page.ml:20') for t in texts), texts
    assert not any('may have taken' in t for t in texts), texts


def times_of_equal_requests_have_bounds(folder):
    """If requests of the same source lines have no contexts, only a range is known for the duration of the slowest, which took 240 ms."""
    path = generate('lwt-requests', os.path.join(folder, 'requests'), '--count=30')
    slow, = explain(path)
    assert slow['finding'] == 'slow' and not slow['sure'] and 'took at least 153 ms' in slow['title'], slow
    texts = [e['text'] for e in slow['evidence']]
    assert any('may have taken up to 240 ms' in t for t in texts) and any('called at site.ml:17' in t for t in texts), texts


def names_of_contexts_become_labels(folder):
    path = generate('lwt-contexts', os.path.join(folder, 'contexts'), '--count=20')
    (kind, title), = titles(path)
    assert kind == 'slow' and '"job "0""' in title and 'jobs.ml:3' in title, title


def names_longer_than_255_bytes_are_read(folder):
    """Lwt writes the length of a context or of a file's name modulo 256."""
    path = generate('lwt-long', os.path.join(folder, 'long'), '--count=1')
    events = run('events', '--recorded', path)
    assert f'begin long.ml:14 context="{"z" * 600}"' in events and f'begin {"deep/" * 60}long.ml:14 context=-' in events, events
    labels = {p['labels'][0][1] for p in promises(path) if p['kind'] == 'wait' and p['labels']}
    assert {'y' * 300, 'z' * 600, 'a'} <= labels, labels


def endless_loop_of_a_daemon_is_underway_and_not_a_hang(folder):
    """A signal ends a program whose main promise waits for an endless loop; one turn of the loop is pending."""
    path = generate('lwt-daemon', os.path.join(folder, 'daemon'), '--count=60')
    found, = explain(path)
    assert found['finding'] == 'underway' and 'guard.ml:8' in found['title'], found
    assert any('(guard.ml:3) has been pending for 1.20 s: it waits for the loop (guard.ml:8), which continues, or' in e['text'] for e in found['evidence']), found


def hang_of_a_stream_consumer_lists_the_pending_wait_of_the_producer(folder):
    """Nothing shows that the consumer of a stream waits for its producer, so a hang of the consumer lists the wait of the producer."""
    path = generate('lwt-stream', os.path.join(folder, 'stream'), '--count=30')
    hang, = explain(path)
    assert hang['finding'] == 'hang' and 'stream.ml:15' in hang['title'] and 'infers' in hang['doubt'], hang
    assert any('(stream.ml:8) waits for wait' in e['text'] and '(stream.ml:5), which is pending too' in e['text'] for e in hang['evidence']), hang


def lwt_waits_started_together_do_not_wait_for_each_other(folder):
    path = generate('lwt-together', os.path.join(folder, 'together'), '--count=4')
    ids = {p['promise']: p['site'] for p in promises(path) if p['kind'] == 'wait'}
    links = [json.loads(line) for line in run('events', '--json', path).splitlines() if '"op":"await"' in line]
    pairs = [(ids[e['promise']]['line'], ids[e['input']]['line']) for e in links if e['promise'] in ids]
    assert len(links) == 5 and pairs == [(11, 5)] * 4, (links, pairs)
    marked = [p for p in promises(path) if p.get('inferred')]
    assert len([p for p in marked if p['kind'] == 'wait']) == 5, marked


def awaited_lwt_waits_are_found_by_the_order_of_their_ends(folder):
    """In `let%lwt a = f () and b = g () in`, the outer wait seems to await g at its start; that the end of f wakes it shows that it awaits f."""
    path = generate('lwt-both', os.path.join(folder, 'both'))
    lines = {p['promise']: p['site']['line'] for p in promises(path) if p['kind'] == 'wait'}
    links = [json.loads(line) for line in run('events', '--json', path).splitlines()]
    awaits = [(lines[e['promise']], lines[e['input']]) for e in links if e['op'] == 'await' and e['promise'] in lines]
    reads = [(lines[e['promise']], lines[e['input']]) for e in links if e['op'] == 'read' and e['promise'] in lines]
    assert awaits == [(9, 3), (9, 6)] and reads == [(9, 3), (9, 6)], (awaits, reads)
    assert titles(path) == [], titles(path)


def one_hanging_job_of_many_is_named(folder):
    """Lwt_main.run waits for the only job that has not ended."""
    path = generate('lwt-jobs', os.path.join(folder, 'jobs'), '--count=20')
    hang, = explain(path)
    assert hang['finding'] == 'hang' and 'jobs.ml:2' in hang['title'] and 'nothing tried to resolve' in hang['title'], hang
    waits = run('waits', path)
    assert [line.split('  since')[0].split('at ')[-1] for line in waits.splitlines()[1:]] == ['jobs.ml:5', 'jobs.ml:2'], waits


def get_hang_title_and_places(path):
    """Returns the title of the only finding, and the places in the output of weft waits."""
    hang, = explain(path)
    assert hang['finding'] == 'hang' and not hang['sure'], hang
    return hang['title'], re.findall(r' at (\S+)', run('waits', path))


def outer_context_waits_for_the_inner_one(folder):
    """A request with a context waits for a query that has a context of its own."""
    for count in 0, 5:  # number of requests before the one that hangs
        path = generate('lwt-nested', os.path.join(folder, 'nested'), f'--count={count}')
        title, places = get_hang_title_and_places(path)
        assert '"query" (shop.ml:4)' in title and places == ['shop.ml:9', 'shop.ml:4'], (title, places)
    lines = {p['promise']: p['site']['line'] for p in promises(path) if p['kind'] == 'wait'}
    links = [json.loads(line) for line in run('events', '--json', path).splitlines() if '"op":"read"' in line]
    assert [(lines[e['promise']], lines[e['input']]) for e in links] == [(9, 4)] * 5, links


def cancelled_work_is_no_finding(folder):
    """Lwt.pick cancels the work whose timer ends first."""
    path = generate('lwt-pick', os.path.join(folder, 'pick'), '--count=20')
    assert titles(path) == [], titles(path)


def hang_in_a_pool_names_the_user_waiting_for_the_query(folder):
    """A query of a pool's user never ends; the finding names the user that waits for the query, and not the user whose end started it."""
    for count in 1, 5, 6:
        title, places = get_hang_title_and_places(generate('lwt-pool', os.path.join(folder, 'pool'), f'--count={count}'))
        assert '(pool.ml:3)' in title and places == ['pool.ml:12', 'pool.ml:3', 'pool.ml:12', 'pool.ml:12'], (count, title, places)


def lwt_waits_inside_an_eio_fiber_are_read_without_findings(folder):
    path = generate('lwt-eio', os.path.join(folder, 'eio'))
    assert titles(path) == [], titles(path)
    assert json.loads(run('info', '--json', path))['runtimes'] == 'OCaml 5, Eio, Lwt'
    kinds = {p['kind'] for p in promises(path)}
    assert {'coroutine', 'wait', 'loop', 'thread'} <= kinds, kinds
    dump = run('dump', path)
    assert re.search(r'"fiber 1".*resolved|resolved.*"fiber 1"', dump) and 'never' not in dump, dump


def ended_wait_with_an_overwritten_start_is_no_hang(folder):
    """Waits whose start the ring has overwritten are not reported when they end."""
    path = generate('lwt-server', os.path.join(folder, 'wrapped'), '--words=256', '--count=100')
    assert titles(path) == [], titles(path)
    assert 'wait' in {p['kind'] for p in promises(path)}
    for shape in 'lwt-callers', 'lwt-requests', 'lwt-pick':
        path = generate(shape, os.path.join(folder, 'wrapped'), '--words=256', '--count=100')
        assert all('took' in title and kind == 'slow' for kind, title in titles(path)), titles(path)
    title, _ = get_hang_title_and_places(generate('lwt-pool', os.path.join(folder, 'wrapped'), '--words=2048', '--count=60'))
    assert 'pool.ml:3' in title, title


def user_events_of_ocaml_are_shown_as_bytes_or_text(folder):
    path = generate('kinds', os.path.join(folder, 'kinds'))
    events = run('events', path)
    assert 'own.bytes: 00010203' in events, events
    assert 'own.text: plain text, 12 µs' in events, events
    info = run('info', path)
    assert re.search(r'unread +own\.bytes 10\n', info), info
    assert json.loads(run('info', '--json', path))['unread'] == 'own.bytes 10'


def damaged_wait_is_shown_as_unread_or_with_a_shorter_file_name(folder):
    """If the bytes of a wait are damaged, weft shows them as unread bytes or as a wait with a shorter file name."""
    path = generate('lwt-hang', os.path.join(folder, 'cut'), '--short')
    with open(path, 'rb') as f:
        content = bytearray(f.read())
    at = content.index(b'B\0\0\x28')
    for change, wanted in ((b'X', 'unread'), (b'B\xff', 'unread'), (b'B\0\0\x28\xff', 'store.ml:40')):
        bad = bytearray(content)
        bad[at:at + len(change)] = change
        with open(path, 'wb') as f:
            f.write(bad)
        assert wanted in run('info', path) + run('events', '--recorded', path), change
        run('explain', path)


with tempfile.TemporaryDirectory(prefix='weft-lwt-') as scratch:
    for test in (lwt_events_equal_the_events_read_by_ocaml, real_hang_is_named, real_server_is_explained, real_contexts_are_named, hang_is_named_with_its_callers,
                 slow_lookup_is_found, callers_of_a_slow_wait_are_found_among_waits_at_the_same_line, times_of_equal_requests_have_bounds, names_of_contexts_become_labels, names_longer_than_255_bytes_are_read,
                 endless_loop_of_a_daemon_is_underway_and_not_a_hang, hang_of_a_stream_consumer_lists_the_pending_wait_of_the_producer, lwt_waits_started_together_do_not_wait_for_each_other, awaited_lwt_waits_are_found_by_the_order_of_their_ends, one_hanging_job_of_many_is_named,
                 outer_context_waits_for_the_inner_one, cancelled_work_is_no_finding, hang_in_a_pool_names_the_user_waiting_for_the_query, lwt_waits_inside_an_eio_fiber_are_read_without_findings, ended_wait_with_an_overwritten_start_is_no_hang,
                 user_events_of_ocaml_are_shown_as_bytes_or_text, damaged_wait_is_shown_as_unread_or_with_a_shorter_file_name):
        test(scratch)
