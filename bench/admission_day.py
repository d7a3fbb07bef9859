"""One simulated day of claims, once under first-fit and once under least-waste.

    python bench/admission_day.py      # writes bench/results/admission-day.json and docs/admission-day.svg

Twelve nodes: six with four cards each that can be partitioned (seven profiles, all
placements), six with eight whole GPUs each, of four sizes. Claims of eleven kinds
arrive over 24 hours with more of them around noon, stay for a while and go. A claim
that fits nowhere when it arrives is turned away. The workload comes from a seed, so
every run sees the same claims at the same moments; only the choice of devices differs.

Three runs: `first-fit` on the first node that fits; `least-waste` on the first node
that fits, so that nothing but the choice of devices differs; and `least-waste` on the
node whose plan costs least, as the ranking would choose.
"""

import argparse
import heapq
import json
import math
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chart
import shapes

from allot import allocation
from allot.base import RandomIds

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results" / "admission-day.json"
PLOT = ROOT / "docs" / "admission-day.svg"

DAY_S = 24 * 3600
SAMPLE_S = 600
CARD_NODES = [f"cards-{n}" for n in range(6)]
WHOLE_NODES = [f"whole-{n}" for n in range(6)]
CARDS = 4
SIZES_GI = (80, 80, 16, 24, 40, 16, 24, 40)  # as published: the large ones first
FEATURES = ("PartitionableDevices",)

KINDS = {
    # name: (weight, claim)
    "1g.10gb": (30, shapes.mig_request("r", "1g.10gb")),
    "1g.20gb": (8, shapes.mig_request("r", "1g.20gb")),
    "2g.20gb": (15, shapes.mig_request("r", "2g.20gb")),
    "3g.40gb": (10, shapes.mig_request("r", "3g.40gb")),
    "4g.40gb": (4, shapes.mig_request("r", "4g.40gb")),
    "7g.80gb": (4, shapes.mig_request("r", "7g.80gb")),
    "10Gi": (9, None),
    "20Gi": (8, None),
    "40Gi": (5, None),
    "80Gi": (3, None),
    "two of 40Gi": (2, None),
}


@dataclass(frozen=True)
class Arrival:
    at_s: float
    stays_s: float
    kind: str


def workload(seed: int, claims_per_day: int) -> list[Arrival]:
    """The claims of a day: more around noon, most of them short, some of them long."""
    rng = random.Random(seed)
    kinds, weights = list(KINDS), [weight for weight, _ in KINDS.values()]
    arrivals = []
    for _ in range(claims_per_day):
        while True:
            at_s = rng.uniform(0, DAY_S)
            if rng.random() < 0.55 + 0.45 * math.sin(math.pi * at_s / DAY_S):
                break
        stays_s = min(rng.lognormvariate(math.log(3600), 1.1), 12 * 3600)
        arrivals.append(Arrival(at_s, stays_s, rng.choices(kinds, weights)[0]))
    return sorted(arrivals, key=lambda one: one.at_s)


def asked_gi(kind: str) -> int:
    """Memory that a claim of this kind asks for."""
    if kind in shapes.MIG:
        return shapes.MIG[kind][0] * 10
    return 80 if kind.startswith("two") else int(kind.removesuffix("Gi"))


def claim_of(kind: str) -> Any:
    _, mig = KINDS[kind]
    if mig is not None:
        return shapes.claim(mig)
    count, amount = (2, "40Gi") if kind.startswith("two") else (1, kind)
    driver = shapes.DRIVER
    whole = f'!("profile" in device.attributes["{driver}"])'
    enough = f'device.capacity["{driver}"].memory.compareTo(quantity("{amount}")) >= 0'
    return shapes.claim(shapes.request("r", count, f"{whole} && {enough}"))


def cluster() -> allocation.Inventory:
    inventory = allocation.Inventory(allocation.Features.of(FEATURES))
    published = [part for node in CARD_NODES for part in shapes.mig_slices(CARDS, node)]
    for node in WHOLE_NODES:
        devices = [
            {
                "name": f"gpu-{n}",
                "attributes": {"gi": {"int": gi}},
                "capacity": {"memory": {"value": f"{gi}Gi"}},
            }
            for n, gi in enumerate(SIZES_GI)
        ]
        published.append(shapes.slice_of(devices, node))
    for one in published:
        inventory.apply(allocation.problem_of({**shapes.problem([one], [], FEATURES)}).slices[0])
    return inventory


