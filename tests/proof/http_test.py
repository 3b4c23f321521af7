#!/usr/bin/env python3
"""http_test.py HTTP-SERVER WEFT kill|wrap|live TIMES: the recorder in the example http-server under load: the server is killed at any moment (kill),
   wraps a small ring (wrap), and its trace is read while it runs (live).  `meson test -v` shows the counts.  SPDX-License-Identifier: ISC"""

import json
import os
import random
import re
import selectors
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'promise'))
from http_server import PATIENCE, Server, fail, get  # noqa: E402

program, weft, what, times = *sys.argv[1:4], int(sys.argv[4])
dice = random.Random(1)
BODY = b'(the whole of it)\n'
BATCH = 20
LABELS = re.compile(r'GET /f\.txt(\?n=\d+)?|(connection |listen |from )?127\.0\.0\.1:\d+|open \./f\.txt|\w+ ?\w*|all connections gone|SIGINT or SIGTERM')


class Load:
    """Connections with pipelined requests.  All requests have different numbers; `answered` has the numbers of those that got a response."""

    def __init__(self, server, connections):
        self.server, self.sent, self.answered = server, 0, []
        self.selector = selectors.DefaultSelector()
        for _ in range(connections):
            client = socket.create_connection(server.address, timeout=PATIENCE)
            self.selector.register(client, selectors.EVENT_READ, {'numbers': [], 'tail': b''})
            self.ask(client, self.selector.get_key(client).data)

    def ask(self, client, state):
        numbers = range(self.sent, self.sent + BATCH)
        self.sent += BATCH
        state['numbers'] += numbers
        client.sendall(b''.join(get(f'/f.txt?n={n}') for n in numbers))

    def more(self, asking=True):
        """Reads the available bytes; returns False if the server is gone."""
        for key, _ in self.selector.select(PATIENCE):
            client, state = key.fileobj, key.data
            try:
                data = client.recv(1 << 16)
            except ConnectionError:
                data = b''
            if not data:
                self.selector.unregister(client)
                client.close()
                continue
            data = state['tail'] + data
            count = data.count(BODY)
            state['tail'] = data[max(data.rfind(BODY) + len(BODY), len(data) - len(BODY) + 1):] if count else data[1 - len(BODY):]
            self.answered += state['numbers'][:count]
            del state['numbers'][:count]
            if asking and len(state['numbers']) < BATCH:
                self.ask(client, state)
        return len(self.selector.get_map()) > 0

    def until(self, count):
        while len(self.answered) < count:
            if not self.more():
                fail('the server hung up')

    def drain(self):
        while self.more(asking=False):
            pass


