"""`planning.defrag`: which pods to move so that something fits, each step safe by itself."""

import pytest

from allot.planning import BadChange
from allot.planning.defrag import (
    NoPlan,
    Plan,
    Terms,
    Wanted,
    from_manifests,
    of_profile,
    plan,
    telling,
    waiting,
)
from allot.planning.future import Cluster

from ..clusters import Fields
from .oracle import fewest
from .worlds import GPU, MIG, World, course, divided, here, node, pod, running, template, whole

ONE, TWO = template("one", GPU), template("two", GPU, 2)
SMALL = template("small", MIG, profile="1g.10gb")
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "keep", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "p"}}},
    "status": {"disruptionsAllowed": 0},
}


def planned(wanted: Wanted, *, moves: int = 4, **terms: object) -> Plan | NoPlan:
    given = {"priority": wanted.priority, **terms}
    return plan(course(wanted, Terms(**given)), moves)  # type: ignore[arg-type]


def moves(found: Plan | NoPlan) -> list[tuple[str, str, str]]:
    assert isinstance(found, Plan), found
    return [(step.pod.key.name, step.node, step.to) for step in found.steps]


def halves(*more: Fields, **parts: object) -> Cluster:
    """One of two GPUs is free on each of two nodes; `parts` are of the pod on the second, `p`. Another one
    like it would go to the first: of two nodes that are as good, the scheduler takes that."""
    p = running("p", "b", ["gpu-0"], ONE, **parts)  # type: ignore[arg-type]
    q = running("q", "a", ["gpu-0"], ONE, priority=9)
    return here(node("a"), whole("a", 2), node("b"), whole("b", 2), ONE, TWO, *p, *q, *more)


def test_a_pod_makes_room_for_two_devices_on_one_node():
    """Two are free, on different nodes. The pod that somebody makes anew goes, and the other stays."""
    found = planned(of_profile(halves(), f"2x{GPU}", "default"))
    assert moves(found) == [("p", "b", "a")]
    assert isinstance(found, Plan) and list(found.places.values()) == ["b"] and found.is_certain
    assert "1. evict default/p from b: another goes to a" in telling.planned(found)
    assert "1 move: no fewer would do" in telling.planned(found)


def test_nothing_moves_where_it_fits():
    found = planned(of_profile(halves(), GPU, "default"))
    assert moves(found) == [] and "nothing has to move" in telling.planned(found)


def test_a_partition_is_moved_within_its_node():
    """A slice in the middle of the only GPU keeps the larger half out: another one at the edge does not. Its
    stateful set makes the next pod when the first has gone."""
    used = running("p", "a", ["gpu-0-mig-1g-10gb-3"], SMALL, owner="StatefulSet")
    found = planned(of_profile(here(node("a"), *divided("a", 1), SMALL, *used), "4g.40gb", "default"))
    assert moves(found) == [("p", "a", "a")]


def stays(found: Plan | NoPlan) -> dict[str, str]:
    assert isinstance(found, NoPlan), found
    return dict(found.stays)


@pytest.mark.parametrize(
    ("parts", "more", "why"),
    [
        ({"owner": ""}, [], "nobody makes it anew"),
        ({"owner": "DaemonSet"}, [], "it belongs to its node"),
        ({"priority": 5}, [], "it is more important"),
        (
            {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
            [],
            "it is not to be evicted",
        ),
        ({}, [BUDGET], "disruption budget keep lets no pod go"),
        (
            {},
            [
                {**BUDGET, "status": {"disruptionsAllowed": 1}},
                {
                    **BUDGET,
                    "metadata": {**BUDGET["metadata"], "name": "too"},
                    "status": {"disruptionsAllowed": 1},
                },  # type: ignore[dict-item]
            ],
            "2 disruption budgets are about it, and no eviction heeds more than one",
        ),
    ],
)
def test_pods_that_must_stay_stay_and_that_is_said(parts, more, why):
    found = planned(of_profile(halves(*more, **parts), f"2x{GPU}", "default"))
    assert stays(found)["default/p"] == why
    assert f"stays    default/p: {why}" in telling.planned(found)


def test_a_budget_with_something_left_lets_it_go():
    budget = {**BUDGET, "status": {"disruptionsAllowed": 1}}
    assert moves(planned(of_profile(halves(budget), f"2x{GPU}", "default"))) == [("p", "b", "a")]


def test_pods_as_important_as_what_is_wanted_may_move():
    here_ = halves(priority=5)
    assert moves(planned(of_profile(here_, f"2x{GPU}", "default"), priority=5)) == [("p", "b", "a")]


def test_bare_pods_go_where_somebody_says_so():
    """The user by a flag, or whoever made the pod by its annotation. Nobody makes another."""
    wanted = of_profile(halves(owner=""), f"2x{GPU}", "default")
    assert moves(planned(wanted, evicts_bare=True)) == [("p", "b", "")]
    says = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
    found = planned(of_profile(halves(owner="", annotations=says), f"2x{GPU}", "default"))
    assert moves(found) == [("p", "b", "")] and "nobody makes it anew" in telling.planned(found)


def test_a_claim_that_is_only_named_is_not_moved():
    """It would stay allocated where it is, for the next pod that names it."""
    claim, user = running("p", "b", ["gpu-0"], ONE)
    claim["metadata"].pop("ownerReferences")
    user["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "p-gpu"}]
    user["status"].pop("resourceClaimStatuses")
    q = running("q", "a", ["gpu-0"], ONE, owner="")
    cluster = here(node("a"), whole("a", 2), node("b"), whole("b", 2), ONE, claim, user, *q)
    found = planned(of_profile(cluster, f"2x{GPU}", "default"))
    assert stays(found)["default/p"] == "it names claim p-gpu, which is not made anew with it"


def test_no_pod_moves_that_has_no_place_while_it_still_holds_its_own():
    """STEP1: both nodes have room for it only once it has left. Its replacement would wait meanwhile."""
    p = running("p", "b", ["gpu-0"], ONE, cpu="5")
    q = running("q", "a", ["gpu-0"], ONE, owner="", cpu="4")
    cluster = here(node("a", "8"), whole("a", 2), node("b", "8"), whole("b", 2), ONE, *p, *q)
    assert isinstance(planned(of_profile(cluster, f"2x{GPU}", "default")), NoPlan)
    lighter = running("p", "b", ["gpu-0"], ONE, cpu="4")
    cluster = here(node("a", "8"), whole("a", 2), node("b", "8"), whole("b", 2), ONE, *lighter, *q)
    assert moves(planned(of_profile(cluster, f"2x{GPU}", "default"))) == [("p", "b", "a")]


def test_room_is_made_for_a_replacement_first():
    """The pod with two devices has nowhere to go until another has moved."""
    objects = [node(name) for name in "abc"] + [whole("a", 2), whole("b", 2), whole("c", 3)]
    big = running("big", "c", ["gpu-0", "gpu-1"], TWO)
    b = running("b0", "b", ["gpu-0"], ONE)
    a = running("a0", "a", ["gpu-0"], ONE, owner="")
    found = planned(of_profile(here(*objects, ONE, TWO, *big, *b, *a), f"3x{GPU}", "default"))
    assert moves(found) == [("b0", "b", "a"), ("big", "c", "b")]


def test_a_pod_that_waits_takes_the_room_and_the_step_says_so():
    claim, _ = running("next", "a", (), TWO)
    told = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "next-gpu"}]}
    waits = {**pod("next", "two"), "status": told}
    cluster = halves({**claim, "status": {}}, waits)
    found = planned(waiting(cluster, "next", "default"))
    assert moves(found) == [("p", "b", "a")]
    assert isinstance(found, Plan) and found.steps[0].beside == {"default/next": "b"}
    with pytest.raises(BadChange, match="there is no pod default/nobody"):
        waiting(cluster, "nobody", "default")


