#!/usr/bin/env python3
"""flight_test.py FLIGHT WEFT: after 10 s of traffic, a ring of 1 MB still has the name, the kind, the site, the age and the awaited promise of a
   promise that has been pending since the first ms; also if the recording began after the promise.
The 10 s pass on a simulated clock, 5 us for each event.  SPDX-License-Identifier: ISC"""
import json, os, subprocess, sys, tempfile

flight, weft = sys.argv[1:]
with tempfile.TemporaryDirectory() as scratch:
    for when in ('early', 'late'):
        trace = os.path.join(scratch, when)
        said = int(subprocess.run([flight, trace, when], check=True, stdout=subprocess.PIPE, text=True).stdout)
        size = sum(os.path.getsize(os.path.join(trace, f)) for f in os.listdir(trace) if f.startswith('stream'))
        lines = subprocess.run([weft, 'dump', '--json', trace], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        head, *lines = map(json.loads, lines)
        named = {p['labels'][0][1]: p for p in lines if p.get('promise', -1) > 0}
        forgotten, other = named['forgotten'], named['never answered']
        assert size <= 1 << 20 and said == 2000000 and head['trace']['lost'] > said * 0.9, (size, said, head)
        for promise in (forgotten, other):
            assert (promise['kind'], promise['end'], len(promise['labels'])) == ('request', 'pending', 1), promise
            assert os.path.basename(promise['site']['file']) == 'flight.c' and promise['site']['function'] == 'ask', promise
        # The model ends a pending promise at its last event; its age is measured at the end of the trace.
        age = head['trace']['end_ns'] - forgotten['start_ns']
        assert 9.999e9 <= age <= 10.001e9, age
        assert forgotten['awaits'] == [other['promise']] and other['awaits'] == [] and forgotten['links']['await'] == 1, forgotten
        print(f'{when}: {said} events through {size} bytes, {head["trace"]["lost"]} overwritten; "forgotten" is {age / 1e9:.4f} s old')
