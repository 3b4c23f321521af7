#!/usr/bin/env python3
"""elsewhere_test.py i686|musl|aarch64 ROOT WEFT RECORDER HOOK FOLDER: the recorder, built for other architectures or another libc, makes traces that WEFT reads.

i686: 32-bit programs, with an off_t of 32 or 64 bits, run in the hostile conditions about files, signals and children; a 32-bit program that preloads
   a 64-bit library, RECORDER or HOOK, runs as without it.  musl: programs are linked with the recorder, also statically, or load it while they run.
   aarch64: qemu-user runs the tests of the recorder; Debian's cmocka for aarch64 is fetched into FOLDER.  SPDX-License-Identifier: ISC"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'hook'))
import debian_arm64  # pylint: disable=wrong-import-position

WHERE = sys.argv[1]
ROOT, WEFT, RECORDER, HOOK, FOLDER = (os.path.abspath(path) for path in sys.argv[2:])
CC = {'i686': 'i686-linux-gnu-gcc', 'musl': 'musl-gcc', 'aarch64': 'aarch64-linux-gnu-gcc'}[WHERE]
EVENTS = 60000
CONDITIONS = ['daemon_closes_all_descriptors', 'recording_keeps_descriptor_numbers', 'write_at_2_gib_has_the_same_result_while_recording', 'truncated_trace_files_do_not_stop_the_program', 'replaced_trace_files_do_not_stop_the_program', 'sigbus_handler_set_before_recording_is_called',
              'children_of_each_call_have_their_exit_status', 'recording_children_exit_with_status_0', 'exec_itself', 'small_stacks', 'signals_interrupt_every_call', 'file_size_limit_ends_the_program_only_for_its_own_writes',
              'ordinary_work', 'growing files']
FLAGS = ['-std=c11', '-D_GNU_SOURCE', '-O2', '-Wall', '-Wextra', '-Werror', '-Wno-unused-parameter', '-ffunction-sections',
         '-I' + os.path.join(ROOT, 'include'), '-I' + os.path.join(ROOT, 'src')]
SHARED = ['-shared', '-fPIC', '-fvisibility=hidden']
LARGE = '-D_FILE_OFFSET_BITS=64'
# Meson sets the path to the libraries of this build, which the programs of this test cannot load.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != 'LD_LIBRARY_PATH'}
wrong = []


def run(*words, **environment):
    return subprocess.run(words, capture_output=True, text=True, check=False, env={**ENVIRONMENT, **environment})


def compile_to(out, *arguments):
    subprocess.run([CC, *FLAGS, *arguments, '-o', out, '-Wl,--gc-sections', '-lpthread'], check=True)


def check(holds, what, *more):
    if not holds:
        wrong.append(f'{what}: {more}')


def test_recorded_program_prints_the_same_and_has_every_event(folder, name, library, *flags):
    """Checks that every event is in the trace, and that the program's output is unchanged."""
    many, hostile, trace = (os.path.join(folder, f'{program}-{name}') for program in ('many', 'hostile', 'trace'))
    compile_to(many, *flags, os.path.join(ROOT, 'tests/proof/many.c'), *library)
    compile_to(hostile, *flags, *(os.path.join(ROOT, path) for path in ('tests/proof/hostile.c', 'src/trace/follow.c', 'src/trace/ocaml_ring.c', 'src/base/named.c')), *library)
    got = run(many, str(EVENTS), WEFT_TRACE=trace + ',mode=grow')
    check(got.returncode == 0 and not got.stderr, 'many', got)
    info = json.loads(run(WEFT, 'info', '--json', trace).stdout or '{}')
    counted = info.get('events', 0) - info.get('events_by_kind', {}).get('detail', 0)  # on a busy machine, each OS thread also records its CPU times
    check(counted == EVENTS and not info['skipped_count'], f'events, {name}', info)
    got = run(sys.executable, os.path.join(ROOT, 'tests/proof/hostile_test.py'), hostile, WEFT, *CONDITIONS)
    check(got.returncode == 0, f'hostile, {name}', got.stdout, got.stderr)
    print(f'{name}: {info.get("events")} events\n{got.stdout}', end='')


