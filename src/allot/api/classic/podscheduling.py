"""What a PodScheduling may say: which nodes the scheduler thinks of, and what drivers think of them.

Lists of nodes and of claims are sets: nothing stands in them twice.
"""

from .. import field, names
from ..field import FieldError, Path
from ..kind import Fields, WriteContext
from ..resource import checks
from ..resource.found import Found, each_unique
from . import limits

_SPEC = Path("spec")
_CLAIMS = Path("status") / "resourceClaims"


def prepare_create(new: Fields, context: WriteContext) -> None:
    new["status"] = {}
    new.setdefault("spec", {})


def validate_create(new: Fields, context: WriteContext) -> list[FieldError]:
    spec = new.get("spec") or {}
    found = Found()
    if selected := spec.get("selectedNode") or "":
        checks.node_name(found, selected, _SPEC / "selectedNode")
    _nodes(found, spec.get("potentialNodes") or [], _SPEC / "potentialNodes")
    return found.errors(context.version)


def validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    return validate_create(new, context)


def validate_status(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    found = Found()
    each_unique(
        found, (new.get("status") or {}).get("resourceClaims") or (), None, _CLAIMS,
        lambda one, at: _answer(found, one, at), lambda one: one.get("name") or "",
    )  # fmt: skip
    return found.errors(context.version)


def _answer(found: Found, answer: Fields, path: Path) -> None:
    name = answer.get("name") or ""
    if name:
        found.texts(path / "name", name, names.label_name(name))
    else:
        found.add(field.required(path / "name"))
    _nodes(found, answer.get("unsuitableNodes") or [], path / "unsuitableNodes")


def _nodes(found: Found, listed: list[str], path: Path) -> None:
    each_unique(
        found, listed, limits.NODES_MAX, path,
        lambda one, at: checks.node_name(found, one, at), lambda one: one,
    )  # fmt: skip
