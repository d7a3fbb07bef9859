"""What a provider knows and what is made of it: whose nodes are, what is being made, what failed."""

import asyncio
from collections.abc import Mapping
from typing import Any

from allot.api import Object, encode
from allot.autoscaler import Group, Patience, ProviderFailed, Survey, Template
from allot.autoscaler.deciding import View
from allot.autoscaler.groups import LABEL, Broken, GroupEntry, Offer
from allot.autoscaler.memory import Late, Memory
from allot.autoscaler.surveying import Surveying
from planning.clusters import cluster

TEMPLATE = Template({"metadata": {"name": "t"}})
ENTRY = GroupEntry(name="gpus", max=5)


class Known:
    """A provider that says what it is set to, and notes what it is told."""

    def __init__(self, survey: Survey) -> None:
        self.survey_now: Survey | str = survey
        self.told: list[Any] = []

    async def survey(self, nodes: Mapping[str, Object]) -> Survey:
        if isinstance(self.survey_now, str):
            raise ProviderFailed(self.survey_now)
        return self.survey_now

    async def resize(self, group: GroupEntry, nodes: int) -> None:
        raise AssertionError("nobody asks for more here")

    remove = resize  # type: ignore[assignment]

    async def forgo(self, group: GroupEntry, nodes: int) -> None:
        self.told.append(("forgo", group.name, nodes))
        raise ProviderFailed("it cannot")

    async def discard(self, group: GroupEntry, instance: str) -> None:
        self.told.append(("discard", group.name, instance))


def node(name: str, group: str = "") -> Object:
    labels = {LABEL: group} if group else {}
    return Object(encode({"metadata": {"name": name, "uid": name, "labels": labels}}))


def looked(surveying: Surveying, *nodes: Object) -> Mapping[str, str]:
    """The groups of nodes as they are seen, by name."""
    view = View(cluster().reading.snapshot, {one.name: one for one in nodes}, [], [])
    seen = asyncio.run(surveying.look(view)).nodes
    return {name: (one.metadata.labels or {}).get(LABEL, "") for name, one in seen.items()}


def group(size: int = 0) -> Group:
    return Group("gpus", size=size, most=5, template=TEMPLATE)


def test_the_providers_word_counts_and_not_a_label():
    survey = Survey((Offer(ENTRY),), {"a": "gpus", "b": "gpus"})
    surveying = Surveying({}, Known(survey))
    nodes = (node("a"), node("b", "gpus"), node("c", "gpus"))
    assert looked(surveying, *nodes) == {"a": "gpus", "b": "gpus", "c": ""}
    assert surveying.mislabelled({one.name: one for one in nodes}) == {"a": "gpus", "c": ""}
    assert surveying.entries == {"gpus": ENTRY}


def test_while_it_does_not_answer_groups_are_what_they_were_and_closed():
    known = Known(Survey((Offer(ENTRY, 3),), {"a": "gpus"}))
    surveying = Surveying({}, known)
    looked(surveying, node("a"))
    known.survey_now = "Refresh: UNAVAILABLE"
    assert looked(surveying, node("a")) == {"a": "gpus"}
    assert surveying.offers["gpus"].closed == "the provider does not answer: Refresh: UNAVAILABLE"
    assert surveying.mislabelled({"a": node("a")}) == {}
    memory = Memory(Patience())
    surveying.expect([group()], memory, 0.0)
    assert memory.coming("gpus") == 0
    known.survey_now = Survey((Offer(ENTRY),))
    looked(surveying)
    assert (surveying.away, surveying.offers["gpus"].closed) == ("", "")


def test_what_is_being_made_is_coming_whoever_asked_for_it_until_patience_is_over():
    """Begun anew, nobody remembers the order; asked for twice it would be there twice (Y1)."""
    known = Known(Survey((Offer(ENTRY, 3),)))
    surveying, memory = Surveying({}, known), Memory(Patience(arrival_s=10))
    looked(surveying)
    surveying.expect([group(size=1)], memory, 0.0)
    assert memory.coming("gpus") == 2
    surveying.expect([group(size=1)], memory, 1.0)
    assert memory.coming("gpus") == 2

    late = memory.observe([], [], 10.0)
    assert late == (Late("gpus", None),) * 2
    asyncio.run(surveying.forgo(late))
    assert known.told == [("forgo", "gpus", 2)]
    surveying.expect([group(size=1)], memory, 11.0)
    assert memory.coming("gpus") == 0  # it still speaks of them; they are not believed in again

    known.survey_now = Survey((Offer(ENTRY, 1),))
    looked(surveying)
    surveying.expect([group(size=1)], memory, 12.0)
    known.survey_now = Survey((Offer(ENTRY, 2),))
    looked(surveying)
    surveying.expect([group(size=1)], memory, 13.0)
    assert memory.coming("gpus") == 1


def test_a_target_beyond_all_bounds_brings_no_more_than_the_group_may_have():
    surveying, memory = Surveying({}, Known(Survey((Offer(ENTRY, 2**31 - 1),)))), Memory(Patience())
    looked(surveying)
    surveying.expect([group()], memory, 0.0)
    assert memory.coming("gpus") == 5


def test_a_machine_that_failed_is_told_once_and_not_waited_for():
    broken = Broken("x://1", "QUOTA: no more")
    known = Known(Survey((Offer(ENTRY, 1, None, "", (broken,)),)))
    surveying, memory = Surveying({}, known), Memory(Patience())
    looked(surveying)
    assert surveying.newly_broken() == [(ENTRY, broken)]
    asyncio.run(surveying.discard(ENTRY, broken))
    looked(surveying)
    assert surveying.newly_broken() == [] and known.told == [("discard", "gpus", "x://1")]
    surveying.expect([group()], memory, 0.0)
    assert memory.coming("gpus") == 0


def test_a_group_that_cares_is_given_the_time_that_it_names():
    memory = Memory(Patience(arrival_s=10))
    memory.order(Group("gpus", template=TEMPLATE, arrival_s=100), 1, 0.0)
    memory.order(Group("small", template=TEMPLATE), 1, 0.0)
    assert [one.group for one in memory.observe([], [], 50.0)] == ["small"]
    assert [one.group for one in memory.observe([], [], 100.0)] == ["gpus"]
