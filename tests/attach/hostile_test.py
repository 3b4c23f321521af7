#!/usr/bin/env python3
"""hostile_test.py WEFT LIBRARY: a process whose memory has wrong values does not make weft crash, hang, need much memory or print control characters.

LIBRARY is made of hostile.c.  WEFT_TEST_MANY=500 tries 500 sets of wrong values.  SPDX-License-Identifier: ISC"""
import os
import re
import subprocess
import sys
import tempfile

PATIENCE = 120
MOST_KB = 1 << 20  # the limit for weft with AddressSanitizer
weft, library = map(os.path.abspath, sys.argv[1:3])


def fail(text):
    sys.exit(f'hostile_test.py: {text}')


def try_verb(number, pid, *words):
    with open('said', 'w+b') as said:
        # timeout kills a command that hangs, and then returns 137.
        command = subprocess.Popen(['timeout', '-s', 'KILL', str(PATIENCE), weft, *words, str(pid)], stdout=said, stderr=said)
        _, status, usage = os.wait4(command.pid, 0)
        command.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    what = f'HOSTILE={number} weft {" ".join(words)} {pid}'
    if command.returncode not in (0, 1, 2) or b'Sanitizer' in text or b'runtime error' in text:
        fail(f'{what} returns {command.returncode}: {text!r}')
    if usage.ru_maxrss > MOST_KB:
        fail(f'{what} needs {usage.ru_maxrss} KiB')
    if re.search(rb'[\x00-\x08\x0b-\x1f\x7f]', text):
        fail(f'{what} prints control characters: {text!r}')


def try_lies(number):
    environment = dict(os.environ, LD_PRELOAD=library, HOSTILE=str(number))
    with subprocess.Popen(['cat'], stdin=subprocess.PIPE, env=environment) as program:
        for words in ('waits',), ('explain',), ('off', '--wait=100ms'), ('on', '--wait=100ms'), ('off', '--wait=100ms'):
            try_verb(number, program.pid, *words)
        program.kill()


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for lies in range(int(os.environ.get('WEFT_TEST_MANY', '6'))):
        try_lies(lies)
