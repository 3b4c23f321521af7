#!/usr/bin/env python3
"""Faults of programs with asyncio or threads: the first finding names the task, the lock and the line.

	python_test.py NAME WEFT	the names are those of FAULTS and THREAD_FAULTS, and `threads`, `wakeable`, `jobs`, `levels`, `trio`, `uvloop`, `same`, `fork`

SPDX-License-Identifier: ISC"""

import os
import re
import subprocess
import sys
import tempfile

from recorded import ENV, PATIENCE, Recording, expect, fail, need

PYTHON = '/usr/bin/python3'

# A program that hangs ends itself, by a signal that it does not handle, so that the test waits for no time of its own.
HEAD = """
import asyncio, gc, os, signal, sys, threading, time

def give_up():
    signal.setitimer(signal.ITIMER_REAL, 1.5)
"""

# Name: the program, and what its first finding says. Its first line is the seventh of the file.
FAULTS = {
    'deadlock': ("""
async def move(first, second):
    async with first:
        await asyncio.sleep(0.01)
        async with second:
            pass

async def main():
    give_up()
    a, b = asyncio.Lock(), asyncio.Lock()
    await asyncio.gather(move(a, b), move(b, a))
""", r'deadlock: task \d+ "move" holds lock \d+ "Lock" and waits for lock \d+ "Lock"', 'fault.py:10 in move'),
    'semaphore': ("""
async def call(permits, number):
    await permits.acquire()
    await asyncio.sleep(0.01)
    if number == 1:
        raise RuntimeError("no answer")
    permits.release()

async def main():
    give_up()
    permits = asyncio.Semaphore(1)
    await asyncio.gather(*(call(permits, n) for n in range(1, 4)), return_exceptions=True)
""", r'hang: .*pool \d+ "Semaphore of 1" is held by task \d+, which has ended', 'fault.py:8 in call'),
    'gather': ("""
async def fetch(ready):
    await ready.wait()

async def main():
    give_up()
    events = [asyncio.Event(), asyncio.Event()]
    events[0].set()
    await asyncio.gather(*(fetch(e) for e in events))
""", r'hang: .*nothing tried to resolve condition \d+ "Event"', 'fault.py:8 in fetch'),
    'swallowed': ("""
async def poll(queue):
    while True:
        try:
            await queue.get()
        except BaseException:
            pass

async def main():
    give_up()
    task = asyncio.create_task(poll(asyncio.Queue()))
    await asyncio.sleep(0.01)
    task.cancel()
    await task
""", r'hang: .*queue \d+ "Queue"', 'task 4 "poll" was cancelled at this time, caught the cancellation, and waits again (fault.py:10 in poll)'),
    'full': ("""
async def main():
    give_up()
    queue = asyncio.Queue(1)
    await queue.put(1)
    await queue.put(2)
""", r'hang: .*queue \d+ "Queue"', 'fault.py:11 in main'),
    'join': ("""
async def main():
    give_up()
    queue = asyncio.Queue()
    await queue.put(1)
    await queue.get()
    await queue.join()
""", r'hang: .*condition \d+ "Event"', 'Queue.join (Event.wait)'),
    'collected': ("""
async def background():
    await asyncio.get_running_loop().create_future()

async def main():
    asyncio.create_task(background())
    await asyncio.sleep(0)
    gc.collect()
    await asyncio.sleep(0)
""", r'unreturned: task \d+ "background" was finalized', 'fault.py:11 in main'),
    'forgotten': ("""
async def save(order):
    print(order)

async def main():
    save("Hush8472")
    await asyncio.sleep(0)
""", r'unreturned: coroutine \d+ "save" was never awaited', 'fault.py:11 in main'),
    'unasked': ("""
async def refresh():
    raise KeyError("Hush8472")

async def main():
    task = asyncio.create_task(refresh())
    await asyncio.sleep(0.01)
    del task
""", r'failure: task \d+ "refresh" failed, and no code read the error: KeyError', 'fault.py:11 in main'),
    'blocking': ("""
async def beat():
    for _ in range(4):
        await asyncio.sleep(0.02)

async def handler():
    await asyncio.sleep(0.02)
    time.sleep(0.3)

async def main():
    await asyncio.gather(beat(), handler())
""", r'stall: task \d+ "handler" blocked the event loop for \d+ ms in clock_nanosleep', 'longest blocking call at fault.py:13 in handler'),
    'foreign': ("""
async def main():
    signal.setitimer(signal.ITIMER_REAL, 3)
    answer = asyncio.get_running_loop().create_future()
    def compute():
        time.sleep(0.05)
        answer.set_result(42)
    threading.Thread(target=compute, name="clerk").start()
    print(await answer)
""", r'hang: task \d+ "main" is pending: thread \d+ "clerk" ended promise \d+ "await" and did not wake the event loop', 'fault.py:14 in main'),
    'shield': ("""
async def commit(ready):
    await ready.wait()

async def main():
    give_up()
    await asyncio.shield(asyncio.create_task(commit(asyncio.Event())))
""", r'hang: .*nothing tried to resolve condition \d+ "Event"', 'fault.py:8 in commit'),
    'timeout': ("""
async def query():
    await asyncio.sleep(0.5)

async def main():
    for n in range(12):
        try:
            async with asyncio.timeout(0.01):
                await query()
        except TimeoutError:
            pass
""", r'retries: 12 of 12 promises "sleep \* ms" ended by their timeout: no answer came in time', 'fault.py:8 in query'),
    'wait_for': ("""
async def query(delay):
    await asyncio.sleep(delay)

async def quick():
    await asyncio.sleep(0)

async def main():
    for n in range(12):
        await asyncio.wait_for(quick(), 30)
        try:
            await asyncio.wait_for(query(0.5), 0.01)
        except asyncio.TimeoutError:
            pass
""", r'retries: 12 of 12 promises "wait_for\(query\)" ended by their timeout: no answer came in time', 'fault.py:17 in main'),
    'held': ("""
lock = threading.Lock()

def save():
    with lock:
        pass

async def main():
    give_up()
    lock.acquire()
    await asyncio.to_thread(save)
""", r'deadlock: task \d+ "main" holds lock \d+ and waits for work \d+ "save", which waits for it', 'fault.py:10 in save'),
    'spin': ("""
async def main():
    for _ in range(40000):
        await asyncio.sleep(0)
""", r'spin: task \d+ "main" was called \d+ times', 'fault.py:7 in main'),
    'callback': ("""
async def beat():
    for _ in range(4):
        await asyncio.sleep(0.02)

def later():
    time.sleep(0.3)

async def main():
    asyncio.get_running_loop().call_later(0.01, later)
    await beat()
""", r'stall[^:]*: handle \d+ "later" blocked the event loop for \d+ ms in clock_nanosleep', 'fault.py:12 in later'),
}

