"""The use stories of KEP-14 from YAML: a whole cluster, real agents, device plugins that are processes."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from allot.api import compute, errors

from ..plugins import until
from ..world import NODE, NS, World, tell

EXAMPLES = Path(__file__).parents[3] / "examples" / "compute"
GPU, NIC = "nvidia.com/gpu", "sfc.com/nic"


@asynccontextmanager
async def plugin(root: Path, devices: Path, node: str) -> AsyncIterator[None]:
    """The example's program, as a process that has no credentials (14-PLUG-06)."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(EXAMPLES / "plugin.py"), str(devices), "--node", node, "--root", str(root), env={}
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def nodes(here: World, **files: tuple[str, ...]) -> AsyncIterator[dict[str, Path]]:
    """Nodes with compute resources, and what their plugins read, by node and file."""
    paths: dict[str, Path] = {}
    async with AsyncExitStack() as stack:
        for name, own in files.items():
            root = here.root if name == NODE else here.folder / name[:1]
            await stack.enter_async_context(here.agent(name, root=root, exports_compute=True))
            for file in own:
                path = paths[f"{name} {file}"] = here.folder / f"{name}-{file}"
                shutil.copy(EXAMPLES / file, path)
                await stack.enter_async_context(plugin(root, path, name))
        for name, own in files.items():
            wanted = {id for file in own for id in yaml.safe_load((EXAMPLES / file).read_text())["devices"]}
            await until_devices(here, name, wanted)
        yield paths


async def until_devices(here: World, node: str, wanted: set[str]) -> None:
    said: list[Any] = []

    async def is_so() -> bool:
        every = (await here.nodes.get(node)).fields["status"].get("computeResources") or ()
        said[:] = [{id for one in every for id in one.get("allocatableDevices") or ()}]
        return bool(said == [wanted])

    await until(is_so, said)


async def apply(here: World, file: str, **replaced: str) -> None:
    text = (EXAMPLES / file).read_text()
    for before, after in replaced.items():
        text = text.replace(before.replace("_", "-"), after)
    for document in yaml.safe_load_all(text):
        await create(here, document)


async def create(here: World, document: dict[str, Any]) -> None:
    group, _, version = document["apiVersion"].rpartition("/")
    plural = {"ResourceClass": "resourceclasses"}.get(document["kind"], f"{document['kind'].lower()}s")
    is_cluster = document["kind"] in ("ResourceClass", "Namespace")
    resource = here.client.resource(group, version, plural, namespaced=not is_cluster)
    namespace = "" if is_cluster else document["metadata"].get("namespace", NS)
    await resource.create(document, namespace)


def asking(name: str, namespace: str = NS, **limits: int) -> dict[str, Any]:
    amounts = {asked.replace("__", ".").replace("_", "-"): count for asked, count in limits.items()}
    container = {"name": "main", "image": "none", "resources": {"limits": amounts}}
    container["command"] = ["sh", "-c", "echo $MY_DEVICES; exec sleep 600"]
    spec = {"restartPolicy": "Never", "containers": [container], "terminationGracePeriodSeconds": 1}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


async def running(here: World, name: str) -> str:
    """The devices of a pod that runs, which its record names too."""
    await here.until_phase("Running", name)
    given = (await here.first_words(name)).strip()
    (container,) = (await here.pods.get(name, NS)).fields["spec"]["containers"]
    counts = [one["count"] for every in container["allocatedComputeResources"].values() for one in every]
    assert sum(counts) == len(given.split(","))
    return given


async def waiting(here: World, name: str) -> str:
    """Why a pod waits."""
    said: list[str] = []

    async def is_so() -> bool:
        found = [
            one.get("message", "")
            for one in (await here.status(name)).get("conditions") or ()
            if one["type"] == "PodScheduled" and one["status"] == "False"
        ]
        said[:] = found
        return bool(found)

    await until(is_so)
    return said[0]


