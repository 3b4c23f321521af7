#!/usr/bin/env python3
"""core_test.py WEFT SERVER: weft reads the ring in the memory of an http-server that is stopped and then killed by SIGSEGV.

The stopped process and gdb's core dump of it give the same events, with all requests of the clients.  The kernel's core dump may have
further events from the time until the server died.  A core dump that contains the mapped files of a trace directory gives the same
events as the directory.  SPDX-License-Identifier: ISC"""
import glob
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

WEFT, SERVER = map(os.path.abspath, sys.argv[1:])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'promise'))
from http_server import Client, get  # noqa: E402

REQUESTS = 40
LIMIT = 60  # a time limit in seconds that suffices for a slow machine


def weft(*args, status=0):
    got = subprocess.run([WEFT, *args], capture_output=True, text=True, timeout=LIMIT)
    assert got.returncode == status, (args, got.returncode, got.stderr)
    return got


def events_of(trace):
    got = weft('events', '--json', trace)
    assert got.stderr == '', got.stderr
    return [json.loads(line) for line in got.stdout.splitlines()]


def without_times(events):
    return [{key: value for key, value in e.items() if key != 'time_ns'} for e in events]


def wait_until(what, condition):
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def allow_cores():
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


class Run:
    """A server that has answered the requests and was then stopped by SIGSTOP."""

    def __init__(self, trace, cores):
        self.process = subprocess.Popen([SERVER, '--port=0', '.'], env={**os.environ, 'WEFT_TRACE': trace}, cwd=cores,
                                        stdout=subprocess.PIPE, text=True, preexec_fn=allow_cores)
        address = ('127.0.0.1', int(self.process.stdout.readline().strip().strip('/').rpartition(':')[2]))
        for i in range(REQUESTS):
            with Client(address) as client:
                client.send(get(f'/file-{i % 7}?{i}'))
                assert client.answer()[0] == (200 if i % 7 == 0 else 404)
        self.process.send_signal(signal.SIGSTOP)
        wait_until('it does not stop', lambda: ') T ' in open(f'/proc/{self.process.pid}/stat').read())

    def dump(self, name):
        subprocess.run(['gcore', '-o', name, str(self.process.pid)], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=LIMIT)
        return f'{name}.{self.process.pid}'

    def crash(self):
        self.process.send_signal(signal.SIGSEGV)
        self.process.send_signal(signal.SIGCONT)
        self.process.communicate(timeout=LIMIT)
        assert self.process.returncode == -signal.SIGSEGV, self.process.returncode


def check_requests(events):
    asked = {e['text'] for e in events if e['op'] == 'label' and e['text'].startswith('GET ')}
    assert asked >= {f'GET /file-{i % 7}?{i}' for i in range(REQUESTS)}, sorted(asked)


def check_memory(cores):
    for options in ('memory', 'memory,size=1M,packet=4096,streams=8'):
        run = Run(options, cores)
        pid = str(run.process.pid)
        copy = os.path.join(cores, 'copy-' + pid)
        weft('save', '--pid=' + pid, '-w', copy)
        events = events_of(copy)
        check_requests(events)
        assert events_of(f'/proc/{pid}/mem') == events
        dump = run.dump('gdb')
        assert events_of(dump) == events
        assert str(json.loads(weft('info', '--json', dump).stdout)['pid']) == pid
        run.crash()
        assert 'no process ' + pid in weft('save', '--pid=' + pid, '-w', 'none', status=2).stderr
        made = glob.glob('core*')
        for core in made:
            got = events_of(core)  # SIGCONT wakes all OS threads of the server, which may record further events until SIGSEGV kills it
            assert got[:len(events)] == events, (len(got), len(events))
            assert all(e['time_ns'] >= events[-1]['time_ns'] for e in got[len(events):]) and len(got) < 2 * len(events), len(got)
            os.unlink(core)
        print(f'{options}: {len(events)} events in the stopped process, in gdb\'s core dump' +
              (', in the kernel\'s' if made else '; the kernel is told not to write one here'))


def check_directory(cores):
    run = Run('files', cores)
    pid = run.process.pid
    events = events_of(f'/proc/{pid}/mem')  # weft finds the trace directory of the process
    assert events == events_of('files')
    got = weft('info', run.dump('lacking'), status=2).stderr
    assert 'recorded into ' + os.path.join(os.path.realpath(cores), 'files') in got, got
    with open(f'/proc/{pid}/coredump_filter', 'w') as file:
        file.write('0x7f')
    assert without_times(events_of(run.dump('whole'))) == without_times(events)
    run.process.kill()
    run.process.communicate()
    print(f'files: {len(events)} events in the directory, and in a core dump with its files')


with tempfile.TemporaryDirectory() as cores:
    os.chdir(cores)
    with open('file-0', 'w') as file:
        file.write('hello\n' * 1000)
    check_memory(cores)
    check_directory(cores)
