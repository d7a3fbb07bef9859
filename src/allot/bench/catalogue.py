"""Every workload by its name: TEST/WORKLOAD, as upstream's scheduler benchmarks call them.

A bare WORKLOAD means one of SchedulingWithResourceClaimTemplate.
"""

from collections.abc import Iterator

from allot.scheduler import Scoring, Strategy

from . import scenes
from .shape import NONE, STEADY, Amount, Scene, Shape

BARE = "SchedulingWithResourceClaimTemplate"
_LISTS, _GROUPS = ("DRAListTypeAttributes",), ("DRADeviceCompatibilityGroups",)

NOT_HERE = {
    "SharedPodGroupResourceClaim": "pod groups are not supported",
    "SharedPodGroupResourceClaimTemplate": "pod groups are not supported",
    "PublishResourceSlices": "it schedules no pods",
}
"""Tests of upstream's that have no shape here, and why."""


class UnknownShape(ValueError):
    """No shape has that name."""


def find(name: str) -> Shape:
    """The shape called `name`, whole or bare. Raises UnknownShape."""
    full = name if "/" in name else f"{BARE}/{name}"
    shape = SHAPES.get(full)
    if shape is None:
        test = full.partition("/")[0]
        why = f": {NOT_HERE[test]}" if test in NOT_HERE else "; --list shows all"
        raise UnknownShape(f"there is no shape {full!r}{why}")
    return shape


def _template_shapes() -> Iterator[Shape]:
    def made(workload: str, scene: Scene, nodes: int, pods: Amount, **more: object) -> Shape:
        return Shape(BARE, workload, scene, nodes, pods, **more)  # type: ignore[arg-type]

    yield made("fast", scenes.TEMPLATE, 1, Amount(10), plain_nodes=1)
    for nodes in (200, 500):
        half = Amount(5)
        yield made(f"{nodes * 10}pods_{nodes}nodes", scenes.TEMPLATE, nodes, half, claims_before=half)
    for fill, before in (("empty", NONE), ("half", Amount(5)), ("full", Amount(10, -10))):
        for nodes in (100, 200, 500):
            yield made(
                f"{fill}_{nodes}nodes",
                scenes.TEMPLATE,
                nodes,
                STEADY,
                claims_before=before,
                steady=True,
            )
    for kind, scene, per_node in (("selector", scenes.SELECTOR, 10), ("match", scenes.MATCH, 2)):
        yield made(f"{kind}_fast", scene, 1, Amount(per_node), plain_nodes=1)
        yield made(f"{kind}_empty_500nodes", scene, 500, STEADY, steady=True)


def _burst_shapes() -> Iterator[Shape]:
    """The tests whose pods come all at once."""
    test, half = "SchedulingWithResourceClaim", Amount(5)
    yield Shape(test, "fast", scenes.SHARED, 1, Amount(10), plain_nodes=1)
    for nodes in (200, 500):
        workload = f"{nodes * 10}pods_{nodes}nodes"
        yield Shape(test, workload, scenes.SHARED, nodes, half, pods_before=half)

    test = "ExtendedResource"
    yield Shape(test, "fast", scenes.extended(25), 1, Amount(10), plain_nodes=1)
    for kind, classes in (("Explicit", 25), ("Explicit", 50), ("Implicit", 25)):
        scene = scenes.extended(classes, implicit=kind == "Implicit")
        for nodes in (200, 500):
            workload = f"{kind}_{classes}classes_{nodes * 10}pods_{nodes}nodes"
            yield Shape(test, workload, scene, nodes, half, pods_before=half)

    test = "ExtendedResourceScoring"
    scoring = Scoring(Strategy.LEAST_ALLOCATED, (("cpu", 1.0), ("memory", 1.0), (scenes.EXTENDED, 1.0)))
    yield Shape(test, "fast", scenes.scoring(2), 3, Amount(0, 10), plain_nodes=1, scoring=scoring)
    for nodes, classes in ((200, 10), (500, 20)):
        workload = f"{nodes * 10}pods_{nodes}nodes"
        yield Shape(test, workload, scenes.scoring(classes), nodes, Amount(10), scoring=scoring)

    yield Shape("DeviceTaintToleration", "fast", scenes.TAINTED, 1, Amount(10), plain_nodes=1)
    yield Shape("FirstAvailable", "fast", scenes.FIRST_AVAILABLE, 1, Amount(10), plain_nodes=1)


def _advanced_shapes() -> Iterator[Shape]:
    """The tests about shares, counters, groups and lists."""
    test, scene = "ConsumableCapacity", scenes.CONSUMABLE
    for workload in ("fast", "fast_with_DRAPartitionableDevices"):
        yield Shape(test, workload, scene, 1, Amount(8), plain_nodes=1)
    for nodes in (100, 500, 1000):
        for fill, before in (("empty", NONE), ("half", Amount(4)), ("full", Amount(8, -10))):
            if (fill, nodes) != ("full", 100):
                workload = f"{fill}_{nodes}nodes"
                yield Shape(test, workload, scene, nodes, STEADY, pods_before=before, steady=True)

    for test, scene, gates in (
        ("Partitionable", scenes.PARTITIONABLE, ()),
        ("PartitionableBacktracking", scenes.BACKTRACKING, ()),
        ("CompatibilityGroups", scenes.GROUPS, _GROUPS),
    ):
        yield Shape(test, "fast", scene, 1, Amount(1), plain_nodes=1, gates=gates)
        for nodes in (100, 500, 1000):
            for fill, before in (("empty", NONE), ("half", Amount(0.5)), ("full", Amount(1, -10))):
                if (fill, nodes) != ("full", 100):
                    yield Shape(
                        test,
                        f"{fill}_{nodes}nodes",
                        scene,
                        nodes,
                        STEADY,
                        claims_before=before,
                        steady=True,
                        gates=gates,
                    )

    test, scene = "ListAttributes", scenes.LISTS
    yield Shape(test, "fast", scene, 1, Amount(1), gates=_LISTS)
    yield Shape(test, "empty_500nodes", scene, 500, Amount(1), steady=True, gates=_LISTS)


SHAPES: dict[str, Shape] = {
    shape.name: shape for shape in (*_template_shapes(), *_burst_shapes(), *_advanced_shapes())
}
