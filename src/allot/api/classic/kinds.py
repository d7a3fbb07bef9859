"""The kinds of resource.k8s.io as the server knows them, once classic claims are among them.

ResourceClass and PodScheduling are v1alpha1's own. Claims and templates are the kinds of `api.resource` with
one more version, and with rules for both shapes. Where the gate is off v1alpha1 is not served and nothing
classic can be made; classic claims that exist keep their own rules, so nothing is lost until it is on again.
"""

from dataclasses import replace

from .. import resource
from ..gates import Gates
from ..kind import Kind, Rules, Version
from ..numeric import NODE_RESOURCE_CAPACITY
from ..numeric.limits import GATE as NUMERIC_GATE
from . import claims, classes, columns, limits, numericstatus, podscheduling, versions
from .shapes import by_shape, in_claim, in_template


def _schema(kind: str) -> str:
    return f"io.k8s.api.resource.{limits.VERSION}.{kind}"


RESOURCE_CLASS = Kind(
    resource.limits.GROUP,
    "ResourceClass",
    "resourceclasses",
    (Version(limits.VERSION, _schema("ResourceClass")),),
    hub=limits.VERSION,
    namespaced=False,
    singular="resourceclass",
    rules=Rules(
        prepare_create=classes.prepare_create,
        prepare_update=classes.prepare_update,
        validate_create=classes.validate_create,
        validate_update=classes.validate_update,
    ),
    columns=columns.CLASS,
    cells=columns.class_,
)

POD_SCHEDULING = Kind(
    resource.limits.GROUP,
    "PodScheduling",
    "podschedulings",
    (Version(limits.VERSION, _schema("PodScheduling")),),
    hub=limits.VERSION,
    singular="podscheduling",
    has_status=True,
    rules=Rules(
        prepare_create=podscheduling.prepare_create,
        validate_create=podscheduling.validate_create,
        validate_update=podscheduling.validate_update,
        validate_status=podscheduling.validate_status,
    ),
    columns=columns.POD_SCHEDULING,
    cells=columns.pod_scheduling,
)

KINDS = (RESOURCE_CLASS, POD_SCHEDULING)

_CLAIM_VERSION = Version(
    limits.VERSION,
    _schema("ResourceClaim"),
    versions.claim_from_v1alpha1,
    versions.claim_to_v1alpha1,
    versions.default_claim,
    converts_by_part=True,
)
_TEMPLATE_VERSION = Version(
    limits.VERSION,
    _schema("ResourceClaimTemplate"),
    versions.template_from_v1alpha1,
    versions.template_to_v1alpha1,
    versions.default_template,
    converts_by_part=True,
)


RESOURCE_CLAIM = replace(
    resource.RESOURCE_CLAIM,
    versions=(*resource.RESOURCE_CLAIM.versions, _CLAIM_VERSION),
    rules=by_shape(resource.RESOURCE_CLAIM.rules, claims.CLAIM_RULES, in_claim, numericstatus.STATUS_RULES),
)
RESOURCE_CLAIM_TEMPLATE = replace(
    resource.RESOURCE_CLAIM_TEMPLATE,
    versions=(*resource.RESOURCE_CLAIM_TEMPLATE.versions, _TEMPLATE_VERSION),
    rules=by_shape(resource.RESOURCE_CLAIM_TEMPLATE.rules, claims.TEMPLATE_RULES, in_template),
)


_BOTH = (RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE)


def served(gates: Gates) -> tuple[Kind, ...]:
    """All kinds of the group."""
    is_on = gates[limits.GATE]
    both = {kind.plural: kind if is_on else _without_v1alpha1(kind) for kind in _BOTH}
    own = tuple(both.get(kind.plural, kind) for kind in resource.served(gates))
    if not is_on:
        return own
    return (*own, *KINDS, NODE_RESOURCE_CAPACITY) if gates[NUMERIC_GATE] else (*own, *KINDS)


def unserved(gates: Gates) -> tuple[Kind, ...]:
    """Kinds in namespaces of which there may be objects, and that nobody can ask for."""
    return () if gates[limits.GATE] else (POD_SCHEDULING,)


def _without_v1alpha1(kind: Kind) -> Kind:
    return replace(kind, versions=tuple(one for one in kind.versions if one.name != limits.VERSION))
