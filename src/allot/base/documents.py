"""Documents of a YAML or JSON file as plain values: no dates, no sets, every key a text, nothing shared.

An alias stands for a copy of what it names, so a file of a kilobyte may unfold to more than a machine has.
That is refused before anything is unfolded.
"""

import json
from typing import Any, Final

import yaml

VALUES_MAX: Final = 5_000_000
"""Of all documents together: a list of some 100,000 pods."""

DEPTH_MAX: Final = 200

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NoDocuments(ValueError):
    """What is wrong with a text, in a line."""


def documents(text: str) -> list[Any]:
    """Empty ones are left out. Raises NoDocuments."""
    try:
        _look(text)
        found = [one for one in yaml.load_all(text, Loader=_LOADER) if one is not None]
        if _Unfolded().count(found) > VALUES_MAX:
            raise NoDocuments(f"it unfolds to more than {VALUES_MAX} values")
        plain: list[Any] = json.loads(json.dumps(found, default=str))
    except UnicodeError:
        raise NoDocuments("it is not text") from None
    except (yaml.YAMLError, ValueError, TypeError, OverflowError) as wrong:
        raise NoDocuments(" ".join(str(wrong).split())[:1000]) from None
    return plain


def _look(text: str) -> None:
    """The loader goes as deep as a text does, and ends the process where that is too deep. Raises
    NoDocuments."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_MAX:
                raise NoDocuments("it is nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Unfolded:
    """How many values something has once every alias is a copy."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def count(self, value: Any) -> int:
        if not isinstance(value, list | dict):
            return 1
        if id(value) not in self._known:
            self._known[id(value)] = VALUES_MAX + 1  # within itself it has no end
            inside = value.values() if isinstance(value, dict) else value
            self._known[id(value)] = 1 + sum(map(self.count, inside))
        return self._known[id(value)]
