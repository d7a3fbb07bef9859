"""Who leads: an election over a coordination.k8s.io Lease, as a state machine.

`step(state, event)` decides; `lease.lead` does what it says. The rules are those
of Kubernetes' own components, so that both can stand in one election.

What it promises
    LEASE1  A lease of another holder is respected until nothing has changed in it for its
            whole duration, measured by the clock of this process from the moment it saw the
            change. Clocks of different machines are never compared.
    LEASE2  A leader that could not renew for `renew_deadline_s` stops leading. That is less
            than `duration_s`, so it stops before anybody else may begin.
    LEASE3  `leaseTransitions` grows by one whenever the holder changes; `acquireTime` is
            when the present holder began.
    LEASE4  Every write carries the version that it was decided on.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from allot.api import Object, age
from allot.base import require


@dataclass(frozen=True, slots=True)
class Settings:
    name: str
    namespace: str
    identity: str
    duration_s: int = 15
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0

    def __post_init__(self) -> None:
        require(self.renew_deadline_s < self.duration_s, "LEASE2: the renew deadline is below the duration")
        require(self.retry_period_s < self.renew_deadline_s, "renewal is tried within its deadline")


@dataclass(frozen=True, slots=True)
class Record:
    """What a Lease says."""

    holder: str = ""
    duration_s: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0

    @classmethod
    def read(cls, lease: Object) -> "Record":
        spec = lease.fields.get("spec") or {}
        return cls(
            spec.get("holderIdentity") or "",
            spec.get("leaseDurationSeconds") or 0,
            spec.get("acquireTime") or "",
            spec.get("renewTime") or "",
            spec.get("leaseTransitions") or 0,
        )

    def spec(self) -> dict[str, Any]:
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration_s,
            "acquireTime": self.acquired or None,
            "renewTime": self.renewed or None,
            "leaseTransitions": self.transitions,
        }


# -- events and effects -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moment:
    monotonic_s: float
    now: datetime


@dataclass(frozen=True, slots=True)
class Saw:
    """The lease was read; None: there is none."""

    at: Moment
    record: Record | None
    version: str = ""


@dataclass(frozen=True, slots=True)
class Wrote:
    """The write of the last step was accepted."""

    at: Moment
    record: Record
    version: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A read or a write came to nothing: a conflict, an error, no answer."""

    at: Moment
    why: str
    is_race: bool = False  # somebody else was faster
    is_away: bool = False  # the server is, which is said elsewhere


@dataclass(frozen=True, slots=True)
class Due:
    """It is time to renew."""

    at: Moment


Event = Saw | Wrote | Failed | Due


@dataclass(frozen=True, slots=True)
class Look:
    """Read the lease, after a while."""

    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Write:
    """Create the lease (no version) or change that version of it, at once."""

    record: Record
    version: str


@dataclass(frozen=True, slots=True)
class Renew:
    """Come back after a while to renew. A leader need not look first: it wrote what is there."""

    after_s: float


@dataclass(frozen=True, slots=True)
class StartLeading:
    pass


@dataclass(frozen=True, slots=True)
class StopLeading:
    why: str


Action = Look | Write | Renew
Effect = Action | StartLeading | StopLeading


@dataclass(frozen=True, slots=True)
class State:
    settings: Settings
    seen: Record | None = None
    seen_version: str = ""
    seen_at_s: float = 0.0  # when `seen` was first seen as it is
    leading: bool = False
    renewed_at_s: float = 0.0  # when the last accepted write was begun
    writing_since_s: float = 0.0
    failed: str = ""  # why the last write, or a read since, came to nothing

    def deadline_s(self) -> float:
        """Until when a leader may go on without a further renewal."""
        return self.renewed_at_s + self.settings.renew_deadline_s


def step(state: State, event: Event) -> tuple[State, tuple[Effect, ...]]:
    match event:
        case Saw():
            return _saw(state, event)
        case Wrote():
            return _wrote(state, event)
        case Failed():
            return _failed(state, event)
        case Due():
            return _writes(state, event.at)


def _saw(state: State, event: Saw) -> tuple[State, tuple[Effect, ...]]:
    if event.record != state.seen:
        state = replace(state, seen=event.record, seen_at_s=event.at.monotonic_s)
    state = replace(state, seen_version=event.version)
    if state.leading and (event.record is None or event.record.holder != state.settings.identity):
        return replace(state, leading=False), (StopLeading("another holder has the lease"),)
    if state.leading and event.at.monotonic_s >= state.deadline_s():
        return replace(state, leading=False), (
            StopLeading(f"the lease was not renewed in time{_because(state)}"),
        )
    if not state.leading and _is_held_by_another(state, event.at):
        return state, (Look(state.settings.retry_period_s),)
    return _writes(state, event.at)


def _wrote(state: State, event: Wrote) -> tuple[State, tuple[Effect, ...]]:
    was_leading = state.leading
    state = replace(
        state,
        seen=event.record,
        seen_version=event.version,
        seen_at_s=event.at.monotonic_s,
        renewed_at_s=state.writing_since_s,
        leading=True,
        failed="",
    )
    renewal = Renew(state.settings.retry_period_s)
    return state, ((renewal,) if was_leading else (StartLeading(), renewal))


def _failed(state: State, event: Failed) -> tuple[State, tuple[Effect, ...]]:
    state = replace(state, failed=event.why)
    if state.leading and event.at.monotonic_s >= state.deadline_s():
        return replace(state, leading=False), (StopLeading(f"the lease was not renewed{_because(state)}"),)
    left_s = state.deadline_s() - event.at.monotonic_s if state.leading else state.settings.retry_period_s
    return state, (Look(max(0.0, min(state.settings.retry_period_s, left_s))),)


def _because(state: State) -> str:
    return f": {state.failed}" if state.failed else ""


def _is_held_by_another(state: State, at: Moment) -> bool:
    """LEASE1."""
    seen = state.seen
    if seen is None or not seen.holder or seen.holder == state.settings.identity:
        return False
    return at.monotonic_s < state.seen_at_s + seen.duration_s


def _writes(state: State, at: Moment) -> tuple[State, tuple[Effect, ...]]:
    """Take the lease, or renew it."""
    seen, mine, now = state.seen, state.settings.identity, age.micro_timestamp(at.now)
    continues = seen is not None and seen.holder == mine
    record = Record(
        holder=mine,
        duration_s=state.settings.duration_s,
        acquired=seen.acquired if seen is not None and continues else now,
        renewed=now,
        transitions=0 if seen is None else seen.transitions + (0 if continues else 1),
    )
    return replace(state, writing_since_s=at.monotonic_s), (Write(record, state.seen_version),)
