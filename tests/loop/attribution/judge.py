#!/usr/bin/env python3
"""judge.py WEFT [KIND...]: prints how much of a server's work is recorded for the right request.

Each server writes for which client it works, and when.  A row has the share of this time in the trace: for a request of that client (or
a task or thread that only works for it), for another request, or for neither.  The model corrects some requests only when the program
answers; findings about this time are uncertain.  The share "right" contains the corrected time; "uncertain" is all time of findings that
would be uncertain, right or not, and is not part of "wrong".

SPDX-License-Identifier: ISC"""

import bisect
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'uv'))
from recorded import ENV, PATIENCE, Recording, fail, free_port, until  # pylint: disable=wrong-import-position
import socket  # pylint: disable=wrong-import-position,wrong-import-order

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS, QUESTIONS = 8, 60
ALL, SIMPLE = ['work', 'after', 'hop', 'mix', 'later'], ['work', 'after']
KINDS = {'redis': ['work'], 'libev': SIMPLE, 'asio': ALL, 'asyncio': ALL, 'tornado': ALL, 'twisted': ALL, 'shortest': SIMPLE, 'slices': SIMPLE, 'pool': SIMPLE}
BUILDS = {'libev': ['cc', 'ev.c', '-lev', '-fno-strict-aliasing'], 'pool': ['cc', 'pool.c', '-pthread'], 'asio': ['c++', 'asio.cc', '-std=c++20', '-pthread'],
          'redis': ['cc', 'redis.c', '-shared', '-fPIC']}  # yapf: disable


def build(kind, folder):
    """Returns the command of a server, without port and file; None if it cannot be built."""
    if kind not in BUILDS:
        return ['/usr/bin/python3', os.path.join(HERE, 'servers.py'), kind]
    compiler, source, *options = BUILDS[kind]
    path = os.path.join(folder, kind)
    run = subprocess.run([compiler, '-O1', '-o', path, os.path.join(HERE, source), *options], capture_output=True, text=True, check=False)
    if run.returncode:
        print(f'{kind}: cannot be built: {run.stderr.splitlines()[0] if run.stderr else ""}')
        return None
    return [path]


def ask(port, question, count, ports=None):
    with socket.create_connection(('127.0.0.1', port), timeout=PATIENCE) as client:
        if ports is not None:
            ports.append(client.getsockname()[1])
        for _ in range(count):
            client.sendall(question)
            if not client.recv(4096):
                return


