#!/usr/bin/env python3
"""hook_test.py WEFT [ONLY...]: programs that know nothing of weft behave as without it, and what is recorded of them is true.

The programs are compiled here from subject.c and throw.cc, in the ways in which libuv comes into programs.
SPDX-License-Identifier: ISC"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from others import closed_to_others

weft = os.path.abspath(sys.argv[1])
only = sys.argv[2:]
here = os.path.dirname(os.path.abspath(__file__))
failures = []
ran = 0


def check(condition, *what):
    global ran
    ran += 1
    if not condition:
        failures.append(what)
        print('FAILED:', *what, flush=True)


def compile_all():
    """Returns the ways in which a program has libuv, except those that this machine cannot build."""
    archive = next((path for path in glob.glob('/usr/lib/*/libuv_a.a') + glob.glob('/usr/lib/*/libuv.a')), None)
    subject, rest = os.path.join(here, 'subject.c'), ['-lpthread', '-ldl']
    ways = {
        'shared': ['cc', subject, '-luv'],
        'now': ['cc', subject, '-luv', '-Wl,-z,now', '-no-pie'],
        'late': ['cc', '-DLATE', subject, '-ldl'],
        'both': ['cc', '-DLATE', subject, '-ldl', '-Wl,--no-as-needed', '-luv'],
        'throw': ['c++', os.path.join(here, 'throw.cc'), '-luv'],
    }
    if archive:
        whole = ['-Wl,--whole-archive', archive, '-Wl,--no-whole-archive', *rest]
        ways['inside'] = ['cc', subject, archive, *rest]
        ways['exporting'] = ['cc', '-rdynamic', subject, *whole]
        ways['stripped'] = ['cc', '-s', subject, archive, *rest]
        ways['static'] = ['cc', '-static', subject, archive, *rest]
    built = set()
    for name, command in ways.items():
        got = subprocess.run([*command, '-O1', '-o', name], capture_output=True, text=True, check=False)
        if got.returncode == 0:
            built.add(name)
        else:
            print('skipped:', name, 'cannot be built here')
    return built


def run(command, **more):
    """Exit status, standard output, standard error."""
    env = {**os.environ, **more.pop('env', {})}
    got = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300, env=env, **more)
    return got.returncode, got.stdout, got.stderr


def record(*command, options=(), env=None):
    """Runs the program without and with recording; returns its traces: a list of (name, runtimes, promises), sorted by name."""
    shutil.rmtree('out', ignore_errors=True)
    status, output, complaints = run(command, env=env or {})
    recorded = run([weft, 'record', *options, '-o', 'out', '--', *command], env=env or {})
    own = ''.join(line for line in recorded[2].splitlines(True) if not line.startswith(('weft: ', 'ok ', 'nothing found: ', '  ')))
    check(recorded[0] == (status if status >= 0 else 128 - status), command, 'exit status', recorded[0], 'without', status, recorded[2])
    check(recorded[1] == output, command, 'output', recorded[1], 'without', output)
    check(own == complaints, command, 'standard error', own, 'without', complaints)
    record.said = recorded[2]
    return traces('out')


def traces(folder):
    found = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        lines = [json.loads(line) for line in run([weft, 'dump', '--json', path])[1].splitlines()]
        promises = [line for line in lines if line.get('promise', -1) > 0]
        info = json.loads(run([weft, 'info', '--json', path])[1])
        found.append((name, info.get('runtimes', ''), promises))
    return found


def has_work(trace, times=1):
    """Checks the promises of subject.c: a stat, a timer and a loop."""
    name, _, promises = trace
    kinds = [p['kind'] for p in promises if p['end'] == 'resolved']
    check(kinds.count('fs') == times, name, 'stats', kinds)
    check(kinds.count('timer') == times, name, 'timers', kinds)
    check(kinds.count('loop') >= times, name, 'loops', kinds)
    check(all(not p['failure'] for p in promises), name, 'failures', promises)


def all_taken(trace):
    """Checks that every function of this libuv was moved at its entry."""
    for copy in trace[1].split('; '):
        found = re.match(r'libuv [0-9.]+: ([0-9]+) of ([0-9]+) calls$', copy)
        check(found and found[1] == found[2] and int(found[1]) > 60, trace[0], 'what was taken', trace[1])


def names(found, wanted):
    check([re.sub(r'[0-9]+', 'N', trace[0], count=1) for trace in found] == wanted, 'traces', [trace[0] for trace in found], 'wanted', wanted)


# --- the ways in

def test_each_way_to_link_libuv_is_recorded(built):
    for way in ('shared', 'now', 'late', 'inside', 'exporting'):
        if way in built:
            found = record('./' + way)
            names(found, [f'{way}-N'])
            for trace in found:
                has_work(trace)
                all_taken(trace)
                check(f'show it: weft out/{trace[0]}\n' in record.said, 'the way to it', record.said)


def test_two_copies_of_libuv_are_recorded(built):
    """A separately loaded library in another file, beside the one that the program links."""
    shared = re.search(r'libuv\.so\.1 => (\S+)', run(['ldd', './shared'])[1])[1]
    shutil.copy(shared, 'copy.so')
    for way, copies in (('late', 1), ('both', 2)):
        for trace in record('./' + way, env={'LIBUV': './copy.so'}):
            has_work(trace)
            check(len(re.findall(r'libuv [0-9.]+: ([0-9]+) of \1 calls', trace[1])) == copies, 'copies', trace[1])


def test_libuv_loaded_again_is_recorded(built):
    for trace in record('./late', 'again'):
        has_work(trace, 4)
        all_taken(trace)


def test_symbols_are_replaced_if_no_code_can_be_mapped(built):
    """If no new text can be mapped, symbols are replaced, which covers calls by name."""
    found = record('./shared', 'no-memfd')
    for trace in found:
        has_work(trace)
        check('new executable memory cannot be mapped; by symbol' in trace[1], 'the reason', trace[1])
    names(found, ['shared-N'])
    found = record('./late', 'no-memfd')
    names(found, ['late-N'])
    check({p['kind'] for p in found[0][2]} - {'lock', 'condition'} == {'thread'}, 'what libc alone tells: also what one had to wait for', found)


def test_unrecorded_program_is_reported_with_a_reason(built):
    if 'static' in built:
        names(record('./static'), [])
        check('linked statically' in record.said, 'static', record.said)
    if 'stripped' in built:
        found = record('./stripped')
        names(found, ['stripped-N'])
        check({p['kind'] for p in found[0][2]} - {'lock', 'condition'} == {'thread'}, 'what libc alone tells: also what one had to wait for', found)
        check('no promises, only' in record.said and 'a stripped program hides' in record.said, 'stripped', record.said)
    with open('alien.c', 'w', encoding='utf-8') as file:
        file.write('unsigned uv_version(void) { return 2 << 16 | 5; }\nint uv_loop_init(void *loop) { return 0; }\n'
                   'int uv_run(void *loop, int mode) { return 42; }\nint main(void) { return uv_run(0, 0); }\n')
    run(['cc', '-rdynamic', '-o', 'alien', 'alien.c'])
    names(record('./alien'), [])
    check(re.search(r'weft: out/alien-[0-9]+: libuv 2.0.5 in /\S+/alien is not recorded: unsupported version\n', record.said), 'another libuv',
          record.said)
    shutil.copy('shared', 'elevated')
    os.chmod('elevated', 0o6755)
    if os.geteuid() != 0 or os.statvfs('.').f_flag & os.ST_NOSUID:
        print('skipped: a setuid program, which only root can make, where the file system allows it')
    elif closed_to_others(weft):
        print(f'skipped: a setuid program, for another user cannot enter {closed_to_others(weft)}')
    else:
        nobody = 65534
        os.chmod('.', 0o755)
        os.mkdir('theirs')
        os.chown('theirs', nobody, nobody)
        status, output, said = run([weft, 'record', '-o', 'out', '--', '../elevated'], cwd='theirs', user=nobody, group=nobody, extra_groups=[])
        check((status, output) == (0, 'stat: 0\ntimer\nclose: 0\n') and 'it is setuid' in said, 'setuid', status, output, said)
        check(not os.listdir('theirs'), 'a setuid program left', os.listdir('theirs'))
    names(record('sh', '-c', 'echo no libuv; exit 3'), [])
    check('recorded nothing' in record.said and not os.path.exists('out'), 'nothing', record.said)


# --- programs that cannot load the library of weft

CHILD = '''
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) { printf("child %s\\n", argc > 1 ? argv[argc - 1] : ""); fprintf(stderr, "heard\\n"); return 7; }
'''
# A program that starts children in each way that libc has, optionally below another root, and prints how they end.
STARTER = '''
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv)
{
	char *child = argv[1], *words[] = {child, "word", NULL}, command[256], line[256];
	int status = -1, fd;
	pid_t pid = 0;
	if (argc > 3 && (chroot(argv[3]) || chdir("/")))
		return 96;
	snprintf(command, sizeof command, "%s word", child);
	if (!strncmp(argv[2], "spawn", 5)) {
		posix_spawn_file_actions_t actions;
		posix_spawn_file_actions_init(&actions);
		posix_spawn_file_actions_addchdir_np(&actions, ".");
		int failed = !strcmp(argv[2], "spawn") ? posix_spawn(&pid, child, NULL, NULL, words, environ)
			     : !strcmp(argv[2], "spawnp") ? posix_spawnp(&pid, child, NULL, NULL, words, environ)
							  : posix_spawn(&pid, child, &actions, NULL, words, environ);
		if (failed)
			return 99;
	} else if (!strcmp(argv[2], "system")) {
		status = system(command);
	} else if (!strcmp(argv[2], "popen")) {
		FILE *pipe = popen(command, "r");
		while (pipe && fgets(line, sizeof line, pipe))
			printf("read %s", line);
		status = pclose(pipe);
	} else if ((pid = !strcmp(argv[2], "vfork") ? vfork() : fork()) == 0) {
		if (!strcmp(argv[2], "execve") || !strcmp(argv[2], "vfork"))
			execve(child, words, environ);
		else if (!strcmp(argv[2], "execv"))
			execv(child, words);
		else if (!strcmp(argv[2], "execvpe"))
			execvpe(child, words, environ);
		else if (!strcmp(argv[2], "execl"))
			execl(child, child, "word", (char *)NULL);
		else if (!strcmp(argv[2], "execlp"))
			execlp(child, child, "one", "word", (char *)NULL);
		else if (!strcmp(argv[2], "execle"))
			execle(child, child, "word", (char *)NULL, environ);
		else if (!strcmp(argv[2], "execvp"))
			execvp(child, words);
		else if (!strcmp(argv[2], "fexecve") && (fd = open(child, O_RDONLY)) >= 0)
			fexecve(fd, words, environ);
		_exit(98);
	}
	if (pid)
		waitpid(pid, &status, 0);
	printf("%s: %d\\n", argv[2], WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 97;
}
'''


def write_starter():
    for name, text in (('child.c', CHILD), ('starter.c', STARTER)):
        with open(name, 'w', encoding='utf-8') as file:
            file.write(text)


def test_program_below_another_root_starts(built):
    """The loader prints no error for a program that cannot open weft's library: below another root, or as another user."""
    if os.getuid():
        print('skipped: another root directory needs root')
        return
    write_starter()
    for command in (['cc', '-o', 'child', 'child.c'], ['cc', '-o', 'starter', 'starter.c'], ['cc', '-shared', '-fPIC', '-o', 'other.so', '-x', 'c', '/dev/null']):
        got = run(command)
        check(got[0] == 0, 'what is compiled', command, got)
    child, other = os.path.abspath('child'), os.path.abspath('other.so')
    for path in {child, other, *re.findall(r'(/\S+) \(', run(['ldd', 'child'])[1])}:
        os.makedirs('jail' + os.path.dirname(path), exist_ok=True)
        shutil.copy(path, 'jail' + path)
    for way in ('execve', 'execv', 'execl', 'execlp', 'execle', 'execvp', 'execvpe', 'fexecve', 'vfork', 'spawn', 'spawnp', 'spawn-in'):
        record('./starter', child, way, 'jail')
    record('./starter', child, 'execve', 'jail', env={'LD_PRELOAD': other})
    os.mkdir('closed', 0o700)
    for name in (os.path.basename(weft), 'libweft-hook.so', 'libweft-record.so.0'):
        shutil.copy(os.path.join(os.path.dirname(weft), name), 'closed')
    as_nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', 'sh', '-c', 'id -u; echo "$LD_PRELOAD"']
    found = run(as_nobody), run(['closed/weft', 'record', '-o', 'out', '--', *as_nobody])
    check(found[0][:2] == found[1][:2] and 'ERROR: ld.so' not in found[1][2], 'a library in a folder that is closed to others', *found)


