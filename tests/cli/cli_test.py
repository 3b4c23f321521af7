#!/usr/bin/env python3
# cli_test.py: the command as a user meets it: exact output and exit status.  SPDX-License-Identifier: ISC
"""cli_test.py [--record] WEFT GENERATE

Runs WEFT on small traces, some of them made by GENERATE, and compares its output with the files in expected/; --record writes these files instead."""

import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
record = sys.argv[1] == '--record'
weft = os.path.abspath(sys.argv[2 if record else 1])
generate = os.path.abspath(sys.argv[3 if record else 2])
failures = checks = 0


def check(ok, what, *details):
    global failures, checks
    checks += 1
    if not ok:
        failures += 1
        print('FAILED:', what)
        for detail in details:
            print('   ', detail)


def run(*args, stdin=b'', env=None):
    return subprocess.run([weft, *args], input=stdin, capture_output=True, cwd=here, env=dict(os.environ, **(env or {})), timeout=60)


def expect(name, *args, status=0, stdin=b'', shown=lambda out: out):
    """Compares the output of these arguments, on stdout and stderr, with expected/NAME; shown() makes the output readable."""
    got = run(*args, stdin=stdin)
    # The best row depends on the layout; the tests of the layout check it.
    text = re.sub(rb'(\brow"?:? ?)\d+', rb'\1N', shown(got.stdout)) + (b'--- stderr\n' + got.stderr if got.stderr else b'') + b'--- status %d\n' % got.returncode
    path = os.path.join(here, 'expected', name)
    if record:
        with open(path, 'wb') as file:
            file.write(text)
        return
    with open(path, 'rb') as file:
        wanted = file.read()
    if text != wanted:
        with tempfile.NamedTemporaryFile(suffix=name) as file:
            file.write(text)
            file.flush()
            diff = subprocess.run(['diff', '-u', path, file.name], capture_output=True, text=True).stdout
        check(False, 'weft ' + ' '.join(args), *diff.splitlines()[:30])
    else:
        check(got.returncode == status, 'weft ' + ' '.join(args), f'status {got.returncode}, not {status}')


def says(stderr, *args, status=2, stdin=b''):
    """Expects one line on stderr, and nothing on stdout."""
    got = run(*args, stdin=stdin)
    check((got.stdout, got.stderr.decode(), got.returncode) == (b'', stderr + '\n' if stderr else '', status), 'weft ' + ' '.join(args),
          f'status {got.returncode}', f'stdout {got.stdout[:200]}', f'stderr {got.stderr.decode()!r}', f'wanted {stderr!r}')


with open(os.path.join(here, 'small.sexp'), 'rb') as file:
    small = file.read()

# --- a Xen domain: every verb that takes a trace gets each form of the domain's name

for args in (['info', '-d', 'nobody'], ['explain', '-dnobody'], ['save', '--domain', 'nobody', '-w', '-'], ['events', '--domain=nobody'],
             ['diff', 'small.sexp', '-d', 'nobody'], ['-d', 'nobody', '-w', '-'], ['dump', 'xen:nobody']):
    got = run(*args)
    # The machine and the build of weft decide at which step weft fails.
    check(got.returncode == 2 and re.fullmatch(rb'weft: xen:nobody: [^\n]*\n', got.stderr) and not got.stdout, 'weft ' + ' '.join(args), got)
says('weft render: unknown value: --group=colour; use kind, site, library or thread', 'render', '-o', 'x.png', '--group=colour', 'small.sexp')
says('weft render: --fold=longer:soon: longer: needs a duration, for example longer:5ms', 'render', '-o', 'x.png', '--fold=longer:soon', 'small.sexp')
says('weft info: no value: --domain; use --domain=NAME|ID', 'info', '-d')
says('weft record: unknown option: -d; weft record --help lists them', 'record', '-d', 'x')
says('weft diff: too many traces: xen:x', 'diff', 'small.sexp', 'small.sexp', '-d', 'x')

has_page = b'was built without' not in run('html', '--help').stderr

# --- output of the verbs

for verb in ['info', 'events', 'dump', 'stats']:
    expect(verb + '.txt', verb, 'small.sexp')
    expect(verb + '.json', verb, '--json', 'small.sexp')
