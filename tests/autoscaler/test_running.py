"""The autoscaler at work: the real server, controllers and scheduler, and hollow nodes that come and go."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from allot import autoscaler
from allot.api import Gates, errors
from allot.apiserver import identities
from allot.autoscaler import HollowProvider, Options, Pace, Patience, Settings, read_groups
from allot.autoscaler.groups import LABEL
from allot.autoscaler.loop import BROKEN, NAMESPACE, STATUS, TEMPLATES
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Client
from allot.fleet import fleet
from allot.informers import Informers, Telemetry
from allot.testing import TestCluster, cluster

GROUPS = """
groups:
- {name: gpus, price: 10, max: 3, fleet: gpu}
- {name: small, price: 1, fleet: plain}
"""
SOON_S = 60.0
BUSYBOX = {"name": "main", "image": "busybox"}
Fields = dict[str, Any]


@pytest.fixture(scope="module")
def here() -> Iterator[TestCluster]:
    """One plain node; classes and templates for GPUs, of which there are none."""
    with cluster(fleet="plain", nodes=1) as running:
        running.run(_offers(running))
        yield running


async def _offers(here: TestCluster) -> None:
    made = fleet("gpu", 1)
    for plural, objects in (("deviceclasses", made.classes), ("resourceclaimtemplates", made.templates)):
        resource = here.client().resource(
            "resource.k8s.io", "v1", plural, namespaced=plural != "deviceclasses"
        )
        for one in objects:
            await resource.create(one, one["metadata"].get("namespace", ""))


@asynccontextmanager
async def scaling(here: TestCluster, provider: autoscaler.Provider | None = None, **options: Any):
    client, clock, rng = here.client(identities.AUTOSCALER), SystemClock(), random.Random(1)
    metrics = Metrics()
    wanted = Options(
        read_groups(GROUPS),
        Settings(unneeded_s=0.5, after_growth_s=1.0),
        Patience(arrival_s=60, backoff_s=5),
        Pace(pause_s=0.05, period_s=0.3),
        **options,
    )
    async with Informers(client, rng) as informers:
        dependencies = autoscaler.Dependencies(
            client,
            informers,
            provider or HollowProvider(client, lambda name: here.client(identities.node(name))),
            clock,
            RandomIds(rng),
            metrics,
            Telemetry(Metrics(), clock),
            Gates(),
        )
        working = asyncio.ensure_future(autoscaler.run(dependencies, wanted))
        try:
            yield metrics
        finally:
            working.cancel()
            await asyncio.wait([working])
            if not working.cancelled():
                working.result()


async def until(question: Callable[[], Awaitable[Any]], what: str) -> Any:
    loop = asyncio.get_running_loop()
    end = loop.time() + SOON_S
    while not (answer := await question()):
        assert loop.time() < end, f"{what}: did not become so"
        await asyncio.sleep(0.05)
    return answer


async def nodes(here: TestCluster) -> list[str]:
    listed = await here.client().resource("", "v1", "nodes", namespaced=False).list()
    return sorted(node.name for node in listed.objects)


async def pods(here: TestCluster) -> list[Any]:
    return list((await here.client().resource("", "v1", "pods").list("default")).objects)


async def events(here: TestCluster, reason: str) -> list[str]:
    listed = await here.client().resource("", "v1", "events").list(field_selector=f"reason={reason}")
    return [one.fields["message"] for one in listed.objects]


def deployment(name: str, replicas: int, template: str) -> Fields:
    labels = {"app": name}
    container = {"name": "main", "image": "busybox", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {
        "containers": [container],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def test_a_fleet_is_scaled_from_zero_for_claims_and_back(here: TestCluster):
    """AUTO-08: nine pods with a GPU each, nodes of eight; pods move before their node goes (Y2)."""

    async def story() -> None:
        deployments = here.client().resource("apps", "v1", "deployments")
        async with scaling(here) as metrics:
            await deployments.create(deployment("train", 9, "one-gpu"), "default")

            async def running() -> bool:
                found = [one.fields["status"].get("phase") for one in await pods(here)]
                return found == ["Running"] * 9

            await until(running, "nine pods running")
            assert await nodes(here) == ["gpus-0", "gpus-1", "plain-0"]
            assert any("group gpus" in one for one in await events(here, "TriggeredScaleUp"))

            await deployments.patch("train", {"spec": {"replicas": 1}}, "default")

            async def one_left() -> bool:
                return len(await nodes(here)) == 2 and len(await pods(here)) == 1

            await until(one_left, "one node for one pod")
            await until(running_alone, "it runs")
            await deployments.delete("train", "default")

            async def nobody() -> bool:
                return await nodes(here) == ["plain-0"] and not await pods(here)

            await until(nobody, "no node left of the group")

            async def shown() -> Any:
                try:
                    found = await here.client().resource("", "v1", "configmaps").get(STATUS, NAMESPACE)
                except errors.NotFound:
                    return None
                told = json.loads(found.fields["data"]["status"])["groups"]["gpus"]
                return told if told["nodes"] == 0 else None

            told = await until(shown, "the status says so")
            assert told["template"] == "learned" and told["coming"] == 0
            assert 'allot_autoscaler_nodes_changed_total{group="gpus",change="removed"} 2' in metrics.text()
        slices = (
            await here.client().resource("resource.k8s.io", "v1", "resourceslices", namespaced=False).list()
        )
        assert not slices.objects

    async def running_alone() -> bool:
        return [one.fields["status"].get("phase") for one in await pods(here)] == ["Running"]

    here.run(story())


def test_a_pod_that_no_node_would_help_adds_none_and_is_told_why(here: TestCluster):
    async def story() -> None:
        claims = here.client().resource("resource.k8s.io", "v1", "resourceclaims")
        wanted = {"deviceClassName": "gpu.example.com", "count": 9}
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": wanted}]}}
        await claims.create({"metadata": {"name": "nine"}, "spec": spec}, "default")
        made = deployment("x", 1, "")["spec"]["template"]["spec"]
        made["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "nine"}]
        await (
            here.client()
            .resource("", "v1", "pods")
            .create({"metadata": {"name": "big"}, "spec": made}, "default")
        )
        async with scaling(here):
            told = await until(lambda: events(here, "NotTriggerScaleUp"), "told why")
            assert "gpus: " in told[0] and await nodes(here) == ["plain-0"]
        await here.client().resource("", "v1", "pods").delete("big", "default", grace_period_s=0)

    here.run(story())


def test_a_dry_run_writes_nothing(here: TestCluster):
    async def story() -> None:
        deployments = here.client().resource("apps", "v1", "deployments")
        await deployments.create(deployment("dry", 1, "one-gpu"), "default")
        async with scaling(here, dry_run=True) as metrics:

            async def decided() -> bool:
                return "allot_autoscaler_decision_seconds_count 3" in metrics.text()

            await until(decided, "three decisions")
            assert await nodes(here) == ["plain-0"]
        await deployments.delete("dry", "default")

    here.run(story())


class Unwilling:
    """Has nothing to give."""

    async def resize(self, group: Any, nodes: int) -> None:
        raise autoscaler.ProviderFailed("no machines left in the zone")

    async def remove(self, group: Any, node: str) -> None:
        raise autoscaler.ProviderFailed("it does not go")


def test_what_a_provider_refuses_is_told_the_pod_and_shown(here: TestCluster):
    """And not that a node was asked for."""

    async def story() -> None:
        deployments = here.client().resource("apps", "v1", "deployments")
        before = len(await events(here, "TriggeredScaleUp"))
        await deployments.create(deployment("refused", 1, "one-gpu"), "default")
        async with scaling(here, Unwilling()):
            told = await until(lambda: events(here, "FailedScaleUp"), "told what was refused")
            assert told[0] == "group gpus did not grow: no machines left in the zone"

            async def shown() -> bool:
                found = await here.client().resource("", "v1", "configmaps").get(STATUS, NAMESPACE)
                group = json.loads(found.fields["data"]["status"])["groups"]["gpus"]
                return "no machines left" in group["closed"]

            await until(shown, "the status says why the group waits")
        assert len(await events(here, "TriggeredScaleUp")) == before
        await deployments.delete("refused", "default")

    here.run(story())


@pytest.mark.parametrize(
    "junk", ["{", "[]", '{"node": {}}', '{"node": {"metadata": {"name": "n"}, "status": 7}}']
)
def test_what_was_learned_and_cannot_be_read_is_forgotten(here: TestCluster, junk: str):
    """Somebody has edited it: it is told in the log, and work goes on without."""

    async def story() -> None:
        maps = here.client().resource("", "v1", "configmaps")
        metadata = {"name": TEMPLATES, "namespace": NAMESPACE}
        edited = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"gpus": junk}}
        await maps.apply(edited, field_manager="somebody", force=True)
        deployments = here.client().resource("apps", "v1", "deployments")
        await deployments.create(deployment("junk", 1, "one-gpu"), "default")
        async with scaling(here, dry_run=True) as metrics:

            async def decided() -> bool:
                return "allot_autoscaler_decision_seconds_count 3" in metrics.text()

            await until(decided, "three decisions")
        await deployments.delete("junk", "default")

    here.run(story())


class Choosy:
    """A way to the server on which some requests fail, and others tell of pods that came late."""

    def __init__(self, inner: Any, refuses: Callable[[Any], bool]) -> None:
        self._inner, self._refuses = inner, refuses
        self.refused = 0

    async def send(self, request: Any) -> Any:
        if self._refuses(request):
            self.refused += 1
            raise errors.Unavailable("not now")
        return await self._inner.send(request)

    async def close(self) -> None:
        await self._inner.close()


def alone(here: TestCluster, way: Any) -> autoscaler.Autoscaler:
    """An autoscaler that nobody has begun to run."""
    client, clock, rng = Client(way), SystemClock(), random.Random(1)
    provider = HollowProvider(client, lambda name: here.client(identities.node(name)))
    dependencies = autoscaler.Dependencies(
        client,
        Informers(client, rng),
        provider,
        clock,
        RandomIds(rng),
        Metrics(),
        Telemetry(Metrics(), clock),
        Gates(),
    )
    return autoscaler.Autoscaler(dependencies, Options(read_groups(GROUPS), pace=Pace(pause_s=0.01)))


def way_of(here: TestCluster) -> Any:
    return here.client(identities.AUTOSCALER)._transport


def test_a_server_that_does_not_answer_at_the_start_does_not_end_it(here: TestCluster):
    """The simulator found that an autoscaler ended when its first request failed (seed 3)."""
    failing = iter(range(2))
    way = Choosy(way_of(here), lambda request: next(failing, None) is not None)

    async def story() -> None:
        one = alone(here, way)
        ready = asyncio.Event()
        async with one._following._informers:
            working = asyncio.ensure_future(one.run(ready.set))
            async with asyncio.timeout(SOON_S):
                await ready.wait()
            working.cancel()
            await asyncio.wait([working])

    here.run(story())
    assert way.refused == 2


def test_what_promised_too_much_is_known_to_whoever_leads_next(here: TestCluster):
    """Y4, over a restart."""

    async def story() -> None:
        first, second = alone(here, way_of(here)), alone(here, way_of(here))
        first._memory.broken["gpus"] = "some promise"
        await first._keep(BROKEN, first._memory.broken)
        async with second._following._informers:
            await second._begin()
            second._following.end()
        assert second._memory.broken == {"gpus": "some promise"}

    here.run(story())


def test_a_node_to_which_a_pod_has_come_unheard_is_not_removed(here: TestCluster):
    """Y2: what was heard is old, so the server is asked (seeds 13 to 15 of the simulator)."""

    async def story() -> None:
        one = alone(here, way_of(here))
        resource = here.client().resource("", "v1", "pods")
        made = {"metadata": {"name": "late"}, "spec": {"nodeName": "plain-0", "containers": [BUSYBOX]}}
        assert not await one._is_used("plain-0")
        await resource.create(made, "default")
        assert await one._is_used("plain-0")
        removed = []
        one._provider.remove = lambda group, node: removed.append(node)  # type: ignore[method-assign]
        node = await here.client().resource("", "v1", "nodes", namespaced=False).get("plain-0")
        await one._remove(node.changed({"metadata": {"labels": {LABEL: "small"}}}))
        assert not removed
        await resource.delete("late", "default", grace_period_s=0)

    here.run(story())
