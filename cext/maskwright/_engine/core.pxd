# The data of a compiled grammar on a vocabulary: threads, matcher states, masks, and how an operation ended.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.atomic cimport atomic
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from maskwright._engine.containers cimport BlockPool, Edges, Interner, Renumbered
from maskwright._engine.trie cimport Trie
from maskwright._engine.vocabulary cimport Bits, Index
from maskwright._engine.lexemes cimport LexState
from maskwright._engine.program cimport Costs, Program
from maskwright._engine.tracked cimport Tracker

cdef enum:
    TERMINATED = -2                # behind EOS

cdef enum:
    OUTCOME_GOOD = 0
    OUTCOME_PARSER_STATES = 1
    OUTCOME_LEXER_STATES = 2
    OUTCOME_LATE = 3
    OUTCOME_SEARCH = 4
    OUTCOME_SET_BYTES = 5
    OUTCOME_MEMORY = 6
    OUTCOME_SETS_GONE = 7
    OUTCOME_INTERRUPTED = 8
    OUTCOME_BYTES = 9

cdef struct Thread:
    LexState* lex
    LexState* lookahead        # what must not match from here on (longest_match.pyx), or NULL
    int32_t parser
    int32_t memory             # what it remembers of the bytes that it has read (tracked.pxd)

cdef cppclass Mask:
    Bits* bits                     # start from these, when not NULL
    vector[int32_t] base           # then set these
    vector[int32_t] removed        # then clear these
    vector[int32_t] added          # then set these

cdef cppclass MatcherState:
    vector[Thread] threads
    cbool accepting
    atomic[cbool] used             # its mask, since the hand came by (generations.pyx); readers note it together
    Mask* mask
    Edges[int32_t] edges           # the state behind a token, or NO_STATE

cdef cppclass OpenGroup:
    # Tokens that are allowed if any of some threads can be completed, which takes a search (lexed_masks.pyx).
    vector[Thread] threads
    vector[int32_t] tokens

cdef cppclass FrameMask:
    cbool whole                    # else it depends on the context: residuals are walked over the real stack
    vector[int32_t] tokens
    vector[uint32_t] ends          # nodes with others below

cdef cppclass RestFacts:
    # What may come, as bits (rest_facts.pyx).
    vector[uint64_t] plain         # by plain state: in the rest of its rule; empty: not known
    vector[uint64_t] rules
    unordered_map[int32_t, uint64_t] nodes     # by GSS node: behind a return to it, the boundaries alone

cdef cppclass CrossingTokens:
    # The tokens that may run over some boundaries (boundaries.pyx).
    uint64_t over
    Trie trie

cdef cppclass CoreFacts:
    # What was found out, which stays true.
    Interner alive                 # whether it can be completed, by thread (alive.pyx, distinct.pyx): 1 or 0
    Interner shut_in               # what cannot be left for a terminal, by lexer states (alive.pyx)
    Interner embedded              # whether all that comes behind a rule can be completed, by GSS node (alive.pyx): 1 or 0
    RestFacts rests
    vector[char] free              # by plain state: whether terminals without clashes lead to the end of its rule (clash_free.pyx)
    vector[char] free_rules        # the same by rule
    vector[char] free_nodes        # by GSS node: whether they lead from a return to it to the end of the text
    unordered_map[int32_t, vector[int32_t]] free_next   # by parser state: the terminals that begin such a way; the last one is none
    unordered_map[int32_t, vector[int32_t]] free_behind # the same: the terminals behind which there is one
    unordered_map[int64_t, vector[LexState*]] free_ends # by lexer state: the next ones in which the lexeme may end; the last one is NULL
    Edges[int64_t] free_threads    # whether there is such a way as far as a look tells, by parser state << 32 | lexer state: 1 or 0
    cbool looks_behind             # the search under way is for `embedded`
    Interner careless              # whether a string may become any, by what is behind it (distinct.pyx)
    Interner powers                # whether a number may get an exponent, by lexer state (distinct.pyx)
    Interner endless               # whether every text can be made longer without end, by DFA state (distinct.pyx)

cdef cppclass FrameMasks:
    # Masks of frames, by dotted item (frame_masks.pyx).
    vector[FrameMask*] all
    Interner ids
    unordered_map[int32_t, int32_t] states     # the parser state of a frame
    int32_t bottom                 # GSS node of frames, or UNKNOWN

cdef cppclass LexedRest:
    # A part of a mask of the lexer that is looked at over each stack (lexed_masks.pyx).
    vector[int32_t] steps          # from the mask to the part
    vector[int64_t] serials        # by step: of the mask that it led to, if it was behind a terminal
    int32_t group                  # of the part, or -1: all of a run
    int32_t run
    vector[int32_t] holes

cdef cppclass LexedPlan:
    # What a mask of the lexer allows over all stacks with one top.
    Mask mask
    vector[LexedRest] rests
    vector[int32_t] steps          # while it is made: to the part that is looked at
    vector[int64_t] serials

cdef cppclass LexedPlans:
    vector[LexedPlan*] all         # NULL: it was asked for once
    vector[LexedPlan*] old         # made anew meanwhile
    int64_t made
    int64_t used                   # again
    Interner ids
    vector[Renumbered] nodes       # by how many are left: GSS node -> with its stack cut
    Renumbered states              # parser state -> with its stacks cut

cdef cppclass MaskScratch:
    # Of the mask under way.
    cbool walks                    # keys are read without telling which they are (mask_walk)
    vector[vector[Thread]] stack   # by depth of the walk
    vector[OpenGroup] open

cdef struct CoreLimits:
    # Of one operation.
    int64_t max_states
    int64_t max_lexer_states
    int64_t max_bytes
    int64_t max_search
    int64_t max_set_bytes          # of sets of texts (set_stacks.pyx)
    double max_seconds

cdef cppclass Generation:
    # Which one a core is, who is in it, and when the next one begins (generations.pyx).
    int64_t number
    int64_t holders                # the grammar, and matchers and others that are in it
    void* matchers                 # one of these matchers, which knows the next one; or NULL
    void* mover                    # what takes them to another generation (tasks.pyx), or NULL: nobody went yet
    int64_t room                   # bytes that it may have before the grammar begins another one; 0: any number
    int64_t live                   # of these, what there was at first and what moved into it
    atomic[cbool] overgrown        # it has more; written under the lock, read without it: a hint, which may come late
    atomic[int64_t] look_above     # states of the vocabulary's largest automaton; then its own are looked at

cdef cppclass Core:
    # One compiled grammar on one vocabulary.
    Program* program
    Costs* costs
    Index* index
    void* handles                  # a list of the handles of its automata, which it keeps
    size_t words                   # of a mask row
    vector[int32_t] eos
    BlockPool[MatcherState] states
    Interner state_ids
    int32_t start                  # the state of the empty text, and
    int32_t opening                # the one at the very start, where tokens stand for something else; or UNKNOWN
    int32_t begin                  # that of these in which matchers begin
    int64_t edges                  # of tokens, from all states
    int64_t set_states             # of many texts (sets.pyx)
    Tracker tracker
    CoreFacts facts
    FrameMasks frames
    LexedPlans plans
    BlockPool[CrossingTokens] crossing
    MaskScratch scratch
    CoreLimits limits
    Generation generation
    cbool away                     # an operation has let others in (turns.pyx), unless there is a lexer, which says so then

cdef struct Outcome:
    int32_t kind
    double given


cdef inline Thread thread_at(int32_t parser, LexState* lookahead) noexcept nogil:
    cdef Thread thread
    thread.lex = NULL
    thread.lookahead = lookahead
    thread.parser = parser
    thread.memory = 0
    return thread
