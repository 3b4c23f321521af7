#!/usr/bin/env python3
"""process_test.py WEFT ARP: a verb that reads one trace also takes the id of a process that records into files or into its memory.

SPDX-License-Identifier: ISC"""

import os
import subprocess
import sys
import tempfile
import time

weft, arp = map(os.path.abspath, sys.argv[1:])


def weft_waits(what):
    return subprocess.run([weft, 'waits', what], capture_output=True, text=True, check=False, timeout=60).stdout


with tempfile.TemporaryDirectory() as folder:
    trace = os.path.join(folder, 'trace')
    for place in trace, 'memory':
        with subprocess.Popen([arp, 'bad'], env={**os.environ, 'WEFT_TRACE': place}, stderr=subprocess.DEVNULL) as program:
            deadline, told = time.monotonic() + 60, ''
            while 'ARP response' not in told and time.monotonic() < deadline and program.poll() is None:
                told = weft_waits(str(program.pid))
                time.sleep(0.02)
            program.kill()
        assert 'ARP response' in told, (place, told)
        assert place == 'memory' or told == weft_waits(trace), (told, weft_waits(trace))
        gone = subprocess.run([weft, 'waits', str(program.pid)], capture_output=True, text=True, check=False, cwd=folder, timeout=60)
        assert (gone.returncode, gone.stderr) == (2, f'weft: {program.pid}: No such file or directory\n'), gone
    print('a process is read by its number, from files and from memory')
