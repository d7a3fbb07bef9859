"""Pods whose claims a driver allocates: the driver is asked, in this process and over HTTP."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from allot.api import GATES, Gates, Request, Response
from allot.autoscaler import (
    CannotPlace,
    Extender,
    ExtenderFailed,
    Filtered,
    Group,
    Origin,
    Plan,
    Template,
    plan,
    read_groups,
)
from allot.autoscaler.classic import ClassicGrowth, place_classic, unready
from allot.autoscaler.memory import Memory, Patience
from allot.autoscaler.packing import importance
from allot.base import RandomIds, SystemClock
from allot.planning import Cluster, manifests, take
from allot.scheduler import Settings, default_plugins
from driver.controller.test_extender import extender, furnish, settled, wanting
from driver.controller.world import ME, tell
from planning.clusters import NOW, Fields, cluster, hardware, pod

from .test_deciding import Town
from .test_packing import asking, group, simulated
from .test_simulating import classic

CLASSIC = "DRAControlPlaneController"
DRIVER = "classic.example.com"
CLASS = {
    "apiVersion": "resource.k8s.io/v1alpha1",
    "kind": "ResourceClass",
    "metadata": {"name": "classic"},
    "driverName": DRIVER,
}


class Cards:
    """A driver in this process that gives away what a node's label `cards` counts; a claim is one card."""

    def __init__(self, refuses: str = "", late: bool = False) -> None:
        self.started = 0
        self._refuses, self._late = refuses, late

    async def start(self) -> "Session":
        if self._late:
            raise ExtenderFailed("the driver does not answer")
        self.started += 1
        return Session(self._refuses)


