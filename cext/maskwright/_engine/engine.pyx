# The automata that grammars on one vocabulary share.

from weakref import WeakValueDictionary

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t, SIZE_MAX
from libc.string cimport memcpy, memset
from libcpp cimport bool as cbool
from libcpp.algorithm cimport nth_element, sort
from libcpp.atomic cimport memory_order_relaxed
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.vector cimport vector

from maskwright.base.deadline import check_time
from maskwright.errors import LimitError, VocabularyError

from maskwright._engine.sizes cimport bits_set
from maskwright._engine.containers cimport by_owner, seconds_now
from maskwright._engine.limits cimport Deadline, deadline_begin, deadline_end, deferred_free_finish, deferred_free_take
from maskwright._engine.turns cimport turns_begin
from maskwright._engine.trie cimport Trie, trie_child, TrieNode
from maskwright._engine.vocabulary cimport CodeRange, Index, Opening, opening_marks
from maskwright._engine.lexemes cimport (
    Automaton, LazyDfa, DfaEdge, KIND_BOUNDARY, KIND_KEYSET, KIND_TEXT, KIND_TOKENS, KIND_WORDS, LexState, MaskTable, NfaEpsilon, NO_TAG
)
from maskwright._engine.lazy_dfa cimport dfa_classify, dfa_new
from maskwright._engine.lexeme_texts cimport (
    automaton_new, LEX_DEAD, lex_new_state, lex_size, spelling_number, SPELLING_UTF8, text_begin, text_byte_classes
)
from maskwright._engine.keyset cimport key_start
from maskwright._engine.lexeme_sets cimport lexsets_free
from maskwright._engine.lexeme_state cimport lex_goes_on, lex_next, lexeme_again, words_begin
from maskwright._engine.lexeme_walks cimport masktable_free
from maskwright._engine.longest_match cimport Lexer, RefusalGuard, lexer_of, terminal_sets
from maskwright._engine.longest_match_samples cimport lexer_again, lexer_prepare
from maskwright._engine.longest_match_walks cimport lex_free
from maskwright._engine.core cimport Core
from maskwright._engine.generations cimport core_bytes, core_settle, evict
from maskwright._engine.rows cimport Segments, segments_find

cdef enum:
    RECENT_AUTOMATA = 2048         # kept though no grammar uses them
    RECENT_DROPPED = 64            # of these at once, those that were used longest ago
    RECENT_BYTES = 1 << 26         # of them and their states; counted once in so many uses, or when so much was added
    RECENT_LOOKED_AT = 1024
    RECENT_ADDED = 1 << 24
    SEGMENTS_AT_ONCE = 1 << 12
    FREED_AT_ONCE = 256            # states of an automaton; one with more waits for the thread of deferred frees
    STATE_BYTES = 24               # of what an automaton is made of: its state, its epsilon edge
    EPSILON_BYTES = 16

cdef size_t NOT_LISTED = SIZE_MAX    # the place of an automaton that eviction does not see yet


@cython.no_gc_clear
cdef class MaskTableHandle:
    """Masks that counted automata share."""

    def __cinit__(self):
        self.table = new MaskTable()

    def __dealloc__(self):
        # Those of automata that are gone.
        if self.owner is None:
            del self.table
        else:
            with nogil:
                deferred_free_take(self.owner.index, self.table, masktable_free)


