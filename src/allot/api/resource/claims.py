"""What a ResourceClaim and a ResourceClaimTemplate may ask for.

The spec of both is immutable, so an update of a claim is judged by that alone;
the update of a template is judged in full as well, as upstream does.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from .. import field, names
from ..field import FieldError, Path
from ..kind import Fields, WriteContext
from . import checks, limits, permissions
from .found import Found, each, each_unique
from .reading import same

_SPEC = Path("spec")
_NO_SUCH_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_TEMPLATE_METADATA = ("annotations", "labels")
_PLAIN_REQUEST = frozenset(("name", "exactly"))
_PLAINLY = frozenset(("deviceClassName", "allocationMode", "count"))
RequestNames = Mapping[str, frozenset[str]]
"""The subrequests of each request."""


def validate_create(new: Fields, context: WriteContext) -> list[FieldError]:
    spec = new.get("spec") or {}
    found = Found()
    found.add(*permissions.admin_access_asked(_requests(spec), context))
    _spec(found, spec, _SPEC, context)
    return found.errors(context.version)


def validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    if same(new.get("spec"), old.get("spec")):
        return []
    return [field.invalid(_SPEC, None, "field is immutable")]


def validate_template_create(new: Fields, context: WriteContext) -> list[FieldError]:
    asked = permissions.admin_access_asked(_requests((new.get("spec") or {}).get("spec") or {}), context)
    return asked + _template(new, context)


def validate_template_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    errors = _template(new, context)
    if not same(new.get("spec"), old.get("spec")):
        errors.append(field.invalid(_SPEC, new.get("spec"), "field is immutable"))
    return errors


def _template(new: Fields, context: WriteContext) -> list[FieldError]:
    spec = new.get("spec") or {}
    found = Found()
    check_template_metadata(found, spec.get("metadata") or {}, _SPEC / "metadata")
    _spec(found, spec.get("spec") or {}, _SPEC / "spec", context)
    return found.errors(context.version)


def check_template_metadata(found: Found, metadata: Fields, path: Path) -> None:
    """Only what is copied to the claims: labels and annotations."""
    for key in metadata.get("annotations") or {}:
        found.texts(path / "annotations", key, names.qualified(key.lower()))
    for key, value in (metadata.get("labels") or {}).items():
        found.texts(path / "labels", key, names.qualified(key))
        found.texts(path / "labels", value, names.label_value(value))
    for key, value in metadata.items():
        if key not in _TEMPLATE_METADATA and value:
            found.add(field.forbidden(path / key, "cannot be set in the metadata of a claim template"))


# The spec of a claim


def _requests(spec: Fields) -> Sequence[Fields]:
    return (spec.get("devices") or {}).get("requests") or ()


def request_names(spec: Fields) -> RequestNames:
    return {
        request.get("name") or "": frozenset(
            [sub.get("name") or "" for sub in request.get("firstAvailable") or ()]
        )
        for request in _requests(spec)
    }


class _Claim(NamedTuple):
    """What the checks of one request need to know of the whole claim."""

    found: Found
    context: WriteContext
    constrained: Mapping[str, Collection[str]]  # "" or a request reference -> attributes
    attribute_costs: list[int]


def _spec(found: Found, spec: Fields, path: Path, context: WriteContext) -> None:
    devices, here = spec.get("devices") or {}, path / "devices"
    known = request_names(spec)
    claim = _Claim(found, context, _constrained_attributes(devices.get("constraints") or ()), [])
    requests = devices.get("requests") or ()
    if not _are_plain(requests, known):
        each_unique(
            found, requests, limits.REQUESTS_MAX, here / "requests",
            lambda one, at: _request(claim, one, at), lambda one: one.get("name"),
        )  # fmt: skip
    each(found, devices.get("constraints") or (), limits.CONSTRAINTS_MAX, here / "constraints",
         lambda one, at: _constraint(claim, one, known, at))  # fmt: skip
    each(found, devices.get("config") or (), limits.CONFIG_MAX, here / "config",
         lambda one, at: _config(found, one, known, at))  # fmt: skip
    if sum(claim.attribute_costs) > limits.DERIVED_ATTRIBUTES_COST_MAX:
        text = "too complex, total cost of derived attribute expressions in the claim exceeds cost limit"
        found.add(field.forbidden(here, text))


def _are_plain(requests: Sequence[Fields], known: RequestNames) -> bool:
    """Whether there is nothing to say about requests, told at a glance. Wide claims are made of such,
    and whoever looks closer makes a path for each field of each."""
    each_has_its_own_name = len(known) == len(requests)
    return each_has_its_own_name and len(requests) <= limits.REQUESTS_MAX and all(map(_is_plain, requests))


def _is_plain(request: Fields) -> bool:
    """Some devices of a class and nothing else, and all of it is fine."""
    if request.keys() != _PLAIN_REQUEST:
        return False
    exactly = request["exactly"]
    return (
        exactly.keys() == _PLAINLY
        and checks.is_label(request["name"])
        and checks.is_class_name(exactly["deviceClassName"])
        and exactly["allocationMode"] == "ExactCount"
        and exactly["count"] > 0
    )


def _request(claim: _Claim, request: Fields, path: Path) -> None:
    name, found = request.get("name") or "", claim.found
    found.texts(path / "name", name, names.label_name(name))
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or ()
    wanted = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not alternatives:
        found.add(field.required(path, wanted))
    elif exactly is not None and alternatives:
        found.add(field.invalid(path, None, f"{wanted}, but multiple fields are set"))
    elif exactly is not None:
        checks.class_name(found, exactly.get("deviceClassName") or "", path / "exactly" / "deviceClassName")
        _asked(claim, exactly, name, path / "exactly")
    else:
        each_unique(
            found, alternatives, limits.FIRST_AVAILABLE_MAX, path / "firstAvailable",
            lambda one, at: _subrequest(claim, one, name, at), lambda one: one.get("name"),
        )  # fmt: skip


def _subrequest(claim: _Claim, asked: Fields, parent: str, path: Path) -> None:
    name, found = asked.get("name") or "", claim.found
    found.texts(path / "name", name, names.label_name(name))
    checks.class_name(found, asked.get("deviceClassName") or "", path / "deviceClassName", declared=True)
    _asked(claim, asked, f"{parent}/{name}", path)


def _asked(claim: _Claim, asked: Fields, reference: str, path: Path) -> None:
    """What `exactly` and an alternative of `firstAvailable` have in common."""
    found = claim.found
    checks.selectors(found, asked.get("selectors") or (), path / "selectors", claim.context)
    _derived_attributes(claim, asked, reference, path / "derivedAttributes")
    mode, count = asked.get("allocationMode") or "", asked.get("count") or 0
    if mode == "All" and count:
        text = "must not be specified when allocationMode is 'All'"
        found.add(field.invalid(path / "count", count, text))
    elif mode == "ExactCount" and count <= 0:
        found.add(field.invalid(path / "count", count, "must be greater than zero"))
    elif mode and mode not in limits.ALLOCATION_MODES:
        found.declare(field.unsupported(path / "allocationMode", mode, limits.ALLOCATION_MODES))
    checks.tolerations(found, asked.get("tolerations") or (), path / "tolerations")


# Derived attributes


def _constrained_attributes(constraints: Iterable[Fields]) -> Mapping[str, Collection[str]]:
    found: dict[str, set[str]] = {}
    for constraint in constraints:
        attribute = constraint.get("matchAttribute") or constraint.get("distinctAttribute")
        for reference in constraint.get("requests") or ("",):
            found.setdefault(reference, set()).add(attribute or "")
    return found


def _derived_attributes(claim: _Claim, asked: Fields, reference: str, path: Path) -> None:
    listed = asked.get("derivedAttributes") or ()
    if len(listed) > limits.DERIVED_ATTRIBUTES_MAX:
        claim.found.declare(field.too_many(path, len(listed), limits.DERIVED_ATTRIBUTES_MAX))
        return
    each_unique(
        claim.found, listed, None, path, lambda one, at: _derived_attribute(claim, one, reference, at),
        lambda one: one.get("name") or "", declared=False,
    )  # fmt: skip


def _derived_attribute(claim: _Claim, attribute: Fields, reference: str, path: Path) -> None:
    name, expression = attribute.get("name") or "", attribute.get("expression") or ""
    if not name:
        claim.found.declare(field.required(path / "name"))
    else:
        checks.full_name(claim.found, name, path / "name")
        targets = ("", reference, reference.partition("/")[0])
        if not any(name in claim.constrained.get(target, ()) for target in targets):
            text = (
                "must be referenced by at least one matchAttribute or distinctAttribute constraint"
                " targeting this request"
            )
            claim.found.add(field.invalid(path / "name", name, text))
    if not expression:
        claim.found.declare(field.required(path / "expression"))
    elif checks.size(expression) > limits.EXPRESSION_MAX:
        claim.found.add(field.too_long(path / "expression", limits.EXPRESSION_MAX))
    else:
        _attribute_expression(claim, expression, path / "expression")


def _attribute_expression(claim: _Claim, expression: str, path: Path) -> None:
    answer = claim.context.check_attribute(expression)
    if isinstance(answer, int):
        claim.attribute_costs.append(answer)
    else:
        claim.found.add(checks.expression_error(path, expression, answer.wrong, answer.detail))


# Constraints and configuration


def _constraint(claim: _Claim, constraint: Fields, known: RequestNames, path: Path) -> None:
    found = claim.found
    references(found, constraint.get("requests") or (), known, path / "requests")
    match, distinct = constraint.get("matchAttribute"), constraint.get("distinctAttribute")
    if match is not None:
        checks.full_name(found, match, path / "matchAttribute")
    elif distinct is not None:
        checks.full_name(found, distinct, path / "distinctAttribute")
    elif claim.context.gates["DRAConsumableCapacity"]:
        text = (
            'exactly one of "matchAttribute" or "distinctAttribute" is required,'
            " but multiple fields are set"
        )  # fmt: skip
        found.add(field.required(path, text))
    else:
        found.add(field.required(path / "matchAttribute"))


def _config(found: Found, config: Fields, known: RequestNames, path: Path) -> None:
    references(found, config.get("requests") or (), known, path / "requests")
    checks.opaque(found, config, path)


def references(found: Found, listed: Sequence[str], known: RequestNames, path: Path) -> None:
    each_unique(
        found, listed, limits.REQUESTS_MAX, path,
        lambda one, at: reference(found, one, known, at), lambda one: one,
    )  # fmt: skip


def reference(found: Found, name: str, known: RequestNames, path: Path) -> None:
    """`request` or `request/subrequest`."""
    segments = name.split("/")
    if len(segments) <= 2:
        for segment in segments:
            found.texts(path, segment, names.label_name(segment))
    request, *subrequests = segments
    if len(subrequests) > 1 or request not in known or not known[request] >= set(subrequests):
        found.add(field.invalid(path, name, _NO_SUCH_REQUEST))
