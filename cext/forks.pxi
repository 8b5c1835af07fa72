# Child processes that are forked.
#
# A child has one thread.  What others were doing when it was forked nobody ends there, so a fork waits until the operations of
# all vocabularies are over: their tables are whole, and in the child all locks are free.  Waiting, it lets the interpreter go.
# Matchers that another thread was using stay in use in the child: they are that thread's.

import os
from weakref import WeakKeyDictionary

cdef object _indexes = WeakKeyDictionary()      # all of this process, by when they were made
cdef int64_t _made = 0
cdef list _locked = []                          # while a fork is under way


cdef int forks_know(TokenIndex owner) except -1:
    global _made
    _made += 1
    _indexes[owner] = _made
    return 0


def _before_fork():
    global _locked
    cdef TokenIndex owner
    cdef list locked = []
    cdef set known = set()
    while True:
        # In one order, so that two forks do not wait for each other; some may be made while others are waited for.
        fresh = sorted([(number, owner) for owner, number in list(_indexes.items()) if number not in known])
        if not fresh:
            break
        for number, owner in fresh:
            known.add(number)
            locked.append(owner)
            with nogil:
                owner.index.lock.lock()
    _locked = locked


def _after_fork_in_parent():
    global _locked
    cdef TokenIndex owner
    for owner in _locked:
        owner.index.lock.unlock()
    _locked = []


def _after_fork_in_child():
    global _locked, _main_thread
    cdef TokenIndex owner
    for owner in list(_indexes):
        lock_anew(owner.index.lock)
    _locked = []
    _main_thread = PyThread_get_thread_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
# Made now, so that no fork can come while another thread makes them.
Pool.instance()
Reaper.instance()
