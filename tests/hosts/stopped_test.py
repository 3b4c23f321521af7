#!/usr/bin/env python3
"""stopped_test.py WEFT: a server of Node.js begins an answer and stops, pushes events in steps, or keeps a connection that nobody asks on; a client of uvloop reads.  Only of
the first it is said that the client waits for the server, and for what the server waits.

SPDX-License-Identifier: ISC"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

PATIENCE = 120
STILL = 12  # number of steps without events, or with events
PYTHON = '/usr/bin/python3'  # Debian's, which has Debian's uvloop
weft = os.path.abspath(sys.argv[1])
SERVER = """
const http = require('http'), fs = require('fs');
const server = http.createServer((question, answer) => {
    if (question.url === '/pushes') {
        answer.writeHead(200, {'Content-Type': 'text/event-stream'});
        setInterval(() => answer.write('data: 1\\n\\n'), 100);
        fs.readFile('never', () => {});
    } else if (question.url === '/stops') {
        answer.writeHead(200, {'Content-Length': '100'});
        answer.write('begin');
        fs.readFile('never', (error, bytes) => answer.end(bytes));
    } else
        answer.end('hello');
}).listen(0, '127.0.0.1', () => console.log(server.address().port));
"""
CLIENT = """
import asyncio, sys, uvloop
async def main():
    reader, writer = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
    async def ask(path):
        writer.write(f'GET {path} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'.encode())
        return await reader.readuntil(b'\\r\\n\\r\\n')
    for _ in range(20):
        await ask('/')
        await reader.readexactly(5)
    if sys.argv[2] != '/keeps':
        await ask(sys.argv[2])
    for _ in range(int(sys.argv[3])):
        if sys.argv[2] == '/pushes':
            await reader.readuntil(b'data: ')
        else:
            await asyncio.sleep(0.1)
    print('still', flush=True)
    await reader.readexactly(100000)
uvloop.install()
asyncio.run(main())
"""


def weft_waits(folder, path):
    """Returns the output of `weft waits` while the client waits forever."""
    traces = [os.path.join(folder, name + path[1:]) for name in ('client', 'server')]
    with contextlib.ExitStack() as stack:
        def record(trace, *words):
            program = stack.enter_context(subprocess.Popen([weft, 'record', '-o', trace, '--', *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder))
            stack.callback(program.terminate)
            return program
        server = record(traces[1], 'node', '-e', SERVER)
        client = record(traces[0], PYTHON, '-c', CLIENT, server.stdout.readline().strip(), path, str(STILL))
        if client.stdout.readline() != 'still\n':
            sys.exit('FAILED: the client does not get so far')
        saved = [trace + '.tar' for trace in traces]
        for trace, copy in zip(traces, saved):
            subprocess.run([weft, 'save', *(os.path.join(trace, name) for name in os.listdir(trace)), '-w', copy], check=True, timeout=PATIENCE, stderr=subprocess.DEVNULL)
    return subprocess.run([weft, 'waits', *saved], capture_output=True, text=True, check=True, timeout=PATIENCE).stdout


if not shutil.which('node') or subprocess.run([PYTHON, '-c', 'import uvloop'], stderr=subprocess.DEVNULL, check=False).returncode:
    print('skipped: Node.js or uvloop is not installed')
    sys.exit(77)
ACROSS = r'connection \d+ "to 127[^\n]*\n\W+read \d+ [^\n]*\n\W+connection \d+ "from 127[^\n]*in python3'
with tempfile.TemporaryDirectory() as place:
    os.mkfifo(os.path.join(place, 'never'))
    said = weft_waits(place, '/stops')
    if not re.search(ACROSS, said) or 'fs' not in said or 'open never' not in said:
        sys.exit(f'FAILED: an answer that began and stopped leads nowhere:\n{said}')
    for healthy in '/pushes', '/keeps':
        said = weft_waits(place, healthy)
        if re.search(ACROSS, said) or not re.search(r'connection \d+ "to 127[^\n]*\n\W+read \d+', said):
            sys.exit(f'FAILED: {healthy} is waited for:\n{said}')
