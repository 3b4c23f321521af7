#!/usr/bin/env python3
"""Records unmodified programs without a runtime that weft knows: when their OS threads work and sleep.

	programs_test.py NAME WEFT	the names are at the end

SPDX-License-Identifier: ISC"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from recorded import PATIENCE, Recording, expect, fail, need

# The limit for stalls is long, because a healthy program also has shorter stalls on a busy machine.
LATE = '2s'


def sleeps(thread):
    """Returns the intervals in which the OS thread does not run."""
    return [(a[1], b[0]) for a, b in zip(thread['running'], thread['running'][1:])]


def redis(weft, folder):
    """A server that waits, is kept busy, and waits again; its helper threads sleep all the time."""
    server = need('redis-server')
    path = os.path.join(folder, 'socket')
    recording = Recording(weft, os.path.join(folder, 'traces'), [server, '--port', '0', '--unixsocket', path, '--save', '', '--dir', folder], wait=False)
    end = time.monotonic() + PATIENCE
    while not os.path.exists(path):
        if time.monotonic() > end:
            fail('redis-server does not listen')
        time.sleep(0.05)
    time.sleep(0.3)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        got = b''
        client.sendall(b'SET a 1\r\n' * 2000 + b'DEBUG SLEEP 0.2\r\n' + b'GET a\r\n')
        while not got.endswith(b'$1\r\n1\r\n'):
            got += client.recv(65536)
        time.sleep(0.3)
    recording.end('redis-server', signal.SIGTERM)
    expect(recording.status, 0, 'the exit status of redis-server')
    trace = recording.trace('redis-server')
    expect(trace.ask('info', '--json')[0].get('runtimes', ''), '', 'runtimes of a server that only notifies systemd')
    expect({p['kind'] for p in trace.promises()} - {'condition'}, {'thread', 'listen', 'connection'}, 'what libc tells: conditions, too, at which its helpers wait')
    main = trace.promise('thread', 'main')
    for name in ('bio_close_file', 'bio_aof_fsync', 'bio_lazy_free'):
        helper = trace.promise('thread', name)
        expect(helper['created_by'], main['promise'], 'who started ' + name)
        if not helper['running'] or sum(b - a for a, b in helper['running']) > 100000000:
            fail(f'{name} worked: {helper["running"]}')
        for what in [helper] + [p for p in trace.promises() if p['promise'] in helper['awaits']]:
            if what['end_ns'] < main['end_ns'] - 1000:
                fail(f'{name} slept until the end, but {what} is gone before {main["end_ns"]}')
        said = subprocess.run([weft, 'explain', f'--promise={helper["promise"]}', trace.path], capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
        if not re.search(rf'"{name}".* is pending: it has slept for .* for condition \d+', said.splitlines()[0]) or 'nothing tried' in said:
            fail(f'why {name} has not ended: {said}')
    # At most 3 timer ticks in 300 ms: the server waits most of the time.
    if sum(b - a for a, b in sleeps(main)) < 300000000:
        fail(f'redis-server did not sleep: {main["running"]}')
    expect(trace.alarms(LATE), [], 'alarms')
    expect(trace.lost(), 0, 'events lost')
    # The picture shows a helper thread by the name that the thread got after its start.
    picture = os.path.join(folder, 'redis.svg')
    subprocess.run([weft, 'render', trace.path, '-o', picture, '--size=1280x1000'], check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(picture, encoding='utf-8') as file:
        heads = set(re.findall(r'>(redis-server|bio_\w+) \d+<', file.read()))
    expect(heads, {'redis-server', 'bio_close_file', 'bio_aof_fsync', 'bio_lazy_free'}, 'heads of OS threads')


def dbus(weft, folder):
    """Records the message bus and a client of it."""
    daemon, send = need('dbus-daemon'), need('dbus-send')
    address = 'unix:path=' + os.path.join(folder, 'bus')
    config = os.path.join(folder, 'bus.conf')
    with open(config, 'w', encoding='ascii') as file:
        file.write(f'<busconfig><type>session</type><listen>{address}</listen><policy context="default">'
                   '<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>')
    recording = Recording(weft, os.path.join(folder, 'traces'), [daemon, '--config-file=' + config, '--nofork'], wait=False)
    ask = [send, '--bus=' + address, '--print-reply', '--dest=org.freedesktop.DBus', '/', 'org.freedesktop.DBus.ListNames']
    end = time.monotonic() + PATIENCE
    while subprocess.run(ask, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False).returncode:
        if time.monotonic() > end:
            fail('dbus-daemon does not answer')
        time.sleep(0.1)
    time.sleep(0.2)
    subprocess.run(ask, stdout=subprocess.PIPE, check=True)
    recording.end('dbus-daemon', signal.SIGTERM)
    trace = recording.trace('dbus-daemon')
    main = trace.promise('thread', 'main')
    if not any(b - a >= 190000000 for a, b in sleeps(main)) or len(sleeps(main)) < 4:
        fail(f'dbus-daemon did not sleep between questions: {main["running"]}')
    expect(trace.alarms(LATE), [], 'alarms')


def curl(weft, folder):
    """A recorded client prints the same and has the same exit status, with and without an answer."""
    program = need('curl')
    with socket.create_server(('127.0.0.1', 0)) as server:
        def answer():
            for _ in range(2):
                client, _ = server.accept()
                with client:
                    client.recv(65536)
                    client.sendall(b'HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nhello\n')
        threading.Thread(target=answer, daemon=True).start()
        ask = [program, '-s', '--noproxy', '*', f'http://127.0.0.1:{server.getsockname()[1]}/']
        plain = subprocess.run(ask, stdout=subprocess.PIPE, timeout=PATIENCE, check=True).stdout
        recording = Recording(weft, os.path.join(folder, 'answered'), ask)
        expect((recording.status, recording.out, plain), (0, plain, b'hello\n'), 'what curl prints')
    recording = Recording(weft, os.path.join(folder, 'refused'), ask)
    expect((recording.status, recording.out), (7, b''), 'what curl does without a server')


TESTS = {'redis': redis, 'dbus': dbus, 'curl': curl}
with tempfile.TemporaryDirectory(prefix='weft-base-') as place:
    TESTS[sys.argv[1]](sys.argv[2], place)
