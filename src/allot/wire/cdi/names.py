"""What vendors, classes and devices may be called, and the names by which runtimes ask for devices.

vendor.com/class=name
"""

import re
from typing import NamedTuple

_KIND_PART = re.compile(r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_DEVICE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?")


class Qualified(NamedTuple):
    vendor: str
    class_: str
    name: str

    @property
    def kind(self) -> str:
        return f"{self.vendor}/{self.class_}"


def device_name(kind: str, name: str) -> str:
    """The qualified name of a device."""
    return f"{kind}={name}"


def qualified_name(text: str) -> Qualified:
    """Raises ValueError that says what is wrong with it."""
    kind, equals, name = text.partition("=")
    if not equals:
        raise ValueError(f'{text!r} is not a CDI device: expected "vendor/class=name"')
    vendor, class_ = kind_parts(kind)
    problem = device_problem(name)
    if problem:
        raise ValueError(f"{text!r} is not a CDI device: {problem}")
    return Qualified(vendor, class_, name)


def kind_parts(kind: str) -> tuple[str, str]:
    vendor, slash, class_ = kind.partition("/")
    if not slash:
        raise ValueError(f'kind {kind!r} is not of the form "vendor/class"')
    for what, part in (("vendor", vendor), ("class", class_)):
        if not _KIND_PART.fullmatch(part):
            raise ValueError(
                f"{what} {part!r} must begin with a letter, end with a letter or digit, and have only "
                f"letters, digits, '.', '_' and '-' between"
            )
    return vendor, class_


def device_problem(name: str) -> str:
    """Why this cannot be a device's name, or nothing."""
    if _DEVICE.fullmatch(name):
        return ""
    return (
        f"device name {name!r} must begin and end with a letter or digit, and have only "
        f"letters, digits, '.', '_', ':' and '-' between"
    )
