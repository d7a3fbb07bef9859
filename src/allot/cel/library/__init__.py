"""Everything a selector can call, one file for each kind of thing."""

from ..overloads import Functions, table
from . import (
    formats,
    lists,
    network,
    operators,
    optionals,
    patterns,
    quantities,
    standard,
    strings,
    times,
    urls,
)  # fmt: skip

FUNCTIONS: Functions = table(
    (
        *operators.DECLARATIONS,
        *standard.DECLARATIONS,
        *times.DECLARATIONS,
        *optionals.DECLARATIONS,
        *patterns.DECLARATIONS,
        *quantities.DECLARATIONS,
        *lists.DECLARATIONS,
        *strings.DECLARATIONS,
        *network.DECLARATIONS,
        *urls.DECLARATIONS,
        *formats.DECLARATIONS,
    )
)

LIST_ATTRIBUTE_FUNCTIONS: Functions = table(lists.FOR_LIST_ATTRIBUTES)
