from maskwright.frontends.json_schema.nodes cimport Node

cpdef bint is_hidden(Node node)
cpdef list held(Node node, str keyword)
