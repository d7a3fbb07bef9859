"""Which pods go first, who belongs to whom, and what is remembered."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from allot.api import Object, encode, meta
from allot.controllers.workloads import Unseen, accepts, deletion_order, later, sort_out
from allot.informers import Added, Deleted, Updated

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "owner", "controller": True}


def pod(
    name: str, *, node: str = "n1", ready: str = "", cost: int = 0, restarts: int = 0, **more: Any
) -> Object:
    metadata = {
        "name": name,
        "uid": name,
        "namespace": "default",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {"controller.kubernetes.io/pod-deletion-cost": str(cost)},
        **more,
    }
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
    status = {
        "phase": "Running" if node else "Pending",
        "conditions": conditions,
        "containerStatuses": [{"name": "main", "restartCount": restarts}],
    }
    spec = {"nodeName": node} if node else {}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
    return Object(encode(body))


def test_the_pod_that_is_missed_least_goes_first():
    """Each is worth more than the one before it, for the reason in its name."""
    early, late = "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"
    others = [pod(f"other-{n}", node="crowded", ready=early) for n in range(9)]
    in_order = [
        pod("unbound", node=""),
        pod("not-ready"),
        pod("cheap", ready=early, cost=-5),
        pod("crowded", node="crowded", ready=early),
        pod("ready-lately", ready=late),
        pod("restarted", ready=early, restarts=3),
        pod("young", ready=early, creationTimestamp="2026-01-01T12:00:00Z"),
        pod("old", ready=early),
        pod("dear", ready=early, cost=10),
    ]
    found = deletion_order(reversed(in_order), [*in_order, *others])
    assert [one.name for one in found] == [one.name for one in in_order]


@given(st.permutations(range(6)), st.lists(st.integers(-3, 3), min_size=6, max_size=6))
def test_the_order_does_not_depend_on_how_they_came(order, costs):
    pods = [pod(f"p{n}", cost=costs[n], ready="2026-01-02T00:00:00Z") for n in range(6)]
    names = [one.name for one in deletion_order([pods[n] for n in order], pods)]
    assert names == [one.name for one in deletion_order(pods, pods)]


def test_an_empty_selector_accepts_nobody():
    assert not accepts(meta.LabelSelector(), {"app": "web"})
    need = meta.LabelSelectorRequirement(key="tier", operator="NotIn", values=("db",))
    both = meta.LabelSelector(match_labels={"app": "web"}, match_expressions=(need,))
    assert accepts(both, {"app": "web"})
    assert not accepts(both, {"app": "web", "tier": "db"})


def test_whom_to_adopt_and_whom_to_release():
    owner = Object(encode({"metadata": {"name": "web", "uid": "owner"}}))
    leaving = Object(encode({"metadata": {"name": "web", "uid": "owner", "deletionTimestamp": "t"}}))
    web = meta.LabelSelector(match_labels={"app": "web"})
    ours = pod("ours", labels={"app": "web"}, ownerReferences=[OWNER])
    stranger = pod("stranger", labels={"app": "x"}, ownerReferences=[OWNER])
    free = pod("free", labels={"app": "web"})
    taken = pod("taken", labels={"app": "web"}, ownerReferences=[{**OWNER, "uid": "other"}])
    everyone = (ours, stranger, free, taken)
    family = sort_out(owner, web, everyone)
    assert (family.owned, family.adoptable, family.strangers) == ((ours,), (free,), (stranger,))
    assert sort_out(leaving, web, everyone).adoptable == ()


def test_what_was_made_counts_until_the_cache_shows_it():
    unseen = Unseen()
    made = pod("a", ownerReferences=[OWNER])
    unseen.came(made, "owner", 0.0)
    assert unseen.complete("owner", [], 1.0) == [made]
    assert unseen.complete("other", [], 1.0) == []
    unseen.hear(Updated(pod("a"), pod("a")))  # older than the adoption
    assert unseen.complete("owner", [], 1.0) == [made]
    unseen.hear(Added(made))
    assert unseen.complete("owner", [], 1.0) == []


def test_what_was_deleted_does_not_count_though_the_cache_shows_it():
    unseen = Unseen()
    one = pod("a", ownerReferences=[OWNER])
    unseen.left("a", "owner", 0.0)
    assert unseen.complete("owner", [one], 1.0) == []
    assert unseen.complete("new owner", [one], 1.0) == [one]
    unseen.hear(Deleted(one))
    assert unseen.complete("owner", [one], 1.0) == [one]


def test_after_a_minute_the_cache_is_believed():
    unseen = Unseen()
    one = pod("a", ownerReferences=[OWNER])
    unseen.came(one, "owner", 0.0)
    unseen.left("b", "owner", 0.0)
    assert unseen.complete("owner", [pod("b")], 61.0)[0].name == "b"


@given(st.floats(-10, 100))
def test_looking_again_later_is_never_at_once(wait_s):
    """A wait of 1e-13 s moves no clock: the work would be done for ever at one moment."""
    assert later(None) is None
    again = later(wait_s)
    assert again is not None and again.after_s >= max(wait_s, 0.01)
