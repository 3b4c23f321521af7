#!/usr/bin/env python3
"""Unmodified servers with event loops of their own answer under load as without recording, and have no findings.

	servers_test.py NAME WEFT	the names are at the end

SPDX-License-Identifier: ISC"""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from recorded import ENV, PATIENCE, Recording, expect, fail, free_port, need, need_way, until

# The limit for stalls is long, because a healthy program also has shorter stalls on a busy machine.
LATE = '2s'
CLIENTS, REQUESTS = 4, 50
BODY = b'hello from weft\n' * 1000


def write(path, text):
    with open(path, 'w', encoding='ascii') as file:
        file.write(text)
    return path


def listens(port):
    try:
        with socket.create_connection(('127.0.0.1', port), timeout=1):
            return True
    except OSError:
        return False


def in_parallel(ask):
    """Runs `ask` in all clients, and returns the answers."""
    answers = [[] for _ in range(CLIENTS)]

    def client(number):
        answers[number].extend(ask(number))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def get(port, address='/file'):
    """A client that sends all requests over one connection, which the last request closes."""

    def ask(_):
        connection = http.client.HTTPConnection('127.0.0.1', port, timeout=PATIENCE)
        for _ in range(REQUESTS):
            connection.request('GET', address)
            answer = connection.getresponse()
            yield answer.status, answer.read()
        connection.close()

    return ask


FILE = [[(200, BODY)] * REQUESTS] * CLIENTS


def publish(folder):
    root = os.path.join(folder, 'www')
    os.makedirs(root, exist_ok=True)
    with open(os.path.join(root, 'file'), 'wb') as file:
        file.write(BODY)
    return root


def unprivileged(folder):
    """Returns the prefix of a command that refuses to run as root."""
    if os.getuid() != 0:
        return []
    need_way(sys.argv[2])
    os.chmod(folder, 0o777)
    return [need('setpriv'), '--reuid=65534', '--regid=65534', '--clear-groups']


# Each: (command, port, the client's function, the expected answer, the signal that ends it).
def nginx(folder):
    port, root = free_port(), publish(folder)
    conf = write(os.path.join(folder, 'nginx.conf'), f'''daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 2; {"user root;" if os.getuid() == 0 else ""}
events {{}} http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;
scgi_temp_path {folder}/s; aio threads; sendfile off; server {{ listen 127.0.0.1:{port}; root {root}; }} }}''')
    return [need('/usr/sbin/nginx'), '-e', f'{folder}/error.log', '-c', conf], port, get(port), FILE, signal.SIGQUIT


def lighttpd(folder):
    port, root = free_port(), publish(folder)
    conf = write(os.path.join(folder, 'lighttpd.conf'), f'''server.document-root = "{root}"\nserver.bind = "127.0.0.1"\nserver.port = {port}\n''')
    return [need('/usr/sbin/lighttpd'), '-D', '-f', conf], port, get(port), FILE, signal.SIGINT


def haproxy(folder):
    port, path = free_port(), os.path.join(publish(folder), 'file')
    conf = write(os.path.join(folder, 'haproxy.cfg'), f'''global\n  nbthread 2\ndefaults\n  mode http\n  timeout client 60s\n  timeout server 60s\n  timeout connect 60s
frontend one\n  bind 127.0.0.1:{port}\n  http-request return status 200 content-type text/plain file {path}\n''')
    return [need('/usr/sbin/haproxy'), '-db', '-f', conf], port, get(port), FILE, signal.SIGTERM


