"""What the type checker is told of the decorators that compiled modules use."""

from typing import TypeVar

_T = TypeVar("_T")

compiled: bool

def cclass(cls: type[_T]) -> type[_T]: ...
def cfunc(function: _T) -> _T: ...
