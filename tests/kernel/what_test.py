#!/usr/bin/env python3
"""Findings name the object of a blocked call, such as a file or a peer, and other use of the CPU, such as interrupts and garbage collections.

	what_test.py SLOW WEFT

root records scenes of slow.c as root and as an ordinary user; then the test reads traces with kernel packets that this script writes (docs/format.md).

SPDX-License-Identifier: ISC"""

import glob
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'hostile'))
import shapes
from recorded import ENV, PATIENCE, closed_to_others, expect, fail, until

MS = 1000000


def explain(weft, trace, *options):
    run = subprocess.run([weft, 'explain', '--json', *options, trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    found = [json.loads(line) for line in run.stdout.splitlines()]
    found = [line for line in (found[0] if found and isinstance(found[0], list) else found) if line.get('finding', line.get('id')) == 'stall']
    return found, run.stderr


def all_texts(stalls):
    return ' '.join(text for s in stalls for text in (s['title'], s['next'], *(line['text'] for line in s['evidence'])))


def kernel_of(weft, trace):
    """Returns the line of weft info about the kernel part; None without a kernel part, or without events."""
    out = subprocess.run([weft, 'info', '--json', trace], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=PATIENCE).stdout
    return (json.loads(out).get('kernel') or {}) if out else {}


def record(weft, slow, folder, level, scene, place, release, wanted, user):
    """Ends the wait of the scene when weft has seen the object of the wait."""
    path = os.path.join(folder, f'trace-{scene}')
    process = subprocess.Popen([weft, 'record', f'--kernel={level}', '--mode=grow', '-o', path, '--', slow, scene, place], env=ENV, cwd=folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **user)

    def is_seen():
        if process.poll() is not None:
            return True
        for name in glob.glob(os.path.join(path, '*', 'kernel-*')):
            with open(name, 'rb') as file:
                if wanted.encode() + b'\0' in file.read():
                    return True
        return 'gets no kernel events' in told_level()

    def told_level():
        metadata = glob.glob(os.path.join(path, '*', 'metadata'))
        return '' if not metadata else subprocess.run([weft, 'info', os.path.dirname(metadata[0])], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                                      timeout=PATIENCE).stdout.replace('kernel     level self', 'gets no kernel events')
    until(is_seen, f'{scene}: what it waits for')
    if process.poll() is None:
        time.sleep(0.1)  # a short wait is no stall
        release()
    out, err = process.communicate(timeout=PATIENCE)
    expect(process.returncode, 0, f'{scene}: {out} {err}')
    trace = os.path.dirname(glob.glob(os.path.join(path, '*', 'metadata'))[0])
    info = kernel_of(weft, trace)
    if info['level'] != level:
        print(f'skipped: level {level}: {info["why"]}')
        return
    said = all_texts(explain(weft, trace)[0])
    expect(f' on "{wanted}"' in said and 'probably' not in said, True, f'{scene}, level {level}: {wanted}: {said}')
    print(f'{scene}, level {level}: {re.search(r"the thread slept .*?, this time for|the thread slept .*? for", said)[0]}')


def check_pages(weft, slow, folder, left=5):
    """A callback waits for pages of a file that is mapped in its memory, until weft has seen which file it is.  On a busy machine, the callback may end before that."""
    path, go = os.path.join(folder, f'trace-pages{left}'), os.path.join(folder, f'pages-go{left}')
    process = subprocess.Popen([weft, 'record', '--kernel=all', '--mode=grow', '-o', path, '--', slow, 'pages', go], env=ENV, cwd=folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def is_seen():
        for name in glob.glob(os.path.join(path, '*', 'kernel-*')):
            with open(name, 'rb') as file:
                if b'/weft-slow-' in file.read():
                    return True
        return process.poll() is not None
    until(is_seen, 'pages: which file it is')
    with open(go, 'w', encoding='ascii'):
        pass
    out, err = process.communicate(timeout=PATIENCE)
    expect(process.returncode, 0, err)
    trace = os.path.dirname(glob.glob(os.path.join(path, '*', 'metadata'))[0])
    if kernel_of(weft, trace)['level'] != 'all':
        print(f'skipped: level all: {kernel_of(weft, trace)["why"]}')
        return
    said = all_texts(explain(weft, trace)[0])
    if 'major 0' in out or 'in a page fault' not in said:
        print(f'pages: this disk does not keep anybody waiting: {out.strip()}: {said}')
        return
    found = re.search(r'in a page fault( and elsewhere)?, probably on "[^"]*/weft-slow-[^"]*"', said)
    if not found and left:
        check_pages(weft, slow, folder, left - 1)
        return
    expect(bool(found), True, said)
    print(f'pages, level all: {found[0]}')


def check_scenes(weft, slow, folder, level, user):
    fifo = os.path.join(folder, 'fifo' + level)
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)
    record(weft, slow, folder, level, 'fifo', fifo, lambda: os.close(os.open(fifo, os.O_WRONLY)), fifo, user)
    with socket.create_server(('127.0.0.1', 0)) as listener:
        port = listener.getsockname()[1]

        def answer():
            peer, _ = listener.accept()
            peer.sendall(b'x')
            peer.close()
        record(weft, slow, folder, level, 'peer', str(port), answer, f'127.0.0.1:{port}', user)


# ---- Kernel packets that this script writes ----

def event(op, time, form, *fields):
    return struct.pack('<BI' + form, op, time & shapes.MASK, *fields)


def text(time, number, name):
    return event(8, time, 'I', number) + name + b'\0'


def syscall_at(time, tid, then, call, sure, fd, number):
    return event(9, time, 'IIBBII', tid, time - then, call, sure, fd, number)


def spent(time, tid, end, on, number, ns):
    return event(10, time, 'IIBIQ', tid, time - end, on, number, ns)


LEVEL, THREAD = shapes.LEVEL, struct.pack('<BIII', 1, 0, 1, 1) + b'main\0'
FSYNC = 71


def stalled(*said, kind=shapes.KERNEL, meanwhile=b''):
    """Promise 1 runs from 2 to 42 ms, while promise 2 is ready."""
    program = shapes.create(0, 0, 1) + shapes.create(0, 0, 2) + shapes.create(0, 0, 3) + shapes.two(shapes.AWAIT, 1000, 2, 3) + \
        shapes.two(shapes.RESOLVE, MS, 0, 3) + shapes.one(shapes.RUN, 2 * MS, 1) + meanwhile + shapes.two(shapes.READ, 42 * MS, 2, 3) + \
        shapes.two(shapes.RESOLVE, 43 * MS, 2, 2) + shapes.two(shapes.RESOLVE, 44 * MS, 0, 1)
    kernel = LEVEL + THREAD + event(3, 0, 'I', 1) + b''.join(said) + event(3, 50 * MS, 'I', 1)
    return shapes.packet(program) + shapes.packet(kernel, kind)


def slept(begin, end):
    return event(4, begin, 'IBB', 1, 1, FSYNC) + event(3, end, 'I', 1)


def check_words(weft, folder, said, *wanted, lacks=None, kind=shapes.KERNEL, noise='', meanwhile=b''):
    path = os.path.join(folder, 'made')
    with open(path, 'wb') as file:
        file.write(stalled(*said, kind=kind, meanwhile=meanwhile))
    stalls, err = explain(weft, path)
    found = all_texts(stalls)
    expect(len(stalls), 1, f'stalls: {found} {err}')
    for pattern in wanted:
        expect(pattern in found, True, f'"{pattern}" in: {found}')
    expect(lacks is None or lacks not in found, True, f'no "{lacks}" in: {found}')
    expect(noise in err and bool(noise) == bool(err), True, f'"{noise}": {err}')


def check_made(weft, folder):
    a, b = text(0, 1, b'/var/a'), text(0, 2, b'/var/b')
    # A record at the start of the call is a guess; a record during the wait is certain, and overrides earlier and later ones.
    check_words(weft, folder, [a, slept(5 * MS, 35 * MS)[:11], syscall_at(5 * MS, 1, 5 * MS, FSYNC, 0, 3, 1), event(3, 35 * MS, 'I', 1)],
                'blocked 30.0 ms in fsync, probably on "/var/a"')
    check_words(weft, folder, [a, b, slept(5 * MS, 35 * MS), syscall_at(40 * MS, 1, 20 * MS, FSYNC, 1, 3, 2), syscall_at(41 * MS, 1, 20 * MS, FSYNC, 0, 3, 1)],
                'blocked 30.0 ms in fsync on "/var/b"', 'flush the file on another thread', lacks='probably')
    # The times of many short calls are added up; a call for another file does not change the name.
    many = [slept((3 + i) * MS, (3 + i) * MS + 900000) + syscall_at((3 + i) * MS + 950000, 1, (3 + i) * MS, FSYNC, 1, 3, 1 + (i == 7)) for i in range(30)]
    check_words(weft, folder, [a, b, *many], 'blocked 27.0 ms in fsync on "/var/a", 30 times', lacks='/var/b')
    # A call that started after the sleep is not named as its cause.
    check_words(weft, folder, [a, slept(5 * MS, 35 * MS), syscall_at(40 * MS, 1, 38 * MS, FSYNC, 1, 3, 1)], 'in fsync', lacks='/var/a')
    timer = text(0, 3, b'net_rx')
    # Nested intervals count once.
    check_words(weft, folder, [timer, spent(20 * MS, 1, 20 * MS, 0, 3, 2 * MS), spent(35 * MS, 1, 34 * MS, 1, 3, 24 * MS)],
                '(interrupts 24.0 ms)', 'interrupts used the CPU of the thread 1 time from this time on: net_rx for 24.0 ms', 'move the interrupts to another CPU')
    check_words(weft, folder, [timer, spent(20 * MS, 1, 20 * MS, 0, 3, 2 * MS)], 'split the work', lacks='interrupts')
    check_words(weft, folder, [text(0, 4, b'Python'), spent(41 * MS, 1, 30 * MS, 2, 4, 25 * MS)], '(Python GC 25.0 ms)',
                'make less garbage')


    # Pauses that the program records itself, without kernel events.
    pauses = b''.join(event(shapes.PAUSE_BEGIN | shapes.INLINE, at * MS, '') + b'gc, minor\0' + event(shapes.PAUSE_END, (at + 3) * MS, '') for at in range(4, 40, 4))
    for kind in (shapes.KERNEL, 9):
        check_words(weft, folder, [], '(GC 27.0 ms)', 'make less garbage', lacks='blocked 27.0 ms', kind=kind, meanwhile=pauses,
                    noise='' if kind == shapes.KERNEL else 'a packet of an unknown class')


def check_unknown(weft, folder):
    """Packets of an unknown class and events of an unknown number do not keep weft from reading the program's events."""
    check_words(weft, folder, [], 'event loop for 40.0 ms', kind=9, noise='a packet of an unknown class')
    check_words(weft, folder, [slept(5 * MS, 35 * MS), event(77, 36 * MS, 'I', 1)], 'event loop for 40.0 ms', noise="bytes that are not a kernel record")


def check_collector(weft, folder):
    """Records a Python program whose callback makes many garbage collections and prints their duration."""
    python = '/usr/bin/python3'
    probes = subprocess.run(['readelf', '-n', python], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout if shutil.which('readelf') else ''
    if 'gc__start' not in probes or subprocess.run([python, '-c', 'import uvloop'], stderr=subprocess.DEVNULL).returncode:
        print('skipped: no Python with probes, or no uvloop')
        return
    if not os.path.exists('/sys/bus/event_source/devices/uprobe/type'):
        print('skipped: this kernel has no probes of programs')
        return
    program = """
import gc, os, time, asyncio, uvloop
gc.disable()
class Thing: pass
things = []
for i in range(300000):
    things.append(Thing())
    things[-1].own = things[-1]
def collect():
    begin = time.monotonic_ns()
    gc.collect()
    print((time.monotonic_ns() - begin) / 1e6, flush=True)
def beat(n):
    if n:
        loop.call_later(0.005, beat, n - 1)
async def main():
    global loop
    loop = asyncio.get_running_loop()
    while not os.path.exists('go'):  # until weft has seen the runtime
        gc.collect(0)
        await asyncio.sleep(0.01)
    beat(20)
    loop.call_later(0.05, collect)
    await asyncio.sleep(0.3)
uvloop.install()
asyncio.run(main())
"""
    path = os.path.join(folder, 'collector')
    process = subprocess.Popen([weft, 'record', '--kernel=all', '--mode=grow', '-o', path, '--', python, '-c', program], env=ENV, cwd=folder, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)

    levels = {}

    def is_seen():
        for name in glob.glob(os.path.join(path, '*', 'kernel-*')):
            with open(name, 'rb') as file:
                said = file.read()
            if b'Python\0' in said:
                return True
            if name not in levels and len(said) > 160:
                levels[name] = kernel_of(weft, os.path.dirname(name))
            if levels.get(name, {}).get('level', 'all') != 'all':
                return True
        return process.poll() is not None
    until(is_seen, 'a collection of Python')
    with open(os.path.join(folder, 'go'), 'w', encoding='ascii'):
        pass
    out, err = process.communicate(timeout=PATIENCE)
    expect(process.returncode, 0, err)
    for kernel in levels.values():
        if kernel.get('level', 'all') != 'all':
            print(f'skipped: level all: {kernel["why"]}')
            return
    took = float(out.split()[0])
    # If java starts other programs, these have traces, too.
    said = ' '.join(all_texts(explain(weft, os.path.dirname(name))[0]) for name in glob.glob(os.path.join(path, '*', 'metadata')))
    found = re.search(r'Python GC ([\d.]+) ms', said)
    if not found or abs(float(found[1]) - took) > took / 20 + 1:
        fail(f'{took} ms of collection: {said}')
    print(f'{took:.1f} ms of collection are told as {found[1]} ms')


def java_class():
    """Returns the bytes of Collects.class, which calls System.gc() and sleeps for 20 ms, a hundred times."""
    def u2(number):
        return struct.pack('>H', number)

    def utf(said):
        return b'\1' + u2(len(said)) + said.encode()
    pool = [utf('Collects'), b'\7' + u2(1), utf('java/lang/Object'), b'\7' + u2(3), utf('main'), utf('([Ljava/lang/String;)V'), utf('Code'),
            utf('java/lang/System'), b'\7' + u2(8), utf('gc'), utf('()V'), b'\x0c' + u2(10) + u2(11), b'\x0a' + u2(9) + u2(12),
            utf('java/lang/Thread'), b'\7' + u2(14), utf('sleep'), utf('(J)V'), b'\x0c' + u2(16) + u2(17), b'\x0a' + u2(15) + u2(18), b'\5' + struct.pack('>q', 20)]
    # bipush 100, istore_1; invokestatic gc, ldc2_w 20, invokestatic sleep, iinc 1 -1, iload_1, ifne; return
    code = bytes([0x10, 100, 0x3c, 0xb8, 0, 13, 0x14, 0, 20, 0xb8, 0, 19, 0x84, 1, 0xff, 0x1b, 0x9a, 0xff, 0xf3, 0xb1])
    body = u2(7) + struct.pack('>I', 12 + len(code)) + u2(2) + u2(2) + struct.pack('>I', len(code)) + code + u2(0) + u2(0)
    return (b'\xca\xfe\xba\xbe' + u2(0) + u2(49) + u2(len(pool) + 2) + b''.join(pool) + u2(0x21) + u2(2) + u2(4) + u2(0) + u2(0) + u2(1) +
            u2(9) + u2(5) + u2(6) + u2(1) + body + u2(0))


def check_java(weft, folder):
    """The collections of a Java program have the durations that the Java VM reports."""
    java = shutil.which('java')
    library = java and os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(java))), 'lib', 'server', 'libjvm.so')
    if not java or not os.path.exists(library) or not shutil.which('babeltrace2'):
        print('skipped: no Java, or no babeltrace2')
        return
    with open(library, 'rb') as file:
        if b'hotspot\0gc__begin\0' not in file.read():
            print('skipped: this Java was built without probes')
            return
    if not os.path.exists('/sys/bus/event_source/devices/uprobe/type'):
        print('skipped: this kernel has no probes of programs')
        return
    with open(os.path.join(folder, 'Collects.class'), 'wb') as file:
        file.write(java_class())
    path = os.path.join(folder, 'java')
    run = subprocess.run([weft, 'record', '--kernel=all', '--mode=grow', '-o', path, '--', java, '-XX:+UseSerialGC', '-Xlog:gc', '-cp', folder, 'Collects'],
                         env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    expect(run.returncode, 0, run.stderr)
    said = [float(ms) for ms in re.findall(r'Pause Full .* ([\d.]+)ms$', run.stdout, re.M)]
    expect(len(said), 100, run.stdout)
    trace = os.path.dirname(glob.glob(os.path.join(path, 'java-*', 'metadata'))[0])
    kernel = kernel_of(weft, trace)
    if kernel['level'] != 'all':
        print(f'skipped: level all: {kernel["why"]}')
        return
    read = subprocess.run(['babeltrace2', trace], stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE).stdout
    numbers = set(re.findall(r'kernel_text: .* text = (\d+), name = "Java"', read))
    told = [int(ns) / 1e6 for number, ns in re.findall(r'kernel_spent: .* on = 2, text = (\d+), ns = (\d+)', read) if number in numbers]
    # The first collections are missing, because weft has not yet found the loaded library.
    if not 10 <= len(told) <= 100 or sum(told) < 0.99 * sum(said[-len(told):]):
        fail(f'{len(told)} collections of {sum(told)} ms, not {sum(said[-len(told):])} ms')
    print(f'Java: {len(told)} of 100 collections are told, {sum(told):.1f} ms; Java says {sum(said[-len(told):]):.1f} ms')


slow, weft = map(os.path.abspath, sys.argv[1:3])
with tempfile.TemporaryDirectory(prefix='weft-what-') as folder:
    check_made(weft, folder)
    check_unknown(weft, folder)
users = [('own', {})] if os.getuid() else [('all', {}), ('own', {'user': 65534, 'group': 65534, 'extra_groups': []})]
if closed_to_others(weft):
    print(f'skipped: as another user, who cannot enter {closed_to_others(weft)}')
    users = users[:1]
for level, user in users:
    with tempfile.TemporaryDirectory(prefix='weft-what-') as folder:
        os.chmod(folder, 0o777)
        check_scenes(weft, slow, folder, level, user)
        if level == 'all':
            check_collector(weft, folder)
            check_java(weft, folder)
            check_pages(weft, slow, folder)
