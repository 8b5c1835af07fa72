"""The engine: flat arrays in, token masks out.

What Python sees of it.  The modules are in ``_engine``, in layers (ARCHITECTURE.md).
"""

from maskwright._engine.rows import checked_tree, set_threads  # no-cython-lint
from maskwright._engine.engine import AutomatonHandle, Engine  # no-cython-lint
from maskwright._engine.tables import Tables  # no-cython-lint
from maskwright._engine.compiled import CompiledCore  # no-cython-lint
from maskwright._engine.matcher import Matcher  # no-cython-lint
from maskwright._engine.content import (
    automata_bytes, automaton_content, content_key, content_keys, repeated,  # no-cython-lint
    history_of, replay_history, Stop, tables_bytes, tables_content,  # no-cython-lint
)
from maskwright._engine.tracing import Tracer  # no-cython-lint
from maskwright._engine.state_sets_api import StateSets  # no-cython-lint
from maskwright._engine.batch import cut_rows, fill_rows  # no-cython-lint