def test_program_of_32_bits_runs_with_a_64_bit_library_preloaded(folder):
    """If the library is preloaded into a program of another architecture, the loader prints an error, and the program runs on."""
    plain = os.path.join(folder, 'plain')
    for library in RECORDER, HOOK:
        got = run(plain, LD_PRELOAD=library, WEFT_TRACE=os.path.join(folder, 'nothing'), WEFT_RECORD=os.path.join(folder, 'nothing'))
        loaders = [line for line in got.stderr.splitlines() if 'wrong ELF class' in line]
        check((got.returncode, got.stdout, got.stderr.replace(''.join(line + '\n' for line in loaders), '')) == (3, 'I am\n', 'fine\n') and len(loaders) == 1,
              os.path.basename(library), got)
    got = run(WEFT, 'record', '-o', os.path.join(folder, 'recorded'), '--', plain)
    said = got.stderr.replace('fine\n', '', 1)
    check((got.returncode, got.stdout, said.count('\n')) == (3, 'I am\n', 1) and 'a 32-bit program' in said, 'weft record', got)
    # weft record prints no note about the architecture if the program is linked with a recorder of its own.
    got = run(WEFT, 'record', '-o', os.path.join(folder, 'itself'), '--', os.path.join(folder, 'many-off_t-32'), '2000')
    check(got.returncode == 0 and 'many-off_t-32' in got.stderr and '32-bit' not in got.stderr, 'weft record, a recorder of its own', got)


def test_plugin_of_a_musl_program_records_only_with_dynamic_tls(folder, sources):
    """musl has no static TLS for libraries that are loaded while a program runs, so the recorder of a plugin has to be built with WEFT_TLS_DYNAMIC."""
    plugin = os.path.join(folder, 'plugin.c')
    with open(plugin, 'w', encoding='utf-8') as file:
        file.write('#include <weft/record.h>\nvoid run(void);\nvoid run(void) { weft_id task = WEFT_CREATE(WEFT_KIND_TASK); weft_resolve(task, task); }\n')
    host = os.path.join(folder, 'host')
    with open(host + '.c', 'w', encoding='utf-8') as file:
        file.write('#include <dlfcn.h>\n#include <stdio.h>\nint main(int argc, char **argv)\n{\n\tvoid *plugin = dlopen(argv[1], RTLD_NOW);\n\tif (!plugin) {\n'
                   '\t\tputs(dlerror());\n\t\treturn 2;\n\t}\n\t((void (*)(void))dlsym(plugin, "run"))();\n\tputs("ran");\n\treturn 0;\n}\n')
    compile_to(host, host + '.c', '-Wno-pedantic', '-Wno-unused-parameter')
    for how, flags in ('as ever', ()), ('dynamic', ('-DWEFT_TLS_DYNAMIC',)):
        inner, trace = os.path.join(folder, how.replace(' ', '-')), os.path.join(folder, 'trace of a plugin ' + how)
        os.mkdir(inner)
        compile_to(os.path.join(inner, 'libweft-record.so'), *flags, *SHARED, *sources)
        compile_to(os.path.join(inner, 'plugin.so'), *flags, '-shared', '-fPIC', plugin, '-L' + inner, '-lweft-record', '-Wl,-rpath,' + inner)
        got = run(host, os.path.join(inner, 'plugin.so'), WEFT_TRACE=trace)
        if flags:
            info = json.loads(run(WEFT, 'info', '--json', trace).stdout or '{}')
            check(got.stdout == 'ran\n' and info.get('events_by_kind', {}).get('resolve') == 1, 'a plugin of musl', got, info)
        else:
            check(got.returncode == 2 and 'initial-exec TLS' in got.stdout, 'a plugin of musl whose recorder is not for it', got)


# Tests that may fail because qemu-user differs from Linux, with the difference.
OF_THE_EMULATOR = {
    'test_creation_has_its_site': 'a process is called qemu-aarch64',
    'test_child_of_a_fork_without_handlers_does_not_record': 'MADV_WIPEONFORK is accepted and does nothing',
    'test_long_iterations_have_their_cpu_times': 'PR_GET_SECCOMP is unknown, and so nothing is asked of processor time',
    'test_recorded_iterations_without_resume_are_limited': 'PR_GET_SECCOMP is unknown, and so nothing is asked of processor time',
}


