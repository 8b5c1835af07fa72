# Tokens over a set of characters.
#
# A *slice* is the set of tokens whose characters all belong to a set C of code points: what a lexer state that loops on C
# allows, bar the tokens that leave the loop.  Slices depend on the vocabulary and C only, so all lexemes of all grammars
# share them.
#
# Where words are read, a blank leads out of C, into a state that may loop on C again, and half of the vocabulary begins with it:
# what is below one trie node and goes on over C from there is a slice, too.

from cython.operator cimport dereference
from libc.stdint cimport int64_t, uint8_t
from libcpp.string cimport string

from maskwright._engine.sizes cimport bits_has, bits_set
from maskwright._engine.trie cimport Trie, TrieNode
from maskwright._engine.vocabulary cimport LAST_CODE_POINT
from maskwright._engine.char_index cimport (
    bits_add, bits_hold_token, bits_new, bits_remove, bits_subtract, char_step, CharPlace, exits_size,
    index_char_text, index_clear_below, index_count, index_first, index_first_below, index_first_part,
    index_text, text_point
)


cdef cbool points_hold(const vector[CodeRange]& points, int32_t first, int32_t last) noexcept nogil:
    # Whether first..last is within one of the ranges.
    cdef size_t low = 0, high = points.size(), middle
    while low < high:
        middle = (low + high) // 2
        if points[middle].high < first:
            low = middle + 1
        else:
            high = middle
    return low < points.size() and points[low].low <= first and last <= points[low].high


cdef cbool slice_spells(const Index* index, const Slice* slice, int32_t token) noexcept nogil:
    # Whether the characters of a token that are above ASCII are in the slice.
    cdef CharPlace place
    cdef CodeRange possible
    cdef int64_t i
    place.left = 0
    for i in range(index.token_starts[token], index.token_starts[token + 1]):
        if not char_step(&place, index.token_data[i], &possible):
            return False
        if place.left == 0 and place.span > 0 and not points_hold(slice.points, place.point, place.point):
            return False
    return place.left == 0 or points_hold(slice.points, possible.low, possible.high)


cdef void slice_keep_spelled(Index* index, Slice* made, const vector[uint32_t]& ascii, uint32_t first, uint32_t last) noexcept nogil:
    # Put tokens of the trie back that are in the slice.  `ascii`: those whose other characters are.
    cdef uint32_t t
    cdef int32_t token
    for t in range(first, last):
        token = index.trie.tokens[t]
        if (ascii[<size_t>token >> 5] >> (token & 31)) & 1 and slice_spells(index, made, token):
            bits_add(made.bits, token)


cdef void slice_clear_beyond(Index* index, Slice* made) noexcept nogil:
    # Tokens with a character above ASCII that is in no range: by such characters, or by the others where they are fewer.
    cdef vector[CodeRange] gaps
    cdef vector[uint32_t] ascii
    cdef const TrieNode* nodes = index.trie.nodes.data()
    cdef CodeRange span
    cdef int32_t at = 0x80, inside = 0, outside = 0, t
    cdef size_t i, position
    cdef uint32_t node
    for i in range(made.points.size() + 1):
        span.low = at
        span.high = made.points[i].low - 1 if i < made.points.size() else LAST_CODE_POINT
        if span.low <= span.high:
            gaps.push_back(span)
            outside += index_count(index, span.low, span.high)
        if i < made.points.size() and made.points[i].high >= at:
            inside += index_count(index, max(at, made.points[i].low), made.points[i].high)
            at = made.points[i].high + 1
    if inside < outside:
        ascii = made.bits.words
        bits_subtract(made.bits, index.by_char.beyond_ascii)
    for span in made.points if inside < outside else gaps:
        position = index_first(index, max(<int32_t>0x80, span.low))
        while position < index.by_char.chars.size() and index.by_char.chars[position].point <= span.high:
            node = index.by_char.chars[position].node
            if inside < outside:
                slice_keep_spelled(index, made, ascii, nodes[node].token, nodes[nodes[node].end].token)
            else:
                index_clear_below(index, made.bits, node)
            position += 1
    for i in range(index.by_char.parts.size()):
        node = index.by_char.parts[i].node
        if points_hold(made.points, index.by_char.parts[i].first, index.by_char.parts[i].last):
            if inside < outside:
                slice_keep_spelled(index, made, ascii, nodes[node].token, nodes[node + 1].token)
        elif inside >= outside:
            for t in range(nodes[node].token, nodes[node + 1].token):
                bits_remove(made.bits, index.trie.tokens[t])


