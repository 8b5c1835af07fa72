# distutils: language = c++
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, freethreading_compatible=False
"""The engine: flat arrays in, token masks out.

One extension module, read in data-flow order:

    threads.pxi  locks, time limits, the pool of threads
    trie.pxi     the vocabulary as a prefix tree in depth-first order
    index.pxi    the same by character
    slices.pxi   tokens over a set of characters
    codes.pxi    lexemes: lazily determinised automata over code points
    lexer.pxi    lexer states
    spelling.pxi how code points are spelled as bytes (UTF-8, quoted strings)
    keyset.pxi   sets of quoted keys, as lexemes
    residuals.pxi what is left of tokens that run past the end of a lexeme
    lexsets.pxi  sets of lexer states, and where all tokens lead from them
    nearest.pxi  shortest matches of automata with too many states to be looked through
    lexmask.pxi  what a lexer state alone says about every token (context-independent)
    home.pxi     the same from slices, for states that loop on many characters
    words.pxi    many texts as one lexeme
    lexing.pxi   the lexer of a grammar that has one: terminals, watches, samples
    lexingends.pxi  where its lexemes can be left
    lexingmask.pxi  what a state of such a lexer says about every token
    lexingruns.pxi  what is behind the terminals that end in it
    lexingparts.pxi  what is shared by all states that lead into one loop
    parser.pxi   rules: what each place inside a rule waits for
    record.pxi   the same for records: members by key, counted, with goals
    stacks.pxi   interned stacks and parser states
    indent.pxi   blocks of lines in one column
    values.pxi   values as numbers, equal ones as equal numbers
    tracker.pxi  what has been read of an array of different items
    items.pxi    the items that came, and which of them the next one may still be
    groups.pxi   the same of arrays and objects
    framemask.pxi  what residuals do inside one rule, whatever is around it
    masks.pxi    interned matcher states and their masks (context-dependent tokens)
    step.pxi     how threads read a byte
    tokens.pxi   how they read a token that stands for itself
    lexed.pxi    the same of a grammar that has a lexer
    costs.pxi    what the cheapest way out of each state costs
    shortest.pxi shortest completions and forced bytes
    alive.pxi    the same with a lexer: which threads can be completed
    endless.pxi  strings under way that can always become new ones
    distinct.pxi states inside arrays of different items: whether they can be completed, masks
    distinctout.pxi  ways out of them
    generations.pxi  keeping what texts reached below a number of bytes
    tasks.pxi    what grows with a text, moved to another generation in small steps
    move.pxi     matchers that go on there
    past.pxi     what a matcher has read, and where it can go back to
    evict.pxi    keeping cached masks below a number of bytes
    bitmask.pxi  rows of the caller's bitmask
    engine.pxi   the Python class of a vocabulary
    forks.pxi    locks in child processes
    compiled.pxi the Python class of a grammar
    numbers.pxi  numbers that callers give
    maskview.pxi a mask as a read-only buffer
    known.pxi    masks and edges, known ones and new ones
    pool.pxi     how many threads share rows
    trees.pxi    draft trees: which nodes are legal, what may follow them
    matcher.pxi  the Python class of a sequence
    content.pxi  what automata, tables and matchers were made of, to make equal ones elsewhere; stopping a thread
    tracing.pxi  how a text is read, thread by thread: for occurrences of symbols
    sets.pxi     states of many texts at once, for texts with gaps
    setstacks.pxi stacks of many texts, merged
    frames.pxi   what tokens do inside one rule, whatever is around it
    lexedsets.pxi the same of a grammar that has a lexer
    setbytes.pxi what they take, and their limit
    statesets.pxi their Python class
    batch.pxi    masks of many sequences at once
    cut.pxi      logits of many sequences, cut by their masks

Functions carry the prefix of their part (trie_, code_, lex_, lexmask_, parse_, mask_), and a part calls
only those above it.  Everything a text can reach is interned and immutable once published.
"""

# Classes whose __dealloc__ needs what they refer to carry no_gc_clear: the collector must not clear it first.
cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from cython.operator cimport dereference
from libcpp cimport bool as cbool
from libcpp.algorithm cimport binary_search, lower_bound, sort
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from libcpp.utility cimport move
from libcpp.vector cimport vector

from maskwright.base.cpus import available_cpus
from maskwright.errors import (
    BitmaskError,
    GrammarError,
    LimitError,
    MaskwrightError,
    UnsatisfiableError,
    VocabularyError,
)

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil

