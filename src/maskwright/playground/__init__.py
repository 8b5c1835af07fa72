"""A local page to try schemas and grammars on: ``maskwright playground``.

``answers``  what the page asks, and what it is told: problems, samples, an instance checked, what may come at the cursor, a generation
``server``   the page and the answers over HTTP, on this machine only
"""
