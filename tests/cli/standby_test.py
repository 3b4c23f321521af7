#!/usr/bin/env python3
"""standby_test.py WEFT HTTP-SERVER: programs that stand by are told to record, and to stop.  WEFT_TEST_MANY=10000 does so as often,
WEFT_TEST_KILLS=500 kills them as often meanwhile; WEFT_TEST_ONLY=killed runs the test of that name alone.
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


def fine(*words):
    got = run(*words)
    expect(words, (got.returncode, got.stderr), (0, ''))
    return got.stdout


def standing(pid):
    return next((row for row in map(json.loads, fine('on', '--json').splitlines()) if row['pid'] == pid), None)


def mine():
    """Processes of this test's folder that stand by."""
    rows = map(json.loads, fine('on', '--json').splitlines())
    return [row['pid'] for row in rows if os.path.realpath(f'/proc/{row["pid"]}/cwd') == os.getcwd()]


def known_of(trace):
    """What weft info says of it: everything that was counted is there, and nothing torn."""
    known, = map(json.loads, fine('info', '--json', trace).splitlines())
    expect(f'{trace}: skipped', known['skipped_count'], 0)
    lost = [known["lost_no_stream"]] + [s[key] for s in known["streams"] for key in ("lost_full", "lost_nested")]
    expect(f"{trace}: lost", any(lost), False)
    return known


class Load:
    """Requests that never end, until the context does; a server that is killed ends them."""

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


def one_after_the_other():
    with Server(server, '.', trace='one,standby,size=1M') as program:
        pid = program.process.pid
        expect('nothing was asked', (standing(pid)['on'], os.path.exists('one')), (False, False))
        with Load(program):
            fine('on', pid, '--wait=60s')
            expect('it records', standing(pid), {'pid': pid, 'name': 'http-server', 'on': True, 'trace': os.path.abspath('one')})
            expect('it records already', fine('on', 'http-server', '--size=2M', '--wait=60s').split()[-1], os.path.abspath('one.2'))
            fine('off', pid, '--wait=60s')
        expect('again', run('off', pid).stderr, f'weft: process {pid} records nothing\n')
        # It sleeps: what it is asked for it does with its next event.
        told = run('on', pid, '--wait=1ms')
        expect('it sleeps', (told.returncode, 'does nothing at the moment' in told.stderr), (0, True))
        program.ask(get('/f.txt'))
        until('it began', lambda: standing(pid)['on'])
        program.end()
    for trace in 'one', 'one.2', 'one.3':
        expect(f'{trace}: it is over', 'unfinished' in known_of(trace) and known_of(trace)['unfinished'], False)
    # The server had been there for long: what it waits for was told at once.
    waits = {row['kind'] for row in map(json.loads, fine('dump', '--json', 'one').splitlines()) if row.get('start_ns', 1) < 0}
    expect('what was pending', {'accept', 'signal'} - waits, set())


def many_times():
    with Server(server, '.', trace='many,standby,overwrite,size=256K') as program, Load(program):
        for i in range(MANY):
            fine('on', program.process.pid, '--wait=60s', f'--size={dice.choice((128, 256, 512))}K')
            fine('off', program.process.pid, '--wait=60s')
            if i % 50 == 0:
                known_of('many')
        known_of('many')


