#!/usr/bin/env python3
"""The finding about a slow callback has its time on CPU, runnable and blocked; with kernel events, also the cause of each time.

	self_test.py SLOW WEFT

root records each scene of slow.c as root and as an ordinary user.  The program prints the kernel's counters of the callback, so that the expected values
   include the load of the machine.

SPDX-License-Identifier: ISC"""

import os
import platform
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
from recorded import Recording, closed_to_others, expect, fail, refuse

FAULT_NS = 5000  # ns of CPU time; a page fault takes longer only if the host of a virtual machine has to map the page first
SLACK_MS = 1.2  # ms of the iterations before, which the recorder may include
ADVICE = {'on': 'split the work', 'memory': 'reuse memory', 'waiting': 'run fewer other programs',
          'blocked': 'move the blocking call to another thread', 'read': 'pages from a disk', 'unknown': 'on an idle machine',
          'pause': 'move the blocking call to another thread'}
SPAN = r'(?:at most |at least )?([\d.]+) (us|ms|s)'


def ms(text, pattern):
    found = re.search(pattern.replace('SPAN', SPAN), text)
    return float(found[1]) * {'us': 0.001, 'ms': 1, 's': 1000}[found[2]] if found else 0.0


def near(got, want, whole, what):
    if abs(got - want) > whole / 100 + SLACK_MS:
        fail(f'{what}: {got}, not {want}')


ROWS = []
LENGTH = 'blocked the event loop for SPAN'


def is_in_pause(title):
    return re.search(r'blocked the event loop for [\d.]+ \w+ in ', title) is not None


def has_parts(title):
    return re.search(r'[(](on CPU|blocked \d)', title) is not None


def add_row(scene, level, who, stall):
    """Adds a row to the printed table; fails unless the parts add up to the whole within 1 %."""
    title = stall['title']
    is_pause = is_in_pause(title)
    whole = ms(title, LENGTH)
    parts = [ms(title, 'on CPU SPAN'), ms(title, '(?<!blocked or) runnable SPAN'), ms(title, r'[(,] ?blocked SPAN'), ms(title, 'blocked or runnable SPAN')]
    if not any(parts):
        parts[2 if is_pause else 0] = whole
    if abs(sum(parts) - whole) > whole / 100:
        fail(f'{scene}: the parts are not the whole: {title}')
    what = re.search(r'(?:page faults|blocked \d[^,;]*? in (?:a page fault|\w+)|GC)', title)
    what = re.sub(r'.* in ', 'in ', what[0]) if what else ''
    ROWS.append((scene, level, who, f'{whole:8.3g}' + ''.join(f'{part or 0:10.3g}' for part in parts) + f'{100 * sum(parts) / whole:8.1f} %  {what}'))


