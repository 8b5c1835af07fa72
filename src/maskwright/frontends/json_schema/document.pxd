from maskwright.deadline cimport check_time
from maskwright.frontends.json_schema.nodes cimport Node, Resource, node_in
