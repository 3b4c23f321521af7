#!/usr/bin/env python3
"""Three machines talk over TCP, and no two of their clocks agree: the truth is inside the bound each time, and nothing arrives before it was sent.

	rounds_test.py TALK WEFT [SECONDS]

SPDX-License-Identifier: ISC"""

import collections
import glob
import json
import os
import subprocess
import sys
import tempfile

from namespaces import Machines

PATIENCE = 300
talk, weft = (os.path.abspath(path) for path in sys.argv[1:3])
seconds = sys.argv[3] if len(sys.argv) > 3 else '3'


def fail(message):
    sys.exit(f'FAILED: {message}')


def recorded(machines, folder, clocks, processors):
    """A folder with a trace of each machine."""
    def start(letter, *words):
        return subprocess.Popen(machines.on(letter, talk, os.path.join(folder, letter), letter, clocks[letter], str(ord(letter)), *words),
                                stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, processors[letter]))
    server = start('b', str(int(seconds) + 1), 'serve', '0.0.0.0', '7777')
    if server.stdout.readline() != 'listens\n':
        fail('nobody listens')
    clients = [start('a', seconds, 'ask', machines.addresses['b'], '7777', '40001'), start('c', seconds, 'ask', machines.addresses['b'], '7777')]
    if any(process.wait(PATIENCE) for process in [*clients, server]):
        fail('they could not talk')


def run(*words):
    return subprocess.run([weft, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)


def host_of(event):
    return event['thread'].split('@')[1]


def known_times(events):
    """Checks the promises whose labels have the true time: returns the smallest and the largest error of weft's time, and the bounds in us."""
    created, late, bounds = {}, collections.defaultdict(list), collections.defaultdict(list)
    # Bounds grow before the first message and after the last one.
    talked = [e['time_ns'] for e in events if host_of(e) == 'a' and e['op'] in ('sent', 'received')]
    for e in events:
        if e['op'] == 'create':
            created[e['promise']] = e
        elif e['op'] == 'label' and e['text'].startswith('true ') and e['promise'] in created:  # a copy may start between the two
            before, after = map(int, e['text'].split()[1:])
            shown = created[e['promise']]
            late[host_of(e)].append((shown.get('earliest_ns', shown['time_ns']) - after, shown.get('latest_ns', shown['time_ns']) - before))
            if host_of(e) != 'a' and talked[0] < shown['time_ns'] < talked[-1]:
                bounds[host_of(e)].append((shown['latest_ns'] - shown['earliest_ns']) / 2000)
    return late, bounds


def check_truth(name, events):
    late, bounds = known_times(events)
    # The first host's own clock is right: all of its times have the same error.
    least, most = max(low for low, _ in late['a']), min(high for _, high in late['a'])
    if least > most:
        fail(f'{name}: the clock of a does not agree with itself')
    for host in 'bc':
        outside = [(low - most, high - least) for low, high in late[host] if low > most or high < least]
        if outside or len(late[host]) < 200:
            fail(f'{name}: {len(outside)} of {len(late[host])} times of {host} are outside of the bound: {outside[:5]}')
        print(f'{name}: {host}: the truth is inside at all of {len(late[host])} times, '
              f'+-{sum(bounds[host]) / len(bounds[host]):.1f} us on average, {max(bounds[host]):.1f} at worst')


def written_before(writes, position):
    """Returns the time at which the bytes up to that position were passed to the kernel."""
    return next(time_ns for time_ns, reached in writes if reached >= position)


def check_order(name, events):
    """No byte is read before it was written: ends of a connection have each other's addresses, and equal addresses are used one after the other."""
    ends, named = {}, collections.defaultdict(list)
    for e in events:
        if e['op'] == 'detail' and e['what'] == 'connection':
            _, own, peer, _ = e['text'].split()
            if e['promise'] not in ends:
                named[own, peer].append(e['promise'])
            ends.setdefault(e['promise'], ([], []))
        elif e['op'] == 'sent':
            writes, time_ns = ends[e['connection']][0], e['time_ns']
            while writes and writes[-1][1] > e['position']:
                time_ns = writes.pop()[0]  # the kernel took a part
            if not writes or writes[-1][1] < e['position']:
                writes.append((time_ns, e['position']))
        elif e['op'] == 'received':
            ends[e['connection']][1].append((e['time_ns'], e['position']))
    def carried(reader, writer):
        return not ends[reader][1] or ends[writer][0] and ends[reader][1][-1][1] <= ends[writer][0][-1][1]
    count, early = 0, []
    for (own, peer), here in named.items():
        there = list(named.get((peer, own), []))
        for one in here:
            # A connection that was reset before it was accepted has only one end.
            other = next((end for end in there if carried(one, end) and carried(end, one)), None)
            if other is None:
                continue
            del there[:there.index(other) + 1]
            for time_ns, position in ends[one][1]:
                sent_ns = written_before(ends[other][0], position)
                count += 1
                if time_ns < sent_ns - 2:
                    early.append(sent_ns - time_ns)
    if early or count < 1000:
        fail(f'{name}: {len(early)} of {count} messages came before they were sent: {early[:5]}')
    print(f'{name}: none of {count} messages comes before it was sent')


def bounds_of(folder):
    return [part['bound_ns'] for part in json.loads(run('info', '--json', *sorted(glob.glob(folder + '/*'))).stdout.splitlines()[-1])['parts']]


def check_counters(name, folder):
    """The same with clocks that may be set, for which the bounds are wider."""
    known = bounds_of(folder)
    for path in glob.glob(folder + '/*/metadata'):
        with open(path, encoding='utf-8') as file:
            text = file.read()
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text.replace('"counter"', '"caller" '))
    less = bounds_of(folder)
    if known[0] or any(bound <= 0 or bound >= other for bound, other in zip(known[1:], less[1:])):
        fail(f'{name}: by counters +-{known} ns, by other clocks {less}')


