"""What is due about a claim, and what a PodScheduling is to say: decided on values alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.allocation import Node
from allot.api import Object, classic, encode, meta, resource
from allot.api.numeric import NumericParameterType
from allot.driver import controller as kit
from allot.driver.controller import answers
from allot.driver.controller.answers import Due
from allot.driver.controller.views import AllocationResult, ClaimSpec, ClaimStatus, Pod, ResourceClaim

ME, OTHER = "gpu.example.com", "other.example.com"
MINE = answers.finalizer(ME)
OURS = classic.ResourceClass(driver_name=ME)
NUMERIC = classic.ResourceClass(driver_name=ME, numeric_parameters=(NumericParameterType(),))
BY_SCHEDULER = resource.shape.NUMERIC_FINALIZER


def claim(mode="WaitForFirstConsumer", finalizers=(), deleted=False, **status):
    metadata = meta.ObjectMeta(
        name="c", namespace="ns", uid="u", finalizers=finalizers, deletion_timestamp="now" if deleted else ""
    )
    return ResourceClaim(
        metadata=metadata,
        spec=ClaimSpec(resource_class_name="gpu", allocation_mode=mode),
        status=ClaimStatus(**status),
    )


HELD = {"driver_name": ME, "allocation": AllocationResult()}
USED = {"reserved_for": (resource.ResourceClaimConsumerReference(resource="pods", name="p", uid="1"),)}
ASKED_BACK = {"deallocation_requested": True}


@pytest.mark.parametrize(
    ("shown", "of", "due"),
    [
        # 3063-MODE-01, 3063-LIFE-10, 3063-FLOW-03: creating it is enough.
        (claim("Immediate"), OURS, Due.ALLOCATE),
        # 3063-MODE-02, 3063-PSCHED-04: nothing happens before a node is selected.
        (claim(), OURS, Due.NOTHING),
        # 3063-CLASS-08: neither of another class, nor of one that is not there.
        (claim("Immediate"), classic.ResourceClass(driver_name=OTHER), Due.NOTHING),
        (claim("Immediate"), None, Due.NOTHING),
        (claim("Immediate", deleted=True), OURS, Due.NOTHING),
        # 3063-STATE-18: our finalizer and no allocation is completed or undone, and never left.
        (claim("Immediate", (MINE,)), OURS, Due.ALLOCATE),
        (claim("Immediate", (MINE,)), None, Due.ABORT),
        (claim(finalizers=(MINE,)), OURS, Due.ABORT),
        # 3063-STATE-17: deleted while it was begun.
        (claim("Immediate", (MINE,), deleted=True), OURS, Due.ABORT),
        (claim(finalizers=(MINE,), deleted=True), None, Due.ABORT),
        (claim(finalizers=("other/f",), deleted=True), OURS, Due.NOTHING),
        # 3063-STATE-12: an allocation that says nothing is one all the same.
        (claim("Immediate", (MINE,), **HELD), OURS, Due.NOTHING),
        # 3063-FLOW-16, 3063-CLAIM-13: unused and unwanted, it is given back.
        (claim(finalizers=(MINE,), deleted=True, **HELD), None, Due.GIVE_BACK),
        (claim(finalizers=(MINE,), **HELD, **ASKED_BACK), OURS, Due.GIVE_BACK),
        # 3063-STATE-14, 3063-STATE-13: not while somebody uses it.
        (claim(finalizers=(MINE,), deleted=True, **HELD, **USED), OURS, Due.NOTHING),
        (claim(finalizers=(MINE,), **HELD, **USED, **ASKED_BACK), OURS, Due.NOTHING),
        # 3063-CLASS-07: the copied name and the finalizer say whose it is, without the class.
        (claim(finalizers=(MINE,), deleted=True, allocation=AllocationResult()), None, Due.GIVE_BACK),
        (
            claim(finalizers=(MINE,), deleted=True, driver_name=OTHER, allocation=AllocationResult()),
            OURS,
            Due.NOTHING,
        ),
        # 3063-CLAIM-06: what is held is protected.
        (claim(**HELD), OURS, Due.PROTECT),
        # 3063: what the scheduler allocates with numeric parameters is no driver's to allocate or take back.
        (claim("Immediate"), NUMERIC, Due.NOTHING),
        (claim("Immediate", (BY_SCHEDULER,)), OURS, Due.NOTHING),
        (claim(finalizers=(BY_SCHEDULER,), **HELD), NUMERIC, Due.NOTHING),
        (claim(finalizers=(BY_SCHEDULER,), deleted=True, **HELD), NUMERIC, Due.NOTHING),
        (claim(finalizers=(BY_SCHEDULER, MINE)), NUMERIC, Due.ABORT),
        (claim(finalizers=(MINE,)), NUMERIC, Due.ABORT),
        (claim(finalizers=(BY_SCHEDULER, MINE), **HELD), NUMERIC, Due.NOTHING),
        (claim(deleted=True, **HELD, **USED), OURS, Due.NOTHING),
    ],
)
def test_what_is_due_about_a_claim(shown, of, due):
    assert answers.due(shown, of, ME) is due


@pytest.mark.parametrize(
    ("shown", "of", "is_pending"),
    [
        (claim(), OURS, True),
        (claim(), None, False),
        (claim(), classic.ResourceClass(driver_name=OTHER), False),
        (claim("Immediate"), OURS, False),
        (claim(deleted=True), OURS, False),
        (claim(finalizers=(MINE,), **HELD), OURS, False),
        # What the scheduler allocates, or has begun to, whatever the class says by now.
        (claim(), NUMERIC, False),
        (claim(finalizers=(BY_SCHEDULER,)), NUMERIC, False),
        (claim(finalizers=(BY_SCHEDULER,)), OURS, False),
    ],
)
def test_a_delayed_claim_waits_for_its_driver_and_for_no_other(shown, of, is_pending):
    assert answers.is_pending(shown, of, ME) is is_pending


@pytest.mark.parametrize(
    ("shown", "is_ours"),
    [
        (claim(finalizers=(MINE,), **HELD), True),
        (claim(finalizers=(MINE,)), True),
        (claim(), False),
        (claim(finalizers=(MINE,), driver_name=OTHER, allocation=AllocationResult()), False),
        # The scheduler names the driver, too, of what it allocates; what we began before that we may hold.
        (claim(finalizers=(BY_SCHEDULER,), **HELD), False),
        (claim(finalizers=(BY_SCHEDULER, MINE), **HELD), True),
        (claim(finalizers=(BY_SCHEDULER, MINE)), True),
    ],
)
def test_what_a_driver_may_hold_something_for(shown, is_ours):
    assert answers.may_hold(shown, ME) is is_ours


MODES = st.sampled_from(["Immediate", "WaitForFirstConsumer", ""])
CLASSES = st.sampled_from([None, OURS, classic.ResourceClass(driver_name=OTHER)])
CLAIMS = st.builds(
    claim,
    MODES,
    st.sampled_from([(), (MINE,), ("other/f",), (MINE, "other/f")]),
    st.booleans(),
    driver_name=st.sampled_from(["", ME, OTHER]),
    allocation=st.sampled_from([None, AllocationResult()]),
    reserved_for=st.sampled_from([(), USED["reserved_for"]]),
    deallocation_requested=st.booleans(),
)


@given(CLAIMS, CLASSES)
def test_whatever_a_claim_shows_what_is_used_stays_and_what_is_foreign_is_let_be(shown, of):
    """ANSWER1, ANSWER2; 3063-CLASS-08, 3063-PSCHED-10."""
    due = answers.due(shown, of, ME)
    status, is_protected = shown.status, MINE in shown.metadata.finalizers
    if status.reserved_for and status.allocation is not None:
        assert due in (Due.NOTHING, Due.PROTECT)
    if due is Due.GIVE_BACK:
        assert shown.metadata.deletion_timestamp or status.deallocation_requested
    if status.allocation is not None and status.driver_name == OTHER:
        assert due is Due.NOTHING
    if due is not Due.NOTHING and not is_protected:
        assert status.driver_name == ME or of is OURS
    if is_protected and status.allocation is None and due is Due.NOTHING:
        raise AssertionError("3063-STATE-18: something was begun, and is left")


# -- answers to a pod ---------------------------------------------------------------------------


def scheduling(selected="", potential=(), **before):
    return classic.PodScheduling(
        metadata=meta.ObjectMeta(name="p"),
        spec=classic.PodSchedulingSpec(selected_node=selected, potential_nodes=tuple(potential)),
        status=classic.PodSchedulingStatus(
            resource_claims=tuple(
                classic.ResourceClaimSchedulingStatus(name=name, unsuitable_nodes=tuple(nodes))
                for name, nodes in before.items()
            )
        ),
    )


def said(entries):
    return {one["name"]: one["unsuitableNodes"] for one in entries}


def test_an_entry_is_made_also_where_every_node_suits():
    """3063-PSCHED-13, 3063-FILT-05: the entry itself says that the driver has answered."""
    assert answers.status_with(scheduling(potential=["a"]), {"gpu": ()}) == [
        {"name": "gpu", "unsuitableNodes": []}
    ]
    assert answers.status_with(scheduling(potential=["a"], gpu=()), {"gpu": ()}) is None


def test_other_drivers_entries_stay():
    """3063-COORD-11, 3063-PSCHED-12: each driver answers for its own claims, in one object."""
    found = scheduling(potential=["a", "b"], nic=["b"], gpu=["a"])
    assert said(answers.status_with(found, {"gpu": ["b"]})) == {"nic": ["b"], "gpu": ["b"]}


def test_nodes_that_were_refused_before_are_judged_again():
    """3063-PSCHED-18, 3063-PSCHED-19: although the scheduler no longer proposes them."""
    found = scheduling(selected="s", potential=["a"], gpu=["old"], nic=["theirs"])
    assert answers.asked_about(found, {"gpu"}) == ("s", "a", "old")
    assert said(answers.status_with(found, {"gpu": ["a"]})) == {"nic": ["theirs"], "gpu": ["a"]}


def test_where_a_list_overflows_the_selected_node_and_those_proposed_come_first():
    """ANSWER4, X-01: 256 fit, room for 128 proposed and 128 remembered."""
    potential = [f"p{n}" for n in range(200)]
    before = [f"b{n}" for n in range(100)]
    found = scheduling("s", potential, gpu=before)
    nodes = said(answers.status_with(found, {"gpu": {*potential, *before, "s"}}))["gpu"]
    assert len(nodes) == 256
    assert nodes[0] == "s"
    assert nodes[1:201] == potential
    assert nodes[201:] == before[:55]


# -- what the author answered -------------------------------------------------------------------

ASK = kit.Ask(kit.Claim("ns", "c", "u", "gpu"), kit.Class("gpu"))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({}, "gave no answer"),
        ({"u": kit.Refused("busy")}, "busy"),
        # 3063-PSCHED-08: an allocation that excludes the selected node is a driver's error.
        ({"u": kit.Allocation("h", kit.on_nodes("elsewhere"))}, "where node n1 cannot use it"),
        ({"u": kit.Allocation("h", kit.with_labels(zone="b"))}, "where node n1 cannot use it"),
        # 3063-ALLOC-02: bytes, not letters.
        ({"u": kit.Allocation("ä" * 8193)}, "16386 bytes, and 16384 are allowed"),
        ({"other": kit.Allocation()}, "gave no answer"),
        ({"u": "n1"}, "answered 'n1', which is neither Allocation nor Refused"),
        ({"u": kit.Allocation(b"h")}, "a handle is text"),
        ({"u": kit.Allocation("h", ["n1"])}, "nodes are a NodeSelector"),
        ({"u": kit.Allocation("\ud800")}, "is no text: surrogates not allowed"),
        ({"u": kit.Refused(OSError("busy"))}, "busy"),
        ([kit.Allocation()], "and not a mapping"),
        ({"u": "x" * 100_000}, "neither Allocation nor Refused"),
    ],
)
def test_an_answer_that_breaks_the_contract_is_a_refusal_that_says_so(answer, why):
    judged = answers.judged([ASK], Node("n1", {"zone": "a"}), answer)
    assert isinstance(judged["u"], kit.Refused)
    assert why in judged["u"].why
    assert len(judged["u"].why) < 1024


@pytest.mark.parametrize("answer", [["n1"], {"u": "n1"}, {"u": None}, {"u": 1}])
def test_an_answer_about_nodes_that_makes_no_sense_is_told(answer):
    """A name in place of a list of names would be taken apart into letters."""
    pending = [answers.Pending("entry", Object(encode({"metadata": {"name": "c", "uid": "u"}})))]
    with pytest.raises(kit.NotUsable, match="unsuitable_nodes answered"):
        answers.unsuitable(answer, pending)
    assert answers.unsuitable({"u": ("n1",), "other": ["n2"]}, pending) == {"entry": {"n1"}}
    assert answers.unsuitable({}, pending) == {"entry": set()}


def test_only_a_refusal_says_that_nothing_is_held():
    for answer in ({}, {"u": "junk"}, [], {"u": kit.Allocation()}):
        assert answers.is_held(answer, "u")
    assert not answers.is_held({"u": kit.Refused("no")}, "u")


@pytest.mark.parametrize(
    "good",
    [
        kit.Allocation(),
        kit.Allocation("ä" * 8192),
        kit.Allocation("h", kit.on_nodes("n0", "n1")),
        kit.Allocation("h", kit.with_labels(zone="a")),
    ],
)
def test_an_allocation_that_the_node_can_use_is_taken_as_it_is(good):
    assert answers.judged([ASK], Node("n1", {"zone": "a"}), {"u": good}) == {"u": good}


def test_an_immediate_allocation_may_be_anywhere():
    """3063-MODE-03: nobody has chosen a node."""
    good = kit.Allocation("h", kit.on_nodes("elsewhere"))
    assert answers.judged([ASK], None, {"u": good}) == {"u": good}


def test_allocation_and_reservation_are_one_write():
    """3063-STATE-10, 3063-PSCHED-09, 3063-REF-03, 3063-CLAIM-08."""
    pod = Pod(metadata=meta.ObjectMeta(name="p", uid="1"))
    assert answers.allocated(ME, kit.Allocation("h", kit.on_nodes("n1"), True), pod) == {
        "driverName": ME,
        "allocation": {
            "resourceHandle": "h",
            "availableOnNodes": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
                ]
            },
            "shareable": True,
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}],
    }
    assert answers.allocated(ME, kit.Allocation(), None) == {"driverName": ME, "allocation": {}}


def test_what_is_returned_goes_with_the_request_in_one_write():
    """3063-CLAIM-13, X-17: allocation, driver and request together; the finalizer after it."""
    assert dict(answers.RETURNED) == {"allocation": None, "driverName": None, "deallocationRequested": None}
