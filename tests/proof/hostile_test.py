#!/usr/bin/env python3
"""hostile_test.py PROGRAM WEFT [CONDITION...]: the recorder in programs that do unexpected things, and in places where files cannot be written.

Each condition runs without a trace and with one: output, exit status and the files of the program must be equal.  At the end, the test prints a
   table of the traces.  If LD_LIBRARY_PATH names another build, the recorder of that build is tested.
SPDX-License-Identifier: ISC"""
import json
import os
import re
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from others import closed_to_others

program, weft, *only = sys.argv[1:]
program, weft = os.path.abspath(program), os.path.abspath(weft)
NOBODY = 65534
table, wrong = [], []


def files_in(folder):
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            with open(path, 'rb') as file:
                found[os.path.relpath(path, folder)] = (file.read(), stat.S_IMODE(os.lstat(path).st_mode))
    return found


def read(trace):
    """Returns a short summary of the trace."""
    if not os.path.exists(trace):
        return 'no trace'
    told = subprocess.run([weft, 'info', '--json', trace], capture_output=True, text=True, check=False)
    if told.returncode:
        return 'a trace without events' if 'no events' in told.stderr else 'no readable trace'
    info = json.loads(told.stdout)
    lost = info['lost_no_stream'] + sum(s['lost_full'] + s['lost_nested'] for s in info['streams'])
    return f"{info['events']} events, {lost} counted as lost"


def report(name, problem, what):
    if problem:
        wrong.append(f'{name}: {problem}')
    table.append((name, 'WRONG' if problem else 'the same', problem.split('\n')[0] if problem else what))


def run(folder, arguments, environment, before=(), **options):
    """Runs the program in a new folder; returns its exit status, its output, and the files that it leaves in the folder."""
    own = os.path.join(folder, 'own')
    os.mkdir(own)
    os.chmod(own, 0o777)
    try:
        got = subprocess.run([*before, program, *arguments], cwd=own, env={**os.environ, **environment}, capture_output=True, timeout=120, check=False, **options)
    except subprocess.TimeoutExpired:
        return 'it hangs', b'', b'', {}
    return got.returncode, got.stdout, got.stderr, files_in(own)


def condition(name, arguments=None, options='', may_refuse=False, place=None, **run_options):
    """Runs the program without and with recording, and compares the results; place(folder) prepares the destination of the trace, and returns the files that
        must stay unchanged."""
    if only and name not in only:
        return
    if run_options.get('preexec_fn') == other_user and closed_to_others(program):
        table.append((name, 'skipped', f'another user cannot enter {closed_to_others(program)}'))
        return
    arguments = [name] if arguments is None else arguments
    with tempfile.TemporaryDirectory() as without, tempfile.TemporaryDirectory() as folder:
        os.chmod(without, 0o777)
        os.chmod(folder, 0o777)
        expected = run(without, arguments, {}, **run_options)
        trace = os.path.join(folder, 'trace')
        keep = place(folder) if place else None
        got = run(folder, arguments, {'WEFT_TRACE': trace + options, 'HOSTILE_TRACE': trace}, **run_options)
        refusals = re.findall(rb'weft: WEFT_TRACE: .*\n', got[2]) if may_refuse else []
        stderr = got[2]
        for line in refusals:
            stderr = stderr.replace(line, b'')
        problem = ''
        for what, before, after in zip(('exit status', 'standard output', 'standard error', 'files'), expected, (got[0], got[1], stderr, got[3])):
            if before != after and not problem:
                problem = f'{what}: {after!r}, not {before!r}'
        if not problem and keep is not None and files_in(keep[0]) != keep[1]:
            problem = f'what was there before is changed: {sorted(files_in(keep[0]))}'
        # The remaining files are in a folder of their own, because another user may have created them.
        report(name, problem, 'refused: ' + refusals[0].decode().split(': ', 3)[-1].strip() if refusals else read(trace))


