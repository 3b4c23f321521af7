#!/usr/bin/env python3
"""threads_test.py WEFT MANY: info, events, dump and render call OS threads by their names.  SPDX-License-Identifier: ISC"""
import json, os, re, shutil, subprocess, sys, tempfile

weft, many = sys.argv[1:]
workers = {'worker-0', 'worker-1', 'worker-2'}
with tempfile.TemporaryDirectory() as scratch:
    trace, picture = os.path.join(scratch, 'trace'), os.path.join(scratch, 'picture.pdf')
    subprocess.run([many, '600'], check=True, env={**os.environ, 'WEFT_TRACE': trace + ',size=256k'})

    def ask(*arguments):
        return subprocess.run([weft, *arguments, trace], check=True, capture_output=True, text=True).stdout.splitlines()

    info = json.loads(ask('info', '--json')[0])
    names = [s['name'] for s in info['streams']]
    assert workers <= set(names), names
    assert workers <= {line.split()[1] for line in ask('info') if re.match(r'  #\d', line)}
    for verb in ('events', 'dump'):
        lines = list(map(json.loads, ask(verb, '--json')))
        said = {(e['stream'], e['thread']) for e in lines if 'stream' in e and e.get('promise') != -1}
        assert workers <= {name for _, name in said} and all(names[i] == name for i, name in said), (verb, said)
        text = ask(verb)
        assert workers <= set(re.findall(r'  #\d+ (\S+)', '\n'.join(text))), (verb, text[:5])
    if not shutil.which('pdftotext'):
        print('skipped: no pdftotext')
        sys.exit(77)
    ask('render', '-o', picture)
    text = subprocess.run(['pdftotext', picture, '-'], check=True, capture_output=True, text=True).stdout
    assert workers <= set(text.split()), text[:500]
    # The picture has a band for each OS thread, and each band has another name.
    assert all(text.split().count(name) == 1 for name in workers)
