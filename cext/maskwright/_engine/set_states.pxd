# The data of states of many texts.

from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from maskwright._engine.containers cimport Interner
from maskwright._engine.vocabulary cimport Residual
from maskwright._engine.lexemes cimport LexSet
from maskwright._engine.core cimport Thread

cdef enum:
    SET_BASE = 1 << 30     # states of many texts have numbers from here on, those of one text below

cdef struct Part:
    LexSet* lexes          # NULL: before a lexeme
    int32_t parser

cdef cppclass SetState:
    vector[Part] parts             # sorted
    cbool accepting
    int32_t any                    # behind any token; UNKNOWN
    vector[int32_t] bytes          # behind a byte; UNKNOWN; empty: none known

cdef cppclass Sets:
    cbool full                                            # above `max_set_bytes` (set_stacks.pyx)
    cbool gone                                            # what they refer to: nothing can be asked
    int64_t releases                                      # of memory that was set aside (attempt.hpp), before this operation
    int64_t held                                          # bytes of what states and reaches refer to
    vector[SetState*] states
    Interner ids
    unordered_map[int32_t, int32_t] single                # by matcher state
    unordered_map[int64_t, int32_t] joined                # by two states
    unordered_map[int32_t, vector[LexSet*]] starts        # by parser state
    unordered_map[int32_t, int32_t] plain                 # by GSS node: that of different return addresses
    unordered_map[int64_t, int32_t] unions                # of two such
    unordered_map[string, int32_t] merged                 # by GSS nodes with cycles; UNDER_WAY
    unordered_map[int32_t, vector[int32_t]] parts         # of merged nodes with cycles: what they stand for
    unordered_map[string, int32_t] parsers                # by parser states
    unordered_map[int64_t, int32_t] narrowed              # parser states, by parser state and automaton
    # frames (frames.pyx)
    unordered_map[int32_t, int32_t] behind                # parser states, by GSS node
    unordered_map[int64_t, int32_t] put_nodes             # by GSS node and bottom; UNDER_WAY
    unordered_map[int64_t, int32_t] put_states            # by parser state and bottom
    vector[Reach*] reaches
    unordered_map[int64_t, int32_t] walked                # by parser state and residual
    unordered_map[int64_t, int32_t] frame_walks           # by dotted item and residual
    Interner frame_reads                                    # by set of lexer states and dotted item
    # with an opening (sets.pyx)
    int32_t opening_any                                   # behind any token at the very start; UNKNOWN
    vector[int32_t] mixed                                 # by number of a mixed state: the state of the others
    unordered_map[int32_t, int32_t] mixed_ids             # the reverse
    # with a lexer (sets.pyx)
    Interner after                                          # by thread: its place in `threads`
    vector[vector[Thread]] threads                        # behind all tokens
    unordered_map[int32_t, int32_t] any                   # by matcher state
    vector[vector[Thread]] levels                         # scratch of walks, by depth

cdef cppclass Reach:
    vector[Part] parts
    vector[Residual*] rests        # of tokens that ended the rule