def crowd(slow, count):
    """Starts competing programs on the only CPU that this process and its children may use."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return [subprocess.Popen([slow, 'hog']) for _ in range(count)]


def expect_memory(truth):
    """Returns 'memory' if page faults used most of the CPU time, or None if each fault took so long that the host of this virtual machine must have mapped pages."""
    return 'memory' if truth['cpu'] < FAULT_NS * truth['minor'] else None


def check_breakdown(scene, stall, truth):
    """Compares the parts of the stall with the counters of the program; returns the largest part, or None if it is not certain."""
    wall, cpu = truth['wall'] / 1e6, truth['cpu'] / 1e6
    title, off, part = stall['title'], wall - cpu, None
    if is_in_pause(title):
        expect(scene in ('nanosleep', 'mutex'), True, f'{scene}: {title}')
        expect(scene[:5] in title, True, title)
        return 'pause'
    whole = ms(title, LENGTH)
    if whole < wall * 0.99:
        fail(f'{scene}: {title}: not {wall} ms')
    is_exact = whole < wall * 1.01 + SLACK_MS  # otherwise, the thread lost the CPU right before or behind the interval that the program measured
    parts = {'on': ms(title, 'on CPU SPAN'), 'waiting': ms(title, ', runnable SPAN'), 'blocked': ms(title, r'[(,] ?blocked SPAN'),
             'unknown': ms(title, 'blocked or runnable SPAN')}
    if not has_parts(title):
        if off > wall / 8 + SLACK_MS:
            fail(f'{scene}: {off} ms of {wall} without a processor are not told: {title}')
        return expect_memory(truth) if scene == 'touch' else 'on'
    if abs(sum(parts.values()) - whole) > whole / 100:
        fail(f'{scene}: the parts are not the whole: {title}')
    if 'at most' in title:
        if parts['on'] < cpu * 0.99 - SLACK_MS:
            fail(f'{scene}: {title}: it had a processor for {cpu} ms')
        return None
    if is_exact:
        near(parts['on'], cpu, 5 * wall, f'{scene}: {title}: on a processor')
    if not truth['given'] and not truth['taken']:
        return None  # the host took the CPU away, which neither the kernel nor weft can see
    lost = 'waiting' if not truth['given'] else 'blocked' if not truth['taken'] else None
    if lost and is_exact:
        # The counters also cover the iterations around the stall, so a switch in one of these makes the part uncertain.
        near(parts[lost] + parts['unknown'], off, 5 * wall, f'{scene}: {title}: {lost}')
        part = lost if parts[lost] > parts['on'] * 1.05 else 'on' if parts['on'] > parts[lost] * 1.05 else None
    if part == 'on' and scene == 'touch':
        return expect_memory(truth)
    return 'read' if part == 'blocked' and scene == 'mapped' else part


# With kernel events: for each scene, words of the title, and words of the advice or the evidence.  The level `own` has no names of other threads.
NAMED = {'fsync': ('in (fsync|write)', 'flush the file on another thread|blocking call to another thread'), 'cold': ('in (pread64|fadvise64)', 'to another thread'),
         'mapped': ('in a page fault', 'pages from a disk'), 'nanosleep': ('nanosleep', 'use a timer of the event loop'), 'mutex': ('mutex', 'find out why thread'),
         'crowded': ('runnable', 'was preempted \\d+ times?, here for .* by "')}


def check_kernel_evidence(scene, stall, truth, level):
    """Checks a stall with kernel events: its parts equal the counters of the program, and the finding names the other thread and the cause."""
    wall, cpu, title = truth['wall'] / 1e6, truth['cpu'] / 1e6, stall['title']
    lines = ' '.join([stall['next'], *(line['text'] for line in stall['evidence'])])
    if scene not in ('nanosleep', 'mutex'):
        whole = ms(title, LENGTH)
        parts = [ms(title, 'on CPU SPAN'), ms(title, ', runnable SPAN'), ms(title, ', blocked SPAN')]
        expect('blocked or runnable' in title, False, f'nothing is in doubt: {title}')
        if has_parts(title):
            # The counter of CPU time leaves out the time of interrupts and of the host, in which no other thread had the CPU.  The kernel reports a switch some us late,
            # up to 30 us on a busy machine, and the counter gives this time to the thread.
            if parts[0] < cpu - wall / 100 - SLACK_MS - 0.05 * (truth['given'] + truth['taken']):
                fail(f'{scene}: {title}: it had a processor for {cpu} of {wall} ms')
            # N in "in CALL and others, N times" counts calls, each of which may block more than once.
            times = re.search(r'blocked \d.*?( and others)?, (\d+) times', title)
            if times and (int(times[2]) > truth['given'] + 3 or not times[1] and int(times[2]) < truth['given'] - 3):
                fail(f'{scene}: {title}: it was blocked {truth["given"]} times')
        elif wall - cpu > wall / 8 + SLACK_MS:
            print(f'{scene}: {wall - cpu:.1f} of {wall:.1f} ms are the host\'s: its OS thread was {truth["given"] + truth["taken"]} times without a processor')
        largest = parts.index(max(parts)) if has_parts(title) else 0
        if largest != {'fsync': 2, 'cold': 2, 'mapped': 2, 'crowded': 1}.get(scene, 0):
            print(f'{scene}: level {level}: another part was the largest, since the machine did other things, too: {title}')
            return
    # If the host of this machine took the CPU, page faults were not the largest part.
    if scene == 'touch' and truth['cpu'] < FAULT_NS * truth['minor'] and not ('reuse memory instead' in lines and 'page faults up to' in title):
        fail(f'{scene}: {title}: {lines}')
    if scene in NAMED and level == 'all':
        what, why = NAMED[scene]
        if not re.search(what, title) or not re.search(why, lines):
            fail(f'{scene}: not {what}, {why}: {title}: {lines}')
    if scene == 'mutex' and level == 'all':
        woken = [line for line in stall['evidence'] if 'was woken by' in line['text']]
        expect(len(woken), 1, f'who woke it: {lines}')
        if woken[0].get('promise') in (None, stall.get('promise')):
            fail(f'the mutex does not lead to the promise of its holder: {woken}')
    print(f'{scene}: level {level}: {title}; {stall["next"]}')


def check_verbs(trace):
    """Checks that the other verbs show the 40 ms that a promise was off CPU while it ran."""
    for rule, status in (('offcpu<5ms', 1), ('offcpu<100s', 0)):
        checked = subprocess.run([trace.weft, 'check', trace.path, rule], stdout=subprocess.PIPE, text=True)
        expect((checked.returncode, '50 ms' in checked.stdout), (status, bool(status)), f'check {rule}: {checked.stdout}')
    stat = [row for row in trace.ask('stats', '--json') if row['label'] == '50 ms'][0]
    if not 35e6 < stat['off']['max_ns'] <= stat['running']['max_ns'] < 1e9:
        fail(f'stats: {stat}')
    promise = str(trace.promise('timer', '50 ms')['promise'])
    steps = [step for step in trace.ask('path', '--json', '--promise=' + promise) if step['step'] == 'running']
    expect(sum(step['off_ns'] for step in steps), stat['off']['max_ns'], 'path')
    sums = [row['off_ns'] for rows in (trace.ask('stats', '--json', '--table'), trace.ask('stats', '--json', '--blame=50 ms'))
            for row in rows if 'off_ns' in row]
    # On a busy machine, other promises may have been off CPU, too.
    expect(sums.count(stat['off']['max_ns']), 2, f'the table and who is to blame, in {sums}')
    text = subprocess.run([trace.weft, 'explain', '--promise=' + promise, trace.path], stdout=subprocess.PIPE, text=True).stdout
    expect(bool(re.search(r'running \(off CPU for (4\d(\.\d)?|[5-9]\d|\d{3}) ms\)', text)), True, text)


def check_picture(scene, trace, level):
    """Checks that the picture has a lane for the program's OS thread, with the cause of its longest block."""
    picture = os.path.join(os.path.dirname(trace.path), scene + '.svg')
    named = []
    for options, is_shown in ((['--from=40ms', '--to=100ms'], True), (['--no-threads'], False)):
        subprocess.run([trace.weft, 'render', *options, '-o', picture, trace.path], check=True)
        with open(picture, encoding='utf-8') as file:
            text = file.read()
        # The header of an OS thread has its number if several threads have the same name.
        named.append(len(re.findall(r'>(?:kernel_slow|slow) \d+<', text)))
        if level == 'all' and is_shown and scene in ('nanosleep', 'mutex'):
            expect(bool(re.search('>(clock_)?nanosleep<' if scene == 'nanosleep' else '>futex<', text)), True, f'{scene}: what it is blocked in')
    expect(named[0] > named[1], True, f'{scene}: the lane of an OS thread: {named}')


