#!/usr/bin/env python3
"""top_test.py WEFT PATIENT ARP DEADLOCK: weft top --once lists the promises in flight of an ended or a running program.  SPDX-License-Identifier: ISC"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

weft, patient, arp, deadlock = map(os.path.abspath, sys.argv[1:])
PATIENCE = 120
# A Node.js program opens two files, which never succeeds, and kills itself: after 300 ms or at once.
OPENS = 'const opens = () => ["fifo-one", "fifo-two"].forEach(name => fs.open(name, () => 0)), die = () => process.kill(process.pid, "SIGKILL");'
LATER = OPENS + 'setTimeout(() => { setTimeout(opens, 20); setTimeout(die, 300); }, 5)'
AT_ONCE = OPENS + 'setTimeout(() => { opens(); die(); }, 5)'


def run(*command, status=0):
    got = subprocess.run([weft, 'top', *command], capture_output=True, text=True, check=False, timeout=PATIENCE)
    if got.returncode != status:
        sys.exit(f'{command}: status {got.returncode}\n{got.stdout}{got.stderr}')
    return got.stdout if status == 0 else got.stderr


def rows(traces, key):
    named = [traces] if isinstance(traces, str) else traces
    return [line for line in map(json.loads, run('--once', '--json', *named).splitlines()) if key in line]


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f'{what}: {got} is not {wanted}')


def weft_dump(trace):
    lines = subprocess.run([weft, 'dump', '--json', '--no-simplify', trace], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in map(json.loads, lines) if line.get('promise', -1) != -1]


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    # For an ended program, weft top --once counts as many pending promises as weft dump, and names what they await.
    for trace, command in ('arp', [arp, 'bad']), ('stuck', [deadlock]):
        subprocess.run(command, env={**os.environ, 'WEFT_TRACE': trace}, check=False, capture_output=True, timeout=PATIENCE)
        pending = sum(line['end'] == 'pending' or (line['failure'] or '').startswith('should resolve') for line in weft_dump(trace))
        expect(f'{trace}: in flight', sum(row['in_flight'] for row in rows(trace, 'sort')), pending)
        head, = rows(trace, 'trace')
        expect(f'{trace}: in flight, as the head says it', head['in_flight'] + head['endless'], pending)
        expect(f'{trace}: in words', f'; {head["in_flight"]} in flight' + (f', and {head["endless"]} that need not end; ' if head['endless'] else '; ') in run('--once', trace), True)
        expect(f'{trace}: it has ended', head['runs'], False)
    wait, = [row for row in rows('arp', 'waits') if 'main' in row['name']]
    expect('for what it waits in the end', wait['root_name'], 'task 14 "ARP response"')
    expect('what was found', [row['finding'] for row in rows('arp', 'finding')], ['hang'])
    expect('in words', 'finally for task 14 "ARP response"' in run('--once', 'arp'), True)
    expect('a circle', [row for row in rows('stuck', 'finding') if row['finding'] in ('deadlock', 'cycle')] != [], True)

    # A running program can be named by its trace or by its process id.
    program = subprocess.Popen([patient], stdin=subprocess.PIPE, env={**os.environ, 'WEFT_TRACE': 'live,size=1M'})
    end = time.monotonic() + PATIENCE
    while True:
        known = subprocess.run([weft, 'top', '--once', '--json', 'live'], capture_output=True, text=True, check=False)
        ended = [row['ended'] for row in map(json.loads, known.stdout.splitlines()) if row.get('sort') == 'request "request"']
        if ended and ended[0] > 10:
            break
        if time.monotonic() > end or program.poll() is not None:
            sys.exit(f'requests are not seen: {known.stdout}{known.stderr}')
        time.sleep(0.05)
    expect('it runs', rows('live', 'trace')[0]['runs'], True)
    expect('by its number', rows(str(program.pid), 'trace')[0]['pid'], program.pid)
    said = run('--once', str(program.pid))
    expect('a line for people', f'patient {program.pid}: runs; ' in said and 'request "request"' in said, True)
    program.stdin.close()
    program.wait(timeout=PATIENCE)

    # A program that has ended before others counts as asleep since its end.
    os.mkdir('both')
    both = []
    for name in 'ended', 'late':
        both.append(subprocess.Popen([patient], stdin=subprocess.PIPE, env={**os.environ, 'WEFT_TRACE': f'both/{name},size=1M'}))
        if name == 'ended':
            while not os.path.exists('both/ended/metadata'):
                time.sleep(0.05)
            both[0].stdin.close()
            both[0].wait(timeout=PATIENCE)
    end = time.monotonic() + PATIENCE
    while [row['slept_ns'] for row in rows('both', 'slept_ns') if row['stream'] == 0] != [1000000000]:
        if time.monotonic() > end or both[1].poll() is not None:
            sys.exit(f'who has ended is awake: {run("--once", "both")}')
        time.sleep(0.05)
    both[1].stdin.close()
    both[1].wait(timeout=PATIENCE)

    # A killed program is shown as ended, although its trace has no end.
    killed = [subprocess.Popen([patient], stdin=subprocess.PIPE, env={**os.environ, 'WEFT_TRACE': f'{name},size=1M'}) for name in ('one', 'other')]
    end = time.monotonic() + PATIENCE
    for name in 'one', 'other':
        while subprocess.run([weft, 'top', '--once', name], capture_output=True, check=False).returncode:
            if time.monotonic() > end:
                sys.exit(f'{name} records nothing')
            time.sleep(0.05)
    for program in killed:
        expect('two run', rows(['one', 'other'], 'trace')[0]['runs'], True)
        program.kill()
        program.wait(timeout=PATIENCE)
    expect('both were killed', rows(['one', 'other'], 'trace')[0]['runs'], False)
    expect('in words', ': ended; ' in run('--once', 'one', 'other') and ': ended; ' in run('--once', 'one'), True)

    # In an unmodified node, timers of two creation sites are two types.  A loop that waits for two files has neither of them as its root cause.
    if shutil.which('node'):
        for name in 'fifo-one', 'fifo-two':
            os.mkfifo(name)
        for name, code in ('later', LATER), ('once', AT_ONCE):
            subprocess.run([weft, 'record', '-o', name, '--', 'node', '-e', code], capture_output=True, check=False, timeout=PATIENCE)
        sorts = [row['sort'] for row in rows('later', 'sort')]
        expect('no two sorts have one name', sorted(set(sorts)), sorted(sorts))
        expect('timers of two places', len([name for name in sorts if name.startswith('timer "* ms')]), 2)
        wait, = [row for row in rows('later', 'waits') if 'main' in row['name']]
        expect('the end is the loop', (wait['root'] == wait['awaits'], 'loop' in wait['root_name']), (True, True))
        wait, = [row for row in rows('once', 'waits') if row['name'].startswith('timer')]
        expect('who waits for two', ('fifo-one' in wait['root_name'], wait['more']), (True, 1))
        expect('in words', '  for fs 15 "open fifo-one" and 1 more\n' in re.sub(r'fs \d+', 'fs 15', run('--once', 'once')), True)

    expect('so many rows', len(run('--once', '--rows=0', 'arp').split('longest waits')[1].split('\n\n')[0].splitlines()), 2)
    expect('no terminal', run('arp'), run('--once', 'arp'))
    expect('no number', run('--once', '--rows=x', 'arp', status=2), 'weft top: not a number: --rows=x\n')
    print('what is in flight is told')
