#!/usr/bin/env python3
"""scrub_test.py WEFT GENERATE ARP DEADLOCK [HTTP-SERVER]: copies that may leave the machine: weft save --scrub removes all names,
   and weft save --last keeps only the end of a trace.

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
import time

weft, generate, arp, deadlock, *servers = map(os.path.abspath, sys.argv[1:])
PATIENCE = 60
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'promise'))
from http_server import Server, get  # noqa: E402  # pylint: disable=wrong-import-position
# Texts of weft and its adapters that --scrub keeps, as docs/record-server.md lists them: whole texts, and two prefixes.
OWN_TEXTS = {'cancelled', 'started again', 'end of input'}
OWN_FRONT = 'from '
OWN_ADDRESS = '127.'
MAGIC = 'weft'  # a word in the header of each packet
# Details whose texts are numbers of the recorder or the kernel, or names of libc calls.
NUMBERS = ('round', 'stack', 'blocked', 'died', 'place')
# Names of metadata values that describe the format, not the program.
FORMAT = ('domain', 'tracer_name', 'clock_source', 'clock_measured', 'mode', 'state', 'stream_packets')


def run(*command, statuses=(0,), stdin=None):
    got = subprocess.run(command, input=stdin, capture_output=True, check=False)
    if got.returncode not in statuses:
        sys.exit(f'{command}: status {got.returncode}\n{got.stderr.decode(errors="replace")[:2000]}')
    return got.stderr.decode() if statuses == (2,) else got.stdout


def weft_json(verb, trace, *options):
    return [json.loads(line) for line in run(weft, verb, '--json', *options, trace, statuses=(0, 1)).splitlines()]


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f'{what}: {str(got)[:1500]}\nis not\n{str(wanted)[:1500]}')


def texts_of(value, out):
    """Adds all texts from the trace in a JSON value to the set `out`."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str):
                if key not in ('op', 'kind', 'what', 'format', 'mode', 'state', 'clock'):
                    out.add(inner)
            else:
                texts_of(inner, out)
    elif isinstance(value, list):
        for inner in value:
            texts_of(inner, out)


def contents(directory):
    out = b''
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), 'rb') as file:
            out += file.read()
    return out


def readable_bytes(directory):
    """Returns the bytes that could name the program: everything except the description of the format and weft's own numeric texts."""
    out = b''
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), 'rb') as file:
            content = file.read()
        if name == 'metadata':
            values = re.findall(rb'^\t(\w+) = "(.*)";$', content.partition(b'env {')[2].partition(b'\n}')[0], re.MULTILINE)
            content = b'\n'.join(value for key, value in values if key.decode() not in FORMAT)
        out += content
    for event in weft_json('events', directory):
        if event.get('what') in NUMBERS and event.get('text'):
            out = out.replace(event['text'].encode(), b'\0')
    return out


def words_of(trace):
    """Returns each text of a trace, and the words of each text."""
    texts, out = set(), set()
    for event in weft_json('events', trace):
        if event.get('what') == 'connection':
            event['text'] = event['text'].partition(' ')[2]  # leaves out the protocol, which --scrub keeps
        if event.get('what') not in NUMBERS:
            texts_of(event, texts)
    for line in weft_json('info', trace):
        texts_of({key: line.get(key) for key in ('host', 'process', 'command', 'name', 'streams')}, texts)
    for text in texts - OWN_TEXTS:
        text = text.removeprefix(OWN_FRONT)
        out |= {text, *re.findall(r'[^\W_]+', text), *re.findall(r'[^\W\d_]+', text), *re.findall(r'[0-9]+', text), *re.findall(r'[0-9a-fA-F.:-]+', text)}
    return {word for word in out if len(word) > 3 and word not in (OWN_ADDRESS, MAGIC)}


def findings(trace):
    return [{key: finding[key] for key in ('finding', 'verdict', 'severity', 'sure', 'promise', 'root', 'start_ns', 'end_ns', 'weight')}
            for finding in weft_json('explain', trace)]