def test_program_of_musl_runs_unrecorded(built):
    """A program of musl cannot load a library of glibc.  It runs as without weft, also as a child, and programs of glibc are recorded beside it."""
    if not shutil.which('musl-gcc'):
        print('skipped: programs of musl, for musl-gcc is not installed')
        return
    write_starter()
    for command in (['musl-gcc', '-o', 'dynamic', 'child.c'], ['musl-gcc', '-static', '-o', 'fixed', 'child.c'],
                    ['cc', '-static-pie', '-o', 'fixed-pie', 'child.c'], ['cc', '-o', 'starter', 'starter.c'],
                    ['musl-gcc', '-static', '-o', 'fixed-starter', 'starter.c']):
        got = run(command)
        check(got[0] == 0, 'what is compiled', command, got)
    with open('script', 'w', encoding='utf-8') as file:
        file.write(f'#! {os.path.abspath("dynamic")} given\n')
    os.chmod('script', 0o755)
    notes = {'dynamic': './dynamic was not recorded: its loader is ld-musl-', 'script': './script was not recorded: its loader is ld-musl-', 'fixed': './fixed was not recorded: it is linked statically, ',
             'fixed-pie': './fixed-pie was not recorded: it is linked statically, '}
    for program, reason in (('dynamic', 'its loader is ld-musl-'), ('script', 'its loader is ld-musl-'), ('fixed', 'linked statically'), ('fixed-pie', 'linked statically')):
        names(record('./' + program, 'word'), [])
        check(record.said.count('weft: ') == 1 and f'./{program} recorded nothing: ' in record.said and reason in record.said, program, record.said)
        for way in ('execve', 'execv', 'execl', 'execlp', 'execle', 'execvp', 'execvpe', 'fexecve', 'vfork', 'spawn', 'spawnp', 'spawn-in', 'system', 'popen'):
            names(record('./starter', './' + program, way), [])
            is_seen = program in notes and way != 'spawn-in'
            said = record.said.replace(os.getcwd() + '/', './')  # as fexecve() knows it
            check(said.count('weft: ') == 1 and ('weft: ' + notes.get(program, '') if is_seen else './starter recorded nothing: none of its') in said,
                  program, way, record.said)
        for way in ('execve', 'execl', 'fexecve', 'vfork', 'spawn', 'system'):
            names(record('./fixed-starter', './' + program, way), [])
            check('was not recorded' not in record.said and './fixed-starter recorded nothing: it is linked statically' in record.said, program, way, record.said)
        names(record('sh', '-c', f'./{program} word; echo $?; ./{program} other | cat; exec ./{program}'), [])
    # The loader of glibc has no loader itself, and preloads libraries.
    loader = os.path.realpath(re.search(r'(/\S*/ld-linux\S*)', run(['ldd', './shared'])[1])[1])
    names(record('./starter', loader, 'execve'), [])
    check('was not recorded' not in record.said, 'a loader as a program', record.said)
    # A static program beside one that is recorded is no news.
    names(record('sh', '-c', './fixed one; ./shared'), ['shared-N'])
    check('was not recorded' not in record.said and not glob.glob('out/*.failed'), 'a static program beside a trace', record.said)
    names(record('sh', '-c', './dynamic one; ./shared; (./dynamic two); sh -c "./dynamic three; true"'), ['shared-N'])
    check(record.said.count('was not recorded') == 1, 'one line for all children', record.said)
    # A name that the shell or execvp() searches on PATH.
    names(record('./starter', 'dynamic', 'execvp', env={'PATH': os.getcwd() + ':' + os.environ['PATH']}), [])
    check(record.said.count('weft: dynamic was not recorded') == 1, 'a name on PATH', record.said)
    # Another preloaded library stays.
    run(['cc', '-shared', '-fPIC', '-o', 'empty.so', '-x', 'c', '/dev/null'])
    found = record('./shared', env={'LD_PRELOAD': os.path.abspath('empty.so')})
    names(found, ['shared-N'])


