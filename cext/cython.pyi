"""What the type checker is told of the decorators that compiled modules use."""

from typing import TypeVar

_T = TypeVar("_T")

def cclass(cls: type[_T]) -> type[_T]: ...
compiled: bool

def cfunc(function: _T) -> _T: ...
