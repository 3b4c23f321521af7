#!/usr/bin/env python3
"""hostile_test.py WEFT-COUNTED LOOK-COUNTED [SHAPE...]: how work and memory grow with traces made to be hard to read.

Every verb, and what a person does with a viewer, reads each shape (shapes.py) at several sizes.  The programs count their steps and their
memory (count.c), so that the answer is the same on any machine, however busy.  The work may grow by n log n, the memory by 200 bytes for
each byte of the trace, the output by 200 bytes too, beyond what it is for a tiny trace.  A table is printed: the worst of the verbs for
each shape.

WEFT_HOSTILE=10M reads up to 10 MB instead of 256 kB; WEFT_HOSTILE_KEEP=DIRECTORY keeps the traces.

SPDX-License-Identifier: ISC"""

import concurrent.futures
import math
import os
import shutil
import subprocess
import sys
import tempfile

import shapes

WEFT, LOOK = (os.path.abspath(path) for path in sys.argv[1:3])
WANTED = sys.argv[3:]
SIZES = [10_000, 100_000, 1_000_000, 10_000_000] if os.environ.get('WEFT_HOSTILE') == '10M' else [32_000, 256_000]

STEPS_A_BYTE = 60       # times the logarithm of the size: what no verb may need more than
MEMORY_A_BYTE = 200
OUTPUT_A_BYTE = 200
GROWTH = 1.35           # how much more than n log n from one size to the next is still taken for n log n
LEAST_STEPS = 3_000_000  # below that growth says nothing: constant parts are most of it
FIXED_STEPS = 30_000_000   # what small traces may need too: pictures, and the budget for long texts: 4 MB of characters that are no ASCII
FIXED_STEPS_OF_A_VIEWER = 100_000_000  # 50 frames
FIXED_MEMORY = 1_000_000
FIXED_OUTPUT = 5_000_000   # the budget for long texts

VERBS = {
    'info': ['info', 'TRACE'],
    'events': ['events', 'TRACE'],
    'events --json': ['events', '--json', 'TRACE'],
    'dump': ['dump', 'TRACE'],
    'dump --json': ['dump', '--json', 'TRACE'],
    'stats': ['stats', 'TRACE'],
    'explain': ['explain', 'TRACE'],
    'waits': ['waits', 'TRACE'],
    'path': ['path', '--promise=1', 'TRACE'],
    'diff': ['diff', 'TRACE', 'TRACE'],
    'check': ['check', 'TRACE', 'stall<10ms', 'pending=0'],
    'render': ['render', 'TRACE', '-o', 'OUT.png'],
    'render --find': ['render', 'TRACE', '--find=a', '-o', 'OUT.svg'],
    'render --explain': ['render', 'TRACE', '--explain', '-o', 'OUT.svg'],
    'html': ['html', 'TRACE', '-o', 'OUT.html'],
    'to mirage': ['convert', 'TRACE', '--to=mirage', '-o', 'OUT.mirage'],
    'to native': ['convert', 'TRACE', '--to=native', '-o', 'OUT.native'],
    'save': ['save', 'TRACE', '-w', 'OUT.saved'],
    'a viewer': None,
}


def size_of(path):
    if os.path.isdir(path):
        return sum(size_of(os.path.join(path, name)) for name in os.listdir(path))
    return os.path.getsize(path) if os.path.exists(path) else 0


def write(folder, name, trace):
    path = os.path.join(folder, name)
    if isinstance(trace, dict):
        os.mkdir(path)
        for file, content in trace.items():
            with open(os.path.join(path, file), 'wb') as out:
                out.write(content)
    else:
        with open(path, 'wb') as out:
            out.write(trace)
    return path


class Cost:
    def __init__(self, steps, memory, output, status, stderr):
        self.steps, self.memory, self.output, self.status, self.stderr = steps, memory, output, status, stderr


