from maskwright.frontends.json_schema.groups cimport Absent, ArrayGroup, ObjectGroup, Some, StringGroup
from maskwright.frontends.json_schema.keys cimport KeyMap
