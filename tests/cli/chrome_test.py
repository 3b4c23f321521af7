#!/usr/bin/env python3
"""chrome_test.py WEFT GENERATE ARP: weft convert --to=chrome writes the same facts as weft dump of the same trace.

Checks the rules of the trace event format: process, category and id identify an asynchronous slice, each slice begins once, and times are in us.
SPDX-License-Identifier: ISC"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from decimal import Decimal

weft, generate, arp = map(os.path.abspath, sys.argv[1:4])


def run(*words):
    done = subprocess.run([weft, *words], capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, (words, done.stderr)
    return done


def ns(us):
    assert -us.as_tuple().exponent == 3, us
    return int(us * 1000)


class Picture:
    """The state that a viewer of the trace event format builds from a file."""

    def __init__(self, text):
        self.promises, self.runs, self.counters, self.texts = {}, collections.defaultdict(list), collections.defaultdict(list), collections.defaultdict(list)
        self.pauses, self.threads = {}, {}
        whole = json.loads(text, parse_float=Decimal)
        assert whole['displayTimeUnit'] == 'ns'
        for event in whole['traceEvents']:
            phase, category, key = event['ph'], event.get('cat'), (event['pid'], event.get('cat'), event.get('id2', {}).get('local'))
            slices = self.pauses if category == 'pause' else self.promises
            if phase == 'M':
                self.threads[event['name'], event['pid'], event['tid']] = event['args']['name']
            elif phase == 'b':
                assert key not in slices, 'slices of one id do not overlap'
                slices[key] = {'begin': ns(event['ts']), 'end': None, 'name': event['name'], **event.get('args', {})}
            elif phase == 'e':
                assert slices[key]['end'] is None and slices[key]['name'] == event['name']
                slices[key]['end'] = ns(event['ts'])
            elif phase == 'n':
                assert key in self.promises
                self.texts[key].append([ns(event['ts']), event['name']])
            elif phase == 'X':
                self.runs[event['args']['promise']].append([ns(event['ts']), ns(event['ts']) + ns(event['dur'])])
            else:
                assert phase == 'C', event
                self.counters[event['name']].append([ns(event['ts']), event['args']['value']])


def compare(trace):
    done = run('convert', trace, '--to=chrome', '-o', '-')
    picture = Picture(done.stdout.decode('utf-8'))
    dump = [json.loads(line) for line in run('dump', '--json', '--no-simplify', trace).stdout.splitlines()]
    promises = {d['promise']: d for d in dump if d.get('promise', -1) != -1}
    counters = {d['counter']: d['values'] for d in dump if 'counter' in d}
    changes = {(at, name) for name, values in counters.items() for at, _ in values}
    assert len(picture.promises) == len(promises) and len({s['promise'] for s in picture.promises.values()}) == len(promises)
    for key, s in picture.promises.items():
        promise = promises[s['promise']]
        assert key[2] == hex(s['promise'] & (1 << 64) - 1)
        assert s['begin'] == promise['start_ns'] and s['end'] == (None if promise['end'] == 'pending' else promise['end_ns']), (s, promise)
        assert (s['kind'], s.get('error'), s.get('created by')) == (promise['kind'], promise['failure'], promise['created_by'])
        assert picture.runs[s['promise']] == promise['running'], (trace, s, picture.runs[s['promise']], promise['running'])
        # weft dump also lists numbers of unnamed promises and changes of counters as labels.
        told = [[at, text] for at, text in promise['labels'] if text not in (s['name'], str(s['promise'])) and (at, re.sub(r'[+-]\d+$', '', text)) not in changes]
        assert picture.texts[key] == told, (picture.texts[key], told)
    assert picture.counters == counters
    return picture, promises, done.stderr.decode()


with tempfile.TemporaryDirectory(prefix='weft-chrome-') as folder:
    for shape in ('random', 'short', 'waits', 'crowd', 'flock'):
        trace = os.path.join(folder, shape)
        made = subprocess.run([generate, shape, '--events=4k', '--format=native', '-o', trace], capture_output=True, text=True, check=False)
        assert made.returncode == 0, made
        picture, promises, said = compare(trace)
        pauses = [e for e in map(json.loads, run('events', '--json', trace).stdout.splitlines()) if e['op'] == 'pause']
        drawn = sorted((s['begin'], s['end'], s['name']) for s in picture.pauses.values())
        assert shape != 'crowd' or (len(pauses) > 10 and drawn == sorted((e['time_ns'] - e['duration_ns'], e['time_ns'], e['why']) for e in pauses)), drawn[:3]
        assert len(promises) > 100 and 'links between promises' in said, said
    trace = os.path.join(folder, 'arp')
    subprocess.run([arp, 'bad'], env={**os.environ, 'WEFT_TRACE': trace}, capture_output=True, check=False)
    picture, promises, said = compare(trace)
    assert 'ARP response' in {s['name'] for s in picture.promises.values()}
    assert any(key[0] == 'process_name' and name == 'arp' for key, name in picture.threads.items()), picture.threads
print('the same as weft dump')
