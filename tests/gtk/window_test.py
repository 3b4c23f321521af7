#!/usr/bin/env python3
# window_test.py: the basic use of the window.  SPDX-License-Identifier: ISC
"""window_test.py WEFT-VIEW WEFT ARP GENERATE

WEFT_TEST_ONLY names tests, separated by spaces; WEFT_TEST_PICTURES is a folder for screenshots."""

import os
import subprocess
import sys

from person import App, run, under_a_desktop, until, xdo
from traces import Traces, span

under_a_desktop()
view, weft, arp, generate = map(os.path.abspath, sys.argv[1:5])
traces = Traces(arp, generate)
record, generated, folder = traces.record, traces.generated, traces.folder


def middle(viewer):
    return viewer['x'] + viewer['width'] / 2, viewer['y'] + viewer['height'] / 2


def colours(app):
    _, _, pixels = app.picture()
    return {pixels[i:i + 3] for i in range(0, len(pixels), 3 * 7)}


def trace_is_shown():
    with App(view, record('bad')) as app:
        viewer = app.shown()
        window = app.window()
        assert window['title'] == 'bad', window['title']
        assert viewer['events'] > 20 and len(viewer['promises']) > 10
        assert viewer['from_ns'] <= 0 and viewer['to_ns'] >= viewer['end_ns'], 'the whole trace is seen'
        until('what never came to its end is red', lambda: b'\xb8\x20\x29' in colours(app), app)
        app.picture('shown')


def wheel_and_drag_move_the_picture():
    with App(view, generated('random', '20k')) as app:
        before = app.shown()
        x, y = before['x'] + before['width'] / 4, before['y'] + before['height'] / 2
        under = before['from_ns'] + span(before) / 4
        app.wheel(x, y, 4)
        zoomed = app.until_viewer('the wheel zooms in', lambda v: span(v) < span(before))
        now_under = zoomed['from_ns'] + span(zoomed) / 4
        assert abs(now_under - under) < span(before) / 50, 'the time at the pointer stays there'
        all_five = span(before) * (span(zoomed) / span(before)) ** 5
        for _ in range(4):
            app.wheel(x, y, 4)
        zoomed = app.until_viewer('each notch zooms as much', lambda v: abs(span(v) - all_five) < all_five / 100)

        app.drag(x, y, 200, 0)
        panned = app.until_viewer(
            'the picture follows the pointer', lambda v: 190 < (zoomed['from_ns'] - v['from_ns']) * v['width'] / span(v) < 210)
        assert panned['selected'] is None, 'a drag selects nothing'

        app.drag(x, y, 0, 120)
        app.until_viewer('a drag moves the focus of the rows', lambda v: v['focus'] != panned['focus'])
        app.wheel(x, y, 5, 'shift')
        app.until_viewer('with shift the wheel pans', lambda v: v['from_ns'] != panned['from_ns'] and abs(span(v) - span(panned)) <= 2)
        app.wheel(x, y, 5)
        app.until_viewer('the other way the wheel zooms out', lambda v: span(v) > span(panned) * 1.1)


def keys_move_the_picture():
    with App(view, generated('random', '20k')) as app:
        before = app.shown()
        app.key('plus', 'plus', 'plus')
        zoomed = app.until_viewer('+ zooms in', lambda v: span(v) < span(before) / 3)
        app.key('Right')
        right = app.until_viewer('an arrow pans', lambda v: v['from_ns'] > zoomed['from_ns'])
        app.key('Left', 'Left')
        app.until_viewer('and back', lambda v: v['from_ns'] < right['from_ns'])
        app.key('Up')
        app.until_viewer('rows further up', lambda v: v['focus'] < right['focus'])
        app.key('minus')
        app.until_viewer('- zooms out', lambda v: span(v) > span(zoomed) * 1.3)
        app.key('Home')
        app.until_viewer('Home shows all', lambda v: v['from_ns'] <= 0 and v['to_ns'] >= v['end_ns'])


