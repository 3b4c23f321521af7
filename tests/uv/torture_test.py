#!/usr/bin/env python3
"""A program that uses libuv in odd ways prints the same with and without recording, and its trace is complete.

	torture_test.py TORTURE WEFT [rounds]
	torture_test.py --exceptions THROWS.CC WEFT

SPDX-License-Identifier: ISC"""

import os
import shutil
import subprocess
import sys
import tempfile

from recorded import ENV, PATIENCE, Recording, expect, fail, need


def program_stderr(error):
    """Returns the program's standard error, without the lines of weft."""
    return b''.join(line for line in error.splitlines(True) if not line.startswith(b'weft: '))


def compare(weft, folder, command):
    plain = subprocess.run(command, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    if plain.returncode:
        fail(f'{command} without recording: {plain.stdout.decode()}{plain.stderr.decode()}')
    recorded = Recording(weft, os.path.join(folder, 'traces'), command)
    expect((recorded.out, program_stderr(recorded.err), recorded.status), (plain.stdout, plain.stderr, plain.returncode), f'{command}, recorded')
    return recorded


def main():
    if sys.argv[1] == '--exceptions':
        source, weft = sys.argv[2:4]
        with tempfile.TemporaryDirectory(prefix='weft-uv-') as folder:
            program = os.path.join(folder, 'throws')
            subprocess.run([need('g++'), '-O1', source, '-o', program, '-luv'], check=True)
            trace = compare(weft, folder, [program]).trace()
            expect(trace.lost(), 0, 'events lost')
            if any(p['end'] == 'pending' for p in trace.promises('loop')):
                fail('a loop that an exception left is pending still')
        return
    torture, weft, rounds = sys.argv[1:4]
    library = next((line.split()[2] for line in subprocess.run(['ldd', torture], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
                    if 'libuv' in line), None)
    with tempfile.TemporaryDirectory(prefix='weft-uv-') as folder:
        command = [torture, rounds]
        if library:
            command.append(shutil.copy(library, os.path.join(folder, 'libuv-of-a-plugin.so')))
        recording = compare(weft, folder, command)
        traces = recording.all()
        expect(len(traces), 2, 'processes that use libuv: the program and its fork')  # the shells that the program starts have no trace
        expect([trace.lost() for trace in traces], [0, 0], 'events lost')
        program = max(traces, key=lambda trace: len(trace.promises()))
        fork = min(traces, key=lambda trace: len(trace.promises()))
        expect(len(program.promises('process', 'sh -c exit 3')), int(rounds), 'children')
        timers = program.promises('timer')
        # 1 + rounds in timers(), rounds for one memory, 1 moved, 300, 1 hammered, 1 jumped out of, which becomes another, 1 in that, the plugin's, 1 with a handle that is gone, 2 at the end
        expect(len(timers), 2 * int(rounds) + 309 + (1 if library else 0), 'timers')
        expect([p['end'] for p in timers].count('pending'), 2, 'timers that are open at the end')
        expect([len(p['running']) for p in fork.promises('timer')], [2], 'how often the timer of the fork runs')


main()
