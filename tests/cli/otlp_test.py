#!/usr/bin/env python3
"""otlp_test.py WEFT: each request of a Node.js server arrives once as a span at an OpenTelemetry receiver, even if the receiver is busy or fails;
   weft convert --to=otlp writes the same spans.

SPDX-License-Identifier: ISC"""
import http.server
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from otlp_decode import compare_with_transformer, spans  # pylint: disable=wrong-import-position
from waiting import PATIENCE, dies_with_test, expect, until  # pylint: disable=wrong-import-position

weft = os.path.abspath(sys.argv[1])
TRACE, PARENT = '0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'
SECRET = 'Hush8472'
SERVER = """
const fs = require('fs'), http = require('http');
process.on('unhandledRejection', () => {});
async function audit() {
    await null;
    throw new Error('no book');
}
const server = http.createServer((request, response) => {
    if (request.url.startsWith('/fail'))
        audit();
    fs.readFile(__filename, () => response.end('hello'));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.on('SIGTERM', () => server.close());
process.stdin.on('end', () => server.close()).resume();
"""


class Receiver:
    """A receiver of spans.  Its next answers are in a list of (status, seconds to wait, body)."""

    def __init__(self, port=0):
        self.taken, self.answers, self.tries, self.lock = [], [], 0, threading.Lock()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                expect('the address', (self.path, self.headers['Content-Type']), ('/v1/traces', 'application/x-protobuf'))
                with receiver.lock:
                    receiver.tries += 1
                    status, wait_s, answer = receiver.answers.pop(0) if receiver.answers else (200, 0, b'')
                time.sleep(wait_s)
                with receiver.lock:
                    receiver.taken.append((status, answer, body))
                self.send_response(status)
                if status == 429:
                    self.send_header('Retry-After', '1')
                self.send_header('Content-Length', str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', port), Handler)
        self.url = f'http://127.0.0.1:{self.server.server_port}'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def spans(self, status=200):
        with self.lock:
            return [span for got, _, body in self.taken if got == status for span in spans(body)]


def start_watch(url):
    return subprocess.Popen([weft, 'watch', 'all', 'stall<50ms/10s', '--every=100ms', f'--otlp={url}'], preexec_fn=dies_with_test, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def end_watch(watch):
    """Ends the watcher; returns the counts of spans that it prints, and its whole output."""
    watch.send_signal(signal.SIGTERM)
    said = watch.communicate(timeout=PATIENCE)[1]
    counts = re.search(r'spans: (\d+) sent, (\d+) taken without confirmation, (\d+) rejected, (\d+) lost', said)
    expect(f'the counts in: {said}', counts is not None, True)
    return [int(count) for count in counts.groups()], said


def start_server():
    with open('server.js', 'w', encoding='utf-8') as file:
        file.write(SERVER)
    server = subprocess.Popen([weft, 'record', '-o', 'all/shop', '--', 'node', 'server.js'], preexec_fn=dies_with_test, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return server, int(server.stdout.readline())


def ask(port, path, **headers):
    with urllib.request.urlopen(urllib.request.Request(f'http://127.0.0.1:{port}{path}?{SECRET}', headers={'Cookie': SECRET, **headers}), timeout=PATIENCE) as answer:
        expect('the answer', answer.read(), b'hello')


def named(all_spans, name):
    return [span for span in all_spans if span['name'] == name]


def every_span_arrives_once():
    os.mkdir('all')
    receiver = Receiver()
    watch = start_watch(receiver.url)
    server, port = start_server()
    for _ in range(20):
        ask(port, '/item/17')
    ask(port, '/traced', traceparent=f'00-{TRACE}-{PARENT}-01')
    until('the requests arrive', lambda: len(named(receiver.spans(), 'GET /item/:id')) == 20 and named(receiver.spans(), 'GET /traced'))
    request = named(receiver.spans(), 'GET /traced')[0]
    expect('the trace of a request with traceparent', (request['trace_id'], request['parent'], request['flags']), (TRACE, PARENT, 0x301))
    expect('a server received it', request['kind'], 2)
    expect('its status', request['attributes'].get('http.response.status_code'), 200)
    expect('its process', (request['resource']['service.name'], request['resource']['process.pid'] > 0, 'host.name' in request['resource']), ('node', True, True))
    inner = [span for span in receiver.spans() if span['trace_id'] == TRACE and span is not request and span['span_id'] != request['span_id']]
    expect('the file is read in the trace of the request', any(span['attributes']['weft.kind'] == 'fs' for span in inner), True)
    expect('a request refers to its connection', [link['attributes']['weft.link'] for link in request['links']].count('created by'), 1)

    # The receiver is busy, fails, answers with HTML, rejects one span of a message, and refuses a message.
    for path, answer in (('/busy', (429, 0, b'')), ('/down', (503, 0, b'later')), ('/strange', (200, 0, b'<html>')), ('/partly', (200, 1, b'\n\x02\x08\x01')), ('/refused', (400, 0, b''))):
        before = receiver.tries
        with receiver.lock:
            receiver.answers.append(answer)
        ask(port, path)
        until(f'{path} was sent', lambda: receiver.tries > before and any(span['name'] == f'GET {path}' for status in {200, answer[0]} for span in receiver.spans(status)))
    until('a busy receiver gets the spans again', lambda: named(receiver.spans(), 'GET /busy') and named(receiver.spans(), 'GET /down'))

    ask(port, '/fail')
    until('the finding arrives', lambda: any(event['name'] == 'weft.finding' and event['attributes']['weft.finding.kind'] == 'failure' and 'audit' in event['attributes']['weft.finding.title'] for span in receiver.spans() for event in span['events']))
    server.stdin.close()
    expect('the end of the server', server.wait(timeout=PATIENCE), 0)
    subprocess.run([weft, 'convert', '--to=otlp', '-o', 'file.otlp', 'all/shop'], check=True, stderr=subprocess.DEVNULL)
    with open('file.otlp', 'rb') as file:
        whole = file.read()
    promises = {(s['trace_id'], s['span_id'], s.get('parent')) for s in spans(whole) if 'weft.kind' in s['attributes']}

    def arrived(*statuses):
        return [(s['trace_id'], s['span_id'], s.get('parent')) for status in statuses for s in receiver.spans(status) if 'weft.kind' in s['attributes']]
    until('every promise arrives', lambda: len(set(arrived(200, 400))) >= len(promises))
    counts, said = end_watch(watch)
    expect('no span arrives twice', len(arrived(200, 400)), len(set(arrived(200, 400))))
    expect('spans of the watcher that the file does not have', set(arrived(200, 400)) - promises, set())
    expect('spans of the file that did not arrive', promises - set(arrived(200, 400)), set())
    taken = {answer: sum(len(spans(body)) for status, own, body in receiver.taken if status == 200 and own == answer) for answer in (b'', b'<html>', b'\n\x02\x08\x01')}
    expect(f'what the watcher counts: {said}', counts, [taken[b''] + taken[b'\n\x02\x08\x01'] - 1, taken[b'<html>'], len(receiver.spans(400)) + 1, 0])
    expect('the secrets', [SECRET.encode() in body for _, _, body in receiver.taken].count(True) + (SECRET.encode() in whole), 0)
    compare_with_transformer([body for _, _, body in receiver.taken] + [whole])


def spans_lost_while_the_receiver_is_down_are_counted():
    port = Receiver()  # gives a free port, at which no receiver listens until later
    port.server.server_close()
    port.server.shutdown()
    watch = start_watch(port.url)
    server, web = start_server()
    for _ in range(5):
        ask(web, '/early')
    until('the watcher says so', lambda: 'sent again' in watch.stderr.readline())
    receiver = Receiver(port.server.server_port)
    until('the spans arrive later', lambda: len(named(receiver.spans(), 'GET /early')) == 5)
    receiver.server.shutdown()
    receiver.server.server_close()
    ask(web, '/late')
    server.stdin.close()
    expect('the end of the server', server.wait(timeout=PATIENCE), 0)
    time.sleep(1)
    counts, said = end_watch(watch)
    expect('what was sent', counts[0], len(receiver.spans()))
    expect(f'what was lost: {said}', counts[3] > 0, True)


if not shutil.which('node'):
    print('skipped: there is no node')
    sys.exit(77)
with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    wrong = subprocess.run([weft, 'watch', '.', '--otlp=localhost'], capture_output=True, text=True, check=False)
    if 'without the part' in wrong.stderr:
        print(f'skipped: {wrong.stderr}')
        sys.exit(77)
    expect('a wrong URL', (wrong.returncode, 'not a URL' in wrong.stderr), (2, True))
    every_span_arrives_once()
    shutil.rmtree('all')
    os.mkdir('all')
    spans_lost_while_the_receiver_is_down_are_counted()
    os.chdir('/')
