"""Counting what a namespace uses, over the real server and with the controller's own rights."""

import asyncio
from typing import Any

import pytest

from allot.api import Request, errors
from allot.controllers.quota import CONTROLLER, loop
from controllers.resourceclaims.objects import freeze
from controllers.world import NS, World, tell

DEVICES = "gpu.example.com.deviceclass.resource.k8s.io/devices"
IMPLICIT = "requests.deviceclass.resource.kubernetes.io/gpu.example.com"
EXTENDED = "requests.example.com/gpu"
CONTAINER = {"name": "main", "image": "app:1"}


@pytest.fixture(autouse=True)
def short_moments(monkeypatch):
    monkeypatch.setattr(loop, "MOMENT_S", 0.02)
    monkeypatch.setattr(loop, "SETTLED_S", 0.1)


def quotas(here: World):
    return here.client.resource("", "v1", "resourcequotas")


async def quota(here: World, hard: dict[str, str], name: str = "q", **spec: Any) -> None:
    await quotas(here).create({"metadata": {"name": name}, "spec": {"hard": hard, **spec}}, NS)


async def used(here: World, wanted: dict[str, str], name: str = "q") -> None:
    """Wait until exactly this is used."""

    async def is_so() -> bool:
        status = (await quotas(here).get(name, NS)).fields.get("status") or {}
        return status.get("used") == wanted and status["hard"].keys() == wanted.keys()

    try:
        await here.until(is_so)
    except AssertionError:
        assert (await quotas(here).get(name, NS)).fields.get("status") == wanted


async def config_map(here: World, name: str) -> None:
    await here.client.resource("", "v1", "configmaps").create({"metadata": {"name": name}}, NS)


async def delete_config_map(here: World, name: str) -> None:
    await here.client.resource("", "v1", "configmaps").delete(name, NS)


async def pod(here: World, name: str = "p", **requests: str):
    amounts = {key.replace("gpu", "example.com/gpu"): amount for key, amount in requests.items()}
    container = {**CONTAINER, "resources": {"requests": amounts, "limits": amounts}}
    return await here.pods.create({"metadata": {"name": name}, "spec": {"containers": [container]}}, NS)


async def finish(here: World, name: str = "p") -> None:
    await here.pods.patch(name, {"status": {"phase": "Succeeded"}}, NS, subresource="status")


async def claim(here: World, name: str, count: int = 1, **metadata: Any) -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com", "count": count}}
    spec = {"devices": {"requests": [request]}}
    await here.claims.create({"metadata": {"name": name, "namespace": NS, **metadata}, "spec": spec})


async def device_class(here: World, extended: str | None) -> None:
    classes = here.client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
    spec = {"extendedResourceName": extended}
    try:
        await classes.create({"metadata": {"name": "gpu.example.com"}, "spec": spec})
    except errors.AlreadyExists:
        await classes.patch("gpu.example.com", {"spec": spec})


def test_what_was_there_before_the_quota_is_counted():
    async def story(here: World) -> None:
        for n in range(3):
            await config_map(here, f"m{n}")
        await quota(here, {"configmaps": "5", "count/configmaps": "5", "count/deployments.apps": "1"})
        await used(here, {"configmaps": "3", "count/configmaps": "3", "count/deployments.apps": "0"})

    tell(story, CONTROLLER)


def test_what_is_deleted_is_given_back():
    async def story(here: World) -> None:
        await quota(here, {"configmaps": "2"})
        await used(here, {"configmaps": "0"})
        await config_map(here, "a")
        await config_map(here, "b")
        with pytest.raises(errors.Forbidden):
            await config_map(here, "c")
        await delete_config_map(here, "a")
        await used(here, {"configmaps": "1"})
        await config_map(here, "c")
        await used(here, {"configmaps": "2"})

    tell(story, CONTROLLER)


