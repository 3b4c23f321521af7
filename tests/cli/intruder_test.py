#!/usr/bin/env python3
"""intruder_test.py WEFT: the files of another user in root's session cannot make root's weft read, write or delete a file outside of it, or wait for ever.

The test needs root, which can become another user; otherwise, it prints a note and is skipped.

SPDX-License-Identifier: ISC"""
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from others import closed_to_others

PATIENCE = 120  # seconds after which a command counts as waiting for ever; long because of busy machines
INTRUDER = 65534
SKIPPED = 77

# With the library path of meson, a recorded shell would load the library of a sanitizer build.
os.environ.pop('LD_LIBRARY_PATH', None)
weft = os.path.abspath(sys.argv[1])


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f'{what}: {str(got)[:600]} is not {str(wanted)[:600]}')


def run(*command):
    """Returns exit status and messages; a command that waits for ever fails the test."""
    try:
        got = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors='replace', timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        sys.exit(f'{" ".join(command)}: does not end')
    return got.returncode, got.stdout + got.stderr


def as_intruder(*command):
    subprocess.run(command, user=INTRUDER, group=INTRUDER, extra_groups=[], check=True)


def make_session(place, name='session'):
    """Makes a session of root with a folder of the intruder, as a recorded program does before it becomes that user."""
    session = os.path.join(place, name)
    os.mkdir(session, 0o711)
    own = os.path.join(session, f'uid-{INTRUDER}')
    os.mkdir(own, 0o700)
    os.chown(own, INTRUDER, INTRUDER)
    return session, own


def make_private(place):
    """Makes a private folder of root with files named like the event files of OCaml."""
    private = os.path.join(place, 'private')
    os.mkdir(private, 0o700)
    for number in (1, 2):
        with open(os.path.join(private, f'{number}.events'), 'wb') as file:
            file.write(bytes(100000))
    return private


def contents(folder):
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), 'rb') as file:
            found[name] = file.read()
    return found


def check_overwrite(place):
    private = make_private(place)
    before = contents(private)
    session, own = make_session(place)
    as_intruder('ln', '-s', private, os.path.join(own, 'x.ocaml'))
    run(weft, 'record', '--overwrite', '-o', session, '--', 'true')
    expect('files behind a link, after --overwrite', contents(private).keys(), before.keys())
    shutil.rmtree(session)
    # weft record refuses a symbolic link as session, and does not empty the session behind the link first.
    real, own = make_session(place, 'real')
    os.mkdir(os.path.join(real, 'kept-1'))
    with open(os.path.join(real, 'kept-1', 'metadata'), 'w', encoding='utf-8') as file:
        file.write('/* CTF 1.8 */')
    os.symlink(real, session)
    status, text = run(weft, 'record', '--overwrite', '-o', session, '--', 'true')
    expect('exit status with a link as session', (status, 'symbolic link' in text), (2, True))
    expect('the session behind the link', os.path.exists(os.path.join(real, 'kept-1', 'metadata')), True)
    os.unlink(session)
    shutil.rmtree(real)
    shutil.rmtree(private)


def record(session, script):
    """Records a shell that makes a folder of the intruder, and then runs a script as the intruder."""
    own = os.path.join(session, f'uid-{INTRUDER}')
    make = f'mkdir -m 700 {own}; chown {INTRUDER} {own}'
    become = f'setpriv --reuid={INTRUDER} --regid={INTRUDER} --clear-groups'
    return run(weft, 'record', '-o', session, '--', 'sh', '-c', f'{make}; {become} {script}')


def check_end(place):
    private = make_private(place)
    before = contents(private)
    session, own = os.path.join(place, 'session'), os.path.join(place, 'session', f'uid-{INTRUDER}')
    record(session, f'sh -c "ln -s {private} {own}/x.ocaml; sleep 0.3"')
    expect('files behind a link, after a recording', contents(private) == before, True)
    shutil.rmtree(session, ignore_errors=True)
    # A hard link in the intruder's folder to a file of root is no file of the intruder.
    record(session, f'sh -c "mkdir {own}/x.ocaml; sleep 0.3"; ln {private}/1.events {own}/x.ocaml/7.events')
    expect('a file with a second name, after a recording', contents(private) == before, True)
    shutil.rmtree(session, ignore_errors=True)
    shutil.rmtree(private)


