#!/usr/bin/env python3
"""remote_test.py VAULT WEFT: two programs on two machines, one of which hangs because of the other: weft says so, with the machines' names.

SPDX-License-Identifier: ISC"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from namespaces import Machines

PATIENCE = 120
vault, weft = map(os.path.abspath, sys.argv[1:3])


def run_weft(verb, *traces):
    return subprocess.run([weft, verb, *traces], capture_output=True, text=True, check=False, timeout=PATIENCE)


def run(machines, folder, how, until, offset_ns='0'):
    """Returns what weft explain prints for both programs, started with `how`, once `until`, a verb, prints the given words."""
    traces = {letter: os.path.join(folder, letter) for letter in 'ab'}
    verb, words = until
    with contextlib.ExitStack() as stack:
        programs = []
        for letter, other in ('a', 'b'), ('b', 'a'):
            program = subprocess.Popen(machines.on(
                letter, vault, traces[letter], letter, '0' if letter == 'a' and offset_ns == '0' else offset_ns if letter == 'b' else '1',
                machines.addresses[letter], machines.addresses[other], how[letter]))
            stack.callback(program.kill)
            programs.append(program)
        deadline = time.monotonic() + PATIENCE
        while not re.search(words, (said := run_weft(verb, *traces.values())).stdout):
            if time.monotonic() > deadline or any(program.poll() is not None for program in programs):
                sys.exit(f'FAILED: {how}: never {words!r}: {said.stdout[-2000:]}{said.stderr}')
            time.sleep(0.1)
        for program in programs:
            program.send_signal(signal.SIGTERM)
        for program in programs:
            if program.wait(PATIENCE):
                sys.exit(f'FAILED: {how}: a program ended with {program.returncode}')
    return run_weft('explain', *traces.values()), run_weft('waits', *traces.values()).stdout


def check(what, said, status, *patterns):
    missing = [pattern for pattern in patterns if not re.search(pattern, said.stdout)]
    if missing or said.returncode != status:
        sys.exit(f'FAILED: {what}: status {said.returncode}, not there: {missing}\n{said.stdout}{said.stderr}')


with Machines() as machines:
    if not machines:
        print('SKIPPED: no network namespaces can be made here')
        sys.exit(77)
    for offset_ns in '0', '3700000000':
        with tempfile.TemporaryDirectory() as folder:
            said, waits = run(machines, folder, {'a': 'ask', 'b': 'ask'}, ('waits', '1 cycle of promises'), offset_ns)
            fetch = r'task \d+ "fetch" holds lock \d+ "vault" and waits for lock \d+ "vault": cycle of 2 locks in vault@[ab]'
            check('each has what the other wants', said, 1, '^deadlock: ' + fetch,
                  r'read \d+ in vault@([ab])  waits for\n.*connection \d+ in vault@(?!\1)([ab])  waits for\n.*task \d+ "hand over" in vault@\2  waits for\n')
            if 'in a cycle' not in waits or said.stdout.count('deadlock: ') != 1:
                sys.exit(f'FAILED: one cycle, seen by weft waits: {waits}')
    with tempfile.TemporaryDirectory() as folder:
        said, _ = run(machines, folder, {'a': 'ask', 'b': 'lend'}, ('waits', '"hand over"'))
        check('who has the lock is on the other machine', said, 1, r'^hang: task \d+ "fetch" and 1 more never resolved: nothing tried to resolve task \d+ "lent to a friend" in vault@b\n(.*\n)*.* task \d+ "lent to a friend" has held lock \d+ "vault" in vault@b')
    with tempfile.TemporaryDirectory() as folder:
        said, _ = run(machines, folder, {'a': 'ask', 'b': 'deaf'}, ('explain', 'never read'))
        check('a message that is not read', said, 0, r'^hang \(uncertain\): task \d+ "fetch" never resolved: connection \d+ in vault@b never read what connection \d+ in vault@a had sent',
              '5 bytes are written')
    with tempfile.TemporaryDirectory() as folder:
        said, waits = run(machines, folder, {'a': 'ask', 'b': 'free'}, ('dump', r'\.\. [\d.]+  resolved .*"fetch"'))
        check('nothing hangs', said, 0)
        if 'cycle' in waits:
            sys.exit(f'FAILED: no cycle: {waits}')
