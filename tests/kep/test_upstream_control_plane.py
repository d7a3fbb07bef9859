"""What upstream's end-to-end and integration tests ask of the control plane, asked of ours.

Names and coverage are in docs/upstream-tests.md. The API server, the claim controller and the scheduler are
real; a story says when a pod has ended.
"""

import pytest

from kep.cluster import Place, reserved_for, to_a_cluster
from kep.objects import NS, claim_with, direct, inline, with_claims
from scheduler.cluster import claim_spec

CLAIMS = "resourceclaims"


async def gpus(here: Place, *nodes: str, count: int = 1) -> None:
    """The class `gpu`, and so many devices of it on each node."""
    await here.device_class()
    for name in nodes or ("n1",):
        await here.node(name)
        await here.devices(name, count)


async def claim_named(here: Place, name: str):
    return await here.resource(CLAIMS).get(name, NS)


def results(claim):
    return claim.fields["status"]["allocation"]["devices"]["results"]


# -- claims and pods -------------------------------------------------------------------------------


@to_a_cluster()
async def test_a_claim_from_a_template(here: Place):
    await gpus(here)
    await here.template()
    await here.put(with_claims("p", inline()))
    found = await here.settled()
    (status,) = found.fields["status"]["resourceClaimStatuses"]
    claim = await claim_named(here, status["resourceClaimName"])
    assert reserved_for(claim) == ["p"]
    assert [one["device"] for one in results(claim)] == ["gpu-0"]


@to_a_cluster()
async def test_a_claim_of_its_own(here: Place):
    """It outlives the pod, without its devices."""
    await gpus(here)
    await here.claim("mine")
    await here.put(with_claims("p", direct("mine")))
    await here.settled()
    await here.delete_pod()

    async def free() -> bool:
        return await here.held() == {}

    await here.until(free, "the claim gives its devices back")
    assert (await claim_named(here, "mine")).metadata.deletion_timestamp is None


@pytest.mark.parametrize("entry", [inline(), direct("mine")], ids=["inline", "external"])
@to_a_cluster()
async def test_a_claim_used_by_several_containers(here: Place, entry: dict):
    """Init containers among them: one claim, one device."""
    await gpus(here)
    await here.template()
    await here.claim("mine")
    await here.put(with_claims("p", entry, containers=3, init=2))
    await here.settled()
    assert list((await here.held()).values()) == [["n1/gpu-0"]]


@to_a_cluster()
async def test_a_claim_is_shared_by_pods_at_the_same_time(here: Place):
    await gpus(here, "n1", "n2")
    await here.claim("ours")
    names = [f"p{at}" for at in range(4)]
    await here.put(*(with_claims(name, direct("ours"), containers=2) for name in names))
    (place,) = set(await here.bound(*names))
    assert await here.held() == {"ours": [f"{place}/gpu-0"]}
    assert sorted(reserved_for(await claim_named(here, "ours"))) == names


@to_a_cluster()
async def test_more_pods_than_may_share_a_claim_take_turns(here: Place):
    """ShareResourceClaimSequentially, with the last of 256 places: the next pod waits for one of them."""
    await gpus(here)
    claim = await here.claim("ours")
    await here.put(with_claims("first", direct("ours")))
    await here.settled("first")
    claim = await claim_named(here, "ours")
    others = [
        {"resource": "pods", "apiGroup": "example.com", "name": f"o{at}", "uid": f"o{at}"}
        for at in range(255)
    ]
    reserved = [*claim.fields["status"]["reservedFor"], *others]
    await here.resource(CLAIMS).update_status(claim.changed({"status": {"reservedFor": reserved}}))
    await here.put(with_claims("second", direct("ours")))
    await here.quiet()
    assert not await here.node_of("second")
    claim = await claim_named(here, "ours")
    left = claim.fields["status"]["reservedFor"][:255]
    await here.resource(CLAIMS).update_status(claim.changed({"status": {"reservedFor": left}}))
    await here.bound("second")


@to_a_cluster()
async def test_devices_are_used_again(here: Place):
    """Five pods, one after the other, on one device."""
    await gpus(here)
    await here.template()
    for at in range(5):
        await here.put(with_claims(f"p{at}", inline()))
        await here.settled(f"p{at}")
        await here.finish(f"p{at}")


