#!/usr/bin/env python3
"""sources_test.py WEFT GENERATE [TEST...]: traces from pipes, from files that are larger than any memory,
   and with control characters in names.

SPDX-License-Identifier: ISC"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading

WEFT, GENERATE = (os.path.abspath(path) for path in sys.argv[1:3])
WANTED = sys.argv[3:]
LINE = b'((time 1)(op(Switch 1)))\n'
FAILED = []


def run(*args, **more):
    return subprocess.run([WEFT, *args], capture_output=True, text=True, timeout=120, **more)


def expect(what, got, wanted):
    if got != wanted:
        FAILED.append(what)
        print(f'{what}: {got!r}, not {wanted!r}')


def expect_error(what, done, line):
    """Fails unless weft exited with status 2 and printed only one line with this text, on stderr."""
    expect(what, (done.returncode, done.stdout, done.stderr.count('\n')), (2, '', 1))
    if line not in done.stderr:
        expect(what, done.stderr, line)


def events(path):
    """Returns the rows `events` and `skipped` of weft info."""
    done = run('info', path)
    rows = dict(line.split(None, 1) for line in done.stdout.splitlines() if line and line[0] != ' ' and line != 'summary')
    return (rows.get('events'), rows.get('skipped')) if done.returncode == 0 else (done.returncode, done.stderr)


def native(name, count=1000):
    subprocess.run([GENERATE, 'short', f'--events={count}', '--format=native', '-o', name], check=True)
    return name


def fifo_without_a_writer_fails_at_once():
    os.mkfifo('fifo')
    for verb in ('info', 'explain', 'save'):
        more = ['-w', 'copy'] if verb == 'save' else []
        expect_error(f'{verb} of a FIFO', run(verb, 'fifo', *more), 'fifo: the FIFO has no writer')


def has_opened(process, path):
    """Returns whether a process has opened a file, or has ended."""
    if process.poll() is not None:
        return True
    folder = f'/proc/{process.pid}/fd'
    for name in os.listdir(folder):
        try:
            if os.path.samefile(os.path.join(folder, name), path):
                return True
        except OSError:
            pass  # the process has closed this file since then
    return False


def fifo_is_read_until_its_writer_ends():
    os.mkfifo('written')
    # This test keeps the FIFO open, so that it has a writer before its first byte.
    keeper = os.open('written', os.O_RDWR)
    reader = subprocess.Popen([WEFT, 'events', 'written'], stdout=subprocess.PIPE, text=True)
    for byte in (LINE[:5], LINE[5:], LINE):
        os.write(keeper, byte)
        threading.Event().wait(0.05)
    # Waits until weft has opened the FIFO: its content is lost when its last descriptor is closed.
    while not has_opened(reader, 'written'):
        threading.Event().wait(0.01)
    os.close(keeper)
    expect('events of a FIFO', len(reader.communicate(timeout=60)[0].splitlines()), 2)


def input_larger_than_the_limit_is_refused():
    for args, said in ((['--limit=1M'], 'the input is larger than the limit of 1 MB'), (['--limit', '3M'], 'the input is larger than the limit of 3 MB')):
        with subprocess.Popen(['yes', LINE.decode().strip()], stdout=subprocess.PIPE) as endless:
            expect_error('endless input', run('info', *args, '-', stdin=endless.stdout), f'standard input: {said}')
            endless.stdout.close()
            endless.wait()
    expect('less than the limit', run('info', '--limit=1K', '-', input=LINE.decode() * 20).returncode, 0)
    for wrong in ('x', '1X', '0', '99999999999999999999', '-1', '1KB'):
        expect_error(f'--limit={wrong}', run('info', f'--limit={wrong}', '-', stdin=subprocess.DEVNULL), 'not a size')


def control_characters_reach_no_terminal():
    """weft replaces direction marks, line ends, zero-width characters and tags, both in texts of a trace and in file names."""
    hidden = [*range(1, 0x20), *range(0x7f, 0xa0), 0x61c, 0x180e, 0x200b, 0x200e, 0x200f, *range(0x2028, 0x202f), *range(0x2060, 0x2070), 0xfeff,
              *range(0xfff9, 0xfffc), 0xe0001, 0xe0041]
    shown = 'a\u200db\u200c\u05d0\u20ac\U0001f600\u2027\u202f'
    text = ''.join(map(chr, hidden)) + shown
    with open('hidden', 'w', encoding='utf-8', newline='') as file:
        quoted = ''.join(f'\\{ord(c):03d}' if ord(c) < 0x20 or c in '"\\' else c for c in text)
        file.write(f'((time 1)(op(Creates -1 1)))\n((time 1)(op(Label 1 "{quoted}")))\n')
    for args in (['events'], ['events', '--json'], ['dump'], ['info'], ['explain']):
        said = run(*args, 'hidden')
        expect(f'{args} shows what is hidden', [c for c in said.stdout + said.stderr if ord(c) in hidden and c != '\n'], [])
    said = [json.loads(line) for line in run('events', '--json', 'hidden').stdout.splitlines()]
    expect('JSON has it whole', [e['text'] for e in said if 'text' in e], [text])
    expect('what can be seen stays', shown in run('events', 'hidden').stdout, True)
    expect('the name of a file', run('info', 'no\u202e\u2028\u200b\x1b[1m' + shown).stderr,
           f'weft: no????[1m{shown}: No such file or directory\n')


def files_with_a_total_size_of_2_to_the_64_are_refused():
    """Four files of 2^62 bytes and one with content: their sum wraps to a small number in 64 bits."""
    trace = native('wrap')
    for i in range(1, 5):
        shutil.copy(f'{trace}/stream-0-0', f'{trace}/stream-{i}-0')
        os.truncate(f'{trace}/stream-{i}-0', 1 << 62)
    for verb, *more in (['info'], ['explain'], ['save', '-w', 'copy'], ['html', '-o', 'page.html'], ['check', 'pending<1000']):
        expect_error(f'{verb} of 2^64 bytes', run(verb, trace, *more), f'{trace}: not enough memory for the files of the directory')


def sparse_trace_files_of_8_tb_are_read():
    """weft reads sparse files of 8 TB with a few pages of data."""
    size = 8 << 40
    whole = events(native('sparse'))
    with open('sparse/stream-0-0', 'rb') as file:
        packet = file.read()
    os.truncate('sparse/stream-0-0', size)
    expect('a directory with 8 TB', events('sparse')[0], whole[0])
    with open('sparse/definitions-0', 'rb') as file:
        definitions = file.read()
    with open('packets', 'wb') as file:
        file.write(definitions)
        file.seek(size // 2)
        file.write(packet)
    os.truncate('packets', size)
    expect('packets in 8 TB', events('packets')[0], whole[0])
    with open('noise', 'wb') as file:
        file.write(b'x' * 8192 + definitions)
        file.seek(size // 4)
        file.write(packet)
    os.truncate('noise', size)
    expect('an image of 8 TB', events('noise')[0], whole[0])
    subprocess.run([GENERATE, 'short', '--events=1000', '-o', 'one.ctf'], check=True)
    whole = events('one.ctf')
    os.truncate('one.ctf', size)
    expect('mirage in 8 TB', events('one.ctf')[0], whole[0])


def main():
    # The limit keeps a crash from writing a huge core dump.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    place = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix='weft-sources-', dir=place) as scratch:
        os.chdir(scratch)
        try:
            with open('large', 'wb') as file:
                file.truncate(1 << 62)
            os.unlink('large')
        except OSError:
            print('no file system for files of 2^62 bytes')
            sys.exit(77)
        for test in (fifo_without_a_writer_fails_at_once, fifo_is_read_until_its_writer_ends, input_larger_than_the_limit_is_refused,
                     control_characters_reach_no_terminal,
                     files_with_a_total_size_of_2_to_the_64_are_refused, sparse_trace_files_of_8_tb_are_read):
            if WANTED and test.__name__ not in WANTED:
                continue
            try:
                test()
            except subprocess.TimeoutExpired as late:
                FAILED.append(test.__name__)
                print(f'{test.__name__}: {late.cmd[1:]} did not come to an end')
        os.chdir('/')
    sys.exit(1 if FAILED else 0)


main()
