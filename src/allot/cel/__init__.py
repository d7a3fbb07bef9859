"""The selector language: parse, check, bound the cost, evaluate.

    selector = compile_selector('device.attributes["gpu.example.com"].memory > 40')
    selector.matches(CelDevice.of("gpu.example.com", {"memory": {"int": 80}}))

Read `selector` first; it names the stages in order. `library` holds what can be
called.
"""

from .attribute import DerivedAttribute, compile_attribute
from .clauses import Clause, Seen, clauses
from .declared import declare, escaped, most_of, size_of, value_of
from .device import CelDevice
from .environment import Features
from .errors import CompileError, CostExceeded, EvaluationError
from .lint import InventoryNames, Suspicion, lint
from .lookups import Lookup
from .meter import COST_LIMIT, Meter
from .rule import Declared, Rule, compile_rule, later, optional
from .selector import LENGTH_MAX, Selector, compile_selector
from .template import Template, compile_template
from .types import DYN, optional_of

__all__ = [
    "COST_LIMIT",
    "DYN",
    "LENGTH_MAX",
    "CelDevice",
    "Clause",
    "CompileError",
    "CostExceeded",
    "Declared",
    "DerivedAttribute",
    "EvaluationError",
    "Features",
    "InventoryNames",
    "Lookup",
    "Meter",
    "Rule",
    "Seen",
    "Selector",
    "Suspicion",
    "Template",
    "clauses",
    "compile_attribute",
    "compile_rule",
    "compile_selector",
    "compile_template",
    "declare",
    "escaped",
    "later",
    "lint",
    "most_of",
    "optional",
    "optional_of",
    "size_of",
    "value_of",
]
