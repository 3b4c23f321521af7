#!/usr/bin/env python3
"""Programs of OCaml 5 and Eio: what hangs is explained, what is healthy is not blamed.

	eio_test.py WEFT GENERATOR SHARED

SPDX-License-Identifier: ISC"""

import gzip
import json
import lzma
import os
import re
import subprocess
import sys
import tempfile

weft, generator, shared = map(os.path.abspath, sys.argv[1:])


def run(*words, status=0):
    done = subprocess.run([weft, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr[-2000:])
    return done.stdout


def lines(text, *words):
    return [line for line in text.splitlines() if all(word in line for word in words)]


def hangs(path):
    """The promise that nobody resolves, the fiber that waits for it, the one behind its mutex, their switch."""
    said = run('explain', path)  # it was killed: so it is no more than likely
    assert said.startswith('hang (not certain)'), said
    assert '"fiber 1"' in said.splitlines()[0] and 'nobody ever tried to resolve' in said.splitlines()[0], said
    assert '"reply of the server"' in said.splitlines()[0], said
    waits = run('waits', path)
    order = [waits.index(f'"{name}"') for name in ('main', 'fiber 6', 'mutex 3')]
    assert order == sorted(order) and '"fiber 5"' in waits[order[-1]:], waits
    dump = run('dump', path)
    assert lines(dump, ' timer ', '"sleep"', 'resolved'), 'no sleep that is over'
    # Whoever waits when all ends is there until then, also in pictures, and what it waits for.
    ends = {float(lines(dump, f'"{name}"')[0].split(' .. ')[1].split()[0]) for name in ('reply of the server', 'main', 'fiber 1', 'fiber 5', 'fiber 6')}
    assert max(ends) - min(ends) < 0.001, dump


def is_silent(path):
    said = run('explain', path)
    assert said == '', said


def fails_where_it_did(path):
    """Who failed did, and its switch; their brothers were cancelled, and whatever was no longer needed is no failure."""
    is_silent(path)
    dump = run('dump', path)
    assert len(lines(dump, 'failed "Refused(no such host)"')) == 2, dump
    for fiber in '"fiber 5"', '"fiber 6"':
        assert lines(dump, ' coroutine ', fiber, 'failed "cancelled"'), dump
    assert lines(dump, ' switch ', '"any"', 'resolved') and not lines(dump, 'failed "Eio__core__Fiber.Not_first"'), dump


def spans_domains(path):
    is_silent(path)
    dump = run('dump', path)
    assert len(lines(dump, ' thread ', '"domain"', 'resolved')) >= 3, dump
    assert lines(dump, 'pause "gc, minor, all domains stop"'), dump
    answer = lines(dump, '"from the other domain"')[0].split()[1]
    assert '"fiber 1' in run('path', path, f'--promise={answer}'), 'the path does not lead to the other domain'
    info = run('info', path)
    assert '#0 domain 0' in info and '#1 domain 1' in info, info


def collections_are_to_blame(folder):
    path = os.path.join(folder, 'garbage.events')
    subprocess.run([generator, 'garbage', path], check=True, timeout=60)
    said = run('explain', path, status=1)
    assert said.startswith('stall: a pause (gc, minor, all domains stop)') and '1 other was ready' in said and 'make less garbage' in said, said


WANTED = {'hang': hangs, 'cancelled': fails_where_it_did, 'domains': spans_domains, 'pipeline': is_silent, 'wrapped': is_silent,
          'kinds': is_silent, 'kinds-5.3': is_silent}


def real_recordings(folder):
    for name, test in WANTED.items():
        path = os.path.join(shared, 'ocaml-lab', 'data', name + '.events.xz')
        if not os.path.exists(path):
            print(f'{name}: skipped, not in {shared}')
            continue
        trace = os.path.join(folder, name)
        with lzma.open(path) as packed, open(trace, 'wb') as f:
            f.write(packed.read())
        test(trace)


def generated(folder):
    trace = os.path.join(folder, 'generated')
    for name, test in WANTED.items():
        shape = {'wrapped': 'pipeline', 'kinds-5.3': 'kinds'}.get(name, name)
        for options in ('--domains=4',), ('--domains=4', '--big', '--newer'):
            more = ['--words=256', '--count=100'] if name == 'wrapped' else []
            subprocess.run([generator, shape, trace, *options, *more], check=True, timeout=60)
            test(trace)


def fibers_of(path):
    """Who ran how often, and slept how often."""
    found = []
    for line in lines(run('dump', path), 'promise '):
        kind = line.split()[2]
        if kind in ('coroutine', 'timer'):
            found.append((kind, re.search(r'"(fiber \d+|sleep)"', line)[1], (re.search(r'ran \d+x', line) or [''])[0]))
    return sorted(found)


def fxt_has_the_same_fibers(folder):
    """What eio-trace wrote is poorer, and says so."""
    for name in 'hang', 'cancelled', 'domains', 'pipeline':
        data = os.path.join(shared, 'ocaml-lab', 'data', name)
        if not os.path.exists(data + '.fxt'):
            print(f'{name}.fxt: skipped, not in {shared}')
            continue
        trace = os.path.join(folder, name)
        with lzma.open(data + '.events.xz') as packed, open(trace, 'wb') as f:
            f.write(packed.read())
        assert fibers_of(trace) == fibers_of(data + '.fxt') != [], name
        if name != 'hang':
            is_silent(data + '.fxt')
    made = os.path.join(folder, 'made.fxt')
    subprocess.run([generator, 'fxt', made], check=True, timeout=60)
    assert fibers_of(made) == [('coroutine', 'fiber 1', 'ran 3x'), ('coroutine', 'fiber 2', 'ran 2x'), ('timer', 'sleep', '')], fibers_of(made)
    is_silent(made)
    assert 'mutexes' in json.loads(run('info', '--json', made))['lacks']
    assert lines(run('info', made), 'lacks', 'promises, mutexes, semaphores'), run('info', made)


def packed_is_as_it_was(folder):
    """What gzip packed is read as it is, from a file and from a pipe; of one that is cut off what there is, of a damaged one a line."""
    made, packed = os.path.join(folder, 'made.fxt'), os.path.join(folder, 'made.fxt.gz')
    subprocess.run([generator, 'fxt', made], check=True, timeout=60)
    with open(made, 'rb') as f:
        plain = f.read()
    wanted = run('dump', made)

    def write(content):
        with open(packed, 'wb') as f:
            f.write(content)

    write(gzip.compress(plain))
    assert run('dump', packed) == wanted != ''
    write(gzip.compress(plain[:100]) + gzip.compress(plain[100:]))  # as `cat a.gz b.gz` has it
    assert run('dump', packed) == wanted
    with open(packed, 'rb') as f:
        piped = subprocess.run([weft, 'dump', '-'], stdin=f, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    assert piped.stdout == wanted
    events = os.path.join(folder, 'large.events')
    subprocess.run([generator, 'fibers', events, '--domains=2', '--count=1000'], check=True, timeout=60)
    with open(events, 'rb') as f:
        write(gzip.compress(f.read()))
    assert os.path.getsize(packed) > 4096 and run('dump', packed) == run('dump', events)
    whole = gzip.compress(plain)
    write(whole[:-20])
    done = subprocess.run([weft, 'dump', packed], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=True)
    assert '"fiber 1"' in done.stdout and 'skipped' in done.stderr and done.stderr.count('\n') == 1, done
    for content, words, says in ((whole[:60] + b'\xff' * 40 + whole[100:], [], 'damaged'), (gzip.compress(plain + bytes(2_000_000)), ['--limit=1M'], '--limit')):
        write(content)
        done = subprocess.run([weft, 'info', *words, packed], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 2 and says in done.stderr and done.stderr.count('\n') == 1, done


def others_get_a_clear_line(folder):
    magic = 0x0016547846040010.to_bytes(8, 'little')
    for content, wanted in (magic, "not one of eio-trace's"), (b'{"traceEvents":[]}', 'ui.perfetto.dev'), \
            (gzip.compress(magic), "not one of eio-trace's"), (gzip.compress(b'{"traceEvents":[]}'), 'ui.perfetto.dev'):
        path = os.path.join(folder, 'other')
        with open(path, 'wb') as f:
            f.write(content)
        done = subprocess.run([weft, 'info', path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 2 and wanted in done.stderr and done.stderr.count('\n') == 1, done


with tempfile.TemporaryDirectory(prefix='weft-eio-') as folder:
    for test in real_recordings, generated, collections_are_to_blame, fxt_has_the_same_fibers, packed_is_as_it_was, others_get_a_clear_line:
        test(folder)
