#!/usr/bin/env python3
"""readme_test.py WEFT README.MD: the commands of README print what it shows.

Each line `$ COMMAND` of a block that has a line `$ weft ...` runs, all in one temporary directory.  The lines below a command have to be its output, where
a number stands for any number with any unit of time, spaces for any spaces, and `...` for any text, or for any lines where it is alone.  A command
without lines below it only has to know its options.  One that does not end in time is stopped as by Ctrl-C, or, in a second attempt, goes on while the
next commands run.  A line `^C` below a command allows the first only.  Lines on standard error may be left out.  Windows and installations do not run.  Exits with 77 if there is no such block, or a program that is recorded is not installed.  SPDX-License-Identifier: ISC"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

PATIENCE_S = 8
ATTEMPTS = 4
# These need permissions or a network, or take minutes.
LEFT_OUT = {'sudo', 'su', 'apt', 'apt-get', 'dpkg', 'git', 'make', 'meson', 'ninja', 'cd', 'curl', 'wget', 'xdg-open', 'firefox'}
NUMBER = r'(?:0x[0-9a-f]+|\d[\d,]*(?:\.\d+)?)'
UNIT = r'(?:ns|us|\u00b5s|ms|s|min|h|B|kB|MB|GB|KiB|MiB)'
TOKEN = re.compile(rf'(?P<any>\.\.\.|\u2026)|(?P<measure>{NUMBER} ?{UNIT}\b)|(?P<number>{NUMBER})|(?P<space>\s+)')


def pattern(line):
    """Returns a pattern for a line of README."""
    made, at = '', 0
    for token in TOKEN.finditer(line):
        made += re.escape(line[at:token.start()])
        made += {'any': '.*', 'measure': rf'{NUMBER} ?{UNIT}', 'number': NUMBER, 'space': r'\s+'}[token.lastgroup]
        at = token.end()
    return re.compile(made + re.escape(line[at:]))


def difference(shown, printed):
    """Returns the first shown line that the output lacks at its place; None if none."""
    shown, printed = [line.rstrip() for line in shown], [line.rstrip() for line in printed]
    at = 0
    skip = False
    for line in shown:
        if line.strip() in ('...', '\u2026'):
            skip = True
            continue
        fits = pattern(line)
        while at < len(printed) and skip and not fits.fullmatch(printed[at]):
            at += 1
        if at == len(printed) or not fits.fullmatch(printed[at]):
            return line
        at += 1
        skip = False
    return None if skip or at == len(printed) else f'(nothing more, but there is: {printed[at]})'


def blocks(text):
    """Returns the commands of each block, each with the lines below it."""
    for block in re.findall(r'^```\w*\n(.*?)^```', text, re.M | re.S):
        if not re.search(r'^\$ weft\b', block, re.M):
            continue
        for part in re.split(r'^\$ ', block, flags=re.M)[1:]:
            command, _, lines = part.partition('\n')
            while command.endswith('\\') and lines:
                more, _, lines = lines.partition('\n')
                command = command[:-1] + ' ' + more
            shown = lines.rstrip('\n').split('\n')
            yield command, [] if shown == [''] else shown


def stop(process):
    """Ends a program by SIGINT, otherwise by SIGKILL; returns the rest of its output."""
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            return process.communicate(timeout=PATIENCE_S)[0]
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            pass
    return process.communicate()[0]


def run(command, folder, env, running, errors):
    """Returns what a command prints, and its exit status.  One that does not end goes to the list `running`, or, if that is None, is stopped."""
    process = subprocess.Popen(command, shell=True, cwd=folder, env=env, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=errors, text=True, errors='replace')  # pylint: disable=consider-using-with
    try:
        return process.communicate(timeout=PATIENCE_S)[0].splitlines(), process.returncode
    except subprocess.TimeoutExpired as error:
        if running is None:
            return stop(process).splitlines(), 0
        running.append(process)
        return (error.stdout or b'').decode(errors='replace').splitlines(), 0


def split_command(command):
    try:
        return shlex.split(command, comments=True)
    except ValueError:
        return command.split()


def get_reason_to_skip(command, verbs):
    first = split_command(command)
    if not first or first[0] in LEFT_OUT:
        return 'changes the machine, or takes long'
    if first[0] == 'weft' and (len(first) == 1 or first[1] == 'view' or first[1] not in verbs and not first[1].startswith('-')):
        return 'opens a window'
    if first[0] == 'weft' and first[1] in ('serve', 'top'):
        return 'runs until it is stopped'
    return None


def missing_program(command):
    """Returns the missing program that a command needs, or None."""
    first = split_command(command)
    if first[:2] == ['weft', 'record'] and '--' in first:
        first = first[first.index('--') + 1:]
    return None if not first or first[0] == 'weft' or shutil.which(first[0]) or '/' in first[0] else first[0]


def run_commands(commands, weft, verbs, running, errors):
    """Runs all; returns the differences.  A command that does not end is stopped if `running` is None."""
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        bin_folder = os.path.join(folder, '.bin')
        os.mkdir(bin_folder)
        os.symlink(weft, os.path.join(bin_folder, 'weft'))
        env = {**os.environ, 'PATH': bin_folder + ':' + os.environ['PATH'], 'LC_ALL': 'C.UTF-8', 'DEBUGINFOD_URLS': '', 'HOME': folder}
        for name in ('DISPLAY', 'WAYLAND_DISPLAY'):
            env.pop(name, None)
        for command, shown in commands:
            if get_reason_to_skip(command, verbs):
                continue
            stopped = '^C' in shown
            shown = [line for line in shown if line != '^C']
            printed, status = run(command, folder, env, None if stopped else running, errors)
            fault = difference(shown, printed) if shown else None
            if status in (2, 126, 127) and fault is None:
                fault = f'(exit status {status})'
            if fault is not None:
                faults.append(f'$ {command}\n  README has: {fault}\n  printed:\n' + ''.join(f'    {line}\n' for line in printed[:30]))
    return faults


def check_myself():
    """Checks the test itself on wrong texts."""
    shown = ['hang: fs 11 "open" waits  since 0.061 s (a.c:3)', '...', 'end 5']
    assert difference(shown, ['hang: fs 7 "open" waits since 12.5 ms (a.c:99)', 'x', 'y', 'end 77']) is None
    assert difference(shown, ['hang: fs 7 "open" waits since 12.5 ms (a.c:99)', 'end 77']) is None
    assert difference(shown, ['hang: fs 7 "close" waits since 12.5 ms (a.c:99)', 'end 77']) == shown[0]
    assert difference(shown, ['hang: fs 7 "open" waits since 12.5 ms (a.c:99)', 'x']) == 'end 5'
    assert difference(['a'], ['a', 'b']) is not None
    assert difference(['a', '...'], ['a', 'b']) is None
    assert difference(['a', 'b'], ['a']) == 'b'
    found = list(blocks('```\n$ make\n```\n\n```console\n$ mkfifo a\n$ weft record -o b \\\n  -- c\n$ weft explain b\nd\n...\n```\n'))
    assert found == [('mkfifo a', []), ('weft record -o b    -- c', []), ('weft explain b', ['d', '...'])], found


def main():
    check_myself()
    weft, readme = map(os.path.abspath, sys.argv[1:3])
    with open(readme, encoding='utf-8') as file:
        commands = list(blocks(file.read()))
    if not commands:
        print('SKIP: README.md has no block with a line `$ weft ...`')
        return 77
    said = subprocess.run([weft, '--help'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
    verbs = set(re.findall(r'\b[a-z]+\b', said))
    for command, _ in commands:
        reason = get_reason_to_skip(command, verbs)
        if reason:
            print(f'not run: {command}: it {reason}')
        elif missing_program(command):
            print(f'SKIP: {missing_program(command)} is not installed')
            return 77
    for number in range(ATTEMPTS):
        running = [] if number % 2 else None
        try:
            faults = run_commands(commands, weft, verbs, running, subprocess.STDOUT if number < 2 else subprocess.DEVNULL)
        finally:
            for process in running or []:
                stop(process)
        if not faults:
            compared = sum(len(shown) for command, shown in commands if not get_reason_to_skip(command, verbs))
            print(f'{len(commands)} commands of README.md, {compared} lines of output')
            return 0
    print('\n'.join(faults))
    return 1


if __name__ == '__main__':
    sys.exit(main())
