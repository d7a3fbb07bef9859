"""IF1 and DUMP1: what is foretold happens when it is then done, in a real cluster."""

from collections import Counter
from pathlib import Path

import yaml

from allot.api import Gates
from allot.controllers import ALL
from allot.planning import Answer, Cluster, load, save, take
from scheduler.cluster import NS, claim_spec, pod, tell
from scheduler.cluster import Cluster as Live

from .clusters import ask

WORKLOADS = tuple(
    one
    for one in ALL
    if one.name in ("resourceclaim-controller", "garbage-collector-controller", "replicaset-controller")
)


async def asked(here: Live, *sentences: str) -> Answer:
    dump = await take(here.client, here.gates)
    return ask(Cluster(dump.gathered, here.gates), *sentences)


async def devices(here: Live, **nodes: int) -> None:
    await here.device_class()
    await here.template()
    for name, count in nodes.items():
        await here.node(name)
        await here.devices(name, count)


def test_a_drain_comes_true():
    """Five replicas, six devices: one of three nodes is drained, and not all of its pods find a place."""

    async def story(here: Live) -> None:
        await here.start_controllers(WORKLOADS)
        await here.start_scheduler()
        await devices(here, a=2, b=2, c=2)
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": pod("x", template="one")["spec"]}
        spec = {"replicas": 5, "selector": {"matchLabels": labels}, "template": template}
        replicas = here.client.resource("apps", "v1", "replicasets")
        await replicas.create({"metadata": {"name": "web"}, "spec": spec}, NS)

        async def places() -> Counter[str]:
            return Counter(one.fields["spec"].get("nodeName", "") for one in await here.all("pods"))

        async def placed() -> bool:
            found = await places()
            return found.total() == 5 and not found[""]

        await here.until(placed, "five pods placed")
        before = await places()
        busiest = max(before, key=lambda node: (before[node], node))
        answer = await asked(here, f"drain {busiest}")
        left = Counter(answer.placed.values())
        foretold = Counter({node: count for node, count in (before + left).items() if node != busiest})
        assert len(answer.evicted) == 2 and len(answer.waiting) == 1

        node = await here.resource("nodes").get(busiest)
        await here.resource("nodes").update(node.changed({"spec": {"unschedulable": True}}))
        for one in await here.all("pods"):
            if one.fields["spec"].get("nodeName") == busiest:
                await here.resource("pods").delete(one.name, NS, grace_period_s=0)

        async def as_foretold() -> bool:
            found = await places()
            waits = found.pop("", 0)
            return found == foretold and waits == 1

        await here.until(as_foretold, f"{foretold} and one that waits")

    tell(story, started=False)


def test_pods_that_come_go_where_it_was_foretold(tmp_path: Path):
    """Pods with claims of different sizes, one after the other; one of the larger ones does not fit."""

    async def story(here: Live) -> None:
        await devices(here, a=3, b=2)
        await here.template("two", count=2)
        manifests = [pod(f"p{at}", template="two" if at % 2 else "one") for at in range(5)]
        path = tmp_path / "pods.yaml"
        path.write_text(yaml.safe_dump_all(manifests))
        answer = await asked(here, f"apply {path}")
        assert len(answer.placed) == 4 and len(answer.waiting) == 1
        for fields in manifests:
            name = fields["metadata"]["name"]
            await here.create("pods", fields)
            if f"{NS}/{name}" in answer.placed:
                assert await here.bound(name) == [answer.placed[f"{NS}/{name}"]]
            else:
                assert (await here.condition(name))["message"] == answer.waiting[f"{NS}/{name}"]

    tell(story)


SECRET = "do-not-tell"


def test_a_dump_answers_like_the_cluster_and_holds_no_secrets(tmp_path: Path):
    """DUMP1, DUMP2: what somebody wrote into a pod, a claim or a class that decides nothing is not in it."""

    async def story(here: Live) -> None:
        await here.node("a")
        await here.devices("a", 2)
        config = [{"opaque": {"driver": "gpu.example.com", "parameters": {"key": SECRET}}}]
        await here.device_class(config=config)
        claims = {**claim_spec()["devices"], "config": config}
        fields = {"metadata": {"name": "one", "namespace": NS}, "spec": {"spec": {"devices": claims}}}
        await here.create("resourceclaimtemplates", fields)
        wanted = pod("p", template="one")
        container = wanted["spec"]["containers"][0]
        container |= {"env": [{"name": "TOKEN", "value": SECRET}], "args": [SECRET], "image": SECRET}
        wanted["metadata"]["annotations"] = {"note": SECRET}
        wanted["spec"]["volumes"] = [{"name": "v", "csi": {"driver": "x", "volumeAttributes": {"k": SECRET}}}]
        await here.create("pods", wanted)
        await here.bound("p")
        dump = await take(here.client, here.gates)
        assert SECRET in str([one.fields for objects in dump.gathered.objects.values() for one in objects])
        for path in (tmp_path / "dump", tmp_path / "dump.gz"):
            save(dump, path)
            read = load(path)
            told = [one.raw for objects in read.gathered.objects.values() for one in objects]
            assert told and not any(SECRET.encode() in one for one in told)
            assert SECRET.encode() not in path.read_bytes()
            for change in ("drain a", "add like a", "delete pod/p"):
                assert ask(Cluster(read.gathered, Gates()), change) == await asked(here, change)

    tell(story)
