#!/usr/bin/env python3
# tasks_test.py: what one asks of a server's trace, as a person does it, counted.  SPDX-License-Identifier: ISC
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

# What the first part that is told of says, and the label of whom it leads to.
CAUSES = {
    'dependency': ('waiting for timer', '"db query", which comes from outside; usually 1.00 ms', 'db query'),
    'lock': ('waiting for lock', '"cache", which request', 'GET /export'),
    'stall': ('may have come, but request', '"GET /report" ran: nobody could hear of it sooner', 'GET /report'),
    'queue': ('was ready, but request', '"GET /report" ran', 'GET /report'),
    'data': ('waiting for read', '"body", which comes from outside', 'body'),
}

# The same of a server of Node.js, as Debian installs it.
CAUSES_IN_NODE = {
    'dependency': r'waiting for connection (\d+) "to 127\.0\.0\.1:\d+" to answer',
    'stall': r'may have come, but connection (\d+) "from .*" ran: nobody could hear of it sooner',
    'lock': r'waiting for timer (\d+) "\d\d\d ms"',
    'data': r'waiting for read (\d+) of connection \d+ "from .*", which comes from outside',
}


class Person:
    """Counts what is done."""

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


def why_is_the_slowest_request_slow():
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


def why_a_read_of_node_took_so_long():
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
            app.until_viewer('the part leads to who took it', lambda v, culprit=int(found[1]): v['selected'] == culprit)


def a_promise_alone_has_its_path_above_it():
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
    """What weft dump says of the promise of that label."""
    dump = subprocess.run([weft, 'dump', path], check=True, capture_output=True, text=True, timeout=60).stdout
    return next(line for line in dump.splitlines() if f'"{label}"' in line)


def labelled(path, label):
    """The id of the promise of that label."""
    return int(line_of(path, label).split()[1])


def what_an_arrow_means():
    """To point at it is enough; so it is at a line."""
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
        for away in range(5, 60, 3):  # whoever reads it may stand above or below
            for y in (line[3] - away, line[3] + away):
                app.at(line[2], y)
                viewer = app.settled()
                if 'read the result of' in viewer['tip']:
                    break
            else:
                continue
            break
        assert re.fullmatch(rf'\w+ \d+( "[^"]*")? read the result of timer {disk} "disk" at [\d.]+ .?s, (as soon as|.* after) it came', viewer['tip']), viewer['tip']
        assert person.actions == 0
        app.picture('arrow')


def what_all_the_time_was_waited_for():
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


def all_of_a_kind_are_folded():
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
        time.sleep(0.5)  # GTK counts no double click that begins soon after a click elsewhere
        app.click(line[1] + 5, height[one], times=2)
        app.until_viewer('a double click unfolds them', lambda v: v['folds'] == [] and len({p[3] for p in v['promises']}) == rows)


def rows_in_groups():
    """One key puts all of a kind together; so all of a library, and of a place in the source, are one line by one key."""
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


def each_action_by_its_key():
    """Whatever the window of shortcuts lists does something that a person sees, by its key and keys before it alone."""
    one = ['shift+Down']  # the first that is seen is selected
    actions = [([], key) for key in ('plus', 'space', 'S', 'o', 'L', 't', 'F9', 'slash', 'q', 'F', 'e', 'd', 's', 'question', 'G', 'shift+Down', 'ctrl+e')]
    actions += [(['plus', 'plus', 'plus', 'Right', 'Right', 'Right'], key) for key in ('Home', 'minus', 'Left', 'Right', 'Prior', 'Next', 'alt+Left')]
    actions += [(one, key) for key in ('z', 'h', 'l', 'M', 'i', 'b', 'B', 'j', 'J', 'K', 'Escape', 'shift+F10', 'y', 'shift+Down', 'ctrl+l')]
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
            if key in ('space', 'S', 'o', 'L', 't', 'F9'):
                app.key(key)
            if key == 'G':
                app.key('G', 'G', 'G')


