#!/usr/bin/env python3
"""Small programs of libevent have the right promises in a trace, and the right findings.

	scenes_test.py SCENES WEFT

SPDX-License-Identifier: ISC"""

import os
import re
import subprocess
import sys
import tempfile

from recorded import ENV, PATIENCE, Recording, expect, fail, until

scenes, weft = sys.argv[1:3]
# The limit for stalls is long, because a healthy program also has shorter stalls on a busy machine.
LATE = '2s'


def record(name, folder):
    plain = subprocess.run([scenes, name], stdout=subprocess.PIPE, env=ENV, timeout=PATIENCE, check=True).stdout
    recording = Recording(weft, os.path.join(folder, name), [scenes, name])
    expect((recording.status, sorted(recording.out.splitlines())), (0, sorted(plain.splitlines())), f'what {name} does')
    trace = recording.trace('event_scenes')
    expect(trace.lost(), 0, 'events lost')
    copies = trace.ask('info', '--json')[0]['runtimes']
    # libevent_pthreads also loads libevent_core, whose functions are not called.
    if not re.search(r'libevent 2\.1: (\d+) of \1 calls', copies) or 'not recorded' in copies + recording.err.decode():
        fail(f'not all was taken: {copies}')
    return trace


def datagram_digest(text):
    """Returns the digest of a datagram in a trace (docs/format.md)."""
    total = 0
    for byte in text[:64]:
        total = (total + byte + 1) * 0x100000001b3 % 2**64
    return (total ^ len(text) * 0x9e3779b97f4a7c15 % 2**64) >> 1 | 1


def healthy(trace):
    expect(trace.alarms(LATE), [], f'alarms in {trace.path}')


