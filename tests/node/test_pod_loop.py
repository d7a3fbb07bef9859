"""The loop against the real server, with a machine that does as the story says."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from allot.api import Object, Request, Response, User, errors, kinds
from allot.apiserver import identities
from allot.base import Metrics, SystemClock
from allot.client import Client, InProcessTransport
from allot.informers import Informers, Telemetry
from allot.node import (
    FOLLOWED,
    NOTHING,
    ClaimRef,
    Container,
    Devices,
    Found,
    Heard,
    Hosts,
    LeaseLoop,
    NotReady,
    Observed,
    PodLoop,
    Rejected,
    Renewing,
    Running,
    Terminated,
    Unfinished,
    lead,
    own,
)
from allot.testing import TestServer, api_server

from .objects import NS, direct

NODE, THEN = "n-1", "2026-11-15T08:00:00Z"
SOON_S = 20.0
FINALIZER = "resource.kubernetes.io/delete-protection"


@dataclass
class Scripted:
    """Does nothing by itself; notes what it was asked for."""

    found: list[Found] = field(default_factory=list)
    driver_is_away: bool = False
    half_done: bool = False  # one driver of two has prepared
    stuck: bool = False  # no driver unprepares
    lingers: bool = False  # what is told to stop takes its time
    asked: list[str] = field(default_factory=list)
    ended: set[str] = field(default_factory=set)  # names of pods whose containers have ended

    async def standing(self, node: str) -> Sequence[Found]:
        return self.found

    async def prepare(self, node: str, pod: Object, claims: Sequence[Object]) -> Devices:
        self.asked.append(f"prepare {pod.name}")
        if self.driver_is_away:
            raise NotReady("the driver is away")
        if self.half_done:
            raise Unfinished("one driver of two")
        return {claim.uid: ("example.com/gpu=0",) for claim in claims}

    async def run(self, node: str, pod: Object, devices: Devices) -> Observed:
        self.asked.append(f"run {pod.name} with {sum(map(len, devices.values()))}")
        return self._seen(pod)

    async def stop(self, node: str, pod: Object, grace_s: float) -> Observed:
        self.asked.append(f"stop {pod.name} in {grace_s:.0f}")
        if not self.lingers:
            self.ended.add(pod.name)
        return self._seen(pod)

    async def unprepare(self, node: str, pod: Object, claims: Sequence[ClaimRef]) -> None:
        self.asked.append(f"unprepare {pod.name} {len(claims)}")
        if self.stuck:
            raise NotReady("no driver answers")

    async def remove(self, node: str, pod_uid: str) -> None:
        self.asked.append(f"remove {pod_uid}")

    def changed(self, hear: Callable[[str], None]) -> None:
        self.hear = hear

    def _seen(self, pod: Object) -> Observed:
        end = Terminated(0, THEN, THEN)
        return Observed((Container("main", end if pod.name in self.ended else Running(THEN)),))


@dataclass
class Story:
    server: TestServer
    machine: Scripted
    written: list[str] = field(default_factory=list)  # what the node wrote
    complaints: list[str] = field(default_factory=list)
    before_get: Callable[[], Any] | None = None  # of a claim, once
    before_list: Callable[[], Any] | None = None  # before the node first says what it has, once
    loop: PodLoop | None = None  # while it is led

    def __post_init__(self) -> None:
        self.client = self.server.client()
        self.pods = self.client.resource("", "v1", "pods")
        self.nodes = self.client.resource("", "v1", "nodes", namespaced=False)
        self.claims = self.client.resource("resource.k8s.io", "v1", "resourceclaims")
        self.prepared = self.client.of(kinds.PREPARED_CLAIMS)

    def of_node(self, name: str) -> Client:
        return Client(InProcessTransport(self._handle, identities.node(name)))

    async def _handle(self, request: Request, user: User) -> Response:
        if request.method != "GET":
            self.written.append(f"{request.method} {request.path.split('/v1')[-1]}")
            if "/preparedclaims" in request.path and self.before_list is not None:
                first, self.before_list = self.before_list, None
                await first()
        elif "/resourceclaims/" in request.path and self.before_get is not None:
            first, self.before_get = self.before_get, None
            await first()
        return await self.server.api.handle(request, user)

    async def bound(self, name: str, *claims: str, **spec: Any) -> Object:
        containers = [{"name": "main", "image": "app:1"}]
        spec = {"nodeName": NODE, "containers": containers, **direct(*claims), **spec}
        return await self.pods.create({"metadata": {"name": name, "namespace": NS}, "spec": spec})

    async def given(self, name: str, pod: Object) -> Object:
        """A claim that is allocated and the pod's."""
        spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any"}}]}}
        metadata = {"name": name, "namespace": NS, "finalizers": [FINALIZER]}
        await self.claims.create({"metadata": metadata, "spec": spec})
        result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": name}
        consumer = {"resource": "pods", "name": pod.name, "uid": pod.uid}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}
        return await self.claims.patch(name, {"status": status}, NS, subresource="status")

    async def say_ready(self, status: str) -> None:
        """How the node is, as the API shows it."""
        ready = {"type": "Ready", "status": status}
        await self.nodes.patch(NODE, {"status": {"conditions": [ready]}}, subresource="status")

    async def is_ready(self, name: str) -> bool:
        conditions = (await self.pods.get(name, NS)).fields["status"]["conditions"]
        return all(one["status"] == "True" for one in conditions)

    async def until_phase(self, name: str, phase: str) -> None:
        async def is_so() -> bool:
            return bool((await self.pods.get(name, NS)).fields["status"]["phase"] == phase)

        await self.until(is_so)

    async def until_asked(self, what: str) -> None:
        async def is_so() -> bool:
            return what in self.machine.asked

        await self.until(is_so)

    async def until(self, question: Callable[[], Any]) -> None:
        end = asyncio.get_running_loop().time() + SOON_S
        while not await question():
            assert asyncio.get_running_loop().time() < end, (self.machine.asked, self.written)
            await asyncio.sleep(0.01)


