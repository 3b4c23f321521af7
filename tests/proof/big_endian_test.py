#!/usr/bin/env python3
"""big_endian_test.py ROOT WEFT: weft refuses a trace that was written on a big-endian machine (s390x, emulated), and names
   the reason; babeltrace2 reads every event of this trace.  SPDX-License-Identifier: ISC"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

ROOT, WEFT = sys.argv[1:]
CC, EMULATOR = 's390x-linux-gnu-gcc', 'qemu-s390x'
EVENTS = 3000
for tool in (CC, EMULATOR, 'babeltrace2'):
    if not shutil.which(tool):
        print(f'skipped: no {tool}')
        sys.exit(77)

with tempfile.TemporaryDirectory() as folder:
    program, trace = os.path.join(folder, 'many'), os.path.join(folder, 'trace')
    sources = [path for part in ('record', 'wire') for path in sorted(glob.glob(os.path.join(ROOT, 'src', part, '*.c')))
               if not path.endswith('freestanding.c')]
    subprocess.run([CC, '-static', '-std=c11', '-D_GNU_SOURCE', '-O2', '-Wall', '-Wextra', '-Werror', '-Wno-unused-parameter',
                    '-I' + os.path.join(ROOT, 'include'), '-I' + os.path.join(ROOT, 'src'), *sources,
                    os.path.join(ROOT, 'tests/proof/many.c'), '-o', program, '-lpthread'], check=True)
    subprocess.run([EMULATOR, program, str(EVENTS)], check=True, env={**os.environ, 'WEFT_TRACE': trace + ',mode=grow'})
    ours = subprocess.run([WEFT, 'info', trace], capture_output=True, text=True, check=False)
    theirs = subprocess.run(['babeltrace2', trace], capture_output=True, text=True, check=True)

lines = [line for line in theirs.stdout.splitlines() if not any(f') {name}: ' in line for name in ('string', 'site', 'thread'))
         and '"definition"' not in line]  # leaves out repeated definitions of sites
print(f'weft: exit status {ours.returncode}, {ours.stderr.strip()}\nbabeltrace2: {len(lines)} events')
sys.exit(not (ours.returncode == 2 and ours.stdout == '' and 'big-endian' in ours.stderr and ours.stderr.count('\n') == 1
              and len(lines) == EVENTS))
