"""The same pods with numeric, classic and structured claims: what negotiation costs, and what it costs to
let the scheduler count.

    bench/numeric.py [--pods N] [--nodes M] [--transport socket|inprocess|https] [--tries T]

Every pod has a claim of its own, made from a template and allocated when the pod needs it:

    classic     KEP-3063: scheduler and driver negotiate in a PodScheduling object, and the mock driver's
                controller allocates
    numeric     KEP-4381: the example's class and parameters (examples/numeric), a counter on each node; no
                driver controller
    structured  resource.k8s.io/v1: a device class, a slice on each node, one device for each claim

They take turns, so that what else the machine does meets all of them. Each has a server of its own in a
process of its own on SQLite, every write on disk before it is answered; claim controller, scheduler and the
classic driver are in another. The time runs from the first pod's creation until the last is bound.
Afterwards it is checked that every claim is allocated where its pod is and that nothing gives more than
it has (exit status 1 where not).

Prints one JSON object. What others do on a shared machine only ever takes away: the best try counts.
`wanted` says what numeric claims shall reach, and `holds` whether they do; `in_turns` has the same ratios
of each turn and the middle one. Where the machine is busy, read those of processor time and of calls first.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path
from statistics import median
from typing import Any

import uvloop
import yaml

from allot.api import errors
from allot.bench import TRANSPORTS, objects, scenes
from allot.bench.furnishing import pipelined
from allot.bench.generations import V1ALPHA1, Generation, Given, Measured, Size, measure, say
from allot.bench.shape import Json, Scene
from allot.client import Client
from allot.driver import numeric
from classic import Classic

DEPLOYMENT = Path(__file__).parents[1] / "examples" / "numeric" / "frobnicator-driver.yaml"
PLURALS = {
    "CustomResourceDefinition": "customresourcedefinitions",
    "ResourceClass": "resourceclasses",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
}
VENDOR, VENDOR_VERSION, PARAMETERS = "dra.e2e.example.com", "v1alpha1", "one"
LOOK_S = 0.1

TWICE, FEWER, CLOSE = 2.0, 1.0, 0.8
"""Wanted: twice as fast as classic with fewer calls, and within a fifth of structured."""


class Numeric(Generation):
    """The scheduler counts what nodes have published, and allocates."""

    name = "numeric"

    def claim(self) -> Json:
        named = {"apiGroup": VENDOR, "kind": "ClaimParameters", "name": PARAMETERS}
        return {"resourceClassName": "frobnicator", "parametersRef": named}

    async def furnish(self, admin: Client, size: Size) -> None:
        for one in yaml.safe_load_all(DEPLOYMENT.read_text()):
            group, _, version = one["apiVersion"].rpartition("/")
            await admin.resource(group, version, PLURALS[one["kind"]], namespaced=False).create(one)
        await _make_parameters(admin)
        capacities = admin.resource(*V1ALPHA1, "noderesourcecapacities", namespaced=False)
        await pipelined((_capacity(node, size.per_node) for node in size.names), capacities.create)

    def given(self, status: Json, size: Size) -> list[Given]:
        return [
            Given(
                one["pool"].removeprefix("numeric/"), f"{one['pool']}/{one['device']}", amount, size.per_node
            )
            for one in status["allocation"]["devices"]["results"]
            for amount in map(int, one["consumedCapacity"].values())
        ]


async def _make_parameters(admin: Client) -> None:
    """As soon as the vendor's kind is served."""
    parameters = admin.resource(VENDOR, VENDOR_VERSION, "claimparameters")
    wanted = {
        "apiVersion": f"{VENDOR}/{VENDOR_VERSION}",
        "kind": "ClaimParameters",
        "metadata": {"name": PARAMETERS, "namespace": objects.NAMESPACE},
        "spec": {"numberOfFrobnicators": 1},
    }
    async with asyncio.timeout(30):
        while True:
            with contextlib.suppress(errors.NotFound):
                await parameters.create(wanted)
                return
            await asyncio.sleep(LOOK_S)


def _capacity(node: str, count: int) -> Json:
    has = numeric.counter("frobnicators", count)
    instance = {"id": has.id, "apiVersion": has.api_version, "kind": has.kind, "data": has.data}
    metadata = {"name": f"{node}-frobnicators"}
    return {"metadata": metadata, "nodeName": node, "driverName": VENDOR, "instances": [instance]}


