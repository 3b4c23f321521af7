#!/usr/bin/env python3
"""several_test.py WEFT MAKE_FLEET: every verb reads several traces as one; weft merge; the report of weft info about their clocks.

SPDX-License-Identifier: ISC"""
import gzip
import json
import os
import re
import sqlite3
import struct
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'hostile'))
import shapes  # noqa: E402

weft, make_fleet = map(os.path.abspath, sys.argv[1:])
PATIENCE = 120


def run(*command, status=0):
    got = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    if got.returncode != status:
        sys.exit(f'{command}: status {got.returncode}\n{got.stdout[-500:]}\n{got.stderr[:2000]}')
    return got.stdout, got.stderr


def check(what, is_so, *told):
    if not is_so:
        sys.exit(f'FAILED: {what}: {told}')


def parse_json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_several_traces_share_one_picture():
    """Several traces have all promises of each trace, whether they are named one by one, as their directory, or as a folder of weft merge."""
    run(make_fleet, 'all', '3', '60')
    names = [f'all/{i}' for i in range(3)]
    alone = sum(sum('promise' in line for line in parse_json_lines(run(weft, 'dump', '--json', name)[0])) - 1 for name in names)
    together, said = run(weft, 'dump', '--json', *names)
    check('promises of all', sum('promise' in line for line in parse_json_lines(together)) - 1 == alone, alone)
    check('how exact', re.search(r'2 of 3 traces .* to \+-[0-9.]+ (ns|us|ms) on average', said), said)
    check('the directory', run(weft, 'dump', '--json', 'all')[0] == together)
    run(weft, 'merge', *names, '-o', 'merged')
    check('each has a folder', sorted(os.listdir('merged')) == ['000-program@host0', '001-program@host1', '002-program@host2'], os.listdir('merged'))
    check('merged', run(weft, 'dump', '--json', 'merged')[0] == together)
    # A scrubbed copy has no names, but the same messages between the hosts.
    run(weft, 'merge', '--scrub', *names, '-o', 'scrubbed')
    told = [[parse_json_lines(run(weft, *words)[0]) for words in (('info', '--json', folder), ('waits', '--json', folder))] for folder in ('all', 'scrubbed')]
    check('as many messages', told[0][0][-1]['messages'] == told[1][0][-1]['messages'] > 0, told[1][0][-1])
    check('as exact', [part['bound_ns'] for part in told[0][0][-1]['parts']] == [part['bound_ns'] for part in told[1][0][-1]['parts']], told[1][0][-1])
    check('who waits', len(told[0][1]) == len(told[1][1]))
    for folder, _, files in os.walk('scrubbed'):
        check('the name of a folder', 'host' not in folder and 'program' not in folder, folder)
        for name in files:
            with open(os.path.join(folder, name), 'rb') as file:
                found = [word for word in (b'10.0.0.', b'host0', b'host1', b'make_fleet') if word in (content := file.read())] and content[:100]
                check('names in the copy', not found, folder, name, found)
    os.rename('merged', 'moved')
    check('moved', run(weft, 'dump', '--json', 'moved')[0] == together)
    for words in ('waits', '--json'), ('stats', '--json'), ('path', '--promise=20'), ('explain', '--json'):
        one, many = (subprocess.run([weft, *words, *traces], capture_output=True, text=True, check=False, timeout=PATIENCE) for traces in (['all'], names))
        check(words, (one.stdout, one.returncode) == (many.stdout, many.returncode) and one.returncode < 2, one.stderr, many.stderr)
    run(weft, 'check', *names, 'pending<1000', 'findings(leak)=0')
    run(weft, 'render', *names, '-o', 'names.svg')
    run(weft, 'render', 'all', '-o', 'all.svg')
    with open('names.svg', encoding='utf-8') as a, open('all.svg', encoding='utf-8') as b:
        check('one picture', a.read() == b.read())
    # The first trace on the command line gives the reference clock.
    check('the other order', [part['host'] for part in parse_json_lines(run(weft, 'info', '--json', 'all/1', 'all/0')[0])[-1]['parts'] if part['clock'] == 'same'] == ['host1'])


