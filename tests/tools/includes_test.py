#!/usr/bin/env python3
"""includes_test.py CHECK-INCLUDES: check-includes finds each kind of wrong include.  SPDX-License-Identifier: ISC"""

import os
import subprocess
import sys
import tempfile
import unittest

CHECK = sys.argv.pop(1)
HOUSE = {
    'include/weft/record.h': '#include <stdint.h>\n',
    'src/base/arena.h': '',
    'src/wire/packet.h': '#include "base/arena.h"\n',
    'src/record/ring.h': '#include "wire/packet.h"\n#include <weft/record.h>\n',
    'src/promise/loop.c': '#include "record/ring.h"\n#include <uv.h>\n',
    'src/trace/trace.h': '#include "wire/packet.h"\n#include "base/arena.h"\n',
    'src/model/model.h': '#include "trace/trace.h"\n',
    'src/layout/layout.h': '#include "model/model.h"\n',
    'src/view/view.h': '#include "layout/layout.h"\n',
    'src/draw/draw.h': '#include "view/view.h"\n/* #include <gtk/gtk.h> */\n',
    'src/analysis/findings/explain.h': '#include "model/model.h"\n',
    'src/export/mirage.c': '#include "trace/trace.h"\n#include "wire/packet.h"\n#include <zlib.h>\n',
    'backends/cairo/png.c': '#include "draw/draw.h"\n#include <cairo.h>\n',
    'apps/cli/main.c': '#include "cli.h"\n#include "analysis/findings/explain.h"\n#include "backends/cairo/png.h"\n',
    'apps/cli/cli.h': '',
    'examples/echo.c': '#include <weft/record.h>\n#include <uv.h>\n',
}
PLANTED = [
    ('src/base/arena.h', '#include "wire/packet.h"'),
    ('src/wire/packet.h', '#include "trace/trace.h"'),
    ('src/record/ring.h', '#include "trace/trace.h"'),
    ('src/record/ring.h', '#include "promise/loop.h"'),
    ('src/trace/trace.h', '#include "record/ring.h"'),
    ('src/trace/trace.h', '  #  include  "../record/ring.h"'),
    ('src/model/model.h', '#include "layout/layout.h"'),
    ('src/layout/layout.h', '#include "draw/draw.h"'),
    ('src/draw/draw.h', '#include <cairo.h>'),
    ('src/draw/draw.h', '#include <pango/pangocairo.h>'),
    ('src/view/view.h', '#include <gtk/gtk.h>'),
    ('src/view/view.h', '#include <emscripten/emscripten.h>'),
    ('src/analysis/findings/explain.h', '#include "layout/layout.h"'),
    ('src/export/mirage.c', '#include "apps/cli/cli.h"'),
    ('src/record/ring.h', '#include <uv.h>'),
    ('src/record/ring.h', '#include <glib.h>'),
    ('include/weft/record.h', '#include <stdio.h>'),
    ('include/weft/record.h', '#include "base/arena.h"'),
    ('examples/echo.c', '#include "record/ring.h"'),
    ('backends/cairo/png.c', '#include "apps/cli/cli.h"'),
    ('src/novel/x.c', '#include <stdio.h>'),
]


class Includes(unittest.TestCase):
    def check(self, house):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {'src/promise/loop.h': '', 'backends/cairo/png.h': '', **house}.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), 'w', encoding='utf-8') as file:
                    file.write(text)
            run = subprocess.run([CHECK, root], capture_output=True, text=True, check=False)
            return run.returncode, run.stdout + run.stderr

    def test_includes_check_passes_a_valid_tree(self):
        status, output = self.check(HOUSE)
        self.assertEqual(status, 0, output)

    def test_includes_check_finds_planted_faults(self):
        for path, line in PLANTED:
            with self.subTest(path=path, line=line):
                status, output = self.check({**HOUSE, path: HOUSE.get(path, '') + '/* */ \n' + line + '\n'})
                self.assertEqual(status, 1, output)
                place = (HOUSE.get(path, '')).count('\n') + 2
                self.assertTrue(output.startswith(f'{path}:{place}: '), output)
                self.assertEqual(output.count('\n'), 1, output)

    def test_includes_check_of_a_missing_folder_is_an_error(self):
        self.assertEqual(subprocess.run([CHECK, '/nonexistent'], capture_output=True, check=False).returncode, 2)


unittest.main(verbosity=2)
