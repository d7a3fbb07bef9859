"""A data flow through one card: an FPGA block, a signal processor, network interfaces. Pure.

A card serves one pipeline at a time; which cards there are, nodes say in a ConfigMap each.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from allot.api import Object
from allot.driver import controller as kit

GROUP: Final = "fpga.example.com"
PIPELINE: Final = f"FPGAPipeline.{GROUP}"
INVENTORY_LABEL: Final = f"{GROUP}/inventory"
INVENTORY: Final = kit.ResourceId("", "v1", "configmaps", label_selector=INVENTORY_LABEL)


class SignalProcessor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    program: str


class Pipeline(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a claim asks for: all of it on one card."""

    bitstream: str
    signal_processor: SignalProcessor | None = None
    network_interfaces: int = 0


class Card(NamedTuple):
    node: str
    name: str
    network_interfaces: int
    has_signal_processor: bool = True

    def lacks(self, pipeline: Pipeline) -> str:
        """Which function the card does not have; "" if it has all."""
        if pipeline.signal_processor is not None and not self.has_signal_processor:
            return "no signal processor"
        if pipeline.network_interfaces > self.network_interfaces:
            return f"{self.network_interfaces} of {pipeline.network_interfaces} network interfaces"
        return ""


def pipeline(ask: kit.Ask) -> Pipeline:
    """Raises NotUsable."""
    if ask.claim_parameters is None:
        raise kit.NotUsable(f"claim {ask.claim}: it names no FPGAPipeline")
    found = kit.read(ask.claim_parameters, Pipeline)
    if found.network_interfaces < 0:
        raise kit.NotUsable(f"FPGAPipeline {ask.claim_parameters.name}: networkInterfaces: less than none")
    return found


class _Published(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    network_interfaces: int = 0
    signal_processor: bool = True


def published(cards: Iterable[Card]) -> str:
    """What a node's ConfigMap says under `cards`."""
    return msgspec.json.encode(
        [_Published(card.name, card.network_interfaces, card.has_signal_processor) for card in cards]
    ).decode()


def cards(objects: Sequence[Object]) -> Iterator[Card]:
    """From what nodes publish. An object that cannot be read is as good as none."""
    for one in objects:
        data: Mapping[str, str] = one.fields.get("data") or {}
        try:
            found = msgspec.json.decode(data.get("cards", "[]"), type=list[_Published])
        except msgspec.MsgspecError:
            continue
        for card in found:
            yield Card(data.get("node", ""), card.name, card.network_interfaces, card.signal_processor)
