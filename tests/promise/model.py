"""A model of weft's promises, with which the library is compared: it runs the programs that play.c runs, and yields the events
   that their traces must have.

The model is simpler than the library: a promise is an object with a list of functions, and each wakeup calls them at once, so the
model recurses where the library must not.  SPDX-License-Identifier: ISC
"""

PENDING, RESOLVED, FAILED = "pending", "resolved", "failed"
CANCELLED = (-20001, "cancelled")
CLOSED = (-20004, "closed")
SYSTEM = -1


class End:
    """The end of a promise; promises with the same End object ended by the same cause."""

    def __init__(self, value=None, error=None):
        self.value, self.error = value, error

    def again(self):
        return End(self.value, self.error)


class Promise:
    def __init__(self, id, end=None):
        self.id = id
        self.end = end
        self.into = None  # the promise with which this promise is merged
        self.waiters = []  # [function of an End], last registered first; None in place of a removed function
        self.handlers = []  # [function], in the order of registration
        self.on_cancel = None  # a cancel ends nothing (None), this promise ("me"), or a list of promises

    def same(self, world):
        if self.into is None:
            return self
        end = self.into.same(world)
        if end is not self.into:
            self.into = end
            if end.id != self.id:
                world.event("become", self.id, end.id)
        return end


class Waiter:
    def __init__(self, f):
        self.f = f


