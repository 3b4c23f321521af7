#!/usr/bin/env python3
"""save_test.py WEFT GENERATE PROGRAM: a copy of a trace, also of one that is being recorded, has the same events as the trace.

PROGRAM N records about N events in three OS threads.  SPDX-License-Identifier: ISC"""
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

# The library path of meson would give a recorded shell the library of a sanitizer build.
os.environ.pop('LD_LIBRARY_PATH', None)

weft, generate, program = map(os.path.abspath, sys.argv[1:])


def run(*command, stdin=None, status=0):
    got = subprocess.run(command, input=stdin, capture_output=True, check=False)
    if got.returncode != status:
        sys.exit(f'{command}: status {got.returncode}\n{got.stderr.decode(errors="replace")[:2000]}')
    return got.stdout if status == 0 else got.stderr.decode()


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f'{what}: {str(got)[:500]} is not {str(wanted)[:500]}')


def count_of(events):
    """Returns the number of events except `round` events, whose number depends on the load of the machine."""
    return sum(b'round' not in line for line in events.splitlines())


def only_trace_in(directory):
    """Returns the path of the only trace in a directory of weft record."""
    name, = os.listdir(directory)
    return os.path.join(directory, name)


def contents(directory):
    out = {}
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), 'rb') as file:
            out[name] = file.read()
    return out


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    for form in ('native', 'mirage'):
        run(generate, 'random', '--events=20k', '--format=' + form, '-o', form)
        events = run(weft, 'events', '--json', form)
        run(weft, 'save', form, '-w', form + '.copy')
        expect(form, run(weft, 'events', '--json', form + '.copy'), events)
        expect('who may read the copy', oct(os.stat(form + '.copy').st_mode & 0o077), '0o0')
        piped = run(weft, 'save', form, '--write=-')
        expect(form + ' through a pipe', run(weft, 'events', '--json', '-', stdin=piped), events)
        expect(form + ' through two', run(weft, 'save', '-', '-w', '-', stdin=piped), piped)
        expect('a second time', run(weft, 'save', form, '-w', form + '.copy', status=0 if form == 'mirage' else 2),
               b'' if form == 'mirage' else 'weft: native.copy: already exists\n')
    expect('a file stays as it is', open('mirage.copy', 'rb').read(), open('mirage', 'rb').read())
    with open('archive.tar', 'wb') as file:
        file.write(run(weft, 'save', 'native', '-w', '-'))
    os.mkdir('unpacked')
    run('tar', 'xf', 'archive.tar', '-C', 'unpacked')
    expect('tar reads it', contents('unpacked'), contents('native.copy'))
    expect('nowhere', run(weft, 'save', 'none', '-w', 'x', status=2), 'weft: none: No such file or directory\n')
    expect('no OUT', run(weft, 'save', 'native', status=2), 'weft save: no output; use -w OUT\n')
    expect('no folder', run(weft, 'save', 'native', '-w', 'none/x', status=2), 'weft: none/x: No such file or directory\n')

    # weft record exits with the status of the command, adds nothing to its output, and makes a trace for each process.
    told = run(weft, 'record', '-o', 'by-command', '--mode=grow', '--', program, '60000')
    expect('what record prints', told, b'')
    expect('all is there', count_of(run(weft, 'events', only_trace_in('by-command'))), 60000)
    expect('exists', run(weft, 'record', '-o', 'by-command', '--', program, '60', status=2),
           'weft record: already exists: by-command; use --overwrite to replace it\n')
    script = ['sh', '-c', f'cd /; {program} 600; exit 7']
    told = run(weft, 'record', '--overwrite', '-o', 'by-command', '--', *script, status=7)
    trace = only_trace_in('by-command')
    span, told = re.match(f'weft: {trace}: ([0-9.]+ [mu]?s), ((?s:.*))', told).groups()
    # On a busy machine, the trace may have up to 9 more events.
    expect('another place', re.sub('^60[0-9] ', '600 ', told), f'600 events of 4 OS threads, 0 lost\nweft: show it: weft {trace}\n')
    told = run(weft, 'record', '--', 'sh', '-c', 'kill -9 $$', status=137)
    expect('nothing', told.startswith('weft: sh recorded nothing: '), True)
    expect('no file of nothing', os.path.exists('sh.weft'), False)
    run(weft, 'record', 'sh', '-c', 'exit 3', status=3)
    expect('none', run(weft, 'record', '--', './none', status=127), 'weft: ./none: No such file or directory\n')
    expect('no size', run(weft, 'record', '--size=4x', '--', 'true', status=2), 'weft record: not a size: --size=4x; use a number of bytes, optionally with K, M or G\n')

    # weft save makes a CTF directory, which other tools can read, from a file of adjacent packets, such as an image of a buffer.
    subprocess.run([program, '60000'], env={**os.environ, 'WEFT_TRACE': 'recorded'}, check=True)
    events = run(weft, 'events', '--json', 'recorded')
    with open('image', 'wb') as image:
        for name, data in sorted(contents('recorded').items()):
            if name != 'metadata':
                image.write(data)
    run(weft, 'save', 'image', '-w', 'image.copy')
    expect('an image', len(run(weft, 'events', '--json', 'image.copy').splitlines()), len(events.splitlines()))
    if shutil.which('babeltrace2'):
        theirs = subprocess.run(['babeltrace2', 'image.copy'], capture_output=True, text=True, check=True)
        expect('babeltrace2 complains', theirs.stderr, '')

    # weft finds the packets at any place in a memory image; a page contains only the packets, not the rest of the image.
    with open('image', 'rb') as image, open('memory', 'wb') as memory:
        memory.write(b'\xc1\x1f' * 5000 + image.read() + b'\xfc\xc1' * 5000)
    expect('a memory', count_of(run(weft, 'events', '--json', 'memory')), 60000)
    run(weft, 'save', 'memory', '-w', 'memory.copy')
    expect('of a memory', run(weft, 'events', '--json', 'memory.copy'), run(weft, 'events', '--json', 'memory'))
    run(weft, 'html', 'memory', '-o', 'memory.page')
    with gzip.open('memory.page/trace-1.gz') as packed:
        expect('in a page', run(weft, 'events', '--json', '-', stdin=packed.read()), run(weft, 'events', '--json', 'memory'))
    expect('a process and a trace', run(weft, 'save', 'memory', '--pid=1', '-w', 'x', status=2),
           'weft save: --pid and a trace cannot be combined\n')
    expect('no number', run(weft, 'save', '--pid=x', '-w', 'x', status=2), 'weft: not a process id: x; use a number\n')
    expect('no UUID', run(weft, 'save', 'memory', '--ring=x', '-w', 'x', status=2),
           'weft: not the UUID of a ring buffer: x; weft info lists them\n')
    expect('another UUID', run(weft, 'save', 'memory', '--ring=0000-1', '-w', 'x', status=2),
           'weft: memory: the image contains no ring buffer with that UUID\n')

    # Each copy of a wrapping ring is complete, and does not change after it was made.
    recorder = subprocess.Popen([program, '4000000000'], env={**os.environ, 'WEFT_TRACE': 'live,size=128k,packets=16'})
    try:
        while not os.path.exists('live/stream-3-15'):
            if recorder.poll() is not None:
                sys.exit('the program ended')
            time.sleep(0.01)
        copies = []
        for i in range(10):
            run(weft, 'save', 'live', '-w', f'live.{i}')
            copies.append(run(weft, 'events', '--json', f'live.{i}'))
        for i, events in enumerate(copies):
            # The ring has 16 packets of some 600 events each.  The recorder may overwrite many packets while a slow copy is made, but a copy needs 300 events.
            if len(events.splitlines()) < 300 or (i and events == copies[i - 1]):
                sys.exit(f'copy {i} has {len(events.splitlines())} events, or those of the one before')
            expect('a copy changes', run(weft, 'events', '--json', f'live.{i}'), events)
            told = subprocess.run([weft, 'events', f'live.{i}'], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
            expect('a copy is damaged', told.stderr, '')
    finally:
        recorder.kill()
        recorder.wait()
    print(f'{len(copies)} copies of a trace that was being written: {sum(len(c.splitlines()) for c in copies)} events, none torn')
