# A vocabulary's tokens, laid out once; and what a fork of the process does to all of them.

import os

from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.limits cimport deferred_free_finish, main_thread_is_this
from maskwright._engine.trie cimport Trie, trie_build, TrieNode
from maskwright._engine.vocabulary cimport Index
from maskwright._engine.char_index cimport index_build, index_free
from maskwright._engine.residuals cimport residuals_free


cdef class TokenIndex:
    """The C++ side of a vocabulary; outlives everything that was computed from it."""

    def __cinit__(self):
        self.index = NULL

    def __dealloc__(self):
        if self.index != NULL:
            forks_forget(self)
            deferred_free_finish(self.index)
            residuals_free(self.index)
            index_free(self.index)

    cdef int build(self, list tokens, trie_arrays) except -1:
        cdef bytes data = b"".join(tokens)
        cdef bytes nodes = b"", ids = b""
        cdef const char* data_at = data
        cdef const char* nodes_at
        cdef const char* ids_at
        cdef size_t data_size = len(data), node_count, id_count
        cdef int64_t at = 0
        self.starts.reserve(len(tokens) + 1)
        for token in tokens:
            self.starts.push_back(at)
            at += len(token)
        self.starts.push_back(at)
        if trie_arrays is None:
            build_trie(&self.trie, dict(enumerate(tokens)))
        else:
            nodes, ids = trie_arrays
            if len(nodes) % sizeof(TrieNode) or len(ids) % sizeof(int32_t):
                raise ValueError("these are no arrays of a trie")
        nodes_at, node_count = nodes, len(nodes) // sizeof(TrieNode)
        ids_at, id_count = ids, len(ids) // sizeof(int32_t)
        # Megabytes, of which each page is touched for the first time: others have their turns meanwhile.
        with nogil:
            self.data.resize(data_size)
            memcpy(self.data.data(), data_at, data_size)
            if node_count:
                self.trie.nodes.resize(node_count)
                memcpy(self.trie.nodes.data(), nodes_at, node_count * sizeof(TrieNode))
                self.trie.tokens.resize(id_count)
                memcpy(self.trie.tokens.data(), ids_at, id_count * sizeof(int32_t))
        self.index = new Index()
        with nogil:
            index_build(self.index, &self.trie, (self.starts.size() + 30) // 32)
        self.index.opening = NULL
        self.index.token_data = self.data.data()
        self.index.token_starts = self.starts.data()
        forks_know(self)
        return 0

    cdef int build_opening(self, dict start_tokens, cbool stays) except -1:
        cdef int32_t token
        cdef bytes data
        self.opening.stays = stays
        self.opening.marked.resize(self.index.words, 0)
        for token in range(<int32_t>self.starts.size() - 1):
            self.opening.starts.push_back(<int64_t>self.opening.data.size())
            data = start_tokens.get(token)
            if data is None:
                continue
            self.opening.marked[<size_t>token >> 5] |= (<uint32_t>1) << (token & 31)
            if not data:
                self.opening.silent.push_back(token)
            for byte in data:
                self.opening.data.push_back(byte)
        self.opening.starts.push_back(<int64_t>self.opening.data.size())
        build_trie(&self.opening.trie, start_tokens)
        self.index.opening = &self.opening
        return 0


cdef int build_trie(Trie* trie, dict tokens) except -1:
    # The trie of bytes by id, but those of none.
    cdef list order = [i for i, token in tokens.items() if token]
    order.sort(key=tokens.__getitem__)
    cdef list ordered = [tokens[i] for i in order]
    cdef bytes data = b"".join(ordered)
    cdef vector[int64_t] starts
    cdef vector[int32_t] ids
    cdef int64_t at = 0
    for token in ordered:
        starts.push_back(at)
        at += len(token)
    starts.push_back(at)
    for i in order:
        ids.push_back(i)
    cdef const uint8_t* data_at = <const uint8_t*><const char*>data
    with nogil:
        trie_build(trie, data_at, starts.data(), ids.data(), <int64_t>ids.size())
    return 0


# --- Child processes that are forked.
#
# A child has one thread.  What others were doing when it was forked nobody ends there, so a fork waits until the operations of
# all vocabularies are over: their tables are whole, and in the child all locks are free.  Waiting, it lets the interpreter go.
# Matchers that another thread was using stay in use in the child: they are that thread's.

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
                owner.index.forks = True
                while owner.index.away > 0:
                    owner.index.lock.stand_back()
            i = 0
    _locked = locked


def _after_fork_in_parent():
    global _locked
    cdef TokenIndex owner
    for owner in _locked:
        owner.index.forks = False
        owner.index.lock.unlock()
    _locked = []


cdef int64_t _forks = 0


cdef int64_t forks_passed() noexcept:
    # From the first process to this one: a thread that began something before the last is not here any more.
    return _forks


def _after_fork_in_child():
    global _locked, _forks
    cdef TokenIndex owner
    cdef size_t i
    for i in range(_indexes.size()):
        owner = <TokenIndex>_indexes[i]
        owner.index.lock.renew()
        owner.index.forks = False
    _locked = []
    _forks += 1
    main_thread_is_this()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
