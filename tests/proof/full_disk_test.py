#!/usr/bin/env python3
"""full_disk_test.py PROGRAM WEFT: PROGRAM records on a disk of 1 MB.  PROGRAM N records about N events in three OS threads.

If a ring does not fit on the disk, the recorder prints one line at the start, and the program runs on.  A ring that fits is complete even if other programs
   fill the disk.  A growing trace counts the events that do not fit as lost.  Exits with status 77 if no file system can be mounted.  SPDX-License-Identifier: ISC"""
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
            # The disk is too small for the rings of three OS threads.
            got = record(',size=2M' + mode, 1000)
            expect('a disk too small: status', got.returncode, 2)  # the program exits with 2 if it does not record
            expect('a disk too small: lines', got.stderr.count('\n'), 1)
            if 'No space left' not in got.stderr or trace not in got.stderr:
                sys.exit(f'a disk too small: {got.stderr}')
            expect('what failed left nothing behind', os.listdir(place), [])

        # The ring fits on the disk, which another program fills during the recording.
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

        # If the disk has space for only one packet of an OS thread, the thread wraps in this packet; without any packet, its events are lost.
        for size in '700k', '880k':
            start_over()
            expect(f'rings of {size}: status', record(f',size={size},packets=4', 60000).returncode, 0)
            got = info()
            more = got['events'] + got['lost'] - 60000  # on a busy machine, each OS thread also records its CPU times every 10 ms
            expect(f'rings of {size}: events there and events lost', (got['events'] > 0, 0 <= more <= 60), (True, True))

        # A trace that grows until the disk is full has the oldest events, and the number of all others.
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
