"""An allocation problem as a file: one node, what is published, what is taken, what is asked.

The form is that of the conformance cases. Everything is judged before the
allocator sees it, so that bad input is an error which names the field
(`NotAProblem`) and never a traceback: the size, the nesting, the keys, the JSON types,
every amount. What the file says about the expected answer is not even looked at.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from re import fullmatch
from typing import Any, TypeVar

import msgspec

from allot.api import Quantity, meta, resource

from .features import Features
from .inventory import Inventory
from .kind import DeviceId
from .ledger import Ledger, Taken
from .node import Node
from .spelling import unknown_key

BYTES_MAX = 64 * 2**20
DEPTH_MAX = 64
NODES_MAX = 20_000_000

V = TypeVar("V", bound=meta.View)

AMOUNTS_IN_SLICE = (
    "spec devices [] capacity {} value",
    "spec devices [] capacity {} requestPolicy default",
    "spec devices [] capacity {} requestPolicy validValues []",
    "spec devices [] capacity {} requestPolicy validRange min",
    "spec devices [] capacity {} requestPolicy validRange max",
    "spec devices [] capacity {} requestPolicy validRange step",
    "spec devices [] consumesCounters [] counters {} value",
    "spec sharedCounters [] counters {} value",
)
AMOUNTS_IN_CLAIM = (
    "spec devices requests [] exactly capacity requests {}",
    "spec devices requests [] firstAvailable [] capacity requests {}",
)


class NotAProblem(ValueError):
    """Input that states no problem. `field` is where; the message says what is wrong there."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Problem:
    name: str
    features: Features
    node: Node
    slices: tuple[resource.ResourceSlice, ...]
    classes: Mapping[str, resource.DeviceClass]
    claims: tuple[resource.ResourceClaim, ...]
    held: Mapping[str, Taken]  # by the field that says so

    def inventory(self) -> Inventory:
        """What is published, read. Raises BadSlice."""
        inventory = Inventory(self.features)
        for published in self.slices:
            inventory.apply(published)
        return inventory

    def ledger(self) -> Ledger:
        ledger = Ledger()
        for holder, taken in self.held.items():
            ledger.settle(holder, (taken,))
        return ledger


def read_problem(encoded: bytes) -> Problem:
    """The problem in a file's bytes. Raises NotAProblem."""
    if len(encoded) > BYTES_MAX:
        raise NotAProblem("", f"{len(encoded)} bytes are more than {BYTES_MAX}")
    try:
        fields = msgspec.json.decode(encoded)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotAProblem("", f"not JSON: {error}") from None
    except RecursionError:
        raise NotAProblem("", f"nested deeper than {DEPTH_MAX} levels") from None
    return problem_of(fields)


def problem_of(fields: Any) -> Problem:
    """The problem in decoded JSON. Raises NotAProblem."""
    if not isinstance(fields, Mapping):
        raise NotAProblem("", f"expected an object, got {_type(fields)}")
    inputs = {key: value for key, value in fields.items() if key not in ("results", "error")}
    _bound(inputs)
    unknown = unknown_key(inputs)
    if unknown is not None:
        raise NotAProblem(*unknown)
    inputs = meta.without_nulls(inputs)
    node = _expect(inputs.get("node"), dict, "node")
    metadata = _expect(node.get("metadata"), dict, "node.metadata")
    _expect(metadata.get("name"), str, "node.metadata.name")
    _strings(_expect(metadata.get("labels") or {}, dict, "node.metadata.labels"), "node.metadata.labels")
    declared = _expect(node.get("status", {}), dict, "node.status").get("declaredFeatures") or []
    _strings(_expect(declared, list, _DECLARED), _DECLARED)
    return Problem(
        name=_expect(inputs.get("name", ""), str, "name"),
        features=_features(inputs),
        node=Node.read(node),
        slices=_distinct(_objects(inputs, "slices", resource.ResourceSlice, AMOUNTS_IN_SLICE)),
        classes={one.metadata.name: one for one in _objects(inputs, "classes", resource.DeviceClass)},
        claims=_objects(inputs, "claims", resource.ResourceClaim, AMOUNTS_IN_CLAIM),
        held=dict(_held(inputs)),
    )


_DECLARED = "node.status.declaredFeatures"


def _bound(fields: Any) -> None:
    """Refuse nesting without end before anything recursive sees it; a cycle is just that."""
    level: list[Any] = [fields]
    nodes = 0
    for _ in range(DEPTH_MAX):
        nodes += len(level)
        if nodes > NODES_MAX:
            raise NotAProblem("", f"more than {NODES_MAX} objects and lists")
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, Mapping) else value)
            if isinstance(inner, Mapping | list)
        ]
        if not level:
            return
    raise NotAProblem("", f"nested deeper than {DEPTH_MAX} levels")


def _features(inputs: Mapping[str, Any]) -> Features:
    names = _expect(inputs.get("features", []), list, "features")
    _strings(names, "features")
    for position, name in enumerate(names):
        try:
            Features.of((name,))
        except ValueError as error:
            raise NotAProblem(f"features[{position}]", str(error)) from None
    return Features.of(names)


