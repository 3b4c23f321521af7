"""servers.py KIND PORT TRUTH: line servers that write for which client they work, to the file TRUTH.

A question is "get WAY/MICROSECONDS".  WAY says when the server computes: `work` before the answer, `after` after the answer, `hop` one
iteration after the read, `mix` 0 to 3 iterations later, `later` 1 ms later.  "get end" ends the server.  SPDX-License-Identifier: ISC"""

import asyncio
import heapq
import os
import selectors
import socket
import sys
import time

KIND, PORT, TRUTH = sys.argv[1], int(sys.argv[2]), sys.argv[3]
ANSWER = b'END\r\n'
truth = []
count = 0


def work(client, microseconds):
    begin = time.time_ns()
    while time.time_ns() < begin + 1000 * microseconds:
        pass
    truth.append(f'{client} {begin} {time.time_ns()}\n')


def end():
    with open(TRUTH, 'w', encoding='utf-8') as file:
        file.writelines(truth)
    os._exit(0)


def parse(line):
    """Returns the number of iterations to wait, the way and the work's duration."""
    global count
    way, _, duration = line.split()[1].decode().partition('/')
    if way == 'end':
        end()
    count += 1
    return {'hop': 1, 'mix': count % 4}.get(way, 0), way, int(duration)


async def serve(client, line, write):
    hops, way, duration = parse(line)
    for _ in range(hops):
        await asyncio.sleep(0)
    if way == 'later':
        await asyncio.sleep(0.001)
    if way != 'after':
        work(client, duration)
    write(ANSWER)
    if way == 'after':
        work(client, duration)


async def run_asyncio():
    async def talk(reader, writer):
        while line := await reader.readline():
            await serve(writer.get_extra_info('peername')[1], line, writer.write)
            await writer.drain()
        writer.close()
    async with await asyncio.start_server(talk, '127.0.0.1', PORT) as server:
        await server.serve_forever()


async def run_tornado():
    from tornado.iostream import StreamClosedError
    from tornado.tcpserver import TCPServer

    class Server(TCPServer):
        async def handle_stream(self, stream, address):
            try:
                while True:
                    await serve(address[1], await stream.read_until(b'\n'), stream.write)
            except StreamClosedError:
                pass
    Server().listen(PORT, '127.0.0.1')
    await asyncio.Event().wait()


def run_twisted():
    from twisted.internet import epollreactor
    epollreactor.install()
    from twisted.internet import protocol, reactor
    from twisted.protocols import basic

    class Talk(basic.LineReceiver):
        def lineReceived(self, line):
            hops, way, duration = parse(line)
            if way == 'after':
                self.sendLine(b'END')
                work(self.transport.getPeer().port, duration)
            elif way == 'later':
                reactor.callLater(0.001, self.answer, 0, duration)
            else:
                self.answer(hops, duration)

        def answer(self, hops, duration):
            if hops:
                reactor.callLater(0, self.answer, hops - 1, duration)
                return
            work(self.transport.getPeer().port, duration)
            self.sendLine(b'END')
    factory = protocol.Factory()
    factory.protocol = Talk
    reactor.listenTCP(PORT, factory, interface='127.0.0.1')
    reactor.run()


class Own:
    """A loop that reads everything that is ready, and then works."""

    def __init__(self):
        self.poller = selectors.DefaultSelector()
        self.jobs = []
        self.server = socket.create_server(('127.0.0.1', PORT))
        self.server.setblocking(False)
        self.poller.register(self.server, selectors.EVENT_READ)

    def read(self, wait):
        for key, _ in self.poller.select(wait):
            if key.fileobj is self.server:
                client, (_, port) = self.server.accept()
                client.setblocking(False)
                self.poller.register(client, selectors.EVENT_READ, port)
                continue
            line = key.fileobj.recv(4096)
            if line:
                self.add(key.fileobj, key.data, *parse(line)[1:])
            else:
                self.poller.unregister(key.fileobj)
                key.fileobj.close()

    def finish(self, client, port, way, steps):
        """Computes in steps; returns after each step."""
        if way == 'after':
            client.send(ANSWER)
        for step in steps:
            work(port, step)
            yield
        if way != 'after':
            client.send(ANSWER)


class Shortest(Own):
    """Serves the shortest job first, all before the next wait."""

    def add(self, client, port, way, duration):
        heapq.heappush(self.jobs, (duration, port, client, way))

    def turn(self):
        self.read(5)
        while self.jobs:
            duration, port, client, way = heapq.heappop(self.jobs)
            for _ in self.finish(client, port, way, [duration]):
                pass


class Slices(Own):
    """Works on each job for a third of its time, then on the next job, and looks for new jobs after each round."""

    def add(self, client, port, way, duration):
        self.jobs.append(self.finish(client, port, way, [duration // 3] * 3))

    def turn(self):
        self.read(0 if self.jobs else 5)
        self.jobs = [job for job in self.jobs if next(job, self) is None]


def run_own(kind):
    loop = kind()
    while True:
        loop.turn()


RUN = {'asyncio': lambda: asyncio.run(run_asyncio()), 'tornado': lambda: asyncio.run(run_tornado()), 'twisted': run_twisted,
       'shortest': lambda: run_own(Shortest), 'slices': lambda: run_own(Slices)}  # yapf: disable
RUN[KIND]()