THREADS_HEAD = """
import queue, signal, threading, time

def give_up():
    signal.setitimer(signal.ITIMER_REAL, 1.5)
"""

# The same for programs with threads, which do not import asyncio.
THREAD_FAULTS = {
    'locks': ("""
accounts, journal = threading.Lock(), threading.Lock()

def move(first, second):
    with first:
        time.sleep(0.1)
        with second:
            pass

def main():
    give_up()
    threads = [threading.Thread(target=move, args=locks) for locks in ((accounts, journal), (journal, accounts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
""", r'deadlock: thread \d+ "Thread-[12] \(move\)" holds lock \d+ and waits for lock \d+', 'waits for lock', 'fault.py:12 in move'),
    'pool': ("""
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(max_workers=2)
both = threading.Barrier(2)

def leaf(n):
    return n

def node(n):
    both.wait()
    return pool.submit(leaf, n).result()

def main():
    give_up()
    print([future.result() for future in [pool.submit(node, n) for n in range(2)]])
""", r'hang: work \d+ "leaf" never starts: all 2 threads that could run it wait', 'fault.py:16 in node'),
    'worker': ("""
jobs, results = queue.Queue(), queue.Queue()

def work():
    while True:
        if jobs.get() == 3:
            raise ValueError("Hush8472")
        results.put(1)

def main():
    give_up()
    threading.Thread(target=work, name="clerk").start()
    for n in range(5):
        jobs.put(n)
    for n in range(5):
        results.get()
""", r'hang: thread 1 "main" sleeps forever at condition \d+ "Queue.get"', 'fault.py:21 in main'),
    'request': ("""
import socket
from urllib.request import urlopen
silent = socket.create_server(("127.0.0.1", 0))

def ask():
    return urlopen(f"http://127.0.0.1:{silent.getsockname()[1]}/price?Hush8472").read()

def main():
    signal.setitimer(signal.ITIMER_REAL, 3)
    clerk = threading.Thread(target=ask, name="clerk")
    clerk.start()
    clerk.join()
""", r'hang \(uncertain\): request \d+ "GET /price" is pending: it has waited [12]\.\d+ s for an answer', 'fault.py:12 in ask'),
    'event': ("""
ready = threading.Event()

def main():
    give_up()
    threading.Thread(target=time.sleep, args=(0.01,)).start()
    ready.wait()
""", r'hang: thread 1 "main" sleeps forever at condition \d+ "Event.wait": no awake thread can wake it', 'fault.py:12 in main'),
}

