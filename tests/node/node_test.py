#!/usr/bin/env python3
"""Faults of JavaScript programs: a finding or `weft waits` names the async function and the line.

	node_test.py NAME WEFT	the names are those of FAULTS, and `waits`, `same`, `share`, `start`, `sites`, `requests`,
			`asks`, `encrypted`, `http2`, `levels`, `sampled`, `others`

SPDX-License-Identifier: ISC"""

import os
import re
import subprocess
import sys
import tempfile

from recorded import ENV, PATIENCE, Recording, expect, fail, need

# Name: the file, the program, its status, the title of a finding, and what the finding names.
FAULTS = {
    'module': ('fault.mjs', """
const ready = new Promise(() => {});
await new Promise(resolve => setTimeout(resolve, 5));
await ready;
""", 13, r'hang( \(uncertain\))?: coroutine \d+ "top level" never resolved: nothing tried to resolve promise \d+', ['fault.mjs:4', 'fault.mjs:2']),
    'empty': ('fault.js', """
const acquire = () => new Promise(resolve => {});
async function transfer(amount) {
    const [lock] = await Promise.all([acquire()]);
    lock.release(amount);
}
async function main() {
    await null;
    await transfer('Hush8472');
}
setTimeout(main, 5);
""", 0, r'hang( \(uncertain\))?: coroutine \d+ "main" and 1 more never resolved: nothing tried to resolve promise \d+', ['fault.js:9 in main', 'fault.js:4 in transfer', 'fault.js:2 in acquire']),
    'unasked': ('fault.js', """
process.on('unhandledRejection', () => {});
async function audit() {
    await null;
    throw new Error('Hush8472');
}
setTimeout(() => { audit(); }, 5);
""", 0, r'failure: coroutine \d+ "audit" failed, and no code read the error: rejected', ['fault.js:3 in audit']),
    'blocking': ('fault.js', """
async function parse() {
    await null;
    for (const end = Date.now() + 600; Date.now() < end;) {}
}
setTimeout(() => { parse(); }, 5);
setTimeout(() => {}, 100);
""", 0, r'stall( \(uncertain\))?: coroutine \d+ "parse" blocked the event loop', ['fault.js:2 in parse']),
}

WAITS = """
const query = () => new Promise(resolve => {});
async function load(id) { const rows = await query(id);
    return rows; }
async function handler() {
    return [await load('Hush8472')]; }
setTimeout(handler, 5);
setTimeout(() => process.exit(3), 200);
"""

SAME = """
const { AsyncLocalStorage } = require('async_hooks'), store = new AsyncLocalStorage(), out = [];
const step = async name => { await null; await require('fs').promises.stat('.'); out.push(name + store.getStore()); };
function fall() { new Promise(() => {}); fall(); }
async function deep(n) { return n ? await deep(n - 1) : 1; }
class Sub extends Promise {}
(async () => {
    try { fall(); } catch (error) { console.log(error.constructor.name); }
    console.log(await deep(300), await Sub.resolve(3), await Object.freeze(Promise.resolve(4)));
    await Promise.all(['a', 'b'].map(name => store.run(name, () => step(name))));
    for await (const i of (async function* () { yield 1; yield 2; })()) console.log(i);
    console.log(out.sort().join(), await Promise.race([1, 2]), await Promise.any([Promise.reject(1), 2]));
    await Promise.reject(new TypeError('caught')).catch(error => console.log(error.message, error.stack.split('\\n').length));
    const p = Promise.resolve(1);
    console.log(Reflect.ownKeys(p), process.env.NODE_OPTIONS, process.execArgv, Object.keys(require.cache).length, process.eventNames());
    new (require('worker_threads').Worker)('(async () => { await null; console.log("worker"); })()', { eval: true }).on('exit', () => {
        setTimeout(() => { throw new Error('end'); }, 1);
    });
})();
"""

SHARE = """
async function leaf(i) { return i; }
(async () => {
    while (process.cpuUsage().user < 26e5)
        for (let i = 0; i < 1000; i++) await leaf(i);
})();
"""

