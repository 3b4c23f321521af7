#!/usr/bin/env python3
"""ctf_test.py WEFT WEFT-CTF ARP [PROGRAM]: traces of other tracers, alone and beside weft's own: written by mkctf.py, and recorded by
LTTng-UST of PROGRAM where LTTng is there.  Damaged ones end with one line.  SPDX-License-Identifier: ISC"""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import mkctf

weft, module, arp = map(os.path.abspath, sys.argv[1:4])
program = os.path.abspath(sys.argv[4]) if len(sys.argv) > 4 else None
folder = tempfile.mkdtemp(prefix='ctf-')
os.chdir(folder)
environ = {**os.environ, 'HOME': folder}


def run(*words, status=(0,), command=weft):
    done = subprocess.run([command, *words], capture_output=True, check=False, timeout=120, env=environ)
    assert done.returncode in status, (words, done)
    assert b'Sanitizer' not in done.stderr, done
    return done


def dump(*traces):
    return [json.loads(line) for line in run('dump', '--json', '--no-simplify', *traces).stdout.splitlines()]


def events(*traces):
    return [json.loads(line) for line in run('events', '--json', *traces).stdout.splitlines()]


# ---- Kernel events ----


def make_kernel(seed):
    """Creates two CPUs that switch between OS threads; returns the expected intervals and notes of each OS thread."""
    rng = random.Random(seed)
    names = {tid: f'thread-{tid}' for tid in range(100, 100 + rng.randrange(2, 9))}
    cpus, ran, notes = [[], []], {}, []
    has, since, now = [0, 0], [0, 0], 1000
    for _ in range(rng.randrange(20, 400)):
        now += rng.randrange(1, 2000)
        cpu = rng.randrange(2)
        what = rng.choice(['switch', 'switch', 'irq', 'block'])
        if what == 'switch':
            new = rng.choice([0, *(tid for tid in names if tid not in has)])
            if new == has[cpu]:
                continue
            if has[cpu]:
                ran.setdefault(has[cpu], []).append([since[cpu], now])
            cpus[cpu].append((now, 'switch', (names.get(has[cpu], 'swapper'), has[cpu]), (names.get(new, 'swapper'), new)))
            has[cpu], since[cpu] = new, now
        elif what == 'irq':
            number = rng.randrange(200)
            cpus[cpu].append((now, 'irq', number, 'virtio\u00e9'))
            notes.append((now, has[cpu] or f'CPU {cpu}', f'irq_handler_entry: irq={number}, name="virtio\u00e9"'))
        else:
            sectors, how = [rng.randrange(1 << 32) for _ in range(rng.choice([0, 1, 3, 40]))], rng.randrange(4)
            cpus[cpu].append((now, 'block', sectors, how))
            notes.append((now, has[cpu] or f'CPU {cpu}', sectors))
    for cpu in range(2):
        if has[cpu]:
            ran.setdefault(has[cpu], []).append([since[cpu], now])
    first = min(events[0][0] for events in cpus if events)
    return cpus, {tid: [[a - first, b - first] for a, b in list_] for tid, list_ in ran.items()}, [(at - first, who, what) for at, who, what in notes]


def merged(stretches):
    """Drops empty intervals, and joins adjacent ones."""
    out = []
    for begin, end in sorted(stretches):
        if out and out[-1][1] == begin:
            out[-1][1] = end
        elif begin < end:
            out.append([begin, end])
    return out


def kernel_events_become_runs_and_notes():
    for seed in range(20):
        cpus, ran, notes = make_kernel(seed)
        mkctf.write(f'kernel-{seed}', cpus)
        told = dump(f'kernel-{seed}')
        promises = {d['promise']: d for d in told if d.get('promise', -1) != -1}
        label = {number: d['labels'][0][1] for number, d in promises.items()}
        assert all(d['kind'] == 'thread' and d['end'] == 'resolved' for d in promises.values()), promises
        by_name = {label[number]: d for number, d in promises.items()}
        for tid, stretches in ran.items():
            assert merged(by_name[f'thread-{tid}']['running']) == merged(stretches), (seed, tid)
        said = [e for e in events(f'kernel-{seed}') if e['op'] == 'note']
        assert len(said) == len(notes), (seed, len(said), len(notes))
        for (at, who, what), e in zip(sorted(notes, key=lambda n: n[0]), sorted(said, key=lambda e: e['time_ns'])):
            name = who if isinstance(who, str) else f'thread-{who}'
            assert (e['time_ns'], label[e['promise']]) == (at, name), (seed, at, e)
            if isinstance(what, str):
                assert e['text'] == what, e
            else:
                assert e['text'].startswith(f'block_rq_issue: length={512 * len(what)}, dev={{major=8, minor=1}}, '), e
                assert len(e['text'].encode()) < 256 and ('24 more' in e['text'] or e['text'].endswith('...') or len(what) < 40), e


def discarded_events_are_reported():
    mkctf.write('discarded', [[(5, 'irq', 1, 'a'), (6, 'irq', 2, 'b')]], discarded=12)
    texts = [e['text'] for e in events('discarded') if e['op'] == 'note']
    assert any(text.startswith('12 events are missing') for text in texts), texts


