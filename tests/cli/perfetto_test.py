#!/usr/bin/env python3
"""perfetto_test.py WEFT GENERATE ARP: weft convert --to=perfetto writes the same facts as weft dump of the same trace.

Perfetto's importer silently drops or misplaces events that break its rules.  The test checks these rules, which are taken from its source.
SPDX-License-Identifier: ISC"""

import collections
import json
import os
import subprocess
import sys
import tempfile

from off_stretches import has_babeltrace2, off_stretches
from perfetto_fields import message

weft, generate, arp = map(os.path.abspath, sys.argv[1:4])
folder = tempfile.mkdtemp(prefix='perfetto-')
MOST_SET = 200
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def run(*words):
    done = subprocess.run([weft, *words], capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, (words, done.stderr)
    return done


class Picture:
    """The state that the importer builds from a file: slices, arrows, values of counters."""

    def __init__(self, path):
        with open(path, 'rb') as file:
            packets = message(file.read(), 'Trace')[1]
        self.tracks, self.names, self.notes = {}, {}, {}
        self.slices, self.values, self.arrows = [], collections.defaultdict(list), []
        for packet in packets:
            for track in packet[60]:
                assert track[1][0] and track[1][0] not in self.tracks
                self.tracks[track[1][0]] = track
        for track in self.tracks.values():
            assert not track[5] or track[5][0] in self.tracks
        assert packets[0][13] == [3], 'the first packet begins the sequence'
        events = []
        for order, packet in enumerate(packets):
            assert packet[10] == [1] and packet[13] == [2 if order else 3]
            for interned in packet[12]:
                for field, names in ((2, self.names), (3, self.notes)):
                    for name in interned[field]:
                        assert name[1][0] not in names
                        names[name[1][0]] = name[2][0]
            for event in packet[11]:
                assert event[11][0] in self.tracks
                for number in event[10]:
                    assert number in self.names, 'a name is told before it is used'
                events.append((packet[8][0], order, event))
        # The importer sorts events by time, and keeps the order of the file for events of the same time.
        events.sort(key=lambda e: e[:2])
        self.origin = packets[0][8][0]
        opened, flows = collections.defaultdict(list), {}
        for time, _, event in events:
            kind, track = event[9][0], event[11][0]
            if kind == COUNTER:
                self.values[self.tracks[track][2][0]].append([time - self.origin, signed(event[30][0])])
                continue
            if kind == END:
                opened[track].pop()['end'] = time - self.origin
                continue
            name = self.names[event[10][0]] if event[10] else event[23][0]
            notes = {self.notes[a[1][0]]: signed(a[4][0]) if a[4] else a[6][0] for a in event[4]}
            new = {'track': track, 'name': name, 'begin': time - self.origin, 'end': None if kind == BEGIN else time - self.origin, 'kind': event[22][0], 'notes': notes,
                   'inside': opened[track][-1] if opened[track] else None, 'number': len(self.slices)}
            self.slices.append(new)
            if kind == BEGIN:
                opened[track].append(new)
            assert len(opened[track]) <= 3, 'nothing nests but running and waiting in a promise'
            for flow in event[47] + event[48]:
                if flow in flows:
                    self.arrows.append((flows[flow], new))
                else:
                    assert flow in event[47], 'an arrow ends that never began'
                    flows[flow] = new
        self.open = sum(map(len, opened.values()))

    def largest_set(self):
        above = {}

        def root(slice_number):
            while slice_number in above:
                slice_number = above[slice_number]
            return slice_number
        size = collections.Counter()
        for a, b in self.arrows:
            for one in (a, b):
                size[root(one['number'])] = size[root(one['number'])] or 1
            a, b = root(a['number']), root(b['number'])
            if a != b:
                above[a] = b
                size[b] += size[a]
        return max(size.values(), default=0)


def owner(mark):
    """Returns the promise of a slice or of the slice around it."""
    while mark['inside']:
        mark = mark['inside']
    return mark['notes']['promise']


def compare(trace, *more):
    out = os.path.join(folder, 'out.pftrace')
    said = run('convert', trace, '--to=perfetto', '-o', out, *more).stderr.decode()
    picture = Picture(out)
    assert picture.largest_set() <= MOST_SET
    if 'odd' in trace:  # in an odd trace, several promises may have one id
        return picture, []
    dump = [json.loads(line) for line in run('dump', '--json', '--no-simplify', trace).stdout.splitlines()]
    promises = {d['promise']: d for d in dump if 'promise' in d and d['row'] is not None}
    drawn = {s['notes']['promise']: s for s in picture.slices if s['kind'] == 'promise'}
    assert drawn.keys() == promises.keys(), trace
    inside = collections.defaultdict(lambda: collections.defaultdict(list))
    for s in picture.slices:
        if s['inside']:
            inside[owner(s)][s['kind']].append(s)
    for number, promise in promises.items():
        s = drawn[number]
        assert s['begin'] == promise['start_ns'], promise
        assert s['inside'] is None, 'no promise nests in another'
        assert s['end'] == (None if promise['end'] == 'pending' else max(promise['start_ns'], promise['end_ns'])), (s, promise)
        assert s['notes']['kind'] == promise['kind']
        assert s['notes'].get('error') == promise['failure']
        assert s['notes'].get('created by') == promise['created_by']
        if promise['end'] not in ('pending',) and promise['end_ns'] <= promise['start_ns']:
            continue
        runs = [[r['begin'], r['end']] for r in inside[number]['run']]
        end = promise['end_ns'] if promise['end'] != 'pending' else float('inf')
        assert runs == [r for r in promise['running'] if promise['start_ns'] <= r[0] and r[1] <= end and r[0] < max(end, r[1] + 1)], (number, runs, promise['running'])
    assert picture.open == sum(p['end'] == 'pending' for p in promises.values()) + sum(
        s['kind'] == 'wait' and s['end'] is None for s in picture.slices)
    counters = {d['counter']: d['values'] for d in dump if 'counter' in d}
    assert picture.values == counters, trace
    told = [int(word) for word in said[said.rindex('slices, ') - 20:].split() if word.isdigit()][:3]
    assert told[:2] == [len(picture.slices), len(picture.arrows)], (told, len(picture.slices), len(picture.arrows))
    assert '--flows=all' in more or picture.largest_set() <= max(told[2], 2)
    return picture, dump


def test_perfetto_file_has_the_promises_runs_and_counters_of_the_model():
    for shape in ('random', 'short', 'tail', 'alive', 'deep', 'waits', 'flock', 'crowd', 'odd'):
        for seed in (1, 2):
            trace = os.path.join(folder, f'{shape}-{seed}')
            subprocess.run([generate, shape, '--events=4k', f'--seed={seed}', '--format=native', '-o', trace], check=True)
            for flows in ('wakeups', 'all', 'none'):
                picture, _ = compare(trace, f'--flows={flows}')
                assert (flows == 'none') == (not picture.arrows) or shape in ('short', 'tail', 'deep', 'waits', 'alive'), (shape, flows)


def test_perfetto_arrows_lead_from_inputs_to_the_runs_reading_them():
    """Each arrow between a promise and a run leads from an input to the run that reads this input."""
    trace = os.path.join(folder, 'random-1')
    picture, _ = compare(trace)
    events = [json.loads(line) for line in run('events', '--json', trace).stdout.splitlines()]
    into = {e['promise']: e['into'] for e in events if e['op'] == 'become'}

    def at_last(promise):
        while promise in into:
            promise = into[promise]
        return promise
    read = {(at_last(e['input']), at_last(e['promise'])) for e in events if e['op'] in ('read', 'read_later')}
    found = 0
    for a, b in picture.arrows:
        if a['kind'] == 'promise' and b['kind'] == 'run':
            assert (at_last(a['notes']['promise']), at_last(owner(b))) in read
            assert a['begin'] < b['begin']
            found += 1
    assert found > 100, found


def test_arrows_of_a_promise_with_many_readers_are_limited():
    """A promise with 1000 readers gets at most 100 arrows, and weft prints how many promises have too many."""
    trace = os.path.join(folder, 'flock-1')
    done = run('convert', trace, '--to=perfetto', '-o', os.path.join(folder, 'x'))
    assert b'100 arrows; a click reaches at most 101 slices' in done.stderr, done.stderr
    assert b'would connect more than 200 slices' in done.stderr, done.stderr


def test_flows_path_option_writes_only_arrows_of_the_critical_path():
    trace = os.path.join(folder, 'arp')
    subprocess.run([arp, 'good'], env={**os.environ, 'WEFT_TRACE': trace}, check=True, stdout=subprocess.DEVNULL, timeout=60)
    whole, dump = compare(trace)
    last = max((d for d in dump if d.get('end') == 'resolved' and d['row'] is not None), key=lambda d: d['end_ns'])['promise']
    path = run('path', '--json', f'--promise={last}', trace).stdout.splitlines()
    on_path = {json.loads(line)['promise'] for line in path} | {json.loads(line)['behind'] for line in path}
    part, _ = compare(trace, f'--flows=path:{last}')
    assert 0 < len(part.arrows) <= len(whole.arrows)
    for a, b in part.arrows:
        assert owner(a) in on_path and owner(b) in on_path
    assert subprocess.run([weft, 'convert', trace, '--to=perfetto', '--flows=some', '-o', '-'], capture_output=True, check=False).stderr == \
        b'weft convert: unknown value: --flows=some; use wakeups, path:ID, none or all\n'


def of_kind(picture, kind):
    """Returns the slices of this kind, each with the name of its track."""
    return [(picture.tracks[s['track']][2][0], s['begin'], s['end'], s['name']) for s in picture.slices if s['kind'] == kind]


def test_perfetto_file_has_pauses_and_kernel_events_as_slices():
    trace = os.path.join(folder, 'kernel')
    subprocess.run([generate, 'crowd', '--events=8k', '--kernel=300', '--format=native', '-o', trace], check=True)
    picture, _ = compare(trace)
    want, until = [], -1
    for e in map(json.loads, run('events', '--json', trace).stdout.splitlines()):
        if e['op'] == 'pause' and e['time_ns'] - e['duration_ns'] >= until:
            until = e['time_ns']
            want.append(('pauses', e['time_ns'] - e['duration_ns'], until, e['why']))
    assert of_kind(picture, 'pause') == want and len(want) > 50, (of_kind(picture, 'pause')[:3], want[:3])
    if not has_babeltrace2():
        return
    want = []
    for tid, since, ready, until, why in off_stretches(trace):
        want.append((f'main {tid} off CPU', since, until if why == 'preempted' else ready))
        if why != 'preempted' and until > ready:
            want.append((f'main {tid} off CPU', ready, until))
    got = of_kind(picture, 'kernel')
    assert [s[:3] for s in got] == want and len(want) > 50, (got[:4], want[:4])
    assert {'runnable, without a CPU', 'blocked in futex', 'preempted by gcc'} <= {s[3] for s in got}, {s[3] for s in got}


for name, test in list(globals().items()):
    if name.startswith('test_'):
        test()
        print('ok', name)