@cython.no_gc_clear
cdef class AutomatonHandle:
    """A lexeme's automaton; keeps the C++ object alive."""

    @property
    def clashes(self):
        """Of a lexer: pairs of terminals of which samples in a row are read as something else (the second -1: the
        first is not read as itself).  With none, whatever the grammar accepts can be written."""
        return list(lexer_of(self.automaton).samples.clashes) if self.automaton.lexer != NULL else []

    def ends(self, bytes data, int64_t at, int64_t limit):
        """Where matches that begin at ``at`` end in ``data[:limit]``, ascending, and whether one could be longer than that."""
        cdef const uint8_t* text = <const uint8_t*><const char*>data
        cdef vector[int64_t] found
        cdef LexState* state = self.automaton.start
        cdef cbool more = False
        if not 0 <= at <= limit <= len(data):
            raise ValueError(f"there is no text from {at} to {limit} in {len(data)} bytes")
        with nogil:
            self.owner.index.lock.lock()
            while state != LEX_DEAD and at < limit:
                state = lex_next(state, text[at])
                at += 1
                if state != LEX_DEAD and state.tag != NO_TAG:
                    found.push_back(at)
            more = state != LEX_DEAD and lex_goes_on(state)
            self.owner.index.lock.unlock()
        return list(found), more

    def __dealloc__(self):
        cdef Index* index
        if self.automaton == NULL:
            return
        index = self.automaton.index
        with nogil:
            index.lock.lock()
            if self.automaton.slot != NOT_LISTED:
                index.cache.automata[self.automaton.slot] = index.cache.automata.back()
                (<Automaton*>index.cache.automata.back()).slot = self.automaton.slot
                index.cache.automata.pop_back()
            lexsets_free(self.automaton)
            index.lock.unlock()
            if lex_size(self.automaton) < FREED_AT_ONCE:
                lex_free(self.automaton)
            else:
                deferred_free_take(index, self.automaton, lex_free)


cdef void list_automaton(Automaton* automaton) noexcept nogil:
    # With the lock held: eviction goes along all that are listed, whoever has the interpreter.
    automaton.slot = automaton.index.cache.automata.size()
    automaton.index.cache.automata.push_back(automaton)


cdef int64_t handle_bytes(AutomatonHandle handle, bint states) except -1:
    # About what it takes; with the `states` that texts have reached.
    cdef LazyDfa* dfa = handle.automaton.dfa
    cdef AutomatonHandle base = handle.base
    cdef int64_t total = handle.made_of
    if base is not None:
        total += base.made_of
    return total + (dfa.held.load(memory_order_relaxed) if states and dfa != NULL else 0)


