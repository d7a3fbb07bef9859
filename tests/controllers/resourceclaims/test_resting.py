"""A pod or a claim about which nothing is to be done is not looked at."""

import asyncio
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from allot.api import Object, Request, Response, encode, errors
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Client
from allot.controllers import resourceclaims
from allot.controllers.controller import World as Given
from allot.controllers.resourceclaims import loop
from allot.controllers.resourceclaims.claim_loop import ClaimLoop
from allot.controllers.resourceclaims.consumers import Consumers
from allot.controllers.resourceclaims.memory import Gone, Made
from allot.controllers.resourceclaims.pod_loop import PodLoop
from allot.controllers.resourceclaims.released import Releases
from allot.informers import Events, Informer, Informers, Key, Telemetry
from controllers.resourceclaims.objects import (
    CLAIM_NAME,
    FINALIZER,
    allocate,
    allocation,
    consumer,
    generated,
    pod,
    template,
)
from controllers.world import NS, World, tell

LATER = "2026-01-01T00:00:00Z"


class Deaf:
    """A server that has nothing, and remembers that it was asked."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        return Response(404, encode({"kind": "Status", "reason": "NotFound", "code": 404}))

    async def close(self) -> None:
        return None


class Scene:
    """The two loops with caches as they are laid out."""

    def __init__(self, pods: list[Object], claims: list[Object]) -> None:
        self.server, clock, rng, metrics = Deaf(), SystemClock(), random.Random(1), Metrics()
        client, ids, telemetry = Client(self.server), RandomIds(rng), Telemetry(metrics, clock)
        events = Events(client, "test", clock, ids, telemetry, metrics)
        given = Given(client, Informers(client, rng), clock, rng, ids, metrics, telemetry, events)
        informers = [Informer(what) for what in loop.NEEDS]
        of_pods, nodes, of_claims, templates, classes, prepared = informers
        for informer, objects in ((of_pods, pods), (of_claims, claims)):
            for object in objects:
                informer.cache.put(object)
        templates.cache.put(Object(encode(template())))
        self.gone, self.made = Gone(), Made()
        releases, consumers = Releases(client, prepared, nodes), Consumers(given, lambda claim: None)
        self.pods = PodLoop(given, of_pods, of_claims, templates, classes, self.made)
        self.claims = ClaimLoop(given, of_pods, of_claims, releases, consumers, self.gone)

    def does_nothing(self, which: PodLoop | ClaimLoop, object: Object) -> bool:
        async def look() -> object:
            try:
                return await which.reconcile(Key.of(object))
            except errors.ApiError:
                return None

        answer = asyncio.run(look())
        return answer is None and not self.server.asked


UIDS = st.sampled_from(["u1", "u1", "u1", "u2"])
SELDOM = st.sampled_from([False] * 7 + [True])
OFTEN = SELDOM.map(lambda seldom: not seldom)


@st.composite
def pods(draw: st.DrawFn) -> Object:
    metadata = {"name": "p", "namespace": NS, "uid": draw(UIDS), "resourceVersion": "1"}
    if draw(SELDOM):
        metadata["deletionTimestamp"] = LATER
    spec: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
    if draw(st.booleans()):
        spec["resourceClaims"].append({"name": "nic", "resourceClaimName": "d"})
    if draw(st.booleans()):
        spec["nodeName"] = "n"
    status: dict[str, Any] = {"phase": draw(st.sampled_from(["Pending", "Running", "Running", "Succeeded"]))}
    recorded = draw(st.sampled_from(["c", "c", "d", "d", "e", None, ...]))
    if recorded is not ...:
        entry = {"name": "gpu", "resourceClaimName": recorded}
        status["resourceClaimStatuses"] = [{name: value for name, value in entry.items() if value}]
    return Object(encode({"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}))


@st.composite
def claims(draw: st.DrawFn, name: str = "c") -> Object:
    metadata: dict[str, Any] = {"name": name, "namespace": NS, "uid": f"of-{name}", "resourceVersion": "1"}
    if draw(OFTEN):
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": draw(UIDS), "controller": True}
        metadata |= {"ownerReferences": [owner], "annotations": {CLAIM_NAME: "gpu"}}
    if draw(st.booleans()):
        metadata["finalizers"] = [FINALIZER]
    if draw(SELDOM):
        metadata["deletionTimestamp"] = LATER
    status: dict[str, Any] = {}
    if draw(st.booleans()):
        status["allocation"] = {"devices": {"results": []}}
        holders = draw(st.lists(UIDS, max_size=2, unique=True))
        status["reservedFor"] = [{"resource": "pods", "name": "p", "uid": uid} for uid in holders]
    return Object(encode({"kind": "ResourceClaim", "metadata": metadata, "status": status}))


@given(claims(), st.lists(claims("d"), max_size=1), st.lists(pods(), max_size=1), st.sets(UIDS, max_size=1))
def test_a_claim_is_at_rest_when_looking_at_it_would_do_nothing(claim, others, known, gone):
    """Neither write nor question. The other way round too, except that one that is going is looked at."""
    scene = Scene(known, [claim, *others])
    for uid in gone:
        scene.gone.add(uid)
    rests = scene.claims.is_at_rest(claim, is_new=False)
    nothing = scene.does_nothing(scene.claims, claim)
    assert rests == nothing or (nothing and claim.metadata.deletion_timestamp)


@given(pods(), st.lists(claims("c"), max_size=1), st.lists(claims("d"), max_size=1))
def test_a_pod_is_at_rest_when_looking_at_it_would_do_nothing(pod, one, other):
    """The other way round too, while it needs its claims."""
    scene = Scene([pod], one + other)
    rests = scene.pods.is_at_rest(pod)
    nothing = scene.does_nothing(scene.pods, pod)
    is_over = pod.fields["status"]["phase"] == "Succeeded" or pod.metadata.deletion_timestamp
    assert rests == nothing or (nothing and is_over)


@given(claims())
def test_a_new_claim_whose_owner_is_not_known_is_looked_at(claim):
    """Another pod may have its name by the time that the pods are known."""
    scene = Scene([], [claim])
    is_owned = bool(claim.fields["metadata"].get("ownerReferences"))
    is_held = bool((claim.fields["status"] or {}).get("reservedFor"))
    if is_owned and not is_held:
        assert not scene.claims.is_at_rest(claim, is_new=True)


def owned(name: str) -> Object:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1", "controller": True}
    metadata = {"name": name, "namespace": NS, "uid": f"of-{name}", "resourceVersion": "1"}
    metadata |= {"ownerReferences": [owner], "annotations": {CLAIM_NAME: "gpu"}}
    return Object(encode({"kind": "ResourceClaim", "metadata": metadata, "status": {}}))


def records(name: str) -> Object:
    fields = pod()
    fields["metadata"] |= {"uid": "u1", "resourceVersion": "1"}
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]}
    return Object(encode({**fields, "status": status}))


def test_a_second_claim_for_one_entry_is_looked_at_and_the_recorded_one_is_not():
    recorded, second = owned("c"), owned("d")
    scene = Scene([records("c")], [recorded, second])
    assert scene.claims.is_at_rest(recorded, is_new=True)
    assert not scene.claims.is_at_rest(second, is_new=True)


def test_a_pod_whose_claim_was_made_and_not_heard_of_is_looked_at():
    """The claim may go before the cache ever shows it."""
    made, recorded = owned("c"), records("c")
    scene = Scene([recorded], [])
    scene.made.add(made, "u1", SystemClock().monotonic_s())
    assert not scene.pods.is_at_rest(recorded)
    assert Scene([recorded], [made]).pods.is_at_rest(recorded)


def test_what_controller_and_scheduler_write_themselves_is_not_looked_at_again():
    """From its creation to its end a pod is looked at when it comes, and its claim when it goes."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        running = await here.pods.create(pod())
        claim = await generated(here)
        await allocate(here, claim, consumer(running))
        await here.pods.bind("p", NS, "n", uid=running.uid)
        await here.quiet()
        assert added(here) == 1
        await here.pods.delete("p", NS, grace_period_s=0)

        async def is_free() -> bool:
            found = await here.find(here.claims, claim.name)
            return allocation(found) is None

        await here.until(is_free)
        await here.quiet()
        assert added(here) == 2

    tell(story, resourceclaims.CONTROLLER)


def added(here: World) -> int:
    """How often a pod or a claim was to be looked at."""
    [line] = [line for line in here.metrics.text().splitlines() if ADDS in line]
    return int(float(line.split()[-1]))


ADDS = 'workqueue_adds_total{name="resource_claim"}'