def test_gpus_of_many_kinds_by_name_and_quota():
    """14-STORY-01, 14-STORY-04, 14-STORY-08, 14-PLUG-06, 14-PLUG-09: several types on a node, told apart by
    classes; a new type is added to a class, and pods do not change; a namespace gets what its quota says."""

    async def play(here: World) -> None:
        async with nodes(
            here, **{NODE: ("machine-with-old-gpus.yaml",), "new": ("machine-with-new-gpus.yaml",)}
        ):
            await apply(here, "classes.yaml")
            await apply(here, "pods.yaml")
            assert await running(here, "thrifty") == "k20-0,k80-0"
            assert await running(here, "linked") == "v100-1,v100-2"
            assert await running(here, "golden") in ("p40-0", "p100-0")
            await create(here, asking("second", gpu_gold=1))
            assert {await running(here, "golden"), await running(here, "second")} == {"p40-0", "p100-0"}
            await create(here, asking("third", gpu_gold=1))
            assert "gpu-gold" in await waiting(here, "third")
            classes = here.client.resource(
                compute.limits.GROUP, "v1alpha1", "resourceclasses", namespaced=False
            )
            grown = [
                {"matchExpressions": [{"key": "model", "operator": "In", "values": ["p40", "p100", "v100"]}]}
            ]
            await classes.patch("gpu-gold", {"spec": {"resourceSelector": grown}})
            assert await running(here, "third") == "v100-0"
            for namespace, gold in (("rich", 1), ("poor", 0)):
                await create(here, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
                quota = {
                    "metadata": {"name": "q", "namespace": namespace},
                    "spec": {"hard": {"gpu-gold": gold}},
                }
                await create(here, {"apiVersion": "v1", "kind": "ResourceQuota", **quota})
            await until_quota(here, "rich")
            await until_quota(here, "poor")
            await create(here, asking("first", "rich", gpu_gold=1))
            for namespace in ("rich", "poor"):
                with pytest.raises(errors.Forbidden, match="exceeded quota"):
                    await create(here, asking("more", namespace, gpu_gold=1))

    tell(play)


async def until_quota(here: World, namespace: str) -> None:
    quotas = here.client.resource("", "v1", "resourcequotas")

    async def is_so() -> bool:
        return bool((await quotas.get("q", namespace)).fields.get("status", {}).get("used"))

    await until(is_so)


def test_network_cards_and_functions_by_what_they_can():
    """14-STORY-02, 14-STORY-03, 14-STORY-05: speeds, RDMA, functions; who asks for little accepts more."""

    async def play(here: World) -> None:
        async with nodes(here, **{NODE: ("machine-with-nics.yaml",)}):
            await apply(here, "nic-classes.yaml")
            await create(here, asking("crypto", crypto_card=1))
            assert await running(here, "crypto") == "clever-0"
            await create(here, asking("fast", fast__nic=1))
            assert "fast.nic" in await waiting(here, "fast")
            await create(here, asking("rdma", rdma_nic=1))
            assert await running(here, "rdma") == "fast-1"
            await here.pods.delete("crypto", NS, grace_period_s=1)
            assert await running(here, "fast") == "clever-0"

    tell(play)


@pytest.mark.parametrize(
    ("file", "raw", "key", "value", "given"),
    [
        ("machine-with-nics.yaml", NIC, "sdn", "true", "clever-0"),
        ("machine-with-new-gpus.yaml", GPU, "model", "p100", "p100-0"),
    ],
)
def test_one_manifest_runs_where_the_hardware_is_another(file, raw, key, value, given):
    """14-STORY-06: a class of the same name in two clusters, over what each of them has."""

    async def play(here: World) -> None:
        selector = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]
        spec = {"resourceName": raw, "resourceSelector": selector}
        async with nodes(here, **{NODE: (file,)}):
            kind = {"apiVersion": compute.limits.API_VERSION, "kind": "ResourceClass"}
            await create(here, {**kind, "metadata": {"name": "best"}, "spec": spec})
            await create(here, asking("portable", best=1))
            assert await running(here, "portable") == given

    tell(play)


