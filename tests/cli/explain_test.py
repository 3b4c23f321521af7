#!/usr/bin/env python3
"""weft explain on the example arp: it reports the lost wake-up in the bad run, and nothing in the good run.

usage: explain_test.py WEFT ARP NIGHT; ARP was linked with timeless.c
SPDX-License-Identifier: ISC
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

weft, arp, night = sys.argv[1:4]


def run(*command, status, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **more)
    assert done.returncode == status, f"{command}: exit status {done.returncode}, not {status}\n{done.stdout}{done.stderr}"
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    traces = {}
    for how, status in ("good", 0), ("bad", 1):
        traces[how] = os.path.join(folder, how)
        run(arp, how, status=status, env=dict(os.environ, TIMELESS_TRACE=traces[how]))

    # Without a finding, weft explain prints what it has checked; with --json, it prints nothing.
    said = run(weft, "explain", traces["good"], status=0)
    assert said.startswith("nothing found: ") and "\n  work        " in said and ", slowest " in said, said
    assert "no event loop that weft knows" not in said, said
    assert run(weft, "explain", "--json", traces["good"], status=0) == ""
    assert " findings=0 " in run(weft, "check", traces["good"], "findings=0", status=0)
    assert run(weft, "explain", "--json", traces["good"], status=0) == ""

    events = run(weft, "events", traces["bad"], status=0).splitlines()
    condition = next(re.search(r"-> (\d+) condition", e).group(1) for e in events if e.endswith("condition"))
    signals = [e.split()[0] for e in events if re.search(rf"signal .*-> {condition}$", e)]
    assert len(signals) == 2, signals
    created = next(e.split()[0] for e in events if re.search(rf"create +{condition} -> ", e))
    main = next(e.split()[2] for e in events if "should_resolve" in e)

    findings = [json.loads(line) for line in run(weft, "explain", "--json", traces["bad"], status=1).splitlines()]
    assert len(findings) == 1, findings
    first = findings[0]
    assert (first["finding"], first["verdict"], first["sure"]) == ("hang", "lost-wakeup", True), first
    assert first["promise"] == int(main), first
    assert re.fullmatch(rf"#t=[0-9.]+[mu]s\.\.[0-9.]+[mu]s&sel={first['root']}", first["link"]), first
    chain = [line for line in first["evidence"] if line["role"] == "chain"]
    assert chain[0]["promise"] == int(main) and chain[-1]["promise"] == first["root"], chain
    assert '"ARP response"' in chain[-1]["text"], chain

    text = run(weft, "explain", traces["bad"], status=1)
    title = text.splitlines()[0]
    assert "was signalled" in title and '"ARP response"' in title and "lost wake-up" in text, text
    assert f"    {signals[0]}  " in text and f"    {created}  " in text, (signals, created, text)

    # weft explain --promise gives the same cause for a waiter in the middle of the chain; for an ended promise, it says how this promise ended.
    middle = str(chain[1]["promise"])
    answer = json.loads(run(weft, "explain", "--json", "--promise", middle, traces["bad"], status=0))
    assert (answer["finding"], answer["verdict"], answer["root"]) == ("answer", "lost-wakeup", first["root"]), answer
    port = next(re.search(r"label +(\d+)", e).group(1) for e in events if '"port-4"' in e)
    assert "resolved by a callback from outside" in run(weft, "explain", "-p", port, traces["bad"], status=0)
    # An unread result of an independent promise is reported only if it is an error.
    own = os.path.join(folder, "own.sexp")
    for end, says in ("1", "task 1 was resolved by itself"), ("1(Not_found)", "task 1 was failed by itself: Not_found"):
        with open(own, "w", encoding="ascii") as file:
            file.write('((time 1.0)(op(Creates -1 1 task)))((time 1.1)(op(Switch 1)))'
                       f'((time 1.2)(op(Resolves 1 {end})))((time 1.3)(op(Switch -1)))')
        said = run(weft, "explain", "-p", "1", own, status=0)
        assert says in said and ("no code read its error" in said) == ("Not_found" in end), said
    run(weft, "explain", "-p", "99999", traces["bad"], status=2)
    run(weft, "explain", "-p", "12x", traces["bad"], status=2)

    # The chain of weft waits equals that of weft explain; --at shows the waits of an earlier time.
    ids = [line["promise"] for line in chain]
    waits = [json.loads(line) for line in run(weft, "waits", "--json", traces["bad"], status=0).splitlines()]
    pairs = {(wait["promise"], wait["awaits"]) for wait in waits}
    assert all(pair in pairs for pair in zip(ids, ids[1:])), (ids, pairs)
    assert not any(wait["cycle"] for wait in waits)
    tree = run(weft, "waits", traces["bad"], status=0)
    assert "      └─ task" in tree and '"ARP response"' in tree, tree
    early = run(weft, "waits", "--at", signals[0] + "s", traces["bad"], status=0)
    assert '"ARP response"' not in early and '"ring.write"' in early, early
    dot = run(weft, "waits", "--dot", traces["bad"], status=0)
    assert dot.startswith("digraph") and dot.count("->") == len(waits), dot

    # The critical path covers the time of a promise without a gap, and the times of its blame add up to the same time.
    dump = [json.loads(line) for line in run(weft, "dump", "--json", "--no-simplify", traces["good"], status=0).splitlines()]
    ended = [p for p in dump if p.get("end") == "resolved"]
    for p in ended:
        steps = run(weft, "path", "--json", "-p", str(p["promise"]), traces["good"], status=0).splitlines()
        steps = [json.loads(step) for step in steps]
        assert steps[0]["start_ns"] == p["start_ns"] and steps[-1]["end_ns"] == p["end_ns"], (p, steps)
        assert all(a["end_ns"] == b["start_ns"] for a, b in zip(steps, steps[1:])), steps
    blame = run(weft, "stats", "--json", "--blame=TCP connect", traces["good"], status=0).splitlines()
    connect = next(p for p in ended if p["labels"][0][1] == "TCP connect")
    assert sum(json.loads(line)["sum_ns"] for line in blame) == connect["end_ns"] - connect["start_ns"]
    assert "waiting for" in run(weft, "stats", "--blame=TCP connect", traces["good"], status=0)
    run(weft, "stats", "--blame=nothing", traces["good"], status=2)
    run(weft, "path", traces["good"], status=2)
    run(weft, "path", "-p", main, traces["bad"], status=2)

    # The two runs differ first where, in the bad run, the ARP response comes before the report of the network card.
    assert run(weft, "diff", traces["good"], traces["good"], status=0) == ""
    parts = [json.loads(line) for line in run(weft, "diff", "--json", traces["good"], traces["bad"], status=1).splitlines()]
    assert parts[0]["difference"] == "finding" and "only the second run has a hang" in parts[0]["text"], parts
    assert parts[1]["difference"] == "order" and parts[1]["second_ns"] == round(float(signals[0]) * 1e9), parts
    assert 'signals condition' in parts[1]["text"] and '"ARP response"' in parts[1]["text"], parts
    ends = [part for part in parts if part["difference"] == "end"]
    assert ends[0]["second"] == int(main) and "never resolves, although it should" in ends[0]["text"], ends
    assert any(part["second"] == first["root"] for part in ends), ends
    counters = [part["text"] for part in parts if part["difference"] == "counter"]
    assert counters == ['counter "tcp-to-ip" has the last value 0 in the first run, 1 in the second'], counters

    # weft check prints a line with the measured value for each rule; one broken rule makes the exit status 1.
    junit = os.path.join(folder, "junit.xml")
    good_rules = ["pending=0", "stall<10s", "p99(ring.write)<10s", "counter(tcp-to-ip)=0", "findings=0", "lost=0", "failed<=0"]
    lines = run(weft, "check", traces["good"], *good_rules, status=0).splitlines()
    assert [line.split()[:2] for line in lines] == [["ok", rule] for rule in good_rules], lines
    bad_rules = ["pending=0", "counter(tcp-to-ip)=0", "count(port-4)>=1", "p50(<&>)<1s", "findings(hang)!=1"]
    lines = run(weft, "check", f"--junit={junit}", traces["bad"], *bad_rules, status=1).splitlines()
    assert [line.split()[0] for line in lines] == ["broken", "broken", "ok", "unknown", "broken"], lines
    suite = xml.etree.ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("5", "4"), suite.attrib
    assert [case.get("name") for case in suite] == bad_rules
    assert [case.find("failure") is not None for case in suite] == [True, True, False, True, True]
    values = [json.loads(line) for line in run(weft, "check", "--json", traces["bad"], *bad_rules, status=1).splitlines()]
    assert [value.get("value", value.get("value_ns")) for value in values][:3] == [1, 1, 3], values
    for wrong in "pending", "pending=x", "stall<3", "p99<1s", "nothing=0", "p99(=1s", "stall(x)<1s", "lost=99999999999999999999":
        run(weft, "check", traces["good"], wrong, status=2)
    run(weft, "check", traces["good"], status=2)
    for wrong in "stall<3ms/", "stall<3ms/5", "stall<3ms/99ms", "stall<3ms/0m", "count<1%", "failed<.5%", "failed<1%%", "lost=0/1s", "findings(nothing)=0":
        run(weft, "check", traces["good"], wrong, status=2)

    # Rules over windows of time, for a program with known times.  The program blocks at 10 s, twice at 15 s, and at 20 s.
    happened, number = [], 1

    def happens(time, operation):
        happened.append((round(time * 1000), operation))

    for start, end in (10, 10.3), (15, 15.2), (15.5, 15.7), (20, 20.2):
        happens(start, f"Creates -1 {number} task")
        happens(start, f"Switch {number}")
        happens(end, f"Resolves -1 {number}")
        happens(end, "Switch -1")
        number += 1
    # It gets 200 responses, three of them errors.  A queue is long for 50 ms.
    for batch in 30, 40:
        for turn in range(100):
            happens(batch + turn / 100, f"Creates -1 {number} task")
            happens(batch + turn / 100, f"Label {number} get")
            happens(batch + turn / 100 + 0.005, f"Resolves -1 {number}" + ("(refused)" if batch == 30 and 50 <= turn < 53 else ""))
            number += 1
    happens(33, "Increases -1 queue 5")
    happens(33.05, "Increases -1 queue -5")
    happens(44, "Switch -1")
    windows = os.path.join(folder, "windows.sexp")
    with open(windows, "w", encoding="ascii") as file:
        file.writelines(f"((time {time / 1000})(op({operation})))\n" for time, operation in sorted(happened, key=lambda one: one[0]))
    broken = {
        "stall<100ms/1s": 3, "stall<100ms/10s": 1, "stall<100ms/3s": 3, "stall<=300ms/1m": 0, "count(get)<=100/1s": 0, "count(get)<100/1s": 2,
        "count(get)>=1/5s": 2, "failed(get)<=6%/1s": 0, "failed(get)<6%/1s": 1, "failed(get)<4/1s": 0, "failed(get)<3/1s": 1, "pending(get)<2/1s": 0,
        "pending(get)<1/1s": 2, "max(get)<5ms/1s": 2, "p50(get)<=5ms/1s": 0, "p99(get)<5ms/1s": 2, "counter(queue)<5/1s": 1, "counter(queue)<=5/1s": 0,
        "counter(queue)>=0/1s": 0,
    }

    def told(*words):
        done = subprocess.run([weft, *words], capture_output=True, text=True, timeout=120)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def count_broken(*words):
        return {line["rule"]: line["times_broken"] for line in told("check", "--json", windows, *words)}

    got = count_broken(*broken)
    assert got == broken, {rule: (got[rule], broken[rule]) for rule in broken if got[rule] != broken[rule]}
    late = count_broken("--after=2s", "stall<100ms/1s", "stall<100ms", "count(get)>=1/5s"), count_broken("--after=25s", *broken)
    assert late[0] == {"stall<100ms/1s": 2, "stall<100ms": 1, "count(get)>=1/5s": 2}, late
    assert late[1]["stall<100ms/1s"] == 0 and late[1]["count(get)>=1/5s"] == 1 and late[1]["failed(get)<3/1s"] == 0, late
    assert count_broken("--after=200ms", "stall<101ms/1s") == {"stall<101ms/1s": 2}
    told_whole = told("check", "--json", windows, "failed(get)<2%", "failed(get)<1.5%", "failed(get)<=6%/1s", "stall<100ms/1s")
    assert [(line["outcome"], line.get("value_percent", line.get("value_ns"))) for line in told_whole] == \
        [("ok", 1.5), ("broken", 1.5), ("ok", 6.0), ("broken", 300000000)], told_whole
    # weft watch prints the same outcomes for the same rules in a file.
    rules = os.path.join(folder, "rules")
    with open(rules, "w", encoding="ascii") as file:
        file.writelines("# A comment: stall<1ns\n\n" + "".join(f" {rule} \n" for rule in broken))
    native = os.path.join(folder, "windows.weft")
    run(weft, "convert", windows, "-o", native, "--to=native", status=0)
    for after in [], ["--after=2s"], ["--after=25s"]:
        watched = [line["why"].split(" is broken: ")[0] for line in told("watch", "--json", native, f"--rules={rules}", *after)]
        wanted = count_broken(f"--rules={rules}", *after)
        assert {rule: watched.count(rule) for rule in broken} == wanted, (after, watched, wanted)
    with open(rules, "a", encoding="ascii") as file:
        file.write("stall<\n")
    for verb in "check", "watch":
        done = subprocess.run([weft, verb, windows, f"--rules={rules}"], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (2, f"weft {verb}: {rules}:{len(broken) + 3}: stall<: the rule must end with a time, such as 10ms\n"), done
    # A rule can count certain findings or uncertain ones.
    lines = run(weft, "check", traces["bad"], "findings=0", "findings(uncertain)=0", "findings(hang)=0/1s", "findings(uncertain hang)=0", status=1).splitlines()
    assert [line.split()[0] for line in lines] == ["broken", "ok", "broken", "ok"], lines

    # weft render --explain marks the first finding; if there is none, the picture is the same as without --explain.
    for how, marked in ("bad", True), ("good", False):
        pictures = []
        for option in [], ["--explain"]:
            out = os.path.join(folder, "picture.svg")
            done = subprocess.run([weft, "render", *option, traces[how], "-o", out], capture_output=True, text=True, timeout=120)
            assert done.returncode == 0 and ("was signalled" in done.stderr) == (marked and bool(option)), done
            pictures.append(open(out, encoding="utf-8").read())
        assert (pictures[0] != pictures[1]) == marked
        if marked:  # the three promises of the chain, the condition, and the promise that signals too early
            yellow = re.findall(r'<path [^>]*fill="#ffdd33"[^>]*>', pictures[1])
            assert sum(path.count("M") for path in yellow) >= 5, yellow
    run(weft, "render", "--explain", "--find=x", traces["bad"], "-o", out, status=2)

    # weft explain --promise for each of several promises that wait for ever.
    trace = os.path.join(folder, "night")
    run(night, "2", status=0, stdin=subprocess.DEVNULL, env=dict(os.environ, WEFT_TRACE=trace))
    waits = [json.loads(line)["promise"] for line in run(weft, "waits", "--json", trace, status=0).splitlines()]
    assert len(waits) == 4, waits
    for promise in waits:
        said = run(weft, "explain", f"--promise={promise}", trace, status=0)
        assert "nothing tried to resolve" in said, said
