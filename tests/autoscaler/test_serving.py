"""Hollow nodes over the protocol for providers: what is refused and what is heard, on a real server."""

import asyncio
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from allot.apiserver import identities
from allot.autoscaler import HollowProvider, RemoteProvider, Serving, read_groups
from allot.autoscaler.groups import LABEL, Configuration, GroupEntry
from allot.base import SystemClock
from allot.testing import TestCluster, cluster
from allot.wire import CallFailed, Channel, Unary, cloudprovider, remote

GROUPS = read_groups(
    "groups: [{name: gpus, price: 3, min: 1, max: 3, fleet: gpu}, {name: small, fleet: plain}]"
)


@pytest.fixture(scope="module")
def here() -> Iterator[TestCluster]:
    with cluster(fleet="plain", nodes=1) as running:
        yield running


@asynccontextmanager
async def serving(here: TestCluster, folder: Path, **more: Any):
    client = here.client(identities.HOLLOW_NODES)
    hollow = HollowProvider(client, lambda name: here.client(identities.node(name)))
    served = Serving(client, hollow, GROUPS.groups, **more)
    at = remote.Endpoint(address=f"unix:{folder}/p.sock")
    server, _ = await remote.serve(at, served.handlers())
    working, channel = asyncio.ensure_future(served.run()), remote.dial(at)
    try:
        yield channel
    finally:
        working.cancel()
        await channel.close()
        await server.close()


async def ask(channel: Channel, method: Unary[Any, Any], *fields: Any) -> Any:
    return await channel.call(method, method.asked(*fields), timeout_s=30)


async def refused(channel: Channel, method: Unary[Any, Any], *fields: Any) -> str:
    with pytest.raises(CallFailed) as failed:
        await ask(channel, method, *fields)
    return f"{failed.value.code.name} {failed.value.reason}"


def test_a_group_grows_and_shrinks_within_its_bounds(here: TestCluster, tmp_path: Path):
    async def story() -> None:
        nodes = here.client().resource("", "v1", "nodes", namespaced=False)

        async def names() -> list[str]:
            return sorted(one.name for one in (await nodes.list(label_selector=LABEL)).objects)

        async def until(wanted: list[str]) -> None:
            async with asyncio.timeout(60):
                while await names() != wanted:  # noqa: ASYNC110 -- the API is asked
                    await asyncio.sleep(0.05)

        async with serving(here, tmp_path) as channel:
            told = (await ask(channel, cloudprovider.GROUPS)).node_groups
            assert [(one.id, one.min_size, one.max_size) for one in told] == [
                ("gpus", 1, 3),
                ("small", 0, 10_000),
            ]
            await ask(channel, cloudprovider.INCREASE, 2, "gpus")
            assert (await ask(channel, cloudprovider.TARGET_SIZE, "gpus")).target_size == 2
            await until(["gpus-0", "gpus-1"])
            assert "OUT_OF_RANGE" in await refused(channel, cloudprovider.INCREASE, 2, "gpus")
            assert "INVALID_ARGUMENT" in await refused(channel, cloudprovider.INCREASE, -1, "gpus")
            assert "NOT_FOUND" in await refused(channel, cloudprovider.INCREASE, 1, "other")
            assert "INVALID_ARGUMENT" in await refused(channel, cloudprovider.DECREASE, 1, "gpus")
            assert "2 nodes" in await refused(channel, cloudprovider.DECREASE, -1, "gpus")
            assert "UNIMPLEMENTED" in await refused(channel, cloudprovider.POD_PRICE)
            listed = (await ask(channel, cloudprovider.NODES, "gpus")).instances
            assert [one.id for one in listed] == ["hollow://gpus-0", "hollow://gpus-1"]
            whose = cloudprovider.ExternalGrpcNode("hollow://gpus-1", "gpus-1")
            assert (await ask(channel, cloudprovider.GROUP_FOR_NODE, whose)).node_group.id == "gpus"
            stranger = cloudprovider.ExternalGrpcNode("hollow://plain-0", "plain-0")
            assert (await ask(channel, cloudprovider.GROUP_FOR_NODE, stranger)).node_group.id == ""
            both = (whose, stranger)
            assert "plain-0" in await refused(channel, cloudprovider.DELETE_NODES, both, "gpus")
            assert await names() == ["gpus-0", "gpus-1"]  # all of them or none
            await ask(channel, cloudprovider.DELETE_NODES, (whose,), "gpus")
            await until(["gpus-0"])
            last = cloudprovider.ExternalGrpcNode("hollow://gpus-0", "gpus-0")
            assert "1 at least" in await refused(channel, cloudprovider.DELETE_NODES, (last,), "gpus")
            assert (await ask(channel, cloudprovider.TARGET_SIZE, "gpus")).target_size == 1
        async with serving(here, tmp_path, delay_s=60) as channel:  # begun anew, and slow
            assert (await ask(channel, cloudprovider.TARGET_SIZE, "gpus")).target_size == 1
            await ask(channel, cloudprovider.INCREASE, 2, "gpus")
            states = [
                one.status.instance_state
                for one in (await ask(channel, cloudprovider.NODES, "gpus")).instances
            ]
            assert [state.name for state in states] == ["RUNNING", "CREATING", "CREATING"]
            await ask(channel, cloudprovider.DECREASE, -2, "gpus")
            assert (await ask(channel, cloudprovider.TARGET_SIZE, "gpus")).target_size == 1
        await nodes.delete("gpus-0")

    here.run(story())


@pytest.mark.parametrize("tells", [True, False])
def test_our_own_client_hears_templates_with_devices_or_without_and_prices(
    here: TestCluster, tmp_path: Path, tells: bool
):
    async def story() -> Any:
        async with serving(here, tmp_path, tells_devices=tells) as channel:
            provider = RemoteProvider(channel, Configuration(), SystemClock())
            survey = await provider.survey({})
            await provider.resize(GroupEntry(name="small"), 0)
            return survey.offers

    gpus, small = here.run(story())
    devices = [one["name"] for each in gpus.template.slices for one in each["spec"]["devices"]]
    assert len(devices) == (8 if tells else 0) and not small.template.slices
    assert (gpus.entry.price, small.entry.price, gpus.closed) == (3.0, 1.0, "")
    assert gpus.template.node["status"]["allocatable"]["cpu"] == "190"