def check_copies(name, folder):
    """Copies of the last seconds, which start at a different time on each machine."""
    with tempfile.TemporaryDirectory() as copies:
        for host, last in zip('abc', ('1s', '1500ms', '2s')):
            run('save', '--last=' + last, os.path.join(folder, host), '-w', os.path.join(copies, host))
        told = run('events', '--json', '--absolute', copies)
        if told.returncode:
            fail(f'{name}: {told.stderr}')
        check_truth(name, list(map(json.loads, told.stdout.splitlines())))


def check(machines, name, a='0,0,0', b='3700000000,50000,0', c='-80000000,-20000,0', processors=None):
    with tempfile.TemporaryDirectory() as folder:
        recorded(machines, folder, {'a': a, 'b': b, 'c': c}, processors or dict.fromkeys('abc', os.sched_getaffinity(0)))
        told = run('events', '--json', '--absolute', folder)
        if 'late' in a + b + c:
            if told.returncode == 0 or 'cannot be' not in told.stderr:
                fail(f'{name}: wrong stamps are not refused: {told.returncode}: {told.stderr}')
            print(f'{name}: {told.stderr.strip()}')
            return
        if told.returncode:
            fail(f'{name}: {told.stderr}')
        events = list(map(json.loads, told.stdout.splitlines()))
        check_truth(name, events)
        check_order(name, events)
        check_counters(name, folder)
        if name == 'even clocks':
            check_copies('copies of the last seconds', folder)


with Machines('ac') as made:
    if not made:
        print('SKIPPED: no network namespaces can be made here')
        sys.exit(77)
    check(made, 'even clocks')
    # b does not share its CPU with its peers, like a separate machine.
    one, *others = sorted(os.sched_getaffinity(0))
    if others:
        check(made, 'even clocks, a processor for b alone', processors={'a': others, 'b': {one}, 'c': others})
    check(made, 'what a gets is slow', a='0,0,0,slow')
    check(made, 'a clock that wanders', b='3700000000,50000,40000')
    check(made, 'sent is recorded too late', a='0,0,0,late', b='3700000000,50000,0,late', c='-80000000,-20000,0,late')
