"""KEP-5004, "Resource Quota": the two quotas of one device class are one, told to the real server and
quota controller."""

import asyncio
from typing import Any

import pytest

from allot.api import errors
from allot.apiserver import identities
from allot.controllers.quota import CONTROLLER, loop
from controllers.world import NS, World, tell
from kep.cluster import Place, to_a_cluster
from kep.objects import ANNOTATION, GPU, GPU_CLASS, container, device_class, node, pod, slice_
from kep.telling import Desk, to_the_server

EXTENDED = f"requests.{GPU}"
DEVICES = f"{GPU_CLASS}.deviceclass.resource.k8s.io/devices"
IMPLICIT = f"requests.deviceclass.resource.kubernetes.io/{GPU_CLASS}"


@pytest.fixture(autouse=True)
def short_moments(monkeypatch):
    monkeypatch.setattr(loop, "MOMENT_S", 0.02)
    monkeypatch.setattr(loop, "SETTLED_S", 0.1)


def with_the_quota(story: Any) -> Any:
    """A story in a namespace with the KEP's own quota, 10 under each name, and its device class."""

    def test() -> None:
        async def whole(here: World) -> None:
            classes = here.client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
            await classes.create(device_class())
            hard = dict.fromkeys((EXTENDED, DEVICES, IMPLICIT), "10")
            await quotas(here).create({"metadata": {"name": "gpu", "namespace": NS}, "spec": {"hard": hard}})
            await both(here, 0)
            await story(here)

        tell(whole, CONTROLLER)

    test.__name__, test.__doc__ = story.__name__, story.__doc__
    return test


def quotas(here: World):
    return here.client.resource("", "v1", "resourcequotas")


async def both(here: World, count: int) -> None:
    """Wait until every name of the class says so."""

    await used_is(here, dict.fromkeys((EXTENDED, DEVICES, IMPLICIT), str(count)))


async def used(here: World) -> dict[str, str]:
    status = (await quotas(here).get("gpu", NS)).fields.get("status") or {}
    return dict(status.get("used") or {})


async def used_is(here: World, wanted: dict[str, str]) -> None:
    async def look() -> bool:
        return await used(here) == wanted

    await here.until(look)


def claim(name: str, count: int, **metadata: Any) -> dict[str, Any]:
    request = {"name": "r", "exactly": {"deviceClassName": GPU_CLASS, "count": count}}
    spec = {"devices": {"requests": [request]}}
    return {"metadata": {"name": name, "namespace": NS, **metadata}, "spec": spec}


async def special_claim(here: World, name: str, count: int) -> None:
    """What the scheduler makes for a pod that is served by a driver."""
    owner = await here.pods.get(name, NS)
    reference = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": owner.uid, "controller": True}
    wanted = claim(f"{name}-extended", count, annotations={ANNOTATION: "true"}, ownerReferences=[reference])
    await here.claims.create(wanted)


@with_the_quota
async def test_a_claim_counts_in_both_quotas(here: World):
    """5004-QUOTA-01: Resource Quota: the two mechanisms keep track of the usages of the same class the same
    way."""
    await here.claims.create(claim("c", 3))
    await both(here, 3)
    await here.claims.delete("c", NS)
    await both(here, 0)


@with_the_quota
async def test_a_pod_that_a_driver_serves_counts_once_in_both(here: World):
    """5004-QUOTA-02: Resource Quota: the same devices, asked for as an extended resource; the special claim
    adds nothing."""
    await here.pods.create(pod(container(gpu=3)))
    await both(here, 3)
    await special_claim(here, "p", 3)
    await here.quiet()
    await both(here, 3)
    await here.claims.delete("p-extended", NS)
    await here.pods.delete("p", NS, grace_period_s=0)
    await both(here, 0)


@with_the_quota
async def test_a_pod_that_a_device_plugin_serves_counts_in_both(here: World):
    """5004-QUOTA-03, 5004-QUOTA-12: Resource Quota: the claim quota must keep track of the devices from
    device plugins too. Nobody makes a claim for such a pod."""
    await here.pods.create(pod(container(gpu=2), nodeName="n"))
    await both(here, 2)
    await here.pods.patch("p", {"status": {"phase": "Succeeded"}}, NS, subresource="status")
    await both(here, 0)


