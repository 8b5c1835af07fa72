# The data of a grammar: its rules, and the stacks and parser states that texts reach.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from maskwright._engine.containers cimport BlockPool, Edges, SmallVector, Interner, Csr, ScratchIds, SegmentedVector, TextSets
from maskwright._engine.vocabulary cimport Index
from maskwright._engine.lexemes cimport Automaton, LexState
from maskwright._engine.shortest_match cimport UNREACHED

cdef enum:
    LOCAL_PLAIN = 0
    LOCAL_REPEATED = 1
    LOCAL_RECORD = 2
    LOCAL_INDENTED = 3
    # phases of an indented block
    INDENTED_BEFORE = 0
    INDENTED_INSIDE = 1            # `count` is its column, here and behind
    INDENTED_AFTER = 2
    INDENTED_DONE = 3
    # phases of a record
    RECORD_OPEN = 0
    RECORD_FIRST_KEY = 1
    RECORD_COLON = 2
    RECORD_VALUE = 3
    RECORD_AFTER = 4
    RECORD_NEXT_KEY = 5
    RECORD_DONE = 6
    ACCEPT = -1            # return address of the start rule: the text is complete
    NO_STATE = -1
    UNKNOWN = -3           # not computed yet
    NO_KEY = -1            # the lexeme is no other key, or keys may repeat
    ANY_KEY = -2           # it is, but not known
    KEY_ENTRY = 64         # bytes of an entry of Interner, its key apart

cdef struct Call:
    int32_t rule
    int32_t back           # dotted item to return to

cdef struct PlainTerm:
    int32_t automaton      # negative: -1 - terminal of the lexer
    int32_t target         # plain state
    int32_t tag            # that the automaton must accept with; NO_TAG: any

cdef struct Return:
    int32_t local
    int32_t node           # < 0 inside a cycle: -1 - index in the column

cdef struct Item:
    int32_t local
    int32_t node

cdef struct RuleStart:
    int32_t kind           # LOCAL_*
    int32_t index          # plain state, or definition
    int32_t nullable

cdef struct RepeatedDef:
    int32_t first
    int32_t rest
    int32_t low
    int32_t high           # -1: unbounded

cdef struct RecordValue:
    int32_t rule
    uint32_t obligations         # that such a value reaches

cdef struct RecordRegister:
    int32_t position       # the next member; between a key and its value, that member
    int32_t members        # so far, as far as it matters
    uint32_t missing       # obligations
    int32_t used           # other keys that came before: a set of the program's `key_sets`
    int32_t pending        # 1: and one that is not known
    int32_t taken          # in any order: set of members that came before

cdef cppclass RecordDef:
    # Members are numbered in their order; other members follow, a number for each kind.
    vector[int32_t] keys           # automaton, by set of sorts of other members that are allowed; none: values alone
    vector[int32_t] sorts          # by other kind: those that may reach the same obligations are of one sort
    int32_t count                  # members that may occur
    Csr[RecordValue] values       # by member
    vector[uint32_t] absent        # by member: obligations that are reached without it
    vector[int32_t] next_required  # first required member at or after i (count: none)
    vector[int32_t] required_from  # how many are required from i on
    vector[int32_t] key_bytes      # by member: its quoted key
    vector[int32_t] other_key_bytes    # shortest key of each other kind; empty: not known yet
    int32_t least                  # members
    int32_t most                   # -1: any number
    uint32_t obligations
    cbool simple                   # nothing is counted: a register is a position as long as no key is used
    cbool ordered                  # members come in their order; others behind them
    cbool bare                     # keys only: a list of different strings
    cbool unique                   # other keys must not repeat
    vector[vector[char]] taken     # sets of members, by number; the first one is empty
    Interner taken_ids
    SegmentedVector[RecordRegister] registers
    Interner register_ids
    unordered_map[int32_t, char] alive     # by register
    int64_t* held                  # where the bytes of registers and sets of members are counted
    int32_t open
    int32_t close_empty
    int32_t colon
    int32_t comma
    int32_t close

cdef cppclass DottedItem:
    int32_t kind
    int32_t index
    int32_t phase
    int32_t count
    cbool expanded
    cbool final
    cbool pure_final       # final, and nothing else
    SmallVector[LexState*] terms          # start states of the lexemes waited for
    vector[LexState*] tokens        # the same of tokens that stand for themselves
    vector[LexState*] boundaries    # the same of boundaries
    vector[int32_t] terminals       # of the lexer
    vector[uint64_t] terminal_set   # these as bits
    cbool waits_for_line            # what comes next depends on the column of the next line (stacks.pyx)
    cbool may_run_out               # a key that is not known may have been the last one that was left
    SmallVector[Call] calls

cdef cppclass GssNode:
    SmallVector[Return] returns
    int32_t indent         # column of the innermost open block
    cbool cyclic           # a cycle (left recursion) can be reached

