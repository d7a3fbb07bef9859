"""Stateful sets over the real server."""

from typing import Any

from allot.api import Object
from allot.client import Propagation
from allot.controllers import garbagecollection, resourceclaims, statefulsets
from controllers.kubelet import Kubelet, make_ready
from controllers.world import NS, World, tell

CONTROLLER = statefulsets.CONTROLLER


def stateful_set(image: str = "db:1", pod: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [{"name": "main", "image": image}], **(pod or {})},
    }
    wanted = {"selector": {"matchLabels": {"app": "db"}}, "template": template, "serviceName": "db", **spec}
    metadata = {"name": "db", "namespace": NS}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": wanted}


def sets(here: World):
    return here.client.resource("apps", "v1", "statefulsets")


async def images(here: World) -> dict[str, str]:
    """name -> image, of those that are not told to end."""
    found = (await here.pods.list(NS)).objects
    return {
        pod.name: pod.fields["spec"]["containers"][0]["image"]
        for pod in found
        if pod.metadata.deletion_timestamp is None
    }


async def settled(here: World, *names: str, image: str = "db:1") -> Object:
    """What `kubectl rollout status` waits for, with exactly these pods."""

    async def so() -> Any:
        live = await sets(here).get("db", NS)
        status = live.fields.get("status") or {}
        counts = ("replicas", "readyReplicas", "updatedReplicas", "currentReplicas", "availableReplicas")
        counted = all((status.get(name) or 0) == len(names) for name in counts)
        seen = status.get("observedGeneration") == live.metadata.generation
        same = status.get("currentRevision") == status.get("updateRevision")
        found = await images(here)
        return live if counted and seen and same and found == dict.fromkeys(names, image) else None

    return await here.until(so)


async def exactly(here: World, *names: str) -> None:
    """These pods come, and after a while there are still no others."""

    async def so() -> bool:
        return sorted(await images(here)) == sorted(names)

    await here.until(so)
    await here.quiet()
    assert await so()


async def set_image(here: World, image: str) -> None:
    container = {"name": "main", "image": image}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    await sets(here).patch("db", patch, NS)


def test_pods_come_one_after_the_other_each_when_the_one_before_is_ready():
    async def story(here: World) -> None:
        await sets(here).create(stateful_set(replicas=3))
        await exactly(here, "db-0")
        await make_ready(here.client, "db-0")
        await exactly(here, "db-0", "db-1")
        await make_ready(here.client, "db-1")
        await exactly(here, "db-0", "db-1", "db-2")
        await make_ready(here.client, "db-2")
        await settled(here, "db-0", "db-1", "db-2")

    tell(story, CONTROLLER)


def test_a_pod_knows_who_it_is():
    async def story(here: World) -> None:
        await sets(here).create(stateful_set(replicas=1, ordinals={"start": 7}))
        async with Kubelet(here.client):
            live = await settled(here, "db-7")
        pod = await here.pods.get("db-7", NS)
        assert pod.metadata.labels == {
            "app": "db",
            "controller-revision-hash": live.fields["status"]["updateRevision"],
            "statefulset.kubernetes.io/pod-name": "db-7",
            "apps.kubernetes.io/pod-index": "7",
        }
        assert (pod.fields["spec"]["hostname"], pod.fields["spec"]["subdomain"]) == ("db-7", "db")

    tell(story, CONTROLLER)


def test_a_set_is_scaled_down_from_its_last_pod_one_at_a_time():
    async def story(here: World) -> None:
        await sets(here).create(stateful_set(replicas=3, pod={"terminationGracePeriodSeconds": 30}))
        async with Kubelet(here.client):
            await settled(here, "db-0", "db-1", "db-2")
        for name in ("db-1", "db-2"):
            hold = {"metadata": {"finalizers": ["example.com/hold"]}}
            await here.pods.patch(name, hold, NS)
        await sets(here).scale("db", NS, 1)
        await exactly(here, "db-0", "db-1")
        await here.pods.patch("db-2", {"metadata": {"finalizers": None}}, NS)
        await exactly(here, "db-0")
        await here.pods.patch("db-1", {"metadata": {"finalizers": None}}, NS)
        await settled(here, "db-0")

    tell(story, CONTROLLER)


def test_a_parallel_set_waits_for_nobody():
    async def story(here: World) -> None:
        await sets(here).create(stateful_set(replicas=4, podManagementPolicy="Parallel"))
        await exactly(here, "db-0", "db-1", "db-2", "db-3")
        await sets(here).scale("db", NS, 1)
        await exactly(here, "db-0")

    tell(story, CONTROLLER)


