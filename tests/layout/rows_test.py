#!/usr/bin/env python3
"""rows_test.py WEFT DEEP SERVERS HTTP-SERVER SHARED [without-kresd]: the number of rows of real programs, which the test records, is at most 1.5 times the
   number of promises that are alive at once, and one for each live track; it does not grow with the time that a program runs.
`meson test -C build -v "real programs need few rows"` shows the table.  SPDX-License-Identifier: ISC"""

import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'promise'))
from http_server import PATIENCE, Server, fail  # noqa: E402

DRAWN = re.compile(r'{"promise":(-?\d+),"kind":.*?"start_ns":(-?\d+),"end_ns":(-?\d+),.*"row":(\d+),"track":(null|-?\d+),"site"')
weft, deep, servers, http_server, shared = (path and os.path.abspath(path) for path in sys.argv[1:6])


def promises_of(trace):
    """Returns {id: (start, end, row, track)} of the drawn promises, with times in ns."""
    with subprocess.Popen([weft, 'dump', '--json', trace], stdout=subprocess.PIPE, text=True) as dump:
        for line in dump.stdout:
            found = DRAWN.match(line)
            if found:
                promise, start, end, row, track = found.groups()
                yield int(promise), (int(start), max(int(start), int(end)), int(row), None if track == 'null' else int(track))
    if dump.returncode:
        fail(f'weft dump {trace}')