def run(verb, trace, limit=1 << 62):
    """What it costs to do something with a trace."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(trace)) as folder:
        out = os.path.join(folder, 'out')
        words = [LOOK, trace] if VERBS[verb] is None else [WEFT] + [
            trace if word == 'TRACE' else out + word[3:] if word.startswith('OUT') else word for word in VERBS[verb]]
        counts = os.path.join(folder, 'counts')
        with open(os.path.join(folder, 'stdout'), 'wb') as stdout:
            child = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, check=False,
                                   env={**os.environ, 'WEFT_COUNT': counts, 'WEFT_COUNT_STEPS': str(limit)})
        with open(counts, encoding='ascii') as file:
            steps, memory = map(int, file.read().split())
        os.unlink(counts)
        output = size_of(folder)
    return Cost(steps, memory, output, child.returncode, child.stderr.decode(errors='replace'))


def check(name, function, tiny, folder):
    """(line of the table, faults) of one shape."""
    faults = []
    worst = {'steps': (0, ''), 'growth': (0, ''), 'memory': (0, ''), 'output': (0, '')}
    before = {}

    def note(what, value, verb):
        if value > worst[what][0]:
            worst[what] = (value, verb)

    for size in SIZES:
        trace = write(folder, f'{name}-{size}', function(size))
        real = size_of(trace)
        for verb in VERBS:
            allowed = STEPS_A_BYTE * real * math.log2(real) + (FIXED_STEPS if VERBS[verb] else FIXED_STEPS_OF_A_VIEWER)
            cost = run(verb, trace, int(20 * allowed + tiny[verb].steps))
            if cost.status not in (0, 1, 99) and (verb, cost.status) != ('path', 2):  # 99: too many steps; path: there may be no promise 1
                faults.append(f'{name}, {real} bytes, {verb}: exit status {cost.status}: {cost.stderr[-300:]}')
            steps = cost.steps - tiny[verb].steps
            memory = (cost.memory - tiny[verb].memory - FIXED_MEMORY) / real
            output = (cost.output - tiny[verb].output - FIXED_OUTPUT) / real
            note('steps', steps / real / math.log2(real), verb)
            note('memory', (cost.memory - tiny[verb].memory) / real, verb)
            note('output', (cost.output - tiny[verb].output) / real, verb)
            if steps > allowed:
                faults.append(f'{name}, {real} bytes, {verb}: {steps / 1e6:.0f} M steps, {allowed / 1e6:.0f} M are allowed')
            if memory > MEMORY_A_BYTE:
                faults.append(f'{name}, {real} bytes, {verb}: {memory:.0f} bytes of memory for each of the trace')
            if output > OUTPUT_A_BYTE:
                faults.append(f'{name}, {real} bytes, {verb}: {output:.0f} bytes of output for each of the trace')
            if verb in before and steps > LEAST_STEPS:
                old_real, old_steps = before[verb]
                fair = real / old_real * math.log2(real) / math.log2(old_real)
                growth = steps / max(old_steps, LEAST_STEPS / 10) / fair
                note('growth', growth, verb)
                if growth > GROWTH:
                    faults.append(f'{name}, {verb}: from {old_real} to {real} bytes the work grows from {old_steps / 1e6:.1f} to '
                                  f'{steps / 1e6:.1f} M steps, {growth:.1f} times as much as n log n')
            before[verb] = (real, steps)
        if not os.environ.get('WEFT_HOSTILE_KEEP'):
            shutil.rmtree(trace) if os.path.isdir(trace) else os.unlink(trace)
    line = f'{name:<36}' + ''.join(f'{worst[what][0]:>9.2f}  {worst[what][1]:<15}' for what in worst)
    return line.rstrip(), faults


def main():
    folder = os.environ.get('WEFT_HOSTILE_KEEP') or tempfile.mkdtemp(prefix='weft-hostile-')
    os.makedirs(folder, exist_ok=True)
    wanted = {name: function for name, function in shapes.SHAPES.items() if not WANTED or any(word in name for word in WANTED)}
    try:
        small = write(folder, 'tiny', shapes.plain(500))
        tiny = {verb: run(verb, small) for verb in VERBS}
        for verb, cost in tiny.items():
            assert cost.status in (0, 1), f'{verb}: {cost.stderr}'
        print(f'{"shape, up to " + str(SIZES[-1]) + " bytes":<36}{"steps a byte and log2":<26}{"growth by n log n":<26}'
              f'{"memory a byte":<26}{"output a byte":<26}', flush=True)
        faults = []
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for line, wrong in pool.map(lambda pair: check(*pair, tiny, folder), wanted.items()):
                print(line, flush=True)
                faults += wrong
    finally:
        if not os.environ.get('WEFT_HOSTILE_KEEP'):
            shutil.rmtree(folder)
    print(f'\n{len(wanted)} shapes, {len(VERBS)} verbs, {len(SIZES)} sizes: {len(faults)} faults', *faults, sep='\n')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