def test_a_name_is_used_again_only_when_the_pod_that_had_it_is_gone():
    async def story(here: World) -> None:
        await sets(here).create(stateful_set(replicas=1))
        async with Kubelet(here.client):
            await settled(here, "db-0")
            first = await here.pods.get("db-0", NS)
            await here.pods.patch("db-0", {"metadata": {"finalizers": ["example.com/hold"]}}, NS)
            await here.pods.delete("db-0", NS)
            await here.quiet()
            assert (await here.pods.get("db-0", NS)).uid == first.uid
            assert here.wire.count("POST", "/pods") == 1
            await here.pods.patch("db-0", {"metadata": {"finalizers": None}}, NS)
            await settled(here, "db-0")
            assert (await here.pods.get("db-0", NS)).uid != first.uid

    tell(story, CONTROLLER)


def test_a_failed_pod_is_replaced_under_its_name():
    async def story(here: World) -> None:
        await sets(here).create(stateful_set(replicas=2))
        async with Kubelet(here.client):
            await settled(here, "db-0", "db-1")
            failed = await here.pods.get("db-0", NS)
            await here.pods.patch("db-0", {"status": {"phase": "Failed"}}, NS, subresource="status")

            async def replaced() -> bool:
                found = await here.find(here.pods, "db-0")
                return found is not None and found.uid != failed.uid

            await here.until(replaced)
            await settled(here, "db-0", "db-1")

    tell(story, CONTROLLER)


def test_an_update_begins_with_the_last_pod_and_never_takes_two():
    async def story(here: World) -> None:
        await sets(here).create(stateful_set(replicas=4))
        async with Kubelet(here.client) as kubelet:
            await settled(here, "db-0", "db-1", "db-2", "db-3")
            kubelet.forget()
            await set_image(here, "db:2")
            await settled(here, "db-0", "db-1", "db-2", "db-3", image="db:2")
            assert kubelet.least_ready >= 3
        deleted = [one.path.rsplit("/")[-1] for one in here.wire.requests if one.method == "DELETE"]
        assert deleted == ["db-3", "db-2", "db-1", "db-0"]

    tell(story, CONTROLLER)


def test_more_may_be_away_where_the_set_says_so():
    async def story(here: World) -> None:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
        await sets(here).create(stateful_set(replicas=4, updateStrategy=strategy))
        async with Kubelet(here.client):
            await settled(here, "db-0", "db-1", "db-2", "db-3")
        await set_image(here, "db:2")

        async def two_are_replaced() -> bool:
            gone = [one.path.rsplit("/")[-1] for one in here.wire.requests if one.method == "DELETE"]
            return gone == ["db-3", "db-2"]

        await here.until(two_are_replaced)
        await here.quiet()
        assert await two_are_replaced()

    tell(story, CONTROLLER)


def test_below_the_partition_pods_keep_the_old_template_also_when_they_are_made_anew():
    async def story(here: World) -> None:
        await sets(here).create(stateful_set(replicas=3))
        async with Kubelet(here.client):
            await settled(here, "db-0", "db-1", "db-2")
            partition = {"rollingUpdate": {"partition": 2}}
            await sets(here).patch("db", {"spec": {"updateStrategy": partition}}, NS)
            await set_image(here, "db:2")
            wanted = {"db-0": "db:1", "db-1": "db:1", "db-2": "db:2"}

            async def split() -> bool:
                status = (await sets(here).get("db", NS)).fields["status"]
                counted = (status.get("updatedReplicas"), status.get("currentReplicas"))
                return await images(here) == wanted and counted == (1, 2) and status["readyReplicas"] == 3

            await here.until(split)
            old = await here.pods.get("db-0", NS)
            await here.pods.delete("db-0", NS)

            async def back() -> bool:
                found = await here.find(here.pods, "db-0")
                return found is not None and found.uid != old.uid and await split()

            await here.until(back)
            await sets(here).patch(
                "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}, NS
            )
            await settled(here, "db-0", "db-1", "db-2", image="db:2")

    tell(story, CONTROLLER)


def test_a_template_that_never_becomes_ready_is_replaced_by_the_next_one():
    """Upstream waits for the broken pod until somebody deletes it."""

    async def story(here: World) -> None:
        await sets(here).create(stateful_set(replicas=2))
        good = lambda pod: pod.fields["spec"]["containers"][0]["image"] != "broken"  # noqa: E731
        async with Kubelet(here.client, accepts=good):
            await settled(here, "db-0", "db-1")
            await set_image(here, "broken")

            async def stuck() -> bool:
                return await images(here) == {"db-0": "db:1", "db-1": "broken"}

            await here.until(stuck)
            await here.quiet()
            assert await stuck()
            await set_image(here, "db:3")
            await settled(here, "db-0", "db-1", image="db:3")

    tell(story, CONTROLLER)


