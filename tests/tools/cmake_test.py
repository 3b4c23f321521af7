#!/usr/bin/env python3
"""cmake_test.py BUILD MESON...: a project of CMake finds the installed weft, links each of its libraries, and records a trace.

Exits with 77 where cmake is missing.  SPDX-License-Identifier: ISC"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

build, meson = sys.argv[1], sys.argv[2:]
if not shutil.which('cmake'):
    print('no cmake')
    sys.exit(77)

PROJECT = '''cmake_minimum_required(VERSION 3.16)
project(shop C)
find_package(weft %s REQUIRED COMPONENTS record promise)
if(NOT weft_record_FOUND)
  message(FATAL_ERROR "weft_record_FOUND is not set")
endif()
add_executable(shop shop.c)
target_link_libraries(shop PRIVATE weft::promise)
'''
PROGRAM = '''#include <weft/promise.h>
#include <weft/record.h>
int main(void)
{
	weft_id order = WEFT_CREATE(WEFT_KIND_TASK);
	WEFT_LABEL(order, "order");
	weft_resolve(WEFT_SYSTEM_ID, order);
	return 0;
}
'''


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)


with tempfile.TemporaryDirectory(prefix='weft-cmake-') as folder:
    there = run(*meson, 'install', '-C', build, '--no-rebuild', '--destdir', os.path.join(folder, 'root'))
    assert there.returncode == 0, there.stdout
    prefix = os.path.dirname(os.path.dirname(glob.glob(os.path.join(folder, 'root', '**', 'bin', 'weft'), recursive=True)[0]))
    with open(os.path.join(folder, 'shop.c'), 'w', encoding='utf-8') as file:
        file.write(PROGRAM)
    for wanted, suits in (('0.1', True), ('99.0', False)):
        with open(os.path.join(folder, 'CMakeLists.txt'), 'w', encoding='utf-8') as file:
            file.write(PROJECT % wanted)
        made = os.path.join(folder, 'made-' + wanted)
        said = run('cmake', '-S', folder, '-B', made, '-DCMAKE_PREFIX_PATH=' + prefix)
        assert (said.returncode == 0) == suits, said.stdout
        if suits:
            said = run('cmake', '--build', made)
            assert said.returncode == 0, said.stdout
            trace = os.path.join(folder, 'trace')
            assert run(os.path.join(made, 'shop'), env={**os.environ, 'WEFT_TRACE': trace}).returncode == 0
            said = run(os.path.join(build, 'weft'), 'dump', trace)
            assert said.returncode == 0 and 'order' in said.stdout, said.stdout
    print('a project of CMake records a trace')
