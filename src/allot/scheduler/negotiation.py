"""A binding that waits for drivers: the talk of `negotiating`, acted out.

Where it sits
    The first part of a binding whose pod has classic claims to be allocated. The pod's room is held in the
    snapshot and its devices in the ledger meanwhile, so that nobody takes them while a driver works, and a
    pod with claims of several kinds gets all of them or none.

What it promises
    TALK6  What ended the talk without success leaves the pod no reservation: those that drivers made for
           it are handed to the binding, which gives them up (UNRSV-01).
    TALK7  A driver is late only by the word of the server, however much news was missed.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from allot.api import Object, core, errors
from allot.base import Clock, require

from .awaiting import Awaiting, Known, Late, Listener, Subject
from .claim import ClaimInfo
from .claiming import RETRY_FIRST_S, RETRY_LONGEST_S, Outdated, Refusal
from .cycle import Placed
from .mirror import CLAIMS, PODS, TALKS
from .negotiating import Choose, Chosen, Deed, Done, Drop, GiveUp, Stand, Told, Wait, Want, step
from .negotiation_writes import TalkWriter
from .pod import PodInfo
from .talk import Talk
from .writes import EndTalk, Negotiate, ReserveClaim

SPARE_S = 0.5
"""Of the event loop's time behind the moment at which a driver is late: clocks differ a little."""


@dataclass(frozen=True, slots=True)
class WaitsForDrivers:
    """Drivers must allocate claims before the pod can be bound."""

    placed: Placed
    wants: tuple[Want, ...]

    @property
    def text(self) -> str:
        drivers = ", ".join(sorted({one.driver for one in self.wants}))
        claims = ", ".join(one.claim.key.name for one in self.wants)
        return f"waits on {self.placed.node} for driver {drivers} to allocate {claims}"


@dataclass(frozen=True, slots=True)
class Negotiated:
    """A driver was waited for; how it ended."""

    driver: str
    ending: str  # allocated, refused or late
    seconds: float


class Unwilling(Outdated):
    """A driver will not have the node, or the pod cannot have a claim there: an answer, and no mistake."""


class Silent(Refusal):
    """A driver has not answered in time."""


class Negotiating:
    def __init__(
        self,
        clock: Clock,
        awaiting: Awaiting,
        talks: TalkWriter,
        report: Callable[[WaitsForDrivers | Negotiated], None],
        timeout_s: float,
    ) -> None:
        self._clock = clock
        self._awaiting = awaiting
        self._talks = talks
        self._report = report
        self._timeout_s = timeout_s

    async def settled(self, placed: Placed, made: list[ClaimInfo]) -> Placed:
        """What is left to be written once all drivers have allocated. Raises Refusal, and an ApiError;
        `made` are then claims that list the pod."""
        asked = next((one for one in placed.writes if isinstance(one, Negotiate)), None)
        if asked is None:
            return placed
        talk, claims = await self._talked(placed, asked, made)
        reserved = [one for one in placed.writes if isinstance(one, ReserveClaim)]
        ordered = sorted((*reserved, *map(ReserveClaim, claims)), key=lambda one: one.claim.key)
        rest = [one for one in placed.writes if not isinstance(one, ReserveClaim | Negotiate | EndTalk)]
        return replace(placed, writes=(*ordered, *rest, EndTalk(talk)))

    async def _talked(
        self, placed: Placed, asked: Negotiate, made: list[ClaimInfo]
    ) -> tuple[Talk, list[ClaimInfo]]:
        pod = placed.state.pod
        subjects = _Subjects.of(pod, asked.wants)
        with self._awaiting.listening(subjects.all) as listener, subjects.given_up(listener, pod, made):
            subjects.begin(listener, pod, asked)
            talk = await self._talks.ask(pod, asked.talk, asked.nodes, asked.node.name, asked.wants)
            listener.answer(subjects.talk, talk.object)
            began_s = self._clock.monotonic_s()
            state = Chosen(asked.node, asked.nodes, began_s)
            self._report(WaitsForDrivers(placed, asked.wants))
            is_asked_again, again_s = False, RETRY_FIRST_S
            while True:
                deed = await self._next(state, pod, subjects, listener)
                if isinstance(deed, GiveUp) and deed.is_late and not is_asked_again:
                    await self._awaiting.ask(listener)  # TALK7
                    is_asked_again = True
                    continue
                if isinstance(deed, Choose | Drop):  # somebody removed or changed it (STATE-05)
                    await asyncio.sleep(again_s)  # and may do so again
                    again_s = min(again_s * 2, RETRY_LONGEST_S)
                    known, stands = subjects.talk_in(listener.known), subjects.stands(listener.known)
                    pending = tuple(one.want for one in stands if one.is_pending)
                    again = await self._talks.ask(pod, known, asked.nodes, asked.node.name, pending)
                    listener.answer(subjects.talk, again.object)
                    continue
                stands = subjects.stands(listener.known)
                self._tell(deed, stands, self._clock.monotonic_s() - began_s)
                require(
                    isinstance(deed, Done | GiveUp), f"TALK1: a node is chosen for {pod.key}, and then {deed}"
                )
                if isinstance(deed, GiveUp):
                    raise Silent(deed.why) if deed.is_late else Unwilling(deed.why)
                found = [one.claim for one in stands if one.claim is not None]
                made += [one for one in found if one.is_reserved_for(pod.uid)]
                return subjects.talk_in(listener.known) or talk, found

    async def _next(
        self,
        state: Chosen,
        pod: PodInfo,
        subjects: "_Subjects",
        listener: Listener,
    ) -> Deed:
        """The first deed that is not to wait."""

        def judge(known: Known) -> Deed | None:
            gone = subjects.why_over(known, pod)
            if gone:
                return GiveUp(gone)
            told = Told(
                pod.uid,
                subjects.talk_in(known),
                subjects.stands(known),
                self._clock.monotonic_s(),
                self._timeout_s,
            )
            _, deed = step(state, told)
            return None if isinstance(deed, Wait) else deed

        left_s = state.since_s + self._timeout_s - self._clock.monotonic_s()
        deadline_s = asyncio.get_running_loop().time() + max(left_s, 0.0)
        while True:
            found: Deed | Late = await listener.until(judge, deadline_s)
            if not isinstance(found, Late):
                return found
            deadline_s = asyncio.get_running_loop().time() + SPARE_S

    def _tell(self, deed: Deed, stands: tuple[Stand, ...], seconds: float) -> None:
        for want, claim in stands:
            if claim is not None and claim.allocation is not None:
                self._report(Negotiated(want.driver, "allocated", seconds))
            else:
                is_late = isinstance(deed, GiveUp) and deed.is_late
                self._report(Negotiated(want.driver, "late" if is_late else "refused", seconds))


