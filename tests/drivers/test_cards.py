"""Who has how much of which card."""

from hypothesis import given
from hypothesis import strategies as st

from allot.drivers.gpu_memory.cards import Card, Cards, Share, Want, rounded

GI = 2**30


def two_cards():
    return Cards([Card("n1", "gpu-0", 8 * GI, GI // 4), Card("n1", "gpu-1", 4 * GI, GI // 4)])


def test_a_request_counts_as_it_is_rounded_up():
    """3063-STORY-06: segments are the driver's business, and what is rounded up is taken."""
    cards = Cards([Card("n1", "gpu-0", 4 * GI, GI)])
    assert cards.take([Want("a", GI + 1)], "n1") == {"a": Share("n1", "gpu-0", 2 * GI)}
    assert cards.take([Want("b", GI + 1)], "n1") is not None
    assert not cards.fits([Want("c", 1)], "n1")
    cards.release("a")
    assert cards.fits([Want("c", 2 * GI)], "n1")


def test_the_fullest_card_that_has_enough_is_cut():
    """CARDS3; 3063-GOAL-07: nothing is partitioned in advance, and the rest serves others."""
    cards = two_cards()
    assert cards.take([Want("a", GI)], "n1")["a"].card == "gpu-1"
    assert cards.take([Want("b", 8 * GI)], "n1")["b"].card == "gpu-0"
    assert cards.take([Want("c", 3 * GI)], "n1")["c"].card == "gpu-1"
    assert cards.take([Want("d", 1)], "n1") is None


def test_the_same_claim_gets_the_same_again():
    """CARDS2."""
    cards = two_cards()
    first = cards.take([Want("a", 2 * GI)], "n1")
    assert cards.take([Want("a", 2 * GI)], "n1") == first
    assert sum(share.memory for share in cards.shares.values()) == 2 * GI


def test_what_is_optional_is_had_where_it_is_free_and_else_not():
    """3063-OPT-03, 3063-GOAL-08."""
    cards = two_cards()
    assert cards.take([Want("a", 8 * GI, True)], "n1") == {"a": Share("n1", "gpu-0", 8 * GI)}
    assert cards.take([Want("b", 8 * GI, True)], "n1") == {"b": Share("n1")}
    assert cards.take([Want("c", 8 * GI)], "n1") is None


def test_cards_that_are_not_published_for_a_while_are_not_handed_out_twice():
    """CARDS4."""
    cards = two_cards()
    cards.take([Want("a", 4 * GI)], "n1")
    cards.put([])
    assert not cards.fits([Want("b", 1)], "n1")
    cards.put([Card("n1", "gpu-1", 4 * GI)])
    assert not cards.fits([Want("b", 1)], "n1")


def test_what_is_done_to_a_copy_leaves_the_original_alone():
    """3063-CA-10."""
    cards = two_cards()
    copied = cards.copy()
    copied.take([Want("a", 8 * GI)], "n1")
    copied.add([Card("n2", "gpu-0", GI)])
    assert cards.fits([Want("b", 8 * GI)], "n1")
    assert "n2" not in cards
    cards.take([Want("c", 4 * GI)], "n1")
    assert copied.fits([Want("d", 4 * GI)], "n1")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "release"]),
        st.sampled_from("abcdef"),
        st.integers(1, 9 * GI),
        st.booleans(),
        st.sampled_from(["n1", "n2"]),
    ),
    max_size=30,
)


@given(STEPS)
def test_no_card_is_ever_cut_beyond_what_it_has(steps):
    """CARDS1."""
    every = [Card("n1", "g0", 8 * GI, GI), Card("n1", "g1", 4 * GI, 3), Card("n2", "g0", 8 * GI)]
    cards = Cards(every)
    for deed, uid, memory, optional, node in steps:
        if deed == "release":
            cards.release(uid)
        else:
            taken = cards.take([Want(uid, memory, optional)], node)
            if taken is not None and taken[uid].memory:
                assert taken[uid].node == node
                held = next(card for card in every if (card.node, card.name) == taken[uid][:2])
                assert taken[uid].memory % held.segment == 0
        for card in every:
            assert 0 <= cards.free(card) <= card.memory
            own = [one for one in cards.shares.values() if (one.node, one.card) == (card.node, card.name)]
            assert cards.free(card) == card.memory - sum(one.memory for one in own)


@given(st.integers(1, 10**12), st.integers(1, 10**9))
def test_rounding_goes_up_to_the_next_segment(memory, segment):
    assert memory <= rounded(memory, segment) < memory + segment
