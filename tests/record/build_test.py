#!/usr/bin/env python3
"""build_test.py ROOT: the public headers and the recorder compile as users compile them.

Each public header compiles alone, as C11 and C++17.  With WEFT_DISABLE, a program has the same object code as without calls of weft.  The core compiles without
   an operating system, for three processors.  If a compiler is missing, its part is skipped with a note.
SPDX-License-Identifier: ISC"""
import os, shutil, subprocess, sys, tempfile

ROOT = sys.argv[1]
INCLUDE = os.path.join(ROOT, 'include')
failures = []


def llvm(tool):
    """Returns the name of an installed LLVM tool, which may contain a version; if it is not installed, the name without a version."""
    found = subprocess.run([os.path.join(ROOT, 'tools', 'find-llvm'), tool], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return found.stdout.strip() or tool


CLANG, CLANGXX = llvm('clang'), llvm('clang++')


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def expect(what, *command):
    result = run(*command)
    if result.returncode:
        failures.append(f'{what}: {" ".join(command)}\n{result.stdout}')


def headers(out):
    compilers = [(c, 'c', '-std=c11') for c in ('gcc', CLANG)] + [(c, 'c++', '-std=c++17') for c in ('g++', CLANGXX)]
    for compiler, language, standard in compilers:
        if not shutil.which(compiler):
            print(f'skipped: no {compiler}')
            continue
        for header in sorted(os.listdir(os.path.join(INCLUDE, 'weft'))):
            source = os.path.join(out, 'header.c')
            with open(source, 'w') as f:
                f.write(f'#include <weft/{header}>\n#include <weft/{header}>\n')
            # The header of libuv is not strict C.
            system = ['-D_GNU_SOURCE'] if header == 'uv.h' else []
            expect(header, compiler, '-x', language, standard, *system, '-Wall', '-Wextra', '-Werror', '-O2', '-I', INCLUDE, '-c', source, '-o', os.devnull)


PROGRAM = '''
#include <stdlib.h>
#ifdef CALLS
#include <weft/record.h>
static struct weft_record_text done = WEFT_COUNTER("done");
#define CALL(x) x
#else
#define CALL(x)
#endif
int serve(int request, const char *name);
int serve(int request, const char *name)
{
	CALL(weft_id id = WEFT_CREATE(WEFT_KIND_REQUEST);)
	CALL(WEFT_LABEL(id, "request"); weft_label(id, name); weft_run(id); weft_await(id, 3); weft_pause_end();)
	int result = abs(request) + name[0];
	CALL(weft_counter_add(id, &done, 1); weft_resolve(id, id); weft_fail(id, 2, name); weft_idle(WEFT_IDLE_WAIT);)
	CALL(WEFT_NOTE(id, "over"); weft_become(id, 2); weft_signal(id, 3); weft_pending(1, 2, WEFT_KIND_FS, NULL, 0, name);)
	return result;
}
'''


def disabled(out):
    source = os.path.join(out, 'program.c')
    with open(source, 'w') as f:
        f.write(PROGRAM)
    for compiler in ('gcc', CLANG):
        if not shutil.which(compiler):
            continue
        dumps = []
        for flags in ((), ('-DCALLS', '-DWEFT_DISABLE'), ('-DCALLS',)):
            target = os.path.join(out, 'program.o')
            expect('program', compiler, '-O2', '-I', INCLUDE, *flags, '-c', source, '-o', target)
            dumps.append([run('objdump', '-s', '-j', section, target).stdout for section in ('.text', '.data', '.rodata', '.bss')] +
                         [run('nm', target).stdout])
        expect('program', compiler, '-O0', '-I', INCLUDE, '-DCALLS', '-DWEFT_DISABLE', '-c', source, '-o', target)
        wanted = run('nm', '--undefined-only', target).stdout
        if 'weft' in wanted:
            failures.append(f'{compiler}: without optimization WEFT_DISABLE leaves\n{wanted}')
        if dumps[0] != dumps[1]:
            failures.append(f'{compiler}: WEFT_DISABLE leaves something behind')
        if dumps[0] == dumps[2]:
            failures.append(f'{compiler}: the calls that were to vanish are not there in the first place')


def freestanding(out):
    sources = [os.path.join(ROOT, 'src', s) for s in ('record/core.c', 'record/define.c', 'record/buffer.c', 'record/freestanding.c', 'wire/event.c', 'wire/metadata.c')]
    targets = [(['gcc', '-m64'], 'x86-64'), (['gcc', '-m32', '-march=i686'], 'i686'), ([CLANG, '--target=x86_64-none-elf'], 'x86-64'),
               ([CLANG, '--target=i686-none-elf'], 'i686'), ([CLANG, '--target=aarch64-none-elf'], 'aarch64')]
    for compiler, name in targets:
        if not shutil.which(compiler[0]):
            print(f'skipped: no {compiler[0]} for {name}')
            continue
        objects = []
        for source in sources:
            objects.append(os.path.join(out, os.path.basename(source) + '.o'))
            expect(f'freestanding {name}', *compiler, '-std=c11', '-O2', '-ffreestanding', '-nostdlib', '-fno-stack-protector', '-fno-pic', '-Wall', '-Wextra', '-Werror',
                   '-I', INCLUDE, '-I', os.path.join(ROOT, 'src'), '-c', source, '-o', objects[-1])
        if all(os.path.exists(o) for o in objects):
            defined, wanted = set(), set()
            for line in run('nm', *objects).stdout.splitlines():
                words = line.split()
                if len(words) >= 2:
                    (wanted if words[-2] == 'U' else defined).add(words[-1])
            # Functions that a compiler may call by itself, such as 64-bit divisions with -m32.
            rest = wanted - defined - {'memcpy', 'memset', 'strlen', 'memmove', 'memcmp', '__udivdi3', '__umoddi3', '__divdi3', '__moddi3',
                                       '__udivmoddi4', '__divmoddi4', '_GLOBAL_OFFSET_TABLE_', '__atomic_load_8', '__atomic_store_8',
                                       '__atomic_compare_exchange_8', '__atomic_fetch_add_8'}
            if rest:
                failures.append(f'freestanding {name} needs {sorted(rest)}')


# A wrong argument, and the only message that a compiler may print about it.
NO_LITERALS = {
    'WEFT_LABEL(id, name)': 'WEFT_LABEL takes a string literal; use weft_label()',
    'WEFT_FAIL(id, id, name)': 'WEFT_FAIL takes a string literal; use weft_fail()',
    'WEFT_NOTE(id, name)': 'WEFT_NOTE takes a string literal; use weft_note()',
    'WEFT_PAUSE(name, 1)': 'WEFT_PAUSE takes a string literal',
    'WEFT_PAUSE_BEGIN(name)': 'WEFT_PAUSE_BEGIN takes a string literal',
    'weft_label_text(id, WEFT_TEXT(name))': 'WEFT_TEXT takes a string literal',
    'static struct weft_record_text count = WEFT_COUNTER(name); weft_counter_add(id, &count, 1)': 'WEFT_COUNTER takes a string literal',
}


def no_literals(out):
    source = os.path.join(out, 'no_literal.c')
    compilers = [('gcc', 'c', '-std=c11'), (CLANG, 'c', '-std=c11'), ('g++', 'c++', '-std=c++17'), (CLANGXX, 'c++', '-std=c++17')]
    for compiler, language, standard in compilers:
        if not shutil.which(compiler):
            print(f'skipped: no {compiler}')
            continue
        for call, message in NO_LITERALS.items():
            for wrong in (True, False):
                with open(source, 'w') as f:
                    right = call.replace('name', 'TEXT " of two"') if not wrong else call
                    f.write('#include <weft/record.h>\n#define TEXT "a text"\nvoid say(weft_id id, const char *name);\n'
                            'void say(weft_id id, const char *name)\n{\n\t(void)id, (void)name;\n\t%s;\n}\n' % right)
                result = run(compiler, '-x', language, standard, '-Wall', '-Wextra', '-Werror', '-O2', '-I', INCLUDE, '-c', source, '-o', os.devnull)
                errors = [line for line in result.stdout.splitlines() if ' error: ' in line]
                if (wrong and (len(errors) != 1 or message not in errors[0])) or (not wrong and result.returncode):
                    failures.append(f'{compiler}: {right}: {result.stdout}')


with tempfile.TemporaryDirectory() as out:
    headers(out)
    no_literals(out)
    disabled(out)
    freestanding(out)
print('\n'.join(failures) or 'fine')
sys.exit(1 if failures else 0)
