"""What was asked of a driver and what was seen. Pure."""

from dataclasses import dataclass
from enum import Enum
from textwrap import indent
from typing import Any


class Verdict(Enum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Outcome:
    case: str
    asks: str
    verdict: Verdict
    seen: str = ""  # why it failed, or what it would have needed


@dataclass(frozen=True, slots=True)
class Report:
    driver: str
    outcomes: tuple[Outcome, ...]

    @property
    def failed(self) -> tuple[Outcome, ...]:
        return self._those(Verdict.FAILED)

    @property
    def conforms(self) -> bool:
        """Something was tried, and nothing failed."""
        return not self.failed and bool(self._those(Verdict.PASSED))

    def text(self) -> str:
        lines = [line for outcome in self.outcomes for line in _lines(outcome)]
        counts = ", ".join(f"{len(self._those(verdict))} {verdict.value}" for verdict in Verdict)
        return "\n".join([*lines, "", f"{self.driver}: {counts}"])

    def fields(self) -> dict[str, Any]:
        return {
            "driver": self.driver,
            "conforms": self.conforms,
            "cases": [
                {"case": one.case, "asks": one.asks, "verdict": one.verdict.value, "seen": one.seen}
                for one in self.outcomes
            ],
        }

    def _those(self, verdict: Verdict) -> tuple[Outcome, ...]:
        return tuple(one for one in self.outcomes if one.verdict is verdict)


_MARKS = {Verdict.PASSED: "ok  ", Verdict.FAILED: "FAIL", Verdict.NOT_TRIED: "-   "}


def _lines(one: Outcome) -> list[str]:
    lines = [f"{_MARKS[one.verdict]} {one.case}"]
    if one.verdict is not Verdict.PASSED:
        label = "seen" if one.verdict is Verdict.FAILED else "not tried"
        lines += [indent(f"asked: {one.asks}", "       "), indent(f"{label}: {one.seen}", "       ")]
    return lines
