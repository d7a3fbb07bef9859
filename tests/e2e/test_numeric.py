"""KEP-4381 from its YAML to a container: a real server, scheduler, agent, driver and sockets; containers are
processes."""

import asyncio
import traceback
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

import allot
from allot.api import numeric as api
from allot.apiserver import ApiServer
from allot.cel import Template
from allot.driver import Ground, Node, NumericDriver, Offering, Places, numeric, offering
from allot.driver.numeric_driver import Telling
from allot.drivers import frobnicator
from allot.informers import discover
from nodeagent import world
from nodeagent.plugins import until
from nodeagent.test_classic_pods import Cut
from nodeagent.world import NODE, NS, World, tell

PACKAGE = Path(allot.__file__).parent
EXAMPLES = Path(__file__).parents[2] / "examples" / "numeric"
GROUP = frobnicator.NAME


class Frobnicators:
    """A driver whose hardware changes as the story says."""

    def __init__(self, here: World, count: int = 8) -> None:
        self._here, self._count, self._changed = here, count, asyncio.Event()
        self.version = "v1alpha1"

    async def capacity(self, node: Node) -> Any:
        while True:
            self._changed.clear()
            yield [numeric.counter(frobnicator.driver.INSTANCE, self._count, version=self.version)]
            await self._changed.wait()

    def become(self, count: int, version: str) -> None:
        self._count, self.version = count, version
        self._changed.set()

    @asynccontextmanager
    async def running(self) -> Any:
        made = NumericDriver(GROUP, self.capacity, frobnicator.driver.prepare)
        places = Places(GROUP, self._here.root, self._here.cdi)
        async with offering(made, Node(NODE), places, Ground()) as work:
            await asyncio.wait_for(work.registration.registered.wait(), 60)
            yield work


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


async def apply(here: World, *bodies: dict[str, Any]) -> None:
    """As a client does that knows kinds and no more."""
    for body in bodies:
        version, kind = body["apiVersion"], body["kind"]

        async def is_served(version: str = version, kind: str = kind) -> bool:
            return (await discover(here.client)).of_kind(version, kind) is not None

        await until(is_served)
        found = (await discover(here.client)).of_kind(version, kind)
        assert found is not None
        what = found.what
        await here.client.resource(
            what.group, version.rpartition("/")[2], what.plural, namespaced=what.namespaced
        ).create(body)


def asked(name: str, count: int, **claim: Any) -> list[dict[str, Any]]:
    """Parameters, a claim and a pod of that name, like those of the example."""
    parameters, claimed, pod = documents("frobnicator-pod.yaml")
    for one in (parameters, claimed, pod):
        one["metadata"]["name"] = name
    parameters["spec"]["numberOfFrobnicators"] = count
    claimed["spec"] |= claim
    claimed["spec"]["parametersRef"]["name"] = name
    pod["spec"]["resourceClaims"][0]["resourceClaimName"] = name
    pod["spec"]["containers"][0]["command"][2] = 'echo "$FROBNICATORS frobnicators, $SPEED"'
    return [parameters, claimed, pod]


async def shown(here: World) -> list[int]:
    objects = (await here.client.of(api.NODE_RESOURCE_CAPACITY).list()).objects
    return [one["data"]["count"] for object in objects for one in object.fields["instances"]]


async def until_shown(here: World, *counts: int) -> None:
    async def is_so() -> bool:
        return await shown(here) == [*counts]

    await until(is_so)


async def status(here: World, claim: str) -> dict[str, Any]:
    return dict((await here.claims.get(claim, NS)).fields.get("status") or {})


async def until_free(here: World, claim: str) -> None:
    async def is_so() -> bool:
        return "allocation" not in await status(here, claim)

    await until(is_so)


async def until_told(here: World, pod: str, *words: str) -> None:
    """Some event of the pod has all of these words."""
    events = here.client.resource("", "v1", "events")

    async def is_so() -> bool:
        found = [one.fields for one in (await events.list(NS)).objects]
        told = [one["message"] for one in found if one["involvedObject"]["name"] == pod]
        return any(all(word in one for word in words) for one in told)

    await until(is_so)


