"""What a replay found, for people."""

from collections.abc import Iterator

from .comparing import Difference
from .lines import Verdict
from .replaying import Replayed


def text(found: Replayed) -> str:
    return "\n".join(_lines(found))


def _lines(found: Replayed) -> Iterator[str]:
    if found.then != found.now:
        yield f"then: {'; '.join(sorted(found.then))}"
        yield f"now:  {'; '.join(sorted(found.now))}"
    for one in found.differences:
        yield from _difference(one)
    count = len(found.differences)
    seen = " seen from outside" if found.is_seen_from_outside else ""
    yield f"{found.decisions} decisions{seen}, {count or 'none'} decided otherwise"
    if found.unknown:
        yield f"{found.unknown} more are about pods that the record does not show"
    for twice in sorted(found.held_twice):
        yield f"D1: {twice}"


def _difference(one: Difference) -> Iterator[str]:
    yield f"{one.at:%Y-%m-%d %H:%M:%S}  {one.pod}: then {_verdict(one.then)}, now {_verdict(one.now)}"
    for why in one.why:
        yield f"    {why}"


def _verdict(verdict: Verdict) -> str:
    if verdict.error:
        return "an error"
    if verdict.node:
        return f"on {verdict.node}"
    return f"waiting ({verdict.remedy})" if verdict.remedy else "waiting"
