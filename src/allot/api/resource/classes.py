"""What a DeviceClass may say. Names of extended resources: KEP-5004."""

from .. import names
from ..field import FieldError, Path
from ..kind import Fields, WriteContext
from . import checks, limits
from .found import Found, each
from .reading import same

_SPEC = Path("spec")


def validate_create(new: Fields, context: WriteContext) -> list[FieldError]:
    return _validate(new, {}, context)


def validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    return _validate(new, old.get("spec") or {}, context)


def _validate(new: Fields, before: Fields, context: WriteContext) -> list[FieldError]:
    """Lists that did not change at all were judged when they were written."""
    spec = new.get("spec") or {}
    found = Found()
    unchanged = same(spec.get("selectors"), before.get("selectors"))
    judge = None if unchanged else context
    checks.selectors(found, spec.get("selectors") or (), _SPEC / "selectors", judge)
    stored = same(spec.get("config"), before.get("config"))
    each(found, spec.get("config") or (), limits.CONFIG_MAX, _SPEC / "config",
         lambda one, at: checks.opaque(found, one, at, stored=stored))  # fmt: skip
    name = spec.get("extendedResourceName")
    if name is not None:
        found.texts(_SPEC / "extendedResourceName", name, extended_resource_name(name), declared=True)
    return found.errors(context.version)


def extended_resource_name(name: str) -> list[str]:
    """What keeps `name` from being the name of an extended resource."""
    if "/" not in name:
        return ["a name must be a domain-prefixed path, such as 'example.com/my-prop'"]
    if "kubernetes.io/" in name:
        return ['must not have "kubernetes.io/" domain']
    if name.startswith("requests."):
        return ['must not have "requests." prefix']
    # Quota spells the resource with a prefix, and that must be a name as well.
    return names.qualified(f"requests.{name}")