@to_a_cluster()
async def test_a_pod_whose_claim_is_deliberately_not_made(here: Place):
    """The status lists the entry without a claim: nothing is waited for. Ours alone would make it."""
    await gpus(here)
    await here.put(
        with_claims(
            "p",
            inline("missing"),
        )
    )
    status = {"resourceClaimStatuses": [{"name": "gpu"}]}
    await here.resource("pods").patch("p", {"status": status}, NS, subresource="status")
    await here.settled()
    assert not await here.all(CLAIMS)


@to_a_cluster()
async def test_an_allocated_claim_and_a_new_one(here: Place):
    """The new one must come from the node of the first."""
    await gpus(here, "n1", "n2", count=2)
    await here.claim("old")
    await here.put(with_claims("first", direct("old")))
    (place,) = await here.bound("first")
    await here.claim("new")
    await here.put(with_claims("second", direct("old"), direct("new", "more")))
    assert await here.bound("second") == [place]
    held = await here.held()
    assert {one.split("/")[0] for devices in held.values() for one in devices} == {place}


@to_a_cluster()
async def test_all_devices_of_all_nodes_are_used(here: Place):
    """As many pods as devices, then one more."""
    await gpus(here, "n1", "n2", "n3", count=4)
    await here.template()
    names = [f"p{at:02}" for at in range(12)]
    await here.put(*(with_claims(name, inline()) for name in names))
    await here.bound(*names)
    held = [device for devices in (await here.held()).values() for device in devices]
    assert len(held) == len(set(held)) == 12
    await here.put(with_claims("late", inline()))
    await here.why_not("late")
    await here.delete_pod(names[5])
    await here.bound("late")


# -- classes, parameters, selectors ------------------------------------------------------------------


@to_a_cluster()
async def test_parameters_of_claim_and_class_come_with_the_devices(here: Place):
    opaque = {"driver": "gpu.example.com", "parameters": {"from": "class"}}
    await gpus(here)
    await here.device_class("tuned", config=[{"opaque": opaque}])
    spec = claim_spec(device_class="tuned")
    spec["devices"]["config"] = [{"opaque": {**opaque, "parameters": {"from": "claim"}}}]
    await here.put(claim_with("c", spec))
    await here.put(with_claims("p", direct("c")))
    await here.settled()
    claim = await claim_named(here, "c")
    config = claim.fields["status"]["allocation"]["devices"]["config"]
    assert [(one["source"], one["opaque"]["parameters"]["from"]) for one in config] == [
        ("FromClass", "class"),
        ("FromClaim", "claim"),
    ]


@to_a_cluster()
async def test_a_class_that_is_created_wakes_the_pod(here: Place):
    await here.node("n1")
    await here.devices("n1")
    await here.claim("c")
    await here.put(with_claims("p", direct("c")))
    await here.why_not()
    await here.device_class()
    await here.settled()


@to_a_cluster()
async def test_a_class_that_is_updated_wakes_the_pod(here: Place):
    await here.device_class(driver="another.example.com")
    await here.node("n1")
    await here.devices("n1")
    await here.claim("c")
    await here.put(with_claims("p", direct("c")))
    await here.why_not()
    selector = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    await here.resource("deviceclasses").patch("gpu", {"spec": {"selectors": [selector]}})
    await here.settled()


@to_a_cluster()
async def test_a_selector_that_fails_keeps_the_pod_waiting(here: Place):
    """An attribute that the device does not have is an error of the expression, and the pod is told."""
    await gpus(here)
    expression = "device.attributes['gpu.example.com'].missing == 1"
    await here.claim("c", selectors=[{"cel": {"expression": expression}}])
    await here.put(with_claims("p", direct("c")))
    assert "missing" in await here.why_not()


# -- administrators ----------------------------------------------------------------------------------


@to_a_cluster()
async def test_an_administrator_sees_devices_that_others_use(here: Place):
    """AdminAccess: nothing is taken, neither now nor for later."""
    await gpus(here)
    await here.client.resource("", "v1", "namespaces", namespaced=False).patch(
        NS, {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    )
    for name, access in (("user", {}), ("admin", {"adminAccess": True}), ("again", {"adminAccess": True})):
        await here.claim(name, **access)
        await here.put(with_claims(name, direct(name)))
        assert await here.bound(name) == ["n1"]
    held = await here.held()
    assert set(map(tuple, held.values())) == {("n1/gpu-0",)}
    assert [one["adminAccess"] for one in results(await claim_named(here, "admin"))] == [True]
    await here.delete_pod("user")
    await here.claim("next")
    await here.put(with_claims("next", direct("next")))
    await here.bound("next")
