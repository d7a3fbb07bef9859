"""Agents beside hollow nodes: what `allot up --agents` runs."""

import asyncio
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from allot.api import Gates, errors, numeric
from allot.apiserver import Options, ServingOptions
from allot.client import Client, HttpsTransport, kubeconfig
from allot.cluster import ClusterOptions, cluster, way_to_nodes
from allot.fleet import fleet
from allot.nodeagent import ProcessRuntime
from allot.wire import capacity
from e2e.process import allot
from nodeagent.plugins import V1, until
from nodeagent.test_capacity_loop import Telling

NS = "default"


def options(folder: Path, store: str = "memory") -> ClusterOptions:
    serving = ServingOptions(folder / "data", store, way_to_nodes=way_to_nodes)
    return ClusterOptions(serving, fleet("edge", 1), agents=2)


def pod(name: str, script: str, policy: str = "Never", node: str = "agent-1") -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "none",
        "command": ["sh", "-c", script],
        "resources": {"claims": [{"name": "gpu"}]},
    }
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "restartPolicy": policy,
        "containers": [container],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
    }
    return {"metadata": {"name": name, "namespace": NS}, "spec": spec}


def tell(story: Callable[[Path], Any]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="up"))  # short: sockets lie below it
    try:
        asyncio.run(asyncio.wait_for(story(folder), 120))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def phase_is(client: Client, name: str, phase: str) -> None:
    async def is_so() -> bool:
        found = (await client.resource("", "v1", "pods").get(name, NS)).fields
        return bool(found["status"].get("phase") == phase)

    await until(is_so)


def test_a_pod_on_an_agent_gets_a_device_of_the_fleet():
    async def story(folder: Path) -> None:
        async with cluster(options(folder)) as running:
            client = Client(HttpsTransport(kubeconfig.load(running.server.kubeconfig)))
            pods = client.resource("", "v1", "pods")
            await pods.create(pod("p", "env"))
            await phase_is(client, "p", "Succeeded")
            answer = await client.send("GET", f"/api/v1/namespaces/{NS}/pods/p/log", {})
            (told,) = [line for line in answer.body.decode().splitlines() if line.startswith("DEVICE_")]
            assert "=gpu.example.com/agent-1/" in told
            await client.close()

    tell(story)


def test_a_pod_on_an_agent_gets_devices_that_the_fleet_has_counted():
    """With the manifest of a device plugin's user: a number of `example.com/gpu`."""

    async def story(folder: Path) -> None:
        serving = ServingOptions(folder / "data", "memory", way_to_nodes=way_to_nodes)
        async with cluster(ClusterOptions(serving, fleet("plugin", 0), agents=1)) as running:
            client = Client(HttpsTransport(kubeconfig.load(running.server.kubeconfig)))
            wanted = pod("p", "env", node="agent-0")
            wanted["spec"].pop("resourceClaims")
            wanted["spec"]["containers"][0]["resources"] = {"limits": {"example.com/gpu": "2"}}
            await client.resource("", "v1", "pods").create(wanted)
            await phase_is(client, "p", "Succeeded")
            answer = await client.send("GET", f"/api/v1/namespaces/{NS}/pods/p/log", {})
            told = [line for line in answer.body.decode().splitlines() if line.startswith("DEVICE_")]
            assert sorted(told) == [
                "DEVICE_GPU_0=example.com/gpu/gpu-0",
                "DEVICE_GPU_1=example.com/gpu/gpu-1",
            ]
            await client.close()

    tell(story)


def test_agents_of_a_process_listen_to_the_server_once_for_all_of_them():
    async def story(folder: Path) -> None:
        served = []
        for count in (1, 4):
            where = folder / str(count)
            serving = ServingOptions(where / "data", "memory", way_to_nodes=way_to_nodes)
            async with cluster(ClusterOptions(serving, fleet("plain", 1), agents=count)) as running:
                (line,) = re.findall(
                    r"^apiserver_longrunning_requests .*$", running.server.metrics.text(), re.M
                )
                served.append(line)
                client = Client(HttpsTransport(kubeconfig.load(running.server.kubeconfig)))
                for number in range(count):
                    new = pod(f"p{number}", "true", node=f"agent-{number}")
                    del new["spec"]["resourceClaims"], new["spec"]["containers"][0]["resources"]
                    await client.resource("", "v1", "pods").create(new)
                for number in range(count):
                    await phase_is(client, f"p{number}", "Succeeded")
                await client.close()
        assert served[0] == served[1]

    tell(story)


def test_what_runs_on_agents_ends_with_the_cluster_and_begins_again_with_it():
    async def story(folder: Path) -> None:
        marks = folder / "marks"
        for times in (1, 2):
            async with cluster(options(folder, "sqlite")) as running:
                client = Client(HttpsTransport(kubeconfig.load(running.server.kubeconfig)))
                pods = client.resource("", "v1", "pods")
                try:
                    await pods.create(pod("p", f"echo began >> {marks}; exec sleep 300", "Always"))
                except errors.AlreadyExists:
                    assert times == 2
                await until(lambda times=times: marks.exists() and marks.read_text() == "began\n" * times)
                await client.close()
            async with ProcessRuntime(folder / "data" / "agents" / "containers").attached() as runtime:
                assert not any(one.runs for one in await runtime.attempts())

    tell(story)


def test_a_data_directory_that_is_too_deep_for_sockets_is_named_in_one_line(tmp_path):
    deep = tmp_path / ("x" * 90)
    deep.mkdir()
    failed = allot("up", "--data-dir", str(deep / "data"), "--port", "0", "--nodes", "0", "--agents", "1")
    assert failed.returncode == 1
    (said,) = failed.stderr.splitlines()
    assert said.startswith(
        f"allot up: the path of the socket {deep}/data/agents/0/pod-resources/kubelet.sock has"
    )


def test_agents_heed_the_gates_of_their_cluster():
    """4381-PUB-24, 4381-GATE-10: a driver that would tell what it has is not asked."""

    async def story(folder: Path) -> None:
        gates = Options(gates=Gates({numeric.limits.GATE: False}))
        serving = ServingOptions(folder / "data", "memory", server=gates, way_to_nodes=way_to_nodes)
        made = ClusterOptions(serving, fleet("edge", 1), agents=1)
        async with cluster(made) as running:
            (node,) = running.agents
            driver = Telling(node.root, driver="frob.example.com", versions=(V1, capacity.VERSION), has=[])
            try:
                await driver.start()
                await until(lambda: bool(driver.statuses))
                await asyncio.sleep(0.5)
                assert driver.asked == 0
            finally:
                await driver.stop()

    tell(story)
