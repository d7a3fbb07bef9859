"""The user stories of KEP-3063 end to end, from what a user would apply: kubectl, gRPC, containers."""

import asyncio
import json
from dataclasses import replace

from allot.api import errors
from allot.drivers import fabric, fpga, gpu_memory, mock
from nodeagent.plugins import until
from nodeagent.world import NS

from .classic import EXAMPLES, Stories, tell

GI = 2**30


def test_a_vendor_ships_two_programs_and_yaml_and_that_is_enough():
    """3063-STORY-01, 3063-STORY-03, 3063-TEST-02, 3063-COMP-07, 3063-GOAL-09, 3063-ALT-02, 3063-STATE-09:
    both halves are processes with a kubeconfig and nothing else; the cluster is not restarted. What class and
    claim say, containers see."""

    async def story(it: Stories):
        await it.node("worker")
        await it.apply("mock-driver.yaml")
        config = await it.kubeconfig_of("mock-driver")
        place = it.places["worker"]
        controller = it.program("driver", "mock", "controller", "--kubeconfig", config)
        where = ("--root", str(place.root), "--cdi-dir", str(place.cdi))
        node = it.program("driver", "mock", "node", "--node", "worker", "--kubeconfig", config, *where)
        async with controller, node:
            assert "mock.example.com" in await it.kubectl("get", "resourceclasses")
            await it.apply("mock-pod.yaml")
            await it.until_phase("Succeeded", "mocked")
            assert await it.log("mocked") == "level gold color blue\n"
            await it.until_no_claims()  # 3063-LIFE-05: the pod is there, and its claim is released

    tell(story)


