#!/usr/bin/env python3
"""configure_test.py SOURCE: a build folder from before some packages came has their parts after `tools/configure`, and lists what it lacks before.
Where the tests lack a library, the rest is configured all the same.

A folder of links to the pkg-config files of this machine stands for the packages.  SPDX-License-Identifier: ISC"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.abspath(sys.argv[1])
MISSING = 'libevent.pc'  # of the tests alone
LATE = {'libdw.pc': 'NAMES', 'sqlite3.pc': 'SQLITE', 'ncursesw.pc': 'SCREEN'}


def run(*command, **environment):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env={**os.environ, **environment})
    assert result.returncode == 0, (command, result.stdout)
    return result.stdout


def features(folder):
    with open(os.path.join(folder, 'features-built.h'), encoding='utf-8') as file:
        text = file.read()
    built = dict(re.findall(r'^#define WEFT_(\w+)_BUILT (\d)', text, re.M))
    packages = dict(re.findall(r'^#define WEFT_(\w+)_PACKAGE "(.*)"', text, re.M))
    return {name: (built[name] == '1', packages[name]) for name in built}


with tempfile.TemporaryDirectory(prefix='weft-configure-') as folder:
    known, build = os.path.join(folder, 'pkgconfig'), os.path.join(folder, 'build')
    os.mkdir(known)
    for place in reversed(run('pkg-config', '--variable', 'pc_path', 'pkg-config').strip().split(':')):
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if name not in LATE and name != MISSING and not os.path.lexists(os.path.join(known, name)):
                os.symlink(os.path.join(place, name), os.path.join(known, name))
    # A Debian without dpkg-dev has its libraries in the same folder as one with it.  A link to ccache under a compiler's name would find itself.
    programs = os.path.join(folder, 'bin')
    os.mkdir(programs)
    for place in os.environ['PATH'].split(':'):
        for name in os.listdir(place) if os.path.isdir(place) else ():
            is_cache = os.path.basename(os.path.realpath(os.path.join(place, name))) == 'ccache'
            if name != 'dpkg-architecture' and not is_cache and not os.path.lexists(os.path.join(programs, name)):
                os.symlink(os.path.join(place, name), os.path.join(programs, name))
    os.environ['PATH'] = programs
    configure = [os.path.join(SOURCE, 'tools', 'configure'), build]
    run(*configure, PKG_CONFIG_LIBDIR=known)
    if os.path.exists('/etc/debian_version'):
        options = {option['name']: option['value'] for option in json.loads(run('meson', 'introspect', '--buildoptions', build))}
        assert options['libdir'] == 'lib/' + run('cc', '-print-multiarch').strip(), options['libdir']
    early = features(build)
    family = run(os.path.join(SOURCE, 'tools', 'install-packages'), '--family').strip()
    for part in LATE.values():
        assert not early[part][0], early
        assert family != 'apt' or early[part][1].startswith('lib'), early
    for name in LATE:
        found = run('pkg-config', '--variable', 'pcfiledir', name[:-3]).strip()
        os.symlink(os.path.join(found, name), os.path.join(known, name))
    said = run(*configure, PKG_CONFIG_LIBDIR=known)
    assert 'configuring it again' in said, said
    late = features(build)
    for part in LATE.values():
        assert late[part] == (True, ''), late
    assert run(*configure, PKG_CONFIG_LIBDIR=known) == '', 'nothing has changed'
    assert {name for name in late if late[name] != early[name]} == set(LATE.values()), (early, late)
    # libweft-hook.so reads locks of glibc.
    if shutil.which('musl-gcc'):
        other = os.path.join(folder, 'build-musl')
        run(os.path.join(SOURCE, 'tools', 'configure'), other, '-Dtests=disabled', CC='musl-gcc')
        assert features(other)['HOOK'] == (False, ''), features(other)
    print('configured again:', ' '.join(sorted(LATE.values())))
