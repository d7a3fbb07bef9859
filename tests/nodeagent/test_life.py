"""The life of a pod's containers, as a table of times."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.node import Running, Terminated, Waiting
from allot.nodeagent import views
from allot.nodeagent.life import Due, Pod, Trouble, due, observed
from allot.nodeagent.runtimes import Attempt

NOW = 1_000_000.0


def spec(
    policy: str = "Always", init: tuple[str, ...] = (), main: tuple[str, ...] = ("main",)
) -> views.PodSpec:
    """Names of init containers; one that begins with "side" is a sidecar."""
    made = tuple(
        views.Container(name=name, restart_policy="Always" if name.startswith("side") else None)
        for name in init
    )
    return views.PodSpec(
        init_containers=made,
        containers=tuple(views.Container(name=one) for one in main),
        restart_policy=policy,
    )


def runs(number: int = 0, started: float = NOW - 5, crashes: int = 0) -> Attempt:
    return Attempt("u", "c", number, started, crashes=crashes)


def ended(code: int = 0, number: int = 0, ago: float = 0.0, ran: float = 1.0, crashes: int = 0) -> Attempt:
    return Attempt("u", "c", number, NOW - ago - ran, NOW - ago, code, crashes)


def pod(of: views.PodSpec, is_ending: bool = False, troubles: Any = None, **attempts: Attempt) -> Pod:
    return Pod("p_ns(u)", of, {name: [one] for name, one in attempts.items()}, troubles or {}, is_ending)


def starts(found: Due) -> list[str]:
    return [one.container.name for one in found.start]


def test_all_containers_start_at_once():
    assert starts(due(pod(spec(main=("a", "b"))), NOW)) == ["a", "b"]


def test_init_containers_come_one_after_the_other_and_before_the_rest():
    """supports init containers"""
    of = spec(init=("one", "two"))
    assert starts(due(pod(of), NOW)) == ["one"]
    assert starts(due(pod(of, one=runs()), NOW)) == []
    assert starts(due(pod(of, one=ended()), NOW)) == ["two"]
    assert starts(due(pod(of, one=ended(), two=ended()), NOW)) == ["main"]
    assert observed(pod(of), NOW).containers[0].state == Waiting("PodInitializing")


def test_a_sidecar_starts_and_goes_on_and_the_next_one_need_not_wait():
    of = spec(init=("side", "two"))
    assert starts(due(pod(of), NOW)) == ["side"]
    assert starts(due(pod(of, side=runs()), NOW)) == ["two"]
    assert starts(due(pod(of, side=runs(), two=ended()), NOW)) == ["main"]


def test_init_containers_do_not_run_again_while_the_pod_runs():
    of = spec(init=("one",))
    assert starts(due(pod(of, main=ended(1)), NOW)) == ["main"]


def test_a_failed_init_container_is_tried_again_or_ends_the_pod():
    again = due(pod(spec(init=("one",)), one=ended(1)), NOW)
    assert [(one.container.name, one.number) for one in again.start] == [("one", 1)]
    never = pod(spec("Never", init=("side", "one")), side=runs(), one=ended(1))
    assert due(never, NOW).end == (runs(),), "its sidecars end with it"
    assert not observed(never, NOW).has_ended
    over = observed(pod(spec("Never", init=("side", "one")), side=ended(143), one=ended(1)), NOW)
    assert over.has_ended
    assert over.is_stillborn


def test_restart_policies():
    def restarts(policy: str, code: int) -> bool:
        return bool(due(pod(spec(policy), main=ended(code)), NOW).start)

    assert [restarts(policy, code) for policy in ("Always", "OnFailure", "Never") for code in (0, 1)] == [
        True,
        True,
        False,
        True,
        False,
        False,
    ]


def test_a_container_that_ends_again_and_again_waits_longer_and_longer():
    waits = []
    for crashes in range(8):
        found = due(pod(spec(), main=ended(1, number=crashes, crashes=crashes)), NOW)
        waits.append(0 if found.start else found.again_at - NOW)
    assert waits == [0, 10, 20, 40, 80, 160, 300, 300]
    seen = observed(pod(spec(), main=ended(1, number=3, crashes=3)), NOW).containers[0]
    says = "back-off 40s restarting failed container=main pod=p_ns(u)"
    assert seen.state == Waiting("CrashLoopBackOff", says)
    assert isinstance(seen.last, Terminated)
    assert seen.restarts == 3


def test_one_that_ran_for_long_begins_anew():
    found = due(pod(spec(), main=ended(1, number=7, ran=600, crashes=7)), NOW)
    assert [(one.number, one.crashes) for one in found.start] == [(8, 1)]


def test_a_sidecar_is_kept_while_the_pod_runs_and_ended_when_nothing_else_is_left():
    of = spec("Never", init=("side-a", "side-b"))
    a, b = runs(1), runs(2)
    known = {"side-a": a, "side-b": b}
    assert starts(due(pod(of, **{"side-a": a, "side-b": ended(0), "main": runs()}), NOW)) == ["side-b"]
    assert due(pod(of, **known, main=runs()), NOW).end == ()
    assert due(pod(of, **known, main=ended()), NOW).end == (b,), "the last one first"
    found = pod(of, **{"side-a": a, "side-b": ended(0)}, main=ended())
    assert due(found, NOW).end == (a,)
    assert due(found, NOW).start == ()
    assert not observed(found, NOW).has_ended
    assert observed(pod(of, **{"side-a": ended(), "side-b": ended()}, main=ended()), NOW).has_ended


def test_a_pod_that_is_to_end_starts_nothing_and_ends_its_containers_before_its_sidecars():
    of = spec(init=("side",), main=("a", "b"))
    a, side = runs(1), runs(2)
    going = due(pod(of, is_ending=True, a=a, b=ended(1), side=side), NOW)
    assert (going.start, going.end) == ((), (a,))
    assert due(pod(of, is_ending=True, a=ended(), b=ended(1), side=side), NOW).end == (side,)
    over = observed(pod(of, is_ending=True, a=ended(), b=ended(1), side=ended()), NOW)
    assert over.has_ended
    assert [type(one.state) for one in over.containers] == [Terminated, Terminated]


def test_what_could_not_be_started_says_why_and_is_tried_again_if_that_may_help():
    for retry_at, expected in ((NOW + 10, NOW + 10), (None, None)):
        known = pod(spec(), troubles={"main": Trouble("CreateContainerError", "no", retry_at)})
        found = due(known, NOW)
        assert (found.start, found.again_at) == ((), expected)
        assert observed(known, NOW).containers[0].state == Waiting("CreateContainerError", "no")
    assert starts(due(pod(spec(), troubles={"main": Trouble("x", "no", NOW)}), NOW)) == ["main"]


def test_when_an_init_container_has_failed_for_good_no_sidecar_is_started_again():
    """The pod has ended, and would have gone on for the sidecar's sake."""
    of = spec("Never", ("side-a", "one"), ("main",))
    known = pod(of, **{"side-a": ended(), "one": ended(1)})
    assert due(known, NOW).is_stillborn and observed(known, NOW).has_ended
    assert due(known, NOW).start == ()


