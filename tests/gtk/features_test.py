#!/usr/bin/env python3
# features_test.py: features of the window with a trace.  SPDX-License-Identifier: ISC
"""features_test.py WEFT-VIEW ARP GENERATE

WEFT_TEST_ONLY names tests, separated by spaces; WEFT_TEST_PICTURES is a folder for screenshots."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from person import App, run, under_a_desktop, until, xdo
from traces import Traces, lost_in, span

under_a_desktop()
view, arp, generate = map(os.path.abspath, sys.argv[1:4])
traces = Traces(arp, generate)
record, generated, folder = traces.record, traces.generated, traces.folder
YELLOW, RED, BLUE = b'\xff\xdd\x33', b'\xb8\x20\x29', b'\x1f\x5f\xbf'  # found, failed, ran


def search_runs_while_typing():
    with App(view, generated('random', '20k')) as app:
        app.shown()
        before = app.share(YELLOW)
        app.key('slash')
        app.until('the search bar', lambda w: w['finding'] and w['typing'])
        app.type('disk')
        some = app.until_viewer('some are found', lambda v: v['search'] == 'disk' and not v['searching'] and v['found'] > 0)['found']
        until('they are yellow', lambda: app.share(YELLOW) > before + 1, app)
        app.picture('searching')
        listed = [row[4] for row in app.until('a list of them', lambda w: len(w['matches']) >= min(some, 100))['matches']]
        assert sum('disk' in name for name in listed) > 60 and (some <= 100 or listed[-1] == f'{some - 100:,} more matches after this list'), listed
        app.key('Return')
        first = app.until_viewer('the first is selected', lambda v: v['number'] == 1)['selected']
        app.until('with its number', lambda w: w['count'].startswith('1 of ') and w['matches'][0][2])
        app.key('Down', 'Down', 'Down', 'Return')
        app.until('keys walk in the list', lambda w: w['viewers'][0]['number'] == 3 and w['matches'][2][2] and w['count'].startswith('3 of '))
        app.key('Up', 'Up', 'Up')
        app.until('up again, into the text', lambda w: w['typing'])
        app.key('ctrl+g')
        app.until_viewer('the fourth', lambda v: v['number'] == 4)
        app.key('ctrl+shift+g', 'ctrl+shift+g', 'ctrl+shift+g')
        app.until_viewer('the first again', lambda v: v['number'] == 1 and v['selected'] == first)
        app.key('ctrl+g')
        app.until_viewer('the next', lambda v: v['number'] == 2 and v['selected'] != first)
        app.key('ctrl+shift+g', 'ctrl+shift+g')
        app.until_viewer('round the beginning, the last', lambda v: v['number'] == some)
        app.key('Escape')
        app.until('Escape ends the search', lambda w: not w['finding'] and w['viewers'][0]['found'] == 0)
        app.key('ctrl+f')
        app.until('the search bar', lambda w: w['finding'] and w['typing'])
        app.key('ctrl+a')
        app.type('longer:1ms')
        app.until_viewer('by how long', lambda v: v['search'] == 'longer:1ms' and not v['searching'] and v['found'] > 0)
        app.key('ctrl+a')
        app.type('longer:soon')
        app.until('what is wrong is said', lambda w: w['viewers'][0]['found'] == 0 and 'needs a duration' in w['count'])
        app.key('ctrl+a')
        app.type('nobody is called this')
        app.until('nothing', lambda w: w['count'] == 'not found')


def other_promises_are_dimmed():
    with App(view, generated('random', '20k')) as app:
        app.shown()
        found = {}
        for text in ('kind:task', 'id:7', 'failed', 'pending'):
            found[text] = app.find(text)['viewers'][0]['found']
            app.key('Return', 'Escape')
            app.until('closed', lambda w: not w['finding'])
        assert found['id:7'] == 1 and all(found.values()) and found['kind:task'] < 4000, found
        app.find('failed')
        app.focus_canvas()
        app.settled()
        # The runs are drawn below the dimmed lines, and matching lines above them.  Names at the left stay as they are.
        ran = app.share(BLUE)
        assert ran > 0.1, 'something ran'
        app.key('f')
        app.until_viewer('what does not match is dimmed', lambda v: v['filter'])
        until('no run is left', lambda: app.share(BLUE) < ran / 20, app)
        assert app.share(YELLOW) > 10, 'what matches is not dimmed'
        app.picture('dimmed')
        app.key('f')
        app.until_viewer('no longer', lambda v: not v['filter'])
        until('all is as it was', lambda: app.share(BLUE) > ran * 0.9, app)


def click_on_a_promise_selects_it_and_shows_it_in_the_panel():
    with App(view, record('bad')) as app:
        app.shown()
        app.key('F9')
        app.until('the panel', lambda w: w['panel'])
        viewer = app.settled()
        lost = lost_in(viewer)
        app.click(*app.place(lost))
        window = app.until('it is selected', lambda w: w['viewers'][0]['selected'] == lost)
        window = app.until('the panel tells of it', lambda w: 'never resolved' in w['facts'])
        assert 'Waits for' in window['facts'] and '100%' in window['facts'], window['facts']
        app.picture('panel')
        app.click(*app.empty_place())
        app.until_viewer('a click beside all selects nothing', lambda v: v['selected'] is None)


def tutorial_steps_work():
    """Finds the reason of the hang: the red line, its input, the input of that, and a condition that was signalled too early."""
    def click_next(facts):
        """Clicks the input; for a merged promise, the other promise; for a waiter at a condition, the condition that created it."""
        for heading in ('Waits for|', 'Became|', 'Created by|'):
            if '\n' + heading in facts:
                return app.click_on(facts.split('\n' + heading)[1].split('\n')[1].split('|')[0])
        raise AssertionError('nowhere to go from\n' + facts)

    with App(view, record('bad')) as app:
        app.shown()
        until('a red line stands out', lambda: app.share(RED) > 1, app)
        app.key('F9')
        viewer = app.settled()
        lost = lost_in(viewer)
        app.click(*app.place(lost))
        facts = app.until('the red line', lambda w: w['viewers'][0]['selected'] == lost and 'never resolved' in w['facts'])['facts']
        seen = [lost]
        while 'condition' not in facts.split('\n')[0]:
            app.settled()
            click_next(facts)
            seen.append(app.until_viewer('what it waits for', lambda v: v['selected'] not in (None, *seen))['selected'])
            facts = app.until('the panel follows', lambda w, before=facts: w['facts'] != before)['facts']
        assert len(seen) == 6, seen
        assert facts.startswith('ARP response|condition') and 'Signalled by|' in facts, facts
        app.picture('story')
        app.key('alt+Left')
        app.until_viewer('back', lambda v: v['selected'] == seen[-2])
        app.key('alt+Right')
        app.until_viewer('forward', lambda v: v['selected'] == seen[-1])


def keys_follow_links():
    with App(view, record('bad')) as app:
        app.shown()
        app.find('ring.write')
        app.key('Return', 'Escape')
        app.until('the write', lambda w: not w['finding'] and w['viewers'][0]['selected'] == 6)
        for key, where in (('r', 11), ('alt+Left', 6), ('w', 7), ('BackSpace', 6), ('r', 11), ('c', 4), ('BackSpace', 11), ('a', 13), ('alt+Left', 11),
                           ('alt+Right', 13)):
            app.key(key)
            app.until_viewer(f'{key} leads to {where}', lambda v, where=where: v['selected'] == where)
        before = span(app.viewer())
        app.key('z')
        app.until_viewer('z shows it large', lambda v: span(v) < before / 100)


def pointer_shows_a_tip():
    with App(view, record('bad')) as app:
        app.shown()
        app.key('F9')
        viewer = app.settled()
        lost = lost_in(viewer)
        other = next(number for number, *_ in viewer['promises'] if number != lost)
        app.click(*app.place(other))
        app.until('the panel tells of the selected one', lambda w: w['facts'] and w['side'] == 'promise' and 'never resolved' not in w['facts'])
        app.at(*app.place(lost))
        app.until('the panel tells of what is under the pointer', lambda w: 'never resolved' in w['facts'] and w['viewers'][0]['selected'] == other)
        app.at(*app.empty_place())
        app.until('and no longer', lambda w: 'never resolved' not in w['facts'])
        app.key('Escape')
        app.until('without a selection it summarizes the trace', lambda w: w['side'] == 'summary' and any(row[0] == 'sentence' for row in w['summary']))


def panel_links_select_promises():
    with App(view, record('bad')) as app:
        app.shown()
        app.key('F9')
        viewer = app.settled()
        lost = lost_in(viewer)
        app.click(*app.place(lost))
        app.until('the panel tells', lambda w: 'never resolved' in w['facts'])
        link = app.window()['facts'].split('Waits for|')[1].split('\n')[1].split('|')[0]
        app.at(10, 10)
        app.press_first(link)
        app.until_viewer('it leads there', lambda v: v['selected'] not in (None, lost))


def findings_select_their_promise():
    """Finds the same reason by the list of findings: from the warning button to the early signal."""
    with App(view, record('bad')) as app:
        app.shown()
        app.until('what went wrong is known', lambda w: w['explained'])
        app.key('S')  # sleep in its full length
        app.until('it is', lambda w: 'sleep' not in w['subtitle'])
        whole = app.settled()
        app.press_first('Findings: 1')
        app.until('the list', lambda w: w['panel'] and w['side'] == 'findings')
        app.press_first('Hang: bind')
        there = app.until_viewer('its chain is highlighted', lambda v: v['highlighting'] == 3 and v['found'] >= 4 and v['selected'] is not None)
        assert span(there) < span(whole) / 10, 'it is where it happened'
        window = app.until('its evidence', lambda w: 'but no promise waits for it yet' in w['findings'])
        assert window['findings'].startswith('*hang: ') and 'was signalled' in window['findings'] and 'too late' in window['findings']
        until('it is yellow', lambda: app.share(YELLOW) > 1, app)
        app.settled()
        app.picture('findings')
        signal_line = next(line.strip() for line in window['findings'].split('\n') if 'but no promise waits for it yet' in line)
        app.press_first(signal_line)
        app.until_viewer('who signalled is selected', lambda v: v['selected'] not in (None, there['selected']))
        app.focus_canvas()
        app.key('Escape')
        app.until_viewer('Escape ends the highlights', lambda v: v['found'] == 0 and v['highlighting'] == 0)
        app.key('e', 'Return')
        app.until_viewer('and the keyboard leads there again', lambda v: v['highlighting'] == 3)
        app.key('F5')
        app.until('read anew, the same is open', lambda w: w['loads'] == 2 and w['findings'].startswith('*hang: ')
                  and w['viewers'][0]['highlighting'] == 3)


def row_of_a_promise_in_flight_selects_the_promise():
    """Rows of a hung program in flight at its end, by mouse, by keys, and as assistive technology reads them."""
    import pyatspi
    with App(view, record('bad')) as app:
        app.shown()
        app.key('F')
        window = app.until('what is in flight', lambda w: w['side'] == 'live' and w['in_flight'])
        rows = window['in_flight']
        assert rows[0][0] == 'title' and rows[0][4] == 'At the end of the trace' and '7 in flight' in rows[0][5], rows[0]
        assert [row[4].split(' (')[0] for row in rows if row[0] == 'summary'] == ['Types', 'In flight', 'Waits', 'Threads', 'Counters'], rows
        main = next(row for row in rows if row[0] == 'entry' and 'finally for' in row[5])
        assert main[4] == 'bind 9 "main"' and main[5].startswith('waits 2.0'), main

        def told():
            return app.which(lambda a: a.getRole() == pyatspi.ROLE_PUSH_BUTTON and a.name == main[4] and 'finally for task 14 "ARP response"' in a.description)
        app.act('pressed', lambda: next(iter(until('it is told of', told, app)), None))
        app.until_viewer('it leads there', lambda v: v['selected'] == 9)
        # The first type has the focus; it opens, its promises are listed below, and the keyboard moves to the first of them.
        app.focus_canvas()
        app.key('Escape', 'F', 'Return')
        app.until('open', lambda w: any(row[0] == 'finding' and row[2] for row in w['in_flight']) and len(w['in_flight']) == len(rows) + 1)
        app.key('Down', 'Return')
        app.until_viewer('by keys', lambda v: v['selected'] == 1)


def healthy_trace_has_no_findings():
    with App(view, record('good')) as app:
        app.shown()
        app.until('it was looked for', lambda w: w['explained'])
        app.key('e')
        app.until('it is said', lambda w: w['panel'] and w['side'] == 'findings' and w['findings'] == 'Nothing found')


def why_question_is_answered():
    with App(view, record('bad')) as app:
        app.shown()
        app.key('F9')
        viewer = app.settled()
        lost = lost_in(viewer)
        app.key('y')
        app.click(*app.place(lost))
        app.until('the panel tells of it', lambda w: 'never resolved' in w['facts'])
        assert 'why' not in app.window()['findings'], 'nobody has asked'
        app.press('Why?')
        app.until('the answer', lambda w: w['side'] == 'findings' and w['findings'].startswith('*why: ') or w['findings'].startswith('*hang: '))
        app.until_viewer('its chain is highlighted', lambda v: v['highlighting'] == 3 and v['selected'] == lost)
        app.settled()
        app.picture('why')
        app.key('F5')
        app.until('of the trace read anew too', lambda w: w['loads'] == 2 and w['explained'] and w['findings'].startswith('*'))
        app.press('Close the answer')
        app.until('one finding is left', lambda w: w['findings'].count('hang: ') == 1)
        app.settled()
        app.click(*app.place(lost), button=3)
        app.choose('Why this state?')
        app.until('the answer again', lambda w: w['findings'].startswith('*'))
        app.press('Close the answer')
        app.until('closed', lambda w: not w['findings'].startswith('*'))
        app.focus_canvas()
        app.click(*app.place(lost))
        app.key('shift+F10')  # the menu without a pointer
        until('the menu', lambda: app.accessible('Why this state?'), app)
        # A key that comes before the menu has the keyboard is lost: press it again.
        until('no menu', lambda: app.key('Escape') or not app.accessible('Why this state?'), app)


def selection_is_read_by_assistive_technology():
    with App(view, record('bad')) as app:
        app.shown()
        viewer = app.settled()
        lost = lost_in(viewer)
        app.click(*app.place(lost))
        app.until_viewer('selected', lambda v: v['selected'] == lost)

        def told():
            return app.which(lambda a: a.name == 'Promises of bad' and 'main' in a.description)
        until('the picture is described', told, app)
        names = set()
        app.which(lambda a: names.add(a.name))
        assert {'Find', 'Side Panel', 'Main Menu', 'Time', 'Rows'} <= names, names


def double_click_highlights_all_promises_of_a_merged_chain():
    with App(view, generated('tail', '2k')) as app:
        app.shown()
        app.key('plus', 'plus', 'plus')
        viewer = app.settled()
        number = next(p[0] for p in viewer['promises'] if p[2] - p[1] > 4 and p[1] > viewer['x'] + 20)
        app.click(*app.place(number), times=2)
        app.until_viewer('highlighted', lambda v: v['found'] > 1 and v['highlighting'] == 2)
        app.key('Escape')
        app.until_viewer('Escape ends that', lambda v: v['found'] == 0)


def menu_and_space_hide_metrics():
    with App(view, record('bad')) as app:
        app.shown()
        app.key('space')
        app.until_viewer('hidden', lambda v: not v['metrics'])
        app.key('space')
        app.until_viewer('shown', lambda v: v['metrics'])
        app.settled()
        app.click(*app.empty_place(), button=3)
        app.choose('tcp-to-ip')
        app.until_viewer('one is hidden', lambda v: v['hidden'] == ['tcp-to-ip'])


def thread_rows_have_names():
    with App(view, generated('random', '20k', '--format=native', '--streams=3', '--kernel=2k', name='kernel')) as app:
        app.shown()
        app.key('space')
        app.until_viewer('only OS threads below the promises', lambda v: not v['metrics'])
        viewer = app.settled()
        bottom = viewer['y'] + viewer['height'] - 14
        app.at(viewer['x'] + viewer['width'] / 2, bottom)
        app.until_viewer('the lowest lane tells of an OS thread', lambda v: 'worker-2 (tid 1002)' in v['tip'])
        app.picture('os-threads')
        app.key('T')
        app.at(viewer['x'] + viewer['width'] / 2 + 3, bottom)
        app.until_viewer('without lanes', lambda v: 'tid' not in v['tip'])
        app.key('T')
        app.at(viewer['x'] + viewer['width'] / 2, bottom)
        app.until_viewer('with lanes', lambda v: 'worker-2 (tid 1002)' in v['tip'])
        app.key('period')
        app.until_viewer('the next time that a promise ran without a processor', lambda v: v['selected'] is not None)
        until('it is heard', lambda: app.which(lambda a: a.name.startswith('Promises of') and 'had to wait' in a.description), app)


def key_m_zooms_to_the_measured_interval():
    with App(view, generated('random', '20k')) as app:
        app.shown()
        viewer = app.settled()
        x, y = viewer['x'] + 300, viewer['y'] + 200
        app.drag(x, y, 200, 0, 'shift')
        measured = app.until_viewer('a span', lambda v: v.get('span') and v['pointer'] == 0)
        length = abs(measured['span'][1] - measured['span'][0]) * viewer['width'] / span(viewer)
        assert 190 < length < 210, length
        app.key('m')
        zoomed = app.until_viewer('it fills the window', lambda v: span(v) < span(viewer) / 3)
        assert zoomed['from_ns'] <= min(measured['span']) + 1 and zoomed['to_ns'] >= max(measured['span']) - 1


def table_can_be_sorted_filtered_and_limited_to_the_measured_interval():
    """A heading sorts, a text filters, a measured span has its table at once, and the edge makes the panel wider."""
    def names(window):
        return [row[4] for row in window['types'] if row[0] == 'finding']

    with App(view, generated('random', '20k')) as app:
        app.shown()
        app.key('q')
        before = app.until('the table', lambda w: w['side'] == 'types' and len(names(w)) > 3)
        assert [row[4] for row in before['types'] if row[0] == 'column'] == ['count', 'p50', 'p99', 'max', 'total', 'ran', 'ready', 'failed']
        assert before['canvas'][2] > 640, before['canvas']
        app.press_first('Sort by number of promises')

        def counts(window):
            return [int(row[5].replace(',', '')) for row in window['types'] if row[0] == 'finding']
        app.until('the most frequent first', lambda w: counts(w) and counts(w) == sorted(counts(w), reverse=True) and names(w) != names(before))
        viewer = app.settled()
        app.drag(viewer['x'] + 200, viewer['y'] + 200, 100, 0, 'shift')
        app.until('the table of the span', lambda w: w['types'][0][4] == 'Measured interval' and sum(counts(w)) < sum(counts(before)))
        app.focus_canvas()
        app.key('Escape')
        app.until('the whole trace again', lambda w: w['types'][0][4] == 'Whole trace')
        wide = app.window()['canvas']
        app.drag(wide[0] + wide[2] + 20, wide[1] + 300, -100, 0)
        narrow = app.until('a wider panel', lambda w: w['canvas'][2] < wide[2] - 60)['canvas']
        app.click(narrow[0] + narrow[2] + 120, narrow[1] + 65)  # the text field above the table
        subprocess.run(['xdotool', 'type', 'CONDITION'], check=True, timeout=60)
        app.until('only those', lambda w: names(w) and len(names(w)) < len(names(before)) and all('condition' in name for name in names(w)))


def overview_moves_the_picture():
    with App(view, generated('random', '20k')) as app:
        app.shown()
        app.key('plus', 'plus', 'plus', 'plus')
        before = app.settled()
        app.drag(before['x'] + before['width'] / 2, before['y'] - 50, before['width'] / 5, 0)
        app.until_viewer('a later part', lambda v: v['from_ns'] > before['from_ns'] + span(before) / 2)


def picture_is_exported():
    with App(view, record('bad'), chooser=True) as app:
        app.shown()
        out = os.path.join(folder, 'seen.svg')
        height = app.settled()['height']
        app.key('ctrl+e')
        app.until('where to', lambda w: w['dialogs'] == 1)
        app.focus_dialog()
        app.key('ctrl+a')
        app.type(out)
        app.key('Return')
        until('it is written', lambda: os.path.exists(out) and os.path.getsize(out) > 500, app)
        app.until('and said', lambda w: 'seen.svg' in w['toast'])
        with open(out, encoding='utf-8') as file:
            text = file.read()
        assert '<svg' in text and 'tcp-to-ip' in text
        assert re.search(r'>trace [^<]* shown from 0 ns to [^<]*<', text) and 'waits for a promise' not in text, text[-2000:]
        # Everything is at the same place as in the window; the times and two lines about the trace are below.
        assert abs(float(re.search(r'<svg[^>]* height="(\d+)"', text)[1]) - height - 16 - 46) < 2, (text[:200], height)


def changed_file_is_reloaded():
    path = generated('random', '20k', name='changing')
    with App(view, path) as app:
        app.shown()
        app.key('plus', 'plus')
        before = app.settled()
        shutil.copyfile(generated('random', '10k'), path)
        app.key('F5')
        after = app.until_viewer('the file as it is now', lambda v: v['events'] == 10000)
        assert after['from_ns'] > 0 and before['events'] == 20000
        os.truncate(path, 10)
        app.key('F5')
        app.until('that it cannot be read', lambda w: w['error'])
        app.key('plus')
        app.until_viewer('what was read is still shown', lambda v: v['events'] == 10000 and span(v) < span(after))
        os.unlink(path)
        app.key('F5')
        app.until('that it is gone', lambda w: 'no such' in w['error'].lower() or 'changing' in w['error'])
        with open(path, 'wb') as file:
            file.write(os.urandom(100000))
        app.key('F5', 'Home')
        app.until_viewer('still shown', lambda v: v['from_ns'] <= 0)


def following_is_paused_and_resumed():
    path = os.path.join(folder, 'growing')
    with open(generated('random', '20k'), 'rb') as file:
        whole = file.read()
    with open(path, 'wb') as file:
        file.write(whole[:len(whole) // 4])
    with App(view, path) as app:
        first = app.shown()['events']
        with open(path, 'ab') as file:
            file.write(whole[len(whole) // 4:len(whole) // 2])
        app.until('it has changed', lambda w: w['live'] and not w['follows'])
        assert app.viewer()['events'] == first
        app.key('F')
        said = app.until('what is in flight', lambda w: w['side'] == 'live' and w['in_flight'])['in_flight'][0]
        app.press('Follow')
        second = app.until_viewer('it follows', lambda v: v['events'] > first)['events']
        app.until('so does what is in flight', lambda w: w['in_flight'][0] != said)
        with open(path, 'ab') as file:
            file.write(whole[len(whole) // 2:])
        third = app.until_viewer('and goes on', lambda v: v['events'] > second)['events']
        # A button that is held during a reload is still the one that is released.
        app.settled()
        window = app.window()
        sort = next(row for row in window['in_flight'] if row[0] == 'finding')
        app.at(*app.place_of(sort[4]))
        xdo('mousedown', 1)
        os.replace(generated('random', '30k'), path)
        app.until_viewer('another one', lambda v: v['events'] > third)
        xdo('mouseup', 1)
        app.until('it is open, of the newer trace', lambda w: any(row[2] and row[4] == sort[4] for row in w['in_flight']) and w['in_flight'][0] != window['in_flight'][0])


def two_traces_are_compared():
    with App(view, '--compare', record('good'), record('bad')) as app:
        app.until('both', lambda w: len(w['viewers']) == 2 and not w['loading'] and w['explained'])
        app.shown()
        assert app.window()['active'] == 0
        app.click_on('Findings: 1')
        app.until('of the second trace', lambda w: w['active'] == 1 and '\nhang: ' in w['findings'] and w['panel'])
        app.focus_canvas()
        app.key('F9')
        app.until('without the panel', lambda w: not w['panel'])
        viewer = app.settled()
        app.wheel(viewer['x'] + 300, viewer['y'] + 60, 4)
        app.until('both zoom', lambda w: w['viewers'][0]['from_ns'] == w['viewers'][1]['from_ns'] and span(w['viewers'][0]) < span(viewer)
                  and w['viewers'][0]['to_ns'] == w['viewers'][1]['to_ns'])
        app.picture('compared')
        app.find('arp')
        app.until('the same is highlighted in both', lambda w: all(v['found'] > 0 for v in w['viewers']))
        app.key('Escape')
        app.until('closed', lambda w: not w['finding'])
        app.key('x')
        app.until('axes apart', lambda w: w['free'])
        app.wheel(viewer['x'] + 300, viewer['y'] + 60, 4)
        app.until('only one zooms', lambda w: span(w['viewers'][0]) < span(w['viewers'][1]))


def dark_theme_follows_the_desktop():
    with App(view, record('bad'), env={'ADW_DEBUG_COLOR_SCHEME': 'prefer-dark'}) as app:
        app.shown()
        app.until('dark', lambda w: w['dark'])
        width, _, pixels = app.picture('dark')
        at = 3 * (width * 400 + 400)
        assert sum(pixels[at:at + 3]) < 3 * 80, pixels[at:at + 3].hex()


def text_size_follows_the_desktop():
    config = os.path.join(folder, 'xsettings')
    with open(config, 'w', encoding='utf-8') as file:
        file.write('Xft/DPI 98304\n')
    desktop = subprocess.Popen(['xsettingsd', '-c', config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with App(view, record('bad')) as app:
            app.shown()
            app.until_viewer('as it is', lambda v: v['scale'] == 1)
            with open(config, 'w', encoding='utf-8') as file:
                file.write('Xft/DPI 147456\n')
            desktop.send_signal(signal.SIGHUP)
            app.until_viewer('1.5 times as large', lambda v: v['scale'] == 1.5)
            app.picture('large')
    finally:
        desktop.terminate()
        desktop.wait()


def high_dpi_screen_has_sharp_pictures():
    with App(view, record('bad'), env={'GDK_SCALE': '2'}, width=550, height=350) as app:
        app.until('shown', lambda w: w['page'] == 'view' and w['device_scale'] == 2)
        app.shown()
        width, height, pixels = app.picture()
        assert width >= 1000, width
        rows = [pixels[3 * width * y:3 * width * (y + 1)] for y in range(200, height - 60)]
        assert any(rows[i] != rows[i + 1] for i in range(0, len(rows) - 1, 2)), 'no picture that was only enlarged'


def settings_are_kept():
    home = tempfile.mkdtemp(dir=folder)
    with App(view, record('bad'), home=home) as app:
        app.shown()
        app.key('F9')
        app.until('the panel', lambda w: w['panel'])
    with App(view, record('bad'), home=home) as app:
        app.shown()
        assert app.window()['panel']


def damage_is_reported():
    path = generated('random', '20k', name='damaged')
    with open(path, 'r+b') as file:
        file.seek(200000)
        file.write(os.urandom(4000))
    with App(view, path) as app:
        app.shown()
        app.until('what is damaged', lambda w: len(w['notice']) > 20)


def windows_can_be_closed_while_they_load():
    path = generated('random', '1M', '--format=native')
    with App(view, path) as app:
        app.until('a window', lambda w: True)
        app.focus()
    with App(view, path) as app:
        app.shown()
        app.key('F5')
    app = App(view, *[record('bad')] * 10, *[generated('random', '20k')] * 10)
    with app:
        until('20 windows', lambda: len(app.state()['windows']) == 20 and all(w['page'] == 'view' for w in app.state()['windows']), app, patience=240)


def row_names_are_at_the_left():
    with App(view, record('bad'), width=1000) as app:
        viewer = app.shown()
        left = app.window()['canvas'][0]
        gutter = viewer['x'] - left
        assert 150 < gutter < 250 and viewer['width'] == app.window()['width'] - gutter, viewer
        promise, _, _, y = next(p for p in viewer['promises'] if p[2] - p[1] > 100)
        app.click(left + 60, y)
        app.until_viewer('a click on a name selects', lambda v: v['selected'] is not None and abs(app.place(v['selected'])[1] - y) < 3)
        app.at(left + 70, y)
        app.until_viewer('the whole name is beside the pointer', lambda v: v['tip'] != '')
        app.picture('names')
        app.drag(viewer['x'] - 1, y, 90, 0)
        app.until_viewer('the strip is as wide as it was dragged', lambda v: abs(v['x'] - left - gutter - 90) < 6)
        app.key('R')
        app.until_viewer('hidden', lambda v: v['x'] == left and v['width'] == app.window()['width'])
        app.key('R')
        app.until_viewer('shown again, as wide', lambda v: abs(v['x'] - left - gutter - 90) < 6)


def shortcuts_are_listed():
    with App(view, record('bad')) as app:
        app.shown()
        app.key('question')
        app.until('a window of keys', lambda w: w['dialogs'] == 1)
        app.picture('shortcuts')
        keys = next(w for w in app.xwindows() if w != app.xwindow)
        size = xdo('getwindowgeometry', '--shell', keys)
        assert int(re.search(r'HEIGHT=(\d+)', size)[1]) <= 720, size
        app.key('Escape')
        app.until('closed', lambda w: w['dialogs'] == 0)


sys.exit(run([
    search_runs_while_typing,
    other_promises_are_dimmed,
    click_on_a_promise_selects_it_and_shows_it_in_the_panel,
    tutorial_steps_work,
    keys_follow_links,
    pointer_shows_a_tip,
    panel_links_select_promises,
    findings_select_their_promise,
    row_of_a_promise_in_flight_selects_the_promise,
    healthy_trace_has_no_findings,
    why_question_is_answered,
    selection_is_read_by_assistive_technology,
    double_click_highlights_all_promises_of_a_merged_chain,
    menu_and_space_hide_metrics,
    thread_rows_have_names,
    key_m_zooms_to_the_measured_interval,
    table_can_be_sorted_filtered_and_limited_to_the_measured_interval,
    overview_moves_the_picture,
    picture_is_exported,
    changed_file_is_reloaded,
    following_is_paused_and_resumed,
    two_traces_are_compared,
    dark_theme_follows_the_desktop,
    text_size_follows_the_desktop,
    high_dpi_screen_has_sharp_pictures,
    settings_are_kept,
    damage_is_reported,
    windows_can_be_closed_while_they_load,
    row_names_are_at_the_left,
    shortcuts_are_listed,
]))
