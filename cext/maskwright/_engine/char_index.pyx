# What the tokens are made of: an index of the trie by character, read as UTF-8 from the root.

from libc.stdint cimport uint16_t
from libc.string cimport memcpy, memset
from libcpp.atomic cimport memory_order_relaxed
from libcpp.pair cimport pair
from libcpp.string cimport string

from maskwright._engine.sizes cimport set_add, set_has
from maskwright._engine.limits cimport NO_LIMIT
from maskwright._engine.trie cimport TrieNode
from maskwright._engine.vocabulary cimport CharNode, LAST_CODE_POINT, PartNode, Slice, TALL_KINDS


cdef Bits* bits_new(Index* index) noexcept nogil:
    cdef Bits* bits = new Bits()
    bits.holders.set(1)
    bits.words.resize(index.words, 0)
    index.cache.bytes.add(index.words * 4)
    return bits


cdef void bits_release(Index* index, Bits* bits) noexcept nogil:
    if bits == NULL:
        return
    if bits.holders.drop() == 0:
        index.cache.bytes.subtract(bits.words.size() * 4)
        del bits


cdef Bits* bits_owned(Index* index, Bits* bits) noexcept nogil:
    # The same set (NULL: the empty one) as a bitset that nobody else holds, in place of the given one.
    cdef Bits* own
    if bits != NULL and bits.holders.value() == 1:
        return bits
    own = bits_new(index)
    if bits != NULL:
        own.words = bits.words
        bits_release(index, bits)
    return own


cdef void bits_subtract(Bits* bits, const Bits* other) noexcept nogil:
    cdef uint32_t* own = bits.words.data()
    cdef const uint32_t* removed = other.words.data()
    cdef size_t i, count = bits.words.size()
    for i in range(count):
        own[i] &= ~removed[i]


cdef void bits_unite(Bits* bits, const Bits* other) noexcept nogil:
    cdef uint32_t* own = bits.words.data()
    cdef const uint32_t* added = other.words.data()
    cdef size_t i, count = bits.words.size()
    for i in range(count):
        own[i] |= added[i]


cdef cbool bits_within(const Bits* some, const Bits* others) noexcept nogil:
    cdef size_t i
    for i in range(some.words.size()):
        if some.words[i] & ~others.words[i]:
            return False
    return True


cdef int32_t utf8_lead(uint8_t byte, int32_t* point) noexcept nogil:
    # Continuation bytes behind a first byte, or -1; `point` becomes its part of the code point.
    if byte < 0x80:
        point[0] = byte
        return 0
    if 0xC2 <= byte <= 0xDF:
        point[0] = byte & 31
        return 1
    if 0xE0 <= byte <= 0xEF:
        point[0] = byte & 15
        return 2
    if 0xF0 <= byte <= 0xF4:
        point[0] = byte & 7
        return 3
    return -1


cdef cbool utf8_possible(int32_t length, int32_t left, int32_t point, CodeRange* span) noexcept nogil:
    # The code points that a character of `length` continuation bytes, `left` of them missing, can be.
    cdef int32_t least = 0
    if length == 2:
        least = 0x800
    elif length == 3:
        least = 0x10000
    span.low = point << (6 * left)
    span.high = span.low + (1 << (6 * left)) - 1
    if span.low < least:
        span.low = least
    if span.high > LAST_CODE_POINT:
        span.high = LAST_CODE_POINT
    # Surrogates are no characters; they fill whole spans or the end of one.
    if span.low < 0xD800 <= span.high <= 0xDFFF:
        span.high = 0xD7FF
    if 0xD800 <= span.low <= 0xDFFF:
        return False
    return span.low <= span.high


cdef cbool char_step(CharPlace* place, uint8_t byte, CodeRange* possible) noexcept nogil:
    # Read a byte; `possible` is what the character can be then.  False where it can be none.
    if place.left == 0:
        place.left = place.span = utf8_lead(byte, &place.point)
    elif byte & 0xC0 == 0x80:
        place.point = (place.point << 6) | (byte & 63)
        place.left -= 1
    else:
        return False
    return place.left >= 0 and utf8_possible(place.span, place.left, place.point, possible)


