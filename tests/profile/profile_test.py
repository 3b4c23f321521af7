#!/usr/bin/env python3
"""weft record --profile names the function that blocked a loop, and changes nothing for the program.

	profile_test.py BLOCKS WEFT

SPDX-License-Identifier: ISC"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
from recorded import ENV, PATIENCE, closed_to_others, expect, fail

BLOCKS, WEFT = sys.argv[1:3]
ROUNDS = 3  # of the timer
NOBODY = 65534
FOUND = r'(\d+) of (\d+) samples in parse_orders\(\), called by on_timer\(\)'


def record(*command, status=0, user=None):
    """Returns the output of the command, and that of weft record."""
    with tempfile.TemporaryDirectory() as folder:
        if user:
            os.chown(folder, user, user)
        ran = subprocess.run([WEFT, 'record', '--profile', '-o', f'{folder}/t', '--', *command], capture_output=True, text=True, env=ENV,
                             timeout=PATIENCE, user=user, group=user, extra_groups=[] if user else None)
    expect(ran.returncode, status, f'status of {command}: {ran.stderr}')
    return ran.stdout, ran.stderr


def is_named(text, what):
    found = re.findall(FOUND, text)
    if not found or len(found) > ROUNDS or any(int(inside) * 10 < int(count) * 9 for inside, count in found):
        fail(f'{what}: {text}')


def block_is_named():
    out, text = record(BLOCKS)
    expect(out, 'missing 0\n', 'output')
    is_named(text, 'a block')


def block_of_child_is_named():
    """The shell is the command; its child is sampled.  The status is the command's."""
    _, text = record('sh', '-c', f'{BLOCKS}; exit 7', status=7)
    is_named(text, 'a block of a child')


def short_callbacks_have_no_samples():
    _, text = record(BLOCKS, 'still')
    if 'no promise was seen to run for 10 ms' not in text:
        fail(f'a healthy program: {text}')


def signals_arrive():
    out, text = record(BLOCKS, 'signals')
    expect(out, 'missing 0\n', 'signals')
    is_named(text, 'a block with signals')


def ordinary_user_may_sample():
    closed = closed_to_others(BLOCKS) or closed_to_others(WEFT)
    if os.getuid() or closed:
        print(f'not as another user: {closed or "this is not root"}')
        return
    _, text = record(BLOCKS, user=NOBODY)
    is_named(text, 'a block of an ordinary user')


def traced_program_is_left_alone():
    """A debugger has the program already: weft neither disturbs it nor finds anything."""
    if not shutil.which('strace'):
        print('not under a debugger: strace is not installed')
        return
    _, text = record('strace', '-f', '-o', '/dev/null', BLOCKS)
    if re.search(FOUND, text):
        fail(f'a traced program was sampled: {text}')


if platform.machine() != 'x86_64':
    print('samples are taken on x86-64 alone')
    sys.exit(77)
for test in (block_is_named, block_of_child_is_named, short_callbacks_have_no_samples, signals_arrive, ordinary_user_may_sample,
             traced_program_is_left_alone):
    test()
