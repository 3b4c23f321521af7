#!/usr/bin/env python3
"""client.py ADDRESS: asks a webdis, one question after the other, over one connection of uvloop: many short ones, one long one, and short ones again.

SPDX-License-Identifier: ISC"""
import asyncio
import sys
import urllib.parse

import uvloop

SHORT, LONG = 60, 'local t = {} for i = 1, 100000 do t[i] = i end return t'


async def main():
    while True:
        try:
            reader, writer = await asyncio.open_connection(sys.argv[1], 7379)
            break
        except OSError:
            await asyncio.sleep(0.2)

    async def ask(path):
        writer.write(f'GET /{path} HTTP/1.1\r\nHost: guest\r\n\r\n'.encode())
        head = await reader.readuntil(b'\r\n\r\n')
        length = next(int(line.split(b':')[1]) for line in head.split(b'\r\n') if line.lower().startswith(b'content-length:'))
        return await reader.readexactly(length)

    for _ in range(SHORT):
        await ask('PING')
    print('long', flush=True)
    answer = await ask(f'EVAL/{urllib.parse.quote(LONG, safe="")}/0')
    print(len(answer), flush=True)
    for _ in range(SHORT):
        await ask('PING')


uvloop.install()
asyncio.run(main())
