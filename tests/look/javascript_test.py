#!/usr/bin/env python3
"""javascript_test.py WEFT PROGRAM: weft waits names the functions and lines of JavaScript in which Node.js is blocked.

SPDX-License-Identifier: ISC"""

import mmap
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

weft, reads = map(os.path.abspath, sys.argv[1:])
PATIENCE_S = 60
WANTED = (r'thread \d+ "main"  at readFileSync \(node:fs\)  called by loadConfig \(reads\.js:5\), start \(reads\.js:10\), '
          r'<anonymous> \(reads\.js:16\)')

node = shutil.which('node')
if not node:
    print('no node is installed')
    sys.exit(77)
with open(os.path.realpath(node), 'rb') as program, mmap.mmap(program.fileno(), 0, access=mmap.ACCESS_READ) as content:
    if content.find(b'v8dbg_off_fp_function') < 0:
        print(f'{node} exports no layout of V8')
        sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    fifo = os.path.join(folder, 'fifo')
    os.mkfifo(fifo)
    with subprocess.Popen([node, reads, fifo], stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout.readline() == 'ready\n'
            deadline = time.monotonic() + PATIENCE_S
            while True:
                got = subprocess.run([weft, 'waits', str(program.pid)], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
                if re.search(WANTED, got.stdout) or time.monotonic() > deadline:
                    break
                time.sleep(0.1)
            assert re.search(WANTED, got.stdout), (got.stdout, got.stderr)
            assert f'openat "{fifo}"' in got.stdout, got.stdout
        finally:
            program.kill()
