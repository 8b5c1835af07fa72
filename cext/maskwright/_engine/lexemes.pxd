# The data of lexemes: automata over code points and over bytes, their states, and what these say about all tokens.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.atomic cimport atomic
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from maskwright._engine.containers cimport Arena, AtomicCounter, BlockPool, Csr, Interner, ScratchIds, SmallVector, Span, TextSets
from maskwright._engine.limits cimport Deadline
from maskwright._engine.trie cimport Trie
from maskwright._engine.vocabulary cimport Bits, Index, Residual

cdef enum:
    NO_TAG = -1
    NO_CLASS = -1
    EPSILON_PLAIN = 0
    EPSILON_ENTER = 1
    EPSILON_LEAVE = 2
    # what a span of code points leads to
    SPAN_DEAD = 0
    SPAN_MIXED = 1
    SPAN_UNIFORM = 2

cdef enum:
    KIND_TEXT = 0
    KIND_KEYSET = 1
    KIND_WORDS = 2     # many texts (lexeme_state.pyx)
    KIND_TOKENS = 3    # tokens that stand for themselves (threads.pyx): no byte is ever read
    KIND_BOUNDARY = 4  # read by no byte (boundaries.pyx)
    # where a keyset state stands
    KEY_START = 0      # before the opening quote
    KEY_BODY = 1       # inside, possibly on the way to a name
    KEY_OTHER = 2      # inside, on the way to no name
    KEY_CLOSED = 3
    KEY_STEPS = 8      # remembered by a state: they are searched one by one
    KEYSET_STATE = 720 # bytes of one, with what finds it

cdef enum:
    NO_LOOP = -1
    TWO_LOOPS = -2

ctypedef DfaState* DfaStatePointer
ctypedef LexState* LexStatePointer

cdef struct DfaEdge:
    int32_t set
    int32_t target

cdef struct NfaEpsilon:
    int32_t target
    int32_t op
    int32_t loop

cdef cppclass DfaState:
    int32_t id
    int32_t tag                    # what is accepted here, or NO_TAG
    Span[uint64_t] items     # NFA state << 32 | count
    DfaState** next                # by class; NULL = not computed
    LexState* text                 # the lexer state between two characters, or NULL

cdef cppclass LazyDfa:
    int32_t ascii_class[128]
    vector[int32_t] range_low      # above ASCII: first code point of each range, and its class
    vector[int32_t] range_class
    int32_t classes
    vector[vector[uint64_t]] sets  # of classes, as bits
    Csr[DfaEdge] edges           # by NFA state
    Csr[NfaEpsilon] epsilons
    vector[int32_t] loop_min
    vector[int32_t] loop_max
    vector[int32_t] accept
    int32_t first                  # the NFA state where it begins; of a lexer, its terminals have their own
    vector[char] early             # by tag: once it is accepted, nothing else matters; empty: none
    vector[vector[uint64_t]] sustained     # by NFA state: see dfa_sustained; empty: not computed
    vector[int32_t] loops          # by NFA state: the loop that it is in (dfa_loops); empty: not computed
    BlockPool[DfaState] states
    Arena[uint64_t] item_rows
    Arena[DfaStatePointer] next_rows
    Interner interned
    atomic[int64_t] held           # bytes of the states, and of lexer states made of them; written under the lock, read without it, too
    Deadline* deadline             # of the operation that makes them
    DfaState* start
    vector[int64_t] class_points   # code points by class; empty: not counted
    vector[int64_t] marks          # scratch of closures, by NFA state
    int64_t mark
    vector[int32_t] work
    ScratchIds seen                # the same with counts: items
    vector[uint64_t] open_items
    vector[uint64_t] items         # scratch of steps

cdef struct KeyPosition:
    int32_t where      # KEY_*
    int32_t first      # the names that agree so far are sorted names [first, last)
    int32_t last
    int32_t depth      # bytes of the name matched
    int32_t escape     # bytes of an escape read so far (0: none)
    uint32_t value     # its hex digits so far; of a surrogate pair, both halves
    int32_t low        # tags in low..high are allowed
    int32_t high
    int32_t other      # 1: other keys are allowed
    int32_t used       # of other keys that must not come again, those that agree so far: a place in a set of texts
    int32_t used_at    # (textsets.hpp), and
    int32_t used_left  # how many they are; 0: none, and so are the other two
    int32_t pending    # 1: another key came before, but it is not known which (mask_walk)
    int32_t filter     # which tags of low..high, an index into the automaton's `filters`; 0: all

cdef struct KeyPlace:
    # What a keyset state is interned by; no padding.
    KeyPosition at
    LexState* base