@asynccontextmanager
async def led(here: Story, *, alone: bool = False) -> AsyncIterator[None]:
    """The node lives while the block does; `alone`, it reads with its own rights too."""
    clock, metrics = SystemClock(), Metrics()
    async with Informers(here.of_node(NODE) if alone else here.client, Random(1)) as informers:
        followed = own(NODE) if alone else FOLLOWED
        heard = Heard.of(informers, followed)
        await informers.synced()
        telemetry = Telemetry(metrics, clock)
        hosts = Hosts(
            lambda node: node.name == NODE,
            here.of_node,
            clock,
            telemetry,
            complain=lambda pod, reason, message: here.complaints.append(f"{pod.name} {reason} {message}"),
        )
        leases = LeaseLoop(hosts, heard, Renewing(), lambda node, now: None)
        here.loop = pods = PodLoop(hosts, heard, here.machine, patience_s=0.1)
        task = asyncio.create_task(lead(heard, leases, pods))
        try:
            yield
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.wait((task,))


@asynccontextmanager
async def story(machine: Scripted | None = None) -> AsyncIterator[Story]:
    async with api_server() as server:
        here = Story(server, machine or Scripted())
        await here.nodes.create({"metadata": {"name": NODE}})
        yield here


def tell(play: Callable[[Story], Any], machine: Scripted | None = None) -> None:
    async def whole() -> None:
        async with story(machine) as here, led(here):
            await play(here)

    asyncio.run(asyncio.wait_for(whole(), 60))


WRITES = [
    "POST alpha1/preparedclaims",
    f"PATCH /namespaces/{NS}/pods/p/status",
    f"PATCH alpha1/preparedclaims/{NODE}/status",
    f"PATCH /namespaces/{NS}/pods/p/status",
]


def test_deeds_and_writes_of_a_task_come_in_the_order_of_the_table():
    """The end is told when the claims are off the list: four writes."""

    async def play(here: Story) -> None:
        pod = await here.bound("p", "c", restartPolicy="Never")
        await here.given("c", pod)
        await here.until_phase("p", "Running")
        here.machine.ended.add("p")
        here.machine.hear(pod.uid)
        await here.until_phase("p", "Succeeded")
        await here.until_asked(f"remove {pod.uid}")
        order = list(dict.fromkeys(here.machine.asked))
        assert order == ["prepare p", "run p with 1", "unprepare p 1", f"remove {pod.uid}"]
        assert [one for one in here.written if "lease" not in one] == WRITES

    tell(play)


def test_deeds_and_writes_of_a_pod_that_is_deleted_come_in_the_order_of_the_table():
    """As above, and then it goes: five writes."""

    async def play(here: Story) -> None:
        pod = await here.bound("p", "c")
        await here.given("c", pod)
        await here.until_phase("p", "Running")
        await here.pods.delete("p", NS)

        async def is_gone() -> bool:
            return not (await here.pods.list(NS)).objects

        await here.until(is_gone)
        order = list(dict.fromkeys(here.machine.asked))
        deeds = ["prepare p", "run p with 1", "stop p in 30", "unprepare p 1", f"remove {pod.uid}"]
        assert order == deeds
        about = [one for one in here.written if "lease" not in one]
        assert about == [*WRITES, f"DELETE /namespaces/{NS}/pods/p"]

    tell(play)


