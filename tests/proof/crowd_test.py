#!/usr/bin/env python3
"""crowd_test.py CROWD WEFT: a program with more OS threads than the recorder has streams can start all its threads; events of threads without a stream count as lost.

A stream takes four of the 65,530 mappings that the kernel allows a process.  SPDX-License-Identifier: ISC"""
import json
import os
import subprocess
import sys
import tempfile

crowd, weft = sys.argv[1:]
THREADS, STREAMS, SPARES, EVENTS = 11000, 8192, 16, 2
memory = '/dev/shm'  # thousands of files can be created fast there
with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as scratch:
    trace = os.path.join(scratch, 'trace')
    plain = {name: value for name, value in os.environ.items() if name != 'WEFT_TRACE'}
    if subprocess.run([crowd, str(THREADS)], env=plain, stdout=subprocess.DEVNULL, check=False).returncode:
        print(f'skipped: this machine allows fewer than {THREADS} OS threads')
        sys.exit(77)
    done = subprocess.run([crowd, str(THREADS)], env={**plain, 'WEFT_TRACE': trace + ',size=64k,packets=4'}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, '', ''), done
    info = json.loads(subprocess.run([weft, 'info', '--json', trace], check=True, capture_output=True, text=True).stdout.splitlines()[0])
    streams, lost = len(info['streams']), info['lost']
    print(f'{streams} streams, {lost} events of other OS threads are counted as lost')
    assert STREAMS <= streams < STREAMS + SPARES, streams
    assert lost == (THREADS + 1 - streams) * EVENTS, lost  # one of the streams belongs to main()
