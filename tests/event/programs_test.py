#!/usr/bin/env python3
"""Records unmodified programs of libevent: their actions are in the trace, and findings name only real faults.

	programs_test.py NAME WEFT	the names are at the end

SPDX-License-Identifier: ISC"""

import base64
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from recorded import ENV, PATIENCE, Recording, check_answered_reads, expect, fail, free_port, need, until

# The limit for stalls is long, because a healthy program also has shorter stalls on a busy machine.
LATE = '2s'


def healthy(trace):
    expect(trace.alarms(LATE), [], f'alarms in {trace.path}')
    expect(trace.lost(), 0, f'events lost in {trace.path}')


def memcached(weft, folder):
    """memcached serves four clients with two worker threads."""
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
    alive = trace.findings(LATE).get('alive', [])
    expect((len(alive), 'and 1 more have not returned' in alive[0]['title']), (1, True), 'loops that are kept')
    healthy(trace)


ASKS = """
import asyncio, sys, uvloop
async def main():
    reader, writer = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
    for i in range(8):
        writer.write(b'set key 0 0 %d\\r\\n%s\\r\\n' % (i + 1, b'x' * (i + 1)))
        assert await reader.readline() == b'STORED\\r\\n'
    writer.close()
uvloop.install()
asyncio.run(main())
"""


def memcached_asked(weft, folder):
    """memcached reads and writes its connections with system calls; the path of a request leads into it, and the path of the response back."""
    server, python = need('memcached'), need('/usr/bin/python3')
    if subprocess.run([python, '-c', 'import uvloop'], stderr=subprocess.DEVNULL, check=False).returncode:
        print('SKIPPED: python3-uvloop is not installed')
        sys.exit(77)
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    user = ['-u', 'root'] if os.getuid() == 0 else []
    asked = Recording(weft, os.path.join(folder, 'server'), [server, *user, '-l', '127.0.0.1', '-p', str(port), '-t', '1'], wait=False)

    def listens():
        with socket.socket() as client:
            return client.connect_ex(('127.0.0.1', port)) == 0

    until(listens, 'memcached does not listen')
    client = Recording(weft, os.path.join(folder, 'client'), [python, '-c', ASKS, str(port)])
    expect(client.status, 0, 'how the client ends')
    time.sleep(0.5)
    asked.end('memcached', signal.SIGINT)
    path = check_answered_reads(weft, client.trace('python3'), asked.trace('memcached'))
    if '  in memcached' not in path or 'in transit from memcached' not in path:
        fail(f'the path of an answer does not go through memcached:\n{path}')


def poolcounter(weft, folder):
    """Callbacks of poolcounter end with a jump into libevent, so they have no stack frame then; promises that are created there still belong to the callbacks."""
    own = f'127.{os.getpid() >> 8 & 255}.{os.getpid() & 255}.2'  # poolcounterd has a fixed port, so the test chooses an address
    recording = Recording(weft, os.path.join(folder, 'traces'), [need('poolcounterd'), '-l', own], wait=False)

    def is_locked():
        try:
            with socket.create_connection((own, 7531), timeout=PATIENCE) as client:
                client.sendall(b'ACQ4ME lock 1 10 100\n')
                return client.recv(100) == b'LOCKED\n'
        except ConnectionRefusedError:
            return False

    until(is_locked, 'poolcounterd gives no lock')
    recording.end('poolcounterd', signal.SIGINT)
    made = {os.path.basename(p['site']['module']) for p in recording.trace('poolcounterd').promises('connection')}
    expect(made, {'poolcounterd'}, 'what made its connections')