async def with_gpus(it: Stories, *nodes: str, cards: int = 1, memory: int = 8 * GI):
    """Both halves of the driver of partial GPUs, and what it brings along."""
    await it.apply("gpu-memory-driver.yaml", "gpu-memory-class.yaml")
    for node in nodes:
        await it.node(node)
        own = [gpu_memory.Card(node, f"gpu-{at}", memory, GI // 4) for at in range(cards)]
        await it.plugin(gpu_memory.node_plugin(own, NS), "gpu-driver", node)

    async def are_published():
        gpus = it.world.client.resource("gpu.example.com", "v1", "nodegpus")
        return {one.name for one in (await gpus.list(NS)).objects} == {*nodes}

    await until(are_published)
    driver = gpu_memory.GpuMemory()
    running = await it.controller(driver.controller, "gpu-driver")
    return driver, running


def gpu_pod(name, template="device-consumer-gpu-template", script="echo $GPU_MEMORY; sleep 300", **spec):
    container = {
        "name": "main",
        "image": "none",
        "command": ["sh", "-c", script],
        "resources": {"claims": [{"name": "gpu"}]},
    }
    return {
        "metadata": {"name": name, "namespace": NS},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
            "containers": [container],
            **spec,
        },
    }


async def requirements(it: Stories, name, **members):
    """Parameters and a template that refers to them."""
    wanted = it.world.client.resource("gpu.example.com", "v1", "gpurequirements")
    await wanted.create(
        {
            "apiVersion": "gpu.example.com/v1",
            "kind": "GPURequirements",
            "metadata": {"name": name, "namespace": NS},
            **members,
        }
    )
    templates = it.world.client.resource("resource.k8s.io", "v1alpha1", "resourceclaimtemplates")
    reference = {"apiGroup": "gpu.example.com", "kind": "GPURequirements", "name": name}
    spec = {"resourceClassName": "acme-gpu", "parametersRef": reference}
    await templates.create({"metadata": {"name": name, "namespace": NS}, "spec": {"spec": spec}})


def test_two_containers_share_a_part_of_a_gpu():
    """3063-STORY-05, 3063-STORY-06, 3063-STORY-07, 3063-GOAL-02, 3063-GOAL-07, 3063-SHARE-01, 3063-COMP-09:
    the claim is generated and allocated where 2 Gi are free, both containers see the same part, the rest
    serves others, and all of it is free when the pod is gone."""

    async def story(it: Stories):
        driver, _ = await with_gpus(it, "gpu-1")
        await it.apply("gpu-memory-pod.yaml")
        await it.until_phase("Running", "device-consumer")
        seen = {await it.first_words("device-consumer", one) for one in ("workload", "monitor")}
        assert seen == {f"gpu-0 has {2 * GI}\n"}
        claim = await it.claims.get("device-consumer-gpu", NS)
        status = claim.fields["status"]
        assert json.loads(status["allocation"]["resourceHandle"])["memory"] == 2 * GI
        assert status["driverName"] == "gpu.example.com"
        assert [one["name"] for one in status["reservedFor"]] == ["device-consumer"]
        for number in range(3):  # 8 Gi in all
            await it.pods.create(gpu_pod(f"other-{number}"))
            await it.until_phase("Running", f"other-{number}")
        await it.pods.create(gpu_pod("late"))
        await asyncio.sleep(1)
        assert (await it.world.status("late"))["phase"] == "Pending"
        await it.kubectl("delete", "pod", "device-consumer", "--grace-period=1")
        await it.until_phase("Running", "late")
        assert len((await it.claims.list(NS)).objects) == 4
        for name in ("other-0", "other-1", "other-2", "late"):
            await it.pods.delete(name, NS)
        await it.until_no_claims()

        async def is_free():
            return not driver._cards.shares

        await until(is_free)
        assert not (await it.schedulings.list(NS)).objects  # 3063-COORD-15

    tell(story)


def test_replicas_have_a_claim_each():
    """3063-STORY-07, 3063-LIFE-03: the same pod template in a Deployment."""

    async def story(it: Stories):
        await with_gpus(it, "gpu-1")
        await requirements(it, "small", memory="1Gi")
        pod = gpu_pod("x", "small")
        del pod["spec"]["restartPolicy"]
        labels = {"app": "gpu"}
        deployments = it.world.client.resource("apps", "v1", "deployments")
        await deployments.create(
            {
                "metadata": {"name": "many", "namespace": NS},
                "spec": {
                    "replicas": 3,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
                },
            }
        )

        async def are_running():
            pods = (await it.pods.list(NS, label_selector="app=gpu")).objects
            return [one.fields["status"]["phase"] for one in pods] == ["Running"] * 3

        await until(are_running)
        pods = {one.name for one in (await it.pods.list(NS)).objects}
        claims = {one.name for one in (await it.claims.list(NS)).objects}
        assert claims == {f"{name}-gpu" for name in pods}
        await deployments.scale("many", NS, 0)
        await it.until_no_claims()

    tell(story)


def test_what_is_optional_is_had_where_it_is_free_and_else_the_pod_runs_without():
    """3063-OPT-01, 3063-OPT-02, 3063-OPT-03, 3063-OPT-04, 3063-GOAL-08: the node with a free card is
    favoured; once none is, any node will do, and the pod can tell."""

    async def story(it: Stories):
        await with_gpus(it, "gpu-1")
        await it.node("plain")  # the driver runs there too, and has no card
        await it.plugin(gpu_memory.node_plugin([], NS), "gpu-driver", "plain")
        await requirements(it, "soft", memory="8Gi", optional=True)
        for name in ("first", "second"):
            await it.pods.create(gpu_pod(name, "soft"))
            await it.until_phase("Running", name)
        assert await it.first_words("first") == f"{8 * GI}\n"
        assert (await it.pods.get("first", NS)).fields["spec"]["nodeName"] == "gpu-1"
        assert await it.first_words("second") == "0\n"

    tell(story)


def test_what_only_an_administrator_may_say_is_run_for_every_allocation_and_refused_to_users():
    """3063-STORY-04, 3063-GOAL-05, 3063-PARAM-06: `initCommand` of the class runs before the first container
    starts; in a claim's parameters it is refused, by the schema of the kind or by the driver."""

    async def story(it: Stories):
        await with_gpus(it, "gpu-1")
        noted = it.world.folder / "noted"
        command = ["/bin/sh", "-c", f"echo $CLAIM $GPU_MEMORY >>{noted}"]
        inits = it.world.client.resource("gpu.example.com", "v1", "gpuinits", namespaced=False)
        await inits.patch("acme-gpu-init", {"initCommand": command})
        await requirements(it, "small", memory="1Gi")
        script = f"cat {noted}; sleep 300"
        await it.pods.create(gpu_pod("a", "small", script))
        await it.until_phase("Running", "a")
        assert await it.first_words("a") == f"{NS}/a-gpu {GI}\n"
        wanted = it.world.client.resource("gpu.example.com", "v1", "gpurequirements")
        sneaky = {
            "apiVersion": "gpu.example.com/v1",
            "kind": "GPURequirements",
            "metadata": {"name": "sneaky", "namespace": NS},
            "memory": "1Gi",
            "initCommand": ["/bin/evil"],
        }
        try:
            await wanted.create(sneaky, field_validation="Strict")
            raise AssertionError("the schema has no such member")
        except (errors.BadRequest, errors.Invalid) as refused:
            assert "initCommand" in str(refused)
        definitions = it.world.client.resource(
            "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
        )
        found = (await definitions.get("gpurequirements.gpu.example.com")).fresh()
        schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["x-kubernetes-preserve-unknown-fields"] = True
        await definitions.update(found)

        async def is_kept():
            try:
                made = await wanted.create(sneaky)
            except errors.AlreadyExists:
                await wanted.delete("sneaky", NS)
                return False
            return "initCommand" in made.fields

        await until(is_kept)
        reference = {"apiGroup": "gpu.example.com", "kind": "GPURequirements", "name": "sneaky"}
        await it.claims.create(
            {
                "metadata": {"name": "sneaky", "namespace": NS},
                "spec": {"resourceClassName": "acme-gpu", "parametersRef": reference},
            }
        )
        pod = gpu_pod("sneaky")
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "sneaky"}]
        await it.pods.create(pod)

        async def is_told():
            events = (await it.world.client.resource("", "v1", "events").list(NS)).objects
            return any("unknown field `initCommand`" in one.fields["message"] for one in events)

        await until(is_told)
        assert not (await it.status("sneaky")).get("allocation")

    tell(story)


