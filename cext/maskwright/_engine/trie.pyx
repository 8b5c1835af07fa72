# The vocabulary as a prefix tree of bytes, in depth-first order.
#
# A node's subtree is the index range [node, end).  Tokens are listed in the same order, so the
# tokens of a node are tokens[node.token : next.token] and those of its subtree are contiguous
# as well.  A sentinel node closes the array.

from libcpp.algorithm cimport sort
from libcpp.pair cimport pair


cdef int64_t trie_size(const Trie* trie) noexcept nogil:
    # In bytes.
    return <int64_t>(trie.nodes.size() * sizeof(TrieNode) + trie.tokens.size() * 4)


cdef void trie_close_to(Trie* trie, vector[uint32_t]& path, size_t depth) noexcept nogil:
    # The nodes deeper than `depth` on the current path are complete.
    while path.size() > depth + 1:
        trie.nodes[path.back()].end = <uint32_t>trie.nodes.size()
        path.pop_back()


cdef void trie_add_node(Trie* trie, vector[uint32_t]& path, uint8_t byte) noexcept nogil:
    cdef TrieNode node
    node.end = 0
    node.token = <int32_t>trie.tokens.size()
    node.depth = <uint16_t>path.size()
    node.byte = byte
    node.unused = 0
    path.push_back(<uint32_t>trie.nodes.size())
    trie.nodes.push_back(node)


cdef void trie_finish(Trie* trie, vector[uint32_t]& path) noexcept nogil:
    trie_close_to(trie, path, 0)
    trie.nodes[0].end = <uint32_t>trie.nodes.size()
    cdef TrieNode sentinel
    sentinel.end = <uint32_t>trie.nodes.size() + 1
    sentinel.token = <int32_t>trie.tokens.size()
    sentinel.depth = 0
    sentinel.byte = 0
    sentinel.unused = 0
    trie.nodes.push_back(sentinel)


cdef void trie_build(Trie* trie, const uint8_t* data, const int64_t* starts, const int32_t* ids,
                     int64_t count) noexcept nogil:
    # `data` holds the tokens one after another, sorted; token k is data[starts[k] : starts[k+1]].
    cdef vector[uint32_t] path
    cdef TrieNode root
    cdef int64_t k, length, previous_length = 0, common
    cdef const uint8_t* token
    cdef const uint8_t* previous = NULL
    root.end = 0
    root.token = 0
    root.depth = 0
    root.byte = 0
    root.unused = 0
    trie.nodes.push_back(root)
    path.push_back(0)
    for k in range(count):
        token = data + starts[k]
        length = starts[k + 1] - starts[k]
        common = 0
        while common < length and common < previous_length and token[common] == previous[common]:
            common += 1
        trie_close_to(trie, path, <size_t>common)
        while common < length:
            trie_add_node(trie, path, token[common])
            common += 1
        trie.tokens.push_back(ids[k])
        previous = token
        previous_length = length
    trie_finish(trie, path)


cdef uint32_t trie_child(const Trie* trie, uint32_t node, uint8_t byte) noexcept nogil:
    # The child of a node by a byte, or 0 (the root is nobody's child).
    cdef uint32_t child = node + 1
    while child < trie.nodes[node].end:
        if trie.nodes[child].byte == byte:
            return child
        child = trie.nodes[child].end
    return 0


cdef void trie_copy_subtree(const Trie* source, Trie* out, int32_t depth, uint32_t node) noexcept nogil:
    # Append a node at another depth, and all below it.
    cdef const TrieNode* nodes = source.nodes.data()
    cdef uint32_t last = nodes[node].end
    cdef uint32_t moved = <uint32_t>out.nodes.size() - node
    cdef int32_t tokens = <int32_t>out.tokens.size() - nodes[node].token, deeper = depth - nodes[node].depth
    cdef size_t i = out.nodes.size()
    out.nodes.insert(out.nodes.end(), nodes + node, nodes + last)
    while i < out.nodes.size():
        out.nodes[i].end += moved
        out.nodes[i].token += tokens
        out.nodes[i].depth = <uint16_t>(out.nodes[i].depth + deeper)
        i += 1
    out.tokens.insert(out.tokens.end(), source.tokens.data() + nodes[node].token, source.tokens.data() + nodes[last].token)


cdef void trie_merge_nodes(const Trie* source, Trie* out, vector[uint32_t]& path,
                           const vector[uint32_t]& group) noexcept nogil:
    # Append one node that stands for all of `group` (same byte), then their children, merged.
    # Recursion depth is bounded by the longest token.
    cdef vector[pair[uint8_t, uint32_t]] children
    cdef vector[uint32_t] same
    cdef size_t i, j
    cdef uint32_t node, child
    cdef int32_t t
    if group.size() == 1:
        trie_copy_subtree(source, out, <int32_t>path.size(), group[0])
        return
    trie_add_node(out, path, source.nodes[group[0]].byte)
    for i in range(group.size()):
        node = group[i]
        for t in range(source.nodes[node].token, source.nodes[node + 1].token):
            out.tokens.push_back(source.tokens[t])
        child = node + 1
        while child < source.nodes[node].end:
            children.push_back(pair[uint8_t, uint32_t](source.nodes[child].byte, child))
            child = source.nodes[child].end
    sort(children.begin(), children.end())
    cdef size_t depth = path.size() - 1
    i = 0
    while i < children.size():
        same.clear()
        j = i
        while j < children.size() and children[j].first == children[i].first:
            same.push_back(children[j].second)
            j += 1
        trie_merge_nodes(source, out, path, same)
        trie_close_to(out, path, depth)
        i = j


cdef void trie_merge(const Trie* source, Trie* out, const vector[uint32_t]& group) noexcept nogil:
    # The subtrees at `group` as one trie below a root.
    cdef vector[pair[uint8_t, uint32_t]] children
    cdef vector[uint32_t] path, same
    cdef TrieNode root
    cdef size_t i, j = 0
    root.end = 0
    root.token = 0
    root.depth = 0
    root.byte = 0
    root.unused = 0
    out.nodes.push_back(root)
    path.push_back(0)
    for i in range(group.size()):
        children.push_back(pair[uint8_t, uint32_t](source.nodes[group[i]].byte, group[i]))
    sort(children.begin(), children.end())
    i = 0
    while i < children.size():
        same.clear()
        while j < children.size() and children[j].first == children[i].first:
            same.push_back(children[j].second)
            j += 1
        trie_merge_nodes(source, out, path, same)
        trie_close_to(out, path, 0)
        i = j
    trie_finish(out, path)
