"""`planning.defrag.applying` on a real server: moves are made as planned, or nothing more is done."""

import asyncio
from collections.abc import Awaitable, Callable

from allot.base import SystemClock
from allot.client import Propagation
from allot.planning import Cluster, take
from allot.planning.defrag import Applying, Course, Plan, Stopped, Terms, of_profile, plan
from allot.scheduler import Settings
from scheduler.cluster import NS, pod, tell
from scheduler.cluster import Cluster as Live

from ..test_comes_true import WORKLOADS, devices

Between = Callable[[Live, int], Awaitable[None]]


async def looked(here: Live) -> Course:
    dump = await take(here.client, here.gates)
    wanted = of_profile(Cluster(dump.gathered, here.gates), "2xgpu", NS)
    return Course(wanted.reading, wanted.pods, Terms(), SystemClock().now(), Settings())


async def made(here: Live) -> None:
    """One of two devices is free on each of two nodes; the pod on the second may move."""
    await here.start_controllers(WORKLOADS)
    await here.start_scheduler()
    await devices(here, a=2, b=2)
    await here.pod("q", template="one", nodeSelector={"kubernetes.io/hostname": "a"})
    await here.bound("q")
    await cordon(here, "a", closed=True)
    labels = {"app": "web"}
    spec = pod("x", template="one")["spec"]
    template = {"metadata": {"labels": labels}, "spec": spec}
    replicas = here.client.resource("apps", "v1", "replicasets")
    fields = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    await replicas.create({"metadata": {"name": "web"}, "spec": fields}, NS)

    async def placed() -> bool:
        return await web(here) == ["b"]

    await here.until(placed, "web is on b")
    await cordon(here, "a", closed=False)


async def web(here: Live) -> list[str]:
    pods = await here.all("pods")
    return [one.fields["spec"].get("nodeName", "") for one in pods if one.name.startswith("web-")]


async def cordon(here: Live, name: str, *, closed: bool) -> None:
    node = await here.resource("nodes").get(name)
    await here.resource("nodes").update(node.changed({"spec": {"unschedulable": closed}}))


async def ends(here: Live) -> None:
    """What nodes would do: pods that are to end do so, a moment later."""
    while True:
        for one in await here.all("pods"):
            if one.metadata.deletion_timestamp is not None:
                await asyncio.sleep(0.2)
                await here.resource("pods").delete(one.name, NS, grace_period_s=0)
        await asyncio.sleep(0.05)


async def nothing(here: Live, at: int) -> None: ...


def story(between: Between = nothing, agrees: bool = True, patience_s: float = 10.0):
    """`between` is done to the cluster after the plan, and each time after it was looked at again."""
    told: list[str] = []

    async def run(here: Live) -> None:
        ending = asyncio.ensure_future(ends(here))
        try:
            await moved(here)
        finally:
            ending.cancel()

    async def moved(here: Live) -> None:
        await made(here)
        found = plan(await looked(here), 2)
        assert isinstance(found, Plan) and [(one.node, one.to) for one in found.steps] == [("b", "a")]
        await between(here, 0)
        looks = 0

        async def look() -> Course:
            nonlocal looks
            looks += 1
            course = await looked(here)
            await between(here, looks)
            return course

        applying = Applying(here.client, SystemClock(), look, lambda step: agrees, told.append, patience_s)
        try:
            places = await applying.apply(found.steps)
        except Stopped as stopped:
            told.append(str(stopped))
        else:
            told.append(str(list(places.values())))
        told.append(str(await web(here)))

    tell(run, started=False)
    return told


def test_the_moves_are_made_and_it_fits():
    told = story()
    assert told[0].startswith("evicted  default/web-") and told[1].endswith("on a")
    assert told[2:] == ["['b']", "['a']"]


def test_nobody_is_evicted_without_consent():
    told = story(agrees=False)
    assert told[0].startswith("nobody agreed to evict pod default/web-") and told[1:] == ["['b']"]


def test_what_has_changed_since_is_seen_before_anybody_is_evicted():
    """DO1: the node that the replacement was to go to has been closed."""

    async def close(here: Live, at: int) -> None:
        if at == 0:
            await cordon(here, "a", closed=True)

    told = story(close)
    assert told[0].startswith("another pod default/web-") and "would now go to b, not to a" in told[0]
    assert told[1:] == ["['b']"]


def test_a_pod_that_has_gone_meanwhile_is_not_looked_for():
    async def end(here: Live, at: int) -> None:
        if at == 0:
            for one in await here.all("pods"):
                if one.name.startswith("web-"):
                    await here.resource("pods").delete(one.name, NS, grace_period_s=0)
            await asyncio.sleep(0.3)

    told = story(end)
    assert len(told) == 2 and "is no longer on b" in told[0]


def test_a_replacement_that_goes_elsewhere_ends_it():
    """The node is closed in the very moment between the last look and the eviction."""

    async def close(here: Live, at: int) -> None:
        if at == 1:
            await cordon(here, "a", closed=True)

    told = story(close)
    assert told[0].startswith("evicted") and told[1].endswith("went to b, where the plan has a")


def test_a_budget_that_refuses_is_waited_for_and_then_believed():
    """Evictions go by the API that heeds budgets: here nobody has said yet how many may go."""

    async def keep(here: Live, at: int) -> None:
        if at == 1:
            spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
            await here.create("poddisruptionbudgets", {"metadata": {"name": "keep"}, "spec": spec})
            for one in await here.all("pods"):
                running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                await here.resource("pods").update_status(one.changed({"status": running}))

    told = story(keep, patience_s=0.5)
    assert "stays: Cannot evict pod as it would violate the pod's disruption budget" in told[0]
    assert told[1:] == ["['b']"]


def test_a_replacement_that_does_not_come_ends_it():
    """Whoever would have made it is deleted in the same moment."""

    async def shrink(here: Live, at: int) -> None:
        if at == 1:
            replicas = here.client.resource("apps", "v1", "replicasets")
            await replicas.delete("web", NS, propagation=Propagation.ORPHAN)
            await asyncio.sleep(0.3)

    told = story(shrink, patience_s=0.8)
    assert told[0].startswith("evicted") and "no other pod default/web-" in told[1]
