#!/usr/bin/env python3
"""slow_node.py WEFT CASE TRACES: records a server on Debian's Node.js that has one slow request.

CASE: dependency (another server answers late), stall (a callback computes), lock (requests wait for one another), data (the client sends late).

SPDX-License-Identifier: ISC"""

import http.client
import http.server
import os
import signal
import subprocess
import sys
import threading
import time

LATE = 0.4
SERVER = """
const http = require('http'), [fault, store] = process.argv.slice(1);
let free = Promise.resolve();
const sleep = ms => new Promise(done => setTimeout(done, ms));
const ask = (path, agent) => new Promise(done => http.get({port: store, path, agent}, answer => answer.resume().on('end', done)));
const server = http.createServer(async (request, response) => {
  const isSlow = request.url === '/slow';
  for await (const _ of request);
  if (fault === 'dependency')
    await ask(request.url, request.socket.agent ??= new http.Agent({keepAlive: true}));
  else if (fault === 'stall' && isSlow)
    for (const end = Date.now() + 400; Date.now() < end;);
  else if (fault === 'lock')
    await (free = free.then(() => sleep(isSlow ? 400 : 1)));
  else
    await sleep(2);
  response.end('done');
}).listen(0, '127.0.0.1', () => console.log(server.address().port));
"""


class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        time.sleep(LATE if self.path == '/slow' else 0.002)
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_):
        pass


def send_late(client):
    client.putrequest('POST', '/late')
    client.putheader('Content-Length', '10')
    client.endheaders(b'hello')
    time.sleep(LATE)
    client.send(b'world')


def ask(port, number, case):
    client = http.client.HTTPConnection('127.0.0.1', port)
    for i in range(25):
        is_slow = number == 1 and i == 12
        if is_slow and case == 'data':
            send_late(client)
        else:
            client.request('GET', '/slow' if is_slow else f'/item/{i}')
        client.getresponse().read()
        time.sleep(0.02)
    client.close()


def main(weft, case, traces):
    store = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Store)
    threading.Thread(target=store.serve_forever, daemon=True).start()
    command = [weft, 'record', '--mode=grow', '-o', traces, '--', 'node', '-e', SERVER, case, str(store.server_address[1])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        port = int(server.stdout.readline())
        clients = [threading.Thread(target=ask, args=(port, number, case)) for number in range(4)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        os.kill(int(os.listdir(traces)[0].rsplit('-', 1)[1]), signal.SIGTERM)


main(*sys.argv[1:4])
