"""REPLAY1: what a scheduler decided is decided again, whatever it was about."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from allot.api import compute
from allot.replay import Bounds, telling
from kep.compute import class_, cr
from kep.compute import node as compute_node
from kep.compute import pod as compute_pod
from scheduler.classic_driver import Driver
from scheduler.cluster import NS, Cluster
from scheduler.numeric import Numeric
from scheduler.test_classic import Classic

from .recorded import LARGE, again, tell
from .stories import EXTENDED, come_and_go, priorities


def is_replayed(path: Path, least: int) -> None:
    found = again(path)
    assert not found.differences, telling.text(found)
    assert found.decisions >= least and not found.unknown and not found.held_twice


def test_pods_with_devices_by_template_by_name_and_shared(tmp_path: Path):
    async def story(here: Cluster) -> None:
        await here.device_class()
        await here.template()
        await here.claim("shared")
        for name in "abc":
            await here.node(name)
            await here.devices(name, 2)
        for number in range(4):
            await here.pod(f"own-{number}", template="one")
        await here.pod("plain", requests={"cpu": "1"})
        await here.pod("first", claim="shared")
        await here.pod("second", claim="shared")
        await here.bound(*(f"own-{number}" for number in range(4)), "plain", "first", "second")
        await here.pod("late", template="one")
        await here.bound("late")
        await here.pod("none-left", template="one")
        await here.condition("none-left")
        await here.resource("pods").delete("own-1", NS, grace_period_s=0)
        await here.bound("none-left")

    tell(tmp_path / "record", story)
    is_replayed(tmp_path / "record", 9)


@pytest.mark.parametrize("transactions", [True, False])
def test_extended_resources(tmp_path: Path, transactions: bool):
    async def story(here: Cluster) -> None:
        await here.device_class(extendedResourceName=EXTENDED)
        for name in "ab":
            await here.node(name)
            await here.devices(name, 2)
        for number in range(4):
            await here.pod(f"e-{number}", requests={EXTENDED: "1", "cpu": "1"})
        await here.bound(*(f"e-{number}" for number in range(4)))
        await here.pod("one-more", requests={EXTENDED: "1"})
        await here.condition("one-more")
        await here.resource("pods").delete("e-2", NS, grace_period_s=0)
        await here.bound("one-more")

    tell(tmp_path / "record", story, transactions=transactions)
    is_replayed(tmp_path / "record", 6)


def test_pods_that_evict_others(tmp_path: Path):
    """What the scheduler alone knows decides: whose room is being made, and who is on the way out."""

    async def story(here: Cluster) -> None:
        await here.device_class()
        await here.template()
        await priorities(here)
        for name in "ab":
            await here.node(name, cpu="4")
            await here.devices(name, 1)
        await here.pod("low-a", template="one", priorityClassName="p1", terminationGracePeriodSeconds=0)
        await here.pod("low-b", template="one", priorityClassName="p1", terminationGracePeriodSeconds=0)
        await here.pod(
            "low-c", requests={"cpu": "3"}, priorityClassName="p1", terminationGracePeriodSeconds=0
        )
        await here.bound("low-a", "low-b", "low-c")
        await here.pod("high", template="one", priorityClassName="p10")
        await here.pod("higher", requests={"cpu": "4"}, priorityClassName="p20")
        await here.pod("between", requests={"cpu": "2"}, priorityClassName="p5")
        await here.bound("high", "higher")

    tell(tmp_path / "record", story)
    found = again(tmp_path / "record")
    assert not found.differences, telling.text(found)
    remedies = (tmp_path / "record").read_text().count('"remedy":"on ')
    assert remedies >= 2


def test_numeric_claims(tmp_path: Path):
    async def story(here: Cluster) -> None:
        numeric = await Numeric(here).furnish({"a": 4, "b": 2})
        for number, count in enumerate((2, 1, 2, 1)):
            await numeric.asks(f"n-{number}", count)
        await here.bound(*(f"n-{number}" for number in range(4)))
        await numeric.asks("too-much", 3)
        await here.condition("too-much")

    tell(tmp_path / "record", story)
    is_replayed(tmp_path / "record", 5)


def test_compute_resources(tmp_path: Path):
    async def story(here: Cluster) -> None:
        for name, models in {"a": ("big", "small"), "b": ("small",)}.items():
            fields = compute_node(name, *(cr({"model": one}, 2) for one in models))
            made = await here.create("nodes", fields)
            await here.resource("nodes").update_status(made.changed({"status": fields["status"]}))
        classes = here.client.of(compute.RESOURCE_CLASS)
        await classes.create(class_("big", ("model", "In", "big")))
        await classes.create(class_("any", ("model", "Exists")))
        for number, name in enumerate(("any", "big", "any", "big")):
            await here.create("pods", compute_pod(f"c-{number}", {name: 1}))
        await here.bound(*(f"c-{number}" for number in range(4)))
        await here.create("pods", compute_pod("none-left", {"big": 1}))
        await here.condition("none-left")

    tell(tmp_path / "record", story)
    is_replayed(tmp_path / "record", 5)
    assert '"compute":{"c":{"big":' in (tmp_path / "record").read_text()


def test_talks_with_drivers_of_classic_claims(tmp_path: Path):
    """With one claim a node is chosen and its driver asked; with two, drivers are asked about nodes first."""

    async def story(here: Cluster) -> None:
        world, driver = Classic(here), Driver(here.client, {"a": 1, "b": 3})
        task = asyncio.ensure_future(driver.run())
        try:
            await world.furnish()
            for name in ("one", "two", "three", "four"):
                await world.claim(name)
            await world.pod("p", "one")
            await here.bound("p")
            await world.pod("q", "two", "three")
            await here.bound("q")
            await world.pod("r", "four")
            await here.bound("r")
        finally:
            task.cancel()

    tell(tmp_path / "record", story)
    is_replayed(tmp_path / "record", 4)
    assert "ask drivers about" in (tmp_path / "record").read_text()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("is_bounded", [False, True])
def test_whatever_comes_and_goes(tmp_path: Path, seed: int, is_bounded: bool):
    """A made-up day: pods of every sort come and go faster than their writes are heard of. With bounds, which
    the record outgrows several times, what was folded answers like what it came from."""
    bounds = Bounds(192 * 1024, timedelta(days=1)) if is_bounded else LARGE
    tell(tmp_path / "record", come_and_go(seed), seed=seed, bounds=bounds)
    found = again(tmp_path / "record")
    assert not found.differences, telling.text(found)
    assert found.decisions >= (10 if is_bounded else 30) and not found.unknown and not found.held_twice
    if is_bounded:
        assert (tmp_path / "record").stat().st_size < bounds.size * 1.5


@pytest.mark.parametrize("seed", range(4))
def test_whatever_comes_and_goes_while_news_and_answers_cross(tmp_path: Path, seed: int):
    """The watch tells of writes before the server's answer does, or long after, also that it is all gone."""
    tell(tmp_path / "record", come_and_go(seed), seed=seed, transactions=seed % 2 == 1, late=True)
    is_replayed(tmp_path / "record", 30)
