#!/usr/bin/env python3
"""arm64_test.py SOURCE MOVE_ALL WEFT FOLDER: entries are moved on aarch64, too: built by a cross compiler, run by qemu-user.  A program of Debian's
libuv for arm64, which apt fetches into FOLDER, is recorded.

SPDX-License-Identifier: ISC"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

import debian_arm64

source, move_all, weft, folder = sys.argv[1], *map(os.path.abspath, sys.argv[2:5])
compiler, emulator, libraries = 'aarch64-linux-gnu-gcc', 'qemu-aarch64', '/usr/aarch64-linux-gnu/lib'
if not shutil.which(compiler) or not shutil.which(emulator):
    print(f'skipped: {compiler} or {emulator} is missing')
    sys.exit(77)
flags = ['-O1', '-Wall', '-Wextra', '-Werror', '-Wno-unused-parameter', '-D_GNU_SOURCE', '-I.', '-Iinclude', '-Isrc',
         *subprocess.run(['pkg-config', '--cflags-only-I', 'gio-unix-2.0'], stdout=subprocess.PIPE, text=True, check=True).stdout.split()]
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
of_libuv = '''
#include <stdio.h>
#include <uv.h>
static uv_timer_t timer;
static void on_timer(uv_timer_t *which) { puts("timer"); uv_close((uv_handle_t *)which, NULL); }
static void on_stat(uv_fs_t *request)
{
	printf("stat %d\\n", (int)request->result);
	uv_fs_req_cleanup(request);
	uv_timer_start(&timer, on_timer, 30, 0);
}
static void work(uv_work_t *request) { }
static void after(uv_work_t *request, int status) { }
int main(void)
{
	uv_fs_t stat;
	uv_work_t job;
	uv_timer_init(uv_default_loop(), &timer);
	uv_fs_stat(uv_default_loop(), &stat, "/", on_stat);
	uv_queue_work(uv_default_loop(), &job, work, after);
	return uv_run(uv_default_loop(), UV_RUN_DEFAULT) ? 1 : 7;
}
'''


def record_libuv(place, build, run):
    """Checks that the output is the same with recording, and that the trace has it."""
    library = debian_arm64.fetch(folder, 'libuv1', 'libuv.so.1')
    if not library or not os.path.exists('/usr/include/uv.h'):
        print('skipped: no libuv of Debian for arm64')
        return
    with open(os.path.join(place, 'of_libuv.c'), 'w', encoding='utf-8') as file:
        file.write(of_libuv)
    program = build('of_libuv', os.path.join(place, 'of_libuv.c'), '-idirafter', '/usr/include', os.path.join(library, 'libuv.so.1'),
                    '-Wl,--unresolved-symbols=ignore-in-shared-libs')
    plain = run(program, {'LD_LIBRARY_PATH': library})
    out = os.path.join(place, 'recorded')
    os.mkdir(out)
    recorded = run(program, {'LD_LIBRARY_PATH': library, 'LD_PRELOAD': os.path.join(place, 'libweft-hook.so'), 'WEFT_RECORD': out})
    if plain != recorded or plain != (7, 'stat 0\ntimer\n', ''):
        sys.exit(f'a program of libuv: {recorded}, without recording {plain}')
    dumped = subprocess.run([weft, 'dump', '--json', out], capture_output=True, text=True, check=True).stdout
    promises = [line for line in map(json.loads, dumped.splitlines()) if line.get('promise', -1) > 0]
    got = {(p['kind'], text) for p in promises if p['end'] == 'resolved' for _, text in p['labels']}
    if not {('fs', 'stat /'), ('loop', 'uv_run'), ('timer', '30 ms'), ('work', 'thread pool: at work+1')} <= got:
        sys.exit(f'what was recorded of it: {promises}')


with tempfile.TemporaryDirectory() as place:
    def build(out, *arguments):
        subprocess.run([compiler, *flags, '-o', os.path.join(place, out), *arguments], cwd=source, check=True)
        return os.path.join(place, out)

    # With every extension: pointer authentication and landing pads among them.
    program = build('move_test', '-static', 'tests/hook/move_test.c', 'adapters/hook/entry.c', 'adapters/hook/patches.c', 'adapters/hook/move_arm64.c')
    subprocess.run([emulator, '-cpu', 'max', program], check=True)

    # The complete library, which moves the loader's function and inspects loaded libraries.
    library = build('libweft-hook.so', '-shared', '-fPIC', '-fvisibility=hidden', '-fexceptions', '-lpthread', *hook,
                    'adapters/python/adapter.c', *(path for adapter in ('base', 'event', 'glib', 'loop', 'node', 'ocaml', 'qemu', 'sd', 'uv') for path in sorted(glob.glob(f'adapters/{adapter}/*.c', root_dir=source))),
                    *(path for path in sorted(glob.glob('src/record/*.c', root_dir=source)) if not path.endswith('/freestanding.c')),
                    *sorted(glob.glob('src/protocol/*.c', root_dir=source)), *sorted(glob.glob('src/wire/*.c', root_dir=source)))
    with open(os.path.join(place, 'host.c'), 'w', encoding='utf-8') as file:
        file.write(host)
    program = build('host', os.path.join(place, 'host.c'))
    def run(program, env):
        words = [word for name, value in env.items() for word in ('-E', f'{name}={value}')]
        got = subprocess.run([emulator, '-cpu', 'max', '-L', os.path.dirname(libraries), *words, program], capture_output=True, text=True, check=False)
        return got.returncode, got.stdout, got.stderr

    got = run(program, {'LD_PRELOAD': library, 'WEFT_RECORD': f'{place}/out'})
    if got != (5, '4\n', '') or os.path.exists(os.path.join(place, 'out')):
        sys.exit(f'a program with the library: {got}')
    record_libuv(place, build, run)
subprocess.run([move_all, libraries], check=True)
