#!/usr/bin/env python3
"""watch_server_test.py WEFT HTTP-TROUBLED PATIENT: weft watch saves a trace of each problem of busy servers once, with its cause;
   also of many processes, and for a user who may read only some of the traces.

SPDX-License-Identifier: ISC"""
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'promise'))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from http_server import Server, get  # pylint: disable=wrong-import-position
from others import closed_to_others  # pylint: disable=wrong-import-position
from waiting import PATIENCE, dies_with_test, expect, listed, until  # pylint: disable=wrong-import-position

weft, troubled, patient = map(os.path.abspath, sys.argv[1:])
NOBODY, CROWD = 65534, 50
# The kinds of finding in a copy that show each fault.
FAULTS = {'stall': {'stall'}, 'lost': {'hang', 'stuck'}, 'leak': {'leak'}, 'spin': {'spin'}}


def weft_json(verb, trace):
    got = subprocess.run([weft, verb, '--json', trace], capture_output=True, text=True, check=False, timeout=PATIENCE)
    return [json.loads(line) for line in got.stdout.splitlines()]


def snapshot_texts(trace):
    """Returns the texts of the snapshot requests in a trace; the last one in a copy is the reason for the copy."""
    return [event['text'] for event in weft_json('events', trace) if event.get('what') == 'snapshot']


@functools.cache
def is_of(copy, name, fault):
    """Returns whether a copy is of the server `name` and has a finding of its planted fault."""
    return copy.startswith(name) and bool(FAULTS[fault] & {finding['finding'] for finding in weft_json('explain', 'kept/' + copy)})


class Busy:
    """A server that gets requests all the time and has one fault."""

    def __init__(self, name, fault):
        self.fault, self.ends = fault, False
        # weft record, not the server, notes a spin, at times that double, and would lose the first notes in a small ring.
        under = [weft, 'record', '--mode=ring', '--size=64M', '-o', name, '--'] if fault == 'spin' else []
        self.server = Server(troubled, 'www', trace=None if under else f'all/{name},size=1M', under=under)
        self.client = threading.Thread(target=self.ask)
        self.client.start()

    def ask(self):
        with self.server.connect() as client, self.server.connect() as unlucky:
            for turn in range(1 << 30):
                if self.ends:
                    return
                # A stall during which the server is preempted is not reported, so the client causes a stall every 3 s.
                if (turn % 500 if self.fault == 'stall' else turn) == 20 and self.fault != 'leak':
                    unlucky.send(get('/' + self.fault))
                client.send(get('/leak' if self.fault == 'leak' and turn % 4 == 0 else '/page'))
                client.answer()
                time.sleep(0.005)

    def end(self):
        self.ends = True
        self.client.join()
        # Sends SIGTERM again until the server ends: the second signal ends it although a request never ends.
        while self.server.process.poll() is None:
            self.server.process.terminate()
            time.sleep(0.1)
        self.server.process.stdout.close()


