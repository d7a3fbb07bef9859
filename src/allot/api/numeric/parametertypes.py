"""What the `numericParameters` of a ResourceClass may say.

Whether a model of the expanded type exists is nobody's concern here: models live in schedulers and
autoscalers, which may know others than this server.
"""

import re
from collections.abc import Sequence

from .. import field, names
from ..field import FieldError, Path
from ..kind import Fields, WriteContext
from ..resource import checks
from ..resource.found import Found, each
from ..resource.reading import same
from . import limits

PATH = Path("numericParameters")
_VERSION = re.compile("v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")


def prepare(new: Fields, old: Fields | None, context: WriteContext) -> None:
    """With the gate off the field cannot be had; a class that has it keeps it."""
    if context.gates[limits.GATE] or not new.get("numericParameters"):
        return
    if old is None or not old.get("numericParameters"):
        del new["numericParameters"]
        context.warn(f"numericParameters: dropped, since feature gate {limits.GATE} is off")


def check(found: Found, new: Fields, old: Fields | None, context: WriteContext) -> None:
    listed: Sequence[Fields] = new.get("numericParameters") or ()
    if not listed or (old is not None and same(listed, old.get("numericParameters"))):
        return
    before = {one.get("celTemplate") for one in (old or {}).get("numericParameters") or ()}

    def entry(one: Fields, at: Path) -> None:
        _entry(found, one, at)
        if one.get("celTemplate") not in before:  # what is stored was judged when it was new
            _template(found, one.get("celTemplate") or "", at / "celTemplate", context)

    each(found, listed, limits.PARAMETER_TYPES_MAX, PATH, entry, size_declared=False)
    _distinct(found, listed)
    reference = new.get("parametersRef") or {}
    if _is_secret(reference.get("apiGroup") or "", reference.get("kind") or ""):
        found.add(field.forbidden(Path("parametersRef") / "kind", _SECRET))


_SECRET = "may not be Secret: allocated claims of the class show their parameters to whoever reads claims"


def _entry(found: Found, entry: Fields, path: Path) -> None:
    version, kind = (entry.get(part) or "" for part in ("apiVersion", "kind"))
    if version:
        found.add(*_api_version(version, path / "apiVersion"))
    if not kind:
        found.add(field.required(path / "kind"))
    elif _is_secret(group_of(entry), kind):
        found.add(field.forbidden(path / "kind", _SECRET))
    else:
        found.texts(path / "kind", kind, names.label_name(kind.lower()))


def _template(found: Found, text: str, path: Path, context: WriteContext) -> None:
    if not text:
        found.add(field.required(path))
    elif checks.size(text) > limits.TEMPLATE_MAX:
        found.add(field.too_long(path, limits.TEMPLATE_MAX))
    elif (wrong := context.check_template(text)) is not None:
        found.add(checks.expression_error(path, text, wrong.wrong, wrong.detail))


def _api_version(text: str, path: Path) -> list[FieldError]:
    group, slash, version = text.rpartition("/")
    wrong = names.subdomain(group) if slash else []
    if not _VERSION.fullmatch(version):
        wrong = [*wrong, "must be `version` or `group/version`, e.g. example.com/v1alpha1"]
    return [field.invalid(path, text, one) for one in wrong]


def _distinct(found: Found, listed: Sequence[Fields]) -> None:
    seen = set()
    for at, entry in enumerate(listed):
        this = group_of(entry), entry.get("kind") or ""
        if this in seen:
            found.add(field.duplicate(PATH[at], ".".join(part for part in reversed(this) if part)))
        seen.add(this)


def group_of(entry: Fields) -> str:
    version: str = entry.get("apiVersion") or ""
    return version.rpartition("/")[0]


def _is_secret(group: str, kind: str) -> bool:
    return not group and kind == "Secret"
