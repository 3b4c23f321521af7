#!/usr/bin/env python3
"""full_disk_test.py PROGRAM WEFT: what happens on a disk of 1 MB.  PROGRAM N records about N events in three OS threads.

A trace that does not fit is one line on stderr at the start, and the program runs on; one that fits is never ended by what others
write; one that grows loses the rest, and says so.  Exit status 77 where no file system may be mounted.  SPDX-License-Identifier: ISC"""
import json
import os
import subprocess
import sys
import tempfile
import time

if os.environ.get('WEFT_TEST_UNSHARED') != '1':
    unshare = ['unshare', '--mount'] if os.getuid() == 0 else ['unshare', '--mount', '--user', '--map-root-user']
    with tempfile.TemporaryDirectory() as place:
        if subprocess.run([*unshare, 'mount', '-t', 'tmpfs', '-o', 'size=4k', 'weft', place], capture_output=True, check=False).returncode:
            print('skipped: no file system may be mounted here')
            sys.exit(77)
    sys.exit(subprocess.run([*unshare, sys.executable, *sys.argv], env={**os.environ, 'WEFT_TEST_UNSHARED': '1'}, check=False).returncode)

program, weft = map(os.path.abspath, sys.argv[1:])


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f'{what}: {got!r}, not {wanted!r}')


def record(options, events):
    return subprocess.run([program, str(events)], env={**os.environ, 'WEFT_TRACE': trace + options}, capture_output=True, text=True, check=False)


def info():
    told = subprocess.run([weft, 'info', '--json', trace], capture_output=True, text=True, check=False)
    expect('info', (told.returncode, '' if not told.returncode else told.stderr), (0, ''))
    return json.loads(told.stdout)


def fill_disk():
    with open(os.path.join(place, 'others'), 'wb', buffering=0) as others:
        try:
            while others.write(bytes(4096)):
                pass
        except OSError:
            pass


def start_over():
    for name in os.listdir(place):
        subprocess.run(['rm', '-rf', os.path.join(place, name)], check=True)


with tempfile.TemporaryDirectory() as place:
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'weft', place], check=True)
    trace = os.path.join(place, 'trace')
    try:
        for mode in ('', ',mode=grow,size=64M'):
            # Rings of three OS threads, for which the disk is too small.
            got = record(',size=2M' + mode, 1000)
            expect('a disk too small: status', got.returncode, 2)  # the program checks whether it records
            expect('a disk too small: lines', got.stderr.count('\n'), 1)
            if 'No space left' not in got.stderr or trace not in got.stderr:
                sys.exit(f'a disk too small: {got.stderr}')
            expect('what failed left nothing behind', os.listdir(place), [])

        # A ring that fits, on a disk that other programs fill during the recording.
        for fill in (False, True):
            start_over()
            watched = subprocess.Popen([program, '12000000'], env={**os.environ, 'WEFT_TRACE': trace + ',size=128k,packets=4'}, stderr=subprocess.PIPE, text=True)
            while watched.poll() is None and not os.path.exists(os.path.join(trace, 'stream-3-3')):
                time.sleep(0.001)
            if fill:
                fill_disk()
            expect('the program on a full disk', (watched.wait(120), watched.stderr.read()), (0, ''))
            got = info()
            if got['events'] < 1000:
                sys.exit(f'a ring on a full disk: {got["events"]} events')
        ring = got['events']

        # Each OS thread starts with a packet; a thread without a further packet wraps, and a thread without any packet loses its events.
        for size in '700k', '880k':
            start_over()
            expect(f'rings of {size}: status', record(f',size={size},packets=4', 60000).returncode, 0)
            got = info()
            more = got['events'] + got['lost'] - 60000  # on a loaded machine each OS thread records its CPU time every 10 ms
            expect(f'rings of {size}: events there and events lost', (got['events'] > 0, 0 <= more <= 60), (True, True))

        # The trace grows until the disk is full: the oldest events are in it, the rest is counted.
        start_over()
        expect('growing: status', record(',mode=grow,size=900k', 600000).returncode, 0)
        limited = info()
        start_over()
        os.mkdir(trace)
        expect('growing on: status', record(',mode=grow,size=512k', 600000).returncode, 0)
        for got in (limited, info()):
            lost = sum(stream['lost_full'] for stream in got['streams']) + got['lost_no_stream']
            if not lost or got['events'] + lost < 500000:
                sys.exit(f'growing: {got["events"]} events, {lost} lost')
        text = subprocess.run([weft, 'info', trace], capture_output=True, text=True, check=True).stdout
        if 'lost' not in text:
            sys.exit('info does not say that events are lost')

        # The disk has no space even for the message that a process leaves for weft record.
        start_over()
        fill_disk()
        said = subprocess.run([weft, 'record', '-o', trace, '--', program, '1000'], capture_output=True, text=True, check=False).stderr
        if 'no space for a trace' not in said or 'recorded nothing' in said:
            sys.exit(f'weft record on a full disk: {said}')
    finally:
        subprocess.run(['umount', place], check=True)
print(f'a full disk: one line at the start; a ring goes on ({ring} events at the end); {lost} events without room are counted')
