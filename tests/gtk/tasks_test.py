#!/usr/bin/env python3
# tasks_test.py: usual questions about a server's trace, answered like a user does, with the number of actions.  SPDX-License-Identifier: ISC
"""tasks_test.py WEFT-VIEW WEFT SLOW ARP [SLOW_NODE]

SLOW makes traces of a server with one slow request.  An action is a key, a click, or a word that is typed."""

import os
import re
import subprocess
import sys
import tempfile
import time

from person import App, run, under_a_desktop, until

under_a_desktop()
view, weft, slow, arp, *slow_node = map(os.path.abspath, sys.argv[1:])
folder = tempfile.mkdtemp(prefix='tasks-', dir=os.environ['WEFT_TEST_DESKTOP'])

# The text of the first part, and the label of the promise to which it leads.
CAUSES = {
    'dependency': ('waiting for timer', ', an external event; usually 1.00 ms', 'db query'),
    'lock': ('waiting for lock', '"cache", which request', 'GET /export'),
    'stall': ('which may have been due while request', '"GET /report" ran', 'GET /report'),
    'queue': ('ready while request', '"GET /report" ran', 'GET /report'),
    'data': ('waiting for read', ', an external event', 'body'),
}

# The same of a server of Node.js, as Debian installs it.
CAUSES_IN_NODE = {
    'dependency': r'waiting for connection (\d+) "to 127\.0\.0\.1:\d+" to answer',
    'stall': r'which may have been due while (?:connection (\d+) "from .*"|coroutine (\d+) ".*") ran',
    'lock': r'waiting for timer (\d+) "\d+ ms(?: to the next timer)?"',
    'data': r'waiting for read (\d+) of connection \d+ "from [^"]*"(?: \(.*\))?, an external event',
}


class Person:
    """Counts actions."""

    def __init__(self, app):
        self.app, self.actions = app, 0

    def key(self, key):
        self.app.key(key)
        self.actions += 1

    def click(self, x, y):
        self.app.click(x, y)
        self.actions += 1

    def type(self, text):
        self.app.type(text)
        self.actions += 1

    def drag(self, *where):
        self.app.drag(*where)
        self.actions += 1


def trace(case):
    path = os.path.join(folder, case)
    if not os.path.exists(path):
        subprocess.run([slow, case, path], check=True, timeout=60)
    return path


def slowest_request_is_explained():
    for case, (begin, end, leads_to) in CAUSES.items():
        with App(view, trace(case)) as app:
            app.shown()
            person = Person(app)
            person.key('slash')
            app.until('the search bar', lambda w: w['finding'] and w['typing'])
            person.type('item longer:20ms')
            app.until_viewer('it is found', lambda v: v['search'] == 'item longer:20ms' and not v['searching'] and v['found'] == 1)
            person.key('Return')
            app.until_viewer('it is selected', lambda v: v['selected'] is not None)
            before = app.settled()['height']
            person.key('alt+y')
            window = app.until('an answer', lambda w: 'times as long as usual' in w['findings'])
            parts = [row[4] for row in window['rows'] if row[0] == 'evidence']
            assert begin in parts[1] and end in parts[1] and parts[1].startswith('30.'), parts
            assert person.actions <= 4, person.actions
            app.until_viewer('the lane stands above the picture', lambda v, before=before: v['height'] == before - 26)
            app.picture('why-' + case)
            app.click_on(parts[1])
            culprit = int(re.search(rf'(\d+) "{leads_to}"', parts[1])[1])
            app.until_viewer('the part leads to who took it', lambda v, culprit=culprit: v['selected'] == culprit)


