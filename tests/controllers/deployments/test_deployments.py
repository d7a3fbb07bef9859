"""Deployments over the real server, with the replica set controller beside them."""

import asyncio
from typing import Any

from allot.api import Object
from allot.controllers import deployments, replicasets
from controllers.kubelet import Kubelet
from controllers.world import NS, World, tell

BOTH = (deployments.CONTROLLER, replicasets.CONTROLLER)


def deployment(replicas: int = 3, image: str = "app:1", **spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }
    wanted = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
    metadata = {"name": "web", "namespace": NS}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": wanted}


def apps(here: World):
    return here.client.resource("apps", "v1", "deployments")


def sets(here: World):
    return here.client.resource("apps", "v1", "replicasets")


async def set_image(here: World, image: str) -> None:
    containers = [{"name": "main", "image": image}]
    await apps(here).patch("web", {"spec": {"template": {"spec": {"containers": containers}}}}, NS)


def condition(object: Object, type: str) -> dict[str, Any]:
    found = (object.fields.get("status") or {}).get("conditions") or []
    return next((one for one in found if one["type"] == type), {})


async def rolled_out(here: World, replicas: int) -> Object:
    """What `kubectl rollout status` waits for."""

    async def done() -> Any:
        live = await apps(here).get("web", NS)
        said = live.fields.get("status") or {}
        counts = [said.get(n, 0) for n in ("replicas", "updatedReplicas", "availableReplicas")]
        seen = said.get("observedGeneration") == live.metadata.generation
        done = condition(live, "Progressing").get("reason") == "NewReplicaSetAvailable"
        return live if seen and done and counts == [replicas] * 3 else None

    return await here.until(done)


async def images(here: World) -> list[str]:
    return [pod.fields["spec"]["containers"][0]["image"] for pod in (await here.pods.list(NS)).objects]


async def revisions(here: World) -> dict[str, int]:
    """image -> revision."""
    return {
        one.fields["spec"]["template"]["spec"]["containers"][0]["image"]: int(
            one.metadata.annotations["deployment.kubernetes.io/revision"]
        )
        for one in (await sets(here).list(NS)).objects
    }


def test_a_deployment_becomes_a_replica_set_and_pods():
    async def story(here: World) -> None:
        await apps(here).create(deployment())
        async with Kubelet(here.client):
            live = await rolled_out(here, 3)
        assert condition(live, "Available")["status"] == "True"
        assert live.metadata.annotations["deployment.kubernetes.io/revision"] == "1"
        (only,) = (await sets(here).list(NS)).objects
        mark = only.metadata.labels["pod-template-hash"]
        assert only.name == f"web-{mark}"
        assert only.fields["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": mark}
        for pod in (await here.pods.list(NS)).objects:
            assert pod.metadata.labels == {"app": "web", "pod-template-hash": mark}

    tell(story, *BOTH)


def test_a_rolling_update_replaces_all_pods_within_its_bounds():
    """ROLL1 and ROLL2, as seen by whoever counts pods."""

    async def story(here: World) -> None:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
        await apps(here).create(deployment(6, strategy=strategy))
        async with Kubelet(here.client) as kubelet:
            await rolled_out(here, 6)
            await asyncio.sleep(0.05)
            kubelet.forget()
            await set_image(here, "app:2")
            await rolled_out(here, 6)
            assert kubelet.most_pods <= 7
            assert kubelet.least_ready >= 5
        assert await images(here) == ["app:2"] * 6
        assert await revisions(here) == {"app:1": 1, "app:2": 2}

    tell(story, *BOTH)


def test_events_tell_of_scaling_and_of_nothing_else():
    """Without room for a surge the new set begins with no pod, which is no scaling."""

    async def story(here: World) -> None:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
        await apps(here).create(deployment(1, strategy=strategy))
        async with Kubelet(here.client):
            await rolled_out(here, 1)
            await set_image(here, "app:2")
            await rolled_out(here, 1)

        async def scalings() -> list[str]:
            found = (await here.client.resource("", "v1", "events").list(NS)).objects
            texts = [one.fields["message"] for one in found if one.fields["reason"] == "ScalingReplicaSet"]
            return [text.partition(" from ")[2] for text in texts]

        async def all_told() -> bool:
            return len(await scalings()) >= 3

        await here.until(all_told)
        await here.quiet()
        assert sorted(await scalings()) == ["0 to 1", "0 to 1", "1 to 0"]

    tell(story, *BOTH)


