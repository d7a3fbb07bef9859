"""KEP-5004, "Resource Quota": the two quotas of one device class are one, told to the real server and
quota controller."""

from typing import Any

import pytest

from allot.api import errors
from allot.apiserver import identities
from allot.controllers.quota import CONTROLLER, loop
from controllers.world import NS, World, tell
from kep.objects import ANNOTATION, GPU, GPU_CLASS, container, device_class, pod

EXTENDED = f"requests.{GPU}"
DEVICES = f"{GPU_CLASS}.deviceclass.resource.k8s.io/devices"
IMPLICIT = f"requests.deviceclass.resource.kubernetes.io/{GPU_CLASS}"


@pytest.fixture(autouse=True)
def short_moments(monkeypatch):
    monkeypatch.setattr(loop, "MOMENT_S", 0.02)
    monkeypatch.setattr(loop, "SETTLED_S", 0.1)


def told(story: Any) -> Any:
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

    async def look() -> bool:
        status = (await quotas(here).get("gpu", NS)).fields.get("status") or {}
        return (status.get("used") or {}) == dict.fromkeys((EXTENDED, DEVICES, IMPLICIT), str(count))

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


@told
async def test_a_claim_counts_in_both_quotas(here: World):
    """Resource Quota: the two mechanisms keep track of the usages of the same class the same way."""
    await here.claims.create(claim("c", 3))
    await both(here, 3)
    await here.claims.delete("c", NS)
    await both(here, 0)


@told
async def test_a_pod_that_a_driver_serves_counts_once_in_both(here: World):
    """Resource Quota: the same devices, asked for as an extended resource; the special claim adds nothing."""
    await here.pods.create(pod(container(gpu=3)))
    await both(here, 3)
    await special_claim(here, "p", 3)
    await here.quiet()
    await both(here, 3)
    await here.claims.delete("p-extended", NS)
    await here.pods.delete("p", NS, grace_period_s=0)
    await both(here, 0)


@told
async def test_a_pod_that_a_device_plugin_serves_counts_in_both(here: World):
    """Resource Quota: the claim quota must keep track of the devices from device plugins too. Nobody makes
    a claim for such a pod."""
    await here.pods.create(pod(container(gpu=2), nodeName="n"))
    await both(here, 2)
    await here.pods.patch("p", {"status": {"phase": "Succeeded"}}, NS, subresource="status")
    await both(here, 0)


@told
async def test_a_pod_may_use_the_class_by_its_own_name(here: World):
    """Implicit Extended Resource Name: every class can be asked for under the name made of its own."""
    await here.pods.create(pod(container(implicit=2)))
    await both(here, 2)
    await special_claim(here, "p", 2)
    await here.quiet()
    await both(here, 2)


@told
async def test_ten_devices_are_ten_however_they_are_asked_for(here: World):
    """Resource Quota: the example allows 10 devices in the namespace, by claims and by extended resources
    together."""
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


@told
async def test_differences_are_reconciled_away(here: World):
    """Resource Quota: the controller reconciles away the differences between the usage of the two."""
    await here.claims.create(claim("c", 3))
    await both(here, 3)
    spoiled = {"status": {"used": {EXTENDED: "1", DEVICES: "5", IMPLICIT: "3"}}}
    await quotas(here).patch("gpu", spoiled, NS, subresource="status")
    await both(here, 3)


@told
async def test_the_mapping_is_that_of_the_device_classes_now(here: World):
    """Resource Quota: the mapping between device class and extended resource is established from the
    device classes in the cluster."""
    classes = here.client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
    await here.claims.create(claim("c", 2))
    await here.pods.create(pod(container(gpu=1)))
    await both(here, 3)
    await classes.patch(GPU_CLASS, {"spec": {"extendedResourceName": "example.com/other"}})

    async def apart() -> bool:
        status = (await quotas(here).get("gpu", NS)).fields["status"]
        return status["used"] == {EXTENDED: "1", DEVICES: "2", IMPLICIT: "2"}

    await here.until(apart)
    await classes.patch(GPU_CLASS, {"spec": {"extendedResourceName": GPU}})
    await both(here, 3)


@told
async def test_the_controller_may_list_device_classes(here: World):
    """Resource Quota: for that, the controller needs the permission to list the device classes."""
    its = here.server.client(identities.controller("resourcequota-controller"))
    found = await its.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False).list()
    assert [one.name for one in found.objects] == [GPU_CLASS]
