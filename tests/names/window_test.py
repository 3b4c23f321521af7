#!/usr/bin/env python3
"""Names that take long: the window shows its first picture without them, and has them in the end.

	window_test.py WEFT-VIEW PLACES GTK-TESTS

SPDX-License-Identifier: ISC"""

import os
import subprocess
import sys
import tempfile

view, places, gtk = map(os.path.abspath, sys.argv[1:4])
sys.path.insert(0, gtk)
from person import App, run, under_a_desktop  # pylint: disable=wrong-import-position

under_a_desktop()

# The time for a lookup grows with the number of functions, and each of these functions has a promise.
FUNCTIONS = 5000
MODULE = """
#include "places.h"
__attribute__((visibility("default"))) places_work places_work_here;
#define FUNCTION(n) static __attribute__((noinline)) void sprout_##n(void (*create)(const char *)) { create("seed"); __asm__ volatile(""); }
"""


def names_come_late():
    with tempfile.TemporaryDirectory(prefix='weft-names-') as folder:
        source, module, trace = (os.path.join(folder, name) for name in ('forest.c', 'forest.so', 'trace'))
        with open(source, 'w', encoding='ascii') as file:
            file.write(MODULE)
            for n in range(FUNCTIONS):
                file.write(f'FUNCTION({n})\n')
            file.write('int places_work_here(void (*create)(const char *))\n{\n')
            for n in range(FUNCTIONS):
                file.write(f'sprout_{n}(create);\n')
            file.write('return 1;\n}\n')
        subprocess.run(['cc', '-g', '-O0', '-fPIC', '-shared', '-I', os.path.dirname(os.path.abspath(__file__)), '-o', module, source], check=True)
        subprocess.run([places, module], env={**os.environ, 'WEFT_TRACE': trace + ',mode=grow'}, check=True)
        with App(view, trace) as app:
            app.shown()
            app.focus()
            app.key('slash')
            app.until('the search bar', lambda w: w['finding'] and w['typing'])
            app.type(f'sprout_{FUNCTIONS - 1}')
            app.until_viewer('the last function has its name', lambda v: v['found'] == 1 and not v['searching'])


sys.exit(run([names_come_late]))