def test_a_status_that_the_node_wrote_itself_is_no_news():
    """Its own word comes back to it, and nobody asks the machine again for that."""

    async def play(here: Story) -> None:
        await here.bound("p")
        await here.until_phase("p", "Running")
        await asyncio.sleep(0.3)
        assert here.machine.asked == ["run p with 0"]

    tell(play)


def test_a_pod_that_was_given_up_on_with_its_node_is_ready_again_when_the_node_is_heard():
    """The node lifecycle controller says of all pods of a silent node that they are not ready, and nobody
    but the node can take that back (N9)."""

    async def play(here: Story) -> None:
        await here.bound("p")
        await here.until_phase("p", "Running")
        await here.say_ready("Unknown")
        doubted = [
            {**one, "status": "False"} if one["type"] == "Ready" else one
            for one in (await here.pods.get("p", NS)).fields["status"]["conditions"]
        ]
        await here.pods.patch("p", {"status": {"conditions": doubted}}, NS, subresource="status")
        await asyncio.sleep(0.3)
        assert not await here.is_ready("p")
        await here.say_ready("True")
        await here.until(lambda: here.is_ready("p"))
        writes = len(here.written)
        await asyncio.sleep(0.3)
        assert len(here.written) == writes

    tell(play)


def test_a_driver_that_cannot_prepare_is_asked_again_later_and_the_pod_says_why():
    """Not at once: a driver that is away is not helped by many calls."""

    async def play(here: Story) -> None:
        began_s = asyncio.get_running_loop().time()
        pod = await here.bound("p", "c")
        await here.given("c", pod)

        async def explained() -> bool:
            known = (await here.pods.get("p", NS)).fields["status"].get("containerStatuses") or []
            return [one["state"]["waiting"]["message"] for one in known] == ["the driver is away"]

        await here.until(explained)
        here.machine.driver_is_away = False
        await here.until_phase("p", "Running")
        took_s = asyncio.get_running_loop().time() - began_s
        assert here.machine.asked.count("prepare p") <= 2 + took_s

    tell(play, Scripted(driver_is_away=True))


def test_a_pod_that_goes_while_its_claim_is_being_listed_is_taken_off_the_list_again():
    """N2: the pod lets go when as far as the node knew nothing was listed, and the list was on its way."""

    async def play(here: Story) -> None:
        async def goes() -> None:
            await here.pods.delete("p", NS, grace_period_s=0)
            await here.until(has_let_go)

        async def has_let_go() -> bool:
            assert here.loop is not None
            return not here.loop.prepared._holding.wanted(NODE)

        here.before_list = goes
        pod = await here.bound("p", "c")
        await here.given("c", pod)

        async def lists_nothing() -> bool:
            listed = (await here.prepared.list()).objects
            return bool(listed) and not listed[0].fields["status"].get("claims")

        await here.until(lists_nothing)

    tell(play)


def test_a_claim_that_was_replaced_by_another_of_its_name_is_not_prepared():
    """N1: the node has listed the first one, and nothing says that it prepared the second."""

    async def play(here: Story) -> None:
        pod = await here.bound("p", "c")
        uids: list[str] = []

        async def replace() -> None:
            await here.claims.patch("c", {"metadata": {"finalizers": None}}, NS)
            await here.claims.delete("c", NS)
            uids.append((await here.given("c", pod)).uid)

        here.before_get = replace
        uids.append((await here.given("c", pod)).uid)
        await here.until_phase("p", "Running")
        (listed,) = (await here.prepared.list()).objects
        assert [one["uid"] for one in listed.fields["status"]["claims"]] == uids[1:]

    tell(play)


def test_what_an_earlier_process_left_of_a_pod_that_is_gone_is_cleaned_up():
    """N8: the API does not show it any more, and the machine does."""

    async def play(here: Story) -> None:
        uid = here.machine.found[0].pod.uid
        await here.until_asked(f"remove {uid}")
        assert here.machine.asked == ["stop left in 0", "unprepare left 1", f"remove {uid}"]

        async def let_go() -> bool:
            listed = (await here.prepared.list()).objects
            return not any(one.fields["status"].get("claims") for one in listed)

        await here.until(let_go)

    left = Object(
        b'{"metadata":{"name":"left","namespace":"default","uid":"u-left"},"spec":{"nodeName":"n-1",'
        b'"containers":[{"name":"main"}]},"status":{"phase":"Running"}}'
    )
    running = Observed((Container("main", Running(THEN)),))
    found = Found(left, (ClaimRef("u-c", NS, "c"),), {"u-c": ()}, running)
    tell(play, Scripted(found=[found]))


