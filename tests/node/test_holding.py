"""N2: what nodes say that they have prepared."""

from hypothesis import given
from hypothesis import strategies as st

from allot.node.claims import ClaimRef
from allot.node.holding import Holding

A, B = ClaimRef("a", "ns", "first"), ClaimRef("b", "ns", "second")


def test_a_shared_claim_stays_until_its_last_pod_is_gone():
    holding: Holding[str] = Holding()
    holding.hold("n", "p1", [A])
    holding.hold("n", "p2", [A, B])
    holding.release("n", "p1")
    assert holding.wanted("n") == (A, B)
    holding.release("n", "p2")
    assert holding.wanted("n") == ()


def test_a_node_has_said_only_what_was_accepted():
    """PREP2."""
    holding: Holding[str] = Holding()
    holding.hold("n", "p", [A])
    assert holding.is_behind("n")
    assert not holding.says("n", [A])
    holding.said("n", ["a"])
    assert holding.says("n", [A])
    assert not holding.is_behind("n")
    holding.release("n", "p")
    assert holding.is_behind("n")  # it has said more than is so


def test_what_an_earlier_process_said_does_not_count():
    """PREP2: a write of that process may still come."""
    holding: Holding[str] = Holding()
    holding.hold("n", "p", [A])
    holding.doubt("n")
    assert holding.speakers == ("n",)
    assert holding.is_behind("n")
    assert not holding.says("n", [A])
    holding.said("n", ["a"])
    assert holding.says("n", [A])


def test_who_waited_is_named_once():
    """PREP3."""
    holding: Holding[str] = Holding()
    holding.wait("n", "p1")
    holding.wait("n", "p1")
    holding.wait("n", "p2")
    assert holding.said("n", []) == ("p1", "p2")
    assert holding.said("n", []) == ()


def test_a_node_that_is_gone_leaves_nothing():
    holding: Holding[str] = Holding()
    holding.hold("n", "p", [A])
    holding.said("n", ["a"])
    holding.forget("n")
    assert holding.wanted("n") == ()
    assert not holding.is_behind("n")
    assert holding.speakers == ()


pods = st.sampled_from(["p1", "p2", "p3"])
claims = st.sets(st.sampled_from([A, B, ClaimRef("c", "ns", "third")]))


@given(st.lists(st.tuples(pods, claims | st.none()), max_size=20))
def test_what_is_wanted_is_what_the_pods_hold_together(moves):
    """PREP1, against a dictionary."""
    holding: Holding[str] = Holding()
    held: dict[str, set[ClaimRef]] = {}
    for pod, wanted in moves:
        if wanted is None:
            holding.release("n", pod)
            held.pop(pod, None)
        elif wanted:
            holding.hold("n", pod, wanted)
            held[pod] = wanted
    assert set(holding.wanted("n")) == set().union(*held.values())


def test_a_claim_is_off_the_list_when_the_server_has_accepted_a_list_without_it():
    """PREP2, and what another pod holds stays there without anybody waiting for it."""
    holding: Holding[str] = Holding()
    holding.hold("n", "p1", [A, B])
    holding.hold("n", "p2", [B])
    holding.said("n", ["a", "b"])
    holding.release("n", "p1")
    assert not holding.lacks("n", [A, B])
    assert holding.lacks("n", [B])
    holding.said("n", ["b"])
    assert holding.lacks("n", [A, B])
    holding.doubt("n")
    assert not holding.lacks("n", [A])