def test_a_pod_gives_back_when_it_has_finished():
    """And stays an object until it is deleted."""

    async def story(here: World) -> None:
        await quota(here, {"requests.cpu": "4", "pods": "4", "count/pods": "4"})
        await used(here, {"requests.cpu": "0", "pods": "0", "count/pods": "0"})
        await pod(here, cpu="1500m")
        await used(here, {"requests.cpu": "1500m", "pods": "1", "count/pods": "1"})
        await finish(here)
        await used(here, {"requests.cpu": "0", "pods": "0", "count/pods": "1"})
        await here.pods.delete("p", NS)
        await used(here, {"requests.cpu": "0", "pods": "0", "count/pods": "0"})

    tell(story, CONTROLLER)


def test_new_terms_are_counted():
    async def story(here: World) -> None:
        await config_map(here, "m")
        await quota(here, {"secrets": "5"})
        await used(here, {"secrets": "0"})
        await quotas(here).patch("q", {"spec": {"hard": {"configmaps": "5", "secrets": None}}}, NS)
        await used(here, {"configmaps": "1"})

    tell(story, CONTROLLER)


def test_each_quota_counts_what_is_in_its_scope():
    async def story(here: World) -> None:
        await quota(here, {"pods": "9"}, "lasting", scopes=["NotTerminating"])
        await quota(here, {"pods": "9"}, "ending", scopes=["Terminating"])
        await used(here, {"pods": "0"}, "lasting")
        await used(here, {"pods": "0"}, "ending")
        await pod(here)
        spec = {"containers": [CONTAINER], "activeDeadlineSeconds": 60}
        await here.pods.create({"metadata": {"name": "e"}, "spec": spec}, NS)
        await used(here, {"pods": "1"}, "ending")
        await used(here, {"pods": "1"}, "lasting")
        await here.pods.delete("e", NS)
        await used(here, {"pods": "0"}, "ending")

    tell(story, CONTROLLER)


def test_claims_are_counted_by_class():
    async def story(here: World) -> None:
        await claim(here, "before", 2)
        await quota(here, {DEVICES: "9", "count/resourceclaims.resource.k8s.io": "9"})
        await used(here, {DEVICES: "2", "count/resourceclaims.resource.k8s.io": "1"})
        await claim(here, "after", 3)
        await used(here, {DEVICES: "5", "count/resourceclaims.resource.k8s.io": "2"})
        await here.claims.delete("before", NS)
        await used(here, {DEVICES: "3", "count/resourceclaims.resource.k8s.io": "1"})

    tell(story, CONTROLLER)


def test_when_a_class_takes_another_extended_name_its_names_agree_again():
    """KEP-5004: the controller reconciles away the differences."""

    async def story(here: World) -> None:
        await claim(here, "c", 2)
        await quota(here, {DEVICES: "9", IMPLICIT: "9", EXTENDED: "9", "requests.other.com/gpu": "9"})
        await used(here, {DEVICES: "2", IMPLICIT: "2", EXTENDED: "0", "requests.other.com/gpu": "0"})
        await device_class(here, "example.com/gpu")
        await used(here, {DEVICES: "2", IMPLICIT: "2", EXTENDED: "2", "requests.other.com/gpu": "0"})
        await device_class(here, "other.com/gpu")
        await used(here, {DEVICES: "2", IMPLICIT: "2", EXTENDED: "0", "requests.other.com/gpu": "2"})

    tell(story, CONTROLLER)


def test_a_pod_and_its_claim_are_counted_once_all_their_life():
    async def story(here: World) -> None:
        hard = {DEVICES: "9", IMPLICIT: "9", EXTENDED: "9"}
        await device_class(here, "example.com/gpu")
        await quota(here, hard)
        await used(here, dict.fromkeys(hard, "0"))
        asker = await pod(here, gpu="2")
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": asker.uid, "controller": True}
        mark = {"resource.kubernetes.io/extended-resource-claim": "true"}
        await claim(here, "p-extended", 2, ownerReferences=[owner], annotations=mark)
        await used(here, dict.fromkeys(hard, "2"))
        await quotas(here).patch(
            "q", {"status": {"used": dict.fromkeys(hard, "7")}}, NS, subresource="status"
        )
        await used(here, dict.fromkeys(hard, "2"))
        await finish(here)
        await here.quiet()
        await used(here, dict.fromkeys(hard, "2"))
        await here.claims.delete("p-extended", NS)
        await used(here, dict.fromkeys(hard, "0"))

    tell(story, CONTROLLER)


