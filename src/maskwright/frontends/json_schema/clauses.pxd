from maskwright.frontends.json_schema.nodes cimport Node
from maskwright.frontends.json_schema.groups cimport Absent, Either, Keys, Neither, ObjectGroup
from maskwright.frontends.json_schema.keys cimport KeyMap