def run(slow, weft, folder, scene, options):
    level = options.pop('level', None)
    recording = Recording(weft, os.path.join(folder, scene + str(level)), [slow, scene], cwd=folder, record=[f'--kernel={level}'] if level else [], **options)
    if recording.status == 77:
        print(f'{scene}: no file can be written here, or no system call refused')
        return
    expect(recording.status, 0, f'{scene}: {recording.err}')
    words = recording.out.split()
    truth = {words[i].decode(): int(words[i + 1]) for i in range(0, 10, 2)}
    trace = recording.trace('kernel_slow')
    if not level and scene == 'spin':
        checked = subprocess.run([weft, 'check', trace.path, 'offcpu<100s'], stdout=subprocess.PIPE, text=True)
        expect(checked.returncode and 'weft record --kernel' in checked.stdout, True, f'a rule about what the trace does not tell: {checked.stdout}')
    stalls = [line for line in trace.findings().get('stall', []) if '50 ms' in line['title']]
    if scene == 'healthy':
        expect(trace.alarms(), [], 'alarms about a healthy program beside a busy neighbour')
        told = [line['title'] for line in trace.findings().get('stall', []) if 'runnable' in line['title']]
        # If the scheduler gives the program its 7 ms in one piece each time, there is no finding; the scene `crowded` tests the preemption.
        print(f'healthy: no alarm: {told[0] if told else "it was not held up"}')
        return
    if truth['wall'] < 10.5e6 or scene in ('cold', 'mapped', 'fsync') and not truth['given']:
        print(f'{scene}: this disk does not keep anybody waiting')
        return
    if len(stalls) != 1:
        fail(f'{scene}: {stalls}')
    add_row(scene, f'{level or "self"}{", no BPF" * ("preexec_fn" in options)}', 'nobody' if 'user' in options else 'root' if os.getuid() == 0 else 'user',
            stalls[0])
    if level:
        kernel = trace.ask('info', '--json')[0]['kernel']
        if 'preexec_fn' in options:
            expect('softirqs are recorded' in kernel['why'], False, f'{scene}: what programs in the kernel leave out: {kernel["why"]}')
        if kernel['level'] != level:
            print(f'skipped: level {level}: {kernel["why"]}')
        else:
            check_kernel_evidence(scene, stalls[0], truth, level)
            check_picture(scene, trace, level)
            if scene == 'nanosleep':
                check_verbs(trace)
        return
    part = check_breakdown(scene, stalls[0], truth)
    if part and ADVICE[part] not in stalls[0]['next']:
        fail(f'{scene}: {part}: {stalls[0]["title"]}: {stalls[0]["next"]}')
    print(f'{scene}: {part}: {stalls[0]["title"]}')