def test_page_of_several_traces_shows_all_of_them():
    """weft html makes one picture of all traces, and with --compare one of each; an archive of several traces can be read from a pipe."""
    with tarfile.open('merged.tar', 'w', format=tarfile.USTAR_FORMAT) as archive:
        archive.add('moved')
    promises = [line for line in parse_json_lines(run(weft, 'dump', '--json', 'all')[0]) if 'promise' in line]
    with open('merged.tar', encoding='latin-1') as archive:
        piped = subprocess.run([weft, 'dump', '--json', '-'], stdin=archive, capture_output=True, text=True, check=True, timeout=PATIENCE)
    check('through a pipe', [line for line in parse_json_lines(piped.stdout) if 'promise' in line] == promises and '2 of 3 traces' in piped.stderr, piped.stderr)
    with open('merged.tar', encoding='latin-1') as archive:
        nested = subprocess.run([weft, 'dump', 'all/0', '-'], stdin=archive, capture_output=True, text=True, check=False, timeout=PATIENCE)
    check('several beside one', nested.returncode == 2 and nested.stderr == 'weft: standard input is an archive of several traces; unpack it and name its folders\n', nested.stderr)
    run(weft, 'render', 'all', '-o', 'bands.svg')
    with open('bands.svg', encoding='utf-8') as file:
        svg = file.read()
    check('the bound of each other host', len(re.findall(r'host[12]:[^<]*±[0-9.]+ µs<', svg)) == 2 and 'host0: make_f' in svg)
    names = [f'all/{i}' for i in range(3)]
    made = subprocess.run([weft, 'html', *names, '-o', 'page'], capture_output=True, text=True, check=False, timeout=PATIENCE)
    if 'was built without' in made.stderr:
        return
    check('one picture', made.returncode == 0 and sorted(os.listdir('page')) == ['index.html', 'trace-1.gz', 'weft.js'], made.stderr)
    with gzip.open('page/trace-1.gz') as packed, open('trace-1', 'wb') as file:
        file.write(packed.read())
    check('the same promises', [line for line in parse_json_lines(run(weft, 'dump', '--json', 'trace-1')[0]) if 'promise' in line] == promises)
    run(weft, 'html', '--compare', *names, '-o', 'compared')
    check('one of each', sorted(name for name in os.listdir('compared') if 'trace' in name) == ['trace-1.gz', 'trace-2.gz', 'trace-3.gz'])
    run(make_fleet, 'strangers', '2', '60', '5', 'nat')
    said = run(weft, 'html', 'strangers/0', 'strangers/1', '-o', 'never', status=2)[1]
    check('no picture of both', said.count('\n') == 1 and said.endswith('; use --compare to show each separately\n') and not os.path.exists('never'), said)


def test_info_reports_the_error_bounds_of_clocks():
    """weft info --json has the numbers of matched and unmatched connections and of messages, the error bound and the rate of each pair of clocks."""
    with tarfile.open('one.tar', 'w', format=tarfile.USTAR_FORMAT) as archive:
        archive.add('all/1')
    with open('one.tar', 'rb') as archive:
        piped = subprocess.run([weft, 'info', '--json', 'all/0', '-'], input=archive.read(), capture_output=True, check=False, timeout=PATIENCE)
    named = [{key: line[key] for key in ('messages', 'connections', 'hosts')} for line in (parse_json_lines(piped.stdout)[-1], parse_json_lines(run(weft, 'info', '--json', 'all/0', 'all/1')[0])[-1])]
    check('of standard input', piped.returncode == 0 and named[0] == named[1] and named[0]['messages'] > 0, piped.stderr, named)
    told = parse_json_lines(run(weft, 'info', '--json', 'all')[0])[-1]
    check('hosts', (told['together'], told['hosts'], len(told['parts'])) == (3, 3, 3), told)
    check('none is alone', (told['unmatched'], told['renamed'], told['unwritten'], told['contradictory']) == (0, 0, 0, 0), told)
    check('all messages', told['messages'] == sum(pair['sent'] + pair['received'] for pair in told['clocks']) > 100, told)
    for pair in told['clocks']:
        check('a bound', 0 < pair['narrowest_ns'] <= pair['bound_ns'] and pair['rate_ppb'][0] < pair['rate_ppb'][1], pair)
    people = run(weft, 'info', 'all/0', 'all/1', 'all/2')[0]
    for words in 'together   3 traces of 3 hosts', 'program@host0  the reference clock', 'another host, aligned by messages: +-', ' messages from the first to the second, ', ' ppm':
        check(words, words in people, people[-900:])
    told = parse_json_lines(run(weft, 'info', '--json', 'all/0', 'all/1')[0])[-1]
    check('one is alone', told['unmatched'] > 0 and re.fullmatch(r'10\.0\.0\.\d:\d+ 10\.0\.0\.\d:\d+', told['example']), told)