def webdis(weft, folder):
    """webdis sends a request to redis, which is stopped for a second."""
    program, store = need('webdis'), need('redis-server')
    port, at = free_port(), free_port()
    rc = os.path.join(folder, 'webdis.json')
    with open(rc, 'w', encoding='ascii') as file:
        json.dump({'redis_host': '127.0.0.1', 'redis_port': at, 'http_host': '127.0.0.1', 'http_port': port, 'threads': 1, 'pool_size': 1,
                   'daemonize': False, 'verbosity': 0, 'logfile': os.path.join(folder, 'log')}, file)
    redis = subprocess.Popen([store, '--port', str(at), '--bind', '127.0.0.1', '--save', '', '--dir', folder], stdout=subprocess.DEVNULL)

    def ask():
        client = http.client.HTTPConnection('127.0.0.1', port, timeout=PATIENCE)
        try:  # the connection is kept until the answer has come
            client.request('GET', '/GET/a')
            return client.getresponse().read() == b'{"GET":null}'
        except OSError:
            return False
        finally:
            client.close()

    try:
        recording = Recording(weft, os.path.join(folder, 'traces'), [program, rc], wait=False)
        until(ask, 'webdis does not answer')
        expect([ask() for _ in range(30)], [True] * 30, 'what webdis answers')
        redis.send_signal(signal.SIGSTOP)
        go_on = threading.Timer(1, redis.send_signal, [signal.SIGCONT])
        go_on.start()
        expect(ask(), True, 'what webdis answers late')
        go_on.join()
        expect(ask(), True, 'what webdis answers then')  # the previous connection has been closed
        recording.end('webdis', signal.SIGTERM)
    finally:
        redis.kill()
        redis.wait()
    trace = recording.trace('webdis')
    late = [finding['title'] for finding in trace.findings('10ms').get('slow', []) if 'was answered after' in finding['title']]
    if len(late) != 1 or f':{at}"' not in late[0]:
        fail(f'nothing is said of redis, which answered late: {late}')
    # webdis also watches accepted sockets for POLLOUT.
    ways = {(label.split()[0], label.endswith(f':{at}')) for p in trace.promises('connection') for _, label in p['labels'] if ' ' in label}
    expect(ways, {('from', False), ('to', True)}, 'what connections are called')
    asked = max((p for p in trace.promises('connection') if p['end'] == 'resolved'), key=lambda p: p['end_ns'] - p['start_ns'])
    why = subprocess.run([weft, 'explain', f'--promise={asked["promise"]}', trace.path], capture_output=True, text=True, check=True).stdout
    if 'waiting, maybe for connection' not in why or f':{at}", which answered' not in why:
        fail(f'the request that took longest does not say that it waited for redis:\n{why}')


def webdis_refused(weft, folder):
    """webdis connects to a redis that does not run; hiredis makes this connect without libevent."""
    program = need('webdis')
    port, at = free_port(), free_port()
    rc = os.path.join(folder, 'webdis.json')
    with open(rc, 'w', encoding='ascii') as file:
        json.dump({'redis_host': '127.0.0.1', 'redis_port': at, 'http_host': '127.0.0.1', 'http_port': port, 'threads': 1, 'pool_size': 1,
                   'daemonize': False, 'verbosity': 0, 'logfile': os.path.join(folder, 'log')}, file)
    recording = Recording(weft, os.path.join(folder, 'traces'), [program, rc], wait=False)
    until(lambda: recording.all() and len(recording.trace('webdis').promises('connect')) > 12, 'webdis does not try again')
    recording.end('webdis', signal.SIGTERM)
    trace = recording.trace('webdis')
    expect({(p['end'], p['failure'], f'127.0.0.1:{at}' in str(p['labels'])) for p in trace.promises('connect')}, {('failed', 'Connection refused', True)}, 'its connects')
    retries = [finding['title'] for finding in trace.findings('10ms').get('retries', [])]
    if len(retries) != 1 or f'"127.0.0.1:{at}"' not in retries[0] or 'Connection refused' not in retries[0]:
        fail(f'nothing is said of redis, which refuses: {retries}')


def tmux(weft, folder):
    """tmux: a server with a window in which a command prints a text."""
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


def transmission(weft, folder):
    """The daemon of transmission gets the name of a file by HTTP, reads the whole file, and ends."""
    program, data = need('transmission-daemon'), bytes(range(256)) * 4096
    with socket.socket() as one, socket.socket() as two:
        one.bind(('127.0.0.1', 0))
        two.bind(('127.0.0.1', 0))
        port, peers = one.getsockname()[1], two.getsockname()[1]
    with open(os.path.join(folder, 'file'), 'wb') as file:
        file.write(data)
    recording = Recording(weft, os.path.join(folder, 'traces'), [program, '-f', '-g', folder + '/config', '-p', str(port), '-r', '127.0.0.1', '-P', str(peers), '-w',
                                                                folder, '-T', '--no-dht', '--no-lpd', '--no-portmap', '--no-utp'], wait=False)
    session, asked = [''], [0]

    def ask(method, **arguments):
        request = urllib.request.Request(f'http://127.0.0.1:{port}/transmission/rpc', json.dumps({'method': method, 'arguments': arguments}).encode(),
                                         {'X-Transmission-Session-Id': session[0]})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                asked[0] += 1
                return json.load(answer)['arguments']
        except urllib.error.HTTPError as error:  # the first response has the id of the session
            asked[0] += 1
            session[0] = error.headers['X-Transmission-Session-Id']
        except OSError:
            pass
        return None

    until(lambda: ask('session-get'), 'the daemon does not answer')
    pieces = b''.join(hashlib.sha1(data[i:i + 32768]).digest() for i in range(0, len(data), 32768))
    ask('torrent-add', metainfo=base64.b64encode(b'd4:infod6:lengthi%de4:name4:file12:piece lengthi32768e6:pieces%d:%see' % (len(data), len(pieces), pieces)).decode())
    until(lambda: [t['percentDone'] for t in ask('torrent-get', fields=['percentDone'])['torrents']] == [1], 'the file is not found whole')
    ask('session-close')
    recording.out, recording.err = recording.process.communicate(timeout=PATIENCE)
    expect(recording.process.returncode, 0, 'the exit status of transmission')
    trace = recording.trace('transmission-da')
    served = trace.promises('request', 'POST /transmission/rpc')
    expect((len(served), {p['end'] for p in served}), (asked[0], {'resolved'}), 'requests of HTTP')
    listens = trace.promises('listen', f'listen 127.0.0.1:{port}')
    connections = {p['promise']: p for p in trace.promises('connection')}
    if len(listens) != 1 or any(connections[p['created_by']]['created_by'] != listens[0]['promise'] for p in served):
        fail(f'requests whose connections come from nowhere: {served}')
    if len(trace.promises('loop', 'event_base_loop')) < 2 or not trace.promises('timer', '500 ms'):
        fail('loops or timers are missing')
    # One of its OS threads only reads a pipe without writers.
    idle = [p for p in trace.promises('thread') if len(p['running']) < 5 and p['end_ns'] - p['start_ns'] > 10 * sum(b - a for a, b in p['running'])]
    if not idle:
        fail(f'OS threads that seem to work for ever: {trace.promises("thread")}')
    healthy(trace)


