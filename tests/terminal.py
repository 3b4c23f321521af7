"""terminal.py: runs a program in a terminal of tmux, sends it keys, and reads the screen.  SPDX-License-Identifier: ISC"""
import html
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

PATIENCE_S = 120


def is_there():
    return shutil.which('tmux') is not None


class Terminal:
    """A terminal as context manager; the end of the context ends its tmux."""

    def __init__(self, columns=80, rows=24, locale='C.UTF-8', term='', **variables):
        self.socket = f'weft-{os.getpid()}-{id(self)}'
        self.environment = {**os.environ, 'LC_ALL': locale, 'TERM': 'xterm-256color'}
        for name in ('TMUX', 'NO_COLOR', 'LD_LIBRARY_PATH'):
            self.environment.pop(name, None)
        self.variables = {**variables, **({'TERM': term} if term else {})}
        self.size = (columns, rows)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux('kill-server', check=False)

    def tmux(self, *words, check=True):
        got = subprocess.run(['tmux', '-u', '-L', self.socket, '-f', '/dev/null', *words], env=self.environment, capture_output=True, check=False, timeout=PATIENCE_S)
        if check and got.returncode != 0:
            sys.exit(f'tmux {words}: {got.stderr.decode()}')
        return got.stdout.decode(errors='replace')

    def start(self, *command):
        """Starts a command; when it has ended, the screen ends with "ended: STATUS"."""
        variables = ' '.join(f'{name}={shlex.quote(value)}' for name, value in self.variables.items())
        script = f'env {variables} {shlex.join(command)}; echo "ended: $?"; exec sleep 3600'
        self.tmux('new-session', '-d', '-x', str(self.size[0]), '-y', str(self.size[1]), script)
        self.tmux('set-option', '-g', 'status', 'off', check=False)
        self.resize(*self.size)

    def resize(self, columns, rows):
        self.size = (columns, rows)
        self.tmux('resize-window', '-x', str(columns), '-y', str(rows))

    def type(self, *keys):
        """Presses keys, by their names in tmux: 'Enter', 'BSpace', 'C-c', 'a'."""
        for key in keys:
            self.tmux('send-keys', key)

    def write(self, text):
        self.tmux('send-keys', '-l', text)

    def mouse(self, column, row, button=0):
        """Presses and releases a button of the mouse (0 left, 64 wheel up, 65 wheel down) at a place, which is counted from 0."""
        for what in (button, 3) if button == 0 else (button,):
            self.tmux('send-keys', '-H', *(f'{byte:x}' for byte in (0x1b, ord('['), ord('M'), 32 + what, 33 + column, 33 + row)))

    def lines(self):
        return self.tmux('capture-pane', '-p').split('\n')[:self.size[1]]

    def coloured(self):
        """Returns the screen with colour escapes."""
        return self.tmux('capture-pane', '-p', '-e', '-N').split('\n')[:self.size[1]]

    def text(self):
        return '\n'.join(self.lines())

    def until(self, what, condition):
        """Waits until the screen contains a text, or until a function of the screen is true."""
        end = time.monotonic() + PATIENCE_S
        while True:
            shown = self.text()
            if condition(shown) if callable(condition) else condition in shown:
                return shown
            if time.monotonic() > end:
                sys.exit(f'after {PATIENCE_S} s still not: {what} ({condition if isinstance(condition, str) else ""})\n{shown}')
            time.sleep(0.05)

    def picture(self, path):
        """Draws the screen into a PNG."""
        svg = draw(self.coloured(), *self.size)
        subprocess.run(['rsvg-convert', '-o', path], input=svg.encode(), check=True, timeout=PATIENCE_S)


# ---- A terminal screen as SVG ----

FONT_PX, WIDTH_PX, HEIGHT_PX, MARGIN_PX = 14, 14 * 1233 / 2048, 18, 8
GROUND, INK, DIM = '#1d2027', '#d7dae0', '#8b909a'
COLOURS = {30: '#000000', 31: '#ff7b72', 32: '#7ee787', 33: '#e3b341', 34: '#79c0ff', 35: '#d2a8ff', 36: '#76e3ea', 37: '#ffffff'}


def pieces(line):
    """Splits a line into parts with the same colours; returns column, text and escape sequence of each."""
    column, state, text, out = 0, {}, '', []
    for part in re.split(r'(\x1b\[[0-9;]*m)', line):
        if not part.startswith('\x1b'):
            text = part.replace('\x0f', '').replace('\x0e', '')
            if text:
                out.append((column, text, dict(state)))
            column += len(text)
            continue
        for code in (int(number or 0) for number in part[2:-1].split(';')):
            if code == 0:
                state = {}
            elif code in (1, 2, 4, 7):
                state[code] = True
            elif code in COLOURS:
                state['ink'] = COLOURS[code]
            elif code == 39:
                state.pop('ink', None)
            elif code in (22, 24, 27):
                for off in (1, 2) if code == 22 else (code - 20,):
                    state.pop(off, None)
    return out


def draw(lines, columns, rows):
    width, height = columns * WIDTH_PX + 2 * MARGIN_PX, rows * HEIGHT_PX + 2 * MARGIN_PX
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}">',
           f'<rect width="100%" height="100%" fill="{GROUND}"/>',
           f'<g font-family="DejaVu Sans Mono" font-size="{FONT_PX}" xml:space="preserve">']
    for row, line in enumerate(lines):
        top = MARGIN_PX + row * HEIGHT_PX
        for column, text, state in pieces(line):
            left, ink = MARGIN_PX + column * WIDTH_PX, state.get('ink', DIM if 2 in state else INK)
            if 7 in state:
                out.append(f'<rect x="{left:.2f}" y="{top}" width="{len(text) * WIDTH_PX:.2f}" height="{HEIGHT_PX}" fill="{ink}"/>')
                ink = GROUND
            if 4 in state:
                out.append(f'<rect x="{left:.2f}" y="{top + HEIGHT_PX - 2}" width="{len(text) * WIDTH_PX:.2f}" height="1" fill="{DIM}"/>')
            weight = ' font-weight="bold"' if 1 in state else ''
            out.append(f'<text x="{left:.2f}" y="{top + 13.5}" fill="{ink}"{weight}>{html.escape(text)}</text>')
    return '\n'.join(out + ['</g></svg>'])
