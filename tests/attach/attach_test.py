#!/usr/bin/env python3
"""attach_test.py WEFT SERVER STATIC-SERVER LOOP: `weft record --pid` and `weft on` record a program that was started without weft.

STATIC-SERVER and LOOP (tests/look/loop.c) may be missing ('').  WEFT_TEST_MANY=1000 attaches so often.  SPDX-License-Identifier: ISC"""
import hashlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE = 60
weft, server, static_server, loop = (os.path.abspath(path) if path else '' for path in sys.argv[1:5])


def fail(text):
    sys.exit(f'attach_test.py: {text}')


def expect(what, found, wanted):
    if found != wanted:
        fail(f'{what}: {found!r}, not {wanted!r}')


def run(*words):
    return subprocess.run([weft, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE, check=False)


class Server:
    """A server that was started without weft."""

    def __init__(self, *words, path=server):
        self.process = subprocess.Popen([path, *words], stdout=subprocess.PIPE, text=True)
        self.port, self.pid = map(int, self.process.stdout.readline().split())
        self.peer = socket.create_connection(('127.0.0.1', self.port), timeout=PATIENCE)
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.peer.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, times):
        for _ in range(times):
            line = b'line %d\n' % self.count
            self.count += 1
            self.peer.sendall(line)
            answer = b''
            while not answer.endswith(b'\n'):
                part = self.peer.recv(512)
                if not part:
                    fail(f'the program has closed the connection; its status is {self.process.poll()}')
                answer += part
            expect('an answer', answer, line)

    def code(self):
        """Returns digests of the program's code: of all mappings of files that the program does not write."""
        digests = {}
        with open(f'/proc/{self.pid}/maps', encoding='utf-8') as maps, open(f'/proc/{self.pid}/mem', 'rb') as memory:
            for line in maps:
                rights, path = line.split()[1], line.split()[-1]
                if path[0] == '/' and 'w' not in rights and not re.search('libweft|libgcc_s', path):
                    begin, end = (int(word, 16) for word in line.split()[0].split('-'))
                    memory.seek(begin)
                    digests[begin, path] = hashlib.sha256(memory.read(end - begin)).hexdigest()
        return digests


class Load(threading.Thread):
    """A client that sends lines to the server all the time."""

    def __init__(self, program):
        super().__init__()
        self.program, self.is_over, self.error = program, False, None

    def run(self):
        try:
            while not self.is_over:
                self.program.ask(1)
        except (SystemExit, OSError) as error:
            self.error = error

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.join()
        if self.error:
            fail(f'under load: {self.error}')


def record(pid, trace, work):
    """Attaches weft record, runs work(), and returns the output of weft."""
    with subprocess.Popen([weft, 'record', '--pid', str(pid), '-o', trace], stderr=subprocess.PIPE, text=True) as command:
        said = ''
        while 'Ctrl-C' not in said:
            line = command.stderr.readline()
            if not line:
                fail(f'weft record has ended: {said}')
            said += line
        work()
        command.send_signal(signal.SIGINT)
        said += command.stderr.read()
        expect(f'the status of weft record, which says {said}', command.wait(PATIENCE), 0)
    return said


def a_program_is_recorded_and_runs_on_as_before():
    with Server() as program:
        program.ask(5)
        before = program.code()
        said = record(program.pid, 'first', lambda: program.ask(40))
        if not re.search(r'borrowed for \d+\.\d ms, and all 2 stood still for \d+\.\d ms', said):
            fail(f'no word of the stop: {said}')
        program.ask(5)
        expect('the code afterwards', program.code(), before)
        story = run('explain', 'first').stdout
        if not re.search(r'served (39|40) requests', story):
            fail(f'the requests are missing: {story}')
        if 'attached while the program ran, without programs that it starts' not in run('info', 'first').stdout:
            fail('weft info does not say that weft attached, and what it leaves out')
        record(program.pid, 'second', lambda: program.ask(10))
        if not re.search(r'served (9|10) requests', run('explain', 'second').stdout):
            fail('the second recording lacks requests')
        expect('the code after the second recording', program.code(), before)


def loop_older_than_the_recording_is_recorded_with_its_handles():
    def wait_for_handles():
        waits, end = '', time.monotonic() + PATIENCE
        while waits.count('since') < 4 and time.monotonic() < end:
            time.sleep(0.05)
            waits = run('waits', 'loop').stdout
        for text in 'loop 2 "uv_run"', 'listen', 'signal', 'timer':
            if text not in waits:
                fail(f'{text} is missing: {waits}')

    with subprocess.Popen([loop, 'fifo'], stdout=subprocess.PIPE, text=True) as program:
        expect('the program', program.stdout.readline(), 'ready\n')
        record(program.pid, 'loop', wait_for_handles)
        expect('the status of the program', program.poll(), None)
        story, information = run('explain', 'loop').stdout, run('info', 'loop').stdout
        # There must be no finding that the loop has not returned, because the program runs on.
        if re.search('^alive', story, re.M) or 'the recording ended while the program went on' not in information:
            fail(f'the end of the recording is taken for that of the program: {story}{information}')
        program.kill()


