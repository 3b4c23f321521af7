#!/usr/bin/env python3
"""weft record --kernel: kernel events are complete and have the right times, also after a kill, a cut or a wrap of the ring.

	record_test.py KNOWN WEFT

root runs each test as root and as an ordinary user; tests that the machine does not allow are skipped with a note.

SPDX-License-Identifier: ISC"""

import contextlib
import ctypes
import errno
import glob
import os
import platform
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
from recorded import ENV, PATIENCE, Trace, closed_to_others, expect, fail, passes, refuse, until

LIBC = ctypes.CDLL(None, use_errno=True)
PERF_EVENT_OPEN, BPF, GET_PROGRAM = 298, 321, 13  # number of the system call on x86-64
COUNT = 10000
MANY = 30000  # out of 250,000 events: an event is missing if the kernel has no buffer for it, because the machine is busy or other programs use the buffers
LINE = re.compile(r'\[(\d+)\] .*? kernel_(\w+): \{ .* \}, \{ (.*) \}$')
# weft events does not print events of these operations.
TOLD = ('on', 'off', 'taken', 'wake', 'fault', 'in', 'spent')


class Run:
    def __init__(self, weft, folder, options, command, user, wait=True):
        self.weft, self.folder = weft, folder
        self.process = subprocess.Popen([weft, 'record', '--overwrite', *options, '-o', folder, '--', *command], env=ENV, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, **user)
        if wait:
            self.end()

    def end(self):
        self.out, self.err = self.process.communicate(timeout=PATIENCE)

    def trace(self):
        found = glob.glob(os.path.join(self.folder, '*', 'metadata'))
        expect(len(found), 1, f'traces in {self.folder}')
        return Trace(self.weft, os.path.dirname(found[0]))


def kernel(trace):
    """Returns the line of weft info about the kernel part, and compares it with the JSON."""
    info = trace.ask('info', '--json')[0]
    text = subprocess.run([trace.weft, 'info', trace.path], stdout=subprocess.PIPE, text=True, timeout=PATIENCE).stdout
    if 'kernel' not in info:
        fail(f'{trace.path}: nothing of the kernel')
    line = re.search(r'^kernel     level (\w+)(?:: (.*))?$', text, re.M)
    expect(line and line[1], info['kernel']['level'], 'the level')
    expect(bool(line[2]), bool(info['kernel']['why']), f'a reason: {line[0]}')
    return info['kernel'], info


