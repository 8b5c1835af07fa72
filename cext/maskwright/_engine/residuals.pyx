# Residuals: what is left of tokens that run past the end of a lexeme (lexeme_sets.pyx), as small tries of their own.

from libc.stdint cimport int32_t, int64_t, uint16_t, uint8_t
from libc.string cimport memset
from libcpp.algorithm cimport sort

from maskwright._engine.sizes cimport ALLOCATION, bits_set
from maskwright._engine.vocabulary cimport ResidualNode


cdef void residuals_free(Index* index) noexcept nogil:
    cdef size_t i
    for i in range(index.residuals.all.size()):
        index.cache.set_bytes -= residual_bytes(index.residuals.all[i])
        del index.residuals.all[i]
    index.residuals.all.clear()
    index.residuals.ids.clear()


cdef inline int64_t residual_bytes(const Residual* rest) noexcept nogil:
    # With its key, which has its strings.
    return (<int64_t>(sizeof(Residual) + 2 * ALLOCATION)
            + <int64_t>(rest.nodes.size() * (sizeof(ResidualNode) + sizeof(void*) + 1)))


cdef Residual* residual_intern(Index* index, vector[string]& texts) noexcept nogil:
    # A set of strings, none of them empty.
    cdef string key, previous
    cdef vector[size_t] path
    cdef Residual* made
    cdef ResidualNode node
    cdef uint32_t length
    cdef size_t i, j, common
    cdef int32_t id
    sort(texts.begin(), texts.end())
    for i in range(texts.size()):
        if i == 0 or texts[i] != texts[i - 1]:
            length = <uint32_t>texts[i].size()
            key.append(<const char*>&length, sizeof(length))
            key.append(texts[i])
    id = index.residuals.ids.find(key)
    if id >= 0:
        return index.residuals.all[id]
    made = new Residual()
    memset(made.first, 0, 32)
    made.id = <int32_t>index.residuals.all.size()
    for i in range(texts.size()):
        if i > 0 and texts[i] == previous:
            continue
        common = 0
        while common < texts[i].size() and common < previous.size() and texts[i][common] == previous[common]:
            common += 1
        while path.size() > common:
            made.nodes[path.back()].end = <uint32_t>made.nodes.size()
            path.pop_back()
        for j in range(common, texts[i].size()):
            node.end = 0
            node.depth = <uint16_t>(j + 1)
            node.byte = <uint8_t>texts[i][j]
            node.final = j + 1 == texts[i].size()
            path.push_back(made.nodes.size())
            made.nodes.push_back(node)
        bits_set(made.first, <uint8_t>texts[i][0])
        previous = texts[i]
    while not path.empty():
        made.nodes[path.back()].end = <uint32_t>made.nodes.size()
        path.pop_back()
    index.residuals.ids.insert(key, made.id)
    index.residuals.all.push_back(made)
    index.cache.set_bytes += residual_bytes(made)
    return made


cdef Residual* residual_below(Index* index, Residual* rest, uint32_t top) noexcept nogil:
    # What is left of the strings that go on behind a node.
    cdef vector[string] texts
    cdef string text
    cdef uint32_t node
    cdef size_t depth
    if rest.below.empty():
        rest.below.resize(rest.nodes.size(), <Residual*>NULL)
    if rest.below[top] == NULL:
        for node in range(top + 1, rest.nodes[top].end):
            depth = <size_t>(rest.nodes[node].depth - rest.nodes[top].depth)
            text.resize(depth - 1)
            text.push_back(<char>rest.nodes[node].byte)
            if rest.nodes[node].final:
                texts.push_back(text)
        rest.below[top] = residual_intern(index, texts)
    return rest.below[top]
