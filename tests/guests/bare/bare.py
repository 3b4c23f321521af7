"""bare.py WEFT FOLDER QEMU...: runs FOLDER/arp.elf in a machine, and reads its ring in that machine's memory while it runs, when it
hangs, when it has crashed and when it is gone.  SPDX-License-Identifier: ISC"""
import atexit
import collections
import json
import os
import shutil
import socket
import subprocess
import sys
import time

WEFT, WORK = map(os.path.abspath, sys.argv[1:3])
QEMU = sys.argv[3:]
LIMIT = 300  # seconds, enough for a slow machine
SLOWLY = ('-icount', 'shift=6,align=on')  # 16 million instructions a second
os.chdir(WORK)


def weft(*args, statuses=(0,)):
    got = subprocess.run([WEFT, *args], capture_output=True, text=True, timeout=LIMIT)
    assert got.returncode in statuses, (args, got.returncode, got.stderr, got.stdout[-2000:])
    return got


def wait_for(what, condition):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.05)
    sys.exit(f'fail: {what}: nothing for {LIMIT} s')


class Machine:
    """A machine with 64 MiB, in the file `ram`, or with memory of its own."""

    def __init__(self, mode, file=True, options=()):
        for name in ('ram', 'serial', 'monitor'):
            if os.path.exists(name):
                os.unlink(name)
        backend = ['-object', 'memory-backend-file,id=ram,size=64M,mem-path=ram,share=on', '-machine', 'pc,accel=tcg,memory-backend=ram']
        self.process = subprocess.Popen([
            *QEMU, '-m', '64M', *(backend if file else ['-machine', 'pc,accel=tcg']), '-kernel', 'arp.elf', '-append', mode, '-display',
            'none', '-serial', 'file:serial', '-no-reboot', '-no-shutdown', '-nic', 'none', '-qmp', 'unix:monitor,server=on,wait=off', *options
        ], stdin=subprocess.DEVNULL)
        atexit.register(self.process.kill)
        wait_for('a monitor', lambda: os.path.exists('monitor') or self.process.poll())
        self.socket = socket.socket(socket.AF_UNIX)
        wait_for('the monitor', lambda: self.socket.connect_ex('monitor') == 0)
        self.lines = self.socket.makefile('r')
        json.loads(self.lines.readline())
        self.ask('qmp_capabilities')

    def ask(self, command, **arguments):
        self.socket.sendall(json.dumps({'execute': command, 'arguments': arguments}).encode() + b'\n')
        while True:
            answer = json.loads(self.lines.readline())
            if 'return' in answer:
                return answer['return']
            assert 'error' not in answer, (command, answer)

    def wait_for_line(self, word):
        """Returns the numbers that were printed before this line."""

        def printed():
            with open('serial', errors='replace') as file:
                lines = file.read().splitlines()
            return lines if word in lines else None

        lines = wait_for(f'"{word}" on the serial port', printed)
        return {line.split()[0]: int(line.split()[1]) for line in lines if len(line.split()) == 2 and line.split()[1].isdigit()}

    def end(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait(LIMIT)

    def quit(self):
        self.ask('quit')
        self.process.wait(LIMIT)
        self.socket.close()


def events_of(trace):
    got = weft('events', '--json', trace)
    assert got.stderr == '', got.stderr
    return [json.loads(line) for line in got.stdout.splitlines()]


def check(trace, counted):
    """Checks that the trace has everything that the guest has counted; returns the events."""
    events = events_of(trace)
    interrupts = {e['promise'] for e in events if e['op'] == 'create' and e['kind'] == 'interrupt'}
    ops = collections.Counter(e['op'] for e in events if e.get('promise') in interrupts)
    assert counted['lost'] == 0 and len(interrupts) == counted['arrived'], (len(interrupts), counted)
    assert ops['run'] == ops['resolve'] == counted['handled'], (ops, counted)
    assert ops['label'] == counted['arrived'], (ops, counted)
    info = json.loads(weft('info', '--json', trace).stdout)
    assert info['lost'] == 0 and info['skipped_count'] == 0 and not info['wrapped'], info
    assert (info['host'], info['process']) == ('bare', 'arp'), info
    return events


def check_hang(trace):
    """weft explain names who waits for a response that came too early; as nobody ended the trace, it is uncertain."""
    # Status 1: a machine that got no processor for a while has stalled as well, and that is certain.
    text = weft('explain', trace, statuses=(0, 1)).stdout
    assert 'hang (uncertain): bind' in text and 'lost wake-up' in text and 'condition' in text and '"ARP response"' in text and '"main"' in text, text
    return text


hung = Machine('bad')
counted = hung.wait_for_line('hung')
events = check('ram', counted)
check_hang('ram')
print(f'pass: in a hung machine\'s memory file, while it runs: {len(events)} events, all {counted["arrived"]} interrupts that it counted')

# Interrupts are recorded as they arrive: an interrupt during another one waits.
times = {}
for e in events:
    if e['op'] in ('create', 'run'):
        times.setdefault(e['promise'], {})[e['op']] = e['time_ns']
waited = [t['run'] - t['create'] for t in times.values() if len(t) == 2]
assert min(waited) >= 0 and max(waited) > 1000000, (min(waited), max(waited))
print(f'pass: interrupts as they arrive against when they are handled: up to {max(waited) / 1e6:.1f} ms')

hung.ask('dump-guest-memory', paging=False, protocol='file:elf.dump')
assert events_of('elf.dump') == events
check_hang('elf.dump')
hung.ask('stop')
hung.ask('migrate', uri='exec:cat >stream.dump')
wait_for('the migration', lambda: hung.ask('query-migrate').get('status') == 'completed')
assert events_of('stream.dump') == events
hung.ask('pmemsave', val=0, size=64 << 20, filename='raw.dump')
assert events_of('raw.dump') == events
print('pass: the same in dump-guest-memory\'s ELF file, in pmemsave\'s raw one, and in a stream of its pages, as virsh dump writes them')
hung.quit()
assert events_of('ram') == events
text = check_hang('ram')
print('pass: the same after quit; explain says: ' + text.splitlines()[0])

shutil.rmtree('good.weft', ignore_errors=True)
good = Machine('good', file=False)
counted = good.wait_for_line('connected')
weft('save', f'--pid={good.process.pid}', '-w', 'good.weft')
check('good.weft', counted)
weft('explain', 'good.weft', statuses=(0, 1))
good.end()
print('pass: a machine without a memory file is read as a process: weft save --pid')

crash = Machine('crash')
counted = crash.wait_for_line('hung')
wait_for('the crash', lambda: crash.ask('query-status')['status'] == 'shutdown')
check('ram', counted)
check_hang('ram')
crash.quit()
check('ram', counted)
print('pass: a crashed machine, and what it left')

def look_at_ring():
    """Returns the numbers of the notes in the ring of the busy machine; no event is torn or read twice."""
    notes = [int(e['text'].split()[1]) for e in events_of('ram') if e['op'] == 'note']
    gaps = sum(a + 1 != b for a, b in zip(notes, notes[1:]))
    # Packets that are overwritten during a read are missing.
    assert all(a < b for a, b in zip(notes, notes[1:])) and gaps < 239, gaps
    return notes


# A machine at full speed overtakes most reads of its ring; each read of a slow machine finds nearly all of it.
for options, looks, least in ((), 20, 1), (SLOWLY, 10, 10000):
    busy = Machine('busy', options=options)
    busy.wait_for_line('busy')
    wait_for('a ring that goes round', lambda: json.loads(weft('info', '--json', 'ram').stdout)['wrapped'])
    seen = [0]
    while len(seen) < looks or seen[-1] == seen[1]:
        notes = wait_for('notes in a ring that goes round', lambda: (got := look_at_ring()) and len(got) >= least and got)
        seen.append(notes[-1])
    busy.end()
    print(f'pass: a ring that goes round all the time was read {looks} times, without an event that is none; last note {seen[-1]}')
for name in ('ram', 'elf.dump', 'stream.dump'):
    os.unlink(name)
