"""recorded.py: runs programs under weft record, and reads their traces.  SPDX-License-Identifier: ISC"""

import ctypes
import glob
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from others import closed_to_others

PATIENCE = 120
ENV = {key: value for key, value in os.environ.items() if not key.startswith('WEFT_')}


def passes(rounds):
    """Returns a Python program with two OS threads; one wakes the other `rounds` times, so both run often and shortly."""
    return f"""
import os, threading, time
come, go = os.pipe()
reader = threading.Thread(target=lambda: [os.read(come, 1) for _ in range({rounds})])
reader.start()
for _ in range({rounds}):
    os.write(go, b'x')
    time.sleep(0.0003)
reader.join()
"""


def fail(message):
    sys.exit(f'FAILED: {message}')


def expect(got, want, what):
    if got != want:
        fail(f'{what}: {got!r}, not {want!r}')


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            fail(what)
        time.sleep(0.05)


def refuse(call):
    """Makes the system call with number `call` fail for this process and its children; exits with 77 if that is impossible."""
    load, equal, answer, number, allow, deny = 0x20, 0x15, 0x06, 0, 0x7fff0000, 0x00050000 | 13
    steps = [(load, 0, 0, number), (equal, 0, 1, call), (answer, 0, 0, deny), (answer, 0, 0, allow)]
    code = ctypes.create_string_buffer(b''.join(struct.pack('<HBBI', *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack('<H6xQ', len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
        os._exit(77)


def need(program):
    """Returns the path of a program; skips the test if the program is not installed."""
    path = program if os.path.exists(program) else shutil.which(program)
    if not path:
        print(f'SKIPPED: {program} is not installed')
        sys.exit(77)
    return path


def need_module(name):
    """Returns the path of Debian's Python; skips the test if it lacks the module."""
    python = need('/usr/bin/python3')
    if subprocess.run([python, '-c', f'import {name}'], stderr=subprocess.DEVNULL, check=False).returncode:
        print(f'SKIPPED: python3-{name} is not installed')
        sys.exit(77)
    return python


def free_port(*others):
    """Returns a port that is free for UDP and TCP, and is not among `others`."""
    while True:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(('127.0.0.1', 0))
            port = tcp.getsockname()[1]
            try:
                udp.bind(('127.0.0.1', port))
            except OSError:
                continue
        if port not in others:
            return port


def need_way(path):
    """Skips the test if another user than root could not reach the path."""
    if closed_to_others(path):
        print(f'SKIPPED: another user cannot enter {closed_to_others(path)}')
        sys.exit(77)


class Recording:
    """A run of a command under weft record, and its traces.  If `wait` is false, the caller has to end the command.
        `before`: a command that runs weft, such as setpriv for another user.  `record`: more options of weft record."""

    def __init__(self, weft, folder, command, wait=True, env=None, before=(), record=(), **options):
        self.weft, self.folder = os.path.abspath(weft), folder
        self.process = subprocess.Popen([*before, self.weft, 'record', '--mode=grow', *record, '-o', folder, '--', *command], env={**ENV, **(env or {})},
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        if wait:
            self.out, self.err = self.process.communicate(timeout=PATIENCE)
            self.status = self.process.returncode

    def traces(self, name='*'):
        return sorted(glob.glob(os.path.join(self.folder, name + '-*', 'metadata')))

    def trace(self, name='*'):
        """Returns the only trace of a program with this name."""
        found = self.traces(name)
        if len(found) != 1:
            fail(f'{len(found)} traces of {name} in {os.listdir(self.folder) if os.path.isdir(self.folder) else "nothing"}')
        return Trace(self.weft, os.path.dirname(found[0]))

    def all(self):
        return [Trace(self.weft, os.path.dirname(path)) for path in self.traces()]

    def ids(self, name):
        """Waits until a process with this name records; returns the ids of all such processes."""
        end = time.monotonic() + PATIENCE
        while not self.traces(name):
            if time.monotonic() > end:
                fail(f'{name} records nothing')
            time.sleep(0.05)
        return [int(os.path.basename(os.path.dirname(path)).rsplit('-', 1)[1].split('.')[0]) for path in self.traces(name)]

    def end(self, name, number):
        """Sends signal `number` to the processes with this name, and waits for the end of the command."""
        for process in self.ids(name):
            os.kill(process, number)
        self.out, self.err = self.process.communicate(timeout=PATIENCE)
        self.status = self.process.returncode


class Trace:
    def __init__(self, weft, path):
        self.weft, self.path = weft, path

    def ask(self, *words):
        run = subprocess.run([self.weft, *words, self.path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        if run.returncode not in (0, 1):
            fail(f'weft {" ".join(words)} of {self.path}: {run.stderr}')
        return [json.loads(line) for line in run.stdout.splitlines()]

    def has_events(self):
        """Returns whether the trace has events: a program that has just started to record may have none."""
        return subprocess.run([self.weft, 'info', self.path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE, check=False).returncode in (0, 1)

    def promises(self, kind=None, label=None):
        """Returns the promises of this kind that have this text in a label."""
        return [p for p in self.ask('dump', '--json') if p.get('promise', -1) > 0 and kind in (None, p['kind']) and
                (label is None or any(label in text for _, text in p['labels']))]

    def promise(self, kind, label):
        found = self.promises(kind, label)
        if len(found) != 1:
            fail(f'{len(found)} promises {kind} "{label}" in {self.path}')
        return found[0]

    def kept_by(self, loop):
        """Returns the labels of the promises for which the loop with this label waits at the end of the trace."""
        return sorted(wait['awaited'].split('"')[1] for wait in self.ask('waits', '--json') if f'"{loop}"' in wait.get('name', ''))

    def notes(self):
        return [event['text'] for event in self.ask('events', '--json') if event['op'] == 'note']

    def findings(self, stall='10ms'):
        """Returns the findings of weft explain --json, by kind."""
        found = {}
        for line in self.ask('explain', '--json', '--stall=' + stall):
            if 'finding' in line:
                found.setdefault(line['finding'], []).append(line)
        return found

    def alarms(self, stall='10ms'):
        return [f'{line["finding"]}: {line["title"]}' for lines in self.findings(stall).values() for line in lines
                if line['severity'] == 'alarm']

    def lost(self):
        return self.ask('info', '--json')[0]['lost']


def check_answered_reads(weft, asks, answers):
    """Checks that 8 requests and 8 responses on one connection are 16 messages; returns the output of weft path for the longest read of the client."""
    both = [asks.path, answers.path]

    def ask(*words):
        return subprocess.run([weft, *words], capture_output=True, text=True, check=True, timeout=PATIENCE).stdout

    about = json.loads(ask('info', '--json', *both).splitlines()[-1])
    expect((about['messages'], about['connections']), (16, 1), 'messages between them')
    longest = max(asks.promises('read'), key=lambda read: read['end_ns'] - read['start_ns'])['promise']
    return ask('path', *both, f'--promise={longest * 10}')
