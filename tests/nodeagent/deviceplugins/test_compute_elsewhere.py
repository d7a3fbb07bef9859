"""Compute resources on a Kubernetes that does not know them (14-OPEN-25).

The server plays one: with the gate off it drops `status.computeResources` and records, refuses bare class
names and serves nothing of the group. An administrator applies examples/real-kubernetes, and a scheduler
of ours runs beside it with the rights that those give.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from allot.api import Gates, compute, errors
from allot.apiserver import identities
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Patch
from allot.informers import Informers, Telemetry
from allot.scheduler import Dependencies, Settings, run

from ..plugins import until
from ..world import NODE, NS, World, tell
from .plugin import GPU
from .test_compute_agents import K80, V100, four, named
from .test_device_plugins import WAIT, until_counted

EXAMPLES = Path(__file__).parents[3] / "examples" / "real-kubernetes"
PLAIN = {compute.limits.GATE: False}
GOLD = "resourceclass.compute.allot.dev/gpu-gold"
SCHEDULER = "allot-scheduler"
PLURALS = {
    "CustomResourceDefinition": "customresourcedefinitions",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ServiceAccount": "serviceaccounts",
}


def lists(here: World) -> Any:
    limits = compute.limits
    return here.client.resource(limits.GROUP, limits.VERSION, limits.LISTS, namespaced=False)


def classes(here: World) -> Any:
    return here.client.resource("compute.allot.dev", "v1alpha1", "resourceclasses", namespaced=False)


async def apply(here: World, *files: str) -> None:
    """As an administrator does, strictly checked."""
    for file in files:
        for fields in yaml.safe_load_all((EXAMPLES / file).read_text()):
            group, _, version = fields["apiVersion"].rpartition("/")
            namespace = fields["metadata"].get("namespace", "")
            kind = here.client.resource(group, version, PLURALS[fields["kind"]], namespaced=bool(namespace))
            await kind.patch(
                fields["metadata"]["name"],
                fields,
                namespace,
                type=Patch.APPLY,
                field_manager="kubectl",
                field_validation="Strict",
                force=True,
            )

    async def is_served() -> bool:
        try:
            await asyncio.gather(lists(here).list(), classes(here).list())
        except errors.NotFound:
            return False
        return True

    await until(is_served)


async def listed(here: World) -> dict[str, tuple[list[str], list[str]]]:
    try:
        found = (await lists(here).get(NODE)).fields
    except errors.NotFound:
        return {}
    return {
        one["name"]: (one.get("devices", []), one.get("allocatableDevices", []))
        for one in found.get("computeResources") or ()
    }


async def until_listed(here: World, *wanted: tuple[dict[str, str], str, str]) -> None:
    said: list[Any] = []
    meant = {named(like): ([*devices], [*healthy]) for like, devices, healthy in wanted}

    async def is_so() -> bool:
        said[:] = [await listed(here)]
        return bool(said == [meant])

    await until(is_so, said)


@asynccontextmanager
async def scheduler(here: World) -> AsyncIterator[None]:
    """With the manifests' rights, and gates of its own."""
    client = here.cluster.client(identities.service_account("kube-system", SCHEDULER))
    clock, metrics = SystemClock(), Metrics()
    async with Informers(client, random.Random(5)) as informers:
        telemetry = Telemetry(metrics, clock)
        parts = Dependencies(client, informers, clock, RandomIds(), metrics, telemetry, Gates())
        task = asyncio.create_task(run(parts, Settings(names=(SCHEDULER,))))
        try:
            yield
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.wait((task,))


