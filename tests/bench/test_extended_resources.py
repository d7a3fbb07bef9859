"""The shapes of KEP-5004, small, from the server to the pods on their nodes, with our own scheduler."""

import asyncio
from collections.abc import Mapping

import pytest

from allot.bench import SHAPES, Report, Settings, find, measure
from allot.bench.real import real_scheduler

SIZES = ("2000pods_200nodes", "5000pods_500nodes")
KINDS = ("Explicit_25classes", "Explicit_50classes", "Implicit_25classes")


def measured(name: str) -> Report:
    return asyncio.run(measure(Settings(find(name).on(2)), real_scheduler, lambda text: None))


@pytest.mark.parametrize("kind", KINDS)
def test_the_published_shapes_run_from_end_to_end(kind: str):
    """5004-PERF-01: pods take turns in naming the classes, by their own name or by that of a resource;
    each is served by devices, through a claim."""
    assert {f"ExtendedResource/{kind}_{size}" for size in SIZES} <= SHAPES.keys()
    report = measured(f"ExtendedResource/{kind}_{SIZES[0]}")
    assert report.wrong == []
    figures = report.figures()
    assert figures["pods"] == 10
    assert figures["writes_per_pod"]["create resourceclaims"] == 1
    scene = find(f"ExtendedResource/{kind}_{SIZES[0]}").scene
    assert len(scene.classes) == int(kind.partition("_")[2].removesuffix("classes"))
    for number, offered in enumerate(scene.classes):
        name = offered["metadata"]["name"]
        implicit = f"deviceclass.resource.kubernetes.io/{name}"
        explicit = offered["spec"].get("extendedResourceName")
        assert (explicit is None) == kind.startswith("Implicit")
        assert scene.requests_of(number) == {explicit or implicit: "1"}


def objects_written(counts: Mapping[str, float]) -> float:
    """How many of them go into one transaction, and how many events into one, is a matter of timing."""
    return sum(
        count for name, count in counts.items() if name not in ("create transactions", "create events")
    )


def test_a_pod_costs_about_as_many_writes_as_one_with_a_claim():
    """5004-PERF-03: how long it takes is measured by the same shapes with claims from templates; what can be
    held to here is the work: making a claim that is protected and allocated, in one write, naming it in the
    pod's status, and the binding."""
    by_resource = measured(f"ExtendedResource/Explicit_25classes_{SIZES[0]}").figures()["writes_per_pod"]
    by_claim = measured(f"SchedulingWithResourceClaimTemplate/{SIZES[0]}").figures()["writes_per_pod"]
    claims = {name: count for name, count in by_claim.items() if "resourceclaims" in name}
    own = {name: count for name, count in by_resource.items() if "resourceclaims" in name}
    assert own == {"create resourceclaims": 1}
    assert all(by_resource.get(name, 0) <= count for name, count in claims.items())
    assert objects_written(by_resource) <= objects_written(by_claim) + 1
