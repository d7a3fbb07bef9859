"""The checker of who has which card, shown what it must find."""

from allot.api import Object, encode
from allot.sim.checkers.lent_once import LentOnce
from allot.sim.recording import Seen


def started(pod: str, *cards: str, what: str = "STARTED") -> Seen:
    of = {"metadata": {"name": "n"}, "pod": pod, "container": "main", "number": 0, "cards": [*cards]}
    return Seen(1, "machines", what, Object(encode(of)))


def told(*events: Seen) -> list[str]:
    checker = LentOnce()
    return [words for event in events for words in checker.see(event)]


def test_a_card_in_two_containers_that_run_is_found():
    """14-AGENT-10"""
    (words,) = told(started("p", "a"), started("q", "a", "b"))
    assert words.startswith("D7: ['a'] of n are in ('q', 'main')")


def test_a_card_of_a_container_that_ended_may_be_had_again():
    assert told(started("p", "a"), started("p", "a", what="ENDED"), started("q", "a")) == []