expect('dump-no-simplify.json', 'dump', '--json', '--no-simplify', 'small.sexp')
expect('stats-table.txt', 'stats', '--table', '--sort=max', 'small.sexp')
expect('stats-table.json', 'stats', '--table', '--json', '--from=1us', '--to=2us', 'small.sexp')
says('weft stats: unknown column: --sort=name; use total, max, p99, p50, count, running, ready or failed', 'stats', '--table', '--sort=name', 'small.sexp')
says('weft stats: --sort, --from and --to need --table or --requests', 'stats', '--sort=max', 'small.sexp')
expect('events-absolute.txt', 'events', '--absolute', 'small.sexp')
for verb in ['', 'view', 'info', 'events', 'dump', 'stats', 'explain', 'waits', 'path', 'diff', 'check', 'top', 'watch', 'render', 'html', 'serve', 'convert', 'record', 'save']:
    without = run(verb or '--help', '--help').stderr.decode()
    if 'built without' in without:
        print('skipped:', without.strip())
        continue
    expect(f'help{"-" if verb else ""}{verb}.txt', *filter(None, [verb]), '--help')
    got = run(*filter(None, [verb]), '--version')
    check(got.stdout.startswith(b'weft ') and got.stdout.count(b'\n') == (1 if verb else 12) and not got.returncode, f'weft {verb} --version')

for verb in ['info', 'events', 'dump', 'stats']:
    for line in run(verb, '--json', 'small.sexp').stdout.splitlines():
        check(isinstance(json.loads(line), dict), f'weft {verb} --json: an object a line', line)

# --- input: the same trace gives the same output from a file, a pipe and by any name