@pytest.fixture
def watched(monkeypatch):
    """An entry for each stream that was opened."""
    opened: list[Telling] = []
    watch = Telling.watch

    def overheard(self: Telling, request: Any) -> Any:
        opened.append(self)
        return watch(self, request)

    monkeypatch.setattr(Telling, "watch", overheard)
    return opened


@pytest.fixture
def readers(monkeypatch):
    """Who asked for the vendor's objects, and from which of our packages templates were expanded."""
    users: set[str] = set()
    packages: set[str] = set()
    handle, expand = ApiServer.handle, Template.expand

    async def overheard(self: ApiServer, request: Any, user: Any) -> Any:
        if GROUP in request.path and request.method == "GET":
            users.add(user.name)
        return await handle(self, request, user)

    def noted(self: Template, *given: Any) -> Any:
        files = [Path(one.filename) for one in traceback.extract_stack()]
        ours = [one.relative_to(PACKAGE) for one in files if one.is_relative_to(PACKAGE)]
        packages.update(one.parts[0] for one in ours if len(one.parts) > 1)
        return expand(self, *given)

    monkeypatch.setattr(ApiServer, "handle", overheard)
    monkeypatch.setattr(Template, "expand", noted)
    return users, packages


def test_the_frobnicators_of_the_specification_from_yaml_to_containers(watched, readers):
    """4381-GEN-01, 4381-GEN-02, 4381-GEN-11, 4381-TPL-05, 4381-VND-05, 4381-NOD-01, 4381-NOD-07,
    4381-MOD-13, 4381-TST-02: published, allocated, bound, prepared, seen by a container, given back.

    4381-NOD-03, 4381-NOD-04, 4381-NOD-05, 4381-PUB-23, 4381-FAIL-07, 4381-ERR-14, 4381-NOD-08, 4381-CLS-12,
    4381-ALC-10: what is no longer there when a pod starts keeps that pod waiting, and no other; class and
    parameters are not needed any more.

    4381-FAIL-06, 4381-PUB-14: a driver that is away keeps what was published, and its pods wait.

    4381-TST-07, 4381-SKEW-02, 4381-SKEW-04, 4381-MOD-14: the driver is upgraded, to publish in a later
    version, and downgraded again: each has claims of the other.

    4381-PUB-24, 4381-GATE-10, 4381-NOD-11, 4381-GATE-08: with the gate off on the node it is not even asked,
    and what is allocated is prepared all the same.

    4381-PAR-01: server, agent, claim controller and driver neither read parameters nor expand templates.

    4381-NOD-09: a pod without a reservation is refused. 4381-FAIL-05, 4381-FAIL-09: capacity stays while the
    agent is away, and goes with the Node."""

    async def play(here: World) -> None:
        await apply(here, *documents("frobnicator-driver.yaml"))
        hardware = Frobnicators(here)
        async with AsyncExitStack() as life, here.agent():
            work = await life.enter_async_context(hardware.running())
            await until_shown(here, 8)
            assert len(watched) == 1
            await apply(here, *documents("frobnicator-pod.yaml"))
            await here.until_phase("Succeeded", "frobnicating")
            assert await here.log("frobnicating") == "3 frobnicators, fast\n"
            assert (
                await here.client.resource("resource.k8s.io", "v1alpha1", "podschedulings").list()
            ).objects == ()
            await until_free(here, "three")
            await shrunk_meanwhile(here, work)
            await away(here, hardware, life)
            await apply(here, *asked("kept", 2, allocationMode="Immediate"))
            await here.until_phase("Succeeded", "kept")
            assert "/v1beta1" in (await status(here, "kept"))["allocation"]["resourceHandle"]
        assert await shown(here) == [4], "as the agent has left it"
        watched.clear()
        await gate_off(here)
        assert watched == []
        await here.nodes.delete(NODE)
        await until_shown(here)

    tell(play, within_s=180)
    users, packages = readers
    sweepers = {
        "system:kube-controller-manager",
        "system:serviceaccount:kube-system:generic-garbage-collector",
    }
    assert users - sweepers == {"system:kube-scheduler"}  # they look after owners, of whatever kind
    assert "scheduler" in packages
    assert not packages & {"apiserver", "controllers", "nodeagent", "node", "driver", "drivers"}