# --- hostile programs

def test_ended_operations_are_kept_however_the_program_dies(built):
    for mood in ('_exit', 'kill', 'abort'):
        found = record('./shared', mood)
        names(found, ['shared-N'])
        for _, _, promises in found:
            check([p['end'] for p in promises if p['kind'] == 'fs'] == ['resolved'], mood, promises)
            check([p['end'] for p in promises if p['kind'] == 'loop'] == ['pending'], mood, promises)


def test_program_closing_descriptors_or_confining_itself_is_recorded(built):
    for mood, times in (('close-all', 2), ('mdwe', 1), ('longjmp', 1), ('seccomp', 1)):
        for way in ('shared', 'late', 'inside'):
            if way not in built:
                continue
            for _, runtimes, promises in record('./' + way, mood):
                kinds = [p['kind'] for p in promises if p['end'] == 'resolved']
                check(kinds.count('fs') == times and kinds.count('timer') >= times, way, mood, kinds)
                all_taken((way, runtimes, promises))


def test_exception_can_be_thrown_through_a_recorded_callback(built):
    if 'throw' in built:
        for trace in record('./throw'):
            all_taken(trace)
            check([p['kind'] for p in trace[2]].count('timer') == 1, 'an exception', trace[2])


# --- processes

def test_each_child_process_has_its_trace(built):
    names(record('sh', '-c', './shared; env ./shared; timeout 60 ./late; exec ./shared'), ['late-N', 'shared-N', 'shared-N', 'shared-N'])
    found = record('./shared', 'exec')
    names(found, ['shared-N', 'shared-N.2'])
    for trace in found:
        has_work(trace)
    check(found[0][0] + '.2' == found[1][0], 'the same process', found)
    for mood, count in (('fork', 2), ('forked', 1)):
        found = record('./shared', mood)
        names(found, ['shared-N'] * count)
        for trace in found:
            has_work(trace)


