"""Fifteen small programs with one fault each, for tools/judge --small.

The programs were written from the public headers of libuv, GLib, libevent and libc, before their author had read the code of the checks.
Each sentence is the first thing that a user needs to read.
The sentence of "gate watermark" was corrected after the first run: its author had believed that the loop would sleep.
Each row: program, fault, findings that may say it, words that must occur, further allowed alarms, `load` if it depends on time, sentence.

SPDX-License-Identifier: ISC"""

HANG = 'hang|stuck|deadlock|cycle|unanswered|unreturned|exhausted'
PROGRAMS = ['feed', 'panel', 'gate', 'depot']
UNMODIFIED = PROGRAMS
ROWS = [
    ('feed', 'backpressure', 'backlog|leak|slow', [r'(?i)(write|connection|tcp)', r'feed\.c:\d+ in (on_chunk|on_end_of_relay)'], 'backlog|slow|leak|' + HANG, '',
     'Writes of on_chunk queue up on a connection whose peer reads slowly, while on_chunk goes on reading.'),
    ('feed', 'signal', HANG + '|unclosed|underway|wasted', [r'SIGTERM', r'feed\.c:\d+ in (on_client|on_request)'], HANG + '|unclosed|underway', '',
     'SIGTERM ended the process while requests of connections of on_client were not answered.'),
    ('feed', 'heartbeat', HANG + '|alive|unclosed', [r'SIGTERM', r'timer', r'feed\.c:\d+ in run_server'], HANG + '|alive|unclosed', '',
     'SIGTERM did not end the process: the timer of run_server keeps the loop alive.'),
    ('feed', 'fifo', HANG + '|stall', [r'open', r'(feed\.c:\d+ in read_settings|read_settings)'], HANG + '|stall', '',
     'read_settings blocks the loop: it opens a FIFO, and no process opens its other end.'),
    ('panel', 'nested', HANG + '|stall', [r'"load icon"', r'panel\.c:\d+ in (load_icon_sync|icon_clicked)'], HANG + '|stall', '',
     'load_icon_sync waits for "load icon", which has returned, in a nested loop; the context of the task is not run.'),
    ('panel', 'cond', HANG + '|stall', [r'(?i)(condition|g_cond_wait|cond)', r'scan_clicked', r'(show_progress|scan_files)'], HANG + '|stall', '',
     'scan_clicked waits for a condition that scan_files signals, and scan_files waits for show_progress, which only the main loop can run.'),
    ('panel', 'bus', HANG + '|stall', [r'org\.example\.Disk\.Space|Disk', r'(space_clicked|on_method|on_peer)'], HANG + '|stall', '',
     'space_clicked blocks the main loop in a synchronous D-Bus call of org.example.Disk.Space, which the peer does not answer.'),
    ('gate', 'watermark', 'stall|spin', [r'(?i)(connection|read|recv|bufferevent)', r'gate\.c:\d+ in on_customer'], HANG, '',
     'A connection of on_customer keeps the loop busy: libevent calls on_order again and again, which takes nothing from the full buffer.'),
    ('gate', 'active', 'spin', [r'gate\.c:\d+ in (run_active|look_for_work)'], '', '',
     'The event of look_for_work is always active, so the loop never sleeps.'),
    ('gate', 'subscriber', 'backlog|leak|slow', [r'(?i)(write|connection|bufferevent|output)', r'gate\.c:\d+ in (publish_news|on_subscriber)'], 'backlog|slow|leak|' + HANG, '',
     'Writes of publish_news queue up on a connection whose peer reads slowly.'),
    ('depot', 'fork', HANG, [r'(?i)lock', r'add_to_journal', r'(?i)fork'], HANG, '',
     'A child process waits in add_to_journal for a lock that another thread of its parent held at the fork.'),
    ('depot', 'flag', HANG + '|alive|spin', [r'SIGTERM'], HANG + '|alive', '',
     'The process got SIGTERM, handled it, and did not end.'),
    ('depot', 'edge', HANG, [r'(?i)(connection|read|recv|request)', r'depot\.c:\d+ in (run_edge|read_request|connect_to)'], HANG, '',
     'A client waits for an answer: the server has read a part of its request, and then waits for more.'),
    ('depot', 'emfile', 'spin|failure|retries|' + HANG, [r'accept', r'depot\.c:\d+ in run_emfile'], 'spin|failure|retries|' + HANG, '',
     'The loop never sleeps: accept in run_emfile fails again and again with EMFILE.'),
    ('depot', 'rwlock', HANG, [r'(?i)lock', r'look_up_article'], HANG, '',
     'look_up_article waits for a write lock, and holds the read lock of the same lock itself.'),
]
TWINS = [(row[0], 'healthy-' + row[1]) for row in ROWS]
# Healthy variants with a false alarm today, with the alarm; a test omits them.
ALARMED = {}
# Faults that a test runs.
FIRST = {
    ('feed', 'backpressure'), ('feed', 'signal'), ('feed', 'heartbeat'),
    ('panel', 'nested'), ('panel', 'cond'), ('panel', 'bus'),
    ('gate', 'active'),
    ('depot', 'emfile'), ('depot', 'rwlock'),
}
# Faults that are not found first, with the reason.
UNKNOWN = {
    ('feed', 'fifo'): 'a call that opens a file is not recorded',
    ('gate', 'subscriber'): 'libevent keeps the data of a write in its own buffer, whose length is not recorded',
    ('depot', 'fork'): 'the child of fork() makes no call that starts its trace',
    ('depot', 'flag'): 'a signal handler of the program is not recorded',
    ('depot', 'edge'): 'input that is left in the kernel is not recorded',
}