def weft_json(verb, trace):
    run = subprocess.run([weft, verb, '--json', trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    if run.returncode:
        fail(f'weft {verb}: {run.stderr}')
    return list(map(json.loads, run.stdout.splitlines()))


def check(trace, whole, live=False):
    """Fails at an event that the server cannot have recorded; returns the number of events, the last value of the counter, the numbers of the requests, and the
        number of gaps.  `whole`: the trace has all events from the first on; `live`: a packet may be missing, because the recorder reused it during the read."""
    events = weft_json('events', trace)
    created, ended, numbers, counter, gaps, time = {-1}, set(), [], None, 0, {}
    for e in events:
        op, p = e.get('op'), e.get('promise')
        if op is None:
            continue
        if e['time_ns'] < time.get(e['stream'], 0):
            fail(f'time goes back: {e}')
        time[e['stream']] = e['time_ns']
        if op in ('create', 'pending'):
            if whole and ((p in created) != (op == 'pending') or e['by'] not in created):
                fail(f'created twice, or by nobody: {e}')
            created.add(p)
        elif whole and (p not in created and p is not None or e.get('input', -1) not in created or e.get('into', -1) not in created):
            fail(f'of a promise that was not created: {e}')
        if op in ('resolve', 'fail'):
            if p in ended:
                fail(f'ended twice: {e}')
            ended.add(p)
        if op == 'label':
            if not LABELS.fullmatch(e['text']):
                fail(f'a label that nobody gave: {e}')
            if '?n=' in e['text']:
                numbers.append(int(e['text'].partition('=')[2]))
        if op == 'counter' and e['counter'] == 'requests':
            if counter is not None and e['value'] != counter + 1:
                gaps += 1
                if not live or e['value'] < counter:
                    fail(f'requests: {e["value"]} after {counter}')
            counter = e['value']
    return len(events), counter, numbers, gaps


def complete_info(trace, wraps=False):
    info = weft_json('info', trace)[0]
    lost = sum(s['lost_full'] + s['lost_nested'] for s in info['streams'])
    if info['skipped_count'] or lost or (info['lost'] and not wraps):
        fail(f'lost or skipped: {info}')
    return info


def prove_kill(www, scratch):
    """The trace of the killed server has each request to which a client got a response, and only complete events."""
    events = answered = wrapped = 0
    for i in range(times):
        ring = i % 2 == 1
        trace = os.path.join(scratch, f'kill{i}')
        with Server(program, www, trace=trace + (',size=512k' if ring else ',mode=grow')) as server:
            load = Load(server, dice.choice([1, 8]))
            load.until(dice.randrange(1, 4000))
            server.kill()
            load.drain()
        info = complete_info(trace, wraps=ring)
        count, counter, numbers, _ = check(trace, not info['wrapped'])
        # A ring must have the newest 300 requests, which is far more than can be pending at once.
        must = load.answered[-300:] if info['wrapped'] else load.answered
        missing = set(must) - set(numbers)
        if missing or counter < len(load.answered) or len(numbers) != len(set(numbers)):
            fail(f'{len(load.answered)} were answered, {len(missing)} of {len(must)} are not in the trace, which counted {counter}')
        events += count
        answered += len(load.answered)
        wrapped += info['wrapped']
    print(f'{times} kills under load: {answered} answers, all of them counted in the traces, and there; {events} events read, '
          f'none lost, none torn; {wrapped} rings had wrapped')
    if times >= 10 and not wrapped:
        fail('no ring wrapped: the proof is void')


def prove_wrap(www, scratch):
    """After many wraps of the ring, the trace still has the first connection, which has sent half a request."""
    trace = os.path.join(scratch, 'wrap')
    with Server(program, www, trace=trace + ',size=256k') as server:
        half = socket.create_connection(server.address, timeout=PATIENCE)
        half.sendall(b'GET /f.txt HTTP/1.1\r\nHo')
        load = Load(server, 8)
        load.until(times)
        for end in ('while it runs', 'after a kill'):
            if end == 'after a kill':
                server.kill()
                load.drain()
            check(trace, whole=False, live=True)
            head, *promises = weft_json('dump', trace)
            named = {p['labels'][0][1]: p for p in promises if p.get('labels')}
            by_id = {p['promise']: p for p in promises if 'promise' in p}
            name = 'connection 127.0.0.1:%d' % half.getsockname()[1]
            p = named.get(name) or fail(f'{end}: {name} is forgotten')
            if (p['kind'], p['end'], p['site']['function']) != ('connection', 'pending', 'note_connection'):
                fail(f'{end}: {p}')
            # The connection is older than all promises whose creation is still in the ring.
            newest = max(q['start_ns'] for q in promises if q.get('labels') and q['labels'][0][1].startswith('GET '))
            if p['start_ns'] > newest / 10:
                fail(f'{end}: {p} is as old as it is')
            reads = [q for q in promises if q.get('kind') == 'bind' and q['end'] == 'pending' and q['site']['function'] == 'read_request'
                     and any(by_id[i]['kind'] == 'read' and by_id[i]['end'] == 'pending' for i in q['awaits'])]
            if not reads:
                fail(f'{end}: nobody is known to wait for more of a request')
            lost = head['trace']['lost']
            print(f'{end}: {lost} events overwritten; "{name}" is {(head["trace"]["end_ns"] - p["start_ns"]) / 1e9:.3f} s old, and known')
            if not lost:
                fail('the ring did not wrap: the proof is void')


def prove_live(www, scratch):
    """The trace is read repeatedly while the server runs at full speed."""
    trace = os.path.join(scratch, 'live')
    with Server(program, www, trace=trace + ',size=512k') as server:
        with subprocess.Popen(['wrk', '-c64', '-t1', '-d600', server.url + 'f.txt'], stdout=subprocess.DEVNULL) as load:
            try:
                events = gaps = promises = 0
                first = last = 0
                while not (last := check(trace, whole=False, live=True)[1]):
                    pass
                first = last
                for _ in range(times):
                    info = weft_json('info', trace)[0]
                    if sum(s['lost_full'] + s['lost_nested'] for s in info['streams']):
                        fail(f'lost: {info}')
                    count, counter, _, gap = check(trace, whole=False, live=True)
                    if counter < last:
                        fail(f'{last} requests became {counter}')
                    last = counter
                    events += count
                    gaps += gap
                    promises += sum(p.get('promise', -1) > 0 for p in weft_json('dump', trace))
            finally:
                load.kill()
    print(f'{times} times info, events and dump of a server that meanwhile answered {last - first} requests of wrk: {events} events, '
          f'{promises} promises, 0 torn; {gaps} gaps where a packet was reused while it was read')
    if last == first:
        fail('nothing was answered meanwhile: the proof is void')


with tempfile.TemporaryDirectory() as scratch:
    www = os.path.join(scratch, 'www')
    os.mkdir(www)
    with open(os.path.join(www, 'f.txt'), 'wb') as file:
        file.write(BODY)
    {'kill': prove_kill, 'wrap': prove_wrap, 'live': prove_live}[what](www, scratch)