direct = run('events', 'small.sexp').stdout
check(run('events', '-', stdin=small).stdout == direct, 'standard input')
with tempfile.TemporaryDirectory() as tmp:
    odd = os.path.join(tmp, 'x.ctf')
    with open(odd, 'wb') as file:
        file.write(small)
    check(run('events', odd).stdout == direct, 'the format is told from the bytes')
    check(run('events', '--', odd).stdout == direct, '-- ends the options')
    check(run('events', odd, '--json').stdout == run('events', '--json', odd).stdout, 'options stand anywhere')

    # --- damage: intact parts are shown, the rest is reported, and the exit status is 0
    damaged = os.path.join(tmp, 'damaged')
    with open(damaged, 'wb') as file:
        file.write(small + b'((time 100.1)(op(Nonsense)))\n((time 100.2)(op(Swi')
    got = run('events', damaged)
    check(got.stdout == direct and got.returncode == 0, 'a damaged trace is read as far as it is whole')
    check(got.stderr.decode().splitlines() == [
        f'weft: {damaged}: unknown operation; the line is skipped (offset 0x{len(small):x}); 29 bytes skipped',
        f'weft: {damaged}: the file ends in the middle of an event; the line is skipped (offset 0x{len(small) + 29:x}); 20 bytes skipped',
    ], 'what is skipped is told', got.stderr.decode())
    info = json.loads(run('info', '--json', damaged).stdout)
    check(info['skipped_count'] == 2 and info['skipped'][0]['bytes'] == 29, 'info tells too', info)

    # --- labels with any bytes: the JSON stays valid, and no control sequence reaches a terminal
    hostile = os.path.join(tmp, 'hostile')
    with open(hostile, 'wb') as file:
        file.write(b'((time 1)(op(Creates -1 1)))\n((time 1)(op(Label 1 "\xff\x1b[2J\xc3\xa9\xc2\x9b")))\n')
    line = run('events', '--json', hostile).stdout.splitlines()[1]
    check(json.loads(line)['text'] == '\ufffd\x1b[2J\u00e9\x9b', 'labels that are not UTF-8', line)
    for verb in ['events', 'dump', 'info', 'stats']:
        for options in [[], ['--json']]:
            check(b'\x1b' not in run(verb, *options, hostile).stdout, f'weft {verb}: no control characters')

    # --- convert
    for form, options in (('folded', ['--by=run']), ('folded', ['--by=wait']), ('chrome', []), ('perfetto', [])):
        expect('-'.join(['convert', form, *options]).replace('--by=', '') + '.txt', 'convert', 'small.sexp', '-o', '-', '--to=' + form, *options,
               shown=(lambda out: out.hex(' ', 32).replace(' ', '\n').encode() + b'\n') if form == 'perfetto' else lambda out: out)
    database = os.path.join(tmp, 'small.db')
    if b'without SQLite' not in run('convert', 'small.sexp', '-o', database, '--to=sqlite').stderr:
        with sqlite3.connect(database) as db:
            db.execute('UPDATE promise SET row = NULL')
            expect('convert-sqlite.txt', 'convert', 'small.sexp', '--to=sqlite', '-o', os.path.join(tmp, 'again.db'),
                   shown=lambda out: ''.join(line + '\n' for line in db.iterdump()).encode())
        db.close()
    mirage = os.path.join(tmp, 'small.ctf')
    says('', 'convert', 'small.sexp', '-o', mirage, '--to=mirage', status=0)
    check(run('events', '--json', mirage).stdout == run('events', '--json', 'small.sexp').stdout, 'convert --to=mirage keeps the events')
    with open(mirage, 'rb') as file:
        check(run('convert', mirage, '--to', 'mirage', '--output=-').stdout == file.read(), 'convert to standard output, and twice is once')
    check(run('info', '--json', mirage).stdout.startswith(b'{"trace":') and json.loads(run('info', '--json', mirage).stdout)['format'] == 'mirage',
          'converted to mirage')
    native = os.path.join(tmp, 'small.weft')
    says('', 'convert', mirage, '-o', native + '/', '--to=native', status=0)
    check(run('events', '--json', native).stdout == run('events', '--json', mirage).stdout, 'convert --to=native keeps the events')
    with open(mirage, 'rb') as file:
        check(run('convert', native, '--to=mirage', '-o-').stdout == file.read(), 'mirage to native to mirage is the same')
    metadata = os.path.join(native, 'metadata')
    state = b'state      not finished: the program is still recording, or was killed\n'
    check(state not in run('info', native).stdout and not json.loads(run('info', '--json', native).stdout)['unfinished'], 'a finished trace')
    with open(metadata, 'rb') as file:
        finished = file.read()
    with open(metadata, 'wb') as file:
        file.write(finished.replace(b'"finished"', b'"recording"'))
    check(state in run('info', native).stdout and json.loads(run('info', '--json', native).stdout)['unfinished'], 'the trace of a killed program')
    with open(metadata, 'wb') as file:
        file.write(finished)
    says(f'weft: {native}: already exists', 'convert', mirage, '-o', native, '--to=native')
    says(f'weft: {mirage}: already exists', 'convert', mirage, '-o', mirage, '--to=native')
    says('weft convert: a native trace is a directory and cannot go to standard output; use -o OUT', 'convert', mirage, '-o', '-', '--to=native')
    says(f'weft: {tmp}/none/x: No such file or directory', 'convert', 'small.sexp', '-o', f'{tmp}/none/x', '--to=native')
    before = os.listdir(tmp)
    says(f'weft: {tmp}/none/x: No such file or directory', 'convert', 'small.sexp', '-o', f'{tmp}/none/x', '--to=mirage')
    says('weft: nowhere: No such file or directory', 'convert', 'nowhere', '-o', f'{tmp}/y', '--to=mirage')
    check(os.listdir(tmp) == before, 'a failed convert leaves nothing behind')

    # --- generated traces with every event that a recorder writes, with several OS threads, and with odd but legal events
    for shape in ['random', 'odd']:
        traces = {}
        for form in ['native', 'mirage']:
            traces[form] = os.path.join(tmp, f'{shape}.{form}')
            subprocess.run([generate, shape, '--events=2000', '--seed=3', '--streams=3', '--format=' + form, '-o', traces[form]], check=True)
        for form, trace in traces.items():
            answers = {verb: [json.loads(line) for line in run(verb, '--json', trace).stdout.splitlines()]
                       for verb in ['info', 'events', 'dump', 'stats']}
            info = answers['info'][0]
            what = f'{shape}, {form}: '
            check(info['format'] == form and len(info['streams']) == (3 if form == 'native' else 1), what + 'info', info)
            check(info['events'] == len(answers['events']) == sum(info['events_by_kind'].values()), what + 'events are counted')
            check(info['promises'] == sum(info['promises_by_kind'].values()) == sum(info['ends'].values()), what + 'promises are counted')
            promises = [p for p in answers['dump'] if 'promise' in p and p['promise'] != -1]
            check(len(promises) == info['promises'] == sum(s['count'] for s in answers['stats']), what + 'dump and stats have them all')
            check(all(p['end'] in ('resolved', 'failed', 'became', 'pending') and p['row'] >= 0 for p in promises), what + 'dump')
            check([c['counter'] for c in answers['dump'] if 'counter' in c] == info['counters'], what + 'counters')
            check(sum('pause' in p for p in answers['dump']) == info['pauses']['count'], what + 'pauses')
            for verb, lines in answers.items():
                text = run(verb, trace).stdout
                wanted = {'info': 20, 'stats': 4 * len(lines)}.get(verb, len(lines))
                check(text.count(b'\n') == wanted or verb == 'info' and text.count(b'\n') > wanted, what + f'{verb} for people')
            again = trace + '.native'
            got = run('convert', trace, '--to=native', '-o', again)
            check(got.returncode == 0, what + 'to native', got.stderr)
            check(run('events', '--json', '--absolute', again).stdout == run('events', '--json', '--absolute', trace).stdout, what + 'the same in native')
            check(run('events', again).stdout == run('events', trace).stdout, what + 'the same for people')
            got = run('convert', trace, '--to=mirage', '-o', trace + '.ctf')
            notes = [line for line in got.stderr.decode().splitlines() if line.startswith(f'weft: {trace}.ctf: not expressible in mirage and dropped: ')]
            check(got.returncode == 0 and len(notes) == (form == 'native'), what + 'one note of what mirage lacks', got.stderr)
            got = run('render', trace, '-o', os.path.join(tmp, 'generated.svg'))
            check(got.returncode == 0, what + 'render', got.stderr)
    # A picture shows the number of an OS thread only if another thread has the same name.
    for name in os.listdir(traces['native']):
        with open(os.path.join(traces['native'], name), 'r+b') as file:
            packets = file.read().replace(b'worker-2', b'worker-1')
            file.seek(0)
            file.write(packets)
    run('render', traces['native'], '-o', os.path.join(tmp, 'generated.svg'))
    with open(os.path.join(tmp, 'generated.svg'), 'rb') as file:
        bands = re.findall(b'>(main|worker-1)( \\d+)?<', file.read())
    check(set(bands) == {(b'main', b''), (b'worker-1', b' 1001'), (b'worker-1', b' 1002')}, 'OS threads that are called alike', bands)
    mirage_again = run('convert', traces['mirage'] + '.native', '--to=mirage', '-o-')
    with open(traces['mirage'] + '.ctf', 'rb') as file:
        check(mirage_again.stdout == file.read(), 'generated: mirage to native to mirage is the same')

    # --- html: tests/web checks the page itself
    if has_page:
        page = os.path.join(tmp, 'page.html')
        says('', 'html', '--compare', 'small.sexp', native, '-o', page, status=0)
        with open(page, 'rb') as file:
            whole = file.read()
        check(whole.startswith(b'<!doctype html>') and whole.count(b'class="trace"') == 2, 'html: one file with two traces')
        check(run('html', '--compare', 'small.sexp', native, '-o', '-').stdout == whole, 'html to standard output: the same bytes')
        without = len(run('html', 'small.sexp', '-o', '-').stdout) - 400
        check(without <= 520_000, f'html: the page without its trace is at most 520 kB, not {without}')
        says('', 'html', '--empty', '-o', page, status=0)
        with open(page, 'rb') as file:
            empty = file.read()
        check(b'<title>weft</title>' in empty and b'class="trace"' not in empty, 'html --empty: no trace')
        says('weft html: --empty takes no trace: small.sexp', 'html', '--empty', 'small.sexp', '-o', page)
        site = os.path.join(tmp, 'site')
        for _ in range(2):  # the second run replaces the files of the first
            says('', 'html', 'small.sexp', '-o', site, status=0)
        check(sorted(os.listdir(site)) == ['index.html', 'trace-1.gz', 'weft.js'], 'html: a directory', os.listdir(site))
        with open(os.path.join(site, 'index.html'), 'w') as file:
            file.write('<!doctype html>my own')
        says(f'weft: {site}/index.html: already exists, and weft did not write it', 'html', 'small.sexp', '-o', site)
        says('weft html: no output; use -o OUT.html or -o DIRECTORY', 'html', 'small.sexp')
        says('weft: none: No such file or directory', 'html', 'small.sexp', 'none', '-o', page)

    # --- render
    for suffix, magic in [('svg', b'<'), ('png', b'\x89PNG'), ('pdf', b'%PDF')]:
        picture = os.path.join(tmp, 'p.' + suffix)
        says('', 'render', 'small.sexp', '-o', picture, '--size=640x360', status=0)
        with open(picture, 'rb') as file:
            first = file.read()
        check(first.startswith(magic), f'render: a {suffix}')
        says('', 'render', 'small.sexp', '-o' + picture, '--size', '640x360', status=0)
        with open(picture, 'rb') as file:
            check(file.read() == first, f'render: the same {suffix} again')
    svg = os.path.join(tmp, 'p.svg')

    def drawn(*options):
        says('', 'render', 'small.sexp', '-o', svg, *options, status=0)
        with open(svg, 'rb') as file:
            return file.read()

    whole = drawn()
    check(b'main loop' in whole and b'requests' in whole, 'render: labels and counters')
    check(drawn('--no-metrics').count(b'requests') < whole.count(b'requests'), 'render --no-metrics')
    for options in [['--from=5us'], ['--to', '0.02ms'], ['--find=main'], ['--dark']]:
        check(drawn(*options) != whole, f'render {options[0]} shows')
    alone = drawn('--focus=2', '--from=0us', '--to=29us')
    check(b'read "a' in alone or b'read &quot;a' in alone, 'render --focus shows it')
    check(b'main loop' not in alone and b'answered' not in alone, 'render --focus shows nothing else')
    table = [re.split('  +', line.strip()) for line in run('stats', 'small.sexp', '--table').stdout.decode().splitlines()]
    below = re.findall(r'y="([0-9.]+)"[^>]*>([^<]*)</text>', drawn('--table', '--size=1280x900').decode())
    rows = [' '.join(text for at, text in below if at == y) for y in dict.fromkeys(y for y, _ in below)]
    check(len(table) > 3 and all(' '.join(row).replace('"', '&quot;').replace(' us', ' µs') in [re.sub('"', '&quot;', r) for r in rows] for row in table[:3]), f'render --table: {table[:3]} in {rows}')
    check(drawn('--table').count(b'</text>') > whole.count(b'</text>'), 'render --table')
    check(re.search(rb'Waiting time: [0-9.]+ .{0,2}s in total, of \d+ promises', drawn('--blame')) and b'Waiting time' not in whole, 'render --blame')
    other = os.path.join(tmp, 'without-wait.sexp')
    with open(os.path.join(here, 'small.sexp'), 'rb') as file, open(other, 'wb') as out:
        out.writelines(line for line in file if b' 4 ' not in line)
    changed, same = drawn('--blame', f'--against={other}'), drawn('--blame', '--against=small.sexp')
    check(all(re.search(rb'fill="#' + colour + rb'" fill-opacity', changed) and not re.search(rb'fill="#' + colour + rb'" fill-opacity', same) for colour in (b'b82029', b'1f5fbf')),
          'render --blame --against: red and blue')
    check(b'; red: a larger share than in small.sexp, blue: a smaller one' in same, 'render --against')
    says('weft render: --against needs --blame', 'render', 'small.sexp', '-o', svg, '--against=small.sexp')
    says(f'weft: {svg}: there is no space above the table; use a larger --size=WxH', 'render', 'small.sexp', '-o', svg, '--table', '--size=200x90')
    says('weft: small.sexp: the trace has no promise 99', 'render', 'small.sexp', '-o', svg, '--focus=99')
    says('weft render: not a promise but the system: --focus=-1', 'render', 'small.sexp', '-o', svg, '--focus=-1')
    says('weft: small.sexp: no promise matches "walrus"', 'render', 'small.sexp', '-o', svg, '--find', 'walrus', status=0)
    says('weft: small.sexp: the trace ends at 29.0 us, before --from', 'render', 'small.sexp', '-o', svg, '--from=1ms')
    says('weft render: --from is not before --to', 'render', 'small.sexp', '-o', svg, '--from=2us', '--to=1us')
    says('weft render: unknown picture format: x.gif; use a name that ends in .svg, .png or .pdf', 'render', 'small.sexp', '-o', 'x.gif')
    got = run('render', 'small.sexp', '-o', tmp + '/none/p.svg')
    check(got.returncode == 2 and got.stderr.startswith(f'weft: {tmp}/none/p.svg: '.encode()), 'render: a folder that is not there', got.stderr)

