#!/usr/bin/env python3
"""Programs of OCaml 5 and Eio: what hangs is explained, what is healthy is not blamed.

	eio_test.py WEFT GENERATOR SHARED

SPDX-License-Identifier: ISC"""

import lzma
import os
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
    assert lines(run('dump', path), ' timer ', '"sleep"', 'resolved'), 'no sleep that is over'


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


with tempfile.TemporaryDirectory(prefix='weft-eio-') as folder:
    for test in real_recordings, generated, collections_are_to_blame:
        test(folder)
