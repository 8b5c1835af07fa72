# Child processes that are forked.
#
# A child has one thread.  What others were doing when it was forked nobody ends there, so a fork waits until the operations of
# all vocabularies are over: their tables are whole, and in the child all locks are free.  Waiting, it lets the interpreter go.
# Matchers that another thread was using stay in use in the child: they are that thread's.

import os

cdef vector[void*] _indexes         # every TokenIndex until it is freed, the oldest first
cdef list _locked = []              # while a fork is under way


cdef void forks_know(TokenIndex owner) noexcept:
    _indexes.push_back(<void*>owner)


cdef void forks_forget(TokenIndex owner) noexcept:
    cdef size_t i
    for i in range(_indexes.size()):
        if _indexes[i] == <void*>owner:
            _indexes.erase(_indexes.begin() + i)
            break


def _before_fork():
    global _locked
    cdef TokenIndex owner
    cdef list locked = []
    cdef set known = set()
    cdef size_t i = 0
    # The oldest first, so that two forks do not wait for each other; while one is waited for, others come and go.
    while i < _indexes.size():
        owner = <TokenIndex>_indexes[i]
        i += 1
        if id(owner) not in known:
            known.add(id(owner))
            locked.append(owner)
            with nogil:
                owner.index.lock.lock()
            i = 0
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
    cdef size_t i
    for i in range(_indexes.size()):
        owner = <TokenIndex>_indexes[i]
        lock_anew(owner.index.lock)
    _locked = []
    _main_thread = PyThread_get_thread_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
# Made now, so that no fork can come while another thread makes them.
Pool.instance()
Reaper.instance()