def slow_read_of_node_is_explained():
    if not slow_node:
        print('SKIPPED: no program of others is recorded by a build with sanitizers')
    for case, says in CAUSES_IN_NODE.items() if slow_node else ():
        traces = os.path.join(folder, 'node-' + case)
        subprocess.run([*slow_node, weft, case, traces], check=True, timeout=60)
        with App(view, os.path.join(traces, os.listdir(traces)[0])) as app:
            app.shown()
            person = Person(app)
            person.key('slash')
            app.until('the search bar', lambda w: w['finding'] and w['typing'])
            person.type('kind:=read longer:350ms')
            app.until_viewer('some are found', lambda v: v['search'] == 'kind:=read longer:350ms' and not v['searching'] and v['found'] > 0)
            person.key('Return')
            app.until_viewer('one is selected', lambda v: v['selected'] is not None)
            person.key('alt+y')
            window = app.until('an answer', lambda w: 'where its time went' in w['findings'].lower() or 'times as long as usual' in w['findings'])
            parts = [row[4] for row in window['rows'] if row[0] == 'evidence']
            found = next((found for found in (re.search(says, part) for part in parts) if found), None)
            assert found and parts.index(found.string) <= 1, parts
            assert person.actions <= 4, person.actions
            app.picture('why-node-' + case)
            app.click_on(found.string)
            app.until_viewer('the part leads to who took it', lambda v, culprit=int(found[found.lastindex]): v['selected'] == culprit)
            if case == 'dependency':
                check_internals(app, os.path.join(traces, os.listdir(traces)[0]))


def check_internals(app, path):
    """The locks and conditions of V8 and libuv share one row, until I gives each its own."""
    dumped = subprocess.run([weft, 'dump', path], check=True, capture_output=True, text=True, timeout=60).stdout
    internals = {int(line.split()[1]) for line in dumped.splitlines()
                 if re.match(r'promise \d+ (lock|condition) ', line) and line.split('  at ')[-1].find('.js:') < 0}
    assert internals, dumped
    if len(internals) == 1:  # which locks of V8 are awaited depends on the machine
        print('   one lock only: nothing shares its row')
        return
    picture = os.path.join(folder, 'internals.svg')
    subprocess.run([weft, 'render', path, '--size=1280x1600', '-o', picture], check=True, timeout=60)
    with open(picture, encoding='utf-8') as file:
        assert 'internals of node' in file.read(), dumped

    def rows(viewer):
        return {p[3] for p in viewer['promises'] if p[0] in internals}
    app.focus_canvas()
    app.key('Home')
    app.until_viewer('one row', lambda v: len(rows(v)) == 1)
    app.key('I')
    app.until_viewer('a row for each', lambda v: len(rows(v)) > 1)


def focused_promise_shows_its_path():
    with App(view, trace('lock')) as app:
        app.shown()
        app.find('item longer:20ms')
        app.key('Return', 'Escape')
        app.until('selected', lambda w: not w['finding'] and w['viewers'][0]['selected'] is not None)
        before = app.settled()['height']
        app.key('i')
        viewer = app.until_viewer('the lane', lambda v: v['height'] == before - 26)
        app.picture('alone')
        app.focus()
        middle = viewer['x'] + viewer['width'] / 2, viewer['y'] - 12
        app.click(*middle)
        app.key('F9')
        app.until('a click in the lane leads to who held the lock', lambda w: w['facts'].startswith('GET /export|request'))
        app.key('u')
        app.until_viewer('it goes', lambda v: v['height'] == before)


def line_of(path, label):
    """Returns the line of weft dump about the promise with that label."""
    dump = subprocess.run([weft, 'dump', path], check=True, capture_output=True, text=True, timeout=60).stdout
    return next(line for line in dump.splitlines() if f'"{label}"' in line)


def labelled(path, label):
    """Returns the id of the promise with that label."""
    return int(line_of(path, label).split()[1])