def test_directory_of_several_traces_is_read_as_all_of_its_traces(built):
    """A directory of one trace is that trace; of several traces, a verb for one lists them, and the others show all."""
    found = record('./shared')
    check(run([weft, 'events', 'out']) == run([weft, 'events', 'out/' + found[0][0]]), 'the only trace')
    found = record('sh', '-c', './shared; ./late')
    status, output, said = run([weft, 'save', 'out', '-w', '-'])
    check((status, output) == (2, '') and said.startswith('weft: out has 2 traces, but this verb reads only one; name one of these:\n'), 'several', said)
    check(all(f'weft: out/{name}: ' in said for name, _, _ in found) and said.endswith(': ./shared\n'), 'a list of them', said)
    status, output, said = run([weft, 'info', '--json', 'out'])
    check(status == 0 and [line.get('process', 'together') for line in map(json.loads, output.splitlines())] == ['late', 'shared', 'together'], 'info of all', output, said)
    status, _, said = run([weft, 'html', 'out', '-o', 'page.html'])
    check(status == 0 or 'was built without' in said, 'a page of all', said)


def test_daemon_is_recorded(built):
    shutil.rmtree('out', ignore_errors=True)
    run([weft, 'record', '-o', 'out', '--', './shared', 'daemon'])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not glob.glob('out/shared-*/metadata'):
        time.sleep(0.05)
    pid = glob.glob('out/shared-*')[0].rsplit('-', 1)[1]
    while time.monotonic() < deadline and os.path.exists(f'/proc/{pid}'):
        time.sleep(0.05)
    for trace in traces('out'):
        has_work(trace)


