"""A file of prompts in, a file of filled schemas out: ``maskwright batch``.

``rows``       lines of the input -> rows, each checked, with the place of what is wrong
``journal``    the output: whole lines, recognised after a kill, never twice
``answers``    what a back-end gives -> a line of the output
``run``        the two passes over the input, and what is done in between
``local``      a back-end: a model in this process
``endpoints``  a back-end: OpenAI-compatible servers (needs httpx2)

The back-end for a Ray cluster is ``maskwright.integrations.ray``.
"""
