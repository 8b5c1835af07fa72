"""Search in the texts of a grammar: going forward and back by symbols, best first, and by Monte Carlo trees.

    Session(model, grammar)      forward(symbol, n), backward(symbol, n), view(symbol), as in IterGen
    best_first(model, ...)       the likeliest texts, or the best of p(y) · reward(y)
    mcts(model, ..., reward)     texts of high reward, where only complete ones can be judged
    PartialPrograms(grammar)     what was written with holes where it may be wrong, and a guarantee for the rest
    Strategy, search(model, ...) a method with its parameters and constraints as a file, run within a budget of model calls
    Configurable(make, ...)      a constraint with parameters that a strategy gives
    tune(tasks, ...)             a strategy that is learned on tasks with rewards
    Symbols(grammar, names)      where rules and terminals occur in a text that is still being written

Models and constraints are those of ``maskwright.sampling``.  A search maximises or repairs: what it finds is not
distributed like the model's texts; for that there is ``smc``.
"""

from maskwright.compiling.symbols import Symbols
from maskwright.search.best_first import best_first
from maskwright.search.configurable import Configurable
from maskwright.search.monte_carlo import mcts
from maskwright.search.partial import Calibration, PartialProgram, PartialPrograms, Scored, scored
from maskwright.search.result import Found, SearchResult
from maskwright.search.session import Session
from maskwright.search.strategy import Best, Strategy, search
from maskwright.search.tuning import Task, Trial, Tuned, tune

__all__ = [
    "Best", "Calibration", "Configurable", "Found", "PartialProgram", "PartialPrograms", "Scored", "SearchResult", "Session", "Strategy", "Symbols", "Task",
    "Trial", "Tuned", "best_first", "mcts", "scored", "search", "tune",
]  # fmt: skip
