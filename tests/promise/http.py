#!/usr/bin/env python3
"""http.py HTTP-SERVER WEFT [valgrind]: the example http-server gets requests of curl, and of malicious, slow and many clients.

SPDX-License-Identifier: ISC"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import urllib.parse

from http_server import PATIENCE, Server, fail, get

program, weft = sys.argv[1:3]
dice = random.Random(1)
FILES = {
    'empty': 0, 'one.txt': 1, 'page.html': 1000, 'just.bin': 65535, 'chunk.bin': 65536, 'more.bin': 65537, 'large.bin': 1 << 20,
    'with space & more?.txt': 77, 'fünf Äpfel 苹果.txt': 55, '100%.css': 5, 'folder/index.html': 123, 'folder/deep/x.json': 2,
    'huge.bin': 20 << 20,
}  # yapf: disable
TYPES = {'txt': 'text/plain; charset=utf-8', 'html': 'text/html; charset=utf-8', 'css': 'text/css; charset=utf-8', 'json': 'application/json'}


def expect(got, want, what):
    if got != want:
        fail(f'{what}: {got!r}, not {want!r}')


def make(folder):
    contents = {}
    for name, size in FILES.items():
        path = os.path.join(folder, 'www', name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        contents[name] = dice.randbytes(size)
        with open(path, 'wb') as file:
            file.write(contents[name])
    for name in ['secret', 'www/.hidden']:
        with open(os.path.join(folder, name), 'w', encoding='ascii') as file:
            file.write('secret')
    os.mkfifo(os.path.join(folder, 'www', 'fifo'))
    os.mkdir(os.path.join(folder, 'www', 'bare'))
    return contents


def files(server, contents, folder):
    """curl gets each file unchanged, all on one connection."""
    args, out = [], os.path.join(folder, 'out')
    for n, name in enumerate(contents):
        args += ['--next'] if n else []
        args += ['-s', '-o', f'{out}{n}', '-w', '%{http_code} %{size_download} %{num_connects} %{content_type}\\n']
        args += [server.url + urllib.parse.quote(name)]
    run = subprocess.run(['curl', *args], stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE)
    connects = 0
    for n, (line, name) in enumerate(zip(run.stdout.splitlines(), contents)):
        status, size, connected, kind = line.split(' ', 3)
        connects += int(connected)
        expect((status, int(size)), ('200', len(contents[name])), name)
        expect(kind, TYPES.get(name.rpartition('.')[2], 'application/octet-stream'), name)
        with open(f'{out}{n}', 'rb') as file:
            expect(file.read() == contents[name], True, f'the bytes of {name}')
    expect(connects, 1, "curl's connections")
    run = subprocess.run(['curl', '-sI', server.url + 'large.bin'], stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE)
    expect('Content-Length: 1048576\n' in run.stdout.replace('\r', ''), True, run.stdout)


def statuses(server, contents):
    """The server answers malformed requests and requests for missing files with the right status."""
    page = contents['page.html']
    status, headers, body = server.ask(get('/page.html?version=2'))
    expect((status, body), (200, page), 'a query')
    etag, modified = headers['etag'], headers['last-modified']
    for ask, want in [
        (get('/'), 404), (get('/none'), 404), (get('/page.html/x'), 404), (get('/folder/'), 200), (get('/folder/../page.html'), 404),
        (get('/../secret'), 404), (get('/%2e%2e/secret'), 404), (get('/..%2fsecret'), 404), (get('/folder/%2e%2e/%2e%2e/secret'), 404),
        (get('//../secret'), 404), (get('/.hidden'), 404), (get('/%2ehidden'), 404), (get('/fifo'), 404), (get('/bare/'), 404),
        (get('/' + 'x' * 300), 404), (get('/%'), 400), (get('/%4'), 400), (get('/%zz'), 400), (get('/one%00.txt'), 400),
        (get('http://test/one.txt'), 200), (get('/' + 'x' * 3000), 414), (get('/one.txt', 'X: ' + 'x' * 20000), 431),
        (get('/one.txt', *['X: y'] * 5000), 431), (get('/one.txt', 'If-None-Match: ' + 'x' * 1000), 200),
        (get('/one.txt', method='HEAD'), 200), (get('/one.txt', method='POST'), 405), (get('/one.txt', method='DELETE'), 405),
        (get('/one.txt', 'Content-Length: 5', method='PUT') + b'hello', 405), (get('test:443', method='CONNECT'), 405),
        (get('/one.txt', 'Content-Length: 5') + b'hello', 413), (get('/one.txt', 'Content-Length: x'), 400),
        (get('/one.txt', 'X:', 'Range: bytes=0-0'), 206), (get('/one.txt', 'If-None-Match: ' + 'x' * 127, 'Range: bytes=0-0'), 206),
        (get('/one.txt', 'Content-Length: 0'), 200), (get('/one.txt', 'Transfer-Encoding: chunked') + b'0\r\n\r\n', 413),
        (get('/one.txt', 'Connection: Upgrade', 'Upgrade: h2c'), 200), (b'nonsense\r\n\r\n', 400), (b'\0\1\2\3', 400),
        (b'GET one.txt HTTP/1.1\r\nHost: t\r\n\r\n', 400), (b'GET /one.txt HTTP/1.1\r\n\r\n', 400), (b'GET /one.txt HTTP/2.0\r\n\r\n', 505),
        (b'\r\nGET /one.txt HTTP/1.0\r\n\r\n', 200), (b'GET /one.txt HTTP/1.1\r\nHost : t\r\n\r\n', 400),
        (get('/page.html', 'If-None-Match: ' + etag), 304), (get('/page.html', 'If-None-Match: "x", ' + etag), 304),
        (get('/page.html', 'If-None-Match: *'), 304), (get('/page.html', 'If-None-Match: "x"', 'If-Modified-Since: ' + modified), 200),
        (get('/page.html', 'If-Modified-Since: ' + modified), 304), (get('/page.html', 'If-Modified-Since: yesterday'), 200),
        (get('/page.html', 'If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT'), 200),
    ]:  # yapf: disable
        status, headers, body = server.ask(ask)
        expect(status, want, ask[:100])
        expect(b'secret' in body, False, ask[:100])
        expect(headers.get('allow'), 'GET, HEAD' if want == 405 else None, ask[:100])
    status, headers, _ = server.ask(get('/folder?x'))
    expect((status, headers['location']), (301, '/folder/'), 'a folder')
    # A Range value that is too long and arrives in pieces is ignored.
    with server.connect() as client:
        for piece in [b'GET /one.txt HTTP/1.1\r\nHost: t\r\nRange: bytes=0-0', *[b' ' + b'x' * 99] * 20, b'\r\nX', b'y' * 99, b': z\r\n\r\n']:
            client.send(piece)
            server.ask(get('/empty'))  # the response shows that the server has read the piece
        expect(client.answer()[0], 200, 'a long value')
    # After a request that it cannot parse, the server closes the connection, because it does not know where the next request begins.
    with server.connect() as client:
        client.send(b'nonsense\r\n\r\n' + get('/one.txt'))
        expect(client.answer()[1]['connection'], 'close', 'nonsense')
        client.wait_for_end()


def ranges(server, contents):
    data = contents['page.html']
    status, headers, _ = server.ask(get('/page.html'))
    etag = headers['etag']
    for asked, want in [
        ('0-0', (0, 1)), ('0-', (0, 1000)), ('10-19', (10, 20)), ('999-', (999, 1000)), ('900-5000', (900, 1000)), ('-1', (999, 1000)),
        ('-5000', (0, 1000)), ('1000-', None), ('5000-6000', None), ('-0', None),
    ]:  # yapf: disable
        status, headers, body = server.ask(get('/page.html', 'Range: bytes=' + asked))
        if want:
            expect((status, headers['content-range'], body), (206, f'bytes {want[0]}-{want[1] - 1}/1000', data[slice(*want)]), asked)
        else:
            expect((status, headers['content-range']), (416, 'bytes */1000'), asked)
    for asked in ['bytes=5-2', 'bytes=', 'bytes=-', 'bytes=1-2,4-5', 'bytes=x', 'lines=1-2', 'bytes=1-2x', 'bytes=--1', 'bytes=+1-2']:
        status, _, body = server.ask(get('/page.html', 'Range: ' + asked))
        expect((status, body), (200, data), asked)
    expect(server.ask(get('/page.html', 'Range: bytes=0-9', 'If-Range: ' + etag))[0], 206, 'If-Range')
    expect(server.ask(get('/page.html', 'Range: bytes=0-9', 'If-Range: "old"'))[0], 200, 'If-Range')
    expect(server.ask(get('/empty', 'Range: bytes=0-0'))[0], 416, 'a range of nothing')
    status, headers, body = server.ask(get('/huge.bin', 'Range: bytes=1000000-9999999'))
    expect((status, body == contents['huge.bin'][1000000:10000000]), (206, True), 'a large range')


def pipelining(server, contents):
    """Pipelined requests are answered in order, also if the client never waits."""
    names = [dice.choice(['one.txt', 'page.html', 'more.bin', 'empty', 'none']) for _ in range(500)]
    with server.connect() as client:
        client.send(b''.join(get('/' + name) for name in names))
        for name in names:
            status, _, body = client.answer()
            expect((status, body == contents.get(name, body)), (404 if name == 'none' else 200, True), name)
        client.send(get('/.no') * 20000)
        for _ in range(20000):
            expect(client.answer()[0], 404, 'one of 20,000')
        # A request is sent byte by byte, and two requests in pieces that do not end where the requests end.
        for n in get('/one.txt', 'Range: bytes=0-0', 'If-Range: "x"'):
            client.send(bytes([n]))
        expect(client.answer()[2], contents['one.txt'], 'byte by byte')
        twice = get('/page.html') * 2
        client.send(twice[:50])
        client.send(twice[50:70])
        client.send(twice[70:])
        expect([client.answer()[2] for _ in range(2)], [contents['page.html']] * 2, 'in pieces')
    with server.connect() as client:
        client.send(b'GET /one.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n')
        expect(client.answer()[1]['connection'], 'keep-alive', 'HTTP/1.0')
        client.send(b'GET /one.txt HTTP/1.0\r\n\r\n')
        expect(client.answer()[1]['connection'], 'close', 'HTTP/1.0')
        client.wait_for_end()


def slow(folder):
    """A too slow client is disconnected, with an error if possible; others are unaffected."""
    with Server(program, folder, options=['--patience=200']) as server:
        with server.connect() as silent, server.connect() as half, server.connect() as deaf:
            half.send(b'GET /one.txt HTTP/1.1\r\nHo')
            deaf.send(get('/huge.bin') * 10)
            expect(half.answer()[0], 408, 'half a request')
            half.wait_for_end()
            while server.ask(get('/one.txt'))[0] == 200:
                try:
                    deaf.send(b'x')  # fails if the server has closed the connection
                except OSError:
                    break
            silent.send(get('/one.txt'))  # a client before its first request has no time limit
            expect(silent.answer()[0], 200, 'silent')


def many(folder, scratch, count):
    """All connections are open at once, and all get responses."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard == resource.RLIM_INFINITY else max(soft, min(hard, 8192)), hard))
    trace = os.path.join(scratch, 'many')
    with Server(program, folder, trace=trace + ',mode=grow', options=['--patience=60000']) as server:
        clients = [server.connect() for _ in range(count)]
        for client in clients:
            client.send(get('/one.txt'))
        for client in clients:
            expect(client.answer()[0], 200, 'one of many')
        for client in clients:
            client.send(get('/page.html'))
        for client in clients:
            expect(client.answer()[0], 200, 'one of many, again')
        said = server.end()
        for client in clients:
            client.wait_for_end()
            client.socket.close()
    expect(said.split()[0], str(2 * count), 'requests')
    run = subprocess.run([weft, 'dump', '--json', trace], stdout=subprocess.PIPE, text=True, check=True)
    promises = [p for p in map(json.loads, run.stdout.splitlines()) if p.get('promise', -1) > 0]
    names = [p['labels'][0][1] for p in promises if p['labels']]
    expect(sum(name.startswith('connection 127.0.0.1:') for name in names), count, 'connections in the trace')
    expect(names.count('GET /one.txt'), count, 'requests in the trace')
    failed = [p for p in promises if p['kind'] in ('async', 'connection', 'request') and p['end'] != 'resolved']
    expect(len(failed), 0, 'connections that did not end well')


