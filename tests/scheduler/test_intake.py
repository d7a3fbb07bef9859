"""News on its way into snapshot and queue: in any order, late, twice, and about things that are gone."""

import random
from typing import Any

import msgspec

from allot.allocation import DeviceId, Features
from allot.api import Object
from allot.base import RandomIds
from allot.informers import Added, Change, Deleted, Key, ResourceId, Updated
from allot.scheduler import plugins
from allot.scheduler.cycle import Cycle
from allot.scheduler.intake import Intake
from allot.scheduler.mirror import CLAIMS, CLASSES, NODES, PODS, SLICES, News
from allot.scheduler.pod import PodInfo
from allot.scheduler.queue import Queue, Where
from allot.scheduler.settings import Settings
from allot.scheduler.snapshot import Snapshot

from .cluster import DRIVER, claim_spec, slice_of
from .objects import pod


class Ear:
    """An intake, what it fills, and whom it told."""

    def __init__(self, *names: str) -> None:
        asked = plugins.default(RandomIds(random.Random(1)), Settings())
        self.snapshot = Snapshot(Features())
        self.queue = Queue(plugins.events(asked))
        self.told: list[tuple[str, str | None]] = []
        self.intake = Intake(
            self.snapshot,
            self.queue,
            Cycle(asked),
            names or ("default-scheduler",),
            lambda pod, why: self.told.append((pod.key.name, why)),
        )
        self._now_s = 0.0

    def hear(self, what: ResourceId, change: Change) -> None:
        self._now_s += 1.0
        self.intake.hear(News(what, change), self._now_s)
        self.queue.check()

    def added(self, what: ResourceId, fields: Object) -> None:
        self.hear(what, Added(fields))

    def updated(self, what: ResourceId, fields: Object) -> None:
        self.hear(what, Updated(fields, fields))

    def deleted(self, what: ResourceId, fields: Object) -> None:
        self.hear(what, Deleted(fields))

    def take(self) -> PodInfo | None:
        taken = self.queue.take(self._now_s)
        return taken.pod if taken is not None else None


def thing(name: str, version: int = 1, namespace: str = "default", **fields: Any) -> Object:
    metadata = {"name": name, "uid": f"uid-of-{name}", "resourceVersion": str(version)}
    if namespace:
        metadata["namespace"] = namespace
    metadata |= fields.pop("metadata", {})
    return Object(msgspec.json.encode({"metadata": metadata, **fields}), version)


def claim(name: str = "c", version: int = 1, device: str = "", **metadata: Any) -> Object:
    status = {}
    if device:
        result = {"request": "gpu", "driver": DRIVER, "pool": "a", "device": device}
        status = {"allocation": {"devices": {"results": [result]}}}
    return thing(name, version, spec=claim_spec(), status=status, metadata=metadata)


def node(name: str = "a") -> Object:
    return thing(name, namespace="", status={"allocatable": {"cpu": "4", "pods": "10"}})


def waits(name: str = "p", **spec: Any) -> Object:
    return pod(name, **spec).object


def uses(name: str = "p", claim: str = "c") -> Object:
    return waits(name, resourceClaims=[{"name": "gpu", "resourceClaimName": claim}])


# -- pods -------------------------------------------------------------------------------------------


def test_a_pod_of_another_scheduler_is_none_of_our_business_until_it_is_on_a_node():
    ear = Ear()
    ear.added(NODES, node())
    ear.added(PODS, waits(schedulerName="theirs"))
    assert len(ear.queue) == 0
    ear.updated(PODS, waits(schedulerName="theirs", nodeName="a"))
    assert ear.snapshot.place_of("uid-of-p") == "a"


def test_a_scheduler_may_have_several_names():
    ear = Ear("red", "blue")
    for name in ("red", "blue", "default-scheduler"):
        ear.added(PODS, waits(name, schedulerName=name))
    assert {one.key.name for one in ear.queue.pods()} == {"red", "blue"}


