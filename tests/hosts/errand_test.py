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


def look(*words):
    return subprocess.run([weft, *words], capture_output=True, text=True, check=False, timeout=PATIENCE).stdout


@contextlib.contextmanager
def both(folder, options, *questions):
    """Who asks, and both traces, hers first."""
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


def all_is_answered(folder):
    with both(folder, ',mode=grow', 'one', 'two', 'three') as (asks, traces):
        asks.wait(PATIENCE)
    told = json.loads(look('info', '--json', *traces).splitlines()[-1])
    if told['messages'] != 8:  # a question and its answer, thrice, and a datagram each way
        sys.exit(f'FAILED: messages: {told}')
    promises = [json.loads(line) for line in look('dump', '--json', *traces).splitlines()]
    heard = [p['promise'] for p in promises if p.get('kind') == 'read' and p['site']['function'].startswith('hear')]
    if len(heard) != 4:
        sys.exit(f'FAILED: {len(heard)} answers')
    for promise in heard:
        path = look('path', *traces, f'--promise={promise}')
        if not re.search(r'timer \d+ "sleep".*\n(.*\n)*.*on its way from errand-\d+ for .* in errand-\d+', path):
            sys.exit(f'FAILED: the path of an answer does not go through both:\n{path}')
    if said := look('explain', *traces):
        sys.exit(f'FAILED: nothing is wrong: {said}')


def one_is_lost(folder):
    """The ring goes round until then."""
    with both(folder, ',size=64K', *['more'] * 200, 'lost') as (_, traces):
        deadline = time.monotonic() + PATIENCE
        cause = r'^hang .*bind \d+ .* nobody ever tried to resolve task \d+ "the archive" .*for which it waits\n(.*\n)*.*connection \d+ "from '
        while not re.search(cause, said := look('explain', *traces)):
            if time.monotonic() > deadline:
                sys.exit(f'FAILED: the cause is in the other process:\n{said}')
            time.sleep(0.1)
        waits = look('waits', *traces)
    if json.loads(look('info', '--json', traces[1]).splitlines()[-1])['lost'] == 0:
        sys.exit('FAILED: the ring did not go round')
    chain = r'read \d+ .*\n +└─ connection \d+ "from .*\n +└─ task \d+ "the archive"'
    if not re.search(chain, waits):
        sys.exit(f'FAILED: who asks waits for the archive:\n{waits}')


def the_other_end_is_named(folder):
    """Who was late there, and what he did meanwhile."""
    with both(folder, ',mode=grow', *['more'] * 20, 'slow') as (asks, traces):
        asks.wait(PATIENCE)
    said = look('explain', *traces)
    late = (r'slow: connection \d+ "to .* was asked, and the other end, (errand-\d+), answered \d+ ms later.*\n(.*\n)*?'
            r'.* connection \d+ "from .*\) in \1 has read that, .* later\n.* timer \d+ "sleep" .* in \1 is waited for, for \d+ ms\n.* in \1 writes the answer, \d+ ms after it was read\n'
            r'(.*\n)*?    find out what connection \d+ "from .*\) in \1 did that time')
    read = r'slow: read \d+ .*: waiting for timer \d+ "sleep" \(.*\) in (errand-\d+), .*\n(.*\n)*    weft explain --promise=\d+ tells why timer \d+ "sleep" \(.*\) in \1 took so long'
    for told in late, read:
        if not re.search(told, said):
            sys.exit(f'FAILED: who was late is not named:\n{said}')


for test in all_is_answered, one_is_lost, the_other_end_is_named:
    with tempfile.TemporaryDirectory() as place:
        test(place)
