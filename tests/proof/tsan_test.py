#!/usr/bin/env python3
"""tsan_test.py ROOT SOURCE...: the proofs with several OS threads run under ThreadSanitizer, which finds no data race.

On a busy machine, a stop may time out before an OS thread has left its stream.  To test this on any
   machine, a second build of the recorder has a timeout of zero.  SPDX-License-Identifier: ISC"""

import os
import subprocess
import sys
import tempfile

ROOT, SOURCES = sys.argv[1], sys.argv[2:]
PROOFS = {
    'as it is': ([], [('threads', '1000'), ('restart', '300'), ('snapshots', '100'), ('fork', '10'), ('exit', '8')]),
    'without patience': (['-DWEFT__PATIENCE=1'], [('restart', '1000'), ('fork', '10'), ('snapshots', '20')]),
}
FLAGS = ['-std=c11', '-D_GNU_SOURCE', '-O1', '-g', '-w', '-fsanitize=thread', '-I' + os.path.join(ROOT, 'include'), '-I' + os.path.join(ROOT, 'src')]

with tempfile.TemporaryDirectory() as folder:
    needed = [path for path in dict.fromkeys(map(os.path.realpath, SOURCES)) if path.split('/')[-2] in ('base', 'wire', 'trace', 'record')]
    objects, failed = {}, 0
    for build, (flags, proofs) in PROOFS.items():
        program = os.path.join(folder, f'proof-{len(flags)}')
        for path in [*needed, os.path.join(ROOT, 'tests/proof/proof.c')]:
            if flags and path.split('/')[-2] != 'record':
                continue
            objects[path] = os.path.join(folder, f'{len(flags)}-{path.replace("/", "-")}.o')
            subprocess.run(['gcc', *FLAGS, *flags, '-c', path, '-o', objects[path]], check=True)
        subprocess.run(['gcc', '-fsanitize=thread', '-o', program, *objects.values(), '-lpthread', '-lm'], check=True)
        for name, times in proofs:
            run = subprocess.run([program, name, times], capture_output=True, text=True, check=False,
                                 env={**os.environ, 'TSAN_OPTIONS': 'halt_on_error=0 exitcode=66'})
            print(f'{build}, {name}: exit status {run.returncode}, {run.stderr.count("WARNING: ThreadSanitizer")} reports; {run.stdout.strip()}')
            if run.returncode:
                failed = 1
                print(run.stderr[:6000])
    sys.exit(failed)
