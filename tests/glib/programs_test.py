#!/usr/bin/env python3
"""Programs of GLib as Debian installs them, recorded: their actions are in the trace, and findings name only real faults.

	programs_test.py NAME WEFT	the names are at the end

SPDX-License-Identifier: ISC"""

import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, '..', 'uv'))
from recorded import ENV, PATIENCE, Recording, Trace, expect, fail, need, until

# A busy machine delays everything: only delays that no healthy run has are alarms here.
LATE = '2s'
PYTHON = '/usr/bin/python3'


def healthy(trace, but=()):
    expect([alarm for alarm in trace.alarms(LATE) if not any(alarm.startswith(name + ':') for name in but)], [], f'alarms in {trace.path}')
    expect(trace.lost(), 0, f'events lost in {trace.path}')


def all_taken(trace):
    """Checks that every function of these libraries was moved at its entry."""
    runtimes = trace.ask('info', '--json')[0]['runtimes']
    if not re.fullmatch(r'((GLib|GIO) 2\.[0-9.]+: ([0-9]+) of \3 calls(; )?)+', runtimes):
        fail(f'what was taken: {runtimes}')


def ends(promise, how='resolved'):
    expect(promise['end'], how, f'the end of {promise["labels"]}')


def awaits(trace, waiter, promise):
    """Returns whether one promise awaited the other, according to the events."""
    return any(event['op'] in ('await', 'read', 'read_later') and (event['promise'], event['input']) == (waiter['promise'], promise['promise'])
               for event in trace.ask('events', '--json') if 'input' in event)


def same(plain, recorded, what):
    expect((recorded.out, recorded.status), (plain.stdout, plain.returncode), what)


def run_both(weft, folder, command, **options):
    """Runs the program without and with recording, and compares the output."""
    options['env'] = {'GIO_USE_VFS': 'local', **options.get('env', {})}
    plain = subprocess.run(command, env={**ENV, **options['env']}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=PATIENCE, check=False)
    os.makedirs(folder, exist_ok=True)
    recorded = Recording(weft, os.path.join(folder, 'traces'), command, **options)
    same(plain, recorded, f'{command}, recorded')
    return recorded


def typelib(name):
    """Python's bindings of a library; the test is skipped if they are not installed."""
    need(PYTHON)
    name, version = name.split()
    got = subprocess.run([PYTHON, '-c', f'import gi; gi.require_version("{name}", "{version}"); from gi.repository import {name}'],
                         stderr=subprocess.DEVNULL, check=False)
    if got.returncode:
        print(f'SKIPPED: python3-gi with {name} {version} is not installed')
        sys.exit(77)


def gdbus(weft, folder):
    """A call of the bus itself; also if no memory may be writable and executable."""
    need('gdbus'), need('dbus-run-session')
    call = ['gdbus', 'call', '--session', '-d', 'org.freedesktop.DBus', '-o', '/org/freedesktop/DBus', '-m', 'org.freedesktop.DBus.ListNames']
    for name, before in (('plain', []), ('mdwe', [PYTHON, '-c', 'import ctypes, os, sys; ctypes.CDLL(None).prctl(65, 1, 0, 0, 0); os.execvp(sys.argv[1], sys.argv[1:])'])):
        recording = Recording(weft, os.path.join(folder, name), ['dbus-run-session', '--', *before, *call])
        expect((recording.status, recording.out), (0, b"(['org.freedesktop.DBus', ':1.0'],)\n"), 'what gdbus says')
        trace = recording.trace('gdbus')
        all_taken(trace)
        requests = trace.promises('request')
        expect([p['labels'][0][1] for p in requests], ['org.freedesktop.DBus.Hello @ org.freedesktop.DBus',
               'org.freedesktop.DBus.Introspectable.Introspect @ org.freedesktop.DBus', 'org.freedesktop.DBus.ListNames @ org.freedesktop.DBus'], 'calls')
        for request in requests:
            ends(request)
        # Promises inside GIO are shown only on request.
        expect({p['kind'] for p in trace.promises()}, {'thread', 'request'}, 'kinds')
        if not {'poll', 'work', 'loop'} <= {p['kind'] for p in trace.ask('dump', '--json', '--parts') if 'promise' in p}:
            fail('no parts')
        messages = [event for event in trace.ask('events', '--json') if event.get('what') == 'message']
        if len(messages) != 2 or any(not event['text'].endswith(' :1.0') for event in messages):
            fail(f'serial and sender of calls: {messages}')
        healthy(trace)


GJS = """
imports.gi.versions.Gio = '2.0';
const {Gio, GLib} = imports.gi;
Gio._promisify(Gio.File.prototype, 'load_contents_async', 'load_contents_finish');
const loop = GLib.MainLoop.new(null, false);
async function size(path) {
    const [bytes] = await Gio.File.new_for_path(path).load_contents_async(null);
    return bytes.length;
}
async function main() {
    const sizes = await Promise.all(['/etc/passwd', '/usr/bin/gdbus'].map(size));
    print(sizes.every(n => n > 100));
    await new Promise(done => GLib.timeout_add(GLib.PRIORITY_DEFAULT, 30, () => { done(); return GLib.SOURCE_REMOVE; }));
    Gio.DBus.session.call('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'ListNames', null, null, 0, -1, null,
        (bus, result) => { print(bus.call_finish(result).deepUnpack()[0].length); loop.quit(); });
}
main();
loop.run();
"""