cdef extern from "tables.hpp" namespace "maskwright" nogil:
    cdef cppclass KeyIds:
        int32_t find(const string&)        # -1: not there
        int32_t find(const void*, size_t)
        void insert(const string&, int32_t)
        void insert(const void*, size_t, int32_t)
        void clear()
        size_t bytes()
    cdef cppclass ScratchIds:
        int32_t find(int64_t)              # -1: not there
        void insert(int64_t, int32_t)
        void clear()
        void drop()
        size_t bytes()
    cdef cppclass Edges[K]:
        int32_t find(K)                    # -3: not there
        void insert(K, int32_t)
        void clear()
        size_t count()
        size_t bytes()

cdef extern from "steady.hpp" namespace "maskwright" nogil:
    cdef cppclass Steady[T]:
        size_t size()
        bint empty()
        T& operator[](size_t)
        void push_back(const T&)
        size_t bytes()
    cdef cppclass Renumbered:
        int32_t find(int32_t)              # -3: not there
        void insert(int32_t, int32_t)

cdef extern from "digest.hpp" namespace "maskwright" nogil:
    cdef cppclass Digests:
        @staticmethod
        string of(const string&)

cdef extern from "textsets.hpp" namespace "maskwright" nogil:
    cdef cppclass TextSets:
        int32_t name(const string&)
        string named(int32_t)
        int32_t with_text "with"(int32_t, const string&)
        int32_t with_note "with"(int32_t, const string&, int32_t)
        int32_t of(const vector[pair[string, int32_t]]&)
        int32_t count(int32_t)
        bint ends(int32_t, int32_t)
        int32_t note(int32_t, int32_t)
        bint step(int32_t&, int32_t&, uint8_t)
        void next(int32_t, int32_t, vector[uint8_t]&)
        void rests(int32_t, int32_t, vector[string]&)
        size_t children(int32_t)
        int32_t child(int32_t, size_t)
        int32_t own_note(int32_t)
        int32_t moved(int32_t, int32_t, TextSets&, const Renumbered&)
        size_t bytes()

cdef extern from "rows.hpp" namespace "maskwright" nogil:
    cdef cppclass Strip[T]:
        size_t size()
        bint empty()
        T* begin()
        T* end()
        T& operator[](size_t)
    cdef cppclass Rows[T]:
        size_t size()
        Strip[T] operator[](size_t)          # valid until a row is added
        void push_back(const vector[T]&)
        void append(const Rows[T]&)
    Rows[T] by_owner[T](size_t, const vector[pair[int32_t, T]]&)

cdef extern from "blocks.hpp" namespace "maskwright" nogil:
    cdef cppclass Few[T]:
        void assign(const vector[T]&)
        size_t size()
        bint empty()
        T* begin()
        T* end()
        T& operator[](size_t)
        void push_back(T)
        vector[T] copied()
        size_t bytes()
    cdef cppclass Blocks[T]:
        size_t size()
        T* operator[](size_t)
        T* add()
        bint drop()

include "plain.pxi"
include "threads.pxi"
include "trie.pxi"
include "codes.pxi"
include "index.pxi"
include "slices.pxi"
include "lexer.pxi"
include "spelling.pxi"
include "keyset.pxi"
include "residuals.pxi"
include "lexsets.pxi"
include "nearest.pxi"
include "lexmask.pxi"
include "home.pxi"
include "keywalk.pxi"
include "words.pxi"
include "lexing.pxi"
include "lexingends.pxi"
include "lexingmask.pxi"
include "lexingruns.pxi"
include "lexingparts.pxi"
include "parser.pxi"
include "record.pxi"
include "columns.pxi"
include "stacks.pxi"
include "indent.pxi"
include "values.pxi"
include "tracker.pxi"
include "items.pxi"
include "groups.pxi"
include "framemask.pxi"
include "masks.pxi"
include "step.pxi"
include "tokens.pxi"
include "opening.pxi"
include "lexed.pxi"
include "costs.pxi"
include "shortest.pxi"
include "alive.pxi"
include "twins.pxi"
include "endless.pxi"
include "distinct.pxi"
include "distinctout.pxi"
include "generations.pxi"
include "tasks.pxi"
include "move.pxi"
include "past.pxi"
include "evict.pxi"
include "bitmask.pxi"
include "explain.pxi"
include "segments.pxi"
include "engine.pxi"
include "forks.pxi"
include "compiled.pxi"
include "numbers.pxi"
include "maskview.pxi"
include "known.pxi"
include "pool.pxi"
include "trees.pxi"
include "matcher.pxi"
include "content.pxi"
include "tracing.pxi"
include "sets.pxi"
include "setstacks.pxi"
include "frames.pxi"
include "lexedsets.pxi"
include "setbytes.pxi"
include "openingsets.pxi"
include "statesets.pxi"
include "batch.pxi"
include "cut.pxi"