def test_small_libevent_programs_become_the_expected_promises(folder):
    trace = record('timers', folder)
    loop, every, again = trace.promise('loop', 'event_base_loop'), trace.promise('timer', 'every 20 ms'), trace.promise('timer', '10 ms')
    expect((loop['end'], every['end'], again['end']), ('resolved',) * 3, 'how loop and timers end')
    expect((loop['created_by'], every['created_by']), (trace.promise('thread', 'main')['promise'],) * 2, 'who made them')
    if len(every['running']) < 5 or len(again['running']) < 4:
        fail(f'runs of timers: {every["running"]}, {again["running"]}')
    expect([trace.promise('timer', time)['end'] for time in ('100 s', '200 s')], ['resolved'] * 2, 'how timers end that are deleted or finalized')
    expect(len([event for event in trace.ask('events', '--json') if event['op'] == 'pause_begin']), 4, 'callbacks that block')
    if 'scenes.c' not in (every['site'] or {}).get('file', ''):
        fail(f'where the timer was made: {every["site"]}')
    healthy(trace)

    for name, kind, label in (('spin_timer', 'timer', '0 ms'), ('spin_active', 'condition', 'event'), ('spin_fd', 'poll', '')):
        trace = record(name, folder)
        found = trace.findings(LATE)
        expect(list(found), ['spin'], f'what is found in {name}')
        expect(found['spin'][0]['promise'], trace.promise(kind, label)['promise'], 'who spins')
        events = trace.ask('info', '--json')[0]['events']
        if events > 2000:
            fail(f'{events} events of what spins')
    trace = record('load', folder)
    expect([name for name in trace.findings(LATE) if name == 'spin'], [], 'spins in a program under load')

    trace = record('opens', folder)
    expect(sorted(p['end'] for p in trace.promises('connect', '127.0.0.1:')), ['resolved'] * 2, 'how connects end of what waited before')
    opened = [p for p in trace.promises('connection', 'to 127.0.0.1:') if p['created_by'] == trace.promise('thread', 'main')['promise']]
    expect((len(opened), trace.promises('poll')), (2, []), 'what waited for them')
    sent = [event['connection'] for event in trace.ask('events', '--json') if event['op'] == 'sent' and event['position'] == 5]
    expect(sorted(sent), sorted(p['promise'] for p in opened), 'who has written')
    healthy(trace)

    # Sender and receiver record each datagram once, but not one that was peeked at, lost, truncated or returned.
    trace = record('datagrams', folder)
    names = {datagram_digest(text): text for text in (b'send', b'write', b'sendto', b'sendmsg', b'writev', b'first of two', b'second', b'', b'too long', b'much too long',
                                             b'nobody reads this', b'refused')}
    told = [(event['promise'], event['value'], event['text']) for event in trace.ask('events', '--json') if event.get('what') == 'datagram']
    whole = list(names.values())[:8]
    expect([names.get(value) for _, value, _ in told if value > 0], list(names.values()), 'datagrams that were sent')
    expect([names.get(-value) for _, value, _ in told if value < 0], whole, 'datagrams that were read')
    server = next(p['labels'][0][1].removeprefix('udp ') for p in trace.promises('connection', 'udp 127.0.0.1:'))
    expect({text for _, value, text in told if names.get(abs(value)) in whole}, {server}, 'where they go')
    sockets = {p['promise'] for p in trace.promises('connection', 'udp')}
    expect((len(sockets), {promise for promise, _, _ in told} <= sockets), (5, True), 'whose they are')

    trace = record('buffers', folder)
    connects = trace.promises('connect', '127.0.0.1:')
    expect(sorted(p['end'] for p in connects), ['failed', 'resolved', 'resolved'], 'how connects end')
    expect([p['failure'] for p in connects if p['end'] == 'failed'], ['Connection refused'], 'why one does not')
    connections = trace.promises('connection')
    expect((len(connections), {p['end'] for p in connections}), (5, {'resolved'}), 'connections')
    owners = {p['promise'] for p in connections}
    if not all(p['created_by'] for p in connects) or not trace.promises('listen', 'listen 127.0.0.1:'):
        fail('nobody listens')
    reads = [(event['promise'], event['input']) for event in trace.ask('events', '--json') if event['op'] == 'read' and event['input'] in {p['promise'] for p in connects}]
    expect((len(reads), {a for a, _ in reads} <= owners), (3, True), 'who reads that it is connected')
    # Each end of a connection has received all bytes that the other end has sent.
    ends, carried = {}, {'sent': {}, 'received': {}}
    for event in trace.ask('events', '--json'):
        if event.get('what') == 'connection':
            ends[event['promise']] = event['text'].split()[1:3]
        elif event['op'] in carried:
            carried[event['op']][event['connection']] = event['position']
    pairs = [(a, b) for a, names in ends.items() for b, others in ends.items() if names == others[::-1]]
    expect((len(ends), len(pairs), set(ends) <= owners), (4, 4, True), 'ends of connections')
    expect([carried['received'][b] for _, b in pairs], [carried['sent'][a] for a, _ in pairs], 'bytes that came')
    healthy(trace)

    trace = record('http', folder)
    served = [p for p in trace.promises('request', 'GET /later') if p['end'] == 'resolved']
    expect(len(served), 2, 'the request, asked for and served')
    asked = min(served, key=lambda p: p['start_ns'])
    answered = max(served, key=lambda p: p['start_ns'])
    # The timer of 50 ms counts from the start of the loop's iteration.
    if answered['end_ns'] - answered['start_ns'] < 40000000 or asked['end_ns'] < answered['end_ns']:
        fail(f'when it was answered: {served}')
    expect(len([p for p in trace.promises('request', 'GET /now') if p['end'] == 'resolved']), 2, 'the other request')
    healthy(trace)

    # libevent calls back without the request that timed out, and calls no callback at a connect of a client without a callback for events; both promises
    # still end.
    trace = record('late', folder)
    expect(len([p for p in trace.promises('request', 'GET /late') if p['failure'] == 'no answer']), 12, 'requests that time out')
    expect([f for f in trace.findings(LATE) if f in ('stuck', 'retries', 'failure')], [], 'what is found in late')
    trace = record('silent', folder)
    connects = trace.promises('connect', '127.0.0.1:')
    expect((len(connects), {p['end'] for p in connects}), (40, {'resolved'}), 'connects without a callback for events')
    healthy(trace)

    trace = record('torture', folder)
    expect(len(trace.promises('loop', 'event_base_loop')), 8, 'loops')
    if len(trace.promises('condition', 'event freed')) + len(trace.promises('condition', 'event')) < 1000:
        fail('events that were activated are missing')

    # A loop that the program runs by single iterations records its inputs while it sleeps; its promise ends when its base is freed.
    recording = Recording(weft, os.path.join(folder, 'turned'), [scenes, 'turned'], wait=False, stdin=subprocess.PIPE)
    expect(recording.process.stdout.readline(), b'sleeps\n', 'the first word of turned')
    until(lambda: recording.trace('event_scenes').kept_by('event_base_loop, single iterations') == ['100 s', 'pipe'], 'the trace does not list what the loop waits for')
    recording.out, recording.err = recording.process.communicate(b'x', timeout=PATIENCE)
    expect((recording.process.returncode, recording.out), (0, b'awake\n'), 'how turned ends')
    trace = recording.trace('event_scenes')
    expect(trace.promise('loop', 'single iterations')['end'], 'resolved', 'how a loop ends whose base is freed')
    expect(trace.findings(LATE), {}, 'what is found in turned')

    # After a fork in the middle of the recorder's work, no promise waits for itself.
    healthy(record('forking', folder))


with tempfile.TemporaryDirectory(prefix='weft-event-') as place:
    test_small_libevent_programs_become_the_expected_promises(place)