def gjs(weft, folder):
    """Promises of JavaScript over files, a timeout and a call."""
    script = os.path.join(folder, 'promises.js')
    with open(script, 'w', encoding='ascii') as file:
        file.write(GJS)
    recording = run_both(weft, folder, [need('dbus-run-session'), '--', need('gjs'), script])
    expect(recording.out, b'true\n2\n', 'what the script says')
    trace = recording.trace('gjs')
    all_taken(trace)
    loads = trace.promises('work', 'g_file_load_partial_contents_async')
    expect(len(loads), 2, 'files')
    call, timer = trace.promise('request', 'org.freedesktop.DBus.ListNames @ org.freedesktop.DBus'), trace.promise('timer', '30 ms')
    loop = trace.promise('loop', 'main loop')
    for promise in (*loads, call, timer, loop):
        ends(promise)
    if timer['start_ns'] < max(p['end_ns'] for p in loads) or call['start_ns'] < timer['start_ns']:
        fail('what waits for the files came before them')
    expect([awaits(trace, loop, call)], [True], 'who waits for the call')
    healthy(trace)


PROGRAM = """
import gi, os, sys
from gi.repository import GLib, Gio
loop = GLib.MainLoop()
said = []

def done(what):
    said.append(what)
    if len(said) == 5:
        print(sorted(said))
        loop.quit()

def loaded(file, result, data):
    done('loaded %d' % len(file.load_contents_finish(result)[1]))

def copied(file, result, data=None):
    file.copy_finish(result)
    done('copied')
    Gio.File.new_for_path(sys.argv[1]).load_contents_async(None, loaded, None)

def exited(process, result, data):
    done('process: ' + process.communicate_utf8_finish(result)[1].strip())

def waited(stream, result, data):
    try:
        stream.read_bytes_finish(result)
    except GLib.Error as error:
        done(error.message)

ticks = 0
def tick():
    global ticks
    ticks += 1
    if ticks == 10:
        done('ticked')
    return ticks < 10

GLib.timeout_add(10, tick)
copy = Gio.File.new_for_path(sys.argv[2]), Gio.File.new_for_path(sys.argv[1]), Gio.FileCopyFlags.OVERWRITE, 0, None
try:
    Gio.File.copy_async(*copy, None, None, copied, None)
except TypeError:  # since GLib 2.82
    Gio.File.copy_async(*copy, None, copied)
Gio.Subprocess.new(['sh', '-c', 'sleep 0.08; echo hello; exit 3'], Gio.SubprocessFlags.STDOUT_PIPE).communicate_utf8_async(None, None, exited, None)
r, w = os.pipe()
cancellable = Gio.Cancellable()
Gio.UnixInputStream.new(r, False).read_bytes_async(100, 0, cancellable, waited, None)
GLib.timeout_add(60, lambda: cancellable.cancel())
loop.run()
"""


def python(weft, folder):
    """A copied and loaded file, a subprocess, a cancelled read, a repeating timer."""
    typelib('Gio 2.0')
    big = max(glob.glob('/usr/lib/*/libgtk-4.so.1') + glob.glob('/usr/lib/*/libgio-2.0.so.0'), key=os.path.getsize)
    recording = run_both(weft, folder, [PYTHON, '-c', PROGRAM, os.path.join(folder, 'copy'), big])
    if b'loaded ' + str(os.path.getsize(big)).encode() not in recording.out:
        fail(f'the program says {recording.out}')
    trace = recording.trace('python3')
    all_taken(trace)
    copy, load = trace.promise('work', 'g_file_real_copy_async (GLocalFile)'), trace.promise('work', 'g_file_load_partial_contents_async (GLocalFile)')
    expect(load['created_by'], copy['promise'], 'who loads the file')
    process, talk = trace.promise('process', 'sh -c sleep 0.08; echo hello'), trace.promise('work', 'g_subprocess_communicate_internal (GSubprocess)')
    expect(process['labels'][-1][1], 'exit status 3', 'how the process ends')
    expect(awaits(trace, talk, process), True, 'who waits for the process')
    read = trace.promise('work', 'g_input_stream_read_bytes_async (GUnixInputStream)')
    expect([text for _, text in read['labels'][1:]], ['cancelled', 'Operation was cancelled'], 'the story of the read')
    tick, cancel = trace.promise('timer', '10 ms'), trace.promise('timer', '60 ms')
    if not any(event['op'] == 'signal_only' and (event['from'], event['promise']) == (cancel['promise'], read['promise'])
               for event in trace.ask('events', '--json')):
        fail('nobody is told to have cancelled the read')
    expect(sum(event['op'] == 'signal' and event['promise'] == tick['promise'] for event in trace.ask('events', '--json')), 10, 'ticks')
    ends(read, 'failed')
    for promise in (copy, load, process, talk, tick, cancel, trace.promise('loop', 'main loop')):
        ends(promise)
    # The program's own dozen, and a varying number of OS threads of GLib's pool, which contend for locks by chance.
    promises = [p for p in trace.promises() if p['kind'] not in ('lock', 'condition')]
    if len(promises) > 24:
        fail(f'{len(promises)} promises are too many to look at')
    if len([p for p in trace.ask('dump', '--json', '--parts') if 'promise' in p]) < 1000:
        fail('the reads of a big file are not parts')
    healthy(trace)