def test_on_delete_leaves_the_update_to_people():
    async def story(here: World) -> None:
        await sets(here).create(stateful_set(replicas=2, updateStrategy={"type": "OnDelete"}))
        async with Kubelet(here.client):
            await settled(here, "db-0", "db-1")
            await set_image(here, "db:2")
            await here.quiet()
            assert set((await images(here)).values()) == {"db:1"}
            await here.pods.delete("db-0", NS)

            async def replaced() -> bool:
                return await images(here) == {"db-0": "db:2", "db-1": "db:1"}

            await here.until(replaced)

    tell(story, CONTROLLER)


def test_going_back_to_a_template_gives_its_revision_the_next_number():
    async def story(here: World) -> None:
        revisions = here.client.resource("apps", "v1", "controllerrevisions")
        await sets(here).create(stateful_set(replicas=1))
        async with Kubelet(here.client):
            first = await settled(here, "db-0")
            await set_image(here, "db:2")
            await settled(here, "db-0", image="db:2")
            await set_image(here, "db:1")
            last = await settled(here, "db-0")
        name = first.fields["status"]["updateRevision"]
        assert last.fields["status"]["updateRevision"] == name
        numbers = {one.name: one.fields["revision"] for one in (await revisions.list(NS)).objects}
        assert sorted(numbers.values()) == [2, 3]
        assert numbers[name] == 3

    tell(story, CONTROLLER)


def test_every_pod_has_a_claim_of_its_own_and_a_new_one_when_it_comes_back():
    async def story(here: World) -> None:
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
        spec = {"spec": {"devices": {"requests": [request]}}}
        await here.templates.create({"metadata": {"name": "one", "namespace": NS}, "spec": spec})
        claims = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]}
        await sets(here).create(stateful_set(replicas=2, pod=claims))

        async def owners() -> dict[str, str]:
            """pod -> claim's uid"""
            found = (await here.claims.list(NS)).objects
            return {one.fields["metadata"]["ownerReferences"][0]["name"]: one.uid for one in found}

        async def both() -> Any:
            found = await owners()
            return found if set(found) == {"db-0", "db-1"} else None

        async with Kubelet(here.client):
            await settled(here, "db-0", "db-1")
            before = await here.until(both)
            await here.pods.delete("db-1", NS)

            async def renewed() -> bool:
                after = await owners()
                return "db-1" in after and after["db-1"] != before["db-1"]

            await here.until(renewed)
            assert (await owners())["db-0"] == before["db-0"]

    tell(story, CONTROLLER, resourceclaims.CONTROLLER, garbagecollection.CONTROLLER)


def test_pods_that_were_left_behind_are_adopted_if_they_have_a_name_of_the_set():
    async def story(here: World) -> None:
        await sets(here).create(stateful_set(replicas=2))
        stranger = {"metadata": {"name": "lone", "namespace": NS, "labels": {"app": "db"}}}
        spec = {"containers": [{"name": "main", "image": "db:1"}]}
        await here.pods.create({**stranger, "spec": spec})
        async with Kubelet(here.client):

            async def both() -> bool:
                return {"db-0", "db-1"} <= set(await images(here))

            await here.until(both)
            before = {pod.name: pod.uid for pod in (await here.pods.list(NS)).objects}
            await sets(here).delete("db", NS, propagation=Propagation.ORPHAN)

            async def gone() -> bool:
                return await here.find(sets(here), "db") is None

            await here.until(gone)
            made = await sets(here).create(stateful_set(replicas=2))

            async def adopted() -> bool:
                found = (await here.pods.list(NS)).objects
                owners = {
                    pod.name: [one["uid"] for one in pod.fields["metadata"].get("ownerReferences") or ()]
                    for pod in found
                }
                return owners == {"db-0": [made.uid], "db-1": [made.uid], "lone": []}

            await here.until(adopted)
            assert {pod.name: pod.uid for pod in (await here.pods.list(NS)).objects} == before

    tell(story, CONTROLLER, garbagecollection.CONTROLLER)


def test_claims_for_volumes_are_named_by_the_pod_and_the_server_warns_that_nobody_makes_them():
    async def story(here: World) -> None:
        claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
        mount = {"name": "data", "mountPath": "/data"}
        wanted = stateful_set(replicas=1, volumeClaimTemplates=[claim])
        wanted["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [mount]
        said: list[str] = []
        client = here.server.client(warn=said.append)
        await client.resource("apps", "v1", "statefulsets").create(wanted)
        assert [text for text in said if "volumeClaimTemplates" in text]
        await exactly(here, "db-0")
        volumes = (await here.pods.get("db-0", NS)).fields["spec"]["volumes"]
        assert {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}} in volumes

    tell(story, CONTROLLER)
