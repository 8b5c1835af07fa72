# The data of states of many texts.

from libc.stdint cimport int32_t, int64_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from maskwright._engine.containers cimport Interner
from maskwright._engine.vocabulary cimport Residual
from maskwright._engine.trie cimport Trie
from maskwright._engine.lexemes cimport Ended, Hypothesis, LexSet, LexState
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

cdef cppclass EndedRest:
    # What is left of tokens behind a terminal.
    int32_t tag
    LexState* lookahead            # as far as it is still alive behind the first byte
    vector[uint32_t] nodes         # where it begins, in the trie that was walked
    const Trie* trie               # that, or one that stands for all these nodes: there,
    uint32_t first                 # nodes [first, last)
    uint32_t last

cdef cppclass TokenEnds:
    # Where tokens end for a lexer (lexed_sets.pyx).
    vector[Hypothesis] inside      # in the terminal,
    vector[Ended] ended            # with it,
    vector[EndedRest] rests        # or behind it

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
    # with a lexer (lexed_sets.pyx)
    unordered_map[string, TokenEnds*] ends                # by trie, first node, lexer state and lookahead
    unordered_map[string, TokenEnds*] ends_below          # the same of a node and those below, where the lexer is behind its byte
    unordered_map[string, Trie*] joined_rests             # by trie and nodes
    Interner after                                          # by thread: its place in `threads`
    vector[vector[Thread]] threads                        # behind all tokens
    unordered_map[int32_t, int32_t] any                   # by matcher state
    vector[vector[Thread]] levels                         # scratch of walks, by depth

cdef cppclass Reach:
    vector[Part] parts
    vector[Residual*] rests        # of tokens that ended the rule