class Session:
    def __init__(self, refuses: str) -> None:
        self.used: Counter[str] = Counter()
        self.claims: set[str] = set()
        self._refuses = refuses

    async def filter(self, pod: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> Filtered:
        assert all("labels" in node["metadata"] for node in nodes), "whole nodes"
        left = {node["metadata"]["name"]: self._left(pod, node) for node in nodes}
        suits = tuple(node for node in nodes if left[node["metadata"]["name"]] > 0)
        return Filtered(suits, {name: "no cards left" for name, count in left.items() if count <= 0})

    async def select(self, pod: Mapping[str, Any], node: Mapping[str, Any]) -> None:
        if pod["metadata"]["name"] == self._refuses:
            raise CannotPlace("not this one")
        self.used[node["metadata"]["name"]] += 1
        self.claims.add(_claim(pod))

    async def is_ready(self, node: str) -> bool:
        return node != "slow"

    def _left(self, pod: Mapping[str, Any], node: Mapping[str, Any]) -> int:
        metadata = node["metadata"]
        if _claim(pod) in self.claims:
            return 0  # it is not shareable
        return int((metadata["labels"] or {}).get("cards", "0")) - self.used[metadata["name"]]


def _claim(pod: Mapping[str, Any]) -> str:
    return str(pod["spec"]["resourceClaims"][0]["resourceClaimName"])


def labelled(name: str, price: float, cards: int = 0, **more: Any) -> Group:
    found = group(name, price, of="plain", **more)
    assert found.template is not None
    metadata = found.template.node["metadata"]
    labels = {**metadata["labels"], **({"cards": str(cards)} if cards else {})}
    node = {**found.template.node, "metadata": {**metadata, "labels": labels}}
    return Group(name, price, template=Template(node, (), Origin.GIVEN), **more)


def wants(*names: str, claim: str = "") -> list[Fields]:
    made = [classic(claim or name) for name in ([claim] if claim else names)]
    return [CLASS, *made, *(pod(name, claim=claim or name) for name in names)]


def found(here: Cluster, plural: str) -> dict[str, Any]:
    return {
        key.name: one
        for what, objects in here.objects.items()
        if what.plural == plural
        for key, one in objects.items()
    }


def placed(here: Cluster, driver: Cards | None, *groups: Group) -> ClassicGrowth:
    nodes = found(here, "nodes")
    pods = sorted(here.waiting, key=importance)
    extenders = {DRIVER: driver} if driver is not None else {}
    return asyncio.run(place_classic(simulated(here), pods, groups, nodes, extenders))


def test_the_group_that_the_driver_accepts_grows_and_no_other():
    """AUTO-19, AUTO-20, AUTO-23, AUTO-32, AUTO-34, 3063-CA-01, 3063-CA-03, 4381-SIM-32: one session; three
    pods, two cards a node; the cheaper group has none."""
    driver = Cards()
    growth = placed(cluster(*wants("a", "b", "c")), driver, labelled("none", 1.0), labelled("cards", 5.0, 2))
    assert sorted(len(node.pods) for node in growth.nodes.values()) == [1, 2]
    assert {node.group for node in growth.nodes.values()} == {"cards"}
    assert driver.started == 1 and not growth.helpless


def test_two_pods_of_one_exclusive_claim_lead_to_one_node():
    """AUTO-35: the driver counts the first one; a stateless plugin would not."""
    growth = placed(cluster(*wants("a", "b", claim="one")), Cards(), labelled("cards", 5.0, 2))
    assert [len(node.pods) for node in growth.nodes.values()] == [1]
    assert len(growth.helpless) == 1


def test_a_placement_that_the_driver_refuses_in_the_end_is_not_used():
    """AUTO-20."""
    growth = placed(cluster(*wants("a", "b")), Cards(refuses="a"), labelled("cards", 5.0, 1))
    assert [pod.key.name for node in growth.nodes.values() for pod in node.pods] == ["b"]
    assert "not this one" in growth.helpless["uid-Pod-a"]


def test_a_driver_that_cannot_be_asked_adds_no_node_and_that_is_said():
    """AUTO-17."""
    for driver, why in ((None, "has no extender"), (Cards(late=True), "does not answer")):
        growth = placed(cluster(*wants("a")), driver, labelled("cards", 5.0, 1))
        assert not growth.nodes and why in growth.helpless["uid-Pod-a"]


def test_bounds_hold_for_classic_pods_too():
    growth = placed(cluster(*wants("a", "b")), Cards(), labelled("cards", 5.0, 1, most=1))
    assert len(growth.nodes) == 1 and len(growth.helpless) == 1


def test_a_pod_that_its_driver_helps_nowhere_is_told_of_every_group():
    """PACK2: also of those of which no node was put to the driver."""
    groups = (
        labelled("none", 1.0),
        labelled("full", 2.0, 1, most=0),
        labelled("late", 3.0, 1, closed="it waits"),
        replace(labelled("new", 4.0, 1), template=None),
    )
    (why,) = placed(cluster(*wants("a")), Cards(), *groups).helpless.values()
    assert why.split("; ") == [
        "none: no cards left",
        "full: it has its 0 nodes",
        "late: it waits",
        "new: nobody knows what its nodes have",
    ]


def test_nodes_that_are_there_come_first():
    there = hardware("plain", 1)
    there[0]["metadata"]["labels"] = {**there[0]["metadata"]["labels"], "cards": "1"}
    here = cluster(*there, *wants("a", "b"))
    nodes = found(here, "nodes")
    pods = sorted(here.waiting, key=importance)
    growing = place_classic(
        simulated(here), pods, [labelled("cards", 5.0, 1)], nodes, {DRIVER: Cards()}, lambda pod: ["plain-0"]
    )
    growth = asyncio.run(growing)
    assert list(growth.placed.values()) == ["plain-0"] and len(growth.nodes) == 1


def test_a_new_node_is_not_judged_before_its_drivers_can_answer_for_it():
    """AUTO-21, AUTO-22, AUTO-33: it counts as coming, so nothing more is added for the same pods."""
    assert asyncio.run(unready({DRIVER: Cards()}, ["slow", "quick"])) == {
        "slow": f"{DRIVER} is not ready for it"
    }
    town = Town()
    town.objects += asking(1)
    assert town.decide().grow == {"g": 1}
    town.node("slow")
    memory: Memory = town.memory
    here = cluster(*town.objects)
    nodes = found(here, "nodes").values()
    slices = [*found(here, "resourceslices").values()]
    memory.observe(nodes, slices, 20.0, {"slow": "the driver is not ready for it"})
    assert [one.node for one in memory.arriving] == ["slow"]
    (late,) = memory.observe(nodes, slices, 1000.0, {"slow": "the driver is not ready for it"})
    assert late.missing == ("the driver is not ready for it",)
    assert Memory(Patience()).arriving == ()


def test_a_real_driver_is_asked_over_http_about_nodes_that_are_imagined():
    """AUTO-24, AUTO-31, 3063-GRAD-01: 4Gi each, cards of 8Gi; two of three pods share a node, and the session
    of one decision is gone with it."""

    async def story(world: Any) -> None:
        await furnish(world)
        async with extender(world) as (driver, _):
            for name in ("one", "two", "three"):
                await wanting(world, name)
            await settled(world)
            dump = await take(world.client, Gates())
            here = Cluster(dump.gathered, Gates())
            cards = labelled("gpus", 5.0)
            assert cards.template is not None
            labels = cards.template.node["metadata"]["labels"]
            labels |= {f"{ME}/cards": "1", f"{ME}/memory": "8Gi"}
            for _ in range(2):
                growth = await place_classic(
                    simulated(here), here.waiting, [labelled("plain", 1.0), cards], {}, {ME: driver}
                )
                assert sorted(len(node.pods) for node in growth.nodes.values()) == [1, 2], growth
                assert {node.group for node in growth.nodes.values()} == {"gpus"}

    tell(story)


class Script:
    """A line on which a driver's webhook answers what is written down, and what it was sent is kept."""

    def __init__(self, *answers: Any) -> None:
        self.sent: list[tuple[str, str | None, Any]] = []
        self._answers = list(answers)

    async def send(self, request: Request) -> Response:
        body = json.loads(request.body or b"null")
        self.sent.append((request.path, request.headers.get("session"), body))
        return Response(200, body=json.dumps(self._answers.pop(0)).encode())

    async def close(self) -> None: ...


def test_what_goes_over_the_wire_is_what_any_webhook_of_a_driver_understands():
    """AUTO-26, AUTO-27, AUTO-30, 3063-CA-09, 3063-CA-12: names as Go writes them, and the session in its
    header. The driver may be somebody else's, so both sides of ours agreeing proves nothing."""
    asks, one, two, three = {"metadata": {"name": "p"}}, *({"metadata": {"name": n}} for n in "abc")
    line = Script(
        {"Session": "s-1"},
        {
            "Nodes": {"items": [one]},
            "FailedNodes": {"b": "full"},
            "FailedAndUnresolvableNodes": {"c": "never"},
            "Error": "",
        },
        {"Error": ""},
        {"Ready": True},
    )

    async def story() -> None:
        cycle = await Extender("http://driver.example.com", line).start()
        found = await cycle.filter(asks, [one, two, three])
        assert found == Filtered((one,), {"b": "full", "c": "never"})
        await cycle.select(asks, one)
        assert await cycle.is_ready("a")

    asyncio.run(story())
    assert line.sent == [
        ("/start", None, {}),
        ("/filter", "s-1", {"Pod": asks, "Nodes": {"items": [one, two, three]}}),
        ("/nodeselected", "s-1", {"Pod": asks, "Node": one}),
        ("/nodeready", "s-1", {"NodeName": "a"}),
    ]


CARDS = """
groups:
- name: cards
  price: 5
  template:
    node:
      metadata: {labels: {cards: "2"}}
      status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}
"""


def test_a_plan_asks_drivers_about_pods_that_wait_and_not_about_those_to_come(tmp_path: Path):
    """A driver knows no claims of pods that are in a manifest only: it would call every node suitable. Who
    needs no driver is a guest on the nodes that are added anyway."""
    file = tmp_path / "later.yaml"
    file.write_text(
        "\n---\n".join(json.dumps(one) for one in (classic("later"), pod("later", claim="later")))
    )
    here = cluster(*wants("a", "b"), pod("guest"))
    driver = Cards()
    later = manifests.read(file, Gates(), SystemClock(), "default")
    plugins = default_plugins(RandomIds(random.Random(0)), Settings())

    def planned(extenders: Mapping[str, Cards]) -> Plan:
        return asyncio.run(plan(here, later, read_groups(CARDS), plugins, NOW, extenders=extenders))

    asked = planned({DRIVER: driver})
    assert asked.nodes == {"cards": (("default/a", "default/b", "default/guest"),)}
    assert (asked.price, dict(asked.placed), driver.started) == (5, {}, 1)
    assert list(asked.helpless) == ["default/later"]
    assert f"{DRIVER} would have to be asked: that takes" in asked.helpless["default/later"]
    assert sorted(planned({}).helpless) == ["default/a", "default/b", "default/later"]


def test_classic_claims_are_on_by_default_and_the_autoscaler_knows_them():
    """AUTO-53: the one is a condition of the other. Whoever takes the drivers' word out of the autoscaler has
    to make classic claims an option again, and the documents say so."""
    assert GATES[CLASSIC].default
    growth = placed(cluster(*wants("a")), Cards(), labelled("cards", 5.0, 1))
    assert [node.group for node in growth.nodes.values()] == ["cards"]
    said = (Path(__file__).parents[2] / "docs" / "classic.md").read_text()
    assert "[autoscaler](autoscaler.md#drivers-of-classic-claims) asks their drivers" in said
