# A vocabulary's trie and the automata that grammars share.

cdef void mark_loops(Automaton* automaton) noexcept nogil:
    # in_loop: everything between entering a loop and leaving it.
    cdef vector[int32_t] work
    cdef size_t i, j
    cdef int32_t q, loop
    automaton.in_loop.assign(automaton.edges.size(), 0)
    for i in range(automaton.epsilons.size()):
        for j in range(automaton.epsilons[i].size()):
            if automaton.epsilons[i][j].op != EPSILON_ENTER:
                continue
            loop = automaton.epsilons[i][j].loop + 1
            work.push_back(automaton.epsilons[i][j].target)
            while not work.empty():
                q = work.back()
                work.pop_back()
                if automaton.in_loop[q] != 0 or q == <int32_t>i:
                    continue
                automaton.in_loop[q] = loop
                mark_neighbours(automaton, q, work)


cdef void mark_neighbours(Automaton* automaton, int32_t q, vector[int32_t]& work) noexcept nogil:
    cdef size_t i
    for i in range(automaton.edges[q].size()):
        work.push_back(automaton.edges[q][i].target)
    for i in range(automaton.epsilons[q].size()):
        if automaton.epsilons[q][i].op == EPSILON_PLAIN:
            work.push_back(automaton.epsilons[q][i].target)


cdef class AutomatonHandle:
    """A lexeme's automaton; keeps the C++ object alive."""

    cdef Automaton* automaton
    cdef object base

    def __dealloc__(self):
        if self.automaton != NULL:
            lex_free(self.automaton)

    def explore(self, int32_t limit):
        """Determinise all states (at most ``limit``), breadth first; the number of states."""
        cdef size_t at = 0
        while at < self.automaton.states.size() and <int32_t>self.automaton.states.size() <= limit:
            lex_first(self.automaton.states[at])
            at += 1
        return self.automaton.states.size()


