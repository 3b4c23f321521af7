#!/usr/bin/env python3
"""Records unmodified programs of Debian: their actions are in the trace, and findings name only real faults.

	programs_test.py NAME WEFT	the names are at the end

SPDX-License-Identifier: ISC"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from recorded import PATIENCE, Recording, Trace, check_answered_reads, expect, fail, free_port, need, need_module, until

# The limit for stalls is long, because a healthy program also has shorter stalls on a busy machine.
LATE = '2s'


def healthy(trace, but=()):
    expect([alarm for alarm in trace.alarms(LATE) if not any(alarm.startswith(name + ':') for name in but)], [], f'alarms in {trace.path}')
    expect(trace.lost(), 0, f'events lost in {trace.path}')


def ended(promise):
    return promise['end'] == 'resolved'


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='ascii') as file:
        file.write(text)
    return path


def neovim(weft, folder):
    """neovim runs a job, a timer of Lua and requests for a file, and then exits."""
    nvim = need('nvim')
    script = write(folder, 'jobs.vim', """
let job = jobstart(["sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.05; done; exit 7"], {'on_stdout': {id, data, event -> 0}})
lua vim.loop.new_timer():start(20, 0, vim.schedule_wrap(function() vim.g.fired = 1 end))
lua vim.loop.fs_open("/etc/hostname", "r", 438, function(e, fd) vim.loop.fs_read(fd, 100, 0, function() vim.loop.fs_close(fd, function() vim.g.closed = 1 end) end) end)
call jobwait([job])
lua vim.wait(20000, function() return vim.g.fired == 1 and vim.g.closed == 1 end)
""")
    recording = Recording(weft, os.path.join(folder, 'nvim'), [nvim, '--headless', '-u', 'NONE', '-S', script, '+qa'], stdin=subprocess.DEVNULL)
    expect(recording.status, 0, 'the exit status of nvim')
    trace = recording.trace('nvim')  # there are no traces of sh and sleep
    process, out = trace.promise('process', 'sh -c for i in 1 2 3'), trace.promise('connection', 'stdout of sh')
    expect((process['end'], process['labels'][-1][1]), ('resolved', 'exit status 7'), 'the job')
    reads = [p for p in trace.promises('read') if p['created_by'] == out['promise']]
    if len(reads) < 3:
        fail(f'{len(reads)} reads of three lines')
    expect([label for _, label in trace.promises('read', 'end of input')[0]['labels']], ['end of input'], 'the end of what the job says')
    steps = [trace.promise('fs', f'{what} /etc/hostname') for what in ('open', 'read', 'close')]
    expect([p['created_by'] for p in steps[1:]], [p['promise'] for p in steps[:2]], 'who made read and close')
    if not all(map(ended, steps)):
        fail('an operation on a file has not ended')
    expect(len(trace.promises('timer', '20 ms')), 1, 'timers of Lua')
    healthy(trace)


def neovim_fifo(weft, folder):
    """neovim/neovim#32332: nvim opens a fifo without a writer, and cannot quit."""
    nvim, fifo = need('nvim'), os.path.join(folder, 'fifo')
    os.mkfifo(fifo)
    script = write(folder, 'fifo.lua', f'vim.loop.fs_open("{fifo}", "r", 438, function() end)\n')
    recording = Recording(weft, os.path.join(folder, 'nvim'),
                          [nvim, '--headless', '-u', 'NONE', '-c', 'luafile ' + script, '-c', 'sleep 500m', '-c', 'qa'],
                          wait=False, stdin=subprocess.DEVNULL)
    recording.ids('nvim')
    end = time.monotonic() + PATIENCE
    # Waits until a finding names the fifo: a kill between two iterations of the loop would be reported less exactly.
    while not any('/fifo"' in line['title'] for line in named_by(recording.trace('nvim'))):
        if time.monotonic() > end:
            fail('nobody finds what keeps nvim')
        time.sleep(0.2)
    recording.end('nvim', signal.SIGKILL)
    healthy(recording.trace('nvim'), but=['hang'])


def named_by(trace):
    """Returns findings about the fs operation that never ends."""
    opened = trace.promises('fs', '/fifo')
    return [line for kind in ('hang', 'alive') for line in trace.findings(LATE).get(kind, [])
            if opened and opened[0]['promise'] in (line['root'], line['promise'])]


