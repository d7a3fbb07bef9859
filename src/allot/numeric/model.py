"""What a numeric model is.

It speaks of whole numbers by name: an instance has *amounts* (`count: 8`), a claim takes some of them, and
what is free is handed to the model as it is now. Names carry the group of the model, so that an instance
which has become another model's is not mistaken for what it was.

What a model promises
    MODEL1  Its values depend on what it is handed, and on nothing else.
    MODEL2  Every choice it offers takes at most what is free, of names that the instance has, and says so of
            one of them at least: of nothing, if that is what it takes.
    MODEL3  If it offers no choice, there is none; `lacking` then says what the nearest miss lacks.
    MODEL4  Of the allocation of a choice `taken` says what the choice takes.

What it need not care about
    That more is taken than there is: then nothing is free. How often it is asked, and for whom.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from allot.api import Quantity

_NANO: Final = Quantity.of(1).nano

Amounts = Mapping[str, int]
"""How much there is, or is taken, by name. Never below nothing."""


class BadData(ValueError):
    """Capacity or parameters that the model cannot read: which field, and why."""


class TypeId(NamedTuple):
    api_version: str
    kind: str

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    def __str__(self) -> str:
        return f"{self.kind} of {self.api_version}"


class Types(NamedTuple):
    """The types of a model: each kind exists in each version, and all versions mean the same."""

    group: str
    versions: tuple[str, ...]
    capacity: str = "Capacity"
    parameters: str = "Parameters"
    allocation: str = "Allocation"

    def of(self, kind: str) -> tuple[TypeId, ...]:
        return tuple(TypeId(f"{self.group}/{version}", kind) for version in self.versions)


class Instance(NamedTuple):
    """What a driver has on a node: one discrete resource."""

    id: str
    type: TypeId
    model: "Model"
    capacity: Any
    amounts: Amounts


class Offer(NamedTuple):
    """An instance as it is now."""

    instance: Instance
    free: Amounts


class Choice(NamedTuple):
    """One way to serve a claim."""

    instance: Instance
    takes: Amounts


class Lacking(NamedTuple):
    """Why nothing serves a claim here. The nearest miss of several nodes is the one with the least `by`."""

    reason: str  # counted over nodes: the same words for the same cause
    text: str = ""  # with numbers, about this node
    by: float = 0.0  # how much is missing; infinitely much, if nothing would do however much were free


class Model(Protocol):
    """One module; no client, no clock."""

    @property
    def name(self) -> str: ...

    @property
    def types(self) -> Types: ...

    def capacity(self, data: Mapping[str, Any]) -> Any:
        """What an instance has. Asked once an instance. Raises BadData."""

    def parameters(self, data: Mapping[str, Any]) -> Any:
        """What a claim asks for. Raises BadData; a field that is not known is an error."""

    def amounts(self, capacity: Any) -> Amounts:
        """What ledger and guard count of it."""

    def is_flexible(self, want: Any) -> bool:
        """Whether it takes whatever the others leave: then they choose first."""

    def choices(self, want: Any, offers: Sequence[Offer]) -> Iterable[Choice]:
        """Every way to serve the claim that makes a difference to others, best first."""

    def lacking(self, want: Any, offers: Sequence[Offer]) -> Lacking:
        """Why there is none."""

    def allocation(self, choice: Choice) -> dict[str, Any]:
        """What the driver reads of it, besides what every allocation tells: class, parameters, node."""

    def taken(self, allocation: Mapping[str, Any]) -> Amounts:
        """The other way round: how much that takes of its instance. Raises BadData."""


def offer_of(instance: Instance, consumed: Mapping[str, int], *, is_whole: bool = False) -> Offer:
    """What is left of an instance, `consumed` being in nano units. One that somebody has as a whole, or of
    which something is taken that its model has no name for, offers nothing."""
    group = instance.model.types.group
    if is_whole or any(not name.startswith(f"{group}/") for name in consumed):
        return Offer(instance, dict.fromkeys(instance.amounts, 0))
    if not consumed:
        return Offer(instance, instance.amounts)
    free = {
        name: max(0, amount - -(-consumed.get(name, 0) // _NANO)) for name, amount in instance.amounts.items()
    }
    return Offer(instance, free)
