#!/usr/bin/env python3
"""datagrams_test.py WHAT WEFT: what programs of several runtimes, as Debian installs them, say to each other by UDP.

SPDX-License-Identifier: ISC"""

import atexit
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

from recorded import ENV, PATIENCE, Recording, expect, fail, free_port, need, need_module, until

PYTHON = '/usr/bin/python3'  # Debian's, which has Debian's modules
NAMED = """
options {{ directory "{0}"; pid-file "{0}/named.pid"; listen-on port {1} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
 recursion no; session-keyfile "{0}/session.key"; managed-keys-directory "{0}"; notify no; dnssec-validation no; }};
controls {{ }};
zone "names.example" {{ type primary; file "{0}/zone"; }};
"""
ZONE = """$TTL 60
@ IN SOA ns root 1 60 60 60 60
@ IN NS ns.names.example.
ns IN A 127.0.0.1
* IN A 10.0.0.1
"""
UNBOUND = """
server:
 interface: 127.0.0.1
 port: {1}
 do-daemonize: no
 username: ""
 chroot: ""
 directory: "{0}"
 pidfile: ""
 use-syslog: no
 do-not-query-localhost: no
 module-config: "iterator"
 infra-cache-min-rtt: 1000
remote-control:
 control-enable: no
forward-zone:
 name: "."
 forward-addr: 127.0.0.1@{2}
"""
# Answers any question with one address: late, or never, if the question asks for that.
ANSWERS = """
import asyncio, sys, uvloop
class Server(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport
    def datagram_received(self, data, sender):
        end = data.index(b'\\0', 12) + 5
        answer = data[:2] + b'\\x84\\0' + b'\\0\\1\\0\\1\\0\\0\\0\\0' + data[12:end] + b'\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\0\\0\\4\\x0a\\0\\0\\1'
        asyncio.get_running_loop().call_later(1000 if b'never' in data else 0.4 if b'late' in data else 0, self.transport.sendto, answer, sender)
async def main():
    await asyncio.get_running_loop().create_datagram_endpoint(Server, local_addr=('127.0.0.1', int(sys.argv[1])))
    await asyncio.Event().wait()
uvloop.install()
asyncio.run(main())
"""
# Starts to read on request.
READS = """
import asyncio, socket, sys, uvloop
class Reader(asyncio.DatagramProtocol):
    def datagram_received(self, data, sender):
        print(data.decode(), flush=True)
async def main():
    await asyncio.get_running_loop().create_datagram_endpoint(Reader, sock=own)
    await asyncio.Event().wait()
own = socket.socket(type=socket.SOCK_DGRAM)
own.bind(('127.0.0.1', 0))
print(own.getsockname()[1], flush=True)
sys.stdin.readline()
uvloop.install()
asyncio.run(main())
"""
# Sends each line that it is given.
SENDS = """
import asyncio, sys, uvloop
async def main():
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=('127.0.0.1', int(sys.argv[1])))
    print('ready', flush=True)
    for line in sys.stdin:
        transport.sendto(line.strip().encode())
        print('sent', flush=True)
uvloop.install()
asyncio.run(main())
"""


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='ascii') as file:
        file.write(text)
    return path


