"""Which parts of the device an expression looks at.

`device.attributes["gpu.example.com"].memory`, the same with brackets, with
optional syntax or through a `cel.bind`: each becomes one `Lookup`, the same
value however it was written. Explanations show the values found there, the
linter asks whether anything was ever published there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .tree import Bind, Call, Comprehension, Ident, Literal, Node, OptMap, Select, children
from .values import Optional


@dataclass(frozen=True, slots=True)
class Lookup:
    part: str  # driver, attributes, capacity, allowMultipleAllocations
    domain: str | None = None
    name: str | None = None

    def __str__(self) -> str:
        if self.domain is None:
            return f"device.{self.part}"
        if self.name is None:
            return f'device.{self.part}["{self.domain}"]'
        return f'device.{self.part}["{self.domain}"].{self.name}'


@dataclass(frozen=True, slots=True)
class Found:
    lookup: Lookup
    at: int


_Path = tuple[str, ...]
_INDEXING = ("_[_]", "_[?_]", "_?._")


def lookups(root: Node) -> Iterator[Found]:
    """Every longest look-up of the tree, in reading order, with repetitions."""
    yield from _below(root, {"device": ("device",)})


def _below(node: Node, known: Mapping[str, _Path]) -> Iterator[Found]:
    match node:
        case Call(function="@in", args=(Literal(value=str() as name), container)):
            path = _path(container, known)
            if path is not None and len(path) in (2, 3):
                yield Found(_lookup((*path, name)), node.at)
                return
        case Bind():
            bound = _path(node.value, known)
            if bound is None:
                yield from _below(node.value, known)
            inner = {name: path for name, path in known.items() if name != node.name}
            yield from _below(node.body, {**inner, node.name: bound} if bound is not None else inner)
            return
        case Comprehension() | OptMap():
            yield from _in_macro(node, known)
            return
    path = _path(node, known)
    if path is None:
        for child in children(node):
            yield from _below(child, known)
    elif len(path) > 1:
        yield Found(_lookup(path), node.at)


def _in_macro(node: Comprehension | OptMap, known: Mapping[str, _Path]) -> Iterator[Found]:
    outside, *inside = children(node)
    yield from _below(outside, known)
    hidden = {node.name} if isinstance(node, OptMap) else {node.var, node.var2}
    inner = {name: path for name, path in known.items() if name not in hidden}
    for child in inside:
        yield from _below(child, inner)


def _path(node: Node, known: Mapping[str, _Path]) -> _Path | None:
    match node:
        case Ident(name=name):
            return known.get(name.lstrip("."))
        case Select(operand=operand, field=field):
            base, step = _path(operand, known), field
        case Call(function=function, args=(operand, Literal(value=str() as text))) if function in _INDEXING:
            base, step = _path(operand, known), text
        case _:
            return None
    # Deeper than a name there is only the inside of a value.
    return None if base is None or len(base) >= 4 else (*base, step)


def _lookup(path: _Path) -> Lookup:
    return Lookup(*path[1:])


def value_at(lookup: Lookup, device: object) -> Optional:
    """What a device has there, if anything."""
    part = "allow_multiple_allocations" if lookup.part == "allowMultipleAllocations" else lookup.part
    found = getattr(device, part)
    for step in (lookup.domain, lookup.name):
        if step is None:
            break
        if not isinstance(found, dict) or step not in found:
            return Optional(None, present=False)
        found = found[step]
    return Optional(found)