ATTEMPTS = st.one_of(
    st.none(),
    st.builds(lambda number: runs(number), st.integers(0, 3)),
    st.builds(
        lambda code, number, ago: ended(code, number, ago, crashes=number),
        st.sampled_from([0, 1]),
        st.integers(0, 3),
        st.sampled_from([0.0, 1000.0]),
    ),
)


@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from(["Always", "OnFailure", "Never"]),
    st.lists(st.sampled_from(["one", "side-a", "two", "side-b"]), unique=True).map(tuple),
    st.lists(ATTEMPTS, min_size=6, max_size=6),
    st.booleans(),
)
def test_whatever_stands_there_is_something_to_do_to_wait_for_or_the_end(policy, init, attempts, is_ending):
    """No pod is stuck; nothing that runs is started; what is over starts nothing."""
    names = ("main", "other", "one", "side-a", "two", "side-b")
    known = {name: one for name, one in zip(names, attempts, strict=True) if one is not None}
    of = spec(policy, init, ("main", "other"))
    known = {name: one for name, one in known.items() if name in (*init, "main", "other")}
    if any(name in known for name in ("main", "other")):
        for name in init:  # only reached after these
            known.setdefault(name, ended())
            if not name.startswith("side"):
                known[name] = ended()
    found, seen = due(pod(of, is_ending, **known), NOW), observed(pod(of, is_ending, **known), NOW)
    assert not any(one.container.name in known and known[one.container.name].runs for one in found.start)
    assert all(one.runs for one in found.end)
    if seen.has_ended:
        assert not found.start
        assert not found.end
    elif not is_ending:
        assert found.start or found.end or found.again_at is not None or seen.runs
    states = [one.state for one in (*seen.containers, *seen.init_containers)]
    assert seen.runs == any(isinstance(one, Running) for one in states)


