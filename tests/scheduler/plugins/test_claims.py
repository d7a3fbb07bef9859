"""ResourceClaims: what holds for a claim whatever it is for."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from allot.allocation import Features
from allot.api import Object, encode, resource
from allot.base import RandomIds
from allot.scheduler import plugins
from allot.scheduler.claim import ClaimInfo
from allot.scheduler.cycle import Cycle, Placed
from allot.scheduler.framework import CycleState, Rejection
from allot.scheduler.plugins.claims import ResourceClaims, claims_in
from allot.scheduler.plugins.devices.asking import DeviceAsk
from allot.scheduler.pod import PodInfo
from allot.scheduler.settings import Settings
from allot.scheduler.snapshot import Snapshot
from allot.scheduler.writes import Deallocate, DeleteClaim, ReserveClaim

from ..objects import node, pod

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
EXTENDED = {"resource.kubernetes.io/extended-resource-claim": "true"}


def claim(
    name: str,
    on: str | None = None,
    users: tuple[str, ...] = (),
    *,
    owner: str = "",
    deleting: bool = False,
    extended: bool = False,
    conditions: tuple[str, ...] = (),
) -> Object:
    """`on` is the node where its devices are; empty: every node reaches them; None: it has none."""
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    metadata["resourceVersion"] = "1"
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": f"uid-of-{owner}", "controller": True}
        ]
    if extended:
        metadata["annotations"] = EXTENDED
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T11:00:00Z"
    status: dict[str, Any] = {}
    if on is not None:
        result = {"request": "gpu", "driver": "d", "pool": on, "device": name}
        result |= {"bindingConditions": list(conditions), "bindingFailureConditions": ["broken"]}
        status["allocation"] = {"devices": {"results": [result]}}
        if on:
            term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}
            status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [term]}
        status["reservedFor"] = [{"resource": "pods", "name": one, "uid": f"uid-of-{one}"} for one in users]
    return Object(encode({"metadata": metadata, "spec": {"devices": {"requests": []}}, "status": status}))


def cluster(*claims: Object) -> Snapshot:
    snapshot = Snapshot(Features())
    for name in ("a", "b"):
        snapshot.put_node(node(name))
    for one in claims:
        snapshot.put_claim(one)
    return snapshot


def using(*names: str) -> PodInfo:
    return pod("p", resourceClaims=[{"name": name, "resourceClaimName": name} for name in names])


def signed(wanted: PodInfo, snapshot: Snapshot) -> CycleState | Rejection:
    state = CycleState(wanted, NOW)
    found = ResourceClaims().sign(state, snapshot)
    return found if isinstance(found, Rejection) else state


def remedy(wanted: PodInfo, snapshot: Snapshot) -> object:
    state = CycleState(wanted, NOW)
    ResourceClaims().sign(state, snapshot)
    asked = ResourceClaims().post_filter(state, snapshot, ())
    while True:
        try:
            next(asked)
        except StopIteration as done:
            return done.value


def where(wanted: PodInfo, snapshot: Snapshot) -> list[str]:
    state = signed(wanted, snapshot)
    assert isinstance(state, CycleState)
    checks = ResourceClaims().pre_filter(state, snapshot)
    return [one.name for one in snapshot.nodes() if checks is None or checks.check(one) is None]


def test_claims_are_sorted_once_for_all_plugins_of_a_cycle():
    state = signed(using("has", "wants"), cluster(claim("has", "a"), claim("wants")))
    assert isinstance(state, CycleState)
    found = claims_in(state)
    assert [one.key.name for one in found.allocated] == ["has"]
    assert [one.key.name for one in found.pending] == ["wants"]


@pytest.mark.parametrize(
    ("known", "why"),
    [
        ((), 'resourceclaim "c" not found'),
        ((claim("c", deleting=True),), 'resourceclaim "c" is being deleted'),
        ((claim("c", owner="other"),), 'resourceclaim "c" was made for pod "other" and is used by it alone'),
    ],
    ids=["not there", "going", "of another pod"],
)
def test_a_pod_whose_claims_cannot_be_used_is_gated_and_rejected_alike(known, why):
    snapshot = cluster(*known)
    assert ResourceClaims().pre_enqueue(using("c"), snapshot) == why
    assert signed(using("c"), snapshot) == Rejection("ResourceClaims", why)


def test_a_pod_without_claims_is_asked_nothing():
    snapshot = cluster()
    assert ResourceClaims().pre_enqueue(pod("p"), snapshot) is None
    state = signed(pod("p"), snapshot)
    assert isinstance(state, CycleState)
    assert ResourceClaims().pre_filter(state, snapshot) is None
    assert ResourceClaims().reserve(state, node("a"), snapshot) == ()


def test_a_pod_goes_where_all_its_claims_are():
    assert where(using("c"), cluster(claim("c", "a"))) == ["a"]
    assert where(using("c", "d"), cluster(claim("c", "a"), claim("d", "b"))) == []


def broken(name: str, on: str) -> Object:
    """A claim whose device was to be made ready, and could not be."""
    device = {"driver": "d", "pool": on, "device": name, "conditions": [{"type": "broken", "status": "True"}]}
    return claim(name, on, conditions=("attached",)).changed({"status": {"devices": [device]}})


def test_devices_that_were_not_made_ready_can_be_used_nowhere():
    given_up = broken("c", "a")
    assert where(using("c"), cluster(given_up)) == []
    assert isinstance(remedy(using("c"), cluster(given_up)), Deallocate)


# -- what pods of one template share --------------------------------------------------------------------


def signature(name: str, *known: Object, now: datetime = NOW) -> object:
    return ResourceClaims().sign(CycleState(using(name), now), cluster(*known))


def test_claims_that_allow_the_same_nodes_are_signed_alike_whatever_they_are_called():
    for on in ("", "a"):
        one, other = (
            claim("one", on),
            claim("other", on, ("somebody",)).changed(
                {"metadata": {"resourceVersion": "7", "labels": {"x": "y"}}}
            ),
        )
        assert signature("one", one) == signature("other", other)


def test_claims_that_allow_other_nodes_are_signed_otherwise():
    anywhere, here, there = (signature("c", claim("c", on)) for on in ("", "a", "b"))
    assert len({anywhere, here, there, signature("c", broken("c", "a")), signature("c", claim("c"))}) == 5


def test_a_claim_that_was_waited_for_too_long_is_signed_otherwise():
    """The claim is as it was, and time has passed: a board of before would still send the pod there."""
    since = {"status": {"allocation": {"allocationTimestamp": "2026-01-01T12:00:00Z"}}}
    waiting = claim("c", "", conditions=("attached",)).changed(since)
    assert signature("c", waiting) != signature("c", waiting, now=NOW + timedelta(hours=1))


def boards_after(snapshot: Snapshot, *wanted: PodInfo) -> tuple[int, list[str]]:
    """How many boards there are when these pods were tried, and where the pods went, or why not."""
    cycle = Cycle(plugins.default(RandomIds(random.Random(1)), Settings()))
    ends = []
    for one in wanted:
        deciding = cycle.schedule_one(CycleState(one, NOW), snapshot)
        while True:
            try:
                next(deciding)
            except StopIteration as done:
                end = done.value
                break
        ends.append(end.node if isinstance(end, Placed) else next(iter(end.reasons)).reason)
    return len(cycle._boards), ends


def template_pod(number: int) -> PodInfo:
    return pod(f"p{number}", resourceClaims=[{"name": "x", "resourceClaimName": f"c{number}"}])


def test_pods_of_one_template_with_allocated_claims_share_a_board():
    """Devices on a fabric name no node: there was a board for each such pod."""
    snapshot = cluster(*(claim(f"c{number}", "") for number in range(4)))
    count, ends = boards_after(snapshot, *map(template_pod, range(4)))
    assert count == 1
    assert ends == ["a", "b", "a", "b"]


def test_a_claim_that_is_full_or_of_another_pod_keeps_its_own_pod_out_and_no_other():
    """PLUGIN2: what is about one pod never comes to the board that others share."""
    users = tuple(f"u{at}" for at in range(resource.limits.RESERVED_FOR_MAX))
    snapshot = cluster(
        claim("c0", ""), claim("c1", "", users), claim("c2", "", owner="another"), claim("c3", "")
    )
    count, ends = boards_after(snapshot, *map(template_pod, range(4)))
    assert count == 1
    assert (ends[0], ends[3]) == ("a", "b")
    assert ends[1] == 'resourceclaim "c1" has 256 users, the most there can be'
    assert ends[2] == 'resourceclaim "c2" was made for pod "another" and is used by it alone'


def test_what_an_earlier_attempt_made_is_signed_by_what_it_asks_for():
    """Whether a node would be asked for just that is part of its answer."""
    ones = [DeviceAsk(earlier=ClaimInfo.of(claim(name, "", ("p",)))) for name in ("one", "other")]
    spec = {"devices": {"requests": [{"name": "x", "exactly": {"deviceClassName": "gpu"}}]}}
    more = DeviceAsk(earlier=ClaimInfo.of(claim("one", "", ("p",)).changed({"spec": spec})))
    assert ones[0].signature == ones[1].signature
    assert len({ones[0].signature, more.signature, DeviceAsk().signature}) == 3


def test_a_claim_with_all_the_users_that_it_can_have_takes_no_other():
    users = tuple(f"u{at}" for at in range(resource.limits.RESERVED_FOR_MAX))
    found = signed(using("c"), cluster(claim("c", "a", users)))
    assert isinstance(found, Rejection)
    assert found.reason == 'resourceclaim "c" has 256 users, the most there can be'
    assert isinstance(signed(using("c"), cluster(claim("c", "a", (*users[1:], "p")))), CycleState)


def test_the_chosen_node_is_written_into_the_claims_that_have_devices():
    state = signed(using("has", "wants"), cluster(claim("has", "a"), claim("wants")))
    assert isinstance(state, CycleState)
    writes = ResourceClaims().reserve(state, node("a"), cluster())
    assert [type(one) for one in writes] == [ReserveClaim]
    assert writes[0].claim.key.name == "has"


def test_of_claims_that_nobody_uses_one_is_given_back_at_a_time():
    found = remedy(using("c", "d"), cluster(claim("c", "a"), claim("d", "b")))
    assert isinstance(found, Deallocate)
    assert found.claim.key.name in ("c", "d")


def test_what_somebody_uses_is_not_given_back():
    assert remedy(using("c"), cluster(claim("c", "a", ("other",)))) is None
    assert isinstance(remedy(using("c"), cluster(claim("c", "a", ("p",)))), Deallocate)


def test_what_an_earlier_attempt_left_goes_before_anything_else():
    """C5: whatever is missing besides, and however good the pod's other claims are where they are."""
    left = claim("left", owner="p", extended=True)
    for snapshot in (cluster(left), cluster(left, claim("c", "a"))):
        assert ResourceClaims().pre_enqueue(using("c"), snapshot) is None
        found = signed(using("c"), snapshot)
        assert isinstance(found, Rejection)
        assert found.reason == "the claim of an earlier attempt must be removed first"
        going = remedy(using("c"), snapshot)
        assert isinstance(going, DeleteClaim)
        assert going.claim.key.name == "left"


def test_what_an_earlier_attempt_left_whole_says_where_the_pod_may_go():
    whole = claim("whole", "b", ("p",), owner="p", extended=True)
    assert where(pod("p"), cluster(whole)) == ["b"]


def test_what_others_use_too_is_not_removed():
    """C12."""
    left = claim("left", "b", ("p", "other"), owner="p", extended=True)
    assert remedy(pod("p"), cluster(left)) is None


def test_people_know_it_by_the_name_of_upstreams_plugin():
    """What `allot explain` says in JSON does not change with how the work is shared here."""
    assert plugins.known_as("ResourceClaims") == "DynamicResources"
    assert plugins.known_as("NodeName") == "NodeName"


def test_it_is_asked_before_the_plugins_that_find_devices():
    """They read what it has resolved."""
    names = [one.name for one in plugins.default(RandomIds(random.Random(1)), Settings())]
    assert names.index("ResourceClaims") < names.index("DynamicResources") < names.index("DeviceFit")
