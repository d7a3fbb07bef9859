"""What a class's template reads of an object with numeric parameters: that decides, and is kept in files.

What else such an object holds may be anything. Of built-in kinds nothing but names is kept: people have
passwords in config maps. Of what a template takes whole, texts go and numbers stay.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from allot.api import Fields, Object, classic
from allot.informers import ResourceId

Path = tuple[str, ...]
_READ = re.compile(r"\bobject((?:\.[A-Za-z_]\w*)+)")


class ReadByTemplates:
    def __init__(self) -> None:
        self._read: dict[str, dict[tuple[str, str], frozenset[Path]]] = {}  # by class and kind

    def heed(self, resource_class: Object, *, is_gone: bool = False) -> None:
        self._read.pop(resource_class.name, None)
        try:
            listed = Object(resource_class.raw).view(classic.ResourceClass).numeric_parameters
        except msgspec.ValidationError:  # nobody can read it, so it decides nothing
            return
        if not is_gone:
            self._read[resource_class.name] = {
                (one.group, one.kind): _paths(one.cel_template) for one in listed
            }

    def kept(self, what: ResourceId, fields: Mapping[str, Any]) -> Fields:
        kind = what.group, str(fields.get("kind", ""))
        paths = {path for one in self._read.values() for path in one.get(kind, ())} if what.group else set()
        kept: Fields = {name: fields[name] for name in ("apiVersion", "kind", "metadata") if name in fields}
        for path in sorted(paths):
            _take(fields, kept, path)
        return kept


def _paths(template: str) -> frozenset[Path]:
    """What a template reads of an object."""
    return frozenset(tuple(found.lstrip(".").split(".")) for found in _READ.findall(template))


def _take(fields: Mapping[str, Any], kept: Fields, path: Path) -> None:
    """Of nested fields, what lies at a path; whatever follows a value in it is what is done with that."""
    name, *rest = path
    if name not in fields or name in ("apiVersion", "kind", "metadata", "status"):
        return
    value = fields[name]
    if isinstance(value, dict) and rest:
        inner = kept.setdefault(name, {})
        if isinstance(inner, dict):
            _take(value, inner, tuple(rest))
    elif name not in kept or isinstance(value, list | dict):
        kept[name] = _numbers_in(value) if isinstance(value, list | dict) else value


def _numbers_in(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _numbers_in(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_numbers_in(one) for one in value]
    return "" if isinstance(value, str) else value