def usage():
    for wrong in ['--help'], ['--nonsense', '.'], [], ['.', '.']:
        run = subprocess.run([program, *wrong], capture_output=True, text=True, check=False, timeout=PATIENCE)
        expect((run.returncode, 'usage: http-server' in run.stderr), (2, True), ' '.join(wrong))


def crowded(folder):
    """Connections beyond the limit wait until others have ended."""
    with Server(program, folder, under=['prlimit', '--nofile=64:64']) as server:
        clients = [server.connect() for _ in range(50)]
        for client in clients:
            client.send(get('/one.txt', 'Connection: close'))
        for client in clients:
            expect(client.answer()[0], 200, 'one of a crowd')
            client.socket.close()


def drain(folder, contents):
    """On SIGTERM the server finishes started responses, closes idle connections, and accepts no more."""
    with Server(program, folder) as server:
        with server.connect() as idle, server.connect() as busy:
            idle.send(get('/one.txt'))
            idle.answer()
            busy.send(get('/huge.bin'))
            while len(busy.bytes) < 1000:
                busy.more()
            server.process.terminate()
            idle.wait_for_end()
            expect(idle.bytes, b'', 'idle')
            status, _, body = busy.answer()
            expect((status, body == contents['huge.bin']), (200, True), 'what was under way')
        server.process.communicate(timeout=PATIENCE)
        expect(server.process.returncode, 0, 'the end')