# --- usage

says('weft: no verb; weft --help lists them')
says('weft: neither a verb nor a trace: frobnicate; weft --help lists the verbs', 'frobnicate')
says('weft: neither a verb nor a trace: --json; weft --help lists the verbs', '--json')
says("weft help: neither a verb nor a finding: frobnicate; weft --help and weft help findings list them", 'help', 'frobnicate')
says("weft help: neither a verb nor a finding: small.sexp; weft --help and weft help findings list them", 'help', 'small.sexp')
for words in [['help'], ['help', 'render']]:
    check(run(*words).stdout == run(*words[1:], '--help').stdout, 'help is --help', words)
says('weft info: no trace; usage: weft info [OPTIONS] TRACE...', 'info')
says('weft diff: too many traces: c', 'diff', 'a', 'b', 'c')
says('weft info: unknown option: --jsn; weft info --help lists them', 'info', '--jsn', 'a')
says('weft info: unknown option: -x; weft info --help lists them', 'info', '-x', 'a')
says('weft info: --json takes no value', 'info', '--json=1', 'a')
says('weft render: no value: --size; use --size=WxH', 'render', 'a', '--size')
says('weft render: no value: --size; use --size=WxH', 'render', 'a', '--size=')
for size in ['1', 'x', '1x', '1x2x3', '0x5', '1 x 2', '-1x5', '123456x1']:
    says(f'weft render: not a size: --size={size}; use two numbers, such as 1280x720', 'render', 'a', '--size', size)
