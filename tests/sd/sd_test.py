#!/usr/bin/env python3
"""sd-event and sd-bus: small programs, and unmodified programs of Debian, have the right promises in their traces.

	sd_test.py scenes WEFT SCENES
	sd_test.py busctl|networkd|networkd-stands-by WEFT

SPDX-License-Identifier: ISC"""

import json
import os
import re
import subprocess
import sys
import tempfile

from recorded import ENV, PATIENCE, Recording, Trace, expect, fail, need, until

# The limit for stalls is long, because a healthy program also has shorter stalls on a busy machine.
LATE = '2s'


def complete_trace(trace):
    copies = trace.ask('info', '--json')[0]['runtimes']
    if not re.search(r'sd-event \d+: (\d+) of \1 calls', copies):
        fail(f'not all was taken: {copies}')
    expect(trace.lost(), 0, 'events lost')
    return trace


def healthy(trace):
    expect(trace.alarms(LATE), [], f'alarms in {trace.path}')


def record(weft, program, name, folder):
    plain = subprocess.run([program, name], stdout=subprocess.PIPE, env=ENV, timeout=PATIENCE, check=True).stdout
    recording = Recording(weft, os.path.join(folder, name), [program, name])
    expect((recording.status, recording.out), (0, plain), f'what {name} does')
    return complete_trace(recording.trace('sd_scenes'))


def scenes(weft, folder, program):
    trace = record(weft, program, 'kinds', folder)
    found = {label: trace.promise(kind, label) for kind, label in (
        ('loop', 'sd_event_loop'), ('timer', '10 ms tick'), ('poll', 'pipe input'), ('signal', 'signal 10'), ('poll', 'watch /tmp/sd-'), ('condition', 'defer'),
        ('condition', 'post'), ('condition', 'exit'), ('timer', '100 s'), ('process', 'process '))}
    expect({p['end'] for p in found.values()}, {'resolved'}, 'how all end')
    loop, read = found['sd_event_loop'], found['pipe input']
    expect({p['created_by'] for label, p in found.items() if label != 'process '}, {trace.promise('thread', 'main')['promise']}, 'who adds what')
    expect(found['process ']['created_by'], read['promise'], 'who makes the child')
    expect({label: len(p['running']) for label, p in found.items() if label in ('signal 10', 'defer', 'exit', '100 s', 'process ', 'watch /tmp/sd-')},
           {'signal 10': 1, 'defer': 1, 'exit': 1, '100 s': 0, 'process ': 1, 'watch /tmp/sd-': 1}, 'how often handlers run')
    # The code of a handler before and after its nested loop is one run; the source is freed in its own handler.
    expect((len(found['10 ms tick']['running']), len(read['running'])), (5, 2), 'how often handlers run')
    if not read['end_ns'] < loop['end_ns'] < found['signal 10']['end_ns'] or len(found['post']['running']) < 6:
        fail(f'when what ends: {found}')
    ended_by = {event['promise']: event['by'] for event in trace.ask('events', '--json') if event['op'] == 'resolve'}
    expect(ended_by[loop['promise']], found['watch /tmp/sd-']['promise'], 'who ends the loop')
    pauses = [event['why'] for event in trace.ask('events', '--json') if event['op'] == 'pause_begin']
    expect(pauses, ['blocked in usleep'], 'what holds handlers up')
    if 'scenes.c' not in (found['10 ms tick']['site'] or {}).get('file', ''):
        fail(f'where the timer was made: {found["10 ms tick"]}')
    healthy(trace)

    recording = Recording(weft, os.path.join(folder, 'notifies'), [program, 'notifies'])
    expect((recording.status, recording.trace('sd_scenes').ask('info', '--json')[0].get('runtimes', '')), (0, ''), 'runtimes of a program that only notifies systemd')

    for name, kind, label in (('spin_defer', 'condition', 'defer'), ('spin_fd', 'poll', 'pipe')):
        trace = record(weft, program, name, folder)
        found = trace.findings(LATE)
        expect(list(found), ['spin'], f'what is found in {name}')
        expect(found['spin'][0]['promise'], trace.promise(kind, label)['promise'], 'who spins')
        events = trace.ask('info', '--json')[0]['events']
        if events > 2000:
            fail(f'{events} events of what spins')
    trace = record(weft, program, 'load', folder)
    expect([name for name in trace.findings(LATE) if name == 'spin'], [], 'spins in a program under load')
    healthy(trace)

    # A loop that the program runs by single iterations records its inputs while it sleeps.
    recording = Recording(weft, os.path.join(folder, 'turned'), [program, 'turned'], wait=False, stdin=subprocess.PIPE)
    expect(recording.process.stdout.readline(), b'sleeps\n', 'the first word of turned')
    until(lambda: recording.trace('sd_scenes').kept_by('sd_event_run') == ['100 s', 'pipe'], 'the trace does not list what the loop waits for')
    recording.out, recording.err = recording.process.communicate(b'x', timeout=PATIENCE)
    expect((recording.process.returncode, recording.out), (0, b'awake\n'), 'how turned ends')
    expect(complete_trace(recording.trace('sd_scenes')).findings(LATE), {}, 'what is found in turned')


