"""Who must go so that a pod of higher priority fits."""

from allot.scheduler.cycle import Placed, Unplaced
from allot.scheduler.plugins.preemption import DefaultPreemption
from allot.scheduler.snapshot import Snapshot
from allot.scheduler.writes import Preempt, Remedy, SearchOn

from ..objects import pod
from .worlds import FABRIC, Running, Wanting, World, claim, others, schedule, wanting


def answer(world: World, want: Wanting, snapshot: Snapshot | None = None) -> Preempt | None:
    """What is proposed for the pod, which must not fit as things are."""
    snapshot = snapshot or world.snapshot()
    outcome = schedule(wanting(want, snapshot), snapshot)
    assert isinstance(outcome, Unplaced)
    assert outcome.remedy is None or isinstance(outcome.remedy, Preempt)
    return outcome.remedy


def evicted(world: World, want: Wanting) -> tuple[str, list[str]] | None:
    found = answer(world, want)
    return None if found is None else (found.node, [victim.key.name for victim in found.victims])


# -- who may, and who may not ---------------------------------------------------------------------


def test_a_pod_of_lower_priority_makes_room():
    world = World({"a": 4}, pods=(Running("low", "a", cpu=3),))
    assert evicted(world, Wanting(cpu=2)) == ("a", ["low"])


def test_nobody_of_the_same_priority_is_evicted():
    """EVICT1."""
    world = World({"a": 4}, pods=(Running("equal", "a", priority=10, cpu=3),))
    assert evicted(world, Wanting(cpu=2)) is None


def test_a_pod_that_must_not_preempt_waits():
    """EVICT1."""
    world = World({"a": 4}, pods=(Running("low", "a", cpu=3),))
    assert evicted(world, Wanting(cpu=2, policy="Never")) is None


def test_nobody_is_evicted_where_that_does_not_help():
    """The node is too small, or has the wrong labels."""
    world = World({"a": 4, "b": 8}, pods=(Running("low", "a", cpu=3), Running("other", "b", cpu=8)))
    assert evicted(world, Wanting(cpu=9)) is None
    assert evicted(world, Wanting(cpu=5, selector={"name": "a"})) is None
    assert evicted(world, Wanting(cpu=2, selector={"name": "a"})) == ("a", ["low"])


# -- devices ----------------------------------------------------------------------------------------


def test_devices_come_free_with_the_pod_that_holds_them():
    """The node has cpu enough: it is the devices that lack."""
    world = World(
        {"a": 8},
        gpus={"a": 2},
        pods=(Running("holder", "a", cpu=1, claim="c"), Running("idle", "a", cpu=1)),
        claims={"c": ("a/gpu-0", "a/gpu-1")},
    )
    assert evicted(world, Wanting(gpus=1)) == ("a", ["holder"])


def test_only_as_many_holders_go_as_are_needed():
    world = World(
        {"a": 8},
        gpus={"a": 3},
        pods=tuple(Running(f"p{index}", "a", claim=f"c{index}", started=index) for index in range(3)),
        claims={f"c{index}": (f"a/gpu-{index}",) for index in range(3)},
    )
    assert evicted(world, Wanting(gpus=2)) == ("a", ["p1", "p2"])  # the oldest stays


def test_a_shared_claim_gives_its_devices_back_only_with_its_last_pod():
    world = World(
        {"a": 8},
        gpus={"a": 1},
        pods=(Running("one", "a", claim="c", started=1), Running("two", "a", claim="c", started=2)),
        claims={"c": ("a/gpu-0",)},
    )
    assert evicted(world, Wanting(gpus=1)) == ("a", ["one", "two"])
    shared_with_equal = World(
        {"a": 8},
        gpus={"a": 1},
        pods=(Running("one", "a", claim="c"), Running("equal", "a", claim="c", priority=10)),
        claims={"c": ("a/gpu-0",)},
    )
    assert evicted(shared_with_equal, Wanting(gpus=1)) is None


def test_the_claim_of_the_pod_itself_is_not_taken_from_under_it():
    """It shares a claim with a pod of lower priority, and wants one device more: there is none."""
    world = World(
        {"a": 4}, gpus={"a": 1}, pods=(Running("low", "a", cpu=4, claim="c"),), claims={"c": ("a/gpu-0",)}
    )
    assert evicted(world, Wanting(cpu=2, claim="c")) == ("a", ["low"])
    assert evicted(world, Wanting(gpus=1, claim="c")) is None


