#!/usr/bin/env python3
"""containers_test.py WEFT: two containers of one machine, each with a network, a name and processes of its own, where unmodified programs talk: their traces
are one picture by one clock, and the path of an answer goes through both.

SPDX-License-Identifier: ISC"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from namespaces import Machines

PATIENCE = 120
PYTHON = '/usr/bin/python3'
SERVES = """
import asyncio, sys, uvloop
async def serve(reader, writer):
    while data := await reader.read(1000):
        await asyncio.sleep(0.03)
        writer.write(data)
        await writer.drain()
    writer.close()
    done.set()
async def main():
    global done
    done = asyncio.Event()
    server = await asyncio.start_server(serve, sys.argv[1], 7000)
    print('serves', flush=True)
    await done.wait()
uvloop.install()
asyncio.run(main())
"""
ASKS = """
import asyncio, sys, uvloop
async def main():
    reader, writer = await asyncio.open_connection(sys.argv[1], 7000)
    for i in range(8):
        writer.write(b'x' * (i + 1))
        await reader.read(1000)
    writer.close()
uvloop.install()
asyncio.run(main())
"""
weft = os.path.abspath(sys.argv[1])


def skip(why):
    print('SKIPPED: ' + why)
    sys.exit(77)


def start_in_container(machines, letter, name, folder, script, *args):
    """Starts a container of that name, in which a program is recorded; the folder is visible from outside, like a volume."""
    path = os.path.join(folder, name + '.py')
    with open(path, 'w', encoding='ascii') as file:
        file.write(script)
    return subprocess.Popen(machines.on(letter, 'unshare', '--uts', '--ipc', '--pid', '--fork', '--mount-proc', 'sh', '-c', 'hostname "$1"; shift; exec "$@"', 'sh',
                                        name, weft, 'record', '--mode=grow', '-o', os.path.join(folder, name), '--', PYTHON, path, *args), stdout=subprocess.PIPE)


def run_weft(*words):
    return subprocess.run([weft, *words], capture_output=True, text=True, check=True, timeout=PATIENCE).stdout


with Machines() as machines, tempfile.TemporaryDirectory() as folder:
    if not machines:
        skip('no network namespaces can be made here')
    if not shutil.which('unshare') or subprocess.run(['unshare', '--uts', '--ipc', '--pid', '--fork', '--mount-proc', 'hostname', 'web'], check=False,
                                                     stderr=subprocess.DEVNULL).returncode:
        skip('no containers can be made here')
    if subprocess.run([PYTHON, '-c', 'import uvloop'], stderr=subprocess.DEVNULL, check=False).returncode:
        skip('python3-uvloop is not installed')
    server = start_in_container(machines, 'a', 'web', folder, SERVES, machines.addresses['a'])
    if server.stdout.readline() != b'serves\n':
        sys.exit('FAILED: the server does not serve')
    client = start_in_container(machines, 'b', 'shop', folder, ASKS, machines.addresses['a'])
    if [client.wait(PATIENCE), server.wait(PATIENCE)] != [0, 0]:
        sys.exit(f'FAILED: they end with {client.returncode} and {server.returncode}')
    traces = [os.path.join(folder, name) for name in ('shop', 'web')]
    told = json.loads(run_weft('info', '--json', *traces).splitlines()[-1])
    if (told['hosts'], told['messages'], [part['clock'] for part in told['parts']]) != (2, 16, ['same', 'same']):
        sys.exit(f'FAILED: two containers by one clock: {told}')
    promises = [json.loads(line) for line in run_weft('dump', '--json', *traces).splitlines()]
    reads = [p for p in promises if p.get('kind') == 'read' and p.get('stream') == 0]
    path = run_weft('path', *traces, f'--promise={max(reads, key=lambda p: p["end_ns"] - p["start_ns"])["promise"]}')
    if not re.search(r' in python3@web.*\n(.*\n)*.*timer.*\n(.*\n)*.* in python3@shop', path):
        sys.exit(f'FAILED: the path of an answer does not go through both:\n{path}')