def test_a_broken_template_does_not_take_down_what_works():
    """The new pods never become ready: most of the old ones stay, and the deadline is told."""

    async def story(here: World) -> None:
        await apps(here).create(deployment(4, progressDeadlineSeconds=1))
        async with Kubelet(here.client, lambda pod: "broken" not in str(pod.fields["spec"])):
            await rolled_out(here, 4)
            await set_image(here, "broken:1")

            async def too_late() -> bool:
                live = await apps(here).get("web", NS)
                return condition(live, "Progressing").get("reason") == "ProgressDeadlineExceeded"

            await here.until(too_late)
            live = await apps(here).get("web", NS)
            assert condition(live, "Progressing")["status"] == "False"
            assert condition(live, "Available")["status"] == "True"
            assert (await images(here)).count("app:1") == 3
            await set_image(here, "app:1")
            await rolled_out(here, 4)
            assert await images(here) == ["app:1"] * 4

    tell(story, *BOTH)


def test_recreate_lets_all_old_pods_go_before_the_first_new_one_comes():
    async def story(here: World) -> None:
        await apps(here).create(deployment(3, strategy={"type": "Recreate"}))
        async with Kubelet(here.client) as kubelet:
            await rolled_out(here, 3)
            await asyncio.sleep(0.05)
            kubelet.forget()
            await set_image(here, "app:2")
            await rolled_out(here, 3)
            assert kubelet.most_pods <= 3
        assert await images(here) == ["app:2"] * 3

    tell(story, *BOTH)


def test_recreate_waits_for_pods_that_take_their_time():
    async def story(here: World) -> None:
        template = deployment()["spec"]["template"]
        template["spec"]["nodeName"] = "n1"  # bound pods are given time to end
        await apps(here).create(deployment(1, strategy={"type": "Recreate"}, template=template))
        async with Kubelet(here.client):
            await rolled_out(here, 1)
            (old,) = (await here.pods.list(NS)).objects
            await set_image(here, "app:2")

            async def ending() -> bool:
                return (await here.pods.get(old.name, NS)).metadata.deletion_timestamp is not None

            await here.until(ending)
            await here.quiet()
            assert await images(here) == ["app:1"]
            await here.pods.delete(old.name, NS, grace_period_s=0)
            await rolled_out(here, 1)
            assert await images(here) == ["app:2"]

    tell(story, *BOTH)


def test_scaling_needs_no_new_set():
    async def story(here: World) -> None:
        await apps(here).create(deployment(2))
        async with Kubelet(here.client):
            await rolled_out(here, 2)
            for size in (5, 0, 1):
                await apps(here).scale("web", NS, size)
                await rolled_out(here, size)
        assert len((await sets(here).list(NS)).objects) == 1

    tell(story, *BOTH)


def test_going_back_gives_the_old_set_the_next_number():
    """`kubectl rollout undo` writes the old template; `history` reads the numbers."""

    async def story(here: World) -> None:
        await apps(here).create(deployment(2))
        async with Kubelet(here.client):
            await rolled_out(here, 2)
            await set_image(here, "app:2")
            await rolled_out(here, 2)
            await set_image(here, "app:1")
            live = await rolled_out(here, 2)
        assert await revisions(here) == {"app:1": 3, "app:2": 2}
        await here.until(lambda: _has_revision(here, "3"))
        back = [one for one in (await sets(here).list(NS)).objects if one.fields["spec"]["replicas"]]
        assert back[0].metadata.annotations["deployment.kubernetes.io/revision-history"] == "1"
        assert live.uid

    tell(story, *BOTH)


