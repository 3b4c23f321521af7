#!/usr/bin/env python3
"""model_test.py MODEL.PML: the model checker spin finds no error in any state of the protocol, and finds each error that a BROKEN_... macro adds.

SPDX-License-Identifier: ISC"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

MODEL = os.path.abspath(sys.argv[1])
PLANTED = sorted(set(re.findall(r'#(?:if|ifn)def (BROKEN_\w+)', open(MODEL, encoding='utf-8').read())))


def search(define):
    """Returns the numbers of errors and of states that spin found."""
    with tempfile.TemporaryDirectory() as folder:
        run = lambda *command: subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
        run('spin', *define, '-a', MODEL)
        run('gcc', '-O2', '-w', '-DSAFETY', '-DNOREDUCE', '-DCOLLAPSE', '-DMEMLIM=2000', '-o', 'pan', 'pan.c')
        output = run('./pan', '-m100000')
        if 'max search depth' in output or 'out of memory' in output or 'Search not completed' in output and not define:
            sys.exit('the search was not complete:\n' + output)
        return int(re.search(r'errors: (\d+)', output).group(1)), int(re.search(r'(\d+) states, stored', output).group(1))


if not shutil.which('spin'):
    print('spin is not installed')
    sys.exit(77)
errors, states = search([])
print(f'the protocol: {states} states, {errors} errors')
failed = errors != 0 or not PLANTED
for fault in PLANTED:
    errors, states = search(['-D' + fault])
    print(f'{fault}: found' if errors else f'{fault}: not found in {states} states')
    failed = failed or errors == 0
sys.exit(1 if failed else 0)