cdef void index_build(Index* index, const Trie* trie, size_t words) noexcept nogil:
    cdef vector[CharPlace] places                          # by depth
    cdef vector[int32_t] counts
    cdef vector[int32_t] commonness
    cdef vector[uint32_t] path, parents
    cdef vector[pair[int32_t, int32_t]] lengths
    cdef uint32_t node = 1, last = trie.nodes[0].end
    cdef size_t depth
    cdef int32_t t, count
    cdef uint8_t byte
    cdef CharPlace place
    cdef CharNode whole
    cdef PartNode part
    cdef CodeRange possible
    index.trie = trie
    index.away = 0
    index.forks = False
    index.words = words
    index.by_char.longest = 0
    index.cache.largest.store(0, memory_order_relaxed)
    index.cache.masks_made = 0
    index.move_steps = MOVE_STEPS
    index.cache.bytes.set(0)
    index.cache.set_bytes = 0
    index.cache.hand_unit = index.cache.hand_part = index.cache.hand_item = 0
    index.deadline.at = index.deadline.ask_at = 0
    index.deadline.steps = 0
    index.deadline.passed = index.deadline.interrupted = False
    index.deadline.most_states = index.deadline.most_bytes = NO_LIMIT
    index.deadline.searched = index.deadline.crowded = index.deadline.heavy = 0
    parents.resize(trie.nodes.size(), 0)
    lengths.reserve(trie.tokens.size())
    index.by_char.text = bits_new(index)
    index.by_char.beyond_ascii = bits_new(index)
    path.push_back(0)
    memset(&place, 0, sizeof(place))
    places.push_back(place)
    counts.push_back(0)
    while node < last:
        depth = trie.nodes[node].depth
        byte = trie.nodes[node].byte
        path.resize(depth)
        places.resize(depth)
        counts.resize(depth)
        parents[node] = path[depth - 1]
        place = places[depth - 1]
        count = counts[depth - 1] + (place.left == 0)
        if not char_step(&place, byte, &possible):
            # What lies below is reached from the middle of a character only: walks find it.
            index_note_parents(trie, node, parents)
            node = trie.nodes[node].end
            continue
        if place.left == 0:
            whole.point = place.point
            whole.node = node
            index.by_char.chars.push_back(whole)
        for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
            lengths.push_back(pair[int32_t, int32_t](count, trie.tokens[t]))
            bits_add(index.by_char.text, trie.tokens[t])
        if place.left > 0 and trie.nodes[node].token < trie.nodes[node + 1].token:
            part.node = node
            part.first = possible.low
            part.last = possible.high
            index.by_char.parts.push_back(part)
        if byte >= 0x80:
            for t in range(trie.nodes[node].token, trie.nodes[trie.nodes[node].end].token):
                bits_add(index.by_char.beyond_ascii, trie.tokens[t])
        path.push_back(node)
        places.push_back(place)
        counts.push_back(count)
        node += 1
    index_fill_children(index, parents)
    index_fill_heights(index, parents)
    index_fill_escaping(index, parents)
    commonness.resize(256, 0)
    for node in range(1, last):
        commonness[trie.nodes[node].byte] += 1
        if trie.nodes[node].byte == 34:
            index.by_char.quotes.push_back(node)
    index.by_char.commonest = 0
    for t in range(256):
        if commonness[t] > commonness[index.by_char.commonest]:
            index.by_char.commonest = <uint8_t>t
    index_sort_chars(index)
    index_fill_containing(index)
    index_fill_lengths(index, lengths)
    index.cache.bytes.set(0)


cdef void index_sort_chars(Index* index) noexcept nogil:
    # By code point; nodes come in their order already.
    cdef vector[int32_t] places
    cdef vector[CharNode] found
    cdef CharNode each
    cdef size_t i
    found.swap(index.by_char.chars)
    index.by_char.chars.resize(found.size())
    places.resize(LAST_CODE_POINT + 2, 0)
    for i in range(found.size()):
        places[found[i].point + 1] += 1
    for i in range(places.size() - 1):
        places[i + 1] += places[i]
    index.by_char.char_starts.assign(found.size() + 1, 0)
    for each in found:
        i = places[each.point]
        index.by_char.chars[i] = each
        if index.trie.nodes[each.node].depth <= LONGEST_TEXT:
            index.by_char.char_starts[i + 1] = index.trie.nodes[each.node].depth
        places[each.point] += 1
    for i in range(found.size()):
        index.by_char.char_starts[i + 1] += index.by_char.char_starts[i]
    index.by_char.char_texts.resize(index.by_char.char_starts.back())
    for each in found:
        places[each.point] -= 1
    index_fill_char_texts(index, found, places)


cdef void index_fill_char_texts(Index* index, vector[CharNode]& found, vector[int32_t]& places) noexcept nogil:
    # `found`: by node; `places`: by code point, where its first character is among the sorted ones.
    cdef const TrieNode* nodes = index.trie.nodes.data()
    cdef vector[uint8_t] path
    cdef CharNode each
    cdef uint32_t node = 1
    for each in found:
        while node <= each.node:
            path.resize(nodes[node].depth)
            path[nodes[node].depth - 1] = nodes[node].byte
            node += 1
        if nodes[each.node].depth <= LONGEST_TEXT:
            memcpy(&index.by_char.char_texts[index.by_char.char_starts[places[each.point]]], path.data(), nodes[each.node].depth)
        places[each.point] += 1