def tor(weft, folder):
    """tor does not use the network and is ended through its control port; a second tor only reads its configuration."""
    program, path, rc = need('tor'), os.path.join(folder, 'socket'), os.path.join(folder, 'torrc')
    with open(rc, 'w', encoding='ascii') as file:
        file.write(f'DataDirectory {folder}/data\nDisableNetwork 1\nControlSocket {path}\nSocksPort 0\n')
    checks = [program, '--verify-config', '--hush', '-f', rc]
    plain = subprocess.run(checks, env=ENV, stdout=subprocess.PIPE, timeout=PATIENCE, check=True).stdout
    time_of_day = re.compile(rb'\d\d:\d\d:\d\d\.\d+')
    checked = Recording(weft, os.path.join(folder, 'checked'), checks)
    expect((checked.status, time_of_day.sub(b'', checked.out)), (0, time_of_day.sub(b'', plain)), 'what tor says of its configuration')
    expect(checked.traces(), [], 'traces of a program without a loop')
    # tor 0.4.9 sometimes aborts, with and without recording, because it destroys a mutex while a worker waits for it.
    for attempt in range(10):
        traces = os.path.join(folder, f'traces-{attempt}')
        recording = Recording(weft, traces, [program, '--hush', '-f', rc], wait=False)
        until(lambda: os.path.exists(path), 'tor does not listen')
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(path)
            file = control.makefile('rwb')
            for command, answers in ((b'AUTHENTICATE ""', 1), (b'GETINFO traffic/read', 2), (b'SIGNAL TERM', 1)):
                file.write(command + b'\r\n')
                file.flush()
                expect([file.readline()[:3] for _ in range(answers)], [b'250'] * answers, f'what tor answers to {command}')
        recording.out, recording.err = recording.process.communicate(timeout=PATIENCE)
        if recording.process.returncode == 0:
            break
        expect(b'Error locking a mutex' in recording.out + recording.err, True, f'whether tor ends as it does without weft: {recording.process.returncode}')
        if os.path.exists(path):
            os.unlink(path)
    expect(recording.process.returncode, 0, 'the exit status of tor')
    trace = recording.trace('tor')
    listener, loop = trace.promise('listen', 'listen ' + path), trace.promise('loop', 'event_base_loop')
    expect((listener['end'], loop['end']), ('resolved', 'resolved'), 'how listener and loop end')
    expect([(p['created_by'], p['end']) for p in trace.promises('connection', '/socket')][:1], [(listener['promise'], 'resolved')], 'the connection')
    if len(trace.promise('signal', 'signal 15')['running']) != 1 or len(trace.promises('thread')) < 3:
        fail('who is told of the end, or workers, are missing')
    healthy(trace)


TESTS = {'memcached': memcached, 'memcached that is asked': memcached_asked, 'poolcounter': poolcounter, 'webdis that waits for redis': webdis, 'webdis without redis': webdis_refused, 'tmux': tmux, 'transmission': transmission, 'tor': tor}
with tempfile.TemporaryDirectory(prefix='weft-event-') as place:
    TESTS[sys.argv[1]](sys.argv[2], place)