def test_jobs_compete_for_accelerators_that_are_attached_and_detached():
    """3063-STORY-08, 3063-STORY-09, 3063-GOAL-01, 3063-GOAL-06, 3063-GOAL-17, 3063-RISK-01: two accelerators,
    three jobs, nodes that come meanwhile; each pod is bound once its accelerator is attached to its node, and
    with its end it is detached."""

    async def story(it: Stories):
        enclosure = fabric.Enclosure(it.world.folder / "enclosure.json")
        enclosure.build(1)
        await it.apply("fabric-driver.yaml")
        for node in ("w1", "w2"):
            await it.node(node)
            await it.plugin(fabric.node_plugin(enclosure, node), "accelerator-driver", node)
        await it.controller(fabric.Fabric(enclosure).controller, "accelerator-driver")
        wrong: list[str] = []

        async def watch():
            """At every binding the accelerator is attached to that node for that pod's claim."""
            async for event in it.pods.watch(NS, initial_events=True):
                pod = event.object
                node = pod.fields.get("spec", {}).get("nodeName")
                if event.type != "MODIFIED" or not node or pod.fields["status"].get("phase") != "Pending":
                    continue
                status = await it.status(f"{pod.name}-accelerator")
                handle = json.loads((status.get("allocation") or {}).get("resourceHandle") or "{}")
                if handle.get("node") != node:
                    wrong.append(f"{pod.name} on {node}: {handle}")

        watching = asyncio.create_task(watch())
        await it.apply("fabric-jobs.yaml")
        jobs = it.world.client.resource("batch", "v1", "jobs")

        async def are_done():
            found = (await jobs.list(NS)).objects
            return [one.fields["status"].get("succeeded") for one in found] == [1, 1, 1]

        await until(are_done)
        watching.cancel()
        assert wrong == []
        for pod in (await it.pods.list(NS)).objects:
            assert await it.log(pod.name) == "computing on acc-0\n"

        async def is_detached():
            return enclosure.free() == 1

        await until(is_detached)
        await it.until_no_claims()

    tell(story)


