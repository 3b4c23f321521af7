#!/usr/bin/env python3
"""hostile_test.py WEFT-COUNTED LOOK-COUNTED [SHAPE...]: how work and memory grow with traces made to be hard to read.

Every verb, and what a person does with a viewer, reads each shape (shapes.py) at several sizes.  The programs count their steps and their
memory (count.c), so that the answer is the same on any machine, however busy.  The work may grow by n log n, the memory by 200 bytes for
each byte of the trace, the output by 200 bytes too, beyond what it is for a tiny trace.  Two tables are printed: for each shape the worst of
the verbs, for each verb the worst of the shapes.

WEFT_HOSTILE=10M reads traces from 10 kB to 10 MB, instead of 10 kB to 400 kB; WEFT_HOSTILE_ROWS=FILE writes a row for each shape and verb, and
with WEFT_HOSTILE_GO_ON=1 shapes that the file has, and that were fine, are not read again;
WEFT_HOSTILE_KEEP=DIRECTORY keeps the traces; WEFT_HOSTILE_VERBS=info,events runs some of the verbs.  tools/hostile does all of it.

SPDX-License-Identifier: ISC"""

import concurrent.futures
import math
import os
import shutil
import subprocess
import sys
import tempfile

import ocaml_shapes  # noqa: F401  adds its own
import shapes

WEFT, LOOK = (os.path.abspath(path) for path in sys.argv[1:3])
WANTED = sys.argv[3:]
SIZES = [10_000, 100_000, 1_000_000, 10_000_000] if os.environ.get('WEFT_HOSTILE') == '10M' else [10_000, 100_000, 400_000]

STEPS_A_BYTE = 60       # times the logarithm of the size: limit for every verb
MEMORY_A_BYTE = 200
OUTPUT_A_BYTE = 200
GROWTH = 1.35           # largest growth from one size to ten times as much that counts as n log n: n * n makes 8
LEAST_STEPS = 3_000_000  # below that growth is meaningless: constant parts dominate
CONSTANT = 0.75         # a cost of the smallest trace that is certainly constant: pictures of larger traces may contain less
FIXED_STEPS = 30_000_000   # allowance for small traces: pictures, and the budget for long texts: 4 MB of non-ASCII characters
FIXED_STEPS_OF_A_VIEWER = 100_000_000  # 50 frames
FIXED_MEMORY = 1_000_000
FIXED_MEMORY_OF_PICTURES = 4_200_000
LEAST_BYTES = 50_000    # bytes of a trace: below that constant parts dominate, budgets for long texts are not reached, and growth is meaningless
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
    'top': ['top', '--once', 'TRACE'],
    'a viewer': None,
}
VERBS = {verb: words for verb, words in VERBS.items() if verb in os.environ.get('WEFT_HOSTILE_VERBS', verb).split(',')}


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
    """The result of a verb on a trace."""

    def __init__(self, steps, memory, output, status, stderr):
        self.steps, self.memory, self.output, self.status, self.stderr = steps, memory, output, status, stderr


def run(verb, trace, limit=1 << 62):
    """Returns the cost of a verb on a trace; a limit of steps ends the verb."""
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


def n_log_n(begin, end):
    """Returns the growth from one size to another."""
    return end * math.log2(end) - begin * math.log2(begin)


class Row:
    """A verb and a shape, at all sizes."""

    def __init__(self, shape, verb):
        self.shape, self.verb = shape, verb
        self.steps = []  # by size: a byte and binary logarithm of the size
        self.growth, self.memory, self.output, self.faults = 0, 0, 0, []
        self.first = self.before = None  # sizes, and steps: those that are constant by the smallest trace; those beyond it of the last one

    def add(self, real, cost, tiny):
        """Adds the cost at one more size, above that of a tiny trace."""
        steps, at = cost.steps - tiny.steps, f'{self.shape}, {real} bytes, {self.verb}: '
        allowed = allowed_steps(self.verb, real)
        memory, output = cost.memory - tiny.memory, cost.output - tiny.output
        self.steps.append(steps / real / math.log2(real))
        if real > LEAST_BYTES:
            self.memory, self.output = max(self.memory, memory / real), max(self.output, output / real)
        if cost.status not in (0, 1, 99) and (self.verb, cost.status) != ('path', 2):  # 99: too many steps; path: there may be no promise 1
            self.faults.append(f'{at}exit status {cost.status}: {cost.stderr[-300:]}')
        if steps > allowed:
            self.faults.append(f'{at}{steps / 1e6:.0f} M steps, {allowed / 1e6:.0f} M are allowed')
        fixed = FIXED_MEMORY_OF_PICTURES if self.verb.startswith('render') or not VERBS[self.verb] else FIXED_MEMORY
        if memory - fixed > MEMORY_A_BYTE * real:
            self.faults.append(f'{at}{(memory - fixed) / real:.0f} bytes of memory for each of the trace')
        if output - FIXED_OUTPUT > OUTPUT_A_BYTE * real:
            self.faults.append(f'{at}{(output - FIXED_OUTPUT) / real:.0f} bytes of output for each of the trace')
        self.first = self.first or (real, CONSTANT * cost.steps)
        work = cost.steps - self.first[1]
        if self.before and self.before[0] > LEAST_BYTES and work > LEAST_STEPS:
            old_real, old_work = self.before
            growth = work / max(old_work, LEAST_STEPS / 10) / (n_log_n(self.first[0], real) / n_log_n(self.first[0], old_real))
            self.growth = max(self.growth, growth)
            if growth > GROWTH:
                self.faults.append(f'{at}from {old_real} bytes on the work grows from {old_work / 1e6:.1f} to {work / 1e6:.1f} M steps, '
                                   f'{growth:.1f} times as much as n log n')
        self.before = (real, work)

    def line(self):
        return (f'{self.shape:<36}{self.verb:<18}' + ''.join(f'{steps:>10.2f}' for steps in self.steps) +
                f'{self.growth:>10.2f}{self.memory:>10.1f}{self.output:>10.1f}   {"FAULT" if self.faults else "ok"}' +
                ''.join('\n    ' + fault.replace('\n', ' ') for fault in self.faults))


