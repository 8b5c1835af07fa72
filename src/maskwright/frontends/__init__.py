"""Front-ends: text or objects in, the intermediate representation out.

``json_schema``     JSON Schema, and what all others make of schemas
``lark``, ``gbnf``, ``regex``   grammars and patterns
``python``          Python types and functions, by way of a schema; ``parse_output`` is public
``tools``           calls of tools, as families of models write them
``structural_tag``  free text with tagged parts
``parts``           sources as parts of a grammar

``characters``, ``free_text``, ``json_text``, ``lexical`` and ``size`` are what they share.  What is public otherwise is exported by ``maskwright``.
"""
