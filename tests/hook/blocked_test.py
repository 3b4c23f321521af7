#!/usr/bin/env python3
"""blocked_test.py BLOCKED WEFT: `weft explain` says in which call each thread of a killed program was, and no such thread counts as busy.

SPDX-License-Identifier: ISC"""
import os
import re
import subprocess
import sys
import tempfile

from recorded import PATIENCE, Recording, expect, fail

program, weft = sys.argv[1], os.path.abspath(sys.argv[2])
with tempfile.TemporaryDirectory() as folder:
    trace = Recording(weft, os.path.join(folder, 't'), [program]).trace('blocked')
    run = subprocess.run([weft, 'explain', trace.path], capture_output=True, text=True, timeout=PATIENCE, check=False)
    expect(run.returncode, 0, 'the exit status')
    waits = re.findall(r'thread \d+ "\w+" was in (\w+) at (\w+) \(blocked\.c:\d+\) for the last [23]\.\d+ s', run.stdout)
    all_waits = {('recv', 'main'), ('write', 'write_at_once'), ('write', 'write_lines'), ('writev', 'send_pieces')}
    if len(set(waits)) != 3 or not all_waits.issuperset(waits) or ('recv', 'main') not in waits:
        fail(f'the longest waits are {waits}: {run.stdout}')
    if 'and 1 more thread\n' not in run.stdout or 'was busy for less than 1%' not in run.stdout:
        fail(f'a thread that waits is not counted so: {run.stdout}')
    events = subprocess.run([weft, 'events', trace.path], capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
    if 'place "writev"' not in events:
        fail(f'the blocked writev() is not recorded: {events}')
