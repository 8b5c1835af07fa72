"""Calls of tools, as families of models write them.

``requests``      tools and response formats of the OpenAI API -> structural tags and schemas
``templates``     how a family writes thinking, text and calls (``ToolTemplate``)
``texts``         what a model wrote -> thinking, text and calls
``arguments``     arguments that are no JSON object; ``python_literals``
"""
