# person.py: drives windows as a person would: a display without a screen, real key presses and pointer motions (xdotool), and
# what assistive technology sees (AT-SPI).  SPDX-License-Identifier: ISC
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

PATIENCE = float(os.environ.get('WEFT_TEST_PATIENCE', '90'))  # s; a loaded machine may be slow


# Complaints of libraries that the program cannot prevent: there is no dconf, and the labels of keys in GTK's window of shortcuts.
NOT_OURS = ('dconf', 'reported min width -')


# Stricter than tests/leaks.supp, which holds for all tests.
LEAKS = {'LSAN_OPTIONS': 'print_suppressions=0:suppressions=' + os.path.join(os.path.dirname(os.path.abspath(__file__)), 'leaks.supp')}


def sanitized(program):
    """Mesa's drivers keep some memory and are unloaded before the leak check, so that a stack trace cannot name them."""
    with open(program, 'rb') as file:
        return {'GDK_DEBUG': 'gl-disable'} if b'__asan_init' in file.read() else {}


class Gone(Exception):
    """The window ended unexpectedly."""


def under_a_desktop(screen='1280x800'):
    """Runs this script again in its own session: a display, a message bus, a home."""
    if os.environ.get('WEFT_TEST_DESKTOP'):
        return
    for tool in ('Xvfb', 'xdotool', 'xsettingsd', 'import', 'dbus-run-session'):
        if not shutil.which(tool):
            print(f'skipped: {tool} is not installed')
            sys.exit(77)
    interpreter = python()
    with tempfile.TemporaryDirectory(prefix='weft-desktop-') as home:
        out, into = os.pipe()
        with open(os.path.join(home, 'xvfb.log'), 'wb') as log:
            server = subprocess.Popen(['Xvfb', '-displayfd', str(into), '-screen', '0', f'{screen}x24', '-nolisten', 'tcp', '-noreset'],
                                      pass_fds=[into], stdout=log, stderr=log)
        os.close(into)
        with os.fdopen(out) as numbers:
            display = numbers.readline().strip()
        runtime = os.path.join(home, 'run')
        os.mkdir(runtime, 0o700)
        env = {key: value for key, value in os.environ.items() if not key.startswith(('XDG_', 'DBUS_', 'WAYLAND_', 'GTK_', 'GDK_'))}
        env.update(WEFT_TEST_DESKTOP=home, DISPLAY=':' + display, HOME=home, XDG_RUNTIME_DIR=runtime, GDK_BACKEND='x11',
                   GSK_RENDERER='cairo', GSETTINGS_BACKEND='memory', GIO_USE_VFS='local', GIO_USE_VOLUME_MONITOR='unix', LC_ALL='C.UTF-8', PYTHONDONTWRITEBYTECODE='1')
        try:
            status = subprocess.run(['dbus-run-session', '--', interpreter, *sys.argv], env=env, check=False).returncode
        finally:
            server.terminate()
            server.wait()
    sys.exit(status)


def python():
    """Returns the Python of Debian's packages: another one may come first in the PATH."""
    for candidate in (sys.executable, '/usr/bin/python3'):
        if os.path.exists(candidate) and subprocess.run([candidate, '-c', 'import pyatspi'], capture_output=True, check=False).returncode == 0:
            return candidate
    print('skipped: pyatspi is not installed')
    sys.exit(77)


def xdo(*args):
    return subprocess.run(['xdotool', *map(str, args)], check=True, capture_output=True, text=True, timeout=PATIENCE).stdout


def give_focus(xwindow, app):
    """Gives the keyboard to a window; the server refuses it while the window is not mapped yet."""
    until('the window accepts the focus', lambda: subprocess.run(
        ['xdotool', 'windowfocus', '--sync', xwindow], capture_output=True, timeout=PATIENCE, check=False).returncode == 0, app)


def until(what, condition, app=None, patience=PATIENCE):
    """Waits until condition() is true, and returns its value."""
    end = time.monotonic() + patience
    while True:
        got = condition()
        if got:
            return got
        if app is not None and app.process.poll() is not None:
            raise Gone(f'the program ended with {app.process.returncode} while waiting for: {what}\n{app.errors()}')
        if time.monotonic() > end:
            raise AssertionError(f'never: {what}\n{app.brief() if app else ""}')
        time.sleep(0.02)


