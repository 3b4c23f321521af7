#!/usr/bin/env python3
"""weft record --kernel=flight: kernel events stay in memory; they are written when the program ends or dies, and into copies of weft save.

	flight_test.py KNOWN SLOW WEFT

root runs each test as root and as an ordinary user; tests that the machine does not allow are skipped with a note.

SPDX-License-Identifier: ISC"""

import glob
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
from recorded import PATIENCE, Recording, Trace, closed_to_others, expect, fail, passes, until

MANY = 60000  # 512 KiB for each CPU have space for some 13,000 of these events


def kernel(trace):
    return trace.ask('info', '--json')[0].get('kernel')


def packets(trace):
    return glob.glob(os.path.join(trace.path, 'kernel-*'))


def switches(process):
    """Returns the number of context switches of the OS threads of the weft record process."""
    counts = {}
    for path in glob.glob(f'/proc/{process.pid}/task/*/status'):
        with open(path, encoding='ascii') as file:
            counts[path] = int(re.search(r'^voluntary_ctxt_switches:\s*(\d+)', file.read(), re.M)[1])
    return counts


def run(weft, folder, name, words, command, user):
    return Recording(weft, os.path.join(folder, name), command, wait=False, record=words, cwd=folder, **user)


def finish_recording(recording, name):
    out, err = recording.process.communicate(timeout=PATIENCE)
    return recording.trace(name), out.decode(), err.decode()


def check_asked(weft, known, folder, user):
    """Without a request, no kernel event is written; each weft save copies the kernel events; when the program ends, they are in the trace."""
    recording = run(weft, folder, 'asked', ['--kernel=own,flight'], [known, '100', '/dev/null', 'forever'], user)
    pid = recording.ids('kernel_known')[0]
    trace = recording.trace('kernel_known')
    until(trace.has_events, 'a program that records')

    def count_events():
        return trace.ask('info', '--json')[0]['events']

    def sleeps():
        before, begun = switches(recording.process), count_events()
        until(lambda: count_events() > begun + 20, 'a program that goes on')
        return switches(recording.process) == before
    until(sleeps, 'a weft record that does nothing while nobody asks')
    expect(packets(trace), [], 'what is written while nobody asks')
    seen = [0]
    for number, what in enumerate((trace.path, f'--pid={pid}', str(pid))):
        copy = Trace(weft, os.path.join(folder, f'copy{number}'))
        begun = count_events()
        until(lambda: count_events() > begun + 10, 'a program that goes on')
        saved = subprocess.run([weft, 'save', what, '-w', copy.path], cwd=folder, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, **user)
        expect((saved.returncode, saved.stderr), (0, ''), 'weft save')
        told = kernel(copy)
        expect((told['lost'], copy.ask('info', '--json')[0]['skipped_count']), (0, 0), 'what is lost')
        if told['events'] + told['overwritten'] <= seen[-1] or not 0 < told['bound_ns'] <= 100:
            fail(f'copy {number}: {told}')
        seen.append(told['events'] + told['overwritten'])
    os.kill(pid, signal.SIGKILL)
    trace, _, err = finish_recording(recording, 'kernel_known')
    told = kernel(trace)
    if told['events'] + told['overwritten'] < seen[-1] or told['lost']:
        fail(f'at the end: {told}: {err}')
    print(f'level {told["level"]}: {seen[1:]} events when they were asked for, {told["events"]} at the end')