def test_what_was_said_of_a_pod_before_it_was_placed_does_not_put_it_back_into_the_queue():
    """P4: the watch is behind the decision."""
    ear = Ear()
    ear.added(NODES, node())
    ear.added(PODS, waits())
    taken = ear.take()
    assert taken is not None
    ear.snapshot.place(taken, "a")
    ear.queue.placed(taken.uid, 9.0)
    ear.updated(PODS, waits(priority=3))
    assert ear.queue.where(taken.uid) is Where.TAKEN
    ear.queue.remove(taken.uid, 9.0)  # bound
    ear.updated(PODS, waits(priority=3))
    assert len(ear.queue) == 0 and ear.snapshot.place_of(taken.uid) == "a"


def nominated(ear: Ear, node: str = "a") -> list[str]:
    return [one.key.name for one in ear.snapshot.prospects.nominees(node)]


def test_room_that_another_scheduler_makes_is_kept_for_as_long_as_it_says_so():
    ear = Ear()
    for said, where in (("a", "a"), ("b", "b"), ("", "")):
        ear.updated(PODS, pod("p", schedulerName="theirs", status={"nominatedNodeName": said}).object)
        assert {one: nominated(ear, one) for one in ("a", "b")} == {
            "a": ["p"] * (where == "a"),
            "b": ["p"] * (where == "b"),
        }


def test_room_that_was_given_up_is_not_kept_because_of_what_was_said_before():
    """The watch is behind the decision."""
    ear = Ear()
    said = pod("p", status={"nominatedNodeName": "a"})
    ear.added(PODS, said.object)
    assert nominated(ear) == ["p"]
    ear.snapshot.unnominate(said.uid)
    ear.updated(PODS, said.object)
    assert nominated(ear) == []


def test_no_room_is_kept_for_a_pod_that_cannot_be_tried():
    ear = Ear()
    spec: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
    said = pod("p", status={"nominatedNodeName": "a"}, **spec).object
    ear.added(PODS, said)
    assert nominated(ear) == []
    ear.added(CLAIMS, claim())
    assert nominated(ear) == ["p"]
    ear.deleted(CLAIMS, claim())
    ear.updated(PODS, said)
    assert nominated(ear) == []


def test_a_pod_that_somebody_else_bound_leaves_the_queue_and_has_nothing_to_be_told():
    ear = Ear()
    ear.added(NODES, node())
    ear.added(PODS, waits())
    ear.updated(PODS, waits(nodeName="a"))
    assert len(ear.queue) == 0 and ear.snapshot.place_of("uid-of-p") == "a"
    assert ear.told[-1] == ("p", None)


def test_a_pod_that_ends_or_goes_takes_no_room():
    for end in ("Succeeded", "Failed", "gone"):
        ear = Ear()
        ear.added(NODES, node())
        ear.added(PODS, waits(nodeName="a"))
        if end == "gone":
            ear.deleted(PODS, waits(nodeName="a"))
        else:
            ear.updated(PODS, pod("p", nodeName="a", status={"phase": end}).object)
        found = ear.snapshot.node("a")
        assert found is not None and not found.pods


