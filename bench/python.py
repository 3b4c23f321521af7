#!/usr/bin/env python3
"""python.py NAME: does one kind of work of asyncio or of threads; prints the CPU time of one operation in ns, and the private memory in bytes.
`NAME uvloop` does it on the loop of libuv.  SPDX-License-Identifier: ISC"""

import asyncio
import queue
import re
import sys
import threading
import time


async def answer(reader, writer):
    while data := await reader.read(100):
        writer.write(data)
        await writer.drain()
    writer.close()


async def ask(port, count, request, get_answer):
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    for _ in range(count):
        writer.write(request)
        await get_answer(reader)
    writer.close()


async def ask_all(port, count, request, get_answer, clients=20):
    await asyncio.gather(*(ask(port, count // clients, request, get_answer) for _ in range(clients)))
    return count


async def echo(count=20000):
    server = await asyncio.start_server(answer, '127.0.0.1', 0)
    async with server:
        return await ask_all(server.sockets[0].getsockname()[1], count, b'question', lambda reader: reader.readexactly(8))


async def switch(count=150000):
    loop = asyncio.get_running_loop()
    for _ in range(count):
        future = loop.create_future()
        loop.call_soon(future.set_result, None)
        await future
    return count


async def tasks(count=100000):
    """All tasks are alive at once."""
    await asyncio.gather(*(asyncio.create_task(asyncio.sleep(0)) for _ in range(count)))
    return count


async def items(count=100000):
    shared = asyncio.Queue(10)

    async def put():
        for number in range(count):
            await shared.put(number)

    putter = asyncio.create_task(put())
    for _ in range(count):
        await shared.get()
    await putter
    return count


async def lock(count=50000):
    shared = asyncio.Lock()

    async def use():
        for _ in range(count // 8):
            async with shared:
                await asyncio.sleep(0)

    await asyncio.gather(*(use() for _ in range(8)))
    return count


async def threads(count=20000):
    """Two threads send an item to and fro."""
    there, back = queue.Queue(), queue.Queue()

    def return_items():
        while (item := there.get()) is not None:
            back.put(item)

    thread = threading.Thread(target=return_items)
    thread.start()
    for number in range(count):
        there.put(number)
        back.get()
    there.put(None)
    thread.join()
    return count


REQUEST = b'GET /items/7 HTTP/1.1\r\nHost: localhost\r\n\r\n'


async def read_response(reader):
    head = await reader.readuntil(b'\r\n\r\n')
    await reader.readexactly(int(re.search(rb'(?i)content-length: (\d+)', head)[1]))


async def aiohttp(count=6000):
    from aiohttp import web

    async def show(request):
        return web.json_response({'item': request.match_info['item']})

    app = web.Application()
    app.add_routes([web.get('/items/{item}', show)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, '127.0.0.1', 0)
    await site.start()
    await ask_all(runner.addresses[0][1], count, REQUEST, read_response)
    await runner.cleanup()
    return count


async def starlette(count=4000):
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def show(request):
        return JSONResponse({'item': request.path_params['item']})

    server = uvicorn.Server(uvicorn.Config(Starlette(routes=[Route('/items/{item}', show)]), port=0, log_level='error', http='h11', loop='none'))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    await ask_all(server.servers[0].sockets[0].getsockname()[1], count, REQUEST, read_response)
    server.should_exit = True
    await serving
    return count


def get_private_bytes():
    with open('/proc/self/status', encoding='ascii') as status:
        return int(re.search(r'RssAnon:\s+(\d+)', status.read())[1]) * 1024


async def main():
    work = {f.__name__: f for f in (echo, switch, tasks, items, lock, threads, aiohttp, starlette)}[sys.argv[1]]
    began = time.process_time()
    count = await work()
    print('ns', (time.process_time() - began) * 1e9 / count)
    print('bytes', get_private_bytes() / count)


if 'uvloop' in sys.argv[2:]:
    import uvloop
    uvloop.install()
asyncio.run(main())
