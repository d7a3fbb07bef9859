"""KEP-5004, "Device Class API": which class serves a resource, under which names, and with which devices."""

import asyncio
from typing import Any

import pytest

from kep.cluster import Place, to_a_cluster
from kep.objects import (
    DRIVER,
    GPU,
    GPU_CLASS,
    IMPLICIT,
    container,
    device_class,
    node,
    pod,
    said_of,
    slice_,
)

OTHER_CLASS = "other.example.com"  # after GPU_CLASS in the order of names
NOBODYS = "nobody.example.com"  # a driver without devices


async def class_of(here: Place, name: str = "p") -> str:
    claim = await here.claim_of(name)
    (request,) = claim.fields["spec"]["devices"]["requests"]
    return str(request["exactly"]["deviceClassName"])


def asking_for(resource: str, **sides: str) -> dict[str, Any]:
    """A container that says its requests and limits in its own way."""
    asking = container()
    asking["resources"] = {side: {resource: amount} for side, amount in sides.items()}
    return asking


# -- several classes of one name -------------------------------------------------------------------


async def a_second_later() -> None:
    """Times are written to the second."""
    await asyncio.sleep(1.05)


@to_a_cluster()
async def test_of_two_classes_the_one_created_later_serves(here: Place):
    """5004-CLASS-07: though the older one is the first by name."""
    await here.put(device_class(driver=NOBODYS))
    await a_second_later()
    await here.put(device_class(OTHER_CLASS), node(), slice_(), pod())
    assert await class_of(here) == OTHER_CLASS


@pytest.mark.parametrize("order", [(GPU_CLASS, OTHER_CLASS), (OTHER_CLASS, GPU_CLASS)])
@to_a_cluster()
async def test_of_two_classes_of_one_second_the_first_by_name_serves(here: Place, order: tuple[str, str]):
    """5004-CLASS-08: whichever was created first. Made anew until they share their second."""
    for _ in range(20):
        await here.put(*map(device_class, order))
        times = {one.metadata.creation_timestamp for one in await here.all("deviceclasses")}
        if len(times) == 1:
            break
        for name in order:
            await here.resource("deviceclasses").delete(name)
    assert len(times) == 1
    await here.put(node(), slice_(), pod())
    assert await class_of(here) == GPU_CLASS


@pytest.mark.parametrize("way", ["it is deleted", "it takes another name", "it gives up the name"])
@to_a_cluster()
async def test_when_the_later_class_goes_the_earlier_one_serves(here: Place, way: str):
    """5004-CLASS-09, 5004-EVENT-04: upstream waits until the earlier one is touched."""
    await here.put(device_class())
    await a_second_later()
    await here.put(device_class(OTHER_CLASS, driver=NOBODYS), node(), slice_(), pod())
    await here.why_not()
    classes = here.resource("deviceclasses")
    if way == "it is deleted":
        await classes.delete(OTHER_CLASS)
    else:
        name = "example.com/other" if way == "it takes another name" else None
        await classes.patch(OTHER_CLASS, {"spec": {"extendedResourceName": name}})
    assert await class_of(here) == GPU_CLASS


@to_a_cluster()
async def test_when_the_earlier_class_goes_the_later_one_still_serves(here: Place):
    """5004-CLASS-10: upstream forgets the resource."""
    await here.put(device_class(OTHER_CLASS, driver=NOBODYS))
    await a_second_later()
    await here.put(device_class(), node(), slice_())
    await here.resource("deviceclasses").delete(OTHER_CLASS)
    await here.put(pod())
    assert await class_of(here) == GPU_CLASS


@to_a_cluster()
async def test_a_class_that_lost_its_name_to_another_serves_its_implicit_one(here: Place):
    """5004-CLASS-12."""
    await here.put(device_class())
    await a_second_later()
    await here.put(device_class(OTHER_CLASS, driver=NOBODYS), node(), slice_(), pod(container(implicit=1)))
    assert await class_of(here) == GPU_CLASS


# -- a class that changes --------------------------------------------------------------------------


@to_a_cluster()
async def test_until_a_class_has_the_name_only_device_plugins_serve_it(here: Place):
    """5004-CLASS-14: and from then on devices serve whoever waits."""
    await here.put(node(), slice_(), pod())
    assert GPU in await here.why_not()
    await here.put(node("plugin", gpu=1))
    assert await here.bound("p") == ["plugin"]
    await here.put(pod(name="next"))
    await here.why_not("next")
    await here.put(device_class())
    assert await here.bound("next") == ["n1"]
    assert await here.devices_of("next") == {"container-0-request-0": ["gpu-0"]}


@to_a_cluster()
async def test_a_class_that_selects_other_devices_is_believed_at_once(here: Place):
    """5004-CLASS-11, 5004-EVENT-04: upstream keeps the class as it was when its name last changed."""
    await here.put(device_class(driver=NOBODYS), node(), slice_(), pod())
    await here.why_not()
    await here.resource("deviceclasses").patch(GPU_CLASS, {"spec": device_class()["spec"]})
    assert await class_of(here) == GPU_CLASS


