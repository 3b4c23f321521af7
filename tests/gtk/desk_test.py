#!/usr/bin/env python3
# desk_test.py: the window on the desktop: opening traces, live traces, and appearance.
# SPDX-License-Identifier: ISC
"""desk_test.py WEFT-VIEW WEFT ARP GENERATE DRAG PICTURES STEPS

PICTURES is the folder of those to compare with; WEFT_TEST_RECORD=1 records them again.  WEFT_TEST_ONLY names tests, separated by spaces;
WEFT_TEST_PICTURES is a folder for screenshots."""

import json
import os
import re
import subprocess
import sys
import tempfile

from person import App, run, under_a_desktop, until, xdo
from traces import Traces

under_a_desktop()
view, weft, arp, generate, drag, pictures, steps = map(os.path.abspath, sys.argv[1:8])
traces = Traces(arp, generate)
record, generated, folder = traces.record, traces.generated, traces.folder


# ---- Opening traces ----

def trace_is_chosen_in_a_dialog():
    with App(view, chooser=True) as app:
        app.until('an empty window', lambda w: w['page'] == 'empty')
        app.focus()
        app.key('ctrl+o')
        app.until('a dialog', lambda w: w['dialogs'] == 1)
        app.focus_dialog()
        app.type(os.path.join(record('bad'), 'metadata'))  # each file of a trace folder opens the folder
        app.key('Return')
        app.until('the trace', lambda w: w['page'] == 'view' and w['title'] == 'bad' and w['dialogs'] == 0)
        app.focus()
        app.key('ctrl+shift+o')
        app.until('a dialog', lambda w: w['dialogs'] == 1)
        app.focus_dialog()
        app.type(generated('random', '20k'))
        app.key('Return')
        app.until('compared', lambda w: len(w['viewers']) == 2 and 'random-20k' in w['title'])


def dropped_file_is_opened():
    with App(view) as app:
        app.until('an empty window', lambda w: w['page'] == 'empty')
        app.focus()
        with app.drag_in(drag, generated('random', '20k')):
            app.until('it is shown', lambda w: w['page'] == 'view' and w['title'] == 'random-20k')
        with app.drag_in(drag, os.path.join(record('good'), 'metadata')):
            until('one more has a window of its own', lambda: sorted(w['title'] for w in app.state()['windows']) == ['good', 'random-20k'], app)


def recent_traces_are_listed():
    home = tempfile.mkdtemp(dir=folder)
    with App(view, record('bad'), home=home) as app:
        app.shown()
        until('it is kept', lambda: os.path.exists(os.path.join(home, 'data', 'recently-used.xbel')), app)
    with App(view, home=home) as app:
        app.until('an empty window', lambda w: w['page'] == 'empty')
        app.focus()
        app.click_on('Recent Traces')
        app.choose('bad')
        app.until('the trace of before', lambda w: w['page'] == 'view' and w['title'] == 'bad')


def events_of(path):
    """Returns the number of events, which differs between recordings."""
    info = subprocess.run([weft, 'info', '--json', path], check=True, capture_output=True, text=True, timeout=60)
    return json.loads(info.stdout.split('\n')[0])['events']


