"""A conformance kit: recorded cases that show whether an engine's masks are those of the language that it was given.

``protocol``  what an engine looks like to the kit: ``Engine``, ``Matcher``, ``Tokens``
``engines``   adapters for maskwright, llguidance, XGrammar and outlines-core; others by ``module:factory``
``cases``     the recorded cases (``cases/*.json``), and the tokens that they are read in
``judge``     one case with one engine, in this process
``runner``    all cases, in a process of their own with limits of time and memory

Right and wrong are recorded in the cases, from the specifications: JSON Schema 2020-12, RFC 8259, RFC 3629.  The kit asks no
engine what is right, maskwright's included, and does not import it to run another one.
"""

from maskwright.conformance.cases import Case, load_cases
from maskwright.conformance.engines import ENGINES
from maskwright.conformance.judge import OUTCOMES
from maskwright.conformance.protocol import ConformanceError, Engine, Matcher, Tokens
from maskwright.conformance.runner import Result, run

__all__ = [
    "ENGINES",
    "OUTCOMES",
    "Case",
    "ConformanceError",
    "Engine",
    "Matcher",
    "Result",
    "Tokens",
    "load_cases",
    "run",
]