def test_traces_with_unalignable_clocks_are_refused_with_a_reason():
    """One line names the traces and the reason, no output is written, and each trace can still be read alone."""
    for fault, why in ('nat', '(NAT?)'), ('late', 'negative time'), ('one-way', 'bytes in both directions'), ('jumps', 'more bytes were read than written'):
        run(make_fleet, fault, '2', '60', '5', fault)
        for words in ('dump', fault), ('info', f'{fault}/0', f'{fault}/1'), ('merge', fault, '-o', 'never'), ('render', fault, '-o', 'never'):
            said = run(weft, *words, *(['never.svg'] if words[0] == 'never' else []), status=2)[1]
            check(fault, (why in said or words[0] == 'render') and said.count('\n') == 1, words, said)
        check('nothing is written', not os.path.exists('never'))
        run(weft, 'dump', f'{fault}/1')
    # A connection with impossible positions is reported by every verb, even if another connection aligns the clocks.
    run(make_fleet, 'doubtful', '2', '60', '5', 'one-jumps')
    for words in ('dump', 'doubtful'), ('waits', 'doubtful/0', 'doubtful/1'), ('render', 'doubtful', '-o', 'doubtful.svg'):
        said = run(weft, *words)[1]
        check('one of two', re.search(r'in 1 connection between hosts, such as 10\.0\.0\.\d:\d+ 10\.0\.0\.\d:\d+, one end read bytes that the other never wrote', said), words, said)
    told = parse_json_lines(run(weft, 'info', '--json', 'doubtful')[0])[-1]
    check('the other one', (told['contradictory'], told['clocks'][0]['connections'], told['unmatched']) == (1, 1, 0), told)
    said = run(weft, 'dump', 'all/0', 'all/0', status=2)[1]
    check('twice', said == 'weft: all/0 is the same trace as all/0; leave one out\n', said)
    said = run(weft, 'dump', 'all/0', 'nothing', status=2)[1]
    check('one is missing', said.startswith('weft: nothing: '), said)
    said = run(weft, 'merge', 'all/0', '-o', 'never', status=2)[1]
    check('one alone', 'use weft save' in said, said)
    said = run(weft, 'convert', 'all/0', 'all/1', '-o', 'never', '--to=mirage', status=2)[1]
    check('no place for two', 'can hold only one trace' in said, said)


def test_two_machines_with_equal_boot_ids_are_refused():
    """Two hosts with the same boot id may be containers with one clock, which is exact; or two machines with different clocks, which weft refuses."""
    for folder, fault in ('containers', 'same-clock'), ('clones', 'sound'):
        run(make_fleet, folder, '2', '60', '9', fault)
        for i in range(2):
            path = f'{folder}/{i}/metadata'
            with open(path, encoding='utf-8') as file:
                text = file.read()
            with open(path, 'w', encoding='utf-8') as file:
                file.write(re.sub(r'recorder = "[^ "]*', 'recorder = "one-boot', text.replace('clock_source = "caller"', 'clock_source = "tsc"')))
    told = parse_json_lines(run(weft, 'info', '--json', 'containers')[0])[-1]
    check('exact', [part['clock'] for part in told['parts']] == ['same', 'same'] and not told['clocks'] and told['messages'] > 100, told)
    check('no note', run(weft, 'dump', 'containers')[1] == '')
    said = run(weft, 'dump', 'clones', status=2)[1]
    check('clones', 'one boot id, but bytes arrived' in said, said)


def test_kernel_events_of_two_hosts_are_aligned():
    """If OS threads of two machines have the same number, kernel events of one machine are not given to the thread of the other."""
    run(make_fleet, 'kernels', '2', '60', '5')
    for i in range(2):
        with open(f'kernels/{i}/stream-0-0', 'rb') as file:
            head = struct.unpack('<I16sIIIHHIQQQQQQQQQQQQQ16s', file.read(shapes.HEADER))
        uuid, begin, tid = head[1], head[8], head[20]
        slept = b''.join(shapes.switched_off(begin + at * 1000000, tid) + shapes.switched_on(begin + at * 1000000 + 500000, tid) for at in range(1, 4 + i))
        content = shapes.LEVEL + struct.pack('<BIII', 1, begin & shapes.MASK, tid, tid) + b'main\0' + shapes.switched_on(begin, tid) + slept
        with open(f'kernels/{i}/kernel-0', 'wb') as file:
            file.write(shapes.packet(content, shapes.KERNEL, begin=begin, uuid=uuid))
    if 'without SQLite' in subprocess.run([weft, 'convert', 'kernels', '-o', 'kernels.db', '--to=sqlite'], capture_output=True, text=True, check=False, timeout=PATIENCE).stderr:
        return
    with sqlite3.connect('kernels.db') as db:
        told = db.execute('SELECT name, count(*), sum(off.end_ns - off.start_ns) FROM thread JOIN off ON off.tid = thread.tid GROUP BY name ORDER BY name').fetchall()
    check('each has its own', [(name[:13], count) for name, count, _ in told] == [('program@host0', 3), ('program@host1', 4)], told)
    check('by the first clock', all(abs(ns - count * 500000) < 1000 for _, count, ns in told), told)


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    for name, test in list(globals().items()):
        if name.startswith('test_'):
            test()
