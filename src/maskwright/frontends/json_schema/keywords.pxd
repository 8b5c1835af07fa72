from maskwright.frontends.json_schema.nodes cimport Node, escape

cpdef bint is_hidden(Node node)
cpdef list held(Node node, str keyword)
