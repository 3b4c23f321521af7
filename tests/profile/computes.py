"""A server of asyncio whose handler computes for a while.  SPDX-License-Identifier: ISC"""
import asyncio
import time


def add_up(seconds):
    total = 0
    end = time.process_time() + seconds
    while time.process_time() < end:
        for i in range(1000):
            total += i * i % 7
    return total


async def handle(reader, writer):
    await reader.readline()
    add_up(0.2)
    writer.write(b'done\n')
    writer.close()


async def main():
    server = await asyncio.start_server(handle, '127.0.0.1', 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    writer.write(b'compute\n')
    await reader.readline()
    writer.close()


asyncio.run(main())
