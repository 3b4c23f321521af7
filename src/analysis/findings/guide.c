/* guide.c: the explanations of all findings, most serious first.  SPDX-License-Identifier: ISC */
#include "analysis/findings/guide.h"

const char weft_finding_guide_intro[] =
    "`weft explain TRACE` prints findings: what went wrong in a recorded program, with evidence and advice.\n"
    "A finding is an alarm or informational: an alarm reports a fault, an informational finding reports a fact that may be no "
    "fault.\n"
    "A finding is marked as uncertain if the trace leaves room for another cause; the finding then gives the reason.\n"
    "If events are missing in the trace, weft leaves out each finding that the missing events could refute.\n"
    "The exit status of `weft explain` is 1 if at least one alarm is certain, and otherwise 0.\n"
    "To hide a known finding, write a line `NAME:PATTERN # REASON` into a file and pass `--suppress=FILE`.\n";

const char weft_finding_guide_json[] =
    "`weft explain --json TRACE` prints one JSON object a line for each finding, with these fields:\n"
    "- `finding`: the name.\n"
    "- `severity`: `alarm` or `information`.\n"
    "- `sure`: true if the finding is certain.\n"
    "- `doubt`: the reason why the finding is uncertain, or null.\n"
    "- `verdict`: why the promise at the end of the wait chain does not resolve, or null; `weft help hang` lists the verdicts.\n"
    "- `promise`: id of the promise that the finding is about; -1 stands for the program as a whole.\n"
    "- `root`: id of the promise at the end of the wait chain or, without a chain, the same as `promise`.\n"
    "- `count`: number of findings or failures that this finding combines.\n"
    "- `start_ns`, `end_ns`: the time range to look at, in nanoseconds from the start of the trace.\n"
    "- `weight`: how serious the finding is among findings of the same name; its unit depends on the name.\n"
    "- `title`, `next`: the headline and the advice.\n"
    "- `link`: fragment of a viewer URL that shows the time range and selects `root`.\n"
    "- `evidence`: list of objects with `role`, `time_ns` (or null), `promise` (or null) and `text`.\n"
    "\n"
    "The roles of evidence are:\n"
    "- `time`: where the time went, the longest part first.\n"
    "- `chain`: the wait chain.\n"
    "- `cause`: what happened, in time order.\n"
    "- `victim`: promises that were delayed.\n"
    "- `like`: similar findings that were combined with this one.\n"
    "- `note`: other facts.\n";

/* Reasons for doubt, and JSON values, that several findings share. */
#define MISSING_EVENTS "- Events are missing in the trace, so the decisive event may be among them.\n"
#define MISSING_NAMES "- Names are missing in the trace, so promises with the same label may be different things.\n"
#define NOT_ENDED                                                                                                                \
	"- The program did not end its trace: it was killed, or it was still running when the trace was "                        \
	"read.\n"

