#!/usr/bin/env python3
"""follow_test.py WEFT PATIENT: while a program runs, weft waits --follow and weft check --follow print the same as for its whole trace.

SPDX-License-Identifier: ISC"""
import json
import os
import signal
import subprocess
import sys
import tempfile

from waiting import PATIENCE, expect, until

weft, patient = map(os.path.abspath, sys.argv[1:])


def read(path):
    with open(path, encoding='utf-8') as file:
        return [json.loads(line) for line in file.readlines() if line.endswith('\n')]


def start(trace, *faults):
    program = subprocess.Popen([patient, *faults], stdin=subprocess.PIPE, env={**os.environ, 'WEFT_TRACE': trace})
    until('it records', lambda: os.path.exists(os.path.join(trace.partition(',')[0], 'metadata')))
    return program


def follow(out, *words):
    with open(out, 'w', encoding='utf-8') as file:
        return subprocess.Popen([weft, *words, '--follow', '--json'], stdout=file)


def end(program):
    program.stdin.close()
    program.wait(timeout=PATIENCE)


def run_weft_json(*words):
    got = subprocess.run([weft, *words, '--json'], capture_output=True, text=True, check=False, timeout=PATIENCE)
    return [json.loads(line) for line in got.stdout.splitlines()]


RULES = ['count(request)<1500', 'count>0', 'failed=0', 'max(request)<3600s', 'p99(request)<3600s', 'p50(delayed)<1ns', 'stall<1ns', 'pending=0', 'counter(none)=0',
         'count(request)<1/1s', 'failed<1%/1s', 'pending(request)<5/1s', 'stall<200ms/1s', 'p99(request)<3600s/1s', 'counter(none)=0/1s', 'findings(leak)=0/1s']

with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    # The ring has space for less than 1000 requests, and wraps.
    program = start('round,size=64K', 'lost')
    waits = follow('waits', 'waits', 'round')
    rules = follow('rules', 'check', 'round', 'count(request)<1500')
    until('the wait is told', lambda: [line for line in read('waits') if line.get('name', '').endswith('"sleeper"')])
    until('all requests are counted', lambda: [line for line in read('rules') if line['outcome'] == 'broken'])
    end(program)
    expect('exit statuses', (waits.wait(timeout=PATIENCE), rules.wait(timeout=PATIENCE)), (0, 1))
    expect('who waits for whom, once', [line['awaited'].split()[2] for line in read('waits') if 'awaits' in line], ['"go"'])
    expect('which the ring has forgotten', run_weft_json('waits', 'round'), [])
    expect('the rule', [line['outcome'] for line in read('rules')], ['ok', 'broken'])

    # When the program of a growing trace ends, each rule has the value that weft check finds in the whole trace.
    program = start('grown,mode=grow', 'stall')
    rules = follow('all', 'check', 'grown', *RULES)
    until('its stall is told', lambda: [line for line in read('all') if line['rule'].startswith('p50') and line['outcome'] == 'broken'])
    end(program)
    expect('the exit status', rules.wait(timeout=PATIENCE), 1)
    last = {line['rule']: (line['outcome'], line.get('times_broken')) for line in read('all')}
    expect('outcomes', last, {line['rule']: (line['outcome'], line.get('times_broken')) for line in run_weft_json('check', 'grown', *RULES)})
    expect('the stall, in its window', last['stall<200ms/1s'][0], 'broken')

    # A session has two processes with wrapping rings, one of which starts late: --follow reports the waits of each process, and adds up their counts.
    os.mkdir('session')
    first = start('session/first-1,size=64K', 'lost')
    waits = follow('waits', 'waits', 'session')
    by_name = follow('named', 'waits', str(first.pid))
    rules = follow('rules', 'check', 'session', 'count(request)<2000', 'count(sleeper)<2')
    until('the first wait is told', lambda: 'awaited' in str(read('waits')) and 'awaited' in str(read('named')))
    until('its ring has forgotten that', lambda: not run_weft_json('waits', 'session'))
    second = start('session/second-2,size=64K', 'lost')
    until('both wait', lambda: [line for line in read('waits') if line.get('waits') == 2])
    until('all requests are counted', lambda: len([line for line in read('rules') if line['outcome'] == 'broken']) == 2)
    end(first)
    end(second)
    expect('exit statuses of several', [each.wait(timeout=PATIENCE) for each in (waits, by_name, rules)], [0, 0, 1])
    expect('the rules', sorted((line['rule'], line['outcome']) for line in read('rules')), [(rule, word) for rule in ('count(request)<2000', 'count(sleeper)<2') for word in ('broken', 'ok')])
    expect('by its process', [line['awaited'].split()[2] for line in read('named') if 'awaits' in line], ['"go"'])
    two = [['stall', 'lost'], ['lost']]
    for number, faults in enumerate(two):
        two[number] = start(f'grown-{number},mode=grow', *faults)
    rules = follow('all', 'check', 'grown-0', 'grown-1', *RULES)
    until('the stall of one is told', lambda: [line for line in read('all') if line['rule'].startswith('p50') and line['outcome'] == 'broken'])
    for program in two:
        end(program)
    expect('the exit status of two', rules.wait(timeout=PATIENCE), 1)
    expect('outcomes of two', {line['rule']: line['outcome'] for line in read('all')}, {line['rule']: line['outcome'] for line in run_weft_json('check', 'grown-0', 'grown-1', *RULES)})

    # With --follow, the trace of an ended process is read once, and a trace that cannot be followed is reported.
    expect('one that has ended', {line['rule']: (line['outcome'], line.get('times_broken')) for line in run_weft_json('check', '--follow', 'grown', *RULES)}, last)
    for words, message in (['waits', '--follow', 'nothing'], 'weft: nothing: No such file or directory\n'), (['waits', '--follow', 'grown', 'nothing'], 'weft: nothing: No such file or directory\n'), \
            (['waits', '--follow', '--dot', 'grown'], 'weft waits: --follow cannot be combined with --at or --dot\n'):
        got = subprocess.run([weft, *words], capture_output=True, text=True, check=False, timeout=PATIENCE)
        expect('what is said', (got.returncode, got.stderr), (2, message))

    # A running program is read up to now, a killed one up to its death.  If no event was recorded for long before that time, the hang is certain.
    command = subprocess.Popen([weft, 'record', '-o', 'killed', '--', 'sh', '-c', f'echo $$ > pid; exec {patient} lost'], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    def certain_hangs():
        return [line['title'] for line in run_weft_json('explain', 'killed') if line['finding'] == 'hang' and line['sure'] and line['severity'] == 'alarm']
    until('the hang is certain while it lives', certain_hangs)
    with open('pid', encoding='utf-8') as file:
        os.kill(int(file.read()), signal.SIGKILL)
    command.wait(timeout=PATIENCE)
    expect('the hang is certain when it is dead', len(certain_hangs()), 1)
    expect('weft check agrees', [line['outcome'] for line in run_weft_json('check', 'killed', 'findings=0')], ['broken'])
    print('followed and read anew, they say the same')