def test_a_pod_that_the_machine_still_has_is_not_started_again():
    """N5: it is reported as it is, and its claims stay listed."""

    async def whole() -> None:
        async with story() as here:
            pod = await here.bound("p", "c")
            claim = await here.given("c", pod)
            running = Observed((Container("main", Running(THEN)),))
            ref = ClaimRef(claim.uid, NS, "c")
            here.machine.found = [Found(pod, (ref,), {claim.uid: ("x",)}, running)]
            async with led(here):
                await here.until_phase("p", "Running")

                async def listed() -> bool:
                    found = (await here.prepared.list()).objects
                    return [c["uid"] for one in found for c in one.fields["status"]["claims"]] == [claim.uid]

                await here.until(listed)
                assert "prepare p" not in here.machine.asked

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_a_pod_whose_node_is_deleted_is_let_be():
    async def play(here: Story) -> None:
        await here.bound("p")
        await here.until_phase("p", "Running")
        await here.nodes.delete(NODE)
        await asyncio.sleep(0.2)
        here.machine.asked.clear()
        await here.pods.patch("p", {"metadata": {"labels": {"a": "b"}}}, NS)
        await asyncio.sleep(0.2)
        assert here.machine.asked == []

    tell(play)


def test_nothing_is_what_a_machine_has_in_the_beginning():
    assert not NOTHING.runs and not NOTHING.has_ended


def test_what_drivers_may_hold_stays_listed_until_it_is_unprepared():
    """N6: an attempt that failed half way is tried again; when the pod goes, it is undone first."""

    async def play(here: Story) -> None:
        pod = await here.bound("p", "c")
        claim = await here.given("c", pod)

        async def tried_twice() -> bool:
            return here.machine.asked.count("prepare p") >= 2

        await here.until(tried_twice)
        (listed,) = (await here.prepared.list()).objects
        assert [one["uid"] for one in listed.fields["status"]["claims"]] == [claim.uid]
        said = [one for one in here.written if "preparedclaims" in one]
        assert said == ["POST alpha1/preparedclaims"], "it was not taken off and listed again"
        assert "unprepare p 1" not in here.machine.asked
        says = "p FailedPrepareDynamicResources Failed to prepare dynamic resources: one driver of two"
        assert says in here.complaints
        await here.pods.delete("p", NS)

        async def is_gone() -> bool:
            return not (await here.pods.list(NS)).objects

        await here.until(is_gone)
        order = list(dict.fromkeys(here.machine.asked))
        assert order == ["prepare p", "unprepare p 1", f"remove {pod.uid}"]

    tell(play, Scripted(half_done=True))


def test_a_pod_ends_only_when_its_claims_are_unprepared():
    """N7: nothing is told of its end before, and its claims stay on the list."""

    async def play(here: Story) -> None:
        pod = await here.bound("p", "c", restartPolicy="Never")
        claim = await here.given("c", pod)
        await here.until_phase("p", "Running")
        here.machine.ended.add("p")
        here.machine.hear(pod.uid)

        async def complained() -> bool:
            return any("FailedUnprepareDynamicResources" in one for one in here.complaints)

        await here.until(complained)
        assert (await here.pods.get("p", NS)).fields["status"]["phase"] == "Running"
        (listed,) = (await here.prepared.list()).objects
        assert [one["uid"] for one in listed.fields["status"]["claims"]] == [claim.uid]
        here.machine.stuck = False
        await here.until_phase("p", "Succeeded")

    tell(play, Scripted(stuck=True))


def test_what_an_earlier_process_began_to_prepare_is_undone_when_the_pod_is_gone():
    """N6, N8: no driver has answered, and any of them may have done its part."""

    async def play(here: Story) -> None:
        uid = here.machine.found[0].pod.uid
        await here.until_asked(f"remove {uid}")
        assert here.machine.asked == ["unprepare left 1", f"remove {uid}"]

    left = Object(
        b'{"metadata":{"name":"left","namespace":"default","uid":"u-left"},"spec":{"nodeName":"n-1",'
        b'"containers":[{"name":"main"}]},"status":{"phase":"Pending"}}'
    )
    tell(play, Scripted(found=[Found(left, (ClaimRef("u-c", NS, "c"),))]))


