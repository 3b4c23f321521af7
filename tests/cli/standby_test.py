#!/usr/bin/env python3
"""standby_test.py WEFT HTTP-SERVER: weft on and weft off start and stop recording in programs that stand by.
   WEFT_TEST_MANY=10000 is the number of starts, WEFT_TEST_KILLS=500 the number of killed programs;
      WEFT_TEST_ONLY=killed runs only the tests with that word in their name.
SPDX-License-Identifier: ISC"""
import contextlib
import json
import os
import pwd
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'promise'))
from http_server import PATIENCE, Server, get  # noqa: E402
from waiting import expect, until  # noqa: E402

weft, server = map(os.path.abspath, sys.argv[1:])
MANY = int(os.environ.get('WEFT_TEST_MANY', '20'))
KILLS = int(os.environ.get('WEFT_TEST_KILLS', '5'))
dice = random.Random(1)
NOBODY = 65534


def run(*words, **more):
    return subprocess.run([weft, *map(str, words)], capture_output=True, text=True, check=False, timeout=PATIENCE, **more)


def run_without_error(*words):
    got = run(*words)
    expect(words, (got.returncode, got.stderr), (0, ''))
    return got.stdout


def standby_row(pid):
    return next((row for row in map(json.loads, run_without_error('on', '--json').splitlines()) if row['pid'] == pid), None)


def runs_here(pid):
    try:
        return os.readlink(f'/proc/{pid}/cwd') == os.getcwd()
    except OSError:  # the process, which belongs to another test, has ended
        return False


def standby_pids():
    """Returns the ids of the processes of this test that stand by."""
    rows = map(json.loads, run_without_error('on', '--json').splitlines())
    return [row['pid'] for row in rows if runs_here(row['pid'])]


def complete_info(trace):
    """Returns the facts of weft info --json; fails if events were lost or bytes of the trace were skipped."""
    known, = map(json.loads, run_without_error('info', '--json', trace).splitlines())
    expect(f'{trace}: skipped', known['skipped_count'], 0)
    lost = [known["lost_no_stream"]] + [s[key] for s in known["streams"] for key in ("lost_full", "lost_nested")]
    expect(f"{trace}: lost", any(lost), False)
    return known


class Load:
    """A client that sends requests until the context or the server ends."""

    def __init__(self, address):
        self.server, self.goes_on = address, True
        self.thread = threading.Thread(target=self.ask)

    def ask(self):
        try:
            with self.server.connect() as client:
                while self.goes_on:
                    client.send(get('/f.txt'))
                    client.answer()
        except (OSError, EOFError, SystemExit):
            pass

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.goes_on = False
        self.thread.join()


def program_on_standby_is_recorded_several_times():
    with Server(server, '.', trace='one,standby,size=1M') as program:
        pid = program.process.pid
        expect('nothing was asked', (standby_row(pid)['on'], os.path.exists('one')), (False, False))
        with Load(program):
            run_without_error('on', pid, '--wait=60s')
            expect('it records', standby_row(pid), {'pid': pid, 'name': 'http-server', 'on': True, 'trace': os.path.abspath('one')})
            expect('it records already', run_without_error('on', 'http-server', '--size=2M', '--wait=60s').split()[-1], os.path.abspath('one.2'))
            run_without_error('off', pid, '--wait=60s')
        expect('again', run('off', pid).stderr, f'weft: process {pid} is not recording\n')
        # A sleeping program starts to record at its next event.
        told = run('on', pid, '--wait=1ms')
        expect('it sleeps', (told.returncode, 'has recorded no event since the request' in told.stderr), (0, True))
        program.ask(get('/f.txt'))
        until('it began', lambda: standby_row(pid)['on'])
        program.end()
    for trace in 'one', 'one.2', 'one.3':
        expect(f'{trace}: it is over', 'unfinished' in complete_info(trace) and complete_info(trace)['unfinished'], False)
    # The recording begins with the promises that were pending already, such as the accept and the signal of the server.
    waits = {row['kind'] for row in map(json.loads, run_without_error('dump', '--json', 'one').splitlines()) if row.get('start_ns', 1) < 0}
    expect('what was pending', {'accept', 'signal'} - waits, set())


def recording_switched_on_and_off_many_times_stays_readable():
    with Server(server, '.', trace='many,standby,overwrite,size=256K') as program, Load(program):
        for i in range(MANY):
            run_without_error('on', program.process.pid, '--wait=60s', f'--size={dice.choice((128, 256, 512))}K')
            run_without_error('off', program.process.pid, '--wait=60s')
            if i % 50 == 0:
                complete_info('many')
        complete_info('many')


