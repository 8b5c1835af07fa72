from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from maskwright._engine.containers cimport Interner
from maskwright._engine.lexemes cimport Automaton, Ended, Hypothesis, LexMask, LexState, MaskTable, NO_TAG, Run, Skipped
from maskwright._engine.lexeme_texts cimport LEX_DEAD
from maskwright._engine.lexeme_state cimport lex_next

cdef cppclass LexerPlace:
    LexState* alone                # nothing but this state is left: then the lists are not filled; else NULL
    vector[Hypothesis] hypotheses
    vector[Ended] ended
    LexState* shadow               # where the part of the piece stands that holds here, or NULL
    size_t piece
    cbool outer                    # the piece is that of a mask that this one is shared by
    int32_t top                    # depth of the node at which the piece begins
    uint32_t next                  # children that are not done: nodes [next, last), or positions
    uint32_t last                  # in `child_nodes` where some are skipped
    Skipped* skipped               # then

cdef cppclass LexerSamples:
    # What rows of samples show (longest_match_samples.pyx).
    vector[string] texts           # by terminal; empty: none
    vector[string] gaps            # ignored texts that may stand before every terminal, or if there is none, before some; placed: of all ignored ones
    vector[vector[char]] serves    # by gap and terminal: it may come between this one and any that it may come behind
    vector[vector[int32_t]] next   # by terminal: those that may come behind it, and behind ignored text if it is such
    vector[char] opens             # by terminal: a lexeme that no lexer reads may come behind it; empty: none comes anywhere
    uint64_t first[4]              # the bytes with which such lexemes begin
    cbool safe
    vector[pair[int32_t, int32_t]] clashes     # terminals whose samples in a row are not read as what they are
                                               # (the second NO_TAG: the first alone is not); none when safe
    vector[pair[int32_t, int32_t]] avoided     # such that need not occur
    vector[char] unread            # by terminal: another one may come in place of its sample, where the grammar can do without it
    vector[char] clean             # by terminal: it is in no clash as the first one, not even in one that is avoided

cdef cppclass LexerMasks:
    # Masks, and what they are made of (longest_match_mask.pyx).
    unordered_map[int64_t, LexMask*] masks     # by lexer state and start (lexer_mask)
    unordered_map[int64_t, LexMask*] parts     # by loop and trie node (lexer_part)
    unordered_map[int64_t, LexMask*] looked_ahead   # by lookahead (lexer_lookahead_mask)
    unordered_map[int64_t, char] pairs         # lexer state and lookahead (lexer_pair_verdict)
    unordered_map[int64_t, char] harmless      # by lookahead, and the terminal that it has read (lookahead_is_harmless)
    MaskTable shares                           # by node and place (lexer_share)
    unordered_map[string, Run*] runs           # by crossings (lexer_run)

cdef cppclass RefusalGuard:
    # Texts that a terminal refuses, but not beside some others (maskwright.regular.refusals).
    int32_t start                  # NFA state where they begin
    int32_t owner
    vector[int32_t] unless

cdef cppclass Lexer:
    # as given (maskwright.ir.grammar.Lexing)
    vector[int32_t] first          # by terminal: NFA state where it begins
    vector[RefusalGuard] guards    # what begins there only beside some terminals and not beside others
    vector[char] ignored           # by tag; the one behind the terminals stands for a match of none
    vector[int32_t] ignored_ones
    cbool placed                   # ignored terminals begin only where they are waited for (Lexing.placed)
    vector[vector[int32_t]] follow # contexts: sets of terminals of which each parser state waits for a part; none: not known
    vector[int32_t] after          # by context: what it is behind, or -1
    vector[vector[int32_t]] beside # by terminal, then: the ignored ones that are waited for wherever it is
    int32_t newline                # terminal that tells columns (stacks.pyx), or -1
    int32_t line_break             # the one that stands for it between brackets, or -1
    int32_t columns                # in which a line can begin: those below
    int32_t quote                  # the one around a text of lines, or -1: a line begins behind it, and it may end any line
    # by NFA state: whether it is
    vector[char] skips             # of an ignored terminal,
    vector[char] useful            # on the way to a match of some terminal,
    vector[char] lines             # of the newline
    vector[LexState*] starts       # by set of terminals
    Interner start_ids
    LexState* every                # before any terminal
    LexerSamples samples
    LexerMasks cache
    vector[LexerPlace] path        # scratch of walks, by depth
    cbool stops                    # whether they stop where an ignored terminal ends
    vector[void*] loop_path        # the same of walks in a self-loop: LexState*
    cbool away                     # an operation of a grammar with this lexer has let others in (turns.pyx)

