#!/usr/bin/env python3
"""Programs with an event loop that no adapter knows: their requests have names, and findings name the request.

	loop_test.py NAME WEFT	the names are at the end

SPDX-License-Identifier: ISC"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from recorded import ENV, PATIENCE, Recording, expect, fail, free_port, need, until

SECRET = 'Hush8472'


def listens(port):
    with socket.socket() as client:
        return client.connect_ex(('127.0.0.1', port)) == 0


def connect(port):
    client = socket.create_connection(('127.0.0.1', port), timeout=PATIENCE)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def get(port, path, client=None):
    """Sends a request to an HTTP server; returns the first bytes of the response."""
    client = client or connect(port)
    client.sendall(f'GET {path} HTTP/1.1\r\nHost: a\r\n\r\n'.encode())
    return client.recv(65536)


def resp(*words):
    return b''.join([b'*%d\r\n' % len(words)] + [b'$%d\r\n%s\r\n' % (len(word), word.encode()) for word in words])


def requests(trace):
    """Returns the names of all requests, sorted."""
    return sorted(p['labels'][0][1] for p in trace.promises('request'))


def first(trace, kind, pattern, stall='10ms'):
    """Checks the first finding."""
    said = subprocess.run([trace.weft, 'explain', f'--stall={stall}', trace.path], capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
    title = said.splitlines()[0]
    if not re.match(kind + r'( \(uncertain\))?: ', title) or not re.search(pattern, title):
        fail(f'the first finding is not {kind} {pattern}: {said}')


def check_texts_contain_no_secret(folder):
    """Fails if a file of the trace contains the secret; metadata may, since the user has given the command line."""
    for where, _, names in os.walk(folder):
        for name in set(names) - {'metadata'}:
            with open(os.path.join(where, name), 'rb') as file:
                if SECRET.encode() in file.read():
                    fail(f'{where}/{name} has a secret')


def redis(weft, folder):
    """Requests of redis have the names that redis counts.  DEBUG SLEEP is the first finding; waits for a stream and SHUTDOWN have no finding."""
    port = free_port()
    recording = Recording(weft, os.path.join(folder, 'traces'), [need('redis-server'), '--port', str(port), '--save', '', '--enable-debug-command', 'yes', '--dir', folder], wait=False)
    until(lambda: listens(port), 'redis-server does not listen')
    client, other, stream = connect(port), connect(port), connect(port)
    commands = [('SET', SECRET, SECRET), ('GET', SECRET), ('set', SECRET, SECRET), ('CONFIG', 'GET', 'maxmemory'), ('NOSUCH', SECRET), ('EVAL', f'return "{SECRET}"', '0')]
    for command in commands:
        client.sendall(resp(*command))
        client.recv(65536)
    stream.sendall(resp('SUBSCRIBE', SECRET))
    stream.recv(65536)
    client.sendall(resp('DEBUG', 'SLEEP', '0.3'))
    time.sleep(0.1)
    other.sendall(resp('PING'))
    expect(client.recv(65536), b'+OK\r\n', 'the answer to DEBUG SLEEP')
    expect(other.recv(65536), b'+PONG\r\n', 'the answer to PING')
    client.sendall(resp('SHUTDOWN', 'NOSAVE'))
    recording.out, recording.err = recording.process.communicate(timeout=PATIENCE)
    expect(recording.process.returncode, 0, 'the exit status of redis-server')
    trace = recording.trace('redis-server')
    expect(requests(trace), sorted(['CONFIG GET', 'DEBUG SLEEP', 'EVAL', 'GET', 'NOSUCH', 'PING', 'SET', 'SET', 'SHUTDOWN', 'SUBSCRIBE']), 'names of requests')
    first(trace, 'stall', r'request \d+ "DEBUG SLEEP" blocked the event loop for (29|3\d)\d ms in nanosleep')
    expect(set(trace.findings('100ms')) - {'stall'}, set(), 'findings')
    check_texts_contain_no_secret(recording.folder)


SERVER = """
import asyncio, sys, time
async def serve(r, w):
    while line := await r.readline():
        while (await r.readline()).strip(): pass
        if b"later" in line: await asyncio.sleep(0.02)
        if b"block" in line: time.sleep(0.3)
        if b"never" in line: await asyncio.sleep(3600)
        if b"slow" in line: await asyncio.sleep(0.6)
        w.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi")
    w.close()
