"""What stands in a record: a line a thing, JSON, in the order in which a scheduler heard and decided it.

    {"kind": "Record", "apiVersion": "allot.dev/v1"}
    {"is": "Term", ...}       a scheduler begins; nothing is known
    {"is": "Set", ...}        an object as it was heard, `Gone` when it went
    {"is": "Told", ...}       how a kind of parameters stands
    {"is": "Wrote", ...}      a claim as the server answered, before any watch told it
    {"is": "Knows", ...}      what has changed of what the scheduler alone knows
    {"is": "Decided", ...}    one pod, one decision
    {"is": "Ended", ...}      its binding has ended, well or not

Objects are scrubbed as those of a dump are (DUMP2).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Raw

from allot.api import core, resource
from allot.informers import ResourceId

API_VERSION: Final = "allot.dev/v1"
FAMILY: Final = "allot.dev/"
KIND: Final = "Record"


class Line(msgspec.Struct, frozen=True, tag_field="is", omit_defaults=True, gc=False):
    pass


class Term(Line, frozen=True, tag="Term"):
    at: datetime
    version: str  # of Allot
    gates: Mapping[str, bool] = {}
    names: tuple[str, ...] = ()
    policy: str = ""
    scoring: Mapping[str, Any] = {}
    binding_timeout_s: float = 0.0
    onlooker: bool = False  # somebody else decides, and this was seen from outside


class Set(Line, frozen=True, tag="Set"):
    what: ResourceId
    object: Raw
    parameters: bool = False  # heard because classes name the kind


class Gone(Line, frozen=True, tag="Gone"):
    what: ResourceId
    object: Raw
    parameters: bool = False  # heard because classes name the kind


class Told(Line, frozen=True, tag="Told"):
    group: str
    version: str
    kind: str
    what: ResourceId | None = None
    why_not: str = ""
    wanted: bool = True  # else no class names it any more


class Wrote(Line, frozen=True, tag="Wrote"):
    object: Raw
    instead_of: str = ""


Stop = tuple[str, int, datetime]
"""Where a search for room was left off: the node, how many are left, when."""


class Knows(Line, frozen=True, tag="Knows"):
    """By uid of pods; None: not any more."""

    nominated: Mapping[str, str | None] = {}
    evicted: Mapping[str, datetime | None] = {}
    charged: Mapping[str, datetime | None] = {}
    left_off: Mapping[str, Stop | None] = {}
    looked_at: int = 0


# -- a decision -----------------------------------------------------------------------------------


class Flight(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What is held for a claim; of one whose driver allocates it, nothing that is known."""

    uid: str
    claim: str  # its name; none for one that is still to be made, for extended resources
    devices: tuple[resource.DeviceRequestAllocationResult, ...] = ()


class Reason(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    plugin: str
    words: str
    nodes: int = 0  # that say so; 0: it is about the pod

    def __str__(self) -> str:
        count = f"{self.nodes} " if self.nodes else ""
        return f"{count}{self.words}{f' [{self.plugin}]' if self.plugin else ''}"


Given = Mapping[str, Mapping[str, tuple[core.AllocatedResource, ...]]]


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    node: str = ""  # none: no node takes it now
    flights: tuple[Flight, ...] = ()
    compute: Given = {}  # compute resources, by container
    deeds: tuple[str, ...] = ()  # what else is to be written, in words
    reasons: tuple[Reason, ...] = ()
    remedy: str = ""
    error: str = ""  # it could not be decided at all


class Decided(Line, frozen=True, tag="Decided"):
    pod: str  # its uid
    name: str  # with its namespace
    at: datetime
    verdict: Verdict
    seed: int = 0
    folded: bool = False  # it stands for what it holds, and is not decided again


class Ended(Line, frozen=True, tag="Ended"):
    pod: str
    bound: bool = False


AnyLine = Term | Set | Gone | Told | Wrote | Knows | Decided | Ended
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyLine] = msgspec.json.Decoder(AnyLine)
HEAD: Final = _encoder.encode({"kind": KIND, "apiVersion": API_VERSION}) + b"\n"


def encoded(line: AnyLine) -> bytes:
    return _encoder.encode(line) + b"\n"


def decoded(line: bytes) -> AnyLine:
    """Raises msgspec.DecodeError, of which ValidationError is one."""
    return _decoder.decode(line)
