"""Pods that nobody will end, over the real server."""

from dataclasses import replace
from typing import Any

from allot.api import Object, encode
from allot.controllers import podgc
from allot.controllers.podgc.loop import Collecting
from allot.controllers.podgc.plan import Fate, fate, surplus
from controllers.world import NS, World, tell


def _quickly(world):
    collecting = Collecting(world, quarantine_s=0.3, finished_max=3)
    return [collecting.loop, collecting.trimming]


QUICK = replace(podgc.CONTROLLER, make=_quickly)
SPEC = {"containers": [{"name": "main", "image": "app:1"}]}


def pod(name: str, node: str = "", **metadata: Any) -> dict[str, Any]:
    spec = {**SPEC, "nodeName": node} if node else SPEC
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NS, **metadata},
        "spec": spec,
    }


def nodes(here: World):
    return here.client.resource("", "v1", "nodes", namespaced=False)


async def node(here: World, name: str) -> None:
    await nodes(here).create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})


async def gone(here: World, name: str) -> None:
    async def so() -> bool:
        return await here.find(here.pods, name) is None

    await here.until(so)


def test_pods_go_after_their_node_and_others_stay():
    async def story(here: World) -> None:
        await node(here, "n1")
        await node(here, "n2")
        await here.pods.create(pod("a", "n1"))
        await here.pods.create(pod("b", "n2"))
        await here.pods.create(pod("c"))
        await nodes(here).delete("n1")
        await gone(here, "a")
        assert await here.find(here.pods, "b") and await here.find(here.pods, "c")
        ended = 'pod_gc_collector_force_delete_pods_total{namespace="default",reason="orphaned"} 1'
        assert ended in here.metrics.text()

    tell(story, QUICK)


def test_a_lost_pod_is_told_to_have_failed():
    """Whoever waits for it learns why it ended."""

    async def story(here: World) -> None:
        await here.pods.create(pod("a", "nowhere", finalizers=["example.com/hold"]))

        async def reported() -> Any:
            live = await here.pods.get("a", NS)
            return live if live.metadata.deletion_timestamp else None

        live = await here.until(reported)
        assert live.fields["status"]["phase"] == "Failed"
        (condition,) = [c for c in live.fields["status"]["conditions"] if c["type"] == "DisruptionTarget"]
        assert condition["reason"] == "DeletionByPodGC"

    tell(story, QUICK)


def test_a_node_that_comes_back_in_time_keeps_its_pods():
    async def story(here: World) -> None:
        await here.pods.create(pod("a", "n1"))
        await here.quiet()
        await node(here, "n1")
        await here.quiet()
        await here.quiet()
        assert await here.find(here.pods, "a")

    tell(story, QUICK)


def test_only_so_many_finished_pods_are_kept():
    async def story(here: World) -> None:
        for n in range(5):
            await here.pods.create(pod(f"p{n}"))
            await here.pods.patch(f"p{n}", {"status": {"phase": "Succeeded"}}, NS, subresource="status")

        async def three() -> bool:
            return len((await here.pods.list(NS)).objects) == 3

        await here.until(three)
        await here.quiet()
        assert 'reason="terminated"} 2' in here.metrics.text()

    tell(story, QUICK)


def test_evicted_and_old_pods_go_first():
    def finished(name: str, at: int, reason: str = "") -> Object:
        metadata = {"name": name, "creationTimestamp": f"2026-01-0{at}T00:00:00Z"}
        return Object(encode({"metadata": metadata, "status": {"phase": "Failed", "reason": reason}}))

    pods = [finished("old", 1), finished("new", 3), finished("evicted", 2, "Evicted")]
    assert [one.name for one in surplus(pods, 1)] == ["evicted", "old"]
    assert surplus(pods, 3) == []


def test_a_pod_that_ends_on_a_node_out_of_service_will_not_be_ended_there():
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    out = Object(encode({"metadata": {"name": "n1"}, "spec": {"taints": [taint]}}))
    leaving = Object(encode({"metadata": {"deletionTimestamp": "t"}, "spec": {"nodeName": "n1"}}))
    staying = Object(encode({"metadata": {}, "spec": {"nodeName": "n1"}}))
    assert fate(leaving, out) is Fate.SHUT_DOWN
    assert fate(staying, out) is Fate.NONE
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    back = Object(encode({"metadata": {"name": "n1"}, "spec": {"taints": [taint]}, "status": ready}))
    assert fate(leaving, back) is Fate.NONE
