"""What could be done to a cluster, as values, and the sentences by which a person says it.

drain NODE                         close it and move its pods, as disruption budgets allow
remove NODE                        it is gone, with its pods and devices
cordon NODE, uncordon NODE
taint NODE KEY[=VALUE]:EFFECT      untaint NODE KEY
add [COUNT] like NODE              empty ones, with the same devices
apply [COUNT] FILE                 what is in it: pods (COUNT of each), workloads as the pods they make,
                                   nodes, slices, classes, claims, templates, taint rules, quotas, budgets
delete KIND/NAME                   a pod, claim, class, slice, taint rule, quota or budget
fail DRIVER/POOL/DEVICE            a device is no longer published
"""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from allot.api import core
from allot.informers import Key, ResourceId

from .dump import RESOURCES
from .manifests import Manifest

COPIES_MAX = 10_000


class BadChange(ValueError):
    """The sentence says nothing that can be done. The message says why."""


class Drain(NamedTuple):
    node: str


class Remove(NamedTuple):
    node: str


class Cordon(NamedTuple):
    node: str
    closed: bool = True


class Taint(NamedTuple):
    node: str
    taint: core.Taint


class Untaint(NamedTuple):
    node: str
    key: str


class AddLike(NamedTuple):
    node: str
    copies: int = 1


class Apply(NamedTuple):
    manifests: tuple[Manifest, ...]
    copies: int = 1


class Delete(NamedTuple):
    what: ResourceId
    key: Key


class Fail(NamedTuple):
    driver: str
    pool: str
    device: str


Change = Drain | Remove | Cordon | Taint | Untaint | AddLike | Apply | Delete | Fail
ReadFile = Callable[[Path], list[Manifest]]

_KINDS = {name: what for what in RESOURCES for name in (what.plural, what.plural.rstrip("s"))}
_KINDS |= {
    "claim": _KINDS["resourceclaims"],
    "slice": _KINDS["resourceslices"],
    "class": _KINDS["deviceclasses"],
    "deviceclass": _KINDS["deviceclasses"],
    "resourceclass": _KINDS["resourceclasses"],
    "quota": _KINDS["resourcequotas"],
    "pdb": _KINDS["poddisruptionbudgets"],
}
_TAINT = re.compile(r"([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)")


def parse(sentence: str, read: ReadFile, namespace: str) -> Change:
    """Raises BadChange, and what `read` raises."""
    words = shlex.split(sentence)
    match words:
        case ["drain", node]:
            return Drain(node)
        case ["remove", node]:
            return Remove(node)
        case ["cordon", node]:
            return Cordon(node)
        case ["uncordon", node]:
            return Cordon(node, closed=False)
        case ["taint", node, text]:
            return Taint(node, _taint(text))
        case ["untaint", node, key]:
            return Untaint(node, key)
        case ["add", "like", node]:
            return AddLike(node)
        case ["add", count, "like", node]:
            return AddLike(node, _count(count))
        case ["apply", path]:
            return Apply(tuple(read(Path(path))))
        case ["apply", count, path]:
            return Apply(tuple(read(Path(path))), _count(count))
        case ["delete", named]:
            return _delete(named, namespace)
        case ["fail", device]:
            return _fail(device)
    raise BadChange(f"{sentence!r} is none of the changes that --help lists")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= COPIES_MAX:
        raise BadChange(f"{text!r} is not a number from 1 to {COPIES_MAX}")
    return int(text)


def _taint(text: str) -> core.Taint:
    found = _TAINT.fullmatch(text)
    if found is None:
        raise BadChange(f"{text!r} is not KEY[=VALUE]:EFFECT, such as gpu=broken:NoSchedule")
    return core.Taint(key=found[1], value=found[2] or "", effect=found[3])


def _delete(named: str, namespace: str) -> Delete:
    kind, _, name = named.partition("/")
    what = _KINDS.get(kind.lower())
    if what is None or not name:
        raise BadChange(f"{named!r} is not KIND/NAME with a KIND of {', '.join(sorted(_KINDS))}")
    if what.plural == "nodes":
        raise BadChange(f"say `remove {name}` of a node")
    inside, _, own = name.rpartition("/")
    return Delete(what, Key(inside or namespace, own) if what.namespaced else Key("", name))


def _fail(text: str) -> Fail:
    driver, _, rest = text.partition("/")
    pool, _, device = rest.rpartition("/")
    if not driver or not pool or not device:
        raise BadChange(f"{text!r} is not DRIVER/POOL/DEVICE")
    return Fail(driver, pool, device)