def killed():
    recorded = 0
    for i in range(KILLS):
        with Server(server, '.', trace=f'killed-{i},standby,size=256K') as program:
            with Load(program):
                asked = subprocess.Popen([weft, 'on', str(program.process.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                # Every other one as it begins to record, or soon after.
                while i % 2 and asked.poll() is None and not os.path.exists(f'killed-{i}'):
                    pass
                time.sleep(dice.random() / 100)
                # Who asks, and who is asked: in both orders.
                for dies in dice.sample((asked, program.process), 2):
                    dies.kill()
                    dies.wait()
            program.kill()
        told = run('info', f'killed-{i}')
        # Before its first event there is nothing to be told.
        if 'no events in the trace' not in told.stderr and os.path.exists(f'killed-{i}/stream-0-0'):
            known_of(f'killed-{i}')
            recorded += 1
    print(f'{recorded} of {KILLS} were killed while they recorded')


def strangers():
    expect('no process', run('on', 4194305).stderr, 'weft: no process 4194305\n')
    expect('one that does not', run('on', os.getpid()).stderr, f'weft: process {os.getpid()} does not stand by; weft on lists those that do\n')
    if os.geteuid() == 0:
        with Server(server, '.', trace='strangers,standby') as program:
            try:
                told = run('on', program.process.pid, user=NOBODY, group=NOBODY, cwd='/')
            except PermissionError:
                return print('another user may not run this command: not tried')
            expect('another user', ('Permission denied' in told.stderr, told.returncode, standing(program.process.pid)['on']), (True, 2, False))


def gone():
    """A program that is held up, and killed meanwhile."""
    with Server(server, '.', trace='gone,standby') as program:
        pid = program.process.pid
        os.kill(pid, 19)
        with subprocess.Popen([weft, 'on', str(pid), '--wait=60s'], stderr=subprocess.PIPE, text=True) as asked:
            time.sleep(dice.random() / 10)
            program.kill()
            said = asked.communicate(timeout=PATIENCE)[1]
    expect('what is said', (asked.returncode, said in (f'weft: process {pid} has ended\n', f'weft: no process {pid}\n')), (2, True))


def no_room():
    """A disk that is full when recording is to begin: the server says so, serves, and records as soon as there is room."""
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
        expect('a full disk', 'records nothing' in (said := refused.read()) and said.endswith(': No space left on device\n'), True)
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
    """A connection of which the program has heard."""
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
    """weft record of a program, which with all that it started ends at the latest when something went wrong here."""
    with subprocess.Popen([weft, 'record', '--standby', '-o', name, '--', *words], stderr=subprocess.PIPE, text=True, start_new_session=True) as command:
        try:
            yield command
        finally:
            if command.poll() is None:
                os.killpg(command.pid, 9)


def asleep():
    """Programs that sleep are told to record, and tell at once what has been pending for long."""
    python = ['/usr/bin/python3', '-c']
    memcached = shutil.which('memcached')
    for name, has, words, kinds in (
            ('uvloop', 'uvloop', [*python, UVLOOP], {'loop': 1, 'listen': 1, 'connection': IDLE, 'read': IDLE, 'timer': 1, 'connect': 1, 'write': 1}),
            ('gio', 'gi', [*python, GLIB_SERVER], {'loop': 1, 'poll': 1, 'timer': 1}),
            ('memcached', None, [memcached, '-u', pwd.getpwuid(os.geteuid()).pw_name, '-U', '0', '-l', '127.0.0.1', '-p'], {'listen': 1, 'connection': IDLE, 'loop': 1})):
        if not words[0] or (has and subprocess.run([*python, f'import {has}'], check=False, capture_output=True).returncode):
            print(f'no {name} here: not tried')
            continue
        port = free_port()
        with stands_by(f'asleep-{name}', *words, str(port)) as command:
            clients = [connect(port) for _ in range(IDLE)]
            pid, = mine()
            for _ in range(2):
                fine('on', pid, '--wait=60s')
                trace = standing(pid)['trace']

                def pending():
                    # A request that nothing comes to for long is told to be overdue.
                    rows = [row for row in map(json.loads, fine('dump', '--json', trace).splitlines())
                            if row.get('start_ns', 0) < 0 and (row['end'] == 'pending' or row['failure'] == 'should resolve, but never did')]
                    kept = [row['kind'] for row in rows]
                    return all(kept.count(kind) >= least for kind, least in kinds.items())
                until(f'{name}: {kinds} are told of', pending)
                fine('off', pid, '--wait=60s')
                known_of(trace)
            for client in clients:
                client.close()
            stops(command, pid)


def unknown():
    """What cannot be told of is counted: neovim opens a FIFO that nobody writes to."""
    if not shutil.which('nvim'):
        print('no nvim here: not tried')
        return
    os.mkfifo('fifo')
    script = 'lua vim.loop.fs_open("fifo", "r", 438, function() end) io.open("asked", "w"):close()'
    with stands_by('unknown', shutil.which('nvim'), '--headless', '-u', 'NONE', '-c', script) as command:
        until('neovim opens it', lambda: os.path.exists('asked'))
        pid, = mine()
        fine('on', pid, '--wait=60s')
        until('it is counted', lambda: '1 request is older than the recording' in fine('events', standing(pid)['trace']))
        os.kill(pid, 9)
        command.communicate(timeout=PATIENCE)


def unmodified():
    for name, module, text in ('libuv', 'uvloop', LOOP), ('GLib', 'gi', GLIB):
        if subprocess.run(['/usr/bin/python3', '-c', f'import {module}'], check=False, capture_output=True).returncode:
            print(f'/usr/bin/python3 has no {module}: not tried')
            continue
        with stands_by(name, '/usr/bin/python3', '-c', text) as command:
            def is_there():
                if command.poll() is not None:
                    sys.exit(f'{name}: weft record ended: {command.returncode}: {command.stderr.read()}')
                return bool(mine())
            until(f'{name} stands by', is_there)
            pid, = mine()
            for turn in range(3):
                path = os.path.abspath(f'{name}/python3-{pid}' + (f'.{turn + 1}' if turn else ''))
                fine('on', pid, '--wait=60s')
                expect('where to', standing(pid)['trace'], path)
                until(f'{name} has turned', lambda path=path: 'timer' in fine('dump', path))
                fine('off', pid, '--wait=60s')
                known_of(path)
            stops(command, pid)


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    os.chmod(place, 0o755)
    with open('f.txt', 'w', encoding='utf-8') as f:
        f.write('(the whole of it)\n')
    for test in one_after_the_other, many_times, killed, strangers, gone, no_room, unmodified, asleep, unknown:
        if os.environ.get('WEFT_TEST_ONLY', '') in test.__name__:
            test()