def test_a_status_that_somebody_spoiled_is_mended():
    async def story(here: World) -> None:
        await config_map(here, "m")
        await quota(here, {"configmaps": "5"})
        await used(here, {"configmaps": "1"})
        for wrong in ("0", "4"):
            status = {"status": {"used": {"configmaps": wrong}}}
            await quotas(here).patch("q", status, NS, subresource="status")
            await used(here, {"configmaps": "1"})

    tell(story, CONTROLLER)


def test_custom_resources_are_counted_from_the_day_they_are_defined():
    async def story(here: World) -> None:
        await quota(here, {"count/widgets.example.com": "1"})
        await used(here, {"count/widgets.example.com": "0"})
        names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
        version: dict[str, Any] = {"name": "v1", "served": True, "storage": True}
        version["schema"] = {"openAPIV3Schema": {"type": "object"}}
        spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
        definitions = here.client.resource(
            "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
        )
        await definitions.create({"metadata": {"name": "widgets.example.com"}, "spec": spec})
        widgets = here.client.resource("example.com", "v1", "widgets")
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}

        async def made() -> bool:
            try:
                return bool(await widgets.create(widget, NS))
            except errors.NotFound:
                return False

        await here.until(made)
        await used(here, {"count/widgets.example.com": "1"})
        await here.quiet()
        await asyncio.sleep(loop.NOT_YET_SERVED_S)
        await widgets.delete("w", NS)
        await used(here, {"count/widgets.example.com": "0"})

    tell(story, CONTROLLER)


@pytest.mark.parametrize("more", [{"scope": "Cluster"}, {"served": False}])
def test_a_kind_that_will_never_be_counted_is_not_waited_for(more):
    """Issue 4, must hold 4: it is defined, and outside of namespaces, or not served."""

    async def story(here: World) -> None:
        await quota(here, {"count/widgets.example.com": "1"})
        names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
        version = {"name": "v1", "served": more.get("served", True), "storage": True}
        version["schema"] = {"openAPIV3Schema": {"type": "object"}}
        scope = more.get("scope", "Namespaced")
        spec = {"group": "example.com", "scope": scope, "names": names, "versions": [version]}
        definitions = here.client.resource(
            "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
        )
        await definitions.create({"metadata": {"name": "widgets.example.com"}, "spec": spec})
        await asyncio.sleep(0.5)
        before = len(here.wire.requests)
        await asyncio.sleep(loop.NOT_YET_SERVED_S + 0.5)
        assert here.wire.requests[before:] == []

    tell(story, CONTROLLER)


def test_what_is_charged_while_the_controller_counts_is_not_forgotten():
    """Between its list and its write somebody makes another object: the write is refused, not the object."""

    async def story(here: World) -> None:
        await quota(here, {"configmaps": "5"})
        await used(here, {"configmaps": "0"})
        await config_map(here, "a")
        await config_map(here, "b")
        await here.quiet()

        written, looked_at = asyncio.Event(), asyncio.Event()

        async def meanwhile(request: Request) -> None:
            if written.is_set():
                await looked_at.wait()
            elif request.method == "PUT":
                await config_map(here, "c")
                written.set()

        here.wire.before = meanwhile
        await delete_config_map(here, "a")
        await written.wait()
        await here.quiet()
        await used(here, {"configmaps": "3"})  # and not the one that the list showed
        looked_at.set()
        await used(here, {"configmaps": "2"})

    tell(story, CONTROLLER)


def test_nothing_is_given_back_on_the_word_of_a_cache_that_is_behind():
    """It missed an object, and shows another one's end late: the server is asked what there is."""

    async def story(here: World) -> None:
        await quota(here, {"configmaps": "5"})
        await used(here, {"configmaps": "0"})
        await config_map(here, "a")
        await config_map(here, "b")
        await here.quiet()
        await freeze(here, "configmaps")
        await config_map(here, "c")
        await delete_config_map(here, "b")
        await here.quiet()  # the quota that was charged for c is looked at again after a while
        await used(here, {"configmaps": "2"})
        assert here.wire.count("GET", "/configmaps") >= 2

    tell(story, CONTROLLER)