def squid(folder):
    port, behind = free_port(), free_port()
    server = subprocess.Popen([sys.executable, '-m', 'http.server', str(behind), '--bind', '127.0.0.1', '-d', publish(folder)], env=ENV,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    BEHIND.append(server)
    until(lambda: listens(behind), 'nobody serves what squid is to fetch')
    user = unprivileged(folder)
    conf = write(os.path.join(folder, 'squid.conf'), f'''http_port 127.0.0.1:{port}\nhttp_access allow all\ncache_mem 8 MB\nmemory_cache_shared off\naccess_log none\ncache_log {folder}/cache.log
pid_filename none\nshutdown_lifetime 0 seconds\nnetdb_filename none\npinger_enable off\ncoredump_dir {folder}\n''')
    return [*user, need('/usr/sbin/squid'), '-N', '-f', conf], port, get(port, f'http://127.0.0.1:{behind}/file'), FILE, signal.SIGTERM


def mosquitto(folder):
    port = free_port()
    conf = write(os.path.join(folder, 'mosquitto.conf'), f'listener {port} 127.0.0.1\nallow_anonymous true\n{"user root" if os.getuid() == 0 else ""}\n')

    def packet(kind, body):
        return bytes([kind, len(body)]) + body

    def text(value):
        return len(value).to_bytes(2, 'big') + value

    def ask(number):
        """An MQTT client that publishes, and receives its message."""
        topic = text(b'topic/%d' % number)
        with socket.create_connection(('127.0.0.1', port), timeout=PATIENCE) as client:
            file = client.makefile('rwb')

            def say(kind, body):
                file.write(packet(kind, body))
                file.flush()

            def read_packet():
                kind, size = file.read(2)
                return kind, file.read(size)

            say(0x10, text(b'MQTT') + b'\x04\x02\x00\x3c' + text(b'client%d' % number))
            yield read_packet()
            say(0x82, b'\x00\x01' + topic + b'\x00')
            yield read_packet()
            for i in range(REQUESTS):
                say(0x30, topic + b'message %d' % i)
                yield read_packet()
            say(0xe0, b'')

    want = [[(0x20, b'\x00\x00'), (0x90, b'\x00\x01\x00')] + [(0x30, text(b'topic/%d' % n) + b'message %d' % i) for i in range(REQUESTS)] for n in range(CLIENTS)]
    return [need('/usr/sbin/mosquitto'), '-c', conf], port, ask, want, signal.SIGTERM


def postgres(folder):
    found = sorted(os.path.join('/usr/lib/postgresql', version, 'bin') for version in (os.listdir('/usr/lib/postgresql') if os.path.isdir('/usr/lib/postgresql') else []))
    binaries = found[-1] if found else '/usr/lib/postgresql/15/bin'
    server, psql, data, port = need(os.path.join(binaries, 'postgres')), need(os.path.join(binaries, 'psql')), os.path.join(folder, 'data'), free_port()
    user = unprivileged(folder)
    if not os.path.exists(data):
        subprocess.run([*user, os.path.join(binaries, 'initdb'), '-D', data, '-U', 'weft', '-A', 'trust', '--no-sync'], env=ENV, stdout=subprocess.DEVNULL, check=True)

    def ask(number):
        script = 'CREATE TEMP TABLE t (i int);' + ''.join(f'INSERT INTO t VALUES ({i * (number + 1)}); SELECT sum(i) FROM t;' for i in range(REQUESTS))
        said = []

        def answers():  # the server listens before it is ready
            run = subprocess.run([psql, '-h', '127.0.0.1', '-p', str(port), '-U', 'weft', '-d', 'postgres', '-qAt'], input=script, env=ENV, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True, timeout=PATIENCE, check=False)
            said[:] = run.stdout.split()
            return run.returncode == 0

        until(answers, 'postgres is not ready')
        yield said

    want = [[[str(n * i * (i + 1) // 2) for i in range(REQUESTS)]] for n in range(1, CLIENTS + 1)]
    return [*user, server, '-D', data, '-p', str(port), '-h', '127.0.0.1', '-k', folder, '-F'], port, ask, want, signal.SIGINT


BEHIND = []


def load(process, port, ask):
    until(lambda: listens(port) or process.poll() is not None, 'nobody listens')
    if process.poll() is not None:
        fail(f'it ends at once: {process.communicate()}')
    answers = in_parallel(ask)
    time.sleep(0.3)
    return answers


def main_process(process):
    """Returns the process of the server: a child of the command, or the process of the command itself after an exec."""
    children = subprocess.run(['ps', '-o', 'pid=', '--ppid', str(process.pid)], stdout=subprocess.PIPE, text=True, check=False).stdout.split()
    return int(children[0]) if children else process.pid


def test(name, weft, folder):
    command, port, ask, want, end = SERVERS[name](folder)
    process = subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    expect(load(process, port, ask) == want, True, f'whether {name} answers as expected')
    process.send_signal(end)
    process.communicate(timeout=PATIENCE)

    command, port, ask, want, end = SERVERS[name](folder)
    before = command[:command.index('--clear-groups') + 1] if '--clear-groups' in command else []
    recording = Recording(weft, os.path.join(folder, 'traces'), command[len(before):], wait=False, before=before)
    expect(load(recording.process, port, ask) == want, True, f'whether {name} answers as expected when it is recorded')
    os.kill(main_process(recording.process), end)
    recording.out, recording.err = recording.process.communicate(timeout=PATIENCE)
    expect(recording.process.returncode % 256, process.returncode if process.returncode >= 0 else 128 - process.returncode, f'how {name} ends')
    served = 0
    for trace in recording.all():
        expect(trace.alarms(LATE), [], f'alarms in {trace.path}')
        expect(trace.lost(), 0, f'events lost in {trace.path}')
        expect([p['end'] for p in trace.promises() if p['end'] == 'failed'], [], f'failures in {trace.path}')
        for thread in trace.promises('thread'):
            slept = sum(b[0] - a[1] for a, b in zip(thread['running'], thread['running'][1:]))
            served += len(thread['running']) > 5 and slept > 0
    if not served:
        fail(f'no OS thread of {name} works and sleeps in turn: {[trace.path for trace in recording.all()]}')


SERVERS = {'nginx': nginx, 'lighttpd': lighttpd, 'haproxy': haproxy, 'squid': squid, 'mosquitto': mosquitto, 'postgres': postgres}
with tempfile.TemporaryDirectory(prefix='weft-server-') as place:
    try:
        test(sys.argv[1], sys.argv[2], place)
    finally:
        for helper in BEHIND:
            helper.kill()
        shutil.rmtree(os.path.join(place, 'data'), ignore_errors=True)