def rows_of(path):
    """Returns the rows of each shape in that file, if all of them are fine."""
    found = {}
    with open(path, encoding='utf-8') as file:
        for line in file.read().splitlines()[1:]:
            if line.endswith('ok'):
                row = Row(line[:36].strip(), line[36:54].strip())
                *row.steps, row.growth, row.memory, row.output = map(float, line[54:].split()[:-1])
                found.setdefault(row.shape, []).append(row)
    return {shape: rows for shape, rows in found.items() if len(rows) == len(VERBS)}


def allowed_steps(verb, real):
    return STEPS_A_BYTE * real * math.log2(real) + (FIXED_STEPS if VERBS[verb] else FIXED_STEPS_OF_A_VIEWER)


def check(name, function, tiny, folder):
    """The rows of a shape."""
    rows = {verb: Row(name, verb) for verb in VERBS}
    for size in SIZES:
        trace = write(folder, f'{name}-{size}', function(size))
        real = size_of(trace)
        for verb, row in rows.items():
            row.add(real, run(verb, trace, int(20 * allowed_steps(verb, real) + tiny[verb].steps)), tiny[verb])
        if not os.environ.get('WEFT_HOSTILE_KEEP'):
            shutil.rmtree(trace) if os.path.isdir(trace) else os.unlink(trace)
    return list(rows.values())


MEASURES = {'steps a byte and log2': lambda row: max(row.steps[1:]), 'growth by n log n': lambda row: row.growth,
            'memory a byte': lambda row: row.memory, 'output a byte': lambda row: row.output}


def worst(rows, name):
    """Returns one line with the worst value of each measure, and the name of its row."""
    line = ''
    for measure in MEASURES.values():
        row = max(rows, key=measure)
        line += f'{measure(row):>9.2f}  {name(row):<35.35}' if name(row) == row.shape else f'{measure(row):>9.2f}  {name(row):<17}'
    return line.rstrip()


def main():
    folder = os.environ.get('WEFT_HOSTILE_KEEP') or tempfile.mkdtemp(prefix='weft-hostile-')
    os.makedirs(folder, exist_ok=True)
    wanted = {name: function for name, function in shapes.SHAPES.items() if not WANTED or any(word in name for word in WANTED)}
    try:
        small = write(folder, 'tiny', shapes.plain(500))
        tiny = {verb: run(verb, small) for verb in VERBS}
        for verb, cost in tiny.items():
            assert cost.status in (0, 1), f'{verb}: {cost.stderr}'
        print(f'{"shape, up to " + str(SIZES[-1]) + " bytes":<36}' + ''.join(f'{measure:<28}' for measure in MEASURES), flush=True)
        place = os.environ.get('WEFT_HOSTILE_ROWS', os.devnull)
        known = rows_of(place) if os.environ.get('WEFT_HOSTILE_GO_ON') and os.path.exists(place) else {}
        rows = []
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool, open(place, 'w', encoding='utf-8') as table:
            print(f'{"shape":<36}{"verb":<18}' + ''.join(f'{size:>10}' for size in SIZES) + f'{"growth":>10}{"memory":>10}{"output":>10}   verdict',
                  file=table)
            for shape in known:
                print(*(row.line() for row in known[shape]), sep='\n', file=table, flush=True)
            new = {name: function for name, function in wanted.items() if name not in known}
            rows += [row for name in wanted for row in known.get(name, [])]
            for got in pool.map(lambda pair: check(*pair, tiny, folder), new.items()):
                print(f'{got[0].shape:<36}' + worst(got, lambda row: row.verb), flush=True)
                print(*(row.line() for row in got), sep='\n', file=table, flush=True)
                rows += got
    finally:
        if not os.environ.get('WEFT_HOSTILE_KEEP'):
            shutil.rmtree(folder)
    print(f'\n{"verb":<18}' + ''.join(f'{measure:<46}' for measure in MEASURES))
    for verb in VERBS:
        print(f'{verb:<18}' + worst([row for row in rows if row.verb == verb], lambda row: row.shape))
    faults = [fault for row in rows for fault in row.faults]
    print(f'\n{len(wanted)} shapes, {len(VERBS)} verbs, {len(SIZES)} sizes: {len(faults)} faults', *faults, sep='\n')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