for time in ['1', 'ms', '-1ms', '1.2.3s', '.s', '1 ms', '99999999999999s', '1h']:
    says(f'weft render: not a time: --from={time}; use a number with ns, us, ms or s', 'render', 'a', '--from', time)
says('weft render: no output; use -o PICTURE, which ends in .svg, .png or .pdf', 'render', 'a')
says('weft convert: no format; use --to=mirage, native, perfetto, chrome, firefox, folded, sqlite or otlp', 'convert', 'a', '-o', 'b')
says('weft convert: unknown format: --to=json; use mirage, native, perfetto, chrome, firefox, folded, sqlite or otlp', 'convert', 'a', '-o', 'b', '--to=json')
says('weft convert: no output; use -o OUT', 'convert', 'a', '--to=mirage')

# --- weft diff of two runs: different ports and durations are no differences; a number that both runs have counts as a name

with tempfile.TemporaryDirectory() as tmp:
    def record_run(name, *labels):
        path = f'{tmp}/{name}.sexp'
        with open(path, 'w', encoding='ascii') as file:
            for number, label in enumerate(labels, 1):
                file.write(f'((time 100.{number:06d}000)(op(Creates -1 {number} wait)))\n((time 100.{number:06d}500)(op(Label {number} "{label}")))\n')
        return path

    def differences(*runs):
        return [json.loads(line)['text'] for line in run('diff', '--json', *runs).stdout.splitlines() if b'"text"' in line]

    workers = [f'worker {number}' for number in (1, 2, 3)]
    first = record_run('first', 'from [::ffff:127.0.0.1]:48620', 'from [::ffff:127.0.0.1]:48634', '875 ms', *workers)
    again = record_run('again', 'from [::ffff:127.0.0.1]:51002', 'from [::ffff:127.0.0.1]:51018', '912 ms', *workers)
    fewer = record_run('fewer', 'from [::ffff:127.0.0.1]:39870', '912 ms', workers[0], workers[2])
    check(differences(first, again) == [], 'weft diff: ports and durations are no differences', differences(first, again))
    check(differences(first, fewer) == ['"from [::ffff:*]:*": the first run has 2, the second run has 1', '"worker 2": the first run has 1, the second run has 0'],
          'weft diff: a missing promise of a pattern, and one with a name', differences(first, fewer))

