"""A cluster without a GPU: pods ask for some, nodes come, one is drained as was foretold, and all go again.

    python examples/scale_from_zero.py

Everything is real but the machines: the API server, scheduler, controllers and the autoscaler; the nodes
are hollow. It takes some seconds.
"""

import asyncio
import contextlib
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from allot import autoscaler, planning
from allot.api import Gates
from allot.apiserver import identities
from allot.base import Metrics, RandomIds, SystemClock
from allot.fleet import fleet
from allot.informers import Informers, Telemetry
from allot.scheduler import Settings
from allot.testing import TestCluster, cluster

GROUPS = """
groups:
- {name: gpus, price: 12, max: 4, fleet: gpu}
- {name: small, price: 1, max: 4, fleet: plain}
"""
LONGEST_S = 60.0
Fields = dict[str, Any]


def main() -> int:
    with cluster(fleet="plain", nodes=1) as here:
        here.run(story(here))
    print("as was said")
    return 0


async def story(here: TestCluster) -> None:
    await offer(here)
    deployments = here.client().resource("apps", "v1", "deployments")
    await deployments.create(deployment(replicas=9), "default")
    await until(lambda: waiting(here, 9), "nine pods wait: nobody has a GPU")
    async with scaling(here):
        await until(lambda: running(here, 9), "a group has grown from nothing, and nine pods run")
        print("  nodes:", ", ".join(await nodes(here)))
    foretold = await asked(here, "drain gpus-1")
    await drain(here, "gpus-1")
    await until(lambda: running(here, 9 - len(foretold.waiting)), "the drain did what what-if had said")
    async with scaling(here):
        await deployments.delete("train", "default")
        await until(lambda: left(here, ["plain-0"]), "nobody needs a GPU, and the group is empty again")


# -- what is asked and done -----------------------------------------------------------------------


async def asked(here: TestCluster, change: str) -> planning.Answer:
    """What `allot what-if` says."""
    dump = await planning.take(here.client(), Gates())
    parsed = planning.parse(change, lambda path: [], "default")
    answer = planning.what_if(
        planning.Cluster(dump.gathered, Gates()), [parsed], SystemClock().now(), Settings()
    )
    print(f"what if: {change}?")
    print("  " + planning.telling.text(answer).replace("\n", "\n  "))
    return answer


async def drain(here: TestCluster, name: str) -> None:
    closing = here.client().resource("", "v1", "nodes", namespaced=False)
    await closing.patch(name, {"spec": {"unschedulable": True}})
    pods = here.client().resource("", "v1", "pods")
    for one in (await pods.list("default")).objects:
        if one.fields["spec"].get("nodeName") == name:
            await pods.evict(one.name, "default")


@contextlib.asynccontextmanager
async def scaling(here: TestCluster) -> AsyncIterator[None]:
    """The autoscaler at work, in a hurry."""
    client, clock, rng = here.client(identities.AUTOSCALER), SystemClock(), random.Random()
    provider = autoscaler.HollowProvider(client, lambda name: here.client(identities.node(name)))
    options = autoscaler.Options(
        autoscaler.read_groups(GROUPS),
        autoscaler.Settings(unneeded_s=0.5, after_growth_s=1.0),
        pace=autoscaler.Pace(pause_s=0.1, period_s=0.5),
    )
    async with Informers(client, rng) as informers:
        metrics = Metrics()
        ids, telemetry = RandomIds(rng), Telemetry(metrics, clock)
        work = autoscaler.Dependencies(client, informers, provider, clock, ids, metrics, telemetry, Gates())
        working = asyncio.ensure_future(autoscaler.run(work, options))
        try:
            yield
        finally:
            working.cancel()
            await asyncio.wait([working])


async def offer(here: TestCluster) -> None:
    """A device class and claim templates, as an administrator would."""
    made = fleet("gpu", 1)
    for plural, objects in (("deviceclasses", made.classes), ("resourceclaimtemplates", made.templates)):
        offering = here.client().resource(
            "resource.k8s.io", "v1", plural, namespaced=plural != "deviceclasses"
        )
        for one in objects:
            await offering.create(one, one["metadata"].get("namespace", ""))


def deployment(replicas: int) -> Fields:
    labels = {"app": "train"}
    spec = {
        "containers": [{"name": "main", "image": "busybox", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "train"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


# -- what is looked at ----------------------------------------------------------------------------


async def pods(here: TestCluster) -> list[Any]:
    return list((await here.client().resource("", "v1", "pods").list("default")).objects)


async def waiting(here: TestCluster, count: int) -> bool:
    found = await pods(here)
    return len(found) == count and not any(one.fields["spec"].get("nodeName") for one in found)


async def running(here: TestCluster, count: int) -> bool:
    phases = [str(one.fields["status"].get("phase")) for one in await pods(here)]
    return phases.count("Running") == count


async def nodes(here: TestCluster) -> list[str]:
    listed = await here.client().resource("", "v1", "nodes", namespaced=False).list()
    return sorted(node.name for node in listed.objects)


async def left(here: TestCluster, names: list[str]) -> bool:
    return await nodes(here) == names


async def until(question: Callable[[], Awaitable[bool]], words: str) -> None:
    async with asyncio.timeout(LONGEST_S):
        while not await question():  # noqa: ASYNC110 -- the API is asked, as a person would
            await asyncio.sleep(0.1)
    print(words)


if __name__ == "__main__":
    sys.exit(main())
