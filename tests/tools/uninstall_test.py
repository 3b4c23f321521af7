#!/usr/bin/env python3
"""uninstall_test.py SOURCE: after `tools/uninstall`, no file below the prefix names weft; the desktop's lists of types, programs and icons included.

A small project installs the window's data, as apps/gtk/meson.build does.  SPDX-License-Identifier: ISC"""

import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.abspath(sys.argv[1])
PROJECT = """project('data')
gnome = import('gnome')
install_data('org.weft.View.svg', install_dir: get_option('datadir') / 'icons/hicolor/scalable/apps')
install_data('org.weft.View.desktop', install_dir: get_option('datadir') / 'applications')
install_data('org.weft.View.mime.xml', install_dir: get_option('datadir') / 'mime/packages')
gnome.post_install(gtk_update_icon_cache: true, update_desktop_database: true, update_mime_database: true)
"""

for tool in 'update-mime-database', 'update-desktop-database':
    if not shutil.which(tool):
        print(f'skipped: {tool} is not installed')
        sys.exit(77)


def run(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert result.returncode == 0, (command, result.stdout)


def named(prefix):
    """Returns the files below the prefix that name weft."""
    found = []
    for place, _, names in os.walk(prefix):
        for path in (os.path.join(place, name) for name in names):
            with open(path, 'rb') as file:
                if b'weft' in file.read().lower() or 'weft' in os.path.basename(path):
                    found.append(os.path.relpath(path, prefix))
    return sorted(found)


with tempfile.TemporaryDirectory(prefix='uninstall-') as folder:
    build, prefix = os.path.join(folder, 'build'), os.path.join(folder, 'prefix')
    with open(os.path.join(folder, 'meson.build'), 'w', encoding='utf-8') as project:
        project.write(PROJECT)
    for name in 'org.weft.View.svg', 'org.weft.View.desktop', 'org.weft.View.mime.xml':
        shutil.copy(os.path.join(SOURCE, 'apps', 'gtk', 'data', name), folder)
    run('meson', 'setup', build, folder, '--prefix', prefix)
    run('meson', 'install', '-C', build)
    before = named(prefix)
    assert 'share/applications/mimeinfo.cache' in before and 'share/mime/mime.cache' in before, before
    run(os.path.join(SOURCE, 'tools', 'uninstall'), build)
    assert named(prefix) == [], named(prefix)
    print(f'{len(before)} files named weft, and none after')
