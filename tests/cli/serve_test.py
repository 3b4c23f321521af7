#!/usr/bin/env python3
"""serve_test.py WEFT GENERATE: weft serve refuses malicious requests.  SPDX-License-Identifier: ISC"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.parse

WEFT, GENERATE = (os.path.abspath(path) for path in sys.argv[1:3])
FAILED = []


def expect(what, got, wanted):
    if got != wanted:
        FAILED.append(what)
        print(f'{what}: {got!r}, not {wanted!r}')


class Server:
    """A weft serve process that runs while the context lasts."""

    def __init__(self, *args):
        self.process = subprocess.Popen([WEFT, 'serve', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = urllib.parse.urlparse(self.process.stdout.readline().strip())

    def connect(self):
        return socket.create_connection((self.url.hostname, self.url.port), timeout=60)

    def ask(self, path, *headers):
        """Returns the status and the body of a response."""
        with self.connect() as client:
            lines = [f'GET {self.url.path}{path} HTTP/1.1', *(headers or [f'Host: {self.url.netloc}']), 'Connection: close', '', '']
            client.sendall('\r\n'.join(lines).encode())
            answer = b''
            while more := client.recv(1 << 16):
                answer += more
        status = re.match(rb'HTTP/1.1 (\d+)', answer)
        return (int(status[1]) if status else 0), answer.partition(b'\r\n\r\n')[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            expect('it ends by SIGTERM', self.process.wait(timeout=30), 0)
        except subprocess.TimeoutExpired:
            FAILED.append('SIGTERM')
            print('SIGTERM does not end it')
            self.process.kill()


def host_header_is_checked_strictly(trace):
    with Server(trace) as server:
        port = server.url.port
        for host in ('localhost', 'LOCALHOST', f'localhost:{port}', '127.0.0.1', f'127.0.0.1:{port}', '[::1]', f'[::1]:{port}', '10.0.0.7:80',
                     'localhost:65535'):
            expect(f'Host: {host}', server.ask('', f'Host: {host}')[0], 200)
        for host in ('', 'evil', 'evil:80', '[::1]evil', '[::1]:evil', '[::1', '[::1]80', '[evil]', '[127.0.0.1]', 'localhost:99@evil',
                     'localhost:', 'localhost:x', 'localhost:123456', 'localhost:65536', 'localhost evil', 'localhost.evil', '127.0.0.1.evil',
                     '::1', 'x' * 300):
            expect(f'Host: {host}', server.ask('', f'Host: {host}')[0] in (400, 403), True)
        expect('two Host headers', server.ask('', 'Host: localhost', 'Host: evil')[0] in (400, 403), True)
        expect('two equal Host headers', server.ask('', 'Host: localhost', 'HOST: localhost')[0] in (400, 403), True)
        expect('no Host header', server.ask('', 'X-Host: localhost')[0] in (400, 403), True)


def idle_connections_do_not_block_others(trace):
    with Server(trace) as server:
        kept = server.connect()
        request = f'GET {server.url.path} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode()
        kept.sendall(request)
        expect('a first answer', kept.recv(12), b'HTTP/1.1 200')
        idle = []
        for i in range(300):
            idle.append(server.connect())
            if i % 3 == 1:
                idle[-1].sendall(b'GET / HTTP/1.1\r\nHost: lo')
            if i % 100 == 50:
                expect('among idle connections', server.ask('')[0], 200)
        expect('behind 300 idle connections', server.ask('')[0], 200)
        # A client that has sent the token once needs no token in later requests of the connection.
        kept.sendall(request)
        while b'HTTP/1.1 200' not in (answer := kept.recv(1 << 20)):
            if not answer:
                expect('a known connection', answer, b'HTTP/1.1 200')
                break
        for client in (*idle, kept):
            client.close()


def path_replaced_by_a_fifo_does_not_hang(trace):
    with Server(trace) as server:
        expect('the trace is served', server.ask('trace-1')[0], 200)
        os.unlink(trace)
        os.mkfifo(trace)
        expect('a FIFO', server.ask('trace-1')[0], 503)
        keeper = os.open(trace, os.O_RDWR)
        expect('a FIFO with a silent writer', server.ask('trace-1')[0], 503)
        expect('the page', server.ask('')[0], 200)
    os.close(keeper)


def main():
    with tempfile.TemporaryDirectory(prefix='weft-serve-') as scratch:
        os.chdir(scratch)
        subprocess.run([GENERATE, 'short', '--events=1000', '-o', 'one.ctf'], check=True)
        if subprocess.run([WEFT, 'serve', '--listen=nonsense:x', 'one.ctf'], capture_output=True, text=True).stderr.find('without it') >= 0:
            sys.exit(77)
        host_header_is_checked_strictly('one.ctf')
        idle_connections_do_not_block_others('one.ctf')
        path_replaced_by_a_fifo_does_not_hang('one.ctf')
        os.chdir('/')
    sys.exit(1 if FAILED else 0)


main()
