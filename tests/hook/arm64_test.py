#!/usr/bin/env python3
"""arm64_test.py SOURCE MOVE_ALL: entries are moved on aarch64, too: built by a cross compiler, run by qemu-user.

SPDX-License-Identifier: ISC"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

source, move_all = sys.argv[1], os.path.abspath(sys.argv[2])
compiler, emulator, libraries = 'aarch64-linux-gnu-gcc', 'qemu-aarch64', '/usr/aarch64-linux-gnu/lib'
if not shutil.which(compiler) or not shutil.which(emulator):
    print(f'skipped: {compiler} or {emulator} is missing')
    sys.exit(77)
flags = ['-O1', '-Wall', '-Wextra', '-Werror', '-Wno-unused-parameter', '-D_GNU_SOURCE', '-I.', '-Iinclude', '-Isrc']
hook = [path for path in sorted(glob.glob('adapters/hook/*.c', root_dir=source)) if not path.endswith(('/capstone_parts.c', '/move_x86.c'))]
host = '''
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
	void *library = dlopen("libm.so.6", RTLD_NOW);
	double (*root)(double) = (double (*)(double))dlsym(library, "sqrt");
	printf("%g\\n", root(16));
	dlclose(library);
	return 5;
}
'''
with tempfile.TemporaryDirectory() as place:
    def build(out, *arguments):
        subprocess.run([compiler, *flags, '-o', os.path.join(place, out), *arguments], cwd=source, check=True)
        return os.path.join(place, out)

    # With every extension: pointer authentication and landing pads among them.
    program = build('move_test', '-static', 'tests/hook/move_test.c', 'adapters/hook/entry.c', 'adapters/hook/move_arm64.c')
    subprocess.run([emulator, '-cpu', 'max', program], check=True)

    # The library as a whole, which takes the loader's function and looks at what a program loads.
    library = build('libweft-hook.so', '-shared', '-fPIC', '-fvisibility=hidden', '-fexceptions', '-lpthread', *hook,
                    *sorted(glob.glob('adapters/base/*.c', root_dir=source)), *sorted(glob.glob('adapters/event/*.c', root_dir=source)), *sorted(glob.glob('adapters/uv/*.c', root_dir=source)), *sorted(glob.glob('src/record/[!f]*.c', root_dir=source)),
                    *sorted(glob.glob('src/wire/*.c', root_dir=source)))
    with open(os.path.join(place, 'host.c'), 'w', encoding='utf-8') as file:
        file.write(host)
    program = build('host', os.path.join(place, 'host.c'))
    got = subprocess.run([emulator, '-cpu', 'max', '-L', os.path.dirname(libraries), '-E', f'LD_PRELOAD={library}', '-E', f'WEFT_RECORD={place}/out', program],
                         capture_output=True, text=True, check=False)
    if (got.returncode, got.stdout, got.stderr) != (5, '4\n', '') or os.path.exists(os.path.join(place, 'out')):
        sys.exit(f'a program with the library: {got}')
subprocess.run([move_all, libraries], check=True)
