"""The objects of a made-up world with compute resources: classes, and what nodes export."""

from typing import Any

from allot.api import compute
from allot.client import Client

from .things import Fields

RAW = "cards.example.com/card"
CLASSES: dict[str, tuple[str, ...]] = {"card-any": (), "card-gold": ("a",), "card-plain": ("b", "c")}
"""The types of cards that each class takes; none: all of them. Two overlap with the first, none with each
other."""
DEVICES = {"a": 2, "b": 2}
"""Of each type, on every node."""


class ComputeThings:
    def __init__(self, client: Client) -> None:
        self.classes = client.of(compute.RESOURCE_CLASS)


def resource_class(name: str, types: tuple[str, ...] | None = None) -> Fields:
    wanted = CLASSES[name] if types is None else types
    need = {"key": "type", "operator": "In", "values": list(wanted)}
    spec: Fields = {"resourceName": RAW}
    if wanted:
        spec["resourceSelector"] = [{"matchExpressions": [need]}]
    return {"metadata": {"name": name}, "spec": spec}


def exported(sick: int = 0, renamed: bool = False) -> list[Fields]:
    """What a node exports: some of its gold cards may be sick, and the others be of another type by now."""
    found = []
    for type_, count in DEVICES.items():
        ids = [f"{type_}-{at}" for at in range(count)]
        properties = {"type": "c" if renamed and type_ == "b" else type_}
        usable = ids[sick:] if type_ == "a" else ids
        found.append(
            {"resourceName": RAW, "properties": properties, "devices": ids, "allocatableDevices": usable}
        )
    return found


def asking(asked: dict[str, int]) -> dict[str, Any]:
    limits = {name: str(amount) for name, amount in asked.items()}
    return {"requests": limits, "limits": limits}
