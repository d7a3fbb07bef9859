"""Which names a selector may use, by feature and by age.

A new expression is checked against what every server in a rolling upgrade
understands; a stored one against everything there is, so that what was once
accepted never stops compiling.
"""

from dataclasses import dataclass
from functools import lru_cache

from .checker import Environment
from .library import FUNCTIONS, LIST_ATTRIBUTE_FUNCTIONS
from .types import ANY, BOOL, DEVICE, DYN, QUANTITY, STRING, Type, map_of


@dataclass(frozen=True, slots=True)
class Features:
    consumable_capacity: bool = True
    list_attributes: bool = False


@lru_cache(maxsize=8)
def environment(features: Features, stored: bool) -> Environment:
    everything = Features(consumable_capacity=True, list_attributes=True)
    offered = everything if stored else features
    attribute = attribute_type(features, stored)
    fields: dict[str, Type] = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, attribute)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
    if offered.consumable_capacity:
        fields["allowMultipleAllocations"] = BOOL
    functions = {**FUNCTIONS, **LIST_ATTRIBUTE_FUNCTIONS} if offered.list_attributes else FUNCTIONS
    return Environment(functions, {"device": DEVICE}, {DEVICE: fields})


def attribute_type(features: Features, stored: bool) -> Type:
    """What the value of an attribute is before it is seen; macros may loop only over `dyn`."""
    return DYN if stored or features.list_attributes else ANY
