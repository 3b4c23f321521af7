"""hang.py: two threads of Python wait for each other's lock; prints "ready" when both are about to wait.

SPDX-License-Identifier: ISC"""
import threading

accounts, journal = threading.Lock(), threading.Lock()
both_have_one = threading.Barrier(3)


def transfer(first, second):
    with first:
        both_have_one.wait()

        with second:  # the line of the deadlock
            pass


def pay(first, second):
    transfer(first, second)


threads = [threading.Thread(target=pay, args=locks, daemon=True) for locks in ((accounts, journal), (journal, accounts))]
for thread in threads:
    thread.start()
both_have_one.wait()
print('ready', flush=True)
threads[0].join()