static const struct weft_finding_guide guides[] = {
    [WEFT_FINDING_DEADLOCK] =
	{
	    .meaning = "Lock holders wait for each other's locks in a cycle; none can continue.",
	    .title = "thread 1025 \"writer\" holds lock 1 \"journal\" and waits for lock 2 \"ledger\": cycle of 2 locks "
		     "(threads.c:43)\n"
		     "try 12 waits for lock 2 \"account B\", which it already holds (bank.c:54 in transfer)\n"
		     "request 2 \"order\" holds 1 of pool 1 \"connections\" and waits for another: no holder can return one "
		     "(forms.c:231)\n"
		     "thread 4 \"stops\" waits for condition 7 and holds lock 6, which its signaller timer 2 needs "
		     "(stops.c:25)\n",
	    .evidence =
		"The trace records which promise or thread holds a lock, and which one waits for it.\n"
		"weft follows the waits from holder to lock to holder until it reaches the same lock again.\n"
		"A pool, such as a semaphore, is part of a cycle only if every holder of one of its items is blocked too.\n"
		"The evidence lists the whole cycle, the time at which each lock was taken, and the wait that closed the "
		"cycle.\n",
	    .doubt = MISSING_EVENTS,
	    .false_alarms = "Code outside the cycle may still cancel one of the waits, for example after a timeout.\n"
			    "weft reports only cycles that last until the end of the trace.\n",
	    .fix =
		"- Take the locks in the same order everywhere.\n"
		"- If the order cannot change, release the first lock before you wait for the second.\n"
		"- If a promise waits for its own lock, release the lock first, or pass on the fact that the lock is held.\n"
		"- For a pool, take all the items that the promise needs at once, or return one before you wait for the next.\n"
		"- Run `weft waits TRACE` to see every promise that the cycle blocks.\n",
	    .json = "`promise` and `root` are the holder whose wait closed the cycle, and `start_ns` is the start of that wait.\n"
		    "`verdict` is `cycle`.\n"
		    "`weight` is 1 plus the number of promises that should resolve and that the cycle blocks.\n",
	},
    [WEFT_FINDING_CYCLE] =
	{
	    .meaning = "Promises wait for each other in a cycle without a lock; none can resolve.",
	    .title = "bind 3 and bind 4 wait for each other (deadlock.c:39 in get_journal)\n"
		     "request 1 \"index\" waits for itself (forms.c:58 in wait_for_itself)\n"
		     "task 1 \"order\" and 2 more promises wait for each other in a cycle (choices.c:17 in circle)\n",
	    .evidence =
		"The trace records which promise waits for which.\n"
		"weft follows the waits until it reaches the same promise again.\n"
		"A promise that needs only one of several inputs is part of a cycle only if none of these inputs can resolve.\n"
		"The evidence lists the members of the cycle and the promises that should resolve and are blocked by it.\n",
	    .doubt = MISSING_EVENTS "- The ring buffer was overwritten, and the creation of a member that needs only one of its "
				    "inputs is lost: the member may have another input.\n",
	    .false_alarms = "Code outside the cycle may still resolve or cancel one of the promises.\n"
			    "weft reports only cycles that last until the end of the trace.\n",
	    .fix = "- Let one promise of the cycle continue without waiting for the next.\n"
		   "- Start with the promise that the advice names: this promise was created last.\n"
		   "- If a promise waits for itself, move the code that needs the result out of the code that produces it.\n"
		   "- Run `weft waits TRACE` to see every promise that the cycle blocks.\n",
	    .json = "`promise` and `root` are a member of the cycle, and `start_ns` is the creation of the youngest member.\n"
		    "`verdict` is `cycle`.\n"
		    "`weight` is 1 plus the number of promises that should resolve and that the cycle blocks.\n",
	},
    [WEFT_FINDING_CRASH] =
	{
	    .meaning = "A promise was running when the program died.",
	    .title = "connection 17 was running when the program died of SIGABRT: abort or failed assertion (web.c:264)\n"
		     "task 1 \"report\" was running when the recording stopped abruptly (forms.c:251 in be_killed)\n",
	    .evidence =
		"weft records a fatal signal: SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGTRAP.\n"
		"It names the promise that was running on the thread that received the signal.\n"
		"If no signal is recorded, weft names the promise that started to run last and was still running at the end of "
		"the trace.\n"
		"If this promise is a callback that is blocked in a call, weft reports a hang or a deadlock instead.\n"
		"If it is a callback that ran for at least 100 ms, weft reports a stall instead.\n"
		"Without a recorded signal the finding is informational, because another process may have killed the program.\n",
	    .doubt = "This finding is never marked as uncertain.\n"
		     "Without a recorded signal it is informational.\n",
	    .false_alarms =
		"A program that was killed with SIGKILL, by the out-of-memory killer or by a debugger did not crash in the "
		"named promise.\n"
		"A trace of a program that is still running gives the same finding.\n"
		"The named promise may also be a victim: another thread may have corrupted the memory.\n",
	    .fix = "- Open the core dump, which has the exact line and the stack.\n"
		   "- SIGABRT: look for `abort()` or a failed assertion, and read the program's standard error.\n"
		   "- SIGTRAP: look for `g_error()`, a breakpoint, or a trap of a sanitizer.\n"
		   "- SIGSEGV: look for a NULL pointer or a pointer to freed memory.\n"
		   "- SIGBUS: look for a mapped file that was truncated.\n"
		   "- SIGFPE: look for a division by zero.\n"
		   "- SIGILL: look for `__builtin_trap()` or a damaged function pointer.\n"
		   "- No signal: ask the kernel log whether the out-of-memory killer ended the program.\n",
	    .json = "`promise` and `root` are the running promise, or -1 if none was running.\n"
		    "`start_ns` is the start of its last run, and `end_ns` is the time of death.\n",
	},
    [WEFT_FINDING_BACKLOG] =
	{
	    .meaning = "Work arrives faster than it is done, until the end of the trace.",
	    .title =
		"counter \"jobs in the queue\" grew to 200: 300 added, one per 739 us, and 100 removed, one per 2.21 ms\n"
		"200 of 300 promises \"order *\" are pending: one was created per 808 us, one ended per 2.42 ms (jobs.c:153)\n"
		"counter \"lines to write\" grew to 151 in 2.23 us and took 236 ms to fall to 0\n",
	    .evidence =
		"A counter is a backlog if it changed at least 64 times and its lowest value rose from each quarter of the "
		"changes to the next.\n"
		"At the end of the trace, at least 32 items and a quarter of all added items must be left.\n"
		"At least an eighth of the added items must have been removed.\n"
		"The number of pending promises with labels that differ only in numbers is judged like a counter.\n"
		"Timers, reads and other promises that an event from outside the program resolves do not count.\n"
		"Writes count from the time when they began to queue up.\n"
		"\n"
		"The finding is informational in two cases:\n"
		"- A counter grew to at least 64 in this way, but fell again, and its fall took at least as long as its growth.\n"
		"- Less than an eighth of the items was removed, but at least one item in 64, and at least one in each quarter "
		"of the time.\n",
	    .doubt = "- So few items were removed that the counter may be a store that is meant to grow.\n"
		     "- Nothing was removed in the second half of the time, so the consumer may hang.\n"
		     "- The ring buffer was overwritten, so the trace shows only the last changes of the counter.\n"
		     "- Events are missing later in the trace, so the counter may have fallen "
		     "again.\n" MISSING_NAMES,
	    .false_alarms = "A cache, a pool or a log that is meant to grow has the same shape as a backlog.\n"
			    "A batch program that adds all its work first, and is recorded only at its start, looks the same.\n",
	    .fix = "- Make the producer wait while the queue is full: give the queue a limit.\n"
		   "- Or make the consumer faster, or run more consumers.\n"
		   "- If the removals stopped, run `weft explain --promise=ID` with the promise that removed the last item; the "
		   "evidence names it.\n",
	    .json = "For a counter, `promise` is -1, and `weight` is the last value of the counter, or its highest value if it "
		    "fell again.\n"
		    "For promises, `promise` is the oldest one that has not ended, and `weight` is the number of those that have "
		    "not ended.\n"
		    "For a counter, `start_ns` and `end_ns` are its first and last change; for promises, they are the first "
		    "creation and the end of the trace.\n",
	},
    [WEFT_FINDING_HANG] =
	{
	    .meaning = "A promise that should resolve had not resolved at the end of the trace.",
	    .title =
		"bind 9 \"main\" never resolved: condition 1 \"ARP response\" was signalled 20.1 ms before the wait (arp.c:107)\n"
		"bind 142 \"order 7\" never resolved: nothing tried to resolve wait 137 \"answer of the bank\" (orders.c:97)\n"
		"thread 2049 \"reader\" never resolved: lock 1 \"journal\" is held by thread 1025, which has exited "
		"(threads.c:43)\n"
		"bind 215 \"order 8\" never resolved: lock 1 \"stock\" was released, but no waiter was woken (orders.c:165)\n"
		"request 1 \"order\" never resolved: task 2 \"session\", which created task 3 \"answer\", failed (forms.c:69)\n"
		"request 1 \"page\" never resolved: it did not run after task 2 \"file\" ended (forms.c:81)\n"
		"request 21 \"GET /\" never resolved: read 22 \"answer\" has waited 300 ms for an answer (forms.c:151)\n"
		"task 30 \"fetch\" in vault@a never resolved: connection 41 in vault@b never read what connection 40 in vault@a "
		"had sent\n"
		"thread 3 \"convert\" sleeps forever at condition 4097 \"barrier\": no awake thread can wake it "
		"(convert.c:154)\n"
		"timer 2 \"50 ms\" has not returned from pthread_mutex_lock for 2.95 s: lock 6 is held by thread 4 "
		"(stops.c:61)\n"
		"task 7 \"load icon\" ended on its thread, and no event loop has run its callback for 3.94 s (panel.c:48)\n"
		"timer 1025 \"20 ms\" is 1.37 s overdue: another thread started it, and loop 4 was not woken (sleepers.c:105)\n"
		"thread 2 \"sleepers\" sleeps forever in pthread_rwlock_rdlock: each other thread of the process waits too "
		"(sleepers.c:128)\n",
	    .evidence =
		"A program marks a promise with `weft_should_resolve()`.\n"
		"weft itself marks calls of libgio, D-Bus calls, HTTP requests of libevent and block requests of QEMU.\n"
		"It also marks libuv requests that are in flight while their loop sleeps.\n"
		"weft follows the waits from a marked pending promise to the end of the chain.\n"
		"It then looks for the reason why the promise at the end did not resolve.\n"
		"The field `verdict` names the cause:\n"
		"- `lost-wakeup`: the condition was signalled before the promise waited, and the signal woke no one.\n"
		"- `never-tried`: nothing ever tried to resolve the promise.\n"
		"- `not-released`: a lock is held by a promise that has ended.\n"
		"- `not-handed-on`: a lock is free, but the promise that waits for it was not woken.\n"
		"- `creator-failed`: the code that created the promise failed or was cancelled before it resolved the promise.\n"
		"- `not-run`: the input of the promise has resolved, but the promise did not run again.\n"
		"- `outside`: an event from outside, such as data for a read, did not come for 1 s, or for 5 times the longest "
		"time of its type.\n"
		"- `cycle`: the chain ends in a cycle; see `weft help cycle`.\n"
		"- `unknown`: the trace does not record what the promise waits for.\n"
		"\n"
		"A thread hangs if every thread that could wake it sleeps as well, and none of them waits with a timeout or for "
		"I/O.\n"
		"Threads need no marks: weft records the mutexes, conditions, semaphores, barriers and joins of any program.\n"
		"For other calls that only a thread can end, such as those for read-write locks, all threads of the process must "
		"sleep in such calls.\n"
		"A timer hangs if another thread gave it to a loop that sleeps since then, and if it was due 1 s before the "
		"end.\n"
		"A task that ended on a thread of a pool hangs if no event loop has run its callback for 1 s.\n"
		"A callback hangs if it was blocked in one call for at least the last 500 ms of the trace; a call that sleeps is "
		"a stall.\n"
		"A task hangs if another thread ended its input at least 1 s before the end of the trace, and the task did not "
		"run since.\n"
		"weft combines 3 or more similar hangs in one finding.\n"
		"Hangs with a lost wake-up or a lock come first, because other hangs may follow from them.\n",
	    .doubt = NOT_ENDED
	    "  A hang is certain nevertheless if the death of the program is recorded and the promise did nothing in the last 1 "
	    "s before it.\n"
	    "- Another promise was running at the end of the trace, and it might have resolved the promise that hangs.\n"
	    "- The trace does not record how long an answer may take.\n"
	    "- The trace does not record what the promise waits for.\n"
	    "- A thread that never signalled the condition may still signal it, or a signal handler may post the semaphore.\n"
	    "- Events are missing in the trace; the finding is then informational.\n" MISSING_NAMES,
	    .false_alarms = "A wait for a user, a long poll or a subscription may take any time; its verdict is `outside`.\n"
			    "A promise that the program drops on purpose hangs forever: cancel it, or do not mark it with "
			    "`weft_should_resolve()`.\n"
			    "A promise that was only in progress when the program ended is an `underway` finding, not a hang.\n",
	    .fix =
		"- Lost wake-up: check the condition before you wait, with the lock held, and again after each wake-up.\n"
		"- Lost wake-up in a single thread: do not await anything between the check and the wait.\n"
		"- Nothing tried to resolve the promise: read the code at the named place; this code was never called, or "
		"dropped the resolver on some path.\n"
		"- If the evidence names an older wait, start there: the promise that waits may be the one that should resolve "
		"the others.\n"
		"- Lock held by an exited thread: release the lock on every path out of the holder, also on error paths.\n"
		"- Free lock: wake one waiter wherever the lock is released.\n"
		"- Creator failed: resolve the promise, or let it fail, on the creator's error path too.\n"
		"- Did not run after its input ended: register the callback, or signal the condition, when the input resolves.\n"
		"- Event loop not woken: end the input in the thread of the loop, in Python with `call_soon_threadsafe()`.\n"
		"- Work that never starts: let no work wait for other work of its pool.\n"
		"- Timer of another thread: start it on the thread of its loop, or let the library wake the loop, in libevent "
		"with `evthread_use_pthreads()`.\n"
		"- No answer from outside: look at the peer, and add a timeout.\n"
		"- Peer never read: find out why the other process started no read, or stopped it.\n"
		"- Several threads at one condition: wake all of them (broadcast), or let each woken thread wake the next.\n"
		"- Unknown: record the wait with `weft_await()`.\n",
	    .json = "`promise` is the promise that hangs, and `root` is the promise at the end of its wait chain.\n"
		    "`verdict` is one of the causes above.\n"
		    "`weight` is the number of promises that wait for `root`, or the number of similar hangs; it is 0 for a "
		    "semaphore.\n",
	},
    [WEFT_FINDING_UNCLOSED] =
	{
	    .meaning = "A libuv loop was closed while some of its handles were open.",
	    .title = "close 2398 \"uv_loop_close\" was refused: 1 handle of the loop is open (web.c:407 in main)\n"
		     "close 31 \"uv_loop_close\" failed with \"resource busy or locked\": 2 handles of the loop are open "
		     "(web.c:407)\n",
	    .evidence = "`uv_loop_close()` returned `UV_EBUSY`, and the program did not call it again with success.\n"
			"The evidence lists the open handles, with the place where each was created.\n",
	    .doubt = MISSING_EVENTS,
	    .false_alarms =
		"A program that exits right after the refused call does no harm, because the kernel frees all of its memory.\n"
		"In a program that continues, the close callbacks of the handles never run, so memory that these callbacks free "
		"is leaked.\n",
	    .fix = "- Call `uv_close()` for each listed handle.\n"
		   "- Then call `uv_run()` until all close callbacks have run, and only then `uv_loop_close()`.\n",
	    .json = "`promise` and `root` are the refused close, and `weight` is the number of open handles.\n",
	},
    [WEFT_FINDING_UNANSWERED] =
	{
	    .meaning = "A connection is silent although its peer seems to expect an answer.",
	    .title = "connection 4 \"from 127.0.0.1:55814\" has left 7952 bytes of its peer unread for 1.45 s (sleepers.c:81)\n"
		     "connection 18 \"from 127.0.0.1:47978\" has owed its peer an answer for 2.46 s (talks.c:150)\n"
		     "connection 7 \"to 10.0.0.2:6379\" has waited for an answer for 3.01 s (client.c:52 in ask)\n"
		     "connection 38 has been silent for 1.22 s: 19 others from this listener are closed (forms.c:169)\n"
		     "connection 2049 \"to 127.0.0.1:40181\" has waited for the rest of an answer for 2.99 s (parts.c:42)\n",
	    .evidence =
		"weft does not know the protocol; it sees only when each end reads and writes.\n"
		"An accepted connection owes an answer if the program has read from it and has not written to it since.\n"
		"A connection that the program made waits for an answer if the program has written to it and has not read from "
		"it since.\n"
		"weft reports a silence of at least 1 s that is 20 times as long as the slowest of at least 5 earlier answers.\n"
		"If the thread of the connection sleeps when the program ends by itself, a silence of 400 ms is enough.\n"
		"If the connection itself waits for another connection, the finding names that one.\n"
		"\n"
		"If both ends of a connection are in the program, weft also knows which bytes were not read.\n"
		"A request that was left unread for 1 s is a fault if the thread of its reader sleeps in its loop and has begun "
		"nothing else since.\n"
		"\n"
		"The finding is informational if a connection is left open and silent while at least 16 others of the same "
		"listener "
		"are closed.\n"
		"The silence must be at least 100 ms, and twice as long as any silence of the other connections.\n"
		"\n"
		"The finding is informational, too, if a thread read an answer, and at once calls recv() or read() for more.\n"
		"The call must last 1 s, and 20 times as long as any answer or pause before: perhaps the peer sent a part of "
		"a message.\n",
	    .doubt =
		"- An alarm is uncertain, except that of unread bytes, because the trace does not show the content of messages: "
		"the last one may need no answer.\n" MISSING_NAMES,
	    .false_alarms = "One-way messages, notifications, subscriptions and long polls need no answer.\n"
			    "A client that only keeps its connection open expects no answer.\n",
	    .fix = "- Accepted connection: find the path on which the code reads a message and writes no answer.\n"
		   "- If the finding names another connection that does not answer, look at that peer first.\n"
		   "- Connection that the program made: look at the peer, and add a timeout.\n"
		   "- Unread bytes: read until the call would wait, keep the event of the descriptor added, and start a stopped "
		   "read "
		   "again.\n"
		   "- Connection left open: look for a forgotten answer, or for a read that was stopped and not started again.\n",
	    .json = "`promise` and `root` are the connection, and `start_ns` is the time of the message without an answer.\n"
		    "`weight` is the number of silent connections, plus 4294967295 if they were accepted.\n",
	},
    [WEFT_FINDING_UNRETURNED] =
	{
	    .meaning = "A task, a D-Bus call or a coroutine was destroyed without a result.",
	    .title = "task 134 \"load font\" was finalized without a result (desk.c:145 in load_font)\n",
	    .evidence = "The last reference to a `GTask` was dropped before the program returned a value or an error.\n"
			"The same can happen to a D-Bus call that the program serves, and to a task of asyncio.\n"
			"A coroutine of Python that no code awaited never ran; the finding names the line that dropped the last "
			"reference.\n"
			"Code that waits for the task or the call gets no result.\n"
			"Tasks of the same type are one finding.\n",
	    .doubt = MISSING_EVENTS MISSING_NAMES,
	    .false_alarms = "A task without a callback, for which no code waits, does no harm.\n",
	    .fix = "- Call one function of `g_task_return_...()` on every path, also on error paths.\n"
		   "- For a D-Bus call, call one function of `g_dbus_method_invocation_return_...()` on every path.\n"
		   "- In asyncio, await a coroutine, and keep the task that `create_task()` returns.\n",
	    .json =
		"`promise` and `root` are the first such task, `end_ns` is the time at which its last reference was dropped, and "
		"`weight` is the number of such tasks.\n",
	},
    [WEFT_FINDING_TWICE] =
	{
	    .meaning = "A promise was resolved, or failed, a second time after its end.",
	    .title = "request 19 \"query 3\" was resolved a second time, 461 ns after its end (names.c:373 in on_query)\n",
	    .evidence = "The trace has two events that end the same promise.\n"
			"The first event ends the promise, and the second event has no effect.\n"
			"A cancelled promise is left out, because its result may still arrive.\n"
			"The evidence names the code that ended the promise the second time.\n",
	    .doubt = MISSING_EVENTS MISSING_NAMES,
	    .false_alarms = "Code that races two results on purpose, and ignores the later one, ends its promise twice.\n"
			    "Let such code check that the promise is still pending before a second end.\n",
	    .fix = "- Find the two code paths that end the promise; the finding names the second.\n"
		   "- Check that the second path does not send a second answer, or free memory again.\n"
		   "- For a callback that came twice, remove one of the two registrations.\n",
	    .json = "`promise` and `root` are the first such promise, `start_ns` is its first end and `end_ns` its second.\n"
		    "`weight` is the number of such events for promises of the same type.\n",
	},
    [WEFT_FINDING_MISUSED] =
	{
	    .meaning = "A promise was used after its end, or used without ever being created.",
	    .title =
		"task 143 \"block 37\" waits for task 146 \"block 38\" 421 ns after its own end (syncd.c:272 in begin_block)\n"
		"promise 501 was never created: task 1 \"page\" was the first to use its id (forms.c:111)\n",
	    .evidence =
		"A promise began to wait for another promise, or took a lock, after its own end.\n"
		"weft reports this only for promises that the program's own code records, and not for loops, threads, "
		"connections and requests that an event from outside ended.\n"
		"An event that names an unknown id is reported only if the trace is complete from the first promise on.\n",
	    .doubt = MISSING_EVENTS MISSING_NAMES,
	    .false_alarms = "The promise may have been ended too early in the recording while the work rightly continues.\n"
			    "In this case, move the call that ends the promise behind the last use.\n",
	    .fix = "- Find the code that still uses the promise after its end: it may use freed memory.\n"
		   "- For an unknown id, look for memory that is used after it was freed, or before an id was stored in it.\n"
		   "- Run the program with AddressSanitizer or valgrind to confirm.\n",
	    .json = "`promise` and `root` are the promise, `start_ns` is its end, and `end_ns` is its first use after that.\n"
		    "`weight` is the number of such uses by promises of the same type, or the number of unknown ids.\n",
	},
    [WEFT_FINDING_FAILURE] =
	{
	    .meaning = "A promise failed, and no code looked at its error.",
	    .title =
		"task 21 \"prefetch\" and 5 more failed, and no code read the error: no such zone (names.c:359 in prefetch)\n",
	    .evidence =
		"The promise failed, no other promise waited for it before, and none read its result afterwards.\n"
		"A GLib task also counts if its callback ran but did not ask for the result.\n"
		"A cancelled promise does not count, and an error that was passed on is reported once.\n"
		"The evidence names the first promise that failed with that error.\n"
		"The finding is informational if the program called `weft_promise_ignore_result()` and no hook gets the error.\n",
	    .doubt = MISSING_NAMES "- Events of some threads are missing at the end, so one of them may have read the error.\n",
	    .false_alarms =
		"Code that handles the error without recording that it reads the result: record `weft_read()` there.\n"
		"An error that the program ignores on purpose: suppress the finding, or call "
		"`weft_promise_ignore_result()`.\n",
	    .fix = "- Wait for the promise where it is created, or handle its error there.\n"
		   "- GLib: call the `..._finish()` function in the callback, and handle the error.\n"
		   "- After `weft_promise_ignore_result()`: set a hook with `weft_promise_set_async_hook()`.\n",
	    .json = "`promise` is the first promise that failed, and `root` is the promise from which the error came.\n"
		    "`count` and `weight` are the number of failures.\n",
	},
    [WEFT_FINDING_RETRIES] =
	{
	    .meaning = "An operation was retried many times without a growing pause, and failed.",
	    .title = "connect 1 failed 300 times in 478 ms, without a growing pause: connection refused (jobs.c:66 in call)\n"
		     "96 of 96 promises \"fetch message\" ended by their timeout: no answer came in time (fetch.c:272)\n",
	    .evidence = "At least 30 tries of the same type failed with the same error.\n"
			"On average, at most 50 ms passed between a failure and the next try.\n"
			"The pause did not grow: the last one is at most 4 times as long as the first and the average together.\n"
			"For connects, 10 tries in at least 1 s are enough, with pauses of at most 250 ms.\n"
			"If the ring buffer was overwritten and the first tries are lost, 16 tries are enough.\n"
			"A try follows an earlier try if the earlier try created it, or if its creator read the error of the "
			"earlier try.\n"
			"Tries that one timer or one idle callback makes are one series, too.\n"
			"Connections of requests are one series if each request makes the next connection.\n"
			"Many clients that fail once each are not reported.\n"
			"The finding is informational if a timeout ended at least 10 promises of a type, and hardly any other "
			"promise of this type ended.\n",
	    .doubt = MISSING_EVENTS MISSING_NAMES,
	    .false_alarms =
		"A program that polls on purpose, for example for a server that is just starting, retries in the same way.\n",
	    .fix = "- Wait longer after each failure, up to a limit.\n"
		   "- Give up after some time, and report the error.\n"
		   "- Find out why the operation fails: is the server running, and is the address right?\n",
	    .json = "`promise` and `root` are the first try, and `start_ns` and `end_ns` span all tries.\n"
		    "`weight` is the number of tries.\n",
	},
    [WEFT_FINDING_STUCK] =
	{
	    .meaning = "A promise is pending although many younger ones of its type have ended.",
	    .title =
		"request 168 \"fetch a page\" has been pending for 65.4 ms: 39 others of its type ended within 777 us "
		"(clients.c:117)\n"
		"task 136 \"load font\" was not resolved by handle 133, its creator: 15 others of its type were (desk.c:145)\n",
	    .evidence =
		"Promises have the same type if they have the same kind and first label or, without a label, the same place of "
		"creation.\n"
		"At least 20 promises of the type ended, 10 of them younger than this one.\n"
		"The pending promise is at least 10 ms old, and 5 times as old as any of the others became.\n"
		"If only 8 to 19 promises ended, 5 younger ones are enough.\n"
		"In this case the pending promise must be 100 ms old, and 20 times as old as the others became.\n"
		"\n"
		"The finding is informational in four cases:\n"
		"- The promise that waits for the pending one got others of its type before, like a consumer that takes items "
		"from a queue.\n"
		"- The program ended, and a task or computation is left that is twice as old as any other of its type became.\n"
		"- The callback that created the task did not end it, although it ended at least 8 others at once.\n"
		"- At least 8 tasks ended, and this one is 20 times as old as they became, and did nothing for most of that "
		"time.\n",
	    .doubt =
		"- The promise waits for one that was created recently, so it may make progress, but more slowly than others.\n"
		"- The promise that waits for it got others of its type before, so perhaps no more items were to come.\n"
		"- Other code may end the task later.\n"
		"- The ring buffer was overwritten, so earlier promises of the type are not known.\n" MISSING_NAMES,
	    .false_alarms = "Promises with one label but different work, such as a long download among small pages: give them "
			    "different labels.\n"
			    "Long polls and streams last longer than other requests on purpose.\n",
	    .fix = "- Run `weft explain --promise=ID TRACE`, which says what the promise waits for.\n"
		   "- If its creator did not end it, look for a path through the code on which the promise gets no result.\n",
	    .json = "`promise` is the stuck promise, `root` is the promise at the end of its wait chain, and `verdict` is as for "
		    "`hang`.\n"
		    "`weight` is the number of stuck promises of the type.\n",
	},
    [WEFT_FINDING_STALL] =
	{
	    .meaning = "Code blocked an event loop: it did not return to the loop's poll for long.",
	    .title =
		"bind 5 \"report\" blocked the event loop for 80.0 ms: 3 ready promises lost 240 ms together (stall.c:31)\n"
		"timer 3 \"3 ms\" blocked the event loop for 150 ms in usleep: 2 promises may be late (turns.c:28 in main)\n"
		"task 1 \"report\" blocked the event loop for 200 ms (on CPU 43.8 ms, runnable 156 ms): 40 late iterations "
		"(x.c:9)\n"
		"timer 2 \"50 ms\" blocked the event loop for 150 ms in usleep: no promise is known to be late (stops.c:61)\n"
		"thread 4 \"convert\" slept for 248 ms with lock 3074: 3 others waited for it (convert.c:109 in count)\n",
	    .evidence =
		"A promise ran, or a call blocked, for at least 10 ms (or `--stall=T`) while other promises were ready.\n"
		"A promise is ready from the end of its input until it runs.\n"
		"A blocked loop does not see timers and I/O, so the evidence gives only an upper limit of their delay: \"up "
		"to\".\n"
		"If the label of a timer shows when it was due, the evidence has its delay.\n"
		"A thread that has not begun its first event loop sets up the program, which is no stall.\n"
		"The same holds for a loop itself and for its listeners before it first sleeps: less than 100 ms, unless a "
		"promise is known to be late.\n"
		"If no promise is known to be late, the stall must last 50 ms, and the loop must have much to do right after the "
		"stall.\n"
		"A stall of 100 ms is always reported; `weft check 'stall<T'` checks the same stalls.\n"
		"Such a stall is an alarm if the loop had other work and the call was a sleep, or if one known call blocked for "
		"1 s.\n"
		"A callback that makes a request and sleeps until the answer, as a synchronous D-Bus call does, is a stall, "
		"too.\n"
		"\n"
		"If the thread was off CPU for at least an eighth of the time, the title has the parts:\n"
		"- on CPU: the code itself ran.\n"
		"- runnable: the thread was preempted, because other threads used the CPU.\n"
		"- blocked: a call waited, for example for a disk, a lock or a sleep.\n"
		"\n"
		"While a thread runs one promise for long, `weft record` samples its stack.\n"
		"The evidence then has the deepest function of the program in which at least 60 % of the samples are; the first "
		"10 to 20 ms have none.\n"
		"\n"
		"A recording with `weft record --kernel` also names the system call, the file and the threads that used the CPU "
		"or ended the wait.\n"
		"It also has interrupts, GC and page faults.\n"
		"A thread that sleeps for at least 100 ms while it holds a lock for which others wait is informational.\n",
	    .doubt =
		"- The trace does not tell when a timer or I/O was due; below 50 ms the stall is then "
		"informational.\n"
		"- The thread was on CPU for less time than the limit of a stall; the finding is then informational.\n"
		"- Another thread, for which the stalled thread may have waited, got no CPU; the finding is then informational.\n"
		"- The machine was busy and may have delayed the thread; the finding is then informational.\n"
		"- The host gave the guest no CPU; the finding is then informational.\n"
		"- Events are missing in the trace.\n",
	    .false_alarms =
		"On a busy machine the code is not at fault: if runnable is the largest part, record on an idle machine.\n"
		"Start-up work that runs before the program serves anyone does no harm.\n",
	    .fix = "- Mostly on CPU: cut the work into pieces with `weft_promise_pause()` or an idle callback, or move it to "
		   "another "
		   "thread.\n"
		   "- Blocked in a disk call: read or write on another thread.\n"
		   "- Blocked in a socket call: make the socket non-blocking, and wait for readiness in the event loop.\n"
		   "- Blocked in a sleep: use a timer of the loop.\n"
		   "- Blocked in a lock: hold the lock for less time where the evidence says it is held.\n"
		   "- Runnable without a CPU: run fewer other programs on the machine, or give the program a CPU of its own.\n"
		   "- GC: make less garbage, or collect while no request waits.\n"
		   "- Page faults: reuse memory, or read the file earlier.\n"
		   "- Unknown: record again with `weft record --kernel`.\n",
	    .json = "`promise` is the code that ran, or -1 if no promise is known; `root` is the same or, for a held lock, the "
		    "lock.\n"
		    "`start_ns` and `end_ns` span the stall.\n"
		    "`weight` is the time that ready promises lost together, or the length of the stall if that is more, in "
		    "nanoseconds.\n",
	},
    [WEFT_FINDING_EXHAUSTED] =
	{
	    .meaning = "All threads of a pool or places of a semaphore were taken; promises waited.",
	    .title = "fs 155 \"stat .\" waited 312 ms for a thread of the pool: all 4 threads compute (talks.c:105)\n"
		     "fs 10 \"open /dev/null\" waited 1.36 s for a thread of the pool: each of the 4 threads is in read "
		     "(sleepers.c:177)\n"
		     "fs 155 \"stat .\" waited 312 ms for a thread of the pool: 3 of 4 wait for lock 1025, held by work 132\n"
		     "19 promises queued for a semaphore for 301 ms on average and 573 ms at most, 19 at once (queue.c:59)\n",
	    .evidence =
		"libuv runs file requests, name lookups and computations (`uv_queue_work()`) on one pool, which usually has 4 "
		"threads.\n"
		"weft knows when each computation runs, and therefore when all threads of the pool were busy.\n"
		"weft reports a request of another type that waited for at least 40 ms while all threads were busy.\n"
		"If most of the busy threads waited for one lock, the finding names the lock and its holder.\n"
		"If a busy thread was in a call that blocks, the finding names the call.\n"
		"Computations that wait only for others of their own type are a batch, and are not reported.\n"
		"\n"
		"A queue for a semaphore or a pool of objects is informational, because the limit may be intended.\n"
		"At least 8 promises got a place after a wait, 4 of them waited at the same time, and one waited for at least "
		"100 ms.\n"
		"Together these promises waited for at least half of their lives.\n"
		"Promises that got a place must have given it back: a semaphore that only other promises release is used as a "
		"signal.\n"
		"Semaphores of weft's promises have no number in the trace, so those of one place in the source count as one.\n",
	    .doubt =
		"- The trace does not record whether the pool has more threads, as the process has still other threads.\n"
		"- The threads of the pool got hardly any CPU; the finding is then informational.\n" MISSING_EVENTS MISSING_NAMES,
	    .false_alarms =
		"On a busy machine the computations take long because they get no CPU; the finding is then informational.\n"
		"Requests that may be late, such as background reads, do no harm when they wait.\n"
		"A limit that protects a slower service makes promises queue on purpose.\n",
	    .fix = "- Threads that are in a call: let no work of the pool wait for long.\n"
		   "- Cut the computations into smaller pieces.\n"
		   "- Or run them on threads of their own instead of libuv's pool.\n"
		   "- Or enlarge the pool: set `UV_THREADPOOL_SIZE` in the environment.\n"
		   "- Threads that wait for a lock: hold the lock for less time, or take no lock in work that runs on the pool.\n"
		   "- Queue for a semaphore: hold each place of the semaphore for less time, or add places.\n",
	    .json =
		"`promise` is the request that waited longest, and `root` is one of the computations, the lock, or the pool.\n"
		"`end_ns` is the time at which a thread became free.\n"
		"`weight` is the waiting time of all requests, in nanoseconds.\n",
	},
    [WEFT_FINDING_STARVATION] =
	{
	    .meaning = "A promise was ready for long while many others ran before it.",
	    .title = "request 161 \"the patient one\" was ready for 59.7 ms: 30 promises that became ready later ran first "
		     "(clients.c:142)\n",
	    .evidence = "A promise was ready to run for at least 10 ms (or `--stall=T`), and at least 20 others that became "
			"ready later ran "
			"before it.\n"
			"A promise is ready from the end of its input until it runs.\n"
			"weft does not report the wait if the thread slept meanwhile.\n"
			"The evidence says which promises ran instead, how often, and for how long.\n",
	    .doubt = MISSING_EVENTS MISSING_NAMES,
	    .false_alarms = "A scheduler with priorities lets unimportant work wait on purpose.\n",
	    .fix = "- Run promises in the order in which they became ready.\n"
		   "- Let code that wakes others again and again pause: call `weft_promise_pause()`, or use an idle callback.\n",
	    .json =
		"`promise` and `root` are the promise that was ready for longest, and `start_ns` and `end_ns` span its wait.\n"
		"`weight` is the waiting time of all starved promises, in nanoseconds.\n",
	},
    [WEFT_FINDING_SPIN] =
	{
	    .meaning = "Code is called again and again, and its thread never sleeps.",
	    .title = "handle 15 \"idle\" was called 1048576 times in 1.50 s, and its thread never slept (web.c:393 in main)\n"
		     "loop 17 \"epoll, turn by turn\" iterated 131072 times in 1.28 s without a sleep: accept fails on listen 2 "
		     "(depot.c:173)\n",
	    .evidence = "The same promise was called at least 8,192 times in a row, without a sleep of its thread.\n"
			"Each call took at most 50 us on average.\n"
			"A server under load is not reported, because each of its calls has an event from outside.\n"
			"To keep the trace small, weft records the number of such calls only when it has doubled.\n",
	    .doubt = "- The calls stopped by themselves, so the code may have done its work in small pieces.\n",
	    .false_alarms = "An idle callback that does background work in small pieces looks the same while it works.\n"
			    "A program that polls a device on purpose never sleeps.\n",
	    .fix = "- Idle callback: stop it when its work is done (`uv_idle_stop()`, or return `G_SOURCE_REMOVE`).\n"
		   "- Watched descriptor: read it until it is empty, handle its end, or close it.\n"
		   "- Listener whose accept fails: close connections, or raise the limit of open files.\n"
		   "- Timer: give it a time that is not zero.\n"
		   "- Promise: wait for an event instead of pausing in a loop.\n",
	    .json = "`promise` and `root` are the promise, and `weight` is the number of calls.\n",
	},
    [WEFT_FINDING_LEAK] =
	{
	    .meaning = "Promises of one type are created all the time and hardly any ends.",
	    .title =
		"60 promises \"session\" are pending: one was created per 5.86 ms, and none ended (leak.c:16 in visitor)\n"
		"10 child processes have ended, and the program did not wait for them: zombies (calls.c:160 in start_children)\n",
	    .evidence = "At least 32 promises whose labels differ only in numbers are pending at the end.\n"
			"For repeating timers and for connections that the program made, 16 are enough; the finding is then "
			"informational.\n"
			"Child processes of one place that have ended without a wait are informational from 8 on, and an alarm "
			"from 32 on.\n"
			"At most one promise of the type has ended for every ten that are pending.\n"
			"The promises were created over at least a quarter of the trace, and not in one burst.\n"
			"At most half of the older ones did anything in the last quarter of the time.\n"
			"A timer counts if the code that should stop it has ended.\n"
			"A connection counts if the program made it, to one of few peers.\n"
			"Timers and connections do not count while at least half as many clients are connected.\n",
	    .doubt =
		"- The ring buffer was overwritten, so promises that ended before are not known.\n"
		"- The first of these promises waits for another one, and the program was killed or still runs.\n" MISSING_NAMES,
	    .false_alarms = "A cache, or a server whose clients stay connected, grows until it is full: record for longer.\n"
			    "A program that creates all its work first, and is killed before it is done, looks the same.\n",
	    .fix = "- Find the code that should end these promises; start at the place where they are created.\n"
		   "- Look at the error paths: a promise is often dropped where an operation fails.\n"
		   "- In a test, set a limit: `weft check TRACE 'pending(LABEL)<10'`.\n",
	    .json = "`promise` and `root` are the first pending promise.\n"
		    "`start_ns` is its creation, and `end_ns` is the end of the trace.\n"
		    "`verdict` is the cause for which it waits, as for `hang`, and `weight` is the number of pending promises.\n",
	},
    [WEFT_FINDING_UNDERWAY] =
	{
	    .meaning = "A promise that should resolve, or a request, was unfinished at the end.",
	    .title = "task 1 \"order\" had not resolved when the trace ended: timer 4 \"timeout\" was pending for 21.6 ms "
		     "(choices.c:19)\n"
		     "connection 30 and 2 more had no answer when the program ended, 46.1 ms after the request (flows.c:390)\n"
		     "connection 7 and 4 more had no answer when the program ended, 24.6 us after signal 4 \"SIGTERM\" "
		     "(feed.c:164)\n",
	    .evidence =
		"A promise that should resolve is pending, and the promise at the end of its wait chain has waited no "
		"longer than "
		"usual.\n"
		"A promise that waits longer than usual is a `hang`.\n"
		"\n"
		"A connection counts, too, if the program read a message there, began something for it, and ended before "
		"it wrote "
		"anything.\n"
		"The connections of its listener must have at least 5 answers, and as many as there are such requests; if "
		"a signal such as SIGTERM asked the program to end, no answer is needed.\n",
	    .doubt = "- The trace does not show the content of messages: the last message may need no answer.\n" NOT_ENDED
		MISSING_EVENTS MISSING_NAMES,
	    .false_alarms =
		"A program may end while requests are in progress: this finding is informational, and often normal.\n",
	    .fix = "- If the program should finish its requests, it exits, or its loop returns, too early: wait for them before "
		   "exit.\n"
		   "- Server: after SIGTERM, close the listener, answer what is in flight, and then exit.\n",
	    .json =
		"`promise` is the promise that is still in progress, and `root` is the promise at the end of its wait chain.\n"
		"`verdict` is as for `hang`, and `weight` is the number of promises that wait for `root`.\n",
	},
    [WEFT_FINDING_WASTED] =
	{
	    .meaning = "Work continued although nothing waited for its result any more.",
	    .title =
		"bind 2 ran for 93.6 ms after task 3, the last that waited for it, was cancelled (jobs.c:211 in wait_at_most)\n"
		"task 144 \"spell\" ran for 705 ms after it was cancelled (desk.c:187 in spell_document)\n"
		"bind 135 ran for 224 ms after pick 138, the last that waited for it, failed: timeout (orders.c:234)\n",
	    .evidence =
		"The last promise that waited for the work was cancelled.\n"
		"Or the last promise that waited needed only one of several inputs and failed, for example after a timeout.\n"
		"The work ran for at least 10 ms after this cancellation or failure.\n"
		"Work that was cancelled itself is reported if it ran for at least 50 ms after its cancellation.\n"
		"Time in which the work slept or waited does not count.\n",
	    .doubt = MISSING_EVENTS,
	    .false_alarms = "Work with a side effect, such as filling a cache, may be useful without a waiter.\n"
			    "Work that cannot be interrupted, such as a single library call, cannot stop earlier.\n",
	    .fix = "- Pass the cancellation on to the work.\n"
		   "- Let long work check between two steps whether it was cancelled.\n",
	    .json =
		"`promise` and `root` are the work, `start_ns` is the cancellation, and `end_ns` is the end of its last run.\n"
		"`weight` is the time that it ran after that, in nanoseconds.\n",
	},
    [WEFT_FINDING_ALIVE] =
	{
	    .meaning = "An event loop has not returned; the finding lists what keeps it running.",
	    .title = "loop 14 \"uv_run\" has not returned: timer 4 \"every 200 ms\" keeps it running (web.c:390 in main)\n"
		     "loop 2 \"loop of a worker\" and 2 more have not returned: timer 3 \"every 1 s\" keeps the first running "
		     "(forms.c:221)\n"
		     "loop 4 has not returned 1.48 s after signal 2 \"SIGTERM\": timer 3 \"every 300 ms\" keeps it running "
		     "(sleepers.c:227)\n",
	    .evidence = "The loop is pending, its thread sleeps, and the loop waits for handles or requests that are active.\n"
			"Handles that were unreferenced do not keep a loop running, and are not listed.\n"
			"Requests come before handles in the list, and each line has the place of creation and the age.\n"
			"Loops of one type and place, like those of workers, are one finding.\n"
			"If a signal handle of the program got SIGTERM or SIGINT at least 1 s before the end, the title says how "
			"long the "
			"loop went on.\n",
	    .doubt = MISSING_EVENTS MISSING_NAMES,
	    .false_alarms = "A server's loop is meant to run forever: this finding is informational.\n",
	    .fix = "- If the loop should return, close, stop or unreference the listed handles (`uv_close()`, `uv_unref()`, "
		   "`g_source_destroy()`).\n"
		   "- After a signal, do the same in the callback of the signal.\n"
		   "- For a server that no signal asked to end, nothing is to be done.\n",
	    .json = "`promise` is the loop, `root` is the first handle or request that keeps it, and `weight` is the number of "
		    "these.\n",
	},
    [WEFT_FINDING_SAVED] =
	{
	    .meaning = "This trace is a copy that weft watch saved; the finding says why.",
	    .title =
		"this copy was saved at 2026-11-26 00:30:41 UTC because pending=0 is broken: 1 (the first: task 1 \"order\")\n",
	    .evidence = "`weft watch --save` writes its reason and the time into each copy.\n"
			"If the program was running when the copy was made, the evidence names the promise that was running.\n"
			"This finding comes before all others.\n",
	    .doubt = "This finding is never uncertain.\n",
	    .false_alarms = "This finding is never a false alarm, because it reports no fault.\n"
			    "The other findings of the copy may have a different cause than the broken rule.\n",
	    .fix = "- Read the other findings of the copy, and look at the time just before the copy was made.\n",
	    .json = "`promise` is -1, and `start_ns` and `end_ns` are the time at which the copy was made.\n",
	},
    [WEFT_FINDING_SLOW] =
	{
	    .meaning = "A promise took far longer than others of its type.",
	    .title = "connection 207 \"to 127.0.0.1:41637\" was answered after 300 ms: the median of 260 answers is 1.11 ms "
		     "(web.c:359)\n"
		     "request 14 \"GET /cart\" took 300 ms (median of 20: 2.07 ms): 100% waiting, maybe for connection 1 "
		     "(forms.c:269)\n"
		     "getaddrinfo 1 \"shop.example\" took 154 ms: the name server answered late (forms.c:120 in look_up)\n"
		     "23 answers on connection 1025 \"to 127.0.0.1:42683\" averaged 44.1 ms: delayed acknowledgements, perhaps "
		     "(parts.c:46)\n",
	    .evidence =
		"A promise took at least 100 ms, and 10 times the median of at least 16 promises of its type and place.\n"
		"If more than one promise in 5 takes as long, this time is usual and not reported.\n"
		"A request that a program served is compared with all requests of its process, if too few fast requests have its "
		"name.\n"
		"The evidence says where the time went, from the critical path, compared with a promise that took the median "
		"time.\n"
		"\n"
		"A connection that the program made is reported if its peer answered late.\n"
		"An answer is late if it took 10 times the median of at least 16 answers, or 20 times the median of 5 to 15 "
		"answers.\n"
		"Two kinds of answers are left out: those that waited for the program itself, and those on connections that are "
		"always slow.\n"
		"A single name lookup or connect is reported from 100 ms on, or from 3 times the median on if there are "
		"several.\n"
		"A timer is never slow.\n"
		"\n"
		"The kernel holds the second of two small writes back until the peer has acknowledged the first, which may take "
		"40 "
		"ms.\n"
		"weft reports a TCP connection with 8 requests of several writes that were answered after 38 ms to 60 ms.\n"
		"Other requests on the connection must have been answered in less than 20 ms.\n",
	    .doubt = "- The title says \"maybe\" where the trace does not record which request used the connection.\n"
		     "- The trace does not show acknowledgements, so the peer itself may be slow.\n" MISSING_EVENTS MISSING_NAMES,
	    .false_alarms = "Promises with one label but different work: give them different labels.\n"
			    "The first request of a program often fills caches.\n"
			    "A connection that waits for news, such as a subscription, is slow by design.\n",
	    .fix = "- Read where the time went, and run `weft path --promise=ID TRACE` for every step.\n"
		   "- Ready while its thread slept: a wake-up was lost; wake the loop after each result, for example through an "
		   "eventfd.\n"
		   "- Late peer: find out what the peer did at that time, and add a timeout.\n"
		   "- Late name server: check the servers in `/etc/resolv.conf` and their order, and cache the answers.\n"
		   "- Late connect: try a second address, and add a timeout.\n"
		   "- Delayed acknowledgements: write each request with one call, or set TCP_NODELAY.\n",
	    .json = "`promise` and `root` are the slowest promise or the connection, and `weight` is its time in nanoseconds.\n"
		    "For a connection, `start_ns` is the question and `end_ns` is the answer.\n",
	},
    [WEFT_FINDING_SEQUENCE] =
	{
	    .meaning = "An answer of the program waited for many answers of peers, one after another.",
	    .title = "connection 14 waited 52.6 ms of 53.1 ms for 12 answers one after the other "
		     "(flows.c:300)\n",
	    .evidence = "The program read a request, asked at least 8 questions on connections, and then wrote its answer.\n"
			"Its thread did not sleep between an answer and the next question, nor between the last answer and the "
			"program's own answer.\n"
			"Together the questions took at least half of the time until the answer.\n"
			"A request does not count if its thread served another one meanwhile, because the questions may belong "
			"to the other request.\n",
	    .doubt = MISSING_EVENTS,
	    .false_alarms = "A question may need an earlier answer, as each step of a login does.\n"
			    "The trace does not show what was asked, so this finding is informational.\n",
	    .fix = "- Ask the questions in parallel, on one connection or several.\n"
		   "- Or ask one question for all: a list of keys, a join, a batch.\n",
	    .json = "`promise` is the connection of the request, and `root` is the connection of the first question.\n"
		    "`start_ns` is the read of the request, and `end_ns` is the write of its answer.\n"
		    "`weight` is the time of all questions, in nanoseconds.\n",
	},
    [WEFT_FINDING_RECONNECTS] =
	{
	    .meaning = "Each request had a connection of its own, although an earlier one was free.",
	    .title =
		"24 connections \"to 127.0.0.1:41255\" had one request each: 23 were made after the answer on an earlier one "
		"(flows.c:301)\n",
	    .evidence = "One thread made at least 16 connections to one address, with one request and one answer each.\n"
			"More than half of these connections would not be needed if each were used again after its answer.\n"
			"Connections do not count if the peer closed them, or if the program kept them idle.\n"
			"A connection was kept idle if the program closed it more than 100 ms after the answer, and after more "
			"time than the request took.\n"
			"A handshake, such as that of TLS, is a request of its own: these connections are not reported.\n",
	    .doubt = MISSING_EVENTS MISSING_NAMES,
	    .false_alarms = "Some protocols allow one request on a connection.\n"
			    "Only the recorders of libuv and GLib note that the peer closed a connection.\n",
	    .fix = "- Keep the connection after the answer, and send the next request on it.\n"
		   "- HTTP: use one client object, with keep-alive, for all requests.\n",
	    .json = "`promise` and `root` are the first of the connections.\n"
		    "`weight` is the number of connections that were made after the answer on an earlier one.\n",
	},
    [WEFT_FINDING_RETAINED] =
	{
	    .meaning = "Memory of ended promises of one type grows, and is not freed.",
	    .title =
		"about 5.12 MB of memory of ended promises \"session *\" is not freed, and grew all the time (memory.c:29 in "
		"keep_session)\n",
	    .evidence =
		"The trace has sampled allocations (`weft record --memory`).\n"
		"At least 32 sampled allocations of one line, by at least 16 ended promises whose labels differ only in "
		"numbers, are not freed at the end.\n"
		"At least four of them were made in each quarter of the time.\n"
		"The held share of the oldest quarter is at least half of that of the newest quarter: a cache with a limit "
		"frees its oldest memory.\n"
		"Nothing is reported if weft does not know of each sampled allocation whether it was freed.\n",
	    .doubt = MISSING_EVENTS MISSING_NAMES,
	    .false_alarms = "A cache that still grows looks the same: record for longer.\n"
			    "The memory may belong to something that lives longer than the promise, such as a connection.\n",
	    .fix = "- Find out what keeps the memory; start at the line that allocates it.\n"
		   "- Give a cache a limit.\n"
		   "- `weft render --blame=held` shows the callers of all lines that allocated held memory.\n",
	    .json = "`promise` and `root` are the promise with the first of these allocations.\n"
		    "`weight` is the estimated number of bytes.\n",
	},
    [WEFT_FINDING_ANSWER] =
	{
	    .meaning = "How one promise came to its end, or why it is pending (--promise=ID).",
	    .title = "bind 5 \"report\" was resolved 92.2 ms after its creation: 88% running (stall.c:31 in main)\n"
		     "thread 1 \"main\" is pending: it has slept for 172 ms in loop 14 \"uv_run\" for timer 4 (web.c:390)\n"
		     "condition 34 \"semaphore\" is pending at the end, which is normal for its kind; it never ran\n",
	    .evidence =
		"`weft explain --promise=ID TRACE` answers with one finding.\n"
		"For a promise that has ended, the evidence says where its time went: waiting, ready while another promise ran, "
		"or "
		"running.\n"
		"The parts come from its critical path, the longest first.\n"
		"If at least 5 promises of its type ended, the parts are compared with those of the promise that took the median "
		"time.\n"
		"For a pending promise, the evidence is its wait chain.\n"
		"A promise that should resolve, or that is part of a cycle, gets a `hang`, `cycle` or `deadlock` instead.\n",
	    .doubt = NOT_ENDED MISSING_EVENTS MISSING_NAMES,
	    .false_alarms =
		"None: the answer reports no fault.\n"
		"A listener, a condition, a signal and a watched descriptor stay pending until the program closes them.\n",
	    .fix = "- Ended promise: start with the longest part.\n"
		   "- Pending promise: look at the last line of the chain, and find the code that should end it.\n"
		   "- Sleeping thread: record with `weft record --kernel`, which shows the system call in which the thread "
		   "sleeps.\n",
	    .json = "`promise` is the promise that you asked for, and `root` is the promise that it became, or the end of its "
		    "wait chain.\n"
		    "`verdict` is as for `hang`.\n",
	},
};

static const struct {
	const char *name;
	enum weft_severity severity;
} kinds[] = {
#define KIND(UPPER, name, severity, needs, text) {#name, WEFT_SEVERITY_##severity},
    WEFT_FINDINGS(KIND)
#undef KIND
};

_Static_assert(sizeof guides / sizeof *guides == WEFT_FINDING_KINDS, "the last kind of findings has no guide");

struct weft_finding_guide weft_finding_guide(enum weft_finding_kind kind)
{
	struct weft_finding_guide guide = guides[kind];
	guide.name = kinds[kind].name;
	guide.severity = kinds[kind].severity;
	return guide;
}