NAMED = """
options {{ directory "{0}"; pid-file "{0}/named.pid"; listen-on port {1} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
 recursion no; session-keyfile "{0}/session.key"; managed-keys-directory "{0}"; notify no; dnssec-validation no; }};
controls {{ }};
zone "example.test" {{ type primary; file "{0}/zone"; }};
"""
ZONE = """$TTL 60
@ IN SOA ns root 1 60 60 60 60
@ IN NS ns.example.test.
ns IN A 127.0.0.1
a IN A 10.0.0.1
b IN A 10.0.0.2
"""


def named(weft, folder):
    """A server of BIND with two loops answers three questions of dig by UDP, and three by TCP."""
    server, dig = need('/usr/sbin/named'), need('dig')
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = probe.getsockname()[1]
    write(folder, 'zone', ZONE)
    recording = Recording(weft, os.path.join(folder, 'traces'), [server, '-n', '2', '-f', '-g', '-c', write(folder, 'named.conf', NAMED.format(folder, port))],
                          wait=False)
    ask = [dig, '+short', '+timeout=2', '+tries=1', '@127.0.0.1', '-p', str(port)]
    end = time.monotonic() + PATIENCE
    while subprocess.run([*ask, '+tcp', 'a.example.test'], stdout=subprocess.PIPE, check=False).stdout != b'10.0.0.1\n':
        if time.monotonic() > end:
            fail('named does not answer')
        time.sleep(0.2)
    for way in ('+notcp', '+tcp'):
        got = [subprocess.run([*ask, way, name + '.example.test'], stdout=subprocess.PIPE, check=True, timeout=PATIENCE).stdout for name in ('a', 'b', 'nope')]
        expect(got, [b'10.0.0.1\n', b'10.0.0.2\n', b''], f'what named answers by {way}')
    recording.end('named', signal.SIGTERM)
    expect(recording.status, 0, 'the exit status of named')
    trace = recording.trace('named')
    # The two loops of the server and the loop of its resolver run in OS threads of their own.
    if len({p['stream'] for p in trace.promises('loop', 'uv_run')}) < 2:
        fail('not several loops')
    requests, connections = trace.promises('request', 'from 127.0.0.1:'), trace.promises('connection', 'from 127.0.0.1:')
    expect(len(requests), 3, 'questions by UDP')
    if len(connections) < 4:
        fail(f'{len(connections)} connections of 4')
    if not all(map(ended, requests + connections)):
        fail('a question has no end')
    sends = [p for p in trace.promises('write') if p['created_by'] in [r['promise'] for r in requests]]
    expect(len(sends), 3, 'answers by UDP')
    if not trace.promises('listen', f'listen 127.0.0.1:{port}'):
        fail('nobody listens')
    healthy(trace)


KRESD = """log_level('crit')
net.listen('127.0.0.1', {port}, {{ kind = 'dns' }})
trust_anchors.remove('.')
cache.open(10 * MB, 'lmdb://{folder}/cache')
policy.add(policy.all(policy.STUB('127.0.0.1@{upstream}')))
"""


