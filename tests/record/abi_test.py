#!/usr/bin/env python3
"""abi_test.py [--record] ROOT BUILD WEFT: programs that were built with one version of record.h run with another version of the library.

The test makes a next version of the library from today's source, with a changed struct weft_stream and a higher WEFT__ABI.  abidiff compares
   today's library with libweft-record.abi in this folder; --record writes this file again, after WEFT__ABI was increased or an addition.  SPDX-License-Identifier: ISC"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

RECORD = sys.argv[1] == '--record'
ROOT, BUILD, WEFT = map(os.path.abspath, sys.argv[-3:])
GOLDEN = os.path.join(ROOT, 'tests', 'record', 'libweft-record.abi')
folder = tempfile.mkdtemp(prefix='abi-')
PROGRAM = r'''
#include <stdio.h>
#include <string.h>
#include <weft/record.h>
#ifdef HAS_PLUGIN
void plugin(void);
#endif
int main(int argc, char **argv)
{
	struct {
		struct weft_record_options options;
		char behind[64];
	} mine = {.options = {.directory = argc > 1 ? argv[1] : NULL}};
	memset(mine.behind, 0xee, sizeof mine.behind);
	if (argc > 1 && weft_start(&mine.options) < 0)
		printf("%s\n", weft_start_error());
	for (int i = 0; i < 1000; i++) {
		weft_id task = WEFT_CREATE(WEFT_KIND_TASK);
		WEFT_LABEL(task, "a task");
		weft_label(task, "another text");
		weft_run(task);
		weft_idle(WEFT_IDLE_WAIT);
		weft_resume(task);
		weft_await(task, task + 1);
		weft_resolve(task, task);
	}
#ifdef HAS_PLUGIN
	plugin();
#endif
	puts("done");
	return 0;
}
'''
PLUGIN = r'''
#include <weft/record.h>
void plugin(void);
void plugin(void)
{
	weft_id request = WEFT_CREATE(WEFT_KIND_REQUEST);
	weft_resolve(request, request);
}
'''


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done


def write(name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


def read(*path):
    with open(os.path.join(ROOT, *path), encoding='utf-8') as file:
        return file.read()


def next_library():
    """Adds a member at the start of struct weft_stream, and another at its end."""
    header = read('include', 'weft', 'record_inline.h')
    patched = header.replace('#define WEFT__ABI 0', '#define WEFT__ABI 1', 1)
    patched = re.sub(r'(struct weft_stream \{\n)', r'\1\tuint64_t added[3];\n', patched, count=1)
    assert patched.count('WEFT__ABI 1') == 1 and 'added[3]' in patched
    for name in os.listdir(os.path.join(ROOT, 'include', 'weft')):
        write(f'next/weft/{name}', patched if name == 'record_inline.h' else read('include', 'weft', name))
    make_library('lib', os.path.join(folder, 'next'))


def make_library(where, include):
    sources = [os.path.join(ROOT, 'src', part, name) for part in ('base', 'wire', 'record')
               for line in read('src', part, 'meson.build').splitlines() if line.startswith('record_sources') for name in re.findall(r"'([^']+\.c)'", line)]
    os.makedirs(os.path.join(folder, where))
    run('gcc', '-std=c11', '-D_GNU_SOURCE', '-O2', '-g', '-fPIC', '-shared', '-fvisibility=hidden', '-Wall', '-Wextra', '-Wno-unused-parameter', '-Werror', '-DWEFT_VERSION="0.9.9"',
        f'-fdebug-prefix-map={ROOT}/=', '-I', include, '-I', os.path.join(ROOT, 'src'), '-Wl,-soname,libweft-record.so.0', '-Wl,-z,nodelete', *sources,
        '-lpthread', '-o', os.path.join(folder, where, 'libweft-record.so.0'))


def compare_interfaces(include, later_header):
    """Checks that abidiff finds a change of the interface that programs compile in, in this version or in the next."""
    def described(library, header):
        out = library + '.abi'
        run('abidw', '--headers-dir', header, '--drop-private-types', '--exported-interfaces-only', '--no-show-locs', '--no-comp-dir-path', '--no-corpus-path', '--no-architecture',
            '--out-file', out, library)
        return out
    make_library('today', include)
    same = described(os.path.join(folder, 'today', 'libweft-record.so.0'), include)
    if RECORD:
        shutil.copy(same, GOLDEN)
    told = subprocess.run(['abidiff', '--no-added-syms', GOLDEN, same], capture_output=True, text=True, check=False)
    assert told.returncode == 0, f'programs of before do not go with this library: {told.stdout}\ncount up WEFT__ABI, then: abi_test.py --record'
    told = subprocess.run(['abidiff', '--no-added-syms', GOLDEN, described(libraries['later'], later_header)], capture_output=True, text=True, check=False)
    assert told.returncode & 4, told


def build(name, include, library, source, *more):
    out = os.path.join(folder, name)
    run('gcc', '-O2', '-Wall', '-I', include, source, '-o', out, *more, library)
    return out


def promises(trace, kind):
    return len(re.findall(rf'"kind":"{kind}"', run(WEFT, 'dump', '--json', trace).stdout))


next_library()
program, plugin = write('program.c', PROGRAM), write('plugin.c', PLUGIN)
today, later = os.path.join(ROOT, 'include'), os.path.join(folder, 'next')
libraries = {'today': os.path.join(BUILD, 'libweft-record.so.0'), 'later': os.path.join(folder, 'lib', 'libweft-record.so.0')}
with_later = {**os.environ, 'LD_LIBRARY_PATH': os.path.join(folder, 'lib')}
with_today = {**os.environ, 'LD_LIBRARY_PATH': BUILD}
LINE = 'the program was built with another version of weft/record.h than the loaded library 0.9.9; rebuild the program\n'

exported = {line.split()[-1] for line in run('nm', '-D', '--defined-only', libraries['later']).stdout.splitlines()}
for symbol in read('tests', 'record', 'symbols.txt').split():
    assert symbol in exported and (symbol + '_abi1' in exported or symbol == 'weft__start'), f'{symbol} is missing in src/record/abi.c'
old = build('old', today, libraries['today'], program)
new = build('new', later, libraries['later'], program)
assert run(old, env=with_later).stderr == '', 'nothing is said where nothing is to be recorded'
for name, binary, environment, said, count in (
        ('a', old, with_today, '', 1000), ('b', new, with_later, '', 1000), ('c', old, with_later, 'weft: recording is off: ' + LINE, None)):
    trace = os.path.join(folder, name)
    done = run(binary, env={**environment, 'WEFT_TRACE': trace})
    assert (done.stdout, done.stderr) == ('done\n', said), (name, done)
    if count:
        assert promises(trace, 'task') == count
    else:
        assert 'no events' in subprocess.run([WEFT, 'info', trace], capture_output=True, text=True, check=False).stderr
done = run(old, os.path.join(folder, 'd'), env=with_later)
assert (done.stdout, done.stderr) == (LINE + 'done\n', '') and not os.path.exists(os.path.join(folder, 'd')), done

# The options of 0.1.0 ended before `runtimes`; the bytes behind them belong to the program.
first_header = read('include', 'weft', 'record.h')
without = re.sub(r'\t/\*(?:(?!\*/).)*\*/\n\tconst char \*runtimes;\n', '', first_header, flags=re.S)
assert "const char *runtimes;" not in without
for name in os.listdir(os.path.join(ROOT, 'include', 'weft')):
    write(f'first/weft/{name}', without if name == 'record.h' else read('include', 'weft', name).replace('weft__start_as(options, sizeof *options)', 'weft__start(options)').replace(
        'int weft__start_as(const struct weft_record_options *options, size_t bytes) WEFT__NAMED("weft__start_as")', 'int weft__start(const struct weft_record_options *options)'))
first = build('first-program', os.path.join(folder, 'first'), libraries['today'], program)
done = run(first, os.path.join(folder, 'f'), env=with_today)
assert (done.stdout, done.stderr) == ('done\n', '') and promises(os.path.join(folder, 'f'), 'task') == 1000, done

# With the later library, a plugin with the later header records, and the program with today's header does not.
shared = build('libplugin.so', later, libraries['later'], plugin, '-shared', '-fPIC')
both = build('both', today, libraries['today'], program, '-DHAS_PLUGIN', shared, '-Wl,-rpath,' + folder, '-Wl,--allow-shlib-undefined')
done = run(both, env={**with_later, 'WEFT_TRACE': os.path.join(folder, 'e')})
assert (done.stdout, done.stderr) == ('done\n', 'weft: recording is off: ' + LINE), done
assert promises(os.path.join(folder, 'e'), 'request') == 1 and promises(os.path.join(folder, 'e'), 'task') == 0

if shutil.which('abidiff'):
    compare_interfaces(today, later)
else:
    print('skipped: what abidiff says, which is not here')
