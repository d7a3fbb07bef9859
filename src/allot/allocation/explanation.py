"""Why a demand does not fit on a node, as a value.

Where it sits
    Asked for after the fact, with the same inputs as the answer: whoever allocates
    successfully never pays for it. Events, conditions, the command line and the
    dashboard all render this one value.

What it promises
    EXPL1  For every alternative of every request that it tells of the counts add up to the
           devices looked at: each device has one reason.
    EXPL2  Every change it names was tried and makes the demand fit.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .answer import NoFit, Plan, Refused, Undecided
from .budget import Budget
from .clauses import values_seen
from .conflicts import conflicts, counted, suffices
from .demand import Alternative, Demand, read_demand
from .kind import DeviceId
from .node import BadNodeSelector
from .pool import PoolView
from .reasons import Finding, Reason, Situation
from .remedies import Attempt, Change, remedies

EXAMPLES_MAX = 3
LINES_MAX = 4
HOLDERS_MAX = 5
FINDINGS_MAX = 50_000
"""Devices looked at for all requests together; what remains is counted and not explained."""
SELECTING_STEPS = 100_000
"""For selectors that nobody has evaluated yet; devices that are not judged by then are counted as such."""


@dataclass(frozen=True, slots=True)
class Group:
    """Devices that fail for the same reason."""

    reason: Reason
    ids: tuple[DeviceId, ...]
    detail: str
    holders: tuple[str, ...] = ()
    passed: int = 0  # parts of selectors that said yes before one said no

    @property
    def devices(self) -> int:
        return len(self.ids)

    @property
    def examples(self) -> tuple[str, ...]:
        return tuple(map(str, self.ids[:EXAMPLES_MAX]))

    @property
    def text(self) -> str:
        return f"{self.devices} {_because(self.reason, self.detail, self.holders)}"


def _because(reason: Reason, detail: str, holders: Sequence[str]) -> str:
    """ "in use by X", "with too little left of a counter (cs/memory: 4Gi needed, 1Gi left), held by X"."""
    words = f"{reason.value} ({detail})" if detail else reason.value
    if not holders:
        return words
    more = f" and {len(holders) - HOLDERS_MAX} more" if len(holders) > HOLDERS_MAX else ""
    by = "by" if reason is Reason.IN_USE else "held by"
    comma = "," if detail else ""
    return f"{words}{comma} {by} {', '.join(holders[:HOLDERS_MAX])}{more}"


@dataclass(frozen=True, slots=True)
class RequestReport:
    claim: str
    request: str
    wanted: int | None  # None: all of them
    looked_at: int
    groups: tuple[Group, ...]
    nearest: str
    suffices: bool  # whether every device that it needs is free, other requests and rules aside
    whole: tuple[str, str]  # claim and name of the request that this is, or is an alternative of

    @property
    def free(self) -> int:
        return sum(group.devices for group in self.groups if group.reason is Reason.FREE)

    @property
    def text(self) -> str:
        wants = "all" if self.wanted is None else str(self.wanted)
        groups = "; ".join(group.text for group in self.groups) or "none is offered to this node"
        nearest = f"; nearest miss {self.nearest.partition(',')[0]}" if self.nearest else ""
        devices = counted(self.looked_at, "device")
        asked = f"{self.claim}, request {self.request} wants {wants} of {devices}"
        return f"{asked}: {groups}{nearest}"


@dataclass(frozen=True, slots=True)
class PoolReport:
    """A pool that nothing is allocated from."""

    pool: str
    state: str

    @property
    def text(self) -> str:
        return f"pool {self.pool} is {self.state}"


@dataclass(frozen=True, slots=True)
class Explanation:
    node: str
    verdict: str
    error: str = ""
    pools: tuple[PoolReport, ...] = ()
    requests: tuple[RequestReport, ...] = ()
    conflicts: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()

    def text(self) -> str:
        """A few lines for people."""
        lines = [f"{self.verdict} on {self.node}" + (f": {self.error}" if self.error else "")]
        served = {one.whole for one in self.requests if one.suffices}  # by one alternative at least
        short = [one for one in self.requests if one.whole not in served] or self.requests
        lines += [f"  {one.text}" for one in short[:LINES_MAX]]
        if len(short) > LINES_MAX:
            lines.append(f"  and {counted(len(short) - LINES_MAX, 'more request')}")
        lines += [f"  {one.text}" for one in self.pools[:LINES_MAX]]
        lines += [f"  {conflict}" for conflict in self.conflicts]
        if self.changes:
            lines.append("  it would fit " + "; or ".join(change.text for change in self.changes))
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "verdict": self.verdict,
            "error": self.error,
            "text": self.text(),
            "pools": [{"pool": one.pool, "state": one.state} for one in self.pools],
            "requests": [_request_json(one) for one in self.requests],
            "conflicts": list(self.conflicts),
            "changes": [
                {"kind": one.kind, "text": one.text, **({"release": one.release} if one.release else {})}
                for one in self.changes
            ],
        }


def _request_json(one: RequestReport) -> dict[str, Any]:
    return {
        "claim": one.claim,
        "request": one.request,
        "wanted": "all" if one.wanted is None else one.wanted,
        "devices": one.looked_at,
        "free": one.free,
        "reasons": [
            {
                "reason": group.reason.name.lower().replace("_", "-"),
                "devices": group.devices,
                "detail": group.detail,
                "holders": list(group.holders),
                "examples": list(group.examples),
            }
            for group in one.groups
        ],
        "nearest": one.nearest,
    }


def explain(
    attempt: Attempt,
    answer: Plan | NoFit | Undecided | Refused,
    named: Callable[[str], str] = str,
    *,
    suggest: bool = True,
    budget: Budget | None = None,
) -> Explanation:
    """Why `answer` came out. `named` says a holder as the reader may know it.

    Without `suggest` no changes are looked for, which is what takes long. `budget` is what may be spent on
    evaluating selectors, also for several explanations together.
    """
    node = attempt.node.name
    if isinstance(answer, Plan):
        return Explanation(node, "fits")
    verdict = {NoFit: "does not fit", Undecided: "undecided", Refused: "refused"}[type(answer)]
    error = answer.error if isinstance(answer, Refused) else ""
    demand = read_demand(attempt.claims, attempt.classes, attempt.inventory.features)
    try:
        view = attempt.inventory.view(attempt.node)
    except BadNodeSelector:
        return Explanation(node, verdict, error)
    pools = tuple(PoolReport(str(pool.id), _state(pool)) for pool in view.pools if not pool.usable)
    if isinstance(demand, Refused):
        return Explanation(node, verdict, error, pools)
    situation = Situation(demand, view, attempt.ledger, budget or Budget(SELECTING_STEPS))
    alternatives = list(demand.alternatives())
    told = alternatives[: max(1, FINDINGS_MAX // max(1, len(view.devices)))]
    findings = {one: situation.findings(one) for one in told}
    requests = tuple(_report(demand, one, found, named) for one, found in findings.items())
    untold = len(alternatives) - len(told)
    if untold:
        more = f"{counted(untold, 'more way')} to satisfy requests not looked at: there are too many"
        return Explanation(node, verdict, error, pools, requests, (more,))
    between = tuple(conflicts(situation, findings))
    changes = tuple(remedies(attempt, demand, findings, named)) if suggest else ()
    return Explanation(node, verdict, error, pools, requests, between, changes)


def _state(pool: PoolView) -> str:
    return "incomplete" if pool.incomplete else f"invalid: {pool.invalid}"


def _report(
    demand: Demand, alternative: Alternative, found: Sequence[Finding], named: Callable[[str], str]
) -> RequestReport:
    claim = demand.claims[alternative.claim]
    return RequestReport(
        claim=f"claim {claim.label}",
        request=alternative.name,
        wanted=None if alternative.all_devices else alternative.count,
        looked_at=len(found),
        groups=tuple(_grouped(found, named)),
        nearest=_nearest(found, named),
        suffices=suffices(alternative, found),
        whole=(claim.label, claim.requests[alternative.request].name),
    )


def _grouped(found: Sequence[Finding], named: Callable[[str], str]) -> Iterator[Group]:
    """Free ones first, then the nearest misses."""
    groups: dict[tuple[Reason, str], list[Finding]] = {}
    for one in found:
        groups.setdefault((one.reason, _key(one)), []).append(one)
    order = list(Reason)
    for (reason, key), members in sorted(
        groups.items(),
        key=lambda item: (-order.index(item[0][0]), -item[1][0].passed, -len(item[1]), item[0][1]),
    ):
        detail = key
        if reason is Reason.SELECTOR:
            seen = values_seen(key, [one.device.kind for one in members])
            detail = f"`{key}`: {seen}" if seen else f"`{key}`"
        holders = dict.fromkeys(named(holder) for one in members for holder in one.holders)
        ids = tuple(one.device.id for one in members)
        yield Group(reason, ids, detail, tuple(holders), members[0].passed)


def _key(one: Finding) -> str:
    """What tells groups apart within one reason; holders are listed together."""
    return one.clause or ("" if one.reason is Reason.IN_USE else one.detail)


def _nearest(found: Sequence[Finding], named: Callable[[str], str]) -> str:
    """The device that failed the latest check. Another driver's device is not near at all."""
    order = list(Reason)
    misses = [one for one in found if one.reason is not Reason.FREE and "device.driver" not in one.clause]
    if not misses:
        return ""
    near = max(misses, key=lambda one: (order.index(one.reason), one.passed))
    return f"{near.device.id}, {_because(near.reason, near.detail, [named(one) for one in near.holders])}"