def test_a_vendor_says_more_of_new_hardware():
    """14-STORY-07, 14-RAW-05, 14-PROP-03, 14-PROP-06: the plugin is upgraded under running pods."""

    async def play(here: World) -> None:
        async with nodes(
            here, **{NODE: ("machine-with-new-gpus.yaml",), "old": ("machine-with-old-gpus.yaml",)}
        ) as files:
            await apply(here, "classes.yaml")
            await create(here, asking("before", gpu_linked=1))
            held = await running(here, "before")
            file = files[f"{NODE} machine-with-new-gpus.yaml"]
            said = yaml.safe_load(file.read_text())
            for id, properties in said["devices"].items():
                properties["ecc"] = "true" if id.startswith("v100") else "false"
            file.write_text(yaml.safe_dump(said))
            selector = [{"matchExpressions": [{"key": "ecc", "operator": "In", "values": ["true"]}]}]
            spec = {"resourceName": GPU, "resourceSelector": selector}
            kind = {"apiVersion": compute.limits.API_VERSION, "kind": "ResourceClass"}
            await create(here, {**kind, "metadata": {"name": "gpu-ecc"}, "spec": spec})
            await create(here, asking("checked", gpu_ecc=2))
            given = await running(here, "checked")
            assert held not in given.split(",")
            assert (await here.status("before"))["phase"] == "Running"
            await create(here, asking("silver", gpu_silver=1))
            assert await running(here, "silver") in ("k20-0", "k80-0")
            await here.pods.delete("before", NS, grace_period_s=1)
            await create(here, asking("last", gpu_ecc=1))
            assert await running(here, "last") == held, "the change is complete when its pod is over"

    tell(play)


def test_raw_names_and_classes_share_the_devices():
    """14-STORY-10, 14-RAW-02, 14-RAW-03: raw requests, some by class, then all; each step with its quota."""

    async def play(here: World) -> None:
        quotas = here.client.resource("", "v1", "resourcequotas")

        def by_raw(name: str) -> dict[str, Any]:
            pod = asking(name)
            pod["spec"]["containers"][0]["resources"] = {"limits": {GPU: 1}}
            return pod

        async with nodes(here, **{NODE: ("machine-with-new-gpus.yaml",)}):
            hard = {GPU: "2"}
            await create(
                here,
                {
                    "apiVersion": "v1",
                    "kind": "ResourceQuota",
                    "metadata": {"name": "q"},
                    "spec": {"hard": hard},
                },
            )
            await until_quota(here, NS)
            await create(here, by_raw("a"))
            first = await running(here, "a")
            await apply(here, "classes.yaml")
            await quotas.patch("q", {"spec": {"hard": {GPU: "2", "gpu-linked": "1"}}}, NS)
            await create(here, asking("b", gpu_linked=1))
            second = await running(here, "b")
            await create(here, by_raw("c"))
            assert len({first, second, await running(here, "c")}) == 3
            for pod in (by_raw("d"), asking("e", gpu_linked=1)):
                with pytest.raises(errors.Forbidden, match="exceeded quota"):
                    await create(here, pod)
            await quotas.patch("q", {"spec": {"hard": {GPU: "0", "gpu-linked": "2"}}}, NS)
            for name in ("a", "c"):
                assert (await here.status(name))["phase"] == "Running"
                await here.pods.delete(name, NS, grace_period_s=1)
                await here.until_gone(name)
            with pytest.raises(errors.Forbidden, match="exceeded quota"):
                await create(here, by_raw("f"))
            await create(here, asking("g", gpu_linked=1))
            assert {second, await running(here, "g")} == {"v100-1", "v100-2"}

    tell(play)