CLERK = """
import gi, sys
from gi.repository import GLib, Gio
loop = GLib.MainLoop()
xml = "<node><interface name='org.example.Clerk'><method name='Quick'/><method name='Wrong'/></interface></node>"

def called(connection, sender, path, interface, method, args, invocation):
    if method == 'Quick':
        invocation.return_value(None)
    else:
        invocation.return_dbus_error('org.example.Error', 'it is wrong')

bus = Gio.bus_get_sync(Gio.BusType.SESSION, None)
bus.register_object('/clerk', Gio.DBusNodeInfo.new_for_xml(xml).interfaces[0], called, None, None)
Gio.bus_own_name_on_connection(bus, 'org.example.Clerk', 0, None, None)
loop.run()
"""


def busctl(weft, folder):
    """busctl calls a program of GLib; weft joins both traces."""
    need('busctl'), need('gdbus')
    if subprocess.run(['/usr/bin/python3', '-c', 'import gi; from gi.repository import Gio'], stderr=subprocess.DEVNULL, check=False).returncode:
        print('SKIPPED: Python has no gi')
        sys.exit(77)
    clerk = os.path.join(folder, 'clerk.py')
    with open(clerk, 'w', encoding='ascii') as file:
        file.write(CLERK)
    call = 'busctl --user call org.example.Clerk /clerk org.example.Clerk '
    script = f'/usr/bin/python3 {clerk} & clerk=$!; gdbus wait --session --timeout=60 org.example.Clerk; {call}Quick; {call}Wrong; kill $clerk; wait'
    recording = Recording(weft, os.path.join(folder, 'traces'), [need('dbus-run-session'), '--', 'sh', '-c', script])
    expect(recording.err.count(b'it is wrong'), 1, 'what the second call says')
    for path in recording.traces('busctl'):
        healthy(complete_trace(Trace(recording.weft, os.path.dirname(path))))
    session = Trace(weft, os.path.join(folder, 'traces'))
    for method, end in (('Quick', 'resolved'), ('Wrong', 'failed')):
        asked, served = session.promise('request', f'org.example.Clerk.{method} @'), session.promise('request', f'serve org.example.Clerk.{method}')
        expect((asked['end'], served['end']), (end, end), f'how {method} ends')
        if not asked['start_ns'] <= served['start_ns'] <= served['end_ns'] <= asked['end_ns']:
            fail(f'the call {asked} and who serves it, {served}')
        waits = [(line['promise'], line['awaits']) for line in session.ask('waits', '--json', f'--at={(served["start_ns"] + served["end_ns"]) // 2}ns')]
        expect((asked['promise'], served['promise']) in waits, True, 'the call waits for who serves it')


NETWORK = """
mount -t sysfs -o ro sysfs /sys
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/network /run/systemd/netif /run/udev
chown systemd-network:systemd-network /run/systemd/netif
ip link add veth0 type veth peer name veth1
printf '[Match]\\nName=veth0\\n[Network]\\nDHCPServer=yes\\nIPv6AcceptRA=no\\nAddress=10.9.0.1/24\\n' > /run/systemd/network/a.network
printf '[Match]\\nName=veth1\\n[Network]\\nDHCP=ipv4\\nLinkLocalAddressing=no\\n' > /run/systemd/network/b.network
exec /lib/systemd/systemd-networkd
"""


