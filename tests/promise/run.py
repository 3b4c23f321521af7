#!/usr/bin/env python3
"""Runs programs of promises in C and in model.py, and compares the events of the trace with those of the model.

	run.py PLAY table FILE		the programs of a file, which also has their events: lines that begin with `> `, with ` | ` between events
	run.py PLAY random COUNT SEED	random programs
	run.py PLAY no-memory COUNT SEED	random programs; each allocation fails once
	run.py PLAY no-memory FILE	the programs of a file; each allocation fails once
	run.py PLAY memory FILE		the programs of a file, and some random ones, under valgrind

Programs are small, so that a developer can read the first one with a difference.  babeltrace2 reads the trace.
SPDX-License-Identifier: ISC
"""

import os
import random
import re
import subprocess
import sys
import tempfile

import model

sys.setrecursionlimit(100000)

EVENT = re.compile(r" (\w+): \{ mark = .*?\}, (?:\{ (.*) \})?$")
FIELD = re.compile(r'(\w+) = (?:\( "(.*?)" : [^)]*\)|"(.*?)"|(-?\d+))(?:, |$)')
ORDER = {
    "create": ("by", "promise", "kind"),
    "label": ("promise", "text"),
    "resolve": ("by", "promise"),
    "fail": ("by", "promise", "error"),
    "become": ("promise", "into"),
    "await": ("promise", "input"),
    "hold": ("promise", "lock"),
    "release": ("promise", "lock"),
    "read": ("promise", "input"),
    "signal": ("from", "promise"),
    "run": ("promise",),
    "should_resolve": ("promise",),
    "counter": ("by", "value"),
    "idle": (),
    "resume": ("promise",),
}
IDS = {"by", "promise", "into", "input", "from", "lock"}


class Told:
    """Checks that the state dump repeats only earlier events of pending promises."""

    def __init__(self):
        self.kinds, self.into, self.ended, self.marked = {}, {}, set(), set()
        self.before, self.again = None, False

    def end(self, id):
        while id in self.into:
            id = self.into[id]
        return id

    def apply_event(self, name, fields):
        p = fields.get("promise")
        self.again = name == "should_resolve" and self.before == ("pending", p) and self.end(p) in map(self.end, self.marked)
        self.before = name, p
        if name == "should_resolve":
            self.marked.add(p)
        if name == "create":
            self.kinds[p] = fields["kind"]
        elif name == "become":
            if self.end(p) != self.end(fields["into"]):
                self.into[self.end(p)] = self.end(fields["into"])
        elif name in ("resolve", "fail"):
            self.ended.add(self.end(p))
        elif name in ("pending", "still_awaits"):
            wrong = {self.end(p), self.end(fields.get("input", p))} & self.ended
            if wrong or self.kinds.get(p) != fields.get("kind", self.kinds[p]):
                sys.exit(f"the state dump is wrong: {name} {fields}, kind {self.kinds[p]}, ended: {wrong}")


def play(command, script):
    """Runs play on a script; yields (program, events), with ids counted from 1 in each program."""
    with tempfile.TemporaryDirectory() as directory:
        path, trace = os.path.join(directory, "script"), os.path.join(directory, "trace")
        with open(path, "w") as f:
            f.write(script)
        result = subprocess.run([command, path, trace], capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"play ended with {result.returncode}:\n{result.stderr}")
        text = subprocess.run(["babeltrace2", trace], capture_output=True, text=True, check=True).stdout
    programs, inside, told = [], False, Told()
    for line in text.splitlines():
        match = EVENT.search(line)
        name = match.group(1)
        fields = {f[0]: f[1] or f[2] or f[3] for f in FIELD.findall(match.group(2) or "")}
        told.apply_event(name, fields)
        if name == "note":
            note = fields.get("text", "")
            if note.startswith("program "):
                programs.append((note[8:], []))
                inside, ids = True, {"-1": "-1"}
            if inside:
                programs[-1][1].append("- " + note)
            inside = inside and note != "end"
        elif name in ("pending", "still_awaits") or (name == "should_resolve" and told.again):
            pass  # repeated by the state dump
        elif inside and name in ORDER:
            if name == "create":
                ids[fields["promise"]] = str(len(ids))
            words = [ids.get(fields[f], "?" + fields[f]) if f in IDS else fields[f] for f in ORDER[name]]
            programs[-1][1].append(" ".join([name] + words))
        elif inside and name not in ("site", "string", "detail"):
            sys.exit("an event that nobody expects: " + line)
    return programs


