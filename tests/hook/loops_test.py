#!/usr/bin/env python3
"""loops_test.py LOOPS WEFT: the work to record OS threads with a loop each grows in proportion to their number.

valgrind counts the instructions of the whole program, so that the load of the machine does not matter.
SPDX-License-Identifier: ISC"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
COUNTS = (40, 80, 320, 360)
# The last 40 threads may cost twice as much as the 40 threads after the first 40.  In proportion to the square it is six times as much.
ALLOWED = 2
loops, weft = map(os.path.abspath, sys.argv[1:])

if not shutil.which('valgrind'):
    print('skipped: valgrind is not installed')
    sys.exit(SKIPPED)
found = []
with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    for count in COUNTS:
        got = subprocess.run([weft, 'record', '-o', f'{count}.trace', '--', 'valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null',
                              '--max-threads=1000', loops, str(count)], capture_output=True, text=True, check=False)
        counted = re.search(r'Collected : ([0-9]+)', got.stderr)
        if got.stdout != 'done\n' or not counted:
            sys.exit(f'{count} OS threads: {got.stdout}{got.stderr}')
        found.append(int(counted[1]))
few, many = found[1] - found[0], found[3] - found[2]
print(f'{COUNTS[1] - COUNTS[0]} more OS threads take {few} instructions after {COUNTS[0]}, and {many} after {COUNTS[2]}')
sys.exit(0 if many <= ALLOWED * few else 1)
