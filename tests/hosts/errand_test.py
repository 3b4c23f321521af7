#!/usr/bin/env python3
"""errand_test.py ERRAND WEFT: two programs of libweft-uv that record themselves, without `weft record`: what they say to each other is known, and one that hangs because
of the other is found.

SPDX-License-Identifier: ISC"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 120
errand, weft = map(os.path.abspath, sys.argv[1:3])
address = f'127.77.{os.getpid() >> 8 & 255}.{os.getpid() & 255}'  # of no other test


def run_weft(*words):
    return subprocess.run([weft, *words], capture_output=True, text=True, check=False, timeout=PATIENCE).stdout


@contextlib.contextmanager
def record_both(folder, options, *questions):
    """Runs client and server; returns both traces, the client's first."""
    traces = [os.path.join(folder, name) for name in ('asks', 'serves')]
    with contextlib.ExitStack() as stack:
        programs = []
        for trace, words in ((traces[1], ['serve', address]), (traces[0], ['ask', address, *questions])):
            program = subprocess.Popen([errand, *words], env={**os.environ, 'WEFT_TRACE': trace + options}, stdout=subprocess.PIPE, text=True)
            stack.callback(program.kill)
            programs.append(program)
            if program.stdout.readline() != 'began\n':
                sys.exit(f'FAILED: {words[0]} does not begin')
        yield programs[1], traces
        for program in programs:
            program.send_signal(signal.SIGTERM)
            if program.wait(PATIENCE):
                sys.exit(f'FAILED: ended with {program.returncode}')


def all_questions_are_answered(folder):
    with record_both(folder, ',mode=grow', 'one', 'two', 'three') as (asks, traces):
        asks.wait(PATIENCE)
    told = json.loads(run_weft('info', '--json', *traces).splitlines()[-1])
    if told['messages'] != 8:  # a question and its answer, three times, and a datagram each way
        sys.exit(f'FAILED: messages: {told}')
    promises = [json.loads(line) for line in run_weft('dump', '--json', *traces).splitlines()]
    heard = [p['promise'] for p in promises if p.get('kind') == 'read' and p['site']['function'].startswith('hear')]
    if len(heard) != 4:
        sys.exit(f'FAILED: {len(heard)} answers')
    for promise in heard:
        path = run_weft('path', *traces, f'--promise={promise}')
        if not re.search(r'timer \d+ "sleep".*\n(.*\n)*.*in transit from errand-\d+ for .* in errand-\d+', path):
            sys.exit(f'FAILED: the path of an answer does not go through both:\n{path}')
    if not (said := run_weft('explain', *traces)).startswith('nothing found: '):
        sys.exit(f'FAILED: nothing is wrong: {said}')


def lost_question_is_explained(folder):
    """The ring wraps until then."""
    with record_both(folder, ',size=64K', *['more'] * 200, 'lost') as (_, traces):
        deadline = time.monotonic() + PATIENCE
        cause = r'^hang .*bind \d+ .* nothing tried to resolve task \d+ "the archive".*\n(.*\n)*.*connection \d+ "from '
        while not re.search(cause, said := run_weft('explain', *traces)):
            if time.monotonic() > deadline:
                sys.exit(f'FAILED: the cause is in the other process:\n{said}')
            time.sleep(0.1)
        waits = run_weft('waits', *traces)
    if json.loads(run_weft('info', '--json', traces[1]).splitlines()[-1])['lost'] == 0:
        sys.exit('FAILED: the ring did not go round')
    chain = r'read \d+ .*\n +└─ connection \d+ "from .*\n +└─ task \d+ "the archive"'
    if not re.search(chain, waits):
        sys.exit(f'FAILED: who asks waits for the archive:\n{waits}')


def other_end_is_named(folder):
    """The late end is named, with its actions."""
    with record_both(folder, ',mode=grow', *['more'] * 20, 'slow') as (asks, traces):
        asks.wait(PATIENCE)
    said = run_weft('explain', *traces)
    late = (r'slow: connection \d+ "to .* was answered by (errand-\d+) after \d+ ms.*\n(.*\n)*?'
            r'.* connection \d+ "from .*\) in \1 reads the request .* later\n.* the answer waits for timer \d+ "sleep" .* in \1 for \d+ ms\n.* in \1 writes the answer, \d+ ms after the request was read\n'
            r'(.*\n)*?    find out what connection \d+ "from .*\) in \1 did at that time')
    read = r'slow: read \d+ .*% waiting for timer \d+ "sleep" in (errand-\d+).*\n(.*\n)*    run weft explain --promise=\d+ to see why timer \d+ "sleep" \(.*\) in \1 took so long'
    for told in late, read:
        if not re.search(told, said):
            sys.exit(f'FAILED: who was late is not named:\n{said}')


for test in all_questions_are_answered, lost_question_is_explained, other_end_is_named:
    with tempfile.TemporaryDirectory() as place:
        test(place)