cdef int read_code_points(LazyDfa* dfa, int32_t n_states, list sets, bytes edges, list epsilons,
                          list loops, list accepts) except -1:
    # Fill an automaton from what ``maskwright.regular.automata.Nfa`` has; `edges`: as bytes.
    cdef vector[vector[CodeRange]] ranges
    cdef CodeRange span
    cdef const int32_t* edge = <const int32_t*><const char*>edges
    cdef vector[pair[int32_t, DfaEdge]] owned
    cdef vector[pair[int32_t, NfaEpsilon]] steps
    cdef NfaEpsilon epsilon
    cdef int32_t src, low, high, target
    cdef size_t i, _i
    ranges.resize(len(sets))
    for i in range(ranges.size()):
        for span.low, span.high in sets[i]:
            ranges[i].push_back(span)
    with nogil:
        dfa_classify(dfa, ranges)
    dfa.accept.resize(n_states, NO_TAG)
    for _i in range(len(edges) // (3 * sizeof(int32_t))):
        owned.push_back(pair[int32_t, DfaEdge](edge[0], DfaEdge(edge[1], edge[2])))
        edge += 3
    dfa.edges = by_owner[DfaEdge](n_states, owned)
    for src, epsilon.target, epsilon.op, epsilon.loop in epsilons:
        steps.push_back(pair[int32_t, NfaEpsilon](src, epsilon))
    dfa.epsilons = by_owner[NfaEpsilon](n_states, steps)
    for low, high in loops:
        dfa.loop_min.push_back(low)
        dfa.loop_max.push_back(high)
    for src, target in accepts:
        dfa.accept[src] = target
    return 0


cdef bytes written_code_points(LazyDfa* dfa):
    # The edges of an automaton and where it accepts, without the bounds of its loops.
    cdef vector[int32_t] out
    cdef DfaEdge edge
    cdef NfaEpsilon epsilon
    cdef size_t state
    for state in range(dfa.edges.size()):
        out.push_back(<int32_t>dfa.edges[state].size())
        for edge in dfa.edges[state]:
            out.push_back(edge.set)
            out.push_back(edge.target)
        out.push_back(<int32_t>dfa.epsilons[state].size())
        for epsilon in dfa.epsilons[state]:
            out.push_back(epsilon.target)
            out.push_back(epsilon.op)
            out.push_back(epsilon.loop)
        out.push_back(dfa.accept[state])
    return (<const char*>out.data())[:out.size() * sizeof(int32_t)]


cdef class Engine:
    """A vocabulary's token trie, and automata by content key.

    ``tokens``: bytes of each id, empty for ids that no text produces.  ``self_loop_least``: trie nodes that a
    slice must spare to be used; 0 uses slices wherever they are sound.  ``start_tokens`` and ``start_stays``: as those
    of a ``Vocabulary``.
    """

    def __init__(self, list tokens, tuple eos_ids, trie_arrays=None, int32_t self_loop_least=2048, *, start_tokens=None,
                 cbool start_stays=False):
        self.vocab_size = len(tokens)
        self.longest = max(map(len, (*tokens, *(start_tokens or {}).values())), default=0)
        self.eos_ids = eos_ids
        self.special_tokens = {}
        self.special_ids = frozenset()
        self.automata = WeakValueDictionary()
        self.tables = WeakValueDictionary()
        self.recent = {}
        self.owner = TokenIndex()
        self.owner.build(tokens, trie_arrays)
        self.owner.index.self_loop_least = self_loop_least
        self.owner.index.most_bytes = self.longest
        self.owner.index.cache.budget = self.owner.index.cache.state_budget = <int64_t>1 << 62
        if start_tokens:
            self.owner.build_opening(dict(start_tokens), start_stays)

    def dump_trie(self):
        """The trie as two byte strings, for ``trie_arrays``."""
        cdef Trie* trie = &self.owner.trie
        return ((<const char*>trie.nodes.data())[:trie.nodes.size() * sizeof(TrieNode)],
                (<const char*>trie.tokens.data())[:trie.tokens.size() * sizeof(int32_t)])

    @property
    def cached_bytes(self):
        """Bytes of masks, token edges, slices and residual tries, of all grammars on this vocabulary."""
        deferred_free_finish(self.owner.index)
        return self.owner.index.cache.bytes.value()

    @property
    def mask_budget(self):
        """What ``cached_bytes`` may be between two operations (bytes); no limit at first."""
        return self.owner.index.cache.budget

    @mask_budget.setter
    def mask_budget(self, int64_t budget):
        with nogil:
            self.owner.index.lock.lock()
            self.owner.index.cache.budget = budget
            if self.owner.index.cache.bytes.value() > budget:
                evict(self.owner.index)
            self.owner.index.lock.unlock()

    @property
    def grown_bytes(self):
        """What automata took that were ever made, with the states that texts reached, those that are gone included (bytes)."""
        return self.owner.index.deadline.grown.load(memory_order_relaxed)

    @property
    def state_budget(self):
        """What one grammar may keep of the states that texts reached, before it begins anew (bytes); no limit at first."""
        return self.owner.index.cache.state_budget

    @state_budget.setter
    def state_budget(self, int64_t budget):
        cdef void* core
        with nogil:
            self.owner.index.lock.lock()
            self.owner.index.cache.state_budget = budget
            for core in self.owner.index.cache.cores:
                core_settle(<Core*>core, core_bytes(<Core*>core))
            self.owner.index.lock.unlock()

    @property
    def move_steps(self):
        """How much of what a text needs is moved to another generation in one operation (steps of ``tasks.pyx``)."""
        return self.owner.index.move_steps

    @move_steps.setter
    def move_steps(self, int64_t steps):
        self.owner.index.move_steps = steps

    cdef AutomatonHandle new_automaton(self, int32_t kind, const Automaton* texts = NULL):
        # Not yet one that others see: see list_automaton.  `texts`: the one whose texts it shares, or NULL.
        cdef AutomatonHandle handle = AutomatonHandle()
        handle.owner = self.owner
        handle.automaton = automaton_new(self.owner.index, kind, texts)
        handle.automaton.uid = self.next_uid
        handle.automaton.slot = NOT_LISTED
        self.next_uid += 1
        return handle

    def get_automaton(self, key):
        """The automaton registered under ``key``, or None."""
        cdef AutomatonHandle handle = self.recent.get(key)
        if handle is None:
            handle = self.automata.pop(key, None)
        if handle is not None:
            self.remember(key, handle)
        return handle

    cdef int remember(self, key, AutomatonHandle handle) except -1:
        cdef int64_t total = 0, grown
        cdef AutomatonHandle each
        if not handle.used:
            self.owner.index.deadline.grown.fetch_add(handle.made_of, memory_order_relaxed)
        self.remembered += 1
        handle.used = self.remembered
        self.recent[key] = handle
        if len(self.recent) > RECENT_AUTOMATA:
            self.forget_oldest()
        # Their states come later, as texts reach them.
        grown = self.owner.index.deadline.grown.load(memory_order_relaxed)
        if self.remembered % RECENT_LOOKED_AT == 0 or grown - self.grown > RECENT_ADDED:
            self.grown = grown
            for each in self.recent.copy().values():
                total += handle_bytes(each, True)
            while total > RECENT_BYTES and len(self.recent) > 1:
                total -= self.forget_oldest()
        return 0

    cdef int64_t forget_oldest(self) except -1:
        # Keep no longer those of which the use is longest ago, unless a grammar does; the bytes of their states.
        # Whatever makes or frees an object may let other threads in, which forget some as well.
        cdef int64_t total = 0, last
        cdef dict recent = self.recent.copy()
        cdef size_t dropped = min(RECENT_DROPPED, len(recent) - 1)
        cdef vector[int64_t] uses
        cdef AutomatonHandle each
        cdef list oldest = []
        if len(recent) < 2:
            return 0
        for each in recent.values():
            uses.push_back(each.used)
        nth_element(uses.begin(), uses.begin() + (dropped - 1), uses.end())
        last = uses[dropped - 1]
        for key, each in recent.items():
            if each.used <= last:
                oldest.append((key, each))
        for key, each in oldest:
            if self.recent.get(key) is not each or each.used > last:
                continue
            del self.recent[key]
            total += handle_bytes(each, True)
            self.automata[key] = each
        # They are freed behind this: then others may have a turn.
        return total

    def add_automaton(self, key, int32_t n_states, int32_t start, list sets, bytes edges, list epsilons,
                      list loops, list accepts, str spelling, int64_t key_bytes=0):
        """Register an NFA (see ``maskwright.regular.automata.Nfa``) under a content key; ``spelling``: of its texts (see
        ``maskwright.ir.grammar.Spelling``).  ``key_bytes``: what the key takes, where that is much."""
        cdef AutomatonHandle handle = self.new_automaton(KIND_TEXT)
        cdef Automaton* a = handle.automaton
        a.dfa = dfa_new(&self.owner.index.deadline)
        a.spelling = spelling_number(spelling)
        handle.made_of = key_bytes + STATE_BYTES * n_states + len(edges) + EPSILON_BYTES * len(epsilons)
        read_code_points(a.dfa, n_states, sets, edges, epsilons, loops, accepts)
        a.kinds = max((tag for _, tag in accepts), default=0) + 1
        text_byte_classes(a)
        if loops:
            content = (spelling, start, tuple(sets), written_code_points(a.dfa))
            handle.counted = self.tables.get(content)
            if handle.counted is None:
                handle.counted = MaskTableHandle()
                handle.counted.owner = self.owner
                self.tables[content] = handle.counted
            a.counted = handle.counted.table
        a.dfa.first = start
        with nogil:
            self.owner.index.lock.lock()
            list_automaton(a)
            text_begin(a)
            self.owner.index.lock.unlock()
        self.remember(key, handle)
        return handle

    cdef AutomatonHandle fresh_automaton(self, AutomatonHandle handle, AutomatonHandle base):
        # The same lexeme without the states that texts have reached; other keys are those of `base`.
        cdef AutomatonHandle fresh = self.new_automaton(handle.automaton.kind, handle.automaton)
        cdef Automaton* other_keys = NULL
        fresh.made_of, fresh.counted, fresh.names, fresh.base = handle.made_of, handle.counted, handle.names, base
        if base is not None:
            other_keys = base.automaton
        with nogil:
            self.owner.index.lock.lock()
            list_automaton(fresh.automaton)
            lexeme_again(fresh.automaton, handle.automaton, other_keys)
            if handle.automaton.lexer != NULL:
                lexer_again(fresh.automaton, handle.automaton)
            self.owner.index.lock.unlock()
        return fresh

    def add_lexer(self, key, int32_t n_states, list starts, list sets, bytes edges, list epsilons, list loops,
                  list accepts, list ignored, bytes follow, avoided, names, int32_t newline, int32_t line_break,
                  int32_t columns, int32_t quote, list early, cbool placed, list after, list beside, list guards, list opens, list begins, *,
                  int64_t max_lexer_states, int64_t max_bytes, double max_seconds):
        """Register the terminals of a grammar that has a lexer (see ``maskwright.ir.grammar.Lexing``).

        ``starts``: by terminal, the state of the NFA where it begins; the NFA accepts with the terminal as tag, or with their number what
        is a match of no terminal. ``follow``: sets of terminals of which each parser state waits for a part, each as so many bytes that
        there is a bit for each terminal, the lowest first; ``after``: behind which terminal each may come (-1: the start, other lexemes).
        None: not known, which makes some lexers clash that would not. ``avoided``: those of its ``clashes`` that the grammar can do
        without at any place. ``newline``: the terminal that tells columns, or -1, ``line_break``: the one that stands for it between
        brackets (see ``maskwright.regular.automata.build_lexer``), ``quote``: the one around its lines, or -1. ``early``: terminals of
        which no text begins another one; as soon as one matches, it is what matches. ``placed``: ignored terminals begin only where they
        are waited for; then ``beside`` has by terminal the ignored ones that are waited for wherever it is. ``guards``: where in the NFA
        texts begin that are refused, a terminal where which may come, and terminals beside which they are not. ``opens``: terminals behind
        which lexemes may come that no lexer reads, ``begins``: the bytes with which these begin. It is prepared within the
        limits, or there is a ``LimitError``; ``max_seconds``: 0 is none."""
        cdef AutomatonHandle handle = self.new_automaton(KIND_TEXT)
        cdef Automaton* a = handle.automaton
        cdef Lexer* lexer = new Lexer()
        cdef RefusalGuard guard
        cdef Deadline* deadline = &self.owner.index.deadline
        cdef cbool interrupted, passed
        cdef int64_t crowded, heavy
        cdef double at
        a.dfa = dfa_new(&self.owner.index.deadline)
        a.spelling = SPELLING_UTF8
        read_code_points(a.dfa, n_states, sets, edges, epsilons, loops, accepts)
        text_byte_classes(a)
        if early:
            a.dfa.early.resize(len(starts), 0)
            for i in early:
                a.dfa.early[<int32_t>i] = 1
        a.lexer = lexer
        lexer.stops = lexer.away = False
        lexer.first = starts
        lexer.newline = newline
        lexer.line_break = line_break
        lexer.columns = columns
        lexer.quote = quote
        lexer.ignored.resize(len(starts) + 1 + columns, 0)
        lexer.ignored_ones = ignored
        for i in ignored:
            lexer.ignored[<int32_t>i] = 1
        if follow is not None:
            terminal_sets(follow, len(follow), len(starts), lexer.follow)
            lexer.after = after
        lexer.samples.avoided = avoided
        lexer.placed = placed
        lexer.beside = beside
        for guard.start, guard.owner, guard.unless in guards:
            lexer.guards.push_back(guard)
        memset(lexer.samples.first, 0, 32)
        for i in begins:
            bits_set(lexer.samples.first, <uint8_t>i)
        if begins:
            lexer.samples.opens.resize(len(starts), 0)
            for i in [*opens, *ignored]:
                lexer.samples.opens[<int32_t>i] = 1
        handle.names = tuple(names)
        with nogil:
            self.owner.index.lock.lock()
            list_automaton(a)
            deadline_begin(deadline, max_seconds, max_lexer_states, max_bytes)
            turns_begin(self.owner.index, &lexer.away)
            lexer_prepare(a)
            interrupted, passed = deadline.interrupted, deadline.passed
            crowded, heavy, at = deadline.crowded, deadline.heavy, deadline.at
            deadline_end(deadline)
            self.owner.index.lock.unlock()
        if interrupted:
            raise KeyboardInterrupt
        if crowded:
            raise LimitError("max_lexer_states", crowded, max_lexer_states)
        if heavy:
            raise LimitError("max_bytes", heavy, max_bytes)
        if passed:
            raise LimitError("max_seconds", max_seconds + seconds_now() - at, max_seconds)
        self.remember(key, handle)
        return handle

    def add_keyset(self, list names, list tags, int32_t other_tag, AutomatonHandle base, int32_t kinds, str spelling):
        """A set of quoted keys: canonical spellings (bytes, without quotes) and their tags.

        Other keys are those of ``base``; to its ``kinds`` tags ``other_tag`` is added.  ``spelling``: of all keys,
        "quoted" or "printed"."""
        cdef AutomatonHandle handle = self.new_automaton(KIND_KEYSET)
        cdef Automaton* a = handle.automaton
        a.spelling = spelling_number(spelling)
        cdef vector[pair[string, int32_t]] spelled
        cdef size_t i, count = len(names)
        spelled.resize(count)
        for i in range(count):
            spelled[i].first = <bytes?>names[i]
            spelled[i].second = tags[i]
        with nogil:
            sort(spelled.begin(), spelled.end())
            a.texts.names.resize(count)
            a.texts.tags.resize(count)
            for i in range(count):
                a.texts.names[i].swap(spelled[i].first)
                handle.made_of += sizeof(string) + a.texts.names[i].size()
                a.texts.tags[i] = spelled[i].second
        a.keyset.other_tag = other_tag
        a.kinds = kinds
        if base is not None:
            a.keyset.base = base.automaton
            handle.base = base
        with nogil:
            self.owner.index.lock.lock()
            list_automaton(a)
            a.start = key_start(a, 0, <int32_t>0x7FFFFFFF, a.keyset.base != NULL, NULL, 0, False)
            self.owner.index.lock.unlock()
        return handle

    def add_words(self, key, bytes data, bytes starts, bytes tags):
        """Register many texts as one lexeme: sorted and distinct, one after another in ``data``.

        ``starts`` are int64: where each text begins, and the end.  ``tags`` are int32, one a text; none: all 0."""
        cdef AutomatonHandle handle = self.new_automaton(KIND_WORDS)
        cdef Automaton* a = handle.automaton
        cdef const char* text = data
        cdef const char* bounds = starts
        cdef const char* cases = tags
        cdef size_t text_size = len(data), bounds_size = len(starts), cases_size = len(tags)
        handle.made_of = text_size + bounds_size + cases_size
        with nogil:
            # Of a million texts, this takes longer than other threads should wait.
            a.texts.data.assign(text, text + text_size)
            a.texts.starts.resize(bounds_size // sizeof(int64_t))
            memcpy(a.texts.starts.data(), bounds, bounds_size)
            a.texts.tags.resize(cases_size // sizeof(int32_t))
            if cases_size:
                memcpy(a.texts.tags.data(), cases, cases_size)
            self.owner.index.lock.lock()
            list_automaton(a)
            words_begin(a)
            self.owner.index.lock.unlock()
        self.remember(key, handle)
        return handle

    def add_tokens(self, list ids):
        """Register a set of tokens that stand for themselves: ids, sorted and at least one."""
        cdef AutomatonHandle handle = self.new_automaton(KIND_TOKENS)
        cdef Automaton* a = handle.automaton
        cdef int32_t token
        if not ids or not 0 <= ids[0] <= ids[len(ids) - 1] < self.vocab_size:
            raise VocabularyError("a set of tokens needs some ids of the vocabulary")
        a.kinds = 1
        a.token_set.ids = ids
        a.token_set.row.resize(self.owner.index.words, 0)
        for token in a.token_set.ids:
            a.token_set.row[<size_t>token >> 5] |= (<uint32_t>1) << (token & 31)
        with nogil:
            self.owner.index.lock.lock()
            list_automaton(a)
            a.start = lex_new_state(a)
            self.owner.index.lock.unlock()
        return handle

    def add_boundary(self, cbool opens_line):
        """Register a boundary (``maskwright.ir.grammar.Boundary``): another one at each call."""
        cdef AutomatonHandle handle = self.new_automaton(KIND_BOUNDARY)
        handle.automaton.opens_line = opens_line
        handle.automaton.kinds = 1
        with nogil:
            self.owner.index.lock.lock()
            list_automaton(handle.automaton)
            handle.automaton.start = lex_new_state(handle.automaton)
            self.owner.index.lock.unlock()
        return handle

    def token_bytes(self, int64_t token, cbool opening=False):
        """What an id adds to a text, in the middle or at its very start."""
        cdef Opening* other = self.owner.index.opening
        if not 0 <= token < self.vocab_size:
            raise VocabularyError(f"token id {token} is outside the vocabulary (0 to {self.vocab_size - 1})")
        if opening and other != NULL and opening_marks(self.owner.index, <int32_t>token):
            return (<const char*>other.data.data())[other.starts[token]:other.starts[token + 1]]
        return (<const char*>self.owner.data.data())[self.owner.starts[token]:self.owner.starts[token + 1]]

    def spelled_alike(self, bytes data):
        """The ids whose bytes are exactly ``data``."""
        cdef uint32_t node = 0
        cdef Trie* trie = &self.owner.trie
        for byte in data:
            node = trie_child(trie, node, byte)
            if node == 0:
                return []
        return [trie.tokens[i] for i in range(trie.nodes[node].token, trie.nodes[node + 1].token)]

    def segment(self, bytes data, cbool opening=False, double max_seconds=0, double until=0):
        """Ids of the fewest tokens that spell ``data``, in the middle of a text or at its very start; VocabularyError when none do,
        LimitError (of ``max_seconds``) when it is later than ``until`` before they are known (0: it never is)."""
        cdef const uint8_t* text = <const uint8_t*><const char*>data
        cdef int64_t n = len(data), i
        cdef Segments best
        cdef const Opening* other = self.owner.index.opening if opening else NULL
        cdef cbool in_time
        with nogil:
            in_time = segments_find(&self.owner.trie, other, text, n, until, &best)
        if not in_time:
            raise LimitError("max_seconds", max_seconds + seconds_now() - until, max_seconds)
        if best.count[0] < 0:
            raise VocabularyError(f"no sequence of tokens spells {data!r}: the vocabulary lacks a byte")
        out = list(best.before)
        i = 0
        while i < n:
            out.append(best.token[i])
            i = best.next[i]
            if len(out) % SEGMENTS_AT_ONCE == 0:
                check_time()
        return out
