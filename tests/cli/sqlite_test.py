#!/usr/bin/env python3
"""sqlite_test.py WEFT GENERATE ARP DOCS/SQL.MD: weft convert --to=sqlite writes the facts of weft dump and weft explain;
   the queries of the documentation work.  SPDX-License-Identifier: ISC"""

import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

from off_stretches import has_babeltrace2, off_stretches

weft, generate, arp, docs = map(os.path.abspath, sys.argv[1:5])
folder = tempfile.mkdtemp(prefix='sqlite-')
os.chdir(folder)


def run(*words, status=(0,)):
    done = subprocess.run([weft, *words], capture_output=True, check=False, timeout=120)
    assert done.returncode in status, (words, done)
    return done


probe = run('convert', '--to=sqlite', '-o', 'x.db', 'nowhere', status=(2,)).stderr
if b'without SQLite' in probe:
    print('this weft was built without SQLite')
    sys.exit(77)


def convert(trace, out):
    run('convert', trace, '--to=sqlite', '-o', out)
    db = sqlite3.connect(out)
    assert db.execute('PRAGMA integrity_check').fetchall() == [('ok',)]
    assert db.execute('PRAGMA user_version').fetchone() == (1,)
    return db


def compare(trace):
    db = convert(trace, 'run.db')
    dump = [json.loads(line) for line in run('dump', '--json', '--no-simplify', trace).stdout.splitlines()]
    id_of = dict(db.execute('SELECT number, id FROM promise'))
    want = {d['promise']: d for d in dump if 'promise' in d}
    rows = db.execute('SELECT id, kind, start_ns, end_ns, end, error, created_by, runs, ran_ns FROM promise').fetchall()
    assert sorted(row[0] for row in rows) == sorted(want), trace
    for number, kind, start, end, how, error, creator, runs, ran in rows:
        d = want[number]
        assert (kind, start, error, id_of.get(creator)) == (d['kind'], d['start_ns'], d['failure'] or None, d['created_by']), (d, kind, start, error, creator)
        assert end == (None if d['end'] == 'pending' else d['end_ns']) and how == d['end'], (d, end, how)
        assert (runs, ran) == (len(d['running']), sum(b - a for a, b in d['running'])), d
    links = {op: 0 for op in ('resolve', 'read', 'await', 'signal')}
    for d in want.values():
        for op in links:
            links[op] += d['links'][op]
    assert dict(db.execute('SELECT op, count(*) FROM link GROUP BY op')) == {op: n for op, n in links.items() if n}, trace
    assert db.execute('SELECT count(*) FROM wait').fetchone()[0] == links['await']
    counters = {d['counter']: d['values'] for d in dump if 'counter' in d}
    got = {}
    for name, time, value in db.execute('SELECT name, time_ns, value FROM counter LEFT JOIN sample ON counter = number ORDER BY sample.rowid'):
        got.setdefault(name, []).append([time, value])
    assert got == counters, trace
    findings = [json.loads(line) for line in run('explain', '--json', trace, status=(0, 1)).stdout.splitlines()]
    findings = [f for f in findings if 'finding' in f]
    assert db.execute('SELECT kind, title FROM finding ORDER BY number').fetchall() == [(f['finding'], f['title']) for f in findings], trace
    return db


for shape in ('random', 'alive', 'waits', 'flock', 'crowd', 'tail'):
    subprocess.run([generate, shape, '--events=4k', '--format=native', '-o', shape], check=True)
    compare(shape).close()

# The database has the same kernel events as babeltrace2 prints.
subprocess.run([generate, 'crowd', '--events=20k', '--kernel=500', '--format=native', '-o', 'kernel'], check=True)
db = compare('kernel')
offs = db.execute('SELECT tid, start_ns, ready_ns, end_ns, why FROM off ORDER BY tid, start_ns').fetchall()
assert len(offs) > 100 and {off[4] for off in offs} == {'preempted', 'blocked', 'disk'}
if has_babeltrace2():
    assert offs == [(tid, since, since if why == 'preempted' else ready, until, why) for tid, since, ready, until, why in off_stretches('kernel')]
assert sorted(db.execute('SELECT tid, pid, name FROM os_thread').fetchall()) == [(99, None, 'gcc'), (1000, 1000, 'main')]
assert db.execute("SELECT DISTINCT name FROM os_thread JOIN off ON os_thread.tid = taken_by WHERE why = 'preempted'").fetchall() == [('gcc',)]
pauses = [e for e in map(json.loads, run('events', '--json', 'kernel').stdout.splitlines()) if e['op'] == 'pause']
assert db.execute("SELECT start_ns, end_ns, why FROM stretch WHERE what = 'pause' ORDER BY end_ns, start_ns").fetchall() == \
    sorted(((e['time_ns'] - e['duration_ns'], e['time_ns'], e['why']) for e in pauses), key=lambda p: (p[1], p[0]))
db.close()

for name in ('good', 'bad'):
    subprocess.run([arp, name], env={**os.environ, 'WEFT_TRACE': name}, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
convert('good', 'good.db').close()
db = compare('bad')
with open(docs, encoding='utf-8') as file:
    questions = re.findall(r'```sql\n(.*?)```', file.read(), re.S)
assert len(questions) == 8, len(questions)
answers = 0
for question in questions:
    for statement in question.split(';')[:-1]:
        answers += len(db.execute(statement.replace("'GET /%'", "'ARP%'")).fetchall()) > 0
assert answers >= len(questions) - 2, answers
# The documentation names exactly the existing columns.
with open(docs, encoding='utf-8') as file:
    told = file.read()
for table, sql in db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"):
    assert re.search(rf'^\| [^|]*\b{table}\b[^|]*\|', told, re.M), table
    for column in db.execute(f'SELECT name FROM pragma_table_info("{table}")'):
        row = re.search(rf'^\| [^|]*\b{table}\b[^|]*\|.*$', told, re.M).group(0)
        assert re.search(rf'\b{column[0]}\b', row), (table, column)
db.close()

done = run('convert', 'good', '--to=sqlite', '-o', '-', status=(2,))
assert (done.stdout, done.stderr) == (b'', b'weft: standard output: a database needs a regular file\n'), done
before = os.path.getsize('good.db')
if os.path.exists('/dev/full'):
    assert b'needs a regular file' in run('convert', 'good', '--to=sqlite', '-o', '/dev/full', status=(2,)).stderr
assert os.path.getsize('good.db') == before and not [name for name in os.listdir('.') if name.endswith('.tmp')]