SAMPLED = """
const http = require('http');
async function leaf(i) { return i; }
async function handler(request, response) {
    for (let i = 0; i < 300; i++) await leaf(i);
    for (const end = Date.now() + 2; Date.now() < end;) {}
    response.end('ok');
}
http.createServer(handler).listen(0, '127.0.0.1', function () {
    const options = { port: this.address().port, host: '127.0.0.1', agent: new http.Agent({ keepAlive: true }) };
    const get = () => http.get(options, answer => answer.resume().on('end', () => process.cpuUsage().user < 22e5 ? get() : process.exit()));
    get();
});
"""

LEVELS = """
const { leaf } = require('dep'), http = require('http');
async function own() { await leaf(); }
http.createServer((request, response) => response.end('ok')).listen(0, '127.0.0.1', function () {
    http.get({ port: this.address().port, host: '127.0.0.1', path: '/orders/8472' }, answer => answer.resume().on('end', async () => {
        await own();
        setTimeout(() => process.exit(), 5);
    }));
});
"""

# The file is looked at while the script still runs.
START = """
require('fs').stat(__filename, () => {});
for (const end = Date.now() + 600; Date.now() < end;) {}
"""

SITES = """
const fs = require('fs'), dns = require('dns'), http = require('http');
setInterval(function beat() {}, 20000);
fs.open(__filename, (error, fd) => fs.close(fd, () => {}));
dns.lookup('localhost', () => {});
require('child_process').exec('true', () => {});
setTimeout(function later() { setImmediate(() => {}); }, 20);
const server = http.createServer((req, res) => res.end());
server.listen(0, () => {
    http.get({ port: server.address().port, host: '127.0.0.1', agent: false }, res => res.resume().on('end', finish));
});
function finish() { setTimeout(() => fs.stat('.', () => process.exit(3)), 500); }
"""

INTERVAL = """const fs = require('fs');
setInterval(function beat() {}, 20000);
setTimeout(() => {}, 20);
setTimeout(() => fs.stat('.', () => process.exit(3)), 200);
"""


REQUESTS = """
const http = require('http');
const server = http.createServer((request, response) => {
    const path = request.url.split('?')[0];
    if (path.startsWith('/slow')) {
        for (const end = Date.now() + 300; Date.now() < end;) {}
        response.end('late');
    } else if (path === '/lost') {
        response.statusCode = 404;
        setTimeout(() => response.end(), 10);
    } else if (path === '/early') {
        response.write('GET /first HTTP/1.1');
        setTimeout(() => response.end('second'), 10);
    } else if (path !== '/never') {
        setTimeout(() => response.end('ok'), 20);
    }
});
server.listen(0, '127.0.0.1', async () => {
    const port = server.address().port;
    const get = path => new Promise(done => http.get({port, path}, answer => answer.resume().on('end', done)));
    await get('/quick?token=Hush8472');
    await get('/slow/8472');
    await get('/lost');
    await get('/early');
    http.get({port, path: '/never'}).on('error', () => {});
    setTimeout(() => process.exit(), 300);
});
"""


# The server asks another process, by http with a connection that is kept, and by fetch.
ASKS = """
const http = require('http'), server_options = {}, client_options = {}, agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
if (process.argv[2]) {
    http.createServer(server_options, (request, response) => {
        if (request.url === '/lost')
            request.socket.destroy();
        else
            setTimeout(() => response.end('ok'), request.url.startsWith('/slow') ? 300 : 5);
    }).listen(0, '127.0.0.1', function () { process.send(this.address().port); });
    process.on('disconnect', () => process.exit());
} else {
    const back = require('child_process').fork(__filename, ['back']);
    back.on('message', port => {
        const get = (path, port, agent) => new Promise(done =>
            http.get({ port, host: '127.0.0.1', path, agent, ...client_options }, answer => answer.resume().on('end', done)).on('error', done));
        const server = http.createServer(server_options, async (request, response) => {
            if (request.url !== '/got') {
                await (await fetch(`http://127.0.0.1:${port}/slow/8472?token=Hush8472`)).text();
            } else {
                await get('/quick', port, agent);
                await get('/slow/8472?token=Hush8472', port, agent);
            }
            response.end();
        });
        server.listen(0, '127.0.0.1', async () => {
            for (const path of ['/got', '/first', '/fetched']) /* the first fetch() compiles its parser */
                await get(path, server.address().port);
            await get('/lost', port, agent);
            http.get({ port, path: '/slow/given-up', ...client_options }).on('error', () => process.exit(3)).setTimeout(100, function () { this.destroy(); });
        });
    });
}
"""

