"""A whole cluster in one process: every part with its own name, one end for all."""

import asyncio
from typing import Any

import pytest

from allot import hollow
from allot.apiserver import ApiServer, ServingOptions, identities
from allot.cluster import Cluster, ClusterOptions, cluster
from allot.fleet import fleet

NS = "default"
FAST = hollow.Stages(start_s=0.01, run_s=0.1, stop_s=0.01)


def options(tmp_path, nodes: int = 3, name: str = "mixed") -> ClusterOptions:
    return ClusterOptions(ServingOptions(tmp_path / "data", "memory"), fleet(name, nodes), FAST)


def tell(tmp_path, story, **more: Any) -> None:
    async def whole() -> None:
        async with cluster(options(tmp_path, **more)) as running:
            await asyncio.wait_for(story(running), 30)

    asyncio.run(whole())


async def until(question) -> Any:
    loop = asyncio.get_running_loop()
    end = loop.time() + 20
    while not (answer := await question()):
        assert loop.time() < end, "it did not become so"
        await asyncio.sleep(0.02)
    return answer


def pod(name: str, template: str) -> dict[str, Any]:
    container = {"name": "main", "image": "app:1", "resources": {"claims": [{"name": "c"}]}}
    spec = {
        "restartPolicy": "Never",
        "resourceClaims": [{"name": "c", "resourceClaimTemplateName": template}],
        "containers": [container],
    }
    return {"metadata": {"name": name, "namespace": NS}, "spec": spec}


def test_pods_with_every_example_claim_run_and_give_their_devices_back(tmp_path):
    """From template to device and back, through every part."""

    async def story(running: Cluster) -> None:
        admin = running.client(identities.ADMIN)
        pods = admin.resource("", "v1", "pods")
        claims = admin.resource("resource.k8s.io", "v1", "resourceclaims")
        templates = admin.resource("resource.k8s.io", "v1", "resourceclaimtemplates")
        names = [one.name for one in (await templates.list(NS)).objects]
        assert len(names) == 7
        for name in names:
            await pods.create(pod(name, name))

        async def all_done() -> bool:
            found = (await pods.list(NS)).objects
            return {one.fields["status"]["phase"] for one in found} == {"Succeeded"}

        await until(all_done)

        async def all_back() -> bool:
            found = (await claims.list(NS)).objects
            return not any((one.fields.get("status") or {}).get("allocation") for one in found)

        await until(all_back)

    tell(tmp_path, story)


def test_nobody_in_it_is_above_the_roles(tmp_path, monkeypatch):
    """S5: every request, also in process, is made by somebody with a role."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    handle = ApiServer.handle

    async def noted(self, request, user):
        seen.add((user.name, user.groups))
        return await handle(self, request, user)

    monkeypatch.setattr(ApiServer, "handle", noted)

    async def story(running: Cluster) -> None:
        pods = running.client(identities.ADMIN).resource("", "v1", "pods")
        await pods.create(pod("p", "one-gpu"))

        async def done() -> bool:
            return (await pods.get("p", NS)).fields["status"]["phase"] == "Succeeded"

        await until(done)

    tell(tmp_path, story)
    names = {name for name, _ in seen}
    assert {identities.ADMIN_NAME, identities.SCHEDULER_NAME, identities.HOLLOW_NODES_NAME} <= names
    assert {"system:node:gpu-0", "system:serviceaccount:kube-system:resource-claim-controller"} <= names
    assert not any(identities.MASTERS in groups for _, groups in seen)


def test_when_the_block_ends_nothing_goes_on(tmp_path):
    async def whole() -> None:
        async with cluster(options(tmp_path)):
            pass
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left

    asyncio.run(whole())


def test_a_part_that_fails_ends_it_loudly(tmp_path, monkeypatch):
    async def fails(*unused: Any, ready: Any, **more: Any) -> None:
        ready()
        raise RuntimeError("a bug")

    monkeypatch.setattr(hollow, "run", fails)

    async def whole() -> None:
        async with cluster(options(tmp_path)):
            await asyncio.sleep(30)

    with pytest.raises(BaseExceptionGroup) as raised:
        asyncio.run(whole())
    assert raised.group_contains(RuntimeError, match="a bug")


def test_a_cluster_without_nodes_is_a_cluster(tmp_path):
    async def story(running: Cluster) -> None:
        nodes = running.client(identities.ADMIN).resource("", "v1", "nodes", namespaced=False)
        assert not (await nodes.list()).objects

    tell(tmp_path, story, nodes=0)