def killed_programs_leave_readable_traces():
    recorded = 0
    for i in range(KILLS):
        with Server(server, '.', trace=f'killed-{i},standby,size=256K') as program:
            with Load(program):
                asked = subprocess.Popen([weft, 'on', str(program.process.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                # Half of the servers are killed soon after the request to record, the others soon after their trace exists.
                while i % 2 and asked.poll() is None and not os.path.exists(f'killed-{i}'):
                    pass
                time.sleep(dice.random() / 100)
                # Kills weft on first, or the server first.
                for dies in dice.sample((asked, program.process), 2):
                    dies.kill()
                    dies.wait()
            program.kill()
        told = run('info', f'killed-{i}')
        # A program that has recorded no event yet has no trace that can be read.
        if 'no events in the trace' not in told.stderr and os.path.exists(f'killed-{i}/stream-0-0'):
            complete_info(f'killed-{i}')
            recorded += 1
    print(f'{recorded} of {KILLS} were killed while they recorded')


def unknown_and_foreign_processes_are_refused():
    expect('no process', run('on', 4194305).stderr, 'weft: no such process: 4194305\n')
    expect('one that does not', run('off', os.getpid()).stderr, f'weft: process {os.getpid()} does not stand by; weft on lists the processes that do\n')
    if os.geteuid() == 0:
        with Server(server, '.', trace='strangers,standby') as program:
            try:
                told = run('on', program.process.pid, user=NOBODY, group=NOBODY, cwd='/')
            except PermissionError:
                return print('another user may not run this command: not tried')
            expect('another user', ('Permission denied' in told.stderr, told.returncode, standby_row(program.process.pid)['on']), (True, 2, False))


def program_killed_before_it_records_is_reported_by_weft_on():
    """A stopped program is killed while weft on waits for it."""
    with Server(server, '.', trace='gone,standby') as program:
        pid = program.process.pid
        os.kill(pid, 19)
        with subprocess.Popen([weft, 'on', str(pid), '--wait=60s'], stderr=subprocess.PIPE, text=True) as asked:
            time.sleep(dice.random() / 10)
            program.kill()
            said = asked.communicate(timeout=PATIENCE)[1]
    expect('what is said', (asked.returncode, said in (f'weft: process {pid} has ended\n', f'weft: no such process: {pid}\n')), (2, True))


def full_disk_is_reported():
    """If the disk is full at the start of the recording, the server prints an error and serves on; it can be recorded when the disk has space again."""
    os.mkdir('disk')
    ask = "import sys, urllib.request as u; u.build_opener(u.ProxyHandler({})).open(sys.argv[1] + 'f.txt').read()"
    script = f"""mount -t tmpfs -o size=64k none disk || exit 77
        WEFT_TRACE=disk/trace,standby,size=1M {server} --port=0 . >said &
        server=$!
        while ! grep -q http said; do sleep 0.05; done
        while {sys.executable} -c "{ask}" $(cat said); do sleep 0.05; done 2>asks &
        {weft} on $server --wait=60s 2>refused
        mount -o remount,size=8m disk
        {weft} on $server --wait=60s && {weft} off $server --wait=60s && {weft} info $(ls -d disk/trace*)
        kill $server; wait"""
    got = subprocess.run(['unshare', '-rm', 'bash', '-c', script], capture_output=True, text=True, check=False, timeout=4 * PATIENCE)
    if got.returncode == 77 or 'unshare' in got.stderr:
        return print('no disk could be made that is full')
    with open('refused', encoding='utf-8') as refused:
        expect('a full disk', 'cannot record' in (said := refused.read()) and said.endswith(': No space left on device\n'), True)
    expect('with room', ('records into' in got.stdout, 'streams' in got.stdout), (True, True))


LOOP = """import asyncio, uvloop
async def turns():
    while True:
        await asyncio.sleep(0.01)
uvloop.install()
asyncio.run(turns())"""
GLIB = """from gi.repository import GLib
def turn():
    GLib.timeout_add(10, turn)
    return False
turn()
GLib.MainLoop().run()"""


SERVER = """import asyncio, socket, sys
async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(line)
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', int(sys.argv[1]))
    # Nobody reads from the one, and the other's queue is full, so that a connect goes on for long.
    ends, full, others = socket.socketpair(), socket.socket(), [socket.socket() for _ in range(3)]
    reader, writer = await asyncio.open_unix_connection(sock=ends[0])
    writer.write(bytes(10000000))
    full.bind(('127.0.0.1', 0))
    full.listen(0)
    for other in others:
        other.setblocking(False)
        other.connect_ex(full.getsockname())
    late = asyncio.ensure_future(asyncio.open_connection(*full.getsockname()))
    await asyncio.sleep(4000)
"""
UVLOOP = SERVER + """
import uvloop
uvloop.install()
asyncio.run(main())"""
GLIB_SERVER = """import sys
from gi.repository import Gio, GLib
kept = []
def came(service, connection, source):
    kept.append(connection)
    connection.get_output_stream().write(b'hello')
    return True
service = Gio.SocketService()
service.add_inet_port(int(sys.argv[1]), None)
service.connect('incoming', came)
service.start()
GLib.timeout_add_seconds(4000, lambda: True)
GLib.MainLoop().run()"""
IDLE = 3  # connections


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def connect(port):
    """Opens a connection that the program has accepted."""
    found = []

    def is_there():
        try:
            found.append(socket.create_connection(('127.0.0.1', port)))
        except ConnectionRefusedError:
            return False
        return True
    until('the program listens', is_there)
    found[0].settimeout(PATIENCE)
    found[0].sendall(b'version\r\n')
    found[0].recv(100)
    return found[0]


def stops(command, pid):
    os.kill(pid, 15)
    command.communicate(timeout=PATIENCE)


@contextlib.contextmanager
def stands_by(name, *words):
    """Runs a program with weft record; when the context ends, the program and all its children are killed."""
    with subprocess.Popen([weft, 'record', '--standby', '-o', name, '--', *words], stderr=subprocess.PIPE, text=True, start_new_session=True) as command:
        try:
            yield command
        finally:
            if command.poll() is None:
                os.killpg(command.pid, 9)


def programs_asleep_in_epoll_wait_record_pending_promises():
    """Programs that sleep in epoll_wait() start to record at once, with the promises that are pending already."""
    python = ['/usr/bin/python3', '-c']
    memcached = shutil.which('memcached')
    for name, has, words, kinds in (
            ('uvloop', 'uvloop', [*python, UVLOOP], {'loop': 1, 'listen': 1, 'connection': IDLE, 'read': IDLE, 'timer': 1, 'connect': 1, 'write': 1}),
            ('gio', 'gi', [*python, GLIB_SERVER], {'loop': 1, 'poll': 1, 'timer': 1}),
            ('memcached', None, [memcached, '-u', pwd.getpwuid(os.geteuid()).pw_name, '-U', '0', '-l', '127.0.0.1', '-p'], {'listen': 1, 'connection': IDLE})):  # no loop is expected, because newer versions begin a new loop for each iteration
        if not words[0] or (has and subprocess.run([*python, f'import {has}'], check=False, capture_output=True).returncode):
            print(f'no {name} here: not tried')
            continue
        port = free_port()
        with stands_by(f'asleep-{name}', *words, str(port)) as command:
            clients = [connect(port) for _ in range(IDLE)]
            pid, = standby_pids()
            for _ in range(2):
                run_without_error('on', pid, '--wait=60s')
                trace = standby_row(pid)['trace']

                def pending():
                    # A promise that should resolve and has been pending for long is listed as failed.
                    rows = [row for row in map(json.loads, run_without_error('dump', '--json', trace).splitlines())
                            if row.get('start_ns', 0) < 0 and (row['end'] == 'pending' or row['failure'] == 'should resolve, but never did')]
                    kept = [row['kind'] for row in rows]
                    return all(kept.count(kind) >= least for kind, least in kinds.items())
                until(f'{name}: {kinds} are told of', pending)
                run_without_error('off', pid, '--wait=60s')
                complete_info(trace)
            for client in clients:
                client.close()
            stops(command, pid)


def requests_older_than_the_recording_are_counted():
    """neovim opens a FIFO without a writer before the recording; weft counts this request as older than the recording."""
    if not shutil.which('nvim'):
        print('no nvim here: not tried')
        return
    os.mkfifo('fifo')
    script = 'lua vim.loop.fs_open("fifo", "r", 438, function() end) io.open("asked", "w"):close()'
    with stands_by('unknown', shutil.which('nvim'), '--headless', '-u', 'NONE', '-c', script) as command:
        until('neovim opens it', lambda: os.path.exists('asked'))
        pid, = standby_pids()
        run_without_error('on', pid, '--wait=60s')
        until('it is counted', lambda: '1 request is older than the recording' in run_without_error('events', standby_row(pid)['trace']))
        os.kill(pid, 9)
        command.communicate(timeout=PATIENCE)


def unmodified_programs_stand_by():
    for name, module, text in ('libuv', 'uvloop', LOOP), ('GLib', 'gi', GLIB):
        if subprocess.run(['/usr/bin/python3', '-c', f'import {module}'], check=False, capture_output=True).returncode:
            print(f'/usr/bin/python3 has no {module}: not tried')
            continue
        with stands_by(name, '/usr/bin/python3', '-c', text) as command:
            def is_there():
                if command.poll() is not None:
                    sys.exit(f'{name}: weft record ended: {command.returncode}: {command.stderr.read()}')
                return bool(standby_pids())
            until(f'{name} stands by', is_there)
            pid, = standby_pids()
            for turn in range(3):
                path = os.path.abspath(f'{name}/python3-{pid}' + (f'.{turn + 1}' if turn else ''))
                run_without_error('on', pid, '--wait=60s')
                expect('where to', standby_row(pid)['trace'], path)
                until(f'{name} has turned', lambda path=path: 'timer' in run_without_error('dump', path))
                run_without_error('off', pid, '--wait=60s')
                complete_info(path)
            stops(command, pid)


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    os.chmod(place, 0o755)
    with open('f.txt', 'w', encoding='utf-8') as f:
        f.write('(the whole of it)\n')
    for test in program_on_standby_is_recorded_several_times, recording_switched_on_and_off_many_times_stays_readable, killed_programs_leave_readable_traces, unknown_and_foreign_processes_are_refused, program_killed_before_it_records_is_reported_by_weft_on, full_disk_is_reported, unmodified_programs_stand_by, programs_asleep_in_epoll_wait_record_pending_promises, requests_older_than_the_recording_are_counted:
        if os.environ.get('WEFT_TEST_ONLY', '') in test.__name__:
            test()
