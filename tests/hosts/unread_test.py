#!/usr/bin/env python3
"""unread_test.py WEFT: a client writes more than its server reads for a while: who does not read is named, where the server's trace is there.

SPDX-License-Identifier: ISC"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

PATIENCE = 120
weft = os.path.abspath(sys.argv[1])
SERVER = """
const server = require('net').createServer((socket) => {
    socket.pause();
    setTimeout(() => socket.on('data', () => {}).resume(), 500);
    socket.on('end', () => process.exit(0));
}).listen(0, '127.0.0.1', () => console.log(server.address().port));
"""
CLIENT = """
const socket = require('net').connect(process.argv[1], '127.0.0.1', () => socket.write(Buffer.alloc(32 << 20), () => socket.end()));
"""


def run(*words):
    return subprocess.run([weft, *words], capture_output=True, text=True, check=False, timeout=PATIENCE).stdout


if not shutil.which('node'):
    print('skipped: Node.js is not installed')
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    traces = [os.path.join(folder, name) for name in ('client', 'server')]
    with subprocess.Popen([weft, 'record', '-o', traces[1], '--', 'node', '-e', SERVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        port = server.stdout.readline().strip()
        subprocess.run([weft, 'record', '-o', traces[0], '--', 'node', '-e', CLIENT, port], capture_output=True, check=True, timeout=PATIENCE)
        server.wait(PATIENCE)
    for operands, end in (traces, r'connection \d+ "from 127\.0\.0\.1:\d+".* in node-\d+'), (traces[:1], rf'the other end of connection \d+ "to 127\.0\.0\.1:{port}"'):
        writes = [p for p in map(json.loads, run('dump', '--json', *operands).splitlines()) if p.get('kind') == 'write']
        longest = max(writes, key=lambda p: p['end_ns'] - p['start_ns'])
        said = run('explain', *operands, f'--promise={longest["promise"]}')
        if not re.search(r'waiting for write \d+ "\d+ bytes".*, while ' + end + ' did not read\n', said):
            sys.exit(f'FAILED: who does not read is not named:\n{said}')
