"""The documents of files, each as it is written today. Pure.

A class of a driver's claims that is among the documents takes part in the mapping: claims that name it ask
for the class over the same driver's devices that it becomes. What is of no concern to us stays as it is.
"""

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from allot.api import Fields

from .claims import GROUP, OF_EVERY_OBJECT, Impossible, moved
from .mapping import Mapping
from .podspecs import flatten_sources, pod_spec


@dataclass(slots=True)
class Conversion:
    documents: list[Fields] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what whoever wrote them should know
    impossible: list[str] = field(default_factory=list)  # what could not be converted, and why


def convert(documents: Iterable[Fields], mapping: Mapping) -> Conversion:
    every = [one for document in documents for one in _listed(copy.deepcopy(document))]
    known = mapping.with_classes(dict(_classes(every)))
    found = Conversion()
    for document in every:
        _convert(document, known, found)
    return found


def _convert(document: Fields, mapping: Mapping, found: Conversion) -> None:
    name = _name(document)
    spec = pod_spec(document)
    if spec is not None:
        flat = list(flatten_sources(spec))
        found.notes += [f"{name}: claim {one} is named without `source` since 1.31" for one in flat]
    if not _is_ours(document):
        found.documents.append(document)
        return
    try:
        after = moved(document, mapping)
    except Impossible as why:
        found.impossible.append(f"{name}: {why}")
        return
    found.notes += [f"{name}: {note}" for note in after.notes]
    if after.document is not None:
        found.documents.append(after.document)


def _listed(document: Fields) -> Iterator[Fields]:
    """What `kubectl get -o yaml` prints is one list."""
    items = document.get("items")
    if str(document.get("kind")).endswith("List") and isinstance(items, list):
        for item in items:
            if isinstance(item, dict):
                yield from map(_as_written, _listed(item))
    else:
        yield document


def _as_written(item: Fields) -> Fields:
    """Without what the server wrote about it, with which it could not be created."""
    if not _is_ours(item):
        item.pop("status", None)  # of ours, `moved` says what is lost with it
    metadata = item.get("metadata")
    if isinstance(metadata, dict):
        for name in OF_EVERY_OBJECT:
            metadata.pop(name, None)
    return item


def _classes(documents: Iterable[Fields]) -> Iterator[tuple[str, Fields]]:
    for one in documents:
        metadata = one.get("metadata")
        if _is_ours(one) and one.get("kind") == "ResourceClass" and isinstance(metadata, dict):
            yield str(metadata.get("name")), {"deviceClassName": metadata.get("name")}


def _is_ours(document: Fields) -> bool:
    return str(document.get("apiVersion")).startswith(f"{GROUP}/")


def _name(document: Fields) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") or metadata.get("generateName") if isinstance(metadata, dict) else None
    return f"{document.get('kind')} {name}"
