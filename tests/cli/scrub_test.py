#!/usr/bin/env python3
"""scrub_test.py WEFT GENERATE ARP DEADLOCK [HTTP-SERVER]: what leaves the machine: copies without a name in them, and copies of the end
alone.

SPDX-License-Identifier: ISC"""
import json
import os
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
# What weft itself looks for stays: it says nothing of the program.
KNOWN = ('cancel', 'no such file', 'not found', 'notfound', 'not_found', 'enoent', '404', 'end of file', 'eof', 'sleep', 'garbage')
# Numbers of the kernel's, calls of libc's, and keys.
NUMBERS = ('round', 'stack', 'blocked', 'died')


def run(*command, statuses=(0,), stdin=None):
    got = subprocess.run(command, input=stdin, capture_output=True, check=False)
    if got.returncode not in statuses:
        sys.exit(f'{command}: status {got.returncode}\n{got.stderr.decode(errors="replace")[:2000]}')
    return got.stderr.decode() if statuses == (2,) else got.stdout


def lines(verb, trace, *options):
    return [json.loads(line) for line in run(weft, verb, '--json', *options, trace, statuses=(0, 1)).splitlines()]


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f'{what}: {str(got)[:1500]}\nis not\n{str(wanted)[:1500]}')


def texts_of(value, out):
    """All texts in a JSON object that stem from the trace."""
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


def names_of(trace):
    out = set()
    for event in lines('events', trace):
        if event.get('what') not in NUMBERS:
            texts_of(event, out)
    for line in lines('info', trace):
        for key in ('host', 'process', 'command', 'name', 'streams'):
            texts_of({key: line.get(key)}, out)
    return {text for text in out if len(text) > 3 and not any(known in text.lower() for known in KNOWN)}


def findings(trace):
    return [{key: finding[key] for key in ('finding', 'verdict', 'severity', 'sure', 'promise', 'root', 'start_ns', 'end_ns', 'weight')}
            for finding in lines('explain', trace)]


def shapes(trace):
    """Each sort without its name: how many there are, how long they took."""
    return sorted(json.dumps({key: value for key, value in sort.items() if not isinstance(value, str) and key != 'site'}, sort_keys=True)
                  for sort in lines('stats', trace))


def times(trace):
    return [(event['time_ns'], event['op']) for event in lines('events', trace)]


def is_scrubbed(trace, copy, words_of_format):
    kept = contents(copy)
    bad = [name for name in names_of(trace) if name.encode() in kept and name not in words_of_format]
    expect(f'{trace}: what is still in the copy', bad, [])
    expect(f'{trace}: what weft explain says of the copy', findings(copy), findings(trace))
    expect(f'{trace}: the sorts of the copy', shapes(copy), shapes(trace))
    expect(f'{trace}: the times of the copy', times(copy), times(trace))


def pending(trace):
    return {line['promise']: (line['kind'], line['start_ns']) for line in lines('dump', trace, '--no-simplify')
            if line.get('end') == 'pending' and line['promise'] != -1}


def ask(path, *questions):
    """Sends each to a server once it listens, and reads an answer."""
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