cdef void index_fill_children(Index* index, const vector[uint32_t]& parents) noexcept nogil:
    cdef const Trie* trie = index.trie
    cdef uint32_t node, last = trie.nodes[0].end
    cdef vector[uint32_t] next
    index.by_char.child_first.assign(<size_t>last + 1, 0)
    for node in range(1, last):
        index.by_char.child_first[parents[node] + 1] += 1
    for node in range(last):
        index.by_char.child_first[node + 1] += index.by_char.child_first[node]
    next = index.by_char.child_first
    index.by_char.child_nodes.resize(last)
    index.by_char.child_bytes.resize(last)
    for node in range(1, last):
        index.by_char.child_nodes[next[parents[node]]] = node
        index.by_char.child_bytes[next[parents[node]]] = trie.nodes[node].byte
        next[parents[node]] += 1


cdef void index_fill_heights(Index* index, const vector[uint32_t]& parents) noexcept nogil:
    cdef uint32_t node, last = index.trie.nodes[0].end
    cdef int32_t kind
    # Children come behind their parents.
    index.by_char.heights.assign(last, 0)
    for node in range(last - 1, 0, -1):
        index.by_char.heights[parents[node]] = max(index.by_char.heights[parents[node]], <uint16_t>(index.by_char.heights[node] + 1))
    for kind in range(TALL_KINDS):
        index_fill_tall(index, kind)


cdef uint32_t index_child_from(const Index* index, uint32_t low, uint32_t high, uint8_t byte) noexcept nogil:
    # Position among children [low, high) of one node of the first one from `byte` on.
    cdef uint32_t middle
    while low < high:
        middle = (low + high) // 2
        if index.by_char.child_bytes[middle] < byte:
            low = middle + 1
        else:
            high = middle
    return low


