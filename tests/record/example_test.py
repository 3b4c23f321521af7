#!/usr/bin/env python3
"""example_test.py COFFEE WEFT: the trace of the example has the events that its documentation describes.  SPDX-License-Identifier: ISC"""
import json, os, subprocess, sys, tempfile

coffee, weft = sys.argv[1:]
with tempfile.TemporaryDirectory() as scratch:
    trace = os.path.join(scratch, 'trace')
    def run(setting, **more):
        return subprocess.run([coffee], env={**os.environ, 'WEFT_TRACE': setting}, text=True, capture_output=True)
    told = run(f'{trace},size=1M,packets=4')
    assert (told.returncode, told.stdout, told.stderr) == (0, 'breakfast is served\n', ''), told
    lines = subprocess.run([weft, 'dump', '--json', trace], text=True, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    promises = {p['labels'][0][1]: p for p in map(json.loads, lines) if p.get('promise', -1) > 0}
    assert set(promises) == {'breakfast', 'coffee', 'boil water', 'grind beans', 'newspaper'}, promises
    assert [promises[n]['end'] for n in ('breakfast', 'coffee', 'boil water', 'grind beans', 'newspaper')] == ['resolved'] * 4 + ['failed']
    assert promises['coffee']['created_by'] == promises['breakfast']['promise']
    source = os.path.join(os.path.dirname(__file__), '../../examples/recording/coffee.c')
    line = next(i for i, text in enumerate(open(source), 1) if '"newspaper"' in text)
    site = promises['newspaper']['site']
    assert (os.path.basename(site['file']), site['line'], site['function']) == ('coffee.c', line, 'main'), site
    for setting, line in ((',size=1M', 'no directory is given'), (trace, f'{trace}: exists already; set overwrite to replace it'),
                          (f'{trace},sise=1', '"sise=1" is not an option; there are size=64M, mode=ring, mode=grow, packets=N, overwrite, standby'),
                          (f'{trace},size=8k,overwrite', f'{trace}: the ring is too small for that many packets')):
        told = run(setting)
        assert (told.returncode, told.stderr) == (0, f'weft: WEFT_TRACE: {line}\n'), told
    told = run(f'{trace},overwrite,mode=grow')
    assert told.stderr == '', told