def test_recorder_works_on_aarch64(folder, sources):
    """Runs the tests of the recorder, with the core library that reads the recordings."""
    cmocka = debian_arm64.fetch(FOLDER, 'libcmocka0', 'libcmocka.so.0')
    if not cmocka or not debian_arm64.fetch(FOLDER, 'libcmocka-dev', 'libcmocka.so') or not shutil.which('qemu-aarch64'):
        print('skipped: no cmocka of Debian for arm64, or no qemu-aarch64')
        return 77
    core = [path for part in ('base', 'trace', 'model') for path in sorted(glob.glob(os.path.join(ROOT, 'src', part, '*.c')))]
    program = os.path.join(folder, 'record_test')
    compile_to(program, '-I' + ROOT, '-I' + os.path.join(FOLDER, 'usr', 'include'), os.path.join(ROOT, 'tests/record/record_test.c'), *sources, *core,
               os.path.join(cmocka, 'libcmocka.so'), '-lm')
    got = run('qemu-aarch64', '-L', '/usr/aarch64-linux-gnu', '-E', 'LD_LIBRARY_PATH=' + cmocka, program)
    failed = set(re.findall(r'\[  FAILED  \] (test_\w+)', got.stdout + got.stderr))
    passed = re.findall(r'\[       OK \] (test_\w+)', got.stdout + got.stderr)
    check(failed <= set(OF_THE_EMULATOR) and len(passed) > 30, 'aarch64', failed, got)
    print(f'aarch64: {len(passed)} tests passed; of the emulator: {sorted(failed)}')
    return 0


def kernel_headers(folder):
    """Returns a folder with the kernel headers of this system, because musl has none."""
    inner = os.path.join(folder, 'kernel')
    os.mkdir(inner)
    for name in ('linux', 'asm-generic', 'asm'):
        place = next(path for path in ('/usr/include/' + name, f'/usr/include/{os.uname().machine}-linux-gnu/{name}') if os.path.isdir(path))
        os.symlink(place, os.path.join(inner, name))
    return inner


def main():
    if not shutil.which(CC):
        print(f'skipped: no {CC}')
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        sources = [path for part in ('record', 'wire') for path in sorted(glob.glob(os.path.join(ROOT, 'src', part, '*.c')))
                   if not path.endswith('freestanding.c')]
        library = os.path.join(folder, 'libweft-record.so')
        linked = ['-L' + folder, '-lweft-record', '-Wl,-rpath,' + folder]
        if WHERE == 'aarch64':
            status = test_recorder_works_on_aarch64(folder, sources)
            if status:
                return status
        elif WHERE == 'musl':
            FLAGS.extend(['-idirafter', kernel_headers(folder)])
            compile_to(library, *SHARED, *sources)
            test_recorded_program_prints_the_same_and_has_every_event(folder, 'musl', linked)
            test_recorded_program_prints_the_same_and_has_every_event(folder, 'musl-static', ['-static', *sources])
            test_plugin_of_a_musl_program_records_only_with_dynamic_tls(folder, sources)
        else:
            plain = os.path.join(folder, 'plain')
            with open(plain + '.c', 'w', encoding='utf-8') as source:
                source.write('#include <stdio.h>\nint main(void) { puts("I am"); fputs("fine\\n", stderr); return 3; }\n')
            compile_to(plain, plain + '.c')
            try:
                run(plain)
            except OSError:
                print('skipped: no kernel or no loader here for programs of 32 bits (libc6-i386)')
                return 77
            compile_to(library, LARGE, *SHARED, *sources)
            test_recorded_program_prints_the_same_and_has_every_event(folder, 'off_t-32', linked)
            test_recorded_program_prints_the_same_and_has_every_event(folder, 'off_t-64', linked, LARGE)
            test_program_of_32_bits_runs_with_a_64_bit_library_preloaded(folder)
    print('\n'.join(wrong))
    return 1 if wrong else 0


sys.exit(main())