def pointer_on_an_arrow_shows_its_tip():
    """The tip of an arrow, and of a line, explains it."""
    path = trace('lock')
    disk = labelled(path, 'disk')
    with App(view, path) as app:
        app.shown()
        app.find('disk')
        app.key('Return', 'Escape')
        app.until_viewer('selected', lambda v: v['selected'] == disk)
        app.focus()
        app.key('z', 'Escape')
        viewer = app.until_viewer('nothing is selected', lambda v: v['selected'] is None)
        line = next(p for p in app.settled()['promises'] if p[0] == disk)
        app.at(line[1] + 30, line[3])
        app.until_viewer('a line says what it is', lambda v: v['tip'].startswith('disk, timer, promise '))
        person = Person(app)
        for away in range(5, 60, 3):  # the reader may be above or below
            for y in (line[3] - away, line[3] + away):
                app.at(line[2], y)
                viewer = app.settled()
                if 'read the result of' in viewer['tip']:
                    break
            else:
                continue
            break
        assert re.fullmatch(rf'\w+ \d+( "[^"]*")? read the result of timer {disk} "disk" at [\d.]+ .?s, (as soon as|.* after) it was ready', viewer['tip']), viewer['tip']
        assert person.actions == 0
        app.picture('arrow')


def total_waiting_time_is_attributed_to_promises():
    with App(view, trace('lock')) as app:
        app.shown()
        app.key('Escape')
        before = app.settled()['height']
        person = Person(app)
        person.key('W')
        viewer = app.until_viewer('it stands below the picture', lambda v: v['height'] < before - 50)
        x, below = viewer['x'] + viewer['width'] * 0.9, viewer['y'] + viewer['height']
        for y in range(int(below) + 8, int(below) + 100, 6):
            app.at(x, y)
            if app.settled()['tip'].startswith('disk: 33.'):
                break
        app.picture('blame')
        person.click(x, y)
        app.key('F9')
        app.until('it leads to who took the time', lambda w: w['facts'].startswith('disk|timer'))
        assert person.actions == 2
        app.key('W')
        app.until_viewer('it goes', lambda v: v['height'] == before)


def promises_of_a_kind_are_folded():
    path = trace('lock')
    one, inside = labelled(path, 'GET /item/1000'), labelled(path, 'disk')
    with App(view, path) as app:
        app.shown()
        viewer = app.settled()
        height = {p[0]: p[3] for p in viewer['promises']}
        rows = len(set(height.values()))
        person = Person(app)
        line = next(p for p in viewer['promises'] if p[0] == one)
        person.click((line[1] + line[2]) / 2, line[3])
        app.until_viewer('it is selected', lambda v: v['selected'] == one)
        person.key('B')
        viewer = app.until_viewer('each request is one line', lambda v: v['folds'] == ['kind:=request'])
        height = {p[0]: p[3] for p in viewer['promises']}
        assert len(set(height.values())) < rows and height[inside] == height[labelled(path, 'GET /export')], height
        assert person.actions == 2
        app.picture('folded')
        time.sleep(0.5)  # GTK does not count a double click that starts soon after a click elsewhere
        app.click(line[1] + 5, height[one], times=2)
        app.until_viewer('a double click unfolds them', lambda v: v['folds'] == [] and len({p[3] for p in v['promises']}) == rows)


def rows_are_grouped():
    """One key groups promises by kind; one key folds a library, and one a place in the source."""
    path = trace('lock')
    kinds = {int(i): kind for i, kind in re.findall(r'^promise (\d+) (\w+)', subprocess.run(
        [weft, 'dump', path], check=True, capture_output=True, text=True, timeout=60).stdout, re.M)}
    one = labelled(path, 'GET /item/1000')
    with App(view, path) as app:
        app.shown()
        before = app.settled()
        app.key('G')
        app.until_viewer('by kind', lambda v: v['promises'] != before['promises'])
        viewer = app.settled()
        order = [kinds[p[0]] for p in sorted(viewer['promises'], key=lambda p: p[3])]
        runs = [kind for i, kind in enumerate(order) if i == 0 or order[i - 1] != kind]
        assert len(runs) == len(set(runs)) > 2, runs
        app.key('alt+Left')
        app.until_viewer('back', lambda v: v['promises'] == before['promises'])
        line = next(p for p in before['promises'] if p[0] == one)
        app.click((line[1] + line[2]) / 2, line[3])
        app.until_viewer('it is selected', lambda v: v['selected'] == one)
        app.key('J')
        app.until_viewer('all of its place', lambda v: len(v['folds']) == 1 and v['folds'][0].startswith('site:="'))
        app.key('J', 'K')
        viewer = app.until_viewer('all of its library', lambda v: len(v['folds']) == 1 and v['folds'][0].startswith('library:="'))
        assert len({p[3] for p in viewer['promises']}) < len({p[3] for p in before['promises']})


