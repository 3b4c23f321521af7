#!/usr/bin/env python3
"""Programs of OCaml 5 and Eio: weft explain names the cause of a hang, and has no finding for a healthy program.

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


def matching_lines(text, *words):
    return [line for line in text.splitlines() if all(word in line for word in words)]


def assert_hang(path):
    """Checks that weft names the unresolved promise, the fiber that awaits it, the fiber that waits for the mutex of that fiber, and their switch."""
    said = run('explain', path)  # the program was killed, so the finding is uncertain
    assert said.startswith('hang (uncertain)'), said
    assert '"fiber 1"' in said.splitlines()[0] and 'nothing tried to resolve' in said.splitlines()[0], said
    assert '"reply of the server"' in said.splitlines()[0], said
    waits = run('waits', path)
    order = [waits.index(f'"{name}"') for name in ('main', 'fiber 6', 'mutex 3')]
    assert order == sorted(order) and '"fiber 5"' in waits[order[-1]:], waits
    dump = run('dump', path)
    assert matching_lines(dump, ' timer ', '"sleep"', 'resolved'), 'no sleep that is over'
    # A promise that still waits at the end of the trace lasts until this end, and so does its input.
    ends = {float(matching_lines(dump, f'"{name}"')[0].split(' .. ')[1].split()[0]) for name in ('reply of the server', 'main', 'fiber 1', 'fiber 5', 'fiber 6')}
    assert max(ends) - min(ends) < 0.001, dump


def assert_no_findings(path):
    said = run('explain', path)
    assert said.startswith('nothing found: '), said


def assert_failure_site(path):
    """Checks that a failed fiber and its switch are failed, that its sibling fibers are cancelled, and that a fiber that is no longer needed has not failed."""
    assert_no_findings(path)
    dump = run('dump', path)
    assert len(matching_lines(dump, 'failed "Refused(no such host)"')) == 2, dump
    for fiber in '"fiber 5"', '"fiber 6"':
        assert matching_lines(dump, ' coroutine ', fiber, 'failed "cancelled"'), dump
    assert matching_lines(dump, ' switch ', '"any"', 'resolved') and not matching_lines(dump, 'failed "Eio__core__Fiber.Not_first"'), dump


def assert_domains_joined(path):
    assert_no_findings(path)
    dump = run('dump', path)
    assert len(matching_lines(dump, ' thread ', '"domain"', 'resolved')) >= 3, dump
    assert matching_lines(dump, 'pause "gc, minor, all domains stop"'), dump
    answer = matching_lines(dump, '"from the other domain"')[0].split()[1]
    assert '"fiber 1' in run('path', path, f'--promise={answer}'), 'the path does not lead to the other domain'
    info = run('info', path)
    assert '#0 domain 0' in info and '#1 domain 1' in info, info


def garbage_collection_is_named_as_the_cause_of_a_stall(folder):
    path = os.path.join(folder, 'garbage.events')
    subprocess.run([generator, 'garbage', path], check=True, timeout=60)
    said = run('explain', path, status=1)
    assert said.startswith('stall: ') and 'a pause (gc, minor, all domains stop)' in said.splitlines()[0] and ': 1 ready promise lost' in said and 'make less garbage' in said, said


WANTED = {'hang': assert_hang, 'cancelled': assert_failure_site, 'domains': assert_domains_joined, 'pipeline': assert_no_findings, 'wrapped': assert_no_findings,
          'kinds': assert_no_findings, 'kinds-5.3': assert_no_findings}


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
    """Returns the fibers, with the number of their runs, and the sleeps."""
    found = []
    for line in matching_lines(run('dump', path), 'promise '):
        kind = line.split()[2]
        if kind in ('coroutine', 'timer'):
            found.append((kind, re.search(r'"(fiber \d+|sleep)"', line)[1], (re.search(r'ran \d+x', line) or [''])[0]))
    return sorted(found)


def fxt_trace_has_the_same_fibers_as_the_runtime_events(folder):
    """A trace of eio-trace has the same fibers as the runtime events; weft info lists the details that it lacks."""
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
            assert_no_findings(data + '.fxt')
    made = os.path.join(folder, 'made.fxt')
    subprocess.run([generator, 'fxt', made], check=True, timeout=60)
    assert fibers_of(made) == [('coroutine', 'fiber 1', 'ran 3x'), ('coroutine', 'fiber 2', 'ran 2x'), ('timer', 'sleep', '')], fibers_of(made)
    assert_no_findings(made)
    assert 'mutexes' in json.loads(run('info', '--json', made))['lacks']
    assert matching_lines(run('info', made), 'lacks', 'promises, mutexes, semaphores'), run('info', made)


def gzip_trace_is_read_like_the_original(folder):
    """weft reads a gzip trace from a file and from a pipe, reads a truncated one up to its end, and prints a line about a damaged one."""
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
    write(gzip.compress(plain[:100]) + gzip.compress(plain[100:]))  # two gzip files in a row, as from `cat a.gz b.gz`
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


def unknown_input_is_reported(folder):
    magic = 0x0016547846040010.to_bytes(8, 'little')
    for content, wanted in (magic, "not one of eio-trace's"), (b'{"traceEvents":[]}', 'ui.perfetto.dev'), \
            (gzip.compress(magic), "not one of eio-trace's"), (gzip.compress(b'{"traceEvents":[]}'), 'ui.perfetto.dev'):
        path = os.path.join(folder, 'other')
        with open(path, 'wb') as f:
            f.write(content)
        done = subprocess.run([weft, 'info', path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 2 and wanted in done.stderr and done.stderr.count('\n') == 1, done


with tempfile.TemporaryDirectory(prefix='weft-eio-') as folder:
    for test in real_recordings, generated, garbage_collection_is_named_as_the_cause_of_a_stall, fxt_trace_has_the_same_fibers_as_the_runtime_events, gzip_trace_is_read_like_the_original, unknown_input_is_reported:
        test(folder)