# --- errors in the input

says('weft: nowhere: No such file or directory', 'info', 'nowhere')
says('weft: new?line: No such file or directory', 'info', 'new\nline')
says('weft: /dev/null: the file is empty', 'info', '/dev/null')
with tempfile.TemporaryDirectory() as tmp:
    # A trace that has only a header without an event cannot be read.
    cut, out = tmp + '/cut.ctf', tmp + '/out'
    with open(cut, 'wb') as file:
        file.write(run('convert', 'small.sexp', '--to=mirage', '-o-').stdout[:40])
    for args in [['info'], ['events'], ['dump'], ['stats'], ['convert', '--to=mirage', '-o', out], ['convert', '--to=native', '-o', out],
                 ['render', '-o', out + '.svg']]:
        got = run(*args, cut)
        lines = got.stderr.decode().splitlines()
        check(got.returncode == 2 and not got.stdout and lines[-1] == f'weft: {cut}: no events in the trace' and os.listdir(tmp) == ['cut.ctf'] and
              len(lines) <= 3, f'{args[0]} of a trace of which nothing is left', got)
    with open(out, 'wb') as file:
        file.write(b'/* CTF 1.8 */\n')
    says(f'weft: {out}: the metadata of a CTF trace; open its directory instead', 'info', out)
says('weft: standard input: not a trace in a format that weft reads', 'info', '-', stdin=b'hello\n')