def every_action_has_a_key_with_a_visible_effect():
    """Every action in the window of shortcuts has a visible effect, by its key and earlier keys alone."""
    one = ['shift+Down']  # the first promise in view is selected
    actions = [([], key) for key in ('plus', 'space', 'S', 'o', 'L', 't', 'R', 'F9', 'slash', 'q', 'F', 'e', 'd', 's', 'at', 'question', 'G', 'shift+Down', 'ctrl+e')]
    actions += [(['plus', 'plus', 'plus', 'Right', 'Right', 'Right'], key) for key in ('Home', 'minus', 'Left', 'Right', 'Prior', 'Next', 'alt+Left')]
    actions += [(one, key) for key in ('z', 'h', 'l', 'M', 'i', 'H', 'D', 'E', 'X', 'b', 'B', 'j', 'J', 'K', 'Escape', 'shift+F10', 'y', 'shift+Down', 'ctrl+l')]
    actions += [(one + before, key) for before, key in (
        (['i'], 'u'), (['b'], 'v'), (['l'], 'n'), (['l'], 'N'), (['l'], 'f'), (['M'], 'm'), (['shift+Down'], 'shift+Up'),
        (['shift+Down', 'shift+Down'], 'shift+Right'), (['shift+Down', 'shift+Down', 'shift+Right'], 'shift+Left'))]
    path = trace('connections')
    with App(view, path, chooser=True) as app:
        app.shown()

        def seen():
            return [app.window(), app.picture()[2]]

        def still():
            before = seen()

            def same():
                nonlocal before
                last, before = before, seen()
                return last == before
            until('a picture that stays', same, app)
            return before
        for before, key in actions:
            app.key('Escape', 'Escape', 'Escape', 'Escape')
            app.focus_canvas()
            app.key('u', 'v', 'Home', *before)
            was = still()
            app.key(key)
            until(f'{key} after {before} does something', lambda was=was: seen() != was, app)
            if key in ('space', 'S', 'o', 'L', 't', 'R', 'F9'):
                app.key(key)
            if key == 'G':
                app.key('G', 'G', 'G')


def assistive_technology_reads_the_picture():
    """Name, role and state of a track, a finding and a row of the table."""
    import pyatspi
    with App(view, trace('connections')) as app:
        app.shown()
        app.key('Home', 'shift+Down')
        app.until_viewer('the first is selected', lambda v: v['selected'] is not None)

        def told(what):
            return app.which(lambda a: a.name == 'Promises of connections' and a.getRole() == pyatspi.ROLE_IMAGE and re.search(what, a.description))
        until('a track', lambda: told(r'^client 1, connection, promise \d+: starts at .*; a track of \d+ rows$'), app)
        app.key('b')
        until('a folded one', lambda: told(r'; a folded track with \d+ promises$'), app)
        app.key('b')
        until('unfolded', lambda: told(r'; a track of \d+ rows$'), app)
        app.key('q')
        app.until('the table', lambda w: w['side'] == 'types' and w['types'])

        def row(state):
            return app.which(lambda a: a.getRole() == pyatspi.ROLE_PUSH_BUTTON and a.name == 'request "GET /*"' and re.search(r'^30 · p50 ', a.description) and
                             (pyatspi.STATE_EXPANDED in a.getState().getStates()) == state)
        until('a row of the table', lambda: row(False), app)
        app.act('pressed', lambda: next(iter(row(False)), None))
        until('it is open', lambda: row(True), app)
    with App(view, record('bad')) as app:
        app.shown()
        app.key('e')

        def finding(state):
            return app.which(lambda a: a.getRole() == pyatspi.ROLE_PUSH_BUTTON and re.match(r'Hang: bind \d+ "main" never resolved', a.name or '') and
                             (pyatspi.STATE_EXPANDED in a.getState().getStates()) == state)
        until('a finding', lambda: finding(False), app)
        app.act('pressed', lambda: next(iter(finding(False)), None))
        until('it is open', lambda: finding(True), app)