def other_user():
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def keeping(folder, path, files, mode=0o700):
    """Creates a directory with these files as destination; the files must stay unchanged."""
    path = os.path.join(folder, path)
    os.mkdir(path, mode)
    os.chmod(path, mode)
    for name, text in files.items():
        with open(os.path.join(path, name), 'w', encoding='utf-8') as file:
            file.write(text)
    return path, files_in(path)


def link(folder):
    kept = keeping(folder, 'elsewhere', {})
    os.symlink('elsewhere', os.path.join(folder, 'trace'))
    return kept


def put_pipe_in_place_of_a_trace_file(name):
    def place(folder):
        os.mkdir(os.path.join(folder, 'trace'), 0o700)
        os.mkfifo(os.path.join(folder, 'trace', name))
    return place


def a_trace(folder, **change):
    """Creates a complete trace with the program, and changes one of its files."""
    path = os.path.join(folder, 'trace')
    subprocess.run([program, 'print'], env={**os.environ, 'WEFT_TRACE': path + ',size=65536'}, capture_output=True, check=True)
    for name, text in change.items():
        with open(os.path.join(path, name.replace('_', '-')), 'w', encoding='utf-8') as file:
            file.write(text)
    return path, files_in(path)


def places():
    both = {'arguments': ['print'], 'may_refuse': True}
    condition('a symbolic link', place=link, options=',overwrite', **both)
    condition('a directory that others may write in', place=lambda f: keeping(f, 'trace', {}, 0o777), options=',overwrite', **both)
    condition('a file named metadata, not ours', place=lambda f: keeping(f, 'trace', {'metadata': 'my thesis\n'}), options=',overwrite', **both)
    condition('files named like ours', place=lambda f: keeping(f, 'trace', {'stream-0-0': 'x' * 500, 'definitions-0': ''}), options=',overwrite', **both)
    condition('a trace with another file', place=lambda f: a_trace(f, notes='mine\n'), options=',overwrite', **both)
    condition('a trace, one file of it replaced', place=lambda f: a_trace(f, stream_0_0='mine\n' * 100), options=',overwrite', **both)
    condition('a trace, no overwrite', place=a_trace, **both)
    condition('a pipe .weft-metadata', place=put_pipe_in_place_of_a_trace_file('.weft-metadata'), options=',overwrite', **both)
    condition('a pipe metadata', place=put_pipe_in_place_of_a_trace_file('metadata'), options=',overwrite', **both)
    condition('a pipe stream-0-0', place=put_pipe_in_place_of_a_trace_file('stream-0-0'), options=',overwrite', **both)
    condition('a file in place of the directory', place=lambda f: open(os.path.join(f, 'trace'), 'w', encoding='utf-8').close(), **both)
    if os.getuid() == 0:
        condition('a directory of another user', place=lambda f: keeping(f, 'trace', {}), preexec_fn=other_user, **both)
        condition("another user's trace", place=a_trace, options=',overwrite', preexec_fn=other_user, **both)


def inherited_overwrite():
    """A child with the same WEFT_TRACE=...,overwrite is refused; the parent's trace stays whole."""
    name = 'inherited overwrite'
    if only and name not in only:
        return
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, 'trace')
        run(folder, ['children_of_each_call_have_their_exit_status'], {'WEFT_TRACE': trace + ',overwrite'})
        what = read(trace)
        report(name, '' if re.match(r'[67]\d\d events, 0', what) else f'the parent recorded about 600 events, there are: {what}', what)


