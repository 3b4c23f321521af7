#!/usr/bin/env python3
"""watch_test.py WEFT PATIENT LEAK: weft watch saves the trace of each problem once, even if it is killed or its disk is full.

SPDX-License-Identifier: ISC"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from waiting import PATIENCE, dies_with_test, expect, listed, until

weft, patient, leak = map(os.path.abspath, sys.argv[1:])


def run(*command, status=0):
    got = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    if got.returncode != status:
        sys.exit(f'{command}: status {got.returncode}\n{got.stdout}{got.stderr}')
    return got.stdout if status != 2 else got.stderr


def start_process(*command, **more):
    return subprocess.Popen(command, preexec_fn=dies_with_test, text=True, **more)


def start(trace, *faults, size='4M'):
    return start_process(patient, *faults, stdin=subprocess.PIPE, env={**os.environ, 'WEFT_TRACE': f'{trace},size={size}'})


def watch(*words):
    """Starts a watcher that also reports a single event on a busy machine, where a refresh takes long and a stall is uncertain."""
    return start_process(weft, 'watch', *words, 'findings=0', 'findings(uncertain)=0', '--patience=1s', '--window=600s', stdout=subprocess.PIPE)


def end(programs):
    for program in programs:
        program.stdin.close()
        program.wait(timeout=PATIENCE)


def weft_json(verb, trace):
    got = subprocess.run([weft, verb, '--json', trace], capture_output=True, text=True, check=False)
    return [json.loads(line) for line in got.stdout.splitlines()]


def read(path):
    if not os.path.exists(path):
        return ''
    with open(path, encoding='utf-8') as file:
        return file.read()


def keep_the_newest():
    """weft watch deletes the oldest copies to make space, and no other file in the folder."""
    def save(*options):
        before = listed('few')
        save.count += 1
        run(weft, 'watch', 'all/fine1', f'count<{save.count}', '--save=few', '--per-hour=100', *options, status=1)
        fresh, = set(listed('few')) - set(before)
        # The modification time of its file gives the age of a copy; times a second apart order the copies.
        os.utime('few/' + fresh, (save.time, save.time))
        save.time += 1
        return fresh

    save.count, save.time = 0, int(time.time()) - 1000
    os.mkdir('few')
    os.mkdir('few/own-00000000-folder')
    with open('few/own.tar.zst', 'w', encoding='utf-8') as file:
        file.write('of the user')
    own = listed('few')
    copies = [save() for _ in range(4)]
    copies.append(save('--keep=3'))
    expect('the newest three', listed('few'), sorted(own + copies[-3:]))
    size = max(os.path.getsize('few/' + copy) for copy in copies[-3:])
    copies.append(save(f'--most={size * 5 // 2}'))
    expect('what fits into the budget', listed('few'), sorted(own + copies[-2:]))
    copies.append(save('--most=1K'))
    expect('the newest one stays', listed('few'), sorted(own + copies[-1:]))
    expect('it is read as it is', [event['text'] for event in weft_json('events', 'few/' + copies[-1]) if event.get('what') == 'snapshot'][-1].split(' is')[0], f'count<{save.count}')
    # Copies that are too old are deleted, too; a partial copy of a killed watcher is deleted unless another watcher may be writing it.
    save.time = int(time.time()) - 900000
    old = [save(), save()]
    for copy, age in (copies[-1], 900000), (old[0] + '.1.tmp', 7200), (old[0] + '.2.tmp', 60):
        with open('few/' + copy, 'a', encoding='utf-8'):
            pass
        os.utime('few/' + copy, (time.time() - age,) * 2)
    save.time = int(time.time())
    fresh = save('--keep-for=7d')
    expect('what is younger than a week', listed('few'), sorted([*own, fresh]))
    expect('what may still be written', [name for name in os.listdir('few') if name.endswith('.tmp')], [old[0] + '.2.tmp'])
    # A damaged copy is read up to the damage, or refused.
    with open('few/' + fresh, 'rb') as file:
        packed = file.read()
    for name, content in ('half', packed[:len(packed) // 2]), ('broken', packed[:300] + bytes(100) + packed[400:]):
        with open(name, 'wb') as file:
            file.write(content)
        got = subprocess.run([weft, 'info', name], capture_output=True, text=True, check=False, timeout=PATIENCE)
        expect(f'weft info of {name}: {got.stderr}', got.returncode in (0, 2), True)
    for options in ['--keep=0'], ['--keep-for=week'], ['--tidy=1w'], ['--cpu=0%']:
        run(weft, 'watch', 'all/fine1', *options, status=2)


def remove_ended_rings():
    os.mkdir('tidy')
    with start('tidy/ended') as ended:
        ended.stdin.close()
    with start('tidy/whole', size='4M,mode=grow') as whole:
        whole.stdin.close()
    running = start('tidy/running')
    until('it records', lambda: os.path.exists('tidy/running/metadata'))
    watcher = start_process(weft, 'watch', 'tidy', 'count<1', '--save=tidied', '--tidy=0s', stdout=subprocess.PIPE)
    until('what has ended is removed', lambda: not os.path.exists('tidy/ended'))
    watcher.send_signal(signal.SIGTERM)
    watcher.communicate(timeout=PATIENCE)
    expect('what stays', listed('tidy'), ['running', 'whole'])
    expect('what was removed has a copy', [name for name in listed('tidied') if name.startswith('ended-')] != [], True)
    end([running])


FAULTS = {'stall': 'stall', 'lost': 'hang', 'spin': 'spin', 'snapshot': None}

with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    # A watcher of many processes in one folder saves no copy twice after it was killed and started again.
    os.mkdir('all')
    programs = [start(f'all/fine{i}') for i in range(6)]
    watcher = watch('all', '--save=kept', '--exec=cat >>told')
    programs += [start('all/' + fault, fault) for fault in FAULTS]
    until('four are kept', lambda: len(listed('kept')) >= 4 and len(read('told').splitlines()) >= 4)
    watcher.kill()
    watcher.communicate()
    kept = listed('kept')
    expect('whose traces are kept', sorted(name.split('-')[0] for name in kept), sorted(FAULTS))
    again = watch('all', '--save=kept', '--exec=cat >>told', '--every=1ms')
    late = start('all/late', 'snapshot')
    until('what comes later is kept, too', lambda: len(listed('kept')) >= 5)
    end([*programs, late])
    again.send_signal(signal.SIGTERM)
    expect('what the second one says', len(again.communicate(timeout=PATIENCE)[0].splitlines()), 1)
    expect('its exit status', again.returncode, 1)
    expect('once each', sorted(name.split('-')[0] for name in listed('kept')), sorted([*FAULTS, 'late']))
    expect('only a user may read it', oct(os.stat('kept').st_mode & 0o777), '0o700')

    # Each server has a session of its own in one folder, with the copies beside the sessions; a watcher that starts before the folder exists says so.
    os.mkdir('sessions')
    with open('early', 'w', encoding='utf-8') as out:
        watcher = start_process(weft, 'watch', 'sessions', 'findings=0', 'findings(uncertain)=0', '--save=sessions/kept', '--patience=1s', '--window=600s', '--every=1ms', stdout=subprocess.PIPE, stderr=out)
    until('nothing is there yet', lambda: read('early') == 'weft: sessions: no program records here yet\n')
    for name in 'one', 'two':
        os.mkdir('sessions/' + name)
    programs = [start('sessions/one/stalls', 'stall'), start('sessions/two/fine')]
    until('what one of two sessions has is kept', lambda: listed('sessions/kept'))
    programs.append(start('sessions/two/late', 'snapshot'))
    until('what comes later is kept, too', lambda: len(listed('sessions/kept')) >= 2)
    end(programs)
    watcher.send_signal(signal.SIGTERM)
    expect('once each, and none of what was kept', (len(watcher.communicate(timeout=PATIENCE)[0].splitlines()), len(listed('sessions/kept'))), (2, 2))

    # The copy contains the cause of the problem, and the reason for the copy.
    for name in listed('kept'):
        fault = 'snapshot' if name.startswith('late') else name.split('-')[0]
        reason = [event['text'] for event in weft_json('events', 'kept/' + name) if event.get('what') == 'snapshot'][-1]
        if FAULTS[fault]:
            expect(f'what is found in {name}', FAULTS[fault] in {finding['finding'] for finding in weft_json('explain', 'kept/' + name)}, True)
            expect('the reason', reason.split(':')[0], FAULTS[fault])
        else:
            expect('the reason', reason, 'the queue is full')
        # weft explain of a copy prints the reason for the copy first, and no crash for the run at its end, since the program runs on.
        first, *others = weft_json('explain', 'kept/' + name)
        expect(f'what {name} begins with', (first['finding'], first['severity'], first['title'].endswith(' UTC because ' + reason)), ('saved', 'information', True))
        expect(f'when {name} was kept', re.match(r'this copy was saved at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC', first['title']) is not None, True)
        expect(f'who ran on in {name}', [line['text'] for line in first['evidence'] if line['text'].endswith('the copy is made, and the program continues: promises that are pending in the copy may have ended since')] != [], True)
        expect(f'who died in {name}', [finding for finding in others if finding['finding'] == 'crash'], [])
        if fault == 'spin':
            expect('who ran still', [line['text'].split(' (')[0] for line in first['evidence'] if line['text'].endswith(' starts to run, and still ran when the copy was made')], ['handle 102 "busy"'])
        said = run(weft, 'info', 'kept/' + name)
        expect(f'weft info of {name}', ('\nstate      not finished: the program still ran when this copy was made\n' in said, '\nsaved for  ' + reason.replace('"', '\\"') + '\n' in said), (True, True))
    told = [json.loads(line) for line in read('told').splitlines()]
    expect('the command was told', sorted(os.path.basename(one['saved']) for one in told), listed('kept'))
    expect('of what', {one['kind'] for one in told}, {'finding', 'snapshot'})

    # If all programs have ended, weft watch reads their traces once, and exits.
    expect('again', run(weft, 'watch', *('all/' + fault for fault in FAULTS), '--save=kept'), '')
    expect('rules that hold', run(weft, 'watch', 'all/fine1', 'count(request)>9', 'failed=0', '--save=kept'), '')
    said = run(weft, 'watch', 'all/fine1', 'count(request)<10', 'pending=0', '--save=rules', status=1)
    expect('a broken rule', (said.startswith('all/fine1: count(request)<10 is broken: '), len(listed('rules'))), (True, 1))
    # The name of the folder may end with a slash, or be so long that no name fits behind it.
    os.mkdir('long')
    os.rename('all/fine2', 'long/' + 'n' * 240)
    for trace, begin in (('all/fine1//', 'fine1-'), ('long/' + 'n' * 240, 'n' * 200 + '-')):
        run(weft, 'watch', trace, 'count(request)<10', '--save=named', status=1)
        copy, = [name for name in listed('named') if name.startswith(begin)]
        expect('who may read the copy', oct(os.stat(f'named/{copy}').st_mode & 0o777), '0o600')
        run(weft, 'watch', trace, 'count(request)<11', '--save=plain', '--plain', status=1)
        copy, = [name for name in listed('plain') if name.startswith(begin)]
        modes = {oct(os.stat(path).st_mode & 0o777) for path in (f'plain/{copy}', *(f'plain/{copy}/{file}' for file in listed(f'plain/{copy}')))}
        expect('who may read the directory', modes, {'0o700', '0o600'})
    # weft watch reports a copy that it cannot save as an error.
    deep = os.path.join(*['d' * 200] * 20, 'd' * 50)
    at = os.getcwd()
    for part in deep.split('/'):
        os.mkdir(part)
        os.chdir(part)
    os.chdir(at)
    run(weft, 'watch', 'all/fine1', 'count(request)<10', '--save=' + deep, status=2)
    # The trace of an ended program has no note that the program continued; a trace with a snapshot request is no copy yet.
    ended = weft_json('explain', 'rules/' + listed('rules')[0])[0]
    expect('why that was kept', (ended['finding'], ended['title'].split(' UTC because ')[1], ended['evidence']), ('saved', said.removeprefix('all/fine1: ').split('; saved as ')[0], []))
    said = subprocess.run([weft, 'explain', 'rules/' + listed('rules')[0]], capture_output=True, text=True, check=True)
    expect('and no doubt', (said.stdout.startswith('saved: this copy was saved at '), said.stderr), (True, ''))
    expect('what is no copy', [finding['finding'] for finding in weft_json('explain', 'all/late') if finding['finding'] == 'saved'], [])
    subprocess.run([leak], env={**os.environ, 'WEFT_TRACE': 'leaky'}, check=False, capture_output=True, timeout=PATIENCE)
    said = run(weft, 'watch', 'leaky', '--json', status=1)
    expect('a leak', [json.loads(line)['why'].split(':')[0] for line in said.splitlines()], ['leak'])

    # A rule also counts events that were overwritten since: the ring has space for less than 1000 requests.
    program = start('round', size='64K')
    with open('counted', 'w', encoding='utf-8') as out:
        watcher = start_process(weft, 'watch', 'round', 'count(request)<2000', '--every=50ms', stdout=out)
    until('all requests are counted', lambda: read('counted'))
    expect('what is counted', re.fullmatch(r'round: count\(request\)<2000 is broken: 2\d{3} \(of 2\d{3} promises in [\d.]+ s\)\n', read('counted')) is not None, True)
    end([program])
    expect('and all of it once', (watcher.wait(timeout=PATIENCE), len(read('counted').splitlines())), (1, 1))

    # A snapshot request is noticed although many events follow it at once.
    watcher = watch('large', '--save=large-kept', '--every=100ms')
    program = start('large', 'snapshot', 'burst', size='64M')
    until('a copy is kept that was asked for before a burst', lambda: listed('large-kept'))
    end([program])
    expect('once', len(watcher.communicate(timeout=PATIENCE)[0].splitlines()), 1)

    # --per-hour limits the number of copies; other options limit the copies that are kept.
    limited = subprocess.run([weft, 'watch', 'all/fine1', 'count<1', 'count<2', '--save=often', '--per-hour=1'], capture_output=True, text=True, check=False)
    expect('one an hour', (len(listed('often')), len(limited.stdout.splitlines()), 'weft: often: 1 copies were saved in this hour' in limited.stderr), (1, 2, True))
    keep_the_newest()
    remove_ended_rings()
    expect('no place', run(weft, 'watch', 'all/fine1', '--save=/dev/null/x', status=2), 'weft: /dev/null/x: Not a directory\n')
    expect('no rule', run(weft, 'watch', 'all/fine1', 'stall<', status=2), 'weft watch: stall<: the rule must end with a time, such as 10ms\n')

    # If the disk is full, weft watch says so, leaves no partial copy, runs on, and exits with an error status in the end.
    script = f'mkdir full && mount -t tmpfs -o size=12k none full && {weft} watch all/fine1 "count<1" --save=full/kept; echo $?; ls full/kept'
    full = subprocess.run(['unshare', '-rm', 'sh', '-c', script], capture_output=True, text=True, check=False)
    if 'mount' in full.stderr or 'unshare' in full.stderr:
        print('no disk could be made that is full')
    else:
        expect('a full disk', (full.stdout, 'No space left on device' in full.stderr), ('2\n', True))
    print('kept once each, with the cause and the reason')
