"""One deed after another, down the table, with a crash before and after each of them.

The world here is as small as it can be: a pod in the API, a list that the server has accepted, a
machine. It refuses what would break a promise, so a plan that asks for it is found out.
"""

from dataclasses import dataclass, field
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import Quantity, core
from allot.node import NOTHING, ClaimRef, Container, Observed, Running, Terminated
from allot.node.admission import Refusal
from allot.node.plan import PodState, plan, stage_of
from allot.node.stages import (
    TABLE,
    Deed,
    Delete,
    Explain,
    List,
    Prepare,
    Refuse,
    Remove,
    Report,
    Rest,
    Run,
    Stage,
    Stop,
    Unlist,
    Unprepare,
    Wait,
)

from .objects import pod

CLAIM = ClaimRef("uid-c", "default", "c")
UP = Observed((Container("main", Running("then")),))
DOWN = Observed((Container("main", Terminated(0, "then", "now")),))
FULL = Refusal("cpu", *map(Quantity.of, (1, 8, 8)))


@dataclass
class World:
    has_claim: bool = True
    ready: bool = True  # the claim is the pod's, for the cache and the server
    phase: str = "Pending"
    deleted: bool = False
    grace_s: int = 30
    exists: bool = True
    listed: bool = False  # as the server has accepted it
    devices: bool = False
    machine: Observed = NOTHING
    writes: list[str] = field(default_factory=list)
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.state = PodState(0.0)

    # -- what the loop reads --------------------------------------------------------------------

    @property
    def pod(self) -> core.Pod:
        metadata = {"deletionTimestamp": "x", "deletionGracePeriodSeconds": self.grace_s}
        return pod(metadata=metadata if self.deleted else {}, status={"phase": self.phase}).view(core.Pod)

    def read(self) -> None:
        s = self.state
        s.is_gone = not self.exists
        if not s.observed.containers:
            s.needs = (CLAIM,) if self.has_claim and self.ready else ()
            s.lacking = "claim c is not reserved" if self.has_claim and not self.ready else ""
        s.is_listed = bool(s.held) and self.listed
        s.is_unlisted = not s.held and not self.listed

    def crash(self) -> None:
        """The process begins anew, and reads the API, the list and the machine."""
        s = self.state = PodState(self.now_s)
        if self.listed or self.machine.runs:
            s.held = (CLAIM,) if self.has_claim else ()
        if self.devices or self.machine.containers:
            s.is_there, s.devices = True, {} if self.devices else None
            s.observed = self.machine

    # -- what the deeds do ----------------------------------------------------------------------

    def next(self) -> Deed:
        self.read()
        stage, deed = stage_of(self.pod, self.state), plan(self.pod, self.state, self.now_s)
        assert type(deed) in TABLE[stage].deeds, f"{deed} is not in the row of {stage}"
        return deed

    def do(self, deed: Deed) -> None:
        s = self.state
        match deed:
            case List():
                s.held = (CLAIM,)
                self.listed = True
                self.writes.append("list")
            case Prepare():
                assert self.listed, "N1: prepared before it was listed"
                if not self.ready:
                    s.lacking = "the server said no"
                else:
                    self.devices, s.devices, s.is_there = True, {}, True
            case Run():
                assert self.devices or not self.has_claim, "N1: started without its devices"
                if not self.machine.containers:
                    assert self.phase not in ("Succeeded", "Failed") and not self.deleted and self.exists
                    self.machine = UP
                s.is_there, s.observed, s.is_fresh = True, self.machine, True
            case Stop():
                self.machine = DOWN if self.machine.runs else self.machine
                s.observed, s.is_fresh = self.machine, True
            case Unprepare():
                assert not self.machine.runs, "N7: unprepared while it runs"
                self.devices, s.devices = False, None
            case Unlist():
                assert not self.devices, "N2: unlisted while its devices are prepared"
                s.held, self.listed = (), False
                self.writes.append("list")
            case Report():
                assert self.exists
                s.reported = s.observed.seen
                if s.observed.runs:
                    self.phase = "Running"
                else:
                    assert not self.listed and not self.devices, "its end was told before it let go"
                    self.phase = "Succeeded"
                self.writes.append(self.phase)
            case Refuse():
                self.phase = "Failed"
            case Explain(_, message):
                s.explained = message
            case Remove():
                assert self.phase in ("Succeeded", "Failed") or not self.exists, (
                    "removed before its end was told"
                )
                self.machine, s.observed, s.is_there = NOTHING, NOTHING, False
            case Delete():
                assert not self.machine.containers and self.phase in ("Succeeded", "Failed")
                self.exists = False
                self.writes.append("delete")
            case Rest() | Wait():
                pass

    def settle(self, deeds: int = 40) -> list[type[Deed]]:
        """Until there is nothing to do."""
        done: list[type[Deed]] = []
        self.state.is_fresh = False
        for _ in range(deeds):
            deed = self.next()
            if isinstance(deed, Rest | Wait):
                return done
            self.do(deed)
            done.append(type(deed))
        raise AssertionError(f"it never rests: {done}")

    @property
    def is_clean(self) -> bool:
        return not self.listed and not self.devices and not self.machine.containers