def focus_shows_one_connection():
    path = trace('connections')
    one = labelled(path, 'client 2')
    with App(view, path) as app:
        app.shown()
        person = Person(app)
        person.click(*app.place(one))
        app.until_viewer('it is selected', lambda v: v['selected'] == one)
        person.key('i')
        viewer = app.until_viewer('it alone is shown', lambda v: len({p[0] for p in v['promises']}) == 31)
        shown = {p[0] for p in viewer['promises']}
        for request in range(30):
            assert (labelled(path, f'GET /{request}') in shown) == (request % 3 == 1), request
        assert one in shown and labelled(path, 'client 1') not in shown and person.actions == 2
        app.picture('connection-alone')


def all_reads_are_folded():
    path = trace('connections')
    with App(view, path) as app:
        app.shown()
        before = app.settled()
        read = next(p for p in before['promises'] if p[0] == labelled(path, 'head'))
        person = Person(app)
        person.click((read[1] + read[2]) / 2, read[3])
        app.until_viewer('it is selected', lambda v: v['selected'] == read[0])
        app.settled()
        picture = app.picture()[2]
        person.key('B')
        app.until_viewer('reads are folded', lambda v: v['folds'] == ['kind:=read'])
        until('a line has both reads of a request', lambda: app.picture()[2] != picture, app)
        assert person.actions == 2


def time_between_two_events_is_measured():
    """Exactly from the end of one request to the start of another, although the pointer was only near."""
    path = trace('connections')
    first, second = labelled(path, 'GET /3'), labelled(path, 'GET /20')
    times = re.compile(r'(\d+)\.(\d{9}) \.\. (\d+)\.(\d{9})')
    end = times.search(line_of(path, 'GET /3'))
    begin = times.search(line_of(path, 'GET /20'))
    with App(view, path) as app:
        app.shown()
        lines = {p[0]: p for p in app.settled()['promises']}
        x, y = lines[first][2] + 4, lines[first][3]
        person = Person(app)
        person.drag(x, y, lines[second][1] - 4 - x, lines[second][3] - y, 'shift')
        app.until_viewer('it is measured', lambda v: 'span' in v)
        viewer = app.settled()
        assert viewer['span'] == [int(end[3] + end[4]), int(begin[1] + begin[2])], viewer['span']
        assert person.actions == 1
        app.picture('measured')


def record(mode):
    path = os.path.join(folder, mode)
    if not os.path.exists(path):
        subprocess.run([arp, mode], env={**os.environ, 'WEFT_TRACE': path}, capture_output=True, check=False, timeout=60)
    return path


def short_work_in_long_sleep_is_visible():
    """The work is visible at once; its measured length is right; one key shows the sleep."""
    path = record('bad')
    wanted = re.search(r'promise (\d+) .* (\d+)\.(\d{9}) \.\. (\d+)\.(\d{9})', line_of(path, 'ring.write'))
    one = int(wanted[1])
    with App(view, path) as app:
        app.shown()
        folded = app.settled()
        line = next(p for p in folded['promises'] if p[0] == one)
        assert folded['from_ns'] < 0 and folded['to_ns'] > folded['end_ns'] and line[2] > folded['x'] + 0.3 * folded['width'], folded['promises']
        assert app.window()['subtitle'].endswith('s; sleep is folded (S)'), app.window()['subtitle']
        app.picture('sleep-folded')
        app.drag(line[1] + 1, line[3], line[2] - line[1] - 2, 0, 'shift')  # within: another line may end just before
        app.until_viewer('it is measured', lambda v: 'span' in v)
        assert app.settled()['span'] == [int(wanted[2] + wanted[3]), int(wanted[4] + wanted[5])], app.viewer()['span']
        person = Person(app)
        person.key('S')
        app.until_viewer('it is narrow', lambda v: max(p[2] for p in v['promises'] if p[0] == one) < v['x'] + 0.1 * v['width'])
        assert person.actions == 1
        app.until('it says no more', lambda w: 'sleep' not in w['subtitle'])
        app.key('alt+Left')
        app.until_viewer('back', lambda v: v['promises'] == folded['promises'] and v['to_ns'] == folded['to_ns'])