# --- errors in the output

with tempfile.TemporaryDirectory() as tmp:
    # weft writes into an output that is no regular file, such as a pipe, and does not replace it by a file.
    pipe = tmp + '/pipe'
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    says('', 'convert', 'small.sexp', '--to=mirage', '-o', pipe, status=0)
    check(os.read(reader, 1 << 16) == run('convert', 'small.sexp', '--to=mirage', '-o-').stdout and os.listdir(tmp) == ['pipe'], 'convert to a named pipe')
    os.close(reader)

with open('/dev/full', 'wb') as full:
    got = subprocess.run([weft, 'events', 'small.sexp'], cwd=here, stdout=full, stderr=subprocess.PIPE)
check((got.returncode, got.stderr) == (2, b'weft: standard output: No space left on device\n'), 'a full disk', got)


def write_to_closed_pipe(*args):
    """A pipe whose reader closed its end before weft writes the first byte."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run([weft, *args], cwd=here, stdout=writer, stderr=subprocess.PIPE,
                              preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
    finally:
        os.close(writer)


for args in [['events'], ['dump', '--json'], ['info'], ['stats'], ['convert', '--to=mirage', '-o-']]:
    got = write_to_closed_pipe(*args, 'small.sexp')
    check((got.returncode, got.stderr) == (0, b''), f'weft {args[0]} ends quietly on a closed pipe', got)
got = write_to_closed_pipe('--help')
check((got.returncode, got.stderr) == (0, b''), 'weft --help ends quietly on a closed pipe', got)

# --- progress is printed only on a terminal, and only after some time

reader, writer = os.pipe()
parent, child = pty.openpty()
slow = subprocess.Popen([weft, 'info', '-'], cwd=here, stdin=reader, stdout=subprocess.PIPE, stderr=child)
os.close(reader)
os.close(child)
seen = b''
while b' 1 s' not in seen:  # weft must print that it waits for its input; if weft hangs, the time limit of the test ends it
    seen += os.read(parent, 100)
os.write(writer, small)
os.close(writer)
out = slow.communicate()[0]
check(b'weft: opening standard input: 1 s' in seen, 'progress on a terminal', seen)
check(slow.returncode == 0 and out.startswith(b'trace '), 'and then the answer', out)
os.close(parent)



def collect_progress(*args):
    """Returns what weft prints on a terminal while it gets SIGALRM as often as possible instead of once a second."""
    parent, child = pty.openpty()
    process = subprocess.Popen([weft, *args], cwd=here, stdout=subprocess.DEVNULL, stderr=child,
                               preexec_fn=lambda: signal.signal(signal.SIGALRM, signal.SIG_IGN))
    os.close(child)
    os.set_blocking(parent, False)
    seen = b''
    while process.poll() is None:
        process.send_signal(signal.SIGALRM)
        try:
            seen += os.read(parent, 65536)
        except (BlockingIOError, OSError):
            pass
    os.close(parent)
    return seen


with tempfile.TemporaryDirectory() as folder:
    large = os.path.join(folder, 'large.ctf')
    subprocess.run([generate, 'random', '--events=1100k', '-o', large], check=True)
    wanted = {rb'reading .*large.ctf: \d+ s, 1 million events': False, rb'explaining .*large.ctf: \d+ s, \d+ %': False}
    for _ in range(20):  # on a busy machine, weft may get no signal while it reads or while it explains
        seen = collect_progress('explain', large)
        wanted = {text: found or re.search(text, seen) is not None for text, found in wanted.items()}
        if all(wanted.values()):
            break
    check(all(wanted.values()), 'a terminal shows the number of events read, and the percentage explained', wanted, seen[-300:])

print(f'{checks} checks, {failures} failed')
sys.exit(failures != 0)