def test_program_changing_its_user_continues_its_trace(built):
    """A program that starts as root and becomes another user continues its trace; a program that it executes then creates a trace in a folder of that user."""
    if os.getuid():
        print('skipped: user: only root can become another')
        return
    if closed_to_others(weft):
        print(f'skipped: user: another cannot enter {closed_to_others(weft)}')
        return
    os.chmod('.', 0o711)
    found = record('./shared', 'user')
    check([name[:6] for name, _, _ in found] == ['shared', 'uid-65'], 'traces of root and of the user', found)
    has_work(found[0], 2)
    for trace in traces('out/uid-65534'):
        has_work(trace)
    check(f'out/uid-65534/{found[0][0]}: ' in record.said, 'what is said of them', record.said)
    # Like dnsmasq: it drops CAP_CHOWN, and then becomes another user.
    record('setpriv', '--bounding-set=-chown', 'setpriv', '--reuid=65534', '--clear-groups', './shared')
    for trace in traces('out/uid-65534'):
        has_work(trace)
    check(traces('out/uid-65534'), 'traces of a user who was given nothing')
    os.chmod('.', 0o700)
    _, _, said = run([weft, 'record', '--overwrite', '-o', 'out', '--', 'setpriv', '--reuid=65534', '--clear-groups', 'true'])
    check(os.getcwd() in said and not os.path.exists('out'), 'why that user records nothing', said)


def test_program_in_a_chroot_is_recorded(built):
    """A program that calls chroot() before its runtime, where no session exists, is recorded nevertheless."""
    if os.getuid():
        print('skipped: jailed: only root can leave for another root')
        return
    os.makedirs('jail', exist_ok=True)
    found = record('./shared', 'jailed')
    names(found, ['shared-N'])
    kinds = [p['kind'] for p in found[0][2] if p['end'] == 'resolved']
    check({'fs', 'timer', 'loop'} <= set(kinds), 'what is told of a program in another root', kinds)