def record(weft, kind, command, way, folder):
    """Returns the trace and the lines of truth."""
    port, truth = free_port(), os.path.join(folder, f'{kind}.{way}')
    words = [*command, str(port), truth]
    if kind == 'redis':
        words = ['redis-server', '--port', str(port), '--save', '', '--dir', folder, '--loadmodule', command[0], truth]
    recording = Recording(weft, os.path.join(folder, f'traces-{kind}-{way}'), words, wait=False)

    def listens():
        with socket.socket() as client:
            return client.connect_ex(('127.0.0.1', port)) == 0
    until(listens, f'{kind} does not listen')
    line = '*2\r\n$4\r\nwork\r\n$3\r\n{}\r\n' if kind == 'redis' else f'get {way}/{{}}\r\n'
    threads = [threading.Thread(target=ask, args=(port, line.format(100 + 30 * number).encode(), QUESTIONS)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        ask(port, b'*1\r\n$3\r\nend\r\n' if kind == 'redis' else b'get end\r\n', 1)
    except ConnectionError:
        pass
    recording.process.communicate(timeout=PATIENCE)
    with open(truth, encoding='utf-8') as file:
        rows = [[int(word) for word in row.split()] for row in file]
    return recording.trace(), rows


def read_lines(weft, verb, trace):
    run = subprocess.run([weft, verb, '--json', trace.path], capture_output=True, text=True, check=True)
    return [json.loads(row) for row in run.stdout.splitlines()]


def find_claims(weft, trace):
    """Returns the intervals whose promise the recorder learned only at their end, doubts or guesses, as the model finds them."""
    since, claims, guesses, running, claiming = collections.Counter(), [], {}, {}, set()
    for event in read_lines(weft, 'events', trace):
        stream, time = event.get('stream'), event.get('time_ns')
        if event.get('op') in ('run', 'sent', 'received', 'idle', 'resume', 'read', 'signal'):
            if stream in guesses:
                claims.append((guesses.pop(stream), time))
            since[stream] = time
            if event['op'] == 'idle':
                claiming.discard(stream)
            if event['op'] == 'sent' and stream in claiming:
                guesses[stream] = time
            running[stream] = event.get('promise', running.get(stream)) if event['op'] == 'run' else running.get(stream)
        elif event.get('what') == 'claim' and event['value'] == 2:
            guesses.setdefault(stream, time)
        elif event.get('what') == 'claim' and (event['value'] or event['promise'] != running.get(stream)):
            claims.append((since[stream], time))
            claiming.add(stream)
    return sorted(claims)


def get_share(weft, trace, truth):
    """Returns the shares of the truth's time: right, wrong, unknown, uncertain."""
    first, *promises = read_lines(weft, 'dump', trace)
    zero = first['trace']['start_utc_ns']
    promises = {p['promise']: p for p in promises if 'promise' in p}
    peer = {}
    for number, p in promises.items():
        label = re.match(r'from .*:(\d+)$', p['labels'][0][1]) if p['labels'] else None
        if p['kind'] == 'connection' and label:
            peer[number] = int(label[1])
    runs = sorted((begin, end, number) for number, p in promises.items() for begin, end in p['running'] if number != -1)
    starts, claims = [run[0] for run in runs], find_claims(weft, trace)
    claim_starts = [claim[0] for claim in claims]
    shares = collections.Counter()
    served = collections.defaultdict(collections.Counter)
    pieces = []
    for client, begin, end in truth:
        begin, end = begin - zero, end - zero
        for i in range(max(0, bisect.bisect(starts, begin) - 64), len(runs)):
            if runs[i][0] >= end:
                break
            time = min(end, runs[i][1]) - max(begin, runs[i][0])
            if time > 0:
                pieces.append((client, runs[i][2], max(begin, runs[i][0]), time))
                served[runs[i][2]][client] += time
    whole = sum(end - begin for _, begin, end in truth)
    for client, number, begin, time in pieces:
        p = promises[number]
        of = peer.get(number) or peer.get(p['created_by']) if p['kind'] in ('connection', 'request') else None
        if p['kind'] == 'task' and p['labels'][0][1] not in ('main',):
            of = served[number].most_common(1)[0][0]  # a coroutine serves one connection
        i = bisect.bisect(claim_starts, begin) - 1
        is_claimed = i >= 0 and claims[i][1] > begin
        shares['right' if of == client else 'uncertain' if is_claimed else 'unknown' if of is None else 'wrong'] += time
        shares['corrected'] += time if is_claimed and of == client else 0
    shares['unknown'] += whole - sum(time for *_, time in pieces)
    return {name: 100 * time / whole for name, time in shares.items()}


def main():
    weft, kinds = sys.argv[1], sys.argv[2:] or list(KINDS)
    names = ['right', 'wrong', 'unknown', 'uncertain', 'corrected']
    print(f'{"server":10}{"way":8}' + ''.join(f'{name:>11}' for name in names))
    with tempfile.TemporaryDirectory(prefix='weft-judge-') as folder:
        for kind in kinds:
            command = build(kind, folder)
            for way in KINDS[kind] if command else ():
                trace, truth = record(weft, kind, command, way, folder)
                shares = get_share(weft, trace, truth)
                print(f'{kind:10}{way:8}' + ''.join(f'{shares.get(name, 0):10.1f}%' for name in names), flush=True)


main()