@dataclass(frozen=True, slots=True)
class _Subjects:
    """What a talk is about: the pod, its PodScheduling, its claims."""

    pod: Subject
    talk: Subject
    claims: Mapping[Subject, Want]

    @classmethod
    def of(cls, pod: PodInfo, wants: tuple[Want, ...]) -> "_Subjects":
        claims = {Subject(CLAIMS, one.claim.key): one for one in wants}
        return cls(Subject(PODS, pod.key), Subject(TALKS, pod.key), claims)

    @property
    def all(self) -> tuple[Subject, ...]:
        return (self.pod, self.talk, *self.claims)

    def begin(self, listener: Listener, pod: PodInfo, asked: Negotiate) -> None:
        """As they were when it was decided: nothing has been heard since, or it is about to be (TALK7)."""
        listener.answer(self.pod, pod.object)
        listener.answer(self.talk, asked.talk.object if asked.talk is not None else None)
        for subject, want in self.claims.items():
            listener.answer(subject, want.claim.object)

    @contextmanager
    def given_up(self, listener: Listener, pod: PodInfo, made: list[ClaimInfo]) -> Iterator[None]:
        """Whatever ends the talk without success: the claims that list the pod are named (TALK6)."""
        try:
            yield
        except (Refusal, errors.ApiError):
            stands = self.stands(listener.known)
            made += [one.claim for one in stands if one.claim and one.claim.is_reserved_for(pod.uid)]
            raise

    def talk_in(self, known: Known) -> Talk | None:
        found = known.get(self.talk)
        return Talk.of(found) if found is not None else None

    def stands(self, known: Known) -> tuple[Stand, ...]:
        return tuple([Stand(want, _claim(known.get(subject))) for subject, want in self.claims.items()])

    def why_over(self, known: Known, pod: PodInfo) -> str:
        found = known.get(self.pod)
        if found is None or found.uid != pod.uid or found.metadata.deletion_timestamp:
            return "the pod is gone"
        node = found.view(core.Pod).spec.node_name
        return f"the pod is bound to {node} already" if node else ""


def _claim(object: Object | None) -> ClaimInfo | None:
    return ClaimInfo.of(object) if object is not None else None
