"""The promises of the system, one file each, read from the API alone.

A checker is fed every event in order and asked at the end, when things are quiet.
It answers with what is wrong, each beginning with the name of the promise.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from ..recording import Seen
from .claim_rules import ClaimRules
from .nothing_leaks import NothingLeaks
from .one_holder import OneHolder
from .own_claims import OwnClaims
from .running_pods import RunningPods
from .satisfied import Satisfied


class Checker(Protocol):
    def see(self, seen: Seen) -> Iterator[str]:
        """What this event breaks."""
        ...

    def rest(self) -> Iterator[str]:
        """What is wrong now that everything is quiet."""
        ...


def all_checkers() -> list[Checker]:
    return [OneHolder(), ClaimRules(), OwnClaims(), RunningPods(), NothingLeaks()]


def judge(history: Sequence[Seen]) -> list[str]:
    """Everything that is wrong with a history that ended quietly."""
    checkers, wrong = all_checkers(), []
    for seen in history:
        for checker in checkers:
            wrong += [f"revision {seen.revision}: {text}" for text in checker.see(seen)]
    for checker in checkers:
        wrong += [f"at rest: {text}" for text in checker.rest()]
    return wrong


__all__ = [
    "Checker",
    "ClaimRules",
    "NothingLeaks",
    "OneHolder",
    "OwnClaims",
    "RunningPods",
    "Satisfied",
    "judge",
]
