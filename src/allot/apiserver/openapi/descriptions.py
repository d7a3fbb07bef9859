"""What people read in `kubectl explain`.

Our own sentences are in `texts` and `classic_texts`, for resource.k8s.io, and in `compute_texts`. For every
other type the installed `lightkube-models`, where there is one, is asked: its files carry the
documentation of each field. They are read as text and never imported.
"""

import importlib.metadata
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from . import classic_texts, compute_texts, texts


class Description(NamedTuple):
    text: str = ""
    fields: Mapping[str, str] = {}


_CLASS = re.compile(r'^class (\w+)\(DictMixin\):\n    r"""(.*?)"""', re.MULTILINE | re.DOTALL)
_FIELD = re.compile(
    r"^      \* \*\*(\S+?)\*\* ``[^`]*`` - (.*?)(?=^      \* \*\*|\Z)", re.MULTILINE | re.DOTALL
)
_RESOURCE = re.compile(r"io\.k8s\.api\.resource\.v\w+\.(\w+)\Z")


def describe(name: str) -> Description:
    """What is known about a type, e.g. io.k8s.api.core.v1.Pod. Unknown types have no text."""
    ours = _RESOURCE.match(name)
    if ours:
        return _of_resource(ours[1])
    if name in compute_texts.TYPES:
        return Description(*compute_texts.TYPES[name])
    *prefix, version, kind = name.split(".")
    found = _parsed(_module(f"{prefix[-1]}_{version}").get(kind, ""))
    return found._replace(fields={**found.fields, **compute_texts.MEMBERS.get(name, {})})


def _of_resource(kind: str) -> Description:
    text, fields = texts.TYPES.get(kind) or classic_texts.TYPES.get(kind) or ("", {})
    return Description(text, {**fields, **classic_texts.MEMBERS.get(kind, {})})


def _parsed(text: str) -> Description:
    said, _, parameters = text.partition("**parameters**")
    return Description(_flowed(said), {match[1]: _flowed(match[2]) for match in _FIELD.finditer(parameters)})


def _flowed(text: str) -> str:
    """Paragraphs as lines, the way clients like to wrap them."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


@cache
def _module(name: str) -> Mapping[str, str]:
    """The documentation of each class in a file of the models."""
    folder = _folder()
    if folder is None:
        return {}
    try:
        text = (folder / f"{name}.py").read_text()
    except OSError:
        return {}
    return {match[1]: match[2] for match in _CLASS.finditer(text)}


@cache
def _folder() -> Path | None:
    try:
        models = importlib.metadata.distribution("lightkube-models")
    except importlib.metadata.PackageNotFoundError:
        return None
    return Path(str(models.locate_file("lightkube/models")))