async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as s: await s.serve_forever()
try: asyncio.run(main())
except KeyboardInterrupt: pass
"""


def asyncio(weft, folder):
    """The finding names the request that blocks the loop, also if it does so some iterations after its read; an idle connection is no finding."""
    for path in ('/block', '/later-block', ''):
        port, place = free_port(), os.path.join(folder, path.strip('/') or 'none')
        recording = Recording(weft, place, [need('/usr/bin/python3'), '-c', SERVER, str(port)], wait=False)
        until(lambda: listens(port), 'the server does not listen')
        idle, asker = connect(port), connect(port)
        for number in range(5):
            get(port, f'/fast/{number}?{SECRET}', idle)
        if path:
            asker.sendall(f'GET {path}?{SECRET} HTTP/1.1\r\n\r\n'.encode())
            time.sleep(0.15)
            get(port, '/other')
            expect(asker.recv(100)[:12], b'HTTP/1.1 200', 'the answer')
        time.sleep(0.3)
        recording.end('python3', signal.SIGINT)
        trace = recording.trace('python3')
        want = ['GET /fast/:id'] * 5 + [f'GET {path}', 'GET /other'] * bool(path)
        expect(requests(trace), sorted(want), 'names of requests')
        if path:
            first(trace, 'stall', rf'request \d+ "GET {path}" blocked the event loop for (?:299|3\d\d) ms in clock_nanosleep')
        else:
            expect(trace.findings('100ms'), {}, 'findings about an idle connection and a server that is ended')
        check_texts_contain_no_secret(place)


def nginx(weft, folder):
    """nginx has the requests of its own log; findings name a slow and a silent upstream server."""
    server, upstream, port = need('nginx'), free_port(), 0
    port = free_port(upstream)
    os.chmod(folder, 0o755)
    with open(os.path.join(folder, 'nginx.conf'), 'w', encoding='utf-8') as file:
        file.write(f'{"user root;" if os.geteuid() == 0 else ""} daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; events {{ worker_connections 64; }}\n'
                   f'http {{ log_format names "$request_method $uri"; access_log {folder}/access.log names; root {folder};\n' +
                   ''.join(f'{what}_temp_path {folder}/{what};' for what in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi')) +
                   f'server {{ listen 127.0.0.1:{port}; location /api/ {{ proxy_pass http://127.0.0.1:{upstream}; }} }} }}\n')
    behind = subprocess.Popen([need('/usr/bin/python3'), '-c', SERVER, str(upstream)], env=ENV)
    try:
        until(lambda: listens(upstream), 'the upstream does not listen')
        for path in ('/api/slow', '/api/never'):
            place = os.path.join(folder, path.rsplit('/', maxsplit=1)[-1])
            recording = Recording(weft, place, [server, '-e', f'{folder}/error.log', '-c', f'{folder}/nginx.conf'], wait=False)
            until(lambda: listens(port), 'nginx does not listen')
            for number in range(8):
                get(port, f'/api/fast?{SECRET}{number}')
            with connect(port) as client:
                client.sendall(f'GET {path} HTTP/1.1\r\nHost: a\r\n\r\n'.encode())
                if path == '/api/slow':
                    expect(client.recv(100)[:12], b'HTTP/1.1 200', 'the answer')
                else:
                    time.sleep(1.3)
            time.sleep(0.3)
            with open(os.path.join(folder, 'pid'), encoding='utf-8') as file:
                os.kill(int(file.read()), signal.SIGTERM)
            recording.process.communicate(timeout=PATIENCE)
            [trace] = [t for t in recording.all() if t.promises('request')]
            with open(os.path.join(folder, 'access.log'), encoding='utf-8') as file:
                own = [line.strip() for line in file]
            os.truncate(os.path.join(folder, 'access.log'), 0)
            served = [p for p in trace.promises('request') if 'connection' in [q['kind'] for q in trace.promises() if q['promise'] == p['created_by']]]
            expect(sorted(p['labels'][0][1] for p in served), sorted(own), 'requests of the log')
            expect(requests(trace), sorted(own * 2), 'requests, each with the one that it makes')
            if path == '/api/slow':
                first(trace, 'slow', rf'request \d+ "GET {path}" was answered after 6\d\d ms: the median of 9 answers')
            else:
                first(trace, 'unanswered', rf'request \d+ "GET {path}" on connection \d+ waited for an answer for 1.\d+ s until it was closed')
                lost = trace.findings('100ms')['failure'][0]['title']
                if not re.search(rf'request \d+ "GET {path}" got no answer in 1.\d+ s: it waited for connection \d+ "to 127.0.0.1:{upstream}"', lost):
                    fail(f'what became of the request: {lost}')
            check_texts_contain_no_secret(place)
    finally:
        behind.kill()
        behind.wait()


def curl(weft, folder):
    """A client that waits for a silent server has a request that hangs."""
    with socket.socket() as silent:
        silent.bind(('127.0.0.1', 0))
        silent.listen()
        port = silent.getsockname()[1]
        recording = Recording(weft, os.path.join(folder, 'traces'), [need('curl'), '-s', f'http://127.0.0.1:{port}/never?{SECRET}'], wait=False)
        accepted, _ = silent.accept()
        accepted.recv(65536)
        time.sleep(1.4)
        recording.end('curl', signal.SIGINT)
        first(recording.trace('curl'), 'hang', rf'request \d+ "GET /never" is pending: it has waited \S+ m?s for an answer from connection \d+ "to 127.0.0.1:{port}"')
        check_texts_contain_no_secret(os.path.join(folder, 'traces'))


def benchmark(weft, folder):
    """A client sends several commands at once on connections that are older than its loop; its trace has no finding."""
    program, port = need('redis-benchmark'), free_port()
    server = subprocess.Popen([need('redis-server'), '--port', str(port), '--save', '', '--dir', folder], env=ENV, stdout=subprocess.DEVNULL)
    try:
        until(lambda: listens(port), 'redis-server does not listen')
        recording = Recording(weft, os.path.join(folder, 'traces'), [program, '-p', str(port), '-n', '400', '-c', '5', '-P', '4', '-q', '-t', 'set'])
        expect(recording.status, 0, 'the exit status of redis-benchmark')
        trace = recording.trace('redis-benchmark')
        found = requests(trace)
        expect((set(found), 50 <= len(found) <= 100), ({'SET'}, True), f'names of {len(found)} requests, one for four commands after the loop began')
        expect(trace.alarms('200ms'), [], 'alarms')
        expect([note for note in trace.notes() if note == '4 questions came at once'] != [], True, 'whether the others are counted')
    finally:
        server.kill()
        server.wait()


LOOPS = """
import os, select, socket, sys, threading, time
kind, port = sys.argv[1], int(sys.argv[2])
if kind in ("many", "older"):
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (5000, 5000))
    spare = [os.dup(0) for _ in range(4200 if kind == "many" else 500)]
