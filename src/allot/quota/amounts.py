"""Amounts by name, added, subtracted and compared."""

from collections.abc import Iterable, Mapping

from allot.api import Quantity, podresources

Usage = podresources.Amounts
"""Resource name -> amount. A name that is absent counts nothing."""

ZERO = Quantity(0)

parse = podresources.parse
add = podresources.added


def written(usage: Mapping[str, Quantity]) -> dict[str, str]:
    """Amounts as an object writes them, sorted by name."""
    return {name: str(usage[name]) for name in sorted(usage)}


def subtract(left: Mapping[str, Quantity], right: Mapping[str, Quantity]) -> Usage:
    """The difference by name, also below zero."""
    rest = dict(left)
    for name, amount in right.items():
        rest[name] = rest.get(name, ZERO) - amount
    return rest


def mask(usage: Mapping[str, Quantity], names: Iterable[str]) -> Usage:
    """Only the amounts of these names."""
    return {name: usage[name] for name in names if name in usage}


def positive(usage: Mapping[str, Quantity]) -> Usage:
    return {name: amount for name, amount in usage.items() if amount.sign > 0}


def excess(
    hard: Mapping[str, Quantity], used: Mapping[str, Quantity], delta: Mapping[str, Quantity]
) -> list[str]:
    """The names of which `delta` would take more than is left, sorted."""
    return sorted(
        name
        for name, amount in delta.items()
        if name in hard and amount.sign > 0 and used.get(name, ZERO) + amount > hard[name]
    )


def exceeded(
    quota: str, hard: Mapping[str, Quantity], used: Mapping[str, Quantity], delta: Mapping[str, Quantity]
) -> str | None:
    """How upstream says that `delta` does not fit into a quota, or None if it does."""
    over = excess(hard, used, delta)
    if not over:
        return None
    asked, taken, limit = (text(mask(amounts, over)) for amounts in (delta, {**_zeros(over), **used}, hard))
    return f"exceeded quota: {quota}, requested: {asked}, used: {taken}, limited: {limit}"


def text(usage: Mapping[str, Quantity]) -> str:
    return ",".join(f"{name}={usage[name]}" for name in sorted(usage))


def _zeros(names: Iterable[str]) -> Usage:
    return dict.fromkeys(names, ZERO)
