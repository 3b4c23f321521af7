#!/usr/bin/env python3
"""weft record makes an OCaml 5 program record itself; both traces have one clock.

	record_test.py WEFT GENERATOR

OCaml 5 is not in Debian 12: runtime.c stands for its runtime, tools/runtime-events makes what it would write.
SPDX-License-Identifier: ISC"""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

weft, generator = map(os.path.abspath, sys.argv[1:])
here = os.path.dirname(os.path.abspath(__file__))


def run(*words, status=0, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300, **options)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr[-2000:])
    return done.stdout


def generate(shape, *options):
    run(generator, shape, shape, f'--time={time.clock_gettime_ns(time.CLOCK_MONOTONIC)}', *options)


def record(*words, status=0, **options):
    shutil.rmtree('s', ignore_errors=True)
    return run(weft, 'record', '-o', 's', '--', './runtime', *words, status=status, **options)


def files():
    return sorted(glob.glob('s/runtime-*.ocaml/*.events'))


def ocaml_fibers_and_os_threads_are_in_one_recording():
    """Fibers and OS thread are in one picture with the same times; no setting remains in the environment."""
    before = time.time_ns()
    generate('hang', '--count=1')
    assert record('hang') == 'events: on\n'
    after = time.time_ns()
    file, = files()
    info = json.loads(run(weft, 'info', '--json', file))
    assert (info['process'], info['command'].split()[-1], info['pid']) == ('runtime', 'hang', 759), info
    begun = info['utc_ns']
    assert before - 10**8 <= begun <= after, (before, begun, after)
    dump = run(weft, 'dump', 's')
    assert '"fiber 5"' in dump and re.search(r'thread .*"runtime-\d+: main"', dump), dump
    assert '"reply of the server"' in run(weft, 'waits', 's')
    run(weft, 'render', 's', '-o', 'picture.svg')
    with open('picture.svg', encoding='utf-8') as f:
        picture = f.read()
    assert 'domain 0' in picture and 'main' in picture


def lwt_is_recorded_like_eio():
    """Waits of Lwt have their lines beside weft's own record of the OS thread; Lwt and Eio in one process are one picture."""
    for shape, runtimes, wanted in ('lwt-hang', 'OCaml 5, Lwt', 'store.ml:12'), ('lwt-eio', 'OCaml 5, Eio, Lwt', '"fiber 1"'):
        generate(shape, '--count=30')
        assert record(shape) == 'events: on\n'
        file, = files()
        assert json.loads(run(weft, 'info', '--json', file))['runtimes'] == runtimes
        dump = run(weft, 'dump', 's')
        assert wanted in dump and 'loop' in dump and '"Lwt_main.run"' in dump and re.search(r'thread .*"runtime-\d+: main"', dump), dump[:3000]
    generate('lwt-hang', '--count=30')
    record('lwt-hang')
    said = run(weft, 'explain', 's')
    assert 'store.ml:12' in said and 'store.ml:40' not in said, said


def ocaml_events_are_off_if_the_user_sets_their_variables():
    for name in 'OCAML_RUNTIME_EVENTS_DIR', 'OCAML_RUNTIME_EVENTS_PRESERVE':
        assert record('hang', env={**os.environ, name: '.'}) == f'{name}=.\nevents: off\n'
        assert files() == []


def standby_program_writes_no_ring():
    """A standby program writes no ring."""
    shutil.rmtree('s', ignore_errors=True)
    assert run(weft, 'record', '--standby', '-o', 's', '--', './runtime', 'hang') == 'events: off\n'
    assert files() == []


def ocaml_events_are_off_if_limits_prevent_their_file():
    """If OCaml could not create its file, it would end the program."""
    for limit in '-f 20000', '-v 4000000':
        shutil.rmtree('s', ignore_errors=True)
        assert run(weft, 'record', '-o', 's', '--', 'sh', '-c', f'ulimit -S {limit}; exec ./runtime hang') == 'events: off\n'
        assert files() == []
    for parameters in 'e=21', 'b,e=8', 'd=4096':
        assert record('hang', env={**os.environ, 'OCAMLRUNPARAM': parameters}) == 'events: off\n', parameters
    assert record('hang', env={**os.environ, 'OCAMLRUNPARAM': 'b,e=18'}) == 'events: on\n'


def each_child_has_its_own_file():
    record('hang', 'fork')
    assert len(files()) == 2, files()


def child_without_access_to_the_trace_folder_continues():
    """The child can no longer reach the folder."""
    assert record('hang', 'fork', 'hidden') == 'events: on\npaused\n'
    assert len(files()) == 1, files()


def trace_span_grows_until_a_kill_and_the_kill_is_reported():
    """The trace is followed while the program runs; after a kill, its end is the time of the kill."""
    shutil.rmtree('s', ignore_errors=True)
    with subprocess.Popen([weft, 'record', '-o', 's', '--', './runtime', 'hang', 'hang'], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as recorder:
        try:
            assert recorder.stdout.readline() == b'events: on\n'
            file, = files()
            spans = [json.loads(run(weft, 'info', '--json', file))['span_ns'] for _ in range(2)]
            assert spans[0] < spans[1], spans  # no event, but the program lives
        finally:
            os.kill(int(os.path.basename(files()[0]).split('.')[0]), signal.SIGKILL)
        recorder.communicate(timeout=60)
    # After a long silence before the kill the hang is certain, and the exit status 1.
    said = subprocess.run([weft, 'explain', file], capture_output=True, text=True, timeout=300, check=False)
    assert said.returncode in (0, 1) and 'it was killed, or exited abruptly' in said.stdout + said.stderr, said


def overwrite_replaces_the_ocaml_trace():
    record('hang')
    first, = files()
    run(weft, 'record', '--overwrite', '-o', 's', '--', './runtime', 'hang')
    second, = files()
    assert first != second


with tempfile.TemporaryDirectory(prefix='weft-ocaml-record-') as folder:
    os.chdir(folder)
    if not shutil.which('cc'):
        print('skipped: no compiler')
        sys.exit(77)
    run('cc', '-O1', '-rdynamic', os.path.join(here, 'runtime.c'), '-o', 'runtime')
    generate('hang', '--count=1')
    for test in (ocaml_fibers_and_os_threads_are_in_one_recording, lwt_is_recorded_like_eio, ocaml_events_are_off_if_the_user_sets_their_variables, standby_program_writes_no_ring, ocaml_events_are_off_if_limits_prevent_their_file, each_child_has_its_own_file, child_without_access_to_the_trace_folder_continues,
                 trace_span_grows_until_a_kill_and_the_kill_is_reported, overwrite_replaces_the_ocaml_trace):
        test()
