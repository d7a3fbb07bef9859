"""What claims and classes may ask for, and what nodes publish: the driver's own kinds, group gpu.example.com.

`GPURequirements` is a user's, `GPUInit` an administrator's. What only an administrator may say cannot be
said in the other: members that a kind does not have are refused.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from allot.api import Object, Quantity
from allot.driver import controller as kit

from .cards import Card, Want

GROUP: Final = "gpu.example.com"
VERSION: Final = "v1"
REQUIREMENTS: Final = f"GPURequirements.{GROUP}"
INIT: Final = f"GPUInit.{GROUP}"
NODE_GPUS: Final = kit.ResourceId(GROUP, VERSION, "nodegpus")


class Requirements(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    memory: str
    optional: bool = False
    shareable: bool = False


class Init(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    init_command: tuple[str, ...] = ()


class Published(msgspec.Struct, frozen=True):
    """One card, as its node publishes it."""

    name: str
    memory: str
    segment: str = "1"


class NodeGpus(msgspec.Struct, frozen=True):
    cards: tuple[Published, ...] = ()


class Asked(msgspec.Struct, frozen=True):
    """A claim with its parameters read."""

    uid: str
    memory: int
    optional: bool
    shareable: bool
    init_command: tuple[str, ...]

    @property
    def want(self) -> Want:
        return Want(self.uid, self.memory, self.optional)


def asked(asks: Iterable[kit.Ask]) -> list[Asked]:
    """Raises NotUsable."""
    return [_asked(ask) for ask in asks]


def _asked(ask: kit.Ask) -> Asked:
    if ask.claim_parameters is None:
        raise kit.NotUsable(
            f"claim {ask.claim}: it names no GPURequirements, so nobody knows how much it needs"
        )
    wanted = kit.read(ask.claim_parameters, Requirements)
    init = kit.read(ask.class_parameters, Init) if ask.class_parameters is not None else Init()
    memory = size(wanted.memory, f"GPURequirements {ask.claim_parameters.name}: memory")
    return Asked(ask.claim.uid, memory, wanted.optional, wanted.shareable, init.init_command)


def cards(objects: Sequence[Object]) -> Iterator[Card]:
    """What nodes publish. An object that cannot be read is as good as none."""
    for one in objects:
        try:
            published = kit.read(one, NodeGpus)
            for card in published.cards:
                yield Card(one.name, card.name, size(card.memory, "memory"), size(card.segment, "segment"))
        except kit.NotUsable:
            continue


def size(text: str, where: str) -> int:
    """An amount in bytes, more than none. Raises NotUsable."""
    try:
        amount = Quantity.parse(text).as_int()
    except ValueError as wrong:
        raise kit.NotUsable(f"{where}: {text!r} is no amount: {wrong}") from None
    if amount <= 0:
        raise kit.NotUsable(f"{where}: {text!r} is not more than nothing")
    return amount