def test_an_accelerator_is_free_again_after_its_node_went_down():
    """3063-GRAD-05, 3063-STORY-09, O-20: nobody unprepared it; once the pod is gone the driver detaches it by
    itself, and it serves a pod elsewhere."""

    async def story(it: Stories):
        enclosure = fabric.Enclosure(it.world.folder / "enclosure.json")
        enclosure.build(1)
        await it.apply("fabric-driver.yaml", "fabric-jobs.yaml")
        jobs = it.world.client.resource("batch", "v1", "jobs")
        for one in (await jobs.list(NS)).objects:
            await jobs.delete(one.name, NS)
        await it.node("w1")
        await it.plugin(fabric.node_plugin(enclosure, "w1"), "accelerator-driver", "w1")
        await it.controller(fabric.Fabric(enclosure).controller, "accelerator-driver")

        def pod(name):
            made = gpu_pod(name, script="echo $ACCELERATORS; sleep 300")
            entry = {"name": "gpu", "resourceClaimTemplateName": "one-accelerator"}
            made["spec"]["resourceClaims"] = [entry]
            return made

        await it.pods.create(pod("first"))
        await it.until_phase("Running", "first")
        (link,) = enclosure.links().values()
        assert link is not None and link.node == "w1"
        await it.agents["w1"].aclose()  # the machine is gone, with agent and plugin
        await it.node("w2")
        await it.plugin(fabric.node_plugin(enclosure, "w2"), "accelerator-driver", "w2")
        await it.pods.create(pod("second"))
        await asyncio.sleep(0.5)
        assert (await it.world.status("second"))["phase"] == "Pending"
        await it.nodes.delete("w1")  # and an administrator says so
        await it.kubectl("delete", "pod", "first", "--force", "--grace-period=0")
        await it.until_phase("Running", "second")
        assert await it.first_words("second") == "acc-0\n"
        (link,) = enclosure.links().values()
        assert link is not None and link.node == "w2"

    tell(story)


def test_the_functions_of_a_card_are_set_up_together():
    """3063-STORY-10, 3063-GOAL-05, 3063-MODE-01, 3063-MODE-04, 3063-GOAL-03, 3063-LIFE-01,
    3063-FLOW-18: a claim that is allocated at once, and kept; pods use it in turn, and the driver
    is asked to allocate once."""

    async def story(it: Stories):
        board = fpga.Board(it.world.folder / "registers")
        await it.apply("fpga-driver.yaml")
        await it.node("edge")
        plugin = fpga.node_plugin(board, [fpga.Card("edge", "card-0", 4)], NS)
        await it.plugin(plugin, "fpga-driver", "edge")
        driver = fpga.Fpga()
        allocated = []

        def allocate(asks, node):
            allocated.append(node)
            return driver.allocate(asks, node)

        await it.controller(replace(driver.controller, allocate=allocate), "fpga-driver")
        await it.apply("fpga-pod.yaml")
        await it.until_phase("Succeeded", "radio")
        functions = "fpga,nic-0,nic-1,signal-processor"
        assert await it.log("radio") == f"card-0 runs {functions}\n"
        assert board.functions("card-0") == {}  # 3063-GOAL-06: cleaned up before the end is told
        assert (await it.status("uplink"))["allocation"]
        again = (await it.pods.get("radio", NS)).fresh()
        await it.kubectl("delete", "pod", "radio")
        fields = {"metadata": {"name": "radio", "namespace": NS}, "spec": again["spec"]}
        fields["spec"].pop("nodeName", None)
        await it.pods.create(fields)
        await it.until_phase("Succeeded", "radio")
        assert allocated == [None]
        await it.kubectl("delete", "resourceclaims.v1alpha1.resource.k8s.io", "uplink")
        assert driver._held == {}

    tell(story)


def test_when_one_function_cannot_be_set_up_none_is():
    """3063-STORY-10, 3063-GRPC-12: the pod does not start, and says why."""

    async def story(it: Stories):
        board = fpga.Board(it.world.folder / "registers")
        await it.apply("fpga-driver.yaml")
        await it.node("edge")
        plugin = fpga.node_plugin(board, [fpga.Card("edge", "card-0", 4)], NS)
        await it.plugin(plugin, "fpga-driver", "edge")
        await it.controller(fpga.Fpga().controller, "fpga-driver")
        text = (EXAMPLES / "fpga-pod.yaml").read_text().replace("turbo-decoder-2", "x" * 65)
        await it.kubectl("apply", "-f", "-", stdin=text)
        pod = it.world
        said = []

        async def is_told():
            events = (await pod.client.resource("", "v1", "events").list(NS)).objects
            said[:] = [one.fields["message"] for one in events]
            return any("more than 64 letters" in one for one in said)

        await until(is_told, said)
        assert board.functions("card-0") == {}
        assert (await it.world.status("radio"))["phase"] == "Pending"

    tell(story)


def test_the_mock_is_named_as_its_yaml_says():
    """What the examples name is what the drivers are called."""
    for name, yaml in (
        (mock.NAME, "mock-driver.yaml"),
        (gpu_memory.NAME, "gpu-memory-class.yaml"),
        (fabric.NAME, "fabric-driver.yaml"),
        (fpga.NAME, "fpga-driver.yaml"),
    ):
        assert f"driverName: {name}\n" in (EXAMPLES / yaml).read_text()