@with_the_quota
async def test_a_pod_may_use_the_class_by_its_own_name(here: World):
    """5004-QUOTA-04: Implicit Extended Resource Name: every class can be asked for under the name made of
    its own."""
    await here.pods.create(pod(container(implicit=2)))
    await both(here, 2)
    await special_claim(here, "p", 2)
    await here.quiet()
    await both(here, 2)


@with_the_quota
async def test_ten_devices_are_ten_however_they_are_asked_for(here: World):
    """5004-QUOTA-05: Resource Quota: the example allows 10 devices in the namespace, by claims and by
    extended resources together."""
    await here.claims.create(claim("c", 4))
    await here.pods.create(pod(container(gpu=3), name="explicit"))
    await here.pods.create(pod(container(implicit=3), name="implicit"))
    await both(here, 10)
    with pytest.raises(errors.Forbidden, match="exceeded quota: gpu"):
        await here.claims.create(claim("one-more", 1))
    for number, more in enumerate((container(gpu=1), container(implicit=1))):
        with pytest.raises(errors.Forbidden, match="exceeded quota: gpu"):
            await here.pods.create(pod(more, name=f"one-more-{number}"))
    await here.claims.delete("c", NS)
    await both(here, 6)
    await here.pods.create(pod(container(gpu=4), name="fits"))
    await both(here, 10)


@with_the_quota
async def test_differences_are_reconciled_away(here: World):
    """5004-QUOTA-06: Resource Quota: the controller reconciles away the differences between the usage of the
    two."""
    await here.claims.create(claim("c", 3))
    await both(here, 3)
    for told in ("1", "5", "3"), ("3", "3", "5"):
        spoiled = {"status": {"used": dict(zip((EXTENDED, DEVICES, IMPLICIT), told, strict=True))}}
        await quotas(here).patch("gpu", spoiled, NS, subresource="status")
        await both(here, 3)


@with_the_quota
async def test_the_mapping_is_that_of_the_device_classes_now(here: World):
    """5004-QUOTA-07: Resource Quota: the mapping between device class and extended resource is established
    from the device classes in the cluster."""
    classes = here.client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
    await here.claims.create(claim("c", 2))
    await here.pods.create(pod(container(gpu=1)))
    await both(here, 3)
    await classes.patch(GPU_CLASS, {"spec": {"extendedResourceName": "example.com/other"}})

    apart = {EXTENDED: "1", DEVICES: "2", IMPLICIT: "2"}
    await used_is(here, apart)
    await classes.patch(GPU_CLASS, {"spec": {"extendedResourceName": GPU}})
    await both(here, 3)
    await classes.patch(GPU_CLASS, {"spec": {"extendedResourceName": None}})
    await used_is(here, apart)


@with_the_quota
async def test_of_several_classes_only_the_one_that_serves_the_name_counts_under_it(here: World):
    """5004-QUOTA-08: the class created last takes the name over, and gives it back when it goes. The names of
    the class that lost it still agree with each other."""
    classes = here.client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
    await here.claims.create(claim("c", 2))
    await here.pods.create(pod(container(gpu=1)))
    await both(here, 3)
    await asyncio.sleep(1.05)  # times are written to the second
    await classes.create(device_class("other.example.com"))
    await used_is(here, {EXTENDED: "1", DEVICES: "2", IMPLICIT: "2"})
    await here.claims.create(claim("d", 1))
    await here.pods.create(pod(container(gpu=4), name="q"))
    assert await used(here) == {EXTENDED: "5", DEVICES: "3", IMPLICIT: "3"}  # when they are made
    await here.quiet()
    assert await used(here) == {EXTENDED: "5", DEVICES: "3", IMPLICIT: "3"}
    await classes.delete("other.example.com")
    await both(here, 8)


@with_the_quota
async def test_of_classes_of_one_second_the_first_by_name_counts(here: World):
    """5004-QUOTA-08: as the scheduler has it. Made until both are of one second."""
    classes = here.client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
    await here.claims.create(claim("c", 2))
    await both(here, 2)
    for _ in range(20):
        await classes.delete(GPU_CLASS)
        made = [await classes.create(device_class(name)) for name in ("other.example.com", GPU_CLASS)]
        if len({one.metadata.creation_timestamp for one in made}) == 1:
            break
        await classes.delete("other.example.com")
    assert len({one.metadata.creation_timestamp for one in made}) == 1
    await here.pods.create(pod(container(gpu=1)))
    await both(here, 3)


