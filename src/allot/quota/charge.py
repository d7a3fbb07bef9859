"""What any object uses, and what of it one quota counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from allot.api import Fields, Quantity

from .amounts import Usage, mask
from .claims import FindOwner, claim_usage
from .names import CLAIMS, CLASSIC, PODS, SERVICES, VOLUME_CLAIMS, Source, alike, is_requested_name
from .others import service_usage, volume_claim_usage
from .pods import pod_usage
from .scopes import covers
from .views import ExtendedNames, in_all_views

NOT_COUNTED = (Source("", "events"), Source("events.k8s.io", "events"))
"""They are many, they go by themselves, and refusing them would hide what went wrong."""


class Subject(NamedTuple):
    """An object, and whose it is."""

    source: Source
    fields: Fields


@dataclass(frozen=True, slots=True)
class Context:
    """What else the usage of a claim depends on, and that of a pod that asks for extended resources."""

    extended_names: ExtendedNames = field(default_factory=dict)
    find_owner: FindOwner = lambda claim: None


def usage(subject: Subject, context: Context) -> Usage:
    """Everything that an object uses, by every name that a quota could count it under."""
    source, fields = subject.source, subject.fields
    if source in NOT_COUNTED:
        return {}
    found = {source.count_name: Quantity.of(1)}
    if source == PODS:
        return _in_all_spellings(found | in_all_views(pod_usage(fields), context.extended_names))
    if not source.group and source.plural in CLASSIC:
        found[source.plural] = Quantity.of(1)
    if source == CLAIMS:
        found |= _in_all_spellings(claim_usage(fields, context.extended_names, context.find_owner))
    elif source == SERVICES:
        found |= service_usage(fields)
    elif source == VOLUME_CLAIMS:
        found |= volume_claim_usage(fields)
    return found


def _in_all_spellings(found: Usage) -> Usage:
    spelled = {
        other: amount for name, amount in found.items() if is_requested_name(name) for other in alike(name)
    }
    return {**found, **spelled}


def charge(spec: Fields, subject: Subject, found: Mapping[str, Quantity]) -> Usage:
    """Of what an object uses, the part that a quota with this spec counts."""
    if not covers(spec, subject.source, subject.fields):
        return {}
    return mask(found, spec.get("hard") or {})


def can_grow(source: Source) -> bool:
    """Whether an update can make an object use more, or bring it under another quota."""
    return source in (PODS, SERVICES, VOLUME_CLAIMS)
