#!/usr/bin/env python3
"""QEMU's programs, as Debian installs them: what their coroutines and requests become.

	qemu_test.py NAME WEFT BOOT	the names are at the end; BOOT is the source of a boot sector

SPDX-License-Identifier: ISC"""

import collections
import os
import platform
import random
import re
import struct
import subprocess
import sys
import tempfile

from recorded import ENV, PATIENCE, Recording, expect, fail, need

# A busy machine delays everything: only delays that no healthy run has are alarms here.
LATE = '2s'
KIB, MIB = 1024, 1024 * 1024
UNITS = {'B': 1, 'KiB': KIB, 'MiB': MIB, 'GiB': 1024 * MIB}


def requests(trace):
    """Returns, by verb and file, [(offset, bytes, promise)], in the order of their starts."""
    found = collections.defaultdict(list)
    for promise in trace.promises('request'):
        match = re.fullmatch(r'(\w+) (\d+) (\w+) at (\d+) (\w+) of (.*)', promise['labels'][0][1])
        if match:
            verb, size, unit, offset, offset_unit, name = match.groups()
            found[verb, name].append((int(offset) * UNITS[offset_unit], int(size) * UNITS[unit], promise))
    return found


def healthy(trace):
    expect(trace.alarms(LATE), [], f'alarms in {trace.path}')
    expect(trace.lost(), 0, f'events lost in {trace.path}')
    copies = trace.ask('info', '--json')[0]['runtimes']
    if not re.search(r'QEMU [^:]*: (\d+) of \1 calls', copies):
        fail(f'not all was taken: {copies}')
    expect({p['end'] for p in trace.promises('request')}, {'resolved'}, 'how requests end')


def awaits(trace):
    """Returns all awaits of the trace."""
    return {(event['promise'], event['input']) for event in trace.ask('events', '--json') if event['op'] == 'await'}


def convert(weft, folder, _):
    """An image is converted to another format and back, and is equal then."""
    program, source = need('qemu-img'), os.path.join(folder, 'source.raw')
    there, back = os.path.join(folder, 'there.qcow2'), os.path.join(folder, 'back.raw')
    content = random.Random(1).randbytes(16 * MIB)
    with open(source, 'wb') as file:
        file.write(content)
    recording = Recording(weft, os.path.join(folder, 'traces'), [program, 'convert', '-O', 'qcow2', source, there])
    expect((recording.status, recording.out), (0, b''), 'what qemu-img says')
    subprocess.run([program, 'convert', '-O', 'raw', there, back], env=ENV, timeout=PATIENCE, check=True)
    with open(back, 'rb') as file:
        expect(file.read() == content, True, 'the image is what it was')
    trace = recording.trace('qemu-img')
    healthy(trace)
    reads = requests(trace)['read', 'source.raw']
    expect(sorted((offset, size) for offset, size, _ in reads), [(i * 2 * MIB, 2 * MIB) for i in range(8)], 'what is read')
    coroutines = {p['promise'] for p in trace.promises('coroutine')}
    if len(coroutines) < 8 or any(p['end'] != 'resolved' for p in trace.promises('coroutine')):
        fail(f'coroutines: {trace.promises("coroutine")}')
    edges = awaits(trace)
    work = {p['promise']: p for p in trace.promises('work')}
    for _, _, read in reads:
        if read['created_by'] not in coroutines or (read['created_by'], read['promise']) not in edges:
            fail(f'no coroutine awaits {read}')
        inner = [b for a, b in edges if a == read['promise'] and b in work]
        # The pool's OS thread works while the request waits.
        if not inner or not work[inner[0]]['running'] or work[inner[0]]['end_ns'] > read['end_ns']:
            fail(f'nobody works for {read}')


def machine(weft, folder, boot):
    """A machine whose boot sector uses a virtio disk on its own OS thread, and an IDE disk."""
    program = need('qemu-system-x86_64')
    if platform.machine() != 'x86_64':
        print('SKIPPED: the boot sector is for an assembler of x86-64')
        sys.exit(77)
    sector = os.path.join(folder, 'boot')
    subprocess.run([need('as'), '--32', '-o', sector + '.o', boot], check=True)
    subprocess.run([need('ld'), '-m', 'elf_i386', '-Ttext', '0x7c00', '--oformat', 'binary', '-o', sector, sector + '.o'], check=True)
    with open(sector, 'rb') as file:
        sector = file.read()
    disks, total, pieces = {}, 0, 24
    for name in 'first', 'second':
        content = random.Random(name).randbytes(pieces * 4 * KIB)
        total += sum(struct.unpack(f'<{len(content) // 4}I', content))
        disks[name] = sector + content + bytes(MIB)
    said = ''.join(chr(ord('a') + (total >> shift & 15)) for shift in range(28, -4, -4)) + '\n'

    def command():
        for name, content in disks.items():
            with open(os.path.join(folder, name), 'wb') as file:
                file.write(content)
        drives = [f'file={folder}/first,format=raw,if=none,id=one', f'file={folder}/second,format=raw,if=ide,id=two']
        return [program, '-nodefaults', '-no-reboot', '-display', 'none', '-accel', 'tcg', '-m', '32', '-serial', 'stdio', '-device',
                'isa-debug-exit,iobase=0xf4,iosize=4', '-object', 'iothread,id=apart', '-drive', drives[0], '-device',
                'virtio-blk-pci,drive=one,iothread=apart,bootindex=0', '-drive', drives[1]]

    plain = subprocess.run(command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=ENV, timeout=PATIENCE, check=False)
    recording = Recording(weft, os.path.join(folder, 'traces'), command(), stdin=subprocess.DEVNULL)
    expect((plain.returncode, plain.stdout.decode()), (1, said), 'what the machine says')
    expect((recording.status, recording.out.decode()), (1, said), 'what the recorded machine says')
    for name, content in disks.items():
        with open(os.path.join(folder, name), 'rb') as file:
            expect(file.read() == content, True, f'disk {name} is what it was')
    trace = recording.trace('qemu-system-x86')
    healthy(trace)
    found = requests(trace)
    wanted = [(512 + i * 4 * KIB, 4 * KIB) for i in range(pieces)]
    expect([(offset, size) for offset, size, _ in found['read', 'first'] if size == 4 * KIB], wanted, 'what is read of the first disk')
    for verb in 'read', 'write':  # by programmed input and output
        sectors = [(offset, size) for offset, size, _ in found[verb, 'second'] if offset]
        expect(sectors, [(512 + i * 512, 512) for i in range(pieces * 8)], f'what is {verb} of the second disk')
    threads = {p['promise']: [text for _, text in p['labels']] for p in trace.promises('thread')}
    expect({name for names in threads.values() for name in names} >= {'main', 'IO apart', 'CPU 0/TCG'}, True, f'OS threads {threads}')
    askers = {threads.get(p['created_by'], ['?'])[0] for _, size, p in found['read', 'first'] if size == 4 * KIB}
    expect(askers, {'IO apart'}, 'who reads the first disk')
    edges, work = awaits(trace), {p['promise'] for p in trace.promises('work')}
    if any(not any((p['promise'], w) in edges for w in work) for _, _, p in found['read', 'first']):
        fail('a request for which nobody works')


TESTS = {'convert': convert, 'machine': machine}
with tempfile.TemporaryDirectory(prefix='weft-qemu-') as place:
    TESTS[sys.argv[1]](sys.argv[2], place, sys.argv[3])
