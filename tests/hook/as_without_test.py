#!/usr/bin/env python3
"""as_without_test.py ITSELF ODD WEFT [ONLY...]: a recorded program notices nothing.

itself.c prints everything that a program can see of itself: the output is the same with and without recording, however weft record was started.
odd.c and the commands below have the same exit status, output and errors.  docs/record-installed.md lists the differences.  ONLY names tests or commands.
SPDX-License-Identifier: ISC"""
import concurrent.futures
import ctypes
import difflib
import glob
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

itself, odd, weft = map(os.path.abspath, sys.argv[1:4])
only = sys.argv[4:]
here = os.path.dirname(os.path.abspath(__file__))
PATIENCE_S = 240
PR_SET_CHILD_SUBREAPER = 36
TRIES = 3
wrong, same, absent = [], [], []


def run(command, **options):
    """Returns exit status as a shell says it, output and errors."""
    options = {'stdin': subprocess.DEVNULL, **options}
    got = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False, **options)
    return 128 - got.returncode if got.returncode < 0 else got.returncode, got.stdout, got.stderr


def plain_errors(errors):
    """Removes lines of weft, and numbers that differ from run to run: process ids, addresses, times."""
    return re.sub(rb'0x[0-9a-f]+|\b[0-9a-f]{8,}\b|[0-9]+', b'N', re.sub(rb'weft: [^\n]*\n', b'', errors))


def difference(plain, got):
    for what, before, after in zip(('exit status', 'output', 'errors'), plain, got):
        if before != after:
            if what == 'exit status':
                return f'{what}: {after}, not {before}: {got[2][-300:]!r}'
            return f'{what}:\n' + '\n'.join(list(difflib.unified_diff(before.decode(errors='replace').splitlines(), after.decode(errors='replace').splitlines(),
                                                                      lineterm='', n=0))[:12])
    return ''


def compare(name, command, exact=False, prefix=(), **options):
    """Runs the command without and with recording.  Programs that differ from run to run get several tries, unless `exact`."""
    found = ''
    for attempt in range(1 if exact else TRIES):
        results = []
        with tempfile.TemporaryDirectory(prefix='weft-as-') as folder:
            os.chmod(folder, 0o711)
            for recorder in (), (weft, 'record', '-o', folder + '/x.trace', '--'):
                own = tempfile.mkdtemp(dir=folder)
                work = os.path.join(folder, 'work')
                os.rename(own, work)
                status, output, errors = run([*prefix, *recorder, *command], cwd=work, **options)
                shutil.rmtree(work, ignore_errors=True)
                results.append((status, output, plain_errors(errors)))
        found = difference(*results)
        if not found:
            break
    (wrong if found else same).append(f'{name}: {found}' if found else name)


def selected(name):
    return not only or name in only


# ---- Everything that a program can see of itself ----

def ignoring(*numbers):
    def before():
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
    return before


def limits():
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 400))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 22))
    os.umask(0o027)
    os.nice(5)


def descriptors():
    for fd in 5, 17, 100:
        os.dup2(0, fd)
    os.set_inheritable(17, True)


def closing(*fds):
    def before():
        for fd in fds:
            os.close(fd)
    return before


def blocking():
    signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGPIPE, signal.SIGUSR1, signal.SIGCHLD, signal.SIGTERM, signal.SIGRTMIN + 3})


def timers():
    signal.setitimer(signal.ITIMER_REAL, 3000, 7)
    signal.setitimer(signal.ITIMER_VIRTUAL, 4000)
    signal.setitimer(signal.ITIMER_PROF, 5000, 6)


def parent_of_orphans():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


