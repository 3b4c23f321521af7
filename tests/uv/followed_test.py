#!/usr/bin/env python3
"""followed_test.py WEFT: weft top, weft serve and weft waits --follow show several busy processes as one trace; the processes are Python with uvloop of Debian.

SPDX-License-Identifier: ISC"""
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
from terminal import Terminal, is_there  # pylint: disable=wrong-import-position
from waiting import PATIENCE, dies_with_test, expect, until  # pylint: disable=wrong-import-position

weft = os.path.abspath(sys.argv[1])
PYTHON = '/usr/bin/python3'
if not os.path.exists(PYTHON) or subprocess.run([PYTHON, '-c', 'import uvloop'], stderr=subprocess.DEVNULL, check=False).returncode:
    print('SKIPPED: python3-uvloop is not installed')
    sys.exit(77)

SERVER = """
import asyncio, uvloop
over = asyncio.Event()
async def serve(reader, writer):
    while data := await reader.read(1000):
        writer.write(data)
        await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    asyncio.get_running_loop().add_reader(0, over.set)
    await over.wait()
uvloop.install()
asyncio.run(main())
"""
# The client reads a number from each line of its input, and sends so many requests.
CLIENT = """
import asyncio, os, sys, uvloop
async def main():
    reader, writer = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
    lines = asyncio.Queue()
    asyncio.get_running_loop().add_reader(0, lambda: lines.put_nowait(os.read(0, 100)))
    while line := await lines.get():
        for _ in range(int(line)):
            writer.write(b'hello')
            await reader.read(1000)
        print('done', flush=True)
uvloop.install()
asyncio.run(main())
"""
STEP = 20000  # number of requests; each request gives about ten events in both processes together


class Process:
    """A recorded process, in its own session in a folder of sessions."""

    def __init__(self, folder, script, *words):
        self.folder = f'sessions/{folder}'
        self.process = subprocess.Popen([weft, 'record', '-o', self.folder, '--size=256M', '--', PYTHON, script, *words],  # pylint: disable=consider-using-with
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=dies_with_test)

    def line(self):
        return self.process.stdout.readline().strip()

    def ask(self, count):
        self.process.stdin.write(f'{count}\n')
        self.process.stdin.flush()
        expect('the client is', self.line(), 'done')

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE)


class Server:
    def __init__(self):
        self.process = subprocess.Popen([weft, 'serve', 'sessions'], stdout=subprocess.PIPE, text=True, preexec_fn=dies_with_test)  # pylint: disable=consider-using-with
        self.url = self.process.stdout.readline().strip()

    def get(self, path, name):
        """Stores the answer of the server as file `name`; returns whether the answer has only the newest events."""
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as answer, open(name, 'wb') as file:
            file.write(answer.read())
            return 'newest' in answer.headers['ETag']


def weft_json(*words):
    got = subprocess.run([weft, *words], capture_output=True, text=True, check=True, timeout=PATIENCE)
    return [json.loads(line) for line in got.stdout.splitlines()]


class Facts:
    """Numbers and names of a trace of two processes, which the test compares."""

    def __init__(self, path):
        if os.path.exists('facts'):
            os.remove('facts')
        subprocess.run([weft, 'convert', path, '--to=sqlite', '-o', 'facts'], check=True, timeout=PATIENCE, stderr=subprocess.DEVNULL)
        base = sqlite3.connect('facts')
        self.processes = base.execute('SELECT COUNT(DISTINCT pid) FROM thread').fetchone()[0]
        self.pending = sorted(base.execute("SELECT kind, name FROM promise WHERE end = 'pending' AND kind <> 'preexisting'"))
        self.events = weft_json('info', '--json', path)[0]['events']
        # The last digit of an id names the process of a promise.
        # Reads of Python's StreamReader are left out, because each of them waits for a read of uvloop.
        self.reads = base.execute("SELECT COUNT(*) FROM promise WHERE kind = 'read' AND end = 'resolved' AND name NOT LIKE 'StreamReader%'").fetchone()[0]
        self.messages = base.execute('SELECT COUNT(*) FROM link JOIN promise x ON x.number = link.a JOIN promise y ON y.number = link.b '
                                     'WHERE x.id % 10 <> y.id % 10 AND x.id > 0 AND y.id > 0').fetchone()[0]
        base.close()
        self.waits = sorted((wait['name'].split(maxsplit=2)[0], wait['awaited'].split(maxsplit=2)[0]) for wait in weft_json('waits', '--json', path) if 'awaited' in wait)


def check_follow(client):
    server = Server()
    client.ask(STEP)
    steps = 0
    while not server.get('trace-1', 'newest'):
        steps += 1
        expect('all of it is served for ever', steps < 30, True)
        client.ask(STEP)
    for _ in range(5):
        client.ask(STEP)
        expect('the newest', server.get('trace-1', 'newest'), True)
    # The wait of a loop for its poll is recorded only when the poll has lasted for some time.
    until('both loops wait', lambda: server.get('trace-1', 'newest') and Facts('newest').waits.count(('loop', 'poll')) == 2)
    expect('all', server.get('trace-1?whole=1', 'whole'), False)
    newest, whole = Facts('newest'), Facts('whole')
    expect('processes', (newest.processes, whole.processes), (2, 2))
    if newest.events >= whole.events * 3 // 4:
        sys.exit(f'a window is not bounded: {newest.events} of {whole.events} events')
    expect('who is pending', newest.pending, whole.pending)
    expect('who waits', newest.waits, whole.waits)
    expect('there is much in it', newest.reads > STEP, True)
    # Each read has bytes that the other process wrote, except for reads near the start of the window.
    expect('messages stay', newest.messages >= newest.reads - 10, True)

    # When a process starts or ends, weft serve reads the directory again.
    late = Process('late', 'client.py', client.port)
    late.ask(10)
    client.ask(1)
    expect('the newest of three', server.get('trace-1', 'newest'), True)
    expect('one has come', Facts('newest').processes, 3)
    late.end()
    shutil.rmtree(late.folder)
    client.ask(STEP)
    server.get('trace-1', 'newest')
    expect('one has gone', Facts('newest').processes, 2)
    server.process.terminate()
    expect('weft serve ends', server.process.wait(PATIENCE), 0)


def check_weft_top(client):
    with Terminal(110, 30) as terminal:
        terminal.start(weft, 'top', 'sessions')
        terminal.until('both are there', lambda shown: '● live' in shown and 'connection "from *' in shown and 'connection "to *' in shown)
        late = Process('later', 'client.py', client.port)
        late.ask(10)
        terminal.until('one has come', 'sessions, 3 traces')
        late.end()
        terminal.until('one has ended, and its window is over', lambda shown: client.ask(STEP // 10) or 'sessions, 2 traces' in shown)
        terminal.type('q')
        terminal.until('it ends', 'ended: 0')


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    for name, text in (('server.py', SERVER), ('client.py', CLIENT)):
        with open(name, 'w', encoding='utf-8') as file:
            file.write(text)
    answers = Process('server', 'server.py')
    asks = Process('client', 'client.py', port := answers.line())
    asks.port = port
    asks.ask(10)
    with open('waits', 'w', encoding='utf-8') as file:
        waits = subprocess.Popen([weft, 'waits', '--follow', '--json', 'sessions'], stdout=file)  # pylint: disable=consider-using-with
    check_follow(asks)
    if is_there():
        check_weft_top(asks)
    expect('weft waits goes on', waits.poll(), None)
    asks.end()
    answers.end()
    expect('and ends', waits.wait(PATIENCE), 0)
    print('several processes are followed as one')