def check_pipes(place):
    session, own = os.path.join(place, 'session'), os.path.join(place, 'session', f'uid-{INTRUDER}')
    expect('exit status with a FIFO as prog.failed', record(session, f'mkfifo {own}/prog.failed')[0], 0)
    shutil.rmtree(session, ignore_errors=True)
    session, own = make_session(place)
    for name in ('a', 'b'):
        as_intruder('mkdir', os.path.join(own, name))
        as_intruder('mkfifo', os.path.join(own, name, 'metadata'))
    for verb in ('info', 'explain', 'top', 'check'):
        rules = ['stall<10ms'] if verb == 'check' else []
        expect(f'exit status of weft {verb} with FIFOs as metadata', run(weft, verb, session, *rules)[0], 2)
    watch = subprocess.Popen([weft, 'watch', session], stderr=subprocess.PIPE, text=True)
    timer = limit_time(watch)
    expect('weft watch with FIFOs as metadata', 'no program records here yet' in watch.stderr.readline(), True)
    watch.terminate()
    watch.wait()
    timer.cancel()
    shutil.rmtree(session)


def limit_time(process):
    """Kills the process after PATIENCE seconds, so that the test does not read its output for ever."""
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    return timer


def count_descriptors(pid):
    try:
        return len(os.listdir(f'/proc/{pid}/fd'))
    except FileNotFoundError:
        return 0


def check_descriptors(place):
    """weft record opens at most one file descriptor for each process of the intruder, however many of the intruder's folders bear names of processes."""
    session, own = os.path.join(place, 'session'), os.path.join(place, 'session', f'uid-{INTRUDER}')
    done = os.path.join(own, 'done')
    make = f'import os; [os.mkdir(f"{own}/x{{i}}-{{p}}") for i in range(300) for p in (1, os.getpid())]; open("{done}", "w"); __import__("time").sleep(600)'
    command = f'mkdir -m 700 {own}; chown {INTRUDER} {own}; exec setpriv --reuid={INTRUDER} --regid={INTRUDER} --clear-groups python3 -c \'{make}\''
    with subprocess.Popen([weft, 'record', '-o', session, '--', 'sh', '-c', command], stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + PATIENCE
        while not os.path.exists(done) and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        expect('folders of the intruder', os.path.exists(done), True)
        # Counts the descriptors for a second, while weft record goes through the folders.
        most, until = 0, time.monotonic() + 1
        while time.monotonic() < until:
            most = max(most, count_descriptors(process.pid))
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
    expect(f'{most} descriptors are few', most < 60, True)
    shutil.rmtree(session)


def check_socket(place):
    """`weft save` does not wait for a socket that the intruder made in a folder that all users may write to."""
    shared = os.path.join(place, 'shared')
    os.mkdir(shared)
    os.chmod(shared, 0o1777)
    trace = os.path.join(shared, 'trace')
    os.mkdir(trace, 0o700)
    with open(os.path.join(trace, 'metadata'), 'w', encoding='utf-8') as file:
        file.write('/* CTF 1.8 */')
    listen = ('import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o777); s.listen(8); '
              'print(flush=True); sys.stdin.readline()')
    with subprocess.Popen(['/usr/bin/python3', '-c', listen, os.path.join(shared, '.weft-flight')], user=INTRUDER, group=INTRUDER, extra_groups=[],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as silent:
        silent.stdout.readline()
        said = run(weft, 'save', trace, '-w', os.path.join(place, 'copy'))[1]
        silent.communicate('\n')
    expect('a note about the silent socket', 'does not answer' in said, False)
    shutil.rmtree(shared)


def main():
    if os.geteuid() != 0 or closed_to_others(weft):
        print('skipped: only root can become another user, who must reach the command')
        return SKIPPED
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, stat.S_IRWXU | stat.S_IXGRP | stat.S_IXOTH)
        os.chdir(place)
        for check in (check_overwrite, check_end, check_pipes, check_descriptors, check_socket):
            check(place)
    return 0


if __name__ == '__main__':
    sys.exit(main())