# Popen ignores SIGPIPE in Python and restores it in children; preexec_fn runs after that.
STARTS = {
    'as usual': {},
    'SIGPIPE ignored, as by nohup-like parents': {'preexec_fn': ignoring(signal.SIGPIPE, signal.SIGHUP)},
    'children ignored': {'preexec_fn': ignoring(signal.SIGCHLD, signal.SIGINT, signal.SIGQUIT)},
    'signals of weft ignored': {'preexec_fn': ignoring(signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGRTMIN + 1)},
    'signals blocked': {'preexec_fn': blocking},
    'other limits': {'preexec_fn': limits},
    'more descriptors': {'preexec_fn': descriptors, 'close_fds': False},
    'no input': {'preexec_fn': closing(0)},
    'no errors': {'preexec_fn': closing(2)},
    'no input, no errors': {'preexec_fn': closing(0, 2)},
    'timers': {'preexec_fn': timers},
    'parent of orphans': {'preexec_fn': parent_of_orphans},
    'no environment': {'env': {}},
    'a small environment': {'env': {'A': 'b', '_': '/usr/bin/env', 'LD_BIND_NOW': '1'}},
    'no new privileges': {'prefix': ('setpriv', '--no-new-privs')},
    'death signal': {'prefix': ('setpriv', '--pdeathsig', 'TERM')},
    'fewer capabilities': {'prefix': ('setpriv', '--bounding-set=-sys_admin', '--inh-caps=-all')},
    'other personality': {'prefix': ('setarch', '-R', '-3')},
    'one CPU, batch': {'prefix': ('taskset', '1', 'chrt', '-b', '0')},
    'real time': {'prefix': ('chrt', '-f', '7')},
    'real time, not for children': {'prefix': ('chrt', '-R', '-r', '7')},
    'ambient capabilities': {'prefix': ('setpriv', '--inh-caps=+net_raw', '--ambient-caps=+net_raw', '--securebits=+noroot')},
    'late wake-ups': {'prefix': ('sh', '-c', 'echo 70000 > /proc/self/timerslack_ns; exec "$@"', 'sh')},
    'first to be killed without memory': {'prefix': ('choom', '-n', '300', '--')},
    'idle input and output': {'prefix': ('ionice', '-c3')},
    'other namespaces': {'prefix': ('unshare', '--pid', '--fork', '--mount-proc', '--ipc', '--uts')},
}


def test_program_sees_no_difference_however_weft_record_is_started():
    for name, options in STARTS.items():
        prefix = options.get('prefix', ())
        if prefix and subprocess.run([*prefix, 'true'], capture_output=True, check=False).returncode:
            absent.append(name)
            continue
        # `_` differs where weft was started without a shell.
        options = {**options, 'env': {k: v for k, v in options.get('env', os.environ).items() if k != '_'}}
        compare(name, [itself, 'an argument', ''], exact=True, **options)
    # A shell sets `_` to the program that it starts; other programs do not.
    for name, prefix in ('a shell', ('bash', '-c', '"$@"; exit', 'bash')), ('a program', ()):
        compare(f'the variable _ of {name}', ['/bin/sh', '-c', 'exec "$@" | grep "^variable _="', 'sh', itself], exact=True, prefix=prefix,
                env={**os.environ, '_': '/usr/bin/env'})


