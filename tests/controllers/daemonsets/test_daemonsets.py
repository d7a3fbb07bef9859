"""Daemon sets over the real server."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from allot.api import Object, core, encode
from allot.client import Propagation
from allot.controllers import daemonsets, garbagecollection
from allot.controllers.daemonsets.plan import plan, situation
from allot.controllers.daemonsets.suiting import Suits, for_node, node_of, suits
from allot.controllers.workloads.revisions import hash_of
from controllers.kubelet import Kubelet
from controllers.world import NS, World, tell


def daemon_set(image: str = "driver:1", pod: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": "driver"}},
        "spec": {"containers": [{"name": "main", "image": image}], **(pod or {})},
    }
    wanted = {"selector": {"matchLabels": {"app": "driver"}}, "template": template, **spec}
    metadata = {"name": "driver", "namespace": NS}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": wanted}


def sets(here: World):
    return here.client.resource("apps", "v1", "daemonsets")


def nodes(here: World):
    return here.client.resource("", "v1", "nodes", namespaced=False)


async def add_node(here: World, name: str, *taints: dict[str, str], **labels: str) -> None:
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
    await nodes(here).create({**body, "spec": {"taints": [*taints]}})


async def on(here: World) -> dict[str, str]:
    """node -> image."""
    found = (await here.pods.list(NS)).objects
    assert len({node_of(pod) for pod in found}) == len(found)
    return {node_of(pod): pod.fields["spec"]["containers"][0]["image"] for pod in found}


async def settled(here: World, *names: str, image: str = "driver:1") -> dict[str, Any]:
    """What `kubectl rollout status` waits for, on exactly these nodes."""

    async def so() -> Any:
        live = await sets(here).get("driver", NS)
        status = live.fields.get("status") or {}
        counts = ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
        told = all(status.get(name) == len(names) for name in counts)
        seen = status.get("observedGeneration") == live.metadata.generation
        found = {
            node_of(p): p.fields["spec"]["containers"][0]["image"] for p in (await here.pods.list(NS)).objects
        }
        return status if told and seen and found == dict.fromkeys(names, image) else None

    return await here.until(so)


def test_every_node_that_suits_has_one_pod_and_new_nodes_get_theirs():
    async def story(here: World) -> None:
        await add_node(here, "n1", gpu="yes")
        await add_node(here, "n2")
        await sets(here).create(daemon_set(pod={"nodeSelector": {"gpu": "yes"}}))
        async with Kubelet(here.client):
            await settled(here, "n1")
            await add_node(here, "n3", gpu="yes")
            await settled(here, "n1", "n3")
            await nodes(here).patch("n2", {"metadata": {"labels": {"gpu": "yes"}}})
            await settled(here, "n1", "n2", "n3")
            await nodes(here).patch("n1", {"metadata": {"labels": {"gpu": None}}})
            await settled(here, "n2", "n3")

    tell(story, daemonsets.CONTROLLER)


def test_taints_keep_daemons_away_except_those_of_sick_nodes():
    async def story(here: World) -> None:
        await add_node(here, "tainted", {"key": "a", "value": "b", "effect": "NoSchedule"})
        await add_node(here, "sick", {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"})
        await sets(here).create(daemon_set())
        async with Kubelet(here.client):
            await settled(here, "sick")

    tell(story, daemonsets.CONTROLLER)


def test_a_failed_daemon_is_replaced():
    async def story(here: World) -> None:
        await add_node(here, "n1")
        await sets(here).create(daemon_set())
        async with Kubelet(here.client):
            await settled(here, "n1")
            (pod,) = (await here.pods.list(NS)).objects
            await here.pods.patch(pod.name, {"status": {"phase": "Failed"}}, NS, subresource="status")

            async def replaced() -> bool:
                return [one.uid for one in (await here.pods.list(NS)).objects] not in ([], [pod.uid])

            await here.until(replaced)
            await settled(here, "n1")

    tell(story, daemonsets.CONTROLLER)


def test_an_update_goes_node_by_node():
    """DSET2, as seen by whoever counts pods; and every template is a revision."""

    async def story(here: World) -> None:
        names = [f"n{n}" for n in range(5)]
        for name in names:
            await add_node(here, name)
        await sets(here).create(daemon_set())
        async with Kubelet(here.client) as kubelet:
            await settled(here, *names)
            await asyncio.sleep(0.05)
            kubelet.forget()
            containers = [{"name": "main", "image": "driver:2"}]
            patch = {"spec": {"template": {"spec": {"containers": containers}}}}
            await sets(here).patch("driver", patch, NS)
            await settled(here, *names, image="driver:2")
            assert kubelet.least_ready >= 4
            assert kubelet.most_pods <= 5
        revisions = here.client.resource("apps", "v1", "controllerrevisions")
        found = {
            one.fields["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: one.fields["revision"]
            for one in (await revisions.list(NS)).objects
        }
        assert found == {"driver:1": 1, "driver:2": 2}

    tell(story, daemonsets.CONTROLLER)


def revisions(here: World):
    return here.client.resource("apps", "v1", "controllerrevisions")


async def history(here: World) -> dict[str, tuple[int, str]]:
    """Name -> number and the uid of whose it is."""
    found = (await revisions(here).list(NS)).objects
    owners = {one.name: one.fields["metadata"].get("ownerReferences") or [{"uid": ""}] for one in found}
    return {one.name: (one.fields["revision"], owners[one.name][0]["uid"]) for one in found}


def test_what_a_set_left_behind_is_adopted_with_its_history():
    """`kubectl delete --cascade=orphan`, and the set is made again: pods go on, and `undo` still works."""

    async def story(here: World) -> None:
        await add_node(here, "n")
        first = await sets(here).create(daemon_set())
        async with Kubelet(here.client):
            await settled(here, "n")
            await sets(here).patch("driver", {"spec": daemon_set("driver:2")["spec"]}, NS)
            await settled(here, "n", image="driver:2")
            (pod,) = (await here.pods.list(NS)).objects
            before = await history(here)
            assert sorted(before.values()) == [(1, first.uid), (2, first.uid)]
            await sets(here).delete("driver", NS, propagation=Propagation.ORPHAN)

            async def is_gone() -> bool:
                return await here.find(sets(here), "driver") is None

            await here.until(is_gone)
            again = await sets(here).create(daemon_set("driver:2"))
            await settled(here, "n", image="driver:2")

            async def adopted() -> bool:
                return {owner for _, owner in (await history(here)).values()} == {again.uid}

            await here.until(adopted)
            assert (await history(here)).keys() == before.keys()
            assert [one.uid for one in (await here.pods.list(NS)).objects] == [pod.uid]
            await here.quiet()
            asked = here.wires["daemon-set-controller"].count("POST", "/controllerrevisions")
            await add_node(here, "m")
            await settled(here, "n", "m", image="driver:2")
            assert here.wires["daemon-set-controller"].count("POST", "/controllerrevisions") == asked

    tell(story, daemonsets.CONTROLLER, garbagecollection.CONTROLLER)


def test_a_revision_of_somebody_else_is_left_alone_and_another_name_is_taken():
    async def story(here: World) -> None:
        await add_node(here, "n")
        made = await sets(here).create(daemon_set())
        name = f"driver-{hash_of(made, 0)}"
        owner = {"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "theirs", "controller": True}
        metadata = {"name": name, "namespace": NS, "ownerReferences": [owner]}
        theirs = await revisions(here).create({"metadata": metadata, "revision": 7})
        await here.start()
        async with Kubelet(here.client):
            await settled(here, "n")
        live = await sets(here).get("driver", NS)
        assert live.fields["status"]["collisionCount"] == 1
        found = await history(here)
        assert found.pop(name) == (7, "theirs")
        assert [*found.values()] == [(1, made.uid)]
        assert (await revisions(here).get(name, NS)).resource_version == theirs.resource_version

    tell(story, daemonsets.CONTROLLER, started=False)


def test_a_set_whose_name_is_as_long_as_may_be_has_its_pods():
    async def story(here: World) -> None:
        await add_node(here, "n")
        wanted = daemon_set()
        await sets(here).create({**wanted, "metadata": {"name": f"{'d' * 222}.{'d' * 30}", "namespace": NS}})

        async def has_pod() -> bool:
            return len((await here.pods.list(NS)).objects) == 1

        await here.until(has_pod)
        (name,) = await history(here)
        assert name.startswith("d" * 222 + "-")

    tell(story, daemonsets.CONTROLLER)


def test_with_a_surge_the_new_daemon_comes_beside_the_old_one():
    async def story(here: World) -> None:
        names = ["n1", "n2", "n3"]
        for name in names:
            await add_node(here, name)
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        await sets(here).create(daemon_set(updateStrategy=strategy))
        async with Kubelet(here.client) as kubelet:
            await settled(here, *names)
            await asyncio.sleep(0.05)
            kubelet.forget()
            containers = [{"name": "main", "image": "driver:2"}]
            await sets(here).patch("driver", {"spec": {"template": {"spec": {"containers": containers}}}}, NS)
            await settled(here, *names, image="driver:2")
            assert kubelet.least_ready >= 3
            assert kubelet.most_pods <= 4

    tell(story, daemonsets.CONTROLLER)


def test_on_delete_waits_for_people():
    async def story(here: World) -> None:
        await add_node(here, "n1")
        await sets(here).create(daemon_set(updateStrategy={"type": "OnDelete"}))
        async with Kubelet(here.client):
            await settled(here, "n1")
            containers = [{"name": "main", "image": "driver:2"}]
            await sets(here).patch("driver", {"spec": {"template": {"spec": {"containers": containers}}}}, NS)
            await here.quiet()
            assert await on(here) == {"n1": "driver:1"}
            (pod,) = (await here.pods.list(NS)).objects
            await here.pods.delete(pod.name, NS)
            await settled(here, "n1", image="driver:2")

    tell(story, daemonsets.CONTROLLER)


def test_a_node_that_may_get_no_new_pod_keeps_the_one_it_has():
    taint = {"key": "a", "value": "b", "effect": "NoSchedule"}
    node = Object(encode({"metadata": {"name": "n1"}, "spec": {"taints": [taint]}}))
    assert suits(core.PodSpec(), False, node) is Suits.KEEPS
    hard = Object(
        encode({"metadata": {"name": "n1"}, "spec": {"taints": [{**taint, "effect": "NoExecute"}]}})
    )
    assert suits(core.PodSpec(), False, hard) is Suits.NO


def test_a_pod_is_made_for_its_node_and_keeps_its_own_terms():
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    spec = {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": [term]}}}}
    made = for_node(spec, "n1")
    (kept,) = made["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"]
    assert kept["matchExpressions"] == term["matchExpressions"]
    assert node_of(Object(encode({"metadata": {}, "spec": made}))) == "n1"


@given(st.integers(1, 6), st.integers(1, 3), st.data())
def test_an_update_never_takes_down_more_than_it_may_and_ends(count, limit, data):
    """DSET2 as arithmetic: pods become available in any order."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": limit, "maxSurge": 0}}
    owner = Object(encode(daemon_set(updateStrategy=rolling)))
    some = [Object(encode({"metadata": {"name": f"n{n}"}})) for n in range(count)]

    def pod(node: str, mark: str, ready: bool) -> Object:
        labels = {"controller-revision-hash": mark}
        conditions = [{"type": "Ready", "status": "True"}] if ready else []
        metadata = {"name": f"{node}-{mark}", "uid": f"{node}-{mark}", "labels": labels}
        body = {"metadata": metadata, "spec": {"nodeName": node}, "status": {"conditions": conditions}}
        return Object(encode(body))

    pods = {f"n{n}": pod(f"n{n}", "old", True) for n in range(count)}
    for _ in range(60):
        steps = plan(situation(owner, "new", list(pods.values()), some, now), [])
        for one in steps.delete:
            pods.pop(node_of(one))
        for node in steps.create:
            pods[node] = pod(node, "new", False)
        ready = [p for p in pods.values() if p.view(core.Pod).status.conditions]
        assert len(ready) >= count - limit, "DSET2"
        waiting = [node for node, p in pods.items() if p not in ready]
        if waiting and data.draw(st.booleans()):
            node = data.draw(st.sampled_from(waiting))
            pods[node] = pod(node, "new", True)
    for node in list(pods):
        pods[node] = pods[node] if pods[node].name.endswith("old") else pod(node, "new", True)
    for _ in range(2 * count):
        steps = plan(situation(owner, "new", list(pods.values()), some, now), [])
        for one in steps.delete:
            pods.pop(node_of(one))
        pods.update({node: pod(node, "new", True) for node in steps.create})
    assert sorted(p.name for p in pods.values()) == [f"n{n}-new" for n in range(count)]
