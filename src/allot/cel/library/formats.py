"""Named formats: `format.dns1123Label().validate(name)` is none, or what is wrong.

The rules for names are the API's own.
"""

from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from re import ASCII, compile
from typing import Any, Final

from allot.api import names

from ..errors import EvaluationError
from ..overloads import function, method
from ..types import FORMAT, STRING, list_of, optional_of
from ..values import NONE, Optional, register
from . import times, urls

_UUID = compile("(?i:[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12})", ASCII)

Problems = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    problems: Problems = field(compare=False)


register(Format, FORMAT)


def _prefix(problems: Problems) -> Problems:
    """What comes before a generated ending may itself end in a dash."""
    return lambda text: problems(text[:-1] + "a" if text.endswith("-") else text)


def _readable(read: Callable[[str], Any], what: str) -> Problems:
    def problems(text: str) -> list[str]:
        try:
            read(text)
        except (EvaluationError, ValueError):
            return [f"must be {what}"]
        return []

    return problems


def _day(text: str) -> date:
    if len(text) != 10:
        raise ValueError
    return date.fromisoformat(text)


def _uuid(text: str) -> None:
    if not _UUID.fullmatch(text):
        raise ValueError


FORMATS: Final = {
    name: Format(name, problems)
    for name, problems in {
        "dns1123Label": names.label_name,
        "dns1123Subdomain": names.subdomain,
        "dns1035Label": names.label_1035,
        "qualifiedName": names.qualified,
        "dns1123LabelPrefix": _prefix(names.label_name),
        "dns1123SubdomainPrefix": _prefix(names.subdomain),
        "dns1035LabelPrefix": _prefix(names.label_1035),
        "labelValue": names.label_value,
        "uri": _readable(urls.parse, "a URI"),
        "uuid": _readable(_uuid, "a UUID"),
        "byte": _readable(lambda text: b64decode(text, validate=True), "base64"),
        "date": _readable(_day, "a date"),
        "datetime": _readable(times.parse_time, "a date and time"),
    }.items()
}


def named(name: str) -> Optional:
    found = FORMATS.get(name)
    return NONE if found is None else Optional(found)


def validate(format: Format, text: str) -> Optional:
    problems = format.problems(text)
    return Optional(problems) if problems else NONE


DECLARATIONS: Final = (
    function("format.named", "format_named", (STRING,), optional_of(FORMAT), named),
    method("validate", "format_validate", (FORMAT, STRING), optional_of(list_of(STRING)), validate),
    *[
        function(f"format.{name}", f"format_{name}", (), FORMAT, lambda found=found: found)
        for name, found in FORMATS.items()
    ],
)
