#!/usr/bin/env python3
# files_test.py: desktop metadata of the window, checked by the desktop's own checkers.  SPDX-License-Identifier: ISC
"""files_test.py DATA-FOLDER"""

import os
import shutil
import subprocess
import sys
import tempfile

data = sys.argv[1]
missing = [tool for tool in ('desktop-file-validate', 'appstreamcli', 'update-mime-database', 'xmllint', 'rsvg-convert') if not shutil.which(tool)]
if missing:
    print('skipped: not installed:', *missing)
    sys.exit(77)
failed = 0


def check(what, *command):
    global failed
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if run.returncode or 'error' in run.stderr.lower():
        failed += 1
        print('FAILED:', what, run.stdout, run.stderr)


name = os.path.join(data, 'org.weft.View')
check('desktop entry', 'desktop-file-validate', name + '.desktop')
# AppStream 1.0 warns of a missing home page, which weft does not have; earlier versions do not know this warning.
said = subprocess.run(['appstreamcli', '--version'], capture_output=True, text=True, check=False).stdout
accepted = [] if ' 0.' in said else ['--override=url-homepage-missing=info']
check('AppStream metadata', 'appstreamcli', 'validate', '--no-net', '--no-color', *accepted, name + '.metainfo.xml')
with tempfile.TemporaryDirectory() as folder:
    os.makedirs(os.path.join(folder, 'packages'))
    shutil.copy(name + '.mime.xml', os.path.join(folder, 'packages', 'org.weft.View.xml'))
    check('MIME type', 'update-mime-database', folder)
    with open(os.path.join(folder, 'magic'), 'rb') as file:
        if b'application/x-weft-trace' not in file.read():
            failed += 1
            print('FAILED: the MIME type is not told from first bytes')
    for icon in (name + '.svg', name + '-symbolic.svg'):
        picture = os.path.join(folder, 'icon.png')
        check('icon', 'rsvg-convert', '-w', '64', icon, '-o', picture)
        if os.path.getsize(picture) < 200:
            failed += 1
            print('FAILED: an icon without a picture', icon)
print('1 passed, 0 failed' if not failed else f'0 passed, {failed} failed')
sys.exit(1 if failed else 0)