def test_a_claim_that_nobody_has_heard_of_pays_when_its_pod_no_longer_does():
    """The claim of an extended resource is made without a charge, since its pod has paid, so the quota's
    version tells nothing about it. The pod ends while the cache of claims is behind (seed 244)."""

    async def story(here: World) -> None:
        hard = {DEVICES: "9", EXTENDED: "9"}
        await device_class(here, "example.com/gpu")
        await quota(here, hard)
        await used(here, dict.fromkeys(hard, "0"))
        asker = await pod(here, gpu="2")
        await here.quiet()
        await claim(here, "elsewhere", namespace="kube-public")  # claims are heard of beyond the charge
        await here.quiet()
        await freeze(here, "resourceclaims")
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": asker.uid, "controller": True}
        mark = {"resource.kubernetes.io/extended-resource-claim": "true"}
        await claim(here, "p-extended", 2, ownerReferences=[owner], annotations=mark)
        await finish(here)
        await here.quiet()
        await used(here, dict.fromkeys(hard, "2"))

    tell(story, CONTROLLER)


def test_what_goes_costs_one_write_however_much_stays():
    """The cache has heard of more than the last charge, so it need not be asked what is left."""

    async def story(here: World) -> None:
        await quota(here, {"configmaps": "100"})
        await used(here, {"configmaps": "0"})
        for n in range(30):
            await config_map(here, f"m{n}")
        await used(here, {"configmaps": "30"})
        await here.quiet()
        before = list(here.wire.requests)
        await delete_config_map(here, "m7")
        await used(here, {"configmaps": "29"})
        await here.quiet()
        assert [one.method for one in here.wire.requests[len(before) :]] == ["PUT"]

    tell(story, CONTROLLER)


def test_objects_that_come_cost_no_requests():
    async def story(here: World) -> None:
        await quota(here, {"configmaps": "100"})
        await used(here, {"configmaps": "0"})
        await here.quiet()
        before = len(here.wire.requests)
        for n in range(20):
            await config_map(here, f"m{n}")
        await here.quiet()
        assert len(here.wire.requests) == before
        await used(here, {"configmaps": "20"})

    tell(story, CONTROLLER)


def test_many_that_go_at_once_are_counted_together():
    async def story(here: World) -> None:
        await quota(here, {"configmaps": "100"})
        await used(here, {"configmaps": "0"})
        for n in range(40):
            await config_map(here, f"m{n}")
        await here.quiet()
        before = len(here.wire.requests)
        await here.client.resource("", "v1", "configmaps").delete_collection(NS)
        await used(here, {"configmaps": "0"})
        assert len(here.wire.requests) - before < 20

    tell(story, CONTROLLER)


def test_a_copy_that_takes_over_counts_what_went_meanwhile():
    async def story(here: World) -> None:
        await quota(here, {"configmaps": "5"})
        await used(here, {"configmaps": "0"})
        await config_map(here, "m")
        await here.stop()
        await delete_config_map(here, "m")
        await here.start()
        await used(here, {"configmaps": "0"})

    tell(story, CONTROLLER)


def test_charges_and_counts_do_not_get_lost_in_each_other():
    """Creates and deletes go on while the controller counts: at the end all is as it is."""

    async def story(here: World) -> None:
        await quota(here, {"configmaps": "12"})
        await used(here, {"configmaps": "0"})
        maps = here.client.resource("", "v1", "configmaps")

        async def work(n: int) -> int:
            made = 0
            for turn in range(12):
                try:
                    await config_map(here, f"m{n}-{turn}")
                except errors.Forbidden:
                    await asyncio.sleep(0.02)
                    continue
                made += 1
                assert len((await maps.list(NS)).objects) <= 12
                if (n + turn) % 4:
                    await delete_config_map(here, f"m{n}-{turn}")
            return made

        made = sum(await asyncio.gather(*(work(n) for n in range(8))))
        left = len((await maps.list(NS)).objects)
        assert made > 12 >= left
        await used(here, {"configmaps": str(left)})

    tell(story, CONTROLLER)
