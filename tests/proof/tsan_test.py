#!/usr/bin/env python3
"""tsan_test.py ROOT SOURCE...: the proofs with several OS threads, under ThreadSanitizer.  SPDX-License-Identifier: ISC"""

import os
import subprocess
import sys
import tempfile

ROOT, SOURCES = sys.argv[1], sys.argv[2:]
PROOFS = [('threads', '1000'), ('restart', '300'), ('snapshots', '100'), ('fork', '10'), ('exit', '8')]
FLAGS = ['-std=c11', '-D_GNU_SOURCE', '-O1', '-g', '-w', '-fsanitize=thread', '-I' + os.path.join(ROOT, 'include'), '-I' + os.path.join(ROOT, 'src')]

with tempfile.TemporaryDirectory() as folder:
    objects, failed = [], 0
    needed = [path for path in dict.fromkeys(map(os.path.realpath, SOURCES)) if path.split('/')[-2] in ('base', 'wire', 'trace', 'record')]
    for path in [*needed, os.path.join(ROOT, 'tests/proof/proof.c')]:
        objects.append(os.path.join(folder, f'{len(objects)}.o'))
        subprocess.run(['gcc', *FLAGS, '-c', path, '-o', objects[-1]], check=True)
    program = os.path.join(folder, 'proof')
    subprocess.run(['gcc', '-fsanitize=thread', '-o', program, *objects, '-lpthread', '-lm'], check=True)
    for name, times in PROOFS:
        run = subprocess.run([program, name, times], capture_output=True, text=True, check=False,
                             env={**os.environ, 'TSAN_OPTIONS': 'halt_on_error=0 exitcode=66'})
        print(f'{name}: exit status {run.returncode}, {run.stderr.count("WARNING: ThreadSanitizer")} reports; {run.stdout.strip()}')
        if run.returncode:
            failed = 1
            print(run.stderr[:6000])
    sys.exit(failed)