TLS = """
import gi, sys
from gi.repository import GLib, GObject, Gio
loop = GLib.MainLoop()
certificate = Gio.TlsCertificate.new_from_files(sys.argv[1], sys.argv[2])
service = Gio.SocketService.new()
port = service.add_any_inet_port(None)
keep, said = [], []

def incoming(service, connection, source):
    tls = Gio.TlsServerConnection.new(connection, certificate)
    keep.append(tls)
    def got(stream, result):
        data = stream.read_bytes_finish(result).get_data()
        GLib.timeout_add(50 if data == b'slow' else 0, lambda: answer(tls, data))
    tls.get_input_stream().read_bytes_async(100, 0, None, got)
    return True

def answer(tls, data):
    tls.get_output_stream().write_all_async(b'you said ' + data, 0, None, lambda s, r: s.write_all_finish(r))
    return False
service.connect('incoming', incoming)
service.start()

def client(word):
    c = Gio.SocketClient.new()
    c.set_tls(True)
    GObject.Object.connect(c, 'event', lambda c, event, connectable, stream: event == Gio.SocketClientEvent.TLS_HANDSHAKING and
                           stream.connect('accept-certificate', lambda *a: True))
    def connected(c, result):
        connection = c.connect_to_host_finish(result)
        keep.append(connection)
        def wrote(s, r):
            s.write_all_finish(r)
            connection.get_input_stream().read_bytes_async(100, 0, None, read)
        def read(s, r):
            said.append(s.read_bytes_finish(r).get_data().decode())
            if len(said) == 2:
                print(sorted(said))
                GLib.timeout_add(20, loop.quit)
        connection.get_output_stream().write_all_async(word.encode(), 0, None, wrote)
    c.connect_to_host_async('127.0.0.1', port, None, connected)
client('quick')
client('slow')
loop.run()
"""


def tls(weft, folder):
    """A TLS server and two clients of it, in one process."""
    typelib('Gio 2.0')
    if not glob.glob('/usr/lib/*/gio/modules/libgiognutls.so'):
        print('SKIPPED: glib-networking is not installed')
        sys.exit(77)
    key, certificate = os.path.join(folder, 'key.pem'), os.path.join(folder, 'cert.pem')
    subprocess.run([need('openssl'), 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', certificate, '-days', '2',
                    '-subj', '/CN=localhost'], stderr=subprocess.DEVNULL, check=True)
    recording = run_both(weft, folder, [PYTHON, '-c', TLS, certificate, key])
    expect(recording.out, b"['you said quick', 'you said slow']\n", 'what the clients are told')
    trace = recording.trace('python3')
    connects, writes = trace.promises('work', 'g_socket_client_connect_async (GSocketClient)'), trace.promises('work', 'write_all_async (GTlsOutputStream)')
    handshakes = [p for p in trace.promises('task', 'handshake_async (') if '(GTlsClientConnectionGnutls' in p['labels'][0][1]]
    reads = trace.promises('work', 'g_input_stream_read_bytes_async (GTlsInputStream)')
    expect((len(connects), len(handshakes), len(writes), len(reads)), (2, 2, 4, 4), 'connections, handshakes, writes, reads')
    expect(sorted(p['created_by'] for p in handshakes), sorted(p['promise'] for p in connects), 'who shakes hands')
    for promise in (*connects, *handshakes, *writes, *reads):
        ends(promise)
    healthy(trace)


GREETER = """
import gi
from gi.repository import GLib, Gio
loop = GLib.MainLoop()
service = Gio.SocketService.new()
keep = []

def incoming(service, connection, source):
    keep.append(connection)
    answer(connection)
    return True

def answer(connection):
    def got(stream, result):
        data = stream.read_bytes_finish(result).get_data()
        if data:
            GLib.timeout_add(20, lambda: wait_over(connection, data))
        else:
            loop.quit()
    connection.get_input_stream().read_bytes_async(100, 0, None, got)

def wait_over(connection, data):
    connection.get_output_stream().write_all(b'you said ' + data, None)
    answer(connection)
    return False
print(service.add_any_inet_port(None), flush=True)
service.connect('incoming', incoming)
service.start()
loop.run()
"""

GREETED = """
import gi, os, sys
from gi.repository import GLib, Gio
loop = GLib.MainLoop()
said = []

def ask(connection, word):
    def wrote(stream, result):
        stream.write_all_finish(result)
        connection.get_input_stream().read_bytes_async(100, 0, None, read)
    def read(stream, result):
        said.append(stream.read_bytes_finish(result).get_data().decode())
        if len(said) < 5:
            ask(connection, 'word %d' % len(said))
        else:
            print(said[-1])
            connection.close(None)
            loop.quit()
    if len(said) % 2:
        os.write(connection.get_socket().get_fd(), word.encode())
        connection.get_input_stream().read_bytes_async(100, 0, None, read)
    else:
        connection.get_output_stream().write_all_async(word.encode(), 0, None, wrote)

def connected(client, result):
    ask(client.connect_to_host_finish(result), 'word 0')
Gio.SocketClient.new().connect_to_host_async('127.0.0.1', int(sys.argv[1]), None, connected)
loop.run()
"""