def count_rows(name, trace, steady=True):
    """Returns the number of rows, after checking the bound; the second half of a steady server's promises needs no more rows than the first."""
    promises = dict(promises_of(trace))
    tracks = {}
    for start, end, _, track in promises.values():
        while track is not None:
            begin, until = tracks.get(track, promises[track][:2])
            tracks[track] = min(begin, start), max(until, end)
            track = promises[track][3]
    # At the same time, ends are counted before starts, except for the start of the same promise.
    changes = []
    for weight, stretches in (1.5, (p[:2] for p in promises.values())), (1, tracks.values()):
        for start, end in stretches:
            changes += [(start, 1, weight), (end, 0 if end > start else 2, -weight)]
    alive = most = 0
    for _, _, change in sorted(changes):
        alive += change
        most = max(most, alive)
    rows = 1 + max(p[2] for p in promises.values())
    middle = sorted(start for start, *_ in promises.values())[len(promises) // 2]
    halves = len({p[2] for p in promises.values() if p[0] < middle}), len({p[2] for p in promises.values() if p[1] > middle})
    print(f'{name:<44} {len(promises):>8} promises  {len(tracks):>6} tracks  {rows:>4} rows, of at most {most:>4.0f}; in its halves {halves[0]:>4}, {halves[1]:>4}')
    if rows > most:
        fail(f'{name}: too many rows')
    if steady and halves[1] > halves[0] * 1.5 + 10:  # a small allowance, because the load varies from second to second
        fail(f'{name}: the second half is higher')
    return rows


def run(program, *args, trace):
    subprocess.run([program, *args], env={**os.environ, 'WEFT_TRACE': trace + ',size=512M'}, check=True)
    return trace


def question(number):
    name = b''.join(bytes([len(part)]) + part for part in (b'host%d' % number, b'example'))
    return struct.pack('>6H', number & 0xffff, 0x0100, 1, 0, 0, 0) + name + b'\0' + struct.pack('>2H', 1, 1)


def answer_questions(of):
    """A name server that answers each query with the same address, after a short delay."""
    while True:
        try:
            asked, who = of.recvfrom(4096)
        except OSError:  # the socket was closed
            return
        time.sleep(0.001)
        end = asked.index(b'\0', 12) + 5
        of.sendto(asked[:2] + struct.pack('>5H', 0x8180, 1, 1, 0, 0) + asked[12:end] + struct.pack('>3HIH4B', 0xc00c, 1, 1, 300, 4, 127, 0, 0, 2), who)


def resolve_names(folder, count):
    """Records Knot Resolver while it gets queries, each of them twice; 40 queries are pending at a time."""
    with socket.socket(type=socket.SOCK_DGRAM) as upstream, socket.socket(type=socket.SOCK_DGRAM) as client:
        upstream.bind(('127.0.0.1', 0))
        threading.Thread(target=answer_questions, args=[upstream], daemon=True).start()
        client.bind(('127.0.0.1', 0))
        port = client.getsockname()[1]
        client.close()
        with open(os.path.join(folder, 'kresd.conf'), 'w', encoding='ascii') as conf:
            conf.write(f"""log_level('crit')
net.listen('127.0.0.1', {port}, {{ kind = 'dns' }})
trust_anchors.remove('.')
cache.open(10 * MB, 'lmdb://{folder}/cache')
policy.add(policy.all(policy.STUB('127.0.0.1@{upstream.getsockname()[1]}')))
""")
        os.mkdir(os.path.join(folder, 'cache'))
        trace = os.path.join(folder, 'kresd-recorded')
        with subprocess.Popen([weft, 'record', '-o', trace, '--', 'kresd', '-n', '-c', 'kresd.conf', '.'], cwd=folder, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as record, socket.socket(type=socket.SOCK_DGRAM) as client:
            client.connect(('127.0.0.1', port))
            client.settimeout(0.2)
            sent = answers = 0
            until = time.monotonic() + PATIENCE
            while answers < count:
                if time.monotonic() > until or record.poll() is not None:
                    fail(f'kresd answered {answers} of {count} questions')
                try:
                    for _ in range(sent - answers, min(40, count - answers)):
                        client.send(question(sent * 7 % (count // 2)))
                        sent += 1
                    client.recv(4096)
                    answers += 1
                except (TimeoutError, ConnectionRefusedError):  # the server has not started yet, or a datagram was lost
                    time.sleep(0.05)
                    sent = answers
            traces = [os.path.join(trace, name) for name in os.listdir(trace)]
            os.kill(int(traces[0].rpartition('-')[2]), signal.SIGTERM)
            record.wait(PATIENCE)
    return traces[0]


with tempfile.TemporaryDirectory() as folder:
    def at(name):
        return os.path.join(folder, name)

    for what in 'keep-alive', 'udp':
        rows = [count_rows(f'{what}, {n} requests', run(servers, what, str(n), trace=at(f'{what}-{n}')), steady=n > 1000) for n in (1000, 10000)]
        if rows[1] > rows[0] * 1.1:
            fail(f'{what}: {rows[1]} rows where a tenth of the requests take {rows[0]}')
    subprocess.run([deep, at('deep')], check=True)
    with subprocess.Popen([weft, 'dump', '--json', at('deep')], stdout=subprocess.PIPE) as dump:
        rows = len({row for block in iter(lambda: dump.stdout.read(1 << 20), b'') for row in re.findall(rb'"row":(\d+),', block)})
    print(f'a loop of a million turns: {rows} rows')
    if not 0 < rows <= 4:
        fail('a staircase')
    net = os.path.join(shared, 'traces', 'net.ctf')
    if os.path.exists(net):
        count_rows('net.ctf', net, steady=False)
    if 'without-kresd' in sys.argv or not shutil.which('kresd'):
        print('no kresd: not looked at')
    else:
        count_rows('kresd, 4,000 questions', resolve_names(folder, 4000))
    if http_server and shutil.which('wrk'):
        with open(at('page.html'), 'w', encoding='ascii') as page:
            page.write('<p>' + 'x' * 9000)
        with open(at('count.lua'), 'w', encoding='ascii') as script:
            script.write('n = 0; function request() n = n + 1; if n >= 25000 then os.exit(0) end; return wrk.format() end\n')
        with Server(http_server, folder, trace=at('http') + ',size=512M') as server:
            subprocess.run(['wrk', '-c12', '-t1', f'-d{PATIENCE}', '-s', at('count.lua'), server.url + 'page.html'], stdout=subprocess.DEVNULL, check=True)
        count_rows('examples/http under wrk, 25,000 requests', at('http'))
    else:
        print('no wrk, or no examples/http: not looked at under load')
