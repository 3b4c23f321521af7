#!/usr/bin/env python3
"""probes_test.py WEFT: `weft record --kernel` of root probes a file of another user only in the recorded process, and does not probe a file
   that is replaced at the same time.

The test needs root, x86-64 and a kernel with uprobes; otherwise, it is skipped with a note.

SPDX-License-Identifier: ISC"""
import mmap
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'), os.path.dirname(os.path.abspath(__file__))]
from others import closed_to_others

OTHER = 65534
PATIENCE = 60
CODE = 0x10000  # offset of the probed instruction in the file
NOTES, NAMES, TABLE = 0x1000, 0x2000, 0x3000
SKIPPED = 77


def note(name):
    """Returns a SystemTap note of a probe at CODE."""
    text = struct.pack('<QQQ', CODE, 0, 0) + b'python\0' + name + b'\0\0'
    return struct.pack('<III', 8, len(text), 3) + b'stapsdt\0' + text + bytes(-len(text) % 4)


def make_file(path):
    """Writes an ELF file with one segment and the probes of Python's garbage collector."""
    notes = note(b'gc__start') + note(b'gc__done')
    names = b'\0.note.stapsdt\0.shstrtab\0'
    sections = [struct.pack('<IIQQQQIIQQ', *[0] * 10),
                struct.pack('<IIQQQQIIQQ', names.index(b'.shstrtab'), 3, 0, 0, NAMES, len(names), 0, 0, 1, 0),
                struct.pack('<IIQQQQIIQQ', 1, 7, 0, 0, NOTES, len(notes), 0, 0, 4, 0)]
    header = b'\x7fELF\2\1\1' + bytes(9) + struct.pack('<HHIQQQIHHHHHH', 3, 62, 1, 0, 64, TABLE, 0, 64, 56, 1, 64, len(sections), 1)
    segment = struct.pack('<IIQQQQQQ', 1, 5, 0, 0, 0, 2 * CODE, 2 * CODE, 4096)
    content = bytearray(2 * CODE)
    for at, part in ((0, header + segment), (NOTES, notes), (NAMES, names), (TABLE, b''.join(sections))):
        content[at:at + len(part)] = part
    content[CODE:CODE + 64] = b'\x90' * 64
    with open(path, 'wb') as file:
        file.write(content)


def load(path):
    with open(path, 'rb') as file:
        return mmap.mmap(file.fileno(), 2 * CODE, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)


def is_probed(memory):
    return memory[CODE] == 0xcc


def record(weft, folder, path):
    """Records a process of another user that loads the file; the process prints whether the file is probed."""
    me = os.path.join(folder, 'probes_test.py')
    become = ['setpriv', f'--reuid={OTHER}', f'--regid={OTHER}', '--clear-groups', sys.executable, me, 'load', path]
    return subprocess.Popen([weft, 'record', '--kernel=all', '--overwrite', '-o', os.path.join(folder, 'trace'), '--', *become], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def run_loader(path):
    memory, end = load(path), time.monotonic() + PATIENCE
    while not is_probed(memory) and time.monotonic() < end:
        time.sleep(0.02)
    print('probed' if is_probed(memory) else 'not probed', flush=True)
    sys.stdin.readline()


def check(weft, folder):
    path = os.path.join(folder, 'lib.so')
    make_file(path)
    memory = load(path)
    # A file of root is probed in each process, which shows that this machine allows probes.
    os.chmod(path, 0o755)
    with record(weft, folder, path) as recorded:
        if recorded.stdout.readline() != 'probed\n' or not is_probed(memory):
            recorded.communicate('\n')
            print('skipped: this machine puts no probes')
            return SKIPPED
        recorded.communicate('\n')
    if is_probed(memory):
        sys.exit('the probe outlives weft record')
    # A file of the recorded user, who can change it, is probed only in the recorded process.
    os.chown(path, OTHER, OTHER)
    with record(weft, folder, path) as recorded:
        line = recorded.stdout.readline()
        others = is_probed(memory)
        recorded.communicate('\n')
    if line != 'probed\n':
        sys.exit(f'the recorded process: {line}')
    if others:
        sys.exit('a process that is not recorded has a probe in a file of another user')
    # A file of root that all users may change is probed for the recorded process alone.
    os.chown(path, 0, 0)
    os.chmod(path, 0o777)
    with record(weft, folder, path) as recorded:
        recorded.stdout.readline()
        others = is_probed(memory)
        recorded.communicate('\n')
    if others:
        sys.exit('a process that is not recorded has a probe in a file that others may write to')
    return 0


def main():
    if sys.argv[1] == 'load':
        run_loader(sys.argv[2])
        return 0
    weft = os.path.abspath(sys.argv[1])
    has_probes = os.path.exists('/sys/bus/event_source/devices/uprobe/type') and platform.machine() == 'x86_64'
    if os.geteuid() != 0 or not has_probes or closed_to_others(weft):
        print('skipped: no root who can become another user, or no probes of programs')
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        shutil.copy(__file__, os.path.join(folder, 'probes_test.py'))
        with open(os.path.join(folder, 'others.py'), 'w', encoding='utf-8') as file:
            file.write('closed_to_others = None\n')
        return check(weft, folder)


if __name__ == '__main__':
    sys.exit(main())