def shapes(trace):
    """Returns counts and durations of each type of promise, without its name."""
    return sorted(json.dumps({key: value for key, value in sort.items() if not isinstance(value, str) and key != 'site'}, sort_keys=True)
                  for sort in weft_json('stats', trace))


def times(trace):
    return [(event['time_ns'], event['op']) for event in weft_json('events', trace)]


def is_scrubbed(trace, copy):
    words, kept = words_of(trace), readable_bytes(copy)
    before = readable_bytes(trace)
    expect(f'{trace}: words are looked for where they are', sum(word.encode() in before for word in words) > 3, True)
    expect(f'{trace}: what is still in the copy', sorted(word for word in words if word.encode() in kept), [])
    expect(f'{trace}: what weft explain says of the copy', findings(copy), findings(trace))
    expect(f'{trace}: the sorts of the copy', shapes(copy), shapes(trace))
    expect(f'{trace}: the times of the copy', times(copy), times(trace))


def pending(trace):
    return {line['promise']: (line['kind'], line['start_ns']) for line in weft_json('dump', trace, '--no-simplify')
            if line.get('end') == 'pending' and line['promise'] != -1}


def ask(path, *questions):
    """Waits until a server listens; then sends each question and reads a response to it."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                for question in questions:
                    client.sendall(question)
                    client.recv(1 << 16)
                return
        except OSError:
            if time.monotonic() > end:
                sys.exit(f'{path}: nobody listens')
            time.sleep(0.05)


NODE = """const http = require('http'), fs = require('fs');
const server = http.createServer((request, response) => fs.readFile('PATH', () => setTimeout(() => response.end('12345678'), 5)));
let left = 20;
function go() {
  if (left-- === 0) { server.close(); return; }
  http.get({port: server.address().port, path: 'PATH' + left, agent: false}, response => response.resume().on('end', go));
}
server.listen(0, '127.0.0.1', go);
require('child_process').exec('sleep 0.01; echo PATH');"""
UVLOOP = """import asyncio, uvloop
async def answer(reader, writer):
    await asyncio.sleep(0.01)
    writer.write(await reader.readline())
    writer.close()
async def main():
    server = await asyncio.start_server(answer, '127.0.0.1', 0)
    for i in range(20):
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b'alice%d\\n' % i)
        await reader.readline()
        writer.close()
    await (await asyncio.create_subprocess_exec('/bin/sh', '-c', 'sleep 0.01; echo PATH >&2')).wait()