def of_containers(*containers: views.Container, policy: str = "Never", **more: Any) -> views.PodSpec:
    return views.PodSpec(containers=containers, restart_policy=policy, **more)


def test_the_policy_of_a_container_comes_before_that_of_its_pod():
    again, never = (
        views.Container(name="again", restart_policy="Always"),
        views.Container(name="never", restart_policy="Never"),
    )
    assert starts(due(pod(of_containers(again), again=ended(0)), NOW)) == ["again"]
    assert starts(due(pod(of_containers(never, policy="Always"), never=ended(1)), NOW)) == []


def test_a_rule_about_exit_codes_comes_before_any_policy():
    def rule(operator: str) -> views.RestartRule:
        return views.RestartRule(
            action="Restart", exit_codes=views.ExitCodes(operator=operator, values=(42,))
        )

    for operator, code, is_kept in (
        ("In", 42, True),
        ("In", 1, False),
        ("NotIn", 42, False),
        ("NotIn", 1, True),
    ):
        one = views.Container(name="main", restart_policy="Never", restart_policy_rules=(rule(operator),))
        found = due(pod(of_containers(one), main=ended(code)), NOW)
        assert starts(found) == (["main"] if is_kept else []), (operator, code)
        assert observed(pod(of_containers(one), main=ended(code)), NOW).has_ended is not is_kept


def test_what_comes_after_a_sidecar_waits_until_it_has_started():
    of = spec(init=("side",))
    slow = pod(of, side=runs())._replace(unstarted=frozenset({"side"}))
    assert starts(due(slow, NOW)) == []
    assert starts(due(slow._replace(unstarted=frozenset()), NOW)) == ["main"]
    again = pod(of, side=runs(number=1))._replace(unstarted=frozenset({"side"}))
    assert starts(due(again, NOW)) == ["main"], "it has started before"


def test_an_ephemeral_container_begins_once_anything_has_and_never_again():
    debug = views.Container(name="debug")
    of = of_containers(views.Container(name="main"), ephemeral_containers=(debug,))
    assert starts(due(pod(of), NOW)) == ["main"]
    assert starts(due(pod(of, main=runs()), NOW)) == ["debug"]
    assert starts(due(pod(of, main=runs(), debug=ended(1)), NOW)) == []
    over = pod(of, main=ended(), debug=runs())
    assert due(over, NOW).end == (runs(),), "it ends with its pod"
    assert not observed(over, NOW).has_ended
    assert starts(due(pod(of, main=ended()), NOW)) == [], "there is nothing left to look at"


def test_a_container_that_has_not_started_is_not_ready_and_says_neither():
    slow = pod(spec(), main=runs())._replace(unstarted=frozenset({"main"}))
    (seen,) = observed(slow, NOW).containers
    assert (seen.is_started, seen.is_ready) == (False, False)
    unready = pod(spec(), main=runs())._replace(unready=frozenset({"main"}))
    (seen,) = observed(unready, NOW).containers
    assert (seen.is_started, seen.is_ready) == (True, False)
