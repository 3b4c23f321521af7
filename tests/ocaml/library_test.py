#!/usr/bin/env python3
"""The OCaml library of weft: a program behaves as without a recording, and the lost wake-up of arp.ml is found.

	library_test.py ROOT BUILD WEFT

SPDX-License-Identifier: ISC"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

root, build, weft = map(os.path.abspath, sys.argv[1:])
env = {**os.environ, 'PKG_CONFIG_PATH': os.path.join(build, 'meson-uninstalled'), 'LD_LIBRARY_PATH': build, 'HOME': '/nonexistent', 'DUNE_CACHE': 'disabled'}
env.pop('WEFT_TRACE', None)


def run(*words, status=0, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300, env={**env, **more}, check=False)
    assert done.returncode == status, (words, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


def skip_without_ocaml():
    for program in 'dune', 'ocamlopt', 'ocamlfind', 'pkg-config':
        if not shutil.which(program):
            print(f'skipped: no {program}')
            sys.exit(77)
    if subprocess.run(['ocamlfind', 'query', 'lwt.unix'], capture_output=True, check=False).returncode != 0:
        print('skipped: no Lwt')
        sys.exit(77)


def build_programs():
    shutil.copytree(os.path.join(root, 'ocaml'), 'weft', ignore=shutil.ignore_patterns('_build'))
    os.mkdir('programs')
    shutil.copy(os.path.join(root, 'examples', 'ocaml', 'arp.ml'), 'programs')
    shutil.copy(os.path.join(root, 'tests', 'ocaml', 'lwt_calls.ml'), 'programs')
    with open(os.path.join(root, 'examples', 'ocaml', 'dune'), encoding='utf-8') as f, open('programs/dune', 'w', encoding='utf-8') as out:
        out.write(f.read().replace('executable\n (name arp)', 'executables\n (names arp lwt_calls)'))
    with open('dune-project', 'w', encoding='utf-8') as f:
        f.write('(lang dune 2.9)\n')
    run('dune', 'build', '--root', '.', './programs/arp.exe', './programs/lwt_calls.exe', '@weft/install')
    return 'programs/arp.exe', 'programs/lwt_calls.exe'


def recording_changes_no_output_and_has_each_kind_of_promise(calls):
    plain = run(calls)
    assert run(calls, WEFT_TRACE='calls.weft') == plain and plain.count('\n') == 8, plain
    assert 'many: ' in plain and 'pending' in plain and 'threads: slept, dropped, ' in plain, plain
    dump = run(weft, 'dump', 'calls.weft')
    for kind, text in (('wait', '"refused"'), ('task', '"a"'), ('condition', '"news"'), ('task', '"news"'), ('condition', '"box"'), ('async', '"background"'),
                       ('try', 'resolved'), ('join', 'resolved'), ('choose', 'Lwt.Canceled'), ('pick', 'resolved'), ('map', '"main"'), ('map', 'failed "Not_found"'),
                       ('async', 'Refused')):
        assert re.search(rf'promise \d+ {kind} .*{text}', dump), (kind, text)
    counters = dict(re.findall(r'counter "(.*)"  (.*)', dump))
    assert counters == {'clients': '1 values, 0 .. 7, last 7', 'replies': '2 values, 0 .. 5, last 5', 'requests': '2 values, 0 .. 8, last 4'}, counters
    assert 'pause "gc, minor"' in dump and 'pause "gc, major slice"' in dump
    assert re.search(r'at .*lwt_calls\.ml:\d+', dump), 'no source lines'
    # each of the 3,000 waits was found for its map, after the collector had moved it
    awaits = [json.loads(line) for line in run(weft, 'events', '--json', 'calls.weft').splitlines() if '"op":"await"' in line]
    inputs = {e['input'] for e in awaits}
    kinds = {p['promise']: (p['kind'], p['created_by']) for p in map(json.loads, run(weft, 'dump', '--json', 'calls.weft').splitlines()) if 'promise' in p and 'kind' in p}
    assert sum(kinds[i][0] == 'wait' for i in inputs) >= 3000 and sum(kind == 'wait' for kind, _ in kinds.values()) < 3020, len(kinds)


def lost_wakeup_is_found(arp):
    assert run(arp, 'good', WEFT_TRACE='good.weft') == 'connected\n'
    assert run(weft, 'explain', 'good.weft').startswith('nothing found'), run(weft, 'explain', 'good.weft')
    run(arp, 'bad', status=1, WEFT_TRACE='bad.weft')
    said = run(weft, 'explain', 'bad.weft', status=1)
    first = said.splitlines()[0]
    assert re.match(r'hang: bind \d+ "main" never resolved: condition \d+ "ARP response" was signalled .* before the wait \(arp\.ml:\d+\)', first), said
    assert 'lost wake-up' in said and 'counter "tcp-to-ip"' in run(weft, 'dump', 'bad.weft'), said


skip_without_ocaml()
with tempfile.TemporaryDirectory(prefix='weft-ocaml-library-') as scratch:
    os.chdir(scratch)
    built = [os.path.abspath(os.path.join('_build', 'default', program)) for program in build_programs()]
    lost_wakeup_is_found(built[0])
    recording_changes_no_output_and_has_each_kind_of_promise(built[1])
