"""What if these pods were gone? Asked of a fork that is as it was afterwards."""

from allot.allocation import PoolId
from allot.informers import Key
from allot.scheduler.framework import CycleState
from allot.scheduler.plugins.preemption.trial import Trial
from allot.scheduler.pod import PodInfo
from allot.scheduler.snapshot import Snapshot

from ..objects import pod
from .worlds import DRIVER, NOW, Running, Wanting, World, others, wanting

WORLD = World(
    {"a": 4, "b": 4},
    gpus={"a": 2, "b": 1},
    pods=(
        Running("one", "a", cpu=2, claim="shared"),
        Running("two", "a", cpu=1, claim="shared"),
        Running("three", "a", cpu=1, claim="own"),
    ),
    claims={"shared": ("a/gpu-0",), "own": ("a/gpu-1",)},
)


def trial_of(want: Wanting, snapshot: Snapshot) -> Trial:
    return Trial(CycleState(wanting(want, snapshot), NOW), snapshot, others())


def by_name(trial: Trial) -> dict[str, PodInfo]:
    return {one.key.name: one for one in trial.candidates("a")}


def picture(trial: Trial) -> object:
    """Everything that a check reads of the node."""
    fork = trial.simulation.snapshot
    node = fork.node("a")
    assert node is not None
    usage = fork.ledger.usage(PoolId(DRIVER, "a"))
    held = {name: (one.owners, one.sharers) for name, one in usage.items()}
    return dict(node.used), set(node.pods), held


def test_a_pod_that_leaves_frees_what_it_requests_and_what_it_alone_holds():
    """WHATIF1."""
    trial = trial_of(Wanting(cpu=1, gpus=1), WORLD.snapshot())
    pods = by_name(trial)
    trial.evict(pods["one"])
    assert not trial.fits("a")  # cpu, and no device: the claim has another user
    trial.evict(pods["two"])
    assert trial.fits("a")
    trial.restore(pods["one"])
    assert not trial.fits("a")
    trial.evict(pods["three"])
    assert trial.fits("a")


def test_where_no_plugin_says_anything_the_pod_fits():
    snapshot = WORLD.snapshot()
    trial = Trial(CycleState(pod("any", priority=10), NOW), snapshot, [])
    assert trial.fits("a")
    assert not trial.fits("nowhere")


def test_after_a_reset_the_fork_is_as_it_was_and_the_cluster_always_was():
    """WHATIF2: also when somebody was promised room on the node."""
    snapshot = WORLD.snapshot()
    snapshot.nominate(pod("promised", priority=10, requests={"cpu": "1"}), "a")
    trial = trial_of(Wanting(gpus=2), snapshot)
    before = picture(trial)
    trial.prepare("a")
    for one in by_name(trial).values():
        trial.evict(one)
    assert picture(trial) != before
    trial.reset()
    assert picture(trial) == before
    assert set(snapshot.node("a").pods) == {one.uid for one in WORLD.pods}  # type: ignore[union-attr]


def test_a_claim_in_flight_is_in_flight_again_after_a_reset():
    """WHATIF2: held as settled it could not be given up any more."""
    snapshot = WORLD.snapshot()
    flying = snapshot.claim(Key("default", "own"))
    assert flying is not None
    hold = snapshot.ledger.hold(flying.uid)
    assert hold is not None
    snapshot.ledger.release(flying.uid)
    snapshot.ledger.fly(flying.uid, hold.devices)
    trial = trial_of(Wanting(gpus=2), snapshot)
    for back in (trial.reset, lambda: trial.restore(by_name(trial)["three"])):
        trial.evict(by_name(trial)["three"])
        assert trial.simulation.snapshot.ledger.hold(flying.uid) is None
        back()
        assert trial.simulation.snapshot.ledger.hold(flying.uid) == snapshot.ledger.hold(flying.uid)


def test_a_claim_for_extended_resources_that_another_is_listed_in_does_not_come_free():
    """C12: the claim stays for them when its own pod is evicted, so nobody is evicted for it."""
    snapshot = WORLD.snapshot()
    own = snapshot.claim(Key("default", "own"))
    assert own is not None
    made_for = {"apiVersion": "v1", "kind": "Pod", "name": "three", "uid": "uid-of-three", "controller": True}
    metadata = {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [made_for],
        "resourceVersion": "2",
    }
    three = {"resource": "pods", "name": "three", "uid": "uid-of-three"}
    outsider = {"apiGroup": "example.com", "resource": "trainings", "name": "t", "uid": "t"}
    for number, (listed, fits) in enumerate(((outsider, False), (three, True)), 2):
        status = {"reservedFor": [three] if listed is three else [three, listed]}
        metadata["resourceVersion"] = str(number)
        snapshot.put_claim(own.object.changed({"metadata": metadata, "status": status}))
        unnamed = pod("three", requests={"cpu": "1"})  # its spec does not name the claim
        snapshot.place(unnamed, "a")
        trial = trial_of(Wanting(gpus=1), snapshot)
        trial.evict(by_name(trial)["three"])
        assert trial.fits("a") is fits


def test_candidates_that_make_the_same_difference_are_alike():
    world = World(
        {"a": 9},
        gpus={"a": 4},
        pods=(
            Running("one", "a", cpu=1, claim="c1"),
            Running("two", "a", cpu=1, claim="c2"),
            Running("more", "a", cpu=2, claim="c3"),
            Running("none", "a", cpu=1),
        ),
        claims={"c1": ("a/gpu-0",), "c2": ("a/gpu-1",), "c3": ("a/gpu-2",)},
    )
    trial = trial_of(Wanting(gpus=4), world.snapshot())
    alike = {name: trial.likeness(one, "a") for name, one in by_name(trial).items()}
    assert alike["one"] == alike["two"]
    assert len(set(alike.values())) == 3
