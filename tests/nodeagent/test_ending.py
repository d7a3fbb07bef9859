"""How one container is ended, moment by moment."""

from hypothesis import given
from hypothesis import strategies as st

from allot.nodeagent.ending import LAST_S, Ending, Hook, Kill, Signal, Wait, shortened, signal_number, step


def test_without_a_hook_it_hears_the_signal_and_is_killed_when_its_grace_is_over():
    told = Ending(100.0, 30.0)
    assert step(told, 100.0) == Signal()
    heard = told._replace(signalled_s=100.0)
    assert step(heard, 101.0) == Wait(130.0)
    assert step(heard, 130.0) == Kill()


def test_without_grace_it_is_killed_at_once_and_its_hook_does_not_run():
    assert step(Ending(100.0, 0.0, has_hook=True), 100.0) == Kill()


def test_the_signal_waits_for_the_hook_and_no_longer_than_the_grace():
    told = Ending(100.0, 30.0, has_hook=True)
    assert step(told, 100.0) == Hook()
    hooked = told._replace(is_hooked=True)
    assert step(hooked, 110.0) == Wait(130.0)
    assert step(hooked._replace(is_unhooked=True), 110.0) == Signal()
    assert step(hooked, 130.0) == Signal()


def test_a_hook_that_used_up_the_grace_leaves_two_seconds():
    late = Ending(100.0, 30.0, has_hook=True, is_hooked=True, signalled_s=130.0)
    assert step(late, 130.5) == Wait(130.0 + LAST_S)
    assert step(late, 132.0) == Kill()


def test_said_again_the_grace_gets_shorter_and_never_longer():
    assert shortened(Ending(0.0, 30.0), 5.0).grace_s == 5.0
    assert shortened(Ending(0.0, 5.0), 30.0).grace_s == 5.0


def test_a_container_may_name_its_signal():
    assert (signal_number("SIGUSR1"), signal_number(""), signal_number("SIGNONSENSE")) == (10, 15, 15)


@given(st.floats(0, 100), st.booleans(), st.floats(0, 200), st.lists(st.floats(0.1, 20), max_size=60))
def test_whoever_looks_often_enough_ends_it_in_time(grace_s, has_hook, hook_s, pauses):
    """Whatever the hook takes, the end comes within the grace and what is left after it; and never before
    the signal where there is any grace."""
    ending, now_s, killed_s = Ending(0.0, grace_s, has_hook), 0.0, None
    for pause_s in [*pauses, *[1000.0] * 4]:
        while killed_s is None:
            if ending.is_hooked and now_s >= hook_s:
                ending = ending._replace(is_unhooked=True)
            match step(ending, now_s):
                case Hook():
                    assert not ending.is_hooked
                    ending = ending._replace(is_hooked=True)
                case Signal():
                    assert ending.signalled_s is None
                    ending = ending._replace(signalled_s=now_s)
                case Kill():
                    killed_s = now_s
                case Wait(until_s):
                    assert until_s > now_s
                    now_s = min(now_s + pause_s, until_s)
                    break
    assert killed_s is not None and killed_s <= grace_s + LAST_S
    assert grace_s == 0 or (ending.signalled_s is not None and killed_s >= grace_s)