def test_trace_lasts_until_the_program_is_killed(built):
    """The trace of a sleeping program lasts until the program is killed."""
    shutil.rmtree('out', ignore_errors=True)
    with subprocess.Popen([weft, 'record', '-o', 'out', '--', 'sh', '-c', './shared sleeps; exit 4'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        while program.stdout.readline() not in ('sleeps\n', ''):
            pass
        path = glob.glob('out/shared-*')[0]
        spans = [json.loads(run([weft, 'info', '--json', path])[1])['span_ns'] for _ in range(3)]
        check(spans[0] < spans[1] < spans[2], 'a program that sleeps lives', spans)
        os.kill(int(path.rsplit('-', 1)[1]), signal.SIGKILL)
        program.communicate(timeout=60)
        check(program.returncode == 4, 'the exit status', program.returncode)
    check(json.loads(run([weft, 'info', '--json', path])[1])['span_ns'] >= spans[2], 'until it was killed', spans)
    check('state      not finished: the program was killed' in run([weft, 'info', path])[1], 'that it was killed')


def test_many_children_leave_traces_only_if_they_use_libuv(built):
    """Children one after another: a trace for each that used libuv, none for the others.  WEFT_TEST_MANY=1000 runs more."""
    many = int(os.environ.get('WEFT_TEST_MANY', '100'))
    shutil.rmtree('out', ignore_errors=True)
    script = 'i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done; i=0; while [ $i -lt ' + str(many) + ' ]; do ./shared short; i=$((i+1)); done'
    status, output, said = run([weft, 'record', '--size=64k', '-o', 'out', '--', 'sh', '-c', script])
    check((status, output) == (0, 'timer\nclose: 0\n' * many), 'many children', status, said)
    check(len(os.listdir('out')) == many, 'many traces', len(os.listdir('out')))
    check(f'and {many - 12} more in out\n' in said and 'show it: weft out\n' in said, 'what is said of them', said)


# --- the command

def test_weft_record_passes_on_signals_status_and_input(built):
    script = 'trap "echo got it; exit 5" TERM; echo ready; while :; do sleep 0.05; done'
    program = subprocess.Popen([weft, 'record', '-o', 'never', '--', 'sh', '-c', script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(program.stdout.readline() == 'ready\n', 'it is ready')
    program.terminate()
    check(program.communicate(timeout=60)[0] == 'got it\n' and program.returncode == 5, 'a signal is passed on', program.returncode)
    got = subprocess.run([weft, 'record', '-o', 'never', '--', 'cat'], input='as it is', capture_output=True, text=True, check=False)
    check(got.stdout == 'as it is', 'standard input', got)
    status, _, said = run([weft, 'record', '-o', 'never', '--', 'sh', '-c', './shared; exit 127'])
    check(status == 127 and 'show it: weft never/shared-' in said, 'a command that says 127', status, said)
    record('./shared', options=['--explain', '--check=pending=0'])
    check('ok' in record.said and 'nothing found: ' in record.said, 'rules', record.said)
    shutil.rmtree('out')
    status, output, said = run([weft, 'record', '--check=nonsense', '-o', 'out', '--', 'echo', 'ran'])
    check((status, output, 'nonsense' in said) == (2, '', True), 'a rule that nobody understands is told before the command runs', status, output, said)
    status, _, said = run([weft, 'record', '--check=p99(uv_run)<1ns', '-o', 'out', '--', './shared'])
    check(status == 1 and 'broken' in said, 'a broken rule', status, said)
    status, _, said = run([weft, 'record', '-o', 'out', '--', './shared'])
    check(status == 2 and 'already exists' in said, 'a directory that is there', said)
    with open('out/mine', 'w', encoding='utf-8') as file:
        file.write('precious')
    status, _, said = run([weft, 'record', '--overwrite', '-o', 'out', '--', './shared'])
    check(status == 2 and 'is not a trace' in said and os.path.exists('out/mine'), 'something else is in it', said)
    os.unlink('out/mine')
    status, _, said = run([weft, 'record', '--overwrite', '-o', 'out', '--', './shared'])
    check(status == 0 and len(os.listdir('out')) == 1, 'overwritten', said)


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    ways = compile_all()
    for name, test in list(globals().items()):
        if name.startswith('test_') and (not only or name[5:] in only):
            test(ways)
print(f'{ran} checks, {len(failures)} failed')
sys.exit(1 if failures else 0)