def test_a_device_that_many_nodes_reach_is_freed_by_evicting_a_pod_elsewhere():
    """Node a has room, and the only device of the fabric is held from node b."""
    world = World(
        {"a": 8, "b": 1},
        gpus={FABRIC: 1},
        pods=(Running("far", "b", cpu=1, claim="c"),),
        claims={"c": ("fabric/gpu-0",)},
    )
    found = evicted(world, Wanting(cpu=4, gpus=1))
    assert found == ("a", ["far"])


# -- the cheapest -----------------------------------------------------------------------------------


def test_the_node_whose_victims_matter_least_is_chosen():
    world = World(
        {"a": 4, "b": 4, "c": 4},
        pods=(
            Running("five", "a", priority=5, cpu=4),
            Running("zero", "b", priority=0, cpu=4),
            Running("three", "c", priority=3, cpu=4),
        ),
    )
    assert evicted(world, Wanting(cpu=4)) == ("b", ["zero"])


def test_of_equal_victims_fewer_are_better_and_then_younger_ones():
    world = World(
        {"a": 4, "b": 4, "c": 4},
        pods=(
            Running("half", "a", cpu=2),
            Running("other-half", "a", cpu=2),
            Running("old", "b", cpu=4, started=1),
            Running("young", "c", cpu=4, started=8),
        ),
    )
    assert evicted(world, Wanting(cpu=4)) == ("c", ["young"])


def test_one_large_pod_goes_rather_than_two_small_ones_of_the_same_priority():
    """Bringing the oldest back first would keep the large one."""
    world = World(
        {"a": 4},
        pods=(
            Running("large", "a", cpu=2, started=1),
            Running("small", "a", cpu=1, started=2),
            Running("small-too", "a", cpu=1, started=3),
        ),
    )
    assert evicted(world, Wanting(cpu=2)) == ("a", ["large"])


def test_two_large_pods_go_rather_than_four_small_ones():
    large = tuple(Running(f"large{index}", "a", cpu=2, started=index) for index in range(2))
    small = tuple(Running(f"small{index}", "a", cpu=1, started=5 + index) for index in range(4))
    world = World({"a": 8}, pods=large + small)
    assert evicted(world, Wanting(cpu=4)) == ("a", ["large0", "large1"])


def test_pods_that_a_budget_protects_are_spared_where_others_do():
    """Though they are the less important ones."""
    world = World(
        {"a": 4, "b": 4},
        pods=(
            Running("guarded", "a", priority=0, cpu=4, labels={"app": "db"}),
            Running("free", "b", priority=5, cpu=4),
        ),
        budgets={"db": 0},
    )
    assert evicted(world, Wanting(cpu=4)) == ("b", ["free"])


def test_a_budget_is_broken_where_nothing_else_helps():
    world = World({"a": 4}, pods=(Running("guarded", "a", cpu=4, labels={"app": "db"}),), budgets={"db": 0})
    assert evicted(world, Wanting(cpu=4)) == ("a", ["guarded"])


def test_a_budget_allows_as_many_as_it_says():
    world = World(
        {"a": 4, "b": 4},
        pods=(
            Running("one", "a", cpu=2, labels={"app": "db"}),
            Running("two", "a", cpu=2, labels={"app": "db"}),
            Running("three", "b", cpu=2, labels={"app": "db"}),
            Running("five", "b", priority=5, cpu=2),
        ),
        budgets={"db": 1},
    )
    assert evicted(world, Wanting(cpu=4)) == ("b", ["five", "three"])


def test_a_budget_that_is_not_used_up_protects_nobody_in_particular():
    """It allows one of two; the younger of them goes rather than the older pod that no budget covers."""
    world = World(
        {"a": 4},
        pods=(
            Running("old", "a", cpu=2, started=0),
            Running("young", "a", cpu=1, started=1, labels={"app": "db"}),
            Running("idle", "a", cpu=0, started=0, labels={"app": "db"}),
        ),
        budgets={"db": 1},
    )
    assert evicted(world, Wanting(cpu=2)) == ("a", ["young"])


# -- room that is coming ------------------------------------------------------------------------------

SOON = "2026-01-01T12:00:30Z"


def test_nobody_is_evicted_while_a_pod_is_leaving_whose_room_is_enough():
    """EVICT4: the pod waits, and its room is kept."""
    world = World(
        {"a": 4, "b": 4}, pods=(Running("going", "a", cpu=4, deleted=SOON), Running("low", "b", cpu=4))
    )
    assert evicted(world, Wanting(cpu=4)) == ("a", [])
    assert evicted(world, Wanting(cpu=4, nominated="a")) is None