cdef cppclass ParserState:
    SmallVector[Item] items
    cbool complete         # the start rule may end here
    cbool may_run_out      # of one of them, a key that is not known may have been the last one
    SmallVector[LexState*] starts
    vector[LexState*] tokens    # of those waited for that stand for themselves
    vector[LexState*] boundaries    # waited for
    cbool has_behind       # whether it is known which are
    vector[int32_t] behind      # the parser states behind boundaries (state_behind_boundaries)
    LexState* lexer        # start of the lexer for the terminals waited for, or NULL
    int32_t plain          # where a text of lines begins: the same state elsewhere, else NO_STATE (state_first_line)
    int32_t indent         # column of the innermost open block
    char opens             # 1: a newline can come next, 2: none, 0: not known yet (state_opens_line)
    uint64_t first[4]
    vector[int32_t] guards  # of the arrays of different items that may begin here, each once
    Edges[int64_t] moves   # (automaton uid << 32 | tag) -> parser state or NO_STATE
    Interner keyed_moves     # the same for keys that must not come again, with the key

cdef cppclass Program:
    # the grammar, as given
    vector[Automaton*] given                 # as they were linked; then
    vector[Automaton*] automata              # with the copies of keysets (keyset_of)
    Automaton* lexer                         # NULL: the grammar has none
    vector[LexState*] terminal_starts        # by terminal of the lexer
    cbool has_tokens                         # that stand for themselves
    cbool has_boundaries
    Index* index
    Csr[PlainTerm] plain_terms
    Csr[Call] plain_calls         # Call.back is a plain state here
    vector[uint8_t] plain_final
    vector[int32_t] plain_guard              # of a rule's first state: that of its array (see Frame), or 0
    vector[RuleStart] rules
    vector[RepeatedDef] repeated
    vector[RecordDef] records
    vector[int32_t] indented                 # the rule inside
    int32_t start_rule
    # everything reached so far
    int64_t held                             # bytes of what nodes and parser states refer to
    int64_t most_bytes                       # of all that is reached, at the end of this operation (program_bytes)
    BlockPool[DottedItem] locals
    Interner dotted_ids
    BlockPool[GssNode] nodes
    Interner node_ids
    Interner cycle_ids       # of nodes that refer to each other: the first one
    BlockPool[ParserState] states
    Interner state_ids
    Interner kernel_ids      # by items before the closure: the parser state, one higher
    unordered_map[int64_t, int32_t] unions
    TextSets key_sets                        # of keys that must not come again, in canonical spelling
    vector[Automaton*] keysets               # copies, for keys that must not come again (keyset_of)
    Edges[int32_t] cycle_first               # by GSS node that is part of a cycle: the first one of it,
    Edges[int32_t] cycle_rule                # and the rule that was called
    vector[int32_t] first_lines              # parser states that state_first_line made
    Column* column                           # scratch (stacks.pyx)

cdef struct ColumnItem:
    int32_t local
    int32_t node           # >= 0: GSS node; < 0: -1 - index of a rule called in this column

cdef cppclass Column:
    # Scratch of a program: its memory is used again for the next column.
    vector[int32_t] rules                  # called here
    ScratchIds index                       # rule -> position in `rules`
    vector[vector[Return]] returns         # by position; Return.node as in ColumnItem; may be longer than `rules`
    size_t called                          # return addresses in all of them
    vector[int32_t] resolved               # GSS node, or NO_STATE
    vector[ColumnItem] kept
    vector[ColumnItem] work
    ScratchIds seen
    cbool complete
    vector[Item] kernel                    # of state_advance
    vector[int32_t] locals
    # of column_resolve, by position
    vector[int32_t] found                  # in which order, from 1; 0: not yet
    vector[int32_t] lowest                 # the earliest that it returns to, as far as known
    vector[size_t] edge                    # the return to look at next
    vector[size_t] path
    vector[size_t] open                    # found, and in no set yet
    vector[size_t] members                 # of one set

cdef cppclass Costs:
    vector[int32_t] rules
    unordered_map[int32_t, int32_t] nodes      # GSS node -> bytes after its rule ends
    unordered_map[int64_t, int32_t] lexemes    # LexState* -> bytes of the shortest match from it
    unordered_map[int32_t, int32_t] behind     # parser state -> bytes behind the lexeme that begins there, at least
    Interner embedded                            # LexState* and parser state -> bytes of both, where no lexer reads the lexeme
    unordered_map[int32_t, int32_t] plain      # plain state -> bytes to the end of its rule, once rules are known
    cbool settled                              # rules are known
    unordered_map[int64_t, int32_t] tagged     # automaton uid << 32 | tag -> the same with that tag, from its start


cdef inline int32_t cost_add(int64_t a, int64_t b) noexcept nogil:
    return <int32_t>(a + b) if a + b < UNREACHED else UNREACHED
