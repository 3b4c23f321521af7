#!/usr/bin/env python3
"""newest_test.py WEFT STEPS: weft serve gives the newest events of a large ring that is being recorded, and all events on request.
SPDX-License-Identifier: ISC"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request

WEFT, STEPS = (os.path.abspath(path) for path in sys.argv[1:3])
PROGRAM = './program'
TASKS = 60000  # each task records five events, so these have more events than the smallest window


def weft(*args):
    return subprocess.run([WEFT, *args], check=True, capture_output=True, text=True, timeout=120).stdout


def events_of(path):
    return json.loads(weft('info', '--json', path).split('\n')[0])['events']


def waits_of(path):
    """Returns the names of each waiting promise and of the promise it awaits."""
    waits = [json.loads(line) for line in weft('waits', '--json', path).splitlines()]
    return [(wait['name'], wait['awaited']) for wait in waits]


def find_gate_site(path):
    gates = [promise for promise in map(json.loads, weft('dump', '--json', path).splitlines()) if promise.get('kind') == 'condition']
    assert len(gates) == 1, gates
    return gates[0]['site']


def without_times(lines):
    return [line.split(maxsplit=1)[1] for line in lines]


class Program:
    def __init__(self):
        shutil.copy(STEPS, PROGRAM)
        self.process = subprocess.Popen([PROGRAM, 'ring'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == 'done\n'

    def do(self, tasks):
        self.process.stdin.write(f'{tasks}\n')
        self.process.stdin.flush()
        assert self.process.stdout.readline() == 'done\n'

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0


class Server:
    def __init__(self):
        self.process = subprocess.Popen([WEFT, 'serve', 'ring'], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()

    def get(self, path, name):
        """Stores the answer of the server as file `name`; returns whether the answer has only the newest events."""
        with urllib.request.urlopen(self.url + path, timeout=120) as answer, open(name, 'wb') as file:
            file.write(answer.read())
            return 'newest' in answer.headers['ETag']


def main():
    program = Program()
    program.do(4 * TASKS)
    server = Server()
    try:
        check_newest_events(program, server)
    finally:
        server.process.terminate()
    assert server.process.wait(60) == 0


def check_newest_events(program, server):
    steps = 0
    while not server.get('trace-1', 'newest'):
        steps += 1
        assert steps < 10, 'all of it is served again and again'
        program.do(TASKS)
    program.do(TASKS)
    assert server.get('trace-1', 'newest')
    few, many = events_of('newest'), events_of('ring')
    assert 250000 <= few <= 650000 and few < many / 2, (few, many)
    # both traces end with the same events, and the window has kept the waits that began before it
    newest, everything = weft('events', 'newest').splitlines(), weft('events', 'ring').splitlines()
    assert without_times(newest[-200000:]) == without_times(everything[-200000:])
    assert waits_of('newest') == waits_of('ring') == [('task 1 "client"', 'condition 2 "gate"')], (waits_of('newest'), waits_of('ring'))
    assert not server.get('trace-1?whole=1', 'whole')
    assert events_of('whole') == many
    if find_gate_site('ring')['function']:  # weft serve must send the names of functions, because a browser has no file of the program
        os.rename(PROGRAM, PROGRAM + '.gone')
        places = [find_gate_site(path)['function'] for path in ('newest', 'whole')]
        os.rename(PROGRAM + '.gone', PROGRAM)
        assert places == ['steps_begin'] * 2, places
    assert os.path.getsize('whole') > 2 * os.path.getsize('newest')
    program.do(2)
    assert server.get('trace-1', 'newest')
    program.end()
    assert not server.get('trace-1', 'whole')
    assert events_of('whole') == events_of('ring')


with tempfile.TemporaryDirectory(prefix='weft-newest-') as scratch:
    os.chdir(scratch)
    if 'built without' in subprocess.run([WEFT, 'serve', '--listen=nonsense:x', '/'], capture_output=True, text=True, check=False).stderr:
        sys.exit(77)
    try:
        main()
    finally:
        os.chdir('/')
