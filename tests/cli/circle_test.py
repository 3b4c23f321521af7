#!/usr/bin/env python3
"""circle_test.py CIRCLE WEFT: weft off ends although the list of OS threads in the program's memory is circular.

SPDX-License-Identifier: ISC"""
import subprocess
import sys

circle, weft = sys.argv[1:]
# A weft off without a deadline by the clock takes many minutes for the circular list.
PATIENCE_S = 120

with subprocess.Popen([circle], stdout=subprocess.PIPE, text=True) as program:
    try:
        if program.stdout.readline() != 'ready\n':
            sys.exit('the program cannot make its page')
        for verb in 'off', 'on':
            got = subprocess.run([weft, verb, '--wait=5s', str(program.pid)], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            if got.returncode != 0 or 'has recorded no event since the request' not in got.stderr:
                sys.exit(f'weft {verb}: exit status {got.returncode}: {got.stdout}{got.stderr}')
    except subprocess.TimeoutExpired:
        sys.exit(f'weft {verb} did not end in {PATIENCE_S} s')
    finally:
        program.kill()