async def _has_revision(here: World, number: str) -> bool:
    live = await apps(here).get("web", NS)
    return (live.metadata.annotations or {}).get("deployment.kubernetes.io/revision") == number


def test_history_is_kept_up_to_its_limit():
    async def story(here: World) -> None:
        await apps(here).create(deployment(1, revisionHistoryLimit=2))
        async with Kubelet(here.client):
            for n in range(2, 6):
                await rolled_out(here, 1)
                await set_image(here, f"app:{n}")
            await rolled_out(here, 1)

            async def trimmed() -> bool:
                return set(await revisions(here)) == {"app:3", "app:4", "app:5"}

            await here.until(trimmed)

    tell(story, *BOTH)


def test_a_paused_deployment_is_scaled_and_not_rolled():
    async def story(here: World) -> None:
        await apps(here).create(deployment(2))
        async with Kubelet(here.client):
            await rolled_out(here, 2)
            await apps(here).patch("web", {"spec": {"paused": True}}, NS)
            await set_image(here, "app:2")

            async def reported() -> bool:
                live = await apps(here).get("web", NS)
                return condition(live, "Progressing").get("reason") == "DeploymentPaused"

            await here.until(reported)
            await apps(here).scale("web", NS, 4)

            async def four() -> bool:
                return len(await images(here)) == 4

            await here.until(four)
            assert set(await images(here)) == {"app:1"}
            await apps(here).patch("web", {"spec": {"paused": None}}, NS)
            await rolled_out(here, 4)
            assert set(await images(here)) == {"app:2"}

    tell(story, *BOTH)


def test_annotations_reach_the_newest_set_and_stay_with_the_old_one():
    """`kubectl rollout history` shows the change cause of each revision."""

    async def story(here: World) -> None:
        cause = "kubernetes.io/change-cause"
        await apps(here).create(deployment(1))
        async with Kubelet(here.client):
            await rolled_out(here, 1)
            await apps(here).patch("web", {"metadata": {"annotations": {cause: "first"}}}, NS)

            async def causes() -> list[str]:
                found = (await sets(here).list(NS)).objects
                return sorted((one.metadata.annotations or {}).get(cause, "") for one in found)

            async def is_first() -> bool:
                return await causes() == ["first"]

            await here.until(is_first)
            await set_image(here, "app:2")
            await apps(here).patch("web", {"metadata": {"annotations": {cause: "second"}}}, NS)
            await rolled_out(here, 1)

            async def both() -> bool:
                return await causes() == ["first", "second"]

            await here.until(both)

    tell(story, *BOTH)


def test_a_set_of_another_with_the_same_name_makes_the_name_change():
    """A collision is counted, and the count is part of the hash."""

    async def story(here: World) -> None:
        await apps(here).create(deployment(1, paused=True))
        live = await apps(here).get("web", NS)
        name = f"web-{deployments.revisions.template_hash(live)}"
        labels = {"app": "other"}
        template = {"metadata": {"labels": labels}, "spec": live.fields["spec"]["template"]["spec"]}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        metadata = {"name": name, "namespace": NS}
        body = {"apiVersion": "apps/v1", "kind": "ReplicaSet"}
        await sets(here).create({**body, "metadata": metadata, "spec": spec})
        await apps(here).patch("web", {"spec": {"paused": None}}, NS)
        async with Kubelet(here.client):
            live = await rolled_out(here, 1)
        assert live.fields["status"]["collisionCount"] == 1
        assert len((await sets(here).list(NS)).objects) == 2

    tell(story, *BOTH)


def test_a_rollout_survives_restarts():
    async def story(here: World) -> None:
        await apps(here).create(deployment(8))
        async with Kubelet(here.client):
            await rolled_out(here, 8)
            await set_image(here, "app:2")
            for _ in range(4):
                await asyncio.sleep(0.05)
                await here.stop()
                await here.start()
            await rolled_out(here, 8)
        assert await images(here) == ["app:2"] * 8
        assert await revisions(here) == {"app:1": 1, "app:2": 2}

    tell(story, *BOTH)
