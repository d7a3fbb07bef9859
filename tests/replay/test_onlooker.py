"""A record from outside: what counts as a decision, and what of it is decided again."""

from datetime import UTC, datetime
from typing import Any

from allot.api import Gates, Object, encode
from allot.informers import Added, Change, Deleted, ResourceId, Updated
from allot.replay import replayed
from allot.replay.following import PATIENCE_S, Onlooker
from allot.replay.keeping import Scrubber, term_of
from allot.replay.lines import AnyLine, Decided
from allot.scheduler import CLAIMS, CLASSES, NODES, PODS, SLICES, Settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DRIVER = "gpu.example.com"


class HandClock:
    def __init__(self) -> None:
        self.s = 0.0

    def now(self) -> datetime:
        return NOW

    def monotonic_s(self) -> float:
        return self.s


class Watched:
    """An onlooker, and what it has put down."""

    def __init__(self) -> None:
        self.lines: list[AnyLine] = [term_of(Settings(), Gates(), NOW, onlooker=True)]
        self._scrubber, self.clock = Scrubber(), HandClock()
        self.onlooker = Onlooker(self._put, self.clock)

    def _put(self, made: Any) -> None:
        line = made(self._scrubber)
        if line is not None:
            self.lines.append(line)

    def hear(self, what: ResourceId, change: Change) -> None:
        self.onlooker.hear(what, change)

    def add(self, what: ResourceId, *objects: Object) -> None:
        for one in objects:
            self.hear(what, Added(one))

    def bind(self, name: str, node: str, *claims: str) -> None:
        self.add(PODS, pod(name, "", *claims))
        self.hear(PODS, Updated(pod(name, "", *claims), pod(name, node, *claims)))

    def furnish(self) -> None:
        """A node with three devices."""
        capacity = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        ready = [{"type": "Ready", "status": "True"}]
        self.add(
            NODES,
            made("Node", "a", status={"allocatable": capacity, "capacity": capacity, "conditions": ready}),
        )
        self.add(CLASSES, made("DeviceClass", "gpu", "resource.k8s.io/v1", spec={}))
        pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"gpu-{number}"} for number in range(3)]
        spec = {"driver": DRIVER, "pool": pool, "nodeName": "a", "devices": devices}
        self.add(SLICES, made("ResourceSlice", "s", "resource.k8s.io/v1", spec=spec))

    @property
    def decided(self) -> list[Decided]:
        return [one for one in self.lines if isinstance(one, Decided)]


def made(kind: str, name: str, version: str = "v1", **more: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}", "resourceVersion": "1"}
    return Object(encode({"apiVersion": version, "kind": kind, "metadata": metadata, **more}))


def pod(name: str, node: str, *claims: str) -> Object:
    entries = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    spec: dict[str, Any] = {"containers": [{"name": "main"}], "resourceClaims": entries}
    return made("Pod", name, spec={**spec, **({"nodeName": node} if node else {})})


def claim(name: str, device: str = "", *users: str) -> Object:
    status: dict[str, Any] = {}
    if device:
        results = [{"request": "gpu", "driver": DRIVER, "pool": "a", "device": device}]
        used_by = [{"resource": "pods", "name": user, "uid": f"uid-of-{user}"} for user in users]
        status = {"allocation": {"devices": {"results": results}}, "reservedFor": used_by}
    requests = [
        {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    ]
    return made(
        "ResourceClaim", name, "resource.k8s.io/v1", spec={"devices": {"requests": requests}}, status=status
    )


def test_a_pod_that_was_bound_before_anybody_looked_is_no_decision():
    here = Watched()
    here.add(PODS, pod("old", "a"))
    here.hear(PODS, Updated(pod("old", "a"), pod("old", "a")))
    here.bind("new", "a")
    assert [one.name for one in here.decided] == ["default/new"]


def test_a_decision_is_put_down_when_all_its_claims_are_heard_of_with_devices():
    """Or, where some never are, after a moment without them."""
    here = Watched()
    here.add(CLAIMS, claim("c"), claim("d", "gpu-1", "p"))
    here.bind("p", "a", "c", "d")
    here.clock.s = PATIENCE_S / 2
    here.onlooker.look()
    assert not here.decided
    here.hear(CLAIMS, Updated(claim("c"), claim("c", "gpu-0", "p")))
    (one,) = here.decided
    assert {flight.claim: flight.devices[0].device for flight in one.verdict.flights} == {
        "c": "gpu-0",
        "d": "gpu-1",
    }

    here.bind("q", "a", "missing")
    here.onlooker.look()
    assert len(here.decided) == 1
    here.clock.s += PATIENCE_S + 1
    here.onlooker.look()
    assert [(one.name, one.verdict.flights) for one in here.decided[1:]] == [("default/q", ())]


def test_a_claim_that_went_is_not_remembered_with_its_devices():
    here = Watched()
    here.add(CLAIMS, claim("c", "gpu-0", "p"))
    here.hear(CLAIMS, Deleted(claim("c", "gpu-0", "p")))
    here.bind("p", "a", "c")
    assert not here.decided


def test_what_others_use_stays_where_it_is_and_is_not_compared():
    """Of a pod with a claim of its own and one that it shares only its own is given anew."""
    here = Watched()
    here.furnish()
    here.add(CLAIMS, claim("shared", "gpu-2", "other", "p"), claim("own", "gpu-0", "p"))
    here.add(PODS, pod("other", "a", "shared"))
    here.bind("p", "a", "own", "shared")
    (one,) = here.decided
    assert len(one.verdict.flights) == 2
    found = replayed(here.lines)
    assert found.is_seen_from_outside and found.decisions == 1 and not found.differences

    here.add(CLAIMS, claim("late", "gpu-1", "q"))
    here.bind("q", "a", "late")
    here.lines = [one for one in here.lines if not isinstance(one, Decided)] + here.decided[1:]
    assert not replayed(here.lines).differences
