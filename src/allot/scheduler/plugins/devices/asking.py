"""What a pod wants of devices: its claims, and its extended resources.

A claim that has its devices says where the pod may go. One that has none is searched
for. One that another pod is being given devices for right now is waited for.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

import msgspec

from allot.api import podclaims
from allot.informers import Key

from ...claim import ClaimInfo, other_owner
from ...extended import NOTHING, Asked, read_asked
from ...pod import PodInfo
from ...snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class DeviceAsk:
    allocated: tuple[ClaimInfo, ...] = ()
    pending: tuple[ClaimInfo, ...] = ()
    extended: Asked = NOTHING
    earlier: ClaimInfo | None = None  # it has devices for the extended resources since an earlier attempt
    leftover: ClaimInfo | None = None  # what such an attempt left half made, or not as it is wanted now

    @property
    def held(self) -> tuple[ClaimInfo, ...]:
        """The claims that have their devices, and so say where the pod may go."""
        return self.allocated if self.earlier is None else (*self.allocated, self.earlier)

    @property
    def wants_devices(self) -> bool:
        return bool(self.pending or self.extended.names)

    @property
    def signature(self) -> Hashable:
        """Pods of one template have claims of different names and the same specs."""
        return (
            tuple((one.uid, one.object.resource_version) for one in self.held),
            tuple(msgspec.json.encode(one.view.spec) for one in self.pending),
            self.extended,
        )


NO_DEVICES = DeviceAsk()


@dataclass(frozen=True, slots=True)
class Missing:
    """A claim that cannot be used yet, and which one to wait for, as far as it has a name."""

    why: str
    key: Key | None = None


def resolve(pod: PodInfo, snapshot: Snapshot) -> Iterator[ClaimInfo | Missing]:
    """The claims of a pod, each once, in the order of its spec."""
    seen = set()
    for use in podclaims.used(pod.view):
        if use.origin is podclaims.Origin.EXTENDED or use.name in seen:
            continue
        if not use.name:
            yield Missing(_unmade(pod, use.entry))
            continue
        seen.add(use.name)
        yield _usable(pod, Key(pod.key.namespace, use.name), snapshot, use.is_generated)


def _unmade(pod: PodInfo, entry: str) -> str:
    template = next(one.resource_claim_template_name for one in pod.spec.resource_claims if one.name == entry)
    return f'resource claim "{entry}" has not been created from its template "{template}" yet'


def _usable(pod: PodInfo, key: Key, snapshot: Snapshot, generated: bool) -> ClaimInfo | Missing:
    claim = snapshot.claim(key)
    if claim is None:
        why = "cannot be read" if key in snapshot.unreadable else "not found"
        return Missing(f'resourceclaim "{key.name}" {why}', key)
    if claim.is_deleting:
        return Missing(f'resourceclaim "{key.name}" is being deleted', key)
    if generated and not claim.is_controlled_by(pod.uid):  # C4
        return Missing(f'resourceclaim "{key.name}" was not created for this pod', key)
    if owner := other_owner(claim.view, pod.uid):
        return Missing(f'resourceclaim "{key.name}" was made for pod "{owner}" and is used by it alone', key)
    return claim


def read_ask(pod: PodInfo, snapshot: Snapshot) -> DeviceAsk | Missing:
    earlier = snapshot.extended_claims_of(pod.uid)
    if not earlier:
        return _read_ask(pod, snapshot)
    ask = _read_ask(pod, snapshot) if len(earlier) == 1 and _is_whole(earlier[0], pod) else NO_DEVICES
    if isinstance(ask, Missing) or not ask.extended.names:
        return DeviceAsk(leftover=earlier[0])  # it goes first, whatever is wanted now (C5)
    return replace(ask, earlier=earlier[0])


def _is_whole(claim: ClaimInfo, pod: PodInfo) -> bool:
    """Whether whoever began with it could have gone on: nobody else has a say in this claim."""
    is_ours = claim.allocation is not None and claim.is_reserved_for(pod.uid)
    return is_ours and not claim.is_deleting


def _read_ask(pod: PodInfo, snapshot: Snapshot) -> DeviceAsk | Missing:
    asked = read_asked(pod.spec)
    if asked.names and not any(snapshot.extended.class_for(name) for name in asked.names):
        asked = NOTHING
    if not pod.spec.resource_claims and not asked.names:
        return NO_DEVICES
    allocated: list[ClaimInfo] = []
    pending: list[ClaimInfo] = []
    for claim in resolve(pod, snapshot):
        if isinstance(claim, Missing):
            return claim
        if claim.allocation is not None:
            allocated.append(claim)
        elif snapshot.ledger.hold(claim.uid) is not None:
            return Missing(
                f'resourceclaim "{claim.key.name}" is in the process of being allocated', claim.key
            )
        else:
            pending.append(claim)
    return DeviceAsk(tuple(allocated), tuple(pending), asked)
