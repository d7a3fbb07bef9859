"""The promises of the system, one file each, read from the API and from what happened on machines.

    one_holder       D1                a device has one holder
    within           D2                no more of a card or a port than there is
    satisfied        D3, D4            an allocation is what was asked for, of what was on offer
    as_asked         D4                the same for every claim that can be written (not for made-up worlds)
    claim_rules      C1, C2            what an allocation and a reservation imply
    nothing_leaks    C3                nobody holds what nobody needs
    own_claims       C4                a generated claim is its own pod's
    extended_claims  C5                one claim for the extended resources of a pod
    classic_claims   C8 to C11         who allocates classic claims, and how they are given back
    numeric_claims   D6, C8, C11, P2   what numeric claims take, and how they are given back
    special_claims   C12               that claim is its pod's alone, and not removed under others
    running_pods     C6                nothing is taken from a running pod
    outsiders        C7                consumers that are not pods are kept
    started          N1                a pod starts with claims that are its own, and listed
    released         N2                nothing is given back that a node still holds
    contained        N1, N4            a container begins with what its pod was given, and nothing else
    let_go           N2, N6, N7        what machines have is what the API says, until they let go
    once             N3, N6            what is told twice is done once, after any crash
    left_over        N5, N8            machines are as if nobody had died, and keep nothing
    wiped            WIPE1             a driver that is away offers nothing
    offered          PUBLISH, OFFER1   what drivers of numeric parameters have is shown, and no more is given
    ready_pods       N9                a pod is ready again when its node is heard again
    compute_held     D7, P2            no node gives more of a compute resource than it has
    lent_once        D7                a card is in one container at a time
    binding          P1, P4            a pod is bound once, when its claims are its own
    placed           P2, P3            nobody waits for ever, and who waits says why (of the real scheduler)
    classic_pods     P2                the same of pods with classic claims, which go where these can be used
    kept_claims      TALK6             who waits for a node keeps no classic claim from others
    talks            P5, P6            what schedulers and drivers say about a pod
    whole            WHOLE1            no half of a placement is ever seen
    enlarged         Y1, Y3, PACK1     what an autoscaler asks for is needed
    emptied          Y2, IDLE1         what it takes away is not
    promised         Y4, P2            what templates promise, and whom an autoscaler helps
    quota_kept       Q1                what is used is what was allowed
    tainted          D4, TAINT1        who has a device that somebody tainted
    replicas         RSET3             so many pods, once things are quiet
    rollouts         ROLL1, ROLL3      of the newest template
    daemons          DSET1             one on every node
    ordinals         SSET1             one for every ordinal
    jobs             JOB1, JOB2        counted exactly, ended once
    timely           CRON1, CRON2      a job for every time, and no second
    owned            OWNED1 to OWNED4  garbage goes, and nothing else
    namespaces       NSEND1, NSEND2    the end of a namespace
    lost_pods        LOST1, LOST2      pods that nobody would end, and no others

A checker is fed every event of the resources it follows, in order, and asked at the end, when things are
quiet. Where there are machines, what was noted of them is one of these resources. It answers with what is
wrong, each beginning with the name of the promise. It imports nothing of what it judges.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

from ..recording import Seen
from .as_asked import AsAsked
from .binding import Binding
from .claim_rules import ClaimRules
from .classic_claims import ClassicClaims
from .classic_pods import ClassicPods
from .compute_held import ComputeHeld
from .contained import Contained
from .daemons import Daemons
from .emptied import Emptied
from .enlarged import Enlarged
from .extended_claims import ExtendedClaims
from .jobs import Jobs
from .kept_claims import KeptClaims
from .left_over import LeftOver
from .lent_once import LentOnce
from .let_go import LetGo
from .lost_pods import LostPods
from .namespaces import Namespaces
from .nothing_leaks import NothingLeaks
from .numeric_claims import NumericClaims
from .offered import Offered
from .once import Once
from .one_holder import OneHolder
from .ordinals import Ordinals
from .outsiders import Outsiders
from .own_claims import OwnClaims
from .owned import Owned
from .placed import Placed
from .promised import Promised
from .quota_kept import QuotaKept
from .ready_pods import ReadyPods
from .released import Released
from .replicas import Replicas
from .rollouts import Rollouts
from .running_pods import RunningPods
from .satisfied import Satisfied
from .special_claims import SpecialClaims
from .started import Started
from .tainted import Tainted
from .talks import Talks
from .timely import Timely
from .whole import Whole
from .wiped import Wiped
from .within import Within


class Checker(Protocol):
    @property
    def follows(self) -> tuple[str, ...]:
        """The resources whose events it is fed."""
        ...

    def see(self, seen: Seen) -> Iterator[str]:
        """What this event breaks."""
        ...

    def rest(self) -> Iterator[str]:
        """What is wrong now that everything is quiet."""
        ...


def all_checkers(
    *,
    real_scheduler: bool = False,
    until_s: float = math.inf,
    transactions: bool = False,
    whole_placements: bool = False,
    machines: bool = False,
    late_autoscaler_s: Sequence[float] | None = None,
) -> list[Checker]:
    """For a history that ended at `until_s`. Where somebody has transactions, a claim is given back and gone
    at once; where everybody has, placements are whole. Where there are agents, their machines are judged,
    too; and where there is an autoscaler, what it did, with the moments at which something made it late."""
    return [
        *([Whole()] if whole_placements else []),
        *([Placed()] if real_scheduler else []),
        *(_of_machines() if machines else []),
        *(_of_autoscaler(late_autoscaler_s) if late_autoscaler_s is not None else []),
        *([ClassicPods()] if real_scheduler else []),
        *([KeptClaims()] if real_scheduler else []),
        OneHolder(),
        ComputeHeld(),
        Within(),
        Satisfied(),
        Tainted(),
        ExtendedClaims(only_devices=real_scheduler),
        SpecialClaims(),
        ClaimRules(transactions=transactions),
        ClassicClaims(),
        NumericClaims(),
        Talks(),
        OwnClaims(),
        RunningPods(),
        NothingLeaks(),
        Outsiders(),
        Started(),
        Released(),
        ReadyPods(),
        Binding(),
        QuotaKept(),
        Replicas(),
        Rollouts(),
        Daemons(),
        Ordinals(),
        Jobs(until_s),
        Timely(),
        Owned(),
        Namespaces(),
        LostPods(),
    ]


def _of_autoscaler(late_s: Sequence[float]) -> list[Checker]:
    return [Enlarged(late_s), Emptied(late_s), Promised(late_s)]


def _of_machines() -> list[Checker]:
    return [Contained(), LetGo(), Once(), LeftOver(), Wiped(), Offered(), LentOnce()]


def for_any_cluster() -> list[Checker]:
    """Those that presume nothing of the world they look at: D1, D2, D4, C1 to C7, C12, N1, N2, P1, P4."""
    return [
        OneHolder(),
        Within(),
        AsAsked(),
        ClaimRules(transactions=True),
        NothingLeaks(),
        OwnClaims(),
        ExtendedClaims(),
        SpecialClaims(),
        RunningPods(),
        Outsiders(),
        Started(),
        Released(),
        Binding(),
    ]


def judge(history: Sequence[Seen], checkers: Sequence[Checker] | None = None) -> list[str]:
    """Everything that is wrong with a history that ended quietly."""
    checkers, wrong = all_checkers() if checkers is None else checkers, list[str]()
    following: dict[str, list[Checker]] = {}
    for checker in checkers:
        for resource in checker.follows:
            following.setdefault(resource, []).append(checker)
    for seen in history:
        for checker in following.get(seen.resource, ()):
            wrong += [f"revision {seen.revision}: {text}" for text in checker.see(seen)]
    for checker in checkers:
        wrong += [f"at rest: {text}" for text in checker.rest()]
    return wrong


__all__ = ["AsAsked", "Checker", "ClaimRules", "OneHolder", "all_checkers", "for_any_cluster", "judge"]