def test_room_that_does_not_come_is_kept_no_longer():
    """Nobody of lower priority is left, or nothing on the node would help: the others may have it."""
    for world in (
        World({"a": 4}, pods=(Running("equal", "a", priority=10, cpu=3),)),
        World({"a": 2}, pods=(Running("low", "a", cpu=1),)),
    ):
        snapshot = world.snapshot()
        assert answer(world, Wanting(cpu=4, nominated="a"), snapshot) is None
        assert not snapshot.prospects.nominees("a")


def test_room_that_is_on_its_way_stays_for_a_pod_that_may_evict_nobody():
    """Its victim has the priority that it has; or it was told meanwhile not to preempt."""
    world = World({"a": 4}, pods=(Running("going", "a", priority=10, cpu=4, deleted=SOON),))
    for want in (Wanting(cpu=4, nominated="a"), Wanting(cpu=4, nominated="a", policy="Never")):
        snapshot = world.snapshot()
        assert answer(world, want, snapshot) is None
        assert [one.key.name for one in snapshot.prospects.nominees("a")] == ["wanting"]


def test_a_pod_that_takes_long_to_end_is_not_waited_for_unless_it_makes_room():
    late, low = "2026-01-01T13:00:00Z", Running("low", "b", cpu=4)
    world = World({"a": 4, "b": 4}, pods=(Running("slow", "a", cpu=4, deleted=late), low))
    assert evicted(world, Wanting(cpu=4)) == ("b", ["low"])
    made = World({"a": 4, "b": 4}, pods=(Running("slow", "a", cpu=4, deleted=late, preempted=True), low))
    assert evicted(made, Wanting(cpu=4, nominated="a")) is None


def test_a_pod_that_should_be_gone_long_since_is_not_counted_on():
    stuck = "2026-01-01T11:00:00Z"
    world = World(
        {"a": 4, "b": 4}, pods=(Running("stuck", "a", cpu=4, deleted=stuck), Running("low", "b", cpu=4))
    )
    assert evicted(world, Wanting(cpu=4)) == ("b", ["low"])


def test_devices_whose_pod_is_gone_are_on_their_way_back():
    """EVICT4: between the end of a pod and the news of its claim nobody else is evicted."""
    world = World(
        {"a": 4},
        gpus={"a": 2},
        pods=(Running("low", "a", claim="kept"),),
        claims={"kept": ("a/gpu-0",), "given-back": ("a/gpu-1",)},
        gone=("departed",),
    )
    assert evicted(world, Wanting(gpus=1)) == ("a", [])


def test_a_shared_device_comes_back_though_its_pod_leaves_from_another_node():
    """EVICT4: the pod that leaves is on a, where there is no room; the device will be within reach of b."""
    world = World(
        {"a": 4, "b": 4},
        gpus={FABRIC: 2},
        pods=(
            Running("equal", "a", priority=10, cpu=3),
            Running("going", "a", cpu=1, claim="c1", deleted=SOON),
            Running("low", "b", claim="c2"),
        ),
        claims={"c1": ("fabric/gpu-0",), "c2": ("fabric/gpu-1",)},
    )
    assert evicted(world, Wanting(cpu=4, gpus=1)) == ("b", [])


def test_the_victims_of_a_decision_are_not_chosen_twice():
    """EVICT4: the server has not heard of it yet."""
    world = World({"a": 4, "b": 4}, pods=(Running("one", "a", cpu=4, started=5), Running("two", "b", cpu=4)))
    snapshot = world.snapshot()
    assert answer(world, Wanting(cpu=4), snapshot) is not None
    assert answer(world, Wanting(cpu=4), snapshot) is None


def test_room_that_was_made_for_one_pod_is_not_counted_for_the_next():
    """Both of them get a victim of their own, also on the same node."""
    world = World(
        {"a": 4}, pods=(Running("one", "a", cpu=2, started=1), Running("two", "a", cpu=2, started=2))
    )
    snapshot = world.snapshot()
    asked = others()
    plugins = [*asked, DefaultPreemption(asked)]
    found = []
    for name in ("first", "second", "third"):
        outcome = schedule(pod(name, priority=10, requests={"cpu": "2"}), snapshot, plugins)
        assert isinstance(outcome, Unplaced)
        victims = outcome.remedy.victims if isinstance(outcome.remedy, Preempt) else ()
        found.append([victim.key.name for victim in victims])
    assert found == [["two"], ["one"], []]


