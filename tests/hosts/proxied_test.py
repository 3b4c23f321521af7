#!/usr/bin/env python3
"""proxied_test.py WEFT: a proxy of Node.js keeps its connection to a server, and forwards requests of a uvloop client: a wait for a missing response is followed
through both.

SPDX-License-Identifier: ISC"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

PATIENCE = 120
PYTHON = '/usr/bin/python3'  # Debian's, which has Debian's uvloop
weft = os.path.abspath(sys.argv[1])
SERVER = """
const http = require('http'), fs = require('fs');
const server = http.createServer((question, answer) => {
    if (question.url === '/never')
        fs.readFile('never', (error, bytes) => answer.end(bytes));
    else
        answer.end('hello');
}).listen(0, '127.0.0.1', () => console.log(server.address().port));
"""
PROXY = """
const http = require('http'), agent = new http.Agent({keepAlive: true, maxSockets: 1});
const server = http.createServer((question, answer) => {
    http.get({host: '127.0.0.1', port: process.argv[1], path: question.url, agent}, (got) => {
        answer.writeHead(200, {'Content-Length': got.headers['content-length']});
        got.pipe(answer);
    });
}).listen(0, '127.0.0.1', () => console.log(server.address().port));
"""
CLIENT = """
import asyncio, sys, uvloop
async def main():
    for path in ('/', '/', '/', '/never'):
        reader, writer = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
        writer.write(f'GET {path} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'.encode())
        if path == '/never':
            asyncio.get_running_loop().call_later(1, lambda: print('still', flush=True))
        await reader.readuntil(b'hello')
        writer.close()
uvloop.install()
asyncio.run(main())
"""

if not shutil.which('node') or subprocess.run([PYTHON, '-c', 'import uvloop'], stderr=subprocess.DEVNULL, check=False).returncode:
    print('skipped: Node.js or uvloop is not installed')
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
    os.mkfifo(os.path.join(folder, 'never'))

    def record(trace, *words):
        program = stack.enter_context(subprocess.Popen([weft, 'record', '-o', os.path.join(folder, trace), '--', *words], stdout=subprocess.PIPE,
                                                       stderr=subprocess.DEVNULL, text=True, cwd=folder))
        stack.callback(program.terminate)
        return program
    behind = record('server', 'node', '-e', SERVER).stdout.readline().strip()
    before = record('proxy', 'node', '-e', PROXY, behind).stdout.readline().strip()
    if record('client', PYTHON, '-c', CLIENT, before).stdout.readline() != 'still\n':
        sys.exit('FAILED: the client does not get so far')
    traces = [os.path.join(folder, name) for name in ('client', 'proxy', 'server')]
    said = subprocess.run([weft, 'waits', *traces], capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
    asked = rf'connection \d+ "to 127\.0\.0\.1:{before}"[^\n]*\n\W+read \d+[^\n]*\n\W+connection (\d+) "from 127'
    back = rf'connection (\d+) "to 127\.0\.0\.1:{behind}"[^\n]* to connection (\d+) "from 127[^\n]* in node'
    asks, handles = re.search(asked, said), None
    request = r'(?:\W+read [^\n]*\n)?\W+request \d+ "GET /never"[^\n]*\n'  # on a connection
    question = r'(?:\W+request \d+ "GET http://[^\n]*/never"[^\n]*\n)?'  # of the proxy
    if asks:
        handles = re.search(rf'connection {asks[1]} "from 127[^\n]* in python3[^\n]*\n{request}{question}\W+{back}', said)
    if not handles or not re.search(rf'connection {handles[2]} "from 127[^\n]* in node[^\n]*\n{request}\W+fs \d+ "open never"', said):
        sys.exit(f'FAILED: the client\'s question leads not to who does not answer:\n{said}')