def valgrind(folder, contents, scratch):
    log = os.path.join(scratch, 'valgrind.log')
    under = ['valgrind', '-q', '--error-exitcode=9', '--leak-check=full', '--errors-for-leak-kinds=all', '--show-leak-kinds=all', '--log-file=' + log]
    try:
        with Server(program, folder, trace=os.path.join(scratch, 'valgrind'), under=under) as server:
            with server.connect() as idle:
                idle.send(b'GET /half')
                for name in ['one.txt', 'more.bin', 'none', 'folder', 'large.bin']:
                    expect(server.ask(get('/' + name))[0], {'none': 404, 'folder': 301}.get(name, 200), name)
                expect(server.ask(b'nonsense\r\n\r\n')[0], 400, 'nonsense')
                with server.connect() as client:
                    client.send(get('/one.txt') * 10)
                    for _ in range(10):
                        expect(client.answer()[2], contents['one.txt'], 'pipelined')
                with server.connect() as gone:
                    gone.send(get('/huge.bin'))
    except BaseException:
        with open(log, encoding='utf-8', errors='replace') as file:
            print(file.read()[:8000])
        raise


with tempfile.TemporaryDirectory() as scratch:
    contents = make(scratch)
    www = os.path.join(scratch, 'www')
    if 'valgrind' in sys.argv:
        valgrind(www, contents, scratch)
        sys.exit()
    with Server(program, www, trace=os.path.join(scratch, 'trace')) as server:
        files(server, contents, scratch)
        statuses(server, contents)
        ranges(server, contents)
        pipelining(server, contents)
    slow(www)
    many(www, scratch, 1000)
    usage()
    crowded(www)
    drain(www, contents)
