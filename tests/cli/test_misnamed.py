"""A person who mistyped a name in a selector is told which one was meant."""

import pytest

from allot import scheduler
from allot.cli import misnamed
from allot.informers import Key
from scheduler.cluster import DRIVER, NS, Cluster, tell

MODEL = f'device.attributes["{DRIVER}"].model'
MISTYPED = f'device.attributes["{DRIVER}"].modle'


async def noted(here: Cluster) -> tuple[str, ...]:
    reading = await scheduler.read(here.client, here.gates, NS)
    return misnamed.notes(reading.pods[Key(NS, "p")], reading.snapshot)


def waiting_for(expression: str, *, published: bool = True, driver: str = DRIVER, placed: bool = False):
    """What is said of a pod whose claim has that selector."""
    found: list[str] = []

    async def story(here: Cluster) -> None:
        await here.node("a")
        if published:
            await here.devices("a", attributes={"model": {"string": "a100"}})
        await here.device_class(driver=driver)
        await here.claim("c", selectors=[{"cel": {"expression": expression}}])
        await here.pod("p", claim="c", **({"nodeName": "a"} if placed else {}))
        found.extend(await noted(here))

    tell(story, started=False)
    return found


def test_a_mistyped_attribute_is_named_with_the_one_that_was_meant():
    (said,) = waiting_for(f'{MISTYPED} == "a100"')
    assert said == f"claim c, request gpu: no device publishes {MISTYPED}; did you mean {MODEL}?"


def test_a_class_with_a_driver_that_publishes_nothing_is_named():
    (said,) = waiting_for("true", driver="gpu.example.org")
    assert said == f"device class gpu: no device has driver gpu.example.org; did you mean {DRIVER}?"


@pytest.mark.parametrize(
    "quiet",
    [
        {"expression": f'{MODEL} == "h100"'},
        {"expression": f'{MISTYPED} == "a100"', "published": False},
        {"expression": f'{MISTYPED} == "a100"', "placed": True},
    ],
    ids=["a name that is published", "nothing is published", "the pod has its node"],
)
def test_otherwise_nothing_is_said(quiet):
    assert waiting_for(**quiet) == []