def first_difference_of_two_runs_is_found():
    with App(view, '--compare', record('good'), record('bad')) as app:
        app.until('both', lambda w: len(w['viewers']) == 2 and not w['loading'] and w['explained'])
        app.shown()
        person = Person(app)
        person.key('e')
        window = app.until('where they part', lambda w: any(row[0] == 'evidence' and row[5] == 'order' for row in w['rows']))
        order = next(row[4] for row in window['rows'] if row[0] == 'evidence' and row[5] == 'order')
        assert 'resolves task' in order and 'the second, bind' in order and 'signals condition' in order, order
        app.click_on(order)
        person.actions += 1
        good, bad = re.search(r'in the first run, bind \d+ resolves task (\d+)', order)[1], re.search(r'in the second, bind \d+ signals condition (\d+)', order)[1]
        window = app.until('both lead there', lambda w: all(v['selected'] is not None for v in w['viewers']))
        assert person.actions == 2 and (good, bad) and window['viewers'][0]['from_ns'] == window['viewers'][1]['from_ns']
        app.picture('parted')


def back_undoes_ten_moves():
    path = trace('lock')
    one = labelled(path, 'GET /item/1000')
    with App(view, path) as app:
        app.shown()

        def seen():
            """Returns everything that determines the picture, but not the promise under the pointer."""
            viewer = app.settled()
            return {key: viewer[key] for key in ('from_ns', 'to_ns', 'focus', 'selected', 'folds', 'search', 'promises', 'height')}

        def click():
            line = next(p for p in app.viewer()['promises'] if p[0] == one)
            app.click((line[1] + line[2]) / 2, line[3])

        def wheel():
            viewer = app.viewer()
            for _ in range(4):
                app.wheel(viewer['x'] + viewer['width'] / 2, viewer['y'] + 300, 4)
        pictures = [seen()]
        for what in ('plus', click, wheel, 'B', 'Right', 'z', 'i', 'plus', 'u', 'Home'):
            what() if callable(what) else app.key(what)
            until('something moved', lambda: seen() != pictures[-1], app)
            pictures.append(seen())
        for steps in range(9, -1, -1):
            app.key('alt+Left')
            until(f'as after {steps} moves', lambda steps=steps: seen() == pictures[steps], app)


def most_expensive_type_is_found():
    with App(view, trace('dependency')) as app:
        app.shown()
        person = Person(app)
        person.key('q')
        window = app.until('the table', lambda w: w['side'] == 'types' and w['types'])
        sorts = [row[4] for row in window['types'] if row[0] == 'finding']
        assert sorts[:2] == ['request "GET /item/*"', 'timer "db query"'], sorts
        person.actions += 1
        app.click_on('request "GET /item/*"')
        app.until('its slowest', lambda w: any(row[0] == 'link' and row[4] == 'GET /item/1000' and row[5] == '30.2 ms' for row in w['types']))
        assert person.actions == 2
        app.picture('table')


sys.exit(run([slowest_request_is_explained, slow_read_of_node_is_explained, pointer_on_an_arrow_shows_its_tip, total_waiting_time_is_attributed_to_promises, focused_promise_shows_its_path, promises_of_a_kind_are_folded, rows_are_grouped, every_action_has_a_key_with_a_visible_effect,
              assistive_technology_reads_the_picture,
              focus_shows_one_connection, all_reads_are_folded, time_between_two_events_is_measured, first_difference_of_two_runs_is_found,
              short_work_in_long_sleep_is_visible, back_undoes_ten_moves, most_expensive_type_is_found]))
