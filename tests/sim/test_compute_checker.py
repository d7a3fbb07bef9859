"""The checker of compute resources sees what it is for: it is shown histories that break D7 and P2."""

import json
from typing import Any

import pytest

from allot.api import Object
from allot.sim.checkers import judge
from allot.sim.checkers.compute_held import RAW, ComputeHeld
from allot.sim.recording import Seen

GOLD = f"{RAW}-a"


def seen(resource: str, name: str, type: str = "MODIFIED", **fields: Any) -> Seen:
    metadata = {
        "name": name,
        "uid": f"uid-{name}",
        **({"namespace": "default"} if resource == "pods" else {}),
    }
    return Seen(0, resource, type, Object(json.dumps({"metadata": metadata, **fields}).encode()))


def node(usable: int = 2) -> Seen:
    own = {"name": GOLD, "resourceName": RAW, "properties": {"type": "a"}, "devices": ["0", "1"]}
    listed = [{**own, "allocatableDevices": ["0", "1"][:usable]}]
    return seen("nodes", "n", spec={}, status={"computeResources": listed})


def pod(name: str, asked: int = 1, given: int = 0, on: str = "", phase: str = "Pending") -> Seen:
    container: dict[str, Any] = {"name": "c", "resources": {"limits": {"card-gold": str(asked)}}}
    if given:
        entry = {"computeResourceName": GOLD, "count": given}
        container["allocatedComputeResources"] = {"card-gold": [entry]}
    spec = {"containers": [container], **({"nodeName": on} if on else {})}
    return seen("pods", name, spec=spec, status={"phase": phase})


def held(name: str, count: int = 1, phase: str = "Running") -> Seen:
    return pod(name, count, count, "n", phase)


BROKEN = [
    ([node(), held("p", 2), held("q")], "D7: with pod q pods hold 3"),
    ([node(1), held("p"), held("q")], "D7: with pod q pods hold 2"),
    ([node(), pod("p", 1, 0, "n")], "D7: pod p asks for"),
    ([node(), pod("p", 1, 2, "n")], "D7: pod p asks for"),
    ([node(), pod("p", 1, 1)], "D7: pod p has a record and no node"),
    ([node(), held("p"), pod("p", 1, 2, "n")], "D7: the record of pod p became"),
    ([node(), pod("p", 2)], "P2: pod p waits for 2 of card-gold"),
]
SHOWN = {words.partition(":")[0] for _, words in BROKEN}


@pytest.mark.parametrize(("history", "broken"), BROKEN)
def test_a_broken_promise_is_named(history: list[Seen], broken: str):
    assert any(broken in text for text in judge(history, [ComputeHeld()]))


@pytest.mark.parametrize(
    "history",
    [
        [node(), held("p", 2), held("p", 2, "Succeeded"), held("q", 2)],
        [node(), held("p", 2), held("p", 2)._replace(type="DELETED"), held("q", 2)],
        [node(), held("p", 2), node(0)],  # what it has may shrink
        [node(), held("p"), pod("q", 2)],
    ],
)
def test_what_is_in_order_is_not_blamed(history: list[Seen]):
    assert judge(history, [ComputeHeld()]) == []
