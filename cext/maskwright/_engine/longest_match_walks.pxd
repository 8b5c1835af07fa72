from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map

from maskwright._engine.vocabulary cimport Index
from maskwright._engine.lexemes cimport Automaton, LexMask, LexState
from maskwright._engine.lexeme_texts cimport LEX_DEAD
from maskwright._engine.longest_match cimport Lexer, lexer_closes, lexer_leaves, lexer_matched, lexer_of, LexerPlace

cdef enum:
    SHARE_LEAST = 64       # trie nodes below which sharing does not pay
    LOOP_STEPS = 8         # until a state is expected in its loop

cdef cppclass Groups:
    # Of a mask under way: where the group of what a place holds is.
    unordered_map[string, size_t] by_lists     # by hypotheses and ends (lexer_name)
    unordered_map[int32_t, size_t] by_state    # by the state that is alone

cdef void lexer_forget_masks(Lexer* lexer, cbool all_of_them) noexcept nogil
cdef void lexer_fill(LexerPlace& place) noexcept nogil
cdef void lexer_step(LexState* start, const LexerPlace& before, uint8_t byte, LexerPlace& out) noexcept nogil
cdef cbool lexer_any_sure(const LexerPlace& place) noexcept nogil
cdef void lexer_name(const LexerPlace& place, string& key) noexcept nogil
cdef size_t lexer_group(LexMask* mask, Groups& known, const LexerPlace& place) noexcept nogil
cdef size_t lexer_group_alone(LexMask* mask, Groups& known, LexState* alone) noexcept nogil
cdef void lexer_cut(LexMask* mask, const LexerPlace* place, uint32_t node, uint32_t last) noexcept nogil
cdef void lexer_descend(LexMask* mask, LexerPlace* place, uint32_t node) noexcept nogil
cdef void lexer_stand(Lexer* lexer, const Index* index, size_t depth, LexState* lex, LexState* lookahead) noexcept nogil
cdef cbool lexer_begins(const LexerPlace& place) noexcept nogil
cdef cbool lexer_comes_back(const LexerPlace& place) noexcept nogil
cdef void lexer_take(LexMask* mask, const LexerPlace* place, LexMask* share) noexcept nogil
cdef void lexer_share_depending(LexMask* mask, LexMask* share) noexcept nogil
cdef LexMask* lexer_lookahead_mask(LexState* lookahead, Index* index) noexcept nogil
cdef void lexer_run(LexMask* mask, Lexer* lexer) noexcept nogil
cdef void lex_free(void* freed) noexcept nogil


cdef inline cbool lexer_ignores(const LexState* state) noexcept nogil:
    return lexer_of(state.automaton).ignored[state.tag]


cdef inline cbool lexer_alone_is_sure(LexState* state) noexcept nogil:
    return lexer_closes(state) or (lexer_matched(state) and lexer_leaves(state))


cdef inline cbool lexer_piece_pays(const Index* index, uint32_t node) noexcept nogil:
    return 4 * (<int64_t>index.trie.nodes[node].end - node) >= index.self_loop_least


cdef inline cbool lexer_crosses(const LexState* state, const LexState* after) noexcept nogil:
    # Whether the terminal that ends in `state` may be over at a byte that leads to `after`.
    return lexer_matched(state) and (after == LEX_DEAD or not after.kills)