def findings_text(rows):
    """Returns a line for each finding, with a star if it is open; below it, indented, its evidence."""
    lines = []
    for kind, _, is_open, _, name, value in rows:
        if kind == 'finding':
            lines.append(('*' if is_open else '') + (value.lower() or 'why') + ': ' + name)
        elif kind == 'evidence':
            lines.append('  ' + name)
        elif kind == 'nothing':
            lines.append(name)
    return '\n'.join(lines)


def reaches_the_edge(window):
    """Returns whether the picture, right of the names of rows, reaches the right edge of its widget."""
    viewer = window['viewers'][0]
    return viewer['x'] + viewer['width'] == window['canvas'][0] + window['width']


class App:
    """A weft-view and its windows."""

    count = 0

    def __init__(self, program, *args, stdin=None, width=1100, height=700, env=None, home=None, chooser=False):
        """`chooser`: the test uses GTK's file chooser, which leaks some memory."""
        App.count += 1
        self.xwindow = None
        self.folder = home or tempfile.mkdtemp(prefix='app-', dir=os.environ['WEFT_TEST_DESKTOP'])
        self.dump = os.path.join(self.folder, f'dump-{App.count}.json')
        self.log = open(os.path.join(self.folder, f'log-{App.count}'), 'w+', encoding='utf-8', errors='replace')
        config = os.path.join(self.folder, 'config', 'weft')
        if not os.path.exists(config):
            os.makedirs(config)
            with open(os.path.join(config, 'view.ini'), 'w', encoding='utf-8') as file:
                file.write(f'[window]\nwidth={width}\nheight={height}\npanel=false\n')
        self.process = subprocess.Popen(
            [program, *args], stdin=stdin or subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            env={**os.environ, 'WEFT_VIEW_DUMP': self.dump, 'XDG_CONFIG_HOME': os.path.dirname(config),
                 'XDG_DATA_HOME': os.path.join(self.folder, 'data'), **sanitized(program), **({} if chooser else LEAKS), **(env or {})})

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.kill() if kind else self.quit()
        self.process.wait()
        self.log.close()

    def errors(self):
        self.log.flush()
        self.log.seek(0)
        return self.log.read()

    def state(self):
        try:
            with open(self.dump, encoding='utf-8') as file:
                state = json.load(file)
        except FileNotFoundError:
            return {'windows': []}
        for window in state['windows']:
            window['rows'] = window['findings']
            window['facts'] = ''.join(f'{name}|{value}\n' for kind, _, _, _, name, value in window['facts'] if kind != 'nothing')
            window['findings'] = findings_text(window['rows'])
        return state

    def brief(self):
        state = self.state()
        for window in state['windows']:
            for viewer in window['viewers']:
                del viewer['promises']
        return json.dumps(state, indent=1)[:4000]

    def window(self, index=0):
        windows = self.state()['windows']
        return windows[index] if index < len(windows) else None

    def viewer(self, index=0):
        window = self.window()
        return window['viewers'][index] if window and index < len(window['viewers']) else None

    def until(self, what, condition):
        """Waits until condition(window) holds, and returns the window."""
        def holds():
            window = self.window()
            return window if window and condition(window) else None
        return until(what, holds, self)

    def until_viewer(self, what, condition, index=0):
        return self.until(what, lambda w: index < len(w['viewers']) and condition(w['viewers'][index]))['viewers'][index]

    def shown(self):
        """Waits until the trace is shown and the window has the keyboard; returns the viewer."""
        self.until('a trace is shown', lambda w: w['page'] == 'view' and not w['loading'] and reaches_the_edge(w))
        self.focus()
        return self.viewer()

    def xwindows(self):
        run = subprocess.run(['xdotool', 'search', '--onlyvisible', '--pid', str(self.process.pid), '--name', '.'],
                             capture_output=True, text=True, timeout=PATIENCE, check=False)
        return run.stdout.split()

    def focus(self):
        if not self.xwindow:
            self.xwindow = until('a window on the display', self.xwindows, self)[-1]
        give_focus(self.xwindow, self)
        self.until('the window has the focus', lambda w: w['focused'])

    def focus_dialog(self):
        dialog = until('a dialog on the display', lambda: [w for w in self.xwindows() if w != self.xwindow], self)[-1]
        give_focus(dialog, self)

    def key(self, *keys):
        for key in keys:
            xdo('key', '--clearmodifiers', key)

    def type(self, text):
        xdo('type', '--delay', '20', text)

    def at(self, x, y):
        xdo('mousemove', '--window', self.xwindow, round(x), round(y))

    def click(self, x, y, button=1, times=1):
        self.at(x, y)
        xdo('click', '--repeat', times, '--delay', 60, button)

    def drag(self, x, y, dx, dy, *held):
        self.at(x, y)
        for key in held:
            xdo('keydown', key)
        xdo('mousedown', 1)
        for step in (1, 2, 3, 4):
            self.at(x + dx * step / 4, y + dy * step / 4)
        xdo('mouseup', 1)
        for key in held:
            xdo('keyup', key)

    def wheel(self, x, y, button, *held):
        self.at(x, y)
        for key in held:
            xdo('keydown', key)
        xdo('click', button)
        for key in held:
            xdo('keyup', key)

    def beat(self):
        """Returns how often the program has been idle."""
        try:
            with open(self.dump + '.beat', encoding='ascii') as file:
                return int(file.read())
        except FileNotFoundError:
            return 0

    def settled(self, index=0):
        """Returns the viewer once its position and size are stable, although the program has had time to change them."""
        since, last = self.beat(), self.viewer(index)

        def still():
            nonlocal since, last
            now = self.viewer(index)
            if now != last:
                since, last = self.beat(), now
            return self.beat() >= since + 6
        until('it stands still', still, self)
        return last

    def focus_canvas(self):
        """A click on an empty place gives the keyboard to the picture."""
        self.settled()
        self.click(*self.empty_place())

    def empty_place(self):
        """Returns a point of the picture 30 px from any line."""
        viewer = self.viewer()
        for down in range(20, int(viewer['height']) - 40, 7):
            for right in range(40, int(viewer['width']) - 40, 40):
                x, y = viewer['x'] + right, viewer['y'] + down
                if all(abs(p[3] - y) > 24 or x < p[1] - 24 or x > p[2] + 24 for p in viewer['promises']):
                    return x, y
        raise AssertionError('no place is empty')

    def accessibles(self):
        """Returns all objects that assistive technology finds in the application."""
        import pyatspi
        from gi.repository import Atspi, GLib
        # Otherwise an object without an answer within 0.8 s counts as gone, like a window on a busy machine; and a press may count twice.
        Atspi.set_timeout(int(PATIENCE * 1000), int(PATIENCE * 1000))
        found, todo = [], []
        for one in pyatspi.Registry.getDesktop(0):
            with contextlib.suppress(GLib.GError):  # an old window that is closing
                if one is not None and one.get_process_id() == self.process.pid:
                    todo.append(one)
        while todo:
            one = todo.pop()
            try:
                found.append(one)
                todo += [child for child in one if child is not None]
            except Exception:  # it vanished during the query
                continue
        return found

    def which(self, suits):
        """Returns the matching objects of accessibles()."""
        from gi.repository import GLib
        found = []
        for one in self.accessibles():
            with contextlib.suppress(GLib.GError, NotImplementedError):  # it vanished during the query
                if suits(one):
                    found.append(one)
        return found

    def accessible(self, name):
        return next(iter(self.which(lambda one: one.name == name)), None)

    def act(self, what, find):
        """Performs the accessible action of the object that find() returns.  The panel may replace a button between the query and the press."""
        from gi.repository import GLib

        def done():
            one = find()
            with contextlib.suppress(GLib.GError, NotImplementedError):
                return bool(one) and one.queryAction().doAction(0)
        until(what, done, self)

    def press(self, name):
        """Presses the button of that name through AT-SPI."""
        self.act(f'a button {name}', lambda: self.accessible(name))

    def buttons(self, start):
        """Returns the buttons whose accessible names start so; old versions of GTK leave the mark of the mnemonic in the name."""
        import pyatspi
        return self.which(lambda one: one.getRole() == pyatspi.ROLE_PUSH_BUTTON and (one.name or '').lstrip('_').startswith(start))

    def press_first(self, start):
        """Presses the first button whose name starts so."""
        self.act(f'a button {start}', lambda: next(iter(self.buttons(start)), None))

    def place_of(self, start):
        """Returns a point on the button whose name starts so."""
        import pyatspi
        from gi.repository import GLib

        def where():
            boxes = []
            for one in self.buttons(start):
                with contextlib.suppress(GLib.GError, NotImplementedError):
                    boxes.append(one.queryComponent().getExtents(pyatspi.WINDOW_COORDS))
            return [(box.x + box.width / 2, box.y + box.height / 2) for box in boxes
                    if box.width > 4 and box.height > 4 and box.y + box.height < self.window()['height']]
        x, y = until(f'a button {start} that is seen', where, self)[0]
        left, top = self.window()['shadow']
        return x + left, y + top

    def click_on(self, start):
        """Points at the button whose name starts so, and clicks."""
        self.click(*self.place_of(start))

    def choose(self, name):
        """Chooses the item of that name in the open menu."""
        self.act(f'{name} in a menu', lambda: self.accessible(name))

    @contextlib.contextmanager
    def drag_in(self, drag, path):
        """Drops a file from another window into the middle of the window."""
        other = subprocess.Popen([drag, path], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        try:
            def shown():
                found = subprocess.run(['xdotool', 'search', '--onlyvisible', '--pid', str(other.pid)], capture_output=True, text=True, check=False)
                return found.stdout.split()
            window = until('a window to drag out of', shown)[-1]
            xdo('windowmove', '--sync', window, 1110, 300)
            until('it is drawn', lambda: self.drawn(window))
            xdo('mousemove', '--window', window, 75, 75)
            xdo('mousedown', 1)
            for x in range(1170, 560, -30):
                xdo('mousemove', x, 380)
                time.sleep(0.02)
            xdo('mouseup', 1)
            yield
        finally:
            other.terminate()
            other.wait()

    @staticmethod
    def drawn(window):
        """Returns whether a window shows more than one colour."""
        run = subprocess.run(['import', '-depth', '8', '-window', window, 'ppm:-'], capture_output=True, check=False, timeout=PATIENCE)
        pixels = run.stdout.split(b'\n', 3)[-1]
        return len({pixels[i:i + 3] for i in range(0, len(pixels) - 3, 3)}) > 1

    def find(self, text):
        """Types the text into the search bar, and waits for the end of the search."""
        self.key('slash')
        self.until('the search bar', lambda w: w['finding'] and w['typing'])
        self.type(text)
        return self.until('all was searched', lambda w: w['viewers'][0]['search'] == text and not w['viewers'][0]['searching'])

    def share(self, colour):
        """Returns the share of pixels with that colour, in thousandths."""
        width, height, pixels = self.picture()
        return 1000 * sum(pixels[i:i + 3] == colour for i in range(0, len(pixels), 3)) / (width * height)

    def place(self, promise, index=0):
        """Returns a point on the line of a promise, by its id, in the window."""
        for number, left, right, y in self.viewer(index)['promises']:
            if number == promise:
                return (left + right) / 2, y
        raise AssertionError(f'promise {promise} is not seen')

    def picture(self, name=None):
        """Returns the window's pixels: width, height, bytes of red, green and blue."""
        run = subprocess.run(['import', '-depth', '8', '-window', self.xwindow, 'ppm:-'], check=True, capture_output=True, timeout=PATIENCE)
        kind, size, _, pixels = run.stdout.split(b'\n', 3)
        assert kind == b'P6', kind
        width, height = map(int, size.split())
        if name and os.environ.get('WEFT_TEST_PICTURES'):
            subprocess.run(['import', '-window', 'root', os.path.join(os.environ['WEFT_TEST_PICTURES'], name + '.png')], check=False)
        return width, height, pixels

    def quit(self):
        """Quits by the keyboard; reports of a sanitizer at the end are failures."""
        if self.process.poll() is None:
            self.focus()
            self.key('ctrl+q')
            self.process.wait(PATIENCE)
        assert self.process.returncode == 0, f'status {self.process.returncode}: {self.errors()}'
        complaints = [line for line in self.errors().splitlines() if 'CRITICAL' in line or 'WARNING' in line and not any(known in line for known in NOT_OURS)]
        assert not complaints, '\n'.join(complaints[:10])


def run(tests):
    """Runs each function and prints its name; only those in WEFT_TEST_ONLY if it is set."""
    failed = []
    wanted = os.environ.get('WEFT_TEST_ONLY', '').split()
    chosen = [test for test in tests if not wanted or test.__name__ in wanted]
    for test in chosen:
        began = time.monotonic()
        try:
            test()
            print(f'ok    {test.__name__} ({time.monotonic() - began:.1f} s)', flush=True)
        except (AssertionError, Gone, subprocess.SubprocessError) as error:
            failed.append(test.__name__)
            print(f'FAIL  {test.__name__}: {error}', flush=True)
    print(f'{len(chosen) - len(failed)} passed, {len(failed)} failed')
    return 1 if failed or not chosen else 0
