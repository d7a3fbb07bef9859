"""An autoscaler's what-if about one driver's claims."""

import pytest

from allot.allocation import Node
from allot.api import Object, classic, encode, meta, resource
from allot.api.numeric import NumericParameterType
from allot.driver import controller as kit
from allot.driver.controller.answers import finalizer
from allot.driver.controller.sessions import SESSIONS_MAX, CannotPlace, Known, Recent, Session, is_known_to
from allot.driver.controller.views import (
    AllocationResult,
    ClaimSpec,
    ClaimStatus,
    Pod,
    PodClaim,
    PodSpec,
    ResourceClaim,
)
from allot.drivers.gpu_memory.cards import Card, Cards
from allot.drivers.gpu_memory.controller import Imagined

GI = 2**30
ME = "gpu.example.com"
NODES = [Node("n1"), Node("n2")]


def parameters(memory):
    fields = {
        "apiVersion": f"{ME}/v1",
        "kind": "GPURequirements",
        "metadata": {"name": "r"},
        "memory": memory,
    }
    return Object(encode(fields))


def claim(name, mode="", owner="", status=None, deleted=False):
    pod = meta.OwnerReference(api_version="v1", kind="Pod", name="p", uid=owner, controller=True)
    metadata = meta.ObjectMeta(
        name=name,
        namespace="ns",
        uid=f"uid-{name}",
        owner_references=(pod,) if owner else (),
        deletion_timestamp="now" if deleted else "",
    )
    spec = ClaimSpec(resource_class_name="gpu", allocation_mode=mode)
    return ResourceClaim(metadata=metadata, spec=spec, status=status or ClaimStatus())


def known(one, memory="2Gi", suitable=None):
    asked = kit.Ask(
        kit.Claim("ns", one.metadata.name, one.metadata.uid, "gpu"), kit.Class("gpu"), parameters(memory)
    )
    return Known(one, classic.ResourceClass(driver_name=ME, suitable_nodes=suitable), asked)


def pod(name, *claims, template=False):
    entries = tuple(
        PodClaim(name=one, resource_claim_template_name="t")
        if template
        else PodClaim(name=one, resource_claim_name=one)
        for one in claims
    )
    metadata = meta.ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}")
    return Pod(metadata=metadata, spec=PodSpec(resource_claims=entries))


def session(*claims, cards=((("n1", "gpu-0"), 4 * GI),)):
    found = {("ns", one.claim.metadata.name): one for one in claims}
    return Session(ME, found, Imagined(Cards([Card(*at, memory) for at, memory in cards])))


def test_what_a_pod_would_take_counts_in_later_answers():
    """3063-CA-15."""
    it = session(*(known(claim(name)) for name in "abc"))
    assert set(it.failed(pod("p1", "a"), NODES)) == {"n2"}
    it.select(pod("p1", "a"), NODES[0])
    it.select(pod("p2", "b"), NODES[0])
    assert set(it.failed(pod("p3", "c"), NODES)) == {"n1", "n2"}
    with pytest.raises(CannotPlace, match="has nothing there"):
        it.select(pod("p3", "c"), NODES[0])


def test_two_pods_that_wait_for_one_exclusive_claim_cannot_both_have_it():
    """3063-CA-17: a stateless plugin would count it twice."""
    it = session(known(claim("a")))
    it.select(pod("p1", "a"), NODES[0])
    assert it.failed(pod("p1", "a"), NODES) == {"n2": "a claim of the pod is allocated elsewhere"}
    assert it.failed(pod("p2", "a"), NODES) == dict.fromkeys(
        ("n1", "n2"), "claim a is used by another pod, and cannot be shared"
    )


def test_a_shared_claim_serves_32_and_no_more():
    """3063-SHARE-03, X-08."""
    users = tuple(
        resource.ResourceClaimConsumerReference(resource="pods", name=f"q{n}", uid=f"q{n}") for n in range(31)
    )
    status = ClaimStatus(driver_name=ME, allocation=AllocationResult(shareable=True), reserved_for=users)
    it = session(known(claim("a", status=status)))
    it.select(pod("p1", "a"), NODES[1])
    assert it.failed(pod("p1", "a"), NODES) == {}
    assert it.failed(pod("p2", "a"), NODES)["n1"] == "claim a has 32 users, and 32 is the most"


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (claim("a", "Immediate"), "not allocated yet"),
        (claim("a", deleted=True), "is being deleted"),
        (
            claim("a", status=ClaimStatus(allocation=AllocationResult(), deallocation_requested=True)),
            "is being given back",
        ),
        (claim("a", deleted=True, status=ClaimStatus(allocation=AllocationResult())), "is being given back"),
    ],
)
def test_a_claim_that_nobody_can_have_now_fails_on_every_node(one, why):
    failed = session(known(one)).failed(pod("p1", "a"), NODES)
    assert failed.keys() == {"n1", "n2"}
    assert all(why in one for one in failed.values())