def what_assistive_technology_reads():
    """Of a track, a finding and a row of the table: name, role, state."""
    import pyatspi
    with App(view, trace('connections')) as app:
        app.shown()
        app.key('Home', 'shift+Down')
        app.until_viewer('the first is selected', lambda v: v['selected'] is not None)

        def told(what):
            return app.which(lambda a: a.name == 'Promises of connections' and a.getRole() == pyatspi.ROLE_IMAGE and re.search(what, a.description))
        until('a track', lambda: told(r'^client 1, connection, promise \d+: begins at .*; a track of \d+ rows$'), app)
        app.key('b')
        until('a folded one', lambda: told(r'; a track, folded: what belongs to it, \d+ promises, is on its line$'), app)
        app.key('b')
        until('unfolded', lambda: told(r'; a track of \d+ rows$'), app)
        app.key('q')
        app.until('the table', lambda w: w['side'] == 'sorts' and w['sorts'])

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


def everything_of_one_connection_alone():
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


def the_time_between_two_events():
    """From where one request ends to where another begins, exactly, though the pointer was only near."""
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


def twenty_milliseconds_in_two_seconds_of_sleep():
    """They are seen at once; what is measured is as long as it was; one key shows the sleep."""
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


def where_a_good_run_and_a_bad_one_part():
    with App(view, '--compare', record('good'), record('bad')) as app:
        app.until('both', lambda w: len(w['viewers']) == 2 and not w['loading'] and w['explained'])
        app.shown()
        person = Person(app)
        person.key('e')
        window = app.until('where they part', lambda w: any(row[0] == 'evidence' and row[5] == 'order' for row in w['rows']))
        order = next(row[4] for row in window['rows'] if row[0] == 'evidence' and row[5] == 'order')
        assert 'resolves task' in order and 'the second bind' in order and 'signals condition' in order, order
        app.click_on(order)
        person.actions += 1
        good, bad = re.search(r'in the first run, bind \d+ resolves task (\d+)', order)[1], re.search(r'in the second bind \d+ signals condition (\d+)', order)[1]
        window = app.until('both lead there', lambda w: all(v['selected'] is not None for v in w['viewers']))
        assert person.actions == 2 and (good, bad) and window['viewers'][0]['from_ns'] == window['viewers'][1]['from_ns']
        app.picture('parted')


def ten_moves_and_ten_times_back():
    path = trace('lock')
    one = labelled(path, 'GET /item/1000')
    with App(view, path) as app:
        app.shown()

        def seen():
            """All that the picture is made of, but not what the pointer happens to be on."""
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


def the_sort_that_cost_most():
    with App(view, trace('dependency')) as app:
        app.shown()
        person = Person(app)
        person.key('q')
        window = app.until('the table', lambda w: w['side'] == 'sorts' and w['sorts'])
        sorts = [row[4] for row in window['sorts'] if row[0] == 'finding']
        assert sorts[:2] == ['request "GET /item/*"', 'timer "db query"'], sorts
        person.actions += 1
        app.click_on('request "GET /item/*"')
        app.until('its slowest', lambda w: any(row[0] == 'link' and row[4] == 'GET /item/1000' and row[5] == '30.2 ms' for row in w['sorts']))
        assert person.actions == 2
        app.picture('table')


sys.exit(run([why_is_the_slowest_request_slow, why_a_read_of_node_took_so_long, what_an_arrow_means, what_all_the_time_was_waited_for, a_promise_alone_has_its_path_above_it, all_of_a_kind_are_folded, rows_in_groups, each_action_by_its_key,
              what_assistive_technology_reads,
              everything_of_one_connection_alone, all_reads_are_folded, the_time_between_two_events, where_a_good_run_and_a_bad_one_part,
              twenty_milliseconds_in_two_seconds_of_sleep, ten_moves_and_ten_times_back, the_sort_that_cost_most]))