class World:
    """The global state of Lwt: the running promise, delayed wakeups, and the trace."""

    def __init__(self):
        self.events = []
        self.random = 0x9E3779B97F4A7C15
        self.current = self.running = SYSTEM
        self.waking = False
        self.later = []
        self.reset()

    def reset(self):
        self.next_id = 0
        self.paused = []
        self.current = self.running = SYSTEM

    # The trace.
    def event(self, *words):
        self.events.append(" ".join(str(w) for w in words))

    def note(self, text):
        self.event("-", text)

    def created(self, kind):
        self.next_id += 1
        self.event("create", self.running, self.next_id, kind)
        return self.next_id

    def switch(self):
        if self.running != self.current:
            self.running = self.current
            self.event("run", self.current)

    def switch_to(self, id):
        self.current = id
        self.switch()

    def read(self, id):
        self.running = self.current
        if id != self.current:
            self.event("read", self.current, id)

    def ended(self, id, end):
        if end.error:
            self.event("fail", self.running, id, end.error[1])
        else:
            self.event("resolve", self.running, id)

    # Ends and wakeups.
    def run(self, handlers, waiters, end):
        if end.error and end.error[0] == CANCELLED[0]:
            for h in handlers:
                h()
        for w in waiters:
            if w.f:
                w.f(end)

    def settle(self, p, end):
        """Ends the pending promise p; returns the callbacks to run."""
        self.ended(p.id, end)
        p.end = end
        return p.handlers, p.waiters, end

    def pass_on(self, p, end):
        self.run(*self.settle(p.same(self), end))

    def within_wakeup(self, f):
        outermost, current = not self.waking, self.current
        self.waking = True
        f()
        if outermost:
            while self.later:
                self.run(*self.later.pop(0))
            self.waking = False
        self.switch_to(current)

    def wakeup(self, p, end, later=False):
        p = p.same(self)
        if p.end:
            return
        todo = self.settle(p, end)
        if later and self.waking:
            self.later.append(todo)
        else:
            self.within_wakeup(lambda: self.run(*todo))

    def connect(self, p, q):
        p, q = p.same(self), q.same(self)
        if q.end:
            self.pass_on(p, q.end)
        elif p is not q:
            if p.id != q.id:
                self.event("become", p.id, q.id)
            p.on_cancel = q.on_cancel
            p.waiters += q.waiters
            p.handlers += q.handlers
            q.into = p

    def cancel(self, p):
        end = End(error=CANCELLED)
        found, seen = [], set()

        def collect(p):
            p = p.same(self)
            if p.end or p in seen:
                return
            seen.add(p)
            if p.on_cancel == "me":
                found.insert(0, self.settle(p, end))
            elif p.on_cancel:
                for q in p.on_cancel:
                    collect(q)

        collect(p)

        def wake():
            for todo in found:
                self.run(*todo)

        self.within_wakeup(wake)

    def add_handler(self, p, f):
        who = self.current

        def handler():
            self.switch_to(who)
            f()

        p.same(self).handlers.insert(0, handler)

    # Making promises.
    def value(self, v):
        return Promise(self.current, End(value=v))

    def error(self, e):
        return Promise(self.current, End(error=e))

    def unit(self):
        return UNIT

    def pending(self, kind, on_cancel=None):
        p = Promise(self.created(kind))
        p.on_cancel = on_cancel
        return p

    def queued(self, queue, kind="task"):
        p = self.pending(kind, "me")
        queue.append(p)

        def leave():
            if p in queue:
                queue.remove(p)

        p.handlers.append(leave)
        p.leave = leave
        return p

    def take(self, queue):
        while queue:
            p = queue.pop(0)
            if not p.same(self).end:
                return p
        return None

    # Sequence.
    def look(self, p):
        p = p.same(self)
        if p.end:
            self.read(p.id)
        return p

    def after(self, kind, p, now, then):
        """Returns now(end) if p has ended; otherwise calls then(result, end) at its end."""
        p = self.look(p)
        if p.end:
            return now(p)
        result = self.pending(kind, [p])
        self.event("await", result.id, p.id)
        source = p.id

        def fire(end):
            self.current = result.same(self).id
            self.read(source)
            then(result, end)

        p.waiters.insert(0, Waiter(fire))
        return result

    def try_bind(self, p, f, g, kind="try"):
        """Calls f with the value or g with the error of p; if this function is None, the result ends as p."""

        def now(p):
            h = g if p.end.error else f
            if h:
                return h(p.end.error or p.end.value)
            return p if kind == "try" else Promise(self.current, p.end)

        def then(result, end):
            h = g if end.error else f
            if h:
                self.connect(result, h(end.error or end.value))
            else:
                self.pass_on(result, end)

        return self.after(kind, p, now, then)

    def bind(self, p, f):
        return self.try_bind(p, f, None, "bind")

    def catch(self, p, g):
        return self.try_bind(p, None, g)

    def map(self, p, f):
        def now(p):
            return Promise(self.current, p.end if p.end.error else End(value=f(p.end.value)))

        def then(result, end):
            self.pass_on(result, end if end.error else End(value=f(end.value)))

        return self.after("map", p, now, then)

    def finalize(self, p, f):
        return self.try_bind(
            p,
            lambda v: self.bind(f(), lambda _: self.value(v)),
            lambda e: self.bind(f(), lambda _: self.error(e)),
        )

    def ending_with(self, p, f):
        """Returns a promise that ends as the promise f(end of p)."""
        return self.after("bind", p, lambda p: f(p.end), lambda result, end: self.connect(result, f(end)))

    # Callbacks.
    def on(self, kind, p, call, look=True):
        p = p.same(self)
        if look:
            self.look(p)
        if p.end:
            call(p.end)
            return
        id = self.created(kind)

        def fire(end):
            self.switch_to(id)
            self.read(p.same(self).id)
            call(end)
            self.ended(id, End())

        p.waiters.insert(0, Waiter(fire))

    def run_async(self, f, hook):
        id = self.created("async")
        before = self.current
        self.switch_to(id)
        p = f().same(self)

        def finish(end):
            self.ended(id, end)
            if end.error:
                hook(end.error)

        def fire(end):
            self.switch_to(id)
            self.read(source)
            finish(end)

        source = p.id
        if p.end:
            finish(p.end)
        else:
            p.waiters.insert(0, Waiter(fire))
        self.switch_to(before)

    def no_cancel(self, p):
        t = p.same(self)
        if t.end:
            return p
        result = self.pending("wait")
        self.event("await", result.id, t.id)
        t.waiters.insert(0, Waiter(lambda end: self.pass_on(result, end)))
        return result

    def protected(self, p):
        t = p.same(self)
        if t.end:
            return p
        result = self.pending("task", "me")
        self.event("await", result.id, t.id)

        def fire(end):
            if not result.same(self).end:
                self.pass_on(result, end)

        waiter = Waiter(fire)
        t.waiters.insert(0, waiter)

        def forget():
            waiter.f = None

        self.add_handler(result, forget)
        return result

    # Several.
    def random_below(self, limit):
        x = self.random
        x ^= x << 13 & 0xFFFFFFFFFFFFFFFF
        x ^= x >> 7
        x ^= x << 17 & 0xFFFFFFFFFFFFFFFF
        self.random = x
        return x % limit

    def awaiting(self, kind, list):
        result = self.pending(kind, list)
        for p in list:
            self.event("await", result.id, p.same(self).id)
        return result

    def first(self, kind, list, finish):
        """Calls finish(result, end) when the first has ended."""
        result = self.awaiting(kind, list)

        def fire(end):
            waiter.f = None
            before, self.current = self.current, result.same(self).id
            for p in list:
                if p.same(self).end is end:
                    self.read(p.same(self).id)
                    break
            chosen = finish(end)
            if kind == "pick":
                for p in list:
                    self.cancel(p)
            self.current = before
            self.pass_on(result, chosen())

        waiter = Waiter(fire)
        for p in list:
            p.same(self).waiters.insert(0, waiter)
        return result

    def choose(self, kind, list):
        ended = sum(1 for p in list if p.same(self).end)
        if not ended:
            return self.first(kind, list, lambda end: lambda: end)
        skip = 0 if ended == 1 else self.random_below(ended)
        for i, p in enumerate(list):
            if not p.same(self).end:
                if kind == "pick":
                    self.cancel(p)
            elif skip:
                skip -= 1
            else:
                if kind == "pick":
                    for q in list[i + 1 :]:
                        self.cancel(q)
                else:
                    self.read(p.same(self).id)
                return p

    def nchoose(self, kind, list):
        def gather(list):
            seen, values = [], []
            for p in list:
                p = p.same(self)
                if p.end:
                    seen.append(p.id)
                    if p.end.error:
                        return seen, p.end
                    values.append(p.end.value)
            return seen, End(value=values)

        if not any(p.same(self).end for p in list):

            def finish(end):
                seen, end = gather(list)

                def chosen():
                    for id in seen:
                        self.read(id)
                    return end

                return chosen

            return self.first(kind, list, finish)
        seen, end = gather(list)
        for id in seen:
            self.read(id)
        if kind == "pick":
            for p in list:
                self.cancel(p)
        return Promise(self.created(kind) if end.error else self.current, end)

    def join(self, list, values=False):
        result, missing, failed = None, 0, None

        def fire(p):
            def fire(end):
                nonlocal missing, failed
                before, self.current = self.current, result_id
                self.read(p.same(self).id)
                self.current = before
                if end.error and not failed:
                    failed = end
                missing -= 1
                if not missing:
                    self.pass_on(result, outcome())

            return fire

        def outcome():
            return failed or (End(value=[p.same(self).end.value for p in list]) if values else UNIT.end)

        for p in list:
            t = self.look(p)
            if t.end:
                if t.end.error and not failed:
                    failed = t.end
            else:
                if not result:
                    result = self.awaiting("join", list)
                    result_id = result.id
                self.event("await", result_id, t.id)
                missing += 1
                t.waiters.insert(0, Waiter(fire(p)))
        return result or Promise(self.current, outcome())

    # Pausing.
    def wakeup_paused(self):
        now, self.paused[:] = list(self.paused), []
        while True:
            p = self.take(now)
            if not p:
                return
            self.wakeup(p, End())

    # Conditions.
    def as_condition(self, c, f):
        before, self.current = self.current, c.id
        self.running = self.current
        self.event("signal", before, c.id)
        result = f()
        self.switch_to(before)
        return result


