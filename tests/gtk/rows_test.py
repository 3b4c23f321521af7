#!/usr/bin/env python3
# rows_test.py: window and page show the same summary, findings and promises in flight, word for word, and weft info the same summary.  SPDX-License-Identifier: ISC
"""rows_test.py WEFT-VIEW WEFT ARP PLANTED DRIVER HTTP-SERVER EXAMPLE...

The traces: the examples, and a program with each fault that can be planted, recorded whole, into a ring and cut short.  HTTP-SERVER may be
empty."""

import json
import os
import re
import subprocess
import sys
import tempfile

from person import App, run, under_a_desktop

here = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(here, '..', 'promise'))
from http_server import Server, get

under_a_desktop()
view, weft, arp, planted, driver = map(os.path.abspath, sys.argv[1:6])
http_server = sys.argv[6] and os.path.abspath(sys.argv[6])
examples = [path for path in map(os.path.abspath, sys.argv[7:]) if os.path.basename(path) != 'arp']
folder = tempfile.mkdtemp(prefix='rows-', dir=os.environ['WEFT_TEST_DESKTOP'])
OPENED = 3  # as in rows.mjs


def traces():
    for mode in ('good', 'bad'):
        path = os.path.join(folder, 'arp-' + mode)
        subprocess.run([arp, mode], env={**os.environ, 'WEFT_TRACE': path}, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        yield path
    for program in examples:
        path = os.path.join(folder, os.path.basename(program))
        subprocess.run([program], env={**os.environ, 'WEFT_TRACE': path}, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=60)
        yield path
    for end in ('ended', 'killed') if http_server else ():
        yield served(os.path.join(folder, 'http-' + end), end)
    for fault in range(8):
        for how in ('whole', 'wrapped', 'cut'):
            path = os.path.join(folder, f'planted-{fault}-{how}')
            subprocess.run([planted, '--show', how, str(fault), '1', path], check=True, stdout=subprocess.DEVNULL, timeout=60)
            if subprocess.run([weft, 'info', path], capture_output=True, check=False, timeout=60).returncode == 0:
                yield path  # a trace that is cut before its first event is invalid


def served(path, end):
    """Records the file server with a client that gets a file and a missing one, and a client that never sends its request."""
    with Server(http_server, here, trace=path) as server, server.connect() as client, server.connect() as silent:
        for name, status in (('rows_test.py', 200), ('nothing', 404)):
            client.send(get('/' + name))
            assert client.answer()[0] == status
        silent.send(b'GET ')
        if end == 'killed':
            server.kill()
    return path


def of_window(path):
    """Returns the rows of the summary and of findings, then the latter with each of the first few opened in turn; then the rows in flight at the end."""
    with App(view, path) as app:
        app.shown()
        app.key('F9')
        app.until('it is explained', lambda w: w['explained'])
        summary = app.until('the summary', lambda w: w['side'] == 'summary' and any(row[0] == 'heading' and row[4] in ('Hang', 'Findings') for row in w['summary']))['summary']
        app.key('e')

        def known(window):
            return window['rows'] and all(row[0] != 'working' for row in window['rows']) and window['side'] == 'findings'
        said = [app.until('findings', known)['rows']]
        names = [f'{row[5]}: {row[4]}' for row in said[0] if row[0] == 'finding']
        said.insert(0, summary)
        for name in list(dict.fromkeys(names))[:OPENED]:
            app.press_first(name)
            said.append(app.until('it is open', lambda w, name=name: any(row[2] and f'{row[5]}: {row[4]}' == name for row in w['rows']))['rows'])
        app.key('F')
        return said + [app.until('what is in flight', lambda w: w['side'] == 'live' and w['in_flight'])['in_flight']]


def compare_with_info(path, summary):
    """weft info ends with the sentences of the panel, with the numbers and findings that the panel shows as such."""
    info = subprocess.run([weft, 'info', path], check=True, capture_output=True, text=True, timeout=60).stdout
    lines = info.split('\nsummary\n')[1]
    for kind, _, _, _, name, value in summary:
        if kind in ('sentence', 'finding') and not (kind == 'sentence' and '; slowest' in name):
            assert name[1:].replace('µ', 'u') in lines, (path, name, lines)
        if kind == 'figure':
            assert value.replace('µ', 'u') in lines, (path, value, lines)
    if '/http-' in path:
        assert re.search(r' served 2 requests (\(\S+\) )?on ', lines), lines


def window_and_page_show_the_same_rows():
    fetched = subprocess.run([os.path.join(here, '..', 'web', 'driver'), driver], timeout=300, check=False).returncode
    if fetched == 77:  # the difference is printed
        sys.exit(77)
    assert fetched == 0, fetched
    paths = list(traces())
    pages = [path + '.html' for path in paths]
    for path, page in zip(paths, pages):
        subprocess.run([weft, 'html', path, '-o', page], check=True, timeout=60)
    got = subprocess.run(['node', os.path.join(here, '..', 'web', 'rows.mjs'), driver, *pages], check=True, stdout=subprocess.PIPE, text=True, timeout=600)
    of_pages = [json.loads(line) for line in got.stdout.splitlines()]
    assert len(of_pages) == len(paths)
    kinds, tones, total = set(), set(), 0
    for path, page in zip(paths, of_pages):
        window = of_window(path)
        assert window == page, f'{path}\nwindow: {json.dumps(window, indent=1)}\npage: {json.dumps(page, indent=1)}'
        compare_with_info(path, page[0])
        total += sum(map(len, page))
        kinds |= {row[0] for rows in page for row in rows}
        tones |= {row[1] for rows in page for row in rows}
    print(f'{len(paths)} traces, {total} rows, of kinds {sorted(kinds)}, in tones {sorted(tones)}')
    assert {'summary', 'finding', 'heading', 'evidence', 'text', 'nothing', 'entry', 'fact', 'title', 'sentence', 'figure'} <= kinds and {'alarm', 'doubt', 'plain'} <= tones


sys.exit(run([window_and_page_show_the_same_rows]))
