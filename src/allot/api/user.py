"""Who is asking, and what they ask for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec


@dataclass(frozen=True, slots=True)
class User:
    """A caller that somebody vouched for."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


class Action(msgspec.Struct, frozen=True):
    """What a caller wants to do, in the words that authorization rules use."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    version: str = ""
    path: str = ""  # for non-resource URLs; then everything but the verb is empty
    field_selector: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str = ""
