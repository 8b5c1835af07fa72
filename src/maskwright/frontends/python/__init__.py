"""Python types and functions -> JSON Schemas, and texts -> values and calls; through pydantic.

``types``         what the compiler and the generator use
``calls``         functions by signature
``schemas``       pydantic's schemas, narrowed to texts that it reads back: ``constraints``,
              ``patterns``, ``floats``, ``times``, ``urls``, ``embedded_json``, ``ranges``
"""

from maskwright.frontends.python.types import parse_output

__all__ = ["parse_output"]
