"""N1: a pod starts only with claims that are allocated and reserved for it."""

import pytest

from allot.api import Object, core
from allot.node.claims import NotReady, claims_of, known_claims

from .objects import claim, direct, pod


def of(one: Object, *claims: Object):
    known = {c.name: c for c in claims}
    return claims_of(one.view(core.Pod), known.get)


def test_a_claim_that_is_the_pods_own_is_ready():
    found = of(pod(spec=direct("c")), claim("c", reserved=("uid-p",)))
    assert [(one.uid, one.name) for one in found] == [("uid-c", "c")]


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ((), "does not exist"),
        ((claim("c", status={"allocation": None}),), "not allocated"),
        ((claim("c", reserved=("uid-other",)),), "not reserved for this pod"),
    ],
)
def test_a_claim_that_is_not_there_for_the_pod_is_named(claims, why):
    with pytest.raises(NotReady, match=f"claim c .*{why}"):
        of(pod(spec=direct("c")), *claims)


GENERATED = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}


def made(owner: str) -> Object:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}
    return claim("p-gpu", reserved=("uid-p",), metadata={"ownerReferences": [reference]})


def test_a_generated_claim_must_have_been_made_and_for_this_pod():
    """C4."""
    with pytest.raises(NotReady, match="has not been made"):
        of(pod(spec=GENERATED))
    recorded = pod(
        spec=GENERATED,
        status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}]},
    )
    with pytest.raises(NotReady, match="not made for this pod"):
        of(recorded, made("uid-somebody"))
    assert len(of(recorded, made("uid-p"))) == 1


def test_a_claim_that_was_made_for_another_pod_is_not_used_though_this_one_is_listed():
    """C12: somebody wrote the pod into the status of the other one's claim by hand."""
    with pytest.raises(NotReady, match="claim p-gpu was made for pod p and is used by it alone"):
        of(pod(spec=direct("p-gpu")), made("uid-somebody"))
    assert len(of(pod(spec=direct("p-gpu")), made("uid-p"))) == 1


def test_a_claim_that_was_deliberately_not_made_is_not_waited_for():
    assert of(pod(spec=GENERATED, status={"resourceClaimStatuses": [{"name": "gpu"}]})) == ()


def test_the_claim_behind_an_extended_resource_counts_too():
    extended = {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": []}}
    with pytest.raises(NotReady, match="claim x"):
        of(pod(status=extended))


def test_a_claim_that_went_with_an_attempt_at_another_node_is_not_waited_for():
    """Where the node counts the resource itself, a device plugin serves the pod, and no claim does."""
    mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "r"}
    left = {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": [mapping]}}
    view = pod(status=left).view(core.Pod)
    assert claims_of(view, {}.get, {"example.com/gpu": "8"}) == ()
    for counted in ({}, {"example.com/gpu": "0"}, {"example.com/nic": "8"}):
        with pytest.raises(NotReady, match="claim x does not exist"):
            claims_of(view, {}.get, counted)
    with pytest.raises(NotReady, match="claim x is not reserved"):
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
        there = claim("x", reserved=(), metadata={"ownerReferences": [owner]})
        claims_of(view, {"x": there}.get, {"example.com/gpu": "8"})


def test_of_a_pod_that_runs_what_is_left_is_known():
    known = {"c": claim("c")}
    running = pod(spec=direct("c", "gone"), status={"phase": "Running"})
    assert [one.name for one in known_claims(running.view(core.Pod), known.get)] == ["c"]
