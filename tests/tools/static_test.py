#!/usr/bin/env python3
"""static_test.py SOURCE WEFT MESON...: a program that is linked statically, with what a weft of -Dstatic=true installs, records a trace.

SPDX-License-Identifier: ISC"""

import json
import os
import subprocess
import sys
import tempfile

SOURCE, WEFT, MESON = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
PROGRAM = '''#include <weft/promise.h>
#include <weft/record.h>
int main(void)
{
	weft_id order = WEFT_CREATE(WEFT_KIND_TASK);
	struct weft_promise *done = weft_promise_return(NULL, NULL);
	WEFT_LABEL(order, "order");
	weft_resolve(WEFT_SYSTEM_ID, order);
	weft_promise_unref(done);
	return 0;
}
'''


def run(*command, **environment):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env={**os.environ, **environment})
    assert result.returncode == 0, (command, result.stdout)
    return result.stdout


with tempfile.TemporaryDirectory(prefix='weft-static-') as folder:
    build, prefix, program, trace = (os.path.join(folder, name) for name in ('build', 'prefix', 'program', 'trace'))
    run(*MESON, 'setup', build, SOURCE, '-Dstatic=true', '-Dcommand=disabled', '-Dhook=disabled', '-Dexamples=disabled', '-Dtests=disabled', '-Dxen=disabled',
        '--libdir=lib', '--prefix=' + prefix)
    run(*MESON, 'install', '-C', build)
    names = os.listdir(os.path.join(prefix, 'lib'))
    assert {'libweft-record.a', 'libweft-promise.a'} <= set(names), names
    with open(program + '.c', 'w', encoding='utf-8') as file:
        file.write(PROGRAM)
    flags = run('pkg-config', '--static', '--cflags', '--libs', 'weft-promise', PKG_CONFIG_PATH=os.path.join(prefix, 'lib', 'pkgconfig')).split()
    run('cc', '-static', program + '.c', *flags, '-o', program)
    run(program, WEFT_TRACE=trace)
    labels = [label for line in run(WEFT, 'dump', '--json', trace).splitlines() for _, label in json.loads(line).get('labels', [])]
    assert 'order' in labels, labels
    print('recorded by a static program:', labels)