cdef struct KeyStep:
    LexState* target
    uint8_t byte

cdef cppclass Skipped:
    # Bytes that say the same behind a state as behind that of a part, or nothing (longest_match_walks.pyx).
    uint64_t known[4]
    uint64_t same[4]
    LexState* shadow

cdef cppclass LexState:
    Automaton* automaton
    int32_t id
    int32_t tag                    # what is accepted here, or NO_TAG
    # text
    DfaState* dfa_state                # before the character under way, or behind it once it is settled
    int32_t form                   # FORM_*
    int32_t left
    int32_t low
    LexState** next                # by byte class; NULL = not computed
    # keyset
    KeyPosition key
    LexState* base                 # state of the automaton for other keys, or NULL
    SmallVector[KeyStep] steps     # some that lead on
    char alive                     # with other keys that are used: 0 not known, 1 it can be completed, 2 not
    char leaves                    # of a lexer (lexer_leaves): 0 not known, 1 yes, 2 no
    char closes                    # the same (lexer_closes)
    char hopeless                  # the same (lexer_hopeless)
    cbool kills                    # the same: a longer match ends here, or will, whichever character this becomes
    Skipped* skipped               # the same, or NULL
    # both
    cbool has_first
    uint64_t first[4]              # bytes that lead on
    uint64_t forced_first[4]       # the same without respellings of the same text
    LexMask* mask

cdef cppclass Best:
    # Items of members that have read the same part of a character, and the least member that has each.  Scratch of an automaton.
    int32_t form
    int32_t left
    int32_t low
    vector[int32_t] count                      # by NFA state: the one that allows most, or -1
    vector[int32_t] owner                      # of that
    vector[int32_t] touched                    # NFA states with a count
    unordered_map[uint64_t, int32_t] others    # owners of items whose counts are not compared

cdef cppclass LexSets:
    # Sets of states of an automaton (lexeme_sets.pyx).
    vector[LexSet*] all
    int64_t bytes                  # of these, and of what finds them
    Interner ids
    Interner unions                # by the numbers of several sets
    vector[LexSet*] singles        # by lexer state; NULL: not made yet
    vector[vector[int32_t]] splits # by lexer state: members that stand for it (lexset_split); empty: not made yet
    vector[Best] bests             # scratch of lexset_reduce
    vector[int64_t] marks          # scratch of unions, by state
    int64_t mark

cdef cppclass Keyset:
    # Names and other keys (keyset.pyx).
    Interner interned
    int32_t other_tag              # plus the tag of `base`: those of other keys
    vector[vector[char]] filters   # by tag; the first one is not used
    Interner filter_ids
    Automaton* base                # for other keys, or NULL
    cbool unique                   # other keys must not repeat; then programs have copies (keyset_of), in which
    TextSets* used                 # sets of keys are those of the program; else NULL
    int32_t place                  # of a copy, by program
    int64_t* held                  # where the bytes of its states are counted

cdef cppclass ListedTexts:
    # What a set of texts is made of; automata of one lexeme share it.
    vector[int32_t] tags           # of each text: of names (NO_TAG: it may not occur), of words (empty: all 0)
    vector[string] names           # of a keyset: canonical spelling inside the quotes, sorted
    vector[uint8_t] data           # of words: all texts, sorted, one after another
    vector[int64_t] starts         # and where each begins

cdef cppclass TokenSet:
    vector[int32_t] ids            # sorted
    vector[uint32_t] row           # the same as a row of a mask

cdef cppclass Automaton:
    int32_t kind                   # KIND_*
    int32_t uid                    # distinct within an engine
    size_t slot                    # in `Cache.automata`
    Index* index
    BlockPool[LexState] states
    Arena[LexStatePointer] next_rows
    LexState* start
    int32_t spelling               # SPELLING_*; of a keyset, that of its names and of its base
    int32_t kinds                  # how many tags it has; of a keyset, its base
    # text
    LazyDfa* dfa
    vector[uint8_t] byte_class
    vector[uint8_t] class_byte     # one byte of each class
    Interner partial               # states inside a character, by number (text_state)
    MaskTable* counted             # masks of states that differ in their counts only, or NULL
    void* lexer                    # all terminals of a grammar that has a lexer (Lexer*, longest_match.pyx); else NULL
    vector[int32_t] class_mass     # by class of code points; empty: not counted
    # others
    Keyset keyset
    ListedTexts* texts             # of words and keysets; else NULL
    shared_ptr[ListedTexts] texts_owner
    TokenSet token_set
    cbool opens_line               # of a boundary: a line of a text with blocks begins behind it
    LexSets sets

