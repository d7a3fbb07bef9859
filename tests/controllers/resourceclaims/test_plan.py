"""The plans alone: values in, values out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Object, encode, resource
from allot.controllers.resourceclaims import releasing
from allot.controllers.resourceclaims.generating import Adopt, Create, step_for
from allot.controllers.resourceclaims.memory import DOUBTFUL_S, FORGOTTEN_S, GONE_MAX, Gone, Made
from allot.controllers.resourceclaims.releasing import Verdict, judge, plan
from allot.controllers.resourceclaims.views import Pod, PodClaim, pod_of

UIDS = ("u1", "u2", "u3")


def claim(
    reserved: tuple[str, ...] = (), allocated: bool = True, protected: bool = True, deleting: bool = False
) -> Object:
    metadata: dict[str, Any] = {"name": "c", "namespace": "ns", "uid": "claim"}
    metadata["finalizers"] = ["example.com/other", *([resource.limits.FINALIZER] if protected else [])]
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status: dict[str, Any] = {}
    if allocated:
        status["allocation"] = {"devices": {"results": []}}
    if reserved:
        status["reservedFor"] = [
            {"resource": "pods", "name": f"p-{uid}", "uid": uid, "fromTheFuture": uid} for uid in reserved
        ]
    return Object(encode({"kind": "ResourceClaim", "metadata": metadata, "status": status}))


def pod(uid: str = "u1", phase: str = "Running", node: str = "n", deleting: bool = False) -> Pod:
    metadata = {
        "name": "p",
        "uid": uid,
        **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {}),
    }
    fields = {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}
    return pod_of(Object(encode(fields)))


def by(uid: str = "u1", **more: str) -> resource.ResourceClaimConsumerReference:
    return resource.ResourceClaimConsumerReference(resource=more.get("resource", "pods"), name="p", uid=uid,
                                                   api_group=more.get("group", ""))  # fmt: skip


@pytest.mark.parametrize(
    ("cached", "gone", "verdict"),
    [
        (pod(), False, Verdict.KEEP),
        (pod(phase="Succeeded"), False, Verdict.DROP),
        (pod(phase="Failed"), False, Verdict.DROP),
        (pod(node="", deleting=True), False, Verdict.DROP),
        (pod(deleting=True), False, Verdict.KEEP),
        (pod(uid="another"), False, Verdict.ASK),
        (pod(uid="another", phase="Succeeded"), False, Verdict.ASK),
        (None, False, Verdict.ASK),
        (None, True, Verdict.DROP),
    ],
)
def test_a_cache_is_believed_about_what_it_has_seen_and_nothing_else(cached, gone, verdict):
    """Rule 6.1: known deleted, replaced, terminal, deleted before scheduling; unknown is asked."""
    assert judge(by(), cached, gone) is verdict


@pytest.mark.parametrize("more", [{"resource": "jobs"}, {"group": "example.com"}])
def test_other_consumers_are_kept_whatever_is_known(more):
    assert judge(by(**more), None, True) is Verdict.KEEP


@given(
    st.lists(st.sampled_from(UIDS), unique=True).map(tuple),
    st.sets(st.sampled_from(UIDS)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_a_plan_keeps_its_promises(reserved, gone, allocated, protected, deleting):
    """C1, C2 as far as one decision can."""
    decided = plan(claim(reserved, allocated or bool(reserved), protected, deleting), gone)
    kept = [uid for uid in reserved if uid not in gone]
    status = decided.status or {}
    if "reservedFor" in status:
        assert [one["uid"] for one in status["reservedFor"] or ()] == kept
        assert all(one["fromTheFuture"] == one["uid"] for one in status["reservedFor"] or ())
    else:
        assert list(reserved) == kept
    assert decided.is_unreserved == (not kept)
    clears = "allocation" in status
    lets_go = clears or bool(reserved and not kept)
    assert decided.lets_go == lets_go, "N2: the last reservation waits for the node, whoever deallocates"
    assert not (clears and kept), "C6"
    assert not clears or (protected and decided.unprotects), (
        "C1: whoever clears takes the finalizer off after"
    )
    assert not decided.unprotects or protected
    if reserved and not kept and protected:
        assert clears, "C1: the last reservation takes the allocation with it"
    if not reserved and not deleting:
        assert decided == releasing.ReleasePlan(is_unreserved=True), (
            "allocated and never reserved is not touched"
        )


def orphan(name: str, created: str = "2026-01-01T00:00:00Z", deleting: bool = False) -> Object:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1", "controller": True}
    metadata: dict[str, Any] = {
        "name": name,
        "uid": name,
        "creationTimestamp": created,
        "ownerReferences": [owner],
        "annotations": {resource.limits.POD_CLAIM_NAME_ANNOTATION: "gpu"},
    }
    if deleting:
        metadata["deletionTimestamp"] = created
    return Object(encode({"kind": "ResourceClaim", "metadata": metadata}))


def test_the_oldest_orphan_that_stays_is_adopted():
    entry = PodClaim(name="gpu", resource_claim_template_name="t")
    leaving = orphan("a", deleting=True)
    later, earlier = orphan("b", "2026-01-02T00:00:00Z"), orphan("c")
    assert step_for(pod(), entry, None, [leaving, later, earlier]) == Adopt("c")
    assert step_for(pod(), entry, None, [leaving]) == Create("t")
    assert step_for(pod("another"), entry, None, [earlier]) == Create("t")


def test_only_our_finalizer_goes():
    assert releasing.without_finalizer(claim()) == ["example.com/other"]


def test_a_full_claim_takes_no_further_reservation():
    """C2: 256 at most."""
    full = claim(tuple(f"x{n}" for n in range(256)))
    assert not releasing.can_be_reserved(full.view(resource.ResourceClaim), pod())
    room = claim(tuple(f"x{n}" for n in range(255)))
    assert releasing.can_be_reserved(room.view(resource.ResourceClaim), pod())


@pytest.mark.parametrize("not_now", [claim(allocated=False), claim(deleting=True), claim(("u1",))])
def test_no_reservation_where_there_is_no_allocation_or_the_claim_goes_or_it_is_there(not_now):
    """C2, 12.2."""
    assert not releasing.can_be_reserved(not_now.view(resource.ResourceClaim), pod())


def test_memory_of_the_gone_is_bounded_and_keeps_the_node():
    """Rule 6.1: upstream remembers the last 500 uids that it saw deleted; the bound is larger here."""
    gone = Gone()
    for n in range(GONE_MAX + 10):
        gone.add(f"u{n}", "node")
    gone.add(f"u{GONE_MAX}")
    assert "u0" not in gone
    assert f"u{GONE_MAX + 9}" in gone
    assert gone.node_of(f"u{GONE_MAX}") == "node"


def test_what_was_made_is_remembered_until_it_is_seen_and_doubted_after_a_minute():
    """Rule 6.1: what upstream has its mutation cache for. It is emptied by what is seen, so that it
    is small without a bound, and after a minute the server is asked."""
    made = Made()
    first, second = (Object(encode({"metadata": {"name": n, "uid": n}})) for n in "ab")
    made.add(first, "pod", 0.0)
    made.add(second, "pod", 10.0)
    assert made.of("pod") == (first, second)
    assert made.doubtful("pod", DOUBTFUL_S + 1) == (first,)
    made.forget("b")
    made.forget("b")
    assert made.of("pod") == (first,)
    assert made.of("other") == made.doubtful("other", DOUBTFUL_S + 1) == ()


def test_what_was_made_and_nobody_asks_about_is_forgotten_in_the_end():
    made = Made()
    first, second = (Object(encode({"metadata": {"name": n, "uid": n}})) for n in "ab")
    made.add(first, "gone", 0.0)
    made.add(second, "pod", FORGOTTEN_S + 1)
    assert made.of("gone") == ()
    assert made.of("pod") == (second,)