def test_a_pod_gets_devices_of_a_class_on_a_server_that_knows_none():
    """14-OPEN-25, 14-BIND-12: listed beside the Node, placed, recorded in an annotation, given."""

    async def play(here: World) -> None:
        await apply(here, "rbac.yaml", "compute.yaml")
        need = {"key": "model", "operator": "In", "values": ["v100"]}
        spec = {"resourceName": GPU, "resourceSelector": [{"matchExpressions": [need]}]}
        await classes(here).create({"metadata": {"name": "gpu-gold"}, "spec": spec})
        async with scheduler(here), here.agent(exports_compute=True), four(here) as gpu:
            await until_listed(here, (K80, "ab", "ab"), (V100, "cd", "cd"))
            node = await here.nodes.get(NODE)
            status = node.fields["status"]
            assert "computeResources" not in status, "the server has no such field"
            assert GPU not in status["capacity"].keys() | status["allocatable"].keys()
            first = await lists(here).get(NODE)
            owner = {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": node.uid}
            assert first.fields["metadata"]["ownerReferences"] == [owner]

            container = {"name": "main", "image": "none", "command": ["sh", "-c", f"echo $GPUS; {WAIT}"]}
            for name in ("p", "q", "r"):
                asks = {**container, "resources": {"limits": {GOLD: "1"}}}
                await here.pod("", name, containers=[asks], schedulerName=SCHEDULER, nodeSelector={})
            await asyncio.gather(*(here.until_phase("Running", name) for name in ("p", "q")))
            given = {(await here.first_words(name)).strip() for name in ("p", "q")}
            assert given == {"c", "d"}
            for name in ("p", "q"):
                fields = (await here.pods.get(name, NS)).fields
                assert named(V100) in fields["metadata"]["annotations"][compute.limits.RECORD_ANNOTATION]
                assert "allocatedComputeResources" not in fields["spec"]["containers"][0]

            async def waits() -> bool:
                told = (await here.status("r")).get("conditions") or ()
                return any("gpu-gold" in one.get("message", "") for one in told)

            await until(waits)
            assert (await lists(here).get(NODE)).resource_version == first.resource_version
            await here.pods.delete("p", NS, grace_period_s=1)
            await here.until_phase("Running", "r")
            gpu.devices["c"] = False
            await until_listed(here, (K80, "ab", "ab"), (V100, "cd", "d"))

    tell(play, gates=PLAIN)


def test_the_list_is_restored_and_follows_agent_and_node():
    """14-OPEN-25: deleted by somebody, left by an earlier agent, changed with the properties, gone with its
    Node."""

    async def play(here: World) -> None:
        await apply(here, "compute.yaml")
        async with here.agent(exports_compute=True), four(here) as gpu:
            await until_listed(here, (K80, "ab", "ab"), (V100, "cd", "cd"))
            await lists(here).delete(NODE)
            await until_listed(here, (K80, "ab", "ab"), (V100, "cd", "cd"))
            await lists(here).patch(NODE, {"computeResources": []})
            await until_listed(here, (K80, "ab", "ab"), (V100, "cd", "cd"))
            await lists(here).patch(NODE, {"metadata": {"ownerReferences": None}})

            async def is_owned() -> bool:
                return bool((await lists(here).get(NODE)).fields["metadata"].get("ownerReferences"))

            await until(is_owned)
            gpu.properties = dict.fromkeys("abcd", K80)
            await until_listed(here, (K80, "abcd", "abcd"))
        async with here.agent(exports_compute=True):
            await until_listed(here, ({}, "", ""))  # nothing can be had before its plugins are heard (COMP4)
        async with here.agent(), four(here):
            await until_counted(here, 4, 4)

            async def is_gone() -> bool:
                return await listed(here) == {}

            await until(is_gone)
        async with here.agent(exports_compute=True), four(here):
            await until_listed(here, (K80, "ab", "ab"), (V100, "cd", "cd"))
        await here.nodes.delete(NODE)

        async def is_collected() -> bool:
            return [one.name for one in (await lists(here).list()).objects] == []

        await until(is_collected)

    tell(play, gates=PLAIN)


def test_an_agent_that_remembers_nothing_takes_back_what_is_listed():
    """Its machine was set up anew, and no plugin is there."""

    async def play(here: World) -> None:
        await apply(here, "compute.yaml")
        async with here.agent(exports_compute=True), four(here):
            await until_listed(here, (K80, "ab", "ab"), (V100, "cd", "cd"))
        async with here.agent(exports_compute=True, root=here.folder / "new"):

            async def is_gone() -> bool:
                return await listed(here) == {}

            await until(is_gone)

    tell(play, gates=PLAIN)


def test_a_node_lists_its_own_compute_resources_and_no_others():
    """14-NODE-14, on a server that knows nothing of it: the policy of the manifests."""

    async def play(here: World) -> None:
        await apply(here, "compute.yaml")
        async with here.agent():
            pass
        node = here.cluster.node_client(NODE).resource(
            "compute.allot.dev", "v1alpha1", compute.limits.LISTS, namespaced=False
        )

        async def is_kept_off() -> bool:
            try:
                await node.create({"metadata": {"name": "other"}, "computeResources": []}, dry_run=True)
            except errors.Forbidden:
                return True
            except errors.Invalid as refused:
                return "its own" in str(refused)
            return False

        await until(is_kept_off)
        await node.create({"metadata": {"name": NODE}, "computeResources": []})
        await node.delete(NODE)

    tell(play, gates=PLAIN)


@pytest.mark.parametrize("taken", ["nodecomputeresources", "rights"])
def test_where_nothing_can_be_listed_devices_are_counted(taken, caplog):
    async def play(here: World) -> None:
        await apply(here, "compute.yaml")
        if taken == "rights":
            bindings = here.client.resource(
                "rbac.authorization.k8s.io", "v1", "clusterrolebindings", namespaced=False
            )
            await bindings.delete("allot:node-compute-resources")
        else:
            definitions = here.client.resource(
                "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
            )
            await definitions.delete("nodecomputeresources.compute.allot.dev")

            async def is_gone() -> bool:
                try:
                    await lists(here).list()
                except errors.NotFound:
                    return True
                return False

            await until(is_gone)
        async with here.agent(exports_compute=True), four(here):
            await until_counted(here, 4, 4)
        warned = [one for one in caplog.messages if "devices are counted" in one]
        assert len(warned) == 1, "said once, and not at every look"

    tell(play, gates=PLAIN)
