#!/usr/bin/env python3
"""A recording of an OCaml 5 program is followed: each refresh sees the new events.

	live_test.py WEFT GENERATOR

SPDX-License-Identifier: ISC"""

import http.client
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

weft, generator = map(os.path.abspath, sys.argv[1:])
LIMIT_S = 120


def run(*words, overtaken=None):
    """Returns the output of the command.  With `overtaken`, it may fail with this message."""
    got = subprocess.run([weft, *words], capture_output=True, check=False, timeout=60, text=True)
    assert got.returncode == 0 or (overtaken and overtaken in got.stderr), (words, got.returncode, got.stderr)
    return got.stdout


def until(what, ask):
    """Calls `ask` until it returns something, and returns that."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if (answer := ask()):
            return answer
        time.sleep(0.02)
    raise AssertionError(f'{what}: not within {LIMIT_S} s')


def is_served(path):
    """A browser gets more with each request while the program lives."""
    with subprocess.Popen([weft, 'serve', path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            url = urllib.parse.urlparse(server.stdout.readline().strip())

            def ask(known=''):
                client = http.client.HTTPConnection(url.netloc, timeout=60)
                client.request('GET', url.path + 'trace-1', headers={'If-None-Match': known} if known else {})
                answer = client.getresponse()
                answer.read()
                client.close()
                return answer

            first = ask()
            assert (first.status, first.headers['Weft-Trace-Is-Recorded']) == (200, 'yes'), (first.status, first.headers.items())
            known = first.headers['ETag']
            yield until('more of it', lambda: (answer := ask(known)).status == 200 and answer)
            yield until('its end', lambda: ask().headers['Weft-Trace-Is-Recorded'] == 'no')
        finally:
            server.send_signal(signal.SIGTERM)


with tempfile.TemporaryDirectory(prefix='weft-ocaml-live-') as folder:
    os.chdir(folder)
    with subprocess.Popen([generator, 'fibers', 'live', '--words=4096', '--domains=2', '--count=50', '--live=100000000'],
                          stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout.readline() == b'written\n'
            path = f'{writer.pid}.events'  # the name that OCaml gives it: weft finds the writer by it
            os.rename('live', path)
            steps = is_served(path)
            next(steps)
            # A refresh that the writer overtook has no events.
            looks = [until('events', lambda: run('events', '--recorded', path).splitlines()[1:2])[0].split()[1] for _ in range(2)]
            assert int(looks[0]) < int(looks[1]), looks  # the ring has wrapped
            until('a table', lambda: 'coroutine' in run('top', '--once', path, overtaken='no events in the trace'))
        finally:
            writer.kill()
            writer.wait()
        next(steps)
        steps.close()
