"""Where two decisions about a pod differ, and what made the difference: the plugin that says no now, or the
tier of ratings in which another node is better."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from allot.scheduler import Board, Cycle, PodInfo, Rank, Rejection, Snapshot

from .lines import Decided, Reason, Verdict
from .verdicts import devices_of

_TIERS = {
    "wish": "what users prefer",
    "devices": "what is left of devices",
    "resources": "how full nodes get",
}


class Difference(msgspec.Struct, frozen=True):
    pod: str
    at: datetime
    then: Verdict
    now: Verdict
    why: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "pod": self.pod,
            "at": self.at,
            "then": _as_json(self.then),
            "now": _as_json(self.now),
            "why": list(self.why),
        }


def difference(decided: Decided, now: Verdict, pod: PodInfo, cycle: Cycle, snapshot: Snapshot) -> Difference:
    """The snapshot is as it was before either was decided."""
    then = decided.verdict
    why = tuple(_why(then, now, lambda: cycle.judged(pod, decided.at, snapshot)))
    return Difference(decided.name, decided.at, then, now, why)


def _why(then: Verdict, now: Verdict, judged: Any) -> Iterator[str]:
    if then.error or now.error:
        yield f"then {then.error or 'decided'}, now {now.error or 'decided'}"
    elif then.node and then.node != now.node:
        yield _not_there(then, now, judged())
    elif now.node and not then.node:
        yield f"then no node took it: {_listed(then.reasons)}"
    elif now.node:
        yield from _otherwise(then, now)
    else:
        yield from _other_reasons(then, now)


def _not_there(then: Verdict, now: Verdict, board: Board | Rejection) -> str:
    """Why the node of then is not the node of now."""
    if isinstance(board, Rejection):
        return f"{Reason(board.plugin, board.reason)}"
    rejection, old = board.rejections.get(then.node), board.rank(then.node)
    if rejection is not None:
        return f"{then.node}: {Reason(rejection.plugin, rejection.reason)}"
    if old is None:
        return f"{then.node} is not among the nodes that the pod or its claims can be on"
    new = board.rank(now.node)
    if new is not None and new < old:
        return f"{now.node} is better than {then.node} in {_tier(new, old)}"
    if now.node:
        return f"{then.node} fits and is not chosen"
    return f"{then.node} fits by itself; {_listed(now.reasons)}"


def _tier(new: Rank, old: Rank) -> str:
    for name, words in _TIERS.items():
        mine, theirs = getattr(new, name), getattr(old, name)
        if mine != theirs:
            return f"{words} ({_numbers(mine)} and {_numbers(theirs)}, less is better)"
    return "the order of names"


def _numbers(rating: float | tuple[float, ...]) -> str:
    parts = rating if isinstance(rating, tuple) else (rating,)
    return "/".join(f"{one:g}" for one in parts) or "none"


def _otherwise(then: Verdict, now: Verdict) -> Iterator[str]:
    """On the same node."""
    before, after = devices_of(then), devices_of(now)
    for claim in sorted(before.keys() | after.keys()):
        if before.get(claim) != after.get(claim):
            name = f"claim {claim}" if claim else "extended resources"
            yield f"{name}: then {_devices(before.get(claim))}, now {_devices(after.get(claim))}"
    if then.compute != now.compute:
        yield "other compute resources are chosen"
    for deed in sorted(set(then.deeds) ^ set(now.deeds)):
        yield f"only {'then' if deed in then.deeds else 'now'}: {deed}"


def _devices(found: tuple[str, ...] | None) -> str:
    return ", ".join(found) if found else "nothing"


def _other_reasons(then: Verdict, now: Verdict) -> Iterator[str]:
    gone = [one for one in then.reasons if one not in now.reasons]
    new = [one for one in now.reasons if one not in then.reasons]
    if gone or new:
        yield f"then {_listed(gone)}, now {_listed(new)}"
    if then.remedy != now.remedy:
        yield f"what is done about it: then {then.remedy or 'nothing'}, now {now.remedy or 'nothing'}"


def _listed(reasons: Any) -> str:
    return ", ".join(str(one) for one in reasons) or "nothing"


def _as_json(verdict: Verdict) -> dict[str, Any]:
    found: dict[str, Any] = {"node": verdict.node or None}
    if verdict.flights:
        found["devices"] = devices_of(verdict)
    if verdict.reasons:
        found["reasons"] = [
            {"plugin": one.plugin, "reason": one.words, "nodes": one.nodes} for one in verdict.reasons
        ]
    for name in ("remedy", "error"):
        if getattr(verdict, name):
            found[name] = getattr(verdict, name)
    return found
