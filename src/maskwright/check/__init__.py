"""What is wrong with a source, and with a text: what ``maskwright check`` says.

``report``        findings as data
``grammars``      ``check_grammar``, over ``lark``, ``gbnf``, ``terminals``, ``blowup``
``json_schema``   ``check_json_schema``
``texts``         why a text is not in a language; ``outline``, ``sentences``

``maskwright`` exports ``check_grammar``, ``check_json_schema``, ``Finding`` and ``Report``.
"""