def test_sigpipe_ends_the_recorded_program():
    """SIGPIPE kills a recorded program after the reader of its output has ended."""
    for first in (), (weft, 'record', '-o', 'piped', '--'):
        script = ' '.join([*first, 'yes', '|', 'head', '-1;', 'echo', '${PIPESTATUS[0]}'])
        got = subprocess.run(['bash', '-c', script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
        ok = got.stdout == 'y\n141\n' and 'Broken pipe' not in got.stderr
        (same if ok else wrong).append('yes | head' if ok else f'{script}: {got.stdout}{got.stderr}')


def signals_sent(*recorder):
    """Sends signals to a program, or to weft that records it, and returns its output."""
    child = subprocess.Popen([*recorder, odd, 'print_signals'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                             start_new_session=True)
    # A program that does not get a signal prints nothing.
    impatience = threading.Timer(PATIENCE_S / 4, os.killpg, (child.pid, signal.SIGKILL))
    impatience.start()
    lines = [child.stdout.readline()]
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGWINCH, signal.SIGURG,
                   signal.SIGIO, signal.SIGABRT, signal.SIGRTMIN + 3, signal.SIGTERM):
        child.send_signal(number)
        lines += [child.stdout.readline(), child.stdout.readline()]
    impatience.cancel()
    return lines, child.wait(PATIENCE_S)


def test_signals_to_weft_record_reach_the_program():
    """A program gets the signals that are sent to weft record."""
    plain, recorded = signals_sent(), signals_sent(weft, 'record', '-o', 'signalled', '--')
    (same if plain == recorded else wrong).append(f'signals from outside: {recorded}, not {plain}' if plain != recorded else 'signals from outside')


CLOCK = '''#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *), calls;
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(id, t);
    if (id == CLOCK_REALTIME && ++calls > BEFORE)
        t->tv_sec += JUMP;
    return status;
}
'''


def test_wall_clock_jump_keeps_event_times():
    """The wall clock jumps while a program is recorded: the program goes on, and all events have times within its life."""
    with open('clock.c', 'w', encoding='utf-8') as file:
        file.write(CLOCK)
    longest_ns = PATIENCE_S * 10**9
    for jump in 3600, -3600, 315360000, -315360000:
        for before in 0, 10:
            if not compiled('a clock that jumps', 'cc', '-D_GNU_SOURCE', f'-DJUMP={jump}', f'-DBEFORE={before}', '-shared', '-fPIC', 'clock.c', '-o', 'clock.so', '-ldl'):
                return
            env = {**os.environ, 'LD_PRELOAD': os.path.abspath('clock.so')}
            shutil.rmtree('jumps.trace', ignore_errors=True)
            status, output, errors = run([weft, 'record', '-o', 'jumps.trace', '--', odd, 'only_loop'], env=env)
            told = run([weft, 'info', '--json', *glob.glob('jumps.trace/odd-*')])
            known = json.loads(told[1].splitlines()[0]) if told[0] == 0 else {}
            ok = (status, output) == (0, b'loop: 0\n') and known.get('events', 0) > 5 and known['span_ns'] < longest_ns and not known['skipped_count']
            (same if ok else wrong).append(f'a clock that jumps by {jump} s after {before} calls' + ('' if ok else f': {status} {output} {errors} {told}'))


# ---- Programs ----

ASYNCIO = '''import asyncio
async def part(i):
    await asyncio.sleep(i / 1000)
    return i
async def whole():
    print(await asyncio.gather(*map(part, range(20))))
    child = await asyncio.create_subprocess_exec('echo', 'a child', stdout=asyncio.subprocess.PIPE)
    print(await child.stdout.read(), await child.wait())
asyncio.run(whole())'''
JAVA = 'public class Hello { public static void main(String[] a) throws Exception { Thread t = new Thread(() -> System.out.println("thread")); t.start(); t.join(); System.exit(4); } }'
SHELL = 'trap "echo trapped" USR1; kill -USR1 $$; (exit 3); echo $?; echo a | cat; ulimit -n; umask; sleep 0.01 & wait $!; echo $?; kill -TERM $$; echo not reached'
GIT = 'git init -q g && cd g && echo a > a && git add a && git -c user.name=a -c user.email=a@b commit -qm x && git log --format=%s && git gc -q'
REAL = [
    ['python3', '-c', ASYNCIO], ['python3', '-c', 'import subprocess, signal; print(subprocess.run(["false"]).returncode, signal.getsignal(13)); raise SystemExit(9)'],
    ['node', '-e', 'setTimeout(() => { require("fs").readdirSync("/usr"); process.exitCode = 7; console.log(process.argv.length) }, 5)'],
    ['nvim', '--headless', '-u', 'NONE', '-c', 'lua print(1)', '-c', 'cq 3'], ['vim', '-es', '-c', 'q'],
    ['sh', '-c', GIT], ['sh', '-c', SHELL], ['bash', '-c', SHELL], ['zsh', '-fc', 'echo $((1+1)); exit 3'], ['fish', '-Nc', 'echo a; exit 4'],
    ['sh', '-c', 'printf "all: a b c\\na b c:\\n\\t@sleep 0.01; false\\n" > m && make -s -k -j4 -f m 2>&1 | sort'],
    ['perl', '-e', 'select(undef, undef, undef, 0.01) for 1 .. 3; print "done\\n"; kill 9, $$'], ['tclsh', '/dev/null'],
    ['tar', 'cf', '-', '/usr/share/doc/bash'], ['sort', '--parallel=4', '/usr/share/dict/words', '/etc/passwd'], ['find', '/usr/share/doc/bash'],
    ['xargs', '-P4', '-n1', '-a', '/etc/hosts', 'true'], ['awk', 'BEGIN { "echo a" | getline x; print x; exit 5 }'], ['sed', '-n', '$=', '/etc/passwd'],
    ['grep', '-c', 'nothing at all', '/etc/passwd'], ['diff', '/etc/passwd', '/etc/group'], ['timeout', '0.2', 'sleep', '100'], ['env', '-i', 'printenv'],
    ['nohup', 'echo', 'a'], ['nice', '-n', '3', 'nice'], ['stdbuf', '-o0', 'printf', 'a'], ['flock', '-n', '/dev/null', 'echo', 'locked'],
    ['setsid', '-w', 'sh', '-c', 'exit 11'], ['script', '-qec', 'tty > /dev/null; stty size', '/dev/null'],
    ['sqlite3', ':memory:', 'create table a(b); insert into a values(1); select * from a;'], ['jq', '-n', '[range(5)]'], ['bc', '-q', '/dev/null'],
    ['curl', '-s', 'file:///etc/hosts'], ['openssl', 'dgst', '-sha256', '/etc/passwd'], ['gpg', '--version'], ['dig', '-v'], ['gio', 'info', '-a', 'standard::name', '/usr'],
    ['gjs', '-c', 'imports.gi.GLib.timeout_add(0, 5, () => { print("done"); imports.mainloop.quit(); }); imports.mainloop.run();'],
    ['dbus-run-session', '--', 'gdbus', 'call', '--session', '--dest', 'org.freedesktop.DBus', '--object-path', '/', '--method', 'org.freedesktop.DBus.NameHasOwner', 'a.b'],
    ['qemu-img', 'info', '/usr/bin/true'], ['memcached', '-V'], ['tmux', '-V'], ['cmake', '-E', 'capabilities'], ['gcc', '-dumpspecs'],
    ['strace', '-qq', '-e', 'trace=none', 'sh', '-c', 'exit 3'], ['gdb', '-batch', '-ex', 'print 1'], ['openssl', 'speed', '-seconds', '0', '-bytes', '16', 'nonsense'],
]
WRAPPERS = [
    ['fakeroot', 'id', '-u'], ['faketime', '2001-02-03 04:05:06', 'date', '+%Y'], ['bwrap', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', 'id', '-u'],
    ['valgrind', '-q', '--error-exitcode=5', 'true'], ['busybox', 'sh', '-c', 'exit 3'], ['chroot', '/', 'sh', '-c', 'exit 4'],
    ['prlimit', '--as=200000000', 'sh', '-c', 'echo $0; exit 5'], ['prlimit', '--nofile=6:6', 'sh', '-c', 'echo a | cat'],
    ['setpriv', '--reuid=65534', '--clear-groups', 'id', '-u'], ['unshare', '-r', 'id', '-u'], ['unshare', '-n', 'true'], ['sh', '-c', 'exec 0<&- 1>&-; true'],
]


def test_installed_programs_print_the_same_with_and_without_recording():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for command in REAL + WRAPPERS:
            if not shutil.which(command[0]):
                absent.append(command[0])
            else:
                pool.submit(compare, ' '.join(command)[:60], command).add_done_callback(lambda done: done.result())


def test_unusual_programs_print_the_same_with_and_without_recording():
    moods = subprocess.run([odd], capture_output=True, text=True, check=True).stdout.split()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for mood in moods:
            pool.submit(compare, mood, [odd, mood]).add_done_callback(lambda done: done.result())
    for library in glob.glob('/usr/lib/*/libjemalloc.so.2') + glob.glob('/usr/lib/*/libtcmalloc.so.4'):
        compare(os.path.basename(library), [odd, 'double_fork'], env={**os.environ, 'LD_PRELOAD': library})
    if not glob.glob('/usr/lib/*/libjemalloc.so.2'):
        absent.append('jemalloc')


# ---- Programs of other compilers ----

def compiled(name, *command):
    """Returns whether the command could make the program."""
    done = subprocess.run(command, capture_output=True, text=True, check=False) if shutil.which(command[0]) else None
    if not done or done.returncode:
        absent.append(name)
    return bool(done) and done.returncode == 0


def test_sanitized_programs_print_the_same_with_and_without_recording():
    """Each mood has the exit status and the output that it has without weft; the reports have the same words."""
    source = os.path.join(here, 'sanitized.c')
    ways = {f'{cc}-{kind}': (cc, f'-fsanitize={kind}') for cc in ('gcc', 'clang') for kind in ('address', 'thread', 'undefined', 'leak', 'memory')}
    ways['clang-address-library'] = ('clang', '-fsanitize=address', '-shared-libasan', '-Wl,-rpath,' + clang_folder())
    del ways['gcc-memory']
    moods = {'address': ('', 'leak', 'heap'), 'thread': ('',), 'undefined': ('', 'overflow'), 'leak': ('', 'leak'), 'memory': ('', 'heap')}
    for name, words in ways.items():
        if not compiled(name, *words, '-g', source, '-o', name, '-luv', '-lpthread'):
            continue
        for mood in moods[name.split('-')[1]]:
            compare(f'{name} {mood}', [os.path.abspath(name), mood])
        if 'address' in name:
            compare(f'{name}, as a child', ['sh', '-c', './x; echo $?'.replace('./x', os.path.abspath(name))])


def clang_folder():
    done = subprocess.run(['clang', '-print-file-name=libclang_rt.asan-x86_64.so'], capture_output=True, text=True, check=False) if shutil.which('clang') else None
    return os.path.dirname(done.stdout.strip()) if done else ''


def test_programs_of_other_languages_print_the_same_with_and_without_recording():
    source = os.path.join(here, 'subject.c')
    archive = next(iter(glob.glob('/usr/lib/*/libuv_a.a') + glob.glob('/usr/lib/*/libuv.a')), None)
    for name, flags in (('static', ['-static']), ('static-pie', ['-static-pie']), ('no-pie', ['-no-pie']), ('without-build-id', ['-Wl,--build-id=none', '-Wl,-z,now'])):
        if archive and compiled(name, 'cc', '-fPIE', source, archive, '-o', name, '-lpthread', '-ldl', *flags):
            compare(name, [os.path.abspath(name)])
    with open('hello.rs', 'w', encoding='utf-8') as file:
        file.write('fn main() { std::thread::spawn(|| println!("thread")).join().unwrap(); std::process::exit(6) }')
    if compiled('rustc', 'rustc', '-o', 'hello-rust', 'hello.rs'):
        compare('Rust', [os.path.abspath('hello-rust')])
    with open('hello.go', 'w', encoding='utf-8') as file:
        file.write('package main\nimport "fmt"\nimport "os"\nfunc main() { c := make(chan int); go func() { c <- 8 }(); fmt.Println("go"); os.Exit(<-c) }')
    if compiled('go', 'go', 'build', '-o', 'hello-go', 'hello.go') or compiled('gccgo', 'gccgo', '-o', 'hello-go', 'hello.go'):
        compare('Go', [os.path.abspath('hello-go')])
    with open('Hello.java', 'w', encoding='utf-8') as file:
        file.write(JAVA)
    if shutil.which('java'):
        compare('Java', ['java', '-Xshare:auto', os.path.abspath('Hello.java')])
    with open('free.c', 'w', encoding='utf-8') as file:
        file.write('void _start(void) { __asm__ volatile ("syscall" : : "a"(60), "D"(23)); }')
    if os.uname().machine == 'x86_64' and compiled('no libc', 'gcc', '-nostdlib', '-static', '-o', 'free', 'free.c'):
        compare('no libc', [os.path.abspath('free')])


with tempfile.TemporaryDirectory(prefix='weft-as-without-') as place:
    os.chdir(place)
    os.chmod(place, 0o755)
    for function_name, test in list(globals().items()):
        if function_name.startswith('test_') and selected(function_name[5:]):
            before = len(same), len(wrong)
            test()
            print(f'{function_name[5:]}: {len(same) - before[0]} the same, {len(wrong) - before[1]} differ')
for line in wrong:
    print('DIFFERS', line)
if absent:
    print('skipped, not installed or not possible here:', ', '.join(sorted(set(absent))))
print(f'{len(same)} the same, {len(wrong)} differ')
sys.exit(1 if wrong else 0)
