#!/usr/bin/env python3
"""unit_test.py WEFT EXAMPLES: redis-server, in the environment that weft record --install-unit gives to its unit, notifies systemd that it is ready,
   and its requests are recorded; the unit in examples/systemd is hardened, and can read the recording of another user.

SPDX-License-Identifier: ISC"""
import ctypes
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from waiting import PATIENCE, dies_with_test, expect  # pylint: disable=wrong-import-position

weft, examples = map(os.path.abspath, sys.argv[1:])
PR_SET_NO_NEW_PRIVS, PR_SET_MDWE = 38, 65


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE, **more)


def read_drop_in(path):
    """Returns the lines NAME=VALUE of a drop-in as {NAME: [VALUE...]}, and its environment."""
    lines, environment = {}, {}
    with open(path, encoding='utf-8') as file:
        for line in file:
            if '=' in line and not line.startswith('#'):
                name, _, value = line.strip().partition('=')
                lines.setdefault(name, []).append(value)
    for quoted in lines['Environment']:
        expect(f'quotation marks of {quoted}', re.fullmatch(r'"[^"\\]*"', quoted) is not None, True)
        name, _, value = quoted[1:-1].replace('%%', '%').partition('=')
        environment[name] = value
    return lines, environment


def confine(user):
    """Restricts this process as systemd restricts redis-server: another user, no new privileges, and no memory that is both writable and executable."""
    dies_with_test()
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    dies_with_test()  # once more, because a change of the user resets it
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    prctl(PR_SET_MDWE, 1, 0, 0, 0)


def redis_is_recorded_with_the_generated_drop_in(place):
    folder = os.path.join(place, 'redis-server.service.d')
    os.mkdir(folder)
    done = run(weft, 'record', '--install-unit=redis-server.service', '--size=1M', '-o', os.path.join(folder, 'weft.conf'))
    expect(f'weft record: {done.stderr}', done.returncode, 0)
    lines, environment = read_drop_in(os.path.join(folder, 'weft.conf'))
    expect('the folder that systemd makes', lines['LogsDirectory'], ['weft/redis-server'])
    expect('the directory of the traces', environment['WEFT_RECORD'], '/var/log/weft/redis-server,size=1048576')
    installed = '/usr/lib/systemd/system/redis-server.service'
    if shutil.which('systemd-analyze') and os.path.exists(installed):
        shutil.copy(installed, place)
        done = run('systemd-analyze', 'verify', 'redis-server.service', env={**os.environ, 'SYSTEMD_UNIT_PATH': f'{place}:'})
        expect('what systemd says of the drop-in', [line for line in done.stderr.splitlines() if 'weft' in line], [])
    user = pwd.getpwnam('nobody') if os.getuid() == 0 else pwd.getpwuid(os.getuid())
    logs, runtime = os.path.join(place, 'logs'), os.path.join(place, 'run')
    for path in logs, runtime:
        os.mkdir(path, 0o750)
        os.chown(path, user.pw_uid, user.pw_gid)
    os.chmod(place, 0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(os.path.join(place, 'notify'))
        os.chmod(os.path.join(place, 'notify'), 0o777)
        notices.settimeout(PATIENCE)
        own = {'LD_PRELOAD': environment['LD_PRELOAD'], 'WEFT_RECORD': environment['WEFT_RECORD'].replace('/var/log/weft/redis-server', logs), 'NOTIFY_SOCKET': os.path.join(place, 'notify'), 'PATH': os.environ['PATH']}
        path = os.path.join(runtime, 'redis')
        with open(os.path.join(place, 'redis.log'), 'w', encoding='utf-8') as log:
            server = subprocess.Popen(['redis-server', '--port', '0', '--unixsocket', path + '.sock', '--unixsocketperm', '777', '--save', '', '--supervised', 'systemd', '--daemonize', 'no', '--dir', logs], env=own, preexec_fn=lambda: confine(user), stdout=log, stderr=log)
            said = b''
            while b'READY=1' not in said:
                said = notices.recv(4096)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path + '.sock')
            for _ in range(10):
                client.send(b'*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n')
                expect('the answer of redis', client.recv(100), b'+OK\r\n')
        unprivileged_watcher_reads_the_recording(logs)
        server.send_signal(signal.SIGTERM)
        expect('the end of redis', server.wait(timeout=PATIENCE), 0)
    traces = [name for name in os.listdir(logs) if name.startswith('redis-server-')]
    expect('the traces', len(traces), 1)
    stats = run(weft, 'stats', '--table', os.path.join(logs, traces[0])).stdout
    expect(f'the requests in: {stats}', '"SET"' in stats, True)


def unprivileged_watcher_reads_the_recording(logs):
    """A watcher that runs as the unit starts it, as another user with one capability, can read the recording."""
    if os.getuid() != 0 or not shutil.which('setpriv'):
        print('this user is not root: no other user watches')
        return
    watcher = subprocess.Popen(['setpriv', '--reuid=daemon', '--regid=daemon', '--clear-groups', '--inh-caps=-all,+dac_read_search', '--ambient-caps=-all,+dac_read_search', '--bounding-set=-all,+dac_read_search', weft, 'watch', logs, 'failed(SET)=0', 'pending(nothing)<0', '--every=100ms'], preexec_fn=dies_with_test, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect('the rule that is broken', 'pending(nothing)<0 is broken' in watcher.stdout.readline(), True)
    watcher.send_signal(signal.SIGTERM)
    expect('what the watcher says', watcher.communicate(timeout=PATIENCE)[1], '')


def the_example_is_hardened():
    if not shutil.which('systemd-analyze'):
        print('there is no systemd-analyze: the unit is not rated')
        return
    unit = os.path.join(examples, 'weft-watch.service')
    done = run('systemd-analyze', 'security', '--offline=yes', '--threshold=30', unit)
    expect(f'systemd rates the unit: {done.stdout[-200:]}', done.returncode, 0)
    done = run('systemd-analyze', 'verify', unit)
    expect('what systemd says of the unit', [line for line in done.stderr.splitlines() if 'weft-watch' in line and 'not executable' not in line and 'man weft' not in line], [])
    with open(unit, encoding='utf-8') as file:
        command = re.search(r'ExecStart=/usr/bin/(weft .*)', file.read())[1]
    expect('the options of the unit', [word for word in re.findall(r'--[\w-]+', command) if word not in run(weft, 'watch', '--help').stdout], [])


def wrong_names_are_refused():
    for name in '../x', 'a b', '.service':
        done = run(weft, 'record', f'--install-unit={name}', '-o', 'x')
        expect(f'the name {name!r}', (done.returncode, 'not the name of a service' in done.stderr, os.path.exists('x')), (2, True, False))
    expect('a command besides', run(weft, 'record', '--install-unit=redis', '--', 'true').returncode, 2)


if not shutil.which('redis-server'):
    print('skipped: there is no redis-server')
    sys.exit(77)
with tempfile.TemporaryDirectory() as temporary:
    os.chdir(temporary)
    wrong_names_are_refused()
    the_example_is_hardened()
    redis_is_recorded_with_the_generated_drop_in(temporary)
    os.chdir('/')
