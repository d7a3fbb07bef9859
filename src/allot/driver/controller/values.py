"""What the author of a driver controller reads and answers: values, and nothing that waits. Pure.

    def allocate(asks: Sequence[Ask], node: str | None) -> Mapping[ClaimUid, Allocation | Refused]: ...
    def deallocate(claim: Claim) -> None: ...
    def unsuitable_nodes(asks: Sequence[Ask], nodes: Sequence[str]) -> Mapping[ClaimUid, Collection[str]]: ...

All asks of one call are claims of one pod, to be satisfied together, or one claim that no pod waits for
(`node` is None then: immediate allocation).
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from allot.api import Object, meta

ClaimUid = str
Shape = TypeVar("Shape", bound=msgspec.Struct)


class Claim(NamedTuple):
    """A ResourceClaim as far as its driver needs it; generated or made by a user, all the same."""

    namespace: str
    name: str
    uid: ClaimUid
    class_name: str
    handle: str = ""  # what `allocate` answered, byte for byte; "" while the claim is not allocated
    nodes: meta.NodeSelector | None = None  # where it can be used; None: everywhere, or not allocated
    users: tuple[str, ...] = ()  # uids of those who may use it now
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Class(NamedTuple):
    name: str
    suitable_nodes: meta.NodeSelector | None = None


class Ask(NamedTuple):
    """A claim that wants to be allocated, with what class and claim refer to."""

    claim: Claim
    resource_class: Class
    claim_parameters: Object | None = None
    class_parameters: Object | None = None


class Allocation(NamedTuple):
    handle: str = ""  # for the driver's half on the node; 16 KiB at most
    nodes: meta.NodeSelector | None = None  # None: it can be used everywhere
    shareable: bool = False  # several pods may use it at once


class Refused(NamedTuple):
    """It cannot be allocated there, for certain: nothing is held. The claim's user reads the reason."""

    why: str


class NotUsable(Exception):
    """The claim cannot be judged as it is. The message says why, and the claim's user reads it."""


Answers = Mapping[ClaimUid, Allocation | Refused]
Unsuitable = Mapping[ClaimUid, Collection[str]]
Allocate = Callable[[Sequence[Ask], str | None], Answers | Awaitable[Answers]]
Deallocate = Callable[[Claim], Awaitable[None] | None]
UnsuitableNodes = Callable[[Sequence[Ask], Sequence[str]], Unsuitable | Awaitable[Unsuitable]]


def on_nodes(*names: str) -> meta.NodeSelector:
    """Just these nodes."""
    return meta.NodeSelector(
        node_selector_terms=tuple(
            meta.NodeSelectorTerm(
                match_fields=(
                    meta.NodeSelectorRequirement(key="metadata.name", operator="In", values=(name,)),
                )
            )
            for name in names
        )
    )


def with_labels(**labels: str) -> meta.NodeSelector:
    """Nodes that have all of these labels."""
    return meta.NodeSelector(
        node_selector_terms=(
            meta.NodeSelectorTerm(
                match_expressions=tuple(
                    meta.NodeSelectorRequirement(key=key, operator="In", values=(value,))
                    for key, value in labels.items()
                )
            ),
        )
    )


def read(parameters: Object, shape: type[Shape]) -> Shape:
    """The members of a parameters object that are its own, as a struct of the author's. Raises NotUsable.

    Declare the struct with `forbid_unknown_fields=True`, or a misspelt member is ignored.
    """
    own = {name: value for name, value in parameters.fields.items() if name not in _COMMON}
    try:
        return msgspec.convert(own, shape)
    except msgspec.ValidationError as wrong:
        what, _, place = str(wrong).partition(" - at ")
        where = place.strip("`").removeprefix("$").removeprefix(".")
        raise NotUsable(f"{called(parameters)}: {f'{where}: ' if where else ''}{what}") from None


def called(parameters: Object) -> str:
    """How messages name a parameters object."""
    within = f"{parameters.namespace}/" if parameters.namespace else ""
    return f"{parameters.kind} {within}{parameters.name}"


_COMMON = frozenset(("apiVersion", "kind", "metadata", "status"))
