#!/usr/bin/env python3
"""names_test.py WEFT PLACES GAPS SOW MOW SOURCES: programs recorded without their source get the names that their files have.

PLACES and GAPS, the same program with gaps between its segments, have debug information; MOW has none.  SPDX-License-Identifier: ISC"""
import json, os, re, shutil, stat, subprocess, sys, tempfile, urllib.request

weft, places, gaps, sow, mow, sources = map(os.path.abspath, sys.argv[1:])
failures = []


def check(what, is_so):
    if not is_so:
        failures.append(what)


def line_of(name, text):
    """Returns the number of the line with the text."""
    return next(i for i, line in enumerate(open(os.path.join(sources, name)), 1) if text in line)


def record(program, trace, *modules):
    subprocess.run([program, *modules], check=True, env={**os.environ, 'WEFT_TRACE': trace, 'LD_LIBRARY_PATH': os.path.dirname(os.path.abspath(weft))})
    return trace


def dump(trace):
    """Returns the promises by label, and the text on stderr."""
    got = subprocess.run([weft, 'dump', '--json', trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    lines = [json.loads(line) for line in got.stdout.splitlines()]
    return {p['labels'][0][1]: p for p in lines if p.get('site')}, got.stderr


def shown(trace):
    """Returns the printed site of each promise."""
    text = subprocess.run([weft, 'dump', trace], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    return dict(re.findall(r'"(\w+)"  at (.*)', text))


def address_of(name):
    listed = subprocess.run(['nm', places], stdout=subprocess.PIPE, text=True, check=True).stdout
    return int(re.search(rf'^(\w+) . {name}(?:\.\w+)*$', listed, re.M).group(1), 16)


def with_debug_information(scratch):
    program = shutil.copy(places, os.path.join(scratch, 'places'))
    trace = record(program, os.path.join(scratch, 'debug'), sow, mow)
    promises, said = dump(trace)
    check(f'nothing is said: {said}', said == '')
    for name in ('places_exported', 'hidden_one', 'hidden_two'):
        site = promises[name]['site']
        line = line_of('places.c', f'FUNCTION({name},')
        check(f'{name}: {site}', site['function'] == name and site['file'].endswith('places.c') and site['line'] == line)
        check(f'{name}: {site}', site['module'] == program)
        check(f'{name} is called where its caller is', [c['function'] for c in promises[name]['callers']] == [name])
    for name in ('sow', 'mow'):
        # The recorder caches addresses of callers; the address of the other module now belongs to another one.
        check(f'callers of {name}', [c['function'] for c in promises[name]['callers']] == [name])
    line = line_of('module.c', 'create(TEXT_OF')
    at = shown(trace)
    # Both modules were most likely at one address: the second was loaded after the unloading of the first.
    check(f'a module with debug information: {at}', at['sow'] == f'sow (module.c:{line})')
    check(f'a module without: {at}', at['mow'] == 'mow (mow)')
    return program, trace


def stripped(scratch):
    program = shutil.copy(places, os.path.join(scratch, 'stripped'))
    subprocess.run(['strip', program], check=True)
    at = shown(record(program, os.path.join(scratch, 'bare')))
    wanted = {'places_exported': 'places_exported (stripped)'}
    for name in ('hidden_one', 'hidden_two'):
        wanted[name] = f'stripped+{address_of(name):#x}'
    check(f'a stripped program: {at}', at == wanted)


def with_gaps(scratch):
    """A program whose segments have gaps, like NodeSource's node."""
    promises, said = dump(record(gaps, os.path.join(scratch, 'gapped')))
    check(f'a program with gaps: {said}', said == '' and promises['hidden_one']['site']['function'] == 'hidden_one')


def in_c_plus_plus(scratch):
    if not shutil.which('g++'):
        print('skipped: no g++')
        return
    module = os.path.join(scratch, 'tree.cpython-311-x86_64-linux-gnu.so')
    subprocess.run(['g++', '-O2', '-fPIC', '-shared', os.path.join(sources, 'module.cc'), '-o', module], check=True)
    at = shown(record(places, os.path.join(scratch, 'garden'), module))
    check(f'C++: {at}', at['plant'] == 'garden::Tree::plant (tree)' and at['grow'] == 'garden::(anonymous namespace)::Hidden::grow<double> (tree)')


def saved(scratch, program, trace):
    copy = os.path.join(scratch, 'saved')
    before = shown(trace)
    subprocess.run([weft, 'save', '--names', trace, '-w', copy], check=True)
    plain = os.path.join(scratch, 'plain')
    subprocess.run([weft, 'save', trace, '-w', plain], check=True)
    page = os.path.join(scratch, 'page.html')
    subprocess.run([weft, 'html', trace, '-o', page], check=True)
    os.rename(program, program + '.gone')
    after, said = dump(copy)
    for name in ('places_exported', 'hidden_one', 'hidden_two'):
        site = after[name]['site']
        check(f'a saved name: {site}', site['function'] == name and site['file'].endswith('places.c'))
    library = dump(trace)[0]['mow']['site'], after['mow']['site']
    check(f'a saved place is still in its library: {library}', library[0] == library[1] and library[1]['module'])
    check(f'a saved name: {shown(copy)}', shown(copy)['mow'] == before['mow'] and said == '')
    at = shown(plain)['hidden_one']
    check(f'names are not saved unless they are asked for: {at}', re.fullmatch(r'places\+0x[0-9a-f]+', at))
    if shutil.which('babeltrace2'):
        got = subprocess.run(['babeltrace2', copy], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check(f'babeltrace2: {got.stderr}', got.returncode == 0 and not got.stderr and 'function = "hidden_one"' in got.stdout)


def served(scratch, trace):
    """The page gets the names, since a browser cannot read the files."""
    with subprocess.Popen([weft, 'serve', trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        url = server.stdout.readline().strip()
        if not url:
            print('skipped:', server.stderr.read().strip())
            return
        copy = os.path.join(scratch, 'served.tar')
        with urllib.request.urlopen(url.rstrip('/') + '/trace-1', timeout=60) as answer, open(copy, 'wb') as file:
            file.write(answer.read())
        server.terminate()
    at = shown(copy)
    check(f'names in what is served: {at}', re.fullmatch(r'hidden_one \(places.c:\d+\)', at['hidden_one']) and at['mow'] == 'mow (mow)')


def replaced(program, trace):
    """A replaced program file is not used, and a device or a FIFO is not opened."""
    shutil.copy(mow, program)
    promises, said = dump(trace)
    check(f'another file: {said}', f'{program} is not the recorded file' in said)
    check('another file gives no names', promises['hidden_one']['site']['function'] == '')
    os.remove(program)
    os.mkfifo(program)
    promises, _ = dump(trace)
    check('a FIFO gives no names', promises['hidden_one']['site']['function'] == '')
    os.remove(program)
    shutil.copy(program + '.gone', program)
    os.chmod(program, 0o777)
    promises, _ = dump(trace)
    check('what anybody may change gives no names', promises['hidden_one']['site']['function'] == '')
    os.chmod(program, 0o755)
    promises, _ = dump(trace)
    check('the program is back', promises['hidden_one']['site']['function'] == 'hidden_one')
    # The trace names a device without an end.
    name = os.path.join(trace, 'definitions-0')
    data = open(name, 'rb').read()
    path = program.encode()
    check('the path is in the trace', path + b'\0' in data)
    open(name, 'wb').write(data.replace(path + b'\0', b'/dev' + b'/' * (len(path) - 8) + b'zero\0'))
    promises, _ = dump(trace)
    check('a device gives no names', promises['hidden_one']['site']['function'] == '')
    # The trace names what is in the working directory of its reader.
    behind = b'/proc/self/cwd/' + os.path.basename(path)
    open(name, 'wb').write(data.replace(path + b'\0', behind.replace(b'cwd/', b'cwd' + b'/' * (1 + len(path) - len(behind))) + b'\0'))
    here = os.getcwd()
    os.chdir(os.path.dirname(program))
    promises, _ = dump(trace)
    os.chdir(here)
    check('a link of /proc gives no names', promises['hidden_one']['site']['function'] == '')


with tempfile.TemporaryDirectory() as folder:
    folder = os.path.realpath(folder)
    kept = with_debug_information(folder)
    stripped(folder)
    with_gaps(folder)
    in_c_plus_plus(folder)
    served(folder, kept[1])
    saved(folder, *kept)
    replaced(*kept)
print('\n'.join(failures) or 'fine')
sys.exit(1 if failures else 0)