cdef void index_fill_escaping(Index* index, const vector[uint32_t]& parents) noexcept nogil:
    cdef const Trie* trie = index.trie
    cdef vector[uint64_t]* found = &index.by_char.escaping
    cdef uint32_t node = trie.nodes[0].end
    found.resize((trie.nodes.size() + 63) // 64, 0)
    # Children stand behind their parents.
    while node > 1:
        node -= 1
        if trie.nodes[node].byte == 34 or trie.nodes[node].byte == 92:
            set_add(found[0], node)
        if set_has(found[0], node):
            set_add(found[0], parents[node])


cdef void index_note_parents(const Trie* trie, uint32_t top, vector[uint32_t]& parents) noexcept nogil:
    cdef vector[uint32_t] path
    cdef uint32_t node
    cdef size_t base = trie.nodes[top].depth
    path.push_back(top)
    for node in range(top + 1, trie.nodes[top].end):
        path.resize(<size_t>trie.nodes[node].depth - base)
        parents[node] = path.back()
        path.push_back(node)


cdef void index_free(Index* index) noexcept nogil:
    # Its residuals are freed already.
    cdef int32_t byte
    index_forget_slices(index)
    bits_release(index, index.by_char.text)
    bits_release(index, index.by_char.beyond_ascii)
    for byte in range(128):
        bits_release(index, index.by_char.containing[byte])
    del index


cdef void index_forget_slices(Index* index) noexcept nogil:
    # Masks that use their bits hold them.
    cdef pair[string, Slice*] entry
    cdef pair[int32_t, Bits*] limited
    cdef pair[int64_t, vector[Exit]] exits
    cdef pair[uint32_t, Bits*] below
    for entry in index.by_char.slices:
        bits_release(index, entry.second.bits)
        for limited in entry.second.limited:
            bits_release(index, limited.second)
        for exits in entry.second.exits:
            index.cache.bytes.subtract(exits_size(exits.second))
        for below in entry.second.below:
            bits_release(index, below.second)
        del entry.second
    index.by_char.slices.clear()


cdef size_t index_first(const Index* index, int32_t point) noexcept nogil:
    # Position in `chars` of the first character from `point` on.
    cdef size_t low = 0, high = index.by_char.chars.size(), middle
    while low < high:
        middle = (low + high) // 2
        if index.by_char.chars[middle].point < point:
            low = middle + 1
        else:
            high = middle
    return low


cdef int32_t index_count(const Index* index, int32_t low, int32_t high) noexcept nogil:
    # How many trie nodes end a character in low..high.
    return <int32_t>(index_first(index, high + 1) - index_first(index, low))


cdef size_t index_first_below(const Index* index, int32_t point, uint32_t top) noexcept nogil:
    # Position in `chars` of the first node behind `top` that ends this character.
    cdef size_t low = index_first(index, point), high = index_first(index, point + 1), middle
    while low < high:
        middle = (low + high) // 2
        if index.by_char.chars[middle].node <= top:
            low = middle + 1
        else:
            high = middle
    return low


cdef size_t index_first_part(const Index* index, uint32_t top) noexcept nogil:
    # Position in `parts` of the first node behind `top`.
    cdef size_t low = 0, high = index.by_char.parts.size(), middle
    while low < high:
        middle = (low + high) // 2
        if index.by_char.parts[middle].node <= top:
            low = middle + 1
        else:
            high = middle
    return low


cdef void index_clear_below(const Index* index, Bits* bits, uint32_t node) noexcept nogil:
    cdef const Trie* trie = index.trie
    cdef int32_t t
    for t in range(trie.nodes[node].token, trie.nodes[trie.nodes[node].end].token):
        bits_remove(bits, trie.tokens[t])


cdef void index_fill_containing(Index* index) noexcept nogil:
    cdef const Trie* trie = index.trie
    cdef CharNode whole
    cdef int32_t byte, t
    for byte in range(128):
        index.by_char.containing[byte] = bits_new(index)
    for whole in index.by_char.chars:
        if whole.point >= 128:
            return
        for t in range(trie.nodes[whole.node].token, trie.nodes[trie.nodes[whole.node].end].token):
            bits_add(index.by_char.containing[whole.point], trie.tokens[t])


cdef void index_fill_lengths(Index* index, const vector[pair[int32_t, int32_t]]& lengths) noexcept nogil:
    # Pairs of a number of characters and a token.
    cdef vector[int32_t] places
    cdef size_t i
    for i in range(lengths.size()):
        if lengths[i].first > index.by_char.longest:
            index.by_char.longest = lengths[i].first
    index.by_char.longer.assign(<size_t>index.by_char.longest + 1, 0)
    for i in range(lengths.size()):
        index.by_char.longer[lengths[i].first - 1] += 1
    for i in range(<size_t>index.by_char.longest, 0, -1):
        index.by_char.longer[i - 1] += index.by_char.longer[i]
    # Those of n characters begin behind all that have more.
    places = index.by_char.longer
    index.by_char.by_length.resize(lengths.size())
    for i in range(lengths.size()):
        index.by_char.by_length[places[lengths[i].first]] = lengths[i].second
        places[lengths[i].first] += 1


cdef int32_t text_point(const uint8_t* text, size_t end, size_t* at) noexcept nogil:
    # The code point at text[at:end], which is valid; `at` moves behind it.  -1 when it is cut short.
    cdef int32_t point = 0, left = utf8_lead(text[at[0]], &point)
    at[0] += 1
    while left > 0:
        if at[0] == end:
            return -1
        point = (point << 6) | (text[at[0]] & 63)
        at[0] += 1
        left -= 1
    return point


cdef int32_t tall_kind(int32_t bytes) noexcept nogil:
    # The list with the fewest nodes among those that have every node that ends so many bytes behind its parent, or further; -1: none.
    cdef int32_t kind = TALL_KINDS - 1
    while kind >= 0 and tall_least(kind) > bytes:
        kind -= 1
    return kind


cdef void index_fill_tall(Index* index, int32_t kind) noexcept nogil:
    cdef const TrieNode* nodes = index.trie.nodes.data()
    cdef vector[TallNode]* tall = &index.by_char.tall[kind]
    cdef vector[size_t] around
    cdef TallNode each
    cdef size_t at
    cdef uint32_t node
    for node in range(1, nodes[0].end):
        if index.by_char.heights[node] + 1 < tall_least(kind):
            continue
        while not around.empty() and nodes[tall[0][around.back()].node].end <= node:
            tall[0][around.back()].end = <uint32_t>tall.size()
            around.pop_back()
        around.push_back(tall.size())
        each.node = node
        each.height = index.by_char.heights[node]
        each.byte = nodes[node].byte
        tall.push_back(each)
    for at in around:
        tall[0][at].end = <uint32_t>tall.size()
    tall.shrink_to_fit()


cdef size_t tall_below(const vector[TallNode]* tall, uint32_t node) noexcept nogil:
    # The position of the first one behind a node.
    cdef size_t low = 0, high = tall.size(), middle
    while low < high:
        middle = (low + high) // 2
        if tall[0][middle].node <= node:
            low = middle + 1
        else:
            high = middle
    return low