cdef Slice* index_slice(Index* index, const vector[CodeRange]& points) noexcept nogil:
    # `points` are sorted and disjoint.  Surrogates are nobody's: ranges may or may not hold them.
    cdef string key
    cdef Slice* made
    cdef int32_t byte
    key.assign(<const char*>points.data(), points.size() * sizeof(CodeRange))
    found = index.by_char.slices.find(key)
    if found != index.by_char.slices.end():
        return dereference(found).second
    made = new Slice()
    made.points = points
    made.longest = -1
    made.bits = bits_new(index)
    made.bits.words = index.by_char.text.words
    made.ascii[0] = made.ascii[1] = 0
    for byte in range(128):
        if points_hold(points, byte, byte):
            bits_set(made.ascii, <uint8_t>byte)
        else:
            bits_subtract(made.bits, index.by_char.containing[byte])
    if points.empty() or points.back().high < 0x80:
        bits_subtract(made.bits, index.by_char.beyond_ascii)
    else:
        slice_clear_beyond(index, made)
    index.by_char.slices[key] = made
    return made


cdef int32_t slice_longest(const Index* index, const Slice* slice) noexcept nogil:
    # Characters of its longest token.
    cdef int32_t length = index.by_char.longest
    cdef size_t i
    for i in range(index.by_char.by_length.size()):
        while <int32_t>i >= index.by_char.longer[length - 1]:
            length -= 1
        if bits_hold_token(slice.bits, index.by_char.by_length[i]):
            return length
    return 0


cdef Bits* slice_limited(Index* index, Slice* slice, int32_t count) noexcept nogil:
    # Those of at most `count` characters (negative: any number).
    cdef Bits* bits
    cdef size_t i, longer
    if slice.longest < 0:
        slice.longest = slice_longest(index, slice)
    if count < 0 or count >= slice.longest:
        return slice.bits
    found = slice.limited.find(count)
    if found != slice.limited.end():
        return dereference(found).second
    bits = bits_new(index)
    longer = <size_t>index.by_char.longer[count]
    if 2 * longer < index.by_char.by_length.size():
        bits.words = slice.bits.words
        for i in range(longer):
            bits_remove(bits, index.by_char.by_length[i])
    else:
        for i in range(longer, index.by_char.by_length.size()):
            if bits_hold_token(slice.bits, index.by_char.by_length[i]):
                bits_add(bits, index.by_char.by_length[i])
    slice.limited[count] = bits
    return bits


cdef int32_t slice_before(const Slice* slice, const uint8_t* text, size_t at, size_t end) noexcept nogil:
    # The characters of text[at:end] without the last one, which may be cut short; -1 where one is outside the slice.
    cdef int32_t point, count = 0
    while True:
        point = text_point(text, end, &at)
        if at == end:
            return count
        if not (bits_has(slice.ascii, <uint8_t>point) if point < 0x80 else points_hold(slice.points, point, point)):
            return -1
        count += 1


cdef cbool slice_left_inside(const Index* index, const Slice* slice, const PartNode& part, uint32_t top) noexcept nogil:
    # Whether a token that ends inside a character leaves the slice there: it is in the slice when all it can become is.
    cdef const TrieNode* nodes = index.trie.nodes.data()
    return (not points_hold(slice.points, part.first, part.last)
            and slice_before(slice, index_text(index, part.node), nodes[top].depth, nodes[part.node].depth) >= 0)