def resolver(weft, folder):
    """dig asks Knot Resolver by UDP, which asks BIND; all three are recorded, and the path of the answer passes through both servers."""
    named, kresd, dig = need('/usr/sbin/named'), need('/usr/sbin/kresd'), need('dig')
    upstream = free_port()
    port = free_port(upstream)
    write(folder, 'zone', ZONE)
    os.mkdir(os.path.join(folder, 'cache'))
    servers = [Recording(weft, os.path.join(folder, name), command, wait=False) for name, command in (
        ('named', [named, '-n', '1', '-f', '-g', '-c', write(folder, 'named.conf', NAMED.format(folder, upstream))]),
        ('kresd', [kresd, '-n', '-c', write(folder, 'kresd.conf', KRESD.format(port=port, upstream=upstream, folder=folder)), folder]))]
    ask = [dig, '+short', '+timeout=2', '+tries=1', '@127.0.0.1', '-p', str(port)]
    until(lambda: subprocess.run([*ask, 'a.example.test'], stdout=subprocess.PIPE, check=False).stdout == b'10.0.0.1\n', 'the resolver does not answer')
    client = Recording(weft, os.path.join(folder, 'dig'), [*ask, 'b.example.test'])
    expect((client.status, client.out), (0, b'10.0.0.2\n'), 'what dig says')
    for server, name in zip(servers, ('named', 'kresd')):
        server.end(name, signal.SIGTERM)
    traces = [client.trace('dig'), servers[1].trace('kresd'), servers[0].trace('named')]
    both = [trace.path for trace in traces]
    # A scrubbed trace has other digests of its datagrams than the trace, so that the digests do not reveal the questions.
    subprocess.run([weft, 'save', '--scrub', both[1], '-w', os.path.join(folder, 'scrubbed')], check=True)
    digests = [[abs(event['value']) for event in trace.ask('events', '--json') if event.get('what') == 'datagram']
               for trace in (traces[1], Trace(weft, os.path.join(folder, 'scrubbed')))]
    if len(digests[0]) != len(digests[1]) or set(digests[0]) & set(digests[1]) or len(set(digests[0])) != len(set(digests[1])) or not digests[0]:
        fail(f'digests of a scrubbed trace: {digests}')
    told = json.loads(subprocess.run([weft, 'info', '--json', *both], capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    if told['messages'] < 4:
        fail(f'messages between three processes: {told}')
    promises = [json.loads(line) for line in subprocess.run([weft, 'dump', '--json', *both], capture_output=True, text=True, check=True).stdout.splitlines()]
    # The last digit of a promise's number is the number of its trace, which is 1 for kresd.  BIND's own requests are pending at the same time.
    requests = [p for p in promises if p.get('kind') == 'request' and p['promise'] % 10 == 1]
    asked = [p for p in requests if any(f'from 127.0.0.1:{upstream}' in text for _, text in p['labels'])]
    question = max((p for p in requests if p['start_ns'] < asked[-1]['start_ns'] <= p['end_ns']), key=lambda p: p['start_ns'])
    path = subprocess.run([weft, 'path', *both, f'--promise={question["promise"]}'], capture_output=True, text=True, check=True).stdout
    for words in ('in transit from kresd', ' in named', 'in transit from named', ' in kresd', ' in transit'):
        if words not in path:
            fail(f'the path of an answer does not say "{words}":\n{path}')
    # The resolver answers dig in a check handle, in the iteration of the loop in which BIND's answer arrives, so the path of dig passes through all three processes.
    answered = next(p for p in promises if p.get('kind') == 'request' and p['promise'] % 10 == 0 and any(f'from 127.0.0.1:{port}' in text for _, text in p['labels']))
    path = subprocess.run([weft, 'path', *both, f'--promise={answered["created_by"]}'], capture_output=True, text=True, check=True).stdout
    if not re.search(r'from dig .*in kresd\n(.*\n)*.*from kresd .*in named\n(.*\n)*.*from named .*in kresd\n(.*\n)*.*"check" runs.*\n.*from kresd .*in dig', path):
        fail(f'the path of what dig asked for does not go through both servers:\n{path}')


CTEST = """
cmake_minimum_required(VERSION 3.10)
project(t NONE)
enable_testing()
add_test(NAME quick COMMAND sh -c "echo q")
add_test(NAME slow COMMAND sleep 0.5)
add_test(NAME fails COMMAND false)
"""


def ctest(weft, folder):
    """ctest runs two tests at a time."""
    program, build = need('/usr/bin/ctest'), os.path.join(folder, 'build')
    write(folder, 'CMakeLists.txt', CTEST)
    subprocess.run([need('/usr/bin/cmake'), '-S', folder, '-B', build], stdout=subprocess.DEVNULL, check=True)
    recording = Recording(weft, os.path.join(folder, 'traces'), [program, '-j2'], cwd=build)
    expect((recording.status, b'2 tests passed' in recording.out or b'67% tests passed' in recording.out), (8, True), 'what ctest says')
    trace = recording.trace('ctest')
    slow = trace.promise('process', 'sleep 0.5')
    expect(trace.promise('process', 'false')['labels'][-1][1], 'exit status 1', 'how false ends')
    others = [p for p in trace.promises('process') if p is not slow and p['start_ns'] < slow['end_ns'] and slow['start_ns'] < p['end_ns']]
    expect(len(trace.promises('process')), 3, 'tests run')
    if not others or not all(map(ended, trace.promises('process'))):
        fail('no test runs beside the slow one')
    healthy(trace)


UVLOOP = """
import asyncio, time, uvloop
async def serve(reader, writer):
    while data := await reader.read(1000):
        if data == b'busy':
            end = time.thread_time() + 0.35
            while time.thread_time() < end:
                pass
        writer.write(data)
        await writer.drain()
    writer.close()
async def client(port, lines):
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    for line in lines:
        writer.write(line)
        await reader.read(1000)
        await asyncio.sleep(0.005)
    writer.close()
async def tick():
    while True:
        await asyncio.sleep(0.02)
async def main():
    ticks = asyncio.ensure_future(tick())  # somebody waits whenever that is
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(client(port, [b'hello', b'there']), client(port, [b'a', b'busy', b'b']), client(port, [b'x'] * 20))
    server.close()
    await server.wait_closed()
    ticks.cancel()
    print('done')
uvloop.install()
asyncio.run(main())
"""


def uvloop(weft, folder):
    """With asyncio on uvloop, a callback computes for 350 ms and delays other callbacks."""
    python = need_module('uvloop')
    recording = Recording(weft, os.path.join(folder, 'traces'), [python, write(folder, 'echo.py', UVLOOP)])
    expect((recording.out, recording.status), (b'done\n', 0), 'what it says')
    trace = recording.trace('python3')
    expect(len(trace.promises('connection', 'from 127.0.0.1:')), 3, 'connections')
    stalls = [line for line in trace.findings('60ms').get('stall', []) if line['end_ns'] - line['start_ns'] >= 350000000]
    if not stalls:
        fail('nobody finds the stall')
    culprit = next(p for p in trace.promises() if p['promise'] == stalls[0]['promise'])
    if culprit['kind'] != 'task' or culprit['site']['function'] != 'serve':
        fail(f'the stall is not named by its task: {culprit}')
    healthy(trace)
    check_rows(weft, folder, trace.path)


def check_rows(weft, folder, path):
    """The handle that runs all tasks of uvloop is internal, but the tasks have rows.  A saved trace has the same rows."""
    copy = os.path.join(folder, 'copy')
    subprocess.run([weft, 'save', '--names', path, '-w', copy], check=True, timeout=PATIENCE)
    pictures = []
    for of in path, copy:
        picture = os.path.join(folder, 'rows.svg')
        subprocess.run([weft, 'render', of, '--size=1280x1600', '-o', picture], check=True, timeout=PATIENCE)
        with open(picture, encoding='utf-8') as file:
            pictures.append(re.findall('<text[^>]*>([^<]*)', file.read()))
    if 'internals of python3' not in pictures[0] or 'serve' not in pictures[0]:
        fail(f'a task or the internals have no row: {pictures[0]}')
    expect(pictures[1], pictures[0], 'texts of the picture of a saved trace')


FLOODS = """
import asyncio, os, sys, uvloop
async def main():
    loop, left, done = asyncio.get_running_loop(), 100000, asyncio.Event()
    def again(*next):
        nonlocal left
        left -= 1
        if not left:
            done.set()
        elif next:
            loop.call_later(0, again, *next)
    await asyncio.sleep(0.02)
    if sys.argv[1] == 'reader':
        ends = os.pipe()
        os.write(ends[1], b'nobody reads it')
        loop.add_reader(ends[0], again)
        await done.wait()
    elif sys.argv[1] == 'later':
        again('next')
        await done.wait()
    else:
        for _ in range(left):
            await asyncio.sleep(0)
    await asyncio.sleep(0.03)
uvloop.install()
asyncio.run(main())
"""


def uvloop_floods(weft, folder):
    """If a program does not sleep for a while, a small ring keeps its earlier events, and a finding names the spinning promise."""
    python = need_module('uvloop')
    for name, kind, label in (('reader', 'poll', 'pipe'), ('later', 'handle', 'idle'), ('sleep', 'handle', 'idle')):
        recording = Recording(weft, os.path.join(folder, name), [python, write(folder, 'floods.py', FLOODS), name], record=['--mode=ring', '--size=256K'])
        expect(recording.status, 0, f'how {name} ends')
        trace = recording.trace('python3')
        found = trace.findings(LATE).get('spin', [])
        spinning = [trace.promise(kind, label)['promise']] + ([trace.promise('task', 'main')['promise']] if name == 'sleep' else [])
        expect(sorted(line['promise'] for line in found), sorted(spinning), f'who spins in {name}')
        expect([len(trace.promises('timer', label)) for label in ('20 ms', '30 ms')], [1, 1], f'what was before {name}, and after it')


ANSWERS = """
import asyncio, uvloop
async def serve(reader, writer):
    while data := await reader.read(1000):
        await asyncio.sleep(0.03)
        writer.write(data)
        await writer.drain()
    writer.close()
    done.set()
async def main():
    global done
    done = asyncio.Event()
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await done.wait()
uvloop.install()
asyncio.run(main())
"""

ASKS = """
import asyncio, sys, uvloop
async def main():
    reader, writer = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
    for i in range(8):
        writer.write(b'x' * (i + 1))
        await reader.read(1000)
    writer.close()
uvloop.install()
asyncio.run(main())
"""


def uvloop_both(weft, folder):
    """The chain of waits of a client leads into its server, although uvloop writes to connections without libuv."""
    python = need_module('uvloop')
    server = Recording(weft, os.path.join(folder, 'server'), [python, write(folder, 'answers.py', ANSWERS)], wait=False)
    port = server.process.stdout.readline().decode().strip()
    client = Recording(weft, os.path.join(folder, 'client'), [python, write(folder, 'asks.py', ASKS), port])
    server.process.communicate(timeout=PATIENCE)
    expect((client.status, server.process.returncode), (0, 0), 'how they end')
    answers = server.trace('python3')
    path = check_answered_reads(weft, client.trace('python3'), answers)
    process = os.path.basename(answers.path)
    if f' in {process}' not in path or 'timer' not in path or 'in transit from ' + process not in path:
        fail(f'the path of an answer does not go through {process}:\n{path}')


POLLS = """
import asyncio, socket, sys, uvloop
async def main():
    loop, mine = asyncio.get_running_loop(), socket.socket()
    mine.setblocking(False)
    await loop.sock_connect(mine, ('127.0.0.1', int(sys.argv[1])))
    for i in range(8):
        await loop.sock_sendall(mine, b'x' * (i + 1))
        await loop.sock_recv(mine, 1000)
    mine.close()
uvloop.install()
asyncio.run(main())
"""


def uvloop_polls(weft, folder):
    """A client uses libuv only to wait until its socket is readable."""
    python = need_module('uvloop')
    server = Recording(weft, os.path.join(folder, 'server'), [python, write(folder, 'answers.py', ANSWERS)], wait=False)
    port = server.process.stdout.readline().decode().strip()
    client = Recording(weft, os.path.join(folder, 'client'), [python, write(folder, 'polls.py', POLLS), port])
    server.process.communicate(timeout=PATIENCE)
    expect((client.status, server.process.returncode), (0, 0), 'how they end')
    trace = client.trace('python3')
    expect(trace.promise('connect', f'127.0.0.1:{port}')['end'], 'resolved', 'the connect')
    events = trace.ask('events', '--json')
    expect([[event['position'] for event in events if event['op'] == op][-1] for op in ('sent', 'received')], [36, 36], 'what it has written and read')
    about = subprocess.run([weft, 'info', '--json', trace.path, server.trace('python3').path], capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
    expect(json.loads(about.splitlines()[-1])['messages'], 16, 'each question, and each answer')


NODE = """
const net = require('net'), fs = require('fs'), child = require('child_process');
const server = net.createServer(c => c.pipe(c)).listen(0, '127.0.0.1', () => {
  const c = net.connect(server.address().port, '127.0.0.1');
  c.write('hello');
  c.once('data', () => fs.readFile('/etc/hostname', () => c.end('bye')));
  c.once('close', () => child.execFile('true', () => server.close(() => console.log('done, and should exit now'))));
});
setInterval(() => {}, 100000);
"""


def node(weft, folder):
    """A forgotten interval keeps a node process alive, whether its executable contains libuv or links it."""
    program = need('node')
    recording = Recording(weft, os.path.join(folder, 'traces'), [program, write(folder, 'server.js', NODE)], wait=False)
    expect(recording.process.stdout.readline(), b'done, and should exit now\n', 'what it says')
    end = time.monotonic() + PATIENCE
    main = []
    while not main:
        if time.monotonic() > end:
            fail('nobody tells what keeps node')
        time.sleep(0.2)
        trace = recording.trace('node')
        main = [line for line in trace.findings(LATE).get('alive', [])
                if any(p['promise'] == line['promise'] and p['stream'] == 0 for p in trace.promises('loop'))]
        timers = {p['promise'] for p in trace.promises('timer')}
        main = [line for line in main if timers & {e['promise'] for e in line['evidence']}]
    recording.end('node', signal.SIGKILL)
    trace = recording.trace('node')
    timer = next(p for p in trace.promises('timer') if p['promise'] in {e['promise'] for e in main[0]['evidence']})
    expect(timer['labels'][-1][1].split(' s')[0] in ('99', '100'), True, f'the timer that keeps it: {timer["labels"]}')
    if not trace.promises('fs', 'open /etc/hostname') or not trace.promises('process', 'true') or not trace.promises('listen', '127.0.0.1'):
        fail('what node did is not in the trace')
    healthy(trace)
    # In a picture of several processes, each band has the name of its process and OS thread, all of which are called node.
    other, picture = Recording(weft, os.path.join(folder, 'other'), [program, '-e', 'setTimeout(() => {}, 100)']).trace('node'), os.path.join(folder, 'both.svg')
    subprocess.run([weft, 'render', trace.path, other.path, '-o', picture, '--size=1280x1000'], check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(picture, encoding='utf-8') as file:
        bands = re.findall(r'>(node-\d+)(: node[ -]\d+)?</text>', file.read())
    expect(len({process for process, own in bands if not own}), 2, f'processes that are named in the picture: {bands}')
    expect(any(own for _, own in bands), True, f'whether OS threads are named with their process: {bands}')


def is_asleep(pid):
    """Returns whether the main thread of the process sleeps at ten looks, 5 ms apart."""
    for _ in range(10):
        with open(f'/proc/{pid}/task/{pid}/stat', encoding='utf-8') as file:
            if file.read().rsplit(')', 1)[1].split()[0] != 'S':
                return False
        time.sleep(0.005)
    return True


def node_killed(weft, folder):
    """Many promises of one type that are in flight when node is killed are one finding."""
    script = "for (let i = 0; i < 8; i++) require('crypto').pbkdf2('a', 'b', 2e9, 64, 'sha512', () => {}); console.log('asked')"
    recording = Recording(weft, os.path.join(folder, 'traces'), [need('node'), '-e', script], wait=False)
    expect(recording.process.stdout.readline(), b'asked\n', 'what it says')
    until(lambda: len([p for p in recording.trace('node').promises('work') if p['end'] == 'pending' or p['failure']]) >= 8, 'no work is under way')
    # Waits until the script has ended and the loop sleeps, so that no callback runs at the kill.
    until(lambda: all(is_asleep(pid) for pid in recording.ids('node')), 'node does not wait')
    recording.end('node', signal.SIGKILL)
    found = recording.trace('node').findings(LATE)
    # On a busy machine, some of the work is in flight for so long that it counts as a hang; then each of two findings has a part of the promises.
    counts = {name: [max(finding['count'], finding['weight']) for finding in found.get(name, [])] for name in ('underway', 'hang')}
    expect((max(map(len, counts.values())), sum(map(sum, counts.values()))), (1, 8), f'how often the work in progress is reported, and of how many promises: {counts}')


STORE = """
import socketserver, sys, time
class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            time.sleep(2 if b'slow' in line else 0.003)
            self.wfile.write(b'yes\\n')
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
with Server(('127.0.0.1', 0), Answer) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""

# A script of this text needs a definition of serve() in front.
ASYNCIO_SERVES = """
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
uvloop.install()
asyncio.run(main())
"""


ASYNCIO_FRONT = """
import asyncio, sys, uvloop
async def serve(reader, writer):
    back, to = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
    while line := await reader.readline():
        to.write(line)
        writer.write(await back.readline())
    to.close()
    writer.close()
""" + ASYNCIO_SERVES

NODE_FRONT = """
const net = require('net');
const server = net.createServer(c => {
  const back = net.connect(process.argv[2], '127.0.0.1');
  c.on('data', line => back.write(line));
  back.on('data', line => c.write(line));
  c.on('end', () => back.end());
  c.on('error', () => {});
}).listen(0, '127.0.0.1', () => console.log(server.address().port));
"""


def ask_store(port, number, keys):
    with socket.create_connection(('127.0.0.1', port), timeout=PATIENCE) as client:
        lines = client.makefile('rwb')
        for i in range(keys):
            lines.write(b'key slow\n' if number == 1 and i == keys // 2 else b'key %d\n' % i)
            lines.flush()
            expect(lines.readline(), b'yes\n', 'an answer')
            time.sleep(0.02)


def slow_store(weft, folder, name, command):
    """A server with a pending read on its client's connection asks another server, which is slow once; the finding names the other server."""
    store = subprocess.Popen(['/usr/bin/python3', write(folder, 'store.py', STORE)], stdout=subprocess.PIPE)
    try:
        at = int(store.stdout.readline())
        recording = Recording(weft, os.path.join(folder, 'traces'), [*command, str(at)], wait=False)
        port = int(recording.process.stdout.readline())
        clients = [threading.Thread(target=ask_store, args=(port, number, 20)) for number in range(4)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        recording.end(name, signal.SIGTERM)
    finally:
        store.kill()
        store.wait()
    trace = recording.trace(name)
    slow = [finding['title'] for finding in trace.findings().get('slow', [])]
    if len(slow) != 1 or f'"to 127.0.0.1:{at}"' not in slow[0] or 'was answered after' not in slow[0]:
        fail(f'what is said of a slow store: {slow}')
    reads = [p for p in trace.promises('read') if p['end'] == 'resolved' and p['end_ns'] - p['start_ns'] > 1900000000]
    expect(len(reads) >= 2, True, 'both ends of the wait are told')
    for read in reads:
        why = subprocess.run([weft, 'explain', f'--promise={read["promise"]}', trace.path], capture_output=True, text=True, check=True).stdout
        if ' waiting for connection ' not in why.splitlines()[0] or f'"to 127.0.0.1:{at}" to answer' not in why.splitlines()[0]:
            fail(f'a read that took long does not say that the store was waited for:\n{why}')


def unanswering_store(weft, folder, name, command):
    """A server whose store stops answering: the owed response is reported together with the wait for the store."""
    with socket.create_server(('127.0.0.1', 0)) as store:
        at = store.getsockname()[1]
        recording = Recording(weft, os.path.join(folder, 'traces'), [*command, str(at)], wait=False)
        with socket.create_connection(('127.0.0.1', int(recording.process.stdout.readline())), timeout=PATIENCE) as client:
            asked, _ = store.accept()
            for _ in range(6):
                client.sendall(b'key\n')
                expect(asked.recv(100), b'key\n', 'what the store is asked')
                asked.sendall(b'yes\n')
                expect(client.recv(100), b'yes\n', 'an answer')
            client.sendall(b'key\n')
            asked.recv(100)
            titles = []

            def is_told():
                titles[:] = [finding['title'] for finding in recording.trace(name).findings(LATE).get('unanswered', [])]
                return any('owed its peer' in title for title in titles)
            until(is_told, 'nobody tells of a store that does not answer')
            recording.end(name, signal.SIGKILL)
    if len(titles) != 1 or ', which does not answer' not in titles[0] or \
            f'"to 127.0.0.1:{at}"' not in titles[0].split(': it waits')[-1]:
        fail(f'what is said of a store that does not answer: {titles}')


def uvloop_unanswered(weft, folder):
    unanswering_store(weft, folder, 'python3', [need_module('uvloop'), write(folder, 'front.py', ASYNCIO_FRONT)])


def node_unanswered(weft, folder):
    unanswering_store(weft, folder, 'node', [need('node'), write(folder, 'front.js', NODE_FRONT)])


ASYNCIO_KEEPS = """
import asyncio, sys, uvloop
kept = []
async def serve(reader, writer):
    what = await reader.readline()
    kept.append(asyncio.get_running_loop().call_later(3600, print))
    kept.append(await asyncio.open_connection('127.0.0.1', int(sys.argv[1])))
    writer.write(b'yes\\n')
    await reader.readline()
    writer.close()
""" + ASYNCIO_SERVES


def uvloop_leaks(weft, folder):
    """If each client leaves a connection and a timer behind, both are leaks, although all code of uvloop runs in a handle that never ends;
        they are no leaks while the clients exist."""
    for stay in (False, True):
        with socket.create_server(('127.0.0.1', 0), backlog=100) as store:
            at = store.getsockname()[1]
            recording = Recording(weft, os.path.join(folder, f'traces-{stay}'), [need_module('uvloop'), write(folder, 'keeps.py', ASYNCIO_KEEPS), str(at)], wait=False)
            port, clients = int(recording.process.stdout.readline()), []
            for _ in range(50):
                clients.append(socket.create_connection(('127.0.0.1', port), timeout=PATIENCE))
                clients[-1].sendall(b'keep\n')
                expect(clients[-1].recv(100), b'yes\n', 'an answer')
                time.sleep(0.01)
                if not stay:
                    clients.pop().close()
            recording.end('python3', signal.SIGKILL)
        leaks = [finding['title'] for finding in recording.trace('python3').findings(LATE).get('leak', [])]
        told = sorted(re.findall(r'^\d+ promises ("[^"]*")', '\n'.join(leaks), re.M))
        expect(told, [] if stay else ['"1 h"', f'"to 127.0.0.1:{at}"'], 'what leaks')


def uvloop_slow(weft, folder):
    slow_store(weft, folder, 'python3', [need_module('uvloop'), write(folder, 'front.py', ASYNCIO_FRONT)])


ASYNCIO_SLEEPS = """
import asyncio, uvloop
async def serve(reader, writer):
    line = await reader.readline()
    if line == b'slow\\n':
        await asyncio.sleep(2)
    writer.write(line)
    await reader.readline()
    writer.close()
""" + ASYNCIO_SERVES


def uvloop_sleeps(weft, folder):
    """If a server sleeps and its response is late, the waiting client has no finding of its own."""
    recording = Recording(weft, os.path.join(folder, 'traces'), [need_module('uvloop'), write(folder, 'sleeps.py', ASYNCIO_SLEEPS)], wait=False)
    port = int(recording.process.stdout.readline())
    for i in range(40):
        with socket.create_connection(('127.0.0.1', port), timeout=PATIENCE) as client:
            line = b'slow\n' if i == 20 else b'quick\n'
            client.sendall(line)
            expect(client.recv(100), line, 'an answer')
    recording.end('python3', signal.SIGKILL)
    slow = recording.trace('python3').findings().get('slow', [])
    if not slow or not all('waiting for timer' in finding['title'] for finding in slow) or 'the other end' in json.dumps(slow):
        fail(f'what is said of a server that sleeps: {slow}')


def node_slow(weft, folder):
    slow_store(weft, folder, 'node', [need('node'), write(folder, 'front.js', NODE_FRONT)])


TESTS = {'neovim': neovim, 'neovim-fifo': neovim_fifo, 'named': named, 'ctest': ctest, 'uvloop': uvloop, 'uvloop-both': uvloop_both, 'uvloop-polls': uvloop_polls,
         'uvloop-floods': uvloop_floods, 'uvloop-slow': uvloop_slow, 'uvloop-sleeps': uvloop_sleeps, 'uvloop-unanswered': uvloop_unanswered, 'uvloop-leaks': uvloop_leaks,
         'node': node, 'node-slow': node_slow, 'node-killed': node_killed, 'node-unanswered': node_unanswered, 'resolver': resolver}
with tempfile.TemporaryDirectory(prefix='weft-uv-') as place:
    TESTS[sys.argv[1]](sys.argv[2], place)