@dataclass
class Day:
    """One run through the workload."""

    policy: allocation.Policy
    ranked: bool
    inventory: allocation.Inventory = field(default_factory=cluster)
    ledger: allocation.Ledger = field(default_factory=allocation.Ledger)
    admitted: int = 0
    admitted_gi: int = 0  # memory that admitted claims asked for
    refused: dict[str, int] = field(default_factory=dict)
    samples: list[dict[str, float]] = field(default_factory=list)
    _answers: dict[tuple[str, str], Any] = field(default_factory=dict)
    _held: dict[str, tuple[str, str, tuple[Any, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        classes = {"gpu": allocation.problem_of(shapes.problem([], [], FEATURES)).classes["gpu"]}
        self._nodes = {name: allocation.Node(name) for name in CARD_NODES + WHOLE_NODES}
        self._demands = {}
        for kind in KINDS:
            claims = allocation.problem_of(shapes.problem([], [claim_of(kind)], FEATURES)).claims
            self._demands[kind] = allocation.read_demand(claims, classes, self.inventory.features)

    def run(self, arrivals: list[Arrival]) -> "Day":
        leaving: list[tuple[float, str]] = []
        next_sample = 0.0
        for number, arrival in enumerate(arrivals):
            while leaving and leaving[0][0] <= arrival.at_s:
                self._leave(heapq.heappop(leaving)[1])
            while next_sample <= arrival.at_s:
                self.samples.append({"at_s": next_sample, **self.fragmentation()})
                next_sample += SAMPLE_S
            name = f"claim-{number}"
            if self._admit(name, arrival.kind):
                heapq.heappush(leaving, (arrival.at_s + arrival.stays_s, name))
        return self

    def _admit(self, name: str, kind: str) -> bool:
        plan = self._plan(kind)
        if plan is None:
            self.refused[kind] = self.refused.get(kind, 0) + 1
            return False
        (result,) = plan.results(RandomIds(random.Random(0)))
        taken = allocation.taken_by(result)
        overlaps = self.ledger.fly(name, taken)
        assert not overlaps, overlaps
        self._held[name] = (kind, plan.question.node.name, taken)
        self._forget(plan.question.node.name)
        self.admitted += 1
        self.admitted_gi += asked_gi(kind)
        return True

    def _plan(self, kind: str) -> allocation.Plan | None:
        best: allocation.Plan | None = None
        for name in self._nodes:
            answer = self._answer(kind, name)
            if isinstance(answer, allocation.Plan):
                if not self.ranked:
                    return answer
                if best is None or answer.cost < best.cost:
                    best = answer
        return best

    def _answer(self, kind: str, node: str) -> Any:
        key = (kind, node)
        if key not in self._answers:
            self._answers[key] = allocation.allocate(
                self._nodes[node], self.inventory, self.ledger, self._demands[kind], policy=self.policy
            )
        return self._answers[key]

    def _leave(self, name: str) -> None:
        _, node, _ = self._held.pop(name)
        self.ledger.release(name)
        self._forget(node)

    def _forget(self, node: str) -> None:
        for kind in KINDS:
            self._answers.pop((kind, node), None)

    def fragmentation(self) -> dict[str, float]:
        """What of the free cannot be had in one piece, and what of the held was not asked for."""
        free, whole_pieces = 0, 0
        for node in CARD_NODES:
            for card in range(CARDS):
                slices, compute = self._card(node, card)
                free += len(slices)
                whole_pieces += largest_piece(slices, compute)
        held_gi = wanted_gi = 0
        for kind, node, taken in self._held.values():
            if node in WHOLE_NODES:
                wanted_gi += asked_gi(kind)
                held_gi += sum(SIZES_GI[int(one.device.name.rsplit("-", 1)[1])] for one in taken)
        return {
            "fragmentation": round(1 - whole_pieces / free, 4) if free else 0.0,
            "oversize": round(1 - wanted_gi / held_gi, 4) if held_gi else 0.0,
            "free_slices": free,
        }

    def _card(self, node: str, card: int) -> tuple[set[int], int]:
        """Free memory slices and free compute slices of one card."""
        slices, compute = set(range(8)), 7
        for used in self.ledger.usage(allocation.PoolId(shapes.DRIVER, node)):
            owner, profile, start = _parsed(used)
            if owner == card:
                span, cores, _ = shapes.MIG[profile]
                slices -= set(range(start, start + span))
                compute -= cores
        return slices, compute


def _parsed(device: str) -> tuple[int, str, int]:
    """`card-2-1g-10gb-me-4` is card 2, profile 1g.10gb.me, from slice 4."""
    _, card, *profile, start = device.split("-")
    return int(card), ".".join(profile), int(start)


def largest_piece(slices: set[int], compute: int) -> int:
    """Memory slices of the largest partition that could be had now."""
    return max(
        (
            span
            for span, cores, starts in shapes.MIG.values()
            if cores <= compute and any(slices >= set(range(start, start + span)) for start in starts)
        ),
        default=0,
    )


RUNS = {
    "first-fit": ("first-fit", False),
    "least-waste, same node order": ("least-waste", False),
    "least-waste, ranked nodes": ("least-waste", True),
}


def days(seed: int, claims_per_day: int) -> Iterator[tuple[str, Day]]:
    arrivals = workload(seed, claims_per_day)
    for name, (policy, ranked) in RUNS.items():
        yield name, Day(allocation.POLICIES[policy], ranked).run(arrivals)


def figures(day: Day, arrivals: int) -> dict[str, Any]:
    mean = {
        key: round(sum(sample[key] for sample in day.samples) / len(day.samples), 4)
        for key in ("fragmentation", "oversize")
    }
    return {
        "admitted": day.admitted,
        "refused": arrivals - day.admitted,
        "admitted_gi": day.admitted_gi,
        "refused_by_kind": {kind: day.refused.get(kind, 0) for kind in KINDS},
        "mean_fragmentation": mean["fragmentation"],
        "mean_oversize": mean["oversize"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=5, help="further days, for how much is chance")
    parser.add_argument("--claims", type=int, default=1800, help="claims a day")
    options = parser.parse_args()
    started = time.monotonic()
    runs: dict[str, Any] = {}
    curves: dict[str, list[dict[str, float]]] = {}
    for name, day in days(options.seed, options.claims):
        runs[name] = figures(day, options.claims)
        curves[name] = day.samples
        print(name, json.dumps(runs[name]), f"{time.monotonic() - started:.0f} s", flush=True)
    others = {}
    for seed in range(options.seed + 1, options.seed + options.seeds):
        others[seed] = {
            name: {"admitted": day.admitted, "admitted_gi": day.admitted_gi}
            for name, day in days(seed, options.claims)
        }
        print(seed, others[seed], f"{time.monotonic() - started:.0f} s", flush=True)
    base = runs["first-fit"]["admitted"]
    record = {
        "benchmark": "admission day",
        "seed": options.seed,
        "claims": options.claims,
        "runs": runs,
        "more_admitted": {name: run["admitted"] - base for name, run in runs.items()},
        "more_admitted_gi": {
            name: run["admitted_gi"] - runs["first-fit"]["admitted_gi"] for name, run in runs.items()
        },
        "admitted_on_other_days": others,
        "samples_every_s": SAMPLE_S,
        "fragmentation": {name: [s["fragmentation"] for s in curve] for name, curve in curves.items()},
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n")
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    PLOT.write_text(
        chart.lines(
            "Fragmentation of the partitioned cards over one day",
            "hour of the day",
            "part of what is free that is not in one piece",
            {name: [(s["at_s"] / 3600, s["fragmentation"]) for s in curve] for name, curve in curves.items()},
        )
    )
    print(json.dumps({key: record[key] for key in ("more_admitted", "admitted_on_other_days")}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
