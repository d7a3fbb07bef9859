"""Replica sets over the real server."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from allot.api import Object, Request, errors
from allot.controllers.replicasets import CONTROLLER
from controllers.kubelet import make_ready
from controllers.world import NS, World, tell

TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "app:1"}]},
}


def replica_set(name: str = "web", replicas: int = 3, **spec: Any) -> dict[str, Any]:
    wanted = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE, **spec}
    metadata = {"name": name, "namespace": NS}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": wanted}


def sets(here: World):
    return here.client.resource("apps", "v1", "replicasets")


async def pods(here: World) -> tuple[Object, ...]:
    return (await here.pods.list(NS)).objects


async def settled(here: World, replicas: int, **status: int) -> tuple[Object, ...]:
    """There are so many pods, and the status says so."""

    async def so() -> Any:
        found = await pods(here)
        live = await sets(here).get("web", NS)
        said = live.fields.get("status") or {}
        wanted = {"replicas": replicas, "observedGeneration": live.metadata.generation, **status}
        is_so = len(found) == replicas and all(said.get(name, 0) == n for name, n in wanted.items())
        return [found] if is_so else None

    return (await here.until(so))[0]


def test_it_makes_pods_of_its_template_and_owns_them():
    async def story(here: World) -> None:
        made = await sets(here).create(replica_set())
        for pod in await settled(here, 3, fullyLabeledReplicas=3, readyReplicas=0):
            owner = pod.fields["metadata"]["ownerReferences"][0]
            assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (made.uid, True, True)
            assert pod.fields["metadata"]["generateName"] == "web-"
            assert pod.metadata.labels == {"app": "web"}

    tell(story, CONTROLLER)


def test_it_scales_up_and_down_and_replaces_what_goes():
    """RSET3."""

    async def story(here: World) -> None:
        await sets(here).create(replica_set(replicas=1))
        (first,) = await settled(here, 1)
        await sets(here).scale("web", NS, 5)
        await settled(here, 5)
        await here.pods.delete(first.name, NS)
        assert first.uid not in {pod.uid for pod in await settled(here, 5)}
        await sets(here).scale("web", NS, 0)
        await settled(here, 0)

    tell(story, CONTROLLER)


def test_ready_pods_are_the_last_to_go():
    async def story(here: World) -> None:
        await sets(here).create(replica_set(replicas=4))
        found = await settled(here, 4)
        kept = {found[1].name, found[3].name}
        for name in sorted(kept):
            await make_ready(here.client, name)
        await settled(here, 4, readyReplicas=2, availableReplicas=2)
        await sets(here).scale("web", NS, 2)
        assert {pod.name for pod in await settled(here, 2, readyReplicas=2)} == kept

    tell(story, CONTROLLER)


def test_a_ready_pod_is_available_after_a_while():
    async def story(here: World) -> None:
        await sets(here).create(replica_set(replicas=1, minReadySeconds=2))
        (pod,) = await settled(here, 1)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": now}
        status = {"status": {"phase": "Running", "conditions": [condition]}}
        await here.pods.patch(pod.name, status, NS, subresource="status")
        await settled(here, 1, readyReplicas=1, availableReplicas=0)
        await settled(here, 1, readyReplicas=1, availableReplicas=1)

    tell(story, CONTROLLER)


def test_finished_pods_are_replaced_and_left_to_be_read():
    async def story(here: World) -> None:
        await sets(here).create(replica_set(replicas=1))
        (pod,) = await settled(here, 1)
        await here.pods.patch(pod.name, {"status": {"phase": "Failed"}}, NS, subresource="status")

        async def two() -> bool:
            return len(await pods(here)) == 2

        await here.until(two)

    tell(story, CONTROLLER)


def test_pods_that_match_and_are_free_are_adopted_and_others_are_not():
    """RSET2."""

    async def story(here: World) -> None:
        body = {"apiVersion": "v1", "kind": "Pod", "spec": TEMPLATE["spec"]}
        other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u", "controller": True}
        free = {"name": "free", "namespace": NS, "labels": {"app": "web"}}
        await here.pods.create({**body, "metadata": free})
        await here.pods.create({**body, "metadata": {**free, "name": "taken", "ownerReferences": [other]}})
        made = await sets(here).create(replica_set(replicas=2))

        async def adopted() -> bool:
            owners = (await here.pods.get("free", NS)).fields["metadata"].get("ownerReferences") or []
            return [one["uid"] for one in owners] == [made.uid]

        await here.until(adopted)
        await here.quiet()
        assert len(await pods(here)) == 3
        taken = await here.pods.get("taken", NS)
        assert taken.fields["metadata"]["ownerReferences"][0]["uid"] == "u"

    tell(story, CONTROLLER)


def test_a_pod_whose_labels_change_is_released_and_replaced():
    async def story(here: World) -> None:
        await sets(here).create(replica_set(replicas=1))
        (pod,) = await settled(here, 1)
        await here.pods.patch(pod.name, {"metadata": {"labels": {"app": "debug"}}}, NS)

        async def released() -> bool:
            return "ownerReferences" not in (await here.pods.get(pod.name, NS)).fields["metadata"]

        await here.until(released)

        async def replaced() -> bool:
            return len(await pods(here)) == 2

        await here.until(replaced)
        await here.quiet()
        assert len(await pods(here)) == 2

    tell(story, CONTROLLER)


def test_a_set_that_is_being_deleted_makes_nothing():
    async def story(here: World) -> None:
        held = replica_set(replicas=2)
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await sets(here).create(held)
        (pod, _) = await settled(here, 2)
        await sets(here).delete("web", NS)
        await here.quiet()
        await here.pods.delete(pod.name, NS)
        await here.quiet()
        assert len(await pods(here)) == 1

    tell(story, CONTROLLER)


def test_a_cache_that_is_behind_makes_nothing_twice():
    """RSET1: the set changes again and again while no pod is shown yet."""

    async def story(here: World) -> None:
        await sets(here).create(replica_set(replicas=20))
        for n in range(30):
            await sets(here).patch("web", {"metadata": {"annotations": {"n": str(n)}}}, NS)
            await asyncio.sleep(0)
        await settled(here, 20)
        assert here.wire.count("POST", "/pods") == 20
        assert here.wire.count("DELETE", "/pods") == 0

    tell(story, CONTROLLER)


def test_a_create_of_unknown_outcome_is_looked_up():
    """The answer to the first create is lost after the pod was made."""

    async def story(here: World) -> None:
        lost: list[str] = []
        send = here.wire._transport.send

        async def losing(request: Request) -> Any:
            response = await send(request)
            if request.method == "POST" and request.path.endswith("/pods") and not lost:
                lost.append(request.path)
                raise errors.Timeout("the outcome of the write is unknown")
            return response

        here.wire._transport.send = losing
        await sets(here).create(replica_set(replicas=3))
        await settled(here, 3)
        assert lost
        assert here.wire.count("POST", "/pods") == 3

    tell(story, CONTROLLER)


def test_what_cannot_be_made_is_told_once_and_tried_again_after_longer_and_longer():
    """The refusal names the pod, whose name is another one each time. Told anew in the status it was news
    of the set, which was looked at again at once: a hundred writes a second, for ever."""

    async def story(here: World) -> None:
        limits = {"spec": {"hard": {"pods": "0"}}, "metadata": {"name": "none", "namespace": NS}}
        quotas = here.client.resource("", "v1", "resourcequotas")
        await quotas.create({"apiVersion": "v1", "kind": "ResourceQuota", **limits})
        await quotas.patch(
            "none", {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}, NS, subresource="status"
        )
        await sets(here).create(replica_set(replicas=1))

        async def several() -> bool:
            return here.wire.count("POST", "/pods") >= 6

        await here.until(several)
        assert here.wire.count("PATCH", "/replicasets/web/status") <= 2, "the counts, and the failure"
        live = await sets(here).get("web", NS)
        (told,) = live.fields["status"]["conditions"]
        assert told["reason"] == "FailedCreate" and "exceeded quota" in told["message"]

    tell(story, CONTROLLER)


def test_what_cannot_be_made_is_told_in_the_status_and_by_an_event():
    async def story(here: World) -> None:
        template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "priorityClassName": "no-such-class"}}
        await sets(here).create(replica_set(template=template))

        async def failure() -> Any:
            live = await sets(here).get("web", NS)
            found = (live.fields.get("status") or {}).get("conditions") or []
            return found[0] if found else None

        told = await here.until(failure)
        assert (told["type"], told["status"], told["reason"]) == ("ReplicaFailure", "True", "FailedCreate")
        assert "no-such-class" in told["message"]
        classes = here.client.resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
        await classes.create(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "no-such-class"},
                "value": 1,
            }
        )
        await settled(here, 3)
        await here.until(lambda: _no_conditions(here))

    tell(story, CONTROLLER)


async def _no_conditions(here: World) -> bool:
    return not ((await sets(here).get("web", NS)).fields.get("status") or {}).get("conditions")


def test_a_restart_in_the_middle_neither_loses_nor_doubles():
    async def story(here: World) -> None:
        await sets(here).create(replica_set(replicas=30))

        async def begun() -> bool:
            return len(await pods(here)) > 3

        await here.until(begun)
        await here.stop()
        await here.start()
        await settled(here, 30)
        await here.quiet()
        assert len(await pods(here)) == 30

    tell(story, CONTROLLER)