def wake_others():
    """Wakes an unrecorded thread on each CPU, far more often than the smallest ring can hold."""
    allowed = os.sched_getaffinity(0)
    for processor in allowed:
        os.sched_setaffinity(0, {processor})
        with subprocess.Popen(['/bin/cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as cat:
            for _ in range(10000):
                cat.stdin.write(b'x')
                cat.stdout.read(1)
            cat.stdin.close()
    os.sched_setaffinity(0, allowed)


def check_crowded(weft, known, folder, user):
    """Events of other programs do not overwrite the events of this program."""
    recording = run(weft, folder, 'crowded', ['--size=64K', '--mode=grow', '--kernel=all,flight'], [known, '1000', '/dev/null', 'forever'], user)
    pid = recording.ids('kernel_known')[0]
    trace = recording.trace('kernel_known')
    until(lambda: trace.has_events() and trace.ask('info', '--json')[0]['events'] > 20, 'a program that does something')
    os.kill(pid, signal.SIGSTOP)
    wake_others()
    os.kill(pid, signal.SIGKILL)
    trace, _, err = finish_recording(recording, 'kernel_known')
    told = kernel(trace)
    if told['events'] < 600 or told['lost']:
        fail(f'what is left beside busy programs: {told}: {err}')
    print(f'level {told["level"]}: {told["events"]} events are left beside busy programs')


def check_woken(weft, folder, user):
    """The wake-up of a sleeping thread is in each copy, also if it is in the ring of another CPU."""
    recording = run(weft, folder, 'woken', ['--kernel=all,flight'], ['/usr/bin/python3', '-c', passes(3000)], user)
    number = 0
    while recording.process.poll() is None and number < 100:
        found = glob.glob(os.path.join(recording.folder, '*', 'metadata'))
        copy = os.path.join(folder, 'woken-copy')
        if found and not subprocess.run([weft, 'save', os.path.dirname(found[0]), '-w', copy], stderr=subprocess.DEVNULL, timeout=PATIENCE, **user).returncode:
            shutil.rmtree(copy)
            number += 1
    recording.process.communicate(timeout=PATIENCE)
    trace = Trace(weft, os.path.dirname(glob.glob(os.path.join(recording.folder, '*', 'metadata'))[0]))
    if kernel(trace)['level'] != 'all':
        return
    read = subprocess.run(['babeltrace2', '--clock-cycles', '--no-delta', trace.path], stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE)
    # A timer wakes the main thread, and kernels do not always report the end of an idle CPU.
    main, sleeps, unknown, state = trace.path.rsplit('-', 1)[1], 0, 0, ''
    for op, tid in re.findall(r'kernel_(on|off|taken|wake): .* tid = (\d+)', read.stdout):
        if tid == main:
            continue
        if op == 'on' and state in ('off', 'wake'):
            sleeps += 1
            unknown += state == 'off'
        state = op if op != 'wake' or state == 'off' else state
    if sleeps < 1000 or unknown > sleeps / 100:
        fail(f'of {sleeps} sleeps nobody ended {unknown}, asked {number} times')
    print(f'{sleeps} sleeps, of {unknown} it is not known who ended them, asked {number} times')


def check_watched(weft, known, folder, user):
    """A copy of weft watch contains the kernel events up to the time of the copy."""
    recording = run(weft, folder, 'watched', ['--kernel=flight'], [known, '100', '/dev/null', 'forever'], user)
    pid = recording.ids('kernel_known')[0]
    kept = os.path.join(folder, 'kept')
    watch = subprocess.Popen([weft, 'watch', '--save=' + kept, recording.trace('kernel_known').path, 'count<1'],
                             stdout=subprocess.PIPE, text=True, **user)
    # A weft without libzstd makes copies that are directories.
    copies = lambda: [path for path in glob.glob(os.path.join(kept, '*')) if path.endswith(('Z', 'Z.tar.zst'))]
    until(copies, 'what weft watch keeps')
    told = kernel(Trace(weft, copies()[0]))
    expect(bool(told and told['events']), True, f'what the kernel said, in what weft watch kept: {told}')
    watch.kill()
    watch.communicate()
    os.kill(pid, signal.SIGKILL)
    finish_recording(recording, 'kernel_known')


def check_forgotten(weft, known, folder, user):
    """The newest events are kept with their times, and overwritten events are counted."""
    pages = os.path.join(folder, 'pages')
    recording = run(weft, folder, 'forgotten', ['--kernel=own,flight', '--size=512K'], [known, str(MANY), pages], user)
    trace, _, err = finish_recording(recording, 'kernel_known')
    told, info = kernel(trace), trace.ask('info', '--json')[0]
    if not told['overwritten'] or told['lost'] or info['skipped_count'] or not 0.8 * MANY < told['events'] + told['overwritten'] < 2 * MANY:
        fail(f'a flight that is longer than what it keeps: {told}, {err}')
    if not shutil.which('babeltrace2'):
        print('skipped: no babeltrace2')
        return
    with open(pages, 'rb') as file:
        stamps = {page & 0xffffffff: (before, after) for page, before, after in struct.iter_unpack('=3Q', file.read())}
    read = subprocess.run(['babeltrace2', '--clock-cycles', '--no-delta', trace.path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    expect((read.returncode, read.stderr), (0, ''), 'babeltrace2')
    begin, end = min(before for before, _ in stamps.values()), max(after for _, after in stamps.values())
    faults = [(int(ticks), int(page)) for ticks, page in re.findall(r'^\[(\d+)\] .*kernel_fault: .* page = (\d+)', read.stdout, re.M)]
    known_faults = [(ticks, page) for ticks, page in faults if page in stamps and begin <= ticks <= end]
    outside = [ticks for ticks, page in known_faults if not stamps[page][0] <= ticks <= stamps[page][1]]
    if len(known_faults) < 100 or outside:
        fail(f'{len(outside)} of {len(known_faults)} faults outside their two stamps')
    print(f'{told["overwritten"]} were overwritten, {len(known_faults)} of what is left are known, none outside its two stamps')


def check_said(weft, slow, folder, user):
    """weft explain reports the same about a slow callback as in a trace whose kernel events were written directly."""
    trace, _, err = finish_recording(run(weft, folder, 'said', ['--kernel=flight'], [slow, 'mutex'], user), 'kernel_slow')
    told = kernel(trace)
    stalls = [line for line in trace.findings().get('stall', []) if '50 ms' in line['title']]
    expect(len(stalls), 1, f'stalls: {stalls} {err}')
    if told['level'] == 'all' and not ('find out why thread' in stalls[0]['next'] and 'was woken by its thread "' in str(stalls[0]['evidence'])):
        fail(f'who held the lock: {stalls}')
    print(f'level {told["level"]}: {stalls[0]["next"]}')


def check_killed(weft, known, folder, user):
    """If weft record is killed, the kernel events are lost; the program's events are readable, weft save does not wait, and the trace directory can be used again."""
    command = [known, '10', '/dev/null', 'forever']
    recording = run(weft, folder, 'killed', ['--kernel=flight'], command, user)
    pid = recording.ids('kernel_known')[0]
    recording.process.kill()
    recording.process.wait(PATIENCE)
    trace = recording.trace('kernel_known')
    saved = subprocess.run([weft, 'save', trace.path, '-w', os.path.join(folder, 'rest')], stderr=subprocess.PIPE, text=True, timeout=PATIENCE, **user)
    expect((saved.returncode, saved.stderr), (0, ''), 'weft save')
    os.kill(pid, signal.SIGKILL)
    until(lambda: not os.path.exists(f'/proc/{pid}/fd/0'), 'the end of the program')
    recording.process.communicate()
    again = run(weft, folder, 'killed', ['--overwrite', '--kernel=flight'], [known, '10', '/dev/null'], user)
    trace, _, err = finish_recording(again, 'kernel_known')
    expect((again.process.returncode, kernel(trace)['lost']), (0, 0), err)
    expect(sorted(os.listdir(again.folder)), [os.path.basename(trace.path)], 'what is left in the folder')


known, slow, weft = map(os.path.abspath, sys.argv[1:4])
for words in ('flight,', 'own,all', 'flight,flight', 'flyght'):
    run_ = subprocess.run([weft, 'record', '--kernel=' + words, '-o', '/nonexistent/x', '--', 'true'], stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    expect((run_.returncode, 'unknown value: --kernel=' in run_.stderr), (2, True), run_.stderr)
users = [{}] if os.getuid() else [{}, {'user': 65534, 'group': 65534, 'extra_groups': []}]
if closed_to_others(weft):
    print(f'skipped: as another user, who cannot enter {closed_to_others(weft)}')
    users = users[:1]
for user in users:
    with tempfile.TemporaryDirectory(prefix='weft-flight-') as folder:
        os.chmod(folder, 0o777)
        trace, _, _ = finish_recording(run(weft, folder, 'level', ['--kernel=flight'], [known, '10', '/dev/null'], user), 'kernel_known')
        told = kernel(trace)
        if told['level'] == 'self':
            print(f'skipped: {told["why"]}')
            continue
        check_asked(weft, known, folder, user)
        if told['level'] == 'all':
            check_crowded(weft, known, folder, user)
            if shutil.which('babeltrace2'):
                check_woken(weft, folder, user)
        check_watched(weft, known, folder, user)
        check_forgotten(weft, known, folder, user)
        check_said(weft, slow, folder, user)
        check_killed(weft, known, folder, user)
