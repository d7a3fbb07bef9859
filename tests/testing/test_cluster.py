"""A whole cluster beside a test."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from allot.api import errors
from allot.client import Client, HttpsTransport, kubeconfig
from allot.driver import Device, Driver, Edits, Pool
from allot.fleet import UnknownFleet
from allot.testing import cluster
from components import binary

NS = "default"


async def until_phase(client, name, phase):
    pods = client.resource("", "v1", "pods")
    async with asyncio.timeout(60):
        while True:
            found = await pods.get(name, NS)
            if (found.fields.get("status") or {}).get("phase") == phase:
                return found
            await asyncio.sleep(0.05)


def pod(node, claim_template="", script="env"):
    container = {"name": "main", "image": "none", "command": ["sh", "-c", script]}
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "restartPolicy": "Never",
        "containers": [container],
    }
    if claim_template:
        container["resources"] = {"claims": [{"name": "gpu"}]}
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": claim_template}]
    return {"metadata": {"name": "p", "namespace": NS}, "spec": spec}


@pytest.mark.allot_cluster(fleet="edge", nodes=2)
def test_pods_run_on_hollow_nodes_while_the_test_waits_for_kubectl(allot_cluster):
    """Nobody runs the cluster but itself: kubectl blocks this thread."""
    kubectl = [str(binary("kubectl")), f"--kubeconfig={allot_cluster.kubeconfig}"]
    made = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: main, image: none}]}\n"
    subprocess.run([*kubectl, "apply", "-f", "-"], input=made, text=True, check=True)
    subprocess.run([*kubectl, "wait", "pod/p", "--for=condition=Ready", "--timeout=60s"], check=True)
    listed = subprocess.run(
        [*kubectl, "get", "nodes", "-o", "name"], capture_output=True, text=True, check=True
    )
    assert len(listed.stdout.split()) == 2
    assert allot_cluster.url.startswith("https://127.0.0.1:")
    assert allot_cluster.agents == ()


@pytest.mark.allot_cluster(fleet="edge", nodes=0, agents=1)
def test_a_pod_on_an_agent_gets_a_device_of_the_fleet(allot_cluster):
    (node,) = allot_cluster.agents
    client = allot_cluster.client()

    async def story():
        await client.resource("", "v1", "pods").create(pod(node.name, "one-gpu"))
        await until_phase(client, "p", "Succeeded")
        return (await client.send("GET", f"/api/v1/namespaces/{NS}/pods/p/log", {})).body.decode()

    assert f"=gpu.example.com/{node.name}/" in allot_cluster.run(story(), 100)


def pools(node):
    return [Pool(node.name, [Device("mine-0")])]


def prepare(claim):
    return {one: Edits(env=(f"MINE={one.device}",)) for one in claim.devices}


@pytest.mark.allot_cluster("plain", nodes=0, agents=1)
def test_a_driver_of_the_test_s_own_serves_pods_while_its_block_runs(allot_cluster):
    (node,) = allot_cluster.agents
    client = allot_cluster.client()
    slices = client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
    template = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "mine"}}]}}}
    classes = client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
    templates = client.resource("resource.k8s.io", "v1", "resourceclaimtemplates")

    async def story():
        selectors = [{"cel": {"expression": 'device.driver == "mine.example.com"'}}]
        await classes.create({"metadata": {"name": "mine"}, "spec": {"selectors": selectors}})
        await templates.create({"metadata": {"name": "mine", "namespace": NS}, "spec": template})
        await client.resource("", "v1", "pods").create(pod(node.name, "mine", "echo got $MINE"))
        await until_phase(client, "p", "Succeeded")
        return (await client.send("GET", f"/api/v1/namespaces/{NS}/pods/p/log", {})).body.decode()

    with allot_cluster.driver(Driver("mine.example.com", pools, prepare), node) as running:
        assert allot_cluster.run(story(), 100) == "got mine-0\n"
        assert running.registration.registered.is_set()
    listed = allot_cluster.run(slices.list())
    assert [one.fields["spec"]["driver"] for one in listed.objects] == ["mine.example.com"], (
        "as drivers leave it"
    )


def test_credentials_are_those_of_the_users_they_name():
    with cluster("plain", 1) as running:
        access = kubeconfig.load(running.kubeconfig_of("system:node:nobody"))

        async def story():
            client = Client(HttpsTransport(access))
            try:
                with pytest.raises(errors.Forbidden, match='"system:node:nobody"'):
                    await client.resource("", "v1", "secrets").list()
            finally:
                await client.close()

        running.run(story(), 60)


def test_when_the_block_ends_nothing_goes_on_and_another_may_begin():
    """Also its containers: they are processes of this machine."""
    for _ in range(2):
        with cluster("plain", 0, agents=1) as running:
            (node,) = running.agents
            client = running.client()

            async def story(client=client, node=node):
                await client.resource("", "v1", "pods").create(pod(node.name, script="exec sleep 987"))
                found = await until_phase(client, "p", "Running")
                return node.root.parent / "containers" / found.uid / "main" / "0" / "started.json"

            pid = json.loads(running.run(story(), 100).read_text())["pid"]
            assert Path(f"/proc/{pid}").exists()
        assert not Path(f"/proc/{pid}").exists() or "sleep" not in Path(f"/proc/{pid}/cmdline").read_text()
        assert not node.root.exists()


def test_a_fleet_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(UnknownFleet, match="mixed"), cluster("none-such"):
        pass


def test_what_a_story_raises_reaches_the_test():
    with cluster("plain", 0) as running:

        async def story():
            raise LookupError("as the story says")

        with pytest.raises(LookupError, match="as the story says"):
            running.run(story())


def test_pytest_imports_nothing_of_a_cluster_before_a_test_asks_for_one():
    """The plugin is loaded by every run of pytest where Allot is installed."""
    code = "import sys, allot.testing.plugin; print([n for n in sys.modules if n.startswith('allot.')])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "allot.cluster" not in printed and "allot.apiserver" not in printed
