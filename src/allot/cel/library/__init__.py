"""Everything a selector can call, one file for each kind of thing."""

from ..overloads import Functions, table
from . import lists, operators, optionals, patterns, quantities, standard, times

FUNCTIONS: Functions = table(
    (
        *operators.DECLARATIONS,
        *standard.DECLARATIONS,
        *times.DECLARATIONS,
        *optionals.DECLARATIONS,
        *patterns.DECLARATIONS,
        *quantities.DECLARATIONS,
        *lists.DECLARATIONS,
    )
)

LIST_ATTRIBUTE_FUNCTIONS: Functions = table(lists.FOR_LIST_ATTRIBUTES)