def compare(command, script, expected=None):
    """Returns the number of compared programs; exits at the first difference."""
    texts = re.split(r"(?m)^(?=program )", script)[1:]
    modelled, played = model.run_script(script), play(command, script)
    if len(texts) != len(played):
        sys.exit(f"{len(texts)} programs, {len(played)} in the trace")
    for text, (name, want), (_, got) in zip(texts, modelled, played):
        for who, other in (("the trace", got), ("the table", expected.get(name) if expected else want)):
            if other != want:
                at = next((i for i, (a, b) in enumerate(zip(want, other)) if a != b), min(len(want), len(other)))
                show = lambda l: "\n".join(("=> " if i == at else "   ") + e for i, e in enumerate(l))
                sys.exit(f"{text}\nthe model says:\n{show(want)}\n{who} says:\n{show(other)}")
    return len(texts)


def table(path):
    """Returns the script of a table, and its expected events."""
    with open(path) as f:
        lines = f.read().splitlines()
    script, expected, name = [], {}, None
    for line in lines:
        if line.startswith("program "):
            name = line[8:]
            expected[name] = ["- program " + name]
        if line.startswith("> "):
            expected[name] += line[2:].split(" | ")
        else:
            script.append(line)
    for events in expected.values():
        events.append("- end")
    return "\n".join(script) + "\n", expected


# For each command, the table must have a program COMMAND-STATE for each of these states.
INPUT = ("bind map catch try_bind finalize on_success on_failure on_termination on_any dont_wait ignore_result async on_cancel "
         "protected no_cancel choose pick nchoose npick join all both").split()
ENDS = ("pending-then-resolved", "pending-then-failed", "pending-then-cancelled", "resolved", "failed", "cancelled")
STATES = {
    **{c: ENDS for c in INPUT},
    **{c: ("pending", "resolved", "failed", "cancelled") for c in ("poll", "cancel")},
    "should_resolve": ("resolved", "failed", "cancelled"),
    **{c: ("pending", "cancelled") for c in ("wakeup_error", "wakeup_later", "wakeup_later_error", "resolver_drop")},
    "resolver_on_cancel": ("pending-then-resolved", "pending-then-cancelled", "cancelled", "dropped"),
    **{c: ("pending-then-cancelled",) for c in ("pause", "condition_wait", "take", "push", "next", "lock", "acquire")},
    "with_lock": ("resolved", "failed", "pending-then-failed", "pending-then-cancelled", "waiting-then-cancelled"),
    "turn_off": ("resolved", "failed", "pending-then-cancelled"),
    "use": ("resolved", "failed", "pending-then-failed", "pending-then-cancelled"),
}


def check_whole(path):
    """Checks that every public function is a command of play.c, and that every command is in the table in every state of its inputs."""
    here = os.path.dirname(os.path.abspath(path))
    with open(os.path.join(here, "../../include/weft/promise.h")) as f:
        header = f.read().split("What the macros call")[0]
    with open(os.path.join(here, "play.c")) as f:
        player = f.read()
    with open(path) as f:
        programs = {p.split("\n", 1)[0]: p for p in re.split(r"(?m)^program ", f.read())[1:]}
    called = set(re.findall(r"\bweft_\w+(?=\()", player))
    missing = [f for f in re.findall(r"\bweft_[a-z]\w*(?=\()", header) if f not in called and not f.endswith("_fn")]
    used = {line.split()[0] for p in programs.values() for line in p.splitlines() if line.strip()}
    missing += [c for c in re.findall(r'is\(l, "(\w+)"\)', player) if c not in used]
    for command, states in STATES.items():
        missing += [f"{command}-{s}" for s in states if not re.search(rf"(?m)^{command} ", programs.get(f"{command}-{s}", ""))]
    if missing:
        sys.exit("not in the table: " + " ".join(missing))