cdef cbool slice_exit(const Index* index, const Slice* slice, size_t position, uint32_t top, Exit* exit) noexcept nogil:
    # Whether a character of the index comes behind characters of the slice only, from `top` on.
    exit.node = index.by_char.chars[position].node
    exit.text = index_char_text(index, position)
    exit.count = slice_before(slice, exit.text, index.trie.nodes[top].depth, index.trie.nodes[exit.node].depth)
    return exit.count >= 0


cdef const vector[Exit]* slice_exits(Index* index, Slice* slice, int32_t point, uint32_t top) noexcept nogil:
    # Where character `point`, which is outside the slice, comes behind characters of the slice only, from `top` on.
    cdef int64_t key = (<int64_t>top << 32) | point
    cdef uint32_t end = index.trie.nodes[top].end
    cdef vector[Exit] kept
    cdef Exit each
    cdef size_t position
    found = slice.exits.find(key)
    if found == slice.exits.end():
        for position in range(index_first_below(index, point, top), index_first_below(index, point, end - 1)):
            if slice_exit(index, slice, position, top, &each):
                kept.push_back(each)
        index.cache.bytes.add(exits_size(kept))
        slice.exits[key] = kept
    return &slice.exits[key]


# --- below a trie node ----------------------------------------------------------------------

cdef void points_add(vector[CodeRange]& points, int32_t point) noexcept nogil:
    cdef CodeRange span
    cdef size_t i = 0
    while i < points.size() and points[i].high < point - 1:
        i += 1
    span.low = span.high = point
    if i == points.size() or points[i].low > point + 1:
        points.insert(points.begin() + i, span)
        return
    points[i].low = min(points[i].low, point)
    points[i].high = max(points[i].high, point)
    if i + 1 < points.size() and points[i + 1].low == points[i].high + 1:
        points[i].high = points[i + 1].high
        points.erase(points.begin() + i + 1)


cdef Bits* slice_below(Index* index, Slice* slice, uint32_t top) noexcept nogil:
    # The tokens below a trie node that ends a character, as far as they go on over C from there.
    cdef const Trie* trie = index.trie
    cdef vector[CodeRange] points = slice.points
    cdef vector[int32_t] others                            # characters on the way to the node that are not in C
    cdef const uint8_t* text = index_text(index, top)
    cdef Slice* wider
    cdef Bits* made
    cdef size_t at = 0, position
    cdef uint32_t end = trie.nodes[top].end, node
    cdef int32_t t, point
    found = slice.below.find(top)
    if found != slice.below.end():
        return dereference(found).second
    while at < trie.nodes[top].depth:
        point = text_point(text, trie.nodes[top].depth, &at)
        if not points_hold(points, point, point):
            others.push_back(point)
            points_add(points, point)
    wider = index_slice(index, points)
    made = bits_new(index)
    for t in range(trie.nodes[top + 1].token, trie.nodes[end].token):
        if bits_hold_token(wider.bits, trie.tokens[t]):
            bits_add(made, trie.tokens[t])
    for point in others:
        for position in range(index_first_below(index, point, top), index_first_below(index, point, end - 1)):
            index_clear_below(index, made, index.by_char.chars[position].node)
    for position in range(index_first_part(index, top), index_first_part(index, end - 1)):
        node = index.by_char.parts[position].node
        if not points_hold(slice.points, index.by_char.parts[position].first, index.by_char.parts[position].last):
            for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
                bits_remove(made, trie.tokens[t])
    slice.below[top] = made
    return made


cdef void slice_cut_below(const Index* index, Bits* bits, const Bits* below, uint32_t top, int32_t count) noexcept nogil:
    # Out of a set, those of the tokens `below` a trie node that go on for more than `count` characters (negative: any number).
    cdef const uint8_t* text = index_text(index, top)
    cdef size_t at = 0, i
    cdef int32_t most = count
    if count < 0:
        return
    while at < index.trie.nodes[top].depth:
        text_point(text, index.trie.nodes[top].depth, &at)
        most += 1
    if most >= index.by_char.longest:
        return
    for i in range(<size_t>index.by_char.longer[most]):
        if bits_hold_token(below, index.by_char.by_length[i]):
            bits_remove(bits, index.by_char.by_length[i])