def need_network():
    """Returns the command for a private network."""
    daemon = '/lib/systemd/systemd-networkd'
    own = [need('unshare'), '--net', '--mount', '--propagation', 'private']
    need(daemon), need('ip')
    if subprocess.run([*own, 'sh', '-c', 'mount -t tmpfs tmpfs /run && mount -t sysfs -o ro sysfs /sys && ip link add veth0 type veth peer name veth1'], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        print('SKIPPED: no network of its own can be made here')
        sys.exit(77)
    return own


def networkd(weft, folder):
    """networkd assigns an address to itself."""
    own = need_network()
    os.chmod(folder, 0o711)  # the program becomes another user
    traces = os.path.join(folder, 'traces')
    recording = Recording(weft, traces, ['sh', '-c', NETWORK], wait=False, before=own)
    got = b''
    for line in recording.process.stderr:
        got += line
        if b'DHCPv4 address 10.9.0.' in line:
            break
    else:
        fail(f'no address is given: {got.decode()}')
    folders = [os.path.join(at, name) for at, names, _ in os.walk(traces) for name in names if name.startswith('systemd-network-')]
    expect(len(folders), 1, 'traces of the daemon')
    os.kill(int(folders[0].rsplit('-', 1)[1]), 15)
    recording.process.communicate(timeout=PATIENCE)
    trace = complete_trace(Trace(weft, folders[0]))
    for kind, label in (('loop', 'sd_event_loop'), ('connection', 'udp 0.0.0.0:67'), ('timer', 'dhcp4-resend-timer'), ('timer', 'dhcp4-lifetime'), ('signal', 'signal 15')):
        expect({p['end'] for p in trace.promises(kind, label)}, {'resolved'}, f'how {label} ends')
    message = trace.promises('poll', 'dhcp4-receive-message')
    expect([len(p['running']) for p in message][:1], [2], 'offer and acknowledgement')
    lease = trace.promise('timer', 'dhcp4-lifetime')
    expect(lease['created_by'], message[0]['promise'], 'who knows how long the address is good')
    healthy(trace)


def list_ancestors(pid):
    """Returns the ids of the processes from which a process descends."""
    ancestors = []
    while pid > 1:
        with open(f'/proc/{pid}/stat', encoding='utf-8') as stat:
            pid = int(stat.read().rpartition(')')[2].split()[1])
        ancestors.append(pid)
    return ancestors


def stands_by(weft, folder):
    """networkd starts to record twice while it sleeps; each recording has its inputs at once."""
    own = need_network()
    os.chmod(folder, 0o711)
    traces = os.path.join(folder, 'traces')
    recording = Recording(weft, traces, ['sh', '-c', NETWORK], wait=False, before=own, record=['--standby'])
    for line in recording.process.stderr:
        if b'DHCPv4 address 10.9.0.' in line:
            break
    rows = [json.loads(line) for line in subprocess.run([weft, 'on', '--json'], capture_output=True, text=True, check=True).stdout.splitlines()]
    pid, = (row['pid'] for row in rows if row['name'].startswith('systemd-network') and recording.process.pid in list_ancestors(row['pid']))
    for _ in range(2):
        subprocess.run([weft, 'on', str(pid), '--wait=60s'], stdout=subprocess.DEVNULL, check=True)
        path, = (row['trace'] for row in map(json.loads, subprocess.run([weft, 'on', '--json'], capture_output=True, text=True, check=True).stdout.splitlines()) if row['pid'] == pid)
        trace = Trace(weft, path)

        def is_told():
            waits = {(p['kind'], label) for p in trace.promises() if p['end'] == 'pending' and p['start_ns'] < 0 for _, label in p['labels']}
            return all(any(kind == k and label in text for k, text in waits)
                       for kind, label in (('loop', 'sd_event_loop'), ('connection', 'udp 0.0.0.0:67'), ('timer', 'dhcp4-lifetime'), ('signal', 'signal 15')))
        until(is_told, 'the trace never lists what networkd waits for')
        subprocess.run([weft, 'off', str(pid), '--wait=60s'], stdout=subprocess.DEVNULL, check=True)
    subprocess.run([weft, 'on', str(pid), '--wait=60s'], stdout=subprocess.DEVNULL, check=True)
    os.kill(pid, 15)
    recording.process.communicate(timeout=PATIENCE)
    trace = Trace(weft, path.removesuffix('.2') + '.3')
    expect({trace.promise(kind, label)['end'] for kind, label in (('loop', 'sd_event_loop'), ('signal', 'signal 15'))}, {'resolved'}, 'how they end')
    healthy(trace)


TESTS = {'scenes': scenes, 'busctl': busctl, 'networkd': networkd, 'networkd-stands-by': stands_by}
with tempfile.TemporaryDirectory(prefix='weft-sd-') as place:
    TESTS[sys.argv[1]](sys.argv[2], place, *sys.argv[3:])