# Programs with threads that do their work.
HEALTHY_THREADS = """
from concurrent.futures import ThreadPoolExecutor, wait
jobs, results, lock = queue.Queue(2), queue.Queue(), threading.Lock()
total = 0

def work():
    global total
    for n in iter(jobs.get, None):
        with lock:
            total += n
            time.sleep(0.001)
        results.put(n)

def fail(n):
    if n % 2:
        raise ValueError(n)
    time.sleep(0.01)

def main():
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    threading.Thread(target=queue.Queue().get, daemon=True).start()
    for n in [*range(40), *(None for _ in threads)]:
        jobs.put(n)
    for thread in threads:
        thread.join()
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(fail, n) for n in range(6)]
        wait(futures)
        print(total, results.qsize(), sum(future.exception() is not None for future in futures))
        print(pool.submit(pow, 2, 5).result(), list(pool.map(str, range(3))))
"""

# Programs whose main task waits, but not in vain: a descriptor, a timer, a signal or an OS thread may wake the loop.
WAKEABLE = {
    'descriptor': """
    async with await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0):
        await asyncio.Event().wait()
""",
    'timer': """
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(60, stop.set)
    await stop.wait()
""",
    'signal': """
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
""",
    'thread': """
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    await asyncio.Event().wait()
""",
}

JOBS = """
from functools import partial

class Price:
    def load(self, number):
        if number == 2:
            raise KeyError("Hush8472")

    def __call__(self):
        time.sleep(60)

async def ask():
    await asyncio.get_running_loop().run_in_executor(None, Price())

async def main():
    give_up()
    await asyncio.gather(*(asyncio.to_thread(partial(Price().load, n)) for n in (1, 2)), return_exceptions=True)
    await asyncio.gather(ask(), asyncio.to_thread(time.sleep, 60))

asyncio.run(main())
"""

# Programs with trio: two that hang, and one that does its work.
TRIO_FAULTS = {
    'deadlock': ("""
async def move(first, second):
    async with first:
        await trio.sleep(0.01)
        async with second:
            pass

async def main():
    give_up()
    a, b = trio.Lock(), trio.Lock()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(move, a, b)
        nursery.start_soon(move, b, a)
""", r'deadlock: task \d+ "move" holds lock \d+ "Lock" and waits for lock \d+ "Lock"', 'fault.py:10 in move'),
    'hang': ("""
async def query():
    await trio.sleep(0.5)

async def fetch(ready):
    await ready.wait()

async def main():
    give_up()
    for _ in range(12):
        with trio.move_on_after(0.01):
            await query()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fetch, trio.Event())
""", r'hang: task \d+ "main" is pending: nothing tried to resolve condition \d+ "Event"', 'fault.py:11 in fetch'),
}