UPWARD = [List, Prepare, Run, Report]
DOWNWARD = [Unprepare, Unlist, Report, Remove]


def test_a_life_goes_down_the_table():
    here = World()
    assert here.settle() == UPWARD
    here.machine = DOWN
    assert here.settle() == [Run, *DOWNWARD]
    assert here.settle() == []
    here.deleted = True
    assert here.settle() == [Delete]
    assert here.is_clean


def test_a_pod_with_one_claim_costs_five_writes_and_one_without_three():
    for has_claim, writes in (
        (True, "list Running list Succeeded delete"),
        (False, "Running Succeeded delete"),
    ):
        here = World(has_claim)
        here.settle()
        here.deleted = True
        here.settle()
        assert here.writes == writes.split()


def test_a_pod_that_is_deleted_while_it_runs_is_stopped_first():
    here = World()
    here.settle()
    here.deleted = True
    assert here.settle() == [Stop, *DOWNWARD, Delete]


def test_a_machine_that_needs_time_to_stop_is_told_once_and_looked_at_again():
    here = World()
    here.settle()
    here.deleted, here.state.is_fresh = True, False
    assert here.next() == Stop(30.0)
    here.state.is_fresh, here.state.observed = True, UP._replace(again_s=7.0)
    assert here.next() == Wait(7.0)
    here.state.is_fresh = False
    assert here.next() == Stop(30.0)


def test_of_a_pod_that_vanished_nothing_is_written():
    """Forced away: it lets go all the same."""
    here = World()
    here.settle()
    here.exists = False
    here.writes.clear()
    assert here.settle() == [Stop, Unprepare, Unlist, Remove]
    assert here.writes == ["list"] and here.is_clean


def test_a_pod_that_somebody_else_says_has_ended_is_stopped():
    here = World()
    here.settle()
    here.phase = "Failed"
    assert here.settle()[:3] == [Stop, Unprepare, Unlist]


def test_a_pod_that_only_finalizers_hold_is_left_alone():
    here = World(phase="Failed", deleted=True, grace_s=0)
    assert here.settle() == []


def test_a_pod_without_room_ends_at_once_and_waits_for_nothing():
    here = World(ready=False)
    here.state.refusal = FULL
    assert here.next() == Refuse()
    here.deleted = True
    assert here.next() == Report()


def test_a_pod_without_its_claims_never_starts_and_says_so_after_a_while():
    """N1."""
    here = World(ready=False)
    assert here.next() == Wait(3.0)
    here.now_s = 3.0
    assert here.settle() == [Explain]
    assert here.next() == Rest()
    here.ready = True
    assert here.settle() == UPWARD


def test_what_the_server_denied_is_asked_for_again():
    here = World(ready=False)
    here.state.retry_s = 1.0
    assert here.next() == Wait(1.0)
    here.state.retry_s, here.now_s = 8.0, 5.0
    assert here.settle() == [Explain]
    assert here.next() == Wait(8.0)


@pytest.mark.parametrize("stage", [Stage.LISTED, Stage.PREPARED])
def test_claims_that_are_lost_before_anything_started_go_back(stage):
    """N1: what was about to be prepared, or is, and has not been used."""
    here = World()
    here.read()
    while stage_of(here.pod, here.state) is not stage:
        here.do(here.next())
        here.read()
    here.ready = False
    assert not here.is_clean
    here.settle()
    assert here.is_clean and here.phase == "Pending"