def watch(*words, **more):
    return subprocess.Popen([weft, 'watch', *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=dies_with_test, **more)


def end(watcher):
    """Returns the output of the watcher until its end."""
    watcher.send_signal(signal.SIGTERM)
    return watcher.communicate(timeout=PATIENCE)


def servers():
    """Watches a server with each fault, and saves each problem once, although the watchers are killed and started again."""
    os.mkdir('www')
    for name in 'page', *FAULTS:
        with open('www/' + name, 'w', encoding='utf-8') as file:
            file.write(name * 100)
    os.mkdir('all')
    # The spin has a watcher of its own, because a watcher takes long to read a spin and then pauses for long.
    watched = ('all',), ('spin',)
    options = 'stall<200ms', 'findings=0', 'findings(uncertain)=0', '--save=kept', '--patience=1s', '--per-hour=100'
    busy = [Busy(fault, fault) for fault in reversed(FAULTS)]
    try:
        watchers = [watch(*places, *options) for places in watched]
        for fault in FAULTS:
            name = 'http-troubled' if fault == 'spin' else fault
            until(f'the {fault} is kept', lambda name=name, fault=fault: any(is_of(copy, name, fault) for copy in listed('kept')))
        for watcher in watchers:
            watcher.kill()
            watcher.communicate()
        watchers = [watch(*places, *options) for places in watched]
        busy.append(Busy('late', 'stall'))
        until('what comes later is kept', lambda: any(is_of(copy, 'late', 'stall') for copy in listed('kept')))
        for watcher in watchers:
            end(watcher)
    finally:
        for one in busy:
            one.end()
    reasons = sorted((copy.rsplit('-', 2)[0], re.sub(r'[0-9.]+ (ns|us|ms|s)\b|[0-9]+', '*', snapshot_texts('kept/' + copy)[-1])) for copy in listed('kept'))
    expect('nothing is kept twice', sorted(set(reasons)), reasons)
    print(f'{len(reasons)} are kept: ' + ', '.join(f'{name}: {why.split(":")[0].split(" ")[0]}' for name, why in reasons))


def crowd():
    """Watches many processes.  They record slowly, so that weft watch, which uses a part of one CPU, reads each ring before it wraps."""
    os.mkdir('many')
    programs = [subprocess.Popen([patient, 'snapshot', 'slowly'], stdin=subprocess.PIPE, preexec_fn=dies_with_test, env={**os.environ, 'WEFT_TRACE': f'many/{i},size=512K'}) for i in range(CROWD)]
    watcher = watch('many', '--save=crowd', '--per-hour=1000')
    until('all are kept', lambda: len(listed('crowd')) >= CROWD)
    for program in programs:
        program.stdin.close()
        program.wait(timeout=PATIENCE)
    said = end(watcher)
    expect('once each', (len(listed('crowd')), len(said[0].splitlines())), (CROWD, CROWD))
    expect('of whom', {name.split('-')[0] for name in listed('crowd')}, {str(i) for i in range(CROWD)})


def refused():
    """A watcher whose user may read only one of two traces saves this one and reports the other once."""
    if os.getuid() != 0 or closed_to_others(weft):
        print('no other user can run weft here')
        return
    os.chmod('.', 0o755)
    os.mkdir('some')
    programs = [subprocess.Popen([patient, 'snapshot'], stdin=subprocess.PIPE, preexec_fn=dies_with_test, env={**os.environ, 'WEFT_TRACE': 'some/' + name}) for name in ('mine', 'yours')]
    until('both ask to be kept', lambda: all(snapshot_texts('some/' + name) for name in ('mine', 'yours')))
    os.mkdir('theirs')
    for path in 'theirs', 'some/yours', *(os.path.join('some/yours', name) for name in os.listdir('some/yours')):
        os.chown(path, NOBODY, NOBODY)
    watcher = watch('some', '--save=theirs', '--every=1ms', user=NOBODY, group=NOBODY, extra_groups=[])
    until('what may be read is kept', lambda: len(listed('theirs')) >= 1)
    for program in programs:
        program.stdin.close()
        program.wait(timeout=PATIENCE)
    said = end(watcher)
    expect('the other is named once', said[1], 'weft: some/mine: Permission denied\n')
    expect('the one', [name.split('-')[0] for name in listed('theirs')], ['yours'])


NODE = """
function block() {
    for (const end = Date.now() + 1500; Date.now() < end;) {}
}
const server = require('http').createServer((request, response) => {
    if (request.url === '/block')
        block();
    if (request.url === '/end')
        setTimeout(() => process.exit(0), 100);
    response.end('done');
});
setTimeout(() => {
    block();
    server.listen(0, '127.0.0.1', () => console.log(server.address().port));
}, 5);
"""
RULES = """# A block of the start is no problem.
stall<1s/1s

  # p99(none)<1s/1s has nothing to measure
p99(none)<1s/1s
"""


def warmed():
    """A Node.js server blocks its loop at its start and three times later: weft watch and weft check report only the later blocks, each once."""
    if not shutil.which('node'):
        print('no node can be run here')
        return
    for name, text in ('server.js', NODE), ('rules', RULES):
        with open(name, 'w', encoding='utf-8') as file:
            file.write(text)
    began = time.monotonic()
    server = subprocess.Popen([weft, 'record', '--mode=ring', '--size=16M', '-o', 'node', '--', 'node', 'server.js'], stdout=subprocess.PIPE, text=True, preexec_fn=dies_with_test)
    port = int(server.stdout.readline())
    # The first event comes after `began` and before the port is printed.  So --after=`after` is over after another sleep of `after` seconds.
    after = time.monotonic() - began
    words = 'node', '--rules=rules', f'--after={after:.3f}s'
    watcher = watch(*words, '--save=blocks', '--per-hour=100')
    time.sleep(after)
    for turn in range(3):
        with urllib.request.urlopen(f'http://127.0.0.1:{port}/block', timeout=PATIENCE) as answer:
            answer.read()
        until('a block is kept', lambda turn=turn: len(listed('blocks')) > turn)
        time.sleep(2.5)
    watcher.kill()
    watcher.communicate()
    again = watch(*words, '--save=blocks', '--per-hour=100')
    with urllib.request.urlopen(f'http://127.0.0.1:{port}/end', timeout=PATIENCE) as answer:
        answer.read()
    server.wait(timeout=PATIENCE)
    time.sleep(2)
    said = end(again)
    expect('what a second watcher says', said[0], '')
    reasons = [snapshot_texts('blocks/' + copy)[-1] for copy in listed('blocks')]
    expect('what is kept', [reason for reason in reasons if not re.match(r'stall<1s/1s is broken: [\d.]+ s \(at ', reason)], [])
    counts = []
    for more in [words[2]], []:
        got = subprocess.run([weft, 'check', '--json', *words[:2], *more], capture_output=True, text=True, check=False, timeout=PATIENCE)
        told = [json.loads(line) for line in got.stdout.splitlines()]
        expect(f'weft check {more}', [line['outcome'] for line in told], ['broken', 'unknown'])
        counts.append(told[0]['times_broken'])
    # On a busy machine, other blocks may last as long and be reported, too.
    expect(f'both verbs say the same, {reasons}', len(reasons), counts[0])
    expect(f'the blocks after the start, {reasons}', counts[0] >= 3, True)
    expect('the block of the start', counts[1] > counts[0], True)


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    for part in refused, crowd, warmed, servers:
        began = time.monotonic()
        part()
        print(f'{part.__name__}: {time.monotonic() - began:.0f} s', flush=True)