def kill(process):
    """Kills the process with all its children, when a test fails."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)


class Programs:
    """Recorded servers, and their clients; each has a folder of traces."""

    def __init__(self, weft, folder):
        self.weft, self.folder, self.servers = weft, folder, []

    def serve(self, name, command, **options):
        recording = Recording(self.weft, os.path.join(self.folder, 'traces', name), command, wait=False, start_new_session=True, **options)
        self.servers.append((name, recording))
        atexit.register(kill, recording.process)
        return recording

    def ask(self, name, port, host='127.0.0.1', **options):
        """Records dig, which gets the address; returns its folder of traces."""
        asked = Recording(self.weft, os.path.join(self.folder, 'traces', 'dig-' + name),
                          [need('dig'), '+short', '+timeout=3', '+tries=1', '@' + host, '-p', str(port), name + '.names.example'], **options)
        expect((asked.status, asked.out), (0, b'10.0.0.1\n'), f'what dig says of {name}')
        return asked

    def answers(self, port, host='127.0.0.1', before=()):
        dig = [*before, need('dig'), '+short', '+timeout=2', '+tries=1', '@' + host, '-p', str(port), 'first.names.example']
        until(lambda: subprocess.run(dig, stdout=subprocess.PIPE, env=ENV, check=False).stdout == b'10.0.0.1\n', 'nobody answers')

    def end(self):
        for name, recording in self.servers:
            if recording.process.poll() is None:
                recording.end('*', signal.SIGTERM)
            else:
                recording.status = recording.process.returncode
            if recording.status not in (0, -signal.SIGTERM, 128 + signal.SIGTERM):
                fail(f'{name} ends with {recording.status}')

    def run_weft(self, *words):
        return subprocess.run([self.weft, words[0], os.path.join(self.folder, 'traces'), *words[1:]], capture_output=True, text=True, check=False,
                              timeout=PATIENCE).stdout

    def promises(self, kind, label):
        found = [json.loads(line) for line in self.run_weft('dump', '--json').splitlines()]
        return [p for p in found if p.get('kind') == kind and any(label in text for _, text in p['labels'])]

    def messages(self):
        return json.loads(self.run_weft('info', '--json').splitlines()[-1])['messages']


def forwards(weft, folder):
    """unbound, of libevent, asks BIND, of libuv."""
    unbound, named = need('/usr/sbin/unbound'), need('/usr/sbin/named')
    upstream = free_port()
    port = free_port(upstream)
    programs = Programs(weft, folder)
    write(folder, 'zone', ZONE)
    programs.serve('named', [named, '-n', '1', '-f', '-g', '-c', write(folder, 'named.conf', NAMED.format(folder, upstream))])
    programs.serve('unbound', [unbound, '-d', '-p', '-c', write(folder, 'unbound.conf', UNBOUND.format(folder, port, upstream))])
    programs.answers(port)
    programs.ask('second', port)
    programs.end()
    # The datagram of the first dig, which is not recorded, has no sender: its question is read twice at most.
    if programs.messages() < 4:
        fail(f'{programs.messages()} messages')
    asked = [p for p in programs.promises('connection', f'udp 127.0.0.1:{port}') if p['thread'].startswith('dig')]
    path = programs.run_weft('path', f'--promise={asked[-1]["promise"]}')
    if not re.search(r'from dig .*in unbound\n(.*\n)*.*from unbound .*in named\n(.*\n)*.*from named .*in unbound\n(.*\n)*.*from unbound .*in dig', path):
        fail(f'the path of what dig asked for does not go through both servers:\n{path}')


def late(weft, folder):
    """The server behind unbound answers late once, and then never: the finding names it."""
    unbound, upstream = need('/usr/sbin/unbound'), free_port()
    need_module('uvloop')
    port = free_port(upstream)
    programs = Programs(weft, folder)
    programs.serve('answers', [PYTHON, '-c', ANSWERS, str(upstream)])
    programs.serve('unbound', [unbound, '-d', '-p', '-c', write(folder, 'unbound.conf', UNBOUND.format(folder, port, upstream))])
    programs.answers(port)
    for i in range(18):
        programs.ask(f'quick{i}', port)
    programs.ask('late', port)
    said = programs.run_weft('explain')
    asked = re.search(r'slow: connection (\d+) "udp 127\.0\.0\.1:%d" was answered by python3 after \d+ ms' % upstream, said)
    if not asked:
        fail(f'who answers late is not told:\n{said}')
    path = programs.run_weft('path', f'--promise={asked[1]}')
    if not re.search(r'from unbound .*in python3\n(.*\n)*.*timer \d+ "400 ms" .*\n(.*\n)*.*from python3 .*in unbound\n.*connection %s ' % asked[1], path):
        fail(f'the path of a late answer does not go through who gave it:\n{path}')
    with socket.socket(type=socket.SOCK_DGRAM) as asks:
        asks.sendto(b'\0\1\1\0\0\1\0\0\0\0\0\0\5never\5names\7example\0\0\1\0\1', ('127.0.0.1', port))
        until(lambda: re.search(r'connection \d+ "udp 127\.0\.0\.1:%d"[^\n]*\n\W+request \d+ "from 127' % upstream, programs.run_weft('waits')),
              'who never answers is not waited for')
    programs.end()


def resolved(weft, folder):
    """systemd-resolved, of sd-event, asks BIND; in its own network, without other servers."""
    daemon, named = need('/lib/systemd/systemd-resolved'), need('/usr/sbin/named')
    enter = ['unshare', '--net', '--mount', '--propagation', 'private']
    prepare = ('ip link set lo up && ip link add veth0 type veth peer name veth1 && ip address add 10.77.0.1/24 dev veth0 && ip link set veth0 up && ip link set veth1 up && '
               'mount -t tmpfs tmpfs /run && mkdir /run/systemd && mount -t tmpfs tmpfs /etc/systemd && cp "$0" /etc/systemd/resolved.conf')
    settings = write(folder, 'resolved.conf', '[Resolve]\nDNS=127.0.0.1:5353\nDomains=~.\nLLMNR=no\nMulticastDNS=no\nDNSSEC=no\nCache=no\n')
    if subprocess.run([need('unshare'), *enter[1:], 'sh', '-c', prepare, settings], stderr=subprocess.DEVNULL, check=False).returncode:
        print('SKIPPED: no network of its own can be made here')
        sys.exit(77)
    os.chmod(folder, 0o711)  # it becomes another user
    with subprocess.Popen([*enter, 'sh', '-c', prepare + ' && echo ready && exec cat', settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as inside:
        expect(inside.stdout.readline(), b'ready\n', 'the network')
        there = ['nsenter', '--net', '--mount', f'--target={inside.pid}']
        programs = Programs(weft, folder)
        write(folder, 'zone', ZONE)
        programs.serve('named', [named, '-n', '1', '-f', '-g', '-c', write(folder, 'named.conf', NAMED.format(folder, 5353))], before=there)
        programs.serve('resolved', [daemon], before=there)
        programs.answers(53, '127.0.0.53', there)
        programs.ask('second', 53, '127.0.0.53', before=there)
        asked = [p for p in programs.promises('connection', 'udp 127.0.0.53:53') if p['thread'].startswith('dig')]
        path = programs.run_weft('path', f'--promise={asked[-1]["promise"]}')
        for _, recording in programs.servers:
            for place, names, _ in os.walk(recording.folder):
                for pid in (int(name.rsplit('-', 1)[1]) for name in names if re.search(r'-\d+$', name) and not name.startswith('uid-')):
                    os.kill(pid, signal.SIGTERM)
            recording.process.communicate(timeout=PATIENCE)
        inside.stdin.close()
    if not re.search(r'from dig .*in systemd-resolve\n(.*\n)*.*from systemd-resolve .*in named\n(.*\n)*.*from named .*in systemd-resolve\n(.*\n)*.*from systemd-resolve .*in dig', path):
        fail(f'the path of what dig asked for does not go through both servers:\n{path}')


def gio(weft, folder, *asks):
    """A program of GLib asks by sockets of GIO, and by descriptors that it watches; the answering server of each is recorded once."""
    need_module('uvloop')
    port, programs = free_port(), Programs(weft, folder)
    programs.serve('answers', [PYTHON, '-c', ANSWERS, str(port)])
    programs.answers(port)
    asked = Recording(weft, os.path.join(folder, 'traces', 'asks'), [*asks, str(port)])
    expect((asked.status, asked.out), (0, b'answered\n' * 3), 'how who asks ends')
    programs.end()
    expect(programs.messages(), 6, 'three questions and their answers')
    for socket_ in programs.promises('connection', f'udp'):
        if socket_['thread'] == 'asks':
            path = programs.run_weft('path', f'--promise={socket_["promise"]}')
            if not re.search(r'from asks .*in python3\n(.*\n)*.*from python3 .*in asks\n', path):
                fail(f'the path of an answer does not go through who gave it:\n{path}')


def equal(weft, folder):
    """Two programs send equal datagrams, and the trace cannot say which one arrived: it might be the first, twice."""
    need_module('uvloop')
    programs = Programs(weft, folder)
    reads = programs.serve('reads', [PYTHON, '-c', READS], stdin=subprocess.PIPE).process
    port = int(reads.stdout.readline())
    senders = [programs.serve(f'sends{i}', [PYTHON, '-c', SENDS, str(port)], stdin=subprocess.PIPE).process for i in range(2)]
    for sender in senders:
        expect(sender.stdout.readline(), b'ready\n', 'who sends')
    for i, word in ((0, b'same'), (1, b'same'), (0, b'another'), (1, b'again'), (1, b'again')):
        senders[i].stdin.write(word + b'\n')
        senders[i].stdin.flush()
        expect(senders[i].stdout.readline(), b'sent\n', 'who sends')
    reads.stdin.write(b'\n')
    reads.stdin.flush()
    expect([reads.stdout.readline() for _ in range(5)], [b'same\n', b'same\n', b'another\n', b'again\n', b'again\n'], 'what comes')
    for program in senders:
        program.communicate(timeout=PATIENCE)
    programs.end()
    expect(programs.messages(), 3, 'messages of which it is known who sent them')


TESTS = {'forwards': forwards, 'late': late, 'resolved': resolved, 'gio': gio, 'equal': equal}
with tempfile.TemporaryDirectory(prefix='weft-datagrams-') as at:
    TESTS[sys.argv[1]](os.path.abspath(sys.argv[2]), at, *map(os.path.abspath, sys.argv[3:]))