def _objects(
    inputs: Mapping[str, Any], key: str, kind: type[V], amounts: tuple[str, ...] = ()
) -> tuple[V, ...]:
    found = []
    for position, fields in enumerate(_expect(inputs.get(key, []), list, key)):
        where = f"{key}[{position}]"
        _expect(fields, dict, where)
        for pattern in amounts:
            _read_amounts(fields, pattern.split(), where)
        try:
            found.append(meta.view(kind, fields))
        except msgspec.ValidationError as error:
            raise NotAProblem(*_located(where, str(error))) from None
    return tuple(found)


def _located(where: str, message: str) -> tuple[str, str]:
    match = fullmatch(r"(.*) - at `(?:key in )?`?\$(.*)`", message)
    return (where + match[2], match[1]) if match else (where, message)


def _read_amounts(container: Any, pattern: list[str], where: str) -> None:
    """Check every amount that the pattern leads to; a number counts as its text, as in Kubernetes.

    What is not of the expected shape on the way is left for the typed view to refuse.
    """
    step, rest = pattern[0], pattern[1:]
    for key, path in _steps(container, step, where):
        if rest:
            _read_amounts(container[key], rest, path)
        else:
            amount = _amount(container[key], path)
            if not isinstance(container[key], str):
                container[key] = str(amount)


def _steps(container: Any, step: str, where: str) -> list[tuple[Any, str]]:
    match container, step:
        case list(), "[]":
            return [(position, f"{where}[{position}]") for position in range(len(container))]
        case dict(), "{}":
            return [(key, f"{where}[{key}]") for key in container]
        case dict(), name if name in container:
            return [(name, f"{where}.{name}")]
    return []


def _amount(value: Any, where: str) -> Quantity:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise NotAProblem(where, f"expected a quantity, got {_type(value)}")
    try:
        return Quantity.parse(value)
    except ValueError as error:
        raise NotAProblem(where, str(error)) from None


def _distinct(slices: tuple[resource.ResourceSlice, ...]) -> tuple[resource.ResourceSlice, ...]:
    """Slices of one name are several all the same; the new names keep their place in the order."""
    seen: dict[str, int] = {}
    renamed = []
    for published in slices:
        name = published.metadata.name
        times = seen[name] = seen.get(name, 0) + 1
        if times > 1:
            metadata = msgspec.structs.replace(published.metadata, name=f"{name}\0{times:08d}")
            published = msgspec.structs.replace(published, metadata=metadata)
        renamed.append(published)
    return tuple(renamed)


def _held(inputs: Mapping[str, Any]) -> Iterator[tuple[str, Taken]]:
    consumed = _consumed(inputs)
    for position, text in enumerate(_list_of_strings(inputs, "allocatedDevices")):
        where = f"allocatedDevices[{position}]"
        yield where, Taken(_device_id(text, where))
    for position, text in enumerate(_list_of_strings(inputs, "allocatedSharedDevices")):
        where = f"allocatedSharedDevices[{position}]"
        device, slash, share = text.rpartition("/")
        if not slash or not share:
            raise NotAProblem(where, f"expected driver/pool/device/share, got {text!r}")
        id = _device_id(device, where)
        yield where, Taken(id, share=share, consumed=consumed.pop(id, {}))
    for id, amounts in consumed.items():  # consumed by shares that are not listed one by one
        where = f"allocatedCapacity[{id}]"
        yield where, Taken(id, share=where, consumed=amounts)


def _consumed(inputs: Mapping[str, Any]) -> dict[DeviceId, dict[str, Quantity]]:
    found = {}
    for text, amounts in _expect(inputs.get("allocatedCapacity", {}), dict, "allocatedCapacity").items():
        where = f"allocatedCapacity[{text}]"
        _expect(amounts, dict, where)
        found[_device_id(text, where)] = {
            name: _amount(value, f"{where}[{name}]") for name, value in amounts.items()
        }
    return found


def _device_id(text: str, where: str) -> DeviceId:
    driver, _, rest = text.partition("/")
    pool, _, name = rest.rpartition("/")  # a pool's name may have slashes of its own
    if not (driver and pool and name):
        raise NotAProblem(where, f"expected driver/pool/device, got {text!r}")
    return DeviceId(driver, pool, name)


def _list_of_strings(inputs: Mapping[str, Any], key: str) -> list[str]:
    found: list[str] = _expect(inputs.get(key, []), list, key)
    _strings(found, key)
    return found


def _strings(container: Any, where: str) -> None:
    match container:
        case dict():
            for key, value in container.items():
                _expect(value, str, f"{where}[{key}]")
        case list():
            for position, value in enumerate(container):
                _expect(value, str, f"{where}[{position}]")
        case _:
            raise NotAProblem(where, f"expected strings, got {_type(container)}")


T = TypeVar("T")


def _expect(value: Any, type_: type[T], where: str) -> T:
    if not isinstance(value, type_):
        raise NotAProblem(where, f"expected {_NAMES[type_]}, got {_type(value)}")
    return value


_NAMES: Mapping[type, str] = {dict: "an object", list: "a list", str: "a string"}


def _type(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
    return _NAMES.get(type(value), f"a value of type {type(value).__name__}")
