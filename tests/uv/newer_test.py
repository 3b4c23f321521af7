#!/usr/bin/env python3
"""Calls that libuv has since 1.45 have the right promises in a trace, and the program behaves as without recording.

	newer_test.py NEWER WEFT

Skipped with libuv before 1.50.

SPDX-License-Identifier: ISC"""

import os
import subprocess
import sys
import tempfile

from recorded import PATIENCE, Recording, expect

program, weft = sys.argv[1:3]
for uring in '0', '1':
    os.environ['UV_USE_IO_URING'] = uring
    plain = subprocess.run([program], stdout=subprocess.PIPE, timeout=PATIENCE, check=True).stdout
    if plain == b'skipped\n':
        print('skipped: libuv is older than 1.50')
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix='weft-uv-') as folder:
        recording = Recording(weft, os.path.join(folder, 'newer'), [program])
        expect((recording.status, sorted(recording.out.splitlines())), (0, sorted(plain.splitlines())), 'what it does')
        trace = recording.trace()
        for kind, label in (('listen', 'listen @weft-newer-'), ('connect', '@weft-newer-'), ('connection', 'from @weft-newer-'), ('write', '3 bytes to 127.0.0.1:'),
                            ('write', '5 bytes to 127.0.0.1:'), ('fs', 'open /etc/passwd'), ('fs', 'read /etc/passwd'), ('loop', 'uv_run')):
            expect(trace.promise(kind, label)['end'], 'resolved', f'{kind} {label}')
        expect(len(trace.promises('request', 'from 127.0.0.1:')), 2, 'datagrams that are received')
        expect([name for name in trace.findings('2s') if name != 'slow'], [], 'findings')
