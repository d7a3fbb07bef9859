"""Checks that stay on in production.

`assert` disappears under ``python -O``; these do not. A broken invariant is a
bug in this program, never in its input, so nothing catches it except the
process boundary and the simulator.
"""


class InvariantBroken(Exception):
    """The program contradicted itself. The message names the promise that broke."""


def require(holds: bool, otherwise: str) -> None:
    """Raise `InvariantBroken` unless `holds`. State the rule positively."""
    if not holds:
        raise InvariantBroken(otherwise)
