"""The example http-server, for tests that run it.  SPDX-License-Identifier: ISC"""

import os
import socket
import subprocess
import sys

PATIENCE = 60  # seconds until an expected event must have happened


def fail(text):
    sys.exit(text)


class Server:
    """Serves a folder while the context lasts; SIGTERM ends the server, which must succeed."""

    def __init__(self, program, folder, trace=None, options=(), under=()):
        env = {key: value for key, value in os.environ.items() if key != 'WEFT_TRACE'}
        if trace:
            env['WEFT_TRACE'] = trace
        self.process = subprocess.Popen([*under, program, '--port=0', *options, folder], env=env, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            fail(f'the server does not start: {self.process.wait()}')
        self.address = ('127.0.0.1', int(self.url.strip('/').rpartition(':')[2]))

    def connect(self):
        return Client(self.address)

    def ask(self, request):
        """Returns the response to one request, on a separate connection."""
        with self.connect() as client:
            client.send(request)
            return client.answer(head_only=request.startswith(b'HEAD'))

    def end(self):
        """Ends the server and returns the rest of its output."""
        self.process.terminate()
        said = self.process.communicate(timeout=PATIENCE)[0]
        if self.process.returncode:
            fail(f'the server ended with {self.process.returncode}')
        return said

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.kill() if kind else self.end()


class Client:
    """A connection whose responses are read one by one."""

    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=PATIENCE)
        self.bytes = b''

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def more(self):
        """Reads more bytes; returns false if the connection has ended."""
        data = self.socket.recv(1 << 16)
        self.bytes += data
        return bool(data)

    def answer(self, head_only=False):
        """Returns the status of the next response, {name in lower case: value} of its headers, and its body."""
        while b'\r\n\r\n' not in self.bytes:
            if not self.more():
                raise EOFError(f'the server hung up after {self.bytes!r}')
        head, _, self.bytes = self.bytes.partition(b'\r\n\r\n')
        first, *lines = head.decode().split('\r\n')
        headers = {name.lower(): value for name, value in (line.split(': ', 1) for line in lines)}
        status = int(first.split()[1])
        size = 0 if head_only or status == 304 else int(headers['content-length'])
        while len(self.bytes) < size:
            if not self.more():
                raise EOFError(f'the server hung up after {len(self.bytes)} of {size} bytes')
        body, self.bytes = self.bytes[:size], self.bytes[size:]
        return status, headers, body

    def wait_for_end(self):
        while self.more():
            pass


def get(target, *headers, method='GET'):
    return '\r\n'.join([f'{method} {target} HTTP/1.1', 'Host: test', *headers, '', '']).encode()
