"""The same pods with claims of three generations: a small run of `bench/numeric.py`, and its verdict."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from allot.api import Object, encode
from allot.bench.generations import Generation, Given, Size, wrong

SCRIPT = Path(__file__).parents[2] / "bench" / "numeric.py"
SIZE = Size(pods=4, nodes=2)


def test_a_numeric_claim_costs_fewer_calls_than_a_negotiated_one_and_no_negotiation():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--pods", "60", "--nodes", "6", "--tries", "1"],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout)
    seen = figures["generations"]
    assert [(name, one["wrong"]) for name, one in seen.items()] == [
        ("classic", []),
        ("numeric", []),
        ("structured", []),
    ]
    assert seen["classic"]["writes_per_pod"]["create podschedulings"] >= 1
    assert not any("podschedulings" in what for what in seen["numeric"]["writes_per_pod"])
    assert figures["numeric_to_classic"]["calls_per_pod"] < 1
    assert figures["wanted"]["fewer calls than classic"]


class Counted(Generation):
    """A claim says where it is, and of a node's two it has so many."""

    name = "counted"

    def claim(self) -> dict[str, Any]:
        return {}

    async def furnish(self, admin: object, size: Size) -> None:
        """Nothing."""

    def given(self, status: Any, size: Size) -> list[Given]:
        node, amount = status["allocation"]
        return [Given(node, node, amount, 2)]


def pod(name: str, node: str) -> Object:
    spec = {"nodeName": node} if node else {}
    return Object(encode({"metadata": {"name": name, "uid": name}, "spec": spec}))


def claim(owner: str, reserved: str, *allocation: Any) -> Object:
    status = {"allocation": allocation, "reservedFor": [{"uid": reserved}]} if allocation else {}
    owners = [{"uid": owner}]
    return Object(encode({"metadata": {"name": f"of-{owner}", "ownerReferences": owners}, "status": status}))


def test_what_is_as_it_should_be_is_not_wrong():
    pods = [pod("a", "x"), pod("b", "x"), pod("c", "y")]
    claims = [claim("a", "a", "x", 1), claim("b", "b", "x", 1), claim("c", "c", "y", 2)]
    assert wrong(Counted(), SIZE, pods, claims) == []


@pytest.mark.parametrize(
    "pods, claims, said",
    [
        ([pod("a", "x")], [claim("a", "a", "y", 1)], "pod a is on x, and"),
        ([pod("a", "x")], [claim("a", "b", "x", 1)], "pod a is on x, and"),
        ([pod("a", "x")], [claim("a", "a")], "pod a is on x, and"),
        ([pod("a", "x")], [], "pod a is on x, and"),
        ([pod("a", "")], [claim("a", "a", "x", 1)], "pod a is on no node"),
        ([], [claim("gone", "gone", "x", 1)], "claim of-gone is nobody's"),
        (
            [pod("a", "x"), pod("b", "x")],
            [claim("a", "a", "x", 1), claim("b", "b", "x", 2)],
            "x gives 3, and has 2",
        ),
    ],
)
def test_what_is_not_as_it_should_be_is_said(pods: list[Object], claims: list[Object], said: str):
    (found,) = wrong(Counted(), SIZE, pods, claims)
    assert found.startswith(said)