def test_the_labels_of_an_imagined_node_say_what_it_would_have():
    """3063-CA-14."""
    it = session(*(known(claim(name), "8Gi") for name in "ab"))
    labels = {f"{ME}/cards": "1", f"{ME}/memory": "8Gi"}
    imagined = [
        Node("new-1", labels),
        Node("new-2", labels),
        Node("plain"),
        Node("odd", {f"{ME}/cards": "x"}),
    ]
    assert set(it.failed(pod("p1", "a"), imagined)) == {"plain", "odd"}
    it.select(pod("p1", "a"), imagined[0])
    assert set(it.failed(pod("p2", "b"), imagined)) == {"new-1", "plain", "odd"}


def test_the_classes_own_selector_narrows_the_nodes():
    it = session(known(claim("a"), suitable=kit.with_labels(gpu="yes")))
    assert it.failed(pod("p1", "a"), NODES)["n1"] == "class gpu does not suit the node"
    assert it.failed(pod("p1", "a"), [Node("n1", {"gpu": "yes"})]) == {}


def test_a_generated_claim_of_another_pod_of_the_name_is_not_this_pods():
    """3063-LIFE-07: it is not the driver's business whether this pod fits."""
    it = session(known(claim("p1-a", owner="uid-other")))
    assert it.failed(pod("p1", "a", template=True), NODES) == {}
    own = session(known(claim("p1-a", owner="uid-p1")))
    assert set(own.failed(pod("p1", "a", template=True), NODES)) == {"n2"}


def test_parameters_that_cannot_be_read_are_told_for_every_node():
    broken = known(claim("a"))._replace(ask=kit.NotUsable("there is no GPURequirements r"))
    assert session(broken).failed(pod("p1", "a"), NODES)["n1"] == "there is no GPURequirements r"


def test_the_claims_of_other_drivers_are_left_to_them():
    assert session().failed(pod("p1", "foreign"), NODES) == {}


OURS = classic.ResourceClass(driver_name=ME)
NUMERIC = classic.ResourceClass(driver_name=ME, numeric_parameters=(NumericParameterType(),))
BY_SCHEDULER = resource.shape.NUMERIC_FINALIZER


@pytest.mark.parametrize(
    ("finalizers", "driver", "of", "is_known"),
    [
        ((), "", OURS, True),
        ((), "", None, False),
        ((), "", classic.ResourceClass(driver_name="other.example.com"), False),
        ((finalizer(ME),), "", None, True),
        ((), ME, None, True),
        ((), "other.example.com", OURS, False),
        ((), "", NUMERIC, False),
        ((BY_SCHEDULER,), "", OURS, False),
        ((BY_SCHEDULER,), ME, OURS, False),
        ((BY_SCHEDULER,), ME, NUMERIC, False),
    ],
)
def test_a_driver_answers_for_claims_that_it_allocates_and_leaves_the_schedulers_alone(
    finalizers, driver, of, is_known
):
    """Of one that the scheduler allocates with numeric parameters it says nothing, whatever the class says by
    now."""
    metadata = meta.ObjectMeta(name="c", namespace="ns", finalizers=finalizers)
    shown = ResourceClaim(metadata=metadata, status=ClaimStatus(driver_name=driver))
    assert is_known_to(ME, shown, of) is is_known


def test_a_few_sessions_are_kept_and_the_oldest_goes():
    """3063-CA-11: there is no stop."""
    kept = Recent()
    for n in range(SESSIONS_MAX):
        kept.add(str(n), n)
    assert kept.get("0") == 0
    kept.add("new", 99)
    assert kept.get("1") is None
    assert kept.get("0") == 0
    assert len(kept) == SESSIONS_MAX
