"""The oldest part of a record, folded: whatever is folded, the rest is decided as before."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from allot.api import Gates, encode
from allot.informers import ResourceId
from allot.replay import read, replayed, telling
from allot.replay.folding import Fold
from allot.replay.keeping import term_of
from allot.replay.lines import (
    AnyLine,
    Decided,
    Ended,
    Flight,
    Gone,
    Knows,
    Set,
    Told,
    Verdict,
    Wrote,
    decoded,
    encoded,
)
from allot.scheduler import CLAIMS, PODS, Settings

from .recorded import tell
from .stories import come_and_go


def folded(lines: list[AnyLine], at: int) -> Iterator[AnyLine]:
    fold = Fold()
    for line in lines[:at]:
        fold.add(line, encoded(line))
    for raw in fold.lines():
        yield decoded(raw)
    yield from lines[at:]


@pytest.mark.parametrize("late", [False, True], ids=["punctual", "late"])
@pytest.mark.parametrize("seed", [11, 12])
def test_wherever_a_record_is_folded_the_rest_is_decided_as_before(tmp_path: Path, seed: int, late: bool):
    """At every few lines of a busy record: between a decision and its writes, between a binding and the news
    of it, while somebody is evicted; also where news and answers cross, and pods and claims are gone before
    the writes for them have ended. And folding what was folded changes nothing."""
    tell(tmp_path / "record", come_and_go(seed), seed=seed, transactions=seed % 2 == 0, late=late)
    lines = list(read(tmp_path / "record"))
    total, standing = sum(isinstance(one, Decided) for one in lines), 0
    for at in range(1, len(lines), 7):
        now = list(folded(lines, at))
        found = replayed(now)
        assert not found.differences, f"folded at {at}: {telling.text(found)}"
        left = sum(isinstance(one, Decided) for one in lines[at:])
        assert found.decisions == left and not found.unknown and not found.held_twice
        standing += sum(isinstance(one, Decided) and one.folded for one in now)
        assert list(folded(now, len(now) - (len(lines) - at))) == now
    assert total >= 40 and standing >= 5


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def term() -> AnyLine:
    return term_of(Settings(), Gates(), NOW)


def pod(node: str = "", phase: str = "Pending") -> Raw:
    metadata = {"name": "p", "namespace": "default", "uid": "p", "resourceVersion": "1"}
    return Raw(encode({"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}))


def claim(version: int, holder: str = "", device: str = "") -> Raw:
    metadata = {"name": "c", "namespace": "default", "uid": "c", "resourceVersion": str(version)}
    status: dict[str, Any] = {}
    if holder:
        status["reservedFor"] = [{"resource": "pods", "name": holder, "uid": holder}]
    if device:
        result = {"request": "gpu", "driver": "gpu.example.com", "pool": "a", "device": device}
        status["allocation"] = {"devices": {"results": [result]}}
    return Raw(encode({"metadata": metadata, "spec": {}, "status": status}))


def in_short(*lines: AnyLine) -> list[AnyLine]:
    return list(folded([*lines], len(lines)))


def test_who_begins_anew_knows_nothing_of_before():
    heard = Set(CLAIMS, claim(1))
    assert in_short(term(), heard, term()) == [term()]


def test_news_that_are_older_than_what_the_server_answered_are_passed_over():
    """SNAP4: the answer to our own write came before the watch told of the write before it."""
    wrote = Wrote(claim(7, "p"))
    assert in_short(term(), Set(CLAIMS, claim(5)), wrote, Set(CLAIMS, claim(6))) == [
        term(),
        Set(CLAIMS, claim(7, "p")),
    ]


def test_what_went_lately_is_known_to_have_been_there():
    there, gone = Set(CLAIMS, claim(5)), Gone(CLAIMS, claim(6))
    assert in_short(term(), there, gone) == [term(), there, gone]
    assert in_short(term(), gone) == [term()]


def test_a_binding_that_failed_holds_nothing_and_one_that_is_not_heard_of_yet_does():
    decided = Decided("p", "default/p", NOW, Verdict("a", (Flight("made-up", ""),)))
    kept = replace(decided, folded=True)
    assert in_short(term(), decided, Ended("p")) == [term()]
    assert in_short(term(), decided) == [term(), kept]
    assert in_short(term(), decided, Ended("p", bound=True)) == [term(), kept, Ended("p", bound=True)]
    named = replace(kept, verdict=Verdict("a", (Flight("c", ""),)))
    assert in_short(term(), decided, Wrote(claim(1), "made-up")) == [term(), Set(CLAIMS, claim(1)), named]


def test_what_is_gone_before_its_writes_have_ended_holds_nothing():
    """The claim went, or has given back what it got: what was decided for it is over, whatever is still told.
    The pod had been sent to its node, and left it."""
    decided = Decided("p", "default/p", NOW, Verdict("a", (Flight("c", "c"),)))
    kept, empty = replace(decided, folded=True), replace(decided, folded=True, verdict=Verdict("a"))
    first, gone, waits, left = (
        Set(CLAIMS, claim(1)),
        Gone(CLAIMS, claim(4)),
        Set(PODS, pod()),
        Gone(PODS, pod()),
    )
    assert in_short(term(), first, waits, decided, gone) == [term(), first, gone, waits, empty]
    had = [Set(CLAIMS, claim(2, "p", "gpu-0")), Set(CLAIMS, claim(3))]
    assert in_short(term(), first, waits, decided, *had) == [term(), had[-1], waits, empty]
    assert in_short(term(), first, waits, decided, left) == [term(), waits, kept, left, first]
    for bound, rest in ((True, kept), (False, empty)):
        after = [decided, left, Ended("p", bound=bound)]
        assert in_short(term(), first, waits, *after) == [term(), waits, rest, left, first]


def test_an_answer_about_a_claim_that_is_gone_brings_nothing_back():
    decided = Decided("p", "default/p", NOW, Verdict("a", (Flight("made-up", ""),)))
    there, gone = Set(CLAIMS, claim(1)), Gone(CLAIMS, claim(2))
    rest = replace(decided, folded=True, verdict=Verdict("a"))
    assert in_short(term(), decided, there, gone, Wrote(claim(1), "made-up")) == [term(), there, gone, rest]


def test_of_a_pod_that_has_finished_it_is_known_once_that_it_ran():
    runs, ended = Set(PODS, pod("a")), Set(PODS, pod("a", "Succeeded"))
    assert in_short(term(), runs, ended, ended) == [term(), runs, ended, ended]
    assert in_short(*in_short(term(), runs, ended)) == [term(), runs, ended, ended]
    assert in_short(term(), ended) == [term(), ended]


def test_what_is_known_adds_up():
    first = Knows(nominated={"p": "a", "q": "b"}, evicted={"v": NOW}, looked_at=3)
    then = Knows(nominated={"p": None}, looked_at=9)
    assert in_short(term(), first, then) == [
        term(),
        Knows(nominated={"q": "b"}, evicted={"v": NOW}, looked_at=9),
    ]


def test_parameters_of_a_kind_that_no_class_names_any_more_are_forgotten():
    what = ResourceId("frob.example.com", "v1", "frobs")
    told = Told("frob.example.com", "v1", "Frob", what)
    object = Set(what, claim(1), parameters=True)
    assert in_short(term(), told, object) == [term(), told, object]
    assert in_short(term(), told, object, Gone(what, claim(1), parameters=True)) == [term(), told]
    assert in_short(term(), told, object, replace(told, what=None, wanted=False)) == [term()]
