#!/usr/bin/env python3
"""The output of a program of GLib is the same with and without recording, byte for byte, and its trace is complete.

	torture_test.py TORTURE WEFT [rounds [mdwe|seccomp]]

Under mdwe and seccomp no memory that was written may be made executable: tests/under/confined.py.

SPDX-License-Identifier: ISC"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
from recorded import ENV, PATIENCE, Recording, expect

torture, weft, rounds = *sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 20
confined = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'under', 'confined.py'), sys.argv[4]] if len(sys.argv) > 4 else []
with tempfile.TemporaryDirectory(prefix='weft-glib-') as folder:
    command = [*confined, torture, str(rounds)]
    plain = subprocess.run(command, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    if confined and plain.returncode == 77:
        print(plain.stderr.decode())
        sys.exit(77)
    expect(plain.returncode, 0, 'what the program returns without recording')
    recording = Recording(weft, os.path.join(folder, 'traces'), command)
    expect((recording.out, recording.status), (plain.stdout, 0), 'what the program says')
    traces = [trace for trace in recording.all() if not confined or trace.promises('task')]  # Python became the program; Python's trace does not count
    expect(len(traces), 2, 'processes: the program and its fork')
    program, fork = sorted(traces, key=lambda trace: -len(trace.promises()))
    expect([trace.lost() for trace in traces], [0, 0], 'events lost')
    expect(len([p for p in program.promises('thread', 'looper')]), rounds * 50, 'OS threads with loops')
    expect(len([p for p in program.promises('loop', 'main loop') if p['end'] == 'resolved']),
           rounds * 50 + 2 + 1 + rounds + rounds + 3 + 6, 'loops that return')
    ended = {p['promise']: p for p in program.promises('task')}
    outer, inner = [p for p in ended.values() if p['labels'][:1] and p['labels'][0][1] == 'outer'], program.promises('task', 'inner')
    expect((len(outer), len(inner)), (rounds * 5, rounds * 5), 'tasks in threads')
    expect(sorted(p for task in outer for p in task['awaits']), [], 'what tasks wait for at the end')
    expect([p['end'] for p in program.promises('task') if p['end'] != 'resolved'], ['failed'], 'tasks that fail: the forgotten one')
    expect(len(fork.promises('task')), 3, 'tasks of the fork')
    expect(program.promise('process', 'sh -c sleep 0.05; exit 7')['labels'][-1][1], 'exit status 7', 'the child')
    # On a busy machine its idle sources run for long without a sleep: then a spin finding is right.
    expect([finding for finding in program.findings('10s') if finding != 'spin'], ['unreturned'], 'findings')