def program_started_through_a_link_has_the_name_of_the_link():
    """weft attaches to a program that was started through a symbolic link, and that renames its first thread, as redis-server and Node.js 24 do."""
    os.symlink(server, 'till')
    with Server('renamed', path=os.path.abspath('till')) as program:
        expect('its present name', open(f'/proc/{program.pid}/comm', encoding='utf-8').read(), 'till-thread\n')
        with Load(program):
            begun = run('on', program.pid)
            if f'{program.pid}  till  records into {os.getcwd()}/till.weft/till-{program.pid}' not in begun.stdout:
                fail(f'weft on: {begun}')
            for name in 'till-thread', 'till':
                expect(f'weft off {name}', run('off', name).returncode, 0)
                expect('weft on', run('on', program.pid).returncode, 0)
            run('off', program.pid)
        again = run('off', program.pid)
        expect('weft off of a program that does not record', (again.returncode, again.stderr), (2, f'weft: process {program.pid} is not recording\n'))
        for what in os.listdir('till.weft'):
            information = run('info', f'till.weft/{what}').stdout
            if not re.search('^process +till$', information, re.M):
                fail(f'weft info: {information}')
        if re.search('attach-server', run('events', f'till.weft/till-{program.pid}').stdout):
            fail('a function is said to be in attach-server')
        waits = run('waits', program.pid).stdout
        if not re.search(rf'seen once, at .*: till \(process {program.pid}\)', waits) or 'attach-server' in waits:
            fail(f'weft waits: {waits}')


def weft_waits_looks_at_a_program_once_after_its_recording():
    with Server() as program:
        record(program.pid, 'over', lambda: program.ask(40))
        waits = run('waits', program.pid)
        if 'seen once' not in waits.stdout or waits.stderr:
            fail(f'weft waits: {waits}')


def killed_program_ends_its_recording():
    with Server() as program:
        with subprocess.Popen([weft, 'record', '--pid', str(program.pid), '-o', 'ends'], stderr=subprocess.PIPE, text=True) as command:
            while 'attached' not in command.stderr.readline():
                expect('weft record', command.poll(), None)
            program.ask(5)
            while 'Ctrl-C' not in command.stderr.readline():
                expect('weft record', command.poll(), None)
            program.process.kill()
            said = command.stderr.read()
            expect(f'the status of weft record, which says {said}', command.wait(PATIENCE), 0)


def switching_the_recording_under_load_loses_no_answer():
    rounds = int(os.environ.get('WEFT_TEST_MANY', '5'))
    with Server() as program:
        before = program.code()
        with Load(program):
            for number in range(rounds):
                for verb in 'on', 'off':
                    result = run(verb, program.pid)
                    expect(f'round {number}: weft {verb}, which says {result.stderr}', result.returncode, 0)
        expect('the code afterwards', program.code(), before)
        expect('the program', program.process.poll(), None)


def unrecordable_processes_are_refused_with_a_reason():
    def refuse(program, reason):
        result = run('record', '--pid', program.pid, '-o', 'refused')
        expect(f'the lines of {result.stderr}', len(result.stderr.splitlines()), 1)
        if reason not in result.stderr or result.returncode != 2 or os.path.exists('refused'):
            fail(f'not refused for {reason}: {result.stderr}')
        program.ask(2)

    with Server('seccomp') as program:
        refuse(program, 'seccomp')
    with Server('traced') as program:
        refuse(program, 'is traced by process')
        os.kill(program.pid, signal.SIGKILL)
    if static_server:
        with Server(path=static_server) as program:
            refuse(program, 'linked statically')
    with Server() as program:
        os.kill(program.pid, signal.SIGSTOP)
        expect('a stopped program', run('record', '--pid', program.pid, '-o', 'refused').stderr.count('kill -CONT'), 1)
        os.kill(program.pid, signal.SIGCONT)
        both = run('record', '--pid', program.pid, '--', 'true')
        expect('a process and a command', (both.returncode, 'cannot be combined' in both.stderr), (2, True))
    expect('no process', 'no process' in run('record', '--pid', 2**22 + 1).stderr, True)
    expect('no number', 'not a process id: x' in run('record', '--pid', 'x').stderr, True)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    a_program_is_recorded_and_runs_on_as_before()
    if loop:
        loop_older_than_the_recording_is_recorded_with_its_handles()
    program_started_through_a_link_has_the_name_of_the_link()
    weft_waits_looks_at_a_program_once_after_its_recording()
    killed_program_ends_its_recording()
    switching_the_recording_under_load_loses_no_answer()
    unrecordable_processes_are_refused_with_a_reason()