TRIO_HEALTHY = """
import trio

async def feed(channel):
    async with channel:
        for i in range(3):
            await channel.send(i)

async def fail():
    raise KeyError(1)

async def use(lock, event, n):
    async with lock:
        await trio.sleep(0.001)
    if n == 3:
        event.set()
    await event.wait()

async def main():
    send, receive = trio.open_memory_channel(1)
    lock, event = trio.Lock(), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed, send)
        for n in range(4):
            nursery.start_soon(use, lock, event, n)
        async for item in receive:
            print(item)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            nursery.start_soon(trio.sleep, 60)
            await trio.sleep(60)
    except Exception as error:
        print("caught", type(error).__name__)
    print(await trio.to_thread.run_sync(lambda: 7))

trio.run(main)
"""

SAME = """
import asyncio, contextvars, sys
variable = contextvars.ContextVar("variable", default=0)

async def numbers(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i

async def work(lock, queue, n):
    variable.set(n)
    async with lock:
        async for i in numbers(3):
            await queue.put((n, i, variable.get()))
    if n == 2:
        raise ValueError(n)
    return n

async def main():
    asyncio.get_running_loop().slow_callback_duration = 60
    lock, queue = asyncio.Lock(), asyncio.Queue()
    print(await asyncio.gather(*(work(lock, queue, n) for n in range(4)), return_exceptions=True))
    while not queue.empty():
        print(queue.get_nowait())
    for limit in (0.01, None):
        try:
            print(await asyncio.wait_for(asyncio.sleep(0.05, "done"), limit))
        except asyncio.TimeoutError:
            print("timeout", variable.get())
    task = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)
    task.cancel("enough")
    try:
        await task
    except asyncio.CancelledError as error:
        print("cancelled", error.args)
    print(await asyncio.to_thread(lambda: 7), vars(lock), repr(lock).split()[-1], len(asyncio.all_tasks()))
    work(lock, queue, 1)
    sys.exit(3)

asyncio.run(main())
"""

FORK = """
import asyncio, os

async def child():
    await asyncio.sleep(0.01)

async def main():
    process = os.fork()
    await child()
    if process:
        os.waitpid(process, 0)

asyncio.run(main())
"""


def write(folder, text):
    path = os.path.join(folder, 'fault.py')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


def explain(weft, trace):
    run = subprocess.run([weft, 'explain', trace.path], capture_output=True, text=True, timeout=PATIENCE, check=False)
    return run.stdout


def fault(weft, folder, name, start='asyncio.run(main())\n'):
    program, title, *places = FAULTS[name] if name in FAULTS else THREAD_FAULTS[name]
    write(folder, HEAD + program + start if name in FAULTS else THREADS_HEAD + program + 'main()\n')
    trace = Recording(weft, os.path.join(folder, name), [need(PYTHON), 'fault.py'], cwd=folder).trace('python3')
    text = explain(weft, trace)
    first = text.split('\n\n')[0]
    if not re.match(title, text):
        fail(f'the first finding is not {title}: {first}')
    for place in places:
        if place not in first:
            fail(f'the first finding does not name {place}: {first}')
    for at, _, files in os.walk(trace.path):
        for file in files:
            with open(os.path.join(at, file), 'rb') as data:
                if b'Hush8472' in data.read():
                    fail(f'{file} has a value of the program')
    return trace


def threads(weft, folder):
    """A thread whose error no code catches fails, and programs whose threads do their work have no finding."""
    text = explain(weft, fault(weft, folder, 'worker'))
    if not re.search(r'^failure: thread \d+ "clerk" failed, and no code read the error: ValueError', text, re.M):
        fail(f'the thread that failed is not reported: {text}')
    path = write(folder, THREADS_HEAD + HEALTHY_THREADS + 'main()\n')
    plain = subprocess.run([need(PYTHON), path], env=ENV, capture_output=True, timeout=PATIENCE, check=False)
    names = set()
    for i in range(5):
        recording = Recording(weft, os.path.join(folder, f'healthy{i}'), [PYTHON, path])
        names.update(p['labels'][0][1] for p in recording.trace('python3').promises('thread') if p['labels'])
        expect((recording.status, recording.out), (0, plain.stdout), 'the program')
        text = explain(weft, recording.trace('python3'))
        if re.search(r'^(hang|deadlock|failure|underway|crash)\b', text, re.M):
            fail(f'a program without a fault has a finding: {text}')
    unnamed = [name for name in names if not re.fullmatch(r'main|Thread-\d+ \((work|get)\)|ThreadPoolExecutor-0_\d', name)]
    if unnamed or len(names) < 6:
        fail(f'not all threads have their names of Python: {names}')