def serve(name, *command):
    """A server as it is installed, asked for secrets; none if it is not."""
    if not shutil.which(command[0]):
        print(f'{command[0]} is not installed')
        return
    process = subprocess.Popen([weft, 'record', '-o', name, '--', *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ask(os.path.abspath(name + '.socket'), *(b'set secretkey%d 0 0 5\r\nhello\r\n' % i if name == 'memcached' else b'SET secretkey%d hello\r\n' % i for i in range(50)))
    process.send_signal(signal.SIGINT)
    process.wait(timeout=PATIENCE)
    run(weft, 'save', '--scrub', name, '-w', name + '.copy')
    inner = [folder for folder, _, files in os.walk(name) if 'metadata' in files]
    expect(f'{name}: traces', len(inner), 1)
    is_scrubbed(inner[0], name + '.copy', words_of_format)


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    # What the metadata of every trace says: names of kinds and fields.
    run(generate, 'short', '--events=1k', '--format=native', '-o', 'plain')
    with open('plain/metadata') as file:
        words_of_format = file.read()

    for seed in '1', '2', '3':
        run(generate, 'random', '--events=20k', '--streams=3', '--kernel=2k', '--seed=' + seed, '--format=native', '-o', 'r' + seed)
        run(weft, 'save', '--scrub', 'r' + seed, '-w', 's' + seed)
        is_scrubbed('r' + seed, 's' + seed, words_of_format)
        run(weft, 'save', '--scrub', 'r' + seed, '-w', 'again')
        expect('the same trace has the same stand-ins', contents('again'), contents('s' + seed))
        shutil.rmtree('again')
    piped = run(weft, 'save', '--scrub', 'r1', '-w', '-')
    expect('through a pipe', run(weft, 'events', '--json', '-', stdin=piped), run(weft, 'events', '--json', 's1'))

    # Programs that are at fault are told of as before.
    subprocess.run([arp, 'bad'], env={**os.environ, 'WEFT_TRACE': 'arp'}, check=False, capture_output=True)
    run(weft, 'save', '--scrub', 'arp', '-w', 'arp.copy')
    is_scrubbed('arp', 'arp.copy', words_of_format)
    expect('the lost wake-up', [finding['verdict'] for finding in findings('arp.copy')], ['lost-wakeup'])
    os.mkdir('alice')
    os.symlink(arp, 'alice/bobs-server')
    subprocess.run(['alice/bobs-server', 'bad'], env={**os.environ, 'WEFT_TRACE': 'named'}, check=False, capture_output=True)
    expect('the command line is there', [word in contents('named') for word in (b'alice', b'bobs')], [True, True])
    run(weft, 'save', '--scrub', 'named', '-w', 'nameless')
    expect('the command line', [word in contents('nameless') for word in (b'alice', b'bobs')], [False, False])

    # Servers: files, addresses, keys, users.
    serve('redis', 'redis-server', '--port', '0', '--unixsocket', os.path.abspath('redis.socket'), '--save', '', '--dir', place)
    serve('memcached', 'memcached', *(['-u', 'root'] if os.getuid() == 0 else []), '-s', os.path.abspath('memcached.socket'))
    for server in servers:
        os.mkdir('www')
        with open('www/secret.html', 'w') as file:
            file.write('secret')
        with Server(server, 'www', trace='http') as http:
            for target in ['/secret.html', '/nobody-has-it', '/secret.html?user=alice'] * 20:
                http.ask(get(target, 'Connection: close'))
        run(weft, 'save', '--scrub', 'http', '-w', 'http.copy')
        expect('what was asked is there', [word in contents('http') for word in (b'secret', b'alice')], [True, True])
        is_scrubbed('http', 'http.copy', words_of_format)

    # The end alone.
    for trace in 'r1', 'r2', 'r3', 'arp':
        whole, ends = lines('dump', trace)[0]['trace'], pending(trace)
        run(weft, 'save', '--last=1ms', trace, '-w', 'end')
        end = lines('dump', 'end')[0]['trace']
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
        is_scrubbed('end', 'both', words_of_format)
        if shutil.which('babeltrace2'):
            theirs = subprocess.run(['babeltrace2', 'end'], capture_output=True, text=True, check=True)
            expect('babeltrace2 complains', theirs.stderr, '')
            expect('babeltrace2 reads', sum(') ' in line for line in theirs.stdout.splitlines()) >= end['events'], True)
        shutil.rmtree('end')
        shutil.rmtree('both')
    run(weft, 'save', '--last=1000s', 'r1', '-w', 'all')
    expect('all of it', run(weft, 'events', '--json', 'all'), run(weft, 'events', '--json', 'r1'))

    # A deadlock of which nothing happens any more is found in what is left.
    subprocess.run([deadlock], env={**os.environ, 'WEFT_TRACE': 'stuck'}, check=False, capture_output=True, timeout=60)
    before = [finding for finding in findings('stuck') if finding['finding'] in ('deadlock', 'cycle')]
    expect('the deadlock', len(before), 1)
    run(weft, 'save', '--last=1us', 'stuck', '-w', 'stuck.end')
    after = [finding for finding in findings('stuck.end') if finding['finding'] in ('deadlock', 'cycle')]
    expect('the deadlock in the end alone', [finding['verdict'] for finding in after], [finding['verdict'] for finding in before])

    run(generate, 'short', '--events=1k', '-o', 'mirage')
    for option in '--scrub', '--last=1s':
        expect(option, run(weft, 'save', option, 'mirage', '-w', 'x', statuses=(2,)),
               f'weft: mirage: {option.split("=")[0]} takes native traces; weft convert --to=native makes one of this\n')
    expect('no time', run(weft, 'save', '--last=soon', 'r1', '-w', 'x', statuses=(2,)),
           'weft: save: --last=soon is not a time; write a number and ns, us, ms or s\n')
    expect('nothing is left behind', os.path.exists('x'), False)
    print('no name is left in a scrubbed copy, and weft explain says the same of it')