cdef struct LexCrossing:
    LexState* lex          # where the lexeme ends; its tag counts
    Residual* rest         # of the tokens that go on from there

cdef cppclass LexSet:
    Automaton* automaton
    int32_t id
    vector[int32_t] members        # ids of lexer states, ascending
    vector[LexState*] exits        # members that accept, one for each tag
    LexSet* going                  # the members that can go on, or NULL
    vector[LexSet*] next           # by byte (text: by byte class); NULL: not computed
    cbool is_read                  # the next three are known
    LexSet* inside                 # behind tokens that do not leave the lexeme, or NULL
    vector[LexState*] ended        # what tokens complete with their last byte
    vector[LexState*] passed       # what they complete before
    cbool is_crossed               # this too
    vector[LexCrossing] crossings

cdef struct Crossing:
    int32_t tag        # what the lexeme accepted
    LexState* lookahead    # of a lexer: what the residual must not match (longest_match.pyx), or NULL
    uint8_t byte       # first byte of the residual
    uint32_t node      # trie node reached by that byte

cdef struct CrossingGroup:
    # Crossings that differ in their nodes only: nodes[first:last] of the mask.
    LexState* lookahead
    int32_t tag
    uint8_t byte
    uint32_t first
    uint32_t last

cdef struct Override:
    uint32_t node      # trie node of the closing quote of a name
    int32_t tag        # its tag, or NO_TAG when the name is not allowed

cdef struct ResidualView:
    const Trie* trie
    uint32_t first     # nodes [first, last), the first one's own byte included
    uint32_t last
    int32_t depth      # of the parent of `first`

cdef struct Hypothesis:
    LexState* lex
    LexState* lookahead

cdef struct Ended:
    int32_t tag            # terminal that ends here; it is not ignored
    LexState* lookahead        # behind it

cdef cppclass TokenGroup:
    # Tokens that lead to the same hypotheses, none of which can be completed in every context.
    vector[Hypothesis] hypotheses
    vector[Ended] ended
    vector[int32_t] tokens

cdef cppclass Piece:
    # Of a lexer's mask: it says what a part says, but for some tokens (longest_match_walks.pyx).
    LexMask* part
    vector[int32_t] removed               # of those that depend on the context; sorted

cdef struct TagRun:
    int32_t tag
    uint32_t first         # groups [first, last)
    uint32_t last
    Run* run

cdef cppclass LexMask:
    int64_t serial                        # no other one of the index ever has it
    AtomicCounter holders                         # those of a grammar's keysets are released without the lock (core_free)
    cbool used                            # since the hand came by (generations.pyx)
    Index* index
    const Trie* trie                      # of the crossing points: the vocabulary's, or a residual trie
    LexMask* base                         # base automaton's mask, or NULL
    Bits* bits                            # inside tokens, when there are many, or NULL
    vector[int32_t] inside                # and these; of a mask with a base, what that does not have
    vector[Crossing] crossing             # while the mask is made; then
    vector[CrossingGroup] crossings       # in the order of their tags
    vector[uint32_t] nodes
    int32_t open_tag                      # crossings with this tag are left out (lexmask_open), or NO_TAG
    vector[Override] overrides
    vector[TokenGroup] groups             # tokens that stay inside if the context allows it (longest_match.pyx)
    vector[Piece] pieces                  # of a lexer; what they allow in any context is in `bits`
    vector[LexMask*] shares               # what it shares with others, as far as it depends on the context; else in `bits`
    vector[int32_t] holes                 # of such: tokens of the other's piece about which it speaks; of a lookahead, see
                                          # lexer_lookahead_mask
    Bits* depending                       # of a part: tokens of crossings and groups, else NULL
    unordered_map[int64_t, Trie*] merged  # by crossing group: residual trie
    vector[TagRun] runs                   # of a lexer: the crossings by tag
    int64_t bytes                         # of all this but the bits

cdef cppclass Run:
    # Of a lexer: what is known of the residuals of some crossing groups, whatever terminal they follow; groups with equal
    # nodes have one run (longest_match_walks.pyx).
    int32_t holders
    Index* index
    unordered_map[int64_t, Trie*] merged      # by position: residual trie
    unordered_map[int64_t, LexMask*] behind   # by position and state behind the first byte: what that says of the residuals
    unordered_map[int64_t, LexMask*] whole    # by start: what it says of all of them
    int64_t bytes

cdef cppclass MaskTable:
    # Masks of counted automata that differ in their bounds only, by capped items (lexmask_key).
    unordered_map[string, LexMask*] masks
