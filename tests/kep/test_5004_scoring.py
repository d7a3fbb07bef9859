"""KEP-5004, "Scoring": extended resources that devices serve count in the score of a node like any other.

5004-SCHED-13: matching devices of the node are what there is, allocated ones are what is used.
5004-PERF-02: upstream's benchmark of it is run with the same scoring.
"""

import pytest

from allot.allocation import DeviceId, Features, Taken
from allot.api import meta, resource
from allot.bench import find
from allot.scheduler import Scoring, Settings, Strategy
from allot.scheduler.filling import Filling
from allot.scheduler.framework import Tier
from allot.scheduler.plugins.balanced import NodeResourcesBalancedAllocation
from allot.scheduler.plugins.node_resources_fit import NodeResourcesFit
from allot.scheduler.snapshot import Snapshot
from scheduler.cluster import DRIVER, Cluster, slice_of, tell
from scheduler.objects import node, pod
from scheduler.plugins.asking import state_of

GPU = "example.com/gpu"
RESOURCES = (("cpu", 1.0), ("memory", 1.0), (GPU, 8.0))
PEAK = ((0.0, 0.0), (60.0, 10.0), (100.0, 0.0))
CHOSEN = {
    Strategy.LEAST_ALLOCATED: "large",  # one of eight
    Strategy.REQUESTED_TO_CAPACITY_RATIO: "half",  # five of eight
    Strategy.MOST_ALLOCATED: "small",  # two of two
}


@pytest.mark.parametrize("strategy", CHOSEN)
def test_5004_sched_13_a_pod_goes_where_the_devices_are_used_as_much_as_the_strategy_wants(
    strategy: Strategy,
):
    async def story(here: Cluster) -> None:
        await here.device_class(extendedResourceName=GPU)
        for name, devices, used in (("half", 8, 4), ("large", 8, 0), ("small", 2, 1)):
            await here.node(name)
            await here.devices(name, devices)
            if used:
                await here.claim(f"of-{name}", count=used)
                on_it = {"kubernetes.io/hostname": name}
                await here.pod(f"on-{name}", claim=f"of-{name}", nodeSelector=on_it)
        await here.bound("on-half", "on-small")
        await here.pod("asks", requests={"cpu": "100m", GPU: "1"})
        assert await here.bound("asks") == [CHOSEN[strategy]]

    tell(story, settings=Settings(scoring=Scoring(strategy, RESOURCES, PEAK)))


def test_5004_sched_13_devices_held_by_extended_resources_count_before_they_are_written():
    """Pods that come at once are spread over the nodes, one each, though nothing is written yet."""

    async def story(here: Cluster) -> None:
        await here.device_class(extendedResourceName=GPU)
        for name in "abcd":
            await here.node(name)
            await here.devices(name, 4)
        names = [f"p{number}" for number in range(4)]
        for name in names:
            await here.pod(name, requests={GPU: "1"})
        assert sorted(await here.bound(*names)) == ["a", "b", "c", "d"]

    tell(story, settings=Settings(scoring=Scoring(resources=RESOURCES)))


# -- what counts ----------------------------------------------------------------------------------


def with_devices(*models: str, selector: str = "", held: int = 0, offered: str = "") -> Snapshot:
    """A node whose devices are of these models, the first of them held."""
    made = Snapshot(Features())
    made.put_node(node("n", allocatable={GPU: offered} if offered else {}))
    put_class(made, selector)
    publish(made, *models)
    made.ledger.settle("holder", [Taken(DeviceId(DRIVER, "n", f"gpu-{at}")) for at in range(held)])
    return made


def put_class(made: Snapshot, selector: str = "") -> None:
    selectors = [{"cel": {"expression": selector}}] if selector else []
    spec = {"extendedResourceName": GPU, "selectors": selectors}
    made.put_class(meta.view(resource.DeviceClass, {"metadata": {"name": "gpu"}, "spec": spec}))


def publish(made: Snapshot, *models: str, generation: int = 1, count: int = 1) -> None:
    devices = [
        {"name": f"gpu-{at}", "attributes": {"model": {"string": one}}} for at, one in enumerate(models)
    ]
    pool = {"name": "n", "generation": generation, "resourceSliceCount": count}
    made.inventory.apply(meta.view(resource.ResourceSlice, slice_of("n", devices, pool=pool)))


def share(made: Snapshot, wanted: int = 1) -> float | None:
    """How full the node is with a pod that wants so many."""
    found = made.node("n")
    assert found is not None
    shares = Filling({GPU: 1.0}, {GPU: wanted}, made).shares(found)
    return shares[0][1] if shares else None


LARGE = f'device.attributes["{DRIVER}"].model == "large"'


def test_5004_sched_13_only_devices_that_the_class_selects_count():
    models = ("large", "large", "small", "small")
    assert share(with_devices(*models, held=1)) == 0.5
    assert share(with_devices(*models, selector=LARGE, held=1)) == 1.0
    assert share(with_devices("small", selector=LARGE)) is None
    assert share(with_devices(*models, selector='device.attributes["no"].such == 1')) is None


def test_5004_sched_13_what_a_device_plugin_offers_is_not_counted_in_devices():
    assert share(with_devices("large", "large", held=2, offered="4")) == 0.25


def test_5004_sched_13_a_changed_class_or_device_counts_at_once():
    """Upstream keeps which device a class matches by name, whatever becomes of either."""
    made = with_devices("large", "small", selector=LARGE, held=1)
    assert share(made) == 1.0
    publish(made, "large", "large", generation=2)
    assert share(made) == 1.0  # one of two is held, and one is wanted
    assert share(made, 0) is None
    put_class(made)
    publish(made, "small", "small", "small", "small", generation=3)
    assert share(made) == 0.5
    publish(made, "small", generation=4, count=2)
    assert share(made) is None  # half a pool offers nothing (D3)


def test_5004_sched_13_balance_looks_at_devices_too():
    made = with_devices("large", "large", "large", "large", held=1)
    found = made.node("n")
    assert found is not None
    wanting = pod(requests={"cpu": "2", GPU: "1"})  # half of each
    rates = {
        len(names): NodeResourcesBalancedAllocation(Scoring(resources=names)).pre_score(
            state_of(wanting), made
        )
        for names in (
            (("cpu", 1.0),),
            (("cpu", 1.0), (GPU, 1.0)),
            (("cpu", 1.0), ("memory", 1.0), (GPU, 1.0)),
        )
    }
    rated = {count: round(rate(found), 3) for count, rate in rates.items() if rate is not None}  # type: ignore[arg-type]
    assert rated == {1: 0.0, 2: 0.0, 3: 23.57}  # memory is not used at all


def test_5004_sched_13_it_decides_before_the_schedulers_own_way_with_devices():
    """Where nobody asks for it, devices are spent where that leaves most for others; nodes come after."""
    for plugin in (NodeResourcesFit, NodeResourcesBalancedAllocation):
        assert plugin(Scoring(resources=RESOURCES)).tier is Tier.WISH
        assert plugin().tier is Tier.RESOURCES


def test_5004_perf_02_the_benchmark_scores_what_upstreams_does():
    """NodeResourcesFit with LeastAllocated over cpu, memory and the extended resource."""
    for workload in ("fast", "2000pods_200nodes", "5000pods_500nodes"):
        shape = find(f"ExtendedResourceScoring/{workload}")
        assert shape.scoring is not None
        assert shape.scoring.strategy is Strategy.LEAST_ALLOCATED
        assert dict(shape.scoring.resources).keys() == {"cpu", "memory", GPU}
        assert shape.scene.requests_of(0).keys() == {"cpu", "memory", GPU}
