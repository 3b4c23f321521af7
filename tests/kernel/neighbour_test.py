#!/usr/bin/env python3
"""Healthy programs of Debian run while other programs compete for both CPUs: weft reports no stall of the healthy programs.

	neighbour_test.py SLOW WEFT

Each healthy program uses 6 ms of CPU time at once, which lasts 20 ms or more on such a machine.  They are recorded without --kernel, where only the loop's iterations
have CPU times, and with all kernel events, if root runs this.  Programs that are not installed are skipped.

SPDX-License-Identifier: ISC"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
from recorded import Recording, expect, fail

TIMES = 40
WORK = 'def work():\n    begin = time.thread_time()\n    while time.thread_time() - begin < 0.006:\n        pass\n'

SERVER = f"""
import asyncio, time, uvloop
{WORK}
async def answer(reader, writer):
    while await reader.readline():
        work()
        writer.write(b'done\\n')
        await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(answer, '127.0.0.1', 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    beat = asyncio.create_task(tick())
    for _ in range({TIMES}):
        writer.write(b'ask\\n')
        await reader.readline()
    beat.cancel()
    writer.close()
    server.close()
async def tick():
    while True:
        await asyncio.sleep(0.005)
uvloop.install()
asyncio.run(main())
"""

EDITOR = f"""
local left, timer, other = {TIMES}, vim.loop.new_timer(), vim.loop.new_timer()
other:start(5, 5, function() end)
timer:start(10, 10, function()
	local begin = os.clock()
	while os.clock() - begin < 0.006 do end
	left = left - 1
	if left == 0 then
		timer:close()
		other:close()
		vim.schedule(function() vim.cmd('qall!') end)
	end
end)
"""

DESKTOP = f"""
import time
from gi.repository import Gio, GLib
{WORK}
loop, left = GLib.MainLoop(), {TIMES}
def beat():
    return True
def step():
    global left
    work()
    left -= 1
    if left == 0:
        loop.quit()
    return left > 0
def listed(folder, result):
    folder.enumerate_children_finish(result)
GLib.timeout_add(5, beat)
GLib.timeout_add(10, step)
Gio.File.new_for_path('/').enumerate_children_async('standard::name', 0, 0, None, listed)
loop.run()
"""


def programs(folder):
    """Returns the (name, command) of the installed programs."""
    script = os.path.join(folder, 'editor.lua')
    with open(script, 'w', encoding='ascii') as file:
        file.write(EDITOR)
    python = '/usr/bin/python3'
    for name, module, text in (('a server on uvloop', 'uvloop', SERVER), ('a program on GLib', 'gi', DESKTOP)):
        if os.path.exists(python) and subprocess.run([python, '-c', f'import {module}'], stderr=subprocess.DEVNULL).returncode == 0:
            yield name, [python, '-c', text]
        else:
            print(f'skipped: {name}: it is not installed')
    if shutil.which('nvim'):
        yield 'neovim', ['nvim', '--headless', '-u', 'NONE', '-i', 'NONE', '-n', '-c', f'luafile {script}']
    else:
        print('skipped: neovim: it is not installed')


slow, weft = map(os.path.abspath, sys.argv[1:3])
burners = []
for processor in os.sched_getaffinity(0):
    nice = ['nice', '-n', '-5'] if os.getuid() == 0 else []
    burners += [subprocess.Popen([*nice, 'taskset', '-c', str(processor), slow, 'hog'], stderr=subprocess.DEVNULL) for _ in range(1 if nice else 3)]
try:
    with tempfile.TemporaryDirectory(prefix='weft-neighbour-') as folder:
        for name, command in programs(folder):
            for level in ([], ['--kernel']):
                recording = Recording(weft, os.path.join(folder, name.replace(' ', '-') + ''.join(level)), command, record=level, cwd=folder,
                                      stdin=subprocess.DEVNULL)
                expect(recording.status, 0, f'{name}: {recording.err}')
                held, count = 0, 0
                for trace in recording.all():
                    expect([alarm for alarm in trace.alarms() if alarm.startswith('stall')], [], f'{name}{level}: alarms')
                    for stall in trace.findings().get('stall', []):
                        if '10 ms' not in stall['title'] and 'handle' not in stall['title']:
                            continue  # the program starts
                        if re.search('split the work|move the blocking call', stall['next']):
                            print(f'{stall["title"]}: {stall["next"]}')
                        count += 1
                        held += 'run fewer other programs' in stall['next'] or 'move the interrupts' in stall['next']
                # A competing program may have preempted the program between two callbacks of one iteration, for which the CPU times are known only together.
                if held < count * 0.8:
                    fail(f'{name}{level}: {count} times it took long, {held} of which are said to be the neighbours\'')
                print(f'{name}{" with --kernel" if level else ""}: no alarm; {count} times it took long, {held} of which are said to be the neighbours\'')
finally:
    for burner in burners:
        burner.kill()
        burner.wait()