def test_devices_that_were_freed_for_one_pod_are_not_counted_for_the_next():
    world = World(
        {"a": 8},
        gpus={"a": 2},
        pods=(Running("one", "a", claim="c1", started=1), Running("two", "a", claim="c2", started=2)),
        claims={"c1": ("a/gpu-0",), "c2": ("a/gpu-1",)},
    )
    snapshot = world.snapshot()
    first = answer(world, Wanting(gpus=1), snapshot)
    assert first is not None
    assert [victim.key.name for victim in first.victims] == ["two"]
    snapshot.put_claim(claim("another", count=1))
    uses = [{"name": "gpu", "resourceClaimName": "another"}]
    outcome = schedule(pod("other", priority=10, resourceClaims=uses), snapshot)
    assert isinstance(outcome, Unplaced)
    assert isinstance(outcome.remedy, Preempt)
    assert [victim.key.name for victim in outcome.remedy.victims] == ["one"]


def test_pods_of_lower_priority_stay_away_from_room_that_was_made():
    """EVICT5: the victim is gone and the pod is not there yet."""
    world = World({"a": 4})
    snapshot = world.snapshot()
    snapshot.nominate(pod("urgent", priority=10, requests={"cpu": "4"}), "a")
    small = pod("small", priority=0, requests={"cpu": "1"})
    kept = schedule(small, snapshot)
    assert isinstance(kept, Unplaced)
    assert [one.reason for one in kept.reasons] == ["node(s) are kept for a pod of higher priority"]
    assert isinstance(schedule(pod("urgent", priority=10, requests={"cpu": "4"}), snapshot), Placed)


# -- bounds -----------------------------------------------------------------------------------------


def of_no_use(count: int) -> list[Running]:
    """On each of so many nodes somebody may go, and that is not enough."""
    equal = [Running(f"equal{index}", f"n{index}", priority=10, cpu=3) for index in range(count)]
    return [*equal, *(Running(f"low{index}", f"n{index}", cpu=1) for index in range(count))]


def searched(pods: list[Running], nodes: int, times: int) -> list[Remedy | None]:
    """What comes of so many attempts that look at two nodes each; another pod's come in between."""
    snapshot = World({f"n{index}": 4 for index in range(nodes)}, pods=tuple(pods)).snapshot()
    asked = others()
    plugins = [*asked, DefaultPreemption(asked, checks_max=2)]
    remedies: list[Remedy | None] = []
    for _ in range(times):
        outcome = schedule(wanting(Wanting(cpu=4), snapshot), snapshot, plugins)
        assert isinstance(outcome, Unplaced)
        remedies.append(outcome.remedy)
        schedule(pod("another", priority=9, requests={"cpu": "4"}), snapshot, plugins)
    return remedies


def test_the_search_goes_on_where_it_stopped():
    """Only the last node helps."""
    *before, last = searched([*of_no_use(5), Running("victim", "n5", priority=9, cpu=4)], nodes=6, times=3)
    assert before == [SearchOn(), SearchOn()]
    assert isinstance(last, Preempt)


def test_a_search_that_finds_nothing_ends_when_it_has_seen_every_node():
    assert searched(of_no_use(5), nodes=5, times=4) == [SearchOn(), SearchOn(), None, SearchOn()]


def test_nodes_where_nobody_holds_devices_cost_no_check():
    """Many nodes have somebody to evict, and only the last has devices: two checks are enough to see it."""
    names = [f"n{index}" for index in range(20)]
    world = World(
        dict.fromkeys(names, 4),
        gpus={"n19": 1},
        pods=(*(Running(f"low{name}", name) for name in names), Running("holder", "n19", claim="c")),
        claims={"c": ("n19/gpu-0",)},
    )
    snapshot = world.snapshot()
    asked = others()
    outcome = schedule(
        wanting(Wanting(gpus=1), snapshot), snapshot, [*asked, DefaultPreemption(asked, checks_max=2)]
    )
    assert isinstance(outcome, Unplaced) and isinstance(outcome.remedy, Preempt)
    assert [victim.key.name for victim in outcome.remedy.victims] == ["holder"]


def test_a_budget_is_charged_before_anybody_has_counted():
    """It allows one to go. The second time somebody else goes, though of higher priority."""
    world = World(
        {"a": 4},
        pods=(
            *(Running(f"guarded{index}", "a", cpu=1, labels={"app": "db"}) for index in range(2)),
            *(Running(f"free{index}", "a", cpu=1, priority=5) for index in range(2)),
        ),
        budgets={"db": 1},
    )
    snapshot = world.snapshot()
    victims = []
    for name in ("first", "second"):
        outcome = schedule(pod(name, priority=10, requests={"cpu": "1"}), snapshot)
        assert isinstance(outcome, Unplaced) and isinstance(outcome.remedy, Preempt)
        victims += [victim.key.name.rstrip("01") for victim in outcome.remedy.victims]
    assert victims == ["guarded", "free"]