def live_recording_is_followed():
    path = traces.path('live')
    program = subprocess.Popen([arp, 'bad'], env={**os.environ, 'WEFT_TRACE': path}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until('a recording begins', lambda: os.path.exists(os.path.join(path, 'metadata')))
        with App(view, path) as app:
            app.until('some of it', lambda w: w['viewers'] and w['viewers'][0]['events'] > 0)
            program.wait()
            events = events_of(path)
            app.until('all of it, and that it has ended', lambda w: w['viewers'][0]['events'] == events and not w['live'] and not w['loading'])
            app.shown()
    finally:
        program.wait()


def window_opened_by_record_follows_the_command():
    """weft record --view: the window is there while the command runs, and after it."""
    path, dump = traces.path('watched'), traces.path('watched.json')
    command = subprocess.Popen([weft, 'record', '--view', '-o', path, '--', arp, 'bad'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**os.environ, 'WEFT_VIEW_DUMP': dump, 'XDG_CONFIG_HOME': traces.path('config'), 'XDG_DATA_HOME': traces.path('data')})

    def window():
        if not os.path.exists(dump):
            return None
        with open(dump, encoding='utf-8') as file:
            return next(iter(json.load(file)['windows']), None)

    def is_everything_visible():
        now = window()
        return now and now['viewers'] and now['viewers'][0]['events'] == events and not now['live'] and not now['loading']
    until('a window opens', window)
    command.wait(60)
    name, = os.listdir(path)
    events = events_of(os.path.join(path, name))
    until('it has seen the whole', is_everything_visible)
    seen = subprocess.run(['xdotool', 'search', '--onlyvisible', '--name', f'^{name}$'], capture_output=True, text=True, check=True).stdout.split()
    xdo('windowfocus', '--sync', seen[-1])
    until('it has the focus', lambda: window()['focused'])
    xdo('key', 'ctrl+q')
    until('it is closed', lambda: subprocess.run(['xdotool', 'search', '--onlyvisible', '--name', f'^{name}$'], capture_output=True, check=False).returncode)


def newest_part_of_a_large_ring_is_followed():
    path = traces.path('large')
    program = subprocess.Popen([steps, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def do(tasks):
        """Each task is five events."""
        program.stdin.write(f'{tasks}\n')
        program.stdin.flush()
        assert program.stdout.readline() == 'done\n'
    try:
        program.stdout.readline()
        do(110000)
        with App(view, path) as app:
            app.until('all of it', lambda w: w['viewers'] and w['viewers'][0]['events'] >= 550000 and w['live'] and not w['loading'])
            app.shown()
            shown = app.viewer()['events']
            for _ in range(10):
                do(55000)
                now = app.until_viewer('what is new', lambda v, shown=shown: v['events'] != shown)['events']
                if now < shown:
                    break
                shown = now
            assert now < shown and now >= 250000, (now, shown)
            app.find('client')  # pending since the start of the program
            app.until_viewer('it is known', lambda v: v['found'] == 1)
            app.key('Escape')
            app.focus_canvas()
            app.press('Follow')
            app.until('it holds still', lambda w: not w['follows'])
            app.key('F5')
            app.until_viewer('all that there is', lambda v: v['events'] > shown)
            app.press('Follow')
            app.until('it follows', lambda w: w['follows'])
            program.stdin.close()
            program.wait()
            events = events_of(path)
            app.until('all of it, and that it has ended', lambda w: w['viewers'][0]['events'] == events and not w['live'] and not w['loading'])
    finally:
        program.stdin.close()
        program.wait()


def link_restores_the_view():
    """A link that explain prints, and a link that was copied in the window."""
    run_explain = subprocess.run([weft, 'explain', '--json', record('bad')], capture_output=True, text=True, check=False, timeout=60)
    finding = json.loads(run_explain.stdout.split('\n')[0])
    with App(weft, 'view', '--place=' + finding['link'], record('bad')) as app:
        app.shown()
        there = app.until_viewer('where it happened', lambda v: v['selected'] == finding['root'] and v['from_ns'] >= 0)
        assert there['from_ns'] <= finding['start_ns'] and there['to_ns'] >= finding['end_ns'], (there['from_ns'], finding)
        app.find('port')
        app.key('Escape')
        app.focus_canvas()
        app.key('plus', 'f')
        left = app.settled()
        app.key('ctrl+l')
        app.until('it is copied', lambda w: 'copied' in w['toast'])
        app.key('slash')
        app.until('the search bar', lambda w: w['typing'])
        app.key('ctrl+a', 'ctrl+v')
        link = app.until_viewer('the link, in the search', lambda v: v['search'].startswith('#t='))['search']
    with App(view, '--place', link, record('bad')) as app:
        app.shown()
        app.until_viewer('the same place', lambda v: (v['from_ns'], v['to_ns'], v['selected'], v['filter']) ==
                         (left['from_ns'], left['to_ns'], left['selected'], left['filter']))
    with App(view, '--place=#sel=4242', record('bad')) as app:
        app.shown()
        app.until('what is wrong with it', lambda w: 'no promise 4242' in w['toast'])


# ---- During loading ----

def never_read(app):
    return app.until('it reads what never comes', lambda w: w['page'] == 'loading' and w['loading'])


def two_traces_share_one_picture():
    """Several processes on one clock, in one window."""
    events = sum(json.loads(subprocess.run([weft, 'info', '--json', trace], capture_output=True, text=True, check=True).stdout.splitlines()[0])['events']
                 for trace in (record('good'), record('bad')))
    with App(weft, 'view', record('good'), record('bad')) as app:
        app.until('one picture', lambda w: w['page'] == 'view' and not w['loading'] and w['explained'])
        assert len(app.state()['windows']) == 1 and len(app.window()['viewers']) == 1, app.brief()
        assert app.viewer()['events'] >= events and 'and 1 more' in app.window()['title'], app.brief()
        app.click_on('Findings: 1')
        app.until('it is listed', lambda w: 'hang: ' in w['findings'])


def session_is_one_picture():
    """The folder of weft record opens all programs in it, also those that start later."""
    session = os.path.join(folder, 'session')
    subprocess.run([weft, 'record', '-o', session, '--', 'sh', '-c', f'{arp} good; {arp} good'], capture_output=True, check=False, timeout=60)
    events = 0
    for name in os.listdir(session):
        events += json.loads(subprocess.run([weft, 'info', '--json', os.path.join(session, name)], capture_output=True, text=True, check=True).stdout.splitlines()[0])['events']
    for command in ([view, session], [weft, 'view', session]):
        with App(*command) as app:
            app.until('one picture', lambda w: w['page'] == 'view' and not w['loading'])
            assert len(app.state()['windows']) == 1 and app.window()['title'] == 'session' and app.viewer()['events'] >= events, app.brief()
    with App(view, session) as app:
        app.shown()
        subprocess.run([arp, 'good'], env={**os.environ, 'WEFT_TRACE': os.path.join(session, 'later')}, capture_output=True, check=False, timeout=60)
        app.key('ctrl+r')
        app.until_viewer('the third is there, too', lambda v: v['events'] > events * 5 // 4)


def reading_is_cancelled():
    out, into = os.pipe()
    try:
        with App(view, '-', stdin=out) as app:
            never_read(app)
            app.focus()
            app.picture('loading')
            app.click_on('Cancel')
            app.until('it is called off', lambda w: w['page'] == 'error' and not w['loading'] and 'cancelled' in w['error'].lower())
            app.picture('cancelled')
    finally:
        os.close(out)
        os.close(into)


def window_closes_while_reading():
    out, into = os.pipe()
    try:
        with App(view, '-', stdin=out) as app:
            never_read(app)
            app.focus()
            app.key('ctrl+w')
            app.process.wait(60)
    finally:
        os.close(out)
        os.close(into)
    app = App(view, *[generated('random', '20k'), record('bad')] * 10)
    with app:
        until('20 windows', lambda: len(app.state()['windows']) == 20, app)
        app.xwindow = app.xwindows()[-1]
        app.key('ctrl+w')  # in any state
        until('one less', lambda: len(app.state()['windows']) < 20, app)
        until('the others show theirs', lambda: all(w['page'] == 'view' and w['explained'] for w in app.state()['windows']), app)
        app.xwindow = None


def shown_trace_survives_file_changes():
    """The file changes or vanishes, and the window follows it."""
    path = generated('random', '20k', name='fragile')
    with open(path, 'rb') as file:
        whole = file.read()
    with App(view, path) as app:
        app.shown()
        os.utime(path)
        app.until('it has changed', lambda w: w['live'])
        app.press('Follow')
        app.until('it follows', lambda w: w['follows'] and not w['live'])
        with open(path, 'wb') as file:
            file.write(whole[:len(whole) // 2])
        half = app.until_viewer('it has shrunk', lambda v: v['events'] < 20000)['events']
        os.unlink(path)
        app.until('it has vanished', lambda w: 'fragile' in w['error'])
        with open(path, 'wb') as file:
            file.write(b'garbage' * 5000)
        app.until('it is garbage', lambda w: 'trace' in w['error'] and 'no such' not in w['error'].lower())
        assert app.viewer()['events'] == half
        app.focus()
        app.key('plus', 'e')
        app.until('what was shown still is', lambda w: w['side'] == 'findings' and w['viewers'][0]['from_ns'] > 0)
        with open(path, 'wb') as file:
            file.write(whole)
        app.until_viewer('and it is back', lambda v: v['events'] == 20000)


# ---- Appearance ----

def colours_are_chosen():
    home = tempfile.mkdtemp(dir=folder)
    with App(view, record('bad'), home=home) as app:
        app.shown()
        assert not app.window()['dark']
        app.click_on('Main Menu')
        app.choose('Colours')
        app.choose('Dark')
        app.until('dark', lambda w: w['dark'])
        app.key('Escape', 'Escape')
        app.settled()
        app.picture('dark-chosen')
    with App(view, record('bad'), home=home) as app:
        app.shown()
        app.until('still dark', lambda w: w['dark'])


def one_counter_can_be_hidden_in_the_menu():
    with App(view, generated('crowd', '5k')) as app:
        app.shown()
        app.click_on('Main Menu')
        app.choose('Show or Hide Counters')
        switches = app.which(lambda one: re.fullmatch(r'.*\d', one.name or '') and 'GtkM' not in one.name)
        # Only a few are queried: GTK leaks memory with each query.
        chosen = next(one.name for one in switches if app.accessible(one.name).queryAction().nActions > 0)
        app.choose(chosen)
        app.until_viewer('one is hidden', lambda v: v['hidden'] == [chosen])


def key_t_changes_the_times_of_the_ruler():
    with App(view, record('bad')) as app:
        app.shown()
        app.settled()
        _, _, before = app.picture()
        app.key('t')
        until('the ruler has other times', lambda: app.picture()[2] != before, app)
        app.settled()
        app.picture('clock')


def matches_picture(app, name):
    """Checks that the canvas, scaled to a quarter, equals the picture of that name; tolerates differences of fonts and rounding."""
    app.settled()
    x, y, width, height = app.window()['canvas']
    crop = ['-crop', f'{width}x{height}+{x}+{y}', '+repage', '-resize', '25%', '-depth', '8']

    def take_screenshot():
        shot = subprocess.run(['import', '-window', app.xwindow, *crop, 'ppm:-'], check=True, capture_output=True, timeout=60)
        return shot.stdout
    golden = os.path.join(pictures, name + '.png')
    if os.environ.get('WEFT_TEST_RECORD'):
        subprocess.run(['convert', 'ppm:-', '+dither', '-colors', '40', '-strip', 'png8:' + golden], input=take_screenshot(), check=True, timeout=60)
    wanted = subprocess.run(['convert', golden, '-depth', '8', 'ppm:-'], check=True, capture_output=True, timeout=60).stdout

    def is_like_golden():
        got = take_screenshot()
        header = len(b'\n'.join(wanted.split(b'\n', 3)[:3])) + 1
        if got[:header] != wanted[:header]:
            return False
        other = sum(abs(a - b) > 40 for a, b in zip(got[header:], wanted[header:]))
        return other < 0.005 * (len(wanted) - header)
    try:
        until(f'the picture {name}', is_like_golden, app, patience=30)
    except AssertionError:
        app.picture('not-' + name)
        raise


def pictures_match_goldens():
    with App(view, generated('random', '20k')) as app:
        app.shown()
        matches_picture(app, 'whole')
        app.find('disk')
        app.key('Escape')
        app.until('closed', lambda w: not w['finding'])
        app.find('pending')
        app.until_viewer('found', lambda v: v['found'] > 0)
        app.key('Return')
        app.focus_canvas()
        viewer = app.viewer()
        for _ in range(12):
            app.wheel(viewer['x'] + viewer['width'] / 2, viewer['y'] + viewer['height'] / 2, 4)
        app.at(3, 3)
        matches_picture(app, 'zoomed')
    with App(view, generated('random', '20k'), env={'ADW_DEBUG_COLOR_SCHEME': 'prefer-dark'}) as app:
        app.shown()
        app.key('o')
        app.at(3, 3)
        matches_picture(app, 'dark')


sys.exit(run([
    trace_is_chosen_in_a_dialog,
    dropped_file_is_opened,
    recent_traces_are_listed,
    live_recording_is_followed,
    window_opened_by_record_follows_the_command,
    newest_part_of_a_large_ring_is_followed,
    link_restores_the_view,
    two_traces_share_one_picture,
    session_is_one_picture,
    reading_is_cancelled,
    window_closes_while_reading,
    shown_trace_survives_file_changes,
    colours_are_chosen,
    one_counter_can_be_hidden_in_the_menu,
    key_t_changes_the_times_of_the_ruler,
    pictures_match_goldens,
]))