UNIT = Promise(SYSTEM, End())


class Place:
    """A condition, mutex or another object at which promises wait, with its fields."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


class Program:
    """A program of play.c's language."""

    def __init__(self, world, lines):
        self.w = world
        self.promise, self.resolver, self.place = {}, {}, {}
        self.counter = 0
        self.functions = {}
        self.main = self.parse(iter(lines), None)

    def parse(self, lines, name):
        body = []
        for words in lines:
            if words[0] == "fn":
                self.parse(lines, words[1])
            elif words[0] == "end":
                self.functions[name] = (body, words[1])
                return body
            else:
                body.append(words)
        return body

    @staticmethod
    def show(value):
        if value is None:
            return "unit"
        if isinstance(value, list):
            return "[" + " ".join(Program.show(v) for v in value) + "]"
        return str(value)

    def body(self, name):
        body, result = self.functions[name]
        self.run(body)
        return self.get(result)

    def on_value(self, name):
        def f(value):
            self.w.note(f"{name} gets {self.show(value)}")
            return self.body(name)

        return f

    def on_error(self, name):
        def f(error):
            self.w.note(f"{name} gets error {error[0]} {error[1]}")
            return self.body(name)

        return f

    def on_start(self, name):
        def f():
            self.w.note(f"{name} starts")
            return self.body(name)

        return f

    def hook(self, error):
        self.w.note(f"hook gets error {error[0]} {error[1]}")

    def get(self, name):
        return self.promise.get(name, UNIT)

    @staticmethod
    def code(word):
        return (CANCELLED[0] if word == "99" else int(word), "error")

    def run(self, body):
        for words in body:
            getattr(self, "do_" + words[0])(*words[1:])

    # Making.
    def do_wait(self, p, kind="wait", on_cancel=None):
        self.promise[p] = self.resolver[p] = self.w.pending(kind, on_cancel)

    def do_task(self, p):
        self.do_wait(p, "task", "me")

    def do_named_wait(self, p, label):
        self.do_wait(p)
        self.w.event("label", self.promise[p].id, label)

    def do_named_task(self, p, label):
        self.do_task(p)
        self.w.event("label", self.promise[p].id, label)

    def do_of_kind(self, p, label):
        self.do_wait(p, "timer", "me")
        self.w.event("label", self.promise[p].id, label)

    def do_resolver_drop(self, r):
        p = self.resolver.pop(r, None)
        if p:
            handlers = p.same(self.w).handlers
            handlers[:] = [h for h in handlers if getattr(h, "resolver", None) is not p]

    def do_resolver_on_cancel(self, r):
        p = self.resolver.get(r)
        if not p:
            return
        end = p.same(self.w).end
        if not end:
            self.w.add_handler(p, lambda: self.w.note("the resolver hears of it"))
            p.same(self.w).handlers[0].resolver = p
        elif end.error and end.error[0] == CANCELLED[0]:
            self.w.note("the resolver hears of it")

    def do_unit(self, p):
        self.promise[p] = UNIT

    def do_return(self, p, v):
        self.promise[p] = self.w.value(int(v))

    def do_fail(self, p, e):
        self.promise[p] = self.w.error(self.code(e))

    def do_pause(self, p):
        self.promise[p] = self.w.queued(self.w.paused)

    # Sequence.
    def do_bind(self, p, a, f):
        self.promise[p] = self.w.bind(self.get(a), self.on_value(f))

    def do_map(self, p, a, f, v):
        def g(value):
            self.on_value(f)(value)
            return int(v)

        self.promise[p] = self.w.map(self.get(a), g)

    def do_catch(self, p, a, f):
        self.promise[p] = self.w.catch(self.get(a), self.on_error(f))

    def do_try_bind(self, p, a, f, g):
        self.promise[p] = self.w.try_bind(self.get(a), self.on_value(f), self.on_error(g))

    def do_finalize(self, p, a, f):
        self.promise[p] = self.w.finalize(self.get(a), self.on_start(f))

    def on(self, kind, a, ok, error, look=True):
        def call(end):
            if end.error:
                if error:
                    error(end.error)
            elif ok:
                ok(end.value)

        self.w.on(kind, self.get(a), call, look)

    def do_on_success(self, a, f):
        self.on("on_success", a, self.on_value(f), None)

    def do_on_failure(self, a, f):
        self.on("on_failure", a, None, self.on_error(f))

    def do_on_termination(self, a, f):
        start = self.on_start(f)
        self.on("on_termination", a, lambda _: start(), lambda _: start())

    def do_on_any(self, a, f, g):
        self.on("on_any", a, self.on_value(f), self.on_error(g))

    def do_dont_wait(self, a, f):
        self.on("ignore_result", a, None, self.on_error(f), False)

    def do_ignore_result(self, a):
        self.on("ignore_result", a, None, self.hook, False)

    def do_async(self, f):
        self.w.run_async(self.on_start(f), self.hook)

    def do_on_cancel(self, a, f):
        p = self.get(a).same(self.w)
        if not p.end:
            self.w.add_handler(p, self.on_start(f))
        elif p.end.error and p.end.error[0] == CANCELLED[0]:
            self.on_start(f)()

    def do_protected(self, p, a):
        self.promise[p] = self.w.protected(self.get(a))

    def do_no_cancel(self, p, a):
        self.promise[p] = self.w.no_cancel(self.get(a))

    # Several.
    def do_choose(self, p, *list):
        self.promise[p] = self.w.choose("choose", [self.get(a) for a in list])

    def do_pick(self, p, *list):
        self.promise[p] = self.w.choose("pick", [self.get(a) for a in list])

    def do_nchoose(self, p, *list):
        self.promise[p] = self.w.nchoose("choose", [self.get(a) for a in list])

    def do_npick(self, p, *list):
        self.promise[p] = self.w.nchoose("pick", [self.get(a) for a in list])

    def do_join(self, p, *list):
        self.promise[p] = self.w.join([self.get(a) for a in list])

    def do_all(self, p, *list):
        self.promise[p] = self.w.join([self.get(a) for a in list], True)

    def do_both(self, p, a, b):
        self.do_all(p, a, b)

    # Acting.
    def wake(self, r, end, later):
        p = self.resolver.pop(r, None)
        if p:
            self.w.wakeup(p, end, later)

    def do_wakeup(self, r, v):
        self.wake(r, End(value=int(v)), False)

    def do_wakeup_error(self, r, e):
        self.wake(r, End(error=self.code(e)), False)

    def do_wakeup_later(self, r, v):
        self.wake(r, End(value=int(v)), True)

    def do_wakeup_later_error(self, r, e):
        self.wake(r, End(error=self.code(e)), True)

    def do_cancel(self, a):
        self.w.cancel(self.get_or_none(a))

    def get_or_none(self, a):
        """Returns the promise, or a failed one if memory ran out, for which play.c passes NULL."""
        return self.promise.get(a, NO_MEMORY)

    def do_wakeup_paused(self):
        self.w.wakeup_paused()

    def do_label(self, text):
        self.w.event("label", self.w.current, text)

    def do_set_label(self, a, text):
        promise = self.get_or_none(a).same(self.w)
        if promise.end is None:
            self.w.event("label", promise.id, text)

    def do_should_resolve(self, a):
        self.w.event("should_resolve", self.get_or_none(a).same(self.w).id)

    def do_increase(self, by):
        self.counter += int(by)
        self.w.event("counter", self.w.running, self.counter)

    def do_set_counter(self, v):
        self.counter = self.counter * 10 + int(v)
        self.w.event("counter", self.w.running, self.counter)

    def do_sleep(self):
        self.w.event("idle")
        self.w.running = self.w.current
        self.w.event("resume", self.w.current)

    def do_is_known(self, a):
        self.w.note("known")

    def do_poll(self, a):
        self.w.look(self.get_or_none(a))

    def do_state(self, a):
        p = self.get_or_none(a).same(self.w)
        if not p.end:
            self.w.note(f"{a} is pending")
        elif p.end.error:
            if not getattr(p, "is_noticed", False):  # the first call counts as a read of the error
                p.is_noticed = True
                self.w.look(p)
            self.w.note(f"{a} failed with {p.end.error[0]}")
        else:
            self.w.note(f"{a} is {self.show(p.end.value)}")

    def do_drop(self, a):
        self.promise.pop(a, None)

    # Places to wait at.
    def do_condition(self, c, label=None):
        id = self.w.created("condition")
        if label:
            self.w.event("label", id, label)
        self.place["condition", c] = Place(id=id, label=label, waiting=[])

    def do_condition_wait(self, p, c, m=None):
        w = self.w
        c = self.place["condition", c]
        task = w.as_condition(c, lambda: w.queued(c.waiting))
        if c.label:
            w.event("label", task.id, c.label)
        if m:
            self.do_unlock(m)
        self.promise[p] = w.finalize(task, lambda: self.lock(m) if m else UNIT)

    def do_signal(self, c, v):
        c = self.place["condition", c]

        def wake():
            p = self.w.take(c.waiting)
            if p:
                self.w.wakeup(p, End(value=int(v)), True)

        self.w.as_condition(c, wake)

    def broadcast(self, c, end):
        c = self.place["condition", c]
        woken, c.waiting[:] = list(c.waiting), []

        def wake():
            for p in woken:
                self.w.wakeup(p, end(), True)

        self.w.as_condition(c, wake)

    def do_broadcast(self, c, v):
        self.broadcast(c, lambda: End(value=int(v)))

    def do_broadcast_error(self, c, e):
        self.broadcast(c, lambda: End(error=self.code(e)))

    def do_mvar(self, m, label=None):
        self.place["channel", m] = Place(label=label, size=1, values=[], readers=[], writers=[], closed=False)

    def do_full_mvar(self, m, v):
        self.place["channel", m] = Place(label=None, size=1, values=[int(v)], readers=[], writers=[], closed=False)

    def do_is_locked(self, m):
        self.w.note("locked" if self.place["mutex", m].locked else "not locked")

    def do_is_on(self, s):
        self.w.note("on" if self.place["switch", s].on else "off")

    def do_bounded(self, b, size):
        self.place["bounded", b] = Place(label=None, size=int(size), values=[], readers=[], writers=[], closed=False)

    def put(self, c, v):
        w = self.w
        if c.closed:
            return w.error(CLOSED)
        if len(c.values) == c.size:
            task = w.pending("task", "me")
            if c.label:
                w.event("label", task.id, "put " + c.label)
            entry = (task, v)
            c.writers.append(entry)
            w.add_handler(task, lambda: entry in c.writers and c.writers.remove(entry))
            return task
        reader = w.take(c.readers) if not c.values else None
        if reader:
            w.wakeup(reader, End(value=v), True)
        else:
            c.values.append(v)
        return UNIT

    def get_from(self, c):
        w = self.w
        if not c.values:
            if c.closed:
                return w.error(CLOSED)
            task = w.queued(c.readers)
            if c.label:
                w.event("label", task.id, "take " + c.label)
            return task
        value = c.values.pop(0)
        while c.writers:
            task, v = c.writers.pop(0)
            if not task.same(w).end:
                c.values.append(v)
                w.wakeup(task, End(), True)
                break
        return w.value(value)

    def do_put(self, p, m, v):
        self.promise[p] = self.put(self.place["channel", m], int(v))

    def do_take(self, p, m):
        self.promise[p] = self.get_from(self.place["channel", m])

    def do_push(self, p, b, v):
        self.promise[p] = self.put(self.place["bounded", b], int(v))

    def do_next(self, p, b):
        self.promise[p] = self.get_from(self.place["bounded", b])

    def do_close(self, b):
        b = self.place["bounded", b]
        b.closed = True
        readers, b.readers[:] = list(b.readers), []
        for p in readers:
            self.w.wakeup(p, End(error=CLOSED), True)

    def do_mutex(self, m, label=None):
        id = self.w.created("lock")
        if label:
            self.w.event("label", id, label)
        self.place["mutex", m] = Place(id=id, locked=False, waiting=[], holder=None)

    def lock(self, m):
        m = self.place["mutex", m]
        if m.locked:
            p = self.w.queued(m.waiting)
            self.w.event("await", p.id, m.id)
            return p
        m.locked = True
        return UNIT

    def do_lock(self, p, m):
        self.promise[p] = self.lock(m)

    def do_unlock(self, m):
        m = self.place["mutex", m]
        if m.locked:
            if m.holder is not None:
                self.w.event("release", m.holder, m.id)
                m.holder = None
            p = self.w.take(m.waiting)
            if p:
                self.w.wakeup(p, End(), True)
            else:
                m.locked = False

    def do_with_lock(self, p, m, f):
        w = self.w

        def unlock():
            self.do_unlock(m)
            return UNIT

        def locked(end):
            if end.error:
                return Promise(w.current, end)
            result, mutex = w.finalize(self.on_start(f)(), unlock), self.place["mutex", m]
            if not result.end:
                mutex.holder = result.id
                w.event("hold", result.id, mutex.id)
            return result

        self.promise[p] = w.ending_with(self.lock(m), locked)

    def do_semaphore(self, s, count):
        self.place["semaphore", s] = Place(count=int(count), waiting=[])

    def do_acquire(self, p, s):
        s = self.place["semaphore", s]
        if s.count:
            s.count -= 1
            self.promise[p] = UNIT
        else:
            self.promise[p] = self.w.queued(s.waiting, "semaphore")

    def do_release(self, s):
        s = self.place["semaphore", s]
        p = self.w.take(s.waiting)
        if p:
            self.w.wakeup(p, End(), True)
        else:
            s.count += 1

    def do_switch(self, s):
        self.place["switch", s] = Place(on=True, hooks=[])

    def do_add_hook(self, s, f):
        s = self.place["switch", s]
        if s.on:
            s.hooks.insert(0, f)

    def do_turn_off(self, p, s):
        s = self.place["switch", s]
        if not s.on:
            self.promise[p] = UNIT
            return
        s.on = False
        self.promise[p] = self.w.join([self.on_start(f)() for f in s.hooks])

    def do_pool(self, p, limit, f):
        self.place["pool", p] = Place(id=self.w.created("pool"), limit=int(limit), make=f, count=0, idle=[], waiting=[])

    def do_use(self, p, pool, f):
        w = self.w
        pool = self.place["pool", pool]
        holder = []

        def used(thing):
            def g(end):
                if holder:
                    w.event("release", holder.pop().same(w).id, pool.id)
                waiting = w.take(pool.waiting)
                if not end.error:
                    if waiting:
                        w.wakeup(waiting, thing.again(), True)
                    else:
                        pool.idle.append(thing)
                elif not waiting:
                    pool.count -= 1
                else:

                    def made(end):
                        if end.error:
                            pool.count -= 1
                        w.wakeup(waiting, end.again(), True)
                        return UNIT

                    w.ending_with(self.on_start(pool.make)(), made)
                return Promise(w.current, end)

            return g

        def acquired(end):
            if end.error:
                if making:
                    pool.count -= 1
                return Promise(w.current, end)
            result = w.ending_with(self.on_value(f)(end.value), used(end))
            if not result.end:
                holder.append(result)
                w.event("hold", result.id, pool.id)
            return result

        making = False
        if pool.idle:
            thing = pool.idle.pop(0)
            thing = Promise(w.current, thing)
        elif pool.count < pool.limit:
            pool.count += 1
            making = True
            thing = self.on_start(pool.make)()
        else:
            thing = w.queued(pool.waiting)
            w.event("await", thing.id, pool.id)
        self.promise[p] = w.ending_with(thing, acquired)


NO_MEMORY = Promise(SYSTEM, End(error=(-20002, "out of memory")))


def run_script(text):
    """Returns the events of all programs of a script."""
    world = World()
    programs = []
    for line in text.splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "program":
            programs.append((words[1], []))
        else:
            programs[-1][1].append(words)
    out = []
    for name, lines in programs:
        world.events = []
        world.reset()
        world.note("program " + name)
        program = Program(world, lines)
        program.run(program.main)
        world.note("end")
        out.append((name, world.events))
    return out