def eight_at_once():
    name = 'eight at once'
    if only and name not in only:
        return
    problem, winners = '', 0
    for overwrite in ('', ',overwrite') * 10:
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, 'trace')
            all_of_them = [subprocess.Popen([program, 'ordinary_work'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
                                            env={**os.environ, 'WEFT_TRACE': trace + overwrite}) for _ in range(8)]
            told = [one.communicate(timeout=60)[1].decode() for one in all_of_them]
            recorded = sum(not text for text in told)
            winners += recorded
            odd = [text for text in told if text and not re.fullmatch(r'weft: WEFT_TRACE: \S+: (process \d+ records into it|another process is starting a trace there|'
                                                                      r'exists already; set overwrite to replace it)\n', text)]
            what = read(trace)
            if odd:
                problem = odd[0].strip()
            elif recorded == 0 or not re.match(r'[1-9]\d* events, 0', what) or (recorded > 1 and not overwrite):
                problem = f'{recorded} recorded, {what}'
            elif any(one.returncode for one in all_of_them):
                problem = 'a program failed'
    report(name, problem, f'20 times: {winners} recorded, one after the other, {160 - winners} refused')


def disks():
    """Records on file systems that are full, read-only, or are unmounted during the recording."""
    if os.getuid() or subprocess.run(['unshare', '--mount', 'mount', '-t', 'tmpfs', 'weft', '/mnt'], capture_output=True, check=False).returncode:
        table.append(('disks', 'skipped', 'no file system may be mounted here'))
        return
    for name, mounts in {
            'a full disk': 'mount -t tmpfs -o size=100k weft disk; head -c 96k /dev/zero > disk/others',
            'a small disk': 'mount -t tmpfs -o size=3m weft disk',
            'a read-only disk': 'mount -t tmpfs -o ro weft disk',
            'a disk without inodes': 'mount -t tmpfs -o nr_inodes=9 weft disk',
            'a disk that is unmounted': 'mount -t tmpfs weft disk; vanish: umount -l ../disk',
            'a disk that turns read-only': 'mount -t tmpfs weft disk; vanish: mount -o remount,ro,force ../disk 2>/dev/null || true',
            'a disk that fills up': 'mount -t tmpfs -o size=9m weft disk; vanish: head -c 20m /dev/zero > ../disk/others 2>/dev/null || true',
            'overlayfs': 'mount -t tmpfs weft disk; mkdir disk/l disk/u disk/w disk/m; mount -t overlay o -o lowerdir=disk/l,upperdir=disk/u,workdir=disk/w disk/m; '
                         'mount --move disk/m disk',
    }.items():
        if only and name not in only:
            continue
        vanishes = re.search('; vanish: (.*)', mounts)
        what = 'disk_vanishes' if vanishes else 'ordinary_work'
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, 'disk'))
            os.mkdir(os.path.join(folder, 'own'))
            if vanishes:
                mounts = mounts[:vanishes.start()]
            line = f'{mounts}; cd own; WEFT_TRACE=../disk/trace,size=2m {program} {what}; status=$?; cd ..; ' \
                   f'{weft} info disk/trace > info 2>&1; test ! -e disk/trace || ls disk/trace > files; exit $status'
            got = subprocess.run(['unshare', '--mount', 'sh', '-c', line], cwd=folder, capture_output=True, text=True, timeout=120, check=False,
                                 env={**os.environ, 'HOSTILE_COMMAND': vanishes[1] if vanishes else 'true'})
            refused = re.match(r'weft: WEFT_TRACE: .*: (.*)\n\Z', got.stderr)
            problem = '' if got.returncode == 0 and got.stdout == 'work is done\n' and (refused or not got.stderr) else repr(got)
            if not problem and refused and os.path.exists(os.path.join(folder, 'files')):
                problem = 'what failed left something behind'
            with open(os.path.join(folder, 'info'), encoding='utf-8') as info:
                report(name, problem, f'refused: {refused[1]}' if refused else (' '.join(re.findall(r'\nevents +(.*)', info.read())) or 'no') + ' events')