def babeltrace(trace):
    """Returns the events of babeltrace2: (counter, op, fields)."""
    run = subprocess.run(['babeltrace2', '--clock-cycles', '--no-delta', trace.path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         timeout=PATIENCE)
    expect((run.returncode, run.stderr), (0, ''), 'babeltrace2')
    found = []
    for line in run.stdout.splitlines():
        match = LINE.fullmatch(line)
        if match:
            fields = dict(field.split(' = ') for field in match[3].split(', '))
            found.append((int(match[1]), match[2], {key: value.strip('"') if '"' in value else int(value) for key, value in fields.items()}))
    return found


def program(trace):
    """Returns the program's own events in babeltrace2, as text."""
    run = subprocess.run(['babeltrace2', '--clock-cycles', '--no-delta', trace.path], stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE)
    return [line for line in run.stdout.splitlines() if not LINE.fullmatch(line)]


def explain(trace):
    return subprocess.run([trace.weft, 'explain', '--stall=1ms', trace.path], stdout=subprocess.PIPE, text=True, timeout=PATIENCE).stdout


def wanted(user):
    """Returns the level of kernel events that this user must get, or None if the level depends on the machine."""
    with open('/proc/sys/kernel/perf_event_paranoid') as file:
        paranoid = int(file.read())
    with open('/proc/self/status') as file:
        has_all = not user and re.search(r'^CapEff:\s*[0-9a-f]*[0-9a-f]{16}$', file.read(), re.M)
    return 'own' if user and 0 <= paranoid <= 2 else 'self' if user and paranoid > 2 else None if has_all else None


def check_fault_times(known, trace, info):
    """Each of 10,000 page faults has a time between the two readings of the counter around it."""
    with open(known, 'rb') as file:
        pages = {page & 0xffffffff: (before, after) for page, before, after in struct.iter_unpack('=3Q', file.read())}
    expect(len(pages), COUNT, 'known faults')
    found = babeltrace(trace)
    expect(sum(op in TOLD for _, op, _ in found), info['events'], "babeltrace2's events of the kernel")
    seen, outside = set(), 0
    begin, end = min(before for before, _ in pages.values()), max(after for _, after in pages.values())
    for ticks, op, fields in found:
        # Only faults in this time are compared, because other mappings may be at the same addresses before and after it.
        if op == 'fault' and fields['page'] in pages and begin <= ticks <= end:
            before, after = pages[fields['page']]
            outside += not before <= ticks <= after
            seen.add(fields['page'])
    expect((len(seen), outside), (COUNT, 0), 'known faults that were recorded, and those outside their two stamps')
    if not 0 < info['bound_ns'] <= 100:
        fail(f'the clocks are known to {info["bound_ns"]} ns')
    names = {fields['name'] for _, op, fields in found if op == 'thread' and fields['pid']}
    expect('kernel_known' in names, True, f'the name of the OS thread in {names}')
    if info['level'] == 'all':
        called = {fields['call'] for _, op, fields in found if op == 'off'}
        expect(bool(called & {17, 18, 19, 12}), True, f'where the loop sleeps: {called}')
        expect(any(op == 'wake' for _, op, _ in found), True, 'who woke it')
    print(f'{COUNT} faults, none outside its two stamps, clocks known to {info["bound_ns"]} ns')


def check_damage(trace, folder):
    """Damage in kernel packets does not change the program's events, and all other kernel events are read."""
    bare, cut, strange = (os.path.join(folder, name) for name in ('bare', 'cut', 'strange'))
    for path in (bare, cut, strange):
        shutil.copytree(trace.path, path)
    for path in glob.glob(os.path.join(bare, 'kernel-*')):
        os.unlink(path)
    said = explain(Trace(trace.weft, bare))
    expect('kernel' in Trace(trace.weft, bare).ask('info', '--json')[0], False, 'nothing of the kernel')
    if shutil.which('babeltrace2'):
        expect(program(trace), program(Trace(trace.weft, bare)), "what babeltrace2 reads of the program's own events")
    # Kernel packets of an unknown class are not reported as damage.
    for path in glob.glob(os.path.join(strange, 'kernel-*')):
        with open(path, 'r+b') as file:
            file.seek(20)
            file.write(struct.pack('<I', 9))
    expect(explain(Trace(trace.weft, strange)), said, 'explain of a trace with packets of a class that nobody knows')
    largest = max(glob.glob(os.path.join(cut, 'kernel-*')), key=os.path.getsize)
    whole = kernel(trace)[0]['events']
    size = os.path.getsize(largest)
    for what in ('cut', 'noise', 'empty'):
        if what == 'cut':
            os.truncate(largest, size // 2)
        elif what == 'noise':
            with open(largest, 'r+b') as file:
                file.seek(400)
                file.write(b'\x77' * 100)
        else:
            os.truncate(largest, 0)
        damaged = Trace(trace.weft, cut)
        expect(explain(damaged), said, f'explain of a trace with a kernel packet that is {what}')
        if what != 'empty':
            left, info = kernel(damaged)
            if not 0 < left['events'] < whole or not info['skipped_count']:
                fail(f'{what}: {left["events"]} of {whole} events, {info["skipped_count"]} places skipped')


def check_saved(trace, folder):
    saved = os.path.join(folder, 'saved')
    subprocess.run([trace.weft, 'save', trace.path, '-w', saved], check=True, timeout=PATIENCE)
    expect(kernel(Trace(trace.weft, saved))[0], kernel(trace)[0], 'what is saved')
    for form in ('native', 'mirage'):
        run = subprocess.run([trace.weft, 'convert', trace.path, '--to', form, '-o', os.path.join(folder, form)], stderr=subprocess.PIPE, text=True,
                             timeout=PATIENCE)
        expect((run.returncode, f'{kernel(trace)[0]["events"]} kernel records' in run.stderr), (0, True), f'losses of {form} are reported: {run.stderr}')


def check_sizes(known, weft, folder, user):
    """A ring keeps the newest kernel events and counts the overwritten ones; a growing trace keeps the oldest and counts the lost ones."""
    command = [known, '250000', os.path.join(folder, 'pages')]
    ring = Run(weft, os.path.join(folder, 'ring'), ['--kernel=own', '--size=1M'], command, user)
    told, _ = kernel(ring.trace())
    if not told['overwritten'] or told['events'] + told['overwritten'] + told['lost'] < MANY or told['bytes'] > 1.1e6 * told['processors']:
        fail(f'a ring: {told}')
    for attempt in range(5):
        grown = Run(weft, os.path.join(folder, f'grown{attempt}'), ['--kernel=own', '--mode=grow', '--size=256K'], command, user)
        told, _ = kernel(grown.trace())
        if told['overwritten'] or told['bytes'] > 300000 * told['processors']:
            fail(f'what grows: {told}')
        # If the kernel lost events, the limit of the trace may not be reached.
        if told['lost'] and told['events'] + told['lost'] >= MANY:
            break
        if told['bytes'] > 200000 * told['processors']:
            fail(f'what grows: {told}')
    else:
        print(f'what grows: the kernel had no room: {told}')


def check_kills(known, weft, folder, user):
    """If the program or weft record is killed, the trace has all events that were written; it is also readable during the recording."""
    for victim in ('the program', 'weft'):
        run = Run(weft, os.path.join(folder, victim), ['--kernel=own'], [known, '1000', '/dev/null', 'forever'], user, wait=False)

        def is_there():
            traces = glob.glob(os.path.join(run.folder, '*', 'kernel-*'))
            return traces and run.trace().has_events() and kernel(run.trace())[0]['events'] > 3000
        until(is_there, 'what the kernel says while it is recorded')
        trace = run.trace()
        pid = int(trace.path.rsplit('-', 1)[1])
        os.kill(run.process.pid if victim == 'weft' else pid, signal.SIGKILL)
        if victim == 'weft':
            run.process.wait(PATIENCE)
            os.kill(pid, signal.SIGKILL)
            until(lambda: not os.path.exists(f'/proc/{pid}/fd/0'), 'the end of the program')
        run.end()
        told, info = kernel(trace)
        if told['events'] < 3000 or info['skipped_count'] or told['level'] != 'own':
            fail(f'{victim} was killed: {told}')


def is_loaded(number):
    """Returns whether the kernel has a BPF program with this id."""
    attr = ctypes.create_string_buffer(struct.pack('<I', number), 128)
    ctypes.set_errno(0)
    fd = LIBC.syscall(BPF, GET_PROGRAM, attr, len(attr))
    if fd >= 0:
        os.close(fd)
    return ctypes.get_errno() != errno.ENOENT


def check_programs_go(known, weft, folder):
    """weft's BPF programs stay loaded until weft record ends, also if the program or weft record is killed."""
    for victim in ('the program', 'weft'):
        run = Run(weft, os.path.join(folder, f'{victim} at all'), ['--kernel=all'], [known, '10', '/dev/null', 'forever'], {}, wait=False)
        until(lambda: glob.glob(os.path.join(run.folder, '*', 'kernel-*')) and run.trace().has_events() and 'kernel' in run.trace().ask('info', '--json')[0],
              'what the kernel says')
        trace = run.trace()
        loaded = set()
        for path in glob.glob(f'/proc/{run.process.pid}/fdinfo/*'):
            with contextlib.suppress(FileNotFoundError), open(path) as file:  # weft may open and close folders while the test lists its descriptors
                loaded |= {int(number) for number in re.findall(r'^prog_id:\s*(\d+)$', file.read(), re.M)}
        # weft has loaded BPF programs exactly if weft info says that softirqs are recorded.
        expect(bool(loaded), 'softirqs are recorded' in kernel(trace)[0]['why'], f'programs in the kernel: {loaded}')
        if not loaded:
            print('skipped: this machine takes no programs into its kernel')
        expect([number for number in loaded if not is_loaded(number)], [], 'programs that are there while weft records')
        pid = int(trace.path.rsplit('-', 1)[1])
        os.kill(run.process.pid if victim == 'weft' else pid, signal.SIGKILL)
        run.process.wait(PATIENCE) if victim == 'weft' else run.end()
        until(lambda: not any(map(is_loaded, loaded)), f'programs are still in the kernel, though {victim} was killed')
        if victim == 'weft':
            os.kill(pid, signal.SIGKILL)
            run.end()


def check_denied(known, weft, folder, user):
    """A user without permission for kernel events gets a line with the reason and a remedy, and a recording without these events."""
    run = Run(weft, os.path.join(folder, 'denied'), ['--kernel'], [known, '10', '/dev/null'], {**user, 'preexec_fn': lambda: refuse(PERF_EVENT_OPEN)})
    if run.process.returncode == 77:
        print('skipped: no filters of system calls')
        return
    trace = run.trace()
    told, info = kernel(trace)
    expect((run.process.returncode, told['level'], told['why'][:22]), (0, 'self', 'perf_event_paranoid is'), run.err)
    expect('kernel.perf_event_paranoid=2' in run.err and told['why'] in run.err, True, f'what to do about it: {run.err}')
    text = subprocess.run([weft, 'info', trace.path], stdout=subprocess.PIPE, text=True, timeout=PATIENCE).stdout
    expect('a higher level needs root or sysctl kernel.perf_event_paranoid=2' in text, True, text)
    expect(info['promises'] > 0 and not info['skipped_count'], True, 'the program is recorded all the same')


def check_switches(weft, folder, user):
    """No switch is missing: a thread that leaves a CPU has got a CPU before."""
    run = Run(weft, os.path.join(folder, 'passes'), ['--kernel', '--mode=grow'], ['/usr/bin/python3', '-c', passes(5000)], user)
    trace, table = run.trace(), os.path.join(folder, 'passes.sqlite')
    if kernel(trace)[0]['lost']:
        print('skipped: the kernel had no room for all switches')
        return
    subprocess.run([weft, 'convert', trace.path, '-o', table, '--to=sqlite'], check=True, timeout=PATIENCE)
    offs = sqlite3.connect(table).execute('SELECT tid, start_ns, end_ns, why, taken_by FROM off ORDER BY tid, start_ns').fetchall()
    expect(len(offs) > 5000, True, f'stretches without a processor: {len(offs)}')
    expect([(a, b) for a, b in zip(offs, offs[1:]) if a[0] == b[0] and a[2] == b[1]], [], 'who lost a processor and had none')


known, weft = map(os.path.abspath, sys.argv[1:3])
users = [{}] if os.getuid() else [{}, {'user': 65534, 'group': 65534, 'extra_groups': []}]
if closed_to_others(weft):
    print(f'skipped: as another user, who cannot enter {closed_to_others(weft)}')
    users.pop()
for user in users:
    with tempfile.TemporaryDirectory(prefix='weft-kernel-') as folder:
        os.chmod(folder, 0o777)
        pages = os.path.join(folder, 'pages')
        run = Run(weft, os.path.join(folder, 'session'), ['--kernel', '--mode=grow'], [known, str(COUNT), pages], user)
        expect(run.process.returncode, 0, run.err)
        trace = run.trace()
        told, info = kernel(trace)
        who = 'an ordinary user' if user or os.getuid() else 'root'
        print(f'{who}: level {told["level"]}: {told["why"]}')
        expect(wanted(user or (os.getuid() and {'user': 1})) in (None, told['level']), True, f'the level of {who}')
        if told['level'] == 'self':
            expect('kernel.perf_event_paranoid=2' in run.err and told['why'] in run.err, True, f'what to do about it: {run.err}')
            print(f'skipped: {told["why"]}')
            continue
        expect((told['lost'], told['overwritten'], info['skipped_count']), (0, 0, 0), 'what is lost')
        if shutil.which('babeltrace2'):
            check_fault_times(pages, trace, told)
        else:
            print('skipped: no babeltrace2')
        own = Run(weft, os.path.join(folder, 'own'), ['--kernel=own'], [known, '10', pages], user)
        expect(kernel(own.trace())[0]['level'], 'own', '--kernel=own')
        plain = Run(weft, os.path.join(folder, 'plain'), [], [known, '10', pages], user)
        expect('kernel' in plain.trace().ask('info', '--json')[0], False, 'without --kernel')
        if platform.machine() == 'x86_64':
            check_denied(known, weft, folder, user)
            if told['level'] == 'all':
                check_programs_go(known, weft, folder)
        check_switches(weft, folder, user)
        check_damage(trace, folder)
        check_saved(trace, folder)
        check_sizes(known, weft, folder, user)
        check_kills(known, weft, folder, user)
        again = Run(weft, os.path.join(folder, 'ring'), [], [known, '10', pages], user)
        expect(len(glob.glob(os.path.join(folder, 'ring', '*', 'kernel-*'))), 0, 'what --overwrite leaves')
