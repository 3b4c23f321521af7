#!/usr/bin/env python3
"""Runtime events of OCaml 5: weft reads each event as OCaml's own reader does.

	runtime_events_test.py WEFT GENERATOR SHARED LIVE TIMES

SPDX-License-Identifier: ISC"""

import glob
import lzma
import os
import resource
import subprocess
import sys
import tempfile

weft, generator, shared, live = map(os.path.abspath, sys.argv[1:5])
times = sys.argv[5]


def run(*words, status=0):
    done = subprocess.run([weft, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == status, (words, done.returncode, done.stderr[-2000:])
    return done


def recorded(path, status=0):
    return run('events', '--recorded', path, status=status)


def generate(*words):
    subprocess.run([generator, *words], check=True, timeout=300)


def write_sparse(path, data):
    with open(path, 'wb') as f:
        for at in range(0, len(data), 4096):
            page = data[at:at + 4096]
            if page.strip(b'\0'):
                f.seek(at)
                f.write(page)
        f.truncate(len(data))


def equal(path, lines, name):
    with open(lines, encoding='utf-8') as f:
        wanted, got = f.read().splitlines(), recorded(path).stdout.splitlines()
    for number, (a, b) in enumerate(zip(wanted, got), 1):
        assert a == b, f'{name}, line {number}: {b!r}, not {a!r}'
    assert len(wanted) == len(got), (name, len(wanted), len(got))
    return len(got)


def real_recordings(folder):
    """Compares recordings of programs with the output of OCaml's own reader."""
    paths = sorted(glob.glob(os.path.join(shared, 'ocaml-lab', 'data', '*.events.xz')))
    lines = 0
    for path in paths:
        trace = os.path.join(folder, 'real.events')
        with lzma.open(path) as f:
            write_sparse(trace, f.read())
        lines += equal(trace, path[:-len('.events.xz')] + '.txt', os.path.basename(path))
    print(f'{len(paths)} recordings, {lines} events' if paths else f'real recordings: skipped, none in {shared}')


def generated(folder):
    trace, lines = os.path.join(folder, 'g.events'), os.path.join(folder, 'g.txt')
    for shape in 'hang', 'cancelled', 'domains', 'pipeline', 'kinds', 'fibers', 'lwt-hang', 'lwt-server', 'lwt-contexts', 'lwt-long', 'lwt-eio':
        for options in (), ('--newer',), ('--big',), ('--newer', '--big'), ('--words=512', '--count=300'):
            generate(shape, trace, f'--lines={lines}', *options)
            equal(trace, lines, f'{shape} {options}')


def torn_files_are_read(folder):
    """A file that is cut anywhere, or has wrong bytes in the middle, is read up to the damage, and weft prints one line about it."""
    trace, lines = os.path.join(folder, 't.events'), os.path.join(folder, 't.txt')
    generate('pipeline', trace, '--words=1024', '--count=300', f'--lines={lines}')
    with open(trace, 'rb') as f:
        data = bytearray(f.read())
    first = 64 + 80 * 128
    wanted = recorded(trace).stdout.splitlines()
    for at in first + 8192, first + 4096, first + 4100, first + 8, first:
        write_sparse(trace, data[:at])
        done = recorded(trace)
        times = [line.split()[:2] for line in done.stdout.splitlines()]  # compares only times and operations, since the cut file lacks the names of user events
        assert times == [line.split()[:2] for line in wanted[:len(times)]], at
        assert at == first + 8192 or done.stderr.count('\n') == 1 and 'skipped' in done.stderr, (at, done.stderr)
    at = int.from_bytes(data[64:72], 'little')
    for events, broken in (100, b'\0' * 8), (0, b'\xff' * 8), (200, (3 << 53).to_bytes(8, 'little')):
        for _ in range(events):
            place = first + at % 1024 * 8
            at += int.from_bytes(data[place:place + 8], 'little') >> 54
        place = first + at % 1024 * 8
        bad = bytearray(data)
        bad[place:place + 8] = broken
        write_sparse(trace, bad)
        done = recorded(trace)
        assert len(done.stdout.splitlines()) < len(wanted) and done.stderr.count('\n') == 1, (broken, done.stderr)
        run('dump', trace)
    for tail in 5, 1 << 63, 1 << 40:
        bad = bytearray(data)
        bad[64 + 8:64 + 16] = tail.to_bytes(8, 'little')
        write_sparse(trace, bad)
        assert recorded(trace).stdout == '', tail


def sparse_file_is_read(folder):
    """For a sparse file of a gigabyte, weft needs memory only for its data."""
    trace = os.path.join(folder, 's.events')
    generate('pipeline', trace, '--words=1048576')
    assert os.path.getsize(trace) > 1 << 30
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    recorded(trace)
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert after < before + 200_000, (before, after)


def live_ring_is_read(folder):
    """weft never returns a torn event of a ring that wraps while it is read."""
    trace = os.path.join(folder, 'live.events')
    with subprocess.Popen([generator, 'fibers', trace, '--words=1024', '--domains=2', '--count=50', '--live=100000000'],
                          stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout.readline() == b'written\n'
            done = subprocess.run([live, trace, times], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=800)
        finally:
            writer.kill()
    assert done.returncode == 0, done
    print(done.stdout.strip())


def unknown_input_is_reported(folder):
    trace = os.path.join(folder, 'small.sexp')
    with open(trace, 'w') as f:
        f.write('((time 1)(op(Creates 0 1)))\n')
    assert 'OCaml 5' in recorded(trace, status=2).stderr


with tempfile.TemporaryDirectory(prefix='weft-runtime-events-') as folder:
    for test in real_recordings, generated, torn_files_are_read, sparse_file_is_read, live_ring_is_read, unknown_input_is_reported:
        test(folder)