def follows(weft, client, server, where, call=None):
    """The longest wait of the client is followed into the server: from the reads of the connection, and from the calls of that name."""
    for trace in client, server:
        healthy(trace)
    told = json.loads(subprocess.run([weft, 'info', '--json', client.path, server.path], capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    if told['messages'] < 10:
        fail(f'five questions and five answers are followed: {told}')
    for waiting in [client.promises('read')] + ([client.promises('work', call)] if call else []):
        longest = max(waiting, key=lambda p: p['end_ns'] - p['start_ns'])
        path = subprocess.run([weft, 'path', client.path, server.path, f'--promise={longest["promise"] * 10}'], capture_output=True, text=True, check=True).stdout
        expect(all(words in path for words in where), True, f'{where} in the path:\n{path}')


def connections(weft, folder):
    """A service and its client are two processes; the client writes every other question without libgio."""
    typelib('Gio 2.0')
    service = Recording(weft, os.path.join(folder, 'service'), [PYTHON, '-c', GREETER], wait=False)
    port = service.process.stdout.readline().decode().strip()
    client = Recording(weft, os.path.join(folder, 'client'), [PYTHON, '-c', GREETED, port])
    expect((client.status, client.out), (0, b'you said word 4\n'), 'what the client says')
    service.process.communicate(timeout=PATIENCE)
    expect(service.process.returncode, 0, 'how the service ends')
    follows(weft, client.trace('python3'), service.trace('python3'), ['in transit from', '20 ms'], 'g_input_stream_read_bytes_async (GSocketInputStream)')


WATCHED = """
import socket
from gi.repository import GLib
loop = GLib.MainLoop()
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
def came(source, condition, client):
    data = client.recv(1000)
    if data:
        GLib.timeout_add(20, lambda: client.sendall(data.upper()) and False)
        return True
    client.close()
    loop.quit()
    return False
def accepts(source, condition):
    client = listener.accept()[0]
    GLib.io_add_watch(client.fileno(), GLib.IO_IN | GLib.IO_HUP, came, client)
    return True
GLib.io_add_watch(listener.fileno(), GLib.IO_IN, accepts)
loop.run()
"""

WATCHES = """
import os, socket, sys
from gi.repository import GLib
loop = GLib.MainLoop()
mine = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
got = []
def came(fd, condition):
    got.append(mine.recv(1000).decode())
    if len(got) < 4:
        os.write(mine.fileno(), b'more')
        return True
    os.dup2(os.open('/dev/null', os.O_WRONLY), mine.fileno())
    os.write(mine.fileno(), b'to nobody')
    loop.quit()
    return False
GLib.unix_fd_add_full(0, mine.fileno(), GLib.IO_IN, came)
again = mine.dup()
again.sendall(b'hello')
again.close()
loop.run()
print(*got)
"""


def watched(weft, folder):
    """Two programs that have their sockets watched by GLib, and read and write them by themselves, by another name of the descriptor, too; then that
    is another thing's."""
    typelib('Gio 2.0')
    service = Recording(weft, os.path.join(folder, 'service'), [PYTHON, '-c', WATCHED], wait=False)
    port = service.process.stdout.readline().decode().strip()
    client = Recording(weft, os.path.join(folder, 'client'), [PYTHON, '-c', WATCHES, port])
    expect((client.status, client.out), (0, b'HELLO MORE MORE MORE\n'), 'what the client says')
    service.process.communicate(timeout=PATIENCE)
    expect(service.process.returncode, 0, 'how the service ends')
    trace = client.trace('python3')
    expect([event['position'] for event in trace.ask('events', '--json') if event['op'] == 'sent'], [5, 9, 13, 17], 'how far the client has written')
    told = json.loads(subprocess.run([weft, 'info', '--json', trace.path, service.trace('python3').path], capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    expect(told['messages'], 8, 'messages between them')


ACCEPTS = """
import socket, sys
from gi.repository import Gio
if sys.argv[1] == 'inherits':
    listener = Gio.Socket.new_from_fd(socket.create_server(('127.0.0.1', 0)).detach())
else:
    listener = Gio.Socket.new(Gio.SocketFamily.IPV4, Gio.SocketType.STREAM, Gio.SocketProtocol.DEFAULT)
    listener.bind(Gio.InetSocketAddress.new_from_string('127.0.0.1', 0), True)
    listener.listen()
print(listener.get_local_address().get_port(), flush=True)
client = listener.accept(None)
listener.close()
connection = client.connection_factory_create_connection()
stream = connection.get_input_stream()
first = len(stream.read_bytes(1, None).get_data())
sys.stdin.readline()
rest = 0
while data := stream.read_bytes(1 << 20, None).get_data():
    rest += len(data)
print(first + rest)
"""

FILLS = """
import sys
from gi.repository import Gio
connection = Gio.SocketClient.new().connect_to_host('127.0.0.1', int(sys.argv[1]), None)
connection.get_output_stream().write_all(bytes(20000000), None)
connection.close(None)
print('written')
"""


def blocked(weft, folder):
    """One end of a connection writes more than fits, and the other end, whose listener is closed or inherited, does not read: the wait is reported while it
    lasts."""
    typelib('Gio 2.0')
    for way in 'listens', 'inherits':
        server = Recording(weft, os.path.join(folder, way, 'server'), [PYTHON, '-c', ACCEPTS, way], wait=False, stdin=subprocess.PIPE)
        port = server.process.stdout.readline().decode().strip()
        client = Recording(weft, os.path.join(folder, way, 'client'), [PYTHON, '-c', FILLS, port], wait=False)
        said = ''

        def waits():
            nonlocal said
            said = subprocess.run([weft, 'waits', client.folder, server.folder], capture_output=True, text=True, check=False).stdout
            return re.search(r'thread \d+ "[^\n]*main"\n'
                             rf'└─ connection (\d+) "to 127\.0\.0\.1:{port}"[^\n]*\n'
                             r'   ├─ write \d+ "\d+ bytes"[^\n]*\n'
                             r'   └─ connection \d+ "from 127\.0\.0\.1:\d+"[^\n]* to connection \1 ', said)
        until(waits, 'who writes waits for who does not read')
        out, _ = server.process.communicate(b'\n', timeout=PATIENCE)
        expect((server.process.returncode, out), (0, b'20000000\n'), 'what the server got')
        out, _ = client.process.communicate(timeout=PATIENCE)
        expect((client.process.returncode, out), (0, b'written\n'), 'what the client says')
        made = server.trace('python3').promises('connection')
        expect([re.sub(r'\d+$', 'N', p['labels'][0][1]) for p in made], ['from 127.0.0.1:N'], 'the connection of the server')
        expect(server.trace('python3').promises('connect'), [], 'it connected to nobody')
        for promise in client.trace('python3').promises('write'):
            ends(promise)
        for trace in client, server:
            healthy(trace.trace('python3'))


GETS = """
import sys
from gi.repository import Gio
connection = Gio.SocketClient.new().connect_to_host('127.0.0.1', int(sys.argv[1]), None)
for i in range(5):
    connection.get_output_stream().write_all(b'GET /page HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n', None)
    got = b''
    while not got.endswith(b'the end'):
        got += connection.get_input_stream().read_bytes(4096, None).get_data()
print('done')
"""


def promises(weft, folder):
    """A client on GLib of examples/http, which is made of weft's promises on libuv."""
    typelib('Gio 2.0')
    program = need(os.path.join(os.path.dirname(os.path.abspath(weft)), 'examples', 'http', 'http-server'))
    files = os.path.join(folder, 'files')
    os.mkdir(files)
    with open(os.path.join(files, 'page'), 'w', encoding='ascii') as page:
        page.write('a page, and the end')
    server = Recording(weft, os.path.join(folder, 'server'), [program, '--port=0', files], wait=False)
    port = re.search(r':([0-9]+)', server.process.stdout.readline().decode())[1]
    client = Recording(weft, os.path.join(folder, 'client'), [PYTHON, '-c', GETS, port])
    expect((client.status, client.out), (0, b'done\n'), 'what the client says')
    server.end('http-server', signal.SIGTERM)
    follows(weft, client.trace('python3'), server.trace('http-server'), ['in transit from http-server', ' in http-server'])


HANG = """
import ctypes, gi, socket, sys
from gi.repository import GLib, Gio
loop = GLib.MainLoop()
a, b = socket.socketpair()
xml = "<node><interface name='org.example.Clerk'><method name='Quick'/><method name='Wrong'/><method name='Forgotten'/><method name='Dropped'/></interface></node>"
keep, clients = [], []

def called(connection, sender, path, interface, method, args, invocation):
    if method == 'Quick':
        invocation.return_value(None)
    elif method == 'Wrong':
        invocation.return_dbus_error('org.example.Error', 'it is wrong')
    elif method == 'Forgotten':
        keep.append(invocation)

def served(_, result):
    server = Gio.DBusConnection.new_finish(result)
    keep.append(server)
    server.register_object('/clerk', Gio.DBusNodeInfo.new_for_xml(xml).interfaces[0], called, None, None)
    ask()

def answered(connection, result):
    try:
        print(connection.call_finish(result))
    except GLib.Error as error:
        print(error.message)

def connected(_, result):
    client = Gio.DBusConnection.new_finish(result)
    clients.append(client)
    ask()

def ask():
    if not clients or not keep:
        return
    for method in sys.argv[1:]:
        clients[0].call(None, '/clerk', 'org.example.Clerk', method, None, None, 0, 2**31 - 1, None, answered)

for s, flags, then in ((a, Gio.DBusConnectionFlags.AUTHENTICATION_SERVER | Gio.DBusConnectionFlags.AUTHENTICATION_ALLOW_ANONYMOUS, served), (b, Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT, connected)):
    stream = Gio.Socket.new_from_fd(s.detach()).connection_factory_create_connection()
    Gio.DBusConnection.new(stream, Gio.dbus_generate_guid() if then is served else None, flags, None, None, then)
GLib.timeout_add(500, loop.quit)
loop.run()
for kept in (keep, clients): # also when Python cleans up
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
"""


def hang(weft, folder):
    """A D-Bus method that never answers is reported for both ends; a method that answers, or returns an error, is no finding."""
    typelib('Gio 2.0')
    trace = run_both(weft, os.path.join(folder, 'healthy'), [PYTHON, '-c', HANG, 'Quick', 'Wrong']).trace('python3')
    ends(trace.promise('request', 'serve org.example.Clerk.Quick'))
    ends(trace.promise('request', 'serve org.example.Clerk.Wrong'), 'failed')
    healthy(trace)
    trace = run_both(weft, os.path.join(folder, 'hang'), [PYTHON, '-c', HANG, 'Quick', 'Forgotten']).trace('python3')
    served = trace.promise('request', 'serve org.example.Clerk.Forgotten')
    call = next(p for p in trace.promises('request', 'org.example.Clerk.Forgotten') if p is not served and p['promise'] != served['promise'])
    expect({served['failure'], call['failure']}, {'should resolve, but never did'}, 'both ends')
    found = trace.findings(LATE)
    expect(list(found), ['hang'], 'what is found')
    expect({line['root'] for line in found['hang']}, {served['promise']}, 'what does not end')
    expect(call['promise'] in {line['promise'] for line in found['hang']}, True, 'the call is found')


DEAF = """
import ctypes, os, signal
from gi.repository import Gio, GLib
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # it ends with the call
Gio.bus_own_name(Gio.BusType.SESSION, 'org.example.Deaf', 0, None, lambda *_: os.kill(os.getpid(), signal.SIGSTOP), None)
GLib.MainLoop().run()
"""


def deaf(weft, folder):
    """A call of an unrecorded service that hangs stays unanswered: the calling program could not resolve it."""
    typelib('Gio 2.0')
    before = [need('dbus-run-session'), '--', 'sh', '-c', f'{PYTHON} -c "$0" & gdbus wait --session org.example.Deaf; exec "$@"', DEAF]
    recording = Recording(weft, os.path.join(folder, 'traces'), [need('gdbus'), 'call', '--session', '--timeout=600', '--dest=org.example.Deaf',
                                                                 '--object-path=/', '--method=org.example.Deaf.Ask'], before=before, wait=False)
    recording.ids('gdbus')
    until(lambda: recording.trace('gdbus').has_events() and recording.trace('gdbus').findings(LATE).get('hang'), 'a call that is not answered is not found')
    recording.end('gdbus', signal.SIGKILL)
    hangs = recording.trace('gdbus').findings(LATE)['hang']
    if len(hangs) != 1 or 'for an answer' not in hangs[0]['title'] or 'look at the peer' not in hangs[0]['next']:
        fail(f'what is said of a call that is not answered: {hangs}')


def gvfs(weft, folder):
    """gio lists the trash: it asks gvfsd, which starts gvfsd-trash."""
    need('/usr/libexec/gvfsd'), need('gio')
    home = os.path.join(folder, 'home')
    os.makedirs(home)
    script = '/usr/libexec/gvfsd --no-fuse & g=$!; gdbus wait --session --timeout=20 org.gtk.vfs.Daemon; gio list trash:///; s=$?; kill $g; exit $s'
    recording = Recording(weft, os.path.join(folder, 'traces'), [need('dbus-run-session'), '--', 'sh', '-c', script],
                          env={'HOME': home, 'XDG_RUNTIME_DIR': home, 'XDG_DATA_HOME': home})
    expect(recording.status, 0, 'the exit status of gio')
    gio = recording.trace('gio')
    daemon = next(trace for trace in recording.all() if re.search(r'/gvfsd-[0-9]+$', trace.path))
    call, served = gio.promise('request', 'org.gtk.vfs.MountTracker.LookupMount'), daemon.promise('request', 'serve org.gtk.vfs.MountTracker.LookupMount')
    ends(call), ends(served)
    told = [{event['promise']: event for event in trace.ask('events', '--json') if event.get('what') == 'message'} for trace in (gio, daemon)]
    sent, handled = told[0][call['promise']], told[1][served['promise']]
    expect((handled['text'], handled['value']), (sent['text'], -sent['value']), 'the message at both ends')
    for trace in recording.all():
        healthy(trace)
    # All processes in one: each call waits for its server.
    session = Trace(weft, os.path.join(folder, 'traces'))
    healthy(session)
    promises = {p['promise']: p for p in session.promises()}
    serves = {}
    for event in session.ask('dump', '--json'):
        label = event['labels'][0][1] if event.get('kind') == 'request' and event['labels'] else ''
        if label.startswith('serve '):
            serves.setdefault(label.split()[1], []).append(event)
    call = session.promise('request', 'org.gtk.vfs.MountTracker.LookupMount @')
    served = serves['org.gtk.vfs.MountTracker.LookupMount'][0]
    if not call['start_ns'] <= served['start_ns'] <= served['end_ns'] <= call['end_ns']:
        fail(f'the call {call} and who serves it, {served}')
    middle = (served['start_ns'] + served['end_ns']) // 2
    waits = [(line['promise'], line['awaits']) for line in session.ask('waits', '--json', f'--at={middle}ns')]
    expect((call['promise'], served['promise']) in waits, True, 'the call waits for who serves it')
    path = [promises[line['promise']]['labels'][0][1] for line in session.ask('path', '--json', f'--promise={call["promise"]}')
            if promises.get(line.get('promise'), {}).get('labels')]
    for part in ('serve org.gtk.vfs.Mountable.Mount', 'org.gtk.vfs.Mountable.Mount @', 'org.gtk.vfs.MountTracker.LookupMount @'):
        expect(any(label.startswith(part) for label in path), True, f'the path from gio to gvfsd-trash and back: {part} in {path}')
    expect({label for p in promises.values() if p['kind'] == 'thread' for _, label in p['labels'] if label.endswith(': main')} >=
           {'gio: main', 'gvfsd: main', 'gvfsd-trash: main'}, True, 'whose OS thread it is')


CLERK = """
import gi, sys
from gi.repository import GLib, Gio
loop = GLib.MainLoop()
xml = "<node><interface name='org.example.Clerk'><method name='Quick'/><method name='Forgotten'/></interface></node>"
keep = []

def called(connection, sender, path, interface, method, args, invocation):
    if method == 'Quick':
        invocation.return_value(None)
    else:
        keep.append(invocation)
        with open(sys.argv[1], 'w') as fifo:
            fifo.write('asked')

bus = Gio.bus_get_sync(Gio.BusType.SESSION, None)
bus.register_object('/clerk', Gio.DBusNodeInfo.new_for_xml(xml).interfaces[0], called, None, None)
Gio.bus_own_name_on_connection(bus, 'org.example.Clerk', 0, None, None)
loop.run()
"""


def ends_of_call(weft, folder):
    """An unanswered call between two processes is reported for both ends."""
    typelib('Gio 2.0')
    clerk = os.path.join(folder, 'clerk.py')
    with open(clerk, 'w', encoding='ascii') as file:
        file.write(CLERK)
    call = 'gdbus call --session -d org.example.Clerk -o /clerk -m org.example.Clerk.'
    fifo = os.path.join(folder, 'fifo')
    os.mkfifo(fifo)
    script = (f'{PYTHON} {clerk} {fifo} & clerk=$!; gdbus wait --session --timeout=20 org.example.Clerk; {call}Quick; {call}Forgotten & gdbus=$!; '
              f'cat {fifo} >&2; sleep 1.2; kill -KILL $gdbus; kill $clerk; wait')
    Recording(weft, os.path.join(folder, 'traces'), [need('dbus-run-session'), '--', 'sh', '-c', script])
    session = Trace(weft, os.path.join(folder, 'traces'))
    sent, served = session.promise('request', 'org.example.Clerk.Forgotten @'), session.promise('request', 'serve org.example.Clerk.Forgotten')
    expect(sent['awaits'], [served['promise']], 'what the call waits for')
    quick = session.promise('request', 'org.example.Clerk.Quick @'), session.promise('request', 'serve org.example.Clerk.Quick')
    ends(quick[0]), ends(quick[1])
    hangs = session.findings(LATE).get('hang', [])
    expect([line['root'] for line in hangs if sent['promise'] in (line['promise'], line['root'])] != [] and
           {line['root'] for line in hangs}, {served['promise']}, 'what does not end')


VALA = """
class Clerk : Object {
    public async string read (string path) throws Error {
        uint8[] bytes;
        yield File.new_for_path (path).load_contents_async (null, out bytes, null);
        return "%d".printf (bytes.length);
    }

    public async void rest () {
        Timeout.add (20, () => { rest.callback (); return Source.REMOVE; });
        yield;
    }

    public async int work () throws Error {
        yield rest ();
        var length = yield read ("/etc/passwd");
        return int.parse (length);
    }
}

int main () {
    var loop = new MainLoop ();
    var clerk = new Clerk ();
    clerk.work.begin ((object, result) => {
        try {
            stdout.printf ("%s\\n", clerk.work.end (result) > 100 ? "read" : "short");
        } catch (Error error) {
            stdout.printf ("%s\\n", error.message);
        }
        loop.quit ();
    });
    loop.run ();
    return 0;
}
"""


def vala(weft, folder):
    """Async methods of Vala, as valac compiles them: each is a task that waits for the yielded task."""
    need('valac')
    source, program = os.path.join(folder, 'clerk.vala'), os.path.join(folder, 'clerk')
    with open(source, 'w', encoding='ascii') as file:
        file.write(VALA)
    subprocess.run(['valac', '--pkg', 'gio-2.0', '-o', program, source], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    trace = run_both(weft, os.path.join(folder, 'traces'), [program]).trace('clerk')
    tasks = {p['site']['function']: p for p in trace.promises('task')}
    expect(set(tasks), {'clerk_work', 'clerk_rest', 'clerk_read'}, 'async methods')
    for task in tasks.values():
        ends(task)
    for name in ('clerk_rest', 'clerk_read'):
        expect(awaits(trace, tasks['clerk_work'], tasks[name]), True, f'clerk_work waits for {name}')
    ends(trace.promise('work', 'g_file_load_partial_contents_async'))
    healthy(trace)


GTK = """
import gi, sys
gi.require_version('Gtk', '4.0')
from gi.repository import GLib, Gtk

frames = 0

def turn(spinner, clock, app, watch):
    global frames
    frames += 1
    if frames == 40:
        GLib.source_remove(watch)
        app.quit()
    return True

def activate(app):
    window = Gtk.ApplicationWindow(application=app, title='spinner')
    box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
    spinner = Gtk.Spinner(spinning=True, width_request=200, height_request=200)
    spinner.add_tick_callback(turn, app, GLib.timeout_add_seconds(60, app.quit))
    box.append(spinner)
    box.append(Gtk.Entry())
    window.set_child(box)
    window.present()

app = Gtk.Application()
app.connect('activate', activate)
app.run()
"""


def gtk(weft, folder):
    """Forty frames of a spinner: few promises, and a task of GTK 4.8 that is finalized without a return."""
    typelib('Gtk 4.0')
    display_read, display_write = os.pipe()
    with subprocess.Popen([need('Xvfb'), '-displayfd', str(display_write), '-screen', '0', '800x600x24'], pass_fds=[display_write],
                          stderr=subprocess.DEVNULL) as server:
        try:
            os.close(display_write)
            with os.fdopen(display_read) as file:
                display = ':' + file.readline().strip()
            recording = Recording(weft, os.path.join(folder, 'traces'), [PYTHON, '-c', GTK], env={
                'DISPLAY': display, 'GDK_BACKEND': 'x11', 'GSK_RENDERER': 'cairo', 'DBUS_SESSION_BUS_ADDRESS': 'disabled:', 'GIO_USE_VFS': 'local',
                'GSETTINGS_BACKEND': 'memory'})
        finally:
            server.terminate()
    expect(recording.status, 0, 'the exit status')
    trace = recording.trace('python3')
    # GTK 4.18 makes an idle source for each frame.  Locks and conditions have promises only where threads meet by chance.
    kinds = [p['kind'] for p in trace.promises() if p['kind'] not in ('thread', 'lock', 'condition')]
    if len(kinds) - kinds.count('work') > 30 or kinds.count('work') > 50:
        fail(f'{len(kinds)} promises')
    clocks = [p for p in trace.promises() if p['kind'] in ('timer', 'handle') and len(p['running']) > 20]
    if not clocks:
        fail('the frame clock is not one promise')
    ends(trace.promise('loop', 'application'))
    version = subprocess.run([PYTHON, '-c', 'import gi; gi.require_version("Gtk", "4.0"); from gi.repository import Gtk; print(Gtk.get_minor_version())'],
                             stdout=subprocess.PIPE, env={**ENV, 'DISPLAY': ''}, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    found = trace.findings(LATE).get('unreturned', [])
    if version.strip() == '8':
        expect(['init_compose_table_async' in line['title'] for line in found], [True], "GTK 4.8's own fault")
    healthy(trace, but=['unreturned'])


TURNED = """
import os
from gi.repository import GLib
heard = b''

def hear(channel, condition):
    global heard
    heard = os.read(0, 1)
    if heard == b't':
        GLib.timeout_add_seconds(100, print)
    return True

GLib.io_add_watch(GLib.IOChannel.unix_new(0), GLib.PRIORITY_DEFAULT, GLib.IOCondition.IN, hear)
print('sleeps', flush=True)
while heard != b'x':
    GLib.MainContext.default().iteration(True)
print('awake')
"""


def turned(weft, folder):
    """A loop that is called iteration by iteration records its inputs while it sleeps, also later ones."""
    typelib('GLib 2.0')
    recording = Recording(weft, folder, [PYTHON, '-c', TURNED], wait=False, stdin=subprocess.PIPE)
    process = recording.process
    expect(process.stdout.readline(), b'sleeps\n', 'its first word')

    def keeps(*labels):
        until(lambda: recording.trace('python3').kept_by('g_main_context_iteration') == [*labels], f'its loop does not wait for {labels}')
    keeps('GIOChannel (Unix)')
    process.stdin.write(b't')
    process.stdin.flush()
    keeps('100 s', 'GIOChannel (Unix)')
    out, _ = process.communicate(b'x', timeout=PATIENCE)
    expect((process.returncode, out), (0, b'awake\n'), 'how it ends')
    trace = recording.trace('python3')
    all_taken(trace)
    healthy(trace)


TESTS = {'gdbus': gdbus, 'gjs': gjs, 'python': python, 'connections': connections, 'watched': watched, 'blocked': blocked, 'promises': promises, 'tls': tls, 'hang': hang, 'deaf': deaf, 'gvfs': gvfs, 'ends': ends_of_call, 'vala': vala, 'gtk': gtk, 'turned': turned}


def main():
    name, weft = sys.argv[1:3]
    with tempfile.TemporaryDirectory(prefix='weft-glib-') as folder:
        TESTS[name](weft, folder)


main()