# The same over TLS, which needs no certificate with a shared key.
ENCRYPTED = ASKS.replace("require('http')", "require('https')").replace('server_options = {}, client_options = {}', """
    key = Buffer.from('8472'), pskCallback = () => ({ psk: key, identity: 'a' }), ciphers = 'PSK',
    server_options = { ciphers, pskCallback: () => key }, client_options = { ciphers, pskCallback, checkServerIdentity: () => {} }""".replace('\n', '')) \
    .replace('await (await fetch(`http://127.0.0.1:${port}/slow/8472?token=Hush8472`)).text();', "await get('/slow/8472?token=Hush8472', port);")

HTTP2 = """
const http2 = require('http2'), server = http2.createServer();
server.on('stream', (stream, headers) => {
    const answer = status => { stream.respond({ ':status': status }); stream.end(); };
    if (headers[':path'].startsWith('/slow'))
        setTimeout(answer, 200, 201);
    else if (headers[':path'] === '/block') {
        for (const end = Date.now() + 300; Date.now() < end;) {}
        answer(200);
    } else if (headers[':path'] !== '/never')
        answer(404);
});
server.listen(0, '127.0.0.1', async () => {
    const client = http2.connect('http://127.0.0.1:' + server.address().port);
    const get = path => new Promise(done => client.request({ ':path': path }).resume().on('end', done));
    await Promise.all([get('/slow/8472?token=Hush8472'), get('/lost')]);
    await get('/block');
    get('/never');
    setTimeout(() => process.exit(3), 300);
});
"""


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


def record(weft, folder, program, name='fault.js'):
    write(folder, name, program)
    recording = Recording(weft, os.path.join(folder, 't'), [need('node'), name], cwd=folder)
    if len(recording.traces()) != 1:
        fail(f'{len(recording.traces())} traces: {recording.err}')
    return recording, recording.all()[0]


def show(weft, verb, trace):
    run = subprocess.run([weft, *verb.split(), trace.path], capture_output=True, text=True, timeout=PATIENCE, check=False)
    return run.stdout


def refuse_values(trace):
    for at, _, files in os.walk(trace.path):
        for file in files:
            with open(os.path.join(at, file), 'rb') as data:
                if b'Hush8472' in data.read():
                    fail(f'{file} has a value of the program')


def fault(weft, folder, name):
    file, program, status, title, places = FAULTS[name]
    recording, trace = record(weft, folder, program, file)
    expect(recording.status, status, 'the status')
    text = show(weft, 'explain', trace)
    found = [finding for finding in text.split('\n\n') if re.match(title, finding)]
    if not found:
        fail(f'no finding is {title}: {text}')
    for place in places:
        if place not in '\n'.join(found):
            fail(f'the finding does not name {place}: {found}')
    refuse_values(trace)


def waits(weft, folder):
    """A chain of async functions that waits in a running program is in `weft waits`, each with the line of its await."""
    recording, trace = record(weft, folder, WAITS)
    expect(recording.status, 3, 'the status')
    text = show(weft, 'waits', trace)
    chain = r'coroutine \d+ "handler".*\n.*wait \d+ "await".*:6 in handler.*\n.*coroutine \d+ "load".*\n.*"await".*:3 in load.*\n.*promise \d+ .*:2 in query'
    if not re.search(chain, text):
        fail(f'no chain in {text}')
    refuse_values(trace)