def wakeable(weft, folder):
    """A loop that something can wake does not hang."""
    for name, body in WAKEABLE.items():
        write(folder, f'{HEAD}\nasync def main():\n    give_up(){body}\nasyncio.run(main())\n')
        trace = Recording(weft, os.path.join(folder, name), [need(PYTHON), 'fault.py'], cwd=folder).trace('python3')
        text = explain(weft, trace)
        if 'hang' in text or 'alive: ' not in text:
            fail(f'a loop with a {name} is reported: {text}')


def uvloop(weft, folder):
    """The loop of libuv is below the one of Python, and findings are those of asyncio's own loop."""
    if subprocess.run([need(PYTHON), '-c', 'import uvloop'], stderr=subprocess.DEVNULL, check=False).returncode:
        print('SKIPPED: Python has no uvloop')
        sys.exit(77)
    for name in ('deadlock', 'blocking', 'collected', 'forgotten', 'unasked'):
        trace = fault(weft, folder, name, 'import uvloop\nuvloop.install()\nasyncio.run(main())\n')
        if name == 'deadlock':
            waits = subprocess.run([weft, 'waits', trace.path], capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
            expect(re.findall(r'^(.*)─ loop \d+ "(\w+)"', waits, re.M), [('└', 'Loop'), ('   └', 'uv_run')], 'the loops')
    write(folder, f'{HEAD}\nimport uvloop\nasync def main():\n    give_up()\n    await asyncio.Event().wait()\nuvloop.install()\nasyncio.run(main())\n')
    text = explain(weft, Recording(weft, os.path.join(folder, 'alive'), [PYTHON, 'fault.py'], cwd=folder).trace('python3'))
    if not re.match(r'alive: loop \d+ "Loop" has not returned: task \d+ "main" keeps it running', text) or '"uv_run"' in text:
        fail(f'the loop of Python is not the finding: {text}')


def jobs(weft, folder):
    """A job of a pool has its function's name, and what awaits it leads to it."""
    write(folder, HEAD + JOBS)
    trace = Recording(weft, os.path.join(folder, 't'), [need(PYTHON), 'fault.py'], cwd=folder).trace('python3')
    dump = subprocess.run([weft, 'dump', trace.path], capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
    ended = re.findall(r'promise \d+ work .*? (resolved|failed "\w+") .*"Price.load"', dump)
    expect(sorted(ended), ['failed "KeyError"', 'resolved'], 'the ends of the jobs')
    waits = subprocess.run([weft, 'waits', trace.path], capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
    for chain in (r'wait \d+ "await"  at fault.py:18 in ask .*\n.*─ work \d+ "Price"  at fault.py:18 in ask',
                  r'wait \d+ "to_thread" .*\n.*─ work \d+ "sleep"'):
        if not re.search(chain, waits):
            fail(f'the tree lacks {chain}: {waits}')


LEVELS = """
def clerk(lock):
    with lock:
        pass

async def main():
    lock = threading.Lock()
    lock.acquire()
    thread = threading.Thread(target=clerk, args=(lock,))
    thread.start()
    await asyncio.sleep(0.05)
    lock.release()
    thread.join()

asyncio.run(main())
"""


def levels(weft, folder):
    """--python=tasks records tasks but no line of a thread without a loop, and --python=off records no task."""
    write(folder, HEAD + LEVELS)
    found = []
    for level in ('all', 'tasks', 'off'):
        recording = Recording(weft, os.path.join(folder, level), [need(PYTHON), 'fault.py'], cwd=folder, record=[f'--python={level}'])
        expect(recording.status, 0, 'the status')
        trace = recording.trace('python3')
        dump = subprocess.run([weft, 'events', trace.path], capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
        found.append((bool(trace.promises('task')), 'fault.py:8 in clerk' in dump, 'thread  at fault.py:15 in main' in dump))
    expect(found, [(True, True, True), (True, False, True), (False, False, False)], 'tasks, and lines of the thread and of its start')
    wrong = subprocess.run([weft, 'record', '--python=some', '-o', os.path.join(folder, 'u'), '--', 'true'], capture_output=True, text=True, timeout=PATIENCE, check=False)
    expect((wrong.returncode, wrong.stderr), (2, 'weft record: unknown value: --python=some; use all, tasks or off\n'), 'an unknown value')


def trio(weft, folder):
    """A deadlock and a hang of trio have the names and lines of tasks and locks, and a program that does its work prints the same."""
    if subprocess.run([need(PYTHON), '-c', 'import trio'], stderr=subprocess.DEVNULL, check=False).returncode:
        print('SKIPPED: Python has no trio')
        sys.exit(77)
    for name, (program, title, place) in TRIO_FAULTS.items():
        write(folder, (HEAD.replace('1.5', '0.5') if name == 'deadlock' else HEAD) + 'import trio' + program + 'trio.run(main)\n')
        text = explain(weft, Recording(weft, os.path.join(folder, name), [PYTHON, 'fault.py'], cwd=folder).trace('python3'))
        if not re.match(title, text) or place not in text.split('\n\n')[0]:
            fail(f'the first finding is not {title} with {place}: {text}')
    if not re.search(r'^retries: 12 of 12 promises "sleep \* ms" ended by their timeout: no answer came in time \(fault.py:8 in query\)', text, re.M):
        fail(f'scopes that end by their time are not reported: {text}')
    path = write(folder, TRIO_HEALTHY)
    plain = subprocess.run([PYTHON, path], env=ENV, capture_output=True, timeout=PATIENCE, check=False)
    recording = Recording(weft, os.path.join(folder, 'healthy'), [PYTHON, path])
    expect((recording.status, recording.out), (0, plain.stdout), 'the program')
    text = explain(weft, recording.trace('python3'))
    if re.search(r'^(hang|deadlock|failure|underway|unreturned)\b', text, re.M):
        fail(f'a program without a fault has a finding: {text}')


def same(weft, folder):
    """A program prints the same with and without a recording, in each mode of Python."""
    path = write(folder, SAME)
    for i, options in enumerate(([], ['-I'], ['-S', '-E'], ['-X', 'dev'])):
        command = [need(PYTHON), *options, path]
        plain = subprocess.run(command, env=ENV, capture_output=True, timeout=PATIENCE, check=False)
        recording = Recording(weft, os.path.join(folder, f't{i}'), command)
        errors = b''.join(line for line in recording.err.splitlines(keepends=True) if not line.startswith(b'weft'))
        expect((recording.status, recording.out, errors), (plain.returncode, plain.stdout, plain.stderr), f'the program with {options}')
        if not recording.trace('python3').promises('task'):
            fail(f'no task is recorded with {options}')
    empty = Recording(weft, os.path.join(folder, 'empty'), [PYTHON, '-c', 'print(1)'])
    expect((empty.out, empty.traces()), (b'1\n', []), 'a program without asyncio')


def fork(weft, folder):
    """Parent and child have a trace each, with the task that both go on with."""
    recording = Recording(weft, os.path.join(folder, 't'), [need(PYTHON), write(folder, FORK)])
    expect(recording.status, 0, 'the status')
    for trace in recording.all():
        if not trace.promises('task', 'main'):
            fail(f'{trace.path} lacks the task')
    expect(len(recording.traces()), 2, 'traces')


def main():
    name, weft = sys.argv[1], os.path.abspath(sys.argv[2])
    if subprocess.run([need(PYTHON), '-c', 'import sys; sys.exit(sys.version_info < (3, 11))'], check=False).returncode:
        print('SKIPPED: Python is older than 3.11')
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        if name in FAULTS or name in THREAD_FAULTS:
            fault(weft, folder, name)
        else:
            {'threads': threads, 'wakeable': wakeable, 'jobs': jobs, 'levels': levels, 'trio': trio, 'uvloop': uvloop, 'same': same, 'fork': fork}[name](weft, folder)


main()
