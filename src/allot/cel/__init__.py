"""The selector language: parse, check, bound the cost, evaluate.

    selector = compile_selector('device.attributes["gpu.example.com"].memory > 40')
    selector.matches(CelDevice.of("gpu.example.com", {"memory": {"int": 80}}))

Read `selector` first; it names the stages in order. `library` holds what can be
called.
"""

from .attribute import DerivedAttribute, compile_attribute
from .cache import SelectorCache
from .clauses import Clause, Seen, clauses
from .device import CelDevice
from .environment import Features
from .errors import CompileError, CostExceeded, EvaluationError
from .lint import InventoryNames, Suspicion, lint
from .lookups import Lookup
from .meter import COST_LIMIT
from .selector import LENGTH_MAX, Selector, compile_selector

__all__ = [
    "COST_LIMIT",
    "LENGTH_MAX",
    "CelDevice",
    "Clause",
    "CompileError",
    "CostExceeded",
    "DerivedAttribute",
    "EvaluationError",
    "Features",
    "InventoryNames",
    "Lookup",
    "Seen",
    "Selector",
    "SelectorCache",
    "Suspicion",
    "clauses",
    "compile_attribute",
    "compile_selector",
    "lint",
]
