"""Which claims a pod uses: one answer for everybody who asks.

An entry of `spec.resourceClaims` names a claim, or a template from which one is made for
the pod; then the pod's status says which, or that none is wanted. One more claim may stand
for the pod's extended resources. Whether a claim is there, and is the pod's to use, is for
the caller to find out.

The functions read any view that has these fields, so that nobody needs more of a pod than
they look at otherwise.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

from .meta import View, view


class Origin(Enum):
    """How a claim came to be the pod's."""

    NAMED = "the pod names it"
    TEMPLATE = "it is made from a template"
    EXTENDED = "it stands for extended resources"


class UsedClaim(NamedTuple):
    name: str  # "" while it has not been made
    origin: Origin
    entry: str = ""  # of the pod's spec; extended resources have none

    @property
    def is_generated(self) -> bool:
        """Made for this pod: it is its own or not to be used (C4)."""
        return self.origin is not Origin.NAMED


def used(pod: "PodWithClaims") -> Sequence[UsedClaim]:
    """In the order of the spec, and the one for extended resources last."""
    entries, extended = pod.spec.resource_claims, pod.status.extended_resource_claim_status
    if not entries and extended is None:
        return ()
    found = []
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    for entry in entries:
        if entry.resource_claim_name:
            found.append(UsedClaim(entry.resource_claim_name, Origin.NAMED, entry.name))
            continue
        name = made.get(entry.name, "")
        if name is not None:  # else none is wanted
            found.append(UsedClaim(name, Origin.TEMPLATE, entry.name))
    if extended is not None and extended.resource_claim_name:
        found.append(UsedClaim(extended.resource_claim_name, Origin.EXTENDED))
    return found


def names(pod: "PodWithClaims") -> tuple[str, ...]:
    """The claims that a pod uses, as far as they have been made, each once."""
    found = used(pod)
    return tuple(dict.fromkeys([one.name for one in found if one.name])) if found else ()


def pod_of(fields: Mapping[str, Any]) -> "PodWithClaims":
    """A decoded pod, as far as these functions read it."""
    return view(_Pod, fields)


# -- what is read of a pod ------------------------------------------------------------------------


class Entry(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def resource_claim_name(self) -> str | None: ...


class Extended(Protocol):
    @property
    def resource_claim_name(self) -> str: ...


class Spec(Protocol):
    @property
    def resource_claims(self) -> Sequence[Entry]: ...


class Status(Protocol):
    @property
    def resource_claim_statuses(self) -> Sequence[Entry]: ...
    @property
    def extended_resource_claim_status(self) -> Extended | None: ...


class PodWithClaims(Protocol):
    @property
    def spec(self) -> Spec: ...
    @property
    def status(self) -> Status: ...


class _Entry(View, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class _Extended(View, frozen=True):
    resource_claim_name: str = ""


class _Spec(View, frozen=True):
    resource_claims: tuple[_Entry, ...] = ()


class _Status(View, frozen=True):
    resource_claim_statuses: tuple[_Entry, ...] = ()
    extended_resource_claim_status: _Extended | None = None


class _Pod(View, frozen=True):
    spec: _Spec = _Spec()
    status: _Status = _Status()