def same(weft, folder):
    """A program prints the same with and without a recording, also after a stack overflow."""
    path = write(folder, 'same.js', SAME)
    for i, options in enumerate(([], ['--frozen-intrinsics'], ['--stack-size=500'])):
        command = [need('node'), *options, path]
        plain = subprocess.run(command, env=ENV, capture_output=True, timeout=PATIENCE, check=False)
        recording = Recording(weft, os.path.join(folder, f't{i}'), command)
        errors = b''.join(line for line in recording.err.splitlines(keepends=True) if not line.startswith(b'weft'))
        # V8 of Node.js 26 prints the second text if the stack ends in its own function, which depends on each byte of the stack.
        pid = re.compile(rb'\(node:\d+\)|Exception in PromiseRejectCallback:\n(.+\n)+\nRangeError: .*\n\n')
        expect((recording.status, recording.out, pid.sub(b'', errors)), (plain.returncode, plain.stdout, pid.sub(b'', plain.stderr)),
               f'the program with {options}')
        if not recording.all()[0].promises('coroutine', 'deep'):
            fail(f'no async function is recorded with {options}')


def share(weft, folder):
    """A program that does nothing but await is left alone after a second, and the trace says so."""
    _, trace = record(weft, folder, SHARE)
    if 'promises of JavaScript are not recorded from now on' not in show(weft, 'events', trace):
        fail('the recording goes on')


def sampled(weft, folder):
    """A busy server is recorded with the promises of some requests only, and the trace says so."""
    recording, trace = record(weft, folder, SAMPLED)
    expect(recording.status, 0, 'the status')
    if not re.search(r'promises of one in \d+ requests are recorded from now on', show(weft, 'events', trace)):
        fail('all requests are followed')
    if 'promises of some requests only' not in show(weft, 'info', trace):
        fail('weft info does not say it')
    counts = show(weft, 'stats', trace)
    requests, handlers = (int(re.search(rf'(?m)^(\d+) {what}', counts)[1]) for what in ('request "GET /"', 'coroutine "handler"'))
    if not 0 < handlers < requests:
        fail(f'{handlers} handlers of {requests} requests')


def start(weft, folder):
    """Before the first turn of the loop nothing is delayed."""
    _, trace = record(weft, folder, START)
    text = show(weft, 'explain', trace)
    if re.search(r'(?m)^stall.*thread \d+ "main"', text):
        fail(f'the start is a stall: {text}')
    if not trace.promises('fs'):
        fail('the file is not looked at')


def sites(weft, folder):
    """Handles and requests have the lines of JavaScript, a timer also after another was due earlier. Those of Node.js itself are left out."""
    recording, trace = record(weft, folder, SITES)
    expect(recording.status, 3, 'the status')
    text = show(weft, 'dump', trace)
    for what, line in ((r'timer .*"20 s"', 3), (r'fs .*"open .*"', 4), (r'fs .*"close .*"', 4), (r'getaddrinfo .*"localhost"', 5),
                       (r'process .*"/bin/sh -c true"', 6), (r'timer .*"20 ms"', 7), (r'handle .*"setImmediate"', 7), (r'listen ', 9),
                       (r'connection .*"from \S+"', 9), (r'connection .*"to \S+"', 10), (r'read ', 9), (r'fs .*"stat .*"', 12)):
        if not re.search(rf'(?m)^promise \d+ {what}.* at \S*fault.js:{line}\b', text):
            fail(f'no {what} is at line {line}: {text}')
    for what in ('prepare', 'check', 'async', 'RunTimers', 'FunctionCallbackArguments', 'PlatformWorkerThread'):
        if re.search(rf'(?m)^promise .*\b{what}\b', text):
            fail(f'{what} of Node.js is recorded: {text}')
    # HTTP has timers of its own, which may be the next ones, so another program shows the interval after earlier timers.
    again = os.path.join(folder, 'again')
    os.mkdir(again)
    text = show(weft, 'dump', record(weft, again, INTERVAL)[1])
    last = [line for line in text.splitlines() if re.search(r'^promise \d+ timer .*"20 s"', line)][-1]
    if ' pending ' not in last or 'fault.js:2' not in last:
        fail(f'the interval has ended: {last}')


