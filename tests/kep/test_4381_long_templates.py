"""KEP-4381: a template that goes through long lists of an object is worked out aside, and nobody waits for it
but the pods that ask for it."""

import asyncio
from collections.abc import Callable
from functools import partial

from allot.scheduler.framework import LongWork
from scheduler.cluster import NS, Cluster
from scheduler.cluster import tell as tell_any
from scheduler.numeric import TEMPLATE, VENDOR, Numeric

tell = partial(tell_any, started=False)

NUMBER = "object.spec.numberOfFrobnicators"
LOOPING = TEMPLATE.replace(NUMBER, f'object.spec.env.all(k, object.spec.env[k] != "") ? {NUMBER} : 16')
ENTRY = {"apiVersion": f"{VENDOR}/v1alpha1", "kind": "ClaimParameters", "celTemplate": LOOPING}
LONG = {f"variable-{number}": "x" for number in range(2000)}


class Held:
    """Does what takes long when it is told to."""

    def __init__(self) -> None:
        self.begun: list[Callable[[], None]] = []
        self.may_go = asyncio.Event()
        self.bug: Exception | None = None

    async def __call__(self, work: Callable[[], None]) -> None:
        self.begun.append(work)
        await self.may_go.wait()
        if self.bug is not None:
            raise self.bug
        work()


async def furnished(place: Cluster) -> tuple[Numeric, Held]:
    """A scheduler to which a pod has come whose parameters take long."""
    held = place.aside = Held()
    here = await Numeric(place).furnish({"a": 8})
    await here.resource_class("looping", numericParameters=[ENTRY])
    await place.start_controllers()
    await place.start_scheduler()
    await here.wanting("long", 3, env=LONG)
    await here.claim("long", made=False, resource_class="looping")
    await here.pod("long", "long")

    async def begun() -> bool:
        return bool(held.begun)

    await place.until(begun, "what takes long begun")
    assert isinstance(held.begun[0], LongWork)
    return here, held


async def alike(here: Numeric, name: str) -> None:
    """A pod with a claim of the same parameters."""
    named = {"apiGroup": VENDOR, "kind": "ClaimParameters", "name": "long"}
    spec = {"resourceClassName": "looping", "parametersRef": named}
    await here.claims.create({"metadata": {"name": name}, "spec": spec}, NS)
    await here.pod(name, name)


def test_others_are_placed_while_the_parameters_of_a_pod_take_long():
    """4381-SEC-06: and then it is placed too, and its like at once."""

    async def story(place: Cluster) -> None:
        here, held = await furnished(place)
        await here.asks("short", 2)
        await place.pod("plain")
        assert await place.bound("short", "plain") == ["a", "a"]
        assert await place.node_of("long") == ""
        held.may_go.set()
        assert await place.bound("long") == ["a"]
        assert await here.taken("long") == ("a", "c0", 3)
        await alike(here, "alike")
        assert await place.bound("alike") == ["a"]
        assert len(held.begun) == 1

    tell(story)


def test_what_takes_long_is_done_once_for_pods_that_ask_alike():
    async def story(place: Cluster) -> None:
        here, held = await furnished(place)
        for number in range(3):
            await alike(here, f"alike-{number}")
        await place.quiet()
        assert len(held.begun) == 1
        held.may_go.set()
        await place.bound("long", "alike-0")
        assert {id(one) for one in held.begun} == {id(held.begun[0])}

    tell(story)


def test_a_pod_that_goes_while_its_parameters_are_worked_out_leaves_nothing():
    async def story(place: Cluster) -> None:
        here, held = await furnished(place)
        await place.resource("pods").delete("long", NS, grace_period_s=0)
        held.may_go.set()
        await here.asks("short", 8)
        assert await place.bound("short") == ["a"]
        assert await here.taken("long") is None

    tell(story)


def test_a_pod_that_left_and_waits_for_something_else_is_not_woken_by_what_was_worked_out():
    """QUEUE1: the attempt of before is over, and what came of it concerns nobody."""

    async def story(place: Cluster) -> None:
        here, held = await furnished(place)
        await here.claims.delete("long", NS)
        await place.come_back("long")
        await here.waits("long", 'resourceclaim "long" not found')
        held.may_go.set()
        await here.asks("short", 2)
        assert await place.bound("short") == ["a"]
        named = {"apiGroup": VENDOR, "kind": "ClaimParameters", "name": "long"}
        spec = {"resourceClassName": "looping", "parametersRef": named}
        await here.claims.create({"metadata": {"name": "long"}, "spec": spec}, NS)
        assert await place.bound("long") == ["a"]

    tell(story)


def test_a_bug_met_while_parameters_are_worked_out_is_told_to_the_pod_alone():
    async def story(place: Cluster) -> None:
        here, held = await furnished(place)
        held.bug = RuntimeError("the model is broken")
        held.may_go.set()
        await here.waits("long", "internal error", "the model is broken")
        await here.asks("short", 2)
        assert await place.bound("short") == ["a"]

    tell(story)
