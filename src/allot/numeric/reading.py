"""From JSON to a model's values: capacity as nodes publish it, parameters as templates give them."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from allot.api import numeric

from .model import BadData, Instance, Model, TypeId
from .registry import Registry


class Unreadable(NamedTuple):
    """An instance that its model cannot read. Its neighbours are used."""

    id: str
    why: str


class Expanded(NamedTuple):
    """The parameters of a claim, and the model that understands them."""

    type: TypeId
    model: Model
    want: Any
    key: bytes = b""  # equal where the same is asked for


def read_instances(
    instances: Iterable[numeric.NodeResourceInstance], registry: Registry
) -> tuple[list[Instance], list[Unreadable]]:
    """Those whose type somebody here knows; the others are nobody's affair."""
    read, wrong = list[Instance](), list[Unreadable]()
    for one in instances:
        type = TypeId(one.api_version, one.kind)
        model = registry.for_capacity(type)
        if model is None:
            continue
        try:
            capacity = model.capacity(_own(one.data, type))
            read.append(Instance(one.id, type, model, capacity, model.amounts(capacity)))
        except BadData as why:
            wrong.append(Unreadable(one.id, str(why)))
        except Exception as bug:  # of a model that somebody else wrote: its neighbours are no worse for it
            wrong.append(Unreadable(one.id, f"model {model.name} fails: {bug!r}"))
    return read, wrong


def read_parameters(expanded: Any, registry: Registry) -> Expanded:
    """Raises BadData, with words for whoever wrote the class."""
    if not isinstance(expanded, Mapping):
        raise BadData(f"the template gives {_kind_of(expanded)}, not one object with kind and apiVersion")
    for part in ("apiVersion", "kind"):
        if not isinstance(expanded.get(part), str) or not expanded[part]:
            raise BadData(f"the template gives no {part}")
    type = TypeId(expanded["apiVersion"], expanded["kind"])
    model = registry.for_parameters(type)
    if model is None:
        raise BadData(_nobody(type, registry))
    try:
        return Expanded(type, model, model.parameters(_own(expanded, type)))
    except BadData as why:
        raise BadData(f"{type}: {why}") from None
    except Exception as bug:
        raise BadData(f"{type}: model {model.name} fails: {bug!r}") from None


def _own(data: Any, type: TypeId) -> Mapping[str, Any]:
    """The fields of the type itself; what it says of its type, if anything, must be what was said of it."""
    if not isinstance(data, Mapping):
        raise BadData("not a JSON object")
    for part, expected in (("apiVersion", type.api_version), ("kind", type.kind)):
        if data.get(part, expected) != expected:
            raise BadData(f"{part} {data[part]!r} in the data is not {expected!r}")
    return {name: value for name, value in data.items() if name not in ("apiVersion", "kind")}


def _nobody(type: TypeId, registry: Registry) -> str:
    if gate := registry.gate_of(type):
        return f"no numeric model understands {type}: feature gate {gate} is off"
    known = ", ".join(map(str, registry.parameter_types)) or "none"
    return f"no numeric model understands {type}; known are: {known}"


def _kind_of(value: Any) -> str:
    names = {"NoneType": "nothing", "list": "a list", "str": "a text", "int": "a number"}
    return names.get(type(value).__name__, f"a {type(value).__name__}")
