#!/usr/bin/env python3
"""Programs of libevent, as Debian installs them.

	programs_test.py NAME WEFT	the names are at the end

SPDX-License-Identifier: ISC"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from recorded import ENV, PATIENCE, Recording, expect, fail, need

# A machine that does other things too makes everything late: only delays that no healthy run has are alarms here.
LATE = '2s'


def healthy(trace):
    expect(trace.alarms(LATE), [], f'alarms in {trace.path}')
    expect(trace.lost(), 0, f'events lost in {trace.path}')


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            fail(what)
        time.sleep(0.05)


def memcached(weft, folder):
    """Four clients and two workers."""
    server, path = need('memcached'), os.path.join(folder, 'socket')
    user = ['-u', 'root'] if os.getuid() == 0 else []
    recording = Recording(weft, os.path.join(folder, 'traces'), [server, *user, '-s', path, '-t', '2'], wait=False)
    until(lambda: os.path.exists(path), 'memcached does not listen')
    answers = []

    def ask(number):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            file = client.makefile('rwb')
            for _ in range(500):
                file.write(b'set key%d 0 0 5\r\nhello\r\n' % number)
                file.flush()
                answers.append(file.readline())

    clients = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    expect(answers, [b'STORED\r\n'] * 2000, 'what memcached answers')
    time.sleep(0.5)
    recording.end('memcached', signal.SIGINT)
    trace = recording.trace('memcached')
    workers = [p for p in trace.promises('loop', 'event_base_loop') if p['stream'] != 0]
    expect(len(workers), 2, 'loops of workers')
    connections = trace.promises('connection')
    expect((len(connections), {p['end'] for p in connections}), (4, {'resolved'}), 'connections')
    wakers = {p['promise'] for p in trace.promises('poll')}
    if not all(p['created_by'] in wakers and len(p['running']) > 100 for p in connections):
        fail(f'connections: {connections}')
    expect(len(trace.promises('listen', 'listen ' + path)), 1, 'listeners')
    if not trace.promises('timer', '1 s') or len(trace.promises('thread')) < 4:
        fail('the clock or the OS threads are missing')
    expect(len(trace.findings(LATE).get('alive', [])), 2, 'loops that are kept')
    healthy(trace)


def tmux(weft, folder):
    """A server with a window, in which a command says something."""
    program, path = need('tmux'), os.path.join(folder, 'socket')
    said = os.path.join(folder, 'said')
    env = {**ENV, 'TERM': 'screen', 'SHELL': '/bin/sh', 'LC_ALL': 'C.UTF-8'}
    recording = Recording(weft, os.path.join(folder, 'traces'), [program, '-S', path, '-f', '/dev/null', 'new-session', '-d', '-s', 'one',
                                                                f'echo hello; touch {said}; sleep 100'], env=env)
    expect(recording.status, 0, 'the exit status of tmux')
    until(lambda: os.path.exists(said), 'the command in the window does not run')
    seen = subprocess.run([program, '-S', path, 'capture-pane', '-p', '-t', 'one'], stdout=subprocess.PIPE, env=env, timeout=PATIENCE, check=True).stdout
    expect(seen.splitlines()[0], b'hello', 'what is in the window')
    subprocess.run([program, '-S', path, 'kill-server'], env=env, timeout=PATIENCE, check=True)
    until(lambda: not any(os.path.exists('/proc/' + name.rsplit('-', 1)[1]) for name in os.listdir(os.path.join(folder, 'traces'))), 'tmux does not end')
    servers = [trace for trace in recording.all() if trace.promises('listen')]
    expect(len(servers), 1, 'servers')
    trace = servers[0]
    if not trace.promises('signal', 'signal 17') or not trace.promises('connection'):
        fail('signals or clients are missing')
    healthy(trace)


TESTS = {'memcached': memcached, 'tmux': tmux}
with tempfile.TemporaryDirectory(prefix='weft-event-') as place:
    TESTS[sys.argv[1]](sys.argv[2], place)