def foreign_trace_joins_a_weft_trace():
    subprocess.run([arp, 'good'], env={**environ, 'WEFT_TRACE': 'own'}, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    begin = int(json.loads(run('info', '--json', 'own').stdout.splitlines()[0])['utc_ns'])
    for name, env in (('told', (('hostname', socket.gethostname()),)), ('untold', ())):
        mkctf.write(name, [[(1000000, 'switch', ('swapper', 0), ('x', 77)), (2000000, 'irq', 3, 'disk'), (3000000, 'switch', ('x', 77), ('swapper', 0))]], env=env, offset_ns=begin)
        told = dump('own', name)
        alone = dump('own')
        x = next(d for d in told if d.get('labels') and d['labels'][0][1] == 'x')
        assert merged(x['running']) == [[1000000, 3000000]], x
        assert len(told) == len(alone) + 1, name
        run('render', 'own', name, '-o', f'{name}.png')
        assert os.path.getsize(f'{name}.png') > 1000
    mkctf.write('elsewhere', [[(1, 'irq', 3, 'disk')]], env=(('hostname', 'another'),), offset_ns=begin)
    assert b'on another host' in run('dump', 'own', 'elsewhere', status=(2,)).stderr
    mkctf.write('timeless', [[(1, 'irq', 3, 'disk')]], env=(), absolute=False)
    assert b'does not record the wall-clock time' in run('dump', 'own', 'timeless', status=(2,)).stderr


# ---- Errors are one line ----


def fails(trace, *words):
    done = run('info', trace, status=(2,))
    lines = done.stderr.decode(errors='replace').splitlines()
    assert len(lines) == 1 and lines[0].startswith(f'weft: {trace}: ') and done.stdout == b'', done
    assert all(word in lines[0] for word in words), lines
    return lines[0]


def damage_is_reported_in_one_line():
    cpus = make_kernel(1)[0]
    mkctf.write('whole', cpus)
    shutil.copytree('whole', 'broken')
    with open('broken/metadata', 'a', encoding='utf-8') as file:
        file.write('event { name = ')
    fails('broken')
    mkctf.write('empty', [])
    fails('empty', 'no events')
    rng = random.Random(5)
    files = {name: open(f'whole/{name}', 'rb').read() for name in os.listdir('whole')}
    for turn in range(60):
        shutil.rmtree('damaged', ignore_errors=True)
        os.mkdir('damaged')
        victim = rng.choice(sorted(files))
        for name, data in files.items():
            data = bytearray(data)
            if name == victim and turn % 3 == 0:
                del data[rng.randrange(20, len(data)):]
            elif name == victim:
                for _ in range(rng.choice([1, 3, 30])):
                    data[rng.randrange(20, len(data))] = rng.randrange(256)
            with open(f'damaged/{name}', 'wb') as file:
                file.write(data)
        done = run('info', 'damaged', status=(0, 2))
        assert len(done.stderr.splitlines()) == (1 if done.returncode else 0) or b'skipped' in done.stderr, (turn, done)


def missing_weft_ctf_is_reported_in_one_line():
    os.mkdir('bin')
    shutil.copy(weft, 'bin/weft')
    done = run('info', 'whole', command='bin/weft', status=(2,))
    assert done.stderr == b"weft: whole: CTF of another tracer; install weft-ctf (package weft-ctf) to read it\n", done


# ---- LTTng-UST ----


def lttng(*words):
    return subprocess.run(['lttng', *words], capture_output=True, text=True, check=False, timeout=60, env=environ)


def lttng_recording_is_read():
    if not program or not shutil.which('lttng') or not shutil.which('lttng-sessiond') or not shutil.which('babeltrace2'):
        return 'LTTng is not here'
    daemon = subprocess.Popen(['lttng-sessiond', '--no-kernel'], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while lttng('list').returncode != 0 and time.monotonic() < end and daemon.poll() is None:
            time.sleep(0.2)
        if daemon.poll() is not None or lttng('create', 'weft-test', f'--output={folder}/lttng').returncode != 0:
            return 'LTTng does not start here'
        for words in (['enable-event', '-u', 'weft_shop:*'], ['add-context', '-u', '-t', 'vtid', '-t', 'procname'], ['start']):
            done = lttng(*words)
            assert done.returncode == 0, done
        subprocess.run([program], env={**environ, 'LTTNG_UST_REGISTER_TIMEOUT': '-1', 'WEFT_TRACE': 'shop'}, check=True, timeout=120)
        lttng('stop')
        lttng('destroy')
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(60)
    theirs = subprocess.run(['babeltrace2', 'lttng'], capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    ours = [e for e in events('lttng') if e['op'] == 'note']
    assert len(theirs) == len(ours) == 40, (len(theirs), len(ours))
    assert [e['text'] for e in ours] == [f'weft_shop:sold: id={i}, what="tea"' for i in range(40)], ours
    told = dump('shop', 'lttng')
    assert sum(d.get('kind') == 'thread' for d in told) == 1
    # Each sale is recorded within a promise of the same number, which is pending at that time.
    sales = {d['labels'][0][1]: d for d in told if d.get('labels') and d['labels'][0][1].startswith('sale ')}
    notes = [at for d in told if d.get('kind') == 'thread' for at, text in d['labels'] if text.startswith('weft_shop')]
    near_ns = 10000000  # possible difference of two wall clock readings on a busy machine
    inside = sum(sales[f'sale {i}']['start_ns'] - near_ns <= at <= sales[f'sale {i}']['end_ns'] + near_ns for i, at in enumerate(notes))
    assert inside == 40, inside
    return '40 events of LTTng-UST stand beside the promises that they belong to'


kernel_events_become_runs_and_notes()
discarded_events_are_reported()
foreign_trace_joins_a_weft_trace()
damage_is_reported_in_one_line()
missing_weft_ctf_is_reported_in_one_line()
print(lttng_recording_is_read())
shutil.rmtree(folder)