def scrollbars_show_and_move_the_view():
    with App(view, generated('random', '20k')) as app:
        viewer = app.shown()
        app.key('plus', 'plus', 'plus', 'plus')
        before = app.until_viewer('zoomed', lambda v: span(v) < span(viewer) / 5)
        bottom, right = viewer['y'] + viewer['height'] + 8, viewer['x'] + viewer['width'] + 8

        app.settled()
        app.drag(viewer['x'] + viewer['width'] * ((before['from_ns'] + span(before) / 2 - viewer['from_ns']) / span(viewer)), bottom,
                 viewer['width'] / 5, 0)
        later = app.until_viewer('dragging the scrollbar goes to a later time',
                                 lambda v: v['from_ns'] > before['from_ns'] + span(before) / 2 and span(v) == span(before))
        app.settled()
        app.drag(right, viewer['y'] + viewer['height'] * later['focus_share'], 0, 100)
        app.until_viewer('dragging the other goes to later rows', lambda v: v['focus'] > before['focus'])


def start_and_duration_accept_text():
    with App(view, generated('random', '20k')) as app:
        before = app.shown()
        app.key('d')
        app.until('a question', lambda w: w['dialogs'] == 1)
        app.key('ctrl+a')
        app.type('20us')
        app.until_viewer('the duration', lambda v: span(v) == 20000)
        app.key('Return')
        app.until('answered', lambda w: w['dialogs'] == 0)
        app.focus()
        app.key('s')
        app.until('a question', lambda w: w['dialogs'] == 1)
        app.key('ctrl+a')
        app.type('5us')
        app.until_viewer('the start', lambda v: abs(v['from_ns'] - 5000) <= 1 and abs(span(v) - 20000) <= 1)
        app.key('Escape')
        app.until('closed', lambda w: w['dialogs'] == 0)
        app.focus()
        app.key('at')
        app.until('a question', lambda w: w['dialogs'] == 1)
        app.key('ctrl+a')
        app.type('18us')
        app.until_viewer('the time is in the middle', lambda v: abs((v['from_ns'] + v['to_ns']) / 2 - 18000) <= 2 and abs(span(v) - 20000) <= 2)
        app.key('Return')
        app.until('answered', lambda w: w['dialogs'] == 0)
        assert before['end_ns'] > 25000


def unreadable_file_is_reported():
    path = os.path.join(folder, 'letter.txt')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('Dear all, this is no trace.\n')
    with App(view, path) as app:
        window = app.until('an error', lambda w: w['page'] == 'error')
        assert 'letter.txt' in window['error'] and 'trace' in window['error'], window['error']
        assert window['title'] == 'letter.txt'
        app.focus()
        app.click_on('Try ')
        app.until('it still is none', lambda w: w['page'] == 'error' and w['loads'] == 2)
        with open(generated('random', '20k'), 'rb') as trace, open(path, 'wb') as file:
            file.write(trace.read())
        app.until('it can be read by now', lambda w: w['page'] == 'view' and w['title'] == 'letter.txt')


def weft_view_starts_the_window():
    with App(weft, record('bad'), record('good')) as app:
        app.shown()
        assert [w['title'] for w in app.state()['windows']] == ['bad and 1 more'], app.brief()
    app = App(view, record('bad'), record('good'))
    with app:
        app.shown()
        until('a window for each trace', lambda: len(app.state()['windows']) == 2, app)
        assert sorted(w['title'] for w in app.state()['windows']) == ['bad', 'good']
    nowhere = {key: value for key, value in os.environ.items() if key != 'DISPLAY'}
    got = subprocess.run([weft, 'view', record('bad')], env=nowhere, capture_output=True, text=True, check=False, timeout=60)
    assert got.returncode == 2 and got.stderr.count('\n') == 1 and 'weft html' in got.stderr, got
    got = subprocess.run([view, record('bad')], env={**os.environ, 'DISPLAY': ':4242'}, capture_output=True, text=True, check=False, timeout=60)
    assert got.returncode == 2 and 'weft html' in got.stderr, got


def trace_is_read_from_standard_input():
    with open(generated('random', '20k'), 'rb') as trace:
        with App(view, '-', stdin=trace) as app:
            app.shown()
            assert app.window()['title'] == 'standard input'
            app.key('F5')  # completely read: no reload
            app.key('plus')
            app.until_viewer('it goes on', lambda v: v['from_ns'] > 0)


sys.exit(run([
    trace_is_shown,
    wheel_and_drag_move_the_picture,
    keys_move_the_picture,
    scrollbars_show_and_move_the_view,
    start_and_duration_accept_text,
    unreadable_file_is_reported,
    weft_view_starts_the_window,
    trace_is_read_from_standard_input,
]))