def test_a_node_on_its_own_reads_what_a_node_may():
    """It may not list claims: it asks for those of its pods, again while one is not ready."""

    async def whole() -> None:
        async with story() as here, led(here, alone=True):
            pod = await here.bound("p", "c", restartPolicy="Never")
            other = await here.pods.create(
                {
                    "metadata": {"name": "elsewhere", "namespace": NS},
                    "spec": {"nodeName": "n-2", "containers": [{"name": "main", "image": "app:1"}]},
                }
            )
            await asyncio.sleep(0.2)  # its claim is not there yet
            await here.given("c", pod)
            await here.until_phase("p", "Running")
            here.machine.ended.add("p")
            here.machine.hear(pod.uid)
            await here.until_phase("p", "Succeeded")
            assert not any(other.name in one for one in here.machine.asked)

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_a_pod_that_went_from_the_api_before_it_could_end_is_waited_for():
    """N7, N8: deleted by force, its container ends a moment later; then its claims are given back."""

    async def play(here: Story) -> None:
        pod = await here.bound("p", "c")
        await here.given("c", pod)
        await here.until_phase("p", "Running")
        await here.pods.delete("p", NS, grace_period_s=0)
        await here.until_asked("stop p in 0")
        await asyncio.sleep(0.2)
        assert "unprepare p 1" not in here.machine.asked
        here.machine.ended.add("p")
        here.machine.hear(pod.uid)
        await here.until_asked(f"remove {pod.uid}")
        assert "unprepare p 1" in here.machine.asked

    tell(play, Scripted(lingers=True))


@dataclass
class Choosy(Scripted):
    """Rejects a pod once, and would take it the next time."""

    rejections: int = 1

    async def run(self, node: str, pod: Object, devices: Devices) -> Observed:
        if self.rejections:
            self.rejections -= 1
            self.asked.append(f"reject {pod.name}")
            raise Rejected("UnexpectedAdmissionError", "its device plugin does not answer")
        return await super().run(node, pod, devices)


def test_a_pod_whose_end_was_said_and_not_answered_is_not_started():
    """N7: what was sent may still arrive (seed 550 of the simulator)."""

    async def play(here: Story) -> None:
        handle, tries = here._handle, 0

        async def unanswered(request: Request, user: User) -> Response:
            nonlocal tries
            if request.method == "PATCH" and request.path.endswith("/pods/p/status"):
                tries += 1
                if tries <= 2:
                    raise errors.Timeout("no answer came")
            return await handle(request, user)

        here._handle = unanswered
        await here.bound("p", restartPolicy="Never")
        await here.until_phase("p", "Failed")
        assert tries == 3 and "run p with 0" not in here.machine.asked

    tell(play, Choosy())


def test_a_pod_whose_end_was_refused_may_still_start():
    """The server has said that nothing was written, and the node may have room by now."""

    async def play(here: Story) -> None:
        handle, tries = here._handle, 0

        async def refused(request: Request, user: User) -> Response:
            nonlocal tries
            if request.method == "PATCH" and request.path.endswith("/pods/p/status"):
                tries += 1
                if tries == 1:
                    raise errors.Conflict("somebody was faster")
            return await handle(request, user)

        here._handle = refused
        await here.bound("p", restartPolicy="Never")
        await here.until_phase("p", "Running")

    tell(play, Choosy())


def asking_for_all() -> dict[str, Any]:
    resources = {"limits": {"example.com/gpu": "2"}, "requests": {"example.com/gpu": "2"}}
    return {"containers": [{"name": "main", "image": "app:1", "resources": resources}]}


def test_a_pod_waits_for_the_room_of_one_that_was_deleted_by_force_and_says_so():
    """A scheduler believes that room to be free at once. While the node still ends what had it, the next pod
    is not refused; who does not fit even then is."""

    async def play(here: Story) -> None:
        room = {"example.com/gpu": "2", "pods": "9"}
        status = {"capacity": room, "allocatable": room}
        await here.nodes.patch(NODE, {"status": status}, subresource="status")
        former = await here.bound("former", **asking_for_all())
        await here.until_phase("former", "Running")
        await here.pods.delete("former", NS, grace_period_s=0)
        await here.until_asked("stop former in 0")
        await here.bound("next", **asking_for_all())

        async def waits() -> bool:
            known = (await here.pods.get("next", NS)).fields["status"]
            assert known["phase"] == "Pending", known
            said = [one["state"]["waiting"]["message"] for one in known.get("containerStatuses") or ()]
            return any("still being ended" in one and "used: 2" in one for one in said)

        await here.until(waits)
        too_much = asking_for_all()
        too_much["containers"][0]["resources"] = {"limits": {"example.com/gpu": "3"}}
        await here.bound("large", **too_much)
        await here.until_phase("large", "Failed")

        here.machine.ended.add("former")
        here.machine.hear(former.uid)
        await here.until_phase("next", "Running")

    tell(play, Scripted(lingers=True))