def requests(weft, folder):
    """Requests have their method and path, without the query string; findings and `explain --promise` name them."""
    _, trace = record(weft, folder, REQUESTS)
    dumped = show(weft, 'dump', trace)
    for path, result in ('/quick', '"200"'), ('/slow/:id', '"200"'), ('/lost', '"404"'), ('/early', '"200"'):
        if not re.search(rf'(?m)^promise \d+ request  .* resolved  .*"GET {path}"  {result}', dumped):
            fail(f'the request {path}: {dumped}')
    # Places of Node.js itself say nothing of the program, and a server at a host's address has no line.
    if re.search(r'(?m)^promise \d+ (connection|read|listen|request) .* at node::', dumped):
        fail(f'a place is in Node.js: {dumped}')
    # A chunk after the answer's head is no request of its own.
    for start in '/', 'http://':
        expect(len(re.findall(rf'(?m)^promise \d+ request .*"GET {start}', dumped)), 5, f'number of requests to {start}')
    text = show(weft, 'explain', trace)
    if not re.search(r'(?m)^stall( \(uncertain\))?: request \d+ "GET /slow/:id" blocked the event loop', text):
        fail(f'the stall has no request: {text}')
    if not re.search(r'(?m)^\w+( \(uncertain\))?: request \d+ "GET /never" ', text):
        fail(f'the request without an answer: {text}')
    quick = re.search(r'(?m)^promise (\d+) request .*"GET /quick"', dumped)[1]
    why = show(weft, f'explain --promise={quick}', trace)
    if 'waiting for timer' not in why:
        fail(f'the request that waits: {why}')
    refuse_values(trace)