class Generator:
    """A random program.  Each command names only promises of earlier commands, so that no promise waits for itself."""

    functions = 0  # numbers of functions differ over all programs, because play.c finds functions by name

    def __init__(self, rng, size):
        self.rng, self.lines, self.promises, self.resolvers = rng, [], 0, []
        self.known = []
        self.places = {}
        self.pools = 0
        self.budget = size

    def new(self):
        self.promises += 1
        return self.promises

    def one(self):
        """Returns the number of a promise, rarely one that does not exist."""
        return self.rng.choice(self.known) if self.known and self.rng.random() < 0.98 else 511

    def several(self):
        return " ".join(str(self.one()) for _ in range(self.rng.choice((0, 1, 2, 2, 2, 3, 3, 5))))

    def add(self, depth, text):
        self.lines.append(text)

    def function(self, depth):
        Generator.functions += 1
        name = f"F{Generator.functions}"
        self.add(depth, f"fn {name}")
        for _ in range(self.rng.choice((0, 0, 1, 1, 2, 3)) if depth < 9 else 0):
            self.command(depth + 1)
        self.add(depth, f"end {self.one()}")
        return name

    def known_place(self, kind):
        return self.rng.choice(self.places[kind]) if self.places.get(kind) else None

    def command(self, depth):
        if self.budget <= 0:
            return
        self.budget -= 1
        rng, deep = self.rng, depth < 4
        roll = rng.random()
        if roll < 0.2 or not self.known:
            p = self.new()
            kind = rng.choice(("wait", "task", "task", "task", "named_task", "of_kind", "return", "fail", "pause", "unit"))
            if kind in ("return", "fail"):
                self.add(depth, f"{kind} {p} {rng.choice((1, 2, 3, 99)) if kind == 'fail' else rng.randrange(100)}")
            else:
                self.add(depth, f"{kind} {p}" + (" L" if kind in ("named_task", "of_kind") else ""))
            if kind in ("wait", "task", "named_task", "of_kind"):
                self.resolvers.append(p)
            self.known.append(p)
        elif roll < 0.45 and deep:
            kind = rng.choice(("bind", "bind", "bind", "map", "catch", "try_bind", "finalize"))
            a, f = self.one(), self.function(depth)
            g = " " + self.function(depth) if kind == "try_bind" else " 7" if kind == "map" else ""
            p = self.new()
            self.add(depth, f"{kind} {p} {a} {f}{g}")
            self.known.append(p)
        elif roll < 0.52 and deep:
            kind = rng.choice(("on_success", "on_failure", "on_termination", "on_any", "dont_wait", "on_cancel", "on_cancel"))
            a, f = self.one(), self.function(depth)
            self.add(depth, f"{kind} {a} {f}" + (" " + self.function(depth) if kind == "on_any" else ""))
        elif roll < 0.55:
            if deep and rng.random() < 0.6:
                self.add(depth, f"async {self.function(depth)}")
            else:
                self.add(depth, f"ignore_result {self.one()}")
        elif roll < 0.59:
            p, a = self.new(), self.one()
            self.add(depth, f"{rng.choice(('protected', 'no_cancel'))} {p} {a}")
            self.known.append(p)
        elif roll < 0.68:
            p, l = self.new(), self.several()
            self.add(depth, f"{rng.choice(('choose', 'pick', 'nchoose', 'npick', 'join', 'all'))} {p} {l}")
            self.known.append(p)
        elif roll < 0.82:
            if self.resolvers:
                r = rng.choice(self.resolvers)
                kind = rng.choice(("wakeup", "wakeup", "wakeup_later", "wakeup_error", "wakeup_later_error"))
                self.add(depth, f"{kind} {r} {rng.choice((1, 2, 99)) if 'error' in kind else rng.randrange(100)}")
        elif roll < 0.87:
            self.add(depth, f"cancel {self.one()}")
        elif roll < 0.90:
            r = rng.choice(self.resolvers) if self.resolvers else 510
            self.add(depth, rng.choice(("wakeup_paused", "label X", "increase 2", "set_counter 3", f"poll {self.one()}",
                                        f"should_resolve {self.one()}", f"resolver_drop {r}", f"resolver_on_cancel {r}")))
        else:
            self.place_command(depth, deep)

    def place_command(self, depth, deep):
        rng = self.rng
        kind = rng.choice(("condition", "mvar", "mutex", "semaphore", "bounded", "switch", "pool"))
        n = self.known_place(kind)
        if n is None or rng.random() < 0.1:
            if depth > 0:
                return
            n = len(self.places.get(kind, []))
            self.places.setdefault(kind, []).append(n)
            extra = {"condition": rng.choice(("", " C")), "mvar": rng.choice(("", " M")), "semaphore": f" {rng.randrange(3)}",
                     "bounded": f" {rng.randrange(1, 3)}"}.get(kind, "")
            if kind == "pool":
                extra = f" {rng.randrange(1, 3)} {self.function(9)}"  # the function is empty, because it runs several times
            self.add(depth, f"{kind} {n}{extra}")
            return
        p = self.new()
        if kind == "condition":
            m = self.known_place("mutex")
            what = rng.choice((f"condition_wait {p} {n}", f"condition_wait {p} {n}" + (f" {m}" if m is not None else ""),
                               f"signal {n} 4", f"broadcast {n} 5", f"broadcast_error {n} 6"))
        elif kind == "mvar":
            what = rng.choice((f"put {p} {n} 8", f"take {p} {n}"))
        elif kind == "mutex":
            what = rng.choice((f"lock {p} {n}", f"unlock {n}") + ((f"with_lock {p} {n} {self.function(depth)}",) if deep else ()))
        elif kind == "semaphore":
            what = rng.choice((f"acquire {p} {n}", f"release {n}"))
        elif kind == "bounded":
            what = rng.choice((f"push {p} {n} 8", f"push {p} {n} 9", f"next {p} {n}", f"next {p} {n}", f"close {n}"))
        elif kind == "switch":
            what = f"turn_off {p} {n}" if not deep or rng.random() < 0.3 else f"add_hook {n} {self.function(depth)}"
        else:
            what = f"use {p} {n} {self.function(depth)}" if deep else f"poll {self.one()}"
        self.add(depth, what)
        if f" {p} " in what + " " and what.split()[1] == str(p) and what.split()[0] not in (
                "signal", "broadcast", "broadcast_error", "unlock", "release", "close", "add_hook", "poll"):
            self.known.append(p)

    def program(self, name):
        while self.budget > 0:
            self.command(0)
        for p in self.known:
            self.add(0, f"state {p}")
        return f"program {name}\n" + "\n".join(self.lines) + "\n"