server = socket.create_server(("127.0.0.1", port))
peers = {}
if kind == "older":
    first, _ = server.accept()
    peers[first.fileno()] = first
server.setblocking(False)
def serve(fd):
    if fd == server.fileno():
        try: peer, _ = server.accept()
        except BlockingIOError: return None
        peer.setblocking(False)
        peers[peer.fileno()] = peer
        return peer.fileno()
    try: line = peers[fd].recv(4096)
    except BlockingIOError: return None
    if not line:
        peers.pop(fd).close()
        return -fd
    if b"/block" in line: time.sleep(0.3)
    copy = os.dup(fd)
    os.write(copy, b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi")
    os.close(copy)
    if b"/end" in line: os._exit(0) if kind == "workers" else sys.exit()
def by_epoll():
    poller = select.epoll()
    for fd in [server.fileno(), *peers]: poller.register(fd, select.EPOLLIN)
    def turns():
        while True:
            for fd, _ in poller.poll(5):
                change = serve(fd)
                if change and change > 0: poller.register(change, select.EPOLLIN | (select.EPOLLONESHOT if kind == "workers" else 0))
                elif kind == "workers" and fd != server.fileno() and fd in peers: poller.modify(fd, select.EPOLLIN | select.EPOLLONESHOT)
    if kind == "workers":
        for _ in range(3): threading.Thread(target=turns, daemon=True).start()
    turns()
def by_poll():
    while True:
        poller = select.poll()
        for fd in [server.fileno(), *peers]: poller.register(fd, select.POLLIN)
        for fd, _ in poller.poll(5000): serve(fd)
def by_select():
    while True:
        for fd in select.select([server.fileno(), *peers], [], [], 5)[0]: serve(fd)
{"poll": by_poll, "select": by_select}.get(kind, by_epoll)()
"""


SERVERS = {'beside': ['cc', 'beside.c', '-luv', '-levent', '-pthread'], 'odd': ['cc', 'odd.c', '-D_GNU_SOURCE'], 'turns': ['cc', 'turns.c', '-g'], 'pool': ['cc', 'pool.c', '-D_GNU_SOURCE', '-pthread'], 'libev': ['cc', 'ev.c', '-fno-strict-aliasing', '-lev'], 'asio': ['c++', 'asio.cc', '-std=c++17', '-pthread']}


def compiled(kind, folder):
    """Compiles the server on a library; the test is skipped without the library."""
    if kind not in SERVERS:
        return None
    compiler, source, *options = SERVERS[kind]
    path = os.path.join(folder, kind)
    run = subprocess.run([need(compiler), '-O1', '-o', path, os.path.join(os.path.dirname(os.path.abspath(__file__)), source), *options],
                         capture_output=True, text=True, timeout=PATIENCE, check=False)
    if run.returncode:
        print(f'SKIPPED: no {kind}: {run.stderr}')
        sys.exit(77)
    return [path]


def loops(weft, folder, kind):
    """Requests of a program with an event loop of its own have names, and the request that blocks the loop has a finding."""
    port = free_port()
    command = compiled(kind, folder) or [need('/usr/bin/python3'), '-c', LOOPS, kind]
    recording = Recording(weft, os.path.join(folder, 'traces'), [*command, str(port)], wait=False)
    until(lambda: listens(port), 'the server does not listen')
    clients = [connect(port) for _ in range(4)]
    for number in range(20):
        expect(get(port, f'/item/{number}?{SECRET}', clients[number % 4])[:12], b'HTTP/1.1 200', 'the answer')
    clients[0].sendall(b'GET /block HTTP/1.1\r\n\r\n')
    time.sleep(0.1)
    get(port, '/other', clients[1])
    clients[0].recv(100)
    clients[2].sendall(b'GET /end HTTP/1.1\r\n\r\n')
    recording.out, recording.err = recording.process.communicate(timeout=PATIENCE)
    expect(recording.process.returncode, 0, 'the exit status')
    trace = recording.trace()
    found = requests(trace)
    expect([name for name in found if name != 'GET /end'], sorted(['GET /item/:id'] * 20 + ['GET /block', 'GET /other']), 'names of requests')
    if kind != 'workers':
        first(trace, 'stall', r'request \d+ "GET /block" blocked the event loop for (29|3\d)\d ms' + ('' if kind in SERVERS else ' in clock_nanosleep'))
    expect(trace.lost(), 0, 'events lost')
    check_texts_contain_no_secret(recording.folder)


def older(weft, folder):
    """A connection that the program accepted before its loop began counts as accepted, also if the descriptor of the listener has a high number."""
    port = free_port()
    recording = Recording(weft, os.path.join(folder, 'traces'), [need('/usr/bin/python3'), '-c', LOOPS, 'older', str(port)], wait=False)
    clients = []

    def joins():
        try:
            clients.append(connect(port))
        except ConnectionRefusedError:
            return False
        return True
    until(joins, 'the server does not listen')
    expect(get(port, '/a', clients[0])[:12], b'HTTP/1.1 200', 'the answer')
    clients[0].sendall(b'GET /end HTTP/1.1\r\n\r\n')
    recording.process.communicate(timeout=PATIENCE)
    trace = recording.trace()
    address = '%s:%d' % clients[0].getsockname()
    expect([p['labels'][0][1] for p in trace.promises('connection')], [f'from {address}'], 'labels of connections')
    expect([p['labels'][0][1] for p in trace.promises('listen')], [f'listen 127.0.0.1:{port}'], 'labels of listeners')


def odd(weft, folder):
    """Each call has the same result and the same errno when it is recorded, also with signals in the middle."""
    [program] = compiled('odd', folder)
    plain = subprocess.run([program], env=ENV, stdout=subprocess.PIPE, timeout=PATIENCE, check=False)
    recording = Recording(weft, os.path.join(folder, 'traces'), [program])
    expect((recording.status, recording.out.decode().splitlines()), (plain.returncode, plain.stdout.decode().splitlines()), 'what the program sees')
    traces = [trace for trace in recording.all() if trace.promises('request', 'GET /c')]
    expect(len(traces), 1, 'traces with requests')
    expect(traces[0].lost(), 0, 'events lost')


def turns(weft, folder):
    """A descriptor that stays ready and is not read is reported, because it keeps the loop from sleeping; a descriptor that is read is not."""
    [program] = compiled('turns', folder)
    for fault in 'closed', 'writable', 'works', 'stdio':
        trace = Recording(weft, os.path.join(folder, fault), [program, fault]).trace()
        if fault in ('works', 'stdio'):
            expect([f['finding'] for f in trace.findings() if f['finding'] == 'spin'], [], 'spins of a loop that works')
        else:
            first(trace, 'spin', r'loop \d+ .* iterated \d+ times in .*, and its thread never slept .*turns\.c:\d+')


def beside(weft, folder):
    """A listening socket of an event library has one promise, also if another thread has a loop of its own."""
    [program] = compiled('beside', folder)
    for runtime in 'uv', 'event':
        trace = Recording(weft, os.path.join(folder, runtime), [program, runtime]).trace()
        expect([(p['stream'], p['end']) for p in trace.promises('listen')], [(0, 'pending')], f'listening sockets of {runtime}')


def pool(weft, folder):
    """The finding about a slow request compares it with all requests of the server, and has the time of the thread that answered it."""
    port = free_port()
    [program] = compiled('pool', folder)
    recording = Recording(weft, os.path.join(folder, 'traces'), [program, str(port)], wait=False)
    until(lambda: listens(port), 'the server does not listen')
    client = connect(port)
    for path in ['/fast'] * 40 + ['/compute', '/rest'] + ['/fast'] * 10:
        expect(get(port, path, client)[-2:], b'ok', path)
    client.sendall(b'GET /quit HTTP/1.1\r\n\r\n')
    recording.out, recording.err = recording.process.communicate(timeout=PATIENCE)
    said = subprocess.run([weft, 'explain', recording.trace('pool').path], capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
    table = subprocess.run([weft, 'stats', '--requests', '--sort=max', recording.trace('pool').path], capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
    rows = [re.split('  +', line.strip()) for line in table.splitlines()]
    expect([(row[0], row[-1]) for row in rows[1:] if 'quit' not in row[-1]], [('1', 'request "GET /compute"'), ('1', 'request "GET /rest"'), ('50', 'request "GET /fast"')], f'the table of requests: {table}')
    for path, state in ('compute', 'running'), ('rest', r'waiting for thread \d+[^\n]*, which slept'):
        pattern = rf'slow: request \d+ "GET /{path}" took [^ ]+ m?s \(median of 5\d: [^)]+\): \d+% {state}'
        if not re.search(pattern, said):
            fail(f'no finding is about GET /{path}: {said}')
    if 'find out what the request computed' not in said:
        fail(f'there is no advice about GET /compute: {said}')


TESTS = {'beside': beside, 'pool': pool, 'older': older, 'turns': turns, 'redis': redis, 'asyncio': asyncio, 'nginx': nginx, 'curl': curl, 'benchmark': benchmark, 'odd': odd}
with tempfile.TemporaryDirectory(prefix='weft-loop-') as here:
    if sys.argv[1] in TESTS:
        TESTS[sys.argv[1]](sys.argv[2], here)
    else:
        loops(sys.argv[2], here, sys.argv[1])
