"""What to do about a request for the status of pools. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from allot.api import age, meta

from .survey import Pool

COMPLETED_S = 3600.0
PENDING_S = 24 * 3600.0
LOOKS = 5
"""How often incomplete pools are looked at again before they are told as they are."""


class Spec(meta.View, frozen=True):
    driver: str = ""
    pool_name: str | None = None
    limit: int = 0


class Status(meta.View, frozen=True):
    conditions: tuple[meta.Condition, ...] = ()


class Request(meta.View, frozen=True):
    metadata: meta.ObjectMeta = meta.ObjectMeta()
    spec: Spec = Spec()
    status: Status = Status()

    @property
    def answered(self) -> str:
        """When an answer was given; "" while there is none."""
        done = (one for one in self.status.conditions if one.status == "True")
        return next((one.last_transition_time for one in done), "")


@dataclass(frozen=True, slots=True)
class Delete:
    """Its time is up."""


@dataclass(frozen=True, slots=True)
class Keep:
    """It was answered; there is nothing to do for so long."""

    for_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """It is still to be answered; if that cannot be done, it goes after so long."""

    within_s: float


def step(request: Request, now: datetime) -> Delete | Keep | Answer:
    given = age.moment(request.answered) if request.answered else None
    if given is not None:
        left_s = (given + timedelta(seconds=COMPLETED_S) - now).total_seconds()
        return Keep(left_s) if left_s > 0 else Delete()
    made = age.moment(request.metadata.creation_timestamp) or now
    left_s = (made + timedelta(seconds=PENDING_S) - now).total_seconds()
    return Answer(left_s) if left_s > 0 else Delete()


def asked_for(request: Request, pools: Sequence[Pool]) -> list[Pool]:
    name = request.spec.pool_name
    return [one for one in pools if one.driver == request.spec.driver and name in (None, one.name)]


def status(request: Request, pools: Sequence[Pool], now: str) -> dict[str, Any]:
    """The answer: so many pools, the first of them in detail."""
    wrong = sum(bool(one.problem) for one in pools)
    told = f"{len(pools)} pools found" + (f", {wrong} of them not usable as published" if wrong else "")
    condition = {
        "type": "Complete",
        "status": "True",
        "reason": "Calculated",
        "message": told,
        "lastTransitionTime": now,
    }
    shown = [one.written() for one in pools[: request.spec.limit]]
    return {"poolCount": len(pools), "pools": shown, "conditions": [condition]}