cdef class Engine:
    """A vocabulary's token trie, and automata by content key.

    ``tokens``: bytes of each id, empty for ids that no text produces.
    """

    cdef Trie trie
    cdef size_t words
    cdef readonly int vocab_size
    cdef readonly tuple eos_ids
    cdef list tokens
    cdef dict automata
    cdef int32_t next_uid
    cdef int64_t largest           # most states of any automaton
    cdef size_t longest            # token, in bytes

    def __init__(self, list tokens, tuple eos_ids, trie_arrays=None):
        self.vocab_size = len(tokens)
        self.words = (len(tokens) + 31) // 32
        self.longest = max(map(len, tokens), default=0)
        self.eos_ids = eos_ids
        self.tokens = tokens
        self.automata = {}
        if trie_arrays is None:
            self._build_trie()
        else:
            self._load_trie(*trie_arrays)

    def _build_trie(self):
        cdef list order = [i for i, token in enumerate(self.tokens) if token]
        order.sort(key=self.tokens.__getitem__)
        cdef list ordered = [self.tokens[i] for i in order]
        cdef bytes data = b"".join(ordered)
        cdef vector[int64_t] starts
        cdef vector[int32_t] ids
        cdef int64_t at = 0
        for token in ordered:
            starts.push_back(at)
            at += len(token)
        starts.push_back(at)
        for i in order:
            ids.push_back(i)
        trie_build(&self.trie, <const uint8_t*><const char*>data, starts.data(), ids.data(),
                   <int64_t>ids.size())

    def _load_trie(self, bytes nodes, bytes token_ids):
        self.trie.nodes.resize(len(nodes) // sizeof(TrieNode))
        memcpy(self.trie.nodes.data(), <const char*>nodes, len(nodes))
        self.trie.tokens.resize(len(token_ids) // sizeof(int32_t))
        memcpy(self.trie.tokens.data(), <const char*>token_ids, len(token_ids))

    def dump_trie(self):
        """The trie as two byte strings, for ``trie_arrays``."""
        return ((<const char*>self.trie.nodes.data())[:self.trie.nodes.size() * sizeof(TrieNode)],
                (<const char*>self.trie.tokens.data())[:self.trie.tokens.size() * sizeof(int32_t)])

    @property
    def trie_nodes(self):
        return self.trie.nodes.size()

    cdef AutomatonHandle new_automaton(self, int32_t kind):
        cdef AutomatonHandle handle = AutomatonHandle()
        handle.automaton = new Automaton()
        handle.automaton.kind = kind
        handle.automaton.uid = self.next_uid
        handle.automaton.largest = &self.largest
        handle.automaton.base = NULL
        handle.automaton.free = NULL
        handle.automaton.is_free = False
        handle.automaton.start = LEX_DEAD
        self.next_uid += 1
        return handle

    def get_automaton(self, key):
        """The automaton registered under ``key``, or None."""
        return self.automata.get(key)

    def add_automaton(self, key, int32_t n_states, int32_t start, list edges, list epsilons,
                      list loops, list accepts):
        """Register an NFA (see ``maskwright.automata.Nfa``) under a content key."""
        cdef AutomatonHandle handle = self.build_nfa(
            n_states, start, edges, epsilons, loops, accepts, False)
        self.automata[key] = handle
        return handle

    cdef AutomatonHandle build_nfa(self, int32_t n_states, int32_t start, list edges, list epsilons,
                                   list loops, list accepts, cbool is_free):
        cdef AutomatonHandle handle = self.new_automaton(KIND_NFA)
        cdef AutomatonHandle free
        cdef Automaton* a = handle.automaton
        cdef NfaEdge edge
        cdef NfaEpsilon epsilon
        cdef vector[uint64_t] items
        cdef LexState* free_start = NULL
        cdef bint[257] cut
        cdef int32_t src, low, high, target, op, loop, byte
        a.edges.resize(n_states)
        a.epsilons.resize(n_states)
        a.accept.resize(n_states, NO_TAG)
        for byte in range(257):
            cut[byte] = False
        for src, low, high, target in edges:
            edge.low = <uint8_t>low
            edge.high = <uint8_t>high
            edge.target = target
            a.edges[src].push_back(edge)
            cut[low] = True
            cut[high + 1] = True
        for src, target, op, loop in epsilons:
            epsilon.target = target
            epsilon.op = op
            epsilon.loop = loop
            a.epsilons[src].push_back(epsilon)
        for low, high in loops:
            a.loop_min.push_back(low)
            a.loop_max.push_back(high)
        for src, target in accepts:
            a.accept[src] = target
        cut[0] = True
        for byte in range(256):
            if cut[byte]:
                a.class_byte.push_back(<uint8_t>byte)
            a.byte_class.push_back(<uint8_t>(a.class_byte.size() - 1))
        a.is_free = is_free
        if is_free:
            mark_loops(a)
        elif loops:
            # Automata that differ in their bounds only share one free automaton.
            key = ("free", n_states, start, tuple(edges), tuple(epsilons), tuple(accepts))
            free = self.automata.get(key)
            if free is None:
                free = self.build_nfa(n_states, start, edges, epsilons, [], accepts, True)
                self.automata[key] = free
            handle.base = free
            a.free = free.automaton
            a.in_loop = free.automaton.in_loop
            free_start = free.automaton.start
        items.push_back((<uint64_t>start) << 32)
        a.start = lex_intern_items(a, items, free_start)
        return handle

    def add_keyset(self, list names, list tags, int32_t other_tag, AutomatonHandle base):
        """A set of quoted keys: canonical spellings (bytes, without quotes) and their tags."""
        cdef AutomatonHandle handle = self.new_automaton(KIND_KEYSET)
        cdef Automaton* a = handle.automaton
        cdef string name
        for spelled, tag in sorted(zip(names, tags)):
            name = spelled
            a.names.push_back(name)
            a.tags.push_back(tag)
        a.other_tag = other_tag
        if base is not None:
            a.base = base.automaton
            handle.base = base
        a.start = key_start(a, 0, <int32_t>0x7FFFFFFF, base is not None)
        return handle

    def dump_masks(self, AutomatonHandle handle):
        """The context-independent masks of an explored automaton, as one byte string a state."""
        cdef LexState* state
        cdef LexMask* mask
        cdef size_t i
        out = []
        for i in range(handle.automaton.states.size()):
            state = handle.automaton.states[i]
            mask = lexmask_get(state, &self.trie, self.words)
            out.append((
                (<const char*>mask.bits.data())[:mask.bits.size() * 4],
                (<const char*>mask.inside.data())[:mask.inside.size() * 4],
                (<const char*>mask.crossing.data())[:mask.crossing.size() * sizeof(Crossing)],
            ))
        return out

    def load_masks(self, AutomatonHandle handle, list dumped):
        """Take over what ``dump_masks`` of the same automaton on the same vocabulary gave."""
        cdef LexMask* mask
        cdef size_t i
        cdef bytes bits, inside, crossing
        if len(dumped) != <int64_t>handle.automaton.states.size():
            raise VocabularyError("cached masks do not belong to this automaton; delete the cache file")
        for i in range(handle.automaton.states.size()):
            bits, inside, crossing = dumped[i]
            mask = new LexMask()
            mask.ref = NULL
            mask.bits.resize(len(bits) // 4)
            memcpy(mask.bits.data(), <const char*>bits, len(bits))
            mask.inside.resize(len(inside) // 4)
            memcpy(mask.inside.data(), <const char*>inside, len(inside))
            mask.crossing.resize(len(crossing) // sizeof(Crossing))
            memcpy(mask.crossing.data(), <const char*>crossing, len(crossing))
            handle.automaton.states[i].mask = mask

    def segment(self, bytes data):
        """Ids of the fewest tokens that spell ``data``; VocabularyError when none do."""
        cdef const uint8_t* text = <const uint8_t*><const char*>data
        cdef int64_t n = len(data), i, j
        cdef vector[int32_t] count, token
        cdef vector[int64_t] step
        cdef uint32_t node
        count.resize(n + 1, -1)
        token.resize(n + 1, -1)
        step.resize(n + 1, 0)
        count[n] = 0
        for i in range(n - 1, -1, -1):
            node = 0
            for j in range(i, n):
                node = trie_child(&self.trie, node, text[j])
                if node == 0:
                    break
                if (self.trie.nodes[node].token < self.trie.nodes[node + 1].token and count[j + 1] >= 0
                        and (count[i] < 0 or count[j + 1] + 1 <= count[i])):
                    count[i] = count[j + 1] + 1
                    token[i] = self.trie.tokens[self.trie.nodes[node].token]
                    step[i] = j + 1 - i
        if count[0] < 0:
            raise VocabularyError(f"no sequence of tokens spells {data!r}: the vocabulary lacks a byte")
        out = []
        i = 0
        while i < n:
            out.append(token[i])
            i += step[i]
        return out
