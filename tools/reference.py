"""docs/python-api.md from the docstrings of the packages that programs of users import.

tools/reference.py            # write it anew
tools/reference.py --check    # exit 1 if it is out of date
"""

import enum
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "python-api.md"
PACKAGES = (
    "allot.allocation",
    "allot.client",
    "allot.driver",
    "allot.driver.controller",
    "allot.testing",
)
HEAD = """# The Python API

What programs of users may import. Made from docstrings by `make reference`: change them, not this page.
Everything else in the package may change with any release.
"""


def page() -> str:
    return HEAD + "".join(_package(importlib.import_module(name)) for name in PACKAGES)


def _package(module: ModuleType) -> str:
    parts = [f"\n## {module.__name__}\n\n{_prose(module)}\n"]
    names = sorted(module.__all__, key=lambda name: (_rank(getattr(module, name)), name.lower()))
    parts += [_entry(name, getattr(module, name)) for name in names]
    return "".join(parts)


def _rank(value: Any) -> int:
    return 0 if inspect.isfunction(value) else 1 if inspect.isclass(value) else 2


def _entry(name: str, value: Any) -> str:
    if inspect.isfunction(value):
        said = f"\n{_prose(value)}\n" if _prose(value) else ""
        return f"\n### `{name}`\n\n```text\n{_call(name, value)}\n```\n{said}"
    if inspect.isclass(value):
        return _class(name, value)
    return f"\n### `{name}`\n\n{'A module.' if inspect.ismodule(value) else f'`{_shown(value)}`'}\n"


def _class(name: str, value: type) -> str:
    said = [f"\n### `{name}`\n", f"\n{_prose(value)}\n"] if _prose(value) else [f"\n### `{name}`\n"]
    if issubclass(value, enum.Enum):
        members = ", ".join(f"`{one.name}`" for one in value)
        return "".join([*said, f"\nOne of {members}.\n"])
    is_protocol = bool(getattr(value, "_is_protocol", False))
    lines = [] if is_protocol else [_call(name, value)]
    lines += [_call(f"{name}.{each}", function) for each, function in _methods(value)]
    if lines:
        said.append("\n```text\n" + "\n".join(lines) + "\n```\n")
    told = [
        f"- `{each}`: {text}" for each, function in _methods(value) if (text := _first_sentence(function))
    ]
    if told:
        said.append("\n" + "\n".join(told) + "\n")
    return "".join(said)


def _methods(value: type) -> Iterator[tuple[str, Any]]:
    for name, member in vars(value).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if not name.startswith("_") and inspect.isfunction(function):
            yield name, function


def _call(name: str, value: Any) -> str:
    """As somebody would write it, without the receiver and without addresses of this process."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError, NameError):  # a type that is only there for the type checker
        named = getattr(value, "__annotations__", {})
        return _clean(f"{name}({', '.join(f'{key}: {_type(type)}' for key, type in named.items())})")
    kept = [one for one in signature.parameters.values() if one.name not in ("self", "cls")]
    returns = "" if inspect.isclass(value) else _returns(signature)
    waits = "await " if inspect.iscoroutinefunction(value) else ""
    text = ", ".join(_parameter(one) for one in kept)
    return _clean(f"{waits}{name}({text}){returns}")


def _parameter(one: inspect.Parameter) -> str:
    star = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
    text = f"{star}{one.name}"
    if one.annotation is not one.empty:
        text += f": {_type(one.annotation)}"
    if one.default is not one.empty:
        text += f" = {_shown(one.default)}"
    return text


def _returns(signature: inspect.Signature) -> str:
    found = signature.return_annotation
    return "" if found is signature.empty else f" -> {_type(found)}"


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _shown(value: Any) -> str:
    if inspect.isfunction(value) or inspect.isclass(value):
        return value.__name__ if value.__name__ != "<lambda>" else "..."
    text = repr(value)
    return "..." if " at 0x" in text or len(text) > 60 else text


def _clean(text: str) -> str:
    """Types by their names: where they live is said by this page, or is no business of its readers."""
    return re.sub(r"\b(?:[a-z_0-9]+\.)+(?=[A-Z])", "", text)


def _prose(value: Any) -> str:
    if inspect.isclass(value) and value.__doc__ and value.__doc__.startswith(f"{value.__name__}("):
        return ""  # what dataclasses say by themselves
    return inspect.cleandoc(value.__doc__ or "")


def _first_sentence(value: Any) -> str:
    text = " ".join((inspect.getdoc(value) or "").split())
    return re.split(r"(?<=[.:]) ", text)[0]


def main(arguments: list[str]) -> int:
    made = page()
    if "--check" in arguments:
        return int(not TARGET.exists() or TARGET.read_text() != made)
    TARGET.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