async def shrunk_meanwhile(here: World, work: Offering) -> None:
    """The driver has lost it, and the agent has not heard of it yet."""
    before, work.telling.offered = work.telling.offered, {}
    await apply(here, *asked("waiting", 5))
    await until_told(here, "waiting", GROUP, "claim default/waiting", "instance frobnicators is not there")
    assert (await here.status("waiting"))["phase"] == "Pending"
    allocation = (await status(here, "waiting"))["allocation"]
    assert '"count":5' in allocation["resourceHandle"].replace(" ", "")
    await here.pod("echo untouched", "other")
    await here.until_phase("Succeeded", "other")
    await here.client.resource("resource.k8s.io", "v1alpha1", "resourceclasses", namespaced=False).delete(
        "frobnicator"
    )
    await here.client.resource(GROUP, "v1alpha1", "claimparameters").delete("waiting", NS)
    work.telling.offered = before
    await here.until_phase("Succeeded", "waiting")
    assert await here.log("waiting") == "5 frobnicators, fast\n"
    await until_free(here, "waiting")
    (class_,) = (one for one in documents("frobnicator-driver.yaml") if one["kind"] == "ResourceClass")
    await apply(here, class_)


async def away(here: World, hardware: Frobnicators, life: AsyncExitStack) -> None:
    await life.aclose()
    await apply(here, *asked("early", 1))
    await until_told(here, "early", GROUP, "not registered")
    assert await shown(here) == [8]
    handle = (await status(here, "early"))["allocation"]["resourceHandle"]
    assert "/v1alpha1" in handle
    hardware.become(4, "v1beta1")
    await life.enter_async_context(hardware.running())
    await here.until_phase("Succeeded", "early")
    await until_shown(here, 4)
    (object,) = (await here.client.of(api.NODE_RESOURCE_CAPACITY).list()).objects
    assert [one["apiVersion"].rpartition("/")[2] for one in object.fields["instances"]] == ["v1beta1"]


async def gate_off(here: World) -> None:
    """The immediate claim is allocated still, and a second pod uses it; one that was put here past the
    scheduler does not."""
    async with here.agent(publishes_capacity=False), Frobnicators(here).running():
        pod = asked("kept", 2)[-1]
        pod["metadata"]["name"] = "second"
        await apply(here, pod)
        await here.until_phase("Succeeded", "second")
        pod["metadata"]["name"] = "intruder"
        pod["spec"]["nodeName"] = NODE
        await apply(here, pod)
        await until_told(here, "intruder", "kept", "reserved")
        await here.until_phase("Failed", "intruder")


def test_without_its_server_an_agent_goes_on_with_what_it_knows(monkeypatch):
    """4381-FAIL-04: the container with its frobnicators runs and begins again, the driver is heard, and what
    it said is published when the server is back."""
    monkeypatch.setattr(world, "HttpsTransport", Cut)
    monkeypatch.setattr(Cut, "is_cut", False)

    async def play(here: World) -> None:
        starts, over = here.folder / "starts", here.folder / "over"
        await apply(here, *documents("frobnicator-driver.yaml"))
        hardware = Frobnicators(here)
        async with here.agent(), hardware.running():
            await until_shown(here, 8)
            *rest, pod = asked("p", 3)
            script = (
                f'echo "$FROBNICATORS" >> {starts}; while [ ! -e {over} ]; do sleep 0.05; done; rm {over}'
            )
            pod["spec"]["containers"][0]["command"][2] = script
            pod["spec"]["restartPolicy"] = "Always"
            await apply(here, *rest, pod)
            await here.until_phase("Running", "p")
            await until(lambda: starts.exists() and starts.read_text() == "3\n")
            Cut.is_cut = True
            over.touch()
            hardware.become(5, "v1alpha1")
            await until(lambda: starts.read_text() == "3\n3\n")
            Cut.is_cut = False
            await until_shown(here, 5)
            assert (await here.status("p"))["phase"] == "Running"
            assert "allocation" in await status(here, "p")
            await here.pods.delete("p", NS, grace_period_s=0)

    tell(play)
