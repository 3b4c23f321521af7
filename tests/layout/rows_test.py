#!/usr/bin/env python3
"""rows_test.py WEFT DEEP SERVERS HTTP-SERVER SHARED: how many rows real programs take, which are recorded here.  At most 1.5 times as many
as promises are alive at once, and one for each track that is alive then; and no more the longer a program runs.  `meson test -v` shows the
table.  SPDX-License-Identifier: ISC"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'promise'))
from http_server import Server, fail  # noqa: E402

DRAWN = re.compile(r'{"promise":(-?\d+),"kind":.*?"start_ns":(-?\d+),"end_ns":(-?\d+),.*"row":(\d+),"track":(null|-?\d+),"site"')
weft, deep, servers, http_server, shared = sys.argv[1:6]


def promises_of(trace):
    """(start, end, row, track) by id, in ns, of those that are drawn."""
    with subprocess.Popen([weft, 'dump', '--json', trace], stdout=subprocess.PIPE, text=True) as dump:
        for line in dump.stdout:
            found = DRAWN.match(line)
            if found:
                promise, start, end, row, track = found.groups()
                yield int(promise), (int(start), max(int(start), int(end)), int(row), None if track == 'null' else int(track))
    if dump.returncode:
        fail(f'weft dump {trace}')


def look(name, trace):
    """How many rows the trace has, once that is not too many."""
    promises = dict(promises_of(trace))
    tracks = {}
    for start, end, _, track in promises.values():
        while track is not None:
            begin, until = tracks.get(track, promises[track][:2])
            tracks[track] = min(begin, start), max(until, end)
            track = promises[track][3]
    # At one time whoever ends goes before who begins, but not before it has begun.
    changes = []
    for weight, stretches in (1.5, (p[:2] for p in promises.values())), (1, tracks.values()):
        for start, end in stretches:
            changes += [(start, 1, weight), (end, 0 if end > start else 2, -weight)]
    alive = most = 0
    for _, _, change in sorted(changes):
        alive += change
        most = max(most, alive)
    rows = 1 + max(p[2] for p in promises.values())
    print(f'{name:<44} {len(promises):>8} promises  {len(tracks):>6} tracks  {rows:>4} rows, of at most {most:.0f}')
    if rows > most:
        fail(f'{name}: too many rows')
    return rows


def run(program, *args, trace):
    subprocess.run([program, *args], env={**os.environ, 'WEFT_TRACE': trace + ',size=512M'}, check=True)
    return trace


with tempfile.TemporaryDirectory() as folder:
    def at(name):
        return os.path.join(folder, name)

    for what in 'keep-alive', 'udp':
        rows = [look(f'{what}, {n} requests', run(servers, what, str(n), trace=at(f'{what}-{n}'))) for n in (1000, 10000)]
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
        look('net.ctf', net)
    if http_server and shutil.which('wrk'):
        with open(at('page.html'), 'w', encoding='ascii') as page:
            page.write('<p>' + 'x' * 9000)
        with Server(http_server, folder, trace=at('http') + ',size=512M') as server:
            subprocess.run(['wrk', '-c12', '-t1', '-d1', server.url + 'page.html'], stdout=subprocess.DEVNULL, check=True)
        look('examples/http under wrk, 12 connections, 1 s', at('http'))
    else:
        print('no wrk, or no examples/http: not looked at under load')
