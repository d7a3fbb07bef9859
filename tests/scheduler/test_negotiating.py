"""One pod's talk with the drivers of its classic claims, step by step."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.scheduler.negotiating import (
    NODES_MAX,
    Ask,
    Asked,
    Choose,
    Chosen,
    Done,
    Drop,
    GiveUp,
    Nothing,
    Stand,
    Told,
    Wait,
    overdue,
    refusals,
    state_of,
    step,
    unanswered,
)
from allot.scheduler.talk import Talk

from .classic import claim, place, scheduling, stand, talk, told, want

CHOSEN = Chosen(place("a"), ("a", "b"), 100.0)


def deed(state: Any, what: Told) -> Any:
    return step(state, what)[1]


# -- before a node is chosen ----------------------------------------------------------------------


def test_with_one_claim_a_node_is_chosen_at_once_and_drivers_are_asked_about_others_in_the_same_write():
    """3063-RSV-02, 3063-COORD-13, 3063-FLOW-06."""
    one = told(None, stand("c"), best="a", offered=["b", "c"])
    assert deed(Nothing(), one) == Choose("a", ("a", "b", "c"))


def test_with_several_claims_drivers_are_asked_before_a_node_is_chosen():
    """3063-RSV-03, 3063-FLOW-17."""
    several = told(None, stand("c"), stand("d"), offered=["b", "a"])
    assert deed(Nothing(), several) == Ask(("b", "a"))


def test_a_claim_that_is_allocated_does_not_count_as_pending():
    """3063-RSV-04."""
    two = told(None, stand("c", claim("c", "a", ["p"])), stand("d"), best="a")
    assert deed(Nothing(), two) == Choose("a", ("a",))


def test_nothing_to_be_allocated_is_nothing_to_talk_about():
    assert deed(Nothing(), told(None)) == Done()


def test_who_has_not_answered_for_each_claim_is_waited_for():
    known = talk("p", "a", "b", **{"entry-c": []})
    waits = deed(Asked(frozenset("ab")), told(known, stand("c"), stand("d"), best="a", offered=["b"]))
    assert isinstance(waits, Wait)
    assert [one.claim.key.name for one in waits.wants] == ["d"]


def test_an_empty_list_is_an_answer_and_then_a_node_that_was_asked_about_is_chosen():
    known = talk("p", "a", "b", **{"entry-c": [], "entry-d": ["a"]})
    assert deed(Asked(frozenset("ab")), told(known, stand("c"), stand("d"), best="b")) == Choose(
        "b", ("a", "b")
    )


def test_a_node_that_nobody_was_asked_about_is_asked_about_first():
    """O-13: among several claims a node is selected only if it was posted."""
    known = talk("p", "a", **{"entry-c": ["a"], "entry-d": []})
    again = deed(Asked(frozenset("a")), told(known, stand("c"), stand("d"), best="z", offered=["y"]))
    assert again == Ask(("z", "y"))


def test_nodes_are_not_written_anew_while_the_chosen_one_is_among_them():
    """TALK2, 3063-RSV-01."""
    known = talk("p", "a", "b", "c")
    assert deed(state_of(known, "uid-of-p"), told(known, stand("c"), best="b", offered=["y", "z"])) == Choose(
        "b", ("a", "b", "c")
    )


def test_where_every_node_is_refused_the_selection_is_taken_back_so_that_drivers_look_again():
    """3063-PSCHED-20: they look again only until a node is selected."""
    known = talk("p", "a", "b", selected="a", **{"entry-c": ["a", "b"]})
    state, said = step(state_of(known, "uid-of-p"), told(known, stand("c")))
    assert said == Ask(("a", "b"))
    assert isinstance(state, Asked)
    after = talk("p", "a", "b", **{"entry-c": ["a", "b"]})
    assert isinstance(deed(state_of(after, "uid-of-p"), told(after, stand("c"))), Wait)


def test_no_more_nodes_are_named_than_servers_of_the_time_took():
    """3063-SCALE-05, X-01."""
    many = [f"n{number}" for number in range(500)]
    asked = deed(Nothing(), told(None, stand("c"), best="best", offered=many))
    assert len(asked.nodes) == NODES_MAX == 128
    assert asked.nodes[0] == "best"


def test_an_object_of_an_earlier_pod_of_that_name_is_dropped_and_never_read():
    """3063-STATE-07, P5."""
    stale = Talk.of(scheduling("p", ["a"], "a", {"entry-c": ["b"]}, owner="former"))
    assert state_of(stale, "uid-of-p") == Nothing()
    for state in (Nothing(), Asked(frozenset("a")), CHOSEN):
        assert deed(state, told(stale, stand("c"), best="b")) == Drop()


def test_what_an_object_says_is_where_a_restarted_scheduler_goes_on():
    assert state_of(talk("p", "b", selected="a"), "uid-of-p") == Asked(frozenset("ab"))
    assert state_of(None, "uid-of-p") == Nothing()


# -- while drivers allocate -----------------------------------------------------------------------


def test_a_chosen_node_is_kept_until_the_driver_says_something():
    """TALK1, 3063-MODE-05."""
    known = talk("p", "a", "b", selected="a", **{"entry-c": ["b"]})
    assert isinstance(deed(CHOSEN, told(known, stand("c"), now_s=129.9)), Wait)


@pytest.mark.parametrize("users", [["p"], []])
def test_allocated_claims_end_the_talk_whether_the_driver_reserved_them_or_not(users: list[str]):
    """3063-PSCHED-09: the scheduler must work with a driver that does not, too."""
    known = talk("p", "a", selected="a")
    assert deed(CHOSEN, told(known, stand("c", claim("c", "a", users)))) == Done()


def test_all_claims_must_be_allocated_before_the_talk_ends():
    """3063-GOAL-17."""
    known = talk("p", "a", selected="a")
    half = told(known, stand("c", claim("c", "a", ["p"])), stand("d"), now_s=101)
    assert isinstance(deed(CHOSEN, half), Wait)


def test_a_driver_that_refuses_the_chosen_node_ends_the_talk_for_now():
    """3063-COORD-04, 3063-FLOW-08."""
    known = talk("p", "a", selected="a", **{"entry-c": ["a"]})
    state, said = step(CHOSEN, told(known, stand("c"), now_s=101))
    assert said == GiveUp("driver gpu.example.com refused node a for claim c")
    assert state == Asked(frozenset("ab"))


def test_a_late_driver_ends_it_too_and_is_named_with_its_claim():
    """O-22."""
    known = talk("p", "a", selected="a")
    said = deed(CHOSEN, told(known, stand("c"), now_s=130))
    assert said == GiveUp("driver gpu.example.com has not answered for claim c since 30 s", is_late=True)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (claim("c", deleting=True), "claim c is being deleted"),
        (claim("c", uid="another"), "claim c is gone"),
        (claim("c", "a", deallocating=True), "claim c is being deallocated"),
        (claim("c", "b", ["p"]), "claim c was allocated, and not for node a"),
        (claim("c", "a", ["other"]), "claim c went to other"),
        (claim("c", "a", [f"u{at}" for at in range(32)], shareable=True), "claim c went to u0, u1"),
    ],
)
def test_a_claim_that_the_pod_cannot_have_on_the_node_ends_it(now: Any, why: str):
    """3063-PREF-03, 3063-COORD-12, 3063-PSCHED-08, 3063-STATE-24, 3063-CLAIM-12."""
    known = talk("p", "a", selected="a")
    said = deed(CHOSEN, told(known, stand("c", now), now_s=101))
    assert isinstance(said, GiveUp)
    assert said.why.startswith(why)
    assert not said.is_late


def test_a_shareable_claim_that_others_use_too_is_fine():
    """3063-STATE-25."""
    shared = claim("c", "", ["other"], shareable=True)
    assert deed(CHOSEN, told(talk("p", "a", selected="a"), stand("c", shared))) == Done()


@pytest.mark.parametrize("known", [None, talk("p", "a"), talk("p", "a", "b", selected="b")])
def test_an_object_that_somebody_removed_or_changed_is_written_again(known: Talk | None):
    """3063-STATE-05: its loss is the loss of information alone."""
    assert deed(CHOSEN, told(known, stand("c"), now_s=101)) == Choose("a", ("a", "b"))


@pytest.mark.parametrize("known", [None, talk("p", "a"), talk("p", "a", "b", **{"entry-c": []})])
def test_with_several_claims_drivers_are_asked_again_where_their_answers_went_with_the_object(known: Any):
    """P6: a driver that begins anew knows of the talk what stands there, and no more."""
    state, said = step(CHOSEN, told(known, stand("c"), stand("d"), now_s=101))
    assert isinstance(said, GiveUp) and not said.is_late
    assert isinstance(state, Asked)
    answered = talk("p", "a", "b", **{"entry-c": [], "entry-d": []})
    assert deed(CHOSEN, told(answered, stand("c"), stand("d"), now_s=101)) == Choose("a", ("a", "b"))


# -- what was said --------------------------------------------------------------------------------


def test_answers_are_by_entry_of_the_pod_and_not_by_name_of_the_claim():
    """3063-PSCHED-15, 3063-FILT-02."""
    known = talk("p", "a", "b", **{"entry-c": ["a"], "c": ["b"], "entry-z": ["b"]})
    assert set(refusals(known, [want("c")])) == {"a"}
    assert unanswered(talk("p", "a", c=[]), [one := want("c")]) == (one,)


def test_drivers_that_are_late_are_told_with_their_claims():
    words = overdue([want("c"), want("d"), want("e", "nic.example.com")], 12.3)
    assert words == (
        "driver gpu.example.com has not answered for claims c, d since 12 s; "
        "driver nic.example.com has not answered for claim e since 12 s"
    )


# -- whatever drivers say -------------------------------------------------------------------------

NODES = "abcd"
SUBSETS = st.sets(st.sampled_from(NODES)).map(sorted)


@st.composite
def talks(draw: Any) -> Talk | None:
    if draw(st.booleans()) and draw(st.booleans()):
        return None
    answers = {
        name: draw(SUBSETS) for name in ("entry-c", "entry-d", "entry-e", "other") if draw(st.booleans())
    }
    selected = draw(st.sampled_from(["", *NODES]))
    owner = draw(st.sampled_from(["", "", "", "former"]))
    return Talk.of(scheduling("p", draw(SUBSETS), selected, answers, owner=owner))


@st.composite
def stands(draw: Any, name: str) -> Stand:
    on = draw(st.sampled_from([None, None, "", *NODES]))
    users = draw(st.sampled_from([[], ["p"], ["other"]]))
    return stand(name, claim(name, on, users, deleting=draw(st.booleans()) and draw(st.booleans())))


@st.composite
def tellings(draw: Any) -> Told:
    claims = [draw(stands(name)) for name in "cde"[: draw(st.integers(0, 3))]]
    best = draw(st.sampled_from(["", *NODES]))
    return told(draw(talks()), *claims, now_s=draw(st.floats(0, 200)), best=best, offered=draw(SUBSETS))


@given(tellings())
@settings(max_examples=400, deadline=None)
def test_in_a_cycle_no_node_is_chosen_on_a_guess_where_several_claims_wait(what: Told):
    """P5 and P6, whatever stands in the object."""
    state = state_of(what.talk, what.pod)
    after, said = step(state, what)
    if what.talk is not None and what.talk.pod != what.pod:
        assert said == Drop()
        assert after == Nothing()
        return
    if isinstance(said, Choose):
        assert said.node == what.best
        assert said.node in said.nodes
        if len(what.pending) > 1:
            assert not unanswered(what.talk, what.pending)
            assert isinstance(state, Asked)
            assert said.node in state.nodes
    if isinstance(said, Ask | Choose):
        assert len(said.nodes) <= NODES_MAX
        assert set(said.nodes) <= {what.best, *what.offered, *(what.talk.nodes if what.talk else ())}
    assert not isinstance(said, GiveUp)  # nothing is held yet that could be given up
    assert (said == Done()) == (not what.pending)


@given(tellings(), st.sampled_from(NODES))
@settings(max_examples=400, deadline=None)
def test_while_a_node_is_chosen_it_is_kept_or_given_up_and_never_exchanged(what: Told, node: str):
    """TALK1: and done is only what the pod can really have there."""
    state = Chosen(place(node), (node,), 100.0)
    _, said = step(state, what)
    match said:
        case Choose(chosen, _):
            assert chosen == node
            assert len(what.pending) < 2 or not unanswered(what.talk, what.pending)
        case Done():
            for one in what.claims:
                assert one.claim is not None
                assert one.claim.allocation is not None
                assert not one.claim.is_deleting
                assert not one.claim.users_besides(what.pod)
        case Wait():
            assert what.talk is not None
            assert what.talk.selected == node
            assert what.now_s < 130
        case GiveUp(_, is_late):
            assert not is_late or what.now_s >= 130
        case Drop():
            assert what.talk is not None
            assert what.talk.pod != what.pod
        case Ask():
            raise AssertionError("nobody is asked about others while a node is chosen")