def configured(**parameters: str) -> dict[str, Any]:
    made = device_class()
    made["spec"]["config"] = [{"opaque": {"driver": DRIVER, "parameters": parameters}}]
    return made


async def config_of(here: Place, name: str) -> list[dict[str, Any]]:
    claim = await here.claim_of(name)
    return list(claim.fields["status"]["allocation"]["devices"]["config"])


@to_a_cluster()
async def test_the_claim_has_the_configuration_that_its_class_has_now(here: Place):
    """5004-CLASS-16, 5004-CLASS-11: a class that is configured otherwise is believed at once, too."""
    await here.put(configured(mode="fast"), node(), slice_(), pod(name="first"))
    (config,) = await config_of(here, "first")
    assert config["source"] == "FromClass"
    assert config["opaque"] == {"driver": DRIVER, "parameters": {"mode": "fast"}}
    await here.resource("deviceclasses").patch(GPU_CLASS, {"spec": configured(mode="slow")["spec"]})
    await here.classes_heard_of()
    await here.put(pod(name="second"))
    (config,) = await config_of(here, "second")
    assert config["opaque"]["parameters"] == {"mode": "slow"}


@to_a_cluster()
async def test_every_device_that_the_class_selects_may_serve_and_no_other(here: Place):
    """5004-CLASS-15."""
    published = slice_(devices=5)
    for at, device in enumerate(published["spec"]["devices"]):
        device["attributes"] = {"model": {"string": "large" if at in (1, 3) else "small"}}
    large = device_class()
    expression = f"device.attributes['{DRIVER}'].model == 'large'"
    large["spec"]["selectors"].append({"cel": {"expression": expression}})
    await here.put(large, node(), published, pod(name="one"), pod(name="two"))
    found = [await here.devices_of(name) for name in ("one", "two")]
    assert sorted(device for each in found for (device,) in each.values()) == ["gpu-1", "gpu-3"]
    await here.put(pod())
    await here.why_not()


@to_a_cluster()
async def test_a_cycle_knows_one_state_of_the_classes(here: Place):
    """5004-SCHED-12: a class that gives up its name while a pod is decided still serves that pod."""
    await here.put(device_class(), node(), slice_())
    await here.quiet()
    assert here.scheduler is not None
    decide = here.scheduler.cycle.schedule_one
    begun, go_on, known = asyncio.Event(), asyncio.Event(), []

    def paused(state, snapshot):
        known.append(snapshot.extended.class_for(GPU))
        begun.set()
        while not go_on.is_set():
            yield None  # others have their turn
        known.append(snapshot.extended.class_for(GPU))
        return (yield from decide(state, snapshot))

    here.scheduler.cycle.schedule_one = paused  # type: ignore[method-assign]
    await here.put(pod())
    await asyncio.wait_for(begun.wait(), 10)
    await here.resource("deviceclasses").patch(GPU_CLASS, {"spec": {"extendedResourceName": None}})
    await here.quiet()
    go_on.set()
    assert await class_of(here) == GPU_CLASS
    assert known[0] is known[1] is not None
    await here.classes_heard_of()
    await here.put(pod(name="next"))
    assert GPU in await here.why_not("next")


# -- the implicit name -----------------------------------------------------------------------------


@pytest.mark.parametrize("explicit", [GPU, None])
@to_a_cluster()
async def test_every_class_is_reachable_under_its_implicit_name(here: Place, explicit: str | None):
    """5004-IMPL-01."""
    await here.put(device_class(extended=explicit), node(), slice_(), pod(container(implicit=1)))
    assert await class_of(here) == GPU_CLASS


@to_a_cluster()
async def test_a_class_whose_name_is_too_long_serves_its_explicit_name(here: Place):
    """5004-IMPL-03."""
    long = "a" * 64 + ".example.com"
    await here.put(device_class(long), node(), slice_(), pod())
    assert await class_of(here) == long


@to_a_cluster()
async def test_what_counts_of_an_implicit_name_is_the_request_and_not_the_limit(here: Place):
    """5004-IMPL-06."""
    await here.put(device_class(), node(), slice_(), pod(asking_for(IMPLICIT, requests="1", limits="3")))
    assert await here.devices_of() == {"container-0-request-0": ["gpu-0"]}
    claim = await here.claim_of()
    assert claim.fields["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1


@to_a_cluster()
async def test_a_whole_number_is_whole_however_it_is_written(here: Place):
    """5004-IMPL-08."""
    await here.put(device_class(), node(), slice_(), pod(container(implicit="2000m")))
    assert await here.devices_of() == {"container-0-request-0": ["gpu-0", "gpu-1"]}


@pytest.mark.parametrize("resource", [GPU, IMPLICIT])
@to_a_cluster()
async def test_a_class_that_is_gone_serves_nobody(here: Place, resource: str):
    """5004-IMPL-09: nor its explicit name."""
    await here.put(device_class(), node(), slice_(), pod(asking_for(resource, limits="1"), name="first"))
    assert said_of(await here.settled("first")) is not None
    await here.resource("deviceclasses").delete(GPU_CLASS)
    await here.classes_heard_of()
    await here.put(pod(asking_for(resource, limits="1")))
    assert resource in await here.why_not()
    assert len(await here.extended_claims()) == 1
