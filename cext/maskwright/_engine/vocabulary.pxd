# The data of a vocabulary: its tokens by character, slices, residuals, and what all grammars on it share.

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.atomic cimport atomic
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from maskwright._engine.containers cimport AtomicCounter, Interner, TurnLock
from maskwright._engine.limits cimport Deadline
from maskwright._engine.trie cimport Trie

cdef enum:
    LAST_CODE_POINT = 0x10FFFF

cdef struct CharNode:
    int32_t point
    uint32_t node          # trie node of the character's last byte

cdef struct PartNode:
    uint32_t node          # a token ends here, inside a character
    int32_t first          # code points that it can become
    int32_t last

cdef struct Exit:
    uint32_t node          # ends a character that is not in the slice
    int32_t count          # characters before that, all in it
    const uint8_t* text    # the bytes from the root

cdef cppclass Bits:
    # A set of tokens as a bitset, with the number of those that hold it.
    AtomicCounter holders
    vector[uint32_t] words

cdef struct CodeRange:
    int32_t low
    int32_t high

cdef cppclass Slice:
    vector[CodeRange] points           # C
    uint64_t ascii[2]                  # of it, as a set
    Bits* bits
    int32_t longest                    # characters of its longest token; -1: not known
    unordered_map[int32_t, Bits*] limited              # by greatest number of characters
    unordered_map[int64_t, vector[Exit]] exits         # by trie node and character outside C, from that node on
    unordered_map[uint32_t, Bits*] below               # by trie node: those below it

cdef enum:
    TALL_KINDS = 3

cdef struct TallNode:
    uint32_t node
    uint32_t end           # position behind those below, in the same list
    uint16_t height
    uint8_t byte

cdef cppclass CharTable:
    # The trie by character (char_index.pyx).
    vector[uint32_t] child_first       # by node: its children are [child_first[node], child_first[node + 1]) of
    vector[uint32_t] child_nodes       # these,
    vector[uint8_t] child_bytes        # reached by these
    vector[uint16_t] heights           # by node: bytes from it to the end of the longest token below
    vector[TallNode] tall[TALL_KINDS]  # nodes of at least some height (tall_least), in order
    vector[CharNode] chars             # sorted
    vector[uint8_t] char_texts         # in this order: the bytes from the root to each one's node, unless they are many,
    vector[size_t] char_starts         # and where these begin
    vector[PartNode] parts
    vector[int32_t] by_length          # tokens that are UTF-8 from their start, most characters first
    vector[int32_t] longer             # by number of characters: how many of these have more
    int32_t longest                    # most characters of a token
    uint8_t commonest                  # byte, by trie nodes
    Bits* text                         # tokens that are UTF-8, but perhaps for a last partial character
    Bits* beyond_ascii                 # those with a byte above 0x7F
    Bits* containing[128]              # by ASCII character
    unordered_map[string, Slice*] slices
    vector[uint32_t] quotes            # nodes of quotes (distinct.pyx)
    vector[uint64_t] escaping          # bit n: a quote or a backslash is below node n, or at it

cdef cppclass Residuals:
    # What is left of tokens (lexeme_sets.pyx).
    vector[Residual*] all
    Interner ids

cdef cppclass Cache:
    # What all grammars keep, and what of it can go (generations.pyx).
    AtomicCounter bytes                # of everything that can be evicted
    int64_t budget                     # for these
    int64_t state_budget               # bytes of what one grammar keeps of texts
    size_t hand_unit                   # where eviction goes on: a core or an automaton,
    size_t hand_part                   # of a core: 0, or one more than the number of a keyset of its own,
    size_t hand_item                   # and a state of it
    vector[void*] cores                # Core*
    vector[void*] automata             # Automaton*
    int64_t masks_made                 # of lexer states, ever
    atomic[int64_t] largest            # most states of any automaton; written under the lock, read without it
    vector[void*] set_holders          # Sets*
    int64_t set_bytes                  # of sets of lexer states and residuals (set_stacks.pyx)

cdef cppclass Index:
    const Trie* trie
    size_t words                       # of a row of a bitmask
    size_t most_bytes                  # of a token
    const uint8_t* token_data          # bytes of all tokens, by id, and where each one starts
    const int64_t* token_starts
    Opening* opening                   # what tokens stand for at the very start of a text, or NULL: the same
    CharTable by_char
    Residuals residuals
    Cache cache
    TurnLock lock                      # limits.pyx
    Deadline deadline                  # of the operation that holds the lock
    int32_t away                       # operations that have let others in (turns.pyx)
    cbool forks                        # none lets others in any more, so that a fork finds them all over
    int64_t move_steps                 # of a mover, in one operation (moves.pyx)
    int32_t self_loop_least            # trie nodes that a self-loop must spare (lexeme_mask.pyx)
    vector[void*] path                 # scratch of walks (lexeme_walks.pyx): LexState*

cdef struct ResidualNode:
    uint32_t end           # index after the last node of the subtree
    uint16_t depth         # bytes from the root
    uint8_t byte
    uint8_t final          # a token ends here

cdef cppclass Residual:
    # What is left of some tokens: a set of strings.
    int32_t id
    uint64_t first[4]
    vector[ResidualNode] nodes
    vector[Residual*] below        # by node: what is behind it; empty, or NULL: not made yet

cdef cppclass Opening:
    Trie trie                      # of what the tokens stand for there, where that is anything
    vector[uint32_t] marked        # the tokens that stand for something else there, as a row of a bitmask
    vector[int32_t] silent         # those of them that stand for nothing
    cbool stays                    # behind a silent token, a text is still at its very start
    vector[uint8_t] data           # what each of them stands for, one after another
    vector[int64_t] starts         # by id: where it begins


cdef inline cbool opening_marks(const Index* index, int32_t token) noexcept nogil:
    return (index.opening.marked[<size_t>token >> 5] >> (token & 31)) & 1
