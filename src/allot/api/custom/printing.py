"""Columns of custom kinds: cells by JSON path.

The paths that definitions use in practice: `.spec.size`, `.status.conditions[0].type`,
`.metadata.labels['app']`, `.status.conditions[?(@.type=="Ready")].status`, `[*]`.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from ..age import since
from ..kind import Column

_STEP = re.compile(
    r"""\.(?P<name>[A-Za-z0-9_\-/$]+)
      | \[\s*(?P<index>-?\d+)\s*\]
      | \[\s*(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\s*\]
      | (?P<all>\[\*\]|\.\*)
      | \[\?\(\s*@\.(?P<key>[A-Za-z0-9_\-.]+)\s*==\s*["']?(?P<value>[^"')]*)["']?\s*\)\]
    """,
    re.VERBOSE,
)


def is_path(path: str) -> bool:
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return False
        at = step.end()
    return bool(path)


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[re.Match[str], ...]:
    return tuple(_STEP.finditer(path.replace("\\.", "\x00")))


def read(fields: Any, path: str) -> list[Any]:
    """Every value at `path`."""
    values = [fields]
    for step in _steps(path):
        values = [found for value in values for found in _take(value, step)]
    return values


def _take(value: Any, step: re.Match[str]) -> Sequence[Any]:
    name = step["name"] or step["quoted"]
    if name is not None:
        name = name.replace("\x00", ".")
        return [value[name]] if isinstance(value, Mapping) and name in value else []
    if step["all"]:
        return (
            list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []
        )
    if not isinstance(value, list):
        return []
    if step["index"] is not None:
        at = int(step["index"])
        return [value[at]] if -len(value) <= at < len(value) else []
    return [one for one in value if [str(found) for found in read(one, "." + step["key"])] == [step["value"]]]


NAME = Column("Name", format="name", description="The name of the object, unique in its scope.")
AGE = Column("Age", "date", description="How long ago the object was created.")


def columns_of(version: Mapping[str, Any]) -> tuple[Column, ...]:
    declared = version.get("additionalPrinterColumns")
    if not declared:
        return (NAME, AGE)
    return (
        NAME,
        *(
            Column(
                column.get("name", ""),
                column.get("type", "string"),
                column.get("format", ""),
                column.get("description", ""),
                column.get("priority", 0),
            )
            for column in declared
        ),
    )


def row_of(version: Mapping[str, Any], fields: Mapping[str, Any], now: datetime) -> list[Any]:
    metadata = fields["metadata"]
    declared = version.get("additionalPrinterColumns")
    if not declared:
        return [metadata["name"], since(metadata.get("creationTimestamp"), now)]
    return [metadata["name"], *(_cell(column, fields, now) for column in declared)]


def _cell(column: Mapping[str, Any], fields: Mapping[str, Any], now: datetime) -> Any:
    found = [value for value in read(fields, column.get("jsonPath", "")) if value is not None]
    if not found:
        return None
    match column.get("type"):
        case "date":
            return since(str(found[0]), now)
        case "integer" | "number" | "boolean" if not isinstance(found[0], str | dict | list):
            return found[0]
    texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in found]
    return ",".join(texts)
