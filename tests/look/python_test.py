#!/usr/bin/env python3
"""python_test.py WEFT PROGRAM: weft waits names function and line of each OS thread that runs Python, in a process and in its core.

The test uses each installed CPython from 3.11 to 3.13.

SPDX-License-Identifier: ISC"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

weft, hang = map(os.path.abspath, sys.argv[1:])
PATIENCE_S = 60
with open(hang, encoding='utf-8') as source:
    LINE = next(number for number, line in enumerate(source, 1) if 'the line of the deadlock' in line)
WANTED = [rf'thread \d+ ".*"  at .*hang\.py:{LINE} in transfer', rf'(?s)(hang\.py:{LINE} in transfer.*){{4}}', r'called by pay \(hang\.py:\d+\), Thread\.run']


def find_pythons():
    """Returns the path of each CPython."""
    found = {}
    for name in [sys.executable, '/usr/bin/python3', *glob.glob('/usr/bin/python3.1[123]'), *glob.glob(os.path.expanduser('~/.pyenv/versions/3.1[123].*/bin/python3'))]:
        asked = subprocess.run([name, '-c', 'import platform; print(platform.python_implementation(), platform.python_version())'],
                               capture_output=True, text=True, check=False)
        version = re.match(r'CPython 3\.(11|12|13)\.', asked.stdout)
        if version:
            found.setdefault(version.group(1), name)
    return found


def check(what, retry):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        got = subprocess.run([weft, 'waits', what], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        lacks = [text for text in WANTED if not re.search(text, got.stdout)]
        if not lacks or not retry or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    assert got.returncode == 0 and not lacks, (what, lacks, got.stdout, got.stderr)
    assert 'in a cycle' not in got.stdout, got.stdout  # the memory of a Python lock does not name its holder


pythons = find_pythons()
if not pythons:
    print('no CPython of 3.11 to 3.13')
    sys.exit(77)
cores = 0
for version, python in sorted(pythons.items()):
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen([python, hang], stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout.readline() == 'ready\n'
            check(str(program.pid), True)
            if shutil.which('gcore'):
                subprocess.run(['gcore', '-o', os.path.join(folder, 'core'), str(program.pid)], capture_output=True, timeout=PATIENCE_S, check=False)
                core = os.path.join(folder, f'core.{program.pid}')
                if os.path.exists(core):
                    check(core, False)
                    cores += 1
        finally:
            program.kill()
print('Python 3.' + ', 3.'.join(sorted(pythons)), 'and', cores, 'cores')
