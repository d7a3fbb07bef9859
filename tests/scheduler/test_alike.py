"""What pods are told that are alike, and of which one is tried for all (P3).

Against the real server, with shorter times than in real life.
"""

import pytest

from allot.scheduler import explaining

from .cluster import Cluster, tell

HUGE = {"cpu": "64"}
LONGEST_WAIT_S = explaining.EVERY_S + explaining.ALIKE_AFTER_S


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(explaining, "EVERY_S", 0.5)
    monkeypatch.setattr(explaining, "ALIKE_AFTER_S", 0.05)


async def until_told(here: Cluster, words: str, *names: str) -> None:
    for name in names:

        async def says(name: str = name) -> bool:
            return (await here.condition(name))["message"] == words

        await here.until(says, f"{name} is told {words!r}")


def test_all_who_are_alike_are_told_what_has_changed_for_one_of_them():
    """Only the first is tried when a node is cordoned; the answer is the same for the others."""
    names = [f"big-{number}" for number in range(5)]

    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.node("b")
        for name in names:
            await here.pod(name, requests=HUGE)
        await until_told(here, "0/2 nodes are available: 2 Insufficient cpu.", *names)

        await here.resource("nodes").patch("b", {"spec": {"unschedulable": True}})
        words = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
        await until_told(here, words, *names)

    tell(story)


@pytest.mark.parametrize("count", [1, 200, 1000, 1500])
def test_a_crowd_is_told_before_what_it_is_told_is_old(count):
    """P3: a change is told to one within EVERY_S, spread after ALIKE_AFTER_S, and then told to the others."""
    last_s = explaining.moments_s(count)[-1]
    assert LONGEST_WAIT_S + last_s < 10
    assert last_s >= count * explaining.ALIKE_EVERY_S_MIN


def test_nodes_that_are_gone_are_not_counted_any_more():
    """It helps no pod, but what they were told is not so any more."""

    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.node("b")
        await here.pod("big", requests=HUGE)
        await here.pod("choosy", nodeSelector={"disk": "ssd"})
        await until_told(here, "0/2 nodes are available: 2 Insufficient cpu.", "big")

        await here.resource("nodes").delete("b")
        await until_told(here, "0/1 nodes are available: 1 Insufficient cpu.", "big")
        words = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
        await until_told(here, words, "choosy")

    tell(story)


def test_who_has_found_a_place_is_not_told_what_the_others_are():
    async def story(here: Cluster) -> None:
        await here.node("a")
        for name in ("first", "second"):
            await here.pod(name, requests=HUGE)
        await until_told(here, "0/1 nodes are available: 1 Insufficient cpu.", "first", "second")

        await here.node("b", cpu="64")
        (node,) = await here.bound("first")
        await until_told(here, "0/2 nodes are available: 2 Insufficient cpu.", "second")
        found = await here.get("pods", "first")
        assert node == "b" and found is not None
        (condition,) = found.fields["status"]["conditions"]
        assert condition["status"] == "True"

    tell(story)


def test_names_of_other_claims_do_not_come_with_it():
    """Pods of one template have claims of their own; what is told in common names none of them."""

    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 1)
        await here.device_class()
        await here.template(count=2)
        for name in ("one", "two"):
            await here.pod(name, template="one")
        words = "request gpu wants 2, and of 1 device 1 free."
        for name in ("one", "two"):
            assert words in (await here.condition(name))["message"]
        await here.resource("nodes").patch("a", {"spec": {"unschedulable": True}})
        await until_told(here, "0/1 nodes are available: 1 node(s) were unschedulable.", "one", "two")

    tell(story)