def check_directory_in_use_is_refused(folder):
    """Checks that only one program at a time can record into a directory, and that its trace counts as live until it dies.  Returns an error, or an empty string."""
    trace = os.path.join(folder, 'trace')
    environment = {**os.environ, 'WEFT_TRACE': trace + ',overwrite'}
    with subprocess.Popen([program, 'wait_for_input'], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as recorder:
        recorder.stdout.readline()
        second = subprocess.run([program, 'print'], env=environment, capture_output=True, text=True, check=False)
        looks = [subprocess.run([program, 'print_whether_recorded'], env={**os.environ, 'HOSTILE_TRACE': trace}, capture_output=True, text=True, check=True).stdout]
        recorder.kill()
    looks += [subprocess.run([program, 'print_whether_recorded'], env={**os.environ, 'HOSTILE_TRACE': trace}, capture_output=True, text=True, check=True).stdout]
    after = subprocess.run([program, 'print'], env=environment, capture_output=True, text=True, check=False)
    if f'process {recorder.pid} records into it' not in second.stderr or looks != ['it is\n', 'it is not\n']:
        return f'while it records: {second.stderr!r}, {looks}'
    return f'when it is dead: {after.stderr}' if after.stderr else ''


def live_traces():
    with tempfile.TemporaryDirectory() as folder:
        if not only or 'who records' in only:
            report('who records', check_directory_in_use_is_refused(folder), 'refused while the recorder lives')
    if os.environ.get('WEFT_TEST_OVERLAY'):
        problem = check_directory_in_use_is_refused(os.environ['WEFT_TEST_OVERLAY'])
        sys.exit(problem)
    if os.getuid() or (only and 'who records, overlayfs' not in only):
        return
    with tempfile.TemporaryDirectory() as folder:
        line = 'mkdir d; mount -t tmpfs weft d; cd d; mkdir l u w m; mount -t overlay o -o lowerdir=l,upperdir=u,workdir=w m && WEFT_TEST_OVERLAY=$PWD/m exec "$@"'
        got = subprocess.run(['unshare', '--mount', 'sh', '-ec', line, 'sh', sys.executable, os.path.abspath(__file__), program, weft, 'overlay'],
                             cwd=folder, capture_output=True, text=True, check=False)
        if got.returncode and ('mount:' in got.stderr or got.stderr.startswith('unshare:')):
            table.append(('who records, overlayfs', 'skipped', got.stderr.strip()))
        else:
            report('who records, overlayfs', got.stderr.strip(), 'refused while the recorder lives')


live_traces()
for name in subprocess.run([program], capture_output=True, text=True, check=True).stdout.split():
    if name in ('recording_continues_after_chroot', 'recording_continues_in_new_namespaces') and os.getuid():
        table.append((name, 'skipped', 'needs root'))
        continue
    # Each child that inherits the same WEFT_TRACE is refused with a line on stderr.
    condition(name, may_refuse=name in ('children_of_each_call_have_their_exit_status', 'exec_itself'))
condition('growing files', ['ordinary_work'], ',mode=grow')
condition('growing files truncated', ['truncated_trace_files_do_not_stop_the_program'], ',mode=grow,size=64M')
condition('growing files after a limit', ['file_size_limit_ends_the_program_only_for_its_own_writes'], ',mode=grow')
for limit in ('as', 'core', 'data', 'fsize', 'locks', 'memlock', 'msgqueue', 'nice', 'nofile', 'nproc', 'rss', 'rtprio', 'rttime', 'sigpending'):
    # These are the lowest limits with which the program itself starts; all others are 0.  Another user runs it, because some limits do not apply to root.
    least = {'as': 9000000, 'data': 1000000, 'nofile': 4}.get(limit, 0)
    condition(f'limit of {limit}', ['ordinary_work'], may_refuse=True, before=('prlimit', f'--{limit}={least}:{least}'), preexec_fn=other_user)
condition('limit of fsize, of a packet', ['ordinary_work'], may_refuse=True, before=('prlimit', '--fsize=200000:200000'))
condition('limit of stack', ['small_stacks'], before=('prlimit', '--stack=65536:65536'))
condition('umask 0', ['ordinary_work'], preexec_fn=lambda: os.umask(0))
condition('umask 0777', ['ordinary_work'], preexec_fn=lambda: os.umask(0o777))
places()
inherited_overwrite()
eight_at_once()
disks()

width = max(len(row[0]) for row in table)
for row in table:
    print(f'{row[0]:{width}}  {row[1]:8}  {row[2][:150]}')
print(f'{len(table)} conditions, {len(wrong)} of them wrong')
sys.exit('\n'.join(text[:3000] for text in wrong) if wrong else 0)