def test_a_pod_that_is_being_deleted_is_not_placed_any_more():
    ear = Ear()
    ear.added(PODS, waits())
    ear.updated(PODS, waits().changed({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
    assert len(ear.queue) == 0


def test_a_pod_is_known_by_its_uid_and_not_by_its_name():
    """Deleted and created anew while nobody watched: the end of the first comes after the second."""
    ear = Ear()
    ear.added(PODS, pod("p", uid="second").object)
    ear.deleted(PODS, pod("p", uid="first").object)
    assert [one.uid for one in ear.queue.pods()] == ["second"]


def test_a_pod_on_a_node_that_is_not_known_takes_its_room_when_the_node_comes():
    ear = Ear()
    ear.added(PODS, waits(nodeName="a"))
    ear.added(NODES, node())
    found = ear.snapshot.node("a")
    assert found is not None and list(found.pods) == ["uid-of-p"]
    ear.deleted(NODES, node())
    ear.added(NODES, node())
    found = ear.snapshot.node("a")
    assert found is not None and list(found.pods) == ["uid-of-p"]


# -- gates ------------------------------------------------------------------------------------------


def test_a_pod_waits_at_the_gate_for_its_claim_and_passes_when_it_comes():
    ear = Ear()
    ear.added(PODS, uses())
    assert ear.queue.is_gated("uid-of-p")
    assert ear.told == [("p", 'resourceclaim "c" not found')]
    ear.added(CLAIMS, claim())
    assert ear.take() is not None
    assert ear.told[-1] == ("p", None)


def test_a_pod_that_loses_its_claim_at_the_gate_is_told_what_is_missing_now():
    """Of two claims one comes while the other goes."""
    two = [{"name": "x", "resourceClaimName": "c"}, {"name": "y", "resourceClaimName": "d"}]
    ear = Ear()
    ear.added(CLAIMS, claim("c"))
    ear.added(PODS, waits(resourceClaims=two))
    ear.deleted(CLAIMS, claim("c", 2))
    ear.added(CLAIMS, claim("d", 3))
    assert ear.queue.is_gated("uid-of-p")
    assert ear.told[-1] == ("p", 'resourceclaim "c" not found')


def test_a_claim_that_is_being_deleted_keeps_the_gate_shut_until_the_next_comes():
    ear = Ear()
    ear.added(CLAIMS, claim(deletionTimestamp="2026-01-01T00:00:00Z"))
    ear.added(PODS, uses())
    assert ear.told[-1] == ("p", 'resourceclaim "c" is being deleted')
    ear.deleted(CLAIMS, claim(version=2))
    ear.added(CLAIMS, claim(version=3, uid="next"))
    assert ear.take() is not None


# -- claims -----------------------------------------------------------------------------------------


def test_devices_that_come_back_wake_those_who_want_some():
    ear = Ear()
    ear.added(CLAIMS, claim(device="gpu-0"))
    ear.added(CLAIMS, claim("d"))
    ear.added(PODS, uses(claim="d"))
    waiting = ear.take()
    assert waiting is not None
    ear.queue.failed(waiting.uid, "group", frozenset({"DynamicResources"}), 3.0)
    assert ear.queue.where(waiting.uid) is Where.ASLEEP
    ear.updated(CLAIMS, claim(version=5))
    assert ear.queue.where(waiting.uid) is not Where.ASLEEP


def test_an_answer_and_the_watch_may_tell_the_same_in_any_order():
    """SNAP4: what was written last counts, whoever told it first."""
    ear = Ear()
    ear.added(CLAIMS, claim(version=1))
    ear.intake.claim(claim(version=3, device="gpu-0"), 2.0)
    ear.updated(CLAIMS, claim(version=2))
    assert not ear.snapshot.ledger.is_free(DeviceId(DRIVER, "a", "gpu-0"))
    ear.deleted(CLAIMS, claim(version=4))
    ear.intake.claim(claim(version=3, device="gpu-0"), 5.0)
    assert ear.snapshot.ledger.is_free(DeviceId(DRIVER, "a", "gpu-0"))
    assert ear.snapshot.claim(Key("default", "c")) is None


def test_a_gated_pod_is_tried_when_what_an_earlier_attempt_left_for_it_becomes_known():
    """C5: the claim for its extended resources must go, although the pod waits for another claim."""
    ear = Ear()
    ear.added(PODS, uses(claim="nobody-made-it"))
    assert ear.take() is None and ear.queue.is_gated("uid-of-p")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-of-p", "controller": True}
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    ear.added(CLAIMS, claim("left", annotations=annotations, ownerReferences=[owner]))
    taken = ear.take()
    assert taken is not None and taken.key.name == "p"


# -- devices ----------------------------------------------------------------------------------------


def test_a_slice_that_cannot_be_used_is_not_used_and_the_next_version_is():
    good = slice_of("a", [{"name": "gpu-0"}])
    bad = slice_of("a", [{"name": "gpu-0", "capacity": {"memory": {"value": "much"}}}])
    ear = Ear()
    ear.added(NODES, node())
    for version, fields in enumerate((good, bad, good)):
        ear.added(SLICES, thing("s", version + 1, "", spec=fields["spec"]))
        assert len(list(ear.snapshot.inventory.slices())) == (0 if fields is bad else 1)


def test_a_class_that_goes_serves_no_extended_resource_any_more():
    ear = Ear()
    gpu = thing("gpu", namespace="", spec={"extendedResourceName": "example.com/gpu"})
    ear.added(CLASSES, gpu)
    assert ear.snapshot.extended.class_for("example.com/gpu")
    ear.deleted(CLASSES, gpu)
    assert not ear.snapshot.extended.class_for("example.com/gpu")