def test_a_machine_that_lost_everything_begins_anew():
    """A node that comes back finds pods that the API shows as running."""
    here = World()
    here.settle()
    here.devices, here.machine, here.listed = False, NOTHING, False
    here.crash()
    assert here.settle() == UPWARD


# -- crashes ---------------------------------------------------------------------------------------

LIFE = [*UPWARD, Stop, *DOWNWARD, Delete]
POINTS = [f"{at} {one.__name__}" for at, one in enumerate(LIFE)]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "number", range(len(LIFE)), ids=[f"{at} {one.__name__}" for at, one in enumerate(LIFE)]
)
def test_a_crash_before_or_after_any_deed_changes_nothing(number, after):
    """N3, N5: the crash points are those of the table."""
    here, done = World(), []
    while here.exists:
        deed = here.next()
        if isinstance(deed, Rest | Wait):
            here.deleted, here.state.is_fresh = True, False
            continue
        if len(done) == number and not after:
            here.crash()
            deed = here.next()
        here.do(deed)
        done.append(type(deed))
        if len(done) == number + 1 and after:
            here.crash()
        assert len(done) < 3 * len(LIFE)
    assert here.settle() in ([], [Remove])
    assert here.is_clean
    assert here.writes[-2:] == ["Succeeded", "delete"]
    assert here.writes.index("Succeeded") > max(at for at, one in enumerate(here.writes) if one == "list")


def test_every_deed_of_the_table_is_one_and_every_row_has_a_way_on():
    named = {deed for row in TABLE.values() for deed in row.deeds}
    assert named == set(get_args(Deed))
    assert list(TABLE) == list(Stage)


EVENTS = ("end", "delete", "vanish", "fail", "lose claim", "get claim", "crash", "deed", "deed", "deed")


@settings(max_examples=400, deadline=None)
@given(st.booleans(), st.lists(st.sampled_from(EVENTS), max_size=25))
def test_whatever_happens_no_promise_is_broken_and_nothing_is_left_behind(has_claim, events):
    """N1, N2, N7 at every deed (the world asserts them); and at the end the node has let go."""
    here = World(has_claim)
    for event in events:
        match event:
            case "end":
                here.machine = DOWN if here.machine.runs else here.machine
                here.state.is_fresh = False
            case "delete":
                here.deleted, here.state.is_fresh = True, False
            case "vanish":
                here.exists, here.state.is_fresh = False, False
            case "fail":
                here.phase, here.state.is_fresh = "Failed", False
            case "lose claim":
                here.ready = here.machine.runs
            case "get claim":
                here.ready = True
            case "crash":
                here.crash()
            case "deed":
                here.do(here.next())
    here.deleted, here.ready, here.now_s = True, True, 100.0
    here.settle()
    here.settle()
    assert here.is_clean, here
    assert not here.exists or here.phase in ("Succeeded", "Failed")


@given(
    st.builds(
        PodState,
        st.just(0.0),
        refusal=st.sampled_from([None, FULL]),
        is_gone=st.booleans(),
        needs=st.sampled_from([(), (CLAIM,)]),
        lacking=st.sampled_from(["", "claim c does not exist"]),
        retry_s=st.sampled_from([None, 5.0]),
        explained=st.sampled_from(["", "claim c does not exist"]),
        held=st.sampled_from([(), (CLAIM,)]),
        is_listed=st.booleans(),
        is_unlisted=st.booleans(),
        devices=st.sampled_from([None, {}]),
        observed=st.sampled_from([NOTHING, NOTHING._replace(again_s=9.0), UP, DOWN]),
        is_fresh=st.booleans(),
        reported=st.sampled_from([NOTHING, UP]),
        is_there=st.booleans(),
    ),
    st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
    st.booleans(),
    st.sampled_from([0.0, 4.0]),
)
def test_the_deed_is_always_one_of_its_row(state, phase, deleted, now_s):
    """Also for states that nobody can explain."""
    metadata = {"deletionTimestamp": "x", "deletionGracePeriodSeconds": 30} if deleted else {}
    one = pod(metadata=metadata, status={"phase": phase}).view(core.Pod)
    assert type(plan(one, state, now_s)) in TABLE[stage_of(one, state)].deeds
