#!/usr/bin/env python3
"""top_screen_test.py WEFT NIGHT: weft top in a terminal: each key, small and large terminals, programs that die, many promises and processes.

SPDX-License-Identifier: ISC"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from terminal import Terminal, is_there  # pylint: disable=wrong-import-position

weft, night = map(os.path.abspath, sys.argv[1:])
PATIENCE = 120
if not is_there() or subprocess.run([weft, 'top', '--version'], capture_output=True, check=False).returncode:
    print('there is no tmux')
    sys.exit(77)


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f'{what}: {got!r} is not {wanted!r}')


class Program:
    """A process of NIGHT that records until the context ends."""

    def __init__(self, trace, clients=0, size='64M'):
        self.process = subprocess.Popen([night, str(clients)], stdin=subprocess.PIPE, env={**os.environ, 'WEFT_TRACE': f'{trace},size={size}'})
        end = time.monotonic() + PATIENCE
        while subprocess.run([weft, 'info', trace], capture_output=True, check=False).returncode:
            if time.monotonic() > end:
                sys.exit(f'{trace} does not begin')
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE)


def row_of(shown, text):
    """Returns the number of the first row of the screen that contains the text."""
    return next(i for i, line in enumerate(shown.split('\n')) if text in line)


def at(shown):
    """Returns the time that weft top shows, in ms."""
    number, unit = re.search(r' at ([0-9.]+)(?: (ms|s)\b)?', shown).groups()
    return float(number) * {'ms': 1, 's': 1000, None: 0}[unit]


def every_key_has_an_effect():
    """Each key of weft top has its effect while it follows a running program."""
    with Program('keys', 5), Terminal(110, 30) as t:
        t.start(weft, 'top', 'keys')
        t.until('it is live', lambda s: '● live' in s and 'request "GET /"' in s)
        shown = t.until('sorts', 'FLIGHT')
        expect('who it is', re.match(r'night \d+ · \d+ in flight', shown) is not None, True)
        first = at(t.text())
        t.until('it goes on by itself', lambda s: at(s) > first)

        # Control sequences in a label do not reach the terminal.
        t.type('2')
        shown = t.until('the tree', 'client 4')
        expect('no control reaches the terminal', ('evil' in shown, 'owned' in shown, '\x1b' in shown, '\u202e' in shown), (True, True, False, False))
        expect('it stands below who made it', '├ task' in shown and '└ ' in shown, True)
        expect('for whom one waits', re.search(r'task \d+ "query" +[a-z]+ \d+ "answer", ', shown) is not None, True)

        # Enter opens the page of a promise; BSpace and Escape lead back.
        t.type('3')
        t.until('who waits', 'END OF CHAIN')
        t.until('for whom in the end', lambda s: any('"report"' in line and '"query"' in line and '"answer"' in line for line in s.split('\n')))
        t.type('/')
        t.write('report')
        t.type('Enter', 'Enter')
        shown = t.until('what stands behind it', 'Wait chain')
        expect('a chain', row_of(shown, '"query"') < row_of(shown, '"answer"'), True)
        expect('its site', 'night.c:' in shown, True)
        t.type('a')
        t.until('what it waits for', lambda s: s.split('\n')[4].startswith('query'))
        t.type('c')
        t.until('who created that', lambda s: s.split('\n')[4].startswith('report'))
        t.type('BSpace')
        t.until('back once', lambda s: s.split('\n')[4].startswith('query'))
        t.type('Escape', 'Escape')
        t.until('back to the table', 'END OF CHAIN')
        t.type('y')
        t.until('why?', lambda s: '› why?' in s and 'paused' in s)
        t.type('Escape', 'Space')
        t.until('it goes on', '● live')

        # f shows only the promises that match the search, i only those that belong to the selected one, u all.
        t.type('2', 'f')
        t.until('only what matches', lambda s: 'only what matches report' in s and '"client' not in s and '"report"' in s)
        t.type('f')
        t.until('all of it', '"client 0"')
        t.type('/')
        t.write('queri')
        t.type('BSpace', 'y', 'Enter')
        t.type('n', 'N', 'i')
        t.until('what belongs to it', lambda s: 'only what belongs to' in s and '"query"' in s and '"answer"' in s and '"client' not in s)
        t.type('u')
        t.until('everything', '"client 0"')
        t.type('/')
        t.write('no such thing')
        t.until('nothing', 'Nothing matches no such thing')
        t.type('Escape', '/')
        t.write('longer:x')
        t.type('Enter', 'f')
        t.until('no search', 'longer:')
        t.type('f')
        t.type('/')
        t.write('client')
        t.type('Enter', 'l', 'f')
        t.until('all like it', lambda s: '"client 0"' in s and '"client 1"' not in s)
        t.type('f')

        # Enter at a type lists its promises.
        t.type('1')
        t.until('sorts', 'FLIGHT')
        t.type('/')
        t.write('client')
        t.type('Enter', 'Enter')
        shown = t.until('those of a sort', '› task "client *"')
        expect('all of them and no other', (len(re.findall(r'"client \d"', shown)), '"report"' in shown), (5, False))
        t.type('Escape')
        t.until('back', 'FLIGHT')

        # < and > choose the column by which the table is sorted; R reverses the order.
        t.type('Home', '>')
        t.until('who ended most is first', lambda s: 'GET /' in s.split('\n')[5])
        t.type('R')
        t.until('who ended least is first', lambda s: 'GET /' not in s.split('\n')[5] and 'GET /' in s)
        t.type('R', '<')
        t.until('who is in flight most is first', lambda s: 'client *' in s.split('\n')[5])

        # Tab leads to the views of late promises, OS threads and counters; 7 to the findings.
        t.type('Tab', 'Tab', 'Tab')
        t.until('late', 'LATE BY')
        t.type('Tab')
        t.until('OS threads', lambda s: 'BUSY' in s and re.search(r'\d+% +\? +\d+%', s))
        t.type('Tab')
        t.until('a counter goes up and down', lambda s: re.search(r'[▁▂▃▄▅▆▇█]{2} +queue', s))
        t.type('BTab')
        t.until('the table before', 'BUSY')
        t.type('7')
        t.until('findings', 'FINDING')

        # Left and Right lead back and forward in time; + and - change the length of the shown time.
        t.until('there is time to go back to', lambda s: at(s) > 4000)
        t.type('2', 'Left')
        held = at(t.until('held', 'paused'))
        t.type('Left')
        t.until('earlier', lambda s: at(s) < held)
        t.type('Right')
        t.until('later', lambda s: at(s) >= held)
        t.type('+')
        t.until('a shorter stretch', 'the last 500 ms')
        t.type('-', '-')
        t.until('a longer stretch', 'the last 2.00 s')
        t.type('t')
        t.until('the time of day', lambda s: re.search(r'at \d\d:\d\d:\d\d', s))
        t.type('t', 'Space')
        t.until('on', '● live')

        # ? lists the keys; a key that cannot do anything shows a message.
        t.type('?')
        t.until('the keys', 'Go to what the row awaits')
        t.type('x')
        t.until('back', '● live')
        t.type('5', 'Enter')
        t.until('nowhere to go', 'no promise to go to')
        for key in 'C-l', 'r', 'w', 'F1', 'F1', 'Down', 'Up', 'NPage', 'PPage', 'End', 'Home', 'x', 'C-x':
            t.type(key)
        t.type('q')
        t.until('it ended well', 'ended: 0')


def mouse_selects_and_scrolls():
    with Program('mouse', 3), Terminal(100, 24) as t:
        t.start(weft, 'top', 'mouse')
        shown = t.until('it is live', lambda s: '● live' in s and 'request "GET /"' in s)
        tabs = shown.split('\n')[3]
        t.mouse(tabs.index('In flight') + 1, 3)
        shown = t.until('a tab', 'WAITS FOR')
        t.mouse(30, row_of(shown, '"query"'))
        t.mouse(30, row_of(shown, '"query"'))
        t.until('a row that is pressed twice', 'Wait chain')
        t.type('Escape', '1')
        shown = t.until('sorts', 'FLIGHT')
        t.mouse(shown.split('\n')[4].index('ENDED') + 1, 4)
        t.until('a heading', lambda s: 'GET /' in s.split('\n')[5])
        t.mouse(3, 10, 65)
        t.mouse(3, 10, 64)
        t.type('C-c')
        t.until('it ended well', 'ended: 0')


def every_terminal_size_is_drawn():
    """The screen adapts when the terminal becomes small, large and small again, and when the terminal has fewer features."""
    with Program('sizes', 50), Terminal(80, 24) as t:
        t.start(weft, 'top', 'sizes')
        t.until('it is live', lambda s: '● live' in s and 'request "GET /"' in s)
        t.type('2')
        t.until('the tree', '"client 10"')
        for columns, rows in (200, 60), (20, 5), (5, 2), (80, 24):
            t.resize(columns, rows)
            if rows > 20:
                t.until(f'{columns}x{rows}', lambda s, rows=rows: '"client 10"' in s and '? keys' in s.split('\n')[rows - 1])
        t.type('End')
        t.until('the last row', lambda s: '"client 49"' in s and '"client 10"' not in s)
        t.type('q')
        t.until('it ended well', 'ended: 0')
    with Program('plain', 3):
        for variables in {'term': 'vt100'}, {'NO_COLOR': '1'}, {'locale': 'C'}, {}:
            with Terminal(80, 24, **variables) as t:
                t.start(weft, 'top', 'plain')
                t.until('it is live', lambda s: 'live' in s and 'GET /' in s)
                t.type('2')
                t.until('the tree', '"answer"')
                drawn = '\n'.join(t.coloured())
                colours = re.search(r'\x1b\[[0-9;]*3[1-6]m', drawn) is not None
                expect(f'colours in {variables}', colours, 'term' not in variables and 'NO_COLOR' not in variables)
                expect(f'signs in {variables}', '├' in drawn or '└' in drawn, variables.get('locale') != 'C')
        with Terminal(80, 50, term='dumb') as t:
            t.start(weft, 'top', 'plain')
            t.until('what --once prints', lambda s: 'ended: 0' in s and 'in flight     ended' in s)


def ended_programs_and_lost_traces_are_shown():
    """weft top shows that a program ended or was killed, and reports a trace that is deleted or missing; SIGTERM ends weft top."""
    with Program('dies', 3) as program, Terminal(100, 24) as t:
        t.start(weft, 'top', str(program.process.pid))
        t.until('it is live', lambda s: '● live' in s and 'GET /' in s)
        program.process.kill()
        t.until('it has ended', 'ended')
        t.type('2')
        t.until('what was in flight then', '"answer"')
        subprocess.run(['rm', '-r', 'dies'], check=True)
        t.until('the trace is gone', 'dies: ')
        t.type('3')
        t.until('what was read is still shown', '"report"')
        pid = int(re.search(r'\d+', subprocess.run(['pgrep', '-f', f'^{re.escape(weft)} top {program.process.pid}$'], capture_output=True, text=True, check=True).stdout)[0])
        os.kill(pid, signal.SIGTERM)
        t.until('it ended well', 'ended: 0')
    with Terminal(100, 24) as t:
        t.start(weft, 'top', 'there/is/none')
        t.until('one line', lambda s: 'ended: 2' in s and s.startswith('weft: there/is/none: '))


def hundred_thousand_promises_are_counted_and_searchable():
    """weft top shows 100,000 promises in flight."""
    with Program('crowd', 100000) as program, Terminal(100, 24) as t:
        t.start(weft, 'top', 'crowd')
        t.until('all are in flight', lambda s: re.search(r'^ *100,000 ', s, re.M))
        program.end()
        t.until('it has ended', 'ended')
        t.type('2', 'End')
        t.until('the last one', '"client 99999"')
        t.type('/')
        t.write('"client 4711"')
        t.type('Enter')
        t.until('one of them', lambda s: '"client 4711"' in s and '"client 99999"' not in s)
        t.type('f')
        t.until('that one alone', lambda s: '"client 4711"' in s and '"client 4710"' not in s)
        t.type('f', '3')
        t.until('who waits', 'END OF CHAIN')
        t.type('q')
        t.until('it ended well', 'ended: 0')


def wrapping_ring_is_followed():
    """weft top follows a ring that wraps repeatedly, and a directory in which short processes start."""
    most_events = 256 * 1024 // 6  # each event takes more than 6 bytes, so a ring with more events has wrapped
    with Program('all/round', 0, '256K'), Terminal(100, 24) as t:
        t.start(weft, 'top', 'all')
        t.until('it has gone round', lambda s: any(int(count.replace(',', '')) > most_events for count in re.findall(r'([0-9,]+) events', s)))
        first = at(t.text())
        t.until('it goes on', lambda s: at(s) != first)
        with Program('all/other', 2):
            t.until('another one', '2 traces')
            t.type('2')
            t.until('who is in flight there', '"client 1"')
        t.type('q')
        t.until('it ended well', 'ended: 0')


def threads_with_equal_names_are_shown_with_their_numbers():
    """OS threads with the same name are shown with their numbers."""
    if not shutil.which('node'):
        return
    subprocess.run([weft, 'record', '-o', 'node', '--', 'node', '-e', 'fs.readFile("/etc/passwd", () => 0)'], capture_output=True, check=True, timeout=PATIENCE)
    with Terminal(200, 24) as t:
        t.start(weft, 'top', 'node')
        shown = t.until('they are there', lambda s: len(re.findall(r'  node \d+ \d+% awake', s)) > 2)
        numbers = re.findall(r'  node (\d+) ', shown)
        expect('each its own', sorted(set(numbers)), sorted(numbers))
        t.type('q')
        t.until('it ended well', 'ended: 0')


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    os.mkdir('all')
    for part in every_key_has_an_effect, mouse_selects_and_scrolls, every_terminal_size_is_drawn, ended_programs_and_lost_traces_are_shown, hundred_thousand_promises_are_counted_and_searchable, wrapping_ring_is_followed, threads_with_equal_names_are_shown_with_their_numbers:
        part()
        print(part.__name__, 'as a person expects it', flush=True)