def test_somebody_else_who_waits_and_is_more_important_may_take_it():
    """Then moving the pod is of no use to the one that is asked for."""
    claim, _ = running("first", "a", (), TWO)
    told = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "first-gpu"}]}
    waits = {**pod("first", "two", priority=9), "status": told}
    found = planned(of_profile(halves({**claim, "status": {}}, waits), f"2x{GPU}", "default"))
    assert isinstance(found, NoPlan) and found.is_certain


def test_a_replacement_that_comes_back_is_of_no_use():
    """Of two nodes that are as good the scheduler takes the first, which is where the pod was. Nothing is
    written that would turn it away."""
    p = running("p", "a", ["gpu-0"], ONE)
    q = running("q", "b", ["gpu-0"], ONE, priority=9)
    cluster = here(node("a"), whole("a", 2), node("b"), whole("b", 2), ONE, *p, *q)
    assert isinstance(planned(of_profile(cluster, f"2x{GPU}", "default")), NoPlan)


def test_a_name_that_is_no_class_and_no_profile_is_refused():
    with pytest.raises(BadChange, match=r"no device class and no profile is called 'huge'; there are .*mig"):
        of_profile(halves(), "huge", "default")
    with pytest.raises(BadChange, match="there is no pod, workload"):
        from_manifests(halves(), [])


def test_extended_resources_move_with_their_pods():
    """A pod asks for example.com/gpu, and the scheduler made the claim for it: the next one gets another."""
    claim, user = running("p", "b", ["gpu-0"], ONE)
    user["spec"].pop("resourceClaims")
    user["status"].pop("resourceClaimStatuses")
    gpu = {"example.com/gpu": "1"}
    user["spec"]["containers"][0]["resources"] = {"requests": gpu, "limits": gpu}
    claim["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    mapping = [{"containerName": "main", "resourceName": "example.com/gpu", "requestName": "gpu"}]
    user["status"]["extendedResourceClaimStatus"] = {
        "resourceClaimName": "p-gpu",
        "requestMappings": mapping,
    }
    q = running("q", "a", ["gpu-0"], ONE, owner="")
    cluster = here(node("a"), whole("a", 2), node("b"), whole("b", 2), ONE, claim, user, *q)
    found = planned(of_profile(cluster, f"2x{GPU}", "default"))
    assert moves(found) == [("p", "b", "a")]


@pytest.mark.parametrize("seed", [4, 9, 21, 26, 36, 37, 39, 42, 50, 53, 57, 61, 68, 71, 74, 79])
def test_plans_are_as_short_as_any_sequence_of_moves(seed):
    """FEW1, FEW3: an oracle tries every sequence of up to three moves, on forks of its own."""
    world = World(seed)
    best = fewest(world, 3)
    found = plan(course(world.wanted), 4)
    if best is None:
        assert isinstance(found, NoPlan) or len(found.steps) == 4
    else:
        assert isinstance(found, Plan) and len(found.steps) == best and found.is_certain
        again = course(world.wanted)
        steps = again.run([step.pod for step in found.steps])
        assert not isinstance(steps, str) and [one.to for one in steps] == [one.to for one in found.steps]
        assert again.places() == found.places