uvloop.install()
asyncio.run(main())"""


def script(name, *command):
    if not shutil.which(command[0]):
        print(f'{command[0]} is not installed')
        return
    subprocess.run([weft, 'record', '-o', name, '--', *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE)
    whole(name)


def whole(name):
    inner = [folder for folder, _, files in os.walk(name) if 'metadata' in files]
    if len(inner) > 1:  # uvloop of Debian 13 calls libuv in a child before the child starts a program; the trace of this child has only its OS thread
        inner = [folder for folder in inner if len([line for line in weft_json('dump', folder) if line.get('promise', -1) > 0]) > 1]
    expect(f'{name}: traces', len(inner), 1)
    run(weft, 'save', '--scrub', inner[0], '-w', name + '.copy')
    is_scrubbed(inner[0], name + '.copy')


def serve(name, *command):
    """Records an installed server that gets requests with secrets, and checks its scrubbed copy; skipped if the server is not installed."""
    if not shutil.which(command[0]):
        print(f'{command[0]} is not installed')
        return
    process = subprocess.Popen([weft, 'record', '-o', name, '--', *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ask(os.path.abspath(name + '.socket'), *(b'set secretkey%d 0 0 5\r\nhello\r\n' % i if name == 'memcached' else b'SET secretkey%d hello\r\n' % i for i in range(50)))
    process.send_signal(signal.SIGINT)
    process.wait(timeout=PATIENCE)
    whole(name)


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    for seed in '1', '2', '3':
        run(generate, 'random', '--events=20k', '--streams=3', '--kernel=2k', '--seed=' + seed, '--format=native', '-o', 'r' + seed)
        run(weft, 'save', '--scrub', 'r' + seed, '-w', 's' + seed)
        is_scrubbed('r' + seed, 's' + seed)
        run(weft, 'save', '--scrub', 'r' + seed, '-w', 'again')
        expect('the same trace has the same stand-ins', contents('again'), contents('s' + seed))
        shutil.rmtree('again')
    piped = run(weft, 'save', '--scrub', 'r1', '-w', '-')
    expect('through a pipe', run(weft, 'events', '--json', '-', stdin=piped), run(weft, 'events', '--json', 's1'))

    # weft explain has the same findings for the scrubbed copy of a faulty program.
    subprocess.run([arp, 'bad'], env={**os.environ, 'WEFT_TRACE': 'arp'}, check=False, capture_output=True)
    run(weft, 'save', '--scrub', 'arp', '-w', 'arp.copy')
    is_scrubbed('arp', 'arp.copy')
    expect('the lost wake-up', [finding['verdict'] for finding in findings('arp.copy')], ['lost-wakeup'])
    os.mkdir('alice')
    os.symlink(arp, 'alice/bobs-server')
    subprocess.run(['alice/bobs-server', 'bad'], env={**os.environ, 'WEFT_TRACE': 'named'}, check=False, capture_output=True)
    expect('the command line is there', [word in contents('named') for word in (b'alice', b'bobs')], [True, True])
    run(weft, 'save', '--scrub', 'named', '-w', 'nameless')
    expect('the command line', [word in contents('nameless') for word in (b'alice', b'bobs')], [False, False])

    # If a directory has a trace, a session and copies of both, each event is read once.
    os.makedirs('both-of/session')
    subprocess.run([arp, 'bad'], env={**os.environ, 'WEFT_TRACE': 'both-of/arp-%p'}, check=False, capture_output=True)
    subprocess.run([arp, 'good'], env={**os.environ, 'WEFT_TRACE': 'both-of/session/arp'}, check=True, capture_output=True)
    recorded = [os.path.join('both-of', name) for name in os.listdir('both-of') if name.startswith('arp-')] + ['both-of/session/arp']
    events = [int(json.loads(run(weft, 'info', '--json', trace))['events']) for trace in recorded]
    run(weft, 'save', '--scrub', recorded[0], '-w', 'both-of/a-name')
    run(weft, 'save', recorded[0], '-w', 'both-of/kept')
    run(weft, 'save', '--last=1ms', recorded[1], '-w', 'both-of/session/a-cut')
    expect('what is read', sorted(one['trace'] for one in weft_json('info', 'both-of') if 'trace' in one), sorted(recorded))
    expect('that copies are there', re.search(r'^weft: .*copies of other given traces.*$', subprocess.run([weft, 'stats', 'both-of'], capture_output=True, text=True, check=True).stderr, re.M)[0], 'weft: 3 copies of other given traces are left out')
    expect('all of it', len([one for one in weft_json('events', 'both-of') if one['op'] != 'end']), sum(events))
    expect('the one of a session is opened', weft_json('dump', 'both-of/session')[0]['trace']['events'], events[1])

    # Traces of servers contain names of files, addresses, keys and users.
    serve('redis', 'redis-server', '--port', '0', '--unixsocket', os.path.abspath('redis.socket'), '--save', '', '--dir', place)
    serve('memcached', 'memcached', *(['-u', 'root'] if os.getuid() == 0 else []), '-s', os.path.abspath('memcached.socket'))
    for server in servers:
        os.mkdir('www')
        with open('www/secret.html', 'w') as file:
            file.write('secret')
        with Server(server, 'www', trace='http') as http:
            for target in ['/secret.html', '/nobody-has-it', '/secret.html?user=alice', '/bobs-notfound-sleep-Cancelled-enoent-12345678'] * 20:
                http.ask(get(target, 'Connection: close'))
        run(weft, 'save', '--scrub', 'http', '-w', 'http.copy')
        expect('what was asked is there', [word in contents('http') for word in (b'secret', b'alice')], [True, True])
        is_scrubbed('http', 'http.copy')

    # Unmodified programs of libuv, with timers, processes, sockets, and paths that contain each word for which weft searches texts.
    path = '/bobs-notfound/asleep-12345678/Cancelled-garbage-14045'
    script('node', 'node', '-e', NODE.replace('PATH', path))
    if not subprocess.run(['/usr/bin/python3', '-c', 'import uvloop'], check=False, capture_output=True).returncode:
        script('uvloop', '/usr/bin/python3', '-c', UVLOOP.replace('PATH', path))

    # One line says that program files are missing, for all files of all copies together.
    copies = [name for name in ('memcached.copy', 'node.copy', 'uvloop.copy') if os.path.exists(name)]
    for some in [copies, *([name] for name in copies)] if copies else []:
        said = [line for line in subprocess.run([weft, 'info', *some], capture_output=True, check=False, text=True).stderr.splitlines() if 'here or can' in line]
        expect(f'what is not here of {some}', (len(said), said[0].startswith(f'weft: {some[0]}: ')), (1, True))

    # --last copies only the end of a trace.
    for trace in 'r1', 'r2', 'r3', 'arp':
        whole, ends = weft_json('dump', trace)[0]['trace'], pending(trace)
        run(weft, 'save', '--last=1ms', trace, '-w', 'end')
        end = weft_json('dump', 'end')[0]['trace']
        expect('it lasts', abs(end['end_ns'] - end['start_ns'] - 1000000) <= 1000, True)
        expect('it is shorter', end['events'] < whole['events'], True)
        moved = whole['end_ns'] - whole['start_ns'] - (end['end_ns'] - end['start_ns'])
        kept = pending('end')
        for promise, (kind, start_ns) in ends.items():
            if promise not in kept:
                sys.exit(f'{trace}: promise {promise} is pending, and not in the copy')
            if kind != 'preexisting' and (kept[promise][0] != kind or abs(kept[promise][1] + moved - start_ns) > 2):
                sys.exit(f'{trace}: promise {promise} is {kind} of {start_ns}, in the copy {kept[promise]}, moved by {moved}')
        run(weft, 'save', '--last=1ms', '--scrub', trace, '-w', 'both')
        is_scrubbed('end', 'both')
        if shutil.which('babeltrace2'):
            theirs = subprocess.run(['babeltrace2', 'end'], capture_output=True, text=True, check=True)
            expect('babeltrace2 complains', theirs.stderr, '')
            expect('babeltrace2 reads', sum(') ' in line for line in theirs.stdout.splitlines()) >= end['events'], True)
        shutil.rmtree('end')
        shutil.rmtree('both')
    run(weft, 'save', '--last=1000s', 'r1', '-w', 'all')
    expect('all of it', run(weft, 'events', '--json', 'all'), run(weft, 'events', '--json', 'r1'))

    # A deadlock is still found in a copy of the last us, although its promises have no event there.
    subprocess.run([deadlock], env={**os.environ, 'WEFT_TRACE': 'stuck'}, check=False, capture_output=True, timeout=60)
    before = [finding for finding in findings('stuck') if finding['finding'] in ('deadlock', 'cycle')]
    expect('the deadlock', len(before), 1)
    run(weft, 'save', '--last=1us', 'stuck', '-w', 'stuck.end')
    after = [finding for finding in findings('stuck.end') if finding['finding'] in ('deadlock', 'cycle')]
    expect('the deadlock in the end alone', [finding['verdict'] for finding in after], [finding['verdict'] for finding in before])

    run(generate, 'short', '--events=1k', '-o', 'mirage')
    for option in '--scrub', '--last=1s':
        expect(option, run(weft, 'save', option, 'mirage', '-w', 'x', statuses=(2,)),
               f'weft: mirage: {option.split("=")[0]} needs a native trace; use weft convert --to=native first\n')
    expect('no time', run(weft, 'save', '--last=soon', 'r1', '-w', 'x', statuses=(2,)),
           'weft save: not a time: --last=soon; use a number with ns, us, ms or s\n')
    expect('nothing is left behind', os.path.exists('x'), False)
    print('no name is left in a scrubbed copy, and weft explain says the same of it')