cdef void terminal_sets(const uint8_t* rows, size_t size, size_t count, vector[vector[int32_t]]& out) noexcept nogil
cdef LexState* lexer_begin(Automaton* automaton, const vector[int32_t]& terminals) noexcept nogil
cdef LexState* lexer_start(Automaton* automaton, vector[int32_t]& terminals) noexcept nogil
cdef LexState* lexer_start_set(Automaton* automaton, vector[uint64_t]& bits) noexcept nogil
cdef cbool lexer_skips(const LexState* state) noexcept nogil
cdef LexState* lookahead_join(LexState* lookahead, LexState* ended) noexcept nogil
cdef cbool lookahead_passes(LexState* lookahead, const string& text) noexcept nogil
cdef cbool lexer_opens(LexState* ended, int32_t terminal) noexcept nogil
cdef cbool lookahead_passes_terminal(LexState* lookahead, int32_t terminal) noexcept nogil
cdef cbool serves_all(const Lexer* lexer, const vector[char]& serves) noexcept nogil
cdef cbool lexer_gap_passes(LexState* lookahead) noexcept nogil
cdef cbool lexer_follows(LexState* ended, int32_t behind) noexcept nogil
cdef cbool lexer_look_leaves(LexState* state) noexcept nogil
cdef cbool lexer_look_closes(LexState* start) noexcept nogil
cdef cbool lexer_look_never(LexState* lex) noexcept nogil
cdef char lexer_pair_verdict(LexState* start, LexState* ahead) noexcept nogil
cdef cbool lexer_is_sure(const Hypothesis& each) noexcept nogil


cdef inline Lexer* lexer_of(const Automaton* automaton) noexcept nogil:
    return <Lexer*>automaton.lexer


cdef inline int32_t column_tag(const Lexer* lexer, int32_t column) noexcept nogil:
    # Of a newline behind which a line begins in a column.
    return <int32_t>lexer.first.size() + column if column > 0 else lexer.newline


cdef inline cbool lexer_leaves(LexState* state) noexcept nogil:
    # Of a safe lexer: whether the lookahead that begins here lets something pass in any context.
    return state.leaves == 1 if state.leaves != 0 else lexer_look_leaves(state)


cdef inline cbool lexer_closes(LexState* state) noexcept nogil:
    # Of a safe lexer: whether the lexeme under way can be completed in any context.
    return state.closes == 1 if state.closes != 0 else lexer_look_closes(state)


cdef inline cbool lexer_never(LexState* state) noexcept nogil:
    # Whether only a match of no terminal is possible any more.
    return state.hopeless == 1 if state.hopeless != 0 else lexer_look_never(state)


cdef inline void terminals_add(vector[uint64_t]& terminals, int32_t terminal) noexcept nogil:
    if terminals.size() <= <size_t>(terminal >> 6):
        terminals.resize(<size_t>(terminal >> 6) + 1, 0)
    terminals[<size_t>(terminal >> 6)] |= (<uint64_t>1) << (terminal & 63)


cdef inline cbool lexer_matched(const LexState* state) noexcept nogil:
    # Whether a terminal ends here.
    return state.tag != NO_TAG and state.tag != <int32_t>lexer_of(state.automaton).first.size()


cdef inline cbool lookahead_step(LexState** lookahead, uint8_t byte) noexcept nogil:
    # A lookahead (NULL: none) over a byte; False when there is a longer match.
    cdef LexState* after
    if lookahead[0] == NULL:
        return True
    after = lex_next(lookahead[0], byte)
    lookahead[0] = <LexState*>NULL if after == LEX_DEAD else after
    return not after.kills


cdef inline cbool lexer_hopeless(LexState* lex, LexState* lookahead) noexcept nogil:
    # Whether a lexeme under way cannot be completed in any context.
    return lexer_never(lex) or (lookahead != NULL and lexer_pair_verdict(lex, lookahead) == 2)