slow, weft = map(os.path.abspath, sys.argv[1:3])
users = [{}] if os.getuid() else [{}, {'user': 65534, 'group': 65534, 'extra_groups': []}]
if closed_to_others(weft):
    print(f'skipped: as another user, who cannot enter {closed_to_others(weft)}')
    users.pop()
kernels = [{'level': 'own', **users[-1]}]
if not os.getuid():
    kernels.append({'level': 'all'})
    if platform.machine() == 'x86_64':  # without BPF programs, the kernel's own events give the same findings
        kernels.append({'level': 'all', 'preexec_fn': lambda: refuse(321)})
for options in users + kernels:
    with tempfile.TemporaryDirectory(prefix='weft-kernel-') as folder:
        os.chmod(folder, 0o777)
        for scene in ('fsync', 'cold', 'mutex') if 'preexec_fn' in options else ('spin', 'fsync', 'cold', 'mapped', 'touch', 'nanosleep', 'mutex'):
            run(slow, weft, folder, scene, dict(options))
        kept = os.sched_getaffinity(0)
        for scene, count in (('crowded', 1), ('healthy', 8))[:1 if 'level' in options else 2]:
            hogs = crowd(slow, count)
            try:
                run(slow, weft, folder, scene, dict(options))
            finally:
                for hog in hogs:
                    hog.kill()
                    hog.wait()
                os.sched_setaffinity(0, kept)
print(f'\n{"callback":10} {"level":12} {"who":8}{"ms":>6}{"on":>10}{"waited":>10}{"blocked":>10}{"unknown":>10}{"sum":>10}')
for scene, level, who, told in sorted(ROWS):
    print(f'{scene:10} {level:12} {who:6}{told}')