class Structured(Generation):
    """The scheduler chooses one of the devices that nodes have published, and allocates it."""

    name = "structured"
    api = "resource.k8s.io", "v1"

    def claim(self) -> Json:
        return scenes.claim(scenes.request())

    async def furnish(self, admin: Client, size: Size) -> None:
        classes = admin.resource(*self.api, "deviceclasses", namespaced=False)
        await classes.create(objects.device_class(scenes.CLASS))
        scene = Scene((), tuple(scenes.gpu(number) for number in range(size.per_node)))
        slices = admin.resource(*self.api, "resourceslices", namespaced=False)
        published = (one for node in size.names for one in objects.slices(scene, node))
        await pipelined(published, slices.create)

    def given(self, status: Json, size: Size) -> list[Given]:
        return [
            Given(one["pool"], f"{one['pool']}/{one['device']}", 1, 1)
            for one in status["allocation"]["devices"]["results"]
        ]


GENERATIONS: tuple[Generation, ...] = (Classic(), Numeric(), Structured())


def figures(tried: list[Measured]) -> dict[str, Any]:
    best = _best(tried)
    used = best.cpu_s_per_pod
    return {
        "pods_per_second": round(best.pods_per_second, 1),
        "rates": [round(one.pods_per_second, 1) for one in tried],
        "cpu_seconds_per_pod": {name: round(spent, 6) for name, spent in used.items()},
        "cpu_seconds_per_pod_total": round(sum(used.values()), 6),
        "cpu_seconds_per_pod_totals": [round(sum(one.cpu_s_per_pod.values()), 6) for one in tried],
        "calls_per_pod": round(best.calls_per_pod, 3),
        **best.requests(),
        "wrong": [text for one in tried for text in one.wrong],
    }


def _best(tried: list[Measured]) -> Measured:
    return max(tried, key=lambda one: one.pods_per_second)


def ratios(one: list[Measured], other: list[Measured]) -> dict[str, Any]:
    """Of pods a second, of the least processor time that a pod took, and of calls."""
    turns = [mine.pods_per_second / its.pods_per_second for mine, its in zip(one, other, strict=True)]
    cpu = [min(sum(each.cpu_s_per_pod.values()) for each in tried) for tried in (one, other)]
    return {
        "pods_per_second": round(_best(one).pods_per_second / _best(other).pods_per_second, 3),
        "cpu_seconds_per_pod": round(cpu[0] / cpu[1], 3),
        "calls_per_pod": round(_best(one).calls_per_pod / _best(other).calls_per_pod, 3),
        "in_turns": [round(turn, 3) for turn in turns],
        "in_the_middle_turn": round(median(turns), 3),
    }


def judged(to_classic: dict[str, Any], to_structured: dict[str, Any]) -> dict[str, bool]:
    return {
        "at least twice as fast as classic": to_classic["pods_per_second"] >= TWICE,
        "fewer calls than classic": to_classic["calls_per_pod"] < FEWER,
        "within a fifth of structured": to_structured["pods_per_second"] >= CLOSE,
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--transport", choices=TRANSPORTS, default="socket")
    parser.add_argument("--tries", type=int, default=4)
    options = parser.parse_args()
    uvloop.install()
    size = Size(options.pods, options.nodes)
    tried: dict[str, list[Measured]] = {one.name: [] for one in GENERATIONS}
    for _ in range(options.tries):
        for one in GENERATIONS:
            measured = asyncio.run(measure(one, size, options.transport))
            tried[one.name].append(measured)
            say(f"{one.name}: {measured.pods_per_second:.1f} pods/s")
    to_classic = ratios(tried["numeric"], tried["classic"])
    to_structured = ratios(tried["numeric"], tried["structured"])
    wanted = judged(to_classic, to_structured)
    wrong = any(one.wrong for each in tried.values() for one in each)
    said = {
        "pods": size.pods,
        "nodes": size.nodes,
        "transport": options.transport,
        "load_average": [round(one, 2) for one in os.getloadavg()],
        "generations": {name: figures(each) for name, each in tried.items()},
        "numeric_to_classic": to_classic,
        "numeric_to_structured": to_structured,
        "wanted": wanted,
        "holds": all(wanted.values()) and not wrong,
    }
    print(json.dumps(said))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
