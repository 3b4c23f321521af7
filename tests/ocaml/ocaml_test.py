#!/usr/bin/env python3
"""docs/ocaml.md: the collections of a program in OCaml are pauses, and a long run says how much of it these were.

	ocaml_test.py ROOT LIBRARY WEFT

SPDX-License-Identifier: ISC"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

root, library, weft = map(os.path.abspath, sys.argv[1:])
if not shutil.which('ocamlopt'):
    print('skipped: no OCaml')
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix='weft-ocaml-') as folder:
    for name in ('weft_gc.c', 'garbage.ml'):
        shutil.copy(os.path.join(root, 'examples', 'ocaml', name), folder)
    libraries = os.path.dirname(library)
    subprocess.run(['ocamlopt', 'weft_gc.c', 'garbage.ml', '-o', 'garbage', '-ccopt', f'-I{root}/include -Wall -Werror', '-cclib',
                    f'-L{libraries} -Wl,-rpath,{libraries} -lweft-record'], cwd=folder, check=True, timeout=120)
    trace = os.path.join(folder, 'run.weft')
    plain = subprocess.run(['./garbage'], cwd=folder, stdout=subprocess.PIPE, check=True, timeout=60)
    run = subprocess.run(['./garbage'], cwd=folder, env={**os.environ, 'WEFT_TRACE': trace}, stdout=subprocess.PIPE, check=True, timeout=60)
    assert (run.stdout, plain.stdout) == (b'20\n', b'20\n'), run.stdout
    events = [json.loads(line) for line in subprocess.run([weft, 'events', '--json', trace], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()]
    begun = [event for event in events if event.get('event', event.get('op')) == 'pause_begin']
    ended = [event for event in events if event.get('event', event.get('op')) == 'pause_end']
    texts = json.dumps(begun)
    assert len(begun) == len(ended) > 10 and 'gc, minor' in texts and 'gc, major slice' in texts, (len(begun), len(ended), texts[:300])
    print(f'{len(begun)} collections')