def asks(weft, folder, program=ASKS, scheme='http'):
    """A request that the program asks has a name, its asker awaits it, and `path` goes on into the process that answers."""
    write(folder, 'fault.js', program)
    recording = Recording(weft, os.path.join(folder, 't'), [need('node'), 'fault.js'], cwd=folder)
    expect(recording.status, 3, 'the status')
    front, back = sorted(recording.all(), key=lambda trace: '"GET /got"' not in show(weft, 'dump', trace))
    dumped = show(weft, 'dump', front)
    for path, end, result in (('quick', 'resolved', '"200"'), ('slow/:id', 'resolved', '"200"'),
                              ('lost', 'failed', '"the other end hung up before the answer"'), ('slow/given-up', 'failed', '"given up before the answer"')):
        if not re.search(rf'(?m)^promise \d+ request .* {end} .*"GET {scheme}://[a-z0-9.]+:\d+/{path}"  {result}.* at \S*fault.js:\d+', dumped):
            fail(f'no request {path}: {dumped}')
    main = re.search(r'(?m)^promise (\d+) coroutine .* at \S*fault.js:25', dumped)[1]
    for path in ('got', 'fetched', 'lost'):
        if not re.search(rf'(?m)^promise \d+ request .* by {main} .*"GET {scheme}://127.0.0.1:\d+/{path}"', dumped):
            fail(f'the coroutine {main} does not ask {path}: {dumped}')
    got = re.search(rf'(?m)^promise (\d+) request .*"GET {scheme}://\S+/got"', dumped)[1]
    said = show(weft, f'explain --promise={got}', front)
    if not re.search(r'(?m)^answer: .*% waiting for read \d+ of connection \d+ "to 127.0.0.1:\d+"', said):
        fail(f'the request of the first function does not wait for its connection: {said}')
    for path in ('/got', '/fetched'):
        promise = re.search(rf'(?m)^promise (\d+) request .*"GET {path}"', dumped)[1]
        said = show(weft, f'explain --promise={promise}', front)
        asked = re.search(rf'(?m)^answer: .*% waiting for the answer to request (\d+) "GET {scheme}://127.0.0.1:\d+/slow/:id"', said)
        if not asked:
            fail(f'{path} does not wait for its request: {said}')
        said = show(weft, f'explain --promise={asked[1]}', front)
        if not re.search(r'(?m)^answer: .*% waiting for connection \d+ "to 127.0.0.1:\d+" to answer', said):
            fail(f'the request does not wait for its connection: {said}')
        both = subprocess.run([weft, 'dump', front.path, back.path], capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
        promise = re.search(rf'(?m)^promise (\d+) request .*"GET {path}"', both)[1]
        asked = re.search(rf'(?m)^promise (\d+) request .* by {promise} .*"GET {scheme}://127.0.0.1:\d+/slow/:id"', both) or \
            re.search(rf'(?m)^promise (\d+) request .* by (?!\d+1 )\d+ .*"GET {scheme}://127.0.0.1:\d+/slow/:id"', both)
        went = subprocess.run([weft, 'path', f'--promise={asked[1]}', front.path, back.path], capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
        if not re.search(r'(?m)timer \d+ ".*".* at \S*fault.js:8', went):
            fail(f'the path of {path} stays in its process: {went}')
    refuse_values(front)


def http2(weft, folder):
    """Requests of HTTP/2 have names and results at both ends, also while a connection has several."""
    recording, trace = record(weft, folder, HTTP2)
    expect(recording.status, 3, 'the status')
    dumped = show(weft, 'dump', trace)
    for path, result in ('/slow/:id', '"201"'), ('/lost', '"404"'), ('/block', '"200"'):
        for start in '', r'http://127.0.0.1:\d+':
            if not re.search(rf'(?m)^promise \d+ request  .* resolved  .*"GET {start}{path}"  {result}', dumped):
                fail(f'the request {start}{path}: {dumped}')
    expect(len(trace.promises('request')), 8, 'number of requests')
    if not re.search(r'(?m)^stall( \(uncertain\))?: request \d+ "GET /block" blocked the event loop', show(weft, 'explain', trace)):
        fail('the stall has no request')
    slow = re.search(r'(?m)^promise (\d+) request .*"GET http://\S+/slow/:id"', dumped)[1]
    said = show(weft, f'explain --promise={slow}', trace)
    if not re.search(r'(?m)^answer: .*% waiting for read \d+ of connection \d+ "to 127.0.0.1:\d+"', said):
        fail(f'the request does not wait for its connection: {said}')
    refuse_values(trace)


def levels(weft, folder):
    """--js decides whether lines and which promises are recorded; requests always have names."""
    os.makedirs(os.path.join(folder, 'node_modules'))
    write(os.path.join(folder, 'node_modules'), 'dep.js', 'exports.leaf = async function leaf() { await null; };')
    write(folder, 'fault.js', LEVELS)
    at_line, own, other = r'request .* at \S*fault.js:\d+', 'coroutine .*"own"', 'coroutine .*"leaf"'
    for level, shown, hidden in (('off', [], [at_line, own, other]), ('http', [at_line], [own, other]), ('all', [at_line, own, other], [])):
        recording = Recording(weft, os.path.join(folder, level), [need('node'), 'fault.js'], cwd=folder, record=['--js=' + level])
        expect(recording.status, 0, 'the status')
        dumped = show(weft, 'dump', recording.trace())
        for what in ['request .*"GET /orders/:id"', 'request .*"GET http://\S+/orders/:id"', *shown]:
            if not re.search(rf'(?m)^promise \d+ {what}', dumped):
                fail(f'--js={level}: no {what}: {dumped}')
        for what in hidden:
            if re.search(rf'(?m)^promise \d+ {what}', dumped):
                fail(f'--js={level}: {what}: {dumped}')
    wrong = subprocess.run([weft, 'record', '--js=some', '-o', os.path.join(folder, 'u'), '--', 'true'], capture_output=True, text=True, timeout=PATIENCE, check=False)
    expect((wrong.returncode, wrong.stderr), (2, 'weft record: unknown value: --js=some; use off, http, promises or all\n'), 'an unknown value')


def others(weft, folder):
    """Another program with OpenSSL and nghttp2 is no Node.js, and weft says nothing of them."""
    recording = Recording(weft, os.path.join(folder, 't'), [need('curl'), '--version'])
    expect(recording.status, 0, 'the status')
    if b'Node.js' in recording.err:
        fail(f'libraries of another program: {recording.err}')


def main():
    name, weft = sys.argv[1], os.path.abspath(sys.argv[2])
    major = subprocess.run([need('node'), '-p', 'process.versions.node.split(".")[0]'], capture_output=True, text=True, check=False).stdout
    if int(major) < 18:
        print('SKIPPED: node is older than 18')
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        if name in FAULTS:
            fault(weft, folder, name)
        else:
            {'waits': waits, 'encrypted': lambda *to: asks(*to, ENCRYPTED, 'https'), 'http2': http2, 'levels': levels, 'sampled': sampled, 'others': others, 'same': same, 'share': share, 'start': start, 'sites': sites, 'requests': requests, 'asks': asks}[name](weft, folder)


main()
