"""Drivers of classic claims in a whole cluster: one without the kit, one that is exchanged, and others."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from allot.api import errors
from allot.drivers import gpu_memory, mock
from nodeagent.plugins import until
from nodeagent.world import NS

from .classic import Stories, tell
from .test_classic_stories import GI, gpu_pod, requirements, with_gpus

PLAIN = Path(__file__).parent / "plain_driver.py"
PROTOS = Path(__file__).parents[1] / "wire"
USER = "plain-driver"


@asynccontextmanager
async def plain_driver(it: Stories, node: str):
    """The official client, grpcio and protoc, in a process that does not know Allot."""
    at, config = it.places[node], await it.kubeconfig_of(USER)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(PLAIN), config, str(at.root), str(at.cdi), str(PROTOS)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert await asyncio.wait_for(process.stdout.readline(), 60) == b"ready\n"
        yield
    finally:
        process.stdin.close()
        await asyncio.wait_for(process.wait(), 60)


async def plain_class(it: Stories):
    await it.kubectl(
        *("create", "clusterrolebinding", "plain", "--clusterrole=allot:classic-driver", f"--user={USER}")
    )
    text = "apiVersion: resource.k8s.io/v1alpha1\nkind: ResourceClass\nmetadata: {name: plain}\n"
    await it.kubectl("apply", "-f", "-", stdin=text + "driverName: plain.example.com\n")


def using(name, claim="", script="echo number $PLAIN_NUMBER"):
    source = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": "plain"}
    made = gpu_pod(name, script=script)
    made["spec"]["resourceClaims"] = [{"name": "gpu", **source}]
    return made


async def template(it: Stories, name, of, **spec):
    templates = it.world.client.resource("resource.k8s.io", "v1alpha1", "resourceclaimtemplates")
    whole = {"resourceClassName": of, **spec}
    await templates.create({"metadata": {"name": name, "namespace": NS}, "spec": {"spec": whole}})


def test_a_driver_without_the_kit_works():
    """3063-GOAL-10, 3063-COMP-08, 3063-GOAL-11, 3063-GOAL-13, 3063-TEST-04: the API and the gRPC calls are
    all it needs. It has two, exclusive and counted, as a device plugin would; the third pod waits for one."""

    async def story(it: Stories):
        await it.node("worker")
        await plain_class(it)
        await template(it, "plain", "plain")
        async with plain_driver(it, "worker"):
            for name in ("a", "b"):
                await it.pods.create(using(name, script="echo number $PLAIN_NUMBER; sleep 300"))
                await it.until_phase("Running", name)
            assert {await it.first_words(name) for name in ("a", "b")} == {"number 0\n", "number 1\n"}
            await it.pods.create(using("c"))
            await asyncio.sleep(1)
            assert (await it.world.status("c"))["phase"] == "Pending"
            await it.pods.delete("a", NS)
            await it.until_phase("Succeeded", "c")
            await it.pods.delete("b", NS)
            await it.until_no_claims()

    tell(story)


def test_a_driver_may_enlarge_what_it_allocated_and_takes_it_from_nobody():
    """3063-PARAM-12, 3063-PARAM-13, X-23: handle and shareability may change while the claim is used; not so
    that a user loses it."""

    async def story(it: Stories):
        await it.node("worker")
        await plain_class(it)
        await it.claims.create(
            {"metadata": {"name": "kept", "namespace": NS}, "spec": {"resourceClassName": "plain"}}
        )
        async with plain_driver(it, "worker"):
            await it.pods.create(using("a", "kept", "sleep 300"))
            await it.until_phase("Running", "a")
            await it.pods.create(using("b", "kept", "sleep 300"))
            await asyncio.sleep(0.5)
            assert (await it.world.status("b"))["phase"] == "Pending"
            larger = {"allocation": {"resourceHandle": "0+1", "shareable": True}}
            driver = (await it.client(USER, it.stack)).resource(
                "resource.k8s.io", "v1alpha1", "resourceclaims"
            )
            await driver.patch("kept", {"status": larger}, NS, subresource="status")
            await it.until_phase("Running", "b")  # it is shared now
            assert len((await it.status("kept"))["reservedFor"]) == 2
            for smaller in ({"allocation": {"shareable": False}}, {"allocation": None}):
                with pytest.raises(errors.ApiError):
                    await driver.patch("kept", {"status": smaller}, NS, subresource="status")
            assert (await it.status("kept"))["allocation"] == larger["allocation"]

    tell(story)


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
@pytest.mark.parametrize("whose", ["named", "generated"])
def test_all_combinations_of_life_and_mode_work(mode, whose):
    """3063-LIFE-09, X-19, 3063-LIFE-02, 3063-MODE-04: named or generated, immediate or delayed."""

    async def story(it: Stories):
        await it.apply("mock-driver.yaml")
        await it.node("worker")
        await it.plugin(mock.node_plugin(), "mock-driver", "worker")
        await it.controller(mock.Mock(shareable=True).controller, "mock-driver")
        spec = {"resourceClassName": "mock", "allocationMode": mode}
        if whose == "named":
            await it.claims.create({"metadata": {"name": "shared", "namespace": NS}, "spec": spec})
        else:
            await template(it, "plain", "mock", allocationMode=mode)
        for name in ("a", "b"):  # together, where the claim is shared
            claim = "shared" if whose == "named" else ""
            await it.pods.create(using(name, claim, "echo level $admin_level; sleep 300"))
        for name in ("a", "b"):
            await it.until_phase("Running", name)
            assert await it.first_words(name) == "level gold\n"
        for name in ("a", "b"):
            await it.pods.delete(name, NS)
            await it.until_gone(name)
        if whose == "named":

            async def is_idle():
                return not (await it.status("shared")).get("reservedFor")

            await until(is_idle)
            assert (await it.status("shared"))["allocation"] is not None  # 3063-FLOW-18, X-18
            await it.claims.delete("shared", NS)
        await it.until_no_claims()

    tell(story)


def test_a_new_version_of_a_driver_takes_over_what_the_old_one_allocated():
    """3063-SKEW-01, 3063-STATE-18: both halves end and others begin; what runs goes on, is unprepared and
    given back by those, and what is held is not handed out twice."""

    async def story(it: Stories):
        _, old = await with_gpus(it, "gpu-1")
        await requirements(it, "most", memory="6Gi")
        await it.pods.create(gpu_pod("a", "most"))
        await it.until_phase("Running", "a")
        await old.aclose()
        new = gpu_memory.GpuMemory()
        await it.controller(new.controller, "gpu-driver")
        await it.pods.create(gpu_pod("b", "most"))
        await asyncio.sleep(1)
        assert (await it.world.status("b"))["phase"] == "Pending"
        await it.pods.delete("a", NS)
        await it.until_phase("Running", "b")
        handle = json.loads((await it.status("b-gpu"))["allocation"]["resourceHandle"])
        assert handle["memory"] == 6 * GI

    tell(story)


def test_what_nodes_have_is_published_by_the_driver_and_seen_by_everybody():
    """3063-LOCAL-01, 3063-LOCAL-02, 3063-LOCAL-03, 3063-LOCAL-04, 3063-GOAL-14, 3063-RISK-04, X-14: an object
    for each node in a kind of the driver's own, which a user may list and only the driver may write; the
    controller follows it, and counts what it has allocated itself."""

    async def story(it: Stories):
        await with_gpus(it, "gpu-1", cards=1, memory=4 * GI)
        assert "gpu-1" in await it.kubectl("get", "nodegpus")
        assert (
            await it.kubectl(
                "auth", "can-i", "patch", "nodegpus.gpu.example.com", "--as", "somebody", fails=True
            )
        ).strip() == "no"
        assert "yes" in await it.kubectl(
            *("auth", "can-i", "patch", "nodegpus.gpu.example.com", "--as", "gpu-driver")
        )
        await requirements(it, "two", memory="2Gi")
        for name in ("a", "b", "c"):
            await it.pods.create(gpu_pod(name, "two"))

        async def are_running():
            phases = [one.fields["status"]["phase"] for one in (await it.pods.list(NS)).objects]
            return phases.count("Running") == 2

        await until(are_running)
        await asyncio.sleep(1)
        assert await are_running()
        # a second card appears: the driver hears of it, and the third pod gets its part
        gpus = (await it.client("gpu-driver", it.stack)).resource("gpu.example.com", "v1", "nodegpus")
        card = {"memory": str(4 * GI), "segment": "1"}
        cards = [{"name": f"gpu-{at}", **card} for at in range(2)]
        await gpus.patch("gpu-1", {"cards": cards}, NS)

        async def all_run():
            phases = [one.fields["status"]["phase"] for one in (await it.pods.list(NS)).objects]
            return phases == ["Running"] * 3

        await until(all_run)

    tell(story)