@with_the_quota
async def test_init_containers_count_where_the_pod_needs_most(here: World):
    """5004-QUOTA-09: three for a moment, two later, of which one beside the other."""
    init = [container("setup", gpu=3), container("proxy", keeps_running=True, gpu=1)]
    await here.pods.create(pod(container(gpu=1), init=init))
    await both(here, 3)
    await here.pods.create(pod(container(gpu=2), init=[container("setup", gpu=1)], name="q"))
    await both(here, 5)


@with_the_quota
async def test_the_controller_may_list_device_classes(here: World):
    """5004-QUOTA-14: Resource Quota: for that, the controller needs the permission to list the device
    classes."""
    its = here.server.client(identities.controller("resourcequota-controller"))
    found = await its.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False).list()
    assert [one.name for one in found.objects] == [GPU_CLASS]


# -- with the scheduler's own claim ------------------------------------------------------------------


async def limited(here: Place, **hard: str) -> None:
    """A quota of that much in the cluster's namespace, counted by its controller."""
    await here.start_controllers((CONTROLLER,))
    made = {"metadata": {"name": "gpu", "namespace": NS}, "spec": {"hard": hard}}
    await here.client.resource("", "v1", "resourcequotas").create(made)
    await counted(here, dict.fromkeys(hard, "0"))
    await here.put(device_class(), node(), slice_())


async def counted(here: Place, wanted: dict[str, str]) -> None:
    async def look() -> bool:
        found = await here.client.resource("", "v1", "resourcequotas").get("gpu", NS)
        return (found.fields.get("status") or {}).get("used") == wanted

    await here.until(look, f"used: {wanted}")


COUNT = "count/resourceclaims.resource.k8s.io"


@to_a_cluster()
async def test_the_claim_that_the_scheduler_makes_adds_nothing(here: Place):
    """5004-QUOTA-02, 5004-QUOTA-12, 5004-QUOTA-13: but for being a claim. What the pod used is given
    back when it has finished."""
    names = (EXTENDED, DEVICES, IMPLICIT)
    await limited(here, **dict.fromkeys((*names, COUNT), "3"))
    await here.put(pod(container(gpu=2), container("other", implicit=1)))
    await here.settled()
    assert len(await here.extended_claims()) == 1
    await counted(here, {**dict.fromkeys(names, "3"), COUNT: "1"})
    await here.quiet()
    await counted(here, {**dict.fromkeys(names, "3"), COUNT: "1"})
    await here.finish()
    await counted(here, dict.fromkeys((*names, COUNT), "0"))


@to_a_cluster()
async def test_where_no_more_claims_are_allowed_the_pod_says_so_and_is_tried_again(here: Place):
    """5004-QUOTA-13."""
    await limited(here, **{COUNT: "1"})
    await here.claim("mine", device_class=GPU_CLASS)
    await here.put(pod())
    assert "exceeded quota: gpu" in await here.why_not()
    assert await here.held() == {}
    await here.resource("resourceclaims").delete("mine", NS)
    await here.settled()
    assert len(await here.extended_claims()) == 1


# -- without the feature -----------------------------------------------------------------------------


@to_the_server(DRAExtendedResource=False)
async def test_with_the_gate_off_claims_do_not_count_under_names_of_extended_resources(here: Desk):
    """5004-QUOTA-15: nor pods under the devices of a class."""
    limits = here.client.resource("", "v1", "resourcequotas")
    hard = dict.fromkeys((EXTENDED, DEVICES, IMPLICIT), "10")
    made = await limits.create({"metadata": {"name": "gpu", "namespace": NS}, "spec": {"hard": hard}})
    await limits.update_status(made.changed({"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}))
    await here.classes.create(device_class())
    await here.claims.create(claim("c", 2))
    await here.pods.create(pod(container(gpu=3)))
    found = (await limits.get("gpu", NS)).fields["status"]["used"]
    assert found == {EXTENDED: "3", DEVICES: "2", IMPLICIT: "0"}
