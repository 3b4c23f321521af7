#!/usr/bin/env python3
"""An item of a GThreadPool waits in the queue until an OS thread of the pool is free: the trace has the wait and the run.

	pool_test.py POOL WEFT

SPDX-License-Identifier: ISC"""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
from recorded import Recording, expect, fail

pool, weft = map(os.path.abspath, sys.argv[1:3])
with tempfile.TemporaryDirectory(prefix='weft-glib-') as folder:
    recording = Recording(weft, os.path.join(folder, 'traces'), [pool])
    expect(recording.status, 0, 'the exit status')
    trace = recording.trace('glib_pool')
    work = trace.promises('work', 'compute')
    expect([p['labels'][0][1] for p in work], ['compute'] * 6, 'what is pushed')
    expect({p['end'] for p in work}, {'resolved'}, 'how it ends')
    runs = {line['promise']: line['stream'] for line in trace.ask('events', '--json') if line['op'] == 'run'}
    threads = {runs[p['promise']] for p in work}
    if len(threads) != 2 or 0 in threads:
        fail(f'they ran on OS threads {threads}')
    # The third item waited for one of the first two, which took 30 ms from then on; the fifth item waited twice as long.
    figures = next(line for line in trace.ask('stats', '--json') if line['label'] == 'compute')
    expect((figures['waiting']['max_ns'] >= 60_000_000, figures['running']['p50_ns'] >= 30_000_000), (True, True), f'waiting and running: {figures}')
    counters = {line['counter'] for line in trace.ask('events', '--json') if line['op'] == 'counter_add'}
    expect(counters, {'GThreadPool: requests', 'GThreadPool: at work'}, 'counters')

    counted = trace.promises('work', 'count')
    alike, dropped = [p for p in counted if p['start_ns'] < counted[3]['start_ns']], counted[3:]
    expect(([p['end'] for p in alike], len(dropped)), (['resolved'] * 3, 5), 'what is pushed three times, and what is pushed to a pool that is freed')
    if not all(a['running'][-1][1] <= b['running'][0][0] for a, b in zip(alike, alike[1:])):
        fail(f'they do not run one after the other: {alike}')
    expect({p['failure'] for p in dropped if p['end'] == 'failed'}, {'dropped with its pool'}, 'what becomes of what is dropped')
    ends = [p['end'] for p in dropped]
    expect(ends[1:], ['failed'] * 4, 'what is dropped')
    expect((ends[0] in ('failed', 'resolved'), trace.alarms('2s')), (True, []), 'what runs already, and alarms')
    left = sum(line['change'] if 'change' in line else line['value'] for line in trace.ask('events', '--json')
               if line['op'] == 'counter_add' and line['counter'] == 'GThreadPool: requests')
    expect(left, 0, 'requests that are left')