def random_script(count, seed):
    rng = random.Random(seed)
    return "".join(Generator(rng, rng.choice((4, 8, 16, 30, 60))).program(f"{seed}-{i}") for i in range(count))


def main():
    command, mode = sys.argv[1:3]
    if mode == "table":
        check_whole(sys.argv[3])
        script, expected = table(sys.argv[3])
        print(compare(command, script, expected), "programs as the table says")
    elif mode == "random":
        count, seed = int(sys.argv[3]), int(sys.argv[4])
        print(compare(command, random_script(count, seed)), "random programs as the model says")
    elif mode == "memory":
        with tempfile.TemporaryDirectory() as directory:
            scripts = {"table": table(sys.argv[3])[0], "random": random_script(30, 1), "few": random_script(3, 2)}
            for name, script in scripts.items():
                with open(os.path.join(directory, name), "w") as f:
                    f.write(script)
            valgrind = "valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect,possible".split()
            for arguments in (["table", "trace"], ["random", "trace"], ["--no-memory", "few"]):
                if subprocess.run([*valgrind, os.path.abspath(command), *arguments], cwd=directory).returncode:
                    sys.exit("valgrind has something to say")
    elif mode == "no-memory":
        script = random_script(int(sys.argv[3]), int(sys.argv[4])) if len(sys.argv) > 4 else table(sys.argv[3])[0]
        with tempfile.NamedTemporaryFile("w") as f:
            f.write(script)
            f.flush()
            sys.exit(subprocess.run([command, "--no-memory", f.name]).returncode)


main()
